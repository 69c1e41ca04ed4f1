"""Exercises of chapter 21: other right answers, and plausible wrong ones."""

import pytest

import minijax
import minijax.numpy as jnp
from minijax.core.partial_eval import DynamicJaxprTrace
from tests.notebooks.judged import Answers, assert_refused, assert_taken
from tests.notebooks.test_exercises import EIGHT
from tests.notebooks.test_exercises import answers as solved

pytestmark = pytest.mark.skipif(EIGHT, reason="for one device")
ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


def batch(fit, out=lambda axes: 0):
    def rule(primitive, args, axes):
        size = next(x.shape[i] for x, i in zip(args, axes) if i is not None)
        fitted = [fit(x, axis, size) for x, axis in zip(args, axes)]
        return primitive.bind(*fitted), out(axes)

    return rule


def repeated(x, axis, size):
    return jnp.repeat(x[None], size, 0) if axis is None else jnp.moveaxis(x, axis, 0)


def transposed(x, axis, size):
    if axis is None:
        return jnp.broadcast_to(x, (size, *x.shape))
    return jnp.transpose(x, (axis, *(i for i in range(x.ndim) if i != axis)))


right("21.2", batch(repeated))
right("21.2", batch(transposed))
wrong("21.2", "vmap with in_axes=", batch(lambda x, axis, size: x))
wrong(
    "21.2", "vmap with in_axes=", batch(repeated, lambda axes: axes[0] or axes[1] or 0)
)
wrong("21.2", "", batch(repeated, lambda axes: 1))
wrong("21.2", "", batch(lambda x, axis, size: jnp.moveaxis(x, axis or 0, 0)))
wrong("21.2", "see what yours returns", batch(lambda x, axis, size: x[None]))
wrong("21.2", "", lambda primitive, args, axes: (jnp.multiply(*args), 0))

unwinds = solved("21")


def by_slices(a, y):
    return jnp.concatenate([y[..., :1], y[..., 1:] - a[..., 1:] * y[..., :-1]], -1)


def other_jvp(made, values, changes):
    (a, y), (da, dy) = values, changes
    ad = unwinds.ad
    out = made.bind(a, y)
    parts = [] if type(dy) is ad.Zero else [made.bind(a, dy)]
    if type(da) is not ad.Zero:
        parts.append(-da * unwinds.before(y))
    return out, sum(parts[1:], parts[0])


def other_transpose(c, a, y):
    ahead = jnp.concatenate([a[..., 1:] * c[..., 1:], jnp.zeros_like(c[..., :1])], -1)
    return [None, c - ahead]


right("21.3", unwinds.with_rules("unwind_a", other_jvp))
right("21.3", unwinds.with_rules("unwind_b", transpose=other_transpose))
wrong(
    "21.3",
    "its gradient for",
    unwinds.with_rules("w1", transpose=lambda c, a, y: (None, c)),
)
wrong("21.3", "", unwinds.with_rules("w2", transpose=lambda c, a, y: (c, None)))
wrong("21.3", "", unwinds.with_rules("w3", lambda p, v, t: (p.bind(*v), p.bind(*t))))
wrong("21.3", "", by_slices)


def counting(size, replaced=True, name=lambda p: p.name):
    def bytes_of(function, *args):
        made = {}

        class Mine(DynamicJaxprTrace):
            def process_primitive(self, primitive, args, params):
                out = super().process_primitive(primitive, args, params)
                results = out if primitive.multiple_results else [out]
                before = made.get(name(primitive), 0)
                made[name(primitive)] = before + size(results)
                return out

        kind = {"DynamicJaxprTrace": Mine}
        if not replaced:
            return bytes_by_default(function, *args)
        with minijax.replace(**kind):
            minijax.jit(function).trace(*args)
        return made

    return bytes_of


def bytes_by_default(function, *args):
    return unwinds.bytes_by_walking(function, *args)


def each(results):
    return sum(x.aval.size * x.aval.dtype.itemsize for x in results)


right("21.4", counting(each))
right("21.4", counting(each, name=lambda p: p))
wrong("21.4", "expected {", counting(lambda results: sum(x.aval.size for x in results)))
wrong("21.4", "expected {", counting(lambda results: each(results[:1])))
wrong("21.4", "expected {", counting(lambda results: 4 * results[0].aval.size))
wrong("21.4", "expected {", counting(lambda results: len(results)))
wrong("21.4", "minijax's own", counting(each, replaced=False))


def bytes_by_walking_later(function, *args):
    """Wrong: the class that takes the place counts nothing."""
    with minijax.replace(DynamicJaxprTrace=type("Empty", (DynamicJaxprTrace,), {})):
        return bytes_by_default(function, *args)


wrong("21.4", "Empty counts nothing", bytes_by_walking_later)


@pytest.mark.parametrize("name, made", ANSWERS.taken)
def test_a_right_answer_is_taken(name, made, capsys):
    assert_taken(name, made, lambda: capsys.readouterr().out)


@pytest.mark.parametrize("name, made, complaint", ANSWERS.refused)
def test_a_wrong_answer_is_refused(name, made, complaint, capsys):
    assert_refused(name, made, complaint, lambda: capsys.readouterr().out)
