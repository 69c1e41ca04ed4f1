"""Programs that must fail raise JAX's exception classes."""

import functools

import jax
import numpy as np
import pytest

from tests.oracle.oracle import difference, run

minijax = pytest.importorskip("minijax")

VECTOR = np.arange(3, dtype=np.float32)
MATRIX = np.ones((2, 3), np.float32)

PROGRAMS = {
    "bool_of_tracer": lambda jax: jax.jit(lambda x: 1 if x > 0 else 2)(1.0),
    "and_of_tracers": lambda jax: jax.jit(lambda x: x > 0 and x < 2)(1.0),
    "int_of_tracer": lambda jax: jax.jit(lambda x: int(x))(1),
    "float_of_tracer": lambda jax: jax.jit(lambda x: float(x))(1.0),
    "complex_of_tracer": lambda jax: jax.jit(lambda x: complex(x))(1.0),
    "float_would_lose_a_tangent": lambda jax: jax.grad(lambda x: x * float(x))(3.0),
    "complex_would_lose_a_tangent": lambda jax: jax.grad(lambda x: x * complex(x).real)(
        3.0
    ),
    "numpy_would_lose_a_tangent": lambda jax: jax.jvp(
        lambda x: x * np.asarray(x), (3.0,), (1.0,)
    ),
    "tracer_as_index": lambda jax: jax.jit(lambda n: [1, 2][n])(1),
    "tracer_as_range": lambda jax: jax.jit(lambda n: list(range(n)))(1),
    "numpy_of_tracer": lambda jax: jax.jit(lambda x: np.asarray(x))(VECTOR),
    "numpy_function_of_tracer": lambda jax: jax.jit(lambda x: np.sin(x))(VECTOR),
    "item_of_tracer": lambda jax: jax.jit(lambda x: x.item())(1.0),
    "tolist_of_tracer": lambda jax: jax.jit(lambda x: x.tolist())(VECTOR),
    "shape_from_tracer": lambda jax: jax.jit(lambda n: jax.numpy.zeros(n))(3),
    "arange_of_tracer": lambda jax: jax.jit(lambda n: jax.numpy.arange(n))(3),
    "reshape_by_tracer": lambda jax: jax.jit(lambda x, n: x.reshape(n))(VECTOR, 3),
    "slice_by_tracer": lambda jax: jax.jit(lambda x, n: x[:n])(VECTOR, 2),
    "mask_of_tracer": lambda jax: jax.jit(lambda x: x[x > 1])(VECTOR),
    "nonzero_of_tracer": lambda jax: jax.jit(lambda x: jax.numpy.nonzero(x))(VECTOR),
    "bool_under_vmap": lambda jax: jax.vmap(lambda x: x if x > 0 else -x)(VECTOR),
    "grad_of_vector": lambda jax: jax.grad(lambda x: x)(VECTOR),
    "grad_of_integer": lambda jax: jax.grad(lambda x: x * 2)(1),
    "grad_of_integer_output": lambda jax: jax.grad(lambda x: x.astype(int))(1.0),
    "grad_of_complex": lambda jax: jax.grad(lambda x: x * x)(1j),
    "grad_of_tuple": lambda jax: jax.grad(lambda x: (x, x))(1.0),
    "grad_of_string": lambda jax: jax.grad(lambda x: 1.0)("a"),
    "grad_argnums_missing": lambda jax: jax.grad(lambda x: x, argnums=2)(1.0),
    "has_aux_without_pair": lambda jax: jax.grad(lambda x: x, has_aux=True)(1.0),
    "jvp_shapes": lambda jax: jax.jvp(lambda x: x, (VECTOR,), (MATRIX,)),
    "jvp_dtypes": lambda jax: jax.jvp(lambda x: x, (VECTOR,), (np.arange(3),)),
    "jvp_trees": lambda jax: jax.jvp(lambda x: x, (VECTOR,), ((VECTOR,),)),
    "jvp_no_tuple": lambda jax: jax.jvp(lambda x: x, VECTOR, VECTOR),
    "vjp_wrong_cotangent": lambda jax: jax.vjp(lambda x: x, VECTOR)[1](MATRIX),
    "linearized_wrong_tangent": lambda jax: jax.linearize(lambda x: x, VECTOR)[1](1),
    "jacfwd_of_integer": lambda jax: jax.jacfwd(lambda x: x)(np.arange(3)),
    "add_shapes": lambda jax: jax.numpy.ones(3) + jax.numpy.ones(2),
    "lax_add_shapes": lambda jax: jax.lax.add(VECTOR, MATRIX),
    "lax_add_dtypes": lambda jax: jax.lax.add(VECTOR, np.arange(3)),
    "lax_sin_of_integers": lambda jax: jax.lax.sin(np.arange(3)),
    "lax_not_of_floats": lambda jax: jax.lax.bitwise_not(VECTOR),
    "dot_shapes": lambda jax: jax.numpy.dot(MATRIX, MATRIX),
    "matmul_shapes": lambda jax: jax.numpy.asarray(MATRIX) @ MATRIX,
    "lax_dot_shapes": lambda jax: jax.lax.dot(MATRIX, MATRIX),
    "concatenate_shapes": lambda jax: jax.numpy.concatenate([MATRIX, VECTOR]),
    "lax_concatenate_shapes": lambda jax: jax.lax.concatenate([MATRIX, MATRIX.T], 0),
    "stack_shapes": lambda jax: jax.numpy.stack([VECTOR, MATRIX]),
    "reshape_size": lambda jax: jax.numpy.asarray(VECTOR).reshape((2, 2)),
    "transpose_permutation": lambda jax: jax.lax.transpose(MATRIX, (0, 0)),
    "broadcast_shape": lambda jax: jax.numpy.broadcast_to(VECTOR, (2, 2)),
    "reduce_axis": lambda jax: jax.numpy.sum(VECTOR, axis=1),
    "squeeze_axis": lambda jax: jax.numpy.squeeze(VECTOR, axis=0),
    "too_many_indices": lambda jax: jax.numpy.asarray(VECTOR)[0, 0],
    "float_index": lambda jax: jax.numpy.asarray(VECTOR)[1.5],
    "list_index": lambda jax: jax.numpy.asarray(VECTOR)[[0, 1]],
    "string_index": lambda jax: jax.numpy.asarray(VECTOR)["a"],
    "slice_start_float": lambda jax: jax.numpy.asarray(VECTOR)[0.5:],
    "vmap_sizes": lambda jax: jax.vmap(lambda x, y: x)(VECTOR, MATRIX),
    "vmap_scalar": lambda jax: jax.vmap(lambda x: x)(1.0),
    "vmap_axis_range": lambda jax: jax.vmap(lambda x: x, in_axes=2)(MATRIX),
    "vmap_nothing_mapped": lambda jax: jax.vmap(lambda x: x, in_axes=None)(MATRIX),
    "vmap_in_axes_tree": lambda jax: jax.vmap(lambda x: x, in_axes=(0, 0))(MATRIX),
    "vmap_in_axes_type": lambda jax: jax.vmap(lambda x: x, in_axes="a")(MATRIX),
    "vmap_out_axes_none": lambda jax: jax.vmap(lambda x: x, out_axes=None)(MATRIX),
    "vmap_out_axes_tree": lambda jax: jax.vmap(lambda x: x, out_axes=(0, 0))(MATRIX),
    "psum_of_unknown_axis": lambda jax: jax.lax.psum(1.0, "nowhere"),
    "unhashable_static": lambda jax: jax.jit(lambda x: x, static_argnums=0)([1]),
    "static_argnums_range": lambda jax: jax.jit(lambda x: x, static_argnums=3)(1.0),
    "static_argname_missing": lambda jax: jax.jit(lambda x: x, static_argnames="y")(1),
    "donate_and_static": lambda jax: jax.jit(
        lambda x: x, static_argnums=0, donate_argnums=0
    )(1.0),
    "non_array_argument": lambda jax: jax.jit(lambda x: x)("a"),
    "object_argument": lambda jax: jax.jit(lambda x: x)(object()),
    "non_array_result": lambda jax: jax.jit(lambda x: "a")(1.0),
    "object_in_result": lambda jax: jax.jit(lambda x: object())(1.0),
    "jit_of_nothing": lambda jax: jax.jit(3),
    "grad_of_nothing": lambda jax: jax.grad(3),
    "vmap_of_nothing": lambda jax: jax.vmap(3),
    "jit_missing_argument": lambda jax: jax.jit(lambda x, y: x)(1.0),
    "array_of_strings": lambda jax: jax.numpy.array(["a"]),
    "ragged_array": lambda jax: jax.numpy.array([[1], [1, 2]]),
    "sum_of_a_list": lambda jax: jax.numpy.sum([1, 2]),
    "add_of_a_list": lambda jax: jax.numpy.asarray(VECTOR) + [1, 2, 3],
    "add_of_a_string": lambda jax: jax.numpy.asarray(VECTOR) + "a",
    "hash_of_array": lambda jax: hash(jax.numpy.asarray(VECTOR)),
    "bool_of_vector": lambda jax: bool(jax.numpy.asarray(VECTOR)),
    "int_of_vector": lambda jax: int(jax.numpy.asarray(VECTOR)),
    "len_of_scalar": lambda jax: len(jax.numpy.float32(1)),
    "iterate_scalar": lambda jax: list(jax.numpy.float32(1)),
    "item_of_vector": lambda jax: jax.numpy.asarray(VECTOR).item(),
    "key_arithmetic": lambda jax: jax.random.key(0) + 1,
    "normal_of_no_key": lambda jax: jax.random.normal(3),
    "normal_of_keys": lambda jax: jax.random.normal(
        jax.random.split(jax.random.key(0)), (2,)
    ),
    "randint_of_float": lambda jax: jax.random.randint(
        jax.random.key(0), (2,), 0, 3, dtype=np.float32
    ),
    "uniform_of_integer": lambda jax: jax.random.uniform(
        jax.random.key(0), (2,), dtype=np.int32
    ),
    "scatter_bad_mode": lambda jax: jax.numpy.asarray(VECTOR).at[0].set(1, mode="a"),
    "cast_unknown": lambda jax: jax.numpy.asarray(VECTOR).astype("nothing"),
    "einsum_letters": lambda jax: jax.numpy.einsum("ij,jk->ik", MATRIX, MATRIX),
    "clip_of_complex": lambda jax: jax.numpy.clip(1j, 0, 1),
    "negative_shape": lambda jax: jax.numpy.zeros(-1),
    "float_shape": lambda jax: jax.numpy.zeros(1.5),
    "tree_map_structures": lambda jax: jax.tree_util.tree_map(
        lambda a, b: a, {"a": 1}, {"b": 1}
    ),
    "custom_jvp_without_rule": lambda jax: jax.grad(jax.custom_jvp(lambda x: x))(1.0),
    "custom_vjp_without_rule": lambda jax: jax.grad(jax.custom_vjp(lambda x: x))(1.0),
    "linear_transpose_of_sine": lambda jax: jax.linear_transpose(jax.numpy.sin, VECTOR)(
        VECTOR
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_exception_class(name):
    program = PROGRAMS[name]
    ours, theirs = run(program, minijax), run(program, jax)
    assert theirs.error is not None, f"JAX raises nothing for {name}"
    message = difference(ours, theirs)
    assert message is None, message


def assign_item(library):
    array = library.numpy.zeros(3)
    array[0] = 1.0


def leak(library):
    kept = []
    library.jit(lambda x: kept.append(x))(1.0)
    return kept[0] + 1


def leak_from_grad(library):
    kept = []

    def loss(x):
        kept.append(x)
        return x

    library.grad(loss)(1.0)
    return library.jit(lambda y: kept[0] + y)(1.0)


def use_donated(library):
    # Of a shape that no other test adds to: jax raises another class where it finds a
    # program in its cache.
    x = library.numpy.arange(1237.0)
    library.jit(lambda x: x * 2, donate_argnums=0)(x)
    return x + 1


def duplicate_static(library):
    @functools.partial(library.jit, static_argnames=("n",))
    def power(x, n):
        return x**n

    return power(2.0, 3, n=3)


def wrong_custom_vjp(library):
    @library.custom_vjp
    def f(x, y):
        return x * y

    f.defvjp(lambda x, y: (x * y, None), lambda residual, ct: (ct,))
    return library.grad(f)(1.0, 2.0)


def wrong_custom_jvp(library):
    @library.custom_jvp
    def f(x):
        return x * 2

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), library.numpy.ones(3)

    return library.grad(f)(1.0)


@pytest.mark.parametrize(
    "program",
    [
        assign_item,
        leak,
        leak_from_grad,
        use_donated,
        duplicate_static,
        wrong_custom_vjp,
        wrong_custom_jvp,
    ],
    ids=lambda program: program.__name__,
)
def test_exception_class_of_longer_programs(program):
    ours, theirs = run(program, minijax), run(program, jax)
    assert theirs.error is not None
    message = difference(ours, theirs)
    assert message is None, message


PLACES = [
    "addressable_data", "addressable_shards", "committed", "delete", "devices",
    "global_shards", "is_deleted", "is_fully_addressable", "is_fully_replicated",
    "on_device_size_in_bytes", "unsafe_buffer_pointer",
]  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_a_traced_value_is_nowhere(name):
    for module in (jax, minijax):

        def function(x, module=module):
            with pytest.raises(module.errors.ConcretizationTypeError, match=name):
                answer = getattr(x, name)
                answer(*[0] * (name == "addressable_data"))
            return x

        module.make_jaxpr(function)(1.0)
        module.jvp(function, (1.0,), (1.0,))


def test_out_sharding_of_bincount_is_refused():
    x = minijax.numpy.asarray([1, 2])
    minijax.numpy.bincount(x, out_sharding=None)
    with pytest.raises(NotImplementedError, match="device_put"):
        minijax.numpy.bincount(x, out_sharding=x.sharding)


WRONG_ARGUMENTS = {
    "padding_config must": lambda lax, x: lax.pad(x, np.float32(0), [(0, 0)]),
    "axis 3 is out": lambda lax, x: lax.slice_in_dim(x, 0, 1, axis=3),
    "axis 2 is out": lambda lax, x: lax.dynamic_slice_in_dim(x, 0, 1, axis=2),
    "axis -3 is out": lambda lax, x: lax.dynamic_index_in_dim(x, 0, axis=-3),
    "axis 4 is out": lambda lax, x: lax.dynamic_update_slice_in_dim(x, x, 0, axis=4),
    "window_strides must have every": lambda lax, x: lax.reduce_window(
        x, np.float32(0), lax.add, (2, 2), (0, 1), "SAME"
    ),
    "window_strides must have a positive": lambda lax, x: lax.conv_general_dilated(
        x[None, None], x[None, None], (0, 1), "SAME"
    ),
    "padding must have pairs": lambda lax, x: lax.conv_general_dilated(
        x[None, None], x[None, None], (1, 1), [(0, 0), (0,)]
    ),
    "padding must have pairs (low, high), got 1": lambda lax, x: (
        lax.conv_general_dilated(x[None, None], x[None, None], (1, 1), 1)
    ),
    "padding must have one pair": lambda lax, x: lax.conv_general_dilated(
        x[None, None], x[None, None], (1, 1), [(0, 0)]
    ),
    "computation must be a function": lambda lax, x: lax.reduce(
        x, np.float32(0), "add", (0,)
    ),
    "branches must be a list": lambda lax, x: lax.switch(0, lambda: x),
    "must be square": lambda lax, x: lax.linalg.cholesky(x),
    "square, ": lambda lax, x: lax.linalg.eigh(x[0]),
}


@pytest.mark.parametrize("message", WRONG_ARGUMENTS)
def test_a_wrong_argument_is_named(message):
    raised = []
    for module in (jax, minijax):
        with pytest.raises(Exception) as error:
            WRONG_ARGUMENTS[message](module.lax, module.numpy.ones((2, 3), "float32"))
        raised.append(error)
    assert raised[0].type is raised[1].type
    assert message in str(raised[1].value)


@pytest.mark.parametrize("place", [1, minijax.P("x")])
def test_a_program_refuses_what_is_no_place(place):
    for make in (
        lambda: minijax.numpy.zeros(3, out_sharding=place),
        lambda: minijax.numpy.full_like(np.ones(2), 3, device=place),
        lambda: minijax.random.normal(minijax.random.key(0), (3,), out_sharding=place),
    ):
        said = "takes a|PartitionSpec when|must be a device"
        with pytest.raises((TypeError, ValueError), match=said):
            minijax.make_jaxpr(make)()


def test_the_parts_of_an_array():
    for module in (jax, minijax):
        x = module.numpy.arange(3)
        assert x.addressable_data(0).tolist() == [0, 1, 2]
        assert [part.data.tolist() for part in x.global_shards] == [[0, 1, 2]]
