"""Ahead of time: a jitted function traced, lowered and compiled step by step.

    traced = jit(f).trace(x)      # .jaxpr
    lowered = traced.lower()      # .as_text(): StableHLO
    compiled = lowered.compile()  # .as_text(): optimised HLO; compiled(x) runs it
    lowered.compile(target="h100")  # what another machine would run

Arguments of `trace` and `lower` may be `ShapeDtypeStruct`s.

In JAX: `jax/_src/stages.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from minijax.backend import executables, unoptimized
from minijax.backend.build_settings import BuildSettings
from minijax.compile import cross_compiling, tokens
from minijax.compile.compiler_options import check_options
from minijax.compile.placing import buffer_on, device_put
from minijax.core import compiler, dispatch, errors, language, lowering, runtime
from minijax.core import jit as pjit
from minijax.core.array import Array, default_device
from minijax.core.events import Hook
from minijax.core.jit import JitFunction
from minijax.core.trees import tree_flatten, tree_leaves, tree_unflatten
from minijax.support.devices.layouts import Format, Layout, layout_of_xla
from minijax.support.memory_spaces import sharding_in
from minijax.values.ref_avals import ShapeDtypeStruct

if TYPE_CHECKING:
    from minijax.backend.targets import Target


@dataclass(frozen=True, slots=True)
class ArgInfo:
    """What is known of an argument before the call. In JAX: `jax.stages.ArgInfo`."""

    _aval: Any
    donated: bool

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)


class _Stage:
    """The arguments and the result of a function, for each of its three stages."""

    _traced: Any

    in_tree = property(lambda self: self._traced.in_tree)
    out_tree = property(lambda self: self._traced.out_tree)
    out_info = property(lambda self: self._traced.out_info)
    _closed = property(lambda self: self._traced.jaxpr)
    _donated = property(lambda self: self._traced._donated)

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, as the arguments stand: `(args, kwargs)`."""
        return tree_unflatten(self.in_tree, self._closed.in_avals)

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each argument, as the arguments stand: `(args, kwargs)`."""
        infos = map(ArgInfo, self._closed.in_avals, self._donated)
        return tree_unflatten(self.in_tree, list(infos))

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The positions of the donated ones among the flat arguments."""
        return tuple(i for i, donated in enumerate(self._donated) if donated)


@runtime_checkable
class Wrapped(Protocol):
    """A function that can be called, or traced and lowered: what `jit` returns.

    In JAX: `jax.stages.Wrapped`.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Trace, lower and compile the function if need be, and run it."""
        ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The function traced for these arguments."""
        ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function lowered for these arguments."""
        ...


# The platforms that programs are lowered for.
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")

# XLA's options by name, as `compile` and `jit(compiler_options=)` take them.
CompilerOptions = dict[str, str | bool]


class Traced(_Stage):
    """A function traced for one kind of arguments. In JAX: `jax.stages.Traced`."""

    def __init__(self, traced: Any, bound: Any, options: Any):
        self._traced = traced
        self._bound = bound
        self._options = options

    @property
    def jaxpr(self) -> language.ClosedJaxpr:
        """The program."""
        return self._traced.closed

    fun_name = property(lambda self: self._traced.params["name"])
    in_tree = property(lambda self: self._bound.tree)
    out_tree = property(lambda self: self._traced.out_tree)
    effects = property(lambda self: self.jaxpr.effects)
    _closed = property(lambda self: self._traced.closed)
    _donated = property(lambda self: self._traced.params["donated_invars"])

    @property
    def out_info(self) -> Any:
        """The result's tree of `ShapeDtypeStruct`s."""
        shapes = list(map(ShapeDtypeStruct.of, self.jaxpr.out_avals))
        return tree_unflatten(self.out_tree, shapes)

    @property
    def out_avals(self) -> Any:
        """The types of the result, in its tree."""
        return tree_unflatten(self.out_tree, self.jaxpr.out_avals)

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None) -> Lowered:
        """The program as StableHLO, for the default device's platform or a given one.

        Raises ValueError for several platforms, or for an unknown one.
        """
        if lowering_platforms is not None and len(lowering_platforms) != 1:
            raise ValueError(
                "lower takes one platform, such as lowering_platforms=('cuda',); got "
                f"{lowering_platforms}"
            )
        if self._traced.outer:
            raise language.escaped_tracer_error(self._traced.outer[0])
        asked = _known_platform(lowering_platforms[0]) if lowering_platforms else None
        settings = pjit.settings_of(self._traced.params)
        request = dispatch.CompileRequest(*place_of.run(self), *settings)
        if asked is None and request.place.platform is None:
            raise errors.value_error(
                "Passing lowering_platforms to lower is required where only an "
                "AbstractMesh is named: `lower(lowering_platforms=('cpu',))`."
            )
        lowered = dispatch.compilation.lower(self.jaxpr, request, asked)
        marked = mark_shardings.run(lowered, request.place)
        return Lowered(self, lowered, asked, request, marked)


