"""Arrays that change in place: making refs, freezing them, and what a ref is.

    ref = new_ref(jnp.zeros(3))
    ref[0] = 5.0            # a write: the equation `a[0] <- 5.0`
    ref.addupdate(1.0, 1)   # `a[1] += 1.0`
    x = ref[...]            # a read: `b <- a[...]`
    x = freeze(ref)         # the last one: the ref is gone, its content is an array

A ref that is made, written and frozen inside a function does not show outside: the
function is pure, and can be differentiated, batched and compiled like any other. A ref
that is passed in, or closed over, is written where the caller sees it.

Outside of jit a `Ref` is a box around an Array, and a write puts a new Array into the
box, in the memory of the old one. In a program that is being written a ref is a
variable of type `Ref{f32[3]}`. XLA knows no refs: before a program is lowered
`transforms/discharge.py` turns each into the sequence of the values it has.

Derivatives need one idea. The tangent of a ref is a ref, which exists even if nothing
differentiable was put in when it was made, since something may be written later: hence
`makes_ref`. On the way back a ref stands for the cotangent of its content, which a
`RefAccumulator` gathers: what was read gets cotangents added, what was written hands
its cotangent over and leaves zeros. So the transpose of `new_ref` is `freeze`, and that
of `freeze` is `new_ref`.

In JAX: `core.py`, `Ref`, `new_ref`, `freeze`; the rules in `state/primitives.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import language, rules
from minijax.core.events import enter
from minijax.primitives.refs.ref_effects import internal_mutable_array_effect
from minijax.primitives.shape import ordering
from minijax.values.ref_avals import AbstractRef

# ----------------------------------------------------------------------------------
# What a ref is
# ----------------------------------------------------------------------------------


class _RefMeta(type):
    """`isinstance(x, Ref)` holds for the refs of a program being written too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return (
            isinstance(instance, language.Tracer) and type(instance.aval) is AbstractRef
        )


class Ref(metaclass=_RefMeta):
    """An array that changes in place; made by `new_ref`, not by calling the class.

    `ref[i]` reads, `ref[i] = x` writes, `ref.addupdate(x, i)` adds. Indices are those
    of `ref.get`: integers, arrays of integers, slices and an ellipsis.

    In JAX: `jax.ref.Ref`.
    """

    __slots__ = ("aval", "_array", "__weakref__")

    aval: AbstractRef
    _array: Any
    # Reading and writing: `references.py`, which needs this class, sets them.
    __getitem__: Callable[..., Any]
    __setitem__: Callable[..., None]
    addupdate: Callable[..., None]

    def __init__(self, aval: AbstractRef, array: Any):
        self.aval = aval
        self._array = array

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    sharding = property(lambda self: self._array.sharding)
    committed = property(lambda self: self._array.committed)

    @property
    def at(self) -> Any:
        raise NotImplementedError(
            "A Ref has no `at`: write `ref[index] = x`, or `ref.addupdate(x, index)`."
        )

    def unsafe_buffer_pointer(self) -> int:
        """The address of the content's memory on its device, until the next write."""
        return self._array.unsafe_buffer_pointer()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        return "Ref" + repr(self._array)[len("Array") :]


enter(language.aval_of_class, Ref, operator.attrgetter("aval"))


class RefAccumulator(rules.Accumulator):
    """An accumulator whose cotangents add up in place, in `ref`.

    That of a linear variable that is a ref: `aval` is its type, and the ref is made
    when the first cotangent comes. Or that of an array, when the user gave a ref.

    In JAX: `interpreters/ad.py`, `RefAccum`.
    """

    __slots__ = ("ref",)
    in_place = True
    # `accum_at(index, cotangent)` adds the cotangent of a part, so that zeros for the
    # rest are never made. `references.py` sets it.
    accum_at: Callable[[Any, Any], None]

    def __init__(self, aval: language.AbstractValue, ref: Any = None):
        super().__init__(aval)
        self.ref = ref

    @property
    def is_ref(self) -> bool:  # type: ignore[override]
        return type(self.aval) is AbstractRef

    @classmethod
    def transposed_input_aval(cls, aval: language.AbstractValue) -> AbstractRef:
        return cls(aval.to_ct_aval()).type_of_ref()

    def transposed_input(self) -> Any:
        """The ref, made if there is none yet."""
        return self.inst().ref

    def inst(self) -> RefAccumulator:
        """This accumulator, its ref made if there is none yet."""
        if self.ref is None:
            self.ref = new_ref(rules.zeros_of(self._content()))
        return self

    def accum(self, cotangent: Any) -> None:
        if cotangent is None or type(cotangent) is rules.Zero:
            return
        if self.ref is None:
            self.ref = new_ref(cotangent)
        else:
            self.accum_at(None, cotangent)

    def freeze(self) -> Any:
        return rules.Zero(self._content()) if self.ref is None else freeze(self.ref)

    def type_of_ref(self) -> AbstractRef:
        aval: Any = self.aval
        return aval if type(aval) is AbstractRef else AbstractRef(aval)

    def _content(self) -> language.ShapedArray:
        return self.type_of_ref().inner_aval


