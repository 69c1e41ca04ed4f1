"""Calls of Python: pure, with side effects, for looking on; what becomes of them."""

import numpy as np

from tests.golden.programs.registry import f32, family, program


def _host(x):
    return np.sin(x)


def _pure(jax, vmap_method=None):
    def pure(x):
        kind = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(_host, kind, x, vmap_method=vmap_method)

    return pure


@program("a")
def pure(jax):
    return _pure(jax), (f32(3),)


@program("a")
def pure_with_trees(jax):
    def call(x, y):
        kind = {"a": jax.ShapeDtypeStruct((), x.dtype), "b": [x, None]}
        out = jax.pure_callback(lambda tree, *, k: tree, kind, (x, [y]), k=x)
        return out["a"] + out["b"][0]

    return jax.jit(call), (f32(3), f32(2))


@family(
    "a", "sequential sequential_unrolled expand_dims broadcast_all legacy_vectorized"
)
def batched(jax, name):
    def call(x, y):
        kind = jax.ShapeDtypeStruct((3,), x.dtype)
        return jax.pure_callback(_host, kind, x, y, vmap_method=name)

    return jax.vmap(call, in_axes=(1, None)), (f32(3, 2), f32(3))


@program("a")
def pure_with_custom_jvp(jax):
    sine = jax.custom_jvp(_pure(jax, "expand_dims"))

    @sine.defjvp
    def sine_jvp(primals, tangents):
        (x,), (t,) = primals, tangents
        return sine(x), t * _pure(jax, "expand_dims")(x + 1.5)

    return jax.vmap(jax.grad(lambda x: sine(x) * 2.0)), (f32(3),)


def _io(jax, ordered):
    def io(x):
        kind = jax.ShapeDtypeStruct((), x.dtype)
        return jax.experimental.io_callback(np.sum, kind, x, ordered=ordered)

    return io


@program("a")
def io(jax):
    return jax.jit(lambda x: _io(jax, False)(x) + 1.0), (f32(3),)


@program("a")
def io_ordered_in_scan(jax):
    def step(carry, row):
        return carry + _io(jax, True)(row), row * carry

    return lambda x: jax.lax.scan(step, np.float32(0.0), x), (f32(4, 3),)


@program("a")
def io_batched(jax):
    return jax.vmap(_io(jax, False), in_axes=1), (f32(3, 4),)


def _printing(jax, ordered=False):
    def printing(x):
        jax.debug.print("{} {y} {}", x, "text", y=2.0 * x, ordered=ordered)
        y = jax.lax.sin(x)
        jax.debug.callback(_host, y, ordered=ordered)
        return y * x

    return printing


@program("a")
def printed(jax):
    return jax.jit(_printing(jax)), (f32(3),)


@program("a")
def printed_jvp(jax):
    printing = _printing(jax, ordered=True)
    return lambda x, t: jax.jvp(printing, (x,), (t,)), (f32(3), f32(3))


@program("a")
def printed_grad(jax):
    return jax.grad(lambda x: jax.jit(_printing(jax))(x).sum()), (f32(3),)


@program("a")
def printed_vmap(jax):
    return jax.vmap(_printing(jax)), (f32(2, 3),)


@program("a")
def printed_grad_of_checkpoint(jax):
    printing = jax.checkpoint(_printing(jax))
    return jax.grad(lambda x: printing(x).sum()), (f32(3),)


@program("a")
def printed_in_branches(jax):
    def yes(x):
        jax.debug.print("yes", ordered=True)
        return x

    return lambda p, x: jax.lax.cond(p > 0.0, yes, _printing(jax), x), (f32(), f32(3))


@program("a")
def printed_refs(jax):
    def printing(x):
        ref = jax.new_ref(x)
        jax.debug.print("{}", ref)
        ref[0] = 1.0
        jax.debug.print("{}", ref[...])
        return jax.freeze(ref)

    return printing, (f32(3),)
