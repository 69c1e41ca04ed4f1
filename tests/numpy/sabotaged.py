"""Runs files of this folder with a lowering that ignores one of its parameters.

`python -m tests.numpy.sabotaged` prints a JSON object: for each fault how many tests
passed before the first one failed. With names of primitives: for theirs alone. All
tests of a file run, in their order, so that what one compares is not left out because
another did: see `programs.check`.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import minijax
from minijax.core.language import all_primitives
from tests.numpy import programs
from tests.rules.sabotaged import run


class Fault(NamedTuple):
    """A primitive's parameter, its wrong value by (value, rank), and the tests."""

    primitive: str
    name: str
    wrong: Callable[[Any, int], Any]
    file: str


FAULTS = [
    Fault("sort", "dimension", lambda axis, rank: rank - 1, "sorting"),
    Fault("cumsum", "axis", lambda axis, rank: 0, "reductions"),
    Fault("argmax", "axes", lambda axes, rank: (0,), "reductions"),
    Fault("reduce_sum", "axes", lambda axes, rank: (0,), "reductions"),
    Fault("rev", "dimensions", lambda axes, rank: (rank - 1,), "shaping"),
    Fault("concatenate", "dimension", lambda axis, rank: 0, "shaping"),
    Fault(
        "transpose",
        "permutation",
        lambda axes, rank: tuple(reversed(range(rank))),
        "shaping",
    ),
    Fault("slice", "strides", lambda steps, rank: None, "indexing"),
    Fault("iota", "dimension", lambda axis, rank: 0, "creation"),
    Fault("integer_pow", "y", lambda y, rank: 2, "ufuncs"),
    Fault(
        "dot_general",
        "dimension_numbers",
        lambda numbers, rank: (((0,), (0,)), ((), ())),
        "contractions",
    ),
]


@contextlib.contextmanager
def at_work(fault: Fault) -> Iterator[None]:
    """The lowering gets the wrong value inside of the block."""
    primitive = all_primitives[fault.primitive]
    right = dict(primitive.lowerings)

    def wrong(rule: Callable) -> Callable:
        def lower(ctx: Any, *operands: Any, **params: Any) -> Any:
            rank = len(ctx.avals_in[0].shape) if ctx.avals_in else 0
            value = fault.wrong(params[fault.name], rank)
            return rule(ctx, *operands, **params | {fault.name: value})

        return lower

    primitive.lowerings.update({place: wrong(rule) for place, rule in right.items()})
    minijax.clear_caches()
    programs.COMPARED.clear()
    try:
        yield
    finally:
        primitive.lowerings.update(right)
        minijax.clear_caches()
        programs.COMPARED.clear()


def main() -> None:
    counts = {}
    with contextlib.redirect_stdout(sys.stderr):
        for fault in FAULTS:
            if sys.argv[1:] and fault.primitive not in sys.argv[1:]:
                continue
            with at_work(fault):
                counter = run([f"tests/numpy/test_{fault.file}.py"])
            told = f"{fault.primitive} without its {fault.name}"
            counts[told] = {"passed": counter.passed, "failed": counter.failed}
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
