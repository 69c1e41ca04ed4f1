"""How the elements of an array lie in memory: `Layout`, and with a sharding `Format`.

In JAX: `jax/_src/layout.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Layout:
    """The order of dimensions in memory, the slowest first, and how they are tiled.

    Row-major order of a matrix is (0, 1), column-major order (1, 0).
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0


@dataclass(frozen=True)
class Format:
    """A layout on the devices of a sharding; None where it is left open."""

    layout: Layout | None = None
    sharding: Any = None


def layout_of_xla(layout: Any) -> Layout:
    """The Layout that XLA chose for an argument or result of a program."""
    of_xla = layout._xla_layout()
    return Layout(
        tuple(reversed(of_xla.minor_to_major())),
        tuple(tuple(tile) for tile in of_xla.tiling()),
        of_xla.element_size_in_bits(),
    )
