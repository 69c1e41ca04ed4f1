"""Which mesh axes a value varies over: types inside `shard_map`.

Inside `shard_map` each device has its own value of an array. The type says over which
mesh axes these may differ: `f32[2,4]{V:x}`. An operation on values that vary over
different axes first marks each as varying over all of them (`pvary`, which moves no
data). `psum_invariant` adds up over an axis, after which the value does not vary over
it. The two are each other's transposes, which is why gradients come out right.

The types are those of the primitives, with the axes joined; the marks are put in while
a program is traced. Both are attached here to the primitives of the floors below.

In JAX: `core.py`, `standard_insert_pvary`; `lax/parallel.py`, `pvary_p`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from minijax.core import errors, language, rules
from minijax.core.language import Primitive, ShapedArray, get_aval, register
from minijax.core.rules import def_linear
from minijax.core.state import declare, override, state
from minijax.primitives.parallel import collectives
from minijax.support.tree_util import tree_map
from minijax.values.named_axes import NamedAxisEffect, extend_axis_env

# The mesh axes of the `shard_map` being traced whose variation is checked.
declare("varying_axes", ())

Names = tuple[Hashable, ...]


class manual_scope:
    """The context in which the body of a `shard_map` is traced and transformed."""

    def __init__(self, mesh: Any, axes: Iterable[Hashable], checked: bool) -> None:
        sizes = dict(mesh.shape)
        around = () if state.manual_mesh is None else state.manual_mesh[1]
        self.mesh = (mesh, frozenset((*around, *axes)))
        self.axes = [(name, sizes[name]) for name in mesh.axis_names if name in axes]
        kept = tuple(name for name in state.varying_axes if name not in axes)
        self.varying = (*kept, *(name for name, _ in self.axes)) if checked else ()
        self.stack = ExitStack()

    def __enter__(self) -> None:
        _install()
        self.stack.enter_context(extend_axis_env(self.axes))
        self.stack.enter_context(override("varying_axes", self.varying))
        self.stack.enter_context(override("manual_mesh", self.mesh))

    def __exit__(self, *exception: Any) -> None:
        self.stack.close()


def varying(value: Any) -> frozenset:
    """The axes over which a value varies."""
    return getattr(get_aval(value), "vma", frozenset())


def in_mesh_order(axes: Iterable[Hashable]) -> Names:
    """Axes in the order of the mesh."""
    wanted = set(axes)
    return tuple(name for name in state.axis_env.axis_names() if name in wanted)


# ----------------------------------------------------------------------------------
# pvary and psum_invariant
# ----------------------------------------------------------------------------------

pvary_p = register(Primitive("pvary"))
pvary_p.meaning = lambda x, axes: x
pvary_p.cache_types = False


@pvary_p.def_abstract_eval
def _pvary_type(x: ShapedArray, *, axes: Names) -> ShapedArray:
    repeated = x.vma & set(axes)
    if repeated:
        raise errors.value_error(
            f"pvary: the value of type {x.str_short()} varies over "
            f"{sorted(map(str, repeated))} already. Leave these axes out."
        )
    return x.update(vma=x.vma | set(axes))


psum_invariant_p = register(Primitive("psum_invariant"))
psum_invariant_p.cache_types = False


@psum_invariant_p.def_effectful_abstract_eval
def _psum_invariant_type(x: ShapedArray, *, axes: Names) -> tuple:
    effects = frozenset(NamedAxisEffect(name) for name in axes)
    return x.update(vma=x.vma - set(axes)), effects


def_linear(pvary_p, lambda ct, x, axes: [psum_invariant_p.bind(ct, axes=axes)])
def_linear(psum_invariant_p, lambda ct, x, axes: [pvary_p.bind(ct, axes=axes)])


def _same_dim(primitive: Primitive) -> Callable:
    def batch(axis_data: Any, args: Any, dims: Any, **params: Any) -> tuple:
        return primitive.bind(args[0], **params), dims[0]

    return batch


pvary_p.def_batch(_same_dim(pvary_p))
psum_invariant_p.def_batch(_same_dim(psum_invariant_p))


@pvary_p.def_lowering
def _pvary_lowering(ctx: Any, x: Any, *, axes: Names) -> Any:
    return x


def _names(axis_name: Any) -> Names:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def pvary(x: Any, axis_name: Any) -> Any:
    """The arrays of a tree, marked as varying over mesh axes; moves no data.

    In JAX: `jax.lax.pvary`, now `pcast(x, axis_name, to="varying")`.
    """
    return pcast(x, axis_name, to="varying")


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """The arrays of a tree with another type over mesh axes; moves no data.

    Args:
      x: a tree of arrays inside `shard_map`.
      axis_name: a mesh axis, or a tuple of them.
      to: "varying".

    Raises:
      ValueError: for another `to`, or for an axis over which `x` varies already.

    In JAX: `jax.lax.pcast`.
    """
    if isinstance(axis_name, (set, frozenset)):
        raise errors.type_error(
            f"axis_name={axis_name} must be a tuple or a str: pcast takes mesh axes in "
            "an order."
        )
    names = _names(axis_name)
    if to != "varying":
        raise errors.value_error(
            f"pcast: to={to!r} is not supported; it may be 'varying'. A value that is "
            "the same everywhere comes from a reduction: `lax.psum`, `lax.pmax`, or "
            "`lax.all_gather(..., to='invarying')`."
        )
    for name in names:
        state.axis_env.axis_size(name)
    if not names or not state.varying_axes:
        return x
    return tree_map(lambda leaf: pvary_p.bind(leaf, axes=names), x)


# ----------------------------------------------------------------------------------
# The types of the other primitives
# ----------------------------------------------------------------------------------

# Their types come from programs that they carry, or say themselves how they vary.
_OWN_TYPES = {
    *("call_exported", "closed_call", "cond", "custom_jvp_call", "custom_lin"),
    *("custom_linear_solve", "custom_vjp_call", "custom_vmap_call", "jit"),
    *("linear_call", "remat2", "remat_opt", "scan", "while", "run_state"),
    *("psum_invariant", "pvary", "axis_index", "shard_map", "pallas_call"),
}
_REDUCING = ("pmax", "pmin", "all_gather_invariant")


def _with_axes(rule: Callable, removes: bool) -> Callable:
    """A type rule whose results vary over the axes of all operands."""

    @functools.wraps(rule)
    def typed(*avals: Any, **params: Any) -> tuple:
        answer, effects = rule(*avals, **params)
        vma = frozenset().union(*(getattr(a, "vma", frozenset()) for a in avals))
        if not vma:
            return answer, effects
        if removes:
            vma -= set(params.get("axes") or _names(params["axis_name"]))
        if isinstance(answer, (list, tuple)):
            return [_varying_type(one, vma) for one in answer], effects
        return _varying_type(answer, vma), effects

    return typed


def _varying_type(aval: Any, vma: frozenset) -> Any:
    return aval.update(vma=vma) if isinstance(aval, ShapedArray) else aval


def _axis_index_type(*, axis_name: Hashable) -> tuple:
    aval, effects = _plain_axis_index_type(axis_name=axis_name)
    if axis_name in state.varying_axes:
        aval = aval.update(vma=frozenset([axis_name]))
    return aval, effects


_plain_axis_index_type = collectives.axis_index_p.type_rule
collectives.axis_index_p.type_rule = _axis_index_type


# ----------------------------------------------------------------------------------
# Marks that are put in while tracing
# ----------------------------------------------------------------------------------


def _marked(args: Sequence[Any]) -> list[Any] | None:
    """The operands, all varying over the same axes; None if they do already."""
    found = [varying(arg) for arg in args]
    everything = frozenset().union(*found)
    if all(vma == everything for vma in found):
        return None
    return [
        arg
        if vma == everything or not isinstance(get_aval(arg), ShapedArray)
        else pvary_p.bind(arg, axes=in_mesh_order(everything - vma))
        for arg, vma in zip(args, found)
    ]


def _marking(primitive: Primitive, before: Callable | None) -> Callable:
    def staging(trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if state.varying_axes and len(args) > 1:
            marked = _marked(args)
            if marked is not None:
                return primitive.bind(*marked, **params)
        return NotImplemented if before is None else before(trace, args, params)

    return staging


def _calling(primitive: Primitive, before: Callable | None) -> Callable:
    """A call gets its arguments as its program takes them."""

    def staging(trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if state.varying_axes:
            types = params["jaxpr"].in_avals
            lacking: list[frozenset] = [
                getattr(aval, "vma", frozenset()) - varying(arg)
                for aval, arg in zip(types, args, strict=True)
            ]
            if any(lacking):
                marked = [
                    pvary_p.bind(arg, axes=in_mesh_order(axes)) if axes else arg
                    for arg, axes in zip(args, lacking)
                ]
                return primitive.bind(*marked, **params)
        return NotImplemented if before is None else before(trace, args, params)

    return staging


# A sum is the same program for equal values and for different ones, with another
# transpose: a value must be all of one kind.
_SUMS = {collectives.psum_p: "psum", collectives.reduce_scatter_p: "psum_scatter"}


def _collective(primitive: Primitive, name: str) -> Callable:
    """Collectives take values that vary over their axes."""

    def staging(trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        checked = state.varying_axes
        if not checked:
            return NotImplemented
        axes = [axis for axis in _names(params[name]) if axis in checked]
        (x,) = args
        missing = [axis for axis in axes if axis not in varying(x)]
        if missing and len(missing) < len(axes) and primitive in _SUMS:
            raise errors.value_error(
                f"jax.lax.{_SUMS[primitive]} can only accept axis_name which "
                "corresponds to one of varying, unreduced, reduced or invarying state "
                "of the input. "
                f"Got input type: {get_aval(x).str_short()}, axes: {tuple(axes)}. Mark "
                f"it first: `lax.pcast(x, {tuple(missing)}, to='varying')`."
            )
        if missing:
            marked = pvary_p.bind(x, axes=tuple(missing))
            return primitive.bind(marked, **params)
        if primitive is collectives.psum_p and axes == list(params["axes"]):
            if params["axis_index_groups"] is not None:
                raise NotImplementedError(
                    "psum with axis_index_groups inside shard_map needs "
                    "check_vma=False: its result still varies over the axis."
                )
            return psum_invariant_p.bind(x, axes=tuple(axes))
        return NotImplemented

    return staging


_plain_zeros_of = rules.zeros_of


def _zeros_of(aval: Any) -> Any:
    """Zeros of a type, varying as it says."""
    zeros = _plain_zeros_of(aval)
    axes: frozenset = getattr(aval, "vma", frozenset())
    if not state.varying_axes:
        return zeros
    return pvary_p.bind(zeros, axes=in_mesh_order(axes)) if axes else zeros


_installed: list[bool] = []


def _install() -> None:
    """Attach types and marks to all primitives, when `shard_map` is first used."""
    if _installed:
        return
    _installed.append(True)
    named = {"psum": "axes", "pmax": "axes", "pmin": "axes"}
    named |= dict.fromkeys(
        ("all_gather", "all_to_all", "ppermute", "reduce_scatter", "pbroadcast"),
        "axis_name",
    )
    named["all_gather_invariant"] = "axis_name"
    rules.zeros_of = _zeros_of  # what `Zero`s become
    for name in ("jit", "scan"):
        primitive = language.all_primitives[name]
        primitive.staging = _calling(primitive, primitive.staging)
    for name, primitive in list(language.all_primitives.items()):
        if name in _OWN_TYPES or primitive.type_rule is None:
            continue
        primitive.type_rule = _with_axes(primitive.type_rule, name in _REDUCING)
        if name in named:
            primitive.staging = _collective(primitive, named[name])
        else:
            primitive.staging = _marking(primitive, primitive.staging)
