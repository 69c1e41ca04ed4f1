"""What `see.primitives` and `see.card` claim, held against JAX's rules and jaxprs."""

import contextlib
import re

import jax
import numpy as np
import pytest
from jax._src.interpreters import ad

import minijax
import minijax.numpy.fft  # its primitive is in the table from now on
import minijax_widgets as see
from minijax.core.language import all_primitives
from minijax_lab.explain import cards
from minijax_lab.explain.formulas import CONSTANTS, formulas_of
from minijax_lab.explain.stated_formulas import STATED

CLAIMS = [
    "The headline's counts are those of the tiles, and each primitive is one tile.",
    "A primitive is linear in an operand only if JAX transposes it.",
    "A primitive without a derivative has none in JAX, or one that is always zero.",
    "A card's types are those that JAX gives the same operation.",
    "A card names the primitives that JAX's jvp of the same operation makes.",
    "A card names those that JAX's vmap of the same operation makes.",
    "So many checks hold, of those that ran.",
    "A formula of a derivative has the values of JAX's jvp and vjp of what it derives, "
    "and of the rules'.",
    "What has a derivative, and an example of floats, has a formula.",
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
    if told.startswith("to nothing: "):
        assert names == set()
    else:
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

    public = [name for name in dir(jax.lax) if not name.startswith("_")]
    names = {name: of_floats(getattr(jax.lax, name)) for name in public}
    names |= {name: getattr(jax.numpy, name) for name in FORMULAS_OF_NUMPY.split()}
    names["max"] = either(jax.numpy.max, names["max"])
    names["min"] = either(jax.numpy.min, names["min"])
    return names


FORMULAS_OF_NUMPY = "where sum prod reshape broadcast_to squeeze concatenate flip pad "
FORMULAS_OF_NUMPY += "float32 float16 int32 copy"
STATED_OF_NUMPY = "zeros array arange stack argsort diag tril triu eye maximum minimum "
STATED_OF_NUMPY += "swapaxes tile real sort"
WITH_FORMULAS = [
    name
    for name in sorted(all_primitives)
    if (used := cards.example_of(name)) is not None
    and used[1]
    and all(map(cards.of_floats, used[1]))
]
# Their numbers are those of a key, or of the operation that a user wrote.
HAVE_NONE = {"composite", "pure_callback", "random_gamma"}


def test_what_has_a_derivative_has_a_formula(table):
    kinds = table.recording.derivatives
    told = {n for n in WITH_FORMULAS if formulas_of(n, *cards.example_of(n))}
    without = {n for n in WITH_FORMULAS if kinds[n] != "none"} - told
    assert without <= HAVE_NONE and len(told) > 110


def test_a_card_without_a_formula_says_why(table):
    """In the words that hold of what JAX does with its example."""
    kinds = table.recording.derivatives
    for name in ("eq", "and", "argmax"):
        (told,) = cards.record_card(name).derivative
        function, args = cards.example_of(name)
        dtype = np.asarray(function(*args)).dtype
        short = {"bool": "bool", "int32": "i32"}[dtype.name]
        assert (
            told
            == f"no formula: its results are {short}, and only floats have tangents"
        )
        assert kinds[name] == "none"
    for name, words in {
        "iota": "it has no operands",
        "psum": "it is linear, so that its derivative is the same operation",
        "pallas_call": "it is differentiated as the program inside",
        "pure_callback": "it has no rule for a derivative",
    }.items():
        (told,) = cards.record_card(name).derivative
        assert told.startswith(f"no formula: {words}")
    x = np.arange(3, dtype=np.float32)
    summed = jax.vmap(
        lambda x: jax.jvp(lambda x: jax.lax.psum(x, "i"), (x,), (x,)), axis_name="i"
    )
    value, tangent = summed(x)
    np.testing.assert_array_equal(value, tangent)


def scope_of(name, function, args):
    """What the names in a card's formulas mean, and the arrays that they are of."""
    scope = jaxs_names() | {
        one: getattr(jax.numpy, one) for one in STATED_OF_NUMPY.split()
    }
    linear = jax.numpy.linalg
    names = "inv solve cholesky svd qr eigh eigvalsh"
    scope |= {one: getattr(linear, one) for one in names.split()}
    scope["lu"] = jax.lax.linalg.lu
    scope["eig"] = lambda x: jax.lax.linalg.eig(
        x, compute_left_eigenvectors=False, enable_eigvec_derivs=True
    )
    for one in ("top_k", "approx_max_k"):  # their whole numbers stay whole
        scope[one] = getattr(jax.lax, one)
    scope["regularized_incomplete_beta"] = jax.lax.betainc
    scope["fft"] = jax.numpy.fft.fft
    if name in ("cholesky", "eigh"):  # these read the symmetric part
        symmetric = {one: scope[one] for one in ("cholesky", "eigh", "eigvalsh")}
        scope |= {
            one: lambda x, made=made: made((x + x.T) / 2)
            for one, made in symmetric.items()
        }
    consts = minijax.make_jaxpr(lambda *xs: function(*xs))(*args).consts
    scope |= dict(zip(CONSTANTS[len(consts)], map(np.asarray, consts)))
    return scope


def test_of_formulas_knows_a_wrong_one(monkeypatch):
    monkeypatch.setitem(STATED, "sort", ["d sort(x) = dx", *STATED["sort"][1:]])
    with pytest.raises(AssertionError, match="Not equal"):
        test_formulas("sort")


@pytest.mark.parametrize("name", WITH_FORMULAS)
def test_formulas(name):
    function, args = cards.example_of(name)
    told = formulas_of(name, function, args)
    if not told:
        return
    names = "xyzb"[: len(args)]
    lines = [line.partition(" = ") for line in told if " = " in line]
    forwards = [line for line in lines if line[0].startswith("d ")]
    backwards = {left: right for left, _, right in lines if left.startswith("ct_")}
    defined = [f"{a} = {b}" for a, _, b in lines[len(forwards) + len(backwards) :]]
    assert len(forwards) <= 1 and list(backwards) in (
        [],
        [f"ct_{one}" for one in names],
    )
    scope = scope_of(name, function, args)

    def value(text, **given):
        """A formula's value; what it needs is defined as far as it is given."""
        known = scope | {k: jax.numpy.asarray(v) for k, v in given.items()}
        for line in defined:
            with contextlib.suppress(NameError):
                exec(line, known)
        return eval(text, known)

    primals = dict(zip(names, args))
    rng = np.random.default_rng(0)
    directions = [rng.normal(size=a.shape).astype(np.float32) for a in args]
    out = minijax.jit(lambda *xs: function(*xs))(*args)
    out = out[0] if isinstance(out, (list, tuple)) else out
    ct = rng.normal(size=np.shape(out)).astype(np.asarray(out).dtype)
    if forwards:
        ((left, _, right),) = forwards
        whole = left.removeprefix("d ")

        def derived(*xs):
            return value(whole, **dict(zip(names, xs)))

        np.testing.assert_allclose(derived(*args), out, rtol=1e-5, atol=1e-6)
        tangents = {f"d{one}": d for one, d in zip(names, directions)}
        found = np.broadcast_to(value(right, **primals, **tangents), np.shape(out))
        theirs = jax.jvp(derived, args, tuple(directions))[1]
        np.testing.assert_allclose(found, theirs, rtol=1e-4, atol=1e-5)
        ours = minijax.jvp(lambda *xs: function(*xs), args, tuple(directions))[1]
        np.testing.assert_allclose(found, ours, rtol=1e-4, atol=1e-5)
    for at, right in enumerate(backwards.values()):
        found = np.broadcast_to(value(right, **primals, ct=ct), args[at].shape)
        if forwards:
            theirs = jax.vjp(derived, *args)[1](jax.numpy.asarray(ct))[at]
            np.testing.assert_allclose(found, theirs, rtol=1e-4, atol=1e-5)
        ours = minijax.vjp(lambda *xs: function(*xs), *args)[1](ct)[at]
        np.testing.assert_allclose(found, ours, rtol=1e-4, atol=1e-5)