enter(rules.accumulator_of_class, AbstractRef, RefAccumulator)


_no_lowering = "a program loses its refs (it is discharged) before it is lowered"


def ref_primitive(name: str, multiple_results: bool = False) -> language.Primitive:
    """A primitive on refs, which is not lowered but discharged."""
    primitive = language.register(language.Primitive(name, multiple_results))
    primitive.without("lower", _no_lowering)
    return primitive


# ----------------------------------------------------------------------------------
# new_ref
# ----------------------------------------------------------------------------------

new_ref_p = ref_primitive("new_ref")
del new_ref_p.reasons["lower"]  # it has an eager rule
new_ref_p.makes_ref = True
new_ref_p.meaning = lambda x, *, memory_space, kind: np.copy(x)


@new_ref_p.def_effectful_abstract_eval
def _new_ref_type(x, *, memory_space, kind) -> tuple:
    if not isinstance(x, language.ShapedArray):
        raise TypeError(
            f"new_ref makes a ref of an array, but got a value of type {x}. To copy a "
            "ref, read it: `new_ref(ref[...])`."
        )
    return AbstractRef(x, memory_space, kind), frozenset(
        {internal_mutable_array_effect}
    )


@new_ref_p.def_impl
def _new_ref_impl(x, *, memory_space, kind) -> Ref:
    """A copy, so that the ref's memory is its own and writes can reuse it."""
    if memory_space is not None:
        raise NotImplementedError("new_ref takes a memory_space only inside of jit.")
    params = {"memory_space": memory_space, "kind": kind}
    aval, _ = language.type_of_application(new_ref_p, (language.get_aval(x),), params)
    return Ref(aval, ordering.copy_p.bind(x))


@new_ref_p.def_jvp_rule
def _new_ref_jvp(primals, tangents, **params) -> Any:
    ref = new_ref_p.bind(*primals, **params)
    return ref, new_ref_p.bind(rules.instantiate(tangents[0]), **params)


def _new_ref_linearize(nonzeros, x, **params) -> tuple:
    """The tangent's ref belongs to the linear program, also if it holds zeros."""
    ref = new_ref_p.bind(x, **params)

    def linear(residuals: Any, tangent: Any) -> Any:
        if params["kind"] == "no_grad_no_remat":
            return rules.Zero(ref.aval.to_tangent_aval())
        return new_ref_p.bind(rules.instantiate(tangent), **params)

    return ref, True, None, linear


new_ref_p.linearize = _new_ref_linearize


@new_ref_p.def_transpose
def _new_ref_transpose(ct, x, **params) -> list:
    """`ct` is the frozen content of the ref that gathered the cotangents."""
    return [ct]


def even_unmapped(rule: Any) -> Any:
    """Decorator of a batch rule that is called even if no operand is mapped."""
    rule.even_unmapped = True
    return rule


@new_ref_p.def_batch
@even_unmapped
def _new_ref_batch(axis_data, args, dims, **params) -> tuple[Any, int]:
    """Every example gets a ref of its own, since every example may write to it."""
    if dims[0] is None:
        x = rules.batch_at_front(args[0], None, axis_data)
        return new_ref_p.bind(x, **params), 0
    return new_ref_p.bind(*args, **params), dims[0]


# ----------------------------------------------------------------------------------
# empty_ref and free_ref
# ----------------------------------------------------------------------------------

