"""What all views share: a recording, its text twin, and the ways onto the screen.

In a notebook a view is one piece of HTML: the static frame, and a script with the
player and the recording inside, both compressed. The script turns the frame into the
player; a notebook that is not trusted drops the script and keeps the frame.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import dataclasses
import functools
import gc
import gzip
import hashlib
import inspect
import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any, TypeVar, cast

from minijax.core.events import enter
from minijax_lab.explain.recording import Recording
from minijax_lab.explain.recording import read as read_recording
from minijax_widgets.bar_scene import BarScene
from minijax_widgets.frame import Frame, FrameStep, Pane
from minijax_widgets.style import LIGHT, TEXT

STATIC = Path(__file__).parent / "static"

# The text of a view whose program has nothing to show.
NOTHING = (
    "There are no equations: give a function that computes something from its "
    "arguments, such as jnp.sin."
)

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 16px; background: #FFFFFF; }}
@media (max-width: 480px) {{ body {{ margin: 2px; }} }}
@media (prefers-color-scheme: dark) {{ body {{ background: #14171C; }} }}
h1 {{ position: absolute; width: 1px; height: 1px; margin: 0; overflow: hidden; }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""

# Stands in front of the static frame. The first view of a page that is still being read
# does not lay its frame out twice: it is hidden for as long as the player is unpacked.
HIDER = """<script>(function(made){
if(made&&document.readyState=="loading"&&!globalThis.minijaxPlayers)
made.parentNode.style.display="none"})(document.currentScript)</script>"""

# Runs where the notebook puts it. The player is unpacked once a page.
STARTER = """<script>(async function(){
var frame="%(frame)s",code="%(code)s";
async function unpack(text){
if(Uint8Array.fromBase64)var bytes=Uint8Array.fromBase64(text);
else{
var letters=atob(text),i=letters.length;
bytes=new Uint8Array(i);
while(i--)bytes[i]=letters.charCodeAt(i)}
var made=new DecompressionStream("gzip"),writer=made.writable.getWriter();
writer.write(bytes);writer.close();
return new Response(made.readable).text()}
try{
var w=globalThis,p=w.minijaxPlayers=w.minijaxPlayers||{};
p["%(version)s"]=p["%(version)s"]||unpack(code).then(function(text){
return new Function(text+";return minijaxPlayer")()});
var both=await Promise.all([p["%(version)s"],unpack(frame)]);
both[0].mount("%(id)s",JSON.parse(both[1]))
}catch(error){
for(var made of document.querySelectorAll('[data-mj="%(id)s"]'))made.style.display="";
throw error}
})()</script>"""


@contextlib.contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """Pauses Python's garbage collector: a page is made of a million small lists, none
    of them in a cycle, and looking for one takes a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class View(ABC):
    """A recording, and how it looks. Subclasses give `text` and `frame`."""

    first_step: int | None = None  # the step that `at` was asked for

    def __init__(self, recording: Any) -> None:
        self.recording = recording

    @abstractmethod
    def text(self, full: bool = False) -> str:
        """Returns the text twin; `full=True` prints every row of a long one."""

    @abstractmethod
    def frame(self) -> Frame:
        """Returns the picture: what the player draws."""

    def picture(
        self, panes: list[Pane], steps: list[FrameStep], telling: int = 0, **other: Any
    ) -> Frame:
        """Returns a frame of panes and steps, with the recording's headline.

        `other` are fields of `Frame`; those of the recording and the twin are replaced.
        """
        record = self.recording
        usual = {"kind": record.kind, "call": record.call, "headline": record.headline}
        if "text" not in other:
            usual["text"] = self.text(full=True)
        if self.first_step is not None:
            telling = self.first_step
        return Frame(**usual | other, panes=panes, steps=steps, telling=telling)

    def empty(self, told: str) -> Frame:
        """Returns a frame with nothing but a sentence."""
        return self.picture([], [FrameStep("", told)])

    def static_html(self) -> str:
        """Returns the picture at its telling step, without any script."""
        return self.frame().static_html()

    def to_html(self) -> str:
        """Returns the view as one self-contained piece of HTML."""
        with no_search_for_cycles():
            return self._page()

    def _page(self) -> str:
        frame = self.frame()
        page = frame.to_json()
        name = hashlib.sha256(page.encode()).hexdigest()[:16]
        timeline = any(isinstance(pane.scene, BarScene) for pane in frame.panes)
        code, version = player(timeline)
        box = (
            f"background:{LIGHT['base']};color:{LIGHT['text']};padding:8px 12px;"
            f"border-radius:4px;font:13px/20px {TEXT}"
        )
        start = STARTER % {
            "frame": packed(page),
            "code": code,
            "version": version,
            "id": name,
        }
        return (
            f'<div class="minijax-view" data-mj="{name}" style="{box}">'
            f"{HIDER}{frame.static_html()}</div>{start}"
        )

    def to_svg(self, dark: bool = False) -> str:
        """Returns the view's pictures as an SVG file; TypeError for one of tables."""
        frame = self.frame()
        if any(pane.scene for pane in frame.panes):
            return frame.svg(dark)
        raise TypeError(
            f"{type(self).__name__} is made of text and tables and has no SVG; use "
            "save('view.html'), or print(view.text(full=True))."
        )

    @functools.cached_property
    def widget(self) -> Any:
        """The same picture as a widget with the traits `step` and `selection`.

        Raises ImportError without the extra `minijax[lab]`.
        """
        from minijax_widgets.widget import PlayerWidget

        return PlayerWidget.of(self.frame())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the view: `.html` a page that opens without a network, `.json.gz` the
        recording, which `see.open` shows again.

        Raises ValueError for a path with another ending.
        """
        if str(path).endswith(".json.gz"):
            self.recording.write(path)
            return
        if not str(path).endswith((".html", ".htm")):
            raise ValueError(
                "a view is saved as .html or .json.gz; the path "
                f"{os.fspath(path)!r} ends in neither."
            )
        title = escape(self.recording.headline)
        page = PAGE.format(title=title, body=self.to_html())
        Path(path).write_text(page, encoding="utf-8")

    def at(self, step: int) -> View:
        """Returns the same view that opens at another step; the first one is 1.

        Raises ValueError if it has no such step.
        """
        count = len(self.frame().steps)
        if not 1 <= step <= count:
            raise ValueError(f"step {step} of {count}: this view has no such step.")
        other = copy.copy(self)
        other.first_step = step - 1
        other.tell(step - 1)
        return other

    def tell(self, step: int) -> None:
        """Makes what a step shows the telling part of the recording."""
        self.recording = dataclasses.replace(self.recording, telling=step)

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict:
        return {"text/plain": self.text(), "text/html": self.to_html()}


def packed(text: str) -> str:
    """Returns a text compressed and in letters that a script may hold."""
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def script(timeline: bool) -> str:
    """Returns the player's code, with or without what draws a timeline."""
    names = ["player.js", "timeline.js"] if timeline else ["player.js"]
    return "".join((STATIC / name).read_text(encoding="utf-8") for name in names)


