"""custom_vjp: a function with a user's rule for the backward pass.

`fwd` returns the value and residuals, `bwd` turns residuals and a cotangent into
cotangents of the arguments. In the linear program the call is one closed equation,
`custom_lin`, which only transposing opens.

In JAX: `jax/_src/custom_derivatives.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import batching, dtypes, errors
from minijax.core.errors import api_boundary
from minijax.core.language import (
    Primitive,
    Tracer,
    all_primitives,
    get_aval,
    mapped_aval,
    no_effects,
    register,
)
from minijax.core.pretty import printed_first
from minijax.core.rules import (
    Accumulator,
    AxisData,
    Zero,
    instantiate,
    match_axis,
    not_mapped,
)
from minijax.core.signatures import check_functions, fun_name
from minijax.core.trees import tree_flatten, tree_structure, tree_unflatten
from minijax.primitives.refs.mutable_arrays import Ref
from minijax.programs.calls import as_array
from minijax.programs.custom import custom_forward
from minijax.programs.custom.custom_calls import (
    CustomCallPrimitive,
    Dims,
    def_custom_call,
    named_like,
)
from minijax.programs.rare.custom_remat import optimized_forward
from minijax.support.tree_util import broadcast_prefix
from minijax.transforms.pullbacks import lies_as
from minijax.transforms.rematerialize import where
from minijax.values.ref_avals import AbstractRef
from minijax.values.symbolic_zeros import SymbolicZero


class CustomVJPPrimal:
    """The argument of `fwd` for a leaf with symbolic_zeros: value, and if perturbed.

    In JAX: `custom_derivatives.py`, `CustomVJPPrimal`.
    """

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool):
        self.value = value
        self.perturbed = perturbed


class custom_vjp(custom_forward.CustomFunction):
    """A function with a user's rule for reverse mode.

        @custom_vjp
        def f(x): return x ** 3

        f.defvjp(lambda x: (f(x), x),                  # value and residuals
                 lambda x, ct: (3 * x ** 2 * ct,))     # cotangents of the arguments

    Args:
      fun: the function.
      nondiff_argnums, nondiff_argnames: arguments that are not differentiated; `bwd`
        gets them first.

    In JAX: `jax.custom_vjp`.
    """

    fwd: Callable | None = None
    bwd: Callable | None = None
    symbolic_zeros: bool = False
    not_inherited = ("fwd", "bwd", "symbolic_zeros")

    def defvjp(
        self,
        fwd: Callable,
        bwd: Callable,
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set `fwd(*args) -> (value, residuals)` and `bwd(residuals, ct) -> cts`.

        `bwd` returns a tuple with one cotangent for each differentiable argument, None
        for zero. With `symbolic_zeros`, `fwd` gets `CustomVJPPrimal`s and `bwd` may get
        `SymbolicZero`s. With `optimize_remat`, a checkpoint runs the function itself
        where it needs no residuals (see `custom_remat.py`).
        """
        check_functions("defvjp", fwd=fwd, bwd=bwd)
        if optimize_remat and symbolic_zeros:
            raise NotImplementedError(
                "remat optimization for custom_vjp does not support symbolic zeros: "
                "leave out optimize_remat or symbolic_zeros."
            )
        if optimize_remat:
            flat = functools.partial(_FlatFwd, symbolic=False)
            fwd = optimized_forward(self.fun, fwd, self.nondiff_argnums, flat)
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = fun_name(self.fun)
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {name} using defvjp. Write "
                f"`{name}.defvjp(fwd, bwd)`."
            )
        args = custom_forward.positional_arguments(self.fun, args, kwargs)
        static, dynamic = custom_forward.split_static(args, self.nondiff_argnums)
        for value in static:
            if isinstance(value, Tracer):
                raise _nondiff_tracer_error(value, name)
        leaves, in_tree = custom_forward.flatten_arrays(tuple(dynamic))
        _check_distinct_refs(leaves, name)
        call = _CallWithoutRefs(self.fun, args, self.nondiff_argnums, in_tree)
        fwd = _FlatFwd(self.fwd, call, self.symbolic_zeros)
        bwd = _FlatBwd(self.bwd, static, fwd)
        outputs = custom_vjp_call_p.bind_call(
            call, fwd, bwd, leaves, symbolic_zeros=self.symbolic_zeros
        )
        return tree_unflatten(call.tree_of_result(fwd), outputs)


