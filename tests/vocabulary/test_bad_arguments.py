"""Arguments of the wrong kind: one sentence that names the argument, or what it is.

JAX refuses each of these calls too, most of them with an error of an inner line. Only
where its class says more than that (an IndexError for an axis) is the class JAX's.
"""

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax import scipy as sp
from minijax.nn import initializers
from minijax.sharding import SingleDeviceSharding

V, A = np.arange(3, dtype=np.float32), np.ones((3, 3), np.float32)
SHAPE, KEY = (3, 4), minijax.random.key(0)
TREE, IMAGE = minijax.tree.structure((0, 0)), np.ones((1, 1, 4, 4), np.float32)
VECTOR, MATRIX = "must have 1 dimension, got", "must have at least 2 dimensions, got"

# What is called, the class of its error, and a part of the sentence.
CALLS = {
    # Ranks: `check_rank` of numpy/arguments.py.
    "searchsorted": (lambda: jnp.searchsorted(A, V), ValueError, f"a {VECTOR}"),
    "digitize": (lambda: jnp.digitize(V, A), ValueError, f"bins {VECTOR}"),
    "rot90": (lambda: jnp.rot90(V), ValueError, f"m {MATRIX}"),
    "ix_": (lambda: jnp.ix_(A, V), ValueError, r"args\[0\] " + VECTOR),
    "triu": (lambda: jnp.triu(V), ValueError, f"m {MATRIX}"),
    "diagonal": (lambda: jnp.diagonal(V), ValueError, f"a {MATRIX}"),
    "vander": (lambda: jnp.vander(A), ValueError, f"x {VECTOR}"),
    "meshgrid": (lambda: jnp.meshgrid(A), ValueError, VECTOR),
    "diff": (lambda: jnp.diff(1.0), ValueError, "at least 1 dimension, got"),
    "reduceat": (lambda: jnp.add.reduceat(V, A), ValueError, f"indices {VECTOR}"),
    "convolve": (lambda: jnp.convolve(A, V), ValueError, VECTOR),
    "roots": (lambda: jnp.roots(A), ValueError, f"p {VECTOR}"),
    "polyadd": (lambda: jnp.polyadd(1.0, V), ValueError, "at least 1 dimension, got"),
    "pinv": (lambda: jnp.linalg.pinv(7.0), ValueError, f"a {MATRIX}"),
    "qr_multiply": (lambda: sp.linalg.qr_multiply(V, V), ValueError, f"a {MATRIX}"),
    "qr_multiply c": (lambda: sp.linalg.qr_multiply(A, 7.0), ValueError, "c must have"),
    "sylvester": (
        lambda: sp.linalg.solve_sylvester(A, A, V),
        ValueError,
        f"C {MATRIX}",
    ),
    "tridiagonal": (
        lambda: sp.linalg.eigh_tridiagonal(A, V),
        ValueError,
        f"d {VECTOR}",
    ),
    # Axes, sizes and flags.
    "vecdot": (lambda: jnp.vecdot(7.0, V), IndexError, "axis -1 is out of bounds"),
    "cross": (lambda: jnp.linalg.cross(V, V, axis="a"), TypeError, "got 'a'"),
    "unwrap": (lambda: jnp.unwrap(7.0), IndexError, "axis -1 is out of bounds"),
    "slice": (lambda: lax.slice_in_dim(V, 0, 1, 1, None), TypeError, "axis must be an"),
    "reduce_max": (lambda: lax.reduce_max(V, 0), TypeError, "axes must be a sequence"),
    "expand_dims": (lambda: lax.expand_dims(V, 0), TypeError, "dimensions must be"),
    "precision": (lambda: lax.reduce_precision(V, 2.5, 3), TypeError, "exponent_bits"),
    "glorot": (lambda: draw(in_axis=7), IndexError, "axis 7 is out of bounds"),
    "glorot none": (lambda: draw(out_axis=None), TypeError, "integer, got None"),
    "orthogonal": (
        lambda: initializers.orthogonal(column_axis="a")(KEY, SHAPE),
        TypeError,
        "must be an integer, got 'a'",
    ),
    "hadamard": (lambda: sp.linalg.hadamard("a"), TypeError, "n of hadamard"),
    "ihfft": (lambda: jnp.fft.ihfft(V[:0]), ValueError, "one number at least"),
    "eigh": (
        lambda: lax.linalg.eigh(A, subset_by_index=7),
        TypeError,
        "subset_by_index is a pair",
    ),
    "eigh on a CPU": (
        lambda: lax.linalg.eigh(A, implementation=7),
        NotImplementedError,
        "implementation=7 is not supported",
    ),
    # Numbers where matrices must stand.
    "cholesky": (lambda: lax.linalg.cholesky(7.0), TypeError, r"got shape \(\)"),
    "hessenberg": (lambda: sp.linalg.hessenberg(7.0), TypeError, "rank of at least 2"),
    "qdwh": (lambda: lax.linalg.qdwh(V), ValueError, "m >= n, got shape"),
    "lstsq": (lambda: jnp.linalg.lstsq(7.0, V), ValueError, r"got \(\), \(3,\)"),
    # Things that are no function, no structure of a tree, no device.
    "funm": (lambda: sp.linalg.funm(A, 7), TypeError, "callable value, got 7"),
    "minimize": (lambda: minimum([1.0]), TypeError, "<class 'list'>"),
    "minimize x0": (lambda: minimum(7.0), ValueError, f"x0 {VECTOR}"),
    "minimize method": (lambda: minimum(V, 7), ValueError, "method is 'BFGS', got 7"),
    "unflatten": (lambda: minijax.tree.unflatten(7, [1]), TypeError, "got 7"),
    "tree transpose": (lambda: minijax.tree.transpose(7, 7, [1]), TypeError, "got 7"),
    "treedefs": (lambda: minijax.tree_util.treedef_tuple([7]), TypeError, "got 7"),
    "children": (lambda: minijax.tree_util.treedef_children(7), TypeError, "got 7"),
    "backend": (lambda: minijax.devices(7), RuntimeError, "Unknown backend 7"),
    "no device": (lambda: SingleDeviceSharding(7), TypeError, r"devices\(\), got 7"),
    "memory kind": (lambda: kept_in(7), ValueError, "Got memory kind: 7"),
    "algorithm": (lambda: bits(algorithm=77), ValueError, "77 is not a valid"),
    "expon": (lambda: sp.stats.expon.pdf(1j), TypeError, "takes real numbers"),
    "uniform": (lambda: sp.stats.uniform.cdf(V, 1j), TypeError, "takes real numbers"),
    "bernoulli": (lambda: sp.stats.bernoulli.ppf(V, 1j), TypeError, "takes real num"),
    "laplace": (lambda: sp.stats.laplace.pdf(1j * V), TypeError, "takes real numbers"),
    "multigammaln": (lambda: sp.special.multigammaln((9,), 2), TypeError, "'tuple'"),
    "convolve tuple": (lambda: sp.signal.convolve((9,), V), TypeError, "'tuple'"),
    "correlate": (lambda: sp.signal.correlate(V, (9,)), TypeError, "'tuple'"),
    "stft": (lambda: sp.signal.stft(V, nperseg=3, nfft=4.5), TypeError, "nfft"),
    # Trees: what tells leaves, and what holds them.
    "is_leaf": (lambda: minijax.tree.leaves(V, is_leaf=7), TypeError, "as is_leaf, go"),
    "leaf paths": (
        lambda: minijax.tree.leaves_with_path(V, is_leaf=A),
        TypeError,
        "as is_leaf, got",
    ),
    "tree map": (lambda: minijax.tree.map(7, V), TypeError, "the argument f must be a"),
    "no leaves": (lambda: minijax.tree.unflatten(TREE, 7), TypeError, "of leaves, got"),
    "separator": (
        lambda: minijax.tree_util.keystr((), separator=7),
        TypeError,
        "a text as separator, got 7",
    ),
    # Transformations: what must be a function, a name, or a group.
    "policy": (lambda: minijax.checkpoint(abs, policy=7), TypeError, "nt policy must"),
    "rule": (lambda: minijax.custom_jvp(abs).defjvp(7), TypeError, "argument jvp must"),
    "rules": (
        lambda: minijax.custom_vjp(abs).defvjp(abs, 7),
        TypeError,
        "argument bwd must be a function",
    ),
    "callback": (
        lambda: minijax.pure_callback(7, minijax.typeof(V), V),
        TypeError,
        "argument callback must be a function",
    ),
    "root": (
        lambda: lax.custom_root(abs, 0.0, lambda f, x: x, 7),
        TypeError,
        "argument tangent_solve must be",
    ),
    "solve": (
        lambda: lax.custom_linear_solve(7, V, lambda f, b: b),
        TypeError,
        "argument matvec must be",
    ),
    "apply": (
        lambda: jnp.asarray(V).at[0].apply(7),
        TypeError,
        "argument func must be",
    ),
    "vectorize": (lambda: jnp.vectorize(7), TypeError, "argument pyfunc must be"),
    "fun": (lambda: sp.optimize.minimize(7, V, method="BFGS"), TypeError, "fun must"),
    "axis_env": (
        lambda: minijax.make_jaxpr(abs, axis_env=7)(V),
        TypeError,
        r"pairs \(name, size\)",
    ),
    "psum": (
        lambda: mapped(lax.psum, {}),
        TypeError,
        r"axis_name must be names of axes, got \(\{\}",
    ),
    "perm": (
        lambda: mapped(lax.ppermute, "i", [1]),
        TypeError,
        "each list of perm",
    ),
    "groups": (
        lambda: mapped(lax.pmax, "i", axis_index_groups="a"),
        TypeError,
        "each list of axis_index_groups",
    ),
    "split_axis": (
        lambda: mapped(lax.all_to_all, "i", None, 0),
        TypeError,
        "split_axis must be an integer, got None",
    ),
    "mode": (
        lambda: jnp.asarray(V).at[0].get(mode=[1]),
        ValueError,
        "Unknown gather mode",
    ),
    # Flags, steps and numbers that stop a loop.
    "flag": (lambda: lax.sort(V, is_stable=[1]), TypeError, "is_stable must be True"),
    "reverse": (lambda: lax.cumsum(V, 0, V), TypeError, "reverse must be True or Fal"),
    "cumsum": (lambda: lax.cumsum(V, 1.5), TypeError, "axis must be an integer"),
    "scan": (
        lambda: lax.scan(lambda c, x: (c, x), 0.0, V, reverse=V),
        TypeError,
        "reverse must be True or False",
    ),
    "batch_size": (lambda: lax.map(abs, V, batch_size="a"), TypeError, "batch_size"),
    "prefix": (lambda: lax.associative_scan(7, V), TypeError, "argument fn must be"),
    "print": (lambda: minijax.debug.print(7), TypeError, "a string as fmt, got 7"),
    "strides": (lambda: lax.conv(IMAGE, IMAGE, 7, "SAME"), TypeError, "window_strides"),
    "slice bounds": (lambda: lax.slice(V, 7, (2,)), TypeError, "numbers known while"),
    "tol": (lambda: solved(tol="a"), TypeError, "tol must be a number, got 'a'"),
    "maxiter": (lambda: solved(maxiter=[3]), TypeError, "maxiter must be a number"),
    "method": (
        lambda: minijax.image.resize(A, (2, 2), 7),
        ValueError,
        "ResizeMethod: 7 is unknown",
    ),
    "dct": (lambda: sp.fft.dct(V, n="a"), TypeError, "n or s must be an int"),
    "ndmin": (lambda: jnp.array(V, ndmin="a"), TypeError, "ndmin must be an int"),
    "axis_names": (
        lambda: minijax.sharding.Mesh(minijax.devices()[:1], 7),
        TypeError,
        "names as axis_names, got 7",
    ),
    "approx k": (
        lambda: lax.approx_max_k(V, "a"),
        TypeError,
        "dimension. must be",
    ),
    "bucket_size": (
        lambda: minijax.ops.segment_sum(V, V.astype(int), bucket_size="a"),
        TypeError,
        "bucket_size: the value must be an int",
    ),
    "partition": (lambda: minijax.P([{}]), TypeError, "axes must be names of axes"),
    "rule of each": (
        lambda: minijax.custom_jvp(abs).defjvps(7),
        TypeError,
        r"argument jvps\[0\] must be a function",
    ),
    "axis_size": (
        lambda: minijax.pmap(abs, axis_size="a"),
        TypeError,
        "axis_size must be an integer",
    ),
    "argmax": (lambda: lax.argmax(V, V, np.int32), TypeError, "axis must be an"),
    "windows": (
        lambda: lax.reduce_window(V, 7, lax.add, (2,), (1,), "VALID"),
        TypeError,
        "init_value dtypes must match",
    ),
}


