"""In which order to contract the operands of an `einsum`.

A contraction of many arrays is done two at a time, and the order decides how much work
it is: (AB)v costs more than A(Bv). The searches here are those of the package
opt_einsum, which JAX uses, with the same ties broken in the same way, so that the same
programs result: all orders for up to four operands, the most promising branches of that
tree for more (Smith and Gray, "opt_einsum", JOSS 2018).

A path is a list of tuples of positions: the operands there are taken out of the list,
and their product is put at its end.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Names = frozenset[str]
Sizes = dict[str, int]
Path = list[tuple[int, ...]]


def size_of(names: Names | str, sizes: Sizes) -> int:
    """The number of elements of an array whose axes have these names."""
    return math.prod(sizes[name] for name in names)


def work_of(names: Names, sums: bool, operands: int, sizes: Sizes) -> int:
    """Operations: a product for each operand after the first, and one for the sum."""
    return size_of(names, sizes) * (max(1, operands - 1) + sums)


class _Pairs:
    """The products of pairs, each worked out once for two sets of names.

    So does opt_einsum, even where a third operand of the same names, which decided what
    was kept, is gone by then. Its orders can be had only by doing the same.
    """

    def __init__(self, output: Names, sizes: Sizes):
        self.output = output
        self.sizes = sizes
        self.known: dict[tuple[Names, Names], tuple[Names, int]] = {}

    def product(
        self, arrays: tuple[Names, ...], remaining: frozenset[int], i: int, j: int
    ) -> tuple[Names, int]:
        """The names that the product of arrays `i` and `j` keeps, and its work."""
        key = (arrays[i], arrays[j])
        if key not in self.known:
            either = arrays[i] | arrays[j]
            shared = arrays[i] & arrays[j]
            others = (arrays[k] for k in remaining if k not in (i, j))
            needed = self.output.union(*others)
            work = work_of(either, bool(shared - needed), 2, self.sizes)
            self.known[key] = (either & needed, work)
        return self.known[key]


def _pairs(remaining: frozenset[int]) -> Iterator[tuple[int, int]]:
    """All pairs, the smaller number first, in the set's own order: that breaks ties."""
    for i, j in itertools.combinations(remaining, 2):
        yield min(i, j), max(i, j)


def all_orders(inputs: Sequence[Names], output: Names, sizes: Sizes) -> Path:
    """The order with the least work, found by trying all of them."""
    pairs = _Pairs(output, sizes)
    best_work = math.inf
    best_steps: tuple[tuple[int, ...], ...] = (tuple(range(len(inputs))),)

    def descend(
        steps: tuple[tuple[int, ...], ...],
        arrays: tuple[Names, ...],
        remaining: frozenset[int],
        work: int,
    ) -> None:
        nonlocal best_work, best_steps
        if len(remaining) == 1:
            best_work = work
            best_steps = steps
            return
        for i, j in _pairs(remaining):
            product, more = pairs.product(arrays, remaining, i, j)
            if work + more >= best_work:
                continue
            left = remaining - {i, j} | {len(arrays)}
            descend((*steps, (i, j)), (*arrays, product), left, work + more)

    descend((), tuple(inputs), frozenset(range(len(inputs))), 0)
    return _as_positions(best_steps)


def best_branches(
    branches: int | None, inputs: Sequence[Names], output: Names, sizes: Sizes
) -> Path:
    """A good order: at each step, the pairs that free the most memory are tried first.

    Only the first `branches` of them (None: all) are followed, and none that has done
    four times the work of the best order so far with as many products.
    """
    pairs = _Pairs(output, sizes)
    best = (math.inf, math.inf)
    best_steps: tuple[tuple[int, ...], ...] = ()
    best_progress: dict[int, float] = {}

    def candidates(
        arrays: tuple[Names, ...],
        remaining: frozenset[int],
        work: int,
        largest: int,
        joined: bool,
    ) -> list[tuple]:
        found = []
        for i, j in _pairs(remaining):
            if joined and arrays[i].isdisjoint(arrays[j]):
                continue
            product, more = pairs.product(arrays, remaining, i, j)
            size = size_of(product, sizes)
            new_work = work + more
            new_largest = max(largest, size)
            if (new_work, new_largest) >= best:
                continue
            progress = best_progress.get(len(arrays), math.inf)
            if new_work < progress:
                best_progress[len(arrays)] = new_work
            elif new_work > 4 * progress:
                continue
            freed = size_of(arrays[i], sizes) + size_of(arrays[j], sizes)
            found.append((size - freed, more, new_work, new_largest, (i, j), product))
        return sorted(found, key=lambda candidate: candidate[:5])

    def descend(
        steps: tuple[tuple[int, ...], ...],
        arrays: tuple[Names, ...],
        remaining: frozenset[int],
        work: int,
        largest: int,
    ) -> None:
        nonlocal best, best_steps
        if len(remaining) == 1:
            best = (work, largest)
            best_steps = steps
            return
        options = candidates(arrays, remaining, work, largest, joined=True)
        if not options:
            options = candidates(arrays, remaining, work, largest, joined=False)
        for _, _, new_work, new_largest, (i, j), product in options[:branches]:
            left = remaining - {i, j} | {len(arrays)}
            new_steps = (*steps, (i, j))
            descend(new_steps, (*arrays, product), left, new_work, new_largest)

    descend((), tuple(inputs), frozenset(range(len(inputs))), 0, 0)
    return _as_positions(best_steps)


def _as_positions(steps: Sequence[tuple[int, ...]]) -> Path:
    """Steps by the number of each array, as positions in the list that remains."""
    count = sum(len(step) for step in steps) - len(steps) + 1
    numbers = list(range(count))
    path = []
    for new_number, step in enumerate(steps, start=count):
        positions = sorted(bisect.bisect_left(numbers, number) for number in step)
        for position in reversed(positions):
            numbers.pop(position)
        numbers.append(new_number)
        path.append(tuple(positions))
    return path


def _search_for(name: Any, operands: int) -> Callable[..., Path]:
    """The search that a value of `optimize` names; "auto" depends on the operands."""
    branches = {"branch-all": None, "branch-2": 2, "branch-1": 1, "greedy": 1}
    if name == "optimal" or (name == "auto" and operands <= 4):
        return all_orders
    if name == "auto":
        limit = None if operands <= 6 else 2 if operands <= 8 else 1
    elif name in branches:
        limit = branches[name]
    else:
        raise KeyError(
            f"Path optimizer '{name}' not found, valid options are "
            f"{['auto', 'optimal', *branches]}."
        )
    return lambda inputs, output, sizes: best_branches(limit, inputs, output, sizes)


def find_path(
    optimize: Any, inputs: Sequence[Names], output: Names, sizes: Sizes
) -> Path:
    """The path for a value of einsum's `optimize`: a name, a bool, or a path itself.

    True stands for "optimal", False for left to right.
    """
    count = len(inputs)
    if not isinstance(optimize, (str, bool)):
        return [tuple(step) for step in optimize]
    if count <= 2:
        return [tuple(range(count))]
    if optimize is False:
        return [(0, 1)] * (count - 1)
    search = _search_for("optimal" if optimize is True else optimize, count)
    return search(inputs, output, sizes)
