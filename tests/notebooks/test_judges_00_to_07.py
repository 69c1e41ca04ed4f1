"""Exercises of chapters 00 to 07: other right answers, and plausible wrong ones."""

import functools
import math
from dataclasses import dataclass

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax, random, tree, vmap
from minijax_lab import digits, grading
from tests.notebooks.judged import Answers, assert_refused, assert_taken
from tests.notebooks.test_exercises import EIGHT

pytestmark = pytest.mark.skipif(EIGHT, reason="for one device")
ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong

# 00.1: how often f prints; 00.2: another activation; 00.4: a gradient of one's own.
right("00.1", "2")
right("00.1", np.int64(2))
for times, said in ((1, ""), (3, ""), (4, ""), ("three", ""), (None, "")):
    wrong("00.1", said, times)


def network(activation):
    def scores(params, image):
        hidden, output = params
        x = activation(image @ hidden["w"] + hidden["b"])
        return x @ output["w"] + output["b"]

    return scores


right("00.2", network(lambda x: jnp.maximum(x, 0.0)), "max")
right("00.2", network(lambda x: lax.max(x, jnp.zeros_like(x))), " max ")
wrong("00.2", "", network(jnp.tanh), "max")
wrong("00.2", "", network(jnp.abs), "max")
wrong("00.2", "", network(lambda x: jnp.minimum(x, 0)), "max")
wrong("00.2", "", network(lambda x: jnp.maximum(0, jnp.tanh(x))), "max")
wrong("00.2", "is not called 'tanh'", network(lambda x: jnp.maximum(0, x)), "tanh")


def scores_of_the_nearest(params, image):
    """Looks the answer up among all images, whatever `train` was given."""
    data = digits.load()
    distances = jnp.sum((jnp.asarray(data.train_images) - image) ** 2, -1)
    return jnp.arange(10) == jnp.asarray(data.train_labels)[jnp.argmin(distances)]


wrong("00.3", "Each call has others", scores_of_the_nearest, lambda images, labels: ())
right("00.4", lambda x: jnp.sin(x) * x + x**2, 1.0)
right("00.4", lambda x: jnp.exp(-x * x) / (1 + x), np.float32(0.3))
wrong("00.4", "take a function with at least 3", lambda x: x * x, 1.0)
wrong("00.4", "choose another point", lambda x: jnp.sqrt(x) * jnp.sin(x) + x, 0.0)
wrong("00.4", "the difference quotient", lambda x: lax.stop_gradient(x * x) * x, 1.1)
wrong("00.4", "It raised", lambda x: math.sin(x) + x * x * x, 1.0)
wrong("00.4", "It raised", lambda x: jnp.stack([x * x * x, x]), 1.0)

# 01.3: a running mean; 01.4: a NumPy function with `.at`.
right("01.3", lambda x: lax.cumsum(jnp.asarray(x)) / (jnp.arange(x.size) + 1.0))
right(
    "01.3",
    lambda x: jnp.tril(jnp.ones((len(x), len(x)))) @ x / jnp.arange(1.0, len(x) + 1.0),
)
wrong("01.3", "should be", lambda x: jnp.cumsum(x) / len(x))
wrong("01.3", "should be", lambda x: jnp.cumsum(x) / jnp.maximum(1, jnp.arange(len(x))))
wrong("01.3", "should be", lambda x: jnp.cumsum(x)[1:] / jnp.arange(1, len(x)))
wrong(
    "01.3",
    "a Python loop",
    lambda x: jnp.stack([x[: k + 1].mean() for k in range(len(x))]),
)


def board(index):
    found = np.zeros(6)
    found[index] = 1
    return found


