"""The flags that users set: `minijax.config`, and one context manager for each flag.

A flag is a slot of `thread_state.state`, which the core reads by one attribute load.
Here stands what a user may say: names, values, environment variables, texts.

In JAX: `jax/_src/config.py`, `Config`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from minijax.backend import clients as backend_clients
from minijax.core import runtime as backend_platforms
from minijax.core.state import TraceKey, install, positions, state
from minijax.support.settings import declare, override

_UNSET: Any = object()
_flags: dict[str, Flag] = {}

# ---- how the text of an environment variable and a given value become a flag's value


def _to_bool(name: str, value: Any) -> bool:
    if isinstance(value, str):
        lowered = value.lower()
        if lowered in ("y", "yes", "t", "true", "on", "1"):
            return True
        if lowered in ("n", "no", "f", "false", "off", "0"):
            return False
        raise ValueError(
            f"The flag {name} is a truth value; write True or False, got {value!r}."
        )
    return bool(value)


def _to_number(kind: type, text: str) -> Callable[[str, Any], Any]:
    def convert(name: str, value: Any) -> Any:
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                return kind(value)
        elif value is None or isinstance(value, (int, kind)):
            return value
        raise ValueError(f"The flag {name} takes {text}, got {value!r}.")

    return convert


_CONVERT: dict[type, Callable[[str, Any], Any]]
_CONVERT = {bool: _to_bool, int: _to_number(int, "an int")}
_CONVERT[float] = _to_number(float, "a float")


def _to_text(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(
            f"The flag {name} takes a string or None, got {value!r} of type "
            f"{type(value).__name__}."
        )
    return value


def _to_device(name: str, value: Any) -> Any:
    # A device is known by what it offers, since this floor holds no device class.
    if value is None or value in ("cpu", "gpu", "tpu", "cuda"):
        return value
    if hasattr(value, "platform") and hasattr(value, "id"):
        return value
    raise ValueError(
        f"The flag {name} takes a device such as `devices('cpu')[0]`, a platform "
        f"name such as 'cpu' or 'gpu', or None; got {value!r}."
    )


@dataclasses.dataclass(eq=False, repr=False)
class Flag:
    """One flag: how it is named, checked and overridden.

    Calling it gives a context manager: `with enable_x64(True): ...`. A truth flag
    may be called without an argument, which means True.
    """

    name: str
    # What the program starts with when the environment says nothing.
    initial: Any
    convert: Callable[[str, Any], Any]
    choices: tuple[Any, ...]
    text: dataclasses.InitVar[str]
    # Why minijax has no other value than the default, or than some others.
    refused: str = ""
    refused_values: tuple[Any, ...] = ()
    process_wide: bool = False

    def __post_init__(self, text: str) -> None:
        self.__name__, self.__doc__ = self.name, text
        self.listeners: list[Callable[[Any], None]] = []
        self.default = self._from_environment()

    @property
    def value(self) -> Any:
        """The flag's present value in this thread."""
        return getattr(state, self.name)

    def _from_environment(self) -> Any:
        for prefix in ("MINIJAX_", "JAX_"):
            variable = prefix + self.name.upper()
            text = os.environ.get(variable)
            if text is not None:
                try:
                    return self.checked(text)
                except NotImplementedError as error:
                    error.add_note(f"The environment variable {variable} sets it.")
                    raise
        return self.initial

    def checked(self, value: Any) -> Any:
        """The value as stored.

        Raises, in a sentence that names the flag, ValueError for a value that it does
        not take, and NotImplementedError for one that has no effect in minijax.
        """
        value = self._converted(value)
        if not self.refused or value == self.initial:
            return value
        if self.refused_values and value not in self.refused_values:
            return value
        raise NotImplementedError(
            f"The flag jax_{self.name} cannot be {value!r} in minijax: {self.refused} "
            f"Leave it at {self.initial!r}."
        )

    def _converted(self, value: Any) -> Any:
        if self.choices:
            if value not in self.choices:
                shown = ", ".join(repr(choice) for choice in self.choices)
                raise ValueError(
                    f"The flag {self.name} must be one of {shown}; got {value!r}."
                )
            return value
        return self.convert(self.name, value)

    def __call__(self, new_val: Any = _UNSET) -> override:
        if self.process_wide:
            raise TypeError(
                f"The flag {self.name} holds for the whole process, so it is no "
                f"context manager; write config.update('jax_{self.name}', value) at "
                "the start of the program."
            )
        if new_val is _UNSET:
            if self.convert is not _to_bool:
                raise TypeError(
                    f"The context manager {self.name} needs the new value as its "
                    f"argument, for example `with {self.name}({self.default!r}):`."
                )
            new_val = True
        return override(self.name, self.checked(new_val))

    def __bool__(self) -> bool:
        raise TypeError(
            f"The flag {self.name} is not a truth value itself; read "
            f"`config.jax_{self.name}`, or call it to make a context manager."
        )

    def __repr__(self) -> str:
        return f"<flag {self.name} = {self.value!r}>"


