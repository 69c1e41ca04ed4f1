"""Runs a function under `vmap`, and notes what each batching rule writes.

A class of its own stands in the place of `BatchTrace` meanwhile, as a learner's class
may: it runs the rules of minijax, or of the learner, and notes which equations they
wrote and where the batch axis of each value is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minijax
from minijax.core import errors, source_info
from minijax.core.avals import get_aval
from minijax.core.batching import BatchTrace, BatchTracer
from minijax.core.jit import jit_p
from minijax.core.language import ClosedJaxpr, Jaxpr, JaxprEqn, Var, chosen, eval_jaxpr
from minijax.core.partial_eval import DynamicJaxprTrace, trace_to_jaxpr
from minijax.core.signatures import CallSignature, fun_name, lazy_debug_info
from minijax.core.state import state
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.support.tree_util import broadcast_prefix
from minijax_lab.explain.foreign_programs import told_of_jax
from minijax_lab.explain.residuals import is_array, type_of


def is_none(axis: Any) -> bool:
    """None is an axis here, and not an empty tree."""
    return axis is None


def title(function: Callable) -> str:
    """A function with the transformations that it went through: `vmap(predict)`."""
    around: list[str] = []
    name = fun_name(function).replace("<lambda>", "lambda")
    while True:
        # `see.live` calls a function with what its controls say.
        function = getattr(function, "stands_for", function)
        code = getattr(function, "__code__", None)
        if code is None or source_info.is_user_filename(code.co_filename):
            break
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        inner = getattr(function, "__wrapped__", None)
        if code in errors.boundaries:
            inner = next((cell for cell in cells if callable(cell)), inner)
        else:
            # `vmap.<locals>.vmap_f`, as Python names what `vmap` returns.
            around.append(code.co_qualname.partition(".")[0])
        if inner is None:
            break
        function = inner
    return "(".join([*around, name]) + ")" * len(around)


@dataclass
class Written:
    """What was written while one equation was batched: a range of the equations."""

    primitive: Any
    dims: list[int | None]
    outs: list[Any]
    start: int
    end: int


class Watch:
    """Notes what a `BatchTrace` writes, in every program that is batched meanwhile."""

    def __init__(self) -> None:
        # For each program that is being written: its equations, and what was batched.
        self.calls: dict[int, tuple[list[JaxprEqn], list[Written]]] = {}
        self.active: set[int] = set()
        # Batch axes of variables, that of the innermost vmap last.
        self.axes: dict[Var, list[int]] = {}
        watch = self
        base = chosen(BatchTrace)  # minijax's own, or that of `minijax.replace`

        class WatchedBatchTrace(base):  # type: ignore[misc, valid-type]
            """A `BatchTrace` that tells what it does.

            A class for each recording: it is part of the key of every cache, so that
            programs are batched anew and every equation is seen.
            """

            def __init__(self, parent: Any, tag: Any, axis_data: Any) -> None:
                super().__init__(parent, tag, axis_data)
                self.watched_parent = parent
                self.watched_size = axis_data.size

            def process_primitive(
                self, primitive: Any, args: Sequence[Any], params: dict[str, Any]
            ) -> Any:
                run = functools.partial(
                    super().process_primitive, primitive, args, params
                )
                return watch.note(self, primitive, args, run)

            def process_custom_jvp_call(
                self, primitive: Any, *call: Any, **params: Any
            ) -> Any:
                run = functools.partial(
                    super().process_custom_jvp_call, primitive, *call, **params
                )
                return watch.note(self, primitive, call[-1], run)

            def process_custom_vjp_call(
                self, primitive: Any, *call: Any, **params: Any
            ) -> Any:
                run = functools.partial(
                    super().process_custom_vjp_call, primitive, *call, **params
                )
                return watch.note(self, primitive, call[-1], run)

            def tracer(self, value: Any, dim: int | None) -> Any:
                made = super().tracer(value, dim)
                if dim is not None:
                    watch.note_axes(value, dim)
                return made

        self.trace_class = WatchedBatchTrace

    def note(
        self, trace: Any, primitive: Any, args: Sequence[Any], run: Callable
    ) -> Any:
        """Runs a rule, and notes which equations it wrote."""
        parent = trace.watched_parent
        if not isinstance(parent, DynamicJaxprTrace) or id(parent) in self.active:
            return run()
        eqns, calls = self.calls.setdefault(id(parent), (parent.eqns, []))
        dims = [trace.to_pair(arg)[1] for arg in args]
        start = len(eqns)
        self.active.add(id(parent))
        try:
            out = run()
        finally:
            self.active.discard(id(parent))
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        pairs = [trace.to_pair(value) for value in outs]
        for value, dim in pairs:
            # Most were noted when their tracers were made.
            if dim is not None and getattr(value, "atom", None) not in self.axes:
                self.note_axes(value, dim)
        calls.append(Written(primitive, dims, pairs, start, len(eqns)))
        return out

    def note_axes(self, value: Any, dim: int) -> None:
        """Notes the batch axes of the variable that a batched value stands for."""
        if not isinstance(value, BatchTracer):
            atom = getattr(value, "atom", None)
            if isinstance(atom, Var) and len(self.axes.get(atom, ())) <= 1:
                self.axes[atom] = [dim]
            return
        found = [dim]
        while isinstance(value, BatchTracer):
            dim = value.batch_dim
            found = [axis + (axis >= dim) for axis in found] + [dim]
            value = value.value
        atom = getattr(value, "atom", None)
        if isinstance(atom, Var) and len(found) >= len(self.axes.get(atom, ())):
            self.axes[atom] = found

    def calls_of(self, jaxpr: Jaxpr) -> list[Written] | None:
        """What was batched to write a program; None if it was not seen."""
        ids = {id(eqn) for eqn in jaxpr.eqns}
        for eqns, calls in self.calls.values():
            if eqns is jaxpr.eqns:
                return calls
            if len(eqns) == len(ids) and all(id(eqn) in ids for eqn in eqns):
                return calls
        return None


class Call:
    """A function, its arguments and axes, traced and batched under a `Watch`."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple,
        kwargs: dict[str, Any],
        in_axes: Any,
        out_axes: Any,
        axis_size: int | None,
        axis_name: Any,
    ) -> None:
        self.function = function
        self.in_axes, self.out_axes = in_axes, out_axes
        self.axis_size, self.axis_name = axis_size, axis_name
        self.watch = Watch()
        self.written: list[Written] = []
        self.dims: list[int | None] = []
        self.out_dims: list[Any] = []  # where `out_axes` puts the axis of each result
        leaves, tree = tree_flatten((args, kwargs))
        places = [place for place, leaf in enumerate(leaves) if is_array(leaf)]
        self.values = [leaves[place] for place in places]
        signature = CallSignature(function)
        names = getattr(function, "input_names", None)
        if names is None or kwargs or len(names) != len(leaves):
            names = signature.leaf_names(signature.bind(args, kwargs))
        self.names = [names[place] for place in places]
        self.size = 0
        self.closed: ClosedJaxpr | None = None

        @functools.wraps(function)
        def one_by_one(*args: Any, **kwargs: Any) -> Any:
            return self.run_one(args, kwargs)

        batched = minijax.vmap(
            one_by_one,
            in_axes=in_axes,
            out_axes=out_axes,
            axis_name=axis_name,
            axis_size=axis_size,
        )

        def whole(*traced: Any) -> list[Any]:
            full = list(leaves)
            for position, value in zip(places, traced):
                full[position] = value
            own_args, own_kwargs = tree_unflatten(tree, full)
            answer = batched(*own_args, **own_kwargs)
            flat = tree_flatten(answer)[0]
            if not isinstance(out_axes, int):
                self.out_dims = broadcast_prefix(out_axes, answer, is_none)
            else:
                self.out_dims = [out_axes] * len(flat)
            return flat

        avals = [type_of(value) for value in self.values]
        info = lazy_debug_info(function, tree, "vmap")
        try:
            with minijax.replace(BatchTrace=self.watch.trace_class):
                jaxpr, consts = trace_to_jaxpr(whole, avals, info)
        except TypeError as error:
            told = told_of_jax(function, "see.vmap", error)
            if told is None:
                raise
            raise told from None
        self.batched = ClosedJaxpr(jaxpr, consts)

    def run_one(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Traces the function for one example, and batches equation by equation.

        `vmap` calls it in place of the function: the current trace is a `BatchTrace`.
        """
        trace: Any = state.trace
        leaves, tree = tree_flatten((args, kwargs))
        places = [place for place, leaf in enumerate(leaves) if is_array(leaf)]
        trees: list[Any] = []

        def flat(*traced: Any) -> list[Any]:
            full = list(leaves)
            for position, value in zip(places, traced):
                full[position] = value
            own_args, own_kwargs = tree_unflatten(tree, full)
            outputs, out_tree = tree_flatten(self.function(*own_args, **own_kwargs))
            trees.append(out_tree)
            return outputs

        given = [leaves[place] for place in places]
        info = lazy_debug_info(self.function, tree, "vmap")
        jaxpr, consts = trace_to_jaxpr(flat, [get_aval(x) for x in given], info)
        closed = opened(ClosedJaxpr(jaxpr, consts))
        self.closed, self.size = closed, trace.watched_size
        self.dims = [trace.to_pair(x)[1] for x in given]
        parent = trace.watched_parent
        # The first equation of the function is the first one that is noted here.
        self.watch.calls[id(parent)] = (parent.eqns, self.written)
        outputs = eval_jaxpr(closed.jaxpr, closed.consts, *given)
        return tree_unflatten(trees[0], outputs)

    def check_values(self) -> None:
        """ValueError unless all arguments have values."""
        for name, value in zip(self.names, self.values):
            if not isinstance(value, (np.ndarray, minijax.Array)):
                raise ValueError(
                    f"see.vmap got values=True, and {name} has no values: it is "
                    f"{type(value).__name__}. Pass an array, or leave values=True out."
                )

    @property
    def transformation(self) -> str:
        """The call as written: `vmap(f, in_axes=(None, 0))`."""
        said = [title(self.function)]
        if not (isinstance(self.in_axes, int) and self.in_axes == 0):
            said.append(f"in_axes={self.in_axes!r}")
        if not (isinstance(self.out_axes, int) and self.out_axes == 0):
            said.append(f"out_axes={self.out_axes!r}")
        if self.axis_size is not None:
            said.append(f"axis_size={self.axis_size}")
        if self.axis_name is not None:
            said.append(f"axis_name={self.axis_name!r}")
        return f"vmap({', '.join(said)})"


def opened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program of a jitted function itself, where it is only called."""
    while len(closed.eqns) == 1 and closed.eqns[0].primitive is jit_p:
        (eqn,) = closed.eqns
        if (
            closed.jaxpr.outvars != list(eqn.outvars)
            or list(eqn.invars) != closed.jaxpr.invars
            or closed.consts
        ):
            break
        closed = eqn.params["jaxpr"]
    return closed
