"""Exported programs: StableHLO with all that is needed to call it, also elsewhere.

    exported = export(jit(f))(ShapeDtypeStruct((3,), "float32"))
    data = exported.serialize(vjp_order=1)    # bytes, for a file
    deserialize(data).call(x)                 # in another process, without f

An `Exported` is called as one operation, `call_exported`, inside of `jit` and `grad`.

In JAX: `jax/_src/export/_export.py`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from minijax.backend import hlo_parts, portable_artifacts
from minijax.compile import standalone as programs
from minijax.compile.stages import PLATFORMS, Traced, place_of
from minijax.core import dispatch, dtypes, errors, hlo, language, lowering, trees
from minijax.core.array import default_device
from minijax.core.errors import api_boundary
from minijax.core.jit import jit as plain_jit
from minijax.core.jit import make_jaxpr
from minijax.core.state import state
from minijax.programs.custom.custom_backward import custom_vjp
from minijax.programs.sharding.constraints import with_sharding_constraint
from minijax.programs.sharding.cuts import cut_of
from minijax.programs.sharding.placement import Placement
from minijax.programs.sharding.reshard import reshard
from minijax.support.devices.shardings import NamedSharding
from minijax.transforms import discharge
from minijax.transforms.differentiation import vjp as _vjp
from minijax.values.inner_programs import jaxpr_as_fun
from minijax.values.ref_avals import ShapeDtypeStruct
from minijax.values.symbolic_sizes import evaluate, is_symbolic
from minijax.values.symbolic_solving import solve, symbolic_axes

# How `main` is called. Version 1: the kept arguments in, the results out.
minimum_supported_calling_convention_version = 1
maximum_supported_calling_convention_version = 1

# Foreign functions of jaxlib that later versions keep; others have to be allowed.
_LASTING_TARGETS = set(
    "LayoutConstraint Sharding annotate_device_placement cu_threefry2x32_ffi "
    "shape_assertion stablehlo.dynamic_top_k stablehlo.dynamic_reduce_window".split()
)


@dataclasses.dataclass(frozen=True, repr=False)
class DisabledSafetyCheck:
    """A check of exported programs that the user turns off, by `disabled_checks`.

    In JAX: `jax.export.DisabledSafetyCheck`.
    """

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Do not check that the program runs on a platform it was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Allow a foreign function, whatever later versions make of it."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the foreign function that is allowed, or None."""
        kind, _, name = self._impl.partition(":")
        return name if kind == "custom_call" else None

    def __str__(self) -> str:
        return self._impl

    __repr__ = __str__


