"""Values that vary over mesh axes: `pvary`, `psum_invariant`, marks of collectives.

Inside `shard_map` the type of a value says over which mesh axes it varies from device
to device. `pvary` marks a value as varying over more axes, and moves no data;
`psum_invariant` adds up over axes, after which the value does not vary over them. The
two are each other's transposes.

In JAX: `lax/parallel.py`, `pvary_p`, `psum_invariant_p`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from minijax.core import errors
from minijax.core.language import Primitive, ShapedArray, get_aval, register
from minijax.core.rules import def_linear
from minijax.core.state import state
from minijax.primitives.parallel import manual_lowering
from minijax.support.settings import declare
from minijax.values.named_axes import NamedAxisEffect

# The mesh axes of the `shard_map` being traced whose variation is checked.
declare("varying_axes", ())

Names = tuple[Hashable, ...]


def varying(value: Any) -> frozenset:
    """The axes over which a value varies."""
    return getattr(get_aval(value), "vma", frozenset())


def in_mesh_order(axes: Iterable[Hashable]) -> Names:
    """Axes in the order of the mesh."""
    wanted = set(axes)
    return tuple(name for name in state.axis_env.axis_names() if name in wanted)


# ----------------------------------------------------------------------------------
# pvary and psum_invariant
# ----------------------------------------------------------------------------------

pvary_p = register(Primitive("pvary"))
pvary_p.meaning = lambda x, axes: x
pvary_p.cache_types = False


@pvary_p.def_abstract_eval
def _pvary_type(x: ShapedArray, *, axes: Names) -> ShapedArray:
    repeated = x.vma & set(axes)
    if repeated:
        raise errors.value_error(
            f"pvary: the value of type {x.str_short()} varies over "
            f"{sorted(map(str, repeated))} already. Leave these axes out."
        )
    return x.update(vma=x.vma | set(axes))


psum_invariant_p = register(Primitive("psum_invariant"))
psum_invariant_p.cache_types = False


@psum_invariant_p.def_effectful_abstract_eval
def _psum_invariant_type(x: ShapedArray, *, axes: Names) -> tuple:
    effects = frozenset(NamedAxisEffect(name) for name in axes)
    return x.update(vma=x.vma - set(axes)), effects


def_linear(pvary_p, lambda ct, x, axes: [psum_invariant_p.bind(ct, axes=axes)])
def_linear(psum_invariant_p, lambda ct, x, axes: [pvary_p.bind(ct, axes=axes)])


def _same_dim(primitive: Primitive) -> Callable:
    def batch(axis_data: Any, args: Any, dims: Any, **params: Any) -> tuple:
        return primitive.bind(args[0], **params), dims[0]

    return batch


pvary_p.def_batch(_same_dim(pvary_p))
psum_invariant_p.def_batch(_same_dim(psum_invariant_p))


psum_invariant_p.def_lowering(manual_lowering.psum_invariant)


@pvary_p.def_lowering
def _pvary_lowering(ctx: Any, x: Any, *, axes: Names) -> Any:
    return x


def names_of(axis_name: Any) -> Names:
    """One axis or several as a tuple."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


# ----------------------------------------------------------------------------------
# Collectives
# ----------------------------------------------------------------------------------


def staging_of_collective(
    primitive: Primitive, parameter: str, sum_name: str = ""
) -> Callable:
    """The `staging` of a collective: its operand varies over the axes in `parameter`.

    `sum_name` is the user's function, given for sums only. A sum is the same program
    for equal values and for different ones, with another transpose, so that its operand
    must vary over all of its axes or over none.
    """

    def staging(trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        checked = state.varying_axes
        if not checked:
            return NotImplemented
        axes = [axis for axis in names_of(params[parameter]) if axis in checked]
        (x,) = args
        missing = [axis for axis in axes if axis not in varying(x)]
        if missing and len(missing) < len(axes) and sum_name:
            raise errors.value_error(
                f"jax.lax.{sum_name} can only accept axis_name which corresponds to "
                "one of varying, unreduced, reduced or invarying state of the input. "
                f"Got input type: {get_aval(x).str_short()}, axes: {tuple(axes)}. Mark "
                f"it first: `lax.pcast(x, {tuple(missing)}, to='varying')`."
            )
        if missing:
            marked = pvary_p.bind(x, axes=tuple(missing))
            return primitive.bind(marked, **params)
        if sum_name == "psum" and axes == list(params["axes"]):
            if params["axis_index_groups"] is not None:
                raise NotImplementedError(
                    "psum with axis_index_groups inside shard_map needs "
                    "check_vma=False: its result still varies over the axis."
                )
            return psum_invariant_p.bind(x, axes=tuple(axes))
        return NotImplemented

    return staging
