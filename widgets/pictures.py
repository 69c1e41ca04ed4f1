"""Reference pictures of the gallery: how they are taken, compared and renewed.

A picture is two things: what stands where (`layout.json`: each visible part with its
text, colours and box), and the image itself. The pages use the fonts that lie beside
the pictures, so a machine's own fonts do not count. In the Chromium that took the
references both must agree closely; in another one boxes may move a little and more of
the image may differ. `python widgets/gallery.py --accept` renews what has changed.

Images are compared as they look from afar: averaged over squares of 4 by 4 pixels, so
that the edges of letters count for little, and a line that moved or a colour that
changed for much.
"""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import gallery

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "tests" / "views" / "pictures"
FAILED = ROOT / "build" / "pictures"
WIDE, NARROW = 1000, 400
# The state, the width, the theme (or "print"), and where its slider stands (None: the
# telling step).
SHOTS: list[tuple[str, int, str, float | None]] = [
    ("jaxpr", WIDE, "light", None),
    ("jaxpr", NARROW, "dark", None),
    ("jaxpr, empty", WIDE, "light", None),
    ("jaxpr, one step", WIDE, "light", None),
    ("jaxpr, programs inside", WIDE, "dark", 1.0),
    ("jaxpr, huge", WIDE, "light", 0.5),
    ("jaxpr, hostile names", NARROW, "light", None),
    ("difference", WIDE, "light", None),
    ("difference, of vmap", NARROW, "light", None),
    ("graph", WIDE, "light", None),
    ("graph, loop", WIDE, "light", 0.5),
    ("trace", WIDE, "light", None),
    ("trace", WIDE, "dark", 0.5),
    ("trace", NARROW, "light", 0.0),
    ("trace, calls", WIDE, "light", 0.5),
    ("trace, error", WIDE, "light", None),
    ("memory", WIDE, "print", None),
    ("trace, error", NARROW, "dark", None),
    ("trace, long names", WIDE, "light", None),
    ("cache", WIDE, "light", None),
    ("cache", NARROW, "light", 1.0),
    ("cache, empty", WIDE, "light", None),
    ("tree", WIDE, "dark", None),
    ("tree, two", WIDE, "light", None),
    ("tree, hostile names", NARROW, "light", None),
    ("vmap", WIDE, "light", None),
    ("vmap", NARROW, "dark", None),
    ("vmap, branches", WIDE, "dark", None),
    ("keys", WIDE, "light", None),
    ("keys, well used", NARROW, "light", None),
    ("why, exception", WIDE, "light", None),
    ("why, exception", NARROW, "light", 0.0),
    ("why, equation", WIDE, "dark", None),
    ("source, small", WIDE, "light", None),
    ("card, small", WIDE, "light", None),
    ("card, small", NARROW, "dark", None),
    ("primitives, few", WIDE, "light", None),
    ("kernel", WIDE, "light", None),
    ("kernel, rows", WIDE, "dark", 1.0),
    ("kernel, race", NARROW, "light", None),
    ("placement, array", WIDE, "light", None),
    ("placement, program", WIDE, "light", None),
    ("placement, tree", NARROW, "dark", None),
    ("collectives", WIDE, "light", None),
]
# Everything of a view that can be seen, from top to bottom: a line for each part.
LAYOUT = """root => {
  const parts = ".mj-head,.mj-bar>*,.mj-title,tr.mj-r,th,tr.mj-r>td,mark,.mj-chip,"
    + ".mj-dash,.mj-def,.mj-use,.mj-tile,.mj-node,.mj-strip,.mj-detail";
  const at = root.getBoundingClientRect();
  const found = [];
  for (const made of root.querySelectorAll(parts)) {
    const box = made.getBoundingClientRect();
    if (!box.width || !box.height || getComputedStyle(made).display == "none") continue;
    const pane = made.closest(".mj-pane");
    if (pane) {
      const edge = pane.getBoundingClientRect();
      if (box.top >= edge.bottom || box.bottom <= edge.top) continue;
    }
    const style = getComputedStyle(made);
    const row = made.matches("tr");
    // Lines of minijax's own files move with every change above them.
    const text = row ? "" : made.textContent.replace(/\\s+/g, " ").trim()
      .replace(/(minijax\\/[\\w/]+\\.py:)\\d+/g, "$1 a line");
    const name = made.tagName.toLowerCase() + "."
      + [...made.classList].sort().join(".");
    const measure = [box.left - at.left, box.top - at.top, box.width, box.height];
    const shadow = style.boxShadow == "none" ? "" : style.boxShadow;
    const look = [style.color, style.backgroundColor, style.fontWeight];
    if (Number(style.opacity) < 1) look.push("faint");
    if (style.textDecorationLine != "none") look.push(style.textDecorationLine);
    found.push([name, measure.map(Math.round), look.concat(shadow || []).join(" "),
      text]);
  }
  return found;
}"""


