"""Elementwise primitives: arithmetic, comparison, selection, powers, exp, sine.

Each block is a primitive with all its rules: what it means (in NumPy), which dtypes it
accepts, how it becomes StableHLO, its derivative and its transpose. Batching and types
come from the family (`rules.unary`, `rules.nary`). Below the blocks of a group stand
the functions of `lax` that bind them.

The derivatives are those of the usual tables; a comment explains each one that is not
obvious. Operations on bits are in `comparing.py`, rounding and remainders in
`rounding.py`, rarer functions in `elementary.py`, `hyperbolic.py` and `special.py`.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import dtypes, hlo, rules
from .language import Primitive, ShapedArray, get_aval, physical_aval
from .rules import (
    Zero,
    anything,
    batch_at_front,
    complexes,
    def_bilinear,
    def_jvp_with_output,
    def_linear,
    def_zero_jvp,
    floats,
    is_linear,
    moveaxis,
    nary,
    numbers,
    ordered,
    scalar_like,
    sum_over,
    unary,
)
from .rules import constant_like as _scalar
from .shaping import Shape, broadcast_in_dim, compare, filled_like, reshape


def one_like(x) -> Any:
    """The number one as a scalar of the dtype of `x`, weakly typed if `x` is.

    `constant_like` is weakly typed for weakly typed scalars only, not for arrays. A
    rule uses the function that JAX's rule uses, so that results have JAX's weak type.
    """
    return scalar_like(get_aval(x), 1)


def unbroadcast(aval: ShapedArray, ct) -> Any:
    """The cotangent of an operand that was repeated: `ct` summed over the copies.

    Elementwise primitives repeat scalars and dimensions of size 1. The transpose of
    repetition is summation. Where a mesh cuts the result otherwise than the operand,
    the cotangent is brought to the cut of the operand.
    """
    kind, cut = get_aval(ct), aval.cut
    shape, found = kind.shape, kind.cut or (cut and cut.whole(aval.ndim))
    if aval.shape == shape and cut in (None, found):
        return ct
    if not aval.shape:
        return sum_over(ct, tuple(range(len(shape))))
    repeated = tuple(
        axis for axis, (a, b) in enumerate(zip(shape, aval.shape)) if a != b
    )
    total = sum_over(ct, repeated) if repeated else ct
    return reshape(total, aval.shape, out_sharding=cut)


def broadcast_like(x, shape: Shape) -> Any:
    """`x` repeated to `shape`, as elementwise primitives repeat their operands."""
    x_shape = get_aval(x).shape
    if x_shape == shape:
        return x
    if not x_shape:
        return broadcast_in_dim(x, shape, ())
    kept = [axis for axis, (a, b) in enumerate(zip(x_shape, shape)) if a == b]
    squeezed = reshape(x, tuple(x_shape[axis] for axis in kept))
    return broadcast_in_dim(squeezed, shape, tuple(kept))


def _without_none(name: str) -> Any:
    """A `pretty` rule that prints the parameter `name` only if it is not None."""

    def pretty(params: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in params.items() if k != name or v is not None}

    return pretty


# ----------------------------------------------------------------------------------
# Sums and products
# ----------------------------------------------------------------------------------

add_p = nary("add", [numbers, numbers], np.add, "add")


@add_p.def_jvp_rule
def _add_jvp(primals, tangents) -> Any:  # d(x + y) = dx + dy
    out = add(*primals)
    x_dot, y_dot = tangents
    if type(x_dot) is Zero or type(y_dot) is Zero:
        given = y_dot if type(x_dot) is Zero else x_dot
        return out, broadcast_like(given, get_aval(out).shape)
    return out, add(x_dot, y_dot)


@add_p.def_transpose
def _add_transpose(ct, x, y) -> list:
    return [unbroadcast(arg.aval, ct) if is_linear(arg) else None for arg in (x, y)]


# Sums the cotangents of one variable. It differs from `add` in three ways: its
# arguments always have the same shape, its result has the type of the first one, and it
# is printed as `add_any`.
add_any_p = rules.add_any_p
add_any_p.meaning = np.add
add_any_p.def_abstract_eval(lambda x, y: x)
add_any_p.def_impl(lambda x, y: add_p.bind(x, y))


def _add_any_batch(axis_data, args, dims) -> Any:
    # Unlike `add`, it repeats no operand: both need a batch axis, at one position.
    dim = dims[0] if dims[1] is rules.not_mapped else dims[1]
    x, y = (rules.match_axis(axis_data, arg, d, dim) for arg, d in zip(args, dims))
    return add_any_p.bind(x, y), dim


add_any_p.batch = _add_any_batch
add_any_p.def_lowering(rules.nary_lowering("add"))
def_linear(add_any_p, lambda ct, x, y: [ct, ct])

sub_p = nary("sub", [numbers, numbers], np.subtract, "subtract")


@sub_p.def_jvp_rule
def _sub_jvp(primals, tangents) -> Any:  # d(x - y) = dx - dy
    out = sub(*primals)
    x_dot, y_dot = tangents
    shape = get_aval(out).shape
    if type(y_dot) is Zero:
        return out, broadcast_like(x_dot, shape)
    if type(x_dot) is Zero:
        return out, broadcast_like(neg(y_dot), shape)
    return out, sub(x_dot, y_dot)


@sub_p.def_transpose
def _sub_transpose(ct, x, y) -> list:
    return [
        unbroadcast(x.aval, ct) if is_linear(x) else None,
        unbroadcast(y.aval, neg(ct)) if is_linear(y) else None,
    ]


def _mul_lowering(ctx, x, y, *, out_dtype=None):
    x, y = ctx.broadcast((x, y))
    if out_dtype is not None:
        x = hlo.stablehlo.convert(ctx.result_type(), x)
        y = hlo.stablehlo.convert(ctx.result_type(), y)
    return hlo.stablehlo.multiply(x, y)


mul_p = nary(
    "mul",
    [numbers, numbers],
    lambda x, y, out_dtype=None: np.multiply(x, y),
    _mul_lowering,
    result_dtype=lambda x, y, out_dtype=None: np.dtype(out_dtype or x.dtype),
)
mul_p.pretty = _without_none("out_dtype")
def_bilinear(  # d(x y) = dx y + x dy
    mul_p,
    lambda ct, x, y, out_dtype=None: unbroadcast(
        x.aval, mul(ct, y, out_dtype=out_dtype and x.aval.dtype)
    ),
    lambda ct, x, y, out_dtype=None: unbroadcast(
        y.aval, mul(x, ct, out_dtype=out_dtype and y.aval.dtype)
    ),
)

div_p = nary(
    "div",
    [numbers, numbers],
    lambda x, y: x // y if np.issubdtype(x.dtype, np.integer) else x / y,
    "divide",
)
div_p.def_jvp(  # d(x / y) = dx / y - dy x / y^2
    lambda t, x, y: div(t, y), lambda t, x, y: mul(mul(neg(t), x), integer_pow(y, -2))
)


@div_p.def_transpose
def _div_transpose(ct, x, y) -> list:
    if is_linear(y):
        raise ValueError("div is not linear in its divisor and cannot be transposed")
    return [unbroadcast(x.aval, div(ct, y)), None]


neg_p = unary("neg", numbers, np.negative, "negate")
def_linear(neg_p, lambda ct, x: [neg(ct)])


def add(x, y) -> Any:
    """Elementwise sum x + y of one dtype; scalars and sizes of 1 are repeated."""
    return add_p.bind(x, y)


def sub(x, y) -> Any:
    """Elementwise difference x - y."""
    return sub_p.bind(x, y)


def mul(x, y, *, out_dtype=None) -> Any:
    """Elementwise product x y, computed in `out_dtype` if given."""
    return mul_p.bind(x, y, out_dtype=out_dtype)


def div(x, y) -> Any:
    """Elementwise quotient x / y; of integers, rounded towards zero."""
    return div_p.bind(x, y)


def neg(x) -> Any:
    """Elementwise negation -x."""
    return neg_p.bind(x)


# ----------------------------------------------------------------------------------
# Comparison
# ----------------------------------------------------------------------------------


def comparison(
    name: str, accepted: set, meaning: Callable, direction: str, float_kind="FLOAT"
) -> Primitive:
    """A comparison primitive; its result is boolean and its tangent is zero."""

    def lower(ctx, x, y):
        x, y = ctx.broadcast((x, y))
        dtype = ctx.avals_in[0].dtype
        if dtypes.is_extended(dtype):
            return dtype.compare(ctx, x, y, direction)
        return compare(x, y, direction, dtype, float_kind)

    kinds = [accepted, accepted]
    primitive = nary(name, kinds, meaning, lower, lambda x, y: np.dtype(bool))
    def_zero_jvp(primitive)
    return primitive


# Random keys can be equal but have no order.
eq_p = comparison("eq", anything | {dtypes.extended}, np.equal, "EQ")
ne_p = comparison("ne", anything | {dtypes.extended}, np.not_equal, "NE")
ge_p = comparison("ge", ordered, np.greater_equal, "GE")
gt_p = comparison("gt", ordered, np.greater, "GT")
le_p = comparison("le", ordered, np.less_equal, "LE")
lt_p = comparison("lt", ordered, np.less, "LT")


def eq(x, y) -> Any:
    """Elementwise x == y, as booleans; NaN equals nothing."""
    return eq_p.bind(x, y)


def ne(x, y) -> Any:
    """Elementwise x != y, as booleans."""
    return ne_p.bind(x, y)


def ge(x, y) -> Any:
    """Elementwise x >= y, as booleans."""
    return ge_p.bind(x, y)


def gt(x, y) -> Any:
    """Elementwise x > y, as booleans."""
    return gt_p.bind(x, y)


def le(x, y) -> Any:
    """Elementwise x <= y, as booleans."""
    return le_p.bind(x, y)


def lt(x, y) -> Any:
    """Elementwise x < y, as booleans."""
    return lt_p.bind(x, y)


# ----------------------------------------------------------------------------------
# Selection
# ----------------------------------------------------------------------------------


def _select_shape(which: ShapedArray, *cases: ShapedArray) -> Shape:
    if not cases:
        raise TypeError("select must have at least one case")
    first = cases[0].shape
    if any(case.shape != first for case in cases):
        shapes = ", ".join(str(case.shape) for case in cases)
        raise TypeError(
            f"select cases must have the same shapes, got [{shapes}]. Repeat the "
            "smaller ones with `lax.broadcast_in_dim`, or use `minijax.numpy.where`."
        )
    if which.shape and which.shape != first:
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, got "
            f"`which` shape {which.shape} but case shape {first}."
        )
    return first


def _select_dtype(which: ShapedArray, *cases: ShapedArray) -> Any:
    rules.check_same_dtypes("select", cases)
    if not rules.accepts(rules.bool_or_int, which.dtype):
        raise TypeError(
            "select `which` must be boolean or integer type, got "
            f"{which.dtype.name}. Write a comparison, such as `x > 0`."
        )
    if which.dtype == np.bool_ and len(cases) > 2:
        raise TypeError("select with boolean `which` cannot have > 2 cases.")
    return cases[0].dtype


def _select_meaning(which, *cases) -> Any:
    index = np.clip(np.asarray(which).astype(int), 0, len(cases) - 1)
    return np.choose(index, cases).astype(cases[0].dtype)


select_n_p = rules.standard_primitive(
    "select_n",
    _select_shape,
    _select_dtype,
    weak_type_rule=lambda which, *cases: all(case.weak_type for case in cases),
    meaning=_select_meaning,
)


@select_n_p.def_jvp_rule
def _select_jvp(primals, tangents) -> Any:
    which, *cases = primals
    case_tangents = tangents[1:]
    out = select_n(which, *cases)
    given = [t for t in case_tangents if type(t) is not Zero]
    if not given:
        return out, rules.zero_tangent_of(out)
    zeros = filled_like(given[0], 0)
    dense = [zeros if type(t) is Zero else t for t in case_tangents]
    return out, select_n(which, *dense)


@select_n_p.def_transpose
def _select_transpose(ct, which, *cases) -> list:
    """Each case gets the cotangents of the entries where it was selected."""
    aval = get_aval(which)
    zeros = filled_like(ct, 0)

    def chosen(number: int) -> Any:
        if aval.dtype == np.bool_:
            return select(which, ct, zeros) if number else select(which, zeros, ct)
        return select(eq(which, scalar_like(aval, number)), ct, zeros)

    cts = [chosen(i) if is_linear(case) else None for i, case in enumerate(cases)]
    return [None, *cts]


@select_n_p.def_batch
def select_batch(axis_data, args, dims) -> Any:
    (which, *cases), (which_dim, *case_dims) = args, dims
    which_aval, *case_avals = (get_aval(arg) for arg in args)
    first = case_avals[0].shape
    same_case_shapes = all(aval.shape == first for aval in case_avals)
    if all(dim == which_dim for dim in case_dims):
        if which_aval.shape != first:  # one scalar `which` for each example
            cut = case_avals[0].cut
            which = broadcast_in_dim(which, first, (which_dim,), out_sharding=cut)
        return select_n(which, *cases), which_dim
    aligned = len(set(case_dims)) == 1 or same_case_shapes
    if not which_aval.shape and None not in case_dims and aligned:
        wanted = case_dims[0]
        moved = [moveaxis(c, dim, wanted) for c, dim in zip(cases, case_dims)]
        return select_n(which, *moved), wanted
    if which_aval.shape:
        which = batch_at_front(which, which_dim, axis_data)
    if any(aval.shape for aval in case_avals):
        cases = [batch_at_front(c, d, axis_data) for c, d in zip(cases, case_dims)]
    which_shape, case_shape = get_aval(which).shape, get_aval(cases[0]).shape
    if 0 < len(which_shape) < len(case_shape):
        cut = get_aval(cases[0]).cut
        which = broadcast_in_dim(which, case_shape, (0,), out_sharding=cut)
    if len(which_shape) > len(case_shape):
        cases = [
            broadcast_in_dim(case, which_shape, (), out_sharding=get_aval(which).cut)
            for case in cases
        ]
    return select_n(which, *cases), 0


@select_n_p.def_lowering
def _select_lowering(ctx, which, *cases) -> Any:
    (which_aval, *_), (out,) = ctx.avals_in, ctx.avals_out
    if len(cases) == 1:
        return cases[0]
    shape = physical_aval(out).shape
    if shape != out.shape:  # typed keys: the words of an entry are trailing axes
        which = ctx.broadcast_in_dim(which, which_aval, shape, range(which_aval.ndim))
        which_aval = which_aval.update(shape=shape)
    if which_aval.dtype == np.bool_:
        return hlo.stablehlo.select(which, cases[1], cases[0])

    def choose(offset: int, some: Sequence[Any]) -> Any:
        """Select among `some`, whose first number is `offset`, by a binary tree."""
        if len(some) == 1:
            return some[0]
        middle = len(some) // 2
        bound = ctx.full_like(offset + middle, which_aval)
        below = compare(which, bound, "LT", which_aval.dtype)
        lower = choose(offset, some[:middle])
        upper = choose(offset + middle, some[middle:])
        return hlo.stablehlo.select(below, lower, upper)

    return choose(0, cases)


def select_n(which, *cases) -> Any:
    """For each entry, the value of the case whose number `which` holds.

    Args:
      which: booleans (two cases: the first where false) or integers from 0 up to the
        number of cases; a scalar or of the shape of the cases.
      *cases: arrays of one shape and dtype.

    Raises:
      ValueError: without cases.
      TypeError: when shapes or dtypes differ.
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return select_n_p.bind(which, *cases)


