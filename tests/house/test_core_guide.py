"""The book's reading guide to the core: its links lead to what is there."""

import importlib.util
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "book" / "core.md").read_text()
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["minijax"]
FILES = [ROOT / name for name in SETTINGS["weekend_core"]]

spec = importlib.util.spec_from_file_location(
    "source_pages", ROOT / "book" / "source_pages.py"
)
source_pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(source_pages)


def test_each_link_has_a_target():
    targets = set()
    for path in FILES:
        targets |= set(source_pages.targets(path))
    links = re.findall(r"\]\(#([\w-]+)\)", GUIDE)
    assert len(links) > 20
    assert [link for link in links if link not in targets] == []


def test_the_files_are_told_in_reading_order():
    told = re.findall(r"^\d+\. \[`([\w/.]+)`\]\(source/([\w-]+)\.md\)", GUIDE, re.M)
    assert [f"minijax/{shown}" for shown, _ in told] == SETTINGS["weekend_core"]
    assert [page for _, page in told] == [source_pages.page_name(p) for p in FILES]


def test_methods_that_are_named_exist():
    code = {path.stem: path.read_text() for path in FILES}
    named = re.findall(r"`(\w+)\.(\w+)`\]\(#([\w-]+)\)", GUIDE)
    assert named
    for owner, method, target in named:
        text = next(
            t for stem, t in code.items() if target.startswith(stem.replace("_", "-"))
        )
        body = text[text.index(f"class {owner}") :]
        assert f"def {method}(" in body


def test_a_page_holds_the_whole_file():
    for path in FILES:
        page = source_pages.page(path, path.name)
        lines = [line.strip() for line in path.read_text().splitlines()]
        code = [line for line in lines if line.startswith(("def ", "class ", "return"))]
        assert len(code) > 5 and all(line in page for line in code)
