"""Chapter 06: a solution of each exercise, and two answers that must fail."""

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import jvp, vmap
from minijax.core.autodiff import JVPTracer, apply_jvp, zero_tangent_of
from minijax.core.language import Trace, set_current_trace
from minijax.core.rules import Zero
from tiny.operations import primitive
from tiny.tangents import slopes
from tiny.trace import SHAPES, bind


def make_cube():
    """x * x * x, with a rule of its own: the slope times the tangent that comes in."""

    @minijax.custom_jvp
    def cube(x):
        return x * x * x

    @cube.defjvp
    def cube_rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return cube(x), 3.0 * x * x * t

    return (cube,)


def make_cube_of_unit():
    """Wrong, as in the exercise: the tangent that comes in is forgotten."""

    @minijax.custom_jvp
    def cube(x):
        return x * x * x

    @cube.defjvp
    def cube_rule(primals, tangents):
        (x,) = primals
        return cube(x), 3.0 * x * x

    return (cube,)


def plain_cube(x):
    """Wrong: right numbers, and no rule."""
    return x * x * x


def make_atan():
    """The inverse tangent: a meaning, a type and a row of TANGENTS."""
    primitive("atan", np.arctan, SHAPES["sin"])
    slopes("atan", lambda t, y, x: t / (1.0 + x * x))
    return (lambda x: bind("atan", x),)


def make_atan_upside_down():
    """Wrong: times what it should be divided by."""
    primitive("atan_up", np.arctan, SHAPES["sin"])
    slopes("atan_up", lambda t, y, x: t * (1.0 + x * x))
    return (lambda x: bind("atan_up", x),)


def make_atan_without_row():
    """Wrong: it has a meaning and a type, and no tangent."""
    primitive("atan_flat", np.arctan, SHAPES["sin"])
    return (lambda x: bind("atan_flat", x),)


def columns(f, x):
    """A jvp along each axis, by one vmap; the results are columns."""
    return vmap(lambda t: jvp(f, (x,), (t,))[1], out_axes=-1)(jnp.eye(len(x)))


def columns_as_rows(f, x):
    """Wrong: each change is a column, and stands in a row."""
    return vmap(lambda t: jvp(f, (x,), (t,))[1])(jnp.eye(len(x)))


class MyJVPTrace(Trace):
    """Forward mode: each operation on values becomes one on pairs."""

    def __init__(self, parent, tag):
        self.parent, self.tag, self.alive = parent, tag, True
        self.split = self.tangent_trace = parent

    def is_mine(self, value):
        return isinstance(value, JVPTracer) and value._trace is self

    def to_pair(self, value):
        if self.is_mine(value):
            return value.primal, value.tangent
        return value, zero_tangent_of(value)

    def primal_of(self, value):
        return value.primal if self.is_mine(value) else value

    def tracer(self, value, tangent):
        return value if isinstance(tangent, Zero) else JVPTracer(self, value, tangent)

    def process_primitive(self, primitive, args, params):
        pairs = [self.to_pair(arg) for arg in args]
        values = [value for value, _ in pairs]
        tangents = [tangent for _, tangent in pairs]
        with set_current_trace(self.parent):
            if all(isinstance(tangent, Zero) for tangent in tangents):
                return primitive.bind(*values, **params)
            out, change = apply_jvp(primitive, values, tangents, params)
        if primitive.multiple_results:
            return [self.tracer(x, t) for x, t in zip(out, change)]
        return self.tracer(out, change)


class OfFirstOperand(MyJVPTrace):
    """Wrong: only the first operand's tangent is handed on."""

    def process_primitive(self, primitive, args, params):
        rest = [self.primal_of(arg) for arg in args[1:]]
        return super().process_primitive(primitive, [*args[:1], *rest], params)


class UnderItself(MyJVPTrace):
    """Wrong: the parent is never in charge."""

    def process_primitive(self, primitive, args, params):
        values, tangents = zip(*map(self.to_pair, args))
        out, change = apply_jvp(primitive, values, tangents, params)
        return self.tracer(out, change)


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "06.1": (
        "at a tie of maximum half of the tangent goes to each side; a where follows "
        "one side.",
        "in c both entries tie, and both move; in d the second half is moved by -1, "
        "with a minus before it.",
        "the rule of `max_p` in minijax/primitives/elementwise/extrema.py.",
    ),
    "06.2": (
        "what is handed to the rule and never used?",
        "the tangent of the result is the slope times the tangent that comes in.",
        'the row `slopes("sin", ...)` in tiny/tangents.py.',
    ),
    "06.3": (
        '`primitive("atan", np.arctan, SHAPES["sin"])` gives a meaning and a type.',
        'slopes("atan", lambda t, y, x: ...) and a function that binds it.',
        'the row `slopes("log", ...)` in tiny/tangents.py.',
    ),
    "06.4": (
        "jnp.eye(n) has the n directions in its rows.",
        "vmap over the directions; out_axes says where their axis goes in the result.",
        "`slopes_one_by_one` in this chapter.",
    ),
    "06.5": (
        "`slopes` of tiny does the same: values, tangents, the rule, a pair.",
        "all binds stand in `with set_current_trace(self.parent):`; the trace in "
        "charge is asked for each. isinstance(tangent, Zero) finds what does not move.",
        "`JVPTrace.process_primitive` in minijax/core/autodiff.py.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "06.1": lambda: ([0.5, 0.0, 1.0, 1.0],),
    "06.2": make_cube,
    "06.3": make_atan,
    "06.4": lambda: (columns, 1_000_000),
    "06.5": lambda: (MyJVPTrace,),
}
WRONG = {
    "06.1": [lambda: ([1.0, 0.0, 1.0, 1.0],), lambda: ([0.5, 0.0, 1.0, 0.0],)],
    "06.2": [make_cube_of_unit, lambda: (plain_cube,)],
    "06.3": [make_atan_upside_down, make_atan_without_row],
    "06.4": [lambda: (columns_as_rows, 1_000_000), lambda: (columns, 1000)],
    "06.5": [lambda: (OfFirstOperand,), lambda: (UnderItself,)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "06.1": ["The tangent of a is not 1", "The tangent of d is not 0"],
    "06.2": ["with t = -3.0 the tangent is", "cube has no rule of its own"],
    "06.3": ["At index 3: expected 0.1, got 10.", "There is no row for atan_flat"],
    "06.4": ["The Jacobian of W @ x should be", "The largest array has 1,000,000"],
    "06.5": ["For 3.0 - x at x =", "is asked again for what it binds"],
}
