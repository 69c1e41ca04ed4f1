"""`minijax.lax`: the operations as XLA has them, without NumPy's conveniences.

Operands must agree in dtype, and nothing is broadcast but scalars and sizes of 1. Each
name is defined beside its primitive, on floor 3; this room only re-exports.

In JAX: `jax.lax`.
"""

# isort: skip_file
# fmt: off
from minijax.support.late_names import late_names as _late_names
from minijax.lax.at_index import dynamic_index_in_dim, dynamic_update_index_in_dim
from minijax.programs.control_flow.conditionals import cond, cond_p, switch
from minijax.programs.control_flow.fori_loops import fori_loop
from minijax.programs.rare.general_reduction import reduce, reduce_p
from minijax.programs.rare.general_windows import reduce_window, reduce_window_p
from minijax.programs.control_flow.platform_branches import platform_dependent
from minijax.programs.control_flow.scan_primitive import scan_p
from minijax.programs.control_flow.scans import map, scan
from minijax.programs.shard_map.varying import pcast, pvary
from minijax.programs.sharding.constraints import (
    sharding_constraint_p, with_sharding_constraint,
)
from minijax.programs.control_flow.solves import (
    custom_linear_solve, custom_root, linear_solve_p,
)
from minijax.programs.control_flow.while_loops import while_loop, while_p
from minijax.primitives.elementwise.accuracy import AccuracyMode, Tolerance
from minijax.primitives.shape.broadcasting import (
    broadcast, broadcast_like, broadcast_shapes, broadcast_to_rank, broadcasted_iota,
    empty, full, full_like, iota, iota_p,
)
from minijax.core.shaping import (
    broadcast_in_dim, broadcast_in_dim_p,
)
from minijax.primitives.shape.casting import (
    bitcast_convert_type, bitcast_convert_type_p, convert_element_type,
    reduce_precision, reduce_precision_p,
)
from minijax.core.shaping import convert_element_type_p, stage, stage_p
from minijax.primitives.parallel.variation import (
    axis_index, axis_index_p, axis_size,
)
from minijax.primitives.parallel.collectives import (
    all_gather, all_gather_p, all_to_all, all_to_all_p, pbroadcast, pmax, pmax_p,
    pmean, pmin, pmin_p, ppermute, ppermute_p, pshuffle, psum, psum_p,
    psum_scatter, pswapaxes,
)
from minijax.core.arithmetic import (
    eq, eq_p, ge, ge_p, gt, gt_p, le, le_p, lt, lt_p, ne, ne_p,
)
from minijax.primitives.elementwise.comparing import (
    and_p, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, clz, clz_p, eq_to_p,
    le_to_p, lt_to_p, mulhi, mulhi_p, not_p, or_p, population_count, population_count_p,
    shift_left, shift_left_p, shift_right_arithmetic, shift_right_arithmetic_p,
    shift_right_logical, shift_right_logical_p, xor_p,
)
from minijax.primitives.elementwise.complex_numbers import (
    complex, complex_p, conj, conj_p, imag, imag_p, real, real_p,
)
from minijax.primitives.linear.convolution import (
    conv, conv_general_dilated, conv_general_dilated_local, conv_general_dilated_p,
    conv_general_dilated_patches, conv_transpose, conv_transpose_shape_tuple,
    conv_with_general_padding,
)
from minijax.primitives.linear.convolution_shapes import (
    ConvDimensionNumbers, ConvGeneralDilatedDimensionNumbers, conv_dimension_numbers,
    conv_general_permutations, conv_general_shape_tuple, conv_shape_tuple,
    padtype_to_pads,
)
from minijax.primitives.reduce.cumulative import (
    cumlogsumexp, cumlogsumexp_p, cummax, cummax_p, cummin, cummin_p, cumprod,
    cumprod_p, cumsum, cumsum_p,
)
from minijax.core.dot import DotDimensionNumbers, dot_general_p
from minijax.primitives.linear.products import batch_matmul, dot, dot_general
from minijax.primitives.index.dynamic_slicing import (
    dynamic_slice, dynamic_slice_in_dim, dynamic_slice_p, dynamic_update_slice,
    dynamic_update_slice_in_dim, dynamic_update_slice_p,
)
from minijax.core.arithmetic import (
    add, add_p, cos, cos_p, div, div_p, exp, exp_p, integer_pow, integer_pow_p, log,
    log_p, mul, mul_p, neg, neg_p, sin,
    sin_p, sqrt, sqrt_p, square, square_p, sub, sub_p, tanh, tanh_p,
)
from minijax.primitives.elementwise.extrema import max, max_p, min, min_p
from minijax.primitives.elementwise.powers import pow, pow_p
from minijax.primitives.elementwise.elementary import (
    cbrt, cbrt_p, exp2, exp2_p, expm1, expm1_p, log1p, log1p_p, logistic, logistic_p,
    reciprocal, rsqrt, rsqrt_p, tan, tan_p,
)
from minijax.primitives.elementwise.rounding import rem, rem_p
from minijax.primitives.index.gathering import gather, gather_p, index_take
from minijax.primitives.elementwise.hyperbolic import (
    acos, acos_p, acosh, acosh_p, asin, asin_p, asinh, asinh_p, atan, atan2, atan2_p,
    atan_p, atanh, atanh_p, cosh, cosh_p, sinh, sinh_p,
)
from minijax.primitives.elementwise.incomplete import (
    betainc, igamma, igamma_grad_a, igamma_grad_a_p, igamma_p, igammac, igammac_p,
    random_gamma_grad, regularized_incomplete_beta_p,
)
from minijax.primitives.index.index_vectors import (
    GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers,
)
from minijax.primitives.shape.dimension_values import shape_as_value
from minijax.primitives.shape.joining import (
    concatenate, concatenate_p, split, split_p, stack, stack_p, unstack, unstack_p,
)
from minijax.primitives.linear.matmul_precision import (
    DotAlgorithm, DotAlgorithmPreset, Precision, PrecisionLike,
)
from minijax.primitives.shape.ordering import (
    after_all, after_all_p, copy_p, create_token, create_token_p, dce_sink, dce_sink_p,
    optimization_barrier, optimization_barrier_p, stop_gradient, stop_gradient_p,
)
from minijax.primitives.shape.padding import pad, pad_p
from minijax.primitives.parallel.device_moves import device_put_p
from minijax.primitives.reduce.prefix_scans import associative_scan
from minijax.primitives.rare.ragged_products import (
    RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general,
)
from minijax.primitives.rare.rbg import (
    RandomAlgorithm, rng_bit_generator, rng_bit_generator_p, rng_uniform, rng_uniform_p,
)
from minijax.primitives.reduce.reductions import (
    argmax, argmax_p, argmin, argmin_p, reduce_and, reduce_and_p, reduce_max,
    reduce_max_p, reduce_min, reduce_min_p, reduce_or, reduce_or_p, reduce_prod,
    reduce_prod_p, reduce_xor, reduce_xor_p,
)
from minijax.core.sums import reduce_sum, reduce_sum_p
from minijax.primitives.elementwise.rounding import (
    RoundingMethod, abs, abs_p, ceil, ceil_p, floor, floor_p, is_finite, is_finite_p,
    nextafter, nextafter_p, round, round_p, sign, sign_p,
)
from minijax.primitives.index.scattering import (
    scatter, scatter_add, scatter_add_p, scatter_apply, scatter_max, scatter_max_p,
    scatter_min, scatter_min_p, scatter_mul, scatter_mul_p, scatter_p, scatter_sub,
    scatter_sub_p,
)
from minijax.core.dtypes import dtype
from minijax.core.arithmetic import select, select_n, select_n_p
from minijax.primitives.elementwise.clamping import clamp, clamp_p
from minijax.primitives.shape.rearranging import collapse, rev, rev_p, tile, tile_p
from minijax.core.shaping import (
    reshape, reshape_p, transpose, transpose_p,
)
from minijax.primitives.shape.squeezing import expand_dims, squeeze, squeeze_p
from minijax.primitives.shape.slicing import index_in_dim, slice, slice_in_dim, slice_p
from minijax.primitives.reduce.sorting import (
    approx_max_k, approx_min_k, approx_top_k_p, sort, sort_key_val, sort_p, top_k,
    top_k_p,
)
from minijax.primitives.elementwise.special import (
    bessel_i0e, bessel_i0e_p, bessel_i1e, bessel_i1e_p, digamma, digamma_p, erf,
    erf_inv, erf_inv_p, erf_p, erfc, erfc_p, lgamma, lgamma_p, polygamma, polygamma_p,
    zeta, zeta_p,
)
from minijax.primitives.reduce.windows import (
    reduce_window_max_p, reduce_window_min_p, reduce_window_shape_tuple,
    reduce_window_sum_p, select_and_gather_add_p, select_and_scatter_add_p,
    select_and_scatter_p,
)

# Imported on first use: few programs need them.
__getattr__, __dir__, __all__ = _late_names(
    globals(),
    "linalg",
    {
        "minijax.programs.linear_algebra.fourier": "FftType fft fft_p",
        "minijax.programs.rare.composites": "composite",
        "minijax.programs.rare.scaled_products": "scaled_dot",
    },
)
