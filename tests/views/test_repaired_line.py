"""`see.why` writes the user's line anew: obeyed, the function can be traced."""

import inspect
import linecache
import textwrap

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see


def early(x):
    y = jnp.sin(x)
    if y > 0:
        return y * 2.0
    return -y


def either(x):
    if x > 0:
        return jnp.exp(x)
    else:
        return x


def assigned(x):
    if x < 1:
        y = x + 1
    else:
        y = x * 2
    return y * y


def ternary(x):
    y = x * 3
    return 1.0 + (y if y > 2 else -y)


def numpys(x):
    y = x + 1
    return np.sin(y) * np.cos(x)


def cast(x):
    n = int(x * 3)
    return n * 2


REPAIRED = {
    early: (2, 4, "return jnp.where(y > 0, y * 2.0, -y)"),
    either: (1, 4, "return jnp.where(x > 0, jnp.exp(x), x)"),
    assigned: (1, 4, "y = jnp.where(x < 1, x + 1, x * 2)"),
    ternary: (2, 2, "return 1.0 + jnp.where(y > 2, y, -y)"),
    numpys: (2, 2, "return jnp.sin(y) * jnp.cos(x)"),
    cast: (1, 1, "n = (x * 3).astype(int)"),
}


@pytest.mark.parametrize("function", REPAIRED)
def test_obeyed_the_line_can_be_traced_and_means_the_same(function):
    first, last, line = REPAIRED[function]
    with pytest.raises(Exception) as caught:
        minijax.jit(function)(np.float32(0.7))
    view = see.why(caught.value)
    assert view.recording.repaired == line
    assert f"your line: {line}" in view.text()
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    lines[first : last + 1] = [f"    {line}"]
    scope = dict(globals())
    exec("\n".join(lines), scope)
    repaired = minijax.jit(scope[function.__name__])
    for x in (-1.5, 0.7, 2.5):
        wanted = function(np.float32(x))
        np.testing.assert_allclose(repaired(np.float32(x)), wanted, rtol=1e-6)


def test_there_is_no_line_where_none_means_the_same():
    def loops(x):
        total = 0.0
        for i in range(int(x)):
            total += i
        return total

    def branches(x):
        if x > 0:
            x = x + 1
            x = x * 2
        return x

    def grown(x):
        if x > 0:
            x += 1
        return x

    def sized(x):
        return jnp.zeros(x)

    for function in (loops, branches, grown, sized):
        with pytest.raises(Exception) as caught:
            minijax.jit(function)(3)
        view = see.why(caught.value)
        assert view.recording.repaired == ""
        assert "your line" not in view.text()


# ---- typical errors: the marked line is at fault, the repaired one can replace it ----

