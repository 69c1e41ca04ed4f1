"""Values inside of a `shard_map` that is called outside of all programs.

    def f(part):
        print(part)                       # the part of each device
        if lax.psum(part.sum(), "x") > 3:  # the same on all devices: Python may ask
            ...

The function is traced as always, and its program runs once, at the end. Where Python
asks for a value on the way, the equations that it needs run by themselves: around it
may be `grad`, `vmap`, or another such `shard_map`, whose part is then asked for.

In JAX each operation of such a function runs as it is met: `jax/_src/shard_map.py`,
`ShardMapTrace`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from minijax.core import dtypes, errors, language, partial_eval
from minijax.core.language import eval_trace, set_current_trace, to_concrete_value
from minijax.core.partial_eval import DynamicJaxprTrace, DynamicJaxprTracer
from minijax.core.state import state
from minijax.primitives.parallel.device_moves import device_put_p
from minijax.primitives.parallel.variation import in_mesh_order, varying
from minijax.primitives.shape.ordering import stop_gradient
from minijax.primitives.shape.squeezing import expand_dims
from minijax.programs.shard_map.primitive import Params, shard_map_p, with_specs
from minijax.programs.shard_map.varying import pcast
from minijax.support.devices.shardings import Mesh, PartitionSpec
from minijax.support.settings import override
from minijax.transforms.rematerialize import where
from minijax.values.named_axes import NamedAxisEffect

# The settings that the scope of a shard_map changes.
SCOPE = "axis_env", "varying_axes", "manual_mesh", "abstract_mesh", "entering"


class Part(DynamicJaxprTracer):
    """A device's part of an array, whose values can be asked for."""

    __slots__ = ()

    _trace: PartsTrace

    def to_concrete_value(self) -> Any | None:
        """The array, where it is the same on all devices; None where it may differ.

        And None for floats within `grad`, which would take them for constants.
        """
        trace, inexact = self._trace, dtypes.issubdtype(self.aval.dtype, np.inexact)
        within_grad = inexact and hasattr(trace.around, "parent")
        if not trace.params["check_vma"] or self.aval.vma or within_grad:
            return None
        return trace.run(self, lambda part: part, PartitionSpec(), to_concrete_value)

    def __repr__(self) -> str:
        trace, mesh = self._trace, self._trace.mesh
        whole = {*trace.axes} == {*mesh.axis_names}
        parts = None
        if trace.alive and whole and not mesh.is_multi_process:
            parts = self.on_devices()
        if parts is None:
            return super().__repr__()
        names = ", ".join(map(str, mesh.axis_names))
        key = f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n"
        kind = key if dtypes.is_extended(self.dtype) else ""
        return "\n".join(
            f"On {device} at mesh coordinates ({names},) = {at}:\n"
            f"{kind}{parts[device]}\n"
            for at, device in np.ndenumerate(mesh.devices)
        )

    def on_devices(self) -> dict[Any, np.ndarray] | None:
        """The part of each device."""
        trace = self._trace
        own = trace.axes[trace.outer :]
        first = (0,) * len(trace.mesh.axis_names)

        def stacked(part: Any) -> Any:
            missing = in_mesh_order({*own} - varying(part))
            return expand_dims(pcast(part, missing, to="varying"), range(len(own)))

        def read(parts: Any) -> dict[Any, np.ndarray] | None:
            if isinstance(parts, Part):  # of the shard_map around
                return parts.on_devices()
            shards = getattr(to_concrete_value(parts), "addressable_shards", None)
            if shards is None:
                return None
            return {one.device: np.asarray(one.data)[first] for one in shards}

        return trace.run(self, stacked, PartitionSpec(*own), read)


