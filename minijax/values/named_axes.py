"""Named axes in scope, and the effect of using one.

In JAX: `core.py`, `AxisEnv` and `NamedAxisEffect`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from minijax.core import effects
from minijax.core.state import install, state
from minijax.support.settings import override


class AxisEnv:
    """The named axes in scope (from `vmap(axis_name=...)` and `shard_map`): sizes.

    In JAX: `core.py`, `AxisEnv`.
    """

    __slots__ = ("axis_sizes",)

    def __init__(self, axis_sizes: dict[Hashable, int]):
        self.axis_sizes = axis_sizes

    def axis_size(self, name: Hashable) -> int:
        if name not in self.axis_sizes:
            raise NameError(
                f"unbound axis name: {name}. The named axes in scope are "
                f"{list(self.axis_sizes) or 'none'}: give the axis its name with "
                f"`vmap(f, axis_name={name!r})` or use it inside `shard_map`."
            )
        return self.axis_sizes[name]

    def axis_names(self) -> list[Hashable]:
        return list(self.axis_sizes)

    def __len__(self) -> int:
        return len(self.axis_sizes)

    # By value: it is a field of `state.trace_key`, since a size may be traced in.
    def __eq__(self, other: Any) -> bool:
        return isinstance(other, AxisEnv) and self.axis_sizes == other.axis_sizes

    def __hash__(self) -> int:
        return hash(frozenset(self.axis_sizes.items()))


install("axis_env", AxisEnv({}))


class extend_axis_env:
    """Context manager: bring named axes into scope."""

    __slots__ = ("change", "new")

    def __init__(self, axes: Sequence[tuple[Hashable, int]]):
        try:
            self.new = dict(axes)
        except (TypeError, ValueError):
            names = "Named axes are pairs (name, size), with names that can be hashed"
            raise TypeError(f"{names}; got {axes!r}.") from None

    def __enter__(self) -> None:
        if self.new:
            sizes = {**state.axis_env.axis_sizes, **self.new}
            self.change = override("axis_env", AxisEnv(sizes))
            self.change.__enter__()

    def __exit__(self, *exception: Any) -> None:
        if self.new:
            self.change.__exit__(*exception)


@dataclass(frozen=True, repr=False)
class NamedAxisEffect(effects.Effect):
    """The program uses a named axis, which must be in scope where it runs."""

    name: Hashable

    def __repr__(self) -> str:
        return f"NamedAxis({self.name})"


effects.lowerable_effects.add_type(NamedAxisEffect)
effects.control_flow_allowed_effects.add_type(NamedAxisEffect)
effects.custom_derivatives_allowed_effects.add_type(NamedAxisEffect)
effects.remat_allowed_effects.add_type(NamedAxisEffect)
