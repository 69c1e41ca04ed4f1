"""The signature of a compiled program: donated arguments, names of results.

In JAX: `interpreters/mlir.py`, `_set_up_aliases`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.backend import hlo
from minijax.core import AbstractValue, Jaxpr


def set_aliases(
    main: Any,
    offset: int,
    donated: Sequence[bool],
    in_avals: Sequence[AbstractValue],
    out_avals: Sequence[AbstractValue],
) -> None:
    """Mark each donated argument with the result that takes over its memory."""
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
                entry["tf.aliasing_output"] = hlo.int_attribute(index, 32)
                break
        else:
            entry["jax.buffer_donor"] = hlo.ir.BoolAttr.get(True)
    if any(attributes):
        main.arg_attrs = hlo.ir.ArrayAttr.get(
            [hlo.ir.DictAttr.get(entry) for entry in attributes]
        )


def set_names(main: Any, offset: int, jaxpr: Jaxpr, kept: tuple[int, ...]) -> None:
    """Name the results as the function's result tree names them."""
    paths = jaxpr.debug_info.result_paths
    if len(paths) == len(jaxpr.outvars) and paths:
        main.result_attrs = hlo.ir.ArrayAttr.get(
            [
                hlo.ir.DictAttr.get({"jax.result_info": hlo.string(path)})
                for path in paths
            ]
        )
