"""Compares what learners answer: predictions, arrays, and programs of equations."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

# What makes no difference in an answer of words.
FILLER = {"the", "a", "an", "it", "its"}
NUMBER = re.compile(r"([-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?)\s*([a-z%]*)", re.IGNORECASE)
BYTES = {"b": 1, "byte": 1, "bytes": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30}
BYTES |= {"kb": 10**3, "mb": 10**6, "gb": 10**9}
WORDS = "zero one two three four five six seven eight nine ten".split()
NUMBERS: dict[str, float] = {word: number for number, word in enumerate(WORDS)}
NUMBERS |= {f"minus {word}": -number for word, number in NUMBERS.items()}
NUMBERS |= {"once": 1, "twice": 2, "half": 0.5, "a half": 0.5, "one half": 0.5}
DOTTED = re.compile(r"(?:[A-Za-z_]\w*\.)+([A-Za-z_]\w*)")


def same(answer: Any, right: Any, unit: str = "") -> bool:
    """Whether an answer to a question is the right one, however it is written.

    In texts, case, spacing, quotes, commas and articles do not count. A number, a tuple
    or a list may be given as a text, a number as a word, or with its unit: one of bytes
    is converted to `unit`, the question's. A dtype may be given as itself or by its
    name, and a name with its modules in front.
    """
    if isinstance(answer, bool) and isinstance(right, str):
        answer = "yes" if answer else "no"
    if isinstance(answer, str):
        answer = answer.strip(" \n\"'`").rstrip(" .\n\"'`")
    if isinstance(right, str):
        mine, other = text_of(answer), right
        dotted = DOTTED.fullmatch(mine)
        mine = dotted[1] if dotted and "." not in right else mine
        numbers = [only_numbers(text) for text in (mine, other)]
        if numbers[1] is not None:
            return numbers[0] == numbers[1]
        return words_of(mine) == words_of(other)
    if isinstance(answer, str):
        answer = value_of(answer, unit)
    if isinstance(answer, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(answer) == len(right) and all(map(same, answer, right))
    if isinstance(answer, bool) and not isinstance(right, bool):
        return False
    try:
        return bool(answer == right)
    except Exception:
        return False


def listed(answers: Any) -> list[Any] | None:
    """Returns an answer's entries; None unless it is a list, a tuple or an array."""
    if isinstance(answers, np.ndarray) and answers.ndim:
        return list(answers.tolist())
    return list(answers) if isinstance(answers, (list, tuple)) else None


def list_complaint(
    answers: Any, right: list[Any], what: str = "numbers", words: Iterable[str] = ()
) -> str | None:
    """Returns what is wrong with the answers to questions a, b, c, ..., or None.

    `what` they are goes into the sentence; `words` are those that may be said.
    """
    given = listed(answers)
    if given is None or len(given) != len(right):
        return f"Give a list of {len(right)} {what}."
    unknown = [one for one in given if not any(same(one, word) for word in words)]
    if words and unknown:
        return f"{unknown[0]!r} is none of the words {', '.join(sorted(set(words)))}."
    names = string.ascii_lowercase
    wrong = [n for n, a, b in zip(names, given, right) if not same(a, b)]
    if wrong:
        good = len(right) - len(wrong)
        return f"{good} of {len(right)} are right; look again at {wrong[0]}."
    return None


def first_wrong(
    answers: Any, right: list[Any], names: Iterable[str], sentence: str
) -> str | None:
    """A sentence about the first wrong answer of several, or about their number.

    `names` are what the answers are about; `sentence` has {name} and {answer}.
    """
    given = listed(answers)
    if given is None or len(given) != len(right):
        return f"Give a list of {len(right)} numbers."
    for name, mine, one in zip(names, given, right):
        if not same(mine, one):
            return sentence.format(name=name, answer=mine)
    return None


def text_of(answer: Any) -> str:
    """Returns an answer as text: a dtype or a scalar type of NumPy's by its name."""
    name = getattr(answer, "name", None) or getattr(answer, "__name__", None)
    return name if isinstance(name, str) else str(answer)


def words_of(text: str) -> str:
    """Returns what counts of a text."""
    words = re.sub(r"[\"'`,.;]", " ", text).split()
    if any(len(word) > 1 for word in words):  # "A B" is no article and a letter
        words = [word for word in words if word.lower() not in FILLER]
    return "".join(words).lower()


