"""A traced value where a plain number must stand: the exception classes of jax, and
messages that say what to do."""

from typing import Any

import jax
import numpy as np
import pytest

import minijax
import minijax.image
from tests.oracle.oracle import assert_same

X = np.arange(6, dtype=np.float32).reshape(2, 3)

# Programs of x and of a traced integer n.
TRACED = {
    "reshape": lambda np, x, n: np.reshape(x, (n, 3)),
    "reshape int": lambda np, x, n: np.reshape(x, n),
    "resize": lambda np, x, n: np.resize(x, (n, 3)),
    "broadcast_to": lambda np, x, n: np.broadcast_to(x, (n, 2, 3)),
    "expand_dims": lambda np, x, n: np.expand_dims(x, n),
    "squeeze": lambda np, x, n: np.squeeze(x, n),
    "moveaxis": lambda np, x, n: np.moveaxis(x, n, 0),
    "transpose": lambda np, x, n: np.transpose(x, (n, 0)),
    "concatenate": lambda np, x, n: np.concatenate([x, x], axis=n),
    "stack": lambda np, x, n: np.stack([x, x], axis=n),
    "split": lambda np, x, n: np.split(x, n),
    "split at": lambda np, x, n: np.split(x, [n]),
    "tile": lambda np, x, n: np.tile(x, n),
    "repeat": lambda np, x, n: np.repeat(x, n),
    "pad": lambda np, x, n: np.pad(x, n),
    "flip": lambda np, x, n: np.flip(x, n),
    "roll axis": lambda np, x, n: np.roll(x, 1, n),
    "take": lambda np, x, n: np.take(x, 0, axis=n),
    "insert axis": lambda np, x, n: np.insert(x, 0, 1, axis=n),
    "delete": lambda np, x, n: np.delete(x, n, axis=0),
    "nonzero": lambda np, x, n: np.nonzero(x),
    "nonzero size": lambda np, x, n: np.nonzero(x, size=n),
    "flatnonzero": lambda np, x, n: np.flatnonzero(x),
    "argwhere": lambda np, x, n: np.argwhere(x),
    "where": lambda np, x, n: np.where(x > 0),
    "unique": lambda np, x, n: np.unique(x),
    "union1d": lambda np, x, n: np.union1d(x, x),
    "bincount": lambda np, x, n: np.bincount(n[None]),
    "mask": lambda np, x, n: x[x > 0],
    "slice": lambda np, x, n: x[:n],
    "slice step": lambda np, x, n: x[::n],
    "tensordot": lambda np, x, n: np.tensordot(x, x, n),
    "triu_indices": lambda np, x, n: np.triu_indices(n),
    "diag_indices": lambda np, x, n: np.diag_indices(n),
    "unravel_index": lambda np, x, n: np.unravel_index(n, (2, 3)),
    "choose": lambda np, x, n: np.choose(n, [x, x]),
    "compress": lambda np, x, n: np.compress(x[0] > 0, x, 1),
    "histogram bins": lambda np, x, n: np.histogram(x, bins=n),
    "where one": lambda np, x, n: np.where(x, x),
    "if": lambda np, x, n: x if x[0, 0] > 0 else -x,
    "range": lambda np, x, n: [x[i] for i in range(n)],
}

# The same for arguments that are static for jit. JAX says that they cannot be hashed
# (ValueError); minijax says that they must be known.
STATIC = {
    "swapaxes": lambda np, x, n: np.swapaxes(x, n, 0),
    "rot90": lambda np, x, n: np.rot90(x, n),
    "sort": lambda np, x, n: np.sort(x, axis=n),
    "argsort": lambda np, x, n: np.argsort(x, axis=n),
    "diff": lambda np, x, n: np.diff(x, n),
    "unstack": lambda np, x, n: np.unstack(x, axis=n),
    "norm axis": lambda np, x, n: np.linalg.norm(x, axis=n),
    "matrix_power": lambda np, x, n: np.linalg.matrix_power(x[:, :2], n),
}

