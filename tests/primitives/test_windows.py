"""Windows and convolutions against jax: values, derivatives, batches, errors."""

import itertools
import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")
minijax = pytest.importorskip("minijax")

X = np.sin(np.arange(24, dtype=np.float32)).reshape(4, 6)


def both(build, *args):
    """The values of a program in minijax and in jax agree."""
    ours, theirs = build(minijax)(*args), jax.jit(build(jax))(*args)
    ours_flat = minijax.tree_util.tree_leaves(ours)
    theirs_flat = jax.tree_util.tree_leaves(theirs)
    assert len(ours_flat) == len(theirs_flat)
    for mine, other in zip(ours_flat, theirs_flat):
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=2e-5, atol=1e-6)


WINDOWS = [
    ((2, 2), (1, 1), "VALID", None, None),
    ((2, 3), (2, 1), "SAME", None, None),
    ((1, 2), (1, 3), ((0, 0), (1, 2)), None, (1, 2)),
    ((2, 2), (1, 2), ((1, 0), (0, 1)), (2, 1), None),
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", ["add", "max", "min", "mul"])
def test_windows(window, kind):
    start = {"add": 0.0, "max": -np.inf, "min": np.inf, "mul": 1.0}[kind]
    size, strides, padding, base, dilation = window

    def build(lib):
        def reduce(x):
            combine = getattr(lib.lax, kind)
            return lib.lax.reduce_window(
                x, np.float32(start), combine, size, strides, padding, base, dilation
            )

        return reduce

    both(build, X)
    both(lambda lib: lib.vmap(build(lib)), np.stack([X, -X]))
    both(lambda lib: lambda x: lib.jvp(build(lib), (x,), (x * x,)), X)
    if kind != "mul" and (kind == "add" or dilation is None):
        both(lambda lib: lib.grad(lambda x: (build(lib)(x) ** 2).sum()), X)


def test_windows_of_two_arrays():
    def build(lib):
        def reduce(x, y):
            def combine(a, b):
                return a[0] + b[0], lib.lax.max(a[1], b[1])

            starts = (np.float32(0), np.float32(-np.inf))
            return lib.lax.reduce_window(
                (x, y), starts, combine, (2, 2), (2, 2), "VALID"
            )

        return reduce

    both(build, X, X * 2)


def scattering(lib, select, scatter, size, strides, padding):
    """`select_and_scatter`, which no public function of JAX binds."""

    def apply(operand, source, start):
        scalar = lib.ShapeDtypeStruct((), operand.dtype)
        chosen = {"select": select(lib), "scatter": scatter(lib)}
        params = {
            f"{name}_jaxpr": lib.make_jaxpr(function)(scalar, scalar).jaxpr
            for name, function in chosen.items()
        }
        return lib.lax.select_and_scatter_p.bind(
            operand,
            source,
            start,
            **params,
            select_consts=(),
            scatter_consts=(),
            window_dimensions=size,
            window_strides=strides,
            padding=padding,
        )

    return apply


def nearest_to_half(lib):
    return lambda a, b: abs(a - 0.5) <= abs(b - 0.5)


SCATTERINGS = [
    (lambda lib: lib.lax.ge, lambda lib: lib.lax.add, (2, 2), (2, 2), ((0, 0), (0, 0))),
    (lambda lib: lib.lax.lt, lambda lib: lib.lax.mul, (2, 3), (1, 2), ((1, 0), (1, 1))),
    (nearest_to_half, lambda lib: lib.lax.max, (3, 2), (1, 4), ((1, 1), (0, 0))),
]


@pytest.mark.parametrize("kind", SCATTERINGS)
def test_select_and_scatter(kind):
    *_, size, strides, padding = kind
    shape = minijax.lax.reduce_window_shape_tuple(X.shape, size, strides, padding)
    source = np.cos(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)
    start = np.float32(0.25)
    both(lambda lib: scattering(lib, *kind), X, source, start)
    ours, theirs = (
        lib.jit(scattering(lib, *kind)).lower(X, source, start).as_text()
        for lib in (minijax, jax)
    )
    operations = [{*re.findall(r"stablehlo\.\w+", text)} for text in (ours, theirs)]
    assert operations[0] == operations[1]
    assert '"stablehlo.select_and_scatter"(%arg0, %arg1, %arg2)' in ours
    for transformed in (
        lambda lib: lib.jvp(scattering(lib, *kind), *[(X, source, start)] * 2),
        lambda lib: lib.vmap(scattering(lib, *kind), (0, None, None))(
            X[None], source, start
        ),
    ):
        for lib in (minijax, jax):
            with pytest.raises(NotImplementedError, match="'?select_and_scatter'?"):
                transformed(lib)


def test_wrong_select_and_scatter_raises():
    *functions, size, strides, padding = SCATTERINGS[0]
    good = (X, X[:2, :3], np.float32(0))
    for (operand, source, start), sizes, message in [
        ((X, X[:2], good[2]), (size, strides, padding), r"of shape \(2, 3\)"),
        ((X, good[1], np.int32(0)), (size, strides, padding), "a scalar init_value"),
        (good, (size, (2,), padding), "inconsistent window_strides"),
        (good, ((2,), (2,), padding), "wrong number of window_dimensions"),
        (good, (size, (2, 0), padding), "positive"),
    ]:
        with pytest.raises(TypeError, match=message):
            scattering(minijax, *functions, *sizes)(operand, source, start)


def scattering_sums(lib):
    def apply(source, operand):
        return lib.lax.select_and_scatter_add_p.bind(
            source,
            operand,
            select_prim=lib.lax.ge_p,
            window_dimensions=(2, 2),
            window_strides=(1, 2),
            padding=((0, 1), (1, 1)),
        )

    return apply


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int32, np.float16, np.float32])
def test_select_and_scatter_add_of_each_kind_of_dtype(dtype):
    source, operand = (np.arange(16).reshape(4, 4) % 3).astype(dtype), (X > 0) + X
    operand = (operand > 0.5 if dtype is bool else 9 + 4 * operand).astype(dtype)
    both(scattering_sums, source, operand)
    both(lambda lib: lib.jit(scattering_sums(lib)), source, operand)


