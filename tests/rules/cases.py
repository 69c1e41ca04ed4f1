"""One or more calls for every first-order primitive, on which its rules are checked.

A case names the primitives it exercises, a function of the library, and arguments. The
same table serves the comparison with JAX, the numerical check of derivatives and the
check of batching against a loop.
"""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Case:
    """A call of `build(library)` on `args`; `differentiable` are positions in `args`.

    `mappable` are the positions that may carry a batch axis.
    """

    name: str
    primitives: tuple[str, ...]
    build: Callable[[Any], Callable[..., Any]]
    args: tuple[np.ndarray, ...]
    differentiable: tuple[int, ...] = ()
    mappable: tuple[int, ...] = ()
    orders: int = 2


CASES: list[Case] = []


def case(
    name: str,
    primitives: str,
    build: Callable[[Any], Callable[..., Any]],
    *args: np.ndarray,
    fixed: tuple[int, ...] = (),
    constant: tuple[int, ...] = (),
    orders: int = 2,
) -> None:
    """Add a case. Inexact arguments are differentiated, but those in `constant`, up to
    `orders` times; all are mapped, but those in `fixed`."""
    inexact = [k for k, arg in enumerate(args) if np.asarray(arg).dtype.kind in "fc"]
    CASES.append(
        Case(
            name,
            tuple(primitives.split()),
            build,
            tuple(np.asarray(arg) for arg in args),
            tuple(k for k in inexact if k not in constant),
            tuple(k for k in range(len(args)) if k not in fixed),
            orders,
        )
    )


def real(*shape: int, low: float = 0.15, high: float = 0.85, seed: int = 0):
    """Distinct float64 numbers between `low` and `high`, in an order of their own."""
    size = int(np.prod(shape))
    values = np.linspace(low, high, size + 2)[1:-1]
    return np.random.RandomState(seed + size).permutation(values).reshape(shape)


def cplx(*shape: int, seed: int = 0):
    """Distinct complex128 numbers."""
    return real(*shape, seed=seed) + 1j * real(*shape, seed=seed + 7)


def whole(*values: int) -> np.ndarray:
    """An int32 array of `values`."""
    return np.array(values, np.int32)


