"""jit: trace once for each kind of arguments, compile once, then only launch.

A call goes through three doors. (1) The kinds of the arguments (types, tree, static
values) are looked up among the calls seen before; a hit launches the executable at
once. (2) On a miss the Python function is traced to a jaxpr, unless it was traced for
such arguments already. (3) The equation `jit_p` is bound with that jaxpr: outside of
all transformations it compiles and runs, inside of one it is transformed as a whole,
jaxpr to jaxpr, by the rules at the end of this file.

In JAX: `jax/_src/pjit.py`.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minijax.compile import api_util, dispatch, mlir
from minijax.language import pretty
from minijax.language.array import Array, first_device
from minijax.language.core import (
    ClosedJaxpr,
    DebugInfo,
    JaxprEqn,
    Primitive,
    Tracer,
    eval_trace,
    get_aval,
    register,
)
from minijax.language.more_avals import AbstractRef
from minijax.language.rules import Accumulator, Zero
from minijax.support import errors, events, source_info
from minijax.support.effects import of_equation, positional
from minijax.support.thread_state import state
from minijax.support.trees import tree_flatten, tree_unflatten
from minijax.transforms import (
    ad,
    batching,
    discharge,
    inlining,
    partial_eval,
    rematerialize,
)


class _Unspecified:
    """The sharding of an argument about which nothing was said."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = _Unspecified()


@dataclass(frozen=True)
class JitOptions:
    """What `jit` was asked for: part of every cache key."""

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    keep_unused: bool = False
    inline: bool = False
    compiler_options: tuple = ()


@dataclass
class Traced:
    """A function traced for one kind of arguments: its program and how to call it.

    `outer` are tracers of outer transformations that it closes over: they are passed as
    leading arguments.
    """

    closed: ClosedJaxpr
    out_tree: Any
    outer: list[Any]
    params: dict[str, Any]
    debug_info: DebugInfo


class _Call:
    """What a call that was seen before needs: the executable and the result's tree."""

    __slots__ = ("program", "out_tree", "unflatten")

    def __init__(self, program: Any, out_tree: Any):
        self.program = program
        self.out_tree = out_tree
        self.unflatten = out_tree.unflatten


class _Caches:
    """The caches of one function under one set of options; they die with it."""

    __slots__ = ("calls", "traced", "lock", "__weakref__")

    def __init__(self) -> None:
        self.calls: dict[tuple, _Call] = {}
        self.traced: dict[tuple, Traced] = {}
        self.lock = threading.RLock()

    def clear(self) -> None:
        self.calls.clear()
        self.traced.clear()


_CACHE_SIZE = 4096
_caches_of_functions: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
_caches_lock = threading.Lock()
all_caches: weakref.WeakSet = weakref.WeakSet()


def _caches_for(fun: Callable, options: JitOptions) -> _Caches:
    """The caches of a function: `jit(f)` twice shares them."""
    with _caches_lock:
        try:
            by_options = _caches_of_functions.setdefault(fun, {})
        except TypeError:  # not hashable, or no weak references to it
            by_options = {}
        caches = by_options.get(options)
        if caches is None:
            caches = by_options[options] = _Caches()
            all_caches.add(caches)
        return caches