right("01.4", board, lambda i: jnp.zeros(6).at[i].set(1))
right("01.4", board, jit(lambda i: jnp.zeros(6).at[i].max(1.0)))
wrong("01.4", "NumPy gives", board, lambda i: jnp.zeros(6).at[i].add(1))
wrong("01.4", "NumPy gives", board, lambda i: jnp.zeros(7).at[i].set(1))
wrong("01.4", "leaves a scatter", board, lambda i: jnp.isin(jnp.arange(6), i) * 1.0)
wrong("01.4", "It raised", board, board)
wrong(
    "01.4",
    "leaves a scatter",
    board,
    lambda i: (jnp.zeros(6).at[i].set(1), jnp.isin(jnp.arange(6), i) * 1.0)[1],
)
right("01.4", lambda i: np.pad(i[1:3], 1), lambda i: jnp.zeros(4).at[1:3].set(i[1:3]))

# 01.5: five cells of the Game of Life.
long_lived = np.array([(31, 32), (31, 33), (32, 31), (32, 32), (33, 32)])
right("01.5", tuple(map(tuple, long_lived[:, ::-1].tolist())))
right("01.5", 63 - long_lived)
right("01.5", [(x, y) for x, y in jnp.asarray(long_lived + 20)])
wrong("01.5", "After 1 of 100 turns no cell is alive", [(5, 5), (5, 6)])
wrong("01.5", "After 100 turns 4 cells", [(5, 5), (5, 6), (6, 5), (6, 6)])
wrong("01.5", "After 100 turns 12 cells", [(30, 30 + i) for i in range(5)])
wrong("01.5", "(64, 5) is not on the board", [(63, 5), (64, 5)])
wrong("01.5", "Give a list of pairs", [30, 31, 32])
wrong("01.5", "Give a list of pairs", long_lived / 2)

# 02.2: a pure function; 02.3: relu in tiny; 02.4: a loop of one's own.
right("02.2", lambda x, n: sum([x] * int(n), 0 * x) if isinstance(n, int) else n * x)
right("02.2", jit(jnp.multiply))
counted: list[int] = []
wrong("02.2", "not x * n", lambda x, n: x * 2.0)
wrong("02.2", "not x * n", lambda x, n: x + n)
wrong("02.2", "It raised", lambda x, n: x * int(n))
wrong("02.2", "Two traces", lambda x, n: counted.append(1) or x * n + len(counted))


def tiny_relu(how):
    from tiny import trace as tiny

    def relu(x):
        return how(tiny, x)

    return relu, tiny.trace


def relu_named(name, meaning, dtype="f32"):
    def made(tiny, x):
        tiny.MEANING[name] = meaning
        tiny.SHAPES[name] = lambda x: tiny.Type(x.shape, dtype)
        return tiny.bind(name, x)

    return tiny_relu(made)


right("02.3", *relu_named("relu_a", lambda x: np.maximum(x, 0)))
right("02.3", *relu_named("relu_b", lambda x: np.where(x > 0, x, 0 * x)))
wrong("02.3", "For [", *relu_named("relu_c", np.abs))
wrong(
    "02.3",
    "the result is bool[5]",
    *relu_named("relu_g", lambda x: np.maximum(x, 0), "bool"),
)
wrong("02.3", "For [", *relu_named("relu_d", lambda x: np.minimum(x, 0)))
wrong("02.3", "For [", *relu_named("relu_e", lambda x: np.where(x > 1, x, 0)))
wrong("02.3", "one is enough", *tiny_relu(lambda tiny, x: (x + abs(0)) * 1.0))
wrong("02.3", "It raised", *tiny_relu(lambda tiny, x: np.maximum(x, 0)))
wrong("02.3", "equations; one is enough", *tiny_relu(lambda tiny, x: x))


def twelve(x):
    for factor in range(6):
        x = x * 0.5 + factor
    return x


right("02.4", twelve, 12)
right("02.4", twelve, "12")
right("02.4", twelve, "12 equations")
wrong("02.4", "It has 12 equations, not 13", twelve, 13)
wrong("02.4", "It has 12 equations, not 6", twelve, 6)
wrong("02.4", "at least 10", lambda x: x * 2, 1)
wrong("02.4", "at least 10", lambda x: x, 0)