class PartsTrace(DynamicJaxprTrace):
    """Writes the program of one device, and runs what a value needs when asked."""

    __slots__ = ("arrays", "around", "axes", "mesh", "outer", "outside", "params")

    def __init__(
        self, info: Any, arrays: Sequence[Any], params: Params, mesh: Mesh, outer: tuple
    ) -> None:
        super().__init__(info)
        self.arrays = arrays
        self.params = params
        self.mesh = mesh
        # The axes of the shard_maps around this one, then its own.
        own = params["newly_manual_axes"]
        self.axes = outer + tuple(name for name in mesh.axis_names if name in own)
        self.outer = len(outer)
        self.around = state.trace
        self.outside = [override(name, getattr(state, name)) for name in SCOPE]

    def new_arg(self, aval: Any) -> Part:
        return self.lift(super().new_arg(aval))

    def to_atom(self, value: Any) -> Any:
        if type(value) is Part and value._trace is self:
            return value.atom
        return super().to_atom(value)

    def lift(self, value: Any) -> Part:
        atom = self.to_atom(value)
        return Part(self, atom.aval, atom)

    def _all(self, out: Sequence[Any]) -> list[Any]:
        return list(map(self.lift, out))

    def process_primitive(self, primitive: Any, args: Any, params: Any) -> Any:
        places = params["devices"] if primitive is device_put_p else ()
        if any(place is not None for place in places):
            raise errors.value_error(
                f"device_put in a shard_map outside of programs got {[*places]}: each "
                "device has its part. Leave the device out, or move the result."
            )
        out = super().process_primitive(primitive, args, params)
        return self._all(out) if primitive.multiple_results else self.lift(out)

    def process_custom_jvp_call(self, *call: Any, **params: Any) -> list[Any]:
        return self._all(super().process_custom_jvp_call(*call, **params))

    def process_custom_vjp_call(self, *call: Any, **params: Any) -> list[Any]:
        return self._all(super().process_custom_vjp_call(*call, **params))

    def run(self, part: Part, finish: Callable, spec: Any, read: Callable) -> Any:
        """`read(array)`, of the array that `spec` puts together from `finish(part)`s.

        None if effects, such as a write to a ref, belong to what it needs, or arguments
        that have no values, such as those of a `vmap` around.
        """
        needed, eqns = {part.atom}, []
        for eqn in reversed(self.eqns):
            if needed.intersection(eqn.outvars):
                eqns.append(eqn)
                needed.update(eqn.invars)
        if any(not isinstance(x, NamedAxisEffect) for eqn in eqns for x in eqn.effects):
            return None
        consts = self.constants.values()
        kept = [var in needed for var in self.invars]
        invars = where(kept, self.invars)
        jaxpr = language.Jaxpr(
            [*consts], invars, [part.atom], eqns[::-1], language.no_effects
        )

        def needs(*parts: Any) -> list[Any]:
            return [finish(*language.eval_jaxpr(jaxpr, [*consts.values()], *parts))]

        avals = [var.aval for var in invars]
        program, arrays = partial_eval.trace_to_jaxpr(needs, avals)
        ins = [PartitionSpec()] * len(arrays) + where(kept, self.params["in_specs"])
        closed = language.ClosedJaxpr(partial_eval.convert_constvars_jaxpr(program))
        params = with_specs(self.params, closed, ins, [spec])
        with ExitStack() as stack, set_current_trace(self.around):
            for setting in self.outside:
                stack.enter_context(setting)
            arguments = map(stop_gradient, [*arrays, *where(kept, self.arrays)])
            eqns = getattr(_outermost(self.around), "eqns", [])
            written = len(eqns)
            answer = read(*shard_map_p.bind(*arguments, **params))
            del eqns[written:]  # asking leaves nothing in the program around
            return answer


def _outermost(trace: Any) -> Any:
    """The trace that computes, or writes a program, below `grad` and `vmap`."""
    while hasattr(trace, "parent"):
        trace = trace.parent
    return trace


def parts_trace(info: Any, arrays: Sequence[Any], params: Params) -> PartsTrace | None:
    """A trace for a `shard_map` outside of programs, or in another such one."""
    around = _outermost(state.trace)
    if isinstance(around, PartsTrace):
        return PartsTrace(info, arrays, params, around.mesh, around.axes)
    mesh = params["mesh"] if isinstance(params["mesh"], Mesh) else state.mesh
    computes = around is eval_trace and isinstance(mesh, Mesh)
    return PartsTrace(info, arrays, params, mesh, ()) if computes else None
