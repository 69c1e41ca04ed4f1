"""How the result of each primitive is cut, given how its operands are.

A cut is a tuple with an entry for each dimension: None (whole), the name of a mesh
axis, or a tuple of names. Each rule is called as `(operands, params, results)`, with
types, and returns a cut for each result; it raises `ShardingTypeError` where the
operands do not say which one is meant. A value that is on no mesh goes with any cut.

In JAX: the sharding rules of `lax/lax.py` and `lax/slicing.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from minijax.core import errors
from minijax.primitives.parallel.variation import words_over
from minijax.support.devices.shardings import PartitionSpec, ShardingTypeError

Cut = tuple[Any, ...]
Types = Sequence[Any]
Params = dict[str, Any]
Rule = Callable[[Types, Params, Types], list[Cut]]

RULES: dict[str, Rule] = {}

# Primitives whose types come from programs that they carry.
CARRYING = frozenset(
    "axis_index call_exported closed_call composite cond custom_jvp_call custom_lin "
    "custom_linear_solve custom_partitioning custom_vjp_call custom_vmap_call jit "
    "linear_call pallas_call remat2 remat_opt run_state scan shard_map while".split()
)
# Primitives of `shard_map`: those that say themselves how a value varies, and others.
CASTING = frozenset(
    "all_gather_reduced preduced psum_invariant pvary reduced_vary_cast_p "
    "unreduced_psum unreduced_reduce_scatter vary_unreduced_cast_p".split()
)
EXCHANGING = frozenset(
    "all_gather all_gather_invariant all_to_all pbroadcast pmax pmin ppermute psum "
    "reduce_scatter".split()
)


def cut_of(aval: Any) -> Cut:
    """The cut of a type: all None for a type without a mesh."""
    sharding = getattr(aval, "cut", None)
    rank = getattr(aval, "ndim", 0)
    if sharding is None:
        return (None,) * rank
    parts = sharding.spec.partitions
    return (*parts, *(None,) * (rank - len(parts)))


def whole(rank: int) -> Cut:
    """The cut of a value that each device holds whole."""
    return (None,) * rank


def fail(message: str) -> NoReturn:
    """Raises ShardingTypeError at the user's line."""
    raise errors.with_facts(ShardingTypeError(message))


def told(avals: Types) -> str:
    """Types, as a sentence lists them."""
    return ", ".join(aval.str_short(short_dtypes=True) for aval in avals)


def axes_in(part: Any) -> tuple:
    """The mesh axes that cut one dimension."""
    cutting = () if part is None else part
    return cutting if isinstance(cutting, tuple) else (cutting,)


def cut_along(aval: Any, axes: Iterable[Any]) -> list[Any]:
    """The cut of a type, along these mesh axes only."""
    return [
        tuple(name for name in axes_in(part) if name in axes) or None
        for part in cut_of(aval)
    ]


def spec_along(aval: Any, axes: Any) -> PartitionSpec:
    """What a type says of a set of mesh axes, as a spec."""
    unreduced, reduced = words_over(aval, axes)
    return PartitionSpec(*cut_along(aval, axes), unreduced=unreduced, reduced=reduced)


def cut_in_type(spec: Any, mesh: Any, rank: int) -> list[Any]:
    """The cut in the type of an array that lies so on a mesh of Explicit axes."""
    return [mesh.in_types(spec.axes(d)) or None for d in range(rank)]


def _mesh_of(avals: Types) -> Any:
    return next(aval.cut.mesh for aval in avals if aval.cut is not None)


def _rules(*names: str) -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return enter


# ----------------------------------------------------------------------------------
# Elementwise
# ----------------------------------------------------------------------------------

ELEMENTWISE = (
    "add and atan2 complex div eq eq_to ge gt igamma igamma_grad_a igammac le le_to lt "
    "lt_to max min mul mulhi ne nextafter or polygamma pow regularized_incomplete_beta "
    "rem shift_left shift_right_arithmetic shift_right_logical sub xor zeta abs acos "
    "acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil clz conj "
    "convert_element_type copy cos cosh digamma erf erf_inv erfc exp exp2 expm1 floor "
    "imag integer_pow is_finite lgamma log log1p logistic neg not population_count "
    "real reduce_precision round rsqrt sign sin sinh sqrt square stage stop_gradient "
    "tan tanh add_any name random_gamma_grad random_clone"
).split()


