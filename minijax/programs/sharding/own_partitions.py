"""custom_partitioning: a function for which the user says how it is cut over devices.

XLA's partitioner calls Python: it tells how the arguments and results are cut, and gets
the program of one device and the cuts that this program needs. How the cuts travel
through the function is a rule of Shardy (`sharding_rules.py`).

In JAX: `jax/_src/custom_partitioning.py`.
"""

from __future__ import annotations

import math
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from minijax.backend import hlo_parts
from minijax.compile import caching, standalone
from minijax.core import errors, hlo
from minijax.core.jit import make_jaxpr
from minijax.core.language import Primitive, ShapedArray, is_tracer, register
from minijax.core.lowering import lower_to_module, tensor_type
from minijax.core.runtime import HloSharding, xc
from minijax.core.signatures import fun_name
from minijax.core.state import state
from minijax.core.trees import tree_flatten, tree_leaves, tree_unflatten
from minijax.primitives.parallel import manual_lowering
from minijax.programs.calls import def_call
from minijax.programs.control_flow.bodies import trace_with_consts
from minijax.programs.custom.custom_forward import CustomFunction, positional_arguments
from minijax.programs.shard_map.varying import manual_scope
from minijax.programs.sharding.partitioned import told
from minijax.programs.sharding.placement import Placement, placement_of
from minijax.programs.sharding.sharding_rules import ShardingRule
from minijax.support.devices.shardings import (
    GSPMDSharding,
    Mesh,
    NamedSharding,
    Sharding,
)
from minijax.values.ref_avals import ShapeDtypeStruct

_TARGET, _NAME = "MinijaxCustomPartitioning", "custom_partitioning"
custom_partitioning_p = register(Primitive(_NAME, multiple_results=True))
def_call(custom_partitioning_p, "call")
custom_partitioning_p.without(
    "jvp transpose batch", "call it inside of custom_vjp or custom_vmap, as in JAX"
)


