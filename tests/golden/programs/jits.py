"""`jit` inside a traced function: nesting, sharing, closures, options, names."""

import functools

from tests.golden.programs.registry import f32, program


@program("a")
def one_call(jax):
    @jax.jit
    def double(x):
        return x * 2.0

    return double, (f32(3),)


@program("a")
def call_in_the_middle(jax):
    @jax.jit
    def inner(x):
        return jax.lax.sin(x) * x

    def outer(x):
        y = inner(x + 1.0)
        return y - 1.0

    return outer, (f32(3),)


@program("a")
def nested_three_deep(jax):
    @jax.jit
    def first(x):
        return jax.lax.sin(x)

    @jax.jit
    def second(x):
        return first(x) + 1.0

    @jax.jit
    def third(x):
        return second(x) * 2.0

    return third, (f32(3),)


@program("a")
def shared_jaxpr_called_twice(jax):
    @jax.jit
    def inner(x):
        return jax.lax.cos(x)

    return lambda x: inner(inner(x)), (f32(3),)


@program("a")
def shared_by_two_shapes(jax):
    @jax.jit
    def inner(x):
        return jax.lax.cos(x)

    return lambda x, y: (inner(x), inner(y), inner(x)), (f32(3), f32(2))


@program("a")
def shared_at_two_depths(jax):
    @jax.jit
    def inner(x):
        return jax.lax.cos(x)

    @jax.jit
    def middle(x):
        return inner(x) + 1.0

    return lambda x: inner(x) + middle(x), (f32(3),)


@program("a")
def ten_equations(jax):
    @jax.jit
    def chain(x):
        for _ in range(10):
            x = jax.lax.sin(x)
        return x

    return chain, (f32(3),)


@program("a")
def eleven_equations(jax):
    @jax.jit
    def chain(x):
        for _ in range(11):
            x = jax.lax.sin(x)
        return x

    return lambda x: chain(x) + 1.0, (f32(3),)


@program("a")
def two_long_functions(jax):
    def make(fun, name):
        def chain(x):
            for _ in range(12):
                x = fun(x)
            return x

        chain.__name__ = name
        return jax.jit(chain)

    sines, cosines = make(jax.lax.sin, "sines"), make(jax.lax.cos, "cosines")
    return lambda x: sines(x) + cosines(sines(x)), (f32(3),)


@program("a")
def two_functions_of_one_name(jax):
    def make(fun):
        @jax.jit
        def chain(x):
            for _ in range(11):
                x = fun(x)
            return x

        return chain

    sines, cosines = make(jax.lax.sin), make(jax.lax.cos)
    return lambda x: sines(x) + cosines(x), (f32(3),)


@program("a")
def inlined(jax):
    @functools.partial(jax.jit, inline=True)
    def inner(x):
        return jax.lax.sin(x) + 1.0

    return lambda x: inner(x) * inner(x), (f32(3),)


@program("a")
def inlined_in_a_jit(jax):
    @functools.partial(jax.jit, inline=True)
    def inner(x):
        return jax.lax.sin(x)

    @jax.jit
    def outer(x):
        return inner(x) + 1.0

    return outer, (f32(3),)


@program("a")
def closure_over_an_array(jax):
    constant = jax.numpy.arange(3.0)

    @jax.jit
    def inner(x):
        return x + constant

    return inner, (f32(3),)


@program("a")
def closure_over_a_tracer(jax):
    def outer(x):
        y = jax.lax.sin(x)

        @jax.jit
        def inner(z):
            return z * y

        return inner(x)

    return outer, (f32(3),)


@program("a")
def closure_over_two_tracers(jax):
    def outer(x, y):
        @jax.jit
        def inner():
            return x * y + x

        return inner()

    return outer, (f32(3), f32(3))


@program("a")
def closure_shared_by_two_jits(jax):
    constant = jax.numpy.arange(3.0)

    @jax.jit
    def first(x):
        return x + constant

    @jax.jit
    def second(x):
        return first(x) * constant

    return second, (f32(3),)


@program("a")
def unused_argument(jax):
    @jax.jit
    def first_only(x, y):
        return x + 1.0

    return first_only, (f32(3), f32(2))


