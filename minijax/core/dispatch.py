"""Dispatch: programs are compiled once, then launched; eager operations are programs.

The life of an eager operation, `x + y` outside of all transformations: `EvalTrace`
passes the primitive to `apply_primitive`, which looks for a `Program` under the types
of the arguments and the parameters. If there is none, it traces a program of one
equation (`eager_program`), lowers it (`mlir.py`), has XLA compile it (`compiled`), and
keeps it. Then the `Program` is launched on the arguments' buffers, and its results are
wrapped as Arrays. `jit` runs whole programs through the same two steps.

XLA checks almost nothing: a wrong dtype of the same size runs silently, wrong counts
crash the process. So nothing is launched whose types were not compared first.

In JAX: `jax/_src/dispatch.py` and `interpreters/pxla.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import compiler, dtypes, events, language, lowering, runtime
from .array import Array, default_device, first_device
from .events import Hook
from .language import ClosedJaxpr, Primitive, Tracer, get_aval
from .partial_eval import trace_to_jaxpr
from .rules import Params
from .state import state

_new = object.__new__

# ----------------------------------------------------------------------------------
# Arguments: values become buffers on a device
# ----------------------------------------------------------------------------------


@Hook
def place(
    values: Sequence[Any], avals: Sequence[Any], device: Any = None
) -> tuple[Any, bool, list[Any]]:
    """(the device to run on, whether it is committed, the buffers of the values).

    It is committed if one of the values was put there explicitly, by `device_put`.
    `device` is given when it is chosen already. By default everything is on the default
    device; `placing.py` attaches the rule for arrays that were put on another device or
    in another memory.
    """
    device = default_device() if device is None else device
    return device, False, [buffer_of(v, t, device) for v, t in zip(values, avals)]


def buffer_of(value: Any, aval: Any, device: Any) -> Any:
    """The jaxlib array of an Array, a NumPy array or a Python number."""
    return value._buffer if type(value) is Array else host_buffer(value, aval, device)


_number_types = frozenset(
    [bool, int, float, np.float32, np.float64, np.int32, np.int64, np.bool_]
)
_NUMBER_BUFFERS = 1024
_number_buffers: dict[tuple, Any] = {}


def host_buffer(value: Any, aval: Any, device: Any) -> Any:
    """A NumPy array or Python scalar as a jaxlib array of type `aval` on a device.

    The buffers of Python numbers are kept: the same few numbers occur again and again.
    """
    kind = type(value)
    if kind not in _number_types:
        physical = buffer_aval(aval)
        if dtypes.is_float0(aval.dtype):
            value = np.zeros(aval.shape, bool)
        array = np.asarray(value, physical.dtype)
        return runtime.put(array, physical, device, False)
    # 0.0 and -0.0 are equal but not the same.
    key = (value or repr(value), kind, aval, device)
    buffer = _number_buffers.get(key)
    if buffer is None or buffer.is_deleted():
        if len(_number_buffers) >= _NUMBER_BUFFERS:
            _number_buffers.clear()
        buffer = runtime.put(np.asarray(value, aval.dtype), aval, device, False)
        _number_buffers[key] = buffer
    return buffer


def buffer_aval(aval: Any) -> Any:
    """The type of an array's buffer; a random key has the type of its bits."""
    physical = language.physical_aval(aval)
    if isinstance(physical, language.ShapedArray) and dtypes.is_float0(physical.dtype):
        return language.ShapedArray(physical.shape, np.dtype(bool))
    return physical


def check_arguments(name: str, in_avals: Sequence[Any], args: Sequence[Any]) -> list:
    """The types of arguments, compared with what a program expects.

    TypeError, naming the position, when one differs in shape or dtype.
    """
    if len(in_avals) != len(args):
        raise TypeError(f"{name} takes {len(in_avals)} arrays, not {len(args)}")
    avals = []
    for position, (expected, arg) in enumerate(zip(in_avals, args)):
        if isinstance(arg, Tracer):
            raise language.escaped_tracer_error(arg)
        aval = get_aval(arg)
        if aval.shape != expected.shape or aval.dtype != expected.dtype:
            raise TypeError(
                f"argument {position} of {name} has type {aval.str_short()}, but the "
                f"program was made for {expected.str_short()}. Convert it, or call the "
                "jitted function."
            )
        avals.append(aval)
    return avals


