"""The rows behind `see.grad`: each equation with what it becomes on the way back.

The linear program of `residuals.py` is transposed one equation at a time, in the order
of minijax's `backward_pass` and with the same rules. Between two equations it is noted
what was written and which sums of cotangents grew. Loops, branches and calls have rows
of their own inside (`GradProgram`). `backward.py` makes the recording of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from minijax.core import autodiff, source_info
from minijax.core.language import (
    Atom,
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    jaxprs_in_params,
    set_current_trace,
)
from minijax.core.partial_eval import DynamicJaxprTrace
from minijax.core.rules import Zero, accumulator_for, add_any_p, is_linear, scalar_like
from minijax.programs.calls import close_jaxpr
from minijax.programs.control_flow.conditionals import cond_p
from minijax.programs.control_flow.scan_primitive import scan_p
from minijax.transforms import splitting
from minijax_lab.explain.recording import Span, count_in_words, span_text
from minijax_lab.explain.residuals import (
    Facts,
    Linearized,
    Part,
    Residual,
    bytes_of,
    equation_text,
    literal_text,
)

# Primitives whose programs open into rows of their own.
CALLS = ("jit", "remat2", "checkpoint")


RULES = {
    "custom_vjp_call": ("fwd_jaxpr_thunk", "bwd"),
    "custom_jvp_call": ("jvp_jaxpr_fun",),
}


# Deeper than this, programs inside of programs stay closed.
DEEPEST = 4


# ---- plain facts ---------------------------------------------------------------------


@dataclass
class Back:
    """An equation of the backward pass, or a cotangent that is handed on as it is.

    `gives` is the cotangent that it makes a part of, "" for a value in between.
    """

    text: str
    gives: str
    adds: bool  # whether other parts are added to the same cotangent
    type: str
    shape: list[int]
    equation: bool  # False: nothing is computed


@dataclass
class GradRow:
    """An equation of the function, and what it becomes."""

    id: int
    name: str  # of its first result
    text: str  # b = sin x
    primitive: str
    type: str
    shape: list[int]
    span: Span | None
    source: str  # the user's expression
    results: list[str]  # names of all of its results
    operands: list[str]  # names of what it reads
    gives: list[str]  # names of the values whose cotangents it gives a part of
    active: bool  # whether a cotangent comes to it
    extra: list[str]  # equations of the forward pass that only the derivative needs
    made: list[int]  # residuals made here
    opened: list[int]  # residuals that its transpose reads
    linear: list[str]  # its equations of the linear program
    backward: list[Back]
    rule: str  # a custom rule in words, "" without one
    programs: list[GradProgram] = field(default_factory=list)


@dataclass
class GradSum:
    """Cotangents of one variable that meet and add.

    `rows` are the equations that the parts come from, `after` the one with which the
    sum is complete, `target` the row of the variable, None for an argument.
    """

    name: str
    cotangent: str
    type: str
    shape: list[int]
    target: int | None
    rows: list[int]
    after: int
    equations: int
    within: str  # the primitive whose rule uses one tangent twice, "" if the user does


@dataclass
class GradArgument:
    """An argument that is differentiated, and its cotangent."""

    name: str
    type: str
    shape: list[int]
    bytes: int
    cotangent: str
    zero: bool  # the result does not depend on it


@dataclass
class GradProgram:
    """A program with its rows: the function's, a loop's body, a branch, a call."""

    title: str
    note: str
    times: int  # how often it runs, 1 if it is no loop
    rows: list[GradRow]
    residuals: list[Residual]
    sums: list[GradSum]
    arguments: list[GradArgument]
    forward: int  # equations that the function has
    extra: int  # equations more that the derivative needs on the way down
    unused: int  # equations that a rule runs and nothing reads; a compiler drops them
    backward: int  # equations of the way back
    again: int  # equations that a checkpoint runs again on the way back

    @property
    def backward_opened(self) -> int:
        """The equations of the way back, calls, loops and branches opened.

        Of a loop one turn counts, of branches the longest.
        """
        count = self.backward
        for row in self.rows:
            if row.programs:
                inside = max(inner.backward_opened for inner in row.programs)
                count += inside - sum(back.equation for back in row.backward)
        return count


# ---- the backward pass, equation by equation -----------------------------------------


@dataclass
class Pulled:
    """What transposing one linear equation wrote.

    `parts` are pairs of a linear variable and the part of its cotangent that came;
    `sums` are the additions to what was there, among the equations that were written.
    """

    place: int | None
    eqn: JaxprEqn
    cotangents: list[Any]
    written: list[JaxprEqn]
    parts: list[tuple[Var, Atom]]
    sums: list[tuple[Var, JaxprEqn]]


class Transposed:
    """The linear program of a `Linearized`, transposed.

    The first cotangent is 1 where `zeros` is not given, as in `grad`; else `zeros` has
    a flag for each nonzero output: whether its cotangent is zero. `carried` are flags
    for the inputs whose cotangents add to what came before, as in the turns of a loop.
    """

    def __init__(
        self,
        linearized: Linearized,
        zeros: Sequence[bool] | None = None,
        carried: Sequence[bool] = (),
    ) -> None:
        jaxpr = self.jaxpr = linearized.jaxpr
        trace = self.trace = DynamicJaxprTrace(jaxpr.debug_info)
        self.pulled: list[Pulled] = []
        kept: dict[Any, Any] = {}
        self.inputs: list[tuple[Var, Atom]] = []  # variable here, atom of the forward
        env: dict[Var, Any] = {}
        for var, atom in zip(jaxpr.constvars, linearized.residuals):
            if isinstance(atom, Literal):
                env[var] = atom.val
                continue
            if atom not in kept:
                kept[atom] = trace.new_arg(atom.aval)
                self.inputs.append((kept[atom].atom, atom))
            env[var] = kept[atom]
        accumulators = [accumulator_for(var.aval) for var in jaxpr.invars]
        self.before: list[tuple[Var, Any]] = []
        for var, accumulator, flag in zip(jaxpr.invars, accumulators, carried):
            if flag:
                start = trace.new_arg(accumulator.aval)
                accumulator.value = start
                self.before.append((var, start.atom))
        env.update(zip(jaxpr.invars, accumulators))
        self.given: list[Any] = []
        with set_current_trace(trace):
            for position, atom in enumerate(jaxpr.outvars):
                aval = atom.aval.to_ct_aval()
                if zeros is None:
                    self.given.append(scalar_like(aval, 1))
                elif zeros[position]:
                    self.given.append(Zero(aval))
                else:
                    self.given.append(trace.new_arg(aval))
            with source_info.transform_name_stack("transpose"):
                self.walk(jaxpr, linearized.places, env)
        self.answers: list[Atom | None] = []
        self.arguments = list(jaxpr.invars)
        for accumulator in accumulators:
            value = accumulator.freeze()
            self.answers.append(None if type(value) is Zero else trace.to_atom(value))
        trace.alive = False
        self.eqns = trace.eqns

    def walk(self, jaxpr: Any, places: Sequence[int | None], env: dict) -> None:
        """Goes through the linear program as `ad.backward_pass` does."""

        def read(atom: Atom) -> Any:
            return atom.val if isinstance(atom, Literal) else env[atom]

        outer = source_info.current_name_stack()
        linear = {var for var, value in env.items() if is_linear(value)}
        order = []
        for eqn, place in zip(jaxpr.eqns, places):
            if eqn.primitive.makes_ref or not linear.isdisjoint(eqn.invars):
                env.update((var, accumulator_for(var.aval)) for var in eqn.outvars)
                linear.update(eqn.outvars)
                order.append((eqn, place))
                continue
            start = len(self.trace.eqns)
            with source_info.user_context(eqn.source_info, outer=outer):
                out = eqn.primitive.rebind([read(v) for v in eqn.invars], eqn.params)
            env.update(
                zip(eqn.outvars, out if eqn.primitive.multiple_results else [out])
            )
            written = self.trace.eqns[start:]
            self.pulled.append(Pulled(place, eqn, [], written, [], []))
        for atom, cotangent in zip(jaxpr.outvars, self.given):
            target = read(atom)
            if is_linear(target):
                target.accum(cotangent)
        for eqn, place in reversed(order):
            cotangents = [env.pop(var).freeze() for var in eqn.outvars]
            inputs = [read(v) for v in eqn.invars]
            before = {
                v: (env[v].value, eqn.invars.count(v))
                for v in eqn.invars
                if isinstance(v, Var) and is_linear(env[v])
            }
            start = len(self.trace.eqns)
            with source_info.user_context(eqn.source_info, outer=outer):
                autodiff.transpose_eqn(eqn.primitive, cotangents, inputs, eqn.params)
            step = Pulled(place, eqn, cotangents, self.trace.eqns[start:], [], [])
            for var, (value, count) in before.items():
                self.note_parts(step, var, value, env[var].value, count)
            self.pulled.append(step)

    def note_parts(
        self, step: Pulled, var: Var, old: Any, new: Any, count: int
    ) -> None:
        """Notes what was added to a cotangent: undoes the additions, last one first."""
        if new is old or new is None:
            return
        makers = {v: eqn for eqn in step.written for v in eqn.outvars}
        atom = self.trace.to_atom(new)
        end = None if old is None else self.trace.to_atom(old)
        parts: list[Atom] = []
        left = count if old is not None else count - 1

        def is_old(atom: Atom) -> bool:
            # A number has a literal of its own at each place; the old one comes last.
            return atom is end or isinstance(atom, Literal) and isinstance(end, Literal)

        while left:
            eqn = makers.get(atom)  # type: ignore[arg-type]
            if eqn is None or eqn.primitive is not add_any_p:
                break
            step.sums.append((var, eqn))
            parts.append(eqn.invars[1])
            atom = eqn.invars[0]
            left -= 1
            if is_old(atom):
                break
        if not is_old(atom):
            parts.append(atom)
        step.parts += [(var, part) for part in reversed(parts)]


SIGNS = {"mul": "*", "add": "+", "add_any": "+", "sub": "-", "div": "/"}


def formula(eqn: JaxprEqn, results: Sequence[str], operands: Sequence[str]) -> str:
    """An equation of the backward pass; products and sums with their signs."""
    sign = SIGNS.get(eqn.primitive.name)
    if sign is None or len(operands) != 2:
        return equation_text(eqn, results, operands)
    return f"{results[0]} = {operands[0]} {sign} {operands[1]}"


# ---- from programs to facts ----------------------------------------------------------


class Program:
    """A linearized and transposed program, told as rows."""

    def __init__(self, facts: Facts, transposed: Transposed, depth: int = 0) -> None:
        self.known = facts
        self.linearized = facts.linearized
        self.transposed = transposed
        self.depth = depth
        # Linear variables by the name of the value whose tangent they are.
        self.linear_names: dict[Var, str] = {}
        self.targets: dict[Var, int] = {}
        for var, tangent in self.linearized.tangents.items():
            name = facts.name(self.linearized.atoms[var])
            self.linear_names.setdefault(tangent, name)
        for number, part in enumerate(self.linearized.parts):
            for var in part.eqn.outvars:
                if var in self.linearized.tangents:
                    self.targets.setdefault(self.linearized.tangents[var], number)
        for tangent in self.linearized.jaxpr.invars:
            self.targets.pop(tangent, None)
        inner = (f"t{number}" for number in itertools.count(1))
        for eqn in self.linearized.jaxpr.eqns:
            for var in eqn.outvars:
                if var not in self.linear_names:
                    self.linear_names[var] = next(inner)
        self.parts: dict[Var, list[tuple[int | None, Atom]]] = {}
        for step in transposed.pulled:
            for var, atom in step.parts:
                self.parts.setdefault(var, []).append((step.place, atom))
        self.names = self.backward_names()
        self.needed = self.living()
        self.last: dict[Var, Pulled] = {}
        self.steps: dict[int | None, list[Pulled]] = {}
        for step in transposed.pulled:
            self.steps.setdefault(step.place, []).append(step)
            self.last.update((var, step) for var, _ in step.parts)
        self.opened_by: dict[int, list[int]] = {}
        for residual in facts.residuals:
            for reader in residual.readers:
                self.opened_by.setdefault(reader, []).append(residual.id)

    def living(self) -> set[int]:
        """The forward equations, by id, that a result or a residual needs."""
        needed: set[Any] = {*self.linearized.outputs, *self.linearized.residuals}
        found = set()
        for eqn in reversed(self.linearized.forward_eqns):
            if eqn.effects or not needed.isdisjoint(eqn.outvars):
                needed.update(eqn.invars)
                found.add(id(eqn))
        return found

    def backward_names(self) -> dict[Var, str]:
        """Names for the variables of the backward pass."""
        names: dict[Var, str] = {}
        for var, atom in self.transposed.inputs:
            names[var] = self.known.name(atom)
        outvars = self.linearized.jaxpr.outvars
        for atom, given in zip(outvars, self.transposed.given):
            value = getattr(given, "atom", None)
            if isinstance(value, Var) and isinstance(atom, Var):
                names.setdefault(value, f"ct_{self.linear_names[atom]}")
        for var, before in self.transposed.before:
            names[before] = f"ct_{self.linear_names[var]}"
        for var, parts in self.parts.items():
            for _, atom in parts:
                if isinstance(atom, Var):
                    names.setdefault(atom, f"ct_{self.linear_names[var]}")
        for step in self.transposed.pulled:
            for var, eqn in step.sums:
                names[eqn.outvars[0]] = f"ct_{self.linear_names[var]}"
        inner = (f"u{number}" for number in itertools.count(1))
        for eqn in self.transposed.eqns:
            for var in eqn.outvars:
                if var not in names:
                    names[var] = next(inner)
        return names

    def facts(
        self, title: str, note: str, times: int, differentiated: Sequence[bool]
    ) -> GradProgram:
        """The program as plain facts."""
        rows = [self.row(n, part) for n, part in enumerate(self.linearized.parts)]
        forward = len(self.linearized.parts)
        every = sum(len(part.extra) for part in self.linearized.parts)
        extra = sum(len(row.extra) for row in rows)
        for residual in self.known.residuals:
            if residual.row is not None:
                rows[residual.row].made.append(residual.id)
        return GradProgram(
            title=title,
            note=note,
            times=times,
            rows=rows,
            residuals=self.known.residuals,
            sums=self.sums(),
            arguments=self.arguments(differentiated),
            forward=forward,
            extra=extra,
            unused=every - extra,
            backward=len(self.transposed.eqns),
            again=sum(inner.again for row in rows for inner in row.programs),
        )

    def row(self, number: int, part: Part) -> GradRow:
        """One equation of the function with what it becomes."""
        eqn = part.eqn
        span = self.known.sources.of_operation(eqn.source_info)
        atoms = [self.linearized.atoms[var] for var in eqn.outvars]
        aval = eqn.outvars[0].aval if eqn.outvars else None
        steps = self.steps.get(number, [])
        backward = [back for step in steps for back in self.backs(step)]
        opened = self.opened_by.get(number, [])
        return GradRow(
            id=number,
            name=self.known.name(atoms[0]) if atoms else "",
            text=self.known.result(part),
            primitive=eqn.primitive.name,
            type=aval.str_short(short_dtypes=True) if aval is not None else "",
            shape=list(getattr(aval, "shape", ())),
            span=span,
            source=span_text(self.known.sources.found, span),
            results=[name for name in map(self.known.name, atoms) if name != "_"],
            operands=[
                self.known.name(self.linearized.atoms[atom])
                for atom in eqn.invars
                if isinstance(atom, Var)
            ],
            gives=[
                self.linear_names[v]
                for v in dict.fromkeys(v for step in steps for v, _ in step.parts)
            ],
            active=bool(steps),
            extra=[self.known.text(e) for e in part.extra if id(e) in self.needed],
            made=[],
            opened=opened,
            linear=[self.linear_text(eqn) for eqn in part.linear],
            backward=backward,
            rule=rule_in_words(eqn),
            programs=self.inner(part, steps) if self.depth < DEEPEST else [],
        )

    def linear_text(self, eqn: JaxprEqn) -> str:
        """A linear equation, as `d_b = mul d_x c`."""

        def name(atom: Atom) -> str:
            if isinstance(atom, Literal):
                return literal_text(atom.val)
            residual = self.known.of_constvar.get(atom)
            if residual is not None:
                return residual.name
            return f"d_{self.linear_names.get(atom, '_')}"

        return equation_text(
            eqn, [name(v) for v in eqn.outvars], [name(v) for v in eqn.invars]
        )

    def back_name(self, atom: Any) -> str:
        """The name of a variable of the backward pass."""
        if isinstance(atom, Literal):
            return literal_text(atom.val)
        return self.names.get(atom, "_")

    def backs(self, step: Pulled) -> list[Back]:
        """What a transposed equation wrote, as text."""
        found: list[Back] = []
        sums = {id(eqn) for _, eqn in step.sums}
        gives = {part: var for var, part in step.parts if isinstance(part, Var)}
        written = set()
        for eqn in step.written:
            written.update(eqn.outvars)
            if id(eqn) in sums:
                continue
            results = [self.back_name(v) for v in eqn.outvars]
            text = formula(eqn, results, [self.back_name(v) for v in eqn.invars])
            target = next((gives[v] for v in eqn.outvars if v in gives), None)
            adds = target is not None and self.adds(target)
            if adds:
                text = text.replace(" = ", " += ", 1)
            name = "" if target is None else f"ct_{self.linear_names[target]}"
            aval = eqn.outvars[0].aval
            found.append(
                Back(
                    text,
                    name,
                    adds,
                    aval.str_short(short_dtypes=True),
                    list(getattr(aval, "shape", ())),
                    True,
                )
            )
        for var, part in step.parts:
            if part in written:
                continue
            name = f"ct_{self.linear_names[var]}"
            adds = self.adds(var)
            if not adds:
                continue  # handed on under another name
            own = self.back_name(part)
            kind = var.aval.str_short(short_dtypes=True)
            shape = list(getattr(var.aval, "shape", ()))
            text = f"{name} += {own}"
            found.append(Back(text, name, adds, kind, shape, False))
        return found

    def adds(self, var: Var) -> bool:
        """Whether a part of a cotangent is added to others."""
        carried = any(var is other for other, _ in self.transposed.before)
        return carried or len(self.parts[var]) > 1

    def sums(self) -> list[GradSum]:
        """The cotangents that add, in the order of the backward pass."""
        counts: dict[Var, int] = {}
        for step in self.transposed.pulled:
            for var, _ in step.sums:
                counts[var] = counts.get(var, 0) + 1
        found = []
        for step in self.transposed.pulled:
            for var in dict.fromkeys(var for var, _ in step.sums):
                places = [place for place, _ in self.parts[var]]
                if step is not self.last[var]:
                    continue
                name = self.linear_names[var]
                found.append(
                    GradSum(
                        name=name,
                        cotangent=f"ct_{name}",
                        type=var.aval.str_short(short_dtypes=True),
                        shape=list(getattr(var.aval, "shape", ())),
                        target=self.targets.get(var),
                        rows=[place for place in places if place is not None],
                        after=step.place if step.place is not None else 0,
                        equations=counts[var],
                        within=self.within(var, places),
                    )
                )
        return found

    def within(self, var: Var, places: Sequence[int | None]) -> str:
        """The primitive whose rule alone makes a sum; "" where the function does."""
        place = places[0]
        if len(places) == 1:
            return "scan"  # each turn adds to what came before
        if place is None or any(other != place for other in places):
            return ""
        eqn = self.linearized.parts[place].eqn
        uses = [
            atom
            for atom in eqn.invars
            if isinstance(atom, Var) and self.linearized.tangents.get(atom) is var
        ]
        return eqn.primitive.name if len(uses) < 2 else ""

    def arguments(self, differentiated: Sequence[bool]) -> list[GradArgument]:
        """The differentiated arguments, each with its cotangent."""
        found = []
        jaxpr = self.linearized.closed.jaxpr
        # The linear program has an argument for each input of the program.
        for position, (var, flag) in enumerate(zip(jaxpr.invars, differentiated)):
            if not flag:
                continue
            name = self.known.name(self.linearized.atoms[var])
            found.append(
                GradArgument(
                    name=name,
                    type=var.aval.str_short(short_dtypes=True),
                    shape=list(getattr(var.aval, "shape", ())),
                    bytes=bytes_of(var.aval),
                    cotangent=f"ct_{name}",
                    zero=self.transposed.answers[position] is None,
                )
            )
        return found

    # ---- programs inside -------------------------------------------------------------

    def inner(self, part: Part, steps: Sequence[Pulled]) -> list[GradProgram]:
        """The programs of a loop, a branch or a call, with rows of their own."""
        eqn = part.eqn
        if not steps:
            return []
        nonzeros = [
            isinstance(atom, Var) and atom in self.linearized.tangents
            for atom in eqn.invars
        ]
        zero = [
            self.is_zero(self.linearized.tangents.get(var), steps)
            for var in eqn.outvars
        ]
        operands = [
            self.known.name(self.linearized.atoms[atom])
            if isinstance(atom, Var)
            else ""
            for atom in eqn.invars
        ]
        name = eqn.primitive.name
        if name in CALLS:
            closed = eqn.params["jaxpr"]
            if not isinstance(closed, ClosedJaxpr):
                closed = ClosedJaxpr(closed)
            if name == "jit":
                title = f"jit {eqn.params['name']}"
                note = "what it keeps is what stands as kept above, seen from inside"
                return [
                    self.opened(closed, nonzeros, [], zero, operands, title, note, 1)
                ]
            again = sum(self.runs_again(step.eqn) for step in steps)
            note = (
                f"only what stands as kept above is kept; the way back runs "
                f"{count_in_words(again, 'equation')} again"
            )
            program = self.opened(
                closed, nonzeros, [], zero, operands, "checkpoint", note, 1
            )
            program.again = again
            return [program]
        if eqn.primitive is cond_p:
            branches = eqn.params["branches"]
            flags = nonzeros[1:]
            wanted = [False] * len(eqn.outvars)
            for branch in branches:
                own = Linearized(branch, flags).nonzeros
                wanted = [a or b for a, b in zip(wanted, own)]
            return [
                self.opened(
                    branch,
                    flags,
                    wanted,
                    zero,
                    operands[1:],
                    f"branch {number}",
                    "one of the branches runs; what all of them keep is kept above",
                    1,
                    inputs="copy",
                )
                for number, branch in enumerate(branches)
            ]
        if eqn.primitive is scan_p:
            return [self.loop(eqn, nonzeros, zero, operands)]
        return []

    def runs_again(self, eqn: JaxprEqn) -> int:
        """How many equations the way back of a checkpoint computes once more.

        They are what its linear program knows before a cotangent comes: the part that
        partial evaluation splits off, calls opened.
        """
        if "jaxpr" not in eqn.params:
            return 0
        linear = tuple(
            isinstance(atom, Var) and atom not in self.known.of_constvar
            for atom in eqn.invars
        )
        program = close_jaxpr(eqn.params["jaxpr"])
        known, *_ = splitting.partial_eval_jaxpr(program, linear)
        return opened_equations(known.jaxpr)

    def is_zero(self, tangent: Var | None, steps: Sequence[Pulled]) -> bool:
        """Whether no cotangent comes to the linear variable of a result."""
        for step in steps:
            for var, cotangent in zip(step.eqn.outvars, step.cotangents):
                if var is tangent:
                    return type(cotangent) is Zero
        return True

    def loop(
        self,
        eqn: JaxprEqn,
        nonzeros: list[bool],
        zero: list[bool],
        operands: list[str],
    ) -> GradProgram:
        """The body of a scan: one turn."""
        params = eqn.params
        body, consts, carry = params["jaxpr"], params["num_consts"], params["num_carry"]
        flags = list(nonzeros)
        wanted = [False] * len(body.out_avals)
        while True:
            # What one turn makes nonzero is nonzero in the next.
            own = Linearized(body, flags, wanted).nonzeros[:carry]
            inside = flags[consts : consts + carry]
            if own == inside:
                break
            both = [a or b for a, b in zip(own, inside)]
            flags[consts : consts + carry] = both
            wanted[:carry] = both
        rows = [f"{name}[i]" if name else "" for name in operands[consts + carry :]]
        names = [*operands[:consts], *[""] * carry, *rows]
        zero = [False] * carry + zero[carry:]
        length = params["length"]
        note = (
            f"what one turn keeps is stacked {length:,} times; cotangents of what all "
            "turns share add up"
        )
        title = f"body of scan, {length:,} turns"
        carried = [flag and place < consts for place, flag in enumerate(flags)]
        program = self.opened(
            body, flags, wanted, zero, names, title, note, length, carried, "outside"
        )
        for residual in program.residuals:
            # What comes from the turn before is gone when the loop is over: it is kept.
            if residual.position in range(consts, consts + carry):
                residual.origin = "carry"
                residual.made_by = "the turn before"
        return program

    def opened(
        self,
        closed: ClosedJaxpr,
        nonzeros: Sequence[bool],
        wanted: Sequence[bool],
        zero: Sequence[bool],
        names: Sequence[str],
        title: str,
        note: str,
        times: int,
        carried: Sequence[bool] = (),
        inputs: str = "outside",
    ) -> GradProgram:
        """A program inside, linearized and transposed by itself.

        `inputs` says what an input is that it keeps: "outside" for one that is there
        anyway, "copy" for one that the program returns as a residual.
        """
        linearized = Linearized(closed, nonzeros, wanted)
        letters = self.known.letters
        own = [name or next(letters) for name in names]
        facts = Facts(linearized, own, self.known.sources, letters)
        zeros = [flag for flag, there in zip(zero, linearized.nonzeros) if there]
        transposed = Transposed(linearized, zeros, carried)
        told = Program(facts, transposed, self.depth + 1)
        program = told.facts(title, note, times, nonzeros)
        for residual in program.residuals:
            if residual.origin == "argument":
                residual.origin = inputs
                if inputs == "copy":
                    residual.made_by = "the branch's input"
        return program


def opened_equations(jaxpr: Jaxpr) -> int:
    """The equations of a program and of the calls in it; loops count one turn.

    Of branches the longest counts.
    """
    count = 0
    for eqn in jaxpr.eqns:
        inside = [opened_equations(inner) for inner in jaxprs_in_params(eqn.params)]
        combine = max if eqn.primitive is cond_p else sum
        count += combine(inside) if inside else 1
    return count


def rule_in_words(eqn: JaxprEqn) -> str:
    """What a custom rule is, "" for an equation without one."""
    keys = RULES.get(eqn.primitive.name)
    if keys is None:
        return ""
    names = [getattr(eqn.params.get(key), "__name__", "") or "a rule" for key in keys]
    called = getattr(eqn.params.get("call_jaxpr"), "debug_info", None)
    function = getattr(called, "func_name", "the function")
    if len(names) == 2:
        return (
            f"{function} has a custom_vjp: its own fwd ({names[0]}) runs on the way "
            f"down in its place, its own bwd ({names[1]}) on the way back"
        )
    return (
        f"{function} has a custom_jvp: its own rule ({names[0]}) runs in its place, "
        "and what the rule does with tangents is transposed"
    )