_AnyFlag = TypeVar("_AnyFlag", bound=Flag)


def _flag(
    name: str,
    default: Any,
    text: str,
    *,
    convert: Callable[[str, Any], Any] | None = None,
    choices: tuple[Any, ...] = (),
    traced: bool = False,
    **limits: Any,
) -> Flag:
    convert = _CONVERT.get(type(default), _to_text) if convert is None else convert
    return add_flag(Flag(name, default, convert, choices, text, **limits), traced)


def add_flag(flag: _AnyFlag, traced: bool = False) -> _AnyFlag:
    """Make a flag known to `config`; `traced` if programs depend on its value."""
    _flags[flag.name] = flag
    declare(flag.name, flag.default, traced=traced)
    return flag


_traced = functools.partial(_flag, traced=True)


class Config:
    """`jax.config`: read a flag as an attribute, set it with `update`.

    Every flag has its name with and without the prefix `jax_`.
    """

    def update(self, name: str, value: Any) -> None:
        """Set the process-wide value of a flag.

        Raises AttributeError for a name that is no flag, ValueError for a value that
        the flag does not take, and NotImplementedError for one without effect here.
        """
        flag = _lookup(name)
        value = flag.checked(value)
        # Listeners come first: one may refuse (a backend that already runs). Those
        # that were told before it are told the old value again.
        told = []
        try:
            for listener in flag.listeners:
                listener(value)
                told.append(listener)
        except BaseException:
            for listener in told:
                listener(self.read(name))
            raise
        install(flag.name, value)

    def read(self, name: str) -> Any:
        """The flag's value in this thread."""
        return getattr(state, _lookup(name).name)

    def on_update(self, name: str, listener: Callable[[Any], None]) -> None:
        """Call `listener(value)` before each `update`; raising refuses the value."""
        _lookup(name).listeners.append(listener)

    @property
    def values(self) -> dict[str, Any]:
        """All flags with their values in this thread, by their names in JAX."""
        return {f"jax_{name}": getattr(state, name) for name in _flags}

    @property
    def x64_enabled(self) -> bool:
        return state.enable_x64

    def __getattr__(self, name: str) -> Any:
        return self.read(name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"Flags are not assigned; write config.update({name!r}, {value!r})."
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.values]


def _lookup(name: str) -> Flag:
    flag = _flags.get(name.removeprefix("jax_"))
    if flag is None:
        raise AttributeError(
            f"Unrecognized config option: {name}. The flags are listed by "
            "`config.values`."
        )
    return flag


config = Config()


# ---- the flags --------------------------------------------------------------------

