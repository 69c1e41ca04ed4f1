"""Calling out to Python from a compiled program: pure_callback and io_callback.

A compiled program knows only XLA's operations. `pure_callback(f, result_type, x)` is an
operation that stops, hands the value of `x` to the Python function `f`, and goes on
with what it returns:

    def bessel(x):
        kind = ShapeDtypeStruct(x.shape, x.dtype)
        return pure_callback(lambda v: scipy.special.jv(0, v), kind, x)

minijax does not trace `f`, so it cannot know the types of what `f` returns: the caller
gives them as `result_shape_dtypes`, and they are the types of the equation. Each call
checks what `f` returns against them.

**What it may do.** The two functions differ in what they promise. A *pure* callback
depends on its arguments alone and changes nothing. So it may be called twice, or not at
all when its result is not needed, or in another order. An *io* callback has the effect
`IO` (or `OrderedIO`): its equation is no dead code, happens each time the program
reaches it, and in the order of the program if `ordered` says so
(`compile/tokens.py`). `debug_callbacks.py` has a third kind, which only observes.

**How it becomes a program.** XLA's custom call `xla_ffi_python_cpu_callback` takes any
operands and the number of a Python function in a list that is given to the compiler
beside the program. The executable keeps that list alive. At run time XLA calls the
function, in one of its own threads or in the caller's, with NumPy arrays: copies that
are the function's own and cannot be written to. A token is handed over as None.

    %r = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
             {api_version = 4, backend_config = {index = 0}} : ... -> tensor<3xf32>

On a GPU the call is `xla_ffi_python_gpu_callback`, and XLA copies the operands to the
host and the results back.

**Why results are checked.** XLA copies what the function returns into memory of the
size it expects, and looks neither at its shape nor at its dtype: a larger array would
overwrite whatever lies behind. So XLA never sees the user's function, but a
`HostFunction`, which compares number, shape and dtype first, makes each array dense and
row-major, and raises RuntimeError with both types in it where they differ.

**What an exception becomes.** XLA knows only its text: the launch, or the code that
first reads a result, raises `JaxRuntimeError`. The exception itself is kept
(`special_errors.remember_callback_error`) and becomes its `__cause__`, so that the
traceback goes down to the user's line.

Outside of all programs the function is called at once, in the same way and with the
same errors, and nothing is compiled; on several devices it is a program of its own.

**Under transformations.** Under `vmap`, `vmap_method` decides. "sequential" and
"sequential_unrolled" call the function once for each example, in a loop;
"broadcast_all" calls it once with whole batches, repeating what has none; "expand_dims"
the same, with an axis of size 1 for what has none; "legacy_vectorized" leaves that as
it is. An io callback is always called once for each example. Neither of them has
a derivative, since there is nothing to differentiate: wrap it in `custom_jvp` or
`custom_vjp`, whose rules may well be other callbacks.

In JAX: `jax/_src/callback.py`; `ffi.py`, `ffi_batching_rule`.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.backend import hlo_parts, several_devices
from minijax.backend.buffer_copies import to_numpy
from minijax.compile import tokens
from minijax.compile.placing import buffer_on, choose_device
from minijax.core import (
    dispatch,
    dtypes,
    errors,
    language,
    lowering,
    runtime,
    signatures,
    source_info,
)
from minijax.core.array import Array, first_device, put
from minijax.core.effects import Effect
from minijax.core.rules import Dims, moveaxis
from minijax.core.state import state
from minijax.core.trees import tree_flatten, tree_leaves, tree_unflatten
from minijax.primitives.families import mapped_at_front, refusal
from minijax.primitives.shape import broadcasting
from minijax.programs.control_flow import scans
from minijax.programs.debugging import finiteness
from minijax.programs.sharding.placement import lie_on_several
from minijax.support import special_errors
from minijax.support.devices.shardings import SingleDeviceSharding
from minijax.support.io_effects import io_effect, ordered_io_effect
from minijax.support.settings import override
from minijax.support.tree_util import tree_map
from minijax.values.ref_avals import AbstractRef

# ----------------------------------------------------------------------------------
# The Python side: what XLA calls
# ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _FlatCallback:
    """A user's function of flat arguments; equal for equal functions and trees.

    So the programs of two calls of one function are one program, compiled once.
    """

    callback_func: Callable[..., Any]
    in_tree: Any

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = tree_unflatten(self.in_tree, leaves)
        return tree_leaves(self.callback_func(*args, **kwargs))


@dataclass(eq=False)
class HostFunction:
    """The function that XLA calls for a flat Python function.

    It makes NumPy's arrays Arrays on the way in, and on the way out lets nothing pass
    but arrays of exactly the expected types.
    """

    function: Callable[..., Sequence[Any]]
    in_avals: Sequence[Any]
    out_avals: Sequence[Any]
    takes_token: bool
    purpose: str
    source: Any

    def __post_init__(self) -> None:
        self.in_avals = [_host_type(aval) for aval in self.in_avals]
        self.out_avals = [_host_type(aval) for aval in self.out_avals]
        # Flags belong to a thread, and XLA's threads have never heard of the user's.
        self.x64 = state.enable_x64
        self.on_several_devices = False

    def __call__(self, *operands: Any) -> tuple:
        leading = operands[:1] if self.takes_token else ()
        several = self.on_several_devices
        try:
            with several_devices.in_callback() if several else contextlib.nullcontext():
                results = self.run(operands[len(leading) :])
        except BaseException as error:
            special_errors.remember_callback_error(error)
            raise
        return (*leading, *results)

    def run(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Call the function on the CPU, outside of all transformations."""
        cpu = local_cpu(self.purpose)
        device = None if cpu == first_device() else cpu
        try:
            with (
                override("enable_x64", self.x64),
                override("default_device", device),
                language.set_current_trace(language.eval_trace),
            ):
                args = [
                    on_host(operand, aval)
                    for operand, aval in zip(operands, self.in_avals, strict=True)
                ]
                return self.checked(self.function(*args))
        except Exception as error:
            line = source_info.format_line(self.source)
            if line:
                error.add_note(f"In a callback of {self.purpose}, called at\n  {line}")
            raise

    def checked(self, results: Sequence[Any]) -> list[np.ndarray]:
        """The results as dense arrays; RuntimeError if they do not fit."""
        arrays = [as_result(value) for value in results]
        if len(arrays) != len(self.out_avals):
            raise RuntimeError(
                "Mismatched number of outputs from callback. Expected: "
                f"{len(self.out_avals)}, Actual: {len(arrays)}. "
                + self.expectation(arrays)
            )
        for position, (array, aval) in enumerate(zip(arrays, self.out_avals)):
            for what in ("shape", "dtype"):
                expected, actual = getattr(aval, what), getattr(array, what)
                if expected != actual:
                    raise RuntimeError(
                        f"Incorrect output {what} for return value #{position}: "
                        f"Expected: {expected}, Actual: {actual}. "
                        + self.expectation(arrays)
                    )
        return [np.asarray(array, order="C") for array in arrays]

    def expectation(self, arrays: Sequence[np.ndarray]) -> str:
        """A sentence with both types and the function that returned the wrong one."""
        said = ", ".join(aval.str_short() for aval in self.out_avals)
        given = ", ".join(f"{array.dtype}{list(array.shape)}" for array in arrays)
        return (
            f"{self.purpose} was told by result_shape_dtypes that {self.name()} "
            f"returns ({said}), but it returned ({given}). Change one of the two."
        )

    def name(self) -> str:
        """The user's function and where it is defined."""
        function = getattr(self.function, "callback_func", self.function)
        place = signatures.fun_place(function)
        name = signatures.fun_name(function)
        return f"{name} ({place})" if place else name


