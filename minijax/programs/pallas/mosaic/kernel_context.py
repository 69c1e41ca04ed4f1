"""A kernel's equations as operations of Mosaic, one after another.

    c:f32[8,128] <- a[...]          %1 = vector.load %a[%c0, %c0]
    d:f32[8,128] = mul c 2.0        %2 = arith.mulf %1, %cst

A rule turns an equation into operations: `rules[name of the primitive]`, called with a
`RuleContext` and the operands' values. A value of rank 0 is a scalar of MLIR, one of
higher rank a `vector`; a ref is a `Memory`. The rules stand in the other files of this
room, a family in each.

In JAX: `pallas/mosaic/lowering.py`, `jaxpr_subcomp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.backend import hlo, mosaic
from minijax.language.core import (
    AbstractValue,
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    ShapedArray,
)
from minijax.language.ref_avals import AbstractRef
from minijax.programs.pallas.memory_spaces import MemorySpace, TpuMemorySpace
from minijax.support import dtypes, source_info
from minijax.transforms.partial_eval import trace_to_jaxpr

# The rule of each primitive, by its name.
rules: dict[str, Callable[..., Any]] = {}


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: this is the rule of the primitives with these names."""

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            rules[name] = function
        return function

    return decorator


# ----------------------------------------------------------------------------------
# Types and constants
# ----------------------------------------------------------------------------------


def element_type(dtype: Any) -> Any:
    """The MLIR type of one element; Mosaic's integers have no sign of their own.

    Raises NotImplementedError for dtypes that a TPU's core does not compute with.
    """
    dtype = np.dtype(dtype)
    if dtype.itemsize > 4 or dtype.kind == "c":
        raise NotImplementedError(
            f"a kernel on a TPU cannot compute with {dtype}: numbers have at most 32 "
            "bits there, and none are complex. Convert with `.astype` outside."
        )
    if dtypes.issubdtype(dtype, np.integer):
        return hlo.ir.IntegerType.get_signless(dtypes.iinfo(dtype).bits)
    return hlo.element_type(dtype)


def value_type(aval: Any) -> Any:
    """The MLIR type of a value of that type: a scalar, or a vector."""
    element = element_type(aval.dtype)
    return hlo.ir.VectorType.get(aval.shape, element) if aval.shape else element


def memory_space(aval: AbstractRef) -> TpuMemorySpace | MemorySpace:
    """Where a ref's memory is; VMEM unless the user said something else."""
    space = aval.memory_space
    if space is None or space is MemorySpace.DEFAULT:
        return TpuMemorySpace.VMEM
    return space


_SPACE_NAMES: dict[Any, str] = {
    TpuMemorySpace.VMEM: "vmem",
    TpuMemorySpace.SMEM: "smem",
    TpuMemorySpace.HBM: "hbm",
    MemorySpace.ANY: "any",
}


def memref_type(shape: Sequence[int], dtype: Any, space: Any) -> Any:
    """The MLIR type of memory in a space of the TPU.

    Raises NotImplementedError for spaces and dtypes that no rule here reaches.
    """
    if space not in _SPACE_NAMES:
        raise NotImplementedError(
            f"memory space {space!r} in a kernel for a TPU: give pltpu.VMEM (vectors) "
            "or pltpu.SMEM (scalars)."
        )
    if np.dtype(dtype) == np.dtype(bool):
        raise NotImplementedError(
            "memory of bools in a kernel for a TPU: pass them as int32, and compare "
            "with 0 in the kernel."
        )
    name = hlo.ir.Attribute.parse(f"#tpu.memory_space<{_SPACE_NAMES[space]}>")
    element = element_type(dtype)
    return hlo.ir.MemRefType.get(list(shape), element, memory_space=name)


def constant(value: Any, dtype: Any) -> Any:
    """A scalar constant of a dtype."""
    arith = mosaic.dialect("arith")
    kind = element_type(dtype)
    if dtypes.issubdtype(dtype, np.floating):
        attribute = hlo.ir.FloatAttr.get(kind, float(value))
    else:
        attribute = hlo.ir.IntegerAttr.get(kind, int(value))
    return arith.constant(kind, attribute)


def index_constant(value: int) -> Any:
    """A constant of MLIR's type `index`, for places in memory."""
    kind = hlo.ir.IndexType.get()
    return mosaic.dialect("arith").constant(kind, hlo.ir.IntegerAttr.get(kind, value))


def filled(value: Any, aval: Any) -> Any:
    """A value of that type with one constant everywhere."""
    scalar = constant(value, aval.dtype)
    if not aval.shape:
        return scalar
    return mosaic.dialect("vector").broadcast(value_type(aval), scalar)


