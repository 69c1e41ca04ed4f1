"""Programs of the golden corpus: how one is declared, found and printed.

A program is a function of one argument, `jax`, which is JAX or minijax; it returns a
function and its arguments, and the corpus holds the text of that function's jaxpr.
The same source so runs in both libraries, and nothing in it knows which one it got.
"""

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.golden.normalise import plain_numpy_scalars

Build = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]


@dataclasses.dataclass(frozen=True)
class Program:
    """One program: `group` is its module, `kind` "a" or "b" (DESIGN.md)."""

    name: str
    group: str
    kind: str
    build: Build
    enable_x64: bool = False

    @property
    def id(self) -> str:
        return f"{self.group}/{self.name}"


_programs: dict[str, Program] = {}


def _add(entry: Program) -> None:
    if entry.id in _programs:
        raise ValueError(f"the corpus already has a program named {entry.id!r}")
    if entry.kind not in ("a", "b"):
        raise ValueError(f"{entry.id}: kind must be 'a' or 'b', got {entry.kind!r}")
    _programs[entry.id] = entry


def program(kind: str, enable_x64: bool = False) -> Callable[[Build], Build]:
    """Declare the decorated `def name(jax): return fun, args` as a program."""

    def declare(build: Build) -> Build:
        group = build.__module__.rpartition(".")[2]
        _add(Program(build.__name__, group, kind, build, enable_x64))
        return build

    return declare


def family(kind: str, names: str, enable_x64: bool = False) -> Callable[..., Any]:
    """Declare one program for each word of `names`; the word is passed as `name`."""

    def declare(build: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        group = build.__module__.rpartition(".")[2]
        for name in names.split():

            def build_one(jax: Any, name: str = name) -> Any:
                return build(jax, name)

            entry = f"{build.__name__}_{name}"
            _add(Program(entry, group, kind, build_one, enable_x64))
        return build

    return declare


def all_programs() -> list[Program]:
    """Every program, by group and then in the order of the source."""
    import tests.golden.programs as package

    for info in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{info.name}")
    groups: dict[str, list[Program]] = {}
    for entry in _programs.values():
        groups.setdefault(entry.group, []).append(entry)
    return [entry for group in sorted(groups) for entry in groups[group]]


def jaxpr_text(entry: Program, jax: Any) -> str:
    """The text of the program's jaxpr as `jax` (the library passed in) prints it."""
    if entry.enable_x64:
        with jax.enable_x64(True):
            return _print_jaxpr(entry, jax)
    return _print_jaxpr(entry, jax)


def _print_jaxpr(entry: Program, jax: Any) -> str:
    fun, args = entry.build(jax)
    with plain_numpy_scalars():
        return str(jax.make_jaxpr(fun)(*args))


def program_source(entry: Program) -> str:
    """The source of the program, for the message of a failing comparison."""
    try:
        return inspect.getsource(inspect.unwrap(entry.build))
    except OSError:
        return "(source not found)"


# Arguments. Small, of pairwise different extents where the axis matters, and of few
# shapes, so that the same values serve programs that are run as well as printed.


def f32(*shape: int) -> np.ndarray:
    """A float32 array of `shape` with values between 0.1 and 0.9."""
    return ramp(shape, 0.1, 0.9).astype(np.float32)


def i32(*shape: int) -> np.ndarray:
    """An int32 array of `shape` with the values 1, 2, 3..."""
    size = int(np.prod(shape))
    return (np.arange(size, dtype=np.int32) + 1).reshape(shape)


def u32(*shape: int) -> np.ndarray:
    """A uint32 array of `shape` with the values 1, 2, 3..."""
    return i32(*shape).astype(np.uint32)


def c64(*shape: int) -> np.ndarray:
    """A complex64 array of `shape`."""
    return (f32(*shape) + 1j * f32(*shape)[::-1]).astype(np.complex64)


def boolean(*shape: int) -> np.ndarray:
    """A bool array of `shape`, alternately True and False."""
    return (i32(*shape) % 2).astype(bool)


def ramp(shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """A float64 array of `shape` that goes evenly from `low` to `high`."""
    size = int(np.prod(shape))
    return np.linspace(low, high, max(size, 1))[:size].reshape(shape)