def broadcast_together(name: str, avals: Types) -> Cut:
    """The cut of an elementwise result: along each dimension that of any operand.

    Dimensions are matched from the back, as shapes are repeated.
    """
    rank = max(aval.ndim for aval in avals)
    cuts = [(*whole(rank - aval.ndim), *cut_of(aval)) for aval in avals if aval.ndim]
    found: list[Any] = []
    for dimension, parts in enumerate(zip(*cuts)):
        named = {*parts} - {None}
        if len(named) > 1:
            fail(
                f"{name} got incompatible shardings for broadcasting: "
                f"{', '.join(map(str, cuts))}. Its operands are {told(avals)}: along "
                f"dimension {dimension} they are cut in different ways. Bring one to "
                "the cut of the other: `minijax.sharding.reshard(x, spec)`."
            )
        found.append(next(iter(named), None))
    return tuple(found)


def broadcast_shardings(*avals: Any) -> Any:
    """How operands are cut once they are repeated to one shape; None if none is cut.

    Raises ShardingTypeError where they are cut in different ways.
    """
    cut = next((aval.cut for aval in avals if aval.cut is not None), None)
    parts = broadcast_together("broadcast_shardings", avals)
    return cut and cut.update(spec=cut.spec.update(partitions=parts))


def _elementwise(name: str) -> Rule:
    return lambda ins, params, outs: [broadcast_together(name, ins)]


for _name in ELEMENTWISE:
    RULES[_name] = _elementwise(_name)


@_rules("bitcast_convert_type")
def _bitcast(ins: Types, params: Params, outs: Types) -> list[Cut]:
    """If the sizes of items differ, only one side has the last dimension."""
    return [(*cut_of(ins[0]), None)[: outs[0].ndim]]


@_rules("clamp", "select_and_scatter_add")
def _of_second(ins: Types, params: Params, outs: Types) -> list[Cut]:
    return [cut_of(ins[1])]


@_rules("select_n")
def _select(ins: Types, params: Params, outs: Types) -> list[Cut]:
    which, *cases = ins
    cut = _same_cut("select", "cases", cases)
    if which.ndim and which.cut is not None and cut_of(which) != cut:
        fail(
            "select `which` must be scalar or have the same sharding as cases, got "
            f"{told([which])} for cases {told(cases)}. Reshard one of them."
        )
    return [cut]


def _same_cut(name: str, what: str, avals: Types) -> Cut:
    cuts = {cut_of(aval) for aval in avals if aval.cut is not None}
    if len(cuts) > 1:
        fail(
            f"All operands should have the same sharding: {name} {what} must have the "
            f"same shardings, got [{told(avals)}]. "
            "Reshard them: `minijax.sharding.reshard(x, spec)`."
        )
    return next(iter(cuts), whole(avals[0].ndim))


@_rules("optimization_barrier", "rev")
def _each(ins: Types, params: Params, outs: Types) -> list[Cut]:
    return list(map(cut_of, ins))


# ----------------------------------------------------------------------------------
# Products, reductions
# ----------------------------------------------------------------------------------


@_rules("scaled_dot")
def _scaled_dot(ins: Types, params: Params, outs: Types) -> list[Cut]:
    for array, scale in zip(ins[:2], ins[2:]):
        if any(s and s != a for a, s in zip(cut_of(array), cut_of(scale))):
            fail(
                "scaled_dot requires scales that are cut as their arrays or not at "
                f"all, got {told([array, scale])}. Reshard one of them."
            )
    return _dot_general(ins[:2], params, outs)


