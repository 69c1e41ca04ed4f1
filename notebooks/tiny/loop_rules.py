"""tiny, a toy over NumPy. This piece: grad and vmap of a branch and a loop."""

from tiny.batching import BATCHING, Batched, Many, move, size_of, to_front
from tiny.linearize import linearize, tracers_outside
from tiny.loops import cond, scan
from tiny.tangents import TANGENTS, Dual, tangent_of
from tiny.trace import AGAIN, bind, evaluate, trace, type_of
from tiny.transposes import TRANSPOSES, backward, unknown, with_known


def change(body):
    """The tangents of a body's results, given its operands and their tangents."""

    def of(values, tangents):
        results = evaluate(body, TANGENTS, map(Dual, values, tangents), outside=Dual)
        return [tangent_of(dual) for dual in results]

    return of


def moving(duals):
    """The values, and the tangents with zeros written out."""
    return [dual.value for dual in duals], [tangent_of(dual) for dual in duals]


def cond_change(pred, *duals, branches):
    no, yes = branches
    values, tangents = moving(duals)
    results = bind("cond", pred.value, *values, branches=branches)
    changes = cond(pred.value, change(yes), change(no), values, tangents)
    return [*map(Dual, results, changes)]


def cond_back(cotangents, pred, *operands, branches):
    no, yes = branches

    def back(body):
        def of(known, cotangents):
            rest = iter(known)
            given = [o if unknown(o) else next(rest) for o in operands]
            return backward(with_known(body, given), cotangents)

        return of

    known = [o for o in operands if not unknown(o)]
    found = iter(cond(pred, back(yes), back(no), known, cotangents))
    return [None, *(next(found) if unknown(o) else None for o in operands)]


def run_of(body):
    """A function that does what a program does."""
    return lambda *values: evaluate(body, AGAIN, values)


def with_residuals(residuals, changes, linear, names):
    """The results of a linear program, each of `names` in it being a residual."""
    swap = dict(zip(map(id, names), residuals))
    return evaluate(linear, AGAIN, changes, outside=lambda o: swap.get(id(o), o))


def scan_change(*duals, body, count, length, reverse, known):
    """Two loops: one goes forward and keeps residuals, one is linear in tangents."""
    values, tangents = moving(duals)
    again, kept = run_of(body), {}

    def forward(carry, xs):
        results, linear = linearize(again, *carry, *xs)
        kept.update(linear=linear, names=tracers_outside(linear))
        return results[:count], (results[count:], kept["names"])

    def along(carry, rows):
        changes, residuals = rows
        results = with_residuals(residuals, [*carry, *changes], **kept)
        return results[:count], results[count:]

    carry, rows = values[:count], values[count:]
    last, (rows, residuals) = scan(forward, carry, rows, length, reverse)
    carry, rows_of_changes = tangents[:count], (tangents[count:], residuals)
    changed = scan(along, carry, rows_of_changes, length, reverse, len(residuals))
    return [*map(Dual, last + rows, changed[0] + changed[1])]


def scan_back(cotangents, *operands, body, count, length, reverse, known):
    """The linear loop from its last round to its first."""
    linear = len(operands) - known
    types = [type_of(v) for v in body.inputs[:linear]]

    def back(carry, rows):
        cs, residuals = rows
        one = trace(lambda *ts: evaluate(body, AGAIN, [*ts, *residuals]), *types)
        found = backward(one, [*carry, *cs])
        return found[:count], found[count:]

    rows = cotangents[count:], list(operands[linear:])
    first, of_rows = scan(back, cotangents[:count], rows, length, not reverse)
    return [*first, *of_rows, *[None] * known]


def many(body, size, axes):
    """The body for many examples, the results' axis in front."""

    def of(*values):
        operands = map(Batched, values, axes)
        results = evaluate(body, Many(), operands, outside=Batched)
        return [to_front(result, size) for result in results]

    return of


def cond_of_many(pred, *operands, branches):
    """One condition for all decides; one for each example means both, and select."""
    no, yes = branches
    values, axes = [x.value for x in operands], [x.axis for x in operands]
    size = size_of(pred, *operands)
    no, yes = many(no, size, axes), many(yes, size, axes)
    if pred.axis is None:
        return [Batched(x, 0) for x in cond(pred.value, yes, no, *values)]
    pairs = zip(no(*values), yes(*values))
    select = BATCHING["select_n"]
    return [select(pred, Batched(a, 0), Batched(b, 0)) for a, b in pairs]


def scan_of_many(*operands, body, count, length, reverse, known):
    """A loop over the batched step, whose carry has the examples from the start."""
    size = size_of(*operands)
    carry = [to_front(x, size) for x in operands[:count]]
    rows = [x.value if x.axis is None else move(x.value, x.axis, 1) for x in operands]
    axes = [0] * count + [None if x.axis is None else 0 for x in operands[count:]]
    step = many(body, size, axes)

    def both(carry, xs):
        results = step(*carry, *xs)
        return results[:count], results[count:]

    last, found = scan(both, carry, rows[count:], length, reverse, known)
    return [Batched(x, 0) for x in last] + [Batched(x, 1) for x in found]


TANGENTS.update(cond=cond_change, scan=scan_change)
TRANSPOSES.update(cond=cond_back, scan=scan_back)
BATCHING.update(cond=cond_of_many, scan=scan_of_many)
