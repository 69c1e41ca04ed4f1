"""`digits.pad(scores)`: draw a digit with the mouse, and see what a network says.

Needs the extra `minijax[lab]`; nothing else of the course imports this module. Who
cannot draw with a mouse writes a drawing as text, for `digits.drawn`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import numpy as np
import traitlets

from minijax_lab.digits import SIDE

# The paper has as many small squares as the bitmaps that the digits were made from:
# each of the 64 numbers of an image counts the ink in 4 by 4 of them.
SQUARES = 4 * SIDE
BLANK = "0" * SQUARES**2
NOTE = "A pad to draw a digit on, with the mouse; it needs a notebook that runs."

PAD = """
const SQUARES = 32, ZOOM = 7, BRUSH = 1.7;

function element(parent, name, style) {
  const made = document.createElement(name);
  made.style.cssText = style;
  parent.append(made);
  return made;
}

function render({ model, el }) {
  const row = "display:flex;gap:24px;align-items:center;flex-wrap:wrap;padding:6px 2px";
  const box = element(el, "div", row);
  const left = element(box, "div", "");
  const paper = element(left, "canvas",
    "display:block;border:1px solid currentColor;touch-action:none;cursor:crosshair");
  paper.width = paper.height = SQUARES * ZOOM;
  paper.setAttribute("role", "img");
  paper.setAttribute("aria-label", "paper to draw a digit on");
  const clear = element(left, "button", "margin-top:6px;padding:2px 10px");
  clear.textContent = "clear";
  const middle = element(box, "div", "");
  element(middle, "div", "margin-bottom:4px").textContent = "what the network gets";
  const small = element(middle, "canvas",
    "display:block;width:96px;height:96px;image-rendering:pixelated;" +
    "border:1px solid currentColor");
  small.width = small.height = 8;
  const right = element(box, "div", "min-width:230px");
  const said = element(right, "div", "font-weight:600;margin-bottom:4px");
  said.setAttribute("aria-live", "polite");
  const bars = [...Array(10).keys()].map((digit) => {
    const line = element(right, "div", "display:flex;gap:8px;align-items:center");
    element(line, "span", "width:1em").textContent = digit;
    const track = element(line, "div", "width:150px;height:12px");
    const bar = element(track, "div", "height:100%;width:0;background:#4a7fb5");
    return [bar, element(line, "span", "")];
  });

  let ink = model.get("ink").split("");
  let last = null;
  let sending = null;

  function send() {
    if (sending === null) {
      sending = setTimeout(() => {
        sending = null;
        model.set("ink", ink.join(""));
        model.save_changes();
      }, 60);
    }
  }
  function draw() {
    const pen = paper.getContext("2d");
    pen.clearRect(0, 0, paper.width, paper.height);
    pen.fillStyle = getComputedStyle(el).color;
    ink.forEach((mark, i) => {
      if (mark === "1") {
        const y = Math.floor(i / SQUARES);
        pen.fillRect((i % SQUARES) * ZOOM, y * ZOOM, ZOOM, ZOOM);
      }
    });
  }
  function dot(x, y) {
    for (let i = 0; i < SQUARES * SQUARES; i++) {
      const dx = (i % SQUARES) + 0.5 - x;
      const dy = Math.floor(i / SQUARES) + 0.5 - y;
      if (dx * dx + dy * dy < BRUSH * BRUSH) ink[i] = "1";
    }
  }
  function place(event) {
    const edge = paper.getBoundingClientRect();
    const scale = SQUARES / edge.width;
    return [(event.clientX - edge.left) * scale, (event.clientY - edge.top) * scale];
  }
  function line(to) {
    const from = last ?? to;
    const steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1])) + 1;
    for (let i = 0; i <= steps; i++) {
      const part = i / steps;
      dot(from[0] + part * (to[0] - from[0]), from[1] + part * (to[1] - from[1]));
    }
    last = to;
    draw();
    send();
  }
  paper.addEventListener("pointerdown", (event) => {
    paper.setPointerCapture(event.pointerId);
    last = null;
    line(place(event));
  });
  paper.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) line(place(event));
  });
  clear.addEventListener("click", () => {
    ink = Array(SQUARES * SQUARES).fill("0");
    draw();
    send();
  });

  function answer() {
    const image = model.get("image");
    const pen = small.getContext("2d");
    pen.clearRect(0, 0, 8, 8);
    pen.fillStyle = getComputedStyle(el).color;
    image.forEach((dark, i) => {
      pen.globalAlpha = dark;
      pen.fillRect(i % 8, Math.floor(i / 8), 1, 1);
    });
    said.textContent = model.get("said");
    const found = model.get("probabilities");
    const most = Math.max(...found);
    bars.forEach(([bar, number], digit) => {
      const part = found[digit] ?? 0;
      bar.style.width = `${100 * part}%`;
      bar.style.opacity = part === most ? 1 : 0.5;
      number.textContent = found.length ? part.toFixed(2) : "";
    });
  }
  model.on("change:answers", answer);
  draw();
  answer();
}

