"""What all scatters share: dimension numbers, type, meaning, lowering, batch rule.

A scatter is the mirror image of a gather: for each index vector, a block of `updates`
is combined with the block of the operand that starts there. How two entries are
combined is a program of two scalars, `update_jaxpr`. The primitives are in
`scattering.py`.

In JAX: `lax/slicing.py`; the operation is XLA's Scatter.
"""

from __future__ import annotations

import builtins
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, hlo, language, rules, shaping
from minijax.core.partial_eval import trace_to_jaxpr
from minijax.core.rules import Shape, batch_at_front, not_mapped
from minijax.core.source_info import NameStack, SourceInfo
from minijax.core.state import state
from minijax.primitives.elementwise import clamping
from minijax.primitives.index import index_vectors
from minijax.primitives.parallel.scalar_programs import lower_scalars
from minijax.primitives.shape.squeezing import flag_of

# ----------------------------------------------------------------------------------
# Type and meaning
# ----------------------------------------------------------------------------------


def _scatter_shape(operand, indices, updates, *, dimension_numbers, **_) -> Shape:
    numbers = dimension_numbers
    kind = index_vectors.ScatterDimensionNumbers
    index_vectors.check_numbers("scatter", operand, indices, numbers, kind)
    window = numbers.update_window_dims
    inserted = numbers.inserted_window_dims
    batching = numbers.operand_batching_dims
    rank = indices.ndim - 1 + len(window)
    if updates.ndim != rank:
        raise TypeError(
            f"Updates tensor must be of rank {rank}; got {updates.ndim}: the axes of "
            "the indices but the last, and update_window_dims."
        )
    if operand.ndim != len(window) + len(inserted) + len(batching):
        raise TypeError(
            f"Every axis of operand is in one of update_window_dims {window} (axes of a"
            f" block), inserted_window_dims {inserted}, operand_batching_dims "
            f"{batching}; got an operand of rank {operand.ndim}."
        )
    block = index_vectors.block_shape(operand.ndim, updates.shape, numbers)
    left_out = (*inserted, *batching)
    for axis, (count, size) in enumerate(zip(block, operand.shape)):
        if axis not in left_out and count > size:
            raise TypeError(
                "Bounds of the window dimensions of updates exceed those of operand: "
                f"axis {axis} has size {size} there, and {count} in the updates."
            )
    batch_sizes = tuple(
        size for axis, size in enumerate(updates.shape) if axis not in window
    )
    if batch_sizes != indices.shape[:-1]:
        raise TypeError(
            "Bounds of the scatter dimensions of updates must be those of the "
            f"scatter indices, got {batch_sizes} and {indices.shape[:-1]}."
        )
    return operand.shape


def _scatter_dtype(operand, indices, updates, **_) -> Any:
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"indices need an integer type, got {indices.dtype.name}.")
    rules.check_same_dtypes("scatter", (operand, updates))
    return operand.dtype


def _combiner(update_jaxpr: language.Jaxpr | None, consts: Any) -> Callable:
    """The combination of two scalars as a function of NumPy scalars."""
    if update_jaxpr is None:
        return lambda old, new: new
    return lambda old, new: np.asarray(
        language.eval_jaxpr(update_jaxpr, consts, old, new)[0]
    )


def _meaning(combine: Callable | None) -> Callable:
    def meaning(operand, indices, updates, *, dimension_numbers, mode, **params) -> Any:
        numbers = dimension_numbers
        out = operand.copy()
        block = index_vectors.block_shape(operand.ndim, updates.shape, numbers)
        window = [axis for axis in numbers.update_window_dims]
        last = range(updates.ndim - len(window), updates.ndim)
        batch_first = np.moveaxis(updates, window, last)
        program = (params["update_jaxpr"], params["update_consts"])
        one = combine or np.frompyfunc(_combiner(*program), 2, 1)
        for place, start in index_vectors.blocks(
            indices,
            numbers.scatter_dims_to_operand_dims,
            numbers.operand_batching_dims,
            numbers.scatter_indices_batching_dims,
            [size - count for size, count in zip(operand.shape, block)],
            clip=mode is index_vectors.GatherScatterMode.CLIP,
        ):
            if start is None:
                continue
            ends = [first + count for first, count in zip(start, block)]
            target = tuple(map(builtins.slice, start, ends))
            new = one(out[target], batch_first[place].reshape(block))
            out[target] = new.astype(operand.dtype)
        return out

    return meaning


