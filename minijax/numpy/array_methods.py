"""The table of methods and properties of `Array` and `Tracer`.

The core defines the two classes; this file has `x + y`, `x.sum()`, `x.T` and
`x.at[...]`, and `assembly.py` gives them to the classes. Methods are functions of this
room under NumPy's method signatures.

In JAX: `numpy/array_methods.py`.
"""

import functools
import importlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile import array_transfers
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import index_tuple
from minijax.numpy.index import index_update, selection, taking
from minijax.numpy.math import clipping, elementary_functions, float_functions
from minijax.numpy.math.operators import ARRAY_OPERATORS, OPERATORS, TRACER_OPERATORS
from minijax.numpy.products import contractions
from minijax.numpy.reduce import counting, moments, reductions, running
from minijax.numpy.reduce.reduction_options import OF_VARIANCE, Options, takes
from minijax.numpy.shapes import creation, diagonals, repeating, shaping, sorting
from minijax.support import element_types

# --------------------------------------------------------------------------
# Methods whose signature differs from the function's


def _reshape(self: Any, *args: Any, order: str = "C", out_sharding: Any = None) -> Any:
    shape = args[0] if len(args) == 1 else args
    return shaping.reshape(self, shape, order=order, out_sharding=out_sharding)


def _flatten(self: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    return shaping.ravel(self, order=order, out_sharding=out_sharding)


def _transpose(self: Any, *args: Any) -> Any:
    if not args or args == (None,):
        return shaping.transpose(self)
    return shaping.transpose(self, index_tuple(args[0] if len(args) == 1 else args))


def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    return creation.astype(self, dtype, copy=copy, device=device)


def _clip(self: Any, min: Any = None, max: Any = None) -> Any:
    return clipping.clip(self, min=min, max=max)


def _compress(self, condition, axis=None, *, out=None, size=None, fill_value=0) -> Any:
    return selection.compress(
        condition, self, axis=axis, out=out, size=size, fill_value=fill_value
    )


# As the functions, without a known mean.
_OF_METHOD = OF_VARIANCE.replace(" mean", "")


@takes(_OF_METHOD, "self")
def _std(self: Any, options: Options) -> Any:
    return moments.std(self, **options.only(_OF_METHOD))


@takes(_OF_METHOD, "self")
def _var(self: Any, options: Options) -> Any:
    return moments.var(self, **options.only(_OF_METHOD))


def _dot(self, b, *, precision=None, preferred_element_type=None) -> Any:
    return contractions.dot(
        self, b, precision=precision, preferred_element_type=preferred_element_type
    )


def _trace(self: Any, offset=0, axis1=0, axis2=1, dtype=None, out=None) -> Any:
    # All of them are handed on: `offset` is then an argument of the compiled function.
    return contractions.trace(self, offset, axis1, axis2, dtype, out)


def _to_device(self: Any, device: Any, *, stream: Any = None) -> Any:
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device(): leave it out")
    return array_transfers.device_put(self, device)


def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The same bits under another dtype; the last axis grows or shrinks."""
    if type is not None:
        raise NotImplementedError("`type` argument of array.view(): leave it out.")
    if dtype is None:
        return self
    dtype = element_types.check_and_canonicalize_user_dtype(dtype, "view")
    if self.dtype == dtype:
        return self
    bits_in = element_types.itemsize_bits(self.dtype)
    bits_out = element_types.itemsize_bits(dtype)
    if self.ndim == 0:
        if bits_in != bits_out:
            raise ValueError(
                "view() of a 0d array is only supported if the itemsize is unchanged."
            )
        return lax.squeeze(_view(lax.expand_dims(self, (0,)), dtype), (0,))
    if (self.shape[-1] * bits_in) % bits_out != 0:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total "
            "size in bytes of the last axis of the array."
        )
    if self.dtype == np.bool_:
        return _view(self.astype(np.uint8), dtype)
    if dtype == np.bool_:
        return _view(self, np.uint8).astype(bool)
    if dtypes.issubdtype(self.dtype, np.complexfloating):
        parts = (lax.real, lax.imag)
        columns = [lax.expand_dims(part(self), (self.ndim,)) for part in parts]
        pairs = lax.concatenate(columns, self.ndim)
        return _view(lax.reshape(pairs, (*self.shape[:-1], self.shape[-1] * 2)), dtype)
    if dtypes.issubdtype(dtype, np.complexfloating):
        halves = _view(self, dtypes.finfo(dtype).dtype)
        return lax.complex(halves[..., 0::2], halves[..., 1::2])
    if bits_in < bits_out:
        factor = bits_out // bits_in
        shape = (*self.shape[:-1], self.shape[-1] // factor, factor)
        return lax.bitcast_convert_type(lax.reshape(self, shape), dtype)
    result = lax.bitcast_convert_type(self, dtype)
    if bits_in > bits_out:
        shape = (*result.shape[:-2], result.shape[-2] * result.shape[-1])
        result = lax.reshape(result, shape)
    return result


def _byteswap(self: Any) -> Any:
    """The same array with the bytes of each element in the other order."""
    if dtypes.issubdtype(self.dtype, np.complexfloating):
        return lax.complex(_byteswap(lax.real(self)), _byteswap(lax.imag(self)))
    if self.dtype.itemsize == 1:
        return creation.copy(self)
    as_bytes = lax.bitcast_convert_type(self, np.dtype(np.uint8))
    return lax.bitcast_convert_type(lax.rev(as_bytes, (self.ndim,)), self.dtype)


def _array_namespace(self: Any, /, *, api_version: str | None = None) -> Any:
    """The module whose functions work on this array: `minijax.numpy`."""
    namespace = importlib.import_module("minijax.numpy")
    known = namespace.__array_api_version__
    if api_version not in (None, known):
        raise ValueError(f"{api_version=} is not available, only {known!r} is.")
    return namespace


def _flat(self: Any) -> Any:
    raise NotImplementedError(
        "JAX Arrays do not implement the arr.flat property: consider arr.flatten() "
        "instead."
    )


# --------------------------------------------------------------------------
# The table

# Functions that serve as methods as they are, by the file that they stand in.
_FUNCTIONS: dict[types.ModuleType, str] = {
    counting: "nonzero",
    creation: "copy",
    diagonals: "diagonal",
    moments: "mean",
    reductions: "all any argmax argmin max min prod ptp sum",
    repeating: "repeat",
    running: "cumprod cumsum",
    selection: "choose",
    shaping: "squeeze swapaxes",
    sorting: "argpartition argsort searchsorted sort",
    taking: "take",
    float_functions: "round",
    elementary_functions: "conj conjugate",
}

METHODS: dict[str, Callable[..., Any]] = {
    name: getattr(file, name)
    for file, names in _FUNCTIONS.items()
    for name in names.split()
} | {
    "__array_namespace__": _array_namespace,
    "astype": _astype,
    "byteswap": _byteswap,
    "clip": _clip,
    "compress": _compress,
    "dot": _dot,
    "flatten": _flatten,
    "ravel": _flatten,
    "reshape": _reshape,
    "std": _std,
    "to_device": _to_device,
    "trace": _trace,
    "transpose": _transpose,
    "var": _var,
    "view": _view,
}

PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "T": shaping.transpose,
    "mT": shaping.matrix_transpose,
    "real": elementary_functions.real,
    "imag": elementary_functions.imag,
    "flat": _flat,
    "nbytes": lambda self: self.size * self.dtype.itemsize,
    "itemsize": lambda self: self.dtype.itemsize,
    "at": index_update.IndexUpdateHelper,
}


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function, which Python binds to the array: jitted ones are objects."""
    if isinstance(function, types.FunctionType):
        return function

    @functools.wraps(function)
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        return function(self, *args, **keywords)

    return method


def methods_of(cls: type) -> dict[str, Any]:
    """Operators, methods and properties for `Array` or `Tracer`.

    What the class has already (what reads values, on `Array`) is left alone.
    """
    own = ARRAY_OPERATORS if cls is Array else TRACER_OPERATORS
    methods = {name: _method(method) for name, method in METHODS.items()}
    properties = {name: property(getter) for name, getter in PROPERTIES.items()}
    free = {n: m for n, m in (methods | properties).items() if n not in vars(cls)}
    return free | OPERATORS | own
