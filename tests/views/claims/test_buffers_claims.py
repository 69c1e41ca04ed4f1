"""What `see.memory(compiled=True)` claims, held against jax's own compiled programs."""

import math
import re

import jax
import numpy as np
import pytest

import minijax
import minijax_widgets as see
from minijax_lab.explain.tree import size_in_words
from tests.views.claims.forty import UNSEEN, title
from tests.views.claims.test_memory_claims import gradient

CLAIMS = [
    "The bands of arguments, temporaries and results are as high as they have bytes.",
    "So many bytes are in use at the peak.",
    "Where nothing is freed before the end, all that the program names is in use then.",
]
KINDS = ("argument", "temporaries", "result")


def bands(record):
    return {
        kind: sum(a.bytes for a in record.memory.allocations if a.kind == kind)
        for kind in KINDS
    }


@pytest.mark.parametrize("case", [c for c in UNSEEN if c.differentiable], ids=title)
def test_bands_and_peak(case):
    own = see.memory(gradient(case, minijax), *case.args, compiled=True).recording
    lowered = jax.jit(gradient(case, jax)).lower(*case.args)
    stats = lowered.compile().memory_analysis()
    assert bands(own) == {
        "argument": stats.argument_size_in_bytes,
        "temporaries": stats.temp_size_in_bytes,
        "result": stats.output_size_in_bytes,
    }
    # The same program as JAX lowers it has the same most in use.
    theirs = see.memory(lowered, compiled=True).recording
    most = max(theirs.memory.live())
    assert max(own.memory.live()) == most
    assert f"peak {size_in_words(most)} at " in own.headline


def changed(m, np_):
    """Programs that update in place, take slices behind a reshape, branch and loop."""
    ones = np.ones(4, np.float32)
    return {
        "set": lambda x: x.at[3].set(0.0),
        "add": lambda x: x.at[3:9].add(2.0),
        "update": lambda x: m.lax.dynamic_update_slice(x * 2.0, ones, (3,)),
        "slice": lambda x: x.reshape(8, 8)[2:5].reshape(-1) + 1.0,
        "loop": lambda x: m.lax.fori_loop(0, 5, lambda k, c: c.at[k].set(1.0), x),
        "branch": lambda x: m.lax.cond(x[0] > 0, np_.sin, lambda v: np_.sort(v) * 2, x),
        "while": lambda x: m.lax.while_loop(
            lambda c: c.sum() < 100, lambda c: c * 2.0, x
        ),
    }


@pytest.mark.parametrize("name", changed(minijax, minijax.numpy))
def test_programs_that_change_arrays(name):
    x = np.ones(64, np.float32)
    own = see.memory(changed(minijax, minijax.numpy)[name], x, compiled=True).recording
    compiled = jax.jit(changed(jax, jax.numpy)[name]).lower(x).compile()
    stats = compiled.memory_analysis()
    assert bands(own) == {
        "argument": stats.argument_size_in_bytes,
        "temporaries": stats.temp_size_in_bytes,
        "result": stats.output_size_in_bytes,
    }
    # XLA's own sums leave out constants, which the HLO writes down.
    text = compiled.as_text()
    numbers = re.findall(
        r" = (\w+)\[([\d,]*)\]\S* constant\(", text[text.index("ENTRY") :]
    )
    sizes = {"f32": 4, "s32": 4, "pred": 1, "s8": 1}
    constants = sum(
        sizes[kind] * math.prod(map(int, filter(None, axes.split(","))))
        for kind, axes in numbers
    )
    most = max(own.memory.live())
    named = sum(bands(own).values())
    assert most <= named + sum(
        each.bytes for each in own.memory.allocations if each.kind == "constant"
    )
    if not stats.temp_size_in_bytes:
        assert most == named + constants
