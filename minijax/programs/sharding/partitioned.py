"""Programs on several devices: compiled by XLA's partitioner, launched on all.

The lowered program says how its arguments and results are cut; XLA cuts everything in
between and inserts the communication. What was not said, it chooses.

In JAX: `interpreters/pxla.py`, `UnloadedMeshExecutable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from minijax.backend import executables, hlo_parts
from minijax.backend.several_devices import PartitionedSettings
from minijax.compile import caching, tokens
from minijax.core import dispatch, errors, events, hlo, language, partial_eval
from minijax.core.array import Array, default_device, first_device, wrap_as
from minijax.core.language import physical_aval
from minijax.core.runtime import single_device_sharding
from minijax.processes import connecting, fingerprints, launch_order
from minijax.programs.launching import LibraryProgram
from minijax.programs.sharding import cuts, unreduced
from minijax.programs.sharding import placement as on_several
from minijax.programs.sharding.constraints import constrain
from minijax.programs.sharding.contexts import get_abstract_mesh
from minijax.programs.sharding.explicit_types import full_spec, typed
from minijax.programs.sharding.placement import Placement
from minijax.support.devices.layouts import Layout, layout_of_xla, unusual, with_layout
from minijax.support.devices.shardings import (
    GSPMDSharding,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    sdy_sharding,
    spec_of_hlo_sharding,
)

# ----------------------------------------------------------------------------------
# On which devices a program runs
# ----------------------------------------------------------------------------------


@language.weakref_lru_cache
def _places_in(closed: language.ClosedJaxpr) -> list[Any]:
    """The meshes, and the shardings of one device, that a program's equations name."""
    found: list[Any] = []
    _collect(closed.jaxpr, found)
    return found


def _collect(jaxpr: language.Jaxpr, found: list[Any]) -> None:
    for eqn in jaxpr.eqns:
        # For one device a sharding counts here, and a `Device` does not, as in JAX.
        alone = eqn.primitive.name in ("sharding_constraint", "jit", "device_put")
        for value in eqn.params.values():
            for item in value if isinstance(value, tuple) else (value,):
                if type(item) in language.plain_types:
                    continue
                place = getattr(item, "mesh", item)
                named = isinstance(place, Mesh) and not place.empty
                named = named or alone and isinstance(place, SingleDeviceSharding)
                if named and place not in found:
                    found.append(place)
        for inner in language.jaxprs_in_params(eqn.params):
            _collect(inner, found)


def placed(
    closed: language.ClosedJaxpr, request: dispatch.CompileRequest
) -> dispatch.CompileRequest:
    """The request with a complete `Placement` for several devices, or for layouts.

    Raises ValueError as `_on_devices`, and NotImplementedError
    for the layouts of results, and `Layout.AUTO`, of a program with ordered effects.
    """
    place, asked = request.place, request.layouts
    if type(place) is Placement and place.layouts is not None:
        return request
    request = _on_devices(closed, request._replace(layouts=None))
    place = request.place
    if type(place) is not Placement:
        if asked is None:
            return request
        free = (None,) * len(closed.in_avals)
        devices = single_device_sharding(place)._internal_device_list
        place = on_several.placement_of(devices, free, on_several.flat_mesh(devices))
    own = [one and one.layout for one in place.in_shardings]
    if asked is None and not any(own):
        return request
    ins, outs = asked or (own, ())
    if tokens.ordered(closed.effects) and (any(outs) or Layout.AUTO in ins):
        raise NotImplementedError(
            f"{request.name} has ordered effects, and XLA neither keeps the layouts of "
            "such a program's results nor tells what it chose for Layout.AUTO. Leave "
            "these layouts out."
        )
    layouts = tuple(lies or given for lies, given in zip(own, ins)), outs
    if any(map(unusual, outs)):  # XLA drops them where another result is AUTO
        layouts = layouts[0], tuple(map(unusual, outs))
    parts = place.devices, place.in_shardings, place.mesh, place.out_shardings
    return request._replace(place=on_several.placement_of(*parts, layouts))


