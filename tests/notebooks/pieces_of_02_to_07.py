"""Right and wrong answers to pieces of chapters 02 to 07: programs, trees, rows."""

from tests.notebooks.pieces_of_15 import changed

TRACE, EVALUATE, CALL = "trace.trace", "trace.evaluate", "cache.Jitted.__call__"
PATHS, MAP, MIX = "tree.paths", "tree.map_tree", "threefry.threefry"
SCHOOL, OUTSIDE = "tangents.rules_of_school", "linearize.outside"
ENTRIES, PRODUCT = "transposes.rules_of_entries", "transposes.dot_back"

RIGHT = {
    TRACE: [
        """
def trace(function, *args):
    program = Program()
    flat, how = flatten(args)
    for leaf in flat:
        program.inputs.append(Tracer(program, type_of(leaf)))
    OPEN.append(program)
    try:
        program.outputs, program.tree = flatten(
            function(*unflatten(how, program.inputs))
        )
        return program
    finally:
        OPEN.remove(program)
""",
        """
def trace(function, *args):
    from contextlib import ExitStack

    with ExitStack() as stack:
        program = Program()
        OPEN.append(program)
        stack.callback(OPEN.pop)
        trees = [flatten(arg) for arg in args]
        made = []
        for leaves, structure in trees:
            tracers = [Tracer(program, type_of(leaf)) for leaf in leaves]
            program.inputs = program.inputs + tracers
            made.append(unflatten(structure, tracers))
        result = function(*made)
    program.outputs, program.tree = flatten(result)
    return program
""",
    ],
    EVALUATE: [
        """
def evaluate(program, table, args, outside=lambda operand: operand):
    known = {}
    for tracer, value in zip(program.inputs, args):
        known[tracer] = value

    def value_of(operand):
        if not isinstance(operand, Tracer):
            return outside(operand)
        return known[operand] if operand in known else outside(operand)

    for equation in program.equations:
        rule = table[equation.primitive]
        given = [value_of(operand) for operand in equation.operands]
        found = rule(*given, **equation.params)
        if not isinstance(found, list):
            found = [found]
        for tracer, value in zip(equation.results, found):
            known[tracer] = value
    return [value_of(output) for output in program.outputs]
""",
        """
def evaluate(program, table, args, outside=lambda operand: operand):
    known = {id(tracer): value for tracer, value in zip(program.inputs, args)}

    def read(operand):
        return known[id(operand)] if id(operand) in known else outside(operand)

    for results, primitive, operands, params in program.equations:
        found = table[primitive](*[read(o) for o in operands], **params)
        if len(results) == 1 and not isinstance(found, list):
            known[id(results[0])] = found
        else:
            known.update({id(r): f for r, f in zip(results, found)})
    return list(map(read, program.outputs))
""",
    ],
    CALL: [
        """
def __call__(self, *args):
    key = self.key(args)
    arrays = [a for i, a in enumerate(args) if i not in self.static]
    if key not in self.programs:
        statics = {i: a for i, a in enumerate(args) if i in self.static}

        def rest(*given):
            given = iter(given)
            count = range(len(args))
            return self.function(*(statics[i] if i in statics else next(given)
                                   for i in count))

        self.misses += 1
        self.programs[key] = trace(rest, *arrays)
    else:
        self.hits += 1
    return self.programs[key](*arrays)
""",
        """
def __call__(self, *args):
    try:
        program = self.programs[self.key(args)]
        self.hits += 1
    except KeyError:
        self.misses += 1
        places = sorted(set(range(len(args))) - self.static)

        def others(*arrays):
            both = dict(enumerate(args)) | dict(zip(places, arrays))
            return self.function(*both.values())

        program = trace(others, *[args[i] for i in places])
        self.programs[self.key(args)] = program
    return program(*[arg for i, arg in enumerate(args) if i not in self.static])
""",
    ],
    PATHS: [
        """
def paths(value, place=""):
    if type(value) not in REGISTRY:
        return [place]
    children, extra = REGISTRY[type(value)][0](value)
    found = []
    for number, child in enumerate(children):
        name = extra[number] if type(value) is dict else number
        found.extend(paths(child, place + "[" + repr(name) + "]"))
    return found
""",
        """
def paths(value, place=""):
    def walk(value, place):
        if type(value) in REGISTRY:
            children, names = REGISTRY[type(value)][0](value)
            if not isinstance(value, dict):
                names = list(range(len(list(children))))
            for name, child in zip(names, children):
                yield from walk(child, f"{place}[{name!r}]")
        else:
            yield place

    return list(walk(value, place))
""",
    ],
    MAP: [
        """
def map_tree(function, first, *others):
    leaves, structure = flatten(first)
    flat = [flatten(other) for other in others]
    for _, one in flat:
        if one != structure:
            raise ValueError("not the same")
    results = []
    for i in range(len(leaves)):
        results.append(function(leaves[i], *(found[i] for found, _ in flat)))
    return unflatten(structure, results)
""",
        """
def map_tree(function, *trees):
    columns, structures = zip(*map(flatten, trees))
    if any(one != structures[0] for one in structures):
        raise ValueError(f"{structures}")
    return unflatten(structures[0], list(map(function, *columns)))
""",
    ],
    MIX: [
        """
def threefry(key, high, low):
    def rotated(x, by):
        return (x << np.uint32(by)) | (x >> np.uint32(32 - by))

    words = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)]
    a = high + words[0]
    b = low + words[1]
    for turn in range(20):
        a = a + b
        b = rotated(b, ROTATIONS[turn // 4 % 2][turn % 4]) ^ a
        if turn % 4 == 3:
            g = turn // 4 + 1
            a = a + words[g % 3]
            b = b + words[(g + 1) % 3] + np.uint32(g)
    return a, b
""",
        """
def threefry(key, high, low):
    whole = 2**32
    k = [int(key[0]), int(key[1])]
    k.append(k[0] ^ k[1] ^ 0x1BD11BDA)
    a = (high.astype(np.uint64) + k[0]) % whole
    b = (low.astype(np.uint64) + k[1]) % whole
    for group in range(5):
        for d in ROTATIONS[group % 2]:
            a = (a + b) % whole
            b = a ^ ((b * 2**d) % whole + b // 2 ** (32 - d))
        a = (a + k[(group + 1) % 3]) % whole
        b = (b + k[(group + 2) % 3] + group + 1) % whole
    return a.astype(np.uint32), b.astype(np.uint32)
""",
    ],
    SCHOOL: [
        changed(
            SCHOOL,
            ("t * y, lambda t, z, x, y: x * t)", "y * t, lambda t, z, x, y: t * x)"),
            ("-t * x * y**-2", "-(t * z) / y"),
            ("(t + t * y) * (1.0 - y)", "t * (1.0 - y * y)"),
            ("t * (0.5 / y)", "t / (2.0 * y)"),
            ('t * y)\n    slopes("sin"', 't * bind("exp", x))\n    slopes("sin"'),
        ),
        """
def rules_of_school():
    both = lambda t, z, *_: like(t, z)
    slopes("add", both, both)
    slopes("sub", both, lambda t, z, *_: -like(t, z))
    slopes("add_any", lambda t, *_: t, lambda t, *_: t)
    slopes("mul", lambda t, z, x, y: y * t, lambda t, z, x, y: x * t)
    slopes("div", lambda t, z, x, y: t / y, lambda t, z, x, y: -(t * x) / (y * y))
    alone = {
        "neg": lambda y, x: -1.0,
        "log": lambda y, x: 1.0 / x,
        "exp": lambda y, x: y,
        "sin": lambda y, x: cos(x),
        "cos": lambda y, x: -sin(x),
        "tanh": lambda y, x: 1.0 - y**2,
        "sqrt": lambda y, x: 0.5 / y,
    }
    for name, slope in alone.items():
        slopes(name, lambda t, y, x, slope=slope: t * slope(y, x))
    slopes("integer_pow", lambda t, z, x, y: (float(y) * t) * power(x, y - 1))
    slopes(
        "pow",
        lambda t, z, x, y: t * y * bind("pow", x, y - 1.0),
        lambda t, z, x, y: t * z * log(x),
    )
    slopes(
        "dot_general",
        lambda t, z, x, y, dimension_numbers: bind(
            "dot_general", t, y, dimension_numbers=dimension_numbers
        ),
        lambda t, z, x, y, dimension_numbers: bind(
            "dot_general", x, t, dimension_numbers=dimension_numbers
        ),
    )
""",
    ],
    OUTSIDE: [
        """
def outside(program):
    made = list(program.inputs)
    used = list(program.outputs)
    for equation in program.equations:
        made += equation.results
        used += equation.operands
    made = {id(tracer) for tracer in made}
    found = []
    for thing in used:
        is_number = not isinstance(thing, Tracer) and np.ndim(thing) == 0
        if id(thing) in made or is_number or any(thing is one for one in found):
            continue
        found.append(thing)
    return found
""",
        """
def outside(program):
    known, found = set(program.inputs), {}

    def look(operands):
        for operand in operands:
            if isinstance(operand, Tracer):
                if operand not in known:
                    found[id(operand)] = operand
            elif np.ndim(operand) > 0:
                found[id(operand)] = operand

    for results, _, operands, _ in program.equations:
        look(operands)
        known.update(results)
    look(program.outputs)
    return list(found.values())
""",
    ],
    ENTRIES: [
        changed(
            ENTRIES,
            ("c * y, lambda c, x, y: x * c)", "y * c, lambda c, x, y: c * x)"),
            ("lambda c, x, y: -c", "lambda c, x, y: -1.0 * c"),
            ("where(which, 0.0, c)", "c * where(which, 0.0, 1.0)"),
        ),
        """
def rules_of_entries():
    same = lambda c, *_: c
    for name in ("add", "add_any"):
        entries(name, same, same)
    entries("sub", same, lambda c, *_: -c)
    entries("neg", lambda c, *_: 0.0 - c)
    entries("mul", lambda c, x, y: c * y, lambda c, x, y: c * x)
    entries("div", lambda c, x, y: c * (1.0 / y), None)
    no = lambda c, which, *_: where(which, 0.0 * c, c)
    entries("select_n", None, no, lambda c, which, *_: where(which, c, 0.0 * c))
""",
    ],
}

