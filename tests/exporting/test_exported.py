"""Exported functions of fixed shapes: values, derivatives, bytes, refusals."""

import collections
import ctypes
import subprocess
import sys
from pathlib import Path

import jax
import jax.export  # noqa: F401
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import export

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = (minijax, jax)
ones = np.ones


def exported_in(lib, **options):
    def f(x, d):
        return lib.numpy.sin(x) * d["a"], d["b"]

    args = (ones(3, np.float32), {"a": 2.0, "b": 3})
    return lib.export.export(lib.jit(f), **options)(*args), args


def test_fields():
    def run(lib):
        exported, _ = exported_in(lib)
        derivative = exported.vjp()
        return [
            (
                each.fun_name,
                str(each.in_tree),
                str(each.in_avals),
                str(each.out_tree),
                [(a.shape, a.dtype) for a in each.out_avals],
                each.platforms,
                each.nr_devices,
                each.in_shardings_hlo,
                each.out_shardings_hlo,
                each.module_kept_var_idx,
                each.ordered_effects,
                each.disabled_safety_checks,
                each.has_vjp(),
                str(each),
            )
            for each in (exported, derivative.vjp() and exported)
        ]

    ours, theirs = (run(lib) for lib in LIBRARIES)
    assert ours == theirs


def test_types_of_the_derivative():
    def run(lib):
        derivative = exported_in(lib)[0].vjp()
        types = (*derivative.in_avals, *derivative.out_avals)
        trees = (str(derivative.in_tree), str(derivative.out_tree))
        return [(a.shape, a.dtype) for a in types], trees, derivative.fun_name

    ours, theirs = (run(lib) for lib in LIBRARIES)
    assert ours == theirs


def test_printed_programs():
    def run(lib):
        exported, (x, d) = exported_in(lib)
        inside = lib.make_jaxpr(lambda x: exported.call(x, d))(x)
        derivative = lib.make_jaxpr(lib.grad(lambda x: exported.call(x, d)[0].sum()))(x)
        return str(inside), str(derivative)

    ours, theirs = (run(lib) for lib in LIBRARIES)
    assert ours == theirs


def test_values():
    def run(lib):
        exported, (x, d) = exported_in(lib)
        loss = lambda x: exported.call(x, d)[0].sum()  # noqa: E731
        return [
            exported.call(x, d)[0],
            lib.jit(exported.call)(x, d)[0],
            lib.grad(loss)(x),
            lib.jit(lib.grad(lib.grad(lambda s: loss(s * x))))(0.3),
            exported.call(x.astype(np.float64), d)[0],
        ]

    ours, theirs = (run(lib) for lib in LIBRARIES)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


def outcome(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "done"


def test_refusals_are_those_of_jax():
    def run(lib):
        exported, (x, d) = exported_in(lib)
        for_cuda, _ = exported_in(lib, platforms=("cuda",))
        make = lib.export.export

        def printing(x):
            lib.debug.print("{}", x)
            return x

        return {
            name: outcome(call)
            for name, call in {
                "tree": lambda: exported.call(x),
                "shape": lambda: exported.call(ones(4), d),
                "rank": lambda: exported.call(1.0, d),
                "dtype": lambda: exported.call(x, {"a": 2, "b": 3}),
                "not an array": lambda: exported.call("x", d),
                "not jitted": lambda: make(lambda x: x),
                "an array": lambda: make(np.ones((2, 2))),
                "platform": lambda: for_cuda.call(x, d),
                "vmap": lambda: lib.vmap(exported.call, (0, None))(ones((2, 3)), d),
                "jvp": lambda: lib.jvp(lambda x: exported.call(x, d)[0], (x,), (x,)),
                "callback": lambda: make(lib.jit(printing))(x),
                "no namedtuple": lambda: lib.export.register_namedtuple_serialization(
                    list, serialized_name="list"
                ),
            }.items()
        }

    ours, theirs = (run(lib) for lib in LIBRARIES)
    assert ours == theirs


def test_platforms():
    exported, args = exported_in(minijax, platforms=("cuda", "cpu"))
    assert exported.platforms == ("cuda", "cpu")
    np.testing.assert_allclose(exported.call(*args)[0], 2 * np.sin(ones(3)), rtol=1e-6)
    again = export.deserialize(exported.serialize())
    np.testing.assert_allclose(again.call(*args)[0], 2 * np.sin(ones(3)), rtol=1e-6)
    check = export.DisabledSafetyCheck.platform()
    unchecked, _ = exported_in(minijax, platforms=("cuda",), disabled_checks=[check])
    np.testing.assert_allclose(unchecked.call(*args)[0], 2 * np.sin(ones(3)), rtol=1e-6)
    for bad in ("cpu", (), ("abacus",)):
        with pytest.raises(ValueError, match="platforms"):
            export.export(minijax.jit(jnp.sin), platforms=bad)


def test_constants_and_keys_go_with_it():
    big = jnp.arange(1000.0)
    key = minijax.random.key(3)

    def f(x, other):
        own = minijax.random.normal(key, (1000,))
        return x * big + own, minijax.random.split(other)

    exported = export.export(minijax.jit(f))(2.0, key)
    again = export.deserialize(exported.serialize())
    assert str(again.in_avals) == str(exported.in_avals)
    (sums, keys), (own_sums, own_keys) = again.call(2.0, key), f(2.0, key)
    np.testing.assert_allclose(sums, own_sums, rtol=1e-6)
    assert str(keys) == str(own_keys)


def test_bytes():
    exported, (x, d) = exported_in(minijax)
    plain = export.deserialize(exported.serialize())
    assert not plain.has_vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        plain.vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        minijax.grad(lambda x: plain.call(x, d)[0].sum())(x)
    twice = export.deserialize(bytes(exported.serialize(vjp_order=2)))
    assert twice.vjp().has_vjp() and not twice.vjp().vjp().has_vjp()
    for name in ("fun_name", "in_tree", "in_avals", "out_tree", "out_avals"):
        assert getattr(twice, name) == getattr(exported, name)
    slope = minijax.grad(lambda x: twice.call(x, d)[0].sum())(x)
    np.testing.assert_allclose(slope, 2 * np.cos(x), rtol=1e-6)
    bend = minijax.grad(
        lambda x: minijax.grad(lambda x: twice.call(x, d)[0].sum())(x).sum()
    )(x)
    np.testing.assert_allclose(bend, -2 * np.sin(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"", "not an exported function of minijax"),
        (lambda data: b"PK" + data[2:], "not an exported function of minijax"),
        (lambda data: data[:30], "cut off"),
        (lambda data: data[:-1], "damaged"),
        (lambda data: data + b"x", "damaged"),
        (lambda data: data[:200] + b"!" + data[201:], "damaged"),
        (lambda data: data[:16] + b"\x07\0\0\0" + data[20:], "version 7"),
    ],
)
def test_foreign_and_damaged_bytes(change, message):
    data = bytes(exported_in(minijax)[0].serialize())
    with pytest.raises(ValueError, match=message):
        export.deserialize(change(data))