# 03.2 to 03.4: one trace.
step = jit(lambda w, rate: w - rate * 2 * (w - 1.0))


def by_fori(w, steps):
    return lax.fori_loop(0, steps, lambda i, w: step(w, 0.1 / (1 + i)), w)


def by_counter(w, steps):
    for i in range(steps):
        w = counted_step(w, jnp.float32(i))
    return w


@jit
def counted_step(w, i):
    return w - 0.1 / (1 + i) * grad(lambda w: jnp.sum((w - 1.0) ** 2))(w)


static_step = jit(lambda w, rate: w - rate * 2 * (w - 1.0), static_argnums=1)


def by_static(w, steps):
    for i in range(steps):
        w = static_step(w, 0.1 / (1 + i))
    return w


def one_too_few(w, steps):
    for i in range(1, steps):
        w = step(w, 0.1 / (1 + i))
    return w


right("03.2", by_fori)
right("03.2", by_counter)
wrong("03.2", "missed the cache", by_static)
wrong("03.2", "should be", one_too_few)
wrong("03.2", "should be", lambda w, steps: w + 0.2 * steps)


def with_losses(w, steps):
    losses = []
    for i in range(steps):
        w = step(w, 0.1 / (1 + i))
        losses.append(float(jnp.sum((w - 1.0) ** 2)))
    return w


def never_jitted(w, steps):
    for i in range(steps):
        w = w - 0.1 / (1 + i) * 2 * (w - 1.0)
    return w


right("03.2", with_losses)
wrong("03.2", "Nothing in it is jitted", never_jitted)


def normalizer(subtract, move):
    return jit(subtract), jit(move)


def tenth(mean, x):
    return 0.9 * mean + 0.1 * x.mean()


right("03.3", *normalizer(lambda x, mean: x - mean, tenth))
right("03.3", *normalizer(jnp.subtract, lambda m, x: m - (m - jnp.mean(x)) / 10))
wrong("03.3", "is not jitted", lambda x, mean: x - mean, jit(tenth))
wrong("03.3", "In round 1", *normalizer(lambda x, mean: x - x.mean(), tenth))
wrong("03.3", "should give", *normalizer(jnp.subtract, lambda m, x: x.mean()))
wrong("03.3", "In round 2", *normalizer(lambda x, mean: x, tenth))
wrong(
    "03.3", "update should", *normalizer(jnp.subtract, lambda m, x: m + 0.1 * (x - m))
)


def pads(fill=0.0, size=64, fresh=False):
    inner = jit(lambda x: jnp.sum(x * x))

    def padded(x):
        row = np.full(size, fill, np.float32)
        row[: len(x)] = x
        return (jit(lambda x: jnp.sum(x * x)) if fresh else inner)(row)

    return padded, inner


def pads_by_concatenate():
    inner = jit(lambda x: x @ x)
    zeros = np.zeros(64, np.float32)
    return lambda x: inner(np.concatenate([x, zeros])[:64]), inner


right("03.4", *pads())
right("03.4", *pads_by_concatenate())
wrong("03.4", "it gives", *pads(fill=1.0))
wrong("03.4", "was never called", *pads(fresh=True))
wrong("03.4", "is not jitted", pads()[0], lambda x: x)
wrong("03.4", "It raised", *pads(size=32))
tail = jit(lambda x: jnp.sum(x**2))
wrong("03.4", "it calls the jitted function 5", lambda x: sum(tail(v) for v in x), tail)
wrong("03.4", "it gives None", lambda x: None, tail)
wrong("03.4", "the shape (64,)", lambda x: np.pad(x, (0, 64 - len(x))), tail)
wrong(
    "03.4", "programs of the jitted function", lambda x: tail(np.pad(x, (0, 1))), tail
)
copies = jit(lambda x: x)
wrong(
    "03.4", "itself does not", lambda x: np.sum(x**2) + tail(np.zeros(64, "f4")), tail
)
wrong(
    "03.4", "itself", lambda x: (copies(np.resize(x, 64))[: len(x)] ** 2).sum(), copies
)
beside = jit(lambda x, n: {"sum": jnp.dot(x, x), "mean": jnp.dot(x, x) / n})
right(
    "03.4", lambda x: float(beside(np.pad(x, (64 - len(x), 0)), len(x))["sum"]), beside
)


