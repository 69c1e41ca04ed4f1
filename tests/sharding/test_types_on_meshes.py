"""What types tell of a mesh, and which axes a constraint may name, against jax.

Types of minijax say how a value is cut, not on which mesh the uncut ones are. So these
differ from jax, and no case asks for them: outside of `jit`, the type of an array on an
Auto mesh, and outside of `set_mesh` that of one on an Explicit mesh which nothing cuts
(jax: that mesh; here: the empty one); inside a mesh, the types of NumPy arrays and
Python numbers (jax: the empty mesh; here: the mesh).
"""

import pytest

from tests.sharding import types_on_meshes
from tests.sharding.test_automatic import compare


@pytest.mark.parametrize("name", types_on_meshes.CASES)
def test_as_in_jax(results, name):
    compare(results[name]["minijax"], results[name]["jax"])