def _host_type(aval) -> language.ShapedArray:
    """The type of an operand in Python; for typed keys, that of their bits."""
    physical = language.physical_aval(aval)
    return language.ShapedArray(physical.shape, physical.dtype)


def local_cpu(purpose: str) -> Any:
    """The device on which callbacks get their arguments.

    RuntimeError when the process has no CPU among its platforms.
    """
    first = first_device()
    if first.platform == "cpu":
        return first
    try:
        return runtime.get_backend("cpu").local_devices()[0]
    except RuntimeError as error:
        raise RuntimeError(
            f"{purpose} failed to find a local CPU device to place the inputs on. "
            'Make sure "cpu" is among the platforms of the flag jax_platforms.'
        ) from error


def on_host(operand: np.ndarray, aval: language.ShapedArray) -> Array:
    """An operand that XLA passes, as an Array.

    XLA made the copy for this call alone. So it also serves as the Array's values, and
    reading them costs nothing.
    """
    array = put(operand, aval)
    if operand.flags.owndata and operand.dtype.isbuiltin == 1:
        array._host = operand
    return array


def as_result(value: Any) -> np.ndarray:
    """The result of a callback, as an array of a dtype that arrays can have.

    TypeError for anything but an array of numbers.
    """
    array = np.asarray(value)
    if array.dtype.kind in "OSUMm":
        raise TypeError(
            f"a callback returned {value!r}, which is not an array of numbers (dtype "
            f"{array.dtype}). Return arrays, or Python's numbers."
        )
    native = array.dtype.newbyteorder("=")
    return array.astype(dtypes.canonicalize_dtype(native), copy=False)


