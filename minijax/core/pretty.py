"""Printing programs as JAX prints them.

Variables get the names a, b, c, ... in the order in which they are printed. An input or
output of a program inside an equation is named like the outer variable it corresponds
to, if that name is free. Programs that are used twice, or have more than ten equations,
are printed first, in a `let`, under the name of their function.

`values/print_options.py` prints with colours, source lines and the like.

In JAX: `core.py`, `pp_jaxpr` and its neighbours.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .events import add_methods
from .language import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    jaxprs_in_params,
)
from .runtime import pretty_printer as pp

# A nested program with more equations than this moves into `let`.
_MAX_INLINE_EQNS = 10
_WIDTH = 80


def jaxpr_text(jaxpr: Jaxpr) -> str:
    """JAX's text of a program."""
    return formatted(Printer(jaxpr).document(jaxpr))


def eqn_text(eqn: JaxprEqn) -> str:
    """JAX's text of one equation."""
    return formatted(Printer().equation(eqn))


def formatted(document: Any, width: int = _WIDTH, **options: Any) -> str:
    """A document of jaxlib's pretty printer as text of at most `width` columns."""
    settings: dict[str, Any] = {
        "use_color": False,
        "output_format": pp.OutputFormat.TEXT,
        "separable_lines": False,
        "annotation_prefix": " # ",
        "source_map": None,
    }
    return document._format(width, **settings | options)


def join(separator: Any, documents: Sequence[Any]) -> Any:
    """Documents in a row, with `separator` between them."""
    parts: list[Any] = []
    for document in documents:
        parts += [separator, document] if parts else [document]
    return pp.concat(parts)


def shared_jaxprs(jaxpr: Jaxpr) -> dict[Jaxpr, str]:
    """The nested programs that are printed in `let`, with their names."""
    names: dict[Jaxpr, str] = {}
    counts: Counter[Jaxpr] = Counter()
    queue = deque([jaxpr])
    while queue:
        current = queue.popleft()
        counts[current] += 1
        if current is not jaxpr and len(current.eqns) > _MAX_INLINE_EQNS:
            counts[current] += 1
        for eqn in current.eqns:
            name = eqn.params.get("name")
            for inner in jaxprs_in_params(eqn.params):
                queue.append(inner)
                if name is not None:
                    names.setdefault(inner, str(name).strip("<>"))
    shared: dict[Jaxpr, str] = {}
    used: Counter[str] = Counter()
    for inner, count in counts.items():
        if count == 1:
            continue
        base = name = names.get(inner, "jaxpr")
        if used[base]:
            name = f"{base}{used[base]}"
            used[base] += 1
        used[name] += 1
        shared[inner] = name
    return shared


def unused_vars(jaxpr: Jaxpr) -> Iterator[Var]:
    """The variables that are not used, which are printed `_`.

    Unused variables of inner programs keep names, except when tied to an outer `_`.
    """
    read = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    for eqn in reversed(jaxpr.eqns):
        yield from (v for v in eqn.outvars if v not in read)
        read.update(v for v in eqn.invars if not isinstance(v, Literal))