@_rules("dot_general")
def _dot_general(ins: Types, params: Params, outs: Types) -> list[Cut]:
    lhs, rhs = map(cut_of, ins)
    (left, right), (left_batch, right_batch) = params["dimension_numbers"]
    for what, ours, theirs in (
        ("lhs batch dimensions and rhs batch dimensions", left_batch, right_batch),
        ("contracting dimensions", left, right),
    ):
        one = tuple(lhs[axis] for axis in ours)
        other = tuple(rhs[axis] for axis in theirs)
        if any(a and b and a != b for a, b in zip(one, other)):
            fail(
                f"dot_general requires {what} to have consistent sharding, got {one} "
                f"and {other} for operands {told(ins)}. Reshard one of them."
            )
    if any(lhs[a] and rhs[b] for a, b in zip(left, right)):
        fail(
            "Contracting dimensions are sharded and it is ambiguous how the output "
            "should be sharded. Please specify the output sharding via the "
            f"`out_sharding` parameter. The operands are {told(ins)}: write "
            "`jnp.dot(x, y, out_sharding=P(...))`, or reshard one of them."
        )
    batch = [lhs[a] or rhs[b] for a, b in zip(left_batch, right_batch)]
    kept = [part for axis, part in enumerate(lhs) if axis not in (*left, *left_batch)]
    kept += [part for a, part in enumerate(rhs) if a not in (*right, *right_batch)]
    return [(*batch, *kept)]


@_rules("conv_general_dilated")
def _convolution(ins: Types, params: Params, outs: Types) -> list[Cut]:
    lhs, rhs = ins
    features = params["dimension_numbers"].lhs_spec[1]
    if any((*cut_of(rhs), cut_of(lhs)[features])):
        fail(
            "conv_general_dilated only supports a kernel that is on every device and "
            f"an input whose feature dimension is whole; got {told(ins)}. Give "
            "`out_sharding`, or use `auto_axes`."
        )
    numbers = params["dimension_numbers"]
    found: list[Any] = [None] * lhs.ndim
    for axis, target in zip(numbers.lhs_spec, numbers.out_spec):
        found[target] = cut_of(lhs)[axis]
    order = [numbers.lhs_spec[numbers.out_spec.index(d)] for d in range(lhs.ndim)]
    sizes = [lhs.shape[axis] for axis in order]
    return [_still_divided("conv_general_dilated", lhs, sizes, found, outs[0])]


def _whole_along(what: str, ins: Types, axis: int) -> Cut:
    """The cut of the first operand, which must be whole along an axis."""
    if cut_of(ins[0])[axis] is not None:
        fail(
            f"The {what} must be unsharded. Got {told(ins)}, and axis={axis}. Reshard "
            "it first."
        )
    return cut_of(ins[0])


def _without(cut: Cut, axes: Sequence[int]) -> Cut:
    return tuple(part for axis, part in enumerate(cut) if axis not in axes)


@_rules(
    *("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and"),
    *("reduce_or", "reduce_xor", "argmax", "argmin", "reduce", "squeeze"),
)
def _reduction(ins: Types, params: Params, outs: Types) -> list[Cut]:
    gone = params["axes"] if "axes" in params else params["dimensions"]
    return [_without(cut_of(x), gone) for x in ins[: len(outs)]]


@_rules("ragged_dot_general")
def _ragged_product(ins: Types, params: Params, outs: Types) -> list[Cut]:
    raise NotImplementedError(
        "Explicit sharding inference for ragged_dot_general is not currently "
        f"implemented. The operands are {told(ins)}. Leave this operation to the "
        "compiler: `minijax.sharding.auto_axes(fun, out_sharding=...)`."
    )


