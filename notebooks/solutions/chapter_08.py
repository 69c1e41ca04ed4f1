"""Chapter 08: a solution of each exercise, and two answers that must fail."""

import minijax.numpy as jnp
from minijax import vmap
from minijax.core.batching import BatchTrace
from minijax.core.language import set_current_trace


def similarity(x, y):
    """For two rows; no axis of rows is mentioned."""
    return jnp.exp(-jnp.sum((x - y) ** 2))


def similarities(a, b):
    """Every row of `a` with every row of `b`."""
    return vmap(lambda x: vmap(lambda y: similarity(x, y))(b))(a)


def similarities_of_partners(a, b):
    """Wrong: row i with row i only."""
    return vmap(similarity)(a[:5], b[:5])


def similarities_by_a_loop(a, b):
    """Wrong: one vmap, and a loop in Python around it."""
    return jnp.stack([vmap(lambda y: similarity(x, y))(b) for x in a])  # noqa: B023


def matmul_rule(x, x_axis, y, y_axis):
    """One product whose letters say where the examples are."""
    x_letters, y_letters = list("ij"), list("jk")
    if x_axis is not None:
        x_letters.insert(x_axis, "n")
    if y_axis is not None:
        y_letters.insert(y_axis, "n")
    spelled = f"{''.join(x_letters)},{''.join(y_letters)}->nik"
    return jnp.einsum(spelled, x, y), 0


def matmul_rule_at_the_front(x, x_axis, y, y_axis):
    """Wrong: right only if the examples are in axis 0 of both."""
    return jnp.matmul(x, y), 0


def matmul_rule_by_vmap(x, x_axis, y, y_axis):
    """Wrong: right numbers, and the work is left to the rule that is to be written."""
    return vmap(jnp.matmul, (x_axis, y_axis))(x, y), 0


def columns(w, b, x):
    """Maps over the outputs: a row of `w` and an entry of `b` at a time."""
    return vmap(lambda row, shift: jnp.tanh(row @ x + shift))(w, b)


def columns_by_hand(w, b, x):
    """Wrong: an axis in the wrong place."""
    return jnp.tanh(x.mT @ w.mT + b)


def columns_with_transposes(w, b, x):
    """Wrong: the layer of the question."""
    return vmap(lambda x: jnp.tanh(w @ x + b), in_axes=1, out_axes=1)(x)


AXES = [
    ((0, None), 0),
    (1, 0),
    ((0, None), 0),
    ((0, None), 1),
    ((0, 1), 0),
    ((0, None), 0),
    ((0, None), 1),
    ((1, None), 2),
    (({"w": 0, "b": None}, None), 0),
    (0, (0, 1)),
]


class MyBatchTrace(BatchTrace):
    """Each operation on one example becomes one on all of them."""

    def process_primitive(self, primitive, args, params):
        values, axes = zip(*map(self.to_pair, args)) if args else ((), ())
        with set_current_trace(self.parent):
            if all(axis is None for axis in axes):
                return primitive.bind(*values, **params)
            out, axes = primitive.batch(self.axis_data, values, axes, **params)
        if primitive.multiple_results:
            return [self.tracer(one, axis) for one, axis in zip(out, axes)]
        return self.tracer(out, axes)


class AxisStays(MyBatchTrace):
    """Wrong: it takes axis 0 of each answer, wherever the rule says it is."""

    def tracer(self, value, axis):
        return super().tracer(value, axis if axis is None else 0)


class OfMinijax(BatchTrace):
    """Wrong: it leaves the work to minijax's own."""

    def process_primitive(self, primitive, args, params):
        return super().process_primitive(primitive, args, params)


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "08.1": (
        "a product keeps the axes of its first operand, then those of its second.",
        "in e the new axis of stack comes at 0 of one example; what is then at 0 of "
        "the batch?",
        "see.vmap(f, X) of each.",
    ),
    "08.2": (
        "write it for one row x and one row y first.",
        "one vmap over the rows of B, and one more over those of A.",
        'the section "in_axes and out_axes" of this chapter.',
    ),
    "08.3": (
        "einsum names axes by letters: which letter is the examples'?",
        "put the letter n where the axis is, and begin the result with it.",
        "`dot_of_many` in this chapter.",
    ),
    "08.4": (
        "each output of the layer is a function of one row of W and one entry of b.",
        "map over W and b with in_axes 0, and leave X alone.",
        "the view of `predict_quietly`: which rule inserted the transpose, and why?",
    ),
    "08.5": (
        "which axis of each argument has as many entries as there are examples?",
        "in_axes takes away an axis, out_axes puts it into the result; the other axes "
        "keep their order.",
        "`vmap(scaled, in_axes=(0, None), out_axes=1)` in this chapter.",
    ),
    "08.6": (
        "it is the way of exercise 06.5: take the operands apart, let the parent be in "
        "charge, ask the rule, put the answer together.",
        "a rule returns two things: the answer for all examples, and its axis; for a "
        "primitive with several results both are lists.",
        "BatchTrace.process_primitive in minijax/core/batching.py.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "08.1": lambda: ([1, 0, 0, 0, 1],),
    "08.2": lambda: (similarities,),
    "08.3": lambda: (matmul_rule,),
    "08.4": lambda: (columns,),
    "08.5": lambda: (AXES,),
    "08.6": lambda: (MyBatchTrace,),
}
WRONG = {
    "08.1": [lambda: ([0, 0, 0, 0, 0],), lambda: ([1, 0],)],
    "08.2": [lambda: (similarities_of_partners,), lambda: (similarities_by_a_loop,)],
    "08.3": [lambda: (matmul_rule_at_the_front,), lambda: (matmul_rule_by_vmap,)],
    "08.4": [lambda: (columns_by_hand,), lambda: (columns_with_transposes,)],
    "08.5": [lambda: ([(0, 0)] * 10,), lambda: ([*AXES[:3], AXES[2], *AXES[4:]],)],
    "08.6": [lambda: (AxisStays,), lambda: (OfMinijax,)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "08.1": ["look again at a", "a list of 5 numbers"],
    "08.2": ["its shape is (5,)", "equations"],
    "08.3": ["It raised TypeError", "a vmap runs in it"],
    "08.4": ["Its shape is (16, 4)", "shows a transpose"],
    "08.5": ["Puzzle 1: ", "Puzzle 4: Its shape is (3, 4), not (4, 3)"],
    "08.6": ["axis 0 of float32[3,4] is not", "minijax's own process_primitive"],
}
