"""Exercises whose answer is a program: other right ones, and plausible wrong ones.

Those of chapters 16 and 17 run in the process of test_exercises_on_eight_devices.py.
"""

import math
import time

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import (
    ShapeDtypeStruct,
    checkpoint,
    checkpoint_policies,
    export,
    jit,
    lax,
    nn,
    vmap,
)
from minijax.experimental import io_callback
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from minijax.sharding import PartitionSpec as P
from tests.notebooks.judged import Answers, assert_refused, assert_taken
from tests.notebooks.test_exercises import EIGHT, ON_EIGHT, answers

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong

# 00.3: a better network.
first = answers("00")


def ridge(images, labels, width=1500):
    """Random features and least squares: no steps."""
    generator = np.random.default_rng(0)
    weights = generator.normal(size=(64, width)) / 8
    features = np.tanh(np.asarray(images) @ weights * 2)
    wanted = np.eye(10)[np.asarray(labels)]
    solved = np.linalg.solve(
        features.T @ features + 1e-1 * np.eye(width), features.T @ wanted
    )
    return jnp.asarray(weights * 2, jnp.float32), jnp.asarray(solved, jnp.float32)


def of_features(params, image):
    return jnp.tanh(image @ params[0]) @ params[1]


def of_neighbours(params, image):
    images, labels = params
    near = jnp.exp(-2 * jnp.sum((images - image) ** 2, -1))
    return jnp.zeros(10).at[labels].add(near)


right("00.3", of_features, ridge)
right("00.3", of_neighbours, lambda images, labels: (images, labels))
wrong(
    "00.3",
    "Does train learn from the labels",
    first.scores,
    lambda *_: first.make_params(first.random.key(1), [64, 64, 10]),
)
wrong("00.3", "Does train learn", of_features, lambda x, y: ridge(x, np.roll(y, 1)))
wrong("00.3", "96.5% are asked for", of_features, lambda x, y: ridge(x, y, width=30))
wrong("00.3", "gave (", lambda p, x: of_features(p, x)[None], ridge)
wrong("00.3", "gave (", lambda p, x: of_features(p, x).argmax(), ridge)


# 01.2: time until the result is there.
def waits_in_the_end(f, x):
    f(x).block_until_ready()
    begin = time.perf_counter()
    out = f(x)
    out.block_until_ready()
    return time.perf_counter() - begin


def in_milliseconds(f, x):
    minijax.block_until_ready(f(x))
    begin = time.perf_counter()
    minijax.block_until_ready(f(x))
    return (time.perf_counter() - begin) * 1000


right("01.2", waits_in_the_end)
wrong("01.2", "", in_milliseconds)

# 03.5: ten hits.
module = answers("03")


def hits(*changes):
    def made():
        f, calls = module.hit_calls()
        for place, call in changes:
            calls[place] = call
        return f, calls

    return made()


right("03.5", *hits((0, lambda: module.f(np.arange(3.0), 2.0))))
right(
    "03.5",
    *hits(
        (4, lambda: module.f(jnp.array([1.0, 3.0, 5.0]), 2.0)),
        (9, lambda: module.f(jnp.arange(2.0, 5.0), 2.0)),
    ),
)
wrong("03.5", "Puzzle 1 is a miss", *hits((0, lambda: module.f(jnp.arange(3), 2.0))))
wrong("03.5", "Puzzle 3 is a miss", *hits((2, lambda: module.f(jnp.ones(3), 2.0, n=4))))
wrong("03.5", "Puzzle 8 raises", *hits((7, lambda: module.f([1, 2, 3], 3.0))))
wrong("03.5", "There are 10 calls", module.f, module.hit_calls()[1][:9])
wrong("03.5", "is the jitted f itself", lambda x, y: 0, module.hit_calls()[1])


# 06.3: the inverse tangent in tiny.
def atan_by(name, rule, meaning=np.arctan):
    def atan(x):
        from tiny.operations import primitive
        from tiny.tangents import slopes
        from tiny.trace import MEANING, SHAPES, bind

        if name not in MEANING:
            primitive(name, meaning, SHAPES["sin"])
            slopes(name, rule)
        return bind(name, x)

    return atan