@dataclass
class Picture:
    """One view at one step: its parts, and the image."""

    parts: list[list[Any]]
    image: Image.Image


@dataclass
class Tolerance:
    """How far two pictures of the same thing may differ."""

    box: int  # pixels by which an edge of a part may move
    squares: float  # the share of squares that may differ visibly
    mean: float  # the difference on average, of 255


# Pictures of the Chromium that took the references, and of another version.
CLOSE = Tolerance(box=2, squares=0.002, mean=0.4)
LOOSE = Tolerance(box=8, squares=0.02, mean=1.5)


def name_of(state: str, width: int, theme: str, where: float | None) -> str:
    """Returns the name of a picture's file."""
    place = "" if where is None else f"-{round(100 * where)}"
    return f"{state.replace(', ', '-').replace(' ', '-')}-{width}-{theme}{place}"


# ---- taking -------------------------------------------------------------------------


# All views lie at the corner of the page, one of them to be seen: what one needs does
# not move another by a part of a pixel.
PLACES = (
    "body{margin:0!important}h1,h2{display:none}"
    "main>section{position:absolute;left:0;top:0;width:100%;visibility:hidden}"
    "main>section.seen{visibility:visible}"
)

# Chromium takes the picture of a part that is taller than the window by making the
# window one pixel wide and then as wide as before. If a frame is drawn in between, the
# views that follow the width choose another layout and scroll: they are never told.
STILL = "window.ResizeObserver = class { observe() {} }"


def fonts() -> str:
    """Returns the style that makes every view use the fonts beside the pictures."""
    rules = []
    for family in ("code", "text"):
        for weight, end in ((400, ""), (700, "-bold")):
            data = (PICTURES / "fonts" / f"{family}{end}.woff").read_bytes()
            rules.append(
                f"@font-face{{font-family:mj-{family};font-weight:{weight};"
                f"src:url(data:font/woff;base64,{base64.b64encode(data).decode()})}}"
            )
    rules.append(
        ".minijax-view{--jp-code-font-family:mj-code,mj-text;"
        "--jp-ui-font-family:mj-text}"
    )
    return f"<style>{''.join(rules)}{PLACES}</style>"


def page(only: Callable[[str], bool] | None = None) -> str:
    """Returns the page of which pictures are taken: all, or some of them by name."""
    shots = [shot for shot in SHOTS if only is None or only(name_of(*shot))]
    return gallery.page(list(dict.fromkeys(shot[0] for shot in shots)), fonts())


def launch(browser_type: Any, path: str, **environment: str) -> Any:
    """Starts a browser that draws letters as alike as it can on every machine.

    `environment` are variables besides those of this process.
    """
    return browser_type.launch(
        executable_path=path,
        env={**os.environ, **environment},
        args=[
            "--no-sandbox",
            "--disable-gpu",
            "--disable-lcd-text",
            "--font-render-hinting=none",
            "--force-color-profile=srgb",
        ],
    )


@contextmanager
def chromium(path: str) -> Iterator[Any]:
    """The browser of the pictures, closed in the end."""
    from playwright import sync_api

    with sync_api.sync_playwright() as playwright:
        shown = launch(playwright.chromium, path)
        yield shown
        shown.close()


