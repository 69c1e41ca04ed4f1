"""`see.cache` of a function that real JAX jitted, against what JAX itself did."""

import logging
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import minijax_widgets as see

X = np.ones(3, np.float32)


def counted():
    """A jitted function, and how often Python ran it."""
    runs = []

    @partial(jax.jit, static_argnames=("n",))
    def scale(x, n, t):
        runs.append(n)
        return jax.tree.map(lambda leaf: x * n * leaf, t)

    return scale, runs


class Compiled(logging.Handler):
    """How often JAX says that it compiles the function."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self.count += "Finished XLA compilation" in text and "scale" in text


@pytest.fixture
def compiled():
    handler = Compiled()
    logger = logging.getLogger("jax")
    logger.addHandler(handler)
    with jax.log_compiles():
        yield handler
    logger.removeHandler(handler)


CALLS = {
    "shape": lambda f: f(X[:1], n=2, t=X),
    "type": lambda f: f(X.astype(np.int32), n=2, t=X),
    "static": lambda f: f(X, n=3, t=X),
    "static type": lambda f: f(X, n=2.0, t=X),
    "tree": lambda f: f(X, n=2, t=[X]),
    "weak type": lambda f: f(X, n=2, t=1.0),
    "by position": lambda f: f(X, 2, X),
    "device": lambda f: f(jax.device_put(X, jax.devices()[0]), n=2, t=X),
}
KINDS = {
    "static type": "static",
    "by position": "tree",
    "weak type": "shape",
}


@pytest.mark.parametrize("name", CALLS)
def test_each_miss_is_one_of_jax_and_has_its_reason(name, compiled) -> None:
    scale, runs = counted()
    view = see.cache(scale)
    first = view(X, n=2, t=X)
    np.testing.assert_array_equal(first, X * 2)
    view(X, n=2, t=X)
    before = len(runs), compiled.count
    CALLS[name](view)
    CALLS[name](view)
    assert compiled.count == before[1] + 1
    # A committed array is compiled for again, without a new trace.
    assert len(runs) == before[0] + (name != "device")
    calls = view.recording.calls
    assert [call.hit for call in calls] == [False, True, False, True]
    (change,) = calls[2].changes
    assert change.kind == KINDS.get(name, name)


def test_settings(compiled) -> None:
    scale, _ = counted()
    view = see.cache(scale)
    view(X, n=2, t=X)
    with jax.default_matmul_precision("highest"):
        view(X, n=2, t=X)
    view(X, n=2, t=X)
    calls = view.recording.calls
    assert [call.hit for call in calls] == [False, False, True]
    assert [change.name for change in calls[1].changes] == ["default_matmul_precision"]
    assert compiled.count == 2


def test_numpy_or_jax_arrays_are_one_program(compiled) -> None:
    scale, _ = counted()
    view = see.cache(scale)
    for x in (X, jnp.asarray(X), list_of_rows()[0]):
        view(x, n=2, t=X)
    assert [call.hit for call in view.recording.calls] == [False, True]
    assert compiled.count == 1


def list_of_rows():
    return jnp.ones((2, 3))


def test_names_lines_and_text() -> None:
    step = jax.jit(lambda params, batch: params["w"] @ batch["x"])
    view = see.cache(step)
    params = {"w": np.ones((2, 3), np.float32)}
    for size in (4, 5, 6):
        view(params, {"x": np.ones((3, size), np.float32)})
    text = view.text()
    assert "3 calls, 0 hits, 3 misses" in text
    assert "batch['x']: f32[3,5] -> f32[3,6]" in text
    assert "pad axis 1 of batch['x'] to one size" in text
    lines = {call.span.line for call in view.recording.calls}
    assert len(lines) == 1
    assert "view(params" in open(__file__).read().splitlines()[lines.pop() - 1]


def test_a_call_that_raises_is_not_counted() -> None:
    step = jax.jit(lambda x: x @ x)
    view = see.cache(step)
    with pytest.raises(ValueError, match="at least 1"):
        view(np.float32(1))
    view(np.ones((2, 2), np.float32))
    assert [call.hit for call in view.recording.calls] == [False]


def test_saved_and_closed(tmp_path) -> None:
    scale, _ = counted()
    view = see.cache(scale)
    view(X, n=2, t=X)
    view.close()
    view(X, n=2, t=X)  # still the function, and no longer watched
    assert len(view.recording.calls) == 1
    view.save(tmp_path / "calls.json.gz")
    assert see.open(tmp_path / "calls.json.gz").text() == view.text()
    view.save(tmp_path / "calls.html")
    assert "scale" in (tmp_path / "calls.html").read_text()


def test_not_jitted() -> None:
    with pytest.raises(TypeError, match="watches a jitted function"):
        see.cache(jnp.sin.__call__)


def test_minijax_functions_can_be_called_through_the_view() -> None:
    import minijax

    view = see.cache(minijax.jit(lambda x: x + 1))
    np.testing.assert_array_equal(view(X), X + 1)
    view(X)
    assert [call.hit for call in view.recording.calls] == [False, True]
