"""Registering derivatives as in JAX: `ad.primitive_jvps[p] = rule`, `ad.defjvp`, ...

`interpreters/ad.py` hands these names on. What a table is, `rule_tables.py` says.

In JAX: `interpreters/ad.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import rules
from minijax.core.language import Primitive
from minijax.core.rules import Accumulator, Zero, is_linear
from minijax.interpreters.rule_tables import RuleTable

__all__ = [
    "UndefinedPrimal",
    "add_jaxvals",
    "add_jaxvals_p",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]


# JAX's names for the argument of a transpose rule in which the operation is linear.
UndefinedPrimal = Accumulator
is_undefined_primal = is_linear


def _read_jvp(primitive) -> Callable | None:
    if primitive.jvp is None and primitive.jvp_terms is not None:
        return _jvp_of_terms(primitive, primitive.jvp_terms)
    return primitive.jvp


def _write_jvp(primitive, rule: Callable | None) -> None:
    primitive.jvp = rule
    primitive.jvp_terms = None
    primitive.linearize = None


def _jvp_of_terms(primitive: Primitive, terms: Sequence[Callable | None]) -> Callable:
    """The whole forward rule of a primitive that has one term for each argument."""

    def jvp(primals, tangents, **params) -> tuple:
        out = primitive.bind(*primals, **params)
        parts = [
            term(tangent, *primals, **params)
            for term, tangent in zip(terms, tangents)
            if term is not None and type(tangent) is not Zero
        ]
        return out, rules.sum_tangents(parts, out)

    return jvp


def _read_transpose(primitive) -> Callable | None:
    """The rule as one that always returns cotangents, also if it accumulates them."""
    rule = primitive.transpose
    if rule is None:
        return None

    def transpose(ct, *args, **params) -> Sequence[Any]:
        if type(ct) is Zero:
            return [None] * len(args)
        fresh = [Accumulator(x.aval) if is_linear(x) else x for x in args]
        answers = rule(ct, *fresh, **params)
        if answers is not None:
            return answers
        return [x.freeze() if is_linear(x) else None for x in fresh]

    return transpose


primitive_jvps = RuleTable("primitive_jvps", _read_jvp, _write_jvp)
primitive_transposes = RuleTable(
    "primitive_transposes",
    _read_transpose,
    lambda primitive, rule: setattr(primitive, "transpose", rule),
)

add_jaxvals_p = rules.add_any_p


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two tangents or cotangents."""
    return rules.add_any_p.bind(x, y)


add_tangents = rules.add_tangents
instantiate_zeros = rules.instantiate
zeros_like_aval = rules.zeros_of


def get_primitive_transpose(p: Primitive) -> Callable:
    """The transpose rule; NotImplementedError when there is none."""
    if p.transpose is None:
        raise NotImplementedError(
            "Transpose rule (for reverse-mode differentiation) for "
            f"'{p}' not implemented: enter one in `primitive_transposes`."
        )
    return primitive_transposes[p]


def defjvp(primitive: Primitive, *jvprules: Callable | None) -> None:
    """One rule for each argument, or None: `(t, *primals, **params) -> tangent`."""
    primitive_jvps[primitive] = _jvp_of_terms(primitive, jvprules)


def defjvp2(primitive: Primitive, *jvprules: Callable | None) -> None:
    """Like `defjvp` with the result at hand: `(tangent, out, *primals, **params)`."""
    rules.def_jvp_with_output(primitive, *jvprules)


def deflinear(primitive: Primitive, transpose_rule: Callable) -> None:
    """The primitive is linear; `transpose_rule(ct, **params)` gives all cotangents."""
    rules.def_linear(primitive, lambda ct, *_, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Callable) -> None:
    """Like `deflinear`, the rule seeing the arguments: `(ct, *args, **params)`."""
    rules.def_linear(primitive, transpose_rule)


def defbilinear(prim: Primitive, lhs_rule: Callable, rhs_rule: Callable) -> None:
    """The primitive is linear in each of two arguments.

    `lhs_rule(ct, x, y, **params)` gives the cotangent of `x`, `rhs_rule` that of `y`.
    """
    rules.def_bilinear(prim, lhs_rule, rhs_rule)