def _lax(name: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda jax: getattr(jax.lax, name)


_UNARY = """
    abs acos asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf
    erf_inv erfc exp exp2 expm1 floor is_finite lgamma log log1p logistic neg
    rsqrt sign sin sinh sqrt square tan tanh
"""
for _name in _UNARY.split():
    case(_name, _name, _lax(_name), real(3))
case("round", "round", _lax("round"), np.array([0.2, 0.7, 1.1]))
case("acosh", "acosh", _lax("acosh"), real(3, low=1.2, high=2.0))
case("negative arguments", "abs", lambda jax: jax.lax.abs, -real(3))

for _name in "sin cos tan exp log tanh sqrt rsqrt neg sinh cosh log1p expm1".split():
    case(f"complex {_name}", _name, _lax(_name), cplx(3))
case("complex abs", "abs", _lax("abs"), cplx(3))
for _name in "real imag conj".split():
    case(_name, _name, _lax(_name), cplx(3))
case("complex", "complex", _lax("complex"), real(3), real(3, seed=1))

for _name in "add sub mul div atan2 max min pow rem".split():
    case(_name, _name, _lax(_name), real(3), real(3, seed=1, low=0.3))
for _name in "add sub mul div".split():
    case(f"complex {_name}", _name, _lax(_name), cplx(3), cplx(3, seed=1))
for _name in "eq ne lt le gt ge nextafter".split():
    case(_name, _name, _lax(_name), real(3), real(3, seed=1), constant=(0, 1))
for _name in "igamma igammac".split():
    # JAX has no derivative of igamma_grad_a, so none of second order in the first.
    for _orders, _constant in ((1, ()), (2, (0,))):
        case(
            f"{_name} to order {_orders}",
            _name,
            _lax(_name),
            real(3),
            real(3, seed=1),
            constant=_constant,
            orders=_orders,
        )
case(
    "igamma_grad_a",
    "igamma_grad_a",
    _lax("igamma_grad_a"),
    real(3),
    real(3, seed=1),
    constant=(0, 1),
)
case(
    "polygamma",
    "polygamma",
    lambda jax: lambda x: jax.lax.polygamma(jax.numpy.full_like(x, 1.0), x),
    real(3),
)
case("zeta", "zeta", _lax("zeta"), real(3, low=1.5, high=3.0), real(3), constant=(0, 1))
case(
    "betainc",
    "regularized_incomplete_beta",
    _lax("betainc"),
    real(3),
    real(3, seed=1),
    real(3, seed=2),
    constant=(0, 1),
)
case(
    "integer_pow",
    "integer_pow",
    lambda jax: lambda x: jax.lax.integer_pow(x, 3),
    real(3),
)
case(
    "integer_pow negative",
    "integer_pow",
    lambda jax: lambda x: jax.lax.integer_pow(x, -2),
    real(3),
)
case("pow by integers", "pow", _lax("pow"), real(3), whole(2, 3, 1))
for _name in "and or xor".split():
    case(_name, _name, _lax(f"bitwise_{_name}"), whole(1, 2, 3), whole(3, 5, 6))
case("not", "not", _lax("bitwise_not"), whole(1, 2, 3))
for _name in "shift_left shift_right_arithmetic shift_right_logical mulhi".split():
    case(_name, _name, _lax(_name), whole(5, -9, 3), whole(1, 2, 3))
for _name in "population_count clz".split():
    case(_name, _name, _lax(_name), whole(5, -9, 3))
case("scalar literal", "mul add", lambda jax: lambda x: x * 2.0 + 1.0, real(3))

for _name in "eq_to lt_to le_to".split():  # total orders: bound by their primitives
    case(
        _name,
        _name,
        lambda jax, n=_name: getattr(jax.lax, f"{n}_p").bind,
        real(3),
        real(3, seed=1),
        constant=(0, 1),
    )

# Shapes.
case(
    "broadcast_in_dim",
    "broadcast_in_dim",
    lambda jax: lambda x: jax.lax.broadcast_in_dim(x, (2, 3, 4), (1,)),
    real(3),
)
case(
    "broadcast_in_dim stretching",
    "broadcast_in_dim",
    lambda jax: lambda x: jax.lax.broadcast_in_dim(x, (2, 3), (0, 1)),
    real(1, 3),
)
case("reshape", "reshape", lambda jax: lambda x: jax.lax.reshape(x, (3, 2)), real(2, 3))
case("squeeze", "squeeze", lambda jax: lambda x: jax.lax.squeeze(x, (1,)), real(3, 1))
case(
    "expand_dims",
    "broadcast_in_dim",
    lambda jax: lambda x: jax.lax.expand_dims(x, (0, 2)),
    real(3),
)
case(
    "transpose",
    "transpose",
    lambda jax: lambda x: jax.lax.transpose(x, (2, 0, 1)),
    real(2, 3, 4),
)
case("rev", "rev", lambda jax: lambda x: jax.lax.rev(x, (1,)), real(2, 3))
case(
    "concatenate",
    "concatenate",
    lambda jax: lambda x, y: jax.lax.concatenate([x, y, x], 1),
    real(2, 3),
    real(2, 1),
)
case(
    "pad",
    "pad",
    lambda jax: lambda x, v: jax.lax.pad(x, v, [(1, 2, 1)]),
    real(3),
    np.float64(0.4),
)
case(
    "pad negative",
    "pad",
    lambda jax: lambda x, v: jax.lax.pad(x, v, [(-1, 1, 0)]),
    real(3),
    np.float64(0.4),
)
case("split", "split", lambda jax: lambda x: jax.lax.split(x, (1, 3), axis=0), real(4))
case("tile", "tile", lambda jax: lambda x: jax.lax.tile(x, (2, 3)), real(2, 3))
case(
    "stack",
    "stack",
    lambda jax: lambda x, y: jax.lax.stack([x, y], axis=1),
    real(3),
    real(3, seed=1),
)
case("unstack", "unstack", lambda jax: lambda x: jax.lax.unstack(x, axis=0), real(2, 3))
case(
    "select_n",
    "select_n",
    _lax("select_n"),
    np.array([True, False, True]),
    real(3),
    real(3, seed=1),
)
case(
    "select_n scalar predicate",
    "select_n",
    _lax("select_n"),
    np.bool_(True),
    real(3),
    real(3, seed=1),
)
case(
    "select_n of three",
    "select_n",
    _lax("select_n"),
    whole(0, 2, 1),
    real(3),
    real(3, seed=1),
    real(3, seed=2),
)
# JAX differentiates scalar bounds of an array no more than this.
case(
    "clamp",
    "clamp",
    _lax("clamp"),
    np.float64(0.3),
    real(3),
    np.float64(0.7),
    constant=(0, 2),
)
case(
    "clamp arrays", "clamp", _lax("clamp"), real(3, high=0.3), real(3), real(3, low=0.7)
)
case(
    "convert_element_type",
    "convert_element_type",
    lambda jax: lambda x: jax.lax.convert_element_type(x, np.float32) * 2,
    real(3),
    constant=(0,),
)
case(
    "convert to wider",
    "convert_element_type",
    lambda jax: lambda x: jax.lax.convert_element_type(x, np.complex128),
    real(3),
)
case(
    "bitcast_convert_type",
    "bitcast_convert_type",
    lambda jax: lambda x: jax.lax.bitcast_convert_type(x, np.int64),
    real(3),
    constant=(0,),
)
case(
    "bitcast to narrower",
    "bitcast_convert_type",
    lambda jax: lambda x: jax.lax.bitcast_convert_type(x, np.uint8),
    whole(1, 70000),
)
case(
    "reduce_precision",
    "reduce_precision",
    lambda jax: lambda x: jax.lax.reduce_precision(x, 8, 7),
    real(3),
    constant=(0,),
)
case(
    "optimization_barrier",
    "optimization_barrier",
    lambda jax: lambda x, y: jax.lax.optimization_barrier((x, y)),
    real(3),
    real(2),
)
case("stop_gradient", "stop_gradient", _lax("stop_gradient"), real(3), constant=(0,))
case("copy", "copy", lambda jax: jax.numpy.copy, real(3))
case(
    "device_put",
    "device_put",
    lambda jax: lambda x, y: jax.device_put((x, y), jax.devices()[0]),
    real(3),
    real(2),
)
case("iota", "iota", lambda jax: lambda x: x + jax.lax.iota(np.float64, 3), real(3))

# Reductions.
for _name in "sum prod max min".split():
    _primitive = f"reduce_{_name}"
    case(
        _primitive,
        _primitive,
        lambda jax, n=_primitive: lambda x: getattr(jax.lax, n)(x, (0,)),
        real(3, 2),
    )
for _name in "and or xor".split():
    _primitive = f"reduce_{_name}"
    case(
        _primitive,
        _primitive,
        lambda jax, n=_primitive: lambda x: getattr(jax.lax, n)(x, (1,)),
        np.array([[True, False], [True, True], [False, False]]),
    )
for _name in "argmax argmin".split():
    case(
        _name,
        _name,
        lambda jax, n=_name: lambda x: getattr(jax.lax, n)(x, 1, np.int32),
        real(2, 3),
        constant=(0,),
    )
case(
    "reduce with a function",
    "reduce",
    lambda jax: (
        lambda x: jax.lax.reduce(x, np.float64(1), lambda a, b: a * b + a * 0, (0,))
    ),
    real(3, 2),
    constant=(0,),
)
for _name in "cumsum cumprod cummax cummin cumlogsumexp".split():
    for _reverse in (False, True):
        case(
            f"{_name} reverse={_reverse}",
            _name,
            lambda jax, n=_name, r=_reverse: (
                lambda x: getattr(jax.lax, n)(x, axis=0, reverse=r)
            ),
            real(3, 2),
        )


def _window(init: float, name: str, **options: Any) -> Callable[[Any], Any]:
    def build(jax):
        return lambda x: jax.lax.reduce_window(
            x, np.float64(init), getattr(jax.lax, name), (2,), (1,), **options
        )

    return build


case(
    "reduce_window_sum", "reduce_window_sum", _window(0, "add", padding="SAME"), real(5)
)
case(
    "reduce_window_sum dilated",
    "reduce_window_sum",
    _window(0, "add", padding=((1, 2),), base_dilation=(2,), window_dilation=(2,)),
    real(4),
)
case(
    "reduce_window_max",
    "reduce_window_max select_and_gather_add",
    _window(-np.inf, "max", padding="VALID"),
    real(5),
)
case(
    "reduce_window_min",
    "reduce_window_min",
    _window(np.inf, "min", padding="VALID"),
    real(5),
)
case(
    "reduce_window",
    "reduce_window",
    _window(1, "mul", padding="VALID"),
    real(5),
    constant=(0,),
)


def _pool_gradient(jax):
    def pool(x):
        window = jax.lax.reduce_window(
            x, -np.inf, jax.lax.max, (2,), (2,), padding="VALID"
        )
        return (window**2).sum()

    return jax.grad(pool)


case("select_and_scatter_add", "select_and_scatter_add", _pool_gradient, real(6))

# Order.
case("sort", "sort", lambda jax: lambda x: jax.lax.sort(x, dimension=0), real(3, 2))
case(
    "sort by keys",
    "sort",
    lambda jax: lambda x, y: jax.lax.sort((x, y), dimension=0, num_keys=1),
    real(4),
    real(4, seed=1),
)
case("top_k", "top_k", lambda jax: lambda x: jax.lax.top_k(x, 2)[0], real(2, 5))
case(
    "approx_top_k",
    "approx_top_k",
    lambda jax: lambda x: jax.lax.approx_min_k(x, 2)[0],
    real(2, 5),
)

# Contractions.


def _dot_general(dims: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda jax: lambda x, y: jax.lax.dot_general(x, y, dims, **options)


case(
    "dot_general",
    "dot_general",
    _dot_general((((1,), (0,)), ((), ()))),
    real(2, 3),
    real(3, 4),
)
case(
    "dot_general batched",
    "dot_general",
    _dot_general((((2,), (1,)), ((0,), (0,)))),
    real(5, 2, 3),
    real(5, 3, 4),
)
case(
    "dot_general outer",
    "dot_general",
    _dot_general((((), ()), ((), ()))),
    real(2),
    real(3),
)
case(
    "dot_general two axes",
    "dot_general",
    _dot_general((((0, 1), (1, 0)), ((), ()))),
    real(2, 3),
    real(3, 2),
)
case(
    "dot_general complex",
    "dot_general",
    _dot_general((((1,), (0,)), ((), ()))),
    cplx(2, 3),
    cplx(3, 2),
)

case(
    "ragged_dot",
    "ragged_dot_general",
    lambda jax: lambda x, y: jax.lax.ragged_dot(x, y, whole(2, 0, 2)),
    real(5, 2),
    real(3, 2, 3),
)


def _convolution(**options: Any) -> Callable[[Any], Any]:
    return lambda jax: lambda x, k: jax.lax.conv_general_dilated(x, k, **options)


case(
    "conv_general_dilated",
    "conv_general_dilated",
    _convolution(window_strides=(1,), padding="SAME"),
    real(1, 2, 5),
    real(3, 2, 3),
)
case(
    "conv strided and dilated",
    "conv_general_dilated",
    _convolution(
        window_strides=(2,), padding=((1, 2),), lhs_dilation=(2,), rhs_dilation=(2,)
    ),
    real(1, 2, 5),
    real(3, 2, 3),
)
case(
    "conv in groups",
    "conv_general_dilated",
    _convolution(window_strides=(1,), padding="VALID", feature_group_count=2),
    real(1, 4, 5),
    real(2, 2, 3),
)
case(
    "conv in batch groups",
    "conv_general_dilated",
    _convolution(window_strides=(1,), padding="VALID", batch_group_count=2),
    real(2, 2, 5),
    real(4, 2, 3),
)

# Slices.
case(
    "slice",
    "slice",
    lambda jax: lambda x: jax.lax.slice(x, (1, 0), (4, 2), (2, 1)),
    real(4, 3),
)
case(
    "dynamic_slice",
    "dynamic_slice",
    lambda jax: lambda x, i: jax.lax.dynamic_slice(x, (i, i), (2, 2)),
    real(4, 3),
    np.int32(1),
)
case(
    "dynamic_update_slice",
    "dynamic_update_slice",
    lambda jax: lambda x, u, i: jax.lax.dynamic_update_slice(x, u, (i, i)),
    real(4, 3),
    real(2, 2),
    np.int32(1),
)
case("gather of rows", "gather", lambda jax: lambda x, i: x[i], real(4, 3), whole(2, 0))
case(
    "gather of elements",
    "gather",
    lambda jax: lambda x, i, j: x[i, j],
    real(4, 3),
    whole(2, 0),
    whole(1, 1),
)
case(
    "gather clipped",
    "gather",
    lambda jax: lambda x, i: x.at[i].get(mode="clip"),
    real(4),
    whole(1, 9),
)
case(
    "gather filled",
    "gather",
    lambda jax: lambda x, i: x.at[i].get(mode="fill", fill_value=0.0),
    real(4),
    whole(1, 9),
)
for _method, _primitive in (
    ("set", "scatter"),
    ("add", "scatter_add"),
    ("subtract", "scatter_sub"),
    ("multiply", "scatter_mul"),
    ("min", "scatter_min"),
    ("max", "scatter_max"),
):
    _name = _primitive.replace("_", "-")
    case(
        _name,
        _name,
        lambda jax, m=_method: (
            lambda x, i, v: getattr(x.at[i], m)(v, unique_indices=True)
        ),
        real(4, 2),
        whole(2, 0),
        real(2, 2, seed=1),
    )
case(
    "scatter-add repeated",
    "scatter-add",
    lambda jax: lambda x, i, v: x.at[i].add(v),
    real(4),
    whole(1, 1, 3),
    real(3, seed=1),
)
case(
    "scatter out of bounds",
    "scatter",
    lambda jax: lambda x, i, v: x.at[i].set(v, mode="drop"),
    real(4),
    whole(1, 9),
    real(2, seed=1),
)

# Random bits.
case(
    "random_clone",
    "random_clone",
    lambda jax: (
        lambda k: jax.random.key_data(jax.random.clone(jax.random.wrap_key_data(k)))
    ),
    np.array([1, 2], np.uint32),
)
case(
    "rng_bit_generator",
    "rng_bit_generator",
    lambda jax: lambda k: jax.lax.rng_bit_generator(k, (3,)),
    np.array([1, 2, 3, 4], np.uint32),
    fixed=(0,),
)
case(
    "threefry2x32",
    "random_bits random_wrap",
    lambda jax: lambda k: jax.random.bits(jax.random.wrap_key_data(k), (3,)),
    np.array([1, 2], np.uint32),
)
case(
    "random_split",
    "random_split random_unwrap",
    lambda jax: (
        lambda k: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(k), 3))
    ),
    np.array([1, 2], np.uint32),
)
case(
    "random_fold_in",
    "random_fold_in",
    lambda jax: (
        lambda k, n: jax.random.key_data(
            jax.random.fold_in(jax.random.wrap_key_data(k), n)
        )
    ),
    np.array([1, 2], np.uint32),
    np.uint32(7),
)
case(
    "random_seed",
    "random_seed",
    lambda jax: lambda n: jax.random.key_data(jax.random.key(n)),
    np.int32(7),
)
case(
    "uniform and its derivative",
    "random_bits",
    lambda jax: (
        lambda k, x: (
            x * jax.random.uniform(jax.random.wrap_key_data(k), (3,), np.float64)
        )
    ),
    np.array([1, 2], np.uint32),
    real(3),
)
case(
    "random_gamma_grad",
    "random_gamma_grad",
    _lax("random_gamma_grad"),
    real(4, low=0.5, high=3.0),
    real(4, low=0.4, high=4.0, seed=1),
    constant=(0, 1),
)


