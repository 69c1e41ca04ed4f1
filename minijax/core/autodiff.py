"""Derivatives: forward (jvp), linearize, and backward (transpose).

Forward mode runs a function on pairs (primal, tangent): `JVPTrace`. Reverse mode takes
two steps. `linearize` runs the function once under a `LinearizeTrace`. It computes the
primal values and, beside them, writes a *linear* program from tangents of the inputs to
tangents of the outputs; the values that this program needs from the forward pass are
its constants, the residuals. `backward_pass` then walks the linear program from its end
to its start and transposes every equation: cotangents of the outputs become cotangents
of the inputs, and where a variable was used twice, two cotangents add.

Forward and backward therefore share one set of rules for each primitive: its jvp, and
the transposes of what its jvp writes. Take `f(x) = sin(x) * x`:

    jvp        a = sin x;  b = cos x;  da = mul dx b
               y = mul a x;  dy = add_any (mul da x) (mul a dx)
    linearize  a = sin x;  b = cos x;  y = mul a x     now; a, b and x are residuals
               { dx. da = mul dx b;  c = mul da x;  d = mul a dx;  dy = add_any c d }
    transpose  { ct. e = mul a ct;  f = mul ct x;  g = mul f b;  out = add_any e g }

A zero tangent is a `Zero`, for which nothing is computed. Cotangents add up in an
`Accumulator` for each variable (both classes are in `core/rules.py`).

In JAX: `interpreters/ad.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import dtypes, events, source_info
from .language import (
    AbstractValue,
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
    cached_by_program,
    chosen,
    eval_jaxpr,
    get_aval,
    no_debug_info,
    set_current_trace,
    weakref_lru_cache,
)
from .partial_eval import (
    DynamicJaxprTrace,
    JaxprTrace,
    allowed_sources,
    convert_constvars_jaxpr,
    split_forwarded,
    trace_ended,
    trace_to_jaxpr,
)
from .rules import (
    Accumulator,
    Flags,
    Zero,
    accumulator_for,
    instantiate,
    is_linear,
    sum_tangents,
    zero_tangent_of,
)
from .state import state

# ----------------------------------------------------------------------------------
# Forward mode
# ----------------------------------------------------------------------------------


only_zeros = frozenset([Zero]).issuperset  # whether each of some types is `Zero`


class JVPTracer(Tracer):
    """A value together with its tangent."""

    __slots__ = ("primal", "tangent")
    has_tangent = True

    def __init__(self, trace: Trace, primal: Any, tangent: Any):
        self._trace = trace
        self.aval = get_aval(primal)
        self.primal = primal
        self.tangent = tangent

    def to_concrete_value(self) -> Any | None:
        primal = self.primal
        return primal.to_concrete_value() if isinstance(primal, Tracer) else primal

    def birth(self) -> str:
        birth = getattr(self.primal, "birth", getattr(self.tangent, "birth", None))
        return birth() if birth else "\nIt carries the tangents of a `jvp` or `grad`."

    def __repr__(self) -> str:
        return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"


class LinearizeTracer(JVPTracer):
    """A value, and the variable of the linear program that stands for its tangent."""

    __slots__ = ()

    def __repr__(self) -> str:
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
    raise primitive.missing("jvp", "Differentiation rule")


class JVPTrace(Trace):
    """Applies forward rules to pairs of a value and its tangent.

    `sin` of the pair (x, dx) is the pair (sin x, mul dx (cos x)): the rule binds these
    three primitives in the parent trace.

    In JAX: `interpreters/ad.py`, `JVPTrace`.
    """

    __slots__ = ("parent", "tag", "alive", "split", "tangent_trace")
    tracer_class: type[JVPTracer] = JVPTracer

    def __init__(self, parent: Trace, tag: TraceTag):
        self.parent = parent
        self.tag = tag
        self.alive = True
        # The trace that a forward rule runs in, and the trace in which operations on
        # tangents alone are bound. In forward mode both are the parent.
        # `LinearizeTrace` sets its own. Custom rules use them under either trace.
        self.split: Trace = parent
        self.tangent_trace: Trace = parent

    def to_pair(self, value: Any) -> tuple[Any, Any]:
        if isinstance(value, self.tracer_class) and _tag(value) is self.tag:
            return value.primal, value.tangent
        return value, zero_tangent_of(value)

    def primal_of(self, value: Any) -> Any:
        """A value without its tangent; auxiliary values may be of any class."""
        own = isinstance(value, self.tracer_class) and _tag(value) is self.tag
        return value.primal if own else value

    def tracer(self, primal: Any, tangent: Any) -> Any:
        if type(tangent) is Zero:
            return primal
        return self.tracer_class(self, primal, tangent)

    def linear(self, primal: Any, tangent: Any) -> Any:
        """The tangent that a rule returned; `LinearizeTrace` checks it here."""
        return tangent

    def process_primitive(
        self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        primals, tangents = unzip(map(self.to_pair, args))
        with set_current_trace(self.parent):
            if only_zeros(map(type, tangents)) and not primitive.makes_ref:
                return self.parent.process_primitive(primitive, primals, params)
            out, out_tangent = apply_jvp(primitive, primals, tangents, params)
        if primitive.multiple_results:
            return [self.tracer(x, t) for x, t in zip(out, out_tangent)]
        return self.tracer(out, out_tangent)


def _tag(tracer: Tracer) -> TraceTag:
    return tracer._trace.tag  # type: ignore[attr-defined]


def unzip(pairs: Any) -> tuple[list, list]:
    pairs = tuple(pairs)
    return [first for first, _ in pairs], [second for _, second in pairs]


def jvp(
    fun: Callable,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    aux: list[Any] | None = None,
) -> tuple[list, list]:
    """Push tangents forward through a flat function: (outputs, their tangents).

    Tangents may be `Zero`, those of the outputs too. A tangent of dtype float0 is zero.
    `fun` may put values in the list `aux`; afterwards they are without tangents.
    """
    trace = chosen(JVPTrace)(state.trace, TraceTag())
    args = [trace.tracer(p, zero_if_float0(t)) for p, t in zip(primals, tangents)]
    with set_current_trace(trace), source_info.transform_name_stack("jvp"):
        outputs = fun(*args)
    pairs = unzip(map(trace.to_pair, outputs))
    if aux is not None:
        aux[:] = map(trace.primal_of, aux)
    trace.alive = False
    return pairs


def zero_if_float0(tangent: Any) -> Any:
    if type(tangent) is Zero:
        return tangent
    aval = get_aval(tangent)
    if isinstance(aval, ShapedArray) and dtypes.is_float0(aval.dtype):
        return Zero(aval)
    return tangent


@cached_by_program
def jvp_jaxpr(
    closed: ClosedJaxpr, nonzeros: Sequence[bool], wanted: Sequence[bool] = ()
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program of values and tangents.

    Inputs: the primals, then the tangents of those inputs whose `nonzeros` flag is set.
    Outputs: the primals, then the tangents that are nonzero or flagged in `wanted`; the
    second result says which these are. With one nonzero tangent,

        { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }

    becomes

        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            d:f32[] = cos a
            e:f32[] = mul b d
          in (c, e) }
    """
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