empty_ref_p = ref_primitive("empty_ref")
empty_ref_p.makes_ref = True
empty_ref_p.meaning = lambda *, ty, memory_space: np.zeros(ty.shape, ty.dtype)
empty_ref_p.without("batch", "JAX has none: an example cannot leave its ref unwritten")


@empty_ref_p.def_effectful_abstract_eval
def _empty_ref_type(*, ty, memory_space) -> tuple:
    return AbstractRef(ty, memory_space), frozenset({internal_mutable_array_effect})


@empty_ref_p.def_jvp_rule
def _empty_ref_jvp(primals, tangents, *, ty, memory_space) -> Any:
    tangent = empty_ref_p.bind(ty=ty.to_tangent_aval(), memory_space=memory_space)
    return empty_ref_p.bind(ty=ty, memory_space=memory_space), tangent


def _empty_ref_linearize(nonzeros, *, ty, memory_space) -> tuple:
    def linear(residuals: Any) -> Any:
        return empty_ref_p.bind(ty=ty.to_tangent_aval(), memory_space=memory_space)

    ref = empty_ref_p.bind(ty=ty, memory_space=memory_space)
    return ref, True, None, linear


empty_ref_p.linearize = _empty_ref_linearize
empty_ref_p.def_transpose(lambda ct, **params: [])

free_ref_p = ref_primitive("free_ref", multiple_results=True)
del free_ref_p.reasons["lower"]
free_ref_p.meaning = lambda ref: []
free_ref_p.impl = lambda ref: []


@free_ref_p.def_effectful_abstract_eval
def _free_ref_type(ref) -> tuple:
    return [], language.no_effects


@free_ref_p.def_jvp_rule
def _free_ref_jvp(primals, tangents) -> Any:
    free_ref_p.bind(*primals)
    if type(tangents[0]) is not rules.Zero:
        free_ref_p.bind(*tangents)
    return [], []


@free_ref_p.def_batch
def _free_ref_batch(axis_data, args, dims) -> Any:
    return free_ref_p.bind(*args), []


free_ref_p.without("transpose", "JAX has none: cotangents may still come to the ref")


# ----------------------------------------------------------------------------------
# freeze
# ----------------------------------------------------------------------------------

freeze_p = ref_primitive("freeze")
del freeze_p.reasons["lower"]
freeze_p.meaning = np.copy


@freeze_p.def_effectful_abstract_eval
def _freeze_type(ref) -> tuple:
    return ref.inner_aval, frozenset({internal_mutable_array_effect})


@freeze_p.def_impl
def _freeze_impl(ref) -> Any:
    return ref[()]


freeze_p.def_jvp(lambda t, ref: freeze_p.bind(t))
freeze_p.def_transpose(lambda ct, ref: [ct])


@freeze_p.def_batch
def _freeze_batch(axis_data, args, dims) -> Any:
    return freeze_p.bind(*args), dims[0]


# ----------------------------------------------------------------------------------
# The functions
# ----------------------------------------------------------------------------------


def new_ref(init_val: Any, *, memory_space: Any = None, kind: Any = None) -> Any:
    """A ref with a copy of an array as its content. In JAX: `jax.new_ref`.

    Args:
      init_val: an array or number; the ref keeps its shape and dtype.
      memory_space: part of the ref's type, for kernels.
      kind: None, or "no_grad_no_remat" for a ref without derivatives.

    Raises:
      TypeError: `init_val` is a ref.
    """
    return new_ref_p.bind(init_val, memory_space=memory_space, kind=kind)


def empty_ref(ty: Any, memory_space: Any = None) -> Any:
    """A ref whose content is not defined before it is written; inside jit only.

    `ty` is a `ShapeDtypeStruct`. In JAX: `jax.ref.empty_ref`.
    """
    return empty_ref_p.bind(
        ty=language.shaped_abstractify(ty), memory_space=memory_space
    )


def free_ref(ref: Any) -> tuple[()]:
    """Say that a ref is not used any more. In JAX: `jax.ref.free_ref`."""
    free_ref_p.bind(ref)
    return ()


def freeze(ref: Any) -> Any:
    """The last content of a ref, which is not used any more. In JAX: `jax.freeze`."""
    aval = language.get_aval(ref)
    if not isinstance(aval, AbstractRef):
        raise TypeError(
            f"freeze takes a ref, got a value of type {aval}. Only what `new_ref` "
            "returned can be frozen."
        )
    return freeze_p.bind(ref)
