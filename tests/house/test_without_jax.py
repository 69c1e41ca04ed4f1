"""minijax needs jaxlib alone: everyday work in a process where jax cannot be imported.

Importing jax adds attributes to jaxlib's classes. The other tests import it, so code
that leans on one of those attributes passes there and fails for a learner.
"""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

BEGIN = """
import sys
sys.modules["jax"] = None
import copy, operator, pickle
import numpy as np
import minijax
import minijax.numpy as jnp
from minijax import lax, nn, random, tree_util
x = jnp.arange(6.0).reshape(2, 3)
device = minijax.devices()[0]
"""

PIECES = {
    "placement": """
        assert x.devices() == {device} and x.device == device
        assert x.sharding.device_set == {device} and not x.committed
        assert x.is_fully_addressable and x.is_fully_replicated
        (shard,) = x.addressable_shards
        assert shard.device == device and shard.data.shape == (2, 3)
    """,
    "device_put": """
        there = minijax.device_put(np.ones(3, np.float32), device)
        assert there.committed and (there + 1).devices() == {device}
        again = minijax.device_put(there, device)
        tree = minijax.device_put({"a": 1.0, "b": x})
        assert minijax.device_get(tree)["a"] == 1.0
        assert (minijax.device_put(x, device) + x).committed
    """,
    "memory": """
        x.copy_to_host_async(); x.block_until_ready(); assert x.is_ready() in (0, 1)
        assert x.on_device_size_in_bytes() >= 24 and x.unsafe_buffer_pointer()
        y = x + 1; y.delete(); assert y.is_deleted()
        donated = minijax.jit(lambda a: a + 1, donate_argnums=0)(x * 1)
    """,
    "values": """
        assert np.asarray(x).sum() == 15 and float(x[1, 2]) == 5.0 and len(x) == 2
        assert x.tolist()[0] == [0.0, 1.0, 2.0] and x[0, 1].item() == 1.0
        assert str(x) and repr(x).startswith("Array(") and f"{x[0, 0]:.1f}" == "0.0"
        assert bool(x[0, 1]) and int(x[1, 0]) == 3 and operator.index(jnp.int32(3)) == 3
        assert [row.shape for row in x] == [(3,), (3,)] and x.T.shape == (3, 2)
        bfloat = x.astype(jnp.bfloat16); assert np.asarray(bfloat).dtype == jnp.bfloat16
    """,
    "exchange": """
        for same in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
            assert (same == x).all()
        assert np.from_dlpack(x).shape == (2, 3)
        assert (jnp.from_dlpack(np.ones(3, np.float32)) == 1).all()
        assert np.sin(x).shape == (2, 3) and (np.ones(3) + x).shape == (2, 3)
    """,
    "transformations": """
        f = lambda a: jnp.sum(jnp.tanh(a) ** 2)
        minijax.jit(minijax.grad(f))(x); minijax.vmap(f)(x); minijax.hessian(f)(x[0])
        minijax.jvp(f, (x,), (x,)); minijax.linearize(f, x); minijax.vjp(f, x)[1](1.0)
        minijax.make_jaxpr(f)(x); minijax.eval_shape(f, x)
        minijax.jit(f).lower(x).compile()(x)
    """,
    "random": """
        key = random.key(0)
        random.normal(random.split(key)[0], (3,)); random.permutation(key, 5)
        str(key); random.bits(key); random.key_data(key); key.devices()
        pickle.dumps(random.key_data(key))
    """,
    "errors": """
        try:
            minijax.jit(lambda a: 1 if a[0, 0] > 0 else 2)(x)
        except minijax.errors.TracerBoolConversionError:
            pass
        y = x + 1; y.delete()
        try:
            np.asarray(y)
        except RuntimeError as error:
            assert "deleted" in str(error)
    """,
}


@pytest.mark.parametrize("name", PIECES)
def test_works_without_jax(name):
    piece = textwrap.dedent(PIECES[name])
    answer = subprocess.run(
        [sys.executable, "-c", BEGIN + piece], cwd=ROOT, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
