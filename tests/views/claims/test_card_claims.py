"""What `see.primitives` and `see.card` claim, held against JAX's rules and jaxprs."""

import re

import jax
import numpy as np
import pytest
from jax._src.interpreters import ad

import minijax
import minijax_widgets as see
from minijax.core.language import all_primitives
from minijax_lab.explain import cards
from minijax_lab.explain.formulas import derivatives

CLAIMS = [
    "The headline's counts are those of the tiles, and each primitive is one tile.",
    "A primitive is linear in an operand only if JAX transposes it.",
    "A primitive without a derivative has none in JAX, or one that is always zero.",
    "A card's types are those that JAX gives the same operation.",
    "A card names the primitives that JAX's jvp of the same operation makes.",
    "A card names those that JAX's vmap of the same operation makes.",
    "So many checks hold, of those that ran.",
    "A formula of a derivative has the values of JAX's jvp and vjp of what it derives.",
]
TRANSPOSED = {p.name for p in (*ad.primitive_transposes, *ad.fancy_transposes)}
# These stand in JAX's `backward_pass` itself.
TRANSPOSED |= {"empty_ref", "freeze", "new_ref"}
DIFFERENTIATED = {primitive.name for primitive in ad.primitive_jvps}


@pytest.fixture(scope="module")
def table():
    return see.primitives()


def test_counts(table):
    record = table.recording
    numbers = [int(n) for n in re.findall(r"\d+", record.headline)]
    kinds = ["linear", "derived", "program", "forward", "none"]
    tiles = {
        piece.key: piece.role
        for row in table.frame().panes[0].rows
        for piece in row.cells[1]
        if piece.key
    }
    assert sorted(tiles) == sorted(f"p{name}" for name in all_primitives)
    counts = [list(record.derivatives.values()).count(kind) for kind in kinds]
    assert numbers == [len(all_primitives), len(record.groups), *counts]


@pytest.mark.parametrize(
    "name", sorted(set(all_primitives) & (DIFFERENTIATED | TRANSPOSED))
)
def test_classes(table, name):
    kind = table.recording.derivatives[name]
    if kind == "linear":
        assert name in TRANSPOSED
    if kind == "derived":
        assert name in DIFFERENTIATED
    # JAX's rules of callbacks and of composites only raise.
    raises = name == "composite" or cards.family_of(all_primitives[name]) == "order"
    if name in TRANSPOSED and name in DIFFERENTIATED and not raises:
        assert kind in ("linear", "program")


def same_in_jax():
    """Cards whose example is a function of `lax` that JAX has by the same name."""
    for name in sorted(all_primitives):
        theirs = getattr(jax.lax, name, None)
        if (
            callable(theirs)
            and name not in cards.EXAMPLES
            and name not in cards.ELSEWHERE
        ):
            used = cards.example_of(name)
            if used is not None and used[0] is getattr(cards.lax, name, None):
                yield name, theirs, used[1]


SAME = list(same_in_jax())


def primitives_of(jaxpr):
    found: dict[str, None] = {}
    for eqn in jaxpr.eqns:
        inner = [v for v in eqn.params.values() if hasattr(v, "jaxpr")]
        if eqn.primitive.name in ("jit", "closed_call") and inner:
            found.update(dict.fromkeys(primitives_of(inner[0].jaxpr)))
        else:
            found[eqn.primitive.name] = None
    return list(found)


@pytest.mark.parametrize("name, theirs, args", SAME, ids=[one[0] for one in SAME])
def test_rules(name, theirs, args):
    rules = dict(cards.rules_of(all_primitives[name], *cards.example_of(name)))
    closed = jax.make_jaxpr(theirs)(*args)
    eqn = next(e for e in closed.jaxpr.eqns if e.primitive.name == name)
    types = [
        ", ".join(v.aval.str_short(short_dtypes=True) for v in side)
        for side in (eqn.invars, eqn.outvars)
    ]
    assert rules["type"] == " -> ".join(types)
    if rules["jvp"].startswith("makes "):
        made = jax.make_jaxpr(lambda *xs: jax.jvp(theirs, xs, xs))(*args)
        assert rules["jvp"] == f"makes {', '.join(primitives_of(made.jaxpr))}"
    if rules["batch"].startswith("makes "):
        rows = tuple(np.stack([a, a]) for a in args)
        made = jax.make_jaxpr(jax.vmap(theirs))(*rows)
        assert rules["batch"] == f"makes {', '.join(primitives_of(made.jaxpr))}"