class Printer:
    """Makes the documents of one program; it holds the names given so far.

    The methods `keyword`, `type_after`, `variable`, `line`, `notes`, `ending` and
    `grouped` format details; a printer with options overrides them.

    In JAX: `core.py`, `JaxprPpContext`.
    """

    def __init__(self, jaxpr: Jaxpr | None = None):
        self.names: dict[Var, str] = {}
        self.shared: dict[Jaxpr, str] = {}
        if jaxpr is not None:
            self.names = dict.fromkeys(unused_vars(jaxpr), "_")
            self.shared = shared_jaxprs(jaxpr)
        self._fresh = self._fresh_names()

    # Names.

    def _fresh_names(self) -> Iterator[str]:
        taken = self.shared.values()
        for length in itertools.count(1):
            for letters in itertools.product(
                "abcdefghijklmnopqrstuvwxyz", repeat=length
            ):
                name = "".join(letters)
                # Two-letter names begin at "ba": they count on in base 26.
                if length > 1 and name[0] == "a":
                    continue
                if name not in taken:
                    yield name

    def name_of(self, var: Var) -> str:
        if isinstance(var, DropVar):
            return "_"
        name = self.names.get(var)
        if name is None:
            name = self.names[var] = next(self._fresh)
        return name

    def suggest_names(self, inner: Sequence[Atom], outer: Sequence[Atom]) -> None:
        """Name inner variables as the outer variables that correspond to them."""
        used: set[Var] = set()
        if len(inner) != len(outer):
            return
        for inner_atom, outer_atom in zip(inner, outer):
            if isinstance(inner_atom, Literal) or isinstance(outer_atom, Literal):
                continue
            if outer_atom in used or inner_atom in self.names:
                continue
            used.add(outer_atom)
            self.names[inner_atom] = self.name_of(outer_atom)

    # Details.

    def keyword(self, text: str) -> Any:
        return pp.text(text)

    def type_after(self, atom: Atom) -> Any:
        """The type after a variable that is bound: `:f32[3]`."""
        return pp.text(":" + atom.aval.str_short(short_dtypes=True))

    def variable(self, var: Var) -> Any:
        return pp.text(self.name_of(var))

    def line(self, document: Any, eqn: JaxprEqn) -> Any:
        """The document of an equation as one line of its program."""
        return document

    def notes(self, eqn: JaxprEqn) -> tuple[str | None, str | None]:
        """Comments at the equals sign and at the primitive's name."""
        return None, None

    def ending(self, jaxpr: Jaxpr) -> Any:
        """What is printed after the outputs."""
        return pp.nil()

    def grouped(self, document: Any, programs: Sequence[Jaxpr]) -> Any:
        """A document on one line if it fits; `programs` are inside it."""
        return pp.group(document)

    def rule_of(self, eqn: JaxprEqn) -> Any:
        """The rule for printing an equation, if its primitive has one."""
        return eqn.primitive.pretty

    # Variables, parameters, equations, programs.

    def atoms(self, atoms: Sequence[Atom], *, types: bool = False, comma: str = ""):
        documents = []
        for atom in atoms:
            if isinstance(atom, Literal):
                document = pp.text(_literal_text(atom))
            else:
                document = self.variable(atom)
            if types:
                document = pp.concat([document, self.type_after(atom)])
            documents.append(document)
        between = pp.concat([pp.text(comma), pp.group(pp.brk())])
        return pp.nest(2, pp.group(join(between, documents)))

    def _param(self, name: str, value: Any):
        if type(value) is tuple and all(
            isinstance(item, (Jaxpr, ClosedJaxpr)) for item in value
        ):
            inner = join(pp.brk(), [self.program(item) for item in value])
            body = pp.nest(2, pp.concat([pp.text("("), pp.brk(""), inner]))
            document = pp.group(pp.concat([body, pp.brk(""), pp.text(")")]))
        elif isinstance(value, (Jaxpr, ClosedJaxpr)):
            document = self.program(value)
        else:
            document = pp.text(_value_text(value))
        return pp.concat([pp.text(f"{name}="), document])

    def _params(self, pairs: Sequence[tuple[str, Any]]):
        if not pairs:
            return pp.nil()
        inner = join(pp.brk(), [self._param(name, value) for name, value in pairs])
        body = pp.nest(2, pp.concat([pp.text("["), pp.brk(""), inner]))
        document = pp.concat([body, pp.brk(""), pp.text("]")])
        return self.grouped(document, list(jaxprs_in_params(dict(pairs))))

    def equation(self, eqn: JaxprEqn):
        """One equation: `b:f32[] = sin a`."""
        rule = self.rule_of(eqn)
        if hasattr(rule, "document"):
            return rule.document(eqn, self)
        params = dict(eqn.params) if rule is None else rule(eqn.params)
        leading = getattr(rule, "leading", ())
        rest = sorted(name for name in params if name not in leading)
        pairs = [(name, params[name]) for name in (*leading, *rest)]
        if getattr(eqn.primitive.pretty, "borrows_names", False):
            for inner in jaxprs_in_params(eqn.params):
                if inner not in self.shared:
                    self.suggest_names(inner.invars, eqn.invars)
                    self.suggest_names(inner.outvars, eqn.outvars)
        at_equals, at_name = self.notes(eqn)
        left = self.atoms(eqn.outvars, types=True)
        right = [
            pp.text(eqn.primitive.name, annotation=at_name),
            self._params(pairs),
            pp.text(" "),
            self.atoms(eqn.invars),
        ]
        if not eqn.outvars:
            return pp.concat(right)
        return pp.concat([left, pp.text(" = ", annotation=at_equals), *right])

    def program(self, program: Jaxpr | ClosedJaxpr):
        """A nested program: its name if it is in a `let`, else the whole of it."""
        jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
        name = self.shared.get(jaxpr)
        return self._whole(jaxpr) if name is None else pp.text(name)

    def _whole(self, jaxpr: Jaxpr):
        constvars = self.atoms(jaxpr.constvars, types=True)
        invars = self.atoms(jaxpr.invars, types=True)
        lines = [self.line(self.equation(eqn), eqn) for eqn in jaxpr.eqns]
        closing = ")" if len(jaxpr.outvars) != 1 else ",)"
        outvars = self.atoms(jaxpr.outvars, comma=",")
        inside = [
            *(pp.text("{ "), self.keyword("lambda "), constvars, pp.text("; "), invars),
            *(pp.text(". "), self.keyword("let")),
            pp.nest(2, pp.concat([pp.brk(), join(pp.brk("; "), lines)])),
            *(pp.brk(), self.keyword("in ")),
            *(pp.text("("), outvars, pp.text(closing), self.ending(jaxpr)),
        ]
        body = pp.concat([pp.nest(2, pp.concat(inside)), pp.text(" }")])
        return self.grouped(body, [jaxpr])

    def document(self, jaxpr: Jaxpr):
        """The whole program, with the `let`s before it."""
        parts = []
        for inner, name in self.shared.items():
            parts += [pp.text(f"let {name} = "), self._whole(inner)]
            parts += [pp.text(" in"), pp.brk()]
        # The outermost program is printed whole, even if an equation carries it too.
        return pp.concat([*parts, self._whole(jaxpr)])


