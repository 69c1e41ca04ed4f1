"""The recording behind `see.scale`: what a step would cost on devices not there.

Each plan is a program with shapes for arguments, compiled ahead of time: nothing is
allocated. The collectives, the buffers and the kernels are those of the compiled
program; the seconds of a step are modelled from them and from a machine's numbers.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import minijax
from minijax.backend import dumps, executables
from minijax.backend.targets import Target
from minijax.compile import cross_compiling
from minijax.compile.titles import title_of
from minijax.core import dispatch, runtime
from minijax.core.jit import JitFunction
from minijax.core.language import Jaxpr, jaxprs_in_params
from minijax.core.trees import tree_flatten
from minijax_lab.explain.buffers import APART, Buffer, CompiledMemory, read_memory
from minijax_lab.explain.calls import short
from minijax_lab.explain.foreign_programs import refuse_function
from minijax_lab.explain.hlo_text import Module, parse
from minijax_lab.explain.kernels import Kernel, kernels_of, total_of
from minijax_lab.explain.memory import argument_names
from minijax_lab.explain.placement import UNNAMED, MeshAxis, MeshFacts, mesh_of
from minijax_lab.explain.recording import Recording, count_in_words
from minijax_lab.explain.roofline import Machine, chip_named, dot_of
from minijax_lab.explain.spmd import Program, collectives_of
from minijax_lab.explain.tree import size_in_words

# What XLA's buffers are for, by the scopes of the operation that makes them.
KEPT = "forward pass"
AGAIN = "forward pass again"
BACK = "backward pass"
OTHER = "rest of the step"
SPARE = "allocated, not in use then"


@dataclass
class Owner:
    """Whose the memory of a device is: an argument's, or a part of the step's."""

    name: str
    bytes: int
    argument: bool


@dataclass
class Traffic:
    """What one kind of collective sends over some axes of the mesh.

    `count` instructions run `runs` times in all in a step; `bytes` is what each device
    sends in them if groups stand in rings. `unknown` says that a loop's length is not
    known; it counts once.
    """

    axes: str
    opcode: str
    count: int
    runs: int
    bytes: int
    unknown: bool = False


@dataclass
class Plan:
    """One program on one mesh. Bytes, operations and seconds of a step are a device's.

    `owners` add up to `memory`, what XLA allocates. `for_arithmetic` and `for_memory`
    are the modelled seconds of kernels that the one or the other bounds. `refused` is
    what XLA says of a program that it does not compile, since it does not fit.
    """

    name: str
    mesh: MeshFacts
    owners: list[Owner]
    memory: int
    traced: float
    lowered: float
    compiled: float
    equations: int
    instructions: int = 0
    traffic: list[Traffic] = field(default_factory=list)
    flops: int = 0
    functions: int = 0  # results of tanh, exp and the like
    moved: int = 0
    for_arithmetic: float = 0.0
    for_memory: float = 0.0
    unknown: bool = False
    refused: str = ""

    @property
    def by_axes(self) -> dict[str, int]:
        """The bytes that the busiest device sends in a step, by the mesh axes."""
        found: dict[str, int] = {}
        for each in self.traffic:
            found[each.axes] = found.get(each.axes, 0) + each.bytes
        return found

    @property
    def sent(self) -> int:
        """The bytes that the busiest device sends in a step."""
        return sum(each.bytes for each in self.traffic)

    @property
    def made(self) -> float:
        """The seconds of tracing, lowering and compiling."""
        return self.traced + self.lowered + self.compiled


@dataclass(kw_only=True)
class ScaleRecording(Recording):
    """Plans compiled for a target. Its steps are the plans."""

    kind = "scale"

    target: str
    plans: list[Plan]
    machine: Machine | None = None

    def links(self, plan: Plan) -> float:
        """The modelled seconds that a device's links are busy in a step; 0 if the
        machine has no number for them."""
        rate = self.machine.link if self.machine is not None else 0.0
        return plan.sent / rate if rate else 0.0

    def fits(self, plan: Plan) -> bool:
        """Whether a device has the memory; True where it is not known."""
        room = self.machine.memory if self.machine is not None else 0
        return not plan.refused and (not room or plan.memory <= room)


def record_scale(
    function: Any,
    args: tuple,
    kwargs: dict[str, Any],
    target: str | None = None,
    machine: Machine | None = None,
) -> ScaleRecording:
    """Compiles a function, or each of a mapping of plans, and counts what it costs.

    Raises TypeError for what is neither, ValueError for an unknown target.
    """
    plans = plans_of(function, args, kwargs)
    for each, given, named in plans.values():
        refuse_function(each, "see.scale", (*given, *named.values()), "minijax")
    if not isinstance(target, str | None):
        machine_of(target)  # raises
    if machine is None and target is not None:
        machine = chip_named(target)
    made = [
        plan_of(name, each, given, named, target, machine)
        for name, (each, given, named) in plans.items()
    ]
    record = ScaleRecording(
        call=", ".join(plans), headline="", target=target or "", plans=made
    )
    record.machine = machine
    heaviest = max(range(len(made)), key=lambda n: made[n].memory)
    record.telling = heaviest
    record.headline = headline(record)
    return record


def plans_of(
    function: Any, args: tuple, kwargs: dict[str, Any]
) -> dict[str, tuple[Any, tuple, dict[str, Any]]]:
    """The plans by name: each a function, its arguments and keyword arguments."""
    if callable(function):
        return {title_of(function): (function, args, kwargs)}
    if not isinstance(function, Mapping) or not function:
        raise TypeError(
            "a function, or a dict of plans such as {'data': (step, params, batch)}, "
            f"was expected, got {function!r}."
        )
    if args or kwargs:
        raise TypeError(
            "each plan has its own arguments: {'data': (step, params, batch)}. Put "
            "them there instead of after the plans."
        )
    for name, plan in function.items():
        if not isinstance(plan, tuple) or not plan or not callable(plan[0]):
            raise TypeError(
                f"plan {name!r} is a tuple of a function and its arguments, such as "
                f"(step, params, batch), got {short(plan)}."
            )
    return {str(name): (plan[0], plan[1:], {}) for name, plan in function.items()}


def headline(record: ScaleRecording) -> str:
    """One sentence: devices, who fits, who sends least."""
    plans = record.plans
    devices = max(len(plan.mesh.devices) for plan in plans)
    where = f" of {record.target}" if record.target else ""
    devices_in_words = count_in_words(devices, "device") + where
    told = f"{count_in_words(len(plans), 'plan')} for {devices_in_words}: "
    fitting = [plan for plan in plans if record.fits(plan)]
    if len(plans) == 1:
        (plan,) = plans
        return (
            f"{plan.name} for {devices_in_words}: {in_memory(plan)}, "
            f"{size_in_words(plan.sent)} sent by the busiest device in a step"
        )
    if not fitting:
        return told + "none fits"
    least = min(fitting, key=lambda plan: plan.memory)
    quiet = min(fitting, key=lambda plan: plan.sent)
    told += f"{len(fitting)} fit; " if len(fitting) < len(plans) else ""
    told += f"{least.name} needs least memory ({size_in_words(least.memory)}), "
    most = size_in_words(quiet.sent)
    return told + f"{quiet.name} sends least ({most} by the busiest device)"


def in_memory(plan: Plan) -> str:
    """How much memory a device needs, and whether XLA refused it."""
    if plan.refused:
        return "does not fit"
    return f"{size_in_words(plan.memory)} of memory in each"


# ---- one plan ------------------------------------------------------------------------


def plan_of(
    name: str,
    function: Any,
    args: tuple,
    kwargs: dict[str, Any],
    target: str | None,
    chip: Machine | None,
) -> Plan:
    """A function's program on the devices of its arguments, compiled and counted."""
    jitted: Any = function
    if not isinstance(function, JitFunction):
        jitted = minijax.jit(function)
    start = time.perf_counter()
    traced = jitted.trace(*args, **kwargs)
    at_trace = time.perf_counter()
    machine = machine_of(target)
    lowered = traced.lower(lowering_platforms=(machine.platform,))
    at_lower = time.perf_counter()
    cross_compiling.refuse_calls(machine, lowered._lowered)
    leaves = tree_flatten((args, kwargs))[0]
    mesh = mesh_of_arguments(leaves)
    given = arguments_of(argument_names(jitted, args, kwargs), leaves)
    options = dict(traced._options.compiler_options)
    settings = dataclasses.replace(
        lowered._settings, options=options, fast_compile=False
    )
    plan = Plan(
        name=name,
        mesh=mesh,
        owners=given,
        memory=sum(owner.bytes for owner in given),
        traced=at_trace - start,
        lowered=at_lower - at_trace,
        compiled=0.0,
        equations=equations_in(traced.jaxpr.jaxpr),
    )
    start = time.perf_counter()
    callbacks = lowered._lowered.host_callbacks
    try:
        with (
            lowered._lowered.context,
            dumps.compile_with_dump(
                machine, lowered._lowered.module, settings, host_callbacks=callbacks
            ) as dump,
        ):
            plan.compiled = dump.executable.seconds
            stats = executables.memory_stats(dump.executable)
            text = dump.executable.hlo_modules()[0].to_string()
            module = parse(text)
            memory = read_memory(dump.folder, module, stats, machine.platform)
    except runtime.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        plan.compiled = time.perf_counter() - start
        plan.refused = refusal(str(error))
        return plan
    plan.instructions = len(module.instructions)
    plan.traffic = traffic_of(Program(name, text, module, mesh, None))
    plan.owners, plan.memory = owners_of(given, memory, module, stats)
    count_work(plan, module, chip)
    return plan


