"""Right and wrong answers to pieces of 01 and 08 to 20: axes, loops, rounds, blocks."""

from tests.notebooks.pieces_of_15 import changed

SET, ADD, DOT, JACREV = (
    *("at.Place.set", "at.Place.add", "batching.dot_of_many", "nesting.jacrev"),
)
COND, SCAN, SCANS = "loops.cond", "loops.scan", "loop_rules.scan_of_many"
VJP, VJPS, LEAKS = "custom.custom_vjp", "custom.custom_of_many", "leaks.leaks"
RUN, SCATTER, GATHER = (
    *("fuser.run", "collectives.reduce_scatter", "collectives.all_gather"),
)
PRINTED = "printing.run"

RIGHT = {
    SET: [
        """
def set(self, values):
    copy = self.array.copy()
    copy[self.index] = values
    return copy
""",
        """
def set(self, values):
    mask = np.zeros(np.shape(self.array), bool)
    mask[self.index] = True
    new = np.empty_like(self.array)
    new[self.index] = values
    return np.where(mask, new, self.array)
""",
    ],
    ADD: [
        """
def add(self, values):
    copy = self.array + 0
    np.add.at(copy, self.index, values)
    return copy
""",
        """
def add(self, values):
    more = np.zeros_like(self.array)
    np.add.at(more, self.index, values)
    return self.array + more
""",
    ],
    DOT: [
        """
def dot_of_many(x, y, dimension_numbers):
    (over_x, over_y), (batch_x, batch_y) = dimension_numbers
    size = size_of(x, y)
    x, y = to_front(x, size), to_front(y, size)
    over_x, over_y = [i + 1 for i in over_x], [i + 1 for i in over_y]
    batch_x, batch_y = [0, *(i + 1 for i in batch_x)], [0, *(i + 1 for i in batch_y)]
    numbers = ((over_x, over_y), (batch_x, batch_y))
    return Batched(bind("dot_general", x, y, dimension_numbers=numbers), 0)
""",
        """
def dot_of_many(x, y, dimension_numbers):
    def fitted(v, over, batch):
        if v.axis is None:
            return list(over), list(batch)
        return list(past(v.axis, over)), list(past(v.axis, batch))

    over_x, batch_x = fitted(x, dimension_numbers[0][0], dimension_numbers[1][0])
    over_y, batch_y = fitted(y, dimension_numbers[0][1], dimension_numbers[1][1])
    if x.axis is None or y.axis is None:
        order = [("x", i) for i in batch_x]
        order += [("x", i) for i in range(rank(x.value)) if i not in over_x + batch_x]
        order += [("y", i) for i in range(rank(y.value)) if i not in over_y + batch_y]
        mine = ("x", x.axis) if y.axis is None else ("y", y.axis)
        axis = order.index(mine)
    else:
        batch_x, batch_y = batch_x + [x.axis], batch_y + [y.axis]
        axis = len(batch_x) - 1
    numbers = ((over_x, over_y), (batch_x, batch_y))
    found = bind("dot_general", x.value, y.value, dimension_numbers=numbers)
    return Batched(found, axis)
""",
    ],
    JACREV: [
        """
def jacrev(function):
    def of(x):
        value, back = vjp(function, x)
        count = type_of(value).shape[0]

        def row(c):
            (found,) = back(c)
            return found

        return vmap(row, 0, 0)(np.identity(count, np.float32))

    return of
""",
        """
def jacrev(function):
    return lambda x: (
        lambda found: vmap(found[1])(
            np.eye(*type_of(found[0]).shape, dtype=np.float32)
        )[0]
    )(vjp(function, x))
""",
    ],
    COND: [
        """
def cond(pred, true_fun, false_fun, *args):
    yes, no = trace(true_fun, *args), trace(false_fun, *args)
    if [type_of(o) for o in no.outputs] != [type_of(o) for o in yes.outputs]:
        raise TypeError("types")
    if no.tree != yes.tree:
        raise TypeError("trees")
    found = []
    for tracer in tracers_outside(yes) + tracers_outside(no):
        if not any(tracer is one for one in found):
            found.append(tracer)
    for program in (no, yes):
        program.inputs = [*found, *program.inputs]
    leaves, _ = flatten(args)
    results = bind("cond", pred, *found, *leaves, branches=(no, yes))
    return unflatten(no.tree, results)
""",
        """
def cond(pred, true_fun, false_fun, *args):
    bodies = tuple(trace(f, *args) for f in (false_fun, true_fun))
    kinds = [(b.tree, list(map(type_of, b.outputs))) for b in bodies]
    if kinds[0] != kinds[1]:
        raise TypeError(f"{kinds}")
    found = {}
    for body in bodies:
        found.update({id(t): t for t in tracers_outside(body)})
    found = list(found.values())
    for body in bodies:
        body.inputs[:0] = found
    given = [pred, *found, *flatten(args)[0]]
    return unflatten(bodies[0].tree, bind("cond", *given, branches=bodies))
""",
    ],
    SCAN: [
        """
def scan(step, carry, xs, length=None, reverse=False, known=0):
    first, _ = flatten(carry)
    arrays, rows_tree = flatten(xs)
    if arrays:
        length = type_of(arrays[0]).shape[0]
    one = []
    for array in arrays:
        shape, dtype = type_of(array)
        one.append(Type(shape[1:], dtype))
    body = trace(step, carry, unflatten(rows_tree, one))
    for old, new in zip(first, body.outputs):
        if type_of(old) != type_of(new):
            raise TypeError(f"the carry is {type_of(old)} and becomes {type_of(new)}")
    outer = tracers_outside(body)
    body.inputs = [*outer, *body.inputs]
    body.outputs = [*outer, *body.outputs]
    results = bind(
        "scan",
        *outer,
        *first,
        *arrays,
        body=body,
        count=len(outer) + len(first),
        length=length,
        reverse=reverse,
        known=known,
    )
    return unflatten(body.tree, results[len(outer) :])
""",
        changed(
            SCAN,
            ("if before != after:", "if any(a != b for a, b in zip(before, after)):"),
            ("found = tracers_outside(body)", "found = tracers_outside(body)[::-1]"),
        ),
    ],
    SCANS: [
        """
def scan_of_many(*operands, body, count, length, reverse, known):
    size = size_of(*operands)
    carries, rows = operands[:count], operands[count:]

    def step(carry, xs):
        given = [Batched(x, 0) for x in carry]
        for x, row in zip(xs, rows):
            given.append(Batched(x, None if row.axis is None else 0))
        found = [
            to_front(x, size) for x in evaluate(body, Many(), given, outside=Batched)
        ]
        return found[:count], found[count:]

    arrays = []
    for row in rows:
        arrays.append(row.value if row.axis is None else move(row.value, row.axis, 1))
    start = [to_front(x, size) for x in carries]
    last, found = scan(step, start, arrays, length, reverse, known)
    return [Batched(x, 0) for x in last] + [Batched(x, 1) for x in found]
""",
        """
def scan_of_many(*operands, body, count, length, reverse, known):
    size = size_of(*operands)
    whole = [to_front(x, size) for x in operands]
    step = many(body, size, [0] * len(operands))
    rows = [move(x, 0, 1) for x in whole[count:]]

    def both(carry, xs):
        found = step(*carry, *xs)
        return found[:count], found[count:]

    last, found = scan(both, whole[:count], rows, length, reverse, known)
    return [Batched(x, 0) for x in last] + [Batched(x, 1) for x in found]
""",
    ],
    VJP: [
        """
def custom_vjp(function, forward, back):
    def call(*args):
        leaves, how = flatten(args)
        body = trace(function, *args)
        if len(tracers_outside(body)) > 0:
            raise TypeError("pass it as an argument")

        def flat_back(residuals, cotangents):
            found = back(residuals, unflatten(body.tree, list(cotangents)))
            flat = []
            for one in found:
                flat = flat + flatten(one)[0]
            return flat

        def flat_forward(*given):
            value, residuals = forward(*unflatten(how, list(given)))
            flat, _ = flatten(value)
            return [flat, residuals]

        results = bind(
            "custom_vjp", *leaves, body=body, forward=flat_forward, back=flat_back
        )
        return unflatten(body.tree, results)

    return call
""",
        changed(
            VJP,
            (
                "body = trace(function, *args)",
                "body = trace(lambda *a: function(*a), *args)",
            ),
            (
                "params = dict(body=body, forward=flat_forward, back=flat_back)",
                'params = {"back": flat_back, "forward": flat_forward, "body": body}',
            ),
        ),
    ],
    VJPS: [
        """
def custom_of_many(*operands, body, forward, back):
    size = size_of(*operands)
    axes = tuple(x.axis for x in operands)
    values = [x.value for x in operands]

    def all_back(residuals, cotangents):
        result = []
        for c, axis in zip(vmap(back)(residuals, cotangents), axes):
            if axis is None:
                result.append(bind("reduce_sum", c, axes=(0,)))
            else:
                result.append(move(c, 0, axis))
        return result

    params = dict(body=trace(many(body, size, axes), *values))
    params.update(forward=vmap(forward, axes), back=all_back)
    return [Batched(x, 0) for x in bind("custom_vjp", *values, **params)]
""",
        """
def custom_of_many(*operands, body, forward, back):
    size = size_of(*operands)
    whole = [to_front(x, size) for x in operands]
    of_many = trace(many(body, size, [0] * len(whole)), *whole)
    back_of_many = lambda residuals, cs: vmap(back)(residuals, cs)
    results = bind(
        "custom_vjp", *whole, body=of_many, forward=vmap(forward), back=back_of_many
    )
    return [Batched(x, 0) for x in results]


from tiny.batching import to_front
""".split("\n\n\n")[0].replace(
            "    size =", "    from tiny.batching import to_front\n\n    size =", 1
        ),
    ],
    LEAKS: [
        """
def leaks(function, *args):
    def born():
        program = trace(function, *args)
        yield from map(weakref.ref, program.inputs)
        for equation in program.equations:
            yield from map(weakref.ref, equation.results)

    references = list(born())
    gc.collect()
    lines = []
    for reference in references:
        tracer = reference()
        if tracer is None:
            continue
        for holder in holders(tracer):
            lines.append(f"{tracer}: {told(holder, tracer)}")
    return lines
""",
        """
def leaks(function, *args):
    program = trace(function, *args)
    born = [weakref.ref(t) for t in program.inputs]
    born += [weakref.ref(t) for e in program.equations for t in e.results]
    program = None
    gc.collect()
    found = []
    for ref in born:
        if ref() is not None:
            found += [f"{ref()}: {told(h, ref())}" for h in holders(ref())]
    return found
""",
    ],
    RUN: [
        """
def run(program, args, rows=64):
    values = {}
    for tracer, value in zip(program.inputs, args):
        values[tracer] = value
    for kernel in kernels_of(program):
        shape = kernel[0].results[0].shape
        needed = written(program, kernel)
        if len(kernel) > 1 and len(shape) > 0:
            made = []
            for start in range(0, shape[0], rows):
                cut = partial(of_block, shape, slice(start, start + rows))
                block = compute(kernel, values, cut)
                made.append({result: block[result] for result in needed})
            for result in needed:
                values[result] = np.concatenate([block[result] for block in made])
        else:
            values.update(compute(kernel, values, lambda x: x))
    found = []
    for output in program.outputs:
        found.append(values[output] if isinstance(output, Tracer) else output)
    return found
""",
        """
def run(program, args, rows=64):
    values = dict(zip(program.inputs, args))
    for kernel in kernels_of(program):
        shape = kernel[0].results[0].shape
        if len(kernel) == 1 or shape == ():
            values |= compute(kernel, values, lambda x: x)
            continue
        whole = {}
        for at in range(0, shape[0], rows):
            part = slice(at, min(at + rows, shape[0]))
            made = compute(kernel, values, lambda x: of_block(shape, part, x))
            for result in written(program, kernel):
                if result not in whole:
                    whole[result] = np.empty(result.shape, made[result].dtype)
                whole[result][part] = made[result]
        values |= whole
    return [values.get(o, o) if isinstance(o, Tracer) else o for o in program.outputs]
""",
    ],
    SCATTER: [
        """
def reduce_scatter(pieces):
    n = len(pieces)
    parts = [np.split(piece, n) for piece in pieces]
    carried = [parts[d][d - 1] for d in range(n)]
    for turn in range(n - 1):
        carried = ppermute(carried, ring(n))
        for d in range(n):
            carried[d] = carried[d] + parts[d][(d - 2 - turn) % n]
    return carried
""",
        """
def reduce_scatter(pieces):
    count = len(pieces)
    size = len(pieces[0]) // count

    def part(d, i):
        start = (i % count) * size
        return pieces[d][start : start + size]

    sums = [part(d, d + count - 1) for d in range(count)]
    for turn in range(1, count):
        came = ppermute(sums, ring(count))
        sums = [came[d] + part(d, d - 1 - turn) for d in range(count)]
    return sums
""",
    ],
    GATHER: [
        """
def all_gather(pieces):
    n = len(pieces)
    rows = [[None] * n for _ in pieces]
    came = list(pieces)
    for turn in range(n):
        for d in range(n):
            rows[d][(d - turn) % n] = came[d]
        if turn < n - 1:
            came = ppermute(came, ring(n))
    return [np.concatenate(row) for row in rows]
""",
        """
def all_gather(pieces):
    count, size = len(pieces), len(pieces[0])
    whole = [np.zeros(count * size, pieces[0].dtype) for _ in pieces]
    passing = pieces
    for turn in range(count):
        if turn:
            passing = ppermute(passing, ring(count))
        for d, piece in enumerate(passing):
            at = (d - turn) % count * size
            whole[d][at : at + size] = piece
    return whole
""",
    ],
    PRINTED: [
        """
def run(program, args, choose):
    values = {tracer: value for tracer, value in zip(program.inputs, args)}
    waiting = [*program.equations]
    while len(waiting) > 0:
        ready = []
        for place, equation in enumerate(waiting):
            tracers = [o for o in equation.operands if isinstance(o, Tracer)]
            if set(tracers) <= set(values):
                ready.append(place)
        equation = waiting.pop(choose(ready))
        given = [values[o] if isinstance(o, Tracer) else o for o in equation.operands]
        found = MEANING[equation.primitive](*given, **equation.params)
        if not isinstance(found, list):
            found = [found]
        for result, value in zip(equation.results, found):
            values[result] = value
    return [values[o] if isinstance(o, Tracer) else o for o in program.outputs]
""",
        changed(
            PRINTED,
            ("    while waiting:", "    for _ in program.equations:"),
            ("waiting.pop(choose(ready))", "waiting.pop(int(choose(ready)))"),
        ),
    ],
}

