"""Bad input between tracing and the machine: each ends with an error that helps.

Each case names the exception's class and words that the message must hold: the argument
or value that is wrong, and the way out.
"""

import os
import subprocess
import sys
import traceback

import numpy as np
import pytest

import minijax as mj
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import export, ffi, profiler
from minijax.errors import InconclusiveDimensionOperation, JaxRuntimeError

FLOAT32 = jnp.float32
X = np.ones((4, 3), np.float32)
# Nobody can make a folder in here, whoever runs the tests.
NOWHERE = "/dev/null/folder"


def double(x):
    """A function of one array."""
    return jnp.sin(x) * 2


def jitted():
    """A jitted function of its own, so that no test meets another's cache."""
    return mj.jit(lambda x: jnp.sin(x) * 2)


def compiled():
    """The function compiled for `X`."""
    return jitted().lower(X).compile()


def exported(shape=(4, 3), **options):
    """The function exported."""
    return export.export(jitted(), **options)(mj.ShapeDtypeStruct(shape, FLOAT32))


def symbolic(fun, text, **options):
    """A function exported for an argument of a symbolic shape."""
    shape = export.symbolic_shape(text, **options)
    return export.export(mj.jit(fun))(mj.ShapeDtypeStruct(shape, FLOAT32))


def changed(data):
    """The same bytes, one of them another."""
    data = bytearray(data)
    data[len(data) // 2] ^= 1
    return data


def donate_then(use):
    """Gives an array away, then uses it."""
    giving = mj.jit(lambda x: x + 1, donate_argnums=0)
    given = jnp.ones(3)
    giving(given)
    return use(giving, given)


def donate_twice_in_one_call():
    """One array for two arguments, one of which is donated."""
    same = jnp.ones(3)
    return mj.jit(lambda x, y: x + y, donate_argnums=0)(same, same)


def on_host(returned):
    """Calls a Python function that returns something else than was said."""
    result = mj.ShapeDtypeStruct((3,), FLOAT32)
    return mj.pure_callback(lambda _: returned, result, X).block_until_ready()


def guarded():
    """A NumPy array goes to the device where no transfer is allowed."""
    with mj.transfer_guard("disallow"):
        return jnp.ones(3) + np.ones(3, np.float32)


def unwritable_profile():
    """A recording for a folder that cannot be made."""
    profiler.start_trace(NOWHERE)
    profiler.stop_trace()


RESULT = mj.ShapeDtypeStruct((4, 3), FLOAT32)
LOWER = {
    "no dict of options": (
        lambda: jitted().lower(X).compile(compiler_options=["a"]),
        TypeError,
        ["compiler_options", "dict", "['a']"],
    ),
    "no dict of options for jit": (
        lambda: mj.jit(double, compiler_options="fast"),
        TypeError,
        ["compiler_options", "dict", "'fast'"],
    ),
    "unknown option": (
        lambda: jitted().lower(X).compile(compiler_options={"xla_nonsense": True}),
        JaxRuntimeError,
        ["xla_nonsense", "No such compile option", "compiler_options="],
    ),
    "option's value": (
        lambda: (
            jitted()
            .lower(X)
            .compile(compiler_options={"xla_cpu_enable_fast_math": "maybe"})
        ),
        JaxRuntimeError,
        ["xla_cpu_enable_fast_math", "maybe", "bool"],
    ),
    "dump folder": (
        lambda: jitted().lower(X).compile(compiler_options={"xla_dump_to": NOWHERE}),
        OSError,
        ["xla_dump_to", NOWHERE, "Name a folder"],
    ),
    "dump folder of jit": (
        lambda: mj.jit(double, compiler_options={"xla_dump_to": NOWHERE}),
        OSError,
        ["xla_dump_to", NOWHERE, "Name a folder"],
    ),
    "unknown dialect": (
        lambda: jitted().lower(X).as_text(dialect="hlox"),
        ValueError,
        ["'hlox'", "'stablehlo' or 'hlo'"],
    ),
    "unknown dialect of compiler_ir": (
        lambda: jitted().lower(X).compiler_ir(dialect="llvm"),
        ValueError,
        ["'llvm'", "'stablehlo' or 'hlo'"],
    ),
    "unknown platform": (
        lambda: jitted().trace(X).lower(lowering_platforms=("npu",)),
        ValueError,
        ["lowering_platforms", "'npu'", "'cuda'"],
    ),
    "no platform": (
        lambda: jitted().trace(X).lower(lowering_platforms=()),
        ValueError,
        ["lowering_platforms=('cuda',)"],
    ),
    "lowered for another platform": (
        lambda: jitted().trace(X).lower(lowering_platforms=("cuda",)).compile(),
        ValueError,
        ["lowered for cuda", "device"],
    ),
    "unknown target": (
        lambda: jitted().lower(X).compile(target="h200x"),
        ValueError,
        ["'h200x'", "'cpu', 'h100'", "tpu-v5e:2x2"],
    ),
    "a target that is no text": (
        lambda: jitted().lower(X).compile(target=7),
        TypeError,
        ["target", "'h100'", "7"],
    ),
    "target and device": (
        lambda: (
            jitted()
            .lower(X)
            .compile(target="cpu", device_assignment=(mj.devices()[0],))
        ),
        ValueError,
        ["target=", "device_assignment=", "not both"],
    ),
    "a text for an array": (
        lambda: jitted().lower("abc"),
        TypeError,
        ["'abc'", "static_argnames='x'"],
    ),
    "too few arguments": (
        lambda: jitted().lower(),
        TypeError,
        ["missing 1 required positional argument: 'x'"],
    ),
}
CALL = {
    "shape": (
        lambda: compiled()(np.ones((3, 3), np.float32)),
        TypeError,
        ["argument 0", "float32[3,3]", "float32[4,3]", "jitted function"],
    ),
    "dtype": (
        lambda: compiled()(np.ones((4, 3), np.int32)),
        TypeError,
        ["argument 0", "int32[4,3]", "float32[4,3]"],
    ),
    "count": (
        lambda: compiled()(X, X),
        TypeError,
        ["compiled for PyTreeDef(((*,), {}))", "called with PyTreeDef(((*, *), {}))"],
    ),
    "tree": (lambda: compiled()({"a": X}), TypeError, ["called with", "{'a': *}"]),
    "a tracer for a compiled function": (
        lambda: mj.grad(lambda x: compiled()(x).sum())(X),
        TypeError,
        ["Cannot apply transformations", "Transform the jitted function"],
    ),
    "used after donation": (
        lambda: donate_then(lambda _, given: given + 1),
        RuntimeError,
        ["float32[3]", "donate_argnums", "Use the function's result"],
    ),
    "donated again": (
        lambda: donate_then(lambda giving, given: giving(given)),
        RuntimeError,
        ["float32[3]", "donate_argnums", "Use the function's result"],
    ),
    "donated and given once more": (
        donate_twice_in_one_call,
        JaxRuntimeError,
        ["donated in the same call", "Pass a copy"],
    ),
    "donated and static": (
        lambda: mj.jit(lambda x, n: x, donate_argnums=1, static_argnums=1),
        ValueError,
        ["static_argnums=(1,)", "donate_argnums=(1,)"],
    ),
    "static but not hashable": (
        lambda: mj.jit(lambda x, n: x, static_argnums=1)(X, [1]),
        ValueError,
        ["'n'", "[1]", "pass a tuple"],
    ),
    "static number out of range": (
        lambda: mj.jit(double, static_argnums=5),
        ValueError,
        ["static_argnums=(5,)", "1 positional"],
    ),
    "static name": (
        lambda: mj.jit(double, static_argnames="y"),
        ValueError,
        ["'y'", "static_argnames", "['x']"],
    ),
    "transfer": (guarded, JaxRuntimeError, ["Disallowed host-to-device transfer"]),
    "transfer guard's level": (
        lambda: mj.transfer_guard("nope").__enter__(),
        ValueError,
        ["transfer_guard", "'nope'", "'disallow'"],
    ),
    "out of memory": (
        mj.jit(lambda: jnp.zeros((1 << 20, 1 << 20))),
        JaxRuntimeError,
        ["RESOURCE_EXHAUSTED", "4398046511104"],
    ),
}
EXPORT = {
    "damaged": (
        lambda: export.deserialize(changed(exported().serialize())),
        ValueError,
        ["damaged", "digest", "export the function again"],
    ),
    "cut off": (
        lambda: export.deserialize(exported().serialize()[:50]),
        ValueError,
        ["cut off after 50 bytes"],
    ),
    "another file": (
        lambda: export.deserialize(b"PK\3\4" + bytes(200)),
        ValueError,
        ["not an exported function of minijax", "PK"],
    ),
    "no bytes": (lambda: export.deserialize("abc"), TypeError, ["bytes", "str"]),
    "exported without jit": (
        lambda: export.export(double)(X),
        ValueError,
        ["must be the result of `jit`", "export(minijax.jit(f))"],
    ),
    "exported platform": (
        lambda: exported(platforms=["npu"]),
        ValueError,
        ["platforms", "'npu'", "'tpu'"],
    ),
    "called on another platform": (
        lambda: exported(platforms=["tpu"]).call(X),
        ValueError,
        ["('tpu',)", "('cpu',)", "Export it with platforms="],
    ),
    "called with another shape": (
        lambda: exported().call(np.ones((5, 3), np.float32)),
        ValueError,
        ["args[0].shape[0]", "(4, 3)", "(5, 3)"],
    ),
    "called with another dtype": (
        lambda: exported().call(np.ones((4, 3), np.int32)),
        ValueError,
        ["args[0]", "float32", "int32"],
    ),
    "called with two": (
        lambda: exported().call(X, X),
        ValueError,
        ["pytree structure", "PyTreeDef(((*, *), {}))"],
    ),
    "no derivative kept": (
        lambda: export.deserialize(exported().serialize()).vjp(),
        ValueError,
        ["No VJP", "serialize(vjp_order=1)"],
    ),
    "negative order": (
        lambda: exported().serialize(vjp_order=-1),
        ValueError,
        ["vjp_order", "-1"],
    ),
    "a callback": (
        lambda: export.export(mj.jit(lambda x: mj.pure_callback(np.sin, RESULT, x)))(X),
        NotImplementedError,
        ["host_callbacks", "pure_callback", "Export it without"],
    ),
    "symbolic syntax": (
        lambda: export.symbolic_shape("b, 4*"),
        ValueError,
        ["'b, 4*'", "'b, 4*n, floordiv(n, 2)'"],
    ),
    "a constraint": (
        lambda: symbolic(double, "b, 3", constraints=["b >= 8"]).call(X),
        ValueError,
        ["'b >= 8'", "b = 4", "args[0].shape[0]"],
    ),
    "no multiple": (
        lambda: symbolic(double, "4*b").call(np.ones(6, np.float32)),
        ValueError,
        ["args[0].shape[0] is 6", "'4*b'"],
    ),
    "sizes that cannot be compared": (
        lambda: symbolic(lambda x: x if x.shape[0] > x.shape[1] else -x, "b, c"),
        InconclusiveDimensionOperation,
        ["'b' > 'c'", "constraints=["],
    ),
    "sizes of two scopes": (
        lambda: export.symbolic_shape("a,")[0] + export.symbolic_shape("b,")[0],
        ValueError,
        ["'a'", "'b'", "scope=scope"],
    ),
    "a loop over a symbolic size": (
        lambda: symbolic(lambda x: [x for _ in range(x.shape[0])], "b,"),
        TypeError,
        ["'b'", "Python loop", "array operations"],
    ),
    "linspace of a symbolic size": (
        lambda: symbolic(lambda x: jnp.linspace(0.0, 1.0, x.shape[0]), "b,"),
        InconclusiveDimensionOperation,
        ["'b' > '1'", "constraints=['b >= 2']"],
    ),
}
OUTSIDE = {
    "no such foreign function": (
        lambda: ffi.ffi_call("no_such_function", RESULT)(X),
        ValueError,
        ["'no_such_function'", "register_ffi_target"],
    ),
    "no capsule": (
        lambda: ffi.register_ffi_target("bad", 3, platform="cpu"),
        TypeError,
        ["PyCapsule", "3", "pycapsule(library.function)"],
    ),
    "no function of a library": (
        lambda: ffi.pycapsule(None),
        TypeError,
        ["None", "ctypes.CDLL"],
    ),
    "result type of a foreign function": (
        lambda: ffi.ffi_call("any", 5)(X),
        ValueError,
        ["5", "ShapeDtypeStruct"],
    ),
    "vmap_method": (
        lambda: ffi.ffi_call("any", RESULT, vmap_method="each")(X),
        ValueError,
        ["vmap_method", "each", "'sequential'"],
    ),
    "vmap of a foreign function": (
        lambda: mj.vmap(ffi.ffi_call("any", RESULT))(X),
        NotImplementedError,
        ["vmap_method=None", "'sequential'"],
    ),
    "a callback's shape": (
        lambda: on_host(np.ones(7, np.float32)),
        JaxRuntimeError,
        ["float32[3]", "float32[7]", "Change one of the two"],
    ),
    "a callback's tree": (
        lambda: on_host((np.ones(3, np.float32),) * 2),
        JaxRuntimeError,
        ["pure_callback", "Mismatched number of outp"],
    ),
    "a profile's folder": (
        unwritable_profile,
        JaxRuntimeError,
        [NOWHERE, "log_dir", "name a folder"],
    ),
    "no recording": (profiler.stop_trace, RuntimeError, ["start_trace(log_dir)"]),
    "a view's target": (
        lambda: see.stages(double, X, target="gpuX"),
        ValueError,
        ["'gpuX'", "'h100'"],
    ),
    "a view of no function": (
        lambda: see.cache(3),
        TypeError,
        ["see.cache", "jit", "int"],
    ),
    "cache folder": (
        lambda: mj.config.update("jax_compilation_cache_dir", 5),
        ValueError,
        ["compilation_cache_dir", "5"],
    ),
    "cache size": (
        lambda: mj.config.update("jax_compilation_cache_max_size", "x"),
        ValueError,
        ["compilation_cache_max_size", "'x'"],
    ),
}
CASES = {**LOWER, **CALL, **EXPORT, **OUTSIDE}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_message(name):
    wrong, kind, words = CASES[name]
    with pytest.raises(kind) as caught:
        wrong()
    assert type(caught.value) is kind or kind is OSError
    told = "".join(traceback.format_exception_only(caught.value))
    for word in words:
        assert word in told


def test_count():
    assert len(CASES) >= 40


@pytest.mark.parametrize(
    "target, extra", [("h100", "minijax[h100]"), ("tpu-v5e:2x2", "minijax[tpu]")]
)
def test_missing_extra(target, extra, tmp_path):
    """Where the wheel is not installed, the message holds the command that adds it."""
    program = (
        "import sys\n"
        "sys.modules['libtpu'] = sys.modules['jax_plugins'] = None\n"
        "import minijax\n"
        f"minijax.jit(lambda x: x).lower(1.0).compile(target={target!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ},
    )
    assert "ModuleNotFoundError" in done.stderr
    assert f"pip install '{extra}'" in done.stderr


def test_dump_folder_that_can_be_made(tmp_path):
    folder = tmp_path / "new" / "dump"
    jitted().lower(X).compile(compiler_options={"xla_dump_to": str(folder)})
    assert any(folder.iterdir())
