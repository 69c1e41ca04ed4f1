"""The recording behind `see.kernel`: the grid of a `pallas_call`, block by block.

The function is traced, and what stands before the kernel is computed. The index maps
then say which block each program of the grid gets, and the teaching interpreter
(`minijax/kernels/interpreter.py`) runs the programs one by one on the real
arguments: what they read and write is counted there, and what it finds (races, accesses
outside of a ref, memory that nobody wrote) is kept with its programs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import minijax
from minijax.core.language import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    jaxprs_in_params,
)
from minijax.core.trees import tree_leaves
from minijax.kernels.grid_context import Place, dynamic_grid_dim
from minijax.kernels.grid_mappings import BlockMapping, GridMapping
from minijax.kernels.interpret_params import InterpretParams
from minijax.kernels.interpreter import (
    Run,
    interpret_grid,
    names_of,
    schedule_of,
    starts_of,
)
from minijax.kernels.pallas_call import pallas_call_p
from minijax.kernels.watched_memory import (
    Block,
    Finding,
    Memory,
    Schedule,
    Watch,
    whole,
)
from minijax_lab.explain.equal_programs import Grid, outcome_of
from minijax_lab.explain.foreign_programs import is_jax, uses_jax
from minijax_lab.explain.index_maps import index_map_text
from minijax_lab.explain.kernel_facts import (
    KernelRecording,
    Operand,
    Problem,
    headline,
    telling,
)
from minijax_lab.explain.kernel_work import operations_of
from minijax_lab.explain.placement import type_text
from minijax_lab.explain.recording import Sources, count_in_words
from minijax_lab.explain.roofline import Machine, machine_named
from minijax_lab.explain.small_values import MOST_SHOWN, Values, check_choice

# So many programs are run, with blocks of so many elements in all; of the others only
# the blocks are known. Arrays of more elements are not watched: each element needs 40
# bytes.
MOST_RUN = 4096
MOST_WATCHED = 1 << 26
MOST_ELEMENTS = 1 << 23
# Of so many programs the values of their blocks are kept, if asked for.
MOST_KEPT = 64
# Unasked values are kept of kernels with so few programs: they take time.
MOST_UNASKED = 256
# Machines that run the programs of a grid at the same time.
GPUS = ("h100",)
OF_JAX = (
    "see.kernel takes a function of minijax, and got one of JAX, whose kernels it "
    "cannot run. Write `from minijax.experimental import pallas as pl` for "
    "`from jax.experimental import pallas as pl`: the names are the same."
)


# ---- recording ----------------------------------------------------------------------


def record_kernel(
    function: Callable[..., Any],
    args: tuple,
    kwargs: dict[str, Any],
    machine: Machine | None = None,
    values: bool | None = False,
    which: int = 0,
) -> KernelRecording:
    """Records the kernel that `function` calls, the first one or number `which`.

    With arrays as arguments its programs are run; `ShapeDtypeStruct`s give the blocks
    alone. With `values` the blocks' values are kept; None: if all arrays are small.
    Raises what tracing raises, TypeError for what is not a function of minijax, and
    ValueError where there is no such kernel.
    """
    closed = traced(function, args, kwargs)
    kernels = list(kernels_in(closed.jaxpr))
    if not kernels:
        name = getattr(function, "__name__", "the function")
        raise ValueError(
            f"see.kernel: {name} calls no pallas_call, so there is no grid to show. "
            "see.fusion shows the kernels that XLA makes."
        )
    if not 0 <= which < len(kernels):
        raise ValueError(
            f"see.kernel: which={which}, but the function calls "
            f"{count_in_words(len(kernels), 'kernel')}: pass 0 to {len(kernels) - 1}."
        )
    check_choice(values, "see.kernel")
    leaves = tree_leaves((args, kwargs))
    if values and any(isinstance(x, minijax.ShapeDtypeStruct) for x in leaves):
        raise ValueError(
            "see.kernel: values=True shows what blocks hold, and a ShapeDtypeStruct "
            "holds nothing. Pass arrays."
        )
    typed = [x for x in leaves if isinstance(x, minijax.ShapeDtypeStruct)]
    if typed:
        eqn, operands = kernels[which], None
    else:
        eqn, operands = reached(closed, leaves, which)
    recorder = Recorder(eqn, operands, bool(values))
    if values is None and math.prod(recorder.grid) <= MOST_UNASKED:
        blocks = [block.sizes for block in recorder.mapping.block_mappings]
        recorder.values = all(max([1, *sizes]) <= MOST_SHOWN for sizes in blocks)
    record = recorder.recording(function, machine)
    if len(kernels) > 1:
        others = f"kernel {which} of {len(kernels)}, counted from 0: pass which="
        record.note = "; ".join(part for part in (record.note, others) if part)
    return record


def traced(function: Any, args: tuple, kwargs: dict[str, Any]) -> ClosedJaxpr:
    """The program of a function; TypeError for what is not minijax's to trace."""
    if is_jax(function):
        raise TypeError(OF_JAX)
    if not callable(function):
        raise TypeError(
            "see.kernel takes a function that calls a kernel, and its arguments; it "
            f"got {type(function).__name__} first."
        )
    try:
        return minijax.make_jaxpr(function)(*args, **kwargs)
    except Exception as error:
        if uses_jax(function):
            raise TypeError(OF_JAX) from error
        raise