@functools.cache
def player(timeline: bool) -> tuple[str, str]:
    """Returns that code, compressed, and a name for this version of it."""
    code = script(timeline)
    return packed(code), hashlib.sha256(code.encode()).hexdigest()[:12]


# The view of each kind of recording, entered by `shows`.
views: dict[str, type[View]] = {}
V = TypeVar("V", bound=View)


def shows(kind: str) -> Callable[[type[V]], type[V]]:
    """Decorates the view that shows recordings of a kind; each kind has one."""

    def decorate(view: type[V]) -> type[V]:
        enter(views, kind, view)
        return view

    return decorate


def open_view(path: str | os.PathLike[str]) -> View:
    """`see.open`: shows a recording that `view.save("name.json.gz")` wrote.

    Raises ValueError for a file that holds none.
    """
    recording: Recording = read_recording(path)
    return views[recording.kind](recording)


# Columns of a twin, and the line below which it differs between machines.
WIDTH = 100
DIFFERS = "-- differs between machines --"


F = TypeVar("F", bound=Callable[..., Any])


def with_options(see: F) -> F:
    """Decorates a view that takes a function, its arguments, and options by name.

    An option given by name that the function has an argument for raises TypeError:
    it could be meant for either.
    """
    options = {
        name
        for name, parameter in inspect.signature(see).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }

    @functools.wraps(see)
    def checked(function: Any, *args: Any, **given: Any) -> Any:
        both = options & given.keys()
        try:
            names = inspect.signature(function).parameters if both else {}
        except (TypeError, ValueError):
            names = {}
        # A partial has given the arguments that it bound by name.
        bound = getattr(function, "keywords", None) or {}
        for name in sorted((both & names.keys()) - bound.keys()):
            raise TypeError(
                f"see.{see.__name__} got {name}=, an option of the view, and the "
                "function has an argument of that name, too. Pass a function without "
                f"it: see.{see.__name__}(lambda *args: f(*args, {name}=...), ...)."
            )
        try:
            return see(function, *args, **given)
        except ValueError as error:
            if "sorting pytree dictionary keys" not in str(error):
                raise
            raise ValueError(
                f"see.{see.__name__} got a dict whose keys have no order "
                f"({error.__cause__}): leaves are taken in the order of the keys. Use "
                "keys of one kind, such as texts."
            ) from None

    return cast(F, checked)


