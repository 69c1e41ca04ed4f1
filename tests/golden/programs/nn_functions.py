"""Functions of `jax.nn`, plain and differentiated."""

from tests.golden.programs.registry import boolean, f32, family, i32, program

ACTIVATIONS = """
    celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu log_sigmoid
    mish relu relu6 selu sigmoid silu soft_sign softplus squareplus swish tanh
"""


@family("b", ACTIVATIONS)
def activation(jax, name):
    return getattr(jax.nn, name), (f32(4),)


@family("b", "gelu leaky_relu log_sigmoid relu relu6 silu softplus elu")
def gradient_of(jax, name):
    return jax.grad(lambda x: getattr(jax.nn, name)(x).sum()), (f32(4),)


@family("b", "softmax log_softmax logsumexp standardize")
def normaliser(jax, name):
    return getattr(jax.nn, name), (f32(2, 3),)


@family("b", "softmax log_softmax logsumexp")
def gradient_of_normaliser(jax, name):
    return jax.grad(lambda x: (getattr(jax.nn, name)(x) ** 2).sum()), (f32(2, 3),)


@family("b", "softmax log_softmax relu")
def vmap_of(jax, name):
    return jax.vmap(getattr(jax.nn, name)), (f32(2, 3),)


@program("b")
def gelu_exact(jax):
    return lambda x: jax.nn.gelu(x, approximate=False), (f32(4),)


@program("b")
def softmax_where(jax):
    return lambda x, m: jax.nn.softmax(x, where=m), (f32(2, 3), boolean(2, 3))


@program("b")
def softmax_first_axis(jax):
    return lambda x: jax.nn.softmax(x, axis=0), (f32(2, 3),)


@program("b")
def logsumexp_weighted(jax):
    return lambda x, b: jax.nn.logsumexp(x, b=b, axis=0), (f32(2, 3), f32(2, 3))


@program("b")
def one_hot_of_labels(jax):
    return lambda i: jax.nn.one_hot(i, 4), (i32(3),)


@program("b")
def jit_of_relu_of_dot(jax):
    return jax.jit(lambda w, x: jax.nn.relu(x @ w)), (f32(3, 2), f32(5, 3))


@family("b", "glorot_normal he_uniform lecun_normal zeros normal")
def initializer(jax, name):
    made = getattr(jax.nn.initializers, name)
    make = made if name == "zeros" else made()
    return lambda key: make(key, (3, 2)), (jax.random.key(0),)
