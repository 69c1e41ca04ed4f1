"""`see.grad`: the forward pass down, what it keeps in the middle, the way back up.

The picture is drawn by `grad_scene.py`, over the bands of `grad_bands.py`; the listing
below it has each equation.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Any

from minijax_lab.explain.backward import (
    GradRecording,
    bytes_in_words,
    part_of,
    record_grad,
    sum_in_words,
    where_in_words,
)
from minijax_lab.explain.backward_rows import GradProgram, GradRow, GradSum
from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.residuals import Residual, shown_name
from minijax_widgets.code import CodePanes, code_panes, key_of_line, mark_of
from minijax_widgets.foreign_pane import lost_panes, lost_rows
from minijax_widgets.frame import Frame, FrameStep, Jump, Pane, Piece, Row, scene_pane
from minijax_widgets.grad_bands import Band, bands_of, residual_told
from minijax_widgets.grad_layout import (
    MIDDLE,
    NARROW,
    WIDE,
    Layout,
    Steps,
    path_of,
    residual_key,
    sum_key,
)
from minijax_widgets.grad_scene import Picture
from minijax_widgets.scene import Scene
from minijax_widgets.values_strip import Flow, Strip, reduced
from minijax_widgets.view import WIDTH, View, cut, shortened, shows, with_options

# Residuals in the table; a browser shows as many without delay.
MOST_RESIDUALS = 100
UNREACHED = (
    "No equation is differentiated: give a function that computes its result from its "
    "arguments."
)
# What one step lights; a browser lays out as much within a frame.
MOST_LIT = 24
# So many names of residuals stand in a row.
MOST_NAMED = 6


@with_options
def grad(
    function: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    values: bool | None = None,
    beside: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> GradView:
    """Shows `grad(function, argnums, has_aux)(*args, **kwargs)` as a picture.

    Down the left is the forward pass, in the middle what it keeps (boxes whose area is
    bytes), up the right the transposed equations on the same rows, and where
    cotangents meet and add. The view reads types, so `ShapeDtypeStruct`s serve as well
    as arrays. It also runs both passes of a cheap program, one of at most 200
    equations, four million numbers and thirty million steps of arithmetic (on large
    arrays, 60 different operations). Arrays of at most 32 rows and columns then show
    their numbers, and larger ones the means of blocks. `values=True` runs any program
    and marks the first NaN and the first infinity; `values=False` runs nothing.

    `beside` is another function of the same arguments, drawn next to the first one:

        see.grad(loss, params, x, beside=checkpoint(loss))

    A jaxpr of JAX serves as a function, `see.grad(jax.make_jaxpr(loss)(x))`: minijax
    differentiates it, `argnums` counts its arrays, and the view says what such a jaxpr
    does not carry.

    A function that itself has arguments of these names is passed as a lambda. Raises
    TypeError, naming the argument, for what has no gradient or could be meant for
    either, and what tracing raises.
    """
    options: dict[str, Any] = {"argnums": argnums, "has_aux": has_aux}
    options["values"] = values
    recording = record_grad(function, *args, **options, **kwargs)
    if beside is not None:
        if not callable(beside):
            raise TypeError(
                "see.grad got beside=, which takes a function of the same arguments, "
                f"such as checkpoint(f), and got {type(beside).__name__}."
            )
        other = record_grad(beside, *args, **options, **kwargs)
        # Looking at it finishes a recording; what is set before would be lost.
        assert recording.headline
        recording.beside = other
    return GradView(recording)


@shows("grad")
class GradView(View):
    """The U of the backward pass."""

    recording: GradRecording

    @functools.cached_property
    def bands(self) -> list[Band]:
        """The parts of the picture."""
        return bands_of(self.recording.program, self.recording.sources)

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline and a row for each equation: down, kept, up."""
        record = self.recording
        listed = self.program_rows(record.program, 0)
        parts = [
            *wrap(self.headline(), WIDTH, subsequent_indent="  "),
            self.columns("  down", "kept", "up"),
            *shortened(listed, full),
            self.columns("", "", "ct = 1.0, the way back begins"),
            *self.last_rows(),
            *lost_rows(record.lost),
        ]
        if record.beside is not None:
            parts += ["beside:", GradView(record.beside).text(full)]
        return "\n".join(parts)

    def headline(self) -> str:
        """Returns the headline; of two functions, what they keep."""
        record = self.recording
        if record.beside is None:
            return record.headline
        other = record.beside
        mine, theirs = bytes_in_words(record.bytes), bytes_in_words(other.bytes)
        own, others = (each.program.backward_opened for each in (record, other))
        more = others - own
        again = other.program.again - record.program.again
        text = (
            f"grad of {record.name} keeps {mine}, of the function beside it {theirs}; "
            f"{own:,} and {others:,} backward"
        )
        if again > 0:
            text += f"; {count_in_words(again, 'equation')} more run again"
        elif more and not again:
            text += f", {abs(more):,} {'more' if more > 0 else 'fewer'}"
        return text

    def columns(self, down: str, kept: str, up: str) -> str:
        """Returns one row of the twin, at most 100 columns."""
        return cut(f"{cut(down, 38):38} {cut(kept, 24):24} {up}".rstrip(), WIDTH)

    def program_rows(self, program: GradProgram, depth: int) -> list[str]:
        """Returns the rows of a program and of those inside of it."""
        found = []
        for row in program.rows:
            found.append(self.row(program, row, depth))
            if row.rule:
                indent = "  " * (depth + 2)
                found += wrap(indent + row.rule, WIDTH, subsequent_indent=indent + "  ")
            for inner in row.programs:
                title = f"  {'  ' * depth}  {inner.title}"
                found.append(cut(title, WIDTH))
                found += self.program_rows(inner, depth + 2)
        return found

    def row(self, program: GradProgram, row: GradRow, depth: int) -> str:
        """Returns one equation's row of the twin."""
        bad = next((b for b in self.recording.first if b.row == row.id), None)
        mark = "!" if bad and depth == 0 else " "
        residuals = [program.residuals[number] for number in row.opened]
        kept = "; ".join(map(self.residual_text, residuals))
        up = " ; ".join(back.text for back in row.backward)
        star = f"* {kept}" if kept else ""
        return self.columns(f"{mark} {'  ' * depth}{row.text}", star, up)

    def residual_text(self, residual: Residual) -> str:
        """Returns a residual in the twin: how it is made, or where it comes from."""
        if residual.origin == "argument":
            return f"{residual.name} (argument)"
        if residual.origin != "value":
            return f"{residual.name} ({residual.origin})"
        return residual.name

    def last_rows(self) -> list[str]:
        """Returns the twin's rows about sums, arguments, and what is not finite."""
        record = self.recording
        rows = []
        own = [found for found in record.program.sums if not found.within]
        for number, found in enumerate(own[:6]):
            mark = " " if number else ">"
            rows.append(cut(f"{mark} sum: {self.sum_text(found)}", WIDTH))
        if len(own) > 6:
            rows.append(f"  ... {len(own) - 6:,} more sums")
        within = [found.within for found in record.program.sums if found.within]
        if within:
            rules = ", ".join(dict.fromkeys(within))
            count = count_in_words(len(within), "sum")
            rows.append(cut(f"  {count} more inside of rules: {rules}", WIDTH))
        rows += [
            f"  {a.name} is not used: its gradient is zero"
            for a in record.program.arguments
            if a.zero
        ]
        for bad in record.first:
            told = f"! first {bad.what}: {where_in_words(bad)}"
            rows.append(cut(f"{told}, {bad.count:,} of {bad.size:,} entries", WIDTH))
        return rows

    def sum_text(self, found: GradSum) -> str:
        """Returns a sum in words."""
        rows = self.recording.program.rows
        parts = [rows[number].text for number in dict.fromkeys(found.rows)]
        return (
            f"{found.cotangent} = add_any of {len(found.rows)}, from "
            f"{' and '.join(parts)}"
        )

    # ---- the picture ---------------------------------------------------------------

    def frame(self) -> Frame:
        """Returns the picture, the listing, and what is kept by size."""
        record = self.recording
        sources = code_panes(record.sources, self.spans())
        other = GradView(record.beside) if record.beside is not None else None
        largest = max(self.largest(), other.largest() if other else 0)
        steps, told, telling = self.steps(sources, "", 0)
        flows = self.flows(steps, len(told), telling)
        panes = flows.panes(record.no_values, record.unasked)
        panes.append(self.scene_pane(steps, "", largest, record.call if other else ""))
        if other:
            theirs, more, _ = other.steps(sources, "o", len(told))
            told = [*told, *more]
            panes.append(
                other.scene_pane(theirs, "o", largest, f"beside: {other.called()}")
            )
        if self.bands:
            panes += [self.listing(steps), self.kept_pane(steps)]
        panes += lost_panes(record.lost)
        first = len(panes)
        for pane in sources.panes:
            pane.below = False
        for step in told:
            step.marks = [(first + p, r, a, b) for p, r, a, b in step.marks]
        return self.picture(
            [*panes, *sources.panes],
            told,
            telling,
            jumps=[Jump("r", "what is kept, the largest first", self.keeping(steps))],
            headline=self.headline(),
        )

    def flows(self, steps: Steps, count: int, telling: int) -> Strip:
        """Returns what each step reads and makes, of the arrays that have values.

        The step to show first has what made the first NaN or infinity.
        """
        flows = [Flow()] * count
        inside: dict[str, Flow] = {}
        values, types = self.recording.values, self.types()
        for band in self.bands:
            row, back = band.last, band.cotangent
            if path := path_of(band):
                where = band.program.title or "inner programs"
                inside[path] = Flow(why=f"values inside of {where} are not recorded")
                for turn in (steps.down, steps.up):
                    if band.key in turn:
                        flows[turn[band.key]] = inside[path]
                continue
            made = row.results[:1]
            name = shown_name(row.primitive)
            flows[steps.down[band.key]] = Flow(row.operands, name, made)
            if back is None or band.key not in steps.up:
                continue
            opened = [band.program.residuals[number].name for number in back.opened]
            gives = [f"ct_{name}" for name in back.gives]
            flows[steps.up[band.key]] = Flow(
                [f"ct_{back.name}", *opened],
                f"{shown_name(back.primitive)}\ntransposed",
                gives[:1],
                "cotangent",
            )
        for (path, name), step in steps.sums.items():
            if not path:
                whole = f"ct_{name}"
                every = (part_of(whole, n) for n in itertools.count())
                parts = list(itertools.takewhile(values.__contains__, every))
                flows[step] = Flow(parts, "sum", [whole], "cotangent")
            else:
                flows[step] = inside.get(path, Flow())
        if steps.again is not None:
            flows[-1] = flows[steps.again]
        for bad in self.recording.first[:1]:
            if bad.makes:
                role = "cotangent" if bad.place == "backward" else "value"
                flows[telling] = Flow(bad.reads, bad.primitive, bad.makes[:1], role)
        return Strip(flows, values, types)

    def types(self) -> dict[str, str]:
        """Returns the types of values and of their cotangents, by their names."""
        program = self.recording.program
        types = {a.name: a.type for a in program.arguments}
        types |= {row.name: row.type for row in program.rows}
        types |= {f"ct_{name}": kind for name, kind in types.items()}
        return types | self.recording.types

    def keeping(self, steps: Steps) -> list[int]:
        """Returns the steps that make residuals, the one with the largest first."""
        kept = [
            (residual.bytes * band.times, steps.down[band.key])
            for band in self.bands
            if not band.again
            for residual in band.kept
        ]
        kept.sort(key=lambda pair: (-pair[0], pair[1]))
        return list(dict.fromkeys(step for _, step in kept))

    def called(self) -> str:
        """Returns the call, with the bytes that it keeps."""
        record = self.recording
        return f"{record.call} keeps {bytes_in_words(record.bytes)}"

    def spans(self) -> list[Any]:
        """Returns where the equations of the picture stand in the source."""
        rows = [row for band in self.bands for row in band.rows]
        return [row.span for row in rows if row.span is not None]

    def largest(self) -> int:
        """Returns the bytes of the largest residual."""
        kept = [r.bytes * band.times for band in self.bands for r in band.kept]
        return max(kept, default=1)

    def scene_pane(self, steps: Steps, prefix: str, most: int, title: str) -> Pane:
        """Returns the picture, and that for narrow pages."""
        arguments = self.recording.program.arguments
        types = self.types()
        values = {
            name: rows
            for name, rows in self.recording.values.items()
            if not reduced(types.get(name, ""), rows)
        }

        def draw(layout: Layout) -> Scene:
            made = Picture(self.bands, arguments, steps, layout, prefix, most, values)
            scene = made.scene
            if prefix:
                # What is compared with is there from the first step on.
                for mark in scene.marks:
                    mark.at = 0
            return scene

        return scene_pane(draw, WIDE, NARROW, MIDDLE, title)

    def steps(
        self, sources: CodePanes, prefix: str, start: int
    ) -> tuple[Steps, list[FrameStep], int]:
        """Returns when each band is passed, the steps, and the telling one."""
        found = Steps()
        told: list[FrameStep] = []

        def add(label: str, detail: str, on: list[str], row: GradRow | None) -> int:
            marks = (
                mark_of(sources, row.span, first_pane=0) if row and not prefix else []
            )
            lit = [prefix + key for key in on]
            if row is not None and not prefix:
                lit += key_of_line(row.span)
            told.append(FrameStep(label, detail, lit, marks))
            return start + len(told) - 1

        for band in self.bands:
            on = [f"f{band.key}", f"k{band.key}"]
            on += residual_keys(band, band.kept)
            step = add(f"down: {cut(band.label, 40)}", down_told(band), on, band.last)
            found.down[band.key] = step
        detail = "The result's own cotangent is 1.0: the way back begins here."
        if not self.bands and not prefix:
            detail += f" {UNREACHED}"
        found.turn = add("ct = 1.0", detail, ["turn"], None)
        sums: list[tuple[int, int]] = []  # how deep inside, and the step
        for band in reversed(self.bands):
            if not band.active:
                continue
            on = [f"b{band.key}"]
            on += residual_keys(band, band.opened)
            step = add(f"up: {cut(band.label, 40)}", up_told(band), on, band.cotangent)
            found.up[band.key] = step
            for met in band.sums:
                if met.within:
                    continue
                where = path_of(band)
                on = [sum_key(band, met), f"g{where}/{met.name}"]
                on += [
                    f"b{one.key}"
                    for one in self.bands
                    if path_of(one) == where
                    and any(row.id in met.rows for row in one.rows)
                ]
                step = add(f"sum: {met.cotangent}", sum_told(band, met), on, None)
                found.sums[where, met.name] = step
                sums.append((band.depth, step))
        telling = self.telling(found, sums)
        if telling < start + len(told) - 1:
            # The finished picture, with what tells most.
            found.again = telling
            one = told[telling - start]
            last = FrameStep(one.label, one.detail, one.on, one.marks)
            most = self.most_kept()
            if most and not sums and not self.recording.first:
                band, residual = most
                last.label = f"largest residual: {residual.name}"
                last.detail = residual_told(residual, band.times)
                readers = [
                    f"b{one.key}"
                    for one in self.bands
                    if path_of(one) == path_of(band) and residual in one.opened
                ]
                on = [residual_key(band, residual), f"k{band.key}", *readers]
                last.on = [prefix + key for key in on]
            told.append(last)
            telling = start + len(told) - 1
        for bad in self.recording.first[:1]:
            one = told[telling - start]
            one.look, one.label = "error", f"first {bad.what}: {bad.text}"
            one.detail = (
                f"The first {bad.what}: {where_in_words(bad)}, {bad.count:,} of "
                f"{bad.size:,} entries. What comes after is made of it."
            )
        return found, told, telling

    def telling(self, steps: Steps, sums: list[tuple[int, int]]) -> int:
        """Returns the step to show first: what is not finite, a sum, the largest."""
        for bad in self.recording.first[:1]:
            band = next(
                (
                    band
                    for band in self.bands
                    if band.depth == 0 and any(row.id == bad.row for row in band.rows)
                ),
                None,
            )
            if band is None:
                return 0
            down = bad.place == "forward"
            return steps.down[band.key] if down else steps.up[band.key]
        if sums:
            return min(sums)[1]
        most = self.most_kept()
        if most is None:
            # Nothing tells more than the cotangents of the arguments, which come last.
            return max(steps.up.values(), default=steps.turn)
        return steps.down[most[0].key]

    def most_kept(self) -> tuple[Band, Residual] | None:
        """Returns the largest residual, and where it is made."""
        kept = [(band, r) for band in self.bands if not band.again for r in band.kept]
        return max(kept, key=lambda pair: pair[1].bytes * pair[0].times, default=None)

    def listing(self, steps: Steps) -> Pane:
        """Returns each equation: down, kept, up; bands of several are folded."""
        rows: list[Row] = []
        for band in self.bands:
            keys = [f"f{band.key}", f"b{band.key}"]
            go = steps.down[band.key]
            deeper = band.depth
            if band.title:
                note = f"{band.title}: {band.note}" if band.note else band.title
                rows.append(Row([[Piece(note, "constant")]], depth=band.depth))
            if len(band.rows) > 1:
                kept = sum(r.bytes for r in band.kept)
                size = f"keeps {bytes_in_words(kept)}" if kept else ""
                count = band.source or count_in_words(len(band.rows), "equation")
                rows.append(
                    Row(
                        [band.label, [Piece(size, "residual")], count],
                        keys=keys,
                        go=go,
                        depth=band.depth,
                        folded=True,
                        look="group",
                    )
                )
                deeper += 1
            # Of a long band its heading is lit, and not each of its rows.
            lit = keys if len(band.rows) <= MOST_LIT else []
            for row in band.rows:
                rows += self.listed(band, row, lit, go, deeper)
        return Pane("each equation", rows, columns=["down", "kept", "up"], wide=True)

    def listed(
        self, band: Band, row: GradRow, keys: list[str], go: int, depth: int
    ) -> list[Row]:
        """Returns the rows of one equation."""
        kept: list[Piece] = []
        for number in row.opened[:MOST_NAMED]:
            residual = band.program.residuals[number]
            if kept:
                kept.append(Piece("  "))
            own = residual.origin in ("value", "carry", "copy")
            role = "residual" if own else "constant"
            text = residual.name
            if residual.origin != "value":
                text += f" ({residual.origin})"
            kept.append(Piece(text, role, residual_key(band, residual)))
        if len(row.opened) > MOST_NAMED:
            kept.append(Piece(f"  +{len(row.opened) - MOST_NAMED} more", "residual"))
        up = " ; ".join(back.text for back in row.backward)
        bad = [b for b in self.recording.first if b.row == row.id and not band.depth]
        extra = f"   {'; '.join(row.extra)}" if row.extra else ""
        found = [
            Row(
                [
                    [Piece(row.text), Piece(extra, "constant")],
                    kept,
                    [Piece(up, "cotangent")],
                ],
                keys=[*keys, *key_of_line(row.span)] if keys else [],
                go=go,
                depth=depth,
                tell=row.source,
                look="miss" if bad else "",
            )
        ]
        if row.rule:
            found.append(Row([[Piece(row.rule, "constant")]], depth=depth + 1))
        return found

    def kept_pane(self, steps: Steps) -> Pane:
        """Returns what is kept, the largest first, and why."""
        places = {
            residual.id: steps.down[band.key]
            for band in self.bands
            if not path_of(band)
            for residual in band.kept
        }
        residuals = sorted(self.recording.program.residuals, key=order_of)
        rows = []
        for residual in residuals[:MOST_RESIDUALS]:
            beside = residual.origin != "value"
            size = bytes_in_words(residual.bytes)
            why = "; ".join(residual.reasons[:2])
            more = len(residual.reasons) - 2
            why += f"; {more} more" if more > 0 else ""
            made = residual.made_by or f"the {residual.origin} itself"
            role = "constant" if beside else "residual"
            rows.append(
                Row(
                    [
                        [Piece(f"{residual.name}:{residual.type}", role)],
                        [Piece(size, "size")],
                        made,
                        why,
                    ],
                    keys=[f"r/{residual.id}", *key_of_line(residual.span)],
                    go=places.get(residual.id),
                    tell=residual_told(residual, 1),
                )
            )
        more = len(residuals) - len(rows)
        title = "what the way back reads, the largest first"
        if more > 0:
            title += f" ({more:,} more: residuals(f, ...) lists them)"
        return Pane(title, rows, columns=["value", "bytes", "from", "why"], wide=True)


