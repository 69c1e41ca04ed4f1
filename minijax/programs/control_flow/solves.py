"""Solving equations with derivatives by the implicit function theorem.

`custom_linear_solve` solves A x = b by any function. The derivative does not go through
that function: with x' = A⁻¹ (b' - A' x) it is one more solve, and the transpose of a
solve is a solve with the transposed matrix. So the equation carries four programs: the
product by A, by Aᵀ, and the two solves; transposing swaps them pairwise.

`custom_root` finds u with F(m, u) = 0 by any function. Then u' = -(∂F/∂u)⁻¹ (∂F/∂m) m':
one linear solve with the linearised F, which the user gives as `tangent_solve`. It is a
`custom_jvp` function, no primitive.

In JAX: `lax/control_flow/solves.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.core import arithmetic as elementwise
from minijax.core import autodiff, rules, signatures
from minijax.core.effects import positional
from minijax.core.language import ClosedJaxpr, Primitive, get_aval, register
from minijax.core.signatures import check_functions
from minijax.core.trees import tree_flatten, tree_leaves, tree_unflatten
from minijax.primitives.families import lower_fun
from minijax.programs.calls import run_eagerly
from minijax.programs.control_flow.bodies import batched_leading, trace_with_consts
from minijax.programs.control_flow.operands import either, fixpoint, split_list
from minijax.programs.custom.custom_forward import custom_jvp
from minijax.transforms.differentiation import linear_transpose, linearize
from minijax.values.inner_programs import jaxpr_as_fun


def _check_tree(
    function: str, expected_name: str, actual: Any, expected: Any, has_aux: bool
) -> None:
    """TypeError unless a function's result has the tree it must have."""
    if has_aux:
        children = actual.children()
        if len(children) != 2:
            raise ValueError(
                f"{function}() produced a pytree with structure {actual}, but a pytree "
                "tuple with auxiliary output was expected because has_aux was set to "
                "True."
            )
        actual = children[0]
    if actual != expected:
        raise TypeError(
            f"{function}() output pytree structure must match {expected_name}, got "
            f"{actual} and {expected}."
        )


# ----------------------------------------------------------------------------------
# custom_root
# ----------------------------------------------------------------------------------


class _RootTuple(NamedTuple):
    f: Any
    solve: Any
    l_and_s: Any


def custom_root(
    f: Callable,
    initial_guess: Any,
    solve: Callable,
    tangent_solve: Callable,
    has_aux: bool = False,
) -> Any:
    """A root of a function, differentiable in what the function closes over.

    Args:
      f: takes a tree and returns one of the same structure; zero at the root.
      initial_guess: where the search begins; no derivatives go there.
      solve: `(f, initial_guess) -> root`; it need not be differentiable. With
        `has_aux`, a pair `(root, aux)`.
      tangent_solve: `(g, y) -> x` with `g(x) = y`, where `g` is `f` linearised at the
        root: for scalars `lambda g, y: y / g(1.0)`.
      has_aux: whether `solve` returns also something else.

    Returns:
      the result of `solve(f, initial_guess)`.

    Raises:
      TypeError: a function's result has another tree than `initial_guess`.
    """
    check_functions("custom_root", f=f, solve=solve, tangent_solve=tangent_solve)
    guess, tree = tree_flatten(initial_guess)
    args = (initial_guess,)
    of_f = trace_with_consts(f, args, "custom_root")
    _check_tree("f", "initial_guess", of_f[2], tree, False)
    of_solve = trace_with_consts(lambda x: solve(f, x), args, "custom_root solve")
    _check_tree("solve", "initial_guess", of_solve[2], tree, has_aux)

    def linearize_and_solve(x: Any, b: Any) -> Any:
        _, f_jvp = linearize(f, x)
        return tangent_solve(f_jvp, b)

    of_tangent = trace_with_consts(
        linearize_and_solve, (initial_guess, initial_guess), "custom_root tangent_solve"
    )
    _check_tree("tangent_solve", "x", of_tangent[2], tree, False)
    parts = (of_f, of_solve, of_tangent)
    jaxprs, consts, trees = (_RootTuple(*column) for column in zip(*parts))
    operands = (*(x for part in consts for x in part), *guess)
    solution = _custom_root(_RootTuple(*map(len, consts)), jaxprs, *operands)
    return tree_unflatten(trees.solve, solution)


def _custom_root_fun(const_lengths: Any, jaxprs: Any, *args: Any) -> list[Any]:
    *groups, guess = split_list(args, *const_lengths)
    return jaxpr_as_fun(jaxprs.solve)(*_RootTuple(*groups).solve, *guess)


_custom_root_fun.__name__ = "_custom_root"
_custom_root = custom_jvp(_custom_root_fun, nondiff_argnums=(0, 1))


