"""`jit(f, in_shardings=..., out_shardings=...)`.

Arguments that are not committed are moved to their `in_shardings` before the call;
others must be there. The compiler cuts the results as `out_shardings` says.

In JAX: `jax/_src/pjit.py`.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.compile import jit_api, placing
from minijax.core import errors, hlo
from minijax.core import jit as pjit
from minijax.core.array import Array, wrap_as
from minijax.core.autodiff import JVPTrace
from minijax.core.jit import UNSPECIFIED, JitFunction, Traced
from minijax.core.language import Tracer, eval_trace, get_aval, is_tracer, physical_aval
from minijax.core.partial_eval import DynamicJaxprTrace
from minijax.core.signatures import Bound, JitOptions
from minijax.core.state import state
from minijax.core.trees import broadcast_prefix_to_treedef, tree_flatten, tree_unflatten
from minijax.primitives.refs.mutable_arrays import Ref
from minijax.primitives.shape.layout_constraints import in_layout, layout_constraint_p
from minijax.programs.sharding.constraints import (
    check_not_manual,
    constrain,
    refuse_empty,
    with_sharding_constraint,
)
from minijax.programs.sharding.contexts import mesh_of_jit, sharding_of
from minijax.programs.sharding.placement import is_spread, put_on_several
from minijax.support.devices.layouts import Format, Layout, unusual
from minijax.support.devices.shardings import (
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
)


def _format_of(place: Any) -> Format:
    return place if isinstance(place, Format) else Format(None, place)


@dataclasses.dataclass(frozen=True)
class ShardedOptions(JitOptions):
    """The options of `jit` with shardings, given as (leaves, tree)."""

    in_shardings: tuple | None = None
    out_shardings: tuple | None = None
    device: Any = None  # to which all arguments move


def _checked(shardings: Any, name: str) -> tuple | None:
    """(leaves, tree) of a tree of shardings; None if nothing is given."""
    if shardings is None:
        return None
    if name == "in_shardings" and isinstance(shardings, list):
        shardings = tuple(shardings)  # of the arguments
    leaves, tree = tree_flatten(shardings, is_leaf=lambda x: x is None)
    for leaf in leaves:
        if isinstance(leaf, Layout) or leaf is Layout.AUTO:
            raise errors.value_error(
                f"{name} holds shardings, and got {leaf}. Say where it lies, too: "
                "`Format(layout, sharding)`."
            )
        if isinstance(leaf, Format):
            leaf = leaf.sharding
        if leaf is not None and not isinstance(leaf, (Sharding, PartitionSpec)):
            raise errors.type_error(
                f"{name} holds shardings, PartitionSpecs for the mesh in use, or None; "
                f"got {leaf!r} of type {type(leaf).__name__}."
            )
        refuse_empty(leaf, name)
        spec = getattr(leaf, "spec", leaf)
        if PartitionSpec.UNCONSTRAINED in getattr(spec, "partitions", ()):
            raise errors.value_error(
                f"Unconstrained dimensions are not allowed in {name}, got {leaf}. "
                "Leave the sharding out, and the compiler chooses all of it."
            )
    return (tuple(leaves), tree)


def _for_leaves(given: tuple, tree: Any, name: str) -> list[Any]:
    """One sharding, or None, for each leaf of the tree that `given` is a prefix of.

    A `PartitionSpec` alone means the mesh in use where the function is called.
    """
    leaves, prefix = given
    leaves = [sharding_of(leaf, f"jit({name}=...)", mesh_of_jit()) for leaf in leaves]
    if len(leaves) == 1 and prefix.num_nodes == 1:
        return leaves * tree.num_leaves
    wanted = tree_unflatten(prefix, leaves)
    try:
        return broadcast_prefix_to_treedef(wanted, tree)
    except ValueError as error:
        raise errors.value_error(
            f"{name} is not a prefix of the tree that it describes: {error}"
        ) from None


class ShardedJitFunction(JitFunction):
    """A jitted function whose arguments or results have given shardings."""

    _options: ShardedOptions

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if self._options.in_shardings is not None and state.trace is eval_trace:
                args = self._moved(args, kwargs)
            return super().__call__(*args, **kwargs)
        except Exception as error:
            errors.filter_traceback.run(error)
            raise

    def _bind(self, args: tuple, kwargs: dict) -> Any:
        given = self._options.in_shardings, self._options.out_shardings
        places = [place for each in given if each is not None for place in each[0]]
        if any(isinstance(getattr(p, "layout", None), Layout) for p in places):
            _refuse_derivative(state.trace)
        return super()._bind(args, kwargs)

    def _moved(self, args: tuple, kwargs: dict) -> tuple:
        """The arguments, moved to where `in_shardings` places them."""
        bound = self._signature.bind(args, kwargs)
        leaves = bound.leaves
        if state.disable_jit or any(map(is_tracer, leaves)):
            return args
        self._signature.types_of(leaves, args, kwargs, get_aval)
        wanted = self._wanted(bound, kwargs)
        move = _moved if self._options.device is None else placing.device_put
        moved = list(map(move, leaves, wanted))
        if all(map(operator.is_, moved, leaves)):
            return args
        return self._signature.arguments(bound, moved)[0]

    def _wanted(self, bound: Bound, kwargs: dict) -> Sequence[Any]:
        given = self._options.in_shardings
        if given is None:
            return [None] * len(bound.leaves)
        if self._options.device is not None:
            return [self._options.device] * len(bound.leaves)
        if kwargs:
            raise errors.value_error(
                "pjit does not support kwargs when in_shardings is specified. Pass "
                f"{sorted(kwargs)} by position."
            )
        args = tree_unflatten(bound.tree, bound.leaves)[0]
        _, tree = tree_flatten(args)
        return _for_leaves(given, tree, "in_shardings")

    def _trace(self, bound: Bound, avals: Sequence[Any]) -> Traced:
        traced = super()._trace(bound, avals)
        wanted = self._wanted(bound, {})
        ins = [Format()] * len(traced.outer) + list(map(_format_of, wanted))
        outs = list(map(_format_of, self._results(traced)))
        info, closed = traced.closed.jaxpr.debug_info, traced.closed
        for one, aval in zip(outs, closed.out_avals, strict=True):
            if is_spread(one.sharding):
                one.sharding.shard_shape(aval.shape)
        params = {
            **traced.params,
            **_params("in", ins, closed.in_avals, info.arg_names),
            **_params("out", outs, closed.out_avals, info.result_paths),
        }
        return traced._replace(params=params)

    def _results(self, traced: Traced) -> list[Any]:
        given = self._options.out_shardings
        if given is None:
            return [None] * len(traced.closed.out_avals)
        return _for_leaves(given, traced.out_tree, "out_shardings")


def _refuse_derivative(trace: Any) -> None:
    """NotImplementedError for derivatives of a jit with layouts, outside of a program.

    Within one its layouts are constraints, which have derivatives.
    """
    base = trace
    while isinstance(base, JVPTrace):
        base = base.parent
    if base is not trace and not isinstance(base, DynamicJaxprTrace):
        raise NotImplementedError(
            "The derivative of a jit with layouts would drop those of its results. "
            "Leave the layouts out of this jit. Outside of a program, `device_put("
            "result, format)` moves what it gives."
        )


errors.boundaries.add(ShardedJitFunction.__call__.__code__)


def _params(
    kind: str, formats: Sequence[Format], avals: Sequence[Any], names: Any
) -> dict[str, tuple]:
    """The parameters of a jit for its arguments ("in") or its results ("out").

    Raises ValueError for formats that do not fit the types.
    """
    what = f"jit({kind}_shardings=...)"
    told = dict(enumerate(names or ()))
    for at, (one, aval) in enumerate(zip(formats, avals, strict=True)):
        check_not_manual(one.sharding, what)
        if isinstance(one.layout, Layout):
            shape = physical_aval(aval).shape
            one.layout.check(shape, f"{told.get(at, at)} of {what}")
    return {
        f"{kind}_shardings": tuple(
            UNSPECIFIED if one.sharding is None else one.sharding for one in formats
        ),
        f"{kind}_layouts": tuple(one.layout for one in formats),
    }


def _moved(leaf: Any, sharding: Any) -> Any:
    """The argument, moved to where `in_shardings` places it.

    Raises ValueError where `check_place` does, and for a NumPy array cut over several
    processes: each could have other values.
    """
    if sharding is None or isinstance(leaf, Tracer):
        return leaf
    if isinstance(sharding, Format):
        check_layout(leaf, sharding.layout)
        moved = _moved(leaf, sharding.sharding)
        if isinstance(sharding.layout, Layout):
            moved = placing.put_in_format(moved, sharding)
            return wrap_as(moved._buffer, get_aval(leaf), moved._placed)
        return moved
    if type(leaf) is Ref:
        leaf._array = _moved(leaf._array, sharding)
        return leaf
    if (
        isinstance(leaf, np.ndarray)
        and not sharding.is_fully_addressable
        and not sharding.is_fully_replicated
    ):
        raise errors.value_error(
            "Passing non-trivial shardings for numpy inputs is not allowed where "
            f"several processes share the devices. Got {sharding} for an array of "
            f"shape {leaf.shape}. Say how it is cut: "
            "`minijax.make_array_from_process_local_data`, or `minijax.device_put` of "
            "an array that all processes have."
        )
    if check_place(leaf, sharding):
        return leaf
    if is_spread(sharding):
        moved = put_on_several(leaf, sharding)
        # As in JAX, the type is that of what was passed: no axis cuts it.
        return wrap_as(moved._buffer, get_aval(leaf), sharding)
    return placing.device_put(leaf, sharding)


def check_layout(leaf: Any, layout: Any) -> Any:
    """The layout of an argument for which `jit` was given one, or None.

    ValueError for an array, or a struct, that is committed in another one.
    """
    held = getattr(getattr(leaf, "format", None), "layout", None)
    if layout is None or held is None or not getattr(leaf, "committed", True):
        return layout or held
    if layout is Layout.AUTO or unusual(layout) != unusual(held):
        raise errors.value_error(
            "Layout passed to jit does not match the layout on the respective arg. Got "
            f"jit layout: {layout},\narg layout: {held} for an array of shape "
            f"{leaf.shape}. Move the argument first: `minijax.device_put(x, "
            "Format(layout, x.sharding))`, or lower for a ShapeDtypeStruct."
        )
    return layout


def check_place(leaf: Any, sharding: Any) -> bool:
    """Whether the argument is an array that is committed as `in_shardings` says.

    False for an array with this cut on other devices, which is moved. Raises ValueError
    for an array with another cut.
    """
    if type(leaf) is not Array:
        return False
    if leaf.sharding.memory_kind != sharding.memory_kind:
        raise errors.value_error(
            f"in_shardings names the memory {sharding.memory_kind}, and the argument "
            f"of type {leaf.aval.str_short()} lies in {leaf.sharding.memory_kind}. "
            "Move the argument first: `minijax.device_put(x, sharding)`."
        )
    if not leaf.committed or leaf.sharding.is_equivalent_to(sharding, leaf.ndim):
        return leaf.committed
    places = leaf.sharding, sharding
    first, second = (place._to_xla_hlo_sharding(leaf.ndim) for place in places)
    if first != second and not all(place.is_fully_replicated for place in places):
        raise errors.value_error(
            "Sharding passed to jit does not match the sharding on the respective "
            f"arg. Got jit sharding: {sharding},\narg sharding: {leaf.sharding} "
            f"for arg type: {leaf.aval.str_short()}. Move the argument first: "
            "`minijax.device_put(x, sharding)`."
        )
    return False


@jit_api.jit_with_shardings.attach
def jit_with_shardings(
    fun: Callable, shardings: tuple[Any, Any, Any], options: JitOptions
) -> JitFunction:
    """A jitted function with given shardings, or a device to which arguments move."""
    in_shardings, out_shardings, device = shardings
    if device is not None:
        device = in_shardings = out_shardings = SingleDeviceSharding(device)
    ins = _checked(in_shardings, "in_shardings")
    outs = _checked(out_shardings, "out_shardings")
    sharded = ShardedOptions(
        **vars(options), in_shardings=ins, out_shardings=outs, device=device
    )
    return ShardedJitFunction(fun, sharded)


@pjit.constrained.attach
def constrained(value: Any, sharding: Any, layout: Any) -> Any:
    """A value, traced or of StableHLO, constrained to a sharding and a layout."""
    written = isinstance(value, hlo.ir.Value)
    value = (constrain if written else with_sharding_constraint)(value, sharding)
    if not isinstance(layout, Layout):
        return value
    if written:
        return in_layout(value, layout)
    return layout_constraint_p.bind(value, layout=layout)
