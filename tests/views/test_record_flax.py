"""The flight recorder on Flax and Optax, whose frames are not the user's."""

import ast
import re
import time

import jax
import numpy as np
import pytest
from flax import linen

from minijax_lab.explain.flight_loose import static_arguments
from tests.views.test_record import recorded, rows_of

SCRIPT = """
from functools import partial
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.training import train_state


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(32)(x))
        return nn.Dense(10)(x)


net = Net()
scale = jnp.asarray(np.ones((512, 512), np.float32))


@jax.jit
def step(state, x, y):
    def loss_of(params):
        logits = state.apply_fn({"params": params}, x) * scale[0, 0]
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    loss, grads = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=grads), loss


rng = np.random.default_rng(0)
X = rng.normal(size=(104, 16)).astype(np.float32)
Y = rng.integers(0, 10, 104).astype(np.int32)
params = net.init(jax.random.key(0), X[:1])["params"]
state = train_state.TrainState.create(
    apply_fn=net.apply, params=params, tx=optax.adam(1e-3)
)
losses = []
for epoch in range(2):
    for i in range(0, len(X), 32):
        x, y = X[i : i + 32], Y[i : i + 32]
        state, loss = step(state, x, y)
        losses.append(float(loss))
    right = jax.jit(lambda p, x: net.apply({"params": p}, x))(state.params, X)
print(len(losses), right.shape)
"""


def line_of(text: str) -> int:
    return next(n for n, each in enumerate(SCRIPT.splitlines(), 1) if text in each)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("flax"), SCRIPT)


def test_each_fault_stands_at_the_users_line(run) -> None:
    done, page = run
    assert done.returncode == 0, done.stderr
    told = done.stderr
    step, init = line_of("state, loss = step"), line_of("net.init")
    jitted, read = line_of("right = jax.jit"), line_of("float(loss)")
    for line, sentence in (
        (step, "`x` has (32, 16) and sometimes (8, 16)"),
        (step, "`scale` (1,048,576 bytes) is baked into"),
        (jitted, "a new jit of a lambda is made here at each pass: 2 made"),
        (read, "brought an array to the host 8 times"),
        (init, "operations outside of jit were compiled one by one"),
    ):
        assert re.search(rf"line {line} .*{re.escape(sentence)}", told), sentence
    # The bars of what `init` ran stand at the module's own lines: they lead to it.
    assert page.count(f"ran outside of jit, called from line {init}: mend it") == 2
    # A new jit that reads the model, which a jitted step cannot change, has its line.
    assert re.search(rf"line {jitted} .*above the loop, and call that", told)
    # No line of Flax's or Optax's, and none of the recorder's.
    assert "linear.py" not in page and "transform.py" not in page
    assert rows_of(page)[step].startswith("8 calls, ")
    assert len(page) < 200_000


def test_flags_of_a_modules_init_stay_python_values() -> None:
    """The written call runs: a dropout's flag that is traced could not be asked."""

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x, train, name="dense"):
            assert name == "dense"
            return linen.Dropout(0.5, deterministic=not train)(linen.Dense(3)(x))

    places = {"net": Net(), "jax": jax, "key": jax.random.key(0), "x": np.ones((1, 2))}
    for call, said in (
        ("net.init(key, x, False)", ["static_argnums=(2,)"]),
        ("net.init(key, x, train=False)", ['static_argnames=("train",)']),
        (
            'net.init(key, x, True and False, name="dense")',
            ['static_argnames=("name",)'],
        ),
        ("net.init(*[key, x], train=False)", ['static_argnames=("train",)']),
        ("net.init(key, x)", []),
    ):
        node = ast.parse(call, mode="eval").body
        assert static_arguments(node) == said, call
    for call in ("False)", "train=False)", 'train=False, name="dense")'):
        node = ast.parse(f"net.init(key, x, {call}", mode="eval").body
        jitted = ", ".join(["jax.jit(net.init", *static_arguments(node)])
        made = eval(f"{jitted})(key, x, {call}", places)
        assert made["params"]["Dense_0"]["kernel"].shape == (2, 3)


MENDS = [
    ("for i in range(0, len(X), 32):", "for i in range(0, len(X) - 32 + 1, 32):"),
    ("def step(state, x, y):", "def step(state, x, y, scale):"),
    ("loss = step(state, x, y)", "loss = step(state, x, y, scale)"),
    ("losses.append(float(loss))", "losses.append(loss)"),
    ("print(len", "losses = [float(x) for x in jax.device_get(losses)]\nprint(len"),
    ("= net.init(", "= jax.jit(net.init)("),
    (
        "for epoch in",
        "jitted = jax.jit(lambda p, x: net.apply({'params': p}, x))\nfor epoch in",
    ),
    ('jax.jit(lambda p, x: net.apply({"params": p}, x))(', "jitted("),
]


@pytest.mark.slow
def test_obeyed(run, tmp_path) -> None:
    before, page = run
    script = SCRIPT
    for old, new in MENDS:
        assert old in script, old
        script = script.replace(old, new)
    after, mended = recorded(tmp_path, script)
    assert after.returncode == 0, after.stderr
    for gone in (
        "sometimes",
        "baked",
        "new jit",
        "to the host",
        "one by",
    ):
        assert gone in before.stderr and gone not in after.stderr
    made = [
        sum(map(int, re.findall(r"times\">&times;&nbsp;(\d+)", p)))
        for p in (page, mended)
    ]
    assert made[1] < made[0] / 2


@pytest.mark.slow
def test_the_page_opens_at_once(run, browser, tmp_path) -> None:
    path = tmp_path / "page.html"
    path.write_text(run[1])
    page = browser.new_page(offline=True)
    begin = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector(".row[aria-current]")
    assert time.perf_counter() - begin < 5  # 0.2 s on a quiet machine
    page.close()