def machine_of(target: str | None) -> Target:
    """The target of a name; without one all devices of this process's platform."""
    if target is not None and target != "cpu":
        return cross_compiling.find(target)
    devices = runtime.devices(target)
    platform = dispatch.lowering_platform(devices[0])
    listed = runtime.DeviceList(tuple(devices))
    kind = str(devices[0].device_kind)
    return Target(platform, platform, listed, kind, tuple(devices), runs=True)


def mesh_of_arguments(leaves: list[Any]) -> MeshFacts:
    """The largest mesh of the arguments' shardings; without one, one device."""
    meshes: list[MeshFacts] = []
    known: dict[Any, int] = {}
    for leaf in leaves:
        sharding = getattr(leaf, "sharding", None)
        if getattr(getattr(sharding, "mesh", None), "devices", None) is not None:
            mesh_of(sharding, meshes, known)
    if not meshes:
        return MeshFacts([MeshAxis(UNNAMED, 1)], [0], "", named=False)
    return max(meshes, key=lambda mesh: len(mesh.devices))


def arguments_of(names: list[str], leaves: list[Any]) -> list[Owner]:
    """The bytes of a device's parts of each argument, by the argument's name."""
    found: dict[str, int] = {}
    for name, leaf in zip(names, leaves, strict=True):
        shape = tuple(getattr(leaf, "shape", ()))
        sharding = getattr(leaf, "sharding", None)
        if sharding is not None:
            shape = sharding.shard_shape(shape)
        size = minijax.numpy.result_type(leaf).itemsize
        for side in shape:
            size *= side
        owner = re.split(r"[\[.]", name, maxsplit=1)[0]
        found[owner] = found.get(owner, 0) + size
    return [Owner(name, size, True) for name, size in found.items()]


