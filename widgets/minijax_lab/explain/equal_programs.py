"""The accesses of all programs of a grid, where many of them do the same.

Which elements of its blocks a program reads and writes mostly depends on where it
stands along a few axes of the grid (`pl.when(pl.program_id(2) == 0)`), and not on what
the arrays hold. Then the interpreter (`minijax/kernels/interpreter.py`) runs one
program for each place along these axes and its accesses are noted; those of all others
follow from their blocks. What the interpreter would find, race by race, is worked out
from a table of all accesses, sorted by element and time.

Kernels that differ from this (an address or a branch depends on data, copies, memory
of their own) are left to the interpreter, which runs their programs one by one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from minijax.core.language import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    jaxprs_in_params,
)
from minijax.core.source_info import format_line
from minijax.core.trees import tree_unflatten
from minijax.kernels import copies, grid_context, masked_access
from minijax.kernels.grid_mappings import GridMapping
from minijax.kernels.interpreter import Run
from minijax.kernels.scoped_memory import run_scoped_p
from minijax.kernels.watched_memory import (
    OUTSIDE,
    PADDING,
    Block,
    Memory,
    Schedule,
    Watch,
    whole,
)
from minijax.primitives.parallel.variation import axis_index_p
from minijax.primitives.refs import references
from minijax.programs.control_flow import conditionals, scan_primitive, while_loops
from minijax.values.inner_programs import inner_programs
from minijax_lab.explain.kernel_facts import Operand

# A table of more accesses to elements takes more memory than it saves time.
MOST_TOUCHES = 1 << 21

# ---- what accesses depend on ---------------------------------------------------------

# Where a value comes from: axes of the grid by number, data, and the refs themselves.
DATA, REF = "data", "ref"
Origins = frozenset
NOTHING: Origins = frozenset()
# Loops, branches and calls hold programs; the interpreter runs these.
CONTROL = {conditionals.cond_p, while_loops.while_p, scan_primitive.scan_p}
# They touch memory in another way than by one address after another of a ref.
APART = {
    axis_index_p,
    masked_access.atomic_rmw_p,
    run_scoped_p,
    copies.dma_start_p,
    copies.dma_wait_p,
}


class _Unlike(Exception):
    """The programs of this kernel have to be run one by one."""


def _of_get(eqn: JaxprEqn, inputs: list) -> list:
    return inputs[1:]


def _of_swap(eqn: JaxprEqn, inputs: list) -> list:
    return inputs[2:]


def _of_masked(eqn: JaxprEqn, inputs: list) -> list:
    """What an access with a mask depends on: all but the value, or what stands for
    values that the mask leaves out."""
    numbers = tree_unflatten(eqn.params["args_tree"], list(range(len(inputs))))
    value = numbers[3 if eqn.primitive is masked_access.load_p else 2]
    return [x for number, x in enumerate(inputs) if number not in (0, value)]


# The inputs that say which elements an equation touches.
ACCESSES = {
    references.get_p: _of_get,
    references.swap_p: _of_swap,
    references.addupdate_p: _of_swap,
    masked_access.load_p: _of_masked,
    masked_access.swap_p: _of_masked,
}
KNOWN = {grid_context.program_id_p, grid_context.num_programs_p, *ACCESSES, *CONTROL}


def axes_asked(jaxpr: Jaxpr) -> list[int] | None:
    """The axes of the grid on which a kernel's accesses depend, None for others."""
    walk = _Asked()
    try:
        walk.run(jaxpr, [frozenset([REF])] * len(jaxpr.invars))
    except _Unlike:
        return None
    return sorted(walk.axes)


