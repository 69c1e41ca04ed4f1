"""`see.why` writes the user's line anew: obeyed, the function can be traced."""

import inspect
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
