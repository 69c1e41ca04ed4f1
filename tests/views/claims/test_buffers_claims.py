"""What `see.memory(compiled=True)` claims, held against jax's own compiled programs."""

import jax
import pytest

import minijax
import minijax_widgets as see
from minijax_lab.explain.tree import size_in_words
from tests.views.claims.forty import UNSEEN, title
from tests.views.claims.test_memory_claims import gradient

CLAIMS = [
    "The bands of arguments, temporaries and results are as high as they have bytes.",
    "So many bytes are in use at the peak.",
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
