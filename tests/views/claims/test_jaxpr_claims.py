"""What `see.jaxpr` claims, and each claim held against jax's own jaxpr.

The counts here are made from jax's objects alone; the numbers beside the checks are
those of `CLAIMS`.
"""

import re

import jax
import jax.extend
import pytest

import minijax
import minijax_widgets as see
from tests.views.claims.forty import CASES, title
from tests.views.claims.jax_programs import closed_jaxpr, every_equation

CLAIMS = [
    "The program has so many equations.",
    "With those of inner programs so many, each program counted once.",
    "So many equations read the intermediate that is used most.",
    "The inputs have these types, and these names where they come from a tree.",
    "The text of the program is the printer's, word for word.",
]


@pytest.mark.parametrize("case", CASES, ids=title)
def test_claims(case):
    record = see.jaxpr(case.make(minijax), *case.args).recording
    closed = closed_jaxpr(case)
    outer, total = len(closed.eqns), len(every_equation(closed.jaxpr))
    headline = record.headline.replace(",", "")
    # 1 and 2
    assert int(re.search(r"(\d+) equations?\b", headline).group(1)) == outer
    inner = re.search(r"(\d+) with those of inner", headline)
    assert (int(inner.group(1)) if inner else outer) == total == len(record.equations)
    # 3
    uses: dict = {}
    made_here = set()
    for eqn in every_equation(closed.jaxpr):
        made_here |= {id(v) for v in eqn.outvars}
        for var in {id(v) for v in eqn.invars if isinstance(v, jax.extend.core.Var)}:
            uses[var] = uses.get(var, 0) + 1
    counts = [count for var, count in uses.items() if var in made_here and count > 1]
    several = [v for v in record.variables if v.role == "value" and len(v.uses) > 1]
    assert sorted(len(v.uses) for v in several) == sorted(counts)
    most = re.search(r"(\d+) times$|(twice)$", headline)
    if counts:
        assert int(most.group(1) or 2) == max(counts)
    elif outer:
        assert "no intermediate is used twice" in headline
    # 4
    names = closed.jaxpr.debug_info.arg_names
    labels = [v.label for v in record.variables if v.label]
    assert labels == list(names)
    assert record.inputs == [v.str_short(short_dtypes=True) for v in closed.in_avals]
    # 5
    text = re.sub(r"np\.\w+\((\d+)\)", r"\1", str(closed))  # a number's repr in jax
    assert "".join(record.text.split()) == "".join(text.split())
