"""A grid and its blocks, checked and traced: what the equation `pallas_call` carries.

A `GridMapping` has a `BlockMapping` for each input and each output, in which the index
map is a jaxpr. It also says how everything is called: the equation takes

    *computed sizes of the grid, *prefetched scalars, *inputs

the kernel `*scalars, *inputs, *outputs, *scratch`, all refs, and an index map
`*indices of the program, *scalars`.

In JAX: `pallas/core.py`, `GridMapping`, `BlockMapping`, `get_grid_mapping`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core import partial_eval, signatures
from minijax.core.language import ClosedJaxpr, Literal, ShapedArray, valid_jaxtype
from minijax.core.trees import (
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_structure,
    tree_unflatten,
)
from minijax.kernels.grid_context import (
    Place,
    asks_for_place,
    dynamic_grid_dim,
    tracing_on,
)
from minijax.kernels.memory_spaces import MemorySpace
from minijax.kernels.specs import (
    BlockDim,
    Blocked,
    BlockSpec,
    BoundedSlice,
    Buffered,
    Element,
    GridSpec,
    Squeezed,
    block_size,
    canonical_dim,
    no_block_spec,
)
from minijax.primitives.index.indexers import Slice
from minijax.values.named_axes import extend_axis_env
from minijax.values.ref_avals import AbstractRef

index_aval = ShapedArray((), np.dtype(np.int32))


@dataclass(frozen=True)
class BlockMapping:
    """How an array is cut into blocks; `origin` names it in messages (`args[0]`)."""

    block_shape: tuple[BlockDim, ...]
    block_aval: AbstractRef
    index_map_jaxpr: ClosedJaxpr
    index_map_out_tree: Any
    array_aval: ShapedArray
    origin: str
    pipeline_mode: Buffered | None = None

    def __repr__(self) -> str:
        return f"BlockMapping(block_shape={self.block_shape})"

    replace = dataclasses.replace

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many elements of each axis are in a block; 1 for a squeezed axis."""
        return tuple(map(block_size, self.block_shape))

    @functools.cached_property
    def squeezed_axes(self) -> tuple[int, ...]:
        """The axes that the kernel does not see."""
        shape = self.block_shape
        return tuple(i for i, dim in enumerate(shape) if isinstance(dim, Squeezed))

    def first_elements(self, chosen: Sequence[Any]) -> list[Any]:
        """Where the block that the index map chose begins, in the padded array.

        Raises NotImplementedError for dimensions that only a TPU's pipeline knows.
        """
        starts = []
        for index, dim in zip(chosen, self.block_shape):
            if not isinstance(dim, (Blocked, Element, Squeezed)):
                raise NotImplementedError(
                    f"a block dimension {dim} (of {self.origin}) belongs to pipelines "
                    "on a TPU; here use pl.Blocked, pl.Element or None."
                )
            size = dim.block_size if isinstance(dim, Blocked) else 1
            starts.append(index * size)
        return starts

    @functools.cached_property
    def arguments_read(self) -> list[int]:
        """The arguments on which the index map depends: axes of the grid, scalars."""
        jaxpr = self.index_map_jaxpr.jaxpr
        if asks_for_place(jaxpr):
            return list(range(len(jaxpr.invars)))
        needed = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
        for eqn in reversed(jaxpr.eqns):
            if eqn.effects or any(var in needed for var in eqn.outvars):
                needed.update(x for x in eqn.invars if not isinstance(x, Literal))
        return [i for i, var in enumerate(jaxpr.invars) if var in needed]


@dataclass(frozen=True)
class GridMapping:
    """A grid and its blocks, as the equation carries them."""

    grid: tuple[Any, ...]
    grid_names: tuple | None
    block_mappings: tuple[BlockMapping, ...]
    index_map_tree: Any
    index_map_avals: tuple[Any, ...]
    vmapped_dims: tuple[int, ...]
    scratch_avals: tuple[AbstractRef, ...]
    num_index_operands: int
    num_inputs: int
    num_outputs: int

    def __repr__(self) -> str:
        return f"GridMapping(grid={self.grid}, block_mappings={self.block_mappings})"

    replace = dataclasses.replace

    @property
    def num_dynamic_grid_bounds(self) -> int:
        """How many sizes of the grid are computed: operands of the equation."""
        return sum(size is dynamic_grid_dim for size in self.grid)

    @property
    def input_mappings(self) -> tuple[BlockMapping, ...]:
        return self.block_mappings[: self.num_inputs]

    @property
    def output_mappings(self) -> tuple[BlockMapping, ...]:
        return self.block_mappings[self.num_inputs :]

    @property
    def own_axes(self) -> list[int]:
        """The axes of the grid that the kernel sees: all but those of `vmap`."""
        return [a for a in range(len(self.grid)) if a not in self.vmapped_dims]

    def place(self, indices: Sequence[Any], grid: Sequence[Any]) -> Place:
        """The place that the kernel sees, of a program in a grid of these sizes."""
        seen = self.own_axes
        names = [self.grid_names[a] for a in seen] if self.grid_names else ()
        return Place([indices[a] for a in seen], [grid[a] for a in seen], names)

    @contextlib.contextmanager
    def trace_env(self) -> Iterator[None]:
        """Context in which the kernel is traced: its grid, and the names of its axes"""
        own = self.place(self.grid, self.grid)
        named = [(n, size) for n, size in zip(own.names, own.sizes) if n is not None]
        with tracing_on(self.grid, self.vmapped_dims), extend_axis_env(named):
            yield


