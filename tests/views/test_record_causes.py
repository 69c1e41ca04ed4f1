"""The flight recorder on causes that lie deeper than a line that jits."""

import runpy
import sys
import textwrap
import threading
import warnings

import jax
import numpy as np
import pytest

import minijax_widgets as see
from tests.views.test_record_advice import HEAD, obeyed, recorded


def faults_of(script, path, **kinds):
    source = HEAD.replace("LIBRARY", "jax") + textwrap.dedent(script)
    return recorded("jax", source, path / "train.py").faults


# name: (what is told, what to write, the script)
CONSTANTS = {
    "attribute": (
        "`self.table` (1,440,000 bytes) is baked into a program; line 12 reads it",
        "pass `self.table` as an argument of step, and on to __call__, where line 12",
        """
        class Net:
            def __init__(self):
                self.table = jnp.ones((600, 600))

            def __call__(self, x):
                return x @ self.table

        net = Net()

        @jax.jit
        def step(x):
            return jax.grad(lambda x: net(x).sum())(x)

        answer = step(jnp.ones((2, 600)))
        """,
    ),
    "closed over, of NumPy": (
        "`table` (1,442,400 bytes) is baked into a program; line 10 reads it",
        "pass `table` as an argument of step, and on to look, where line 10 reads it",
        """
        def make(table):
            def look(x):
                y = jnp.sin(x)
                return y @ table
            return look

        looks = [make(np.full((600, 601), 2.0, np.float32))]

        @jax.jit
        def step(x):
            return looks[0](x)

        answer = step(jnp.ones((2, 600)))
        """,
    ),
    "an entry, in a jit inside": (
        '`HELD["pos"]` (1,444,800 bytes) is baked into a program; line 11 reads it',
        'pass `HELD["pos"]` as an argument of step, and on to inner, where line 11',
        """
        HELD = {"pos": jnp.ones((600, 602))}

        @jax.jit
        def inner(x):
            return x @ HELD["pos"]

        @jax.jit
        def step(x):
            return inner(x).sum()

        answer = step(jnp.ones((2, 600)))
        """,
    ),
    "without a name": (
        "an array float32[600,603] (1,447,200 bytes) is baked into a program; line 9",
        "pass the array float32[600,603] as an argument",
        """
        @jax.jit
        def step(x):
            return x @ np.eye(600, 603, dtype=np.float32)

        answer = step(jnp.ones((2, 600)))
        """,
    ),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_has_the_name_and_line_of_its_reader(name, tmp_path) -> None:
    words, write, script = CONSTANTS[name]
    (fault,) = [f for f in faults_of(script, tmp_path) if f.kind == "constant"]
    assert fault.words.startswith(words) and fault.write.startswith(write)
    assert not fault.lines  # a head with one argument more would not reach the reader


def test_a_jit_of_each_call_that_meets_new_shapes(tmp_path) -> None:
    """Neither fault alone is what costs: both are told, and both are to be mended."""
    script = """
    answer = []
    for i in range(1, 6):
        y = jax.jit(lambda x: jnp.tanh(x) * 2)(np.ones((i, 3), np.float32))
        answer.append(y)
    """
    found = [f for f in faults_of(script, tmp_path) if f.kind in ("loop", "shape")]
    (fault,) = found
    assert fault.words.startswith("`x` came in 5 shapes: (1, 3), (2, 3), (3, 3), ...")
    assert "and a new jit of a lambda is made here at each pass: 5 made" in fault.words
    assert fault.write.startswith("make it once, above the loop, and call that; and")
    assert "pad `x` to one size" in fault.write
    source = HEAD.replace("LIBRARY", "jax") + textwrap.dedent(script)
    once = recorded("jax", obeyed(source, fault), tmp_path / "once.py")
    assert [f.kind for f in once.faults if f.kind in ("loop", "shape")] == ["shape"]
    padded = obeyed(source, fault).replace("np.ones((i, 3)", "np.ones((8, 3)")
    both = recorded("jax", padded, tmp_path / "both.py")
    assert [f.kind for f in both.faults if f.kind in ("loop", "shape")] == []
    assert once.programs - both.programs == 4


def test_a_jit_that_is_kept_for_each_shape_is_none_of_each_call(tmp_path) -> None:
    script = """
    fs = [jax.jit(lambda x: jnp.tanh(x) * 2) for _ in range(4)]
    answer = [fs[i](np.ones((i + 1, 3), np.float32)) for i in range(4) for _ in "abc"]
    """
    found = faults_of(script, tmp_path)
    assert not any("at each pass" in fault.words for fault in found)


# Each call changes what the jit reads: a line that moves it would be another program.
CALLS = {
    "a method with a result": "y = cfg.bump()",
    "a function of the object": "y = bump(cfg)",
    "a function that is handed on": "y = list(map(bump, [cfg]))",
    "a function of a global name": "y = tweak()",
    "an entry of what it is in": "y = bump(held[0])",
}


@pytest.mark.parametrize("where", ["loop", "function"])
@pytest.mark.parametrize("name", CALLS)
def test_no_line_where_a_call_may_change_what_is_read(name, where, tmp_path) -> None:
    head = """
    class Config:
        def __init__(self):
            self.rate = 1.0
        def bump(self):
            self.rate += 1.0
            return self.rate

    def bump(c):
        return c.bump()

    def tweak():
        global cfg
        cfg = Config()
        cfg.rate = 5.0
        return 0

    def rate():
        return cfg.rate

    cfg = Config()
    held = [cfg]
    """
    bodies = {
        "loop": f"""
    answer = []
    for i in range(4):
        f = jax.jit(lambda x: x * rate())
        answer.append(f(jnp.ones(3)))
        {CALLS[name]}
    """,
        "function": f"""
    def run(x):
        return jax.jit(lambda x: x * rate())(x)

    answer = []
    for i in range(4):
        answer.append(run(jnp.ones(3)))
        {CALLS[name]}
    """,
    }
    script = textwrap.dedent(head) + textwrap.dedent(bodies[where])
    (fault,) = [f for f in faults_of(script, tmp_path) if f.kind == "loop"]
    assert fault.lines == [] and "cfg" in fault.write


def test_a_line_where_calls_only_read(tmp_path) -> None:
    """What arrays, libraries and functions that write nothing do changes no name."""
    script = """
    class Net:
        w = 2.0
        def apply(self, p, x):
            return x @ p

    @jax.jit
    def moved(held):
        return [held[0].at[0].set(1.0), *held[1:]]

    def norm(tree):
        return sum(float(jnp.sum(leaf)) for leaf in jax.tree.leaves(tree))

    net = Net()
    p = jnp.ones((3, 3))
    state = [p, net.w]

    def run(x):
        f = jax.jit(lambda p, x: net.apply(p, x))
        return f(p, x)

    answer = []
    for i in range(4):
        answer.append(run(jnp.ones(3)))
        y = norm(p), p.mean(), net.apply(p, jnp.ones(3))
        state = moved(state)
    """
    source = HEAD.replace("LIBRARY", "jax") + textwrap.dedent(script)
    before = recorded("jax", source, tmp_path / "before.py")
    (fault,) = [f for f in before.faults if f.kind == "loop"]
    assert fault.lines
    after = recorded("jax", obeyed(source, fault), tmp_path / "after.py")
    assert not [f for f in after.faults if f.kind == "loop"]
    assert np.array_equal(before.answer, after.answer)


def test_numbers_of_python_of_two_types(tmp_path) -> None:
    script = """
    @jax.jit
    def scaled(x, rate):
        return x * rate

    answer = []
    for i in range(6):
        answer.append(scaled(jnp.ones(3), 0.5 * i if i % 2 else i))
    """
    source = HEAD.replace("LIBRARY", "jax") + textwrap.dedent(script)
    before = recorded("jax", source, tmp_path / "before.py")
    (fault,) = [f for f in before.faults if f.kind == "type"]
    assert fault.words == "`rate` is a Python int and a Python float by turns"
    assert fault.write == "pass a float each time: float(...)"
    after = recorded("jax", obeyed(source, fault), tmp_path / "after.py")
    assert [f for f in after.faults if f.kind == "type"] == []
    assert before.programs - after.programs >= 1
    assert np.array_equal(before.answer, after.answer)


def test_arguments_of_another_structure(tmp_path) -> None:
    script = """
    @jax.jit
    def total(terms):
        return sum(jnp.sum(v) for v in terms.values())

    x = jnp.ones(3)
    answer = []
    for i in range(6):
        answer.append(total({"a": x, "b": x} if i % 2 else {"a": x}))
    """
    before = faults_of(script, tmp_path)
    (fault,) = [f for f in before if f.kind == "structure"]
    told = "where there is no terms['b'], pass zeros in its place"
    assert fault.write.endswith(told)
    mended = script.replace('else {"a": x}', 'else {"a": x, "b": jnp.zeros(3)}')
    after = faults_of(mended, tmp_path)
    assert mended != script and not [f for f in after if f.kind == "structure"]


# A size that no other test has: what JAX compiled before is not compiled again. No line
# has eight operations: which one is told must not depend on the seconds of each.
LOOSE = """
def init(n):
    w = jnp.sin(jnp.full(n, 0.1)) + jnp.cos(jnp.full(n, 0.2))
    w = w * jnp.tan(jnp.full(n, 3.0)) - jnp.exp(w)
    return jnp.tanh(w) + jnp.sinh(jnp.cosh(w))

def main():
    global answer
    w = init(1013)
    answer = w
main()
"""


def test_operations_outside_of_jit_stand_at_the_call_that_holds_them(
    tmp_path, monkeypatch
) -> None:
    """Not at `main()`, in which all is."""
    from minijax_lab.explain import flight_loose

    monkeypatch.setattr(flight_loose, "LEAST_LOOSE", 0.0)
    source = HEAD.replace("LIBRARY", "jax") + LOOSE
    before = recorded("jax", source, tmp_path / "train.py")
    (fault,) = [f for f in before.faults if f.kind == "loose"]
    lines = source.splitlines()
    assert lines[fault.line - 1].strip() != "main()"
    assert fault.at_most > 0 and fault.count >= 8
    # The page's rows of those lines send the reader there.
    inside = [n for n, text in enumerate(lines, 1) if "jnp." in text and n > 4]
    assert len(inside) == 3 and {line for _, line in fault.ran} == {*inside}
    mended = source.replace("w = init(1013)", "w = jax.jit(lambda: init(1013))()")
    after = recorded("jax", mended, tmp_path / "mended.py")
    assert not [f for f in after.faults if f.kind == "loose"]
    assert after.programs <= before.programs - fault.count + 1


LIBRARY = """
import functools, inspect, jax
class Wrapped:
    def __init__(self, function):
        self.__wrapped__ = function
        def inner(given, static):
            return function(*[s if s is not None else g for g, s in zip(given, static)])
        inner.__name__ = function.__name__
        self.jitted = jax.jit(inner, static_argnums=1)
    def __call__(self, *args):
        held = [a if hasattr(a, "shape") else None for a in args]
        static = tuple(None if hasattr(a, "shape") else a for a in args)
        out = self.jitted(held, static)
        out.block_until_ready()
        return out
"""


def test_numbers_that_a_library_makes_static(tmp_path, monkeypatch) -> None:
    """As Equinox's `filter_jit` does: the user's name and line, and an array there."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "filtering_library.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(folder))
    script = """
    from filtering_library import Wrapped

    @Wrapped
    def step(x, heat):
        return x * heat

    answer = []
    for i in range(5):
        answer.append(step(jnp.ones(3), 1.0 + i))
    """
    source = HEAD.replace("LIBRARY", "jax") + textwrap.dedent(script)
    before = recorded("jax", source, tmp_path / "before.py")
    (fault,) = before.faults  # and no wait, which the library makes
    assert fault.words.startswith("`heat` is a Python number, which this library's jit")
    after = recorded("jax", obeyed(source, fault), tmp_path / "after.py")
    sys.modules.pop("filtering_library", None)
    assert [f for f in after.faults if f.kind == "static"] == []
    assert before.programs - after.programs >= 3
    assert np.array_equal(before.answer, after.answer)


# ---- afterwards ----------------------------------------------------------------------


def patched() -> list:
    """All that the recorder replaces."""
    array = type(jax.numpy.zeros(()))
    names = ("_value", "item", "tolist", "block_until_ready")
    held = [array.__dict__.get(name, getattr(array, name)) for name in names]
    held += [jax.jit, jax.device_get, jax.device_put, jax.block_until_ready]
    held += [np.asarray, np.array, warnings.showwarning, __import__]
    held += [__builtins__["__import__"], list(warnings.filters)]
    from jax._src import monitoring

    for name, value in vars(monitoring).items():
        if name.endswith("listeners") and isinstance(value, list):
            held.append(list(value))
    return held


class MeantError(Exception):
    pass


def test_nothing_stays_replaced_after_an_error() -> None:
    before = patched()
    with pytest.raises(MeantError), see.recording():
        jax.jit(lambda x: x + 1)(1.0)
        raise MeantError
    assert patched() == before


def test_nothing_stays_replaced_after_recordings_inside_of_each_other() -> None:
    before = patched()
    with see.recording() as outer:
        with see.recording() as inner:
            float(jax.jit(lambda x: x + 1)(1.0))
        float(jax.jit(lambda x: x + 2)(1.0))
    assert patched() == before
    assert inner.finished().sites and outer.finished().sites


def test_nothing_stays_replaced_after_recordings_that_overlap() -> None:
    """The one that began first ends first; two threads do so."""
    before = patched()
    first, second = see.recording(), see.recording()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    float(jax.jit(lambda x: x + 3)(1.0))
    second.__exit__(None, None, None)
    assert patched() == before


def test_nothing_stays_replaced_after_recordings_of_threads() -> None:
    before = patched()
    begin = threading.Barrier(2)

    def record(number):
        with see.recording():
            begin.wait()
            float(jax.jit(lambda x: x + number)(1.0))
            begin.wait()

    threads = [threading.Thread(target=record, args=(n,)) for n in (4, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert patched() == before
    assert float(jax.jit(lambda x: x + 6)(1.0)) == 7.0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("raise ValueError('meant')", 1),
        ("import sys; sys.exit(7)", 7),
        ("import sys; sys.exit('meant')", 1),
        ("import warnings; warnings.warn('meant')", 0),
        ("raise KeyboardInterrupt('meant')", 130),
    ],
)
def test_what_a_script_says_at_its_end_comes_through(body, status, tmp_path) -> None:
    from tests.views.test_record import recorded as run

    done, page = run(tmp_path, f"import jax\njax.jit(lambda x: x)(1.0)\n{body}\n")
    import subprocess

    plain = subprocess.run(
        [sys.executable, "train.py"], capture_output=True, text=True, cwd=tmp_path
    )
    assert page
    if status == 130:  # Python ends by the signal: a shell says 130
        assert plain.returncode in (-2, 130) and done.returncode in (-2, 130)
    else:
        assert done.returncode == plain.returncode == status
    if "meant" in body:
        assert "meant" in done.stderr


def test_seconds_of_one_operation_are_told_once(tmp_path, monkeypatch) -> None:
    from minijax_lab.explain import flight_loose

    monkeypatch.setattr(flight_loose, "LEAST_LOOSE", 0.0)
    script = """
    for i in range(4):
        answer = jnp.cos(jnp.exp(np.ones(50 + i, np.float32))) + jnp.ones(50 + i)
    """
    path = tmp_path / "train.py"
    path.write_text(HEAD.replace("LIBRARY", "jax") + textwrap.dedent(script))
    with see.recording() as record:
        runpy.run_path(str(path))
    report = record.finished()
    kinds = {fault.kind for fault in report.told}
    assert {"loose", "shape"} <= kinds
    whole = sum(fault.seconds + fault.at_most for fault in report.told)
    assert 0 < whole <= report.compiling + 1e-6


@pytest.mark.parametrize(("each", "said"), [(0.3, True), (0.1, False)])
def test_most_operations_stand_where_it_is_said(each, said) -> None:
    from minijax_lab.explain.flight_loose import Loose, operations
    from minijax_lab.explain.user_source import Source

    source = Source("train.py", ["run()", "x = 1", "y = 2"])
    at = {("train.py", line): each for line in (2, 3)}
    told = Loose(1.0, {"sin": 30, "cos": 30}, at | {("train.py", 1): 1.0 - 2 * each})
    fault = operations(source, ("train.py", 1), told)
    assert ("most of them by line 2, 3" in fault.words) == said


@pytest.mark.parametrize("cached", ["", "@functools.cache"])
def test_what_differs_between_closures_is_to_be_an_argument(cached, tmp_path) -> None:
    script = f"""
    import functools
    {cached}
    def make(n):
        return jax.jit(lambda x: x + n)

    answer = [make(n)(jnp.ones(3)) for n in range(4)]
    """
    (fault,) = [f for f in faults_of(script, tmp_path) if f.kind == "loop"]
    told = "pass `n` as an argument, to one that is made once outside of make"
    assert fault.write == told


def test_a_script_that_cannot_be_compiled_shows_no_frames(tmp_path) -> None:
    import subprocess

    from tests.views.test_record import recorded as run

    done, page = run(tmp_path, "import jax\nx = (1\ny = 2\n")
    plain = subprocess.run(
        [sys.executable, "train.py"], capture_output=True, text=True, cwd=tmp_path
    )
    assert not page and done.returncode == plain.returncode == 1
    assert "recorder" not in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[1:] == plain.stderr.splitlines()[1:]


def test_an_object_in_two_places_keeps_the_librarys_path() -> None:
    from types import SimpleNamespace

    from minijax_lab.explain.flight_facts import Key, Leaf
    from minijax_lab.explain.flight_keys import as_given

    one, two = np.ones(3), np.ones(4)
    leaves = [Leaf(f"args[{n}]", (), "float32", False, "", 4) for n in range(3)]
    front = SimpleNamespace(jitted=None, options={}, signature=None)
    call = SimpleNamespace(f_locals={"args": (one, one, two), "kwargs": {}})
    given = {"a": one, "b": one, "c": two}
    as_given(jax, Key(leaves, {}, ""), front, call, given)
    assert [leaf.path for leaf in leaves] == ["args[0]", "args[1]", "c"]
