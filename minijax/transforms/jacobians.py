"""Jacobians and Hessians: derivatives of many outputs in many inputs, by vmap.

In JAX: `jax/_src/api.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import api, dtypes, errors, shaping
from minijax.core.errors import api_boundary
from minijax.core.language import get_aval
from minijax.core.signatures import argnums_tuple, check_callable, wraps
from minijax.core.trees import tree_flatten, tree_leaves, tree_structure, tree_unflatten
from minijax.primitives.elementwise import complex_numbers
from minijax.primitives.shape import broadcasting, joining
from minijax.support import element_types
from minijax.support.devices.partition_spec import PartitionSpec
from minijax.support.tree_util import tree_map, tree_transpose
from minijax.transforms.differentiation import jvp, vjp
from minijax.transforms.vectorization import vmap


def jacfwd(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable:
    """A function that returns the Jacobian of `fun`, one column at a time (forward).

    The Jacobian of an output of shape `s` in an argument of shape `t` has shape `s +
    t`. Best for more outputs than inputs. Arguments as in `grad`.
    """
    single = not isinstance(argnums, (tuple, list))

    def compute(partial_fun: Callable, dynamic: tuple) -> tuple:
        for leaf in tree_leaves(dynamic):
            _check_jacfwd_input(holomorphic, leaf)
        primals = dynamic[0] if single else dynamic

        def push(tangent: Any) -> Any:
            tangents = (tangent,) if single else tangent
            return jvp(partial_fun, dynamic, tangents, has_aux=has_aux)

        out_axes = (None, -1, None) if has_aux else (None, -1)
        value, columns, *aux = vmap(push, out_axes=out_axes)(_standard_basis(primals))
        for leaf in tree_leaves(value):
            if holomorphic:
                api.check_grad_output("jacfwd", True, leaf)
        jacobian = tree_map(
            lambda y, jac: _unravel(primals, -1, y, jac), value, columns
        )
        return jacobian, *aux

    return _jacobian("jacfwd", fun, argnums, compute)


def jacrev(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """A function that returns the Jacobian of `fun`, one row at a time (reverse).

    The Jacobian of an output of shape `s` in an argument of shape `t` has shape `s +
    t`. Best for more inputs than outputs. Arguments as in `grad`.
    """
    single = not isinstance(argnums, (tuple, list))

    def compute(partial_fun: Callable, dynamic: tuple) -> tuple:
        for leaf in tree_leaves(dynamic):
            api.check_grad_input("jacrev", holomorphic, allow_int, leaf)
        value, pullback, *aux = vjp(partial_fun, *dynamic, has_aux=has_aux)
        for leaf in tree_leaves(value):
            api.check_grad_output("jacrev", holomorphic, leaf)
        rows = vmap(pullback)(_standard_basis(value))
        rows = rows[0] if single else rows
        example = dynamic[0] if single else dynamic
        by_input = tree_map(lambda x, jac: _unravel(value, 0, x, jac), example, rows)
        jacobian = tree_transpose(
            tree_structure(example), tree_structure(value), by_input
        )
        return jacobian, *aux

    return _jacobian("jacrev", fun, argnums, compute)


jacobian = jacrev


def _jacobian(name: str, fun: Callable, argnums: Any, compute: Callable) -> Callable:
    """`fun` as a function that returns its Jacobian, and the aux if there is one.

    `compute(function of the differentiated arguments, these) -> (jacobian, *aux)`.
    """
    check_callable(fun, name)
    numbers = argnums_tuple(argnums, "argnums")

    @api_boundary
    @wraps(fun)
    def jacobian_f(*args: Any, **kwargs: Any) -> Any:
        if any(not -len(args) <= number < len(args) for number in numbers):
            raise errors.value_error(
                f"{name} got argnums={argnums} and was called with {len(args)} "
                "positional arguments. Pass those to differentiate by position."
            )
        positions = api.positions_of(numbers, args)
        dynamic = tuple(args[position] for position in positions)
        partial_fun = api.function_of(positions, fun, args, kwargs)
        jacobian, *aux = compute(partial_fun, dynamic)
        return (jacobian, aux[0]) if aux else jacobian

    return jacobian_f


def hessian(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable:
    """A function that returns the matrix of second derivatives of `fun`.

    Forward over reverse: `jacfwd(jacrev(fun))`. For a scalar function of an argument of
    shape `t` it has shape `t + t`.
    """
    inner = jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic)
    return jacfwd(inner, argnums, has_aux=has_aux, holomorphic=holomorphic)


def _check_jacfwd_input(holomorphic: bool, x: Any) -> None:
    dtype = get_aval(x).dtype
    wanted = np.complexfloating if holomorphic else np.floating
    if dtypes.is_extended(dtype) or not dtypes.issubdtype(dtype, wanted):
        kind = "complex" if holomorphic else "real"
        raise errors.type_error(
            f"jacfwd requires {kind}-valued inputs (input dtype that is a sub-dtype of "
            f"np.{wanted.__name__}), but got {dtype.name}. Convert the argument, pass "
            "holomorphic=True for complex inputs, or use minijax.jvp directly."
        )


def _standard_basis(tree: Any) -> Any:
    """The unit vectors of the space of a tree, stacked along a new first axis."""
    leaves = tree_leaves(tree)
    size = sum(get_aval(leaf).size for leaf in leaves)
    dtype = element_types.result_type(*leaves)
    identity = broadcasting.identity_matrix(size, dtype)
    return _unravel(tree, 1, None, identity)


def _unravel(tree: Any, axis: int, example: Any, array: Any) -> Any:
    """An axis of `array` split and reshaped as the leaves of `tree`.

    The parts get the dtype and weak type of `example`, or of their leaf if it is None.
    """
    leaves, treedef = tree_flatten(tree)
    axis = axis % get_aval(array).ndim
    parts = joining.split(array, [get_aval(leaf).size for leaf in leaves], axis)
    shaped = []
    for leaf, part in zip(leaves, parts):
        aval = get_aval(part)
        full = aval.shape[:axis] + get_aval(leaf).shape + aval.shape[axis + 1 :]
        part = shaping.reshape(part, full)
        wanted = get_aval(leaf if example is None else example)
        if aval.dtype.kind == "c" and wanted.dtype.kind != "c":
            part = complex_numbers.real(part)
        # Given a sharding, the conversion stands there even when it changes nothing.
        sharding = PartitionSpec(*[None] * len(full)) if example is None else None
        if sharding is not None and wanted.cut is not None:
            sharding = wanted.cut.with_batch_axis(0, None)
        shaped.append(
            shaping.convert_element_type_to(
                part, wanted.dtype, wanted.weak_type, sharding=sharding
            )
        )
    return tree_unflatten(treedef, shaped)
