"""`minijax.lax`: the operations as XLA has them, without NumPy's conveniences.

Operands must agree in dtype, and nothing is broadcast but scalars and sizes of 1. Each
name is defined beside its primitive, on floor 3; this room only re-exports.

In JAX: `jax.lax`.
"""

from minijax.control_flow.general_reduction import (
    reduce as reduce,
)
from minijax.control_flow.general_reduction import (
    reduce_p as reduce_p,
)
from minijax.lax.at_index import (
    dynamic_index_in_dim as dynamic_index_in_dim,
)
from minijax.lax.at_index import (
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
)
from minijax.primitives.accuracy import (
    AccuracyMode as AccuracyMode,
)
from minijax.primitives.accuracy import (
    Tolerance as Tolerance,
)
from minijax.primitives.broadcasting import (
    broadcast as broadcast,
)
from minijax.primitives.broadcasting import (
    broadcast_in_dim as broadcast_in_dim,
)
from minijax.primitives.broadcasting import (
    broadcast_in_dim_p as broadcast_in_dim_p,
)
from minijax.primitives.broadcasting import (
    broadcast_like as broadcast_like,
)
from minijax.primitives.broadcasting import (
    broadcast_shapes as broadcast_shapes,
)
from minijax.primitives.broadcasting import (
    broadcast_to_rank as broadcast_to_rank,
)
from minijax.primitives.broadcasting import (
    broadcasted_iota as broadcasted_iota,
)
from minijax.primitives.broadcasting import (
    empty as empty,
)
from minijax.primitives.broadcasting import (
    expand_dims as expand_dims,
)
from minijax.primitives.broadcasting import (
    full as full,
)
from minijax.primitives.broadcasting import (
    full_like as full_like,
)
from minijax.primitives.broadcasting import (
    iota as iota,
)
from minijax.primitives.broadcasting import (
    iota_p as iota_p,
)
from minijax.primitives.casting import (
    bitcast_convert_type as bitcast_convert_type,
)
from minijax.primitives.casting import (
    bitcast_convert_type_p as bitcast_convert_type_p,
)
from minijax.primitives.casting import (
    convert_element_type as convert_element_type,
)
from minijax.primitives.casting import (
    convert_element_type_p as convert_element_type_p,
)
from minijax.primitives.casting import (
    reduce_precision as reduce_precision,
)
from minijax.primitives.casting import (
    reduce_precision_p as reduce_precision_p,
)
from minijax.primitives.casting import (
    stage as stage,
)
from minijax.primitives.casting import (
    stage_p as stage_p,
)
from minijax.primitives.collectives import (
    all_gather as all_gather,
)
from minijax.primitives.collectives import (
    all_gather_p as all_gather_p,
)
from minijax.primitives.collectives import (
    all_to_all as all_to_all,
)
from minijax.primitives.collectives import (
    all_to_all_p as all_to_all_p,
)
from minijax.primitives.collectives import (
    axis_index as axis_index,
)
from minijax.primitives.collectives import (
    axis_index_p as axis_index_p,
)
from minijax.primitives.collectives import (
    axis_size as axis_size,
)
from minijax.primitives.collectives import (
    pmax as pmax,
)
from minijax.primitives.collectives import (
    pmax_p as pmax_p,
)
from minijax.primitives.collectives import (
    pmean as pmean,
)
from minijax.primitives.collectives import (
    pmin as pmin,
)
from minijax.primitives.collectives import (
    pmin_p as pmin_p,
)
from minijax.primitives.collectives import (
    ppermute as ppermute,
)
from minijax.primitives.collectives import (
    ppermute_p as ppermute_p,
)
from minijax.primitives.collectives import (
    pshuffle as pshuffle,
)
from minijax.primitives.collectives import (
    psum as psum,
)
from minijax.primitives.collectives import (
    psum_p as psum_p,
)
from minijax.primitives.collectives import (
    psum_scatter as psum_scatter,
)
from minijax.primitives.collectives import (
    pswapaxes as pswapaxes,
)
from minijax.primitives.comparing import (
    and_p as and_p,
)
from minijax.primitives.comparing import (
    bitwise_and as bitwise_and,
)
from minijax.primitives.comparing import (
    bitwise_not as bitwise_not,
)
from minijax.primitives.comparing import (
    bitwise_or as bitwise_or,
)
from minijax.primitives.comparing import (
    bitwise_xor as bitwise_xor,
)
from minijax.primitives.comparing import (
    clz as clz,
)
from minijax.primitives.comparing import (
    clz_p as clz_p,
)
from minijax.primitives.comparing import (
    eq as eq,
)
from minijax.primitives.comparing import (
    eq_p as eq_p,
)
from minijax.primitives.comparing import (
    eq_to_p as eq_to_p,
)
from minijax.primitives.comparing import (
    ge as ge,
)
from minijax.primitives.comparing import (
    ge_p as ge_p,
)
from minijax.primitives.comparing import (
    gt as gt,
)
from minijax.primitives.comparing import (
    gt_p as gt_p,
)
from minijax.primitives.comparing import (
    le as le,
)
from minijax.primitives.comparing import (
    le_p as le_p,
)
from minijax.primitives.comparing import (
    le_to_p as le_to_p,
)
from minijax.primitives.comparing import (
    lt as lt,
)
from minijax.primitives.comparing import (
    lt_p as lt_p,
)
from minijax.primitives.comparing import (
    lt_to_p as lt_to_p,
)
from minijax.primitives.comparing import (
    mulhi as mulhi,
)
from minijax.primitives.comparing import (
    mulhi_p as mulhi_p,
)
from minijax.primitives.comparing import (
    ne as ne,
)
from minijax.primitives.comparing import (
    ne_p as ne_p,
)
from minijax.primitives.comparing import (
    not_p as not_p,
)
from minijax.primitives.comparing import (
    or_p as or_p,
)
from minijax.primitives.comparing import (
    population_count as population_count,
)
from minijax.primitives.comparing import (
    population_count_p as population_count_p,
)
from minijax.primitives.comparing import (
    shift_left as shift_left,
)
from minijax.primitives.comparing import (
    shift_left_p as shift_left_p,
)
from minijax.primitives.comparing import (
    shift_right_arithmetic as shift_right_arithmetic,
)
from minijax.primitives.comparing import (
    shift_right_arithmetic_p as shift_right_arithmetic_p,
)
from minijax.primitives.comparing import (
    shift_right_logical as shift_right_logical,
)
from minijax.primitives.comparing import (
    shift_right_logical_p as shift_right_logical_p,
)
from minijax.primitives.comparing import (
    xor_p as xor_p,
)
from minijax.primitives.complex_numbers import (
    complex as complex,
)
from minijax.primitives.complex_numbers import (
    complex_p as complex_p,
)
from minijax.primitives.complex_numbers import (
    conj as conj,
)
from minijax.primitives.complex_numbers import (
    conj_p as conj_p,
)
from minijax.primitives.complex_numbers import (
    imag as imag,
)
from minijax.primitives.complex_numbers import (
    imag_p as imag_p,
)
from minijax.primitives.complex_numbers import (
    real as real,
)
from minijax.primitives.complex_numbers import (
    real_p as real_p,
)
from minijax.primitives.cumulative import (
    cumlogsumexp as cumlogsumexp,
)
from minijax.primitives.cumulative import (
    cumlogsumexp_p as cumlogsumexp_p,
)
from minijax.primitives.cumulative import (
    cummax as cummax,
)
from minijax.primitives.cumulative import (
    cummax_p as cummax_p,
)
from minijax.primitives.cumulative import (
    cummin as cummin,
)
from minijax.primitives.cumulative import (
    cummin_p as cummin_p,
)
from minijax.primitives.cumulative import (
    cumprod as cumprod,
)
from minijax.primitives.cumulative import (
    cumprod_p as cumprod_p,
)
from minijax.primitives.cumulative import (
    cumsum as cumsum,
)
from minijax.primitives.cumulative import (
    cumsum_p as cumsum_p,
)
from minijax.primitives.dot import (
    DotDimensionNumbers as DotDimensionNumbers,
)
from minijax.primitives.dot import (
    batch_matmul as batch_matmul,
)
from minijax.primitives.dot import (
    dot as dot,
)
from minijax.primitives.dot import (
    dot_general as dot_general,
)
from minijax.primitives.dot import (
    dot_general_p as dot_general_p,
)
from minijax.primitives.dynamic_slicing import (
    dynamic_slice as dynamic_slice,
)
from minijax.primitives.dynamic_slicing import (
    dynamic_slice_in_dim as dynamic_slice_in_dim,
)
from minijax.primitives.dynamic_slicing import (
    dynamic_slice_p as dynamic_slice_p,
)
from minijax.primitives.dynamic_slicing import (
    dynamic_update_slice as dynamic_update_slice,
)
from minijax.primitives.dynamic_slicing import (
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
)
from minijax.primitives.dynamic_slicing import (
    dynamic_update_slice_p as dynamic_update_slice_p,
)
from minijax.primitives.elementwise import (
    RoundingMethod as RoundingMethod,
)
from minijax.primitives.elementwise import (
    abs as abs,
)
from minijax.primitives.elementwise import (
    abs_p as abs_p,
)
from minijax.primitives.elementwise import (
    add as add,
)
from minijax.primitives.elementwise import (
    add_p as add_p,
)
from minijax.primitives.elementwise import (
    cbrt as cbrt,
)
from minijax.primitives.elementwise import (
    cbrt_p as cbrt_p,
)
from minijax.primitives.elementwise import (
    ceil as ceil,
)
from minijax.primitives.elementwise import (
    ceil_p as ceil_p,
)
from minijax.primitives.elementwise import (
    cos as cos,
)
from minijax.primitives.elementwise import (
    cos_p as cos_p,
)
from minijax.primitives.elementwise import (
    div as div,
)
from minijax.primitives.elementwise import (
    div_p as div_p,
)
from minijax.primitives.elementwise import (
    exp as exp,
)
from minijax.primitives.elementwise import (
    exp2 as exp2,
)
from minijax.primitives.elementwise import (
    exp2_p as exp2_p,
)
from minijax.primitives.elementwise import (
    exp_p as exp_p,
)
from minijax.primitives.elementwise import (
    expm1 as expm1,
)
from minijax.primitives.elementwise import (
    expm1_p as expm1_p,
)
from minijax.primitives.elementwise import (
    floor as floor,
)
from minijax.primitives.elementwise import (
    floor_p as floor_p,
)
from minijax.primitives.elementwise import (
    integer_pow as integer_pow,
)
from minijax.primitives.elementwise import (
    integer_pow_p as integer_pow_p,
)
from minijax.primitives.elementwise import (
    is_finite as is_finite,
)
from minijax.primitives.elementwise import (
    is_finite_p as is_finite_p,
)
from minijax.primitives.elementwise import (
    log as log,
)
from minijax.primitives.elementwise import (
    log1p as log1p,
)
from minijax.primitives.elementwise import (
    log1p_p as log1p_p,
)
from minijax.primitives.elementwise import (
    log_p as log_p,
)
from minijax.primitives.elementwise import (
    logistic as logistic,
)
from minijax.primitives.elementwise import (
    logistic_p as logistic_p,
)
from minijax.primitives.elementwise import (
    max as max,
)
from minijax.primitives.elementwise import (
    max_p as max_p,
)
from minijax.primitives.elementwise import (
    min as min,
)
from minijax.primitives.elementwise import (
    min_p as min_p,
)
from minijax.primitives.elementwise import (
    mul as mul,
)
from minijax.primitives.elementwise import (
    mul_p as mul_p,
)
from minijax.primitives.elementwise import (
    neg as neg,
)
from minijax.primitives.elementwise import (
    neg_p as neg_p,
)
from minijax.primitives.elementwise import (
    nextafter as nextafter,
)
from minijax.primitives.elementwise import (
    nextafter_p as nextafter_p,
)
from minijax.primitives.elementwise import (
    pow as pow,
)
from minijax.primitives.elementwise import (
    pow_p as pow_p,
)
from minijax.primitives.elementwise import (
    reciprocal as reciprocal,
)
from minijax.primitives.elementwise import (
    rem as rem,
)
from minijax.primitives.elementwise import (
    rem_p as rem_p,
)
from minijax.primitives.elementwise import (
    round as round,
)
from minijax.primitives.elementwise import (
    round_p as round_p,
)
from minijax.primitives.elementwise import (
    rsqrt as rsqrt,
)
from minijax.primitives.elementwise import (
    rsqrt_p as rsqrt_p,
)
from minijax.primitives.elementwise import (
    sign as sign,
)
from minijax.primitives.elementwise import (
    sign_p as sign_p,
)
from minijax.primitives.elementwise import (
    sin as sin,
)
from minijax.primitives.elementwise import (
    sin_p as sin_p,
)
from minijax.primitives.elementwise import (
    sqrt as sqrt,
)
from minijax.primitives.elementwise import (
    sqrt_p as sqrt_p,
)
from minijax.primitives.elementwise import (
    square as square,
)
from minijax.primitives.elementwise import (
    square_p as square_p,
)
from minijax.primitives.elementwise import (
    sub as sub,
)
from minijax.primitives.elementwise import (
    sub_p as sub_p,
)
from minijax.primitives.elementwise import (
    tan as tan,
)
from minijax.primitives.elementwise import (
    tan_p as tan_p,
)
from minijax.primitives.elementwise import (
    tanh as tanh,
)
from minijax.primitives.elementwise import (
    tanh_p as tanh_p,
)
from minijax.primitives.gathering import (
    gather as gather,
)
from minijax.primitives.gathering import (
    gather_p as gather_p,
)
from minijax.primitives.gathering import (
    index_take as index_take,
)
from minijax.primitives.hyperbolic import (
    acos as acos,
)
from minijax.primitives.hyperbolic import (
    acos_p as acos_p,
)
from minijax.primitives.hyperbolic import (
    acosh as acosh,
)
from minijax.primitives.hyperbolic import (
    acosh_p as acosh_p,
)
from minijax.primitives.hyperbolic import (
    asin as asin,
)
from minijax.primitives.hyperbolic import (
    asin_p as asin_p,
)
from minijax.primitives.hyperbolic import (
    asinh as asinh,
)
from minijax.primitives.hyperbolic import (
    asinh_p as asinh_p,
)
from minijax.primitives.hyperbolic import (
    atan as atan,
)
from minijax.primitives.hyperbolic import (
    atan2 as atan2,
)
from minijax.primitives.hyperbolic import (
    atan2_p as atan2_p,
)
from minijax.primitives.hyperbolic import (
    atan_p as atan_p,
)
from minijax.primitives.hyperbolic import (
    atanh as atanh,
)
from minijax.primitives.hyperbolic import (
    atanh_p as atanh_p,
)
from minijax.primitives.hyperbolic import (
    cosh as cosh,
)
from minijax.primitives.hyperbolic import (
    cosh_p as cosh_p,
)
from minijax.primitives.hyperbolic import (
    sinh as sinh,
)
from minijax.primitives.hyperbolic import (
    sinh_p as sinh_p,
)
from minijax.primitives.index_vectors import (
    GatherDimensionNumbers as GatherDimensionNumbers,
)
from minijax.primitives.index_vectors import (
    GatherScatterMode as GatherScatterMode,
)
from minijax.primitives.joining import (
    concatenate as concatenate,
)
from minijax.primitives.joining import (
    concatenate_p as concatenate_p,
)
from minijax.primitives.joining import (
    split as split,
)
from minijax.primitives.joining import (
    split_p as split_p,
)
from minijax.primitives.joining import (
    stack as stack,
)
from minijax.primitives.joining import (
    stack_p as stack_p,
)
from minijax.primitives.joining import (
    unstack as unstack,
)
from minijax.primitives.joining import (
    unstack_p as unstack_p,
)
from minijax.primitives.matmul_precision import (
    DotAlgorithm as DotAlgorithm,
)
from minijax.primitives.matmul_precision import (
    DotAlgorithmPreset as DotAlgorithmPreset,
)
from minijax.primitives.matmul_precision import (
    Precision as Precision,
)
from minijax.primitives.matmul_precision import (
    PrecisionLike as PrecisionLike,
)
from minijax.primitives.ordering import (
    after_all as after_all,
)
from minijax.primitives.ordering import (
    after_all_p as after_all_p,
)
from minijax.primitives.ordering import (
    copy_p as copy_p,
)
from minijax.primitives.ordering import (
    create_token as create_token,
)
from minijax.primitives.ordering import (
    create_token_p as create_token_p,
)
from minijax.primitives.ordering import (
    dce_sink as dce_sink,
)
from minijax.primitives.ordering import (
    dce_sink_p as dce_sink_p,
)
from minijax.primitives.ordering import (
    optimization_barrier as optimization_barrier,
)
from minijax.primitives.ordering import (
    optimization_barrier_p as optimization_barrier_p,
)
from minijax.primitives.ordering import (
    stop_gradient as stop_gradient,
)
from minijax.primitives.ordering import (
    stop_gradient_p as stop_gradient_p,
)
from minijax.primitives.padding import (
    pad as pad,
)
from minijax.primitives.padding import (
    pad_p as pad_p,
)
from minijax.primitives.prefix_scans import (
    associative_scan as associative_scan,
)
from minijax.primitives.ragged_products import (
    RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
)
from minijax.primitives.ragged_products import (
    ragged_dot as ragged_dot,
)
from minijax.primitives.ragged_products import (
    ragged_dot_general as ragged_dot_general,
)
from minijax.primitives.rbg import (
    RandomAlgorithm as RandomAlgorithm,
)
from minijax.primitives.rbg import (
    rng_bit_generator as rng_bit_generator,
)
from minijax.primitives.rbg import (
    rng_bit_generator_p as rng_bit_generator_p,
)
from minijax.primitives.rbg import (
    rng_uniform as rng_uniform,
)
from minijax.primitives.rbg import (
    rng_uniform_p as rng_uniform_p,
)
from minijax.primitives.reductions import (
    argmax as argmax,
)
from minijax.primitives.reductions import (
    argmax_p as argmax_p,
)
from minijax.primitives.reductions import (
    argmin as argmin,
)
from minijax.primitives.reductions import (
    argmin_p as argmin_p,
)
from minijax.primitives.reductions import (
    reduce_and as reduce_and,
)
from minijax.primitives.reductions import (
    reduce_and_p as reduce_and_p,
)
from minijax.primitives.reductions import (
    reduce_max as reduce_max,
)
from minijax.primitives.reductions import (
    reduce_max_p as reduce_max_p,
)
from minijax.primitives.reductions import (
    reduce_min as reduce_min,
)
from minijax.primitives.reductions import (
    reduce_min_p as reduce_min_p,
)
from minijax.primitives.reductions import (
    reduce_or as reduce_or,
)
from minijax.primitives.reductions import (
    reduce_or_p as reduce_or_p,
)
from minijax.primitives.reductions import (
    reduce_prod as reduce_prod,
)
from minijax.primitives.reductions import (
    reduce_prod_p as reduce_prod_p,
)
from minijax.primitives.reductions import (
    reduce_sum as reduce_sum,
)
from minijax.primitives.reductions import (
    reduce_sum_p as reduce_sum_p,
)
from minijax.primitives.reductions import (
    reduce_xor as reduce_xor,
)
from minijax.primitives.reductions import (
    reduce_xor_p as reduce_xor_p,
)
from minijax.primitives.scatter_family import (
    ScatterDimensionNumbers as ScatterDimensionNumbers,
)
from minijax.primitives.scattering import (
    scatter as scatter,
)
from minijax.primitives.scattering import (
    scatter_add as scatter_add,
)
from minijax.primitives.scattering import (
    scatter_add_p as scatter_add_p,
)
from minijax.primitives.scattering import (
    scatter_apply as scatter_apply,
)
from minijax.primitives.scattering import (
    scatter_max as scatter_max,
)
from minijax.primitives.scattering import (
    scatter_max_p as scatter_max_p,
)
from minijax.primitives.scattering import (
    scatter_min as scatter_min,
)
from minijax.primitives.scattering import (
    scatter_min_p as scatter_min_p,
)
from minijax.primitives.scattering import (
    scatter_mul as scatter_mul,
)
from minijax.primitives.scattering import (
    scatter_mul_p as scatter_mul_p,
)
from minijax.primitives.scattering import (
    scatter_p as scatter_p,
)
from minijax.primitives.scattering import (
    scatter_sub as scatter_sub,
)
from minijax.primitives.scattering import (
    scatter_sub_p as scatter_sub_p,
)
from minijax.primitives.select import (
    clamp as clamp,
)
from minijax.primitives.select import (
    clamp_p as clamp_p,
)
from minijax.primitives.select import (
    select as select,
)
from minijax.primitives.select import (
    select_n as select_n,
)
from minijax.primitives.select import (
    select_n_p as select_n_p,
)
from minijax.primitives.shaping import (
    collapse as collapse,
)
from minijax.primitives.shaping import (
    reshape as reshape,
)
from minijax.primitives.shaping import (
    reshape_p as reshape_p,
)
from minijax.primitives.shaping import (
    rev as rev,
)
from minijax.primitives.shaping import (
    rev_p as rev_p,
)
from minijax.primitives.shaping import (
    squeeze as squeeze,
)
from minijax.primitives.shaping import (
    squeeze_p as squeeze_p,
)
from minijax.primitives.shaping import (
    tile as tile,
)
from minijax.primitives.shaping import (
    tile_p as tile_p,
)
from minijax.primitives.shaping import (
    transpose as transpose,
)
from minijax.primitives.shaping import (
    transpose_p as transpose_p,
)
from minijax.primitives.slicing import (
    index_in_dim as index_in_dim,
)
from minijax.primitives.slicing import (
    slice as slice,
)
from minijax.primitives.slicing import (
    slice_in_dim as slice_in_dim,
)
from minijax.primitives.slicing import (
    slice_p as slice_p,
)
from minijax.primitives.sorting import (
    sort as sort,
)
from minijax.primitives.sorting import (
    sort_key_val as sort_key_val,
)
from minijax.primitives.sorting import (
    sort_p as sort_p,
)
from minijax.primitives.sorting import (
    top_k as top_k,
)
from minijax.primitives.sorting import (
    top_k_p as top_k_p,
)
from minijax.primitives.special import (
    digamma as digamma,
)
from minijax.primitives.special import (
    digamma_p as digamma_p,
)
from minijax.primitives.special import (
    erf as erf,
)
from minijax.primitives.special import (
    erf_inv as erf_inv,
)
from minijax.primitives.special import (
    erf_inv_p as erf_inv_p,
)
from minijax.primitives.special import (
    erf_p as erf_p,
)
from minijax.primitives.special import (
    erfc as erfc,
)
from minijax.primitives.special import (
    erfc_p as erfc_p,
)
from minijax.primitives.special import (
    lgamma as lgamma,
)
from minijax.primitives.special import (
    lgamma_p as lgamma_p,
)
