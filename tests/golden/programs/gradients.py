"""jvp, vjp, grad, linearize and the derivatives made of them."""

import numpy as np

from tests.golden.programs.registry import c64, f32, family, i32, program

DIFFERENTIABLE = """
    abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt cos cosh digamma erf
    erf_inv erfc exp exp2 expm1 lgamma log log1p logistic neg reciprocal rsqrt sign sin
    sinh sqrt square tan tanh floor
"""


@family("a", DIFFERENTIABLE)
def grad_of(jax, name):
    return jax.grad(getattr(jax.lax, name)), (np.float32(0.5),)


@family("a", "add atan2 div max min mul pow rem sub igamma igammac")
def grad_of_both(jax, name):
    return jax.grad(getattr(jax.lax, name), (0, 1)), (np.float32(0.5), np.float32(2.0))


@family("a", "sin log tanh integer_pow logistic")
def jvp_of(jax, name):
    if name == "integer_pow":
        return lambda x, t: jax.jvp(lambda x: x**3, (x,), (t,)), (f32(3), f32(3))
    return lambda x, t: jax.jvp(getattr(jax.lax, name), (x,), (t,)), (f32(3), f32(3))


@program("a")
def grad_of_a_product(jax):
    return jax.grad(lambda x: jax.numpy.sin(x) * x), (1.0,)


@program("a")
def grad_twice(jax):
    return jax.grad(jax.grad(lambda x: x**3)), (1.0,)


@program("a")
def grad_three_times(jax):
    return jax.grad(jax.grad(jax.grad(jax.lax.tanh))), (1.0,)


@program("a")
def grad_of_unused_argument(jax):
    return jax.grad(lambda x, y: jax.lax.sin(x), argnums=1), (1.0, 2.0)


@program("a")
def grad_of_a_constant(jax):
    return jax.grad(lambda x: 3.0), (1.0,)


@program("a")
def grad_through_a_fan(jax):
    def fan(x):
        y = jax.lax.sin(x)
        return y * y + y

    return jax.grad(fan), (1.0,)


@program("a")
def grad_closed_over_tracer(jax):
    return lambda x, y: jax.grad(lambda z: z * x * y)(x), (1.0, 2.0)


@program("a")
def grad_closed_over_array(jax):
    constant = jax.numpy.arange(3.0)
    return jax.grad(lambda x: (x * constant).sum()), (f32(3),)


@program("a")
def grad_of_jit(jax):
    @jax.jit
    def inner(x):
        return jax.lax.sin(x) * x

    return jax.grad(lambda x: inner(x) + x), (1.0,)


@program("a")
def grad_of_nested_jit(jax):
    @jax.jit
    def inner(x):
        return jax.lax.sin(x)

    @jax.jit
    def outer(x, y):
        return (inner(x) * y).sum()

    return jax.grad(outer, argnums=(0, 1)), (f32(3), f32(3))


@program("a")
def grad_of_shared_jit(jax):
    @jax.jit
    def inner(x):
        return jax.lax.sin(x)

    return jax.grad(lambda x: inner(inner(x))), (1.0,)


@program("a")
def grad_of_jit_with_integer_and_unused(jax):
    @jax.jit
    def inner(x, n, unused):
        return (x * n).sum(), x

    return jax.grad(lambda x, n, u: inner(x, n, u)[0]), (f32(3), i32(3), f32(2))


@program("a")
def grad_of_jit_closing_over(jax):
    def outer(x, y):
        @jax.jit
        def inner(z):
            return z * jax.lax.sin(y)

        return inner(x)

    return jax.grad(outer, argnums=(0, 1)), (1.0, 2.0)


@program("a")
def jit_of_grad(jax):
    return jax.jit(jax.grad(lambda x: jax.lax.sin(x) * x)), (1.0,)


@program("a")
def grad_of_jit_of_grad(jax):
    return jax.grad(jax.jit(jax.grad(lambda x: jax.lax.sin(x) * x))), (1.0,)


@program("a")
def grad_of_inlined_jit(jax):
    inner = jax.jit(lambda x: jax.lax.exp(x) * 2.0, inline=True)
    return jax.grad(inner), (1.0,)