class JitFunction:
    """A function compiled by XLA: what `jit` returns.

    In JAX: the C++ class `PjitFunction`.
    """

    def __init__(self, fun: Callable, options: JitOptions):
        self._fun = fun
        self._options = options
        self._signature = api_util.CallSignature(fun, options)
        self._caches = _caches_for(fun, options)
        # Without static arguments a call can be looked up by its tree and its leaves.
        self._plain = not (options.static_argnums or options.static_argnames)
        functools.update_wrapper(self, fun, updated=())
        self.__wrapped__ = fun

    def __repr__(self) -> str:
        return f"<minijax.jit function {api_util.fun_name(self._fun)}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> tuple:
        return (_make_jit_function, (self._fun, self._options))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if state.trace is eval_trace and self._plain and state.default_device is None:
            leaves, tree = tree_flatten((args, kwargs))
            avals = []
            buffers = []
            for leaf in leaves:
                if type(leaf) is not Array or leaf._placed is not None:
                    break
                avals.append(leaf.aval)
                buffers.append(leaf._buffer)
            else:
                key = (tree, tuple(avals), state.trace_key)
                call = self._caches.calls.get(key)
                if call is not None:
                    if events.subscribers:
                        events.emit("jit.hit", function=self, key=key)
                    return call.unflatten(call.program(buffers))
        try:
            return self._call(args, kwargs)
        except Exception as error:
            errors.filter_traceback.run(error)
            raise

    def _call(self, args: tuple, kwargs: dict) -> Any:
        """The general way: static arguments, host values, tracers, first calls."""
        if state.disable_jit:
            return self._fun(*args, **kwargs)
        bound = self._signature.bind(args, kwargs)
        avals = []
        buffers = []
        staged = state.trace is not eval_trace
        usual = state.default_device is None
        for position, leaf in enumerate(bound.leaves):
            if type(leaf) is Array:
                avals.append(leaf.aval)
                buffers.append(leaf._buffer)
                usual = usual and leaf._placed is None
                continue
            staged = staged or isinstance(leaf, Tracer)
            buffers.append(None)
            try:
                avals.append(get_aval(leaf))
            except TypeError as error:
                raise self._signature.bad_leaf(bound, position, error) from None
            if type(avals[-1]) is AbstractRef:
                self._signature.check_distinct_ref(bound, position)
        key = (bound.tree, tuple(avals), state.trace_key, bound.statics)
        if staged:
            traced = self._traced(bound, key)
            outputs = jit_p.bind(*traced.outer, *bound.leaves, **traced.params)
            return tree_unflatten(traced.out_tree, outputs)
        device, committed, buffers = dispatch.place.run(bound.leaves, avals)
        call_key: tuple = key[:3] if self._plain else key
        if committed or device != first_device():
            call_key = (key, device, committed)
        try:
            call = self._caches.calls.get(call_key)
        except TypeError:
            self._signature.check_statics(bound)
            raise
        if call is None:
            call = self._miss(bound, key, call_key, device, committed)
        elif events.subscribers:
            events.emit("jit.hit", function=self, key=key)
        return call.unflatten(call.program(buffers))

    def _miss(
        self, bound: Any, key: tuple, call_key: tuple, device: Any, committed: bool
    ) -> _Call:
        caches = self._caches
        with caches.lock:
            call = caches.calls.get(call_key)
            if call is not None:
                return call
            if events.subscribers:
                known = list(caches.calls)
                events.emit("jit.miss", function=self, key=key, known=known)
            traced = self._traced(bound, key)
            if traced.outer:
                raise api_util.outer_tracer_error(traced.outer[0])
            program = dispatch.compiled.run(
                traced.closed,
                traced.params["name"],
                traced.params["donated_invars"],
                self._options.keep_unused,
                device,
                committed,
                self._options.compiler_options,
            )
            call = _Call(program, traced.out_tree)
            if len(caches.calls) >= _CACHE_SIZE:
                caches.calls.clear()  # a bound on memory, far beyond ordinary use
            caches.calls[call_key] = call
            return call

    def _traced(self, bound: Any, key: tuple) -> Traced:
        """The program for arguments of this kind, traced when first needed."""
        axes = state.axis_env.axis_sizes
        if axes:
            key = (*key, tuple(axes.items()))
        try:
            traced = self._caches.traced.get(key)
        except TypeError:
            self._signature.check_statics(bound)
            raise
        if traced is not None and all(t._trace.alive for t in traced.outer):
            return traced
        with self._caches.lock:
            traced = self._caches.traced.get(key)
            if traced is not None and all(t._trace.alive for t in traced.outer):
                return traced
            traced = trace_function(self._signature, bound, key[1], self._options)
            if len(self._caches.traced) >= _CACHE_SIZE:
                self._caches.traced.clear()
            # Tracers of an outer trace that are kept here would count as leaked.
            if not (traced.outer and state.check_tracer_leaks):
                self._caches.traced[key] = traced
            return traced

    def trace_call(self, args: tuple, kwargs: dict) -> tuple[Traced, Any]:
        """(the traced program for these arguments, the bound arguments).

        Arguments may be `ShapeDtypeStruct`s.
        """
        bound = self._signature.bind(args, kwargs)
        avals = api_util.abstract_leaf(self._signature, bound)
        self._signature.check_statics(bound)
        key = (bound.tree, avals, state.trace_key, bound.statics)
        return self._traced(bound, key), bound

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """The function traced for these arguments: `stages.Traced`."""
        from minijax.compile import stages

        traced, bound = self.trace_call(args, kwargs)
        return stages.Traced(traced, bound, self._options)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The function lowered to StableHLO for these arguments: `stages.Lowered`."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The result's tree of `ShapeDtypeStruct`s, without computing."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget all traced and compiled programs of the function."""
        self._caches.clear()

    def _cache_size(self) -> int:
        """How many kinds of calls were compiled."""
        return len(self._caches.calls)


errors.boundaries.add(JitFunction.__call__.__code__)


def _make_jit_function(fun: Callable, options: JitOptions) -> JitFunction:
    return JitFunction(fun, options)


def trace_function(
    signature: Any, bound: Any, avals: Sequence[Any], options: JitOptions
) -> Traced:
    """Trace a user's function for one kind of arguments."""
    debug_info = signature.debug_info(bound, "jit")
    debug_info.check_tracing_allowed()
    flat, result = api_util.flatten_function(signature, bound)
    with source_info.fresh_context():
        jaxpr, consts = partial_eval.trace_to_jaxpr(flat, avals, debug_info)
    jaxpr.debug_info = api_util.with_result_paths(debug_info, result.tree)
    api_util.check_refs(jaxpr, consts, bound.leaves)
    outer: list[Any] = []
    if any(isinstance(const, Tracer) for const in consts):
        jaxpr = partial_eval.convert_constvars_jaxpr(jaxpr)
        outer, consts = list(consts), []
    closed = ClosedJaxpr(jaxpr, consts)
    donated = (False,) * len(outer) + signature.donated_leaves(bound)
    params = jit_params(
        closed,
        debug_info.name,
        donated,
        options.keep_unused,
        options.inline,
        options.compiler_options,
    )
    return Traced(closed, result.tree, outer, params, jaxpr.debug_info)


