"""jit: trace and compile once for each kind of arguments, then only launch.

The life of a call, `jit(f)(x)`:

1. `JitFunction.__call__` flattens the arguments and looks the call up under its key:
   the tree, the types of the leaves, the settings, the values of static arguments. On
   a hit the executable is launched at once.
2. On a miss, `f` is traced to a jaxpr (`trace_function`), unless it was traced for
   arguments of this kind already, and the jaxpr is compiled (`dispatch.compiled`).
3. Inside another transformation nothing is compiled. The primitive `jit_p` is bound
   with the jaxpr as a parameter, and the rules at the end of this file transform the
   jaxpr as a whole. A `jit_p` that reaches `EvalTrace` is compiled and run.

Two calls have arguments of the same kind if their keys are equal.

In JAX: `jax/_src/pjit.py`.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import (
    autodiff,
    batching,
    dispatch,
    errors,
    events,
    language,
    partial_eval,
    pretty,
    signatures,
    source_info,
)
from .array import Array, first_device
from .effects import of_equation, positional
from .language import ClosedJaxpr, JaxprEqn, Tracer, eval_trace
from .rules import Zero
from .signatures import Bound, CallSignature, JitOptions
from .state import state
from .trees import tree_unflatten


class _Unspecified:
    """Stands for a sharding that was not given."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = _Unspecified()


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


class _Call:
    """What a repeated call needs: the compiled program and the result's tree."""

    __slots__ = ("program", "unflatten", "donated")

    def __init__(self, program: Any, traced: Traced):
        self.program = program
        self.unflatten = traced.out_tree.unflatten
        donated = traced.params["donated_invars"]
        self.donated = [index for index, flag in enumerate(donated) if flag]


class _Caches:
    """The caches of one function under one set of options; freed with the function."""

    __slots__ = ("calls", "traced", "lock", "__weakref__")

    def __init__(self) -> None:
        self.calls: dict[tuple, _Call] = {}
        self.traced: dict[tuple, Traced] = {}
        self.lock = threading.RLock()

    def usable(self, key: tuple) -> Traced | None:
        """The traced program, unless it closes over tracers that have ended."""
        traced = self.traced.get(key)
        if traced is None or all(t._trace.alive for t in traced.outer):
            return traced
        return None

    def clear(self) -> None:
        self.calls.clear()
        self.traced.clear()


_CACHE_SIZE = 4096
_caches_of_functions: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
_caches_lock = threading.Lock()
all_caches: weakref.WeakSet = weakref.WeakSet()


def _caches_for(fun: Callable, options: JitOptions) -> _Caches:
    """The caches of a function: every `jit(f)` of it with equal options shares them."""
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


def jit(
    fun: Callable,
    *,
    static_argnums: Any = (),
    static_argnames: Any = (),
    **options: Any,
) -> JitFunction:
    """`fun`, compiled by XLA.

    `options` are the other fields of `JitOptions`. Users call the `jit` of
    `jit_api.py`, which documents all options.
    """
    signatures.check_callable(fun, "jit")
    nums = signatures.argnums_tuple(static_argnums, "static_argnums")
    names = signatures.argnames_tuple(static_argnames, "static_argnames")
    return JitFunction(fun, JitOptions(nums, names, **options))


