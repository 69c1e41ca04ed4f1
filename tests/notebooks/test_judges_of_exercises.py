"""Exercises: right answers of other kinds pass, shortcuts and mistakes do not.

Beside the two wrong answers that each exercise has in notebooks/solutions. A shortcut
is refused by what a recording shows; a refusal says why.
"""

import dataclasses
import functools
import importlib.util
import operator
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import ShapeDtypeStruct, checkpoint, jvp, lax, nn, vmap
from minijax.experimental import io_callback
from minijax.experimental import pallas as pl
from minijax.sharding import PartitionSpec as P
from minijax_lab import chapter_16, check, kernel_puzzles, puzzle

EIGHT = "MINIJAX_TEST_ON_EIGHT_DEVICES" in os.environ
if EIGHT:
    minijax.config.update("jax_num_cpu_devices", 8)
SOLUTIONS = Path(__file__).resolve().parents[2] / "notebooks" / "solutions"


@functools.cache
def solved(name: str):
    spec = importlib.util.spec_from_file_location(f"own_{name}", SOLUTIONS / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RIGHT, WRONG = [], []


def right(name: str, *more):
    """Marks a function as a right answer; `more` is handed in behind it."""
    return lambda function: RIGHT.append((name, (function, *more)))


def wrong(name: str, complaint: str, *more):
    """Marks a function as a wrong answer, and what is said of it."""
    return lambda function: WRONG.append((name, (function, *more), complaint))


@right("01.2")
def by_numpy(f, x):
    np.asarray(f(x))
    start = time.perf_counter()
    np.asarray(f(x))
    return time.perf_counter() - start


@right("01.2")
def the_median(f, x):
    took = []
    for _ in range(4):
        start = time.perf_counter()
        f(x).block_until_ready()
        took.append(time.perf_counter() - start)
    return sorted(took[1:])[1]


@wrong("01.2", "with the first call's compiling in it")
def mean_of_two(f, x):
    start = time.perf_counter()
    for _ in range(2):
        f(x).block_until_ready()
    return (time.perf_counter() - start) / 2


@wrong("01.2", "the clock stopped before the result was ready")
def without_waiting(f, x):
    f(x)
    start = time.perf_counter()
    f(x)
    return time.perf_counter() - start


def unit_vectors(x):
    return jnp.eye(len(x))


@right("06.4", 1_000_000)
def columns_with_value(f, x):
    _, found = vmap(lambda t: jvp(f, (x,), (t,)))(unit_vectors(x))
    return jnp.moveaxis(found, 0, -1)


@right("06.4", 1_000_000)
def columns_in_jit(f, x):
    along = lambda x, t: jvp(f, (x,), (t,))[1]  # noqa: E731
    return minijax.jit(vmap(along, (None, 0), -1))(x, jnp.eye(x.size))


wrong("06.4", "`jacfwd` runs f in it", 1_000_000)(lambda f, x: minijax.jacfwd(f)(x))


right("06.4", "1,000,000")(
    lambda f, x: vmap(lambda t: jvp(f, (x,), (t,))[1], 0, -1)(unit_vectors(x))
)
wrong("06.4", "`jacrev` runs f in it", 1000)(lambda f, x: minijax.jacrev(f)(x))


@wrong("06.4", "No `jvp` runs f in it", 1000)
def columns_from_rows(f, x):
    value, pull = minijax.vjp(f, x)
    return vmap(lambda c: pull(c)[0])(jnp.eye(value.size).reshape(-1, *value.shape))


@wrong("06.4", "use vmap", 1_000_000)
def columns_by_loop(f, x):
    found = [jvp(f, (x,), (t,))[1] for t in unit_vectors(x)]
    return jnp.stack(found, axis=-1)


@right("07.2")
def back_by_uses(steps):
    def slope(name):
        if name == "out":
            return 1.0
        return sum(factor * slope(to) for to, source, factor in steps if source == name)

    return slope("x")


@wrong("07.2", "that is forward mode")
def back_to_front(steps):
    change = {"x": 1.0}
    for result, operand, factor in steps:
        before = change.get(result, 0.0)
        change[result] = before + factor * change.get(operand, 0.0)
    return change.get("out", 0.0)


@right("07.4")
def rows_by_one_vmap(f, x):
    value, pull = minijax.vjp(f, x)
    (found,) = vmap(pull)(jnp.eye(value.size, dtype=value.dtype))
    return found


@wrong("07.4", "a loop over the rows was written out")
def rows_by_loop(f, x):
    value, pull = minijax.vjp(f, x)
    return jnp.stack([pull(c)[0] for c in jnp.eye(len(value))])


wrong("07.4", "`jacrev` runs f in it")(lambda f, x: minijax.jacrev(f)(x))


@right("08.2")
def similarities_by_axes(a, b):
    one = lambda x, y: jnp.exp(-jnp.sum((x - y) ** 2))  # noqa: E731
    return vmap(vmap(one, (None, 0)), (0, None))(a, b)


@right("08.2")
def similarities_by_broadcasting(a, b):
    a = jnp.asarray(a)
    return jnp.exp(-jnp.sum((a[:, None] - b[None]) ** 2, -1))


def steps_from(m, x, count=10):
    for _ in range(count):
        x = x - (x - 0.5 * jnp.sin(x) - m) / (1.0 - 0.5 * jnp.cos(x))
    return x


@wrong("09.2", "the steps are differentiated")
def checkpointed_orbit(m):
    return checkpoint(lambda m: steps_from(m, m))(m)


@right("09.2")
@minijax.custom_jvp
def orbit_by_loop(m):
    return lax.fori_loop(0, 10, lambda _, x: steps_from(m, x, 1), m * 1.0)


OWN_ORBIT = RIGHT[-1][1][0]


@OWN_ORBIT.defjvp
def orbit_moves(values, tangents):
    x = OWN_ORBIT(*values)
    return x, tangents[0] / (1.0 - 0.5 * jnp.cos(x))


def implicit_step(m):
    x = lax.stop_gradient(steps_from(m, m))
    for _ in range(2):
        x = x - (x - 0.5 * jnp.sin(x) - m) / (1.0 - 0.5 * jnp.cos(x))
    return x


wrong("09.2", "Its gradient keeps")(implicit_step)


wrong("11.2", "no derivative of your own")(lambda x: jnp.logaddexp(x, 0.0))


@wrong("11.2", "softplus(100.0) is inf")
def plain_softplus(x):
    return jnp.log1p(jnp.exp(x))


@right("11.2")
@minijax.custom_jvp
def softplus(x):
    return jnp.logaddexp(x, 0.0)


OWN_SOFTPLUS = RIGHT[-1][1][0]


@OWN_SOFTPLUS.defjvp
def softplus_rule(values, tangents):
    from minijax import nn

    return OWN_SOFTPLUS(*values), tangents[0] * nn.sigmoid(values[0])


wrong("18.2", "There is no pallas_call")(lambda x, interpret=False: jnp.sum(x, 1))


def copied(x, interpret=False):
    """A kernel that copies."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    block = pl.BlockSpec((8, *x.shape[1:]), lambda i: (i, *[0] * (x.ndim - 1)))
    return pl.pallas_call(
        kernel,
        ShapeDtypeStruct(x.shape, x.dtype),
        grid=(pl.cdiv(x.shape[0], 8),),
        in_specs=[block],
        out_specs=block,
        interpret=interpret,
    )(x)


BESIDE = "is computed outside of the kernel"


@wrong("18.2", BESIDE)
def sums_beside(x, interpret=False):
    return copied(jnp.sum(x, 1), interpret)


@wrong("18.3", BESIDE)
def pool_beside(x):
    n, m = x.shape
    return copied(jnp.asarray(x).reshape(n // 2, 2, m // 2, 2).max((1, 3)))


@wrong("18.4", BESIDE)
def norm_beside(x):
    x = x - jnp.mean(x, 1, keepdims=True)
    return copied(x * lax.rsqrt(jnp.mean(x * x, 1, keepdims=True) + 1e-5))


@wrong("19.4", BESIDE)
def causal_beside(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[1])
    scores = jnp.where(jnp.tri(len(q), dtype=bool), scores, -jnp.inf)
    e = jnp.exp(scores - scores.max(1, keepdims=True))
    return copied(e / e.sum(1, keepdims=True) @ v)


@right("19.4")
def causal_of_scaled_queries(q, k, v):
    """The queries are scaled before the kernel."""
    return solved("chapter_19.py")._causal(jnp.asarray(q) * 1.0, k, v, jnp.minimum)


@wrong("19.2", "begins with a part of -inf alone")
def online_with_nan(parts):
    top, weight = -np.inf, 0.0
    for part in parts:
        larger = max(top, part.max())
        weight = weight * np.exp(top - larger) + np.exp(part - larger).sum()
        top = larger
    return top, weight


@wrong("20.3", "that is not ordered")
def unordered_and_a_dummy(save, x):
    io_callback(lambda: None, None, ordered=True)

    def step(x, number):
        x = x / 2
        io_callback(save, None, number, x)
        return x, None

    return lax.scan(step, x, jnp.arange(4))[0]


@right("20.3")
def by_debug_callback(save, x):
    for number in range(4):
        x = x / 2
        minijax.debug.callback(save, number, x, ordered=True)
    return x


@right("20.3")
def by_fori_loop(save, x):
    def body(number, x):
        x = x / 2
        io_callback(save, None, number, x, ordered=True)
        return x

    return lax.fori_loop(0, 4, body, x)


# On eight devices.


@right("17.2")
def by_one_gather(part):
    top = part.max(1)
    both = jnp.stack([top, jnp.exp(part - top[:, None]).sum(1)])
    every = lax.all_gather(both, "i")
    most = every[:, 0].max(0)
    total = (every[:, 1] * jnp.exp(every[:, 0] - most)).sum(0)
    return jnp.exp(part - most[:, None]) / total[:, None]


def outputs_everywhere(out, stage, last=3):
    return lax.psum(jnp.where(stage == last, out, 0.0), "stage")


@wrong("17.3", "there is no ppermute")
def weights_by_psum(w, xs):
    me = lax.axis_index("stage")
    for stage in range(4):
        xs = jnp.tanh(xs @ lax.psum(jnp.where(me == stage, w[0], 0.0), "stage"))
    return xs


ONWARD = [(d, d + 1) for d in range(3)]


@wrong("17.3", "stages of a batch, one after the other")
def one_batch_at_a_time(w, xs):
    me, done = lax.axis_index("stage"), []
    for x in xs:
        here = lax.pcast(x, "stage", to="varying")
        for _ in range(3):
            here = lax.ppermute(jnp.tanh(here @ w[0]), "stage", ONWARD)
            here = jnp.where(me == 0, x, here)
        done.append(jnp.tanh(here @ w[0]))
    return outputs_everywhere(jnp.stack(done), me)


@wrong("17.3", "stages of a batch, one after the other")
def one_stage_at_a_time(w, xs):
    me = lax.axis_index("stage")
    here = [lax.pcast(x, "stage", to="varying") for x in xs]
    for _ in range(3):
        here = [lax.ppermute(jnp.tanh(x @ w[0]), "stage", ONWARD) for x in here]
    return outputs_everywhere(jnp.tanh(jnp.stack(here) @ w[0]), me)


@wrong("17.3", "A message of 384 B")
def all_batches_in_a_message(w, xs):
    me, here = lax.axis_index("stage"), lax.pcast(xs, "stage", to="varying")
    for _ in range(3):
        here = lax.ppermute(jnp.tanh(here @ w[0]), "stage", ONWARD)
        here = jnp.where(me == 0, xs, here)
    return outputs_everywhere(jnp.tanh(here @ w[0]), me)


@right("17.3")
def pipeline_by_scan(w, xs):
    stage = lax.axis_index("stage")
    padded = jnp.concatenate([xs, jnp.zeros((3, *xs.shape[1:]))])

    def turn(here, fresh):
        out = jnp.tanh(jnp.where(stage == 0, fresh, here) @ w[0])
        return lax.ppermute(out, "stage", ONWARD), out

    here = lax.pcast(jnp.zeros(xs.shape[1:]), "stage", to="varying")
    _, outs = lax.scan(turn, here, padded)
    return outputs_everywhere(outs[3:], stage)


def product_of(a, piece, owner):
    rows = piece.shape[0]
    return lax.dynamic_slice_in_dim(a, (owner % 8) * rows, rows, 1) @ piece


@wrong("17.4", "send to a neighbour only")
def far_away(a, b):
    me = lax.axis_index("i")
    total = product_of(a, b, me)
    for far in range(1, 8):
        moved = lax.ppermute(b, "i", [(d, (d + far) % 8) for d in range(8)])
        total = total + product_of(a, moved, me - far)
    return total


@wrong("17.4", "exchanges come one after the other")
def one_way_round(a, b):
    me = lax.axis_index("i")
    total, moved = product_of(a, b, me), b
    for turn in range(1, 8):
        moved = lax.ppermute(moved, "i", [(d, (d + 1) % 8) for d in range(8)])
        total = total + product_of(a, moved, me - turn)
    return total


def strategy(batch, by=("x", "y"), **changed):
    names = solved("chapter_16.py").SHAPES
    return (P(batch), {**dict.fromkeys(names, P(by)), **changed})


right("16.3")(strategy("x"))
right("16.3")(strategy(("y", "x"), up=P("x", "y")))
wrong("16.3", "all do the same work")(strategy(None))
wrong("16.3", "more than an eighth")(strategy("x", by="x"))


def here(cases):
    """Those of this process: of one device, or of eight."""
    return [c for c in cases if (c[0][:2] in ("16", "17")) == EIGHT]


def marked(cases):
    return [
        pytest.param(*case, id=f"{case[0]}-{getattr(case[1][0], '__name__', n)}")
        for n, case in enumerate(here(cases))
    ]


@pytest.mark.parametrize("name, made", marked(RIGHT))
def test_exercise_takes_a_right_answer(name, made, capsys):
    check(name, *made)
    assert capsys.readouterr().out == f"{name}: solved.\n"


@pytest.mark.parametrize("name, made, complaint", marked(WRONG))
def test_exercise_refuses_a_wrong_answer(name, made, complaint, capsys):
    check(name, *made)
    said = capsys.readouterr().out
    assert f"{name}: not yet. " in said and complaint in said


@pytest.mark.skipif(not EIGHT, reason="for eight devices")
def test_16_3_trains_on_cut_weights_and_on_whole_ones(monkeypatch):
    runs, trained = [], chapter_16._trained

    def watched(*args):
        runs.append((type(args[0]["up"]).__name__, trained(*args)))
        return runs[-1][1]

    monkeypatch.setattr(chapter_16, "_trained", watched)
    check("16.3", strategy("x"))
    assert [kind for kind, _ in runs] == ["Array", "ndarray"]
    assert all(one[0] > one[1] > one[2] for _, one in runs), runs


@pytest.mark.skipif(EIGHT, reason="for one device")
def test_no_symptom_of_12_4_names_the_primitive():
    from minijax_lab.chapter_12 import FAULTS
    from minijax_lab.sabotage import sabotage

    for number, primitive in FAULTS.items():
        words = {primitive, *primitive.split("_"), "subtraction", "maximum"}
        said = re.findall(r"\w+", sabotage(number).symptom.lower())
        assert not words - {"in", "n"} & {*said}, (number, said)


def test_a_wrong_row_of_a_table_is_not_remembered(capsys):
    """06.3 takes an atan that is a partial, after a wrong row as after none."""
    import sys

    if EIGHT:
        pytest.skip("for one device")
    from tiny.operations import primitive
    from tiny.trace import SHAPES, bind

    primitive("atan_mine", np.arctan, SHAPES["sin"])
    table: dict = {}
    sys.modules["__main__"].TANGENTS = table
    try:
        import tiny.tangents as tangents

        before = dict(tangents.TANGENTS)
        for factor, outcome in ((-1.0, "moved by 1.0"), (1.0, "solved")):

            def row(x, factor=factor, **params):
                (value, t) = x
                out = bind("atan_mine", value)
                slope = None if t is None else factor * t / (1.0 + value * value)
                return tangents.Dual(out, slope)

            table["atan_mine"] = row
            check("06.3", functools.partial(bind, "atan_mine"))
            assert outcome in capsys.readouterr().out
            assert tangents.TANGENTS == before
    finally:
        del sys.modules["__main__"].TANGENTS


COPIES = {
    "18.map": lambda x: jnp.asarray(x) + 10,
    "18.blocks": lambda x: jnp.asarray(x).T,
    "19.dot": lambda x, y: (jnp.asarray(x) @ y)[None],
    "19.prefix": lambda x: jnp.cumsum(x),
    "19.matmul": lambda x, y: jnp.asarray(x) @ y,
    "19.budget": lambda x, y: jnp.asarray(x) @ y,
    "19.attention": lambda q, k, v: nn.softmax(q @ k.T / q.shape[1] ** 0.5) @ v,
}


@pytest.mark.skipif(EIGHT, reason="for one device")
@pytest.mark.parametrize("name", COPIES)
def test_a_puzzle_is_not_solved_beside_its_kernel(name, capsys):
    def made(*args):
        found = COPIES[name](*args)

        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...]

        sides = [min(size, 16) for size in found.shape]
        block = pl.BlockSpec(sides, lambda *at: at)
        return pl.pallas_call(
            kernel,
            ShapeDtypeStruct(found.shape, found.dtype),
            grid=tuple(map(operator.floordiv, found.shape, sides)),
            in_specs=[block],
            out_specs=block,
        )(found)

    puzzle(name, made)
    assert BESIDE in capsys.readouterr().out


@pytest.mark.skipif(EIGHT, reason="for one device")
def test_scratch_memory_counts_and_a_record_grows(tmp_path, monkeypatch, capsys):
    from minijax.experimental.pallas import tpu as pltpu

    def all_in_scratch(x):
        def kernel(x_ref, o_ref, kept_ref):
            kept_ref[...] = jnp.zeros_like(kept_ref)
            o_ref[...] = x_ref[...] + 10

        part = pl.BlockSpec((16,), lambda i: (i,))
        return pl.pallas_call(
            kernel,
            ShapeDtypeStruct(x.shape, jnp.float32),
            grid=(x.size // 16,),
            in_specs=[part],
            out_specs=part,
            scratch_shapes=[pltpu.VMEM((17,), jnp.float32)],
        )(x)

    puzzle("18.map", all_in_scratch)
    assert "keeps 68 B of scratch memory, and 64 B" in capsys.readouterr().out
    # A puzzle whose best is beaten: the better score is kept, and is the best from now.
    own = kernel_puzzles.PUZZLES["18.map"]
    worse = dataclasses.replace(own, best=(300, 256))
    monkeypatch.setitem(kernel_puzzles.PUZZLES, "18.map", worse)
    file = tmp_path / "kernel_records.json"
    monkeypatch.setattr(kernel_puzzles, "record_file", lambda: file)
    (answer,) = solved("kernel_puzzles.py").SOLUTIONS["18.map"]()
    puzzle("18.map", answer)
    assert "a new best, yours; before it was 300 B fetched" in capsys.readouterr().out
    puzzle("18.map", answer)
    assert (
        "the least that is known, yours, is 256 B and 256 B" in capsys.readouterr().out
    )
    file.write_text("{")
    puzzle("18.map", answer)
    assert "a new best" in capsys.readouterr().out
