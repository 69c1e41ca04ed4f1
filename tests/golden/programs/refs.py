"""Arrays that change in place: written, read, differentiated, batched, discharged."""

from tests.golden.programs.registry import f32, program


def _updated(jax):
    def updated(x):
        ref = jax.new_ref(x)
        ref[0] = 2.0 * x[1]
        ref.addupdate(x)
        ref[1:] = ref[:2] + 1.0
        return jax.freeze(ref)

    return updated


def _iterated(jax):
    @jax.jit
    def step(ref, x):
        ref[...] = jax.lax.sin(ref[...]) * x

    def iterated(x):
        ref = jax.new_ref(x)
        step(ref, x)
        step(ref, x)
        return ref[...]

    return iterated


def _total(function):
    return lambda x: function(x).sum()


@program("a")
def made_and_frozen(jax):
    return _updated(jax), (f32(3),)


@program("a")
def made_and_frozen_in_jit(jax):
    return jax.jit(_updated(jax)), (f32(3),)


@program("a")
def made_and_frozen_jvp(jax):
    updated = _updated(jax)
    return lambda x, t: jax.jvp(updated, (x,), (t,)), (f32(3), f32(3))


@program("a")
def made_and_frozen_grad(jax):
    return jax.grad(_total(_updated(jax))), (f32(3),)


@program("a")
def made_and_frozen_vmap(jax):
    return jax.vmap(_updated(jax)), (f32(2, 3),)


@program("a")
def made_and_frozen_vmap_of_grad(jax):
    return jax.vmap(jax.grad(_total(_updated(jax)))), (f32(2, 3),)


@program("a")
def passed_to_jit(jax):
    return _iterated(jax), (f32(3),)


@program("a")
def passed_to_jit_jvp(jax):
    iterated = _iterated(jax)
    return lambda x, t: jax.jvp(iterated, (x,), (t,)), (f32(3), f32(3))


@program("a")
def passed_to_jit_grad(jax):
    return jax.grad(_total(_iterated(jax))), (f32(3),)


@program("a")
def passed_to_jit_vmap(jax):
    return jax.vmap(_iterated(jax)), (f32(2, 3),)


@program("a")
def argument(jax):
    def swapped(ref, x):
        old = jax.ref.swap(ref, 1, x[0])
        jax.ref.addupdate(ref, slice(0, 2), x[1:])
        return old, ref[...]

    return swapped, (jax.new_ref(jax.numpy.zeros(3)), f32(3))


@program("a")
def closed_over(jax):
    count = jax.new_ref(jax.numpy.zeros(()))

    @jax.jit
    def counted(x):
        count[...] += 1.0
        return x * count[...]

    return lambda x: counted(x) + counted(x), (f32(3),)


@program("a")
def log_of_a_gradient(jax):
    log = jax.new_ref(jax.numpy.zeros(()))

    def loss(x):
        y = (x * x).sum()
        log[...] = jax.lax.stop_gradient(y)
        return y

    return jax.grad(loss), (f32(3),)


@program("a")
def stashed_cotangent(jax):
    @jax.custom_vjp
    def stash(ref, x):
        return x

    def forward(ref, x):
        return x, ref

    def backward(ref, ct):
        ref[...] = ct
        return None, ct

    stash.defvjp(forward, backward)
    ref = jax.new_ref(jax.numpy.zeros(3))
    return jax.grad(_total(lambda x: jax.lax.sin(stash(ref, x)))), (f32(3),)


@program("a")
def indices_of_every_kind(jax):
    def indexed(x, i):
        ref = jax.new_ref(x)
        ref[i, 1:] = x[0, 1:]
        ref[:, i] = ref[::1, 0]
        return ref[i], ref[0, i], ref[1, :2], ref[...]

    return indexed, (f32(3, 4), 1)


@program("a")
def indices_of_every_kind_vmap(jax):
    def indexed(x, i):
        ref = jax.new_ref(x)
        ref[i, 1:] = x[0, 1:]
        ref[:, i] = ref[::1, 0]
        return ref[i], ref[0, i], ref[1, :2], ref[...]

    return jax.vmap(indexed, in_axes=(0, None)), (f32(2, 3, 4), 1)
