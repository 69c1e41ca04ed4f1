"""What the learner's Flax and Optax of chapter 15 must do.

Each check raises AssertionError with a sentence. The formulas of Adam are written out
in NumPy with 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import random
from minijax_lab.answers import alike
from minijax_lab.tiny_programs import tiny


def two_layers() -> Any:
    """A network of three Dense in two kinds of modules, with 4, 3 and 2 results."""

    class Pair(tiny.modules.Module):  # type: ignore[name-defined, misc]
        def __call__(self, x: Any) -> Any:
            return tiny.modules.Dense(3)(tiny.modules.Dense(4)(x))

    class Whole(tiny.modules.Module):  # type: ignore[name-defined, misc]
        def __call__(self, x: Any) -> Any:
            return tiny.modules.Dense(2)(Pair()(x))

    return Whole()


def keyed(params: Any, place: str = "") -> list[str]:
    """The paths of the weights in a dict of dicts, sorted."""
    if not isinstance(params, dict):
        return [place.removeprefix("/")]
    inner = [keyed(params[name], f"{place}/{name}") for name in sorted(params)]
    return [path for paths in inner for path in paths]


def names_tell_the_place() -> None:
    params = two_layers().init(random.key(0), np.ones(5, np.float32))
    layers = ("Dense_0", "Pair_0/Dense_0", "Pair_0/Dense_1")
    right = [f"{layer}/{name}" for layer in layers for name in ("bias", "kernel")]
    found = keyed(params)
    missing = [path for path in right if path not in found]
    assert not missing, f"there is no weight {missing[0]}; there are {', '.join(found)}"
    assert len(found) == len(right), f"expected 6 weights, got {', '.join(found)}"
    scope = tiny.modules.Scope({}, key=random.key(0))
    paths = [scope.child(kind).path for kind in ("A", "B", "A")]
    expected = [("A_0",), ("B_0",), ("A_1",)]
    assert paths == expected, f"expected the paths {expected}, got {paths}"
    inner = scope.child("A").child("B")
    assert inner.path == ("A_2", "B_0"), f"a path from the root, not {inner.path}"


def apply_only_reads() -> None:
    network, x = two_layers(), np.ones(5, np.float32)
    params = network.init(random.key(0), x)
    twice = minijax.tree.map(lambda weight: 2 * weight, params)
    names = keyed(twice)
    first = network.apply(twice, x)
    told = "all weights doubled, biases zero: 8 times the result"
    alike(told, first, 8 * network.apply(params, x), 1e-5)
    assert keyed(twice) == names, "apply changed the dict of weights"
    scope = tiny.modules.Scope({})
    scope.child("A")
    assert scope.params == {}, "a child changed the weights, and there was no key"


def missing_weights_are_named() -> None:
    network, x = two_layers(), np.ones(5, np.float32)
    params = network.init(random.key(0), x)
    del params["Pair_0"]["Dense_1"]["kernel"]
    try:
        network.apply(params, x)
    except KeyError as error:
        assert "Pair_0/Dense_1/kernel" in str(error), (
            f"which weight is missing? Pair_0/Dense_1/kernel; the KeyError says {error}"
        )
    else:
        raise AssertionError("apply made up a weight that was missing")
    params = network.init(random.key(0), x)
    params["Dense_0"]["bias"] = np.zeros(7, np.float32)
    try:
        network.apply(params, x)
    except ValueError:
        return
    raise AssertionError("a bias of shape (7,) in place of (2,) raised no ValueError")


def each_weight_has_a_key() -> None:
    scope = tiny.modules.Scope({}, ("Dense_0",), random.key(0))
    makers: list[Any] = []

    def make(key: Any, shape: tuple[int, ...]) -> Any:
        makers.append(random.key_data(key).tolist())
        return np.zeros(shape, np.float32)

    for name in ("kernel", "bias", "kernel"):
        scope.param(name, make, (3,))
    right = [
        random.key_data(tiny.modules.key_for(random.key(0), ("Dense_0",), n)).tolist()
        for n in (1, 2)
    ]
    assert len(makers) == 2, f"two weights, and {len(makers)} were made"
    assert makers == right, (
        "the first weight of Dense_0 is made of key_for(key, path, 1), the second of "
        "key_for(key, path, 2)"
    )


def tree_of_weights() -> tuple[Any, list[Any]]:
    """Weights, and gradients for three steps."""
    row = np.array([0.5, -1.5, 2.0], np.float32)
    weights = {"a": {"kernel": row, "bias": row[:1]}, "b": {"kernel": 3 * row}}
    grads = [
        {"a": {"kernel": s * row, "bias": s * row[1:2]}, "b": {"kernel": s - row}}
        for s in (np.float32(0.1), np.float32(-2.0), np.float32(0.7))
    ]
    return weights, grads


def adam_by_hand(grads: list[Any], b1: float, b2: float, eps: float) -> list[Any]:
    """Adam's updates for the gradients of one weight, in 64 bits."""
    mean = square = np.zeros_like(grads[0], dtype=float)
    found = []
    for step, grad in enumerate(grads, start=1):
        g = np.asarray(grad, float)
        mean = b1 * mean + (1 - b1) * g
        square = b2 * square + (1 - b2) * g * g
        root = np.sqrt(square / (1 - b2**step))
        found.append(mean / (1 - b1**step) / (root + eps))
    return found


