"""Memory for a part of a kernel: run_scoped calls a function with refs of its own.

In JAX: `pallas/primitives.py`, `run_scoped`; `pallas/helpers.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from minijax.core import partial_eval, signatures
from minijax.core.effects import positional
from minijax.core.events import enter
from minijax.core.language import Jaxpr, Primitive, register
from minijax.core.trees import tree_flatten, tree_structure, tree_unflatten
from minijax.kernels.uninitialized import uninitialized
from minijax.primitives.refs.ref_blocks import discharge_rules
from minijax.primitives.refs.ref_effects import RefEffect
from minijax.primitives.shape import broadcasting
from minijax.transforms import discharge

run_scoped_p = register(Primitive("run_scoped", multiple_results=True))
run_scoped_p.cache_types = False
run_scoped_p.without("meaning", "its refs hold no values at the start")
run_scoped_p.without("lower", "a kernel loses its refs before it is lowered")
run_scoped_p.without("jvp", "give the kernel a derivative by `custom_vjp`")
run_scoped_p.without("batch", "vmap adds an axis to the grid, not to the kernel")


@run_scoped_p.def_effectful_abstract_eval
def _type(*avals, jaxpr: Jaxpr, **_) -> tuple:
    """Effects on refs of the kernel are seen from outside, those on its own are not."""
    seen = positional(jaxpr.effects, jaxpr.constvars)
    outer = frozenset(e for e in seen if not isinstance(e, RefEffect) or e.input >= 0)
    return list(jaxpr.out_avals), outer


def fresh(aval: Any) -> Any:
    """An array of a type, not written yet."""
    return broadcasting.full(aval.shape, uninitialized(aval.dtype), aval.dtype)


def _discharge(discharged, *args, jaxpr: Jaxpr, collective_axes, **_) -> tuple:
    if collective_axes:
        raise NotImplementedError(
            "run_scoped with collective_axes shares memory between the cores of a "
            "machine; a CPU has none of that. Leave collective_axes out."
        )
    opened = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    own: list[Any] = [var.aval for var in jaxpr.invars]
    contents = [*args, *(fresh(aval.inner_aval) for aval in own)]
    flags = (*discharged, *[True] * len(own))
    results = discharge.eval_discharged(opened, (), flags, contents)
    results = results[: len(results) - len(own)]
    return discharge.split_contents(results, discharged)


enter(discharge_rules, run_scoped_p, _discharge)


def run_scoped(
    f: Callable[..., Any],
    *types: Any,
    collective_axes: Hashable | tuple[Hashable, ...] = (),
    **kw_types: Any,
) -> Any:
    """Call a function with refs to memory that exists during the call.

    Args:
      f: takes a ref for each type, and returns arrays or a tree of them.
      *types, **kw_types: memory, such as `pltpu.VMEM((8, 128), jnp.float32)`.
      collective_axes: must be empty on a CPU.
    """
    if not isinstance(collective_axes, tuple):
        collective_axes = (collective_axes,)
    signatures.check_callable(f, "run_scoped")
    leaves, tree = tree_flatten((types, kw_types))
    for leaf in leaves:
        if not hasattr(leaf, "get_ref_aval"):
            raise ValueError(
                "run_scoped takes memory such as pltpu.VMEM((8, 128), jnp.float32), "
                f"but was given {leaf!r}."
            )
    avals = [leaf.get_ref_aval() for leaf in leaves]
    info = signatures.lazy_debug_info(f, tree_structure(types), "pallas run_scoped")
    out_trees = []

    def flat(*refs: Any) -> list[Any]:
        args, kwargs = tree_unflatten(tree, refs)
        outputs, out_tree = tree_flatten(f(*args, **kwargs))
        out_trees.append(out_tree)
        return outputs

    jaxpr, consts = partial_eval.trace_to_jaxpr(flat, avals, info)
    outputs = run_scoped_p.bind(
        *consts,
        jaxpr=jaxpr,
        collective_axes=collective_axes,
        ref_transforms=((),) * len(avals),
    )
    return tree_unflatten(out_trees[0], outputs)


def with_scoped(
    *types: Any, collective_axes: Hashable | tuple[Hashable, ...] = (), **kw_types: Any
) -> Callable[[Callable], Callable]:
    """Decorator: the function gets refs to memory of its own after its arguments."""

    def decorator(f: Callable) -> Callable:
        def inner(*args: Any) -> Any:
            return run_scoped(
                lambda *refs, **named: f(*args, *refs, **named),
                *types,
                collective_axes=collective_axes,
                **kw_types,
            )

        return inner

    return decorator
