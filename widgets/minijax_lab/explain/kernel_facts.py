"""What `see.kernel` shows, as plain data: operands, blocks, bytes, a modelled pipeline.

`pallas_kernels.py` makes it. Bytes are counted as a pipeline moves them: the block of
an input is fetched before a program unless it is the one that the program before had;
the block of an output is written back when the next program has another one.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, field

import numpy as np

from minijax_lab.explain.recording import Recording
from minijax_lab.explain.roofline import Machine

# What a kernel reaches by itself: no pipeline moves it.
UNMOVED = ("any", "hbm", "smem")


@dataclass
class Operand:
    """A ref of the kernel: what it is of, and its block for each program.

    `role` is "scalars", "input", "output" or "scratch". `starts` are the first elements
    of the blocks, a list for each program; empty for what is not cut into blocks.
    `touched` are the bytes that each program that ran read and wrote, `lines` the lines
    of the source that did it.
    """

    name: str
    role: str
    type: str
    shape: list[int]
    itemsize: int
    block: list[int]
    index_map: str = ""
    space: str = ""
    starts: list[list[int]] = field(default_factory=list)
    touched: list[list[int]] = field(default_factory=list)
    values: list[list[list[float]]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """The bytes of the whole array."""
        return self.itemsize * math.prod(self.shape)

    @property
    def moved(self) -> bool:
        """Whether a pipeline moves its blocks."""
        return bool(self.starts) and self.space not in UNMOVED

    @functools.cached_property
    def places(self) -> np.ndarray:
        """Where the block of each program starts: a row for each program."""
        return np.reshape(self.starts, (len(self.starts), -1)).astype(int)

    @functools.cached_property
    def aligned(self) -> list[bool]:
        """For each axis whether all blocks start at multiples of their size."""
        sizes = np.maximum(1, np.array(self.block, int))
        return (self.places % sizes == 0).all(0).tolist() if self.starts else []

    @functools.cached_property
    def insides(self) -> np.ndarray:
        """For each program and axis: where its block starts and stops in the array."""
        starts = self.places
        shape = np.array(self.shape, int)  # also of a scalar
        low = np.clip(starts, 0, shape)
        stop = np.minimum(starts + np.array(self.block, int), shape)
        return np.stack((low, np.maximum(low, stop)), -1)

    @functools.cached_property
    def _inside_bytes(self) -> list[int]:
        sides = self.insides[..., 1] - self.insides[..., 0]
        return (self.itemsize * sides.prod(1)).tolist()

    @functools.cached_property
    def _inside(self) -> list[list[tuple[int, int]]]:
        return [[(low, high) for low, high in one] for one in self.insides.tolist()]

    def inside(self, program: int) -> list[tuple[int, int]]:
        """The part of the array in a program's block: start and stop of each axis."""
        return self._inside[program]

    def slice_text(self, program: int) -> str:
        """A program's block as a slice: `x[0:32, :]`.

        Without what lies outside of the array, unless all of it does.
        """
        said = self._slices.get(program)
        if said is None:
            said = self._slices[program] = self._slice_text(program)
        return said

    @functools.cached_property
    def _slices(self) -> dict[int, str]:
        return {}

    @functools.cached_property
    def kinds(self) -> dict[int, str]:
        """What happens to the block at a program, in words that views have found."""
        return {}

    def _slice_text(self, program: int) -> str:
        sides = []
        starts = self.starts[program]
        parts = zip(self.inside(program), starts, self.block, self.shape, strict=True)
        for (low, high), start, size, n in parts:
            if low == high and n and size:
                low, high = start, start + size
            sides.append(":" if (low, high) == (0, n) else f"{low}:{high}")
        return f"{self.name}[{', '.join(sides)}]" if sides else self.name

    def block_bytes(self, program: int) -> int:
        """The bytes of a program's block, without what lies outside of the array."""
        return self._inside_bytes[program]

    def is_outside(self, program: int) -> bool:
        """Whether nothing of a program's block lies in the array."""
        sides = zip(self.starts[program], self.block, self.shape)
        empty = any(min(start + size, n) <= max(start, 0) for start, size, n in sides)
        return bool(self.bytes and any(self.block) and empty)

    @functools.cached_property
    def leaves_its_array(self) -> bool:
        """Whether some program's block lies beside the array."""
        axes = zip(zip(*self.starts), self.block, self.shape)
        return any(max(at) >= n or min(at) + size <= 0 for at, size, n in axes)

    @functools.cached_property
    def moves(self) -> list[bool]:
        """For each program whether its block is copied: fetched before an input's
        program, written back after an output's."""
        count = len(self.starts)
        if not self.moved:
            return [False] * count
        other = -1 if self.role == "input" else 1
        return [
            not 0 <= n + other < count or self.starts[n + other] != self.starts[n]
            for n in range(count)
        ]

    @functools.cached_property
    def again(self) -> list[bool]:
        """For each program whether it copies a block that was copied before."""
        seen: set[tuple[int, ...]] = set()
        found = []
        for start, moves in zip(self.starts, self.moves):
            found.append(moves and tuple(start) in seen)
            if moves:
                seen.add(tuple(start))
        return found

    @functools.cached_property
    def revisits(self) -> list[bool]:
        """For each program whether it begins another visit of a block."""
        last: dict[tuple[int, ...], int] = {}
        found = []
        for program, start in enumerate(self.starts):
            place = last.get(tuple(start))
            found.append(self.moved and place is not None and place < program - 1)
            last[tuple(start)] = program
        return found

    @functools.cached_property
    def copied(self) -> int:
        """The bytes that a pipeline copies in all."""
        return sum(self.block_bytes(n) for n, moves in enumerate(self.moves) if moves)

    @functools.cached_property
    def used(self) -> int:
        """The bytes of all programs' blocks, one after another."""
        if not self.moved:
            return 0
        return sum(map(self.block_bytes, range(len(self.starts))))

    @functools.cached_property
    def ideal(self) -> int:
        """The bytes if each block were copied once; at most those of the array."""
        first = [n for n, again in enumerate(self.again) if self.moves[n] and not again]
        return min(self.bytes, sum(map(self.block_bytes, first)))

    @property
    def copies(self) -> int:
        """How often a block is copied."""
        return sum(self.moves)

    @property
    def blocks(self) -> int:
        """How many different blocks there are."""
        return self.copies - sum(self.again)