def equations_in(jaxpr: Jaxpr) -> int:
    """The equations of a program and of those that it carries."""
    return sum(
        1 + sum(equations_in(inner) for inner in jaxprs_in_params(eqn.params))
        for eqn in jaxpr.eqns
    )


REFUSED = re.compile(r"\((\S+)\) exceeds available (\w+) \((\S+)\)")


def refusal(message: str) -> str:
    """What XLA says of a program that does not fit, short."""
    found = REFUSED.search(message)
    if found is not None:
        return f"needs {found[1]} of {found[2]}, and there is {found[3]}"
    return message.partition(": ")[2].partition("\n")[0][:200]


def traffic_of(program: Program) -> list[Traffic]:
    """What the collectives of a program send, by axes and kind, most first."""
    found: dict[tuple[str, str], Traffic] = {}
    for each in collectives_of(program):
        axes = " and ".join(each.axes) or "one device"
        row = found.setdefault((axes, each.opcode), Traffic(axes, each.opcode, 0, 0, 0))
        times = 1 if each.times is None else each.times
        row.count += 1
        row.runs += times
        row.bytes += times * each.sent
        row.unknown |= each.times is None
    moving = [row for row in found.values() if row.bytes]
    return sorted(moving, key=lambda row: (-row.bytes, row.axes, row.opcode))


