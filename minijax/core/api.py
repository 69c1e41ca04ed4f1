"""The transformations as users call them: on pytrees, and with clear error messages.

Each flattens the arguments, calls one interpreter, and puts the results back into
trees. `grad` is `vjp` with the cotangent 1. Rarely used features (cotangents that add
up in refs, shardings of a batch) are in `differentiation.py`, `vectorization.py` and
`pullbacks.py`, which call the functions of this file.

In JAX: `jax/_src/api.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from . import autodiff, batching, dtypes, errors, shaping, signatures
from .errors import api_boundary
from .events import Hook
from .language import AbstractValue, Jaxpr, ShapedArray, eval_jaxpr, get_aval
from .rules import (
    AxisData,
    accumulator_for,
    instantiate,
    match_axis,
    no_axis_name,
    scalar_like,
)
from .signatures import CallSignature, argnums_tuple
from .trees import (
    broadcast_prefix_to_treedef,
    tree_flatten,
    tree_leaves,
    tree_map_leaves,
    tree_structure,
    tree_unflatten,
)

# ----------------------------------------------------------------------------------
# Derivatives
# ----------------------------------------------------------------------------------


class FlatFunction:
    """Wraps a function of trees as a function of flat lists of leaves.

    After a call, `out_tree` is the tree of the result. With `has_aux` the function
    returns a pair, and `aux` has the leaves of its second part.
    """

    def __init__(self, fun: Callable, in_tree: Any, has_aux: bool = False):
        self.fun = fun
        self.in_tree = in_tree
        self.has_aux = has_aux
        self.out_tree: Any = None
        self.aux: list[Any] = []
        self.aux_tree: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        answer = self.fun(*tree_unflatten(self.in_tree, leaves))
        if self.has_aux:
            if not isinstance(answer, (tuple, list)) or len(answer) != 2:
                raise errors.type_error(
                    "expected function with aux output to return a two-element tuple, "
                    f"but got type {type(answer)} with value {answer!r}. Write "
                    "`return value, aux`, or leave out has_aux=True."
                )
            answer, aux = answer
            self.aux[:], self.aux_tree = tree_flatten(aux)
        outputs, self.out_tree = tree_flatten(answer)
        return outputs

    def result(self, outputs: Sequence[Any], derivative: Any) -> tuple:
        """(value, derivative), and the auxiliary value if there is one."""
        value = tree_unflatten(self.out_tree, outputs)
        if self.has_aux:
            return value, derivative, tree_unflatten(self.aux_tree, self.aux)
        return value, derivative


@api_boundary
def jvp(
    fun: Callable,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> tuple:
    """Value of `fun` at `primals`, and its derivative there in direction `tangents`.

    `primals` and `tangents` are tuples with one tree for each argument. Returns (value,
    tangent of the value), and the auxiliary value if `has_aux`.
    """
    flat_primals, in_tree = tree_flatten(primals)
    flat = FlatFunction(fun, in_tree, has_aux)
    outputs, out_tangents = autodiff.jvp(
        flat, flat_primals, tree_leaves(tangents), flat.aux
    )
    out_tangents = [instantiate(tangent) for tangent in out_tangents]
    return flat.result(outputs, tree_unflatten(flat.out_tree, out_tangents))


@dataclass(frozen=True, eq=False)
class Derivative:
    """The derivative of a function at one point: a linear program, and its trees.

    The residuals are not part of it: they are values, which may be tracers.
    """

    jaxpr: Jaxpr
    nonzeros: Sequence[bool]
    in_avals: Sequence[AbstractValue]
    out_avals: Sequence[AbstractValue]
    in_tree: Any
    out_tree: Any

    def push(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        """Map tangents of the arguments to the tangent of the value."""
        answers = eval_jaxpr(self.jaxpr, residuals, *tree_leaves(tangents))
        outputs = autodiff.with_zeros(answers, self.nonzeros, self.out_avals)
        return tree_unflatten(self.out_tree, map(instantiate, outputs))

    def pull(self, residuals: Sequence[Any], cotangent: Any) -> Any:
        """Map a cotangent of the value to cotangents of the arguments."""
        sums = [accumulator_for(aval) for aval in self.in_avals]
        autodiff.vjp(self.jaxpr, residuals, self.nonzeros, sums, tree_leaves(cotangent))
        return tree_unflatten(self.in_tree, [instantiate(x.freeze()) for x in sums])


def differentiated(
    fun: Callable, primals: Sequence[Any], has_aux: bool, traced_for: str
) -> tuple[FlatFunction, list[Any], Derivative, list[Any]]:
    """(flat function, outputs, derivative, residuals) of `fun` at `primals`."""
    flat_primals, in_tree = tree_flatten(primals)
    flat = FlatFunction(fun, in_tree, has_aux)
    info = signatures.lazy_debug_info(fun, in_tree, traced_for)
    linearized = autodiff.linearize(flat, flat_primals, info, flat.aux)
    outs, jaxpr, residuals, nonzeros = linearized
    in_avals = list(map(get_aval, flat_primals))
    out_avals = list(map(get_aval, outs))
    derivative = Derivative(
        jaxpr, nonzeros, in_avals, out_avals, in_tree, flat.out_tree
    )
    return flat, outs, derivative, residuals


@api_boundary
def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """Value of `fun`, and its derivative at that point as a linear function.

    The returned function maps tangents of `primals` to the tangent of the value. It
    does not run `fun` again and may be called many times.
    """
    found = differentiated(fun, primals, has_aux, "linearize")
    flat, outs, derivative, residuals = found
    return flat.result(outs, functools.partial(derivative.push, residuals))


@api_boundary
def vjp(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """Value of `fun`, and the function that pulls cotangents back.

    The returned function maps a cotangent of the value to a tuple of cotangents of
    `primals`.
    """
    flat, outs, derivative, residuals = differentiated(fun, primals, has_aux, "vjp")
    return flat.result(outs, functools.partial(derivative.pull, residuals))


def check_grad_input(name: str, holomorphic: bool, allow_int: bool, x: Any) -> None:
    """TypeError unless `name` can differentiate with respect to `x`."""
    aval = get_aval(x)
    if not isinstance(aval, ShapedArray):
        raise errors.type_error(
            f"{name} differentiates with respect to arrays, but got a value of type "
            f"{aval.str_short()}. Make the ref inside of the function: pass its "
            "content and write `ref = new_ref(x)`."
        )
    if holomorphic:
        _check_complex(name, "inputs", aval.dtype)
    elif not allow_int and not dtypes.issubdtype(aval.dtype, np.inexact):
        raise errors.type_error(
            f"{name} requires real- or complex-valued inputs (input dtype that is a "
            f"sub-dtype of np.inexact), but got {aval.dtype.name}. Convert the "
            "argument to a float (`2.0` instead of `2`, `x.astype(float)`), choose "
            "another argument with argnums, or set allow_int=True."
        )


def check_grad_output(name: str, holomorphic: bool, x: Any) -> None:
    """TypeError unless `name` can differentiate `x`, which a function returned."""
    dtype = get_aval(x).dtype
    if holomorphic:
        _check_complex(name, "outputs", dtype)
    elif not dtypes.issubdtype(dtype, np.floating):
        raise errors.type_error(
            f"{name} requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {dtype.name}. For holomorphic differentiation, "
            "pass holomorphic=True. For functions with integer or complex outputs, use "
            "minijax.vjp directly."
        )


def _check_complex(name: str, values: str, dtype: Any) -> None:
    if not dtypes.issubdtype(dtype, np.complexfloating):
        raise errors.type_error(
            f"{name} with holomorphic=True requires {values} with complex dtype, but "
            f"got {dtype.name}."
        )


@Hook
def first_cotangent(aval: Any) -> Any:
    """The 1 that `grad` pulls back from a value of this type.

    `programs/sharding/reshard.py` attaches types that are reduced over mesh axes.
    """
    return scalar_like(aval, 1)


def value_and_grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable:
    """A function that returns the value of `fun` and its gradient.

    Args:
      fun: returns a scalar (with `has_aux` a pair of a scalar and anything).
      argnums: the argument (or tuple of arguments) to differentiate; keyword arguments
        are not differentiated.
      has_aux: whether `fun` returns a pair `(value, aux)`.
      holomorphic: whether `fun` is complex-differentiable, of complex arguments.
      allow_int: whether integer arguments are allowed; their gradient is float0.
      reduce_axes: must be empty.

    Returns:
      A function with the arguments of `fun` that returns `(value, gradient)`; the value
      is `(value, aux)` with `has_aux`, the gradient a tuple if `argnums` is one.

    Raises:
      TypeError: `fun` does not return a real scalar, or the dtype of a differentiated
        argument is not a floating-point one.
      NotImplementedError: `reduce_axes` is not empty; JAX has removed this feature.
    """
    if reduce_axes:
        raise NotImplementedError(
            "reduce_axes argument to grad is deprecated: add up with `lax.psum`."
        )
    signatures.check_callable(fun, "value_and_grad")
    numbers = argnums_tuple(argnums, "argnums")
    single = not isinstance(argnums, (tuple, list))

    @api_boundary
    @signatures.wraps(fun)
    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        positions = positions_of(numbers, args)
        dynamic = tuple(args[position] for position in positions)
        for leaf in tree_leaves(dynamic):
            check_grad_input("grad", holomorphic, allow_int, leaf)
        flat, outs, derivative, residuals = differentiated(
            function_of(positions, fun, args, kwargs), dynamic, has_aux, "vjp"
        )
        _check_scalar_output(outs, flat.out_tree)
        check_grad_output("grad", holomorphic, outs[0])
        one = first_cotangent.run(get_aval(outs[0]))
        # The gradient of the identity is `one` itself, a plain number.
        gradient = tree_map_leaves(_as_array, derivative.pull(residuals, one))
        value, gradient, *aux = flat.result(outs, gradient[0] if single else gradient)
        return ((value, *aux) if has_aux else value), gradient

    return value_and_grad_f


def _as_array(x: Any) -> Any:
    """A plain number as an array: the gradient of the identity is the cotangent 1."""
    return shaping.stage(x) if isinstance(x, (int, float, complex, np.generic)) else x


def grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable:
    """A function that returns the gradient of `fun`, whose result is a scalar.

    The arguments are those of `value_and_grad`. The gradient has the tree, shapes and
    dtypes of the differentiated argument; with `has_aux` the result is a pair
    `(gradient, aux)`.
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @api_boundary
    @signatures.wraps(fun)
    def grad_f(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_f


def positions_of(argnums: tuple[int, ...], args: tuple) -> list[int]:
    """The positions of the arguments to differentiate, all counted from the first.

    Raises TypeError or ValueError for a position without an argument, ValueError if
    there is no position or one occurs twice.
    """
    needed = max((n + 1 if n >= 0 else -n for n in argnums), default=0)
    if needed > len(args):
        negative = min(argnums) < -len(args)
        error = errors.value_error if negative else errors.type_error
        shown = argnums[0] if len(argnums) == 1 else argnums
        raise error(
            f"differentiating with respect to argnums={shown} requires at least "
            f"{needed} positional arguments to be passed by the caller, but got only "
            f"{len(args)} positional arguments."
        )
    positions = [n % len(args) for n in argnums]
    if len(set(positions)) < max(len(positions), 1):
        raise errors.value_error(
            f"argnums={argnums} must name at least one argument, and none twice"
        )
    return positions


def function_of(
    positions: Sequence[int], fun: Callable, args: tuple, kwargs: dict
) -> Callable:
    """`fun` as a function of the arguments at `positions`; the others are fixed."""

    @signatures.wraps(fun)
    def partial_fun(*dynamic: Any) -> Any:
        full = list(args)
        for position, value in zip(positions, dynamic):
            full[position] = value
        return fun(*full, **kwargs)

    return partial_fun


def _check_scalar_output(outputs: Sequence[Any], out_tree: Any) -> None:
    avals = [get_aval(output) for output in outputs]
    if len(outputs) != 1 or tree_structure(0) != out_tree:
        problem = f"Output was {tree_unflatten(out_tree, outputs)}"
    elif not isinstance(avals[0], ShapedArray):
        problem = f"Output had abstract value {avals[0].str_short()}"
    elif avals[0].shape != ():
        problem = f"Output had shape: {avals[0].shape}"
    else:
        return
    raise errors.type_error(
        f"Gradient only defined for scalar-output functions. {problem}. Reduce it to a "
        "scalar (`.sum()`, `.mean()`), return other values as aux with has_aux=True, "
        "or use jacrev for all derivatives.",
        rule="a gradient is of a scalar",
        instead="return x.sum()" if "had shape" in problem else "return one scalar",
    )


# ----------------------------------------------------------------------------------
# Batches
# ----------------------------------------------------------------------------------


def move_output(batch: Any, output: Any, dim: int | None, target: int | None) -> Any:
    """Move the batch axis of an output from `dim` to `target`, its `out_axes` entry."""
    rank = get_aval(output).ndim + (dim is None)
    if target is not None and not -rank <= target < rank:
        raise errors.value_error(
            f"out_axes of vmap names axis {target}, but the batched output has only "
            f"{rank} dimensions"
        )
    return match_axis(batch, output, dim, target and target % rank)


def vmap(
    fun: Callable,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
) -> Callable:
    """A function that applies `fun` to each example of a batch.

    Args:
      fun: a function of one example.
      in_axes: for each positional argument (or for all) the axis over which it is
        batched, or None if all examples share it; a tree prefix of the argument.
        Negative axes count from the end.
      out_axes: where the batch axis of the results goes; a tree prefix of the result.
      axis_name: a name for the axis, for collectives.
      axis_size: the size of the batch; required if no argument is batched.

    Keyword arguments are batched over their first axis.

    Raises:
      ValueError: batched axes differ in size (the message names the arguments), an axis
        is out of range, or a tree is not a prefix.
      TypeError: an argument or a result is not an array.
    """
    signatures.check_callable(fun, "vmap")

    @api_boundary
    @signatures.wraps(fun)
    def vmap_f(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree_flatten((args, kwargs))
        axes = broadcast_prefix_to_treedef((in_axes, 0), in_tree)
        batch, outputs, dims, out_tree = batched(
            fun, leaves, in_tree, axes, axis_name, axis_size
        )
        wanted = broadcast_prefix_to_treedef(out_axes, out_tree)
        moved = map(move_output, repeat(batch), outputs, dims, wanted)
        return tree_unflatten(out_tree, moved)

    return vmap_f


def batched(
    fun: Callable,
    leaves: Sequence[Any],
    in_tree: Any,
    axes: Sequence[int | None],
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_name: Any = None,
) -> tuple[AxisData, list[Any], list[int | None], Any]:
    """Run `fun` on a batch: (the axis, outputs, the batch axis of each, their tree).

    `leaves` and `in_tree` are those of `(args, kwargs)`; `axes` has the batch axis of
    each leaf, or None.
    """
    dims = list(map(_normalized_axis, leaves, axes))
    size = _batch_size(fun, leaves, in_tree, dims, axis_size)
    name = no_axis_name if axis_name is None else axis_name
    cuts = set()
    for leaf, dim in zip(leaves, dims):
        if dim is not None:
            cut = getattr(get_aval(leaf), "cut", None)
            cuts.add(cut and cut.of(dim))
    if len(cuts) > 1:
        raise errors.value_error(
            "in_axes of vmap: mapped axes must be cut the same, over the same mesh "
            f"axes, got {cuts}. Bring the arguments to one sharding with `reshard`."
        )
    cut = next(iter(cuts), None)
    if cut is not None and spmd_name is not None:
        cut.check_batch_name(spmd_name)
        spmd_name = None  # the types have the mesh axis
    axis_data = AxisData(name, size, spmd_name, cut)
    flat = FlatFunction(lambda args, kwargs: fun(*args, **kwargs), in_tree)
    outputs, out_dims = batching.batch(flat, axis_data, leaves, dims)
    signatures.check_outputs(outputs, flat.out_tree, signatures.fun_name(fun), "vmap")
    return axis_data, outputs, out_dims, flat.out_tree


def _normalized_axis(leaf: Any, axis: int | None) -> int | None:
    """An axis counted from the front; ValueError if the leaf does not have it."""
    if axis is None:
        return None
    aval = get_aval(leaf)
    if not -aval.ndim <= axis < aval.ndim:
        raise errors.value_error(
            f"vmap was requested to map its argument along axis {axis}, which implies "
            f"that its rank should be at least {axis + 1 if axis >= 0 else -axis}, but "
            f"is only {aval.ndim} (its shape is {aval.shape})"
        )
    return int(axis) % aval.ndim


def _batch_size(
    fun: Callable,
    leaves: Sequence[Any],
    in_tree: Any,
    dims: Sequence[int | None],
    axis_size: int | None,
) -> int:
    """The size of the batch; ValueError, naming the arguments, when sizes differ."""
    places: dict[int, list[int]] = {}
    for place, (leaf, dim) in enumerate(zip(leaves, dims)):
        if dim is not None:
            places.setdefault(get_aval(leaf).shape[dim], []).append(place)
    sizes = {*places} if axis_size is None else {*places, axis_size}
    if not sizes:
        raise errors.value_error(
            "vmap must have at least one non-None value in in_axes or axis_size must "
            "be specified"
        )
    if len(sizes) == 1:
        return min(places) if places else int(sizes.pop())
    lines = []
    if axis_size is not None:
        lines.append(f"the `axis_size` argument was {axis_size}")
    signature = CallSignature(fun)
    names = signature.leaf_names(signature.bind(*tree_unflatten(in_tree, leaves)))
    for size, where in sorted(places.items(), key=lambda item: -len(item[1])):
        some = " and ".join(
            f"axis {dims[i]} of argument {names[i]} of type "
            f"{get_aval(leaves[i]).str_short()}"
            for i in where[:2]
        )
        if len(where) == 1:
            lines.append(f"one axis had size {size}: {some}")
        else:
            lines.append(f"{len(where)} axes had size {size}, e.g. {some}")
    raise errors.value_error(
        "vmap got inconsistent sizes for array axes to be mapped:\n  * "
        + ";\n  * ".join(lines)
        + ".\nBatched axes must have one size. Write None in in_axes for an argument "
        "that all examples share.",
        rule="batched axes have one size",
    )
