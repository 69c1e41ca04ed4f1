"""What libraries take from inside of JAX and minijax has in another form."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core.language import Primitive, eval_trace
from minijax.core.source_info import is_user_filename
from minijax.core.state import state
from minijax.core.trees import default_registry

# The version of JAX whose names and answers minijax has.
JAX_VERSION = "0.10.2"
JAX_VERSION_INFO = tuple(map(int, JAX_VERSION.split(".")))


def api_boundary(fun: Callable, **_: Any) -> Callable:
    """The function itself: minijax recognizes its own frames by their folder."""
    return fun


def include_frame(frame: types.FrameType) -> bool:
    """Whether a frame runs a user's code, which stays in a shortened traceback."""
    return is_user_filename(frame.f_code.co_filename)


class _Compiler:
    """`jax._src.compiler`: libraries put a function of theirs in place of one of it."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise NotImplementedError(
            f"jax._src.compiler.{name} cannot be replaced: minijax, which stands for "
            "jax here, compiles elsewhere, and the replacement would never be called. "
            "To keep programs off a platform set the environment variable "
            "JAX_PLATFORMS."
        )

    def backend_compile_and_load(self, *args: Any, **kwargs: Any) -> Any:
        """Not to be called: NotImplementedError."""
        raise NotImplementedError("call `jax.jit(f).lower(...).compile()` instead")


compiler = _Compiler()


def trace_state_clean() -> bool:
    """Whether no transformation is under way in this thread."""
    return state.trace is eval_trace


# lineax writes a transpose rule for it. JAX too has it as a name that nothing binds:
# `lax.stop_gradient` is a rule of derivatives, not an operation.
stop_gradient_p = Primitive("stop_gradient")


# NumPyro has rules for them. Calls in programs of minijax are those of `jit` alone.
call_p = Primitive("call")
closed_call_p = Primitive("closed_call")


class gaussian_kde:
    """NumPyro imports it for its ensemble sampler ESS; it is not to be made here."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError("no gaussian_kde: use scipy.stats.gaussian_kde.")


class _Registry:
    """Which types are nodes of trees: `type(x) in _registry`."""

    def __contains__(self, node_type: type) -> bool:
        return default_registry.is_node(node_type)


tree_registry = _Registry()


class _HandlersOfArrays:
    """`jax.interpreters.xla.canonicalize_dtype_handlers`: arrays by their class.

    TensorFlow Probability gives its class the handler of `np.ndarray`. minijax calls
    this one, `np.asarray`, for every class; another would never be called.
    """

    def __getitem__(self, kind: type) -> Callable:
        return np.asarray

    def __setitem__(self, kind: type, handler: Callable) -> None:
        if handler is not np.asarray:
            raise NotImplementedError(f"{kind}: the only handler is that of np.ndarray")


array_handlers = _HandlersOfArrays()
