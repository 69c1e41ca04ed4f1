"""The recording behind `see.vmap`: what each equation of one example became.

The function is traced for one example. Its equations are then bound one after another
under minijax's own `BatchTrace`, as `vmap` does it, and it is noted what each batching
rule wrote. So each equation of one example has its batched equations: the one that
does its work, and those that the rule inserted before or after it. A value's batch axis
is where the engine's tracers say that it is; through inserted equations it is followed
by their parameters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minijax
from minijax.core.language import (
    Atom,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    ShapedArray,
    Var,
    eval_jaxpr,
    jaxprs_in_params,
)
from minijax_lab.explain import batch_reasons as reasons
from minijax_lab.explain.batch_facts import (
    BatchedEquation,
    BatchRecording,
    Grid,
    Row,
    Value,
)
from minijax_lab.explain.batch_watching import Call, Written, title
from minijax_lab.explain.foreign_programs import ForeignProgram, taken
from minijax_lab.explain.recording import Sources, count_in_words, later
from minijax_lab.explain.residuals import letter_names, literal_text, operation
from minijax_lab.explain.small_values import check_choice


def record_vmap(
    function: Callable[..., Any],
    *args: Any,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    axis_name: Any = None,
    values: bool = False,
    **kwargs: Any,
) -> BatchRecording:
    """Records how `vmap(function, in_axes, out_axes, ...)` batches its equations.

    Arguments are those of the batched function; `ShapeDtypeStruct`s serve as well. With
    `values` the program is run on them, to know which branch of a `cond` each example
    takes. The function may be a jaxpr that JAX traced for one example. Raises what
    `vmap` raises, and TypeError for a function of JAX.
    """
    check_choice(values, "see.vmap", args, kwargs)
    function, args = taken(function, args, "see.vmap")
    if isinstance(function, ForeignProgram) and not args:
        args = batched_types(function, in_axes, axis_size)
    if not callable(function):
        raise TypeError(
            f"see.vmap takes a function and its arguments, and got "
            f"{type(function).__name__} first."
        )
    pass_over = Call(function, args, kwargs, in_axes, out_axes, axis_size, axis_name)
    if values:
        pass_over.check_values()
        return Recorder(pass_over, values).recording()
    # Texts and names are needed only by who looks.
    return later(BatchRecording, Recorder(pass_over, values).recording)


def batched_types(
    program: ForeignProgram, in_axes: Any, axis_size: int | None
) -> tuple[minijax.ShapeDtypeStruct, ...]:
    """The types of a batch of a jaxpr's inputs, where no arguments are given."""
    if axis_size is None:
        raise TypeError(
            "see.vmap got a jaxpr of JAX and no arguments: pass batched arguments, or "
            "say with axis_size= how many examples there are."
        )
    given = program.types
    axes = [in_axes] * len(given) if isinstance(in_axes, int) else list(in_axes)
    if len(axes) != len(given):
        raise ValueError(
            f"see.vmap got in_axes={in_axes!r} for a jaxpr with {len(given)} inputs "
            f"({', '.join(program.input_names[:6])}): pass an axis or None for each."
        )
    found = []
    for one, axis in zip(given, axes):
        shape = list(one.shape)
        if axis is not None:
            place = axis % (len(shape) + 1)
            shape.insert(place, axis_size)
        found.append(
            minijax.ShapeDtypeStruct(shape, one.dtype, weak_type=one.weak_type)
        )
    return tuple(found)


def programs_of(eqn: JaxprEqn) -> list[tuple[str, Jaxpr, list[Atom | None]]]:
    """The programs that an equation runs: (which, program, what its inputs are).

    An input that is an operand of the equation is that atom; else None.
    """
    params, invars = eqn.params, list(eqn.invars)
    name = eqn.primitive.name
    if name == "cond":
        return [
            (f"branch {number}", branch.jaxpr, [*invars[1:]])
            for number, branch in enumerate(params["branches"])
        ]
    if name == "while":
        of_condition, of_body = params["cond_nconsts"], params["body_nconsts"]
        carry = [None] * (len(invars) - of_condition - of_body)
        first = invars[:of_condition]
        second = invars[of_condition : of_condition + of_body]
        return [
            ("condition", params["cond_jaxpr"].jaxpr, [*first, *carry]),
            ("each turn", params["body_jaxpr"].jaxpr, [*second, *carry]),
        ]
    if name == "scan":
        consts = params["num_consts"]
        rest = [None] * (len(invars) - consts)
        return [("each turn", params["jaxpr"].jaxpr, [*invars[:consts], *rest])]
    found = list(jaxprs_in_params(params))
    known = name in reasons.CALLS
    result: list[tuple[str, Jaxpr, list[Atom | None]]] = []
    for jaxpr in found:
        alike = known and len(jaxpr.invars) == len(invars)
        result.append(("", jaxpr, [*invars] if alike else [None] * len(jaxpr.invars)))
    return result


