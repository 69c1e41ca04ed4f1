"""The teaching interpreter: a kernel in Python and NumPy, one program at a time.

Every program of the grid runs the kernel's equations one by one. Refs are blocks of
watched memory (`watched_memory.py`): an index outside of a ref raises IndexError, and
what else is wrong (races, reads of memory that was not written, outputs that were not
written) is printed and kept in `findings()`.

Equations without refs are computed by the meanings of their primitives in NumPy, or by
XLA where a primitive has none.

In JAX: `pallas/mosaic/interpret/interpret_pallas_call.py`.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import language, source_info, trees
from minijax.kernels import copies, grid_context, masked_access
from minijax.kernels.grid_mappings import BlockMapping, GridMapping
from minijax.kernels.interpret_params import InterpretParams
from minijax.kernels.scoped_memory import run_scoped_p
from minijax.kernels.specs import Element
from minijax.kernels.watched_memory import (
    Block,
    Finding,
    Memory,
    Schedule,
    Watch,
    block_at,
    whole,
)
from minijax.primitives.parallel.variation import axis_index_p
from minijax.primitives.refs import references
from minijax.programs.control_flow import conditionals, scan_primitive, while_loops
from minijax.values.inner_programs import called_program, in_python

_last: list[Finding] = []


def findings() -> list[Finding]:
    """What was found in the kernel that was interpreted last."""
    return list(_last)


def reset_tpu_interpret_mode_state() -> None:
    """Forget what was found. In JAX: `pltpu.reset_tpu_interpret_mode_state`."""
    _last.clear()


# ----------------------------------------------------------------------------------
# The grid
# ----------------------------------------------------------------------------------


def interpret_grid(
    *args: Any,
    jaxpr: language.Jaxpr,
    grid_mapping: GridMapping,
    input_output_aliases: tuple[tuple[int, int], ...],
    interpret: InterpretParams,
    compiler_params: Any = None,
    watch_with: Callable[[Schedule, InterpretParams], Watch] = Watch,
    **_: Any,
) -> list[np.ndarray]:
    """Run a `pallas_call` on arrays: its outputs.

    `watch_with` makes what sees each program begin and each access.

    Raises IndexError for an access outside of a ref.
    """
    mapping = grid_mapping
    arrays = [np.asarray(x) for x in args]
    computed = iter(arrays[: mapping.num_dynamic_grid_bounds])
    operands = arrays[mapping.num_dynamic_grid_bounds :]
    grid = [
        int(next(computed)) if size is grid_context.dynamic_grid_dim else size
        for size in mapping.grid
    ]
    schedule = schedule_of(grid, mapping, compiler_params, interpret.random_seed)
    watch = watch_with(schedule, interpret)
    names = names_of(jaxpr, mapping)
    memories = [
        Memory(name, x, written=True, private=False) for name, x in zip(names, operands)
    ]
    for number, block in enumerate(mapping.output_mappings):
        memory = _empty(watch, names[len(operands) + number], block.array_aval, False)
        memories.append(memory)
    for given, out in input_output_aliases:
        source, target = memories[given], memories[len(operands) + out]
        target.values[:] = source.values
        target.written[:] = True
        target.journal = source.journal
    blocked = len(memories)
    for number, aval in enumerate(mapping.scratch_avals):
        memories.append(_empty(watch, names[blocked + number], aval.inner_aval, True))
    run = Run(watch, grid_context.Place((), ()))
    _last.clear()
    try:
        with np.errstate(all="ignore"):
            for number, indices in enumerate(schedule.places):
                watch.program = number
                if interpret.grid_point_recorder is not None:
                    coordinates = tuple(map(np.int32, indices))
                    interpret.grid_point_recorder(coordinates, np.int32(0))
                _run_program(run, jaxpr, mapping, grid, indices, memories)
        where = source_info.format_line(jaxpr.eqns[0].source_info) if jaxpr.eqns else ""
        for memory in memories[len(operands) : blocked]:
            watch.missing_writes(memory, where)
    finally:
        _last.extend(watch.findings)
        for finding in watch.findings:
            watch.report(finding)
    return [memory.array for memory in memories[len(operands) : blocked]]


def names_of(jaxpr: language.Jaxpr, mapping: GridMapping) -> list[str]:
    """What messages call each ref: the kernel's argument, if the user wrote it."""
    names = list(jaxpr.debug_info.arg_names)
    missing = len(jaxpr.invars) - len(names)
    if missing not in (0, len(mapping.scratch_avals)):  # a kernel made by jvp
        return [f"ref {number}" for number in range(len(jaxpr.invars))]
    return [*names, *(f"scratch {number}" for number in range(missing))]


