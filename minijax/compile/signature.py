"""The signature of a compiled program: donated arguments, names of results.

In JAX: `interpreters/mlir.py`, `_set_up_aliases`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.backend import hlo
from minijax.language.core import AbstractValue, Jaxpr


def annotate(
    main: Any,
    num_tokens: int,
    num_constants: int,
    donated: Sequence[bool],
    jaxpr: Jaxpr,
) -> None:
    """Say what the arguments and results of a program's `main` are.

    Its arguments are tokens, constants and the inputs of `jaxpr`, of which some are
    donated; its results are tokens and the outputs.
    """
    offset = num_tokens + num_constants
    _set_aliases(main, offset, num_tokens, donated, jaxpr.in_avals, jaxpr.out_avals)
    _set_names(main, num_tokens, jaxpr)


def _set_aliases(
    main: Any,
    offset: int,
    num_tokens: int,
    donated: Sequence[bool],
    in_avals: Sequence[AbstractValue],
    out_avals: Sequence[AbstractValue],
) -> None:
    """Mark each donated argument with the result that takes over its memory.

    Before the arguments stand `offset` others, tokens and constants; before the results
    `num_tokens` tokens.
    """
    free = list(range(len(out_avals)))
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
                entry["tf.aliasing_output"] = hlo.int_attribute(num_tokens + index, 32)
                break
        else:
            entry["jax.buffer_donor"] = hlo.ir.BoolAttr.get(True)
    if any(attributes):
        main.arg_attrs = hlo.ir.ArrayAttr.get(
            [hlo.ir.DictAttr.get(entry) for entry in attributes]
        )


def _set_names(main: Any, num_tokens: int, jaxpr: Jaxpr) -> None:
    """Name the results as the function's result tree names them."""
    paths = jaxpr.debug_info.result_paths
    if len(paths) == len(jaxpr.outvars) and paths:
        is_token = {"jax.token": hlo.ir.BoolAttr.get(True)}
        main.result_attrs = hlo.ir.ArrayAttr.get(
            [
                *[hlo.ir.DictAttr.get(is_token)] * num_tokens,
                *(
                    hlo.ir.DictAttr.get({"jax.result_info": hlo.string(path)})
                    for path in paths
                ),
            ]
        )
