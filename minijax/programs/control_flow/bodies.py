"""Common to branches and loops: tracing bodies and arranging their arguments.

A body is a Python function of trees; the equation carries it as a program of flat
lists. Whatever the function closes over (arrays, tracers of outer transformations)
becomes a leading argument of the program, so that an equation says everything that it
depends on: `cond`, `while` and `scan` are followed by these constants, and then by what
the user gave.

A body is traced once for a function and the types of its arguments, however often it is
used: so a branch that stands twice is one program, printed once.

In JAX: `lax/control_flow/common.py`.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax import core
from minijax.core.effects import control_flow_allowed_effects, of_program, with_inputs
from minijax.core.language import (
    AbstractValue,
    ClosedJaxpr,
    DebugInfo,
    Jaxpr,
    JaxprEqn,
    Literal,
    Primitive,
    Tracer,
    Var,
    get_aval,
    no_debug_info,
    register,
    type_of_application,
    typecompat,
    weakref_lru_cache,
)
from minijax.core.rules import AxisData, Flags
from minijax.core.signatures import check_outputs, fun_name, fun_place
from minijax.core.state import state
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.programs.control_flow.operands import (
    Operands,
    either,
    order_beside_tangents,
    partition,
    settle,
)
from minijax.values.inner_programs import jaxpr_as_fun
from minijax.values.ref_avals import AbstractRef

# ----------------------------------------------------------------------------------
# From a function to a program
# ----------------------------------------------------------------------------------


class Body(NamedTuple):
    """A traced function of trees: its program takes the constants first."""

    closed: ClosedJaxpr
    consts: list[Any]
    out_tree: Any

    @property
    def out_avals(self) -> list[AbstractValue]:
        return self.closed.out_avals


def trace_with_consts(fun: Callable, args: Sequence[Any], traced_for: str) -> Body:
    """The program of `fun` at the types of its arguments, which are trees."""
    leaves, in_tree = tree_flatten(tuple(args))
    return trace_at_types(fun, in_tree, [get_aval(x) for x in leaves], traced_for)


def trace_at_types(
    fun: Callable,
    in_tree: Any,
    in_avals: Sequence[AbstractValue],
    traced_for: str,
    debug_info: DebugInfo | None = None,
) -> Body:
    """`trace_with_consts` for arguments of a tree (a tuple) and types.

    TypeError when the function returns something that is not an array.
    """
    out_trees: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        outputs, out_tree = tree_flatten(fun(*tree_unflatten(in_tree, leaves)))
        check_outputs(outputs, out_tree, fun_name(fun), traced_for)
        out_trees.append(out_tree)
        return outputs

    info = debug_info or core.signatures.lazy_debug_info(fun, in_tree, traced_for)
    jaxpr, consts = core.partial_eval.trace_to_jaxpr(flat, in_avals, info)
    closed = ClosedJaxpr(core.partial_eval.convert_constvars_jaxpr(jaxpr))
    return Body(closed, consts, out_trees[0])


def trace_body(
    fun: Callable, in_tree: Any, in_avals: Sequence[AbstractValue], traced_for: str
) -> Body:
    """`trace_at_types`, once for a function and the types of its arguments.

    ValueError when the function returns a ref.
    """
    key = (in_tree, tuple(in_avals), traced_for, _axes())
    if not can_be_remembered(fun):
        return _trace(fun, *key)
    body = _trace_once(fun, *key)
    if any(isinstance(x, Tracer) and not x._trace.alive for x in body.consts):
        # The function closes over a value of a transformation that has ended since.
        return _trace(fun, *key)
    return body


def _axes() -> tuple:
    return tuple(state.axis_env.axis_sizes.items())


def can_be_remembered(fun: Callable) -> bool:
    """Whether a cache can hold entries for a function as long as it is alive."""
    try:
        hash(fun)
        weakref.ref(fun)
    except TypeError:
        return False
    return True


def held_weakly(fun: Callable) -> Callable[[], Any]:
    """A weak reference to the function, if Python can make one."""
    return weakref.ref(fun) if can_be_remembered(fun) else lambda: fun


def _trace(
    fun: Callable, in_tree: Any, in_avals: tuple, traced_for: str, axes: tuple
) -> Body:
    debug_info = _debug_info(fun, in_tree, traced_for)
    body = trace_at_types(fun, in_tree, in_avals, traced_for, debug_info)
    if any(type(aval) is AbstractRef for aval in body.out_avals):
        raise core.errors.value_error(
            f"Cannot return `Ref`s from `{traced_for}`: the function {fun_name(fun)} "
            "returned one. Return its content, `ref[...]`."
        )
    return body


_trace_once = weakref_lru_cache(_trace)


def _debug_info(fun: Callable, in_tree: Any, traced_for: str) -> DebugInfo:
    """The body's names for messages; it does not keep the function alive."""
    held = held_weakly(fun)

    def names() -> tuple[str, ...]:
        alive = held()
        if alive is None:
            return ()
        return core.signatures.lazy_debug_info(alive, in_tree, traced_for).arg_names

    return DebugInfo(traced_for, fun_name(fun), fun_place(fun), names)


