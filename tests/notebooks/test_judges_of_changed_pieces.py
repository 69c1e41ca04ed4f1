"""Pieces of `tiny`, the course's own with one thing changed: right still, or wrong.

A change is a pair of texts, or several. Each wrong one is a slip that a learner makes:
a sign, an axis, an entry that is forgotten, a case that nobody thought of.
"""

import pytest

from minijax_lab import tiny_pieces
from minijax_lab.piece_source import Written

# By piece: changes that leave it right.
SAME = {
    "attention.flash_attention": [
        ("scores.max(1, keepdims=True)", "np.max(scores, 1, keepdims=True)"),
    ],
    "attention.online_softmax": [
        ("larger = max(top, part.max())", "larger = np.maximum(top, np.max(part))"),
    ],
    "custom.remat": [
        ("found + body.inputs", "[*found, *body.inputs]"),
        ("flatten(args)[0]", "flatten(tuple(args))[0]"),
    ],
    "export.load": [
        ("sha256(body).digest() != digest", "digest != sha256(body).digest()"),
        ("Path(path).read_bytes()", 'open(path, "rb").read()'),
    ],
    "fuser.kernels_of": [
        ("fitting[0] if fitting", "min(fitting) if fitting"),
        (
            "home.update(dict.fromkeys(equation.results, chosen))",
            "home |= {r: chosen for r in equation.results}",
        ),
    ],
    "kernels.pallas_call": [
        ("refs[-1].nbytes", "refs[n].nbytes"),
        ("np.full(shape, np.nan, np.float32)", "np.zeros(shape, np.float32) * np.nan"),
    ],
    "loop_rules.cond_of_many": [
        ("no, yes = branches", "no, yes = branches[0], branches[1]"),
        ("if pred.axis is None:", "if not isinstance(pred.axis, int):"),
    ],
    "trace.bind": [
        ("key=OPEN.index", "key=lambda program: OPEN.index(program)"),
        ("if not tracers:", "if len(tracers) == 0:"),
    ],
    "cache.Jitted.key": [
        ("parts.append((type(arg), arg))", "parts.append((arg, type(arg)))"),
        (
            "(str(structure), *map(seen_of, leaves))",
            "(repr(structure), [*map(seen_of, leaves)].__repr__())",
        ),
    ],
    "tree.flatten": [
        ("leaves += found", "leaves.extend(found)"),
        (
            "children, extra = REGISTRY[type(value)][0](value)",
            "take = REGISTRY[type(value)][0]\n    children, extra = take(value)",
        ),
    ],
    "threefry.uniform": [
        ("| np.uint32(0x3F800000)", "+ np.uint32(0x3F800000)"),
        (
            "digits.view(np.float32) - np.float32(1)",
            "np.frombuffer(digits.tobytes(), np.float32) - 1",
        ),
    ],
    "tangents.slopes": [
        ("Dual(answer, total)", "Dual(value=answer, tangent=total)"),
        ('bind("add_any", total, part)', '(bind("add_any", total, part))'),
    ],
    "tangents.jvp": [
        (
            "map(Dual, flatten(primals)[0], flatten(tangents)[0])",
            "[Dual(p, t) for p, t in zip(flatten(primals)[0], flatten(tangents)[0])]",
        ),
        ("outside=Dual", "outside=lambda x: Dual(x, None)"),
    ],
    "linearize.linearize": [
        (
            "map(Dual, leaves, linear.inputs)",
            "[Dual(*pair) for pair in zip(leaves, linear.inputs)]",
        ),
        ("OPEN.remove(linear)", "OPEN.pop()"),
    ],
    "transposes.backward": [
        ("reversed(linear.equations)", "linear.equations[::-1]"),
        ('bind("add_any", known, c)', 'bind("add_any", c, known)'),
    ],
    "batching.entries_of_many": [
        ("if len(batched) == 1:", "if len(batched) == 1 and True:"),
        (
            "most = max(rank(x.value) - (x.axis is not None) for x in operands)",
            "most = max(rank(x.value) - int(x.axis is not None) for x in operands)",
        ),
    ],
    "batching.vmap": [
        ("strict=True", "strict=False"),
        ("(in_axes,) * len(args)", "tuple(in_axes for _ in args)"),
    ],
    "nesting.implicit": [
        ("-(change / slope)", "-change / slope"),
        ("-(change / slope)", "change / slope * -1.0"),
    ],
    "export.checked": [
        ("if structure != tree:", "if not structure == tree:"),
        (
            "if type_of(leaf) != type:",
            "found = type_of(leaf)\n        if found != type:",
        ),
    ],
    "placed.slices": [
        ("if size % count:", "if size % count != 0:"),
        (
            "slice(number * length, (number + 1) * length)",
            "slice(number * length, number * length + length)",
        ),
    ],
    "printing.threaded": [
        ("(*equation.operands, token)", "tuple([*equation.operands, token])"),
        ('equation.primitive == "print"', '"print" == equation.primitive'),
    ],
    "recurrence.recur_tangent": [("change + part", "part + change")],
    "recurrence.recur_transpose": [("(c,) = cotangents", "c = cotangents[0]")],
    "recurrence.recur_of_many": [("size_of(a, x)", "size_of(x, a)")],
    "intervals.product": [
        ("[a * b for a in x for b in y]", "[b * a for b in y for a in x]")
    ],
    "intervals.power": [("if y % 2:", "if y % 2 == 1:")],
    "intervals.bounds": [("Interval(x, x)", "Interval(low=x, high=x)")],
}

