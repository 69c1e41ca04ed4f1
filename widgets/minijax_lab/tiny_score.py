"""`check("tiny")`: the learner's own JAX, scored against JAX, chapter by chapter.

JAX's answers stand in `tiny_answers.json`, recorded from JAX itself. Two things are
counted: the programs that give JAX's numbers, and, where tiny can, those that tracing
writes as JAX does.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from minijax_lab import grading, tiny_networks
from minijax_lab.answers import alike, difference, refuses
from minijax_lab.grading import TookTooLong, time_limit
from minijax_lab.tiny_programs import PROGRAMS, Tiny, TinyProgram, plain, tiny

SECONDS = 20
ANSWERS = Path(__file__).with_name("tiny_answers.json")
TITLES = {
    "01": "arrays",
    "02": "tracing",
    "03": "the cache",
    "04": "trees",
    "05": "random bits",
    "06": "forward mode",
    "07": "reverse mode",
    "08": "vmap",
    "09": "composing",
    "10": "control flow",
    "11": "custom rules",
    "12": "leaks",
    "13": "fusion",
    "14": "export",
    "15": "a network",
    "16": "sharding",
    "17": "collectives",
    "18": "kernels",
    "19": "attention",
    "20": "printing",
    "21": "your own rules",
}


@dataclass
class ChapterScore:
    """What a chapter's programs gave: how many were right, and which failed.

    `otherwise` are those with right numbers, and another text than JAX's; `error` is
    what the first to fail raised.
    """

    chapter: str
    count: int = 0
    right: int = 0
    texts: int = 0
    same_texts: int = 0
    failed: list[str] = field(default_factory=list)
    otherwise: list[str] = field(default_factory=list)
    error: Exception | None = None


@contextlib.contextmanager
def read_anew(folder: str = "") -> Iterator[None]:
    """Imports of `tiny` in the block read its files anew, those in `folder` first.

    Afterwards the modules that were loaded are back: a notebook never has two of one
    module, of which one does not know the tracers of the other.
    """
    loaded = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "tiny"}
    forget()
    sys.path[:0] = [folder] if folder else []
    try:
        yield
    finally:
        if folder:
            sys.path.remove(folder)
        forget()
        sys.modules.update(loaded)


def forget() -> None:
    """Takes `tiny` out of what is imported, so that its files are read anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "tiny"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def score(*chapters: str) -> None:
    """Prints how many programs the `tiny` on Python's path gets right, by chapter."""
    unknown = [name for name in chapters if name not in TITLES]
    if unknown:
        print(f"tiny: there is no chapter {unknown[0]!r} in it; name one as '06'.")
        return
    try:
        with read_anew(), time_limit(SECONDS):
            Tiny()  # what cannot be imported is told before anything is counted
            scores = [score_chapter(name) for name in chapters or TITLES]
    except TookTooLong:
        print(f"tiny: stopped after {SECONDS} seconds.")
        return
    except ModuleNotFoundError as error:
        print(f"tiny: there is no {error.name} beside this notebook.")
        return
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f" at line {last.lineno} of tiny/{Path(last.filename).name}"
        where = "" if isinstance(error, SyntaxError) else where  # which says its own
        print(grading.told(error, "tiny: importing it", where))
        return
    print(owners(chapters))
    for line in lines_of(scores):
        print(line)


def owners(chapters: Sequence[str]) -> str:
    """How many pieces the learner wrote, and who wrote those of the chapters named."""
    from minijax_lab.tiny_pieces import PIECES, is_yours, whose

    yours = [name for name in PIECES if is_yours(name)]
    told = f"tiny: {len(yours)} of {len(PIECES)} pieces are yours"
    names = [name for name, chapter in PIECES.items() if chapter in chapters]
    if not chapters:
        names = yours
    return f"{told} ({whose(*names)})." if names else f"{told}."


def lines_of(scores: list[ChapterScore]) -> Iterator[str]:
    """Yields the score as text: a line for each chapter, a line for all."""
    count = sum(one.count for one in scores)
    right = sum(one.right for one in scores)
    texts, same = (
        sum(one.texts for one in scores),
        sum(one.same_texts for one in scores),
    )
    head = f"tiny: {right} of {count} programs give JAX's numbers"
    if texts:
        head += f", {same} of {texts} are written as JAX writes them"
    yield f"{head}."
    for one in scores:
        words = f"  {one.chapter} {TITLES[one.chapter]:13} {one.right:2} of {one.count}"
        if one.texts:
            words += f", {one.same_texts} of {one.texts} as JAX writes them"
        yield words
        told = {"failed": one.failed, "right, in other words than JAX's": one.otherwise}
        for what, lines in told.items():
            more = f"; {len(lines) - 3} more" if len(lines) > 3 else ""
            if lines:
                yield f"     {what}: {'; '.join(lines[:3])}{more}"