def adam_is_adam() -> None:
    weights, grads = tree_of_weights()
    for settings in ((0.9, 0.999, 1e-8), (0.5, 0.8, 1e-2)):
        made = tiny.optimizers.scale_by_adam(*settings)
        state, update = made.init(weights), minijax.jit(made.update)
        first = made.update(grads[1], state)[0]
        for step, grad in enumerate(grads):
            updates, state = update(grad, state)
            flat = zip(
                minijax.tree.leaves(updates),
                zip(*map(minijax.tree.leaves, grads)),
                strict=True,
            )
            for found, seen in flat:
                right = adam_by_hand(list(seen), *settings)[step]
                alike(f"scale_by_adam{settings}, update {step + 1}", found, right)
        again = made.update(grads[1], made.init(weights))[0]
        same = minijax.tree.map(lambda a, b: bool((a == b).all()), first, again)
        assert all(minijax.tree.leaves(same)), (
            "from a new state the first update is another one now: something is kept "
            "outside of the state"
        )
    leaves = len(minijax.tree.leaves(state))
    assert leaves == 7, f"three weights: 1 + 3 + 3 arrays in the state, not {leaves}"


def chains_go_in_order() -> None:

    def noting(add: float, times: float) -> Any:
        def update(grads: Any, state: Any, params: Any = None) -> Any:
            return grads * times + add + 100 * params, state + 1

        return tiny.optimizers.Transform(lambda params: params + add, update)

    made = tiny.optimizers.chain(noting(1.0, 2.0), noting(3.0, 5.0), noting(0.0, 1.0))
    state = made.init(1.0)
    assert state == (2.0, 4.0, 1.0), (
        f"init gives a tuple of each transform's state, (2.0, 4.0, 1.0), not {state}"
    )
    found, after = made.update(1.0, state, 0.0)
    assert found == 18.0, f"(1 * 2 + 1) * 5 + 3 is 18, not {found}"
    assert after == (3.0, 5.0, 2.0), f"each gets its own state: {after}"
    assert made.update(1.0, state, 1.0)[0] == 718.0, "each gets the weights, too"
    assert tiny.optimizers.chain().update(1.0, (), None) == (1.0, ()), (
        "a chain of nothing"
    )


def decay_goes_by_path() -> None:
    weights, (grads, *_) = tree_of_weights()
    seen: list[str] = []

    def chosen(path: str) -> bool:
        seen.append(path)
        return path == "a/kernel"

    made = tiny.optimizers.add_decayed_weights(0.1, chosen)
    state = made.init(weights)
    found, after = made.update(grads, state, weights)
    right = {"a/kernel", "a/bias", "b/kernel"}
    assert set(seen) == right, f"expected the paths {sorted(right)}, got {seen}"
    assert after == state, "it has nothing to remember"
    expected = grads["a"]["kernel"] + 0.1 * weights["a"]["kernel"]
    alike("grad + rate * weight", found["a"]["kernel"], expected, 1e-5)
    for a, b in (("a", "bias"), ("b", "kernel")):
        alike(f"{a}/{b} was not chosen", found[a][b], grads[a][b], 1e-5)
    every = tiny.optimizers.add_decayed_weights(2.0).update(grads, (), weights)[0]
    sums = minijax.tree.map(lambda g, w: g + 2.0 * w, grads, weights)
    right = sums["b"]["kernel"]
    alike("without `chosen` all are decayed", every["b"]["kernel"], right, 1e-5)


def updates_are_added() -> None:
    weights = {"a": jnp.ones(2, jnp.bfloat16), "b": (jnp.arange(3.0),)}
    updates = {"a": jnp.full(2, 0.5, jnp.float32), "b": (jnp.full(3, -1.0),)}
    found = tiny.optimizers.apply_updates(weights, updates)
    assert set(found) == {"a", "b"}, "new weights of the same structure"
    assert found["a"].dtype == jnp.bfloat16, (
        f"a weight of bfloat16 stays one, and is {found['a'].dtype} now"
    )
    alike("weight + update", found["a"].astype("float32"), np.full(2, 1.5), 1e-5)
    alike("weight + update", found["b"][0], np.arange(3.0) - 1, 1e-5)


CHECKS: dict[str, Callable[[], None]] = {
    "names of weights": names_tell_the_place,
    "weights that are there": apply_only_reads,
    "weights that are missing": missing_weights_are_named,
    "keys of weights": each_weight_has_a_key,
    "a chain": chains_go_in_order,
    "Adam": adam_is_adam,
    "decay by path": decay_goes_by_path,
    "updates": updates_are_added,
}
