"""Running programs: compile once, check the arguments, launch, wrap the results.

`EvalTrace` hands every eager operation to `apply_primitive`, which runs a program of
one equation, compiled once for each combination of types and parameters. `jit` runs
whole programs through the same `Program`.

XLA checks almost nothing: a wrong dtype of the same size runs silently, wrong counts
crash the process. So nothing is launched whose types were not compared first.

In JAX: `jax/_src/dispatch.py` and `interpreters/pxla.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from minijax.backend import compiler, platforms
from minijax.compile import mlir, tokens
from minijax.compile.placing import (
    buffer_aval,
    buffer_on,
    choose_device,
    host_buffer,
    in_other_memory,
    move_to_memories,
)
from minijax.language import core
from minijax.language.array import (
    Array,
    default_device,
    deleted_error,
    first_device,
    wrap_as,
)
from minijax.language.core import (
    ClosedJaxpr,
    Primitive,
    Tracer,
    escaped_tracer_error,
    get_aval,
    weakref_lru_cache,
)
from minijax.programs.debugging import finiteness
from minijax.support import events
from minijax.support.thread_state import state
from minijax.transforms import discharge
from minijax.transforms.partial_eval import trace_to_jaxpr

_new = object.__new__


class Program:
    """A compiled program: a list of buffers in, a list of Arrays out.

    `kept` are the positions of the inputs that the executable takes (None: all), and
    `constants` the buffers of large closed-over arrays, which come before them.
    """

    __slots__ = (
        "name",
        "executable",
        "launch",
        "kept",
        "constants",
        "out_avals",
        "placed",
        "moves",
        "device",
        "lowered",
    )

    def __init__(
        self,
        lowered: mlir.Lowered,
        executable: compiler.Executable,
        device: Any,
        committed: bool,
    ):
        self.name = lowered.name
        self.executable = executable
        self.lowered = lowered
        everything = len(lowered.kept) == len(lowered.in_avals)
        self.kept = None if everything else lowered.kept
        self.out_avals = lowered.out_avals
        self.device = device
        sharding = platforms.single_device_sharding(device)
        happens_to_be = None if device == first_device() else device
        self.placed: Any = sharding if committed else happens_to_be
        self.moves = any(in_other_memory(aval) for aval in lowered.out_avals)
        avals = [buffer_aval(aval) for aval in lowered.out_avals]
        self.launch = tokens.launcher(executable, lowered, avals, sharding, committed)
        self.constants = [buffer_on(const, device) for const in lowered.constants]

    def __call__(self, buffers: list[Any]) -> list[Array]:
        """Launch on buffers of checked types; the results may come later."""
        if state.debug_nans or state.debug_infs:
            return finiteness.run_checked(self, buffers)
        inputs = buffers
        if self.kept is not None:
            inputs = [buffers[index] for index in self.kept]
        if self.constants:
            inputs = self.constants + inputs
        if events.subscribers:
            events.emit("execute", program=self)
        try:
            outputs = self.launch(inputs)
        except Exception as error:
            for buffer in inputs:
                if buffer.is_deleted():
                    kind = core.ShapedArray(buffer.aval.shape, buffer.aval.dtype)
                    raise deleted_error(wrap_as(buffer, kind)) from error
            raise
        arrays = []
        placed = self.placed
        for buffer, aval in zip(outputs, self.out_avals):
            array = _new(Array)
            array.aval = aval
            array._buffer = buffer
            array._placed = placed
            array._host = None
            arrays.append(array)
        return move_to_memories(arrays, self.device) if self.moves else arrays


# ----------------------------------------------------------------------------------
# Compiling
# ----------------------------------------------------------------------------------


def compiled(
    closed: ClosedJaxpr,
    name: str,
    donated: tuple[bool, ...] | None,
    keep_unused: bool,
    device: Any,
    committed: bool,
    options: tuple = (),
) -> Program | discharge.StatefulProgram:
    """The executable of a program on a device, made when it is first asked for."""
    settings = (keep_unused, device, committed, options)
    with _lock_of(closed):
        if discharge.has_refs(closed):
            return discharge.stateful_program(
                closed,
                donated,
                lambda pure, flags: _compiled(pure, name, flags, *settings),
            )
        return _compiled(closed, name, donated, *settings)


@weakref_lru_cache
def _compiled(
    closed: ClosedJaxpr,
    name: str,
    donated: tuple[bool, ...] | None,
    keep_unused: bool,
    device: Any,
    committed: bool,
    options: tuple,
) -> Program:
    start = time.perf_counter()
    lowered = mlir.lower_to_module(
        closed, name, lowering_platform(device), donated, keep_unused
    )
    if events.subscribers:
        seconds = time.perf_counter() - start
        events.emit("lower", name=name, seconds=seconds, in_avals=lowered.in_avals)
    return compile_lowered(lowered, device, committed, options)


def compile_lowered(
    lowered: mlir.Lowered, device: Any, committed: bool, options: tuple = ()
) -> Program:
    """Compile a lowered program for a device."""
    settings = compiler.CompileSettings(
        options=dict(options), cache_directory=state.compilation_cache_dir
    )
    with lowered.context:
        executable = compiler.compile_module(
            lowered.module, [device], settings, lowered.host_callbacks
        )
    if events.subscribers:
        events.emit(
            "compile",
            name=lowered.name,
            seconds=executable.seconds,
            from_disk=executable.from_disk,
            executable=executable,
        )
    return Program(lowered, executable, device, committed)


def lowering_platform(device: Any) -> str:
    """The name under which primitives register rules for the device's platform."""
    return {"gpu": "cuda"}.get(device.platform, device.platform)