def score_chapter(chapter: str) -> ChapterScore:
    """Runs a chapter's programs in the learner's `tiny`."""
    one = ChapterScore(chapter)
    for line, holds in OWN_CHECKS.get(chapter, {}).items():
        one.count += 1
        try:
            holds()
            one.right += 1
        except TookTooLong:
            raise
        except Exception as error:
            one.failed.append(f"{line} ({said(error)})")
            one.error = one.error or error
    if chapter in PROGRAMS:
        answers = json.loads(ANSWERS.read_text(encoding="utf-8"))[chapter]
        for program in PROGRAMS[chapter]:
            score_program(program, answers[program.line], one)
    return one


def said(error: Exception) -> str:
    """Returns an exception in a few words."""
    first_line = str(error).strip().partition("\n")[0]
    first_line = textwrap.shorten(first_line, 160, placeholder=" ...")
    kind = type(error).__name__
    if isinstance(error, AssertionError):
        return first_line.rstrip(".")
    return f"{kind}: {first_line}"


def score_program(program: TinyProgram, answer: Any, one: ChapterScore) -> None:
    """Adds one program's outcome to a chapter's score."""
    one.count += 1
    one.texts += program.text
    try:
        tiny = Tiny()
        compare(tiny, program.function(tiny, *program.args), answer["values"])
        traced = tiny.trace(lambda *args: program.function(tiny, *args), *program.args)
        compare(tiny, traced(*program.args), answer["values"])
        one.right += 1
    except TookTooLong:
        raise
    except Exception as error:
        one.failed.append(f"{program.line} ({said(error)})")
        one.error = one.error or error
        return
    if program.text:
        same = sums_sorted(plain(str(traced))) == sums_sorted(answer["text"])
        one.same_texts += same
        if not same:
            one.otherwise.append(program.line)


def sums_sorted(text: str) -> str:
    """A program's text, with the operands of each `add_any` in one order.

    Which of two cotangents comes first is the learner's to choose.
    """
    return re.sub(
        r"add_any (\S+) (\S+)", lambda m: f"add_any {sorted(m.groups())}", text
    )


def compare(tiny: Any, found: Any, values: list[Any]) -> None:
    """Raises unless the leaves of a result are JAX's numbers."""
    leaves, _ = tiny.flatten(found)
    assert len(leaves) == len(values), f"{len(leaves)} results, not {len(values)}"
    for leaf, value in zip(leaves, values):
        right = np.asarray(value, np.float32)
        wrong = difference(leaf, right, rtol=1e-4)
        assert wrong is None, str(wrong).rstrip(".")


def array_stays() -> None:
    x = np.zeros(3)
    found = tiny.at.At(x)[np.array([0, 0])].add(1.0)
    assert found.tolist() == [2.0, 0.0, 0.0], "an index that comes twice counts twice"
    assert not x.any(), "the array itself changed"


def hits_of(
    calls: list[tuple[Any, ...]], right: str, static: tuple[int, ...] = ()
) -> None:
    """Of each call the learner's cache has the program (h), or it has not (m)."""
    jitted = tiny.cache.Jitted(lambda x, *rest: x, static)
    words = {"h": "hit", "m": "miss"}
    for number, (args, letter) in enumerate(zip(calls, right, strict=True), 1):
        before = jitted.hits
        jitted(*args)
        found = "h" if jitted.hits > before else "m"
        told = f"call {number}: expected a {words[letter]}, got a {words[found]}"
        assert found == letter, told


def shapes_and_types_count() -> None:
    x = np.ones(3, np.float32)
    calls = [(x,), (x + 1,), (np.ones(4, np.float32),), (x.astype(np.int32),), (x,)]
    hits_of(calls, "mhmmh")


def trees_count() -> None:
    x = np.ones(3, np.float32)
    hits_of([({"a": x},), ({"b": x},), ([x],), ({"a": x + 1},)], "mmmh")


def statics_count() -> None:
    calls = [(2.0, 1), (2.0, True), (2.0, 1.0), (3.0, 1), (2.0, 2), (2.0, "a")]
    hits_of([*calls, (2.0, "b"), (9.0, "b")], "mmmhmmmh", (1,))


def trees_come_back() -> None:
    value = {"b": [1, (2, None)], "a": 3}
    leaves, structure = tiny.tree.flatten(value)
    assert leaves == [3, 1, 2], f"leaves {leaves}, not [3, 1, 2]"
    again = tiny.tree.unflatten(structure, leaves)
    assert again == value, f"unflatten: expected {value}, got {again}"


