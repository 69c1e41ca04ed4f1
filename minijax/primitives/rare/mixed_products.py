"""Products of two dtypes, with precisions and algorithms.

The block of `dot_general` (`dot.py`) multiplies operands of one dtype in the default
way. Here its type rule and its lowering are replaced by the whole ones.

In JAX: `lax/lax.py`, `_dot_general_dtype_rule`, `_handle_dot_precision`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import dtypes, hlo
from minijax.core.dot import (
    dot_general_p,
    dot_general_shape,
    lower_product,
    precision_config,
)
from minijax.core.language import ShapedArray
from minijax.core.rules import accepts, standard_type_rule
from minijax.support import element_types


def _rank_of_dtype(dtype) -> tuple:
    """XLA's order of precision: of two operands' dtypes the result has the higher."""
    is_complex = dtypes.issubdtype(dtype, np.complexfloating)
    part = np.empty(0, dtype).real.dtype if is_complex else dtype
    is_float = dtypes.issubdtype(part, np.floating)
    limits = dtypes.finfo(part) if is_float else None
    bits = 1 if part == np.dtype(bool) else element_types.itemsize_bits(part)
    return (
        is_complex,
        limits.maxexp if limits else -1,
        limits.nmant if limits else -1,
        bits,
        not dtypes.issubdtype(part, np.unsignedinteger),
    )


def dot_general_dtype(
    lhs, rhs, *, precision, preferred_element_type, name: str = "lax.dot_general", **_
) -> Any:
    """The more precise dtype of the two, or the preferred one if it is not narrower."""
    lhs_rank, rhs_rank = _rank_of_dtype(lhs.dtype), _rank_of_dtype(rhs.dtype)
    if lhs_rank == rhs_rank and lhs.dtype != rhs.dtype:
        raise TypeError(
            f"{name} argument type error: {lhs.dtype}, {rhs.dtype}. Neither "
            "dtype is more precise than the other; convert one operand."
        )
    dtype = lhs.dtype if lhs_rank >= rhs_rank else rhs.dtype
    preferred = preferred_element_type
    if preferred is None or dtype == preferred:
        return dtype
    if (
        not is_algorithm(precision)
        and not dtypes.issubdtype(dtype, np.floating)
        and element_types.itemsize_bits(preferred) < element_types.itemsize_bits(dtype)
    ):
        raise TypeError(
            "`preferred_element_type` must not be narrower than the original type, got "
            f"preferred_element_type of {preferred} for result type of {dtype}."
        )
    return preferred


dot_general_p.type_rule = standard_type_rule(
    "dot_general", dot_general_shape, dot_general_dtype
)


def convert(operand, aval: ShapedArray, dtype) -> Any:
    """A StableHLO value of type `aval` with another dtype."""
    if dtype is None or aval.dtype == dtype:
        return operand
    return hlo.stablehlo.convert(hlo.tensor_type(aval.shape, np.dtype(dtype)), operand)


def is_algorithm(precision) -> bool:
    """Whether a precision prepares the operands itself, as `DotAlgorithm` does."""
    return hasattr(precision, "prepare")


def prepared_operands(ctx, lhs, rhs, precision) -> tuple[Any, Any, Any, dict[str, Any]]:
    """The operands in the dtypes that a platform multiplies, the result's dtype there.

    The last part of the answer is the attribute of an algorithm, if one is asked for.

    In JAX: `lax/lax.py`, `_handle_dot_precision`.
    """
    if is_algorithm(precision):
        return precision.prepare(ctx, lhs, rhs)
    lhs_aval, rhs_aval, *_ = ctx.avals_in
    dtype = ctx.avals_out[0].dtype
    if lhs_aval.dtype != rhs_aval.dtype and not _multiplies_mixed(
        ctx.platform, lhs_aval.dtype, rhs_aval.dtype
    ):
        lhs = convert(lhs, lhs_aval, dtype)
        rhs = convert(rhs, rhs_aval, dtype)
    return lhs, rhs, dtype, {}


def precision_attribute(precision, dialect=None) -> Any:
    """The pair of precisions as an attribute of StableHLO (or CHLO) operations."""
    if precision is None or is_algorithm(precision):
        return precision_config(dialect=dialect)
    return precision_config(tuple(map(str, precision)), dialect)


@dot_general_p.def_lowering
def _lowering(ctx, lhs, rhs, *, dimension_numbers, precision, **params):
    (out_aval,) = ctx.avals_out
    lhs, rhs, dtype, options = prepared_operands(ctx, lhs, rhs, precision)
    result_type = hlo.tensor_type(out_aval.shape, dtype)
    config = precision_attribute(precision)
    out = lower_product(lhs, rhs, dimension_numbers, result_type, config, **options)
    return convert(out, out_aval.update(dtype=dtype), out_aval.dtype)


def _multiplies_mixed(platform: str, lhs, rhs) -> bool:
    """Whether a platform's code generator takes operands of two dtypes as they are."""
    if platform == "tpu":
        real = {np.floating, np.integer}
        return accepts(real, lhs) and accepts(real, rhs)
    names = (lhs.name, rhs.name)
    return all(n.startswith("float8") and n != "float8_e4m3b11fnuz" for n in names)
