"""`ffi_call`: a handler in C++, built here, called from programs; JAX is the oracle."""

import ctypes
import inspect
import re
import shutil
import subprocess

import jax
import jax.ffi
import numpy as np
import pytest

import minijax
import minijax.extend
import minijax.numpy as jnp
from minijax import ffi

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <string_view>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

static ffi::Error RmsNormImpl(double eps, ffi::Buffer<ffi::F32> x,
                              ffi::ResultBuffer<ffi::F32> y) {
  auto dimensions = x.dimensions();
  if (dimensions.size() == 0)
    return ffi::Error::InvalidArgument("RmsNorm: x needs an axis to normalise");
  if (y->element_count() != x.element_count())
    return ffi::Error::InvalidArgument("RmsNorm: the result is as large as x");
  const int64_t n = dimensions.back();
  for (int64_t row = 0; row < x.element_count(); row += n) {
    float sum = 0;
    for (int64_t i = row; i < row + n; ++i)
      sum += x.typed_data()[i] * x.typed_data()[i];
    const float scale = 1.0f / std::sqrt(sum / n + static_cast<float>(eps));
    for (int64_t i = row; i < row + n; ++i)
      y->typed_data()[i] = x.typed_data()[i] * scale;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    RmsNorm, RmsNormImpl,
    ffi::Ffi::Bind().Attr<double>("eps").Arg<ffi::Buffer<ffi::F32>>()
        .Ret<ffi::Buffer<ffi::F32>>());

// Writes what it was told into its results.
static ffi::Error TellImpl(int64_t number, float ratio, std::string_view word, bool yes,
                           ffi::Span<const int32_t> list, ffi::Dictionary more,
                           ffi::ResultBuffer<ffi::F32> told) {
  float* out = told->typed_data();
  out[0] = number;
  out[1] = ratio;
  out[2] = word.size();
  out[3] = yes;
  out[4] = 0;
  for (int32_t value : list) out[4] += value;
  out[5] = more.get<int64_t>("inner").value();
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Tell, TellImpl,
    ffi::Ffi::Bind().Attr<int64_t>("number").Attr<float>("ratio")
        .Attr<std::string_view>("word").Attr<bool>("yes")
        .Attr<ffi::Span<const int32_t>>("list").Attr<ffi::Dictionary>("more")
        .Ret<ffi::Buffer<ffi::F32>>());

static int64_t calls = 0;
static ffi::Error CountImpl(ffi::RemainingArgs, ffi::RemainingRets) {
  ++calls;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Count, CountImpl,
                              ffi::Ffi::Bind().RemainingArgs().RemainingRets());
extern "C" int64_t counted() { return calls; }

// Adds 1 in place: the result lies over the argument.
static ffi::Error BumpImpl(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (x.typed_data() != y->typed_data())
    return ffi::Error::Internal("Bump: not in place");
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] += 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Bump, BumpImpl,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// The elements in the order in which they lie in memory.
static ffi::Error MemoryImpl(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  for (size_t i = 0; i < x.element_count(); ++i)
    y->typed_data()[i] = x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Memory, MemoryImpl,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
"""

needs_compiler = pytest.mark.compiler
X = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The handlers above, built and registered; with JAX too, which shares jaxlib."""
    compiler = shutil.which("g++")
    folder = tmp_path_factory.mktemp("handlers")
    source, built = folder / "handlers.cc", folder / "handlers.so"
    source.write_text(SOURCE)
    command = [compiler, "-O1", "-shared", "-fPIC", "-std=c++17", "-w"]
    command += ["-I", ffi.include_dir(), str(source), "-o", str(built)]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(built))
    loaded.counted.restype = ctypes.c_int64
    for name in ("RmsNorm", "Tell", "Count", "Bump", "Memory"):
        handler = ffi.pycapsule(getattr(loaded, name))
        ffi.register_ffi_target(f"test_{name}", handler, platform="cpu")
    return loaded


def norm_of(lib, vmap_method=None):
    """The normalisation as either library calls it."""

    def rms_norm(x, eps=1e-6):
        kind = lib.ShapeDtypeStruct(x.shape, x.dtype)
        call = lib.ffi.ffi_call("test_RmsNorm", kind, vmap_method=vmap_method)
        return call(x, eps=eps)

    return rms_norm


def reference(x, eps=1e-6):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def test_public_names_have_jaxs_parameters() -> None:
    for name in (
        "ffi_call",
        "ffi_lowering",
        "build_ffi_lowering_function",
        "include_dir",
        "pycapsule",
        "register_ffi_target",
        "register_ffi_target_as_batch_partitionable",
        "register_ffi_type",
        "register_ffi_type_id",
    ):
        ours, theirs = getattr(ffi, name), getattr(jax.ffi, name)
        ours, theirs = inspect.signature(ours), inspect.signature(theirs)
        assert list(ours.parameters) == list(theirs.parameters), name
        for mine, other in zip(ours.parameters.values(), theirs.parameters.values()):
            assert (mine.kind, mine.default) == (other.kind, other.default), name
    assert minijax.extend.ffi.ffi_call is ffi.ffi_call


@needs_compiler
def test_eager_compiled_and_batched(library) -> None:
    rms_norm = norm_of(minijax)
    for result in (rms_norm(X), minijax.jit(rms_norm)(X)):
        np.testing.assert_allclose(result, reference(X), rtol=1e-5)
    loose = minijax.jit(lambda x: rms_norm(x, eps=1.0))(X)
    np.testing.assert_allclose(loose, reference(X, 1.0), rtol=1e-5)
    batch = np.stack([X, 2 * X + 1, -X])
    for method in ("sequential", "sequential_unrolled", "broadcast_all", "expand_dims"):
        for axis in (0, 1):
            batched = minijax.vmap(
                norm_of(minijax, method), in_axes=axis, out_axes=axis
            )
            result = minijax.jit(batched)(np.moveaxis(batch, 0, axis))
            expected = np.moveaxis(reference(batch), 0, axis)
            np.testing.assert_allclose(result, expected, rtol=1e-5)
    with pytest.raises(NotImplementedError, match="vmap_method=None"):
        minijax.vmap(rms_norm)(batch)


@needs_compiler
@pytest.mark.parametrize("method", ["sequential", "broadcast_all", "legacy_vectorized"])
def test_programs_are_printed_as_in_jax(library, method) -> None:
    ours, theirs = norm_of(minijax, method), norm_of(jax, method)
    batch = np.stack([X, X])
    for wrap in (lambda lib, f: f, lambda lib, f: lib.vmap(f)):
        x = X if wrap(minijax, ours) is ours else batch
        text = str(minijax.make_jaxpr(wrap(minijax, ours))(x))
        assert text == str(jax.make_jaxpr(wrap(jax, theirs))(x))


@needs_compiler
def test_attributes_arrive(library) -> None:
    kind = minijax.ShapeDtypeStruct((6,), np.float32)

    @minijax.jit
    def tell():
        return ffi.ffi_call("test_Tell", kind)(
            number=7,
            ratio=np.float32(1.5),
            word="seven",
            yes=True,
            list=np.array([1, 2, 39], np.int32),
            more={"inner": 11},
        )

    assert tell().tolist() == [7, 1.5, 5, 1, 42, 11]


def attributes_in(text: str) -> str:
    """The attributes of the call in StableHLO, which the two libraries print apart."""
    text = text.replace("api_version = 4 : i32, ", "")
    line = next(line for line in text.split("\n") if "custom_call" in line)
    return re.search(r"backend_config = (\{.*?\}), operand_layouts", line)[1]


@needs_compiler
@pytest.mark.parametrize(
    "value",
    [3, 2.5, "word", True, np.int8(3), np.float16(2), np.bool_(False), (1, "a", 2.0)],
    ids=repr,
)
def test_attributes_are_lowered_as_in_jax(library, value) -> None:
    texts = []
    for lib in (minijax, jax):

        def call(x, lib=lib):
            kind = lib.ShapeDtypeStruct(x.shape, x.dtype)
            return lib.ffi.ffi_call("test_Count", kind)(x, value=value)

        texts.append(attributes_in(lib.jit(call).lower(X).as_text()))
    assert texts[0] == texts[1]


@needs_compiler
def test_side_effects_happen_though_nobody_reads_the_result(library) -> None:
    kind = minijax.ShapeDtypeStruct((), np.float32)

    def call(x, acts):
        ffi.ffi_call("test_Count", kind, has_side_effect=acts)(x)
        return x

    before = library.counted()
    minijax.block_until_ready(minijax.jit(lambda x: call(x, False))(X))
    assert library.counted() == before
    minijax.block_until_ready(minijax.jit(lambda x: call(x, True))(X))
    assert library.counted() == before + 1


@needs_compiler
def test_results_over_arguments(library) -> None:
    kind = minijax.ShapeDtypeStruct(X.shape, X.dtype)
    bump = ffi.ffi_call("test_Bump", kind, input_output_aliases={0: 0})
    np.testing.assert_array_equal(minijax.jit(lambda x: bump(x))(X), X + 1)
    with pytest.raises(minijax.errors.JaxRuntimeError, match="not in place"):
        minijax.block_until_ready(ffi.ffi_call("test_Bump", kind)(X))


@needs_compiler
def test_layouts(library) -> None:
    kind = minijax.ShapeDtypeStruct(X.shape, X.dtype)
    columns = ffi.ffi_call("test_Memory", kind, input_layouts=[(1, 0)])
    # The handler reads column after column, and writes row after row.
    expected = X.T.reshape(X.shape)
    np.testing.assert_array_equal(minijax.jit(lambda x: columns(x))(X), expected)
    there_and_back = ffi.ffi_call(
        "test_Memory", kind, input_layouts=[(1, 0)], output_layouts=(1, 0)
    )
    np.testing.assert_array_equal(minijax.jit(lambda x: there_and_back(x))(X), X)


@needs_compiler
def test_derivative_by_a_custom_rule(library) -> None:
    call = norm_of(minijax, "broadcast_all")

    def plain(x, eps=1e-6):
        return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + eps)

    @minijax.custom_vjp
    def rms_norm(x):
        return call(x)

    def forward(x):
        scale = 1.0 / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
        return call(x), (x, scale)

    def backward(kept, ct):
        x, scale = kept
        inner = (ct * x).mean(-1, keepdims=True)
        return (scale * ct - scale**3 * inner * x,)

    rms_norm.defvjp(forward, backward)
    ours = minijax.grad(lambda x: (rms_norm(x) ** 3).sum())(X)
    expected = minijax.grad(lambda x: (plain(x) ** 3).sum())(X)
    np.testing.assert_allclose(ours, expected, rtol=2e-4, atol=1e-5)
    with pytest.raises(ValueError, match="test_RmsNorm` cannot be differentiated"):
        minijax.grad(lambda x: call(x).sum())(X)


