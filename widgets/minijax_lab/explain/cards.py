"""Primitive cards: what each primitive is, with its checks as they were run.

A card is made by running things, not by describing them: the primitive's example is
computed by XLA and by NumPy, differentiated by its rules and by differences, transposed
and held against the dot product, batched and held against a loop, lowered and compiled.
"""

from __future__ import annotations

import dis
import importlib
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax import lax, random
from minijax import numpy as jnp
from minijax.compile.jit_api import jit, make_jaxpr
from minijax.core import hlo
from minijax.core.language import (
    Jaxpr,
    Literal,
    Primitive,
    all_primitives,
    jaxprs_in_params,
)
from minijax.extend.core import primitives  # noqa: F401  now all are in the table
from minijax.lax import linalg
from minijax.random import key as new_key
from minijax.transforms.differentiation import jvp, vjp
from minijax.transforms.vectorization import vmap
from minijax_lab.explain.formulas import formulas_of, why_no_formula
from minijax_lab.explain.levels import target_named
from minijax_lab.explain.recording import Recording
from minijax_lab.explain.source import defined_in, record_block
from minijax_lab.explain.words import PHRASES

STEP = 1e-2
X = np.array([0.3, -0.6, 0.8], np.float32)
Y = np.array([0.7, 0.2, -0.4], np.float32)
A = np.array([[0.5, -0.2, 0.1], [0.3, 0.9, -0.7]], np.float32)
B = np.arange(6, dtype=np.float32).reshape(3, 2) / 6
S = np.array([[2.0, 0.5, -0.3], [0.5, 3.0, 0.7], [-0.3, 0.7, 1.5]], np.float32)
I = np.array([3, 5, 12], np.int32)  # noqa: E741
J = np.array([2, 3, 5], np.int32)

