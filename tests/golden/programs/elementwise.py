"""Elementwise functions of `lax`: one program for each, and their corner cases."""

from tests.golden.programs.registry import boolean, c64, f32, family, i32, program, u32

UNARY_FLOAT = """
    abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh
    digamma erf erf_inv erfc exp exp2 expm1 floor is_finite lgamma log log1p logistic
    neg reciprocal round rsqrt sign sin sinh sqrt square tan tanh
"""
BINARY_FLOAT = """
    add atan2 div eq ge gt igamma igamma_grad_a igammac le lt max min mul ne
    nextafter polygamma pow rem sub zeta
"""
BINARY_INTEGER = """
    add bitwise_and bitwise_or bitwise_xor div eq lt max mul mulhi rem shift_left
    shift_right_arithmetic shift_right_logical sub
"""


@family("a", UNARY_FLOAT)
def unary(jax, name):
    return getattr(jax.lax, name), (f32(3),)


@family("a", "abs bitwise_not clz neg population_count sign")
def unary_integer(jax, name):
    return getattr(jax.lax, name), (i32(3),)


@family("a", "abs conj cos exp imag log neg real sign sqrt tanh")
def unary_complex(jax, name):
    return getattr(jax.lax, name), (c64(3),)


@family("a", BINARY_FLOAT)
def binary(jax, name):
    return getattr(jax.lax, name), (f32(3), f32(3))


@family("a", BINARY_INTEGER)
def binary_integer(jax, name):
    return getattr(jax.lax, name), (u32(3), u32(3))


@family("a", "bitwise_and bitwise_not bitwise_or bitwise_xor eq ne")
def logic(jax, name):
    count = 1 if name == "bitwise_not" else 2
    return getattr(jax.lax, name), (boolean(3),) * count


@program("a")
def betainc_three_arguments(jax):
    return jax.lax.betainc, (f32(3), f32(3), f32(3))


@program("a")
def make_complex(jax):
    return jax.lax.complex, (f32(3), f32(3))


@program("a")
def integer_pow_three(jax):
    return lambda x: jax.lax.integer_pow(x, 3), (f32(3),)


@program("a")
def integer_pow_negative(jax):
    return lambda x: jax.lax.integer_pow(x, -2), (f32(3),)


@program("a")
def pow_by_integer_array(jax):
    return jax.lax.pow, (f32(3), i32(3))


@program("a")
def round_to_even(jax):
    return (
        lambda x: jax.lax.round(x, jax.lax.RoundingMethod.TO_NEAREST_EVEN),
        (f32(3),),
    )


@program("a")
def exp_with_accuracy(jax):
    mode = jax.lax.AccuracyMode.HIGHEST
    return lambda x: jax.lax.exp(x, accuracy=mode), (f32(3),)


@program("a")
def add_scalar_literal(jax):
    return lambda x: jax.lax.add(x, 1.0), (f32(3),)


@program("a")
def literal_first(jax):
    return lambda x: jax.lax.sub(2.0, x), (f32(3, 2),)


@program("a")
def literals_of_every_kind(jax):
    def literals_of_every_kind(x, n, z, b):
        return (
            jax.lax.mul(x, 0.5),
            jax.lax.add(n, 7),
            jax.lax.mul(z, 1j),
            jax.lax.bitwise_and(b, True),
        )

    return literals_of_every_kind, (f32(3), i32(3), c64(3), boolean(3))


@program("a")
def numpy_scalar_operand(jax):
    import numpy as np

    return lambda x: jax.lax.add(x, np.float32(1.5)), (f32(3),)


@program("a")
def two_scalars(jax):
    return lambda x, y: jax.lax.mul(jax.lax.sin(x), y), (1.0, 2.0)


@program("a")
def rank_zero_arrays(jax):
    return jax.lax.add, (f32(), f32())


@program("a", enable_x64=True)
def float64_and_weak(jax):
    import numpy as np

    return lambda x, y: jax.lax.mul(x, jax.lax.sin(y)), (np.ones(3), np.ones(3))


@program("a")
def bfloat16_arithmetic(jax):
    def bfloat16_arithmetic(x):
        y = jax.lax.convert_element_type(x, jax.numpy.bfloat16)
        return jax.lax.mul(jax.lax.exp(y), jax.lax.neg(y))

    return bfloat16_arithmetic, (f32(3),)


@program("a")
def unused_results_stay(jax):
    def unused_results_stay(x):
        jax.lax.sin(x)
        return jax.lax.cos(x)

    return unused_results_stay, (f32(3),)


@program("a")
def returns_its_argument_and_a_constant(jax):
    return lambda x: (x, 1, 2.5, x), (f32(3),)