@needs_compiler
def test_a_primitive_of_ones_own_calls_it(library) -> None:
    from minijax.extend.core import Primitive
    from minijax.interpreters import mlir

    norm_p = Primitive("norm")
    norm_p.def_abstract_eval(lambda x, eps: x)
    mlir.register_lowering(norm_p, ffi.ffi_lowering("test_RmsNorm"))
    result = minijax.jit(lambda x: norm_p.bind(x, eps=1e-6))(X)
    np.testing.assert_allclose(result, reference(X), rtol=1e-5)


# ---- bad input ----------------------------------------------------------------------

KIND = minijax.ShapeDtypeStruct(X.shape, X.dtype)
BAD_CALLS = [
    (lambda: ffi.ffi_call("x", KIND, vmap_method="all"), ValueError, "one of the"),
    (lambda: ffi.ffi_call("x", 3), ValueError, "Got 3 at position 0"),
    (
        lambda: ffi.ffi_call("x", KIND, legacy_backend_config="a"),
        ValueError,
        "custom_call_api_version < 4",
    ),
    (lambda: ffi.ffi_call("x", KIND)(X, a=[1]), TypeError, "keyword argument to ffi"),
    (
        lambda: ffi.ffi_call("x", KIND, input_layouts=[])(X),
        ValueError,
        "number of input arguments",
    ),
    (
        lambda: ffi.ffi_call("x", [KIND], output_layouts=[])(X),
        ValueError,
        "number of outputs",
    ),
    (
        lambda: ffi.ffi_call("x", KIND, input_output_aliases={1: 0})(X),
        ValueError,
        "input index 1 outside",
    ),
    (
        lambda: ffi.ffi_call("x", KIND, input_output_aliases={0: 3})(X),
        ValueError,
        "output index 3 outside",
    ),
    (
        lambda: ffi.ffi_call("x", KIND, input_output_aliases={0: 0})(X[0]),
        ValueError,
        "different abstract value",
    ),
    (
        lambda: ffi.ffi_call(
            "x", KIND, input_layouts=[(1, 0)], input_output_aliases={0: 0}
        )(X),
        ValueError,
        "different layout",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD_CALLS)
def test_bad_calls(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(("call", "error", "text"), BAD_CALLS)
def test_bad_calls_have_jaxs_exception(call, error, text) -> None:
    code = call.__code__
    names = {"ffi": jax.ffi, "minijax": jax, "np": np, "X": X}
    names["KIND"] = jax.ShapeDtypeStruct(X.shape, X.dtype)
    theirs = type(call)(code, names)
    with pytest.raises(error):
        theirs()


def test_axes_named_twice() -> None:
    with pytest.raises(ValueError, match="must name each of the 2 axes"):
        ffi.ffi_call("x", KIND, input_layouts=[(0, 0)])(X)


def test_unknown_target() -> None:
    with pytest.raises(ValueError, match="no function is registered as 'nobody'"):
        ffi.ffi_call("nobody", KIND)(X)


def test_attribute_of_another_kind() -> None:
    ffi_call = ffi.ffi_call("nobody", KIND)
    with pytest.raises((TypeError, ValueError)):
        minijax.jit(lambda x: ffi_call(x, a=None))(X)


def test_not_a_function() -> None:
    with pytest.raises(ValueError, match="is not supported by this jaxlib"):
        ffi.register_ffi_type_id("state", None)
    with pytest.raises(TypeError, match="pycapsule takes a function"):
        ffi.pycapsule("RmsNorm")
    with pytest.raises(TypeError, match="must be a PyCapsule"):
        ffi.register_ffi_target("test_bad", lambda x: x)
    with pytest.raises(TypeError, match="got typo"):
        ffi.ffi_lowering("x", typo=3)


@needs_compiler
def test_a_handlers_error_is_raised(library) -> None:
    rms_norm = norm_of(minijax)
    for bad in (np.float32(3), X.astype(np.int32)):
        with pytest.raises(minijax.errors.JaxRuntimeError, match="INVALID_ARGUMENT"):
            minijax.block_until_ready(minijax.jit(rms_norm)(bad))
    small = ffi.ffi_call("test_RmsNorm", minijax.ShapeDtypeStruct((2,), np.float32))
    with pytest.raises(minijax.errors.JaxRuntimeError, match="as large as x"):
        minijax.block_until_ready(small(X, eps=1e-6))


@needs_compiler
def test_another_process_reads_the_program_from_disk(library, tmp_path) -> None:
    """The file names the function, which the process that reads it has registered."""
    from minijax.backend import disk_cache
    from minijax.support.config import override

    disk_cache.forget_folders()
    with override("compilation_cache_dir", str(tmp_path)):
        for _ in range(2):
            result = minijax.jit(norm_of(minijax))(X)
            np.testing.assert_allclose(result, reference(X), rtol=1e-5)
    assert len(list(tmp_path.iterdir())) == 1
