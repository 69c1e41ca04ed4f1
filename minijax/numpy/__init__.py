"""`minijax.numpy`: NumPy's functions on traced, compiled, differentiated arrays.

Names, signatures, dtypes and jit boundaries are those of `jax.numpy`. Each file of
this room holds one group of functions; this one lists them, and importing it gives
`Array` and `Tracer` their operators and methods.
"""

# isort: skip_file
# fmt: off
from numpy import (
    array_repr, array_str, character, complexfloating, dtype, e, euler_gamma,
    flexible, floating, generic, inexact, inf, integer, iterable, nan, newaxis,
    number, object_, pi, save, savez, signedinteger, unsignedinteger,
)
from numpy.exceptions import ComplexWarning

from minijax.core.array import Array as ndarray
from minijax.core.dtypes import finfo, iinfo
from minijax.support.element_types import can_cast, isdtype, promote_types
from minijax.support.late_names import late_names as _late_names
from minijax.numpy.shapes.broadcasting import (
    broadcast_arrays, broadcast_shapes, broadcast_to,
)
from minijax.numpy.math.comparing import allclose, array_equal, array_equiv
from minijax.numpy.products.contractions import (
    cross, dot, inner, kron, matmul, matvec, outer, tensordot, trace, vdot, vecdot,
    vecmat,
)
from minijax.numpy.reduce.counting import (
    argwhere, bincount, diag_indices, diag_indices_from, flatnonzero, histogram,
    histogram2d, histogram_bin_edges, histogramdd, mask_indices, nonzero,
    ravel_multi_index, tril_indices, tril_indices_from, triu_indices,
    triu_indices_from, unravel_index,
)
from minijax.numpy.shapes.creation import (
    arange, array, asarray, astype, copy, empty, empty_like, frombuffer, full,
    full_like, ones, ones_like, zeros, zeros_like,
)
from minijax.numpy.shapes.diagonals import (
    diag, diagflat, diagonal, eye, fill_diagonal, identity, indices, meshgrid, tri,
    tril, triu, vander,
)
from minijax.numpy.math.differences import diff, ediff1d, gradient, trapezoid, unwrap
from minijax.numpy.math.clipping import clip
from minijax.numpy.products.einstein import einsum, einsum_path
from minijax.numpy.index.index_tricks import c_, index_exp, mgrid, ogrid, r_, s_
from minijax.numpy.inspection import (
    get_printoptions, iscomplexobj, isrealobj, isscalar, issubdtype, ndim,
    printoptions, result_type, set_printoptions, shape, size,
)
from minijax.numpy.interchange import from_dlpack, fromfile, fromiter, fromstring, load
from minijax.numpy.shapes.joining import (
    append, array_split, block, column_stack, concat, concatenate, dsplit, dstack,
    hsplit, hstack, split, stack, tile, unstack, vsplit, vstack,
)
from minijax.numpy.shapes.repeating import delete, insert, repeat
from minijax.numpy.reduce.log_sums import logaddexp, logaddexp2
from minijax.numpy.reduce.moments import average, mean, std, var
from minijax.numpy.shapes.padding import apply_along_axis, apply_over_axes, pad
from minijax.numpy.reduce.reductions import (
    all, amax, amin, any, argmax, argmin, count_nonzero, max, min, prod, ptp, sum,
)
from minijax.numpy.reduce.running import (
    cumprod, cumsum, cumulative_prod, cumulative_sum,
)
from minijax.numpy.scalar_types import (
    bfloat16, bool_, bool_ as bool, cdouble, complex128, complex64, complex_, csingle,
    double, float16, float32, float4_e2m1fn, float64, float6_e2m3fn, float6_e3m2fn,
    float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz,
    float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, float_, int16, int2, int32, int4,
    int64, int8, int_, single, uint, uint16, uint2, uint32, uint4, uint64, uint8,
)
from minijax.numpy.index.selection import (
    choose, compress, extract, piecewise, select, where,
)
from minijax.numpy.shapes.sequences import fromfunction, geomspace, linspace, logspace
from minijax.numpy.shapes.shaping import (
    atleast_1d, atleast_2d, atleast_3d, expand_dims, flip, fliplr, flipud, ix_,
    matrix_transpose, moveaxis, permute_dims, ravel, reshape, resize, roll,
    rollaxis, rot90, squeeze, swapaxes, transpose,
)
from minijax.numpy.shapes.sorting import (
    argpartition, argsort, digitize, lexsort, partition, searchsorted, sort,
    sort_complex,
)
from minijax.numpy.index.taking import place, put, put_along_axis, take, take_along_axis
from minijax.numpy.math.ufunc_api import ufunc
from minijax.numpy.shapes.vectorizing import frompyfunc
from minijax.numpy.math.ufuncs import (
    abs, absolute, add, bitwise_and, bitwise_count, bitwise_invert, bitwise_left_shift,
    bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, divide, divmod, equal,
    fabs, float_power, floor_divide, fmax, fmin, fmod, greater, greater_equal, invert,
    left_shift, less, less_equal, logical_and, logical_not, logical_or, logical_xor,
    maximum, minimum, mod, multiply, negative, not_equal, positive, pow, power,
    remainder, right_shift, sign, subtract, true_divide,
)
from minijax.numpy.math.float_functions import (
    around, ceil, copysign, floor, frexp, gcd, heaviside, isclose, isfinite, isinf,
    isnan, isneginf, isposinf, lcm, ldexp, modf, nan_to_num, nextafter, rint, round,
    signbit, spacing, trunc,
)
from minijax.numpy.math.elementary_functions import (
    acos, acosh, angle, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh,
    asin, asinh, atan, atan2, atanh, cbrt, conj, conjugate, cos, cosh, deg2rad, degrees,
    exp, exp2, expm1, hypot, i0, imag, iscomplex, isreal, log, log10, log1p, log2,
    rad2deg, radians, real, reciprocal, sin, sinc, sinh, sqrt, square, tan, tanh,
)
from minijax.numpy.shapes.vectorizing import vectorize

from minijax.numpy import scalar_types as _scalar_types
# fmt: on

if hasattr(_scalar_types, "int1"):  # newer versions of ml_dtypes have it
    int1 = _scalar_types.int1
    uint1 = _scalar_types.uint1

__array_api_version__ = "2024.12"

# Imported on first use: few programs need them.
__getattr__, __dir__, __all__ = _late_names(
    globals(),
    "fft linalg",
    {
        ".rare.array_api": "__array_namespace_info__",
        ".rare.bit_packing": "packbits unpackbits",
        ".rare.distinct": (
            "unique unique_all unique_counts unique_inverse unique_values"
        ),
        ".rare.fitting": "polyfit roots",
        ".rare.polynomials": (
            "poly polyadd polyder polydiv polyint polymul polysub trim_zeros"
        ),
        ".rare.series": "convolve corrcoef correlate cov interp polyval",
        ".rare.sets": "intersect1d isin setdiff1d setxor1d union1d",
        ".rare.windows": "bartlett blackman hamming hanning kaiser",
        ".reduce.nan_reductions": (
            "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod "
            "nanstd nansum nanvar"
        ),
        ".reduce.quantiles": (
            "median nanmedian nanpercentile nanquantile percentile quantile"
        ),
    },
)
