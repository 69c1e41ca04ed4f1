"""Chapter 15: other right answers, plausible wrong ones; Flax and Optax beside it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import make_jaxpr, tree
from minijax_lab import tiny_pieces
from tests.notebooks.judged import Answers, assert_refused, assert_taken
from tests.notebooks.test_exercises import EIGHT
from tests.notebooks.test_exercises import answers as solved

pytestmark = pytest.mark.skipif(EIGHT, reason="for one device")
ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong
shipped = solved("15")

right("15.1", " ".join(shipped.PLACES).split())
right("15.1", tuple(shipped.PLACES))
right("15.2", lambda path: path.endswith("/kernel") or path == "kernel")
right("15.2", lambda path: path.rpartition("/")[2] == "kernel")


def lion_counting(rate):
    """The state is a pair: a count, and the means."""

    def update(grads, state, params=None):
        count, mean = state
        one = tree.map(lambda m, g: jnp.sign(0.9 * m + 0.1 * g), mean, grads)
        mean = tree.map(lambda m, g: m + 0.01 * (g - m), mean, grads)
        return tree.map(lambda s: -rate * s, one), (count + 1, mean)

    return shipped.Both(
        lambda params: (jnp.int32(0), tree.map(jnp.zeros_like, params)), update
    )


def lion_of_lists(rate):
    """The state is a list of leaves."""

    def update(grads, means, params=None):
        leaves, structure = tree.flatten(grads)
        mixed = [9 * m + g for m, g in zip(means, leaves)]
        updates = [jnp.where(x > 0, -rate, rate) * (x != 0) for x in mixed]
        after = [0.99 * m + 0.01 * g for m, g in zip(means, leaves)]
        return tree.unflatten(structure, updates), after

    def init(params):
        return [jnp.zeros_like(leaf) for leaf in tree.leaves(params)]

    return shipped.Both(init, update)


right("15.3", lion_counting)
right("15.3", lion_of_lists)


def lion_without_rate(rate):
    return shipped.lion(1.0)


def lion_with_both_means(rate):
    """Adam's state, of which a half is not used."""
    lion = shipped.lion(rate)

    def update(grads, state, params=None):
        updates, mean = lion.update(grads, state[0])
        return updates, (mean, state[1])

    return shipped.Both(lambda params: (lion.init(params),) * 2, update)


wrong("15.3", "update 1 of a", lion_without_rate)
wrong("15.3", "need 6 numbers in the state", lion_with_both_means)


def line_by_line(f, g, *args):
    ours, theirs = (str(make_jaxpr(h)(*args)).splitlines() for h in (f, g))
    same = len(ours) == len(theirs) and all(a == b for a, b in zip(ours, theirs))
    return np.bool_(same)


def by_tracing(f, g, *args):
    ours, theirs = (str(minijax.jit(h).trace(*args).jaxpr) for h in (f, g))
    return ours == theirs


def as_far_as_the_shorter(f, g, *args):
    ours, theirs = (make_jaxpr(h)(*args).jaxpr.eqns for h in (f, g))
    return all(str(a) == str(b) for a, b in zip(ours, theirs))


def by_count(f, g, *args):
    ours, theirs = (len(make_jaxpr(h)(*args).jaxpr.eqns) for h in (f, g))
    return ours == theirs


right("15.4", line_by_line)
right("15.4", by_tracing)
wrong("15.4", "x * w and w * x", as_far_as_the_shorter)
wrong("15.4", "x * w and w * x", by_count)


@pytest.mark.parametrize("name, made", ANSWERS.taken)
def test_a_right_answer_is_taken(name, made, capsys):
    assert_taken(name, made, lambda: capsys.readouterr().out)


@pytest.mark.parametrize("name, made, complaint", ANSWERS.refused)
def test_a_wrong_answer_is_refused(name, made, complaint, capsys):
    assert_refused(name, made, complaint, lambda: capsys.readouterr().out)


NOTEBOOKS = Path(tiny_pieces.course_file("modules")).parents[1]
# The chapter's own cells, from the network to the comparison.
PROGRAM = """
import json, sys
from pathlib import Path
import minijax
import minijax.numpy as jnp
import numpy as np
from minijax import make_jaxpr, random
from tiny.modules import Dense, Module
from tiny.optimizers import adamw, apply_updates
from minijax_lab import digits

data = digits.load()
class Network(Module):
    hidden: int

    def __call__(self, image):
        x = jnp.tanh(Dense(self.hidden)(image))
        return Dense(10)(x)

network = Network(32)
start = network.init(random.key(1), data.train_images[0])
minijax.as_jax()
cells = json.loads(Path("15_a_network_end_to_end.ipynb").read_text())["cells"]
texts = ["".join(cell["source"]) for cell in cells]
for begin in ("def differing(", "def compare("):
    (text,) = [text for text in texts if text.startswith(begin)]
    exec(text.partition('print("-- differs')[0])
compare()
import flax.linen, optax
image = data.train_images[0]

class Real(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, image):
        x = jnp.tanh(flax.linen.Dense(32)(image))
        return flax.linen.Dense(10)(x)

theirs = Real().init(random.key(1), image)["params"]
same = minijax.tree.map(lambda a, b: bool((a == b).all()), start, theirs)
print("the same weights:", all(minijax.tree.leaves(same)))
"""


def test_tinys_flax_and_optax_write_the_programs_of_the_real_ones():
    """Every line of init, apply and two steps of AdamW; and the same weights."""
    path = os.pathsep.join([str(NOTEBOOKS.parent), str(NOTEBOOKS)])
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        cwd=NOTEBOOKS,
        env={**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    lines = ran.stdout.splitlines()
    assert len(lines) == 4 and lines[-1] == "the same weights: True", lines
    for line, name in zip(lines, ("init", "apply", "two steps")):
        assert line.startswith(name) and " 0 of " in line, line
