"""StableHLO: contexts, types, constants, locations, text and bytes.

The dialects are loaded when first used, so that importing minijax stays quick:

    from minijax.backend import hlo

    with hlo.context():
        module = hlo.ir.Module.create()
        ...
        hlo.stablehlo.sine(x)

`hlo.ir`, `hlo.stablehlo`, `hlo.chlo`, `hlo.func`, `hlo.sdy` and the others of
`DIALECTS` are jaxlib's modules; the first access imports them. So `hlo.stablehlo.sine`
stands inside functions, never at the top level of a file.

A context of MLIR is not safe to use from two threads, and what is made unique in it
(types, attributes, locations) lives as long as it does. So contexts are taken from a
pool, one for each program being built, and are thrown away after some use. The tables
of types hang on the context object itself, so that they cannot mix.

In JAX: `interpreters/mlir.py`, `make_ir_context`, `ir_constant`, `dtype_to_ir_type`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from minijax.backend.door import Traceback

DIALECTS = ("stablehlo", "chlo", "func", "sdy", "arith", "math", "scf", "memref", "cf")

# A pooled context is replaced after this many programs, or after this many bytes of
# constants: both stay in its memory until it goes.
_PROGRAMS_PER_CONTEXT = 256
_CONSTANT_BYTES_PER_CONTEXT = 16 << 20


class _Mlir:
    """jaxlib's MLIR modules, the context class and the table of element types."""

    def __init__(self) -> None:
        dialects = "jaxlib.mlir.dialects"
        self.ir = importlib.import_module("jaxlib.mlir.ir")
        self.passmanager = importlib.import_module("jaxlib.mlir.passmanager")
        self.extension = importlib.import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext")
        self.stablehlo = importlib.import_module(f"{dialects}.stablehlo")
        self.chlo = importlib.import_module(f"{dialects}.chlo")
        self.func = importlib.import_module(f"{dialects}.func")
        self.sdy = importlib.import_module(f"{dialects}.sdy")
        self.element_makers = _make_element_makers(self.ir)
        self.context_class = _make_context_class(self)


@functools.cache
def _mlir() -> Any:
    """Imports MLIR at the first call (30-70 ms), then answers in 50 ns."""
    return _Mlir()


def __getattr__(name: str) -> Any:
    """Imports `ir` or a dialect when it is first asked for, and keeps it here."""
    if name in DIALECTS or name == "ir":
        loaded = _mlir()
        module = getattr(loaded, name, None)
        if module is None:
            module = importlib.import_module(f"jaxlib.mlir.dialects.{name}")
        globals()[name] = module
        return module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---------------------------------------------------------------------------
# Contexts


def _make_context_class(mlir: _Mlir) -> type:
    """The context class; made late, because its base is imported late."""
    ir = mlir.ir
    registry = ir.DialectRegistry()
    mlir.extension.register_dialects(registry)
    # jaxlib puts a Python class over the C++ one, which starts a pool of threads for
    # every context. The C++ class does not.
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
            self.is_pooled = False
            self.programs = 0
            self.constant_bytes = 0

        def __exit__(self, *exception: Any) -> None:
            super().__exit__(*exception)
            if not self.is_pooled:
                self.forget()

        def forget(self) -> None:
            """Empties the tables.

            Types and attributes refer to their context, so a context with filled tables
            would keep itself alive: Python's garbage collector cannot look into C++.
            """
            self.element_types.clear()
            self.tensor_types.clear()
            self.attributes.clear()
            self.traceback_locations = None

    return Context


def make_context() -> Any:
    """A fresh context (1 ms), for a module that outlives its building.

    Enter it with `with`, and give a location: `with ctx, hlo.ir.Location.unknown():`.
    Dialects beyond StableHLO, CHLO, func and sdy: `ctx.dialects["arith"]` loads one.
    """
    return _mlir().context_class()


_pool: list[Any] = []


