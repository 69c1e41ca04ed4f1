"""Random indices of every form, read and written, against NumPy itself."""

import os
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax

# The examples; they are the same in each run.
COUNT = 120 if os.environ.get("MINIJAX_TEST_ALL") else 60
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


@st.composite
def entries(draw: Any, size: int, broadcast: tuple[int, ...]) -> Any:
    """An index entry for one axis of this size: integer, slice or array of integers."""
    kind = draw(st.sampled_from(["integer", "slice", "slice", "array", "mask"]))
    inside = st.integers(-size, size - 1)
    if kind == "integer":
        return draw(inside)
    if kind == "slice":
        bound = st.none() | st.integers(-size - 2, size + 2)
        step = st.none() | st.integers(-3, 3).filter(lambda n: n != 0)
        return slice(draw(bound), draw(bound), draw(step))
    if kind == "mask" and broadcast == (2,):
        # Two true entries, so that the mask goes with the other arrays.
        mask = np.zeros(size, bool)
        chosen = (
            draw(st.lists(inside, min_size=2, max_size=2, unique=True))
            if (size > 1)
            else [0, 0]
        )
        mask[np.asarray(chosen) % size] = True
        if mask.sum() == 2:
            return mask
    count = int(np.prod(broadcast, dtype=int))
    values = draw(st.lists(inside, min_size=count, max_size=count))
    return np.asarray(values, int).reshape(broadcast)


@st.composite
def programs(draw: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """A shape and an index that fits it, with an ellipsis and new axes at times."""
    shape = draw(SHAPES)
    broadcast = draw(st.sampled_from([(2,), (1,), (2, 2), (1, 2)]))
    used = draw(st.integers(0, len(shape)))
    index: list[Any] = []
    with_ellipsis = draw(st.booleans())
    split = draw(st.integers(0, used)) if with_ellipsis else used
    axes = [*range(split), *range(len(shape) - (used - split), len(shape))]
    for position, axis in enumerate(axes):
        if with_ellipsis and position == split:
            index.append(Ellipsis)
        if draw(st.integers(0, 4)) == 0:
            index.append(None)
        index.append(draw(entries(shape[axis], broadcast)))
    if with_ellipsis and split == used:
        index.append(Ellipsis)
    return shape, tuple(index)


@settings(max_examples=COUNT, deadline=None, derandomize=True)
@given(programs())
def test_reading_and_writing_are_numpys(program) -> None:
    shape, index = program
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    expected = array[index]
    x = minijax.numpy.asarray(array)
    result = x[index]
    assert result.shape == np.shape(expected)
    assert np.array_equal(np.asarray(result), expected)

    written = array.copy()
    written[index] = -1
    assert np.array_equal(np.asarray(x.at[index].set(-1)), written)

    counted = np.zeros_like(array)
    np.add.at(counted, index, 1)
    zeros = minijax.numpy.zeros_like(x)
    assert np.array_equal(np.asarray(zeros.at[index].add(1)), counted)
