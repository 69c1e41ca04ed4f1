"""Exceptions, and the places in the user's code that they name."""

import inspect
import linecache

import jax
import numpy as np
import pytest

import minijax.errors
from minijax.core import errors, source_info
from minijax.core.errors import with_facts
from minijax.support import special_errors, user_source

pytestmark = pytest.mark.whole


class FakeTracer:
    """What the constructors of exceptions may use of a tracer."""

    def _error_repr(self):
        return "traced array with shape float32[3]"

    def birth(self):
        return "The error occurred while tracing the function f for jit."


TRACER_ERRORS = [
    errors.ConcretizationTypeError,
    errors.TracerBoolConversionError,
    errors.TracerArrayConversionError,
    special_errors.TracerIntegerConversionError,
    special_errors.NonConcreteBooleanIndexError,
]


def test_classes_and_bases_are_those_of_jax():
    names = [n for n in dir(jax.errors) if isinstance(getattr(jax.errors, n), type)]
    assert len(names) >= 12
    for name in names:
        theirs, ours = getattr(jax.errors, name), getattr(minijax.errors, name)
        shared = [c.__name__ for c in theirs.__mro__ if not c.__name__.startswith("_")]
        mine = [c.__name__ for c in ours.__mro__ if not c.__name__.startswith("_")]
        assert mine == shared, name


@pytest.mark.parametrize("kind", TRACER_ERRORS)
def test_tracer_errors_name_the_line_the_cause_and_the_way_out(kind):
    line = inspect.currentframe().f_lineno + 1
    error = kind(FakeTracer())
    text = str(error)
    assert "float32[3]" in text
    assert f"test_errors.py:{line}" in text
    assert "kind(FakeTracer())" in text
    assert "the function f for jit" in text
    assert error.facts["used_at"].start_line == line
    assert error.facts["line"] == "error = kind(FakeTracer())"
    assert error.facts["instead"] in text
    assert error.facts["value"] == "traced array with shape float32[3]"


@pytest.mark.parametrize("kind", TRACER_ERRORS)
def test_tracer_errors_take_any_value(kind):
    assert "17" in str(kind(17))


def test_concretization_context_is_told():
    error = errors.ConcretizationTypeError(FakeTracer(), "The axis must be static.")
    assert "The axis must be static." in str(error)


def test_with_facts_keeps_the_exception_and_adds():
    error = TypeError("add got f32[2] and f32[3]")
    assert with_facts(error, rule="add", instead="x[:2]") is error
    assert error.facts["rule"] == "add"
    assert error.facts["used_at"].function_name.endswith("keeps_the_exception_and_adds")
    with_facts(error, rule="sub")
    assert error.facts["rule"] == "sub"
    assert error.facts["instead"] == "x[:2]"
    assert special_errors.facts_of(ValueError()) == {}
    assert str(error).startswith("add got f32[2] and f32[3]\nIt happened at\n")


def test_plain_message_errors():
    error = special_errors.KeyReuseError("the key was used twice", key="k")
    assert str(error) == "the key was used twice"
    assert error.facts == {"key": "k"}


# ---- source information ---------------------------------------------------------


def multiply(x, y):
    return (source_info.current(), x)[0], x + y


def expression_text(frame):
    """The very expression that a frame points at; columns count bytes of UTF-8."""
    line = linecache.getline(frame.file_name, frame.start_line)
    return line.encode()[frame.start_column : frame.end_column].decode()


def test_frames_are_the_users_with_exact_columns():
    found, _ = multiply(1, 2)
    inner, outer = list(source_info.user_frames(found))[:2]
    assert inner == source_info.user_frame(found)
    assert inner.function_name == "multiply"
    assert inner.file_name == __file__
    line = linecache.getline(__file__, inner.start_line)
    pointed = line[inner.start_column : inner.end_column]
    assert pointed == "source_info.current()"
    assert expression_text(inner) == pointed
    assert outer.function_name.startswith("test_frames_are_the_users")
    place = f"{__file__}:{inner.start_line}:{inner.start_column} (multiply)"
    assert user_source.summarize(found) == place
    both = user_source.summarize(found, num_frames=2).splitlines()
    assert both[1] == place
    assert source_info.format_line(found).endswith(
        "return (source_info.current(), x)[0], x + y"
    )


