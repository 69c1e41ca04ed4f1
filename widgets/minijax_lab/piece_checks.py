"""What a piece of `tiny` must do beside giving the right numbers.

The programs of a chapter compare values with JAX's. Here the way there is looked at:
which equations are written, what is kept, what is sent, how large an array becomes.
Each check runs in a copy of `tiny` with the learner's piece in it, and raises
AssertionError with a sentence.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import export
from minijax.core.hlo import stablehlo
from minijax_lab.answers import alike, first_lines, refuses
from minijax_lab.tiny_programs import tiny

ROW = np.array([0.5, 1.5, 2.0], np.float32)


def names(program: Any) -> list[str]:
    """The primitives of a program's equations, in their order."""
    return [equation.primitive for equation in program.equations]


class Watched(np.ndarray):
    """An array that notes how large the arrays become that are made of it."""

    sizes: list[int] = []

    @classmethod
    def of(cls, array: np.ndarray) -> Watched:
        return array.view(cls)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **options: Any
    ) -> Any:
        plain = [x.view(np.ndarray) if isinstance(x, Watched) else x for x in inputs]
        for name, given in list(options.items()):
            if name == "out":
                options["out"] = tuple(
                    x.view(np.ndarray) if isinstance(x, Watched) else x for x in given
                )
        return self.noted(getattr(ufunc, method)(*plain, **options))

    def __array_function__(
        self, function: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        return self.noted(super().__array_function__(function, types, args, kwargs))

    @staticmethod
    def noted(found: Any) -> Any:
        if isinstance(found, np.ndarray):
            Watched.sizes.append(found.size)
            return found.view(Watched)
        return found


def largest_made(function: Callable[..., Any], *arrays: np.ndarray) -> tuple[Any, int]:
    """What a function gives, and the size of the largest array on its way."""
    Watched.sizes = [0]
    found = function(*map(Watched.of, arrays))
    return np.asarray(found), max(Watched.sizes)


def innermost_program_is_written() -> None:
    inner: list[Any] = []

    def outer(x: Any) -> Any:
        inner.append(tiny.trace.trace(lambda y: y * x, np.float32(1.0)))
        return x * 2.0

    whole = tiny.trace.trace(outer, np.float32(1.0))
    assert names(inner[0]) == ["mul"], (
        "y * x, with y of an inner program and x of an outer one, stands in the inner "
        f"one; expected there ['mul'], got {names(inner[0])}"
    )
    assert names(whole) == ["mul"], (
        f"the outer program has its own x * 2.0; expected ['mul'], got {names(whole)}"
    )


def finished_programs_are_closed() -> None:
    kept: list[Any] = []

    def keeps(x: Any) -> Any:
        kept.append(x)
        return x

    program = tiny.trace.trace(keeps, np.float32(1.0))
    assert refuses(TypeError, lambda: kept[0] * 2.0), (
        "a tracer that outlived its program was used, and no TypeError was raised"
    )
    assert not program.equations, "a finished program got one more equation"


def several_results_come_as_a_list() -> None:
    tiny.trace.MEANING["both"] = lambda x: [x, x]
    tiny.trace.SHAPES["both"] = lambda x: [x, x]
    program = tiny.trace.trace(lambda x: tuple(tiny.trace.bind("both", x)), ROW)
    (equation,) = program.equations
    assert len(equation.results) == 2, "SHAPES gave a list of two types: two results"


def digits_for_any_count() -> None:
    for seed, count in ((0, 1), (3, 5), (11, 200)):
        key = tiny.threefry.make_key(seed)
        bits = (tiny.threefry.bits(key, count) >> np.uint32(9)) | np.uint32(0x3F800000)
        right = bits.view(np.float32) - np.float32(1)
        alike(
            f"uniform(make_key({seed}), {count})",
            tiny.threefry.uniform(key, count),
            right,
            0,
        )


def kinds_of_the_registry() -> None:

    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

        def __repr__(self) -> str:
            return f"Pair({self.a}, {self.b})"

    tiny.tree.register(
        Pair, lambda p: ([p.b, p.a], "extra"), lambda e, c: Pair(c[1], c[0])
    )
    leaves, structure = tiny.tree.flatten([Pair(1, (2, 3)), None])
    assert leaves == [2, 3, 1], f"a registered class: leaves {leaves}, not [2, 3, 1]"
    again = tiny.tree.unflatten(structure, leaves)[0]
    assert (again.a, again.b) == (1, (2, 3)), "a registered class comes back otherwise"


def linear_program_is_linear() -> None:
    value, linear = tiny.linearize.linearize(
        lambda x: tiny.operations.exp(tiny.operations.sin(x) * x), ROW
    )
    alike("the value of exp(sin(x) * x)", value, np.exp(np.sin(ROW) * ROW))
    computed = {*names(linear)} & {"sin", "cos", "exp"}
    assert not computed, (
        f"the linear program of exp(sin(x) * x) computes {sorted(computed)} again; "
        f"values are computed once, and kept:\n{linear}"
    )


def values_stay_out_of_open_programs() -> None:
    tiny.linearize.linearize(lambda x: x * x, ROW)
    assert not tiny.trace.OPEN, "a program is left open"


def backward_adds_every_use() -> None:

    def often(x: Any, y: Any) -> Any:
        z = x * 3.0
        return tiny.operations.sum(z * 2.0 + z + x + z * 0.5)

    found = tiny.transposes.grad(often)(ROW, ROW)
    alike("the gradient of a value used four times", found, np.full(3, 11.5))
    none = tiny.transposes.grad(lambda x: tiny.operations.sum(ROW * 2.0) + 0.0 * x[0])(
        ROW
    )
    alike("the gradient of what is not used", none, np.zeros(3))
    both = tiny.transposes.grad(lambda p: tiny.operations.sum(p["a"]))(
        {"a": ROW, "b": ROW}
    )
    alike("the gradient of a leaf that nobody reads", both["b"], np.zeros(3))


def products_are_turned_round() -> None:
    """Of each operand: <c, x y> is the same product as <cotangent of x, x>."""
    rng = np.random.default_rng(7)
    for x_shape, y_shape, numbers in (
        ((2, 3), (3, 4), (([1], [0]), ([], []))),
        ((3,), (3, 4), (([0], [0]), ([], []))),
        ((2, 3), (3,), (([1], [0]), ([], []))),
        ((3, 2), (4, 3), (([0], [1]), ([], []))),
        ((5, 2, 3), (3, 4, 5), (([2], [0]), ([0], [2]))),
        ((2, 3, 4), (4, 5, 3), (([1, 2], [2, 0]), ([], []))),
    ):
        given = [rng.normal(size=shape) for shape in (x_shape, y_shape)]

        def product(pair: list[Any], numbers: Any = numbers) -> Any:
            return tiny.trace.bind("dot_general", *pair, dimension_numbers=numbers)

        c = rng.normal(size=product(given).shape)
        for place, which in enumerate(("first", "second")):
            operand = given[place]
            basis = np.eye(operand.size).reshape(-1, *operand.shape)
            pairs = ([*given[:place], one, *given[place + 1 :]] for one in basis)
            right = np.array([np.sum(c * product(pair)) for pair in pairs])
            right = right.reshape(operand.shape)
            known = [*given]
            known[place] = tiny.transposes.Unknown(tiny.trace.type_of(operand))
            rule = tiny.transposes.TRANSPOSES["dot_general"]
            found = rule([c], *known, dimension_numbers=numbers)[place]
            told = f"x of shape {x_shape}, y of shape {y_shape}, numbers {numbers}: "
            alike(f"{told}the cotangent of the {which} operand", found, right)


def one_product_turns_a_product() -> None:
    x = tiny.transposes.Unknown(tiny.trace.type_of(np.ones((5, 2, 3))))
    numbers = (([2], [0]), ([0], [2]))
    program = tiny.trace.trace(
        lambda c, y: tiny.transposes.dot_back(c, x, y, numbers),
        np.ones((5, 2, 4), np.float32),
        np.ones((3, 4, 5), np.float32),
    )
    others = set(names(program)) - {"dot_general", "transpose"}
    assert names(program).count("dot_general") == 1 and not others, (
        f"one dot_general and a transpose are enough, in place of:\n{program}"
    )


def vmap_writes_one_program() -> None:
    sizes = []
    for count in (2, 5):
        xs = np.ones((count, 3), np.float32)
        sizes.append(
            len(names(tiny.trace.trace(tiny.batching.vmap(lambda x: x * x + x), xs)))
        )
    assert sizes[0] == sizes[1], (
        f"{sizes[0]} equations for 2 examples and {sizes[1]} for 5: expected the same"
    )


def entries_of_unlike_ranks() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    numbers = np.array([10, 20, 30], np.float32)
    found = tiny.batching.vmap(lambda x, y: x * y)(rows, numbers)
    alike("a row times a number, for three examples", found, rows * numbers[:, None])
    found = tiny.batching.vmap(lambda x, y: x - y, (1, 0))(rows.T, rows)
    alike("axis 1 of one and axis 0 of the other", found, np.zeros((3, 2)))


def no_hessian() -> None:
    x = np.linspace(0.1, 1, 40, dtype=np.float32)

    def bend(x: Any) -> Any:
        return tiny.operations.sum(tiny.operations.sin(x) * x * x[0])

    program = tiny.trace.trace(lambda x, v: tiny.nesting.hvp(bend, x, v), x, x)
    made = [result for e in program.equations for result in e.results]
    largest = max(int(np.prod(result.shape)) for result in made)
    assert largest <= 40, (
        f"for 40 entries an array of {largest} is made; expected none above 40: the "
        "product does not need the Hessian"
    )


def roots_nest() -> None:
    four = np.float32(4.0)

    def square_root(a: Any) -> Any:
        return tiny.nesting.root(lambda a, x: x * x - a, a, np.float32(1.0))

    slope = tiny.transposes.grad(square_root)
    alike("the slope of the root at 4", slope(four), 0.25)
    alike("the slope of that slope", tiny.transposes.grad(slope)(four), -1 / 32)
    program = tiny.trace.trace(slope, four)
    assert names(program).count("root") <= 2, (
        f"the gradient's program has {names(program).count('root')} roots; expected one"
    )
    assert len(names(program)) < 40, (
        f"the gradient's program has {len(names(program))} equations: it goes back "
        "through Newton's steps"
    )


def one_condition_decides() -> None:
    xs = np.ones((4, 3), np.float32)

    def branch(x: Any, y: Any) -> Any:
        return tiny.loops.cond(y > 0.5, tiny.operations.sin, tiny.operations.cos, x)

    shared = tiny.trace.trace(
        tiny.batching.vmap(branch, (0, None)), xs, np.float32(1.0)
    )
    assert "cond" in names(shared) and "select_n" not in names(shared), (
        "one condition for all examples: expected a cond and no select_n, got "
        f"{names(shared)}"
    )
    for y, right in ((1.0, np.sin(xs)), (0.0, np.cos(xs))):
        found = tiny.batching.vmap(branch, (0, None))(xs, np.float32(y))
        alike(f"one condition for all examples, {y > 0.5}", found, right)
    own = tiny.trace.trace(tiny.batching.vmap(branch), xs, np.ones(4, np.float32))
    assert "select_n" in names(own) and "cond" not in names(own), (
        f"a condition for each example: expected select_n and no cond, got {names(own)}"
    )
    result = tiny.batching.vmap(branch)(xs, np.array([1, 0, 1, 0], np.float32))
    right = np.where(np.array([1, 0, 1, 0])[:, None], np.sin(xs), np.cos(xs))
    alike("a condition for each example", result, right)


def only_arguments_are_kept() -> None:

    def layers(x: Any) -> Any:
        return tiny.operations.sin(tiny.operations.exp(tiny.operations.sin(x)))

    value, linear = tiny.linearize.linearize(tiny.custom.remat(layers), ROW)
    alike("the value", value, np.sin(np.exp(np.sin(ROW))))
    kept = tiny.linearize.outside(linear)
    others = [k for k in kept if not np.array_equal(k, ROW)]
    assert not others, (
        f"{len(kept)} arrays are kept for the way back; expected one, the argument"
    )
    other = tiny.transposes.grad(
        lambda y: tiny.operations.sum(
            tiny.custom.remat(lambda x: tiny.operations.sin(x) * y)(2 * ROW)
        )
    )
    alike("by what comes from outside", other(ROW), np.sin(2 * ROW))
    back = {e.primitive for e in linear.equations}
    assert "remat" in back, f"expected a remat on the way back, got {sorted(back)}"


def chains_are_one_kernel() -> None:
    x = np.ones((8, 4), np.float32)

    def kernels(function: Callable[..., Any]) -> list[list[str]]:
        program = tiny.trace.trace(function, x)
        found = tiny.fuser.kernels_of(program)
        order = [id(e) for kernel in found for e in kernel]
        assert sorted(order) == sorted(map(id, program.equations)), (
            "each equation stands in one kernel, once"
        )
        return [[e.primitive for e in kernel] for kernel in found]

    chain = kernels(lambda x: tiny.operations.tanh(x * 0.5 + 1.0) * x)
    assert len(chain) == 1, f"a chain of four: expected 1 kernel, got {chain}"
    cut = kernels(lambda x: tiny.operations.sum(tiny.operations.sin(x) * x, 1) * 2.0)
    assert len(cut) == 3, f"a sum between two parts: expected 3 kernels, got {cut}"

    def meet_late(x: Any) -> Any:
        y = tiny.operations.sin(x)
        return tiny.operations.sum(y), tiny.operations.cos(y)

    late = kernels(meet_late)
    assert len(late) == 2, (
        f"cos joins the kernel of sin, past the sum between them: got {late}"
    )
    program = tiny.trace.trace(lambda x: tiny.operations.sin(x * 2.0) + x, x)
    (kernel,) = tiny.fuser.kernels_of(program)
    assert sum(tiny.fuser.traffic(program, kernel)) <= 4 * 32 * 2 + 4, (
        "more bytes than 260"
    )


def lines_are_stablehlo() -> None:
    """MLIR reads the text of each kind of equation, and XLA finds tiny's numbers."""
    from minijax.interpreters import mlir

    table = np.array([[-1.0, -2.0, 3.0], [-4.0, 5.0, 6.0]], np.float32)
    kinds: dict[str, Callable[..., Any]] = {
        "x + y": lambda x, y: x + y,
        "sin(y)": lambda x, y: tiny.operations.sin(y),
        "y ** 3": lambda x, y: y**3,
        "2.0 - y": lambda x, y: 2.0 - y,
        "sum(x, 1)": lambda x, y: tiny.operations.sum(x, 1),
        "max(x, 0)": lambda x, y: tiny.operations.max(x, 0),
        "broadcast(y)": lambda x, y: tiny.operations.broadcast(y, (2, 3), (1,)),
        "x @ y": lambda x, y: x @ y,
    }
    for what, function in kinds.items():
        text = tiny.export.stablehlo(tiny.trace.trace(function, table, ROW))
        try:
            with mlir.make_ir_context():
                mlir.ir.Module.parse(text).operation.verify()
        except Exception as error:
            said = [line for line in str(error).splitlines() if "error:" in line]
            told = f"{what} is not StableHLO: {(said or [str(error)])[0]}\n{text}"
            raise AssertionError(told) from None

    def every(x: Any, y: Any) -> Any:
        return tuple(function(x, y) for function in kinds.values())

    program = tiny.trace.trace(every, table, ROW)
    found = by_xla(program, tiny.export.stablehlo(program), table, ROW)
    for what, one, right in zip(kinds, found, every(table, ROW)):
        alike(f"{what}, compiled by XLA", one, right)
    batches = (([2], [1]), ([0], [0]))
    for what, function in (
        (
            "a product with batch axes",
            lambda x: tiny.trace.bind("dot_general", x, x, dimension_numbers=batches),
        ),
        ("gt, of which there is no row", lambda x: tiny.trace.bind("gt", x, 1.0)),
    ):
        program = tiny.trace.trace(function, np.ones((2, 3, 3), np.float32))
        assert refuses(TypeError, tiny.export.stablehlo, program), (
            f"{what}: expected a TypeError"
        )


def by_xla(program: Any, text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """What a program of `tiny` gives as XLA computes it from its StableHLO.

    The text stands in an exported program of minijax, in place of that one's own.
    """
    shapes = [output.type.shape for output in program.outputs]
    signature = export.export(minijax.jit(lambda *_: [*map(jnp.zeros, shapes)]))
    version = stablehlo.get_current_version()
    loaded = dataclasses.replace(
        signature(*arrays),
        mlir_module_serialized=stablehlo.serialize_portable_artifact_str(text, version),
        module_kept_var_idx=tuple(range(len(arrays))),
    )
    return [*map(np.asarray, loaded.call(*arrays))]


def signature_is_held() -> None:
    leaves, structure = tiny.tree.flatten(({"a": ROW, "b": ROW},))
    types = [tiny.trace.type_of(leaf) for leaf in leaves]
    for what, args in {
        "one argument more": ({"a": ROW, "b": ROW}, ROW),
        "a list for a dict": ([ROW, ROW],),
        "a matrix for the second": ({"a": ROW, "b": np.ones((1, 3), np.float32)},),
        "integers for the second": ({"a": ROW, "b": ROW.astype(np.int32)},),
    }.items():
        assert refuses(TypeError, tiny.export.checked, types, structure, args), (
            f"{what}: expected a TypeError"
        )


def damage_is_found() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program"
        tiny.export.save(tiny.export.exported(lambda x: x * 2.0, ROW), path)
        contents = path.read_bytes()
        assert b"2." in contents and b"multiply" in contents
        for old, new in ((b"2.", b"3."), (b"multiply", b"subtract")):
            place = contents.rindex(old)
            changed = contents[:place] + new + contents[place + len(new) :]
            path.write_bytes(changed)
            assert refuses(ValueError, tiny.export.load, path), (
                f"{old.decode()!r} became {new.decode()!r} in the file, and it was "
                "loaded; expected a ValueError"
            )


def sizes_must_divide() -> None:
    for mesh, spec, shape in (
        ({"x": 2}, ("x",), (3,)),
        ({"x": 2, "y": 3}, (None, ("x", "y")), (2, 9)),
    ):
        assert refuses(ValueError, tiny.placed.slices, mesh, spec, shape), (
            f"mesh {mesh}, spec {spec}, shape {shape} cannot be cut evenly: expected a "
            "ValueError"
        )
    found = tiny.placed.slices({"x": 2}, (), (4, 4))
    right = [(slice(0, 4), slice(0, 4))] * 2
    assert found == right, f"an empty spec: expected {right}, got {found}"


def sums_come_over_the_wire() -> None:
    pieces = [np.full(4, float(d + 1), np.float32) for d in range(4)]
    over_the_wire("all_reduce", pieces, [sum(pieces)] * 4, 3 * pieces[0].nbytes)


def parts_come_over_the_wire() -> None:
    pieces = [np.arange(1, 5, dtype=np.float32) * (d + 1) for d in range(4)]
    over_the_wire("reduce_scatter", pieces, np.split(sum(pieces), 4), 12)
    pieces = [np.arange(1, 7, dtype=np.float32) * (d + 1) for d in range(3)]
    over_the_wire("reduce_scatter", pieces, np.split(sum(pieces), 3), 16)


def all_pieces_come_over_the_wire() -> None:
    pieces = [np.arange(2, dtype=np.float32) + 10 * d for d in range(5)]
    over_the_wire("all_gather", pieces, [np.concatenate(pieces)] * 5, 32)


def over_the_wire(name: str, pieces: list[Any], right: list[Any], most: int) -> None:
    """Raises unless a collective is right, and each device sends no more than this."""
    ppermute, ring = tiny.collectives.ppermute, tiny.collectives.ring
    collective, count = getattr(tiny.collectives, name), len(pieces)
    asked: list[Any] = []

    def watched(given: Any, pairs: Any) -> Any:
        asked.append([tuple(pair) for pair in pairs])
        return ppermute(given, pairs)

    def cut_wire(given: Any, pairs: Any) -> Any:
        return [np.zeros_like(piece) for piece in given]

    before = sum(tiny.collectives.sent)
    tiny.collectives.ppermute = watched
    found = collective(list(pieces))
    for device in range(count):
        alike(f"device {device}", found[device], right[device])
    assert asked, "nothing was sent: every message goes through ppermute"
    others = [pairs for pairs in asked if not set(pairs) <= set(ring(count))]
    assert not others, f"a device sends to the next one only, and not as in {others[0]}"
    sent = (sum(tiny.collectives.sent) - before) / count
    assert sent <= most, f"each device sends {sent:g} B; expected at most {most}"
    tiny.collectives.ppermute = cut_wire
    alone = collective(list(pieces))
    assert not np.array_equal(alone[0], right[0]), (
        "with a wire that delivers zeros device 0 still has the right result: it did "
        "not come over the wire"
    )
    tiny.collectives.ppermute = ppermute


def grids_go_last_axis_fastest() -> None:
    seen: list[tuple[int, int]] = []

    def note(x_ref: Any, o_ref: Any) -> None:
        seen.append((tiny.kernels.program_id(0), tiny.kernels.program_id(1)))

    x = np.zeros((4, 6), np.float32)
    block = tiny.kernels.BlockSpec((2, 2), lambda i, j: (i, j))
    tiny.kernels.pallas_call(note, (4, 6), (2, 3), [block], block)(x)
    right = [(i, j) for i in range(2) for j in range(3)]
    assert seen == right, f"the places come as {seen}; expected {right}"


def unwritten_is_nan() -> None:
    block = tiny.kernels.BlockSpec((2,), lambda i: (i,))

    def half(x_ref: Any, o_ref: Any) -> None:
        if tiny.kernels.program_id(0) == 0:
            o_ref[...] = x_ref[...]

    x = np.ones(4, np.float32)
    found = tiny.kernels.pallas_call(half, (4,), (2,), [block], block)(x)
    alike("a block that no program writes", found, [1, 1, np.nan, np.nan])


def blocks_that_stay_are_not_fetched() -> None:
    x = np.ones((4, 4), np.float32)
    rows = tiny.kernels.BlockSpec((2, 4), lambda i, j: (i, 0))
    columns = tiny.kernels.BlockSpec((4, 2), lambda i, j: (0, j))
    out = tiny.kernels.BlockSpec((2, 2), lambda i, j: (i, j))

    def product(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] @ y_ref[...]

    tiny.kernels.fetched.clear()
    tiny.kernels.pallas_call(product, (4, 4), (2, 2), [rows, columns], out)(x, x)
    found = sorted(tiny.kernels.fetched)
    right = [16] * 4 + [32] * 6
    assert found == right, (
        f"`fetched` holds {found}; expected {right}: 2 blocks of rows, 4 of columns "
        "and 4 of the result"
    )


def softmax_sees_one_part() -> None:
    x = np.linspace(-3, 4, 24, dtype=np.float32)
    parts = [x[at : at + 4] for at in range(0, 24, 4)]

    def both(*parts: Any) -> Any:
        return np.array(
            [float(one) for one in tiny.attention.online_softmax(list(parts))]
        )

    found, largest = largest_made(both, *parts)
    alike("(largest, sum)", found, [4.0, np.exp(x - 4.0).sum()])
    assert largest <= 4, (
        f"parts of 4 numbers came, and an array of {largest} was made of them"
    )
    endless = tiny.attention.online_softmax(part for part in parts)
    alike("parts that come one by one", [float(one) for one in endless], found)
    falling = tiny.attention.online_softmax(parts[::-1])
    alike("the largest part first", [float(one) for one in falling], found)
    large = tiny.attention.online_softmax([parts[0] + 200.0, parts[1] + 200.0])
    assert np.isfinite(float(large[1])), "the sum overflows for numbers near 200"


def attention_makes_no_scores() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(32, 4)).astype(np.float32) for _ in range(3))
    scores = q @ k.T / 2
    weights = np.exp(scores - scores.max(1, keepdims=True))
    right = weights / weights.sum(1, keepdims=True) @ v
    found, largest = largest_made(
        lambda q, k, v: tiny.attention.flash_attention(q, k, v, 8), q, k, v
    )
    alike("attention", found, right)
    assert largest <= 8 * 8, (
        f"with blocks of 8 queries and 8 keys an array of {largest} numbers was made; "
        "expected at most 64"
    )