class JitFunction:
    """A function compiled by XLA: what `jit` returns.

    In JAX: the C++ class `PjitFunction`.
    """

    # The steps of a call, one by one; `stages.py` defines them.
    trace: Callable[..., Any]
    lower: Callable[..., Any]
    eval_shape: Callable[..., Any]

    def __init__(self, fun: Callable, options: JitOptions):
        self._fun = fun
        self._options = options
        self._signature = CallSignature(fun, options)
        self._caches = _caches_for(fun, options)
        functools.update_wrapper(self, fun, updated=())
        self.__wrapped__ = fun

    def __repr__(self) -> str:
        return f"<minijax.jit function {signatures.fun_name(self._fun)}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> tuple:
        return (JitFunction, (self._fun, self._options))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if state.disable_jit:
                return self._fun(*args, **kwargs)
            leaves, tree, statics = self._signature.flatten(args, kwargs)
            avals = []
            buffers = []
            # Usual: all leaves are Arrays on the first device, no transformation is on.
            usual = state.trace is eval_trace and state.default_device is None
            for leaf in leaves:
                if type(leaf) is Array:
                    avals.append(leaf.aval)
                    buffers.append(leaf._buffer)
                    if leaf._placed is not None:
                        usual = False
                else:
                    usual = False
                    position = len(avals)
                    aval = self._signature.type_of(leaf, position, args, kwargs)
                    avals.append(aval)
            key: tuple = (tree, tuple(avals), state.trace_key, statics)
            call_key, device, committed = key, None, False
            if not usual:  # tracers, NumPy arrays, numbers, arrays put somewhere
                if state.trace is not eval_trace or any(map(is_tracer, leaves)):
                    return self._bind(Bound(leaves, tree, statics, len(args)), key)
                device, committed, buffers = dispatch.place.run(leaves, avals)
                if committed or device != first_device():
                    call_key = (key, device, committed)
            try:
                call = self._caches.calls.get(call_key)
            except TypeError:
                self._signature.check_statics(statics)
                raise
            if call is None:
                bound = Bound(leaves, tree, statics, len(args))
                call = self._compile(bound, key, call_key, device, committed)
            elif events.subscribers:
                events.emit("jit.hit", function=self, key=call_key)
            outputs = call.program(buffers)
            if call.donated:
                _give_up(leaves, call.donated)
            return call.unflatten(outputs)
        except Exception as error:
            errors.filter_traceback.run(error)
            raise

    def _bind(self, bound: Bound, key: tuple) -> Any:
        """Bind the call as one `jit_p`, for the current transformation."""
        traced = self._traced(bound, key)
        outputs = jit_p.bind(*traced.outer, *bound.leaves, **traced.params)
        return tree_unflatten(traced.out_tree, outputs)

    def _compile(
        self, bound: Bound, key: tuple, call_key: tuple, device: Any, committed: bool
    ) -> _Call:
        """Trace and compile the program for calls with this key, and keep it."""
        caches = self._caches
        with caches.lock:
            call = caches.calls.get(call_key)
            if call is not None:
                return call
            if events.subscribers:
                known = list(caches.calls)
                events.emit("jit.miss", function=self, key=call_key, known=known)
            traced = self._traced(bound, key)
            if traced.outer:
                raise language.escaped_tracer_error(traced.outer[0])
            device = device or first_device()
            program = dispatch.compiled.run(
                traced.closed, device, committed, *_settings(traced.params)
            )
            call = _Call(program, traced)
            if len(caches.calls) >= _CACHE_SIZE:
                caches.calls.clear()  # a bound on memory, far beyond ordinary use
            caches.calls[call_key] = call
            return call

    def _traced(self, bound: Bound, key: tuple) -> Traced:
        """The program for arguments of this kind, traced when first needed."""
        if state.axis_env:  # named axes are in scope, and their sizes
            key = (*key, state.axis_env)
        try:
            traced = self._caches.usable(key)
        except TypeError:
            self._signature.check_statics(bound.statics)
            raise
        if traced is not None:
            return traced
        with self._caches.lock:
            traced = self._caches.usable(key)
            if traced is not None:
                return traced
            traced = trace_function(self._signature, bound, key[1], self._options)
            if len(self._caches.traced) >= _CACHE_SIZE:
                self._caches.traced.clear()
            # Tracers of an outer trace that are kept here would count as leaked.
            if not (traced.outer and state.check_tracer_leaks):
                self._caches.traced[key] = traced
            return traced

    def trace_call(self, args: tuple, kwargs: dict) -> tuple[Traced, Bound]:
        """(the traced program for these arguments, the bound arguments).

        Arguments may be `ShapeDtypeStruct`s.
        """
        bound = self._signature.bind(args, kwargs)
        avals = self._signature.types_of(bound.leaves, args, kwargs)
        self._signature.check_statics(bound.statics)
        key = (bound.tree, avals, state.trace_key, bound.statics)
        return self._traced(bound, key), bound

    def clear_cache(self) -> None:
        """Forget all traced and compiled programs of the function."""
        self._caches.clear()

    def _cache_size(self) -> int:
        """How many kinds of calls were compiled."""
        return len(self._caches.calls)


errors.boundaries.add(JitFunction.__call__.__code__)


def is_tracer(value: Any) -> bool:
    return isinstance(value, Tracer)


def _give_up(leaves: list[Any], donated: Sequence[int]) -> None:
    """Mark the donated arrays whose memory XLA took, so that later calls refuse them.

    The short way through a call does not check whether buffers were deleted. Setting
    `_placed` sends later calls the long way, which does. (XLA would refuse such buffers
    too, but with a line in its log.)
    """
    for position in donated:
        leaf = leaves[position]
        if type(leaf) is Array and leaf._buffer.is_deleted():
            leaf._placed = leaf._buffer._sharding


