"""Arrays of 64 bits, made in 64-bit mode, that are used after it is off again."""

import jax
import numpy as np
import pytest

from tests.oracle.oracle import assert_same

minijax = pytest.importorskip("minijax")
pytest.importorskip("minijax.extend")

OF_ALL = """
X + 1;  X * 2.0;  2.0 - X;  X / 2;  X ** 2;  2 ** X;  -X;  X + X;  X < 2;  X == X
X + np.float64(1);  X + np.ones(3);  X + ones;  ones * X;  X > ones
X[0];  X[1:];  X[jnp.array([0, 1])];  X.at[0].set(5);  X.at[1].add(X[0]);  list(X)
X.sum();  X.prod();  X.max();  X.mean();  X.cumsum();  jnp.sort(X);  jnp.argsort(X)
jnp.where(X > 1, X, 0);  jnp.where(mask, 1, X);  jnp.maximum(X, 0);  X.astype("int32")
jnp.sin(X);  lax.add(X, X);  lax.max(X, X);  lax.full_like(X, 1);  jnp.zeros_like(X)
lax.cumsum(X);  jnp.pad(X, 1);  lax.integer_pow(X, 3);  jnp.concatenate([X, ones])
jnp.stack([X, X]);  jnp.array([X[0], X[1]]);  jnp.asarray([X, X]);  jnp.cross(X, X)
jnp.diag(X);  jnp.outer(X, X);  jnp.dot(X, X);  jnp.unique(X);  jnp.allclose(X, X)
jax.jit(lambda: X)();  jax.jit(lambda x: x + 1)(X);  jax.jit(lambda y: X * y)(2.0)
jax.jit(lambda x: x.sum())(X);  jax.vmap(lambda x: x * 2.0)(X);  X.imag;  X.copy()
jax.vmap(lambda i: X[i])(jnp.arange(2));  jax.jvp(lambda x: x + 1, (ones,), (ones,))
lax.scan(lambda c, x: (c + 1, x), 0, X);  lax.map(lambda x: x * 2, X)
lax.scan(lambda c, x: (c + x, c * x), X[0], X);  lax.associative_scan(lax.add, X)
lax.while_loop(lambda c: c[0] < 5, lambda c: lax.add(c, c), X)
lax.cond(True, lambda x: x + 1, lambda x: x * 2, X);  jnp.angle(X);  jnp.diff(X)
jax.device_put(X);  jax.device_get(X);  jnp.asarray(X)
jnp.zeros(1, jnp.result_type(X, ones))
jax.random.choice(key, X);  jax.random.permutation(key, X);  jnp.histogram(X)
jax.nn.softmax(X);  jnp.linspace(ones[0], ones[1], 3);  jnp.take(X, 1)
jax.tree.map(lambda x: x + 1, {"a": X})
jnp.zeros(1, jax.eval_shape(lambda x: x + 1, X).dtype)
"""
OF_FLOATS = """
jax.random.gamma(key, X);  jax.random.bernoulli(key, X / 7);  jnp.sinc(X)
jax.random.uniform(key, (3,), minval=X);  jnp.gradient(X);  jax.jacrev(lambda x: x*2)(X)
lax.logistic(X);  lax.reduce_sum(X, (0,));  lax.dynamic_slice(X, (0,), (2,))
jax.hessian(lambda x: (x ** 3).sum())(X);  jax.value_and_grad(jnp.sum)(X)
jax.vmap(jax.grad(lambda x: x ** 2))(X);  jax.grad(jax.jit(jnp.sum))(X)
jax.grad(jax.checkpoint(lambda x: jnp.sin(x).sum()))(X)
jax.linearize(jnp.sin, X)[1](X)
jax.grad(lambda x: lax.scan(lambda c, y: (c * y, c + 1), x[0], x)[0])(X)
jax.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x[i], x[0]))(X)
jax.grad(lambda x: jnp.where(x > 1, x, 0.0).sum())(X);  jax.grad(lambda x: x[0] ** 3)(X)
jax.grad(lambda x: lax.dynamic_update_slice(x, x[:1], (1,)).sum())(X)
jax.grad(lambda x: lax.reduce_window(x, 0., lax.add, (2,), (1,), "VALID").sum())(X)
jax.grad(lambda x: lax.conv(x[None, None], x[None, None], (1,), "SAME").sum())(X)
""" + "\n".join(
    f"jax.grad(lambda x: {body}.sum())(X)"
    for body in """
    (x*x) (x*2.0) x[:2] jnp.prod(x) jnp.max(x) jnp.exp(x) jnp.log(x) jnp.sqrt(x)
    jnp.tanh(x) jnp.cumsum(x) jnp.sort(x)[1:] x.std() lax.pow(x,x) lax.rsqrt(x)
    jax.nn.gelu(x) jax.nn.softmax(x)[:1] jax.nn.logsumexp(x) lax.erf(x) lax.lgamma(x)
    lax.erf_inv(x/7) lax.atan2(x,x) lax.asin(x/7) lax.acosh(x+7) lax.log1p(x)
    lax.cbrt(x) lax.abs(x) lax.logistic(x) lax.tan(x) lax.digamma(x) x.at[0].mul(3)
    lax.clamp(0.,x,2.)
    """.split()
)


