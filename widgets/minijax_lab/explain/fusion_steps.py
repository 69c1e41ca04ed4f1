"""The recording of fusion, step by step: which producer went into which consumer, why.

XLA for NVIDIA's GPUs writes down each decision: how long it thinks that a producer and
its consumers take apart and as one kernel, which fusion it made, which producer it left
alone and for what reason. The steps are these decisions, in XLA's order, and
`kernels_after` replays them.

On the CPU and on TPUs fusion is one pass that says nothing of its order. There the
steps are containment, one for each fused kernel, and `decided` is False.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from minijax.compile import cross_compiling
from minijax_lab.explain.hlo_text import Module, parse
from minijax_lab.explain.jaxpr import JaxprRecording
from minijax_lab.explain.kernels import kernels_of, members_of
from minijax_lab.explain.levels import (
    Levels,
    compiled_with_dump,
    levels_of,
    target_named,
)
from minijax_lab.explain.passes import main_module, snapshots
from minijax_lab.explain.recording import Recording, count_in_words


@dataclass
class FusionStep:
    """One decision.

    `kind` is "fusion" (a producer went into a consumer: the kernel `name`),
    "ineligible" (a producer stays alone, for `reason`), or "contained" (what ended up
    in one kernel, in no order). `us_fused` and `us_unfused` are XLA's estimates, in
    microseconds, for the producer with all its consumers; None where it gave none, as
    for constants.
    """

    kind: str
    name: str
    producer: str
    consumers: list[str]
    us_fused: float | None
    us_unfused: float | None
    reason: str
    equations: list[int]


@dataclass(kw_only=True)
class FusionStepsRecording(Recording):
    """How the operations of a program came together. Its steps are the decisions.

    `before` is the program that fusion was given, or if nothing was decided the one
    that it gave back. `after` are the names of the kernels that it gave back, `dumped`
    is the number of fusions that XLA wrote down.
    """

    kind = "fusion_steps"

    target: str
    platform: str
    jaxpr: JaxprRecording
    decided: bool
    before: Module
    steps: list[FusionStep]
    after: list[str]
    dumped: int
    priced: int = 0  # how often XLA estimated a price
    note: str = field(default_factory=str)

    def kernels_after(self, number: int) -> dict[str, list[str]]:
        """The kernels after the first `number` steps: which operations are in each."""
        replay = Replay(self.before)
        if not self.decided:
            replay.open(self.before)
        for step in self.steps[:number]:
            replay.take(step)
        return replay.kernels


class Replay:
    """The kernels of a program while fusions are made, one after another.

    At first each kernel of `module` is one.
    """

    def __init__(self, module: Module) -> None:
        self.kernels: dict[str, list[str]] = {}
        # By name, whose results an instruction reads. Tuples and bitcasts read too.
        self.reads: dict[str, set[str]] = {}
        self.returned: set[str] = set()
        for instruction in module.instructions:
            names = [module.instructions[i].name for i in instruction.operands]
            self.reads[instruction.name] = set(names)
            if instruction.root:
                self.returned.add(instruction.name)
        for kernel in kernels_of(module):
            name = module.instructions[kernel.instruction].name
            self.kernels[name] = [name]

    def open(self, module: Module) -> None:
        """Takes the kernels of a program that is fused already apart."""
        for kernel in kernels_of(module):
            if kernel.fused:
                self.kernels.pop(module.instructions[kernel.instruction].name)
                for member in kernel.members:
                    name = module.instructions[member].name
                    self.kernels[name] = [name]

    def take(self, step: FusionStep) -> None:
        """Makes the fusion of a step: the producer's operations join the consumer's.

        The producer goes when nothing else reads it; until then it is computed twice.
        """
        if step.kind == "contained":
            for name in step.consumers:
                self.kernels.pop(name, None)
            self.kernels[step.name] = list(step.consumers)
            return
        if step.kind != "fusion":
            return
        producer, consumer = step.producer, step.consumers[0]
        inside = self.kernels.get(producer, [])
        own = self.kernels.pop(consumer, [])
        reads = self.reads.pop(consumer, set()) - {producer}
        self.kernels[step.name] = [*(n for n in inside if n not in own), *own]
        self.reads[step.name] = reads | self.reads.get(producer, set())
        if consumer != step.name:
            for names in self.reads.values():
                if consumer in names:
                    names.remove(consumer)
                    names.add(step.name)
        if consumer in self.returned:
            self.returned.add(step.name)
        read = any(producer in names for names in self.reads.values())
        if not read and producer not in self.returned:
            self.kernels.pop(producer, None)
            self.reads.pop(producer, None)


def record_fusion_steps(
    function: Any, args: tuple, kwargs: dict[str, Any], target: str | None = None
) -> FusionStepsRecording:
    """Records how a function's operations are fused for a target.

    Raises what `record_passes` raises.
    """
    return fusion_steps_of(levels_of(function, args, kwargs), target_named(target))


def fusion_steps_of(
    levels: Levels, machine: cross_compiling.Target
) -> FusionStepsRecording:
    """The recording of a function's levels."""
    lowered = levels.lower(machine.platform)
    on_gpu = machine.platform == "cuda"
    options = {"passes": ".*", "fusion_steps": on_gpu}
    with compiled_with_dump(levels, machine, lowered, **options) as dump:
        names = dump.names()
        files = list(snapshots(names, main_module(names)))
        fusing = "priority-fusion" if on_gpu else "fusion"
        told = [name for name in names if name.endswith("priority_fusion_dump.txt")]
        position = next(
            (n for n, (_, _, done) in enumerate(files) if is_fusion(done, fusing)), None
        )
        if position:
            before = parse(dump.read(files[position - 1][0]))
            after = parse(dump.read(files[position][0]))
        else:  # there was nothing to fuse
            before = after = parse(dump.executable.hlo_modules()[0].to_string())
        decisions = dump.read(told[0]) if told and position else ""
    if on_gpu:
        steps, priced = decided_steps(decisions, before)
        note = "XLA's own decisions, in its order; times are its estimates"
    else:
        steps, priced = contained(after), 0
        note = (
            f"on {machine.name} fusion is one pass that does not say in which order it "
            "goes: a step shows what ended up in one kernel"
        )
    kernels = kernels_of(after)
    fusions = sum(step.kind != "ineligible" for step in steps)
    headline = (
        f"fusion of {levels.jaxpr.name} on {machine.name}, step by step: "
        + (count_in_words(fusions, "fusion") if on_gpu else "containment only")
        + f", {len(kernels_of(before)):,} kernels -> {len(kernels):,}"
    )
    return FusionStepsRecording(
        call=levels.jaxpr.call,
        headline=headline,
        telling=most_saved(steps),
        sources=levels.jaxpr.sources,
        target=machine.name,
        platform=machine.platform,
        jaxpr=levels.jaxpr,
        decided=on_gpu,
        before=before if on_gpu else after,
        steps=steps,
        after=[after.instructions[kernel.instruction].name for kernel in kernels],
        dumped=decisions.count("\n  fusion {"),
        priced=priced,
        note=note,
    )


