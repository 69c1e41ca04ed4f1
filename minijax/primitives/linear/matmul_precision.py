"""How exactly products are multiplied and added: `Precision` and `DotAlgorithm`.

What a caller writes (`precision="highest"`) becomes one of three canonical forms, which
stand in the equations of `dot_general` and of convolutions: None, a pair of `Precision`
(one for each operand), or an algorithm.

In JAX: `lax/lax.py`, `Precision`, `DotAlgorithm`, `canonicalize_precision`.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from minijax.core import hlo
from minijax.core.dot import convert, is_algorithm
from minijax.core.state import state
from minijax.support import element_types

_precision_strings: dict[Any, Precision] = {}


class Precision(enum.Enum):
    """Speed against accuracy of float32 products on accelerators.

    CPUs always compute in float32. DEFAULT is fastest (bfloat16 on TPU, TF32 on GPU),
    HIGH splits each factor in parts, HIGHEST is float32 (six bfloat16 passes on TPU).

    In JAX: `lax.Precision`.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return _precision_strings.get(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


_precision_strings.update(
    {
        "highest": Precision.HIGHEST,
        "float32": Precision.HIGHEST,
        "high": Precision.HIGH,
        "bfloat16_3x": Precision.HIGH,
        "tensorfloat32": Precision.HIGH,
        "default": Precision.DEFAULT,
        "bfloat16": Precision.DEFAULT,
        "fastest": Precision.DEFAULT,
        None: Precision.DEFAULT,
    }
)


class DotAlgorithm(NamedTuple):
    """An algorithm for dot products, spelt out for hardware that offers it.

    The operands are rounded to `lhs_precision_type` and `rhs_precision_type`, products
    are added in `accumulation_type`. Where an operand is split to emulate more
    precision, the counts say into how many parts, and how many products are formed.
    Compiling raises an error where the platform lacks the algorithm.

    In JAX: `lax.DotAlgorithm`.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False

    def prepare(self, ctx: Any, lhs: Any, rhs: Any) -> tuple:
        """The result of `dot.prepared_operands` for this algorithm."""
        return _prepare(self, ctx, lhs, rhs, self[:3])

    def to_attribute(self, lhs_dtype: Any, rhs_dtype: Any) -> Any:
        """The algorithm as an attribute of StableHLO's `dot_general`."""
        return hlo.stablehlo.DotAlgorithm.get(
            hlo.element_type(np.dtype(self.lhs_precision_type)),
            hlo.element_type(np.dtype(self.rhs_precision_type)),
            hlo.element_type(np.dtype(self.accumulation_type)),
            self.lhs_component_count,
            self.rhs_component_count,
            self.num_primitive_operations,
            self.allow_imprecise_accumulation,
        )


_float8_dtypes = tuple(
    np.dtype(getattr(ml_dtypes, f"float8_{name}"))
    for name in "e4m3b11fnuz e4m3fn e4m3fnuz e5m2 e5m2fnuz e3m4 e4m3 e8m0fnu".split()
)
_float8_outputs = tuple(_float8_dtypes[index] for index in (1, 3, 4, 2, 0))

_f16, _f32, _f64 = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")
_bf16 = np.dtype(ml_dtypes.bfloat16)


class _Needs(NamedTuple):
    """What a preset needs: the operands' part type, how they are stored and added;
    and whether CPUs have it, which would otherwise ignore the request silently."""

    part: str | None = None
    storage: tuple | None = None
    accumulation: Any = None
    products: int = 1
    imprecise: bool = False
    on_cpu: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Algorithms for dot products that some platform is known to offer.

    Names read LHS_RHS_ACCUMULATOR; a suffix `_X3` counts the products of parts that
    emulate more precision, `FAST_ACCUM` allows imprecise accumulation, `ANY_F8` stands
    for every 8-bit float. DEFAULT leaves the choice to the compiler.

    In JAX: `lax.DotAlgorithmPreset`.
    """

    DEFAULT = _Needs(on_cpu=True)
    ANY_F8_ANY_F8_F32 = _Needs(accumulation=_f32)
    ANY_F8_ANY_F8_F32_FAST_ACCUM = _Needs(accumulation=_f32, imprecise=True)
    ANY_F8_ANY_F8_ANY = _Needs()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = _Needs()
    F16_F16_F16 = _Needs("f16", (_f16,), _f16, on_cpu=True)
    F16_F16_F32 = _Needs("f16", (_f16,), _f32)
    BF16_BF16_BF16 = _Needs("bf16", (_bf16, _f32), _bf16)
    BF16_BF16_F32 = _Needs("bf16", (_bf16, _f32), _f32, on_cpu=True)
    BF16_BF16_F32_X3 = _Needs("bf16", (_f32,), _f32, products=3, on_cpu=True)
    BF16_BF16_F32_X6 = _Needs("bf16", (_f32,), _f32, products=6, on_cpu=True)
    BF16_BF16_F32_X9 = _Needs("bf16", (_f32,), _f32, products=9)
    TF32_TF32_F32 = _Needs("tf32", (_f32,), _f32)
    TF32_TF32_F32_X3 = _Needs("tf32", (_f32,), _f32, products=3)
    F32_F32_F32 = _Needs("f32", (_f32,), _f32, on_cpu=True)
    F64_F64_F64 = _Needs("f64", (_f64,), _f64, on_cpu=True)

    needs: _Needs

    def __new__(cls, *needs: Any) -> DotAlgorithmPreset:
        member = object.__new__(cls)
        member._value_ = len(cls.__members__) + 1  # as by enum.auto(): no two are equal
        member.needs = _Needs(*needs)
        return member

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def supported_lhs_types(self) -> tuple | None:
        """The dtypes in which the left operand may be stored; None means any."""
        return self.needs.storage

    supported_rhs_types = supported_lhs_types

    @property
    def accumulation_type(self) -> Any:
        """The dtype in which products are added; None leaves it open."""
        return self.needs.accumulation

    def supported_output_types(self, lhs_dtype: Any, rhs_dtype: Any) -> tuple | None:
        """The dtypes that the result may have for these operands; None means any."""
        if self.name.startswith("ANY_F8_ANY_F8_F32"):
            return (_f32, _f16, _bf16, *_float8_outputs)
        operands = element_types.promote_types(lhs_dtype, rhs_dtype)
        if self.name == "F16_F16_F32":
            return (_f32, _f16) if operands == _f16 else (_f32,)
        if self.name == "BF16_BF16_F32":
            return (_f32, _bf16) if operands == _bf16 else (_f32,)
        accumulation = self.accumulation_type
        return None if accumulation is None else (accumulation,)

    def prepare(self, ctx: Any, lhs: Any, rhs: Any) -> tuple:
        """The result of `dot.prepared_operands` for this algorithm."""
        lhs_aval, rhs_aval, *_ = ctx.avals_in
        lhs_dtype = _nearest(lhs_aval.dtype, self.supported_lhs_types)
        rhs_dtype = _nearest(rhs_aval.dtype, self.supported_rhs_types)
        supported = self.supported_output_types(lhs_dtype, rhs_dtype)
        dtype = _nearest(ctx.avals_out[0].dtype, supported)
        return _prepare(self, ctx, lhs, rhs, (lhs_dtype, rhs_dtype, dtype))

    def to_attribute(self, lhs_dtype: Any, rhs_dtype: Any) -> Any:
        """The algorithm as an attribute of StableHLO's `dot_general`; None: default."""
        element = {
            "f16": hlo.ir.F16Type,
            "bf16": hlo.ir.BF16Type,
            "tf32": hlo.ir.FloatTF32Type,
            "f32": hlo.ir.F32Type,
            "f64": hlo.ir.F64Type,
        }
        if self.name.startswith("ANY_F8"):
            if lhs_dtype not in _float8_dtypes or rhs_dtype not in _float8_dtypes:
                raise ValueError(
                    f"The dot algorithm '{self}' requires both inputs to have float8 "
                    f"dtypes. Got {lhs_dtype} and {rhs_dtype} instead."
                )
            lhs, rhs = hlo.element_type(lhs_dtype), hlo.element_type(rhs_dtype)
            accumulation = hlo.element_type(_f32)
        elif self.needs.part is None:
            return None
        else:
            lhs = rhs = element[self.needs.part].get()
            accumulation = hlo.element_type(self.needs.accumulation)
        return hlo.stablehlo.DotAlgorithm.get(
            lhs, rhs, accumulation, 1, 1, self.needs.products, self.needs.imprecise
        )


# What a caller may write as a precision.
PrecisionLike = (
    None
    | str
    | Precision
    | tuple[str, str]
    | tuple[Precision, Precision]
    | DotAlgorithm
    | DotAlgorithmPreset
)


def _nearest(dtype: Any, supported: tuple | None) -> Any:
    """`dtype` if it is supported, else the first dtype that is."""
    return dtype if supported is None or dtype in supported else supported[0]


def _prepare(algorithm: Any, ctx: Any, lhs: Any, rhs: Any, compute: tuple) -> tuple:
    """Operands in the dtypes of an algorithm, the result's dtype, the attribute."""
    is_preset = isinstance(algorithm, DotAlgorithmPreset)
    if ctx.platform == "cpu" and not (is_preset and algorithm.needs.on_cpu):
        raise ValueError(
            f"The precision '{algorithm}' is not supported by dot_general on CPU"
        )
    lhs_dtype, rhs_dtype, dtype = map(np.dtype, compute)
    lhs_aval, rhs_aval, *_ = ctx.avals_in
    lhs = convert(lhs, lhs_aval, lhs_dtype)
    rhs = convert(rhs, rhs_aval, rhs_dtype)
    if algorithm is DotAlgorithmPreset.DEFAULT:
        return lhs, rhs, dtype, {}
    attribute = algorithm.to_attribute(lhs_dtype, rhs_dtype)
    return lhs, rhs, dtype, {"algorithm": attribute}


def canonicalize_precision(precision: Any) -> Any:
    """A precision as a user writes it, as None, a pair of `Precision`, or an algorithm.

    Accepts None (then the flag `default_matmul_precision` decides), the name of a
    precision or preset, a `Precision`, a pair of names or of `Precision`, a
    `DotAlgorithm`, a `DotAlgorithmPreset`. Raises ValueError for anything else.
    """
    if precision is None:
        default = state.default_matmul_precision
        return None if default is None else canonicalize_precision(default)
    if isinstance(precision, str):
        if precision in _precision_strings:
            return (Precision(precision), Precision(precision))
        if precision in DotAlgorithmPreset.__members__:
            return DotAlgorithmPreset[precision]
    elif isinstance(precision, Precision):
        return (precision, precision)
    elif is_algorithm(precision):
        return precision
    elif isinstance(precision, (tuple, list)) and len(precision) == 2:
        if all(isinstance(p, Precision) for p in precision):
            return tuple(precision)
        if all(isinstance(p, str) and p in _precision_strings for p in precision):
            return (Precision(precision[0]), Precision(precision[1]))
    names = ", ".join(repr(name) for name in _precision_strings if name)
    raise ValueError(
        "The argument precision must be None, a lax.Precision, a pair of them or of "
        f"their names ({names}), one such name, a lax.DotAlgorithmPreset or its name, "
        f"or a lax.DotAlgorithm; got {precision!r}."
    )
