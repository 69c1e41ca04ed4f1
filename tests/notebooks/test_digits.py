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


def test_what_is_drawn_is_moved_and_stretched():
    drawing = pytest.importorskip("minijax_lab.drawing")
    bitmap = np.zeros((32, 32), bool)
    bitmap[20:24, 3:5] = True
    image = drawing.fitted(bitmap).reshape(8, 8)
    # Twice as high as wide: the whole height, and the four columns in the middle.
    assert image[:, 2:6].min() == 1 and image.sum() == 32
    assert image.dtype == np.float32


def test_a_pad_asks_the_network_at_each_stroke():
    drawing = pytest.importorskip("minijax_lab.drawing")
    asked = []

    def scores(image):
        asked.append(image)
        return np.arange(10.0) if image.sum() > 40 else image

    pad = digits.pad(scores)
    assert pad.said == "draw a digit" and not asked
    pad.ink = "1" * 1024
    assert (pad.said, pad.answers) == ("it says 9", 1)
    assert sum(pad.probabilities) == pytest.approx(1) and sum(pad.image) == 64
    pad.ink = "1" + "0" * 1022 + "1"
    assert "ValueError: ten scores are needed" in pad.said and not pad.probabilities
    pad.ink = drawing.BLANK
    assert pad.said == "draw a digit" and len(asked) == 2
    bundle, _ = pad._repr_mimebundle_()
    assert bundle["text/plain"] == drawing.NOTE and drawing.NOTE in bundle["text/html"]
