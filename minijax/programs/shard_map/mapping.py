"""`shard_map(f, mesh=..., in_specs=..., out_specs=...)`: `f` on each device's part.

    def f(part):                      # f32[2,4] of f32[8,4] on a mesh with x: 4
        return lax.psum(part, "x")

    shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P())(x)

In JAX: `jax.shard_map`; `jax/_src/shard_map.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, NamedTuple

from minijax.core import errors, language, partial_eval, signatures, trees
from minijax.core.errors import api_boundary
from minijax.core.signatures import check_callable, fun_name
from minijax.core.state import state
from minijax.primitives.parallel.variation import (
    in_mesh_order,
    in_types,
    varied,
    words_over,
)
from minijax.programs.control_flow.operands import merge
from minijax.programs.shard_map.parts import parts_trace
from minijax.programs.shard_map.primitive import (
    axes_of,
    part_type,
    scope_of,
    shard_map_p,
)
from minijax.programs.shard_map.varying import pcast
from minijax.programs.sharding.contexts import get_abstract_mesh
from minijax.programs.sharding.cuts import cut_in_type, spec_along
from minijax.support.devices.shardings import (
    AbstractMesh,
    AxisType,
    Mesh,
    PartitionSpec,
    check_spec,
)
from minijax.support.tree_util import broadcast_prefix
from minijax.transforms.rematerialize import where, where_not


class _Infer:
    """The value of `in_specs` that takes the specs from the types of the arguments."""

    def __repr__(self) -> str:
        return "jax.sharding.Infer"


Infer = _Infer()


def shard_map(
    f: Callable | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Any = None,
    axis_names: Set[Any] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """`f` runs on every device of a mesh, on that device's part of the arguments.

    Called outside of programs, `f` may print parts, and Python may ask for values that
    are the same on all devices (`parts.py`).

    Args:
      f: from parts of the arguments to parts of the results; it may use collectives
        over the mesh axes. Without it, a decorator.
      out_specs: a `PartitionSpec` for each result, or a tree of them that is a prefix
        of the result: how the parts are put together. A mesh axis that is not named
        holds equal copies.
      in_specs: the same for the arguments: how each is cut. An argument whose spec is
        None is no array: `f` gets it as it is. Without in_specs, on a mesh whose axes
        are Explicit, the types of the arguments give them.
      mesh: the mesh; by default the one of `set_mesh`.
      axis_names: the axes that are manual inside; by default all. The others stay with
        the compiler.
      check_vma: whether the types inside say over which axes values vary. Without it,
        nothing checks that copies are equal, and gradients add up copies.

    Raises:
      ValueError: specs that do not fit the mesh, the arguments or the results; results
        that may differ where `out_specs` promises copies.
      TypeError: specs that are no PartitionSpecs.

    In JAX: `jax.shard_map`.
    """
    if f is None:
        return functools.partial(
            shard_map,
            out_specs=out_specs,
            in_specs=in_specs,
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    check_callable(f, "shard_map")
    _check_specs(out_specs, "out_specs")
    if in_specs is not Infer:
        _check_specs(in_specs, "in_specs")
    if mesh is not None and not isinstance(mesh, (Mesh, AbstractMesh)):
        raise errors.type_error(
            "shard_map requires a `jax.sharding.Mesh` or a `jax.sharding.AbstractMesh` "
            f"instance for its second argument, but got {mesh} of type {type(mesh)}."
        )
    if not isinstance(axis_names, (set, frozenset)):
        raise errors.type_error(
            "`axis_names` argument of shard_map should be of type `frozenset` or "
            f"`set`. Got type: {type(axis_names)}"
        )
    given = mesh

    @api_boundary
    @functools.wraps(f)
    def mapped(*args: Any) -> Any:
        mesh, taken = _mesh_of(given)
        manual = frozenset(axis_names) or frozenset(mesh.axis_names) - taken
        if not manual <= {*mesh.axis_names}:
            raise errors.value_error(
                f"`axis_names`={set(manual)} of shard_map must be a subset of "
                f"mesh.axis_names={mesh.axis_names}"
            )
        if manual & taken:
            raise errors.value_error(
                f"A shard_map over {sorted(map(str, manual & taken))} is inside of one "
                "over the same axes. Leave them out of axis_names."
            )
        mapping = _Mapping(fun_name(f), mesh, manual)
        found = mapping.arguments(args, in_specs)
        leaves, specs = found.leaves, found.specs
        avals = list(map(language.get_aval, leaves))
        mapping.check_meshes(found.paths, avals, leaves if given is None else avals)
        mapping.check_arguments(found.paths, avals, specs)
        mapping.check_types(found.paths, avals, specs)
        params: dict[str, Any] = {
            "check_vma": check_vma,
            "in_specs": tuple(specs),
            "mesh": mesh,
            "newly_manual_axes": manual,
        }
        parts = [part_type(a, s, mesh, check_vma, manual) for a, s in zip(avals, specs)]
        seen: list[Any] = []

        def flat(*parts: Any) -> list[Any]:
            answer = f(*found.with_parts(parts))
            results, out_tree = trees.tree_flatten(answer)
            signatures.check_outputs(results, out_tree, mapping.name, "shard_map")
            outs = mapping.result_specs(out_specs, answer, out_tree)
            seen.append((out_tree, outs))
            if not check_vma:
                return results
            return [_varying_as(one, spec) for one, spec in zip(results, outs)]

        info = language.DebugInfo("shard_map", mapping.name)
        trace = parts_trace(info, leaves, params)
        with scope_of(params):
            jaxpr, consts = partial_eval.trace_to_jaxpr(flat, parts, info, trace=trace)
        if consts:
            jaxpr = partial_eval.convert_constvars_jaxpr(jaxpr)
            params["in_specs"] = (PartitionSpec(),) * len(consts) + tuple(specs)
        closed = language.ClosedJaxpr(jaxpr)
        ((out_tree, outs),) = seen
        mapping.check_results(closed.out_avals, outs, check_vma)
        params["out_specs"] = tuple(outs)
        results = shard_map_p.bind(*consts, *leaves, jaxpr=closed, **params)
        return trees.tree_unflatten(out_tree, results)

    return mapped


def smap(
    f: Callable | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Any
) -> Any:
    """`shard_map` over one axis of the mesh in use, with axes as `vmap` has them.

    In JAX: `jax.smap`.
    """
    if f is None:
        return functools.partial(
            smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name
        )

    several = isinstance(axis_name, (list, tuple))
    if several or not isinstance(in_axes, (int, tuple, _Infer, type(None))):
        raise errors.type_error(
            f"smap got axis_name={axis_name!r} and in_axes={in_axes!r}. It maps over "
            "one axis (`shard_map` maps over several), and in_axes is an int, None, or "
            "a tuple with an entry for each argument."
        )
    check_axes(out_axes, "smap out_axes")
    outs = specs_at(out_axes, axis_name)
    ins = in_axes
    if in_axes is not Infer:
        check_axes(in_axes, "smap in_axes")
        ins = specs_at(in_axes, axis_name)
    return shard_map(f, in_specs=ins, out_specs=outs, axis_names={axis_name})


def check_axes(axes: Any, what: str) -> None:
    """TypeError for a tree of axes with other leaves than integers and None."""
    if not all(isinstance(axis, int) for axis in trees.tree_leaves(axes)):
        raise errors.type_error(
            f"{what} must be an int, None, or (nested) container with those types as "
            f"leaves, but got {axes}."
        )


def specs_at(axes: Any, name: Any) -> Any:
    """For a tree of axes as `vmap` has them, the specs that cut there along one."""
    leaves, tree = trees.tree_flatten(axes, is_leaf=lambda one: one is None)
    parts: list = [[] if axis is None else [*[None] * axis, name] for axis in leaves]
    return trees.tree_unflatten(tree, [PartitionSpec(*part) for part in parts])


# ----------------------------------------------------------------------------------
# Checks
# ----------------------------------------------------------------------------------


def _mesh_of(given: Any) -> tuple[Any, frozenset]:
    """(the mesh to map over, its axes that a `shard_map` around this one maps over).

    Raises ValueError if `given` is another mesh than the one in use here.
    """
    mesh, taken = given, frozenset[str]()
    if state.manual_mesh is not None:
        mesh, taken = state.manual_mesh
    elif isinstance(state.mesh, Mesh) or not get_abstract_mesh().empty:
        mesh = state.abstract_mesh or state.mesh
    if mesh is None or mesh.empty:
        raise errors.value_error(
            "The context mesh cannot be empty. Pass shard_map a mesh, mesh=..., or use "
            "`with minijax.set_mesh(mesh):`."
        )
    inside = dict.fromkeys(taken, AxisType.Manual)
    here = mesh.abstract_mesh.update_axis_types(inside)
    if given is None:
        return here, taken
    devices = [one._internal_device_list for one in (given, mesh)]
    there = given.abstract_mesh.update_axis_types(inside)
    same = there.update(abstract_device=here.abstract_device) is here
    if not same or (taken and all(devices) and devices[0] != devices[1]):
        raise errors.value_error(
            f"The context mesh {mesh} (of the shard_map or set_mesh around) should "
            f"match the mesh passed to shard_map, {given}: names, sizes, types and "
            "devices. Leave mesh out. A pmap cannot be inside; write vmap there."
        )
    return here if taken else given, taken


def _check_specs(specs: Any, name: str) -> None:
    for leaf in trees.tree_leaves(specs):
        if not isinstance(leaf, PartitionSpec):
            raise errors.type_error(
                f"shard_map {name} argument must be a pytree of "
                "`jax.sharding.PartitionSpec` instances, but got "
                f"{leaf!r} of type {type(leaf).__name__}. Write "
                "`PartitionSpec('x')`, or `PartitionSpec()` for copies."
            )


class _Arguments(NamedTuple):
    """The arguments of a call: arrays with their specs, and Python values without."""

    everything: list[Any]
    tree: Any
    dynamic: list[bool]
    leaves: list[Any]
    specs: list[PartitionSpec]
    paths: list[str]

    def with_parts(self, parts: Iterable[Any]) -> Any:
        """The arguments of the mapped function: parts in place of arrays."""
        plain = where_not(self.dynamic, self.everything)
        return trees.tree_unflatten(self.tree, merge(self.dynamic, plain, parts))


class _Mapping(NamedTuple):
    """One call of shard_map: a function, over the `manual` axes of a mesh."""

    name: str
    mesh: Any
    manual: frozenset

    def arguments(self, args: tuple, in_specs: Any) -> _Arguments:
        """The arguments by their specs; one whose spec is None stays a Python value."""
        everything, tree = trees.tree_flatten(args)
        if in_specs is Infer:
            found: list[Any] = _inferred(
                list(map(language.get_aval, everything)), self.manual, self.mesh
            )
        else:
            try:
                found = trees.broadcast_prefix_to_treedef(in_specs, tree)
            except ValueError:
                more = f" It was called with {len(args)} arguments."
                raise self._no_prefix("in_specs", in_specs, tree, more) from None
        dynamic = [spec is not None for spec in found]
        named, _ = trees.tree_flatten_with_path(args)
        paths = where(dynamic, [trees.keystr(path) for path, _ in named])

        leaves, specs = where(dynamic, everything), where(dynamic, found)
        for spec in specs:
            _check_manual(spec, self.manual, self.mesh, "in_specs")
        return _Arguments(everything, tree, dynamic, leaves, specs, paths)

    def result_specs(
        self, out_specs: Any, answer: Any, tree: Any
    ) -> list[PartitionSpec]:
        """The spec of each leaf of the result."""
        try:
            found = broadcast_prefix(out_specs, answer)
        except ValueError:
            raise self._no_prefix("out_specs", out_specs, tree, "") from None
        for spec in found:
            _check_manual(spec, self.manual, self.mesh, "out_specs")
        return found

    def _no_prefix(self, name: str, specs: Any, tree: Any, more: str) -> ValueError:
        return errors.value_error(
            f"pytree structure error: shard_map {name} of {self.name} is no prefix of "
            f"the tree it describes: {name} is {specs}, and the tree is {tree}.{more}"
        )

    def check_arguments(
        self, paths: Sequence[str], avals: Sequence[Any], specs: Sequence[Any]
    ) -> None:
        """ValueError for a spec that its argument cannot be cut by."""
        sizes = dict(self.mesh.shape)
        for path, aval, spec in zip(paths, avals, specs):
            where = f"args{path}"
            self._check_length(aval, spec, "in_specs", where)
            for dimension in range(len(spec)):
                names = spec.axes(dimension)
                count = math.prod(sizes[name] for name in names)
                if aval.shape[dimension] % count:
                    raise errors.value_error(
                        f"shard_map applied to the function '{self.name}' was given "
                        "argument arrays with axis sizes that are not evenly divisible "
                        f"by the corresponding mesh axis sizes: {where} has type "
                        f"{aval.str_short()}; its spec {spec} cuts axis {dimension} "
                        f"(of size {aval.shape[dimension]}) along mesh axis "
                        f"{', '.join(map(repr, names))} (of size {count}), but {count} "
                        f"does not evenly divide {aval.shape[dimension]}. Pad the "
                        "array."
                    )

    def _check_length(self, aval: Any, spec: Any, name: str, where: str) -> None:
        if len(spec) > aval.ndim:
            raise errors.value_error(
                f"shard_map applied to the function '{self.name}' was given an {name} "
                "entry which is too long to be compatible with the corresponding "
                f"value: {where} has type {aval.str_short()}, of rank {aval.ndim}, and "
                f"its spec {spec} has length {len(spec)}. Shorten the spec, or give "
                "the value an axis: `x[None]`."
            )

    def check_meshes(self, paths: Sequence[str], avals: Any, leaves: Any) -> None:
        """ValueError for types over other axes; `leaves` may lie on no other mesh."""
        for path, aval, leaf in zip(paths, avals, leaves):
            lies = getattr(getattr(leaf, "_placed", None), "mesh", self.mesh)
            axes = set[Any](axes_of(aval.cut.spec) if aval.cut else ())
            same = lies.abstract_mesh == self.mesh.abstract_mesh
            if not same or not axes <= {*self.mesh.axis_names}:
                raise errors.value_error(
                    f"shard_map of '{self.name}' maps over {self.mesh}, which does not "
                    f"match the mesh of args{path}, of type {aval.str_short()}. Give "
                    "its mesh, or move the array: `minijax.device_put(x, sharding)`."
                )

    def check_types(
        self, paths: Sequence[str], avals: Sequence[Any], specs: Sequence[Any]
    ) -> None:
        """ValueError for specs that differ from the cuts in the types."""
        count = len(self.mesh.axis_names)
        whole = self.mesh.are_all_axes_explicit and len(self.manual) == count
        for path, aval, spec in zip(paths, avals, specs):
            typed = spec_along(aval, self.manual)
            cuts = cut_in_type(spec, self.mesh, aval.ndim) if whole else typed
            if typed != spec.update(partitions=cuts):
                raise errors.value_error(
                    f"in_specs passed to shard_map: {spec} does not match the specs of "
                    f"the input: {typed} for arg: {aval.str_short()}, "
                    f"args{path} of '{self.name}'. All axes of the mesh are Explicit, "
                    "so the type of an argument says how it is cut. Leave in_specs "
                    "out, and shard_map takes what the types say; or reshard the "
                    f"argument first: `minijax.sharding.reshard(x, {spec})`."
                )

    def check_results(
        self, avals: Sequence[Any], specs: Sequence[Any], checked: bool
    ) -> None:
        """ValueError for a result that its spec does not describe."""
        for aval, spec in zip(avals, specs):
            self._check_length(aval, spec, "out_specs", "a result")
            words = words_over(aval, self.manual)
            if checked and words != (spec.unreduced, spec.reduced):
                raise errors.value_error(
                    f"shard_map got out_specs {spec} for a result of '{self.name}' of "
                    f"type {aval.str_short()}: both must be unreduced and reduced over "
                    "the same axes. Use `lax.psum` or `lax.pcast`."
                )
            unnamed = (aval.vma & self.manual).difference(axes_of(spec))
            varying = [name for name in self.mesh.axis_names if name in unnamed]
            if checked and varying:
                raise errors.value_error(
                    f"shard_map applied to the function '{self.name}' was given "
                    "out_specs which require replication which can't be statically "
                    f"inferred given the mesh {dict(self.mesh.shape)}: out_specs is "
                    f"{spec}, which promises equal copies along {varying}, but the "
                    f"result has type {aval.str_short()}, which varies there. Name the "
                    "axes in out_specs, or make the result equal with a reduction such "
                    "as `lax.psum`. If it is equal and the types cannot tell, pass "
                    "check_vma=False."
                )


def _varying_as(value: Any, spec: PartitionSpec) -> Any:
    """A result, varying over the axes along which `out_specs` puts it together.

    The mark tells the gradient that all devices' cotangents add up. Addends that
    `out_specs` promises are made of a value that varies.
    """
    if not state.auto_pcast:
        return value
    value = varied(value, in_types(axes_of(spec)))
    there, _ = words_over(language.get_aval(value), spec.unreduced)
    lacking = spec.unreduced - there
    return pcast(value, in_mesh_order(lacking), to="unreduced")


# ----------------------------------------------------------------------------------
# Meshes whose axes are Explicit: the types of arguments say how they are cut
# ----------------------------------------------------------------------------------


def _check_manual(spec: Any, manual: frozenset, mesh: Any, name: str) -> None:
    named = axes_of(spec)
    free = [part for part in spec.partitions if part is PartitionSpec.UNCONSTRAINED]
    for axis in (*named, *free):
        if axis not in manual:
            raise errors.value_error(
                f"shard_map {name} argument must refer to an axis marked as manual "
                f"({manual}), but:\n\n  {name} refers to {axis!r}\n\nCheck the {name} "
                "values passed to shard_map."
            )
    if spec.unreduced or spec.reduced:
        _check_words(spec, manual, mesh, name)
    check_spec(mesh, spec)  # DuplicateSpecError


def _check_words(spec: Any, manual: frozenset, mesh: Any, name: str) -> None:
    if manual != frozenset(mesh.axis_names):
        raise NotImplementedError(
            f"unreduced/reduced can only be passed to {name} when shard_map maps over "
            f"all axes of the mesh. Got {spec}, the axes {mesh.axis_names} and "
            f"axis_names={set(manual)}. Leave axis_names out."
        )
    if not mesh.are_all_axes_explicit:
        raise errors.value_error(
            f"unreduced and reduced in {name} {spec} can only be used when all axes of "
            f"the mesh are Explicit. Got mesh {mesh}."
        )


def _inferred(
    avals: Sequence[Any], manual: frozenset, mesh: Any
) -> list[PartitionSpec]:
    """The specs that follow from the types of the arguments."""
    kinds = mesh._name_to_type
    unknown = [name for name in manual if kinds[name] is not AxisType.Explicit]
    if unknown:
        raise errors.type_error(
            "shard_map needs in_specs: it can infer them from the types of arguments "
            f"only along axes that are Explicit, and {unknown} of the mesh are not. "
            "Write in_specs=..., a PartitionSpec for each argument."
        )
    return [spec_along(aval, manual) for aval in avals]
