"""Triton, the compiler of kernels for GPUs: its dialect, kernels inside of programs.

A kernel is a module of the dialect `tt`: one function that takes pointers. It travels
as bytecode inside of a StableHLO program, in the configuration of a call, with the size
of the grid and how many warps run a program. XLA's compiler for NVIDIA's GPUs makes
PTX of it.

In JAX: `pallas/triton/pallas_call_registration.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from minijax.backend import hlo_parts
from minijax.backend.dialects import dialect
from minijax.core import hlo

# What XLA's compiler for GPUs calls a kernel of Triton's.
_CALL = "__gpu$xla.gpu.triton"


@contextlib.contextmanager
def module(name: str) -> Iterator[Any]:
    """An empty module for a kernel, in a context of its own, which is entered."""
    with hlo_parts.context() as context:
        dialect("tt").register_dialect(context)
        made = hlo.ir.Module.create()
        made.operation.attributes["sym_name"] = hlo.string(name)
        with hlo.ir.InsertionPoint(made.body):
            yield made


def pointer_type(element: Any) -> Any:
    """The type of a pointer to elements in the GPU's memory."""
    return dialect("tt").PointerType.get(element, 1)


def function(name: str, types: Sequence[Any]) -> Any:
    """A function `tt.func` that takes pointers, with an entry block."""
    ir = hlo.ir
    # XLA aligns its buffers, which lets Triton read several elements at once.
    aligned = ir.DictAttr.get({"tt.divisibility": hlo_parts.int_attribute(32, 32)})
    made = dialect("tt").FuncOp(
        name,
        ir.TypeAttr.get(ir.FunctionType.get(list(types), [])),
        sym_visibility="public",
        arg_attrs=ir.ArrayAttr.get([aligned] * len(types)),
        res_attrs=ir.ArrayAttr.get([]),
    )
    made.body.blocks.append(*types)
    return made


def call(
    made: Any,
    name: str,
    grid: Sequence[int],
    num_warps: int,
    num_stages: int,
    operands: Sequence[Any],
    result_types: Sequence[Any],
    aliases: Mapping[int, int],
) -> list[Any]:
    """The operation of StableHLO that calls a kernel; its results.

    Args:
      made: the kernel's module as bytes.
      name: its function.
      grid: the programs along x, y and z.
      num_warps: how many warps of 32 threads run a program.
      num_stages: in how many stages loops are pipelined.
      operands, result_types: of StableHLO.
      aliases: {operand: result} for results that are written over an operand.
    """

    def i32(value: int) -> Any:
        return hlo_parts.int_attribute(value, 32)

    config = {
        "name": hlo.string(name),
        "ir": hlo.ir.StringAttr.get(made),
        "num_warps": i32(num_warps),
        "num_stages": i32(num_stages),
        "debug": hlo.ir.BoolAttr.get(False),
        **{f"grid_{axis}": i32(size) for axis, size in zip("xyz", grid)},
    }
    operation = hlo_parts.custom_call(
        _CALL, result_types, operands, None, api_version=1, aliases=aliases
    )
    operation.attributes["mhlo.backend_config"] = hlo.ir.DictAttr.get(config)
    return list(operation.results)


def kernels_in(program: Any) -> Iterator[str]:
    """The kernels that a StableHLO module calls, as text, in its order."""
    for call in hlo_parts.custom_calls_in(program.operation):
        if hlo_parts.target_of(call) == _CALL:
            yield _text_of(call.attributes["mhlo.backend_config"]["ir"].value_bytes)


def _text_of(made: bytes) -> str:
    with module("read"):
        return hlo.module_to_text(hlo.ir.Module.parse(made))
