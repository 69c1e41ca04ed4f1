"""The dialects of MLIR by name: `stablehlo`, `chlo`, `func`, `sdy`, `arith`, ...

Each is jaxlib's own module, loaded when it is first asked for. `hlo` is `stablehlo`,
as JAX's lessons call it.

In JAX: `jax.extend.mlir.dialects`.
"""

from typing import Any

from minijax.backend import hlo as _modules


def __getattr__(name: str) -> Any:
    if name == "hlo":
        return _modules.stablehlo
    if name in _modules.DIALECTS:
        return getattr(_modules, name)
    raise AttributeError(
        f"module {__name__!r} has no dialect {name!r}; it has "
        f"{', '.join(_modules.DIALECTS)}."
    )
