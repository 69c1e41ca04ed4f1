"""Chex: assertions, a dataclass that is a tree, variants of a function."""

import chex
import jax
import jax.numpy as jnp


@chex.dataclass
class State:
    x: chex.Array
    n: int


state = jax.tree.map(lambda v: v * 2, State(x=jnp.arange(3.0), n=1))
print(state.x, state.n, jax.jit(lambda s: s.replace(n=s.n + 1))(state).n)
chex.assert_shape(state.x, (3,))
chex.assert_trees_all_close({"a": state.x}, {"a": state.x * 1})
chex.assert_tree_all_finite(state)
try:
    chex.assert_rank(state.x, 2)
except AssertionError as error:
    print(str(error).splitlines()[0])
chex.clear_trace_counter()


@jax.jit
@chex.assert_max_traces(n=1)
def once(x):
    return x + 1


print(once(1.0), once(2.0))
try:
    once(jnp.ones(2))
except AssertionError as error:
    print(str(error)[:60])