def _empty(watch: Watch, name: str, aval: Any, private: bool) -> Memory:
    filler = np.full(aval.shape, watch.empty(aval.dtype), aval.dtype)
    written = watch.params.uninitialized_memory == "zero" and private
    return Memory(name, filler, written, private)


def schedule_of(
    grid: Sequence[int], mapping: GridMapping, compiler_params: Any, seed: int | None
) -> Schedule:
    """The programs in the order in which they run; which of them may run together.

    `dimension_semantics` says which axes are sequential. Without it, or on a GPU, no
    order is fixed; axes that vmap added never have one.
    """
    semantics = getattr(compiler_params, "dimension_semantics", None)
    own = mapping.own_axes
    free = set(range(len(grid)))
    if semantics is not None:
        if len(semantics) != len(own):
            raise ValueError(
                f"dimension_semantics has {len(semantics)} entries for a grid of "
                f"{len(own)} axes: give one for each axis."
            )
        words = [getattr(word, "value", word) for word in semantics]
        free -= {axis for axis, word in zip(own, words) if word == "arbitrary"}
    places = list(itertools.product(*map(range, grid)))
    if seed is not None:
        draw = np.random.default_rng(seed)
        orders = [
            draw.permutation(size) if axis in free else np.arange(size)
            for axis, size in enumerate(grid)
        ]
        places = [
            tuple(int(order[i]) for order, i in zip(orders, place)) for place in places
        ]
    groups: dict[tuple, int] = {}
    numbers = [
        groups.setdefault(tuple(place[axis] for axis in sorted(free)), len(groups))
        for place in places
    ]
    declared = semantics is not None
    return Schedule(places, np.asarray(numbers, np.int64), own, declared)


def _run_program(
    run: Run,
    jaxpr: language.Jaxpr,
    mapping: GridMapping,
    grid: Sequence[int],
    indices: tuple[int, ...],
    memories: Sequence[Memory],
) -> None:
    run.place = mapping.place(indices, grid)
    scalars = [whole(memory) for memory in memories[: mapping.num_index_operands]]
    mappings = [None] * mapping.num_index_operands + list(mapping.block_mappings)
    blocks = [
        _block_of(run, memory, block, indices, scalars) if block else whole(memory)
        for memory, block in itertools.zip_longest(memories, mappings)
    ]
    run.watch.begin(blocks)
    run.run(language.ClosedJaxpr(jaxpr), blocks)


def starts_of(
    run: Run, mapping: BlockMapping, indices: Sequence[int], scalars: Sequence[Any]
) -> tuple[list[int], list[int]]:
    """What the index map gives for a program, and the block's first element.

    Raises NotImplementedError for dimensions that only a TPU's pipeline knows.
    """
    read: Sequence[int] = range(len(indices)) if scalars else mapping.arguments_read
    key = (id(mapping), *(indices[axis] for axis in read))
    if key not in run.chosen:
        given = [*map(np.int32, indices), *scalars]
        results = list(map(int, run.run(mapping.index_map_jaxpr, given)))
        starts = mapping.first_elements(results)
        for axis, dim in enumerate(mapping.block_shape):
            if isinstance(dim, Element):
                starts[axis] -= dim.padding[0]
        run.chosen[key] = results, starts
    return run.chosen[key]


def _block_of(run: Run, memory, mapping: BlockMapping, indices, scalars) -> Block:
    """The block that the index map chooses for a program."""
    results, starts = starts_of(run, mapping, indices, scalars)
    sizes = mapping.sizes, mapping.squeezed_axes
    block = run.block_at(memory, tuple(starts), *sizes)
    if not block.inside and block.addresses.size and (block.addresses < 0).all():
        raise IndexError(
            f"out of bounds: the index map of {mapping.origin} gives program {indices} "
            f"the block {tuple(results)}, which begins at element {tuple(starts)} and "
            f"lies outside of the array of shape {mapping.array_aval.shape}."
        )
    return block


# ----------------------------------------------------------------------------------
# A program
# ----------------------------------------------------------------------------------


