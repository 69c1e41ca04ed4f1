"""get, swap and addupdate on refs: text, effects, derivatives, batching, errors.

Programs that take refs are traced in both libraries and compared as text. What they
mean is computed by their meanings in NumPy, where a ref is an array that changes.
"""

import jax
import numpy as np
import pytest
from jax._src.indexing import dslice as jax_dslice

import minijax
from minijax.core import autodiff, check, language, partial_eval
from minijax.core.language import ClosedJaxpr, ShapedArray
from minijax.core.rules import Accumulator
from minijax.primitives.index.indexers import NDIndexer, Slice, dslice
from minijax.primitives.refs import references
from minijax.primitives.refs.ref_effects import AccumEffect, ReadEffect, WriteEffect
from minijax.values.ref_avals import AbstractRef
from tests.golden.normalise import normalise, plain_numpy_scalars
from tests.primitives.checks import evaluate_by_meaning

FLOAT = np.dtype(np.float32)


class Minijax:
    """What a program over refs uses, by one name in both libraries."""

    library = minijax
    numpy = minijax.numpy
    dslice = staticmethod(dslice)
    swap = staticmethod(references.ref_swap)
    set = staticmethod(references.ref_set)
    addupdate = staticmethod(references.ref_addupdate)

    @staticmethod
    def trace(function, *avals):
        """The program of `function`; types with a ref are given as AbstractRef."""

        def flat(*args):
            return minijax.tree_util.tree_leaves(function(*args))

        jaxpr, consts = partial_eval.trace_to_jaxpr(flat, avals)
        check.check_jaxpr(jaxpr)
        return ClosedJaxpr(jaxpr, consts)


class Jax:
    library = jax
    numpy = jax.numpy
    dslice = staticmethod(jax_dslice)
    swap = staticmethod(jax.ref.swap)
    set = staticmethod(jax.ref.set)
    addupdate = staticmethod(jax.ref.addupdate)

    @staticmethod
    def trace(function, *avals):
        args = [jax.numpy.zeros(aval.shape, aval.dtype) for aval in avals]
        refs = [isinstance(aval, AbstractRef) for aval in avals]
        args = [jax.new_ref(x) if ref else x for x, ref in zip(args, refs)]
        return jax.make_jaxpr(function)(*args)


def ref(*shape):
    return AbstractRef(ShapedArray(shape, FLOAT))


def array(*shape, dtype=FLOAT):
    return ShapedArray(shape, np.dtype(dtype))


INT = array(dtype=np.int32)


def whole(lib):
    def program(r, x, i):
        old = r[...]
        r[...] = x
        return old

    return program


def integers(lib):
    def program(r, x, i):
        r[1] = x[0] * 2
        r[i, 2] = x[0, 0]
        return r[i], r[:, i], r[0, 1]

    return program


def slices(lib):
    def program(r, x, i):
        lib.addupdate(r, (slice(1, 3), 0), x[:2, 0])
        r[:2] = x[1:]
        return lib.swap(r, (2, slice(1, None)), x[0, 1:]), r[::2, 1:3]

    return program


def computed_slices(lib):
    def program(r, x, i):
        r[i, lib.dslice(0, 2)] = x[0, :2]
        return r[lib.dslice(i, 2)], r[0, lib.dslice(i, 3)]

    return program


def arrays(lib):
    def program(r, x, i):
        j = lib.numpy.stack([i, i + 1])
        r[j, :2] = x[:2, :2]
        lib.addupdate(r, (j, j), x[0, :2])
        return r[j, j], r[:, j], r[j], lib.swap(r, (slice(None), j), x[:, 2:])

    return program


def three_axes(lib):
    def program(r, x, i):
        j = lib.numpy.stack([i, i + 1])
        r[:, j, 1] = x[:, :2]
        lib.addupdate(r, (0, slice(None), j), x[:2, :3])
        return r[j, :, j], r[:, 1, j], lib.swap(r, (1, j), x[:2, :3])

    return program


PROGRAMS = {
    program.__name__: program
    for program in (whole, integers, slices, computed_slices, arrays, three_axes)
}
each_program = pytest.mark.parametrize("name", PROGRAMS)


def types_of(name):
    return (ref(3, 3, 3) if name == "three_axes" else ref(3, 4)), array(3, 4), INT


