"""Rules of primitives are set once: no import, mesh or program changes them."""

import json
import random

import pytest

from tests.backend.processes import run
from tests.house.test_house import PUBLIC_MODULES

TELL = """
import importlib, json, sys
import minijax
from minijax.core.language import all_primitives

RULES = ("type_rule", "impl", "jvp", "transpose", "batch", "linearize", "staging")
RULES += ("partial_eval", "dce", "pretty", "meaning")

def name(rule):
    if rule is None:
        return None
    module = getattr(rule, "__module__", "?")
    # The id tells a wrapped rule from the rule whose name the wrapper took.
    return f"{module}.{getattr(rule, '__qualname__', type(rule).__name__)} {id(rule)}"

def told():
    return {
        primitive.name: [name(getattr(primitive, rule)) for rule in RULES]
        + [[str(kind), name(rule)] for kind, rule in primitive.lowerings.items()]
        for primitive in all_primitives.values()
    }
"""

PROGRAMS = """
import minijax.numpy as jnp
from minijax.experimental import pallas as pl
from minijax.sharding import AxisType, PartitionSpec as P

before = told()
mesh = minijax.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,))
with minijax.set_mesh(mesh):
    x = minijax.sharding.reshard(jnp.arange(8.0), P("x"))
    minijax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2))(x)
    minijax.shard_map(lambda x: minijax.lax.psum(x, "x"), out_specs=P())(x)

def kernel(x, out):
    out[...] = 2 * x[...]

shape = minijax.ShapeDtypeStruct((8,), jnp.float32)
pl.pallas_call(kernel, out_shape=shape, interpret=True)(jnp.arange(8.0))
after = told()
print(json.dumps({name: after[name] for name in before if after[name] != before[name]}))
"""


def test_meshes_and_programs_change_no_rule():
    assert json.loads(run(TELL + PROGRAMS, devices=2)) == {}


@pytest.mark.parametrize("seed", range(5))
def test_no_order_of_imports_changes_a_rule(seed):
    modules = [f"minijax.{name}" for name in PUBLIC_MODULES if name]
    random.Random(seed).shuffle(modules)
    program = f"""
before = told()
for module in {modules}:
    importlib.import_module(module)
after = told()
print(json.dumps({{n: after[n] for n in before if after[n] != before[n]}}))
"""
    assert json.loads(run(TELL + program)) == {}
