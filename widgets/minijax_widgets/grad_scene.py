"""The picture of `see.grad`: forward down the left, what is kept, cotangents up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minijax_lab.explain.backward import bytes_in_words
from minijax_lab.explain.backward_rows import GradArgument, GradRow
from minijax_lab.explain.residuals import Residual
from minijax_lab.explain.small_values import Values
from minijax_widgets.glyph import Glyph, Shape, glyph, text_width, words
from minijax_widgets.grad_bands import Band, hands_on, met_told, residual_told
from minijax_widgets.grad_layout import (
    Layout,
    Steps,
    folded,
    path_of,
    residual_key,
    sum_key,
    whole_or_less,
)
from minijax_widgets.scene import Mark, Placed, Point, Scene, byte_scale, bytes_side
from minijax_widgets.view import cut, short_name, short_names

# More arguments than this stand where their cotangents are complete.
MOST_ARGUMENTS = 4
MOST_BOXES = 6
MOST_GRADIENTS = 4
LABEL = 24
LINE = 17  # of formulas
GAP = 10
# Where arrows pass that go around others: on the left, and on the right.
LANES = 3
LANE = 6


class Picture:
    """Draws the bands of one function into a scene."""

    def __init__(
        self,
        bands: Sequence[Band],
        arguments: Sequence[GradArgument],
        steps: Steps,
        layout: Layout,
        prefix: str = "",
        most: int = 0,
        values: Mapping[str, Values] = {},  # noqa: B006
    ) -> None:
        self.bands = bands
        self.values = values
        self.steps = steps
        self.layout = layout
        self.prefix = prefix
        own = max((r.bytes * b.times for b in bands for r in b.kept), default=1)
        self.bytes = byte_scale(max(own, most), layout.side)
        single = all(len(band.rows) == 1 for band in bands)
        named = [a for band in bands for a in band.program.arguments] + [*arguments]
        room = 14 if layout.wide else 8
        self.short = short_names([a.name for a in named], room)
        self.short |= short_names([a.cotangent for a in named], room)
        self.grounds: list[Mark] = []  # what stands behind all else: first bands
        self.behind: list[Mark] = []  # then arrows that pass by
        self.top = list(arguments)
        many = len(arguments) > MOST_ARGUMENTS
        if not single or many or not self.have_room(arguments):
            self.top = []
        self.forward: dict[str, Placed] = {}
        self.cotangents: dict[str, Placed] = {}
        self.boxes: dict[str, Placed] = {}
        self.homes_of_boxes: dict[str, str] = {}
        self.edges: dict[tuple[str, float], float] = {}  # right ends of lines of boxes
        self.spans: dict[str, tuple[float, float]] = {}  # from where to where bands are
        self.left: dict[tuple[str, str], Placed] = {}  # by path and name of a value
        self.right: dict[tuple[str, str], Placed] = {}
        # Which cotangents are sums, by path and name, and where their pluses stand.
        self.summed = {(path_of(band), s.name) for band in bands for s in band.sums}
        self.pluses: dict[tuple[str, str], float] = {}
        self.homes: dict[tuple[str, str], Band] = {
            (path_of(band), name): band
            for band in bands
            for row in band.rows
            for name in row.results
        }
        self.lanes = 0
        self.lane = 0.0  # under the arguments
        self.heights = [self.height(band) for band in bands]
        top = self.top_height()
        below = 40
        total = top + sum(h + GAP for h in self.heights) + below
        self.scene = Scene(layout.width, total, "the backward pass as a picture")
        self.draw(top)

    def key(self, key: str) -> str:
        """A key, told apart from those of another picture beside."""
        return self.prefix + key

    def held(self, name: str, told: str, path: str = "") -> dict[str, Any]:
        """What a mark says of a value of the function, and the values that it shows."""
        values = [] if path else self.values.get(name, [])
        if len(values) == len(values[:1] and values[0]) == 1:
            told += f"; here {values[0][0]:g}"
        return {"tell": told, "holds": (name, values)}

    # ---- sizes -----------------------------------------------------------------------

    def have_room(self, arguments: Sequence[GradArgument]) -> bool:
        """Whether arguments, and on a narrow page their cotangents, fit in a line."""
        layout, scale = self.layout, self.layout.scale
        names = [(self.named(a.name), self.named(a.cotangent), a) for a in arguments]
        left = [glyph(a.shape, name=name, scale=scale).w + 16 for name, _, a in names]
        right = [glyph(a.shape, name=name, scale=scale).w + 22 for _, name, a in names]
        # The first glyph of each is centred at its place.
        room = layout.cotangent - self.leftmost - (right[:1] or [0])[0] / 2
        beside = layout.width - layout.cotangent + (right[:1] or [0])[0] / 2 + 22
        return sum(left) <= room and (layout.wide or sum(right) <= beside)

    @property
    def leftmost(self) -> float:
        """Where arguments may begin, behind the word that names them."""
        return 110.0 if self.layout.wide else 4.0

    def top_height(self) -> float:
        """How high the arguments stand."""
        if not self.top:
            return 0
        scale = self.layout.scale
        highest = max(glyph(a.shape, name=a.name, scale=scale).h for a in self.top)
        return LABEL + highest + 24

    def height(self, band: Band) -> float:
        """How high a band is."""
        scale = self.layout.scale
        heights = [glyph(band.last.shape, scale=scale).h]
        row = band.cotangent
        if row is not None:
            heights.append(glyph(row.shape, scale=scale).h + 6)
        heights.append(sum(h for _, h in self.lines_of_boxes(band)))
        shown = self.gradients(band)
        if shown:
            names = [glyph(a.shape, name=a.name, scale=scale).h for a in shown]
            heights.append(sum(names) + 8 * len(names) if not self.layout.wide else 0)
            heights.append(max(names))
            heights[-1] += self.under(band) if self.layout.wide else 0
        title = 20 if band.title else 0
        if self.layout.wide:
            own = 52 + LINE * (len(self.label(band)) - 1)
            return max(max(heights) + 20, own) + title
        return self.above(band) + max(heights) + 20 + title

    def above(self, band: Band) -> float:
        """How high the label is that stands over what a band shows."""
        return 0 if self.layout.wide else LABEL - 4 + LINE * (len(self.label(band)) - 1)

    def formulas(self, band: Band) -> list[str]:
        """The lines of formulas on the right of a band."""
        row = band.cotangent
        if not self.layout.wide or len(band.rows) != 1 or row is None:
            return []
        told = " ; ".join(back.text for back in row.backward)
        return folded(told, int((self.layout.width - self.formulas_at(row)) / 7.4))

    def formulas_at(self, row: GradRow) -> float:
        """Where formulas begin, behind the sizes of their cotangent."""
        drawn = glyph(row.shape, scale=self.layout.scale)
        return self.layout.cotangent + max(56, drawn.right + 8)

    def label(self, band: Band) -> list[str]:
        """The lines that name a band on the left."""
        layout = self.layout
        end = layout.forward - 44 if layout.wide else layout.cotangent - 4
        room = int((end - layout.label) / 7.4)
        if layout.wide:
            return folded(band.label, room)
        # What tells a layer from those like it stands first.
        label = band.label.removeprefix("return ")
        which = f"{band.alike:,} x" if band.alike else band.visit
        if len(label) <= room < len(f"{which} {label}"):
            return [which, label]
        label = f"{which} {label}".strip()
        return folded(label, room)

    def under(self, band: Band) -> float:
        """How far below the top of a band its gradients stand: under its formulas."""
        lines = len(self.formulas(band))
        return LABEL + max(0, LINE * lines - 10)

    def gradients(self, band: Band) -> list[GradArgument]:
        """The arguments whose cotangents stand in a band."""
        if self.top and band.depth == 0:
            return []
        most = MOST_GRADIENTS if self.layout.wide else 2
        if band.alike:
            most = min(most, max(1, len(band.gradients) // band.alike))
        return band.gradients[:most]

    def side(self, band: Band, residual: Residual) -> float:
        """The side of a residual's box."""
        return bytes_side(residual.bytes * band.times, self.bytes)

    def texts(self, band: Band, residual: Residual) -> tuple[str, str]:
        """What stands in or beside a residual's box."""
        size = bytes_in_words(residual.bytes)
        if band.times > 1:
            size = f"{band.times:,}x{size}"
        if band.alike and self.layout.wide:
            size += f" x {band.alike:,}"
        if residual.origin != "value":
            size += f" {residual.origin}"
        name = cut(residual.name, 12)
        side = self.side(band, residual)
        fits = max(text_width(name, 12, True) * 1.05, text_width(size, 11)) + 6 <= side
        if fits or self.layout.wide:
            return name, size
        # Beside a box there is no room for both on a narrow page, and beside a large
        # one for none: what it is stands in it.
        if side + text_width(size, 12, True) > self.layout.kept_width - 16:
            return cut(name, max(1, int((side - 6) / 7.6))), ""
        return "", size

    def box_width(self, band: Band, residual: Residual) -> float:
        """How wide a box is with its texts."""
        side = self.side(band, residual)
        name, size = self.texts(band, residual)
        widest = max(text_width(name, 12, True) * 1.05, text_width(size, 11))
        if widest + 6 <= side and side >= 34:
            return side + 14
        said = f"{name}  {size}".strip()
        return max(side, 4) + 16 + text_width(said, 12, True)

    def lines_of_boxes(self, band: Band) -> list[tuple[list[Residual], float]]:
        """The residuals of a band in lines that fit, each with its height."""
        lines: list[tuple[list[Residual], float]] = []
        used = self.layout.kept_width + 1
        kept = sorted(band.shown, key=lambda r: -r.bytes)[:MOST_BOXES]
        # What others open stands last: nothing is in the way of its arrow.
        own = {row.id for row in band.rows}
        kept.sort(key=lambda r: any(reader not in own for reader in r.readers))
        for residual in kept:
            width = self.box_width(band, residual)
            height = max(self.side(band, residual), 14) + 12
            if used + width > self.layout.kept_width or not lines:
                lines.append(([residual], height))
                used = width
            else:
                lines[-1] = ([*lines[-1][0], residual], max(lines[-1][1], height))
                used += width
        if len(band.shown) > MOST_BOXES or self.reads(band):
            lines.append(([], 18))
        return lines

    def reads(self, band: Band) -> str:
        """The arguments that the way back reads here, in words."""
        read = [r for r in band.opened if r.origin in ("argument", "outside")]
        if not read:
            return ""
        room = 30 if self.layout.wide else 12
        names = [self.named(residual.name) for residual in read]
        told = f"{', '.join(names)} ({read[0].origin})"
        if len(told) > room and len(names) > 1:
            told = f"{names[0]} and {len(names) - 1} more"
            told = told if len(told) <= room else f"{names[0]} +{len(names) - 1}"
        return told if len(told) <= room else names[0]

    # ---- drawing ---------------------------------------------------------------------

    def draw(self, top: float) -> None:
        """Draws all bands, then the arrows between them."""
        scene, layout = self.scene, self.layout
        y = 0.0
        if self.top:
            self.arguments(top)
            y = top
        for band, height in zip(self.bands, self.heights):
            self.band(band, y, height)
            y += height + GAP
        turn = self.steps.turn
        start = self.cotangent((), y + 16, "turn", turn)
        last = next((b for b in reversed(self.bands) if b.active and not b.depth), None)
        x, key = layout.cotangent + 14, self.key("turn")
        if last is not None:
            end, at = self.cotangents[last.key], self.steps.up[last.key]
            if last is self.bands[-1]:
                self.up_arrow(start, end, at)
            else:
                x = self.around(start, end, at, "turn") + 8
        text = "1.0  the way back begins" if layout.wide else "1.0"
        scene.text(x, y + 20, text, role="cotangent", key=key, at=turn)
        self.flow()
        self.open_arrows()
        self.meetings()
        first = [*self.grounds, *self.behind]
        moved = set(map(id, first))
        scene.marks = first + [m for m in scene.marks if id(m) not in moved]

    def cotangent(
        self, shape: Shape, y: float, key: str, step: int, **options: Any
    ) -> Placed:
        """Draws a cotangent in its column, there from a step on."""
        options |= {"role": "cotangent", "centered": True, "at": step, "go": step}
        x = self.layout.cotangent
        return self.scene.glyph(shape, x, y, key=self.key(key), **options)

    def arguments(self, height: float) -> None:
        """Draws the arguments on the left and their cotangents on the right."""
        scene, layout = self.scene, self.layout
        ends = [self.argument(a.shape, a.cotangent).w + 22 for a in self.top]
        wide = layout.cotangent + sum(ends) - ends[0] / 2
        room = max(layout.width, wide) - 4
        scene.band(0, height - GAP, text="arguments" if layout.wide else "", w=room)
        last = max(self.steps.up.values(), default=0)
        middle = (height - GAP) / 2
        x, right = layout.forward, layout.cotangent
        # So many that they would reach the cotangents begin further left.
        left = [self.argument(a.shape, a.name) for a in self.top]
        first = self.argument(self.top[0].shape, self.top[0].cotangent)
        end = x + sum(one.w + 16 for one in left) - left[0].w / 2
        x -= max(0.0, end - (right - first.w / 2 - 8))
        for argument in self.top:
            key = self.key(f"a{argument.name}")
            named = self.named(argument.name)
            drawn = glyph(argument.shape, name=named, scale=layout.scale)
            drop = middle - (drawn.top + drawn.bottom) / 2
            if self.left:
                x -= drawn.left
            placed = scene.glyph(
                argument.shape,
                x,
                drop,
                centered=True,
                name=named,
                scale=layout.scale,
                key=key,
                **self.held(
                    argument.name, f"{argument.name}: {argument.type}, an argument"
                ),
            )
            self.left["", argument.name] = placed
            x = placed.x + placed.w + 16
            name = self.named(argument.cotangent)
            if argument.zero:
                note = f"{name} = 0: not used" if layout.wide else f"{name} = 0"
                at = scene.note(right - 10, middle, note)
                right = at.x + at.w + 24
                continue
            drawn = glyph(
                argument.shape, name=name, scale=layout.scale, role="cotangent"
            )
            if self.right:
                right -= drawn.left
            given = scene.glyph(
                argument.shape,
                right,
                middle - (drawn.top + drawn.bottom) / 2,
                centered=True,
                name=name,
                role="cotangent",
                scale=layout.scale,
                key=[key, self.key(f"g/{argument.name}")],
                at=self.complete_at(argument, last),
                **self.held(
                    argument.cotangent,
                    f"{argument.cotangent}: the gradient in {argument.name}",
                ),
            )
            self.right["", argument.name] = given
            right = given.x + given.w + 22
        scene.width = max(scene.width, right - 22)
        self.lane = height - GAP - 7

    def argument(self, shape: Shape, name: str) -> Glyph:
        """The glyph of an argument, or of its cotangent, to measure."""
        return glyph(shape, name=self.named(name), scale=self.layout.scale)

    def named(self, name: str) -> str:
        """An argument's name, a long one shortened as far as the page needs it."""
        return self.short.get(name) or short_name(name, 14 if self.layout.wide else 8)

    def complete_at(self, argument: GradArgument, last: int) -> int:
        """The step in which an argument's cotangent is complete."""
        for band in self.bands:
            if band.depth == 0 and argument in band.gradients:
                return self.steps.up.get(band.key, last)
        return last

    def band(self, band: Band, y: float, height: float) -> None:
        """Draws one band."""
        scene, layout, scale = self.scene, self.layout, self.layout.scale
        down = self.steps.down[band.key]
        up = self.steps.up.get(band.key)
        indent = layout.indent * band.depth
        keys = [self.key(f"f{band.key}"), self.key(f"b{band.key}")]
        self.spans[band.key] = (y, y + height)
        ground = band.ground
        if ground == "panel":
            scene.band(y, height, x=indent)
            self.grounds.append(scene.marks[-1])
        if band.title:
            said = band.title
            if band.note and layout.wide:
                said = f"{said}: {band.note}"
            room = int((layout.width - indent - 20) / 6.4)
            scene.note(
                indent + 10,
                y + 15,
                cut(said, room),
                ground=ground,
                tell=f"{band.title}: {band.note}" if band.note else band.title,
            )
            y, height = y + 20, height - 20
        row = band.cotangent
        left = layout.label + indent
        label = self.label(band)
        for number, said in enumerate(label):
            scene.text(
                left, y + 22 + LINE * number, said,
                size=12, mono=True, key=keys[0], at=down, go=down, tell=band.label,
                ground=ground,
            )  # fmt: skip
        if layout.wide and band.source:
            scene.note(
                left,
                y + 25 + LINE * len(label),
                whole_or_less(band.source, layout.forward - 44 - layout.label),
                size=11,
                mono=True,
                at=down,
                ground=ground,
            )
        lines = self.formulas(band)
        if lines and row is not None and up is not None:
            scene.drawn(
                self.formulas_at(row), y + 10,
                max(text_width(said, 12, True) for said in lines), LINE * len(lines),
                [
                    words(0, 12 + LINE * n, said, "cotangent", 12, mono=True)
                    for n, said in enumerate(lines)
                ],
                key=self.key(f"b{band.key}"), at=up, go=up,
                says=" ; ".join(back.text for back in row.backward),
            )  # fmt: skip
        above = self.above(band)
        middle = y + above + (height - above) / 2
        if layout.wide:
            middle -= 5
        placed = scene.glyph(
            band.last.shape,
            layout.forward + indent,
            middle,
            centered=True,
            scale=scale,
            key=keys[0],
            at=down,
            go=down,
            **self.held(
                band.last.name, f"{band.last.text}: {band.last.type}", path_of(band)
            ),
        )
        self.forward[band.key] = placed
        for one in band.rows:
            for name in one.results:
                self.left[path_of(band), name] = placed
        self.draw_boxes(band, middle, placed, up, ground)
        if row is None or up is None:
            return
        told = f"ct_{row.name}: {row.type}, the cotangent of {row.name}"
        key = f"b{band.key}"
        held = self.held(f"ct_{row.name}", told, path_of(band))
        # On a narrow page the sizes of cards would lie under what stands beside them;
        # they are those of the value on the left.
        held["sizes"] = layout.wide or len(row.shape) < 3
        given = self.cotangent(row.shape, middle, key, up, scale=scale, **held)
        self.cotangents[band.key] = given
        for one in band.rows:
            for name in one.results:
                self.right[path_of(band), name] = given
        self.draw_gradients(band, y, middle, given, up)

    def draw_boxes(
        self, band: Band, middle: float, source: Placed, up: int | None, ground: str
    ) -> None:
        """Draws what a band keeps, and the arrow that keeps it."""
        scene, layout = self.scene, self.layout
        down = self.steps.down[band.key]
        lines = self.lines_of_boxes(band)
        if not lines:
            return
        indent = layout.indent * band.depth
        left = layout.kept + indent
        if not layout.wide:
            left = max(left, source.x + source.w - 2)
        at = middle - sum(h for _, h in lines) / 2
        first: Placed | None = None
        for residuals, line_height in lines:
            x = left + 6
            for residual in residuals:
                side = max(self.side(band, residual), 1.0)
                name, size = self.texts(band, residual)
                key = residual_key(band, residual)
                placed = scene.box(
                    x,
                    at + (line_height - side) / 2,
                    side,
                    side,
                    key=self.key(key),
                    role="residual",
                    lid=not band.again,
                    dash=band.again,
                    text=name,
                    detail=size,
                    mono=True,
                    ground=ground,
                    at=down,
                    go=down,
                    tell=residual_told(residual, band.times),
                )
                self.boxes[key] = placed
                self.homes_of_boxes[key] = band.key
                self.edges[band.key, placed.cy] = placed.x + placed.w
                first = first or placed
                x += self.box_width(band, residual)
            if not residuals:
                rest = len(band.shown) - MOST_BOXES
                said = self.reads(band)
                if rest > 0:
                    more = sum(
                        r.bytes
                        for r in sorted(band.shown, key=lambda r: -r.bytes)[MOST_BOXES:]
                    )
                    said = f"+ {rest:,} more, {bytes_in_words(more)}"
                at_step = down if rest > 0 or up is None else up
                scene.note(left + 6, at + 13, said, at=at_step, ground=ground)
            at += line_height
        word = "again" if band.again else "keep"
        room = 0.0 if first is None else first.x - source.right[0]
        if not layout.wide or room < text_width(word, 12) + 10:
            word = ""
        if first is not None and room > 14:
            scene.arrow(
                (source.right[0], source.cy), (first.x - 5, source.cy),
                role="residual", at=down, text=word,
                dash=band.again,
                key=self.key(f"k{band.key}"),
            )  # fmt: skip

    def draw_gradients(
        self, band: Band, y: float, middle: float, given: Placed, up: int
    ) -> None:
        """Draws the cotangents of arguments that are complete in a band."""
        scene, layout = self.scene, self.layout
        shown = self.gradients(band)
        x, at = layout.gradients, y + self.under(band)
        before = given
        drawn = 0
        for argument in shown:
            name = self.named(argument.cotangent)
            told = f"{argument.cotangent}: {argument.type}, "
            told += f"the gradient in {argument.name}"
            keys = (f"b{band.key}", f"g{path_of(band)}/{argument.name}")
            wide = glyph(
                argument.shape, name=name, scale=layout.scale, role="cotangent"
            ).w
            if drawn and x + wide > layout.width:
                break
            placed = scene.glyph(
                argument.shape,
                min(x, layout.width - wide - 4),
                at,
                name=name,
                scale=layout.scale,
                role="cotangent",
                key=list(map(self.key, keys)),
                at=up,
                go=up,
                **self.held(argument.cotangent, told, path_of(band)),
            )
            drawn += 1
            self.right[path_of(band), argument.name] = placed
            if before is given and placed.x - 8 > given.right[0]:
                scene.arrow(
                    given.right, (placed.x - 4, given.cy), role="cotangent", at=up,
                    key=self.key(f"b{band.key}"),
                )  # fmt: skip
            before = placed
            plus = placed.cx + glyph(argument.shape, scale=layout.scale).right + 8
            which = path_of(band), argument.name
            self.pluses[which] = plus
            if layout.wide:
                x += max(placed.w, 40) + 14
                x = max(x, plus + 40 if which in self.summed else 0)
            else:
                at += placed.h + 6
        rest = len(band.gradients) - drawn
        if rest > 0 and drawn:
            left, base = min(x, layout.width - 44), middle + 10
            if not layout.wide:
                left, base = before.x - 34, at - 10
            said = f"x {band.alike:,}" if band.alike else f"+ {rest}"
            if layout.wide or not band.alike:
                scene.text(left, base, said, role="cotangent", size=12, at=up)

    # ---- arrows ----------------------------------------------------------------------

    def flow(self) -> None:
        """Draws which band reads which: down on the left, up on the right."""
        many = len(self.bands) > 40
        for number, band in enumerate(self.bands):
            path = path_of(band)
            own = {name for row in band.rows for name in row.results}
            names = [n for row in band.rows for n in row.operands if n not in own]
            seen: set[str] = set()
            for name in names:
                home = self.homes.get((path, name))
                argument = home is None and (path, name) in self.left and self.top
                mark = home.key if home is not None else f"argument {name}"
                if (home is None and not argument) or mark in seen:
                    continue
                seen.add(mark)
                start = self.left[path, name]
                # With nothing between, the arrow is straight.
                straight = home is not None and number - 1 == home.number
                if home is None and number == 0 and start.cx == self.layout.forward:
                    straight = True
                if straight or not many:
                    self.down_arrow(start, band, home, straight)
                if home is not None and (straight or not many):
                    self.back(band, home, straight)

    def down_arrow(
        self, start: Placed, band: Band, home: Band | None, straight: bool
    ) -> None:
        """Draws that a band reads a value."""
        end = self.forward[band.key]
        down, key = self.steps.down[band.key], self.key(f"f{band.key}")
        if straight:
            self.scene.arrow(start.bottom, end.top, role="value", at=down, key=key)
            return
        # Around what is between: under one band, along the left, over the other.
        self.lanes += 1
        x = 6 + LANE * (self.lanes % LANES) + self.layout.indent * band.depth
        under = self.lane if home is None else self.spans[home.key][1] + GAP / 2
        over = self.spans[band.key][0] + 2  # and over its label
        leave = start.cx - min(6, start.w / 2 - 2)
        arrive = end.cx - min(6, end.w / 2 - 2)
        self.scene.arrow(
            (leave, start.y + start.h + 3), (arrive, end.y - 4), role="value",
            via=[(leave, under), (x, under), (x, over), (arrive, over)],
            at=down, key=key,
        )  # fmt: skip

    def back(self, band: Band, home: Band, straight: bool) -> None:
        """Draws that a band hands a cotangent to the band whose result it read."""
        start = self.cotangents.get(band.key)
        end = self.cotangents.get(home.key)
        if start is None or end is None or not hands_on(band, home):
            return
        at = self.steps.up[home.key]
        if straight:
            self.up_arrow(start, end, at)
            return
        self.around(start, end, at, f"b{home.key}")

    def around(self, start: Placed, end: Placed, at: int, key: str) -> float:
        """Draws an arrow from a cotangent up to another, around what is between.

        Returns where on the right it goes up.
        """
        x = self.lane_of(start, end)
        self.scene.arrow(
            start.right, (end.x + end.w + 4, end.cy + 6), role="cotangent", at=at,
            via=[(x, start.cy), (x, end.cy + 6)], key=self.key(key),
        )  # fmt: skip
        return x

    def lane_of(self, start: Placed, end: Placed) -> float:
        """Where on the right an arrow goes up around others."""
        self.lanes += 1
        most = max(start.x + start.w, end.x + end.w)
        if not self.layout.wide:  # what is given stands near
            return most + 5 + LANE / 2 * (self.lanes % LANES)
        return max(most, self.layout.cotangent + 20) + 8 + LANE * (self.lanes % LANES)

    def up_arrow(self, start: Placed, end: Placed, at: int) -> None:
        """Draws a straight arrow from a cotangent to the one above."""
        self.scene.arrow(start.top, end.bottom, role="cotangent", at=at)

    def open_arrows(self) -> None:
        """Draws which residual is opened where: on its own rows, and on others."""
        layout = self.layout
        for band in self.bands:
            given = self.cotangents.get(band.key)
            if given is None:
                continue
            up = self.steps.up[band.key]
            own = f"b{band.key}"
            here = [r for r in band.opened if self.home(band, r) == band.key]
            if here:
                edge = max(x for (key, _), x in self.edges.items() if key == band.key)
                start, end = (edge + 6, given.cy), (given.x - 5, given.cy)
                keys = [own, *(residual_key(band, residual) for residual in here)]
                text = "open" if layout.wide and end[0] - edge > 60 else ""
                if end[0] - edge > 14:
                    # Arrows from above pass behind the word.
                    self.scene.arrow(
                        start, end, role="residual", text=text, ground=band.ground,
                        at=up, key=list(map(self.key, keys)),
                    )  # fmt: skip
            for residual in band.opened:
                home = self.home(band, residual)
                if home is None or home == band.key:
                    continue
                key = residual_key(band, residual)
                box = self.boxes[key]
                end = (given.x - 5, given.cy + 8)
                self.scene.arrow(
                    (min(self.edges[home, box.cy] + 5, end[0] - 14), box.cy + 8),
                    end,
                    role="residual", curve="h", dash=True, at=up,
                    key=[self.key(own), self.key(key)],
                )  # fmt: skip
                self.behind.append(self.scene.marks[-1])

    def home(self, band: Band, residual: Residual) -> str | None:
        """The key of the band in which a residual has its box, if it has one."""
        return self.homes_of_boxes.get(residual_key(band, residual))

    def meetings(self) -> None:
        """Draws the sums: a plus where cotangents meet, and where they come from."""
        beside: dict[Point, int] = {}
        for band in self.bands:
            path = path_of(band)
            for found in band.sums:
                if found.within and len(band.rows) > 1:
                    continue
                end = self.right.get((path, found.name))
                if end is None:
                    continue
                at = self.steps.sums.get((path, found.name), self.steps.up[band.key])
                key = self.key(sum_key(band, found))
                # It ends where the glyph begins.
                wide = 20 if len(found.rows) < 3 else 26
                x, y = end.x - wide, end.y + end.h - 8
                if found.target is None:
                    x = self.pluses.get((path, found.name), end.x + end.w + 12)
                    y = end.cy - 10
                if x + 28 > self.layout.width:
                    x = end.x - wide - 2
                    if found.target is None and self.layout.wide:
                        x, y = end.cx - 13, end.y + end.h + 2
                place = (end.cx, end.cy)
                beside[place] = beside.get(place, 0) + 1
                self.scene.box(
                    x - 28 * (beside[place] - 1),
                    y,
                    wide,
                    20,
                    role="cotangent",
                    text=f"+{len(found.rows)}" if len(found.rows) > 2 else "+",
                    key=key,
                    at=at,
                    go=at,
                    tell=met_told(found),
                )
        for argument in self.top:
            self.arrive(argument)

    def arrive(self, argument: GradArgument) -> None:
        """Draws from where parts of the cotangent of an argument come."""
        end = self.right.get(("", argument.name))
        if end is None:
            return
        key = self.key(f"g/{argument.name}")
        foot = (end.cx, end.y + end.h + 3)
        for band in self.bands:
            given = self.cotangents.get(band.key)
            gives = any(argument.name in row.gives for row in band.rows)
            if band.depth or given is None or not gives:
                continue
            at = self.steps.up[band.key]
            if band.number == self.first_active:
                via = [] if given.cx == end.cx else [(given.cx, self.lane)]
                via += [(end.cx, self.lane)] if via else []
                self.scene.arrow(
                    given.top, foot, role="cotangent", via=via, at=at, key=key
                )
                continue
            x = self.lane_of(given, given)
            via = [(x, given.cy), (x, self.lane), (end.cx, self.lane)]
            self.scene.arrow(
                given.right, foot, role="cotangent", via=via, at=at, key=key
            )

    @property
    def first_active(self) -> int:
        """The number of the first band that a cotangent comes to."""
        return next((b.number for b in self.bands if b.active and not b.depth), 0)
