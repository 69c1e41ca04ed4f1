"""What the backward pass keeps, held against what real JAX says that it keeps."""

from __future__ import annotations

import math
from types import SimpleNamespace

import jax
import jax.numpy
import numpy as np
import pytest
from jax._src.ad_checkpoint import saved_residuals as jax_residuals

import minijax
import minijax.numpy
from minijax_lab.explain.residuals import residuals


def library(module):
    return SimpleNamespace(
        np=module.numpy,
        lax=module.lax,
        nn=module.nn,
        checkpoint=module.checkpoint,
        policies=module.checkpoint_policies,
        custom_vjp=module.custom_vjp,
        custom_jvp=module.custom_jvp,
        jit=module.jit,
        vmap=module.vmap,
    )


def product(m):
    return lambda x: m.np.sin(x) * x


def mlp(m):
    def loss(params, x, y):
        for w, b in params:
            x = m.np.tanh(x @ w + b)
        return ((x - y) ** 2).mean()

    return loss


def attention(m):
    def block(x, wq, wk, wv):
        q, k, v = x @ wq, x @ wk, x @ wv
        scores = m.nn.softmax(q @ k.T / 2.0)
        return (scores @ v).sum()

    return block


def layer_norm(m):
    def norm(x, gain, shift):
        mean = x.mean(-1, keepdims=True)
        var = ((x - mean) ** 2).mean(-1, keepdims=True)
        return ((x - mean) * m.lax.rsqrt(var + 1e-5) * gain + shift).sum()

    return norm


def rnn(m):
    def run(w, u, xs):
        def step(h, x):
            h = m.np.tanh(w @ h + u @ x)
            return h, h

        _, hs = m.lax.scan(step, m.np.zeros(4), xs)
        return (hs**2).sum()

    return run


def branches(m):
    def choose(x):
        return m.lax.cond(x.sum() > 0, m.np.sin, lambda y: y * y, x).sum()

    return choose


def own_backward(m):
    @m.custom_vjp
    def clipped(x):
        return m.np.exp(x)

    def forward(x):
        return m.np.exp(x), (x, m.np.exp(x))

    def backward(kept, ct):
        return (ct * kept[1] + 0.0 * kept[0],)

    clipped.defvjp(forward, backward)
    return lambda x: (clipped(x) * 3.0).sum()


def own_forward(m):
    @m.custom_jvp
    def log1pexp(x):
        return m.np.log(1.0 + m.np.exp(x))

    @log1pexp.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return log1pexp(x), (1 - 1 / (1 + m.np.exp(x))) * t

    return lambda x: log1pexp(x).sum()


def layer(m):
    return lambda x, w: m.np.sin(m.np.tanh(x @ w) @ w).sum()


def checkpointed(m):
    return m.checkpoint(layer(m))


def keeping_dots(m):
    return m.checkpoint(layer(m), policy=m.policies.dots_saveable)


def keeping_everything(m):
    return m.checkpoint(layer(m), policy=m.policies.everything_saveable)


def convolution(m):
    def net(x, w):
        y = m.lax.conv(x, w, (1, 1), "SAME")
        return (m.nn.relu(y) ** 2).sum()

    return net


def choice(m):
    return lambda x, y: m.np.where(x > 0, x * y, m.np.sin(x)).sum()


def cross_entropy(m):
    def loss(w, x, labels):
        logits = x @ w
        return -(m.nn.log_softmax(logits) * labels).sum(-1).mean()

    return loss


def running(m):
    return lambda x: (m.np.cumsum(x) * x).sum()


def sorting(m):
    return lambda x: (m.np.sort(x) ** 2).sum()


def jitted(m):
    return m.jit(lambda x, w: m.np.exp(m.np.sin(x @ w)).sum())


def inner_jit(m):
    inner = m.jit(lambda x: m.np.sin(x) * m.np.cos(x))
    return lambda x: (inner(x) * inner(2.0 * x)).sum()


def batched(m):
    return lambda x, w: m.vmap(lambda row: m.np.tanh(w @ row))(x).sum()


def ones(*shape):
    return np.linspace(0.1, 1.0, math.prod(shape), dtype=np.float32).reshape(shape)


FUNCTIONS = [
    (product, (np.float32(2.0),)),
    (mlp, ([(ones(3, 4), ones(4)), (ones(4, 2), ones(2))], ones(5, 3), ones(5, 2))),
    (attention, (ones(5, 4), ones(4, 4), ones(4, 4), ones(4, 4))),
    (layer_norm, (ones(3, 8), ones(8), ones(8))),
    (rnn, (ones(4, 4), ones(4, 3), ones(6, 3))),
    (branches, (ones(4),)),
    (own_backward, (ones(4),)),
    (own_forward, (ones(4),)),
    (checkpointed, (ones(3, 4), ones(4, 4))),
    (keeping_dots, (ones(3, 4), ones(4, 4))),
    (keeping_everything, (ones(3, 4), ones(4, 4))),
    (convolution, (ones(1, 2, 5, 5), ones(3, 2, 3, 3))),
    (choice, (ones(4), ones(4))),
    (cross_entropy, (ones(4, 3), ones(5, 4), ones(5, 3))),
    (running, (ones(6),)),
    (sorting, (ones(6),)),
    (jitted, (ones(3, 4), ones(4, 4))),
    (inner_jit, (ones(4),)),
    (batched, (ones(3, 4), ones(4, 4))),
]


@pytest.mark.parametrize(
    "make, args", FUNCTIONS, ids=lambda x: getattr(x, "__name__", "")
)
def test_residuals_are_those_of_jax(make, args):
    """As many values, arguments counted as JAX counts them, of as many bytes."""
    own = residuals(make(library(minijax)), *args)
    theirs = [
        (aval, source)
        for aval, source in jax_residuals(make(library(jax)), *args)
        if source != "from a literal"
    ]
    shapes = sorted((list(aval.shape), str(aval.dtype)) for aval, _ in theirs)
    assert sorted((r.shape, r.dtype) for r in own.residuals) == shapes
    total = sum(math.prod(aval.shape) * aval.dtype.itemsize for aval, _ in theirs)
    assert own.bytes + own.argument_bytes == total
    arguments = [
        source for _, source in theirs if source.startswith("from the argument")
    ]
    assert sum(r.origin == "argument" for r in own.residuals) == len(arguments)


def test_why_a_residual_is_kept():
    kept = residuals(product(library(minijax)), 2.0)
    by_name = {value.name: value for value in kept.residuals}
    assert by_name["b"].made_by == "b = cos x"
    assert by_name["b"].reasons == ["a = sin x: mul's transpose needs its other factor"]
    assert by_name["x"].origin == "argument"
    assert (kept.bytes, kept.argument_bytes) == (8, 4)


def test_integer_argument_is_refused_by_name():
    with pytest.raises(TypeError, match=r"respect to n, which is i32\[\]"):
        residuals(lambda n: n * 2.0, 3)
