"""The types of refs and of tokens, and shapes of arrays that need not exist.

In JAX: `state/types.py`, `core.py`, and `jax.ShapeDtypeStruct`.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import avals, dtypes
from minijax.core.state import state
from minijax.support.devices.layouts import Format, Layout
from minijax.support.devices.mesh import ManualAxisType
from minijax.support.devices.shardings import NamedSharding, PartitionSpec, Sharding


class AbstractRef(avals.AbstractValue):
    """The type of a mutable reference to an array of type `inner_aval`.

    `kind` is None, or "no_grad_no_remat" for a ref that takes no part in derivatives.

    In JAX: `state/types.py`, `AbstractRef`.
    """

    __slots__ = ("inner_aval", "memory_space", "kind", "__weakref__")
    _interned: weakref.WeakValueDictionary = weakref.WeakValueDictionary()

    inner_aval: avals.ShapedArray
    memory_space: Any
    kind: Any

    def __new__(
        cls, inner_aval: avals.ShapedArray, memory_space: Any = None, kind: Any = None
    ) -> AbstractRef:
        key = (inner_aval, memory_space, kind)
        with avals.intern_lock:
            ref = cls._interned.get(key)
            if ref is None:
                ref = object.__new__(cls)
                ref.inner_aval, ref.memory_space, ref.kind = key
                cls._interned[key] = ref
        return ref

    def __reduce__(self):
        return (AbstractRef, (self.inner_aval, self.memory_space, self.kind))

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    weak_type = property(lambda self: self.inner_aval.weak_type)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)
    cut = property(lambda self: self.inner_aval.cut)
    sharding = property(lambda self: self.inner_aval.sharding)
    manual_axis_type = property(lambda self: self.inner_aval.manual_axis_type)
    vma = property(lambda self: self.inner_aval.vma)

    def of(self, inner_aval: avals.ShapedArray) -> AbstractRef:
        """The type of a ref of the same sort with another content."""
        return AbstractRef(inner_aval, self.memory_space, self.kind)

    def update(self, **changes: Any) -> AbstractRef:
        return self.of(self.inner_aval.update(**changes))

    def mapped(self, size: int, axis: int) -> AbstractRef:
        return self.of(self.inner_aval.mapped(size, axis))

    def unmapped(self, size: int, axis: int, along: Any = None) -> AbstractRef:
        return self.of(self.inner_aval.unmapped(size, axis, along))

    def to_tangent_aval(self) -> AbstractRef:
        return self.of(self.inner_aval.to_tangent_aval())

    def str_short(self, short_dtypes: bool = False) -> str:
        space = "" if self.memory_space is None else f"<{self.memory_space}>"
        return f"Ref{space}{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __repr__(self) -> str:
        return self.str_short()


class AbstractToken(avals.AbstractValue):
    """The type of a token, which orders effects in compiled programs."""

    __slots__ = ()
    shape = ()
    dtype = np.dtype("bool")
    weak_type = False

    def str_short(self, short_dtypes: bool = False) -> str:
        return "Tok"

    def to_tangent_aval(self) -> AbstractToken:
        return self


abstract_token = AbstractToken()


class ShapeDtypeStruct:
    """Shape and dtype of an array that need not exist: `eval_shape`'s answer.

    Accepted wherever only types matter (`make_jaxpr`, `jit(f).lower`, `eval_shape`).

    In JAX: `jax.ShapeDtypeStruct`.
    """

    __slots__ = ("shape", "dtype", "format", "weak_type", "manual_axis_type")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: ManualAxisType | None = None,
    ):
        if not isinstance(manual_axis_type, ManualAxisType | None):
            raise TypeError(
                "ShapeDtypeStruct: manual_axis_type is a `sharding.ManualAxisType`, "
                f"got {manual_axis_type!r} of type {type(manual_axis_type).__name__}."
            )
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        if isinstance(sharding, PartitionSpec):
            mesh = state.abstract_mesh or state.mesh
            if not mesh:
                raise TypeError(
                    f"ShapeDtypeStruct got {sharding}, and a PartitionSpec alone means "
                    "the mesh in use, of which there is none: `minijax.set_mesh(mesh)`."
                )
            sharding = NamedSharding(mesh, sharding)
        if not isinstance(sharding, Sharding | Format | None):
            raise ValueError(
                "ShapeDtypeStruct: sharding is a Sharding, a PartitionSpec or a Format,"
                f" got {sharding!r} of type {type(sharding).__name__}."
            )
        if getattr(sharding, "layout", None) is Layout.AUTO:
            raise TypeError(
                f"ShapeDtypeStruct got {sharding}: `Layout.AUTO` is for jit's "
                "in_shardings and out_shardings. Say a layout, or the sharding alone."
            )
        self.shape = avals.canonicalize_shape(shape)
        self.dtype = dtype if dtypes.is_extended(dtype) else np.dtype(dtype)
        self.format = (
            sharding if isinstance(sharding, Format) else Format(None, sharding)
        )
        self.weak_type = weak_type
        self.manual_axis_type = manual_axis_type

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The struct of an array, number or struct, with a committed array's sharding.

        Raises NotImplementedError for a ref.
        """
        aval = avals.shaped_abstractify(x)
        if isinstance(aval, AbstractRef):
            raise NotImplementedError(
                "ShapeDtypeStruct.like takes arrays, got a ref. Read it: like(x[...])."
            )
        place = None if hasattr(x, "_error_repr") else x  # a tracer has a type only
        committed = getattr(place, "committed", True)
        struct = cls.of(aval)
        sharding = getattr(place, "sharding", struct.sharding) if committed else None
        kind = struct.manual_axis_type
        kind = None if kind == ManualAxisType() else kind
        return struct.update(sharding=sharding, manual_axis_type=kind)

    @classmethod
    def of(cls, aval: Any) -> ShapeDtypeStruct:
        """The struct of a type, with its cut over a mesh of Explicit or Manual axes."""
        cut, kind = aval.cut, None
        if state.manual_mesh is not None:
            cut, kind = aval.sharding, aval.manual_axis_type
        elif cut is not None and not cut.mesh._any_axis_explicit:
            cut = None
        place = {"sharding": cut, "manual_axis_type": kind}
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type, **place)

    sharding = property(lambda self: self.format.sharding)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    T = property(lambda self: self.update(shape=self.shape[::-1]))

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "A ShapeDtypeStruct does not have a value and cannot be used as a constant "
            "of a function that is computed. Give an array of its shape and dtype."
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The same struct with some of shape, dtype, sharding, weak_type changed."""
        kind = self.manual_axis_type
        fields = {"sharding": self.format, "manual_axis_type": kind, **changes}
        fields.setdefault("weak_type", self.weak_type)
        shape, dtype = fields.pop("shape", self.shape), fields.pop("dtype", self.dtype)
        return ShapeDtypeStruct(shape, dtype, **fields)

    def __repr__(self) -> str:
        place, layout = self.sharding, self.format.layout
        sharding = "" if place is None else f", sharding={place}"
        sharding += "" if layout is None else f", format={layout}"
        weak = ", weak_type=True" if self.weak_type else ""
        kind = self.manual_axis_type
        weak += "" if kind is None else f", manual_axis_type={kind}"
        return (
            f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}"
            f"{sharding}{weak})"
        )

    def _key(self) -> tuple:
        kind = self.weak_type, self.manual_axis_type
        return (self.shape, self.dtype, self.format, *kind)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def struct_aval(struct: ShapeDtypeStruct) -> avals.ShapedArray:
    dtype = struct.dtype
    if not dtypes.is_extended(dtype):
        dtype = dtypes.canonicalize_dtype(dtype)
    return avals.ShapedArray(struct.shape, dtype, struct.weak_type)