def count_equations(jaxpr: Jaxpr) -> int:
    """The equations of a program, with those of the programs inside."""
    return sum(
        1 + sum(count_equations(inner) for inner in jaxprs_in_params(eqn.params))
        for eqn in jaxpr.eqns
    )


class Names:
    """Names of the variables of a program: inputs by arguments, values by letters."""

    def __init__(self, taken: Sequence[str], skip: int) -> None:
        letters = letter_names()
        for _ in range(skip):
            next(letters)
        self.letters: Iterator[str] = (n for n in letters if n not in set(taken))
        self.known: dict[Var, str] = {}
        self.kinds: dict[Var, str] = {}

    def give(self, var: Var, name: str = "", kind: str = "value") -> None:
        """Names a variable; by the next letter without a name."""
        if isinstance(var, DropVar):
            self.known[var] = "_"
        elif var not in self.known:
            self.known[var] = name or next(self.letters)
            self.kinds[var] = kind

    def of(self, atom: Atom) -> str:
        """The name of a variable, or a literal's number."""
        if isinstance(atom, Literal):
            return literal_text(atom.val)
        return self.known.get(atom, "_")


class Recorder:
    """Turns a watched call into rows."""

    def __init__(self, call: Call, values: bool) -> None:
        assert call.closed is not None
        self.call = call
        self.values = values
        self.closed = call.closed
        self.axes = call.watch.axes
        self.sources = Sources()
        self.rows: list[Row] = []
        self.equations = 0
        self.lost: set[Var] = set()  # values whose batch axis was not followed
        jaxpr, batched = self.closed.jaxpr, call.batched.jaxpr
        skip = len(jaxpr.invars) + len(jaxpr.constvars)
        self.left = Names(call.names, skip)
        self.right = Names(call.names, skip)
        # Constants come before the inputs in a jaxpr, and in its letters.
        constants = list(itertools.islice(letter_names(), len(jaxpr.constvars)))
        for var, name in zip(jaxpr.invars, call.names):
            self.left.give(var, name, "input")
        for var, name in zip(batched.invars, call.names):
            self.right.give(var, name, "input")
        by_value: dict[int, str] = {}
        for number, (var, value) in enumerate(zip(jaxpr.constvars, self.closed.consts)):
            name = constants[number]
            self.left.give(var, "" if name in call.names else name, "constant")
            by_value[id(value)] = self.left.of(var)
        for var, value in zip(batched.constvars, call.batched.consts):
            self.right.give(var, by_value.get(id(value), ""), "constant")

    def recording(self) -> BatchRecording:
        call = self.call
        jaxpr, batched = self.closed.jaxpr, call.batched.jaxpr
        self.program(jaxpr, batched, call.written, None, "", 0)
        before, after = count_equations(jaxpr), count_equations(batched)
        moves = sum(row.moves for row in self.rows)
        inserted = sum(len(row.inserted) for row in self.rows)
        has_programs = any(list(jaxprs_in_params(e.params)) for e in jaxpr.eqns)
        name = title(call.function)
        times = {0: "never moved", 1: "moved once", 2: "moved twice"}
        told = "the batch axis " + times.get(moves, f"moved {moves:,} times")
        if not moves and any(map(shifted, self.rows)):
            told = "the batch axis moved, by no transpose"
        equations = count_in_words(before, "equation")
        became = "stayed" if before == after else "became"
        headline = (
            f"vmap of {name}, {call.size:,}: {equations} {became} {after:,}; {told}"
        )
        if all(dim is None for dim in call.dims) and not self.axes_of_outputs():
            headline += "; nothing is batched, the results are repeated"
        telling = next(
            (row.id for row in self.rows if row.moves),
            next((row.id for row in self.rows if row.inserted), 0),
        )
        first = next((row.id for row in self.rows if row.inserted), telling)
        return BatchRecording(
            call=call.transformation,
            headline=headline,
            telling=min(telling, first),
            sources=self.sources.found,
            name=name,
            size=call.size,
            transformation=call.transformation,
            axis_name="" if call.axis_name is None else str(call.axis_name),
            inputs=[self.value(var, self.left, False) for var in jaxpr.invars],
            batched_inputs=[self.value(v, self.right, True) for v in batched.invars],
            results=[self.value(var, self.right, True) for var in batched.outvars],
            rows=self.rows,
            before=before,
            after=after,
            moves=moves,
            inserted=inserted,
            has_programs=has_programs,
            lost=list(getattr(call.function, "lost", [])),
        )

    def axes_of_outputs(self) -> bool:
        """Whether any equation's result has the batch axis."""
        return any(
            dim is not None for call in self.call.written for _, dim in call.outs
        )

    # ---- values --------------------------------------------------------------------

    def value(self, atom: Atom, names: Names, batched: bool) -> Value:
        """An operand or a result as a fact."""
        aval = atom.aval
        shape = list(aval.shape) if isinstance(aval, ShapedArray) else []
        dtype = aval.str_short(short_dtypes=True).partition("[")[0]
        if isinstance(atom, Literal):
            return Value(names.of(atom), dtype, shape, kind="literal")
        found = self.axes.get(atom, [])
        batch = found[-1] if batched and found else None
        inner = [*found[:-1]] if batched else [*found]
        kind = names.kinds.get(atom, "value")
        return Value(
            names.of(atom), dtype, shape, batch, inner, kind, atom not in self.lost
        )

    # ---- rows ----------------------------------------------------------------------

    def program(
        self,
        jaxpr: Jaxpr,
        batched: Jaxpr,
        calls: list[Written],
        parent: int | None,
        which: str,
        depth: int,
    ) -> None:
        """Adds the rows of one program, and of those inside of it."""
        self.mark_inner(jaxpr.invars, batched.invars)
        done = 0
        for eqn, written in zip(jaxpr.eqns, calls, strict=True):
            eqns = batched.eqns[written.start : written.end]
            done = written.end
            self.row(eqn, written, eqns, parent, which, depth)
        if batched.eqns[done:]:
            self.results_row(batched.eqns[done:], parent, which, depth)

    def mark_inner(self, one: Sequence[Atom], many: Sequence[Atom]) -> None:
        """Notes on batched variables the axes of vmaps inside of the function."""
        for of_one, of_many in zip(one, many):
            if not isinstance(of_one, Var) or not isinstance(of_many, Var):
                continue
            inner = self.axes.get(of_one)
            if not inner:
                continue
            own = self.axes.get(of_many)
            if own and len(own) == 1:
                (dim,) = own
                self.axes[of_many] = [a + (a >= dim) for a in inner] + [dim]

    def row(
        self,
        eqn: JaxprEqn,
        written: Written,
        eqns: list[JaxprEqn],
        parent: int | None,
        which: str,
        depth: int,
    ) -> None:
        """Adds the row of one equation."""
        name = eqn.primitive.name
        family, file, line = reasons.rule_of(eqn.primitive)
        out_dims = [dim for _, dim in written.outs]
        unmapped = all(dim is None for dim in [*written.dims, *out_dims])
        main = self.main_of(eqn, eqns)
        replaced = bool(eqns) and main is None
        last = eqns[-1] if replaced and not unmapped else main
        for var in eqn.outvars:
            self.left.give(var)
        # A rule of a vmap inside of the function may have written this one.
        self.follow(eqn, repeats=False)
        atoms = [getattr(value, "atom", None) for value, _ in written.outs]
        self.mark_inner(eqn.outvars, [a for a in atoms if a is not None])
        of_cond = replaced and name == "cond" and not unmapped
        parts = self.inlined(eqn, eqns) if of_cond else {}
        # The select_n of the results stand behind the last branch.
        results = eqns[-len(eqn.outvars) :] if of_cond else [last]
        said: list[BatchedEquation] = []
        # The examples may be an axis of a result that is the same for all of them.
        for_all = {a for a, (_, dim) in zip(atoms, written.outs) if dim is None}
        for one in eqns:
            self.follow(one)
            for var in one.outvars:
                self.right.give(var)
                if var in for_all and len(self.axes.get(var, ())) == 1:
                    del self.axes[var]
            part = parts.get(id(one))
            if part is not None:
                each = self.batched(one, part.wants, part.family, part.inserted)
            else:
                inserted = not any(one is result for result in results)
                each = self.batched(one, name, family, inserted)
            if of_cond:
                self.say_branch(each, part, not each.inserted)
            said.append(each)
        inserted = any(each.inserted for each in said)
        why = reasons.carried(name, family, written.dims, out_dims, inserted, replaced)
        if name == "while" and not unmapped and main is not None:
            condition = main.params["cond_jaxpr"].jaxpr
            predicate = condition.outvars[0].aval
            one_predicate = eqn.params["cond_jaxpr"].jaxpr.outvars[0].aval
            why = reasons.while_reason(predicate.shape != one_predicate.shape, True)
        if unmapped:
            why = reasons.SAME
        for each in said:
            if not each.inserted and not each.why:
                lost = any(not value.followed for value in each.results)
                each.why = reasons.merged(name) if lost else why
        made = Row(
            id=len(self.rows),
            parent=parent,
            kind="equation",
            program=which,
            primitive=operation(eqn),
            operands=[self.value(atom, self.left, False) for atom in eqn.invars],
            results=[self.value(var, self.left, False) for var in eqn.outvars],
            batched=said,
            why=why if said or unmapped else "no equation is needed: " + why,
            rule="" if unmapped else family,
            file="" if unmapped else file,
            line=0 if unmapped else line,
            span=self.sources.of_operation(eqn.source_info),
            depth=depth,
        )
        self.rows.append(made)
        if of_cond:
            made.grid = self.grid(eqn, eqns, depth)
        elif main is not None:
            self.open(eqn, main, made, unmapped)

    def main_of(self, eqn: JaxprEqn, eqns: list[JaxprEqn]) -> JaxprEqn | None:
        """The batched equation that does the work of `eqn`; None if others do it."""
        same = [one for one in eqns if one.primitive is eqn.primitive]
        return same[-1] if same else None

    def batched(
        self, eqn: JaxprEqn, wants: str, family: str, inserted: bool
    ) -> BatchedEquation:
        """A batched equation as a fact, with a reason if it was inserted."""
        operands = [self.value(atom, self.right, True) for atom in eqn.invars]
        results = [self.value(var, self.right, True) for var in eqn.outvars]
        made = BatchedEquation(
            self.equations, operation(eqn), operands, results, inserted
        )
        self.equations += 1
        if not inserted:
            return made
        name = eqn.primitive.name
        first = operands[0] if operands else None
        if name == "transpose" and first is not None:
            before, after = first.batch, results[0].batch
            if before is not None and after is not None and before != after:
                made.moves, made.before, made.after = True, before, after
                made.why = reasons.moved(wants, family, before, after, len(first.shape))
                return made
        if name == "broadcast_in_dim" and first is not None:
            shape = results[0].shape
            kept = eqn.params["broadcast_dimensions"]
            new = [axis for axis in range(len(shape)) if axis not in kept]
            ones = {shape[axis] for axis in new} == {1}
            # Sides of 1 are repeated by what broadcasts; in an index they are its axis.
            told = family == "broadcasting_batch" if ones else first.batch is None
            if new and told:
                made.why = reasons.broadcast(
                    wants, first.name, first.batch is not None, shape, new
                )
                return made
        made.why = reasons.other(wants, name, eqn.params)
        return made

    def results_row(
        self, eqns: list[JaxprEqn], parent: int | None, which: str, depth: int
    ) -> None:
        """Adds the row of what brings a program's results to the axes asked for."""
        wants = "out_axes" if parent is None else self.rows[parent].primitive
        said = []
        for one in eqns:
            self.follow(one)
            for var in one.outvars:
                self.right.give(var)
                if parent is None:
                    self.place_result(var)
            said.append(self.batched(one, wants, "", inserted=True))
        why = (
            "out_axes says where the results have the axis"
            if parent is None
            else f"{wants} wants the axis of what its program returns at one place"
        )
        made = Row(
            id=len(self.rows),
            parent=parent,
            kind="results",
            program=which,
            primitive="",
            operands=[],
            results=[],
            batched=said,
            why=why,
            depth=depth,
        )
        self.rows.append(made)

    def place_result(self, var: Var) -> None:
        """Notes that a result has its axis where `out_axes` says.

        What it is made of may have the examples along an axis of its own, as what
        `all_gather` gives, which is the same for all of them.
        """
        outvars = self.call.batched.jaxpr.outvars
        for outvar, dim in zip(outvars, self.call.out_dims, strict=True):
            if outvar is var and isinstance(dim, int) and len(self.axes[var]) == 1:
                self.axes[var] = [dim % len(var.aval.shape)]  # type: ignore[attr-defined]

    def open(self, eqn: JaxprEqn, main: JaxprEqn, row: Row, unmapped: bool) -> None:
        """Adds the rows of the programs that an equation runs."""
        one, many = programs_of(eqn), programs_of(main)
        if not one or len(one) != len(many):
            return
        if unmapped:
            inner = sum(count_equations(jaxpr) for _, jaxpr, _ in one)
            if inner:
                row.note = f"{count_in_words(inner, 'equation')} inside, unchanged"
            return
        for (which, jaxpr, atoms), (_, batched, own_atoms) in zip(one, many):
            calls = self.call.watch.calls_of(batched)
            if calls is None and not batched.eqns and not jaxpr.eqns:
                continue
            if calls is None or len(calls) != len(jaxpr.eqns):
                row.note = (
                    f"{count_in_words(len(jaxpr.eqns), 'equation')} inside, "
                    f"{len(batched.eqns):,} batched: not followed one by one"
                )
                continue
            self.name_inputs(jaxpr, atoms, self.left)
            self.name_inputs(batched, own_atoms, self.right)
            self.program(jaxpr, batched, calls, row.id, which, row.depth + 1)

    def name_inputs(
        self, jaxpr: Jaxpr, atoms: Sequence[Atom | None], names: Names
    ) -> None:
        """Names the inputs of an inner program: as outside, where they are operands."""
        for var in jaxpr.constvars:
            names.give(var, kind="constant")
        for var, atom in zip(jaxpr.invars, atoms):
            names.give(var, names.of(atom) if atom is not None else "")

    # ---- the batch axis through inserted equations ---------------------------------

    def follow(self, eqn: JaxprEqn, repeats: bool = True) -> None:
        """Notes the batch axes of results that no tracer told of.

        `repeats` says that a rule wrote the equation, which may repeat what is the same
        for all along a new batch axis.
        """
        for var in eqn.outvars:
            if var in self.axes or not isinstance(var.aval, ShapedArray):
                continue
            found = self.followed(eqn, var, repeats)
            if found:
                self.axes[var] = found

    def followed(self, eqn: JaxprEqn, var: Var, repeats: bool) -> list[int]:
        """The batch axes of a result, by those of the operands and the parameters."""
        name, params = eqn.primitive.name, eqn.params
        operands = [
            (atom.aval.shape, self.axes[atom])
            for atom in eqn.invars
            if isinstance(atom, Var) and self.axes.get(atom)
        ]
        shape = var.aval.shape  # type: ignore[attr-defined]
        if name == "broadcast_in_dim":
            kept = params["broadcast_dimensions"]
            if operands:
                return [kept[axis] for axis in operands[0][1]]
            size = self.call.size
            new = [a for a in range(len(shape)) if a not in kept and shape[a] == size]
            # A rule gives an axis of the batch's size to what is the same for all.
            return new if repeats and len(new) == 1 and size != 1 else []
        if not operands:
            # What is made of a value that has the examples mixed into another axis
            # has them mixed, too, until a tracer or a reshape tells where they are.
            if any(isinstance(a, Var) and a in self.lost for a in eqn.invars):
                self.lost.add(var)
            return []
        before, axes = operands[0]
        if name == "transpose":
            return [params["permutation"].index(axis) for axis in axes]
        if name == "squeeze":
            gone = params["dimensions"]
            if not {*axes} & {*gone}:
                return [axis - sum(g < axis for g in gone) for axis in axes]
        if all(own == axes for _, own in operands):
            sizes = [before[axis] for axis in axes]
            if len(shape) == len(before) and [shape[a] for a in axes] == sizes:
                if name not in ("reshape", "rev") or shape == before:
                    return axes
        if name == "reshape":  # only it merges the examples with another axis
            self.lost.add(var)
        return []

    # ---- a cond that became a select -----------------------------------------------

    def inlined(self, eqn: JaxprEqn, eqns: list[JaxprEqn]) -> dict[int, Inlined]:
        """What stands in the batched equations of a `cond` for which branch.

        Each branch was batched as a program of its own, where its axes were told, and
        then written into the program.
        """
        found: dict[int, Inlined] = {}
        for number, start, calls, known in self.branch_programs(eqn, eqns):
            for inner, call in zip(eqn.params["branches"][number].jaxpr.eqns, calls):
                family = reasons.rule_of(inner.primitive)[0]
                name = inner.primitive.name
                main = self.main_of(inner, known[call.start : call.end])
                for place in range(call.start, call.end):
                    inserted = main is not None and known[place] is not main
                    one = Inlined(number, name, family, inserted)
                    found[id(eqns[start + place])] = one
            for own, written in zip(eqns[start:], known):
                found.setdefault(id(own), Inlined(number, "cond", "", True))
                for var, var_there in zip(own.outvars, written.outvars):
                    if var_there in self.axes and var not in self.axes:
                        self.axes[var] = self.axes[var_there]
        return found

    def branch_programs(
        self, eqn: JaxprEqn, eqns: list[JaxprEqn]
    ) -> Iterator[tuple[int, int, list[Written], list[JaxprEqn]]]:
        """(branch, where it begins among `eqns`, what was batched, its equations)."""
        begin = 0
        for number, branch in enumerate(eqn.params["branches"]):
            primitives = [one.primitive for one in branch.jaxpr.eqns]
            fitting = [
                (known, calls)
                for known, calls in self.call.watch.calls.values()
                if known and [call.primitive for call in calls] == primitives
            ]
            for start in range(begin, len(eqns)):
                found = [
                    (known, calls)
                    for known, calls in fitting
                    if alike(eqns[start : start + len(known)], known)
                ]
                if found:
                    known, calls = max(found, key=lambda pair: len(pair[0]))
                    yield number, start, calls, known
                    begin = start + len(known)
                    break

    def say_branch(
        self, made: BatchedEquation, part: Inlined | None, last: bool
    ) -> None:
        """Says of a batched equation of a `cond` what it is for."""
        if part is not None:
            if not part.inserted:
                made.why = f"branch {part.branch}, on all examples"
        elif made.primitive == "select_n":
            made.why = (
                "for each example, the result of the branch that it takes"
                if last
                else "examples that do not take the branch: no derivative for them"
            )
        elif made.primitive == "eq":
            made.why = "which examples take this branch"

    def grid(self, eqn: JaxprEqn, eqns: list[JaxprEqn], depth: int) -> Grid:
        """Examples by branches, and with values which branch each example keeps."""
        branches = [f"branch {n}" for n in range(len(eqn.params["branches"]))]
        made = Grid(self.call.size, branches)
        which = next((e.invars[0] for e in eqns if e.primitive.name == "eq"), None)
        if self.values and depth == 0 and isinstance(which, Var):
            whole = self.call.batched
            until = whole.jaxpr.replace(outvars=[which])
            (numbers,) = eval_jaxpr(until, whole.consts, *self.call.values)
            last = len(branches) - 1
            made.chosen = np.clip(np.asarray(numbers), 0, last).astype(int).tolist()
        return made


@dataclass
class Inlined:
    """A batched equation of a branch: which, and the equation that it is for."""

    branch: int
    wants: str
    family: str
    inserted: bool


def shifted(row: Row) -> bool:
    """Whether a rule puts the batch axis elsewhere, counted from both ends."""
    for eqn in row.batched:
        for operand in eqn.operands:
            for result in eqn.results:
                if operand.batch is None or result.batch is None:
                    continue
                if len(result.shape) < len(operand.shape):
                    continue  # other axes are gone: places cannot be compared
                before = len(operand.shape) - operand.batch
                after = len(result.shape) - result.batch
                if operand.batch != result.batch and before != after:
                    return True
    return False


def alike(these: Sequence[JaxprEqn], those: Sequence[JaxprEqn]) -> bool:
    """Whether equations apply the same primitives to the same types."""
    if len(these) != len(those):
        return False
    return all(
        a.primitive is b.primitive
        and [v.aval for v in a.outvars] == [v.aval for v in b.outvars]
        for a, b in zip(these, those)
    )