# Linear algebra. Where the factors are free by a phase, their absolute squares stand.
def positive(size: int, matrix: np.ndarray) -> np.ndarray:
    """A Hermitian positive definite matrix, with distinct eigenvalues."""
    return matrix @ matrix.conj().T + np.diag(np.arange(1.0, size + 1))


def _linalg(name: str, **params: Any) -> Callable[[Any], Callable[..., Any]]:
    def build(jax):
        importlib.import_module(f"{jax.__name__}.lax.linalg")
        function = getattr(jax.lax.linalg, name)
        return lambda *args: function(*args, **params)

    return build


def _squares(name: str, **params: Any) -> Callable[[Any], Callable[..., Any]]:
    def build(jax):
        function = _linalg(name, **params)(jax)
        return lambda *args: [jax.numpy.abs(x) ** 2 for x in function(*args)]

    return build


for _kind, _square, _tall in (
    ("real", real(3, 3) + np.diag([1.0, 2.0, 3.0]), real(4, 2)),
    ("complex", cplx(2, 2) + np.diag([1.0, 2.0]), cplx(3, 2)),
):
    _size = len(_square)
    _positive = positive(_size, _square)
    _orders = 2 if _kind == "real" else 1
    for _name, _function, _matrix in (
        ("cholesky", _linalg("cholesky"), _positive),
        ("lu", _linalg("lu"), _square),
        ("qr", _linalg("qr", full_matrices=False), _tall),
        ("svd", _linalg("svd", compute_uv=False), _tall),
        ("eigh", _squares("eigh"), _positive),
    ):
        case(f"{_kind} {_name}", _name, _function, _matrix, orders=_orders)
    case(
        f"{_kind} triangular_solve",
        "triangular_solve",
        _linalg("triangular_solve", left_side=True, transpose_a=True, conjugate_a=True),
        _square,
        _square[:, :2],
        orders=_orders,
    )
    # JAX has no derivatives of these, or its tests have none of second order.
    for _name, _matrix in (
        *(("schur", _square), ("hessenberg", _square), ("tridiagonal", _positive)),
    ):
        case(f"{_kind} {_name}", _name, _linalg(_name), _matrix, constant=(0,))
    for _name, _factor in (("householder_product", ()), ("ormqr", (_square[:, :2],))):
        case(
            f"{_kind} {_name}",
            _name,
            _linalg(_name),
            *(_square, _square[0], *_factor),
            constant=(0, 1, 2),
        )
    case(
        f"{_kind} eig",
        "eig",
        _linalg(
            "eig", compute_left_eigenvectors=False, compute_right_eigenvectors=False
        ),
        _square,
        constant=(0,),
    )
