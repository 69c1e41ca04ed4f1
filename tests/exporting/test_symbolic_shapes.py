"""Programs with symbolic shapes: printed as JAX prints them, and exported."""

import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.export  # noqa: F401
import numpy as np
import pytest

import minijax
from minijax import export
from minijax.values.symbolic_sizes import evaluate

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = (minijax, jax)


def programs(lib):
    """By name: a function and the types of its arguments."""
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    b, n = lib.export.symbolic_shape("b, n")

    def spec(*shape, dtype="float32"):
        return lib.ShapeDtypeStruct(shape, dtype)

    x, y, v, z = spec(b, 4), spec(b, n), spec(b), spec(b, n, 8)
    index = spec(b, dtype="int32")

    def layer_norm(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def flatten(x):
        flat = x.reshape((x.shape[0] * x.shape[1], x.shape[2]))
        return flat.sum(1).reshape(x.shape[:2])

    def scanned(x):
        return lax.scan(lambda c, r: (c + r, c.sum()), jnp.zeros(4), x)

    def scanned_back(x):
        return lax.scan(lambda c, r: (c + r, c.sum()), jnp.zeros(4), x, reverse=True)

    def loop(x):
        return lax.fori_loop(0, x.shape[0], lambda i, c: c * 2.0 + 1, x)

    def branch(x):
        return lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x, x)

    def inner_jit(x):
        return lib.jit(lambda x: x.reshape(-1))(x) * 2

    def noise(x):
        return lib.random.normal(lib.random.key(0), x.shape)

    return {
        "matmul": (lambda x: jnp.sin(x) @ jnp.ones((4, 3)), x),
        "reshape": (lambda x: x.reshape(-1), x),
        "reshape with -1": (lambda x: x.reshape((-1, 8)), z),
        "flatten batch and sequence": (flatten, z),
        "mean": (lambda x: jnp.mean(x, axis=0), x),
        "mean of all": (jnp.mean, y),
        "var": (lambda x: jnp.var(x, axis=0), x),
        "std": (lambda x: x.std(), y),
        "concatenate": (lambda x: jnp.concatenate([x, x], 0), x),
        "arange": (lambda x: jnp.arange(x.shape[0]), x),
        "arange of floats": (lambda x: jnp.arange(x.shape[0] * 2, dtype="f4"), x),
        "iota": (lambda x: lax.iota("int32", x.shape[0]), x),
        "x[1:]": (lambda x: x[1:], x),
        "x[2:]": (lambda x: x[2:], x),
        "x[:1]": (lambda x: x[:1], x),
        "x[:3]": (lambda x: x[:3], x),
        "x[:-1]": (lambda x: x[:-1], x),
        "x[0]": (lambda x: x[0], x),
        "x[-1]": (lambda x: x[-1], x),
        "x[:, 1]": (lambda x: x[:, 1], x),
        "x[:, :2]": (lambda x: x[:, :2], x),
        "x[::-1]": (lambda x: x[::-1], x),
        "x[::2]": (lambda x: x[::2], x),
        "x[i]": (lambda x, i: x[i], x, index),
        "lax.slice": (lambda x: lax.slice(x, (1, 0), (x.shape[0], 4)), x),
        "take": (lambda x, i: jnp.take(x, i, axis=0), x, index),
        "dynamic_slice": (
            lambda x, i: lax.dynamic_slice(x, (i[0], 0), (x.shape[0] - 1, 2)),
            x,
            index,
        ),
        "vmap of scan": (
            lib.vmap(lambda r: lax.scan(lambda c, a: (c + a, c), 0.0, r)),
            y,
        ),
        "attention": (lambda q: nn.dot_product_attention(q, q, q), spec(b, n, 2, 8)),
        "split": (lambda x: jnp.split(x, 2), spec(2 * b, 4)),
        "split at 1": (lambda x: jnp.split(x, [1], axis=0), x),
        "at.set": (lambda x: x.at[0].set(1.0), x),
        "softmax": (nn.softmax, x),
        "softmax of a batch": (lambda x: nn.softmax(x, axis=0), x),
        "logsumexp": (lambda x: nn.logsumexp(x, axis=0), x),
        "broadcast": (lambda x: jnp.broadcast_to(x, (3, *x.shape)), x),
        "a column": (lambda x, v: x + v[:, None], x, v),
        "zeros": (lambda x: jnp.zeros(x.shape) + x, x),
        "full": (lambda x: jnp.full((x.shape[0], 2), 3.0), x),
        "x @ x.T": (lambda x: x @ x.T, x),
        "einsum": (lambda x: jnp.einsum("bnd,bmd->bnm", x, x), z),
        "where": (lambda x: jnp.where(x > 0, x, 0.0), x),
        "argmax": (lambda x: jnp.argmax(x, axis=0), x),
        "sort": (lambda x: jnp.sort(x, axis=0), x),
        "stack": (lambda x: jnp.stack([x, x]), x),
        "pad": (lambda x: jnp.pad(x, ((1, 1), (0, 0))), x),
        "a size as factor": (lambda x: x * x.shape[0], x),
        "a size as divisor": (lambda x: x / x.shape[0], x),
        "root of a size": (lambda x: jnp.sqrt(x.shape[0]), x),
        "grad of mean": (lib.grad(lambda x: jnp.mean(jnp.sin(x))), x),
        "grad of softmax": (lib.grad(lambda x: nn.softmax(x)[:, 0].sum()), x),
        "vmap": (lib.vmap(lambda r: r.sum() * r), x),
        "vmap of dot": (lib.vmap(lambda r, w: r @ w), y, y),
        "scan": (scanned, x),
        "scan back": (scanned_back, x),
        "fori_loop": (loop, x),
        "cond": (branch, x),
        "jit": (inner_jit, x),
        "gelu": (nn.gelu, x),
        "one_hot": (lambda i: nn.one_hot(i, 5), index),
        "repeat": (lambda x: jnp.repeat(x, 2, axis=0), x),
        "layer norm": (layer_norm, z),
        "outer": (lambda v: jnp.outer(v, v), v),
        "tril": (jnp.tril, spec(b, b)),
        "eye": (lambda x: jnp.eye(x.shape[0]), x),
        "random": (noise, x),
    }