def of_tan(t, y, x):
    from tiny.operations import cos

    return t * cos(y) * cos(y)


right("06.3", atan_by("atan_a", lambda t, y, x: t / (x * x + 1.0)))
right("06.3", atan_by("atan_b", of_tan))
wrong("06.3", "the tangent is", atan_by("atan_c", lambda t, y, x: -t / (1.0 + x * x)))
wrong("06.3", "the tangent is", atan_by("atan_d", lambda t, y, x: t / (1.0 - x * x)))
wrong("06.3", "the tangent is", atan_by("atan_e", lambda t, y, x: t / (1.0 + y * y)))
wrong("06.3", "For [", atan_by("atan_f", lambda t, y, x: t, np.tan))


# 07.5: three transposes; 08.5: ten pairs of axes.
right("07.5", lambda c: c + c + c, lambda c: c * np.ones(4), lambda W, c: c @ W)
right(
    "07.5",
    lambda c: np.multiply(3, c),
    lambda c: [c, c, c, c],
    lambda W, c: sum(c[i] * W[i] for i in range(3)),
)
wrong("07.5", "b, for c", lambda c: 3 * c, lambda c: c, lambda W, c: c @ W)
wrong("07.5", "It raised", lambda c: 3 * c, lambda c: np.full(4, c), lambda W, c: W @ c)
wrong("07.5", "a, for c", lambda c: 3 + c, lambda c: np.full(4, c), lambda W, c: c @ W)
wrong(
    "07.5",
    "c, for c",
    lambda c: 3 * c,
    lambda c: np.full(4, c),
    lambda W, c: np.linalg.pinv(W) @ c,
)
axes = answers("08").AXES


def axes_with(number, pair):
    return [*axes[: number - 1], pair, *axes[number:]]


right("08.5", [[ins, out] for ins, out in axes])
right("08.5", tuple(axes_with(6, ((None, 1), 1))))
right("08.5", axes_with(4, ((None, 0), 0)))
right("08.5", axes_with(2, ((-1,), 0)))
wrong("08.5", "Puzzle 2: Its shape is (3,)", axes_with(2, (0, 0)))
wrong("08.5", "Puzzle 5: ", axes_with(5, ((0, 0), 0)))
wrong("08.5", "Puzzle 8: Its shape", axes_with(8, ((1, None), 0)))
wrong("08.5", "Puzzle 9: ", axes_with(9, ((0, None), 0)))
wrong("08.5", "Puzzle 10: Its shape", axes_with(10, (0, 0)))
wrong("08.5", "Give a list of 10 pairs", axes[:9])
wrong("08.5", "give a pair", axes_with(3, 0))
wrong("08.5", "Give a list of 10 pairs", None)


# 09.2: Kepler's equation.
def steps_from(m, x, count=10):
    for _ in range(count):
        x = x - (x - 0.5 * jnp.sin(x) - m) / (1.0 - 0.5 * jnp.cos(x))
    return x


def implicit(kind):
    """The solution, whose derivative is one more equation."""
    if kind == "custom_vjp":
        made = minijax.custom_vjp(lambda m: steps_from(m, m))
        made.defvjp(lambda m: (made(m),) * 2, lambda x, c: (c * kind_slope(x),))
        return made
    made = minijax.custom_jvp(lambda m: steps_from(m, m))
    both = lambda x, t: (x, t * kind_slope(x))  # noqa: E731
    made.defjvp(lambda v, t: both(made(*v), t[0]))
    return made


def kind_slope(x):
    return 1.0 / (1.0 - 0.5 * jnp.cos(x))


right("09.2", implicit("custom_vjp"))
right("09.2", implicit("custom_jvp"))
frozen = minijax.custom_jvp(lambda m: steps_from(m, m))
frozen.defjvp(lambda v, t: (frozen(*v), t[0] * kind_slope(lax.stop_gradient(v[0]))))
wrong("09.2", "derivatives are wrong", frozen)


# 11.2: softplus; 11.3: a policy under a budget.
def soft_by(value, slope):
    made = minijax.custom_jvp(value)
    made.defjvp(lambda v, t: (made(*v), t[0] * slope(*v)))
    return made