def expressions(text):
    return [part.strip() for part in text.replace("\n", ";").split(";") if part.strip()]


def outside(expression, values, dtype, weak=False):
    """A program: `expression` outside of 64-bit mode, of an array made in the mode."""

    def program(jax):
        with jax.enable_x64(True):
            X = jax.numpy.asarray(values, dtype)
            X = jax.lax.full((3,), values[0]) if weak else X
        names = {
            "jax": jax,
            "jnp": jax.numpy,
            "lax": jax.lax,
            "np": np,
            "X": X,
            "key": jax.random.key(0),
            "ones": jax.numpy.ones(3, "float32"),
            "mask": jax.numpy.array([True, False, True]),
        }
        with jax.enable_x64(False):
            return eval(expression, names)

    return program


def of_sum(text):
    return f"jax.grad(lambda x: {text}.sum())(X)"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", expressions(OF_ALL + OF_FLOATS))
def test_floats(expression):
    assert_same(
        outside(expression, [1.0, 2.0, 3.0], "float64"), minijax, jax, whole=False
    )


@pytest.mark.repeats
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", expressions(OF_ALL))
def test_integers(expression):
    assert_same(outside(expression, [1, 2, 3], "int64"), minijax, jax, whole=False)


WEAK = "X + 1;  X + X;  X * ones;  X[0];  jnp.stack([X, X]);  jnp.outer(X, X);  -X;"
WEAK += "X.sum();  jnp.where(X > 1, X, 0);  jnp.allclose(X, X);  jnp.diff(X);  list(X)"
WEAK += ";jax.grad(lambda x: jnp.tanh(x).sum())(X);  jax.vmap(lambda x: X * x)(X)"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", expressions(WEAK))
def test_weak_floats(expression):
    assert_same(
        outside(expression, [1.0], "float64", weak=True), minijax, jax, whole=False
    )


COMPLEX = "X + 1;  X * X;  X.sum();  jnp.abs(X);  jnp.exp(X);  lax.mul(X, X);  X.real"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", expressions(COMPLEX))
def test_complex_numbers(expression):
    assert_same(
        outside(expression, [1 + 2j, 2, 3], "complex128"), minijax, jax, whole=False
    )


def test_a_constant_is_a_literal_of_its_dtype():
    with minijax.enable_x64(True):
        x = minijax.numpy.array([1.0, 2.0])
    jaxpr = minijax.make_jaxpr(minijax.grad(lambda x: minijax.numpy.tanh(x).sum()))(x)
    assert "sub 1.0:f64[]" in str(jaxpr)
    assert minijax.jit(minijax.extend.core.jaxpr_as_fun(jaxpr))(x)[0].dtype == "float64"


FOREIGN = """
jnp.asarray(x);  x + jnp.ones(3);  lax.sin(x);  jax.jit(lambda x: x)(x);  jax.typeof(x)
jax.device_put(x);  jax.make_jaxpr(lambda x: x)(x);  jax.vmap(lambda x: x)(x)
lax.scan(lambda c, y: (c, y), 0.0, x);  jnp.asarray(x, dtype="float32");  jnp.ones(3)[x]
jnp.frombuffer(x.tobytes(), x.dtype);  jax.nn.relu(x);  jnp.asarray(x[1])
jax.eval_shape(lambda x: x, x);  jax.grad(lambda y: (y * x).sum())(jnp.ones(3))
"""


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i4", "longdouble", "clongdouble"])
@pytest.mark.parametrize("expression", expressions(FOREIGN))
def test_dtypes_that_xla_does_not_know(expression, dtype):
    """JAX refuses such arrays with a TypeError; NumPy's scalars have our byte order."""
    names = {"x": np.arange(3).astype(dtype)}

    def program(jax):
        return eval(expression, names | {"jax": jax, "jnp": jax.numpy, "lax": jax.lax})

    assert_same(program, minijax, jax, whole=False)


WIDER = """jnp.asarray(x);  jax.device_put(x);  jnp.sin(x);  lax.sin(x)
jnp.ones(3) + x;  jax.jit(lambda y: y)(x);  jax.grad(lambda y: y.sum())(x)
jax.vmap(lambda y: y)(x)"""


@pytest.mark.parametrize("expression", expressions(WIDER))
def test_a_wider_dtype_is_named_and_the_way_out(expression):
    x = np.ones(3, np.longdouble)
    names = {"x": x, "jax": minijax, "jnp": minijax.numpy, "lax": minijax.lax}
    with pytest.raises(TypeError, match=r"dtype float128.*x\.astype\(float\)"):
        eval(expression, names)


def test_the_byte_order_is_named():
    with pytest.raises(TypeError, match="byte order.*newbyteorder"):
        minijax.jit(lambda x: x)(np.arange(3).astype(">f4"))
