"""Comparing results with jax to the last bit, and printed jaxprs letter by letter."""

import jax
import numpy as np

import minijax
from minijax.support import element_types
from tests.golden.normalise import normalise, plain_numpy_scalars


def as_numpy(value):
    """The bits of an array of either library; keys as their words."""
    if isinstance(value, str):
        return value
    dtype = getattr(value, "dtype", None)
    if isinstance(dtype, element_types.PRNGKeyDType):
        value = minijax.random.key_data(value)
    elif dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value)


def assert_same_bits(ours, theirs):
    """Fails unless dtype, shape, weak type and every bit are equal."""
    left, right = as_numpy(ours), as_numpy(theirs)
    if isinstance(right, str):
        assert left == right
        return
    assert left.dtype == right.dtype
    assert left.shape == right.shape
    assert left.tobytes() == right.tobytes(), f"\n{left}\n{right}"
    assert getattr(ours, "weak_type", False) == getattr(theirs, "weak_type", False)


def jaxpr_text(jaxpr):
    """The text of a jaxpr without what differs between two runs."""
    with plain_numpy_scalars():
        return normalise(str(jaxpr))


def exception_class(function):
    """The name of the class of what `function()` raises, or None."""
    try:
        function()
    except Exception as error:
        return type(error).__name__
    return None