def scatter_primitive(name: str, combine: Callable | None) -> language.Primitive:
    """A primitive of the family; `combine` is the combination in NumPy."""
    primitive = rules.standard_primitive(
        name,
        _scatter_shape,
        _scatter_dtype,
        weak_type_rule=lambda operand, indices, updates, **_: operand.weak_type,
        meaning=_meaning(combine),
    )
    primitive.def_lowering(_scatter_lowering)
    primitive.def_batch(_scatter_batch(primitive))
    return primitive


# ----------------------------------------------------------------------------------
# Lowering
# ----------------------------------------------------------------------------------


def _scatter_lowering(
    ctx, operand, indices, updates, *, dimension_numbers, mode, **params
) -> Any:
    operand_aval, indices_aval, updates_aval = ctx.avals_in
    numbers = dimension_numbers
    physical = language.physical_aval(operand_aval)
    if physical is not operand_aval:
        # The bits of a typed key are more axes of every block.
        updates_physical = language.physical_aval(updates_aval)
        trailing = range(updates_aval.ndim, updates_physical.ndim)
        window = (*numbers.update_window_dims, *trailing)
        numbers = numbers._replace(update_window_dims=window)
        ctx = ctx.replace(
            avals_in=[physical, indices_aval, updates_physical], avals_out=[physical]
        )
    if mode is index_vectors.GatherScatterMode.CLIP:
        (indices,) = ctx.lower_fun(
            _clamped_indices, operand, indices, updates, numbers=numbers
        )
    scatter_op = hlo.stablehlo.ScatterOp(
        [hlo.tensor_type(physical.shape, physical.dtype)],
        [operand],
        indices,
        [updates],
        hlo.stablehlo.ScatterDimensionNumbers.get(
            update_window_dims=list(numbers.update_window_dims),
            inserted_window_dims=list(numbers.inserted_window_dims),
            input_batching_dims=list(numbers.operand_batching_dims),
            scatter_indices_batching_dims=list(numbers.scatter_indices_batching_dims),
            scattered_dims_to_operand_dims=list(numbers.scatter_dims_to_operand_dims),
            index_vector_dim=indices_aval.ndim - 1,
        ),
        indices_are_sorted=hlo.ir.BoolAttr.get(params["indices_are_sorted"]),
        unique_indices=hlo.ir.BoolAttr.get(params["unique_indices"]),
    )
    jaxpr, consts = params["update_jaxpr"], params["update_consts"]

    def combined(old: Any, new: Any) -> list[Any]:
        if jaxpr is None:
            return [new]
        results = lower_scalars(ctx, language.ClosedJaxpr(jaxpr, consts), old, new)
        used = [var for eqn in jaxpr.eqns for var in eqn.invars]
        if ctx.platform == "cuda" and jaxpr.invars[1] not in used:
            # XLA turns a body of one operation into an atomic operation with `new`,
            # and crashes if the body ignores `new`, which is zero: `x.at[i].apply`.
            inexact = dtypes.issubdtype(physical.dtype, np.inexact)
            take = hlo.stablehlo.subtract if inexact else hlo.stablehlo.xor
            results = [take(results[0], new)]
        return results

    scalar = hlo.tensor_type((), physical.dtype)
    hlo_parts.write_region(scatter_op, [scalar, scalar], combined)
    return scatter_op.results[0]


def _clamped_indices(
    operand, indices, updates, *, numbers: index_vectors.ScatterDimensionNumbers
):
    """The indices moved so that every block fits."""
    shape = shaping.shape_of(operand)
    block = index_vectors.block_shape(len(shape), shaping.shape_of(updates), numbers)
    aval = language.get_aval(indices)
    largest = dtypes.iinfo(aval.dtype).max
    bounds = [
        min(shape[axis] - block[axis], largest)
        for axis in numbers.scatter_dims_to_operand_dims
    ]
    limit = shaping.broadcast_in_dim(
        np.array(bounds, aval.dtype), aval.shape, (aval.ndim - 1,)
    )
    return clamping.clamp(language.numpy_scalar(0, aval.dtype), indices, limit)


# ----------------------------------------------------------------------------------
# Batch
# ----------------------------------------------------------------------------------


