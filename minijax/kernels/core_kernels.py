"""pl.kernel: a kernel that runs once on each core of a mesh, with whole arrays.

    mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)

    @pl.kernel(out_type=ShapeDtypeStruct((16, 128), jnp.float32), mesh=mesh)
    def double(x_ref, o_ref):
        rows = pl.ds(lax.axis_index("core") * 8, 8)
        o_ref[rows] = x_ref[rows] * 2

It is a `pallas_call` whose grid is the mesh: the cores run one after another on a CPU.

In JAX: `pallas/helpers.py`, `kernel`; `pallas/mosaic/core.py`, `TensorCoreMesh`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minijax.kernels.memory_spaces import MemorySpace
from minijax.kernels.pallas_call import pallas_call
from minijax.kernels.specs import BlockSpec
from minijax.kernels.tpu_params import CompilerParams
from minijax.support.tree_util import tree_map


@dataclass(frozen=True)
class TensorCoreMesh:
    """Names and numbers of cores along each axis."""

    axis_names: tuple[str, ...]
    axis_sizes: tuple[int, ...]

    @property
    def shape(self) -> dict[str, int]:
        """How many cores there are along each axis."""
        return dict(zip(self.axis_names, self.axis_sizes))


def create_tensorcore_mesh(
    axis_name: str, devices: Any = None, num_cores: int | None = None
) -> TensorCoreMesh:
    """A mesh of the cores of one TPU, with one axis.

    Args:
      axis_name: the axis, for `lax.axis_index`.
      devices: must be None.
      num_cores: how many cores there are; must be given where there is no TPU.

    Raises ValueError for missing or wrong numbers.
    """
    if devices is not None:
        raise ValueError("create_tensorcore_mesh: give num_cores instead of devices.")
    if not isinstance(num_cores, int) or num_cores < 1:
        raise ValueError(
            "create_tensorcore_mesh: num_cores must be a positive integer, since "
            f"minijax reads it from no TPU; got {num_cores!r}."
        )
    return TensorCoreMesh((axis_name,), (num_cores,))


def kernel(
    body: Callable[..., None] | None = None,
    out_type: Any = (),
    *,
    mesh: TensorCoreMesh,
    scratch_types: Any = (),
    compiler_params: CompilerParams | None = None,
    interpret: Any = False,
    cost_estimate: Any = None,
    debug: bool = False,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """A function that runs a kernel on each core of a mesh.

    Args:
      body: takes refs to whole inputs, whole outputs and scratch memory, and returns
        None. Left out, the result is a decorator.
      out_type: a tree of `ShapeDtypeStruct`.
      mesh: from `pltpu.create_tensorcore_mesh`; `lax.axis_index` of its axis says on
        which core the body runs.
      scratch_types: memory, such as `pltpu.VMEM((8, 128), jnp.float32)`.
      compiler_params, interpret, cost_estimate, debug, name, metadata: as for
        `pallas_call`.

    Raises TypeError for another mesh, and for a list of bodies.
    """
    if isinstance(body, Sequence) or not isinstance(mesh, TensorCoreMesh):
        raise TypeError(
            "pl.kernel takes one function and a mesh from "
            f"pltpu.create_tensorcore_mesh, got {body!r} and {mesh!r}."
        )

    def decorator(body: Callable[..., None]) -> Callable[..., Any]:
        @functools.wraps(body)
        def call(*args: Any) -> Any:
            whole = BlockSpec(memory_space=MemorySpace.ANY)
            specs = {
                "in_specs": tree_map(lambda _: whole, args),
                "out_specs": tree_map(lambda _: whole, out_type),
            }
            return pallas_call(
                body,
                out_type,
                grid=tuple(zip(mesh.axis_names, mesh.axis_sizes)),
                scratch_shapes=scratch_types,
                compiler_params=compiler_params,
                interpret=interpret,
                cost_estimate=cost_estimate,
                debug=debug,
                name=name,
                metadata=metadata,
                **specs,
            )(*args)

        return call

    return decorator if body is None else decorator(body)
