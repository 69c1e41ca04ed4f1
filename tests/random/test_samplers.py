"""Every sampler against jax: all bits and the jaxpr, from typed and raw keys."""

import jax
import numpy as np
import pytest

import minijax

from .comparison import assert_same_bits, exception_class, jaxpr_text

X = np.arange(12, dtype=np.float32).reshape(4, 3)
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4, 0.0], np.float32)

CASES = []


def case(name, *args, **keywords):
    shown = [str(getattr(arg, "shape", arg)) for arg in args]
    shown += [f"{key}={getattr(v, 'shape', v)}" for key, v in keywords.items()]
    CASES.append(pytest.param(name, args, keywords, id=f"{name}-{','.join(shown)}"))


for _dtype in (None, "float16", "bfloat16"):
    for _name in ("uniform", "normal", "exponential", "gumbel", "laplace"):
        case(_name, (5, 2), _dtype)
for _name in ("logistic", "cauchy", "maxwell"):
    case(_name, (5, 2))
case("normal")
case("normal", (1000, 7))
case("normal", (3,), "complex64")
case("normal", (0, 3))
case("normal", 4)
case("uniform", (2, 3), None, -1.0, 2.0)
case("uniform", (2, 3), None, X[:2], X[:2] + 1)
case("uniform", (2, 3), minval=0, maxval=4)
for _dtype in (None, "int8", "uint8", "uint32", "int16"):
    case("randint", (7,), 0, 100, _dtype)
    case("randint", (2, 3), np.arange(3), np.arange(3) * 2 + 1, _dtype)
case("randint", (3,), 0, 256, "uint8")
case("randint", (3,), 5, 5)
case("randint", (3,), 0.0, 7.5)
for _dtype in (None, "uint8", "uint16", "uint32"):
    case("bits", (5,), _dtype)
case("bits")
case("truncated_normal", -1.0, 2.0)
case("truncated_normal", -1.0, 2.0, (4,))
case("truncated_normal", X - 5, X, (4, 3), "float32")
case("bernoulli")
case("bernoulli", 0.3, (4,))
case("bernoulli", X / 12)
case("bernoulli", X / 12, (2, 4, 3), mode="high")
case("permutation", 10)
case("permutation", 0)
case("permutation", np.arange(5))
case("permutation", np.arange(70000))
case("permutation", X)
case("permutation", X, 1)
case("permutation", X, axis=1, independent=True)
case("choice", 5)
case("choice", 5, (3,))
case("choice", X, (2,), axis=1)
case("choice", X, (2,), False)
case("choice", 5, (3,), False, WEIGHTS)
case("choice", X, (0,))
case("gumbel", (3, 2), None, "high")
case("gumbel", (3, 2), None, "highest")
case("categorical", X)
case("categorical", X, 0)
case("categorical", X, -1, (5, 4))
case("categorical", X, 1, (2, 4), False)
case("categorical", X, mode="high")
case("rademacher", (6,))
case("rademacher", (6,), "float32")
case("double_sided_maxwell", 1.0, 2.0, (3,))
case("weibull_min", 2.0, 3.0, (3,))
case("pareto", 2.0, (3,))
case("pareto", X + 1)
case("rayleigh", X)
case("wald", X + 1)
case("geometric", 0.3, (4,))
case("geometric", X / 13 + 0.01, None, "int16")
case("triangular", 0.0, 0.5, 1.0, (4,))
case("triangular", -X, 0.0, X + 1)
case("lognormal")
case("lognormal", 0.5, (3,))
case("lognormal", X, None, "float32")


def make_key(library, kind):
    if kind == "typed":
        return library.random.key(3)
    return library.random.PRNGKey(3)


@pytest.mark.parametrize("name, args, keywords", CASES)
def test_bits_and_jaxpr(name, args, keywords):
    ours, theirs = getattr(minijax.random, name), getattr(jax.random, name)
    for kind in ("typed", "raw"):
        key, jax_key = make_key(minijax, kind), make_key(jax, kind)
        assert_same_bits(
            ours(key, *args, **keywords), theirs(jax_key, *args, **keywords)
        )
        text = jaxpr_text(minijax.make_jaxpr(lambda k: ours(k, *args, **keywords))(key))
        expected = jax.make_jaxpr(lambda k: theirs(k, *args, **keywords))(jax_key)
        assert text == jaxpr_text(expected)


@pytest.mark.turns(3)
@pytest.mark.full_optimisation
def test_bits_as_users_compile():
    """Of one sampler of each kind; `make test-all` compiles all of them so."""

    def drawn(library):
        r, key = library.random, library.random.key(3)
        gamma = r.gamma(key, np.array([0.05, 1.0, 20.0], np.float32))
        return (
            *(r.uniform(key, (5, 2)), r.normal(key, (1000, 7)), gamma),
            *(r.randint(key, (7,), 0, 100), r.permutation(key, X)),
            *(r.truncated_normal(key, -1.0, 2.0, (4,)), r.poisson(key, 4.0, (20,))),
        )

    for ours, theirs in zip(drawn(minijax), drawn(jax)):
        assert_same_bits(ours, theirs)


def test_choice_by_weight_with_replacement():
    # The jaxpr depends on how searchsorted is made; the numbers do not.
    for population, p in ((5, WEIGHTS), (X[:, 0], WEIGHTS[:4])):
        assert_same_bits(
            minijax.random.choice(minijax.random.key(3), population, (2, 2), p=p),
            jax.random.choice(jax.random.key(3), population, (2, 2), p=p),
        )


