"""`minijax.numpy`: NumPy's functions on traced, compiled, differentiated arrays.

Names, signatures, dtypes and jit boundaries are those of `jax.numpy`. Each file of
this room holds one group of functions; this one lists them, and importing it gives
`Array` and `Tracer` their operators and methods.
"""

# isort: skip_file
from numpy import array_repr as array_repr
from numpy import array_str as array_str
from numpy import character as character
from numpy import complexfloating as complexfloating
from numpy import dtype as dtype
from numpy import e as e
from numpy import euler_gamma as euler_gamma
from numpy import flexible as flexible
from numpy import floating as floating
from numpy import generic as generic
from numpy import inexact as inexact
from numpy import inf as inf
from numpy import integer as integer
from numpy import iterable as iterable
from numpy import nan as nan
from numpy import newaxis as newaxis
from numpy import number as number
from numpy import object_ as object_
from numpy import pi as pi
from numpy import save as save
from numpy import savez as savez
from numpy import signedinteger as signedinteger
from numpy import unsignedinteger as unsignedinteger
from numpy.exceptions import ComplexWarning as ComplexWarning

from minijax.array import Array as ndarray
from minijax.dtypes import can_cast as can_cast
from minijax.dtypes import finfo as finfo
from minijax.dtypes import iinfo as iinfo
from minijax.dtypes import isdtype as isdtype
from minijax.dtypes import promote_types as promote_types

