"""The place of a program in its grid: program_id and num_programs.

While a kernel or an index map is traced, `state.kernel_grid` is the grid. A size that
is known is a Python int for the kernel; a computed one, and the place itself, are
equations that stand in the kernel's jaxpr, also inside of loops and branches. The
machine's lowering replaces them: `eval_at` runs a kernel with the values given.

In JAX: `pallas/primitives.py`; `PallasGridContext` in `pallas/core.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from minijax.core import language
from minijax.core.state import state
from minijax.primitives.parallel.variation import axis_index_p
from minijax.programs.control_flow import (
    conditionals,
    scan_primitive,
    scans,
    while_loops,
)
from minijax.support.settings import declare, override
from minijax.transforms.walking import run_equations
from minijax.values.inner_programs import called_program


class DynamicGridDim:
    """In place of a size of the grid that is computed when the program runs."""

    def __repr__(self) -> str:
        return "DynamicGridDim"


dynamic_grid_dim = DynamicGridDim()

declare("kernel_grid", None)


@dataclass(frozen=True)
class KernelGrid:
    """The grid of the kernel that is being traced; vmapped axes are not seen."""

    sizes: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class PipelineGrid(KernelGrid):
    """The grid of a pipeline in the kernel, while a step of it is being traced.

    Its indices are values of the kernel, so no other trace may share what depends on
    them: two grids are never equal.
    """

    indices: tuple[Any, ...] = ()

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def tracing_on(grid: Sequence[Any], vmapped_dims: Sequence[int]) -> override:
    """Context in which a kernel or an index map of that grid is traced."""
    seen = (size for axis, size in enumerate(grid) if axis not in vmapped_dims)
    return override("kernel_grid", KernelGrid(tuple(seen)))


def inside_pipeline(indices: Sequence[Any], sizes: Sequence[Any]) -> override:
    """Context in which a step of a pipeline is traced: it has a grid of its own."""
    return override("kernel_grid", PipelineGrid(tuple(sizes), tuple(indices)))


def _size(function: str, axis: int) -> int | DynamicGridDim:
    axis = operator.index(axis)
    grid = state.kernel_grid
    if grid is None:
        raise ValueError(
            f"pl.{function} was called outside of a kernel: only a function that "
            "`pallas_call` runs has a place in a grid."
        )
    if not 0 <= axis < len(grid.sizes):
        raise ValueError(
            f"Axis {axis} is out of bounds for grid {grid.sizes}: {function} takes the "
            "number of an axis of the grid, which `pallas_call(..., grid=...)` sets."
        )
    return grid.sizes[axis]


def _grid_primitive(name: str) -> language.Primitive:
    primitive = language.register(language.Primitive(name))
    primitive.def_abstract_eval(
        lambda *, axis: language.ShapedArray((), np.dtype(np.int32))
    )
    primitive.without("jvp transpose batch", "it has no operands")
    primitive.without("meaning", "it belongs to a program of a grid")
    primitive.without("lower", "the kernel is run at a place of the grid")
    return primitive


program_id_p = _grid_primitive("program_id")
num_programs_p = _grid_primitive("num_programs")


def program_id(axis: int) -> Any:
    """The index of this program along an axis of the grid, an int32 scalar.

    Raises ValueError outside of a kernel, and for an axis that the grid does not have.
    """
    _size("program_id", axis)
    if isinstance(state.kernel_grid, PipelineGrid):
        return state.kernel_grid.indices[axis]
    return program_id_p.bind(axis=axis)


def num_programs(axis: int) -> Any:
    """How many programs there are along an axis: an int, or an int32 if computed.

    Raises ValueError outside of a kernel, and for an axis that the grid does not have.
    """
    size = _size("num_programs", axis)
    return num_programs_p.bind(axis=axis) if size is dynamic_grid_dim else size


# ----------------------------------------------------------------------------------
# Running a kernel at a place
# ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Indices of a program, sizes of the grid, names: along the axes that it sees."""

    indices: Sequence[Any]
    sizes: Sequence[Any]
    names: Sequence[Any] = ()  # of a grid whose axes have names, for `axis_index`

    def index_of(self, eqn: language.JaxprEqn) -> Any:
        """The place along the axis of a `program_id`, or the name of an `axis_index`.

        None for an axis that is not the grid's.
        """
        if eqn.primitive is program_id_p:
            return self.indices[eqn.params["axis"]]
        name = eqn.params["axis_name"]
        return self.indices[self.names.index(name)] if name in self.names else None