def _check_distinct_refs(leaves: Sequence[Any], name: str) -> None:
    """ValueError when one ref is given twice; JAX checks it outside of jit only."""
    refs = [x for x in leaves if type(x) is Ref]
    if len({id(ref) for ref in refs}) < len(refs):
        raise errors.value_error(
            "only one reference to a mutable array may be passed as an argument to a "
            f"function, but custom_vjp function {name} got one ref of type "
            f"{get_aval(refs[0]).str_short()} twice."
        )


class _CallWithoutRefs(custom_forward.FlatCall):
    """The user's function, which must not return a ref."""

    def __call__(self, *leaves: Any) -> list[Any]:
        outputs = super().__call__(*leaves)
        for out in outputs:
            if type(get_aval(out)) is AbstractRef:
                raise errors.value_error(
                    f"custom_vjp primal function {self.name} returned a mutable array "
                    f"reference of type {get_aval(out).str_short()}, but mutable array "
                    "references cannot be returned. Return its content, `ref[...]`."
                )
        return outputs


def _nondiff_tracer_error(value: Tracer, name: str) -> Exception:
    return errors.UnexpectedTracerError(
        f"Found a JAX Tracer object passed as an argument to the custom_vjp function "
        f"{name} in a position indicated by nondiff_argnums as non-differentiable: "
        f"{value._error_repr()}. Tracers cannot be passed as non-differentiable "
        "arguments; pass it as an ordinary argument and return None for it from bwd."
    )


class _FlatFwd:
    """The user's fwd on flat lists: (primals, perturbed) -> (outputs, residuals)."""

    def __init__(self, fwd: Callable, call: custom_forward.FlatCall, symbolic: bool):
        self.fwd = fwd
        self.__name__ = fun_name(fwd)
        self.call = call
        self.symbolic = symbolic
        self.out_tree: Any = None
        self.res_tree: Any = None

    def __call__(
        self, primals: Sequence[Any], perturbed: Sequence[bool]
    ) -> tuple[list[Any], list[Any]]:
        values: Sequence[Any] = [as_array(primal) for primal in primals]
        if self.symbolic:
            values = [CustomVJPPrimal(x, p) for x, p in zip(values, perturbed)]
        pair = self.fwd(*self.call.arguments(values))
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise TypeError(
                f"Custom VJP fwd rule {self.__name__} for function {self.call.name} "
                "must produce a pair (list or tuple of length two) where the first "
                "element represents the primal output and the second element "
                "represents residuals (i.e. values stored from the forward-pass for "
                f"use on the backward-pass), but got {pair}."
            )
        outputs, self.out_tree = tree_flatten(pair[0])
        residuals, self.res_tree = tree_flatten(pair[1])
        expected = self.call.out_tree
        if expected is not None and self.out_tree != expected:
            raise TypeError(
                f"Custom VJP fwd rule {self.__name__} for function {self.call.name} "
                "must produce a pair whose first element has the container (pytree) "
                f"structure of the function's result, {expected}, but got "
                f"{self.out_tree}."
            )
        return outputs, residuals


