"""Types and rules do not depend on what was done or imported before."""

from tests.backend.processes import run

EIGHT = """
import minijax, minijax.numpy as jnp
from minijax.sharding import AxisType, NamedSharding, PartitionSpec as P
from minijax.support.devices.shardings import ShardingTypeError

mesh = minijax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
cut = minijax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("x")))

def fails(function, *args):
    try:
        function(*args)
    except ShardingTypeError as error:
        return str(error).splitlines()[0]
"""


def test_gradient_of_an_unused_argument_after_shard_map() -> None:
    program = """
def type_of_gradient():
    grad = minijax.grad(lambda x, y: jnp.sum(x * x), argnums=1)
    return str(minijax.typeof(grad(cut, cut)))

with minijax.set_mesh(mesh):
    before = type_of_gradient()
    minijax.shard_map(lambda x: 2 * x, in_specs=P("x"), out_specs=P("x"))(cut)
    assert before == type_of_gradient() == "float32[8@x]"
print("fine")
"""
    assert run(EIGHT + program, devices=8).split() == ["fine"]


def test_primitive_that_is_imported_after_a_mesh() -> None:
    program = """
with minijax.set_mesh(mesh):
    jnp.sin(cut)
    from minijax.experimental import pallas as pl
    message = fails(minijax.make_jaxpr(pl.reciprocal), cut)
assert "sharding rule for reciprocal is not implemented" in message
print("fine")
"""
    assert run(EIGHT + program, devices=8).split() == ["fine"]


def test_jacobians_after_a_mesh() -> None:
    program = """
import numpy as np
with minijax.set_mesh(mesh):
    jnp.sin(cut)
    inside = minijax.jacfwd(jnp.sin)(jnp.ones(2))
wanted = np.cos(1) * np.eye(2)
for jacobian in (minijax.jacfwd(jnp.sin), minijax.jacrev(jnp.sin), lambda x: inside):
    np.testing.assert_allclose(jacobian(jnp.ones(2)), wanted, rtol=1e-5)
found = minijax.hessian(lambda x: jnp.sum(x**3))(jnp.ones(2))
np.testing.assert_allclose(found, 6 * np.eye(2))
print("fine")
"""
    assert run(EIGHT + program, devices=8).split() == ["fine"]


def test_memory_of_device_put_after_a_mesh() -> None:
    program = """
with minijax.set_mesh(mesh):
    jnp.sin(cut)
to_host = lambda x: minijax.device_put(x, minijax.memory.Space.Host)
(eqn,) = minijax.make_jaxpr(to_host)(jnp.ones(4)).eqns
assert eqn.outvars[0].aval.str_short(short_dtypes=True) == "f32<host>[4]"
print("fine")
"""
    assert run(EIGHT + program, devices=8).split() == ["fine"]


def test_concatenate_of_cut_and_whole() -> None:
    """As in JAX: an array on no mesh goes with any cut, one on the mesh does not."""
    program = """
join = lambda: jnp.concatenate([cut, jnp.ones(8)])
for _ in range(2):
    assert str(minijax.typeof(join())) == "float32[16@x]"
    with minijax.set_mesh(mesh):
        assert "All operands should have the same sharding" in fails(join)
print("fine")
"""
    assert run(EIGHT + program, devices=8).split() == ["fine"]


def test_out_sharding_that_would_be_ignored() -> None:
    """Only Explicit axes stand in types; JAX refuses the others, too."""
    program = """
auto = minijax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
for function in (
    lambda: jnp.reshape(jnp.ones(16), (8, 2), out_sharding=P("x", None)),
    lambda: jnp.dot(jnp.ones((8, 8)), jnp.ones((8, 8)), out_sharding=P("x", None)),
):
    for mesh_in_use in (None, auto):
        try:
            with minijax.set_mesh(mesh_in_use):
                function()
        except ValueError as error:
            print(type(error).__name__)
"""
    assert run(EIGHT + program, devices=8).split() == ["ValueError"] * 4