HEAD = """
import numpy as np
import minijax
import minijax.numpy as {jnp}
from minijax import grad, jit, lax, value_and_grad, vmap

kept = []

"""
# By name: the lines of a program, the culprit's line, and the repaired line with the
# number of the line that it stands for; `None` where nothing says what was meant.
MISTAKES = {
    "shapes of a product": (["y = jnp.ones((2, 4)) @ jnp.ones((3, 2))"], 0, None),
    "axis out of range": (["y = jnp.sum(jnp.ones((2, 4)), axis=2)"], 0, None),
    "if of two values": (
        [
            "def f(x):",
            "    if 0 < x < 1 and not x > 2:",
            "        return x",
            "    return -x",
            "y = jit(f)(0.5)",
        ],
        1,
        (
            "    return jnp.where(jnp.logical_and((0 < x) & (x < 1), "
            "jnp.logical_not(x > 2)), x, -x)",
            1,
            3,
        ),
    ),
    "and": (
        [
            "@jit",
            "def f(x):",
            "    return jnp.where(x > 0 and x < 1, x, 0)",
            "y = f(jnp.ones(4))",
        ],
        2,
        ("    return jnp.where((x > 0) & (x < 1), x, 0)", 2),
    ),
    "min of two": (
        ["@jit", "def f(x):", "    return min(x, 2 * x)", "y = f(jnp.float32(1))"],
        2,
        ("    return jnp.minimum(x, 2 * x)", 2),
    ),
    "float": (
        [
            "@jit",
            "def f(x):",
            "    s = float(x.sum())",
            "    return x / s",
            "y = f(jnp.ones(3))",
        ],
        2,
        ("    s = x.sum().astype(float)", 2),
    ),
    "range of an argument": (
        [
            "@jit",
            "def f(x, n):",
            "    for i in range(n):",
            "        x = x + i",
            "    return x",
            "y = f(1.0, 3)",
        ],
        2,
        ("@jit(static_argnames='n')", 0),
    ),
    "shape of an argument": (
        ["def f(n):", "    return jnp.zeros(n)", "g = jit(f)", "y = g(3)"],
        1,
        ("g = jit(f, static_argnames='n')", 2),
    ),
    "arange of an argument": (
        ["def f(n):", "    return jnp.arange(n)", "y = jit(f)(3)"],
        1,
        ("y = jit(f, static_argnames='n')(3)", 2),
    ),
    "slice to an argument": (
        ["@minijax.jit", "def f(x, n):", "    return x[:n]", "y = f(jnp.ones(3), 2)"],
        2,
        ("@minijax.jit(static_argnames='n')", 0),
    ),
    "branch on a flag": (
        [
            "@jit",
            "def f(x, train):",
            "    if train:",
            "        x = x * 2",
            "        x = x + 1",
            "    return x",
            "y = f(1.0, True)",
        ],
        2,
        ("@jit(static_argnames='train')", 0),
    ),
    "a string": (
        [
            "def f(x, mode):",
            "    return x if mode == 'same' else -x",
            "y = jit(f)(1.0, 'same')",
        ],
        2,
        ("y = jit(f, static_argnames='mode')(1.0, 'same')", 2),
    ),
    "a list as static": (
        ["g = jit(lambda x, sizes: x, static_argnums=1)", "y = g(1.0, [2, 3])"],
        1,
        ("y = g(1.0, (2, 3))", 1),
    ),
    "a list of arrays": (
        ["x = jnp.ones(3)", "y = jnp.sum([x, x])"],
        1,
        ("y = jnp.sum(jnp.asarray([x, x]))", 1),
    ),
    "gradient by a whole number": (
        ["y = grad(lambda x: x**2)(3)"],
        0,
        ("y = grad(lambda x: x ** 2)(3.0)", 0),
    ),
    "gradient of an array": (
        ["def f(x):", "    return x * 2", "y = grad(f)(jnp.ones(3))"],
        1,
        ("    return (x * 2).sum()", 1),
    ),
    "NumPy's function": (
        ["@jit", "def f(x):", "    return np.sin(x)", "y = f(1.0)"],
        2,
        ("    return jnp.sin(x)", 2),
    ),
    "item assignment": (
        ["@jit", "def f(x):", "    x[0] = 1.0", "    return x", "y = f(jnp.ones(3))"],
        2,
        ("    x = x.at[0].set(1.0)", 2),
    ),
    "item addition": (
        ["d = {'w': jnp.ones(3)}", "d['w'][:2] += 1.0", "y = d"],
        1,
        ("d['w'] = d['w'].at[:2].add(1.0)", 1),
    ),
    "an old tracer": (
        [
            "def f(x):",
            "    kept.append(x * 2)",
            "    return x",
            "jit(f)(1.0)",
            "y = kept[0] + 1",
        ],
        1,
        None,
    ),
    "a carry of another type": (
        [
            "def step(c, _):",
            "    return (c * 1.5).astype(int), c",
            "y = lax.scan(step, jnp.ones(2), None, length=3)",
        ],
        1,
        ("    return ((c * 1.5).astype(int).astype('float32'), c)", 1),
    ),
    "a loop of another type": (
        [
            "def step(i, c):",
            "    return c.astype(int)",
            "y = lax.fori_loop(0, 3, step, jnp.ones(2))",
        ],
        1,
        ("    return c.astype(int).astype('float32')", 1),
    ),
    "a carry that would be cut": (
        [
            "def step(c, _):",
            "    return c * 1.5, c",
            "y = lax.scan(step, jnp.int32(1), None, length=3)",
        ],
        1,
        None,
    ),
    "gradient of a lambda's array": (
        ["def f(x):", "    return grad(lambda v: v * 2)(x)", "y = f(jnp.ones(3))"],
        1,
        ("    return grad(lambda v: (v * 2).sum())(x)", 1),
    ),
    "a carry of another tree": (
        [
            "def step(c, _):",
            "    return (c, c), None",
            "y = lax.scan(step, jnp.ones(2), None, length=3)",
        ],
        1,
        None,
    ),
    "branches of other types": (
        [
            "def one(x):",
            "    return x",
            "def two(x):",
            "    return x.sum()",
            "y = lax.cond(True, one, two, jnp.ones(2))",
        ],
        3,
        None,
    ),
    "branches of other trees": (
        ["y = lax.cond(True, lambda v: (v, v), lambda v: v, 1.0)"],
        0,
        None,
    ),
    "in_axes of another size": (
        ["y = vmap(jnp.add, in_axes=(0, 0))(jnp.ones(2), jnp.ones(3))"],
        0,
        None,
    ),
    "in_axes out of range": (["y = vmap(jnp.sin, in_axes=1)(jnp.ones(2))"], 0, None),
    "too many in_axes": (["y = vmap(jnp.sin, in_axes=(0, 1))(jnp.ones(2))"], 0, None),
    "formatting": (
        ["@jit", "def f(x):", "    print(f'{x:.2f}')", "    return x", "y = f(1.0)"],
        2,
        None,
    ),
}
# Lines that were told and did not run, or did not mean the same.
JIT = ["@jit", "def f(x, y=2.0, n=None):"]
CALL = "y = f(jnp.float32(1))"


