"""The sentences of `see.vmap`, primitive by primitive: each is parsed and held.

Every primitive that has an example is batched, at each place that the axis may have and
with some of its arguments left as they are. Where the axis is, is found by changing one
example and looking which numbers differ; then each sentence is read, and must be true
of these axes. A sentence that no reader knows is an error.
"""

import functools
import itertools
import re

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import lax
from minijax.core.language import Literal, all_primitives
from minijax.primitives.random.threefry import threefry2x32_p
from minijax_lab.explain.batch_reasons import NO_RESULT, SAME, rule_of
from minijax_lab.explain.cards import example_of

SIZE = 3
# Keys, tokens and refs have no numbers to change; collectives need an axis.
WITHOUT = {"random_seed", "random_wrap", "random_unwrap", "random_clone"}
WITHOUT |= {"random_split", "random_fold_in", "random_bits", "random_gamma"}


def numbers(text: str) -> set[int]:
    return {int(found) for found in re.findall(r"\d+", text)}


def places(text: str, rank: int) -> set[int]:
    """The axes that `first`, `last`, `at axis 2` and `axis 2` name."""
    found = numbers(text)
    found |= {0} if "first" in text else set()
    return found | ({rank - 1} if "last" in text else set())


X, M = np.float32([0.2, 0.5, 0.9]), np.ones((3, 2), np.float32)
WORDS = np.arange(3, dtype=np.uint32)
# Beside the examples of the cards; `i` is the name of the batch axis.
MORE = {
    "all_gather": (lambda x: lax.all_gather(x, "i"), (X,)),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0), (M,)),
    "axis_index": (lambda x: x * lax.axis_index("i"), (X,)),
    "debug_print": (lambda x: minijax.debug.print("{}", x) or x * 2.0, (X,)),
    "device_put": (lambda x: minijax.device_put(x) * 2.0, (X,)),
    "pmax": (lambda x: lax.pmax(x, "i"), (X,)),
    "pmin": (lambda x: lax.pmin(x, "i"), (X,)),
    "ppermute": (lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), (X,)),
    "psum": (lambda x: lax.psum(x, "i"), (X,)),
    "psum of two": (lambda x, y: x - lax.psum(y, "i"), (X, X)),
    "reduce_scatter": (lambda x: lax.psum_scatter(x, "i"), (M,)),
    "scan over a batch": (
        lambda c, xs: lax.scan(lambda c, x: (c * x, c + x), c, xs),
        (np.float32(2), X),
    ),
    "switch": (
        lambda i, x: lax.switch(i, [jnp.sin, lambda y: y * y, jnp.cos], x),
        (np.int32(1), X),
    ),
    "threefry2x32": (
        lambda a, b: threefry2x32_p.bind(a[0], a[1], b, b)[0],
        (WORDS, WORDS),
    ),
    "while until": (
        lambda x: lax.while_loop(lambda v: v < 3.0, lambda v: v * 1.5, x),
        (np.float32(0.7),),
    ),
    "while beside": (
        lambda n, x: lax.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2.0), (0, x)
        ),
        (np.int32(3), X),
    ),
}


EXCHANGING = {"all_gather", "all_to_all", "pmax", "pmin", "ppermute", "psum"}
EXCHANGING |= {"reduce_scatter", "debug_print"}  # the latter prints one by one


def given_for(name: str):
    found = MORE[name] if name in MORE else example_of(name)
    return found if found is not None and found[1] else None


def examples() -> list[str]:
    """The primitives with a rule and an example; the others are listed by a test."""
    return [
        name
        for name in sorted({*all_primitives, *MORE} - WITHOUT)
        if name in MORE or (rule_of(all_primitives[name])[0] and given_for(name))
    ]


def test_few_primitives_have_no_example():
    ruled = {name for name in all_primitives if rule_of(all_primitives[name])[0]}
    # These are there once their modules are imported.
    imported = {
        "check",
        "inspect_sharding",
        "layout_constraint",
        "multiple_of",
        "pallas_call",
        "reciprocal",
    }
    left = ruled - WITHOUT - {*examples()} - imported
    assert left == {
        *("broadcast_to", "custom_lin", "dce_sink", "debug_callback", "eq_to"),
        *("ffi_call", "free_ref", "io_callback", "le_to", "lt_to", "pbroadcast"),
        *(
            "all_gather_invariant",
            "all_gather_reduced",
            "preduced",
            "psum_invariant",
            "pvary",
            "reduced_vary_cast_p",
            "reshard",
            "shard_map",
            "sharding_constraint",
            "unreduced_psum",
            "unreduced_reduce_scatter",
            "vary_unreduced_cast_p",
        ),
        *("remat_opt", "rng_bit_generator", "stage"),
    }