OURS, THEIRS = (programs(lib) for lib in LIBRARIES)


def printed(lib, function, *types):
    text = str(lib.make_jaxpr(function)(*types))
    text = re.sub(r"np\.int64\((-?\d+)\)", r"\1", text)
    return re.sub(r"\s+", " ", text).replace("[ ", "[").replace(" ]", "]")


# Attention is written in other equations here, for known sizes too.
@pytest.mark.parametrize("name", sorted({*OURS} - {"attention"}))
def test_printed_programs(name):
    assert printed(minijax, *OURS[name]) == printed(jax, *THEIRS[name])


def arguments(types, sizes):
    rng = np.random.default_rng(0)
    made = []
    for kind in types:
        shape = [evaluate(size, sizes) for size in kind.shape]
        values = rng.normal(size=shape) if kind.dtype == np.float32 else np.zeros(shape)
        made.append(values.astype(kind.dtype))
    return made


@pytest.mark.parametrize("name", OURS)
def test_one_exported_program_serves_many_shapes(name):
    function, *types = OURS[name]
    exported = export.export(minijax.jit(function))(*types)
    again = export.deserialize(exported.serialize())
    theirs = jax.jit(THEIRS[name][0])
    for sizes in ({"b": 5, "n": 3}, {"b": 2, "n": 1}):
        given = arguments(types, sizes)
        results = minijax.tree.leaves(again.call(*given))
        expected = jax.tree.leaves(theirs(*given))
        for mine, other in zip(results, expected, strict=True):
            assert (mine.shape, mine.dtype) == (other.shape, other.dtype)
            np.testing.assert_allclose(mine, other, rtol=2e-5, atol=2e-5)


