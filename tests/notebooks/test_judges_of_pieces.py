"""Pieces of `tiny`: right answers of other kinds are taken, wrong ones are refused.

A wrong answer is one that a learner might well write: it gives right numbers by the way
that the text forbids, or wrong ones where nobody looks.
"""

import pytest

from minijax_lab import solutions, tiny_pieces
from minijax_lab.piece_source import Written
from tests.notebooks import pieces_of_02_to_07, pieces_of_08_to_20, pieces_of_15

BIND = str(tiny_pieces.course_source("trace.bind"))
SLOPES = str(tiny_pieces.course_source("tangents.slopes"))
IMPLICIT = str(tiny_pieces.course_source("nesting.implicit"))
CALL = str(tiny_pieces.course_source("kernels.pallas_call"))
BACK = str(tiny_pieces.course_source("transposes.backward"))
FLASH = str(tiny_pieces.course_source("attention.flash_attention"))
LINEARIZE = str(tiny_pieces.course_source("linearize.linearize"))
COND = str(tiny_pieces.course_source("loop_rules.cond_of_many"))
LOAD = str(tiny_pieces.course_source("export.load"))
SLICES = str(tiny_pieces.course_source("placed.slices"))
VMAP = str(tiny_pieces.course_source("batching.vmap"))
KERNELS = str(tiny_pieces.course_source("fuser.kernels_of"))
FLATTEN = str(tiny_pieces.course_source("tree.flatten"))
CHECKED = str(tiny_pieces.course_source("export.checked"))
THREADED = str(tiny_pieces.course_source("printing.threaded"))
TANGENT = str(tiny_pieces.course_source("recurrence.recur_tangent"))
PULLED = str(tiny_pieces.course_source("recurrence.recur_transpose"))
OF_MANY = str(tiny_pieces.course_source("recurrence.recur_of_many"))
POWER = str(tiny_pieces.course_source("intervals.power"))
BOUNDS = str(tiny_pieces.course_source("intervals.bounds"))
ENTRIES = str(tiny_pieces.course_source("batching.entries_of_many"))


def with_(text: str, *changes: tuple[str, str]) -> str:
    """Returns a text with some of its parts replaced, each of which is there."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


RIGHT = {
    "trace.bind": [
        """
def bind(primitive, *operands, **params):
    innermost = -1
    for operand in operands:
        if isinstance(operand, Tracer):
            if operand.program not in OPEN:
                raise TypeError("too late")
            innermost = max(innermost, OPEN.index(operand.program))
    if innermost < 0:
        return MEANING[primitive](*operands, **params)
    program = OPEN[innermost]
    types = SHAPES[primitive](*[type_of(o) for o in operands], **params)
    if isinstance(types, list):
        results = [Tracer(program, t) for t in types]
        program.equations.append(Equation(results, primitive, operands, params))
        return results
    result = Tracer(program, types)
    program.equations.append(Equation([result], primitive, operands, params))
    return result
"""
    ],
    "nesting.hvp": [
        """
def hvp(function, x, v):
    line = lambda t: grad(function)(x + t * v)
    return jvp(line, (0.0,), (1.0,))[1]
""",
        """
def hvp(function, x, v):
    from tiny.operations import sum
    return grad(lambda x: sum(grad(function)(x) * v))(x)
""",
    ],
    "collectives.all_reduce": [
        """
def all_reduce(pieces):
    total = [piece.copy() for piece in pieces]
    carried = list(pieces)
    for turn in range(len(pieces) - 1):
        carried = ppermute(carried, ring(len(pieces)))
        for device in range(len(pieces)):
            total[device] = total[device] + carried[device]
    return total
""",
        """