@_custom_root.defjvp
def _root_jvp(const_lengths, jaxprs, primals, tangents) -> tuple:
    """u' = -(∂F/∂u)⁻¹ (∂F/∂m) m', by the user's linear solve."""
    *groups, _ = split_list(primals, *const_lengths)
    params = _RootTuple(*groups)
    results = _custom_root(const_lengths, jaxprs, *primals)
    count = len(jaxprs.f.out_avals)
    solution, aux = results[:count], results[count:]
    f_dot, *_ = split_list(tangents, *const_lengths)
    f = jaxpr_as_fun(jaxprs.f)
    _, rhs = autodiff.jvp(lambda *m: f(*m, *solution), params.f, f_dot)
    solve = jaxpr_as_fun(jaxprs.l_and_s)
    answer = solve(*params.l_and_s, *solution, *map(rules.instantiate, rhs))
    solution_dot = [elementwise.neg(x) for x in answer]
    aux_dot = [rules.instantiate(rules.zero_tangent_of(x)) for x in aux]
    return [*solution, *aux], [*solution_dot, *aux_dot]


# ----------------------------------------------------------------------------------
# custom_linear_solve
# ----------------------------------------------------------------------------------


class _LinearSolveTuple(NamedTuple):
    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transpose(self) -> _LinearSolveTuple:
        """The same for the transposed matrix."""
        return type(self)(self.vecmat, self.matvec, self.transpose_solve, self.solve)


def custom_linear_solve(
    matvec: Callable,
    b: Any,
    solve: Callable,
    transpose_solve: Callable | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solves a linear equation by a given function; derivatives solve it once more.

    Args:
      matvec: the linear function to invert, differentiable in what it closes over.
      b: the right-hand side, a tree of arrays.
      solve: `(matvec, b) -> x` with `matvec(x) = b`; it need not be differentiable.
      transpose_solve: `(vecmat, b) -> x` for the transposed function, which is made
        here; needed for reverse mode unless `symmetric`.
      symmetric: whether `matvec` is its own transpose; `solve` then serves both.
      has_aux: whether the solves return a pair `(x, aux)`.

    Returns:
      the result of `solve(matvec, b)`.

    Raises:
      TypeError: a function's result has another tree than `b`, or reverse mode
        is used without `transpose_solve`.
      ValueError: a function's result has other shapes than `b`.
    """
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    transposed = solve if transpose_solve is None else transpose_solve
    functions = {"matvec": matvec, "solve": solve, "transpose_solve": transposed}
    check_functions("custom_linear_solve", **functions)
    leaves, tree = tree_flatten(b)
    shapes = [get_aval(leaf).shape for leaf in leaves]

    def checked(fun: Callable, name: str, has_aux: bool) -> Callable:
        def call(x: Any) -> Any:
            out = fun(x)
            results = tree_leaves(out[0] if has_aux else out)
            actual = [get_aval(y).shape for y in results]
            if actual != shapes:
                raise ValueError(
                    f"{name}() output shapes must match b, got {actual} and {shapes}"
                )
            return out

        call.__name__ = signatures.fun_name(fun)
        return call

    def program(
        fun: Callable, name: str, traced_for: str, has_aux: bool = False
    ) -> Any:
        """(program, constants, tree of the result) of one of the functions."""
        traced = trace_with_consts(checked(fun, name, has_aux), (b,), traced_for)
        _check_tree(name, "b", traced[2], tree, has_aux)
        return traced

    own, solver = "custom_linear_solve", "custom_linear_solve solve"
    of_matvec = program(matvec, "matvec", own)
    of_solve = program(lambda x: solve(matvec, x), "solve", solver, has_aux)
    of_vecmat: tuple[Any, list[Any], Any] = (None, [], None)
    of_transposed = of_vecmat
    if transpose_solve is not None:
        transposer = "custom_linear_solve transpose_solve"
        vecmat, of_vecmat = matvec, of_matvec
        if not symmetric:
            vecmat = _transpose_of(matvec, b)
            of_vecmat = trace_with_consts(vecmat, (b,), transposer)
        user_solve = transpose_solve
        of_transposed = program(
            lambda x: user_solve(vecmat, x), "transpose_solve", transposer, has_aux
        )
    parts = (of_matvec, of_vecmat, of_solve, of_transposed)
    jaxprs, consts, trees = (_LinearSolveTuple(*column) for column in zip(*parts))
    outputs = linear_solve_p.bind(
        *(x for group in consts for x in group),
        *leaves,
        const_lengths=_LinearSolveTuple(*map(len, consts)),
        jaxprs=jaxprs,
    )
    return tree_unflatten(trees.solve, outputs)


def _transpose_of(linear: Callable, example: Any) -> Callable:
    transposed = linear_transpose(linear, example)

    def one_result(x: Any) -> Any:
        (y,) = transposed(x)
        return y

    return one_result


linear_solve_p = register(Primitive("custom_linear_solve", multiple_results=True))
linear_solve_p.cache_types = False


def _groups(items: Sequence[Any], const_lengths: Any) -> tuple[Any, list[Any]]:
    """One entry per input of the equation: (constants by program, b)."""
    *groups, b = split_list(items, *const_lengths)
    return _LinearSolveTuple(*groups), b


@linear_solve_p.def_effectful_abstract_eval
def _linear_solve_type(*avals, const_lengths, jaxprs) -> tuple:
    solve = jaxprs.solve
    num_aux = len(solve.out_avals) - len(jaxprs.matvec.out_avals)
    out_avals = list(avals[sum(const_lengths) :])
    if num_aux:
        out_avals += solve.out_avals[-num_aux:]
    return out_avals, positional(solve.effects, solve.jaxpr.invars)


@linear_solve_p.def_impl
def _linear_solve_impl(*args, const_lengths, jaxprs) -> list[Any]:
    consts, b = _groups(args, const_lengths)
    return run_eagerly(jaxprs.solve, *consts.solve, *b)


@linear_solve_p.def_jvp_rule
def _linear_solve_jvp(primals, tangents, **params) -> tuple[list, list]:
    """x' = A⁻¹ (b' - A' x)."""
    x = linear_solve_p.bind(*primals, **params)
    consts, _ = _groups(primals, params["const_lengths"])
    dots, rhs = _groups(tangents, params["const_lengths"])
    solution = x[: len(rhs)]
    if any(type(t) is not rules.Zero for t in dots.matvec):
        zeros = [rules.zero_tangent_of(value) for value in solution]
        _, products = autodiff.jvp(
            jaxpr_as_fun(params["jaxprs"].matvec),
            [*consts.matvec, *solution],
            [*dots.matvec, *zeros],
        )
        rhs = [rules.add_tangents(t, _negated(p)) for t, p in zip(rhs, products)]
    constants = primals[: len(primals) - len(rhs)]
    answers = linear_solve_p.bind(*constants, *map(rules.instantiate, rhs), **params)
    aux_dot = [rules.zero_tangent_of(value) for value in x[len(rhs) :]]
    return x, [*answers[: len(rhs)], *aux_dot]


def _negated(tangent: Any) -> Any:
    return tangent if type(tangent) is rules.Zero else elementwise.neg(tangent)


@linear_solve_p.def_transpose
def _linear_solve_transpose(cts, *args, const_lengths, jaxprs) -> list[Any]:
    if jaxprs.transpose_solve is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of "
            "custom_linear_solve. Pass it, or write symmetric=True."
        )
    consts, b = _groups(args, const_lengths)
    if any(rules.is_linear(x) for group in consts for x in group):
        raise NotImplementedError(
            "custom_linear_solve is transposed in its right-hand side only: what the "
            "functions close over is not linear. Apply `lax.stop_gradient` to it."
        )
    if any(type(ct) is not rules.Zero for ct in cts[len(b) :]):
        raise NotImplementedError(
            "custom_linear_solve has no derivative of its auxiliary results: apply "
            "`lax.stop_gradient` to them."
        )
    answers = linear_solve_p.bind(
        *(x for group in consts.transpose() for x in group),
        *map(rules.instantiate, cts[: len(b)]),
        const_lengths=const_lengths.transpose(),
        jaxprs=jaxprs.transpose(),
    )
    return [None] * sum(const_lengths) + list(answers[: len(b)])


