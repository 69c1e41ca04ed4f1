"""The dialects of MLIR by name: `stablehlo`, `chlo`, `func`, `sdy`, `arith`, ...

Each is jaxlib's own module, loaded when it is first asked for. `hlo` is `stablehlo`,
as JAX's lessons call it.

In JAX: `jax.extend.mlir.dialects`.
"""

from typing import Any

from minijax.backend import more_hlo


def __getattr__(name: str) -> Any:
    if name == "hlo":
        return more_hlo.dialect("stablehlo")
    if name in more_hlo.DIALECTS:
        return more_hlo.dialect(name)
    raise AttributeError(
        f"module {__name__!r} has no dialect {name!r}; it has "
        f"{', '.join(more_hlo.DIALECTS)}."
    )
