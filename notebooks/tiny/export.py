"""tiny, a toy over NumPy. This piece: a program as a file, with its signature."""

import json
import re
from hashlib import sha256
from pathlib import Path

import numpy as np

import tiny.operations  # noqa: F401 (`run` binds its primitives)
from tiny.trace import Names, Tracer, Type, bind, trace, type_of
from tiny.tree import LEAF, REGISTRY, flatten, unflatten

WORDS = {"add_any": "add", "add": "add", "sub": "subtract", "mul": "multiply"}
WORDS.update(div="divide", neg="negate", exp="exponential", log="log")
WORDS.update(sin="sine", cos="cosine", tanh="tanh", sqrt="sqrt", pow="power")
WORDS["max"] = "maximum"
REDUCTIONS = {"reduce_sum": ("add", 0.0), "reduce_max": ("maximum", -np.inf)}
NUMBER = Type((), "f32")


def tensor(type):
    """A type in StableHLO's spelling: f32[2,3] is tensor<2x3xf32>."""
    return f"tensor<{'x'.join([*map(str, type.shape), type.dtype])}>"


def literal(number):
    if np.ndim(number):
        return f"[{', '.join(map(literal, number))}]"
    return f"{number:.8e}" if np.isfinite(number) else f"0x{number.view('u4'):08X}"


class Text:
    """The lines of a program in StableHLO, as they are written."""

    def __init__(self):
        self.names, self.lines = Names(), []

    def line(self, operation, thing=None):
        """Adds a line, and returns the name of its result, which stands for `thing`."""
        found = f"%{self.names[object() if thing is None else thing]}"
        self.lines.append(f"    {found} = stablehlo.{operation}")
        return found

    def constant(self, number, type):
        number = np.broadcast_to(np.asarray(number, np.float32), type.shape)
        return self.line(f"constant dense<{literal(number)}> : {tensor(type)}")

    def given(self, operand, type):
        """An operand as a name of this type: written out, or spread to it."""
        if not isinstance(operand, Tracer):
            return self.constant(operand, type)
        if operand.shape == type.shape:
            return f"%{self.names[operand]}"
        count = len(type.shape)
        return self.spread(operand, type, range(count - len(operand.shape), count))

    def spread(self, operand, type, axes, result=None):
        """The name of an operand that is repeated: its axes become these ones."""
        inside = f"{self.given(operand, type_of(operand))}, dims = {list(axes)}"
        types = f"({tensor(type_of(operand))}) -> {tensor(type)}"
        return self.line(f"broadcast_in_dim {inside} : {types}", result)


def write(text, equation):
    """Adds the line of an equation to a Text, after those that its operands need."""
    (result, *_), primitive, operands, params = equation
    type = result.type
    if primitive == "integer_pow":
        primitive, operands = "pow", (*operands, float(params["y"]))
    if primitive in WORDS:
        inside = ", ".join(text.given(operand, type) for operand in operands)
        text.line(f"{WORDS[primitive]} {inside} : {tensor(type)}", result)
    elif primitive in REDUCTIONS:
        word, start = REDUCTIONS[primitive]
        (x,), start = operands, text.constant(start, NUMBER)
        inside = f"({text.given(x, x.type)} init: {start}) applies stablehlo.{word}"
        inside += f" across dimensions = {list(params['axes'])}"
        types = f"({tensor(x.type)}, {tensor(NUMBER)}) -> {tensor(type)}"
        text.line(f"reduce{inside} : {types}", result)
    elif primitive == "broadcast_in_dim":
        text.spread(*operands, type, params["broadcast_dimensions"], result)
    elif primitive == "dot_general" and not any(params["dimension_numbers"][1]):
        (over_x, over_y), _ = params["dimension_numbers"]
        inside = ", ".join(text.given(x, type_of(x)) for x in operands)
        inside += f", contracting_dims = {over_x} x {over_y}"
        types = f"({', '.join(tensor(type_of(x)) for x in operands)}) -> {tensor(type)}"
        text.line(f"dot_general {inside} : {types}", result)
    else:
        raise TypeError(f"tiny cannot save the primitive {primitive} with {params}")


