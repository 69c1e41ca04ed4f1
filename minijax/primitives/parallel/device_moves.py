"""`device_put`: an array goes to a device, or to another of its memories.

In a program that runs on one device, the device given here changes nothing. A memory is
a part of the result's type (`f32<host>[3]`), and GPUs and TPUs move the array there. On
a CPU both memories are the same, and programs keep their values where they are.

In JAX: `jax/_src/dispatch.py`, `device_put_p`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.backend import hlo_parts
from minijax.backend.buffer_copies import ArrayCopySemantics
from minijax.core import hlo
from minijax.core.events import Hook
from minijax.core.language import Primitive, register
from minijax.core.rules import Zero, def_linear, final_sharding
from minijax.support.devices.partition_spec import PartitionSpec
from minijax.support.memory_spaces import MemorySpace, space_at

device_put_p = register(Primitive("device_put", multiple_results=True))
device_put_p.meaning = lambda *xs, **_: list(xs)


@Hook
def put_now(value: Any, device: Any = None) -> Any:
    """An array at a place, now; `compile/placing.py` attaches it."""
    raise NotImplementedError("`import minijax` attaches device_put.")


@device_put_p.def_impl
def _put_all(*values: Any, devices: Any, srcs: Any, copy_semantics: Any) -> list[Any]:
    return [put_now.run(value, device) for value, device in zip(values, devices)]


def placed_aval(aval: Any, device: Any) -> Any:
    """The type of an array of type `aval` once it is at `device`."""
    space = space_at(device)
    return aval if space is None else aval.update(memory_space=space.of_type)


@device_put_p.def_abstract_eval
def _device_put_type(*avals, devices, srcs, copy_semantics) -> list:
    return [placed_aval(aval, device) for aval, device in zip(avals, devices)]


def _device_put_staging(trace, args, params) -> Any:
    """`device_put(x, P("x"))` is for the mesh that is in use now."""
    places = params["devices"]
    if not any(isinstance(place, PartitionSpec) for place in places):
        return NotImplemented
    final = [
        final_sharding(place, "device_put")
        if isinstance(place, PartitionSpec)
        else place
        for place in places
    ]
    return device_put_p.bind(*args, **{**params, "devices": tuple(final)})


device_put_p.staging = _device_put_staging


def _device_put_transpose(cts, *xs, devices, srcs, copy_semantics) -> list:
    """Back to where each array came from; what is zero stays where it is."""
    answers: list[Any] = [None] * len(cts)
    moved = [index for index, ct in enumerate(cts) if type(ct) is not Zero]
    if any(copy_semantics[i] is ArrayCopySemantics.DONATE_INPUT for i in moved):
        raise ValueError(
            "device_put(x, donate=True) has no transpose, since its input is gone. "
            "Leave donate out where gradients are taken."
        )
    if moved:
        back = put_arrays(
            [cts[index] for index in moved],
            [srcs[index] for index in moved],
            [devices[index] for index in moved],
            ArrayCopySemantics.ALWAYS_COPY,
        )
        for index, answer in zip(moved, back):
            answers[index] = answer
    return answers


def_linear(device_put_p, _device_put_transpose)


@device_put_p.def_batch
def _device_put_batch(axis_data, args, dims, **params) -> tuple:
    return device_put_p.bind(*args, **params), list(dims)


@device_put_p.def_lowering
def _device_put_lowering(ctx, *xs, **params) -> list:
    return list(xs)


def _moving_lowering(ctx, *xs, devices, **params) -> list:
    """XLA moves what it finds inside of this call; it knows memories by these names."""
    kinds = {MemorySpace.Host: "pinned_host", MemorySpace.Device: "device"}
    moved = []
    for index, (x, device) in enumerate(zip(xs, devices)):
        space = space_at(device)
        if space in kinds:
            call = hlo.stablehlo.CustomCallOp(
                [ctx.result_type(index)],
                [x],
                "annotate_device_placement",
                has_side_effect=True,
                api_version=hlo_parts.int_attribute(1, 32),
            )
            where = {"_xla_buffer_placement": hlo.string(kinds[space])}
            call.attributes["mhlo.frontend_attributes"] = hlo.ir.DictAttr.get(where)
            x = call.result
        moved.append(x)
    return moved


for _platform in ("cuda", "tpu"):
    device_put_p.def_lowering(_moving_lowering, _platform)


def put_arrays(
    arrays: Sequence[Any],
    devices: Sequence[Any],
    srcs: Sequence[Any],
    copy_semantics: Any = ArrayCopySemantics.REUSE_INPUT,
) -> list[Any]:
    """Arrays at their devices: a device, a sharding, a memory or None for each."""
    return device_put_p.bind(
        *arrays,
        devices=tuple(devices),
        srcs=tuple(srcs),
        copy_semantics=(copy_semantics,) * len(arrays),
    )
