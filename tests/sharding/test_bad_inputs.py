"""Wrong inputs over meshes: refused as in JAX, with the same class and a sentence."""

import pytest

from tests.sharding import bad_inputs
from tests.sharding.both import results_of
from tests.sharding.test_automatic import compare

# In a process of its own each; the first runs in `make test`.
PARTS = 12

# Classes that JAX raises by accident: a sentence of another class is better.
ACCIDENTS = {"AssertionError", "KeyError", "AttributeError", "IndexError"}
ACCIDENTS |= {"JaxRuntimeError", "RuntimeError"}
SENTENCES = {"ValueError", "TypeError", "NameError", "NotImplementedError"}
SENTENCES |= {"IndexError", "ShardingTypeError"}

REFUSED_HERE = {
    "JAX leaves out arguments that are not used": ("jax.jit(lambda a, b: a)(at(",),
    "sizes and names do not fit": ("AbstractMesh((4,), ('a', 'b'))",),
    "an axis 0 is not there": ("P(0)",),
    "entries beyond the dimensions": ("P('x', 'y', None)",),
    "reduced types are not supported": ("P(reduced=",),
    "arguments of a jitted function are on its mesh": ("jax.jit(lambda a: a)(jax.dev",),
    "indices are integers": ("pshuffle(a, 'x', [0.0",),
    "the dimension has not the size of the axis": ("scatter_dimension=0), axis_name",),
    "sizes are integers": ("make_mesh('8'", "make_mesh((8.0,)"),
}
OTHER_CLASS = {
    "unreduced and reduced types are not supported": ("reduced",),
    "values are laid out in the order of the table": ("e.at[0].set(f[0])",),
    "vmap finds it where they meet": ("jax.vmap(lambda a, b: a + b)(e, jax.sharding",),
    "an axis that is not there": ("'z'",),
    "arguments of jit that JAX has deprecated": ("backend='moon'",),
    "by their types first": ("jax.pmap(lambda a: a)('text')",),
    "one mesh axis twice": ("in_specs=P(('x', 'x'))",),
    "groups": ("axis_index_groups",),
    "JAX has no such program for a CPU": ("pbroadcast",),
    "text in place of pairs": ("'ab'",),
}
OTHER_RESULT = {"JAX counts -1 without the mapped axis": ("out_axes=-1",)}


def _listed(name: str, table: dict) -> bool:
    return any(part in name for parts in table.values() for part in parts)


def _check(results: dict, name: str) -> None:
    ours, theirs = results[name]["minijax"], results[name]["jax"]
    if not isinstance(theirs, dict):
        if isinstance(ours, dict):
            assert _listed(name, REFUSED_HERE), ours["trace"]
        elif not _listed(name, OTHER_RESULT):
            compare(ours, theirs)
        return
    if not isinstance(ours, dict):
        raise AssertionError(f"accepted; jax: {theirs['message']}")
    wanted, found = theirs["error"], ours["error"]
    if wanted[0] not in found and found[0] not in wanted:
        as_well = wanted[0] in ACCIDENTS and SENTENCES & {*found}
        assert as_well or _listed(name, OTHER_CLASS), ours["trace"]
    assert len(ours["message"].split()) > 3 or "has no attribute" in ours["message"]


@pytest.mark.parametrize(
    "part",
    [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, PARTS))],
)
def test_as_in_jax(part: int) -> None:
    results = results_of("bad_inputs", [*bad_inputs.CASES][part::PARTS])
    failed = {}
    for name in results:
        try:
            _check(results, name)
        except AssertionError as error:
            failed[name] = str(error)[-600:]
    assert not failed, "\n".join(f"{name}\n{text}\n" for name, text in failed.items())


def test_the_tables_are_large() -> None:
    assert len(bad_inputs.CASES) > 900
