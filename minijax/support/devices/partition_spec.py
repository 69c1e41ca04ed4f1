"""Along which mesh axes the dimensions of an array are cut.

In JAX: `jax/_src/partition_spec.py`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

AxisName = Any

_interning = threading.RLock()


class _Unconstrained:
    """The partition of a dimension that the compiler may choose."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "_UNCONSTRAINED"


_UNCONSTRAINED = _Unconstrained()


def _canonical_partition(partition: Any) -> Any:
    """None, a name, or a tuple of at least two names."""
    if partition is None or partition is _UNCONSTRAINED:
        return partition
    if isinstance(partition, list):
        partition = tuple(partition)
    if not isinstance(partition, tuple):
        return partition
    for name in partition:
        if isinstance(name, (tuple, list)):
            raise ValueError(
                "A tuple inside PartitionSpec cannot contain a nested tuple. Got "
                f"partition: {partition} and the nested tuple: {name}"
            )
    if not partition:
        return None
    return partition[0] if len(partition) == 1 else partition


def checked_names(names: Sequence[Any], argument: str) -> tuple:
    """`names` as a tuple; TypeError for one that cannot be hashed."""
    if not all(isinstance(name, Hashable) for name in names):
        raise TypeError(f"{argument} must be names of axes, got {names!r}.")
    return tuple(names)


def _axis_set(names: Any, argument: str) -> frozenset[AxisName]:
    if not isinstance(names, (set, frozenset)):
        raise TypeError(
            f"The argument {argument} of PartitionSpec must be a set of axis names, "
            f"and is {names!r}."
        )
    if None in names:
        raise ValueError(
            f"{argument} cannot contain None. All elements in {argument} should refer "
            "to the mesh axes."
        )
    return frozenset(names)


