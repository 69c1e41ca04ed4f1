"""What the flight recorder advises: each fault, and the user's line repaired.

A fault is told only where something was lost, and its advice is what makes the cost go:
the tests obey it and record again.
"""

from __future__ import annotations

import ast
import dataclasses
import os
import re
from typing import Any

import numpy as np

from minijax_lab.explain.flight import Ear
from minijax_lab.explain.flight_facts import Constant, Fault, Leaf, Made, Miss, Site
from minijax_lab.explain.flight_keys import explain
from minijax_lab.explain.flight_loose import (
    loose_faults,
    many_shapes,
    without_what_is_told,
)
from minijax_lab.explain.flight_reads import decided_at, read_again
from minijax_lab.explain.flight_repairs import (
    above_the_loop,
    argument_at,
    argument_node,
    call_of,
    edited,
    free_names,
    hoisted,
    holds,
    host_reads,
    jit_call,
    kept_on_device,
    lifted,
    local_names,
    python_uses,
    replaced_line,
    set_in,
    unsettled,
    with_arguments,
    with_option,
    without_option,
    without_static,
)
from minijax_lab.explain.flight_writes import acted_on, assigned
from minijax_lab.explain.user_source import FUNCTIONS, Line, Source

# Collectives that the code does not name are told from so many bytes on.
LEAST_SENT = 1 << 16
# From so many on, reading an array is a habit and no single look at a result.
MOST_LOOKS = 3
# What JAX takes as an argument that is not static.
NUMBERS = (bool, int, float, complex, np.number, np.bool_)


def behind_statics(misses: list[Miss]) -> list[Miss]:
    """The misses, with what would cause them if no static argument changed.

    A ragged batch still costs a program after the static argument is mended; such a
    miss has in `also` the static arguments that changed with it.
    """
    changed = [c for m in misses if m.cause == "static" for c in m.changes]
    varied = {name for kind, name, _ in changed if kind == "static"}
    told: list[Miss] = []
    bare: list[Miss] = []
    for miss in misses:
        told.append(miss)
        if varied and miss.key is not None:
            statics = {n: v for n, v in miss.key.statics.items() if n not in varied}
            key = dataclasses.replace(miss.key, statics=statics)
            bare.append(dataclasses.replace(miss, key=key, nearest=None, changes=[]))
            explain(bare[-1], bare[:-1])
            kept = bare[-1].cause in ("shape", "structure", "type", "place")
            if miss.cause == "static" and kept:
                also = tuple(n for kind, n, _ in miss.changes if kind == "static")
                told[-1] = dataclasses.replace(bare[-1], also=also)
    return told


