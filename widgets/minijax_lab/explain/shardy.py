"""Shardy's propagation, step by step, in a process of its own.

Shardy can write down which of its steps gave a value a sharding, from which operand
along which mesh axis (`debug-propagation-edge-sharding`), and by which rule of the
operation (`keep-sharding-rules`). Its debugging passes can end a process, so they run
in another one: this module, given a program's StableHLO, prints what it found as JSON.

    python -m minijax_lab.explain.shardy < program.mlir
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from minijax.backend import hlo_parts
from minijax.core import hlo

PASSES = (
    "sdy-lift-inlined-meshes,sdy-apply-sharding-constraints,"
    "sdy-add-data-flow-edges,"
    "sdy-user-priority-propagate{debug-propagation-edge-sharding=true "
    "keep-sharding-rules=true}"
)
SECONDS = 60
SHARDING = re.compile(r"<@\w+, \[([^\]]*)\]")
DIMENSION = re.compile(r"\{([^}]*)\}")
AXIS = re.compile(r'"([^"]+)"(:\(\d+\)\d+)?')
EDGE = re.compile(
    r"step-(\d+)|"
    r'\{"([^"]+)"(?::\(\d+\)\d+)? = ((?:operand|result)-\d+) -> \[([^\]]*)\]\}'
)
RULE = re.compile(r"op_sharding_rule<(.*)>$")
PLACE = re.compile(r'"([^"]+)":(\d+):(\d+)')


def propagate(text: str) -> tuple[dict[str, Any] | None, str]:
    """What Shardy did to a program; None with the reason if it could not be learnt."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    command = [sys.executable, "-m", "minijax_lab.explain.shardy"]
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"Shardy took more than {SECONDS} seconds to tell its steps"
    if done.returncode < 0:
        return None, f"Shardy ended its process with signal {-done.returncode}"
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
        return None, f"Shardy did not tell its steps: {''.join(last)[:200]}"
    return json.loads(done.stdout), ""


class _Reader:
    """Reads a program that was propagated."""

    def __init__(self) -> None:
        self.values: list[dict[str, Any]] = []
        self.operations: list[dict[str, Any]] = []
        self.known: dict[Any, int] = {}

    def value(self, value: Any, name: str, sharding: str) -> int:
        """The number of a value, which is new."""
        number = len(self.values)
        self.known[value] = number
        cuts = SHARDING.search(sharding)
        self.values.append(
            {
                "name": name,
                "type": str(value.type),
                "cuts": None if cuts is None else cuts_of(cuts[0]),
            }
        )
        return number

    def block(self, block: Any, depth: int) -> None:
        """The operations of a block, and of those inside of them."""
        for operation in block.operations:
            self.operation(operation.operation, depth)

    def operation(self, operation: Any, depth: int) -> None:
        attributes = operation.attributes
        manual = operation.name == "sdy.manual_computation"
        title = "out_shardings" if manual else "sdy.sharding"
        sharding = text_of(attributes, title)
        found = [part.group(0) for part in SHARDING.finditer(sharding)]
        results = []
        for position, result in enumerate(operation.results):
            own = found[position] if position < len(found) else ""
            results.append(self.value(result, result.get_name(), own))
        rule = RULE.search(text_of(attributes, "sdy.sharding_rule"))
        location = str(operation.location)
        named = re.match(r'loc\("([^"]*)"\(|"([^"]*)"\(', location)
        self.operations.append(
            {
                "name": operation.name,
                "said": (named[1] or named[2] or "") if named else "",
                "operands": [self.known.get(each, -1) for each in operation.operands],
                "results": results,
                "edges": edges_of(text_of(attributes, "sdy.propagation_edges")),
                "rule": rule[1] if rule else "",
                "places": PLACE.findall(location),
                "depth": depth,
            }
        )
        for region in operation.regions:
            for inner in region.blocks:
                for argument in inner.arguments:
                    if argument not in self.known:
                        self.value(argument, "", "")
                self.block(inner, depth + 1)


