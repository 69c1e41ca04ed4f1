"""What the rules of a primitive look like, and the constructors for whole families.

A primitive is one block: its meaning, its type, its derivative, its transpose, its
batch rule and its lowering to StableHLO. Rules are attributes of the `Primitive`, which
the interpreters (`autodiff.py`, `batching.py`, `lowering.py`) read. Rules import no
interpreter: it passes what a rule needs as an argument, such as the context `ctx` or
the `axis_data`. In the table, `ct` is a cotangent, and refs are mutable arrays.

======================  ==============================================================
attribute               called as
======================  ==============================================================
`meaning`               `(*numpy_arrays, **params)`, the reference in NumPy
`type_rule`             `(*avals, **params) -> (aval or avals, effects)`
`jvp_terms`             per argument: `(tangent, *primals, **params) -> tangent`
`jvp`                   `(primals, tangents, **params) -> (out, tangent out)`
`transpose`             `(ct, *args, **params) -> [ct or None per argument] or None`
`batch`                 `(axis_data, args, dims, **params) -> (out, out dim)`
`lowerings[platform]`   `(ctx, *operands, **params) -> value or values`
`linearize`             `(nonzeros, *primals, **params)`, see `core/autodiff.py`
`partial_eval`          `(trace, args, params)`, see `core/partial_eval.py`
`dce`                   `(used_outputs, eqn) -> smaller eqn, or None`
`staging`               `(trace, args, params) -> outputs or NotImplemented`: instead
                        of an equation, while a program is written down
`pretty`                `(params) -> params to print`, or a printer of the equation
======================  ==============================================================

In JAX: the tables `ad.primitive_jvps`, `ad.primitive_transposes`,
`batching.fancy_primitive_batchers`, `mlir._lowerings`; and `lax/utils.py`,
`standard_primitive`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import dtypes, errors
from .array import put
from .avals import Typed
from .language import (
    AbstractValue,
    Primitive,
    ShapedArray,
    eval_trace,
    get_aval,
    no_effects,
    numpy_scalar,
    register,
    type_extensions,
)
from .state import state

# Types in signatures. Rules annotate only parameters of unusual types; the table above
# describes the others.
Params = dict[str, Any]  # the parameters of an equation
Shape = tuple[int, ...]
Dims = Sequence[int | None]  # where each value has its batch axis, if it has one
Flags = Sequence[bool]  # what holds of each value or not, such as being nonzero

# ----------------------------------------------------------------------------------
# Vocabulary of the interpreters
# ----------------------------------------------------------------------------------


class Zero:
    """A tangent or cotangent that is zero, for which nothing is computed.

    In JAX: `ad_util.py`, `Zero`.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    def instantiate(self) -> Any:
        return zeros_of(self.aval)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


# A value without a batch axis has this as its dimension.
not_mapped = None


class Accumulator(Typed):
    """Where the cotangents of one linear variable add up during the backward pass.

    For a transpose rule it also marks an argument in which the operation is linear; its
    `aval` is the type of the cotangent.

    Here the sum is a value. A subclass may add in place, into memory that outlives the
    backward pass (a ref). Of such a class the backward pass uses only the two class
    attributes, `transposed_input_aval` and `transposed_input`.

    In JAX: `interpreters/ad.py`, `ValAccum` (and the older `UndefinedPrimal`).
    """

    __slots__ = ("aval", "value")

    # Whether cotangents are added in place, into memory that a transposed program takes
    # as an input.
    in_place = False
    # Whether the linear variable is itself mutable memory. Its equations must be
    # transposed even when the cotangents of their outputs are zero.
    is_ref = False

    def __init__(self, aval: AbstractValue, value: Any = None):
        self.aval = aval
        self.value = value

    def accum(self, cotangent: Any) -> None:
        """Add a cotangent; `Zero` and None add nothing."""
        if cotangent is None or type(cotangent) is Zero:
            return
        if self.value is None:
            self.value = cotangent
        else:
            self.value = add_tangents(self.value, cotangent)

    def freeze(self) -> Any:
        """The sum of what was added, or `Zero`."""
        return Zero(self.aval) if self.value is None else self.value

    @classmethod
    def transposed_input_aval(cls, aval: AbstractValue) -> AbstractValue:
        """The type of `transposed_input` for a linear variable of type `aval`."""
        raise TypeError(f"{cls.__name__} is not an input of a transposed program")

    def transposed_input(self) -> Any:
        """The memory that a transposed program takes as an input; None without it."""
        return None

    def __repr__(self) -> str:
        return f"Accumulator({self.aval})"