def check_effects(name: str, *programs: ClosedJaxpr) -> None:
    """NotImplementedError for an effect that a branch or loop must not have."""
    every = frozenset().union(*(closed.effects for closed in programs))
    bad = control_flow_allowed_effects.filter_not_in(every)
    if bad:
        raise NotImplementedError(
            f"Effects not supported in `{name}`: {bad}. Move what has them out of it."
        )


def check_distinct_refs(name: str, args: Sequence[Any], consts: Sequence[Any]) -> None:
    """ValueError when a ref has two names inside: given twice, or closed over too."""
    refs = [x for x in (*args, *consts) if type(get_aval(x)) is AbstractRef]
    atoms = [getattr(x, "atom", x) for x in refs]
    if len({id(atom) for atom in atoms}) < len(atoms):
        raise core.errors.value_error(
            f"only one reference to a mutable array may be passed to `{name}`, but "
            "one ref was given twice, or given and closed over: a write through one "
            "name would change the other."
        )


# ----------------------------------------------------------------------------------
# From a program to a program
# ----------------------------------------------------------------------------------


def traced(
    fun: Callable, in_avals: Sequence[AbstractValue], like: ClosedJaxpr
) -> ClosedJaxpr:
    """The program of a flat function that was made from another program."""
    return ClosedJaxpr(
        *core.partial_eval.trace_to_jaxpr(fun, in_avals, like.debug_info)
    )


def forwarded(closed: ClosedJaxpr) -> list[int | None]:
    """For each output, the position of the input that it is, or None."""
    position = {var: index for index, var in enumerate(closed.jaxpr.invars)}
    return [
        None if type(v) is Literal else position.get(v) for v in closed.jaxpr.outvars
    ]


def reordered(closed: ClosedJaxpr, order: Sequence[int]) -> ClosedJaxpr:
    """The program whose i-th input is the input `order[i]` of `closed`."""
    if list(order) == list(range(len(closed.jaxpr.invars))):
        return closed
    return _reordered(closed, tuple(order))


@weakref_lru_cache
def _reordered(closed: ClosedJaxpr, order: tuple[int, ...]) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    invars = [jaxpr.invars[index] for index in order]
    info = jaxpr.debug_info if len(order) == len(jaxpr.invars) else no_debug_info
    return ClosedJaxpr(jaxpr.replace(invars=invars, debug_info=info), closed.consts)


def to_front(flags: Sequence[bool]) -> list[int]:
    """The order of inputs that puts flagged ones first, for `reordered`."""
    rest, first = partition(flags, range(len(flags)))
    return [*first, *rest]


def to_back(flags: Sequence[bool]) -> list[int]:
    """The order of inputs with the flagged ones last, for `reordered`."""
    rest, last = partition(flags, range(len(flags)))
    return [*rest, *last]


def outputs_reordered(closed: ClosedJaxpr, order: Sequence[int]) -> ClosedJaxpr:
    """The program whose i-th output is the output `order[i]` of `closed`."""
    if list(order) == list(range(len(closed.jaxpr.outvars))):
        return closed
    return _outputs_reordered(closed, tuple(order))


@weakref_lru_cache
def _outputs_reordered(closed: ClosedJaxpr, order: tuple[int, ...]) -> ClosedJaxpr:
    outvars = [closed.jaxpr.outvars[index] for index in order]
    return ClosedJaxpr(closed.jaxpr.replace(outvars=outvars), closed.consts)


@weakref_lru_cache
def with_leading_inputs(
    closed: ClosedJaxpr,
    own: int,
    positions: tuple[int | None, ...],
    avals: tuple[AbstractValue, ...],
) -> ClosedJaxpr:
    """The program with its first `own` inputs replaced by others.

    The i-th of these is the old input `positions[i]`, or an unused one of type
    `avals[i]`.
    """
    jaxpr = closed.jaxpr
    if positions == tuple(range(own)):
        return closed
    leading = [
        Var(aval) if index is None else jaxpr.invars[index]
        for index, aval in zip(positions, avals, strict=True)
    ]
    return ClosedJaxpr(
        jaxpr.replace(invars=[*leading, *jaxpr.invars[own:]], debug_info=no_debug_info),
        closed.consts,
    )