class _FlatBwd:
    """The user's bwd on flat lists: (residuals, cotangents) -> cotangents."""

    def __init__(self, bwd: Callable, static: list, fwd: _FlatFwd):
        self.bwd = bwd
        self.__name__ = fun_name(bwd)
        self.static = static
        self.fwd = fwd

    def __call__(
        self,
        residuals: Sequence[Any],
        cotangents: Sequence[Any],
        in_avals: Sequence[Any],
    ) -> list[Any]:
        if self.fwd.symbolic:
            cts = [
                SymbolicZero(ct.aval) if type(ct) is Zero else as_array(ct)
                for ct in cotangents
            ]
        else:
            cts = [as_array(instantiate(ct)) for ct in cotangents]
        res = tree_unflatten(self.fwd.res_tree, residuals)
        ct = tree_unflatten(self.fwd.out_tree, cts)
        answer = self.bwd(*self.static, res, ct)
        if isinstance(answer, list):
            answer = tuple(answer)
        return self._flatten_answer(answer, in_avals)

    def _flatten_answer(self, answer: Any, in_avals: Sequence[Any]) -> list[Any]:
        """One cotangent (or Zero) for each leaf of the arguments, checked."""
        call = self.fwd.call
        where = f"Custom VJP bwd rule {self.__name__} for function {call.name}"
        example = tree_unflatten(call.in_tree, [object()] * len(in_avals))
        if not isinstance(answer, tuple) or len(answer) != len(example):
            shown = answer if not isinstance(answer, tuple) else f"{len(answer)} items"
            raise TypeError(
                f"{where} must produce a tuple of length {len(example)}, one cotangent "
                f"for each differentiable argument, but got {shown}."
            )
        flat: list[Any] = []
        for position, (part, argument) in enumerate(zip(answer, example)):
            leaves, tree = tree_flatten(argument)
            if part is None:
                flat += [None] * len(leaves)
                continue
            try:  # a leaf may stand for a tree of such, as in JAX
                flat += broadcast_prefix(part, argument, is_leaf=_is_no_tree)
            except ValueError:
                raise TypeError(
                    f"{where} must produce cotangents of the tree structure of the "
                    f"arguments; argument {position} has {tree}, its cotangent "
                    f"{tree_structure(part)}."
                ) from None
        checked = []
        for ct, aval in zip(flat, in_avals):
            expected = aval.to_ct_aval()
            if ct is None:
                checked.append(Zero(expected))
                continue
            if type(ct) is SymbolicZero:
                if (ct.shape, ct.dtype) != (expected.shape, expected.dtype):
                    raise ValueError(
                        f"{where}: it gave a SymbolicZero of type {ct.aval.str_short()}"
                        f" for a cotangent of type {expected.str_short()}. Return None "
                        "for a cotangent that is zero."
                    )
                checked.append(Zero(expected))
                continue
            actual = get_aval(ct)
            lies = isinstance(ct, np.ndarray) or lies_as(expected, actual)
            if actual.shape != expected.shape or not lies:
                raise ValueError(
                    f"{where}: expected output with aval {expected.str_short()} but "
                    f"got {actual.str_short()}: a cotangent has the shape of its "
                    "argument, and the same cut."
                )
            # Like JAX, accept any dtype if the argument has tangents.
            zero = dtypes.is_float0(expected.dtype) or dtypes.is_float0(actual.dtype)
            checked.append(Zero(expected) if zero else ct)
        return checked


def _is_no_tree(x: Any) -> bool:
    return x is None or type(x) is SymbolicZero


class CustomVJPCallPrimitive(CustomCallPrimitive):
    """The primitive of custom_vjp calls; it is bound with Python functions.

    The rules on flat lists: `fwd(primals, which are perturbed) -> (outputs, residuals)`
    and `bwd(residuals, cotangents, types of the arguments) -> cotangents`.

    In JAX: `CustomVJPCallPrimitive`.
    """

    process = "process_custom_vjp_call"
    rules = ("fwd_jaxpr_thunk", "bwd")

    def run_forward(
        self, fwd: Callable, primals: Sequence[Any], tangents: Sequence[Any], **_: Any
    ) -> tuple[list[Any], list[Any]]:
        """(outputs, residuals)."""
        return fwd(primals, [type(t) is not Zero for t in tangents])

    def write_linear(
        self, bwd: Callable, residuals: Any, tangents: Any, outs: Any, **options: Any
    ) -> list[Any]:
        """The tangents of the outputs, as one equation that only its transpose runs."""
        in_avals = [t.aval if type(t) is Zero else get_aval(t) for t in tangents]
        out_avals = [get_aval(out).to_tangent_aval() for out in outs]
        given = [t for t in tangents if type(t) is not Zero]
        params = {"num_res": len(residuals), "bwd": bwd, "in_avals": tuple(in_avals)}
        params |= {"out_avals": tuple(out_avals), **options}
        params["in_zeros"] = tuple(type(t) is Zero for t in tangents)
        return custom_lin_p.bind(*residuals, *given, **params)

    def without_consts(self, rules: Sequence[Callable], count: int) -> list[Callable]:
        fwd, bwd = rules

        @named_like(fwd)
        def own_fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple:
            return fwd(primals[count:], perturbed[count:])

        @named_like(bwd)
        def own_bwd(residuals: Any, cotangents: Any, in_avals: Sequence) -> list[Any]:
            zeros = [Zero(aval.to_ct_aval()) for aval in in_avals[:count]]
            return [*zeros, *bwd(residuals, cotangents, in_avals[count:])]

        return [own_fwd, own_bwd]

    def batched_rules(
        self, rules: Sequence[Callable], axis_data: AxisData, in_dims: Dims, tag: Any
    ) -> tuple[list[Callable], list[int | None]]:
        """Cotangents of arguments that a batch shares are summed over the batch."""
        fwd, bwd = rules
        out_dims: list[int | None] = []
        res_dims: list[int | None] = []

        def of_one(aval: Any, dim: int | None) -> Any:
            return mapped_aval(axis_data.size, dim, aval)

        @named_like(fwd)
        def batched_fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple:
            count = 0

            def flat(*args: Any) -> list[Any]:
                nonlocal count
                outputs, residuals = fwd(args, perturbed)
                count = len(outputs)
                return [*outputs, *residuals]

            dims: list[int | None] = []
            values = batching.batch_flat(flat, axis_data, in_dims, dims, tag)(*primals)
            out_dims[:], res_dims[:] = dims[:count], dims[count:]
            return values[:count], values[count:]

        @named_like(bwd)
        def batched_bwd(
            residuals: Sequence[Any], cotangents: Sequence[Any], in_avals: Sequence[Any]
        ) -> list[Any]:
            nonzero = [type(ct) is not Zero for ct in cotangents]
            zeros_out: list[bool] = []

            def flat(*args: Any) -> list[Any]:
                given = iter(args[len(residuals) :])
                cts = [
                    next(given) if flag else Zero(of_one(ct.aval, dim))
                    for ct, flag, dim in zip(cotangents, nonzero, out_dims)
                ]
                avals = list(map(of_one, in_avals, in_dims))
                answers = bwd(args[: len(residuals)], cts, avals)
                zeros_out[:] = [type(answer) is Zero for answer in answers]
                return [answer for answer in answers if type(answer) is not Zero]

            dims: list[int | None] = []
            all_dims = [*res_dims, *where(nonzero, out_dims)]
            run = batching.batch_flat(flat, axis_data, all_dims, dims, tag)
            answers = iter(zip(run(*residuals, *where(nonzero, cotangents)), dims))
            return [
                Zero(aval.to_ct_aval())
                if zero
                else _match_or_sum(*next(answers), wanted, axis_data)
                for aval, wanted, zero in zip(in_avals, in_dims, zeros_out)
            ]

        return [batched_fwd, batched_bwd], out_dims


