"""minijax.numpy beside the array API standard, by its reference, array-api-strict.

Every function of the standard is here, takes the standard's parameters, and gives the
reference's values and dtypes, in 64-bit mode. The standard's own suite of tests is on
no package index; this table has a call, or dtypes, for each function.
"""

import inspect
import warnings

import array_api_strict as strict
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
DTYPES += "float32 float64 complex64 complex128".split()
A = np.array([[2.0, 0.5, -1.0], [0.5, 3.0, 0.25], [-1.0, 0.25, 4.0]])
B = np.array([[1.5, -2.0, 0.5], [0.0, 1.0, -0.5], [2.5, 0.25, -1.0]])
N = np.array([[3, 1, 2], [1, 3, 1]])
T = np.array([[True, False, True], [True, True, True]])
Z = A + 1j * B


def functions():
    """The functions of the standard as (module, name)."""
    for module in ("", "linalg", "fft"):
        room = getattr(strict, module) if module else strict
        for name in room.__all__:
            if inspect.isfunction(getattr(room, name)) and "strict" not in name:
                yield module, name


FUNCTIONS = dict.fromkeys(functions())
OPERATORS = [
    name
    for module, name in FUNCTIONS
    if not module and [*inspect.signature(getattr(strict, name)).parameters] in (
        ["x"], ["x1", "x2"],
    ) and not name.startswith(("unique", "matmul", "matrix", "nonzero"))
]  # fmt: skip


def of(library, module, name):
    return getattr(getattr(library, module) if module else library, name)


@pytest.mark.whole
@pytest.mark.parametrize("module, name", FUNCTIONS)
def test_takes_the_parameters_of_the_standard(module, name):
    wanted = inspect.signature(of(strict, module, name)).parameters.values()
    found = inspect.signature(of(jnp, module, name)).parameters
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    by_position = [p for p in found.values() if p.kind in kinds]
    takes_all = any(p.kind is p.VAR_POSITIONAL for p in found.values())
    for place, each in enumerate(wanted):
        if each.kind is each.VAR_POSITIONAL:
            assert takes_all
        elif each.kind is each.KEYWORD_ONLY:
            assert each.name in found
        else:
            assert takes_all or place < len(by_position), each.name


def same(ours, theirs):
    """Asserts equal values, dtypes and shapes, in tuples too."""
    if isinstance(theirs, tuple):
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
        return
    found, expected = np.asarray(ours), np.asarray(theirs)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind in "fc":
        close = 100 * np.finfo(expected.dtype).eps
        np.testing.assert_allclose(found, expected, rtol=close, atol=close)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", OPERATORS)
def test_elementwise(name):
    """For each dtype that the standard allows."""
    arity = len(inspect.signature(getattr(strict, name)).parameters)
    allowed = 0
    for dtype in DTYPES:
        small = "acos" == name or "asin" in name or "atan" in name
        values = [[0.25, 0.5, 0.75]] if small else [[1, 3, 2], [2, 1, 2]][:arity]
        if arity == 2 and small:
            values *= 2
        arrays = [np.array(v).astype(dtype) for v in values]
        with warnings.catch_warnings(), minijax.enable_x64(True):
            warnings.simplefilter("ignore")
            try:
                theirs = getattr(strict, name)(*map(strict.asarray, arrays))
            except TypeError:
                continue
            same(getattr(jnp, name)(*map(jnp.asarray, arrays)), theirs)
        allowed += 1
    assert allowed