right("11.2", soft_by(lambda x: jnp.logaddexp(0.0, x), nn.sigmoid))
right("11.2", soft_by(lambda x: -nn.log_sigmoid(-x), lambda x: nn.sigmoid(x)))
naive = lambda x: jnp.exp(x) / (1 + jnp.exp(x))  # noqa: E731
wrong("11.2", "nan", soft_by(lambda x: jnp.logaddexp(0.0, x), naive))
wrong("11.2", "Its gradient", soft_by(lambda x: jnp.logaddexp(0.0, x), jnp.tanh))
wrong("11.2", "softplus(", soft_by(nn.relu, nn.sigmoid))


def within_by_sizes(f, budget, *args):
    from minijax_lab.explain.residuals import residuals

    names = ("everything_saveable", "dots_saveable", "nothing_saveable")
    tried = [checkpoint(f, policy=getattr(checkpoint_policies, n)) for n in names]
    return next(one for one in tried if residuals(one, *args).bytes <= budget)


right("11.3", within_by_sizes)


# 13.3: layer norm in few bytes.
def layer_of_one_row(row):
    mean, last = row.mean(), row[-1]
    squares = jnp.mean(jnp.square(row - last))
    return (row - mean) * lax.rsqrt(squares - jnp.square(mean - last) + 1e-5)


right("13.3", vmap(layer_of_one_row))


# 14.3: a program for a process without the source.
def pack_both(function, spec):
    kept = export.export(jit(lambda x: function(x)))(spec)
    return bytearray(kept.serialize(vjp_order=2))


def pack_for_three(function, spec):
    return export.export(jit(function), platforms=("cpu",))(spec).serialize(vjp_order=1)


def pack_constant(function, spec):
    return export.export(jit(lambda x: 0 * function(x)))(spec).serialize(vjp_order=1)


def pack_wider(function, spec):
    wide = ShapeDtypeStruct((4,), spec.dtype)
    return export.export(jit(function))(wide).serialize(vjp_order=1)


right("14.3", pack_both)
right("14.3", pack_for_three)
wrong("14.3", "There it gives", pack_constant)
wrong("14.3", "In a process of its own", pack_wider)
wrong("14.3", "Give bytes", lambda f, spec: export.export(jit(f))(spec))
wrong("14.3", "In a process of its own", lambda f, spec: b"".join([b"no program"]))

# 16: slices, velocities, operands.
slices = answers("16").rows_and_columns()
right("16.1", [[[*rows], [*columns]] for rows, columns in slices])
right("16.1", np.array(slices))
wrong("16.1", "Device 0 does not", [(columns, rows) for rows, columns in slices])
wrong("16.1", "Device 1 does not", sorted(slices))
wrong("16.1", "Give a list of eight", slices[:4])
wrong("16.1", "Give a list of eight", None)
wrong("16.1", "Device 0 does not", [*range(8)])


def zeros_put(weights):
    return {
        name: minijax.device_put(np.zeros(w.shape, np.float32), w.sharding)
        for name, w in weights.items()
    }


def zeros_pinned(weights):
    places = {name: w.sharding for name, w in weights.items()}
    return jit(
        lambda: {name: jnp.zeros(w.shape) for name, w in weights.items()},
        out_shardings=places,
    )()


def copied_to(place):
    return lambda weights: {
        name: minijax.device_put(jnp.zeros(w.shape), place(w))
        for name, w in weights.items()
    }


right("16.2", zeros_put)
right("16.2", zeros_pinned)
wrong(
    "16.2",
    "query is cut by",
    copied_to(lambda w: minijax.sharding.NamedSharding(w.sharding.mesh, P())),
)
wrong("16.2", "embed is cut by", copied_to(lambda w: minijax.devices()[0]))
wrong("16.2", "not zeros", lambda w: {k: jnp.ones_like(v) for k, v in w.items()})
wrong("16.2", "Give a dict", lambda w: [jnp.zeros_like(v) for v in w.values()])
wrong("16.2", "not zeros", lambda w: {k: jnp.zeros(v.shape[:1]) for k, v in w.items()})
right("16.4", (P("x", None), P(None, "y")))
right("16.4", [P(("x",)), P(None, ("y",))])
wrong("16.4", "less is possible", (P("y"), P(None, None)))
wrong("16.4", "Each device sends", (P("x"), P("y")))
wrong("16.4", "Each device sends", (P("x", "y"), P(None, "y")))
wrong("16.4", "less is possible", (P(), P()))
wrong("16.4", "Give a pair", P("x"))