class custom_partitioning(CustomFunction):
    """A function with a user's rule for cutting it over devices.

        @custom_partitioning
        def f(x): return jnp.fft.fft(x)

        def partition(mesh, arg_shapes, result_shape):
            ins = tree_map(lambda x: x.sharding, arg_shapes)
            return mesh, jnp.fft.fft, ins[0], ins

        f.def_partition(partition, sharding_rule="... i -> ... i",
                        need_replication_factors=("i",))

    Args:
      fun: the function, as it is computed on one device, inside of `shard_map` and in
        exported programs, which keep no cuts.
      static_argnums: positions of arguments that are no arrays; the rules get them
        first.

    In JAX: `jax.experimental.custom_partitioning.custom_partitioning`.
    """

    def __init__(self, fun: Callable, static_argnums: Sequence[int] = ()) -> None:
        super().__init__(fun)
        self.partition: Callable | None = None
        self.static_argnums = static_argnums

    def def_partition(
        self,
        partition: Callable,
        infer_sharding_from_operands: Callable | None = None,
        propagate_user_sharding: Callable | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        **options: Any,
    ) -> Callable:
        """Set the rules.

        Args:
          partition: `(*statics, mesh, arg_shapes, result_shape)` with trees of
            `ShapeDtypeStruct`s that have shardings; gives (mesh, the function of one
            device, the shardings of the result, those of the arguments).
          infer_sharding_from_operands, propagate_user_sharding: for the propagation
            before Shardy, which is not here. As in JAX they need a `sharding_rule`.
          decode_shardings: whether shardings are `NamedSharding`s, where possible.
          sharding_rule: `"i j -> i j"`, or a function `(*statics, mesh, operand_types,
            result_types)` that gives such a text, or (text, dict of options).
          options: for a text: `reduction_factors`, `need_replication_factors`,
            `permutation_factors`, and sizes of factors (`sharding_rules.py`).

        Raises ValueError for a bad rule, and for options without a text.
        """
        if sharding_rule is not None and not callable(sharding_rule):
            sharding_rule = ShardingRule(sharding_rule, **options)
        elif options:
            raise errors.value_error(
                f"Unknown keyword arguments: {options}. They belong to a rule that is "
                "a text; a function may give (text, options)."
            )
        self.partition = partition
        self.callbacks = (propagate_user_sharding, infer_sharding_from_operands)
        self.decode_shardings = decode_shardings
        self.sharding_rule = sharding_rule
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        Raises:
          AttributeError: if `def_partition` was not called.
          NotImplementedError: for callbacks of propagation without a `sharding_rule`.
          UnexpectedTracerError: for a traced value in a static position.
          TypeError: for a static argument without a hash, while something traces.
          AssertionError: if the function closes over an array.
        """
        if self.partition is None:
            raise AttributeError(
                f"No rule defined for custom_partitioning of {fun_name(self.fun)}: "
                "call its def_partition."
            )
        args = positional_arguments(self.fun, args, kwargs)
        statics = tuple(args[i] for i in self.static_argnums)
        if any(map(is_tracer, tree_leaves(statics))):
            raise errors.UnexpectedTracerError(
                "custom_partitioning got a traced value in a position that is static "
                f"by static_argnums={self.static_argnums}. Pass a Python value."
            )
        if self.sharding_rule is None and any(self.callbacks):
            raise NotImplementedError(
                "Shardy cuts programs here: give def_partition a `sharding_rule`; it "
                "does not call infer_sharding_from_operands or propagate_user_sharding."
            )
        positions = range(len(args))
        fixed = [positions[i] for i in self.static_argnums]
        places = [i for i in positions if i not in fixed]

        def of_arrays(*arrays: Any) -> Any:
            given = dict(zip(places, arrays))
            return self.fun(*(given.get(i, arg) for i, arg in enumerate(args)))

        arrays = tuple(args[i] for i in places)
        leaves, in_tree = tree_flatten(arrays)
        if any(map(is_tracer, leaves)):
            hash(statics)  # TypeError: "unhashable type: 'list'"
        call, consts, out_tree = trace_with_consts(of_arrays, arrays, _NAME)
        if consts:
            error = AssertionError(
                "custom_partitioning: the function closes over an array, which would "
                "be cut by no rule. Pass it as an argument."
            )
            raise errors.with_facts(error)
        results = custom_partitioning_p.bind(
            *leaves,
            call=call,
            partition=self.partition,
            propagate_user_sharding=None,
            infer_sharding_from_operands=None,
            decode_shardings=self.decode_shardings,
            sharding_rule=self.sharding_rule,
            in_tree=in_tree,
            out_tree=out_tree,
            static_args=statics,
        )
        return tree_unflatten(out_tree, results)


class _Rule:
    """What XLA's partitioner asks about one equation of a lowered program."""

    def __init__(self, params: dict[str, Any], place: Placement, platform: str) -> None:
        self.params, self.platform = params, platform
        self.mesh = Mesh(place.mesh.devices, place.mesh.axis_names)
        self.place = placement_of(place.devices, (), self.mesh)
        # The devices that XLA cuts over: along Manual axes nothing is left to cut.
        sizes, manual = place.mesh.shape_tuple, manual_lowering.current_axes()
        self.count = math.prod(size for axis, size in sizes if axis not in manual)

    def described(self, tree: Any, shapes: Any, shardings: Any) -> Any:
        """The tree of types with shardings that the user's function gets."""
        leaves = []
        for shape, of_xla in zip(shapes, shardings):
            sharding = GSPMDSharding(tuple(self.place.devices), of_xla)
            in_mesh = of_xla.num_devices() in (0, self.mesh.size)
            if self.params["decode_shardings"] and in_mesh:
                sharding = told(of_xla, self.place)
            size, dtype = shape.dimensions(), shape.numpy_dtype()
            if isinstance(sharding, NamedSharding):
                sharding = sharding.of_rank(len(size))
            leaves.append(ShapeDtypeStruct(size, dtype, sharding=sharding))
        return tree_unflatten(tree, leaves)

    def partition(self, ins: Any, in_cuts: Any, outs: Any, out_cuts: Any) -> tuple:
        """(the program of one device, how its arguments are cut, and its results)."""
        in_tree, out_tree = self.params["in_tree"], self.params["out_tree"]
        arguments = self.described(in_tree, ins, in_cuts)
        results = self.described(out_tree, outs, out_cuts)
        statics = self.params["static_args"]
        partition = self.params["partition"](*statics, self.mesh, arguments, results)
        mesh, fun, out_shardings, in_shardings = partition
        in_cuts = _for_xla(in_tree, in_shardings, ins, self.count)
        out_cuts = _for_xla(out_tree, out_shardings, outs, self.count)
        arguments = tree_unflatten(in_tree, _parts(ins, in_cuts))
        with manual_scope(mesh, mesh.axis_names, False):
            closed = make_jaxpr(fun)(*arguments)
        wanted = [(x.shape, x.dtype) for x in _parts(outs, out_cuts)]
        found = [(x.shape, x.dtype) for x in closed.out_avals]
        if wanted != found:
            raise errors.value_error(
                "Mismatch in result shapes of the partitioned function: it returns "
                f"{found}, and its parts of the result are {wanted}."
            )
        with manual_lowering.mesh_being_lowered(mesh, mesh.axis_names):
            lowered = lower_to_module(closed, _NAME, self.platform, keep_unused=True)
        if lowered.host_callbacks:
            raise errors.value_error(
                "The partitioned function calls Python, which XLA cannot put into its "
                "program. Use debug.print and callbacks outside of custom_partitioning."
            )
        module = standalone.with_constants(lowered, lambda *_: "")
        return hlo.module_to_bytes(module), in_cuts, out_cuts