# What is no array at all, or has the wrong shape.
WRONG = {
    "list": lambda np, x: np.sort([3, 1]),
    "list to dot": lambda np, x: np.dot(x, [1, 2, 3]),
    "list to where": lambda np, x: np.where([True], 1, 2),
    "string": lambda np, x: np.reshape("abc", (3,)),
    "None": lambda np, x: np.transpose(None),
    "None in list": lambda np, x: np.concatenate([x, None]),
    "object": lambda np, x: np.ravel(object()),
    "dict": lambda np, x: np.sort({}),
    "dot shapes": lambda np, x: np.dot(x, x),
    "matmul shapes": lambda np, x: x @ x,
    "where shapes": lambda np, x: np.where(x > 0, x, x.T),
    "stack shapes": lambda np, x: np.stack([x, x.T]),
    "concatenate shapes": lambda np, x: np.concatenate([x, x.T]),
    "hstack ranks": lambda np, x: np.hstack([x, x[0]]),
    "einsum sizes": lambda np, x: np.einsum("ij,ij", x, x.T),
    "tensordot sizes": lambda np, x: np.tensordot(x, x, 1),
    "take_along_axis sizes": lambda np, x: np.take_along_axis(x, x[:1].astype(int), 1),
    "axis": lambda np, x: np.sort(x, axis=2),
    "axis float": lambda np, x: np.sort(x, axis=1.0),
    "axis string": lambda np, x: np.flip(x, "x"),
    "float shape": lambda np, x: np.reshape(x, (2.0, 3)),
    "negative shape": lambda np, x: np.broadcast_to(x, (-1, 2, 3)),
    "split zero": lambda np, x: np.split(x, 0),
    "split axis": lambda np, x: np.array_split(x, 2, axis=3),
    "swapaxes": lambda np, x: np.swapaxes(x, 0, 2),
    "mean axis": lambda np, x: np.mean(x, axis=2),
    "squeeze float": lambda np, x: np.squeeze(x, axis=1.5),
    "bins": lambda np, x: np.histogram(x, bins="auto"),
}

# Words of minijax's message; the exception is of JAX's class.
SAID = {
    "bins must be a number >= 0": lambda np, x: np.histogram(x, bins=-1),
    "step that is not 0": lambda np, x: np.arange(0, 4, 0),
    "give finite numbers": lambda np, x: np.arange(0.0, float("inf")),
    "axis 7 is out of bounds": lambda np, x: np.linspace(0, x, 3, axis=7),
    "axis 3 is out of bounds for shape": lambda np, x: np.fft.fftshift(x, axes=3),
    "must be an integer, got 'a'": lambda np, x: np.fft.ifftshift(x, axes="a"),
    "n or s of jax.numpy.fft.fft must be an int": lambda np, x: np.fft.fft(x, n=1.5),
    "axes must be a tuple, got 7": lambda np, x: np.fft.fft2(x, axes=7),
    "an axis must be an integer": lambda np, x: np.argmax(x, axis=x),
}


@pytest.mark.parametrize("name", TRACED)
def test_traced_numbers_raise_as_in_jax(name: str) -> None:
    def program(library: Any) -> Any:
        def function(x: Any, n: Any) -> Any:
            return TRACED[name](library.numpy, x, n)

        return library.jit(function)(X, 2)

    assert_same(program, minijax, jax)


@pytest.mark.parametrize("name", STATIC)
def test_traced_static_arguments_say_what_to_do(name: str) -> None:
    def program(library: Any) -> None:
        def function(x: Any, n: Any) -> Any:
            return STATIC[name](library.numpy, x, n)

        library.jit(function)(X, 2)

    with pytest.raises((TypeError, ValueError), match="static_argnums"):
        program(minijax)
    with pytest.raises((TypeError, ValueError)):
        program(jax)


@pytest.mark.parametrize("words", SAID)
def test_an_exception_of_jax_with_more_words(words: str) -> None:
    with pytest.raises(Exception) as theirs:
        SAID[words](jax.numpy, jax.numpy.asarray(X))
    with pytest.raises(theirs.type, match=words):
        SAID[words](minijax.numpy, minijax.numpy.asarray(X))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_raise_as_in_jax(name: str) -> None:
    def program(library: Any) -> Any:
        return WRONG[name](library.numpy, library.numpy.asarray(X))

    assert_same(program, minijax, jax)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda: minijax.lax.integer_pow(X, 1.5), "y must be an integer, got 1.5"),
        (lambda: minijax.numpy.histogram(X, bins="auto"), "bins is a number, or"),
        (lambda: minijax.numpy.array_split(X, 0), "parts must be positive, got 0"),
        (lambda: minijax.numpy.swapaxes(X, 0, 2), "axis 2 is out of bounds for shape"),
        (lambda: minijax.numpy.sum(X, axis=1.5), "an axis must be an integer"),
        (lambda: minijax.numpy.linspace(0, 1, 2.5), "'num' argument of jnp.linspace"),
        (lambda: minijax.image.resize(X, (2.5, 2), "linear"), "a dimension 2.5"),
        (lambda: minijax.ops.segment_sum(X[0], X[0].astype(int), 2.5), "an integer, g"),
        (lambda: minijax.lax.exp(X, accuracy=1.5), "1.5 is no lax.AccuracyMode"),
        (lambda: minijax.lax.scan(lambda c, x: (c, x), 0, X, unroll="a"), "`unroll`"),
    ],
)
def test_messages_name_what_was_wrong(program, words: str) -> None:
    with pytest.raises(Exception) as error:
        program()
    assert words in str(error.value)
