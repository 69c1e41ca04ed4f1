"""Derivatives: forward (jvp), linearize, and backward (transpose).

Forward mode runs a function on pairs (primal, tangent): `JVPTrace`. Reverse mode is two
steps. `linearize` runs the function once under a `LinearizeTrace`, which computes the
primal values and, beside them, writes down the *linear* program that maps tangents of
the inputs to tangents of the outputs; the values it needs from the forward pass are its
constants, the residuals. `backward_pass` then walks that program from its end to its
start and transposes every equation: cotangents of the outputs become cotangents of the
inputs, and where a variable was used twice, two cotangents add.

Forward and backward therefore share one set of rules per primitive: its jvp, and the
transpose of what its jvp writes.

In JAX: `interpreters/ad.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.language.core import (
    Atom,
    ClosedJaxpr,
    DebugInfo,
    Jaxpr,
    Literal,
    Primitive,
    ShapedArray,
    Trace,
    Tracer,
    TraceTag,
    Var,
    chosen,
    eval_jaxpr,
    get_aval,
    no_debug_info,
    set_current_trace,
    weakref_lru_cache,
)
from minijax.language.more_avals import AbstractRef
from minijax.language.rules import (
    Accumulator,
    Zero,
    instantiate,
    sum_tangents,
    zero_tangent_of,
)
from minijax.primitives.refs.mutable_arrays import RefAccumulator, is_linear_ref
from minijax.support import dtypes, events, source_info
from minijax.support.thread_state import state
from minijax.transforms.partial_eval import (
    DynamicJaxprTrace,
    JaxprTrace,
    allowed_sources,
    convert_constvars_jaxpr,
    split_forwarded,
    trace_ended,
    trace_to_jaxpr,
)

# JAX's name for the argument of a transpose rule in which the operation is linear.
UndefinedPrimal = Accumulator


# Whether all of some types are `Zero`.
_only_zeros = frozenset([Zero]).issuperset


def is_undefined_primal(value: Any) -> bool:
    """Whether a transpose rule's argument is linear."""
    return isinstance(value, Accumulator)


# ----------------------------------------------------------------------------------
# Forward mode
# ----------------------------------------------------------------------------------


