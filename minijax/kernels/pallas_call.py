"""pallas_call: a kernel over refs, run for every program of a grid.

    def add(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    f = pallas_call(add, out_shape=ShapeDtypeStruct((8,), jnp.float32), grid=(2,),
                    in_specs=[block, block], out_specs=block)

The equation carries the kernel as a jaxpr whose inputs are refs to blocks, and the grid
with its blocks (`grid_mappings.py`):

    c:f32[8] = pallas_call[grid_mapping=GridMapping(...) jaxpr={ lambda ; ... }] a b

`vmap` adds an axis to the grid. Forward derivatives run the kernel's own derivative as
a kernel; for `grad` give the function rules with `custom_vjp`. On a CPU the equation is
a loop over the grid (`grid_programs.py`).

In JAX: `pallas/pallas_call.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.compile.jit_api import jit
from minijax.core import autodiff, language, partial_eval, shaping, signatures
from minijax.core.errors import api_boundary
from minijax.core.rules import AxisData, Zero, batch_at_front, instantiate
from minijax.core.state import state
from minijax.core.trees import tree_flatten, tree_structure, tree_unflatten
from minijax.kernels import argument_checks
from minijax.kernels.grid_mappings import (
    BlockMapping,
    GridMapping,
    grid_mapping_of,
    index_aval,
    paths_of,
)
from minijax.kernels.grid_programs import run_grid
from minijax.kernels.interpret_params import InterpretParams
from minijax.kernels.interpreter import interpret_grid
from minijax.kernels.memory_spaces import MemoryRef
from minijax.kernels.mosaic import kernel_call as mosaic_call
from minijax.kernels.specs import CostEstimate, GridSpec, no_block_spec, squeezed
from minijax.kernels.triton import kernel_call as triton_call
from minijax.primitives.index import dynamic_slicing
from minijax.primitives.refs.ref_effects import RefEffect
from minijax.primitives.shape import broadcasting
from minijax.primitives.shape.squeezing import expand_dims, squeeze
from minijax.programs.callbacks.callback import pure_callback
from minijax.programs.callbacks.foreign_calls import aliased
from minijax.programs.control_flow.fori_loops import fori_loop
from minijax.programs.control_flow.operands import split_list
from minijax.support.user_source import named_scope
from minijax.transforms.rematerialize import where
from minijax.values.ref_avals import ShapeDtypeStruct

pallas_call_p = language.register(
    language.Primitive("pallas_call", multiple_results=True)
)
pallas_call_p.cache_types = False
pallas_call_p.without(
    "transpose", "give the function that calls the kernel a derivative by `custom_vjp`"
)


@pallas_call_p.def_effectful_abstract_eval
def _type(*avals, jaxpr: language.Jaxpr, out_avals, **_) -> tuple:
    effects = frozenset(e for e in jaxpr.effects if not isinstance(e, RefEffect))
    return list(out_avals), effects


def _watched(params: dict[str, Any]) -> bool:
    return isinstance(params["interpret"], InterpretParams)


@pallas_call_p.def_impl
def _now(*args, **params) -> list[Any]:
    """Compute: in Python when it is to be watched, so that errors are the user's."""
    if _watched(params):
        return [shaping.stage(x) for x in interpret_grid(*args, **params)]
    return language.run_eagerly.run(pallas_call_p, args, params)


def _in_a_callback(*args, out_avals, **params) -> list[Any]:
    """The watched kernel as a call back to Python from a compiled program."""
    structs = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in out_avals]
    return pure_callback(
        lambda *arrays: interpret_grid(*arrays, out_avals=out_avals, **params),
        structs,
        *args,
    )


@pallas_call_p.def_lowering
def _lowering(ctx, *operands, **params) -> list[Any]:
    """On machines without a rule of their own, only what is to be interpreted."""
    if not params["interpret"]:
        raise ValueError(
            f"Cannot lower pallas_call on platform: {ctx.platform}. Pass "
            "interpret=True to run the grid as a loop."
        )
    return _cpu_lowering(ctx, *operands, **params)


def _cpu_lowering(ctx, *operands, **params) -> list[Any]:
    compute = _in_a_callback if _watched(params) else run_grid
    return ctx.lower_fun(compute, *operands, **params)


pallas_call_p.def_lowering(_cpu_lowering, "cpu")