# What is looked at for each piece, after the programs of its chapter.
def no_step_is_written_out() -> None:
    numbers = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
    of_many = tiny.trace.trace(
        tiny.batching.vmap(tiny.recurrence.toy_recur, (None, 0)), numbers[0], numbers
    )
    found = names(of_many).count("recur")
    assert found == 1, f"vmap of 5 examples has {found} `recur`, expected 1:\n{of_many}"

    def change(a: Any, x: Any) -> Any:
        return tiny.tangents.jvp(tiny.recurrence.toy_recur, (a, x), (x, a))

    program = tiny.trace.trace(change, numbers[0], numbers[1])
    found = names(program).count("recur")
    assert found == 2, (
        f"a value and its change are two `recur`, and {found} are there:\n{program}"
    )

    def loss(x: Any) -> Any:
        return tiny.operations.sum(
            tiny.operations.sin(tiny.recurrence.toy_recur(numbers[0], x))
        )

    program = tiny.trace.trace(tiny.transposes.grad(loss), numbers[1])
    turned = [
        equation.params["reverse"]
        for equation in program.equations
        if equation.primitive == "recur"
    ]
    assert turned.count(True) == 1, (
        f"the way back is one `recur` with reverse=True; got {turned}:\n{program}"
    )


def nothing_moves_nothing_changes() -> None:
    still = tiny.recurrence.recur_tangent(
        tiny.tangents.Dual(ROW), tiny.tangents.Dual(ROW), reverse=False
    )
    assert still.tangent is None, (
        f"no operand moves: expected the tangent None, got {still.tangent}"
    )