def trace(self: JitFunction, *args: Any, **kwargs: Any) -> Traced:
    """The function traced for these arguments."""
    return Traced(*self.trace_call(args, kwargs), self._options)


def lower(self: JitFunction, *args: Any, **kwargs: Any) -> Lowered:
    """The function lowered to StableHLO for these arguments."""
    return trace(self, *args, **kwargs).lower()


def eval_shape(self: JitFunction, *args: Any, **kwargs: Any) -> Any:
    """The result's tree of `ShapeDtypeStruct`s, without computing."""
    return trace(self, *args, **kwargs).out_info


def clear_cache(self: JitFunction) -> None:
    """Forget all traced and compiled programs of the function."""
    self._caches.clear()


def _cache_size(self: JitFunction) -> int:
    """How many kinds of calls were compiled."""
    return len(self._caches.calls)


# The methods of jitted functions beside the call; `assembly.py` attaches them.
def __reduce__(self: JitFunction) -> tuple:
    return (JitFunction, (self._fun, self._options))


JIT_METHODS = {
    method.__name__: method
    for method in (trace, lower, eval_shape, clear_cache, _cache_size, __reduce__)
}


@Hook
def place_of(traced: Traced) -> tuple[Any, bool]:
    """Where a program is lowered to run, and whether an argument is committed to it.

    Called by `Traced.lower`. `programs/sharding/ahead_of_time.py` attaches it; by
    default a program runs on the default device.
    """
    return default_device(), False


@Hook
def place_on(place: Any, devices: Any) -> Any:
    """The place of a program that is compiled for `devices`; None: for its own.

    Called by `Lowered.compile`. `programs/sharding/ahead_of_time.py` attaches it.
    """
    return place


@Hook
def mark_shardings(lowered: lowering.Lowered, place: Any) -> BuildSettings:
    """Write the shardings of arguments and results into a lowered program.

    Returns how it is compiled for so many devices. Called by `Traced.lower`.
    `programs/sharding/ahead_of_time.py` attaches it.
    """
    return cross_compiling.ONE_DEVICE