# How to use a primitive once. What `lax` has and takes arrays alone needs none.
EXAMPLES: dict[str, tuple[Callable[..., Any], tuple]] = {
    "acosh": (lax.acosh, (X + 2,)),
    "and": (lax.bitwise_and, (I, J)),
    "argmax": (lambda x: lax.argmax(x, 0, np.int32), (X,)),
    "argmin": (lambda x: lax.argmin(x, 0, np.int32), (X,)),
    "bitcast_convert_type": (lambda x: lax.bitcast_convert_type(x, np.int32), (X,)),
    "broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (2, 3), (1,)), (X,)),
    "clamp": (lambda x: lax.clamp(-0.5, x, 0.5), (X,)),
    "complex": (lax.complex, (X, Y)),
    "concatenate": (lambda x, y: lax.concatenate([x, y], 0), (X, Y)),
    "conj": (lambda x, y: lax.conj(lax.complex(x, y)), (X, Y)),
    "conv_general_dilated": (
        lambda x, k: lax.conv(x, k, (1,), "SAME"),
        (X.reshape(1, 1, 3), Y.reshape(1, 1, 3)),
    ),
    "convert_element_type": (
        lambda x: lax.convert_element_type(x, np.float16),
        (X,),
    ),
    "copy": (jnp.copy, (X,)),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 0), (X,)),
    "cummax": (lambda x: lax.cummax(x, 0), (X,)),
    "cummin": (lambda x: lax.cummin(x, 0), (X,)),
    "cumprod": (lambda x: lax.cumprod(x, 0), (X,)),
    "cumsum": (lambda x: lax.cumsum(x, 0), (X,)),
    "dot_general": (lambda a, b: a @ b, (A, B)),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (1,), (2,)), (X,)),
    "dynamic_update_slice": (
        lambda x, y: lax.dynamic_update_slice(x, y, (1,)),
        (X, Y[:1]),
    ),
    "gather": (lambda x: x[jnp.array([2, 0])], (X,)),
    "imag": (lambda x, y: lax.imag(lax.complex(x, y)), (X, Y)),
    "integer_pow": (lambda x: lax.integer_pow(x, 3), (X,)),
    "iota": (lambda: lax.iota(np.float32, 4), ()),
    "log": (lax.log, (X + 2,)),
    "log1p": (lax.log1p, (X + 1,)),
    "lgamma": (lax.lgamma, (X + 2,)),
    "digamma": (lax.digamma, (X + 2,)),
    "not": (lax.bitwise_not, (I,)),
    "or": (lax.bitwise_or, (I, J)),
    "pad": (lambda x: lax.pad(x, np.float32(0), [(1, 2, 0)]), (X,)),
    "population_count": (lax.population_count, (I,)),
    "pow": (lax.pow, (X + 2, Y)),
    "random_bits": (lambda: jnp.asarray(_bits()), ()),
    "real": (lambda x, y: lax.real(lax.complex(x, y)), (X, Y)),
    "reduce_and": (lambda x: jnp.all(x > -1), (X,)),
    "reduce_max": (lambda x: jnp.max(x), (X,)),
    "reduce_min": (lambda x: jnp.min(x), (X,)),
    "reduce_or": (lambda x: jnp.any(x > 0), (X,)),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 8, 23), (X,)),
    "reduce_prod": (lambda x: jnp.prod(x), (X,)),
    "reduce_sum": (lambda x: jnp.sum(x), (X,)),
    "reduce_window_sum": (
        lambda x: lax.reduce_window(x, np.float32(0), lax.add, (2,), (1,), "VALID"),
        (X,),
    ),
    "reshape": (lambda a: a.reshape(3, 2), (A,)),
    "rev": (lambda x: lax.rev(x, (0,)), (X,)),
    "rsqrt": (lax.rsqrt, (X + 1,)),
    "rem": (lambda x: lax.rem(x, np.float32(0.5)), (X,)),
    "scatter": (lambda x: jnp.asarray(x).at[1].set(9.0), (X,)),
    "scatter-add": (
        lambda x, y: jnp.asarray(x).at[jnp.array([1, 1, 0])].add(y),
        (X, Y),
    ),
    "scatter-mul": (lambda x: jnp.asarray(x).at[1].multiply(3.0), (X,)),
    "scatter-max": (lambda x: jnp.asarray(x).at[1].max(0.0), (X,)),
    "scatter-min": (lambda x: jnp.asarray(x).at[1].min(0.0), (X,)),
    "select_n": (lambda x, y: jnp.where(X > 0, x, y), (X, Y)),
    "shift_left": (lax.shift_left, (I, J)),
    "shift_right_logical": (lax.shift_right_logical, (I, J)),
    "shift_right_arithmetic": (lax.shift_right_arithmetic, (I, J)),
    "slice": (lambda x: lax.slice(x, (1,), (3,)), (X,)),
    "sort": (lambda x: lax.sort(x), (X,)),
    "split": (lambda a: lax.split(a, (1, 2), axis=1)[0], (A,)),
    "sqrt": (lax.sqrt, (X + 1,)),
    "squeeze": (lambda a: jnp.squeeze(a, 0), (A[:1],)),
    "stack": (lambda x, y: lax.stack([x, y]), (X, Y)),
    "approx_top_k": (lambda x: lax.approx_max_k(x, 2)[0], (X,)),
    "top_k": (lambda x: lax.top_k(x, 2)[0], (X,)),
    "transpose": (lambda a: a.T, (A,)),
    "xor": (lax.bitwise_xor, (I, J)),
    "igamma": (lambda x: lax.igamma(Y + 1, x), (X + 2,)),
    "igammac": (lambda x: lax.igammac(Y + 1, x), (X + 2,)),
    "polygamma": (
        lambda x: lax.polygamma(np.array([1, 2, 1], np.float32), x),
        (X + 2,),
    ),
    "unstack": (lambda a: lax.unstack(a)[0], (A,)),
    "zeta": (lax.zeta, (X + 3, Y + 1)),
    "cholesky": (linalg.cholesky, (S,)),
    "cholesky_update": (linalg.cholesky_update, (np.triu(S), X)),
    "eig": (lambda a: linalg.eig(a, enable_eigvec_derivs=True)[0], (S,)),
    "eigh": (lambda a: linalg.eigh(a)[1], (S,)),
    "fft": (lambda x, y: lax.fft(lax.complex(x, y), "FFT", (3,)), (X, Y)),
    "geqp3": (
        lambda a: all_primitives["geqp3"].bind(a, I * 0, use_magma=None)[0],
        (S,),
    ),
    "geqrf": (lambda a: all_primitives["geqrf"].bind(a)[0], (S,)),
    "hessenberg": (lambda a: linalg.hessenberg(a)[0], (S,)),
    "householder_product": (linalg.householder_product, (S, X)),
    "lu": (lambda a: linalg.lu(a)[0], (S,)),
    "lu_pivots_to_permutation": (
        lambda i: linalg.lu_pivots_to_permutation(i, 3),
        (I * 0 + 2,),
    ),
    "ormqr": (linalg.ormqr, (S, X, S)),
    "qr": (lambda a: linalg.qr(a)[1], (S,)),
    "schur": (lambda a: linalg.schur(a)[0], (S,)),
    "svd": (lambda a: linalg.svd(a, compute_uv=False), (S,)),
    "symmetric_product": (linalg.symmetric_product, (S, S)),
    "triangular_solve": (
        lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True),
        (S, B),
    ),
    "tridiagonal": (lambda a: linalg.tridiagonal(a)[0], (S,)),
    "tridiagonal_solve": (linalg.tridiagonal_solve, (X, X + 3, Y, B)),
}


