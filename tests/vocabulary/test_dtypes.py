"""Element types and promotion, against jax over whole tables."""

import collections
import enum
import itertools
import pickle
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import dtypes as theirs

import minijax
from minijax.core import dtypes
from minijax.support import element_types

pytestmark = pytest.mark.whole

# The module; `minijax.config` itself is the object that holds the flags.
config = sys.modules["minijax.support.config"]

# What a key dtype asks of its generator.
Generator = collections.namedtuple("Generator", ["tag", "key_shape"])


def named(name):
    """A function of dtypes, or of the file above it."""
    return getattr(dtypes, name, None) or getattr(element_types, name)


ALL = [*(np.dtype(d) for d in element_types.promotable_dtypes), int, float, complex]
MODES = list(itertools.product((False, True), ("standard", "strict")))


@pytest.fixture(params=MODES, ids=lambda mode: f"x64={mode[0]}-{mode[1]}")
def mode(request):
    enable_x64, promotion = request.param
    with (
        jax.enable_x64(enable_x64),
        jax.numpy_dtype_promotion(promotion),
        config.enable_x64(enable_x64),
        config.numpy_dtype_promotion(promotion),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield request.param


def outcome(function, *args, **kwargs):
    """The result, or the name of the exception's class."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__


class Value:
    """An array as far as promotion looks at it, for jax and here."""

    def __init__(self, array):
        self.aval = jax.typeof(array)
        self.dtype = array.dtype
        self.shape = array.shape
        self.ndim = array.ndim


def values():
    strong = [np.zeros((2,), d) for d in ("f4", "i4", "u1", "?", "c8", "f2")]
    arrays = [jnp.asarray(x) for x in strong]
    arrays += [jnp.asarray(1), jnp.asarray(1.0), jnp.asarray(1j), jnp.asarray(True)]
    arrays += [jnp.zeros(2, jnp.bfloat16), jnp.zeros(2, jnp.float8_e4m3fn)]
    return arrays


def test_there_are_the_types_of_jax():
    assert set(element_types.promotable_dtypes) == set(theirs._jax_types)
    assert dtypes.float0 == theirs.float0


def test_promote_types(mode):
    for a, b in itertools.product(ALL, ALL):
        expected = outcome(theirs.promote_types, a, b)
        assert outcome(element_types.promote_types, a, b) == expected, (a, b)


@pytest.mark.parametrize(
    "name", ["result_type", "lattice_result_type", "safe_to_cast", "issubdtype"]
)
def test_functions_of_two_types(mode, name):
    for a, b in itertools.product(ALL, ALL):
        expected = outcome(getattr(theirs, name), a, b)
        assert outcome(named(name), a, b) == expected, (a, b)


def test_result_type_of_values(mode):
    arrays = values()
    scalars = [
        1,
        1.0,
        1j,
        True,
        np.float32(1),
        np.int8(1),
        np.zeros(3),
        np.zeros(3, "u2"),
    ]
    mine = [Value(x) for x in arrays] + scalars
    for (i, a), (j, b) in itertools.product(enumerate(mine), repeat=2):
        reference = [(arrays + scalars)[k] for k in (i, j)]
        for flag in (False, True):
            expected = outcome(
                theirs.result_type, *reference, return_weak_type_flag=flag
            )
            found = outcome(element_types.result_type, a, b, return_weak_type_flag=flag)
            assert found == expected, (reference, found)


@pytest.mark.parametrize("dtype", [np.longdouble, np.clongdouble, np.str_, "M8[s]"])
@pytest.mark.parametrize("others", [(), (1,), (np.float32,)])
def test_result_type_of_what_arrays_cannot_have(mode, dtype, others):
    expected = outcome(theirs.result_type, dtype, *others)
    assert outcome(element_types.result_type, dtype, *others) == expected


def test_result_type_of_three(mode):
    some = [np.dtype(d) for d in ("?", "u1", "i4", "u4", "f2", "f4", "c8")]
    some += [np.dtype(dtypes.bfloat16), int, float, complex, 1, 2.0, None]
    for triple in itertools.product(some, repeat=3):
        expected = outcome(theirs.result_type, *triple)
        assert outcome(element_types.result_type, *triple) == expected, triple


@pytest.mark.parametrize(
    "name",
    [
        "dtype",
        "result_type",
        "to_inexact_dtype",
        "to_numeric_dtype",
        "to_complex_dtype",
        "supports_inf",
        "itemsize_bits",
        "canonicalize_dtype",
        "scalar_type_of",
        "check_and_canonicalize_user_dtype",
        "is_weakly_typed",
    ],
)
def test_functions_of_one_type(mode, name):
    for a in [
        *ALL,
        bool,
        "float32",
        "int64",
        None,
        "nonsense",
        np.dtype("U3"),
        "M8[s]",
    ]:
        expected = outcome(getattr(theirs, name), a)
        assert outcome(named(name), a) == expected, a


@pytest.mark.parametrize("name", ["dtype", "is_weakly_typed"])
def test_functions_of_one_value(mode, name):
    arrays = values()
    for mine, reference in zip(map(Value, arrays), arrays):
        expected = outcome(getattr(theirs, name), reference)
        assert outcome(named(name), mine) == expected, reference
    others = [1, 1.0, 1j, True, "x", None, object(), [1], np.zeros(2), np.float64(1)]
    for value in others:
        expected = outcome(getattr(theirs, name), value)
        assert outcome(named(name), value) == expected, value


def test_issubdtype_of_abstract_types():
    abstract = [
        np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger,
        np.inexact, np.floating, np.complexfloating, np.bool_, np.character,
    ]  # fmt: skip
    for a, b in itertools.product([*ALL, *abstract], [*ALL, *abstract]):
        assert dtypes.issubdtype(a, b) == theirs.issubdtype(a, b), (a, b)
    for a in [*ALL, *abstract]:
        assert not dtypes.issubdtype(a, dtypes.extended)
        assert not dtypes.issubdtype(a, element_types.prng_key)


@pytest.mark.parametrize(
    "kind", [*element_types.element_kinds, "float32", np.int8, ("bool", "f4")]
)
def test_isdtype(kind):
    for a in ALL[:-3]:
        assert element_types.isdtype(a, kind) == theirs.isdtype(a, kind), a


@pytest.mark.parametrize("kind", ["real", object(), (3,)])
def test_isdtype_refuses(kind):
    expected = outcome(theirs.isdtype, np.dtype("f4"), kind)
    assert expected in ("ValueError", "TypeError")
    assert outcome(element_types.isdtype, np.dtype("f4"), kind) == expected


def test_short_names():
    for a in ALL[:-3]:
        assert dtypes.short_dtype_name(a) == theirs.short_dtype_name(a)
    assert dtypes.short_dtype_name(dtypes.float0) == "float0"
    assert dtypes.short_dtype_name(
        element_types.PRNGKeyDType(Generator("fry", (2,)))
    ) == ("key<fry>")


def test_defaults(mode):
    for kind in ("int", "uint", "float", "complex"):
        name = f"default_{kind}_dtype"
        assert named(name)() == getattr(theirs, name)()
    for kind in (int, float, complex, bool):
        assert element_types.scalar_type_to_dtype(kind) == theirs.scalar_type_to_dtype(
            kind
        )
        assert element_types.coerce_to_array(kind(1)).dtype == theirs.dtype(kind(1))
    for value in (2**31 - 1, 2**31, -(2**31) - 1, 2**63):
        expected = outcome(theirs.scalar_type_to_dtype, int, value)
        assert outcome(element_types.scalar_type_to_dtype, int, value) == expected


def test_truncation_warns_at_the_users_line():
    with config.enable_x64(False), pytest.warns(UserWarning, match="truncated") as seen:
        assert (
            element_types.check_and_canonicalize_user_dtype("float64", "zeros")
            == "float32"
        )
    assert seen[0].filename == __file__
    assert "in zeros" in str(seen[0].message)
    with config.enable_x64(False), config.explicit_x64_dtypes("error"):
        with pytest.raises(ValueError, match="not available"):
            element_types.check_and_canonicalize_user_dtype(np.int64)
    with config.enable_x64(False), config.explicit_x64_dtypes("allow"):
        assert element_types.check_and_canonicalize_user_dtype(np.int64) == np.int64
    with config.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert element_types.check_and_canonicalize_user_dtype(np.int64) == np.int64


def test_user_dtypes_that_are_refused():
    array = Value(jnp.zeros(2))
    with pytest.raises(ValueError, match=r"dtype=x\.dtype"):
        element_types.check_and_canonicalize_user_dtype(array)
    with pytest.raises(ValueError, match="None"):
        element_types.check_and_canonicalize_user_dtype(None)
    with pytest.raises(TypeError, match="in zeros"):
        element_types.check_and_canonicalize_user_dtype("U5", "zeros")


def test_messages_name_the_types_and_the_way_out():
    with config.numpy_dtype_promotion("strict"):
        with pytest.raises(dtypes.TypePromotionError, match="strict.*Cast"):
            element_types.promote_types("int32", "float32")
    for small, other, word in (
        (element_types.float8_e4m3fn, np.float16, "8-bit"),
        (element_types.float4_e2m1fn, np.float16, "4-bit floats"),
        (element_types.int4, np.int16, "4-bit integers"),
    ):
        with pytest.raises(dtypes.TypePromotionError, match=word):
            element_types.promote_types(small, other)
    assert issubclass(dtypes.TypePromotionError, ValueError)


def test_key_dtypes():
    first = element_types.PRNGKeyDType(Generator("fry", (2,)))
    same = element_types.PRNGKeyDType(Generator("fry", (2,)))
    other = element_types.PRNGKeyDType(Generator("rbg", (4,)))
    assert first == same
    assert hash(first) == hash(same)
    assert first != other
    assert str(first) == repr(first) == "key<fry>"
    assert (first.itemsize, other.itemsize) == (8, 16)
    assert first.physical_shape == (2,)
    assert first.physical_dtype == np.uint32
    assert first.tangent_dtype == dtypes.float0
    assert dtypes.is_extended(first)
    for parent in (element_types.prng_key, dtypes.extended, np.generic, first, same):
        assert dtypes.issubdtype(first, parent)
    for stranger in (other, np.number, np.uint32, np.dtype("u4")):
        assert not dtypes.issubdtype(first, stranger)
    assert dtypes.dtype(first) is first
    assert element_types.canonicalize_dtype(first, allow_extended_dtype=True) is first
    with pytest.raises(ValueError, match="extended"):
        element_types.canonicalize_dtype(first)
    assert element_types.check_and_canonicalize_user_dtype(first) is first


def test_float0_is_the_one_of_jax_after_pickling():
    assert pickle.loads(pickle.dumps(dtypes.float0)) == jax.dtypes.float0
    assert dtypes.dtype(np.zeros(3, dtypes.float0)) == jax.dtypes.float0


class Level(enum.IntEnum):
    LOW = 2


class Flag(enum.IntFlag):
    ON = 4


class Large(enum.IntEnum):
    MORE = 2**40


class Half(float, enum.Enum):
    HALF = 0.5


class Metres(float):
    pass


@pytest.mark.parametrize(
    "value", [Level.LOW, Flag.ON, Large.MORE, Half.HALF, Metres(2.5)], ids=repr
)
@pytest.mark.parametrize(
    "program",
    [
        lambda lib, v: lib.jit(lambda x: x + 1)(v),
        lambda lib, v: lib.numpy.sin(v),
        lambda lib, v: lib.numpy.asarray(v),
        lambda lib, v: lib.numpy.ones(2) + v,
        lambda lib, v: lib.numpy.full(2, v),
        lambda lib, v: lib.lax.add(v, v),
        lambda lib, v: lib.grad(lambda x: x * 2.0)(lib.numpy.float32(v)),
    ],
)
def test_classes_made_from_numbers_are_numbers(program, value):
    """An IntEnum is an int, and so on."""
    outcomes = []
    for lib in (minijax, jax):
        try:
            outcomes.append(repr(program(lib, value)))
        except OverflowError as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]