def take(
    browser: Any,
    path: Path,
    change: str = "",
    only: Callable[[str], bool] | None = None,
) -> dict[str, Picture]:
    """Takes the pictures of a page that `page()` wrote; `change` is more style.

    Raises RuntimeError for an error in the page, which would leave a view half drawn.
    """
    from playwright.sync_api import TimeoutError as Stalled

    taken: dict[str, Picture] = {}
    for width, theme in dict.fromkeys(shot[1:3] for shot in SHOTS):
        wanted = [s for s in SHOTS if s[1:3] == (width, theme)]
        wanted = [s for s in wanted if only is None or only(name_of(*s))]
        if not wanted:
            continue
        try:
            taken |= _take_all(browser, path, change, wanted)
        except Stalled:
            # On a busy machine Chromium at times draws no more frames after it has
            # changed the window for a tall picture. A new page draws again.
            taken |= _take_all(browser, path, change, wanted)
    return taken


def _take_all(
    browser: Any, path: Path, change: str, wanted: list[Any]
) -> dict[str, Picture]:
    """Takes the pictures of one width and theme in one page of the browser."""
    _, width, theme, _ = wanted[0]
    opened = browser.new_page(
        viewport={"width": width, "height": 1000},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
        offline=True,
    )
    with closing(opened):
        opened.emulate_media(media="print" if theme == "print" else "screen")
        opened.add_init_script(STILL)
        errors: list[str] = []
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.goto(path.as_uri())
        states = opened.locator("main>h2").all_text_contents()
        opened.wait_for_function(
            "n => document.querySelectorAll('.mj-live').length == n",
            arg=len(states),
            timeout=120_000,
        )
        opened.evaluate("document.fonts.ready.then(() => null)")
        if change:
            opened.add_style_tag(content=change)
        views = opened.locator(".mj-live").all()
        taken = {}
        # Telling steps first: the slider does not come back to them by itself.
        for shot in sorted(wanted, key=lambda shot: shot[3] is not None):
            view = views[states.index(shot[0])]
            view.evaluate(
                "made => {document.querySelector('.seen')?.classList.remove('seen');"
                "made.closest('main>section').classList.add('seen')}"
            )
            if shot[3] is not None:
                slider = view.locator("input[type=range]")
                slider.evaluate(
                    "(made, part) => {made.value = Math.round(part * made.max);"
                    "made.dispatchEvent(new Event('input'))}",
                    shot[3],
                )
            data = view.screenshot(animations="disabled")
            image = Image.open(io.BytesIO(data)).convert("RGB")
            taken[name_of(*shot)] = Picture(view.evaluate(LAYOUT), image)
    if errors:
        raise RuntimeError(f"an error in the page of pictures: {errors[0]}")
    return taken


# ---- comparing ----------------------------------------------------------------------


def references() -> tuple[dict[str, Picture], str]:
    """Returns the pictures that were accepted, and the Chromium that took them."""
    written = json.loads((PICTURES / "layout.json").read_text(encoding="utf-8"))
    found = {}
    for name, lines in written["pictures"].items():
        image = Image.open(PICTURES / f"{name}.png").convert("RGB")
        found[name] = Picture([part_of(line) for line in lines], image)
    return found, written["chromium"]


def line_of(part: list[Any]) -> str:
    """Returns a part as a line of the layout file."""
    name, box, look, text = part
    return f"{name} | {' '.join(map(str, box))} | {look} | {text}"


def part_of(line: str) -> list[Any]:
    """Returns the part that `line_of` wrote."""
    name, box, look, text = line.split(" | ", 3)
    return [name, [int(x) for x in box.split()], look, text]


def differences(old: Picture, new: Picture, tolerance: Tolerance) -> list[str]:
    """Returns what differs between two pictures, in sentences; nothing if nothing."""
    return [
        *layout_differences(old.parts, new.parts, tolerance),
        *image_differences(old.image, new.image, tolerance),
    ]


def layout_differences(
    old: list[list[Any]], new: list[list[Any]], tolerance: Tolerance
) -> list[str]:
    """Compares parts: their order, text and colours exactly, their boxes nearly."""
    if [part[0] for part in old] != [part[0] for part in new]:
        gone = [p for p in map(line_of, old) if p not in set(map(line_of, new))]
        come = [p for p in map(line_of, new) if p not in set(map(line_of, old))]
        told = f"other parts: {len(old)} before, {len(new)} now"
        return [told, *(f"  - {p}" for p in gone[:3]), *(f"  + {p}" for p in come[:3])]
    found = []
    for before, after in zip(old, new, strict=True):
        if before[2:] != after[2:]:
            found.append(f"{line_of(before)}  became  {line_of(after)}")
            continue
        left, top, width, height = before[1]
        x, y, w, h = after[1]
        moved = max(
            abs(x - left),
            abs(y - top),
            abs(x + w - left - width),
            abs(y + h - top - height),
        )
        if moved > tolerance.box:
            found.append(f"moved by {moved}: {line_of(before)} to {after[1]}")
    return found[:6]


