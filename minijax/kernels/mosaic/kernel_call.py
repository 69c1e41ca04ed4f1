"""`pallas_call` on a TPU: a call of the kernel that Mosaic compiles.

In JAX: `pallas/mosaic/pallas_call_registration.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from minijax.backend import mosaic
from minijax.core import hlo
from minijax.core.language import Jaxpr
from minijax.core.lowering import LoweringRuleContext, tensor_type
from minijax.kernels.grid_mappings import GridMapping
from minijax.kernels.kernel_rules import verify
from minijax.kernels.mosaic.kernel_context import stored_dtype
from minijax.kernels.mosaic.kernel_module import write_kernel
from minijax.kernels.specs import CostEstimate
from minijax.kernels.tpu_params import CompilerParams, SideEffectType


def lower(
    ctx: LoweringRuleContext,
    *operands: Any,
    jaxpr: Jaxpr,
    grid_mapping: GridMapping,
    input_output_aliases: Sequence[tuple[int, int]],
    debug: bool,
    compiler_params: Any,
    cost_estimate: CostEstimate | None,
    metadata: Any,
    name: str | None,
    **_: Any,
) -> list[Any]:
    """The rule of `pallas_call` for TPUs.

    Raises:
      NotImplementedError: for what cannot be lowered; names operation and line.
      ValueError: for blocks that do not fit a TPU's registers.
      TypeError: for parameters of another machine's compiler.
    """
    params = _params(compiler_params)
    name = name or jaxpr.debug_info.func_name
    with mosaic.module() as made:
        write_kernel(jaxpr, grid_mapping, params, name)
        verify(made, name, "a TPU", "Mosaic", debug)
        body = mosaic.to_bytes(made)
    side_effect = _side_effect(params)
    stored = [
        aval.update(dtype=stored_dtype(aval.dtype))
        for aval in (*ctx.avals_in, *ctx.avals_out)
    ]
    given, made_types = stored[: len(operands)], stored[len(operands) :]
    results = mosaic.call(
        body,
        _settings(params, cost_estimate),
        _other_settings(params),
        name,
        metadata or {},
        list(map(_converted, operands, given)),
        list(map(tensor_type, made_types)),
        dict(input_output_aliases),
        side_effect is not SideEffectType.PURE,
    )
    return list(map(_converted, results, ctx.avals_out))


def _converted(value: Any, aval: Any) -> Any:
    """Bools as the numbers that a kernel's memory holds, and back."""
    target = tensor_type(aval)
    return value if value.type == target else hlo.stablehlo.convert(target, value)


def _params(given: Any) -> CompilerParams:
    if given is None:
        return CompilerParams()
    if not isinstance(given, CompilerParams):
        raise TypeError(
            f"compiler_params={given!r} is not for a TPU: give pltpu.CompilerParams, "
            "or none."
        )
    for setting, off, why in (
        ("use_tc_tiling_on_sc", None, "is for a TPU's sparse cores"),
        ("fuse_transposed_lhs_in_matmul", False, "is not lowered here"),
    ):
        if getattr(given, setting) is not off:
            raise NotImplementedError(f"compiler_params: {setting} {why}; leave it out")
    alone = not given.allow_collective_id_without_custom_barrier
    if given.collective_id is not None and alone:
        raise ValueError(
            f"compiler_params: collective_id={given.collective_id} is for kernels that "
            "wait for those of other chips; leave it out."
        )
    return given


def _side_effect(params: CompilerParams) -> SideEffectType:
    effect = params.has_side_effects
    if isinstance(effect, SideEffectType):
        return effect
    return SideEffectType.SIDE_EFFECTING if effect else SideEffectType.PURE


def _settings(params: CompilerParams, cost: CostEstimate | None) -> dict[str, Any]:
    """The parameters for Mosaic that differ from its defaults."""
    settings: dict[str, Any] = {
        "serialization_format": params.serialization_format,
        "needs_layout_passes": True,
    }
    if cost is not None:
        settings["cost_estimate"] = dataclasses.asdict(cost)
    checks = ("disable_bounds_checks", "disable_semaphore_checks")
    for setting in (*checks, "skip_device_barrier"):
        if getattr(params, setting):
            settings[setting] = True
    if not params.shape_invariant_numerics:
        settings["shape_invariant_numerics"] = False
    for setting in ("collective_id", "internal_scratch_in_bytes", "allow_input_fusion"):
        value = getattr(params, setting)
        if value is not None:
            settings[setting] = list(value) if isinstance(value, tuple) else value
    return settings


def _other_settings(params: CompilerParams) -> dict[str, Any]:
    """The parameters for XLA."""
    settings: dict[str, Any] = {}
    if params.vmem_limit_bytes is not None:
        settings["scoped_memory_configs"] = [
            {"memory_space": 1, "offset": 0, "size": params.vmem_limit_bytes}
        ]
    if params.flags:
        settings["flag_configs"] = [
            {"flag_type": flag, "value": _flag(value)}
            for flag, value in sorted(dict(params.flags).items())
        ]
    return settings


def _flag(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolean_value": value}
    return {"integer_value" if isinstance(value, int) else "double_value": value}