class Sums:
    """Its instances are functions without a name, with a constant of their own."""

    def __call__(self, x):
        with minijax.ensure_compile_time_eval():
            one = jnp.cumsum(jnp.ones(64))[0]  # a program, while this one is traced
        return jnp.dot(one * x, x)


unnamed = jit(functools.partial(Sums()))
right("03.4", lambda x: unnamed(np.pad(x, (0, 64 - len(x)))), unnamed)
chained = jit(lambda x: x)
wrong(
    "03.4",
    "itself does not",
    lambda x: unnamed(chained(np.pad(x, (0, 64 - len(x))))),
    chained,
)


def test_the_judge_of_03_4_changes_nothing_of_the_function_that_it_watches():
    seen = []

    def padded(x):
        seen.append((type(tail), tail.__call__.__func__, *sorted(vars(tail))))
        return tail(np.pad(x, (0, 64 - len(x))))

    before = type(tail), tail.__call__.__func__, *sorted(vars(tail))
    assert grading.chapter("03").grade_padding(padded, tail) is None
    assert {*seen} == {before}


# 03.5: ten calls that hit.
PUZZLES = grading.chapter("03").PUZZLES
ten = jit(lambda x, y, n=2: n * jnp.sum(x * y), static_argnames="n")
ones = jnp.ones(3)
right("03.5", ten, [lambda v=v: ten(ones, v / 6.0) for v in PUZZLES])
wrong("03.5", "does not call f", ten, [lambda v=v: v for v in PUZZLES])
easy = jit(lambda x, y: jnp.sum(x) * y)
wrong("03.5", "and not f", easy, [lambda v=v: easy(ones, v / 3) for v in PUZZLES])

# 04.2 to 04.4: trees.


def scale_class(register):
    @dataclass
    class Scale:
        factor: float
        axis: int

        def __call__(self, x):
            return self.factor * jnp.sum(x, axis=self.axis)

    return register(Scale) or Scale


def by_node(data, static):
    def register(cls):
        minijax.tree_util.register_pytree_node(
            cls,
            lambda s: (
                [getattr(s, n) for n in data],
                tuple(getattr(s, n) for n in static),
            ),
            lambda aux, kids: cls(**dict(zip(data, kids)), **dict(zip(static, aux))),
        )

    return register


def by_dataclass(data, static):
    return lambda cls: minijax.tree_util.register_dataclass(
        cls, data_fields=data, meta_fields=static
    )


right("04.2", scale_class(by_node(["factor"], ["axis"])))
right("04.2", scale_class(by_dataclass(["factor"], ["axis"])))
wrong("04.2", "not registered", scale_class(lambda cls: None))
wrong("04.2", "factor alone", scale_class(by_node(["factor", "axis"], [])))
wrong("04.2", "factor alone", scale_class(by_node([], ["factor", "axis"])))
wrong("04.2", "Its leaves are [0]", scale_class(by_node(["axis"], ["factor"])))


def without_axis(cls):
    minijax.tree_util.register_pytree_node(
        cls, lambda s: ([s.factor], None), lambda _, kids: cls(*kids, 0)
    )


wrong("04.2", "Two axes give the same structure", scale_class(without_axis))


def clip(length, scale):
    def clip_by_norm(params, largest):
        norm = length(params)
        return tree.map(lambda p: p * scale(norm, largest), params)

    return clip_by_norm


