"""jaxtyping: annotations that are checked when a function is called."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, jaxtyped


@jaxtyped(typechecker=None)
def f(x: Float[Array, "n m"], y: Int[Array, "n"]) -> Float[Array, "m"]:  # noqa: F722, F821
    print(isinstance(x, Float[Array, "n m"]), isinstance(y, Int[Array, "n"]))
    return (x * y[:, None]).sum(0)


print(jax.jit(f)(jnp.ones((3, 2)), jnp.arange(3)))
print(
    isinstance(jnp.ones(3), Float[Array, "a b"]),
    isinstance(jax.random.key(0), PRNGKeyArray),
)
print(isinstance({"a": jnp.ones(2)}, PyTree[Float[Array, " k"]]))
