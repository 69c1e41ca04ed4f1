"""Values that are unreduced or reduced over mesh axes: two words of a type.

`f32[8]{U:x}`: along mesh axis "x" each device has an addend, and the value is their
sum. `f32[8]{R:x}`: each device has the whole value. Its cotangents, one for each
device, are of type `f32[8]{U:x}`, and are added up later. So what is unreduced forwards
is reduced backwards, and the other way round.

Both words stand in the spec of a type's cut. `words_of_results` says what follows for
the results of a primitive. Linear operations keep addends; all others refuse them.

In JAX: the rules of `lax/lax.py` for unreduced and reduced axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from minijax.core import errors
from minijax.primitives.parallel.variation import Words, words_in, words_of
from minijax.programs.sharding.cuts import (
    CARRYING,
    CASTING,
    ELEMENTWISE,
    EXCHANGING,
    axes_in,
    cut_of,
    fail,
    told,
)

NONE: Words = (frozenset(), frozenset())

_KEEPING = {
    *("broadcast_in_dim", "convert_element_type", "copy", "dynamic_slice", "name"),
    *("pad", "reduce_precision", "reduce_sum", "reshape", "slice", "split"),
    *("squeeze", "transpose", "unstack"),
}
# All operands have the same words.
_JOINING = {
    "concatenate": slice(None),
    "stack": slice(None),
    "dynamic_update_slice": slice(2),
    "select_n": slice(1, None),
}
# These say in the types of their own what becomes of the words.
_OWN_WORDS = CARRYING | CASTING | EXCHANGING | {"reshard", "sharding_constraint"}
_OWN_WORDS |= {"dce_sink", "new_ref", "freeze", "free_ref", "get", "swap", "addupdate"}
_OWN_WORDS -= {"call_exported", "custom_linear_solve", "pallas_call", "run_state"}


def has_words(avals: Sequence[Any]) -> bool:
    """Whether a value of these types is unreduced or reduced."""
    return any(any(words_of(aval)) for aval in avals)


def refuse(name: str, words: str = "unreduced/reduced") -> NoReturn:
    """NotImplementedError for a primitive that takes no such values."""
    error = NotImplementedError(
        f"{words} rule for {name} is not implemented. Add the parts up first: "
        "`minijax.sharding.reshard(x, P(...))` without the word."
    )
    raise errors.with_facts(error)


def refuse_unless_own(name: str, avals: Sequence[Any]) -> None:
    """NotImplementedError for words that the types of a primitive would lose."""
    if name not in _OWN_WORDS and has_words(avals):
        refuse(name)


def words_of_results(
    name: str, avals: Sequence[Any], params: dict[str, Any], given: Any
) -> Words:
    """The words of each result of a primitive; `given` is its `out_sharding`.

    Raises:
      ShardingTypeError: for operands whose words do not go together.
      ValueError: for an `out_sharding` with other words than those of the operand.
      NotImplementedError: for a primitive that is not linear.
    """
    wanted = words_in(given)
    if name == "dot_general":
        return _dot_general(avals, params, wanted)
    if not has_words(avals) and not any(wanted):
        return NONE
    if name == "reduce_sum" and wanted[0]:
        _check_summed(avals[0], params["axes"], wanted[0])
        return wanted[0], words_of(avals[0])[1]
    if name == "reshape" and given is not None and wanted != words_of(avals[0]):
        raise errors.value_error(
            "out_sharding passed to reshape must be unreduced and reduced over the "
            f"same mesh axes as the operand. Got {given.spec} and {told(avals)}."
        )
    if name == "broadcast_in_dim" and given is not None:
        return wanted
    if name == "dynamic_slice" and words_of(avals[0])[0]:
        refuse(name, "unreduced")
    if name in _KEEPING:
        return words_of(avals[0])
    if name in _JOINING:
        arrays = avals[_JOINING[name]]
        if len(set(map(words_of, arrays))) > 1:
            fail(
                f"All operands of {name} should be unreduced and reduced over the same "
                f"mesh axes. Got {told(arrays)}. Reshard one of them."
            )
        return words_of(arrays[0])
    if name == "add_any":
        return _add(avals), words_of(avals[0])[1]
    if name not in ELEMENTWISE:
        refuse(name)
    reduced = _reduced(avals)
    if name == "add":
        return _add(avals), reduced
    if name == "mul":
        return _mul(avals, reduced)
    if any(words_of(aval)[0] for aval in avals):
        refuse(name, "unreduced")
    return frozenset(), reduced


def _reduced(avals: Sequence[Any]) -> frozenset:
    """The axes over which an elementwise result is reduced: those of all operands."""
    several = {words_of(aval)[1] for aval in avals} - {frozenset()}
    if len(several) > 1:
        fail(
            "All inputs should be reduced across the same mesh axes. Got "
            f"{told(avals)}. Reshard one of them."
        )
    found = next(iter(several), frozenset())
    for aval in avals:
        named = {axis for part in cut_of(aval) for axis in axes_in(part)}
        if found & (named | aval.vma):
            fail(
                "Inputs cannot be sharded/varying on the axes that another input is "
                f"reduced on. Got {told(avals)}. Reshard the one that is reduced."
            )
        if _counts(aval, avals) and found - frozenset().union(*words_of(aval)):
            fail(
                "Inputs cannot be replicated on the same axes that another input is "
                f"reduced on. Got {told(avals)}. Reshard one of them."
            )
    return found


def _counts(aval: Any, avals: Sequence[Any]) -> bool:
    """Whether a value must be reduced too; a number must in `shard_map` only."""
    inside = any(a.cut is not None and a.cut.mesh.manual_axes for a in avals)
    return aval.ndim > 0 or inside


def _add(avals: Sequence[Any]) -> frozenset:
    one, other = (words_of(aval)[0] for aval in avals)
    if one != other:
        fail(
            "Summands must be unreduced along the same mesh axes: other "
            f"sums need communication. Got {told(avals)}. Use `reshard` before."
        )
    return one


def _mul(avals: Sequence[Any], reduced: frozenset) -> Words:
    (one, one_reduced), (other, other_reduced) = map(words_of, avals)
    if one and other:
        fail(
            "lhs and rhs to `mul` cannot be unreduced both: a product of sums is no "
            f"sum of products. Got {told(avals)}. Use `reshard` before."
        )
    # A number goes with addends too, unlike in JAX, which marks the number as reduced
    # forwards: so the transpose of a product with one multiplies addends by it.
    numbers = [not _counts(aval, avals) for aval in avals]
    ours = (one and numbers[1]) or (other and numbers[0])
    plain = frozenset() in (one | one_reduced, other | other_reduced)
    if not (ours and plain) and (
        (one and one != other_reduced) or (other and other != one_reduced)
    ):
        fail(
            "One operand of `mul` should be reduced along the axes on which the other "
            f"is unreduced. Got {told(avals)}. Use `reshard` before."
        )
    return one | other, reduced - (one | other)


def _dot_general(avals: Sequence[Any], params: dict[str, Any], wanted: Words) -> Words:
    if any(words_of(aval)[0] for aval in avals):
        fail(
            "lhs or rhs passed to dot_general cannot be unreduced. Got "
            f"{told(avals)}. Use `reshard` before."
        )
    if not wanted[0]:
        return NONE
    contracted = params["dimension_numbers"][0]
    parts = [
        [cut_of(aval)[axis] for axis in axes] for aval, axes in zip(avals, contracted)
    ]
    if parts[0] != parts[1]:
        fail(
            "lhs and rhs contracting dims should be sharded identically when "
            f"out_sharding of dot_general is unreduced. Got {told(avals)}."
        )
    if wanted[0] != {axis for part in parts[0] for axis in axes_in(part)}:
        fail(
            "out_sharding's unreduced axes should be equal to those that cut the "
            f"contracted dimensions. Got {set(wanted[0])} and {told(avals)}."
        )
    return wanted[0], frozenset()


def _check_summed(x: Any, axes: Sequence[int], wanted: frozenset) -> None:
    cut = cut_of(x)
    summed = {name for axis in axes for name in axes_in(cut[axis])}
    if not wanted <= summed | words_of(x)[0]:
        fail(
            "out_sharding's unreduced axes should be in operand's specs that were "
            f"summed over. Got {told([x])}, axes={tuple(axes)} and {set(wanted)}."
        )