def select(pred, on_true, on_false) -> Any:
    """`on_true` where `pred` is true, `on_false` elsewhere; both are computed.

    Args:
      pred: booleans, a scalar or of the shape of the others.
      on_true, on_false: arrays of one shape and dtype.

    Raises:
      TypeError: when shapes or dtypes differ.
    """
    return select_n_p.bind(pred, on_false, on_true)


# ----------------------------------------------------------------------------------
# Powers, exponentials, logarithms
# ----------------------------------------------------------------------------------


def accurate_lowering(operation: str) -> Callable:
    """The lowering rule of a function with an `accuracy` parameter.

    `accuracy` is None, the name of a mode, or an object of a class of `accuracy.py`.
    """

    def lower(ctx, x, *, accuracy):
        if accuracy is None:
            return ctx.operation(operation)(x)
        named = (0.0, 0.0, 0, str(accuracy).upper())
        fields = getattr(accuracy, "fields", named)
        if fields[3] not in ("HIGHEST", "DEFAULT", "TOLERANCE"):  # LLVM would abort
            raise NotImplementedError(f"accuracy: {accuracy!r} is no lax.AccuracyMode")
        attribute = hlo.stablehlo.ResultAccuracyAttr.get(*fields)
        return ctx.operation(operation)(x, result_accuracy=attribute)

    return lower