class NullAccumulator(Accumulator):
    """An accumulator for a cotangent that is not needed: it drops what is added."""

    __slots__ = ()

    def accum(self, cotangent: Any) -> None:
        pass


# The accumulator class for the variables of each class of types; `Accumulator` for
# classes without an entry. The file that defines such a class makes the entry.
accumulator_of_class: dict[type[AbstractValue], type[Accumulator]] = {}


def accumulator_for(aval: AbstractValue) -> Accumulator:
    """An empty accumulator for a linear variable of type `aval`."""
    kind = accumulator_of_class.get(type(aval), Accumulator)
    return kind(aval.to_ct_aval())


def is_linear(x: Any) -> bool:
    """Whether a transpose rule's argument is an accumulator (JAX: undefined primal)."""
    return isinstance(x, Accumulator)


@dataclass(frozen=True)
class AxisData:
    """The axis that `vmap` adds: name (or `no_axis_name`), size, and cut over a mesh.

    In JAX: `interpreters/batching.py`, `AxisData`.
    """

    name: Hashable
    size: int
    spmd_name: Any = None
    cut: Any = None


class _NoAxisName:
    def __repr__(self) -> str:
        return "<no axis name>"


no_axis_name = _NoAxisName()

# ----------------------------------------------------------------------------------
# Four primitives that the interpreters and the rules of other primitives use. The files
# named here set their rules.
# ----------------------------------------------------------------------------------

add_any_p = register(Primitive("add_any"))  # arithmetic.py
broadcast_in_dim_p = register(Primitive("broadcast_in_dim"))  # shaping.py
transpose_p = register(Primitive("transpose"))  # shaping.py
reduce_sum_p = register(Primitive("reduce_sum"))  # sums.py


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents or cotangents, either of which may be `Zero`."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_any_p.bind(x, y)


def zeros_of(aval: AbstractValue) -> Any:
    """An array of zeros of a given type (of float0, a NumPy array)."""
    assert isinstance(aval, ShapedArray)
    if dtypes.is_float0(aval.dtype):
        if state.trace is eval_trace or not aval.shape:
            return np.zeros(aval.shape, dtypes.float0)
        return _broadcast(np.zeros((), dtypes.float0), aval.shape)
    zeros = scalar_like(aval, 0)
    if aval.shape:
        zeros = _broadcast(zeros, aval.shape, (), aval.cut)
    else:
        zeros = _as_array(zeros, aval)
    for extension in type_extensions.values():
        zeros = extension.zeros(aval, zeros)
    return zeros


def final_sharding(place: Any, name: str) -> Any:
    """The parameter for `place`, the `out_sharding` that a user passed to `name`."""
    for extension in type_extensions.values():
        place = extension.final(place, name)
    return place


def _broadcast(x: Any, shape: Shape, dims: Shape = (), sharding: Any = None) -> Any:
    """`x` repeated to `shape`; axis `i` of `x` becomes axis `dims[i]` of the result."""
    return broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=dims, sharding=sharding
    )


def _as_array(scalar: Any, aval: ShapedArray) -> Any:
    """A scalar as a value with the methods of an array, because users may receive it.

    The parents of the current trace lead to the outermost one. If it computes, the
    result is an Array; if it writes a program, a tracer of that program.
    """
    trace = state.trace
    while hasattr(trace, "parent"):
        trace = trace.parent
    if trace is eval_trace:
        kind = ShapedArray((), aval.dtype, aval.weak_type)
        return put(np.asarray(scalar, aval.dtype), kind)
    return trace.lift(scalar) if hasattr(trace, "lift") else scalar