@_rules("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _cumulative(ins: Types, params: Params, outs: Types) -> list[Cut]:
    return [_whole_along("input over the axis being reduced", ins, params["axis"])]


@_rules("sort")
def _sort(ins: Types, params: Params, outs: Types) -> list[Cut]:
    cut = _same_cut("sort", "operands", ins)
    named = [aval for aval in ins if cut_of(aval) == cut]
    what = "arguments to sort over the sorting dimension"
    _whole_along(what, named, params["dimension"])
    return [cut] * len(outs)


@_rules("top_k")
def _top_k(ins: Types, params: Params, outs: Types) -> list[Cut]:
    axis = params.get("axis", -1) % ins[0].ndim
    return [_whole_along("operand of top_k over its dimension", ins, axis)] * len(outs)


# ----------------------------------------------------------------------------------
# Shapes
# ----------------------------------------------------------------------------------


@_rules("broadcast_in_dim")
def _broadcast_in_dim(ins: Types, params: Params, outs: Types) -> list[Cut]:
    found: list[Any] = [None] * outs[0].ndim
    for part, target in zip(cut_of(ins[0]), params["broadcast_dimensions"]):
        found[target] = part
    return [tuple(found)]


@_rules("tile")
def _tile(ins: Types, params: Params, outs: Types) -> list[Cut]:
    cut, reps = cut_of(ins[0]), params["reps"]
    for axis, (part, times) in enumerate(zip(cut, reps)):
        if part is not None and times != 1:
            fail(
                f"Operand cannot be sharded on dimension {axis} when the tiling is "
                f"non-trivial. Got {told(ins)} with reps {tuple(reps)}. Reshard it "
                "first."
            )
    return [cut]


@_rules("transpose")
def _transpose(ins: Types, params: Params, outs: Types) -> list[Cut]:
    cut = cut_of(ins[0])
    return [tuple(cut[axis] for axis in params["permutation"])]


@_rules("reshape")
def _reshape(ins: Types, params: Params, outs: Types) -> list[Cut]:
    """Dimensions are matched from the left in groups of equal size.

    In a group of one dimension each the cut stays. A dimension that is split hands its
    mesh axes out to the new ones from the left; those of merged dimensions are put
    together, if nothing that is whole lies before one that is cut.
    """
    (x,), (out,) = ins, outs
    mesh, cut = _mesh_of(ins), cut_of(x)
    found: list[Any] = []
    for old, new in _groups(x.shape, out.shape):
        axes = [axes_in(cut[dimension]) for dimension in old]
        if not any(axes):
            found += [None] * len(new)
            continue
        sizes = [x.shape[dimension] for dimension in old]
        last = max(i for i, names in enumerate(axes) if names)
        gap = any(not axes[i] and sizes[i] > 1 for i in range(last))
        several = len(old) > 1 and len(new) > 1
        permuted = params["dimensions"] is not None and len(old) != len(new)
        if gap or several or permuted:
            _reshape_fails(x, out)
        waiting = [name for names in axes for name in names]
        for dimension in new:
            size, own = out.shape[dimension], []
            while waiting and size > 1:
                if size % mesh.shape[waiting[0]]:
                    _reshape_fails(x, out)
                size //= mesh.shape[waiting[0]]
                own.append(waiting.pop(0))
            found.append(None if not own else own[0] if len(own) == 1 else tuple(own))
        if waiting:
            _reshape_fails(x, out)
    return [tuple(found)]


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list, list]]:
    """Runs of dimensions whose sizes have the same product before and after."""
    groups: list[tuple[list, list]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        ours, theirs = [], []
        if i < len(old):
            ours.append(i)
            i += 1
        if j < len(new):
            theirs.append(j)
            j += 1
        while True:
            left = math.prod(old[d] for d in ours)
            right = math.prod(new[d] for d in theirs)
            if left == right and ours and theirs:
                break
            if (left < right or not ours) and i < len(old):
                ours.append(i)
                i += 1
            elif j < len(new):
                theirs.append(j)
                j += 1
            else:
                break
        groups.append((ours, theirs))
    return groups


def _reshape_fails(x: Any, out: Any) -> NoReturn:
    fail(
        "This reshape is not supported. Please specify the sharding of the output via "
        "the `out_sharding` argument of jax.lax.reshape. Got operand type: "
        f"{told([x])}, new sizes: {out.shape}"
    )


@_rules("concatenate")
def _concatenate(ins: Types, params: Params, outs: Types) -> list[Cut]:
    cut = _same_cut("concatenate", "operands", ins)
    return [cut]


@_rules("stack")
def _stack(ins: Types, params: Params, outs: Types) -> list[Cut]:
    cut = _same_cut("stack", "operands", ins)
    return [(*cut[: params["axis"]], None, *cut[params["axis"] :])]


@_rules("unstack")
def _unstack(ins: Types, params: Params, outs: Types) -> list[Cut]:
    axis = params["axis"]
    cut = _whole_along("operand of unstack over the unstacking axis", ins, axis)
    return [_without(cut, (axis,))] * len(outs)


def _still_divided(
    name: str, x: Any, sizes: Sequence[int], cut: Sequence[Any], out: Any
) -> Cut:
    """The cut, if the sizes that changed can still be divided by it."""
    mesh = _mesh_of([x])
    for old, new, part in zip(sizes, out.shape, cut):
        count = math.prod(mesh.shape[name] for name in axes_in(part))
        if old != new and new % count:
            fail(
                f"{name} on sharded dims where out dim ({new}) is not divisible by "
                f"mesh axes ({count}) with spec ({part}) is not implemented. Got input "
                f"type={told([x])} and output shape={out.shape}. Reshard it first."
            )
    return tuple(cut)


def _resized(name: str) -> Rule:
    def rule(ins: Types, params: Params, outs: Types) -> list[Cut]:
        if ins[0].cut is None:
            return [whole(out.ndim) for out in outs]
        cut = cut_of(ins[0])
        return [_still_divided(name, ins[0], ins[0].shape, cut, out) for out in outs]

    return rule


for _primitive, _name in (
    *(("slice", "slicing"), ("split", "split"), ("pad", "padding")),
    *(("dynamic_slice", "dynamic_slice"), ("reduce_window", "reduce_window")),
    *((f"reduce_window_{kind}", "reduce_window") for kind in ("sum", "max", "min")),
):
    RULES[_primitive] = _resized(_name)


@_rules("select_and_gather_add")
def _chosen_tangents(ins: Types, params: Params, outs: Types) -> list[Cut]:
    """XLA's partitioner ends the process for operands that are cut differently."""
    cut = _same_cut("select_and_gather_add", "tangents and operand", ins)
    x = next(aval for aval in ins if aval.cut is not None)
    return [_still_divided("select_and_gather_add", x, x.shape, cut, outs[0])]


@_rules("dynamic_update_slice")
def _update_slice(ins: Types, params: Params, outs: Types) -> list[Cut]:
    operand, update = ins[:2]
    if cut_of(operand) != cut_of(update):
        fail(
            "dynamic_update_slice operand sharding must be equal to update sharding, "
            f"got {told([operand])} and {told([update])}. Reshard one of them."
        )
    return [cut_of(operand)]


# ----------------------------------------------------------------------------------
# Indexing
# ----------------------------------------------------------------------------------


@_rules("gather")
def _gather(ins: Types, params: Params, outs: Types) -> list[Cut]:
    """Whole windows keep the cut of the operand; batches are cut as either says.

    The other indices must be whole: the derivative would have to add up over them.
    """
    operand, indices = ins
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    cut, of_indices = cut_of(operand), list(cut_of(indices))
    batches = dict(
        zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims)
    )
    batch_axes = set(batches.values())
    clear = all(
        part is None or axis in batch_axes or sizes[axis] == operand.shape[axis]
        for axis, part in enumerate(cut)
    )
    for axis, part in enumerate(of_indices):
        found = {part, cut[batches[axis]] if axis in batches else None} - {None}
        clear = clear and len(found) <= (axis in batches)
        of_indices[axis] = next(iter(found), None)
    if not clear:
        fail(
            "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for "
            "the gather indexing as out sharding could not be resolved unambiguously "
            f"(or would require collectives on inputs). Got {told(ins)}"
        )
    gone = {*numbers.collapsed_slice_dims, *batch_axes}
    windows = iter([part for axis, part in enumerate(cut) if axis not in gone])
    others = iter(of_indices)
    axes = range(outs[0].ndim)
    return [tuple(next(windows if d in numbers.offset_dims else others) for d in axes)]