class _Asked:
    """Follows each value of a kernel from where it comes to what it decides."""

    def __init__(self) -> None:
        self.axes: set[int] = set()

    def decides(self, *origins: Origins) -> None:
        """Notes what an address or a branch depends on; data and refs are refused."""
        found = NOTHING.union(*origins)
        if DATA in found or REF in found:
            raise _Unlike
        self.axes |= found

    def run(self, jaxpr: Jaxpr, given: Sequence[Origins]) -> list[Origins]:
        env = dict.fromkeys(jaxpr.constvars, NOTHING)
        env.update(zip(jaxpr.invars, given, strict=True))

        def of(atom: Any) -> Origins:
            return NOTHING if type(atom) is Literal else env[atom]

        for eqn in jaxpr.eqns:
            outputs = self.equation(eqn, [of(atom) for atom in eqn.invars])
            env.update(zip(eqn.outvars, outputs, strict=True))
        return [of(atom) for atom in jaxpr.outvars]

    def equation(self, eqn: JaxprEqn, inputs: list[Origins]) -> list[Origins]:
        primitive = eqn.primitive
        if primitive in APART:
            raise _Unlike
        if primitive is grid_context.program_id_p:
            return [frozenset([eqn.params["axis"]])]
        if primitive in ACCESSES:
            self.decides(*ACCESSES[primitive](eqn, inputs))
            return [frozenset([DATA])] * len(eqn.outvars)
        if primitive is conditionals.cond_p:
            self.decides(inputs[0])
        if inner_programs(eqn):
            return self.inside(eqn, inputs)
        found = NOTHING.union(*inputs)
        inner = list(jaxprs_in_params(eqn.params))
        asks = any(one.effects or grid_context.asks_for_place(one) for one in inner)
        if eqn.effects or asks or REF in found:
            raise _Unlike
        return [found] * len(eqn.outvars)

    def inside(self, eqn: JaxprEqn, inputs: list[Origins]) -> list[Origins]:
        """The programs of a call, a branch or a loop, until nothing more is found."""
        given = list(inputs)
        found = [NOTHING] * len(eqn.outvars)
        before: list[Origins] = []
        while before != given:
            before = list(given)
            for program in inner_programs(eqn):
                outputs = self.run(program.jaxpr, [given[i] for i in program.inputs])
                if program.decides:
                    self.decides(*outputs)
                    continue
                for number, place in enumerate(program.carry or ()):
                    at = program.inputs[place]
                    outputs[number] = given[at] = given[at] | outputs[number]
                found = [a | b for a, b in zip(found, outputs, strict=True)]
        return found


# ---- the accesses of one program -----------------------------------------------------


class Access(NamedTuple):
    """An access of a program: the ref's number, 0 for a read and 1 for a write, the
    places in its block, and the user's line."""

    ref: int
    way: int
    places: np.ndarray
    line: str


class _Log(Watch):
    """Notes accesses; refs show places in blocks, and hold zeros."""

    def __init__(self, refs: Sequence[Block]):
        super().__init__(Schedule([], np.zeros(0, int), [], False), None)
        self.numbers = {id(block.memory): number for number, block in enumerate(refs)}
        self.accesses: list[Access] = []

    def note(self, way: int, block: Block, addresses: Any, line: str, mask: Any):
        if mask is None and addresses is block.addresses:
            places = addresses.reshape(-1)
        else:
            used = np.broadcast_to(True if mask is None else mask, addresses.shape)
            places = addresses[used]
            if (places == OUTSIDE).any():
                raise _Unlike
        number = self.numbers[id(block.memory)]
        self.accesses.append(Access(number, way, places, line))

    def read(self, block, addresses, line, mask=None):
        self.note(0, block, addresses, line, mask)
        return np.zeros(addresses.shape, block.memory.values.dtype)

    def write(self, block, addresses, value, line, mask=None):
        self.note(1, block, addresses, line, mask)


# ---- all accesses ----------------------------------------------------------------


@dataclass
class Outcome:
    """What the interpreter would tell a recorder of the programs that it ran.

    `touched` has for each operand the bytes that each program read and wrote, `lines`
    the lines that did.
    """

    ran: int
    touched: list[list[list[int]]]
    lines: list[set[str]]
    findings: list


class Grid(NamedTuple):
    """A kernel, its operands with the places of their blocks, and its programs."""

    jaxpr: Jaxpr
    mapping: GridMapping
    sizes: Sequence[int]
    schedule: Schedule
    operands: Sequence[Operand]
    params: Any