class JVPTracer(Tracer):
    """A value together with its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: Trace, primal: Any, tangent: Any):
        self._trace = trace
        self.aval = get_aval(primal)
        self.primal = primal
        self.tangent = tangent

    def full_lower(self) -> Any:
        if type(self.tangent) is Zero:
            primal = self.primal
            return primal.full_lower() if isinstance(primal, Tracer) else primal
        return self

    def to_concrete_value(self) -> Any | None:
        primal = self.primal
        return primal.to_concrete_value() if isinstance(primal, Tracer) else primal

    def birth(self) -> str:
        birth = getattr(self.primal, "birth", getattr(self.tangent, "birth", None))
        return birth() if birth else "\nIt carries the tangents of a `jvp` or `grad`."

    _origin_msg = birth

    def _short_repr(self) -> str:
        return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"


class LinearizeTracer(JVPTracer):
    """A value, and the variable of the linear program that stands for its tangent."""

    __slots__ = ()

    def _short_repr(self) -> str:
        zero = type(self.tangent) is Zero
        aval = self.tangent.aval if zero else get_aval(self.tangent)
        tangent = aval.str_short(short_dtypes=True)
        return f"GradTracer(primal={self.primal}, typeof(tangent)={tangent})"


def apply_jvp(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], params: dict
) -> tuple[Any, Any]:
    """A primitive's forward rule: (output, tangent of output), lists if several.

    Raises NotImplementedError when the primitive has none.
    """
    if primitive.jvp is not None:
        return primitive.jvp(tuple(primals), tuple(tangents), **params)
    if primitive.jvp_terms is not None:
        out = primitive.bind(*primals, **params)
        parts = [
            term(tangent, *primals, **params)
            for term, tangent in zip(primitive.jvp_terms, tangents)
            if term is not None and type(tangent) is not Zero
        ]
        return out, sum_tangents(parts, out)
    reason = primitive.reasons.get("jvp")
    raise NotImplementedError(
        f"Differentiation rule for '{primitive}' not implemented"
        + (f": {reason}." if reason else ".")
    )


class JVPTrace(Trace):
    """Applies forward rules; values and tangents both live in the parent trace.

    In JAX: `interpreters/ad.py`, `JVPTrace`.
    """

    __slots__ = ("parent", "tag", "alive", "split", "tangent_trace")
    tracer_class: type[JVPTracer] = JVPTracer

    def __init__(self, parent: Trace, tag: TraceTag):
        self.parent = parent
        self.tag = tag
        self.alive = True
        # Where rules run, and where what maps tangents alone is written.
        self.split: Trace = parent
        self.tangent_trace: Trace = parent

    def to_pair(self, value: Any) -> tuple[Any, Any]:
        if isinstance(value, self.tracer_class) and _tag(value) is self.tag:
            return value.primal, value.tangent
        return value, zero_tangent_of(value)

    def primal_of(self, value: Any) -> Any:
        """A value without its tangent; it may be of any class, as an aux may."""
        own = isinstance(value, self.tracer_class) and _tag(value) is self.tag
        return value.primal if own else value

    def tracer(self, primal: Any, tangent: Any) -> Any:
        if type(tangent) is Zero:
            return primal
        return self.tracer_class(self, primal, tangent)

    def linear(self, primal: Any, tangent: Any) -> Any:
        """A rule's tangent, checked where that is needed: see `LinearizeTrace`."""
        return tangent

    def process_primitive(
        self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        primals, tangents = _unzip(map(self.to_pair, args))
        with set_current_trace(self.parent):
            if _only_zeros(map(type, tangents)) and not primitive.makes_ref:
                return self.parent.process_primitive(primitive, primals, params)
            out, out_tangent = apply_jvp(primitive, primals, tangents, params)
        if primitive.multiple_results:
            return [self.tracer(x, t) for x, t in zip(out, out_tangent)]
        return self.tracer(out, out_tangent)

    def process_custom_jvp_call(
        self, primitive, fun, jvp, args, *, symbolic_zeros=False, **params
    ):
        primals, tangents = _unzip(map(self.to_pair, args))
        if _only_zeros(map(type, tangents)):
            with set_current_trace(self.parent):
                return self.parent.process_custom_jvp_call(
                    primitive,
                    fun,
                    jvp,
                    primals,
                    symbolic_zeros=symbolic_zeros,
                    **params,
                )
        with set_current_trace(self.split):
            outs, out_tangents = primitive.run_jvp(
                jvp, primals, tangents, symbolic_zeros
            )
        return [self.tracer(x, self.linear(x, t)) for x, t in zip(outs, out_tangents)]

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, args, **params):
        primals, tangents = _unzip(map(self.to_pair, args))
        if _only_zeros(map(type, tangents)):
            with set_current_trace(self.parent):
                return self.parent.process_custom_vjp_call(
                    primitive, fun, fwd, bwd, primals, **params
                )
        with set_current_trace(self.parent):
            outs, residuals = primitive.run_forward(fwd, primals, tangents, **params)
        with set_current_trace(self.tangent_trace):
            out_tangents = primitive.write_linear(
                bwd, residuals, tangents, outs, **params
            )
        return [self.tracer(x, _zero_if_float0(t)) for x, t in zip(outs, out_tangents)]


def _tag(tracer: Tracer) -> TraceTag:
    return tracer._trace.tag  # type: ignore[attr-defined]


def _unzip(pairs: Any) -> tuple[list, list]:
    firsts, seconds = [], []
    for first, second in pairs:
        firsts.append(first)
        seconds.append(second)
    return firsts, seconds


