"""Prints, as JSON, what two views say of programs that are hard to count in, cut over
eight devices, beside a count in the compiled text and in the arrays that came out.

python -m tests.views.claims.hard_on_devices jax|minijax
"""

import importlib
import json
import re
import sys

import minijax_widgets as see
from tests.views.claims.forty import UNSEEN
from tests.views.partitioned_programs import counted

CALLED = re.compile(
    r"(?:body|condition|to_apply|calls|branch_computations|\w+_computation)="
    r"({.*?}|%[\w.\-]+)"
)


def computations(text):
    """The lines of each computation of a compiled program's text, by name."""
    found, name = {}, ""
    for line in text.splitlines():
        opened = re.match(r"(ENTRY )?%?([\w.\-]+) \(.*{$", line)
        if opened:
            name = "ENTRY" if opened[1] else opened[2]
        found.setdefault(name, []).append(line)
    return found


def runs(text):
    """How often each computation runs, from the loops' known turns; None: unknown."""
    every = computations(text)
    times, todo = {"ENTRY": 1}, ["ENTRY"]
    while todo:
        outer = todo.pop()
        for line in every.get(outer, ()):
            turns = 1
            if " while(" in line:
                known = re.search(r'"known_trip_count":{"n":"(\d+)"', line)
                turns = int(known[1]) if known else None
            both = None not in (turns, times[outer])
            for part in CALLED.findall(line):
                for name in re.findall(r"%([\w.\-]+)", part):
                    times[name] = times[outer] * turns if both else None
                    todo.append(name)
    return every, times


def main(name):
    library = importlib.import_module(name)
    library.config.update("jax_num_cpu_devices", 8)
    sharding = importlib.import_module(f"{name}.sharding")
    auto = (sharding.AxisType.Auto,) * 2
    mesh = library.make_mesh((4, 2), ("x", "y"), axis_types=auto)
    found = {}
    for case in UNSEEN[12:]:
        for axis in "xy" if case.name == "equal_layers" else "x":
            cut = sharding.NamedSharding(mesh, sharding.PartitionSpec(axis))
            args = [library.device_put(arg, cut) for arg in case.args[:1]]
            whole = sharding.NamedSharding(mesh, sharding.PartitionSpec())
            args += [library.device_put(arg, whole) for arg in case.args[1:]]
            jitted = library.jit(case.make(library))
            text = jitted.lower(*args).compile().as_text()
            every, times = runs(text)
            collectives = []
            for computation, lines in every.items():
                here = counted("\n".join(lines), text)
                collectives += [[*one, times[computation]] for one in here]
            placed = see.placement(jitted, *args).recording
            sent = see.collectives(jitted, *args).recording
            results = [v.placed for v in placed.values if v.role == "result"]
            leaves = library.tree_util.tree_leaves(jitted(*args))
            pieces = [len({str(s.index) for s in x.addressable_shards}) for x in leaves]
            found[f"{case.name} over {axis}"] = {
                "told": sorted(
                    [c.opcode, c.groups, c.bytes, c.times] for c in sent.collectives
                ),
                "counted": sorted(collectives),
                "opcodes": sorted(c.opcode for c in placed.collectives),
                "sent": sent.headline,
                "placed": placed.headline,
                "results": [[len(one.pieces), one.copies] for one in results],
                "pieces": [[n, 8 // n] for n in pieces],
            }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