def scalar_like(aval: Any, value: Any) -> Any:
    """`value` as a scalar of the dtype and weak type of `aval`: a literal in jaxprs."""
    dtype = np.dtype(aval.dtype)
    if aval.weak_type:
        python_type = dtypes.scalar_type_of(dtype)
        if dtypes.canonicalize_dtype(python_type) == dtype:
            return python_type(value)
    return numpy_scalar(value, dtype, aval.weak_type)


def constant_like(x: Any, value: Any) -> Any:
    """`value` as a scalar of the dtype of `x`, weakly typed if `x` is a weak scalar."""
    aval = get_aval(x)
    return scalar_like(aval.strip_weak_type() if aval.shape else aval, value)


def instantiate(tangent: Any) -> Any:
    """A tangent as an array: `Zero` becomes zeros."""
    return zeros_of(tangent.aval) if isinstance(tangent, Zero) else tangent


def zero_tangent_of(primal: Any) -> Zero:
    """The zero tangent of a value."""
    return Zero(get_aval(primal).to_tangent_aval())


def broadcast_axis(x: Any, batch: AxisData, axis: int) -> Any:
    """`x` repeated for each example of a batch, along a new axis at `axis`."""
    aval = get_aval(x)
    shape = list(aval.shape)
    shape.insert(axis, batch.size)
    dims = tuple(d for d in range(len(shape)) if d != axis)
    cut = batch.cut and batch.cut.inserted_in(aval, axis)
    return _broadcast(x, tuple(shape), dims, cut)


def sum_over(x: Any, axes: tuple[int, ...], sharding: Any = None) -> Any:
    """The sum of `x` over some axes: the transpose of repeating it."""
    return reduce_sum_p.bind(x, axes=axes, out_sharding=sharding)


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """`x` with one axis moved, by a `transpose`; `x` itself if it is there already."""
    if source == destination:
        return x
    permutation = [d for d in range(get_aval(x).ndim) if d != source]
    permutation.insert(destination, source)
    return transpose_p.bind(x, permutation=tuple(permutation))


def match_axis(batch: AxisData, x: Any, dim: int | None, wanted: int | None) -> Any:
    """`x` with its batch axis at `wanted`: moved there, or added by repeating `x`."""
    if dim == wanted:
        return x
    if wanted is None:
        raise errors.value_error(
            f"at vmap out_axes, got axis spec None but output was batched on axis "
            f"{dim}. The results differ from example to example: give them an axis."
        )
    if dim is not_mapped:
        return broadcast_axis(x, batch, wanted)
    return moveaxis(x, dim, wanted)


def batch_at_front(x: Any, dim: int | None, batch: AxisData) -> Any:
    """`x` with its batch axis first; an unmapped `x` is repeated for each example."""
    return match_axis(batch, x, dim, 0)


# ----------------------------------------------------------------------------------
# Type rules
# ----------------------------------------------------------------------------------


def standard_type_rule(
    name: str,
    shape_rule: Callable,
    dtype_rule: Callable,
    weak_type_rule: Callable | None = None,
) -> Callable:
    """A type rule put together from one small rule for each field of the type.

    Each is called with the types of the operands and the parameters. By default the
    result is weakly typed if all operands are. `programs/sharding/explicit_types.py`
    adds how it is cut over a mesh.
    """

    def rule(*avals: ShapedArray, **params) -> tuple[ShapedArray, frozenset]:
        for aval in avals:
            if not isinstance(aval, ShapedArray):
                raise TypeError(
                    f"{name} takes arrays, got a value of type {aval}; the content of "
                    "a ref is `ref[...]`"
                )
        if weak_type_rule is None:
            weak = bool(avals) and all(aval.weak_type for aval in avals)
        else:
            weak = weak_type_rule(*avals, **params)
        # A result varies over the mesh axes over which any operand does.
        vma = frozenset().union(*(aval.vma for aval in avals))
        shape = shape_rule(*avals, **params)
        dtype = dtype_rule(*avals, **params)
        return ShapedArray(shape, dtype, weak, None, vma), no_effects

    return rule


