"""The functions over which the views' claims are held: forty, and twenty more.

Each is written once, against a library `m` that is minijax or jax. The forty are the
functions of the course and what people write; twelve were written with no view in
mind, and eight have what was told falsely once: helpers that two lines call, branches,
loops, arrays from outside, equal layers, updates, slices (`UNSEEN`). `differentiable`
says whether `grad` by the first argument makes sense for the sum of the results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

F = np.float32


def ones(*shape: int) -> np.ndarray:
    """Different numbers of a shape, between 0.1 and 1."""
    return np.linspace(0.1, 1.0, int(np.prod(shape)), dtype=F).reshape(shape)


@dataclass(frozen=True, eq=False)
class Case:
    """A function of either library, and arguments for it."""

    name: str
    make: Callable[[Any], Callable[..., Any]]
    args: tuple
    differentiable: bool = True

    def loss(self, m: Any) -> Callable[..., Any]:
        """The function as one number: the sum of all results that are floats."""
        function = self.make(m)

        @functools.wraps(function)
        def loss(*args: Any) -> Any:
            leaves = m.tree_util.tree_leaves(function(*args))
            floats = [x for x in leaves if m.numpy.issubdtype(x.dtype, F)]
            return sum(x.sum() for x in floats)

        return loss


CASES: list[Case] = []


def case(*args: Any, differentiable: bool = True) -> Callable:
    """Adds a function, with arguments for it."""

    def add(make: Callable) -> Callable:
        CASES.append(Case(make.__name__, make, args, differentiable))
        return make

    return add


# ---- elementwise, reductions, shapes -------------------------------------------------


@case(F(0.5))
def log2(m):
    return lambda x: m.numpy.log(x) / m.numpy.log(F(2.0))


@case(ones(6))
def softmax(m):
    def softmax(x):
        shifted = m.numpy.exp(x - m.numpy.max(x))
        return shifted / m.numpy.sum(shifted)

    return softmax


@case(ones(3, 4))
def reused(m):
    def f(x):
        y = m.numpy.exp(x)
        return y * y + y / (1.0 + y)

    return f


@case(ones(4), ones(4))
def choice(m):
    return lambda x, y: m.numpy.where(x > 0.5, x * y, m.numpy.sin(x))


@case(ones(3, 8), ones(8), ones(8))
def layer_norm(m):
    def norm(x, gain, shift):
        mean = x.mean(-1, keepdims=True)
        var = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * m.lax.rsqrt(var + 1e-5) * gain + shift

    return norm


@case(ones(4, 6))
def shapes(m):
    def f(x):
        y = x.reshape(2, 12).T[:, None]
        return m.numpy.concatenate([y, y * 2.0], axis=1)

    return f


@case(ones(6))
def running(m):
    return lambda x: m.numpy.cumsum(x) * x


@case(ones(6))
def sorting(m):
    return lambda x: m.numpy.sort(x) ** 2


@case(ones(8), differentiable=False)
def largest(m):
    return lambda x: (m.numpy.argmax(x), m.lax.top_k(x, 3))


@case(ones(6), np.array([0, 2, 5]))
def gathered(m):
    return lambda x, i: x[i] * 3.0


@case(ones(6), ones(3), np.array([0, 2, 2]))
def scattered(m):
    return lambda x, y, i: m.numpy.asarray(x).at[i].add(y)


@case(ones(5))
def sliced(m):
    return lambda x: x[1:] - x[:-1]


@case(ones(4), F(2.0))
def maximum(m):
    return lambda x, limit: m.numpy.minimum(m.numpy.maximum(x, 0.3), limit)


@case(np.arange(6), differentiable=False)
def whole_numbers(m):
    return lambda x: (x // 2 + x % 3, x > 2, x.astype(F) * 0.5)


@case(np.zeros((0, 3), F))
def empty(m):
    return lambda x: m.numpy.tanh(x).sum(0)


@case(ones(3) + 1j * ones(3), differentiable=False)
def complex_numbers(m):
    return lambda z: m.numpy.abs(z * m.numpy.conj(z))


# ---- networks ------------------------------------------------------------------------


@case([(ones(3, 4), ones(4)), (ones(4, 2), ones(2))], ones(5, 3), ones(5, 2))
def mlp_loss(m):
    def loss(params, x, y):
        for w, b in params:
            x = m.numpy.tanh(x @ w + b)
        return ((x - y) ** 2).mean()

    return loss


@case([{"w": ones(4, 4), "b": ones(4)}] * 12, ones(2, 4))
def twelve_layers(m):
    def net(params, x):
        for layer in params:
            x = m.nn.relu(x @ layer["w"] + layer["b"])
        return x

    return net


@case(ones(5, 4), ones(4, 4), ones(4, 4), ones(4, 4))
def attention(m):
    def block(x, wq, wk, wv):
        q, k, v = x @ wq, x @ wk, x @ wv
        return m.nn.softmax(q @ k.T / 2.0) @ v

    return block


@case(ones(1, 2, 5, 5), ones(3, 2, 3, 3))
def convolution(m):
    return lambda x, w: m.nn.relu(m.lax.conv(x, w, (1, 1), "SAME"))


@case(ones(4, 3), ones(5, 4), ones(5, 3))
def cross_entropy(m):
    return lambda w, x, y: -(m.nn.log_softmax(x @ w) * y).sum(-1).mean()


@case(ones(6))
def gelu(m):
    return lambda x: m.nn.gelu(x) + m.nn.silu(x)


# ---- control flow --------------------------------------------------------------------


@case(ones(4, 4), ones(4, 3), ones(6, 3))
def rnn(m):
    def run(w, u, xs):
        def step(h, x):
            h = m.numpy.tanh(w @ h + u @ x)
            return h, h

        return m.lax.scan(step, m.numpy.zeros(4), xs)[1]

    return run


@case(ones(4))
def branch(m):
    return lambda x: m.lax.cond(x[0] > 0, m.numpy.sin, lambda y: y * y, x)


@case(ones(4), np.int32(1))
def switch(m):
    ways = [lambda x: x * 2.0, lambda x: x + x * x, lambda x: x - 1.0]
    return lambda x, i: m.lax.switch(i, ways, x)


@case(F(1.5), differentiable=False)
def until(m):
    return lambda x: m.lax.while_loop(lambda v: v < 9.0, lambda v: v * 2.0 + v, x)


@case(F(2.0), differentiable=False)
def newton(m):
    def root(a):
        def improve(state):
            x, _ = state
            new = x - (x * x - a) / (2.0 * x)
            return new, m.numpy.abs(new - x)

        return m.lax.while_loop(lambda s: s[1] > 1e-4, improve, (a, a))[0]

    return root


@case(ones(3))
def power(m):
    return lambda x: m.lax.fori_loop(0, 4, lambda i, v: v * x, x)


@case(ones(3, 2))
def scan_in_scan(m):
    def f(rows):
        def outer(total, row):
            inner = lambda t, x: (t + m.numpy.sin(x), t)  # noqa: E731
            return m.lax.scan(inner, total, row)

        return m.lax.scan(outer, F(0.0), rows)

    return f


@case(ones(4))
def scan_with_branch(m):
    def f(xs):
        def step(c, x):
            c = m.lax.cond(x > 0.5, lambda c: c * x, lambda c: c + x, c)
            return c, c

        return m.lax.scan(step, F(1.0), xs)

    return f


# ---- transformations inside ----------------------------------------------------------


@case(ones(3, 4), ones(4, 4))
def jitted(m):
    return m.jit(lambda x, w: m.numpy.exp(m.numpy.sin(x @ w)))


@case(ones(4))
def jit_in_jit(m):
    inner = m.jit(lambda x: m.numpy.sin(x) * m.numpy.cos(x))
    return m.jit(lambda x: inner(x) * inner(2.0 * x))


@case(ones(3, 4), ones(4, 4))
def batched(m):
    return lambda x, w: m.vmap(lambda row: m.numpy.tanh(w @ row))(x)


@case(ones(3, 4))
def batched_scan(m):
    def total(xs):
        return m.lax.scan(lambda c, x: (c * x, c), F(1.0), xs)[0]

    return m.vmap(total)


@case(ones(4))
def gradient(m):
    return m.grad(lambda x: m.numpy.sum(m.numpy.tanh(x) * x))


@case(ones(4), ones(3, 4))
def gradient_of_each(m):
    slope = m.grad(lambda w, x: m.numpy.sum(m.numpy.sin(w * x)))
    return m.vmap(slope, in_axes=(None, 0))


@case(ones(4), ones(4))
def hessian_product(m):
    slope = m.grad(lambda x: (m.numpy.sin(x) * x).sum())
    return lambda x, v: m.jvp(slope, (x,), (v,))[1]


@case(ones(4))
def own_backward(m):
    @m.custom_vjp
    def clipped(x):
        return m.numpy.exp(x)

    clipped.defvjp(
        lambda x: (m.numpy.exp(x), (x, m.numpy.exp(x))),
        lambda kept, ct: (ct * kept[1] + 0.0 * kept[0],),
    )
    return lambda x: clipped(x) * 3.0


@case(ones(4))
def own_forward(m):
    @m.custom_jvp
    def log1pexp(x):
        return m.numpy.log(1.0 + m.numpy.exp(x))

    @log1pexp.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return log1pexp(x), (1 - 1 / (1 + m.numpy.exp(x))) * t

    return lambda x: log1pexp(x) * 1.0


@case(ones(3, 4), ones(4, 4))
def checkpointed(m):
    return m.checkpoint(lambda x, w: m.numpy.sin(m.numpy.tanh(x @ w) @ w))


assert len(CASES) == 40, len(CASES)
FORTY = CASES[:]


# ---- twelve that no view was made with -----------------------------------------------


@case(ones(4), ones(4))
def cosine(m):
    return lambda a, b: (a @ b) / m.numpy.sqrt((a @ a) * (b @ b) + 1e-6)


@case(ones(5, 2))
def distances(m):
    def f(points):
        apart = points[:, None] - points[None]
        return m.numpy.sqrt((apart**2).sum(-1) + 1e-3)

    return f


@case(ones(3), ones(4))
def outer_trace(m):
    return lambda a, b: m.numpy.einsum("i,j->ij", a, b)[:, 1:].sum(0)


@case({"scale": ones(3), "deep": {"shift": ones(3)}}, ones(2, 3))
def dictionary(m):
    return lambda p, x: {"y": x * p["scale"], "z": x + p["deep"]["shift"]}


@case(ones(8))
def polynomial(m):
    return lambda x: m.numpy.polyval(m.numpy.asarray([1.0, -2.0, 3.0]), x)


@case(ones(2, 4), ones(4))
def kalman(m):
    def f(rows, start):
        def step(state, row):
            mean, var = state
            gain = var / (var + 1.0)
            return (mean + gain * (row - mean), (1.0 - gain) * var), gain

        return m.lax.scan(step, (start, m.numpy.ones(4)), rows)

    return f


@case(ones(6), differentiable=False)
def histogram(m):
    def f(x):
        place = (x * 3.0).astype(np.int32)
        return m.numpy.zeros(4, np.int32).at[place].add(1)

    return f


@case(ones(4))
def piecewise(m):
    return lambda x: m.numpy.select([x < 0.3, x < 0.7], [x, x * x], 1.0 - x)


@case(ones(3, 3))
def triangle(m):
    return lambda a: m.numpy.tril(a) @ m.numpy.triu(a)


@case(ones(4), ones(3, 4))
def ensemble(m):
    scored = m.vmap(lambda w, x: m.nn.sigmoid(w @ x), in_axes=(None, 0))
    return lambda w, xs: scored(w, xs).mean() + (w**2).sum()


@case(ones(2, 3))
def padded(m):
    return lambda x: m.numpy.pad(x, ((1, 0), (0, 2)))[:, ::-1]


@case(ones(3), differentiable=False)
def rounded(m):
    return lambda x: (m.numpy.round(x * 10.0), m.numpy.floor(x), m.numpy.sign(x))


# ---- eight that have what was told falsely once --------------------------------------


@case(ones(4), ones(4))
def helper_twice(m):
    scaled = m.jit(lambda v: m.numpy.tanh(v) * v)

    def f(x, y):
        a = scaled(x)
        b = scaled(y)
        return m.numpy.sin(a) * b

    return f


@case(ones(4))
def branch_of_helpers(m):
    scaled = m.jit(lambda v: m.numpy.sin(v) * v)

    def f(x):
        y = m.lax.cond(x[0] > 0, scaled, lambda v: scaled(scaled(v)), x)
        return y * x

    return f


@case(ones(8))
def updates_in_a_loop(m):
    def f(x):
        def body(c, k):
            return c.at[k].set(m.numpy.sin(c[k]) * c[k + 1]), c[k]

        return m.lax.scan(body, x, m.numpy.arange(5))

    return f


@case(ones(4), differentiable=False)
def unknown_loop(m):
    return lambda x: m.lax.while_loop(
        lambda c: c.sum() < 100.0, lambda c: m.numpy.exp(c) * 2.0, x
    )


@case(ones(4))
def from_outside(m):
    table = m.numpy.asarray(ones(3, 4))
    turned = m.numpy.asarray(ones(4, 3))
    return lambda x: m.numpy.tanh(turned @ (table @ x)) + table[1]


@case(ones(4, 4), ones(2, 4))
def equal_layers(m):
    def f(w, x):
        for _ in range(3):
            x = m.nn.relu(x @ w)
        return x

    return f


@case(ones(12))
def slices_behind_reshapes(m):
    def f(x):
        rows = x.reshape(3, 4).at[1].multiply(2.0)
        return rows.reshape(-1)[2:10:2] + rows[:, 1:3].reshape(-1)[:4]

    return f


@case(ones(4), ones(4))
def helper_kept(m):
    inner = m.jit(lambda v, w: m.numpy.sin(v * w))
    return m.checkpoint(lambda x, w: inner(x, w) * inner(w, x))


UNSEEN = CASES[40:]
assert len(UNSEEN) == 20, len(UNSEEN)
DIFFERENTIABLE = [one for one in CASES if one.differentiable]


def title(value: Any) -> str:
    """What pytest calls a case."""
    return value.name if isinstance(value, Case) else ""
