"""Real JAX's jaxprs, read into minijax's own classes, so that the views take them.

Nothing of JAX is imported: its objects are recognised by the module of their class, and
read through the attributes that both libraries have. Equations keep their tracebacks,
which both libraries take from jaxlib, and so their source lines.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from minijax.core.jit import UNSPECIFIED
from minijax.core.language import (
    AbstractValue,
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Primitive,
    ShapedArray,
    Var,
    all_primitives,
)
from minijax.core.source_info import NameStack, SourceInfo
from minijax.extend.core import primitives  # noqa: F401  now all are in the table
from minijax.support import user_source
from minijax.values.ref_avals import AbstractRef


def is_of_jax(value: Any) -> bool:
    """Whether a value's class is JAX's."""
    return type(value).__module__.partition(".")[0] == "jax"


def is_jaxpr(value: Any) -> bool:
    """Whether a value is a jaxpr of JAX, closed or not."""
    return is_of_jax(value) and type(value).__name__ in ("ClosedJaxpr", "Jaxpr")


class ForeignType(AbstractValue):
    """A type that minijax has no class for; it is printed as JAX prints it."""

    def __init__(self, text: str):
        self.text = text

    def str_short(self, short_dtypes: bool = False) -> str:
        return self.text


def as_own(value: Any) -> ClosedJaxpr | Jaxpr:
    """A jaxpr of JAX as one of minijax: same text, same source lines.

    It is for looking at: primitives that minijax does not have cannot be run.
    """
    leave_out_jax_frames()
    reader = _Reader()
    if type(value).__name__ == "ClosedJaxpr":
        return reader.closed(value)
    return reader.jaxpr(value)


_left_out: set[str] = set()


def leave_out_jax_frames() -> None:
    """Count the files of JAX, which is loaded, as a library and not as the user's."""
    library = sys.modules.get("jax")
    file = getattr(library, "__file__", None)
    if file is not None and file not in _left_out:
        _left_out.add(file)
        user_source.register_exclusion(os.path.dirname(file) + os.sep)


class _Reader:
    """Reads programs; a program that occurs twice is read once, as it is printed."""

    def __init__(self) -> None:
        self.programs: dict[int, Any] = {}

    def closed(self, closed: Any) -> ClosedJaxpr:
        known = self.programs.get(id(closed))
        if known is None:
            known = ClosedJaxpr(self.jaxpr(closed.jaxpr), closed.consts)
            self.programs[id(closed)] = known
        return known

    def jaxpr(self, jaxpr: Any) -> Jaxpr:
        known = self.programs.get(id(jaxpr))
        if known is not None:
            return known
        variables: dict[int, Var] = {}

        def new(var: Any) -> Var:
            kind = DropVar if type(var).__name__ == "DropVar" else Var
            own = variables[id(var)] = kind(aval(var.aval))
            return own

        def read(atom: Any) -> Any:
            if type(atom).__name__ == "Literal":
                return Literal(atom.val, aval(atom.aval))
            return variables[id(atom)]

        constvars = [new(var) for var in jaxpr.constvars]
        invars = [new(var) for var in jaxpr.invars]
        eqns = []
        for eqn in jaxpr.eqns:
            inputs = [read(atom) for atom in eqn.invars]
            params = {name: self.value(v) for name, v in eqn.params.items()}
            own = JaxprEqn(
                inputs,
                [new(var) for var in eqn.outvars],
                primitive(eqn.primitive),
                params,
                frozenset(),
                SourceInfo(eqn.source_info.traceback, NameStack()),
            )
            eqns.append(own)
        outvars = [read(atom) for atom in jaxpr.outvars]
        name = getattr(jaxpr.debug_info, "func_name", None) or "function"
        names = tuple(map(str, getattr(jaxpr.debug_info, "arg_names", None) or ()))
        debug_info = DebugInfo("jit", name, names=names)
        result = Jaxpr(constvars, invars, outvars, eqns, frozenset(), debug_info)
        self.programs[id(jaxpr)] = result
        return result

    def value(self, value: Any) -> Any:
        """A parameter, with the programs in it read."""
        if type(value).__name__ == "UnspecifiedValue":
            return UNSPECIFIED
        if is_jaxpr(value):
            closed = type(value).__name__ == "ClosedJaxpr"
            return self.closed(value) if closed else self.jaxpr(value)
        if type(value) in (tuple, list):
            return tuple(self.value(item) for item in value)
        return value


def aval(foreign: Any) -> AbstractValue:
    """A type of JAX as minijax's; one that minijax lacks keeps its text."""
    name = type(foreign).__name__
    if name == "AbstractRef" and hasattr(foreign, "inner_aval"):
        inner = aval(foreign.inner_aval)
        if isinstance(inner, ShapedArray):
            return AbstractRef(inner)
    try:
        if name == "ShapedArray":
            return ShapedArray(foreign.shape, foreign.dtype, foreign.weak_type)
    except (TypeError, ValueError):
        pass
    return ForeignType(foreign.str_short(short_dtypes=True))


_primitives: dict[str, Primitive] = {}


def primitive(foreign: Any) -> Primitive:
    """minijax's primitive of the same name, or one that knows only its name."""
    own = all_primitives.get(foreign.name) or _primitives.get(foreign.name)
    if own is None:
        own = Primitive(foreign.name, foreign.multiple_results)
        _primitives[foreign.name] = own
    return own