@_rules(
    *("scatter", "scatter-add", "scatter-sub", "scatter-mul"),
    *("scatter-min", "scatter-max"),
)
def _scatter(ins: Types, params: Params, outs: Types) -> list[Cut]:
    """The result is cut as the operand is; along what is scattered it is whole."""
    operand, indices, updates = ins
    numbers = params["dimension_numbers"]
    batches = dict(
        zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims)
    )
    gone = {*numbers.inserted_window_dims, *batches}
    windows = [axis for axis in range(operand.ndim) if axis not in gone]
    places = dict(zip(windows, numbers.update_window_dims))
    scattered = [d for d in range(updates.ndim) if d not in numbers.update_window_dims]
    of_indices, of_updates = cut_of(indices), cut_of(updates)
    cut = list(cut_of(operand))
    loose = [of_indices[-1]]
    for place, (row, part) in enumerate(zip(scattered, of_indices)):
        if place not in batches.values():
            loose += [part, of_updates[row]]
    for axis, part in enumerate(cut):
        found = {part}
        if axis in batches:
            place = batches[axis]
            found |= {of_indices[place], of_updates[scattered[place]]}
            cut[axis] = next(iter(found - {None}), None)
        elif axis in places:
            found.add(of_updates[places[axis]])
            if updates.shape[places[axis]] == operand.shape[axis]:
                found -= {part}  # the updates are cut like the operand
        if any(loose) or len(found - {None}) > (axis in batches):
            fail(
                "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output "
                "PartitionSpec for the scatter update as out sharding could not be "
                "resolved unambiguously (or would require collectives on inputs). Got "
                f"{told(ins)}"
            )
    return [tuple(cut)]


