"""Checking programs: every variable is bound once before its use, every type is right.

The tests check every program after every transformation; with `config.enable_checks`
each program is checked before it is compiled. A program that fails the check shows a
bug in minijax or in a user's rule, never in the traced function.

In JAX: `core.py`, `check_jaxpr`.
"""

from __future__ import annotations

from .effects import of_program, with_inputs
from .errors import JaxprTypeError
from .language import (
    Atom,
    Jaxpr,
    JaxprEqn,
    Literal,
    ShapedArray,
    Var,
    get_aval,
    jaxprs_in_params,
    type_of_application,
    typecompat,
)


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Raise JaxprTypeError, with the equation and the program, if `jaxpr` is wrong.

    Checks: variables are bound once and before use; literals have the types they state;
    each equation has the types and effects that its primitive's type rule gives. The
    same is checked for programs in parameters.
    """
    bound: set[Var] = set()
    for var in (*jaxpr.constvars, *jaxpr.invars):
        _bind(var, bound, jaxpr, "an input")
    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            _check_use(atom, bound, jaxpr, eqn)
        _check_eqn(eqn, jaxpr)
        for var in eqn.outvars:
            _bind(var, bound, jaxpr, f"an output of {eqn.primitive}")
        for inner in jaxprs_in_params(eqn.params):
            check_jaxpr(inner)
    for atom in jaxpr.outvars:
        _check_use(atom, bound, jaxpr, None)
    inputs = [*jaxpr.constvars, *jaxpr.invars]
    missing = of_program(jaxpr.eqns, inputs) - jaxpr.effects
    if missing:
        raise JaxprTypeError(f"the program does not declare its effects {missing}")


def _bind(var: Var, bound: set[Var], jaxpr: Jaxpr, what: str) -> None:
    if var in bound:
        raise JaxprTypeError(f"{what} is bound twice in\n{jaxpr}")
    bound.add(var)


def _check_use(atom: Atom, bound: set[Var], jaxpr: Jaxpr, eqn: JaxprEqn | None) -> None:
    if isinstance(atom, Literal):
        if get_aval(atom.val).shape != atom.aval.shape:
            raise JaxprTypeError(f"the literal {atom} does not have type {atom.aval}")
        return
    if atom not in bound:
        place = f"in the equation {eqn}" if eqn else "among the outputs"
        raise JaxprTypeError(
            f"an unbound variable of type {atom.aval} is used {place} of\n{jaxpr}"
        )


def _check_eqn(eqn: JaxprEqn, jaxpr: Jaxpr) -> None:
    in_avals = tuple(atom.aval for atom in eqn.invars)
    try:
        out, effects = type_of_application(eqn.primitive, in_avals, eqn.params)
    except (TypeError, ValueError) as error:
        raise JaxprTypeError(
            f"the types of the equation {eqn} are wrong: {error}\nin\n{jaxpr}"
        ) from error
    expected = list(out) if eqn.primitive.multiple_results else [out]
    actual = [var.aval for var in eqn.outvars]
    if len(expected) != len(actual):
        raise JaxprTypeError(
            f"the equation {eqn} has {len(actual)} outputs, its primitive "
            f"gives {len(expected)}"
        )
    for index, (wanted, found) in enumerate(zip(expected, actual)):
        if not typecompat(wanted, found):
            raise JaxprTypeError(
                f"output {index} of the equation {eqn} has type {found}, "
                f"but {eqn.primitive} gives {wanted}"
            )
    effects = with_inputs(effects, eqn.invars)
    if not set(effects) <= set(eqn.effects):
        raise JaxprTypeError(
            f"the equation {eqn} has effects {set(effects)} that it does not declare"
        )
    if eqn.primitive.name == "jit":
        _check_call(eqn, eqn.params["jaxpr"].jaxpr)


def _check_call(eqn: JaxprEqn, inner: Jaxpr) -> None:
    """A jit's arguments have the types of its program's inputs."""
    if len(eqn.invars) != len(inner.invars):
        raise JaxprTypeError(
            f"{eqn.primitive} is called with {len(eqn.invars)} arguments, its program "
            f"takes {len(inner.invars)}"
        )
    for index, (atom, var) in enumerate(zip(eqn.invars, inner.invars)):
        if not _same_array_type(atom.aval, var.aval):
            raise JaxprTypeError(
                f"argument {index} of {eqn.primitive} has type {atom.aval}, its "
                f"program takes {var.aval}"
            )


def _same_array_type(a, b) -> bool:
    if isinstance(a, ShapedArray) and isinstance(b, ShapedArray):
        return a.shape == b.shape and a.dtype == b.dtype
    return a is b
