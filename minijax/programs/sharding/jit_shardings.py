"""`jit(f, in_shardings=..., out_shardings=...)`.

Arguments that insist on nothing are moved to their `in_shardings` before the call;
others must be there. The compiler cuts the results as `out_shardings` says.

In JAX: `jax/_src/pjit.py`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.compile import jit_api, placing
from minijax.core import dispatch, errors, pretty
from minijax.core import jit as pjit
from minijax.core.array import Array
from minijax.core.jit import UNSPECIFIED, JitFunction, Traced, jit_p
from minijax.core.language import (
    ClosedJaxpr,
    JaxprEqn,
    Tracer,
    eval_trace,
    get_aval,
    weakref_lru_cache,
)
from minijax.core.partial_eval import trace_to_jaxpr
from minijax.core.signatures import Bound, JitOptions
from minijax.core.state import state
from minijax.core.trees import (
    broadcast_prefix_to_treedef,
    tree_flatten,
    tree_unflatten,
)
from minijax.programs.sharding.constraints import constrain, with_sharding_constraint
from minijax.programs.sharding.contexts import mesh_of_jit, sharding_of
from minijax.programs.sharding.placement import (
    Placement,
    flat_mesh,
    is_spread,
    mesh_of,
    placement_of,
    put_on_several,
)
from minijax.support.devices.layouts import Format
from minijax.support.devices.shardings import PartitionSpec, Sharding


@dataclasses.dataclass(frozen=True)
class ShardedOptions(JitOptions):
    """What `jit` was asked for, with shardings: (leaves, tree) of each argument."""

    in_shardings: tuple | None = None
    out_shardings: tuple | None = None


def _is_none(value: Any) -> bool:
    return value is None


def _checked(shardings: Any, name: str) -> tuple | None:
    """(leaves, tree) of a tree of shardings; None if nothing is given."""
    if shardings is None:
        return None
    leaves, tree = tree_flatten(shardings, is_leaf=_is_none)
    found = []
    for leaf in leaves:
        if isinstance(leaf, Format):
            if leaf.layout is not None:
                raise NotImplementedError(
                    f"jit({name}=Format(...)) with a layout is not supported: the "
                    "compiler chooses layouts. Pass the sharding alone."
                )
            leaf = leaf.sharding
        if leaf is not None and not isinstance(leaf, (Sharding, PartitionSpec)):
            raise errors.type_error(
                f"{name} holds shardings, PartitionSpecs for the mesh in use, or None; "
                f"got {leaf!r} of type {type(leaf).__name__}."
            )
        found.append(leaf)
    return (tuple(found), tree)


def _for_leaves(given: tuple, tree: Any, count: int, name: str) -> list[Any]:
    """One sharding, or None, for each leaf of the tree that `given` is a prefix of.

    A `PartitionSpec` alone means the mesh in use where the function is called.
    """
    leaves, prefix = given
    leaves = [sharding_of(leaf, f"jit({name}=...)", mesh_of_jit()) for leaf in leaves]
    if len(leaves) == 1 and prefix.num_nodes == 1:
        return leaves * count
    wanted = tree_unflatten(prefix, leaves)
    try:
        return broadcast_prefix_to_treedef(wanted, tree)
    except ValueError as error:
        raise errors.value_error(
            f"{name} is no prefix of the tree that it describes: {error}"
        ) from None


class ShardedJitFunction(JitFunction):
    """A jitted function whose arguments or results have given shardings."""

    _options: ShardedOptions

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if state.disable_jit:
                return self._fun(*args, **kwargs)
            leaves, tree, statics = self._signature.flatten(args, kwargs)
            avals = tuple(
                self._signature.type_of(leaf, position, args, kwargs)
                for position, leaf in enumerate(leaves)
            )
            key = (tree, avals, state.trace_key, statics)
            bound = Bound(leaves, tree, statics, len(args))
            if state.trace is not eval_trace or any(map(pjit.is_tracer, leaves)):
                return self._bind(bound, key)
            wanted = self._wanted(bound, kwargs)
            leaves = [*map(_moved, leaves, wanted)]
            if any(map(_is_explicit, wanted)):
                avals = tuple(map(get_aval, leaves))
                key = (tree, avals, state.trace_key, statics)
            place, committed, buffers = dispatch.place.run(leaves, avals)
            place = self._with_devices(place, committed, wanted, len(leaves))
            call_key = (key, place, committed)
            call = self._caches.calls.get(call_key)
            if call is None:
                call = self._compile(bound, key, call_key, place, committed)
            outputs = call.program(buffers)
            if call.donated:
                pjit._give_up(leaves, call.donated)
            return call.unflatten(outputs)
        except Exception as error:
            errors.filter_traceback.run(error)
            raise

    def _wanted(self, bound: Bound, kwargs: dict) -> Sequence[Any]:
        given = self._options.in_shardings
        if given is None:
            return [None] * len(bound.leaves)
        if kwargs:
            raise errors.value_error(
                "pjit does not support kwargs when in_shardings is specified. Pass "
                f"{sorted(kwargs)} by position."
            )
        args = tree_unflatten(bound.tree, bound.leaves)[0]
        _, tree = tree_flatten(args)
        return _for_leaves(given, tree, len(bound.leaves), "in_shardings")

    def _with_devices(
        self, place: Any, committed: bool, wanted: Sequence[Any], count: int
    ) -> Any:
        """A `Placement`, where results have shardings but no argument had."""
        given = (self._options.out_shardings or ((),))[0]
        places = [sharding_of(place, "jit", mesh_of_jit()) for place in given]
        outs = [place for place in places if is_spread(place)]
        if type(place) is Placement or not outs or committed:
            return place
        devices = outs[0]._internal_device_list
        mesh = mesh_of(*outs) or flat_mesh(devices)
        return placement_of(devices, (None,) * count, mesh)

    def _traced(self, bound: Bound, key: tuple) -> Traced:
        traced = super()._traced(bound, key)
        if traced.params["out_shardings"][:1] not in ((), (UNSPECIFIED,)):
            return traced
        outer = len(traced.outer)
        ins: Sequence[Any] = [None] * outer
        if self._options.in_shardings is not None:
            ins = [*ins, *self._wanted(bound, {})]
            traced.params["in_shardings"] = tuple(map(_specified, ins))
        if self._options.out_shardings is not None:
            outs = self._results(traced)
            traced.params["out_shardings"] = tuple(map(_specified, outs))
        return traced

    def _results(self, traced: Traced) -> list[Any]:
        given = self._options.out_shardings
        assert given is not None
        count = len(traced.closed.out_avals)
        found = _for_leaves(given, traced.out_tree, count, "out_shardings")
        for aval, sharding in zip(traced.closed.out_avals, found):
            if is_spread(sharding):
                sharding.shard_shape(aval.shape)
        return found

    def _compile(
        self, bound: Bound, key: tuple, call_key: tuple, device: Any, committed: bool
    ) -> Any:
        if self._options.out_shardings is not None and type(device) is Placement:
            outs = self._results(self._traced(bound, key))
            device = device.with_results(
                tuple(s if is_spread(s) else None for s in outs)
            )
        return super()._compile(bound, key, call_key, device, committed)


errors.boundaries.add(ShardedJitFunction.__call__.__code__)


def _is_explicit(sharding: Any) -> bool:
    mesh = getattr(sharding, "mesh", None)
    return mesh is not None and mesh._any_axis_explicit


def _specified(sharding: Any) -> Any:
    return UNSPECIFIED if sharding is None else sharding


def _moved(leaf: Any, sharding: Any) -> Any:
    """The argument, where `in_shardings` wants it.

    Raises ValueError if it insists on another place, and for an array of NumPy that
    would be cut over several processes: each could have another one.
    """
    if sharding is None or isinstance(leaf, Tracer):
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
    if type(leaf) is Array and leaf.committed:
        if leaf.sharding.is_equivalent_to(sharding, leaf.ndim):
            return leaf
        if leaf.sharding.num_devices > 1 or sharding.num_devices == 1:
            raise errors.value_error(
                "Sharding passed to jit does not match the sharding on the respective "
                f"arg. Got jit sharding: {sharding},\narg sharding: {leaf.sharding} "
                f"for arg type: {leaf.aval.str_short()}. Move the argument first: "
                "`minijax.device_put(x, sharding)`."
            )
    if is_spread(sharding):
        return put_on_several(leaf, sharding)
    return placing.device_put(leaf, sharding)


@jit_api.jit_with_shardings.attach
def jit_with_shardings(
    fun: Callable, in_shardings: Any, out_shardings: Any, options: JitOptions
) -> JitFunction:
    """A jitted function with given shardings."""
    plain = {
        field.name: getattr(options, field.name)
        for field in dataclasses.fields(JitOptions)
    }
    return ShardedJitFunction(
        fun,
        ShardedOptions(
            **plain,
            in_shardings=_checked(in_shardings, "in_shardings"),
            out_shardings=_checked(out_shardings, "out_shardings"),
        ),
    )


# ----------------------------------------------------------------------------------
# The equation
# ----------------------------------------------------------------------------------

_plain_pretty = jit_p.pretty
_plain_lowering = jit_p.lowerings[None]


@pretty.borrows_names
@pretty.printed_first("name")
def _pretty(params: dict[str, Any]) -> dict[str, Any]:
    """As without shardings, and those that are given."""
    shown = _plain_pretty(params)
    for name in ("in_shardings", "out_shardings"):
        if any(one is not UNSPECIFIED for one in params[name]):
            shown[name] = params[name]
    return shown


jit_p.pretty = _pretty


@jit_p.def_lowering
def _lowering(ctx: Any, *operands: Any, in_shardings, out_shardings, **params) -> list:
    operands = tuple(map(_cut, operands, in_shardings))
    results = _plain_lowering(ctx, *operands, **params)
    return list(map(_cut, results, out_shardings))


def _cut(value: Any, sharding: Any) -> Any:
    return value if sharding is UNSPECIFIED else constrain(value, sharding)


# ----------------------------------------------------------------------------------
# Under other transformations
# ----------------------------------------------------------------------------------

# A transformation adds inputs and outputs, so it gets the program with its shardings
# written inside: constraints on the inputs and outputs.


@weakref_lru_cache
def _written_inside(closed: ClosedJaxpr, ins: tuple, outs: tuple) -> ClosedJaxpr:
    params = pjit.jit_params(closed, "sharded")

    def program(*args: Any) -> list[Any]:
        results = jit_p.bind(*map(_constrained, args, ins), **params)
        return list(map(_constrained, results, outs))

    jaxpr, consts = trace_to_jaxpr(program, closed.in_avals)
    return ClosedJaxpr(jaxpr, consts)


def _constrained(value: Any, sharding: Any) -> Any:
    if sharding is UNSPECIFIED:
        return value
    return with_sharding_constraint(value, sharding)


def _opened(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an equation without shardings that does the same."""
    ins, outs = params["in_shardings"], params["out_shardings"]
    if all(one is UNSPECIFIED for one in (*ins, *outs)):
        return params
    program = _written_inside(params["jaxpr"], ins, outs)
    return pjit.with_program(params, program, params["donated_invars"])