def _scatter_batch(primitive) -> Callable:
    def batch(axis_data, args, dims, *, dimension_numbers, **params) -> Any:
        """The new axis is one more of every block, or a batching axis of all three."""
        operand, indices, updates = args
        operand_dim, indices_dim, updates_dim = dims
        operand = batch_at_front(operand, operand_dim, axis_data)
        updates = batch_at_front(updates, updates_dim, axis_data)
        numbers = index_vectors.ScatterDimensionNumbers(
            *map(index_vectors.shifted, dimension_numbers)
        )
        if indices_dim is not_mapped:
            numbers = numbers._replace(
                update_window_dims=(0, *numbers.update_window_dims),
                scatter_indices_batching_dims=(
                    dimension_numbers.scatter_indices_batching_dims
                ),
            )
        else:
            indices = batch_at_front(indices, indices_dim, axis_data)
            numbers = numbers._replace(
                operand_batching_dims=(0, *numbers.operand_batching_dims),
                scatter_indices_batching_dims=(
                    0,
                    *numbers.scatter_indices_batching_dims,
                ),
            )
        out = primitive.bind(
            operand, indices, updates, dimension_numbers=numbers, **params
        )
        return out, 0

    return batch


# ----------------------------------------------------------------------------------
# The programs that combine entries
# ----------------------------------------------------------------------------------

# Programs of the combinations: by function, then by type and flags. They are printed
# once where they are one object, as in JAX.
_programs: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def update_program(
    combine: Callable, aval: language.ShapedArray, function: Callable | None = None
) -> tuple[language.Jaxpr, tuple]:
    """The program `combine(old, new)` of two scalars of a type, with its constants.

    Made once for each `function` (by default `combine`) as long as that lives.

    In JAX: `lax/lax.py`, `_reduction_jaxpr`.
    """
    # JAX looks rules up under other flags while it runs equations again.
    key = (aval, state.trace_key, state.user_traceback is not None)
    try:
        known = _programs.setdefault(function or combine, {})
    except TypeError:  # neither hashed nor referred to weakly
        known = {}
    if key not in known:
        program, consts = known[key] = _trace_combination(combine, aval)
        if function is None:  # it is used on other lines, too
            for eqn in program.eqns:
                eqn.source_info = SourceInfo(None, NameStack())
    return known[key]


def _trace_combination(
    combine: Callable, aval: language.ShapedArray
) -> tuple[language.Jaxpr, tuple]:
    def flat(old: Any, new: Any) -> list[Any]:
        result = combine(old, new)
        if not language.valid_jaxtype(result):
            raise ValueError(
                f"Invalid return type from reduction function: {type(result)}. "
                f"Reduction functions should only return an array, got {result}."
            )
        return [result]

    name = getattr(combine, "__name__", "combination")
    jaxpr, consts = trace_to_jaxpr(
        flat, [aval, aval], language.DebugInfo("reduction_jaxpr", name)
    )
    if any(isinstance(const, language.Tracer) for const in consts):
        raise NotImplementedError(
            "Reduction computations can't close over Tracers: give the value as an "
            "argument instead, or write `x.at[i].set(f(x[i]))`."
        )
    return jaxpr, tuple(consts)


# ----------------------------------------------------------------------------------
# The functions, and scatter_add, which the transpose of gather needs
# ----------------------------------------------------------------------------------


def bind_scatter(
    primitive: language.Primitive,
    program: tuple[language.Jaxpr | None, tuple],
    args: tuple[Any, Any, Any],
    dimension_numbers: index_vectors.ScatterDimensionNumbers,
    mode: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Any:
    return primitive.bind(
        *args,
        update_jaxpr=program[0],
        update_consts=program[1],
        dimension_numbers=dimension_numbers,
        indices_are_sorted=flag_of(indices_are_sorted, "indices_are_sorted", True),
        unique_indices=flag_of(unique_indices, "unique_indices", True),
        mode=index_vectors.GatherScatterMode.from_any(mode),
    )


def arithmetic_scatter(
    primitive: language.Primitive, combine: Callable, first_line: str
) -> Callable:
    """The function of a primitive of the family; all have one signature."""

    def function(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: index_vectors.ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | index_vectors.GatherScatterMode | None = None,
    ) -> Any:
        scalar = language.ShapedArray((), dtypes.dtype(operand))
        program = update_program(combine, scalar)
        args = (operand, scatter_indices, updates)
        hints = (indices_are_sorted, unique_indices)
        return bind_scatter(primitive, program, args, dimension_numbers, mode, *hints)

    function.__name__ = function.__qualname__ = primitive.name.replace("-", "_")
    function.__doc__ = (
        f"{first_line}\n\n    The arguments are those of `scatter`. Repeated indices "
        "all count, in any order.\n    "
    )
    return function


# Its derivative is in `scattering.py`, beside that of `scatter_sub`.
scatter_add_p = scatter_primitive("scatter-add", np.add)
scatter_add = arithmetic_scatter(
    scatter_add_p,
    elementwise.add,
    "`operand` with blocks of `updates` added: `x.at[index].add(y)`.",
)
