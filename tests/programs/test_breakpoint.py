"""debug.breakpoint: the same commands give the same answers as JAX's."""

import io

import jax
import numpy as np
import pytest

import minijax
from tests.programs.sides import LIBRARIES, same_error, same_text

X = np.array([0.5, -1.0, 2.0], np.float32)


def answers(lib, make, commands, *args):
    """What the debugger writes, with the library's name taken out, and the values."""
    written = io.StringIO()
    stdin = io.StringIO("".join(f"{command}\n" for command in commands))
    out = make(lib, dict(stdin=stdin, stdout=written, num_frames=2))(*args)
    lib.effects_barrier()
    return written.getvalue(), np.asarray(out)


def plain(lib, options):
    def f(x):
        scale = 3
        tree = {"a": x * scale, "b": [scale, "text"]}
        lib.debug.breakpoint(**options)
        return tree["a"] + 1.0

    return f


def called(lib, options):
    return lambda x: plain(lib, options)(x) * 2.0


def twice(lib, options):
    def f(x):
        for i in range(2):
            x = x + i
            lib.debug.breakpoint(ordered=True, **options)
        return x

    return f


def by_token(lib, options):
    def f(x):
        y = x * 2.0
        y = lib.debug.breakpoint(token=y, **options)
        return y + 1.0

    return f


COMMANDS = ["p x", "tree", "pp tree['b']", "p nothing", "bt", "l", "u", "u", "d", "c"]


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("make", [plain, called, by_token])
def test_answers(make, jitted):
    def build(lib, options):
        f = make(lib, options)
        return lib.jit(f) if jitted else f

    ours, theirs = (answers(lib, build, COMMANDS, X) for lib in LIBRARIES)
    assert ours[0] == theirs[0]
    np.testing.assert_allclose(ours[1], theirs[1])
    assert "Entering jdb:" in ours[0]


def test_stops_each_time():
    commands = ["p x", "c", "p i", "p x", "c"]
    build = lambda lib, options: lib.jit(twice(lib, options))
    ours, theirs = (answers(lib, build, commands, X) for lib in LIBRARIES)
    assert ours[0] == theirs[0]
    assert ours[0].count("Entering jdb:") == 2


def test_under_grad_and_vmap():
    commands = ["p x", "c"] * 3

    def build(lib, options):
        return lib.vmap(lib.grad(lambda x: plain(lib, options)(x)))

    ours, theirs = (answers(lib, build, commands, X) for lib in LIBRARIES)
    assert ours[0] == theirs[0]
    assert ours[0].count("Entering jdb:") == 3


def test_text():
    same_text(lambda lib: plain(lib, {"num_frames": 1}), X)
    same_text(lambda lib: by_token(lib, {"num_frames": 1}), X)


def test_errors():
    same_error(lambda lib: lambda: lib.debug.breakpoint(token=np.ones(2), ordered=True))
    with pytest.raises(ValueError, match="cli"):
        minijax.debug.breakpoint(backend="web")


def test_quit_ends_the_program():
    kinds = []
    for lib in LIBRARIES:
        options = dict(stdin=io.StringIO("q\n"), stdout=io.StringIO())
        with pytest.raises(BaseException) as info:
            lib.debug.breakpoint(**options)
        kinds.append(info.type)
    assert kinds == [SystemExit, SystemExit]
    jax.effects_barrier()
