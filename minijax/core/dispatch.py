"""Dispatch: programs are compiled once, then launched; eager operations are programs.

The life of an eager operation, `x + y` outside of all transformations: `EvalTrace`
passes the primitive to `apply_primitive`, which looks for a `Program` under the types
of the arguments and the parameters. If there is none, it traces a program of one
equation (`eager_program`), and the `Compilation` lowers it (`lowering.py`), compiles it
with XLA, and caches it. Then the `Program` is launched on the arguments' buffers, and
its results are wrapped as Arrays. `jit` runs whole programs through the same two steps.

XLA checks almost nothing: a wrong dtype of the same size gives wrong numbers, a wrong
number of arguments crashes the process. So the types are compared before each launch.

In JAX: `jax/_src/dispatch.py` and `interpreters/pxla.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import compiler, dtypes, events, language, lowering, runtime
from .array import Array, default_device, first_device
from .language import ClosedJaxpr, Primitive, Tracer, get_aval, physical_aval
from .partial_eval import trace_to_jaxpr
from .rules import Params
from .state import state

_new = object.__new__

# ----------------------------------------------------------------------------------
# Arguments: values become buffers on a device
# ----------------------------------------------------------------------------------


def prepare(values: Sequence[Any]) -> tuple[tuple, list[Any] | None, tuple | None]:
    """(types, buffers, place) of the arguments of a call that is computed now.

    `place` is (device, whether it is committed), or None if it is the first device and
    no value is committed to it. `buffers` is None if a value is a tracer.
    """
    avals: list[Any] = []
    buffers: list[Any] = []
    on_host = []  # the positions of numbers and NumPy arrays
    usual = state.default_device is None
    for value in values:
        if type(value) is Array:
            avals.append(value.aval)
            buffers.append(value._buffer)
            if value._placed is not None:
                usual = False
            continue
        on_host.append(len(avals))
        avals.append(get_aval(value))
        buffers.append(None)
        usual = usual and (type(value) in _number_types or type(value) is np.ndarray)
    if usual:
        for at in on_host:
            buffers[at] = host_buffer(values[at], avals[at], first_device())
        return tuple(avals), buffers, None
    if any(map(language.is_tracer, values)):
        return tuple(avals), None, None
    device, committed, buffers = compilation.place(values, avals)
    usual = not committed and device == first_device()
    return tuple(avals), buffers, None if usual else (device, committed)


def buffer_of(value: Any, aval: Any, device: Any) -> Any:
    """The jaxlib array of an Array, a NumPy array or a Python number."""
    return value._buffer if type(value) is Array else host_buffer(value, aval, device)


_number_types = frozenset(
    [bool, int, float, np.float32, np.float64, np.int32, np.int64, np.bool_]
)
_NUMBER_BUFFERS = 1024
_number_buffers: dict[tuple, Any] = {}


def forget_numbers() -> None:
    """Drop the cached buffers of numbers, so that the next use copies them again."""
    _number_buffers.clear()


def host_buffer(value: Any, aval: Any, device: Any) -> Any:
    """A NumPy array or Python scalar as a jaxlib array of type `aval` on a device.

    The buffers of numbers are cached, because the same few numbers recur.
    """
    kind = type(value)
    if kind not in _number_types:
        physical = physical_aval(aval)
        if dtypes.is_float0(aval.dtype):
            value = np.zeros(aval.shape, bool)
        array = np.asarray(value, physical.dtype)
        return runtime.put(array, physical, device, False)
    # 0.0 and -0.0 are equal, but need two buffers.
    key = (value or repr(value), kind, aval, device)
    buffer = _number_buffers.get(key)
    if buffer is None or buffer.is_deleted():
        if len(_number_buffers) >= _NUMBER_BUFFERS:
            _number_buffers.clear()
        buffer = runtime.put(np.asarray(value, aval.dtype), aval, device, False)
        _number_buffers[key] = buffer
    return buffer


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
        avals = [physical_aval(aval) for aval in self.out_avals]
        self.launch = self.launcher(avals, [sharding] * len(avals), committed)
        const_avals = [get_aval(const) for const in lowered.constants]
        _, _, self.constants = compilation.place(lowered.constants, const_avals, device)

    def launcher(
        self, out_avals: Sequence[Any], shardings: list[Any], committed: bool
    ) -> Callable[[list[Any]], list[Any]]:
        """The function that runs the executable: buffers in, buffers out."""
        return self.executable.launcher(out_avals, shardings, committed)

    def run(self, buffers: list[Any]) -> list[Array]:
        """Launch on buffers of checked types, asynchronously."""
        inputs = buffers
        if self.kept is not None:
            inputs = [buffers[index] for index in self.kept]
        if self.constants:
            inputs = self.constants + inputs
        arrays = []
        placed = self.placed
        for buffer, aval in zip(self.launch(inputs), self.out_avals):
            array = _new(Array)  # as `wrap_as` does, without the call
            array.aval = aval
            array._buffer = buffer
            array._placed = placed
            array._host = None
            arrays.append(array)
        if events.subscribers:
            events.emit("execute", program=self, results=arrays)
        return arrays

    __call__ = run


class CompileRequest(NamedTuple):
    """How a jaxpr is compiled: the key of its programs.

    Attributes:
      place: the device to run on, or an object that stands for several devices.
      committed: whether an argument was put there by `device_put`.
      name: the name of the program, for messages and profiles.
      donated: for each argument, whether it is donated; None if no argument is.
      keep_unused: whether the executable takes the unused arguments too.
      options: pairs (name, value) of XLA's options.
      out_shardings: the argument of `jit`; None if it was not given.
      layouts: those of arguments and of results; None if none was given.
    """

    place: Any
    committed: bool
    name: str
    donated: tuple[bool, ...] | None = None
    keep_unused: bool = False
    options: tuple = ()
    out_shardings: tuple | None = None
    layouts: tuple[tuple, tuple] | None = None


class Compilation:
    """The steps from a jaxpr to a Program, for pure programs on one device.

    The library has one subclass, in `programs/compiling.py`, for all other programs.
    """

    def place(
        self, values: Sequence[Any], avals: Sequence[Any], device: Any = None
    ) -> tuple[Any, bool, list[Any]]:
        """(the device to run on, whether it is committed, the buffers of the values).

        It is committed if one of the values was put there explicitly, by `device_put`.
        `device` is the device to run on, if the caller has chosen it.
        """
        device = default_device() if device is None else device
        return device, False, [buffer_of(v, t, device) for v, t in zip(values, avals)]

    def compile(
        self, closed: ClosedJaxpr, request: CompileRequest, lowered: Any = None
    ) -> Any:
        """The Program of a jaxpr, compiled at the first request and then cached.

        `lowered` is the lowered program, if the caller has it.
        """
        programs, lock = _programs_of(closed)
        with lock:
            program = programs.get(request)
            if program is None:
                program = programs[request] = self.make(closed, request, lowered)
            return program

    def make(self, closed: ClosedJaxpr, request: CompileRequest, lowered: Any) -> Any:
        """Lower the jaxpr if `lowered` is None, compile it, and make the Program."""
        lowered = self.lower(closed, request) if lowered is None else lowered
        executable = self.load(lowered, request)
        if events.subscribers:
            events.emit(
                "compile",
                name=lowered.name,
                seconds=executable.seconds,
                from_disk=executable.from_disk,
                executable=executable,
            )
        return self.program(lowered, executable, request)

    def lower(
        self, closed: ClosedJaxpr, request: CompileRequest, platform: str | None = None
    ) -> lowering.Lowered:
        """The StableHLO of a jaxpr, for the device's platform or another one."""
        start = time.perf_counter()
        platform = platform or lowering_platform(request.place)
        lowered = lowering.lower_to_module(
            closed, request.name, platform, request.donated, request.keep_unused
        )
        if events.subscribers:
            seconds = time.perf_counter() - start
            avals = lowered.in_avals
            events.emit("lower", name=request.name, seconds=seconds, in_avals=avals)
        return lowered

    def load(
        self, lowered: lowering.Lowered, request: CompileRequest
    ) -> compiler.Executable:
        """The executable that XLA compiles from a lowered program."""
        settings = compiler.CompileSettings(options=dict(request.options))
        with lowered.context:
            return compiler.compile_module(
                lowered.module, [request.place], settings, lowered.host_callbacks
            )

    def program(
        self,
        lowered: lowering.Lowered,
        executable: compiler.Executable,
        request: CompileRequest,
    ) -> Program:
        """The Program of an executable."""
        return Program(lowered, executable, request.place, request.committed)