def _for_xla(tree: Any, shardings: Any, shapes: Any, count: int) -> list[Any]:
    """XLA's shardings, which are of `count` devices, or of 0 where nothing is cut."""
    leaves, cuts = tree.flatten_up_to(shardings), []
    for leaf, shape in zip(leaves, shapes):
        if not isinstance(leaf, Sharding):
            raise errors.value_error(
                f"Custom Partitioning rules must return Sharding, got {leaves}."
            )
        size = shape.dimensions()
        if isinstance(leaf, NamedSharding):
            leaf.check_compatible_aval(size)
        cuts.append(leaf._to_xla_hlo_sharding(len(size)))
        if cuts[-1].num_devices() not in (0, count):
            raise errors.value_error(
                f"A partition returned {leaf}, which cuts over another number of "
                f"devices than the {count} that XLA cuts over here."
            )
    return cuts


def _parts(shapes: Any, cuts: Any) -> list[Any]:
    """The types of one device's parts."""
    tiles = [cut.tile(shape) for cut, shape in zip(cuts, shapes)]
    return [ShapedArray(tile.dimensions(), tile.numpy_dtype()) for tile in tiles]


# Rules by the key in the custom call's backend_config, until their module is freed.
_rules: dict[bytes, _Rule] = {}


def _partition(ins: Any, in_cuts: Any, out: Any, out_cut: Any, text: bytes) -> tuple:
    several = out.is_tuple()
    outs = out.tuple_shapes() if several else (out,)
    out_cuts = out_cut.tuple_elements() if several else (out_cut,)
    program, in_cuts, cuts = _rules[text].partition(ins, in_cuts, outs, out_cuts)
    cut = HloSharding.tuple_sharding(out, cuts) if several else cuts[0]
    return program, in_cuts, cut


def _not_asked(*_: Any) -> Any:
    raise RuntimeError("Shardy propagates shardings by the rule, not by callbacks.")


xc.register_custom_call_partitioner(_TARGET, _not_asked, _partition, _not_asked, True)


@custom_partitioning_p.def_lowering
def _lowering(ctx: Any, *operands: Any, **params: Any) -> Any:
    call, place = params["call"], state.lowered_for
    several = isinstance(place, Placement) and place.mesh.size > 1
    manual = manual_lowering.current_axes()
    if not several or {*place.mesh.axis_names} <= {*manual}:
        return ctx.lower_jaxpr(call, *operands)
    rule = _Rule(params, place, ctx.platform)
    text = uuid.uuid4().hex  # unique: a cached file cannot call these functions
    _rules[text.encode()] = rule
    weakref.finalize(hlo.ir.Context.current, _rules.pop, text.encode())
    caching.private_contexts.add(hlo.ir.Context.current)
    types = list(map(tensor_type, call.out_avals))
    out = hlo_parts.custom_call(
        _TARGET,
        types,
        operands,
        text,
        api_version=2,
        operand_layouts=None,
        result_layouts=None,
    )
    shards, kinds = params["sharding_rule"], [operand.type for operand in operands]
    if callable(shards):
        shards = shards(*params["static_args"], rule.mesh, kinds, types)
        match (shards, {}) if isinstance(shards, str) else shards:
            case (str() as text, dict() as options):
                shards = ShardingRule(text, **options)
            case _:
                raise errors.value_error(
                    "A sharding_rule that is a function gives a text such as "
                    f"'i j -> i j', or (text, options), got {shards!r}."
                )
    if shards is not None:
        out.attributes["sdy.sharding_rule"] = shards.attribute(kinds, types)
        try:
            out.operation.verify()
        except hlo.ir.MLIRError as error:
            raise errors.value_error(f"Shardy takes no such rule: {error}") from None
    return out.results
