"""Second counts of what the compiler's views say, over programs hard to count in.

`see.stages`, `see.passes`, the roofline and `see.live`, over jitted helpers called
twice, branches, loops of known and unknown length, arrays from outside, equal layers,
updates in place and slices behind reshapes. The counts are JAX's jaxpr, jaxlib's own
walk over the StableHLO, lines of the compiled program's text and XLA's cost analysis.
"""

import json
import re

import ipywidgets
import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax_lab.explain.roofline import roofline_of
from tests.views.claims.forty import CASES, UNSEEN

HARD = UNSEEN[12:]  # what was told falsely once
MACHINE = see.Machine("two numbers", 1e12, 1e11)
LOOPS = ("scan_in_scan", "rnn", "kalman", "power")
COUNTED = [*HARD, *(one for one in CASES if one.name in LOOPS)]


@pytest.fixture(autouse=True)
def with_all_passes(monkeypatch):
    """Programs are compiled for users, as the views do, and not fast for tests."""
    monkeypatch.setenv("MINIJAX_TEST_FAST_COMPILE", "0")


def named(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def compiled(case):
    return minijax.jit(case.make(minijax)).lower(*case.args).compile()


def inner_jaxprs(eqn):
    for value in eqn.params.values():
        for one in value if isinstance(value, (list, tuple)) else (value,):
            one = getattr(one, "jaxpr", one)
            if hasattr(one, "eqns"):
                yield one


# ---- stages ------------------------------------------------------------------------


def lines_of_jax(jaxpr) -> set[int]:
    """The lines of this project's tests that an equation of JAX's was written on."""
    from jax._src import source_info_util

    found = set()
    for eqn in jaxpr.eqns:
        frame = source_info_util.user_frame(eqn.source_info.traceback)
        if frame is not None and frame.file_name.endswith("forty.py"):
            found.add(frame.start_line)
        for inner in inner_jaxprs(eqn):
            found |= lines_of_jax(inner)
    return found


def operations_in(module) -> int:
    """How many operations a module has, by jaxlib's walk; without what frames them,
    and with a reduction as one."""
    frames = {"builtin.module", "func.func", "func.return", "stablehlo.return"}
    found = 0
    todo = [module.operation]
    while todo:
        one = todo.pop()
        found += one.operation.name not in frames
        if one.operation.name != "stablehlo.reduce":
            todo += [each for r in one.regions for b in r for each in b.operations]
    return found


@named(HARD)
def test_stages_counts_lines_equations_and_operations(case) -> None:
    view = see.stages(case.make(minijax), *case.args)
    record = view.recording
    lines, equations, operations = map(
        int, re.findall(r"(\d+) (?:lines?|equations?|StableHLO)", record.headline)
    )
    theirs = jax.make_jaxpr(case.make(jax))(*case.args)
    assert equations == len(theirs.jaxpr.eqns)
    spans = {(s.span.source, s.span.line) for s in record.stages if s.span is not None}
    assert lines == len(spans)
    mine = {line for n, line in spans if record.sources[n].file == "forty.py"}
    assert mine == lines_of_jax(theirs.jaxpr)
    lowered = minijax.jit(case.make(minijax)).lower(*case.args)
    assert operations == operations_in(lowered.compiler_ir())


@named(HARD)
def test_lines_have_the_instructions_that_name_them(case) -> None:
    """An instruction is the line's where its innermost frame stands, and at most the
    lines' that its frames name, as the table in the program's text has them."""
    record = see.stages(case.make(minijax), *case.args).recording
    rows = record.compiled.program.module.instructions
    text = compiled(case).as_text()
    names = instructions_in(text)  # of another compilation, so found by their places
    assert len(rows) == len(names)
    told = {
        (names[number], stage.span.line)
        for stage in record.stages
        if stage.span is not None
        if record.sources[stage.span.source].file == "forty.py"
        for number in stage.instructions
    }
    inner, any_frame = frames_named(text)
    placed = {name for name, _ in any_frame}  # a reducer's parameters have no frame
    assert inner and inner <= told
    assert {one for one in told if one[0] in placed} <= any_frame


def frames_named(text: str) -> tuple[set, set]:
    """Pairs of an instruction and a line of `forty.py`: its innermost frame's, and
    those of all frames, from the tables in a compiled program's text."""
    files = text.partition("FileNames")[2].partition("FunctionNames")[0]
    ours = set(re.findall(r"^(\d+) \".*forty.py\"$", files, re.M))
    place = r"^(\d+) {file_name_id=(\d+) function_name_id=\d+ line=(\d+)"
    lines = {n: (file, int(line)) for n, file, line in re.findall(place, text, re.M)}
    frame = r"^(\d+) {file_location_id=(\d+)(?: parent_frame_id=(\d+))?"
    frames = {n: (at, parent) for n, at, parent in re.findall(frame, text, re.M)}
    inner, every = set(), set()
    for row in text.splitlines():
        found = re.search(r"^\s+(?:ROOT )?%?([\w.\-]+) = .*stack_frame_id=(\d+)", row)
        number, chain = found[2] if found else "", []
        while number in frames:
            at, parent = frames[number]
            chain.append(lines[at])
            number = str(int(parent or 0) - 1)
        chain = [line for file, line in chain if file in ours]
        every |= {(found[1], line) for line in chain}
        inner |= {(found[1], line) for line in chain[:1]}
    return inner, every


def instructions_in(text: str) -> list[str]:
    """The instructions in a program's text, by name."""
    return re.findall(r"^\s+(?:ROOT )?%?([\w.\-]+) = ", text, re.M)


# ---- passes ------------------------------------------------------------------------


@named(HARD)
def test_passes_end_at_the_compiled_program(case) -> None:
    record = see.passes(case.make(minijax), *case.args).recording
    counts = re.search(r": (\d+) passes.* (\d+) instr.*-> (\d+)", record.headline)
    passes, first, last = map(int, counts.groups())
    assert passes == len(record.passes) and first == len(record.first)
    program = set(instructions_in(compiled(case).as_text()))
    end = set(record.after(len(record.passes)))
    assert last == len(program) == len(end)
    # Each pass leaves as many as came and did not go.
    size = first
    for each in record.passes:
        size += len(each.added) - len(each.removed)
        assert each.instructions == size
    lowered = minijax.jit(case.make(minijax)).lower(*case.args)
    hlo = lowered.compiler_ir("hlo")
    assert first == len(instructions_in(hlo.as_hlo_text()))


# ---- the roofline ------------------------------------------------------------------

FUNCTIONS = {"sin", "cos", "tan", "tanh", "exp", "log", "logistic", "sqrt", "rsqrt"}


def functions_of(jaxpr) -> tuple[int, bool]:
    """How many transcendental functions of numbers a jaxpr computes: in loops each
    turn, of branches the larger; and whether a loop's length is unknown."""
    found, unknown = 0, False
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in FUNCTIONS:
            found += int(np.prod(eqn.outvars[0].aval.shape))
        inner = [functions_of(one) for one in inner_jaxprs(eqn)]
        counts = [count for count, _ in inner]
        branches = eqn.primitive.name == "cond"
        found += (max if branches else sum)(counts or [0]) * eqn.params.get("length", 1)
        unknown |= eqn.primitive.name == "while" or any(more for _, more in inner)
    return found, unknown


@named([one for one in COUNTED if one.name != "helper_kept"])
def test_the_roofline_counts_functions_as_often_as_they_run(case) -> None:
    """Of `helper_kept` XLA computes one sine where JAX writes two."""
    program = see.fusion(case.make(minijax), *case.args).program
    roof = roofline_of(program, MACHINE)
    needed, unknown = functions_of(jax.make_jaxpr(case.make(jax))(*case.args).jaxpr)
    assert bool(roof.unknown) == unknown
    assert roof.functions_run == needed


@named(HARD)
def test_the_roofline_counts_operations_as_xla_does(case) -> None:
    """XLA counts a loop's turn once, and of branches the larger."""
    view = see.fusion(case.make(minijax), *case.args, roofline=MACHINE)
    (roof, found) = roofline_of(view.program, MACHINE), compiled(case).cost_analysis()
    functions = int(found.get("transcendentals", 0))
    least = int(found.get("flops", 0)) + functions
    operations = sum(dot.operations for dot in roof.dots)
    if case.name == "branch_of_helpers":
        assert operations > least
    else:
        assert operations == least
    if functions:
        assert f": {roof.functions_run:,} results" in view.text()
        told = "results, loops of unknown length once, each counted" in view.text()
        assert told == bool(roof.unknown)
    turns = 5 if case.name == "updates_in_a_loop" else 1
    assert roof.functions_run == functions * turns


# ---- live --------------------------------------------------------------------------


@named(HARD)
def test_live_says_what_a_view_of_the_last_value_says(case) -> None:
    """The control scales the first argument; the count is the numbers recorded."""
    function = case.make(minijax)
    recorded = []

    def scaled(times):
        recorded.append(times)
        return function(jnp.asarray(case.args[0] * times), *case.args[1:])

    slider = ipywidgets.IntSlider(1, 1, 4)
    live = see.live(see.jaxpr, scaled, slider)
    for times in (3, 2):
        slider.value = times
        first = jax.numpy.asarray(case.args[0] * times)
        theirs = jax.make_jaxpr(case.make(jax))(first, *case.args[1:])
        count = len(theirs.jaxpr.eqns)
        steps = json.loads(live.children[-1].frame)["steps"]
        assert count == len(
            [e for e in live.view.recording.equations if e.parent is None]
        )
        assert len(steps) >= count
    assert recorded == [1, 3, 2]
