"""The picture on README's first screen: `see.grad` of README's function, as SVG.

    python book/readme_picture.py

writes `book/_static/grad_light.svg` and `grad_dark.svg`. A test makes them again and
compares.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import minijax.numpy as jnp
import minijax_widgets as see

STATIC = Path(__file__).resolve().parent / "_static"


def loss(w, b, x):
    hidden = jnp.tanh(x @ w + b)
    return jnp.sum(hidden * hidden)


def pictures() -> dict[str, str]:
    """Returns the picture's files by name: for a light page, and for a dark one."""
    ramps = [np.linspace(-2, 2, n, dtype=np.float32) for n in (64, 256, 128)]
    w, b = np.outer(ramps[0], ramps[1]) / 8, ramps[1]
    x = np.outer(ramps[2], np.cos(ramps[0])) / 8
    view = see.grad(loss, w, b, x, argnums=(0, 1))
    return {
        "grad_light.svg": view.to_svg(),
        "grad_dark.svg": view.to_svg(dark=True),
    }


if __name__ == "__main__":
    for name, text in pictures().items():
        (STATIC / name).write_text(text, encoding="utf-8")
