"""Fourteen puzzles about kernels: `puzzle("18.map", f)`, scored in bytes.

The learner writes a function of arrays that calls a kernel. It is right if it gives
what the specification gives, on several shapes, and if no program reads or writes what
it should not. The score is what its kernel fetches and writes back, counted from the
blocks of its programs, beside the least that is known. Seven puzzles belong to chapter
18, seven to chapter 19.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from minijax_lab import grading
from minijax_lab.evidence import not_in_the_kernel, wrong_for
from minijax_lab.grading import Outcome, outcomes, run

Args = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Puzzle:
    """A puzzle.

    Attributes:
      spec: what the function must give, in NumPy.
      cases: the shapes of its arguments, several times; the last is the one scored.
      best: (bytes fetched, bytes written) at least, for the case that is scored.
      most: how many times the best may be fetched.
      block: how many bytes of one array a program may hold; None for any number. All
        scratch memory together is one array.
      carried: whether programs have to tell each other by scratch memory, so that one
        program alone writes the result.
    """

    spec: Callable[..., np.ndarray]
    cases: Sequence[Sequence[tuple[int, ...]]]
    best: tuple[int, int]
    most: float = math.inf
    block: int | None = None
    carried: bool = False


def numbers(shapes: Sequence[tuple[int, ...]], seed: int) -> Args:
    """Arguments of these shapes."""
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _windows(x: np.ndarray) -> np.ndarray:
    """The sum of each element and the two before it."""
    padded = np.concatenate([np.zeros(2, x.dtype), x])
    return padded[2:] + padded[1:-1] + padded[:-2]


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    return _softmax(q @ k.T / math.sqrt(q.shape[1])) @ v


PUZZLES = {
    "18.map": Puzzle(lambda x: x + 10, [[(32,)], [(64,)]], (256, 256), block=64),
    "18.zip": Puzzle(
        lambda x, y: x * y, [[(32,)] * 2, [(64,)] * 2], (512, 256), block=64
    ),
    "18.guard": Puzzle(
        lambda x: x.sum(keepdims=True), [[(16,)], [(50,)]], (200, 4), block=64
    ),
    "18.broadcast": Puzzle(
        lambda x, y: x[:, None] + y[None, :],
        [[(16,), (16,)], [(32,), (48,)]],
        (320, 6144),
        block=1024,
    ),
    "18.blocks": Puzzle(
        lambda x: x.T, [[(16, 32)], [(48, 32)]], (6144, 6144), block=1024
    ),
    "18.scratch": Puzzle(
        lambda x: x.reshape(-1, 16).max(0),
        [[(32,)], [(64,)]],
        (256, 64),
        block=64,
        carried=True,
    ),
    "18.pool": Puzzle(_windows, [[(32,)], [(64,)]], (256, 256), most=2, block=128),
    "19.dot": Puzzle(
        lambda x, y: (x @ y)[None], [[(32,)] * 2, [(64,)] * 2], (512, 4), block=64
    ),
    "19.prefix": Puzzle(np.cumsum, [[(32,)], [(64,)]], (256, 256), block=64),
    "19.sums": Puzzle(
        lambda x: x.sum(1), [[(8, 32)], [(16, 48)]], (3072, 64), block=512
    ),
    "19.matmul": Puzzle(
        lambda x, y: x @ y,
        [[(16, 32), (32, 16)], [(32, 64), (64, 48)]],
        (44032, 6144),
        most=1.2,
        block=1024,
    ),
    "19.softmax": Puzzle(
        _softmax, [[(8, 32)], [(20, 64)]], (5120, 5120), most=1, block=2048
    ),
    "19.attention": Puzzle(
        _attention,
        [[(16, 8)] * 3, [(32, 16), (64, 16), (64, 16)]],
        (16384, 2048),
        most=1.2,
        block=1024,
    ),
    "19.budget": Puzzle(
        lambda x, y: x @ y,
        [[(32, 32), (32, 32)], [(64, 64), (64, 64)]],
        (53248, 16384),
        most=1,
        block=4096,
    ),
}


def graded(name: str, function: Callable[..., Any], told: list[str]) -> str | None:
    """One sentence on what is wrong, or None; then `told` gets the score."""
    from minijax_lab.explain.pallas_kernels import record_kernel

    puzzle = PUZZLES[name]
    for seed, shapes in enumerate(puzzle.cases):
        args = numbers(shapes, seed)
        case = ", ".join(str(shape) for shape in shapes)
        wrong = wrong_for(case, function(*args), puzzle.spec(*args))
        if wrong:
            return wrong
    try:
        record = record_kernel(function, args, {})
    except ValueError:
        return "There is no pallas_call in it."
    for problem in record.problems:
        if problem.is_wrong and problem.kind not in ("race", "revisited"):
            return f"The interpreter says: {problem.message}"
    for operand in (*record.of_role("input"), *record.of_role("output")):
        held = operand.itemsize * math.prod(operand.block)
        if puzzle.block is not None and held > puzzle.block:
            return (
                f"A program holds {held:,} B of {operand.name}, and {puzzle.block:,} B "
                "is the most here."
            )
    kept = record.of_role("scratch")
    scratch = sum(operand.itemsize * math.prod(operand.block) for operand in kept)
    if puzzle.block is not None and scratch > puzzle.block:
        return (
            f"A program keeps {scratch:,} B of scratch memory, and {puzzle.block:,} B "
            "is the most here."
        )
    if puzzle.carried:
        apart = not_carried(record)
        if apart:
            return apart
    beside = not_in_the_kernel(function, *args)
    if beside:
        return beside
    fetched, written = puzzle.best
    if record.fetched > puzzle.most * fetched:
        return (
            f"{record.fetched:,} B are fetched, and at most "
            f"{int(puzzle.most * fetched):,} B may be."
        )
    score = (record.fetched, record.written)
    best, owner = best_known(name)
    if sum(score) < sum(best):
        owner = "a new best, yours"
        told.append(f"{words_of(score)}: {owner}; before it was {words_of(best)}.")
        keep_best(name, score)
    else:
        told.append(f"{words_of(score)}; the least that is known{owner} is")
        told[-1] += f" {best[0]:,} B and {best[1]:,} B."
    return None


def not_carried(record: Any) -> str | None:
    """A sentence unless programs pass on what they know in scratch memory."""
    scratch = record.of_role("scratch")
    if not scratch:
        return "There is no scratch memory to keep the largest in."
    for way, verb in enumerate(("reads", "writes")):
        if not any(bytes_[way] for one in scratch for bytes_ in one.touched):
            return f"No program {verb} the scratch memory."
    for result in record.of_role("output"):
        writers = sum(written > 0 for _, written in result.touched)
        if writers != 1:
            return (
                f"{writers} programs write {result.name}; keep the largest so far in "
                "scratch memory, and let the last program alone write the result."
            )
    return None


def words_of(score: Sequence[int]) -> str:
    """A score in words."""
    return f"{score[0]:,} B fetched and {score[1]:,} B written"


def record_file() -> Path | None:
    """Where a learner's best scores are kept; None in the course's own folder.

    It is `kernel_records.json` beside the learner's `tiny`.
    """
    from minijax_lab import tiny_pieces

    try:
        folder = tiny_pieces.own_folder()
    except ModuleNotFoundError:
        return None
    if folder == tiny_pieces.course_file("trace").resolve().parent:
        return None
    return folder.parent / "kernel_records.json"


def kept_records() -> dict[str, list[int]]:
    """The learner's own best scores, by puzzle; a damaged file counts as none."""
    file = record_file()
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def best_known(name: str) -> tuple[tuple[int, ...], str]:
    """The best known score of a puzzle, and ", yours," if it is the learner's."""
    best = PUZZLES[name].best
    own = kept_records().get(name)
    if isinstance(own, list) and len(own) == 2 and all(type(n) is int for n in own):
        if 0 < sum(own) < sum(best):
            return tuple(own), ", yours,"
    return best, ""