def norm_of(params):
    return jnp.sqrt(sum(jnp.sum(p * p) for p in tree.leaves(params)))


def flat_norm(params):
    return jnp.linalg.norm(jnp.concatenate([jnp.ravel(p) for p in tree.leaves(params)]))


def safe(norm, largest):
    return jnp.minimum(1.0, largest / jnp.where(norm > 0, norm, 1.0))


right("04.3", clip(flat_norm, safe))
right("04.3", clip(norm_of, lambda n, m: m / jnp.maximum(n, m)))
right("04.3", clip(norm_of, lambda n, m: jnp.minimum(1.0, m / n)))
wrong("04.3", "the leaf at ['", clip(norm_of, lambda n, m: m / n))
wrong("04.3", "the leaf at ['", clip(lambda p: norm_of(p) ** 2, safe))
wrong("04.3", "the leaf at ['", lambda p, m: tree.map(lambda x: jnp.clip(x, -m, m), p))
wrong(
    "04.3",
    "the leaf at ['",
    lambda p, m: tree.map(lambda x: x * safe(jnp.linalg.norm(x), m), p),
)
wrong(
    "04.3",
    "The structure",
    lambda p, m: [x * safe(norm_of(p), m) for x in tree.leaves(p)],
)


def adam(state_of, b1=0.9, b2=0.999, eps=1e-8, correct=True, ahead=1):
    def start(params):
        zeros = tree.map(lambda p: 0.0 * p, params)
        return state_of(zeros, zeros, jnp.float32(0))

    def adam_step(state, params, slopes):
        m, v, t = state.values() if isinstance(state, dict) else state
        t = t + ahead
        m = tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, slopes)
        v = tree.map(lambda v, g: b2 * v + (1 - b2) * g**2, v, slopes)

        def moved(p, m, v):
            if correct:
                m, v = m / (1 - b1**t), v / (1 - b2**t)
            return p - 0.001 * m / (jnp.sqrt(v) + eps)

        return state_of(m, v, t), tree.map(moved, params, m, v)

    return start, adam_step


def triple(m, v, t):
    return m, v, t


right("04.4", *adam(triple))
right("04.4", *adam(lambda m, v, t: {"a": m, "b": v, "c": t}))
wrong("04.4", "bias correction is missing", *adam(triple, correct=False))
wrong("04.4", "After step", *adam(triple, b1=0.8))
wrong("04.4", "After step", *adam(triple, b2=0.99))
wrong("04.4", "After step", *adam(triple, eps=1e-1))
wrong("04.4", "After step", *adam(lambda m, v, t: (m, v, jnp.float32(0))))

# 05: keys.


def masks(key, x):
    return jnp.where(random.bernoulli(key, 0.5, x.shape), 2.0 * x, 0.0)


right("05.2", lambda key, x: vmap(masks)(random.split(key, len(x)), jnp.asarray(x)))
right("05.2", masks)
right(
    "05.2",
    lambda key, x: jnp.stack(
        [masks(random.fold_in(key, i), r) for i, r in enumerate(x)]
    ),
)
wrong(
    "05.2",
    "Row 1 has the mask of row 0",
    lambda key, x: vmap(masks, (None, 0))(key, jnp.asarray(x)),
)
wrong("05.2", "zero or twice", lambda key, x: masks(key, x) / 2)
wrong(
    "05.2",
    "survive; half should",
    lambda key, x: jnp.where(random.bernoulli(key, 0.9, x.shape), 2.0 * x, 0.0),
)
wrong("05.2", "Another key gives the same", lambda key, x: masks(random.key(0), x))
draws = np.random.default_rng(0)
wrong(
    "05.2", "where is the state", lambda key, x: 2 * x * (draws.random(x.shape) < 0.5)
)


def sorted_by(bits):
    return lambda key, x: jnp.asarray(x)[jnp.argsort(bits(key, len(x)))]