@program("a")
def jvp_of_jit(jax):
    @jax.jit
    def inner(x, y):
        return jax.lax.sin(x) * y, y

    return (
        lambda x, y, t: jax.jvp(lambda x: inner(x, y), (x,), (t,)),
        (f32(3), f32(3), f32(3)),
    )


@program("a")
def jvp_with_some_zero_tangents(jax):
    def some(x, y, t):
        return jax.jvp(lambda x, y: (x * y, x + 1.0), (x, y), (t, np.zeros(3, "f")))

    return some, (f32(3), f32(3), f32(3))


@program("a")
def jvp_of_jvp(jax):
    def first(x):
        return jax.jvp(jax.lax.sin, (x,), (1.0,))[1]

    return lambda x: jax.jvp(first, (x,), (1.0,)), (1.0,)


@program("a")
def jvp_of_grad(jax):
    gradient = jax.grad(lambda x: (jax.lax.sin(x) * x).sum())
    return lambda x, t: jax.jvp(gradient, (x,), (t,)), (f32(3), f32(3))


@program("a")
def grad_of_jvp(jax):
    def directional(x):
        return jax.jvp(lambda x: (x**3).sum(), (x,), (x,))[1]

    return jax.grad(directional), (f32(3),)


@program("a")
def vjp_applied(jax):
    def vjp_applied(x, y, ct):
        out, pullback = jax.vjp(lambda x, y: jax.lax.sin(x) * y, x, y)
        return out, pullback(ct)

    return vjp_applied, (f32(3), f32(3), f32(3))


@program("a")
def vjp_with_aux(jax):
    def vjp_with_aux(x):
        out, pullback, aux = jax.vjp(lambda x: (x * 2.0, x + 1.0), x, has_aux=True)
        return out, pullback(out), aux

    return vjp_with_aux, (f32(3),)


@program("a")
def vjp_used_twice(jax):
    def vjp_used_twice(x):
        out, pullback = jax.vjp(lambda x: jax.lax.sin(x) * x, x)
        return pullback(out), pullback(x)

    return vjp_used_twice, (f32(3),)


@program("a")
def linearize_applied(jax):
    def linearize_applied(x, t):
        out, tangent_map = jax.linearize(lambda x: jax.lax.sin(x) * x, x)
        return out, tangent_map(t)

    return linearize_applied, (f32(3), f32(3))


@program("a")
def linearize_used_twice(jax):
    def linearize_used_twice(x):
        out, tangent_map = jax.linearize(jax.lax.tanh, x)
        return tangent_map(x) + tangent_map(out)

    return linearize_used_twice, (f32(3),)


@program("a")
def linearize_of_jit(jax):
    inner = jax.jit(lambda x, y: jax.lax.sin(x) * y)

    def linearize_of_jit(x, y):
        out, tangent_map = jax.linearize(inner, x, y)
        return out, tangent_map(x, y)

    return linearize_of_jit, (f32(3), f32(3))


@program("a")
def linearized_program_alone(jax):
    _, tangent_map = jax.linearize(lambda x: jax.lax.sin(x) * x, f32(3))
    return tangent_map, (f32(3),)


@program("a")
def pullback_alone(jax):
    _, pullback = jax.vjp(lambda x: jax.lax.sin(x) * x, f32(3))
    return pullback, (f32(3),)


@program("a")
def linear_transpose_of_a_dot(jax):
    matrix = jax.numpy.ones((2, 3))

    def linear_transpose_of_a_dot(y):
        return jax.linear_transpose(lambda x: matrix @ x, f32(3))(y)

    return linear_transpose_of_a_dot, (f32(2),)


@program("a")
def value_and_gradient(jax):
    return jax.value_and_grad(lambda x: (x * x).sum()), (f32(3),)


@program("a")
def value_and_gradient_with_aux(jax):
    def loss(x, y):
        out = x * y
        return out.sum(), {"out": out}

    return jax.value_and_grad(loss, has_aux=True), (f32(3), f32(3))


@program("a")
def gradient_with_aux_and_argnums(jax):
    def loss(x, y):
        return (x * y).sum(), x

    return jax.grad(loss, argnums=(1, 0), has_aux=True), (f32(3), f32(3))


