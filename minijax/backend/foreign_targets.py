"""Native functions that programs call by name: XLA's foreign function interface (FFI).

A library built against the headers that jaxlib brings along exports handlers; each is
registered under a name and a platform, and `stablehlo.custom_call @name` calls it.

In JAX: `jax/_src/ffi.py`.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import jaxlib

from minijax.core.runtime import xc


def include_dir() -> str:
    """The folder of the C++ headers (`xla/ffi/api/ffi.h`) that jaxlib brings along.

    A library must be built against the headers of the jaxlib that loads it.
    """
    return os.path.join(list(jaxlib.__path__)[0], "include")


def pycapsule(funcptr: Any) -> Any:
    """A PyCapsule around a function of a library that `ctypes` loaded.

    Args:
      funcptr: a function pointer, as in `ctypes.CDLL("./norms.so").RmsNorm`.

    Raises:
      TypeError: if it is not a function of a library.
    """
    if not isinstance(funcptr, (ctypes._CFuncPtr, ctypes.c_void_p, int)):  # type: ignore[attr-defined]
        raise TypeError(
            f"pycapsule takes a function of a library that ctypes loaded, and got "
            f"{funcptr!r}. Write `pycapsule(ctypes.CDLL('./library.so').function)`."
        )
    destructor = ctypes.CFUNCTYPE(None, ctypes.py_object)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, destructor)
    return make(funcptr, None, destructor(0))


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Gives a native function the name by which `ffi_call` calls it.

    Args:
      name: what `ffi_call` says.
      fn: a PyCapsule with the handler, as `pycapsule` makes it; or a dict of handlers
        for the stages "instantiate", "prepare", "initialize" and "execute".
      platform: "cpu", "cuda" or "rocm".
      api_version: 1 for the typed interface, 0 for the earlier one.
      **kwargs: passed on to jaxlib; it knows `traits`.

    Raises:
      TypeError: if `fn` holds no PyCapsule.
    """
    handlers = list(fn.values()) if isinstance(fn, dict) else [fn]
    for handler in handlers:
        if type(handler).__name__ != "PyCapsule":
            raise TypeError(
                f"register_ffi_target: fn must be a PyCapsule, or a dict of them by "
                f"stage, and holds {handler!r}. Write pycapsule(library.function)."
            )
    xc.register_custom_call_target(name, fn, platform, api_version, **kwargs)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Registers a type that handlers keep as their state.

    Args:
      name: unique in the process.
      type_registration: {"type_id": PyCapsule, "type_info": PyCapsule}; the second may
        be left out.
      platform: as for `register_ffi_target`.
    """
    xc.register_custom_type(name, type_registration, platform=platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """As in JAX 0.10.2: refused, since jaxlib has another way to register a type.

    Raises:
      ValueError: always; it names that way.
    """
    raise ValueError(
        f"register_ffi_type_id is not supported by this jaxlib. Write "
        f"register_ffi_type({name!r}, {{'type_id': ...}}, platform={platform!r})."
    )


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Lets the partitioner cut leading axes of the operands of a target."""
    xc.register_custom_call_as_batch_partitionable(name)


# What registrations call the platforms of devices.
_NAMES = {"cpu": "Host", "cuda": "CUDA", "gpu": "CUDA", "rocm": "ROCM"}


def is_registered(name: str, platform: str) -> bool:
    """Whether the platform has a function of this name; True where jaxlib cannot say.

    jaxlib knows the functions of the CPU. Those of a plugin are the plugin's.
    """
    if platform != "cpu":
        return True
    return name in xc.custom_call_targets(_NAMES[platform])