class PartitionSpec:
    """For each dimension of an array the mesh axes along which it is cut.

    Each partition is None (not cut), a name, a tuple of names (cut along several axes,
    the first one coarsest), or `PartitionSpec.UNCONSTRAINED` (the compiler decides).
    Dimensions beyond the last partition are not cut. `unreduced` names the axes over
    which the parts are still to be added up, `reduced` those over which they were.

    Equal specs are one object. It is not a tuple, so that pytrees take it for a leaf.

    Raises:
      ValueError: for nested tuples, and for an axis that is used in two roles.
      TypeError: if `unreduced` or `reduced` is not a set.

    In JAX: `jax.sharding.PartitionSpec`, also `jax.P`.
    """

    __slots__ = ("__weakref__", "_partitions", "reduced", "unreduced")

    UNCONSTRAINED = _UNCONSTRAINED

    _partitions: tuple[Any, ...]
    unreduced: frozenset[AxisName]
    reduced: frozenset[AxisName]

    def __new__(
        cls, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()
    ) -> PartitionSpec:
        canonical = checked_names([*map(_canonical_partition, partitions)], "axes")
        if unreduced or reduced:
            unreduced = _axis_set(unreduced, "unreduced")
            reduced = _axis_set(reduced, "reduced")
            _check_roles(canonical, unreduced, reduced)
        else:
            unreduced = _axis_set(unreduced, "unreduced") if unreduced else frozenset()
            reduced = frozenset()
        # A True beside a 1 would be found under the same key; axis names are strings.
        key = (canonical, unreduced, reduced)
        found = _specs.get(key)
        if found is not None:
            return found
        with _interning:
            found = _specs.get(key)
            if found is None:
                found = object.__new__(cls)
                object.__setattr__(found, "_partitions", canonical)
                object.__setattr__(found, "unreduced", unreduced)
                object.__setattr__(found, "reduced", reduced)
                _specs[key] = found
        return found

    def __init_subclass__(cls, **kwargs: Any) -> NoReturn:
        raise TypeError("Subclassing `PartitionSpec` is prohibited.")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("A PartitionSpec cannot be changed; make a new one.")

    def __reduce__(self) -> Any:
        return (_make_spec, (self._partitions, self.unreduced, self.reduced))

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The partitions, one for each leading dimension."""
        return self._partitions

    def __repr__(self) -> str:
        shown = repr(self._partitions)[1:-1]
        sets = [
            f"{name}={set(names)!r}"
            for name, names in (
                ("unreduced", self.unreduced),
                ("reduced", self.reduced),
            )
            if names
        ]
        if not sets:
            return f"P({shown})"
        if shown:
            shown += " " if shown.endswith(",") else ", "
        return f"P({shown}{', '.join(sets)})"

    def _require_plain(self, what: str) -> None:
        if self.unreduced or self.reduced:
            raise ValueError(
                f"Using {what} is dangerous when PartitionSpec has non-empty "
                "unreduced/reduced set. Please use spec.partitions instead."
            )

    def __getitem__(self, index: Any) -> Any:
        self._require_plain("pspec[...]")
        return self._partitions[index]

    def __iter__(self) -> Iterator[Any]:
        self._require_plain("*pspec")
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self.partitions,
                *other.partitions,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        if isinstance(other, tuple):
            self._require_plain("pspec + tuple")
            return PartitionSpec(*self._partitions, *other)
        return NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        self._require_plain("tuple + pspec")
        return PartitionSpec(*other, *self._partitions)

    def index(self, value: Any) -> int:
        """The first dimension with this partition."""
        return self._partitions.index(_canonical_partition(value))

    def count(self, value: Any) -> int:
        """How many dimensions have this partition."""
        return self._partitions.count(_canonical_partition(value))

    def update(
        self, partitions: Any = None, unreduced: Any = None, reduced: Any = None
    ) -> PartitionSpec:
        """The same spec with some of its parts replaced."""
        return PartitionSpec(
            *(self._partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    def inserted(self, dimension: int | None, part: Any) -> PartitionSpec:
        """That of an array with one more dimension, which `part` cuts."""
        if dimension is None:
            return self
        parts = [*self._partitions, *[None] * (dimension - len(self))]
        parts.insert(dimension, part)
        return self.update(partitions=parts)

    def dual(self) -> PartitionSpec:
        """That of cotangents: what is unreduced forwards is reduced backwards."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    def axes(self, dimension: int) -> tuple[AxisName, ...]:
        """The mesh axes that cut a dimension, coarsest first."""
        if dimension >= len(self._partitions):
            return ()
        return _axes_of(self._partitions[dimension])


_specs: weakref.WeakValueDictionary[Any, PartitionSpec] = weakref.WeakValueDictionary()

P = PartitionSpec


def _make_spec(partitions: Any, unreduced: Any, reduced: Any) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def _axes_of(partition: Any) -> tuple[AxisName, ...]:
    if partition is None or partition is _UNCONSTRAINED:
        return ()
    return partition if isinstance(partition, tuple) else (partition,)


def check_batch_axes(name: Any, specs: Iterable[PartitionSpec], where: str) -> None:
    """ValueError if a mesh axis of `vmap`'s spmd_axis_name is in a spec already."""
    axes = {*_axes_of(name)}
    for spec in specs:
        used = {axis for part in spec.partitions for axis in _axes_of(part)}
        if axes & (used | spec.unreduced | spec.reduced):
            raise ValueError(
                f"vmap spmd_axis_name {name!r} cannot appear in {where}, but got spec "
                f"{spec}. Name a mesh axis that is not in it, or take it out there."
            )


def _check_roles(
    partitions: tuple[Any, ...], unreduced: frozenset, reduced: frozenset
) -> None:
    if unreduced & reduced:
        raise ValueError(
            "`unreduced` and `reduced` argument to PartitionSpec cannot overlap. Got "
            f"unreduced: {set(unreduced)} and reduced: {set(reduced)}"
        )
    used = {axis for partition in partitions for axis in _axes_of(partition)}
    for role, names in (("unreduced", unreduced), ("reduced", reduced)):
        if used & names:
            raise ValueError(
                f"partitions cannot overlap with {role} axes passed to PartitionSpec. "
                f"Got partitions: {partitions} and {role} axes: {set(names)}"
            )