# ----------------------------------------------------------------------------------
# From what users say
# ----------------------------------------------------------------------------------


def check_same_tree(name: str, specs: Any, other_name: str, other_tree: Any) -> list:
    """The leaves of a tree of specs; ValueError when the trees differ."""
    leaves, tree = tree_flatten(specs)
    if tree == other_tree:
        return leaves
    raise ValueError(
        f"Pytree for `{name}` and `{other_name}` do not match: `{name}` has "
        f"{len(leaves)} specs in {tree}, but `{other_name}` has "
        f"{other_tree.num_leaves} arrays in {other_tree}. Give one BlockSpec for each "
        "array, in the same tuples, lists and dicts."
    )


def grid_mapping_of(
    spec: GridSpec,
    in_avals: Sequence[Any],
    in_tree: Any,
    in_paths: Sequence[Any],
    out_avals: Sequence[ShapedArray],
    out_tree: Any,
    out_paths: Sequence[Any],
) -> tuple[list[Any], list[Any], GridMapping]:
    """(types of the kernel's arguments, those of its scratch, the mapping).

    The types are in trees, as the kernel takes them.

    Raises ValueError, naming the argument, for what does not fit.
    """
    grid = tuple(d if isinstance(d, int) else dynamic_grid_dim for d in spec.grid)
    index_avals: list[Any] = [index_aval] * len(grid)
    prefetched = spec.num_scalar_prefetch
    args = tree_unflatten(in_tree, in_avals)
    if prefetched > len(args):
        raise ValueError(
            f"num_scalar_prefetch is {prefetched}, but the kernel was called with "
            f"{len(args)} arguments: the first ones are the prefetched scalars."
        )
    scalars, arrays = args[:prefetched], args[prefetched:]
    space = getattr(spec, "scalar_memory_space", None)
    scalar_leaves, scalar_tree = tree_flatten(scalars)
    scalar_refs = [AbstractRef(aval, space) for aval in scalar_leaves]
    scalar_args = tree_unflatten(scalar_tree, scalar_refs)
    map_args: tuple = ((*index_avals, *scalar_args), {})
    map_avals, map_tree = tree_flatten(map_args)
    array_avals, array_tree = tree_flatten(arrays)

    def mappings(name, specs, other, avals, tree, paths) -> list[BlockMapping]:
        if specs is no_block_spec:
            leaves = [no_block_spec] * len(avals)
        else:
            leaves = check_same_tree(name, specs, other, tree)
        origins = [f"{'args' if name == 'in_specs' else 'outputs'}{p}" for p in paths]
        return [
            _block_mapping(leaf, origin, aval, grid, map_avals, map_tree)
            for leaf, origin, aval in zip(leaves, origins, avals, strict=True)
        ]

    paths = in_paths[len(scalar_leaves) :]
    ins = mappings("in_specs", spec.in_specs, "inputs", array_avals, array_tree, paths)
    outs = mappings(
        "out_specs", spec.out_specs, "out_shape", out_avals, out_tree, out_paths
    )
    scratch_leaves, scratch_tree = tree_flatten(spec.scratch_shapes)
    scratch_avals = [_scratch_aval(shape) for shape in scratch_leaves]
    mapping = GridMapping(
        grid,
        spec.grid_names,
        (*ins, *outs),
        map_tree,
        tuple(map_avals),
        (),
        tuple(scratch_avals),
        len(scalar_leaves),
        len(ins),
        len(outs),
    )
    in_refs = tree_unflatten(array_tree, [m.block_aval for m in ins])
    out_refs = tree_unflatten(out_tree, [m.block_aval for m in outs])
    if not isinstance(out_refs, (tuple, list)):
        out_refs = (out_refs,)
    scratch = tree_unflatten(scratch_tree, scratch_avals)
    return [*scalar_args, *in_refs, *out_refs], scratch, mapping


def _scratch_aval(shape: Any) -> AbstractRef:
    if not hasattr(shape, "get_ref_aval"):
        raise ValueError(
            "scratch_shapes must hold memory such as pltpu.VMEM((8, 128), "
            f"jnp.float32), but one entry is {shape!r}."
        )
    return shape.get_ref_aval()


