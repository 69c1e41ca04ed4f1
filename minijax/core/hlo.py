"""StableHLO: contexts, types, constants, locations, text and bytes.

MLIR is loaded when first used, so that importing minijax stays quick:

    from . import hlo

    with hlo.make_context(), hlo.ir.Location.unknown():
        module = hlo.ir.Module.create()
        ...
        hlo.stablehlo.sine(x)

`hlo.ir`, `hlo.stablehlo`, `hlo.chlo` and `hlo.func` are jaxlib's modules; the first
access imports them. So `hlo.stablehlo.sine` stands inside functions, never at the top
level of a file. `hlo_parts` has the attributes that only a few rooms write.

Two threads must not use one MLIR context, and the types, attributes and locations made
in a context live as long as the context. So each program is built in its own context.
The caches of types are attributes of the context, so that contexts cannot mix them.

In JAX: `interpreters/mlir.py`, `make_ir_context`, `ir_constant`, `dtype_to_ir_type`.
"""

from __future__ import annotations

import functools
import io
import re
import types
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from .events import Hook
from .runtime import Traceback, uninterrupted
from .source_info import is_user_filename

# The innermost frames of the user's call stack that a location keeps.
FRAME_LIMIT = 10


class _Mlir:
    """jaxlib's MLIR modules, and the context class."""

    def __init__(self) -> None:
        from jaxlib.mlir import ir
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext
        from jaxlib.mlir.dialects import chlo, func, sdy, stablehlo

        self.ir = ir
        self.extension = _jax_mlir_ext
        self.stablehlo = stablehlo
        self.chlo = chlo
        self.func = func
        self.sdy = sdy
        self.builders, self.ranked_type = builders.run(self)
        self.context_class = _make_context_class(self)


@Hook
def builders(mlir: _Mlir) -> tuple[Any, Callable]:
    """(the builders of operations, the constructor of tensor types).

    Called once, with jaxlib's modules. By default both are jaxlib's, which take
    integers as sizes.
    """
    return mlir.stablehlo, mlir.ir.RankedTensorType.get


@functools.cache
@uninterrupted
def _mlir() -> Any:
    """Imports MLIR at the first call (30-70 ms); later calls take 50 ns."""
    return _Mlir()


def __getattr__(name: str) -> Any:
    """Imports MLIR when one of its modules is first used, and keeps the module here."""
    if name in ("ir", "stablehlo", "chlo", "func", "sdy"):
        module = getattr(_mlir(), "builders" if name == "stablehlo" else name)
        globals()[name] = module
        return module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---------------------------------------------------------------------------
# Contexts


def _make_context_class(mlir: _Mlir) -> type:
    """The context class, defined late because its base is imported late."""
    ir = mlir.ir
    registry = ir.DialectRegistry()
    mlir.extension.register_dialects(registry)
    # jaxlib's Python class starts a pool of threads for every context. The C++ class,
    # from which it derives, does not.
    from_python = ir.Context.__module__.endswith("_mlir_libs")
    base: Any = ir.Context.__base__ if from_python else ir.Context

    class Context(base):
        """An MLIR context with the dialects loaded and its own tables of types."""

        def __init__(self) -> None:
            super().__init__()
            self.append_dialect_registry(registry)
            self.dialects["func"]
            mlir.stablehlo.register_dialect(self)
            mlir.chlo.register_dialect(self)
            mlir.sdy.register_dialect(self)
            self.enable_multithreading(False)
            self.element_types: dict[Any, Any] = {}
            self.tensor_types: dict[Any, Any] = {}
            self.attributes: dict[Any, Any] = {}
            self.traceback_locations: Any = None

        def __exit__(self, *exception: Any) -> None:
            super().__exit__(*exception)
            # Types and attributes refer to their context, so with filled tables it
            # would keep itself alive: Python's garbage collector cannot look into C++.
            self.element_types.clear()
            self.tensor_types.clear()
            self.attributes.clear()
            self.traceback_locations = None

    return Context


def make_context() -> Any:
    """A fresh context (1 ms), for one program.

    Enter it with `with`, and give a location: `with ctx, hlo.ir.Location.unknown():`.
    Dialects beyond StableHLO, CHLO, func and sdy: `ctx.dialects["arith"]` loads one.
    """
    return _mlir().context_class()


# ---------------------------------------------------------------------------
# Types