CHANGE, WRITE = "loop_rules.scan_change", "export.write"
RIGHT[CHANGE] = [
    """
def scan_change(*duals, body, count, length, reverse, known):
    values = [dual.value for dual in duals]
    tangents = [tangent_of(dual) for dual in duals]
    found = []

    def forward(carry, xs):
        results, linear = linearize(run_of(body), *carry, *xs)
        found.append(linear)
        return results[:count], [*results[count:], *tracers_outside(linear)]

    last, rows = scan(forward, values[:count], values[count:], length, reverse)
    cut = len(body.outputs) - count
    residuals = rows[cut:]

    def along(carry, rows):
        (linear,) = found
        given, here = rows
        at = with_residuals(here, [*carry, *given], linear, tracers_outside(linear))
        return at[:count], at[count:]

    start, rows_in = tangents[:count], (tangents[count:], residuals)
    moved, changes = scan(along, start, rows_in, length, reverse, known=len(residuals))
    answers, ways = [*last, *rows[:cut]], [*moved, *changes]
    return [Dual(value, tangent) for value, tangent in zip(answers, ways)]
""",
    """
def scan_change(*duals, body, count, length, reverse, known):
    values, tangents = moving(duals)
    n = len(values)
    linear = None

    def forward(carry, xs):
        nonlocal linear
        out, linear = linearize(lambda *v: evaluate(body, AGAIN, v), *carry, *xs)
        return out[:count], (tracers_outside(linear), out[count:])

    last, (kept, rows) = scan(
        forward, values[:count], values[count:n], length=length, reverse=reverse
    )

    def along(carry, both):
        here = {id(t): r for t, r in zip(tracers_outside(linear), both[1])}
        operands = [*carry, *both[0]]
        out = evaluate(linear, AGAIN, operands, outside=lambda o: here.get(id(o), o))
        return out[:count], out[count:]

    rows_in = (tangents[count:], kept)
    first, other = scan(along, tangents[:count], rows_in, length, reverse, len(kept))
    return list(map(Dual, [*last, *rows], [*first, *other]))
""",
]
RIGHT[WRITE] = [
    """
def write(text, equation):
    result, operands = equation.results[0], list(equation.operands)
    name, params, out = equation.primitive, equation.params, tensor(result.type)
    if name == "broadcast_in_dim":
        text.spread(operands[0], result.type, params["broadcast_dimensions"], result)
        return
    if name == "integer_pow":
        name, operands = "pow", operands + [1.0 * params["y"]]
    if name in WORDS:
        named = [text.given(operand, result.type) for operand in operands]
        text.line(WORDS[name] + " " + ", ".join(named) + " : " + out, result)
        return
    types = [tensor(type_of(operand)) for operand in operands]
    if name in REDUCTIONS:
        word, number = REDUCTIONS[name]
        start = text.constant(number, NUMBER)
        axes = ", ".join(map(str, params["axes"]))
        text.line(
            f"reduce({text.given(operands[0], operands[0].type)} init: {start}) "
            f"applies stablehlo.{word} across dimensions = [{axes}] : "
            f"({types[0]}, tensor<f32>) -> {out}",
            result,
        )
        return
    if name != "dot_general" or params["dimension_numbers"][1][0]:
        raise TypeError(name)
    over = params["dimension_numbers"][0]
    x, y = (text.given(operand, type_of(operand)) for operand in operands)
    text.line(
        f"dot_general {x}, {y}, contracting_dims = {list(over[0])} x {list(over[1])}"
        f" : ({types[0]}, {types[1]}) -> {out}",
        result,
    )
""",
    """
def write(text, equation):
    results, primitive, operands, params = equation
    result = results[0]

    def own(operand):
        return text.given(operand, type_of(operand))

    def arrow():
        types = ", ".join(tensor(type_of(operand)) for operand in operands)
        return f" : ({types}) -> {tensor(result.type)}"

    def entries(word, operands):
        given = ", ".join(text.given(operand, result.type) for operand in operands)
        return f"{word} {given} : {tensor(result.type)}"

    if primitive == "broadcast_in_dim":
        axes = params["broadcast_dimensions"]
        return text.spread(*operands, result.type, axes, result)
    if primitive in WORDS:
        operation = entries(WORDS[primitive], operands)
    elif primitive == "integer_pow":
        operation = entries("power", [operands[0], float(params["y"])])
    elif primitive in REDUCTIONS:
        word, start = REDUCTIONS[primitive]
        at = text.constant(start, NUMBER)
        operation = f"reduce({own(operands[0])} init: {at}) applies stablehlo.{word}"
        operation += f" across dimensions = {[*params['axes']]}"
        operands = [*operands, np.float32(start)]
        operation += arrow()
    elif primitive == "dot_general":
        over, batch = params["dimension_numbers"]
        if batch[0] or batch[1]:
            raise TypeError("tiny cannot save dot_general with batches")
        operation = f"dot_general {own(operands[0])}, {own(operands[1])}"
        operation += ", contracting_dims = {} x {}".format(*over) + arrow()
    else:
        raise TypeError(f"tiny cannot save {primitive}")
    text.line(operation, result)
""",
]

