"""`jit` by its older name, for the mesh of `with mesh:`.

In JAX: `jax.experimental.pjit`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minijax.compile.jit_api import jit
from minijax.core.errors import api_boundary
from minijax.support.devices.mesh import entered_mesh
from minijax.support.devices.shardings import PartitionSpec
from minijax.support.settings import override
from minijax.support.tree_util import tree_map

__all__ = ["pjit"]

_NOT_GIVEN: Any = object()


class _Pjit:
    """A jitted function that uses the mesh of `with mesh:` where there is one."""

    def __init__(self, plain: Any, in_mesh: Any) -> None:
        self._plain = plain
        self._in_mesh = in_mesh
        functools.update_wrapper(self, plain, updated=())

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run("__call__", *args, **kwargs)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def _run(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        mesh = entered_mesh()
        if mesh.empty:
            return getattr(self._plain, name)(*args, **kwargs)
        with override("mesh", mesh):
            return getattr(self._in_mesh, name)(*args, **kwargs)

    def clear_cache(self) -> None:
        """Forget the programs made with a mesh and without one."""
        self._plain.clear_cache()
        self._in_mesh.clear_cache()

    def __getattr__(self, name: str) -> Callable:
        method = getattr(object.__getattribute__(self, "_plain"), name)
        if not callable(method) or name.startswith("_"):
            return method
        return functools.wraps(method)(functools.partial(self._run, name))


def pjit(
    fun: Callable,
    in_shardings: Any = _NOT_GIVEN,
    out_shardings: Any = _NOT_GIVEN,
    **options: Any,
) -> Any:
    """`jit`, for which a `PartitionSpec` alone means the mesh of `with mesh:`.

    In such a block None, where it is written, means that all devices have the whole
    array. Without a block it is `jit` itself, and the mesh that is set counts. (In JAX
    it then takes no `PartitionSpec`.)

    Args:
      fun: the function.
      in_shardings, out_shardings: as for `jit`.
      options: those of `jit`.
    """

    given = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    given = {name: place for name, place in given.items() if place is not _NOT_GIVEN}
    whole = {name: _replicated(place) for name, place in given.items()}
    return _Pjit(jit(fun, **given, **options), jit(fun, **whole, **options))


def _replicated(shardings: Any) -> Any:
    """The shardings with `PartitionSpec()` in the place of each None."""
    return tree_map(
        lambda place: PartitionSpec() if place is None else place,
        shardings,
        is_leaf=lambda place: place is None,
    )