@dataclasses.dataclass(frozen=True, eq=False)
class Exported:
    """A function lowered to StableHLO for some types of arguments, on its own.

    `in_avals` and `out_avals` are the types of all arguments and results, in the order
    of `in_tree`, the tree of `(args, kwargs)`, and `out_tree`. The program takes the
    arguments at the positions `module_kept_var_idx`. Where several platforms were asked
    for, `mlir_module_serialized` is the first one's, and `_others` those of the rest.

    `nr_devices` says on how many devices the arguments lay. The program runs on as
    many, and cuts arguments and results as it was exported; if that is one, it runs on
    any number.

    In JAX: `jax.export.Exported`.
    """

    # The function as bytes; `serialization.py` defines it.
    serialize: ClassVar[Callable[..., bytearray]]

    fun_name: str
    in_tree: Any
    in_avals: tuple[language.ShapedArray, ...]
    out_tree: Any
    out_avals: tuple[language.ShapedArray, ...]
    platforms: tuple[str, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    mlir_module_serialized: bytes
    module_kept_var_idx: tuple[int, ...]
    calling_convention_version: int = maximum_supported_calling_convention_version
    nr_devices: int = 1
    ordered_effects: tuple = ()
    unordered_effects: tuple = ()
    uses_global_constants: bool = False
    _others: tuple[bytes, ...] = ()
    _get_vjp: Callable[[Exported], Exported] | None = None

    @property
    def in_shardings_hlo(self) -> tuple[None, ...]:
        """None for each argument: the program itself has its sharding."""
        return (None,) * len(self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple[None, ...]:
        """None for each result: the program itself has its sharding."""
        return (None,) * len(self.out_avals)

    def in_shardings_jax(self, mesh: Any) -> Sequence[None]:
        """The sharding of each argument on a mesh: None, as `in_shardings_hlo`."""
        return self.in_shardings_hlo

    def out_shardings_jax(self, mesh: Any) -> Sequence[None]:
        """The sharding of each result on a mesh: None, as `out_shardings_hlo`."""
        return self.out_shardings_hlo

    def mlir_module(self, serialized: bool = True) -> Any:
        """The StableHLO program as text; the module itself if not `serialized`."""
        with hlo_parts.context():
            module = portable_artifacts.from_bytes(self.mlir_module_serialized)
            if not serialized:
                return module
            return hlo.module_to_text(module, locations=True)

    def program_for(self, platform: str) -> bytes:
        """The program for a platform; ValueError if it was not exported for that."""
        modules = (self.mlir_module_serialized, *self._others)
        if platform in self.platforms:
            return modules[self.platforms.index(platform)]
        if DisabledSafetyCheck.platform() in self.disabled_safety_checks:
            return modules[0]
        raise errors.value_error(
            f"Function '{self.fun_name}' was exported for platforms "
            f"'{self.platforms}' but it is used on '{(platform,)}'. Export it with "
            f"platforms=({platform!r},), or several."
        )

    def has_vjp(self) -> bool:
        """Whether the derivative is there, as another `Exported`."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The derivative: from arguments and cotangents of results to cotangents.

        Arguments and results are flat. ValueError if it is not there.
        """
        if self._get_vjp is None:
            raise ValueError(
                f"No VJP is available for the exported function '{self.fun_name}'. "
                "Serialize it with `serialize(vjp_order=1)` to keep its derivative."
            )
        return self._get_vjp(self)

    @api_boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, now or inside of `jit` and `grad`.

        Raises ValueError for arguments of another tree, shape or dtype than exported,
        or on a platform that it was not exported for.
        """
        leaves, tree = trees.tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise errors.value_error(
                "The invocation args and kwargs must have the same pytree structure as "
                f"when the function '{self.fun_name}' was exported: it was exported "
                f"for {self.in_tree}, and called with {tree}."
            )
        outputs = _differentiable(self)(*leaves)
        return trees.tree_unflatten(self.out_tree, outputs)

    def argument_path(self, position: int) -> str:
        """What the user calls a flat argument: `args[0]['w']`."""
        return _argument_path(self.in_tree, position)

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"


def _argument_path(tree: Any, position: int) -> str:
    paths, _ = trees.tree_flatten_with_path(tree.unflatten(range(tree.num_leaves)))
    path, _ = paths[position]
    first = "args" if getattr(path[0], "idx", 0) == 0 else "kwargs"
    return first + trees.keystr(path[1:])


# ----------------------------------------------------------------------------------
# Exporting
# ----------------------------------------------------------------------------------


def default_export_platform() -> str:
    """The platform for which `export` lowers unless told otherwise."""
    return dispatch.lowering_platform(default_device())


def export(
    fun_jit: Any,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """A function that takes arguments, or their types, and returns an `Exported`.

    Args:
      fun_jit: what `jit` returned.
      platforms: names from "cpu", "cuda", "rocm", "tpu"; the default device's if None.
      disabled_checks: checks to leave out, made by `DisabledSafetyCheck`.

    Raises ValueError for a function that is not jitted, unknown platforms, or a foreign
    function in the program that later versions may not have; NotImplementedError for
    callbacks into Python, which other processes do not have.
    """
    if not hasattr(fun_jit, "trace") or not hasattr(fun_jit, "lower"):
        raise errors.value_error(
            f"Function to be exported must be the result of `jit` but is: {fun_jit}. "
            "Write `export(minijax.jit(f))`."
        )
    names = _checked_platforms(platforms)
    checks = tuple(disabled_checks)
    for check in checks:
        if not isinstance(check, DisabledSafetyCheck):
            raise errors.value_error(
                "disabled_checks holds checks such as "
                f"`DisabledSafetyCheck.custom_call('name')`, got {check!r}."
            )

    @api_boundary
    def do_export(*args: Any, **kwargs: Any) -> Exported:
        traced = fun_jit.trace(*args, **kwargs)
        return _export_traced(traced, names or (default_export_platform(),), checks)

    return do_export


def _checked_platforms(platforms: Sequence[str] | None) -> tuple[str, ...]:
    if platforms is None:
        return ()
    if isinstance(platforms, str) or not platforms:
        raise errors.value_error(
            "platforms is a sequence of names such as ('cpu', 'cuda'), got "
            f"{platforms!r}."
        )
    for name in platforms:
        if name not in PLATFORMS:
            raise errors.value_error(f"platform {name!r} is none of {PLATFORMS}.")
    return tuple(platforms)


def _export_traced(
    traced: Traced, platforms: tuple[str, ...], checks: tuple
) -> Exported:
    closed = traced.jaxpr
    if traced._traced.outer:
        raise language.escaped_tracer_error(traced._traced.outer[0])
    if discharge.has_refs(closed):
        raise NotImplementedError(
            f"'{traced.fun_name}' reads or writes refs of its caller, and an exported "
            "program has none. Take the content as an argument and return the new one."
        )
    place, _ = place_of.run(traced)
    if type(place) is Placement and place.mesh.size > 1:
        closed = _with_cuts(closed, place)
    avals = tuple(closed.in_avals)
    # The shapes of all arguments may tell the values of symbolic sizes.
    symbolic = symbolic_axes([aval.shape for aval in avals])
    keep_unused = traced._options.keep_unused or bool(symbolic)

    def describe(position: int, axis: int) -> str:
        return f"{_argument_path(traced.in_tree, position)}.shape[{axis}]"

    modules = []
    kept: tuple[int, ...] = ()
    for platform in platforms:
        lowered = lowering.lower_to_module(
            closed, traced.fun_name, platform, None, keep_unused
        )
        if lowered.host_callbacks:
            raise NotImplementedError(
                "serialization of host_callbacks is not yet implemented: "
                f"'{traced.fun_name}' calls Python functions of this process (by "
                "`pure_callback`, `debug.print` or the like). Export it without them."
            )
        _check_targets(lowered, checks)
        modules.append(programs.standalone(lowered, describe))
        kept = lowered.kept
    return Exported(
        traced.fun_name,
        traced.in_tree,
        avals,
        traced.out_tree,
        tuple(closed.out_avals),
        platforms,
        checks,
        modules[0],
        kept,
        nr_devices=place.mesh.size if type(place) is Placement else 1,
        _others=tuple(modules[1:]),
        _get_vjp=functools.cache(functools.partial(_derivative, closed)),
    )


def _with_cuts(closed: language.ClosedJaxpr, place: Placement) -> language.ClosedJaxpr:
    """The program, with constraints for arguments and results cut over Auto axes.

    Types have the cuts over Explicit axes already.
    """

    def cut(value: Any, sharding: Any) -> Any:
        if type(sharding) is NamedSharding and sharding.mesh.are_all_axes_auto:
            return with_sharding_constraint(value, sharding)
        return value

    def program(*args: Any) -> list[Any]:
        results = jaxpr_as_fun(closed)(*map(cut, args, place.in_shardings))
        return list(map(cut, results, place.out_shardings or [None] * len(results)))

    return make_jaxpr(program)(*closed.in_avals)


def _check_targets(lowered: lowering.Lowered, checks: Sequence) -> None:
    allowed = {check.is_custom_call() for check in checks}
    with lowered.context:
        targets = portable_artifacts.custom_call_targets(lowered.module)
    bad = sorted(targets - _LASTING_TARGETS - allowed)
    if bad:
        raise errors.value_error(
            "Cannot serialize code with custom calls whose targets have no "
            f"compatibility guarantees: {', '.join(bad)}. If the process that runs it "
            "has this version of jaxlib and the same registered functions, allow them: "
            f"disabled_checks=[DisabledSafetyCheck.custom_call({bad[0]!r})]."
        )


def _derivative(closed: language.ClosedJaxpr, primal: Exported) -> Exported:
    """The derivative of an exported function, made on demand."""
    count = len(primal.in_avals)

    def fun_vjp_jax(*args: Any) -> tuple:
        _, pullback = _vjp(jaxpr_as_fun(closed), *args[:count])
        return pullback(list(args[count:]))

    types = [*primal.in_avals, *(a.to_ct_aval() for a in primal.out_avals)]
    jitted = plain_jit(fun_vjp_jax, keep_unused=True)
    made = export(
        jitted,
        platforms=primal.platforms,
        disabled_checks=primal.disabled_safety_checks,
    )(*(ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in types))
    return dataclasses.replace(made, nr_devices=primal.nr_devices)


# ----------------------------------------------------------------------------------
# Calling
# ----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _differentiable(exported: Exported) -> Callable[..., Any]:
    """The program on flat arguments, with its exported derivative."""

    @custom_vjp
    def f_flat(*args: Any) -> list[Any]:
        return call_exported_p.bind(*args, exported=exported)

    def f_flat_vjp_fwd(*args: Any) -> tuple:
        return f_flat(*args), args

    def f_flat_vjp_bwd(args: tuple, cts: Any) -> tuple:
        derivative = exported.vjp()
        expected = derivative.in_avals[len(args) :]
        given = [
            np.zeros(aval.shape, dtypes.float0) if dtypes.is_float0(aval.dtype) else ct
            for ct, aval in zip(cts, expected)
        ]
        return tuple(map(_cut_as, derivative.call(*args, *given), args))

    f_flat.defvjp(f_flat_vjp_fwd, f_flat_vjp_bwd)
    return f_flat


def _cut_as(ct: Any, arg: Any) -> Any:
    """The cotangent, cut over an Explicit mesh as the type of its argument is."""
    expected = language.get_aval(arg).to_ct_aval()
    alike = cut_of(expected) == cut_of(language.get_aval(ct))
    alike = alike or dtypes.is_float0(expected.dtype)
    return ct if alike else reshard(ct, expected.cut)


call_exported_p = language.register(
    language.Primitive("call_exported", multiple_results=True)
)
call_exported_p.without("batch", "an exported program has the shapes that it has")
call_exported_p.without("jvp transpose", "`f_flat` has an exported derivative instead")


@call_exported_p.def_abstract_eval
def _call_type(*avals: Any, exported: Exported) -> list[Any]:
    values = check_arguments(exported, avals)
    return [
        aval.update(shape=tuple(evaluate(size, values) for size in aval.shape))
        for aval in exported.out_avals
    ]


def check_arguments(exported: Exported, avals: Sequence[Any]) -> dict[str, Any]:
    """The values of symbolic sizes.

    ValueError, naming the argument, for a rank, shape or dtype not exported.
    """
    name = exported.argument_path
    for position, (expected, actual) in enumerate(zip(exported.in_avals, avals)):
        if len(expected.shape) != len(actual.shape):
            raise errors.value_error(
                f"Rank mismatch for {name(position)}: expected {expected.shape} and "
                f"called with {actual.shape}"
            )
        if expected.dtype != actual.dtype:
            raise errors.value_error(
                f"Dtype mismatch for {name(position)}: expected {expected.dtype} and "
                f"called with {actual.dtype}"
            )
        for axis, sizes in enumerate(zip(expected.shape, actual.shape)):
            if not is_symbolic(sizes[0]) and sizes[0] != sizes[1]:
                raise errors.value_error(
                    f"Shape mismatch for {name(position)}.shape[{axis}] (expected same "
                    f"constant): expected {expected.shape} and called with "
                    f"{actual.shape}"
                )
    return solve(
        [aval.shape for aval in exported.in_avals],
        [aval.shape for aval in avals],
        lambda position, axis: f"{name(position)}.shape[{axis}]",
    )


@call_exported_p.def_lowering
def _call_lowering(ctx: Any, *operands: Any, exported: Exported) -> list[Any]:
    program, place = exported.program_for(ctx.platform), state.lowered_for
    count = place.mesh.size if type(place) is Placement else 1
    # While a call is being exported, its devices are not known: `place` is None.
    if place is not None and exported.nr_devices not in (1, count):
        raise errors.value_error(
            f"Function {exported.fun_name} was exported for {exported.nr_devices} "
            f"devices and is called in a context with {count} devices, which is not "
            "allowed. Put an argument on as many devices, or export it for one."
        )
    given = [operands[position] for position in exported.module_kept_var_idx]
    name = f"call_exported_{exported.fun_name}"
    return programs.call(ctx, exported, program, name, given)