def batches(args):
    """Each choice of axes for the arguments, not all of them None."""
    ways = [[None, *range(min(np.ndim(arg), 2) + 1)] for arg in args]
    for axes in itertools.product(*ways):
        if any(axis is not None for axis in axes):
            yield axes


def batched(args, axes):
    stacks = []
    for arg, axis in zip(args, axes):
        arg = np.asarray(arg)
        stacks.append(arg if axis is None else np.stack([arg] * SIZE, axis))
    return stacks


def axes_by_change(function, many, axes):
    """For each result of the batched program: the places where numbers differ."""
    closed = minijax.make_jaxpr(minijax.vmap(function, axes, axis_name="i"))(*many)
    runs = []
    for number in range(2):
        env = dict(zip(closed.jaxpr.constvars, closed.consts))
        for var, value, axis in zip(closed.jaxpr.invars, many, axes):
            value = np.array(value)
            if number and axis is not None:
                one = np.moveaxis(value, axis, 0)[1:2]
                one[...] = ~one if value.dtype == bool else one // 2 + 1
                if value.dtype.kind == "f":
                    one[...] = one * 0.9 + 0.05
            env[var] = value
        found = []
        for eqn in closed.eqns:
            read = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
            out = eqn.primitive.rebind(read, eqn.params)
            out = list(out) if eqn.primitive.multiple_results else [out]
            env.update(zip(eqn.outvars, out))
            # A ref has no numbers of its own.
            arrays = [None if is_ref(value) else np.asarray(value) for value in out]
            found.append(arrays)
        runs.append(found)
    return runs


def is_ref(value) -> bool:
    return type(value).__name__ == "Ref"


def of(values) -> set[int]:
    return {value.batch for value in values if value.batch is not None}


def check_work(row, eqn, said: str) -> None:
    """Holds a sentence about the equation that does the work."""
    into, out = of(eqn.operands), of(eqn.results)
    rank = len(eqn.results[0].shape) if eqn.results else 0
    own = row.primitive.partition("[")[0].partition(" ")[0]
    if said == NO_RESULT:
        assert not eqn.results
    elif said == SAME:
        assert not into and not out
    elif "same for all examples" in said and said.startswith("what comes out"):
        assert not out
    elif said.startswith("entry by entry: the axis stays"):
        assert into == out == numbers(said) and not row.inserted
    elif said.startswith("entry by entry, now that"):
        assert row.inserted and into == out == numbers(said)
    elif said.startswith("other axes are reduced: the axis stays"):
        assert into == out == numbers(said)
        assert len(eqn.results[0].shape) < len(eqn.operands[0].shape)
    elif found := re.fullmatch(r"other axes .*: axis (\d) is now axis (\d)", said):
        assert (into, out) == ({int(found[1])}, {int(found[2])})
    elif said.startswith("both operands have the axis"):
        assert [v.batch is not None for v in eqn.operands[:2]] == [True, True]
        assert out == {0} and eqn.primitive == "dot_general"
    elif said.startswith("dot_general puts the free axes"):
        second = "of its second operand last" in said
        assert [v.batch is not None for v in eqn.operands] == [not second, second]
        assert out == places(said.partition(":")[2], -1)
    elif found := re.fullmatch(r"the rule of (\S+) leaves the axis .*, (.*)", said):
        assert found[1] == own and into == out == numbers(found[2])
    elif found := re.fullmatch(r"the rule of (\S+) brings the axis (.*) to (.*)", said):
        before = of(row_operands(row, eqn))
        assert numbers(found[3]) == out and numbers(found[2]) <= before | into
    elif found := re.match(r"in place of (\S+), its rule wrote these(?:: (.*))?", said):
        assert all(one.primitive.partition("[")[0] != own for one in row.batched)
        assert not found[2] or numbers(found[2]) == out
    elif found := re.fullmatch(
        r"every example gets its own .*: the axis is (.*)", said
    ):
        assert out == places(found[1], rank)
    elif "works on the examples merged with another axis" in said:
        assert any(not value.followed for value in eqn.results)
        after = [one.primitive for one in row.batched[row.batched.index(eqn) :]]
        assert "reshape" in after
    elif "calls a program" in said:
        assert into
    elif found := re.match(r"the axis of (\S+) is the batch axis itself", said):
        assert found[1] == own and not out
    elif said.startswith("each example gets its own number"):
        assert eqn.primitive == "iota" and out == {0}
    elif said.startswith("one loop for all examples"):
        assert own == "scan" and into <= {0, 1}
    elif said.startswith(("each example starts at", "all examples start at")):
        wanted = "gather" if "gather" in said else "scatter"
        assert any(wanted in one.primitive for one in row.batched)
        # The operands of the examples are floats, their indices are integers.
        starts = [v for v in row_operands(row, eqn) if v.type.startswith("i32")]
        assert said.startswith("each") == bool(of(starts))
    elif said.startswith("the predicate is the same for all examples"):
        assert own in ("cond", "while") and eqn.primitive == own
    elif said.startswith("each example has its own predicate"):
        assert own in ("cond", "while")
        assert row.grid is not None or eqn.primitive == "while"
    elif own == "cond" and row.grid is not None:
        assert re.match(r"branch \d|for each example|which examples|examples", said)
    else:
        raise AssertionError(f"no reader for the sentence: {said}")


