"""Operations that ran outside of jit, each compiled by itself."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from minijax_lab.explain.flight_facts import Fault, Site
from minijax_lab.explain.flight_repairs import replaced_line
from minijax_lab.explain.user_source import Source

Place = tuple[str, int]  # a file and a line of it

# From so many operations outside of jit on, and so many seconds, they are told.
MOST_LOOSE = 8
LEAST_LOOSE = 0.1


@dataclass
class Loose:
    """Operations that ran outside of jit: their seconds, names and lines."""

    seconds: float = 0.0
    names: dict[str, int] = field(default_factory=dict)
    at: dict[Place, float] = field(default_factory=dict)
    ran: set[Place] = field(default_factory=set)  # also inside of a library's calls

    @property
    def programs(self) -> int:
        """How many were compiled: each tells of a trace, a lowering, a compiling."""
        return sum(self.names.values()) // 3

    @property
    def is_many(self) -> bool:
        """Whether they are enough to be told; one operation's shapes are told alone."""
        if len(self.names) < 2:
            return False
        return self.programs >= MOST_LOOSE and self.seconds >= LEAST_LOOSE

    def add(self, told: dict[str, Any], place: Place) -> None:
        """Adds what one line ran."""
        self.seconds += told["seconds"]
        self.at[place] = self.at.get(place, 0.0) + told["seconds"]
        self.ran |= told["ran"]
        for name, count in told["names"].items():
            self.names[name] = self.names.get(name, 0) + count

    def without(self, parts: list[Loose]) -> Loose:
        """What is left without parts of it."""
        left = Loose(self.seconds, dict(self.names), dict(self.at), set(self.ran))
        for part in parts:
            left.seconds -= part.seconds
            left.ran -= part.ran
            for name, count in part.names.items():
                left.names[name] -= count
            for place, spent in part.at.items():
                left.at[place] -= spent
        left.names = {name: n for name, n in left.names.items() if n > 0}
        left.at = {place: spent for place, spent in left.at.items() if spent > 1e-9}
        return left

    def dearest(self) -> list[Place]:
        """Its lines, the dearest first."""
        return sorted(self.at, key=lambda place: -self.at[place])


def loose_faults(
    heard: dict[tuple[Place, ...], dict[str, Any]], source_of: Callable[[str], Source]
) -> list[Fault]:
    """Operations outside of jit, at the calls of the user's that hold most of them.

    `heard` has them by the user's lines that led there, the outermost first; a
    call tells of what no line inside of it tells of.
    """
    below: dict[tuple, list[tuple]] = {}
    whole: dict[tuple, Loose] = {}
    for path, told in heard.items():
        for length in range(1, len(path) + 1):
            node = path[:length]
            if node not in whole:
                whole[node] = Loose()
                below.setdefault(node[:-1], []).append(node)
            whole[node].add(told, path[-1])
    found: list[Fault] = []

    def tell(node: tuple) -> None:
        kids = [kid for kid in below.get(node, []) if whole[kid].is_many]
        rest = whole[node].without([whole[kid] for kid in kids])
        together = rest.seconds > whole[node].seconds / 3 and len(node) > 1
        if not kids or together:
            found.append(operations(source_of(node[-1][0]), node[-1], whole[node]))
            return
        for kid in kids:
            tell(kid)
        if rest.is_many:
            found.append(operations(source_of(node[-1][0]), node[-1], rest))

    for root in below.get((), []):
        if whole[root].is_many:
            tell(root)
    return found