MATMUL_PRECISIONS = (
    *(None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32"),
    *("ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM"),
    *("ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM"),
    *("F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32"),
    *("BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9"),
    *("TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64"),
)
PRNG_IMPLS = (
    *("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg"),
    *("philox2x32", "philox4x32"),
)

# These decide what a trace or its compiled program looks like: the trace key.
enable_x64 = _traced(
    "enable_x64",
    False,
    "Keep 64-bit types; otherwise values and results have at most 32 bits.",
)
explicit_x64_dtypes = _traced(
    "explicit_x64_dtypes",
    "warn",
    "What an explicitly requested 64-bit dtype means while enable_x64 is off.",
    choices=("warn", "error", "allow"),
)
numpy_dtype_promotion = _traced(
    "numpy_dtype_promotion",
    "standard",
    "'standard' promotes mixed dtypes implicitly, 'strict' raises.",
    choices=("standard", "strict"),
)
numpy_rank_promotion = _traced(
    "numpy_rank_promotion",
    "allow",
    "Whether broadcasting may add leading axes to an operand.",
    choices=("allow", "warn", "raise"),
)
default_matmul_precision = _traced(
    "default_matmul_precision",
    None,
    "The precision of matrix products that do not name one.",
    choices=MATMUL_PRECISIONS,
)
default_device = _traced(
    "default_device",
    None,
    "The device, or name of a platform, on which uncommitted work runs.",
    convert=_to_device,
)
disable_jit_flag = _traced(
    "disable_jit", False, "Run jitted functions as plain Python."
)
threefry_partitionable = _traced(
    "threefry_partitionable",
    True,
    "Random bits that do not depend on how the result is sharded.",
)
disallow_mesh_context_manager = _flag(
    "disallow_mesh_context_manager",
    False,
    "Raise at `with mesh:`, the older form of `with minijax.set_mesh(mesh):`.",
)
default_prng_impl = _traced(
    "default_prng_impl",
    "threefry2x32",
    "The generator of keys that do not name one.",
    choices=PRNG_IMPLS,
    refused="it has no such generator.",
    refused_values=("threefry4x32", "philox2x32", "philox4x32"),
)
random_seed_offset = _traced("random_seed_offset", 0, "A number added to every seed.")
debug_key_reuse = _traced(
    "debug_key_reuse", False, "Raise when a random key is used twice."
)
high_dynamic_range_gumbel = _traced(
    "high_dynamic_range_gumbel",
    False,
    "Draw Gumbel noise with more bits, so that rare values can occur.",
)
softmax_custom_jvp = _traced(
    "softmax_custom_jvp", False, "Give softmax its own, more stable derivative rule."
)
auto_pcast = _traced(
    "auto_pcast", True, "Mark values in `shard_map` as varying where operands need it."
)
remove_size_one_mesh_axis_from_type = _traced(
    "remove_size_one_mesh_axis_from_type",
    False,
    "Leave mesh axes of size one out of types.",
)
no_execution = _traced("no_execution", False, "Raise when a program runs.")

# JAX's flags that take their default only, and why.
_FIXED = {
    "allow_f16_reductions": "sums over 16-bit floats never raise.",
    "check_static_indices": "indices out of bounds are clamped, filled or dropped.",
    "disable_bwd_checks": "a cotangent of another shape would go on unnoticed.",
    "eager_constant_folding": "each operation of a function becomes an equation.",
    "include_full_tracebacks_in_locations": "locations hold the innermost frames.",
    "log_checkpoint_residuals": "`ad_checkpoint.print_saved_residuals` shows them.",
    "mutable_array_checks": "refs that alias are always refused.",
    "pallas_use_mosaic_gpu": "kernels for GPUs are lowered to Triton.",
    "traceback_in_locations_limit": "a location holds the user's ten innermost frames.",
    "tracer_error_num_traceback_frames": "messages name the tracer's line.",
    "use_shardy_partitioner": "XLA's other partitioner, GSPMD, is not used.",
}
_NUMBERS = {"traceback_in_locations_limit": 100, "tracer_error_num_traceback_frames": 5}
_OFF = {"check_static_indices", "disable_bwd_checks", "eager_constant_folding"}
_OFF |= {"log_checkpoint_residuals"}
_OFF |= {"pallas_use_mosaic_gpu"}  # JAX's default is True
_fixed = {
    name: _flag(name, _NUMBERS.get(name, name not in _OFF), why, refused=why)
    for name, why in _FIXED.items()
}
allow_f16_reductions = _fixed["allow_f16_reductions"]

# These act outside programs: no cache depends on them.
no_tracing = _flag("no_tracing", False, "Raise when a function is traced.")
debug_nans = _flag("debug_nans", False, "Raise where a NaN is first computed.")
debug_infs = _flag("debug_infs", False, "Raise where an infinity is computed.")
check_tracer_leaks = _flag(
    "check_tracer_leaks", False, "Raise when a tracer outlives its trace."
)
enable_checks = _flag(
    "enable_checks",
    False,
    "Check the types of each program before it is compiled; this costs time.",
)
enable_custom_prng = _flag(
    "enable_custom_prng", False, "Make PRNGKey return typed keys."
)
legacy_prng_key = _flag(
    "legacy_prng_key",
    "allow",
    "What to do when an untyped uint32 array is used as a random key.",
    choices=("allow", "warn", "error"),
)
log_compiles = _flag("log_compiles", False, "Log each trace and compilation.")
explain_cache_misses = _flag(
    "explain_cache_misses", False, "Log why a jitted function was traced again."
)
captured_constants_warn_bytes = _flag(
    "captured_constants_warn_bytes",
    2_000_000_000,
    "Warn when a program captures constants of more bytes; -1 never warns.",
)
traceback_filtering = _flag(
    "traceback_filtering",
    "auto",
    "How the library's own frames are hidden in tracebacks.",
    choices=("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
)
pprint_use_color = _flag("pprint_use_color", True, "Colour printed jaxprs.")
# A relative path in XDG_CACHE_HOME is ignored, as its standard asks for.
_caches = os.environ.get("XDG_CACHE_HOME", "")
compilation_cache_dir = _flag(
    "compilation_cache_dir",
    os.path.join(_caches if os.path.isabs(_caches) else "~/.cache", "minijax"),
    "Where compiled programs are kept for the next process; None: nowhere. In JAX the "
    "default is None.",
    convert=_to_text,
)
enable_compilation_cache = _flag(
    "enable_compilation_cache", True, "Use compilation_cache_dir when it is set."
)
persistent_cache_min_compile_time_secs = _flag(
    "persistent_cache_min_compile_time_secs",
    0.0,
    "Programs that compile faster than this are not kept on disk. In JAX the default "
    "is 1.0; here reading even the smallest program takes a tenth of compiling it.",
)
compilation_cache_max_size = _flag(
    "compilation_cache_max_size",
    2**29,
    "Bytes that compilation_cache_dir may hold: beyond it the programs that were used "
    "longest ago are removed. -1: no bound, which is JAX's default.",
)
persistent_cache_min_entry_size_bytes = _flag(
    "persistent_cache_min_entry_size_bytes",
    0,
    "Programs smaller than this are not kept on disk.",
)
raise_persistent_cache_errors = _flag(
    "raise_persistent_cache_errors",
    False,
    "Raise when the cache on disk fails, instead of warning.",
)
platforms = _flag(
    "platforms",
    None,
    "Comma-separated platforms to start, the first is the default.",
    process_wide=True,
)
platform_name = _flag(
    "platform_name",
    "",
    "The platform among those that start whose devices are the default.",
    process_wide=True,
)
num_cpu_devices = _flag(
    "num_cpu_devices", -1, "CPU devices to offer; -1: as XLA says.", process_wide=True
)
cpu_collectives_implementation = _flag(
    "cpu_collectives_implementation",
    "gloo",
    "How processes on CPUs talk to each other.",
    choices=(None, "gloo", "mpi", "megascale"),
    refused="processes on CPUs talk through Gloo.",
)
cpu_enable_async_dispatch = _flag(
    "cpu_enable_async_dispatch",
    True,
    "Let programs on the CPU run asynchronously.",
    process_wide=True,
)


def _set_platforms(value: str | None) -> None:
    if backend_clients.is_initialized() and value != state.platforms:
        warnings.warn(
            "jax_platforms was set after the first computation: the devices that are "
            "in use stay. Set it at the start of the program, or by the environment "
            "variable JAX_PLATFORMS.",
            stacklevel=3,
        )
    backend_clients.choose(platforms=value.lower() if value else None)


def _set_platform_name(value: str | None) -> None:
    name = value.lower() if value else None
    get_backend = backend_platforms.get_backend
    if backend_clients.is_initialized() and get_backend(name) is not get_backend():
        _check_in_time("platform_name", value, "devices exist")
    backend_clients.choose(platform_name=name)


def _check_in_time(name: str, value: Any, exists: str) -> None:
    """RuntimeError for another value of a flag that backends were started with."""
    if backend_clients.is_initialized() and value != getattr(state, name):
        raise RuntimeError(
            f"jax_{name} must be set before the first computation: the {exists} "
            "already. Set it at the start of the program, or by the environment "
            f"variable JAX_{name.upper()}."
        )


def _set_num_cpu_devices(value: int) -> None:
    _check_in_time("num_cpu_devices", value, "devices exist")
    backend_clients.choose(num_cpu_devices=value if value > 0 else None)


def _set_async_dispatch(value: bool) -> None:
    _check_in_time("cpu_enable_async_dispatch", value, "CPU's client exists")
    backend_clients.set_options("cpu", asynchronous=value)


for _started, _set in (
    (platforms, _set_platforms),
    (platform_name, _set_platform_name),
    (num_cpu_devices, _set_num_cpu_devices),
    (cpu_enable_async_dispatch, _set_async_dispatch),
):
    _set(_started.default)  # what the environment says
    config.on_update(_started.name, _set)


def disable_jit(disable: bool = True) -> override:
    """Context manager: jitted functions run as plain Python, operation by operation.

    Control flow runs as Python too, so that a debugger can step through its bodies.
    """
    return disable_jit_flag(disable)


def checking_leaks() -> override:
    """Context manager: raise when a tracer is still alive after its trace ended."""
    return check_tracer_leaks(True)


# ---- what trace keys can do besides -----------------------


def _differing(self: TraceKey, other: TraceKey) -> tuple[str, ...]:
    """The names of the settings whose values differ between two keys."""
    return tuple(
        name
        for name, mine, theirs in zip(positions, self.values, other.values)
        if mine != theirs
    )


def _shown(self: TraceKey) -> str:
    shown = (f"{name}={v!r}" for name, v in zip(positions, self.values))
    return f"TraceKey({', '.join(shown)})"


# `assembly.py` gives them to the class.
KEY_METHODS = {"differing": _differing, "__repr__": _shown}