# 17: varying, softmax, a pipeline, both ways.
varying = answers("17").VARYING
right("17.1", tuple(varying))
right("17.1", [one.upper() for one in varying])
wrong("17.1", "look again at e", [*varying[:4], "y", "none"])
wrong("17.1", "look again at a", ["both", *varying[1:]])
wrong("17.1", "is none of", ["z", *varying[1:]])
wrong("17.1", "Give a list", 6)
wrong("17.1", "look again at a", ["none"] * 6)


def softmax_by_maximum_of_all(part):
    top = lax.all_gather(part.max(1), "i").max(0)[:, None]
    e = jnp.exp(part - top)
    return e / lax.psum(jnp.sum(e, 1, keepdims=True), "i")


def softmax_with(top, total):
    def softmax(part):
        e = jnp.exp(part - top(part))
        return e / total(e)

    return softmax


def summed(e):
    return lax.psum(e.sum(1, keepdims=True), "i")


right("17.2", softmax_by_maximum_of_all)
wrong("17.2", "not finite", softmax_with(lambda x: 0.0, summed))
wrong(
    "17.2",
    "The first rows add up to",
    softmax_with(lambda x: x.max(1, keepdims=True), summed),
)
wrong(
    "17.2",
    "carries",
    softmax_with(
        lambda x: lax.pmax(x.max(1, keepdims=True), "i"),
        lambda e: lax.psum(e, "i").sum(1, keepdims=True),
    ),
)
wrong(
    "17.2",
    "The first rows add up to",
    softmax_with(
        lambda x: lax.pmax(x.max(1, keepdims=True), "i"),
        lambda e: lax.pmax(e.sum(1, keepdims=True), "i"),
    ),
)

ONWARD = [(d, (d + 1) % 4) for d in range(4)]


def pipeline_round(w, xs):
    """The last stage passes its results to the first one, which collects them."""
    stage = lax.axis_index("stage")
    here = lax.pcast(jnp.zeros(xs.shape[1:]), "stage", to="varying")
    done = []
    for turn in range(9):
        fresh = xs[min(turn, 5)]
        out = jnp.tanh(jnp.where(stage == 0, fresh, here) @ w[0])
        here = lax.ppermute(out, "stage", ONWARD)
        done.append(jnp.where(stage == 0, here, 0.0))
    return lax.psum(jnp.stack(done[3:]), "stage")


def while_below(low, high, turn, state):
    def more(counted):
        return counted[0] + 1, turn(*counted)

    return lax.while_loop(lambda counted: counted[0] < high, more, (low, state))[1]


def one_batch_at_a_time(loop):
    """Wrong: a batch begins when the one before has gone through all stages."""

    def pipeline(w, xs):
        stage = lax.axis_index("stage")

        def turn(number, state):
            here, done = state
            batch, step = number // 4, number % 4
            out = jnp.tanh(jnp.where(step == 0, xs[batch], here) @ w[0])
            here = lax.ppermute(out, "stage", ONWARD)
            found = jnp.where((stage == 0) & (step == 3), here, done[batch])
            return here, done.at[batch].set(found)

        start = lax.pcast((xs[0] * 0, xs * 0), "stage", to="varying")
        return lax.psum(loop(0, 24, turn, start)[1], "stage")

    return pipeline


right("17.3", pipeline_round)
wrong("17.3", "computes 24 stages of a batch", one_batch_at_a_time(lax.fori_loop))
wrong("17.3", "There is a `while`", one_batch_at_a_time(while_below))
wrong("17.3", "Batch 0", lambda w, xs: lax.psum(xs @ w[0], "stage"))


def product(a, piece, owner):
    rows = piece.shape[0]
    return lax.dynamic_slice_in_dim(a, (owner % 8) * rows, rows, 1) @ piece


