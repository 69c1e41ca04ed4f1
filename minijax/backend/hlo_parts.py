"""Parts of StableHLO that single rooms need: attributes, foreign calls, parsing.

In JAX: `interpreters/mlir.py`.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo


@contextlib.contextmanager
def context() -> Iterator[Any]:
    """Enters a fresh context with an unknown location."""
    with hlo.make_context() as current, hlo.ir.Location.unknown():
        yield current


# ---------------------------------------------------------------------------
# Attributes


def bool_array(values: Sequence[bool]) -> Any:
    """`array<i1: ...>`: one flag for each dimension."""
    return hlo.ir.DenseBoolArrayAttr.get([bool(value) for value in values])


def int_matrix(values: Any) -> Any:
    """`dense<...> : tensor<axbxi64>`: padding, replica groups."""
    matrix = np.ascontiguousarray(values, dtype=np.int64)
    element = hlo.ir.IntegerType.get_signless(64)
    return hlo.ir.DenseElementsAttr.get(matrix, type=element, shape=matrix.shape)


def int_attribute(value: int, bits: int = 64) -> Any:
    """`value : i64`, or of another width."""
    return hlo.ir.IntegerAttr.get(hlo.ir.IntegerType.get_signless(bits), int(value))


def unsigned_attribute(value: int, bits: int = 64) -> Any:
    """`value : ui64`, or of another width."""
    return hlo.ir.IntegerAttr.get(hlo.ir.IntegerType.get_unsigned(bits), int(value))


def custom_call(
    target: str,
    result_types: Sequence[Any],
    operands: Sequence[Any],
    attributes: dict[str, Any],
    has_side_effect: bool = False,
) -> Any:
    """A call of a foreign function by XLA's typed interface; the operation.

    Operands and results are row-major: the function sees dimensions, not layouts.

    Args:
      target: the name under which the function is registered.
      result_types: the types of the results; tensors and tokens.
      operands: values; tensors and tokens.
      attributes: what the function reads by name, as attributes.
      has_side_effect: whether the call must happen exactly once.
    """
    ir = hlo.ir

    def layouts(kinds: Sequence[Any]) -> Any:
        return ir.ArrayAttr.get([_row_major(kind) for kind in kinds])

    return hlo.stablehlo.CustomCallOp(
        list(result_types),
        list(operands),
        target,
        has_side_effect=has_side_effect,
        backend_config=ir.DictAttr.get(attributes),
        api_version=int_attribute(4, 32),
        operand_layouts=layouts([operand.type for operand in operands]),
        result_layouts=layouts(result_types),
    )


def _row_major(kind: Any) -> Any:
    """The layout of a tensor whose last dimension varies fastest; of a token, none."""
    ir = hlo.ir
    rank = len(kind.shape) if isinstance(kind, ir.RankedTensorType) else 0
    order = np.arange(rank - 1, -1, -1, dtype=np.int64)
    return ir.DenseIntElementsAttr.get(order, type=ir.IndexType.get())


def sdy_sharding(
    mesh_axes: Sequence[tuple[str, int]],
    dimensions: Sequence[tuple[Sequence[str], bool]],
    replicated_axes: Sequence[str] = (),
    unreduced_axes: Sequence[str] = (),
) -> Any:
    """Shardy's sharding of one tensor, for the attribute `sdy.sharding`.

    Args:
      mesh_axes: name and size of each mesh axis; the mesh is written into the
        attribute, so that the module needs no `sdy.mesh`.
      dimensions: for each dimension the axes that cut it, coarsest first, and whether
        the compiler may cut it further.
      replicated_axes: axes that the compiler must not use.
      unreduced_axes: axes over which the parts are still to be added up.
    """
    sdy = hlo.sdy
    mesh = sdy.MeshAttr.get([sdy.MeshAxisAttr.get(n, size) for n, size in mesh_axes])
    shardings = [
        sdy.DimensionShardingAttr.get(
            [sdy.AxisRefAttr.get(axis) for axis in axes], is_closed=not is_open
        )
        for axes, is_open in dimensions
    ]
    return sdy.TensorShardingAttr.get(
        mesh,
        shardings,
        replicated_axes=[sdy.AxisRefAttr.get(axis) for axis in replicated_axes],
        unreduced_axes=[sdy.AxisRefAttr.get(axis) for axis in unreduced_axes],
    )


# ---------------------------------------------------------------------------
# Modules


DIALECTS = ("stablehlo", "chlo", "func", "sdy", "arith", "math", "scf", "memref", "cf")


def dialect(name: str) -> Any:
    """jaxlib's module of a dialect of MLIR, one of `DIALECTS`; imported when needed."""
    return importlib.import_module(f"jaxlib.mlir.dialects.{name}")


def parse(program: str | bytes) -> Any:
    """A module from StableHLO text or bytecode, in the current context."""
    return hlo.ir.Module.parse(program)


def verify(module: Any) -> None:
    """Checks the module's types and structure.

    Raises:
      jaxlib.mlir.ir.MLIRError: says which operation is wrong and why.
    """
    module.operation.verify()


def strip_locations(program: bytes) -> bytes:
    """The same program without source locations: what a disk cache may use as key."""
    from jaxlib.mlir.passmanager import PassManager

    with context():
        module = parse(program)
        passes = PassManager.parse("builtin.module(strip-debuginfo)")
        passes.run(module.operation)
        return hlo.module_to_bytes(module)
