"""Tables of characters that show how an array lies on devices.

In JAX: `jax/_src/debugging.py`, `visualize_sharding` and `inspect_array_sharding`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minijax.core import errors
from minijax.core.array import Array
from minijax.core.language import Tracer

Span = tuple[int, int]


def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = False,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Prints a table of the pieces of an array, each with the devices that hold it.

    Args:
      shape: the array's shape, of one or two dimensions.
      sharding: how it is cut.
      use_color: must be False: the table is drawn in plain characters.
      scale: the height of a row of pieces, in lines.
      min_width: the least width of a piece, in characters.
      max_width: the greatest width of the table.
      color_map: must be None.

    Raises:
      ValueError: for another number of dimensions, and for colours.

    In JAX: `jax.debug.visualize_sharding`, which can colour the table.
    """
    if use_color or color_map is not None:
        raise errors.value_error(
            "visualize_sharding draws in plain characters: leave use_color and "
            "color_map out. In colours, and in a notebook: `see.placement(x)`."
        )
    shape = tuple(shape)
    if len(shape) not in (1, 2):
        raise errors.value_error(
            "`visualize_sharding` only works for shapes with 1 and 2 dimensions, and "
            f"the shape is {shape}. `see.placement(x)` draws any rank."
        )
    cells = _cells(shape, sharding)
    print(_table(cells, max(1, round(scale)), min_width, max_width))


def _cells(shape: tuple[int, ...], sharding: Any) -> dict[tuple[Span, Span], list]:
    """For each piece, as rows and columns, the devices that hold it."""
    found: dict[tuple[Span, Span], list] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        spans = [
            (at.start or 0, size if at.stop is None else at.stop)
            for at, size in zip(index, shape)
        ]
        rows, columns = spans if len(spans) == 2 else ((0, 1), spans[0])
        found.setdefault((rows, columns), []).append(device)
    return found


def _table(
    cells: Mapping[tuple[Span, Span], list], height: int, least: int, most: int
) -> str:
    rows = sorted({row for row, _ in cells})
    columns = sorted({column for _, column in cells})
    texts = {
        place: f"{devices[0].platform.upper()} {','.join(str(d.id) for d in devices)}"
        for place, devices in cells.items()
    }
    longest = max(map(len, texts.values())) + 2
    width = max(least, longest)
    if len(columns) * (width + 1) + 1 > most:
        width = max(longest, (most - 1) // len(columns) - 1)

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join(["─" * width] * len(columns)) + right

    lines = [rule("┌", "┬", "┐")]
    for number, row in enumerate(rows):
        if number:
            lines.append(rule("├", "┼", "┤"))
        for line in range(height):
            middle = line == (height - 1) // 2
            told = [
                (texts[row, column] if middle else "").center(width)
                for column in columns
            ]
            lines.append(f"│{'│'.join(told)}│")
    lines.append(rule("└", "┴", "┘"))
    return "\n".join(lines)


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Prints a table of the pieces of an array; see `visualize_sharding`.

    Raises:
      TypeError: if it is not an array.
      NotImplementedError: inside of a traced function whose types do not say how
        values are cut.

    In JAX: `jax.debug.visualize_array_sharding`.
    """

    def draw(sharding: Any) -> None:
        visualize_sharding(arr.shape, sharding, **kwargs)

    inspect_array_sharding(arr, callback=draw)


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Calls `callback` with the sharding of an array.

    Inside of a traced function the sharding is that of the value's type, where the axes
    of the mesh are Explicit.

    Raises:
      TypeError: if it is not an array.
      NotImplementedError: inside of a traced function whose types do not say how
        values are cut: there the compiler decides, later.

    In JAX: `jax.debug.inspect_array_sharding`, which also tells what the compiler
    decided.
    """
    if isinstance(value, Tracer):
        sharding = getattr(value.aval, "cut", None)
        if sharding is None:
            raise NotImplementedError(
                "inspect_array_sharding: while a function is traced, the type "
                f"{value.aval.str_short()} does not say how the value is cut; the "
                "compiler decides that later. `see.placement(f, *args)` shows it for "
                "each value of the compiled program; or use a mesh whose axes are "
                "Explicit."
            )
        callback(sharding)
        return
    if not isinstance(value, Array):
        raise errors.type_error(
            "inspect_array_sharding takes an array, got "
            f"{value!r} of type {type(value).__name__}."
        )
    callback(value.sharding)
