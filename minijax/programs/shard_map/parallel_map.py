"""pmap: a function on each device, one example a device. Now `jit(shard_map)`.

In JAX: `jax.pmap`; `jax/_src/pmap.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.backend import processes
from minijax.compile.jit_api import jit
from minijax.core import errors, runtime, trees
from minijax.core.array import Array
from minijax.core.errors import api_boundary
from minijax.core.language import eval_trace, get_aval, is_tracer
from minijax.core.signatures import argnums_tuple, check_callable, fun_name
from minijax.core.state import state
from minijax.primitives.shape.squeezing import expand_dims, index_of, squeeze
from minijax.programs.shard_map.mapping import check_axes, shard_map, specs_at
from minijax.programs.sharding import multihost
from minijax.support.devices.shardings import AxisType, IndivisibleError, Mesh


def pmap(
    fun: Callable,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Any:
    """`fun` on several devices, each with one entry along the mapped axes.

    Args:
      fun: from one entry of the arguments to one of the results.
      axis_name: a name for collectives such as `lax.psum`.
      in_axes: the axis of each argument along which its entries stand, None for one
        that every device gets whole; a tree prefix.
      out_axes: where that axis stands in the results, or None for results that are
        equal everywhere.
      static_broadcasted_argnums: positions of arguments that are no arrays.
      devices: the devices; by default as many of the first as there are entries.
      backend: the platform whose devices are taken.
      axis_size: the number of entries, over all processes, checked against the
        arguments.
      donate_argnums: arguments whose memory the results may take over.

    With several processes each calls it, in the same order, with its own part of the
    mapped arguments: as many entries as it has devices. Collectives are over the
    devices of all, and each gets its own part of the results.

    Raises:
      ValueError: for sizes that differ, too few devices, axes that do not fit, or
        static arguments that are not there.
      TypeError: for `in_axes` that hold other things than integers and None.

    In JAX: `jax.pmap`.
    """
    check_callable(fun, "pmap")
    static = argnums_tuple(static_broadcasted_argnums, "static_broadcasted_argnums")
    name = "_pmap_axis" if axis_name is None else axis_name
    if axis_size is not None:
        axis_size = index_of(axis_size, "axis_size")
    check_axes(in_axes, "pmap in_axes")
    given = None if devices is None else list(devices)

    def mapped_leaves(args: tuple) -> tuple[list, Any, list]:
        """The leaves of the arguments that are not static, their tree, their axes."""
        dynamic = [arg for at, arg in enumerate(args) if at not in static]
        leaves, tree = trees.tree_flatten(tuple(dynamic))
        return leaves, tree, _flat_axes(in_axes, tree, len(args), static)

    def with_leaves(args: tuple, tree: Any, leaves: Any) -> list[Any]:
        """The arguments with other leaves."""
        rest = iter(trees.tree_unflatten(tree, leaves))
        return [arg if at in static else next(rest) for at, arg in enumerate(args)]

    def _fun(*args: Any) -> Any:
        leaves, tree, axes = mapped_leaves(args)
        size = _checked_size(fun, leaves, axes, axis_size)
        mesh = _mesh(size, name, given, backend)

        def of_part(*parts: Any) -> Any:
            entries = [
                part if axis is None else squeeze(part, (axis,))
                for part, axis in zip(parts, axes)
            ]
            results = fun(*with_leaves(args, tree, entries))
            outputs, out_tree = trees.tree_flatten(results)
            places = _prefix(out_axes, out_tree, "out_axes")
            outputs = list(map(_with_axis, outputs, places))
            return trees.tree_unflatten(out_tree, outputs)

        ins, outs = specs_at(tuple(axes), name), specs_at(out_axes, name)
        options = {"in_specs": ins, "out_specs": outs, "check_vma": False}
        return shard_map(of_part, mesh=mesh, **options)(*leaves)

    jitted = jit(_fun, static_argnums=static, donate_argnums=donate_argnums)

    def on_several_processes(args: tuple) -> Any:
        """Each process's arguments and results are parts of arrays that all share."""
        leaves, tree, axes = mapped_leaves(args)
        size = _checked_size(fun, leaves, axes, None)
        size *= len(_processes(given, backend))
        if axis_size not in (None, size):
            raise IndivisibleError(
                f"pmap of {fun_name(fun)}: axis_size={axis_size} is the size over all "
                f"processes, and the arguments have {size} entries in all."
            )
        mesh = _mesh(size, name, given, backend)
        specs = specs_at(tuple(axes), name)
        shared = multihost.host_local_array_to_global_array(tuple(leaves), mesh, specs)
        results = jitted(*with_leaves(args, tree, shared))
        out_specs = specs_at(out_axes, name)
        return multihost.global_array_to_host_local_array(results, mesh, out_specs)

    @api_boundary
    @functools.wraps(fun)
    def pmapped(*args: Any) -> Any:
        absent = [at for at in static if not -len(args) <= at < len(args)]
        if absent:
            raise errors.value_error(
                f"pmapped function has static_broadcasted_argnums={static} but was "
                f"called with {len(args)} positional arguments. Pass those at "
                f"{absent} by position."
            )
        traced = any(map(is_tracer, trees.tree_leaves(args)))
        if traced or len(_processes(given, backend)) == 1:
            if state.trace is eval_trace:
                leaves, tree, axes = mapped_leaves(args)
                size = _checked_size(fun, leaves, axes, axis_size)
                own = list(_devices(size, given, backend)[:size])
                moved = [_unless_elsewhere(leaf, own) for leaf in leaves]
                args = tuple(with_leaves(args, tree, moved))
            return jitted(*args)
        return on_several_processes(args)

    pmapped.lower = jitted.lower  # type: ignore[attr-defined]
    return pmapped


