"""`shard_map` by the path and names of JAX up to 0.7. In JAX: `jax.shard_map`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Set
from typing import Any

from minijax.programs.shard_map.mapping import shard_map as _shard_map


def shard_map(
    f: Callable,
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    check_rep: bool = True,
    auto: Set[Any] = frozenset(),
) -> Any:
    """`minijax.shard_map`, by its older arguments.

    Args:
      f, mesh, in_specs, out_specs: as there.
      check_rep: what is `check_vma` now.
      auto: the mesh axes that stay with the compiler; `axis_names` are the others.
    """
    warnings.warn(
        "experimental.shard_map is the path of older tutorials; write "
        "`minijax.shard_map(f, mesh=..., in_specs=..., out_specs=...)`.",
        DeprecationWarning,
        stacklevel=2,
    )
    names = frozenset() if mesh is None else frozenset(mesh.axis_names) - auto
    return _shard_map(
        f,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        axis_names=names,
        check_vma=check_rep,
    )