def share_constants(bodies: Sequence[Body]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """Bodies that are called with the same arguments: (programs, all constants)."""
    consts: dict[int, Any] = {}
    for body in bodies:
        for const in body.consts:
            consts.setdefault(id(const), const)
    avals = tuple(get_aval(const) for const in consts.values())
    programs = []
    for body in bodies:
        own = {id(const): index for index, const in enumerate(body.consts)}
        positions = tuple(own.get(key) for key in consts)
        programs.append(with_leading_inputs(body.closed, len(own), positions, avals))
    return programs, list(consts.values())


def with_effects(closed: ClosedJaxpr, effects: frozenset) -> ClosedJaxpr:
    """The program with other effects (on its own inputs)."""
    if closed.effects == effects:
        return closed
    return ClosedJaxpr(closed.jaxpr.replace(effects=effects), closed.consts)


def batched_leading(
    closed: ClosedJaxpr, axis_data: AxisData, mapped: Flags, wanted: Flags | None = None
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program for a batch, every axis first: (program, which outputs have one).

    Outputs flagged in `wanted` get an axis whether they need one or not.
    """
    dims = [0 if flag else None for flag in mapped]
    _, out_dims = core.batching.batch_jaxpr(closed, axis_data, dims)
    flags = [dim is not None for dim in out_dims]
    if wanted is not None:
        flags = either(flags, wanted)
    program, _ = core.batching.batch_jaxpr(closed, axis_data, dims, flags)
    return program, flags


def forward_body(
    body: ClosedJaxpr, nonzeros: Operands
) -> tuple[ClosedJaxpr, Operands, tuple[list[bool], list[bool]]]:
    """A loop's body of values and tangents, each group followed by its tangents.

    Returns the program, which operands have tangents in the end, and which entries of
    the carry and which other outputs do.
    """
    num_carry = len(nonzeros.carry)

    def step(flags: tuple, wanted: tuple) -> tuple:
        forward, after = core.autodiff.jvp_jaxpr(body, flags, wanted)
        return after, (forward, after)

    num_ys = len(body.out_avals) - num_carry
    nonzeros, (forward, after) = settle(nonzeros, num_ys, step)
    forward = reordered(forward, order_beside_tangents(nonzeros))
    nonzeros_out = list(after[:num_carry]), list(after[num_carry:])
    order = order_beside_tangents(nonzeros_out)
    return outputs_reordered(forward, order), nonzeros, nonzeros_out


def returning_constants(
    first: ClosedJaxpr, whole: ClosedJaxpr, places: Sequence, num_outputs: int
) -> ClosedJaxpr:
    """The first half of a split program, with every residual among its outputs.

    A residual that is a constant of the whole program stands in `places`; the caller
    of an equation cannot see these.
    """
    if all(place is None for place in places):
        return first

    def fun(*args: Any) -> list[Any]:
        outputs = jaxpr_as_fun(first)(*args)
        saved = core.partial_eval.fill_forwarded(
            places, whole.consts, outputs[num_outputs:]
        )
        return [*outputs[:num_outputs], *saved]

    return traced(fun, first.in_avals, first)


def carry_to_consts(
    body: ClosedJaxpr, operands: Operands, unchanged: Sequence[bool]
) -> tuple[ClosedJaxpr, Operands, list[Any]]:
    """A loop's body with entries of its carry that it does not change as constants.

    Returns the body, the operands, and the values of those entries.
    """
    consts, carry, rows = operands
    if not any(unchanged):
        return body, operands, []
    num_ys = len(body.out_avals) - len(carry)
    kept = [*(not flag for flag in unchanged), *[True] * num_ys]
    body = core.partial_eval.prune_outputs(body, kept)
    flags = [*[False] * len(consts), *unchanged, *[False] * len(rows)]
    carry, moved = partition(unchanged, carry)
    body = reordered(body, to_front(flags))
    return body, Operands([*moved, *consts], carry, rows), moved


def short(avals: Sequence[AbstractValue]) -> str:
    """Types as error messages name them."""
    return " ".join(aval.str_short() for aval in avals) or "nothing"


def same_types(first: Sequence[AbstractValue], second: Sequence[AbstractValue]) -> bool:
    """Whether two lists of types are as long and agree one by one."""
    return len(first) == len(second) and all(map(typecompat, first, second))


def body_primitive(name: str) -> Primitive:
    """A loop or a branch: a primitive whose parameters are programs.

    Outside of all programs its equation is compiled, and refs are written in place.
    """
    primitive = register(Primitive(name, multiple_results=True))
    primitive.cache_types = False

    @primitive.def_impl
    def run_now(*args, **params) -> list[Any]:
        avals = tuple(get_aval(arg) for arg in args)
        key = (tuple(params.items()), state.trace_key, _axes())
        closed = _one_equation(primitive, avals, *key)
        return core.dispatch.run_closed(closed, args, name)

    return primitive


@functools.lru_cache(maxsize=1024)
def _one_equation(
    primitive: Primitive, avals: tuple, params: tuple, trace_key: Any, axes: tuple
) -> ClosedJaxpr:
    invars = [Var(aval) for aval in avals]
    out_avals, effects = type_of_application(primitive, avals, dict(params))
    outvars = [Var(aval) for aval in out_avals]
    eqn = JaxprEqn(
        list(invars),
        outvars,
        primitive,
        dict(params),
        with_inputs(effects, invars),
        core.source_info.current(),
    )
    return ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], of_program([eqn], invars)))