# ----------------------------------------------------------------------------------
# The compiler's side: the custom call
# ----------------------------------------------------------------------------------

_TARGETS = {
    "cpu": "xla_ffi_python_cpu_callback",
    "cuda": "xla_ffi_python_gpu_callback",
    "rocm": "xla_ffi_python_gpu_callback",
}


def emit_python_callback(
    ctx: lowering.LoweringRuleContext,
    function: Callable[..., Sequence[Any]],
    effect: Effect | None,
    operands: Sequence[Any],
    *,
    purpose: str,
    has_side_effect: bool,
) -> list[Any]:
    """Write a call of a flat Python function; returns the StableHLO results.

    `effect` is the effect of the equation, or None; if it is ordered, its token goes
    through the call. ValueError for a platform that cannot call Python.
    """
    module_context = ctx.module_context
    target = _TARGETS.get(ctx.platform)
    if target is None:
        raise ValueError(
            f"{purpose} cannot be compiled for {ctx.platform}: programs call Python on "
            f"{', '.join(_TARGETS)}. Compute the value outside of the program and pass "
            "it as an argument."
        )
    kinds = tokens.ordered(() if effect is None else (effect,))
    module_context.host_callbacks.append(
        HostFunction(
            function,
            ctx.avals_in,
            ctx.avals_out,
            bool(kinds),
            purpose,
            module_context.source,
        )
    )
    index = len(module_context.host_callbacks) - 1
    results = [lowering.tensor_type(aval) for aval in ctx.avals_out]
    given = tokens.current(module_context, kinds)
    call = hlo_parts.custom_call(
        target,
        [*tokens.types(kinds), *results],
        [*given, *operands],
        {"index": hlo_parts.unsigned_attribute(index)},
        has_side_effect,
    )
    return tokens.update(module_context, kinds, call.results)


# ----------------------------------------------------------------------------------
# Without a program
# ----------------------------------------------------------------------------------


def call_now(
    function: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    result_avals: Sequence[Any],
    effect: Effect | None,
    purpose: str,
) -> list[Array]:
    """Call a flat Python function outside of all programs, as a program would.

    Raises what a program would raise, JaxRuntimeError, from what the function raised.
    """
    avals = [language.get_aval(arg) for arg in args]
    if any(type(aval) is AbstractRef for aval in avals):
        raise NotImplementedError(
            f"{purpose} takes arrays, and was given a ref. Pass its content: "
            "`ref[...]`."
        )
    device, committed = choose_device(args)
    operands = [to_numpy(buffer_on(arg, device)) for arg in args]
    for kind in tokens.ordered(() if effect is None else (effect,)):
        tokens.runtime_tokens.wait_for(kind)
    source = source_info.current()
    host = HostFunction(function, avals, result_avals, False, purpose, source)
    try:
        results = host.run(operands)
    except Exception as error:
        special_errors.start_at_users_frame(error)
        text = "".join(traceback.format_exception_only(error)).strip()
        raise errors.JaxRuntimeError(
            f"INTERNAL: {purpose}: error calling callback: {text}"
        ) from error
    arrays = [
        put(result, aval, device if committed else None)
        for result, aval in zip(results, result_avals)
    ]
    finiteness.check_results(arrays, purpose)
    return arrays


# ----------------------------------------------------------------------------------
# What both primitives have in common
# ----------------------------------------------------------------------------------


def _callback_primitive(
    name: str, effect_of: Callable[..., Effect | None], no_jvp: str, no_transpose: str
) -> language.Primitive:
    """A primitive that calls Python, without its batch rule.

    `effect_of(**params)` is its effect, or None; the two texts say why it has no
    derivative, and what to write instead.
    """
    primitive = language.register(language.Primitive(name, multiple_results=True))
    # A type is read off the parameters; a cache would only keep functions alive.
    primitive.cache_types = False
    primitive.without("meaning", "it means what the user's function does")

    @primitive.def_effectful_abstract_eval
    def callback_type(*avals, result_avals: Sequence[Any], **params) -> tuple:
        effect = effect_of(**params)
        effects = language.no_effects if effect is None else frozenset({effect})
        return list(result_avals), effects

    @primitive.def_impl
    def callback_now(*args, callback: Callable, result_avals, **params) -> list[Array]:
        if state.mesh is not None or lie_on_several(args):
            given = {"callback": callback, "result_avals": result_avals, **params}
            return dispatch.apply_primitive(primitive, args, given)
        return call_now(callback, args, result_avals, effect_of(**params), name)

    primitive.def_jvp_rule(refusal(no_jvp))
    primitive.def_transpose(refusal(no_transpose))

    @primitive.def_lowering
    def callback_lowering(ctx, *operands, callback: Callable, **params) -> list[Any]:
        effect = effect_of(**params)
        acts = effect is not None
        return emit_python_callback(
            ctx, callback, effect, operands, purpose=name, has_side_effect=acts
        )

    return primitive


