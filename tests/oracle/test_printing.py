"""Programs printed with options, and masked arrays, as in JAX."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest

import minijax


def call_twice(lib: Any) -> Any:
    def long(x: Any) -> Any:
        for _ in range(12):
            x = lib.numpy.sin(x)
        return lib.jit(lambda y: y + 1)(x)

    return lib.make_jaxpr(lambda x: lib.jit(long)(x) + lib.jit(long)(x))(1.0)


def read_and_write(lib: Any) -> Any:
    def fun(x: Any) -> Any:
        ref = lib.new_ref(x)
        ref[...] = ref[...] * 2.0
        ref[0:2] += 1.0
        return ref[...]

    return lib.make_jaxpr(fun)(np.ones(3, np.float32))


def loop(lib: Any) -> Any:
    def fun(x: Any, rows: Any) -> Any:
        return lib.lax.scan(lambda carry, row: (carry + row, carry), x, rows)

    return lib.make_jaxpr(fun)(1.0, np.ones(3, np.float32))


OPTIONS: list[dict[str, Any]] = [
    {"use_color": True},
    {"use_color": True, "print_shapes": False},
    {"use_color": False, "width": 40},
    {"use_color": False, "source_info": True, "annotation_prefix": " // "},
    {"use_color": False, "name_stack": True, "print_shapes": False},
]


@pytest.mark.parametrize("program", [call_twice, read_and_write, loop])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(program: Any, options: dict[str, Any]) -> None:
    ours, theirs = program(minijax), program(jax)
    assert ours.pretty_print(**options) == theirs.pretty_print(**options)
    assert ours.jaxpr.pretty_print(**options) == theirs.jaxpr.pretty_print(**options)


def test_effects() -> None:
    text = read_and_write(minijax).pretty_print(print_effects=True)
    assert text.endswith("in (g,) : { InternalMutableArrayEffect } }")


def test_unknown_option() -> None:
    with pytest.raises(TypeError, match="colour"):
        loop(minijax).pretty_print(colour=True)


def test_colors_where_they_show(monkeypatch: pytest.MonkeyPatch) -> None:
    jaxpr = loop(minijax)
    assert "\x1b" not in jaxpr.pretty_print()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "\x1b" in jaxpr.pretty_print()
    minijax.config.update("jax_pprint_use_color", False)
    try:
        assert "\x1b" not in jaxpr.pretty_print()
    finally:
        minijax.config.update("jax_pprint_use_color", True)


def test_variables_have_long_names_of_dtypes() -> None:
    def variables(lib: Any) -> list[str]:
        args = np.ones(3, np.float16), np.int32(1)
        jaxpr = lib.make_jaxpr(lambda x, n: (x * 2, n))(*args).jaxpr
        found = [*jaxpr.invars, *jaxpr.eqns[0].outvars]
        return [re.sub(r"id=\d+", "id", str(var)) for var in found]

    assert variables(minijax) == variables(jax)


MASKED: dict[str, Any] = {
    "array": lambda lib, x: lib.numpy.array(x),
    "array_no_copy": lambda lib, x: lib.numpy.array(x, copy=False),
    "asarray": lambda lib, x: lib.numpy.asarray(x),
    "lax": lambda lib, x: lib.lax.sin(x),
    "numpy": lambda lib, x: lib.numpy.add(x, 1),
    "operator": lambda lib, x: lib.numpy.ones(2) + x,
    "jit": lambda lib, x: lib.jit(lambda y: y + 1)(x),
    "constant": lambda lib, x: lib.jit(lambda: lib.numpy.ones(2) + x)(),
    "make_jaxpr": lambda lib, x: lib.make_jaxpr(lambda y: y)(x),
    "typeof": lambda lib, x: lib.typeof(x),
    "device_put": lambda lib, x: lib.device_put(x),
}


@pytest.mark.parametrize("use", MASKED)
def test_masked_arrays(use: str) -> None:
    def outcome(lib: Any) -> Any:
        masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
        try:
            return np.asarray(MASKED[use](lib, masked)).tolist()
        except ValueError as error:
            assert "masked" in str(error) and "filled" in str(error)
            return ValueError

    assert outcome(minijax) == outcome(jax)