def residual_keys(band: Band, residuals: Sequence[Residual]) -> list[str]:
    """The keys of residuals that a step lights: of many, those of the largest."""
    largest = sorted(residuals, key=lambda residual: -residual.bytes)[:MOST_LIT]
    return [residual_key(band, residual) for residual in largest]


def order_of(residual: Residual) -> tuple[bool, int]:
    """Arguments last, the largest first."""
    return residual.origin == "argument", -residual.bytes


def down_told(band: Band) -> str:
    """What the forward pass does in a band, and what it keeps."""
    count = len(band.rows)
    told = band.label if count == 1 else f"{band.label}: {count:,} equations"
    if count == 1 and band.rows[0].rule:
        told += f". {band.rows[0].rule}"
    if not band.kept:
        return f"{told}. Nothing made here is kept."
    size = bytes_in_words(sum(r.bytes for r in band.kept) * band.times)
    if band.again:
        return f"{told}. Runs again on the way back, which makes {size} for a while."
    first = max(band.kept, key=lambda r: r.bytes)
    return f"{told}. Keeps {size}. {residual_told(first, band.times)}"


def up_told(band: Band) -> str:
    """What the backward pass does in a band, and what it reads."""
    backs = [back.text for row in reversed(band.rows) for back in row.backward]
    told = "; ".join(backs[:4]) or "hands its cotangent on as it is"
    if len(backs) > 4:
        told += f"; and {len(backs) - 4:,} more"
    names = [residual.name for residual in band.opened]
    if names:
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        told += f". Reads {shown}"
    more = band.meetings - sum(not found.within for found in band.sums)
    if more > 0:
        told += f". {count_in_words(more, 'more sum')} of cotangents here"
    return f"{told}."


def sum_told(band: Band, found: GradSum) -> str:
    """Which cotangents meet, and why."""
    rows = band.program.rows
    parts = [rows[number].text for number in dict.fromkeys(found.rows)]
    shown = "; ".join(parts[:4]) + ("; ..." if len(parts) > 4 else "")
    return (
        f"{sum_in_words(found)}: {found.cotangent} = add_any of what comes back from "
        f"{shown}."
    )
