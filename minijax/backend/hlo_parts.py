"""Parts of StableHLO that single rooms need: attributes, foreign calls, parsing.

In JAX: `interpreters/mlir.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax  # type: ignore[attr-defined]

from minijax.core import hlo


@contextlib.contextmanager
def context() -> Iterator[Any]:
    """Enters a fresh context with an unknown location."""
    with hlo.make_context() as current, hlo.ir.Location.unknown():
        yield current


# ---------------------------------------------------------------------------
# Attributes


def write_region(
    operation: Any, types: Sequence[Any], write: Callable, number: int = 0
) -> None:
    """Fills a region of an operation; `write(*its arguments)` gives what it returns."""
    block = operation.regions[number].blocks.append(*types)
    with hlo.ir.InsertionPoint(block):
        hlo.stablehlo.return_(write(*block.arguments))


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
    config: dict[str, Any] | str | None,
    has_side_effect: bool = False,
    *,
    api_version: int = 4,
    operand_layouts: Sequence[Sequence[int]] | str | None = "row-major",
    result_layouts: Sequence[Sequence[int]] | str | None = "row-major",
    aliases: Mapping[int, int] | None = None,
) -> Any:
    """A call of a foreign function; the operation.

    Args:
      target: the name under which the function is registered.
      result_types: the types of the results; tensors and tokens.
      operands: values; tensors and tokens.
      config: what the function reads by name, as attributes; for interfaces before
        XLA's typed one (4) a string.
      has_side_effect: whether the call must happen exactly once.
      api_version: which of XLA's interfaces the function has.
      operand_layouts: for each operand its axes, the fastest first; None: not said.
      result_layouts: the same for the results.
      aliases: {operand: result} for results that are written over an operand.
    """
    ir = hlo.ir

    def layouts(given: Any, kinds: Sequence[Any]) -> Any:
        if given is None:
            return None
        if isinstance(given, str):
            given = [range(_rank(kind) - 1, -1, -1) for kind in kinds]
        orders = [np.array(order, dtype=np.int64) for order in given]
        index = ir.IndexType.get()
        return ir.ArrayAttr.get(
            [ir.DenseIntElementsAttr.get(order, type=index) for order in orders]
        )

    several = len(result_types) > 1
    pairs = [
        hlo.stablehlo.OutputOperandAlias.get(
            output_tuple_indices=[made] if several else [],
            operand_index=given,
            operand_tuple_indices=[],
        )
        for given, made in (aliases or {}).items()
    ]
    if isinstance(config, dict):
        config = ir.DictAttr.get(config)
    else:
        config = hlo.string(config or "")
    return hlo.stablehlo.CustomCallOp(
        list(result_types),
        list(operands),
        target,
        has_side_effect=has_side_effect,
        backend_config=config,
        api_version=int_attribute(api_version, 32),
        operand_layouts=layouts(operand_layouts, [value.type for value in operands]),
        result_layouts=layouts(result_layouts, result_types),
        output_operand_aliases=ir.ArrayAttr.get(pairs) if pairs else None,
    )


def _rank(kind: Any) -> int:
    """The dimensions of a tensor; a token has none."""
    return len(kind.shape) if isinstance(kind, hlo.ir.RankedTensorType) else 0


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
    with context():
        module = parse(program)
        run_passes(module, "strip-debuginfo")
        return hlo.module_to_bytes(module)


def call_out_from_first_device(module: Any) -> None:
    """In a program for several devices, calls with side effects come from the first.

    XLA's partitioner refuses a call with side effects that names no device. Inside of
    shard_map each device makes the call, and nothing is changed.
    """
    found = []
    for call in custom_calls_in(module.operation, outside="sdy.manual_computation"):
        given = {name: call.attributes[name] for name in call.attributes}
        effect = given.get("has_side_effect")
        if effect is not None and effect.value and "sdy.sharding" not in given:
            found.append(call)
    if not found:
        return
    mesh = hlo.ir.Operation.parse("sdy.mesh @first_device = <[], device_ids=[0]>")
    hlo.ir.InsertionPoint.at_block_begin(module.body).insert(mesh)
    one = "<@first_device, []>"
    for call in found:
        each = ", ".join([one] * max(len(call.results), 1))
        text = f"#sdy.sharding_per_value<[{each}]>"
        call.attributes["sdy.sharding"] = hlo.ir.Attribute.parse(text)


def run_passes(module: Any, passes: str, verify: bool = True) -> None:
    """Runs compiler passes, in the syntax of MLIR's pipelines, on a module."""
    from jaxlib.mlir.passmanager import PassManager

    manager = PassManager.parse(f"builtin.module({passes})")
    manager.enable_verifier(verify)
    manager.run(module.operation)


def approx_top_k_size(size: int, rank: int, k: int, recall: float, whole: int) -> int:
    """How many of `size` entries XLA looks through at last for the `k` largest.

    `whole` is the size of an axis of which these are a part, or -1.
    """
    sizes = _jax.approx_top_k_reduction_output_size
    return sizes(size, rank, k, recall, False, whole)[0]


def custom_calls_in(operation: Any, outside: str = "") -> Iterator[Any]:
    """The calls of foreign functions in an operation, in its order.

    Those within operations of the name `outside` are left out.
    """
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                inner = inner.operation
                if inner.name == "stablehlo.custom_call":
                    yield inner
                if inner.name != outside:
                    yield from custom_calls_in(inner, outside)


def target_of(call: Any) -> str:
    """The name of the foreign function that an operation calls."""
    return call.attributes["call_target_name"].value
