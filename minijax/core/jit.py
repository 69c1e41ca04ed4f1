"""jit: trace and compile once for each kind of arguments, then only launch.

The life of a call, `jit(f)(x)`:

1. `JitFunction.__call__` flattens the arguments and looks the call up under its key:
   the tree, the types of the leaves, the settings, the values of static arguments. On
   a hit the executable is launched at once.
2. On a miss, `f` is traced to a jaxpr (`JitFunction._trace`), unless it was traced for
   arguments of this kind already, and the jaxpr is compiled
   (`dispatch.Compilation.compile`).
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
from itertools import compress
from typing import Any, NamedTuple

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
from .events import Hook
from .language import ClosedJaxpr, JaxprEqn, Tracer, eval_trace
from .rules import Zero
from .signatures import Bound, CallSignature, JitOptions, type_of_description
from .state import state
from .trees import tree_unflatten


class _Unspecified:
    """The class of the value that stands for a sharding that was not given."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = _Unspecified()


class Traced(NamedTuple):
    """A function traced for one kind of arguments: its program and how to call it.

    `outer` are the tracers of outer transformations that the function closes over. They
    are the leading arguments of the program.
    """

    closed: ClosedJaxpr
    out_tree: Any
    outer: list[Any]
    params: dict[str, Any]


class _Call:
    """What a repeated call needs: the compiled program and the result's tree."""

    __slots__ = ("run", "unflatten", "donated")

    def __init__(self, program: Any, traced: Traced):
        self.run = program.__call__
        self.unflatten = traced.out_tree.unflatten
        donated = traced.params["donated_invars"]
        self.donated = donated if any(donated) else ()