def test_wrong_select_and_scatter_add_raises_when_it_is_traced():
    source = X[:, :4]
    for wrong, got in [
        (source.astype(np.int32), "int32[4,4]"),
        (source.astype(np.float16), "float16[4,4]"),
        (source[:3], "float32[3,4]"),
    ]:
        with pytest.raises(TypeError) as error:
            minijax.make_jaxpr(scattering_sums(minijax))(wrong, X)
        assert str(error.value).startswith(
            "select_and_scatter_add takes a source with an entry for each window, here "
            f"of shape (4, 4), of the operand's dtype, float32. Got {got}."
        )
        with pytest.raises((TypeError, ValueError)):
            jax.jit(scattering_sums(jax))(wrong, X)


def test_wrong_window_raises():
    for lib in (minijax, jax):
        with pytest.raises(TypeError):
            lib.lax.reduce_window(X, np.float32(0), lib.lax.add, (2,), (1,), "VALID")


CONVOLUTIONS = [
    dict(window_strides=(1,), padding="SAME"),
    dict(window_strides=(2,), padding=((1, 2),), rhs_dilation=(2,)),
    dict(window_strides=(1,), padding=((2, 1),), lhs_dilation=(2,)),
    dict(window_strides=(1,), padding="VALID", feature_group_count=2),
    dict(window_strides=(1,), padding="VALID", batch_group_count=2),
]


