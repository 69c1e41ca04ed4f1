"""Classes, tables and hooks of rooms below take each part once."""

import pytest

import minijax  # noqa: F401  attaches all parts
from minijax.core.array import Array
from minijax.core.events import Hook, add_methods, enter
from minijax.core.language import Tracer, type_extensions
from minijax.core.runtime import Clients


def test_a_class_takes_a_method_once():
    class Below:
        to_fill = {"text"}

        def text(self):
            return "below"

        def rest(self):
            return "below"

    add_methods(Below, {"text": lambda self: "above", "more": lambda self: "more"})
    assert (Below().text(), Below().more()) == ("above", "more")
    for name in ("text", "rest", "more"):
        with pytest.raises(RuntimeError, match=f"Below has {name} already"):
            add_methods(Below, {name: None})


@pytest.mark.parametrize(
    "cls, name",
    [(Array, "_read"), (Array, "sum"), (Tracer, "__add__"), (Clients, "make")],
)
def test_what_the_house_gave_its_core_stays(cls, name):
    with pytest.raises(RuntimeError, match="already"):
        add_methods(cls, {name: None})


def test_places_that_classes_declare_are_filled():
    assert Array.to_fill == Clients.to_fill == set()


def test_a_table_takes_one_entry_for_a_key():
    table = {}
    enter(table, "x", 1)
    with pytest.raises(RuntimeError, match="1 for x already"):
        enter(table, "x", 2)
    assert table == {"x": 1}


def test_types_are_extended_once():
    for extension in type_extensions:
        with pytest.raises(RuntimeError, match="already"):
            enter(type_extensions, extension, extension())
    assert len(type_extensions) == 2


def test_a_hook_takes_one_part():
    hook = Hook.__new__(Hook)  # not in the table of hooks
    hook.run = hook.default = len
    hook.__name__ = "sizes"
    hook.attach(max)
    with pytest.raises(RuntimeError, match="sizes has .* already"):
        hook.attach(min)
    assert hook.run is max