_square = real(3, 3) + np.diag([1.0, 2.0, 3.0])
case(
    "triangular_solve from the right",
    "triangular_solve",
    _linalg("triangular_solve", lower=True, unit_diagonal=True),
    _square,
    _square[:2],
    orders=1,
)
case(
    "tridiagonal_solve",
    "tridiagonal_solve",
    _linalg("tridiagonal_solve"),
    *(_square[0], _square[1] + 3, _square[2], _square),
    orders=1,
)
for _name, _function, _matrix in (
    ("lu wide", _linalg("lu"), real(2, 4)),
    ("qr wide", _linalg("qr"), real(2, 4)),
    ("qr complete", _linalg("qr"), real(4, 2)),
    ("qr pivoted", _linalg("qr", pivoting=True), real(4, 2)),
    ("svd thin", _squares("svd", full_matrices=False), real(4, 2)),
):
    case(_name, _name.split()[0], _function, _matrix, orders=1)
case(
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation",
    _linalg("lu_pivots_to_permutation", permutation_size=4),
    whole(2, 1, 3),
)
case(
    "symmetric_product",
    "symmetric_product",
    _linalg("symmetric_product", alpha=2.0, beta=0.5),
    real(3, 2),
    real(3, 3),
    constant=(0, 1),
)
case(
    "cholesky_update",
    "cholesky_update",
    _linalg("cholesky_update"),
    np.triu(real(3, 3)) + np.eye(3),
    real(3),
    fixed=(0, 1),
    constant=(0, 1),
)
for _type, _lengths, _argument in (
    *(("FFT", (4,), cplx(2, 4)), ("IFFT", (2, 3), cplx(2, 3))),
    *(("RFFT", (5,), real(2, 5)), ("RFFT", (3, 4), real(3, 4))),
    *(("IRFFT", (4,), cplx(2, 3)), ("IRFFT", (3, 5), cplx(3, 3))),
):
    case(
        f"{_type} {_lengths}",
        "fft",
        # The primitive itself: lax.fft is jitted.
        lambda jax, t=_type, n=_lengths: (
            lambda x: jax.lax.fft_p.bind(
                x, fft_type=getattr(jax.lax.FftType, t), fft_lengths=n
            )
        ),
        _argument,
    )