def kernels_in(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """The equations that call kernels, in programs inside too."""
    for eqn in jaxpr.eqns:
        if eqn.primitive is pallas_call_p:
            yield eqn
            continue
        for inner in jaxprs_in_params(eqn.params):
            yield from kernels_in(inner)


class _Reached(Exception):
    """A computation came to the kernel that is asked for."""

    def __init__(self, eqn: JaxprEqn, operands: list[Any]):
        self.found = eqn, operands


def reached(
    closed: ClosedJaxpr, leaves: Sequence[Any], which: int
) -> tuple[JaxprEqn, list[Any]]:
    """A kernel's equation with the values of its operands.

    Raises NotImplementedError for a kernel inside of a loop or a branch.
    """
    left = [which]

    def run(program: ClosedJaxpr, inputs: Sequence[Any]) -> list[Any]:
        jaxpr = program.jaxpr
        env: dict[Var, Any] = dict(zip(jaxpr.constvars, program.consts))
        env.update(zip(jaxpr.invars, inputs, strict=True))

        def value(atom: Any) -> Any:
            return atom.val if isinstance(atom, Literal) else env[atom]

        for eqn in jaxpr.eqns:
            given = [value(atom) for atom in eqn.invars]
            env.update(zip(eqn.outvars, results(eqn, given)))
        return [value(atom) for atom in jaxpr.outvars]

    def results(eqn: JaxprEqn, given: list[Any]) -> list[Any]:
        if eqn.primitive is pallas_call_p:
            if left[0] == 0:
                raise _Reached(eqn, given)
            left[0] -= 1
        elif any(True for p in jaxprs_in_params(eqn.params) for _ in kernels_in(p)):
            for key in ("jaxpr", "call_jaxpr"):
                inner = eqn.params.get(key)
                if isinstance(inner, Jaxpr):
                    inner = ClosedJaxpr(inner, ())
                if isinstance(inner, ClosedJaxpr) and eqn.primitive.name != "scan":
                    return run(inner, given)
            raise NotImplementedError(
                f"see.kernel: this kernel is called inside of `{eqn.primitive}`, many "
                "times or not at all. Show it with the arguments of one call: "
                "see.kernel(the function inside, its arguments)."
            )
        found = eqn.primitive.rebind(given, eqn.params)
        return found if eqn.primitive.multiple_results else [found]

    try:
        run(closed, leaves)
    except _Reached as stop:
        return stop.found
    raise AssertionError("a program's kernels are all in its equations")


class _Enough(Exception):
    """As many programs were run as are to be watched."""


class _Recorder(Watch):
    """Counts what programs read and write, and keeps values."""

    def __init__(self, schedule: Schedule, params: Any, values: bool):
        super().__init__(schedule, params)
        self.blocks: Sequence[Block] = ()
        self.numbers: dict[int, int] = {}
        self.touched: list[list[list[int]]] = []
        self.kept: list[list[Values]] = []
        self.lines_of: dict[int, set[int]] = {}
        self.values = values
        self.watched = 0
        # Places that masked loads left out, and those that were read, by block.
        self.loads: dict[int, tuple[list[np.ndarray], list[np.ndarray]]] = {}

    def begin(self, blocks: Sequence[Block]) -> None:
        self.finish()
        if self.program >= MOST_RUN or self.watched > MOST_WATCHED:
            raise _Enough
        self.watched += sum(block.addresses.size for block in blocks)
        self.blocks = blocks
        self.numbers = {id(b.memory): number for number, b in enumerate(blocks)}
        self.touched.append([[0, 0] for _ in blocks])
        self.loads = {}

    def finish(self) -> None:
        """Keep the values that the blocks of the last program have now."""
        if self.values and self.blocks and len(self.kept) < MOST_KEPT:
            self.kept.append([])
            for number, block in enumerate(self.blocks):
                masked, loaded = self.loads.get(number, ([], []))
                if self.touched[-1][number][1]:
                    masked = []  # what a program has written is shown whole
                hidden = np.setdiff1d(
                    np.concatenate([[], *masked]), np.concatenate([[], *loaded])
                )
                self.kept[-1].append(values_of(block, hidden))

    def report(self, finding: Finding) -> None:
        """What was found is shown."""

    def read(self, block, addresses, line, mask=None):
        self.count(0, block, addresses, line, mask)
        return super().read(block, addresses, line, mask)

    def write(self, block, addresses, value, line, mask=None):
        self.count(1, block, addresses, line, mask)
        super().write(block, addresses, value, line, mask)

    def count(
        self, way: int, block: Block, addresses: Any, line: str, mask: Any
    ) -> None:
        """Adds the bytes of an access, and notes its line."""
        number = self.numbers.get(id(block.memory))
        if number is None or len(self.touched) <= self.program:
            return  # memory that the kernel made, or scalars that an index map reads
        size = block.memory.values.dtype.itemsize
        self.lines_of.setdefault(number, set()).update(line_number(line))
        is_all = addresses is block.addresses and block.inside
        if is_all and mask is None and not self.values:
            self.touched[-1][number][way] += addresses.size * size
            return
        used = addresses >= 0
        if mask is not None:
            used &= mask
        if self.values and not way and len(self.kept) < MOST_KEPT:
            masked, loaded = self.loads.setdefault(number, ([], []))
            masked.append(addresses[~used])
            loaded.append(addresses[used])
        self.touched[-1][number][way] += int(np.count_nonzero(used)) * size


def values_of(block: Block, masked: np.ndarray) -> Values:
    """The values of a small block as rows; NaN outside of the array, and at the places
    that masks kept from being read."""
    addresses = block.addresses
    if addresses.ndim > 2:
        addresses = addresses.reshape(-1, addresses.shape[-1])
    addresses = np.atleast_2d(addresses)
    if max(addresses.shape) > MOST_SHOWN:
        return []
    values = block.memory.values
    if values.dtype.kind == "c":
        return []
    there = (addresses >= 0) & ~np.isin(addresses, masked)
    found = np.where(there, values[addresses].astype(np.float64), np.nan)
    return [[float(x) for x in row] for row in found]


@functools.cache
def line_number(text: str) -> list[int]:
    """The number in `kernel.py:12: o_ref[...] = x`; none where there is no line."""
    number = text.partition(": ")[0].rpartition(":")[2]
    return [int(number)] if number.isdigit() else []


class Recorder:
    """Makes the recording of one `pallas_call`; `operands` are None without values."""

    def __init__(self, eqn: JaxprEqn, operands: Sequence[Any] | None, values: bool):
        self.params = eqn.params
        self.kernel: Jaxpr = eqn.params["jaxpr"]
        self.mapping: GridMapping = eqn.params["grid_mapping"]
        self.arrays = None
        if operands is not None:
            self.arrays = [np.asarray(x) for x in operands]
        self.in_avals = [v.aval for v in eqn.invars]
        self.values = values
        asked = eqn.params["interpret"]
        seed = asked.random_seed if isinstance(asked, InterpretParams) else None
        empty = "nan"
        if isinstance(asked, InterpretParams):
            empty = asked.uninitialized_memory
        self.interpret = InterpretParams(
            detect_races=True, random_seed=seed, uninitialized_memory=empty
        )
        self.grid = self.sizes()
        self.schedule = schedule_of(
            self.grid, self.mapping, eqn.params["compiler_params"], seed
        )

    def sizes(self) -> list[int]:
        """The sizes of the grid, computed ones too."""
        mapping = self.mapping
        if self.arrays is None and (
            mapping.num_dynamic_grid_bounds or mapping.num_index_operands
        ):
            raise ValueError(
                "see.kernel: the grid or the blocks of this kernel depend on values. "
                "Pass arrays, not ShapeDtypeStructs."
            )
        computed = iter(self.arrays or ())
        return [
            int(next(computed)) if size is dynamic_grid_dim else size
            for size in mapping.grid
        ]

    def recording(self, function: Any, machine: Machine | None) -> KernelRecording:
        """The whole recording."""
        sources = Sources()
        lines = self.lines(sources)
        operands = self.operands()
        outside = self.place_blocks(operands)
        problems, ran, note = self.run(operands, bool(outside))
        known = {(p.kind, p.operand) for p in problems}
        problems += [p for p in outside if (p.kind, p.operand) not in known]
        machine = machine or machine_named("tpu-v5e")
        if machine.name not in GPUS:
            problems = self.on_a_tpu(problems, operands)
        name = self.params["name"] or self.kernel.debug_info.func_name
        if name == "kernel":  # the function that calls it says more
            outer = getattr(function, "__name__", "wrapped")
            name = name if outer in ("wrapped", "<lambda>") else outer
        record = KernelRecording(
            call=f"kernel of {name}",
            headline="",
            sources=sources.found,
            name=name,
            grid=self.grid,
            axes=self.axes,
            places=[list(place) for place in self.schedule.places],
            operands=operands,
            problems=problems,
            ran=ran,
            note=note,
            operations=operations_of(self.kernel),
            machine=machine,
            lines=lines,
            jaxpr=str(self.kernel).splitlines(),
        )
        record.headline = headline(record)
        record.telling = telling(record)
        return record

    def on_a_tpu(
        self, problems: list[Problem], operands: list[Operand]
    ) -> list[Problem]:
        """What is wrong on a TPU, which runs programs in order unless told otherwise.

        It writes a block of an output back when the next program has another one, and
        never fetches it again.
        """
        if not self.schedule.declared:
            for problem in problems:
                if problem.kind == "race":
                    problem.kind = "race on a GPU"
        raced = {problem.operand for problem in problems if problem.kind == "race"}
        revisited = []
        for number, one in enumerate(operands):
            again = next((n for n, was in enumerate(one.revisits) if was), None)
            if one.role != "output" or again is None or number in raced:
                continue
            past = one.starts.index(one.starts[again])
            place = self.schedule.places[again]
            said = (
                f"program {place} comes back to {one.slice_text(again)}, the block of "
                f"program {self.schedule.places[past]}: in between others had another "
                "block, so it was written back, and what is there now is lost. Let "
                "the programs of a block be neighbours: the axes that its index map "
                "leaves out go last in the grid."
            )
            lines = [line for line in one.lines]
            revisited.append(Problem("revisited", number, [], again, said, past, lines))
        return [*revisited, *problems]

    @functools.cached_property
    def axes(self) -> list[str]:
        """What the grid's axes are called: as an index map of the user calls them.

        Axes that vmap added are called `batch`.
        """
        added = self.mapping.vmapped_dims
        own = len(self.grid) - len(added)
        names = list("ijklmn"[:own]) if own <= 6 else [f"i{n}" for n in range(own)]
        for mapping in self.mapping.block_mappings:
            found = list(mapping.index_map_jaxpr.jaxpr.debug_info.arg_names)[:own]
            distinct = len(set(found)) == own
            if distinct and all(name.isidentifier() for name in found):
                names = found
                break
        left = iter(names)
        batch = [f"batch{n}" if len(added) > 1 else "batch" for n in range(len(added))]
        of_batch = iter(batch)
        return [
            next(of_batch) if axis in added else next(left)
            for axis in range(len(self.grid))
        ]

    def lines(self, sources: Sources) -> list[list[int]]:
        """The lines of the kernel, whose sources are added."""
        spans = {}

        def walk(jaxpr: Jaxpr) -> None:
            for eqn in jaxpr.eqns:
                span = sources.of_operation(eqn.source_info)
                if span is not None:
                    spans[span.source, span.line] = span
                for inner in jaxprs_in_params(eqn.params):
                    walk(inner)

        walk(self.kernel)
        return sorted([source, line] for source, line in spans)

    def operands(self) -> list[Operand]:
        """What the kernel's refs are of, without the places of their blocks."""
        mapping = self.mapping
        names = names_of(self.kernel, mapping)
        first = mapping.num_dynamic_grid_bounds
        found: list[Operand] = []
        scalars = self.in_avals[first : first + mapping.num_index_operands]
        for aval in scalars:
            shape = list(aval.shape)
            found.append(operand(names[len(found)], "scalars", aval, shape))
        for number, block in enumerate(mapping.block_mappings):
            role = "input" if number < mapping.num_inputs else "output"
            made = operand(names[len(found)], role, block.array_aval, list(block.sizes))
            made.index_map = index_map_text(
                block.index_map_jaxpr.jaxpr, self.axes, names[: len(scalars)]
            )
            made.space = space_of(block)
            found.append(made)
        for ref in mapping.scratch_avals:
            aval = ref.inner_aval
            made = operand(names[len(found)], "scratch", aval, list(aval.shape))
            made.space = str(ref.memory_space)
            found.append(made)
        return found

    def place_blocks(self, operands: list[Operand]) -> list[Problem]:
        """Notes the block of each operand for each program of the grid.

        Returns what lies outside of its array.
        """
        mapping = self.mapping
        run = Run(Watch(self.schedule, self.interpret), Place((), ()))
        first = mapping.num_dynamic_grid_bounds
        count = mapping.num_index_operands
        scalars: list[Any] = []
        if self.arrays is not None:
            for one, x in zip(operands, self.arrays[first : first + count]):
                scalars.append(whole(Memory(one.name, x, True, False)))
        own = [a for a in range(len(self.grid)) if a not in mapping.vmapped_dims]
        outside: dict[int, Problem] = {}
        for program, place in enumerate(self.schedule.places):
            run.place = Place([place[a] for a in own], [self.grid[a] for a in own])
            for number, block in enumerate(mapping.block_mappings, count):
                made = operands[number]
                with np.errstate(all="ignore"):
                    given, starts = starts_of(run, block, place, scalars)
                made.starts.append(starts)
                if number not in outside and made.is_outside(program):
                    said = (
                        f"the index map of {made.name} gives program {place} the "
                        f"block {tuple(given)}, which begins at element "
                        f"{tuple(starts)}: outside of the array {made.type}"
                    )
                    outside[number] = Problem(
                        "out of bounds", number, [], program, said
                    )
        return list(outside.values())

    def run(
        self, operands: list[Operand], is_told: bool
    ) -> tuple[list[Problem], int, str]:
        """Runs the programs. Returns what is wrong, how many ran, and a remark.

        `is_told` says that a block outside of its array is told of anyway.
        """
        if self.arrays is None:
            return [], 0, "arguments without values: nothing was run, races are unknown"
        elements = sum(math.prod(one.shape) for one in operands)
        if elements > MOST_ELEMENTS:
            return (
                [],
                0,
                (
                    f"the arrays have {elements:,} elements, too many to watch each: "
                    "nothing was run, races are unknown"
                ),
            )
        watch: list[_Recorder] = []

        def watch_with(schedule: Schedule, params: InterpretParams) -> Watch:
            watch.append(_Recorder(schedule, params, self.values))
            return watch[0]

        alike = self.run_alike(operands)
        if alike is not None:
            return alike
        note = ""
        params = self.params | {"interpret": self.interpret}
        try:
            interpret_grid(*self.arrays, watch_with=watch_with, **params)
        except _Enough:
            note = self.first_alone(watch[0].program)
        except IndexError as error:
            note = f"the kernel stopped at program {watch[0].place}"
            if not watch[0].findings and not is_told:
                note += f": {str(error).partition(': ')[2]}"
        watch[0].finish()
        for number, one in enumerate(operands):
            one.touched = [program[number] for program in watch[0].touched]
            one.values = [program[number] for program in watch[0].kept]
            one.lines = sorted(watch[0].lines_of.get(number, ()))
        problems = self.problems(watch[0].findings, operands)
        return problems, len(watch[0].touched), note

    def run_alike(
        self, operands: list[Operand]
    ) -> tuple[list[Problem], int, str] | None:
        """The same where one program of each sort tells what the others do."""
        if self.values or self.params["input_output_aliases"]:
            return None
        grid = Grid(
            self.kernel,
            self.mapping,
            self.grid,
            self.schedule,
            operands,
            self.interpret,
        )
        outcome = outcome_of(grid, MOST_RUN, MOST_WATCHED)
        if outcome is None:
            return None
        for one, touched, lines in zip(operands, outcome.touched, outcome.lines):
            one.touched = touched
            one.lines = sorted(number for line in lines for number in line_number(line))
        ran = outcome.ran
        note = "" if ran == len(self.schedule.places) else self.first_alone(ran)
        return self.problems(outcome.findings, operands), ran, note

    def first_alone(self, ran: int) -> str:
        """The remark about programs that were not run."""
        return (
            f"the first {ran:,} of {len(self.schedule.places):,} "
            "programs were run; of the others only the blocks are known"
        )

    def problems(
        self, findings: list[Finding], operands: list[Operand]
    ) -> list[Problem]:
        """Findings as plain data."""
        names = {one.name: number for number, one in enumerate(operands)}
        return [self.problem(finding, names) for finding in findings]

    def problem(self, finding: Finding, names: dict[str, int]) -> Problem:
        """A finding as plain data, with the kernel's lines that it names."""
        numbers = {place: n for n, place in enumerate(self.schedule.places)}
        lines = [*line_number(finding.line), *line_number(finding.other_line)]
        return Problem(
            finding.kind,
            names.get(finding.memory),
            list(finding.element),
            numbers.get(finding.program, 0),
            finding.message,
            None
            if finding.other_program is None
            else numbers.get(finding.other_program),
            lines,
        )


def operand(name: str, role: str, aval: Any, block: list[int]) -> Operand:
    """An operand of a type."""
    return Operand(
        name=name,
        role=role,
        type=type_text(aval.dtype, aval.shape),
        shape=list(aval.shape),
        itemsize=int(getattr(aval.dtype, "itemsize", 4)),
        block=block,
    )


def space_of(block: BlockMapping) -> str:
    """The memory space of a block, "" for the usual one."""
    space = str(getattr(block.block_aval, "memory_space", None) or "default")
    return "" if space == "default" else space
