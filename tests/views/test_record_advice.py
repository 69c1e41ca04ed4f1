"""The flight recorder's advice, tested by obeying it.

Each script has one fault. It is recorded; the repaired lines of the page are put into
the script by a machine, as the page says; it is recorded again, and the fault is gone,
with the programs that it cost, and the script's answer is the one from before.
"""

import ast
import functools
import runpy
import textwrap
from dataclasses import dataclass

import jax
import pytest

import minijax
import minijax_widgets as see
from minijax_lab.explain.flight_reads import decided_at
from minijax_lab.explain.flight_repairs import kept_on_device, python_uses
from minijax_lab.explain.flight_writes import acted_on
from minijax_lab.explain.user_source import Source

HEAD = """
from functools import partial
import LIBRARY as jax
import LIBRARY.numpy as jnp
import numpy as np
"""

# name: (kind of the fault, what its sentence says, the script)
SCRIPTS = {
    "jit in a loop": (
        "loop",
        "a new jit of a lambda",
        """
        w = jnp.ones((3, 3))
        answer = []
        for i in range(5):
            y = jax.jit(lambda w, x: jnp.tanh(w @ x))(w, jnp.ones(3))
            answer.append(y)
        """,
    ),
    "jit in a loop that reads the loop": (
        "loop",
        "a new jit of a lambda",
        """
        answer = []
        for i in range(5):
            scale = 1.0 + i
            y = jax.jit(lambda x: x * scale)(jnp.ones(3))
            answer.append(y)
        """,
    ),
    "jit in a function": (
        "loop",
        "a new jit of a lambda",
        """
        def evaluate(x):
            forward = jax.jit(lambda x: jnp.sin(x) * 2)
            return forward(x)

        answer = [evaluate(jnp.ones(3)) for i in range(5)]
        """,
    ),
    "jit in a function, of a name that means more": (
        "loop",
        "a new jit of a lambda",
        """
        step = 5.0

        def doubled(x):
            step = jax.jit(lambda x: x * 2)
            step = partial(step)
            return step(x)

        answer = [doubled(jnp.ones(3)) * step for _ in range(4)]
        """,
    ),
    "jit in a function, of two names": (
        "loop",
        "a new jit of a lambda",
        """
        def doubled(x):
            f = g = jax.jit(lambda x: x * 2)
            return f(x) + g(x)

        answer = [doubled(jnp.ones(3)) for _ in range(4)]
        """,
    ),
    "jit in a function, of a parameter's name": (
        "loop",
        "a new jit of a lambda",
        """
        def doubled(x, f=None):
            given = f
            f = jax.jit(lambda x: x * 2)
            return f(x) if given is None else x

        answer = [doubled(jnp.ones(3)) for _ in range(4)]
        """,
    ),
    "jit in a function, beside a function's own names": (
        "loop",
        "a new jit of a lambda",
        """
        scale = 2.0
        later = 5.0
        later = 6.0

        def unrelated():
            scale = 3.0
            return later + scale

        def run(x):
            f = jax.jit(lambda x: below(x) * scale)
            return f(x)

        def below(x):
            return x + 1

        answer = [run(jnp.ones(3)) for _ in range(4)]
        """,
    ),
    "jit in a function, of a name of a star": (
        "loop",
        "a new jit of a lambda",
        """
        from math import *

        def run(x):
            f = jax.jit(lambda x: x * sqrt(4.0))
            return f(x)

        answer = [run(jnp.ones(3)) for _ in range(4)]
        """,
    ),
    "jit in a loop, of names that another function has": (
        "loop",
        "a new jit of a lambda",
        """
        def unrelated():
            scale = 3.0
            return later + scale

        scale = 1.5
        answer = []
        for later in range(6):
            f = jax.jit(lambda x: x * scale)
            answer.append(f(jnp.ones(3)))
            np.testing.assert_allclose(scale, 1.5)
        """,
    ),
    "jit in a loop, called by keyword": (
        "loop",
        "a new jit of a lambda",
        """
        answer = []
        for i in range(5):
            scale = 1.0 + i
            y = jax.jit(lambda x, *, by, up=1.0: x * scale + by)(jnp.ones(3), by=2.0)
            answer.append(y)
        """,
    ),
    "jit in a loop, beside a default": (
        "loop",
        "a new jit of a lambda",
        """
        answer = []
        for i in range(5):
            y = jax.jit(lambda x, k=2.0: x * k + i)(jnp.ones(3))
            answer.append(y)
        """,
    ),
    "jit in a loop, of a name that is taken": (
        "loop",
        "a new jit of a lambda",
        """
        jitted_10 = 7
        answer = []
        for i in range(5):
            answer.append(jax.jit(lambda x: x * 2)(jnp.ones(3)) * jitted_10)
        """,
    ),
    "static": (
        "static",
        "`number` took 6 values",
        """
        @partial(jax.jit, static_argnames=("number",))
        def warm(x, number):
            return x * np.sin(number)

        answer = []
        for i in range(6):
            answer.append(warm(jnp.ones(3), i))
        """,
    ),
    "static, computed with": (
        "static",
        "`number` took 6 values",
        """
        @partial(jax.jit, static_argnames=("number",))
        def warm(x, number):
            rate = number / 2
            both = np.sin(rate) + np.cos(np.abs(rate))
            return x[: len(x.shape)] * both

        answer = []
        for i in range(6):
            answer.append(warm(jnp.ones(3), number=i))
        """,
    ),
    "static by place": (
        "static",
        "`number` took 6 values",
        """
        def warm(x, number):
            return x * number

        warm = jax.jit(warm, static_argnums=1)
        answer = []
        for i in range(6):
            answer.append(warm(jnp.ones(3), i))
        """,
    ),
    "ragged last batch": (
        "shape",
        "`x` has (8, 3) and sometimes (4, 3)",
        """
        @jax.jit
        def total(x):
            return jnp.sum(x)

        data = np.zeros((20, 3), np.float32)
        answer = 0.0
        for i in range(0, len(data), 8):
            answer = answer + total(data[i : i + 8])
        """,
    ),
    "ragged batch of an iterator": (
        "shape",
        "`x` has (8, 3) and sometimes (4, 3)",
        """
        @jax.jit
        def total(x):
            return jnp.sum(x)

        answer = 0.0
        for batch in np.split(np.zeros((20, 3), np.float32), [8, 16]):
            answer = answer + total(batch)
        """,
    ),
    "a size and a static argument": (
        "shape",
        "sometimes (4, 3), and static argument `number` changed with it",
        """
        @partial(jax.jit, static_argnames=("number",))
        def total(x, number):
            return jnp.sum(x) * number

        data = np.zeros((20, 3), np.float32)
        answer = 0.0
        for i in range(0, 20, 8):
            answer = answer + total(data[i : i + 8], number=float(min(20 - i, 8)))
        """,
    ),
    "weak type": (
        "type",
        "`state['ema']` was weak int32 at first and is float32",
        """
        @jax.jit
        def step(state, x):
            return {"ema": 0.5 * state["ema"] + jnp.sum(x)}

        state = {"ema": 0}
        for i in range(5):
            state = step(state, jnp.ones(3))
        answer = state["ema"]
        """,
    ),
    "types by turns": (
        "type",
        "by turns",
        """
        @jax.jit
        def scale(x, rate):
            return x * rate

        answer = []
        for rate in (2.0, 2.0, np.float32(3), 4.0, np.float32(5)):
            answer.append(scale(jnp.ones(3), rate))
        """,
    ),
    "weak type of a method's state, beside shapes": (
        "type",
        "`ema` was weak int32 at first and is float32",
        """
        class Trainer:
            def __init__(self):
                self.ema = 0
                self.step = jax.jit(self._step)

            def _step(self, x, ema):
                return 0.5 * ema + jnp.sum(x)

        trainer = Trainer()
        for n in (3, 4, 3, 4):
            trainer.ema = trainer.step(jnp.ones(n), trainer.ema)
        answer = trainer.ema
        """,
    ),
    "types by turns, of a jitted method": (
        "type",
        "by turns",
        """
        class Scaled:
            @partial(jax.jit, static_argnums=0)
            def scale(self, x, rate):
                return x * rate

        answer, scaled = [], Scaled()
        for rate in (2.0, 2.0, np.float32(3), 4.0, np.float32(5)):
            answer.append(scaled.scale(jnp.ones(3), rate))
        """,
    ),
    "constant": (
        "constant",
        "`TABLE` (1,048,576 bytes) is baked into a program",
        """
        TABLE = jnp.ones((512, 512))

        @jax.jit
        def look(x):
            return TABLE @ x

        answer = []
        for i in range(3):
            answer.append(look(jnp.ones(512)))
        """,
    ),
    "constant, called by keyword": (
        "constant",
        "`TABLE` (1,048,576 bytes) is baked into 2 programs",
        """
        TABLE = jnp.ones((512, 512))

        def look(x, n):
            return TABLE @ x * n

        looked = jax.jit(look)
        answer = [looked(jnp.ones(512), n=2.0), looked(x=jnp.ones(512), n=3.0)]
        """,
    ),
    "constant, beside a default": (
        "constant",
        "`TABLE` (1,048,576 bytes) is baked into a program",
        """
        TABLE = jnp.ones((512, 512))

        @jax.jit
        def look(x, n=1.0):
            return TABLE @ x * n

        answer = []
        for i in range(3):
            answer.append(look(jnp.ones(512)))
        """,
    ),
    "types by turns, by keyword": (
        "type",
        "by turns",
        """
        @jax.jit
        def scale(x, rate):
            return x * rate

        answer = []
        for rate in (2.0, 2.0, np.float32(3), 4.0, np.float32(5)):
            answer.append(scale(jnp.ones(3), rate=rate))
        """,
    ),
    "donated in vain": (
        "unusable",
        "float32[64,64]",
        """
        @partial(jax.jit, donate_argnums=(0,))
        def norm(x):
            return jnp.sum(x * x)

        answer = norm(jnp.ones((64, 64)))
        """,
    ),
    "host copies": (
        "wait",
        "brought an array to the host 5 times",
        """
        step = jax.jit(lambda x: x + 1)
        x = jnp.zeros(())
        answer = []
        for i in range(5):
            x = step(x)
            answer.append(float(x))
        """,
    ),
    "host sum": (
        "wait",
        "brought an array to the host 5 times",
        """
        step = jax.jit(lambda x: x + 1)
        x = jnp.zeros(())
        answer = 0.0
        for i in range(5):
            x = step(x)
            answer += x.item()
        """,
    ),
    "waits in the loop": (
        "wait",
        "waited for the device 5 times",
        """
        step = jax.jit(lambda x: x + 1)
        answer = jnp.zeros(())
        for i in range(5):
            answer = step(answer)
            answer.block_until_ready()
        """,
    ),
    "not donated": (
        "donate",
        "`state` (1,440,000 bytes) is not donated",
        """
        @jax.jit
        def step(state):
            return jax.tree_util.tree_map(lambda leaf: leaf + 1, state)

        answer = {"m": jnp.ones((600, 600))}
        for i in range(4):
            answer = step(answer)
        """,
    ),
    "not donated, below another decorator": (
        "donate",
        "`state` (1,440,000 bytes) is not donated",
        """
        def tagged(number):
            return lambda function: function

        @tagged(3)
        @jax.jit
        def step(state):
            return state + jax.jit(jnp.sin)(1.0)

        answer = jnp.ones((600, 600))
        for i in range(4):
            answer = step(answer)
        """,
    ),
    "pushed again and again": (
        "pushed",
        "the same NumPy array `x` (1,200 bytes)",
        """
        step = jax.jit(lambda w, x: w + x)
        data = np.ones((100, 3), np.float32)
        answer = jnp.zeros((100, 3))
        for i in range(5):
            answer = step(answer, data)
        """,
    ),
}
# minijax is not real JAX: it warns of no donated buffer, and answers as its own calls.
OURS = [name for name in SCRIPTS if name != "donated in vain"]