# These give tokens, or nothing, and are only there for the order of effects.
WITHOUT_VALUES = {"create_token", "after_all", "dce_sink"}


def _bits() -> Any:
    return random.bits(new_key(0), (3,))


@dataclass
class Check:
    """One check as it was run: what was compared, and the largest difference."""

    name: str
    result: str  # "holds", "fails", or why it does not apply
    difference: float | None


@dataclass
class SmallArray:
    """A type as jaxprs write it, and the numbers, row by row."""

    type: str
    rows: list[list[str]]


@dataclass(kw_only=True)
class CardRecording(Recording):
    """A primitive's card."""

    kind = "card"

    name: str
    meaning: str
    family: str
    block: list[str]
    path: str
    rules: list[list[str]]  # name, and what it makes, or why there is none
    example: str
    checks: list[Check]
    stablehlo: list[str]
    compiled: list[str] = field(default_factory=list)
    # The example's arguments and results, where they are small arrays of numbers.
    inputs: list[SmallArray] = field(default_factory=list)
    outputs: list[SmallArray] = field(default_factory=list)
    # Formulas of the example's derivative, forwards and backwards, read off the rules,
    # or a sentence that says why there are none.
    derivative: list[str] = field(default_factory=list)
    target: str = "cpu"  # the machine that it was compiled for