CALLS = {
    "asarray": lambda xp: xp.asarray(N, dtype=xp.float32),
    "arange": lambda xp: (xp.arange(5), xp.arange(1.0, 3, 0.5)),
    "empty": lambda xp: xp.zeros_like(xp.empty((2, 3), dtype=xp.int32)),
    "empty_like": lambda xp: xp.zeros_like(xp.empty_like(xp.asarray(N))),
    "eye": lambda xp: (xp.eye(3), xp.eye(2, 4, k=1, dtype=xp.int8)),
    "from_dlpack": lambda xp: xp.from_dlpack(xp.asarray(A)),
    "full": lambda xp: (xp.full((2,), 3), xp.full((2,), 1.5), xp.full((), True)),
    "full_like": lambda xp: xp.full_like(xp.asarray(N), 7),
    "linspace": lambda xp: (xp.linspace(0, 1, 5), xp.linspace(0, 1, 4, endpoint=False)),
    "meshgrid": lambda xp: tuple(
        xp.meshgrid(xp.asarray(A[0]), xp.asarray(B[0]), indexing="ij")
    ),
    "ones": lambda xp: xp.ones((2, 3)),
    "ones_like": lambda xp: xp.ones_like(xp.asarray(Z)),
    "tril": lambda xp: xp.tril(xp.asarray(A), k=-1),
    "triu": lambda xp: xp.triu(xp.asarray(A), k=1),
    "zeros": lambda xp: xp.zeros((2, 3), dtype=xp.uint16),
    "zeros_like": lambda xp: xp.zeros_like(xp.asarray(T)),
    "astype": lambda xp: xp.astype(xp.asarray(A), xp.int32),
    "broadcast_arrays": lambda xp: tuple(
        xp.broadcast_arrays(xp.asarray(A), xp.asarray(A[0]))
    ),
    "broadcast_shapes": lambda xp: np.array(xp.broadcast_shapes((2, 1), (3,))),
    "broadcast_to": lambda xp: xp.broadcast_to(xp.asarray(A[0]), (2, 3)),
    "can_cast": lambda xp: np.array(
        [xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)]
    ),
    "finfo": lambda xp: np.array([xp.finfo(xp.float32).bits, xp.finfo(xp.float64).eps]),
    "iinfo": lambda xp: np.array([xp.iinfo(xp.int8).min, xp.iinfo(xp.uint16).max]),
    "isdtype": lambda xp: np.array(
        [xp.isdtype(xp.int8, "integral"), xp.isdtype(xp.int8, ("bool", "numeric"))]
    ),
    "result_type": lambda xp: xp.zeros(1, dtype=xp.result_type(xp.int8, xp.uint8)),
    "clip": lambda xp: (
        xp.clip(xp.asarray(A), 0, 1), xp.clip(xp.asarray(N), max=xp.asarray(2))
    ),
    "take": lambda xp: xp.take(xp.asarray(A), xp.asarray([2, 0]), axis=1),
    "take_along_axis": lambda xp: xp.take_along_axis(
        xp.asarray(N), xp.asarray([[2, 0], [1, 1]]), axis=1
    ),
    "matmul": lambda xp: xp.matmul(xp.asarray(A), xp.asarray(Z)),
    "tensordot": lambda xp: (
        xp.tensordot(xp.asarray(A), xp.asarray(B)),
        xp.tensordot(xp.asarray(A), xp.asarray(B), axes=((0,), (1,))),
    ),
    "matrix_transpose": lambda xp: xp.matrix_transpose(xp.asarray(N)),
    "vecdot": lambda xp: xp.vecdot(xp.asarray(Z), xp.asarray(Z), axis=-2),
    "concat": lambda xp: (
        xp.concat([xp.asarray(A), xp.asarray(B)], axis=1),
        xp.concat([xp.asarray(A), xp.asarray(Z)], axis=None),
    ),
    "expand_dims": lambda xp: xp.expand_dims(xp.asarray(A), axis=1),
    "flip": lambda xp: (xp.flip(xp.asarray(N)), xp.flip(xp.asarray(N), axis=1)),
    "moveaxis": lambda xp: xp.moveaxis(xp.zeros((2, 3, 4)), 0, -1),
    "permute_dims": lambda xp: xp.permute_dims(xp.zeros((2, 3, 4)), (2, 0, 1)),
    "repeat": lambda xp: (
        xp.repeat(xp.asarray(N), 2), xp.repeat(xp.asarray(N), 2, axis=1)
    ),
    "reshape": lambda xp: xp.reshape(xp.asarray(N), (3, -1)),
    "roll": lambda xp: (
        xp.roll(xp.asarray(N), 1), xp.roll(xp.asarray(N), (1, 2), axis=(0, 1))
    ),
    "squeeze": lambda xp: xp.squeeze(xp.zeros((1, 3, 1)), axis=0),
    "stack": lambda xp: xp.stack([xp.asarray(A), xp.asarray(B)], axis=-1),
    "tile": lambda xp: xp.tile(xp.asarray(N), (2, 1, 2)),
    "unstack": lambda xp: tuple(xp.unstack(xp.asarray(N), axis=1)),
    "argmax": lambda xp: (
        xp.argmax(xp.asarray(A)), xp.argmax(xp.asarray(A), axis=1, keepdims=True)
    ),
    "argmin": lambda xp: xp.argmin(xp.asarray(A), axis=0),
    "nonzero": lambda xp: tuple(xp.nonzero(xp.asarray(T))),
    "count_nonzero": lambda xp: xp.count_nonzero(xp.asarray(T), axis=0, keepdims=True),
    # In JAX, and here, its indices have 32 bits wherever these are enough.
    "searchsorted": lambda xp: xp.astype(
        xp.searchsorted(
            xp.asarray([1.0, 2.0, 4.0]), xp.asarray([2.0, 3.0]), side="right"
        ),
        xp.int32,
    ),
    "where": lambda xp: xp.where(xp.asarray(T), xp.asarray(N), 0),
    "unique_all": lambda xp: tuple(xp.unique_all(xp.asarray(N))),
    "unique_counts": lambda xp: tuple(xp.unique_counts(xp.asarray(N))),
    "unique_inverse": lambda xp: tuple(xp.unique_inverse(xp.asarray(N))),
    "unique_values": lambda xp: xp.unique_values(xp.asarray(N)),
    # array-api-strict 2.6.1 takes no notice of `invert`.
    "isin": lambda xp: xp.isin(xp.asarray(N), xp.asarray([1, 2])),
    "argsort": lambda xp: (
        xp.argsort(xp.asarray(A)), xp.argsort(xp.asarray(A), axis=0, descending=True)
    ),
    "sort": lambda xp: (
        xp.sort(xp.asarray(A)), xp.sort(xp.asarray(N), descending=True)
    ),
    "cumulative_sum": lambda xp: xp.cumulative_sum(
        xp.asarray(N), axis=1, include_initial=True
    ),
    "cumulative_prod": lambda xp: xp.cumulative_prod(xp.asarray(A[0])),
    "all": lambda xp: (xp.all(xp.asarray(T)), xp.all(xp.asarray(T), axis=0)),
    "any": lambda xp: xp.any(xp.asarray(T), axis=1, keepdims=True),
    "diff": lambda xp: xp.diff(xp.asarray(A), axis=0, prepend=xp.zeros((1, 3))),
    "__array_namespace_info__": lambda xp: np.array(
        sorted(xp.__array_namespace_info__().dtypes(kind="numeric"))
    ),
    **{
        name: lambda xp, name=name: (
            getattr(xp, name)(xp.asarray(A)),
            getattr(xp, name)(xp.asarray(A), axis=(0, 1), keepdims=True),
        )
        for name in ("max", "mean", "min", "prod", "sum")
    },
    **{
        name: lambda xp, name=name: getattr(xp, name)(
            xp.asarray(A), axis=1, correction=1
        )
        for name in ("std", "var")
    },
    "linalg.cholesky": lambda xp: (
        xp.linalg.cholesky(xp.asarray(A)), xp.linalg.cholesky(xp.asarray(A), upper=True)
    ),
    "linalg.cross": lambda xp: xp.linalg.cross(xp.asarray(A), xp.asarray(B), axis=-2),
    "linalg.diagonal": lambda xp: xp.linalg.diagonal(xp.asarray(A), offset=1),
    "linalg.eigh": lambda xp: xp.linalg.eigh(xp.asarray(A)).eigenvalues,
    "linalg.matmul": lambda xp: xp.linalg.matmul(xp.asarray(A), xp.asarray(B)),
    "linalg.matrix_norm": lambda xp: (
        xp.linalg.matrix_norm(xp.asarray(A)),
        xp.linalg.matrix_norm(xp.asarray(A), ord="nuc", keepdims=True),
    ),
    "linalg.matrix_power": lambda xp: xp.linalg.matrix_power(xp.asarray(A), 3),
    "linalg.outer": lambda xp: xp.linalg.outer(xp.asarray(A[0]), xp.asarray(B[0])),
    "linalg.pinv": lambda xp: xp.linalg.pinv(xp.asarray(A[:2])),
    "linalg.qr": lambda xp: np.matmul(
        *map(np.asarray, xp.linalg.qr(xp.asarray(A[:2]), mode="complete"))
    ),
    "linalg.slogdet": lambda xp: tuple(xp.linalg.slogdet(xp.asarray(B))),
    "linalg.solve": lambda xp: (
        xp.linalg.solve(xp.asarray(A), xp.asarray(B)),
        xp.linalg.solve(xp.asarray(A), xp.asarray(B[0])),
    ),
    "linalg.svd": lambda xp: xp.linalg.svd(xp.asarray(A), full_matrices=False).S,
    "linalg.tensordot": lambda xp: xp.linalg.tensordot(xp.asarray(A), xp.asarray(B)),
    "linalg.trace": lambda xp: xp.linalg.trace(xp.asarray(N), offset=1),
    "linalg.vecdot": lambda xp: xp.linalg.vecdot(xp.asarray(A), xp.asarray(Z)),
    "linalg.vector_norm": lambda xp: (
        xp.linalg.vector_norm(xp.asarray(A)),
        xp.linalg.vector_norm(xp.asarray(Z), axis=0, keepdims=True, ord=1),
    ),
    **{
        f"linalg.{name}": lambda xp, name=name: getattr(xp.linalg, name)(xp.asarray(A))
        for name in "det eigvalsh inv matrix_rank matrix_transpose svdvals".split()
    },
    **{
        f"fft.{name}": lambda xp, name=name: getattr(xp.fft, name)(xp.asarray(A))
        for name in "rfft rfftn ihfft".split()
    },
    **{
        f"fft.{name}": lambda xp, name=name: getattr(xp.fft, name)(xp.asarray(Z))
        for name in "fft ifft fftn ifftn".split()
    },
    **{
        f"fft.{name}": lambda xp, name=name: getattr(xp.fft, name)(
            xp.asarray(Z), norm="ortho"
        )
        for name in "irfft irfftn hfft".split()
    },
    "fft.fftfreq": lambda xp: xp.fft.fftfreq(5, d=0.5),
    "fft.rfftfreq": lambda xp: xp.fft.rfftfreq(5, d=0.5),
    "fft.fftshift": lambda xp: xp.fft.fftshift(xp.asarray(A), axes=1),
    "fft.ifftshift": lambda xp: xp.fft.ifftshift(xp.asarray(A)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_values_and_dtypes(name):
    with minijax.enable_x64(True):
        same(CALLS[name](jnp), CALLS[name](strict))


def test_each_function_is_called():
    names = {".".join(filter(None, pair)) for pair in FUNCTIONS}
    assert names == {*CALLS, *OPERATORS}
    assert len(names) >= 170