UP = [(d, (d + 1) % 8) for d in range(8)]
DOWN = [(d, (d - 1) % 8) for d in range(8)]


def both(first=4, second=3, signs=(-1, 1), pairs=(UP, DOWN)):
    def both_ways(a, b):
        me = lax.axis_index("i")
        total = product(a, b, me)
        for count, sign, pair in zip((first, second), signs, pairs):
            moved = b
            for turn in range(1, count + 1):
                moved = lax.ppermute(moved, "i", pair)
                total = total + product(a, moved, me + sign * turn)
        return total

    return both_ways


def both_in_a_list(a, b):
    me, pieces = lax.axis_index("i"), {0: b}
    for turn in range(1, 5):
        pieces[turn] = lax.ppermute(pieces[turn - 1], "i", UP)
        if turn < 4:
            pieces[-turn] = lax.ppermute(pieces[1 - turn], "i", DOWN)
    return sum(product(a, piece, me - turn) for turn, piece in pieces.items())


def both_in_a_loop(turns=4, used=3, loop=lax.fori_loop):
    """Both pieces travel in each turn; the right one is used in the first of them."""

    def both_ways(a, b):
        me = lax.axis_index("i")

        def turn(number, state):
            total, left, right = state
            left, right = lax.ppermute(left, "i", UP), lax.ppermute(right, "i", DOWN)
            fresh = jnp.where(number <= used, product(a, right, me + number), 0.0)
            return total + product(a, left, me - number) + fresh, left, right

        return loop(1, turns + 1, turn, (product(a, b, me), b, b))[0]

    return both_ways


right("17.4", both())
right("17.4", both(first=3, second=4))
right("17.4", both_in_a_loop())
wrong("17.4", "7 exchanges come one after the other", both_in_a_loop(7, 0))
wrong("17.4", "There is a `while`", both_in_a_loop(7, 0, while_below))
right("17.4", both_in_a_list)
wrong("17.4", "another product", both(second=4))
wrong("17.4", "another product", both(signs=(1, -1)))
wrong("17.4", "exchanges come one after the other", both(first=5, second=2))
wrong("17.4", "another product", both(first=3))


# 18 and 19: kernels.
def kernel(inside, shape, grid, ins, out, scratch=(), **options):
    return pl.pallas_call(
        inside,
        ShapeDtypeStruct(shape, jnp.float32),
        grid=grid,
        in_specs=[pl.BlockSpec(*spec) for spec in ins],
        out_specs=pl.BlockSpec(*out),
        scratch_shapes=[pltpu.VMEM(size, jnp.float32) for size in scratch],
        **options,
    )


