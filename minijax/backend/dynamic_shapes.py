"""StableHLO with sizes that are not known: `tensor<?x4xf32>`, and operations on them.

A size that is an expression has a value inside of each function of the module: it is
computed, as an i32, from the values of the variables, which the function takes first
(`sizes_of_function`). The operations whose result takes its shape from its type, such
as `broadcast_in_dim`, become those that take it from an operand.

`builders` is attached to the core's hook of that name: `hlo.stablehlo` is `_Builders`,
and leaves to jaxlib's what has only numbers.

In JAX: `interpreters/mlir.py`, `eval_dynamic_shape`, `dynamic_broadcast_in_dim`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.core import hlo


@functools.cache
def _symbolic_type_class() -> type:
    """The class of tensor types that keep the expressions of their sizes."""

    class SymbolicTensorType(hlo.ir.RankedTensorType):
        sizes: tuple

    return SymbolicTensorType


def symbolic_tensor_type(sizes: Sequence[Any], element: Any) -> Any:
    """A tensor type with `?` for sizes that are expressions."""
    unknown = hlo.ir.ShapedType.get_dynamic_size()
    known = [size if isinstance(size, int) else unknown for size in sizes]
    made = _symbolic_type_class()(hlo.ir.RankedTensorType.get(known, element))
    made.sizes = tuple(sizes)
    return made


def ranked_type(sizes: Sequence[Any], element: Any) -> Any:
    """A tensor type; sizes may be expressions."""
    if all(isinstance(size, (int, np.integer)) for size in sizes):
        return hlo.ir.RankedTensorType.get(sizes, element)
    return symbolic_tensor_type(sizes, element)


# ----------------------------------------------------------------------------------
# Values of sizes
# ----------------------------------------------------------------------------------


class _Value:
    """An i32 scalar of StableHLO with Python's operators."""

    def __init__(self, value: Any):
        self.value = value

    def _with(self, name: str, other: Any, neutral: int | None = None) -> _Value:
        if isinstance(other, int) and other == neutral:
            return self
        other = value_of(other) if not isinstance(other, hlo.ir.Value) else other
        return _Value(getattr(hlo.stablehlo, name)(self.value, other))

    def __add__(self, other: Any) -> _Value:
        return self._with("add", other, 0)

    def __mul__(self, other: Any) -> _Value:
        return self._with("multiply", other, 1)

    def __sub__(self, other: Any) -> _Value:
        return self._with("subtract", other, 0)

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> _Value:
        # StableHLO rounds to zero; one less where there is a rest of another sign.
        quotient, rest = self._with("divide", other), self._with("remainder", other)
        divisor = other if isinstance(other, _Value) else _Value(_constant(other))
        signs = rest._with("multiply", divisor)
        zero = _constant(0)
        less = _compare(signs.value, zero, "LT")
        one = hlo.stablehlo.convert(scalar_type(), less)
        return quotient._with("subtract", _Value(one))

    def __rfloordiv__(self, other: Any) -> _Value:
        return _Value(_constant(other)) // self

    def __mod__(self, other: Any) -> _Value:
        return self._with("subtract", (self // other) * other)

    def __rmod__(self, other: Any) -> _Value:
        return _Value(_constant(other)) % self

    def maximum(self, other: Any) -> _Value:
        return self._with("maximum", other)

    def minimum(self, other: Any) -> _Value:
        return self._with("minimum", other)


def scalar_type() -> Any:
    """The type of the value of a size: `tensor<i32>`."""
    return hlo.tensor_type((), np.dtype(np.int32))


def _constant(value: int) -> Any:
    return hlo.constant(np.asarray(value, np.int32))


def _compare(first: Any, second: Any, direction: str) -> Any:
    return hlo.stablehlo.compare(
        first, second, hlo.stablehlo.ComparisonDirectionAttr.get(direction)
    )


@contextlib.contextmanager
def sizes_of_function(values: Mapping[str, Any]) -> Iterator[None]:
    """In the block, the variables of sizes have these values of StableHLO."""
    context = hlo.ir.Context.current
    outer = getattr(context, "sizes", {})
    context.sizes = {name: _Value(value) for name, value in values.items()}
    try:
        yield
    finally:
        context.sizes = outer


def values_of_variables(names: Sequence[str]) -> list[Any]:
    """The i32 scalars of variables, in the function being written."""
    return [hlo.ir.Context.current.sizes[name].value for name in names]


def value_of(size: Any) -> Any:
    """The i32 scalar of a size, in the function being written."""
    if isinstance(size, (int, np.integer)):
        return _constant(int(size))
    if isinstance(size, _Value):
        return size.value
    return size.evaluate(hlo.ir.Context.current.sizes).value


def scalar(size: Any, result: Any) -> Any:
    """The value of a size as a scalar of another integer type."""
    value = value_of(size)
    return value if value.type == result else hlo.stablehlo.convert(result, value)


def shape_operand(sizes: Sequence[Any]) -> Any:
    """The sizes as a vector: what operations of dynamic shape take."""
    one = hlo.tensor_type((1,), np.dtype(np.int32))
    parts: list[Any] = []
    known: list[int] = []

    def flush() -> None:
        if known:
            parts.append(hlo.constant(np.asarray(known, np.int32)))
            known.clear()

    for size in sizes:
        if isinstance(size, (int, np.integer)):
            known.append(int(size))
        else:
            flush()
            parts.append(_stablehlo().reshape(one, value_of(size)))
    flush()
    return parts[0] if len(parts) == 1 else _stablehlo().concatenate(parts, 0)


def check(condition: tuple[Any, str, Any], message: str, shown: Sequence[Any]) -> None:
    """An assertion about sizes: `message` is the error if a comparison is false.

    The sizes `shown` are put in for {0}, {1}, ...
    """
    first, direction, second = condition
    passed = _compare(value_of(first), value_of(second), direction)
    _assertion([passed, *map(value_of, shown)], message)


def _assertion(operands: Sequence[Any], message: str) -> None:
    ir = hlo.ir
    number = ir.IntegerType.get_signless(32)
    op = _stablehlo().CustomCallOp(
        [],
        list(operands),
        call_target_name=ir.StringAttr.get("shape_assertion"),
        has_side_effect=ir.BoolAttr.get(True),
        api_version=ir.IntegerAttr.get(number, 2),
    )
    op.attributes["error_message"] = ir.StringAttr.get(message)


def size_of(operand: Any, axis: int) -> _Value:
    """The size of an axis of an array, to compute with."""
    return _Value(_stablehlo().get_dimension_size(operand, axis))


# ----------------------------------------------------------------------------------
# Operations
# ----------------------------------------------------------------------------------


def _stablehlo() -> Any:
    return hlo._mlir().stablehlo


def _sizes(result: Any) -> Any:
    """The sizes of a type that was made for expressions, or None."""
    return getattr(result, "sizes", None)


class _Builders:
    """jaxlib's builders of StableHLO; three know types with unknown sizes."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(_stablehlo(), name)
        setattr(self, name, value)
        return value

    def broadcast_in_dim(self, result: Any, operand: Any, dims: Any) -> Any:
        sizes = _sizes(result)
        if sizes is None:
            return _stablehlo().broadcast_in_dim(result, operand, dims)
        return _stablehlo().dynamic_broadcast_in_dim(
            result, operand, shape_operand(sizes), dims
        )

    def reshape(self, result: Any, operand: Any) -> Any:
        sizes = _sizes(result)
        if sizes is None:
            return _stablehlo().reshape(result, operand)
        return _stablehlo().dynamic_reshape(result, operand, shape_operand(sizes))

    def iota(self, result: Any, axis: Any) -> Any:
        sizes = _sizes(result)
        if sizes is None:
            return _stablehlo().iota(result, axis)
        return _stablehlo().dynamic_iota(result, shape_operand(sizes), axis)

    def slice(self, operand: Any, starts: Any, limits: Any, strides: Any) -> Any:
        bounds = (starts, limits, strides)
        if not any(isinstance(each, tuple) for each in bounds):
            return _stablehlo().slice(operand, *bounds)
        first, last, step = (tuple(each) for each in bounds)
        sizes = [(b - a + s - 1) // s for a, b, s in zip(first, last, step)]
        vectors = map(shape_operand, (first, last, step))
        return _stablehlo().real_dynamic_slice(_like(operand, sizes), operand, *vectors)

    def dynamic_slice(self, operand: Any, starts: Any, sizes: Any) -> Any:
        if not isinstance(sizes, tuple):
            return _stablehlo().dynamic_slice(operand, starts, sizes)
        first = []
        for axis, (start, size) in enumerate(zip(starts, sizes)):
            room = size_of(operand, axis) - value_of(size)
            begin = _Value(_stablehlo().convert(scalar_type(), start))
            first.append(begin.minimum(room).maximum(0))
        # Written as a sum of vectors, it is a slice of known size once sizes are known.
        begins = shape_operand(first)
        ends = _stablehlo().add(begins, shape_operand(sizes))
        steps = shape_operand([1] * len(first))
        return _stablehlo().real_dynamic_slice(
            _like(operand, sizes), operand, begins, ends, steps
        )

    def gather(
        self, operand: Any, indices: Any, numbers: Any, sizes: Any, **options: Any
    ) -> Any:
        if not isinstance(sizes, tuple):
            return _stablehlo().gather(operand, indices, numbers, sizes, **options)
        return _stablehlo().dynamic_gather(
            operand,
            indices,
            shape_operand(sizes),
            numbers,
            results=[_type_of_gather(operand, indices, numbers, sizes)],
            **options,
        )

    def pad(self, operand: Any, value: Any, low: Any, high: Any, interior: Any) -> Any:
        config = (low, high, interior)
        if not any(isinstance(each, tuple) for each in config):
            return _stablehlo().pad(operand, value, *config)
        unknown = hlo.ir.ShapedType.get_dynamic_size()
        known = hlo.ir.RankedTensorType(operand.type)
        result = hlo.ir.RankedTensorType.get([unknown] * known.rank, known.element_type)
        vectors = map(shape_operand, map(tuple, config))
        return _stablehlo().dynamic_pad(result, operand, value, *vectors)


def _type_of_gather(operand: Any, indices: Any, numbers: Any, sizes: Any) -> Any:
    parts = hlo.stablehlo.GatherDimensionNumbers(numbers)
    gone = {*parts.collapsed_slice_dims, *parts.operand_batching_dims}
    block = [size for axis, size in enumerate(sizes) if axis not in gone]
    kind = hlo.ir.RankedTensorType(indices.type)
    batch = [kind.get_dim_size(axis) for axis in range(kind.rank)]
    if parts.index_vector_dim < kind.rank:
        del batch[parts.index_vector_dim]
    offsets = list(parts.offset_dims)
    rest = iter(batch)
    shape = [
        block[offsets.index(axis)] if axis in offsets else next(rest)
        for axis in range(len(block) + len(batch))
    ]
    return _like(operand, shape)


def _like(operand: Any, sizes: Sequence[Any]) -> Any:
    """The type of an operand with other sizes."""
    return symbolic_tensor_type(
        sizes, hlo.ir.RankedTensorType(operand.type).element_type
    )


@hlo.builders.attach
def builders(mlir: Any) -> tuple[Any, Callable]:
    """What writes operations and types, of sizes that need not be known."""
    return _Builders(), ranked_type


def has_unknown_sizes(module: Any) -> bool:
    """Whether the `main` of a module takes or returns arrays of unknown sizes."""
    main = hlo.ir.SymbolTable(module.operation)["main"]
    kinds = [*main.type.inputs, *main.type.results]
    arrays = [kind for kind in kinds if isinstance(kind, hlo.ir.RankedTensorType)]
    return not all(kind.has_static_shape for kind in arrays)