def keep_best(name: str, score: Sequence[int]) -> None:
    """Writes a new best score beside the learner's `tiny`."""
    file = record_file()
    if file is not None:
        text = json.dumps({**kept_records(), name: list(score)}, indent=1)
        file.write_text(text + "\n", encoding="utf-8")


failures: Counter[str] = Counter()


def puzzle(name: str, function: Any = ...) -> None:
    """Grades a kernel and prints its score, or what is wrong, with a hint.

    Args:
      name: of the puzzle, such as "18.map".
      function: a function of arrays that calls a kernel.

    Exceptions of the learner's code are reported, not raised.
    """
    if name not in PUZZLES:
        print(f"{name}: there is no such puzzle. There are {', '.join(PUZZLES)}.")
        return
    if grading.hand_in is not None:
        grading.hand_in(name, (function,))
        return
    if function is ...:
        outcomes.append(Outcome(name, "not tried"))
        print(f"{name}: not solved yet. Put your function in place of ...")
        return
    told: list[str] = []
    complaint = run(lambda given: graded(name, given, told), (function,))
    if complaint is None:
        outcomes.append(Outcome(name, "passed"))
        failures.pop(name, None)
        print(f"{name}: solved. {told[0]}")
        return
    outcomes.append(Outcome(name, "failed", complaint))
    number = min(failures[name], 2)
    failures[name] += 1
    print(f"{name}: not yet. {complaint}\n  hint: {HINTS[name][number]}")
    if failures[name] > 3:
        print("  One way to do it is in notebooks/solutions/kernel_puzzles.py.")