class Run:
    """Runs equations on NumPy arrays and blocks."""

    def __init__(self, watch: Watch, place: grid_context.Place):
        self.watch = watch
        self.place = place
        # What index maps returned, by the arguments they use; and the last blocks.
        self.chosen: dict[tuple, tuple[list[int], list[int]]] = {}
        self.block_at = functools.lru_cache(512)(block_at)

    def run(self, closed: language.ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        jaxpr = closed.jaxpr
        env: dict[language.Var, Any] = dict(zip(jaxpr.constvars, closed.consts))
        env.update(zip(jaxpr.invars, args, strict=True))
        for eqn, used in _equations(jaxpr):
            inputs = [
                v.val if type(v) is language.Literal else env[v] for v in eqn.invars
            ]
            outputs = self.equation(eqn, inputs, used)
            env.update(zip(eqn.outvars, outputs))
        return [v.val if type(v) is language.Literal else env[v] for v in jaxpr.outvars]

    def equation(
        self, eqn: language.JaxprEqn, inputs: list[Any], used: list[bool]
    ) -> list:
        rule = _rules.get(eqn.primitive)
        if rule is not None:
            return rule(self, eqn, inputs, used)
        takes_refs = any(isinstance(x, Block) for x in inputs)
        if takes_refs or eqn.primitive.meaning is None:
            program = called_program(eqn.params)
            inner = language.jaxprs_in_params(eqn.params)
            has_rules = any(e.primitive in _rules for p in inner for e in p.eqns)
            if takes_refs or has_rules:
                if program is not None:
                    return self.run(program, inputs)
                where = (
                    " on refs. Read the ref before: x_ref[...]"
                    if takes_refs
                    else ". Compute it outside of the kernel"
                )
                raise NotImplementedError(
                    f"the interpreter has no rule for '{eqn.primitive}'{where}."
                )
        return _compute(eqn, inputs)


@language.weakref_lru_cache
def _equations(jaxpr: language.Jaxpr) -> list[tuple[language.JaxprEqn, list[bool]]]:
    """Each equation, and which of its outputs are used after they are bound."""
    atoms = itertools.chain(jaxpr.outvars, *(eqn.invars for eqn in jaxpr.eqns))
    read = {atom for atom in atoms if type(atom) is not language.Literal}
    return [(eqn, [var in read for var in eqn.outvars]) for eqn in jaxpr.eqns]


def _compute(eqn: language.JaxprEqn, inputs: list[Any]) -> list[Any]:
    """An equation without refs, by its meaning in NumPy or by XLA."""
    primitive, several = eqn.primitive, eqn.primitive.multiple_results
    avals: list[Any] = [v.aval for v in eqn.invars]
    arrays = [np.asarray(x, aval.dtype) for x, aval in zip(inputs, avals)]
    if primitive.meaning is not None:
        outputs = primitive.meaning(*arrays, **eqn.params)
    else:
        outputs = primitive.rebind(arrays, eqn.params)
    if not several:
        outputs = [outputs]
    return [
        np.asarray(x).astype(v.aval.dtype, copy=False)  # type: ignore[attr-defined]
        for x, v in zip(outputs, eqn.outvars, strict=True)
    ]


@functools.lru_cache(maxsize=256)
def _line(source: source_info.SourceInfo) -> str:
    """The user's line in a message: `kernel.py:12: o = x`, or `cell:12: o = x`."""
    frame = source_info.user_frame(source)
    if frame is None:
        return "an unknown line"
    folder, file = os.path.split(frame.file_name)
    place = f"{'cell' if 'ipykernel' in folder else file}:{frame.start_line}"
    return f"{place}: {source_info.source_text(frame)}".removesuffix(": ")


# ---- rules: (run, eqn, inputs, which outputs are used) -> outputs ----------------


def _program_id(run: Run, eqn, inputs, used) -> list[Any]:
    return [np.int32(run.place.index_of(eqn))]


def _num_programs(run: Run, eqn, inputs, used) -> list[Any]:
    return [np.int32(run.place.sizes[eqn.params["axis"]])]


def _get(run: Run, eqn, inputs, used) -> list[Any]:
    block, *leaves = inputs
    addresses = block.at(trees.tree_unflatten(eqn.params["tree"], leaves))
    return [run.watch.read(block, addresses, _line(eqn.source_info))]


def _swap(run: Run, eqn, inputs, used) -> list[Any]:
    block, value, *leaves = inputs
    addresses = block.at(trees.tree_unflatten(eqn.params["tree"], leaves))
    return _swapped(run, eqn, used, block, addresses, value)


def _swapped(run: Run, eqn, used, block, addresses, value, mask=None) -> list[Any]:
    line = _line(eqn.source_info)
    old = run.watch.read(block, addresses, line, mask) if used[0] else None
    run.watch.write(block, addresses, value, line, mask)
    return [old]


def _addupdate(run: Run, eqn, inputs, used) -> list[Any]:
    block, value, *leaves = inputs
    addresses = block.at(trees.tree_unflatten(eqn.params["tree"], leaves))
    line = _line(eqn.source_info)
    for place, address in np.ndenumerate(addresses):
        one = np.asarray(address)
        old = run.watch.read(block, one, line)
        run.watch.write(block, one, old + np.asarray(value)[place], line)
    return []


def _masked_load(run: Run, eqn, inputs, used) -> list[Any]:
    block, indexers, mask, other = trees.tree_unflatten(eqn.params["args_tree"], inputs)
    addresses = block.at(indexers)
    values = run.watch.read(block, addresses, _line(eqn.source_info), mask)
    if mask is not None and other is not None:
        values = np.where(mask, values, np.asarray(other, values.dtype))
    return [values]


def _masked_swap(run: Run, eqn, inputs, used) -> list[Any]:
    block, indexers, value, mask = trees.tree_unflatten(eqn.params["args_tree"], inputs)
    return _swapped(run, eqn, used, block, block.at(indexers), value, mask)


_UPDATES: dict[str, Callable] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda old, new: new,
}


