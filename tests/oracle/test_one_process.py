"""minijax and JAX live in one process, whichever is imported first."""

import subprocess
import sys

import pytest

pytest.importorskip("minijax")

PROGRAM = """
import numpy as np
{imports}
def f(x):
    return jax.jit(lambda x: (x * 2).sum())(x)
def g(x):
    return minijax.jit(lambda x: (x * 2).sum())(x)
x = np.arange(3.0, dtype=np.float32)
for _ in range(2):
    assert float(f(x)) == float(g(x)) == 6.0
assert (jax.grad(f)(x) == 2).all() and (minijax.grad(g)(x) == 2).all()
both = jax.vmap(lambda k: jax.random.normal(k))(jax.random.split(jax.random.key(0), 3))
ours = minijax.random.split(minijax.random.key(0), 3)
ours = minijax.vmap(lambda k: minijax.random.normal(k))(ours)
assert np.asarray(both).tobytes() == np.asarray(ours).tobytes()
a, b = jax.numpy.arange(3), minijax.numpy.arange(3)
assert type(a) is not type(b)
assert isinstance(a, jax.Array) and not isinstance(b, jax.Array)
assert isinstance(b, minijax.Array) and not isinstance(a, minijax.Array)
assert (np.asarray(minijax.numpy.asarray(np.asarray(a))) == np.asarray(b)).all()
tree = {{"a": [a, None], "b": (b,)}}
assert len(jax.tree_util.tree_leaves(tree)) == len(minijax.tree_util.tree_leaves(tree))
print("both")
"""


@pytest.mark.parametrize("first", ["jax", "minijax"])
def test_import_order(first):
    second = {"jax": "minijax", "minijax": "jax"}[first]
    program = PROGRAM.format(imports=f"import {first}\nimport {second}")
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "both\n"


def test_minijax_does_not_import_jax():
    program = "import sys, minijax; print('jax' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert answer.stdout == "False\n", answer.stderr