@dataclass
class Run:
    faults: list
    answer: object
    programs: int


def recorded(library, source, path):
    path.write_text(source)
    if library == "minijax":
        globals()["minijax"]  # the caller has it: minijax is listened to
    with see.recording() as record:
        names = runpy.run_path(str(path), run_name="__main__")
    report = record.finished()
    # Both libraries are listened to: faults are those of the script.
    faults = [fault for fault in report.told if fault.file == str(path)]
    made = sum(
        site.counts.get("compile", 0) + site.counts.get("read from disk", 0)
        for site in report.sites
        if site.file == str(path)
    )
    return Run(faults, names["answer"], made)


def obeyed(source, fault):
    """The script with the repaired lines of a fault, put where they say."""
    lines = source.splitlines()
    loop = [n for n, text in enumerate(lines, 1) if text.startswith(("for ", "while "))]
    for line in sorted(fault.lines, key=lambda line: (-line.line, not line.old)):
        place = line.line - 1
        if line.old:
            assert lines[place].strip() == line.old
            indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
            lines[place : place + 1] = [indent + line.new] if line.new else []
        else:
            assert line.where
            if line.where == "after the loop":
                assert loop and loop[-1] < line.line
            lines.insert(place, line.new)
    return "\n".join(lines) + "\n"