@linear_solve_p.def_batch
def _linear_solve_batch(
    axis_data, args, dims, *, const_lengths, jaxprs
) -> tuple[list, list]:
    """All four programs get the axis; which parts of x and b have one is a fixpoint."""
    of, b_mapped = _groups([dim is not None for dim in dims], const_lengths)
    num_x = len(jaxprs.solve.out_avals)
    num_aux = num_x - len(b_mapped)

    def batched(
        closed: ClosedJaxpr | None, mapped: Sequence[bool], wanted: Sequence[bool]
    ) -> tuple[ClosedJaxpr | None, Sequence[bool]]:
        """(a program for a batch, which of its results have an axis)."""
        if closed is None:
            return None, wanted
        return batched_leading(closed, axis_data, mapped, wanted)

    def step(flags: list[bool]) -> tuple:
        x_mapped, b_mapped = split_list(flags, num_x)
        solve, solved = batched(jaxprs.solve, [*of.solve, *b_mapped], x_mapped)
        vecmat, by_vecmat = batched(jaxprs.vecmat, [*of.vecmat, *b_mapped], b_mapped)
        x_mapped = list(solved)
        if vecmat is not None:
            x_mapped = either(solved, [*by_vecmat, *[True] * num_aux])
        solution = x_mapped[: len(b_mapped)]
        matvec, b_new = batched(jaxprs.matvec, [*of.matvec, *solution], b_mapped)
        transposed, by_transposed = batched(
            jaxprs.transpose_solve, [*of.transpose_solve, *solution], x_mapped
        )
        if transposed is not None:
            b_new = either(b_new, by_transposed[: len(b_mapped)])
        programs = _LinearSolveTuple(matvec, vecmat, solve, transposed)
        return [*x_mapped, *b_new], (programs, solved)

    flags, (programs, solved) = fixpoint([*[False] * num_x, *b_mapped], step)
    mapped = [*(flag for group in of for flag in group), *flags[num_x:]]
    axes = [0 if flag else None for flag in mapped]
    moved = [rules.match_axis(axis_data, *each) for each in zip(args, dims, axes)]
    outputs = linear_solve_p.bind(*moved, const_lengths=const_lengths, jaxprs=programs)
    return outputs, [0 if flag else None for flag in solved]


linear_solve_p.def_lowering(lower_fun(_linear_solve_impl))