# Elementwise, reductions, creation.
from minijax.numpy.creation import (
    arange as arange,
    array as array,
    asarray as asarray,
    astype as astype,
    copy as copy,
    empty as empty,
    empty_like as empty_like,
    frombuffer as frombuffer,
    full as full,
    full_like as full_like,
    ones as ones,
    ones_like as ones_like,
    zeros as zeros,
    zeros_like as zeros_like,
)
from minijax.numpy.diagonals import (
    diag as diag,
    diagflat as diagflat,
    diagonal as diagonal,
    eye as eye,
    fill_diagonal as fill_diagonal,
    identity as identity,
    indices as indices,
    meshgrid as meshgrid,
    tri as tri,
    tril as tril,
    triu as triu,
    vander as vander,
)
from minijax.numpy.inspection import (
    iscomplexobj as iscomplexobj,
    isrealobj as isrealobj,
    isscalar as isscalar,
    issubdtype as issubdtype,
    ndim as ndim,
    result_type as result_type,
    printoptions as printoptions,
    set_printoptions as set_printoptions,
    get_printoptions as get_printoptions,
    shape as shape,
    size as size,
)
from minijax.numpy.log_sums import (
    logaddexp as logaddexp,
    logaddexp2 as logaddexp2,
)
from minijax.numpy.moments import (
    average as average,
    mean as mean,
    std as std,
    var as var,
)
from minijax.numpy.nan_reductions import (
    nanargmax as nanargmax,
    nanargmin as nanargmin,
    nancumprod as nancumprod,
    nancumsum as nancumsum,
    nanmax as nanmax,
    nanmean as nanmean,
    nanmin as nanmin,
    nanprod as nanprod,
    nanstd as nanstd,
    nansum as nansum,
    nanvar as nanvar,
)
from minijax.numpy.quantiles import (
    median as median,
    nanmedian as nanmedian,
    nanpercentile as nanpercentile,
    nanquantile as nanquantile,
    percentile as percentile,
    quantile as quantile,
)
from minijax.numpy.reductions import (
    all as all,
    amax as amax,
    amin as amin,
    any as any,
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
    max as max,
    min as min,
    prod as prod,
    ptp as ptp,
    sum as sum,
)
from minijax.numpy.running import (
    cumprod as cumprod,
    cumsum as cumsum,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
)
from minijax.numpy.scalar_types import (
    bfloat16 as bfloat16,
    bool_ as bool_,
    cdouble as cdouble,
    complex128 as complex128,
    complex64 as complex64,
    complex_ as complex_,
    csingle as csingle,
    double as double,
    float16 as float16,
    float32 as float32,
    float4_e2m1fn as float4_e2m1fn,
    float64 as float64,
    float6_e2m3fn as float6_e2m3fn,
    float6_e3m2fn as float6_e3m2fn,
    float8_e3m4 as float8_e3m4,
    float8_e4m3 as float8_e4m3,
    float8_e4m3b11fnuz as float8_e4m3b11fnuz,
    float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz,
    float8_e5m2 as float8_e5m2,
    float8_e5m2fnuz as float8_e5m2fnuz,
    float8_e8m0fnu as float8_e8m0fnu,
    float_ as float_,
    int16 as int16,
    int2 as int2,
    int32 as int32,
    int4 as int4,
    int64 as int64,
    int8 as int8,
    int_ as int_,
    single as single,
    uint as uint,
    uint16 as uint16,
    uint2 as uint2,
    uint32 as uint32,
    uint4 as uint4,
    uint64 as uint64,
    uint8 as uint8,
)
from minijax.numpy.scalar_types import bool_ as bool
from minijax.numpy.sequences import (
    fromfunction as fromfunction,
    geomspace as geomspace,
    linspace as linspace,
    logspace as logspace,
)
from minijax.numpy.ufunc_api import (
    frompyfunc as frompyfunc,
    ufunc as ufunc,
)
from minijax.numpy.ufuncs import (
    abs as abs,
    absolute as absolute,
    add as add,
    bitwise_and as bitwise_and,
    bitwise_count as bitwise_count,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    divide as divide,
    divmod as divmod,
    equal as equal,
    fabs as fabs,
    float_power as float_power,
    floor_divide as floor_divide,
    fmax as fmax,
    fmin as fmin,
    fmod as fmod,
    greater as greater,
    greater_equal as greater_equal,
    invert as invert,
    left_shift as left_shift,
    less as less,
    less_equal as less_equal,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    mod as mod,
    multiply as multiply,
    negative as negative,
    not_equal as not_equal,
    positive as positive,
    pow as pow,
    power as power,
    remainder as remainder,
    right_shift as right_shift,
    sign as sign,
    subtract as subtract,
    true_divide as true_divide,
)
from minijax.numpy.ufuncs_floats import (
    around as around,
    ceil as ceil,
    copysign as copysign,
    floor as floor,
    frexp as frexp,
    gcd as gcd,
    heaviside as heaviside,
    isclose as isclose,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    isneginf as isneginf,
    isposinf as isposinf,
    lcm as lcm,
    ldexp as ldexp,
    modf as modf,
    nan_to_num as nan_to_num,
    nextafter as nextafter,
    rint as rint,
    round as round,
    signbit as signbit,
    spacing as spacing,
    trunc as trunc,
)
from minijax.numpy.ufuncs_more import (
    acos as acos,
    acosh as acosh,
    angle as angle,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cbrt as cbrt,
    conj as conj,
    conjugate as conjugate,
    cos as cos,
    cosh as cosh,
    deg2rad as deg2rad,
    degrees as degrees,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    hypot as hypot,
    i0 as i0,
    imag as imag,
    iscomplex as iscomplex,
    isreal as isreal,
    log as log,
    log10 as log10,
    log1p as log1p,
    log2 as log2,
    rad2deg as rad2deg,
    radians as radians,
    real as real,
    reciprocal as reciprocal,
    sin as sin,
    sinc as sinc,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    tan as tan,
    tanh as tanh,
)

