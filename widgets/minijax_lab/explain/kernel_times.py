"""How long each kernel took, measured by XLA's profiler on this machine."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from minijax.backend import profiling
from minijax.compile.array_transfers import block_until_ready
from minijax.compile.jit_api import jit
from minijax_lab.explain.compiled import CompiledRecording

RUNS = 5


def measured_times(
    function: Any, args: tuple, kwargs: dict[str, Any], record: CompiledRecording
) -> dict[int, float]:
    """Microseconds of each kernel, by its position; the shortest of a few runs.

    A kernel whose name the profiler did not report is left out.

    Raises TypeError for arguments without values.
    """
    compiled = jit(function)
    block_until_ready(compiled(*args, **kwargs))
    names = {
        record.program.instruction(kernel).name.lstrip("%"): number
        for number, kernel in enumerate(record.program.kernels)
    }
    found: dict[int, list[float]] = defaultdict(list)
    for _ in range(RUNS):
        data = profiling.measure(lambda: block_until_ready(compiled(*args, **kwargs)))
        total: dict[int, float] = defaultdict(float)
        for plane in data.planes:
            for line in plane.lines:
                for event in line.events:
                    if "hlo_op" in dict(event.stats) and event.name in names:
                        total[names[event.name]] += event.duration_ns / 1e3
        for number, microseconds in total.items():
            found[number].append(microseconds)
    return {number: min(times) for number, times in found.items()}
