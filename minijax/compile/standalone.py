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

from minijax.backend import dynamic_shapes, hlo_parts, lapack, portable_artifacts
from minijax.core import dtypes, hlo, lowering
from minijax.values.symbolic_sizes import evaluate, scope_of, shape_variables
from minijax.values.symbolic_solving import Describe, equations, symbolic_axes


def standalone(lowered: lowering.Lowered, describe: Describe) -> bytes:
    """The lowered program as a portable artifact, with its constants in it."""
    return portable_artifacts.to_bytes(with_constants(lowered, describe))


def with_constants(lowered: lowering.Lowered, describe: Describe) -> Any:
    """The module of a lowered program, changed: its constants are written into it.

    Its `main` computes the variables of symbolic sizes from the shapes of the
    arguments, and asserts that all shapes fit.
    """
    with lowered.context, hlo.ir.Location.unknown():
        module = lowered.module
        symbols = hlo.ir.SymbolTable(module.operation)
        inner = symbols["main"]
        types = list(inner.type.inputs)
        shapes = [aval.shape for aval in lowered.in_avals]
        count = len(lowered.constants)
        leading = len(types) - count - len(lowered.kept)  # the variables' values
        results = list(inner.type.results)
        result_attributes = inner.attributes.get("res_attrs")
        inner_name = "_exported"
        while inner_name in symbols:
            inner_name += "_"
        if "arg_attrs" in inner.attributes:  # donation is up to the caller
            del inner.attributes["arg_attrs"]
        own = types[leading + count :], results[leading:]
        main = _main_around(module, inner, inner_name, *own)
        block = main.add_entry_block()
        with hlo.ir.InsertionPoint(block):
            values = [hlo.constant(_on_host(const)) for const in lowered.constants]
            name = hlo.ir.FlatSymbolRefAttr.get(inner_name)
            arguments = list(block.arguments)
            sizes = _sizes_of_arguments(shapes, arguments, describe) if leading else []
            call = hlo.func.CallOp(results, name, [*sizes, *values, *arguments])
            hlo.func.ReturnOp(list(call.results)[leading:])
        if result_attributes is not None:
            kept = list(result_attributes)[leading:]
            main.attributes["res_attrs"] = hlo.ir.ArrayAttr.get(kept)
        return module


def _sizes_of_arguments(
    shapes: Sequence[Any], arguments: Sequence[Any], describe: Describe
) -> list[Any]:
    """The values of all variables, sorted by name, with assertions about them."""
    values: dict[str, Any] = {}
    assertion = "Input shapes do not match the polymorphic shapes specification. "
    for equation in equations(shapes):
        size = dynamic_shapes.size_of(arguments[equation.argument], equation.axis)
        where = describe(equation.argument, equation.axis)
        spec = shapes[equation.argument][equation.axis]
        rest = size - evaluate(equation.rest, values)
        value = rest // equation.times if equation.times != 1 else rest
        if equation.times != 1:
            dynamic_shapes.check(
                (rest % equation.times, "EQ", 0),
                f"{assertion}{where} is {{0}}, which is no value of '{spec}'.",
                [size],
            )
        dynamic_shapes.check(
            (value, "GE", 1),
            f"{assertion}Expected value >= 1 for dimension variable "
            f"'{equation.name}', got {{0}} from {where}.",
            [value],
        )
        values[equation.name] = value
    axes = symbolic_axes(shapes)
    for argument, axis, size in axes:
        given = dynamic_shapes.size_of(arguments[argument], axis)
        expected = evaluate(size, values)
        dynamic_shapes.check(
            (given, "EQ", expected),
            f"{assertion}{describe(argument, axis)} is {{0}}, and '{size}' is {{1}}.",
            [given, expected],
        )
    for text, sign, first, second in scope_of(axes[0][2]).checks:
        if set(shape_variables([[first, second]])) <= set(values):
            dynamic_shapes.check(
                (evaluate(first, values), _DIRECTIONS[sign], evaluate(second, values)),
                f"{assertion}The constraint '{text}' does not hold.",
                [],
            )
    return [dynamic_shapes.value_of(values[name]) for name in sorted(values)]


_DIRECTIONS = {"==": "EQ", ">=": "GE", "<=": "LE"}


def _on_host(const: Any) -> np.ndarray:
    aval = getattr(const, "aval", None)
    if aval is not None and dtypes.is_extended(aval.dtype):
        return const._read()
    return np.asarray(const)


def call(
    ctx: lowering.LoweringRuleContext,
    owner: Any,
    program: bytes,
    name: str,
    operands: Sequence[Any],
) -> list[Any]:
    """Call a portable program inside of the module being written.

    Its functions are added once for each `owner` (any object) and types of operands. A
    program with symbolic sizes gets those of the operands.
    """
    context = ctx.module_context
    types = [operand.type for operand in operands]
    key = (id(owner), name, *map(str, types))
    if key not in context.functions:
        source = portable_artifacts.from_bytes(program)
        # Its functions of LAPACK may not be loaded in this process yet.
        lapack.load_for(portable_artifacts.custom_call_targets(source))
        wanted = list(_main_of(source).type.inputs)
        if wanted != types and all(map(_is_static, types)):
            source = hlo_parts.parse(_refined(program, list(map(str, types))))
        function = portable_artifacts.take_functions(
            source, context.symbols, context.module, lowering.sanitize_name(name)
        )
        context.functions[key] = (function, owner)
    function = context.functions[key][0]
    given = _converted(operands, function.type.inputs)
    target = hlo.ir.FlatSymbolRefAttr.get(function.name.value)
    results = hlo.func.CallOp(function.type.results, target, given).results
    return _converted(results, [ctx.result_type(i) for i in range(len(results))])


def _refined(program: bytes, types: Sequence[str]) -> bytes:
    """A program with symbolic sizes as one for arguments of given types.

    Its assertions hold then: a false one raises ValueError.
    """
    with hlo.make_context(), hlo.ir.Location.unknown():
        module = portable_artifacts.from_bytes(program)
        inner = _main_of(module)
        known = list(map(hlo.ir.Type.parse, types))
        main = _main_around(module, inner, "_symbolic_main", known, inner.type.results)
        with hlo.ir.InsertionPoint(main.add_entry_block()):
            given = _converted(main.arguments, inner.type.inputs)
            target = hlo.ir.FlatSymbolRefAttr.get("_symbolic_main")
            results = hlo.func.CallOp(inner.type.results, target, given).results
            hlo.func.ReturnOp(list(results))
        return portable_artifacts.refined(module)


def _main_around(
    module: Any, inner: Any, name: str, inputs: Sequence[Any], results: Sequence[Any]
) -> Any:
    """A new `main`, still empty; the old one, `inner`, gets a name and is private."""
    hlo.ir.SymbolTable.set_symbol_name(inner, name)
    hlo.ir.SymbolTable.set_visibility(inner, "private")
    return hlo.func.FuncOp(
        "main",
        hlo.ir.FunctionType.get(inputs, results),
        visibility="public",
        ip=hlo.ir.InsertionPoint.at_block_begin(module.body),
    )


def _converted(values: Sequence[Any], types: Sequence[Any]) -> list[Any]:
    """Values as ones of types in which more or fewer sizes are known."""
    return [
        value if value.type == wanted else hlo.stablehlo.convert(wanted, value)
        for value, wanted in zip(values, types, strict=True)
    ]


def _is_static(kind: Any) -> bool:
    return hlo.ir.RankedTensorType(kind).has_static_shape


def _main_of(module: Any) -> Any:
    return hlo.ir.SymbolTable(module.operation)["main"]
