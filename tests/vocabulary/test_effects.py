"""Effects and the sets of their types."""

from minijax.core import effects
from minijax.core.effects import Effect, EffectTypeSet
from minijax.primitives.refs.ref_effects import AccumEffect, ReadEffect, WriteEffect


def test_input_effects_compare_by_class_and_input():
    assert ReadEffect(0) == ReadEffect(0)
    assert ReadEffect(0) != ReadEffect(1)
    assert ReadEffect(0) != WriteEffect(0)
    assert len({ReadEffect(0), ReadEffect(0), WriteEffect(0), AccumEffect(0)}) == 3
    assert ReadEffect(0).renamed({0: 2}.get) == ReadEffect(2)
    assert str(WriteEffect("x")) == "Write<x>"
    assert repr(AccumEffect(1)) == "AccumEffect(1)"


def test_sets_hold_classes_and_their_subclasses():
    class Print(Effect):
        pass

    class OrderedPrint(Print):
        pass

    chosen = EffectTypeSet()
    assert not chosen.contains(Print())
    chosen.add_type(Print)
    plain, ordered, read = Print(), OrderedPrint(), ReadEffect(0)
    assert chosen.contains(ordered)
    assert chosen.filter_in([read, ordered, plain]) == [ordered, plain]
    assert chosen.filter_not_in([read, ordered, plain]) == [read]
    assert repr(chosen) == "EffectTypeSet(Print)"


def test_refs_may_stand_where_jax_lets_them():
    from jax._src import effects as theirs
    from jax._src.interpreters import partial_eval
    from jax._src.state.types import ReadEffect as TheirRead

    for name, chosen in vars(effects).items():
        if isinstance(chosen, EffectTypeSet):
            home = partial_eval if name == "dceable_effects" else theirs
            expected = getattr(home, name).contains(TheirRead(0))
            assert chosen.contains(ReadEffect(0)) == expected, name
    assert effects.no_effects == frozenset()
