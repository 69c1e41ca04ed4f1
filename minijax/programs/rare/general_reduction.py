"""`reduce`: a reduction with any operation, of any number of operands at once.

The operation is a Python function of scalars, traced once; the equation carries its
program. Where it is a known one (`lax.add` from 0), the reduction of that name is used.

In JAX: `lax/lax.py`, `reduce_p`.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.core import arithmetic as elementwise
from minijax.core import hlo, language, partial_eval, rules, shaping, sums
from minijax.core.rules import Zero, not_mapped
from minijax.core.signatures import check_functions
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.primitives import families
from minijax.primitives.elementwise import comparing, extrema
from minijax.primitives.parallel.scalar_programs import lower_scalars
from minijax.primitives.reduce import reductions
from minijax.primitives.shape import slicing
from minijax.programs.control_flow.scan_primitive import stack_rows
from minijax.support import element_types
from minijax.transforms.vectorization import vmap
from minijax.values.concrete import is_concrete
from minijax.values.inner_programs import jaxpr_as_fun


def halves(items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Operands and initial values, which come one after the other."""
    half = len(items) // 2
    return list(items[:half]), list(items[half:])


def flat_pair(operands: Any, init_values: Any) -> tuple[list[Any], list[Any], Any]:
    """The leaves of operands and initial values, and their tree.

    Raises ValueError if the trees differ.
    """
    flat, tree = tree_flatten(operands)
    starts, start_tree = tree_flatten(init_values)
    if tree != start_tree:
        raise ValueError(
            "Operands must have the same tree structure as init_values: "
            f"{tree} vs. {start_tree}"
        )
    return flat, starts, tree


def _reduce_types(
    *avals: language.ShapedArray, jaxpr, dimensions, **_
) -> list[language.ShapedArray]:
    operands, starts = halves(avals)
    if any(start.shape for start in starts):
        shapes = [start.shape for start in starts]
        raise ValueError(f"reduce found non-scalar initial value: {shapes}")
    if [x.dtype for x in operands] != [start.dtype for start in starts]:
        raise TypeError(
            "reduce operand dtypes should match corresponding initial value dtypes, "
            f"got operands={operands} and initial_values={starts}"
        )
    results = [(out.shape, out.dtype) for out in jaxpr.out_avals]
    if results != [((), start.dtype) for start in starts]:
        raise ValueError(
            "The computation of reduce must give, for each operand, a scalar of its "
            f"dtype: {[start.str_short() for start in starts]}; it gave "
            f"{[out.str_short() for out in jaxpr.out_avals]}."
        )
    rank = operands[0].ndim
    if not all(0 <= axis < rank for axis in dimensions):
        raise IndexError(
            f"reduce: dimensions {dimensions} are not all among those of an operand of "
            f"shape {operands[0].shape}."
        )
    return [
        x.update(
            shape=tuple(d for axis, d in enumerate(x.shape) if axis not in dimensions),
            weak_type=x.weak_type and start.weak_type,
        )
        for x, start in zip(operands, starts)
    ]


def _reduce_meaning(*arrays, jaxpr, dimensions, **_) -> list[np.ndarray]:
    operands, starts = halves(arrays)
    kept = [axis for axis in range(operands[0].ndim) if axis not in dimensions]
    shape = tuple(operands[0].shape[axis] for axis in kept)
    lines = [
        np.transpose(x, (*kept, *dimensions)).reshape((*shape, -1)) for x in operands
    ]
    return folded(lines, starts, jaxpr)


def folded(
    lines: Sequence[np.ndarray], starts: Sequence[Any], closed: language.ClosedJaxpr
) -> list[np.ndarray]:
    """The entries along the last axis combined by a program, one after the other."""
    combine = jaxpr_as_fun(closed)
    outs = [np.empty(line.shape[:-1], line.dtype) for line in lines]
    for place in np.ndindex(*outs[0].shape):
        total = list(starts)
        for position in range(lines[0].shape[-1]):
            entries = [line[(*place, position)] for line in lines]
            total = [np.asarray(value) for value in combine(*total, *entries)]
        for out, value in zip(outs, total):
            out[place] = value
    return outs


reduce_p = families.several_results("reduce", _reduce_types, _reduce_meaning)


def _for_each_entry(closed: language.ClosedJaxpr) -> Callable[..., list[Any]]:
    """A program of scalars as a function of arrays, by one `vmap` for each axis."""

    def combine(*values: Any) -> list[Any]:
        fun: Callable = jaxpr_as_fun(closed)
        for _ in language.get_aval(values[0]).shape:
            fun = vmap(fun)
        return fun(*values)

    return combine


@reduce_p.def_jvp_rule
def _reduce_jvp(primals, tangents, *, jaxpr, dimensions, **_) -> Any:
    operands, starts = halves(primals)
    operand_tangents, start_tangents = halves(tangents)
    if any(type(t) is not Zero for t in start_tangents):
        raise NotImplementedError(
            "Gradient of general lax.reduce with non-zero tangents for initial values "
            "is not defined: an initial value is the neutral element of the "
            "computation. Use `lax.stop_gradient` on it, or combine it afterwards."
        )
    return reductions.jvp_as_tree(
        _for_each_entry(jaxpr), starts, operands, operand_tangents, dimensions
    )


reduce_p.without("transpose", "its jvp is written with operations on two entries")