class Adviser:
    """Makes faults of what was heard."""

    def __init__(self, ear: Ear) -> None:
        self.ear = ear
        self.source = ear.source

    def faults(self) -> list[Fault]:
        """All faults, those that cost most first."""
        found: list[Fault] = []
        for made in self.ear.made.values():
            found += self.of_misses(made)
            found += self.of_donation(made)
        for site in self.ear.sites.values():
            found += self.of_waits(site)
        for constant in self.ear.constants.values():
            found.append(self.of_constant(constant))
        for site, pushed in self.ear.pushed.values():
            if pushed.same and site.calls > 1:
                found.append(self.of_pushed(site, pushed))
        for place, texts in self.ear.donations.items():
            found.append(self.of_unusable(place, texts))
        for place, told in self.ear.moves.items():
            if told["count"] >= MOST_LOOKS:
                found.append(self.of_moves(place, told))
        found += loose_faults(self.ear.loose, self.source)
        without_what_is_told(found)
        for fault in found:
            # A line that would not run is not told; the advice stands alone.
            files = {line.file for line in fault.lines}
            if not all(holds(self.source(file), fault.lines) for file in files):
                fault.lines = []
        found.sort(key=lambda fault: (-fault.seconds, -fault.bytes))
        return found

    # ---- misses --------------------------------------------------------------------

    def of_misses(self, made: Made) -> list[Fault]:
        """The avoidable misses of one line, a fault for each cause."""
        site = made.site
        if site is None:
            return []
        groups: dict[tuple, list[Miss]] = {}
        also: tuple[str, ...]
        for miss in behind_statics(made.misses):
            decided = {n for k, n, _ in miss.changes if k == miss.cause}
            names = tuple(sorted(decided))
            if miss.cause in ("static", "shape", "structure", "type", "place"):
                names = () if miss.cause == "structure" else names
                groups.setdefault((miss.also, miss.cause, names), []).append(miss)
            elif miss.cause in ("loop", "again", "settings"):
                groups.setdefault(((), miss.cause), []).append(miss)
        found = []
        for (also, cause, *rest), misses in groups.items():
            if isinstance(made.place, str) and not self.is_habit(cause, misses):
                continue
            fault = getattr(self, f"of_{cause}")(made, site, misses, *rest)
            if fault is not None:
                looped = cause != "loop" and ((), "loop") not in groups
                if looped and self.makes_anew(made, misses):
                    self.with_loop(fault, made, site, misses)
                for name in also:
                    # Neither alone saves a program.
                    both = self.of_static(made, site, misses, (name,))
                    named = re.match("(?:static argument )?`.*?`", both.words)
                    changed = named[0] if named else f"static argument `{name}`"
                    fault.words += f", and {changed} changed with it"
                    fault.write += f"; and {both.write}"
                    fault.lines += both.lines
                fault.seconds = sum(sum(m.seconds.values()) for m in misses)
                fault.count = len(misses)
                fault.loose = isinstance(made.place, str)
                found.append(fault)
        return found

    def makes_anew(self, made: Made, misses: list[Miss]) -> bool:
        """Whether a line jits anew for nearly each call, also for those that missed."""
        if isinstance(made.place, str) or made.objects < 2 * made.calls / 3:
            return False
        first: dict[int, Miss] = {}
        for miss in made.misses:
            first.setdefault(miss.object, miss)
        return made.objects > 2 and all(
            first[m.object].call == m.call for m in misses if m.object in first
        )

    def with_loop(
        self, fault: Fault, made: Made, site: Site, misses: list[Miss]
    ) -> None:
        """Adds to a fault that its jit is new each time: only both together help."""
        both = self.of_loop(made, site, made.misses[1:])
        fault.words += f", and {both.words}"
        fault.write = f"{both.write}; and then {fault.write}"
        mended = {line.line for line in both.lines}
        if mended & {line.line for line in fault.lines}:
            fault.lines = []
        fault.lines = both.lines + fault.lines

    def is_habit(self, cause: str, misses: list[Miss]) -> bool:
        """Whether an operation outside of jit compiles again and again at its line."""
        return cause != "static" and len(misses) >= MOST_LOOKS

    def of_loop(self, made: Made, site: Site, misses: list[Miss]) -> Fault:
        """A function that is jitted, or made, anew at each pass."""
        if isinstance(made.place, str):
            name, count = made.name, max(made.objects, len(misses) + 1)
            words = f"{name} gets a new function here at each pass: {count} compiled"
            write = (
                f"write the function that {name} is given once, above the loop, or "
                "call all this inside of one jitted function"
            )
            return Fault("loop", site.file, site.line, words, write)
        file, line = made.place
        here = "here" if (site.file, site.line) == made.place else f"at line {line}"
        words = f"a new jit of {shown(made.name)} is made {here} at each pass: "
        words += f"{made.objects} made, {len(made.misses)} programs compiled"
        write = "make it once, above the loop, and call that"
        lines: list[Line] = []
        source = self.source(file)
        statement = source.statement(line)
        call = jit_call(statement)
        loop = source.loop(statement) if statement is not None else None
        if isinstance(statement, FUNCTIONS[:2]):
            write = f"move {made.name}, with its decorator, above the loop"
            if loop is not None:
                sets = assigned(loop) | acted_on(source, loop)
                changed = free_names(statement) & sets - assigned(statement)
                above = f"# @jit and def {made.name}: move them here"
                lines = [source.mend(loop.lineno, "", above, "above the loop")]
                if changed:
                    write += f", and pass {', '.join(sorted(changed))} to it"
                    lines = []
            else:
                write = self.outside(source, statement, made)
        elif call is not None and loop is not None:
            lines, write = hoisted(source, statement, call, loop, write)
        elif call is not None:
            write = self.outside(source, statement, made)
            if not free_names(call) & local_names(source, statement):
                function = source.around(statement, FUNCTIONS[:2])
                if function is not None:
                    changing = unsettled(source, call, function)
                    if changing:
                        write = f"make it once outside of {function.name}, after "
                        write += f"what it reads, and pass {', '.join(changing)} to it"
                    else:
                        lines = lifted(source, statement, call, function)
        return Fault("loop", site.file, site.line, words, write, lines)

    def outside(self, source: Source, statement: Any, made: Made) -> str:
        """What to do where a function that is called again and again jits."""
        function = source.around(statement, FUNCTIONS[:2])
        name = function.name if function is not None else "the function around"
        if made.varied:
            # One that is kept for each value is a program for each value too.
            several = "`, `".join(sorted(made.varied))
            write = f"pass `{several}` as an argument, to one that is made once "
            write += f"outside of {name}"
            needed = [n for v in made.varied for n in python_uses(statement, v)]
            if needed:
                write += f" (Python needs its value at line {min(needed)})"
            return write
        write = f"make it once outside of {name}"
        marks = getattr(function, "decorator_list", [])
        if any("cache" in source.segment(mark) for mark in marks):
            return write
        return (
            f"{write}, or keep what {name} made and call that (@functools.cache above "
            "it, if its arguments can be hashed)"
        )

    def of_again(self, made: Made, site: Site, misses: list[Miss]) -> Fault:
        """The same call of the same function, whose program was gone."""
        words = f"{shown(made.name)} was compiled again for the same arguments"
        write = "do not clear the caches between, nor change what the context sets"
        return Fault("again", site.file, site.line, words, write)

    def of_settings(self, made: Made, site: Site, misses: list[Miss]) -> Fault:
        """Another setting of JAX, such as a precision or a mesh."""
        words = f"{shown(made.name)} is called under different settings of JAX"
        write = "set them once, around all of the calls"
        return Fault("settings", site.file, site.line, words, write)

    def of_static(
        self, made: Made, site: Site, misses: list[Miss], names: tuple[str, ...]
    ) -> Fault:
        """A static argument with many values."""
        changes = misses[-1].changes
        name = next((n for k, n, _ in changes if k == "static"), names[0])
        values = [m.key.statics.get(name) for m in made.misses if m.key is not None]
        different = len({repr(value) for value in values})
        words = f"static argument `{name}` took {different} values, one program each"
        keys = [m.key for m in made.misses if m.key is not None]
        for given in keys[-1].given:
            numbers = [key.given.get(given) for key in keys]
            many = len({repr(value) for value in numbers})
            if many == different > 1 and all(isinstance(n, NUMBERS) for n in numbers):
                return self.of_given(made, site, given, many)
        codes = {getattr(value, "__code__", None) for value in values}
        if len(codes) == 1 and None not in codes:
            words = f"static argument `{name}` is a new function at each call"
            write = f"make the function once, above the loop, and pass that as {name}"
            return Fault("static", site.file, site.line, words, write)
        if not all(isinstance(value, NUMBERS) for value in values):
            write = f"pass few values of `{name}`: each makes a program of its own"
            return Fault("static", site.file, site.line, words, write)
        write = f"take `{name}` out of the static arguments, and compute with it by jnp"
        lines: list[Line] = []
        if not isinstance(made.place, str):
            source = self.source(made.place[0])
            lines, uses = without_static(source, made.place[1], name)
            if uses:
                lines = []  # they alone would make that line raise
                listed = ", ".join(str(n) for n in uses[:3])
                write += f" (Python needs its value at line {listed})"
        return Fault("static", site.file, site.line, words, write, lines)

    def of_given(self, made: Made, site: Site, given: str, many: int) -> Fault:
        """A number of Python's that a library (Equinox) makes static."""
        words = f"`{given}` is a Python number, which this library's jit makes static: "
        words += f"it took {many} values, one program each"
        write = f"pass `{given}` as an array: jnp.asarray(...)"
        lines: list[Line] = []
        source = self.source(site.file)
        called = call_of(source.statement(site.line), made.name)
        node = argument_node(source, source.statement(site.line), given, made)
        if node is not None and called is not None:
            new = f"jnp.asarray({source.segment(node)})"
            lines = [replaced_line(source, node, new)]
        return Fault("static", site.file, site.line, words, write, lines)

    def of_shape(
        self, made: Made, site: Site, misses: list[Miss], names: tuple[str, ...]
    ) -> Fault:
        """Shapes that differ: the last rows, or many sizes."""
        keys = [m.key for m in made.misses if m.key is not None]
        name = next((n for k, n, _ in misses[-1].changes if k == "shape"), names[0])
        shapes = [
            leaf.shape for key in keys for leaf in key.leaves if leaf.path == name
        ]
        different = list(dict.fromkeys(shapes))
        full, last = different[0], misses[-1]
        if isinstance(made.place, str) and not made.users:
            return many_shapes(self.source(site.file), site, made.name, different)
        now = next(leaf.shape for leaf in last.key.leaves if leaf.path == name)  # type: ignore[union-attr]
        if len(different) == 2 and full and now and full[1:] == now[1:]:
            big = max(full[0], now[0])
            words = f"`{name}` has {full} and sometimes {now}"
            write = f"drop the last rows, or pad `{name}` to {big} and mask"
            lines = self.ragged(site, name, big, made)
        else:
            listed = ", ".join(str(shape) for shape in different[:3])
            more = ", ..." if len(different) > 3 else ""
            words = f"`{name}` came in {len(different)} shapes: {listed}{more}"
            write = f"pad `{name}` to one size, or to a few (64, 128, 256)"
            lines = []
        return Fault("shape", site.file, site.line, words, write, lines)

    def ragged(self, site: Site, name: str, full: int, made: Made) -> list[Line]:
        """The loop over whole batches only, or a test before the call."""
        source = self.source(site.file)
        statement = source.statement(site.line)
        loop = source.loop(statement) if statement is not None else None
        if isinstance(loop, ast.For):
            call: Any = loop.iter
            named = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
            if named == "range" and len(call.args) == 3:
                a, b, c = (source.segment(arg) for arg in call.args)
                new = f"range({a}, {b} - {c} + 1, {c})"
                head = source.text(loop.lineno)
                return [
                    source.mend(
                        loop.lineno, head, head.replace(source.segment(call), new)
                    )
                ]
        argument = argument_at(source, statement, name, made)
        if statement is None or not argument:
            return []
        text = source.text(site.line)
        new = f"if len({argument}) == {full}: {text}"
        return [source.mend(site.line, text, new)]

    def of_structure(
        self, made: Made, site: Site, misses: list[Miss], names: tuple[str, ...]
    ) -> Fault:
        """Other containers, or other leaves in them."""
        told = next(told for kind, _, told in misses[-1].changes if kind == "structure")
        words = f"the arguments of {shown(made.name)} changed their structure: {told}"
        write = "pass the same containers with the same entries at each call"
        lacks = re.match(r"(?:new|gone) ([^;]*)", told)
        if lacks:
            write += f": where there is no {lacks[1]}, pass zeros in its place"
        return Fault("structure", site.file, site.line, words, write)

    def of_place(
        self, made: Made, site: Site, misses: list[Miss], names: tuple[str, ...]
    ) -> Fault:
        """The same arrays in another place."""
        (told, *_) = [f"`{n}`: {t}" for k, n, t in misses[-1].changes if k == "place"]
        words = f"arguments lie in another place: {told}"
        write = "put them there once, with jax.device_put, before the first call"
        return Fault("place", site.file, site.line, words, write)

    def of_type(
        self, made: Made, site: Site, misses: list[Miss], names: tuple[str, ...]
    ) -> Fault:
        """A dtype or a weak type that drifts: its first value is the one to mend."""
        miss = misses[-1]
        name = next(n for k, n, _ in miss.changes if k == "type")
        nearest = miss.nearest.key if miss.nearest is not None else None
        was, now = leaf_at(nearest, name), leaf_at(miss.key, name)
        assert was is not None and now is not None
        others = len(names) - 1
        more = f" (and {others} more)" if others else ""
        if was.python and now.python:
            kinds = was.kind, now.kind
            words = f"`{name}`{more} is a Python {kinds[0]} and a Python {kinds[1]} by "
            words += "turns"
            kind = kinds[0] if rank(was.dtype) >= rank(now.dtype) else kinds[1]
            write = f"pass a {kind} each time: {kind}(...)"
            lines = self.passed(site, name, kind, made)
        elif self.is_state(site, made, name) or (miss.call == 2 and len(misses) == 1):
            words = f"`{name}`{more} was {was.type} at first and is {now.type}"
            write = f"start it as an array of dtype {now.dtype}"
            lines = self.started(site, made, name, now.dtype)
            leaves = nearest.leaves if nearest is not None else []
            wider = [leaf.path for leaf in leaves if leaf.dtype == now.dtype]
            if wider and "weak" not in was.type and rank(was.dtype) < rank(now.dtype):
                # Perhaps by this one: no result says what it was computed from.
                write = (
                    f"if `{wider[0]}` widens it, pass `{wider[0]}` as {was.dtype}; "
                    f"or {write}"
                )
                lines = []
        else:
            wide = was.dtype if rank(was.dtype) >= rank(now.dtype) else now.dtype
            words = f"`{name}`{more} is {was.type} and {now.type} by turns"
            write = f"pass it as {wide} each time: jnp.asarray(..., '{wide}')"
            lines = self.passed(site, name, wide, made)
        return Fault("type", site.file, site.line, words, write, lines)

    def is_state(self, site: Site, made: Made, path: str) -> bool:
        """Whether the line that calls sets the argument for the next call."""
        source = self.source(site.file)
        statement = source.statement(site.line)
        node = argument_node(source, statement, path, made)
        targets = getattr(statement, "targets", [])
        set_here = {source.segment(each) for t in targets for each in ast.walk(t)}
        return node is not None and source.segment(node) in set_here

    def started(self, site: Site, made: Made, path: str, dtype: str) -> list[Line]:
        """The line where a field of the state gets its first value."""
        field_name = path.replace("']", "").replace("['", ".").split(".")[-1]
        source = self.source(site.file)
        root = path.partition("[")[0].partition(".")[0]
        names = {field_name}
        if field_name == root:
            given = argument_at(source, source.statement(site.line), root, made)
            names |= {given, f"self.{given.rpartition('.')[2]}"}
        found = []
        for node in ast.walk(source.tree):
            value = None
            if isinstance(node, ast.keyword) and node.arg in names:
                value = node.value
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                if source.segment(node.targets[0]) in names:
                    value = node.value
            elif isinstance(node, ast.Dict):
                for key, each in zip(node.keys, node.values):
                    if isinstance(key, ast.Constant) and key.value in names:
                        value = each
            if isinstance(value, ast.Constant) and not isinstance(value.value, str):
                found.append(value)
        if len(found) != 1:
            return []
        (value,) = found
        return [replaced_line(source, value, f"jnp.{dtype}({source.segment(value)})")]

    def passed(self, site: Site, name: str, dtype: str, made: Made) -> list[Line]:
        """The call, with the argument made an array of one dtype."""
        source = self.source(site.file)
        node = argument_node(source, source.statement(site.line), name, made)
        if node is None or "[" in name or "." in name:
            return []
        text = source.segment(node)
        new = f"jnp.asarray({text}, '{dtype}')"
        if dtype in ("bool", "int", "float", "complex"):
            new = f"{dtype}({text})"
        return [replaced_line(source, node, new)]

    # ---- waits ---------------------------------------------------------------------

    def of_waits(self, site: Site) -> list[Fault]:
        """A line that brings an array to the host again and again."""
        # A library that waits by itself (how is "") does so whatever the user writes.
        waits = {how: count for how, count in site.waits.items() if how}
        count = sum(waits.values())
        if count < MOST_LOOKS:
            return []
        source = self.source(site.file)
        statement = source.statement(site.line)
        decides = decided_at(source, site.line)
        if decides:
            return [self.of_decision(site, decides, count)]
        if statement is None or source.loop(statement) is None:
            if source.around(statement, FUNCTIONS[:2]) is None:
                return []  # behind the loop: as advised
        synced = set(waits) == {"block_until_ready"}
        words = f"this line brought an array to the host {count:,} times"
        if synced:
            words = f"this line waited for the device {count:,} times"
        spent = site.seconds.get("wait", 0.0)
        words += f", {spent:.2g} s of waiting"
        write = "keep it on the device, and read it after the loop: jax.device_get"
        if synced:
            write = "wait once, after the loop"
        again = read_again(source, statement)
        mended = [
            kept_on_device(source, each, count >= 100) for each in [statement, *again]
        ]
        lines = sum(mended, []) if all(mended) else []
        uses = [] if lines else host_reads(source, statement)
        if uses:
            listed = ", ".join(str(line) for line in uses[:3])
            write = (
                f"the loop needs the value at line {listed}: this wait goes only if "
            )
            write += "that is computed on the device too (in jit, or by jax.lax.scan)"
        elif not lines and not synced:
            write = "keep it on the device; read it each 100 steps, or after the loop"
        if again:
            listed = ", ".join(str(each.lineno) for each in again[:3])
            write += (
                f"; line {listed} reads the same array: mend both, or it waits there"
            )
        return [
            Fault(
                "wait",
                site.file,
                site.line,
                words,
                write,
                lines,
                site.waits_of_host,
                site.copied,
                count,
            )
        ]

    def of_decision(self, site: Site, at: int, count: int) -> Fault:
        """A value by which Python decides at a line: it has to come to the host."""
        words = f"this line brought an array to the host {count:,} times: Python "
        words += "decides by its value"
        if at != site.line:
            words += f" at line {at}"
        write = "it cannot stay on the device unless the device decides: jnp.where in "
        write += "the place of the test, or jax.lax.while_loop in that of the loop"
        if isinstance(self.source(site.file).statement(at), (ast.For, ast.While)):
            write = "it cannot stay on the device unless the loop runs there: "
            write += "jax.lax.while_loop, in a jitted function"
        file, line = site.file, site.line
        size = site.copied
        return Fault("wait", file, line, words, write, bytes=size, count=count)

    # ---- bytes ---------------------------------------------------------------------

    def of_constant(self, constant: Constant) -> Fault:
        """An array that is baked into programs."""
        times = (
            f"{constant.programs} programs" if constant.programs > 1 else "a program"
        )
        # An array whose name is not sure is told by its type.
        array = f"`{constant.name}`" if constant.name else f"an array {constant.type}"
        readers = constant.readers[:3]
        at = ", ".join(self.place(each, constant) for each in readers)
        words = f"{array} ({constant.bytes:,} bytes) is baked into {times}"
        words += f"; line {at} reads it" if readers else ""
        write = f"pass {array.replace('an array', 'the array')} as an argument"
        made = self.ear.made.get(constant.made)
        lines: list[Line] = []
        if made is not None and constant.name.isidentifier():
            lines = self.as_argument(made, constant.name, constant.readers)
        if made is not None and not lines and not self.is_inside(made, readers):
            file, line = readers[0]
            source = self.source(file)
            inner = source.around(source.statement(line), FUNCTIONS[:2])
            of = f", and on to {inner.name}" if inner is not None else ""
            write += f" of {shown(made.name)}{of}, where line {at} reads it"
        return Fault(
            "constant",
            constant.file,
            constant.line,
            words,
            write,
            lines,
            0.0,
            constant.bytes * constant.programs,
            constant.programs,
        )

    def place(self, reader: tuple[str, int], constant: Constant) -> str:
        """A line's number, with its file where that is another one."""
        file, line = reader
        another = file != constant.file
        return f"{line} of {os.path.basename(file)}" if another else str(line)

    def is_inside(self, made: Made, readers: list[tuple[str, int]]) -> bool:
        """Whether all that reads a constant stands in the jitted function itself."""
        function = self.source(made.code_file).statement(made.code_line)
        if function is None:
            return not readers
        first, last = function.lineno, function.end_lineno
        return all(
            file == made.code_file and first <= line <= last for file, line in readers
        )

    def as_argument(
        self, made: Made, name: str, readers: list[tuple[str, int]]
    ) -> list[Line]:
        """The head of the function and its calls, with one argument more."""
        if not self.is_inside(made, readers):
            return []  # what it calls would read the old one
        source = self.source(made.code_file)
        function = source.statement(made.code_line)
        if not isinstance(function, FUNCTIONS[:2]) or function.name != made.name:
            return []
        head = with_arguments(function.args, [name])
        returns = f" -> {source.segment(function.returns)}" if function.returns else ""
        new = f"def {function.name}({ast.unparse(head)}){returns}:"
        old = source.text(function.lineno)
        if not old.endswith(":") or made.site is None or made.site.file != source.file:
            return []
        if any("jit" not in ast.unparse(d) for d in function.decorator_list):
            return []  # such as vmap, which would split it
        names = {made.name, *self.bound_to(made)}
        edits = []
        scope = set_in(source, name, function)
        for read in ast.walk(source.tree):
            if not isinstance(getattr(read, "ctx", None), ast.Load):
                continue
            if not {ast.unparse(read), getattr(read, "attr", "")} & names:
                continue
            call = source.parents[read]
            if call is jit_call(call):
                continue  # `step = jax.jit(f)`
            direct = isinstance(call, ast.Call) and call.func is read
            if not direct or set_in(source, name, call) is not scope:
                return []  # jax.vmap(f) would have it too
            given = f"{name}={name}" if call.keywords or head.kwonlyargs else name
            between = ", " if call.args or call.keywords else ""
            end = call.end_col_offset - 1  # type: ignore[operator]
            edits.append((call.end_lineno or 0, end, end, between + given))
        calls = edited(source, edits)
        return [source.mend(function.lineno, old, new), *calls] if calls else []

    def bound_to(self, made: Made) -> list[str]:
        """The names of `step = jax.jit(f)`."""
        if isinstance(made.place, str):
            return []
        source = self.source(made.place[0])
        statement = source.statement(made.place[1])
        if not isinstance(statement, ast.Assign) or jit_call(statement) is None:
            return []
        return [source.segment(target) for target in statement.targets]

    def of_pushed(self, site: Site, pushed: Any) -> Fault:
        """The same NumPy array, copied to the device at each call."""
        words = (
            f"the same NumPy array `{pushed.path}` ({pushed.bytes:,} bytes) is copied "
            f"to the device at each of {site.calls:,} calls"
        )
        write = "put it on the device once: jax.device_put, above the loop"
        source = self.source(site.file)
        statement = source.statement(site.line)
        loop = source.loop(statement) if statement is not None else None
        made = next((m for m in self.ear.made.values() if m.site is site), None)
        name = argument_at(source, statement, pushed.path, made) if made else ""
        lines = []
        # What the loop sets has no value above it, or another one.
        if loop is not None and name.isidentifier() and name not in assigned(loop):
            new = f"{name} = jax.device_put({name})"
            lines = [source.mend(loop.lineno, "", new, "above the loop")]
        return Fault(
            "pushed",
            site.file,
            site.line,
            words,
            write,
            lines,
            0.0,
            pushed.bytes * site.calls,
            site.calls,
        )

    def of_moves(self, place: tuple[str, int], told: dict[str, Any]) -> Fault:
        """An array that is copied from device to device again and again."""
        words = (
            f"this line copied an array {told['count']:,} times from {told['from']} "
            f"to {told['to']}, {told['bytes']:,} bytes in all"
        )
        write = "put it there once, above the loop, or compute where it lies"
        lines = above_the_loop(self.source(place[0]), place[1])
        return Fault(
            "device",
            *place,
            words,
            write,
            lines,
            bytes=told["bytes"],
            count=told["count"],
        )

    def of_unusable(self, place: tuple[str, int], texts: list[str]) -> Fault:
        """Donated arguments that no result could be written over."""
        arrays = texts[0].partition(": ")[2].partition("\n")[0].strip(" .")
        words = f"donated buffers were not usable: {arrays}"
        write = "remove donate_argnums, or return a result of the same shape and dtype"
        made = next(
            (
                m
                for m in self.ear.made.values()
                if m.donated
                and m.site is not None
                and (m.site.file, m.site.line) == place
            ),
            None,
        )
        lines: list[Line] = []
        if made is not None and not isinstance(made.place, str):
            source = self.source(made.place[0])
            lines = without_option(source, made.place[1], ("donate_arg",))
        return Fault(
            "unusable", *place, words, write, lines, 0.0, bytes_in(arrays), len(texts)
        )

    def of_exchange(self, made: Made, facts: Any, calls: int) -> Fault | None:
        """Arrays that are gathered or sent on because of how they lie."""
        unasked = [
            each
            for each in facts.exchanges
            if not each.asked and each.name != "all-reduce" and each.bytes >= LEAST_SENT
        ]
        if not unasked or made.site is None:
            return None
        size = sum(each.bytes for each in unasked)
        named = ", ".join(
            f"{each.name} of {each.bytes:,} bytes"
            + (f" for line {each.line}" if each.line else "")
            for each in unasked[:3]
        )
        words = f"collectives that nobody wrote, at each of {calls:,} calls: {named}"
        write = (
            "shard the operands along the axes that the operation keeps apart, or say "
            "with jax.lax.with_sharding_constraint where the result shall lie"
        )
        file, line = made.site.file, made.site.line
        size *= max(1, calls)
        return Fault("exchange", file, line, words, write, bytes=size, count=calls)

    def of_donation(self, made: Made) -> list[Fault]:
        """A large argument whose successor is written beside it."""
        large = {name: size for name, size in made.passed_on.items() if size >= 1 << 20}
        if not large or made.site is None or isinstance(made.place, str):
            return []
        names = tuple(large)
        size = sum(large.values())
        words = f"`{'`, `'.join(names)}` ({size:,} bytes) is not donated: the old and "
        words += "the new one are in memory together"
        listed = ", ".join(f'"{name}"' for name in names)
        option = f"donate_argnames=({listed},)"
        write = f"jit with {option}, if the old one is read no more"
        lines = with_option(self.source(made.place[0]), made.place[1], option)
        file, line = made.site.file, made.site.line
        fault = Fault("donate", file, line, words, write, lines, bytes=size, count=1)
        return [fault]


def shown(name: str) -> str:
    """A function's name; a lambda by that word."""
    return "a lambda" if name == "<lambda>" else name


def leaf_at(key: Any, path: str) -> Leaf | None:
    """The leaf of a path."""
    leaves = key.leaves if key is not None else []
    return next((leaf for leaf in leaves if leaf.path == path), None)


def rank(dtype: str) -> tuple[int, int]:
    """How wide a dtype is: its kind, then its bits."""
    kinds = ("bool", "uint", "int", "bfloat", "float", "complex")
    kind = max((n for n, k in enumerate(kinds) if dtype.startswith(k)), default=0)
    bits = "".join(c for c in dtype if c.isdigit())
    return kind, int(bits or 0)


BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "uint32": 4}


def bytes_in(arrays: str) -> int:
    """The bytes of arrays as JAX's warning lists them: float32[3,4], ..."""
    total = 0
    for dtype, sizes in re.findall(r"(\w+)\[([\d,]*)\]", arrays):
        count = 1
        for size in sizes.split(","):
            count *= int(size or 1)
        total += count * BYTES.get(dtype, 2)
    return total
