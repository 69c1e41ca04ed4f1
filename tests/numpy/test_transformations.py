"""jit, vmap, grad and jvp of functions that index, move, join, contract and sort."""

import os
from typing import Any

import jax
import numpy as np
import pytest

import minijax
from tests.numpy.programs import M
from tests.oracle.oracle import assert_same

pytestmark = pytest.mark.long

FUNCTIONS = {
    "x[1]": lambda np, x: x[1],
    "x[::-1, 1:]": lambda np, x: x[::-1, 1:],
    "x[array]": lambda np, x: x[np.array([2, 0, 2])],
    "x[array, array]": lambda np, x: x[np.array([2, 0]), np.array([1, 1])],
    "x[0, array, None]": lambda np, x: x[0, np.array([1, -1]), None],
    "x[traced]": lambda np, x: x[np.argmax(x[:, 0])],
    "x[:, traced]": lambda np, x: x[:, np.argsort(x[0])],
    "set": lambda np, x: x.at[1:, ::2].set(x[0, 0]),
    "add": lambda np, x: x.at[np.array([0, 0, 1])].add(2 * x),
    "multiply": lambda np, x: x.at[1].multiply(3.0),
    "max": lambda np, x: x.at[:, 0].max(2.0),
    "get": lambda np, x: x.at[np.array([0, 9])].get(mode="fill", fill_value=0.0),
    "reshape": lambda np, x: np.reshape(x, (2, -1), order="F"),
    "transpose": lambda np, x: np.transpose(x),
    "broadcast_to": lambda np, x: np.broadcast_to(x[:1], (5, 4)),
    "flip, rot90": lambda np, x: np.rot90(np.flip(x, 0)),
    "roll": lambda np, x: np.roll(x, 1, axis=1),
    "roll traced": lambda np, x: np.roll(x, np.argmax(x[0]), axis=1),
    "concatenate": lambda np, x: np.concatenate([x, x[:1], 2 * x]),
    "stack": lambda np, x: np.stack([x, x * x], axis=1),
    "split": lambda np, x: np.split(x, [1, 3], axis=1)[1],
    "tile": lambda np, x: np.tile(x, (2, 1)),
    "repeat": lambda np, x: np.repeat(x, 2, axis=0),
    "pad": lambda np, x: np.pad(x, 1, constant_values=2.0),
    "pad reflect": lambda np, x: np.pad(x, ((0, 2), (1, 1)), "reflect"),
    "dot": lambda np, x: np.dot(x, x[0]),
    "matmul": lambda np, x: np.matmul(x, x.T),
    "tensordot": lambda np, x: np.tensordot(x, x, axes=([0], [0])),
    "einsum": lambda np, x: np.einsum("ij,kj,k->i", x, x, x[:, 0]),
    "einsum diagonal": lambda np, x: np.einsum("ii->i", x[:, :3]),
    "vecdot": lambda np, x: np.vecdot(x, x[::-1]),
    "outer, kron": lambda np, x: np.kron(np.outer(x[0], x[1]), x[0]),
    "cross": lambda np, x: np.cross(x[:, :3], x[:, 1:]),
    "trace": lambda np, x: np.trace(x, offset=1),
    "norm": lambda np, x: np.linalg.norm(x + 1, axis=1),
    "norm 3": lambda np, x: np.linalg.norm(x + 1, ord=3, axis=1),
    "matrix_power": lambda np, x: np.linalg.matrix_power(x[:, :3], 3),
    "sort": lambda np, x: np.sort(x, axis=0),
    "sort down": lambda np, x: np.sort(x, descending=True),
    "partition": lambda np, x: np.partition(x, 1),
    "where": lambda np, x: np.where(x > 2, x * x, -x),
    "select": lambda np, x: np.select([x > 5, x > 1], [x, x * x], 3.0),
    "clip": lambda np, x: np.clip(x, 1.5, 6.5),
    "take": lambda np, x: np.take(x, np.array([3, 0, -1]), axis=1),
    "take_along_axis": lambda np, x: np.take_along_axis(x, np.argsort(x), axis=1),
    "compress": lambda np, x: np.compress(x[0] > 1, x, axis=1, size=2),
    "interp": lambda np, x: np.interp(x, np.arange(10.0), np.arange(10.0) ** 2),
    "diff": lambda np, x: np.diff(x, axis=0),
    "gradient": lambda np, x: np.gradient(x, axis=1),
    "trapezoid": lambda np, x: np.trapezoid(x, dx=0.5),
    "cov": lambda np, x: np.cov(x),
    "polyval": lambda np, x: np.polyval(x[0], x[1] / 4),
    "unique": lambda np, x: np.unique(x, size=6),
    "histogram": lambda np, x: np.histogram(x, bins=3, weights=x)[0],
    "nonzero": lambda np, x: x[np.nonzero(x > 2, size=3)],
}

BATCH = np.stack([M, M[::-1] + 0.25])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_jax(name: str) -> None:
    def program(library: Any, x: Any, batch: Any) -> Any:
        numpy = library.numpy

        def function(x: Any) -> Any:
            return FUNCTIONS[name](numpy, x)

        def loss(x: Any) -> Any:
            return numpy.sum(function(x) ** 2 * 0.1)

        def others(x: Any, batch: Any) -> Any:
            behind = numpy.moveaxis(batch, 0, 2)
            return (
                function(x),
                library.vmap(function, in_axes=2, out_axes=-1)(behind),
                library.vmap(library.grad(loss))(batch),
                library.jvp(function, (x,), (x,)),
            )

        # Two run operation by operation, in `make test-all` all of them.
        if not os.environ.get("MINIJAX_TEST_ALL"):
            others = library.jit(others)
        found = library.vmap(function)(batch), library.grad(loss)(x)
        return *found, library.jit(function)(x), others(x, batch)

    args = minijax.numpy.asarray(M + 0.125), minijax.numpy.asarray(BATCH)
    assert_same(program, minijax, jax, *args)
