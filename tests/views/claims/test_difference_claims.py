"""What `see.jaxpr(before, after)` claims, held against jax's own two jaxprs.

Each function is held against itself, itself with one more equation, and itself mapped.
"""

import functools
import re

import jax
import jax.extend
import numpy as np
import pytest

import minijax
import minijax_widgets as see
from tests.views.claims.forty import CASES, title
from tests.views.claims.jax_programs import every_equation

CLAIMS = [
    "Two programs that differ in names alone have no difference, in so many equations.",
    "Each equation of either program stands in one row, in its program's order.",
    "So the counts of gone, new, changed and same rows add up to both programs.",
    "Two equations in one row have one primitive.",
    "A type is called changed where, and only where, the two types differ.",
    "A row called the same has the same types and literals, and reads the same values.",
    "One more equation is one new row, and nothing else.",
]


def more(m, case):
    """The function, and one more equation that reads its first result."""
    function = case.make(m)

    def more(*args):
        results = function(*args)
        first = m.tree_util.tree_leaves(results)[0]
        return results, first == first

    return more


def mapped(m, case):
    return m.vmap(case.make(m))


def twice(case):
    return jax.tree.map(lambda leaf: np.stack([np.asarray(leaf)] * 2), case.args)


@functools.cache
def programs(case, kind):
    """Two programs of minijax, and those of jax: as (minijax's, jax's) each."""
    make = {"same": lambda m, c: c.make(m), "more": more, "mapped": mapped}[kind]
    args = twice(case) if kind == "mapped" else case.args
    # A function of its own each time: nothing is taken from what was traced before.
    first = [m.make_jaxpr(case.make(m))(*case.args) for m in (minijax, jax)]
    second = [m.make_jaxpr(make(m, case))(*args) for m in (minijax, jax)]
    return tuple(first), tuple(second)


def compared(case, kind):
    """The recording, and the equations of both programs of jax."""
    first, second = programs(case, kind)
    record = see.jaxpr(first[0], second[0]).recording
    return record, every_equation(first[1].jaxpr), every_equation(second[1].jaxpr)


def types(eqn):
    return [v.aval.str_short(short_dtypes=True) for v in eqn.outvars]


@pytest.mark.parametrize("case", CASES, ids=title)
def test_no_difference(case):
    record, left, right = compared(case, "same")
    s = "" if len(left) == 1 else "s"
    assert f": no difference in {len(left)} equation{s}" in record.headline
    assert all(pair.change == "same" for pair in record.pairs)


@pytest.mark.parametrize("case", CASES, ids=title)
def test_one_more(case):
    record, left, right = compared(case, "more")
    changes = [pair.change for pair in record.pairs]
    assert len(right) == len(left) + 1
    assert changes.count("add") == 1 and changes.count("same") == len(left)
    (new,) = [pair.second for pair in record.pairs if pair.change == "add"]
    assert right[new].primitive.name == "eq"


@pytest.mark.parametrize("case", CASES, ids=title)
def test_mapped(case):
    record, left, right = compared(case, "mapped")
    assert len(record.first.equations) == len(left)
    assert len(record.second.equations) == len(right)
    firsts = [pair.first for pair in record.pairs if pair.first is not None]
    seconds = [pair.second for pair in record.pairs if pair.second is not None]
    assert sorted(firsts) == list(range(len(left)))
    assert sorted(seconds) == list(range(len(right)))
    counts = {
        word: int(number.replace(",", ""))
        for number, word in re.findall(
            r"([\d,]+) (gone|new|changed|the same)", record.headline.rpartition(": ")[2]
        )
    }
    if counts:
        both = counts.get("changed", 0) + counts.get("the same", 0)
        assert counts["gone"] + both == len(left)
        assert counts["new"] + both == len(right)
    made: dict = {}  # which equation and result of the second goes with which
    for pair in record.pairs:
        if pair.first is None or pair.second is None:
            continue
        one, two = left[pair.first], right[pair.second]
        assert one.primitive.name == two.primitive.name
        differ = [
            n
            for n, (a, b) in enumerate(zip(types(one), types(two), strict=True))
            if a != b
        ]
        assert pair.results == differ
        made |= {id(b): id(a) for a, b in zip(one.outvars, two.outvars)}
    inputs = programs(case, "mapped")
    for a, b in zip(*(closed[1].jaxpr.invars for closed in inputs)):
        made[id(b)] = id(a)
    for pair in record.pairs:
        if pair.change != "same":
            continue
        one, two = left[pair.first], right[pair.second]
        assert len(one.invars) == len(two.invars)
        for a, b in zip(one.invars, two.invars):
            if isinstance(a, jax.extend.core.Literal):
                assert np.array_equal(a.val, b.val)
            elif id(b) in made:
                assert made[id(b)] == id(a)
