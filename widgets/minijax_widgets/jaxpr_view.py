"""`see.jaxpr`: the printed jaxpr, each variable linked to its definition and uses.

The left column is the printer's text, letter for letter. The right one gives, for each
equation, the user's line and what the primitive does. Hovering a variable marks where
it is defined and used; the arrow keys go from equation to equation.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from minijax.core import ClosedJaxpr, Jaxpr
from minijax.explain.jaxpr import (
    Equation,
    JaxprRecording,
    Line,
    Piece,
    record_jaxpr,
)
from minijax_widgets.style import CODE, LIGHT, PALETTE, TEXT, style_sheet
from minijax_widgets.view import View

WIDTH = 100
ROWS_IN_TWIN = 12
LAST_ROWS_IN_TWIN = 5
# A browser shows this many rows without delay; beyond, the text has the whole.
ROWS_IN_PAGE = 2_000
# Inline: a notebook that is not trusted keeps nothing else, and has its own colours.
CELL = (
    "border:0;text-align:left;vertical-align:top;white-space:pre;line-height:20px;"
    f"background:{LIGHT['base']};color:{LIGHT['text']}"
)


def jaxpr(
    function: Callable[..., Any] | ClosedJaxpr | Jaxpr, *args: Any, **kwargs: Any
) -> JaxprView:
    """Shows a jaxpr, or that of `function` traced on the given arguments.

    `args` and `kwargs` are the function's own; arrays and `ShapeDtypeStruct`s serve
    alike, since only shapes and types are looked at. Raises TypeError for arguments
    beside a jaxpr, and what tracing raises.
    """
    if isinstance(function, (ClosedJaxpr, Jaxpr)):
        if args or kwargs:
            raise TypeError(
                "see.jaxpr got a jaxpr and arguments; a jaxpr is traced already, so "
                "pass it alone, or pass the function with its arguments."
            )
        return JaxprView(record_jaxpr(function))
    from minijax.api import make_jaxpr

    return JaxprView(record_jaxpr(make_jaxpr(function)(*args, **kwargs)))


class JaxprView(View):
    """A jaxpr as a table in a notebook, as rows of text in a terminal."""

    recording: JaxprRecording

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline and one row for each equation, at most 100 columns."""
        record = self.recording
        rows = [self.row(equation) for equation in record.equations]
        if not full and len(rows) > ROWS_IN_TWIN + LAST_ROWS_IN_TWIN:
            hidden = len(rows) - ROWS_IN_TWIN - LAST_ROWS_IN_TWIN
            note = f"  ... {hidden:,} more: print(v.text(full=True))"
            rows = [*rows[:ROWS_IN_TWIN], note, *rows[-LAST_ROWS_IN_TWIN:]]
        return "\n".join([record.headline, *rows])

    def row(self, equation: Equation) -> str:
        """Returns one equation's row of the text twin."""
        mark = ">" if equation.id == self.recording.telling else " "
        left = f"{mark} {'  ' * self.depth(equation)}{self.short(equation)}"
        line = str(equation.span.line) if equation.span else ""
        words = cut(equation.meaning, 26)
        uses = self.uses_in_words(equation)
        return cut(f"{cut(left, 46):46} {line:>3}  {words:26} {uses}".rstrip(), WIDTH)

    def depth(self, equation: Equation) -> int:
        """Returns how many programs an equation stands inside of."""
        depth = 0
        while equation.parent is not None:
            depth += 1
            equation = self.recording.equations[equation.parent]
        return depth

    def name(self, operand: int | str) -> str:
        """Returns an operand as printed: a variable's name or a literal."""
        if isinstance(operand, int):
            return self.recording.variables[operand].name or "?"
        return operand

    def short(self, equation: Equation) -> str:
        """Returns an equation with its parameters cut short."""
        variables = self.recording.variables
        results = " ".join(
            f"{variables[r].name}:{variables[r].type}" for r in equation.results
        )
        # A called program's name tells most; the rest stand in the printed order.
        printed = sorted(equation.printed, key=lambda name: name != "name")
        parameters = [f"{name}={equation.parameters[name]}" for name in printed]
        told = ""
        if parameters:
            told = f"[{parameters[0]}{' ...' if len(parameters) > 1 else ''}]"
        operands = " ".join(self.name(operand) for operand in equation.operands)
        return f"{results or '_'} = {equation.primitive}{told} {operands}"

    def uses_in_words(self, equation: Equation) -> str:
        """Returns who reads an equation's results, by the names of what they make."""
        record = self.recording
        readers: list[str] = []
        returned = False
        for result in equation.results:
            returned = returned or record.variables[result].returned
            for use in record.variables[result].uses:
                made = record.equations[use].results
                name = self.name(made[0]) if made else record.equations[use].primitive
                if name not in readers:
                    readers.append(name)
        said = [f"used by {', '.join(readers)}"] if readers else []
        if returned:
            said.append("returned")
        return "; ".join(said) or "not used"

    # ---- HTML ----------------------------------------------------------------------

    def to_html(self) -> str:
        """Returns the view as one self-contained `<div>`; user text is escaped."""
        record = self.recording
        rows = "".join(self.html_row(line) for line in record.lines[:ROWS_IN_PAGE])
        if len(record.lines) > ROWS_IN_PAGE:
            hidden = len(record.lines) - ROWS_IN_PAGE
            note = f"... {hidden:,} more lines: print(v.text(full=True))"
            rows += f'<tr><td colspan="4" style="{CELL};padding:0 8px">{note}</td></tr>'
        box = (
            f"background:{LIGHT['base']};color:{LIGHT['text']};padding:8px 12px;"
            f"border-radius:4px;font:13px/20px {TEXT}"
        )
        detail = (
            f"min-height:20px;margin-top:8px;padding:4px 8px;border-left:3px solid "
            f"{LIGHT['line']};background:{LIGHT['panel']}"
        )
        return (
            '<div class="minijax-view">'
            f"{style_sheet()}"
            f'<div class="mj-box" tabindex="0" role="group" style="{box}" '
            'aria-label="jaxpr; up and down arrows step through its equations">'
            f'<div style="font-size:15px;line-height:22px;font-weight:600;'
            f'margin-bottom:8px">{escape(record.headline)}</div>'
            '<div style="overflow-x:auto">'
            '<table style="border-collapse:collapse;border:0;margin:0;'
            f'font:13px/20px {CODE}"><tbody>{rows}</tbody></table></div>'
            f'<div class="mj-detail" aria-live="polite" style="{detail}">'
            f"{escape(self.detail(record.telling))}</div>"
            f"</div>{SCRIPT}</div>"
        )

    def html_row(self, line: Line) -> str:
        """Returns one printed line, with its rail, as a table row."""
        code = "".join(self.html_piece(piece) for piece in line.pieces)
        if line.equation is None:
            # A line of the frame may be long; it must not push the rail away.
            return (
                f'<tr class="mj-row" style="border:0"><td class="mj-code" colspan="4" '
                f'style="{CELL};padding:0 8px">{code}</td></tr>'
            )
        equation = self.recording.equations[line.equation]
        rail = ["", "", ""]
        if self.opens(line, equation):
            if equation.span is not None:
                rail[0] = str(equation.span.line)
                rail[1] = cut(equation.span.text, 32)
            rail[2] = equation.meaning
        selected = equation.id == self.recording.telling
        names = "mj-row mj-on" if selected else "mj-row"
        ground = f"background:{LIGHT['panel' if selected else 'base']}"
        ink = f"color:{PALETTE['constant'][0]}"
        detail = escape(self.detail(equation.id), quote=True)
        return (
            f'<tr class="{names}" data-e="{equation.id}" data-d="{detail}" '
            f'style="border:0;{ground}">'
            f'<td class="mj-code" style="{CELL};padding:0 24px 0 8px;{ground}">'
            f"{code}</td>"
            + "".join(
                f'<td class="mj-rail" style="{CELL};padding:0 16px 0 0;{ink};{ground}">'
                f"{escape(text)}</td>"
                for text in rail
            )
            + "</tr>"
        )

    def opens(self, line: Line, equation: Equation) -> bool:
        """Says whether `line` is the one that defines the equation's results."""
        if not equation.results:
            return True
        return any(p.defines and p.variable in equation.results for p in line.pieces)

    def html_piece(self, piece: Piece) -> str:
        """Returns a part of a line; a variable is a span that knows its id."""
        text = escape(piece.text)
        if piece.variable is None:
            return text
        variable = self.recording.variables[piece.variable]
        role, name = "value", "v"
        if variable.role != "value":
            role, name = "constant", "c"
        elif variable.returned:
            role, name = "result", "r"
        classes = f"mj-n mj-{name}" + (" mj-d" if piece.defines else "")
        title = escape(f"{variable.name}: {variable.type}", quote=True)
        return (
            f'<span class="{classes}" data-v="{piece.variable}" title="{title}" '
            f'style="color:{PALETTE[role][0]};font-weight:600">{text}</span>'
        )

    def detail(self, number: int | None) -> str:
        """Returns all that is known about an equation, in one line."""
        if number is None:
            return "This program has no equations."
        equation = self.recording.equations[number]
        parts = [self.short(equation)]
        if equation.meaning:
            parts.append(equation.meaning)
        if equation.span is not None:
            span = equation.span
            parts.append(f"{span.file}, line {span.line}: {span.text}")
        parts.append(self.uses_in_words(equation))
        return "  |  ".join(parts)


