"""No view shows a line of the function that traced a kept program first."""

import numpy as np
import pytest

import minijax
import minijax_widgets as see
from minijax import nn, random

X = np.ones((3, 5, 7), np.float32)


def earlier(x):
    key = random.key(3)
    return random.normal(key, x.shape) + nn.relu(x) + nn.softmax(x)


def later(x):
    y = nn.relu(x * 2.0)
    key = random.key(4)
    return y + random.normal(key, x.shape) * nn.softmax(y)


def total(x):
    return later(x).sum()


VIEWS = {
    "jaxpr": lambda: see.jaxpr(later, X),
    "stages": lambda: see.stages(later, X),
    "fusion": lambda: see.fusion(later, X),
    "memory": lambda: see.memory(later, X),
    "buffers": lambda: see.memory(later, X, compiled=True),
    "memory of grad": lambda: see.memory(minijax.grad(total), X),
    "grad": lambda: see.grad(total, X),
    "jaxpr of grad": lambda: see.jaxpr(minijax.grad(total), X),
    "vmap": lambda: see.vmap(later, X),
    "trace": lambda: see.trace(later, X),
    "keys": lambda: see.keys(later, X),
}


@pytest.mark.parametrize("name", VIEWS)
def test_lines_are_those_of_the_function_shown(name) -> None:
    for x in (X, X[0]):
        minijax.make_jaxpr(earlier)(x)
        minijax.make_jaxpr(minijax.grad(lambda x: earlier(x).sum()))(x)
    sources = VIEWS[name]().recording.sources
    assert {source.name for source in sources} <= {"later", "total"}