def draw(**axes):
    return initializers.glorot_normal(**axes)(KEY, SHAPE)


def mapped(collective, *args, **options):
    return minijax.vmap(lambda x: collective(x, *args, **options), axis_name="i")(A)


def minimum(x0, method="BFGS"):
    return sp.optimize.minimize(lambda x: (x**2).sum(), x0, method=method)


def solved(**how):
    return sp.sparse.linalg.cg(A, V, **how)


def kept_in(kind):
    return SingleDeviceSharding(minijax.devices()[0], memory_kind=kind)


def bits(**options):
    return lax.rng_bit_generator(np.zeros(4, np.uint32), (2,), **options)


@pytest.mark.parametrize("name", CALLS)
def test_the_sentence_names_the_argument(name):
    call, error, words = CALLS[name]
    with pytest.raises(error, match=words):
        call()


def test_jit_refuses_a_backend_and_a_device_that_are_none():
    for options in ({"backend": 7}, {"device": 7}):
        with (
            pytest.warns(DeprecationWarning),
            pytest.raises((RuntimeError, TypeError), match=" 7"),
        ):
            minijax.jit(lambda x: x, **options)(V)


def test_flags_are_truth_values():
    """What is written to XLA and LAPACK is True or False, whatever was given."""
    assert len(jnp.linalg.svd(A, compute_uv=-1)) == 3
    assert len(lax.linalg.schur(A, compute_schur_vectors="yes")) == 2
    assert lax.cumsum(V, reverse=7)[0] == 3


def test_flags_that_stablehlo_keeps_are_true_or_false():
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    with pytest.raises(TypeError, match="is_stable must be True or False, got 7"):
        lax.sort(V, is_stable=7)
    with pytest.raises(TypeError, match="unique_indices must be True or False, got 7"):
        lax.scatter_add(V, np.zeros((1, 1), int), V[:1], numbers, unique_indices=7)
