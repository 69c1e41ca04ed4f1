"""Questions: an answer is taken however it is written; near ones are not."""

import json
import re

import numpy as np
import pytest

from minijax_lab import grading, predict
from minijax_lab.answers import WORDS, same
from tests.notebooks.test_exercises import CHAPTERS, NOTEBOOKS


def questions() -> dict:
    found: dict = {}
    for chapter in CHAPTERS:
        found |= grading.chapter(chapter).PREDICTIONS
    return found


def written(question) -> list:
    """The right answer in several ways."""
    answer = question.answer
    if isinstance(answer, str):
        dotted = [f"jnp.{answer}"] if answer.isidentifier() else []
        return [answer, f" {answer} ", f"'{answer}'.", answer.upper(), *dotted]
    ways = [answer, str(answer), f" `{answer}` "]
    if isinstance(answer, int):
        ways += [np.int64(answer), f"{answer:,}"]
        words = [word for number, word in enumerate(WORDS) if number == answer]
        ways += words + [f"{word} times" for word in words]
    return ways


def missed(name: str) -> list:
    """Wrong answers: what many say, near numbers, other questions' answers."""
    asked = questions()
    question = asked[name]
    tried = [*question.because, "something else", None]
    if isinstance(question.answer, (int, float)):
        tried += [question.answer + 1, question.answer - 1, 2 * question.answer + 3]
    if isinstance(question.answer, tuple):
        tried += [question.answer[::-1], (*question.answer, 1), question.answer[1:]]
    near = (name[:2], f"{int(name[:2]) - 1:02}")
    others = [one.answer for other, one in asked.items() if other[:2] in near]
    tried += [one for one in others if isinstance(one, type(question.answer))]
    return [one for one in tried if not same(one, question.answer, question.unit)]


@pytest.mark.parametrize("name", questions())
def test_a_question_takes_its_answer_however_it_is_written(name, capsys):
    for way in written(questions()[name]):
        predict(name, way)
        assert capsys.readouterr().out.startswith(f"{name}: yes. "), way


@pytest.mark.parametrize("name", questions())
def test_a_question_refuses_other_answers(name, capsys):
    for one in missed(name):
        predict(name, one)
        assert f"{name}: you said {one!r}; it is not that." in capsys.readouterr().out


def test_a_question_points_to_what_is_there():
    """To a heading, an exercise, or a name in that chapter; it never points ahead."""
    for name, question in questions().items():
        if not question.shown:
            continue
        (chapter,) = re.findall(r"chapter (\d\d)", question.shown)
        assert chapter < name[:2]
        (path,) = NOTEBOOKS.glob(f"{chapter}_*.ipynb")
        cells = json.loads(path.read_text())["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        for heading in re.findall(r'"(.*?)"', question.shown):
            assert any(heading in one for one in headings), (name, heading, headings)
        for word in re.findall(r"`(.*?)`", question.shown):
            assert word in text, (name, word)
        for exercise in re.findall(r"exercise ([\d.]+\d)", question.shown):
            assert f"**{exercise} " in text, (name, exercise)
