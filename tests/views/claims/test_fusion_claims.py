"""What `see.fusion` claims, held against counts made in other ways.

Owners: whose data a kernel depends on, and which results depend on it, by walking the
two programs from end to end. Bytes: which entries of the arguments a result depends on,
from jax's derivative.
"""

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import lax, nn
from tests.views.compiled_programs import PROGRAMS

X = np.linspace(-1.0, 1.0, 64 * 64, dtype=np.float32).reshape(64, 64)
LINE = np.linspace(-1.0, 1.0, 1000, dtype=np.float32)


def layers(x, ws):
    for w in ws:
        x = nn.relu(x @ w)
    return x


def loss(ws, x):
    return jnp.sum(layers(x, ws) ** 2)


@minijax.jit
def helper(x):
    return jnp.tanh(x) * 2.0 + 1.0


def helped(x, y):
    return helper(x) @ helper(y), helper(helper(y @ x))


def block(x, weights):
    for wq, wk, wo in weights:
        scores = nn.softmax((x @ wq) @ (x @ wk).T)
        x = x + nn.gelu(scores @ (x @ wo))
    return x


OWNED = {
    "three equal layers": (layers, (X, [X] * 3)),
    "gradient of twelve layers": (minijax.grad(loss), ([X] * 12, X)),
    "a helper called four times": (helped, (X, X)),
    "two blocks of attention": (block, (X, [(X, X, X)] * 2)),
}


def parents_of(module):
    """What each instruction reads, directly: of a fusion's parameter, its operand."""
    return {i.id: set(i.operands) for i in module.body(module.entry.id)}


def closed(edges, start):
    """All that can be reached over edges."""
    found, todo = set(), [start]
    while todo:
        for each in edges.get(todo.pop(), ()):
            if each not in found:
                found.add(each)
                todo.append(each)
    return found


def dependence(program):
    """For each kernel (arguments that it depends on, results that depend on it)."""
    module = program.module
    parents = parents_of(module)
    children = {}
    for child, reads in parents.items():
        for parent in reads:
            children.setdefault(parent, set()).add(child)
    root = module.instructions[module.entry.root]
    results = list(root.operands) if root.opcode == "tuple" else [root.id]
    found = {}
    for kernel in program.kernels:
        before = closed(parents, kernel.instruction)
        after = closed(children, kernel.instruction) | {kernel.instruction}
        arguments = {
            module.instructions[i].attributes.split(",")[0]
            for i in before
            if module.instructions[i].opcode == "parameter"
        }
        reached = {n for n, result in enumerate(results) if result in after}
        found[id(kernel)] = (arguments, reached)
    return found


@pytest.mark.parametrize("name", OWNED)
def test_kernels_of_equal_layers_keep_to_their_layer(name) -> None:
    function, args = OWNED[name]
    view = see.fusion(function, *args)
    record = view.recording
    own, plain = dependence(record.program), dependence(record.unfused)
    for group in view.groups():
        assert group.before
        arguments, reached = own[id(group.kernel)]
        needed = set()
        for kernel in group.before:
            before, after = plain[id(kernel)]
            # A constant is an array of its own only without fusion, and may be shared.
            if before:
                assert before <= arguments and after >= reached
            needed |= before
        assert needed == arguments
    assert sum(len(group.before) for group in view.groups()) == len(
        record.unfused.kernels
    )


def test_equal_layers_are_told_apart() -> None:
    view = see.fusion(layers, X, [X] * 3)
    counts = [len(group.before) for group in view.groups()]
    assert counts == [1, 2, 1, 1, 1, 1]  # the first has the constant, which they share


# ---- bytes ---------------------------------------------------------------------------

SLICED = {
    "behind a reshape": (lambda m, y: y.reshape(-1)[2:20:2] + 1.0, X[:, :2]),
    "behind a sine": (lambda m, y: m.numpy.sin(y)[:3] * 2.0, LINE),
    "behind a transpose": (lambda m, y: m.numpy.cos(y.T)[3, 1:5], X),
    "two slices": (lambda m, y: y[1:9] * 2.0 + y[20:28], LINE),
    "two slices that meet": (lambda m, y: y[1:] - y[:-1], LINE),
    "all of it": (lambda m, y: y.reshape(-1) * 2.0, X),
    "reversed": (lambda m, y: y[::-1] * 3.0, LINE),
}


@pytest.mark.parametrize("name", SLICED)
def test_bytes_are_those_of_entries_that_matter(name) -> None:
    function, x = SLICED[name]
    program = see.fusion(lambda y: function(minijax, y), x).program
    (kernel,) = program.kernels
    slopes = jax.jacobian(lambda y: function(jax, y))(np.float32(x))
    slopes = np.asarray(slopes).reshape(-1, x.size)
    assert kernel.read == 4 * np.any(slopes != 0, axis=0).sum()
    assert kernel.written == 4 * len(slopes)


UPDATED = {
    # of these 1,000 floats nothing stays where it was
    "of a product": (lambda x, y, i: lax.dynamic_update_slice(x * 2.0, y, (i,)), 8_016),
    "before a product": (lambda x, y, i: x.at[3].set(0.0) * 2.0, 8_000),
}


@pytest.mark.parametrize("name", UPDATED)
def test_an_update_of_what_is_computed_is_not_in_place(name) -> None:
    function, size = UPDATED[name]
    args = LINE, np.ones(3, np.float32), np.int32(0)
    (kernel,) = see.fusion(function, *args).program.kernels
    assert kernel.bytes == size


def test_an_update_in_a_loop_is_in_place() -> None:
    def function(x):
        return lax.fori_loop(0, 9, lambda i, x: x.at[i].set(2.0 * i), x)

    program = see.fusion(function, LINE).program
    updates = [
        kernel
        for kernel in program.kernels
        for member in kernel.members
        if program.module.instructions[member].opcode == "dynamic-update-slice"
    ]
    assert updates and all(kernel.bytes < 20 for kernel in updates)


# ---- branches and loops --------------------------------------------------------------


def test_of_branches_one_runs() -> None:
    def function(x):
        return lax.cond(x[0] > 0, jnp.sort, lambda x: x[::-1] * 2.0 + jnp.sum(x), x)

    view = see.fusion(function, LINE)
    program = view.program
    every = sum(kernel.bytes for kernel in program.kernels)
    branches = [  # both, each alone
        see.fusion(way, LINE).program.bytes
        for way in (jnp.sort, lambda x: x[::-1] * 2.0 + jnp.sum(x))
    ]
    assert min(branches) > 4_000
    assert max(branches) <= program.bytes < max(branches) + 200 < every
    assert "at most: the larger branch" in view.text()


def test_a_loop_counts_as_often_as_it_runs() -> None:
    def function(x):
        return lax.fori_loop(0, 20, lambda i, x: jnp.sort(x) + 1.0, x)

    view = see.fusion(function, LINE)
    assert "at most" not in view.text() and "unknown" not in view.text()
    rows = [row for row in view.text().splitlines() if "sort" in row]
    assert rows and all(row.endswith(" x20") for row in rows)
    assert view.program.bytes > 20 * 16_000


def test_a_loop_of_unknown_length_says_so() -> None:
    view = see.fusion(*PROGRAMS["while_loop"][:1], *PROGRAMS["while_loop"][1])
    assert "one turn of a loop: turns unknown" in view.text()
    assert " a turn" in view.text()