def _on_devices(
    closed: language.ClosedJaxpr, request: dispatch.CompileRequest
) -> dispatch.CompileRequest:
    """The request with a `Placement`, if it is for several devices.

    They are named by an argument, by `out_shardings`, by the program, or by the mesh in
    use. Raises ValueError if two of these name different devices.
    """
    request = _of_used(closed, request)
    place, committed = request.place, request.committed
    several, found = type(place) is Placement, on_several.context_mesh()
    given = on_several.with_devices(
        request.out_shardings or (), place.mesh if several else None
    )
    shardings = [one for one in given if isinstance(one, Sharding)]
    named: list[tuple] = [("explicit output sharding ", one) for one in shardings]
    named += [("a sharding inside jit ", one) for one in _places_in(closed)]
    if named and not (several or committed) and len(_devices_of(named[0][1])) == 1:
        (place,) = _devices_of(named[0][1])
        committed = True
        request = request._replace(place=place, committed=committed)
    named += [("jit's context mesh ", found)] * (found is not None)
    lies: list[tuple] = [("an argument ", [place])] * committed
    if several:
        there = [i for i, one in enumerate(place.in_shardings) if one is not None]
        lies = [((closed, i), list(place.devices)) for i in there[:1]]
    on_several.check_alike([*lies, *((what, _devices_of(one)) for what, one in named)])
    outs = tuple(
        sharding if on_several.is_spread(sharding) else None for sharding in given
    )
    cut = [sharding for sharding in outs if sharding is not None]
    inside = [one for one in _places_in(closed) if isinstance(one, Mesh)]
    if cut:
        devices = cut[0]._internal_device_list
        mesh = on_several.mesh_of(*cut) or on_several.flat_mesh(devices)
    elif inside:
        mesh = inside[0]
        devices = mesh._internal_device_list
    elif several:
        devices, mesh = place.devices, place.mesh
    elif found is None or committed:
        _check_one_device(closed)
        return request._replace(out_shardings=None)
    else:
        devices, mesh = found._internal_device_list, found
    if not several:
        place = on_several.placement_of(devices, (None,) * len(closed.in_avals), mesh)
    outs = outs or place.out_shardings or ()  # those of an earlier time
    given = [*outs, *(None,) * (len(closed.out_avals) - len(outs))]
    passed = dict(zip(map(id, closed.jaxpr.invars), place.in_shardings))
    outs = tuple(
        _whole(var.aval, place, passed.get(id(var))) if one is None else one
        for one, var in zip(given, closed.jaxpr.outvars)
    )
    if any(outs):
        place = on_several.placement_of(devices, place.in_shardings, place.mesh, outs)
    return request._replace(place=place, committed=True, out_shardings=None)


def _whole(aval: Any, placement: Placement, passed: Any) -> Any:
    """The sharding of a result that a mesh of Explicit axes does not cut.

    `passed` is that of the argument that is the result, if one is; else None.
    """
    mesh = aval.cut.mesh if aval.cut is not None else get_abstract_mesh()
    cut = cuts.cut_of(aval)
    if any(cut) or unreduced.has_words([aval]) or not mesh.are_all_axes_explicit:
        return None
    if passed is not None:
        return passed
    spec = PartitionSpec(*[None] * aval.ndim)
    return NamedSharding(_with_devices(mesh, placement), spec)


def _of_used(
    closed: language.ClosedJaxpr, request: dispatch.CompileRequest
) -> dispatch.CompileRequest:
    """The request without the places of arguments that the program does not use.

    Raises ValueError if the others are committed to different devices.
    """
    place = request.place
    if not request.committed:
        return request
    used = [True] * len(closed.in_avals)
    if not request.keep_unused:
        _, used = partial_eval.dce_closed_jaxpr(closed, [True] * len(closed.out_avals))
    if type(place) is not Placement:
        unused = len(used) > 0 and not any(used)
        away = request._replace(place=default_device(), committed=False)
        return away if unused else request
    kept = tuple(s if flag else None for s, flag in zip(place.in_shardings, used))
    if any(kept):
        devices, mesh = on_several.agreed(kept, closed)
    if kept == place.in_shardings:
        return request
    if not any(kept):
        return request._replace(place=first_device(), committed=False)
    if not any(on_several.is_spread(one) or one and one.layout for one in kept):
        return request._replace(place=devices[0])
    return request._replace(place=on_several.placement_of(devices, kept, mesh))