def _operands(params, dtype=np.float32):
    groups = params.get("feature_group_count", 1)
    image = np.cos(np.arange(4 * 4 * 7)).reshape(4, 4, 7).astype(dtype)
    kernel = np.sin(np.arange(4 * (4 // groups) * 3)).reshape(4, 4 // groups, 3)
    return image, kernel.astype(dtype)


@pytest.mark.parametrize("params", CONVOLUTIONS)
def test_convolutions(params):
    def build(lib):
        return lambda x, k: lib.lax.conv_general_dilated(x, k, **params)

    image, kernel = _operands(params)
    both(build, image, kernel)
    both(
        lambda lib: lib.grad(lambda x, k: (build(lib)(x, k) ** 2).sum(), (0, 1)),
        image,
        kernel,
    )
    for axes in itertools.product((0, 1, None), (0, 2, None)):
        if axes == (None, None):
            continue
        args = [
            arg if axis is None else np.stack([arg, -arg, arg + 1], axis)
            for arg, axis in zip((image, kernel), axes)
        ]
        both(lambda lib, axes=axes: lib.vmap(build(lib), axes), *args)


def test_complex_convolution():
    image, kernel = _operands({})
    both(
        lambda lib: lambda x, k: lib.lax.conv(x, k, (1,), "SAME"),
        image + 1j * image[::-1],
        kernel - 2j * kernel,
    )


def test_transposed_convolution_and_patches():
    image = np.cos(np.arange(2 * 5 * 3, dtype=np.float32)).reshape(2, 5, 3)
    kernel = np.sin(np.arange(3 * 3 * 4, dtype=np.float32)).reshape(3, 3, 4)
    for padding in ("SAME", "VALID"):
        both(
            lambda lib, p=padding: lambda x, k: lib.lax.conv_transpose(x, k, (2,), p),
            image,
            kernel,
        )
    square = X.reshape(1, 1, 4, 6)
    both(
        lambda lib: (
            lambda x: lib.lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID")
        ),
        square,
    )


LAYOUTS = [
    ("NCHW", "OIHW", "NCHW"),
    ("NHWC", "WHIO", "NWHC"),
    ("CNHW", "HOWI", "HNCW"),
]


@pytest.mark.parametrize("layout", [None, *LAYOUTS])
@pytest.mark.parametrize(
    "strides, padding",
    [((1, 1), "SAME"), ((2, 1), "VALID"), ((1, 2), ((1, 1), (0, 2)))],
)
def test_convolution_with_a_kernel_at_each_place(layout, strides, padding):
    lhs_spec, rhs_spec, out_spec = layout or LAYOUTS[0]
    sizes = dict(zip("NCHW", (2, 3, 6, 7)))
    lhs = np.cos(np.arange(252, dtype=np.float32))
    lhs = lhs.reshape([sizes[mark] for mark in lhs_spec])
    window = [2 + (mark == "H") for mark in rhs_spec if mark in "HW"]
    numbers = {"dimension_numbers": layout}
    patches = minijax.lax.conv_general_dilated_patches(
        lhs, window, strides, padding, **numbers
    )
    places = {mark: patches.shape[out_spec.index(mark)] for mark in "HW"}
    shape = [{"O": 4, "I": 18, **places}[mark] for mark in rhs_spec]
    rhs = np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)

    def build(lib):
        settings = (strides, padding, window)
        local = lib.lax.conv_general_dilated_local
        return lambda x, k: local(x, k, *settings, **numbers, precision="highest")

    both(build, lhs, rhs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 2), (0, 1)), "FULL"])
def test_shape_of_a_transposed_convolution(layout, strides, padding):
    shapes = [
        [dict(zip("NCOIHW", (2, 4, 5, 4, 6, 7)))[mark] for mark in spec]
        for spec in layout[:2]
    ]
    found = []
    for lib in (minijax, jax):
        try:
            shape = lib.lax.conv_transpose_shape_tuple(
                *shapes, strides, padding, layout
            )
        except ValueError as error:
            shape = type(error)
        found.append(shape)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("lhs", "rhs", "params"),
    [
        ((1, 3, 5), (2, 4, 3), {}),
        ((1, 4, 5), (3, 2, 3), dict(feature_group_count=2)),
        ((3, 4, 5), (2, 4, 3), dict(batch_group_count=2)),
        ((1, 4, 5), (2, 4, 3, 1), {}),
    ],
)
def test_wrong_convolution_raises_as_jax(lhs, rhs, params):
    classes = []
    for lib in (minijax, jax):
        with pytest.raises((TypeError, ValueError)) as caught:
            lib.lax.conv_general_dilated(
                np.ones(lhs, np.float32),
                np.ones(rhs, np.float32),
                (1,),
                "VALID",
                **params,
            )
        classes.append(caught.type)
    assert classes[0] is classes[1]