def _call(
    primitive: language.Primitive,
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    arguments: tuple[tuple, dict[str, Any]],
    **params: Any,
) -> Any:
    """Bind a callback's primitive; returns the tree of the announced results.

    Raises NotImplementedError for a `sharding` over more than one device.
    """
    signatures.check_functions(str(primitive), callback=callback)
    if not isinstance(sharding := params.get("sharding"), SingleDeviceSharding | None):
        raise NotImplementedError(
            f"{primitive}: sharding must be a SingleDeviceSharding, got {sharding!r}."
        )
    leaves, in_tree = tree_flatten(arguments)
    result_avals, out_tree = result_types(result_shape_dtypes)
    params = {"callback": _FlatCallback(callback, in_tree), **params}
    return tree_unflatten(
        out_tree, primitive.bind(*leaves, result_avals=result_avals, **params)
    )


# ----------------------------------------------------------------------------------
# pure_callback
# ----------------------------------------------------------------------------------

pure_callback_p = _callback_primitive(
    "pure_callback",
    lambda **_: None,
    "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks "
    "while taking gradients: its rule says what the derivative is.",
    "Pure callbacks do not support transpose. Please use `jax.custom_vjp` to use "
    "callbacks while taking gradients: its rule says what the derivative is.",
)


@pure_callback_p.def_batch
def _pure_callback_batch(axis_data, args, dims, **params) -> tuple:
    """Call once for each example, or once for all: `vmap_method` says which."""

    def for_all(batched_args: Sequence[Any], *, result_avals, **params) -> list[Any]:
        batched = (
            language.unmapped_aval(axis_data.size, 0, aval) for aval in result_avals
        )
        params["result_avals"] = tuple(batched)
        return pure_callback_p.bind(*batched_args, **params)

    method = params["vmap_method"]
    return batch_by_method(
        pure_callback_p, axis_data.size, args, dims, method, for_all, params
    )