def twin(*rows: str) -> str:
    """Returns a view's twin: its rows, each cut to the width of a twin."""
    return "\n".join(cut(row.rstrip(), WIDTH) for row in rows)


def cut(text: str, width: int) -> str:
    """Returns `text`, or its beginning and three dots, in at most `width` columns."""
    return text if len(text) <= width else text[: width - 3] + "..."


def evenly(text: str, width: int) -> list[str]:
    """Returns a text in as few lines of `width` columns as it needs, all of them about
    as long; a longer word stays whole."""
    lines = functools.partial(wrap, text, break_long_words=False)
    most = len(lines(width))
    return next(lines(n) for n in range(1, width + 1) if len(lines(n)) <= most)


def short_name(name: str, width: int) -> str:
    """Returns the name of a leaf in at most `width` columns, so that leaves of one tree
    stay apart: of `ct_params['layers'][0]['kernel']` first `ct_layers.0.kernel`, then
    `ct_l.0.kernel`, then the end."""
    if len(name) <= width:
        return name
    name = name.rpartition(", ")[2]  # of "ct_x, part 1" the part
    if len(name) <= width:
        return name
    head = "ct_" if name.startswith("ct_") and width > 6 else ""
    told = name.removeprefix(head)
    # A key with other signs than those of names stays as it is.
    keys = re.findall(r"\['(.*?)'\]", told)
    if keys and not all(re.fullmatch(r"\w+", key) for key in keys):
        parts = keys[-1:]
    else:
        parts = re.findall(r"\w+", told)[1:] or [name]
    for place in range(len(parts)):
        if len(head) + len(".".join(parts)) <= width:
            break
        if place < len(parts) - 1:
            parts[place] = parts[place][:1] if parts[place].isalpha() else parts[place]
    path, room = ".".join(parts), width - len(head)
    if len(path) <= room:
        return head + path
    front = ".".join([*parts[:-1], ""])
    if len(front) + 5 > room:
        return f"{head}..{path[-(room - 2) :]}"
    return f"{head}{front}..{path[-(room - 2 - len(front)) :]}"


def short_names(names: Iterable[str], width: int) -> dict[str, str]:
    """Returns short names of leaves, as `short_name` makes them; those that would be
    alike by what differs in them: `ct_query` for a kernel beside other kernels."""
    found = {name: short_name(name, width) for name in names}
    alike: dict[str, list[str]] = {}
    for name, short in found.items():
        alike.setdefault(short, []).append(name)
    for group in alike.values():
        if len(group) < 2:
            continue
        head = "ct_" if all(name.startswith("ct_") for name in group) else ""
        parts = [
            re.findall(r"[^\W\d_]+|\d+", name.removeprefix(head)) for name in group
        ]
        shared = set.intersection(*map(set, parts))
        for name, words in zip(group, parts):
            own = [word for word in words if word not in shared]
            if any(word.isalpha() for word in own):
                told = ".".join(own)
                told = told if len(told) <= width - len(head) else own[-1]
            else:  # numbers alone say little
                told = ".".join(w if w in own else w[:1] for w in words)
            found[name] = head + told[: width - len(head)]
    # What is still alike has its end, as before.
    counts = Counter(found.values())
    return {
        name: short if counts[short] == 1 else short_name(name, width)
        for name, short in found.items()
    }


def shortened(rows: list[str], full: bool, first: int = 12, last: int = 5) -> list[str]:
    """Returns a twin's rows, the middle of a long list replaced by how to see it."""
    if full or len(rows) <= first + last:
        return rows
    hidden = len(rows) - first - last
    note = f"  ... {hidden:,} more: print(v.text(full=True))"
    return [*rows[:first], note, *rows[-last:]]
