"""The dialects of MLIR by name: `stablehlo`, `chlo`, `func`, `sdy`, `arith`, ...

Each is jaxlib's own module, loaded when it is first asked for. `hlo` is `stablehlo`,
as JAX's lessons call it.

In JAX: `jax.extend.mlir.dialects`.
"""

from typing import Any

from minijax.backend import hlo_parts
from minijax.backend.dialects import dialect


def __getattr__(name: str) -> Any:
    if name == "hlo":
        return dialect("stablehlo")
    if name in hlo_parts.DIALECTS:
        return dialect(name)
    raise AttributeError(
        f"module {__name__!r} has no dialect {name!r}; it has "
        f"{', '.join(hlo_parts.DIALECTS)}."
    )
