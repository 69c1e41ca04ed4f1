"""Which mesh axes a value varies over: types inside `shard_map`.

Inside `shard_map` each device has its own value of an array. The type says over which
mesh axes these may differ: `f32[2,4]{V:x}`. An operation on values that vary over
different axes first marks each as varying over all of them (`pvary`, which moves no
data). The sum over an axis (`psum_invariant`) does not vary over it. The two are each
other's transposes, which is why gradients come out right.

The types are those of the primitives, with the axes joined: `Varying`, an extension of
types that `assembly.py` enters. The marks are put in while a program is traced inside
`manual_scope`: operands pass `state.entering` on their way into an equation.

In JAX: `core.py`, `standard_insert_pvary`; `lax/parallel.py`, `pvary_p`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from minijax.core import errors
from minijax.core.language import (
    Primitive,
    ShapedArray,
    TypeExtension,
    all_primitives,
    get_aval,
)
from minijax.core.state import state
from minijax.primitives.parallel.manual_lowering import names_of
from minijax.primitives.parallel.variation import (
    CASTS,
    check_bound,
    in_mesh_order,
    in_types,
    kind_over,
    varied,
    varying,
)
from minijax.programs.sharding.cuts import CARRYING, CASTING
from minijax.support.devices.mesh import AxisType
from minijax.support.settings import override
from minijax.support.tree_util import tree_map
from minijax.values.named_axes import extend_axis_env


class manual_scope(ExitStack):
    """The context in which the body of a `shard_map` is traced and transformed."""

    def __init__(self, mesh: Any, axes: Iterable[Hashable], checked: bool) -> None:
        super().__init__()
        sizes = dict(mesh.shape)
        around = () if state.manual_mesh is None else state.manual_mesh[1]
        manual = frozenset((*around, *axes))
        self.mesh = mesh, manual
        kinds = dict.fromkeys(manual, AxisType.Manual)
        self.inside = mesh.abstract_mesh.update_axis_types(kinds)
        self.axes = [(name, sizes[name]) for name in mesh.axis_names if name in axes]
        kept = tuple(name for name in state.varying_axes if name not in axes)
        shown = mesh.in_types(name for name, _ in self.axes)
        self.varying = (*kept, *shown) if checked else ()

    def __enter__(self) -> None:  # type: ignore[override]
        entering = _entering if self.varying else None
        self.enter_context(extend_axis_env(self.axes))
        self.enter_context(override("varying_axes", self.varying))
        self.enter_context(override("manual_mesh", self.mesh))
        self.enter_context(override("abstract_mesh", self.inside))
        self.enter_context(override("entering", entering))


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
      to: "varying", of a value that is invarying or reduced; "unreduced", of one that
        varies: its parts are addends; "reduced", of an invarying one.

    Raises:
      ValueError: for another `to`, for a value that is something else over an axis, and
        outside of `shard_map`.

    In JAX: `jax.lax.pcast`.
    """
    named = isinstance(axis_name, list) and axis_name
    if named or isinstance(axis_name, (set, frozenset)):
        raise errors.type_error(
            f"axis_name={axis_name} must be a tuple or a str: pcast takes mesh axes in "
            "an order."
        )
    names = in_types(names_of(axis_name or ()))
    if to not in ("varying", "unreduced", "reduced"):
        raise errors.value_error(
            f"pcast got to={to!r}; it may be 'varying', 'unreduced' or 'reduced'. A "
            "value that is the same everywhere comes from a reduction: `lax.psum`, "
            "`lax.pmax`, or `lax.all_gather(..., to='invarying')`."
        )
    if names and state.manual_mesh is None:
        raise errors.value_error("pcast is for values inside of `shard_map`.")

    def cast(leaf: Any) -> Any:
        source = kind_over(get_aval(leaf), names, "jax.lax.pcast")
        primitive = CASTS.get((source, to))
        if primitive is None:
            raise errors.value_error(
                f"Unsupported pcast from={source}, to={to!r}: the value has type "
                f"{get_aval(leaf).str_short()}, and a cast does not communicate."
            )
        check_bound(names)
        checked = state.varying_axes
        return primitive.bind(leaf, axes=in_mesh_order(names)) if checked else leaf

    return tree_map(cast, x) if names else x


# ----------------------------------------------------------------------------------
# The types of the other primitives
# ----------------------------------------------------------------------------------

# They say themselves how their results vary.
_OWN_TYPES = CARRYING | CASTING
_REDUCING = ("pmax", "pmin", "all_gather_invariant")
# The first operands: a ref, and what is written to it. Then come indices.
_OF_REFS = {"get": 1, "swap": 2, "addupdate": 2}


class Varying(TypeExtension):
    """Types that say over which mesh axes a value varies."""

    def result(self, primitive: Primitive, avals: Any, params: Any, out: Any) -> Any:
        """The results vary over the axes of all operands."""
        vma = frozenset().union(*(getattr(a, "vma", frozenset()) for a in avals))
        if not vma or not _joins_axes(primitive):
            return out
        if not state.auto_pcast:
            _check_equal(primitive, avals)
        if primitive.name in _REDUCING:
            vma -= set(params.get("axes") or names_of(params["axis_name"]))
        if isinstance(out, (list, tuple)):
            return [_varying_type(one, vma) for one in out]
        return _varying_type(out, vma)

    def zeros(self, aval: Any, zeros: Any) -> Any:
        """`zeros`, varying as the type says."""
        return varied(zeros, aval.vma) if state.varying_axes else zeros


def _joins_axes(primitive: Primitive) -> bool:
    """Whether it is a primitive of minijax that does not say itself how it varies."""
    name = primitive.name
    return name not in _OWN_TYPES and all_primitives.get(name) is primitive


def _check_equal(primitive: Primitive, avals: Sequence[Any]) -> None:
    """ValueError for operands that vary over different axes."""
    found = [a.vma for a in avals if isinstance(a, ShapedArray)]
    if len({*found}) > 1:
        raise errors.value_error(
            f"Primitive {primitive} requires varying manual axes to match, but got "
            f"{found}. Mark the others, `lax.pcast(x, axes, to='varying')`, or leave "
            "the flag jax_auto_pcast on."
        )


def _varying_type(aval: Any, vma: frozenset) -> Any:
    return aval.update(vma=vma) if isinstance(aval, ShapedArray) else aval


# ----------------------------------------------------------------------------------
# Marks that are put in while tracing
# ----------------------------------------------------------------------------------


def _entering(primitive: Primitive, args: Sequence[Any], params: Any) -> Sequence[Any]:
    """The operands of an equation, marked as varying over the axes that it needs."""
    wanted: list[frozenset]
    if not state.auto_pcast:
        return args
    if primitive.name in ("jit", "scan"):  # as their programs take them
        wanted = [
            getattr(aval, "vma", frozenset()) for aval in params["jaxpr"].in_avals
        ]
    elif len(args) > 1 and _joins_axes(primitive):  # over the same axes
        everything = frozenset().union(*map(varying, args))
        wanted = [
            everything if isinstance(get_aval(arg), ShapedArray) else frozenset()
            for arg in args[: _OF_REFS.get(primitive.name)]
        ]
    else:
        return args
    return [*map(varied, args, wanted), *args[len(wanted) :]]
