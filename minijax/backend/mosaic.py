"""Mosaic, the compiler of kernels for TPUs: its dialect, and programs as bytes.

A kernel is an MLIR module of its own, over `memref`s of the core's memory and `vector`s
in registers, with operations of the dialect `tpu` among those that MLIR has. It travels
inside of a StableHLO program as the configuration of a call, in the stable form that
the pass `mosaic-serde` writes: a TPU's compiler of another version can read it.

In JAX: `tpu_custom_call.py`.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from minijax.backend import hlo_parts
from minijax.backend.dialects import dialect
from minijax.core import hlo

# MLIR's own dialects that kernels are written in.
DIALECTS = ("arith", "math", "memref", "scf", "vector")

# What XLA's compiler for TPUs calls a kernel of Mosaic's.
_CALL = "tpu_custom_call"


@contextlib.contextmanager
def module() -> Iterator[Any]:
    """An empty module for a kernel, in a context of its own, which is entered."""
    with hlo_parts.context() as context:
        dialect("tpu").register_dialect(context)
        for name in DIALECTS:
            context.dialects[name]
        made = hlo.ir.Module.create()
        with hlo.ir.InsertionPoint(made.body):
            yield made


def to_bytes(made: Any) -> bytes:
    """A kernel's module in its stable form; the module is changed."""
    context = hlo.ir.Context.current
    context.allow_unregistered_dialects = True
    hlo_parts.run_passes(made, "mosaic-serde{serialize=true}")
    return hlo.module_to_bytes(made)


def kernels_in(program: Any) -> Iterator[str]:
    """The kernels that a StableHLO module calls, as text, in its order."""
    for call in hlo_parts.custom_calls_in(program.operation):
        if hlo_parts.target_of(call) == _CALL:
            config = json.loads(call.attributes["backend_config"].value)
            yield _text_of(config["custom_call_config"]["body"])


def _text_of(body: str) -> str:
    """A kernel's module as text, from the configuration of its call."""
    with module():
        context = hlo.ir.Context.current
        context.allow_unregistered_dialects = True
        read = hlo.ir.Module.parse(base64.b64decode(body))
        hlo_parts.run_passes(read, "mosaic-serde{serialize=false}")
        return hlo.module_to_text(read)


def call(
    body: bytes,
    settings: Mapping[str, Any],
    other_settings: Mapping[str, Any],
    name: str,
    metadata: Mapping[str, str],
    operands: Any,
    result_types: Any,
    aliases: Mapping[int, int],
    has_side_effect: bool,
) -> list[Any]:
    """The operation of StableHLO that calls a kernel; its results.

    Args:
      body: the kernel, from `to_bytes`.
      settings: what Mosaic reads beside it.
      other_settings: what XLA reads beside these, such as how much VMEM it may use.
      name: the kernel's name in profiles.
      metadata: words to keep.
      operands, result_types: of StableHLO.
      aliases: {operand: result} for results that are written over an operand.
      has_side_effect: whether the call must happen even if its results are unused.
    """
    text = base64.b64encode(body).decode("ascii")
    config = {"custom_call_config": {"body": text, **settings}, **other_settings}
    operation = hlo_parts.custom_call(
        _CALL,
        result_types,
        operands,
        json.dumps(config),
        has_side_effect,
        api_version=1,
        aliases=aliases,
    )
    ir = hlo.ir
    operation.attributes["kernel_name"] = hlo.string(name)
    words = hlo.string(json.dumps(dict(metadata), separators=(",", ":")))
    operation.attributes["mhlo.frontend_attributes"] = ir.DictAttr.get(
        {"kernel_metadata": words}
    )
    return list(operation.results)