# From the first idea to what to write; one with each failure.
HINTS = {
    "18.map": (
        "how many blocks of 16 are there?",
        "the same index map for what comes in and what goes out.",
        "the puzzle of this chapter: `double`.",
    ),
    "18.zip": (
        "a kernel has a ref for each array, and one for the result.",
        "`in_specs` has a spec for each.",
        "`double`, with a second input.",
    ),
    "18.guard": (
        "50 is no multiple of 16: what does the last block hold?",
        "the place of an element is `i * 16 + jnp.arange(16)`.",
        "`jnp.where(place < x.size, part, 0)`, and a start as in `sums`.",
    ),
    "18.broadcast": (
        "which of the two needs to be there for every block of the result?",
        "`x_ref[...][:, None] + y_ref[...][None, :]`.",
        "a block may be high and narrow: all rows and 8 columns.",
    ),
    "18.blocks": (
        "block (i, j) of the result comes from which block of x?",
        "one of two index maps turns its numbers round.",
        "`.T` inside of the kernel turns what is inside of the block.",
    ),
    "18.scratch": (
        "what must a program know of the programs before it?",
        "`scratch_shapes=[pltpu.VMEM((16,), jnp.float32)]` gives one more ref.",
        "begin with minus infinity, write the result in the last program.",
    ),
    "18.pool": (
        "an element needs two that may lie in the block before.",
        "take the block before as a second input, or blocks that overlap; or carry two "
        "elements from program to program.",
        "`pl.Element(18, (2, 0))` is a block of 18 elements whose map counts elements, "
        "two of them NaN in front; two elements in scratch memory cost still less.",
    ),
    "19.dot": (
        "the result has one number, and all programs add to it.",
        "a block of shape (1,) whose map gives (0,).",
        "`sums` of chapter 18.",
    ),
    "19.prefix": (
        "what does a block need of those before it? One number.",
        "carry the sum in scratch memory.",
        "`jnp.cumsum` of the block, plus what was carried.",
    ),
    "19.sums": (
        "a grid of two axes: which one is added over?",
        "the axis that is added over comes last, so that the output's block stays.",
        "`sums` of chapter 18, turned.",
    ),
    "19.matmul": (
        "a grid of three axes: rows, columns, and what is summed over.",
        "x has the blocks (i, k), y (k, j), the result (i, j).",
        "zeros when k is 0, then `o_ref[...] += x_ref[...] @ y_ref[...]`.",
    ),
    "19.softmax": (
        "a block has whole rows.",
        "20 rows in blocks of 8: `pl.cdiv`.",
        "the softmax of chapter 18.",
    ),
    "19.attention": (
        "what has to be corrected when a larger score comes?",
        "the sum of weights and the sum of values: both times exp(old - new).",
        "`online_softmax` and `flash_attention` in tiny.",
    ),
    "19.budget": (
        "squares of 32: what is fetched twice in a row?",
        "let k run forwards, then backwards: at the turn a block stays.",
        "an index map may compute: `jnp.where(j % 2 == 0, k, depth - 1 - k)`.",
    ),
}