def _match_or_sum(x: Any, dim: int | None, wanted: int | None, batch: Any) -> Any:
    if dim is not not_mapped and wanted is not_mapped:
        return all_primitives["reduce_sum"].bind(x, axes=(dim,), out_sharding=None)
    return match_axis(batch, x, dim, wanted)


custom_vjp_call_p = def_custom_call(
    CustomVJPCallPrimitive("custom_vjp_call", multiple_results=True)
)


@printed_first("name")
def _custom_vjp_pretty(params: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": params["call_jaxpr"].debug_info.func_name,
        "bwd": fun_name(params["bwd"]),
        "call_jaxpr": params["call_jaxpr"],
        "fwd": fun_name(params["fwd_jaxpr_thunk"]),
        **({"num_consts": params["num_consts"]} if params["num_consts"] else {}),
        "symbolic_zeros": params["symbolic_zeros"],
    }


custom_vjp_call_p.pretty = _custom_vjp_pretty


# The linear part of a custom_vjp call: opened by transposing, closed to all else.
custom_lin_p = register(Primitive("custom_lin", multiple_results=True))
custom_lin_p.cache_types = False


@custom_lin_p.def_effectful_abstract_eval
def _custom_lin_type(*avals, out_avals, **_) -> tuple:
    return list(out_avals), no_effects


@custom_lin_p.def_impl
def _custom_lin_impl(*args, **_) -> None:
    raise _no_forward_mode()


def _no_forward_mode() -> TypeError:
    return TypeError(
        "can't apply forward-mode differentiation (jvp) to a custom_vjp function: its "
        "rule is for the backward pass only. Use `custom_jvp`, which serves both "
        "modes, or `vjp` and `grad`."
    )


@custom_lin_p.def_lowering
def _custom_lin_lowering(ctx, *operands, **_) -> None:
    raise _no_forward_mode()


@custom_lin_p.def_transpose
def _custom_lin_transpose(cts, *args, num_res: int, **params):
    residuals, inputs = args[:num_res], args[num_res:]
    answers = params["bwd"](residuals, cts, params["in_avals"])
    kept = [a for a, zero in zip(answers, params["in_zeros"]) if not zero]
    for target, answer in zip(inputs, kept, strict=True):
        if isinstance(target, Accumulator):
            target.accum(answer)


def _custom_lin_pretty(params: dict[str, Any]) -> dict[str, Any]:
    return {
        "bwd": fun_name(params["bwd"]),
        "in_zeros": list(params["in_zeros"]),
        "num_res": params["num_res"],
        "symbolic_zeros": params["symbolic_zeros"],
    }


custom_lin_p.pretty = _custom_lin_pretty
custom_lin_p.without("jvp", "it is linear and only ever transposed")


@custom_lin_p.def_batch
def _custom_lin_batch(axis_data, args, dims, **_) -> None:
    """vmap batches the rules of the call; only forward mode comes here (jacfwd)."""
    raise _no_forward_mode()