@dataclass(eq=False, repr=False)
class Lowered(_Stage):
    """A program as StableHLO. In JAX: `jax.stages.Lowered`."""

    _traced: Traced
    _lowered: lowering.Lowered
    _asked: str | None  # the platform that the user asked for
    _request: dispatch.CompileRequest
    _settings: BuildSettings

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as "stablehlo", or as "hlo": what XLA makes of it at first.

        Of one lowered for a TPU "mosaic", and for a GPU "triton", gives the kernels
        that `pallas_call` made. With `debug_info`, the user's lines are in it. Raises
        ValueError for another dialect.
        """
        kernels = cross_compiling.kernels(self._lowered, dialect)
        if kernels is not None:
            return kernels
        if _known_dialect(dialect) == "hlo":
            return unoptimized.text(self._hlo(), debug_info)
        return self._lowered.text(locations=debug_info)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The MLIR module itself, or for "hlo" jaxlib's `XlaComputation`."""
        return self._hlo() if _known_dialect(dialect) == "hlo" else self._lowered.module

    def _hlo(self) -> Any:
        with self._lowered.context:
            return unoptimized.computation(self._lowered.module)

    def compile(
        self,
        compiler_options: dict[str, Any] | None = None,
        *,
        device_assignment: tuple[Any, ...] | None = None,
        target: str | None = None,
    ) -> Compiled | CompiledForTarget:
        """The program compiled by XLA for the default device, or for a target.

        `device_assignment` names other devices, as a tuple of one, or of as many as the
        mesh has for which the program was lowered.

        A target is a machine that need not be there: "h100", several such as "h100:8",
        or a slice of TPUs such as "tpu-v5e:2x2"; the program can be looked at, not run.
        Its compiler comes with `minijax[h100]` and `minijax[tpu]`. "cpu" is the CPU of
        this machine. A program over several devices takes as many of the target's, in
        the order of its mesh.

        Raises JaxRuntimeError, XLA's own error, when it refuses the program or an
        option, TypeError for options that are no dict, and
        ValueError when the program was lowered for another platform or there is no such
        target. NotImplementedError if the program calls functions of this process.
        """
        compiler_options = check_options(compiler_options)
        if target is not None and device_assignment is not None:
            raise ValueError("give target= or device_assignment=, not both.")
        if target is not None and not (found := cross_compiling.find(target)).runs:
            return self._compile_for(found, compiler_options)
        request = self._request
        device = place_on.run(request.place, device_assignment)
        request = request._replace(place=device)
        if self._lowered.platform != dispatch.lowering_platform(device):
            raise ValueError(
                f"the program was lowered for {self._lowered.platform}, but the "
                f"device to run on is {device}"
            )
        options = {**dict(request.options), **compiler_options}
        request = request._replace(options=tuple(sorted(options.items())))
        program = dispatch.compilation.compile(
            self._traced.jaxpr, request, self._lowered
        )
        return Compiled(self._traced, program)

    def _compile_for(self, target: Target, options: Any) -> CompiledForTarget:
        lowered, settings = self._lowered, self._settings
        if lowered.platform != target.platform:
            if self._asked is not None:
                raise ValueError(
                    f"the program was lowered for {self._asked}, and target="
                    f"{target.name!r} needs lowering_platforms=({target.platform!r},), "
                    "or none given."
                )
            whole = self._traced.lower(lowering_platforms=(target.platform,))
            lowered, settings = whole._lowered, whole._settings
        given = {**dict(self._traced._options.compiler_options), **(options or {})}
        settings = replace(settings, options=given, fast_compile=False)
        executable = cross_compiling.compile_for(target, lowered, settings)
        return CompiledForTarget(
            self._traced, target, lowered, settings, executable, self._request.place
        )

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate for the program before it is optimised: flops and others.

        The CPU's client makes it; the clients of plugins cannot.
        """
        return unoptimized.cost_analysis(self._hlo(), runtime.get_backend("cpu"))


def _known_dialect(dialect: str | None) -> str:
    if dialect not in (None, "stablehlo", "hlo"):
        raise ValueError(
            f"unknown dialect: {dialect!r}. A lowered program can be shown as "
            "'stablehlo' or 'hlo'."
        )
    return dialect or "stablehlo"


def _known_platform(platform: str) -> str:
    if platform not in PLATFORMS:
        raise errors.value_error(
            f"lowering_platforms holds one of {PLATFORMS}, got {platform!r}."
        )
    return platform


class _CompiledStage(_Stage):
    """What is known of a program that XLA has compiled."""

    _executable: Any

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate: flops, bytes accessed and others; empty if it has none."""
        return executables.cost_analysis(self._executable)

    def memory_analysis(self) -> Any:
        """Bytes of arguments, outputs, temporaries and code."""
        return executables.memory_stats(self._executable)

    def runtime_executable(self) -> Any:
        """jaxlib's executable; that for a target is loaded by no device."""
        return self._executable.loaded