def same_text(make, *avals):
    with plain_numpy_scalars():
        ours = normalise(str(Minijax.trace(make(Minijax), *avals)))
        theirs = normalise(str(Jax.trace(make(Jax), *avals)))
    assert ours == theirs


@each_program
def test_texts(name):
    same_text(PROGRAMS[name], *types_of(name))


@each_program
def test_texts_of_jvps(name):
    r, x, i = types_of(name)

    def make(lib):
        program = PROGRAMS[name](lib)

        def forward(r, x, i, r_dot, x_dot):
            return lib.library.jvp(
                lambda r, x: program(r, x, i), (r, x), (r_dot, x_dot)
            )

        return forward

    same_text(make, r, x, i, r, x)


AXES = {
    "all": (0, 0, 0),
    "not the index": (0, 0, None),
    "in the middle": (1, None, 0),
    "last": (-1, -1, None),
}


def batch_types(name, axes):
    types = []
    for aval, axis in zip(types_of(name), axes):
        if axis is not None:
            axis = aval.ndim if axis == -1 else axis
            aval = language.unmapped_aval(2, axis, aval)
        types.append(aval)
    return types


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize(
    "name", ["whole", "integers", "slices", "arrays", "three_axes"]
)
def test_texts_of_batches(name, axes):
    def make(lib):
        return lib.library.vmap(PROGRAMS[name](lib), in_axes=AXES[axes])

    same_text(make, *batch_types(name, AXES[axes]))


# ---- what the programs mean ----------------------------------------------------------


def inputs(avals, seed=0):
    random = np.random.RandomState(seed)
    return [
        np.ones(aval.shape, np.int32)
        if aval.dtype == np.int32
        else random.randint(-4, 5, aval.shape).astype(np.float32)
        for aval in avals
    ]


def run(function, avals, args):
    """(results, contents of the refs afterwards)"""
    args = [np.copy(arg) for arg in args]
    results = evaluate_by_meaning(Minijax.trace(function, *avals), args)
    return results, [x for x, aval in zip(args, avals) if isinstance(aval, AbstractRef)]


@each_program
def test_meaning_of_a_program(name):
    """Against jax, which runs it on a real ref."""
    avals = types_of(name)
    args = inputs(avals)
    results, (content,) = run(PROGRAMS[name](Minijax), avals, args)
    jax_ref = jax.new_ref(jax.numpy.asarray(args[0]))
    theirs = jax.jit(PROGRAMS[name](Jax))(jax_ref, *args[1:])
    for ours, expected in zip(results, jax.tree_util.tree_leaves(theirs), strict=True):
        np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(content, jax_ref[...])


# Slices whose starts differ between the examples have a test of their own.
LOOPS = [
    (name, axes)
    for name in PROGRAMS
    for axes in ((0, 0, 0), (1, 0, None), (0, None, 0), (2, 1, 0))
    if name != "computed_slices" or axes[2] is None
]


@pytest.mark.parametrize(("name", "axes"), LOOPS, ids=str)
def test_batches_are_loops(name, axes):
    avals = types_of(name)
    function = PROGRAMS[name](Minijax)
    mapped_types = batch_types(name, axes)
    args = inputs(mapped_types)
    if axes[2] is not None:
        args[2] = np.array([0, 1], np.int32)
    results, (content,) = run(minijax.vmap(function, axes), mapped_types, args)
    for k in range(2):
        one = [x if d is None else np.take(x, k, d) for x, d in zip(args, axes)]
        expected, (expected_content,) = run(function, avals, one)
        for ours, theirs in zip(results, expected, strict=True):
            np.testing.assert_array_equal(ours[k], theirs)
        np.testing.assert_array_equal(np.take(content, k, axes[0]), expected_content)


@each_program
def test_jvp_is_the_difference(name):
    """The programs are linear, so a difference is exact."""
    r, x, i = types_of(name)
    function = PROGRAMS[name](Minijax)

    def forward(r, x, i, r_dot, x_dot):
        return minijax.jvp(lambda r, x: function(r, x, i), (r, x), (r_dot, x_dot))

    args, tangents = inputs((r, x, i)), inputs((r, x), seed=1)
    results, contents = run(forward, (r, x, i, r, x), [*args, *tangents])
    before, (content,) = run(function, (r, x, i), args)
    moved = [args[0] + tangents[0], args[1] + tangents[1], args[2]]
    after, (moved_content,) = run(function, (r, x, i), moved)
    for out, out_dot, old, new in zip(results, results[len(before) :], before, after):
        np.testing.assert_array_equal(out, old)
        np.testing.assert_array_equal(out_dot, new - old)
    np.testing.assert_array_equal(contents[1], moved_content - content)


