"""Parameters for Mosaic, the compiler of kernels for TPUs. A CPU reads none of them.

In JAX: `pallas/mosaic/core.py`.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class GridDimensionSemantics(enum.Enum):
    """Whether programs along an axis of the grid may run in any order."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


class SideEffectType(enum.Enum):
    """What a compiler may do with a kernel whose results are unused."""

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


@dataclass(frozen=True)
class CompilerParams:
    """How Mosaic compiles a kernel.

    `dimension_semantics` says for each axis of the grid whether its programs may run in
    any order ("parallel") or only one after another ("arbitrary"). `vmem_limit_bytes`
    is how much of VMEM the kernel may use. The other fields are JAX's, for Mosaic.
    """

    dimension_semantics: Sequence[Any] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: Mapping[str, Any] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False

    def __post_init__(self) -> None:
        """Make every field something that can be hashed."""
        for name in ("dimension_semantics", "allow_input_fusion"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(value))
        if self.flags is not None:
            object.__setattr__(self, "flags", tuple(sorted(self.flags.items())))

    replace = dataclasses.replace