def jit_params(
    closed: ClosedJaxpr,
    name: str,
    donated: tuple[bool, ...] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: tuple = (),
) -> dict[str, Any]:
    """The parameters of an equation of `jit_p`."""
    num_in, num_out = len(closed.jaxpr.invars), len(closed.jaxpr.outvars)
    return {
        "jaxpr": closed,
        "in_shardings": (UNSPECIFIED,) * num_in,
        "out_shardings": (UNSPECIFIED,) * num_out,
        "in_layouts": (None,) * num_in,
        "out_layouts": (None,) * num_out,
        "donated_invars": donated or (False,) * num_in,
        "ctx_mesh": None,
        "name": name,
        "keep_unused": keep_unused,
        "inline": inline,
        "compiler_options_kvs": compiler_options,
    }


def changed(
    params: dict[str, Any], closed: ClosedJaxpr, donated: tuple | None = None
) -> dict[str, Any]:
    """The parameters of a jit equation for another program of the same origin."""
    return jit_params(
        closed,
        params["name"],
        donated,
        params["keep_unused"],
        params["inline"],
        params["compiler_options_kvs"],
    )


# ----------------------------------------------------------------------------------
# jit as a primitive: a program inside a program, with all its rules
# ----------------------------------------------------------------------------------

jit_p = register(Primitive("jit", multiple_results=True))
jit_p.cache_types = False


