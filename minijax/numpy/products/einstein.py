"""`einsum`: sums of products, written with one letter for each axis.

The subscripts are read, an order of contraction is chosen (`contraction_paths.py`),
and each step becomes one `dot_general`, with a diagonal or a sum before it where a
letter is repeated or stands alone. In JAX: `numpy/einsum.py`.
"""

from __future__ import annotations

import collections
import functools
import itertools
import string
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.core.array import Array
from minijax.core.shaping import convert_element_type_to
from minijax.numpy.arraylike import ensure_arraylike_tuple, unwrap_jax_array
from minijax.numpy.boundaries import inline_jit
from minijax.numpy.products.contraction_paths import find_path
from minijax.numpy.products.contractions import PRODUCT_OPTIONS, product_dtype
from minijax.numpy.reduce.reducing import refuse_out
from minijax.numpy.shapes.creation import laid_out
from minijax.support import element_types


class Contraction(NamedTuple):
    """One step: which operands, the letters summed over, and the step's own einsum."""

    positions: tuple[int, ...]
    summed: frozenset[str]
    subscripts: str


# --------------------------------------------------------------------------
# Reading subscripts


def _letters() -> Iterator[str]:
    """Letters to name axes with: the alphabet, then characters beyond it."""
    yield from string.ascii_lowercase + string.ascii_uppercase
    yield from map(chr, itertools.count(192))


