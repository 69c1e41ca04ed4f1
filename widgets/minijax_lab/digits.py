"""The handwritten digits of chapter 00: real images that come with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minijax import random

# How dark each character of a drawing is; blanks between them do not count.
DARKNESS = {".": 0.0, "+": 0.5, "#": 1.0}
SIDE = 8


class Digits(NamedTuple):
    """Images as rows of 64 numbers from 0 to 1, labels as numbers from 0 to 9."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load() -> Digits:
    """Returns scikit-learn's 1,797 digits, shuffled; a fifth (359) is held out."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.asarray(random.permutation(random.key(0), len(digits.target)))
    images = (digits.data[order] / 16).astype(np.float32)
    labels = digits.target[order].astype(np.int32)
    fifth = len(labels) // 5
    return Digits(images[fifth:], labels[fifth:], images[:fifth], labels[:fifth])


def drawn(text: str) -> np.ndarray:
    """Returns a drawing of 8 rows of 8 characters as an image: 64 numbers from 0 to 1.

    `.` is paper, `+` is grey and `#` is ink; blanks do not count. Raises ValueError.
    """
    rows = ["".join(line.split()) for line in text.strip().splitlines()]
    if len(rows) != SIDE:
        raise ValueError(f"a drawing has {SIDE} rows, and this one has {len(rows)}")
    for number, row in enumerate(rows, start=1):
        unknown = sorted(set(row) - set(DARKNESS))
        if unknown:
            raise ValueError(
                f"row {number} has {unknown[0]!r}; draw with {', '.join(DARKNESS)}"
            )
        if len(row) != SIDE:
            raise ValueError(
                f"row {number} has {len(row)} characters; each row has {SIDE}"
            )
    return np.array([DARKNESS[mark] for row in rows for mark in row], np.float32)


def pad(scores: Callable[[np.ndarray], Any]) -> Any:
    """Returns a pad to draw a digit on, which shows what `scores` makes of it.

    `scores` takes an image as `drawn` returns it, and gives ten scores. Raises
    ImportError without the extra `minijax[lab]`.
    """
    try:
        from minijax_lab.drawing import Pad
    except ImportError as error:
        raise ImportError(
            f"digits.pad needs {error.name}; install the course's extras with "
            "`pip install 'minijax[lab]'`, or write a drawing for digits.drawn."
        ) from None
    return Pad(scores)
