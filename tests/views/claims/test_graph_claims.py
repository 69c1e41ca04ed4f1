"""What the graph of a jaxpr claims, held against jax's own jaxpr."""

import re
from collections import Counter

import jax.extend
import pytest

import minijax
import minijax_widgets as see
from tests.views.claims.forty import CASES, title
from tests.views.claims.jax_programs import closed_jaxpr, every_equation

CLAIMS = [
    "Each equation is one node, with its primitive.",
    "An arrow goes from what makes a value to each equation that reads it.",
]


@pytest.mark.parametrize("case", CASES, ids=title)
def test_claims(case):
    dot = see.jaxpr(case.make(minijax), *case.args).graph().dot()
    eqns = every_equation(closed_jaxpr(case).jaxpr)
    nodes = re.findall(r'^\s*(e\d+) \[label="(?:[^"\\]|\\.)*= ([\w-]+)"', dot, re.M)
    drawn = dict(re.findall(r"^\s*(e\d+) \[", dot, re.M) and [(n, p) for n, p in nodes])
    assert len(set(re.findall(r"^\s*(e\d+) \[", dot, re.M))) == len(eqns)
    for name, primitive in drawn.items():
        assert primitive == eqns[int(name[1:])].primitive.name
    makers = {id(var): number for number, eqn in enumerate(eqns) for var in eqn.outvars}
    expected = Counter()
    for number, eqn in enumerate(eqns):
        read = {id(v) for v in eqn.invars if isinstance(v, jax.extend.core.Var)}
        for var in read & set(makers):
            expected[f"e{makers[var]}", f"e{number}"] += 1
    arrows = set(re.findall(r"^\s*(e\d+) -> (e\d+)", dot, re.M))
    assert arrows >= set(expected)
