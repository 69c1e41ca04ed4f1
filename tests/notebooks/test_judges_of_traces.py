"""Exercises 06.5 and 08.6, a trace of one's own: other right ones, and wrong ones."""

import pytest

import minijax.numpy as jnp
from minijax.core.autodiff import JVPTrace, JVPTracer, apply_jvp
from minijax.core.batching import BatchTrace
from minijax.core.language import eval_trace, set_current_trace
from minijax.core.rules import Zero, instantiate, zero_tangent_of
from tests.notebooks.judged import Answers, assert_refused, assert_taken
from tests.notebooks.test_exercises import EIGHT, answers

pytestmark = pytest.mark.skipif(EIGHT, reason="for one device")
ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong

# 06.5: a trace of one's own.
Given = answers("06").MyJVPTrace


def trace_by(process_primitive):
    return type("MyJVPTrace", (Given,), {"process_primitive": process_primitive})


def pairs_of(self, args):
    return [list(part) for part in zip(*map(self.to_pair, args))] or [[], []]


def by_indices(self, primitive, args, params):
    values, tangents = pairs_of(self, args)
    moves = [i for i, t in enumerate(tangents) if type(t) is not Zero]
    with set_current_trace(self.parent):
        if moves:
            out = apply_jvp(primitive, values, tangents, params)
        else:
            out = primitive.bind(*values, **params), None
    if not moves:
        return out[0]
    several = primitive.multiple_results
    return [*map(self.tracer, *out)] if several else self.tracer(*out)


def plain_first(self, primitive, args, params):
    """Who has no tracer of this trace among the operands leaves it to the parent."""
    if not any(map(self.is_mine, args)):
        return self.parent.process_primitive(primitive, args, params)
    with set_current_trace(self.parent):
        out = apply_jvp(primitive, *pairs_of(self, args), params)
    if primitive.multiple_results:
        return tuple(self.tracer(*pair) for pair in zip(*out))
    return self.tracer(*out)


def slip(
    change=lambda self, values, tangents: (values, tangents),
    plain=True,
    parent=lambda self: self.parent,
    pack=lambda self, primitive, out: (
        [*map(self.tracer, *out)] if primitive.multiple_results else self.tracer(*out)
    ),
):
    """A trace that is right but for one thing."""

    def process_primitive(self, primitive, args, params):
        values, tangents = change(self, *pairs_of(self, args))
        with set_current_trace(parent(self)):
            if plain and all(isinstance(t, Zero) for t in tangents):
                return primitive.bind(*values, **params)
            return pack(self, primitive, apply_jvp(primitive, values, tangents, params))

    return trace_by(process_primitive)


def instantiated(self, values, tangents):
    return values, [instantiate(t) for t in tangents]


def second_stays(self, values, tangents):
    return values, tangents[:1] + [zero_tangent_of(v) for v in values[1:]]


def all_values(self, values, tangents):
    """Takes the pairs of an outer trace apart, too."""
    return [v.primal if isinstance(v, JVPTracer) else v for v in values], tangents


def value_twice(self, primitive, out):
    if primitive.multiple_results:
        return [self.tracer(x, x) for x in out[0]]
    return self.tracer(out[0], out[0])


def without_change(self, primitive, out):
    """A list of answers goes back as it is."""
    return out[0] if primitive.multiple_results else self.tracer(*out)


right("06.5", slip())
right("06.5", trace_by(by_indices))
right("06.5", trace_by(plain_first))
wrong(
    "06.5", "nothing for sin, and should return one result", trace_by(lambda *_: None)
)
wrong("06.5", "are enough", slip(instantiated))
wrong("06.5", "For x * jnp.arange(3.0): It raised", slip(plain=False))
wrong("06.5", "For 3.0 - x at", slip(second_stays))
wrong("06.5", "For jnp.sin(x) at", slip(pack=value_twice))
wrong("06.5", "For jnp.stack(jnp.split(x, 3)) at", slip(pack=without_change))
wrong("06.5", "given a list", slip(pack=lambda self, _, out: self.tracer(*out)))
wrong("06.5", "a tuple for sin, and", slip(pack=lambda self, _, out: out))
wrong("06.5", "For jvp(jnp.sin, (x,), (x,))[1] at x", slip(all_values))
wrong("06.5", "The parent, and no other", slip(parent=lambda self: eval_trace))
wrong("06.5", "without end", slip(parent=lambda self: self))
wrong("06.5", "minijax's own process_primitive", JVPTrace)
wrong("06.5", "takes a class, and got", Given.process_primitive)