def only_x_is_linear() -> None:
    unknown = tiny.transposes.Unknown(tiny.trace.type_of(ROW))
    back = tiny.recurrence.recur_transpose
    assert refuses(TypeError, back, [ROW], unknown, ROW, False), (
        "with `a` Unknown there is no transpose: expected a TypeError"
    )


def a_bound_is_computed_once() -> None:
    calls = []

    def probe(x: Any) -> Any:
        calls.append(x)
        return x * x

    tiny.intervals.bounds(probe, tiny.intervals.Interval(ROW, ROW + 1))
    assert len(calls) == 1, f"the function ran {len(calls)} times, expected once"
    assert not isinstance(calls[0], np.ndarray), (
        "the function ran on numbers: trace it, and go through its equations"
    )


def results_have_their_tree() -> None:

    def function(x: Any) -> Any:
        return {"b": x * x, "a": (2.0 * ROW, x)}

    values, changes = tiny.tangents.jvp(function, (ROW,), (np.ones_like(ROW),))
    for what, found in (("values", values), ("changes", changes)):
        assert isinstance(found, dict) and set(found) == {"a", "b"}, (
            "the function gives a dict of a and b; "
            f"the {what} should be one, and are a {type(found).__name__}"
        )
    alike("the change of x * x", changes["b"], 2 * ROW)
    assert changes["a"][0] is not None, (
        "the change of what does not depend on x: expected zeros, got None"
    )
    alike("the change of what does not depend on x", changes["a"][0], 0 * ROW)


