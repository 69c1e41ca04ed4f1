"""Before the first launch over several processes: do all have the same program?

XLA does not ask. Different programs, or equal ones on different meshes, hang, abort, or
give wrong numbers. So each process writes down what it is about to compile, reads what
the others wrote, and raises an error that says who differs, and in what.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from minijax.core import errors
from minijax.core.runtime import jaxlib_version_text
from minijax.processes.connecting import state

# What is compared, in the order in which a difference is reported.
_FACTS = {
    "name": "the program is",
    "types": "the arguments have the types",
    "mesh": "the mesh is",
    "ins": "the arguments are cut as",
    "outs": "the results are cut as",
    "jaxlib": "jaxlib is",
    "text": "the programs themselves differ",
}
_LONGEST_TEXT = 2**20

# How many programs each group of processes has compared.
_compared: Counter[str] = Counter()


def compare(
    name: str, text: str, in_avals: Any, devices: Any, mesh: Any, ins: Any, outs: Any
) -> None:
    """Raises RuntimeError, in every process, unless all have the same program.

    Args:
      name: the program's name.
      text: the program, as it will be compiled.
      in_avals: the types of its arguments.
      devices: the devices it runs on, of several processes.
      mesh: the mesh.
      ins, outs: how arguments and results are cut; None where XLA chooses.
    """
    if state.store is None or state.member is None:
        return
    import json

    own = state.member.process_id
    group = sorted({device.process_index for device in devices})
    if own not in group:
        return
    where = ",".join(map(str, group))
    _compared[where] += 1
    number = _compared[where]
    facts = {
        "name": f"jit({name})",
        "types": _listed(aval.str_short() for aval in in_avals),
        "mesh": f"{_mesh(mesh)}, devices {[device.id for device in devices]}",
        "ins": _listed(map(_cut, ins)),
        "outs": _listed(map(_cut, outs)),
        "jaxlib": jaxlib_version_text,
        "text": _digest(text.encode()),
    }
    key = f"minijax/program/{where}/{number}"
    state.store.set(f"{key}/{own}", json.dumps(facts))
    what = f"jit({name}) is the {_ordinal(number)} program over several processes"
    read = _read_all(key, group, number, what)
    told = {process: json.loads(value) for process, value in read.items()}
    if all(other == facts for other in told.values()):
        return
    texts = {}
    if _first_difference(list(told.values())) == "text":
        state.store.set(f"{key}/{own}/text", text[:_LONGEST_TEXT])
        for process in group:
            texts[process] = state.store.get(f"{key}/{process}/text", 5.0) or ""
    raise errors.with_facts(RuntimeError(_told(number, told, texts)))


def compare_values(what: str, value: np.ndarray, devices: Any) -> None:
    """Raises AssertionError, in every process, unless all have the same values.

    Nothing is compared where only some of the processes have one of the devices.
    """
    if state.store is None or state.member is None:
        return
    group = sorted({device.process_index for device in devices})
    if len(group) != state.member.num_processes:
        return
    _compared["values"] += 1
    number = _compared["values"]
    digest = _digest(np.ascontiguousarray(value).tobytes())
    own = f"{value.dtype}[{','.join(map(str, value.shape))}] {digest}"
    key = f"minijax/value/{number}"
    state.store.set(f"{key}/{state.member.process_id}", own)
    told = _read_all(key, group, number, f"this is {what} number {number}")
    odd = [process for process, other in told.items() if other != told[group[0]]]
    if odd:
        from minijax.processes.coordinator import numbers

        error = AssertionError(
            f"the value passed to {what} is not the same on each process: "
            f"{numbers(odd)} {_differs(odd)} from process {group[0]}. Pass the same "
            "value everywhere; if each process holds other parts, use "
            "`minijax.make_array_from_process_local_data`."
        )
        raise errors.with_facts(error)


def _read_all(key: str, group: list[int], number: int, what: str) -> dict[int, str]:
    """What each process of a group has written; RuntimeError for one that does not."""
    assert state.store is not None
    told = {}
    for process in group:
        value = state.store.get(f"{key}/{process}", state.initialization_timeout)
        if value is None:
            error = RuntimeError(
                f"{what} here, and process {process} has not made its "
                f"{_ordinal(number)} within {state.initialization_timeout:g} s "
                "(initialization_timeout). Every process of a mesh makes the same "
                "calls in the same order."
            )
            raise errors.with_facts(error)
        told[process] = value
    return told


def _digest(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def _differs(processes: list[int]) -> str:
    return "differs" if len(processes) == 1 else "differ"


def _first_difference(each: list[dict[str, Any]]) -> str:
    differ = (fact for fact in _FACTS if len({one[fact] for one in each}) > 1)
    return next(differ, "text")


def _told(number: int, told: dict[int, dict], texts: dict[int, str]) -> str:
    """Which processes differ, and in what."""
    from minijax.processes.coordinator import numbers

    fact = _first_difference(list(told.values()))
    sides: dict[str, list[int]] = {}
    for process, facts in told.items():
        sides.setdefault(facts[fact], []).append(process)
    most = max(sides.values(), key=len)
    odd = sorted(set(told) - set(most))
    lines = [
        f"the processes have different programs: {numbers(odd)} {_differs(odd)} from "
        f"{numbers(most)} in the {_ordinal(number)} program over several processes."
    ]
    for value, processes in sides.items():
        shown = _where_they_differ(processes[0], texts) if fact == "text" else value
        own = f"in {numbers(processes)} {_FACTS[fact]}"
        lines.append(f"  {own}: {shown}")
    lines.append(
        "Every process of a mesh runs the same program: let the code, the shapes and "
        "the mesh not depend on process_index()."
    )
    return "\n".join(lines)


def _where_they_differ(process: int, texts: dict[int, str]) -> str:
    """The first line of a process's program that another one does not have."""
    columns = [text.splitlines() for text in texts.values()]
    own = texts[process].splitlines()
    for at, line in enumerate(own):
        if any(len(other) <= at or other[at] != line for other in columns):
            return f"at line {at + 1}, `{line.strip()[:200]}`"
    return f"after its line {len(own)}, its end"


def _listed(items: Any) -> str:
    return f"({', '.join(items)})"


def _cut(sharding: Any) -> str:
    if sharding is None:
        return "XLA chooses"
    return str(getattr(sharding, "spec", sharding))


def _mesh(mesh: Any) -> str:
    axes = ", ".join(f"{name!r}: {size}" for name, size in mesh.shape.items())
    return f"Mesh({axes})"


def _ordinal(number: int) -> str:
    is_teen = number % 100 in (11, 12, 13)
    ending = "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
