"""Chapter 21: a solution of each exercise, and answers that must fail."""

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax.core.partial_eval import DynamicJaxprTrace
from minijax.extend.core import Primitive
from minijax.interpreters import ad, batching, mlir

ASKED = "none lowering jvp batch none batch jvp transpose".split()


def to_the_front(primitive, args, axes):
    """Both operands get their examples in front: moved there, or repeated."""
    (size, *_) = (x.shape[axis] for x, axis in zip(args, axes) if axis is not None)
    fitted = [
        jnp.broadcast_to(x, (size, *x.shape))
        if axis is None
        else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(args, axes)
    ]
    return primitive.bind(*fitted), 0


def as_they_come(primitive, args, axes):
    """Wrong: the axes may be in other places, or not there."""
    return primitive.bind(*args), 0


def one_by_one(primitive, args, axes):
    """Wrong: an equation for each example."""
    (size, *_) = (x.shape[axis] for x, axis in zip(args, axes) if axis is not None)
    rows = [
        primitive.bind(
            *(
                x if axis is None else jnp.take(x, i, axis)
                for x, axis in zip(args, axes)
            )
        )
        for i in range(size)
    ]
    return jnp.stack(rows), 0


def before(x):
    """x[t-1] at t, and 0 at the start."""
    return jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., :-1]], -1)


def after(x):
    """x[t+1] at t, and 0 at the end."""
    return jnp.concatenate([x[..., 1:], jnp.zeros_like(x[..., :1])], -1)


def unwind_type(a, y):
    if a.shape != y.shape or a.dtype != y.dtype:
        raise TypeError(f"unwind takes two arrays of one type, and got {a} and {y}")
    return y


def unwind_meaning(a, y):
    x = np.array(y)
    x[..., 1:] -= np.asarray(a)[..., 1:] * np.asarray(y)[..., :-1]
    return x


def unwind_plain(a, y):
    return y - a * before(y)


def unwind_jvp(made, values, changes):
    (a, y), (da, dy) = values, map(ad.instantiate_zeros, changes)
    return made.bind(a, y), made.bind(a, dy) - da * before(y)


def unwind_transpose(c, a, y):
    return None, c - after(a * c)


def with_rules(name, jvp=unwind_jvp, transpose=unwind_transpose, batch=to_the_front):
    """A primitive that means x[t] = y[t] - a[t] * y[t-1], with its six rules."""
    made = Primitive(name)
    made.def_abstract_eval(unwind_type)
    made.def_impl(unwind_meaning)
    mlir.register_lowering(made, mlir.lower_fun(unwind_plain, multiple_results=False))
    ad.primitive_jvps[made] = lambda values, changes: jvp(made, values, changes)
    ad.primitive_transposes[made] = transpose
    batching.primitive_batchers[made] = lambda args, axes: batch(made, args, axes)
    return made.bind


def not_a_primitive(a, y):
    """Wrong: the right numbers, and no primitive."""
    return unwind_plain(a, y)


def jvp_without_a(made, values, changes):
    """Wrong: as if only y moved."""
    return made.bind(*values), made.bind(values[0], ad.instantiate_zeros(changes[1]))


def transpose_in_place(c, a, y):
    """Wrong: the decay of step t, and not that of step t + 1."""
    return None, c - a * after(c)


class Counting(DynamicJaxprTrace):
    """Writes programs, and counts the bytes of what each primitive makes."""

    made: dict[str, int] = {}

    def process_primitive(self, primitive, args, params):
        out = super().process_primitive(primitive, args, params)
        for result in out if primitive.multiple_results else [out]:
            size = result.aval.size * result.aval.dtype.itemsize
            self.made[primitive.name] = self.made.get(primitive.name, 0) + size
        return out


def bytes_of(function, *args):
    """The bytes that each primitive of a function makes."""
    Counting.made = {}
    with minijax.replace(DynamicJaxprTrace=Counting):
        minijax.make_jaxpr(function)(*args)
    return Counting.made


def bytes_by_walking(function, *args):
    """Wrong: minijax's own trace wrote the program; it is only read."""
    found = {}
    for eqn in minijax.make_jaxpr(function)(*args).jaxpr.eqns:
        size = sum(v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars)
        found[eqn.primitive.name] = found.get(eqn.primitive.name, 0) + size
    return found


class Overwriting(DynamicJaxprTrace):
    """Wrong: the second equation of a primitive replaces the first."""

    made: dict[str, int] = {}

    def process_primitive(self, primitive, args, params):
        out = super().process_primitive(primitive, args, params)
        (first, *_) = out if primitive.multiple_results else [out]
        self.made[primitive.name] = first.aval.size * first.aval.dtype.itemsize
        return out


def bytes_overwritten(function, *args):
    """Wrong: see `Overwriting`."""
    Overwriting.made = {}
    with minijax.replace(DynamicJaxprTrace=Overwriting):
        minijax.make_jaxpr(function)(*args)
    return Overwriting.made


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "21.1": (
        "which transformation runs first? It asks for its own rule before any other.",
        "vmap and jvp replace an equation by others; what is left is computed, or "
        "compiled by jit.",
        'the table in "What asks for what" of this chapter.',
    ),
    "21.2": (
        "what does the primitive do with leading axes? Nothing: it goes along the last "
        "one.",
        "bring each operand's examples to axis 0, and repeat an operand without any.",
        "`recur_of_many` and `batched` in this chapter; `jnp.moveaxis` and "
        "`jnp.broadcast_to`.",
    ),
    "21.3": (
        "take the six cells of `recur`, one after the other, with other formulas.",
        "it is linear in y: its change goes the way of y. And y[t] is in x[t], and "
        "with the factor -a[t+1] in x[t+1].",
        "`change`, `pulled` and `batched` in this chapter.",
    ),
    "21.4": (
        "a subclass of DynamicJaxprTrace, with one method: `process_primitive`.",
        "call the parent's, look at `.aval` of each result, and add to a dict; a "
        "primitive with several results returns a list.",
        "`BoundsTrace` in this chapter, and `MyJaxprTrace` in chapter 02.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "21.1": lambda: (ASKED,),
    "21.2": lambda: (to_the_front,),
    "21.3": lambda: (with_rules("unwind"),),
    "21.4": lambda: (bytes_of,),
}
WRONG = {
    "21.1": [
        lambda: ("none meaning jvp batch none batch jvp transpose".split(),),
        lambda: ("none lowering jvp batch none lowering jvp transpose".split(),),
        lambda: ("none lowering jvp batch none batch jvp jvp".split(),),
        lambda: (["none"],),
    ],
    "21.2": [lambda: (as_they_come,), lambda: (one_by_one,)],
    "21.3": [
        lambda: (not_a_primitive,),
        lambda: (with_rules("frozen", jvp_without_a),),
        lambda: (with_rules("in_place", transpose=transpose_in_place),),
        lambda: (with_rules("unmoved", batch=as_they_come),),
        lambda: (with_rules("looping", batch=one_by_one),),
    ],
    "21.4": [lambda: (bytes_by_walking,), lambda: (bytes_overwritten,)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "21.1": ["look again at b", "look again at f", "look again at h", "list of 8"],
    "21.2": ["vmap with in_axes=(1, 1)", "the three examples take 3 equations"],
    "21.3": [
        "one equation with your primitive",
        "how it changes if a moves. At index 2: expected 0.77, got 0",
        "its gradient for x. At index 0: expected",
        "under vmap, in_axes (0, None)",
        "Under vmap of 4 examples there are 4 of its equations",
    ],
    "21.4": ["minijax's own DynamicJaxprTrace", "Of two sines: expected {"],
}