RIGHT[PRODUCT] = [
    """
def dot_back(c, x, y, dimension_numbers):
    (over_x, over_y), (batch_x, batch_y) = dimension_numbers
    y_axes = range(len(type_of(y).shape))
    free_y = [i for i in y_axes if i not in over_y and i not in batch_y]
    free_x = [i for i in range(len(x.type.shape)) if i not in (*over_x, *batch_x)]
    count = len(type_of(c).shape)
    last = [*range(count - len(free_y), count)]
    along = [*range(len(batch_x))]
    numbers = ((last, free_y), (along, list(batch_y)))
    found = bind("dot_general", c, y, dimension_numbers=numbers)
    met = dict(zip(over_y, over_x))
    order = list(batch_x) + free_x + [met[i] for i in sorted(over_y)]
    back = tuple(order.index(i) for i in range(len(order)))
    return bind("transpose", found, permutation=back)
""",
    """
def dot_back(c, x, y, dimension_numbers):
    \"\"\"The product the other way round, y first.\"\"\"
    (over_x, over_y), (batch_x, batch_y) = dimension_numbers
    free_x = without(range(len(x.type.shape)), {*over_x, *batch_x})
    free_y = without(range(len(type_of(y).shape)), {*over_y, *batch_y})
    n, m = len(batch_x), len(free_x)
    numbers = (
        (list(free_y), [*range(n + m, n + m + len(free_y))]),
        (list(batch_y), [*range(n)]),
    )
    found = bind("dot_general", y, c, dimension_numbers=numbers)
    met = [over_x[over_y.index(i)] for i in sorted(over_y)]
    order = [*batch_x, *met, *free_x]
    return transpose(found, tuple(order.index(i) for i in range(len(order))))
""",
]