# One lock for each program being compiled, so that two threads that need the same one
# compile it once, and others do not wait.


@weakref_lru_cache
def _lock_of(closed: ClosedJaxpr) -> threading.RLock:
    return threading.RLock()


# ----------------------------------------------------------------------------------
# Eager operations
# ----------------------------------------------------------------------------------


def apply_primitive(
    primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
) -> Any:
    """Compute one operation now, by a compiled program of one equation.

    In JAX: `dispatch.py`, `apply_primitive`.
    """
    avals = []
    buffers = []
    usual = state.default_device is None
    for arg in args:
        if type(arg) is Array:
            avals.append(arg.aval)
            buffers.append(arg._buffer)
            if arg._placed is not None:
                usual = False
        elif isinstance(arg, Tracer):
            raise escaped_tracer_error(arg)
        else:
            avals.append(get_aval(arg))
            buffers.append(None)
    key = (tuple(avals), tuple(params.items()), state.trace_key)
    if usual:
        try:
            program = primitive.executables.get(key)
        except TypeError:
            core.type_of_application(primitive, tuple(avals), params)
            raise
        if program is None:
            program = eager_program(primitive, key, params, default_device(), False)
            primitive.executables[key] = program
        device = program.device
        for index, buffer in enumerate(buffers):
            if buffer is None:
                buffers[index] = host_buffer(args[index], avals[index], device)
    else:
        device, committed = choose_device(args)
        placed_key = (key, device, committed)
        program = primitive.executables.get(placed_key)
        if program is None:
            program = eager_program(primitive, key, params, device, committed)
            primitive.executables[placed_key] = program
        buffers = [buffer_on(arg, device) for arg in args]
    outputs = program(buffers)
    return outputs if primitive.multiple_results else outputs[0]


_EAGER_CACHE_SIZE = 4096


def eager_program(
    primitive: Primitive, key: tuple, params: dict, device: Any, committed: bool
) -> Program | discharge.StatefulProgram:
    """Compile the program of one equation."""
    if core.all_primitives.get(primitive.name) is not primitive:
        raise NotImplementedError(
            f"Evaluation rule for '{primitive}' not implemented: give it one with "
            "`def_impl`."
        )
    avals = key[0]

    def fun(*args: Any) -> list[Any]:
        out = primitive.bind(*args, **params)
        return out if primitive.multiple_results else [out]

    debug_info = core.DebugInfo("eager", primitive.name)
    debug_info.check_tracing_allowed()
    jaxpr, consts = trace_to_jaxpr(fun, avals, debug_info)
    closed = ClosedJaxpr(jaxpr, consts)
    if len(primitive.executables) >= _EAGER_CACHE_SIZE:
        primitive.executables.clear()
    return compiled(closed, primitive.name, None, False, device, committed)


core.apply_eagerly.append(apply_primitive)


def check_arguments(
    name: str, in_avals: Sequence[Any], args: Sequence[Any]
) -> list[Any]:
    """The types of arguments, compared with what a program expects.

    TypeError, naming the position, when one differs in shape or dtype.
    """
    if len(in_avals) != len(args):
        raise TypeError(
            f"{name} takes {len(in_avals)} arrays but was given {len(args)}"
        )
    avals = []
    for position, (expected, arg) in enumerate(zip(in_avals, args)):
        if isinstance(arg, Tracer):
            raise escaped_tracer_error(arg)
        aval = get_aval(arg)
        if aval.shape != expected.shape or aval.dtype != expected.dtype:
            raise TypeError(
                f"argument {position} of {name} has type {aval.str_short()}, but the "
                f"program was made for {expected.str_short()}"
            )
        avals.append(aval)
    return avals


def run_closed(
    closed: ClosedJaxpr,
    args: Sequence[Any],
    name: str,
    donated: tuple[bool, ...] | None = None,
    keep_unused: bool = False,
    options: tuple = (),
) -> list[Array]:
    """Run a whole program on arguments of any kind, compiling it if need be."""
    check_arguments(name, closed.in_avals, args)
    device, committed = choose_device(args)
    program = compiled(closed, name, donated, keep_unused, device, committed, options)
    return program([buffer_on(arg, device) for arg in args])