WRONG = {
    SET: [
        (changed(SET, ("np.array(self.array)", "self.array")), "x itself, after .set"),
        (
            changed(SET, ("np.array(self.array)", "np.asarray(self.array)")),
            "x itself, after .set",
        ),
        (changed(SET, ("    return copy", "    return copy[self.index]")), "shape is"),
        (
            changed(SET, ("copy[self.index] = values", "copy[self.index] += values")),
            "At(x)[0].set(7.0): At index",
        ),
        (
            changed(SET, ("np.array(self.array)", "np.array(self.array, float)")),
            "dtype",
        ),
    ],
    ADD: [
        (
            changed(
                ADD,
                ("np.add.at(copy, self.index, values)", "copy[self.index] += values"),
            ),
            "an index that comes twice counts twice",
        ),
        (changed(ADD, ("np.array(self.array)", "self.array")), "the array itself"),
        (
            changed(ADD, ("np.add.at(copy, self.index, values)", "copy += values")),
            "chapter 01",
        ),
        (
            """
def add(self, values):
    copy = np.array(self.array)
    for i in np.atleast_1d(self.index):
        copy[i] += values
    return copy
""",
            "At(x)[(1, slice(1, 3, None))].add(2.0): At index (1, 0): expected 3",
        ),
    ],
    DOT: [
        (
            changed(
                DOT,
                (
                    "over_x, batch_x = past(x.axis, over_x), past(x.axis, batch_x)",
                    "pass",
                ),
            ),
            "chapter 08",
        ),
        (
            changed(DOT, ("axis = rank(x.value) - len(over_x) + ", "axis = ")),
            "chapter 08",
        ),
        (
            changed(DOT, ("axis = len(batch_x) + kept", "axis = kept")),
            "x of shape (7, 5, 2, 3) with examples on axis 0, y of shape (3, 5)",
        ),
        (
            changed(
                DOT, ("(x.axis, *batch_x), (y.axis, *batch_y)", "batch_x, batch_y")
            ),
            "chapter 08",
        ),
        (
            """
def dot_of_many(x, y, dimension_numbers):
    size = size_of(x, y)
    x, y = to_front(x, size), to_front(y, size)
    rows = [
        bind(
            "put",
            bind(
                "dot_general",
                bind("take", x, index=i),
                bind("take", y, index=i),
                dimension_numbers=dimension_numbers,
            ),
            index=i,
            shape=(size, 4),
        )
        for i in range(size)
    ]
    return Batched(sum(rows), 0)
""",
            "chapter 08",
        ),
    ],
    JACREV: [
        (
            changed(JACREV, ("(basis)", "(basis).T")),
            "chapter 09",
        ),
        (
            changed(JACREV, ("vmap(lambda c: back(c)[0])(basis)", "back(basis)[0]")),
            "chapter 09",
        ),
        (
            changed(JACREV, ("type_of(value).shape[0]", "type_of(x).shape[0]")),
            "chapter 09",
        ),
        (
            """
def jacrev(function):
    def of(x):
        value, back = vjp(function, x)
        count = type_of(value).shape[0]
        shape = (count, *type_of(x).shape)
        rows = [back(c)[0] for c in np.eye(count, dtype=np.float32)]
        return sum(bind("put", r, index=i, shape=shape) for i, r in enumerate(rows))

    return of
""",
            "equations for 3 results and",
        ),
        (
            """
def jacrev(function):
    def of(x):
        basis = np.eye(type_of(x).shape[0], dtype=np.float32)
        return vmap(lambda v: jvp(function, (x,), (v,))[1], 0, -1)(basis)

    return of
""",
            "a row is what comes back",
        ),
    ],
    COND: [
        (
            changed(COND, ("types[0] != types[1] or no.tree != yes.tree", "False")),
            "One branch gives another shape: expected a TypeError",
        ),
        (
            changed(COND, (" or no.tree != yes.tree", "")),
            "One branch gives another tree: expected a TypeError",
        ),
        (
            changed(COND, ("branches=(no, yes)", "branches=(yes, no)")),
            "chapter 10",
        ),
        (
            changed(
                COND, ("        body.inputs = found + body.inputs", "        pass")
            ),
            "chapter 10",
        ),
        (
            changed(
                COND,
                ("tracers_outside(no) + tracers_outside(yes)", "tracers_outside(yes)"),
            ),
            "A branch uses what does not come in",
        ),
        (
            changed(COND, ("list(dict.fromkeys(", "list((")),
            "Beside the condition x, y and z come in, each once",
        ),
        (
            """
def cond(pred, true_fun, false_fun, *args):
    from tiny.operations import where

    yes, no = true_fun(*args), false_fun(*args)
    return unflatten(
        flatten(yes)[1],
        [where(pred, a, b) for a, b in zip(flatten(yes)[0], flatten(no)[0])],
    )
""",
            "One branch gives another shape: expected a TypeError",
        ),
    ],
    SCAN: [
        (
            """
def scan(step, carry, xs, length=None, reverse=False, known=0):
    rows = []
    for x in xs:
        carry, row = step(carry, x)
        rows.append(row)
    return carry, np.stack(rows)
""",
            "chapter 10",
        ),
        (
            changed(SCAN, ("if before != after:", "if False:")),
            "A number becomes a row in a carry: expected a TypeError",
        ),
        (
            changed(
                SCAN,
                (
                    "found + body.inputs, found + body.outputs",
                    "found + body.inputs, body.outputs",
                ),
            ),
            "chapter 10",
        ),
        (
            changed(SCAN, ("reverse=reverse", "reverse=False")),
            "grad of scan",
        ),
        (
            changed(SCAN, ("Type(type_of(x).shape[1:]", "Type(type_of(x).shape")),
            "chapter 10",
        ),
        (
            changed(SCAN, ("count=len(found + start)", "count=len(start)")),
            "chapter 10",
        ),
    ],
    SCANS: [
        (
            changed(
                SCANS,
                (
                    "[to_front(x, size) for x in operands[:count]]",
                    "[x.value for x in operands[:count]]",
                ),
            ),
            "at line 10 of scan_of_many: ",
        ),
        (
            changed(SCANS, ("move(x.value, x.axis, 1)", "move(x.value, x.axis, 0)")),
            "at line 10 of scan_of_many: ",
        ),
        (
            changed(
                SCANS,
                ("[Batched(x, 1) for x in found]", "[Batched(x, 0) for x in found]"),
            ),
            "vmap of scan (At index (0, 3, 2)",
        ),
        (
            changed(
                SCANS,
                (
                    "None if x.axis is None else 0 for x in operands[count:]",
                    "x.axis for x in operands[count:]",
                ),
            ),
            "It raised IndexError at line 10 of scan_of_many: ",
        ),
        (
            changed(
                SCANS,
                (
                    "length, reverse, known)\n    return",
                    "length, False, known)\n    return",
                ),
            ),
            "Many carries: the rows: At index (1, 0)",
        ),
    ],
    VJP: [
        (
            "def custom_vjp(function, forward, back):\n    return function",
            "The cotangent that `back` gives p, a dict: At index 2: expected 40, got 4",
        ),
        (
            changed(VJP, ("if tracers_outside(body):", "if False:")),
            "is none of its arguments: expected a TypeError",
        ),
        (
            changed(
                VJP, ("unflatten(body.tree, cotangents))))[0]", "cotangents)))[0]")
            ),
            "chapter 11",
        ),
        (
            changed(VJP, ("back(residuals, unflatten", "back(unflatten")).replace(
                "cotangents))))[0]", "cotangents), residuals)))[0]"
            ),
            "chapter 11",
        ),
        (
            changed(
                VJP,
                (
                    "body = trace(function, *args)",
                    "body = trace(lambda *a: forward(*a)[0], *args)",
                ),
            ),
            "Nothing is differentiated, and forward ran",
        ),
        (
            changed(
                VJP, ("forward(*unflatten(structure, leaves))", "forward(*leaves)")
            ),
            "at line 17 of custom_vjp: ",
        ),
    ],
    VJPS: [
        (
            changed(VJPS, ("[s if a is None else c for", "[c for")),
            "the cotangent of the second",
        ),
        (
            changed(VJPS, ("vmap(forward, axes)", "vmap(forward)")),
            "no line of yours ran then: see what yours returns",
        ),
        (
            changed(VJPS, ("move(c, 0, axis or 0)", "c")),
            "vmap with in_axes=(1, 0): the cotangent of the first: Its shape is (2, 3)",
        ),
        (
            changed(VJPS, ("[s if a is None else c for", "[s for")),
            "chapter 11",
        ),
        (
            """
def custom_of_many(*operands, body, forward, back):
    of_many = many(body, size_of(*operands), [x.axis for x in operands])
    return [Batched(x, 0) for x in of_many(*(x.value for x in operands))]
""",
            "vmap with in_axes=(0, 0): the cotangent of the first: At index",
        ),
    ],
    LEAKS: [
        (changed(LEAKS, ("    del program, made\n", "")), "expected []"),
        (
            changed(LEAKS, ("    gc.collect()\n", "")),
            "Leaks of round_and_round: expected []",
        ),
        (
            changed(LEAKS, ("[*program.inputs, *(", "[*(")),
            "keeps_its_argument: expected ['Tracer(f32[]): item 0 of a list'], got []",
        ),
        (changed(LEAKS, ("weakref.ref(tracer) for", "(lambda t=tracer: t) for")), "[]"),
        (
            changed(
                LEAKS,
                (
                    "*(r for e in program.equations for r in e.results)",
                    "",
                ),
            ),
            "chapter 12",
        ),
        ("def leaks(function, *args):\n    return []", "chapter 12"),
    ],
    RUN: [
        (
            """
def run(program, args, rows=64):
    from tiny.trace import evaluate

    return evaluate(program, MEANING, args)
""",
            "expected no array above 6 numbers in it, got one of 21",
        ),
        (
            changed(
                RUN, ("range(0, shape[0], rows)", "range(0, shape[0] - rows + 1, rows)")
            ),
            "chapter 13",
        ),
        (
            changed(RUN, ("len(kernel) == 1 or not shape", "True")),
            "got one of 21",
        ),
        (
            changed(
                RUN, ("values[o] if isinstance(o, Tracer) else o for", "values[o] for")
            ),
            "It raised KeyError at line 17 of run: ",
        ),
        (
            changed(RUN, ("slice(start, start + rows)", "slice(start, start + 1)")),
            "chapter 13",
        ),
        (
            changed(
                RUN, ("kept = written(program, kernel)", "kept = kernel[-1].results")
            ),
            "chapter 13",
        ),
    ],
    SCATTER: [
        (
            "def reduce_scatter(pieces):\n"
            "    return np.split(sum(pieces), len(pieces))",
            "Nothing was sent",
        ),
        (
            "def reduce_scatter(pieces):\n"
            "    return [np.split(whole, len(pieces))[d]\n"
            "            for d, whole in enumerate(all_reduce(pieces))]",
            "Each device sends 48 B; expected at most 12",
        ),
        (
            changed(
                SCATTER, ("[(d - 1) % count]", "[d]"), ("d - 1 - turn", "d - turn")
            ),
            "chapter 17",
        ),
        (changed(SCATTER, ("range(1, count)", "range(1, count - 1)")), "chapter 17"),
        (
            changed(SCATTER, ("(d - 1 - turn) % count", "(d - 1) % count")),
            "chapter 17",
        ),
    ],
    GATHER: [
        (
            "def all_gather(pieces):\n"
            "    return [np.concatenate(pieces) for _ in pieces]",
            "Nothing was sent",
        ),
        (changed(GATHER, ("(device - turn) % count", "(device + turn) % count")), "17"),
        (
            changed(GATHER, ("row[d] for d in range(count)", "row[d] for d in row")),
            "chapter 17",
        ),
        (
            """
def all_gather(pieces):
    count = len(pieces)
    wide = []
    for d, piece in enumerate(pieces):
        row = np.zeros((count, len(piece)), piece.dtype)
        row[d] = piece
        wide.append(row.ravel())
    return all_reduce(wide)
""",
            "expected at most 32",
        ),
    ],
    PRINTED: [
        (
            """
def run(program, args, choose):
    from tiny.trace import evaluate

    return evaluate(program, MEANING, args)
""",
            "`choose` gets the positions of the ready ones",
        ),
        (
            changed(PRINTED, ("waiting.pop(choose(ready))", "waiting.pop(ready[0])")),
            "`choose` gets the positions of the ready ones",
        ),
        (
            changed(PRINTED, ("if is_ready(equation)]", "]")),
            "chapter 20",
        ),
        (
            changed(PRINTED, ("choose(ready)", "ready[choose(range(len(ready)))]")),
            "`choose` gets the positions of the ready ones",
        ),
        (
            changed(
                PRINTED,
                (
                    "values[operand] if isinstance(operand, Tracer) else operand",
                    "values[operand]",
                ),
            ),
            "chapter 20",
        ),
        (
            changed(
                PRINTED, ("found if isinstance(found, list) else [found]", "[found]")
            ),
            "chapter 20",
        ),
    ],
}
WRONG[CHANGE] = [
    (
        """
def scan_change(*duals, body, count, length, reverse, known):
    values, tangents = moving(duals)

    def both(carry, xs):
        values, tangents = [*carry[0], *xs[0]], [*carry[1], *xs[1]]
        results = bind_all(values)
        moved = change(body)(values, tangents)
        return (results[:count], moved[:count]), (results[count:], moved[count:])

    def bind_all(values):
        return evaluate(body, AGAIN, values)

    start = values[:count], tangents[:count]
    rows = values[count:], tangents[count:]
    (last, moved), (rows, changes) = scan(both, start, rows, length, reverse)
    return [*map(Dual, last + rows, moved + changes)]
""",
        "",
    ),
    (changed(CHANGE, ("length, reverse, len(residuals))", "length, reverse)")), ""),
    (changed(CHANGE, ("rows, length, reverse)", "rows, length)")), ""),
    (
        changed(
            CHANGE,
            (
                "rows_of_changes, length, reverse,",
                "rows_of_changes, length, not reverse,",
            ),
        ),
        "",
    ),
    (changed(CHANGE, ("last + rows, changed[0]", "rows + last, changed[0]")), ""),
    (changed(CHANGE, ("tangents[:count], (", "values[:count], (")), ""),
    (
        """
def scan_change(*duals, body, count, length, reverse, known):
    values, tangents = moving(duals)
    results = bind(
        "scan", *values, body=body, count=count, length=length, reverse=reverse,
        known=known,
    )
    return [Dual(result) for result in results]
""",
        "chapter 10",
    ),
]
WRONG[WRITE] = [
    (
        changed(
            WRITE,
            (
                "text.given(operand, type) for",
                "text.given(operand, type_of(operand)) for",
            ),
        ),
        "",
    ),
    (changed(WRITE, ('float(params["y"])', "2.0")), ""),
    (changed(WRITE, ("{over_x} x {over_y}", "{over_y} x {over_x}")), ""),
    (
        changed(WRITE, (' and not any(params["dimension_numbers"][1])', "")),
        "with batch axes",
    ),
    (
        changed(
            WRITE,
            (
                "        raise TypeError(f",
                "        print(f",
            ),
        ),
        "",
    ),
    (
        changed(WRITE, ("text.constant(start, NUMBER)", "text.constant(0.0, NUMBER)")),
        "",
    ),
    (
        changed(
            WRITE,
            (
                ': {tensor(type)}", result)\n    elif primitive in',
                ': {type}", result)\n    elif primitive in',
            ),
        ),
        "",
    ),
    (
        changed(WRITE, ("({tensor(x.type)}, {tensor(NUMBER)})", "({tensor(x.type)})")),
        "",
    ),
]