right("05.3", sorted_by(lambda key, n: random.bits(key, (n,))))
right("05.3", sorted_by(lambda key, n: random.uniform(key, (n,))))
my_shuffle = sorted_by(jit(lambda key, n: random.bits(key, (n,)), static_argnums=1))
my_shuffle.__name__ = "my_shuffle"
right("05.3", jit(my_shuffle))
right(
    "05.3", lambda key, x: jnp.take(x, jnp.argsort(random.bits(key, (len(x),))), axis=0)
)
wrong("05.3", "Its jaxpr shows", lambda key, x: random.permutation(key, jnp.asarray(x)))
wrong("05.3", "orders of three", lambda key, x: jnp.asarray(x)[::-1])
wrong(
    "05.3",
    "orders of three",
    sorted_by(lambda key, n: random.bits(random.key(1), (n,))),
)
wrong(
    "05.3",
    "orders of three",
    lambda key, x: jnp.roll(jnp.asarray(x), random.randint(key, (), 0, len(x)), axis=0),
)
wrong(
    "05.3",
    "not the rows of x",
    lambda key, x: jnp.asarray(x)[random.randint(key, (len(x),), 0, len(x))],
)
wrong(
    "05.3", "not the rows of x", lambda key, x: jnp.sort(random.bits(key, x.shape), 0)
)
wrong(
    "05.3",
    "not the rows of x",
    lambda key, x: x.ravel()[jnp.argsort(random.bits(key, (x.size,)))].reshape(x.shape),
)


def noise(keys_of, draw=random.normal):
    def noise_like(key, example):
        leaves, structure = tree.flatten(example)
        keys = keys_of(key, len(leaves))
        made = [draw(k, np.shape(leaf)) for k, leaf in zip(keys, leaves)]
        return tree.unflatten(structure, made)

    return noise_like


def folded(key, n):
    return [random.fold_in(key, i) for i in range(n)]