def from_afar(image: Image.Image, size: tuple[int, int]) -> np.ndarray:
    """Returns an image cut to `size`, averaged over squares of 4 by 4 pixels."""
    width, height = (side // 4 * 4 for side in size)
    pixels = np.asarray(image.crop((0, 0, width, height)), np.float32)
    return pixels.reshape(height // 4, 4, width // 4, 4, 3).mean(axis=(1, 3))


def image_differences(
    old: Image.Image, new: Image.Image, tolerance: Tolerance
) -> list[str]:
    """Compares images: their size nearly, their squares on average and one by one."""
    found = []
    if max(abs(a - b) for a, b in zip(old.size, new.size, strict=True)) > tolerance.box:
        found.append(f"the size was {old.size} and is {new.size}")
    width, height = (min(pair) for pair in zip(old.size, new.size, strict=True))
    apart = np.abs(from_afar(old, (width, height)) - from_afar(new, (width, height)))
    squares = float((apart.max(axis=2) > 24).mean())
    mean = float(apart.mean())
    if squares > tolerance.squares:
        found.append(f"{squares:.2%} of the image differs visibly")
    if mean > tolerance.mean:
        found.append(f"the image differs by {mean:.2f} of 255 on average")
    return found


def show_difference(name: str, old: Picture | None, new: Picture) -> None:
    """Writes the new picture, and old, new and where they differ side by side."""
    FAILED.mkdir(parents=True, exist_ok=True)
    new.image.save(FAILED / f"{name}.png")
    if old is None:
        return
    size = tuple(max(pair) for pair in zip(old.image.size, new.image.size, strict=True))
    sheet = Image.new("RGB", (3 * size[0] + 32, size[1]), (200, 160, 160))
    width, height = (
        min(pair) for pair in zip(old.image.size, new.image.size, strict=True)
    )
    both = [
        np.asarray(picture.image.crop((0, 0, width, height)), np.int16)
        for picture in (old, new)
    ]
    apart = 255 - np.minimum(255, 2 * np.abs(both[0] - both[1])).astype(np.uint8)
    shown = [old.image, new.image, Image.fromarray(apart)]
    for number, image in enumerate(shown):
        sheet.paste(image, (number * (size[0] + 16), 0))
    sheet.save(FAILED / f"{name}-difference.png")


# ---- accepting ----------------------------------------------------------------------


def small(image: Image.Image) -> Image.Image:
    """Returns an image in few colours, which makes a small file."""
    return image.quantize(96, dither=Image.Dither.NONE)


def accept() -> None:
    """Takes all pictures and writes those that are new or differ."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        raise SystemExit("pictures are taken with chromium, which is not here.")
    FAILED.mkdir(parents=True, exist_ok=True)
    file = FAILED / "page.html"
    file.write_text(page(), encoding="utf-8")
    with chromium(path) as browser:
        version = browser.version.partition(".")[0]
        taken = take(browser, file)
    old: dict[str, Picture] = {}
    if (PICTURES / "layout.json").exists():
        old, before = references()
        if before != version:
            old = {}
    written = 0
    for name, picture in taken.items():
        if name in old and not differences(old[name], picture, CLOSE):
            taken[name] = old[name]
            continue
        small(picture.image).save(PICTURES / f"{name}.png", optimize=True)
        written += 1
    for stale in PICTURES.glob("*.png"):
        if stale.stem not in taken:
            stale.unlink()
    lines = {name: [line_of(p) for p in taken[name].parts] for name in sorted(taken)}
    text = json.dumps(
        {"chromium": version, "pictures": lines}, indent=0, ensure_ascii=False
    )
    (PICTURES / "layout.json").write_text(text + "\n", encoding="utf-8")
    print(f"{written} of {len(taken)} pictures written to {PICTURES.relative_to(ROOT)}")