def check(library, name, folder):
    kind, told, script = SCRIPTS[name]
    source = HEAD.replace("LIBRARY", library) + textwrap.dedent(script)
    before = recorded(library, source, folder / "before.py")
    (fault,) = [fault for fault in before.faults if fault.kind == kind]
    assert told in fault.words
    assert fault.lines, fault.write
    after = recorded(library, obeyed(source, fault), folder / "after.py")
    assert [f.kind for f in after.faults if f.kind == kind] == []
    if kind in ("loop", "static", "shape", "type"):
        assert fault.seconds > 0 and after.programs < before.programs
        # What is told to go are the programs that went.
        assert before.programs - after.programs >= fault.count
    leaves = jax.tree.leaves if library == "jax" else minijax.tree.leaves
    one, two = leaves(before.answer), leaves(after.answer)
    assert [float(x.sum() if hasattr(x, "sum") else x) for x in one] == pytest.approx(
        [float(x.sum() if hasattr(x, "sum") else x) for x in two]
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_of_jax(name, tmp_path) -> None:
    check("jax", name, tmp_path)


@pytest.mark.parametrize("name", OURS)
def test_of_minijax(name, tmp_path) -> None:
    check("minijax", name, tmp_path)


def test_leaves_of_a_tree_are_not_to_be_padded(tmp_path) -> None:
    """Operations outside of jit on all leaves: one function under jit, no padding."""
    script = HEAD.replace("LIBRARY", "jax") + textwrap.dedent(
        """
        leaves = [np.ones(shape, np.float32) for shape in ((2, 3), (3, 5), (5,), (7,))]
        for _ in range(2):
            answer = sum(jnp.sum(jnp.square(p)) for p in jax.tree.leaves(leaves))
        """
    )
    faults = recorded("jax", script, tmp_path / "norm.py").faults
    assert faults and not [fault for fault in faults if "pad" in fault.write]
    assert all("under jax.jit" in fault.write for fault in faults)


@pytest.mark.parametrize("library", ["jax", "minijax"])
def test_a_function_moved_as_advised(library, tmp_path) -> None:
    """What it reads of the loop goes with it; what is its own does not."""
    function = """
    @jax.jit
    def f(x):
        y = x * i
        return y
    """
    inside = "for i in range(1, 6):" + function + "x = f(x)"
    moved = textwrap.dedent(function).replace("(x)", "(x, i)")
    outside = f"{moved}\nfor i in range(1, 6):\n    x = f(x, i)"
    head = HEAD.replace("LIBRARY", library) + "x = jnp.ones(3)\n"
    before, after = (
        recorded(library, f"{head}{text}\nanswer = x\n", tmp_path / f"{name}.py")
        for name, text in (("inside", inside), ("outside", outside))
    )
    (fault,) = [fault for fault in before.faults if fault.kind == "loop"]
    assert fault.lines == []  # a comment that says to move it would not say enough
    words = "move f, with its decorator, above the loop, and pass i to it"
    assert fault.write == words
    assert [fault.kind for fault in after.faults] == []
    assert after.answer.tolist() == before.answer.tolist() == [120.0, 120.0, 120.0]


@pytest.mark.parametrize("library", ["jax", "minijax"])
def test_all_advice_obeyed_at_once(library, tmp_path) -> None:
    """Each jit of a loop gets a name of its own."""
    script = """
    x = jnp.ones(3)
    for i in range(5):
        y = jax.jit(lambda x: x * 2)(x)
        answer = jax.jit(lambda x: x + 5)(y)
    """
    source = HEAD.replace("LIBRARY", library) + textwrap.dedent(script)
    before = recorded(library, source, tmp_path / "before.py")
    both, *more = [fault for fault in before.faults if fault.kind == "loop"]
    for fault in more:
        both.lines += fault.lines
    after = recorded(library, obeyed(source, both), tmp_path / "after.py")
    assert len(more) == 1 and len(both.lines) == 4
    assert [fault.kind for fault in after.faults] == []
    assert after.answer.tolist() == before.answer.tolist() == [7.0, 7.0, 7.0]


def test_faults_behind_a_static_argument() -> None:
    """Each program but the first has a new static value; two would stay without it."""
    import jax.numpy as jnp
    import numpy as np

    with see.recording() as record:

        @functools.partial(jax.jit, static_argnames="number")
        def step(total, x, number):
            return total + x.sum() * max(number, 1)

        total = 0
        for number in range(8):
            total = step(total, np.ones(3 if number % 4 == 3 else 4), number=number)
    told = {f.kind: f for f in record.finished().told if f.kind != "pushed"}
    assert {kind: told[kind].count for kind in told} == {
        "static": 5,  # of 7: what number alone costs
        "type": 1,
        "shape": 1,
    }
    assert "`number` took 8 values" in told["static"].words
    needed = step.__wrapped__.__code__.co_firstlineno + 2
    assert told["static"].write.endswith(f"(Python needs its value at line {needed})")
    both = ", and static argument `number` changed with it"
    first = "`total` was weak int32 at first and is float32"
    assert told["type"].words == first + both
    assert told["shape"].words == "`x` has (4,) and sometimes (3,)" + both
    assert f"and mask; and {told['static'].write}" in told["shape"].write
    assert isinstance(total, jnp.ndarray)


NO_LINES = {
    "static argument `mode` took 3 values": (
        "pass few values of `mode`: each makes a program of its own",
        """
        @partial(jax.jit, static_argnames=("mode",))
        def reduced(x, mode):
            return getattr(jnp, mode)(x)

        answer = [reduced(jnp.ones(3), mode) for mode in ("sum", "max", "min")]
        """,
    ),
    "static argument `number` took 3 values": (
        "(Python needs its value at line 10)",
        """
        @partial(jax.jit, static_argnames=("number",))
        def repeated(x, number):
            many = number + 1
            for _ in range(many):
                x = jnp.sin(x)
            return x

        answer = [repeated(jnp.ones(3), number) for number in range(3)]
        """,
    ),
    "`table` (1,048,576 bytes) is baked into a program": (
        "pass `table` as an argument",
        """
        def make():
            table = jnp.ones((512, 512))

            @jax.jit
            def look(x):
                return table @ x

            return look

        look = make()
        answer = look(jnp.ones(512))
        """,
    ),
    "`BIG` (1,048,576 bytes) is baked into 2 programs": (
        "pass `BIG` as an argument",
        """
        BIG = jnp.ones((512, 512))

        @jax.jit
        def look(x):
            return x @ BIG

        answer = jax.vmap(look)(jnp.ones((2, 512))), look(jnp.ones(512))
        """,
    ),
    "`SHADED` (1,048,576 bytes) is baked into a program": (
        "pass `SHADED` as an argument",
        """
        SHADED = jnp.ones((512, 512))

        @jax.jit
        def look(x):
            return x @ SHADED

        def run(SHADED):
            return look(SHADED)

        answer = run(jnp.ones(512))
        """,
    ),
    "`TWICE` (1,048,576 bytes) is baked into a program": (
        "pass `TWICE` as an argument",
        """
        TWICE = jnp.ones((512, 512))

        @jax.vmap
        @jax.jit
        def look(x):
            return x @ TWICE

        answer = look(jnp.ones((512, 512)))
        """,
    ),
    "a new jit of a lambda is made here": (
        "make it once, above the loop, and pass n to it",
        """
        for n in range(2, 7):
            answer = jax.jit(lambda x: x + jnp.zeros(n))(jnp.ones(1))
        """,
    ),
    "`ema` was int32 at first and is float32": (
        "if `loss` widens it, pass `loss` as int32; or start it as an array of dtype "
        "float32",
        """
        smooth = jax.jit(lambda ema, loss: ema + loss)
        ema = jnp.int32(0)
        for i in range(4):
            ema = smooth(ema, np.float32(i))
        answer = ema
        """,
    ),
    "`count` was int32 at first and is float32": (
        "if `x` widens it, pass `x` as int32; or start it as an array of dtype float32",
        """
        halved = jax.jit(lambda count, x: (count / jnp.int32(2), x * 2))
        count, x = jnp.int32(8), jnp.ones(3)
        for _ in range(4):
            count, x = halved(count, x)
        answer = count
        """,
    ),
    "a new jit of a lambda is made here at each pass: 3": (
        "make it once outside of scaled, after what it reads, and pass SCALE to it",
        """
        def scaled(x):
            return jax.jit(lambda x: x * SCALE)(x)

        answer = []
        for SCALE in (2.0, 3.0, 4.0):
            answer.append(scaled(jnp.ones(3)))
        """,
    ),
    "a new jit of a lambda is made here at each pass: 4": (
        "make it once outside of scaled, after what it reads, and pass rate to it",
        """
        rate = 1.0

        def helped(x):
            return x * rate

        def scaled(x):
            global rate
            rate += 1.0
            return jax.jit(lambda x: helped(x))(x)

        answer = [scaled(jnp.ones(3)) for _ in range(4)]
        """,
    ),
    "a new jit of a lambda is made here at each pass: 5": (
        "make it once outside of looked, after what it reads, and pass TABLE to it",
        """
        def looked(x):
            return jax.jit(lambda x: x + TABLE)(x)

        TABLE = jnp.ones(3)
        answer = [looked(jnp.ones(3)) for _ in range(5)]
        """,
    ),
    "a new jit of a lambda is made here at each pass: 6": (
        "make it once, above the loop, and pass rate to it",
        """
        rate = 1.0

        def helped(x):
            return x * rate

        for _ in range(6):
            answer = jax.jit(lambda x: helped(x))(jnp.ones(3))
            rate = rate + 1.0
        """,
    ),
    "a new jit of a lambda is made here at each pass: 7": (
        "(@functools.cache above it, if its arguments can be hashed)",
        """
        class Model:
            def doubled(self, x):
                return jax.jit(lambda x: x * 2)(x)

        answer = [Model().doubled(jnp.ones(3)) for _ in range(7)]
        """,
    ),
    "a new jit of a lambda is made here at each pass: 8": (
        "make it once outside of scaled, after what it reads, and pass SCALES to it",
        """
        SCALES = []

        def scaled(x):
            return jax.jit(lambda x: x * sum(SCALES))(x)

        answer = []
        for i in range(8):
            SCALES.append(float(i))
            answer.append(scaled(jnp.ones(3)))
        """,
    ),
    "a new jit of a lambda is made here at each pass: 9": (
        "make it once, above the loop; if a call in it changes `SCALES`, pass that",
        """
        SCALES = []

        def helped(x):
            return x * sum(SCALES)

        for i in range(9):
            SCALES.append(float(i))
            answer = jax.jit(lambda x: helped(x))(jnp.ones(3))
        """,
    ),
    "a new jit of a lambda is made here at each pass: 10": (
        "make it once outside of scaled, after what it reads, and pass SCALES to it",
        """
        SCALES = {}

        def helped(x):
            SCALES["last"] = SCALES.get("last", 0.0) + 1.0
            return x * SCALES["last"]

        def scaled(x):
            return jax.jit(lambda x: helped(x))(x)

        answer = [scaled(jnp.ones(3)) for i in range(10)]
        """,
    ),
    "is made at line 8 at each pass: 5": (
        "make it once outside of run, after what it reads, and pass below to it",
        """
        def run(x):
            f = jax.jit(partial(below))
            return f(x)

        def below(x):
            return x * 2

        answer = [run(jnp.ones(3)) for _ in range(5)]
        """,
    ),
    "a new jit of a lambda is made at line 9 at each pass: 5": (
        "(@functools.cache above it, if its arguments can be hashed)",
        """
        def doubled(x, fast=True):
            if fast:
                f = jax.jit(lambda x: x * 2)
            return f(x)

        answer = [doubled(jnp.ones(3)) for _ in range(5)]
        """,
    ),
    "a new jit of a lambda is made at line 8 at each pass: 4": (
        "(@functools.cache above it, if its arguments can be hashed)",
        """
        def doubled(x):
            by = 3.0; f = jax.jit(lambda x: x * 2)
            return f(x) * by

        answer = [doubled(jnp.ones(3)) for _ in range(4)]
        """,
    ),
    "a new jit of a lambda is made at line 8": (
        "make it once, above the loop, and call that",
        """
        for n in range(5):
            step = jax.jit(lambda x: x * 2)
            step = partial(step, jnp.ones(3))
            answer = step()
        """,
    ),
}


@pytest.mark.parametrize("told", NO_LINES)
def test_where_a_repaired_line_alone_would_raise_there_is_none(told, tmp_path) -> None:
    write, script = NO_LINES[told]
    source = HEAD.replace("LIBRARY", "jax") + textwrap.dedent(script)
    faults = recorded("jax", source, tmp_path / "train.py").faults
    (fault,) = [fault for fault in faults if told in fault.words]
    assert fault.write.endswith(write) and not fault.lines


def test_a_line_that_reads_is_called_as_often_as_it_calls() -> None:
    """A read at the line of a call is no call of its own."""
    import jax.numpy as jnp
    import numpy as np

    data = np.ones((100, 3), np.float32)
    with see.recording() as record:
        f = jax.jit(lambda w, x: jnp.sum(w * x))
        for _ in range(6):
            float(f(jnp.ones(3), data))
    (fault,) = [f for f in record.finished().told if f.kind == "pushed"]
    assert fault.words.endswith("is copied to the device at each of 6 calls")
    assert (fault.count, fault.bytes) == (6, 6 * data.nbytes)


def test_fresh_numpy_arrays_are_not_the_same_one() -> None:
    """Python gives the address of an array that is gone to the next one."""
    import jax.numpy as jnp
    import numpy as np

    random = np.random.default_rng(0)
    weights = jnp.ones(32)
    with see.recording() as record:
        f = jax.jit(lambda w, x: (x @ w).sum())
        for _ in range(100):
            f(weights, random.normal(size=(64, 32)).astype(np.float32))
    assert record.ears[0].pushed
    assert [f for f in record.finished().told if f.kind == "pushed"] == []


@pytest.mark.parametrize(
    ("line", "used"),
    [
        ("k = 3 or n", False),
        ("k = n or 3", True),
        ("if 3 or n: pass", True),
        ("if n is None: pass", False),
        ("if n is not None and x is None: pass", False),
        ("if n is None or n > 3: pass", True),
        ("y = jnp.zeros(n)", True),
        ("y = jnp.full((2, n), 0.0)", True),
        ("y = jnp.full((2, 3), n)", False),
        ("y = jnp.reshape(x, (n, -1))", True),
        ("y = jnp.reshape(n, (1, 1))", False),
        ("y = x.reshape(n, -1)", True),
        ("y = x[:n]", True),
        ("y = x[n]", False),
        ("k = n + 1; if_ = 1 if k else 2", True),
        ("k, m = n, 2; y = x[:k]", True),
        ("k = n; k += 1; y = float(k)", True),
        ("y = x[: (k := n * 2)]", True),
        ("k = jnp.sin(n) * x; y = x[: k.shape[0]]", False),
        ("k = n * x; y = x[: len(k)] if k.ndim else x", False),
        ("k = x; y = x[: k.ndim]", False),
        ("y = x * n", False),
    ],
)
def test_where_python_needs_a_value(line, used) -> None:
    tree = ast.parse(f"def f(x, n):\n    {line}\n")
    assert bool(python_uses(tree.body[0], "n")) == used
    # As JAX says, with the argument traced.
    names = {"jnp": jax.numpy}
    exec(ast.unparse(tree), names)
    try:
        jax.jit(names["f"])(jax.numpy.ones((2, 3)), 1)
        refused = False
    except (TypeError, IndexError, jax.errors.ConcretizationTypeError):
        refused = True
    # (`3 or n` as a test: Python stops at the 3.)
    assert refused == used or line.startswith("if 3")


@pytest.mark.parametrize(
    ("head", "line", "new"),
    [
        ("for i in range(200):", "print(float(f(x)))", "if i % 100 == 0: "),
        ("for i, x in enumerate(data):", "print(float(f(x)))", "if i % 100 == 0: "),
        ("for x in data:", "print(float(f(x)))", None),
        ("for name in names:", "print(name, float(f(x)))", None),
        ("for x, i in enumerate(data):", "print(float(f(x)))", "if x % 100 == 0: "),
        ("for i, x in pairs.items():", "print(float(f(x)))", None),
        ("for i in range(9):", "kept.append(float(f(x)))", "kept.append(f(x))"),
        ("for i in range(9):", "kept.append(float(l)); total += l.item()", None),
        ("for i in range(9):", "total += float(f(x)); n += 1", None),
        ("for i in range(9):", "n += 1; total += float(f(x))", None),
    ],
)
def test_the_line_without_its_read_runs_and_waits_no_more(head, line, new) -> None:
    source = Source("train.py", [head, f"    {line}"])
    lines = kept_on_device(source, source.statement(2), True)
    assert bool(lines) == (new is not None)
    assert new is None or lines[0].new.startswith(new)


@pytest.mark.parametrize(
    ("lines", "decided"),
    [
        (["while float(err) > 1e-3:", "    err = f(err)"], True),
        (["if float(x) < best:", "    best = x"], True),
        (["if x > 3:", "    break"], True),
        (["if x > 3: break"], True),
        (["assert x > 3"], True),
        (["y = 1 if float(x) > 3 else 2"], True),
        (["y = float(x) > 3 and z"], True),
        (["y = [n for n in names if x > n]"], True),
        (["match int(x):", "    case 1:", "        pass"], True),
        (["if i % 100 == 0: print(float(x))"], False),
        (["if i % 100 == 0: print(x)"], False),
        (["y = float(x) if told else 0.0"], False),
        (["y = told and float(x)"], False),
        (["print(float(x))"], False),
        (["for i in x.tolist():", "    if i: pass"], False),
    ],
)
def test_where_python_decides_by_what_is_read(lines, decided) -> None:
    assert bool(decided_at(Source("train.py", lines), 1)) == decided


@pytest.mark.parametrize(
    ("body", "decides"),
    [
        ("v = float(x); n += 1\nif v < best: best = v", True),
        ("v = x.item()\nassert v < 9", True),
        ("v: int = int(x)\nk = v + 1\nwhile k > 3: k -= 1", True),
        ("v = jax.device_get(x)\nif np.isnan(v): break", True),
        ("v = bool(x)\nif not v: break", True),
        ("v = np.mean(x)\nmatch v:\n    case 1: pass", True),
        ("self.v = float(x)\nif self.v < 3: break", True),
        ("kept.append(float(x))\nif kept[-1] < 3: break", True),
        ("log['x'] = float(x)\ndone = max(log['x'], 3) < 4\nif done: break", True),
        ("kept.append(float(x))\nif x < 3: break", True),
        ("best = min(best, v := float(x))\nprint('new' if v == best else '')", True),
        ("n = int(x)\nfor _ in range(n): pass", True),
        ("print(f'{float(x)}')\nif x < 3: break", True),
        ("v = float(x)\nif better(v): break", True),
        ("v = float(x)\nmatch i:\n    case 1 if v < 3: break", True),
        ("a, *v = x.tolist()\nif v[0]: break", True),
        ("for v in np.asarray(x):\n    if v < 3: break", True),
        ("v, n = float(x), 1\nif n: break", False),
        ("v = float(x)\ny = [v for v in names if v > 1]", False),
        ("v = float(x)\nkeep = lambda v: 1 if v else 2", False),
        ("log['x'] = float(x)\nif 'y' in log: break", False),
        ("log = {'x': float(x)}\nif log: break", False),
        ("v = float(x)\nprint(f'{v}')", False),
        ("v = float(x)\nif i % 100 == 0: print(v)", False),
        ("v = float(x)\nif v is None: break", False),
        ("kept.append(float(x))\nif kept and len(kept) < 3: break", False),
        ("kept.append(float(x.mean()))\nif x.ndim: break", False),
        ("v = float(x)\ny = step(v)\nif y.done: break", False),
        ("kept.append(float(x))\nx = f(x)\nif x < 3: break", False),
        ("v = np.asarray(x)\nif v.shape: break", False),
        ("print(f'{float(x)}')", False),
    ],
)
def test_where_python_decides_later_in_the_same_pass(body, decides) -> None:
    loop = "for i in range(9):\n    x = f(x)\n" + textwrap.indent(body, "    ")
    after = "if v < 3: raise ValueError\ndef better(v): return v > 3"
    lines = f"{loop}\n{after}\nstep = jax.jit(lambda v: v)".splitlines()
    found = decided_at(Source("train.py", lines), 3)
    assert bool(found) == decides
    # Not on the line that reads, and not behind the loop.
    assert not found or 3 < found <= len(loop.splitlines())


def test_where_python_decides_by_what_a_function_returns() -> None:
    lines = ["def loss(x):", "    return float(f(x))", "for x in data:"]
    for body, line in (("if loss(x) < 3: break", 4), ("print(loss(x))", 0)):
        assert decided_at(Source("train.py", [*lines, f"    {body}"]), 2) == line
    lines = ["def note(x):", "    global v", "    v = float(x)", "for x in data:"]
    lines += ["    note(x)", "    if v < 3: break"]
    assert decided_at(Source("train.py", lines), 3) == 6


def test_only_jax_hands_a_function_copies_of_its_arguments() -> None:
    """`nnx.jit` updates the very modules; another thing may take the name."""
    for made, rest, jitted in (
        ("jax.jit(f)", "", True),
        ("nnx.jit(f)", "", False),
        ("jit(f)", "from flax.nnx import jit", False),
        ("jax.jit(f)", "for step in steps: pass", False),
    ):
        lines = f"{rest}\nstep = {made}\nfor i in r:\n    step(cfg)".splitlines()
        source = Source("train.py", lines)
        acted = acted_on(source, source.tree.body[-1])
        assert (acted == {"cfg"}) != jitted, (made, rest, acted)


def test_an_array_that_is_read_at_two_lines(tmp_path) -> None:
    """Only the first read waits; without it the second one does."""
    script = """
    f = jax.jit(lambda x: x * 0.5)
    x, kept, total = jnp.ones(()), [], 0.0
    for i in range(8):
        x = f(x)
        kept.append(float(x))
        total += x.item()
        if i % 4 == 0:
            print(float(x))
    answer = kept
    """
    source = HEAD.replace("LIBRARY", "jax") + textwrap.dedent(script)
    path = tmp_path / "train.py"
    (fault,) = [f for f in recorded("jax", source, path).faults if f.kind == "wait"]
    second = source.splitlines().index("    total += x.item()") + 1
    assert f"line {second} reads the same array" in fault.write
    assert {second - 1, second} < {line.line for line in fault.lines}
    after = recorded("jax", obeyed(source, fault), path).faults
    assert not [f for f in after if f.kind == "wait"]
    # Where one of the two cannot be mended, no line is: the other would wait.
    shown = source.replace("total += x.item()", 'print(f"{x}")')
    path = tmp_path / "shown.py"
    (fault,) = [f for f in recorded("jax", shown, path).faults if f.kind == "wait"]
    assert not fault.lines and f"line {second} reads the same" in fault.write


def test_a_read_that_decides_has_no_seconds_that_can_go(tmp_path) -> None:
    script = """
    f = jax.jit(lambda x: x * 0.5)
    x, best = jnp.ones(()), 1e9
    for _ in range(6):
        x = f(x)
        if float(x) < best:
            best = 1.0
    while x > 1e-3:
        x = f(x)
    for _ in range(6):
        x = f(x)
        v = float(x)
        if v < best:
            best = 1.0
    answer = best
    """
    source = HEAD.replace("LIBRARY", "jax") + textwrap.dedent(script)
    faults = recorded("jax", source, tmp_path / "train.py").faults
    waits = [fault for fault in faults if fault.kind == "wait"]
    waits.sort(key=lambda fault: fault.line)
    assert [fault.write.rpartition("jax.lax.")[2] for fault in waits] == [
        "while_loop in that of the loop",
        "while_loop, in a jitted function",
        "while_loop in that of the loop",
    ]
    for fault in waits:
        assert "Python decides by its value" in fault.words
        assert not fault.lines and not fault.seconds


def test_no_line_moves_an_array_above_the_loop_that_sets_it(tmp_path) -> None:
    script = """
    f = jax.jit(lambda batch: batch.sum())
    data = [np.ones((64, 64), np.float32)] * 20
    for batch in data:
        answer = f(batch)
    """
    source = HEAD.replace("LIBRARY", "jax") + textwrap.dedent(script)
    faults = recorded("jax", source, tmp_path / "train.py").faults
    (fault,) = [fault for fault in faults if fault.kind == "pushed"]
    assert not fault.lines and "jax.device_put" in fault.write
