"""The kernels by which `tiny`'s `pallas_call` is scored, each also on whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TinyKernel:
    """A kernel for `pallas_call`, and the same on whole arrays.

    `kernel` gets a NumPy, `program_id` and `when`, and returns the function of refs;
    `specs` are (shape, index map) of each input and of the output.
    """

    kernel: Callable[..., Callable[..., None]]
    shape: tuple[int, ...]
    grid: tuple[int, ...]
    specs: tuple[tuple[Any, Any], ...]
    whole: Callable[..., Any]


def _doubled(np_: Any, program_id: Any, when: Any) -> Callable[..., None]:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 2.0

    return kernel


def _softmax(np_: Any, program_id: Any, when: Any) -> Callable[..., None]:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        e = np_.exp(x_ref[...] - np_.max(x_ref[...]))
        o_ref[...] = e / np_.sum(e)

    return kernel


def _numbered(np_: Any, program_id: Any, when: Any) -> Callable[..., None]:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + 10.0 * program_id(0) + program_id(1)

    return kernel


def _summed(axis: int) -> Callable[..., Callable[..., None]]:
    """Adds to the block of the output, which begins with zeros."""

    def make(np_: Any, program_id: Any, when: Any) -> Callable[..., None]:
        def kernel(*refs: Any) -> None:
            *ins, o_ref = refs

            @when(program_id(axis) == 0)
            def _() -> None:
                o_ref[...] = np_.zeros_like(o_ref[...])

            new = ins[0][...].sum(0) if len(ins) == 1 else ins[0][...] @ ins[1][...]
            o_ref[...] = o_ref[...] + new

        return kernel

    return make


# Pairs of rows in the order of the blocks; and each block's numbers.
_SWAPPED = np.arange(8).reshape(4, 2)[::-1].reshape(-1)
_NUMBERS = np.kron(np.array([[0, 1], [10, 11]]), np.ones((4, 2))).astype(np.float32)

KERNELS = {
    "doubled": TinyKernel(
        _doubled,
        (8, 4),
        (4,),
        (((2, 4), lambda i: (i, 0)), ((2, 4), lambda i: (3 - i, 0))),
        lambda m, x: m.dot(np.eye(8, dtype=np.float32)[_SWAPPED], x * 2.0),
    ),
    "softmax": TinyKernel(
        _softmax,
        (8, 4),
        (8,),
        (((1, 4), lambda i: (i, 0)),) * 2,
        lambda m, x: m.exp(x) / m.broadcast(m.sum(m.exp(x), 1), (8, 4), (0,)),
    ),
    "numbered": TinyKernel(
        _numbered,
        (8, 4),
        (2, 2),
        (((4, 2), lambda i, j: (i, j)),) * 2,
        lambda m, x: x + _NUMBERS,
    ),
    "columns": TinyKernel(
        _summed(0),
        (4,),
        (4,),
        (((2, 4), lambda i: (i, 0)), ((4,), lambda i: (0,))),
        lambda m, x: m.sum(x, 0),
    ),
    "product": TinyKernel(
        _summed(2),
        (8, 3),
        (2, 1, 2),
        (
            ((4, 2), lambda i, j, k: (i, k)),
            ((2, 3), lambda i, j, k: (k, j)),
            ((4, 3), lambda i, j, k: (i, j)),
        ),
        lambda m, x, w: m.dot(x, w),
    ),
}