@pytest.mark.parametrize("name", ["sin", "dot_general", "cumsum", "gather", "scan"])
def test_checks(name):
    record = see.card(name).recording
    ran = [check for check in record.checks if check.difference is not None]
    assert all(check.result in ("holds", "fails") for check in ran)
    assert f"; {len(ran)} of {len(ran)} checks hold" in record.headline


@pytest.mark.parametrize("name", sorted(all_primitives))
def test_lowering_names_operations_alone(name):
    """All that stand in the program, and nothing of its punctuation."""
    record = see.card(name).recording
    told = dict(record.rules)["lowering"]
    used = cards.example_of(name)
    if not told.startswith("to "):
        return
    function, args = used
    module = minijax.jit(lambda *xs: function(*xs)).lower(*args).compiler_ir()
    text = module.operation.get_asm(print_generic_op_form=True)
    named = re.findall(r'"(\w+)\.(\w+)"[(<]', text)
    names = {
        operation
        for dialect, operation in named
        if dialect not in ("builtin", "func") and operation != "return"
    }
    assert set(told.removeprefix("to ").split(", ")) == names


def jaxs_names():
    """What the names in formulas mean to JAX."""

    def either(whole, pairs):
        return lambda *xs: whole(*xs) if len(xs) == 1 else pairs(*xs)

    def of_floats(function):
        # A formula's numbers are of the type of what stands beside them.
        return lambda *xs, **given: function(
            *(np.float32(x) if type(x) in (int, float) else x for x in xs), **given
        )

    names = {name: of_floats(getattr(jax.lax, name)) for name in dir(jax.lax)}
    names |= {name: getattr(jax.numpy, name) for name in FORMULAS_OF_NUMPY.split()}
    names["max"] = either(jax.numpy.max, names["max"])
    names["min"] = either(jax.numpy.min, names["min"])
    return names


FORMULAS_OF_NUMPY = "where sum prod reshape broadcast_to squeeze concatenate flip pad "
FORMULAS_OF_NUMPY += "float32 float16 int32"
WITH_FORMULAS = [
    name
    for name in sorted(all_primitives)
    if (used := cards.example_of(name)) is not None
    and used[1]
    and all(map(cards.of_floats, used[1]))
]


def test_many_cards_have_formulas():
    found = [name for name in WITH_FORMULAS if derivatives(*cards.example_of(name))]
    assert len(found) > 60 and {"sin", "tanh", "pow", "dot_general", "max"} <= {*found}


@pytest.mark.parametrize("name", WITH_FORMULAS)
def test_formulas(name):
    function, args = cards.example_of(name)
    told = derivatives(function, args)
    if not told:
        return
    forwards, *backwards = told
    value, equals, tangent = forwards.removeprefix("d ").partition(" = ")
    assert equals and len(backwards) == len(args)
    names = "xyz"[: len(args)]
    scope = jaxs_names()
    consts = minijax.make_jaxpr(lambda *xs: function(*xs))(*args).consts
    scope["c"] = np.asarray(consts[0]) if consts else None

    def derived(*xs):
        return eval(value, scope | dict(zip(names, xs)))

    out = function(*args)
    out = out[0] if isinstance(out, (list, tuple)) else out
    np.testing.assert_allclose(derived(*args), out, rtol=1e-5, atol=1e-6)
    rng = np.random.default_rng(0)
    directions = [rng.normal(size=a.shape).astype(np.float32) for a in args]
    given = scope | dict(zip(names, args))
    given |= {f"d{one}": d for one, d in zip(names, directions)}
    found = np.broadcast_to(eval(tangent, given), np.shape(out))
    theirs = jax.jvp(derived, args, tuple(directions))[1]
    np.testing.assert_allclose(found, theirs, rtol=1e-4, atol=1e-5)
    ct = rng.normal(size=np.shape(out)).astype(np.asarray(out).dtype)
    cotangents = jax.vjp(derived, *args)[1](jax.numpy.asarray(ct))
    for one, text, arg, theirs in zip(names, backwards, args, cotangents):
        left, _, right = text.partition(" = ")
        assert left == f"ct_{one}"
        found = np.broadcast_to(eval(right, given | {"ct": ct}), arg.shape)
        np.testing.assert_allclose(found, theirs, rtol=1e-4, atol=1e-5)
