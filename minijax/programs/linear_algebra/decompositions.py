"""Common to all decompositions: types, batches, native functions.

A decomposition takes stacks of matrices or vectors, `[..., m, n]`, and gives several.
`decomposition` makes a primitive from a rule for one matrix and from its `Native`
functions, which a machine brings along: LAPACK's on the CPU, cuSOLVER's on a GPU. A
native function reads matrices column by column and takes a whole stack at once. It
gives a number `info` for each matrix, and where that says that it failed, the results
are NaN.

In JAX: `lax/linalg.py`, `linalg_primitive` and `_linalg_ffi_lowering`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.backend import hlo_parts, lapack
from minijax.core import arithmetic as elementwise
from minijax.core import hlo, shaping
from minijax.core.language import Primitive, ShapedArray, get_aval, no_effects, register
from minijax.core.lowering import LoweringRuleContext, tensor_type
from minijax.core.rules import (
    Shape,
    batch_at_front,
    check_accepted,
    check_same_dtypes,
    complexes,
    floats,
    moveaxis,
)
from minijax.core.state import state
from minijax.primitives import families
from minijax.primitives.shape import broadcasting
from minijax.programs.callbacks.foreign_calls import attribute
from minijax.programs.linear_algebra.matrices import is_complex
from minijax.programs.sharding.placement import Placement
from minijax.programs.sharding.sharding_rules import mark_batch

INT32 = np.dtype(np.int32)
JAX_HAS_NONE = "JAX has none either"


def decomposition(
    name: str,
    shapes: Callable,
    dtypes: Callable | None = None,
    *,
    ranks: Sequence[int] = (2,),
    accepted: Sequence[set] | None = None,
    batches: bool = True,
    meaning: Callable | None = None,
    no_derivative: str = "",
    cpu: Native | None = None,
    cuda: Native | None = None,
) -> Primitive:
    """A primitive of stacks of matrices.

    Args:
      name: its name in jaxprs.
      shapes: `(*shapes without the batch, **params)`, the shape of the result, or a
        list of shapes; raises ValueError for matrices that do not fit.
      dtypes: `(dtype of the first operand, **params)`, a dtype for each result; None
        for one result of the operands' dtype.
      ranks: how many axes of each operand are not a batch.
      accepted: for each operand the kinds of its dtype; else inexact numbers, all of
        the same dtype.
      batches: whether operands may have axes before those.
      meaning: the reference in NumPy.
      no_derivative: why it has none; else its jvp is made of other operations.
      cpu, cuda: the native functions.
    """
    primitive = register(Primitive(name, multiple_results=dtypes is not None))
    primitive.meaning = meaning
    primitive.without("transpose", "its jvp is made of products and solves")
    if no_derivative:
        primitive.without("jvp transpose", no_derivative)

    def rule(*avals: ShapedArray, **params) -> Any:
        kinds = accepted or [floats | complexes] * len(avals)
        for position, (aval, kind) in enumerate(zip(avals, kinds)):
            check_accepted(name, f" at position {position}", kind, aval.dtype)
        if accepted is None:
            check_same_dtypes(name, avals)
        batch = _batch_of(name, avals, ranks, batches)
        made = shapes(*(x.shape[x.ndim - r :] for x, r in zip(avals, ranks)), **params)
        weak = all(aval.weak_type for aval in avals)
        # The mesh axes over which a result varies: those of any operand.
        vma = frozenset().union(*(aval.vma for aval in avals))

        def typed(shape: Shape, dtype: Any) -> ShapedArray:
            return ShapedArray((*batch, *shape), np.dtype(dtype), weak, None, vma)

        if dtypes is None:
            return typed(made, avals[0].dtype), no_effects
        given = dtypes(avals[0].dtype, **params)
        return [typed(*pair) for pair in zip(made, given)], no_effects

    primitive.type_rule = rule
    if batches:
        primitive.batch = families.front_batch(primitive)
    for platform, row in (("cpu", cpu), ("cuda", cuda)):
        if row is not None:
            primitive.def_lowering(_native_lowering(row, platform), platform)
    return primitive


def _batch_of(
    name: str, avals: Sequence[ShapedArray], ranks: Sequence[int], batches: bool
) -> Shape:
    """The leading axes of stacks of matrices, which are equal for all operands."""
    for position, (aval, rank) in enumerate(zip(avals, ranks)):
        if aval.ndim < rank or (aval.ndim > rank and not batches):
            amount = "at least" if batches else "exactly"
            raise TypeError(
                f"Input {position} to {name} must have a rank of {amount} {rank}, got "
                f"shape {aval.shape}."
            )
    found = [aval.shape[: aval.ndim - rank] for aval, rank in zip(avals, ranks)]
    if any(len(batch) != len(found[0]) for batch in found):
        raise TypeError(
            f"All inputs to {name} must have the same number of batch dimensions, got "
            f"{list(map(len, found))} for shapes {[aval.shape for aval in avals]}."
        )
    # The native functions read past the end of an operand of a smaller batch.
    if any(batch != found[0] for batch in found):
        raise TypeError(
            f"All inputs to {name} must have the same batch dimensions, got {found}."
        )
    return found[0]


def batch_of_columns(primitive: Primitive, places: Callable[..., tuple]) -> None:
    """A batch of right-hand sides of one system is one system with more of them.

    The last operand is the right-hand side. `places(**params)` are two axes, counted
    from the end: where the batch goes, and which one is joined with the one before.
    """

    @primitive.def_batch
    def rule(axis_data, args, dims, **params) -> tuple:
        if any(dim is not None for dim in dims[:-1]):
            args = [batch_at_front(x, d, axis_data) for x, d in zip(args, dims)]
            return primitive.bind(*args, **params), 0
        *matrix, b = args
        axis, joined = (get_aval(b).ndim + place for place in places(**params))
        b = moveaxis(b, dims[-1], axis)
        before, after = b.shape[: joined - 1], b.shape[joined + 1 :]
        columns = b.shape[joined - 1] * b.shape[joined]
        flat = shaping.reshape(b, (*before, columns, *after))
        out = primitive.bind(*matrix, flat, **params)
        return shaping.reshape(out, b.shape), axis


def square(name: str, shape: Shape) -> Shape:
    """The shape of square matrices; ValueError for others."""
    if shape[0] != shape[1]:
        raise ValueError(
            f"The input to {name} must be a square matrix. Got shape {shape}."
        )
    return shape


def letter(value: str) -> np.uint8:
    """An option as LAPACK's functions take it: the code of a letter."""
    return np.uint8(ord(value))


