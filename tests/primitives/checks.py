"""What is held for a family of primitives: meaning, text, derivatives, batching.

A call is `build(lax)`, a function of arrays, with arguments for it. The same call runs
in both libraries.
"""

import dataclasses
import itertools
import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import minijax
from minijax.core.language import Literal
from tests.golden.normalise import normalise, plain_numpy_scalars
from tests.oracle.oracle import value_difference

SIZE = 2


@dataclasses.dataclass(frozen=True)
class Call:
    """`fixed` are positions of arguments that are not mapped by vmap."""

    name: str
    build: Callable[[Any], Callable[..., Any]]
    args: tuple[np.ndarray, ...]
    fixed: tuple[int, ...] = ()

    def function(self, library: Any) -> Callable[..., Any]:
        """The call as a function that returns a list of arrays."""
        function = self.build(library.lax)

        def flat(*args: Any) -> list[Any]:
            return library.tree_util.tree_leaves(function(*args))

        return flat


def call(name: str, build: Any, *args: Any, fixed: tuple[int, ...] = ()) -> Call:
    return Call(name, build, tuple(np.asarray(arg) for arg in args), fixed)


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Small distinct numbers, of alternating sign where the dtype has one."""
    size = int(np.prod(shape))
    values = np.arange(1, size + 1).astype(np.float64)
    if np.issubdtype(dtype, np.signedinteger) or not np.issubdtype(dtype, np.integer):
        values *= (-1) ** np.arange(size)
    if not np.issubdtype(dtype, np.integer):
        values *= 0.25
    return values.reshape(shape).astype(dtype)


def text(library: Any, function: Callable[..., Any], args: Any) -> str:
    with plain_numpy_scalars():
        return normalise(str(library.make_jaxpr(function)(*args)))


def assert_prints_the_same(make: Callable[[Any], Any], args: Any) -> None:
    assert text(minijax, make(minijax), args) == text(jax, make(jax), args)


def evaluate_by_meaning(closed: Any, args: Any) -> list[np.ndarray]:
    """Run a program by the NumPy reference of each of its primitives."""
    env: dict[Any, Any] = dict(zip(closed.jaxpr.constvars, closed.consts))
    env.update(zip(closed.jaxpr.invars, args))

    def read(atom: Any) -> np.ndarray:
        if isinstance(atom, Literal):
            return np.asarray(atom.val, atom.aval.dtype)
        return np.asarray(env[atom])

    for eqn in closed.jaxpr.eqns:
        out = eqn.primitive.meaning(*map(read, eqn.invars), **eqn.params)
        outputs = out if eqn.primitive.multiple_results else [out]
        env.update(zip(eqn.outvars, outputs, strict=True))
    return [read(atom) for atom in closed.jaxpr.outvars]


def assert_means_what_xla_does(entry: Call) -> None:
    function = entry.function(minijax)
    computed = minijax.jit(function)(*entry.args)
    meant = evaluate_by_meaning(minijax.make_jaxpr(function)(*entry.args), entry.args)
    assert_close(meant, computed)


def assert_same_values(entry: Call) -> None:
    arrays = [minijax.numpy.asarray(arg) for arg in entry.args]
    ours = entry.function(minijax)(*arrays)
    theirs = jax.jit(entry.function(jax))(*entry.args)
    for our_array, their_array in zip(ours, theirs, strict=True):
        assert our_array.weak_type == their_array.weak_type
    assert_close(ours, theirs)


def assert_close(ours: Any, theirs: Any) -> None:
    for our_array, their_array in zip(ours, theirs, strict=True):
        our_values, their_values = np.asarray(our_array), np.asarray(their_array)
        assert our_values.shape == their_values.shape
        assert our_values.dtype == their_values.dtype
        assert value_difference(our_values, their_values) is None


def differentiable(entry: Call) -> list[int]:
    return [k for k, arg in enumerate(entry.args) if arg.dtype.kind in "fc"]


def of_inexact(entry: Call, library: Any) -> Callable[..., Any]:
    """The call as a function of its inexact arguments, the others held."""
    function, positions = entry.function(library), differentiable(entry)

    def held(*inexact: Any) -> Any:
        args = list(entry.args)
        for position, arg in zip(positions, inexact):
            args[position] = arg
        return function(*args)

    return held


def jvp_of(entry: Call, library: Any) -> Callable[..., Any]:
    def run(*primals: Any) -> Any:
        tangents = tuple(x * 0.5 for x in primals)
        return library.jvp(of_inexact(entry, library), primals, tangents)

    return run


def vjp_of(entry: Call, library: Any) -> Callable[..., Any]:
    def run(*primals: Any) -> Any:
        out, pull_back = library.vjp(of_inexact(entry, library), *primals)
        return pull_back([x * x for x in out])

    return run


def assert_same_derivatives(entry: Call) -> None:
    """Values and printed programs of forward and reverse mode are JAX's."""
    primals = [entry.args[k] for k in differentiable(entry)]
    for transformed in (jvp_of, vjp_of):
        ours, theirs = transformed(entry, minijax), transformed(entry, jax)
        assert text(minijax, ours, primals) == text(jax, theirs, primals)
        assert_close(
            minijax.tree_util.tree_leaves(minijax.jit(ours)(*primals)),
            jax.tree_util.tree_leaves(jax.jit(theirs)(*primals)),
        )


def axes_of(entry: Call) -> list[tuple[int | None, ...]]:
    """Every choice of unmapped, front and last axis, but for the all unmapped one."""
    choices = []
    for k, arg in enumerate(entry.args):
        mapped = () if k in entry.fixed else sorted({0, arg.ndim})
        choices.append((None, *mapped))
    return [
        axes for axes in itertools.product(*choices) if any(a is not None for a in axes)
    ]


def batched_args(entry: Call, axes: tuple[int | None, ...]) -> list[np.ndarray]:
    made = []
    for arg, axis in zip(entry.args, axes):
        if axis is None:
            made.append(arg)
        else:
            made.append(np.stack([arg, np.flip(arg)], axis))
    return made


def assert_batches_as_a_loop(entry: Call) -> None:
    """Against a loop over the examples, and printed as JAX prints it.

    Every choice of axes is printed; in `make test` the first, the middle and the last
    one are run.
    """
    choices = axes_of(entry)
    run = {choices[0], choices[len(choices) // 2], choices[-1]}
    if os.environ.get("MINIJAX_TEST_ALL"):
        run = set(choices)
    one = minijax.jit(entry.function(minijax))
    for axes in choices:
        args = batched_args(entry, axes)

        def mapped(library: Any, axes: Any = axes) -> Any:
            return library.vmap(entry.function(library), in_axes=axes)

        where = f"in_axes={axes}"
        assert text(minijax, mapped(minijax), args) == text(jax, mapped(jax), args), (
            where
        )
        if axes not in run:
            continue
        out = minijax.jit(mapped(minijax))(*args)
        loop = [
            one(*[a if x is None else np.take(a, k, x) for a, x in zip(args, axes)])
            for k in range(SIZE)
        ]
        expected = [np.stack([np.asarray(r[i]) for r in loop]) for i in range(len(out))]
        assert_close(out, expected)


def assert_same_error(program: Callable[[Any], Any]) -> None:
    """The program raises in both libraries, an exception of one class."""
    classes = []
    for library in (minijax, jax):
        try:
            program(library)
        except Exception as error:
            classes.append(type(error).__name__)
        else:
            classes.append("no exception")
    assert classes[0] == classes[1] != "no exception", classes