@dataclass
class Problem:
    """Something wrong that a program did. `element` is where in the operand's array.

    `kind` is that of the interpreter's finding, or "revisited": a block of an output
    that is left and visited again, when a TPU has written it back. A "race on a GPU" is
    none on a TPU, which runs the programs one by one. `operand` is None for memory that
    the kernel made itself.
    """

    kind: str
    operand: int | None
    element: list[int]
    program: int
    message: str
    other: int | None = None
    lines: list[int] = field(default_factory=list)

    @property
    def is_wrong(self) -> bool:
        """Whether it is an error; a block that reaches beyond its array is none."""
        return self.kind not in ("padding", "race on a GPU")


@dataclass(kw_only=True)
class KernelRecording(Recording):
    """The grid of a kernel: `places` are its programs in the order in which they run.

    `ran` counts those that were run. `operations` are at most those of one program.
    """

    kind = "kernel"

    name: str
    grid: list[int]
    axes: list[str]
    places: list[list[int]]
    operands: list[Operand]
    problems: list[Problem]
    ran: int
    note: str
    operations: int
    machine: Machine
    lines: list[list[int]]  # the kernel's lines: source, line
    jaxpr: list[str]

    def of_role(self, role: str) -> list[Operand]:
        """The operands of a role."""
        return [operand for operand in self.operands if operand.role == role]

    @property
    def fetched(self) -> int:
        """The bytes of inputs that a pipeline fetches."""
        return sum(operand.copied for operand in self.of_role("input"))

    @property
    def needed(self) -> int:
        """The bytes of inputs if each block were fetched once."""
        return sum(operand.ideal for operand in self.of_role("input"))

    @property
    def written(self) -> int:
        """The bytes of outputs that a pipeline writes back."""
        return sum(operand.copied for operand in self.of_role("output"))

    @property
    def on_chip(self) -> int:
        """The bytes beside the arithmetic units: each block twice, and scratch."""
        total = 0
        for one in self.operands:
            times = 2 if one.moved else 1 if one.role == "scratch" else 0
            total += times * one.itemsize * math.prod(one.block)
        return total

    @property
    def wrong(self) -> list[Problem]:
        """What is wrong, without blocks that reach beyond their arrays."""
        return [problem for problem in self.problems if problem.is_wrong]

    @property
    def refetches(self) -> list[int]:
        """The programs for which a block is copied that was copied before."""
        moved = [operand.again for operand in self.operands if operand.moved]
        return [n for n in range(len(self.places)) if any(again[n] for again in moved)]

    def place_text(self, program: int) -> str:
        """A program as users write it: `(1, 0)`."""
        return str(tuple(self.places[program])) if self.places else "none"


# ---- another order ------------------------------------------------------------------


def better_order(record: KernelRecording) -> tuple[list[str], int] | None:
    """The order of the grid's axes that copies the fewest bytes, and how many.

    Only orders in which the programs of an output's block stay neighbours count: they
    may add to it. None if no order is better, or if programs have their own order.
    """
    grid = record.grid
    rank = len(grid)
    if not 2 <= rank <= 4 or record.places != [list(p) for p in np.ndindex(*grid)]:
        return None
    moved = [one for one in record.operands if one.moved]
    if any(any(one.again) for one in moved if one.role == "output"):
        return None
    best = sum(one.copied for one in moved)
    found = None
    tables = []
    for one in moved:
        starts = np.asarray(one.starts).reshape(*grid, -1)
        in_bytes = [one.block_bytes(n) for n in range(len(record.places))]
        tables.append((one, starts, np.array(in_bytes, np.int64).reshape(grid)))
    for order in itertools.permutations(range(rank)):
        total = 0
        for one, starts, sizes in tables:
            turned = starts.transpose(*order, rank)
            flat = turned.reshape(len(record.places), -1)
            changes = (flat[1:] != flat[:-1]).any(axis=1)
            first = one.role == "input"
            moves = np.r_[first, changes] if first else np.r_[changes, True]
            if one.role == "output" and moves.sum() > one.copies:
                break  # its block would be written back more than once
            total += int(sizes.transpose(order).ravel()[moves.astype(bool)].sum())
        else:
            if total < best:
                best, found = total, [record.axes[axis] for axis in order]
    return None if found is None else (found, best)