def standard_primitive(
    name: str,
    shape_rule: Callable,
    dtype_rule: Callable,
    weak_type_rule: Callable | None = None,
    meaning: Callable | None = None,
) -> Primitive:
    """A primitive with one array as its result and a type rule in small parts.

    In JAX: `lax/utils.py`, `standard_primitive`.
    """
    primitive = register(Primitive(name))
    primitive.meaning = meaning
    primitive.type_rule = standard_type_rule(
        name, shape_rule, dtype_rule, weak_type_rule
    )
    return primitive


# The dtypes that a primitive accepts, as sets of NumPy's abstract kinds.
floats = {np.floating}
complexes = {np.complexfloating}
ints = {np.integer}
bool_or_int = {np.integer, np.bool_}
numbers = {np.integer, np.floating, np.complexfloating}
ordered = {np.integer, np.floating, np.bool_}
anything = {np.integer, np.floating, np.complexfloating, np.bool_}


def accepts(accepted: set, dtype: Any) -> bool:
    """Whether `dtype` is of one of the accepted kinds."""
    return any(dtypes.issubdtype(dtype, kind) for kind in accepted)


def check_accepted(name: str, position: str, accepted: set, dtype: Any) -> None:
    """TypeError, naming the operand, when a dtype is not accepted."""
    if not accepts(accepted, dtype):
        kinds = ", ".join(sorted(kind.__name__ for kind in accepted))
        raise TypeError(
            f"{name} does not accept dtype {dtype.name}{position}. "
            f"Accepted dtypes are subtypes of {kinds}."
        )


def check_same_dtypes(name: str, avals: Sequence[ShapedArray]) -> None:
    """TypeError unless all operands have one dtype, because lax does not promote."""
    first = avals[0].dtype
    if all(aval.dtype == first for aval in avals):
        return
    names = ", ".join(aval.dtype.name for aval in avals)
    raise TypeError(
        f"lax.{name} requires arguments to have the same dtypes, got {names}. Tip: "
        "minijax.numpy functions (and the operators) promote dtypes automatically; or "
        f"convert one operand, as in `lax.convert_element_type(x, {first.name!r})`."
    )