def every_output_comes_back() -> None:
    _, back = tiny.transposes.vjp(lambda x: (x * 2.0, x * 5.0, ROW * 3.0), ROW)
    (found,) = back((0 * ROW, ROW, ROW))
    alike("the cotangent of x, of the results 2 x and 5 x", found, 5 * ROW)


def what_is_not_batched_stays() -> None:
    many = np.arange(6, dtype=np.float32).reshape(2, 3)
    of_many = tiny.batching.vmap(lambda x, w: x * tiny.operations.sum(w), (0, None))
    alike("x * sum(w) with one w for all", of_many(many, ROW), many * ROW.sum())
    both = tiny.batching.vmap(lambda x, w: (x, w * 2.0), (0, None))(many, ROW)
    alike("a result that no example changes", both[1], np.stack([ROW * 2] * 2))


CHECKS: dict[str, tuple[Callable[[], None], ...]] = {
    "trace.bind": (
        innermost_program_is_written,
        finished_programs_are_closed,
        several_results_come_as_a_list,
    ),
    "tree.flatten": (kinds_of_the_registry,),
    "threefry.uniform": (digits_for_any_count,),
    "linearize.linearize": (linear_program_is_linear, values_stay_out_of_open_programs),
    "tangents.jvp": (results_have_their_tree,),
    "transposes.dot_back": (products_are_turned_round, one_product_turns_a_product),
    "transposes.backward": (backward_adds_every_use, every_output_comes_back),
    "batching.entries_of_many": (entries_of_unlike_ranks,),
    "batching.vmap": (vmap_writes_one_program, what_is_not_batched_stays),
    "nesting.hvp": (no_hessian,),
    "nesting.implicit": (roots_nest,),
    "loop_rules.cond_of_many": (one_condition_decides,),
    "custom.remat": (only_arguments_are_kept,),
    "fuser.kernels_of": (chains_are_one_kernel,),
    "export.write": (lines_are_stablehlo,),
    "export.checked": (signature_is_held,),
    "export.load": (damage_is_found,),
    "placed.slices": (sizes_must_divide,),
    "collectives.all_reduce": (sums_come_over_the_wire,),
    "collectives.reduce_scatter": (parts_come_over_the_wire,),
    "collectives.all_gather": (all_pieces_come_over_the_wire,),
    "kernels.pallas_call": (
        grids_go_last_axis_fastest,
        unwritten_is_nan,
        blocks_that_stay_are_not_fetched,
    ),
    "attention.online_softmax": (softmax_sees_one_part,),
    "attention.flash_attention": (attention_makes_no_scores,),
    "recurrence.recur_tangent": (
        no_step_is_written_out,
        nothing_moves_nothing_changes,
    ),
    "recurrence.recur_transpose": (no_step_is_written_out, only_x_is_linear),
    "recurrence.recur_of_many": (no_step_is_written_out,),
    "intervals.bounds": (a_bound_is_computed_once,),
}


def complaint(checks: Iterable[Callable[[], None]]) -> str | None:
    """Returns what the first check says that does not hold, or None."""
    for check in checks:
        try:
            check()
        except AssertionError as error:
            text = first_lines(sentence(str(error)))
            return text + ("" if text.endswith(".") else ".")
    return None


def sentence(text: str) -> str:
    """Returns a text that begins with a capital, unless it begins with code."""
    word = text.partition(" ")[0].rstrip(",:")
    is_code = len(word) == 1 and word != "a" or not word.isalpha()
    is_code |= hasattr(minijax, word) or hasattr(minijax.lax, word)
    return text if is_code else text[:1].upper() + text[1:]