def _compiled_by(lower: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """The rule of a machine's compiler; an interpreted kernel is a loop as on a CPU."""

    def rule(ctx, *operands, **params) -> list[Any]:
        chosen = _cpu_lowering if params["interpret"] else lower
        return chosen(ctx, *operands, **params)

    return rule


pallas_call_p.def_lowering(_compiled_by(mosaic_call.lower), "tpu")
pallas_call_p.def_lowering(_compiled_by(triton_call.lower), "cuda")


# ----------------------------------------------------------------------------------
# Derivatives
# ----------------------------------------------------------------------------------


@pallas_call_p.def_jvp_rule
def _jvp(primals, tangents, **params) -> tuple[list, list]:
    """The kernel's derivative is a kernel over twice as many blocks.

    In JAX: `_pallas_call_jvp_rule`.
    """
    mapping, jaxpr = params["grid_mapping"], params["jaxpr"]
    for there, what in (
        (mapping.num_dynamic_grid_bounds, "a computed grid"),
        (mapping.num_index_operands, "prefetched scalars"),
        (params["input_output_aliases"], "input_output_aliases"),
        (mapping.scratch_avals, "scratch memory"),
    ):
        if there:
            raise NotImplementedError(
                f"JVP of a pallas_call with {what} is not supported. Give the "
                "function that calls the kernel a derivative by `custom_vjp`."
            )
    nonzeros = [type(t) is not Zero for t in tangents]
    count, num_outputs = len(primals), mapping.num_outputs
    with mapping.trace_env():
        forward, _ = autodiff.jvp_jaxpr(
            language.ClosedJaxpr(jaxpr), [*nonzeros, *[True] * num_outputs]
        )
    given = nonzeros.count(True)
    refs = split_list(forward.jaxpr.invars, count, num_outputs, given)
    in_refs, out_refs, in_dots, out_dots = refs
    ordered = [*in_refs, *in_dots, *out_refs, *out_dots]
    ins, outs = mapping.input_mappings, mapping.output_mappings
    cost = params["cost_estimate"]
    results = pallas_call_p.bind(
        *primals,
        *map(instantiate, where(nonzeros, tangents)),
        **params
        | {
            "jaxpr": forward.jaxpr.replace(invars=ordered),
            "grid_mapping": mapping.replace(
                block_mappings=(*ins, *where(nonzeros, ins), *outs, *outs),
                num_inputs=count + given,
                num_outputs=2 * num_outputs,
            ),
            "cost_estimate": cost and cost.times(2),
            "out_avals": params["out_avals"] * 2,
        },
    )
    return results[:num_outputs], results[num_outputs:]


# ----------------------------------------------------------------------------------
# vmap
# ----------------------------------------------------------------------------------


@pallas_call_p.def_batch
def _batch(axis_data, args, dims, **params) -> tuple[list, list]:
    """A new first axis of the grid, along which blocks have one example.

    Where sizes of the grid or prefetched scalars differ between the examples, a loop
    over the examples.

    In JAX: `_pallas_call_batching_rule`.
    """
    mapping, size = params["grid_mapping"], axis_data.size
    num_outputs = mapping.num_outputs
    if size == 1:
        args = [x if d is None else squeeze(x, (d,)) for x, d in zip(args, dims)]
        outs = pallas_call_p.bind(*args, **params)
        return [expand_dims(x, (0,)) for x in outs], [0] * num_outputs
    first = mapping.num_dynamic_grid_bounds + mapping.num_index_operands
    args, dims = _aliases_in_front(args, dims, axis_data, params)
    if any(dim is not None for dim in dims[:first]):
        return _loop_over_examples(size, args, dims, params), [0] * num_outputs
    places = [*dims[first:], *[0] * num_outputs]
    batched = mapping.replace(
        grid=(size, *mapping.grid),
        grid_names=mapping.grid_names and (None, *mapping.grid_names),
        block_mappings=tuple(
            _batched_block(mapping, m, dim, size)
            for m, dim in zip(mapping.block_mappings, places, strict=True)
        ),
        index_map_avals=(index_aval, *mapping.index_map_avals),
        index_map_tree=_with_index_in_front(mapping),
        vmapped_dims=(0, *(axis + 1 for axis in mapping.vmapped_dims)),
    )
    cost = params["cost_estimate"]
    outs = pallas_call_p.bind(
        *args,
        **params
        | {
            "grid_mapping": batched,
            "cost_estimate": cost and cost.times(size),
            "out_avals": tuple(a.unmapped(size, 0) for a in params["out_avals"]),
        },
    )
    return outs, [0] * num_outputs


def _with_index_in_front(mapping: GridMapping) -> Any:
    args, kwargs = tree_unflatten(mapping.index_map_tree, mapping.index_map_avals)
    return tree_structure(((index_aval, *args), kwargs))


def _batched_block(
    mapping: GridMapping, block: BlockMapping, dim: int | None, size: int
) -> BlockMapping:
    closed = block.index_map_jaxpr

    def index_map(example: Any, *args: Any) -> list[Any]:
        indices = language.eval_jaxpr(closed.jaxpr, closed.consts, *args)
        if dim is not None:
            indices.insert(dim, example)
        return indices

    with mapping.trace_env():
        jaxpr, consts = partial_eval.trace_to_jaxpr(
            index_map, [index_aval, *closed.in_avals], closed.debug_info
        )
    shape, array_aval = block.block_shape, block.array_aval
    if dim is not None:
        shape = (*shape[:dim], squeezed, *shape[dim:])
        array_aval = array_aval.unmapped(size, dim)
    return block.replace(
        block_shape=shape,
        array_aval=array_aval,
        index_map_jaxpr=language.ClosedJaxpr(jaxpr, consts),
        index_map_out_tree=tree_structure((0,) * len(shape)),
    )


def _aliases_in_front(args, dims, batch: AxisData, params: dict) -> tuple[list, list]:
    """Arguments whose memory outputs take over get their batch axis first."""
    args, dims = list(args), list(dims)
    first = params["grid_mapping"].num_dynamic_grid_bounds
    for given, _ in params["input_output_aliases"]:
        place = first + given
        args[place] = batch_at_front(args[place], dims[place], batch)
        dims[place] = 0
    return args, dims


_write_example = jit(
    dynamic_slicing.dynamic_update_index_in_dim,
    static_argnames=("axis", "allow_negative_indices"),
)


def _loop_over_examples(size: int, args, dims, params: dict) -> list[Any]:
    """Call the kernel for one example after another."""
    start = [
        broadcasting.full((size, *aval.shape), 0, aval.dtype)
        for aval in params["out_avals"]
    ]

    def body(example: Any, results: list[Any]) -> list[Any]:
        one = [
            x
            if dim is None
            else dynamic_slicing.dynamic_index_in_dim(x, example, dim, False)
            for x, dim in zip(args, dims)
        ]
        outs = pallas_call_p.bind(*one, **params)
        return [
            _write_example(x, out, example, axis=0) for x, out in zip(results, outs)
        ]

    return fori_loop(0, size, body, start, unroll=False)


# ----------------------------------------------------------------------------------
# What users call
# ----------------------------------------------------------------------------------


@api_boundary
def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] = {},
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: CostEstimate | None = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """A function that runs a kernel for every program of a grid.

    Args:
      kernel: takes a ref for each prefetched scalar, input, output and scratch memory,
        in this order, and returns None. A ref shows a block.
      out_shape: a tree of `ShapeDtypeStruct`: shapes and dtypes of the outputs.
      grid_spec: grid, blocks and scratch memory in one object, instead of the next
        four.
      grid: how many programs there are along each axis; the last one is the fastest.
      in_specs: one tree of `BlockSpec` for each argument; by default every program
        gets the whole arrays.
      out_specs: a tree of `BlockSpec` like `out_shape`.
      scratch_shapes: memory for intermediate values, such as
        `pltpu.VMEM((128, 128), jnp.float32)`: a tuple, or a dict of keyword arguments.
        Its content lasts from one program to the next.
      input_output_aliases: {number of an input: number of the output that starts with
        its content}.
      debug: print the kernel's jaxpr, and what it is compiled from.
      interpret: True to run the grid as a loop on any machine; a CPU does so anyway.
        `pltpu.InterpretParams()` runs one program at a time, and checks it.
      name: a name in messages and profiles.
      compiler_params: for another machine's compiler (`pltpu.CompilerParams`,
        `pltriton.CompilerParams`); a CPU needs none.
      cost_estimate: what the kernel costs, for the compiler.
      metadata: words to keep in the equation.

    Returns:
      a function of arrays (or trees of them) that returns a tree like `out_shape`.

    Raises:
      ValueError: specs, shapes and aliases do not fit each other; a message names the
        argument or output.
      TypeError: an index map or the kernel is not a function.
    """
    signatures.check_callable(kernel, "pallas_call")
    interpret = state.tpu_interpret_mode or interpret
    keywords = isinstance(scratch_shapes, Mapping)
    argument_checks.check_options(
        grid_spec=grid_spec,
        interpret=interpret,
        input_output_aliases=input_output_aliases,
        compiler_params=compiler_params,
        cost_estimate=cost_estimate,
        metadata=metadata,
        name=name,
    )
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        for what, given, is_there, empty in (
            ("grid", grid, bool(grid), "()"),
            ("in_specs", in_specs, in_specs is not no_block_spec, "no_block_spec"),
            ("out_specs", out_specs, out_specs is not no_block_spec, "no_block_spec"),
            ("scratch_shapes", scratch_shapes, bool(scratch_shapes), "()"),
        ):
            if is_there:
                raise ValueError(
                    f"If `grid_spec` is specified, then `{what}` must be `{empty}`. It "
                    f"is {given}"
                )
        keywords = isinstance(grid_spec.scratch_shapes, Mapping)
    spec = grid_spec
    dynamic_sizes = [size for size in spec.grid if not isinstance(size, int)]
    if isinstance(out_shape, list):
        out_shape = tuple(out_shape)
    out_paths, out_leaves, out_tree = paths_of(out_shape)
    out_avals = tuple(map(_out_aval, out_leaves))

    def wrapped(*args: Any) -> Any:
        in_paths, leaves, in_tree = paths_of(args)
        in_avals = [language.get_aval(x) for x in leaves]
        argument_checks.check_arrays(in_avals, in_paths)
        arrays, scratch, mapping = grid_mapping_of(
            spec, in_avals, in_tree, in_paths, out_avals, out_tree, out_paths
        )
        positional, named = ((), scratch) if keywords else (scratch, {})
        kernel_args = ((*arrays, *positional), named)
        jaxpr = _trace_kernel(kernel, kernel_args, mapping, name)
        if debug:
            print(
                f"\nThe kernel jaxpr in pallas_call {jaxpr.debug_info.func_src_info}:"
            )
            print(jaxpr)
        _check_aliases(input_output_aliases, in_avals, in_paths, out_avals, out_paths)
        with named_scope(name) if name is not None else contextlib.nullcontext():
            outs = pallas_call_p.bind(
                *dynamic_sizes,
                *leaves,
                jaxpr=jaxpr,
                grid_mapping=mapping,
                mesh=None,
                input_output_aliases=tuple(input_output_aliases.items()),
                debug=debug,
                interpret=interpret,
                compiler_params=compiler_params,
                cost_estimate=cost_estimate,
                out_avals=out_avals,
                metadata=None if metadata is None else Metadata(metadata),
                name=name,
            )
        return tree_unflatten(out_tree, outs)

    # A watched kernel runs in Python, unless it is inside of a jitted function.
    if isinstance(interpret, InterpretParams):
        return wrapped
    return jit(wrapped, inline=True)


