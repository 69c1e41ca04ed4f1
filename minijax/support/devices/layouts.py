"""How the elements of an array lie in memory: `Layout`, and with a sharding `Format`.

An array usually lies in row-major order. One that does not says so in its `_placed`: a
sharding with a `layout` of its own, made by `with_layout`. XLA does not compare the
layouts of arguments with those of a program, so `compile/placing.py` does.

In JAX: `jax/_src/layout.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from minijax.core import errors
from minijax.core.runtime import Sharding


class _Auto:
    """The class of `Layout.AUTO`: the compiler chooses."""

    def __repr__(self) -> str:
        return "AUTO"


@dataclass(frozen=True)
class Layout:
    """The order of dimensions in memory, the slowest first, and how they are tiled.

    Row-major order of a matrix is (0, 1), column-major order (1, 0).
    """

    AUTO: ClassVar[_Auto] = _Auto()

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))
        if self.tiling is not None:
            object.__setattr__(self, "tiling", tuple(map(tuple, self.tiling)))

    def update(self, **changes: Any) -> Layout:
        """The same layout with some of its fields changed."""
        return replace(self, **changes)

    def check(self, shape: Sequence[int], what: str) -> None:
        """ValueError unless arrays of this shape can lie so; the compiler tiles."""
        if sorted(self.major_to_minor) != list(range(len(shape))):
            raise errors.value_error(
                f"{what} is incompatible with its layout annotation {self}: "
                f"major_to_minor must name each of the {len(shape)} axes of shape "
                f"{tuple(shape)} once."
            )
        if self.tiling:
            raise errors.value_error(
                f"{what} takes an order of dimensions, got {self}: the tiles are the "
                "compiler's choice. Leave `tiling` out."
            )


@dataclass(frozen=True)
class Format:
    """A layout on the devices of a sharding; None where it is left open."""

    layout: Layout | _Auto | None = None
    sharding: Any = None

    def __post_init__(self) -> None:
        kinds = Layout | _Auto | None, Sharding | None
        if not all(map(isinstance, (self.layout, self.sharding), kinds)):
            raise TypeError(
                "Format takes a Layout, Layout.AUTO or None, and a sharding or None; "
                f"got {self.layout!r} and {self.sharding!r}."
            )
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(
                f"Format got {self.layout} without a sharding. Say on which devices "
                "the array lies: `Format(layout, x.sharding)`."
            )


def layout_of_xla(layout: Any) -> Layout:
    """The Layout that XLA chose for an argument or result of a program."""
    of_xla = layout._xla_layout()
    return Layout(
        tuple(reversed(of_xla.minor_to_major())),
        tuple(tuple(tile) for tile in of_xla.tiling()),
        of_xla.element_size_in_bits(),
    )


def unusual(layout: Any) -> Layout | None:
    """The order of dimensions alone; None if it is row-major or not given."""
    order = getattr(layout, "major_to_minor", ())
    return None if order == tuple(range(len(order))) else Layout(order)


@functools.lru_cache(maxsize=4096)
def with_layout(sharding: Any, layout: Layout | None, committed: bool = True) -> Any:
    """A sharding that equals the given one and also has a layout.

    If `committed` is False, it also has a platform, as a device has.
    """
    new = sharding.with_memory_kind(sharding.memory_kind)
    new.layout = layout
    if not committed:
        new.platform = next(iter(sharding.device_set)).platform
    return new