def all_reduce(pieces):
    count, shape = len(pieces), pieces[0].shape
    flat = [np.resize(np.zeros(1), 0) for _ in pieces]
    size = pieces[0].size
    padded = -(-size // count) * count
    flat = []
    for piece in pieces:
        row = np.zeros(padded, piece.dtype)
        row[:size] = piece.ravel()
        flat.append(row)
    full = all_gather(reduce_scatter(flat))
    return [row[:size].reshape(shape) for row in full]
""",
    ],
    "attention.online_softmax": [
        """
def online_softmax(parts):
    largest, weight = -np.inf, 0.0
    for part in parts:
        for x in part:
            if x > largest:
                weight, largest = weight * np.exp(largest - x), x
            weight += np.exp(x - largest)
    return largest, weight
"""
    ],
    "loop_rules.cond_of_many": [
        """
def cond_of_many(pred, *operands, branches):
    values, axes = [x.value for x in operands], [x.axis for x in operands]
    size = size_of(pred, *operands)
    no, yes = [many(branch, size, axes) for branch in branches]
    if pred.axis is not None:
        found = []
        for a, b in zip(no(*values), yes(*values)):
            found.append(BATCHING["select_n"](pred, Batched(a, 0), Batched(b, 0)))
        return found
    return [Batched(x, 0) for x in cond(pred.value, yes, no, *values)]
"""
    ],
    "export.load": [
        """
def load(path):
    with open(path, "rb") as file:
        magic, digest, body = file.read(len(MAGIC)), file.read(32), file.read()
    if magic != MAGIC or sha256(body).digest() != digest:
        raise ValueError("not mine, or damaged")
    text, types, *trees = json.loads(body)
    types = [Type(tuple(shape), dtype) for shape, dtype in types]
    return Exported(text, types, *map(tree_from_json, trees))
"""
    ],
    "fuser.kernels_of": [
        with_(
            KERNELS,
            ("chosen = fitting[0]", "chosen = min(fitting)"),
            ("home.update(dict.fromkeys(equation.results, chosen))", "PLACEHOLDER"),
        ).replace(
            "PLACEHOLDER",
            "for result in equation.results:\n            home[result] = chosen",
        )
    ],
    "kernels.pallas_call": [
        """
def pallas_call(kernel, shape, grid, in_specs, out_spec):
    def run(*arrays):
        out = np.full(shape, np.nan, np.float32)
        everything = list(zip(list(arrays) + [out], list(in_specs) + [out_spec]))
        before = {}
        for where in np.ndindex(*grid):
            place[:] = where
            views = []
            for n, (array, spec) in enumerate(everything):
                at = spec.index_map(*where)
                view = block(array, spec, at)
                if before.get(n) != at:
                    fetched.append(view.nbytes)
                before[n] = at
                views.append(view)
            kernel(*views)
        return out
    return run
"""
    ],
    "attention.flash_attention": [
        """
def flash_attention(q, k, v, rows):
    out = np.zeros((len(q), v.shape[1]), np.float32)
    for start in range(0, len(q), rows):
        some = q[start : start + rows] / np.sqrt(q.shape[1])
        top = weight = total = None
        for at in range(0, len(k), rows):
            s = some @ k[at : at + rows].T
            m = s.max(1, keepdims=True)
            if top is not None:
                m = np.maximum(top, m)
            e = np.exp(s - m)
            new_weight, new_total = e.sum(1, keepdims=True), e @ v[at : at + rows]
            if top is not None:
                shrink = np.exp(top - m)
                new_weight = new_weight + weight * shrink
                new_total = new_total + total * shrink
            top, weight, total = m, new_weight, new_total
        out[start : start + rows] = total / weight
    return out
"""
    ],
    "custom.remat": [
        """
def remat(function):
    def again(*args):
        leaves, structure = flatten(args)
        body = trace(function, *args)
        outer = tracers_outside(body)
        body.inputs = [*outer, *body.inputs]
        results = bind("remat", *outer, *leaves, body=body)
        return unflatten(body.tree, results)
    return again
"""
    ],
    "recurrence.recur_tangent": [
        """
def recur_tangent(a, x, reverse):
    y = bind("recur", a.value, x.value, reverse=reverse)
    moved = [] if x.tangent is None else [x.tangent]
    if a.tangent is not None:
        moved = [toy_shift(y, reverse) * a.tangent, *moved]
    if not moved:
        return Dual(y)
    total = moved[0] if len(moved) == 1 else bind("add_any", *moved)
    return Dual(y, bind("recur", a.value, total, reverse=reverse))
"""
    ],
    "recurrence.recur_transpose": [
        """
def recur_transpose(cotangents, a, x, reverse):
    if unknown(a):
        raise TypeError("not linear in a")
    other = not reverse
    moved = bind("shift", a, reverse=other)
    return None, bind("recur", moved, cotangents[0], reverse=other)
"""
    ],
    "recurrence.recur_of_many": [
        """
def recur_of_many(a, x, reverse):
    many = a if x.axis is None else x
    a, x = (to_front(v, many.value.shape[many.axis]) for v in (a, x))
    return Batched(bind("recur", a, x, reverse=reverse), 0)
"""
    ],
    "intervals.product": [
        """
def product(x, y):
    a, b, c, d = x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high
    low = np.minimum(np.minimum(a, b), np.minimum(c, d))
    return Interval(low, np.maximum(np.maximum(a, b), np.maximum(c, d)))
"""
    ],
    "intervals.power": [
        """
def power(x, y):
    if y % 2 == 1:
        return Interval(x.low**y, x.high**y)
    nearest = np.clip(0.0, x.low, x.high)
    farthest = np.maximum(abs(x.low), abs(x.high))
    return Interval(nearest**y, farthest**y)
"""
    ],
    "intervals.bounds": [
        """
def bounds(function, *intervals):
    types = [x[0] for x in intervals]
    program = trace(function, *types)

    def known(x):
        return Interval(low=x, high=x)

    found = evaluate(program, INTERVALS, list(intervals), known)
    return unflatten(program.tree, list(found))
"""
    ],
}

WRONG = {
    "trace.bind": [
        (
            with_(BIND, ("max((tracer", "min((tracer")),
            "with y of an inner program and x of an outer one, stands in the inner one",
        ),
        (
            with_(
                BIND,
                (
                    "any(tracer.program not in OPEN for tracer in tracers)",
                    "False",
                ),
                (
                    "max((tracer.program for tracer in tracers), key=OPEN.index)",
                    "tracers[0].program if len({t.program for t in tracers}) == 1 "
                    "else max((t.program for t in tracers), key=OPEN.index)",
                ),
            ),
            "tracer that outlived its program was used, and no TypeError",
        ),
        (
            with_(BIND, ("any(tracer.program not in OPEN for tracer in tracers)", "0")),
            "tracer that outlived its program was used, and no TypeError",
        ),
        (
            with_(BIND, ("return results if several else", "return")),
            "too many values to unpack",
        ),
        (
            with_(BIND, ("operands, params))", "tuple(tracers), params))")),
            "programs of chapter 02",
        ),
    ],
    "cache.Jitted.key": [
        (
            "def key(self, args):\n    return tuple(np.shape(a) for a in args)",
            "programs of chapter 03",
        ),
        (
            "def key(self, args):\n    return tuple(type(a) for a in args)",
            "programs of chapter 03",
        ),
    ],
    "tree.flatten": [
        (
            with_(FLATTEN, ("type(value) not in REGISTRY", "PLAIN")).replace(
                "PLAIN", "not isinstance(value, (list, tuple, dict, type(None)))"
            ),
            "registered class",
        ),
        (with_(FLATTEN, ("leaves += found", "leaves = found + leaves")), "chapter 04"),
    ],
    "threefry.uniform": [
        (
            "def uniform(key, count):\n"
            "    return (bits(key, count) / 2.0**32).astype(np.float32)",
            "chapter 05",
        ),
        (
            "def uniform(key, count):\n"
            "    digits = (bits(key, 4) >> np.uint32(9)) | np.uint32(0x3F800000)\n"
            "    return digits.view(np.float32) - np.float32(1)",
            "Its shape is (4,), not (1,)",
        ),
    ],
    "tangents.slopes": [
        (
            with_(SLOPES, ('bind("add_any", ', "(lambda a, b: b)(")),
            "programs of chapter 06",
        ),
    ],
    "linearize.linearize": [
        (
            with_(
                LINEARIZE,
                ("map(Dual, leaves, linear.inputs)", "map(Dual, again, tangents)"),
                (
                    "    linear = Program()\n",
                    "    linear = Program()\n    again = leaves\n    tangents = []\n",
                ),
                (
                    "    OPEN.append(linear)",
                    "    tangents = leaves\n    OPEN.append(linear)",
                ),
            ),
            "chapter 07",
        ),
        (
            with_(
                LINEARIZE,
                (
                    "    finally:\n        OPEN.remove(linear)",
                    "    finally:\n        pass",
                ),
            ),
            "",
        ),
    ],
    "transposes.backward": [
        (
            with_(
                BACK,
                ('c if known is None else bind("add_any", known, c)', "c"),
            ),
            "programs of chapter 07",
        ),
        (with_(BACK, ("[sums.get(v, zero(v))", "[sums[v]")), "KeyError"),
        (with_(BACK, ("reversed(linear.equations)", "linear.equations")), "chapter 07"),
    ],
    "batching.vmap": [
        (
            """
def vmap(function, in_axes=0, out_axes=0):
    def of_many(*args):
        count = type_of(flatten(args)[0][0]).shape[0]
        rows = [function(*(a[i] for a in args)) for i in range(count)]
        return np.stack(rows)
    return of_many
""",
            "chapter 08",
        ),
        (with_(VMAP, (", out_axes) for x", ", 0) for x")), "chapter 08"),
    ],
    "batching.entries_of_many": [
        (
            """
def entries_of_many(primitive, *operands, **params):
    return Batched(bind(primitive, *map(to_front, operands), **params), 0)
""",
            "",
        ),
        (
            """
def entries_of_many(primitive, *operands, **params):
    axis = next(x.axis for x in operands if x.axis is not None)
    return Batched(bind(primitive, *(x.value for x in operands), **params), axis)
""",
            "",
        ),
    ],
    "nesting.hvp": [
        (
            "def hvp(function, x, v):\n    return jacfwd(grad(function))(x) @ v",
            "For 40 entries an array of 1600 is made",
        ),
        ("def hvp(function, x, v):\n    return grad(function)(v)", "6 of 7"),
        (
            "def hvp(function, x, v):\n"
            "    near = np.float32(1e-3)\n"
            "    change = grad(function)(x + near * v) - grad(function)(x)\n"
            "    return change / near",
            "hvp (At index ",
        ),
    ],
    "nesting.implicit": [
        (
            with_(
                IMPLICIT,
                (
                    "one = np.ones",
                    'fixed = bind("stop_gradient", x)\n    one = np.ones',
                ),
                ("(x,), (one,)", "(fixed,), (one,)"),
                ("program(a, x)", "program(a, fixed)"),
            ),
            "The slope of that slope: Expected -0.03125, got ",
        ),
        (with_(IMPLICIT, ("-(change / slope)", "change / slope")), "slope of a root"),
        (with_(IMPLICIT, ("-(change / slope)", "-change")), "slope of a root"),
    ],
    "loop_rules.cond_of_many": [
        (
            with_(COND, ("if pred.axis is None:", "if False:")),
            "One condition for all examples: expected a cond and no select_n",
        ),
        (
            with_(
                COND,
                ("zip(no(*values), yes(*values))", "zip(yes(*values), no(*values))"),
            ),
            "chapter 10",
        ),
    ],
    "custom.remat": [
        (
            "def remat(function):\n    return function",
            "arrays are kept for the way back",
        ),
        (
            "def remat(function):\n    return lambda *args: function(*args)",
            "arrays are kept",
        ),
        (
            with_(
                str(tiny_pieces.course_source("custom.remat")),
                ("found + body.inputs", "body.inputs + found"),
            ),
            "By what comes from outside: At index",
        ),
    ],
    "fuser.kernels_of": [
        (
            "def kernels_of(program):\n    return [[e] for e in program.equations]",
            "A chain of four: expected 1 kernel, got ",
        ),
        (
            "def kernels_of(program):\n    return [list(program.equations)]",
            "chapter 13",
        ),
        (
            """
def kernels_of(program):
    kernels = []
    for equation in program.equations:
        if kernels and fits(equation, kernels[-1][0]):
            kernels[-1].append(equation)
        else:
            kernels.append([equation])
    return kernels
""",
            "cos joins the kernel of sin, past the sum between them",
        ),
    ],
    "export.checked": [
        (with_(CHECKED, ("if structure != tree:", "if False:")), "another tree"),
        (
            with_(
                CHECKED,
                ("if type_of(leaf) != type:", "if type_of(leaf)[0] != type[0]:"),
            ),
            "another dtype",
        ),
        (
            "def checked(types, tree, args):\n    return flatten(args)[0]",
            "wrong arguments",
        ),
    ],
    "export.load": [
        (
            with_(LOAD, ("if sha256(body).digest() != digest:", "if False:")),
            "became",
        ),
        (with_(LOAD, ("if start != MAGIC:", "if False:")), "a picture"),
    ],
    "placed.slices": [
        (
            with_(SLICES, ("if size % count:", "if False:")),
            "cannot be cut evenly: expected a ValueError",
        ),
        (
            with_(SLICES, ("number * mesh[name] + place[name]", "place[name]")),
            "chapter 16",
        ),
        (
            with_(SLICES, ("in names_of(part):", "in names_of(part)[::-1]:")),
            "either way round",
        ),
    ],
    "collectives.all_reduce": [
        (
            "def all_reduce(pieces):\n    return [sum(pieces)] * len(pieces)",
            "Nothing was sent",
        ),
        (
            "def all_reduce(pieces):\n"
            "    ppermute(pieces, ring(len(pieces)))\n"
            "    return [sum(pieces) for _ in pieces]",
            "it did not come over the wire",
        ),
        (
            """
def all_reduce(pieces):
    count, total = len(pieces), list(pieces)
    for far in range(1, count):
        new = ppermute(pieces, [(d, (d + far) % count) for d in range(count)])
        total = [a + b for a, b in zip(total, new)]
    return total
""",
            "A device sends to the next one only",
        ),
        (
            """
def all_reduce(pieces):
    total, passing = pieces, pieces
    for _ in range(len(pieces)):
        passing = ppermute(passing, ring(len(pieces)))
        total = [mine + new for mine, new in zip(total, passing)]
    return total
""",
            "chapter 17",
        ),
    ],
    "kernels.pallas_call": [
        (
            with_(
                CALL,
                ("np.full(shape, np.nan, np.float32)", "np.zeros(shape, np.float32)"),
            ),
            "expected nan, got 0",
        ),
        (
            with_(
                CALL,
                (
                    "for place[:] in itertools.product(*map(range, grid)):",
                    "for turned in itertools.product(*map(range, grid[::-1])):\n"
                    "            place[:] = turned[::-1]",
                ),
            ),
            "The places come as [(0, 0), (1, 0)",
        ),
        (
            with_(CALL, ("fetched.append(refs[-1].nbytes)", "pass")),
            "`fetched` holds []",
        ),
        (with_(CALL, ("if numbers != last[n]:", "if True:")), "`fetched` holds"),
    ],
    "attention.online_softmax": [
        (
            "def online_softmax(parts):\n"
            "    x = np.concatenate(list(parts))\n"
            "    return x.max(), np.exp(x - x.max()).sum()",
            "an array of 24 was made of them",
        ),
        (
            """
def online_softmax(parts):
    weight = 0.0
    for part in parts:
        weight, top = weight + np.exp(part).sum(), part.max()
    return top, weight
""",
            "chapter 19",
        ),
        (
            """
def online_softmax(parts):
    top, weight = -np.inf, 0.0
    for part in parts:
        top = max(top, part.max())
        weight = weight + np.exp(part - top).sum()
    return top, weight
""",
            "chapter 19",
        ),
    ],
    "attention.flash_attention": [
        (
            "def flash_attention(q, k, v, rows):\n"
            "    scores = q @ k.T / np.sqrt(q.shape[1])\n"
            "    e = np.exp(scores - scores.max(1, keepdims=True))\n"
            "    return e / e.sum(1, keepdims=True) @ v",
            "an array of 1024 numbers was made",
        ),
        (
            with_(FLASH, ("weight = weight * shrink +", "weight = weight +")),
            "Attention: At index (",
        ),
        (
            """
def flash_attention(q, k, v, rows):
    out = []
    for at in range(0, len(q), rows):
        scores = q[at : at + rows] @ k.T / np.sqrt(q.shape[1])
        e = np.exp(scores - scores.max(1, keepdims=True))
        out.append(e / e.sum(1, keepdims=True) @ v)
    return np.concatenate(out)
""",
            "an array of 256 numbers was made",
        ),
    ],
    "printing.threaded": [
        ("def threaded(program):\n    return program", "chapter 20"),
        (
            with_(
                THREADED,
                (
                    "            token = Tracer(result, TOKEN)\n            eq",
                    "            eq",
                ),
            ),
            "chapter 20",
        ),
    ],
    "recurrence.recur_tangent": [
        (with_(TANGENT, ("toy_shift(y, reverse)", "y")), "chapter 21"),
        (with_(TANGENT, ("toy_shift(y, reverse)", "toy_shift(y)")), "chapter 21"),
        (with_(TANGENT, ("part if change is None else ", "")), "chapter 21"),
        (with_(TANGENT, ("toy_recur(a.value, change, reverse)", "change")), "chapter"),
        (
            with_(
                TANGENT,
                ("None if change is None else ", ""),
                ("= x.t", "= 0 * y + x.t"),
            ),
            "chapter 21",
        ),
    ],
    "recurrence.recur_transpose": [
        (with_(PULLED, ("toy_shift(a, not reverse)", "a")), "chapter 21"),
        (with_(PULLED, ("c, not reverse)", "c, reverse)")), "chapter 21"),
        (with_(PULLED, ("toy_shift(a, not reverse)", "toy_shift(a, reverse)")), "chap"),
        (with_(PULLED, ("not reverse), c", "True), c")), "chapter 21"),
        (
            with_(PULLED, ("if not unknown(x) or unknown(a)", "if False")),
            "no transpose",
        ),
    ],
    "recurrence.recur_of_many": [
        (
            """
def recur_of_many(a, x, reverse):
    return Batched(toy_recur(a.value, x.value, reverse), 0)
""",
            "chapter 21",
        ),
        (with_(OF_MANY, (", reverse), 0", "), 0")), "chapter 21"),
        (with_(OF_MANY, (", 0)", ", x.axis)")), "chapter 21"),
        (
            """
def recur_of_many(a, x, reverse):
    n = size_of(a, x)
    a, x = to_front(a, n), to_front(x, n)
    rows = [toy_recur(bind("take", a, index=i), bind("take", x, index=i), reverse)
            for i in range(n)]
    return Batched(sum(
        bind("put", row, index=i, shape=(n, *row.shape)) for i, row in enumerate(rows)
    ), 0)
""",
            "",
        ),
    ],
    "intervals.product": [
        (
            """
def product(x, y):
    return Interval(x.low * y.low, x.high * y.high)
""",
            "expected (-2.0, 4.0), got (-1.0, 4.0)",
        ),
        (
            """
def product(x, y):
    corners = [a * b for a in x for b in y]
    return Interval(min(corners), max(corners))
""",
            "ValueError",
        ),
        (
            """
def product(x, y):
    ends = [x.low * y.low, x.high * y.high]
    return Interval(np.minimum(*ends), np.maximum(*ends))
""",
            "expected (",
        ),
        (
            """
def product(x, y):
    size = np.maximum(abs(x.low), abs(x.high)) * np.maximum(abs(y.low), abs(y.high))
    return Interval(-size, size)
""",
            "expected (0.5, 8.0), got (-8.0, 8.0)",
        ),
    ],
    "intervals.power": [
        (
            with_(POWER, ("crosses, 0.0", "crosses, np.minimum(low, high)")),
            "(0.0, 9.0)",
        ),
        (with_(POWER, ("if y % 2:", "if y == 1:")), "expected (-8.0, 27.0)"),
        (with_(POWER, ("np.minimum(low, high)", "low")), "expected (1.0, 9.0)"),
        (
            with_(POWER, ("    if y % 2:\n        return Interval(low, high)\n", "")),
            "ex",
        ),
        (
            """
def power(x, y):
    low, high = x.low**y, x.high**y
    if y % 2:
        return Interval(low, high)
    if x.low < 0 < x.high:
        return Interval(0.0 * low, max(low, high))
    return Interval(min(low, high), max(low, high))
""",
            "ValueError",
        ),
    ],
    "intervals.bounds": [
        (
            """
def bounds(function, *intervals):
    low = function(*(x.low for x in intervals))
    return Interval(low, function(*(x.high for x in intervals)))
""",
            "chapter 21",
        ),
        (
            """
def bounds(function, *intervals):
    ends = [function(*(x[i] for x in intervals)) for i in (0, 1)]
    return Interval(np.minimum(*ends), np.maximum(*ends))
""",
            "chapter 21",
        ),
        (with_(BOUNDS, (", outside=lambda x: Interval(x, x)", "")), "chapter 21"),
        (
            with_(BOUNDS, ("unflatten(program.tree, results)", "results[0]")),
            "chapter 21",
        ),
    ],
}

for module in (pieces_of_02_to_07, pieces_of_08_to_20, pieces_of_15):
    RIGHT |= module.RIGHT
    WRONG |= module.WRONG


@pytest.mark.parametrize(
    "name, text", [(name, text) for name, texts in RIGHT.items() for text in texts]
)
def test_a_right_answer_of_another_kind_is_taken(name, text):
    assert tiny_pieces.judge(Written(name, text.strip())) is None


@pytest.mark.parametrize(
    "name, text, said",
    [(name, *case) for name, cases in WRONG.items() for case in cases],
)
def test_a_wrong_answer_is_refused_and_why(name, text, said):
    complaint = tiny_pieces.judge(Written(name, text.strip()))
    assert complaint is not None and said in complaint


def test_every_piece_is_looked_at_and_has_hints():
    assert set(tiny_pieces.CHECKS) <= set(tiny_pieces.PIECES)
    assert set(WRONG) >= set(tiny_pieces.PIECES) - {"tangents.jvp"}
    for name in tiny_pieces.PIECES:
        assert len(solutions.hints(name)) == 3, name