def _literal_text(literal: Literal) -> str:
    value = "[...]" if np.shape(literal.val) else np.asarray(literal.val).item()
    return f"{value}:{literal.aval.str_short(short_dtypes=True)}"


def _value_text(value: Any) -> str:
    if isinstance(value, frozenset):
        return f"frozenset({{{', '.join(repr(item) for item in sorted(value))}}})"
    # Addresses differ from run to run.
    return re.sub(r"(?<= at 0x)[0-9a-fA-F]+", lambda m: "X" * len(m[0]), str(value))


# ----------------------------------------------------------------------------------
# How primitives print their equations
# ----------------------------------------------------------------------------------


def printed_first(*names: str) -> Callable[[Callable], Callable]:
    """Decorator of a `pretty` rule: these parameters come before the others."""

    def mark(rule: Callable) -> Callable:
        rule.leading = names  # type: ignore[attr-defined]
        return rule

    return mark


def borrows_names(rule: Callable) -> Callable:
    """Decorator of a `pretty` rule: the inner program uses outer variables' names."""
    rule.borrows_names = True  # type: ignore[attr-defined]
    return rule


# Programs and equations print themselves as JAX prints them.
add_methods(Jaxpr, {"__repr__": jaxpr_text})
add_methods(ClosedJaxpr, {"__repr__": lambda self: jaxpr_text(self.jaxpr)})
add_methods(JaxprEqn, {"__repr__": eqn_text})