class Metadata(dict):
    """A dict of words that can be hashed, as parameters of equations must be."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return f"FrozenDict({dict(self)})"


def _out_aval(shape: Any) -> language.ShapedArray:
    if isinstance(shape, MemoryRef):
        return shape.get_array_aval()
    if not (hasattr(shape, "shape") and hasattr(shape, "dtype")):
        raise ValueError(
            f"Invalid out_shape type: {type(shape)}. The out_shape of a pallas_call is "
            "a tree of jax.ShapeDtypeStruct(shape, dtype)."
        )
    return language.ShapedArray(shape.shape, np.dtype(shape.dtype))


def _trace_kernel(
    kernel: Callable, kernel_args: tuple, mapping: GridMapping, name: str | None
) -> language.Jaxpr:
    avals, tree = tree_flatten(kernel_args)
    args, kwargs = kernel_args
    info = signatures.lazy_debug_info(
        kernel, tree_structure(args), "pallas_call kernel"
    )
    if name is not None:
        info.func_name = name
    what = f"The kernel function in the pallas_call {info.func_src_info}"
    called = argument_checks.refs_of(what, mapping)

    def flat(*refs: Any) -> list[Any]:
        args, kwargs = tree_unflatten(tree, refs)
        with argument_checks.explained(kernel, args, kwargs, called):
            result = kernel(*args, **kwargs)
        if result is not None:
            raise ValueError(
                f"{what} should return None. It returns a PyTree: "
                f"{tree_structure(result)}. Write results to the output's ref: "
                "o_ref[...] = x."
            )
        return []

    with mapping.trace_env():
        jaxpr, consts = partial_eval.trace_to_jaxpr(flat, avals, info)
        jaxpr, _ = partial_eval.dce_jaxpr(jaxpr, (), instantiate=True)
    if consts:
        shown = ", ".join(v.aval.str_short(short_dtypes=True) for v in jaxpr.constvars)
        raise ValueError(f"{what} captures constants [{shown}]. Pass them as inputs.")
    return jaxpr


def _check_aliases(
    aliases: Mapping[int, int],
    in_avals: Sequence[Any],
    in_paths: Sequence[str],
    out_avals: Sequence[Any],
    out_paths: Sequence[str],
) -> None:
    for given, out in aliases.items():
        start, one, other = aliased(given, out, in_avals, out_avals)
        if one.shape != other.shape or one.dtype != other.dtype:
            raise ValueError(
                f"{start} referring to input{in_paths[given]} with abstract value "
                f"{one} and to output{out_paths[out]} with a different abstract value "
                f"{other}."
            )
    if len(set(aliases.values())) < len(aliases):
        raise ValueError(
            f"input_output_aliases gives one output to several inputs: {dict(aliases)}."
        )