def inline_calls(module: Any) -> None:
    """Puts the bodies of called functions in the place of the calls.

    XLA does so before it propagates; jaxlib's own pass for it does not know `func`.
    """
    functions = {}
    for operation in module.body.operations:
        inner = operation.operation
        if inner.name == "func.func":
            functions[inner.attributes["sym_name"].value] = inner
    main = main_of(module)
    # A body may call others, so it is looked through again.
    while calls := [one for one in inside(main) if one.name == "func.call"]:
        for call in calls:
            inline_call(call, functions[call.attributes["callee"].value])


def inside(operation: Any) -> Iterator[Any]:
    """The operations within an operation, at any depth."""
    for region in operation.regions:
        for block in region.blocks:
            for each in list(block.operations):
                yield each.operation
                yield from inside(each.operation)


def inline_call(call: Any, callee: Any) -> None:
    """Replaces a call by the body of the function."""
    body = callee.regions[0].blocks[0]
    known = dict(zip(body.arguments, call.operands, strict=True))
    for operation in body.operations:
        original = operation.operation
        if original.name == "func.return":
            for result, value in zip(call.results, original.operands, strict=True):
                result.replace_all_uses_with(known.get(value, value))
            break
        copy = original.clone(ip=hlo.ir.InsertionPoint(call)).operation
        for each in [copy, *inside(copy)]:
            for position, value in enumerate(each.operands):
                if value in known:
                    each.operands[position] = known[value]
        for old, new in zip(original.results, copy.results, strict=True):
            known[old] = new
    call.erase()


def text_of(attributes: Any, name: str) -> str:
    """An attribute as text; "" if it is not there."""
    return str(attributes[name]) if name in attributes else ""


def cuts_of(text: str) -> list[list[str]]:
    """The axes that cut each dimension, in a sharding's text."""
    inside = text[text.index("[") :]
    return [
        [name + part for name, part in AXIS.findall(dimension)]
        for dimension in DIMENSION.findall(inside)
    ]


def edges_of(text: str) -> list[dict[str, Any]]:
    """The steps in which an operation carried an axis."""
    found = []
    step = 0
    for number, axis, source, targets in EDGE.findall(text):
        if number:
            step = int(number)
            continue
        names = [name.strip() for name in targets.split(",")]
        found.append({"step": step, "axis": axis, "from": source, "to": names})
    return found


def read(text: str) -> dict[str, Any]:
    """A program's values and operations after the propagation."""
    with hlo.make_context():
        module = hlo.ir.Module.parse(text)
        asked = result_shardings(main_of(module))
        inline_calls(module)
        # Its edges on loops are no valid attributes, and are read all the same.
        hlo_parts.run_passes(module, PASSES, verify=False)
        main = main_of(module)
        reader = _Reader()
        block = main.regions[0].blocks[0]
        given = attribute_list(main, "arg_attrs")
        for position, argument in enumerate(block.arguments):
            own = text_of(given[position], "sdy.sharding") if given else ""
            named = re.search(r'"([^"]+)"', str(argument.location))
            name = named[1] if named else ""
            reader.value(argument, name, own)
        arguments = len(reader.values)
        reader.block(block, 0)
        edges = []
        for attributes in attribute_list(main, "res_attrs"):
            edges.append(edges_of(text_of(attributes, "sdy.propagation_edges")))
        return {
            "arguments": arguments,
            "values": reader.values,
            "operations": reader.operations,
            "asked": asked,
            "result_cuts": [
                cuts_of(found[0]) if (found := SHARDING.search(one)) else None
                for one in result_shardings(main)
            ],
            "result_edges": edges,
        }


def main_of(module: Any) -> Any:
    """The function that runs."""
    for operation in module.body.operations:
        inner = operation.operation
        if inner.name == "func.func" and "main" in str(inner.attributes["sym_name"]):
            return inner
    raise ValueError("this program has no function @main")


def attribute_list(function: Any, name: str) -> list[Any]:
    """The attributes of each argument or result of a function."""
    if name not in function.attributes:
        return []
    return list(function.attributes[name])


def result_shardings(function: Any) -> list[str]:
    """The sharding of each result as text; "" where none is given."""
    return [
        text_of(attributes, "sdy.sharding")
        for attributes in attribute_list(function, "res_attrs")
    ]


if __name__ == "__main__":
    print(json.dumps(read(sys.stdin.read())))
