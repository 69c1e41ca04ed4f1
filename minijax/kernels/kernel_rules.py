"""A kernel's equations as MLIR, for the compiler of some machine.

    c:f32[8,128] <- a[...]          %1 = vector.load %a[%c0, %c0]
    d:f32[8,128] = mul c 2.0        %2 = arith.mulf %1, %cst

A rule turns an equation into operations. It is called with a `RuleContext` and the
operands' values. What the machines have in common has one rule (`shared`): arithmetic,
calls, branches, loops. A `Machine` has the others: memory, shapes, products.

In JAX: `pallas/mosaic/lowering.py` and `pallas/triton/lowering.py`, `lower_jaxpr_...`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax.backend.dialects import dialect, message_of
from minijax.core import dtypes, hlo
from minijax.core.language import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.core.partial_eval import trace_to_jaxpr
from minijax.kernels.grid_context import Place
from minijax.support.user_source import summarize

Rule = Callable[..., Any]

# The rules that every machine has, by the primitive's name.
of_all_machines: dict[str, Rule] = {}


def shared(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: every machine has this rule for the primitives with these names."""
    return _entered_in(of_all_machines, names)


def _entered_in(rules: dict[str, Rule], names: Sequence[str]) -> Callable[[Rule], Rule]:
    def decorator(function: Rule) -> Rule:
        for name in names:
            rules[name] = function
        return function

    return decorator


@dataclass(frozen=True, eq=False)
class Machine:
    """A machine that kernels are compiled for.

    Attributes:
      name: as in messages, "a TPU".
      compiler: its compiler, "Mosaic".
      value_type: the MLIR type of a value of a type of the kernel.
      constant: a scalar of a number and a dtype.
      filled: a value of a type with one number everywhere.
      repeated: a value of a type, repeated to a shape: a scalar, or along axes of 1.
      rules: its own rules, by the primitive's name.
    """

    name: str
    compiler: str
    value_type: Callable[[Any], Any]
    constant: Callable[[Any, Any], Any]
    filled: Callable[[Any, Any], Any]
    repeated: Callable[[Any, Any, Sequence[int]], Any]
    rules: dict[str, Rule] = field(default_factory=dict)

    def rule(self, *names: str) -> Callable[[Rule], Rule]:
        """Decorator: this machine's rule of the primitives with these names."""
        return _entered_in(self.rules, names)

    def rule_of(self, name: str) -> Rule | None:
        """The machine's own rule of a primitive, or the one for all machines."""
        return self.rules.get(name) or of_all_machines.get(name)


@dataclass(frozen=True)
class Kernel:
    """What all equations of a kernel share.

    `place` is that of the program which runs, along the axes that the kernel sees.
    """

    machine: Machine
    name: str
    place: Place


@dataclass(frozen=True)
class RuleContext:
    """What a rule may read: the types of operands and results, and the kernel.

    `is_used` says whether a result is used.
    """

    kernel: Kernel
    eqn: JaxprEqn
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    is_used: bool = True

    @property
    def machine(self) -> Machine:
        """The machine that the kernel is compiled for."""
        return self.kernel.machine

    def operands(self, *values: Any) -> list[Any]:
        """The operands repeated to the shape of the result."""
        shape, repeated = self.avals_out[0].shape, self.machine.repeated
        return [
            repeated(value, aval, shape) for value, aval in zip(values, self.avals_in)
        ]

    def lower_fun(self, function: Callable[..., Any], *values: Any) -> Any:
        """The result of a function of arrays, written with other primitives."""
        jaxpr, consts = trace_to_jaxpr(lambda *a: [function(*a)], list(self.avals_in))
        return self.lower(ClosedJaxpr(jaxpr, consts), *values)[0]

    def lower(self, closed: ClosedJaxpr, *values: Any) -> list[Any]:
        """The results of a program in place, among the operations of this one."""
        if closed.consts:
            raise NotImplementedError(
                "a program with constants inside of a kernel; pass them in as inputs."
            )
        return lower_eqns(self.kernel, closed.jaxpr, values)


def kind_of(dtype: Any) -> str:
    """Which of MLIR's operations a dtype has: "float", "int", "uint" or "bool"."""
    if dtypes.issubdtype(dtype, np.floating):
        return "float"
    if dtypes.issubdtype(dtype, np.signedinteger):
        return "int"
    return "bool" if np.dtype(dtype) == np.dtype(bool) else "uint"


def constant_of(kind: Any, value: Any, dtype: Any) -> Any:
    """A constant of an MLIR type: the number `value` of a dtype."""
    number = float(value) if kind_of(dtype) == "float" else int(value)
    return dialect("arith").constant(kind, number)


def lower_eqns(kernel: Kernel, jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Write a program's equations; `values` are its inputs, constants first.

    Raises NotImplementedError, with the user's line, for what has no rule.
    """
    env = dict(zip((*jaxpr.constvars, *jaxpr.invars), values, strict=True))

    def read(atom: Any) -> Any:
        if type(atom) is Literal:
            return kernel.machine.filled(np.asarray(atom.val).item(), atom.aval)
        return env[atom]

    read_later = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is Var}
    read_later.update(v for v in jaxpr.outvars if type(v) is Var)
    for eqn in jaxpr.eqns:
        name, used = eqn.primitive.name, not read_later.isdisjoint(eqn.outvars)
        with hlo.location(eqn.source_info.traceback, name):
            outputs = _lower_eqn(kernel, eqn, [read(v) for v in eqn.invars], used)
        env.update(zip(eqn.outvars, outputs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _lower_eqn(
    kernel: Kernel, eqn: JaxprEqn, inputs: list[Any], is_used: bool
) -> list[Any]:
    machine = kernel.machine
    place = summarize(eqn.source_info)
    refused = f"the kernel {kernel.name!r} cannot be compiled for {machine.name}"
    rule_of_eqn = machine.rule_of(eqn.primitive.name)
    if rule_of_eqn is None:
        raise NotImplementedError(
            f"{refused}: there is no lowering of '{eqn.primitive}' to "
            f"{machine.compiler}, and it is used at {place}. Compute that outside of "
            "the kernel, or write it with other operations."
        )
    avals_in = [v.aval for v in eqn.invars]
    avals_out = [v.aval for v in eqn.outvars]
    context = RuleContext(kernel, eqn, avals_in, avals_out, is_used)
    try:
        outputs = rule_of_eqn(context, *inputs, **eqn.params)
    except NotImplementedError as error:
        message = str(error)
        if message.startswith("the kernel "):
            raise
        raise NotImplementedError(
            f"{refused}, because of '{eqn.primitive}' at {place}: {message}"
        ) from None
    except hlo.ir.MLIRError as error:
        raise NotImplementedError(
            f"{refused}: {machine.compiler} has no such '{eqn.primitive}' as the one "
            f"at {place}. It says: {message_of(error)}"
        ) from None
    return outputs if eqn.primitive.multiple_results else [outputs]


def verify(made: Any, name: str, machine: str, compiler: str, debug: bool) -> None:
    """Refuse a module that MLIR finds wrong; with `debug`, print its text."""
    try:
        made.operation.verify()
    except hlo.ir.MLIRError as error:
        raise NotImplementedError(
            f"the kernel {name!r} cannot be compiled for {machine}. The verifier of "
            f"{compiler}'s module says: {message_of(error)}"
        ) from None
    if debug:
        print(f"\nThe {compiler} module of the pallas_call {name}:")
        print(hlo.module_to_text(made))