@pytest.mark.parametrize("name", ["normal", "uniform", "bits", "exponential"])
def test_under_jit_vmap_and_grad(name):
    def program(library):
        sampler = getattr(library.random, name)
        keys = library.random.split(library.random.key(1), 4)
        rows = library.vmap(lambda k: sampler(k, (3,)))(keys)
        jitted = library.jit(lambda k: sampler(k, (3,)))(keys[0])
        nested = library.vmap(library.vmap(sampler))(keys.reshape(2, 2))
        return rows, jitted, nested

    for ours, theirs in zip(program(minijax), program(jax)):
        assert_same_bits(ours, theirs)


def test_gradients_of_parameters():
    def program(library):
        def loss(p):
            low, high = p
            key = library.random.key(2)
            drawn = library.random.uniform(key, (4,), minval=low, maxval=high)
            cut = library.random.truncated_normal(key, low, high, (4,))
            return (drawn + cut).sum()

        return library.grad(loss)((0.5, 2.0))

    for ours, theirs in zip(program(minijax), program(jax)):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5)


ERRORS = {
    "int-dtype-normal": lambda r, k: r.normal(k, (2,), "int32"),
    "int-dtype-uniform": lambda r, k: r.uniform(k, (2,), "int32"),
    "float-dtype-randint": lambda r, k: r.randint(k, (2,), 0, 5, "float32"),
    "randint-shapes": lambda r, k: r.randint(k, (2,), np.arange(3), 5),
    "signed-bits": lambda r, k: r.bits(k, (2,), "int32"),
    "bernoulli-int": lambda r, k: r.bernoulli(k, 1),
    "bernoulli-mode": lambda r, k: r.bernoulli(k, 0.5, mode="x"),
    "permutation-of-float": lambda r, k: r.permutation(k, 2.0),
    "permutation-axis": lambda r, k: r.permutation(k, X, 2),
    "choice-too-many": lambda r, k: r.choice(k, 3, (5,), False),
    "choice-shape": lambda r, k: r.choice(k, 3, 5),
    "choice-empty": lambda r, k: r.choice(k, 0, (2,)),
    "choice-weights": lambda r, k: r.choice(k, 3, (2,), p=np.ones(2)),
    "choice-weight": lambda r, k: r.choice(k, 3, (2,), p=0.5),
    "multinomial-weight": lambda r, k: r.multinomial(k, 3.0, 0.5),
    "gumbel-mode": lambda r, k: r.gumbel(k, mode="z"),
    "categorical-too-many": lambda r, k: r.categorical(k, X, 1, (9, 4), False),
    "categorical-shape": lambda r, k: r.categorical(k, X, shape=(3,)),
    "geometric-float": lambda r, k: r.geometric(k, 0.5, dtype="float32"),
    "truncated-int": lambda r, k: r.truncated_normal(k, 0.0, 1.0, dtype="int32"),
    "shape-of-floats": lambda r, k: r.normal(k, (2.5,)),
    "uniform-shapes": lambda r, k: r.uniform(k, (2,), None, np.zeros(3)),
    "no-such-dtype": lambda r, k: r.normal(k, (2,), "foo"),
    "truncated-shapes": lambda r, k: r.truncated_normal(k, np.zeros(2), np.zeros(3)),
    "several-keys": lambda r, k: r.normal(r.split(k)),
    "key-is-a-list": lambda r, k: r.normal([0, 1]),
    "key-is-a-number": lambda r, k: r.normal(5),
    "key-is-none": lambda r, k: r.normal(None),
    "key-of-three-words": lambda r, k: r.normal(np.zeros(3, np.uint32)),
    "key-of-ints": lambda r, k: r.normal(np.zeros(2, np.int32)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_same_exception(name):
    def run(library):
        return lambda: ERRORS[name](library.random, library.random.key(0))

    expected = exception_class(run(jax))
    assert expected is not None
    assert exception_class(run(minijax)) == expected


def test_same_numbers_whatever_the_layout_of_calls():
    # One element does not depend on how many are drawn after it.
    key = minijax.random.key(9)
    few = np.asarray(minijax.random.bits(key, (3,)))
    many = np.asarray(minijax.random.bits(key, (300,)))
    np.testing.assert_array_equal(few, many[:3])


def test_negative_sizes_are_refused():
    # jax fails here only when the program is built, with an error of MLIR's.
    with pytest.raises(ValueError, match="negative"):
        minijax.random.normal(minijax.random.key(0), (-1,))


@pytest.mark.parametrize(
    "program",
    [
        lambda jax, k: jax.random.normal(k, (100, 7)) * 0.1 + 0.3,
        lambda jax, k: (jax.random.normal(k, (100, 7)) ** 2).sum(1),
        lambda jax, k: jax.random.uniform(k, (700,), minval=-0.3, maxval=0.7) * 1.1,
        lambda jax, k: jax.nn.softmax(jax.random.normal(k, (10, 7)) * 3.0 + 1.0),
    ],
)
def test_same_bits_inside_larger_programs(program):
    # What is fused with a sampler must be rounded as in jax too.
    def run(jax):
        return jax.jit(lambda k: program(jax, k))(jax.random.key(3))

    assert_same_bits(run(minijax), run(jax))


def test_moments():
    # A check that does not lean on jax.
    x = np.asarray(minijax.random.normal(minijax.random.key(0), (100_000,)))
    assert abs(x.mean()) < 0.01
    assert abs(x.std() - 1) < 0.01
    counts = np.bincount(
        np.asarray(minijax.random.randint(minijax.random.key(1), (60_000,), 0, 6))
    )
    assert np.abs(counts - 10_000).max() < 500
