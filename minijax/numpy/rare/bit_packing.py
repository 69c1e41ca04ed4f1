"""Eight truth values in one byte, and back.

In JAX: `numpy/lax_numpy.py`, `packbits` and `unpackbits`.
"""

from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.numpy.promotion import ensure_arraylike
from minijax.numpy.shapes.creation import arange
from minijax.support import element_types


@jit(static_argnames=("axis", "bitorder"))
def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight elements along `axis` as the bits of one uint8; nonzero is one."""
    a = ensure_arraylike("packbits", a)
    if not element_types.isdtype(a.dtype, ("integral", "bool")):
        raise TypeError("Expected an input array of integer or boolean data type")
    a = lax.convert_element_type(lax.ne(a, np.zeros((), a.dtype)), np.uint8)
    a, axis = _axis_to_pack(a, axis)
    missing = -a.shape[-1] % 8
    if missing:
        edges = [(0, 0, 0)] * (a.ndim - 1) + [(0, missing, 0)]
        a = lax.pad(a, np.uint8(0), edges)
    a = lax.reshape(a, (*a.shape[:-1], a.shape[-1] // 8, 8))
    bits = lax.expand_dims(_bit_positions(bitorder), tuple(range(a.ndim - 1)))
    packed = (a << bits).sum(-1).astype(np.uint8)
    return packed.swapaxes(axis, -1)


@jit(static_argnames=("axis", "count", "bitorder"))
def unpackbits(
    a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of each uint8 as eight elements along `axis`, cut or filled to `count`.

    A negative `count` drops that many at the end.
    """
    a = ensure_arraylike("unpackbits", a)
    if a.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    bits = np.uint8(1) << _bit_positions(bitorder)
    a, axis = _axis_to_pack(a, axis)
    bits = lax.expand_dims(bits, tuple(range(a.ndim)))
    unpacked = ((lax.expand_dims(a, (a.ndim,)) & bits) > 0).astype(np.uint8)
    unpacked = lax.reshape(unpacked, (*a.shape[:-1], a.shape[-1] * 8))
    if count is not None and count > unpacked.shape[-1]:
        missing = count - unpacked.shape[-1]
        edges = [(0, 0, 0)] * (unpacked.ndim - 1) + [(0, missing, 0)]
        unpacked = lax.pad(unpacked, np.uint8(0), edges)
    elif count is not None:
        unpacked = unpacked[..., :count]
    return unpacked.swapaxes(axis, -1)


def _bit_positions(bitorder: str) -> Array:
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    positions = arange(8, dtype="uint8")
    return positions[::-1] if bitorder == "big" else positions


def _axis_to_pack(a: Array, axis: int | None) -> tuple[Array, int]:
    if axis is None:
        return lax.reshape(a, (a.size,)), 0
    return a.swapaxes(axis, -1), axis
