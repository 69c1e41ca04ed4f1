"""The example libraries against jax: every optimizer, step size and layer."""

import importlib
from typing import Any

import jax
import numpy as np
import pytest

import minijax

LIBRARIES = (jax, minijax)


def module(library: Any, name: str) -> Any:
    return importlib.import_module(f"{library.__name__}.example_libraries.{name}")


def assert_equal(function: Any) -> None:
    """The leaves of what `function(library)` returns, and its tree."""
    (theirs, tree), (ours, own) = (
        library.tree_util.tree_flatten(function(library)) for library in LIBRARIES
    )
    assert str(tree) == str(own)
    for x, y in zip(theirs, ours, strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_allclose(np.asarray(y), np.asarray(x), 2e-5, 1e-6)


OPTIMIZERS = {
    "sgd": {}, "momentum": {"mass": 0.9}, "nesterov": {"mass": 0.9}, "adagrad": {},
    "rmsprop": {}, "rmsprop_momentum": {}, "adam": {}, "adamax": {}, "sm3": {},
}  # fmt: skip
SCHEDULES = {
    "constant": (0.1,), "exponential_decay": (0.1, 3, 0.5),
    "inverse_time_decay": (0.1, 3, 0.5), "polynomial_decay": (0.1, 3, 0.01, 2.0),
    "piecewise_constant": ([1, 2], [0.3, 0.2, 0.1]),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_are_those_of_jax(name) -> None:
    def train(library: Any) -> Any:
        optimizers = module(library, "optimizers")
        step_size = optimizers.inverse_time_decay(0.1, 2, 0.5, staircase=True)
        init, update, params = getattr(optimizers, name)(step_size, **OPTIMIZERS[name])
        start = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(3)}
        state = init(library.tree_util.tree_map(library.numpy.asarray, start))
        loss = lambda p: ((p["w"] - 1) ** 2).sum() + (p["b"] ** 4).sum()
        for i in range(3):
            grads = optimizers.clip_grads(library.grad(loss)(params(state)), 5.0)
            state = update(i, grads, state)
        again = optimizers.pack_optimizer_state(
            optimizers.unpack_optimizer_state(state)
        )
        assert again.tree_def == state.tree_def
        return params(again), library.tree_util.tree_leaves(state)

    assert_equal(train)


@pytest.mark.parametrize("name", SCHEDULES)
def test_step_sizes_are_those_of_jax(name) -> None:
    for i in range(5):
        assert_equal(
            lambda m: getattr(module(m, "optimizers"), name)(*SCHEDULES[name])(i)
        )


LAYERS: dict[str, Any] = {
    "Dense": (lambda s: s.Dense(4), (2, 3)),
    "Conv": (lambda s: s.Conv(4, (3, 3), (2, 2), "SAME"), (2, 8, 8, 3)),
    "ConvTranspose": (lambda s: s.ConvTranspose(4, (3, 3), (2, 2)), (2, 4, 4, 3)),
    "Conv1DTranspose": (lambda s: s.Conv1DTranspose(4, (3,)), (2, 4, 3)),
    "BatchNorm": (lambda s: s.BatchNorm(), (2, 4, 4, 3)),
    "BatchNorm of one axis": (lambda s: s.BatchNorm(0, center=False), (5, 3)),
    "MaxPool": (lambda s: s.MaxPool((2, 2), (2, 2)), (2, 4, 4, 3)),
    "SumPool": (lambda s: s.SumPool((2, 2), None, "SAME"), (2, 4, 4, 3)),
    "AvgPool": (lambda s: s.AvgPool((2, 2), None, "SAME", "NCHW"), (2, 3, 4, 4)),
    "Dropout": (lambda s: s.Dropout(0.5), (4, 5)),
    "Dropout of tests": (lambda s: s.Dropout(0.5, mode="test"), (4, 5)),
    "Flatten": (lambda s: s.serial(s.Flatten, s.Dense(2), s.Gelu), (2, 3, 3)),
    "Identity": (lambda s: s.Identity, (2, 3)),
    "network": (
        lambda s: s.serial(
            s.FanOut(3),
            s.parallel(s.Dense(4), s.serial(s.Dense(4), s.Relu), s.Dense(4)),
            s.FanInSum,
            s.FanOut(2),
            s.parallel(s.Tanh, s.shape_dependent(lambda shape: s.Dense(shape[-1]))),
            s.FanInConcat(),
            s.LogSoftmax,
        ),
        (2, 3),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_those_of_jax(name) -> None:
    make, shape = LAYERS[name]
    x = np.random.RandomState(0).randn(*shape).astype(np.float32)
    batch = shape[0] if "Pool" in name else -1  # jax's pools make 0 of -1

    def run(library: Any) -> Any:
        init, apply = make(module(library, "stax"))
        key = library.random.key(1)
        out_shape, params = init(key, (batch, *shape[1:]))
        out = apply(params, library.numpy.asarray(x), rng=key)
        assert tuple(out_shape)[1:] == out.shape[1:] and out_shape[0] == batch
        return params, out

    assert_equal(run)


def test_wrong_arguments_raise_as_in_jax() -> None:
    for library in LIBRARIES:
        optimizers, stax = module(library, "optimizers"), module(library, "stax")
        init, update, _ = optimizers.adam(0.1)
        with pytest.raises(TypeError):
            update(0, {"b": 1.0}, init({"a": library.numpy.ones(2)}))
        with pytest.raises(TypeError):
            optimizers.make_schedule([1, 2])
        with pytest.raises(ValueError):
            optimizers.piecewise_constant([1], [1])
        with pytest.raises(ValueError):
            stax.Dropout(0.5)[1]((), library.numpy.ones(2))


def test_stax_has_the_names_of_jaxs():
    theirs, ours = (module(library, "stax") for library in LIBRARIES)
    functions = [n for n in dir(theirs) if n[0] != "_" and callable(getattr(theirs, n))]
    assert [n for n in functions if not hasattr(ours, n)] == []
    assert ours.GeneralConv.__name__ == "GeneralConv"