def test_arguments_that_are_refused():
    exported, _ = exported_in(minijax)
    with pytest.raises(TypeError, match="takes the bytes"):
        export.deserialize("text")
    with pytest.raises(ValueError, match="vjp_order"):
        exported.serialize(vjp_order=-1)
    with pytest.raises(ValueError, match="disabled_checks"):
        export.export(minijax.jit(jnp.sin), disabled_checks=["custom_call"])
    with pytest.raises(minijax.errors.UnexpectedTracerError):
        minijax.jit(lambda x: export.export(minijax.jit(lambda y: x + y))(1.0))(1.0)


def test_foreign_functions_must_be_allowed():
    never_run = minijax.ffi.pycapsule(ctypes.CDLL(None).getpid)
    minijax.ffi.register_ffi_target(
        "unheard_of", never_run, platform="cpu", api_version=0
    )
    call = minijax.ffi.ffi_call(
        "unheard_of", minijax.ShapeDtypeStruct((), "float32"), has_side_effect=False
    )
    function = minijax.jit(lambda x: call(x))
    with pytest.raises(ValueError, match="no compatibility guarantees: unheard_of"):
        export.export(function)(1.0)
    check = export.DisabledSafetyCheck.custom_call("unheard_of")
    assert check.is_custom_call() == "unheard_of"
    assert export.export(function, disabled_checks=[check])(1.0).mlir_module()


Point = collections.namedtuple("Point", "x y")


class Circle:
    def __init__(self, radius, name):
        self.radius, self.name = radius, name


def test_classes_in_trees():
    minijax.tree_util.register_pytree_node(
        Circle, lambda c: ((c.radius,), c.name), lambda name, c: Circle(c[0], name)
    )

    def f(point, circle):
        return Point(point.y, Circle(circle.radius * 2, circle.name)), None, [()]

    args = Point(1.0, 2.0), Circle(3.0, "small")
    exported = export.export(minijax.jit(f))(*args)
    with pytest.raises(ValueError, match="register_namedtuple_serialization"):
        exported.serialize()
    export.register_namedtuple_serialization(Point, serialized_name="tests.Point")
    with pytest.raises(ValueError, match="register_pytree_node_serialization"):
        exported.serialize()
    export.register_pytree_node_serialization(
        Circle,
        serialized_name="tests.Circle",
        serialize_auxdata=str.encode,
        deserialize_auxdata=bytes.decode,
    )
    with pytest.raises(ValueError, match="already"):
        export.register_namedtuple_serialization(Point, serialized_name="other")
    again = export.deserialize(exported.serialize())
    assert again.in_tree == exported.in_tree
    point, nothing, empty = again.call(*args)
    assert (float(point.x), float(point.y.radius), point.y.name) == (2.0, 6.0, "small")
    assert (nothing, empty) == (None, [()])


def test_a_new_process_runs_it(tmp_path):
    exported, args = exported_in(minijax)
    path = tmp_path / "function"
    path.write_bytes(exported.serialize(vjp_order=1))
    program = (
        "import sys, minijax, numpy as np\n"
        "from pathlib import Path\n"
        "f = minijax.export.deserialize(Path(sys.argv[1]).read_bytes())\n"
        "d = {'a': 2.0, 'b': 3}\n"
        "x = np.ones(3, np.float32)\n"
        "print(f.call(x, d)[0], minijax.grad(lambda x: f.call(x, d)[0].sum())(x))\n"
        "assert 'jax' not in sys.modules\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, path], cwd=ROOT, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split("]")[0] == str(exported.call(*args)[0]).split("]")[0]


def test_lapack_is_loaded_for_a_program_of_another_process(tmp_path):
    """It finds the functions that it calls, though nothing here was traced."""
    allowed = export.DisabledSafetyCheck.custom_call("lapack_ssyevd_ffi")
    exported = export.export(
        minijax.jit(lambda x: minijax.numpy.linalg.eigh(x)[0]),
        disabled_checks=[allowed],
    )(minijax.ShapeDtypeStruct((2, 2), np.float32))
    path = tmp_path / "program"
    path.write_bytes(exported.serialize())
    program = (
        "import sys, numpy as np; from minijax import export;"
        "exported = export.deserialize(bytearray(open(sys.argv[1], 'rb').read()));"
        "print(exported.call(np.diag([3, 1]).astype('f')).tolist())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True
    )
    assert (answer.returncode, answer.stdout) == (0, "[1.0, 3.0]\n"), answer.stderr
