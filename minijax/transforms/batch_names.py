"""Names of batch axes: `vmap(f, axis_name="i")` brings the name into scope.

Collectives inside `f`, such as `lax.psum(x, "i")`, work on the axis of that name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Sequence
from typing import Any

from minijax.core import batching
from minijax.core.language import jaxprs_in_params
from minijax.core.rules import AxisData, no_axis_name
from minijax.values.named_axes import NamedAxisEffect, extend_axis_env


@batching.axis_scope.attach
def axis_scope(axis_data: AxisData) -> contextlib.AbstractContextManager:
    """The axis's name in scope, if it has one."""
    if axis_data.name is no_axis_name:
        return contextlib.nullcontext()
    return extend_axis_env([(axis_data.name, axis_data.size)])


@batching.axis_names_in.attach
def axis_names_in(params: dict[str, Any]) -> Sequence[Hashable]:
    """The named axes that a collective's parameters, or its programs, mention."""
    for key in ("axes", "axis_name", "axis_index_groups_axis"):
        names = params.get(key)
        if names is not None:
            return names if isinstance(names, tuple) else (names,)
    inner = [effect for jaxpr in jaxprs_in_params(params) for effect in jaxpr.effects]
    return [effect.name for effect in inner if isinstance(effect, NamedAxisEffect)]
