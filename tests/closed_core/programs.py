"""Programs that the core must run by itself, and wrong ones whose errors it must give.

Each takes `jax`: real JAX, minijax, or a namespace over the files of the core alone
(`alone.py`). A program returns a function and its arguments. No other import than
NumPy's stands here, since the file is run where nothing else is.
"""

import numpy as np

PROGRAMS = {}
WRONG = {}


def program(make):
    PROGRAMS[make.__name__] = make
    return make


def wrong(run):
    WRONG[run.__name__] = run
    return run


def f32(*shape):
    """Different numbers between about -1 and 1."""
    count = int(np.prod(shape))
    values = (np.arange(count) * 37 % 101 - 50) / 47
    return values.reshape(shape).astype(np.float32)


def i32(*shape):
    count = int(np.prod(shape))
    return (np.arange(count) * 7 % 11 - 5).reshape(shape).astype(np.int32)


# ---- one function, transformed


@program
def sine_times_x(jax):
    return lambda x: jax.lax.sin(x) * x, (f32(3),)


@program
def grad_of_sine(jax):
    return jax.grad(lambda x: jax.lax.sin(x) * x), (np.float32(0.5),)


@program
def second_derivative(jax):
    return jax.grad(jax.grad(lambda x: jax.lax.sin(x) * x * x)), (np.float32(0.5),)


@program
def vmap_of_grad(jax):
    return jax.vmap(jax.grad(lambda x: jax.lax.tanh(x) / (x + 2.0))), (f32(4),)


@program
def jit_of_vmap_of_grad(jax):
    def loss(w, x):
        return jax.lax.reduce_sum(jax.lax.square(x * w - 1.0), axes=(0,))

    return jax.jit(jax.vmap(jax.grad(loss), in_axes=(0, None))), (f32(2), f32(3))


@program
def hessian_vector_product(jax):
    def f(x):
        return jax.lax.reduce_sum(jax.lax.exp(x) * x, axes=(0,))

    return lambda x, v: jax.jvp(jax.grad(f), (x,), (v,))[1], (f32(3), f32(3) + 1)


@program
def forward_mode(jax):
    def f(x, y):
        return jax.lax.log(x * x + 1.0) - y, x / y

    return lambda x, y: jax.jvp(f, (x, y), (x, y)), (f32(3), f32(3) + 3)


@program
def backward_mode(jax):
    def f(x, y):
        out, pull = jax.vjp(lambda x, y: jax.lax.cos(x) * y, x, y)
        return out, pull(out)

    return f, (f32(3), f32(3) + 3)


@program
def linearized(jax):
    def f(x):
        out, linear = jax.linearize(lambda x: jax.lax.sqrt(x) * 3.0, x)
        return out, linear(x)

    return f, (f32(3) + 2,)


@program
def derivative_of_two_arguments(jax):
    f = jax.grad(lambda x, y: jax.lax.reduce_sum(x * y * y, axes=(0,)), argnums=(0, 1))
    return f, (f32(3), f32(3) + 1)


@program
def derivative_with_more_results(jax):
    def f(x):
        y = jax.lax.sin(x)
        return y * y, {"sine": y}

    return jax.value_and_grad(f, has_aux=True), (np.float32(0.7),)


# ---- networks


def _layer(jax, w, b, x):
    return jax.lax.tanh(x @ w + b)


def _network(jax, params, x):
    for w, b in params:
        x = _layer(jax, w, b, x)
    return jax.lax.reduce_sum(x * x, axes=(0, 1))


def _params():
    return [(f32(3, 4), f32(4)), (f32(4, 2), f32(2))]


@program
def network(jax):
    return lambda p, x: _network(jax, p, x), (_params(), f32(5, 3))


@program
def gradient_of_a_network(jax):
    f = jax.jit(jax.value_and_grad(lambda p, x: _network(jax, p, x)))
    return f, (_params(), f32(5, 3))


