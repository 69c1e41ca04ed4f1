"""The programs with which introductions to JAX begin run as written, only the import
changed, and give JAX's values."""

import functools

import jax
import numpy as np
import pytest

from tests.oracle.oracle import assert_same, to_numpy

minijax = pytest.importorskip("minijax")

INPUTS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
TARGETS = np.linspace(0, 1, 6, dtype=np.float32).reshape(3, 2)


def layer_sizes(random, key, jnp):
    """Parameters of a network of two layers, as an introduction writes them."""
    params = []
    for m, n in ((4, 5), (5, 2)):
        key, w_key, b_key = random.split(key, 3)
        params.append((0.5 * random.normal(w_key, (m, n)), random.normal(b_key, (n,))))
    return params


def list_network(jax):
    jnp = jax.numpy
    params = layer_sizes(jax.random, jax.random.key(0), jnp)

    def predict(params, inputs):
        for W, b in params:
            outputs = jnp.dot(inputs, W) + b
            inputs = jnp.tanh(outputs)
        return outputs

    def loss(params, inputs, targets):
        preds = predict(params, inputs)
        return jnp.sum((preds - targets) ** 2)

    return params, predict, loss


def dict_network(jax):
    jnp = jax.numpy
    pairs = layer_sizes(jax.random, jax.random.key(1), jnp)
    params = {f"layer{k}": {"w": w, "b": b} for k, (w, b) in enumerate(pairs)}

    def predict(params, inputs):
        for name in sorted(params):
            outputs = jnp.dot(inputs, params[name]["w"]) + params[name]["b"]
            inputs = jnp.maximum(outputs, 0)
        return outputs

    def loss(params, inputs, targets):
        return jnp.mean((predict(params, inputs) - targets) ** 2)

    return params, predict, loss


@pytest.mark.parametrize("network", [list_network, dict_network])
@pytest.mark.parametrize(
    "use",
    ["predict", "jit_predict", "grad", "jit_grad", "per_example", "jit_per_example"],
)
def test_predict_and_loss(network, use):
    def program(jax):
        params, predict, loss = network(jax)
        if use.endswith("predict"):
            fun = jax.jit(predict) if use.startswith("jit") else predict
            return fun(params, INPUTS)
        fun = jax.grad(loss)
        if use.endswith("per_example"):
            fun = jax.vmap(fun, in_axes=(None, 0, 0))
        if use.startswith("jit"):
            fun = jax.jit(fun)
        return fun(params, INPUTS, TARGETS)

    assert_same(program, minijax, jax)


def test_gradient_over_inputs():
    def program(jax):
        def loss(w, x):
            return jax.numpy.tanh(jax.numpy.dot(w, x)) ** 2

        gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0))
        w = jax.numpy.arange(4.0)
        return gradients(w, INPUTS), jax.jit(gradients)(w, INPUTS)

    assert_same(program, minijax, jax)


def test_jaxpr_of_log2():
    import minijax.numpy as jnp

    def log2(x):
        ln_x = jnp.log(x)
        ln_2 = jnp.log(2.0)
        return ln_x / ln_2

    # As JAX's chapter on side effects prints it, but for the names of versions past.
    def theirs(x):
        return jax.numpy.log(x) / jax.numpy.log(2.0)

    ours = str(minijax.make_jaxpr(log2)(3.0))
    assert ours == str(jax.make_jaxpr(theirs)(3.0))
    assert "log" in ours and "div" in ours


def test_safe_softmax():
    def program(jax):
        jnp = jax.numpy

        @jax.jit
        def softmax(logits):
            shifted = logits - logits.max(axis=-1, keepdims=True)
            exponentials = jnp.exp(shifted)
            return exponentials / exponentials.sum(axis=-1, keepdims=True)

        return softmax(np.array([[1000.0, 1001.0], [-5.0, 0.0]], np.float32))

    assert_same(program, minijax, jax)


def test_mean_squared_error_descends():
    def program(jax):
        jnp = jax.numpy

        def loss(params, x, y):
            prediction = x @ params["w"] + params["b"]
            return jnp.mean((prediction - y) ** 2)

        @jax.jit
        def step(params, x, y):
            value, gradients = jax.value_and_grad(loss)(params, x, y)
            params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
            return params, value

        params = {"w": jnp.zeros(4), "b": 0.0}
        x, y = jnp.asarray(INPUTS), jnp.asarray(TARGETS[:, 0])
        values = []
        for _ in range(10):
            params, value = step(params, x, y)
            values.append(value)
        return params, values

    assert_same(program, minijax, jax)
    _, values = program(minijax)
    assert values[-1] < 0.5 * values[0]


