"""Tracing with some arguments known, as libraries ask JAX for it.

In JAX: `interpreters/partial_eval.py`, `PartialVal` and `trace_to_jaxpr_nounits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core.language import AbstractValue, Jaxpr, get_aval, set_current_trace
from minijax.core.partial_eval import DynamicJaxprTrace, JaxprTrace, trace_to_jaxpr
from minijax.core.state import state
from minijax.transforms.wrapped_functions import WrappedFun

__all__ = ["PartialVal", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"]


class PartialVal(tuple):
    """`(None, value)` of a known value, `(type, None)` of one that is not known."""

    def __new__(cls, xs: tuple[AbstractValue | None, Any]) -> PartialVal:
        aval, value = xs
        if aval is not None and value is not None:
            raise TypeError("PartialVal takes (None, value) or (type, None)")
        return super().__new__(cls, xs)

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """The partial value of something that can be computed with now."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: AbstractValue) -> PartialVal:
        """The partial value of something of which only the type is there."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether there is a value."""
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None if it is not known."""
        return self[1]

    def get_aval(self) -> AbstractValue:
        """The type."""
        return get_aval(self[1]) if self.is_known() else self[0]


def trace_to_jaxpr_nounits(
    fun: WrappedFun,
    pvals: Sequence[PartialVal],
    instantiate: bool | Sequence[bool] = False,
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Compute of a function what its known arguments allow, and write down the rest.

    Args:
      fun: a function wrapped by `linear_util`, of flat arguments and results.
      pvals: one partial value for each argument.
      instantiate: for all results, or for each, whether it becomes an unknown one.

    Returns:
      The program of the unknown arguments and results, a partial value for each
      result, and the program's constants.
    """
    unknown = DynamicJaxprTrace(fun.debug_info, dead_code=True)
    trace = JaxprTrace(state.trace, unknown)
    args = [
        pval.get_known() if pval.is_known() else unknown.new_arg(pval.get_aval())
        for pval in pvals
    ]
    with set_current_trace(trace):
        outs = list(fun.call_wrapped(*args))
    if isinstance(instantiate, bool):
        instantiate = [instantiate] * len(outs)
    outs = [unknown.lift(x) if flag else x for x, flag in zip(outs, instantiate)]
    rest = [x for x in outs if trace.is_unknown(x)]
    out_pvals = [
        PartialVal.unknown(x.aval) if trace.is_unknown(x) else PartialVal.known(x)
        for x in outs
    ]
    jaxpr, consts = unknown.finish(rest)
    unknown.alive = trace.alive = False
    return jaxpr, out_pvals, consts


def trace_to_jaxpr_dynamic(
    fun: WrappedFun,
    in_avals: Sequence[AbstractValue],
    *,
    keep_inputs: list[bool] | None = None,
    lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[AbstractValue], list[Any]]:
    """Write down a function: its program, the types of its results, its constants.

    Args:
      fun: a function wrapped by `linear_util`, of flat arguments and results.
      in_avals: one type for each argument.
      keep_inputs, lower, auto_dce: for JAX's own use; not to be given.

    Raises:
      NotImplementedError: one of those three is given.
    """
    if keep_inputs is not None or lower or auto_dce:
        raise NotImplementedError(
            "trace_to_jaxpr_dynamic takes no keep_inputs, lower or auto_dce: give the "
            "types of all arguments, and call `dce_jaxpr` on the program."
        )
    jaxpr, consts = trace_to_jaxpr(fun.call_wrapped, in_avals, fun.debug_info)
    return jaxpr, [var.aval for var in jaxpr.outvars], consts
