"""What the pieces must do that fill tables, go through programs and run loops.

As in `piece_checks`: each check runs in a copy of `tiny` with the learner's piece in
it, after the programs of its chapter, and raises AssertionError with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax_lab.answers import alike, refuses
from minijax_lab.piece_checks import ROW, names
from minijax_lab.tiny_programs import tiny


def arrays_stay_as_they_are() -> None:
    At = tiny.at.At
    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    before = table.copy()
    # An index, values, and the array after `set` and after `add`.
    for index, values, after_set, after_add in (
        (0, 7.0, [[7, 7, 7], [3, 4, 5]], [[7, 8, 9], [3, 4, 5]]),
        ((1, slice(1, 3)), 2.0, [[0, 1, 2], [3, 2, 2]], [[0, 1, 2], [3, 6, 7]]),
        (table > 3.0, -1.0, [[0, 1, 2], [3, -1, -1]], [[0, 1, 2], [3, 3, 4]]),
        (np.array([1, 1]), 3.0, [[0, 1, 2], [3, 3, 3]], [[0, 1, 2], [9, 10, 11]]),
    ):
        for name, right in (("set", after_set), ("add", after_add)):
            found = getattr(At(table)[index], name)(values)
            alike(f"At(x)[{index!r}].{name}({values!r})", found, right)
            alike(f"x itself, after .{name}", table, before)
    found = At(table)[0].set(1.5).dtype
    assert found == table.dtype, f"expected the dtype {table.dtype}, got {found}"


def programs_have_their_trees() -> None:
    program = tiny.trace.trace(
        lambda p, x: {"s": p["b"] - x}, {"a": ROW, "b": ROW}, 1.0
    )
    types = [str(tracer.type) for tracer in program.inputs]
    right = ["f32[3]", "f32[3]", "f32[]"]
    assert types == right, f"the inputs are {types}; expected {right}"
    found = program({"a": ROW, "b": 2 * ROW}, 1.0)
    assert isinstance(found, dict), f"a function of a dict gave {found!r:.60}"
    alike("p['b'] - x", found["s"], 2 * ROW - 1.0)
    constant = tiny.trace.trace(lambda x: (3.0, x), ROW)(ROW)
    assert constant[0] == 3.0, (
        f"a result that is a number: expected 3.0, got {constant}"
    )


def a_program_is_closed_after_an_exception() -> None:

    def raises(x: Any) -> Any:
        raise KeyError("in the learner's function")

    assert refuses(KeyError, tiny.trace.trace, raises, ROW), (
        "an exception of the traced function does not come through"
    )
    assert not tiny.trace.OPEN, (
        "the traced function raised, and its program is still open"
    )


def the_function_runs_on_tracers_once() -> None:
    seen: list[Any] = []

    def noted(x: Any) -> Any:
        seen.append(x)
        return x * 2.0

    tiny.trace.trace(noted, ROW)
    assert len(seen) == 1, f"tracing ran the function {len(seen)} times, expected once"
    assert isinstance(seen[0], tiny.trace.Tracer), "the function ran on numbers"


def what_is_outside_is_asked_for() -> None:
    asked: list[Any] = []

    def outer(y: Any) -> Any:
        inner = tiny.trace.trace(lambda x: (x * y + 2.0, y, ROW), np.float32(1.0))

        def outside(operand: Any) -> Any:
            asked.append(operand)
            return 10.0

        kept.extend(
            tiny.trace.evaluate(inner, tiny.trace.MEANING, [3.0], outside=outside)
        )
        return y

    kept: list[Any] = []
    try:
        tiny.trace.trace(outer, np.float32(1.0))
    except (TypeError, KeyError) as error:
        kept = [error]
    assert kept == [40.0, 10.0, 10.0], (
        "with 10 for all that is outside of the program: expected [40.0, 10.0, 10.0] "
        f"for (x * y + 2, y, an array) at x = 3, got {kept}"
    )
    assert len(asked) == 4, f"`outside` was asked {len(asked)} times, expected 4"


def the_table_says_what_is_done() -> None:
    program = tiny.trace.trace(lambda x: (x * x, -x), ROW)
    table = {"mul": "{}{}".format, "neg": "-{}".format}
    found = tiny.trace.evaluate(program, table, ["x"])
    assert found == ["xx", "-x"], (
        "with a table that writes text: expected ['xx', '-x'] for the program of x * x "
        f"and -x, got {found}"
    )


def equations_with_several_results() -> None:
    tiny.trace.MEANING["halves"] = lambda x, at: [x[:at], x[at:]]
    tiny.trace.SHAPES["halves"] = lambda x, at: [
        tiny.trace.Type((at,), "f32"),
        tiny.trace.Type((x.shape[0] - at,), "f32"),
    ]
    program = tiny.trace.trace(lambda x: tuple(tiny.trace.bind("halves", x, at=1)), ROW)
    found = tiny.trace.evaluate(program, tiny.trace.MEANING, [ROW])
    assert len(found) == 2, f"two results, and {len(found)} came"
    alike("the second result of an equation", found[1], ROW[1:])


def calls_of_a_cache() -> None:
    ran: list[Any] = []

    def function(times: int, p: Any, word: str, x: Any) -> Any:
        ran.append((times, word))
        return {word: p["a"] * float(times) + x}

    jitted = tiny.cache.Jitted(function, static=(0, 2))
    for number, (times, word) in enumerate([(2, "a"), (2, "a"), (3, "a"), (2, "b")]):
        found = jitted(times, {"a": ROW + number}, word, 1.0)
        assert list(found) == [word], (
            f"the result is {found!r:.60}, no dict of {word!r}"
        )
        alike(f"call {number}", found[word], (ROW + number) * times + 1.0)
    assert ran == [(2, "a"), (3, "a"), (2, "b")], (
        f"the function ran for {ran}; expected once for each new key"
    )
    counts = (jitted.hits, jitted.misses)
    assert counts == (1, 3), f"expected 1 hit and 3 misses, got {counts}"
    assert len(jitted.programs) == 3, f"{len(jitted.programs)} programs, expected 3"


def a_failed_trace_is_not_kept() -> None:
    jitted = tiny.cache.Jitted(lambda x: x * 2.0 if x > 1.0 else x)
    for _ in range(2):
        assert refuses(TypeError, jitted, np.float32(1.0)), (
            "a function that cannot be traced: expected its TypeError in each call"
        )
    assert not jitted.programs, "a trace that failed left a program behind"


def places_of_leaves() -> None:
    for value in ([5], {"b": (1, None, [2]), "a": {"z": 3}}, 7, {"k": {}, "j": [[4]]}):
        leaves, _ = tiny.tree.flatten(value)
        found = list(tiny.tree.paths(value))
        assert len(found) == len(leaves), (
            f"{value} has {len(leaves)} leaves, and {len(found)} paths came: {found}"
        )
        for path, leaf in zip(found, leaves):
            try:
                there = eval(f"value{path}", {"value": value})
            except Exception:
                raise AssertionError(
                    f"{path!r} is no path in {value}; expected that of {leaf}"
                ) from None
            assert there == leaf, (
                f"{path!r} leads to {there} in {value}; expected the path of {leaf}"
            )

    class Two:
        def __init__(self, one: Any, other: Any) -> None:
            self.one, self.other = one, other

    tiny.tree.register(Two, lambda t: ([t.one, t.other], None), lambda _, c: Two(*c))
    found = list(tiny.tree.paths({"t": Two([1], 2)}))
    right = ["['t'][0][0]", "['t'][1]"]
    assert found == right, f"a registered class: expected {right}, got {found}"


def trees_of_one_structure() -> None:
    value = {"b": [1, (2, None)], "a": 3}
    found = tiny.tree.map_tree(lambda x: -x, value)
    right = {"b": [-1, (-2, None)], "a": -3}
    assert found == right, f"minus of each leaf: expected {right}, got {found}"
    found = tiny.tree.map_tree(
        lambda x, y, z: (x, y, z)[2] + x - y, value, value, value
    )
    assert found == value, f"x - y + z of one tree: expected {value}, got {found}"
    for other in ({"b": [1, 2], "a": 3}, [3, 1, 2], {"b": [1, (2, None)], "c": 3}):
        assert refuses(ValueError, tiny.tree.map_tree, lambda x, y: x, value, other), (
            f"{value} and {other} are of two structures: expected a ValueError"
        )


def twenty_rounds() -> None:
    key = np.array([0x13198A2E, 0x03707344], np.uint32)
    words = np.array([0x243F6A88, 7], np.uint32), np.array([0x85A308D3, 9], np.uint32)
    found = tiny.threefry.threefry(key, *words)
    kept = words[0][0], words[1][0]
    assert kept == (0x243F6A88, 0x85A308D3), "the counters themselves were changed"
    # The known answer of Random123, the paper's own program.
    right = (0xC4923A9C, 0x483DF7A0)
    first = tuple(int(word[0]) for word in found)
    assert first == right, f"expected the words {right} for the first, got {first}"
    assert all(word.dtype == np.uint32 for word in found), (
        f"expected words of 32 bits, got {[str(word.dtype) for word in found]}"
    )


ONE, TWO = np.array([0.5, 1.5, 2.0]), np.array([2.0, 0.7, 1.3])
# How many operands each row of chapter 06 has, and its parameters.
ROWS: list[tuple[str, int, dict[str, Any]]] = [
    *((name, 2, {}) for name in ("add", "add_any", "sub", "mul", "div", "pow")),
    *((name, 1, {}) for name in ("neg", "log", "exp", "sin", "cos", "tanh", "sqrt")),
    *(("integer_pow", 1, {"y": power}) for power in (1, 2, 3, -2)),
]


def every_row_is_a_derivative() -> None:
    for primitive, count, params in ROWS:
        for moved in range(count):
            row_is_derivative(primitive, moved, [ONE, TWO][:count], params)
    matrix = np.arange(6.0).reshape(2, 3) - 2.5
    numbers: dict[str, Any] = {"dimension_numbers": (([1], [1]), ([], []))}
    for moved in range(2):
        row_is_derivative("dot_general", moved, [matrix, matrix[::-1] * 0.3], numbers)
        for primitive in ("add", "sub", "mul", "div"):
            row_is_derivative(primitive, moved, [ONE, np.float64(0.7)], {})
            row_is_derivative(primitive, moved, [np.float64(0.7), ONE], {})


def row_is_derivative(
    primitive: str, moved: int, operands: list[Any], params: dict[str, Any]
) -> None:
    """Compares a row of TANGENTS with the difference of two results."""
    bind = tiny.trace.bind
    assert primitive in tiny.tangents.TANGENTS, f"there is no row for {primitive}"
    direction = np.cos(np.arange(operands[moved].size)).reshape(operands[moved].shape)

    def at(step: float) -> Any:
        given = list(operands)
        given[moved] = given[moved] + step * direction
        return bind(primitive, *given, **params)

    right = (at(1e-6) - at(-1e-6)) / 2e-6
    duals = [tiny.tangents.Dual(x, None) for x in operands]
    duals[moved] = tiny.tangents.Dual(operands[moved], direction)
    found = tiny.tangents.TANGENTS[primitive](*duals, **params)
    which = (
        "" if len(operands) == 1 else f" by its {('first', 'second')[moved]} operand"
    )
    assert found.tangent is not None, (
        f"{primitive} changes{which}, and its row gives no tangent"
    )
    more = f" with {params}" if params else ""
    alike(f"the change of {primitive}{more}{which}", found.tangent, right)


def residuals_are_all_there() -> None:
    seen: list[Any] = []

    def outer(y: Any) -> Any:
        inner = tiny.trace.trace(lambda x: (x * y + ROW * x - 2.0 * x, y, TWO), ROW)
        seen.append((inner, y))
        return y

    tiny.trace.trace(outer, ROW)
    inner, y = seen[0]
    found = list(tiny.linearize.outside(inner))
    told = f"of the program\n{inner}\nit returns {found}"
    for what, thing in (("y, of an outer program", y), ("ROW", ROW), ("TWO", TWO)):
        count = [one is thing for one in found].count(True)
        assert count == 1, f"{what} is outside, and comes {count} times; {told}"
    assert len(found) == 3, f"expected 3 things from outside, got {len(found)}; {told}"


def every_linear_row() -> None:
    for primitive, count in (("add", 2), ("add_any", 2), ("sub", 2), ("mul", 2)):
        for place in range(count):
            row_is_transposed(primitive, place, [ONE, TWO])
            row_is_transposed(primitive, place, [ONE, np.float64(0.7)])
            row_is_transposed(primitive, place, [np.float64(0.7), ONE])
    row_is_transposed("div", 0, [ONE, TWO])
    row_is_transposed("neg", 0, [ONE])
    for place in (1, 2):
        row_is_transposed("select_n", place, [ONE > 1.0, ONE, TWO])


def row_is_transposed(primitive: str, place: int, operands: list[Any]) -> None:
    """Compares a row of TRANSPOSES with the operation: both give one product."""
    assert primitive in tiny.transposes.TRANSPOSES, f"there is no row for {primitive}"
    size = operands[place].size

    def result(part: Any) -> Any:
        # The others are zero where they would be added to the linear operand.
        keep = ("mul", "div")
        others = [x if primitive in keep else 0 * x for x in operands]
        if primitive == "select_n":
            others[0] = operands[0]
        others[place] = part
        return tiny.trace.bind(primitive, *others)

    given = list(operands)
    columns = np.eye(size).reshape(size, *operands[place].shape)
    c = np.cos(np.arange(3.0))
    right = np.array([np.sum(c * result(one)) for one in columns])
    given[place] = tiny.transposes.Unknown(tiny.trace.type_of(operands[place]))
    parts = tiny.transposes.TRANSPOSES[primitive]([c], *given)
    which = ("first", "second", "third")[place]
    assert parts[place : place + 1] and parts[place] is not None, (
        f"the {which} operand of {primitive} gets no cotangent"
    )
    right = right.reshape(operands[place].shape)
    alike(f"the cotangent of the {which} operand of {primitive}", parts[place], right)


def products_of_many() -> None:
    rng = np.random.default_rng(0)
    for x_shape, y_shape, numbers in (
        ((2, 3), (3, 4), (([1], [0]), ([], []))),
        ((3,), (4, 3), (([0], [1]), ([], []))),
        ((5, 2, 3), (3, 5), (([2], [0]), ([0], [1]))),
    ):
        places = [
            (i, j)
            for i in (None, *range(len(x_shape) + 1))
            for j in (None, *range(len(y_shape) + 1))
        ]
        for i, j in places[1:]:
            arrays = [
                rng.normal(size=s if axis is None else (*s[:axis], 7, *s[axis:]))
                for s, axis in ((x_shape, i), (y_shape, j))
            ]
            given = map(tiny.batching.Batched, arrays, (i, j))
            found = tiny.batching.dot_of_many(*given, dimension_numbers=numbers)
            told = (
                f"x of shape {arrays[0].shape} with examples on axis {i}, y of shape "
                f"{arrays[1].shape} on axis {j}, numbers {numbers}"
            )
            assert found.axis is not None, f"{told}: the result has no axis of examples"
            right = [
                tiny.trace.MEANING["dot_general"](
                    *(
                        x if axis is None else x.take(n, axis)
                        for x, axis in zip(arrays, (i, j))
                    ),
                    dimension_numbers=numbers,
                )
                for n in range(7)
            ]
            alike(told, np.moveaxis(found.value, found.axis, 0), np.stack(right))


def one_product_for_all() -> None:
    xs = np.ones((4, 3), np.float32)
    program = tiny.trace.trace(tiny.batching.vmap(tiny.operations.dot, (0, 0)), xs, xs)
    found = names(program).count("dot_general")
    assert found == 1, f"4 examples, and {found} products; expected 1:\n{program}"


def branches_fit() -> None:

    def of(yes: Any, no: Any) -> Any:
        return lambda x: tiny.loops.cond(x > 0.0, yes, no, x)

    number = np.float32(1.0)
    for what, yes, no in (
        ("another shape", lambda x: x, lambda x: x * ROW),
        ("another type", lambda x: x, lambda x: x > 1.0),
        ("another tree", lambda x: (x,), lambda x: x),
        ("one result more", lambda x: (x, x), lambda x: (x,)),
    ):
        assert refuses(TypeError, tiny.trace.trace, of(yes, no), number), (
            f"one branch gives {what}: expected a TypeError"
        )


def branches_see_what_comes_in() -> None:
    outside = tiny.linearize.tracers_outside
    ran: list[str] = []

    def function(x: Any, y: Any, z: Any) -> Any:
        def yes(p: Any) -> Any:
            ran.append("yes")
            return {"r": p["a"] * y + y}

        def no(p: Any) -> Any:
            ran.append("no")
            return {"r": (p["a"] - z) * y}

        return tiny.loops.cond(x > 0.0, yes, no, {"a": x})

    program = tiny.trace.trace(function, *np.ones(3, np.float32))
    assert sorted(ran) == ["no", "yes"], f"expected each branch to run once, got {ran}"
    conds = [e for e in program.equations if e.primitive == "cond"]
    assert len(conds) == 1, f"expected one cond, got {names(program)}"
    (equation,) = conds
    for body in equation.params["branches"]:
        assert not outside(body), f"a branch uses what does not come in:\n{program}"
        count = len(body.inputs)
        assert count == len(equation.operands) - 1 == 3, (
            f"beside the condition x, y and z come in, each once: expected 3 operands, "
            f"got {len(equation.operands) - 1}, and {count} inputs of a branch"
        )
    for x in (2.0, -2.0):
        right = x * 3.0 + 3.0 if x > 0 else (x - 5.0) * 3.0
        found = program(x, 3.0, 5.0)
        assert isinstance(found, dict), f"the branches give a dict, and cond {found!r}"
        alike(f"both branches use y = 3, one z = 5, at x = {x}", found["r"], right)


def loops_are_one_equation() -> None:
    outside = tiny.linearize.tracers_outside

    def function(y: Any, rows: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            now = {"a": carry["a"] * y + row["x"]}
            return now, (now["a"], row["x"])

        return tiny.loops.scan(step, {"a": np.float32(1.0)}, {"x": rows})

    for length in (3, 9):
        rows = np.arange(length, dtype=np.float32)
        program = tiny.trace.trace(function, np.float32(2.0), rows)
        assert names(program) == ["scan"], (
            f"a loop of {length} rounds: expected ['scan'], got {names(program)}"
        )
        (equation,) = program.equations
        body = equation.params["body"]
        assert not outside(body), f"the step uses what does not come in:\n{program}"
        row = body.inputs[-1].shape
        assert row == (), f"a step gets one row, of shape (), and here it is {row}"
        last, (all_of_them, same) = program(2.0, rows)
        right = [1.0]
        for x in rows.tolist():
            right.append(right[-1] * 2.0 + x)
        alike("the last carry", last["a"], right[-1])
        alike("the rows of carries", all_of_them, right[1:])
        alike("the rows that came in", same, rows)


def loops_backwards_and_by_length() -> None:
    rows = np.arange(4, dtype=np.float32)

    def step(carry: Any, row: Any) -> Any:
        return carry * 2.0 + row, carry

    last, found = tiny.loops.scan(step, np.float32(0.0), rows, reverse=True)
    alike("the last carry with reverse=True", last, ((3 * 2 + 2) * 2 + 1) * 2)
    alike("the rows with reverse=True, in their places", found, [17, 8, 3, 0])
    last, none = tiny.loops.scan(
        lambda c, _: (c * 2.0, None), np.float32(1.0), None, length=5
    )
    alike("five rounds without rows: length=5", last, 32.0)
    assert none is None, f"a step that gives no row: expected None, got {none!r:.60}"


def carries_keep_their_type() -> None:
    for what, step in (
        ("a number becomes a row", lambda c, x: (c * ROW, None)),
        ("a number becomes a truth", lambda c, x: (c > x, None)),
    ):
        assert refuses(TypeError, tiny.loops.scan, step, np.float32(1.0), ROW), (
            f"{what} in a carry: expected a TypeError"
        )


def the_derivative_is_two_loops() -> None:
    """The second is linear, and knows which of its rows are residuals."""

    def loop(x: Any, rows: Any) -> Any:
        step = lambda c, row: (tiny.operations.sin(c * row), c + row)  # noqa: E731
        return tiny.loops.scan(step, x, rows, reverse=True)

    one = np.float32(1.0)
    both = tiny.trace.trace(
        lambda x, t: tiny.tangents.jvp(lambda x: loop(x, ROW), (x,), (t,)), one, one
    )
    found = [e for e in both.equations if e.primitive == "scan"]
    assert len(found) == 2 and len(names(both)) - len(found) <= 2, (
        f"the change of one scan should be two:\n{both}"
    )
    first, second = (names(e.params["body"]) for e in found)
    assert first.count("sin") == 1 and "sin" not in second, (
        "the first loop computes the sine, and the second is linear in the tangents: "
        f"it only multiplies and adds:\n{both}"
    )
    kept = found[1].params["known"]
    outs = len(found[0].results) - 2
    assert kept == outs and kept > 0, (
        f"the first loop keeps {outs} arrays of residuals, and the second one says "
        f"known={kept}"
    )
    value, moved = both(np.float32(0.3), np.float32(1.0))
    near = [loop(np.float32(x), ROW.astype(float))[0] for x in (0.301, 0.299)]
    alike("how the last carry changes", moved[0], (near[0] - near[1]) / 0.002, 1e-3)
    alike("the rows", value[1], loop(np.float32(0.3), ROW)[1])


def loops_of_many() -> None:
    carries = np.array([1.0, -2.0], np.float32)
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)

    def loop(c: Any, xs: Any, y: Any) -> Any:
        last, found = tiny.loops.scan(lambda c, x: (c * y + x, c - x), c, xs)
        return tiny.loops.scan(lambda c, x: (c + x * y, c), last, found, reverse=True)

    for what, axes, given in (
        ("carries", (0, None, None), (carries, rows[0], np.float32(3.0))),
        ("rows", (None, 0, None), (carries[0], rows, np.float32(3.0))),
        ("rows on axis 1", (None, 1, None), (carries[0], rows.T, np.float32(3.0))),
        ("carries and rows", (0, 0, None), (carries, rows, np.float32(3.0))),
        ("what comes from outside", (None, None, 0), (carries[0], rows[0], carries)),
    ):
        found = tiny.batching.vmap(loop, axes)(*given)
        each = [
            loop(*(x if a is None else x.take(i, a) for x, a in zip(given, axes)))
            for i in range(2)
        ]
        for part, name in enumerate(("last carry", "rows")):
            right = np.stack([one[part] for one in each])
            alike(f"many {what}: the {name}", found[part], right)
        program = tiny.trace.trace(tiny.batching.vmap(loop, axes), *given)
        count = names(program).count("scan")
        assert count == 2, f"many {what}: expected two scans, got {count}:\n{program}"


def rules_of_ones_own() -> None:
    ran: list[str] = []

    def forward(p: Any, x: Any) -> Any:
        ran.append("forward")
        return {"y": p["w"] * x}, (x, {"w": p["w"]})

    def back(residuals: Any, c: Any) -> Any:
        ran.append("back")
        x, p = residuals
        return {"w": 10.0 * c["y"] * x}, 100.0 * c["y"] * p["w"]

    ours = tiny.custom.custom_vjp(lambda p, x: {"y": p["w"] * x}, forward, back)
    p = {"w": np.array([3.0, 2.0, 1.0], np.float32)}
    alike("the value", ours(p, ROW)["y"], p["w"] * ROW)
    assert not ran, f"nothing is differentiated, and {ran[0]} ran"
    value, slopes = tiny.transposes.value_and_grad(
        lambda both: tiny.operations.sum(ours(*both)["y"] * 2.0)
    )((p, ROW))
    alike("the value beside the gradient", value, np.sum(2 * p["w"] * ROW))
    right = 20 * ROW
    alike("the cotangent that `back` gives p, a dict", slopes[0]["w"], right)
    alike("the cotangent that `back` gives x", slopes[1], 200 * p["w"])
    assert ran == ["forward", "back"], (
        f"one gradient: expected forward and back once each, got {ran}"
    )


def nothing_comes_in_by_the_back_door() -> None:

    def outer(y: Any) -> Any:
        f = tiny.custom.custom_vjp(lambda x: x * y, lambda x: (x, y), lambda r, c: (c,))
        return f(np.float32(1.0))

    assert refuses(TypeError, tiny.trace.trace, outer, np.float32(2.0)), (
        "the function uses a tracer that is none of its arguments: expected a TypeError"
    )


def own_rules_of_many() -> None:

    def back(residuals: Any, c: Any) -> Any:
        x, y = residuals
        return 10.0 * c * y, 100.0 * c * x

    ours = tiny.custom.custom_vjp(
        lambda x, y: x * y, lambda x, y: (x * y, (x, y)), back
    )

    def total(of_many: Any, both: Any) -> Any:
        return tiny.operations.sum(of_many(*both))

    many = np.arange(6, dtype=np.float32).reshape(2, 3) + 1.0
    for axes, x, y in (
        ((0, 0), many, many[::-1].copy()),
        ((0, None), many, ROW),
        ((None, 0), ROW, many),
        ((1, 0), many.T.copy(), many),
    ):
        told = f"vmap with in_axes={axes}"
        of_many = tiny.batching.vmap(ours, axes)
        rows = [v if a is None else np.moveaxis(v, a, 0) for v, a in zip((x, y), axes)]
        alike(f"{told}: the value", of_many(x, y), rows[0] * rows[1])
        found = tiny.transposes.grad(partial(total, of_many))((x, y))
        for place, factor in enumerate((10.0, 100.0)):
            right = np.broadcast_to(factor * rows[1 - place], (2, 3))
            axis = axes[place]
            right = right.sum(0) if axis is None else np.moveaxis(right, 0, axis)
            which = ("first", "second")[place]
            alike(f"{told}: the cotangent of the {which}", found[place], right)


def leaks_of_every_kind() -> None:
    leaks = tiny.leaks.leaks
    kept: list[Any] = []

    class Model:
        def __call__(self, x: Any) -> Any:
            self.last = x * 2.0
            return self.last

    def keeps_its_argument(x: Any) -> Any:
        kept.append(x)
        return x + 1.0

    def round_and_round(x: Any) -> Any:
        ring: list[Any] = [x * 3.0]
        ring.append(ring)
        return x

    for function, right in (
        (Model(), ["Tracer(f32[]): Model.last"]),
        (keeps_its_argument, ["Tracer(f32[]): item 0 of a list"]),
        (round_and_round, []),
    ):
        found = leaks(function, np.float32(3.0))
        name = getattr(function, "__name__", "Model()")
        assert found == right, f"leaks of {name}: expected {right}, got {found}"
    kept.clear()


def kernels_run_in_blocks() -> None:
    x = np.linspace(-1, 1, 7 * 3, dtype=np.float32).reshape(7, 3)
    row = np.array([1.0, 2.0, 3.0], np.float32)

    def mixed(x: Any) -> Any:
        y = tiny.operations.tanh(x * row + 1.0)
        z = y * x
        total = tiny.operations.sum(z, 0)
        return z, y, total * 2.0, x - y, 3.0

    program = tiny.trace.trace(mixed, x)
    right = tiny.trace.evaluate(program, tiny.trace.MEANING, [x])
    for rows in (1, 2, 7, 64):
        found = tiny.fuser.run(program, [x], rows)
        assert len(found) == 5, f"expected 5 outputs, got {len(found)}"
        for number, (one, other) in enumerate(zip(found, right)):
            alike(f"output {number} with blocks of {rows} rows", one, other)
    sizes: list[int] = []
    for name in ("mul", "add", "tanh"):

        def noted(*given: Any, means: Any = tiny.trace.MEANING[name]) -> Any:
            sizes.append(np.size(means(*given)))
            return means(*given)

        tiny.trace.MEANING[name] = noted
    tiny.fuser.run(
        tiny.trace.trace(lambda x: tiny.operations.tanh(x * row + 1.0), x), [x], 2
    )
    assert max(sizes) == 6, (
        "a kernel of three equations over 7 rows of 3, in blocks of 2 rows: expected "
        f"no array above 6 numbers in it, got one of {max(sizes)}"
    )
    assert len(sizes) == 12, (
        f"four blocks of three equations: expected 12 steps, got {len(sizes)}"
    )


def the_order_is_chosen() -> None:

    def function(x: Any) -> Any:
        y = x * 2.0
        w = y + 1.0
        return w * -x, 5.0, x

    program = tiny.trace.trace(function, np.float32(1.0))
    asked: list[list[int]] = []

    def last(ready: list[int]) -> int:
        asked.append(list(ready))
        return ready[-1]

    found = tiny.printing.run(program, [np.float32(3.0)], last)
    assert found == [-21.0, 5.0, 3.0], f"expected [-21.0, 5.0, 3.0], got {found}"
    assert asked == [[0, 2], [0], [0], [0]], (
        "`choose` gets the positions of the ready ones among those that wait: expected "
        f"[[0, 2], [0], [0], [0]], got {asked}"
    )


def rows_of_a_jacobian() -> None:
    matrix = np.array([[0.1, 0.2, -0.3], [0.4, -0.5, 0.6]], np.float32)
    found = tiny.nesting.jacrev(
        lambda x: tiny.operations.sin(tiny.operations.dot(matrix, x))
    )(ROW)
    right = np.cos(matrix @ ROW)[:, None] * matrix
    alike("the Jacobian of sin(W @ x), W of shape (2, 3)", found, right)

    def squares(wide: Any, x: Any) -> Any:
        return tiny.operations.dot(wide, x * x)

    sizes = []
    for count in (3, 6):
        wide = np.ones((count, 3), np.float32)
        program = tiny.trace.trace(tiny.nesting.jacrev(partial(squares, wide)), ROW)
        sizes.append(len(names(program)))
    assert sizes[0] == sizes[1], (
        f"{sizes[0]} equations for 3 results and {sizes[1]} for 6: expected the same"
    )
    flat, entries = np.ones((1, 50), np.float32), np.ones(50, np.float32)
    program = tiny.trace.trace(tiny.nesting.jacrev(partial(squares, flat)), entries)
    results = [result for e in program.equations for result in e.results]
    largest = max(int(np.prod(result.type.shape)) for result in results)
    assert largest <= 50, (
        f"for one result of 50 entries an array has {largest:,} numbers: a row is what "
        "comes back for one entry of the result"
    )


CHECKS: dict[str, tuple[Callable[[], None], ...]] = {
    "at.Place.set": (arrays_stay_as_they_are,),
    "at.Place.add": (arrays_stay_as_they_are,),
    "trace.trace": (
        the_function_runs_on_tracers_once,
        programs_have_their_trees,
        a_program_is_closed_after_an_exception,
    ),
    "trace.evaluate": (
        the_table_says_what_is_done,
        equations_with_several_results,
        what_is_outside_is_asked_for,
    ),
    "cache.Jitted.__call__": (calls_of_a_cache, a_failed_trace_is_not_kept),
    "tree.paths": (places_of_leaves,),
    "tree.map_tree": (trees_of_one_structure,),
    "threefry.threefry": (twenty_rounds,),
    "tangents.rules_of_school": (every_row_is_a_derivative,),
    "linearize.outside": (residuals_are_all_there,),
    "transposes.rules_of_entries": (every_linear_row,),
    "nesting.jacrev": (rows_of_a_jacobian,),
    "batching.dot_of_many": (products_of_many, one_product_for_all),
    "loops.cond": (branches_fit, branches_see_what_comes_in),
    "loops.scan": (
        loops_are_one_equation,
        loops_backwards_and_by_length,
        carries_keep_their_type,
    ),
    "loop_rules.scan_change": (the_derivative_is_two_loops,),
    "loop_rules.scan_of_many": (loops_of_many,),
    "custom.custom_vjp": (rules_of_ones_own, nothing_comes_in_by_the_back_door),
    "custom.custom_of_many": (own_rules_of_many,),
    "leaks.leaks": (leaks_of_every_kind,),
    "fuser.run": (kernels_run_in_blocks,),
    "printing.run": (the_order_is_chosen,),
}