def accurate(
    name: str, accepted: set, meaning: Callable, lower: str | Callable
) -> Primitive:
    """A unary primitive with an `accuracy` parameter."""
    primitive = unary(
        name,
        accepted,
        lambda x, accuracy=None: meaning(x),
        lower if callable(lower) else accurate_lowering(lower),
    )
    primitive.pretty = _without_none("accuracy")
    return primitive


inexact = floats | complexes

exp_p = accurate("exp", inexact, np.exp, "exponential")
def_jvp_with_output(exp_p, lambda t, out, x, **_: mul(t, out))


log_p = accurate("log", inexact, np.log, "log")
log_p.def_jvp(lambda t, x, **_: div(t, x))

sqrt_p = accurate("sqrt", inexact, np.sqrt, "sqrt")
def_jvp_with_output(sqrt_p, lambda t, out, x, **_: mul(t, div(_scalar(x, 0.5), out)))

square_p = unary(
    "square", numbers, np.square, lambda ctx, x: hlo.stablehlo.multiply(x, x)
)
def_jvp_with_output(square_p, lambda t, out, x: mul(t, mul(_scalar(x, 2), x)))


integer_pow_p = unary(
    "integer_pow",
    numbers,
    lambda x, y: np.power(x, y) if y >= 0 else 1 / np.power(x, -y),
    lambda ctx, x, y: _integer_pow_lowering(ctx, x, y),
)