def bits_are_jax() -> None:
    found = tiny.threefry.bits(tiny.threefry.make_key(7), 4).tolist()
    right = json.loads(ANSWERS.read_text(encoding="utf-8"))["bits"]
    assert found == right, f"bits {found[0]}, ..., not {right[0]}, ..."


def keys_are_jax() -> None:
    found = tiny.threefry.split(tiny.threefry.make_key(7)).tolist()
    right = json.loads(ANSWERS.read_text(encoding="utf-8"))["split"]
    assert found == right, f"keys {found}, not {right}"


def uniform_is_jax() -> None:
    found = tiny.threefry.uniform(tiny.threefry.make_key(7), 4)
    right = json.loads(ANSWERS.read_text(encoding="utf-8"))["uniform"]
    told = difference(found, np.asarray(right, np.float32), 0, 0)
    assert told is None, str(told)


def bool_says_why() -> None:
    try:
        tiny.trace.trace(lambda x: x * 2.0 if x else x * 3.0, np.float32(0.0))
    except TypeError:
        return
    raise AssertionError("an `if` on a tracer was not refused")


def root_has_a_slope() -> None:

    def square_root(a: Any) -> Any:
        return tiny.nesting.root(lambda a, x: x * x - a, a, np.float32(1.0))

    found = tiny.transposes.grad(square_root)(np.float32(4.0))
    assert abs(float(found) - 0.25) < 1e-5, (
        f"the root of 4 changes by 0.25 when 4 does; expected 0.25, got {found}"
    )


def leaks_are_told() -> None:
    leaks = tiny.leaks.leaks
    kept: dict[str, Any] = {}

    def keeps(x: Any) -> Any:
        kept["y"] = x * 2.0
        return kept["y"] + 1.0

    found = leaks(lambda x: x * 2.0 + 1.0, np.float32(3.0))
    assert found == [], f"a function that keeps nothing: expected [], got {found}"
    found, right = leaks(keeps, np.float32(3.0)), ["Tracer(f32[]): key 'y' of a dict"]
    assert found == right, f"expected {right}, got {found}"