def jitted(*body, call=CALL, culprit=2):
    """A program with one jitted function of which nothing is told."""
    return [*JIT, *(f"    {line}" for line in body), call], culprit, None


MISTAKES |= {
    "a slice and an index": (
        ["x = jnp.zeros((3, 3))", "x[1:, 0] = 2.0", "y = x"],
        1,
        ("x = x.at[1:, 0].set(2.0)", 1),
    ),
    "an axis of jnp.max": (
        [*JIT, "    return 1 if jnp.max(x, 0) > 1 else 3", "y = f(jnp.ones(3))"],
        2,
        ("    return jnp.where(jnp.max(x, 0) > 1, 1, 3)", 2),
    ),
    "or with a default": jitted("y = x or 1.5", "return y"),
    "a part that guards": jitted("return x if n is None and x > 0 else 0.0"),
    "a short circuit": jitted("return x if x > 0 and (n is None or x > n) else 0.0"),
    "and of values": jitted("return x * (x and x * 2 or 1.0)"),
    "the second is asked next": jitted(
        "return (x if x > 0 else 0) + (1 if x > 2 else y)"
    ),
    "an integer for a shape": (
        ["@jit", "def f(n):", "    return jnp.zeros(int(n))", "y = f(3)"],
        2,
        ("@jit(static_argnames='n')", 0),
    ),
    "an integer for reshape": (
        ["@jit", "def f(x, n):", "    return x.reshape(int(n), -1)"]
        + ["y = f(jnp.ones(4), 2)"],
        2,
        ("@jit(static_argnames='n')", 0),
    ),
    "an integer for an index of a list": (
        ["@jit", "def f(x, n):", "    return [x, 2 * x][int(n)]", "y = f(1.0, 1)"],
        2,
        ("@jit(static_argnames='n')", 0),
    ),
    "an integer by a name": (
        ["@jit", "def f(n):", "    m = int(n)", "    k = m + 1"]
        + ["    return jnp.zeros(k)", "y = f(3)"],
        2,
        ("@jit(static_argnames='n')", 0),
    ),
    "one cast of two": (
        [*JIT, "    return float(x) * int('3')", CALL],
        2,
        ("    return x.astype(float) * int('3')", 2),
    ),
    "two statements": jitted("a = np.ones(2); return np.dot(a, x)"),  # fmt: skip
    "branches that are tuples": jitted("return (x, y) if x > y else (y, x)"),
    "branches that are texts": jitted("return 'a' if x > 0 else 'b'"),
    "a branch that is None": jitted("return None if x > 0 else x"),
    "a branch that is a dict": jitted(
        "if x > y:", "    return {'w': x}", "return {'w': y}"
    ),
    "several targets": jitted(
        "if x > 0:", "    a, b = x, 1.0", "else:", "    a, b = 1.0, x", "return a + b"
    ),
    "a call of itself": jitted("return x if x < 2 else x * f(x - 1)"),
    "a membership": jitted("return x if x in (1, 2) else -x"),
    "an array of arrays": (
        ["x = jnp.ones((3, 3))", "x[0][1] = 5.0", "y = x"],
        1,
        None,
    ),
    "an array of the module": (
        ["table = jnp.zeros(3)", "def f(x):", "    table[0] = x", "    return table"]
        + ["y = f(2.0)"],
        2,
        None,
    ),
    "a statement of two lines": (
        ["def f(x, n):", "    return jnp.zeros(n) + x", "y = jit(f)(", "    1.0, 3)"],
        1,
        None,
    ),
    "two sizes": (
        ["@jit", "def f(n, m):", "    return jnp.zeros((n, m))", "y = f(3, 2)"],
        2,
        None,
    ),
    "a size that is an array": (
        ["@jit", "def f(n):", "    return jnp.zeros(n)", "y = f(jnp.int32(3))"],
        2,
        None,
    ),
    "a static array": (
        ["g = jit(lambda s, x: x, static_argnums=0)", "y = g(np.array([4]), 1.0)"],
        1,
        None,
    ),
    "gradient of a list": (
        ["def f(x):", "    return [x * 2]", "y = grad(f)(jnp.ones(3))"],
        1,
        None,
    ),
    "gradient of a dict": (
        ["def f(x):", "    return {'l': x.sum()}", "y = grad(f)(jnp.ones(3))"],
        1,
        None,
    ),
    "one of two returns": (
        ["def f(x, flag):", "    if flag:", "        return x * 2", "    return x * 3"]
        + ["y = grad(f)(jnp.ones(3), True)"],
        3,
        None,
    ),
    "a cast in a helper, for a size": (
        ["def size(n):", "    return int(n)", "@jit", "def f(x, n):"]
        + ["    return jnp.zeros(size(n)) + x", "y = f(1.0, 3)"],
        1,
        ("@jit(static_argnames='n')", 2),
    ),
    "a cast in a helper, for a size of an array": (
        ["def size(n):", "    return int(n)", "@jit", "def f(n):"]
        + ["    return jnp.zeros(size(n))", "y = f(jnp.array(3))"],
        1,
        None,
    ),
    "a cast in a helper of a helper": (
        ["def half(v):", "    return float(v) / 2", "def more(v):"]
        + ["    h = half(v)", "    return h + 1", "@jit", "def f(x):"]
        + ["    return x * more(x)", "y = f(jnp.float32(1))"],
        1,
        ("    return v.astype(float) / 2", 1),
    ),
    "a cast in a helper that two lines call": (
        ["def half(v):", "    return float(v) / 2", "@jit", "def f(x):"]
        + ["    y = x * half(x)", "    return jnp.full((2,), y) * range(4)[half(x)]"]
        + ["y = f(jnp.float32(1))"],
        1,
        None,
    ),
    "a flag that is an array": (
        ["@jit", "def f(x, on):", "    if on:", "        x = x * 2"]
        + ["        x = x + 1", "    return x", "y = f(1.0, jnp.array(True))"],
        2,
        None,
    ),
    "a flag of NumPy's": (
        ["@jit", "def f(x, on):", "    if on:", "        x = x * 2"]
        + ["        x = x + 1", "    return x", "y = f(1.0, on=np.bool_(True))"],
        2,
        ("@jit(static_argnames='on')", 0),
    ),
    "a size that is a weak array": (
        ["@jit", "def f(n):", "    return jnp.zeros(n)", "y = f(jnp.asarray(3))"],
        2,
        None,
    ),
    "a gradient with more values": (
        ["def f(x):", "    return x * 2, x"]
        + ["y = value_and_grad(f, has_aux=True)(jnp.ones(3))"],
        1,
        ("    return ((x * 2).sum(), x)", 1),
    ),
    "a gradient with more values by a name": (
        ["def f(x):", "    out = (x * 2, x)", "    return out"]
        + ["y = grad(f, has_aux=True)(jnp.ones(3))"],
        2,
        None,
    ),
    "a carry by a name": (
        ["def step(c, _):", "    out = ((c * 1.5).astype(int), c)", "    return out"]
        + ["y = lax.scan(step, jnp.ones(2), None, length=3)"],
        2,
        None,
    ),
    "a loop's pair by a name, in a fori_loop": (
        ["def step(c):", "    out = (c[0], c[1].astype(int))", "    return out"]
        + ["start = jnp.ones(2), jnp.ones(2)"]
        + ["def outer(i, x):"]
        + ["    return lax.while_loop(lambda c: c[0][0] < 3, step, x)"]
        + ["y = lax.fori_loop(0, 3, outer, start)"],
        2,
        None,
    ),
    "a loop of another type, in a scan": (
        ["def step(i, c):", "    return c.astype(int)"]
        + ["def outer(c, _):", "    return lax.fori_loop(0, 3, step, c), None"]
        + ["y = lax.scan(outer, jnp.ones(2), None, length=3)"],
        1,
        ("    return c.astype(int).astype('float32')", 1),
    ),
    "a loop's pair by a name": (
        ["def step(c):", "    out = (c[0], c[1].astype(int))", "    return out"]
        + ["start = jnp.ones(2), jnp.ones(2)"]
        + ["y = lax.while_loop(lambda c: c[0][0] < 3, step, start)"],
        2,
        None,
    ),
    "only NumPy's name": jitted("return np.ascontiguousarray(x)"),
    "a function deeper in NumPy": jitted("return np.linalg.norm(x)"),
}


