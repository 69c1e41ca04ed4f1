"""`pallas_call` on a GPU: a call of the kernel that Triton compiles.

A program of the grid is a block of threads. Its place comes from the hardware; from it
the index maps are computed, and from these the addresses: nothing is copied, the kernel
reads and writes the arrays themselves.

In JAX: `pallas/triton/pallas_call_registration.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minijax.backend import triton
from minijax.backend.dialects import dialect
from minijax.core import hlo, lowering
from minijax.core.language import Jaxpr, Literal, jaxprs_in_params
from minijax.core.lowering import LoweringRuleContext, tensor_type
from minijax.kernels import kernel_arithmetic, kernel_control_flow, masked_access
from minijax.kernels.grid_context import Place, dynamic_grid_dim
from minijax.kernels.grid_mappings import BlockMapping, GridMapping
from minijax.kernels.kernel_rules import Kernel, lower_eqns, verify
from minijax.kernels.memory_spaces import MemorySpace
from minijax.kernels.specs import Blocked, Element, Squeezed
from minijax.kernels.triton import arrays, elementwise, memory
from minijax.kernels.triton.kernel_context import gpu, i32
from minijax.kernels.triton.memory import Memory, memory_element
from minijax.kernels.triton_params import CompilerParams
from minijax.primitives.refs.references import get_p, swap_p

# Files with rules, which enter them in the table.
families = (kernel_arithmetic, kernel_control_flow, arrays, elementwise, memory)

# The programs that a GPU starts along y and z.
_MOST = 65535


def lower(
    ctx: LoweringRuleContext,
    *operands: Any,
    jaxpr: Jaxpr,
    grid_mapping: GridMapping,
    input_output_aliases: Sequence[tuple[int, int]],
    debug: bool,
    compiler_params: Any,
    name: str | None,
    **_: Any,
) -> list[Any]:
    """The rule of `pallas_call` for GPUs.

    Raises:
      NotImplementedError: for what cannot be lowered; names operation and line.
      TypeError: for parameters of another machine's compiler.
    """
    params = params_of(compiler_params)
    name = lowering.sanitize_name(name or jaxpr.debug_info.func_name)
    refuse(jaxpr, grid_mapping, name)
    with triton.module(name) as made:
        grid = write_kernel(jaxpr, grid_mapping, name)
        verify(made, name, "a GPU", "Triton", debug)
        body = hlo.module_to_bytes(made)
    return triton.call(
        body,
        name,
        grid,
        params.num_warps or 4,
        params.num_stages or 3,
        operands,
        [tensor_type(aval) for aval in ctx.avals_out],
        dict(input_output_aliases),
    )


def params_of(given: Any) -> CompilerParams:
    """The parameters for Triton. TypeError for those of another compiler."""
    if given is None:
        return CompilerParams()
    if isinstance(given, CompilerParams):
        return given
    where = f"{type(given).__module__}.{type(given).__name__}"
    raise TypeError(
        f"compiler_params={given!r} ({where}) is not for Triton, by which minijax "
        "compiles kernels for GPUs: give pltriton.CompilerParams(num_warps=..., "
        "num_stages=...), or none. minijax does not compile by Mosaic GPU."
    )


def refuse(jaxpr: Jaxpr, mapping: GridMapping, name: str) -> None:
    """NotImplementedError for what a kernel of Triton's cannot have."""
    refused = f"the kernel {name!r} cannot be compiled for a GPU: "
    if any(size is dynamic_grid_dim for size in mapping.grid):
        raise NotImplementedError(
            refused + "sizes of its grid are computed. Give the grid integers, and "
            "guard with pl.when."
        )
    if 0 in mapping.grid:
        raise NotImplementedError(
            refused + f"its grid {mapping.grid} has no programs. Give one."
        )
    if mapping.num_index_operands:
        raise NotImplementedError(
            refused + "it has prefetched scalars, which a TPU has. Pass them as inputs "
            "and read them in the kernel."
        )
    if mapping.scratch_avals:
        raise NotImplementedError(
            refused + "it has scratch memory. Triton places values itself: carry them "
            "through a `fori_loop`."
        )
    for var, block in zip(jaxpr.invars, mapping.block_mappings):
        space = getattr(var.aval, "memory_space", None)
        if space not in (None, MemorySpace.DEFAULT, MemorySpace.ANY):
            raise NotImplementedError(
                f"{refused}{block.origin} is in memory space {space!r}; a GPU's kernel "
                "reads its arrays where they are. Leave memory_space out."
            )
    for var, block in zip(jaxpr.invars[mapping.num_inputs :], mapping.output_mappings):
        index = block.index_map_jaxpr.jaxpr
        used = [*index.outvars, *(var for eqn in index.eqns for var in eqn.invars)]
        for axis, (place, size) in enumerate(zip(index.invars, mapping.grid)):
            if size > 1 and place not in used and _reads_whole(jaxpr, var):
                raise NotImplementedError(
                    f"{refused}all programs along axis "
                    f"{axis - len(mapping.vmapped_dims)} of its grid read and write "
                    f"the same block of {block.origin}, and a GPU runs them at once. "
                    "Loop over that axis in the kernel with `fori_loop`, or add with "
                    "`pltriton.atomic_add`."
                )