export default { render };
"""


class Pad(anywidget.AnyWidget):
    """Paper, and beside it what the network gets and says."""

    _esm = PAD
    ink = traitlets.Unicode(BLANK).tag(sync=True)
    image = traitlets.List([0.0] * SIDE**2).tag(sync=True)
    probabilities: Any = traitlets.List([]).tag(sync=True)
    said = traitlets.Unicode("draw a digit").tag(sync=True)
    # Counted up when all of the three above are new.
    answers = traitlets.Int(0).tag(sync=True)

    def __init__(self, scores: Callable[[np.ndarray], Any]) -> None:
        super().__init__()
        self.scores = scores
        self.observe(self.answer, names="ink")

    def answer(self, change: Any = None) -> None:
        """Asks the network about what stands on the paper."""
        bitmap = np.array(list(self.ink), "U1").reshape(SQUARES, SQUARES) == "1"
        self.image, self.probabilities, self.said = [0.0] * SIDE**2, [], "draw a digit"
        if bitmap.any():
            image = fitted(bitmap)
            self.image = image.tolist()
            try:
                found = probabilities(np.asarray(self.scores(image)))
            except Exception as error:
                self.said = f"{type(error).__name__}: {error}"
            else:
                self.probabilities = found.tolist()
                self.said = f"it says {np.argmax(found)}"
        self.answers += 1

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict, dict]:
        # An anywidget gives its data and metadata, or None where nothing can show it.
        data, metadata = super()._repr_mimebundle_(**options) or ({}, {})
        told = {"text/plain": NOTE, "text/html": f"<p><em>{NOTE}</em></p>"}
        return {**data, **told}, metadata


def fitted(bitmap: np.ndarray) -> np.ndarray:
    """Returns a drawing as an image: as high as the paper, in its middle.

    `bitmap` says of 32 by 32 squares which have ink; the result is 64 numbers from 0 to
    1. The digits of the course were made like this: moved, stretched and counted.
    """
    rows, columns = np.nonzero(bitmap.any(1))[0], np.nonzero(bitmap.any(0))[0]
    cut = bitmap[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = cut.shape
    scale = SQUARES / max(height, width)
    new_height, new_width = (max(1, round(scale * n)) for n in cut.shape)
    from_rows = np.arange(new_height) * height // new_height
    from_columns = np.arange(new_width) * width // new_width
    paper = np.zeros((SQUARES, SQUARES), np.float32)
    top, left = (SQUARES - new_height) // 2, (SQUARES - new_width) // 2
    stretched = cut[np.ix_(from_rows, from_columns)]
    paper[top : top + new_height, left : left + new_width] = stretched
    return paper.reshape(SIDE, 4, SIDE, 4).mean((1, 3)).ravel()


def probabilities(scores: np.ndarray) -> np.ndarray:
    """Returns the softmax of ten scores; ValueError for anything else."""
    if scores.shape != (10,):
        raise ValueError(f"ten scores are needed, and these have shape {scores.shape}")
    e = np.exp(scores - scores.max())
    return e / e.sum()