@jit_p.def_effectful_abstract_eval
def _jit_type(*avals: Any, jaxpr: ClosedJaxpr, **_: Any) -> tuple:
    effects = jaxpr.effects
    if effects:
        effects = positional(effects, jaxpr.jaxpr.invars)
    return jaxpr.out_avals, effects


@jit_p.def_impl
def _jit_impl(*args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Array]:
    return dispatch.run_closed(
        jaxpr,
        args,
        params["name"],
        params["donated_invars"] if any(params["donated_invars"]) else None,
        params["keep_unused"],
        params["compiler_options_kvs"],
    )


def _jit_staging(trace: Any, args: Sequence[Any], params: dict) -> Any:
    """Inlined functions leave no equation; refs closed over become arguments."""
    if params["inline"]:
        return inlining.inline_jaxpr(trace, params["jaxpr"], args)
    opened, refs = discharge.hoist_refs(params["jaxpr"])
    if refs:
        return jit_p.bind(*args, *refs, **changed(params, opened))
    return NotImplemented


jit_p.staging = _jit_staging


@jit_p.def_jvp_rule
def _jit_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple:
    closed = params["jaxpr"]
    nonzeros = [type(t) is not Zero for t in tangents]
    jvp_closed, nonzeros_out = ad.jvp_jaxpr(closed, nonzeros)
    given = [t for t in tangents if type(t) is not Zero]
    outputs = jit_p.bind(*primals, *given, **changed(params, jvp_closed))
    count = len(closed.jaxpr.outvars)
    rest = iter(outputs[count:])
    return outputs[:count], [
        next(rest) if nonzero else Zero(aval.to_tangent_aval())
        for nonzero, aval in zip(nonzeros_out, closed.out_avals)
    ]


def _jit_linearize(nonzeros: tuple[bool, ...], *primals: Any, **params: Any) -> tuple:
    """Two jits: the primal one, which also returns residuals, and the linear one.

    Outputs that are inputs, and residuals that are outputs, are not returned twice.
    """
    closed = params["jaxpr"]
    primal, num_new, nonzeros_out, forwarded, linear = ad.linearize_jaxpr(
        closed, nonzeros
    )
    outputs, num_outputs = bind_forwarding(primal, primals, params, num_new)
    outs, new = outputs[:num_outputs], outputs[num_outputs:]
    residuals = partial_eval.fill_forwarded(forwarded, [*closed.consts, *primals], new)

    def apply_linear(residuals: Sequence[Any], *tangents: Any) -> list[Any]:
        given = [t for t, nonzero in zip(tangents, nonzeros) if nonzero]
        answers = iter(jit_p.bind(*residuals, *given, **changed(params, linear)))
        return [
            next(answers) if nonzero else Zero(aval.to_tangent_aval())
            for nonzero, aval in zip(nonzeros_out, closed.out_avals)
        ]

    return outs, nonzeros_out, residuals, apply_linear


jit_p.linearize = _jit_linearize


