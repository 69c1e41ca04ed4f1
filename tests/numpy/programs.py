"""Small programs over `jax.numpy`, run in both libraries and compared.

A case is a name, a function of `jnp` and of arrays, and those arrays (NumPy's). What is
held equal: the values with shape, dtype and weak type, or the exception's class; and
the text of the jaxpr.
"""

import difflib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import minijax
from tests.golden.normalise import normalise, plain_numpy_scalars
from tests.oracle.oracle import assert_same

M = np.array([[3, 1, 2, 7], [0, 5, 1, 4], [9, 8, 6, 2]], np.float32)
V = np.array([0.5, -1.0, 2.0, 4.0, 3.0], np.float32)
T = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
S = np.array([[4, 1, 0], [2, 3, 1], [0, 5, 2]], np.float32)
I = np.array([[3, -1, 2], [0, 5, 1]], np.int32)  # noqa: E741
J = np.array([2, 0, 1, 1, 4], np.int32)
U = np.array([3, 0, 2, 2], np.uint8)
B = np.array([True, False, True])
BM = np.array([[True, False, True, True], [False, False, True, False], [True] * 4])
C = np.array([1 + 2j, -1j, 0.5], np.complex64)
N = np.array([1.0, np.nan, -np.inf, 2.0, np.nan, 0.0], np.float32)
H = np.array([[1.5, 2.0], [0.25, -1.0]], np.float16)
E = np.zeros((0, 3), np.float32)


# Other versions of jax print some programs otherwise; minijax prints as this one.
PRINTED_BY = "0.10.2"


class Case(NamedTuple):
    """One program: its name, the function of `jnp` and its arguments."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    text: bool = True


def case(name: str, function: Callable[..., Any], *args: Any, text: bool = True):
    """A parameter for pytest; `text=False` where only the values are to agree."""
    return pytest.param(Case(name, function, args, text), id=name)


def check(one: Case) -> None:
    """Fails unless both libraries agree on the printed program and on its values.

    Where the programs are the same, the values can differ only by a primitive. So they
    are compared if the program calls a function or a primitive on dtypes that no
    earlier case of this process did; `make test-all` compares them always.
    """

    def program(library: Any) -> Any:
        arrays = [library.numpy.asarray(a) for a in one.args]
        return one.function(library.numpy, *arrays)

    seen = False
    if one.text and jax.__version__ == PRINTED_BY:
        (ours, traced), (theirs, _) = trace(minijax, one), trace(jax, one)
        lines = difflib.unified_diff(
            theirs.split("\n"), ours.split("\n"), "jax", "minijax", lineterm=""
        )
        assert ours == theirs, "\n" + "\n".join(lines)
        seen = traced is not None and calls(traced.jaxpr) <= COMPARED
    if not seen or os.environ.get("MINIJAX_TEST_ALL"):
        assert_same(program, minijax, jax)
    if one.text and jax.__version__ == PRINTED_BY and traced is not None:
        COMPARED.update(calls(traced.jaxpr))


# The calls whose values have been compared: see `calls`.
COMPARED: set[tuple[Any, ...]] = set()
# Parameters that say how large, not what. The ranks stand beside them. Not those that
# say which axis or how far: a rule that ignores them is right where they are 0.
SIZES = {"shape", "new_sizes", "sizes", "limit_indices", "slice_sizes"}
SIZES |= {"sharding", "out_sharding"}


def calls(jaxpr: Any) -> set[tuple[Any, ...]]:
    """What a jaxpr calls: primitives and named functions, with dtypes and ranks."""
    found: set[tuple[Any, ...]] = set()
    for eqn in jaxpr.eqns:
        avals = [v.aval for v in (*eqn.invars, *eqn.outvars)]
        types = [(str(aval.dtype), len(aval.shape), 0 in aval.shape) for aval in avals]
        params = []
        for name, value in eqn.params.items():
            inner = getattr(value, "jaxpr", None)
            if inner is not None:
                found |= calls(inner)
            elif name not in SIZES:
                params.append(f"{name}={value}")
        found.add((eqn.primitive.name, *params, *types))
    return found


def trace(library: Any, one: Case) -> tuple[str, Any]:
    """The jaxpr of a case as text with its results' weak types, and as it is.

    Or the class of what it raises under tracing, and None.
    """

    def program(*args: Any) -> Any:
        return one.function(library.numpy, *args)

    try:
        jaxpr = library.make_jaxpr(program)(*one.args)
    except Exception as error:
        return type(error).__name__, None
    weak = [aval.weak_type for aval in jaxpr.out_avals]
    with plain_numpy_scalars():
        return f"{normalise(str(jaxpr))}\nweak types: {weak}", jaxpr
