"""Parameters for Triton, the compiler of kernels for GPUs. A CPU reads none of them.

In JAX: `pallas/triton/core.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CompilerParams:
    """How Triton compiles a kernel.

    `num_warps` are the warps (of 32 threads) that run one program, `num_stages` the
    stages in which it pipelines loops. None leaves the choice to the lowering.
    """

    num_warps: int | None = None
    num_stages: int | None = None