@each_program
def test_transpose_is_the_adjoint(name):
    r, x, _ = types_of(name)
    at = np.int32(1)

    def linear(r, x):
        return PROGRAMS[name](Minijax)(r, x, at)

    closed = Minijax.trace(linear, r, x)
    outs = closed.out_avals

    def transposed(r_ct, *cts):
        x_ct = Accumulator(x)
        args = [references.RefAccumulator(r, r_ct), x_ct]
        autodiff.backward_pass(closed.jaxpr, closed.consts, args, cts)
        return x_ct.freeze()

    args, cts = inputs((r, x)), inputs((r, *outs), seed=1)
    results, (content,) = run(linear, (r, x), args)
    (x_ct,), (r_ct,) = run(transposed, (r, *outs), cts)
    forward = sum(np.vdot(*pair) for pair in zip([content, *results], cts, strict=True))
    backward = np.vdot(r_ct, args[0]) + np.vdot(x_ct, args[1])
    assert forward == backward != 0


def test_transpose_of_a_program_whose_results_do_not_matter():
    """The write has its part even when the cotangent of what it returned is zero."""
    r, x = ref(3), array(3)
    closed = Minijax.trace(lambda r, x: (references.ref_set(r, None, x), x)[1], r, x)

    def transposed(r_ct, x_out_ct):
        x_ct = Accumulator(x)
        args = [references.RefAccumulator(r, r_ct), x_ct]
        autodiff.backward_pass(closed.jaxpr, [], args, [x_out_ct])
        return x_ct.freeze()

    r_ct, x_out_ct = inputs((r, x))
    (x_ct,), (content,) = run(transposed, (r, x), [r_ct, x_out_ct])
    np.testing.assert_array_equal(x_ct, r_ct + x_out_ct)
    np.testing.assert_array_equal(content, np.zeros(3))


# ---- effects -------------------------------------------------------------------------


def effects_program(r, s, x):
    r[0] = x[0]
    references.ref_addupdate(s, None, x)
    return r[1]


def test_effects_name_the_variable():
    jaxpr = Minijax.trace(effects_program, ref(3), ref(3), array(3)).jaxpr
    r, s, _ = jaxpr.invars
    assert [eqn.effects for eqn in jaxpr.eqns if eqn.effects] == [
        {WriteEffect(r)},
        {AccumEffect(s)},
        {ReadEffect(r)},
    ]
    assert jaxpr.effects == {WriteEffect(r), AccumEffect(s), ReadEffect(r)}


def test_effects_of_a_program_in_a_program_are_those_on_its_arguments():
    def outer(s, r, x):
        return minijax.jit(effects_program)(r, s, x)

    jaxpr = Minijax.trace(outer, ref(3), ref(3), array(3)).jaxpr
    s, r, _ = jaxpr.invars
    assert jaxpr.eqns[-1].primitive.name == "jit"
    assert jaxpr.effects == {WriteEffect(r), AccumEffect(s), ReadEffect(r)}


def test_writes_are_not_dead_code():
    closed = Minijax.trace(
        lambda r, x: (references.ref_set(r, None, x + 1), x)[1], ref(3), array(3)
    )
    smaller, used = partial_eval.dce_jaxpr(closed.jaxpr, [False])
    assert [eqn.primitive.name for eqn in smaller.eqns] == ["add", "swap"]
    assert used == [True, True]


# ---- types and errors ----------------------------------------------------------------


def test_values_of_a_ref_of_their_kind_are_converted():
    def make(lib):
        def program(r, x):
            r[0] = 2.0
            r[1] = lib.numpy.asarray(3.0) * x[0]
            return r[...]

        return program

    same_text(make, ref(3), array(3))

    def integers(lib):
        def program(r, x):
            lib.set(r, 0, x)
            return lib.swap(r, 1, 7)

        return program

    same_text(integers, AbstractRef(array(3, dtype=np.int32)), array(dtype=np.int8))