# Shapes, indexing, contractions, sorting, selection.
from minijax.numpy.broadcasting import (
    broadcast_arrays as broadcast_arrays,
    broadcast_shapes as broadcast_shapes,
    broadcast_to as broadcast_to,
)
from minijax.numpy.comparing import (
    allclose as allclose,
    array_equal as array_equal,
    array_equiv as array_equiv,
)
from minijax.numpy.contractions import (
    cross as cross,
    dot as dot,
    inner as inner,
    kron as kron,
    matmul as matmul,
    matvec as matvec,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
    vdot as vdot,
    vecdot as vecdot,
    vecmat as vecmat,
)
from minijax.numpy.counting import (
    argwhere as argwhere,
    bincount as bincount,
    diag_indices as diag_indices,
    diag_indices_from as diag_indices_from,
    flatnonzero as flatnonzero,
    histogram as histogram,
    histogram2d as histogram2d,
    histogram_bin_edges as histogram_bin_edges,
    histogramdd as histogramdd,
    mask_indices as mask_indices,
    nonzero as nonzero,
    ravel_multi_index as ravel_multi_index,
    tril_indices as tril_indices,
    tril_indices_from as tril_indices_from,
    triu_indices as triu_indices,
    triu_indices_from as triu_indices_from,
    unravel_index as unravel_index,
)
from minijax.numpy.differences import (
    diff as diff,
    ediff1d as ediff1d,
    gradient as gradient,
    trapezoid as trapezoid,
    unwrap as unwrap,
)
from minijax.numpy.distinct import (
    unique as unique,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from minijax.numpy.einstein import (
    einsum as einsum,
    einsum_path as einsum_path,
)
from minijax.numpy.joining import (
    append as append,
    array_split as array_split,
    block as block,
    column_stack as column_stack,
    concat as concat,
    concatenate as concatenate,
    delete as delete,
    dsplit as dsplit,
    dstack as dstack,
    hsplit as hsplit,
    hstack as hstack,
    insert as insert,
    repeat as repeat,
    split as split,
    stack as stack,
    tile as tile,
    unstack as unstack,
    vsplit as vsplit,
    vstack as vstack,
)
from minijax.numpy.padding import (
    apply_along_axis as apply_along_axis,
    apply_over_axes as apply_over_axes,
    pad as pad,
)
from minijax.numpy.selection import (
    choose as choose,
    clip as clip,
    compress as compress,
    extract as extract,
    piecewise as piecewise,
    select as select,
    where as where,
)
from minijax.numpy.series import (
    convolve as convolve,
    corrcoef as corrcoef,
    correlate as correlate,
    cov as cov,
    interp as interp,
    polyval as polyval,
)
from minijax.numpy.sets import (
    intersect1d as intersect1d,
    isin as isin,
    setdiff1d as setdiff1d,
    setxor1d as setxor1d,
    union1d as union1d,
)
from minijax.numpy.shaping import (
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    expand_dims as expand_dims,
    flip as flip,
    fliplr as fliplr,
    flipud as flipud,
    ix_ as ix_,
    matrix_transpose as matrix_transpose,
    moveaxis as moveaxis,
    permute_dims as permute_dims,
    ravel as ravel,
    reshape as reshape,
    resize as resize,
    roll as roll,
    rollaxis as rollaxis,
    rot90 as rot90,
    squeeze as squeeze,
    swapaxes as swapaxes,
    transpose as transpose,
)
from minijax.numpy.sorting import (
    argpartition as argpartition,
    argsort as argsort,
    digitize as digitize,
    lexsort as lexsort,
    partition as partition,
    searchsorted as searchsorted,
    sort as sort,
    sort_complex as sort_complex,
)
from minijax.numpy.taking import (
    place as place,
    put as put,
    put_along_axis as put_along_axis,
    take as take,
    take_along_axis as take_along_axis,
)
from minijax.numpy.vectorizing import (
    vectorize as vectorize,
)

# More of creation, signals and polynomials.
from minijax.numpy.bit_packing import (
    packbits as packbits,
    unpackbits as unpackbits,
)
from minijax.numpy.index_tricks import (
    c_ as c_,
    index_exp as index_exp,
    mgrid as mgrid,
    ogrid as ogrid,
    r_ as r_,
    s_ as s_,
)
from minijax.numpy.interchange import (
    from_dlpack as from_dlpack,
    fromfile as fromfile,
    fromiter as fromiter,
    fromstring as fromstring,
    load as load,
)
from minijax.numpy.polynomials import (
    poly as poly,
    polyadd as polyadd,
    polyder as polyder,
    polydiv as polydiv,
    polyint as polyint,
    polymul as polymul,
    polysub as polysub,
    trim_zeros as trim_zeros,
)
from minijax.numpy.windows import (
    bartlett as bartlett,
    blackman as blackman,
    hamming as hamming,
    hanning as hanning,
    kaiser as kaiser,
)

from minijax.numpy import linalg as linalg
from minijax.numpy import array_methods as _array_methods
from minijax.numpy import scalar_types as _scalar_types

if hasattr(_scalar_types, "int1"):  # newer versions of ml_dtypes have it
    int1 = _scalar_types.int1
    uint1 = _scalar_types.uint1

_array_methods.install()
