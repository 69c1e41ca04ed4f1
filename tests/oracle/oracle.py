"""Run one program in minijax and in JAX, and compare what came out.

A program is a function of one argument, `jax`, which is either library. What is held
equal: the tree, and for each leaf shape, dtype, weak type and values; or, when the
program raises, the class of the exception.
"""

import contextlib
import dataclasses
import os
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

# Relative; the absolute tolerance is the same times the largest finite magnitude of
# the array (at least one), since a sum that cancels keeps the error of its terms.
TOLERANCE = {
    "float64": 1e-12,
    "complex128": 1e-12,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float16": 2e-3,
    "bfloat16": 2e-2,
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What running a program gave: a value of `library`, or an exception."""

    library: Any
    value: Any = None
    error: Exception | None = None


def run(program: Callable[..., Any], library: Any, *args: Any) -> Outcome:
    """`program(library, *args)`, with arrays of any library carried over."""
    try:
        carried = [convert(library, arg) for arg in args]
        return Outcome(library, program(library, *carried))
    except Exception as error:
        return Outcome(library, error=error)


def compiled_in_jax(program: Callable[..., Any]) -> Callable[..., Any]:
    """`program` that JAX, which says what is right, compiles whole in `make test`.

    One program compiles faster than its operations one by one. minijax runs it as it
    is; so does JAX in `make test-all`, and where a program cannot be traced or returns
    something else than arrays.
    """

    def run(library: Any, *args: Any) -> Any:
        if library.__name__ == "jax" and not os.environ.get("MINIJAX_TEST_ALL"):
            returned: list[Any] = []

            def traced(*args: Any) -> Any:
                returned.append(program(library, *args))
                return returned[-1]

            with contextlib.suppress(Exception):
                value = library.jit(traced)(*args)
                leaves = library.tree_util.tree_leaves(returned[-1])
                if all(isinstance(leaf, library.core.Tracer) for leaf in leaves):
                    return value
        return program(library, *args)

    return run


def assert_same(
    program: Callable[..., Any], minijax: Any, jax: Any, *args: Any, whole: bool = True
) -> None:
    """Fails unless `program` behaves the same in both libraries.

    JAX compiles it `whole`, if that is allowed.
    """
    theirs = run(compiled_in_jax(program) if whole else program, jax, *args)
    message = difference(run(program, minijax, *args), theirs)
    assert message is None, message


def difference(ours: Outcome, theirs: Outcome, least: float = 0.0) -> str | None:
    """The first difference between two outcomes in words, or None.

    `least` is the least tolerance of inexact values: what was computed from float16
    cannot agree better than float16 does, whatever its dtype is in the end.
    """
    if ours.error is not None or theirs.error is not None:
        return _error_difference(ours.error, theirs.error)
    tree = ours.library.tree_util
    our_paths = _flatten(ours.library, ours.value)
    their_paths = _flatten(theirs.library, theirs.value)
    if [path for path, _ in our_paths] != [path for path, _ in their_paths]:
        return (
            f"trees differ: minijax {tree.tree_structure(ours.value)}, "
            f"jax {theirs.library.tree_util.tree_structure(theirs.value)}"
        )
    for (path, our_leaf), (_, their_leaf) in zip(our_paths, their_paths):
        message = leaf_difference(our_leaf, their_leaf, least)
        if message is not None:
            return f"result{path}: {message}"
    return None


def _error_difference(ours: Exception | None, theirs: Exception | None) -> str | None:
    our_name = "no exception" if ours is None else type(ours).__name__
    their_name = "no exception" if theirs is None else type(theirs).__name__
    if our_name == their_name:
        return None
    said = [
        f"{name} said: {str(error)[:1500]}"
        for name, error in (("minijax", ours), ("jax", theirs))
        if error is not None
    ]
    return "\n".join([f"minijax raised {our_name}, jax {their_name}", *said])


def _flatten(library: Any, value: Any) -> list[tuple[str, Any]]:
    leaves, _ = library.tree_util.tree_flatten_with_path(value)
    return [(library.tree_util.keystr(path), leaf) for path, leaf in leaves]


def leaf_difference(ours: Any, theirs: Any, least: float = 0.0) -> str | None:
    """The first difference between two leaves in words, or None."""
    if type(theirs).__module__ == "jax._src.literals":
        # A Python scalar that goes through an eager custom rule unchanged comes out of
        # jax as its internal literal, by accident; it means the array of its dtype.
        theirs = _library_of(theirs).numpy.asarray(theirs)
    our_facts, their_facts = _facts(ours), _facts(theirs)
    for fact, our_value in our_facts.items():
        if our_value != their_facts[fact]:
            return f"{fact}: minijax {our_value}, jax {their_facts[fact]}"
    return value_difference(to_numpy(ours), to_numpy(theirs), least)


def _facts(leaf: Any) -> dict[str, Any]:
    """What must be equal apart from the values."""
    if isinstance(leaf, (bool, int, float, complex, str)) or leaf is None:
        return {"type": type(leaf).__name__}
    if isinstance(leaf, (np.ndarray, np.generic)):
        return {"type": "numpy", "shape": leaf.shape, "dtype": str(leaf.dtype)}
    return {
        "type": "array",
        "shape": tuple(leaf.shape),
        "dtype": str(leaf.dtype),
        "weak_type": bool(getattr(leaf, "weak_type", leaf.aval.weak_type)),
    }


def value_difference(
    ours: np.ndarray, theirs: np.ndarray, least: float = 0.0
) -> str | None:
    """The first difference of values beyond the tolerance of their dtype, or None."""
    tolerance = TOLERANCE.get(str(theirs.dtype), 0.0)
    if tolerance:
        tolerance = max(tolerance, least)
    if theirs.dtype.kind == "V":
        # The small floats of ml_dtypes: NumPy's comparisons want its own types.
        ours, theirs = ours.astype(np.float32), theirs.astype(np.float32)
    if tolerance == 0.0:
        wrong = ours != theirs
        if theirs.dtype.kind in "fc":
            wrong &= ~(np.isnan(ours) & np.isnan(theirs))
    else:
        finite = np.abs(theirs[np.isfinite(theirs)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        close = np.isclose(
            ours, theirs, rtol=tolerance, atol=tolerance * scale, equal_nan=True
        )
        wrong = ~close
    if not wrong.any():
        return None
    where = tuple(int(index) for index in np.argwhere(wrong)[0])
    count = int(wrong.sum())
    return (
        f"{count} of {wrong.size} values differ, first at {where}: "
        f"minijax {ours[where]!r}, jax {theirs[where]!r}"
    )


def to_numpy(leaf: Any) -> np.ndarray:
    """The values of an array of either library; of a key, its bits."""
    if is_key(leaf):
        base = leaf._base_array if hasattr(leaf, "_base_array") else None
        if base is not None:
            return np.asarray(base)
        return np.asarray(_library_of(leaf).random.key_data(leaf))
    return np.asarray(leaf)


def is_key(leaf: Any) -> bool:
    """Whether `leaf` is an array of typed random keys of either library."""
    return str(getattr(leaf, "dtype", "")).startswith("key<")


def _library_of(leaf: Any) -> Any:
    import importlib

    root = type(leaf).__module__.partition(".")[0]
    return importlib.import_module("jax" if root == "jaxlib" else root)


def convert(library: Any, value: Any) -> Any:
    """`value` with each array that belongs to another library carried over.

    NumPy arrays and Python scalars stay as they are. A weakly typed array stays weak.
    """
    other = _other_library(library)
    if other is None:
        return value
    return library.tree_util.tree_map(lambda leaf: _convert(library, leaf), value)


def _other_library(library: Any) -> str | None:
    return {"jax": "minijax", "minijax": "jax"}.get(library.__name__)


def _convert(library: Any, leaf: Any) -> Any:
    if isinstance(leaf, (np.ndarray, np.generic)) or not hasattr(leaf, "aval"):
        return leaf
    if isinstance(leaf, library.Array):
        return leaf
    if is_key(leaf):
        implementation = str(_library_of(leaf).random.key_impl(leaf))
        return library.random.wrap_key_data(to_numpy(leaf), impl=implementation)
    data = to_numpy(leaf)
    if leaf.aval.weak_type and data.ndim == 0:
        return library.numpy.asarray(data.item())
    return library.numpy.asarray(data)


def bfloat16(values: Any) -> np.ndarray:
    """A NumPy array of bfloat16, which both libraries accept."""
    return np.asarray(values, ml_dtypes.bfloat16)
