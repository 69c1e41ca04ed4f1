"""The signatures of functions in a module: tokens, donated arguments, results' names.

In JAX: `interpreters/mlir.py`, `lower_jaxpr_to_fun` and `_set_up_aliases`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from minijax.backend import dynamic_shapes, hlo_parts
from minijax.compile import tokens
from minijax.core import hlo, lowering
from minijax.core.effects import Effect
from minijax.core.events import enter
from minijax.core.language import (
    AbstractValue,
    ClosedJaxpr,
    Jaxpr,
    jaxprs_in_params,
    weakref_lru_cache,
)
from minijax.support.user_source import user_stacklevel
from minijax.values.ref_avals import AbstractToken
from minijax.values.symbolic_sizes import SymbolicSize, shape_variables


@lowering.new_module_context.attach
class EffectfulModuleContext(lowering.ModuleContext):
    """The context of a module whose functions pass tokens along (see `tokens.py`)."""

    def __init__(self, module: Any, platform: str):
        super().__init__(module, platform)
        # The last token of each ordered effect, in the function being written.
        self.tokens: dict[Effect, Any] = {}
        self.channels = 0  # how many the collectives written so far have taken

    def leading_types(self, closed: ClosedJaxpr) -> list[Any]:
        # A program with symbolic sizes takes the values of their variables.
        names = size_variables(closed)
        sizes = [dynamic_shapes.scalar_type()] * len(names) if names else []
        return [*tokens.types(closed.effects), *sizes]

    def write_body(
        self, closed: ClosedJaxpr, arguments: Sequence[Any], write: Callable
    ) -> list[Any]:
        names = size_variables(closed)
        with tokens.region(self, closed.effects, arguments) as rest:
            if not names:
                results = write(rest)  # before the tokens are asked for
                return [*tokens.last(self), *results]
            sizes, rest = rest[: len(names)], rest[len(names) :]
            with dynamic_shapes.sizes_of_function(dict(zip(names, sizes))):
                results = write(rest)
            return [*tokens.last(self), *sizes, *results]

    def call(self, function: Any, closed: ClosedJaxpr, operands: Sequence) -> list[Any]:
        given = tokens.current(self, closed.effects)
        names = size_variables(closed)
        sizes = dynamic_shapes.values_of_variables(names) if names else []
        results = super().call(function, closed, [*given, *sizes, *operands])
        return tokens.update(self, closed.effects, results)[len(names) :]

    def annotate(self, main: Any, donated: Sequence[bool], jaxpr: Jaxpr) -> None:
        """Mark the donated arguments and name the results.

        The arguments of `main` are tokens, constants and the inputs of `jaxpr`; its
        results are tokens and the outputs.
        """
        num_tokens = len(tokens.ordered(jaxpr.effects))
        leading = len(main.type.results) - len(jaxpr.outvars)  # tokens and sizes
        offset = len(main.arguments) - len(jaxpr.invars)
        _set_aliases(main, offset, leading, donated, jaxpr.in_avals, jaxpr.out_avals)
        _set_names(main, num_tokens, leading - num_tokens, jaxpr)


def size_variables(closed: ClosedJaxpr) -> list[str]:
    """The variables of the symbolic sizes in a program, sorted; most have none."""
    return _variables_in(closed) if SymbolicSize.made else []


@weakref_lru_cache
def _variables_in(closed: ClosedJaxpr) -> list[str]:
    return sorted(_variables_of_jaxpr(closed.jaxpr))


def _variables_of_jaxpr(jaxpr: Jaxpr) -> set[str]:
    avals = [*jaxpr.in_avals, *jaxpr.out_avals]
    names: set[str] = set()
    for eqn in jaxpr.eqns:
        avals += [v.aval for v in eqn.outvars]
        if "dim" in eqn.params and isinstance(eqn.params["dim"], SymbolicSize):
            names |= eqn.params["dim"].variables()
        for inner in jaxprs_in_params(eqn.params):
            names |= _variables_of_jaxpr(inner)
    shapes = [getattr(aval, "shape", ()) for aval in avals]
    return names | set(shape_variables(shapes))


def _token_type(aval: AbstractValue) -> Any:
    return hlo.ir.Type.parse("!stablehlo.token")


enter(lowering.type_makers, AbstractToken, _token_type)


def _set_aliases(
    main: Any,
    offset: int,
    num_tokens: int,
    donated: Sequence[bool],
    in_avals: Sequence[AbstractValue],
    out_avals: Sequence[AbstractValue],
) -> None:
    """Mark each donated argument with the result that takes over its memory.

    Warns of those whose memory no result can take.

    Before the arguments stand `offset` others, tokens and constants; before the results
    `num_tokens` tokens.
    """
    free = list(range(len(out_avals)))
    unusable: list[str] = []
    attributes = [dict() for _ in range(offset)]  # type: list[dict[str, Any]]
    for flag, aval in zip(donated, in_avals):
        entry: dict[str, Any] = {}
        attributes.append(entry)
        if not flag:
            continue
        for index in free:
            out = out_avals[index]
            if out.shape == aval.shape and out.dtype == aval.dtype:
                free.remove(index)
                entry["tf.aliasing_output"] = hlo_parts.int_attribute(
                    num_tokens + index, 32
                )
                break
        else:
            unusable.append(str(aval))
    if unusable:
        warnings.warn(
            f"Some donated buffers were not usable: {', '.join(unusable)}. No result "
            "has the same shape and dtype, so the memory cannot be taken over. Leave "
            "these arguments out of donate_argnums.",
            stacklevel=user_stacklevel(),
        )
    if any(attributes):
        main.arg_attrs = hlo.ir.ArrayAttr.get(
            [hlo.ir.DictAttr.get(entry) for entry in attributes]
        )


def _set_names(main: Any, num_tokens: int, num_sizes: int, jaxpr: Jaxpr) -> None:
    """Name the results as the function's result tree names them."""
    paths = jaxpr.debug_info.result_paths
    if len(paths) == len(jaxpr.outvars) and paths:
        is_token = {"jax.token": hlo.ir.BoolAttr.get(True)}
        main.result_attrs = hlo.ir.ArrayAttr.get(
            [
                *[hlo.ir.DictAttr.get(is_token)] * num_tokens,
                *[hlo.ir.DictAttr.get({})] * num_sizes,
                *(
                    hlo.ir.DictAttr.get({"jax.result_info": hlo.string(path)})
                    for path in paths
                ),
            ]
        )