def split_tangents(
    outputs: Sequence[Any], nonzeros: Sequence[bool]
) -> tuple[list[Any], list[Any]]:
    """(outputs, their tangents) of values followed by the tangents that are nonzero."""
    count = len(nonzeros)
    values, tangents = list(outputs[:count]), outputs[count:]
    return values, with_zeros(tangents, nonzeros, map(get_aval, values))


def with_zeros(
    tangents: Iterable[Any], nonzeros: Sequence[bool], avals: Iterable[AbstractValue]
) -> list[Any]:
    """Tangents of outputs of these types, of which only the nonzero ones are given."""
    given = iter(tangents)
    return [
        next(given) if nonzero else Zero(aval.to_tangent_aval())
        for nonzero, aval in zip(nonzeros, avals)
    ]


# ----------------------------------------------------------------------------------
# Linearize: run the primal, write down the linear program
# ----------------------------------------------------------------------------------


class LinearizeTrace(JVPTrace):
    """Computes primals in the parent trace and writes tangents as a linear program.

    A primitive's jvp runs under a `JaxprTrace` that sends what involves a tangent to
    the linear program and everything else to the parent. So the rule `mul(t, cos(x))`
    computes `cos(x)` now and writes one `mul`.

    A primitive that carries a program has a rule of its own, called as
    `Primitive.linearize(nonzeros, *primals, **params)`. It returns `(outputs, nonzeros
    of outputs, residuals, linear)`. Then `linear(residuals, *tangents)` is called, and
    writes its equations to the linear program.

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
        primals, tangents = unzip(map(self.to_pair, args))
        if only_zeros(map(type, tangents)) and not primitive.makes_ref:
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
        # A tangent that depends on no input tangent, such as an array of zeros from a
        # custom rule. Tangents are linear in input tangents, so this one is zero.
        return Zero(get_aval(tangent))


def linearize(
    fun: Callable,
    primals: Sequence[Any],
    debug_info: DebugInfo = no_debug_info,
    aux: list[Any] | None = None,
) -> tuple[list[Any], Jaxpr, list[Any], list[bool]]:
    """Run a flat function and write down its derivative at that point.

    Returns `(outputs, jaxpr, residuals, nonzeros)`. The linear program `jaxpr` has the
    residuals as constvars. It takes the tangents of all inputs and returns those
    tangents of outputs whose flag in `nonzeros` is set; the others are zero. For
    `sin(x) * 2.0` it is, with the residual `cos x`,

        { lambda a:f32[]; b:f32[]. let c:f32[] = mul b a; d:f32[] = mul c 2.0 in (d,) }

    `fun` may put values in the list `aux`; afterwards they are without tangents.
    """
    tangent_trace = DynamicJaxprTrace(debug_info, dead_code=True)
    trace = chosen(LinearizeTrace)(state.trace, tangent_trace)
    args = []
    for primal in primals:
        aval = get_aval(primal).to_tangent_aval()
        tangent = zero_if_float0(tangent_trace.new_arg(aval))
        args.append(trace.tracer(primal, tangent))
    if events.subscribers:
        events.emit("linearize.begin", trace=trace, debug_info=debug_info)
    try:
        with set_current_trace(trace), source_info.transform_name_stack("jvp"):
            outputs = fun(*args)
        outs, out_tangents = unzip(map(trace.to_pair, outputs))
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
    """The tangents; where `wanted` is set, `Zero` becomes an array of zeros."""
    flags = wanted or (False,) * len(tangents)
    return [instantiate(t) if flag else t for t, flag in zip(tangents, flags)]


@weakref_lru_cache
def linearize_jaxpr(
    closed: ClosedJaxpr,
    nonzeros: tuple[bool, ...],
    wanted: tuple[bool, ...] = (),
    forwardable: tuple[bool, ...] | None = None,
) -> tuple[ClosedJaxpr, int, tuple[bool, ...], tuple[int | None, ...], ClosedJaxpr]:
    """One program becomes two: the primal with residuals, and the linear one.

    Returns `(primal, new, nonzeros_out, forwarded, linear)`. `primal` has the outputs
    of `closed` followed by `new` residuals. `linear` takes all residuals and then the
    tangents. `forwarded` has an entry for each residual: its position among
    `[*closed.consts, *inputs]`, or None for a new one. `forwardable` says which inputs
    may be forwarded (None: all). Tangents of outputs flagged in `wanted` are returned
    even when they are zero. For instance

        { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b a in (c,) }

    becomes, with `a` forwarded,

        { lambda ; a:f32[]. let b = sin a; d = cos a; c = mul b a in (c, d, b) }
        { lambda ; d:f32[] a:f32[] b:f32[] t:f32[]. let
            e = mul t d; f = mul e a; g = mul b t; h = add_any f g in (h,) }

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
    outs, out_tangents = unzip(map(trace.to_pair, outputs))
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
    jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], cotangents: Sequence[Any]
) -> None:
    """Walk a linear program from its end to its start, transposing each equation.

    `args` has an accumulator for each linear argument, which receives its cotangent,
    and a value for each of the others. Equations that do not depend on a linear
    argument are computed first, in order.

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
            env.update((var, accumulator_for(var.aval)) for var in eqn.outvars)
            linear.update(eqn.outvars)
            linear_eqns.append(eqn)
            continue
        with source_info.user_context(eqn.source_info, outer=outer):
            out = eqn.primitive.rebind([read(v) for v in eqn.invars], eqn.params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out]))
    _accumulate_in(map(read, jaxpr.outvars), cotangents)
    for eqn in reversed(linear_eqns):
        cts = [env.pop(var).freeze() for var in eqn.outvars]
        inputs = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
        with source_info.user_context(eqn.source_info, outer=outer):
            transpose_eqn(eqn.primitive, cts, inputs, eqn.params)


def transpose_eqn(
    primitive: Primitive, cts: Sequence[Any], inputs: Sequence[Any], params: dict
) -> None:
    """Apply one transpose rule and add what it returns to the accumulators."""
    if primitive.transpose is None:
        what = "Transpose rule (for reverse-mode differentiation)"
        raise primitive.missing("transpose", what)
    if events.subscribers:
        events.emit("transpose", primitive=primitive, cotangents=cts)
    ct = list(cts) if primitive.multiple_results else cts[0]
    if type(ct) is Zero and not any(is_linear(x) and x.is_ref for x in inputs):
        return
    answers = primitive.transpose(ct, *inputs, **params)
    if answers is not None:
        _accumulate_in(inputs, answers)


def _accumulate_in(targets: Iterable[Any], cotangents: Sequence[Any]) -> None:
    """Add cotangents to those of the targets that are accumulators."""
    for target, cotangent in zip(targets, cotangents, strict=True):
        if isinstance(target, Accumulator):
            target.accum(cotangent)


def transposed_inputs(args: Sequence[Any]) -> list[Any]:
    """The inputs of a transposed program, without the cotangents.

    They are the values among `args` and the memory of accumulators that add in place.
    """
    return [
        arg.transposed_input() if is_linear(arg) else arg
        for arg in args
        if not is_linear(arg) or arg.in_place
    ]


def transpose_jaxpr(
    closed: ClosedJaxpr, args: Sequence[Any], cts: Sequence[Any]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Transpose a program that is linear in the inputs whose `args` are accumulators.

    The transposed program takes `transposed_inputs(args)`, then the nonzero ones among
    `cts`, the cotangents of the outputs. It returns the nonzero cotangents of the
    linear inputs; the second result says which these are. Transposed in `t`,

        { lambda ; a:f32[] t:f32[]. let b:f32[] = mul t a in (b,) }

    is `{ lambda ; a:f32[] ct:f32[]. let b:f32[] = mul ct a in (b,) }`.
    """
    kinds = tuple(type(arg) if is_linear(arg) else None for arg in args)
    return _transpose_jaxpr(closed, kinds, tuple(type(ct) is Zero for ct in cts))