# 08.6: another trace of one's own.
GivenMany = answers("08").MyBatchTrace


def batches(process_primitive):
    made = {"process_primitive": process_primitive}
    return type("MyBatchTrace", (BatchTrace,), made)


def axes_found_first(self, primitive, args, params):
    """Asks who has an axis before anything else."""
    mine = [self.to_pair(arg)[1] is not None for arg in args]
    if not any(mine):
        return self.parent.process_primitive(primitive, args, params)
    values = [arg.value if has else arg for arg, has in zip(args, mine)]
    axes = [arg.batch_dim if has else None for arg, has in zip(args, mine)]
    with set_current_trace(self.parent):
        found = primitive.batch(self.axis_data, values, axes, **params)
    if not primitive.multiple_results:
        return self.tracer(*found)
    return tuple(self.tracer(*pair) for pair in zip(*found))


def batch_slip(
    plain=True,
    parent=lambda self: self.parent,
    change=lambda values, axes: (values, axes),
    pack=lambda self, primitive, out, axes: (
        [*map(self.tracer, out, axes)]
        if primitive.multiple_results
        else self.tracer(out, axes)
    ),
):
    """A trace that is right but for one thing."""

    def process_primitive(self, primitive, args, params):
        pairs = [self.to_pair(arg) for arg in args]
        with set_current_trace(parent(self)):
            values, axes = change([v for v, _ in pairs], [axis for _, axis in pairs])
            if plain and axes.count(None) == len(axes):
                return primitive.bind(*values, **params)
            found = primitive.batch(self.axis_data, values, axes, **params)
            return pack(self, primitive, *found)

    return batches(process_primitive)


def spread(values, axes):
    """Every operand gets the examples, needed or not."""
    size = next((v.shape[i] for v, i in zip(values, axes) if i is not None), 4)
    pairs = [
        (jnp.broadcast_to(v, (size, *jnp.shape(v))), 0) if i is None else (v, i)
        for v, i in zip(values, axes)
    ]
    return [v for v, _ in pairs], [i for _, i in pairs]


def everything(values, axes):
    """Takes the tracers of an outer vmap apart, too."""
    return [getattr(v, "value", v) for v in values], axes


right("08.6", batches(axes_found_first))
right("08.6", batch_slip())
wrong("08.6", "nothing for sin", batches(lambda *_: None))
wrong("08.6", "are enough", batch_slip(change=spread))
wrong("08.6", "given a list", batch_slip(pack=lambda self, _, *out: self.tracer(*out)))
wrong("08.6", "a tuple for sin", batch_slip(pack=lambda self, _, *out: out))
wrong("08.6", "without end", batch_slip(parent=lambda self: self))
wrong("08.6", "The parent, and no other", batch_slip(parent=lambda self: eval_trace))
wrong("08.6", "For x * z", batch_slip(change=lambda values, axes: (values, axes[::-1])))
wrong("08.6", "minijax's own process_primitive", BatchTrace)
wrong("08.6", "takes a class, and got", GivenMany.process_primitive)


@pytest.mark.parametrize("name, made", ANSWERS.taken)
def test_another_trace_is_taken(name, made, capsys):
    assert_taken(name, made, lambda: capsys.readouterr().out)


@pytest.mark.parametrize("name, made, complaint", ANSWERS.refused)
def test_a_wrong_trace_is_refused(name, made, complaint, capsys):
    assert_refused(name, made, complaint, lambda: capsys.readouterr().out)