@contextlib.contextmanager
def context() -> Iterator[Any]:
    """Enters a context of the pool, with an unknown location, for one program.

    May be nested, in one thread or in several: each use gets a context of its own.
    Turn the module into bytes or text before leaving; the context may build other
    programs afterwards. A module that must stay usable wants `make_context`.
    """
    try:
        current = _pool.pop()
    except IndexError:
        current = make_context()
        current.is_pooled = True
    try:
        with current, _mlir().ir.Location.unknown():
            yield current
    except BaseException:
        # What the program left behind is not known: the context is not used again.
        current.forget()
        raise
    current.programs += 1
    if (
        current.programs < _PROGRAMS_PER_CONTEXT
        and current.constant_bytes < _CONSTANT_BYTES_PER_CONTEXT
    ):
        _pool.append(current)
    else:
        current.forget()


# ---------------------------------------------------------------------------
# Types


def _make_element_makers(ir: Any) -> dict[np.dtype, Callable[[], Any]]:
    """The table from NumPy's dtypes to functions that make MLIR element types.

    StableHLO's signed integers are MLIR's signless ones.
    """

    def signed(bits: int) -> Callable[[], Any]:
        return lambda: ir.IntegerType.get_signless(bits)

    def unsigned(bits: int) -> Callable[[], Any]:
        return lambda: ir.IntegerType.get_unsigned(bits)

    makers: dict[np.dtype, Callable[[], Any]] = {
        np.dtype(np.bool_): signed(1),
        np.dtype(np.float16): ir.F16Type.get,
        np.dtype(np.float32): ir.F32Type.get,
        np.dtype(np.float64): ir.F64Type.get,
        np.dtype(np.complex64): lambda: ir.ComplexType.get(ir.F32Type.get()),
        np.dtype(np.complex128): lambda: ir.ComplexType.get(ir.F64Type.get()),
        np.dtype(ml_dtypes.bfloat16): ir.BF16Type.get,
    }
    for bits in (8, 16, 32, 64):
        makers[np.dtype(f"int{bits}")] = signed(bits)
        makers[np.dtype(f"uint{bits}")] = unsigned(bits)
    for bits in (2, 4):
        if hasattr(ml_dtypes, f"int{bits}"):
            makers[np.dtype(getattr(ml_dtypes, f"int{bits}"))] = signed(bits)
            makers[np.dtype(getattr(ml_dtypes, f"uint{bits}"))] = unsigned(bits)
    small_floats = (
        "float4_e2m1fn",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    )
    for name in small_floats:
        # float8_e4m3fn is MLIR's Float8E4M3FNType.
        maker_name = name.replace("float", "").replace("_", "").upper()
        if hasattr(ml_dtypes, name):
            maker = getattr(ir, f"Float{maker_name}Type").get
            makers[np.dtype(getattr(ml_dtypes, name))] = maker
    return makers


def supported_dtypes() -> tuple[np.dtype, ...]:
    """All dtypes that `element_type` knows, in no particular order."""
    return tuple(_mlir().element_makers)


def element_type(dtype: Any) -> Any:
    """The MLIR type of one element, in the current context.

    Raises:
      TypeError: for a dtype that has no counterpart in StableHLO.
    """
    dtype = np.dtype(dtype)
    table = _mlir().ir.Context.current.element_types
    found = table.get(dtype)
    if found is None:
        maker = _mlir().element_makers.get(dtype.newbyteorder("="))
        if maker is None:
            raise TypeError(
                f"An array of dtype {dtype} cannot be part of a compiled program. "
                "Convert it first to one of bool, the integers, the floating point "
                "or the complex dtypes."
            )
        found = table[dtype] = maker()
    return found


def tensor_type(shape: Sequence[int], dtype: Any) -> Any:
    """The MLIR tensor type of this shape and dtype, in the current context."""
    key = (tuple(shape), dtype)
    table = _mlir().ir.Context.current.tensor_types
    found = table.get(key)
    if found is None:
        found = _mlir().ir.RankedTensorType.get(key[0], element_type(dtype))
        table[key] = found
    return found


# ---------------------------------------------------------------------------
# Attributes and constants