def only_numbers(text: str) -> list[float] | None:
    """Returns the numbers of a text such as "[0. 2. 4.]"; None if it has words."""
    if not re.fullmatch(r"[-+\d.,eE\s()\[\]]*\d[-+\d.,eE\s()\[\]]*", text):
        return None
    return [float(n) for n in re.findall(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?", text)]


def value_of(text: str, unit: str) -> Any:
    """Returns the value that a text writes; the text itself if it writes none."""
    word, _, counted = text.lower().rpartition(" ")
    if word in NUMBERS and counted in ("times", *BYTES):  # "two bytes" as "2 bytes"
        text = f"{NUMBERS[word]} {counted}"
    number = NUMBER.fullmatch(text)
    if number is not None and not re.search(r",(?!\d{3}(?!\d))", number[1]):
        value = float(number[1].replace(",", ""))
        given = number[2].lower()
        if unit and given in BYTES:
            value *= BYTES[given] / BYTES[unit.lower()]
        return value
    if text.lower() in NUMBERS:
        return NUMBERS[text.lower()]
    fraction = re.fullmatch(r"(\d+)\s*/\s*([1-9]\d*)", text)
    if fraction:
        return int(fraction[1]) / int(fraction[2])
    if re.fullmatch(r"\d+(\s*[x×]\s*\d+)+", text):
        return tuple(map(int, re.split("[x×]", text)))  # a shape, as in "2 x 2"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def difference(
    found: Any, right: Any, rtol: float = 1e-5, atol: float = 1e-5
) -> str | None:
    """Returns where an array differs most from the right one, or None.

    The sentence says the index, what was expected there and what was found; or the two
    shapes.
    """
    found, right = np.asarray(found), np.asarray(right)
    if found.shape != right.shape:
        return f"Its shape is {found.shape}, not {right.shape}."
    if found.dtype == object:
        return f"It is {found!r:.60}, and no array of numbers."
    if np.allclose(found, right, rtol=rtol, atol=atol, equal_nan=True):
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(found.astype(complex) - right.astype(complex))
    distance = np.where(np.isnan(distance), np.inf, distance)
    same = np.isclose(found, right, rtol=rtol, atol=atol, equal_nan=True)
    distance = np.where(same, 0.0, distance)
    index = np.unravel_index(int(np.argmax(distance)), right.shape)
    where = ", ".join(str(int(i)) for i in index)
    at = f"At index ({where})" if right.ndim > 1 else f"At index {where}"
    if right.ndim == 0:
        at = ""
    texts = [f"{array[index]:.6g}" for array in (right, found)]
    if texts[0] == texts[1]:
        texts = [f"{array[index]:.9g}" for array in (right, found)]
    told = f"expected {texts[0]}, got {texts[1]}."
    return f"{at}: {told}" if at else told.capitalize()


def first_lines(text: str, most: int = 30) -> str:
    """Returns a text whose middle is left out if it has more lines than that."""
    lines = text.splitlines()
    if len(lines) <= most:
        return text
    kept = most - 4
    gap = f"  ... {len(lines) - kept - 3} more lines ..."
    return "\n".join([*lines[:kept], gap, *lines[-3:]])


def beside(mine: Any, right: Any) -> str:
    """Returns the texts of two programs, yours on the left."""
    left, other = str(mine).splitlines(), str(right).splitlines()
    width = max(len("yours"), *(len(line) for line in left))
    rows = max(len(left), len(other))
    left += [""] * (rows - len(left))
    other += [""] * (rows - len(other))
    lines = [f"{'yours':{width}} | the course's"]
    lines += [f"{a:{width}} | {b}" for a, b in zip(left, other)]
    return "\n".join(line.rstrip() for line in lines)


def refuses(
    exception: type[Exception], function: Callable[..., Any], *args: Any
) -> bool:
    """Whether a call raises this exception."""
    try:
        function(*args)
    except exception:
        return True
    except Exception:
        return False
    return False


def alike(what: str, found: Any, right: Any, rtol: float = 1e-4) -> None:
    """Raises if an array is not the right one."""
    said = difference(found, right, rtol=rtol)
    assert said is None, f"{what}: {said}"