def cut(text: str, width: int) -> str:
    """Returns `text`, or its beginning and three dots, in at most `width` columns."""
    return text if len(text) <= width else text[: width - 3] + "..."


# Runs once for each view on the page. Keys without modifiers stay inside the view, so
# that a notebook does not act on them; Escape gives the focus back.
SCRIPT = """<script>(function(){
document.querySelectorAll('.minijax-view:not([data-live])').forEach(function(root){
root.setAttribute('data-live','');
var box=root.querySelector('.mj-box'),detail=root.querySelector('.mj-detail');
if(!box)return;
var rows=[].slice.call(root.querySelectorAll('tr[data-e]'));
function select(row){if(!row)return;
var number=row.getAttribute('data-e');
rows.forEach(function(other){
other.classList.toggle('mj-on',other.getAttribute('data-e')===number);
other.style.background='';[].forEach.call(other.cells,
function(cell){cell.style.background='';});});
detail.textContent=row.getAttribute('data-d');
row.scrollIntoView({block:'nearest',inline:'start'});}
function mark(number){
root.querySelectorAll('.mj-def,.mj-use').forEach(function(name){
name.classList.remove('mj-def','mj-use');});
if(number===null)return;
root.querySelectorAll('[data-v="'+number+'"]').forEach(function(name){
name.classList.add(name.classList.contains('mj-d')?'mj-def':'mj-use');});}
function made(row){var name=row&&row.querySelector('.mj-d');
mark(name?name.getAttribute('data-v'):null);}
function chosen(){return rows.filter(function(row){
return row.classList.contains('mj-on');});}
function step(by){var numbers=[];rows.forEach(function(row){
var n=row.getAttribute('data-e');
if(numbers.indexOf(n)<0)numbers.push(n);});
var on=chosen(),at=on.length?numbers.indexOf(on[0].getAttribute('data-e')):-1;
at=Math.max(0,Math.min(numbers.length-1,at+by));
var row=rows.filter(function(r){return r.getAttribute('data-e')===numbers[at];})[0];
select(row);made(row);}
box.addEventListener('mouseover',function(event){
var name=event.target.closest('[data-v]');
if(name)mark(name.getAttribute('data-v'));else made(chosen()[0]);});
box.addEventListener('mouseleave',function(){made(chosen()[0]);});
box.addEventListener('click',function(event){
var row=event.target.closest('tr[data-e]');if(row){select(row);made(row);}});
box.addEventListener('keydown',function(event){
if(event.ctrlKey||event.metaKey||event.altKey)return;
if(event.shiftKey&&event.key==='Enter')return;
if(event.key==='Escape'){box.blur();return;}
if(event.key==='Tab')return;
event.stopPropagation();
var by={ArrowDown:1,ArrowRight:1,ArrowUp:-1,ArrowLeft:-1,Home:-1e9,End:1e9}[event.key];
if(by){event.preventDefault();step(by);}});
made(chosen()[0]);
});})();</script>"""