def dense(value: Any, aval: Any) -> Any:
    """The same as one constant vector: what Mosaic wants of accumulators."""
    element = element_type(aval.dtype)
    kind = hlo.ir.FloatAttr if _is_float(aval.dtype) else hlo.ir.IntegerAttr
    given = float(value) if _is_float(aval.dtype) else int(value)
    attribute = hlo.ir.DenseElementsAttr.get_splat(
        value_type(aval), kind.get(element, given)
    )
    return mosaic.dialect("arith").constant(value_type(aval), attribute)


def _is_float(dtype: Any) -> bool:
    return dtypes.issubdtype(dtype, np.floating)


# ----------------------------------------------------------------------------------
# Values
# ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Memory:
    """A ref in a kernel: a `memref`, and the axes of it that the kernel sees."""

    value: Any
    shape: tuple[int, ...]
    space: Any
    hidden: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Kernel:
    """What all equations of a kernel share.

    `indices` are the program's places in the grid and `sizes` the grid's, along the
    axes that the kernel sees. `prefetched` is there for messages.
    """

    name: str
    indices: Sequence[Any]
    sizes: Sequence[Any]
    names: Sequence[Any] = ()


@dataclass(frozen=True)
class RuleContext:
    """What a rule may ask for: the types of operands and results, and the kernel."""

    kernel: Kernel
    eqn: JaxprEqn
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]

    def operands(self, *values: Any) -> list[Any]:
        """The operands repeated to the shape of the result."""
        shape = self.avals_out[0].shape
        return [
            repeated(value, aval, shape) for value, aval in zip(values, self.avals_in)
        ]

    def lower_fun(self, function: Callable[..., Any], *values: Any) -> Any:
        """The result of a function of arrays, written with other primitives."""
        jaxpr, consts = trace_to_jaxpr(lambda *a: [function(*a)], list(self.avals_in))
        return self.lower(ClosedJaxpr(jaxpr, consts), *values)[0]

    def lower(self, closed: ClosedJaxpr, *values: Any) -> list[Any]:
        """The results of a program in place, among the operations of this one."""
        if closed.consts:
            raise NotImplementedError("a program with constants inside of a kernel")
        return lower_eqns(self.kernel, closed.jaxpr, values)


def repeated(value: Any, aval: AbstractValue, shape: Sequence[int]) -> Any:
    """A value of type `aval` repeated to `shape`: from a scalar, or along axes of 1."""
    assert isinstance(aval, ShapedArray)
    if aval.shape == tuple(shape):
        return value
    target = value_type(aval.update(shape=tuple(shape), sharding=None))
    return mosaic.dialect("vector").broadcast(target, value)


def vector_shaped(value: Any, aval: Any, shape: Sequence[int]) -> Any:
    """A vector with the same elements in another shape of at least one axis."""
    target = value_type(aval.update(shape=tuple(shape), sharding=None))
    if value.type == target:
        return value
    return mosaic.dialect("vector").shape_cast(target, value)


# ----------------------------------------------------------------------------------
# Equations
# ----------------------------------------------------------------------------------


def lower_eqns(kernel: Kernel, jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Write a program's equations; `values` are its inputs, constants first.

    Raises NotImplementedError, with the user's line, for what has no rule.
    """
    env = dict(zip((*jaxpr.constvars, *jaxpr.invars), values, strict=True))

    def read(atom: Any) -> Any:
        if type(atom) is Literal:
            return filled(np.asarray(atom.val).item(), atom.aval)
        return env[atom]

    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        with hlo.location(eqn.source_info.traceback, name):
            outputs = _lower_eqn(kernel, eqn, [read(v) for v in eqn.invars])
        env.update(zip(eqn.outvars, outputs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _lower_eqn(kernel: Kernel, eqn: JaxprEqn, inputs: list[Any]) -> list[Any]:
    place = source_info.summarize(eqn.source_info)
    rule_of_eqn = rules.get(eqn.primitive.name)
    if rule_of_eqn is None:
        raise NotImplementedError(
            f"the kernel {kernel.name!r} cannot be compiled for a TPU: there is no "
            f"lowering of '{eqn.primitive}' to Mosaic, and it is used at {place}. "
            "Compute that outside of the kernel, or write it with other operations."
        )
    avals_in = [v.aval for v in eqn.invars]
    context = RuleContext(kernel, eqn, avals_in, [v.aval for v in eqn.outvars])
    try:
        outputs = rule_of_eqn(context, *inputs, **eqn.params)
    except NotImplementedError as error:
        message = str(error)
        if message.startswith("the kernel "):
            raise
        raise NotImplementedError(
            f"the kernel {kernel.name!r} cannot be compiled for a TPU, because of "
            f"'{eqn.primitive}' at {place}: {message}"
        ) from None
    except hlo.ir.MLIRError as error:
        raise NotImplementedError(
            f"the kernel {kernel.name!r} cannot be compiled for a TPU: Mosaic has no "
            f"such '{eqn.primitive}' as the one at {place}. It says: "
            f"{mosaic.message_of(error)}"
        ) from None
    return outputs if eqn.primitive.multiple_results else [outputs]
