"""Printing programs as JAX prints them.

Variables get the names a, b, c, ... in the order in which they are printed. A program
inside an equation borrows the names of the variables outside that it stands for, where
they are free. Programs that are used twice, or have more than ten equations, are
printed first, in a `let`, under the name of their function.

In JAX: `core.py`, `pp_jaxpr` and its neighbours.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax.backend.door import pretty_printer as pp
from minijax.language.core import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    jaxprs_in_params,
)
from minijax.support import source_info

# A nested program with more equations than this moves into `let`.
_MAX_INLINE_EQNS = 10
_WIDTH = 80


@dataclass
class Settings:
    """What to print beside the equations."""

    source_info: bool = False
    print_shapes: bool = True
    name_stack: bool = False
    print_effects: bool = False
    custom_pp_eqn_rules: bool = True


@dataclass
class Context:
    """The names given so far. In JAX: `core.py`, `JaxprPpContext`."""

    names: dict[Var, str] = field(default_factory=dict)
    shared: dict[Jaxpr, str] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    # Whether the text is asked which variable or equation stands where; then every
    # equation gets a line of its own, even of a program that would fit on one.
    marks: bool = False

    def __post_init__(self) -> None:
        self._fresh = self._fresh_names()

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
        """Let inner variables have the names of the outer ones they stand for."""
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


def _join(separator: Any, documents: Sequence[Any]) -> Any:
    parts: list[Any] = []
    for document in documents:
        if parts:
            parts.append(separator)
        parts.append(document)
    return pp.concat(parts)


def _format(document: Any, width: int, source_map: list | None = None) -> str:
    return document._format(
        width,
        use_color=False,
        output_format=pp.OutputFormat.TEXT,
        separable_lines=False,
        annotation_prefix=" # ",
        source_map=source_map,
    )


def atom_text(atom: Atom, context: Context) -> str:
    """A variable's name, or a literal with its type."""
    if isinstance(atom, Literal):
        value = "[...]" if np.shape(atom.val) else str(np.asarray(atom.val).item())
        return f"{value}:{atom.aval.str_short(short_dtypes=True)}"
    return context.name_of(atom)


def _vars(atoms: Sequence[Atom], context: Context, *, types: bool, separator: str = ""):
    documents = []
    for atom in atoms:
        document = pp.text(atom_text(atom, context))
        if context.marks and isinstance(atom, Var):
            document = pp.source_map(document, atom)
        if types:
            text = ":" + atom.aval.str_short(short_dtypes=True)
            document = pp.concat([document, pp.text(text)])
        documents.append(document)
    between = pp.concat([pp.text(separator), pp.group(pp.brk())])
    return pp.nest(2, pp.group(_join(between, documents)))


def _value_text(value: Any) -> str:
    if isinstance(value, frozenset):
        return f"frozenset({{{', '.join(repr(item) for item in sorted(value))}}})"
    # Addresses differ from run to run.
    return re.sub(r" at 0x([0-9a-fA-F]+)", _hide_address, str(value))


def _hide_address(match: re.Match) -> str:
    return " at 0x" + "X" * len(match.group(1))


def _param(name: str, value: Any, context: Context):
    if type(value) is tuple and all(isinstance(v, (Jaxpr, ClosedJaxpr)) for v in value):
        document = _jaxprs(value, context)
    elif isinstance(value, ClosedJaxpr):
        document = jaxpr_document(value.jaxpr, context)
    elif isinstance(value, Jaxpr):
        document = jaxpr_document(value, context)
    else:
        document = pp.text(_value_text(value))
    return pp.concat([pp.text(f"{name}="), document])


def _jaxprs(jaxprs: Sequence[Any], context: Context):
    open_jaxprs = [j.jaxpr if isinstance(j, ClosedJaxpr) else j for j in jaxprs]
    inner = _join(pp.brk(), [jaxpr_document(j, context) for j in open_jaxprs])
    body = pp.nest(2, pp.concat([pp.text("("), pp.brk(""), inner]))
    return pp.group(pp.concat([body, pp.brk(""), pp.text(")")]))


def _params(pairs: Sequence[tuple[str, Any]], context: Context):
    if not pairs:
        return pp.nil()
    inner = _join(pp.brk(), [_param(name, value, context) for name, value in pairs])
    body = pp.nest(2, pp.concat([pp.text("["), pp.brk(""), inner]))
    document = pp.concat([body, pp.brk(""), pp.text("]")])
    # Marked text gives each equation of an inner program a line of its own.
    inner_programs = jaxprs_in_params(dict(pairs))
    if context.marks and any(inner not in context.shared for inner in inner_programs):
        return document
    return pp.group(document)