right("05.4", noise(random.split))
right("05.4", noise(folded))
wrong("05.4", "with the same numbers", noise(lambda key, n: [key] * n))
wrong(
    "05.4",
    "['layers'][0]['b'] and ['layers'][0]['w'] begin with the same numbers",
    noise(lambda key, n: [random.fold_in(key, i // 2) for i in range(n)]),
)
wrong(
    "05.4",
    "with the same numbers",
    lambda key, t: tree.map(lambda x: random.normal(key, np.shape(x)), t),
)
wrong("05.4", "not normal", noise(folded, random.uniform))
wrong(
    "05.4", "The structure should be", lambda key, t: tree.leaves(noise(folded)(key, t))
)
wrong(
    "05.4",
    "the noise differs",
    lambda key, t: noise(folded)(random.key(draws.integers(99)), t),
)
wrong("05.4", "became one of", noise(folded, lambda k, s: random.normal(k, (*s, 1))))

# 06.2: a rule for a cube; 06.3 stands in test_judges_of_exercises.


def cube(rule):
    made = minijax.custom_jvp(lambda x: x * x * x)
    made.defjvp(rule)
    return made


def cube_of(change):
    return cube(lambda v, t: (v[0] ** 3, change(v[0], t[0])))


right("06.2", cube_of(lambda x, t: 3 * x**2 * t))
right("06.2", cube_of(lambda x, t: x * x * t + 2 * x * (x * t)))
wrong("06.2", "the tangent is", cube_of(lambda x, t: 3 * x**2))
wrong("06.2", "the tangent is", cube_of(lambda x, t: 3 * x * t))
wrong("06.2", "the tangent is", cube_of(lambda x, t: x**2 * t))
wrong("06.2", "the tangent is", cube_of(lambda x, t: 3 * x**2 * jnp.abs(t)))
wrong("06.2", "the tangent is", cube_of(lambda x, t: 12.0 * t))
wrong("06.2", "no rule of its own", lambda x: x**3)
wrong("06.2", "should be", cube(lambda v, t: (v[0] ** 2, 3 * v[0] ** 2 * t[0])))

# 07.3: roots without NaN.


def roots(safe_x, chosen=lambda x, y: jnp.where(x > 0, y, 0.0)):
    return lambda x: jnp.sum(chosen(x, jnp.sqrt(safe_x(x))))


right("07.3", roots(lambda x: jnp.where(x > 0, x, 1.0)))
right("07.3", roots(lambda x: lax.select(x > 0, x, jnp.full_like(x, 4.0))))
wrong("07.3", "The gradient should be", roots(lambda x: x))
wrong("07.3", "The gradient should be", roots(lambda x: jnp.maximum(x, 0.0)))
wrong("07.3", "The gradient should be", roots(jnp.abs, lambda x, y: (x > 0) * y))
wrong("07.3", "should be 2.5", roots(jnp.abs, lambda x, y: y))
wrong(
    "07.3", "should be 2.5", roots(lambda x: jnp.where(x > 0, x, 1.0), lambda x, y: y)
)
wrong("07.3", "should be", lambda x: jnp.sqrt(jnp.where(x > 0, x, 0.0)))


@minijax.custom_vjp
def repaired(x):
    return roots(lambda x: x)(x)


repaired.defvjp(
    lambda x: (repaired(x), x),
    lambda x, c: (jnp.where(x > 0, c * grad(roots(lambda x: x))(x), 0.0),),
)
wrong("07.3", "repaired afterwards", repaired)
right("07.3", jit(lambda x: roots(lambda x: jnp.where(x > 0, x, 2.0))(x)))


# 05.1: reused keys; 07.2: back through a chain; 07.4: rows of a Jacobian.
reused = sorted(grading.chapter("05").REUSED)
right("05.1", set(reused))
right("05.1", "".join(reused).upper())
right("05.1", ", ".join(reused))
wrong("05.1", "every key is used once", ["a", "b", "c", "d"])
wrong("05.1", "You found 1 of 2", reused[:1])
wrong("05.1", "You found 0 of 2", [])
wrong("05.1", "Give a list", 2)


def back_with_a_dict(steps):
    sums = {"out": 1.0}
    for result, operand, factor in reversed(steps):
        sums[operand] = sums.get(operand, 0.0) + sums.get(result, 0.0) * factor
    return sums.get("x", 0.0)


def back_that_overwrites(steps):
    sums = {"out": 1.0}
    for result, operand, factor in reversed(steps):
        sums[operand] = sums.get(result, 0.0) * factor
    return sums.get("x", 0.0)


right("07.2", back_with_a_dict)
wrong("07.2", "used twice", back_that_overwrites)
wrong("07.2", "gives", lambda steps: math.prod(factor for _, _, factor in steps))


def rows_by_map(f, x):
    value, pull = minijax.vjp(f, x)
    eye = jnp.eye(value.shape[0], dtype=value.dtype)
    return lax.map(lambda c: pull(c)[0], eye)


right(
    "07.4", lambda f, x: vmap(lambda c: minijax.vjp(f, x)[1](c)[0])(jnp.eye(len(f(x))))
)
wrong("07.4", "The Jacobian of", lambda f, x: minijax.vjp(f, x)[1](f(x) * 0 + 1)[0])
wrong("07.4", "The Jacobian of", lambda f, x: rows_by_map(f, x).T)


@pytest.mark.parametrize("name, made", ANSWERS.taken)
def test_a_right_answer_is_taken(name, made, capsys):
    assert_taken(name, made, lambda: capsys.readouterr().out)


@pytest.mark.parametrize("name, made, complaint", ANSWERS.refused)
def test_a_wrong_answer_is_refused(name, made, complaint, capsys):
    assert_refused(name, made, complaint, lambda: capsys.readouterr().out)