def _reads_whole(kernel: Jaxpr, ref: Any) -> bool:
    """Whether a kernel reads the reference at fixed places, before it writes there."""
    for eqn in kernel.eqns:
        if eqn.invars[:1] == [ref]:
            others = eqn.invars[1:]
            fixed = all(type(x) is Literal for x in others)
            if fixed and eqn.primitive in (get_p, masked_access.load_p):
                return True
            if eqn.primitive is swap_p and len(others) == 1:
                return False
        for inner in jaxprs_in_params(eqn.params):
            # Operands come last, behind the number of the branch.
            operands = eqn.invars[len(eqn.invars) - len(inner.invars) :]
            own = [x for x, outer in zip(inner.invars, operands) if outer is ref]
            if any(_reads_whole(inner, x) for x in own):
                return True
    return False


def write_kernel(jaxpr: Jaxpr, mapping: GridMapping, name: str) -> tuple[int, ...]:
    """Write the kernel into the current module; the grid along x, y and z.

    Raises NotImplementedError for what Triton, or this lowering, does not have.
    """
    pointers = [
        triton.pointer_type(memory_element(block.array_aval.dtype))
        for block in mapping.block_mappings
    ]
    function = triton.function(name, pointers)
    entry = function.body.blocks[0]
    sizes = [int(size) for size in mapping.grid]
    with hlo.ir.InsertionPoint(entry):
        launched, indices = _places(sizes, mapping.vmapped_dims)
        memories = [
            _memory(pointer, block, indices, name)
            for pointer, block in zip(entry.arguments, mapping.block_mappings)
        ]
        kernel = Kernel(gpu, name, mapping.place(indices, sizes))
        lower_eqns(kernel, jaxpr, memories)
        dialect("tt").return_([])
    return launched


def _places(
    sizes: list[int], vmapped: Sequence[int]
) -> tuple[tuple[int, ...], list[Any]]:
    """(programs along x, y, z; the program's index along each axis of the grid).

    The axes are x, y and z if they fit, those of `vmap` last, so that programs of one
    example run next to each other; otherwise x counts all programs.
    """
    tt = dialect("tt")
    axes = [tt.ProgramIDDim.X, tt.ProgramIDDim.Y, tt.ProgramIDDim.Z]
    order = sorted(range(len(sizes)), key=lambda axis: axis in vmapped)
    launched = [sizes[axis] for axis in order]
    if len(sizes) <= 3 and all(size <= _MOST for size in launched[1:]):
        found = {axis: tt.get_program_id(place) for axis, place in zip(order, axes)}
        indices = [found[axis] for axis in range(len(sizes))]
        return (*launched, *[1] * (3 - len(sizes))), indices
    arith = dialect("arith")
    rest = tt.get_program_id(axes[0])
    indices = []
    for size in reversed(sizes):
        indices.insert(0, arith.remui(rest, i32(size)))
        rest = arith.divui(rest, i32(size))
    return (math.prod(sizes), 1, 1), indices


def _memory(
    pointer: Any, block: BlockMapping, indices: Sequence[Any], name: str
) -> Memory:
    """A block of an array: where it begins is computed by the index map."""
    shape = block.array_aval.shape
    closed = block.index_map_jaxpr
    kernel = Kernel(gpu, f"{name} (index map of {block.origin})", Place(indices, ()))
    results = lower_eqns(kernel, closed.jaxpr, indices)
    starts: list[Any] = []
    checked = set()
    for axis, (dim, var, value, length) in enumerate(
        zip(block.block_shape, closed.jaxpr.outvars, results, shape, strict=True)
    ):
        if not isinstance(dim, (Blocked, Element, Squeezed)):
            raise NotImplementedError(
                f"the kernel {name!r} cannot be compiled for a GPU: {block.origin} has "
                f"the block dimension {dim}. Give an int, None or pl.Element."
            )
        size = block.sizes[axis]
        start = int(var.val) if type(var) is Literal else value
        if isinstance(dim, Blocked):
            start = memory.times(start, size)
        if isinstance(dim, Element):
            start = memory.plus(start, -dim.padding[0])
        inside = isinstance(start, int) and 0 <= start <= length - size
        if not inside and (isinstance(dim, Element) or length % size):
            checked.add(axis)
        starts.append(start)
    hidden = frozenset(block.squeezed_axes)
    return Memory(
        pointer, shape, block.sizes, tuple(starts), hidden, frozenset(checked)
    )
