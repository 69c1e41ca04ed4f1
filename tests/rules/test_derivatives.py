"""Every derivative rule against finite differences, both modes, to second order."""

import numpy as np
import pytest

from tests.rules.cases import CASES

minijax = pytest.importorskip("minijax")

STEP = 1e-5
# Central differences in float64 with this step leave about 1e-10 of the scale of the
# third derivative; second order differentiates a rule's own rounding once more.
TOLERANCE = {1: 1e-6, 2: 1e-5}

DIFFERENTIABLE = [entry for entry in CASES if entry.differentiable]


@pytest.mark.parametrize("entry", DIFFERENTIABLE, ids=lambda entry: entry.name)
def test_derivatives(entry):
    with minijax.enable_x64(True):
        whole = entry.build(minijax)
        args = [minijax.numpy.asarray(arg) for arg in entry.args]

        def function(*points):
            full = list(args)
            for position, point in zip(entry.differentiable, points):
                full[position] = point
            leaves = minijax.tree_util.tree_leaves(whole(*full))
            return [leaf for leaf in leaves if leaf.dtype.kind in "fc"]

        points = [args[position] for position in entry.differentiable]
        if not function(*points):
            pytest.skip("no inexact result: there is nothing to differentiate")
        check_derivatives(function, points, 1, entry.orders)


def check_derivatives(function, points, order, orders):
    """Check the derivatives of `function`, the `order`-th of `orders` wanted."""
    random = np.random.RandomState(order)
    tangents = [direction(random, point) for point in points]
    tolerance = TOLERANCE[order]

    @minijax.jit
    def forward(*points):
        return minijax.jvp(function, tuple(points), tuple(tangents))

    out, derivative = forward(*points)
    # Beyond the first order the function is a compiled one already.
    jitted = minijax.jit(function) if order == 1 else function
    above = jitted(*[p + STEP * t for p, t in zip(points, tangents)])
    below = jitted(*[p - STEP * t for p, t in zip(points, tangents)])
    for number, (high, low, exact) in enumerate(zip(above, below, derivative)):
        numerical = (np.asarray(high) - np.asarray(low)) / (2 * STEP)
        assert_close(exact, numerical, tolerance, f"jvp of result {number}")

    cotangents = [direction(random, leaf) for leaf in out]

    @minijax.jit
    def reverse(*points):
        return minijax.vjp(function, *points)[1](cotangents)

    gradients = reverse(*points)
    forward_product = product(cotangents, derivative)
    reverse_product = product(gradients, tangents)
    assert_close(reverse_product, forward_product, 1e-9, "vjp against jvp")

    if order < orders:
        check_derivatives(lambda *x: forward(*x)[1], points, order + 1, orders)
        check_derivatives(lambda *x: list(reverse(*x)), points, order + 1, orders)


def direction(random, like):
    """A random array of the shape and dtype of `like`."""
    values = random.uniform(0.5, 1.0, like.shape)
    if like.dtype.kind == "c":
        values = values + 1j * random.uniform(0.5, 1.0, like.shape)
    return minijax.numpy.asarray(values.astype(like.dtype))


def product(left, right):
    """The real pairing of cotangents with tangents; without conjugation, as JAX's."""
    return sum(np.sum(np.asarray(a) * np.asarray(b)).real for a, b in zip(left, right))


def assert_close(actual, expected, tolerance, what):
    actual, expected = np.asarray(actual), np.asarray(expected)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    worst = np.abs(actual - expected).max(initial=0.0)
    assert worst <= tolerance * scale, (
        f"{what}: off by {worst:.2e}\nrule {actual}\nnumerical {expected}"
    )
