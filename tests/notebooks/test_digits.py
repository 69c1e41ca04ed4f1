"""Drawings of digits: characters become an image, and mistakes a sentence."""

import numpy as np
import pytest

from minijax_lab import digits

ROWS = ["........", "..####..", ".....#..", "...##+..", "......#.", ".....##."]


def test_a_drawing_is_an_image():
    text = "\n".join([*ROWS, " . . # # # . . . ", "........"])
    image = digits.drawn(f"\n{text}\n")
    assert image.shape == (64,) and image.dtype == np.float32
    square = image.reshape(8, 8)
    assert square[3].tolist() == [0, 0, 0, 1, 1, 0.5, 0, 0]
    assert square[6].tolist() == [0, 0, 1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("\n".join(ROWS), "has 8 rows, and this one has 6"),
        ("\n".join(["...x...."] * 8), "row 1 has 'x'; draw with ., [+], #"),
        ("\n".join(["........"] * 7 + ["..."]), "row 8 has 3 characters"),
    ],
)
def test_a_wrong_drawing_is_a_sentence(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        digits.drawn(text)
