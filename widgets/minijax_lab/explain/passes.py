"""The recording of XLA's passes: what each changed in the program, as a difference.

XLA writes the program after each pass that changed it. Only the differences are kept:
which instructions came, which went, which read otherwise now. `PassesRecording.after`
puts the program after any pass together again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from minijax.backend import dumps
from minijax.compile import cross_compiling
from minijax_lab.explain.equation_marks import equation_in
from minijax_lab.explain.hlo_text import COMMENT, CONFIG, HEADER, METADATA, OP_NAME
from minijax_lab.explain.jaxpr import JaxprRecording
from minijax_lab.explain.levels import (
    Levels,
    compiled_with_dump,
    levels_of,
    target_named,
)
from minijax_lab.explain.recording import Recording, count_in_words


@dataclass
class ProgramLine:
    """An instruction in a computation, as text, and the equation that it comes from."""

    name: str
    computation: str
    text: str
    equation: int | None


@dataclass
class Pass:
    """A pass that changed the program.

    `added` are new instructions, `altered` those that read otherwise afterwards,
    `removed` the names of those that went; `moved` the names of altered ones that stand
    in another computation now. `reordered` says that the order changed.
    """

    name: str
    pipeline: str
    meaning: str
    added: list[ProgramLine]
    altered: list[ProgramLine]
    removed: list[str]
    moved: list[str]
    reordered: bool
    instructions: int

    @property
    def changes(self) -> int:
        """How many instructions it touched."""
        return len(self.added) + len(self.altered) + len(self.removed)


@dataclass
class Difference:
    """One instruction before and after a pass; "" where there is none.

    `was_in` and `is_in` are computations: they differ for what moved, as out of a loop.
    """

    before: str
    after: str
    was_in: str
    is_in: str
    equation: int | None


@dataclass(kw_only=True)
class PassesRecording(Recording):
    """The passes of one compilation that changed something: these are its steps."""

    kind = "passes"

    target: str
    platform: str
    jaxpr: JaxprRecording
    first: list[ProgramLine]
    passes: list[Pass]
    files: int = 0  # what XLA wrote, and its size: the differences are much smaller
    bytes: int = 0

    def after(self, number: int) -> dict[str, ProgramLine]:
        """The instructions after the first `number` passes, by name."""
        program = {line.name: line for line in self.first}
        for each in self.passes[:number]:
            for name in each.removed:
                program.pop(name, None)
            for line in (*each.altered, *each.added):
                program[line.name] = line
        return program

    def differences(self, number: int) -> list[Difference]:
        """What a pass changed, instruction by instruction.

        A pass that rewrites a computation gives everything in it new names. So what
        went is paired with what came if both compute the same for the same equation.
        """
        before = self.after(number)
        each = self.passes[number]
        found = []
        came: dict[tuple, list[ProgramLine]] = {}
        for line in each.added:
            came.setdefault(kind_of(line), []).append(line)
        for name in each.removed:
            old = before[name]
            alike = came.get(kind_of(old))
            new = alike.pop(0) if alike else None
            found.append(between(old, new))
        found += [between(before[line.name], line) for line in each.altered]
        for lines in came.values():
            found += [between(None, line) for line in lines]
        return found


def kind_of(line: ProgramLine) -> tuple:
    """What an instruction computes, of which type, for which equation."""
    computes = re.search(r" = (\(.*?\)|\S+) ([\w\-]+)\(", line.text)
    return (line.equation, *(computes.groups() if computes else (line.text,)))


def between(old: ProgramLine | None, new: ProgramLine | None) -> Difference:
    """The difference of an instruction; None where there is none."""
    there = new or old
    assert there is not None
    return Difference(
        before=old.text if old else "",
        after=new.text if new else "",
        was_in=old.computation if old else "",
        is_in=new.computation if new else "",
        equation=there.equation,
    )


# What passes do, by their names in XLA; the first part that a name contains counts.
MEANINGS = {
    "algsimp": "algebraic simplification: expressions become cheaper ones",
    "invariant-code-motion": "what every turn of a loop computes alike moves out of it",
    "small-while-loop-hoisting": "small loops become calls",
    "constant_folding": "what is known now is computed now",
    "layout-assignment": "each array gets the order of its axes in memory",
    "shape-canonicalizer": "equal shapes are stored once",
    "literal-canonicalizer": "equal constants are stored once",
    "cse": "common subexpressions: what is computed twice is computed once",
    "dce": "dead code: what nobody reads is removed",
    "multi_output_fusion": "kernels that read the same arrays become one",
    "priority-fusion": "producers move into their consumers, the best first",
    "softmax-rewriter": "a normalisation becomes one kernel",
    "gemm-rewriter": "a matrix product gets a kernel of its own",
    "fusion-wrapper": "a single operation is wrapped as a kernel",
    "fusion": "operations move into one kernel",
    "dot-library-rewriter": "matrix products go to a library",
    "tree_reduction_rewriter": "a long reduction is done in two steps",
    "reshape-mover": "reshapes move behind the operations on them",
    "flatten-call-graph": "a computation that is called twice is copied",
    "call-inliner": "calls are replaced with what they call",
    "copies": "arrays that must not be overwritten are copied",
    "copy-insertion": "arrays that must not be overwritten are copied",
    "schedul": "the order of the instructions is decided",
    "parallel-task-assigner": "large operations are divided among the cores",
    "rename": "instructions get new names",
    "gather_expander": "gathers become loops and slices",
    "scatter_expander": "scatters become loops",
    "convert-mover": "conversions of dtypes move to where they cost least",
}

FILE = re.compile(r"\.(\d{4})\.(.+?)\.after_(.+?)(?:\.before_(.+))?\.txt$")
LINE = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
NAMES = re.compile(r"%([\w.\-]+)")


def meaning_of(name: str) -> str:
    """What a pass does, in words; "" for one that the table does not know."""
    for part, meaning in MEANINGS.items():
        if part in name:
            return meaning
    return ""


def record_passes(
    function: Any, args: tuple, kwargs: dict[str, Any], target: str | None = None
) -> PassesRecording:
    """Records the passes that compile a function for a target.

    Raises OSError if XLA can write nowhere, and what `record_compiled` raises.
    """
    return passes_of(levels_of(function, args, kwargs), target_named(target))


def passes_of(levels: Levels, machine: cross_compiling.Target) -> PassesRecording:
    """The recording of a function's levels."""
    lowered = levels.lower(machine.platform)
    with compiled_with_dump(levels, machine, lowered, passes=".*") as dump:
        names = dump.names()
        prefix = main_module(names)
        first = program_lines(dump.read(f"{prefix}.before_optimizations.txt"))
        passes = list(differences(dump, prefix, first))
        sizes = [path.stat().st_size for path in dump.folder.iterdir()]
    name = levels.jaxpr.name
    kept = count_in_words(len(passes), "pass").replace("passs", "passes")
    last = passes[-1].instructions if passes else len(first)
    return PassesRecording(
        call=levels.jaxpr.call,
        headline=f"passes of {name} on {machine.name}: {kept} changed it, "
        f"{count_in_words(len(first), 'instruction')} -> {last:,}",
        telling=max(
            range(len(passes)),
            key=lambda number: len(passes[number].removed),
            default=0,
        ),
        sources=levels.jaxpr.sources,
        target=machine.name,
        platform=machine.platform,
        jaxpr=levels.jaxpr,
        first=list(first.values()),
        passes=passes,
        files=len(names),
        bytes=sum(sizes),
    )