SIZES_AS_VALUES = {
    **{
        f"{left} {sign} {right}": f"{left} {sign} {right}"
        for sign in ("+", "-", "*", "/", "//", "%")
        for left, right in (
            ("b", "(jnp.zeros((), jnp.int32)+2)"),
            ("(jnp.zeros((), jnp.int32)+2)", "b"),
            ("b", "jnp.float32(2.5)"),
            ("b", "np.int32(2)"),
            ("np.float32(7)", "b"),
            ("b", "2"),
            ("b", "x"),
        )
    },
    "divmod of arrays": "divmod(b, jnp.float32(2)) + divmod(b, x) + divmod(7.5, b)",
    "divmod of numbers": "divmod(b, np.arange(1, 3)) + divmod(np.int32(7), b)",
    "a result": "(b, -b, 2*b + 1, jnp.ones(b))",
    "where": "jnp.where(x[0] > 0, b, 0)",
    "lax": "lax.add(b, jnp.int32(1)), lax.max(jnp.int32(1), b), lax.neg(b)",
    "clip": "jnp.clip(jnp.arange(9), 1, b), jnp.mod(jnp.arange(9), b)",
    "sqrt": "jnp.sqrt(b), jnp.maximum(b, 2), jnp.atleast_1d(b), jnp.stack([b, b])",
    "a slice": "jnp.arange(9)[:b], lax.dynamic_slice(jnp.arange(9), (b,), (2,))",
    "an argument of jit": "jit(lambda y: y + 1)(b)",
    "larger": "max(b, 1) + jnp.int32(0)",
    "comparisons": "jnp.less(b, jnp.float32(3)), jnp.equal(b, 3), jnp.int32(1) < b",
    "creation": "jnp.arange(1, b), jnp.eye(b, 3), jnp.full((b,), 3.0), jnp.array([b])",
    "copies": "jnp.tile(jnp.arange(2), b), nn.one_hot(jnp.arange(2), b)",
}


@pytest.mark.parametrize("name", SIZES_AS_VALUES)
def test_sizes_among_values(name):
    """A size beside arrays and numbers, and where functions take arrays."""

    def run(lib):
        def function(x):
            names = {"x": x, "b": x.shape[0], "np": np, "jit": lib.jit}
            names |= {"jnp": lib.numpy, "lax": lib.lax, "nn": lib.nn}
            return eval(SIZES_AS_VALUES[name], names)

        (b,) = lib.export.symbolic_shape("b")
        kind = lib.ShapeDtypeStruct((b,), "float32")
        exported = lib.export.export(lib.jit(function))(kind)
        kinds = [(str(a.shape), a.dtype, a.weak_type) for a in exported.out_avals]
        called = exported.call(np.arange(1.0, 4.0, dtype=np.float32))
        return kinds, [np.asarray(x) for x in lib.tree.leaves(called)]

    (ours, values), (theirs, expected) = map(run, LIBRARIES)
    assert ours == theirs
    for one, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def exported_mean(lib, text="b, 2*n", **options):
    shape = lib.export.symbolic_shape(text, **options)
    function = lib.jit(lambda x: lib.numpy.tanh(x).mean(0))
    return lib.export.export(function)(lib.ShapeDtypeStruct(shape, "float32"))


def test_types_and_derivatives():
    def run(lib):
        exported = exported_mean(lib)
        x = lib.numpy.ones((3, 4))
        derivative = exported.vjp()
        loss = lambda x: exported.call(x).sum()  # noqa: E731
        return (
            str(exported.in_avals),
            str(exported.out_avals),
            str(derivative.in_avals),
            str(derivative.out_avals),
            np.asarray(lib.grad(loss)(x)).tolist(),
            np.asarray(lib.grad(lambda x: lib.grad(loss)(x).sum())(x)).tolist(),
        )

    ours, theirs = (run(lib) for lib in LIBRARIES)
    assert ours[:4] == theirs[:4]
    for mine, other in zip(ours[4:], theirs[4:], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5)