def eval_at(
    place: Place, jaxpr: language.Jaxpr, consts: Sequence[Any], args: Sequence[Any]
) -> list[Any]:
    """Run a kernel without refs as the program at that place.

    Where its indices are known now, what follows from them is computed now: numbers,
    and which branch of a `cond` runs (`when(program_id(0) == 0)`).
    """
    env = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args, strict=True))
    return run_equations(jaxpr, env, partial(_eval_eqn, place))


def _eval_eqn(place: Place, eqn: language.JaxprEqn, inputs: list[Any]) -> Any:
    if eqn.primitive in (program_id_p, axis_index_p):
        index = place.index_of(eqn)
        if index is not None:
            return index
    if eqn.primitive is num_programs_p:
        return place.sizes[eqn.params["axis"]]
    if inputs and all(map(_is_known, inputs)) and _gives_number(eqn):
        return _number(eqn, inputs)
    if eqn.primitive is conditionals.cond_p and _is_known(inputs[0]):
        branches = eqn.params["branches"]
        chosen = branches[min(max(int(inputs[0]), 0), len(branches) - 1)]
        return eval_at(place, chosen.jaxpr, chosen.consts, inputs[1:])
    if any(asks_for_place(inner) for inner in language.jaxprs_in_params(eqn.params)):
        return _rules.get(eqn.primitive, _eval_call)(place, eqn, inputs)
    return eqn.primitive.rebind(inputs, eqn.params)


def _is_known(x: Any) -> bool:
    return isinstance(x, (np.integer, np.bool_, int))


def _gives_number(eqn: language.JaxprEqn) -> bool:
    """Whether an equation gives one integer or bool, and can be computed in NumPy."""
    if eqn.primitive.meaning is None or len(eqn.outvars) != 1:
        return False
    aval: Any = eqn.outvars[0].aval
    return not eqn.effects and aval.shape == () and aval.dtype.kind in "iub"


def _number(eqn: language.JaxprEqn, inputs: list[Any]) -> Any:
    assert eqn.primitive.meaning is not None
    out = eqn.primitive.meaning(*inputs, **eqn.params)
    aval: Any = eqn.outvars[0].aval
    number = np.asarray(out, aval.dtype).reshape(())[()]
    return [number] if eqn.primitive.multiple_results else number


def asks_for_place(jaxpr: language.Jaxpr) -> bool:
    """Whether a program, or one inside of it, asks for its place in the grid."""
    return any(
        eqn.primitive in (program_id_p, num_programs_p, axis_index_p)
        or any(asks_for_place(inner) for inner in language.jaxprs_in_params(eqn.params))
        for eqn in jaxpr.eqns
    )


def _function(place: Place, closed: language.ClosedJaxpr) -> Callable[..., list[Any]]:
    return lambda *args: eval_at(place, closed.jaxpr, closed.consts, args)


def _eval_call(place: Place, eqn: language.JaxprEqn, inputs: list[Any]) -> list[Any]:
    program = called_program(eqn.params)
    if program is not None:
        return _function(place, program)(*inputs)
    raise NotImplementedError(
        f"program_id inside of the program that '{eqn.primitive}' carries: ask for it "
        "before, and pass it in."
    )


def _eval_cond(place: Place, eqn: language.JaxprEqn, inputs: list[Any]) -> list[Any]:
    index, *operands = inputs
    branches = [_function(place, closed) for closed in eqn.params["branches"]]
    return conditionals.switch(index, branches, *operands)


def _eval_while(place: Place, eqn: language.JaxprEqn, inputs: list[Any]) -> list[Any]:
    loop = while_loops.While(**eqn.params)
    operands = loop.operands(inputs)
    condition, body = (
        _function(place, closed) for closed in (loop.cond_jaxpr, loop.body_jaxpr)
    )
    return while_loops.while_loop(
        lambda carry: condition(*operands.cond_consts, *carry)[0],
        lambda carry: body(*operands.body_consts, *carry),
        list(operands.carry),
    )


def _eval_scan(place: Place, eqn: language.JaxprEqn, inputs: list[Any]) -> list[Any]:
    loop = scan_primitive.Scan(**eqn.params)
    consts, carry, xs = loop.operands(inputs)
    run = _function(place, loop.jaxpr)

    def body(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        return loop.outputs(run(*consts, *carry, *row))

    carry, ys = scans.scan(
        body, carry, xs, length=loop.length, reverse=loop.reverse, unroll=loop.unroll
    )
    return [*carry, *ys]


_rules: dict[language.Primitive, Callable] = {
    conditionals.cond_p: _eval_cond,
    while_loops.while_p: _eval_while,
    scan_primitive.scan_p: _eval_scan,
}