def _block_mapping(
    spec: Any,
    origin: str,
    array_aval: ShapedArray,
    grid: tuple,
    map_avals: Sequence[Any],
    map_tree: Any,
) -> BlockMapping:
    if spec is no_block_spec:
        spec = BlockSpec()
    if not isinstance(spec, BlockSpec):
        raise ValueError(f"the spec of {origin} must be a pl.BlockSpec, got {spec!r}.")
    shape = array_aval.shape if spec.block_shape is None else spec.block_shape
    block_shape = tuple(map(canonical_dim, shape))
    if len(block_shape) != len(array_aval.shape):
        raise ValueError(
            f"Block shape for {origin} (= {block_shape}) must have the same number of "
            f"dimensions as the array shape {array_aval.shape}."
        )
    space = MemorySpace.DEFAULT if spec.memory_space is None else spec.memory_space
    seen = tuple(block_size(d) for d in block_shape if not isinstance(d, Squeezed))
    block_aval = AbstractRef(array_aval.update(shape=seen), space)
    index_map = _zeros(len(block_shape)) if spec.index_map is None else spec.index_map
    closed, out_tree = _trace_index_map(
        index_map, origin, block_shape, grid, map_avals, map_tree
    )
    return BlockMapping(
        block_shape,
        block_aval,
        closed,
        out_tree,
        array_aval,
        origin,
        spec.pipeline_mode,
    )


def is_misfit(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Any = None
) -> bool:
    """Whether a function does not take so many arguments, or not of these names."""
    try:
        inspect.signature(function).bind(*args, **(kwargs or {}))
    except TypeError:
        return True
    except ValueError:
        return False  # a function written in C, whose signature is not known
    return False


def _zeros(rank: int) -> Callable[..., tuple[int, ...]]:
    return lambda *indices: (0,) * rank


def _trace_index_map(
    index_map: Callable,
    origin: str,
    block_shape: tuple[BlockDim, ...],
    grid: tuple,
    map_avals: Sequence[Any],
    map_tree: Any,
) -> tuple[ClosedJaxpr, Any]:
    info = signatures.lazy_debug_info(
        index_map, _argument_tree(map_tree), "pallas_call index_map"
    )
    what = f"Index map function {info.func_src_info} for {origin} must"
    trees = []

    def flat(*leaves: Any) -> list[Any]:
        args, _ = tree_unflatten(map_tree, leaves)
        try:
            indices = index_map(*args)
        except TypeError as error:
            if not is_misfit(index_map, args):
                raise
            scalars = len(args) - len(grid)
            more = ", then each prefetched scalar" if scalars else ""
            raise TypeError(
                f"{error}. {what} take {len(args)} arguments: an index for each axis "
                f"of the grid ({len(grid)}){more}."
            ) from None
        if isinstance(indices, list):
            indices = tuple(indices)
        if not isinstance(indices, tuple):
            indices = (indices,)
        if len(indices) != len(block_shape):
            raise ValueError(
                f"{what} return {len(block_shape)} values to match "
                f"block_shape={block_shape}. Currently returning {len(indices)} values."
            )
        for position, (index, dim) in enumerate(zip(indices, block_shape)):
            bounded = isinstance(dim, BoundedSlice)
            if isinstance(index, Slice) != bounded or index is None:
                raise ValueError(
                    f"{what} return {'a pl.ds' if bounded else 'an integer scalar'} at "
                    f"position {position}, for the block dimension {dim}, but it "
                    f"returned {index!r}."
                )
            if not bounded and not valid_jaxtype(index):
                raise TypeError(
                    f"{what} return integer scalars, but at position {position} it "
                    f"returned {index!r}."
                )
        outputs, tree = tree_flatten(indices)
        trees.append(tree)
        return outputs

    with tracing_on(grid, ()):
        jaxpr, consts = partial_eval.trace_to_jaxpr(flat, map_avals, info)
    for position, var in enumerate(jaxpr.outvars):
        aval: Any = var.aval
        whole = isinstance(aval, ShapedArray) and aval.dtype in (np.int32, np.int64)
        if not whole or aval.shape:
            raise ValueError(
                f"{what} return integer scalars. Output[{position}] has type {aval}."
            )
    if consts:
        shown = ", ".join(v.aval.str_short(short_dtypes=True) for v in jaxpr.constvars)
        raise ValueError(
            f"{what} not capture constants: [{shown}]. Pass them as prefetched scalars "
            "(pltpu.PrefetchScalarGridSpec), or use Python integers."
        )
    return ClosedJaxpr(jaxpr, ()), trees[0]


def _argument_tree(map_tree: Any) -> Any:
    """The tree of an index map's positional arguments."""
    args, _ = tree_unflatten(map_tree, range(map_tree.num_leaves))
    return tree_structure(args)


def paths_of(tree: Any) -> tuple[list[str], list[Any], Any]:
    """(paths of the leaves as text, leaves, tree)."""
    pairs, structure = tree_flatten_with_path(tree)
    return [keystr(path) for path, _ in pairs], [leaf for _, leaf in pairs], structure