def small_array(value: Any) -> SmallArray | None:
    """An array's numbers as texts; None where they do not fit a small picture."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return None
    if array.ndim > 2 or not 0 < array.size <= 16 or array.dtype.kind not in "bifu":
        return None
    kind = "bool" if array.dtype.kind == "b" else f"{array.dtype}"
    short = kind if kind == "bool" else re.sub(r"([a-z])[a-z]*(\d+)", r"\1\2", kind)
    sizes = ",".join(map(str, array.shape))
    if array.dtype.kind == "f":
        # What is left of rounding is written as 0.
        largest_one = np.max(np.abs(array))
        array = np.where(np.abs(array) < 1e-6 * largest_one, 0, array)
    rows = [
        [f"{x:.3g}" if array.dtype.kind == "f" else str(x) for x in row]
        for row in array.reshape(-1, array.shape[-1] if array.ndim else 1)
    ]
    return SmallArray(f"{short}[{sizes}]", rows)


def small_arrays(values: Sequence[Any]) -> list[SmallArray]:
    """All of the values as small arrays, at most three; none if one is not small."""
    found = [small_array(value) for value in values[:4]]
    small = [array for array in found if array is not None]
    return small if len(small) == len(found) <= 3 else []


# Each defines primitives that are in the table from its first import on.
LATER_MODULES = (
    "minijax.debug",
    "minijax.numpy.fft",
    "minijax.experimental.checkify",
    "minijax.experimental.custom_partitioning",
    "minijax.experimental.layout",
    "minijax.experimental.pallas",
)


def record_card(name: str | Primitive, target: str = "cpu") -> CardRecording:
    """Makes the card of a primitive, compiled for a target.

    KeyError, with near names, if there is none.
    """
    name = str(name)
    platform = target_named(target).platform
    if name not in all_primitives:
        for module in LATER_MODULES:
            importlib.import_module(module)
    if name not in all_primitives:
        import difflib

        near = difflib.get_close_matches(name, all_primitives, 3)
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        raise KeyError(f"there is no primitive named {name!r}.{hint}")
    primitive = all_primitives[name]
    block = record_block(primitive) if defined_in(primitive) else None
    used = example_of(name)
    checks: list[Check] = []
    stablehlo: list[str] = []
    operations: list[str] = []
    compiled: list[str] = []
    inputs: list[SmallArray] = []
    outputs: list[SmallArray] = []
    example = "no example is run for this primitive"
    if used is not None:
        function, args = used
        example = str(make_jaxpr(function)(*args))
        checks = run_checks(primitive, function, args)
        stablehlo, operations, compiled = lowered(function, args, target, platform)
        inputs, outputs = small_arrays(args), small_arrays(results_of(function, args))
    derivative: list[str] = []
    if used is not None and used[1] and all(of_floats(arg) for arg in used[1]):
        derivative = formulas_of(name, *used)
    if not derivative:
        has_jvp = has_rule(primitive.jvp) or primitive.jvp_terms is not None
        made = (
            equation_of(make_jaxpr(used[0])(*used[1]).jaxpr, primitive)
            if used
            else None
        )
        types = [v.aval.str_short(True) for v in made.outvars] if made else []
        kind = kind_of(primitive)
        derivative = [why_no_formula(primitive, kind, has_jvp, types)]
    rules = rules_of(primitive, *(used or (None, ())))
    for rule in rules:
        if rule[0] == "lowering" and rule[1] == HAS_RULE and used is not None:
            made = ", ".join(operations)
            rule[1] = f"to {made}" if made else "to nothing: the operand is the result"
    held = sum(check.result == "holds" for check in checks)
    ran = sum(check.difference is not None for check in checks)
    # On a card there is no equation whose parameters could fill the phrase.
    meaning = re.sub(r"\baxis \{\w+\}", "one axis", PHRASES.get(name, ""))
    meaning = re.sub(r"\{(\w+)\}", r"(\1)", meaning)
    headline = f"primitive {name}"
    if meaning:
        headline += f": {meaning}"
    if ran:
        headline += f"; {held} of {ran} checks hold"
    return CardRecording(
        call=name,
        headline=headline,
        name=name,
        meaning=meaning,
        family=family_of(primitive),
        block=block.sources[0].lines if block else [],
        path=block.path if block else "",
        rules=rules,
        example=example,
        checks=checks,
        stablehlo=stablehlo,
        compiled=compiled,
        inputs=inputs,
        outputs=outputs,
        derivative=derivative,
        target=target,
    )


def of_floats(value: Any) -> bool:
    """Whether a value is an array that a derivative may be taken by."""
    return getattr(value, "dtype", None) == np.float32


def results_of(function: Callable[..., Any], args: tuple) -> list[Any]:
    """What a function returns, as a list; nothing where it cannot run alone here."""
    try:
        found = function(*args)
    except Exception:  # a rule may be missing: the checks say so
        return []
    return list(found) if isinstance(found, (tuple, list)) else [found]


# What the families of the table mean, in its order.
FAMILIES = {
    "elementwise": "each entry alone",
    "shape": "the same entries, arranged",
    "index": "parts of arrays",
    "reduce": "many entries to one",
    "linear algebra": "products and solves",
    "random": "keys and bits",
    "programs": "a program inside",
    "devices": "across devices",
    "refs": "arrays that change",
    "order": "effects, names, order",
}
# The family by the room that a primitive's block stands in, where that says it.
ROOMS = {
    "elementwise": "elementwise",
    "shape": "shape",
    "index": "index",
    "reduce": "reduce",
    "linear": "linear algebra",
    "linear_algebra": "linear algebra",
    "random": "random",
    "parallel": "devices",
    "refs": "refs",
    "callbacks": "order",
}
# The files of the core that hold primitives, which all stand in one room.
CORE_FILES = {
    "arithmetic.py": "elementwise",
    "shaping.py": "shape",
    "sums.py": "reduce",
    "dot.py": "linear algebra",
}
# Those whose room is another: tokens stand with shapes, reductions with loops.
ELSEWHERE = {
    "after_all": "order",
    "create_token": "order",
    "custom_linear_solve": "linear algebra",
    "dce_sink": "order",
    "name": "order",
    "optimization_barrier": "order",
    "ragged_dot_general": "linear algebra",
    "rng_bit_generator": "random",
    "rng_uniform": "random",
    "random_gamma_grad": "random",
    "reduce": "reduce",
    "reduce_window": "reduce",
    "stage": "order",
    "stop_gradient": "elementwise",
}


def family_of(primitive: Primitive) -> str:
    """What a primitive is for: a name in `FAMILIES`."""
    if primitive.name in ELSEWHERE:
        return ELSEWHERE[primitive.name]
    place = defined_in(primitive)
    if not place:
        return "order"
    path = place[0]
    if path.parent.name == "core":
        return CORE_FILES.get(path.name, "programs")
    return ROOMS.get(path.parent.name, "programs")


HAS_RULE = "has a rule"


def rules_of(
    primitive: Primitive, function: Callable[..., Any] | None, args: tuple
) -> list[list[str]]:
    """Each rule, and what it makes of the example; or why there is none."""
    kind = kind_of(primitive)
    slots = {
        "type": primitive.type_rule is not None,
        "jvp": has_rule(primitive.jvp) or primitive.jvp_terms is not None,
        "transpose": has_rule(primitive.transpose),
        "batch": has_rule(primitive.batch),
        "lowering": bool(primitive.lowerings),
    }
    found = []
    for name, there in slots.items():
        told = ""
        if there:
            told = made_by_rule(name, primitive, function, args) or HAS_RULE
            if told == HAS_RULE and name == "jvp" and is_flat(primitive):
                told = "gives zero"
        elif name in primitive.reasons:
            told = f"none: {primitive.reasons[name]}"
        elif name == "transpose" and kind == "derived":
            told = "none needed: its derivative is made of linear primitives"
        elif primitive.jvp is not None and name in ("jvp", "transpose"):
            told = "refuses: it only raises an error"
        else:
            told = "none"
        found.append([name, told])
    return found


def made_by_rule(
    name: str, primitive: Primitive, function: Callable[..., Any] | None, args: tuple
) -> str:
    """What a rule makes of the example, in a few words; "" if that is not known."""
    if function is None:
        return ""

    def applied(*xs: Any) -> Any:
        return function(*xs)

    try:
        if name == "type":
            closed = make_jaxpr(applied)(*args)
            eqn = equation_of(closed.jaxpr, primitive)
            types = [
                [v.aval.str_short(short_dtypes=True) for v in side]
                for side in (eqn.invars, eqn.outvars)
            ]
            return f"{', '.join(types[0]) or 'nothing'} -> {', '.join(types[1])}"
        floats = bool(args) and all(map(of_floats, args))
        if name == "jvp" and floats:
            closed = make_jaxpr(lambda *xs: jvp(applied, xs, xs))(*args)
            made = in_their_order(closed.jaxpr)
            return f"makes {', '.join(made)}" if made else ""
        if name == "transpose" and floats:
            closed = make_jaxpr(lambda *xs: vjp(applied, *xs)[1](applied(*xs)))(*args)
            made = in_their_order(closed.jaxpr)
            return f"with jvp, makes {', '.join(made)}" if made else ""
        if name == "batch" and args:
            batches = tuple(np.stack([a, a]) for a in args)
            closed = make_jaxpr(vmap(applied))(*batches)
            made = in_their_order(closed.jaxpr)
            return f"makes {', '.join(made)}" if made else ""
    except Exception:  # the rule declines this example; the checks say how
        return ""
    return ""


def equation_of(jaxpr: Jaxpr, primitive: Primitive) -> Any:
    """The first equation of a primitive in a program, or in one inside of it."""
    for eqn in jaxpr.eqns:
        if eqn.primitive is primitive:
            return eqn
    for eqn in jaxpr.eqns:
        for inner in jaxprs_in_params(eqn.params):
            found = equation_of(inner, primitive)
            if found is not None:
                return found
    return None


def in_their_order(jaxpr: Jaxpr) -> list[str]:
    """The primitives of a program, each once, those of called functions in place."""
    found: dict[str, None] = {}
    for eqn in jaxpr.eqns:
        inner = list(jaxprs_in_params(eqn.params))
        if eqn.primitive.name in ("jit", "closed_call") and inner:
            found.update(dict.fromkeys(in_their_order(inner[0])))
        else:
            found[eqn.primitive.name] = None
    return list(found)


def example_of(name: str) -> tuple[Callable[..., Any], tuple] | None:
    """A function that uses the primitive, and arguments for it; None if unknown."""
    # Made when the first card is: it loads loops, callbacks and custom rules.
    from minijax_lab.explain.card_examples import EXAMPLES as WITH_PROGRAMS

    given = EXAMPLES.get(name, WITH_PROGRAMS.get(name))
    if given is not None:
        return given if uses(given[0], given[1], name) else None
    function = getattr(lax, name, None)
    if function is None or name in WITHOUT_VALUES:
        return None
    for args in ((X,), (X, Y), (I,), (I, J)):
        if uses(function, args, name):
            return function, args
    return None


def uses(function: Callable[..., Any], args: tuple, name: str) -> bool:
    """Whether a function of these arguments leaves the primitive in its jaxpr."""
    try:
        closed = make_jaxpr(lambda *xs: function(*xs))(*args)
    except Exception:
        return False
    return name in names_in(closed.jaxpr)


def names_in(jaxpr: Jaxpr) -> set[str]:
    """The primitives of a program and of those in it."""
    found = {eqn.primitive.name for eqn in jaxpr.eqns}
    for eqn in jaxpr.eqns:
        for inner in jaxprs_in_params(eqn.params):
            found |= names_in(inner)
    return found


# ---- checks -------------------------------------------------------------------------


def run_checks(primitive: Primitive, function: Callable, args: tuple) -> list[Check]:
    """Runs what can be run on the example."""
    differentiable = bool(args) and all(map(of_floats, args))
    dtype = getattr(function(*args), "dtype", None)
    differentiable = differentiable and dtype == np.float32
    checks = [meaning_check(primitive, function, args)]
    if differentiable and not is_flat(primitive):
        name = "jvp against differences"
        checks.append(attempted(name, derivative_check, function, args))
        name = "backward against forward"
        checks.append(attempted(name, transpose_check, function, args))
    else:
        reason = primitive.reasons.get("jvp", "not all of its values are floats")
        if is_flat(primitive):
            reason = "its tangent is always zero"
        checks.append(Check("jvp against differences", f"not run: {reason}", None))
    if args:
        checks.append(attempted("batch against loop", batch_check, function, args))
    return checks


def is_flat(primitive: Primitive) -> bool:
    """Whether a primitive's derivative is zero wherever there is one."""
    return "always zero" in primitive.reasons.get("transpose", "")


