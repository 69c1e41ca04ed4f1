"""`composite`: several operations under one name, which a compiler may know.

A program that is lowered keeps the name, its version and its attributes beside the
function that says what they mean, the decomposition. A compiler that has a better way
takes it; XLA for CPUs calls the function.

In JAX: `lax/lax.py`, `composite_p`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.core import errors, hlo, language
from minijax.core.signatures import check_callable, wraps
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.primitives.families import refusal
from minijax.programs.callbacks.foreign_calls import HashableArray, attribute
from minijax.programs.calls import def_call
from minijax.programs.control_flow.bodies import trace_with_consts

composite_p = language.register(language.Primitive("composite", multiple_results=True))
def_call(composite_p, "jaxpr")
composite_p.without("batch", "JAX has none: the name stands for one operation")
_no_derivative = refusal(
    "JVP rule for composite not implemented, nor its transpose: a compiler may have "
    "another way for {name!r}. Wrap it in `custom_jvp` or `custom_vjp`, or call its "
    "decomposition."
)
composite_p.def_jvp_rule(_no_derivative)
composite_p.def_transpose(_no_derivative)


@composite_p.def_lowering
def _composite_lowering(ctx, *operands, name: str, attributes, version, jaxpr) -> Any:
    if not re.fullmatch(r"[a-zA-Z]\w*(\.[\w$]+)+", str(name), re.ASCII):
        raise errors.value_error(
            f"composite: {name!r} cannot be compiled. Its name must be a valid "
            'namespaced op name, such as "my_library.my_operation".'
        )
    if ctx.module_context.leading_types(jaxpr):
        raise errors.value_error(
            f"composite: {name!r} has ordered side effects or sizes that are not "
            "known, and JAX compiles neither inside of a composite."
        )
    function = ctx.function(jaxpr, name)
    given = ((key, tree_unflatten(tree, leaves)) for key, leaves, tree in attributes)
    return hlo.stablehlo.CompositeOp(
        function.type.results,
        operands,
        name=hlo.string(name),
        decomposition=hlo.ir.FlatSymbolRefAttr.get(function.name.value),
        composite_attributes=hlo.ir.DictAttr.get(
            {key: attribute(key, value) for key, value in given if value is not None}
        ),
        version=hlo_parts.int_attribute(version, 32),
    ).results


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """A function that stands in programs as one operation with a name.

    Args:
      decomposition: what the operation means. Its positional arguments are operands,
        trees of arrays; its keyword arguments are attributes of the operation: numbers,
        strings, dtypes, NumPy arrays, tuples and dicts of them. One that is None is not
        written.
      name: with a namespace, "my_library.my_operation".
      version: larger when the meaning changes.

    Raises:
      UnexpectedTracerError: the decomposition closes over a traced value, or a keyword
        argument is one.
      ValueError: when it is differentiated (JAX has no rule either), or compiled under
        a name without a namespace.
      NotImplementedError: under `vmap`.
      TypeError: for an attribute of another kind, or a version that is no integer.
    """
    check_callable(decomposition, "composite")
    if not isinstance(version, int):
        raise TypeError(f"composite: version is an integer, got {version!r}.")

    @wraps(decomposition)
    def call(*args: Any, **kwargs: Any) -> Any:
        attributes = []
        for key, value in kwargs.items():
            leaves, tree = tree_flatten(value)
            held = (HashableArray(x) if type(x) is np.ndarray else x for x in leaves)
            attributes.append((key, tuple(held), tree))
            _refuse_tracers(leaves, f"an attribute, {key},", name)
        fun = functools.partial(decomposition, **kwargs)
        body = trace_with_consts(fun, args, "composite")
        _refuse_tracers(body.consts, "a constant", name)
        outputs = composite_p.bind(
            *body.consts,
            *tree_flatten(args)[0],
            name=name,
            attributes=tuple(attributes),
            version=version,
            jaxpr=body.closed,
        )
        return tree_unflatten(body.out_tree, outputs)

    return call


def _refuse_tracers(values: Any, place: str, name: str) -> None:
    if any(map(language.is_tracer, values)):
        raise errors.UnexpectedTracerError(
            f"Found a JAX Tracer as {place} in the decomposition for the composite op "
            f"{name!r}. Give it as a positional argument: the decomposition must mean "
            "the same in every program."
        )