def test_an_exported_function_in_another():
    def run(lib):
        inner = exported_mean(lib, "b, n")
        (k,) = lib.export.symbolic_shape("k")
        outer = lib.export.export(lib.jit(lambda x: inner.call(x) * 2))(
            lib.ShapeDtypeStruct((3 * k, k + 1), "float32")
        )
        return str(outer.out_avals), outer.call(lib.numpy.ones((6, 3)))

    (text, ours), (other, theirs) = (run(lib) for lib in LIBRARIES)
    assert text == other
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_shapes_that_do_not_fit():
    """Each is a ValueError, as in JAX, and says which argument and why."""
    cases = [
        (
            "b, 2*n",
            {},
            (3, 5),
            r"args\[0\].shape\[1\] is 5, which '2\*n' does not equal for any whole ",
        ),
        ("b, b", {}, (3, 5), "and 'b' is 3"),
        ("b, n", {}, (0, 5), "Expected value >= 1 for dimension variable 'b'"),
        ("b, 4", {}, (3, 5), "Shape mismatch"),
        ("b, n", {}, (3,), "Rank mismatch"),
        ("b, n", {"constraints": ["b >= n"]}, (3, 5), "constraint 'b >= n' does not"),
        ("b, n", {"constraints": ["mod(b, 2) == 0"]}, (3, 5), r"mod\(b, 2\) == 0"),
    ]
    for text, options, shape, message in cases:
        x = np.ones(shape, np.float32)
        with pytest.raises(ValueError, match=message):
            exported_mean(minijax, text, **options).call(x)
        with pytest.raises(ValueError):
            exported_mean(jax, text, **options).call(x)


def test_the_program_asserts_its_shapes():
    exported = exported_mean(minijax, "b, 2*n", constraints=["b >= n"])
    text = exported.mlir_module()
    assert text.count("shape_assertion") >= 4
    assert "The constraint 'b >= n' does not hold" in text


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x if x.shape[0] > 3 else -x, "'b' > '3' is inconclusive"),
        (lambda x: x.reshape((3, -1)), "Cannot divide evenly"),
        (lambda x: [None] * int(x.shape[0]), "requires a constant"),
        (lambda x: x[: x.shape[0] - 5], "inconclusive"),
        (lambda x: minijax.numpy.cumsum(x, 0), "requires a constant"),
    ],
)
def test_what_depends_on_a_size(function, message):
    (b,) = export.symbolic_shape("b")
    with pytest.raises(minijax.errors.InconclusiveDimensionOperation, match=message):
        export.export(minijax.jit(function))(minijax.ShapeDtypeStruct((b, 4), "f4"))


def test_what_is_not_exported_needs_sizes():
    (b,) = export.symbolic_shape("b")
    kind = minijax.ShapeDtypeStruct((b, 4), "float32")
    lowered = minijax.jit(minijax.numpy.sin).lower(kind)
    assert "tensor<?x4xf32>" in lowered.as_text()
    for run in (
        lowered.compile,
        lambda: minijax.numpy.zeros((b, 4)),
        lambda: minijax.numpy.arange(b),
    ):
        with pytest.raises(ValueError, match="a program with symbolic sizes cannot"):
            run()
    with pytest.raises(NotImplementedError, match="has no value here"):
        b * 2.0


def test_sizes_that_nothing_tells():
    shape = export.symbolic_shape("b*n")
    with pytest.raises(ValueError, match="Cannot solve for values of dimension"):
        export.export(minijax.jit(lambda x: x))(minijax.ShapeDtypeStruct(shape, "f4"))
    other = export.symbolic_shape("b") + export.symbolic_shape("b")
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        export.export(minijax.jit(lambda x: x))(minijax.ShapeDtypeStruct(other, "f4"))


def test_a_new_process_runs_it_at_any_size(tmp_path):
    path = tmp_path / "mean"
    path.write_bytes(exported_mean(minijax).serialize(vjp_order=1))
    program = (
        "import sys, minijax, numpy as np\n"
        "from pathlib import Path\n"
        "f = minijax.export.deserialize(Path(sys.argv[1]).read_bytes())\n"
        "print(f.in_avals, [f.call(np.ones((b, 4), 'f4')).shape for b in (1, 7)])\n"
        "x = np.zeros((2, 2), 'f4')\n"
        "print(minijax.grad(lambda x: f.call(x).sum())(x).tolist())\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, path], cwd=ROOT, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == [
        "(ShapedArray(float32[b,2*n]),) [(4,), (4,)]",
        "[[0.5, 0.5], [0.5, 0.5]]",
    ]