def row_operands(row, eqn):
    """What the row's equations read, before anything was moved."""
    made = {value.name for one in row.batched for value in one.results}
    return [v for one in row.batched for v in one.operands if v.name not in made]


def check_inserted(row, eqn, said: str) -> None:
    """Holds a sentence about an equation that a rule inserted."""
    if not eqn.results:  # one of several that print
        assert said.startswith("inserted by the rule of ")
        return
    first, result = eqn.operands[0] if eqn.operands else None, eqn.results[0]
    rank = len(result.shape)
    if found := re.fullmatch(r"inserted: \S+ wants the axis of all .* (\S+.*)", said):
        assert places(said.rpartition("operands ")[2], rank) == of(eqn.results)
        assert of(eqn.operands) != of(eqn.results)
    elif found := re.fullmatch(r"inserted: .+ wants the axis (.*), it was (.*)", said):
        assert places(found[1], rank) == {result.batch}
        assert places(found[2], rank) == {first.batch}
    elif "sides of 1, so that" in said:
        assert rank > len(first.shape) and first.batch is not None
        assert np.prod(result.shape) == np.prod(first.shape)
    elif "a side of 1, repeated by" in said:
        assert first.batch is None and result.batch is None
        assert np.prod(result.shape) == np.prod(first.shape)
        # What repeats it reads it, and is the primitive itself.
        own = row.primitive.partition("[")[0]
        work = [one for one in row.batched if one.primitive.startswith(own)]
        assert any(v.name == result.name for one in work for v in one.operands)
    elif found := re.fullmatch(r"inserted: .* wants it (.*) times", said):
        assert first.batch is None
        times = np.prod([int(n) for n in found[1].split(" x ")])
        assert np.prod(result.shape) == times * np.prod(first.shape)
    else:
        assert said.startswith("inserted by the rule of ") and said[-1] != " ", said


@pytest.mark.parametrize("name", examples())
def test_sentences(name):
    function, args = given_for(name)
    vmap = functools.partial(minijax.vmap, axis_name="i")
    ran = 0
    for axes in batches(args):
        many = batched(args, axes)
        try:
            minijax.eval_shape(vmap(function, axes), *many)
        except NotImplementedError:
            continue
        ran += 1
        record = see.vmap(function, *many, in_axes=axes, axis_name="i").recording
        runs = axes_by_change(function, many, axes)
        shown = [
            eqn for row in record.rows if row.parent is None for eqn in row.batched
        ]
        assert of(record.results) <= {0}
        # Else a jitted function was opened, or examples see each other's numbers.
        if len(shown) == len(runs[0]) and name.split()[0] not in EXCHANGING:
            for eqn, one, two in zip(shown, *runs):
                for value, a, b in zip(eqn.results, one, two):
                    if a is None or not value.followed or a.dtype.kind not in "fciub":
                        continue
                    differs = (a != b) & ~((a != a) & (b != b))
                    if value.batch is not None:
                        differs = np.delete(differs, 1, value.batch)
                    assert not differs.any(), (axes, eqn.text, value.name)
        for row in record.rows:
            if not row.batched and row.kind == "equation":
                assert row.why == SAME or row.why.startswith("no equation is needed")
            for eqn in row.batched:
                if eqn.inserted and row.grid is None:
                    check_inserted(row, eqn, eqn.why)
                elif not eqn.inserted:
                    check_work(row, eqn, eqn.why)
    assert ran
