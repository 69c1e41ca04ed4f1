"""Exercises of chapters 08 to 20: other right answers, and plausible wrong ones."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import (
    ShapeDtypeStruct,
    checkpoint,
    export,
    grad,
    jit,
    jvp,
    lax,
    tree,
    vmap,
)
from minijax.experimental import io_callback
from minijax.experimental import pallas as pl
from tests.notebooks.judged import Answers, assert_refused, assert_taken
from tests.notebooks.test_exercises import EIGHT, NOTEBOOKS

pytestmark = pytest.mark.skipif(EIGHT, reason="for one device")
ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong

# 08.2: every row with every row.


def every(one, a_axes=(0, None), b_axes=(None, 0)):
    return lambda a, b: vmap(vmap(one, b_axes), a_axes)(a, b)


def closeness(x, y):
    return jnp.exp(-jnp.sum((x - y) ** 2))


wrong("08.2", "its shape is", every(closeness, (None, 0), (0, None)))
wrong("08.2", "The values differ", every(lambda x, y: jnp.exp(-(jnp.sum(x - y) ** 2))))
wrong("08.2", "The values differ", every(lambda x, y: jnp.exp(jnp.sum((x - y) ** 2))))
wrong("08.2", "The values differ", every(lambda x, y: jnp.exp(-jnp.sum(abs(x - y)))))
wrong(
    "08.2",
    "expected at most 8",
    lambda a, b: jnp.stack(
        [every(closeness)(a, b[i : i + 1])[:, 0] for i in range(7)], 1
    ),
)

# 08.3: the batching rule of a product.


def product_rule(front, out=0):
    def rule(x, x_axis, y, y_axis):
        x, y = front(x, x_axis), front(y, y_axis)
        return jnp.moveaxis(jnp.matmul(x, y), 0, out), out

    return rule


def to_front(x, axis):
    return x[None] if axis is None else jnp.moveaxis(x, axis, 0)


right("08.3", product_rule(to_front))
right("08.3", product_rule(to_front, out=2))
right(
    "08.3",
    lambda x, i, y, j: (
        jnp.einsum(
            f"{'ab' if i is None else ['nab', 'anb', 'abn'][i]},"
            f"{'bc' if j is None else ['nbc', 'bnc', 'bcn'][j]}->nac",
            x,
            y,
        ),
        0,
    ),
)
wrong("08.3", "", product_rule(lambda x, axis: x))
wrong(
    "08.3",
    "",
    product_rule(lambda x, axis: x if axis is None else jnp.moveaxis(x, axis, -1)),
)
wrong("08.3", "", lambda x, i, y, j: (product_rule(to_front)(x, i, y, j)[0], 1))
wrong("08.3", "", lambda x, i, y, j: (product_rule(to_front)(x, i, y, j)[0], None))
wrong(
    "08.3",
    "not exactly one dot_general",
    lambda x, i, y, j: (
        jnp.stack(
            [
                (x if i is None else jnp.take(x, n, i))
                @ (y if j is None else jnp.take(y, n, j))
                for n in range(6)
            ]
        ),
        0,
    ),
)

# 08.4: columns without a transpose.
right("08.4", lambda w, b, x: vmap(lambda row, one: jnp.tanh(row @ x + one))(w, b))
right(
    "08.4",
    lambda w, b, x: vmap(lambda r, c, x: jnp.tanh(jnp.dot(r, x) + c), (0, 0, None))(
        w, b, x
    ),
)
wrong(
    "08.4",
    "a transpose",
    lambda w, b, x: vmap(lambda c: jnp.tanh(w @ c + b), 1, 1)(x),
)
wrong("08.4", "Its shape is", lambda w, b, x: vmap(lambda c: jnp.tanh(w @ c + b), 1)(x))
wrong("08.4", "The values differ", lambda w, b, x: vmap(lambda r: jnp.tanh(r @ x))(w))
wrong("08.4", "a transpose", lambda w, b, x: jnp.tanh(x.T @ w.T + b).T)
wrong("08.4", "The values differ", lambda w, b, x: w @ x + b[:, None])
wrong("08.4", "No vmap runs in it", lambda w, b, x: jnp.tanh(w @ x + b[:, None]))
right("08.4", jit(lambda w, b, x: vmap(lambda r, one: jnp.tanh(r @ x + one))(w, b)))

# 09.3: curvature; 09.4: clipped gradients.


def curved(product, last=True, scale=True):
    def curvature(f, x, v, steps):
        for _ in range(steps):
            v = product(f, x, v)
            v = v / jnp.linalg.norm(v) if scale else v
        return v @ product(f, x, v) if last else jnp.linalg.norm(product(f, x, v))

    return curvature


def forward_over_reverse(f, x, v):
    return jvp(grad(f), (x,), (v,))[1]


def reverse_over_reverse(f, x, v):
    return grad(lambda x: grad(f)(x) @ v)(x)


def looped(f, x, v, steps):
    def turn(_, v):
        v = forward_over_reverse(f, x, v)
        return v / jnp.sqrt(v @ v)

    v = lax.fori_loop(0, steps, turn, v)
    return v @ forward_over_reverse(f, x, v)


right("09.3", curved(reverse_over_reverse))
right("09.3", looped)
wrong("09.3", "has an array of", curved(lambda f, x, v: minijax.hessian(f)(x) @ v))
wrong("09.3", "not ", curved(forward_over_reverse, scale=False))
wrong("09.3", "not ", lambda f, x, v, steps: looped(f, x, v, steps + 1))
wrong("09.3", "not ", lambda f, x, v, steps: looped(f, x, v, steps - 1))
wrong("09.3", "not ", curved(lambda f, x, v: grad(f)(v)))
wrong("09.3", "not a number", lambda f, x, v, steps: forward_over_reverse(f, x, v))


def clip_each(length=None, mean=True, scale=None):
    def clipped(loss, w, xs, ys, most):
        each = vmap(grad(loss), (None, 0, 0))(w, xs, ys)

        def one(g):
            n = jnp.sqrt(sum(jnp.sum(v * v) for v in tree.leaves(g)))
            s = (
                scale or (lambda n, m: jnp.where(n > m, m / jnp.where(n > 0, n, 1), 1))
            )(n, most)
            if length:
                return tree.map(lambda v: length(v, most), g)
            return tree.map(lambda v: v * s, g)

        each = vmap(one)(each)
        return tree.map(lambda v: v.mean(0) if mean else v.sum(0), each)

    return clipped


def scan_clipped(loss, w, xs, ys, most):
    def add(total, row):
        g = grad(loss)(w, *row)
        n = jnp.sqrt(sum(jnp.sum(v * v) for v in tree.leaves(g)))
        return tree.map(lambda t, v: t + v / jnp.maximum(1, n / most), total, g), None

    total, _ = lax.scan(add, tree.map(jnp.zeros_like, w), (xs, ys))
    return tree.map(lambda t: t / len(xs), total)


right("09.4", clip_each())
right("09.4", scan_clipped)
wrong("09.4", "the numbers are wrong", clip_each(mean=False))
wrong("09.4", "the numbers are wrong", clip_each(scale=lambda n, m: 1.0))
wrong(
    "09.4",
    "the numbers are wrong",
    clip_each(scale=lambda n, m: m / jnp.where(n > 0, n, 1)),
)
wrong(
    "09.4",
    "the numbers are wrong",
    clip_each(length=lambda v, m: jnp.clip(v, -m, m)),
)
wrong(
    "09.4",
    "the numbers are wrong",
    lambda loss, w, xs, ys, most: clip_each()(
        lambda w, x, y: jnp.mean(vmap(loss, (None, 0, 0))(w, xs, ys)), w, xs, ys, most
    ),
)
wrong(
    "09.4",
    "Python ran loss",
    lambda loss, w, xs, ys, most: tree.map(
        lambda *g: sum(g) / len(g),
        *[clip_each()(loss, w, xs[i : i + 1], ys[i : i + 1], most) for i in range(20)],
    ),
)

# 10.2 to 10.4: loops.


def total(xs):
    return lax.scan(lambda s, x: (s + jnp.sqrt(x), None), 0.0, xs)[0]


def fibonacci(n):
    return lax.scan(lambda p, _: ((p[1], p[0] + p[1]), p[0]), (0, 1), None, length=n)[1]


def orbit(x, n):
    return lax.scan(lambda x, _: (2.5 * x * (1.0 - x), x), x, None, length=n)[1]


def total_of_arrays(xs):
    out, _ = lax.scan(lambda s, x: (s + x**0.5, x), jnp.zeros(()), jnp.asarray(xs))
    return out


def fibonacci_in_an_array(n):
    def turn(p, _):
        return jnp.array([p[1], p[0] + p[1]]), p[0]

    return lax.scan(turn, jnp.array([0, 1]), jnp.arange(n))[1]


right("10.2", total_of_arrays, fibonacci_in_an_array, orbit)
right(
    "10.2",
    total,
    fibonacci,
    lambda x, n: lax.scan(lambda x, _: (2.5 * (x - x * x), x), x, jnp.zeros(n))[1],
)
wrong("10.2", "total", lambda xs: jnp.sum(jnp.sqrt(xs)), fibonacci, orbit)
wrong(
    "10.2",
    "0 scans",
    lambda xs: (jnp.sum(jnp.sqrt(xs)), total(xs))[0],
    fibonacci,
    orbit,
)
wrong(
    "10.2",
    "fibonacci gives",
    total,
    lambda n: lax.scan(
        lambda p, _: ((p[1], p[0] + p[1]), p[1]), (0, 1), None, length=n
    )[1],
    orbit,
)
wrong(
    "10.2",
    "orbit gives",
    total,
    fibonacci,
    lambda x, n: 2.5 * orbit(x, n) * (1 - orbit(x, n)),
)
wrong("10.2", "orbit has shape", total, fibonacci, lambda x, n: orbit(x, n - 1))
wrong("10.2", "0 scans", lambda xs: sum(jnp.sqrt(x) for x in xs), fibonacci, orbit)
wrong(
    "10.2",
    "total gives",
    lambda xs: lax.scan(lambda s, x: (s + x, None), 0.0, xs)[0],
    fibonacci,
    orbit,
)


def by_cond(go, body, init, steps, keep=None):
    def turn(value, _):
        return lax.cond(go(value), body, keep or (lambda v: v), value), None

    return lax.scan(turn, init, None, length=steps)[0]


def with_flag(go, body, init, steps):
    def turn(both, _):
        value, on = both
        on = jnp.logical_and(on, go(value))
        return (lax.cond(on, body, lambda v: v, value), on), None

    return lax.scan(turn, (init, True), None, length=steps)[0][0]


def by_select(go, body, init, steps):
    def turn(value, _):
        on = go(value)
        return tree.map(lambda a, b: jnp.where(on, a, b), body(value), value), None

    return lax.scan(turn, init, None, length=steps)[0]


right("10.3", by_cond)
right("10.3", with_flag)
wrong("10.3", "The slope at 5 is nan", by_select)
wrong("10.3", "", lambda go, body, init, steps: lax.while_loop(go, body, init))
wrong(
    "10.3",
    "rounds",
    lambda go, body, init, steps: by_cond(go, body, init, steps - 1),
)
wrong(
    "10.3",
    "rounds",
    lambda go, body, init, steps: by_cond(lambda v: ~go(v), body, init, steps),
)
wrong("10.3", "", lambda go, body, init, steps: by_cond(go, body, init, 30))


def trained(rate=0.1, after=False):
    def train(loss, w, xs, ys):
        def turn(w, row):
            value, slope = minijax.value_and_grad(loss)(w, *row)
            new = w - rate * slope
            return new, loss(new, *row) if after else value

        return lax.scan(turn, jnp.asarray(w), (xs, ys))

    return train


def by_index(loss, w, xs, ys):
    xs, ys = jnp.asarray(xs), jnp.asarray(ys)

    def turn(w, i):
        return w - 0.1 * grad(loss)(w, xs[i], ys[i]), loss(w, xs[i], ys[i])

    return lax.scan(turn, jnp.asarray(w), jnp.arange(len(xs)))


def by_python(loss, w, xs, ys):
    losses = []
    for x, y in zip(xs, ys):
        losses.append(loss(w, x, y))
        w = w - 0.1 * grad(loss)(w, x, y)
    return w, jnp.stack(losses)


right("10.4", trained())
right("10.4", by_index)
wrong("10.4", "Python ran the loss", by_python)
wrong("10.4", "The losses begin", trained(after=True))
wrong("10.4", "After 20 rows", trained(rate=0.01))
wrong("10.4", "After 20 rows", trained(rate=-0.1))
wrong("10.4", "have shape", lambda *args: (trained()(*args)[0], jnp.float32(0)))
wrong("10.4", "have shape", lambda *args: trained()(*args)[::-1])

# 11.3: within a budget; 11.4: round, straight through.


def by_policies(*names):
    from minijax_lab.explain.residuals import residuals

    def within(f, budget, *args):
        for name in names:
            made = checkpoint(f, policy=getattr(minijax.checkpoint_policies, name))
            if residuals(made, *args).bytes <= budget:
                return made
        return made

    return within


KEEP = ("everything_saveable", "dots_saveable", "nothing_saveable")
right("11.3", by_policies(*KEEP))
wrong("11.3", "would do", by_policies("nothing_saveable"))
wrong("11.3", "it keeps", by_policies("everything_saveable"))
wrong("11.3", "", by_policies("dots_saveable"))
wrong("11.3", "it keeps", lambda f, budget, *args: f)
wrong("11.3", "not a function", lambda f, budget, *args: f(*args))
wrong("11.3", "would do", by_policies(*KEEP[::-1]))


def custom_round(rule):
    made = minijax.custom_jvp(lambda x: jnp.round(x))
    made.defjvp(rule)
    return made


right("11.4", lambda x: x + lax.stop_gradient(jnp.round(x) - x))
right("11.4", custom_round(lambda v, t: (jnp.round(*v), t[0])))
wrong("11.4", "The gradient of its sum", jnp.round)
wrong("11.4", "The gradient of its sum", lambda x: lax.stop_gradient(jnp.round(x)))
wrong("11.4", "round_through(", lambda x: x)
wrong("11.4", "round_through(", lambda x: jnp.floor(x) + x - lax.stop_gradient(x))
wrong("11.4", "", custom_round(lambda v, t: (jnp.round(*v), jnp.ones_like(t[0]))))


@minijax.custom_vjp
def one_way(x):
    return jnp.round(x)


one_way.defvjp(lambda x: (jnp.round(x), None), lambda _, c: (c,))
wrong("11.4", "It raised TypeError", one_way)

# 12.2: a norm at zero; 12.3: the first NaN; 12.4: faults.


def normal(square_of, chosen=True):
    def normalize(x):
        s = jnp.sum(x * x)
        y = x / jnp.sqrt(square_of(s))
        return jnp.where(s > 0, y, 0.0) if chosen else y

    return normalize


right("12.2", normal(lambda s: jnp.where(s > 0, s, 1.0)))
right(
    "12.2",
    lambda x: (
        x
        * jnp.where(
            jnp.sum(x * x) > 0,
            lax.rsqrt(jnp.where(jnp.sum(x * x) > 0, jnp.sum(x * x), 1.0)),
            0.0,
        )
    ),
)
wrong("12.2", "normalize(0)", lambda x: x / jnp.sqrt(jnp.sum(x * x)))
wrong("12.2", "Its gradient at zero", normal(lambda s: s))
wrong("12.2", "", normal(lambda s: s + 1e-6, chosen=False))
wrong("12.2", "", normal(lambda s: jnp.maximum(s, 1e-6), chosen=False))
wrong("12.2", "", lambda x: jnp.nan_to_num(x / jnp.sqrt(jnp.sum(x * x))))
wrong(
    "12.2",
    "normalize([3, 0, 4])",
    lambda x: x / jnp.maximum(jnp.sum(jnp.abs(x)), 1e-30),
)
wrong(
    "12.2",
    "Its gradient at zero should be 0",
    lambda x: x / lax.stop_gradient(jnp.sqrt(jnp.maximum(jnp.sum(x * x), 1e-37))),
)


def walk(ask, first=True, constants=True):
    def first_nan(f, *args):
        closed = minijax.make_jaxpr(f)(*args)
        values = dict(zip(closed.jaxpr.invars, args))
        if constants:
            values.update(zip(closed.jaxpr.constvars, closed.consts))
        name = None
        for eqn in closed.jaxpr.eqns:
            given = [v.val if hasattr(v, "val") else values[v] for v in eqn.invars]
            out = eqn.primitive.bind(*given, **eqn.params)
            values[eqn.outvars[0]] = out
            if ask(out, given) and (name is None or not first):
                name = eqn.primitive.name
        return name

    return first_nan


right("12.3", walk(lambda out, given: bool(jnp.isnan(out).any())))
right("12.3", walk(lambda out, given: jnp.any(out != out)))
wrong("12.3", "It raised ValueError", walk(lambda out, given: bool(jnp.isnan(out))))
wrong("12.3", "It says None, not 'sub'", walk(lambda out, given: jnp.isnan(out).all()))
wrong("12.3", "It says 'div', not 'sub'", walk(lambda out, given: jnp.isnan(out.sum())))
wrong(
    "12.3", "the constant a", walk(lambda out, given: jnp.isnan(out).any(), True, False)
)
wrong("12.3", "It says", walk(lambda out, given: jnp.isnan(out).any(), first=False))
wrong("12.3", "It says", walk(lambda out, given: not jnp.isfinite(out).all()))
wrong("12.3", "It says None", lambda f, *args: None)
wrong(
    "12.3",
    "It says",
    lambda f, *args: minijax.make_jaxpr(f)(*args).jaxpr.eqns[0].primitive.name,
)
found = {2: "sub", 6: "max", 7: "broadcast_in_dim", 9: "select_n", 20: "reduce_max"}
right("12.4", dict(reversed(found.items())))
right("12.4", {**found, 3: "sin"})
for number in found:
    wrong("12.4", f"look again at fault {number}", {**found, number: "mul"})
wrong("12.4", "Give a dict", [*found.values()])

# 13.2 to 13.4: bytes.
right("13.2", lambda x: x / jnp.max(x, axis=-1, keepdims=True))
right("13.2", jit(lambda x: x / x.max(1)[:, None]))
wrong("13.2", "It moves", lambda x: x / jnp.sort(x, axis=-1)[:, -1:])
wrong("13.2", "At index (", lambda x: x / jnp.max(x))
wrong("13.2", "At index (", lambda x: x / x.max(0))
wrong("13.2", "At index (", lambda x: x / jnp.abs(x).max(-1, keepdims=True) * 0.99)
wrong("13.2", "At index (", lambda x: x - x.max(-1, keepdims=True))


def layer(first=True, eps=1e-5, root=True, count=0):
    def layer_norm(x):
        x = x - x[:, :1] if first else x
        mean, square = x.mean(-1, keepdims=True), (x * x).sum(-1, keepdims=True)
        variance = square / (x.shape[-1] - count) - mean * mean
        return (x - mean) / (jnp.sqrt(variance + eps) if root else variance + eps)

    return layer_norm


def layer_beside(shift, add=1e-5, after=0.0):
    def layer_norm(x):
        first, mean = shift(x), x.mean(-1, keepdims=True)
        variance = jnp.mean((x - first) ** 2, -1, keepdims=True) - (mean - first) ** 2
        return (x - mean) / (jnp.sqrt(variance + add) + after)

    return layer_norm


def layer_beside_the_middle(x):
    middle = x[:, 512:513]
    apart = x - middle
    squares = jnp.sum(apart * apart, axis=1, keepdims=True) / 1024
    mean = jnp.sum(x, axis=1, keepdims=True) / 1024
    return (x - mean) / jnp.sqrt(squares - (mean - middle) ** 2 + 1e-5)


right("13.3", layer_beside_the_middle)
right("13.3", layer_beside(lambda x: x[:, :16].mean(-1, keepdims=True)))
far = "for rows that lie around different numbers"
wrong("13.3", far, layer_beside(lambda x: jnp.where(x[:, :1] > 500, 1000.0, 0.0)))
little = "for rows of small variance"
wrong("13.3", little, layer_beside(lambda x: x[:, :1], add=0.0))
wrong("13.3", little, layer_beside(lambda x: x[:, :1], add=0.0, after=1e-5))
wrong("13.3", "It moves 24.0 MiB", layer())
wrong("13.3", "for rows around 1,000", layer(first=False))
wrong("13.3", "At index (", layer(root=False))
wrong("13.3", "At index (", layer(eps=0.1))
wrong("13.3", "At index (", layer(count=24))


def image(axis=1, scale=127.5, shift=1.0, dtype=jnp.bfloat16):
    @jit
    def prepare(x):
        x = jnp.flip(x, axis).astype(jnp.float32) / scale - shift
        return x.astype(dtype)

    return prepare


right("13.4", image())
right("13.4", jit(lambda x: (x[:, ::-1] / jnp.float32(127.5) - 1).astype("bfloat16")))
wrong("13.4", "At index (", image(axis=2))
wrong("13.4", "At index (", image(shift=0.0))
wrong("13.4", "At index (", image(scale=255.0))
wrong("13.4", "not bfloat16", image(dtype=jnp.float16))
wrong("13.4", "", lambda x: image(dtype=jnp.float32)(x).astype(jnp.bfloat16))

# 14.2 to 14.4: programs as files.


def spread(x):
    if x.shape[0] < 2:
        return jnp.zeros(x.shape[1])
    centred = x - x.mean(0)
    return jnp.sqrt((centred * centred).sum(0) / (x.shape[0] - 1))


def kept(f, text, constraints=()):
    (b,) = export.symbolic_shape(text, constraints=constraints)
    return export.export(jit(f))(ShapeDtypeStruct((b, 4), jnp.float32))


right("14.2", kept(spread, "b", ["b >= 2"]))
right("14.2", kept(spread, "1 + b", ["b >= 1"]))
wrong("14.2", "It takes 1 row", kept(lambda x: jnp.std(x, 0, ddof=1), "b"))
wrong("14.2", "With 2 rows", kept(spread, "b", ["b >= 3"]))
wrong("14.2", "Of 2 rows", kept(lambda x: jnp.std(x, 0), "b", ["b >= 2"]))
wrong(
    "14.2",
    "With 3 rows",
    export.export(jit(spread))(ShapeDtypeStruct((2, 4), jnp.float32)),
)
wrong("14.2", "not a function", spread)
machines = {"kernels": [4, 1, 4], "one pass": "h100", "copies": "tpu"}
right("14.4", {**machines, "kernels": (4, 1, 4)})
right("14.4", {**machines, "one pass": "H100", "copies": " TPU v5e"})
right("14.4", {**machines, "one pass": "NVIDIA H100", "copies": "the TPU"})
for key, value in (
    ("kernels", [1, 4, 4]),
    ("kernels", 4),
    ("one pass", "cpu"),
    ("copies", "h100"),
):
    wrong("14.4", "", {**machines, key: value})
wrong("14.4", "Give a dict", [[4, 1, 4], "h100", "tpu"])


# 14.5: what the file at the beginning computes.
def by_recursion(n):
    return 0 if n < 2 else 1 + by_recursion([n // 2, 3 * n + 1][n % 2])


def by_shifts(n):
    steps = 0
    while n != 1:
        zeros = (n & -n).bit_length() - 1
        steps += zeros or 1
        n = n >> zeros if zeros else 3 * n + 1
    return np.int64(steps)


def kept_message(n):
    text = NOTEBOOKS / "recordings" / "message.bin"
    x = jnp.full(4096, n, jnp.int32)
    return int(export.deserialize(text.read_bytes()).call(x)[0])


right("14.5", by_recursion)
right("14.5", by_shifts)
wrong("14.5", "For 2 it is 1, and yours gives 2", lambda n: n if n > 1 else 0)
wrong("14.5", "For 3 it is 7, and yours gives 1", lambda n: n.bit_length() - 1)
wrong("14.5", "For 1 it is 0, and yours gives [1]", lambda n: [*range(n, 0, -1)])
wrong("14.5", "For 837,799 it is 524, and yours gives 58", kept_message)

# 18.2 and 19.2: kernels; an online softmax.


def sums(begin=True, map_=lambda i, j: (i, j), axis=1):
    def row_sums(x, interpret=False):
        def kernel(x_ref, o_ref):
            @pl.when((pl.program_id(1) == 0) & begin)
            def _():
                o_ref[...] = jnp.zeros_like(o_ref)

            o_ref[...] += x_ref[...].sum(axis)

        return pl.pallas_call(
            kernel,
            ShapeDtypeStruct((x.shape[0],), x.dtype),
            grid=(x.shape[0] // 4, x.shape[1] // 8),
            in_specs=[pl.BlockSpec((4, 8), map_)],
            out_specs=pl.BlockSpec((4,), lambda i, j: (i,)),
            interpret=interpret,
        )(x)

    return row_sums


right("18.2", sums())
wrong("18.2", "", sums(begin=False))
wrong("18.2", "", sums(map_=lambda i, j: (4 * i, 8 * j)))
wrong("18.2", "At index", sums(map_=lambda i, j: (i, 0)))
wrong("18.2", "", sums(axis=0))


def online(start=-np.inf, rescale=True, guard=True):
    def made(parts):
        top, weight = start, 0.0
        for part in parts:
            larger = max(top, part.max())
            if guard and larger == -np.inf:
                continue
            factor = np.exp(top - larger) if rescale else 1.0
            weight = weight * factor + np.exp(part - larger).sum()
            top = larger
        return top, weight

    return made


def by_whole(parts):
    row = np.concatenate(parts)
    return row.max(), np.exp(row - row.max()).sum()


def two_passes(parts):
    top = max(parts[n].max() for n in range(len(parts)))
    return top, sum(np.exp(part - top).sum() for part in parts)


right("19.2", online())
right("19.2", lambda parts: online()(parts[n] for n in range(len(parts))))
wrong("19.2", "each is gone when the next one comes", two_passes)
wrong("19.2", "the sum should be", online(rescale=False))
wrong("19.2", "the largest should be", online(start=0.0))
wrong("19.2", "is", online(guard=False))
wrong(
    "19.2",
    "is",
    lambda parts: (max(p.max() for p in parts), sum(np.exp(p).sum() for p in parts)),
)

# 20.2 and 20.4: callbacks.
kind = ShapeDtypeStruct


def ranked(method, dtype=jnp.int32):
    def ranks(host, x):
        def called(x):
            return np.asarray(host(np.asarray(x))).astype(np.dtype(dtype))

        return minijax.pure_callback(
            called, kind(x.shape, dtype), x, vmap_method=method
        )

    return ranks


right("20.2", ranked("broadcast_all"))
right("20.2", ranked("expand_dims"))
wrong("20.2", "Python was called 4 times", ranked("sequential"))
wrong("20.2", "not int32", ranked("expand_dims", jnp.int16))
wrong("20.2", "It raised", ranked(None))
wrong("20.2", "the ranks", lambda host, x: jnp.argsort(x).astype(jnp.int32))


# 20.5: a game with one lie.
def game(answer, low=1, high=1000):
    def guess(ask):
        def asked(number):
            kind = ShapeDtypeStruct((), jnp.bool_)
            return io_callback(ask, kind, number, ordered=True)

        def halve(state):
            low, high = state
            middle = (low + high) // 2
            larger = answer(asked, middle)
            return jnp.where(larger, middle + 1, low), jnp.where(larger, high, middle)

        ends = jnp.int32(low), jnp.int32(high)
        return lax.while_loop(lambda state: state[0] < state[1], halve, ends)[0]

    return guess


def two_and_one(asked, number):
    first, second = asked(number), asked(number)
    return lax.cond(first ^ second, asked, lambda _: first, number)


def again_and_again(asked, number):
    def more(state):
        return state[0] + jnp.where(asked(number), 1, -1), state[1] + 1

    start = jnp.int32(0), jnp.int32(0)
    return lax.while_loop(lambda s: abs(s[0]) < 2, more, start)[0] > 0


right("20.5", game(two_and_one))
right("20.5", game(again_and_again))
wrong("20.5", "answer 1 was a lie", game(lambda asked, n: asked(n)))
wrong("20.5", "answer 2 was a lie", game(lambda asked, n: asked(n) & asked(n)))
wrong("20.5", "and it says 999", game(two_and_one, high=999))
wrong("20.5", "It raised", lambda ask: jnp.where(ask(jnp.int32(500)), 501, 500))
wrong(
    "20.5",
    "promises the same answer",
    lambda ask: minijax.pure_callback(ask, kind((), jnp.bool_), jnp.int32(500)),
)


def by_closure(pull):
    def differentiable(forward, backward):
        def norm(x, eps):
            @minijax.custom_vjp
            def at(x):
                return forward(x, eps=eps)

            at.defvjp(lambda x: (forward(x, eps=eps), x), pull(backward, forward, eps))
            return at(x)

        return norm

    return differentiable


right("20.4", by_closure(lambda back, _, eps: lambda x, dy: (back(x, dy, eps=eps),)))
wrong(
    "20.4",
    "The gradient is another",
    by_closure(
        lambda back, _, eps: lambda x, dy: (dy * back(x, jnp.ones_like(dy), eps=eps),)
    ),
)
wrong(
    "20.4",
    "The gradient is another",
    by_closure(lambda back, _, eps: lambda x, dy: (-back(x, dy, eps=eps),)),
)
wrong(
    "20.4",
    "",
    by_closure(lambda back, _, eps: lambda x, dy: (back(dy, x, eps=eps),)),
)
wrong(
    "20.4",
    "The gradient is another",
    by_closure(lambda back, _, eps: lambda x, dy: (jnp.zeros_like(dy),)),
)
wrong(
    "20.4",
    "was called 2 times",
    by_closure(
        lambda back, _, eps: (
            lambda x, dy: ((back(x, dy, eps=eps) + back(x, dy * 1.0, eps=eps)) / 2,)
        )
    ),
)


@pytest.mark.parametrize("name, made", ANSWERS.taken)
def test_a_right_answer_is_taken(name, made, capsys):
    assert_taken(name, made, lambda: capsys.readouterr().out)


@pytest.mark.parametrize("name, made, complaint", ANSWERS.refused)
def test_a_wrong_answer_is_refused(name, made, complaint, capsys):
    assert_refused(name, made, complaint, lambda: capsys.readouterr().out)