def _integer_pow_lowering(ctx, x, y: int) -> Any:
    """Repeated squaring, unrolled over the bits of y."""
    (aval,) = ctx.avals_in
    remaining = y if y >= 0 else -y
    result = None
    while remaining:
        if remaining & 1:
            result = x if result is None else hlo.stablehlo.multiply(result, x)
        remaining >>= 1
        if remaining:
            x = hlo.stablehlo.multiply(x, x)
    one = ctx.full_like(1, aval)
    if result is None:
        return one
    return hlo.stablehlo.divide(one, result) if y < 0 else result


def _integer_pow_jvp(t, x, *, y: int) -> Any:  # y x^(y-1)
    if y == 0:
        return filled_like(t, 0)
    if y == 1:
        return t
    power = x if y == 2 else integer_pow(x, y - 1)
    return mul(t, mul(_scalar(x, y), power))


integer_pow_p.def_jvp(_integer_pow_jvp)


def exp(x, *, accuracy=None) -> Any:
    """Elementwise exponential e^x."""
    return exp_p.bind(x, accuracy=accuracy)


def log(x, *, accuracy=None) -> Any:
    """Elementwise natural logarithm."""
    return log_p.bind(x, accuracy=accuracy)


def sqrt(x, *, accuracy=None) -> Any:
    """Elementwise square root."""
    return sqrt_p.bind(x, accuracy=accuracy)