def test_columns_count_characters_behind_wide_letters():
    found = ("äöü€", source_info.current())[1]
    frame = source_info.user_frame(found)
    assert expression_text(frame) == "source_info.current()"


def test_own_and_library_frames_are_hidden():
    found = []
    np.vectorize(lambda x: found.append(source_info.current()))(1.0)
    names = {frame.file_name for frame in source_info.user_frames(found[0])}
    assert __file__ in names
    assert not source_info.is_user_filename(source_info.__file__)
    assert not source_info.is_user_filename(inspect.__file__)
    assert not source_info.is_user_filename("<frozen importlib._bootstrap>")
    assert source_info.is_user_filename(np.__file__)
    assert source_info.is_user_filename("<stdin>")


def test_exclusions_can_be_added():
    path = "/some/library/"
    assert source_info.is_user_filename(path + "a.py")
    user_source.register_exclusion(path)
    try:
        assert not source_info.is_user_filename(path + "a.py")
        assert source_info.is_user_filename(path + "a_test.py")
    finally:
        source_info._excluded.remove(path)
        source_info.is_user_filename.cache_clear()


def test_frame_now():
    frame = source_info.user_frame_now()
    assert expression_text(frame) == "source_info.user_frame_now()"


def test_nothing_known():
    empty = user_source.new_source_info()
    assert user_source.summarize(empty) == "unknown"
    assert source_info.user_frame(empty) is None
    assert source_info.format_line(empty) == ""


@pytest.mark.parametrize(
    "steps",
    [
        [("extend", "f")],
        [("transform", "jvp")],
        [("extend", "f"), ("transform", "vmap"), ("extend", "g")],
        [("transform", "transpose"), ("transform", "jvp"), ("extend", "a/b")],
        [("extend", "f"), ("transform", "jvp"), ("extend", "g"), ("extend", "h")],
    ],
)
def test_name_stacks_print_as_in_jax(steps):
    from jax._src import source_info_util as theirs

    ours, reference = source_info.NameStack(), theirs.NameStack()
    for method, name in steps:
        ours = getattr(ours, method)(name)
        reference = getattr(reference, method)(name)
    assert str(ours) == str(reference)
    assert len(ours.stack) == len(steps)
    first, rest = (
        source_info.NameStack(part) for part in (ours.stack[:1], ours.stack[1:])
    )
    assert first + rest == ours
    assert hash(first + rest) == hash(ours)


def test_name_stack_contexts():
    with user_source.extend_name_stack("f"):
        with source_info.transform_name_stack("jvp"):
            with user_source.extend_name_stack("g") as stack:
                assert source_info.current_name_stack() == stack
                assert str(source_info.current().name_stack) == "f/jvp(g)"
                with source_info.reset_name_stack():
                    assert str(source_info.current_name_stack()) == ""
        assert str(source_info.current_name_stack()) == "f"
    assert str(source_info.current_name_stack()) == ""

    @user_source.extend_name_stack("h")
    def inside(depth):
        return inside(depth - 1) if depth else str(source_info.current_name_stack())

    assert inside(1) == "h/h"


def test_user_context_stands_for_the_users_line_and_notes_it_once():
    found, _ = multiply(1, 2)
    with source_info.user_context(found):
        assert source_info.current().traceback is found.traceback
    assert source_info.current().traceback is not found.traceback
    with pytest.raises(ValueError, match="rule") as caught:
        with source_info.user_context(source_info.current()):
            with source_info.user_context(found):
                raise ValueError("a rule failed")
    (note,) = caught.value.__notes__
    assert "multiply" in note
    assert caught.value.user_line == source_info.user_frame(found)