def _check_one_device(closed: language.ClosedJaxpr) -> None:
    """ValueError if a program for one device has values of a larger Explicit mesh."""
    made = [out.aval for eqn in closed.jaxpr.eqns for out in eqn.outvars]
    for value in (*closed.consts, *made):
        place = getattr(value, "_placed", getattr(value, "cut", None))
        mesh = getattr(place, "mesh", None)
        if mesh is not None and mesh._any_axis_explicit and mesh.size > 1:
            raise errors.value_error(
                "Length of device assignment 1 is not equal to the size of the mesh "
                f"{mesh.size} of {getattr(value, 'aval', value)}: the program makes or "
                "closes over it, and its arguments are on one device. Set the mesh: "
                "`with minijax.set_mesh(mesh):`."
            )


def _devices_of(place: Any) -> list[Any]:
    return list(place._internal_device_list)


# ----------------------------------------------------------------------------------
# Compiling
# ----------------------------------------------------------------------------------


def load(lowered: Any, placement: Placement, options: tuple) -> Any:
    """The executable of a lowered program for several devices.

    Raises ValueError for an ordered effect that runs on one device only.
    """
    tokens.check_devices(lowered.effects, len(placement.devices))
    ins = in_shardings_of(lowered, placement)
    outs = out_shardings_of(lowered, placement)
    executable = _compile_for_several(lowered, placement, ins, outs, options)
    # Without a sharding, the results of a call to the host lie on its device alone.
    # All devices get them then.
    found: Sequence[Any] = executables.output_shardings(executable) or ()
    found = found[len(found) - len(outs) :]
    alone = [one.is_maximal() and not one.is_replicated() for one in found]
    if any(alone) and len(placement.devices) > 1:
        pairs = zip(alone, outs, strict=True)
        whole = placement.replicated
        outs = [whole if one and out is None else out for one, out in pairs]
        executable = _compile_for_several(lowered, placement, ins, outs, options)
    return executable


def _compile_for_several(
    lowered: Any, placement: Placement, ins: Sequence, outs: Sequence, options: tuple
) -> Any:
    with lowered.context, hlo.ir.Location.unknown():
        settings = annotate(lowered, placement, ins, outs)
        settings = replace(settings, options=dict(options))
        if not placement.devices.is_fully_addressable:
            text = lowered.module.operation.get_asm(enable_debug_info=False)
            avals = [lowered.in_avals[i] for i in lowered.kept]
            place = placement.devices, placement.mesh
            fingerprints.compare(lowered.name, text, avals, *place, ins, outs)
        return caching.load_or_compile(lowered, placement.devices, settings)


def in_shardings_of(lowered: Any, placement: Placement) -> list[Any]:
    """The sharding of each argument that the program keeps; None if XLA chooses."""
    given = placement.in_shardings
    # Refs that the program closes over come after the arguments.
    return [given[i] if i < len(given) else None for i in lowered.kept]


def out_shardings_of(lowered: Any, placement: Placement) -> list[Any]:
    """The sharding of each result; None if XLA chooses.

    Where all axes are Explicit, or cut every dimension, the type decides.
    """
    given = placement.out_shardings or ()
    found = [*given, *(None,) * (len(lowered.out_avals) - len(given))]
    cuts = [getattr(aval, "cut", None) for aval in lowered.out_avals]
    return [
        NamedSharding(_with_devices(cut.mesh, placement), cut.spec)
        if one is None and cut is not None and _decides(cut)
        else one
        for one, cut in zip(found, cuts)
    ]


