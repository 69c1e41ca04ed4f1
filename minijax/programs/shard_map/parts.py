"""Values inside of a `shard_map` that is called outside of all programs.

    def f(part):
        print(part)                       # the part of each device
        if lax.psum(part.sum(), "x") > 3:  # the same on all devices: Python may ask
            ...

The function is traced as always, and its program runs once, at the end. Where Python
asks for a value on the way, the equations that it needs run by themselves.

In JAX each operation of such a function runs as it is met: `jax/_src/shard_map.py`,
`ShardMapTrace`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from minijax.core import language, partial_eval
from minijax.core.language import eval_trace, set_current_trace
from minijax.core.partial_eval import DynamicJaxprTrace, DynamicJaxprTracer
from minijax.core.state import state
from minijax.primitives.parallel.variation import in_mesh_order
from minijax.primitives.shape.squeezing import expand_dims
from minijax.programs.shard_map.primitive import Params, shard_map_p
from minijax.programs.shard_map.varying import pcast
from minijax.support.devices.shardings import Mesh, PartitionSpec
from minijax.support.settings import override
from minijax.values.named_axes import NamedAxisEffect

# What the scope of a shard_map sets; outside of it the values are these.
SCOPE = "axis_env", "varying_axes", "manual_mesh", "abstract_mesh", "entering"


class Part(DynamicJaxprTracer):
    """A device's part of an array, whose values can be asked for."""

    __slots__ = ()

    _trace: PartsTrace

    def to_concrete_value(self) -> Any | None:
        """The array, where it is the same on all devices; None where it may differ."""
        if not self._trace.params["check_vma"] or self.aval.vma:
            return None
        return self._trace.run(self, lambda part: part, PartitionSpec(), lambda x: x)

    def __repr__(self) -> str:
        mesh = self._trace.params["mesh"]

        def stacked(part: Any) -> Any:
            missing = in_mesh_order({*mesh.axis_names} - self.aval.vma)
            if self._trace.params["check_vma"] and missing:
                part = pcast(part, missing, to="varying")
            return expand_dims(part, (0,))

        parts = None
        if self._trace.alive and not mesh.is_multi_process:
            spec = PartitionSpec(mesh.axis_names)
            parts = self._trace.run(self, stacked, spec, lambda x: list(map(str, x)))
        if parts is None:
            return super().__repr__()
        names = ", ".join(map(str, mesh.axis_names))
        return "\n".join(
            f"On {device} at mesh coordinates ({names},) = {at}:\n{part}\n"
            for (at, device), part in zip(np.ndenumerate(mesh.devices), parts)
        )


class PartsTrace(DynamicJaxprTrace):
    """Writes the program of one device, and runs what a value needs when asked."""

    __slots__ = ("arrays", "outside", "params")

    def __init__(self, info: Any, arrays: Sequence[Any], params: Params) -> None:
        super().__init__(info)
        self.arrays = arrays
        self.params = params
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
        out = super().process_primitive(primitive, args, params)
        return self._all(out) if primitive.multiple_results else self.lift(out)

    def process_custom_jvp_call(self, *call: Any, **params: Any) -> list[Any]:
        return self._all(super().process_custom_jvp_call(*call, **params))

    def process_custom_vjp_call(self, *call: Any, **params: Any) -> list[Any]:
        return self._all(super().process_custom_vjp_call(*call, **params))

    def run(self, part: Part, finish: Callable, spec: Any, read: Callable) -> Any:
        """What `read` makes of `finish(part)` of all devices, put together by `spec`.

        None if effects, such as a write to a ref, belong to what it needs.
        """
        needed, eqns = {part.atom}, []
        for eqn in reversed(self.eqns):
            if needed.intersection(eqn.outvars):
                eqns.append(eqn)
                needed.update(eqn.invars)
        if any(not isinstance(x, NamedAxisEffect) for eqn in eqns for x in eqn.effects):
            return None
        consts = self.constants.values()
        jaxpr = language.Jaxpr(
            [*consts], self.invars, [part.atom], eqns[::-1], language.no_effects
        )

        def needs(*parts: Any) -> list[Any]:
            return [finish(*language.eval_jaxpr(jaxpr, [*consts.values()], *parts))]

        avals = [var.aval for var in self.invars]
        program, arrays = partial_eval.trace_to_jaxpr(needs, avals)
        ins = (PartitionSpec(),) * len(arrays) + self.params["in_specs"]
        closed = language.ClosedJaxpr(partial_eval.convert_constvars_jaxpr(program))
        params = {**self.params, "jaxpr": closed, "in_specs": ins, "out_specs": (spec,)}
        with ExitStack() as stack, set_current_trace(eval_trace):
            for setting in self.outside:
                stack.enter_context(setting)
            return read(*shard_map_p.bind(*arrays, *self.arrays, **params))


def parts_trace(info: Any, arrays: Sequence[Any], params: Params) -> PartsTrace | None:
    """The trace of a `shard_map` over all of a mesh, outside of all programs."""
    mesh = params["mesh"]
    if state.trace is not eval_trace or not isinstance(mesh, Mesh):
        return None
    whole = params["newly_manual_axes"] == frozenset(mesh.axis_names)
    return PartsTrace(info, arrays, params) if whole else None