def saved(function: Callable[..., Any], *args: Any) -> tuple[Any, bytes]:
    """Returns what comes back when a function was saved and loaded, and the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program"
        tiny.export.save(tiny.export.exported(function, *args), path)
        return tiny.export.load(path), path.read_bytes()


def wrong_arguments_are_refused() -> None:
    x = np.ones(3, np.float32)
    loaded, _ = saved(lambda both: both["a"] + both["b"], {"a": x, "b": x})
    found = loaded({"a": x, "b": 2 * x})
    alike("a + b of the loaded program", found, 3 * x, 1e-5)
    wrong = {
        "another shape": {"a": np.ones(4, np.float32), "b": x},
        "another dtype": {"a": x.astype(np.int32), "b": x},
        "another tree": {"a": x, "c": x},
    }
    for what, both in wrong.items():
        assert refuses(TypeError, loaded, both), f"{what} was not refused"


def other_files_are_refused() -> None:
    _, contents = saved(lambda x: x * 2.0, np.float32(1.0))
    wrong = {
        "a picture": b"\x89PNG" + contents[4:],
        "a changed byte": contents[:-1] + b" ",
        "half a file": contents[: len(contents) // 2],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program"
        for what, found in wrong.items():
            path.write_bytes(found)
            assert refuses(ValueError, tiny.export.load, path), (
                f"{what} was not refused"
            )


def lines_printed(function: Callable[..., Any], x: Any) -> tuple[list[str], list[Any]]:
    """Returns what a function prints with a token, run last equation first."""
    program = tiny.printing.threaded(tiny.trace.trace(function, x))
    count = len(program.inputs)
    assert count == 2, f"threaded adds an input, the token: expected 2, got {count}"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        outputs = tiny.printing.run(program, [x, ()], max)
    return out.getvalue().splitlines(), outputs


def prints_in_order() -> None:

    def chatty(x: Any) -> Any:
        y = x * 2.0
        for number, value in enumerate([y, x, y + x, x]):
            tiny.printing.say(f"{number}: {{}}", value)
        return y

    lines, outputs = lines_printed(chatty, np.float32(1.0))
    right = ["0: 2.0", "1: 1.0", "2: 3.0", "3: 1.0"]
    assert lines == right, f"expected the lines {right}, got {lines}"
    assert outputs == [2.0, ()], f"it returns {outputs}, not the result and the token"


def token_goes_on() -> None:

    def chatty(x: Any) -> Any:
        tiny.printing.say("first {}", x)
        tiny.printing.say("second {}", x)
        return x

    program = tiny.printing.threaded(tiny.trace.trace(chatty, np.float32(1.0)))
    first, second = program.equations
    assert first.operands[-1] is program.inputs[-1], (
        "the first print should take the token that comes in"
    )
    assert second.operands[-1] is first.results[0], (
        "the second should take the first's token"
    )
    assert program.outputs[-1] is second.results[0], (
        "the last one's token should go out"
    )


def silence_passes_the_token() -> None:
    lines, outputs = lines_printed(lambda x: x + 1.0, np.float32(1.0))
    assert not lines, f"a program without a print printed {lines}"
    assert outputs == [2.0, ()], f"it returns {outputs}, not the result and the token"


def inside(function: Callable[..., Any], *ends: tuple[Any, Any]) -> None:
    """Raises if a point between the ends has a result outside of the bounds."""
    given = [
        tiny.intervals.Interval(*(np.asarray(end, np.float32) for end in pair))
        for pair in ends
    ]
    found = tiny.intervals.bounds(function, *given)
    for share in np.linspace(0, 1, 9):
        for other in np.linspace(0, 1, 9):
            shares = [share, other][: len(given)]
            x = [np.float32(a + (b - a) * s) for (a, b), s in zip(given, shares)]
            result = np.asarray(function(*x))
            slack = 1e-4 * (1 + np.abs(result))
            out = (result < found.low - slack) | (result > found.high + slack)
            assert not out.any(), (
                f"at {[v.tolist() for v in x]} the result {result.tolist()} is outside "
                f"of [{np.asarray(found.low).tolist()}, "
                f"{np.asarray(found.high).tolist()}]"
            )


def tight(function: Callable[..., Any], right: tuple[float, float], *ends: Any) -> None:
    """Raises unless bounds are these."""
    given = [tiny.intervals.Interval(*map(np.float32, pair)) for pair in ends]
    found = tiny.intervals.bounds(function, *given)
    ours = (float(found.low), float(found.high))
    expected = tuple(map(float, right))
    assert np.allclose(ours, right), f"expected {expected}, got {ours} for {ends}"


def bounds_of_products() -> None:
    for x in ((1, 2), (-2, 3), (-3, -1)):
        for y in ((0.5, 4), (-1, 2), (-4, -2)):
            corners = [a * b for a in x for b in y]
            tight(lambda a, b: a * b, (min(corners), max(corners)), x, y)
    row = np.array([-1.0, 0.5, 2.0], np.float32)
    inside(lambda a, b: a * b - b, (row, row + 2), (row - 1, row + 1))
    tight(lambda a: a * 2.0 - 3.0, (-5.0, -1.0), (-1, 1))


def bounds_of_powers() -> None:
    for x in ((1, 2), (-2, 3), (-3, 2), (-3, -1), (0, 2)):
        for y in (1, 2, 3, 4):
            values = [float(a) ** y for a in x]
            least = 0.0 if y % 2 == 0 and x[0] < 0 < x[1] else min(values)
            tight(lambda a, y=y: a**y, (least, max(values)), x)
    inside(lambda a: a**2, (np.array([-2.0, 1.0]), np.array([1.0, 3.0])))


def bounds_of_several() -> None:
    row = np.array([-1.0, 0.5, 2.0], np.float32)
    both = (row, row + 1)
    inside(lambda a, b: tiny.operations.tanh(a * b) - b**2, both, (row - 1, row + 2))
    inside(lambda a: 2.0 - tiny.operations.exp(-a) * row, both)
    one = tiny.intervals.Interval(np.float32(0), np.float32(1))
    found = tiny.intervals.bounds(lambda a: {"twice": (a + a, a)}, one)
    assert set(found) == {"twice"}, "the results have the function's tree"
    assert tuple(map(float, found["twice"][0])) == (0.0, 2.0), "a + a of [0, 1]"


OWN_CHECKS: dict[str, dict[str, Callable[[], None]]] = {
    "01": {"x.at[i].add": array_stays},
    "02": {"if x:": bool_says_why},
    "03": {
        "shapes and types": shapes_and_types_count,
        "trees": trees_count,
        "static values": statics_count,
    },
    "04": {"flatten and unflatten": trees_come_back},
    "05": {"bits": bits_are_jax, "split": keys_are_jax, "uniform": uniform_is_jax},
    "09": {"slope of a root": root_has_a_slope},
    "12": {"leaks": leaks_are_told},
    "14": {
        "wrong arguments": wrong_arguments_are_refused,
        "other files": other_files_are_refused,
    },
    "15": tiny_networks.CHECKS,
    "20": {
        "prints in order": prints_in_order,
        "the token goes on": token_goes_on,
        "no print": silence_passes_the_token,
    },
    "21": {
        "bounds of sums and products": bounds_of_products,
        "bounds of powers": bounds_of_powers,
        "bounds of a function of several": bounds_of_several,
    },
}