WRONG = {
    TRACE: [
        (
            changed(
                TRACE,
                ("    try:\n        output", "    output"),
                ("    finally:\n        OPEN", "    OPEN"),
            ),
            "The traced function raised, and its program is still open",
        ),
        (changed(TRACE, ("    OPEN.append(program)\n", "")), "chapter 02"),
        (
            changed(TRACE, ("unflatten(structure, program.inputs)", "program.inputs")),
            "takes 2 positional arguments but 3 were given",
        ),
        (
            changed(TRACE, ("flatten(output)", "[output], '*'")),
            "programs of chapter 02",
        ),
        (
            changed(TRACE, ("    OPEN.append", "    function(*args)\n    OPEN.append")),
            "Tracing ran the function 2 times, expected once",
        ),
    ],
    EVALUATE: [
        (
            changed(EVALUATE, ("else outside(operand)", "else operand")),
            "expected [40.0, 10.0, 10.0]",
        ),
        (
            changed(
                EVALUATE,
                (
                    "values[operand] if known else outside(operand)",
                    "values[operand] if known else "
                    "outside(operand) if isinstance(operand, Tracer) else operand",
                ),
            ),
            "expected [40.0, 10.0, 10.0]",
        ),
        (
            changed(
                EVALUATE, ("found if isinstance(found, list) else [found]", "[found]")
            ),
            "The second result of an equation: Its shape is (), not (2,)",
        ),
        (changed(EVALUATE, (", **params)", ")")), "chapter 02"),
        (
            changed(
                EVALUATE, ("[read(output) for output", "[values[output] for output")
            ),
            "expected [40.0, 10.0, 10.0]",
        ),
        (
            changed(EVALUATE, ("table[primitive](", "MEANING[primitive](")),
            "It raised UFuncTypeError at line 13 of evaluate: ",
        ),
    ],
    CALL: [
        (
            "def __call__(self, *args):\n    return self.function(*args)",
            "chapter 03",
        ),
        (
            changed(CALL, ("if key in self.programs:", "if False:")),
            "chapter 03",
        ),
        (
            changed(CALL, ("filled[position] = array", "filled[0] = array")),
            "It raised TypeError at line 14 of __call__: ",
        ),
        (
            changed(CALL, ("        self.misses += 1\n", "")),
            "Expected 1 hit and 3 misses, got (1, 0)",
        ),
        (
            changed(CALL, ("return self.programs[key](", "return self.function(")),
            "It raised TypeError at line 17 of __call__: ",
        ),
        (
            """
def __call__(self, *args):
    key = self.key(args)
    self.hits += key in self.programs
    self.misses += key not in self.programs
    self.programs.setdefault(key, self.function(*args))
    return self.programs[key]
""",
            "Call 1: At index 0: expected 4, got 2",
        ),
    ],
    PATHS: [
        (
            changed(PATHS, ("names = extra if", "names = list(value) if")),
            "['z']\" is no path in {'b'",
        ),
        (
            changed(PATHS, ("extra if isinstance(value, dict) else ", "")),
            "'[0][0]' is no path in {'b'",
        ),
        (
            changed(PATHS, ("{place}[{n!r}]", "{place}[{n}]")),
            "'[a][z]' is no path in",
        ),
        (
            changed(PATHS, ("{place}[{n!r}]", "[{n!r}]")),
            "expected that of 3",
        ),
        (
            """
def paths(value, place=""):
    if isinstance(value, dict):
        pairs = sorted(value.items())
    elif isinstance(value, (list, tuple)):
        pairs = enumerate(value)
    else:
        return [place]
    return [p for n, child in pairs for p in paths(child, f"{place}[{n!r}]")]
""",
            "leaves, and 4 paths came",
        ),
    ],
    MAP: [
        (
            changed(MAP, ("if same != structure:", "if False:")),
            "are of two structures: expected a ValueError",
        ),
        (
            changed(MAP, ("if same != structure:", "if len(found) != len(leaves):")),
            "are of two structures: expected a ValueError",
        ),
        (
            changed(MAP, ("raise ValueError", "raise TypeError")),
            "expected a ValueError",
        ),
        (
            """
def map_tree(function, first, *others):
    if isinstance(first, dict):
        return {k: map_tree(function, first[k], *(o[k] for o in others)) for k in first}
    if isinstance(first, (list, tuple)):
        return type(first)(map_tree(function, *row) for row in zip(first, *others))
    return function(first, *others)
""",
            "It raised TypeError at line 6 of map_tree: ",
        ),
        (
            changed(MAP, ("unflatten(structure, [", "list([")),
            "Minus of each leaf: expected {'b'",
        ),
    ],
    MIX: [
        (changed(MIX, ("range(5)", "range(4)")), "chapter 05"),
        (changed(MIX, (" + np.uint32(group + 1)", "")), "chapter 05"),
        (changed(MIX, ("ROTATIONS[group % 2]", "ROTATIONS[0]")), "chapter 05"),
        (
            changed(MIX, ("(b << ", "(b >>> "))
            .replace("(b >> ", "(b << ")
            .replace(">>>", ">>"),
            "chapter 05",
        ),
        (changed(MIX, ("b = a ^ b", "b = a | b")), "chapter 05"),
    ],
    SCHOOL: [
        (
            changed(SCHOOL, (", lambda t, z, x, y: x * t)", ", None)")),
            "chapter 06",
        ),
        (
            changed(SCHOOL, ("like(-t, z))", "like(t, z))")),
            "The change of sub by its second operand: At index 0: expected -1",
        ),
        (
            changed(SCHOOL, ("-t * x * y**-2", "t * x * y**-2")),
            "chapter 06",
        ),
        (
            changed(SCHOOL, ("(t + t * y) * (1.0 - y)", "t * (1.0 - y)")),
            "chapter 06",
        ),
        (
            changed(SCHOOL, ("t * (log(x) * z)", "t * (log(y) * z)")),
            "The change of pow by its second operand: At index",
        ),
        (
            changed(SCHOOL, ("-(t * sin(x))", "t * sin(x)")),
            "jvp of cos (At index 1: expected 0.498747, got -0.498747)",
        ),
        (
            changed(
                SCHOOL,
                (
                    'slopes("add", lambda t, z, x, y: like(t, z), '
                    "lambda t, z, x, y: like(t, z))",
                    'slopes("add", lambda t, z, x, y: t, lambda t, z, x, y: t)',
                ),
            ),
            "The change of add by its first operand: Its shape is (), not (3,)",
        ),
        (
            changed(SCHOOL, ('bind("dot_general", x, t, **params)', "0.0 * z")),
            "chapter 06",
        ),
    ],
    OUTSIDE: [
        (
            changed(OUTSIDE, ("operands + program.outputs:", "operands:")),
            "outside, and comes 0 times",
        ),
        (
            changed(OUTSIDE, ("else np.ndim(operand):", "else True:")),
            "Expected 3 things from outside, got 4",
        ),
        (
            changed(OUTSIDE, ("else np.ndim(operand):", "else False:")),
            "outside, and comes 0 times",
        ),
        (
            changed(
                OUTSIDE,
                ("set(program.inputs), {}", "set(program.inputs), []"),
                ("found[id(operand)] = operand", "found.append(operand)"),
                ("list(found.values())", "found"),
            ),
            "outside, and comes 2 times",
        ),
        (
            changed(OUTSIDE, ("set(program.inputs)", "set()")),
            "Expected 3 things from outside, got 4",
        ),
    ],
    ENTRIES: [
        (
            changed(ENTRIES, (", lambda c, x, y: x * c)", ")")),
            "chapter 07",
        ),
        (
            changed(ENTRIES, ("lambda c, x, y: -c)", "lambda c, x, y: c)")),
            "The cotangent of the second operand of sub: At index",
        ),
        (
            changed(ENTRIES, ("lambda c, x, y: c * y,", "lambda c, x, y: c / y,")),
            "chapter 07",
        ),
        (changed(ENTRIES, ("lambda c, x, y: c / y", "lambda c, x, y: c * y")), "chap"),
        (
            changed(
                ENTRIES,
                ("where(which, 0.0, c)", "WHERE"),
                ("where(which, c, 0.0)", "where(which, 0.0, c)"),
                ("WHERE", "where(which, c, 0.0)"),
            ),
            "chapter 07",
        ),
    ],
}
WRONG[PRODUCT] = [
    (
        changed(
            PRODUCT,
            ("transpose(found, tuple(int(i) for i in np.argsort(order)))", "found"),
        ),
        "",
    ),
    (
        changed(
            PRODUCT,
            ("met = [over_x[over_y.index(i)] for i in sorted(over_y)]", "met = over_x"),
        ),
        "the cotangent of the first operand",
    ),
    (
        changed(PRODUCT, ("[*batch_x, *free_x, *met]", "[*free_x, *batch_x, *met]")),
        "",
    ),
    (changed(PRODUCT, ("np.argsort(order)", "order")), ""),
    (
        changed(PRODUCT, ("(list(range(len(batch_x))), list(batch_y))", "([], [])")),
        "",
    ),
    (changed(PRODUCT, ('"dot_general", c, y', '"dot_general", c, -y')), "chapter 07"),
    (
        """
def dot_back(c, x, y, dimension_numbers):
    \"\"\"Each entry of x alone: right, and many products.\"\"\"
    (over_x, over_y), (batch_x, batch_y) = dimension_numbers
    shape = x.type.shape
    count = int(np.prod(shape))
    total = np.zeros(shape, np.float32)
    for one in np.eye(count, dtype=np.float32).reshape(count, *shape):
        z = bind("dot_general", one, y, dimension_numbers=dimension_numbers)
        axes = tuple(range(len(type_of(c).shape)))
        total = total + bind("reduce_sum", z * c, axes=axes) * one
    return total
""",
        "",
    ),
]