def triangle(lower: bool) -> dict[str, Any]:
    """Which triangle LAPACK's functions read."""
    return {"uplo": letter("L" if lower else "U")}


def info_of(ctx: LoweringRuleContext, rank: int = 2) -> ShapedArray:
    """The type of `info`: for each matrix, a number that is zero on success.

    `rank` is that of the first operand without its batch. If this type is too small,
    the native function writes past its end.
    """
    return ShapedArray(ctx.avals_in[0].shape[:-rank], INT32)  # type: ignore[attr-defined]


def call_native(
    ctx: LoweringRuleContext,
    target: str,
    operands: Sequence[Any],
    results: Sequence[Any],
    attributes: dict[str, Any],
    aliases: Sequence[tuple[int, int]] = (),
    column_major: bool = True,
) -> list[Any]:
    """Call a native function on stacks of matrices; values of the types `results`.

    The arrays of the largest rank among the operands are matrices; the others are
    vectors, or numbers, for each matrix.
    """
    rank = max(aval.ndim for aval in ctx.avals_in)  # type: ignore[attr-defined]

    def order(aval: Any) -> tuple[int, ...]:
        slowest_last = tuple(reversed(range(aval.ndim)))
        if aval.ndim < rank or not column_major:
            return slowest_last
        return (slowest_last[1], slowest_last[0], *slowest_last[2:])

    call = hlo_parts.custom_call(
        target,
        [tensor_type(aval) for aval in results],
        operands,
        {name: attribute(name, value) for name, value in attributes.items()},
        operand_layouts=[order(aval) for aval in ctx.avals_in],
        result_layouts=[order(aval) for aval in results],
        aliases=dict(aliases),
    )
    place, batch = state.lowered_for, rank - (2 if column_major else 1)
    if batch and isinstance(place, Placement) and place.mesh.size > 1:
        values = [*call.operands, *call.results]
        if all(value.type.has_static_shape for value in values):  # as Shardy demands
            mark_batch(call, batch)
    return list(call.results)