def trace_function(
    signature: CallSignature, bound: Bound, avals: Sequence[Any], options: JitOptions
) -> Traced:
    """Trace a user's function for one kind of arguments."""
    debug_info = signature.debug_info(bound, "jit")
    debug_info.check_tracing_allowed()
    flat, trees = signatures.flatten_function(signature, bound)
    with source_info.fresh_context():
        jaxpr, consts = partial_eval.trace_to_jaxpr(flat, avals, debug_info)
    jaxpr.debug_info = signatures.with_result_paths(debug_info, trees[0])
    signatures.check_program(jaxpr, consts, bound.leaves)
    outer: list[Any] = []
    if any(isinstance(const, Tracer) for const in consts):
        jaxpr = partial_eval.convert_constvars_jaxpr(jaxpr)
        outer, consts = list(consts), []
    closed = ClosedJaxpr(jaxpr, consts)
    donated = (False,) * len(outer) + signature.donated_leaves(bound)
    kept = (options.keep_unused, options.inline, options.compiler_options)
    params = jit_params(closed, debug_info.name, donated, *kept)
    return Traced(closed, trees[0], outer, params)


def make_jaxpr(fun: Callable, static_argnums: int | Sequence[int] = ()) -> Callable:
    """A function that returns the jaxpr of `fun` for given arguments.

    The arguments may be arrays, numbers or descriptions of arrays; only their types
    matter. Those at the positions `static_argnums` are passed on as they are.
    """
    signatures.check_callable(fun, "make_jaxpr")
    jitted = jit(fun, static_argnums=static_argnums)

    @errors.api_boundary
    @functools.wraps(fun)
    def jaxpr_maker(*args: Any, **kwargs: Any) -> ClosedJaxpr:
        return with_outer_constants(jitted.trace_call(args, kwargs)[0])

    jaxpr_maker.__module__ = "minijax"
    return jaxpr_maker


def with_outer_constants(traced: Traced) -> ClosedJaxpr:
    """The program of a traced function; tracers it closes over are its constants."""
    jaxpr, count = traced.closed.jaxpr, len(traced.outer)
    if not count:
        return traced.closed
    opened = jaxpr.replace(constvars=jaxpr.invars[:count], invars=jaxpr.invars[count:])
    return ClosedJaxpr(opened, traced.outer)


def jit_params(
    closed: ClosedJaxpr,
    name: str,
    donated: tuple[bool, ...] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: tuple = (),
) -> dict[str, Any]:
    """The parameters of an equation of `jit_p`."""
    return {
        **_params_for(closed, donated),
        "ctx_mesh": None,
        "name": name,
        "keep_unused": keep_unused,
        "inline": inline,
        "compiler_options_kvs": compiler_options,
    }


def with_program(
    params: dict[str, Any], closed: ClosedJaxpr, donated: tuple | None = None
) -> dict[str, Any]:
    """The parameters of a jit equation, with another program in it."""
    return {**params, **_params_for(closed, donated)}


def _params_for(closed: ClosedJaxpr, donated: tuple | None) -> dict[str, Any]:
    """The parameters that change with the program: one entry per input or output."""
    num_in, num_out = len(closed.jaxpr.invars), len(closed.jaxpr.outvars)
    return {
        "jaxpr": closed,
        "in_shardings": (UNSPECIFIED,) * num_in,
        "out_shardings": (UNSPECIFIED,) * num_out,
        "in_layouts": (None,) * num_in,
        "out_layouts": (None,) * num_out,
        "donated_invars": donated or (False,) * num_in,
    }


# ----------------------------------------------------------------------------------
# jit as a primitive: a program inside a program, with all its rules
# ----------------------------------------------------------------------------------

jit_p = language.register(language.Primitive("jit", multiple_results=True))
jit_p.cache_types = False


@jit_p.def_effectful_abstract_eval
def _jit_type(*avals, jaxpr: ClosedJaxpr, **_) -> tuple:
    effects = jaxpr.effects
    if effects:
        effects = positional(effects, jaxpr.jaxpr.invars)
    return jaxpr.out_avals, effects


@jit_p.def_impl
def _jit_impl(*args, jaxpr: ClosedJaxpr, **params) -> list[Array]:
    return dispatch.run_closed(jaxpr, args, *_settings(params))


def _settings(params: dict[str, Any]) -> tuple:
    """How a program is compiled, as the parameters of its equation say."""
    names = ("name", "donated_invars", "keep_unused", "compiler_options_kvs")
    return tuple(params[name] for name in names)