# By piece: changes that make it wrong.
SLIPS = {
    "attention.flash_attention": [
        ("total * shrink +", "total +"),
        ("np.sqrt(width)", "width"),
        ("top = larger", "pass"),
    ],
    "attention.online_softmax": [
        ("weight * np.exp(top - larger)", "weight"),
        ("top = larger", "top = part.max()"),
        ("return top, weight", "return weight, top"),
    ],
    "custom.remat": [
        ("*found, *flatten(args)[0]", "*flatten(args)[0]"),
        ("unflatten(body.tree, ", "(body.tree, "),
        (
            'bind("remat", *found, *flatten(args)[0], body=body)',
            "flatten(function(*args))[0]",
        ),
    ],
    "export.load": [
        ("rest[:32], rest[32:]", "rest[:16], rest[16:]"),
        ("tree_from_json(tree), tree_from_json(out_tree)", "tree, out_tree"),
        (
            "Exported(text, types, tree_from_json(tree), tree_from_json(out_tree))",
            "Exported(text, types, tree_from_json(out_tree), tree_from_json(tree))",
        ),
        ('raise ValueError("the file is damaged: its digest is another one")', "pass"),
    ],
    "fuser.kernels_of": [
        ("range(earliest, len(kernels))", "range(earliest + 1, len(kernels))"),
        ("range(earliest, len(kernels))", "range(len(kernels))"),
        ("fits(equation, kernels[k][0])", "True"),
    ],
    "kernels.pallas_call": [
        ("last[n] = numbers", "pass"),
        ("for place[:] in", "for where in"),
    ],
    "loop_rules.cond_of_many": [
        ("cond(pred.value, yes, no, *values)", "cond(pred.value, no, yes, *values)"),
        ("if pred.axis is None:", "if pred.axis is not None:"),
        ("[Batched(x, 0) for x in cond", "[Batched(x, None) for x in cond"),
    ],
    "trace.bind": [
        ("program = max(", "program = min("),
        (
            "program.equations.append(Equation(results, primitive, operands, params))",
            "pass",
        ),
        ("operands, params))", "operands, {}))"),
    ],
    "cache.Jitted.key": [
        ("(type(arg), arg)", "arg"),
        ("(type(arg), arg)", "type(arg)"),
        ("str(structure)", "0"),
        ("*map(seen_of, leaves)", "len(leaves)"),
        ("if position in self.static:", "if False:"),
    ],
    "tree.flatten": [
        ("structures.append(structure)", "structures.append(LEAF)"),
        ("(type(value), extra, structures)", "(type(value), None, structures)"),
        ("[value], LEAF", "[], LEAF"),
        ("leaves += found", "leaves.append(found)"),
    ],
    "threefry.uniform": [
        ("np.uint32(9)", "np.uint32(8)"),
        ("0x3F800000", "0x40000000"),
        (" - np.float32(1)", ""),
        ("digits.view(np.float32)", "digits.astype(np.float32)"),
    ],
    "tangents.slopes": [
        ("total = part if total is None else", "total ="),
        (
            "rule(dual.tangent, answer, *values, **params)",
            "rule(dual.tangent, *values, **params)",
        ),
        ("and dual.tangent is not None", ""),
        ("Dual(answer, total)", "Dual(total, answer)"),
        ("    TANGENTS[primitive] = both", "    return both"),
    ],
    "tangents.jvp": [
        ("TANGENTS", "AGAIN"),
        ("flatten(tangents)[0]", "flatten(primals)[0]"),
        ("tangent_of(dual)", "dual.tangent"),
        (", outside=Dual", ""),
        ("unflatten(program.tree, values),", "values,"),
    ],
    "linearize.linearize": [
        ("OPEN.append(linear)", "pass"),
        ("tangent_of(dual) for", "dual.value for"),
        (
            "[dual.value for dual in results]), linear",
            "[*map(tangent_of, results)]), linear",
        ),
        (", outside=Dual", ""),
    ],
    "transposes.backward": [
        ("isinstance(tracer, Tracer) and tracer.program is linear", "True"),
        ('bind("add_any", known, c)', "known"),
        (
            "for output, c in zip(linear.outputs, cotangents):\n        add(output, c)",
            "sums[linear.outputs[0]] = cotangents[0]",
        ),
        ("Unknown(o.type) if", "o if"),
    ],
    "batching.entries_of_many": [
        ("if len(batched) == 1:", "if True:"),
        ("if x.axis is not None and missing:", "if False:"),
        ("**params), axis)", "**params), 0)"),
        ("*[1] * missing, *shape[1:]", "*shape[1:], *[1] * missing"),
    ],
    "batching.vmap": [
        ("Many()", "BATCHING"),
        ("trace(function, *one)", "trace(function, *args)"),
        ("move(to_front(x, size), 0, out_axes)", "x.value"),
        ("to_front(x, size)", "to_front(x)"),
        (
            "in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)",
            "(in_axes,) * len(args)",
        ),
    ],
    "nesting.hvp": [
        ("(v,))[1]", "(v,))[0]"),
        ("jvp(grad(function)", "jvp(function"),
    ],
    "nesting.implicit": [
        ("-(change / slope)", "change / slope"),
        ("-(change / slope)", "-(slope / change)"),
        ("-(change / slope)", "-change"),
        ("program(a.value, x)", "program(x, a.value)"),
    ],
    "export.checked": [
        ("structure != tree", "False"),
        ("type_of(leaf) != type", "type_of(leaf).shape != type.shape"),
        ("type_of(leaf) != type", "type_of(leaf).dtype != type.dtype"),
        ("return leaves", "return args"),
    ],
    "placed.slices": [
        ("if size % count:", "if False:"),
        ("number * mesh[name] + place[name]", "number + place[name]"),
        ("number * mesh[name] + place[name]", "place[name]"),
        ("count = count * mesh[name]", "count = mesh[name]"),
        ("[*spec, *[None] * (len(shape) - len(spec))]", "[*spec]"),
    ],
    "printing.threaded": [
        ("[*program.outputs, token]", "[*program.outputs]"),
        ("[*program.inputs, token]", "[*program.inputs]"),
        ("(*equation.operands, token)", "equation.operands"),
        ("result.equations.append(equation)", "result.equations.insert(0, equation)"),
    ],
}


def changed(name: str, old: str, new: str) -> Written:
    source = str(tiny_pieces.course_source(name))
    assert old in source, (name, old)
    return Written(name, source.replace(old, new))


def cases(table):
    return [
        pytest.param(name, *pair, id=f"{name}-{number}")
        for name, pairs in table.items()
        for number, pair in enumerate(pairs)
    ]


@pytest.mark.parametrize("name, old, new", cases(SAME))
def test_a_piece_that_is_written_otherwise_is_taken(name, old, new):
    assert tiny_pieces.judge(changed(name, old, new)) is None


@pytest.mark.parametrize("name, old, new", cases(SLIPS))
def test_a_slip_is_refused_in_a_sentence(name, old, new):
    complaint = tiny_pieces.judge(changed(name, old, new))
    assert complaint is not None and len(complaint.split()) > 5
