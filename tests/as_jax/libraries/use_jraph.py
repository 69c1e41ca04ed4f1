"""jraph: a graph network's step on a padded batch of graphs."""

import jax
import jax.numpy as jnp
import jraph

graph = jraph.GraphsTuple(
    n_node=jnp.array([3]),
    n_edge=jnp.array([4]),
    nodes=jnp.arange(6.0).reshape(3, 2),
    edges=jnp.ones((4, 1)),
    senders=jnp.array([0, 1, 2, 0]),
    receivers=jnp.array([1, 2, 0, 2]),
    globals=jnp.zeros((1, 1)),
)
graph = jraph.pad_with_graphs(jraph.batch([graph, graph]), 8, 10, 3)
w = jax.random.normal(jax.random.key(0), (6, 2))


def network(w):
    net = jraph.GraphNetwork(
        update_edge_fn=lambda e, s, r, g: (
            e + jnp.tanh(s.sum(-1, keepdims=True) - r[:, :1])
        ),
        update_node_fn=lambda n, s, r, g: jnp.tanh(
            jnp.concatenate([n, n, s, r], -1) @ w
        ),
    )
    return net(graph).nodes


print(network(w))
print(jax.grad(lambda w: (network(w) ** 2).sum())(w))
