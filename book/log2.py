"""The function on the book's front page."""

import minijax.numpy as jnp


def log2(x):
    print("tracing", x)
    return jnp.log(x) / jnp.log(2.0)