def nan_where_failed(
    ctx: LoweringRuleContext,
    info: Any,
    values: Sequence[Any],
    avals: Sequence[Any],
    singular_is_fine: bool = False,
) -> list[Any]:
    """The results, or NaN for matrices with a nonzero `info`.

    With `singular_is_fine` a positive `info` is not a failure.
    """
    count = hlo.ir.RankedTensorType(info.type).rank
    of_info = ShapedArray(avals[0].shape[:count], INT32)

    def checked(info: Any, *results: Any) -> list[Any]:
        compare = elementwise.ge if singular_is_fine else elementwise.eq
        succeeded = compare(info, np.int32(0))
        out = []
        for x in results:
            nan = np.array(complex(np.nan, np.nan) if is_complex(x) else np.nan)
            ok = shaping.broadcast_in_dim(succeeded, x.shape, tuple(range(count)))
            out.append(elementwise.select(ok, x, broadcasting.full_like(x, nan)))
        return out

    inner = ctx.replace(avals_in=[of_info, *avals])
    return inner.lower_fun(checked, info, *values)


@dataclass(frozen=True)
class Native:
    """A row of the table of native functions: how one platform decomposes matrices.

    Attributes:
      target: the stem of LAPACK's name (a pair: for real and complex), or the whole
        name of a function for CUDA.
      options: `(operand type, **params)`, attributes by name.
      extra: `(operand type, **params)`, types of results between those of the
        equation and `info`, which are not used.
      fails: whether it says `info`.
      aliases: (operand, result) pairs that share memory.
    """

    target: str | tuple[str, str]
    options: Callable[..., dict[str, Any]] = lambda aval, **_: {}
    extra: Callable[..., list[Any]] = lambda aval, **_: []
    fails: bool = True
    aliases: tuple[tuple[int, int], ...] = ((0, 0),)
    singular_is_fine: bool = False


def stem_for(target: str | tuple[str, str], aval: Any) -> str:
    """LAPACK's name of a function, which may differ for complex matrices."""
    return target if isinstance(target, str) else target[is_complex(aval)]


def empty(avals: Sequence[Any], rank: int = 2) -> bool:
    """Whether matrices have no rows or columns: LAPACK divides by their number."""
    return any(size == 0 for aval in avals for size in aval.shape[aval.ndim - rank :])


def _native_lowering(row: Native, platform: str) -> Callable:
    def lower(ctx, *operands, **params) -> list[Any]:
        aval = ctx.avals_in[0]
        outs = list(ctx.avals_out)
        name = stem_for(row.target, aval)
        if platform == "cpu":
            name = lapack.target(name, aval.dtype)
        options = row.options(aval, **params)
        if empty([aval], min(2, aval.ndim)):
            return [ctx.full_like(0, out) for out in outs]
        types = [*outs, *row.extra(aval, **params)]
        if row.fails:
            types.append(info_of(ctx))
        results = call_native(ctx, name, operands, types, options, row.aliases)
        kept = results[: len(outs)]
        if not row.fails:
            return kept
        return nan_where_failed(ctx, results[-1], kept, outs, row.singular_is_fine)

    return lower