class Compiled(_CompiledStage):
    """A compiled program; call it with arguments of the kind it was compiled for.

    In JAX: `jax.stages.Compiled`.
    """

    def __init__(self, traced: Traced, program: Any):
        self._traced = traced
        self._program = program

    _executable = property(lambda self: self._program.executable)

    def as_text(self) -> str:
        """The optimised HLO: what the machine runs."""
        return self._executable.hlo_text()

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument, `(args, kwargs)`; None for unused ones."""
        return tree_unflatten(self.in_tree, self._input_shardings())

    @property
    def output_shardings(self) -> Any:
        """The sharding of each array of the result, in its tree."""
        return tree_unflatten(self.out_tree, self._output_shardings())

    @property
    def out_info(self) -> Any:
        """The result's tree of `ShapeDtypeStruct`s, with layouts and shardings."""
        pairs = zip(self._traced.jaxpr.out_avals, tree_leaves(self.output_formats))
        infos = [ShapeDtypeStruct(a.shape, a.dtype, sharding=one) for a, one in pairs]
        return tree_unflatten(self.out_tree, infos)

    @property
    def input_formats(self) -> Any:
        """Layout and sharding of each argument, `(args, kwargs)`; None if unused.

        XLA does not tell the layouts of a program with ordered effects: they are None.
        """
        shardings = self._input_shardings()
        layouts: list[Any] = [None] * len(shardings)
        kept = self._program.lowered.kept
        # Constants come before the arguments; refs that are closed over come last.
        found = self._layouts("get_parameter_layouts")
        for position, layout in zip(kept, found[len(found) - len(kept) :]):
            if position < len(layouts):
                layouts[position] = layout
        return tree_unflatten(self.in_tree, list(map(Format, layouts, shardings)))

    @property
    def output_formats(self) -> Any:
        """Layout and sharding of each array of the result, in its tree."""
        shardings = self._output_shardings()
        layouts = self._layouts("get_output_layouts") or repeat(None)
        return tree_unflatten(self.out_tree, list(map(Format, layouts, shardings)))

    def _input_shardings(self) -> list[Any]:
        kept = self._program.lowered.kept
        avals = self._traced.jaxpr.in_avals
        spread = getattr(self._program, "in_shardings", None)
        if spread is not None:
            of_kept = dict(zip(kept, spread))
            return [of_kept.get(position) for position in range(len(avals))]
        return [
            self._sharding_of(aval) if position in kept else None
            for position, aval in enumerate(avals)
        ]

    def _output_shardings(self) -> list[Any]:
        spread = getattr(self._program, "out_shardings", None)
        if spread is not None:
            return list(spread)
        return [self._sharding_of(aval) for aval in self._traced.jaxpr.out_avals]

    def _sharding_of(self, aval: Any) -> Any:
        space = getattr(aval, "memory_space", None)
        return sharding_in(space, self._program.device)

    def _layouts(self, name: str) -> list[Layout]:
        if tokens.ordered(self._program.lowered.effects):
            return []
        return list(map(layout_of_xla, getattr(self.runtime_executable(), name)()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Raises TypeError when the arguments' tree, shapes or dtypes are others than the
        ones it was compiled for: nothing is compiled again.
        """
        return self.call(self, *args, **kwargs)

    @staticmethod
    def call(*args: Any, **kwargs: Any) -> Any:
        """`Compiled.call(compiled, *args, **kwargs)`: what calling it does."""
        compiled, *given = args
        return compiled._run(tuple(given), kwargs)

    def _run(self, args: tuple, kwargs: dict) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        for leaf in leaves:
            if isinstance(leaf, language.Tracer):
                raise errors.type_error(
                    "Cannot apply transformations to a function lowered and compiled "
                    f"for a particular signature: {self._traced.fun_name} was called "
                    f"with a {type(leaf).__name__}. Transform the jitted function, and "
                    "compile what comes out."
                )
        if tree != self.in_tree:
            raise TypeError(
                "Function compiled with input pytree does not match the input pytree "
                f"it was called with: it was compiled for {self.in_tree}, and called "
                f"with {tree}."
            )
        name = self._traced.fun_name
        dispatch.check_arguments(name, self._traced.jaxpr.in_avals, leaves)
        device = getattr(self._traced._options, "device", None)
        if device is not None:  # that of `jit(f, device=)`
            leaves = [device_put(leaf, device) for leaf in leaves]
        self._check_places(leaves)
        if hasattr(self._program, "buffers_of"):
            buffers = self._program.buffers_of(leaves)
        else:
            buffers = [buffer_on(leaf, self._program.device) for leaf in leaves]
        return tree_unflatten(self.out_tree, self._program(buffers))

    def _check_places(self, leaves: Sequence[Any]) -> None:
        """ValueError for an argument that is committed to another place."""
        wanted = self._input_shardings()
        for position, leaf in enumerate(leaves):
            needed = wanted[position]
            if type(leaf) is not Array or not leaf.committed or needed is None:
                continue
            what, passed, place = "sharding", leaf.sharding, needed
            if leaf.sharding.is_equivalent_to(needed, leaf.ndim):
                what, passed, place = "layout", leaf._placed.layout, needed.layout
                if passed == place:
                    continue
            name = self._traced.jaxpr.jaxpr.debug_info.arg_names[position]
            raise errors.value_error(
                f"Computation was compiled for input {what}s that disagree with the "
                f"{what}s of arguments passed to it: argument {name} of "
                f"{self._traced.fun_name} with shape {leaf.aval.str_short()}:\n"
                f"  Passed {what}: {passed or 'row-major'}\n"
                f"  Required {what}: {place or 'row-major'}\n"
                "Move it there with `minijax.device_put`."
            )


@dataclass(eq=False, repr=False)
class CompiledForTarget(_CompiledStage):
    """A program compiled for a machine that need not be there: to be looked at.

    `target` names the machine. In JAX: `jax.stages.Compiled` of a topology's devices.
    """

    _traced: Traced
    _target: Target
    _lowered: lowering.Lowered
    _settings: BuildSettings
    _executable: compiler.Executable
    _place: Any = None

    target = property(lambda self: self._target.name)

    def as_text(self, dialect: str | None = None) -> str:
        """The optimised HLO, or with "ptx" the kernels of an H100 in NVIDIA's assembly.

        "mosaic" gives those kernels of a TPU that `pallas_call` made, as Mosaic's code,
        "triton" those of a GPU. Raises ValueError for another dialect, or one that the
        target does not have.
        """
        if dialect in (None, "hlo"):
            return self._executable.hlo_text()
        if dialect == "ptx" and self._target.platform == "cuda":
            return cross_compiling.ptx(self._target, self._lowered, self._settings)
        kernels = cross_compiling.kernels(self._lowered, dialect)
        if kernels is not None:
            return kernels
        own = {"cuda": "'hlo', 'triton' and 'ptx'", "tpu": "'hlo' and 'mosaic'"}
        known = own.get(self._target.platform, "'hlo'")
        raise ValueError(
            f"a program for target={self.target!r} can be shown as {known}, got "
            f"{dialect!r}"
        )

    @property
    def input_shardings(self) -> Any:
        """What was asked for each argument, `(args, kwargs)`; None where nothing was.

        Meshes are those of this process; the target's devices take their places.
        """
        given = getattr(self._place, "in_shardings", None)
        avals = self._traced.jaxpr.in_avals
        found = [None] * len(avals) if given is None else list(given)
        return tree_unflatten(self.in_tree, found)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: RuntimeError."""
        raise RuntimeError(
            f"{self._traced.fun_name} was compiled for target={self.target!r}, so it "
            "cannot be called: this process has no such device. Look at it with "
            "as_text(), memory_analysis() and cost_analysis(); to run the function, "
            "compile it without a target."
        )