def bind_forwarding(
    closed: ClosedJaxpr, args: Sequence[Any], params: dict, num_residuals: int
) -> tuple[list[Any], int]:
    """Bind a jit whose last outputs are residuals, without returning anything twice.

    Returns all outputs and the number of those that are not residuals.
    """
    jaxpr = closed.jaxpr
    num_outputs = len(jaxpr.outvars) - num_residuals
    inputs = {id(var): index for index, var in enumerate(jaxpr.invars)}
    from_input: list[int | None] = [inputs.get(id(v)) for v in jaxpr.outvars]
    from_input[num_outputs:] = [None] * num_residuals
    first: dict[int, int] = {}
    from_output: list[int | None] = []
    for index, var in enumerate(jaxpr.outvars):
        source = first.get(id(var)) if index >= num_outputs else None
        from_output.append(source)
        if index < num_outputs and from_input[index] is None:
            first.setdefault(id(var), index)
    keep = [a is None and b is None for a, b in zip(from_input, from_output)]
    pruned = partial_eval.prune_outputs(closed, keep)
    answers = iter(jit_p.bind(*args, **changed(params, pruned)))
    outputs: list[Any] = []
    for index, kept in enumerate(keep):
        if kept:
            outputs.append(next(answers))
        elif from_input[index] is not None:
            outputs.append(args[from_input[index]])  # type: ignore[index]
        else:
            outputs.append(outputs[from_output[index]])  # type: ignore[index]
    return outputs, num_outputs


@jit_p.def_transpose
def _jit_transpose(cts: Sequence[Any], *args: Any, **params: Any) -> None:
    """Bind the jit of the transposed program and add its answers up."""
    transposed, answered = ad.transpose_jaxpr(params["jaxpr"], args, cts)
    values = ad.transposed_inputs(args)
    given = [ct for ct in cts if type(ct) is not Zero]
    answers = iter(jit_p.bind(*values, *given, **changed(params, transposed)))
    accumulators = [arg for arg in args if isinstance(arg, Accumulator)]
    for accumulator, has_answer in zip(accumulators, answered, strict=True):
        if has_answer:
            accumulator.accum(next(answers))


@jit_p.def_batch
def _jit_batch(axis_data: Any, args: Any, dims: Any, **params: Any) -> tuple:
    batched, out_dims = batching.batch_jaxpr(params["jaxpr"], axis_data, dims)
    donated = params["donated_invars"]
    return jit_p.bind(*args, **changed(params, batched, donated)), out_dims


def _jit_dce(used: list[bool], eqn: JaxprEqn) -> JaxprEqn | None:
    closed, used_inputs = partial_eval.dce_closed_jaxpr(eqn.params["jaxpr"], used)
    donated = eqn.params["donated_invars"]
    params = changed(
        eqn.params,
        closed,
        tuple(flag for flag, kept in zip(donated, used_inputs) if kept),
    )
    invars = [v for v, kept in zip(eqn.invars, used_inputs) if kept]
    return eqn.replace(
        invars=invars,
        outvars=[v for v, kept in zip(eqn.outvars, used) if kept],
        params=params,
        effects=of_equation(closed.jaxpr, invars),
    )


jit_p.dce = _jit_dce


def _jit_discharge(
    discharged: Sequence[bool], in_avals: Any, out_avals: Any, *args: Any, **params: Any
) -> tuple[list[Any], list[Any]]:
    closed = discharge.discharge_state(params["jaxpr"], discharged)
    results = jit_p.bind(*args, **changed(params, closed))
    return discharge.split_contents(results, len(out_avals), discharged)


jit_p.discharge = _jit_discharge
jit_p.partial_eval_custom = rematerialize.closed_call_rule(changed)


@pretty.borrows_names
@pretty.printed_first("name")
def _jit_pretty(params: dict[str, Any]) -> dict[str, Any]:
    """Print the name and the program; the rest only where it says something."""
    shown = {"name": params["name"], "jaxpr": params["jaxpr"]}
    if any(params["donated_invars"]):
        shown["donated_invars"] = params["donated_invars"]
    if params["keep_unused"]:
        shown["keep_unused"] = True
    if params["compiler_options_kvs"]:
        shown["compiler_options_kvs"] = params["compiler_options_kvs"]
    return shown


jit_p.pretty = _jit_pretty


@jit_p.def_lowering
def _jit_lowering(
    ctx: mlir.LoweringRuleContext, *operands: Any, jaxpr: ClosedJaxpr, **params: Any
) -> list[Any]:
    return ctx.call(jaxpr, params["name"], *operands)