@program
def gradients_of_examples(jax):
    def loss(p, x):
        return _network(jax, p, jax.lax.reshape(x, (1, 3)))

    return jax.vmap(jax.grad(loss), in_axes=(None, 0)), (_params(), f32(5, 3))


@program
def softmax(jax):
    def f(x):
        top = jax.lax.reduce_sum(x * x, axes=(1,))
        e = jax.lax.exp(x - jax.lax.broadcast_in_dim(top, x.shape, (0,)))
        total = jax.lax.reduce_sum(e, axes=(1,))
        return e / jax.lax.broadcast_in_dim(total, x.shape, (0,))

    return f, (f32(2, 3),)


@program
def gradient_of_softmax(jax):
    softmax_of, args = softmax(jax)
    f = jax.grad(lambda x: jax.lax.reduce_sum(softmax_of(x) * x, axes=(0, 1)))
    return f, args


# ---- jit inside of programs


@program
def one_function_called_twice(jax):
    inner = jax.jit(lambda x: jax.lax.sin(x) + 1.0)
    return lambda x: inner(inner(x)), (f32(3),)


@program
def gradient_of_a_jitted_function(jax):
    inner = jax.jit(lambda x, y: jax.lax.sin(x) * jax.lax.exp(y))
    return jax.grad(lambda x, y: inner(x, y) * x), (np.float32(0.5), np.float32(2))


@program
def jitted_function_under_vmap(jax):
    inner = jax.jit(lambda x, y: (x * y, y))
    return jax.vmap(inner, in_axes=(0, None)), (f32(3), np.float32(2))


@program
def forward_mode_of_a_jitted_function(jax):
    inner = jax.jit(lambda x, y: jax.lax.tanh(x) * y)
    return lambda x: jax.jvp(lambda x: inner(x, 2.0), (x,), (x,)), (f32(3),)


@program
def jitted_function_of_an_outer_value(jax):
    def f(x):
        return jax.jit(lambda y: x * y)(2.0)

    return f, (f32(3),)


@program
def residuals_that_are_inputs(jax):
    inner = jax.jit(lambda x, y: x * y)
    return jax.grad(lambda x, y: inner(x, y)), (np.float32(2), np.float32(3))


@program
def jitted_second_derivative(jax):
    f = jax.jit(lambda x: jax.lax.sin(x) * x)
    return jax.jit(jax.grad(jax.jit(jax.grad(f)))), (np.float32(0.3),)


@program
def static_argument(jax):
    f = jax.jit(lambda x, n: x * n if n > 1 else x, static_argnums=1)
    return lambda x: f(x, 3) + f(x, 1), (f32(3),)


@program
def static_argument_by_name(jax):
    def choose(x, *, sine):
        return jax.lax.sin(x) if sine else x

    f = jax.jit(choose, static_argnames="sine")
    return lambda x: f(x, sine=True) + f(x, sine=False), (f32(3),)


@program
def arguments_by_name(jax):
    f = jax.jit(lambda x, y=2.0, **more: x * y + more["z"])
    return lambda x: f(x, z=1.0) - f(x, y=x, z=x), (f32(3),)


# ---- trees, several results, names


@program
def trees_of_arguments(jax):
    def f(tree):
        return {"sum": tree["a"] + tree["b"][0], "rest": (tree["b"][1], None)}

    return jax.jit(f), ({"a": f32(2), "b": [f32(2), f32(3)]},)


@program
def gradient_of_a_tree(jax):
    def f(tree):
        return tree["a"] * jax.lax.sin(tree["b"]["c"])

    return jax.grad(f), ({"a": np.float32(2), "b": {"c": np.float32(0.5)}},)


@program
def result_that_is_an_argument(jax):
    return lambda x, y: (y, x, x), (f32(2), f32(3))


@program
def results_that_nobody_reads(jax):
    def f(x):
        jax.lax.sin(x)
        return x

    return f, (f32(2),)


@program
def results_that_are_constants(jax):
    return lambda x: (x, 2.0, np.float32(3)), (f32(2),)


