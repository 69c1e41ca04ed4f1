"""Tables of characters that show how an array lies on devices.

In JAX: `jax/_src/debugging.py`, `visualize_sharding` and `inspect_array_sharding`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minijax.backend import hlo_parts
from minijax.backend.several_devices import sharding_callback
from minijax.core import errors, rules
from minijax.core.array import Array
from minijax.core.language import Primitive, Tracer, register
from minijax.core.state import state
from minijax.programs.callbacks.debug_callbacks import debug_effect
from minijax.programs.sharding.partitioned import told
from minijax.programs.sharding.placement import Placement
from minijax.support.devices.shardings import SingleDeviceSharding

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

    In JAX: `jax.debug.visualize_array_sharding`.
    """

    def draw(sharding: Any) -> None:
        visualize_sharding(arr.shape, sharding, **kwargs)

    inspect_array_sharding(arr, callback=draw)


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Calls `callback` with the sharding of an array.

    Inside of a traced function it is called when the program is compiled, with what the
    compiler decided.

    Raises:
      TypeError: if it is not an array.

    In JAX: `jax.debug.inspect_array_sharding`.
    """
    if isinstance(value, Tracer):
        inspect_sharding_p.bind(value, callback=_Inspection(callback))
    elif isinstance(value, Array):
        callback(value.sharding)
    else:
        raise errors.type_error(
            "inspect_array_sharding takes an array, got "
            f"{value!r} of type {type(value).__name__}."
        )


# ----------------------------------------------------------------------------------
# Inside of a program
# ----------------------------------------------------------------------------------


class _Inspection:
    """A callback, and the functions by which XLA's partitioner calls it.

    XLA has only their addresses, so they live as long as the equation.
    """

    def __init__(self, callback: Callable[[Any], None]) -> None:
        self.callback = callback
        self.of_xla: list[Callable[[Any], None]] = []

    def __repr__(self) -> str:
        return repr(self.callback)


inspect_sharding_p = register(Primitive("inspect_sharding", multiple_results=True))
inspect_sharding_p.without("meaning", "it has no results")
inspect_sharding_p.def_effectful_abstract_eval(
    lambda x, callback: ([], frozenset({debug_effect}))
)
rules.def_zero_jvp(inspect_sharding_p)


@inspect_sharding_p.def_impl
def _inspect_now(value: Any, *, callback: _Inspection) -> list:
    inspect_array_sharding(value, callback=callback.callback)
    return []


@inspect_sharding_p.def_batch
def _inspect_batch(axis_data: Any, args: Sequence, dims: Sequence, **params) -> tuple:
    return inspect_sharding_p.bind(*args, **params), []


@inspect_sharding_p.def_lowering
def _inspect_lowering(ctx: Any, value: Any, *, callback: _Inspection) -> list:
    place = state.lowered_for
    if place is None:
        raise NotImplementedError(
            "inspect_array_sharding: a program that is exported, or lowered for other "
            "machines, has no devices yet. Leave it out there."
        )
    if type(place) is not Placement:
        callback.callback(SingleDeviceSharding(place))
        return []

    def found(hlo_sharding: Any) -> None:
        whole = hlo_sharding.is_manual()
        callback.callback(place.replicated if whole else told(hlo_sharding, place))

    callback.of_xla.append(found)
    config, kind = sharding_callback(found), [value.type]
    hlo_parts.custom_call("InspectSharding", kind, [value], config, True, api_version=1)
    return []
