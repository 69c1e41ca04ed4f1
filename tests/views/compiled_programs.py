"""Thirty functions with arguments, for the tests of the compiler's views.

Elementwise chains, reductions, products, loops, branches, derivatives, batches, calls,
sorting, indexing, random numbers.
"""

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import lax

X = np.linspace(0.1, 2.0, 64, dtype=np.float32)
A = np.linspace(-1.0, 1.0, 96, dtype=np.float32).reshape(8, 12)
B = np.linspace(1.0, 2.0, 72, dtype=np.float32).reshape(12, 6)
KEY = np.array([0, 7], np.uint32)


def softmax(x):
    shifted = x - jnp.max(x)
    e = jnp.exp(shifted)
    return e / jnp.sum(e)


def layer_norm(x):
    mean = jnp.mean(x)
    centred = x - mean
    variance = jnp.mean(centred**2)
    return centred / jnp.sqrt(variance + 1e-5)


def chain(x):
    for _ in range(5):
        x = jnp.sin(x) * 2.0
    return x


def layer(w, x):
    y = x @ w
    y = y + 1.0
    return jnp.tanh(y)


def loss(w, x):
    y = layer(w, x)
    return jnp.sum(y**2)


def attention(q, k):
    scores = q @ k.T
    scores = scores / 3.0
    weights = minijax.nn.softmax(scores)
    return weights @ k


def rolled(x):
    def step(carry, row):
        carry = jnp.tanh(carry + row)
        return carry, carry * 2.0

    last, rows = lax.scan(step, jnp.float32(0), x)
    return rows + last


def repeated(x):
    def step(i, carry):
        return jnp.cos(carry) + x[i]

    total = lax.fori_loop(0, 5, step, x[0])
    return total * x


def until(x):
    y = lax.while_loop(lambda c: jnp.sum(c) < 1e3, lambda c: c * 1.5, x)
    return y - 1.0


def branches(x):
    large = x[0] > 0.5
    return lax.cond(large, lambda y: jnp.sin(y) + 1.0, lambda y: jnp.cos(y), x)


def switched(x):
    index = jnp.argmax(x) % 3
    return lax.switch(index, [jnp.sin, jnp.cos, lambda y: y * 3.0], x)


def nested(x):
    inner = minijax.jit(softmax)
    return inner(x) + inner(x * 2.0)


def ordered(x):
    y = jnp.sort(x)[::-1]
    places = jnp.argsort(y)
    return y + places


def indexed(x):
    y = x.at[3].set(0.0)
    y = y.at[jnp.array([1, 5, 1])].add(2.0)
    return y[::2] * y[1::2]


def noise(key):
    key = minijax.random.wrap_key_data(key)
    a = minijax.random.normal(key, (32,))
    return a * 2.0


def joined(a):
    b = jnp.concatenate([a, a * 2.0], axis=0)
    return jnp.transpose(b) + 1.0


def windows(x):
    y = jnp.cumsum(x)
    return y + lax.cumlogsumexp(x)


def convolved(x):
    y = jnp.convolve(x, x[:5])
    return jnp.maximum(y, 0.0)


def special(x):
    y = lax.erf_inv(x / 4.0)
    return y + lax.lgamma(x)


def converted(x):
    n = x.astype(jnp.int32)
    n = n % 3
    return jnp.where(n == 1, x, -x)


def einsum(a, b):
    c = jnp.einsum("ij,jk->ik", a, b)
    return c - jnp.mean(c, axis=0)


def checkpointed(x):
    f = minijax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))
    return jnp.sum(f(x) * x)


@minijax.custom_jvp
def cube(x):
    return x * x * x


@cube.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return cube(x), 3.0 * x * x * t


def with_a_rule(x):
    return jnp.sum(cube(x) + x)


W = B[:, :4]
PROGRAMS = {
    "softmax": (softmax, (X,)),
    "layer_norm": (layer_norm, (X,)),
    "chain": (chain, (X,)),
    "layer": (layer, (B, A)),
    "loss": (loss, (B, A)),
    "attention": (attention, (A, A)),
    "scan": (rolled, (X,)),
    "fori_loop": (repeated, (X,)),
    "while_loop": (until, (X,)),
    "cond": (branches, (X,)),
    "switch": (switched, (X,)),
    "nested jit": (nested, (X,)),
    "sort": (ordered, (X,)),
    "indexing": (indexed, (X,)),
    "random": (noise, (KEY,)),
    "concatenate": (joined, (A,)),
    "cumulative": (windows, (X,)),
    "convolve": (convolved, (X,)),
    "special": (special, (X,)),
    "convert": (converted, (X,)),
    "einsum": (einsum, (A, B)),
    "grad of loss": (minijax.grad(loss), (B, A)),
    "grad of softmax": (minijax.grad(lambda x: softmax(x)[0]), (X,)),
    "grad of scan": (minijax.grad(lambda x: jnp.sum(rolled(x))), (X,)),
    "grad of checkpoint": (minijax.grad(checkpointed), (X,)),
    "grad of custom_jvp": (minijax.grad(with_a_rule), (X,)),
    "vmap of softmax": (minijax.vmap(softmax), (A,)),
    "vmap of cond": (minijax.vmap(branches), (A,)),
    "jvp": (lambda x: minijax.jvp(chain, (x,), (x,)), (X,)),
    "vmap of grad": (minijax.vmap(minijax.grad(loss), (None, 0)), (B, A)),
}