ERRORS = {
    "no ref": lambda lib: lambda r, x, i: lib.swap(x, 0, x),
    "too many indices": lambda lib: lambda r, x, i: r[0, 0, 0],
    "two ellipses": lambda lib: lambda r, x, i: r[..., ...],
    "slice out of bounds": lambda lib: lambda r, x, i: r[lib.dslice(2, 2)],
    "negative step": lambda lib: lambda r, x, i: r[::-1],
    "arrays of other shapes": lambda lib: (
        lambda r, x, i: r[lib.numpy.arange(2), lib.numpy.arange(3)]
    ),
    "shape of the value": lambda lib: lambda r, x, i: lib.set(r, 0, x),
    "scalar for a row": lambda lib: lambda r, x, i: lib.set(r, 0, 1.0),
    "dtype of the value": lambda lib: lambda r, x, i: lib.set(r, 0, x[0] > 0),
    "dtype of the sum": lambda lib: lambda r, x, i: lib.addupdate(r, 0, x[0] > 0),
    "shape of the sum": lambda lib: lambda r, x, i: lib.addupdate(r, 0, x),
    "a ref in a ref": lambda lib: lambda r, x, i: lib.set(r, None, r),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    def error(lib):
        with pytest.raises(Exception) as info:
            lib.trace(ERRORS[name](lib), *types_of("whole"))
        return info.type

    assert error(Minijax).__name__ == error(Jax).__name__


@pytest.mark.parametrize("library", [minijax, jax], ids=["minijax", "jax"])
def test_a_memory_space_is_refused_outside_of_programs(library):
    with pytest.raises(NotImplementedError, match="memory.space"):
        library.new_ref(library.numpy.ones(3), memory_space="vmem")


def test_a_known_index_out_of_bounds_is_an_error_in_traced_programs_too():
    # JAX raises outside of jit only, and inside moves the index.
    with pytest.raises(ValueError, match="Out of bound indexer: idx=3, dim=3"):
        Minijax.trace(lambda r: r[3], ref(3))


@pytest.mark.parametrize("kind", ["set", "addupdate"])
@pytest.mark.parametrize("mapped", ["value", "nothing"])
def test_an_unmapped_ref_is_not_written_under_vmap(kind, mapped):
    def error(lib):
        def program(r, x, i):
            lib_vmap = lib.library.vmap
            return lib_vmap(lambda x, i: getattr(lib, kind)(r, 0, x), (axis, 0))(x, i)

        axis = 0 if mapped == "value" else None
        value = array(2, 4) if mapped == "value" else array(4)
        with pytest.raises(Exception, match="unbatched array reference") as info:
            lib.trace(program, ref(3, 4), value, array(2))
        return info.type

    assert error(Minijax) is error(Jax) is Exception


@pytest.mark.parametrize("kind", ["set", "addupdate"])
def test_a_ref_without_tangent_takes_no_differentiated_value(kind):
    def program(r, x):
        return minijax.jvp(lambda x: getattr(Minijax, kind)(r, None, x), (x,), (x,))

    with pytest.raises(Exception, match="non-differentiated array reference"):
        Minijax.trace(program, ref(3), array(3))


def test_starts_that_differ_between_examples():
    def program(r, i):
        return minijax.vmap(lambda i: r[dslice(i, 2)])(i)

    with pytest.raises(NotImplementedError, match="start \\+ jnp.arange"):
        Minijax.trace(program, ref(3), array(2, dtype=np.int32))


def test_dslice():
    assert dslice(None) == slice(None)
    assert dslice(3) == Slice(0, 3)
    assert dslice(1, 2, 3) == Slice(1, 2, 3)
    with pytest.raises(ValueError, match="stride known while tracing"):
        dslice(0, 2, minijax.numpy.asarray(1))
    with pytest.raises(ValueError, match="stride"):
        Slice(0, 1, -1)


def test_an_indexer_is_a_tree_of_what_is_computed():
    indexer = NDIndexer.from_indices_shape(
        (slice(0, 2), 1, Slice(np.int32(1), 2)), (3, 3, 3)
    )
    leaves, tree = minijax.tree_util.tree_flatten(indexer)
    assert len(leaves) == 1
    assert minijax.tree_util.tree_unflatten(tree, leaves) == indexer
    assert indexer.result_shape() == (2, 2)
