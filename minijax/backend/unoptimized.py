"""A lowered program as HLO, before XLA optimises it: its text and its estimated cost.

In JAX: `interpreters/mlir.py`, `module_to_string`, and `jax/_src/stages.py`.
"""

from __future__ import annotations

from typing import Any

from minijax.core import hlo
from minijax.core.runtime import _hlo, _jax, xc


def computation(module: Any) -> Any:
    """The module as jaxlib's `XlaComputation`."""
    return _jax.mlir.mlir_module_to_xla_computation(
        hlo.module_to_text(module, locations=True),
        use_tuple_args=False,
        return_tuple=False,
    )


def text(program: Any, metadata: bool) -> str:
    """The HLO text; with `metadata` the user's lines."""
    if not metadata:
        return program.as_hlo_text()
    options = _hlo.HloPrintOptions()
    options.print_metadata = True
    return program.get_hlo_module().to_string(options)


def cost_analysis(program: Any, client: Any) -> dict[str, float]:
    """XLA's estimate by the client of a platform: flops, bytes accessed and others."""
    return dict(xc._xla.hlo_module_cost_analysis(client, program.get_hlo_module()))
