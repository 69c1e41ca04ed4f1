"""`checkpoint` with its policies and names, under the other transformations."""

import functools

from tests.golden.programs.registry import f32, family, program


def _name(jax, x, name):
    if jax.__name__ == "minijax":
        from minijax.programs.checkpointing import checkpoint_name
    else:
        from jax.ad_checkpoint import checkpoint_name
    return checkpoint_name(x, name)


def _sines(jax):
    return jax.checkpoint(lambda x: jax.lax.sin(jax.lax.sin(x)))


def _layer(jax, policy=None, **options):
    @functools.partial(jax.checkpoint, policy=policy, **options)
    def layer(w, x):
        y = _name(jax, jax.numpy.sin(w @ x), "inner")
        return _name(jax, jax.numpy.cos(w @ y), "outer")

    return layer


def _total(function):
    return lambda *args: function(*args).sum()


@program("a")
def alone(jax):
    return _sines(jax), (f32(3),)


@program("a")
def under_jvp(jax):
    sines = _sines(jax)
    return lambda x, t: jax.jvp(sines, (x,), (t,)), (f32(3), f32(3))


@program("a")
def under_grad(jax):
    return jax.grad(_total(_sines(jax))), (f32(3),)


@program("a")
def under_grad_twice(jax):
    return jax.grad(jax.grad(_sines(jax))), (1.0,)


@program("a")
def under_vmap(jax):
    return jax.vmap(_sines(jax)), (f32(2, 3),)


@program("a")
def under_vmap_of_grad(jax):
    return jax.vmap(jax.grad(_total(_sines(jax)))), (f32(2, 3),)


@program("a")
def under_grad_of_jit(jax):
    return jax.grad(jax.jit(_total(_sines(jax)))), (f32(3),)


@family(
    "a",
    "everything_saveable nothing_saveable dots_saveable"
    " dots_with_no_batch_dims_saveable",
)
def policy(jax, name):
    layer = _layer(jax, getattr(jax.checkpoint_policies, name))
    return jax.grad(_total(layer), argnums=(0, 1)), (f32(3, 3), f32(3))


@family("a", "save_only_these_names save_any_names_but_these")
def names(jax, name):
    layer = _layer(jax, getattr(jax.checkpoint_policies, name)("inner"))
    return jax.grad(_total(layer), argnums=(0, 1)), (f32(3, 3), f32(3))


@program("a")
def two_layers(jax):
    layer = _layer(jax)
    return jax.grad(_total(lambda w, x: layer(w, layer(w, x)))), (f32(3, 3), f32(3))


@program("a")
def nested(jax):
    sines = _sines(jax)
    outer = jax.checkpoint(lambda x: sines(jax.lax.cos(sines(x))))
    return jax.grad(_total(outer)), (f32(3),)


@program("a")
def with_inner_jit(jax):
    inner = jax.jit(lambda x: jax.lax.sin(x) * x)
    f = jax.checkpoint(lambda x: inner(jax.lax.cos(x)))
    return jax.grad(_total(f)), (f32(3),)


@program("a")
def without_barrier(jax):
    f = jax.checkpoint(jax.numpy.sin, prevent_cse=False)
    return jax.grad(_total(f)), (f32(3),)


@program("a")
def with_some_barriers(jax):
    f = jax.checkpoint(lambda x, y: jax.lax.sin(x * y), prevent_cse=(True, False))
    return jax.grad(_total(f), argnums=(0, 1)), (f32(3), f32(3))


@program("a")
def closing_over_values(jax):
    fixed = jax.numpy.ones(3)

    def loss(x):
        return jax.checkpoint(lambda y: jax.lax.sin(y * fixed * x))(x).sum()

    return jax.grad(loss), (f32(3),)


@program("a")
def with_a_ref(jax):
    @jax.checkpoint
    def f(x):
        ref = jax.new_ref(x)
        ref[0] = jax.lax.sin(x[1])
        return ref[...] * x

    return jax.grad(_total(f)), (f32(3),)