def test_cross_entropy_with_traced_label():
    labels = np.array([0, 1, 1])

    def program(jax):
        def cross_entropy(logits, label):
            log_probabilities = logits - jax.nn.logsumexp(logits)
            return -log_probabilities[label]

        logits = jax.numpy.asarray(TARGETS)
        batched = jax.vmap(cross_entropy)

        def mean_loss(logits):
            return batched(logits, labels).mean()

        return (
            batched(logits, labels),
            jax.jit(batched)(logits, labels),
            jax.grad(mean_loss)(logits),
        )

    assert_same(program, minijax, jax)


def test_contrastive_loss():
    def program(jax):
        jnp = jax.numpy

        def contrastive(a, b, same, margin=1.0):
            distance = jnp.linalg.norm(a - b, axis=-1)
            near = distance**2
            far = jnp.maximum(0.0, margin - distance) ** 2
            return jnp.mean(jnp.where(same, near, far))

        a, b = INPUTS, INPUTS[::-1] + 0.25
        same = np.array([True, False, False])
        return jax.value_and_grad(contrastive)(a, b, same), jax.jit(contrastive)(
            a, b, same
        )

    assert_same(program, minijax, jax)


def test_random_numbers_are_the_same_bits():
    def program(jax):
        key = jax.random.key(42)
        key, subkey = jax.random.split(key)
        raw = jax.random.split(jax.random.PRNGKey(7), 3)
        return (
            jax.random.normal(subkey, (5,)),
            key,
            raw,
            jax.random.uniform(key, (2, 3)),
        )

    ours, theirs = program(minijax), program(jax)
    for our_leaf, their_leaf in zip(ours, theirs, strict=True):
        assert to_numpy(our_leaf).tobytes() == to_numpy(their_leaf).tobytes()


def test_print_happens_once(capsys):
    @minijax.jit
    def double(x):
        print("tracing", x.shape)
        return x * 2

    for _ in range(3):
        double(INPUTS)
    assert capsys.readouterr().out == "tracing (3, 4)\n"


def test_cache_misses_on_shape_and_dtype_only():
    traced = []

    @minijax.jit
    def double(x):
        traced.append((x.shape, str(x.dtype)))
        return x * 2

    double(np.ones(3, np.float32))
    double(np.zeros(3, np.float32))
    double(minijax.numpy.arange(3.0))
    assert len(traced) == 1
    double(np.ones(4, np.float32))
    double(np.ones(3, np.int32))
    assert traced == [((3,), "float32"), ((4,), "float32"), ((3,), "int32")]
    double(np.ones(4, np.float32))
    double(np.ones(3, np.int32))
    assert len(traced) == 3


def test_static_argument_retraces():
    traced = []

    @functools.partial(minijax.jit, static_argnums=1)
    def power(x, n):
        traced.append(n)
        return x**n

    results = [power(2.0, n) for n in (3, 3, 2)]
    assert traced == [3, 2]
    assert [float(result) for result in results] == [8.0, 8.0, 4.0]


def test_jit_of_selu():
    def program(jax):
        jnp = jax.numpy

        def selu(x, alpha=1.67, lmbda=1.05):
            return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

        x = jnp.arange(5.0)
        return selu(x), jax.jit(selu)(x), jax.grad(lambda x: selu(x).sum())(x)

    assert_same(program, minijax, jax)


def test_hessian_of_a_sum_of_logistics():
    def program(jax):
        def sum_logistic(x):
            return jax.numpy.sum(1.0 / (1.0 + jax.numpy.exp(-x)))

        x = jax.numpy.arange(3.0)
        return jax.grad(sum_logistic)(x), jax.hessian(sum_logistic)(x)

    assert_same(program, minijax, jax)


def test_convolution_batched_by_vmap():
    def program(jax):
        jnp = jax.numpy

        def convolve(x, w):
            return jnp.array([jnp.dot(x[i - 1 : i + 2], w) for i in range(1, 4)])

        xs = jnp.stack([jnp.arange(5.0), jnp.ones(5)])
        ws = jnp.array([[2.0, 3.0, 4.0], [1.0, 1.0, 1.0]])
        return jax.vmap(convolve)(xs, ws), jax.vmap(convolve, (0, None))(xs, ws[0])

    assert_same(program, minijax, jax)


def test_functional_updates():
    def program(jax):
        x = jax.numpy.arange(6.0).reshape(2, 3)
        y = x.at[0].set(10.0).at[:, 1].add(x[:, 0])
        return x, y, x.at[1].get(), x.at[np.array([0, 0]), 1].add(1.0)

    assert_same(program, minijax, jax)


def test_argument_is_a_python_scalar_and_stays_weak():
    def program(jax):
        return jax.jit(lambda x: x * np.float16(2))(3.0), jax.numpy.add(1, 2)

    assert_same(program, minijax, jax)