def jvp(
    fun: Callable,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    aux: list[Any] | None = None,
) -> tuple[list, list]:
    """Push tangents forward through a flat function: (outputs, tangents, or Zeros).

    Tangents may be `Zero`. A tangent of dtype float0 is zero. Values that `fun` leaves
    in the list `aux` lose their tangents.
    """
    trace = chosen(JVPTrace)(state.trace, TraceTag())
    args = [trace.tracer(p, _zero_if_float0(t)) for p, t in zip(primals, tangents)]
    with set_current_trace(trace), source_info.transform_name_stack("jvp"):
        outputs = fun(*args)
    pairs = _unzip(map(trace.to_pair, outputs))
    if aux is not None:
        aux[:] = map(trace.primal_of, aux)
    trace.alive = False
    return pairs


def _zero_if_float0(tangent: Any) -> Any:
    if type(tangent) is Zero:
        return tangent
    aval = get_aval(tangent)
    if isinstance(aval, ShapedArray) and dtypes.is_float0(aval.dtype):
        return Zero(aval)
    return tangent


def jvp_jaxpr(
    closed: ClosedJaxpr, nonzeros: Sequence[bool], wanted: Sequence[bool] = ()
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program of values and tangents.

    Inputs: the primals, then the tangents of those inputs whose `nonzeros` flag is set.
    Outputs: the primals, then the nonzero tangents, and those whose flag in `wanted` is
    set; the second result says which.
    """
    return _jvp_jaxpr(closed, tuple(nonzeros), tuple(wanted))


@weakref_lru_cache
def _jvp_jaxpr(
    closed: ClosedJaxpr, nonzeros: tuple[bool, ...], wanted: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    nonzeros_out: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        primals = args[: len(nonzeros)]
        given = iter(args[len(nonzeros) :])
        tangents = [
            next(given) if nonzero else zero_tangent_of(primal)
            for primal, nonzero in zip(primals, nonzeros)
        ]
        outs, out_tangents = jvp(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, tangents
        )
        out_tangents = instantiate_wanted(out_tangents, wanted)
        nonzeros_out.extend(type(t) is not Zero for t in out_tangents)
        return [*outs, *(t for t in out_tangents if type(t) is not Zero)]

    in_avals = [*closed.in_avals]
    in_avals += [
        aval.to_tangent_aval() for aval, nz in zip(closed.in_avals, nonzeros) if nz
    ]
    jaxpr, consts = trace_to_jaxpr(fun, in_avals, closed.debug_info)
    return ClosedJaxpr(jaxpr, consts), tuple(nonzeros_out)


# ----------------------------------------------------------------------------------
# Linearize: run the primal, write down the linear program
# ----------------------------------------------------------------------------------


class LinearizeTrace(JVPTrace):
    """Computes primals in the parent trace and writes tangents as a linear program.

    A primitive's jvp runs under a `JaxprTrace` that sends what involves a tangent to
    the linear program and everything else to the parent; so the rule `mul(t, cos(x))`
    computes `cos(x)` now and writes one `mul`. A primitive that carries a program has a
    rule of its own, `Primitive.linearize(nonzeros, *primals, **params)`, which returns
    `(outputs, nonzeros of outputs, residuals, linear)`; `linear(residuals, *tangents)`
    is then called in the linear program.

    In JAX: `interpreters/ad.py`, `LinearizeTrace`.
    """

    __slots__ = ()
    tracer_class = LinearizeTracer
    split: JaxprTrace

    def __init__(self, parent: Trace, tangent_trace: DynamicJaxprTrace):
        super().__init__(parent, TraceTag())
        self.tangent_trace = tangent_trace
        self.split = JaxprTrace(parent, tangent_trace)

    def process_primitive(
        self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        primals, tangents = _unzip(map(self.to_pair, args))
        if _only_zeros(map(type, tangents)) and not primitive.makes_ref:
            with set_current_trace(self.parent):
                return self.parent.process_primitive(primitive, primals, params)
        if primitive.linearize is not None:
            nonzeros = tuple(type(t) is not Zero for t in tangents)
            with set_current_trace(self.parent):
                out, nonzeros_out, residuals, linear = primitive.linearize(
                    nonzeros, *primals, **params
                )
            with set_current_trace(self.tangent_trace):
                out_tangent = linear(residuals, *tangents)
        else:
            with set_current_trace(self.split):
                out, out_tangent = apply_jvp(primitive, primals, tangents, params)
        if events.subscribers:
            events.emit("linearize", primitive=primitive, trace=self)
        if primitive.multiple_results:
            return [self.tracer(x, self.linear(x, t)) for x, t in zip(out, out_tangent)]
        return self.tracer(out, self.linear(out, out_tangent))

    def linear(self, primal: Any, tangent: Any) -> Any:
        """A rule's tangent, checked: a primal output must not depend on tangents."""
        if self.split.is_unknown(primal):
            raise ValueError(
                "Linearization failed to produce known values for all output primals: "
                "the rule's output depends on a tangent."
            )
        if type(tangent) is Zero or self.split.is_unknown(tangent):
            return tangent
        # A tangent that depends on no input tangent, such as zeros that a custom rule
        # filled in: being linear, it can only be zero.
        return Zero(get_aval(tangent))


def linearize(
    fun: Callable,
    primals: Sequence[Any],
    debug_info: DebugInfo = no_debug_info,
    aux: list[Any] | None = None,
) -> tuple[list[Any], Jaxpr, list[Any], list[bool]]:
    """Run a flat function and write down its derivative at that point.

    Returns `(outputs, jaxpr, residuals, nonzeros)`: the linear program, with the
    residuals as constvars, takes the tangents of all inputs and returns those tangents
    of outputs whose flag in `nonzeros` is set; the others are zero. Values that `fun`
    leaves in the list `aux` lose their tangents.
    """
    tangent_trace = DynamicJaxprTrace(debug_info, dead_code=True)
    trace = chosen(LinearizeTrace)(state.trace, tangent_trace)
    args = []
    for primal in primals:
        aval = get_aval(primal).to_tangent_aval()
        tangent = _zero_if_float0(tangent_trace.new_arg(aval))
        args.append(trace.tracer(primal, tangent))
    if events.subscribers:
        events.emit("linearize.begin", trace=trace, debug_info=debug_info)
    try:
        with set_current_trace(trace), source_info.transform_name_stack("jvp"):
            outputs = fun(*args)
        outs, out_tangents = _unzip(map(trace.to_pair, outputs))
        nonzeros = [type(t) is not Zero for t in out_tangents]
        jaxpr, residuals = tangent_trace.finish(
            [t for t in out_tangents if type(t) is not Zero]
        )
        if aux is not None:
            aux[:] = map(trace.primal_of, aux)
    finally:
        trace.alive = tangent_trace.alive = False
    del args, outputs  # so that no tracer is left
    trace_ended.run(trace)
    if events.subscribers:
        events.emit("linearize.end", trace=trace, jaxpr=jaxpr, residuals=residuals)
    return outs, jaxpr, residuals, nonzeros


def instantiate_wanted(tangents: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    """Zeros made arrays where a flag is set; no flags at all are none set."""
    flags = wanted or (False,) * len(tangents)
    return [instantiate(t) if flag else t for t, flag in zip(tangents, flags)]


@weakref_lru_cache
def linearize_jaxpr(
    closed: ClosedJaxpr,
    nonzeros: tuple[bool, ...],
    wanted: tuple[bool, ...] = (),
    forwardable: tuple[bool, ...] | None = None,
) -> tuple[ClosedJaxpr, int, tuple[bool, ...], tuple[int | None, ...], ClosedJaxpr]:
    """A program to two: the primal with residuals, and the linear one.

    Returns `(primal, new, nonzeros_out, forwarded, linear)`. `primal` has the outputs
    of `closed` followed by `new` residuals. The residuals of `linear`, its leading
    inputs, are these, but for those that `forwarded` finds among
    `[*closed.consts, *inputs]`; `forwardable` says which of the inputs it may find.
    Tangents of outputs flagged in `wanted` are there even when they are zero.

    In JAX: `interpreters/ad.py`, `linearize_jaxpr`.
    """
    debug_info = closed.debug_info
    primal_trace = DynamicJaxprTrace(debug_info, dead_code=True)
    tangent_trace = DynamicJaxprTrace(debug_info, dead_code=True)
    trace = chosen(LinearizeTrace)(primal_trace, tangent_trace)
    primals, args = [], []
    for aval, nonzero in zip(closed.in_avals, nonzeros, strict=True):
        primal = primal_trace.new_arg(aval)
        primals.append(primal)
        tangent_aval = aval.to_tangent_aval()
        tangent = tangent_trace.new_arg(tangent_aval) if nonzero else Zero(tangent_aval)
        args.append(trace.tracer(primal, tangent))
    with set_current_trace(trace), source_info.reset_name_stack():
        outputs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
    outs, out_tangents = _unzip(map(trace.to_pair, outputs))
    with set_current_trace(tangent_trace):
        out_tangents = instantiate_wanted(out_tangents, wanted)
    nonzeros_out = tuple(type(t) is not Zero for t in out_tangents)
    jaxpr, residuals = tangent_trace.finish(
        [t for t in out_tangents if type(t) is not Zero]
    )
    linear = ClosedJaxpr(convert_constvars_jaxpr(jaxpr))
    sources = allowed_sources(closed.consts, primals, forwardable)
    forwarded, new = split_forwarded(residuals, sources)
    primal_jaxpr = ClosedJaxpr(*primal_trace.finish([*outs, *new]))
    trace.alive = False
    return primal_jaxpr, len(new), nonzeros_out, forwarded, linear


# ----------------------------------------------------------------------------------
# Backward: transpose the linear program
# ----------------------------------------------------------------------------------


def backward_pass(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    args: Sequence[Any],
    cotangents: Sequence[Any],
) -> None:
    """Walk a linear program from its end to its start, transposing each equation.

    Linear arguments come as accumulators and receive their cotangents; the others come
    as values. Equations that depend on no linear argument are computed on the way.

    In JAX: `interpreters/ad.py`, `backward_pass3`.
    """
    if all(type(ct) is Zero for ct in cotangents) and not jaxpr.effects:
        return
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))

    def read(atom: Atom) -> Any:
        return atom.val if type(atom) is Literal else env[atom]

    outer = source_info.current_name_stack()
    linear = {var for var, value in env.items() if isinstance(value, Accumulator)}
    linear_eqns = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.makes_ref or not linear.isdisjoint(eqn.invars):
            for var in eqn.outvars:
                kind = RefAccumulator if type(var.aval) is AbstractRef else Accumulator
                env[var] = kind(var.aval.to_ct_aval())
            linear.update(eqn.outvars)
            linear_eqns.append(eqn)
            continue
        with source_info.user_context(eqn.source_info, outer=outer):
            out = eqn.primitive.rebind([read(v) for v in eqn.invars], eqn.params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out]))
    for atom, cotangent in zip(jaxpr.outvars, cotangents):
        target = read(atom)
        if isinstance(target, Accumulator):
            target.accum(cotangent)
    for eqn in reversed(linear_eqns):
        cts = [env.pop(var).freeze() for var in eqn.outvars]
        inputs = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
        with source_info.user_context(eqn.source_info, outer=outer):
            transpose_eqn(eqn.primitive, cts, inputs, eqn.params)


