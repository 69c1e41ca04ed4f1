"""The book's twelve functions on three machines: recordings, sums, pictures agree."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

import minijax_widgets as see
from tests.views.test_compiled_recording import H100, TPU

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def machines():
    path = ROOT / "book" / "three_machines.py"
    spec = importlib.util.spec_from_file_location("three_machines", path)
    module = sys.modules["three_machines"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_recording_is_there_and_has_the_sums_of_the_index(machines):
    index = machines.read_index()
    assert list(index["functions"]) == list(machines.FUNCTIONS)
    assert len(index["functions"]) == 12
    for name, found in index["functions"].items():
        assert list(found) == list(machines.TARGETS)
        for target, sums in found.items():
            view = see.open(machines.path_of(name, target))
            assert view.recording.target == target
            assert machines.summary(view) == sums
    files = {path.name for path in machines.MACHINES.glob("*.gz")}
    wanted = {
        machines.path_of(n, t).name
        for n in index["functions"]
        for t in machines.TARGETS
    }
    assert files == wanted
    assert sum(path.stat().st_size for path in machines.MACHINES.iterdir()) < 400_000


def test_the_course_has_the_same_recordings(machines):
    found = {path.name: path.read_bytes() for path in machines.COURSE.glob("*.gz")}
    assert len(found) == len(machines.IN_COURSE) * len(machines.TARGETS)
    for name, contents in found.items():
        assert contents == (machines.MACHINES / name).read_bytes()


def test_the_pictures_are_those_of_the_index(machines):
    for name, text in machines.pictures(machines.read_index()).items():
        assert (machines.STATIC / name).read_text(encoding="utf-8") == text


def test_no_recording_names_a_machine_path(machines):
    for name in machines.FUNCTIONS:
        for target in machines.TARGETS:
            view = see.open(machines.path_of(name, target))
            text = json.dumps(view.recording.to_dict())
            assert (
                str(ROOT) not in text and "/home/" not in text and "/tmp/" not in text
            )


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "sines"])
@pytest.mark.parametrize("target", ["cpu", H100, TPU])
def test_they_can_be_made_again(machines, name, target):
    """The same equations here; the same kernels where XLA is the same."""
    _, function, args = machines.FUNCTIONS[name]
    view = see.fusion(function, *args, target=target)
    stored = see.open(machines.path_of(name, target))
    assert view.recording.jaxpr.text == stored.recording.jaxpr.text
    if target != "cpu":
        index = machines.read_index()
        assert machines.summary(view) == index["functions"][name][target]


def test_a_page_for_each(machines):
    pages = machines.function_pages(lambda view: view.text())
    assert len(pages) == 36
    overview = machines.overview_page()
    assert all(f"({name}.md)" in overview for name in pages)