def owners_of(
    given: list[Owner], memory: CompiledMemory, module: Module, stats: Any
) -> tuple[list[Owner], int]:
    """(whose the memory is when most of it is in use, all that XLA allocates).

    XLA may pad an argument, and leave out one that is not read.
    """
    owners = list(given)
    padding = stats.argument_size_in_bytes - sum(owner.bytes for owner in given)
    if padding:
        owners.append(Owner("padding and unread arguments", padding, True))
    results = stats.output_size_in_bytes - stats.alias_size_in_bytes
    if results > 0:
        owners.append(Owner("results", results, False))
    parts = parts_in_use(
        memory, {each.name: each.op_name for each in module.instructions}
    )
    for part, size in parts.items():
        owners.append(Owner(part, size, False))
    spare = stats.temp_size_in_bytes - sum(parts.values())
    if spare:
        owners.append(Owner(SPARE, spare, False))
    return owners, sum(owner.bytes for owner in owners)


def parts_in_use(memory: CompiledMemory, op_names: dict[str, str]) -> dict[str, int]:
    """The bytes of temporaries at the peak, by the part of the step that made them.

    Where several buffers share memory, it belongs to the one that was there first.
    """
    if not memory.schedule:
        return {}
    wanted = {
        each.id
        for each in memory.allocations
        if each.kind == "temporaries" and each.kind not in APART
    }
    alive = [b for b in memory.alive(memory.peak) if b.allocation in wanted]
    alive.sort(key=lambda buffer: (buffer.first, buffer.offset))
    taken: dict[int, list[tuple[int, int]]] = {}
    found: dict[str, int] = {}
    for buffer in alive:
        size = newly_covered(taken.setdefault(buffer.allocation, []), buffer)
        if size:
            part = part_of(op_names.get(buffer.name.partition("{")[0], ""))
            found[part] = found.get(part, 0) + size
    order = (KEPT, AGAIN, BACK, OTHER)
    return {part: found[part] for part in order if part in found}


def newly_covered(taken: list[tuple[int, int]], buffer: Buffer) -> int:
    """How many bytes of a buffer no earlier one covers; notes that it covers them."""
    pieces = [(buffer.offset, buffer.offset + buffer.bytes)]
    for start, stop in taken:
        left = []
        for begin, end in pieces:
            if stop <= begin or end <= start:
                left.append((begin, end))
                continue
            if begin < start:
                left.append((begin, start))
            if stop < end:
                left.append((stop, end))
        pieces = left
    taken += pieces
    return sum(end - begin for begin, end in pieces)


def part_of(op_name: str) -> str:
    """Which part of a step an operation belongs to, by its scopes."""
    if "rematted_computation" in op_name:
        return AGAIN
    if "transpose(" in op_name:
        return BACK
    return KEPT if "jvp(" in op_name else OTHER


def count_work(plan: Plan, module: Module, machine: Machine | None) -> None:
    """Notes the operations and bytes of a plan's kernels, and what bounds them."""
    kernels = kernels_of(module)

    def total(amount: Any) -> float:
        return total_of(module, kernels, amount).amount

    plan.flops = int(total(lambda kernel: kernel.flops))
    plan.functions = int(total(lambda kernel: kernel.transcendentals))
    plan.moved = int(total(lambda kernel: kernel.bytes))
    plan.unknown = any(kernel.times is None for kernel in kernels)
    if machine is None:
        return

    def seconds(bound: str) -> Any:
        def of(kernel: Kernel) -> float:
            dot = dot_of(0, kernel, machine)
            return dot.seconds if dot.bound == bound else 0.0

        return of

    plan.for_arithmetic = total(seconds("arithmetic"))
    plan.for_memory = total(seconds("memory"))