def _from_lists(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """The form `einsum(x, [0, 1], y, [1, 2], [0, 2])` as letters and arrays."""
    arrays = list(operands[0 : len(operands) // 2 * 2 : 2])
    lists = list(operands[1::2])
    result = operands[-1] if len(operands) % 2 else None
    try:
        labels = sorted(set(itertools.chain(*lists)) - {Ellipsis})
    except TypeError:
        raise TypeError(
            "For this input type lists must contain either Ellipsis or hashable and "
            "comparable object (e.g. int, str)."
        ) from None
    letters = dict(zip(labels, _letters(), strict=False))
    letters[Ellipsis] = "..."

    def spell(axes: Sequence[Any]) -> str:
        return "".join(letters[axis] for axis in axes)

    subscripts = ",".join(map(spell, lists))
    if result is not None:
        subscripts += "->" + spell(result)
    return subscripts, arrays


def _once_only(text: str) -> str:
    """The letters that occur once, in alphabetical order: einsum's implicit result."""
    letters = text.replace(",", "")
    return "".join(sorted(c for c in set(letters) if letters.count(c) == 1))


def _spell_out_ellipsis(
    terms: list[str], result: str | None, ranks: list[int]
) -> tuple[list[str], str]:
    """Letters of their own for the axes that `...` stands for, aligned to the right."""
    used = set("".join(terms) + (result or ""))
    spare = (letter for letter in _letters() if letter not in used)
    hidden = "".join(itertools.islice(spare, max(ranks)))
    longest = 0
    spelled = []
    for term, rank in zip(terms, ranks, strict=True):
        if "." in term:
            if term.count(".") != 3 or "..." not in term:
                raise ValueError("Invalid Ellipses.")
            count = rank - (len(term) - 3)
            if count < 0:
                raise ValueError("Ellipses lengths do not match.")
            longest = max(longest, count)
            term = term.replace("...", hidden[len(hidden) - count :])
        spelled.append(term)
    stands_for = hidden[len(hidden) - longest :]
    if result is None:
        own = set(_once_only(",".join(spelled))) - set(stands_for)
        return spelled, stands_for + "".join(sorted(own))
    return spelled, result.replace("...", stands_for)


def _parse(operands: Sequence[Any]) -> tuple[list[str], str, list[Any]]:
    """The letters of each operand, those of the result, and the operands."""
    if isinstance(operands[0], str):
        subscripts, arrays = operands[0].replace(" ", ""), list(operands[1:])
    else:
        subscripts, arrays = _from_lists(operands)
    if not arrays:
        raise ValueError("No input operands")
    if "-" in subscripts or ">" in subscripts:
        if any(subscripts.count(part) != 1 for part in ("->", "-", ">")):
            raise ValueError("Subscripts can only contain one '->'.")
    left, arrow, right = subscripts.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ValueError(
            f"Number of einsum subscripts, {len(terms)}, must be equal to the number "
            f"of operands, {len(arrays)}."
        )
    result = right if arrow else None
    if "." in subscripts:
        ranks = [np.ndim(array) for array in arrays]
        terms, result = _spell_out_ellipsis(terms, result, ranks)
    elif result is None:
        result = _once_only(left)
    for letter in result:
        if result.count(letter) != 1:
            raise ValueError(
                f"Output character '{letter}' appeared more than once in the output."
            )
        if not any(letter in term for term in terms):
            raise ValueError(f"Output character '{letter}' did not appear in the input")
    return terms, result, arrays


def _sizes(terms: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The length of each letter's axis; a length of one broadcasts."""
    sizes: dict[str, int] = {}
    for number, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        if len(shape) != len(term):
            raise ValueError(
                f"Einstein sum subscript '{term}' does not contain the correct number "
                f"of indices for operand {number}."
            )
        for letter, length in zip(term, shape, strict=True):
            known = sizes.get(letter, 1)
            if known != 1 and length not in (1, known):
                raise ValueError(
                    f"Size of label '{letter}' for operand {number} ({known}) does not "
                    f"match previous terms ({length})."
                )
            sizes[letter] = length if known == 1 else known
    return sizes


def _plan(
    terms: Sequence[str], result: str, sizes: dict[str, int], optimize: Any
) -> tuple[list[tuple[int, ...]], tuple[Contraction, ...]]:
    """The path, and the steps along it with their subscripts."""
    sets = [frozenset(term) for term in terms]
    path = find_path(optimize, sets, frozenset(result), sizes)
    terms = list(terms)
    steps = []
    for number, step in enumerate(path):
        positions = tuple(sorted(step, reverse=True))
        taken = [terms.pop(position) for position in positions]
        joined = "".join(taken)
        needed = set(result).union(*terms)
        kept = set(joined) & needed
        if number == len(path) - 1:
            product = result
        else:
            product = "".join(sorted(kept, key=joined.find))
        summed = frozenset(set(joined) - kept)
        terms.append(product)
        steps.append(Contraction(positions, summed, f"{','.join(taken)}->{product}"))
    return path, tuple(steps)


# --------------------------------------------------------------------------
# What users call


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    _dot_general: Callable[..., Array] = lax.dot_general,
    out_sharding=None,
) -> Array:
    """The sum of products that `subscripts` describe, such as "ij,jk->ik".

    A letter that is not in the result is summed over; one that an operand has twice
    takes its diagonal; `...` stands for further axes, which broadcast. Without "->" the
    result has the letters that occur once, in alphabetical order. `optimize` names the
    search for the order of contraction, or gives the order. The dtype is the promoted
    one, or `preferred_element_type`.

    Raises ValueError for subscripts that do not fit the operands.
    """
    refuse_out("einsum", out)
    operands = tuple(map(unwrap_jax_array, (subscripts, *operands)))
    terms, result, arrays = _parse(operands)
    sizes = _sizes(terms, [np.shape(array) for array in arrays])
    _, steps = _plan(terms, result, sizes, optimize)
    arrays = list(ensure_arraylike_tuple("einsum", arrays))
    options = (steps, precision, preferred_element_type, _dot_general)
    if [len(step.positions) for step in steps] != [2]:  # not one product alone
        return laid_out(_einsum, out_sharding, arrays, *options, None)
    return _einsum(arrays, *options, out_sharding=out_sharding)


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: Any = "auto"
) -> tuple[list[tuple[int, ...]], str]:
    """The order in which `einsum` would contract, and a text that shows the steps."""
    terms, result, arrays = _parse((subscripts, *operands))
    sizes = _sizes(terms, [np.shape(array) for array in arrays])
    path, steps = _plan(terms, result, sizes, optimize)
    lines = [f"  Complete contraction:  {','.join(terms)}->{result}"]
    for step in steps:
        summed = "".join(sorted(step.summed)) or "nothing"
        lines.append(f"  {step.subscripts}  (summing over {summed})")
    return path, "\n".join(lines)


# --------------------------------------------------------------------------
# One step after the other


@inline_jit(static_argnames=("contractions", "_dot_general", *PRODUCT_OPTIONS))
def _einsum(
    operands: list[Array],
    contractions: tuple[Contraction, ...],
    precision: Any,
    preferred_element_type: Any,
    _dot_general: Callable[..., Array],
    out_sharding: Any,
) -> Array:
    dtype, weak_type = product_dtype("einsum", preferred_element_type, *operands)
    operands = list(operands)
    options = {"precision": precision, "preferred_element_type": dtype}
    if out_sharding is not None:
        options["out_sharding"] = out_sharding
    multiply = functools.partial(_dot_general, **options)
    for positions, summed, subscripts in contractions:
        left, result = subscripts.split("->")
        terms = left.split(",")
        taken = [operands.pop(position) for position in positions]
        letters = sorted(summed)
        if len(taken) == 1:
            step = _reduce_one(taken[0], terms[0], letters, result, dtype)
        elif len(taken) == 2:
            step = _contract_two(taken, terms, letters, result, dtype, multiply)
        else:
            raise NotImplementedError(
                "jax.numpy.einsum does not support simultaneous contraction of 3 or "
                "more operands. Pass a path of pairs as the optimize parameter."
            )
        operand, names = step
        if names != result:
            order = tuple(names.index(letter) for letter in result)
            operand = lax.transpose(operand, order)
        operands.append(operand)
    return convert_element_type_to(operands[0], dtype, weak_type)


def _without(names: str, letters: Sequence[str]) -> str:
    return "".join(name for name in names if name not in letters)


def _sum(x: Array, axes: Sequence[int], dtype: Any) -> Array:
    if element_types.result_type(x, dtype) != x.dtype:
        x = lax.convert_element_type(x, dtype)
    if x.dtype == np.bool_:
        return lax.reduce_or(x, tuple(axes))
    return lax.reduce_sum(x, tuple(axes))


def _sum_letters(
    x: Array, names: str, letters: Sequence[str], dtype: Any
) -> tuple[Array, str]:
    if not letters:
        return x, names
    axes = [names.index(letter) for letter in letters]
    return _sum(x, axes, dtype), _without(names, letters)


def _take_diagonals(
    x: Array, names: str, counts: dict[str, int], kept: str, dtype: Any
) -> tuple[Array, str]:
    """One axis in place of those that share a letter; none, if it is not kept.

    What is off the diagonal becomes zero, and a sum leaves the diagonal.
    """
    for letter, count in counts.items():
        if count < 2:
            continue
        axes = [axis for axis, name in enumerate(names) if name == letter]
        on_diagonal = _diagonal_mask(x.shape, axes)
        x = lax.select(on_diagonal, x, lax.full_like(x, 0))
        if letter in kept:
            x = _sum(x, axes[:-1], dtype)
            names = names.replace(letter, "", count - 1)
        else:
            x = _sum(x, axes, dtype)
            names = names.replace(letter, "")
    return x, names


def _diagonal_mask(shape: tuple[int, ...], axes: Sequence[int]) -> Array:
    """Where the indices along all `axes` are equal."""
    lengths = tuple(shape[axis] for axis in axes)
    indices = [
        lax.broadcasted_iota(np.uint32, lengths, axis) for axis in range(len(axes))
    ]
    equal = [lax.eq(i, j) for i, j in itertools.pairwise(indices)]
    mask = functools.reduce(lax.bitwise_and, equal)
    return lax.broadcast_in_dim(mask, shape, tuple(axes))


def _reduce_one(
    x: Array, names: str, summed: list[str], result: str, dtype: Any
) -> tuple[Array, str]:
    counts = collections.Counter(names)
    alone = [letter for letter in summed if counts[letter] == 1]
    x, names = _sum_letters(x, names, alone, dtype)
    return _take_diagonals(x, names, counts, result, dtype)


def _drop_broadcast_axes(
    x: Array, names: str, other_shape: tuple[int, ...], other_names: str
) -> tuple[Array, str]:
    """`x` without axes of length one that the other operand has at full length."""
    dropped = []
    for axis, letter in enumerate(names):
        place = other_names.find(letter)
        if x.shape[axis] == 1 and place != -1 and other_shape[place] != 1:
            dropped.append(axis)
    kept = "".join(c for axis, c in enumerate(names) if axis not in dropped)
    return lax.squeeze(x, dropped), kept


def _contract_two(
    operands: Sequence[Array],
    terms: Sequence[str],
    summed: list[str],
    result: str,
    dtype: Any,
    multiply: Callable[..., Array],
) -> tuple[Array, str]:
    lhs, rhs = operands
    lhs_names, rhs_names = terms
    lhs, lhs_names = _drop_broadcast_axes(lhs, lhs_names, rhs.shape, rhs_names)
    rhs, rhs_names = _drop_broadcast_axes(rhs, rhs_names, lhs.shape, lhs_names)
    lhs_counts = collections.Counter(lhs_names)
    rhs_counts = collections.Counter(rhs_names)

    # First what concerns one operand alone.
    lhs_alone = [c for c in summed if lhs_counts[c] == 1 and rhs_counts[c] == 0]
    lhs, lhs_names = _sum_letters(lhs, lhs_names, lhs_alone, dtype)
    rhs_alone = [c for c in summed if rhs_counts[c] == 1 and lhs_counts[c] == 0]
    rhs, rhs_names = _sum_letters(rhs, rhs_names, rhs_alone, dtype)
    kept = result + rhs_names
    lhs, lhs_names = _take_diagonals(lhs, lhs_names, lhs_counts, kept, dtype)
    kept = result + lhs_names
    rhs, rhs_names = _take_diagonals(rhs, rhs_names, rhs_counts, kept, dtype)

    shared = set(lhs_names) & set(rhs_names)
    batch = [letter for letter in result if letter in shared]
    contracted = [letter for letter in summed if letter in lhs_names + rhs_names]

    def axes_of(letters: Sequence[str], names: str) -> tuple[int, ...]:
        return tuple(names.index(letter) for letter in letters)

    done = [*batch, *contracted]
    lhs_rest = _without(lhs_names, done)
    rhs_rest = _without(rhs_names, done)
    lhs_numbers = axes_of(contracted, lhs_names), axes_of(batch, lhs_names)
    rhs_numbers = axes_of(contracted, rhs_names), axes_of(batch, rhs_names)
    batch_names = "".join(batch)
    names = batch_names + rhs_rest + lhs_rest
    if names == result:
        # In this order no transpose is needed.
        numbers = tuple(zip(rhs_numbers, lhs_numbers, strict=True))
        return multiply(rhs, lhs, numbers), names
    names = batch_names + lhs_rest + rhs_rest
    numbers = tuple(zip(lhs_numbers, rhs_numbers, strict=True))
    return multiply(lhs, rhs, numbers), names