def _atomic(run: Run, eqn, inputs, used) -> list[Any]:
    """Atomic updates do not race: they leave the journal as it was."""
    block, indexers, value, mask = trees.tree_unflatten(eqn.params["args_tree"], inputs)
    addresses = block.at(indexers)
    memory, journal = block.memory, block.memory.journal
    update = _UPDATES[eqn.params["atomic_type"].value]
    block.memory.journal = type(journal)(memory.values.size)
    try:
        old = run.watch.read(block, addresses, _line(eqn.source_info), mask)
        new = update(old, np.asarray(value, old.dtype))
        run.watch.write(block, addresses, new, _line(eqn.source_info), mask)
    finally:
        block.memory.journal = journal
    return [old]


def _dma_start(run: Run, eqn, inputs, used) -> list[Any]:
    source, target, _, *leaves = inputs
    source_index, target_index, _ = trees.tree_unflatten(eqn.params["tree"], leaves)
    line = _line(eqn.source_info)
    block = run.watch.read(source, source.at(source_index), line)
    place = target.at(target_index)
    if eqn.params["add"]:
        block = block + run.watch.read(target, place, line)
    run.watch.write(target, place, block, line)
    return []


def _dma_wait(run: Run, eqn, inputs, used) -> list[Any]:
    return []


def _run_scoped(run: Run, eqn, inputs, used) -> list[Any]:
    jaxpr = eqn.params["jaxpr"]
    names = jaxpr.debug_info.arg_names
    own = []
    for number, var in enumerate(jaxpr.invars):
        name = names[number] if number < len(names) else "ref"
        own.append(whole(_empty(run.watch, name, var.aval.inner_aval, True)))
    opened = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    return run.run(language.ClosedJaxpr(opened), [*inputs, *own])


def _in_python(run: Run, eqn, inputs, used) -> list[Any]:
    return in_python[eqn.primitive](run.run, inputs, eqn.params)


def _scan(run: Run, eqn, inputs, used) -> list[Any]:
    loop = scan_primitive.Scan(**eqn.params)
    consts, carry, xs = loop.operands(inputs)
    steps = range(loop.length)
    rows: list[Any] = [None] * loop.length
    for i in reversed(steps) if loop.reverse else steps:
        outputs = run.run(loop.jaxpr, [*consts, *carry, *(x[i] for x in xs)])
        carry, rows[i] = loop.outputs(outputs)
    stacked = [
        np.stack([np.asarray(row[k]) for row in rows])
        if rows
        else np.zeros(aval.shape, aval.dtype)  # type: ignore[attr-defined]
        for k, aval in enumerate(loop.out_avals[loop.num_carry :])
    ]
    return [*carry, *stacked]


_rules: dict[language.Primitive, Callable] = {
    grid_context.program_id_p: _program_id,
    axis_index_p: _program_id,
    grid_context.num_programs_p: _num_programs,
    references.get_p: _get,
    references.swap_p: _swap,
    references.addupdate_p: _addupdate,
    masked_access.load_p: _masked_load,
    masked_access.swap_p: _masked_swap,
    masked_access.atomic_rmw_p: _atomic,
    run_scoped_p: _run_scoped,
    copies.dma_start_p: _dma_start,
    copies.dma_wait_p: _dma_wait,
    conditionals.cond_p: _in_python,
    while_loops.while_p: _in_python,
    scan_primitive.scan_p: _scan,
}
