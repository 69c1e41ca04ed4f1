"""The values of a program's arrays, for views that draw them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax import ShapeDtypeStruct
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.language import (
    Atom,
    JaxprEqn,
    Literal,
    eval_trace,
    jaxprs_in_params,
    set_current_trace,
)
from minijax.core.source_info import is_user_filename
from minijax.core.trees import keystr, tree_flatten_with_path
from minijax.support.element_types import PRNGKeyDType
from minijax_lab.explain.recording import is_installed

# Arrays of at most so many rows and columns have their numbers shown.
MOST_SHOWN = 32
# Without being asked, only so many equations are run, that make so many numbers.
MOST_EQUATIONS = 200
MOST_NUMBERS = 2**22
# Of so many multiplications or other steps of arithmetic, and of so many different
# operations that XLA has to compile.
MOST_WORK = 3 * 10**7
MOST_COMPILED = 20
UNKNOWN = frozenset(
    "while pure_callback pallas_call ffi_call call_exported custom_linear_solve".split()
)
# The steps for a number of an operand; of a matrix, for each of its rows too.
STEPS = dict.fromkeys(("sort", "top_k", "approx_top_k", "fft"), 32)
STEPS |= dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), 32)
STEPS |= dict.fromkeys(("gather", "threefry2x32", "random_bits"), 16)
STEPS |= dict.fromkeys(("igamma", "igammac", "igamma_grad_a", "random_gamma"), 256)
STEPS |= dict.fromkeys(("polygamma", "zeta", "regularized_incomplete_beta"), 256)
STEPS["random_gamma_grad"] = 256
MATRIX_STEPS = dict.fromkeys(("triangular_solve", "cholesky", "lu", "geqrf", "qr"), 4)
MATRIX_STEPS |= dict.fromkeys(("cholesky_update", "ormqr", "symmetric_product"), 4)
MATRIX_STEPS |= dict.fromkeys(("geqp3", "householder_product", "hessenberg"), 16)
MATRIX_STEPS |= dict.fromkeys(("eigh", "eig", "svd", "schur", "tridiagonal"), 64)

Values = list[list[float]]


def is_real(aval: Any) -> bool:
    """Whether arrays of a type are real numbers, of which one knows how many."""
    dtype = getattr(aval, "dtype", None)
    if not isinstance(dtype, np.dtype) or not isinstance(aval.size, int):
        return False
    return dtype.kind != "c" and not dtype.names


def is_key(aval: Any) -> bool:
    """Whether arrays of a type are keys of random numbers."""
    return isinstance(getattr(aval, "dtype", None), PRNGKeyDType)


def is_small(aval: Any) -> bool:
    """Whether arrays of a type are few real numbers."""
    return is_real(aval) and aval.size <= MOST_SHOWN**2


def cheap_inputs(leaves: Sequence[Any]) -> list[Any]:
    """Copies of arguments, the small ones first, together not too many numbers, and
    their keys; None for those that are left, and for what is no array of real numbers
    with values."""
    found: list[Any] = [None] * len(leaves)
    sizes = {}
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, (Array, np.ndarray, np.generic, int, float)):
            aval = get_aval(leaf)
            if is_real(aval):
                sizes[place] = aval.size
            elif is_key(aval):
                found[place] = leaf
    count = 0
    for place, size in sorted(sizes.items(), key=lambda item: item[1]):
        count += size
        if count <= MOST_NUMBERS:
            found[place] = np.array(leaves[place])
    return found


def unread(leaves: Sequence[Any], found: Sequence[np.ndarray | None]) -> str:
    """Which arguments are not read for their size, in words; "" if none."""
    sizes = [
        leaf.size
        for leaf, value in zip(leaves, found)
        if value is None and isinstance(leaf, (Array, np.ndarray))
        if is_real(get_aval(leaf))
    ]
    return f"an array of {max(sizes):,} numbers is not read unasked" if sizes else ""


class Unasked:
    """Chooses which equations run without `values=True`: where all that they
    read is known, as long as all together cost little.

    An equation is left that has effects, calls Python, makes other than real numbers
    or keys, or loops many or an unknown number of times; so are those of its programs.
    Of a program of very many equations none runs. `why` says what was left, and why.
    """

    def __init__(self, known: Iterable[Any], why: str = "") -> None:
        self.known = set(known)
        self.why = why
        self.numbers = self.steps = 0.0
        self.compiled: set[tuple[Any, ...]] = set()

    def chosen(self, eqns: Sequence[JaxprEqn]) -> set[int]:
        """The ids of those that run, of equations in their order."""
        if len(eqns) > MOST_EQUATIONS:
            self.why = self.why or f"{len(eqns):,} equations are not run unasked"
            return set()
        found = set()
        for eqn in eqns:
            if all(isinstance(v, Literal) or v in self.known for v in eqn.invars):
                why = self.why_left(eqn)
                if not why:
                    found.add(id(eqn))
                    self.known.update(eqn.outvars)
                self.why = self.why or why
        return found

    def why_left(self, eqn: JaxprEqn) -> str:
        """Why an equation is left; "" for one that runs, whose cost is noted then."""
        name = eqn.primitive.name
        numbers = self.numbers + numbers_made([eqn])
        if numbers > MOST_NUMBERS:
            return f"{name} is not run unasked"
        steps = self.steps + steps_of([eqn])
        if steps > MOST_WORK:
            return f"with {name} there are about {steps:.0e} steps of arithmetic"
        compiled = set(self.compiled)
        if eqn.primitive.meaning is None:  # computed by XLA, not by NumPy
            types = (v.aval.str_short() for v in (*eqn.invars, *eqn.outvars))
            programs = map(id, jaxprs_in_params(eqn.params))
            compiled.add((name, *programs, *types))
        if len(compiled) > MOST_COMPILED:
            return f"XLA would have to compile more than {MOST_COMPILED} operations"
        self.numbers, self.steps, self.compiled = numbers, steps, compiled
        return ""


def steps_of(eqns: Sequence[JaxprEqn]) -> float:
    """About how many steps of arithmetic equations take: for a product of matrices and
    a convolution, its multiplications."""
    count = 0.0
    for eqn in eqns:
        inner = [steps_of(jaxpr.eqns) for jaxpr in jaxprs_in_params(eqn.params)]
        own = 0.0 if inner and "reduce" not in eqn.primitive.name else own_steps(eqn)
        count += own + eqn.params.get("length", 1) * sum(inner)
    return count


def own_steps(eqn: JaxprEqn) -> float:
    """The steps of one equation without those of its programs."""
    name, params = eqn.primitive.name, eqn.params
    sizes = [v.aval.size if is_real(v.aval) else 0 for v in eqn.invars]
    made = sum(v.aval.size for v in eqn.outvars)
    shapes = [getattr(v.aval, "shape", ()) for v in eqn.invars]
    if name == "dot_general":
        axes = params["dimension_numbers"][0][0]
        return made * math.prod(shapes[0][axis] for axis in axes)
    if name == "ragged_dot_general":
        return made * max(shapes[0], default=1)
    if name == "conv_general_dilated":
        features = shapes[1][params["dimension_numbers"].rhs_spec[0]]
        return made * sizes[1] / max(1, features)
    if name.startswith(("reduce_window", "select_and_")):
        return (made + sizes[0]) * math.prod(params["window_dimensions"])
    if name in MATRIX_STEPS:
        rows = max(max(shape[-2:], default=1) for shape in shapes)
        return MATRIX_STEPS[name] * max(sizes) * rows
    if name.startswith("scatter"):
        return made + 16 * sum(sizes[1:])
    return made + STEPS.get(name, 1) * (sum(sizes) or made)


def numbers_made(eqns: Sequence[JaxprEqn]) -> float:
    """How many numbers equations compute; infinite if they should not be run."""
    count = 0.0 if len(eqns) <= MOST_EQUATIONS else math.inf
    for eqn in eqns:
        turns = eqn.params.get("length", 1)
        many = turns > MOST_EQUATIONS
        if many or eqn.effects or eqn.primitive.name in UNKNOWN:
            return math.inf
        if not all(is_real(v.aval) or is_key(v.aval) for v in eqn.outvars):
            return math.inf
        count += sum(v.aval.size for v in eqn.outvars)
        for jaxpr in jaxprs_in_params(eqn.params):
            count += turns * numbers_made(jaxpr.eqns)
    return count


def copies(values: Iterable[Any]) -> list[Any]:
    """The same values; arrays of NumPy, which may change later, as copies."""
    return [np.array(x) if isinstance(x, np.ndarray) else x for x in values]


def check_choice(
    values: Any, view: str, args: tuple = (), kwargs: dict[str, Any] | None = None
) -> None:
    """Raises TypeError unless `values` is True, False or None, and where it is True and
    one of the arguments has no value to run on."""
    if not isinstance(values, (bool, type(None))):
        raise TypeError(f"{view}: values is True, False or None, got {values!r}.")
    given = {"args": args, "kwargs": kwargs or {}} if values else {}
    for path, leaf in tree_flatten_with_path(given)[0]:
        if isinstance(leaf, ShapeDtypeStruct):
            raise TypeError(
                f"{view} got values=True, which runs the function, and "
                f"{path[0].key}{keystr(path[1:])} is a ShapeDtypeStruct, a type "
                "without a value: pass an array, or leave out values=True."
            )


def why_not(run: Callable[[], None]) -> str:
    """Runs a program of the user; returns what it raised, in a line, or "".

    What the values or the user's own code raise is told in the picture; any other
    exception is a defect of ours, and is raised.
    """
    try:
        run()
    except Exception as error:
        ours = not isinstance(error, (ArithmeticError, RuntimeError, MemoryError))
        traceback = error.__traceback__
        while ours and traceback is not None:
            file = traceback.tb_frame.f_code.co_filename
            ours = is_installed(file) or not is_user_filename(file)
            traceback = traceback.tb_next
        if ours:
            raise
        said = str(error).strip().partition("\n")[0]
        return f"{type(error).__name__}: {said}".removesuffix(": ")
    return ""


def read(atom: Atom, known: dict[Any, Any]) -> Any:
    """The value of an atom."""
    return atom.val if isinstance(atom, Literal) else known[atom]


def compute(eqn: JaxprEqn, known: dict[Any, Any], by_xla: bool = False) -> list[Any]:
    """What an equation computes, which is known then: by its meaning in NumPy, or by
    XLA where it has none or that is asked for."""
    primitive = eqn.primitive
    given = [read(v, known) for v in eqn.invars]
    keys = any(is_key(v.aval) for v in eqn.invars)
    if by_xla or keys or primitive.meaning is None:
        with set_current_trace(eval_trace):
            out = primitive.rebind(given, eqn.params)
    else:
        types: list[Any] = [v.aval for v in eqn.invars]
        given = [np.asarray(x, aval.dtype) for x, aval in zip(given, types)]
        with np.errstate(all="ignore"):
            out = primitive.meaning(*given, **eqn.params)
    results = list(out) if primitive.multiple_results else [out]
    known.update(zip(eqn.outvars, results))
    return results


def rows_of(value: Any) -> Values:
    """The numbers of an array as rows, to four digits; none of a large one."""
    if not is_small(get_aval(value)):
        return []
    array = np.asarray(value)
    if array.ndim > 2 or max(array.shape, default=1) > MOST_SHOWN or not array.size:
        return []
    return [[float(f"{float(x):.4g}") for x in row] for row in np.atleast_2d(array)]
