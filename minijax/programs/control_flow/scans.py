"""scan and map: loops over rows, as users call them.

The equation is explained in `scan_primitive.py`.

In JAX: `lax/control_flow/loops.py`, `scan`, `map`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import errors, partial_eval, shaping
from minijax.core.errors import api_boundary
from minijax.core.language import get_aval, mapped_aval
from minijax.core.signatures import check_functions
from minijax.core.state import state
from minijax.core.trees import tree_flatten, tree_structure, tree_unflatten
from minijax.primitives.shape import joining, slicing
from minijax.primitives.shape.rearranging import merged_axes
from minijax.primitives.shape.squeezing import flag_of, index_of
from minijax.programs.control_flow import bodies
from minijax.programs.control_flow.agreement import check_carry
from minijax.programs.control_flow.operands import Operands, merge
from minijax.programs.control_flow.scan_primitive import Scan, each_step, stack_rows
from minijax.programs.control_flow.while_loops import promote_weak
from minijax.support.tree_util import tree_map
from minijax.values.array_interchange import from_numpy
from minijax.values.concrete import concrete_or_error


@api_boundary
def scan(
    f: Callable,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """A loop over rows: `carry, y = f(carry, x)` for each row x of `xs`.

    Args:
      f: takes a carry and a tree of rows, returns a pair: a carry of the same tree,
        shapes and dtypes, and a tree of arrays.
      init: the first carry, an array or a tree of arrays.
      xs: arrays of shape `(length, ...)`, or a tree of them; None for no rows.
      length: the number of steps; needed without `xs`.
      reverse: whether to begin with the last row. Row i of the outputs belongs to row i
        of the inputs in any case.
      unroll: how many steps to write out in one turn of the compiled loop; True or 0
        for all of them.

    Returns:
      the last carry, and the tree of all y, each stacked to `(length, ...)`.

    Raises:
      TypeError: `f` is not a function, does not return a pair, or returns a carry of
        another tree or type; the message shows both sides of each leaf that differs.
      ValueError: the leading sizes differ, there are none and no `length`, or `unroll`
        is negative.
    """
    check_functions("lax.scan", f=f)
    reverse = flag_of(reverse, "reverse")
    init_leaves, init_tree = tree_flatten(init)
    xs_leaves, xs_tree = tree_flatten(xs)
    length = _length(xs_leaves, length)
    if state.disable_jit:
        return _in_python(f, init, xs_leaves, xs_tree, length, reverse)
    _check_not_cut(xs_leaves)
    x_avals = [mapped_aval(length, 0, get_aval(x)) for x in xs_leaves]
    in_tree = tree_structure(
        (tree_unflatten(init_tree, init_leaves), tree_unflatten(xs_tree, xs_leaves))
    )

    def trace() -> tuple[bodies.Body, Any, Any]:
        avals = [*(get_aval(x) for x in init_leaves), *x_avals]
        body = bodies.trace_body(f, in_tree, avals, "scan")
        parts = body.out_tree.children()
        is_pair = body.out_tree.node_data() == tree_structure((0, 0)).node_data()
        if len(parts) != 2 or not (is_pair or _is_sequence(body.out_tree)):
            shown = tree_unflatten(body.out_tree, body.out_avals)
            raise errors.type_error(
                f"scan body output must be a pair, got {shown}. Return `carry, y`; "
                "with nothing to stack, `carry, None`."
            )
        return body, parts[0], parts[1]

    def check() -> None:
        avals = [get_aval(x) for x in init_leaves]
        out_avals = body.out_avals[: carry_tree.num_leaves]
        check_carry("scan body", f, init_tree, avals, carry_tree, out_avals)

    body, carry_tree, _ = trace()
    bodies.check_distinct_refs("scan", [*init_leaves, *xs_leaves], body.consts)
    if carry_tree.num_leaves != len(init_leaves):
        check()
    promoted = promote_weak(init_leaves, body.out_avals)
    if promoted is not None:
        init_leaves = promoted
        body, carry_tree, _ = trace()
    check()
    bodies.check_effects("scan", body.closed)
    outputs = _bind(
        body, init_leaves, xs_leaves, length, reverse, _unroll(unroll, length)
    )
    return tree_unflatten(body.out_tree, outputs)


def _is_sequence(tree: Any) -> bool:
    data = tree.node_data()
    return data is not None and data[0] in (tuple, list)


def _unroll(unroll: Any, length: int) -> int:
    if isinstance(unroll, (bool, np.bool_)):
        return max(length, 1) if unroll else 1
    needed = "the `unroll` argument of `scan`"
    unroll = index_of(concrete_or_error(None, unroll, needed), needed)
    if unroll < 0:
        raise errors.value_error(
            f"`unroll` must be a `bool` or a non-negative `int`, got {unroll}."
        )
    return unroll


def _check_not_cut(xs: Sequence[Any]) -> None:
    """On an Explicit mesh, each device must hold the whole axis of the loop."""
    for x in xs:
        sharding = getattr(get_aval(x), "cut", None)
        if sharding is not None and sharding.of(0) is not None:
            raise errors.value_error(
                "0th dimension of all xs should be replicated. Got "
                f"{sharding.spec} for {get_aval(x).str_short()}. Reshard it first: "
                "`minijax.sharding.reshard(xs, PartitionSpec(None, ...))`."
            )


def _length(xs: Sequence[Any], length: Any) -> int:
    """The number of steps, from the leading axes or as it is given."""
    avals = [get_aval(x) for x in xs]
    if any(not getattr(aval, "shape", ()) for aval in avals):
        scalars = [str(x) for x, a in zip(xs, avals) if not getattr(a, "shape", ())]
        raise errors.value_error(
            f"scan got value with no leading axis to scan over: {', '.join(scalars)}."
        )
    sizes = [aval.shape[0] for aval in avals]
    if length is not None:
        length = concrete_or_error(
            int,
            length,
            "The `length` argument to `scan` expects a concrete `int` value. For a "
            "number of steps that is known only when the program runs use "
            "`while_loop` or `fori_loop`.",
        )
        if any(size != length for size in sizes):
            raise errors.value_error(
                f"scan got `length` argument of {length} which disagrees with leading "
                f"axis sizes {sizes}."
            )
        return length
    if not sizes:
        raise errors.value_error(
            "scan got no values to scan over and `length` not provided."
        )
    if len(set(sizes)) > 1:
        raise errors.value_error(
            "scan got values with different leading axis sizes: "
            f"{', '.join(str(size) for size in sizes)}."
        )
    return sizes[0]


def _in_python(
    f: Callable, carry: Any, xs: list, tree: Any, length: int, reverse: bool
) -> tuple[Any, Any]:
    """The loop under `disable_jit`, step by step."""
    if length == 0:
        raise errors.value_error(
            "zero-length scan is not supported in disable_jit() mode because the "
            "output type is unknown."
        )

    def step(carry: Any, row: list[Any]) -> tuple[Any, Any]:
        return f(carry, tree_unflatten(tree, row))

    carry, ys = each_step(step, carry, xs, length, reverse)
    return carry, tree_map(lambda *rows: stack_rows(rows), *ys)


def _bind(
    body: bodies.Body, init: list, xs: list, length: int, reverse: bool, unroll: int
) -> list[Any]:
    """Bind the equation.

    A carry that the body passes through unchanged becomes a constant; a row that it
    passes through is not copied.
    """
    sources = bodies.forwarded(body.closed)
    num_consts, num_carry = len(body.consts), len(init)
    constant = [num_consts + i == s for i, s in enumerate(sources[:num_carry])]
    closed, operands, moved = bodies.carry_to_consts(
        body.closed, Operands(body.consts, init, xs), constant
    )
    first_row = num_consts + num_carry
    rows = [
        xs[s - first_row] if s is not None and s >= first_row else None
        for s in sources[num_carry:]
    ]
    kept = [*[True] * len(operands.carry), *(row is None for row in rows)]
    closed = partial_eval.prune_outputs(closed, kept)
    counts = len(operands.consts), len(operands.carry)
    loop = Scan(closed, length, *counts, reverse, unroll)
    carry, stacked = loop.outputs(loop.bind(closed, operands))
    answers = iter(stacked)
    ys = [next(answers) if row is None else _as_array(row) for row in rows]
    return [*merge(constant, carry, moved), *ys]


def _as_array(x: Any) -> Any:
    return from_numpy(x) if isinstance(x, np.ndarray) else x


@api_boundary
def map(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:
    """`f` of each row, one after the other (or in batches), stacked.

    Args:
      f: a function of a tree of rows.
      xs: arrays of shape `(n, ...)`, or a tree of them.
      batch_size: how many rows `vmap` computes at once; the rest is a smaller batch. 0
        for all at once, None for one by one without `vmap`.

    Returns:
      the tree of results, each stacked to `(n, ...)`.

    Raises:
      ValueError: the leading sizes differ.
    """
    check_functions("lax.map", f=f)
    if batch_size is None:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    from minijax.transforms.vectorization import vmap

    batch_size = index_of(batch_size, "batch_size")
    leaves, tree = tree_flatten(xs)
    count = get_aval(leaves[0]).shape[0] if leaves else 0
    batches = count // batch_size if batch_size else 0
    whole = batches * batch_size
    rows, rest = [], []
    for x in leaves:
        if batches:
            shape = (batches, batch_size, *get_aval(x).shape[1:])
            rows.append(shaping.reshape(_rows(x, 0, whole), shape))
        if whole < count or not batches:
            rest.append(_rows(x, whole, count))
    if not batches:
        return vmap(f)(tree_unflatten(tree, rest))
    ys = scan(lambda _, x: ((), vmap(f)(x)), (), tree_unflatten(tree, rows))[1]
    if whole == count:
        return tree_map(lambda y: merged_axes(y, 0), ys)
    after = vmap(f)(tree_unflatten(tree, rest))
    return tree_map(
        lambda x, y: joining.concatenate([merged_axes(x, 0), y], 0), ys, after
    )


def _rows(x: Any, start: int, stop: int) -> Any:
    shape = get_aval(x).shape
    if (start, stop) == (0, shape[0]):
        return x
    others = shape[1:]
    return slicing.slice(x, (start, *(0 for _ in others)), (stop, *others))
