"""Memory that records which program wrote and read each of its elements.

A `Memory` is an array (an input, an output, scratch) of a kernel that is interpreted. A
program sees a part of it, a `Block`: for each of its elements the block has an address
in the memory, or `PADDING` where the block reaches beyond the array. Every access gives
addresses and the user's line; what is wrong about it becomes a `Finding`.

JAX's interpreter for TPUs (`pallas/mosaic/interpret/`) finds races by vector clocks;
here the order of programs is known from the grid.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.kernels.uninitialized import uninitialized
from minijax.primitives.index.indexers import NDIndexer, Slice

PADDING = -1  # of a block that reaches beyond its array
OUTSIDE = -2  # an index that is not in the ref
NO_PROGRAM = -1


@dataclass(frozen=True)
class Finding:
    """Something wrong that a kernel did.

    `kind` is "race", "uninitialized", "out of bounds", "padding" or "missing write".
    `program` and `other_program` are places in the grid, `line` and `other_line` the
    user's lines, `element` the index of the first element in the whole array.
    """

    kind: str
    memory: str
    element: tuple[int, ...]
    program: tuple[int, ...]
    line: str
    message: str
    other_program: tuple[int, ...] | None = None
    other_line: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass
class Schedule:
    """The programs of a grid, numbered as they run, and which of them have no order.

    Programs of different `groups` may run at the same time. `own` are the axes that
    the kernel's writer wrote, `declared` says whether they were declared sequential or
    parallel.
    """

    places: list[tuple[int, ...]]
    groups: np.ndarray
    own: list[int]
    declared: bool

    def unordered(self, one: int, others: np.ndarray) -> np.ndarray:
        """Which programs (`NO_PROGRAM` is none) may run together with `one`."""
        return (others >= 0) & (self.groups[others] != self.groups[one])

    def fixed_by(self, one: tuple[int, ...], other: tuple[int, ...]) -> str:
        """What would give two programs an order: on a TPU parallel axes come first."""
        if self.declared:
            return "Their axes of the grid are declared parallel."
        differ = next(n for n, axis in enumerate(self.own) if one[axis] != other[axis])
        words = ["parallel"] * differ + ["arbitrary"] * (len(self.own) - differ)
        return (
            "On a GPU they run at the same time; on a TPU in order, which is worth "
            f"declaring: pltpu.CompilerParams(dimension_semantics={tuple(words)})."
        )


class Journal:
    """For each element the programs that wrote and read it last, and their lines.

    An output that takes over an input's memory has the same journal.
    """

    def __init__(self, size: int):
        self.wrote = False  # any program, any element
        # Programs and their lines: the program that wrote last; the one that read last,
        # and the last other one that read before it.
        self.writes = np.full((2, size), NO_PROGRAM, np.int64)
        self.reads = np.full((2, 2, size), NO_PROGRAM, np.int64)


class Memory:
    """An array of a kernel: its values, which of them were written, and its journal."""

    def __init__(self, name: str, value: np.ndarray, written: bool, private: bool):
        self.name = name
        self.shape = value.shape
        self.values = np.array(value).reshape(-1)
        self.written = np.full(value.size, written)
        self.private = private  # scratch: programs that run together have their own
        self.journal = Journal(value.size)

    @property
    def array(self) -> np.ndarray:
        return self.values.reshape(self.shape)

    def element(self, address: int) -> tuple[int, ...]:
        """The index of an address in the array."""
        return tuple(int(i) for i in np.unravel_index(address, self.shape))

    def text(self, address: int) -> str:
        """An element as a user writes it: `o_ref[0, 3]`."""
        return f"{self.name}[{', '.join(map(str, self.element(address)))}]"


@dataclass(frozen=True)
class Block:
    """The part of a memory that a ref shows: an address for each element."""

    memory: Memory
    addresses: np.ndarray

    shape = property(lambda self: self.addresses.shape)
    # Whether none of its elements is padding.
    inside = functools.cached_property(lambda self: self.addresses.min(initial=0) >= 0)

    def at(self, indexers: Sequence[NDIndexer]) -> np.ndarray:
        """The addresses that indexers, one after another, select."""
        addresses = self.addresses
        for indexer in indexers:
            addresses = _select(addresses, indexer)
        return addresses


def whole(memory: Memory) -> Block:
    """All of a memory as a block."""
    return Block(memory, np.arange(memory.values.size).reshape(memory.shape))


def block_at(
    memory: Memory, starts: Sequence[int], sizes: Sequence[int], squeezed: Sequence[int]
) -> Block:
    """The block of given sizes from an element on; beyond the array it is padding."""
    first = 0
    for start, length in zip(starts, memory.shape):
        first = first * length + start
    addresses = _block_at_zero(memory.shape, tuple(sizes)) + first
    for axis, (start, length) in enumerate(zip(starts, memory.shape)):
        if start < 0 or start + sizes[axis] > length:
            along = start + np.arange(sizes[axis])
            outside = np.flatnonzero((along < 0) | (along >= length))
            addresses[(slice(None),) * axis + (outside,)] = PADDING
    return Block(memory, addresses.squeeze(tuple(squeezed)))


@functools.lru_cache(maxsize=64)
def _block_at_zero(shape: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    """The addresses of a block that begins at the first element."""
    addresses = np.zeros(sizes, np.int64)
    for along, length in zip(np.indices(sizes), shape):
        addresses = addresses * length + along
    return addresses


def _select(addresses: np.ndarray, indexer: NDIndexer) -> np.ndarray:
    """The addresses at an index; OUTSIDE where it leaves the ref."""
    shape = indexer.result_shape()
    rank = len(shape)
    common = indexer.int_indexer_shape
    integers = indexer.is_integer
    place = 0
    if any(integers) and indexer.integers_are_neighbours:
        place = integers.index(True)
    free = [a for a in range(rank) if not place <= a < place + len(common)]
    slots = iter(free if any(integers) else range(rank))
    index, inside = [], np.ones((1,) * rank, bool)
    for entry, size in zip(indexer.indices, addresses.shape, strict=True):
        if isinstance(entry, Slice):
            numbers = int(entry.start) + entry.stride * np.arange(entry.size)
            slot = next(slots)
            along = numbers.reshape([-1 if a == slot else 1 for a in range(rank)])
        else:
            numbers = np.broadcast_to(np.asarray(entry), common)
            ones = (1,) * (rank - place - len(common))
            along = numbers.reshape((1,) * place + common + ones)
        inside = inside & (along >= 0) & (along < size)
        index.append(np.clip(along, 0, size - 1))
    selected = addresses[tuple(index)] if index else addresses
    return np.broadcast_to(np.where(inside, selected, OUTSIDE), shape)


# ----------------------------------------------------------------------------------
# Accesses
# ----------------------------------------------------------------------------------


class Watch:
    """Reads and writes of one program after another, and what was found."""

    def __init__(self, schedule: Schedule, params: Any):
        self.schedule = schedule
        self.params = params
        self.program = 0  # the number of the one that runs
        self.findings: list[Finding] = []
        self.lines: list[str] = []
        self._numbers: dict[str, int] = {}
        self._told: set[tuple] = set()

    def begin(self, blocks: Sequence[Block]) -> None:
        """Called before each program, with what its refs show; for recorders."""

    def report(self, finding: Finding) -> None:
        """Prints a finding, unless it is about padding."""
        if finding.kind != "padding":
            print(finding)

    def read(self, block: Block, addresses: np.ndarray, line: str, mask: Any = None):
        """The values at addresses; those outside, and masked ones, have no value."""
        memory = block.memory
        real = self._reached("reads", block, addresses, line, mask)
        touched = addresses[real].reshape(-1)
        values = np.full(addresses.shape, self.empty(memory.values.dtype))
        values[real] = memory.values[addresses[real]]
        unwritten = touched[~memory.written[touched]]
        if unwritten.size and self.params.uninitialized_memory == "nan":
            self._uninitialized(memory, int(unwritten[0]), unwritten.size, line)
        if self.params.detect_races:
            journal = memory.journal
            if journal.wrote:
                self._races("read", "wrote", memory, touched, journal.writes, line)
            last, before = journal.reads
            new = touched[last[0, touched] != self.program]
            before[:, new] = last[:, new]
            last[0, touched], last[1, touched] = self.program, self._number(line)
        return values

    def write(self, block: Block, addresses, value, line: str, mask: Any = None):
        """Put values at addresses; what is padding or masked out is dropped."""
        memory = block.memory
        real = self._reached("writes", block, addresses, line, mask)
        touched = addresses[real].reshape(-1)
        value = np.broadcast_to(value, addresses.shape)
        memory.values[touched] = value[real].reshape(-1)
        memory.written[touched] = True
        if not self.params.detect_races:
            return
        journal = memory.journal
        if not memory.private:
            self._races("write", "wrote", memory, touched, journal.writes, line)
            for reads in journal.reads:
                self._races("write", "read", memory, touched, reads, line)
        journal.wrote = True
        journal.writes[0, touched] = self.program
        journal.writes[1, touched] = self._number(line)

    def empty(self, dtype: Any) -> Any:
        """The value of memory that was not written."""
        if self.params.uninitialized_memory == "zero":
            return np.zeros((), dtype)
        return uninitialized(dtype)

    def missing_writes(self, memory: Memory, line: str) -> None:
        """Report elements of an output that no program wrote."""
        missing = np.flatnonzero(~memory.written)
        if missing.size:
            first = int(missing[0])
            self._tell(
                "missing write",
                memory,
                first,
                line,
                f"{missing.size} of {memory.values.size} elements of {memory.name} "
                f"were never written, the first is {memory.text(first)}: no block "
                "holds it, or the kernel does not write all of its block",
            )

    # What was found.

    @property
    def place(self) -> tuple[int, ...]:
        places = self.schedule.places
        return places[self.program] if places else ()

    def _number(self, line: str) -> int:
        if line not in self._numbers:
            self._numbers[line] = len(self.lines)
            self.lines.append(line)
        return self._numbers[line]

    def _tell(
        self, kind: str, memory: Memory, address: int, line: str, message: str, **more
    ) -> None:
        """Keep a finding; one for each kind, memory and pair of lines."""
        key = (kind, memory.name, line, more.get("other_line"))
        if key in self._told:
            return
        self._told.add(key)
        element = memory.element(address) if address >= 0 else ()
        self.findings.append(
            Finding(kind, memory.name, element, self.place, line, message, **more)
        )

    def _reached(self, verb: str, block: Block, addresses, line: str, mask) -> Any:
        """Which elements an access reaches, `...` for all; reports the others."""
        whole_block = addresses is block.addresses and block.inside
        if mask is None and (whole_block or addresses.min(initial=0) >= 0):
            return ...
        used = np.broadcast_to(True if mask is None else mask, addresses.shape)
        outside = used & (addresses == OUTSIDE)
        if outside.any():
            self._outside(verb, block, outside, line)
        if verb == "reads" and (used & (addresses == PADDING)).any():
            self._padding(block.memory, block, line)
        return used & (addresses >= 0)

    def _outside(self, verb: str, block: Block, outside: Any, line: str) -> None:
        memory = block.memory
        message = (
            f"program {self.place} {verb} outside of {memory.name}, a ref of shape "
            f"{block.shape}: {outside.sum()} of {outside.size} elements of the access "
            f"are not in it. At {line}. Use a mask, or a block that holds them."
        )
        self._tell("out of bounds", memory, NO_PROGRAM, line, message)
        if verb == "writes" or self.params.out_of_bounds_reads == "raise":
            raise IndexError(f"out of bounds: {message}")

    def _padding(self, memory: Memory, block: Block, line: str) -> None:
        count = int((block.addresses == PADDING).sum())
        self._tell(
            "padding",
            memory,
            NO_PROGRAM,
            line,
            f"the block of program {self.place} reaches beyond {memory.name}: {count} "
            f"of its {block.addresses.size} elements have no value, and what is "
            f"computed from them must not reach an element of an output. At {line}",
        )

    def _uninitialized(self, memory, address: int, count: int, line: str) -> None:
        self._tell(
            "uninitialized",
            memory,
            address,
            line,
            f"program {self.place} reads {memory.text(address)}"
            f"{f' and {count - 1} more elements' if count > 1 else ''} before any "
            f"program wrote there. At {line}",
        )

    def _races(self, verb, other_verb, memory, touched, seen, line) -> None:
        others = seen[0, touched]
        if others.max(initial=NO_PROGRAM) == NO_PROGRAM:
            return
        found = np.flatnonzero(self.schedule.unordered(self.program, others))
        if not found.size:
            return
        address, other = int(touched[found[0]]), int(others[found[0]])
        other_line = self.lines[seen[1, address]]
        if ("race", memory.name, line, other_line) in self._told:
            return
        other_place = self.schedule.places[other]
        what = f"{memory.text(address)} is shared by programs that have no order"
        if memory.private:
            what = f"{memory.text(address)} may be another core's memory"
        self._tell(
            "race",
            memory,
            address,
            line,
            f"{what}: program {self.place} {verb}s it at {line}; program {other_place} "
            f"{other_verb} it at {other_line}. "
            f"{self.schedule.fixed_by(self.place, other_place)}",
            other_program=other_place,
            other_line=other_line,
        )
