"""Where `jax.numpy` functions become programs of their own.

Most functions of `jax.numpy` are jitted. Of those, the simple ones are jitted
with `inline=True`: called while another function is being traced, they leave no
`jit[...]` equation behind, only their equations. So there are two cases, and
`inline_jit` tells them apart by looking at the current trace:

- eager: the whole function is compiled once and launched as one program;
- under any trace: the Python function is simply called. Its equations land in
  the surrounding program, exactly as if they had been inlined there, without
  the time of tracing them twice.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.core.errors import boundaries, filter_traceback
from minijax.core.language import Tracer, eval_trace
from minijax.core.partial_eval import DynamicJaxprTrace
from minijax.core.state import state
from minijax.support.devices.mesh import Mesh
from minijax.support.settings import override


def _enter_in_order(trace: DynamicJaxprTrace, args: Sequence[Any]) -> None:
    """Make constants of the arguments that come from outside, from left to right.

    A program's constants stand in the order in which they were met, and a jitted
    function meets its arguments in order, whichever it uses first.
    """
    for arg in args:
        if isinstance(arg, Tracer):
            if arg._trace is not trace:
                trace.to_atom(arg)
        elif isinstance(arg, Array):
            trace.to_atom(arg)


def introduce(
    public: Callable[..., Any], body: Callable[..., Any]
) -> Callable[..., Any]:
    """Gives a public function the name and the docstring of the body it was made of.

    Its parameters stay its own.
    """
    named = ("__module__", "__name__", "__qualname__", "__doc__")
    functools.update_wrapper(public, body, assigned=named)
    del public.__wrapped__  # type: ignore[attr-defined]
    return public


def _ask(jitted: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a method of a jitted function, which `assembly.py` attaches later."""
    return getattr(jitted, name)(*args, **kwargs)


def _on_devices_of_result(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """`compiled`, which runs in the mesh of its `out_sharding` if none is in use."""

    def call(*args: Any, **kwargs: Any) -> Any:
        mesh = getattr(kwargs.get("out_sharding"), "mesh", None)
        if state.mesh is None and isinstance(mesh, Mesh):
            return override("mesh", mesh)(compiled)(*args, **kwargs)
        return compiled(*args, **kwargs)

    return call


def inline_jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnames: str | Sequence[str] = (),
) -> Callable[..., Any]:
    """Compile `function` when called eagerly; inline it when called under a trace.

    Works as a decorator with and without arguments. `static_argnames` names the
    parameters that are part of the cache key instead of being traced.

    In JAX: `jax.jit(function, inline=True, static_argnames=...)`.
    """
    if function is None:
        return functools.partial(inline_jit, static_argnames=static_argnames)
    jitted = jit(function, inline=True, static_argnames=static_argnames)
    compiled = jitted.__call__  # bound: a call of the object would look it up
    if "out_sharding" in static_argnames:
        compiled = _on_devices_of_result(compiled)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = state.trace
        try:
            if trace is eval_trace:
                return compiled(*args, **kwargs)
            if len(args) > 1 and isinstance(trace, DynamicJaxprTrace):
                _enter_in_order(trace, args)
            return function(*args, **kwargs)
        except Exception as error:
            filter_traceback.run(error)
            raise

    boundaries.add(call.__code__)  # type: ignore[attr-defined]

    # Ahead-of-time work is asked of the jitted function.
    for name in ("lower", "trace", "eval_shape", "clear_cache"):
        setattr(call, name, functools.partial(_ask, jitted, name))
    return call