# ----------------------------------------------------------------------------------
# Linear algebra, random numbers
# ----------------------------------------------------------------------------------


def _over_batches(name: str, ranks: Sequence[int]) -> Rule:
    """Matrices must be whole; the dimensions before them may be cut."""

    def rule(ins: Types, params: Params, outs: Types) -> list[Cut]:
        batches = []
        for position, (aval, rank) in enumerate(zip(ins, ranks)):
            cut = cut_of(aval)
            if any(cut[aval.ndim - rank :]):
                fail(
                    f"Input {position} to {name} must be unsharded on non-batch "
                    f"dimensions, but got {told([aval])}. Reshard it first."
                )
            batches.append(cut[: aval.ndim - rank])
        if any(batch != batches[0] for batch in batches):
            fail(
                f"All inputs to {name} must have the same batch sharding, but got "
                f"{told(ins)}. Reshard one of them."
            )
        size = len(batches[0])
        return [(*batches[0], *whole(out.ndim - size)) for out in outs]

    return rule


for _primitive, _ranks in (
    *(("cholesky", (2,)), ("lu", (2,)), ("geqrf", (2,)), ("eigh", (2,))),
    *(("svd", (2,)), ("eig", (2,)), ("householder_product", (2, 1))),
    *(("triangular_solve", (2, 2)), ("tridiagonal_solve", (1, 1, 1, 2))),
    *(("schur", (2,)), ("hessenberg", (2,)), ("fft", (1,))),
):
    RULES[_primitive] = _over_batches(_primitive, _ranks)


@_rules("random_bits", "random_split", "random_wrap", "random_unwrap", "random_seed")
def _of_keys(ins: Types, params: Params, outs: Types) -> list[Cut]:
    return [(*cut_of(ins[0]), *whole(outs[0].ndim))[: outs[0].ndim]]


@_rules("random_fold_in", "random_gamma", "threefry2x32")
def _of_keys_and_data(ins: Types, params: Params, outs: Types) -> list[Cut]:
    return [broadcast_together("random", ins) if out.ndim else () for out in outs]


@_rules("iota", "empty", "rng_uniform", "iota_2x32_shape")
def _made(ins: Types, params: Params, outs: Types) -> list[Cut]:
    return [whole(out.ndim) for out in outs]