def run_file(path, lines, jnp):
    text = HEAD.format(jnp=jnp) + "\n".join(lines) + "\n"
    if jnp != "jnp":
        text = text.replace("jnp.", f"{jnp}.")
    path.write_text(text)
    linecache.checkcache(str(path))
    scope = {"__name__": "__main__"}
    exec(compile(text, str(path), "exec"), scope)
    return scope["y"]


@pytest.mark.parametrize("jnp", ["jnp", "jp"])
@pytest.mark.parametrize("name", MISTAKES)
def test_typical_errors(name, jnp, tmp_path):
    """The line at fault is marked, and the program runs with the repaired line."""
    lines, culprit, repaired = MISTAKES[name]
    above = HEAD.count("\n")
    with pytest.raises(Exception) as caught:
        run_file(tmp_path / "program.py", lines, jnp)
    view = see.why(caught.value)
    record = view.recording
    assert record.moments[record.telling].span.line == above + culprit + 1
    assert f", line {above + culprit + 1}" in record.headline
    if repaired is None:
        assert record.repaired == ""
        assert record.instead  # what to write is said, where no line can be
        return
    line, first, *last = repaired
    wanted = line.strip().replace("jnp.", f"{jnp}.")
    assert record.repaired == wanted
    told = (
        f"your line {above + first + 1}: " if first < culprit or name in LATER else ""
    )
    assert f"{told or 'your line: '}{wanted}" in view.text()
    lines = list(lines)
    lines[first : (last or [first])[0] + 1] = [line]
    minijax.clear_caches()
    run_file(tmp_path / "repaired.py", lines, jnp)


# The line to change stands after the marked one.
LATER = (
    "shape of an argument",
    "arange of an argument",
    "a cast in a helper, for a size",
)