def _new_element_type(dtype: np.dtype) -> Any:
    """The MLIR type of one element; None if StableHLO has no counterpart.

    The names agree: `float8_e4m3fn` is MLIR's `Float8E4M3FNType`. StableHLO's signed
    integers are MLIR's signless ones.
    """
    ir = _mlir().ir
    if dtype.name == "bool":
        return ir.IntegerType.get_signless(1)
    if dtype.name == "bfloat16":
        return ir.BF16Type.get()
    parts = re.fullmatch(r"(u?int|float|complex)(\d+)_?(\w*)", dtype.name)
    if parts is None:
        return None
    kind, bits, variant = parts[1], int(parts[2]), parts[3]
    if kind == "float" and variant:
        return getattr(ir, f"Float{bits}{variant.replace('_', '').upper()}Type").get()
    if kind in ("int", "uint") and 1 < bits <= 64:
        signed = kind == "int"
        integer = ir.IntegerType
        return integer.get_signless(bits) if signed else integer.get_unsigned(bits)
    floats = {16: ir.F16Type, 32: ir.F32Type, 64: ir.F64Type}
    if kind == "complex" and bits in (64, 128):
        return ir.ComplexType.get(floats[bits // 2].get())
    return floats[bits].get() if kind == "float" and bits in floats else None


def element_type(dtype: Any) -> Any:
    """The MLIR type of one element, in the current context.

    Raises:
      TypeError: for a dtype that has no counterpart in StableHLO.
    """
    dtype = np.dtype(dtype)
    table = _mlir().ir.Context.current.element_types
    found = table.get(dtype)
    if found is None:
        found = _new_element_type(dtype)
        if found is None:
            raise TypeError(
                f"An array of dtype {dtype} cannot be part of a compiled program. "
                "Convert it first to one of bool, the integers, the floating point "
                "or the complex dtypes."
            )
        table[dtype] = found
    return found


def tensor_type(shape: Sequence[int], dtype: Any) -> Any:
    """The MLIR tensor type of this shape and dtype, in the current context."""
    key = (tuple(shape), dtype)
    table = _mlir().ir.Context.current.tensor_types
    found = table.get(key)
    if found is None:
        found = _mlir().ranked_type(key[0], element_type(dtype))
        table[key] = found
    return found


# ---------------------------------------------------------------------------
# Attributes and constants


def attribute(key: Hashable, make: Callable[[], Any]) -> Any:
    """The attribute that `make` returns, cached in the context under `key`."""
    table = _mlir().ir.Context.current.attributes
    found = table.get(key)
    if found is None:
        found = table[key] = make()
    return found


def int_array(values: Sequence[int]) -> Any:
    """`array<i64: ...>`: dimensions, permutations, strides.

    If a size is symbolic (`SymbolicSize`), it is a tuple, which `builders` accept.
    """
    if any(hasattr(value, "evaluate") for value in values):
        return tuple(values)
    whole = tuple(map(int, values))
    return attribute(whole, lambda: _mlir().ir.DenseI64ArrayAttr.get(whole))


def string(value: str) -> Any:
    """A string attribute."""
    return _mlir().ir.StringAttr.get(value)


def dense(array: Any) -> Any:
    """The elements of a NumPy array as an attribute; one element if all are equal.

    The array may have any strides and byte order. Its elements are compared bit for
    bit: -0.0 is not 0.0.
    """
    array = np.asarray(array)
    element = element_type(array.dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # ascontiguousarray gives a rank-0 array rank 1, so the shape is passed separately.
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.size > 1 and _all_equal(flat):
        flat = flat[:1]
    return _mlir().ir.DenseElementsAttr.get(flat, type=element, shape=array.shape)


def _all_equal(flat: np.ndarray) -> bool:
    rows = flat.view(np.uint8).reshape(flat.size, flat.dtype.itemsize)
    return False if (rows[0] != rows[-1]).any() else bool((rows == rows[0]).all())


def constant(value: Any) -> Any:
    """A `stablehlo.constant` with this value, at the current insertion point.

    An array with repeated dimensions (stride 0, from `np.broadcast_to`) becomes a
    small constant and a broadcast.
    """
    array = np.asarray(value)
    repeated = [
        axis
        for axis in range(array.ndim)
        if array.strides[axis] == 0 and array.shape[axis] > 1
    ]
    if not repeated or array.size == 0:
        return _mlir().stablehlo.ConstantOp(dense(array)).result
    small = array[tuple(0 if a in repeated else slice(None) for a in range(array.ndim))]
    if small.ndim == 0:
        element = _mlir().ir.DenseElementsAttr.get(
            np.array(small, dtype=small.dtype.newbyteorder("=")),
            type=element_type(small.dtype),
            shape=array.shape,
        )
        return _mlir().stablehlo.ConstantOp(element).result
    kept = [axis for axis in range(array.ndim) if axis not in repeated]
    return _mlir().stablehlo.broadcast_in_dim(
        tensor_type(array.shape, array.dtype), constant(small), int_array(kept)
    )


# ---------------------------------------------------------------------------
# Locations


def _users_file(code: types.CodeType) -> str | None:
    """The file of a user's function; None, which leaves the frame out, of another's."""
    return code.co_filename if is_user_filename(code.co_filename) else None


def location(source: Traceback | None = None, name: str | None = None) -> Any:
    """An MLIR location, in the current context: the user's ten innermost frames.

    Args:
      source: a traceback of jaxlib, or None.
      name: a name around it, such as "jit(f)/sin"; XLA keeps it as the
        instruction's `op_name`.
    """
    ir = _mlir().ir
    if source is None:
        where = ir.Location.unknown()
    else:
        current = ir.Context.current
        if current.traceback_locations is None:
            current.traceback_locations = _mlir().extension.TracebackToLocationCache(
                code_to_filename=_users_file, frame_limit=FRAME_LIMIT
            )
        where = current.traceback_locations.get(source)
    return where if name is None else ir.Location.name(name, where)


# ---------------------------------------------------------------------------
# Modules


def module_to_text(module: Any, locations: bool = False) -> str:
    """The module as StableHLO text, with `loc(...)` after operations if `locations`."""
    return module.operation.get_asm(enable_debug_info=locations)


def module_to_bytes(module: Any) -> bytes:
    """The module as MLIR bytecode, with locations; it does not need the context."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()