def operations(source: Source, place: Place, told: Loose) -> Fault:
    """Operations that run outside of jit, each a program of its own."""
    names = list(told.names)
    listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    words = (
        f"{told.programs:,} operations outside of jit were compiled one by one, "
        f"{told.seconds:.2g} s: {listed}"
    )
    others = [each for each in told.dearest() if each != place]
    if others:
        files = {file for file, _ in others}
        spent = sum(told.at[each] for each in others[:3])
        if files == {place[0]} and spent > told.seconds / 2:
            lines = [str(line) for _, line in others]
            words += f"; most of them by line {', '.join(lines[:3])}"
    write = "compute it inside of a function under jax.jit: one program in the "
    write += f"place of these {told.programs:,}"
    mended = []
    node: Any
    for node in ast.walk(source.statement(place[1]) or ast.Module([], [])):
        head = source.segment(node.func) if isinstance(node, ast.Call) else ""
        if head.endswith(".init") and node.lineno == place[1] and not others:
            # Flax: a module's init takes arrays, and flags such as `train`.
            jitted = f"jax.jit({', '.join([head, *static_arguments(node)])})"
            write = f"write {jitted}(...): one program in the place of "
            write += f"these {told.programs:,}"
            mended = [replaced_line(source, node.func, jitted)]
            break
    return Fault(
        "loose",
        *place,
        words,
        write,
        mended,
        count=told.programs,
        at_most=told.seconds,
        at=told.at,
        ran=told.ran,
    )


def static_arguments(call: ast.Call) -> list[str]:
    """How `jax.jit` is told of the arguments that a call writes as constants: a True
    that is traced cannot be asked for."""
    numbers = [
        str(number)
        for number, argument in enumerate(call.args)
        if isinstance(argument, ast.Constant)
    ]
    names = [
        f'"{keyword.arg}"'
        for keyword in call.keywords
        if keyword.arg and isinstance(keyword.value, ast.Constant)
    ]
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        numbers = []  # who knows how many
    told = [f"static_argnums=({', '.join(numbers)},)"] if numbers else []
    return told + ([f"static_argnames=({', '.join(names)},)"] if names else [])


def many_shapes(
    source: Source, site: Site, name: str, shapes: list[tuple[int, ...]]
) -> Fault:
    """One operation outside of jit that met many shapes: batches that differ, or the
    leaves of a tree, which no padding makes equal."""
    listed = ", ".join(str(shape) for shape in shapes[:3])
    name = "a lambda" if name == "<lambda>" else name
    words = f"the operation {name}, outside of jit, met {len(shapes)} shapes, one "
    words += f"program each: {listed}, ..."
    write = "pad the array to one size, or to a few (64, 128, 256), with NumPy, before "
    write += "JAX gets it"
    statement = source.statement(site.line)
    loop = source.loop(statement) if statement is not None else None
    heads = [statement, *([loop.iter] if isinstance(loop, ast.For) else [])]
    over_tree = any(
        getattr(node, "attr", getattr(node, "id", "")) in OF_TREES
        for head in heads
        for node in (ast.walk(head) if head is not None else ())
    )
    if over_tree or len({len(shape) for shape in shapes}) > 1:
        write = "compute it inside of a function under jax.jit: one program for all "
        write += "of these arrays"
        return Fault("leaves", site.file, site.line, words, write)
    return Fault("shape", site.file, site.line, words, write)


# What goes over the leaves of a tree.
OF_TREES = {"leaves", "tree_leaves", "tree_map", "tree_flatten", "flatten", "tree"}


def without_what_is_told(faults: list[Fault]) -> None:
    """Takes from operations outside of jit the seconds that other faults tell.

    Shapes that differ are told for each operation, at the line that it ran on; the
    same seconds are a part of all that this line compiled. Where the advice is the
    same, all together are told.
    """
    together = {place for fault in faults for place in fault.at}
    faults[:] = [
        f for f in faults if f.kind != "leaves" or (f.file, f.line) not in together
    ]
    told: dict[Place, float] = {}
    for fault in faults:
        if fault.kind != "loose" and fault.loose:
            place = fault.file, fault.line
            told[place] = told.get(place, 0.0) + fault.seconds
    for fault in faults:
        for place, spent in fault.at.items():
            taken = min(spent, told.get(place, 0.0))
            if taken:
                fault.at_most -= taken
                told[place] -= taken
    faults[:] = [f for f in faults if f.kind != "loose" or f.at_most >= LEAST_LOOSE]