def _decides(cut: NamedSharding) -> bool:
    parts = cut.spec.partitions
    return cut.mesh.are_all_axes_explicit or (len(parts) > 0 and all(parts))


def _with_devices(mesh: Any, placement: Placement) -> Mesh:
    """The mesh of a type, with the devices of a program."""
    if placement.mesh.abstract_mesh == mesh:
        return placement.mesh
    devices = np.array(list(placement.devices), dtype=object)
    return Mesh(devices.reshape(mesh.axis_sizes), mesh.axis_names, mesh.axis_types)


def annotate(
    lowered: Any, placement: Placement, ins: Sequence[Any], outs: Sequence[Any]
) -> PartitionedSettings:
    """Write the shardings on the arguments and results of `main`.

    Returns how the program is compiled for its devices.
    """
    module = lowered.module
    devices = hlo_parts.int_attribute(placement.mesh.size, 32)
    module.operation.attributes["mhlo.num_partitions"] = devices
    one = hlo_parts.int_attribute(1, 32)
    module.operation.attributes["mhlo.num_replicas"] = one
    hlo_parts.call_out_from_first_device(module)
    main = hlo.ir.SymbolTable(module.operation)["main"]
    types = main.type
    given, asked = placement.layouts or ((), ())
    of_args = [given[i] if i < len(given) else None for i in lowered.kept]
    asked = asked or (None,) * len(outs)
    parameters = _mark(
        main, "arg_attrs", types.inputs, ins, of_args, placement.replicated
    )
    results = _mark(main, "res_attrs", types.results, outs, asked, None)
    _constrain_addends(main, ins, outs)
    hlo_parts.run_passes(module, "sdy-lift-inlined-meshes")
    return PartitionedSettings(
        num_partitions=placement.mesh.size,
        propagate_to_parameters=parameters,
        propagate_to_outputs=results,
    )


def _constrain_addends(main: Any, ins: Sequence[Any], outs: Sequence[Any]) -> None:
    """If a value is unreduced, writes shardings of arguments as operations, too.

    XLA of jaxlib 0.12 splits a value into addends, or adds addends up, only behind an
    operation with a sharding.
    """
    found = [(i, one) for i, one in enumerate(ins) if isinstance(one, NamedSharding)]
    named_ = [*(one for _, one in found), *outs]
    if not any(getattr(getattr(s, "spec", None), "unreduced", ()) for s in named_):
        return
    block = main.regions[0].blocks[0]
    for i, sharding in found:
        argument = block.arguments[len(block.arguments) - len(ins) + i]
        with hlo.ir.InsertionPoint.at_block_begin(block):
            same = constrain(argument, sharding)
        argument.replace_all_uses_except(same, same.owner.operation)


def _mark(
    main: Any,
    name: str,
    types: Sequence[Any],
    shardings: Sequence[Any],
    layouts: Sequence[Any],
    of_first: Any,
) -> tuple[bool, ...]:
    """Write shardings and layouts on arguments or results; return which XLA chooses.

    `of_first` is the sharding of the constants and tokens, which come first.
    """
    first = len(types) - len(shardings)
    dicts = main.attributes[name] if name in main.attributes else [()] * len(types)
    written = []
    whole = [*[of_first] * first, *shardings]
    modes = [*[None] * first, *layouts]
    each = zip(types, dicts, whole, modes, strict=True)
    for kind, old, sharding, layout in each:
        entry = {named.name: named.attr for named in old}
        if "tf.aliasing_output" in entry:
            # Which result takes the memory depends on shardings that XLA chooses.
            del entry["tf.aliasing_output"]
            entry["jax.buffer_donor"] = hlo.ir.BoolAttr.get(True)
        if sharding is not None and isinstance(kind, hlo.ir.RankedTensorType):
            entry["sdy.sharding"] = sdy_sharding(named(sharding), kind.rank)
            if sharding.memory_kind not in (None, "device"):
                entry["mhlo.memory_kind"] = hlo.string(sharding.memory_kind)
        if layout is not None:
            order = getattr(layout, "major_to_minor", None)
            mode = "auto" if order is None else f"{{{','.join(map(str, order[::-1]))}}}"
            entry["mhlo.layout_mode"] = hlo.string(mode)
        written.append(hlo.ir.DictAttr.get(entry))
    main.attributes[name] = hlo.ir.ArrayAttr.get(written)
    return (*[False] * first, *(sharding is None for sharding in shardings))