def _refuse_inline(trace: Any, args: Sequence[Any], params: dict) -> Any:
    """`inlining.py` replaces this rule by one that inlines."""
    if params["inline"]:
        raise NotImplementedError(
            "jit(inline=True) needs compile/inlining.py; leave inline out."
        )
    return NotImplemented


jit_p.staging = _refuse_inline


@jit_p.def_jvp_rule
def _jit_jvp(primals, tangents, **params) -> tuple:
    closed = params["jaxpr"]
    nonzeros = [type(t) is not Zero for t in tangents]
    jvp_closed, nonzeros_out = autodiff.jvp_jaxpr(closed, nonzeros)
    given = [t for t in tangents if type(t) is not Zero]
    outputs = jit_p.bind(*primals, *given, **with_program(params, jvp_closed))
    return autodiff.split_tangents(outputs, nonzeros_out)


def _jit_linearize(nonzeros, *primals, **params) -> tuple:
    """Two jits: the primal one, which also returns residuals, and the linear one.

    Outputs that are inputs, and residuals that are outputs, are not returned twice.
    """
    closed = params["jaxpr"]
    primal, num_new, nonzeros_out, forwarded, linear = autodiff.linearize_jaxpr(
        closed, nonzeros
    )
    outs, new = bind_forwarding(primal, primals, params, num_new)
    residuals = partial_eval.fill_forwarded(forwarded, [*closed.consts, *primals], new)

    def apply_linear(residuals: Sequence[Any], *tangents: Any) -> list[Any]:
        given = [t for t, nonzero in zip(tangents, nonzeros) if nonzero]
        answers = jit_p.bind(*residuals, *given, **with_program(params, linear))
        return autodiff.with_zeros(answers, nonzeros_out, closed.out_avals)

    return outs, nonzeros_out, residuals, apply_linear


jit_p.linearize = _jit_linearize


def bind_forwarding(
    closed: ClosedJaxpr, args: Sequence[Any], params: dict, num_residuals: int
) -> tuple[list[Any], list[Any]]:
    """Bind a jit whose last outputs are residuals: (its outputs, the residuals).

    The jit does not return a value twice, nor one that the caller has already: outputs
    that are inputs, and residuals that are inputs or outputs, are left out.
    """
    jaxpr = closed.jaxpr
    num_outputs = len(jaxpr.outvars) - num_residuals
    # The values of variables that the caller has already.
    values: dict[language.Atom, Any] = dict(zip(jaxpr.invars, args))
    computed = [v not in values for v in jaxpr.outvars[:num_outputs]]
    outputs = {v for v, flag in zip(jaxpr.outvars, computed) if flag}
    keep = computed + [v not in outputs for v in jaxpr.outvars[num_outputs:]]
    pruned = partial_eval.prune_outputs(closed, keep)
    answers = iter(jit_p.bind(*args, **with_program(params, pruned)))
    results = []
    for var, kept in zip(jaxpr.outvars, keep):
        result = next(answers) if kept else values[var]
        values.setdefault(var, result)
        results.append(result)
    return results[:num_outputs], results[num_outputs:]


@jit_p.def_transpose
def _jit_transpose(cts, *args, **params) -> None:
    """Bind a jit of the transposed program; add its results to the accumulators."""
    transposed, answered = autodiff.transpose_jaxpr(params["jaxpr"], args, cts)
    values = autodiff.transposed_inputs(args)
    given = [ct for ct in cts if type(ct) is not Zero]
    answers = jit_p.bind(*values, *given, **with_program(params, transposed))
    autodiff.accumulate(args, answered, answers)


@jit_p.def_batch
def _jit_batch(axis_data, args, dims, **params) -> tuple:
    batched, out_dims = batching.batch_jaxpr(params["jaxpr"], axis_data, dims)
    donated = params["donated_invars"]
    return jit_p.bind(*args, **with_program(params, batched, donated)), out_dims


def _jit_dce(used, eqn) -> JaxprEqn | None:
    closed, used_inputs = partial_eval.dce_closed_jaxpr(eqn.params["jaxpr"], used)
    donated = eqn.params["donated_invars"]
    params = with_program(
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


@pretty.borrows_names
@pretty.printed_first("name")
def _jit_pretty(params: dict[str, Any]) -> dict[str, Any]:
    """Print the name and the program; other parameters only if they are not default."""
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
def _jit_lowering(ctx, *operands, jaxpr: ClosedJaxpr, **params) -> list[Any]:
    return ctx.call(jaxpr, params["name"], *operands)