def attribute(key: Hashable, make: Callable[[], Any]) -> Any:
    """The attribute that `make` gives, made once for each `key` in a context."""
    table = _mlir().ir.Context.current.attributes
    found = table.get(key)
    if found is None:
        found = table[key] = make()
    return found


def int_array(values: Sequence[int]) -> Any:
    """`array<i64: ...>`: dimensions, permutations, strides."""
    whole = tuple(map(int, values))
    return attribute(whole, lambda: _mlir().ir.DenseI64ArrayAttr.get(whole))


def bool_array(values: Sequence[bool]) -> Any:
    """`array<i1: ...>`: one flag for each dimension."""
    return _mlir().ir.DenseBoolArrayAttr.get([bool(value) for value in values])


def int_matrix(values: Any) -> Any:
    """`dense<...> : tensor<axbxi64>`: padding, replica groups."""
    matrix = np.ascontiguousarray(values, dtype=np.int64)
    element = _mlir().ir.IntegerType.get_signless(64)
    return _mlir().ir.DenseElementsAttr.get(matrix, type=element, shape=matrix.shape)


def int_attribute(value: int, bits: int = 64) -> Any:
    """`value : i64`, or of another width."""
    return _mlir().ir.IntegerAttr.get(
        _mlir().ir.IntegerType.get_signless(bits), int(value)
    )


def unsigned_attribute(value: int, bits: int = 64) -> Any:
    """`value : ui64`, or of another width."""
    return _mlir().ir.IntegerAttr.get(
        _mlir().ir.IntegerType.get_unsigned(bits), int(value)
    )


def custom_call(
    target: str,
    result_types: Sequence[Any],
    operands: Sequence[Any],
    attributes: dict[str, Any],
    has_side_effect: bool = False,
) -> Any:
    """A call of a foreign function by XLA's typed interface; the operation.

    Operands and results are row-major: the function sees dimensions, not layouts.

    Args:
      target: the name under which the function is registered.
      result_types: the types of the results; tensors and tokens.
      operands: values; tensors and tokens.
      attributes: what the function reads by name, as attributes.
      has_side_effect: whether the call must happen exactly once.
    """
    ir = _mlir().ir

    def layouts(kinds: Sequence[Any]) -> Any:
        return ir.ArrayAttr.get([_row_major(kind) for kind in kinds])

    return _mlir().stablehlo.CustomCallOp(
        list(result_types),
        list(operands),
        target,
        has_side_effect=has_side_effect,
        backend_config=ir.DictAttr.get(attributes),
        api_version=int_attribute(4, 32),
        operand_layouts=layouts([operand.type for operand in operands]),
        result_layouts=layouts(result_types),
    )


def _row_major(kind: Any) -> Any:
    """The layout of a tensor whose last dimension varies fastest; of a token, none."""
    ir = _mlir().ir
    rank = len(kind.shape) if isinstance(kind, ir.RankedTensorType) else 0
    order = np.arange(rank - 1, -1, -1, dtype=np.int64)
    return ir.DenseIntElementsAttr.get(order, type=ir.IndexType.get())


def string(value: str) -> Any:
    """A string attribute."""
    return _mlir().ir.StringAttr.get(value)


def sdy_sharding(
    mesh_axes: Sequence[tuple[str, int]],
    dimensions: Sequence[tuple[Sequence[str], bool]],
    replicated_axes: Sequence[str] = (),
    unreduced_axes: Sequence[str] = (),
) -> Any:
    """Shardy's sharding of one tensor, for the attribute `sdy.sharding`.

    Args:
      mesh_axes: name and size of each mesh axis; the mesh is written into the
        attribute, so that the module needs no `sdy.mesh`.
      dimensions: for each dimension the axes that cut it, coarsest first, and whether
        the compiler may cut it further.
      replicated_axes: axes that the compiler must not use.
      unreduced_axes: axes over which the parts are still to be added up.
    """
    sdy = _mlir().sdy
    mesh = sdy.MeshAttr.get([sdy.MeshAxisAttr.get(n, size) for n, size in mesh_axes])
    shardings = [
        sdy.DimensionShardingAttr.get(
            [sdy.AxisRefAttr.get(axis) for axis in axes], is_closed=not is_open
        )
        for axes, is_open in dimensions
    ]
    return sdy.TensorShardingAttr.get(
        mesh,
        shardings,
        replicated_axes=[sdy.AxisRefAttr.get(axis) for axis in replicated_axes],
        unreduced_axes=[sdy.AxisRefAttr.get(axis) for axis in unreduced_axes],
    )