@program("a")
def gradient_of_a_keyword_call(jax):
    def loss(x, *, scale):
        return (x * scale).sum()

    return lambda x, s: jax.grad(loss)(x, scale=s), (f32(3), 2.0)


@program("a")
def gradient_holomorphic(jax):
    return jax.grad(lambda z: z * z, holomorphic=True), (np.complex64(1 + 2j),)


@program("a")
def gradient_of_complex_to_real(jax):
    return jax.grad(lambda z: jax.numpy.abs(z).sum()), (c64(3),)


@program("a")
def gradient_through_real_and_imag(jax):
    return (
        jax.grad(lambda z: (jax.lax.real(z) * jax.lax.imag(z)).sum()),
        (c64(3),),
    )


@program("a")
def gradient_with_stop(jax):
    return jax.grad(lambda x: x * jax.lax.stop_gradient(x)), (2.0,)


@program("a")
def gradient_through_casts(jax):
    def loss(x):
        return jax.lax.convert_element_type(x * 2, np.float16).sum()

    return jax.grad(loss), (f32(3),)


@program("a")
def gradient_through_integers(jax):
    def loss(x):
        return (x * jax.lax.convert_element_type(x, np.int32)).sum()

    return jax.grad(loss), (f32(3),)


@program("a")
def gradient_through_broadcasting(jax):
    return (
        jax.grad(lambda x, y: (x + y * 2.0).sum(), argnums=(0, 1)),
        (f32(2, 3), f32(3)),
    )


@program("a")
def gradient_through_shapes(jax):
    def loss(x):
        y = jax.lax.transpose(jax.lax.reshape(x, (2, 3)), (1, 0))
        y = jax.lax.concatenate([y, y], 0)
        y = jax.lax.pad(y, 0.0, [(1, 0, 0), (0, 0, 1)])
        return (jax.lax.rev(y, (0,)) ** 2).sum()

    return jax.grad(loss), (f32(6),)


@program("a")
def gradient_through_select_and_clamp(jax):
    def loss(x):
        y = jax.lax.select(x > 0.5, x, x * x)
        return jax.lax.clamp(0.0, y, 1.0).sum()

    return jax.grad(loss), (f32(3),)


@program("a")
def gradient_through_a_barrier(jax):
    def loss(x):
        y, z = jax.lax.optimization_barrier((x, x * x))
        return (y * z).sum()

    return jax.grad(loss), (f32(3),)


@program("a")
def forward_jacobian(jax):
    return jax.jacfwd(lambda x: jax.lax.sin(x) * x), (f32(3),)


@program("a")
def reverse_jacobian(jax):
    return jax.jacrev(lambda x: jax.lax.sin(x) * x), (f32(3),)


@program("a")
def jacobian_of_two_arguments(jax):
    return jax.jacrev(lambda x, y: x[:2] * y, argnums=(0, 1)), (f32(3), f32(2))


@program("a")
def jacobian_of_a_tree(jax):
    return jax.jacfwd(lambda p: {"y": p["a"] * p["b"]}), ({"a": f32(2), "b": f32(2)},)


@program("a")
def hessian_of_a_cubic(jax):
    return jax.hessian(lambda x: (x**3).sum()), (f32(3),)


@program("a")
def hessian_vector_product(jax):
    gradient = jax.grad(lambda x: (jax.lax.cos(x) ** 2).sum())
    return lambda x, v: jax.jvp(gradient, (x,), (v,))[1], (f32(3), f32(3))


@program("a")
def gradient_of_a_dict(jax):
    def loss(params):
        return (params["w"] * params["b"]).sum()

    return jax.grad(loss), ({"w": f32(3), "b": f32(3)},)


@program("a")
def gradient_of_a_nested_tree(jax):
    def loss(params):
        (a, b), rest = params
        return (a * b).sum() + rest["c"] * 2.0

    return jax.grad(loss), (((f32(3), f32(3)), {"c": 1.0, "d": None}),)


@program("a")
def gradient_of_integer_with_allow_int(jax):
    return (
        jax.grad(lambda x, n: (x * n).sum(), argnums=(0, 1), allow_int=True),
        (f32(3), i32(3)),
    )