def square(x) -> Any:
    """Elementwise square x^2."""
    return square_p.bind(x)


def integer_pow(x, y: int) -> Any:
    """Elementwise x^y for a Python int y, by repeated squaring.

    Raises TypeError for integer x and negative y.
    """
    if not hasattr(y, "__index__"):
        raise TypeError(f"integer_pow: y must be an integer, got {y!r}; use pow")
    if y < 0 and dtypes.issubdtype(get_aval(x).dtype, np.integer):
        raise TypeError(f"Integers cannot be raised to negative powers, got {x}**{y}")
    return integer_pow_p.bind(x, y=y)


# ----------------------------------------------------------------------------------
# Sine, cosine, hyperbolic tangent
# ----------------------------------------------------------------------------------

sin_p = accurate("sin", inexact, np.sin, "sine")
sin_p.def_jvp(lambda t, x, accuracy: mul(t, cos(x, accuracy=accuracy)))

cos_p = accurate("cos", inexact, np.cos, "cosine")
cos_p.def_jvp(lambda t, x, accuracy: neg(mul(t, sin(x, accuracy=accuracy))))

tanh_p = accurate("tanh", inexact, np.tanh, "tanh")
def_jvp_with_output(  # 1 - tanh^2 = (1 + tanh)(1 - tanh)
    tanh_p, lambda t, out, x, **_: mul(add(t, mul(t, out)), sub(one_like(x), out))
)


def sin(x, *, accuracy=None) -> Any:
    """Elementwise sine; x in radians."""
    return sin_p.bind(x, accuracy=accuracy)


def cos(x, *, accuracy=None) -> Any:
    """Elementwise cosine; x in radians."""
    return cos_p.bind(x, accuracy=accuracy)


def tanh(x, *, accuracy=None) -> Any:
    """Elementwise hyperbolic tangent."""
    return tanh_p.bind(x, accuracy=accuracy)