def transpose_eqn(
    primitive: Primitive, cts: Sequence[Any], inputs: Sequence[Any], params: dict
) -> None:
    """Apply one transpose rule and add its answers to the accumulators."""
    if primitive.transpose is None:
        reason = primitive.reasons.get("transpose")
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{primitive}' not "
            f"implemented" + (f": {reason}." if reason else ".")
        )
    if events.subscribers:
        events.emit("transpose", primitive=primitive, cotangents=cts)
    ct = list(cts) if primitive.multiple_results else cts[0]
    if type(ct) is Zero and not any(is_linear_ref(x) for x in inputs):
        return
    answers = primitive.transpose(ct, *inputs, **params)
    if answers is None:
        return
    for target, answer in zip(inputs, answers, strict=True):
        if answer is not None and isinstance(target, Accumulator):
            target.accum(answer)


def transposed_inputs(args: Sequence[Any]) -> list[Any]:
    """What a transposed program takes: the values, and refs that gather cotangents."""
    return [
        arg.inst().ref if isinstance(arg, RefAccumulator) else arg
        for arg in args
        if isinstance(arg, RefAccumulator) or not isinstance(arg, Accumulator)
    ]


def transpose_jaxpr(
    closed: ClosedJaxpr, args: Sequence[Any], cts: Sequence[Any]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The transposed program of one that is linear where `args` are accumulators.

    It takes the other arguments and all refs (`transposed_inputs`) followed by those of
    the outputs' cotangents `cts` that are not zero; the second result says which of the
    linear inputs have an answer.
    """
    kinds = tuple(type(x) if isinstance(x, Accumulator) else None for x in args)
    return _transpose_jaxpr(closed, kinds, tuple(type(ct) is Zero for ct in cts))


@weakref_lru_cache
def _transpose_jaxpr(
    closed: ClosedJaxpr, kinds: tuple[type | None, ...], zero_cts: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    answered: list[bool] = []
    in_avals = [
        RefAccumulator(aval.to_ct_aval()).type_of_ref() if kind else aval
        for aval, kind in zip(closed.in_avals, kinds, strict=True)
        if kind in (None, RefAccumulator)
    ]
    num_values = len(in_avals)
    in_avals += [
        aval.to_ct_aval() for aval, zero in zip(closed.out_avals, zero_cts) if not zero
    ]

    def transposed(*args: Any) -> list[Any]:
        values, given = iter(args[:num_values]), iter(args[num_values:])
        inputs = []
        for aval, kind in zip(closed.in_avals, kinds):
            if kind is None:
                inputs.append(next(values))
            elif kind is RefAccumulator:
                inputs.append(RefAccumulator(aval.to_ct_aval(), next(values)))
            else:
                inputs.append(kind(aval.to_ct_aval()))
        cotangents = [
            Zero(aval.to_ct_aval()) if zero else next(given)
            for aval, zero in zip(closed.out_avals, zero_cts)
        ]
        backward_pass(closed.jaxpr, closed.consts, inputs, cotangents)
        sums = [
            Zero(x.aval) if isinstance(x, RefAccumulator) else x.freeze()
            for x in inputs
            if isinstance(x, Accumulator)
        ]
        answered.extend(type(ct) is not Zero for ct in sums)
        return [ct for ct in sums if type(ct) is not Zero]

    jaxpr, consts = trace_to_jaxpr(transposed, in_avals, closed.debug_info)
    return ClosedJaxpr(jaxpr, consts), tuple(answered)


def vjp(
    jaxpr: Jaxpr,
    residuals: Sequence[Any],
    nonzeros: Sequence[bool],
    accumulators: Sequence[Accumulator],
    cotangents: Sequence[Any],
) -> None:
    """Pull cotangents of the outputs of `linearize` back to its inputs.

    They add up in the accumulators, one for each input.
    """
    kept = [ct for ct, nonzero in zip(cotangents, nonzeros, strict=True) if nonzero]
    with source_info.transform_name_stack("transpose"):
        backward_pass(jaxpr, residuals, accumulators, kept)
