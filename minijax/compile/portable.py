"""Programs that stand alone: a module without outer constants, and calls of it.

Lowering gives a `main` that takes large constants as arguments. `standalone` writes
them into the module, so that its `main` takes the user's arguments only and the module
can be kept. `call` puts such a module's functions into another module and calls them.

In JAX: `jax/_src/export/_export.py`, `_wrap_main_func` and `_call_exported_lowering`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo, portable
from minijax.compile import mlir
from minijax.support import dtypes


def standalone(lowered: mlir.Lowered) -> bytes:
    """The lowered program as a portable artifact, with its constants in it."""
    with lowered.context, hlo.ir.Location.unknown():
        module = lowered.module
        symbols = hlo.ir.SymbolTable(module.operation)
        inner = symbols["main"]
        types = list(inner.type.inputs)
        count = len(lowered.constants)
        results = list(inner.type.results)
        result_attributes = inner.attributes.get("res_attrs")
        inner_name = "_exported"
        while inner_name in symbols:
            inner_name += "_"
        hlo.ir.SymbolTable.set_symbol_name(inner, inner_name)
        hlo.ir.SymbolTable.set_visibility(inner, "private")
        if "arg_attrs" in inner.attributes:  # donation is up to the caller
            del inner.attributes["arg_attrs"]
        main = hlo.func.FuncOp(
            "main",
            hlo.ir.FunctionType.get(types[count:], results),
            visibility="public",
            ip=hlo.ir.InsertionPoint.at_block_begin(module.body),
        )
        block = main.add_entry_block()
        with hlo.ir.InsertionPoint(block):
            values = [hlo.constant(_on_host(const)) for const in lowered.constants]
            name = hlo.ir.FlatSymbolRefAttr.get(inner_name)
            call = hlo.func.CallOp(results, name, [*values, *block.arguments])
            hlo.func.ReturnOp(list(call.results))
        if result_attributes is not None:
            main.attributes["res_attrs"] = result_attributes
        return portable.to_bytes(module)


def _on_host(const: Any) -> np.ndarray:
    aval = getattr(const, "aval", None)
    if aval is not None and isinstance(aval.dtype, dtypes.ExtendedDType):
        return np.asarray(const._buffer)
    return np.asarray(const)


def call(
    ctx: mlir.LoweringRuleContext,
    owner: Any,
    program: bytes,
    name: str,
    operands: Sequence[Any],
) -> list[Any]:
    """Call a portable program inside of the module being written.

    Its functions are taken over once for each `owner`, whatever it is.
    """
    context = ctx.module_context
    key = (id(owner), name)
    if key not in context.functions:
        source = portable.from_bytes(program)
        function = portable.take_functions(
            source, context.symbols, context.module, mlir.sanitize_name(name)
        )
        context.functions[key] = (function, owner)
    function = context.functions[key][0]
    target = hlo.ir.FlatSymbolRefAttr.get(function.name.value)
    return list(hlo.func.CallOp(function.type.results, target, operands).results)
