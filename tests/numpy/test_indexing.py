"""`x[index]` and `x.at[index]`: every form of index, values and printed programs."""

import jax
import numpy as np
import pytest

import minijax
from tests.numpy.programs import B, I, J, T, V, case, check

A = np.array

# Indices of a (2, 3, 4) array that need no tracing. JAX reads x[None, True] wrongly
# (it puts the mask's axis after the first one), so that is held against NumPy below.
STATIC = {
    "0": 0,
    "-1": -1,
    "out of bounds": 5,
    "far below": -7,
    ":": slice(None),
    "1:": slice(1, None),
    "::2": slice(None, None, 2),
    "::-1": slice(None, None, -1),
    "-1:0:-2": slice(-1, 0, -2),
    "None": None,
    "...": Ellipsis,
    "0, 1": (0, 1),
    "0, 1, 2": (0, 1, 2),
    "-1, ..., 0": (-1, Ellipsis, 0),
    "None, 0": (None, 0),
    "0, None, 1": (0, None, 1),
    ":, 0:3:2": (slice(None), slice(0, 3, 2)),
    "..., None": (Ellipsis, None),
    "5:2": (slice(5, 2),),
    "1:2, ::-2, None": (slice(1, 2), slice(None, None, -2), None),
    "array": A([0, 1]),
    "array negative": A([0, -1]),
    "array matrix": A([[0, 1], [1, 0]]),
    "array out of bounds": A([5, 0]),
    "arrays adjacent": (A([0, 1]), A([1, 2])),
    "arrays apart": (A([0, 1]), slice(None), A([1, 2])),
    "arrays last": (slice(None), A([0, 1]), A([1, 2])),
    "arrays broadcast": (A([0, 1])[:, None], A([1, 2])),
    "0, array": (0, A([0, 1])),
    "array, 0": (A([0, 1]), 0),
    "0, :, array": (0, slice(None), A([0, 1])),
    "array, None, array": (A([0, 1]), None, A([1, 2])),
    ":, array, None": (slice(None), A([0, 1]), None),
    "mask": (A([True, False]),),
    ":, mask": (slice(None), A([True, False, True])),
    "mask of two axes": A([[True, False, True], [False, True, False]]),
    "mask of two axes, 0": (A([[True] * 3] * 2), 0),
    "0, mask, 1:2": (0, A([True, False, True]), slice(1, 2)),
    "mask too long": A([True, False, True]),
    "mask list": ([True, False],),
    "True": True,
    "False": False,
    "True, 0": (True, 0),
    "0, True": (0, True),
    ":, True": (slice(None), True),
    "True, None": (True, None),
    "array, True": (A([0, 1]), True),
    "list, :": ([0, 1], slice(None)),
    "empty list": ([],),
    "empty array": A([], int),
    "empty array, 0": (A([], int), 0),
    "list": [0, 1],
    "nested list": [[0, 1]],
    "float": 1.0,
    "float array": A([1.0]),
    "string": "a",
    "too many": (0, 0, 0, 0),
    "two ellipses": (Ellipsis, Ellipsis),
    "scalar array": A(1),
    "scalar array, :": (A(1), slice(None)),
    "np.int64": np.int64(1),
    "np.uint8": np.uint8(1),
    "unsigned array": A([1], np.uint8),
    "::2, array": (slice(None, None, 2), A([0, 1])),
    "::-1, array": (slice(None, None, -1), A([0, 1])),
    "::-2, :, array": (slice(None, None, -2), slice(None), A([0, 1])),
    "array, 1:3": (A([0, 1]), slice(1, 3)),
    "object": object(),
    "dict": {},
    ":, out of bounds": (slice(None), 5),
    "out of bounds, ::2": (5, slice(None, None, 2)),
    "step 0": (slice(0, None, 0),),
    "float slice": (slice(1.0, 2),),
    "np slice": (slice(np.int64(0), np.int64(1)),),
}

MODES = ["fill", "clip", "promise_in_bounds", "drop", "wrap"]

READS = [
    *(case(f"x[{n}]", lambda np, x, i=i: x[i], T) for n, i in STATIC.items()),
    *(
        case(f"get {mode} {n}", lambda np, x, i=i, m=mode: x.at[i].get(mode=m), T)
        for mode in MODES
        for n, i in STATIC.items()
        if n in ("0", "out of bounds", "1:", "array", "array out of bounds", "0, array")
    ),
    case("fill_value", lambda np, x: x.at[7].get(mode="fill", fill_value=-1), T),
    case("fill int", lambda np, x: x.at[A([0, 7])].get(mode="fill"), J),
    case("fill traced", lambda np, x: x.at[7].get(mode="fill", fill_value=x[0]), V),
    case("sorted", lambda np, x: x.at[A([0, 1])].get(indices_are_sorted=True), V),
    case("unique", lambda np, x: x.at[A([0, 1])].get(unique_indices=True), V),
    case("no wrap", lambda np, x: x.at[A([-1])].get(wrap_negative_indices=False), V),
    case("empty axis", lambda np, x: x[:0][0], T),
    case("empty axis array", lambda np, x: x[:0][A([0])], T),
    case("scalar operand", lambda np, x: x[0, 0, 0][()], T),
    case("scalar operand None", lambda np, x: x[0, 0, 0][None], T),
    case("scalar operand 0", lambda np, x: x[0, 0, 0][0], T),
    case("length one", lambda np, x: x[:1][0], T),
    case("length one -1", lambda np, x: x[:, :1][:, -1], T),
    case("ints", lambda np, x: x[1, 1:], I),
    case("bools", lambda np, x: x[1:], B),
    case("iteration", lambda np, x: [row for row in x], I),
]