def main_module(names: list[str]) -> str:
    """The beginning of the names of the files that are about the whole program."""
    ending = ".before_optimizations.txt"
    found = [name for name in names if name.endswith(ending) and ".jit_" in name]
    if not found:
        raise ValueError("XLA wrote no program: its dump names no module of a jit.")
    return found[0].removesuffix(ending)


def snapshots(names: list[str], prefix: str) -> Iterator[tuple[str, str, str]]:
    """(file, pipeline, pass) of each program that XLA wrote, in order."""
    numbered = []
    for name in names:
        if name.startswith(prefix) and (found := FILE.match(name[len(prefix) :])):
            numbered.append((int(found[1]), name, found[2], found[3]))
    for _, name, pipeline, done in sorted(numbered):
        yield name, pipeline, done


def differences(
    dump: dumps.Dump, prefix: str, first: dict[str, ProgramLine]
) -> Iterator[Pass]:
    """The passes that changed something, each with what it changed."""
    before = first
    for file, pipeline, done in snapshots(dump.names(), prefix):
        after = program_lines(dump.read(file))
        each = difference(before, after)
        if each.changes or each.reordered:
            # What stands at the start of a pipeline, such as a schedule, was made
            # between two of them.
            each.name = pipeline if done == "pipeline-start" else done
            each.pipeline = pipeline
            each.meaning = meaning_of(each.name)
            yield each
        before = after


def difference(before: dict[str, ProgramLine], after: dict[str, ProgramLine]) -> Pass:
    """What came, went and changed between two programs."""
    added, altered, moved = [], [], []
    for name, line in after.items():
        old = before.get(name)
        if old is None:
            added.append(line)
        elif old.text != line.text or old.computation != line.computation:
            altered.append(line)
            if old.computation != line.computation:
                moved.append(name)
    removed = [name for name in before if name not in after]
    order = [name for name in before if name in after]
    same = [name for name in after if name in before]
    return Pass(
        name="",
        pipeline="",
        meaning="",
        added=added,
        altered=altered,
        removed=removed,
        moved=moved,
        reordered=order != same,
        instructions=len(after),
    )


def program_lines(text: str) -> dict[str, ProgramLine]:
    """The instructions of a program's text by name, without metadata."""
    found: dict[str, ProgramLine] = {}
    computation = ""
    for line in text.split("\n"):
        if line.endswith("{") and (header := HEADER.match(line)):
            computation = header[2] or header[4]
        elif (match := LINE.match(line)) is not None:
            rest = match[3]
            op_name = OP_NAME.search(rest)
            rest = COMMENT.sub("", CONFIG.sub("", METADATA.sub("", rest)))
            shown = NAMES.sub(r"\1", f"{match[1] or ''}{match[2]} = {rest}")
            equation = equation_in(op_name[1]) if op_name else None
            found[match[2]] = ProgramLine(match[2], computation, shown, equation)
    return found