def attempted(name: str, check: Callable[..., Check], *given: Any) -> Check:
    """A check, or why it does not apply: a rule may be declared not to exist."""
    try:
        return check(*given)
    except (NotImplementedError, ValueError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
        return Check(name, f"does not apply: {reason}", None)


def verdict(name: str, difference: float, limit: float) -> Check:
    """A check that compared numbers."""
    return Check(name, "holds" if difference <= limit else "fails", float(difference))


def meaning_check(primitive: Primitive, function: Callable, args: tuple) -> Check:
    """XLA's answer against NumPy's, by the block's `meaning`."""
    name = "XLA against NumPy"
    closed = make_jaxpr(lambda *xs: function(*xs))(*args)
    alone = len(closed.jaxpr.eqns) == 1 and closed.jaxpr.eqns[0].primitive is primitive
    if primitive.meaning is None or not alone:
        more = "there is no NumPy function for it"
        if primitive.meaning is not None:
            more = "the example has other operations, too"
        return Check(name, f"not compared: {more}", None)
    eqn = closed.jaxpr.eqns[0]
    operands: dict[Any, Any] = dict(zip(closed.jaxpr.invars, args))
    operands.update(zip(closed.jaxpr.constvars, map(np.asarray, closed.consts)))
    values = [
        np.asarray(v.val) if isinstance(v, Literal) else operands[v] for v in eqn.invars
    ]
    try:
        expected = primitive.meaning(*values, **eqn.params)
    except Exception as error:
        return Check(name, f"not computed: {type(error).__name__}", None)
    found = function(*args)
    if primitive.multiple_results and isinstance(expected, (list, tuple)):
        expected = expected[0]
        found = found[0] if isinstance(found, (list, tuple)) else found
    return verdict(name, largest(found, expected), 3e-5)


def derivative_check(function: Callable, args: tuple) -> Check:
    """The jvp rule against a central difference, in random directions."""
    rng = np.random.default_rng(0)
    directions = tuple(rng.normal(size=a.shape).astype(np.float32) for a in args)
    _, tangent = jvp(function, args, directions)
    ahead = function(*(a + STEP * d for a, d in zip(args, directions)))
    behind = function(*(a - STEP * d for a, d in zip(args, directions)))
    difference = (np.asarray(ahead, np.float64) - np.asarray(behind, np.float64)) / (
        2 * STEP
    )
    return verdict("jvp against differences", largest(tangent, difference), 2e-2)


def transpose_check(function: Callable, args: tuple) -> Check:
    """<J v, w> against <v, J^T w>: the transpose is that of the derivative."""
    rng = np.random.default_rng(1)
    directions = tuple(rng.normal(size=a.shape).astype(np.float32) for a in args)
    out, tangent = jvp(function, args, directions)
    weights = rng.normal(size=np.shape(out)).astype(np.float32)
    _, pullback = vjp(function, *args)
    cotangents = pullback(jnp.asarray(weights))
    left = float(np.sum(np.asarray(tangent, np.float64) * weights))
    right = sum(
        float(np.sum(np.asarray(ct, np.float64) * d))
        for ct, d in zip(cotangents, directions)
    )
    return verdict("backward against forward", abs(left - right), 1e-4)


def batch_check(function: Callable, args: tuple) -> Check:
    """The batch rule against a loop over the examples."""
    batches = tuple(np.stack([a, a[::-1] if a.ndim else a]) for a in args)
    mapped = vmap(function)(*batches)
    looped = np.stack([np.asarray(function(*(b[i] for b in batches))) for i in (0, 1)])
    return verdict("batch against loop", largest(mapped, looped), 5e-5)


def largest(found: Any, expected: Any) -> float:
    """The largest difference of two arrays; infinite for different shapes."""
    a, b = np.asarray(found), np.asarray(expected)
    if a.shape != b.shape:
        return float("inf")
    if a.dtype == bool:
        return float(np.max(a != b, initial=0))
    distance = np.abs(a.astype(np.complex128) - b)
    both_nan = np.isnan(a.astype(np.complex128)) & np.isnan(b.astype(np.complex128))
    return float(np.max(np.where(both_nan, 0.0, distance), initial=0.0))


def lowered(
    function: Callable, args: tuple, target: str, platform: str
) -> tuple[list[str], list[str], list[str]]:
    """The StableHLO that the example becomes, what is in it, and XLA's for a target.

    The lines are the first dozen; the names are those of all operations, also inside of
    others: a sum's addition.
    """
    traced = jit(lambda *xs: function(*xs)).trace(*args)
    program = traced.lower(lowering_platforms=(platform,))
    lines = [line.strip() for line in program.as_text().splitlines()]
    lines = [line for line in lines if line.startswith("%") and " = " in line]
    names: list[str] = []
    ir = hlo.ir

    def note(operation: Any) -> Any:
        dialect, _, name = operation.name.partition(".")
        if dialect not in ("builtin", "func") and name not in ("return", *names):
            names.append(name)
        return ir.WalkResult.ADVANCE

    program.compiler_ir().operation.walk(note, ir.WalkOrder.PRE_ORDER)
    text = program.compile(target=target).as_text() or ""
    opcodes: list[str] = []
    for line in text.splitlines():
        _, equals, rest = line.partition(" = ")
        found = re.search(r"\s([a-z][a-z0-9-]*)\(", rest) if equals else None
        if found and found.group(1) not in ("parameter", "tuple", *opcodes):
            opcodes.append(found.group(1))
    return lines[:12], names, opcodes


def families() -> dict[str, list[str]]:
    """All primitives of minijax by what they are for."""
    found: dict[str, list[str]] = {family: [] for family in FAMILIES}
    for name in sorted(all_primitives):
        found[family_of(all_primitives[name])].append(name)
    return {family: names for family, names in found.items() if names}


@dataclass(kw_only=True)
class PrimitivesRecording(Recording):
    """The table of primitives: family by family."""

    kind = "primitives"

    groups: dict[str, list[str]]
    derivatives: dict[str, str]  # as `kind_of` says


def kind_of(primitive: Primitive) -> str:
    """How a primitive is differentiated, by what its rules do.

    "linear": it is linear in an operand, and backward mode transposes it; "derived":
    its derivative is written with linear ones; "forward": its derivative is written
    with itself, so that only forward mode has it; "program": it is differentiated as
    the program inside of it is; "none": its derivative is zero, or there is none.
    """
    family = family_of(primitive)
    inside = "look inside" in primitive.reasons.get("jvp", "")
    if family == "programs" and (
        inside or has_rule(primitive.jvp) or has_rule(primitive.transpose)
    ):
        return "program"
    if family == "order" and not has_results(primitive):
        return "none"
    if has_rule(primitive.transpose):
        return "linear"
    has_jvp = has_rule(primitive.jvp) or primitive.jvp_terms is not None
    reason = primitive.reasons.get("transpose", "")
    if "carried beside the value" in reason:
        return "forward"
    return "derived" if has_jvp and "always zero" not in reason else "none"


def has_results(primitive: Primitive) -> bool:
    """Whether a primitive gives arrays; printing, and waiting for effects, do not."""
    told = {"debug_callback", "debug_print", "inspect_sharding"}
    return primitive.name not in {*WITHOUT_VALUES, *told}


def has_rule(rule: Any) -> bool:
    """Whether there is a rule that can give an answer: one that only raises is none."""
    if rule is None:
        return False
    code = getattr(inspect.unwrap(rule), "__code__", None)
    if code is None:
        return True
    return any(
        instruction.opname in ("RETURN_VALUE", "RETURN_CONST", "RETURN_GENERATOR")
        for instruction in dis.get_instructions(code)
    )


def record_primitives() -> PrimitivesRecording:
    """Records which primitives there are, and how each is differentiated."""
    groups = families()
    kinds = {name: kind_of(all_primitives[name]) for name in all_primitives}
    found = list(kinds.values())
    counts = {
        kind: found.count(kind) for kind in ("linear", "derived", "program", "forward")
    }
    none = len(kinds) - sum(counts.values())
    headline = (
        f"{len(kinds)} primitives in {len(groups)} families: {counts['linear']} are "
        f"linear in an operand, {counts['derived']} have a derivative made of linear "
        f"ones, {counts['program']} that of the program inside, "
        f"{counts['forward']} only in forward mode, {none} have none"
    )
    return PrimitivesRecording(
        call="primitives", headline=headline, groups=groups, derivatives=kinds
    )
