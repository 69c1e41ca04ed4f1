"""Every item of the course is tried with right answers and with wrong ones."""

from minijax_lab import tiny_pieces
from tests.notebooks.census import census


def test_every_item_is_tried_often_enough():
    """The shipped solution and two others; four wrong answers."""
    items = census()
    kinds = [item.kind for item in items.values()]
    assert kinds.count("exercise") >= 96 and kinds.count("prediction") >= 118
    assert kinds.count("piece") == len(tiny_pieces.PIECES) >= 61
    assert kinds.count("puzzle") == 14
    for item in items.values():
        if item.kind == "piece":  # texts: the same one twice counts once
            item.right = [*{text.strip() for text in item.right}]
            item.wrong = [*{text.strip() for text in item.wrong}]
    few = {
        name: (len(item.right), len(item.wrong))
        for name, item in items.items()
        if len(item.right) < 3 or len(item.wrong) < 4
    }
    assert few == {}, f"right and wrong answers tried: {few}"