# ----------------------------------------------------------------------------------
# Programs
# ----------------------------------------------------------------------------------


class Program:
    """A compiled program: a list of buffers in, a list of Arrays out.

    `kept` are the positions of the inputs that the executable takes (None: all), and
    `constants` the buffers of large closed-over arrays, which come before them.
    """

    def __init__(
        self,
        lowered: lowering.Lowered,
        executable: compiler.Executable,
        device: Any,
        committed: bool,
    ):
        self.name = lowered.name
        self.executable = executable
        self.lowered = lowered
        self.kept = lowered.kept if len(lowered.kept) < len(lowered.in_avals) else None
        self.out_avals = lowered.out_avals
        self.device = device
        sharding = runtime.single_device_sharding(device)
        # `Array._placed` of the results; `array.wrap_as` says what it means.
        usual = not committed and device == first_device()
        self.placed: Any = None if usual else sharding if committed else device
        avals = [buffer_aval(aval) for aval in self.out_avals]
        self.launch = self.launcher(avals, [sharding] * len(avals), committed)
        const_avals = [get_aval(const) for const in lowered.constants]
        _, _, self.constants = place.run(lowered.constants, const_avals, device)

    def launcher(
        self, out_avals: Sequence[Any], shardings: list[Any], committed: bool
    ) -> Callable[[list[Any]], list[Any]]:
        """The function that runs the executable: buffers in, buffers out."""
        return self.executable.launcher(out_avals, shardings, committed)

    def run(self, buffers: list[Any]) -> list[Array]:
        """Launch on buffers of checked types; the results may come later."""
        inputs = buffers
        if self.kept is not None:
            inputs = [buffers[index] for index in self.kept]
        if self.constants:
            inputs = self.constants + inputs
        if events.subscribers:
            events.emit("execute", program=self)
        arrays = []
        placed = self.placed
        for buffer, aval in zip(self.launch(inputs), self.out_avals):
            array = _new(Array)  # as `wrap_as` does, without the call
            array.aval = aval
            array._buffer = buffer
            array._placed = placed
            array._host = None
            arrays.append(array)
        return arrays

    __call__ = run


@Hook
def new_program(
    lowered: lowering.Lowered,
    executable: compiler.Executable,
    device: Any,
    committed: bool,
) -> Program:
    """The Program of an executable. `programs/launching.py` attaches one for programs
    with side effects, results in other memories, and the flags of debugging.
    """
    return Program(lowered, executable, device, committed)


@Hook
def compiled(
    closed: ClosedJaxpr,
    device: Any,
    committed: bool,
    name: str,
    donated: tuple[bool, ...] | None = None,
    keep_unused: bool = False,
    options: tuple = (),
) -> Any:
    """The Program of a jaxpr on a device, compiled when it is first asked for.

    `refs.py` attaches the version that makes jaxprs with refs pure first.
    """
    with _lock_of(closed):
        return _compiled(closed, device, committed, name, donated, keep_unused, options)


# One lock for each jaxpr being compiled: two threads that need the same one compile it
# once, and others do not wait.


@language.weakref_lru_cache
def _lock_of(closed: ClosedJaxpr) -> threading.RLock:
    return threading.RLock()


@language.weakref_lru_cache
def _compiled(
    closed: ClosedJaxpr,
    device: Any,
    committed: bool,
    name: str,
    donated: tuple[bool, ...] | None,
    keep_unused: bool,
    options: tuple,
) -> Program:
    start = time.perf_counter()
    platform = lowering_platform(device)
    lowered = lowering.lower_to_module(closed, name, platform, donated, keep_unused)
    if events.subscribers:
        seconds = time.perf_counter() - start
        events.emit("lower", name=name, seconds=seconds, in_avals=lowered.in_avals)
    return compile_lowered.run(lowered, device, committed, options)