def named(sharding: Any) -> NamedSharding:
    """A sharding in terms of a mesh: its own, or one with the devices in a row."""
    if isinstance(sharding, NamedSharding):
        return sharding
    mesh = on_several.flat_mesh(sharding._internal_device_list)
    hlo_sharding = sharding._to_xla_hlo_sharding(0)
    return NamedSharding(mesh, spec_of_hlo_sharding(hlo_sharding, mesh))


# ----------------------------------------------------------------------------------
# Running
# ----------------------------------------------------------------------------------


class PartitionedProgram(LibraryProgram):
    """A program compiled for several devices; called like `dispatch.Program`.

    Attributes:
      in_shardings: the sharding of each argument it keeps.
      out_shardings: the sharding of each result.
      chosen: the positions, among the kept arguments, whose sharding XLA chose. What
        comes there is spread when the program is called.
    """

    def __init__(
        self,
        lowered: Any,
        executable: Any,
        placement: Placement,
        committed: bool = True,
    ):
        self.name = lowered.name
        self.executable = executable
        self.lowered = lowered
        everything = len(lowered.kept) == len(lowered.in_avals)
        self.kept = None if everything else lowered.kept
        self.out_avals = lowered.out_avals
        self.device = placement
        self.placement = placement
        self.moves = False
        ins = in_shardings_of(lowered, placement)
        outs = out_shardings_of(lowered, placement)
        self.chosen = [i for i, sharding in enumerate(ins) if sharding is None]
        self.in_shardings = _completed(
            ins, executables.parameter_shardings(executable), placement
        )
        self.out_shardings = []
        found = _completed(outs, executables.output_shardings(executable), placement)
        for asked, one, aval in zip(outs, found, self.out_avals):
            if asked is None:
                one = _reworded(one, aval, ins, lowered, placement)
            self.out_shardings.append(_on_mesh_of(aval, one, placement))
        self.placed: list[Any] = list(self.out_shardings)
        if not committed:
            (device,) = placement.devices
            self.placed = [None if device == first_device() else device] * len(outs)
        if placement.layouts is not None:
            self._read_layouts(*placement.layouts, committed)
        avals = [physical_aval(aval) for aval in self.out_avals]
        self.launch = self.launcher(avals, self.out_shardings, committed)
        if not placement.devices.is_fully_addressable:
            with lowered.context:
                text = lowered.module.operation.get_asm(enable_debug_info=False)
            member = connecting.state.member
            self.launch = launch_order.in_order(
                self.launch, self.name, text, placement.devices, executable, member
            )
        self.out_avals = tuple(map(typed, self.out_avals, self.out_shardings))
        const_avals = [language.get_aval(const) for const in lowered.constants]
        _, _, self.constants = on_several.place(
            lowered.constants, const_avals, placement
        )

    def _read_layouts(self, ins: tuple, outs: tuple, committed: bool) -> None:
        """Note which arguments and results are not in row-major order.

        `ins` and `outs` are what was asked for. AssertionError if XLA did otherwise.
        """
        loaded, kept = self.executable.loaded, self.lowered.kept
        found = outs
        params = [ins[position] for position in kept if position < len(ins)]
        if not tokens.ordered(self.lowered.effects):
            found = tuple(map(layout_of_xla, loaded.get_output_layouts()))
            given = loaded.get_parameter_layouts()
            params = list(map(layout_of_xla, given[len(given) - len(kept) :]))
        for at, (layout, asked) in enumerate(zip_longest(map(unusual, found), outs)):
            if asked is not Layout.AUTO and layout != unusual(asked):
                raise AssertionError(
                    f"XLA took {layout} for result {at} of {self.name}, not {asked}. "
                    "Leave this layout out."
                )
            if layout is not None:
                sharding = self.out_shardings[at]
                self.placed[at] = with_layout(sharding, layout, committed)
        for at, (position, param) in enumerate(zip(kept, params)):
            layout = unusual(param)
            self.in_shardings[at] = with_layout(self.in_shardings[at], layout)
            if layout is not None and ins[position] is Layout.AUTO:
                self.chosen.append(at)

    def buffers_of(self, leaves: Sequence[Any]) -> list[Any]:
        """The buffers of a call's arguments, on the devices of the compiled program."""
        kept = dict(zip(self.lowered.kept, self.in_shardings))
        buffers = []
        for position, leaf in enumerate(leaves):
            sharding = kept.get(position, self.placement.replicated)
            aval = language.get_aval(leaf)
            buffers.append(on_several.spread_out(leaf, aval, sharding))
        return buffers

    def run(self, buffers: list[Any]) -> list[Array]:
        """Launch on buffers of checked types, asynchronously."""
        inputs = buffers
        if self.kept is not None:
            inputs = [buffers[index] for index in self.kept]
        elif self.chosen:
            inputs = list(buffers)
        for position in self.chosen:
            sharding = self.in_shardings[position]
            inputs[position] = on_several.spread_buffer(inputs[position], sharding)
        if self.constants:
            inputs = self.constants + inputs
        arrays = [*map(wrap_as, self.launch(inputs), self.out_avals, self.placed)]
        if events.subscribers:
            events.emit("execute", program=self, results=arrays)
        return arrays


