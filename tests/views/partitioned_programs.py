"""Prints, as JSON, what `see.collectives` says of programs on eight devices.

python tests/views/partitioned_programs.py jax|minijax
"""

import importlib
import json
import math
import re
import sys

import numpy as np

import minijax_widgets as see
from minijax_lab.explain.recording import Recording

LINE = re.compile(
    r"= (.*?) (all-reduce|all-gather|reduce-scatter|collective-permute|all-to-all)"
    r"(?:-start)?\((.*?)\), (.*)"
)
SIZES = {"f32": 4, "s32": 4, "bf16": 2, "pred": 1, "u32": 4}


def groups_of_axes(attributes):
    """The groups of `mesh['a'=2,'b'=4], device_ids=(...) {'b':(2)2}`, one by one."""
    named = re.search(r"mesh\[(.*?)\](?:, device_ids=\((.*)\))? \{(.*?)\}", attributes)
    sizes = {n: int(size) for n, size in re.findall(r"'(\w+)'=(\d+)", named[1])}
    order = np.arange(8)
    if named[2]:
        shape, turn = re.fullmatch(r"\[(.*)\]T\((.*)\)", named[2]).groups()
        order = order.reshape(json.loads(f"[{shape}]"))
        order = order.transpose(json.loads(f"[{turn}]")).reshape(-1)
    groups = {}
    for position in range(8):
        place, rest = {}, position
        for axis, size in reversed(sizes.items()):
            rest, place[axis] = divmod(rest, size)
        within = []
        for axis, before, length in re.findall(
            r"'(\w+)'(?::\((\d+)\)(\d+))?", named[3]
        ):
            inside = 1 if not before else sizes[axis] // (int(before) * int(length))
            length = int(length or sizes[axis])
            digit = place[axis] // inside % length
            within.append(digit)
            place[axis] -= digit * inside
        key = tuple(place.values())
        groups.setdefault(key, {})[tuple(within)] = int(order[position])
    return [[group[k] for k in sorted(group)] for group in groups.values()]


def groups_in(attributes):
    """The groups of an HLO line, as the text has them."""
    found = re.search(
        r"(?:replica_groups|source_target_pairs)=\{(\{.*?\})\}", attributes
    )
    if found is None:
        if "replica_groups={}" in attributes:
            return [list(range(8))]
        if "replica_groups=mesh" in attributes:
            return groups_of_axes(attributes)
        iota = re.search(
            r"replica_groups=\[(.*?)\]<=\[(.*?)\](?:T\((.*?)\))?", attributes
        )
        shape, sizes = ([int(n) for n in iota[k].split(",")] for k in (1, 2))
        table = np.arange(math.prod(sizes)).reshape(sizes)
        if iota[3]:
            table = table.transpose([int(n) for n in iota[3].split(",")])
        return table.reshape(shape).tolist()
    return [[int(n) for n in part.split(",")] for part in found[1][1:-1].split("},{")]


def bytes_of(types):
    """The bytes of arrays in an HLO text."""
    return sum(
        SIZES[kind] * math.prod(int(n) for n in sides.split(",") if n)
        for kind, sides in re.findall(r"(\w+)\[([\d,]*)\]", types)
    )


def counted(text, whole=""):
    """The collectives of a compiled program's text, or of a part of the whole, counted
    on their own."""
    types = dict(re.findall(r"%([\w.\-]+) = (\(.*?\)|\S+) ", whole or text))
    found = []
    for _, opcode, operands, attributes in LINE.findall(text):
        names = re.findall(r"%([\w.\-]+)", operands)
        given = sum(bytes_of(types[name]) for name in names)
        found.append([opcode, groups_in(attributes), given])
    return found