# ---- sentences ----------------------------------------------------------------------


def headline(record: KernelRecording) -> str:
    """One sentence: what is wrong, else the bytes against the ideal."""
    told = f"kernel {record.name}, grid {tuple(record.grid)}: "
    wrong = record.wrong
    if wrong:
        first = wrong[0]
        on = ""
        if first.operand is not None:
            on = f" on {record.operands[first.operand].name}"
        if first.kind == "revisited":
            told += f"program {record.place_text(first.program)} comes back to a block"
            told += f" of {on.removeprefix(' on ')} that was written back"
        elif first.kind == "missing write":
            told += f"not all of {on.removeprefix(' on ')} is written"
        elif first.kind == "uninitialized":
            told += f"program {record.place_text(first.program)} reads memory{on} that "
            told += "nobody wrote"
        elif first.other is not None:
            told += f"{first.kind}{on} between programs "
            told += f"{record.place_text(first.other)} and "
            told += record.place_text(first.program)
        else:
            told += f"{first.kind}{on} in program {record.place_text(first.program)}"
        if len(wrong) > 1:
            told += f"; {len(wrong) - 1} more findings"
        return told
    return told + traffic_told(record) + on_a_gpu(record)


def on_a_gpu(record: KernelRecording) -> str:
    """What would go wrong on a GPU alone, to be written behind a headline."""
    for problem in record.problems:
        if problem.kind == "race on a GPU" and problem.operand is not None:
            return f"; on a GPU a race on {record.operands[problem.operand].name}"
    return ""


def traffic_told(record: KernelRecording) -> str:
    """The bytes that a pipeline moves, against the ideal."""
    told = ""
    if record.fetched > record.needed:
        told += f"{record.fetched:,} B fetched where {record.needed:,} would do; "
        most = max(record.of_role("input"), key=lambda one: one.copied - one.ideal)
        times = most.copies / most.blocks
        if times == 1:
            return told + f"blocks of {most.name} overlap"
        return told + f"{most.name} is fetched {times_in_words(times)}"
    again = [one.name for one in record.of_role("output") if any(one.again)]
    if again:
        return told + f"blocks of {again[0]} are written back more than once"
    told += f"{record.fetched:,} B in and {record.written:,} B out"
    return told + (", each block once" if len(record.places) > 1 else "")


def times_in_words(times: float) -> str:
    """A number of times: `twice`, `3 times`, `1.5 times`."""
    if times == 2:
        return "twice"
    return f"{times:.0f} times" if times == int(times) else f"{times:.1f} times"


def telling(record: KernelRecording) -> int:
    """The program to show first: the first finding's, else the first refetch."""
    if record.wrong:
        return record.wrong[0].program
    if record.refetches:
        return record.refetches[0]
    return len(record.places) // 2 if record.places else 0


# ---- the pipeline -------------------------------------------------------------------


@dataclass
class Slot:
    """When a program's blocks are copied in, computed with, and copied out, in seconds.

    A copy that is not needed takes no time: start and end are the same.
    """

    program: int
    copy_in: tuple[float, float]
    compute: tuple[float, float]
    copy_out: tuple[float, float]

    @property
    def lanes(self) -> tuple[tuple[float, float], ...]:
        """The three of them in order."""
        return self.copy_in, self.compute, self.copy_out


def pipeline(record: KernelRecording) -> list[Slot]:
    """The modelled timeline of all programs, with two buffers for each block.

    The copies for a program begin while the program before computes, as soon as the
    program two before has left the buffer. Copies in and copies out go on at the same
    time, each at the machine's whole bandwidth; nothing waits for anything else.
    """
    slots: list[Slot] = []
    seconds = record.operations / record.machine.operations
    for program in range(len(record.places)):
        sizes = {"input": 0, "output": 0}
        for one in record.operands:
            if one.role in sizes and one.moved and one.moves[program]:
                sizes[one.role] += one.block_bytes(program)
        before = slots[-1] if slots else None
        two_before = slots[-2] if len(slots) > 1 else None
        start = before.copy_in[1] if before else 0.0
        if two_before:
            start = max(start, two_before.compute[1])
        end = start + sizes["input"] / record.machine.bandwidth
        begins = max(end, before.compute[1] if before else 0.0)
        if two_before:
            begins = max(begins, two_before.copy_out[1])
        done = begins + seconds
        leaves = max(done, before.copy_out[1] if before else 0.0)
        left = leaves + sizes["output"] / record.machine.bandwidth
        slots.append(Slot(program, (start, end), (begins, done), (leaves, left)))
    return slots