def outcome_of(grid: Grid, most: int, most_watched: int) -> Outcome | None:
    """What running the programs gives, at most so many with so many elements in their
    blocks; None for a kernel whose programs have to be run one by one."""
    axes = axes_asked(grid.jaxpr)
    if axes is None or not grid.schedule.places:
        return None
    shown = [var.aval.inner_aval for var in grid.jaxpr.invars]  # type: ignore
    if not all(isinstance(aval.dtype, np.dtype) for aval in shown):
        return None
    elements = sum(math.prod(aval.shape) for aval in shown)
    places = grid.schedule.places
    ran = min(len(places), most, most_watched // max(elements, 1) + 1)
    own = [grid.mapping.own_axes[axis] for axis in axes]
    keys = np.reshape([[place[a] for a in own] for place in places[:ran]], (ran, -1))
    sorts, first, sort_of = np.unique(
        keys, axis=0, return_index=True, return_inverse=True
    )
    if 2 * len(sorts) > ran:
        return None
    refs = [whole(Memory("", np.zeros(a.shape, a.dtype), True, False)) for a in shown]
    try:
        accesses = [accesses_of(grid, places[program], refs) for program in first]
        return _Table(grid, ran, accesses, sort_of.reshape(-1)).outcome()
    except (_Unlike, IndexError, NotImplementedError):
        return None  # the interpreter says which program fails


def accesses_of(grid: Grid, place: tuple[int, ...], refs: list[Block]) -> list[Access]:
    """The accesses of the program at a place of the grid, one after another."""
    log = _Log(refs)
    run = Run(log, grid.mapping.place(place, grid.sizes))
    with np.errstate(all="ignore"):
        run.run(ClosedJaxpr(grid.jaxpr), refs)
    return log.accesses


class _Touches(NamedTuple):
    """Each touch of an element of a memory, sorted by element and time.

    `time` numbers the accesses of all programs as they run, `place` the touches of one
    access.
    """

    element: np.ndarray
    time: np.ndarray
    way: np.ndarray
    line: np.ndarray
    place: np.ndarray
    program: np.ndarray

    def last(self, which: np.ndarray) -> np.ndarray:
        """For each touch the last one before it, of the same element, for which
        `which` holds; -1 where there is none."""
        numbers = np.arange(len(which))
        found = np.maximum.accumulate(np.where(which, numbers, -1))
        found = np.concatenate([[-1], found[:-1]])
        begins = np.r_[True, self.element[1:] != self.element[:-1]]
        begin = np.maximum.accumulate(np.where(begins, numbers, 0))
        return np.where(found >= begin, found, -1)

    def firsts(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the chosen touches the first of each access, in the order of time, and
        how many of its access are chosen."""
        chosen = chosen[np.lexsort((self.place[chosen], self.time[chosen]))]
        time = self.time[chosen]
        begins = np.ones(len(time), bool)
        begins[1:] = time[1:] != time[:-1]
        at = np.flatnonzero(begins)
        return chosen[at], np.diff(np.r_[at, len(time)]).astype(int)


class _Table:
    """All accesses of the programs that run; `sort_of` says which sort each one is."""

    def __init__(
        self,
        grid: Grid,
        ran: int,
        accesses: list[list[Access]],
        sort_of: np.ndarray,
    ):
        self.grid = grid
        self.ran = ran
        self.accesses = accesses
        self.programs = [
            np.flatnonzero(sort_of == number) for number in range(len(accesses))
        ]
        self.most = max(map(len, accesses)) + 1
        texts = dict.fromkeys(one.line for each in accesses for one in each)
        self.lines = {line: number for number, line in enumerate(texts)}
        self.watch = _Teller(grid.schedule, grid.params, list(texts))

    def outcome(self) -> Outcome:
        touched, lines = [], []
        found: list[tuple[int, int, tuple]] = []
        for number, operand in enumerate(self.grid.operands):
            sums = np.zeros((self.ran, 2), np.int64)
            found += self.of_memory(number, operand, sums)
            touched.append(sums.tolist())
            used = (one.line for each in self.accesses for one in each)
            refs = (one.ref for each in self.accesses for one in each)
            lines.append({line for line, ref in zip(used, refs) if ref == number})
        for time, _, (tell, *args) in sorted(found, key=lambda one: one[:2]):
            self.watch.program = time // self.most
            tell(*args)
        if self.ran == len(self.grid.schedule.places):
            self.watch.program = self.ran - 1
            self.watch.tell_missing(self.grid.jaxpr)
        return Outcome(self.ran, touched, lines, self.watch.findings)

    def addresses(self, number: int, operand: Operand) -> np.ndarray:
        """For each program and place in its block the element of the array."""
        if not operand.starts:
            return np.broadcast_to(
                np.arange(math.prod(operand.shape)),
                (self.ran, math.prod(operand.shape)),
            )
        shape, sizes = operand.shape, operand.block
        if self.ran * math.prod(sizes) > MOST_TOUCHES:
            raise _Unlike
        starts = np.reshape(operand.starts[: self.ran], (self.ran, -1)).astype(np.int64)
        found = np.zeros((self.ran, math.prod(sizes)), np.int64)
        inside = np.ones(found.shape, bool)
        along = np.indices(sizes).reshape(len(sizes), -1)
        for axis, length in enumerate(shape):
            here = starts[:, axis, None] + along[axis]
            found = found * length + here
            inside &= (here >= 0) & (here < length)
        found[~inside] = PADDING
        if found.size and not inside.any(1).all():
            raise _Unlike  # a block that lies outside of its array
        return found

    def of_memory(
        self, number: int, operand: Operand, sums: np.ndarray
    ) -> Iterator[tuple[int, int, tuple]]:
        """What is found in a memory, as (time, order in an access, what tells it);
        adds the bytes of its accesses to `sums`."""
        addresses = self.addresses(number, operand)
        memory = _memory_of(operand)
        parts = []
        count = 0
        for programs, accesses in zip(self.programs, self.accesses):
            for at, access in enumerate(accesses):
                if access.ref != number:
                    continue
                elements = addresses[programs[:, None], access.places]
                count += elements.size
                if count > MOST_TOUCHES:
                    raise _Unlike
                there = elements >= 0
                sums[programs, access.way] += there.sum(1) * operand.itemsize
                if access.way == 0 and not there.all():
                    program = programs[(~there).any(1)][0]
                    block = addresses[program]
                    told = (self.watch.tell_padding, memory, block, access.line)
                    yield int(program) * self.most + at, 0, told
                time = np.broadcast_to(programs[:, None] * self.most + at, there.shape)
                place = np.broadcast_to(np.arange(there.shape[1]), there.shape)
                line = np.full(there.sum(), self.lines[access.line])
                way = np.full(len(line), access.way)
                parts.append((elements[there], time[there], way, line, place[there]))
        columns = [np.concatenate(part) for part in zip(*parts)]
        written = np.zeros(0, int)
        if parts:
            order = np.lexsort((columns[1], columns[0]))
            element, time, way, line, place = (column[order] for column in columns)
            touches = _Touches(element, time, way, line, place, time // self.most)
            again = (element[1:] == element[:-1]) & (time[1:] == time[:-1])
            if again.any():
                raise _Unlike  # an access touches an element twice
            written = element[way == 1]
            yield from self.findings(operand, memory, touches)
        if operand.role == "output":
            self.watch.outputs.append((memory, written))

    def findings(
        self, operand: Operand, memory: Any, touches: _Touches
    ) -> Iterator[tuple[int, int, tuple]]:
        """Reads of elements that no program wrote; races, each pair of lines once."""
        watch = self.watch
        reads, writes = touches.way == 0, touches.way == 1
        writer, reader = touches.last(writes), touches.last(reads)
        was_empty = operand.role == "output" or (
            operand.role == "scratch" and watch.params.uninitialized_memory != "zero"
        )
        if was_empty and watch.params.uninitialized_memory == "nan":
            empty = np.flatnonzero(reads & (writer < 0))
            first, counts = touches.firsts(empty)
            for at in _once(touches.line[first]):
                touch = first[at]
                where = int(touches.element[touch]), int(touches.line[touch])
                tell = functools.partial(watch.tell_empty, int(counts[at]))
                yield int(touches.time[touch]), 1, (tell, memory, *where)
        # Before the last program that read an element, the last other one.
        numbers = np.flatnonzero(reads)
        element, program = touches.element[numbers], touches.program[numbers]
        begins = np.ones(len(numbers), bool)
        begins[1:] = (element[1:] != element[:-1]) | (program[1:] != program[:-1])
        begin = np.maximum.accumulate(np.where(begins, np.arange(len(numbers)), 0))
        same = (begin > 0) & (element[begin - 1] == element)
        earlier = np.full(len(reads), -1)
        earlier[numbers] = np.where(same, numbers[begin - 1], -1)
        earlier = np.where(reader >= 0, earlier[reader], -1)
        checks = [(reads, "read", "wrote", writer)]
        if operand.role != "scratch":
            for other_verb, others in (
                ("wrote", writer),
                ("read", reader),
                ("read", earlier),
            ):
                checks.append((writes, "write", other_verb, others))
        groups = watch.schedule.groups
        for number, (which, verb, other_verb, others) in enumerate(checks, 2):
            other = groups[touches.program[others]]
            races = which & (others >= 0) & (other != groups[touches.program])
            first, _ = touches.firsts(np.flatnonzero(races))
            lines = touches.line[first] * len(watch.texts) + touches.line[others[first]]
            for at in _once(lines):
                touch, other = first[at], others[first[at]]
                seen = _Seen(int(touches.program[other]), int(touches.line[other]))
                where = int(touches.element[touch]), int(touches.line[touch])
                tell = functools.partial(watch.tell_race, verb, other_verb, seen)
                yield int(touches.time[touch]), number, (tell, memory, *where)


def _once(keys: np.ndarray) -> list[int]:
    """Where each key stands first."""
    return np.unique(keys, return_index=True)[1].tolist()


def _memory_of(operand: Operand) -> functools.partial:
    """What makes the memory of an operand: few are needed, to be told of."""
    values = np.broadcast_to(np.int8(0), operand.shape)
    private = operand.role == "scratch"
    return functools.partial(Memory, operand.name, values, False, private)


@dataclass
class _Seen:
    """In place of a journal's rows: the same program and line for each element."""

    program: int
    line: int

    def __getitem__(self, key: Any) -> Any:
        row, at = key
        return np.full(np.shape(at), (self.program, self.line)[row])


class _Teller(Watch):
    """Puts what was found into the interpreter's words."""

    def __init__(self, schedule: Schedule, params: Any, texts: list[str]):
        super().__init__(schedule, params)
        self.texts = self.lines = texts
        self.outputs: list[tuple[Any, np.ndarray]] = []

    def tell_padding(self, memory: Any, addresses: np.ndarray, line: str) -> None:
        made = memory()
        self._padding(made, Block(made, addresses), line)

    def tell_empty(self, count: int, memory: Any, element: int, line: int) -> None:
        self._uninitialized(memory(), element, count, self.texts[line])

    def tell_race(
        self,
        verb: str,
        other_verb: str,
        seen: _Seen,
        memory: Any,
        element: int,
        line: int,
    ) -> None:
        touched, text = np.array([element]), self.texts[line]
        self._races(verb, other_verb, memory(), touched, seen, text)

    def tell_missing(self, jaxpr: Jaxpr) -> None:
        """Tells of outputs that were not wholly written."""
        where = format_line(jaxpr.eqns[0].source_info) if jaxpr.eqns else ""
        for memory, elements in self.outputs:
            made = memory()
            made.written[elements] = True
            self.missing_writes(made, where)