def main(name):
    library = importlib.import_module(name)
    library.config.update("jax_num_cpu_devices", 8)
    jnp = importlib.import_module(f"{name}.numpy")
    sharding = importlib.import_module(f"{name}.sharding")
    lax = importlib.import_module(f"{name}.lax")
    P, auto = sharding.PartitionSpec, sharding.AxisType.Auto
    mesh = library.make_mesh((4, 2), ("x", "y"), axis_types=(auto,) * 2)
    line = library.make_mesh((8,), ("i",), axis_types=(auto,))

    def on(mesh, *spec):
        return sharding.NamedSharding(mesh, P(*spec))

    def put(shape, *spec, mesh=mesh):
        values = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
        return library.device_put(values, on(mesh, *spec))

    def dot(a, b):
        c = a @ b
        return jnp.tanh(c)

    def looped(a, b):
        return lax.scan(lambda c, _: (c @ b, None), a, None, length=5)[0]

    a, b = put((8, 16), "x", "y"), put((16, 4), "y", None)
    programs = {
        "dot": (dot, (a, b)),
        "sum": (lambda a: jnp.sum(a), (a,)),
        "rows": (lambda a: jnp.sum(a, axis=0), (a,)),
        "softmax": (lambda a: library.nn.softmax(a, axis=-1), (a,)),
        "no collective": (lambda a: jnp.sin(a) * 2, (a,)),
        "transpose": (lambda a: a.T @ a, (a,)),
        "gather": (lambda a: jnp.sort(a, axis=1), (a,)),
        "reverse": (lambda a: a[::-1], (put((16, 4), "i", mesh=line),)),
        "roll": (lambda a: jnp.roll(a, 1, axis=0), (put((16, 4), "i", mesh=line),)),
        "loop": (looped, (put((8, 8), "x", "y"), put((8, 8), "y", None))),
    }
    jitted = {label: (library.jit(f), args) for label, (f, args) in programs.items()}
    jitted["resharded"] = (
        library.jit(lambda a: a + 1, out_shardings=on(mesh, "y", "x")),
        (a,),
    )
    if hasattr(library, "shard_map"):

        def manual(function, out_specs):
            cut = library.shard_map(
                function,
                mesh=mesh,
                in_specs=P("x", "y"),
                out_specs=out_specs,
                check_vma=False,
            )
            return library.jit(cut), (put((64, 16), "x", "y"),)

        ring = [(i, (i + 1) % 4) for i in range(4)]
        both = ("x", "y")
        jitted |= {
            "psum": manual(lambda z: lax.psum(z, "y"), P("x")),
            "psum of all": manual(lambda z: lax.psum(z, both), P()),
            "all_gather": manual(lambda z: lax.all_gather(z, "y"), P(None, "x")),
            "ppermute": manual(lambda z: lax.ppermute(z, "x", ring), P("x", "y")),
            "scatter": manual(
                lambda z: lax.psum_scatter(z, "x", tiled=True), P("x", "y")
            ),
            "all_to_all": manual(
                lambda z: lax.all_to_all(z, "x", 0, 0, tiled=True), P("x", "y")
            ),
        }
    found = {}
    for label, (function, args) in jitted.items():
        view = see.collectives(function, *args)
        record = view.recording
        text = function.lower(*args).compile().as_text()
        frame = view.frame()
        same = Recording.from_dict(json.loads(json.dumps(record.to_dict())))
        assert view.to_html()
        found[label] = {
            "recorded": [[c.opcode, c.groups, c.bytes] for c in record.collectives],
            "counted": counted(text),
            "axes": [c.axes for c in record.collectives],
            "times": [c.times for c in record.collectives],
            "lines": [c.line for c in record.collectives],
            "text": view.text(),
            "steps": [step.label for step in frame.steps],
            "same": same == record,
        }
    refused = []
    for wrong in (lambda: see.collectives(3), lambda: see.collectives(dot, a, b)):
        try:
            wrong()
            refused.append("")
        except TypeError as error:
            refused.append(str(error))
    print(json.dumps({"programs": found, "refused": refused}))


if __name__ == "__main__":
    main(sys.argv[1])