# Indices with a traced part.
FORMS = {
    "i": lambda i: i,
    "i, :": lambda i: (i, slice(None)),
    ":, i": lambda i: (slice(None), i),
    "i, 1:3": lambda i: (i, slice(1, 3)),
    "i, i": lambda i: (i, i),
    "i, ..., i": lambda i: (i, Ellipsis, i),
    "i, None": lambda i: (i, None),
    "::2, i": lambda i: (slice(None, None, 2), i),
    "::-1, i": lambda i: (slice(None, None, -1), i),
    "i:": lambda i: slice(i, None),
    ":i": lambda i: slice(0, i),
    "0, i": lambda i: (0, i),
    "array, i": lambda i: (A([0, 1]), i),
    "[0, i]": lambda i: ([0, i],),
    "[i]": lambda i: [i],
}
TRACED = {
    "scalar": np.int32(1),
    "weak": 1,
    "array": A([0, 1], np.int32),
    "mask": A([True, False]),
    "unsigned": np.uint8(1),
    "float": 1.0,
}

TRACED_READS = [
    case(f"x[{form}] {kind}", lambda np, x, i, f=make: x[f(i)], T, index)
    for form, make in FORMS.items()
    for kind, index in TRACED.items()
    if kind in ("scalar", "weak") or form in ("i", ":, i", "i, i", "::2, i", "i, 1:3")
] + [
    case("vector", lambda np, x, i: x[i], V, np.int32(2)),
    case("vector weak", lambda np, x, i: x[i], V, 2),
]

UPDATES = ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"]

WRITES = [
    *(
        case(f"x.at[{n}].set", lambda np, x, i=i: x.at[i].set(1), T)
        for n, i in STATIC.items()
    ),
    *(
        case(f"{update} {n}", lambda np, x, u=update, i=i: getattr(x.at[i], u)(2.0), T)
        for update in UPDATES
        for n, i in STATIC.items()
        if n in ("1:", "array", "::-1, array")
    ),
    *(
        case(
            f"set {mode}",
            lambda np, x, m=mode: x.at[A([0, 5, -1])].set(7.0, mode=m),
            V,
        )
        for mode in MODES
    ),
    case("set array", lambda np, x: x.at[:, 1].set(x[:, 0]), T),
    case("set broadcast", lambda np, x: x.at[1:].set(x[0]), T),
    case("set wrong shape", lambda np, x: x.at[1:].set(np.zeros((5,))), T),
    case("set reversed", lambda np, x: x.at[::-1].set(x), V),
    case("set float in int", lambda np, x: x.at[0].set(1.5), I),
    case("set int in half", lambda np, x: x.at[0].set(2), A([1, 2], np.float16)),
    case("set bool", lambda np, x: x.at[0].set(False), B),
    case("set large", lambda np, x: x.at[0].set(300), A([1, 2], np.uint8)),
    case("add duplicates", lambda np, x: x.at[A([1, 1, 1])].add(1.0), V),
    case("apply", lambda np, x: x.at[1:].apply(np.negative), V),
    case("traced", lambda np, x, i: x.at[i].set(3.0), T, np.int32(1)),
    case("traced weak", lambda np, x, i: x.at[i].add(3.0), T, 1),
    case("traced array", lambda np, x, i: x.at[:, i].multiply(3.0), T, A([0, 2])),
    case("traced mask", lambda np, x, m: x.at[m].set(0.0), V, V > 0),
    case("sorted", lambda np, x: x.at[A([0, 1])].set(1.0, indices_are_sorted=True), V),
    case("unique", lambda np, x: x.at[A([0, 1])].add(1.0, unique_indices=True), V),
    case("item assignment", lambda np, x: x.__setitem__(0, 1), V),
    case("none", lambda np, x: x.at[5:].set(1.0), V),
]


@pytest.mark.parametrize("one", READS + TRACED_READS + WRITES)
@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types")
def test_agrees_with_jax(one) -> None:
    check(one)


@pytest.mark.parametrize("index", [(None, True), (None, False), (0, None, True)])
def test_masks_beside_new_axes_are_numpys(index) -> None:
    x = minijax.numpy.asarray(T)
    assert np.array_equal(np.asarray(x[index]), T[index])


def test_float_in_int_warns() -> None:
    with pytest.warns(FutureWarning, match="cannot safely cast"):
        minijax.numpy.asarray(I).at[0].set(1.5)


@pytest.mark.parametrize(
    ("index", "phrase"),
    [
        (1.0, "integer or boolean type"),
        ([0, 1], "jnp.array"),
        ((0, 0, 0, 0), "Too many indices"),
        ((Ellipsis, Ellipsis), "single ellipsis"),
        ("a", "string"),
    ],
)
def test_messages_name_the_way_out(index, phrase) -> None:
    x = minijax.numpy.asarray(T)
    with pytest.raises((TypeError, IndexError), match=phrase):
        x[index]


@pytest.mark.parametrize("index", [0, slice(1, None), A([0, 2]), (slice(None), None)])
def test_gradients_are_those_of_jax(index) -> None:
    def program(library):
        def read(x):
            return (x[index] ** 2).sum()

        return library.grad(read)(library.numpy.asarray(V))

    assert np.allclose(np.asarray(program(minijax)), np.asarray(program(jax)))