def _completed(
    given: Sequence[Any], found: Sequence[Any] | None, placement: Placement
) -> list[Any]:
    """The shardings, with XLA's choice where none was given."""
    if found is None:
        return [placement.replicated if one is None else one for one in given]
    chosen = found[len(found) - len(given) :]
    return [
        told(of_xla, placement) if one is None else one
        for one, of_xla in zip(given, chosen, strict=True)
    ]


def _reworded(
    sharding: Any, aval: Any, ins: Sequence[Any], lowered: Any, placement: Placement
) -> Any:
    """XLA's choice for a result, spelled like another sharding that cuts alike.

    `P("x", None)` and `P("x")` cut alike. The other sharding is that of the result's
    type if it names axes, or else that of the first argument if its rank is equal.
    """
    rank, cut = getattr(aval, "ndim", None), getattr(aval, "cut", None)
    other = ins[0] if ins else None
    if cut is not None and cut.mesh._any_axis_explicit:
        other = NamedSharding(_with_devices(cut.mesh, placement), cut.spec)
    elif not isinstance(other, NamedSharding):
        return sharding
    elif other.mesh.are_all_axes_explicit:
        return full_spec(sharding, aval)
    elif rank != lowered.in_avals[lowered.kept[0]].ndim:
        return sharding
    return other if sharding.is_equivalent_to(other, rank) else sharding


def _on_mesh_of(aval: Any, sharding: Any, placement: Placement) -> Any:
    """A sharding over the placement's mesh, whose axes have the types of `aval`'s."""
    cut, mesh = getattr(aval, "cut", None), getattr(sharding, "mesh", None)
    if cut is None or mesh is not placement.mesh or cut.mesh.shape != mesh.shape:
        return sharding
    return sharding.update(mesh=mesh.update(axis_types=cut.mesh.axis_types))


def told(hlo_sharding: Any, placement: Placement) -> Any:
    """XLA's sharding in terms of the user's mesh, if that can express it."""
    if placement.alone:
        return placement.replicated
    try:
        spec = spec_of_hlo_sharding(hlo_sharding, placement.mesh)
        return NamedSharding(placement.mesh, spec)
    except ValueError:
        return GSPMDSharding(tuple(placement.devices), hlo_sharding)