def broadcast_shapes_of_operands(
    name: str, shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """The shape of an elementwise result.

    Scalars are repeated to any shape; other operands must have one rank, and dimensions
    of size 1 are repeated. Otherwise TypeError, with all shapes.
    """
    arrays = [shape for shape in shapes if shape]
    if not arrays:
        return ()
    result = arrays[0]
    for shape in arrays[1:]:
        if shape == result:
            continue
        if len(shape) != len(result):
            raise TypeError(
                f"{name}: arrays must have the same number of dimensions, got shapes "
                f"{', '.join(map(str, shapes))}. Add dimensions of size 1 with "
                "`x[None]` or `lax.expand_dims`, or use the minijax.numpy function."
            )
        if any(a != b and a != 1 and b != 1 for a, b in zip(result, shape)):
            raise TypeError(
                f"{name} got incompatible shapes for broadcasting: "
                f"{', '.join(map(str, shapes))}. Each dimension must be equal or 1."
            )
        result = tuple(b if a == 1 else a for a, b in zip(result, shape))
    return result


# ----------------------------------------------------------------------------------
# Families
# ----------------------------------------------------------------------------------


def unary(
    name: str,
    accepted: set,
    meaning: Callable,
    lower: str | Callable,
    result_dtype: Callable | None = None,
) -> Primitive:
    """An elementwise primitive of one operand.

    `lower` is the name of an operation of StableHLO (`"sine"`) or CHLO (`"chlo.erf"`),
    or a lowering rule. `result_dtype` maps the operand's dtype to the result's.

    In JAX: `lax/lax.py`, `unop`.
    """

    def dtype_rule(x: ShapedArray, **_) -> Any:
        check_accepted(name, "", accepted, x.dtype)
        return x.dtype if result_dtype is None else result_dtype(x.dtype)

    primitive = _elementwise(name, lambda x, **_: x.shape, dtype_rule, meaning, lower)
    primitive.batch = elementwise_batch(primitive)
    return primitive


def nary(
    name: str,
    accepted: Sequence[set],
    meaning: Callable,
    lower: str | Callable,
    result_dtype: Callable | None = None,
    same_dtypes: bool = True,
) -> Primitive:
    """An elementwise primitive of several operands, which broadcasts sizes of 1.

    `accepted` has one set of kinds for each operand. Arguments that are scalars stay
    scalars in the jaxpr (`mul b 2.0:f32[]`).

    In JAX: `lax/lax.py`, `naryop`.
    """

    def dtype_rule(*avals: ShapedArray, **_) -> Any:
        for position, (aval, kinds) in enumerate(zip(avals, accepted)):
            check_accepted(name, f" at position {position}", kinds, aval.dtype)
        if same_dtypes:
            check_same_dtypes(name, avals)
        return avals[0].dtype if result_dtype is None else result_dtype(*avals)

    def shape_rule(*avals: ShapedArray, **_) -> tuple[int, ...]:
        return broadcast_shapes_of_operands(name, [aval.shape for aval in avals])

    primitive = _elementwise(name, shape_rule, dtype_rule, meaning, lower)
    primitive.batch = broadcasting_batch(primitive)
    return primitive


def _elementwise(
    name: str,
    shape_rule: Callable,
    dtype_rule: Callable,
    meaning: Callable,
    lower: str | Callable,
) -> Primitive:
    primitive = standard_primitive(name, shape_rule, dtype_rule, meaning=meaning)
    primitive.def_lowering(lower if callable(lower) else nary_lowering(lower))
    return primitive


def nary_lowering(operation: str) -> Callable:
    """A lowering rule that broadcasts the operands and applies one operation."""

    def lower(ctx, *operands, **params) -> Any:
        return ctx.operation(operation)(*ctx.broadcast(operands))

    return lower


def elementwise_batch(primitive: Primitive) -> Callable:
    """Batch rule of one operand whose shape does not matter: the axis stays.

    In JAX: `batching.defvectorized`.
    """

    def batch(axis_data, args, dims, **params) -> Any:
        return primitive.bind(*args, **params), dims[0]

    return batch


def broadcasting_batch(primitive: Primitive) -> Callable:
    """Batch rule of elementwise primitives of several operands.

    If all operands have one shape and one batch axis (unbatched scalars aside), they
    are passed on unchanged. Otherwise the batch axis of each operand is moved to the
    front; an operand without one gets an axis of size 1 there.

    In JAX: `batching.py`, `broadcast_batcher`.
    """

    def batch(axis_data, args, dims, **params) -> Any:
        avals = [get_aval(arg) for arg in args]
        shape, dim = next(
            (aval.shape, d) for aval, d in zip(avals, dims) if d is not not_mapped
        )
        if all(
            aval.shape == shape and d == dim
            for aval, d in zip(avals, dims)
            if aval.shape
        ):
            out = primitive.bind(*args, **params)
            return out, [dim] * len(out) if primitive.multiple_results else dim
        one = AxisData(no_axis_name, 1)
        args = [
            batch_at_front(arg, d, one) if aval.shape else arg
            for arg, d, aval in zip(args, dims, avals)
        ]
        rank = max(get_aval(arg).ndim for arg in args)
        args = [
            arg if d is not_mapped else add_trailing_dims(arg, rank)
            for arg, d in zip(args, dims)
        ]
        out = primitive.bind(*args, **params)
        return out, [0] * len(out) if primitive.multiple_results else 0

    return batch


def add_trailing_dims(x: Any, rank: int) -> Any:
    """`x` with dimensions of size 1 added at the end up to `rank`."""
    shape = get_aval(x).shape
    if len(shape) == rank:
        return x
    ones = (1,) * (rank - len(shape))
    return _broadcast(x, shape + ones, tuple(range(len(shape))))


def reduction_batch(primitive: Primitive) -> Callable:
    """Batch rule of reductions over `axes` of one operand.

    In JAX: `batching.py`, `reducer_batcher`.
    """

    def batch(axis_data, args, dims, *, axes, **params):
        (operand,), (dim,) = args, dims
        moved = tuple(axis + (axis >= dim) for axis in axes)
        out_dim = dim - sum(axis < dim for axis in moved)
        if (cut := params.get("out_sharding")) is not None:
            params["out_sharding"] = cut.with_batch_axis(out_dim, axis_data.cut)
        return primitive.bind(operand, axes=moved, **params), out_dim

    return batch


# ----------------------------------------------------------------------------------
# Common forms of derivatives
# ----------------------------------------------------------------------------------


def def_zero_jvp(primitive: Primitive) -> None:
    """Declare that the tangent of the output is always zero, as for a comparison."""

    def jvp(primals, tangents, **params) -> Any:
        out = primitive.bind(*primals, **params)
        return out, _zero_tangents_of(primitive, out)

    primitive.jvp = jvp
    primitive.without("transpose", "its tangent is always zero, so nothing is linear")


def _zero_tangents_of(primitive: Primitive, out: Any) -> Any:
    if primitive.multiple_results:
        return [zero_tangent_of(x) for x in out]
    return zero_tangent_of(out)


def def_jvp_with_output(primitive: Primitive, *terms: Callable | None) -> None:
    """Like `Primitive.def_jvp`, but each term gets the output: `(t, out, *primals)`.

    In JAX: `ad.defjvp2`.
    """

    def jvp(primals, tangents, **params) -> Any:
        out = primitive.bind(*primals, **params)
        parts = [
            term(tangent, out, *primals, **params)
            for term, tangent in zip(terms, tangents)
            if term is not None and type(tangent) is not Zero
        ]
        return out, sum_tangents(parts, out)

    primitive.jvp = jvp


def sum_tangents(parts: Sequence[Any], out: Any) -> Any:
    """The sum of tangents; with none, the zero tangent of `out`."""
    if not parts:
        return zero_tangent_of(out)
    total = parts[0]
    for part in parts[1:]:
        total = add_tangents(total, part)
    return total


def def_linear(primitive: Primitive, transpose: Callable) -> None:
    """The primitive is linear in all arguments that have tangents.

    Its jvp is itself, applied to the tangents; `transpose(ct, *args, **params)` gives
    one cotangent (or None) for each argument.

    In JAX: `ad.deflinear2`.
    """

    def jvp(primals, tangents, **params) -> Any:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, _zero_tangents_of(primitive, out)
        return out, primitive.bind(*map(instantiate, tangents), **params)

    primitive.jvp = jvp
    primitive.def_transpose(transpose)


def def_bilinear(primitive: Primitive, left: Callable, right: Callable) -> None:
    """The primitive is linear in each of two arguments, like a product.

    `left(ct, x, y, **params)` is the cotangent of `x` (an accumulator there), `right`
    that of `y`.

    In JAX: `ad.defbilinear`.
    """
    primitive.def_jvp(
        lambda t, x, y, **params: primitive.bind(t, y, **params),
        lambda t, x, y, **params: primitive.bind(x, t, **params),
    )

    def transpose(ct, x, y, **params) -> list:
        if is_linear(x) == is_linear(y):
            raise ValueError(f"{primitive} is linear in one argument at a time")
        if isinstance(x, NullAccumulator) or isinstance(y, NullAccumulator):
            return [None, None]
        if is_linear(x):
            return [left(ct, x, y, **params), None]
        return [None, right(ct, x, y, **params)]

    primitive.def_transpose(transpose)