def sums_of_whole_rows(x, interpret=False):
    def inside(x_ref, o_ref):
        o_ref[...] = x_ref[...].sum(1)

    n, m = x.shape
    return kernel(
        inside,
        (n,),
        (n // 4,),
        [((4, m), lambda i: (i, 0))],
        ((4,), lambda i: (i,)),
        interpret=interpret,
    )(x)


right("18.2", sums_of_whole_rows)


def pooled(operation, size=8, step=2):
    def pool(x):
        def inside(x_ref, o_ref):
            part = x_ref[...]
            columns = operation(part[:, ::2], part[:, 1::2])
            o_ref[...] = operation(columns[::step], columns[1::step])

        n, m = x.shape
        at = lambda i, j: (i, j)  # noqa: E731
        out = ((size // 2, size // 2), at)
        grid = (n // size, m // size)
        return kernel(inside, (n // 2, m // 2), grid, [((size, size), at)], out)(x)

    return pool


right("18.3", pooled(jnp.maximum))
right("18.3", pooled(lambda x, y: jnp.where(x > y, x, y), 16))
wrong("18.3", "the numbers are others", pooled(jnp.minimum))
wrong("18.3", "the numbers are others", pooled(lambda x, y: x))
wrong("18.3", "the numbers are others", pooled(jnp.add))


def normed(rows=8, eps=1e-5, count=128, grid=None):
    def layer_norm(x):
        def inside(x_ref, o_ref):
            x = x_ref[...]
            mean = x.sum(1, keepdims=True) / 128
            square = ((x - mean) ** 2).sum(1, keepdims=True) / count
            o_ref[...] = (x - mean) / jnp.sqrt(square + eps)

        spec = ((rows, 128), lambda i: (i, 0))
        programs = grid or pl.cdiv(x.shape[0], rows)
        return kernel(inside, x.shape, (programs,), [spec], spec)(x)

    return layer_norm


right("18.4", normed())
right("18.4", normed(rows=4))
wrong("18.4", "the numbers are others", normed(eps=1.0))
wrong("18.4", "the numbers are others", normed(count=64))
wrong("18.4", "the numbers are others", normed(grid=1))
wrong("18.4", "blocks of 8 are asked for", normed(rows=32))


def online_from_the_first(parts):
    """Begins with the first part that has a number."""
    top = weight = None
    for part in parts:
        most = np.max(part)
        if most == -np.inf:
            continue
        new = np.exp(part - most).sum()
        if top is None:
            top, weight = most, new
            continue
        both = np.maximum(top, most)
        weight = weight * np.exp(top - both) + new * np.exp(most - both)
        top = both
    return top, weight


def online_at_once(parts):
    """Wrong: it puts all parts together."""
    row = np.concatenate(list(parts))
    return row.max(), np.exp(row - row.max()).sum()


right("19.2", online_from_the_first)
wrong("19.2", "each is gone when the next one comes", online_at_once)


def layered(finish=lambda y, b: nn.relu(y + b), depth=None, columns=16):
    """Whole rows and columns of a product; a block is at most 1 KiB."""

    def layer(x, w, b):
        (n, d), m = x.shape, w.shape[1]
        part = depth or (8 if d % 16 else 16)

        def inside(x_ref, w_ref, b_ref, o_ref):
            k = pl.program_id(2)

            @pl.when(k == 0)
            def _():
                o_ref[...] = jnp.zeros_like(o_ref)

            o_ref[...] += x_ref[...] @ w_ref[...]

            @pl.when(k == pl.num_programs(2) - 1)
            def _():
                o_ref[...] = finish(o_ref[...], b_ref[...])

        return kernel(
            inside,
            (n, m),
            (n // 8, m // columns, d // part),
            [
                ((8, part), lambda i, j, k: (i, k)),
                ((part, columns), lambda i, j, k: (k, j)),
                ((columns,), lambda i, j, k: (j,)),
            ],
            ((8, columns), lambda i, j, k: (i, j)),
        )(x, w, b)

    return layer


def layered_in_two(x, w, b):
    """Wrong: a kernel for the product, and one for bias and relu."""
    product = layered(lambda y, b: y)(x, w, b)
    n, m = product.shape

    def finish(y_ref, b_ref, o_ref):
        o_ref[...] = nn.relu(y_ref[...] + b_ref[...])

    block = ((16, 16), lambda i, j: (i, j))
    blocks = [block, ((16,), lambda i, j: (j,))]
    return kernel(finish, (n, m), (n // 16, m // 16), blocks, block)(product, b)


right("19.3", layered())
right("19.3", layered(lambda y, b: jnp.where(y + b > 0, y + b, 0), depth=8))
wrong("19.3", "There are 2 kernels", layered_in_two)
wrong("19.3", "the numbers are others", layered(lambda y, b: nn.relu(y) + b))
wrong("19.3", "the numbers are others", layered(lambda y, b: nn.relu(y - b)))
wrong("19.3", "the numbers are others", layered(lambda y, b: nn.relu(y)))


def seen_before(keep=lambda key, query: key <= query, scale=math.sqrt, fetch=True):
    """Causal attention whose keys come in blocks up to the query's."""

    def causal(q, k, v):
        n, width = q.shape

        def inside(q_ref, k_ref, v_ref, o_ref, top_ref, sum_ref):
            i, j = pl.program_id(0), pl.program_id(1)

            @pl.when(j == 0)
            def _():
                top_ref[...] = jnp.full((16, 1), -1e30)
                sum_ref[...] = jnp.zeros((16, 1))
                o_ref[...] = jnp.zeros((16, width))

            @pl.when(j <= i)
            def _():
                scores = q_ref[...] @ k_ref[...].T / scale(width)
                query = i * 16 + jnp.arange(16)[:, None]
                key = j * 16 + jnp.arange(16)[None, :]
                scores = jnp.where(keep(key, query), scores, -1e30)
                top = jnp.maximum(top_ref[...], scores.max(1, keepdims=True))
                e = jnp.exp(scores - top)
                old = sum_ref[...] * jnp.exp(top_ref[...] - top)
                new = old + e.sum(1, keepdims=True)
                # The output is a mean all the way.
                o_ref[...] = o_ref[...] * (old / new) + e @ v_ref[...] / new
                top_ref[...], sum_ref[...] = top, new

        last = jnp.minimum if fetch else lambda j, i: j
        queries = ((16, width), lambda i, j: (i, 0))
        keys = ((16, width), lambda i, j: (last(j, i), 0))
        return kernel(
            inside,
            q.shape,
            (n // 16, n // 16),
            [queries, keys, keys],
            queries,
            [(16, 1), (16, 1)],
        )(q, k, v)

    return causal


def seen_at_once(q, k, v):
    def inside(q_ref, k_ref, v_ref, o_ref):
        scores = q_ref[...] @ k_ref[...].T / math.sqrt(q.shape[1])
        scores = jnp.where(jnp.tri(len(q), dtype=bool), scores, -1e30)
        o_ref[...] = nn.softmax(scores) @ v_ref[...]

    block = (q.shape, lambda i: (0, 0))
    return kernel(inside, q.shape, (1,), [block] * 3, block)(q, k, v)


right("19.4", seen_before())
wrong("19.4", "holds 64 rows of q_ref", seen_at_once)
right("19.4", seen_before(lambda key, query: query - key >= 0))
wrong("19.4", "the numbers are others", seen_before(lambda key, query: key >= query))
wrong("19.4", "the numbers are others", seen_before(scale=lambda width: width))
wrong("19.4", "24,000 B are enough", seen_before(fetch=False))


# 20.3: reports in order; 20.4: a derivative from two functions.
def saved_with(**options):
    def halving(save, x):
        for number in range(4):
            x = x / 2
            io_callback(save, None, number, x, **options)
        return x

    return halving


right("20.3", saved_with(ordered=True))
wrong("20.3", "is ordered", saved_with())
wrong(
    "20.3",
    "save got",
    lambda save, x: [io_callback(save, None, 0, x / 2, ordered=True), x / 16][1],
)


def saved_at_the_end(save, x):
    """Wrong: one callback reports all four steps."""
    steps = [x / 2, x / 4, x / 8, x / 16]
    io_callback(lambda *each: [*map(save, range(4), each)], None, *steps, ordered=True)
    return steps[-1]


wrong("20.3", "One callback calls save several times", saved_at_the_end)


def by_jvp(forward, backward):
    """The rule is linear in the tangent by the transpose of `backward`."""

    @minijax.custom_vjp
    def norm(x, eps):
        return forward(x, eps=0.5)

    norm.defvjp(
        lambda x, eps: (norm(x, eps), (x, eps)),
        lambda kept, dy: (backward(kept[0], dy, eps=0.5), jnp.zeros_like(kept[1])),
    )
    return norm


def by_jnp(forward, backward):
    """Wrong: it computes what `forward` computes."""

    def norm(x, eps):
        return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + eps)

    return by_jvp(norm, backward)


right("20.4", by_jvp)
wrong("20.4", "The forward function was not called", by_jnp)


def here():
    """The process of these answers: of one device, or of eight."""

    def own(cases):
        return [c for c in cases if (c.values[0][:2] in ON_EIGHT) == EIGHT]

    return own(ANSWERS.taken), own(ANSWERS.refused)


TAKEN, REFUSED = here()


@pytest.mark.parametrize("name, made", TAKEN)
def test_exercise_takes_a_right_program(name, made, capsys):
    assert_taken(name, made, lambda: capsys.readouterr().out)


@pytest.mark.parametrize("name, made, complaint", REFUSED)
def test_exercise_refuses_a_wrong_program(name, made, complaint, capsys):
    assert_refused(name, made, complaint, lambda: capsys.readouterr().out)
