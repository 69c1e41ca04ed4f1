"""How a kernel is interpreted: one program at a time, watched.

    f = pallas_call(kernel, ..., interpret=InterpretParams(detect_races=True))

In JAX: `pallas/mosaic/interpret/params.py`, `interpret_pallas_call.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minijax.core.state import install
from minijax.support.settings import declare, override

declare("tpu_interpret_mode", None)

# What the interpreter refuses, and why: other values than the defaults of these.
_REFUSED = {
    "num_cores_or_threads": (
        "num_cores_or_threads > 1: the interpreter runs all programs on one core"
    ),
    "vector_clock_size": (
        "vector_clock_size: races are found without clocks, from the grid"
    ),
    "skip_floating_point_ops": "skip_floating_point_ops: all operations are computed",
    "buffer_bounds": "buffer_bounds='padded': a block ends where its array ends",
    "logging_mode": "logging_mode: use `findings()` to see what was found",
}


@dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """What the interpreter looks for, and what memory holds at the start.

    Args:
      detect_races: report accesses of two programs to one element of which at least
        one is a write and whose order nothing fixes.
      out_of_bounds_reads: "raise" an IndexError at a read outside of a ref, or give
        an "uninitialized" value there.
      uninitialized_memory: "nan" (for integers the smallest one; reading it is
        reported), or "zero".
      random_seed: run programs in a random order along axes whose order is free.
      grid_point_recorder: called with (place in the grid, 0) before each program.
      dma_execution_mode, allow_hbm_allocation_in_run_scoped: without effect, since
        nothing is copied between memory spaces here.

    Raises:
      ValueError: for values that do not exist.
      NotImplementedError: for several cores, buffers padded as on a TPU, skipped
        operations and logs.
    """

    detect_races: bool = False
    out_of_bounds_reads: str = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: Any = None
    dma_execution_mode: str = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Callable[[tuple, Any], Any] | None = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: str = "logical"

    def __post_init__(self) -> None:
        for name, words in (
            ("out_of_bounds_reads", ("raise", "uninitialized")),
            ("uninitialized_memory", ("nan", "zero")),
            ("dma_execution_mode", ("eager", "on_wait")),
            ("buffer_bounds", ("logical", "padded")),
        ):
            value = getattr(self, name)
            if value not in words:
                raise ValueError(
                    f"InterpretParams: {name} must be one of {words}, got {value!r}."
                )
        if self.num_cores_or_threads < 1:
            raise ValueError(
                "Number of cores or threads must be at least 1, but got "
                f"{self.num_cores_or_threads}."
            )
        for name, what in _REFUSED.items():
            if getattr(self, name) != getattr(type(self), name):
                raise NotImplementedError(f"InterpretParams: {what}.")

    @property
    def num_cores_per_device(self) -> int:
        """How many cores the interpreter simulates."""
        return self.num_cores_or_threads


_default = InterpretParams()


def force_tpu_interpret_mode(params: Any = _default) -> override:
    """Context manager: every `pallas_call` traced inside is interpreted.

    Args:
      params: as for `pallas_call(..., interpret=params)`; None ends an outer context's
        effect.
    """
    return override("tpu_interpret_mode", params)


def set_tpu_interpret_mode(params: Any = _default) -> None:
    """Interpret every `pallas_call` traced from now on; None to stop that."""
    install("tpu_interpret_mode", params)