def eqn_document(eqn: JaxprEqn, context: Context):
    """One equation: `b:f32[] = sin a`."""
    settings = context.settings
    params = dict(eqn.params)
    rule = eqn.primitive.pretty
    leading: tuple[str, ...] = ()
    if getattr(rule, "prints_equation", False) and settings.custom_pp_eqn_rules:
        return _pieces(rule(eqn, context), eqn, context)
    if rule is not None and settings.custom_pp_eqn_rules:
        params = rule(params)
        leading = getattr(rule, "leading", ())
    rest = sorted(name for name in params if name not in leading)
    pairs = [(name, params[name]) for name in (*leading, *rest)]
    if getattr(rule, "borrows_names", False):
        for inner in jaxprs_in_params(eqn.params):
            if inner not in context.shared:
                context.suggest_names(inner.invars, eqn.invars)
                context.suggest_names(inner.outvars, eqn.outvars)
    place = source_info.summarize(eqn.source_info) if settings.source_info else None
    stack = f"[{eqn.source_info.name_stack}]" if settings.name_stack else None
    left = _vars(eqn.outvars, context, types=settings.print_shapes)
    right = [
        pp.text(eqn.primitive.name, annotation=stack),
        _params(pairs, context),
        pp.text(" "),
        _vars(eqn.invars, context, types=False),
    ]
    if not eqn.outvars:
        return pp.concat(right)
    return pp.concat([left, pp.text(" = ", annotation=place), *right])


def _pieces(pieces: Sequence[Any], eqn: JaxprEqn, context: Context):
    """An equation as its primitive writes it: strings, atoms, and lists of outputs."""
    place = None
    if context.settings.source_info:
        place = source_info.summarize(eqn.source_info)
    documents = []
    for piece in pieces:
        if isinstance(piece, str):
            arrow = piece.startswith(" ")
            documents.append(pp.text(piece, annotation=place if arrow else None))
        elif isinstance(piece, list):
            types = context.settings.print_shapes
            documents.append(_vars(piece, context, types=types))
        else:
            documents.append(_vars([piece], context, types=False))
    return pp.concat(documents)


def jaxpr_document(jaxpr: Jaxpr, context: Context):
    """A program: its name if it stands in `let`, or the whole of it."""
    if jaxpr in context.shared:
        return pp.text(context.shared[jaxpr])
    return _skeleton(jaxpr, context)


def _skeleton(jaxpr: Jaxpr, context: Context):
    types = context.settings.print_shapes
    constvars = _vars(jaxpr.constvars, context, types=types)
    invars = _vars(jaxpr.invars, context, types=types)
    documents = [eqn_document(eqn, context) for eqn in jaxpr.eqns]
    if context.marks:
        marked = zip(documents, jaxpr.eqns)
        documents = [pp.source_map(document, eqn) for document, eqn in marked]
    eqns = _join(pp.brk("; "), documents)
    closing = ")" if len(jaxpr.outvars) != 1 else ",)"
    outvars = pp.concat(
        [
            pp.text("("),
            _vars(jaxpr.outvars, context, types=False, separator=","),
            pp.text(closing),
        ]
    )
    effects = pp.nil()
    if context.settings.print_effects:
        listed = ", ".join(str(effect) for effect in jaxpr.effects)
        effects = pp.text(f" : {{ {listed} }}")
    lines = [
        pp.text("{ "),
        pp.text("lambda "),
        constvars,
        pp.text("; "),
        invars,
        pp.text(". "),
        pp.text("let"),
        pp.nest(2, pp.concat([pp.brk(), eqns])),
        pp.brk(),
        pp.text("in "),
        outvars,
        effects,
    ]
    body = pp.concat([pp.nest(2, pp.concat(lines)), pp.text(" }")])
    return body if context.marks else pp.group(body)


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
    """The variables that nothing reads, printed `_`; those of inner programs are named,
    unless they borrow the `_` of the variable outside."""
    read = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    for eqn in reversed(jaxpr.eqns):
        yield from (v for v in eqn.outvars if v not in read)
        read.update(v for v in eqn.invars if not isinstance(v, Literal))


def jaxpr_text(
    jaxpr: Jaxpr,
    *,
    width: int | None = None,
    source_map: list[list[tuple[int, int, Any]]] | None = None,
    **options: Any,
) -> str:
    """JAX's text of a program.

    A list given as `source_map` gets, for each line, triples (start column, end column,
    the Var or JaxprEqn that stands there).
    """
    context = Context(
        {var: "_" for var in unused_vars(jaxpr)},
        shared_jaxprs(jaxpr),
        Settings(**options),
        marks=source_map is not None,
    )
    documents = []
    for inner, name in context.shared.items():
        documents += [pp.text(f"let {name} = "), _skeleton(inner, context)]
        documents += [pp.text(" in"), pp.brk()]
    # The program itself may be one that is used twice, yet it is printed whole.
    documents.append(_skeleton(jaxpr, context))
    return _format(pp.concat(documents), width or _WIDTH, source_map)


def eqn_text(eqn: JaxprEqn, **options: Any) -> str:
    """JAX's text of one equation."""
    context = Context(settings=Settings(**options))
    return _format(eqn_document(eqn, context), _WIDTH)


def printed_first(*names: str) -> Callable[[Callable], Callable]:
    """Decorator of a `pretty` rule: these parameters come before the others."""

    def mark(rule: Callable) -> Callable:
        rule.leading = names  # type: ignore[attr-defined]
        return rule

    return mark


def borrows_names(rule: Callable) -> Callable:
    """Decorator of a `pretty` rule: the inner program takes over outer names."""
    rule.borrows_names = True  # type: ignore[attr-defined]
    return rule


def prints_equation(rule: Callable) -> Callable:
    """Decorator of a `pretty` rule that writes the whole equation.

    It is called as `rule(eqn, context)` and gives the equation in pieces: strings
    (those with the arrow begin with a space), variables and literals, and the list of
    outputs, which are printed with their types.
    """
    rule.prints_equation = True  # type: ignore[attr-defined]
    return rule
