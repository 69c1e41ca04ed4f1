"""Attention against jax's, for grouped heads, masks, biases, lengths and windows."""

import jax
import numpy as np
import pytest

import minijax

RANDOM = np.random.RandomState(0)
B, T, S, N, K, H = 2, 5, 6, 4, 2, 3
QUERY = RANDOM.randn(B, T, N, H).astype(np.float32)
KEY = RANDOM.randn(B, S, K, H).astype(np.float32)
VALUE = RANDOM.randn(B, S, K, H).astype(np.float32)
BIAS = RANDOM.randn(B, N, T, S).astype(np.float32)
MASK = RANDOM.rand(B, 1, T, S) > 0.3

OPTIONS = {
    "plain": {},
    "scale": {"scale": 0.3},
    "bias": {"bias": BIAS},
    "bias-for-all-heads": {"bias": BIAS[:1, :1]},
    "mask": {"mask": MASK},
    "causal": {"is_causal": True},
    "window": {"local_window_size": 1},
    "two-sided-window": {"local_window_size": (2, 0), "is_causal": True},
    "lengths": {
        "query_seq_lengths": np.array([5, 3], np.int32),
        "key_value_seq_lengths": np.array([2, 6], np.int32),
    },
    "residual": {"return_residual": True, "mask": MASK},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_values_and_gradients(name):
    def program(library):
        def attend(q, k, v):
            return library.nn.dot_product_attention(q, k, v, **OPTIONS[name])

        def loss(q, k, v):
            return sum((x**2).sum() for x in library.tree.leaves(attend(q, k, v)))

        gradients = library.jit(library.grad(loss, (0, 1, 2)))(QUERY, KEY, VALUE)
        return library.tree.leaves((attend(QUERY, KEY, VALUE), gradients))

    for ours, theirs in zip(program(minijax), program(jax), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(
            np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-5
        )


def test_without_a_batch_axis_and_in_half_precision():
    def program(library):
        half = [x[0].astype(library.numpy.bfloat16) for x in (QUERY, KEY, VALUE)]
        return library.nn.dot_product_attention(*half)

    ours, theirs = program(minijax), program(jax)
    assert ours.shape == theirs.shape == (T, N, H)
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(
        np.asarray(ours, np.float32), np.asarray(theirs, np.float32), atol=0.05
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (QUERY, KEY, VALUE[:, :3]),
        (QUERY[..., :2], KEY, VALUE),
        (QUERY[:, :, :3], KEY, VALUE),
        (QUERY, KEY, VALUE, None, BIAS),
    ],
)
def test_same_exception(arguments):
    for library in (minijax, jax):
        with pytest.raises(ValueError):
            library.nn.dot_product_attention(*arguments)


def test_unknown_implementation():
    with pytest.raises(ValueError, match="Unsupported"):
        minijax.nn.dot_product_attention(QUERY, KEY, VALUE, implementation="tpu")
    with pytest.raises(RuntimeError, match="cuDNN"):
        minijax.nn.dot_product_attention(QUERY, KEY, VALUE, implementation="cudnn")