@weakref_lru_cache
def _transpose_jaxpr(
    closed: ClosedJaxpr,
    kinds: tuple[type[Accumulator] | None, ...],
    zero_cts: tuple[bool, ...],
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    answered: list[bool] = []
    in_avals = [
        kind.transposed_input_aval(aval) if kind else aval
        for aval, kind in zip(closed.in_avals, kinds, strict=True)
        if kind is None or kind.in_place
    ]
    ct_avals = [aval.to_ct_aval() for aval in closed.out_avals]
    in_avals += [  # `linear_transpose` has cotangents of integers, which are integers
        aval if dtypes.is_float0(ct_aval.dtype) else ct_aval
        for aval, ct_aval, zero in zip(closed.out_avals, ct_avals, zero_cts)
        if not zero
    ]

    def transposed(*args: Any) -> list[Any]:
        rest = iter(args)
        inputs: list[Any] = []
        for aval, kind in zip(closed.in_avals, kinds):
            given = [next(rest)] if kind is None or kind.in_place else []
            inputs += [kind(aval.to_ct_aval(), *given)] if kind else given
        cotangents = [
            Zero(aval) if zero else next(rest) for aval, zero in zip(ct_avals, zero_cts)
        ]
        backward_pass(closed.jaxpr, closed.consts, inputs, cotangents)
        sums = [
            Zero(x.aval) if x.in_place else x.freeze() for x in inputs if is_linear(x)
        ]
        answered.extend(type(ct) is not Zero for ct in sums)
        return [ct for ct in sums if type(ct) is not Zero]

    jaxpr, consts = trace_to_jaxpr(transposed, in_avals, closed.debug_info)
    return ClosedJaxpr(jaxpr, consts), tuple(answered)


def accumulate(args: Sequence[Any], answered: Flags, answers: Sequence[Any]) -> None:
    """Add what a transposed program returns to the accumulators among `args`.

    `answered` says, for each accumulator, whether there is an answer for it.
    """
    rest = iter(answers)
    for accumulator, has_answer in zip(filter(is_linear, args), answered, strict=True):
        if has_answer:
            accumulator.accum(next(rest))


def vjp(
    jaxpr: Jaxpr,
    residuals: Sequence[Any],
    nonzeros: Sequence[bool],
    accumulators: Sequence[Accumulator],
    cotangents: Sequence[Any],
) -> None:
    """Pull cotangents of the outputs of `linearize` back to its inputs.

    `jaxpr`, `residuals` and `nonzeros` come from `linearize`. The cotangents add up in
    the accumulators, one for each input.
    """
    kept = [ct for ct, nonzero in zip(cotangents, nonzeros, strict=True) if nonzero]
    with source_info.transform_name_stack("transpose"):
        backward_pass(jaxpr, residuals, accumulators, kept)
