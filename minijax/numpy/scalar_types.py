"""`jnp.float32` and its kin: dtypes that make arrays when called.

`jnp.float32` may stand wherever a dtype is expected, compares equal to
`numpy.float32`, and `jnp.float32(3)` is an array of rank zero. They are not classes
of scalars, since JAX has none: a scalar is an array without axes.

In JAX: `numpy/scalar_types.py`.
"""

from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.shapes.creation import asarray
from minijax.support import element_types


class _ScalarType(type):
    """The class of `jnp.float32` itself."""

    dtype: np.dtype

    @property
    def __numpy_dtype__(self) -> np.dtype:
        return self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype.type)

    def __eq__(self, other: Any) -> bool:
        return self is other or self.dtype.type == other

    def __call__(self, x: Any) -> Array:
        return asarray(x, dtype=self.dtype)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self.dtype.type)


def _scalar_type(numpy_type: type) -> _ScalarType:
    name = np.dtype(numpy_type).name
    attributes = {
        "dtype": np.dtype(numpy_type),
        "__module__": "minijax.numpy",
        "__doc__": f"The dtype {name}; called with a value, an array of that dtype.",
    }
    return _ScalarType(name, (object,), attributes)


bool_ = _scalar_type(np.bool_)
if element_types.int1 is not None and element_types.uint1 is not None:
    int1 = _scalar_type(element_types.int1)
    uint1 = _scalar_type(element_types.uint1)
int2 = _scalar_type(element_types.int2)
int4 = _scalar_type(element_types.int4)
int8 = _scalar_type(np.int8)
int16 = _scalar_type(np.int16)
int32 = _scalar_type(np.int32)
int64 = int_ = _scalar_type(np.int64)
uint2 = _scalar_type(element_types.uint2)
uint4 = _scalar_type(element_types.uint4)
uint8 = _scalar_type(np.uint8)
uint16 = _scalar_type(np.uint16)
uint32 = _scalar_type(np.uint32)
uint64 = uint = _scalar_type(np.uint64)
float4_e2m1fn = _scalar_type(element_types.float4_e2m1fn)
float6_e2m3fn = _scalar_type(element_types.float6_e2m3fn)
float6_e3m2fn = _scalar_type(element_types.float6_e3m2fn)
float8_e3m4 = _scalar_type(element_types.float8_e3m4)
float8_e4m3 = _scalar_type(element_types.float8_e4m3)
float8_e4m3b11fnuz = _scalar_type(element_types.float8_e4m3b11fnuz)
float8_e4m3fn = _scalar_type(element_types.float8_e4m3fn)
float8_e4m3fnuz = _scalar_type(element_types.float8_e4m3fnuz)
float8_e5m2 = _scalar_type(element_types.float8_e5m2)
float8_e5m2fnuz = _scalar_type(element_types.float8_e5m2fnuz)
float8_e8m0fnu = _scalar_type(element_types.float8_e8m0fnu)
bfloat16 = _scalar_type(dtypes.bfloat16)
float16 = _scalar_type(np.float16)
float32 = single = _scalar_type(np.float32)
float64 = double = float_ = _scalar_type(np.float64)
complex64 = csingle = _scalar_type(np.complex64)
complex128 = cdouble = complex_ = _scalar_type(np.complex128)