def is_fusion(done: str, name: str) -> bool:
    """Whether a pass is the one that fuses, on any of the machines."""
    return done in (name, f"tpu_{name}")


def most_saved(steps: list[FusionStep]) -> int:
    """The step that XLA expects most of; without estimates, the largest kernel."""
    worth = [
        (step.us_unfused or 0) - (step.us_fused or 0) + 1e-6 * len(step.consumers)
        for step in steps
    ]
    return worth.index(max(worth)) if worth else 0


# ---- the GPU's decisions -------------------------------------------------------------

STEP = re.compile(
    r"^fusion_steps \{\n  (\w+) \{\n(.*?)^  \}\n\}", re.DOTALL | re.MULTILINE
)
FIELD = re.compile(r'^    (\w+): (?:"((?:[^"\\]|\\.)*)"|(\S+))$', re.MULTILINE)


def decided_steps(text: str, before: Module) -> tuple[list[FusionStep], int]:
    """The decisions in XLA's dump, and how often it estimated a price.

    A price is that of the last estimate for the producer before the decision.
    """
    equations = {
        instruction.name: [instruction.equation]
        for instruction in before.instructions
        if instruction.equation is not None
    }
    prices: dict[str, tuple[float, float]] = {}
    steps = []
    priced = 0
    for kind, body in STEP.findall(text):
        fields: dict[str, list[str]] = {}
        for name, quoted, plain in FIELD.findall(body):
            fields.setdefault(name, []).append(quoted or plain)
        producer = fields.get("producer_name", [""])[0]
        if kind == "update_priority":
            priced += 1
            fused, unfused = (fields.get(key) for key in ("us_fused", "us_unfused"))
            if fused and unfused:
                prices[producer] = (float(fused[0]), float(unfused[0]))
            continue
        consumers = fields.get("consumer_name", [])
        name = fields.get("fusion_name", [""])[0]
        behind = {e for part in (producer, *consumers) for e in equations.get(part, [])}
        if kind == "fusion":
            equations[name] = sorted({*behind, *equations.get(name, [])})
        us_fused, us_unfused = prices.get(producer, (None, None))
        steps.append(
            FusionStep(
                kind="fusion" if kind == "fusion" else "ineligible",
                name=name,
                producer=producer,
                consumers=consumers,
                us_fused=us_fused if kind == "fusion" else None,
                us_unfused=us_unfused if kind == "fusion" else None,
                reason=fields.get("reason", [""])[0],
                equations=sorted(behind),
            )
        )
    return steps, priced


# ---- machines that say nothing of the order ------------------------------------------


def contained(after: Module) -> list[FusionStep]:
    """A step for each fused kernel, with the operations that ended up in it."""
    steps = []
    for kernel in kernels_of(after):
        if not kernel.fused:
            continue
        instruction = after.instructions[kernel.instruction]
        names = [member.name for member in members_of(after, instruction)]
        steps.append(
            FusionStep(
                kind="contained",
                name=instruction.name,
                producer="",
                consumers=names,
                us_fused=None,
                us_unfused=None,
                reason="not recorded",
                equations=kernel.equations,
            )
        )
    return steps