@program
def constant_array(jax):
    table = f32(3)
    return lambda x: x * table + table, (f32(3),)


@program
def argument_that_is_not_used(jax):
    return jax.jit(jax.grad(lambda x, y: x * x)), (np.float32(3), f32(2))


# ---- batches


@program
def batch_axis_at_another_place(jax):
    return jax.vmap(lambda x: x * 2.0, in_axes=1, out_axes=1), (f32(2, 3),)


@program
def two_batch_axes(jax):
    inner = jax.vmap(lambda x, y: x * y, in_axes=(None, 0))
    return jax.vmap(inner, in_axes=(0, None)), (f32(2), f32(3))


@program
def batched_product(jax):
    return jax.vmap(lambda x, y: x @ y, in_axes=(0, 0)), (f32(4, 2, 3), f32(4, 3, 2))


@program
def product_with_one_batched_operand(jax):
    return jax.vmap(lambda x, y: x @ y, in_axes=(0, None)), (f32(4, 2, 3), f32(3, 2))


@program
def batched_shapes(jax):
    def f(x):
        y = jax.lax.transpose(x, (1, 0))
        z = jax.lax.reshape(y, (6,))
        return jax.lax.broadcast_in_dim(z, (2, 6), (1,))

    return jax.vmap(f), (f32(4, 2, 3),)


@program
def batched_choice(jax):
    def f(x):
        return jax.lax.select(x > 0.0, jax.lax.sin(x), x * 2.0)

    return jax.vmap(f), (f32(5),)


@program
def choice_by_an_unbatched_condition(jax):
    def f(which, x, y):
        return jax.lax.select_n(which, x, y)

    return jax.vmap(f, in_axes=(None, 0, 0)), (np.bool_(True), f32(3, 2), f32(3, 2))


@program
def batched_reductions(jax):
    def f(x):
        rows = jax.lax.reduce_sum(x, axes=(0,))
        return jax.lax.reduce_sum(x, axes=(0, 1)), rows

    return jax.vmap(f, in_axes=1), (f32(2, 4, 3),)


@program
def forward_mode_under_vmap(jax):
    def f(x):
        return jax.jvp(jax.lax.tanh, (x,), (1.0,))

    return jax.vmap(f), (f32(3),)


@program
def output_that_is_not_batched(jax):
    f = jax.vmap(lambda x: (x, 3.0), out_axes=(0, None))
    return f, (f32(3),)


# ---- arithmetic


@program
def all_operators(jax):
    def f(x, y):
        total = x + y - x * y / (y + 2.0)
        return -total, x**3, x**-2, 2.0 - x, 1.0 / y, 3.0 * x

    return f, (f32(3) + 2, f32(3) + 3)


@program
def comparisons(jax):
    return lambda x, y: (x == y, x != y, x < y, x <= y, x > y, x >= 0.0), (
        f32(3),
        f32(3),
    )


@program
def numbers_beside_arrays(jax):
    return lambda x, n: (x + 1, x * 2.5, n + 1, n * 2.5, n + np.int32(3)), (
        f32(3),
        i32(3),
    )


@program
def dtypes_that_differ(jax):
    return lambda x, n, b: (x + n, n * b, x * b), (f32(3), i32(3), f32(3) > 0)


@program
def ranks_that_differ(jax):
    return lambda x, y, z: (x + y) * z, (f32(2, 3), f32(3), np.float32(2))


@program
def weak_types(jax):
    return lambda x, n: (x + 1, n * 2.0, x * n), (1.5, 2)


@program
def powers(jax):
    def f(x):
        lax = jax.lax
        return lax.integer_pow(x, 3), lax.square(x), lax.sqrt(x)

    return f, (f32(3) + 2,)


@program
def derivatives_of_powers(jax):
    def f(x, y):
        return jax.lax.integer_pow(x, 3) * jax.lax.sqrt(y)

    return jax.grad(f, argnums=(0, 1)), (np.float32(2), np.float32(3))