def _unless_elsewhere(leaf: Any, devices: list[Any]) -> Any:
    """The leaf; an array on other devices is read, so that it can be moved."""
    if not isinstance(leaf, Array) or not leaf.committed:
        return leaf
    here = list(leaf.sharding._internal_device_list) == devices
    return leaf if here else np.asarray(leaf)


def _prefix(axes: Any, tree: Any, name: str) -> list[Any]:
    try:
        return trees.broadcast_prefix_to_treedef(axes, tree)
    except ValueError:
        raise errors.value_error(
            f"pmap {name} specification must be a tree prefix of the corresponding "
            f"value, got {axes} for {tree}."
        ) from None


def _flat_axes(in_axes: Any, tree: Any, count: int, static: tuple) -> list[Any]:
    """The mapped axis of each leaf; static arguments have an entry that is not used."""
    if isinstance(in_axes, tuple) and len(in_axes) == count:
        in_axes = tuple(axis for at, axis in enumerate(in_axes) if at not in static)
    return _prefix(in_axes, tree, "in_axes")


def _checked_size(
    fun: Callable, leaves: Sequence[Any], axes: Sequence[Any], asked: int | None
) -> int:
    """How many entries there are along the mapped axes."""
    sizes: dict[int, Any] = {}
    for leaf, axis in zip(leaves, axes):
        if axis is None:
            continue
        aval = get_aval(leaf)
        if not -aval.ndim <= axis < aval.ndim:
            raise errors.value_error(
                f"pmap in_axes names axis {axis} of an argument of type "
                f"{aval.str_short()}, which has rank {aval.ndim}."
            )
        sizes[aval.shape[axis]] = aval
    if not sizes:
        raise errors.value_error(
            "pmap requires at least one argument with a mapped axis: a value in "
            "in_axes that is not None. Pass `jnp.arange(size)` along."
        )
    if asked is not None:
        sizes.setdefault(asked, None)
    if len(sizes) > 1:
        raise IndivisibleError(
            f"pmap of {fun_name(fun)} got inconsistent sizes for array axes to be "
            f"mapped: {sorted(sizes)}. The mapped axes of all arguments have one size."
        )
    return next(iter(sizes))


def _mesh(size: int, name: Any, given: Any, backend: str | None) -> Mesh:
    devices = _devices(size, given, backend)
    if size > len(devices) or (given is not None and size != len(given)):
        raise IndivisibleError(
            f"compiling computation that requires {size} logical devices, but only "
            f"{len(devices)} XLA devices are available. On a CPU, ask for more before "
            "the first one is used: minijax.config.update('jax_num_cpu_devices', "
            f"{size})."
        )
    chosen = np.array(list(devices)[:size], dtype=object)
    return Mesh(chosen, (name,), axis_types=(AxisType.Auto,))


def _processes(given: Any, backend: str | None) -> set[int]:
    """The processes whose devices take part."""
    if given is None:
        return set(range(processes.process_count(backend)))
    return {device.process_index for device in given}


def _devices(size: int, given: Any, backend: str | None) -> Sequence[Any]:
    """The devices to choose from; of several processes, as many of each."""
    if given is not None:
        return given
    count = processes.process_count(backend)
    if count == 1:
        return runtime.devices(backend)
    each = [processes.local_devices(number, backend) for number in range(count)]
    fewest = min(map(len, each))
    if size % count or size > count * fewest:
        raise IndivisibleError(
            f"pmap of {size} entries on {count} processes: each process gives as many "
            f"entries as the others, and at most {fewest}, the number of its devices."
        )
    return [device for devices in each for device in devices[: size // count]]


def _with_axis(value: Any, axis: int | None) -> Any:
    """The result with a new axis of size 1, along which the devices' results stand."""
    return value if axis is None else expand_dims(value, (axis,))