class _Caches:
    """The caches of one function under one set of options; freed with the function."""

    __slots__ = ("calls", "plain", "traced", "lock", "__weakref__")

    def __init__(self) -> None:
        self.calls: dict[tuple, _Call] = {}
        # Those calls whose arguments are positional Arrays, by trace key and types.
        self.plain: dict[tuple, _Call] = {}
        self.traced: dict[tuple, Traced] = {}
        self.lock = threading.RLock()

    def usable(self, key: tuple) -> Traced | None:
        """The traced program, unless it closes over tracers of ended traces."""
        traced = self.traced.get(key)
        alive = traced is None or all(t._trace.alive for t in traced.outer)
        return traced if alive else None

    def clear(self) -> None:
        self.calls.clear()
        self.plain.clear()
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

    def __init__(self, fun: Callable, options: JitOptions):
        self._fun = fun
        self._options = options
        self._signature = CallSignature(fun, options)
        self._caches = _caches_for(fun, options)
        signatures.wraps(fun, updated=())(self)

    def __repr__(self) -> str:
        return f"<minijax.jit function {signatures.fun_name(self._fun)}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            call = None
            leaves: Sequence[Any] = args
            if state.trace is eval_trace and not (kwargs or events.subscribers):
                # The fast path: only Arrays on the usual device, so no tree is needed.
                types: list[Any] = [state.trace_key]
                buffers: Any = []
                for arg in args:
                    if type(arg) is not Array or arg._placed is not None:
                        break
                    types.append(arg.aval)
                    buffers.append(arg._buffer)
                else:
                    call = self._caches.plain.get(tuple(types))
            if call is None:
                if state.disable_jit:
                    return self._fun(*args, **kwargs)
                if state.trace is not eval_trace:
                    return self._bind(args, kwargs)
                leaves, tree, statics = self._signature.flatten(args, kwargs)
                try:
                    avals, buffers, place = dispatch.prepare(leaves)
                    key: tuple = (tree, avals, state.trace_key, statics)
                    call_key = key if place is None else (key, *place)
                    call = self._caches.calls.get(call_key)
                except TypeError:
                    self._signature.types_of(leaves, args, kwargs, language.get_aval)
                    self._signature.check_statics(statics)
                    raise
                if buffers is None:
                    return self._bind(args, kwargs)
                if call is None:
                    self._signature.types_of(leaves, args, kwargs, language.get_aval)
                    bound = Bound(leaves, tree, statics, len(args))
                    call = self._compile(bound, key, call_key, place)
                    if place is None and not kwargs and {*map(type, args)} == {Array}:
                        self._caches.plain[(state.trace_key, *avals)] = call
                elif events.subscribers:
                    events.emit("jit.hit", function=self, key=call_key)
            outputs = call.run(buffers)
            if call.donated:
                _give_up(leaves, call.donated)
            return call.unflatten(outputs)
        except Exception as error:
            errors.filter_traceback.run(error)
            raise

    def _bind(self, args: tuple, kwargs: dict) -> Any:
        """Bind the call as one `jit_p`, for the current transformation."""
        traced, bound = self.trace_call(args, kwargs, language.get_aval)
        outputs = jit_p.bind(*traced.outer, *bound.leaves, **traced.params)
        return tree_unflatten(traced.out_tree, outputs)

    def _compile(
        self, bound: Bound, key: tuple, call_key: tuple, place: tuple | None
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
            place = place or (first_device(), False)
            request = dispatch.CompileRequest(*place, *settings_of(traced.params))
            program = dispatch.compilation.compile(traced.closed, request)
            call = _Call(program, traced)
            if len(caches.calls) >= _CACHE_SIZE:
                caches.clear()  # a bound on memory, far beyond ordinary use
            caches.calls[call_key] = call
            return call

    def _traced(self, bound: Bound, key: tuple) -> Traced:
        """The program for arguments of this kind, traced when first needed."""
        if state.axis_env:  # named axes are in scope, and their sizes
            key = (*key, state.axis_env)
        traced = self._caches.usable(key)
        if traced is not None:
            return traced
        with self._caches.lock:
            traced = self._caches.usable(key)
            if traced is not None:
                return traced
            traced = self._trace(bound, key[1])
            if len(self._caches.traced) >= _CACHE_SIZE:
                self._caches.traced.clear()
            # The search for leaks would find the tracers that the cache keeps.
            if not (traced.outer and state.check_tracer_leaks):
                self._caches.traced[key] = traced
            return traced

    def _trace(self, bound: Bound, avals: Sequence[Any]) -> Traced:
        """Trace the function for one kind of arguments."""
        signature, options = self._signature, self._options
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
            outer = list(consts)
            consts = []
        closed = ClosedJaxpr(jaxpr, consts)
        donated = (False,) * len(outer) + signature.donated_leaves(bound)
        kept = (options.keep_unused, options.inline, options.compiler_options)
        params = jit_params(closed, debug_info.func_name, donated, *kept)
        return Traced(closed, trees[0], outer, params)

    def trace_call(
        self, args: tuple, kwargs: dict, rule: Any = type_of_description
    ) -> tuple[Traced, Bound]:
        """(the traced program for these arguments, the bound arguments).

        `rule` gives the types of the arguments, which by default may be
        `ShapeDtypeStruct`s.
        """
        bound = self._signature.bind(args, kwargs)
        avals = self._signature.types_of(bound.leaves, args, kwargs, rule)
        self._signature.check_statics(bound.statics)
        key = (bound.tree, avals, state.trace_key, bound.statics)
        return self._traced(bound, key), bound


errors.boundaries.add(JitFunction.__call__.__code__)


def _give_up(leaves: Sequence[Any], donated: Sequence[bool]) -> None:
    """Mark the donated arrays whose memory XLA reused, so that later calls refuse them.

    The fast path of a call does not check whether buffers were deleted. It does not
    take arrays with `_placed` set, so later calls check them. (XLA would refuse such
    buffers too, but would also write a line to its log.)
    """
    for leaf in compress(leaves, donated):
        if type(leaf) is Array and leaf._buffer.is_deleted():
            leaf._placed = leaf._buffer._sharding


def make_jaxpr(fun: Callable, static_argnums: int | Sequence[int] = ()) -> Callable:
    """A function that returns the jaxpr of `fun` for given arguments.

    The arguments may be arrays, numbers or descriptions of arrays; only their types
    matter. Arguments at the positions `static_argnums` are passed to `fun` unchanged.
    """
    signatures.check_callable(fun, "make_jaxpr")
    jitted = jit(fun, static_argnums=static_argnums)

    @errors.api_boundary
    @signatures.wraps(fun)
    def jaxpr_maker(*args: Any, **kwargs: Any) -> ClosedJaxpr:
        return with_outer_constants(jitted.trace_call(args, kwargs)[0])

    jaxpr_maker.__module__ = "minijax"
    return jaxpr_maker


def with_outer_constants(traced: Traced) -> ClosedJaxpr:
    """The program of a traced function; tracers it closes over are its constants."""
    if not traced.outer:
        return traced.closed
    jaxpr = traced.closed.jaxpr
    count = len(traced.outer)
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
        **with_program({}, closed, donated),
        "ctx_mesh": None,
        "name": name,
        "keep_unused": keep_unused,
        "inline": inline,
        "compiler_options_kvs": compiler_options,
    }


