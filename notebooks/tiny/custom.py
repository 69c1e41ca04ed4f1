"""tiny, a toy over NumPy. This piece: derivatives of one's own, and computing twice."""

from tiny.batching import BATCHING, Batched, move, size_of, vmap
from tiny.linearize import tracers_outside
from tiny.loop_rules import change, many, moving
from tiny.operations import primitive
from tiny.tangents import TANGENTS, Dual
from tiny.trace import AGAIN, bind, evaluate, trace, type_of
from tiny.transposes import TRANSPOSES, backward, unknown, with_known
from tiny.tree import flatten, unflatten


def remat(function):
    """The same function, of which the way back keeps the arguments alone."""

    def again(*args):
        body = trace(function, *args)
        found = tracers_outside(body)
        body.inputs = found + body.inputs
        return unflatten(body.tree, bind("remat", *found, *flatten(args)[0], body=body))

    return again


def remat_change(*duals, body):
    values, tangents = moving(duals)
    results = bind("remat", *values, body=body)
    return [*map(Dual, results, remat(change(body))(values, tangents))]


def remat_back(cotangents, *operands, body):
    found = iter(backward(with_known(body, operands), cotangents))
    return [next(found) if unknown(o) else None for o in operands]


def remat_of_many(*operands, body):
    of_many = many(body, size_of(*operands), [x.axis for x in operands])
    return [Batched(x, 0) for x in remat(of_many)(*(x.value for x in operands))]


def results_of(*operands, body, **params):
    return [type_of(output) for output in body.outputs]


primitive("remat", lambda *xs, body: evaluate(body, AGAIN, xs), results_of)
TANGENTS["remat"] = remat_change
TRANSPOSES["remat"] = remat_back
BATCHING["remat"] = remat_of_many


def custom_vjp(function, forward, back):
    """`function`, whose way back is `back(residuals, cotangent)`.

    `forward(*args)` gives the value and the residuals; `back` gives a cotangent for
    each argument.
    """

    def call(*args):
        leaves, structure = flatten(args)
        body = trace(function, *args)
        if tracers_outside(body):
            raise TypeError(
                "a custom_vjp function gets all that is traced as arguments"
            )

        def flat_forward(*leaves):
            value, residuals = forward(*unflatten(structure, leaves))
            return flatten(value)[0], residuals

        def flat_back(residuals, cotangents):
            return flatten(tuple(back(residuals, unflatten(body.tree, cotangents))))[0]

        params = dict(body=body, forward=flat_forward, back=flat_back)
        return unflatten(body.tree, bind("custom_vjp", *leaves, **params))

    return call


def custom_change(*duals, body, forward, back):
    values, tangents = moving(duals)
    results, residuals = forward(*values)
    kept, structure = flatten(residuals)
    params = dict(body=body, back=back, structure=structure, count=len(kept))
    return [*map(Dual, results, bind("custom_change", *kept, *tangents, **params))]


def no_forward_mode(*operands, **params):
    raise TypeError("a custom_vjp function has a way back, and no forward mode")


def custom_back(cotangents, *operands, body, back, structure, count):
    residuals = unflatten(structure, operands[:count])
    return [None] * count + back(residuals, cotangents)


def custom_of_many(*operands, body, forward, back):
    """Rules for one example, batched; an argument that all share gets their sum."""
    axes = tuple(x.axis for x in operands)
    values = [x.value for x in operands]

    def back_of_many(residuals, cotangents):
        found = vmap(back)(residuals, cotangents)
        shared = [bind("reduce_sum", c, axes=(0,)) for c in found]
        own = [move(c, 0, axis or 0) for c, axis in zip(found, axes)]
        return [s if a is None else c for s, c, a in zip(shared, own, axes)]

    size = size_of(*operands)
    of_many = trace(many(body, size, axes), *values)
    results = bind(
        "custom_vjp",
        *values,
        body=of_many,
        forward=vmap(forward, axes),
        back=back_of_many,
    )
    return [Batched(x, 0) for x in results]


primitive("custom_vjp", lambda *xs, body, **_: evaluate(body, AGAIN, xs), results_of)
primitive("custom_change", no_forward_mode, results_of)
TANGENTS["custom_vjp"] = custom_change
TRANSPOSES["custom_change"] = custom_back
BATCHING["custom_vjp"] = custom_of_many