compilation = Compilation()


def compile_by(library: Compilation) -> None:
    """Let the library's subclass compile all programs; RuntimeError if called twice."""
    global compilation
    if type(compilation) is not Compilation:
        raise RuntimeError(f"programs are compiled by {compilation} already")
    compilation = library


# Each jaxpr has its own lock: two threads that need the same jaxpr compile it once, and
# threads that need another one do not wait.


@language.weakref_lru_cache
def _programs_of(closed: ClosedJaxpr) -> tuple[dict[CompileRequest, Any], Any]:
    return {}, threading.RLock()


def lowering_platform(device: Any) -> str:
    """The name under which primitives register rules for the device's platform."""
    return {"gpu": "cuda"}.get(device.platform, device.platform)


def run_closed(
    closed: ClosedJaxpr, args: Sequence[Any], name: str, *settings: Any
) -> list[Array]:
    """Run a whole jaxpr on arguments of any kind; compile it unless that is done.

    `settings` are the other fields of `CompileRequest`.
    """
    avals = check_arguments(name, closed.in_avals, args)
    device, committed, buffers = compilation.place(args, avals)
    request = CompileRequest(device, committed, name, *settings)
    return compilation.compile(closed, request)(buffers)


# ----------------------------------------------------------------------------------
# Eager operations
# ----------------------------------------------------------------------------------


def apply_primitive(primitive: Primitive, args: Sequence[Any], params: Params) -> Any:
    """Compute one operation now, by a compiled program of one equation.

    In JAX: `dispatch.py`, `apply_primitive`.
    """
    avals, buffers, place = prepare(args)
    if buffers is None:
        raise language.escaped_tracer_error(next(filter(language.is_tracer, args)))
    key = (avals, tuple(params.items()), state.trace_key, place)
    try:
        run = primitive.executables.get(key)
    except TypeError:
        language.type_of_application(primitive, avals, params)
        raise
    if run is None:
        place = place or (first_device(), False)
        run = eager_program(primitive, avals, params, *place).__call__
        primitive.executables[key] = run
    outputs = run(buffers)
    return outputs if primitive.multiple_results else outputs[0]


language.run_eagerly.attach(apply_primitive)

_EAGER_CACHE_SIZE = 4096


def eager_program(
    primitive: Primitive, avals: tuple, params: dict, device: Any, committed: bool
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
    request = CompileRequest(device, committed, primitive.name)
    return compilation.compile(ClosedJaxpr(jaxpr, consts), request)