def _opening(rule: Callable) -> Callable:
    """The rule, given an equation without shardings."""

    @functools.wraps(rule)
    def opening(*args: Any, **params: Any) -> Any:
        given = [
            arg.replace(params=_opened(arg.params))
            if isinstance(arg, JaxprEqn)
            else arg
            for arg in args
        ]
        return rule(*given, **(_opened(params) if "jaxpr" in params else params))

    return opening


for _name in (
    *("impl", "jvp", "linearize", "transpose", "batch"),
    *("partial_eval", "partial_eval_custom", "discharge"),
):
    setattr(jit_p, _name, _opening(getattr(jit_p, _name)))

_plain_dce: Any = jit_p.dce


def _dce(used: Sequence[bool], eqn: JaxprEqn) -> JaxprEqn | None:
    """The equation without what is not needed; the shardings of the rest stay."""
    smaller = _plain_dce(used, eqn)
    ins, outs = eqn.params["in_shardings"], eqn.params["out_shardings"]
    if smaller is None or all(one is UNSPECIFIED for one in (*ins, *outs)):
        return smaller
    pairs = iter(zip(eqn.invars, ins))
    kept = [
        next(sharding for var, sharding in pairs if var is wanted)
        for wanted in smaller.invars
    ]
    params = {
        **smaller.params,
        "in_shardings": tuple(kept),
        "out_shardings": tuple(s for s, flag in zip(outs, used) if flag),
    }
    return smaller.replace(params=params)


jit_p.dce = _dce