@program
def derivatives_of_choices(jax):
    def f(x):
        return jax.lax.reduce_sum(
            jax.lax.select(x > 0.0, x * x, jax.lax.exp(x)), axes=(0,)
        )

    return jax.grad(f), (f32(4),)


@program
def derivatives_of_exponentials(jax):
    def f(x):
        lax = jax.lax
        return lax.log(lax.sqrt(x)) + lax.cos(x) * lax.exp(-x) / lax.tanh(x)

    return jax.value_and_grad(f), (np.float32(0.7),)


# ---- shapes and dtypes


@program
def shapes(jax):
    def f(x):
        wide = jax.lax.broadcast_in_dim(x, (2, 1, 3), (0, 2))
        return jax.lax.reshape(wide, (2, 3)), jax.lax.transpose(wide, (2, 0, 1))

    return f, (f32(2, 3),)


@program
def derivatives_of_shapes(jax):
    def f(x):
        lax = jax.lax
        y = lax.broadcast_in_dim(lax.transpose(x, (1, 0)), (3, 2, 2), (0, 1))
        return lax.reduce_sum(lax.reshape(y, (12,)) * 2.0, axes=(0,))

    return jax.grad(f), (f32(2, 3),)


@program
def dtypes_converted(jax):
    def f(n):
        x = jax.lax.convert_element_type(n, np.float32)
        return jax.lax.convert_element_type(x * 0.5, np.int32), x

    return f, (i32(3),)


@program
def derivative_through_a_conversion(jax):
    def f(x):
        half = jax.lax.convert_element_type(x, np.float16)
        return jax.lax.convert_element_type(half * half, np.float32)

    return jax.grad(f), (np.float32(0.5),)


@program
def product_of_many_axes(jax):
    def f(x, y):
        return jax.lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))))

    return f, (f32(2, 3, 4), f32(2, 4, 5))


@program
def derivative_of_a_product(jax):
    def f(x, y):
        out = jax.lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))))
        return jax.lax.reduce_sum(out * out, axes=(0, 1, 2))

    return jax.grad(f, argnums=(0, 1)), (f32(2, 3, 4), f32(2, 4, 5))


# ---- wrong programs: each raises


@wrong
def shapes_that_do_not_fit(jax):
    jax.lax.add(f32(3), f32(4))


@wrong
def dtypes_that_do_not_fit(jax):
    jax.jit(lambda x, n: jax.lax.mul(x, n))(f32(3), i32(3))


@wrong
def product_that_does_not_fit(jax):
    jax.make_jaxpr(lambda x, y: x @ y)(f32(2, 3), f32(4, 2))


@wrong
def reshape_to_another_size(jax):
    jax.lax.reshape(f32(2, 3), (5,))


@wrong
def gradient_of_a_vector(jax):
    jax.grad(lambda x: x * 2.0)(f32(3))


@wrong
def gradient_of_an_integer(jax):
    jax.grad(lambda n: n * 2.0)(3)


@wrong
def condition_on_a_tracer(jax):
    jax.jit(lambda x: x if x > 0.0 else -x)(np.float32(1))


@wrong
def number_of_a_tracer(jax):
    jax.jit(lambda x: np.sin(float(x)))(np.float32(1))


@wrong
def array_of_a_tracer(jax):
    jax.jit(lambda x: np.sin(x))(np.float32(1))


@wrong
def batches_of_two_sizes(jax):
    jax.vmap(lambda x, y: x + y)(f32(3), f32(4))


@wrong
def argument_that_is_a_string(jax):
    jax.jit(lambda x: x)("x")


@wrong
def static_argument_that_is_a_list(jax):
    jax.jit(lambda x, n: x, static_argnums=1)(f32(3), [1])


@wrong
def tracer_that_is_kept(jax):
    kept = []
    jax.jit(lambda x: kept.append(x) or x)(f32(3))
    jax.lax.sin(kept[0])
