"""The mesh in use: `set_mesh`, and what a `PartitionSpec` alone refers to.

In JAX: `jax/_src/sharding_impls.py`, `set_mesh`.
"""

from __future__ import annotations

from typing import Any

from minijax.core import errors
from minijax.core.language import eval_trace
from minijax.core.state import state
from minijax.support.devices.mesh import (
    AbstractMesh,
    Mesh,
    empty_abstract_mesh,
    empty_concrete_mesh,
    entered_mesh,
)
from minijax.support.devices.shardings import NamedSharding, PartitionSpec
from minijax.support.settings import declare, override

# (the mesh of the `shard_map` around this place, its axes that are manual here).
declare("manual_mesh", None)


class set_mesh:
    """Uses a mesh in this thread: from now on, or within a `with` block.

        set_mesh(mesh)
        with set_mesh(mesh): ...

    A `PartitionSpec` alone then means this mesh, and programs run on its devices.

    Args:
      mesh: a `Mesh`; None for no mesh.

    Raises:
      ValueError: for anything else, and inside of a traced function.

    In JAX: `jax.set_mesh`.
    """

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise errors.value_error(
                f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}. Make "
                "one with `minijax.make_mesh(sizes, names)`."
            )
        if state.trace is not eval_trace:
            raise errors.value_error(
                "`set_mesh` can only be used outside of `jax.jit`: a mesh is set where "
                "the traced function is called."
            )
        self._mesh = mesh
        self._set = override("mesh", mesh)
        self._set.__enter__()

    def __enter__(self) -> Mesh | None:
        return self._mesh

    def __exit__(self, *exception: Any) -> None:
        self._set.__exit__(*exception)


class use_abstract_mesh(override):
    """A mesh without devices, within a `with` block.

    In JAX: `jax.sharding.use_abstract_mesh`.
    """

    def __init__(self, mesh: AbstractMesh) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise errors.value_error(
                f"Expected mesh of type AbstractMesh. Got {type(mesh)}."
            )
        super().__init__("abstract_mesh", mesh)

    def __enter__(self) -> AbstractMesh:
        super().__enter__()
        return self.value


def get_mesh() -> Mesh:
    """The mesh of `set_mesh`; an empty one if there is none."""
    if state.trace is not eval_trace:
        raise errors.value_error(
            "`get_mesh` can only be used outside of `jax.jit`. Maybe you want "
            "`jax.sharding.get_abstract_mesh()`?"
        )
    return state.mesh or empty_concrete_mesh


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh in use; an empty mesh if there is none."""
    if state.abstract_mesh is not None:
        return state.abstract_mesh
    return empty_abstract_mesh if state.mesh is None else state.mesh.abstract_mesh


def mesh_in_use() -> Mesh | AbstractMesh:
    """The mesh of `set_mesh`, in a traced function its axes; an empty one for none."""
    if state.trace is not eval_trace:
        return get_abstract_mesh()
    return state.mesh or empty_concrete_mesh


def mesh_of_jit() -> Mesh | AbstractMesh:
    """The mesh of `set_mesh`, with its devices if it has any; may be empty."""
    return state.mesh or get_abstract_mesh()


def mesh_of_constraints() -> Mesh | AbstractMesh:
    """The mesh in use, or else that of `with mesh:`; an empty one if there is none."""
    mesh = mesh_in_use()
    return entered_mesh() if mesh.empty else mesh


def sharding_of(
    place: Any, what: str, mesh: Mesh | AbstractMesh, kind: type = RuntimeError
) -> Any:
    """A sharding; a `PartitionSpec` alone means this mesh, which must not be empty."""
    if not isinstance(place, PartitionSpec):
        return place
    if mesh.empty:
        error = kind(
            f"{what} requires a non-empty mesh in context if you are passing "
            f"`PartitionSpec`s, and got {place}. Set one, `with minijax.set_mesh("
            "mesh):`, or pass a sharding, `NamedSharding(mesh, spec)`."
        )
        raise errors.with_facts(error)
    return NamedSharding(mesh, place)
