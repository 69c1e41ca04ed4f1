"""The programs with which introductions to JAX begin."""

import numpy as np

from tests.golden.programs.registry import f32, i32, program


def _network(jax, kind):
    jnp = jax.numpy
    sizes = ((4, 5), (5, 3))
    if kind == "list":
        params = [(f32(m, n), f32(n)) for m, n in sizes]

        def layers(params):
            return params

    else:
        params = {
            f"layer{k}": {"w": f32(m, n), "b": f32(n)} for k, (m, n) in enumerate(sizes)
        }

        def layers(params):
            return [(params[k]["w"], params[k]["b"]) for k in sorted(params)]

    def predict(params, inputs):
        for w, b in layers(params):
            outputs = jnp.dot(inputs, w) + b
            inputs = jnp.tanh(outputs)
        return outputs

    def loss(params, inputs, targets):
        predictions = predict(params, inputs)
        return jnp.sum((predictions - targets) ** 2)

    return params, predict, loss


@program("a")
def predict_list(jax):
    params, predict, _ = _network(jax, "list")
    return predict, (params, f32(2, 4))


@program("a")
def predict_dict(jax):
    params, predict, _ = _network(jax, "dict")
    return predict, (params, f32(2, 4))


@program("a")
def loss_list(jax):
    params, _, loss = _network(jax, "list")
    return loss, (params, f32(2, 4), f32(2, 3))


@program("a")
def grad_loss_list(jax):
    params, _, loss = _network(jax, "list")
    return jax.grad(loss), (params, f32(2, 4), f32(2, 3))


@program("a")
def grad_loss_dict(jax):
    params, _, loss = _network(jax, "dict")
    return jax.grad(loss), (params, f32(2, 4), f32(2, 3))


@program("a")
def jit_grad_loss(jax):
    params, _, loss = _network(jax, "list")
    return jax.jit(jax.grad(loss)), (params, f32(2, 4), f32(2, 3))


@program("a")
def per_example_gradients(jax):
    params, _, loss = _network(jax, "list")
    return (
        jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)),
        (params, f32(2, 4), f32(2, 3)),
    )


@program("a")
def jit_per_example_gradients_dict(jax):
    params, _, loss = _network(jax, "dict")
    return (
        jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))),
        (params, f32(2, 4), f32(2, 3)),
    )


@program("a")
def gradient_of_a_line_over_inputs(jax):
    def loss(w, x):
        return jax.numpy.tanh(w * x)

    return jax.vmap(jax.grad(loss), in_axes=(None, 0)), (2.0, f32(3))


@program("a")
def log2(jax):
    jnp = jax.numpy

    def log2(x):
        ln_x = jnp.log(x)
        ln_2 = jnp.log(2.0)
        return ln_x / ln_2

    return log2, (3.0,)


@program("a")
def log2_with_side_effect(jax):
    seen = []

    def log2_with_side_effect(x):
        seen.append(x)
        return jax.numpy.log(x) / jax.numpy.log(2.0)

    return log2_with_side_effect, (3.0,)


@program("a")
def selu(jax):
    jnp = jax.numpy

    def selu(x, alpha=1.67, lmbda=1.05):
        return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

    return jax.jit(selu), (f32(3),)


@program("b")
def safe_softmax(jax):
    jnp = jax.numpy

    def softmax(logits):
        shifted = logits - jnp.max(logits, axis=-1, keepdims=True)
        unnormalised = jnp.exp(shifted)
        return unnormalised / jnp.sum(unnormalised, axis=-1, keepdims=True)

    return jax.jit(softmax), (f32(2, 3),)


@program("b")
def mean_squared_error(jax):
    jnp = jax.numpy

    def loss(params, x, y):
        prediction = jnp.dot(x, params["w"]) + params["b"]
        return jnp.mean((prediction - y) ** 2)

    return (
        jax.value_and_grad(loss),
        ({"w": f32(4), "b": 0.5}, f32(5, 4), f32(5)),
    )


@program("b")
def sgd_step(jax):
    jnp = jax.numpy

    def loss(params, x, y):
        return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)

    @jax.jit
    def step(params, x, y):
        gradients = jax.grad(loss)(params, x, y)
        return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradients)

    return step, ({"w": f32(4), "b": np.float32(0.5)}, f32(5, 4), f32(5))


@program("b")
def cross_entropy_of_one_example(jax):
    def cross_entropy(logits, label):
        return -jax.nn.log_softmax(logits)[label]

    return cross_entropy, (f32(5), np.int32(2))


@program("b")
def cross_entropy_batched(jax):
    def cross_entropy(logits, label):
        return -jax.nn.log_softmax(logits)[label]

    return jax.vmap(cross_entropy), (f32(3, 5), i32(3))


@program("b")
def gradient_of_mean_cross_entropy(jax):
    jnp = jax.numpy

    def cross_entropy(logits, label):
        return -jax.nn.log_softmax(logits)[label]

    def loss(logits, labels):
        return jnp.mean(jax.vmap(cross_entropy)(logits, labels))

    return jax.grad(loss), (f32(3, 5), i32(3))


@program("b")
def contrastive_loss(jax):
    jnp = jax.numpy

    def contrastive(x, y, same, margin=1.0):
        distance = jnp.sqrt(jnp.sum((x - y) ** 2, axis=-1) + 1e-6)
        apart = jnp.maximum(0.0, margin - distance) ** 2
        return jnp.mean(jnp.where(same, distance**2, apart))

    return (
        jax.grad(contrastive),
        (f32(2, 3), f32(2, 3) * 2, np.array([True, False])),
    )


@program("b")
def logistic_regression(jax):
    jnp = jax.numpy

    def sigmoid(x):
        return 0.5 * (jnp.tanh(x / 2) + 1)

    def loss(w, b, x, targets):
        predictions = sigmoid(jnp.dot(x, w) + b)
        chance = predictions * targets + (1 - predictions) * (1 - targets)
        return -jnp.sum(jnp.log(chance))

    return (
        jax.grad(loss, (0, 1)),
        (f32(3), 0.5, f32(4, 3), np.array([1, 0, 1, 1], np.float32)),
    )


@program("b")
def initialise_and_predict(jax):
    jnp = jax.numpy

    def initialise_and_predict(seed, x):
        key = jax.random.key(seed)
        w_key, b_key = jax.random.split(key)
        w = jax.random.normal(w_key, (3, 2)) * 0.1
        b = jax.random.normal(b_key, (2,))
        return jnp.dot(x, w) + b

    return initialise_and_predict, (0, f32(5, 3))


@program("b")
def convolve_by_hand(jax):
    jnp = jax.numpy

    def convolve(x, w):
        output = []
        for i in range(1, len(x) - 1):
            output.append(jnp.dot(x[i - 1 : i + 2], w))
        return jnp.array(output)

    return jax.vmap(convolve, in_axes=(0, None)), (f32(2, 5), f32(3))


@program("a")
def sum_of_logistics(jax):
    jnp = jax.numpy

    def sum_logistic(x):
        return jnp.sum(1.0 / (1.0 + jnp.exp(-x)))

    return jax.grad(sum_logistic), (f32(3),)


@program("a")
def derivative_of_tanh_by_hand(jax):
    jnp = jax.numpy

    def tanh(x):
        y = jnp.exp(-2.0 * x)
        return (1.0 - y) / (1.0 + y)

    return jax.grad(jax.grad(tanh)), (1.0,)
