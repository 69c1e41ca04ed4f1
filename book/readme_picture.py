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
    w, b = np.ones((64, 256), np.float32), np.ones(256, np.float32)
    view = see.grad(loss, w, b, np.ones((128, 64), np.float32), argnums=(0, 1))
    return {
        "grad_light.svg": view.to_svg(),
        "grad_dark.svg": view.to_svg(dark=True),
    }


if __name__ == "__main__":
    for name, text in pictures().items():
        (STATIC / name).write_text(text, encoding="utf-8")
