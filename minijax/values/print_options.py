"""Printing programs with options: colours, types, source lines, effects, positions.

It is the printer of `core/pretty.py` with some details overridden, and the method
`pretty_print` of programs.

In JAX: `core.py`, `Jaxpr.pretty_print` and `JaxprPpSettings`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from minijax.core.language import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, Var
from minijax.core.pretty import Printer, formatted
from minijax.core.runtime import pretty_printer as pp
from minijax.core.state import state
from minijax.support.user_source import summarize

_type_color = partial(
    pp.color, intensity=pp.Intensity.NORMAL, foreground=pp.Color.MAGENTA
)
_keyword_color = partial(
    pp.color, intensity=pp.Intensity.BRIGHT, foreground=pp.Color.BLUE
)
_ref_color = partial(pp.color, intensity=pp.Intensity.NORMAL, foreground=pp.Color.GREEN)


@dataclass
class Settings:
    """What to print with the equations, and whether to record their positions.

    With `positions`, every equation gets a line of its own, even of a program that
    would fit on one, and the text knows which variable or equation stands where.
    """

    source_info: bool = False
    print_shapes: bool = True
    custom_pp_eqn_rules: bool = True
    name_stack: bool = False
    print_effects: bool = False
    positions: bool = False


class OptionPrinter(Printer):
    """A printer that follows `Settings`; its documents have colours in them."""

    def __init__(self, jaxpr: Jaxpr, settings: Settings):
        super().__init__(jaxpr)
        self.settings = settings

    def keyword(self, text: str) -> Any:
        return _keyword_color(pp.text(text))

    def type_after(self, atom: Atom) -> Any:
        if not self.settings.print_shapes:
            return pp.nil()
        return _type_color(super().type_after(atom))

    def variable(self, var: Var) -> Any:
        document = super().variable(var)
        return pp.source_map(document, var) if self.settings.positions else document

    def line(self, document: Any, eqn: JaxprEqn) -> Any:
        return pp.source_map(document, eqn) if self.settings.positions else document

    def notes(self, eqn: JaxprEqn) -> tuple[str | None, str | None]:
        shows = self.settings
        place = summarize(eqn.source_info) if shows.source_info else None
        stack = f"[{eqn.source_info.name_stack}]" if shows.name_stack else None
        return place, stack

    def ending(self, jaxpr: Jaxpr) -> Any:
        if not self.settings.print_effects:
            return pp.nil()
        return pp.text(f" : {{ {', '.join(map(str, jaxpr.effects))} }}")

    def grouped(self, document: Any, programs: Sequence[Jaxpr]) -> Any:
        if self.settings.positions and any(p not in self.shared for p in programs):
            return document
        return pp.group(document)

    def rule_of(self, eqn: JaxprEqn) -> Any:
        return eqn.primitive.pretty if self.settings.custom_pp_eqn_rules else None


def pretty_print(
    self: Jaxpr | ClosedJaxpr,
    *,
    source_info: bool = False,
    print_shapes: bool = True,
    custom_pp_eqn_rules: bool = True,
    name_stack: bool = False,
    print_effects: bool = False,
    width: int = 80,
    use_color: bool | None = None,
    annotation_prefix: str = " # ",
    source_map: list[list[tuple[int, int, Any]]] | None = None,
) -> str:
    """The text of the program.

    Args:
      source_info: say at each equation which line of the user's it stands for.
      print_shapes: print the type of each variable where it is bound.
      custom_pp_eqn_rules: print equations by their primitives' own rules; without, all
        in one way, with all parameters.
      name_stack: say at each equation which scopes and transformations it is in.
      print_effects: print the effects behind the outputs.
      width: break lines that are longer, in columns.
      use_color: mark keywords, types and refs with ANSI colours. None: where the text
        is likely to be shown with them, in a terminal or a notebook, unless the flag
        `jax_pprint_use_color` is off.
      annotation_prefix: the text before a source line or name stack.
      source_map: a list that gets, for each line, triples (start column, end column,
        the Var or JaxprEqn that stands there).
    """
    jaxpr = self.jaxpr if isinstance(self, ClosedJaxpr) else self
    settings = Settings(
        source_info,
        print_shapes,
        custom_pp_eqn_rules,
        name_stack,
        print_effects,
        positions=source_map is not None,
    )
    return formatted(
        OptionPrinter(jaxpr, settings).document(jaxpr),
        width,
        use_color=_shows_color() if use_color is None else use_color,
        annotation_prefix=annotation_prefix,
        source_map=source_map,
    )


def _shows_color() -> bool:
    if not state.pprint_use_color:
        return False
    in_notebook = type(sys.stdout).__module__.startswith("ipykernel")
    return in_notebook or sys.stdout.isatty()


def prints_equation(primitive: Primitive) -> Callable[[Callable], Callable]:
    """Decorator of the rule that writes the whole equation of a primitive.

    The rule is called with the equation and the names of variables, and gives the
    equation in pieces: strings (those with the arrow begin with a space), variables and
    literals, lists of outputs, which are printed with their types, and tuples of pieces
    that say which part of a ref is meant.
    """

    def set_rule(rule: Callable) -> Callable:
        primitive.pretty = _WholeEquation(rule)
        return rule

    return set_rule


class _WholeEquation:
    """The `pretty` of a primitive, from a rule that gives the equation in pieces."""

    def __init__(self, rule: Callable[[JaxprEqn, dict[Var, str]], Sequence[Any]]):
        self.rule = rule

    def document(self, eqn: JaxprEqn, printer: Printer) -> Any:
        source_line, _ = printer.notes(eqn)

        def piece_document(piece: Any) -> Any:
            if isinstance(piece, str):
                note = source_line if piece.startswith(" ") else None
                return pp.text(piece, annotation=note)
            if isinstance(piece, tuple):
                return _ref_color(pp.concat(list(map(piece_document, piece))))
            outputs = isinstance(piece, list)
            return printer.atoms(piece if outputs else [piece], types=outputs)

        return pp.concat(list(map(piece_document, self.rule(eqn, printer.names))))