def dense(array: Any) -> Any:
    """The elements of a NumPy array as an attribute; one element if all are equal.

    Any strides and byte order. Equal means bit for bit: -0.0 is not 0.0.
    """
    array = np.asarray(array)
    element = element_type(array.dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # ascontiguousarray makes a rank-0 array rank 1, so the shape is given apart.
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.size > 1 and _all_equal(flat):
        flat = flat[:1]
    _mlir().ir.Context.current.constant_bytes += flat.nbytes
    return _mlir().ir.DenseElementsAttr.get(flat, type=element, shape=array.shape)


def _all_equal(flat: np.ndarray) -> bool:
    rows = flat.view(np.uint8).reshape(flat.size, flat.dtype.itemsize)
    if (rows[0] != rows[-1]).any():
        return False
    return bool((rows == rows[0]).all())


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

Frame = tuple[str, int, int, str]
_code_to_filename: Callable[[Any], str | None] = lambda code: code.co_filename  # noqa: E731
_frame_limit = 10


def set_location_policy(
    code_to_filename: Callable[[Any], str | None], frame_limit: int = 10
) -> None:
    """Says which frames of a traceback become part of a location.

    Args:
      code_to_filename: takes a code object; its file's name, or None to leave the
        frame out (the library's own frames). Called once for each code object.
      frame_limit: at most this many frames, innermost first.
    """
    global _code_to_filename, _frame_limit
    _code_to_filename = code_to_filename
    _frame_limit = frame_limit
    while _pool:
        _pool.pop().forget()


def location(
    source: Traceback | Frame | Sequence[Frame] | None = None, name: str | None = None
) -> Any:
    """An MLIR location, in the current context.

    Args:
      source: a traceback of jaxlib; or one frame `(file, line, column, function)`;
        or several, innermost first; or None.
      name: a name around it, such as "jit(f)/sin"; XLA keeps it as the
        instruction's `op_name`.
    """
    ir = _mlir().ir
    if source is None:
        where = ir.Location.unknown()
    elif isinstance(source, Traceback):
        current = ir.Context.current
        if current.traceback_locations is None:
            current.traceback_locations = _mlir().extension.TracebackToLocationCache(
                code_to_filename=_code_to_filename, frame_limit=_frame_limit
            )
        where = current.traceback_locations.get(source)
    else:
        frames = [source] if isinstance(source[0], str) else list(source)
        places = [
            ir.Location.name(function, ir.Location.file(file, line, column))
            for file, line, column, function in frames
        ]
        where = places[0]
        if len(places) > 1:
            where = ir.Location.callsite(places[0], places[1:])
    return where if name is None else ir.Location.name(name, where)


# ---------------------------------------------------------------------------
# Modules


def parse(program: str | bytes) -> Any:
    """A module from StableHLO text or bytecode, in the current context."""
    return _mlir().ir.Module.parse(program)


def verify(module: Any) -> None:
    """Checks the module's types and structure.

    Raises:
      jaxlib.mlir.ir.MLIRError: says which operation is wrong and why.
    """
    module.operation.verify()


def module_to_text(module: Any, locations: bool = False) -> str:
    """The module as StableHLO text, with `loc(...)` after each operation if asked."""
    return module.operation.get_asm(enable_debug_info=locations)


def module_to_bytes(module: Any) -> bytes:
    """The module as MLIR bytecode, with its locations; needs its context no longer."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def strip_locations(program: bytes) -> bytes:
    """The same program without source locations: what a disk cache may use as key."""
    with context():
        module = parse(program)
        passes = _mlir().passmanager.PassManager.parse(
            "builtin.module(strip-debuginfo)"
        )
        passes.run(module.operation)
        return module_to_bytes(module)