@Hook
def load_or_compile(
    module: Any,
    devices: Sequence[Any],
    settings: compiler.CompileSettings,
    host_callbacks: Sequence[Callable[..., Any]],
) -> compiler.Executable:
    """The executable of a module. `caching.py` attaches the cache on disk."""
    return compiler.compile_module(module, devices, settings, host_callbacks)


@Hook
def compile_lowered(
    lowered: lowering.Lowered, device: Any, committed: bool, options: tuple = ()
) -> Program:
    """Compile a lowered program for a device.

    `programs/sharding/partitioned.py` attaches the version for several devices.
    """
    settings = compiler.CompileSettings(options=dict(options))
    with lowered.context:
        executable = load_or_compile.run(
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
    return new_program.run(lowered, executable, device, committed)


def lowering_platform(device: Any) -> str:
    """The name under which primitives register rules for the device's platform."""
    return {"gpu": "cuda"}.get(device.platform, device.platform)


def run_closed(
    closed: ClosedJaxpr, args: Sequence[Any], name: str, *settings: Any
) -> list[Array]:
    """Run a whole jaxpr on arguments of any kind, compiling it if need be.

    `settings` are the last parameters of `compiled`.
    """
    avals = check_arguments(name, closed.in_avals, args)
    device, committed, buffers = place.run(args, avals)
    return compiled.run(closed, device, committed, name, *settings)(buffers)


# ----------------------------------------------------------------------------------
# Eager operations
# ----------------------------------------------------------------------------------


def apply_primitive(primitive: Primitive, args: Sequence[Any], params: Params) -> Any:
    """Compute one operation now, by a compiled program of one equation.

    In JAX: `dispatch.py`, `apply_primitive`.
    """
    avals = []
    buffers = []
    # Usual: all are Arrays on the first device, or numbers.
    usual = state.default_device is None
    for arg in args:
        kind = type(arg)
        if kind is Array:
            avals.append(arg.aval)
            buffers.append(arg._buffer)
            if arg._placed is not None:
                usual = False
        elif isinstance(arg, Tracer):
            raise language.escaped_tracer_error(arg)
        else:
            aval = get_aval(arg)
            avals.append(aval)
            if usual and kind in _number_types:
                buffers.append(host_buffer(arg, aval, first_device()))
            else:
                usual = False
    key: tuple = (tuple(avals), tuple(params.items()), state.trace_key)
    device, committed = None, False
    if not usual:
        device, committed, buffers = place.run(args, avals)
        if committed or device != first_device():
            key = (key, device, committed)
    try:
        program = primitive.executables.get(key)
    except TypeError:
        language.type_of_application(primitive, tuple(avals), params)
        raise
    if program is None:
        device = device or first_device()
        program = eager_program(primitive, avals, params, device, committed)
        primitive.executables[key] = program
    outputs = program(buffers)
    return outputs if primitive.multiple_results else outputs[0]


language.run_eagerly.attach(apply_primitive)

_EAGER_CACHE_SIZE = 4096


def eager_program(
    primitive: Primitive, avals: list, params: dict, device: Any, committed: bool
) -> Program:
    """Compile the program of one equation."""
    if language.all_primitives.get(primitive.name) is not primitive:
        raise NotImplementedError(
            f"Evaluation rule for '{primitive}' not implemented: give it one with "
            "`def_impl`."
        )

    def fun(*args: Any) -> list[Any]:
        out = primitive.bind(*args, **params)
        return out if primitive.multiple_results else [out]

    debug_info = language.DebugInfo("eager", primitive.name)
    debug_info.check_tracing_allowed()
    jaxpr, consts = trace_to_jaxpr(fun, avals, debug_info)
    if len(primitive.executables) >= _EAGER_CACHE_SIZE:
        primitive.executables.clear()
    return compiled.run(ClosedJaxpr(jaxpr, consts), device, committed, primitive.name)
