"""Every item of the course is tried with right answers and with wrong ones."""

import pytest

from tests.notebooks.census import census

ITEMS = census()


def test_the_course_has_its_items():
    kinds = [item.kind for item in ITEMS.values()]
    assert kinds.count("exercise") >= 88 and kinds.count("prediction") >= 115
    assert kinds.count("piece") >= 35 and kinds.count("puzzle") == 14


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_is_tried_often_enough(name):
    """The shipped solution and two others; four wrong answers."""
    item = ITEMS[name]
    assert len(item.right) >= 3, f"{name}: {len(item.right)} right answers are tried"
    assert len(item.wrong) >= 4, f"{name}: {len(item.wrong)} wrong answers are tried"