@reduce_p.def_batch
def _reduce_batch(axis_data, args, dims, *, dimensions, **params) -> Any:
    operands, starts = halves(args)
    operand_dims, start_dims = halves(dims)
    fronts = families.all_at_front(axis_data, operands, operand_dims)
    if all(dim is not_mapped for dim in start_dims):
        moved = tuple(axis + 1 for axis in dimensions)
        outs = reduce_p.bind(*fronts, *starts, dimensions=moved, **params)
        return outs, [0] * len(outs)
    # XLA takes one initial value for all examples: one reduction for each example.
    fronts += families.all_at_front(axis_data, starts, start_dims)
    examples = [
        reduce_p.bind(
            *(slicing.index_in_dim(x, index, keepdims=False) for x in fronts),
            dimensions=dimensions,
            **params,
        )
        for index in range(axis_data.size)
    ]
    outs = [stack_rows(column) for column in zip(*examples)]
    return outs, [0] * len(outs)


@reduce_p.def_lowering
def _reduce_lowering(ctx, *values, jaxpr, dimensions, **_) -> list[Any]:
    operands, starts = halves(values)
    reduce = hlo.stablehlo.ReduceOp(
        [ctx.result_type(index) for index in range(len(operands))],
        operands,
        starts,
        hlo.int_array(dimensions),
    )
    scalars = [start.type for start in starts]
    write = functools.partial(lower_scalars, ctx, jaxpr)
    hlo_parts.write_region(reduce, [*scalars, *scalars], write)
    return list(reduce.results)


# ----------------------------------------------------------------------------------
# The function
# ----------------------------------------------------------------------------------


def trace_scalars(computation: Callable, avals: tuple, tree: Any) -> tuple:
    """The program of a computation on scalars of these types, and its result's tree."""
    check_functions("reduce", computation=computation)
    try:
        weakref.ref(computation)
    except TypeError:  # such as an object with slots: it is traced at each call
        computation = functools.partial(computation)
    return _trace_scalars(computation, avals, tree)


@language.weakref_lru_cache
def _trace_scalars(
    computation: Callable, avals: tuple[language.AbstractValue, ...], tree: Any
) -> tuple[language.ClosedJaxpr, Any]:
    out_trees = []

    def flat(*values: Any) -> list[Any]:
        left, right = halves(values)
        out = computation(tree_unflatten(tree, left), tree_unflatten(tree, right))
        leaves, out_tree = tree_flatten(out)
        out_trees.append(out_tree)
        return leaves

    name = getattr(computation, "__name__", type(computation).__name__)
    jaxpr, consts = partial_eval.trace_to_jaxpr(
        flat, (*avals, *avals), language.DebugInfo("reduce comp", name)
    )
    if any(isinstance(const, language.Tracer) for const in consts):
        raise NotImplementedError(
            "Reduction computations can't close over Tracers: pass the value as a "
            "further operand of lax.reduce, broadcast to the shape of the others."
        )
    return language.ClosedJaxpr(jaxpr, consts), out_trees[0]


def _known_reduction(computation: Callable, starts: Sequence[Any]) -> Callable | None:
    """The reduction that a computation and its initial value amount to, if one does."""
    if (
        len(starts) != 1
        or not is_concrete(starts[0])
        or language.get_aval(starts[0]).shape
    ):
        return None
    known = {
        elementwise.add: (sums.reduce_sum, sums.zero),
        elementwise.mul: (reductions.reduce_prod, reductions.one),
        extrema.max: (reductions.reduce_max, reductions.lowest),
        extrema.min: (reductions.reduce_min, reductions.highest),
    }
    dtype = language.get_aval(starts[0]).dtype
    if rules.accepts(rules.bool_or_int, dtype):
        known[comparing.bitwise_or] = (reductions.reduce_or, sums.zero)
        known[comparing.bitwise_xor] = (reductions.reduce_xor, sums.zero)
        known[comparing.bitwise_and] = (reductions.reduce_and, reductions.all_bits)
    for function, (reduction, neutral) in known.items():
        if computation is function:
            start = np.asarray(language.to_concrete_value(starts[0]))
            return reduction if start == neutral(dtype) else None
    return None


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Combine all entries along `dimensions` with an associative `computation`.

    `operands` is an array or a tree of arrays of one shape, `init_values` a tree like
    it of scalars of the same dtypes: the neutral elements. `computation(x, y)` takes
    and returns such trees of scalars. The entries are combined in no particular order.

    Raises:
      ValueError: when the trees differ, an initial value is not a scalar, or the
        computation gives something else than scalars of the operands' dtypes.
      TypeError: when an initial value has not the dtype of its operand.
    """
    flat_operands, starts, start_tree = flat_pair(operands, init_values)
    known = _known_reduction(computation, starts)
    if known is not None:
        options = {} if out_sharding is None else {"out_sharding": out_sharding}
        out = known(*flat_operands, dimensions, **options)
        weak_type = all(map(element_types.is_weakly_typed, (*flat_operands, *starts)))
        return shaping.convert_element_type_to(out, weak_type=weak_type)
    avals = tuple(language.get_aval(start) for start in starts)
    jaxpr, out_tree = trace_scalars(computation, avals, start_tree)
    outs = reduce_p.bind(
        *flat_operands,
        *starts,
        computation=computation,
        jaxpr=jaxpr,
        dimensions=tuple(dimensions),
    )
    return tree_unflatten(out_tree, outs)
