"""The base of all recordings: plain data there and back, files, sources."""

import json
from dataclasses import dataclass, field

import pytest

from minijax_lab.explain import recording
from minijax_lab.explain.recording import Recording, Source, Sources, Span, Step


@dataclass
class Row(Step):
    span: Span | None
    uses: list[int] = field(default_factory=list)


@dataclass(kw_only=True)
class Example(Recording):
    kind = "test example"

    steps: list[Row]
    names: dict[str, int]


def example() -> Example:
    return Example(
        call="f(f32[])",
        headline="one row",
        sources=[Source(0, "f", "cell", 1, ["def f(x):", "    return x"])],
        steps=[Row("mul", "a product", Span(0, 1, 0, 1, 5), [1, 2]), Row("", "", None)],
        names={"a": 1},
    )


def test_there_and_back():
    page = json.loads(json.dumps(example().to_dict()))
    assert page["kind"] == "test example" and page["schema"] == recording.SCHEMA
    assert Recording.from_dict(page) == example()


def test_file(tmp_path):
    path = tmp_path / "example.json.gz"
    example().write(path, command="pytest")
    assert recording.read(path) == example()
    first = path.read_bytes()
    example().write(path, command="pytest")
    assert path.read_bytes() == first


def test_what_is_no_recording(tmp_path):
    path = tmp_path / "no.json.gz"
    path.write_bytes(b"hello")
    with pytest.raises(ValueError, match="holds no recording"):
        recording.read(path)
    with pytest.raises(ValueError, match="names no schema"):
        Recording.from_dict({"kind": "jaxpr"})
    with pytest.raises(ValueError, match="upgrade minijax"):
        Recording.from_dict({"schema": 99, "kind": "jaxpr"})
    with pytest.raises(ValueError, match="no view for"):
        Recording.from_dict({"schema": 1, "kind": "nonsense"})
    with pytest.raises(TypeError, match="plain data"):
        Example(call="", headline="", steps=[object()], names={}).to_dict()


def test_sources_and_spans():
    def inner(x):
        é = x + 1
        return é * (x + 2)

    sources = Sources()
    number = sources.add_function(inner)
    (source,) = sources.found
    assert source.file == "test_recording.py" and source.name == "inner"
    assert "/" not in source.file
    code = inner.__code__
    found = [sources.span(code, i) for i in range(0, len(code.co_code), 2)]
    texts = set()
    for span in found:
        if span is not None and span.line == span.end_line:
            text = source.lines[span.line - source.first_line]
            texts.add(text[span.column : span.end_column])
    assert number == 0
    # Python counts bytes; the letter of two bytes must not shift what follows it.
    assert "x + 2" in texts and "é * (x + 2)" in texts


def test_a_function_around_another_takes_its_place():
    def outer(x):
        def inner(y):
            return y + 1

        return inner

    sources = Sources()
    inner = sources.add_function(outer(0))
    assert sources.found[inner].name == "inner"
    assert sources.add_function(outer) == inner
    (source,) = sources.found
    assert source.name == "outer" and len(source.lines) == 5


def test_without_source():
    sources = Sources()
    assert sources.add_function(eval("lambda x: x")) is None
    assert sources.add_function(len) is None
    assert sources.found == []