def stablehlo(program):
    """The program as text that XLA can read."""
    text = Text()
    arguments = [f"%{text.names[x]}: {tensor(x.type)}" for x in program.inputs]
    for equation in program.equations:
        write(text, equation)
    outputs = [text.given(x, type_of(x)) for x in program.outputs]
    types = ", ".join(tensor(type_of(x)) for x in program.outputs)
    head = f"  func.func public @main({', '.join(arguments)}) -> ({types}) {{"
    last = f"    return {', '.join(outputs)} : {types}"
    return "\n".join(["module @tiny {", head, *text.lines, last, "  }", "}"])


def run(text, leaves):
    """Does what the text says, line by line, with tiny's own primitives."""
    values = dict(zip(re.findall(r"(%\w+): tensor", text), leaves))
    meaning = {word: name for name, word in WORDS.items()}
    reductions = {word: name for name, (word, _) in REDUCTIONS.items()}
    lines = re.findall(r"(%\w+) = stablehlo\.(\w+)(.*) : .*tensor<(.*)>", text)
    for result, word, inside, type in lines:
        shape = tuple(map(int, type.split("x")[:-1]))
        operands = [values[name] for name in re.findall(r"%\w+", inside)]
        lists = [json.loads(found) for found in re.findall(r"\[[\d, ]*\]", inside)]
        if word == "constant":
            inside = inside.replace("0xFF800000", "-Infinity")
            numbers = json.loads(re.search("dense<(.*)>", inside)[1])
            value = np.broadcast_to(np.asarray(numbers, np.float32), shape)
        elif word == "broadcast_in_dim":
            value = bind(word, *operands, shape=shape, broadcast_dimensions=lists[0])
        elif word == "reduce":
            name = reductions[re.search(r"applies stablehlo\.(\w+)", inside)[1]]
            value = bind(name, operands[0], axes=tuple(lists[0]))
        elif word == "dot_general":
            value = bind(word, *operands, dimension_numbers=(lists, ([], [])))
        else:
            value = bind(meaning[word], *operands)
        values[result] = value
    return [values[name] for name in re.findall(r"%\w+", text.partition("return")[2])]


def tree_to_json(structure):
    if structure == LEAF:
        return LEAF
    kind, extra, parts = structure
    return [kind.__name__, extra, [tree_to_json(part) for part in parts]]


def tree_from_json(found):
    if found == LEAF:
        return LEAF
    name, extra, parts = found
    kinds = {kind.__name__: kind for kind in REGISTRY}
    return kinds[name], extra, [tree_from_json(part) for part in parts]


class Exported:
    """A program without its Python: text, and the signature of its arguments."""

    def __init__(self, text, types, tree, out_tree):
        self.text, self.types, self.tree, self.out_tree = text, types, tree, out_tree

    def __call__(self, *args):
        leaves = checked(self.types, self.tree, args)
        return unflatten(self.out_tree, run(self.text, leaves))


def exported(function, *args):
    """Traces the function for arguments of these types, and forgets it."""
    leaves, tree = flatten(args)
    program = trace(function, *args)
    text = stablehlo(program)
    return Exported(text, [type_of(leaf) for leaf in leaves], tree, program.tree)


def checked(types, tree, args):
    """The leaves of the arguments, if tree and types are those of the signature."""
    leaves, structure = flatten(args)
    if structure != tree:
        raise TypeError(f"the arguments are built as {structure}, not as {tree}")
    for position, (leaf, type) in enumerate(zip(leaves, types)):
        if type_of(leaf) != type:
            raise TypeError(f"leaf {position} is {type_of(leaf)}, not {type}")
    return leaves


MAGIC = b"tiny-export 1\n"


def save(kept, path):
    """Writes what the file is, a digest of the rest, and the rest as JSON."""
    trees = [tree_to_json(tree) for tree in (kept.tree, kept.out_tree)]
    body = json.dumps([kept.text, kept.types, *trees]).encode()
    Path(path).write_bytes(MAGIC + sha256(body).digest() + body)


def load(path):
    """Reads what `save` wrote; refuses any other file, and a damaged one."""
    contents = Path(path).read_bytes()
    start, rest = contents[: len(MAGIC)], contents[len(MAGIC) :]
    if start != MAGIC:
        raise ValueError(f"it begins with {start!r}: this is no program of tiny")
    digest, body = rest[:32], rest[32:]
    if sha256(body).digest() != digest:
        raise ValueError("the file is damaged: its digest is another one")
    text, types, tree, out_tree = json.loads(body)
    types = [Type(tuple(shape), dtype) for shape, dtype in types]
    return Exported(text, types, tree_from_json(tree), tree_from_json(out_tree))