def batch_by_method(
    primitive: language.Primitive,
    size: int,
    args: Sequence[Any],
    dims: Dims,
    vmap_method: str | None,
    for_all: Callable[..., list[Any]],
    params: dict[str, Any],
) -> tuple:
    """A batch rule of a primitive that calls a function outside of the program.

    `for_all(args, **params)` calls once for all examples, whose axis comes first.
    NotImplementedError if no method was chosen.
    """
    if vmap_method in ("sequential", "sequential_unrolled"):
        unroll = vmap_method == "sequential_unrolled"
        return _for_each_example(primitive, args, dims, params, unroll)
    repeats = {"legacy_vectorized": None, "expand_dims": 1, "broadcast_all": size}
    if vmap_method not in repeats:
        raise NotImplementedError(
            f"vmap is only supported for the {primitive} primitive when vmap_method "
            "is one of 'sequential', 'sequential_unrolled', 'expand_dims', "
            f"'broadcast_all', or 'legacy_vectorized'. Got {vmap_method=}."
        )
    times, fronted = repeats[vmap_method], mapped_at_front(args, dims)
    if times is not None:
        fronted = [
            broadcasting.broadcast(arg, (times,)) if dim is None else arg
            for arg, dim in zip(fronted, dims)
        ]
    outs = for_all(fronted, **params)
    return outs, [0] * len(outs)


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a pure Python function from inside of any transformed function.

    Args:
      callback: called as `callback(*args, **kwargs)`, with Arrays on the CPU. It must
        depend on them alone: it may be called more than once, or never. It may compute
        with minijax, but not wait for the program that calls it.
      result_shape_dtypes: a tree of objects with `shape` and `dtype`, such as
        `ShapeDtypeStruct`: what the callback returns.
      *args: arrays, or trees of arrays.
      sharding: the device that makes the call, as a sharding of one device; carried in
        the equation, and without meaning while programs run on one device.
      vmap_method: what happens under `vmap`: "sequential", "sequential_unrolled",
        "expand_dims", "broadcast_all" or "legacy_vectorized", as this module's
        docstring describes; None: NotImplementedError then.
      **kwargs: arrays, or trees of arrays, by name.

    Returns:
      The tree of `result_shape_dtypes` with Arrays as leaves.

    Raises:
      ValueError: for an unknown `vmap_method`; for a 64-bit dtype while x64 is off; and
        when it is differentiated.
      AttributeError: for a result type without `shape` and `dtype`.
      JaxRuntimeError: when the callback raised, or returned something else than
        announced; its `__cause__` is that exception.
    """
    check_vmap_method(vmap_method)
    params = {"sharding": sharding, "vmap_method": vmap_method}
    call = (callback, result_shape_dtypes, (args, kwargs))
    return _call(pure_callback_p, *call, **params)


def check_vmap_method(vmap_method: str | None) -> None:
    """ValueError unless `vmap_method` is one of the methods."""
    methods: list[str | None] = ["sequential", "sequential_unrolled", "expand_dims"]
    methods += ["broadcast_all", "legacy_vectorized", None]
    if vmap_method not in methods:
        raise errors.value_error(
            f"vmap_method must be one of the allowed methods {methods}, but got: "
            f"{vmap_method}"
        )


def result_types(result_shape_dtypes: Any) -> tuple[tuple, Any]:
    """(the declared types of a callback's results, their tree)."""
    avals, tree = tree_flatten(tree_map(_result_type, result_shape_dtypes))
    return tuple(avals), tree


def _result_type(leaf) -> language.ShapedArray:
    for attribute in ("dtype", "shape"):
        if not hasattr(leaf, attribute):
            raise AttributeError(
                "result_shape_dtypes must be a tree of objects with shape and dtype, "
                f"such as ShapeDtypeStruct((3,), 'float32'); {leaf!r} has no "
                f"{attribute}."
            )
    dtype = np.dtype(leaf.dtype)
    if dtypes.canonicalize_dtype(dtype) != dtype:
        raise errors.value_error(
            "result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is "
            f"disabled, but got {dtype}. Write {dtypes.canonicalize_dtype(dtype)}, or "
            "set the flag."
        )
    return language.ShapedArray(leaf.shape, dtype)


def _for_each_example(
    primitive: language.Primitive,
    args: Sequence[Any],
    dims: Dims,
    params: dict[str, Any],
    unroll: bool = False,
) -> tuple:
    """A batch rule that calls once for each example, in a loop."""

    def step(_: tuple, rows: Sequence[Any]) -> tuple:
        row = iter(rows)
        example = [arg if dim is None else next(row) for arg, dim in zip(args, dims)]
        return (), primitive.bind(*example, **params)

    batched = [moveaxis(x, d, 0) for x, d in zip(args, dims) if d is not None]
    _, outs = scans.scan(step, (), batched, unroll=unroll)
    return outs, [0] * len(outs)


# ----------------------------------------------------------------------------------
# io_callback
# ----------------------------------------------------------------------------------


io_callback_p = _callback_primitive(
    "io_callback",
    lambda ordered, **_: ordered_io_effect if ordered else io_effect,
    "IO callbacks do not support JVP. Wrap what calls it in `custom_jvp`, or pass "
    "`lax.stop_gradient(x)`.",
    "IO callbacks do not support transpose. Wrap what calls it in `custom_vjp`.",
)


@io_callback_p.def_batch
def _io_callback_batch(axis_data, args, dims, **params) -> tuple:
    """Call once for each example, in any order."""
    if params["ordered"]:
        raise errors.value_error(
            "Cannot `vmap` ordered IO callback: the examples of a batch have no order. "
            "Write ordered=False, or loop over them with `lax.map`."
        )
    return _for_each_example(io_callback_p, args, dims, params)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with side effects from inside of a transformed function.

    Args:
      callback: called as `callback(*args, **kwargs)`, with Arrays on the CPU, once for
        each time the program gets there.
      result_shape_dtypes: a tree of objects with `shape` and `dtype`: what the callback
        returns. None for nothing.
      *args: arrays, or trees of arrays.
      sharding: as for `pure_callback`.
      ordered: whether these calls happen in the order of the program, and after those
        of programs that this thread launched before.
      **kwargs: arrays, or trees of arrays, by name.

    Returns:
      The tree of `result_shape_dtypes` with Arrays as leaves.

    Raises:
      ValueError: for a 64-bit dtype while x64 is off; when it is differentiated; and
        for an ordered one under `vmap`.
      AttributeError: for a result type without `shape` and `dtype`.
      JaxRuntimeError: when the callback raised, or returned something else than
        announced; its `__cause__` is that exception. Where the results are not read,
        `effects_barrier` raises it.
    """
    params = {"sharding": sharding, "ordered": ordered}
    call = (callback, result_shape_dtypes, (args, kwargs))
    return _call(io_callback_p, *call, **params)
