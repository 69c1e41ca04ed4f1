"""Python's operators and the methods of arrays, with weak types and foreign scalars.

Operators are functions of `jax.numpy` underneath, so their text carries jit's
boundaries where JAX has them.
"""

import operator

import numpy as np

from tests.golden.programs.registry import boolean, c64, f32, family, i32, program

ARITHMETIC = "add sub mul truediv floordiv mod pow"
COMPARISON = "eq ne lt le gt ge"


@family("a", f"{ARITHMETIC} {COMPARISON}")
def arrays(jax, name):
    return getattr(operator, name), (f32(3), f32(3))


@family("a", "add sub mul truediv floordiv mod and_ or_ xor lshift rshift eq lt")
def integers(jax, name):
    return getattr(operator, name), (i32(3), i32(3))


@family("a", f"{ARITHMETIC} lt")
def scalar_right(jax, name):
    return lambda x: getattr(operator, name)(x, 2.0), (f32(3),)


@family("a", ARITHMETIC)
def scalar_left(jax, name):
    return lambda x: getattr(operator, name)(2.0, x), (f32(3),)


@family("a", "add mul truediv floordiv mod pow")
def integer_scalar_right(jax, name):
    return lambda x: getattr(operator, name)(x, 3), (i32(3),)


@family("a", "neg pos abs invert")
def unary(jax, name):
    return getattr(operator, name), (i32(3),)


@program("a")
def power_two(jax):
    return lambda x: x**2, (f32(3),)


@program("a")
def power_minus_one_and_half(jax):
    return lambda x: (x**-1, x**0.5), (f32(3),)


@program("a")
def power_of_integers(jax):
    return lambda x: x**3, (i32(3),)


@program("a")
def powers_of_a_weak_scalar(jax):
    return lambda x: (x**2, x**0, x**1), (3.0,)


@program("a")
def division_of_integers_by_a_float(jax):
    return lambda x: x / 2.5, (i32(3),)


@program("a")
def integer_array_plus_float_scalar(jax):
    return lambda x: x + 1.5, (i32(3),)


@program("a")
def integer_array_plus_float_array(jax):
    return lambda x, y: x + y, (i32(3), f32(3))


@program("a")
def complex_times_float(jax):
    return lambda z, x: z * x, (c64(3), f32(3))


@program("a")
def bool_plus_bool(jax):
    return lambda x: (x + x, x & True, ~x), (boolean(3),)


@program("a")
def broadcasting_operands(jax):
    return lambda x, y: x + y, (f32(3, 1), f32(2))


@program("a")
def broadcasting_vector_to_matrix(jax):
    return lambda x, y: x * y, (f32(2, 3), f32(3))


@program("a")
def numpy_array_right(jax):
    return lambda x: x + np.arange(3, dtype=np.float32), (f32(3),)


@program("a")
def numpy_array_left(jax):
    return lambda x: np.arange(3, dtype=np.float32) * x, (f32(3),)


@program("a")
def numpy_scalars(jax):
    return lambda x: (np.float32(2) * x, x + np.int32(1)), (f32(3),)


@program("a")
def numpy_double_scalar(jax):
    return lambda x: x * np.float64(2.0), (f32(3),)


@program("a")
def weak_with_weak(jax):
    return lambda x, y: (x + y, x * 2, x / y), (1.0, 2)


@program("a")
def weak_scalar_with_half(jax):
    return lambda x, y: x * y, (f32(3).astype(np.float16), 2.0)


@program("a")
def closed_over_array(jax):
    constant = jax.numpy.ones(3)
    return lambda x: x + constant, (f32(3),)


@program("a")
def closed_over_scalar_array(jax):
    constant = jax.numpy.float32(2.0)
    return lambda x: x * constant, (f32(3),)


@program("a")
def closed_over_array_used_twice(jax):
    constant = jax.numpy.arange(3.0)
    return lambda x: constant * x + constant, (f32(3),)


@program("a")
def matmul_operator(jax):
    return lambda x, y: x @ y, (f32(2, 3), f32(3, 4))


@program("a")
def matmul_operator_vectors(jax):
    return lambda x, y: x @ y, (f32(3), f32(3))


@program("a")
def divmod_of_floats(jax):
    return lambda x, y: divmod(x, y), (f32(3), f32(3))


@program("a")
def augmented_assignment(jax):
    def augmented_assignment(x):
        x += 1.0
        x *= x
        return x

    return augmented_assignment, (f32(3),)


@program("a")
def mean_squared_deviation(jax):
    return lambda x: ((x - x.mean()) ** 2).sum(), (f32(3),)


@program("a")
def methods_shape(jax):
    def methods_shape(x):
        return x.T, x.reshape(-1), x.reshape((3, 2)), x.ravel(), x.transpose(1, 0)

    return methods_shape, (f32(2, 3),)


@program("a")
def methods_reduce(jax):
    def methods_reduce(x):
        return x.sum(), x.max(axis=0), x.min(1), x.prod(), x.mean(axis=1, keepdims=True)

    return methods_reduce, (f32(2, 3),)


@program("a")
def methods_cast(jax):
    return lambda x: (x.astype("int32"), x.astype(np.float16)), (f32(3),)


@program("a")
def methods_complex(jax):
    return lambda z: (z.real, z.imag, z.conj()), (c64(3),)


@program("a")
def methods_of_a_real_array(jax):
    return lambda x: (x.real, x.imag, x.conj(), x.copy()), (f32(3),)


@program("a")
def iteration_over_rows(jax):
    def iteration_over_rows(x):
        total = 0.0
        for row in x:
            total = total + row
        return total

    return iteration_over_rows, (f32(2, 3),)


@program("a", enable_x64=True)
def float64_operators(jax):
    return lambda x, n: (x + 1, n / 2, x * n), (np.ones(3), np.arange(3))