@program("a")
def unused_output(jax):
    @jax.jit
    def two_outputs(x):
        return jax.lax.sin(x), jax.lax.cos(x)

    return lambda x: two_outputs(x)[0], (f32(3),)


@program("a")
def forwarded_argument(jax):
    @jax.jit
    def forward(x, y):
        return y, x, x + y

    return forward, (f32(3), f32(3))


@program("a")
def constant_output(jax):
    @jax.jit
    def constants(x):
        return 1, 2.0, x

    return constants, (f32(3),)


@program("a")
def no_arguments(jax):
    @jax.jit
    def nothing():
        return jax.numpy.zeros(3)

    return nothing, ()


@program("a")
def static_argnums(jax):
    @functools.partial(jax.jit, static_argnums=1)
    def power(x, n):
        return x**n

    return lambda x: power(x, 3) + power(x, 2), (f32(3),)


@program("a")
def static_argnames(jax):
    @functools.partial(jax.jit, static_argnames=("reverse",))
    def order(x, reverse=False):
        return jax.lax.rev(x, (0,)) if reverse else x

    return lambda x: order(order(x, reverse=True)), (f32(3),)


@program("a")
def keyword_arguments(jax):
    @jax.jit
    def combine(x, *, scale, shift):
        return x * scale + shift

    return lambda x: combine(x, shift=1.0, scale=f32(3)), (f32(3),)


@program("a")
def donated(jax):
    @functools.partial(jax.jit, donate_argnums=(0,))
    def update(x, y):
        return x + y

    return lambda x, y: update(x, y), (f32(3), f32(3))


@program("a")
def keep_unused(jax):
    @functools.partial(jax.jit, keep_unused=True)
    def first_only(x, y):
        return x

    return first_only, (f32(3), f32(2))


@program("a")
def lambda_and_partial(jax):
    def scaled(scale, x):
        return x * scale

    anonymous = jax.jit(lambda x: x + 1.0)
    partial = jax.jit(functools.partial(scaled, 2.0))
    return lambda x: partial(anonymous(x)), (f32(3),)


@program("a")
def callable_object(jax):
    class Layer:
        def __call__(self, x):
            return jax.lax.tanh(x)

    return jax.jit(Layer()), (f32(3),)


@program("a")
def method_of_an_object(jax):
    class Layer:
        def apply(self, x):
            return jax.lax.tanh(x)

    return jax.jit(Layer().apply), (f32(3),)


@program("a")
def python_scalars_as_arguments(jax):
    @jax.jit
    def combine(x, y, flag):
        return x * y, flag

    return lambda x: combine(x, 2.0, True), (f32(3),)


@program("a")
def weak_and_strong_calls(jax):
    @jax.jit
    def double(x):
        return x + x

    return lambda x, y: (double(x), double(y)), (2.0, f32())


@program("a")
def tree_of_arguments(jax):
    @jax.jit
    def apply(params, x):
        return {"y": params["w"] * x + params["b"], "x": x}

    params = {"w": f32(3), "b": f32(3)}
    return apply, (params, f32(3))


@program("a")
def python_branch_at_tracing(jax):
    @jax.jit
    def branch(x):
        if x.shape[0] > 2:
            return jax.lax.sin(x)
        return jax.lax.cos(x)

    return lambda x, y: (branch(x), branch(y)), (f32(3), f32(2))


@program("a")
def unrolled_loop(jax):
    def unrolled_loop(x):
        for i in range(3):
            x = x * i
        return x

    return unrolled_loop, (f32(3),)


@program("a")
def many_variables(jax):
    def many_variables(x):
        for _ in range(30):
            x = jax.lax.sin(x)
        return x

    return many_variables, (f32(3),)


@program("a")
def make_jaxpr_of_make_jaxpr(jax):
    def outer(x):
        closed = jax.make_jaxpr(lambda y: y + x.shape[0])(x)
        return len(closed.eqns) * x

    return outer, (f32(3),)


@program("a")
def named_function(jax):
    @functools.partial(jax.named_call, name="scaled")
    def inner(x):
        return x * 2.0

    return inner, (f32(3),)


@program("a")
def eval_shape_inside(jax):
    def eval_shape_inside(x):
        shape = jax.eval_shape(lambda y: y[None], x)
        return jax.numpy.zeros(shape.shape, shape.dtype) + x

    return eval_shape_inside, (f32(3),)
