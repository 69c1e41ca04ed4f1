"""Refs in jitted functions: what may be passed, and how a compiled program writes them.

A program with refs is discharged (`transforms/discharge.py`): the refs' contents are
arguments, their last contents results. `StatefulProgram` runs the pure program and puts
the new contents into the refs. Each ref's memory is donated, so that a write inside jit
happens in place.

In JAX: `interpreters/pxla.py`, `_discharge_refs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import errors, signatures, source_info
from minijax.core.events import enter
from minijax.core.language import Atom, ClosedJaxpr, Jaxpr, get_aval
from minijax.core.signatures import Bound, CallSignature
from minijax.primitives.refs.mutable_arrays import Ref
from minijax.values.ref_avals import AbstractRef

# ----------------------------------------------------------------------------------
# Running compiled programs
# ----------------------------------------------------------------------------------


class StatefulProgram:
    """A compiled program that takes and changes refs; called like `dispatch.Program`.

    Where a program takes a ref its buffer is the `Ref` itself.
    """

    def __init__(self, program: Any, closed: ClosedJaxpr, own: Sequence[Ref]):
        self.program = program
        self.num_outputs = len(closed.out_avals)
        self.arg_names = closed.jaxpr.debug_info.arg_names
        self.own = list(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.program, name)

    def __call__(self, buffers: list[Any]) -> list[Any]:
        """Launch, and put the refs' new contents into them."""
        arguments = [*buffers, *self.own]
        refs = [x for x in arguments if type(x) is Ref]
        if len({id(ref) for ref in refs}) < len(refs):
            raise self._given_twice(arguments)
        inputs = [x._array._buffer if type(x) is Ref else x for x in arguments]
        outputs = self.program(inputs)
        for ref, content in zip(refs, outputs[self.num_outputs :], strict=True):
            ref._array = content
        return outputs[: self.num_outputs]

    def _given_twice(self, arguments: Sequence[Any]) -> Exception:
        seen: dict[int, int] = {}
        for position, ref in enumerate(arguments):
            first = seen.setdefault(id(ref), position)
            if type(ref) is Ref and first < position:
                break
        if position < len(self.arg_names):
            return _appeared_twice(
                self.program.name, ref, self.arg_names[first], self.arg_names[position]
            )
        return errors.value_error(
            "only one reference to a mutable array may be passed to a function, but "
            "one ref was given, and closed over too: a write through one name would "
            "change the other."
        )


def _appeared_twice(name: str, ref: Any, first: str, second: str) -> Exception:
    return errors.value_error(
        "only one reference to a mutable array may be passed as an argument to a "
        f"function, but when tracing {name} for jit the mutable array reference of "
        f"type {get_aval(ref).str_short()} appeared at both {first} and {second}.",
        rule="refs have one name",
    )


# ----------------------------------------------------------------------------------
# Refs as arguments, results and constants
# ----------------------------------------------------------------------------------


def _check_argument(signature: CallSignature, bound: Bound, position: int) -> None:
    """ValueError when a ref was already given as an earlier argument."""
    ref = bound.leaves[position]
    for earlier, leaf in enumerate(bound.leaves[:position]):
        if leaf is not ref and not _same_variable(leaf, ref):
            continue
        names = signature.leaf_names(bound)
        raise _appeared_twice(signature.name, ref, names[earlier], names[position])


def _same_variable(x: Any, y: Any) -> bool:
    """Whether two tracers stand for one variable of a program being written."""
    atom = getattr(x, "atom", None)
    return atom is not None and atom is getattr(y, "atom", None)


def _check_program(jaxpr: Jaxpr, consts: Sequence[Any], leaves: Sequence[Any]) -> None:
    """ValueError when a program returns a ref, or closes over one it is given."""
    info = jaxpr.debug_info
    for position, var in enumerate(jaxpr.outvars):
        if type(var.aval) is not AbstractRef:
            continue
        path = info.result_paths[position].removeprefix("result")
        at = f" at output tree path result{path}" if path else ""
        raise errors.value_error(
            f"function {info.func_src_info} traced for {info.traced_for} returned a "
            f"mutable array reference of type {var.aval.str_short()}{at}, but mutable "
            f"array references cannot be returned.{_origin_of_ref(jaxpr, var)} Return "
            "its content, `ref[...]` or `freeze(ref)`."
        )
    refs = {id(const) for const in consts if type(get_aval(const)) is AbstractRef}
    if not refs:
        return
    for position, leaf in enumerate(leaves):
        if id(leaf) in refs:
            raise errors.value_error(
                f"when tracing {info.func_src_info} for {info.traced_for}, a mutable "
                f"array reference of type {get_aval(leaf).str_short()} was both closed "
                f"over and passed as the argument {info.arg_names[position]}."
            )


def _origin_of_ref(jaxpr: Jaxpr, var: Atom) -> str:
    for eqn in jaxpr.eqns:
        if any(var is outvar for outvar in eqn.outvars):
            line = source_info.format_line(eqn.source_info)
            return f"\n\nThe returned mutable array was created on line {line}."
    names = jaxpr.debug_info.arg_names
    if var in jaxpr.invars and jaxpr.invars.index(var) < len(names):
        name = names[jaxpr.invars.index(var)]
        return f"\n\nThe returned mutable array was passed in as the argument {name}."
    return ""


enter(signatures.argument_checks, AbstractRef, _check_argument)
enter(signatures.program_checks, AbstractRef, _check_program)
