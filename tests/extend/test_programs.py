"""Programs that extend JAX run here with only their imports changed.

Each file in `programs/` is written for jax and leaves what it found in `results`:
values, printed programs, classes of exceptions. Here it runs once as it is, and once
with `jax` replaced by `minijax` in its import lines.
"""

import pathlib
import re
import sys

import numpy as np
import pytest

from tests.golden.normalise import normalise, plain_numpy_scalars

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
_IMPORT = re.compile(r"^(from|import) jax\b(.*)$", re.MULTILINE)


def for_minijax(source: str) -> str:
    """The program with other imports: `jax` stays its name where it is used."""

    def other(match: re.Match) -> str:
        kind, rest = match.groups()
        if kind == "import" and not rest:
            return "import minijax as jax"
        return f"{kind} minijax{rest}"

    return _IMPORT.sub(other, source)


def run(name: str, change) -> dict:
    path = PROGRAMS / f"{name}.py"
    scope = {"__name__": f"extending_{name}"}
    with plain_numpy_scalars():
        exec(compile(change(path.read_text()), str(path), "exec"), scope)
    return scope["results"]


def assert_same(ours, theirs, where: str) -> None:
    if isinstance(theirs, (list, tuple)):
        assert isinstance(ours, (list, tuple)), where
        assert len(ours) == len(theirs), where
        for position, pair in enumerate(zip(ours, theirs)):
            assert_same(*pair, f"{where}[{position}]")
    elif isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), where
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{where}[{key}]")
    elif isinstance(theirs, str):
        assert isinstance(ours, str), f"{where}: {ours}, expected {theirs}"
        assert normalise(ours) == normalise(theirs), where
    elif isinstance(theirs, (bool, type(None))):
        assert ours == theirs, where
    else:
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        assert ours.shape == theirs.shape, where
        np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6, err_msg=where)


@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.py")))
def test_same_with_other_imports(name):
    pytest.importorskip("jax")
    theirs = run(name, lambda source: source)
    ours = run(name, for_minijax)
    assert list(ours) == list(theirs)
    for key in theirs:
        assert_same(ours[key], theirs[key], key)


def test_the_imports_are_changed():
    changed = for_minijax("import jax\nimport jax.numpy as jnp\nfrom jax import lax\n")
    assert changed == (
        "import minijax as jax\nimport minijax.numpy as jnp\nfrom minijax import lax\n"
    )
    assert "minijax" in sys.modules