def with_program(
    params: dict[str, Any], closed: ClosedJaxpr, donated: tuple | None = None
) -> dict[str, Any]:
    """The parameters of a jit equation, with `closed` as its program.

    Those that have one entry per input or output get defaults, but for `donated`.
    """
    num_in, num_out = len(closed.in_avals), len(closed.out_avals)
    return {
        **params,
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


# A jit with `in_shardings` or `out_shardings` has them in its parameters. Printing,
# dead code elimination and lowering keep them there. Every other transformation adds
# inputs or outputs, so it takes the program with its shardings as equations inside.


@Hook
def constrained(value: Any, sharding: Any, layout: Any) -> Any:
    """Constrain a tracer, or a StableHLO value, to a sharding, and a layout or None.

    Called where a jit with shardings is transformed or lowered.
    `programs/sharding/jit_shardings.py` attaches it; without it no jit has shardings.
    """
    raise NotImplementedError("The core has no shardings of jit: `import minijax`.")


def _cut(values: Sequence[Any], shardings: tuple, layouts: tuple) -> list[Any]:
    return [
        value if sharding is UNSPECIFIED else constrained.run(value, sharding, layout)
        for value, sharding, layout in zip(values, shardings, layouts, strict=True)
    ]


def _none_given(shardings: tuple) -> bool:
    return shardings.count(UNSPECIFIED) == len(shardings)


def plain(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an equivalent equation without shardings and layouts."""
    ins = params["in_shardings"], params["in_layouts"]
    outs = params["out_shardings"], params["out_layouts"]
    if _none_given(ins[0]) and _none_given(outs[0]):
        return params
    closed = _with_shardings_inside(params["jaxpr"], ins, outs)
    return with_program(params, closed, params["donated_invars"])


@language.weakref_lru_cache
def _with_shardings_inside(closed: ClosedJaxpr, ins: tuple, outs: tuple) -> ClosedJaxpr:
    params = jit_params(closed, "sharded")

    def program(*args: Any) -> Sequence[Any]:
        return _cut(jit_p.bind(*_cut(args, *ins), **params), *outs)

    return ClosedJaxpr(*partial_eval.trace_to_jaxpr(program, closed.in_avals))


@jit_p.def_impl
def _jit_impl(*args, **params) -> list[Array]:
    params = plain(params)
    return dispatch.run_closed(params["jaxpr"], args, *settings_of(params))


def settings_of(params: dict[str, Any]) -> tuple:
    """How a program is compiled, as the last fields of a `CompileRequest`."""
    names = ("name", "donated_invars", "keep_unused", "compiler_options_kvs")
    outs = params["out_shardings"]
    given = None if _none_given(outs) else outs
    layouts = params["in_layouts"], params["out_layouts"]
    asked = layouts if any(map(any, layouts)) else None
    return (*(params[name] for name in names), given, asked)


@Hook
def jit_staging(trace: Any, args: Sequence[Any], params: dict) -> Any:
    """The outputs of a jit that is traced; NotImplemented to write its equation.

    By default the equations of an inlined function are bound again.
    `compile/inlining.py` attaches a faster function, which also makes arguments of refs
    that are closed over.
    """
    if not params["inline"]:
        return NotImplemented
    closed = plain(params)["jaxpr"]
    return language.eval_jaxpr(closed.jaxpr, closed.consts, *args)


jit_p.staging = lambda *given: jit_staging.run(*given)


@jit_p.def_jvp_rule
def _jit_jvp(primals, tangents, **params) -> tuple:
    params = plain(params)
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
    params = plain(params)
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

    The jit does not return a value twice, nor one that the caller has: it leaves out
    outputs that are inputs, and residuals that are inputs or outputs.
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
    params = plain(params)
    transposed, answered = autodiff.transpose_jaxpr(params["jaxpr"], args, cts)
    values = autodiff.transposed_inputs(args)
    given = [ct for ct in cts if type(ct) is not Zero]
    answers = jit_p.bind(*values, *given, **with_program(params, transposed))
    autodiff.accumulate(args, answered, answers)


@jit_p.def_batch
def _jit_batch(axis_data, args, dims, **params) -> tuple:
    if any(params["in_layouts"] + params["out_layouts"]):
        raise NotImplementedError(
            "vmap of jit with layouts: a batch has one more dimension. Give the "
            "layouts to `jit(vmap(f), ...)`."
        )
    params = plain(params)
    batched, out_dims = batching.batch_jaxpr(params["jaxpr"], axis_data, dims)
    donated = params["donated_invars"]
    return jit_p.bind(*args, **with_program(params, batched, donated)), out_dims


def _jit_partial_eval(trace, args, params) -> list[Any]:
    """Split a jit into a known and an unknown one, which takes residuals."""
    params = plain(params)
    closed = params["jaxpr"]
    unknown = tuple(map(trace.is_unknown, args))
    split = partial_eval.split_program.run(closed, unknown)
    if split is None:
        with language.set_current_trace(trace.unknown):
            return jit_p.bind(*args, **params)
    known, rest, unknown_out, forwarded = split
    known_args = [arg for arg, flag in zip(args, unknown) if not flag]
    with language.set_current_trace(trace.known):
        outputs, new = bind_forwarding(known, known_args, params, forwarded.count(None))
    sources = [*closed.consts, *known_args]
    residuals = partial_eval.fill_forwarded(forwarded, sources, new)
    with language.set_current_trace(trace.unknown):
        answers = jit_p.bind(
            *residuals, *compress(args, unknown), **with_program(params, rest)
        )
    results = {True: iter(answers), False: iter(outputs)}
    return [next(results[flag]) for flag in unknown_out]


jit_p.partial_eval = _jit_partial_eval


def _jit_dce(used, eqn) -> JaxprEqn | None:
    closed, used_inputs = partial_eval.dce_closed_jaxpr(eqn.params["jaxpr"], used)
    params = with_program(eqn.params, closed)
    for name in ("donated_invars", "in_shardings", "in_layouts"):
        params[name] = tuple(compress(eqn.params[name], used_inputs))
    for name in ("out_shardings", "out_layouts"):
        params[name] = tuple(compress(eqn.params[name], used))
    invars = list(compress(eqn.invars, used_inputs))
    outvars = list(compress(eqn.outvars, used))
    effects = of_equation(closed.jaxpr, invars)
    return eqn.replace(invars=invars, outvars=outvars, params=params, effects=effects)


jit_p.dce = _jit_dce


@pretty.borrows_names
@pretty.printed_first("name")
def _jit_pretty(params: dict[str, Any]) -> dict[str, Any]:
    """Print the name and the program; other parameters only if they are not default."""
    name, closed = params["name"], params["jaxpr"]
    usual = jit_params(closed, name)
    rare = ("donated_invars", "keep_unused", "compiler_options_kvs")
    names = (*rare, "in_shardings", "out_shardings", "in_layouts", "out_layouts")
    given = {key: params[key] for key in names if params[key] != usual[key]}
    return {"name": name, "jaxpr": closed, **given}


jit_p.pretty = _jit_pretty


@jit_p.def_lowering
def _jit_lowering(ctx, *operands, jaxpr: ClosedJaxpr, **params) -> Sequence[Any]:
    cut = _cut(operands, params["in_shardings"], params["in_layouts"])
    results = ctx.call(jaxpr, params["name"], *cut)
    return _cut(results, params["out_shardings"], params["out_layouts"])
