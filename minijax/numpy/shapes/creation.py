"""Making arrays: from Python and NumPy data, and filled with one value.

In JAX: `numpy/array_constructors.py` and `numpy/array_creation.py`.
"""

import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile import array_transfers, placing
from minijax.core import dtypes, trees
from minijax.core.array import Array
from minijax.core.language import Tracer, eval_trace
from minijax.core.rules import final_sharding
from minijax.core.shaping import convert_element_type_to
from minijax.core.state import state
from minijax.numpy import arguments, promotion
from minijax.numpy.shapes.broadcasting import broadcast_to
from minijax.primitives.shape.ordering import array_copy
from minijax.programs.sharding.constraints import with_sharding_constraint
from minijax.programs.sharding.contexts import get_abstract_mesh
from minijax.programs.sharding.placement import context_mesh
from minijax.programs.sharding.reshard import auto_axes, changes_type, reshard
from minijax.support import element_types
from minijax.support.devices.shardings import (
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
)
from minijax.values.ref_avals import ShapeDtypeStruct
from minijax.values.symbolic_sizes import count_steps, is_symbolic

_traced_or_array = (Tracer, Array)
_python_scalars = (bool, int, float, complex)

# Arrays of more arrays than this are concatenated in groups, to keep equations short.
_CONCATENATE_AT_ONCE = 16


# --------------------------------------------------------------------------
# From data


def array(
    object: Any,
    dtype: Any = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array of a number, a NumPy array, or nested lists of them.

    The dtype is what the elements promote to, unless given; 64-bit types become
    32-bit ones unless `jax_enable_x64` is set. Python numbers give weakly typed
    scalars. Elements may be traced. `ndmin` adds leading axes of size one. ValueError
    for `None` among the elements, TypeError for a non-number.
    """
    if args:
        copy, order, ndmin = _late_arguments(args, (copy, order, ndmin))
    if order not in (None, "K"):
        raise NotImplementedError("Only implemented for order='K': leave order out")
    if dtype is not None:
        dtype = element_types.check_and_canonicalize_user_dtype(dtype, "array")
    device, out_sharding = _places("array", device, out_sharding)
    object = promotion.unwrap_jax_array(object)
    if copy and isinstance(object, np.ma.MaskedArray):
        object = np.array(object)  # as in JAX, the one place that drops the mask
    result = _from_data(object, dtype, copy)
    if arguments.index_of(ndmin, "ndmin") > result.ndim:
        result = lax.expand_dims(result, range(ndmin - result.ndim))
    return put_on(placed(result, out_sharding), device)


def _as_sharding(device: Any) -> Any:
    """A device as a sharding; ValueError unless it is one of them, or None."""
    if hasattr(device, "platform"):
        return SingleDeviceSharding(device)
    if device is not None and not isinstance(device, Sharding):
        raise ValueError(
            f"device={device!r} must be a device or an instance of Sharding. A "
            "PartitionSpec is for out_sharding, or make a NamedSharding of it."
        )
    return device


def put_on(result: Array, device: Any) -> Array:
    """`result` on a device, or cut by a sharding, also in a traced program.

    ValueError for anything else.
    """
    device = _as_sharding(device)
    if device is None:
        return result
    mesh = get_abstract_mesh()
    if isinstance(device, NamedSharding) and mesh._any_axis_explicit:
        if mesh.are_all_axes_explicit or device.mesh.abstract_mesh != mesh:
            final_sharding(device, "device")  # raises for another mesh
            return placed(result, device)
    # Outside of a program, what follows moves it to another memory.
    return placing.device_put(with_sharding_constraint(result, device), device)


def _late_arguments(given: tuple[Any, ...], named: tuple[Any, ...]) -> tuple[Any, ...]:
    """`copy`, `order` and `ndmin` given by position, as JAX still takes them."""
    if len(given) > 3:
        raise TypeError(
            f"array() takes at most 5 positional arguments but {len(given) + 2} were "
            "given"
        )
    defaults = (True, "K", 0)
    for name, value, default in zip(("copy", "order", "ndmin"), named, defaults):
        if value != default:
            raise TypeError(f"array() got multiple values for argument '{name}'")
    warnings.warn(
        "Give copy, order and ndmin to jnp.array by name, not by position.",
        DeprecationWarning,
        stacklevel=3,
    )
    return given + defaults[len(given) :]


def _from_data(object: Any, dtype: Any, copy: bool) -> Any:
    if isinstance(object, _traced_or_array):
        result = array_copy(object) if copy else object
        return result if dtype is None else convert_element_type_to(result, dtype)
    if isinstance(object, _python_scalars):
        return _staged(object if dtype is None else np.asarray(object, dtype=dtype))
    if isinstance(object, (np.ndarray, np.generic)):
        cast = dtype is not None and object.dtype != dtype
        return _staged(np.asarray(object).astype(dtype) if cast else object)
    leaves = list(_leaves(object))
    if any(leaf is None for leaf in leaves):
        raise ValueError(
            "None is not a valid value for jnp.array. Did a function return nothing?"
        )
    dtype = _common_dtype(leaves) if dtype is None else dtype
    if not any(isinstance(leaf, _traced_or_array) for leaf in leaves):
        return _staged(np.asarray(_unwrapped(object), dtype=dtype))
    return _stacked(
        _from_data(promotion.unwrap_jax_array(x), dtype, False) for x in object
    )


def _staged(value: Any) -> Array:
    """A host's value as an array: outside of programs, on all of the mesh in use.

    On a mesh of several processes it stays in this one: others may have another value.
    """
    mesh = context_mesh()
    if mesh is None or mesh.is_multi_process or state.trace is not eval_trace:
        return lax.stage(value)
    return placing.device_put(value, NamedSharding(mesh, PartitionSpec()))


def _leaves(object: Any) -> Iterator[Any]:
    if isinstance(object, (list, tuple)):
        for each in object:
            yield from _leaves(each)
    else:
        yield promotion.unwrap_jax_array(object)


def _unwrapped(object: Any) -> Any:
    if isinstance(object, (list, tuple)):
        return [_unwrapped(each) for each in object]
    return promotion.unwrap_jax_array(object)


def _common_dtype(leaves: Sequence[Any]) -> Any:
    if not leaves:
        return dtypes.default_float_dtype()
    try:
        return dtypes.lattice_result_type(*leaves)[0]
    except TypeError:
        # Other objects that NumPy understands, such as memory views.
        return dtypes.lattice_result_type(*map(np.asarray, leaves))[0]


def _stacked(arrays: Iterable[Array]) -> Array:
    rows = [lax.expand_dims(each, [0]) for each in arrays]
    while len(rows) > _CONCATENATE_AT_ONCE:
        groups = range(0, len(rows), _CONCATENATE_AT_ONCE)
        rows = [lax.concatenate(rows[i : i + _CONCATENATE_AT_ONCE], 0) for i in groups]
    return lax.concatenate(rows, 0)


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Like `array`, but an array with the right dtype is returned as it is."""
    places = {"device": device, "out_sharding": out_sharding}
    return array(a, dtype, copy=bool(copy), order=order, **places)


def copy(a: Any, order: str | None = None) -> Array:
    """A copy of `a` (a `copy` equation where it is traced)."""
    promotion.check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Array:
    """`x` converted to `dtype` (None: the default float); never weakly typed.

    Floats to integers round towards zero. Complex to real keeps the real part;
    to bool it asks whether the number is not zero.
    """
    x = promotion.ensure_arraylike("astype", x)
    dtype = promotion.user_dtype(dtype, dtypes.default_float_dtype(), "astype")
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        if dtype == np.bool_:
            x = lax.ne(x, np.zeros((), x.dtype))
        elif not dtypes.issubdtype(dtype, np.complexfloating):
            warnings.warn(
                "Casting from complex to real drops the imaginary part, and will be "
                "an error. Write jnp.real(x) or jnp.imag(x) first.",
                DeprecationWarning,
                stacklevel=2,
            )
    result = convert_element_type_to(x, dtype, warn_on_complex_to_real_cast=False)
    if copy and result is x:
        result = array_copy(result)
    return put_on(result, device)


def frombuffer(
    buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0
) -> Any:
    """An array of the bytes of `buffer`, as `numpy.frombuffer` reads them."""
    return asarray(np.frombuffer(buffer, dtype=dtype, count=count, offset=offset))


def placed(result: Array, place: Any) -> Array:
    """`result` on a device, or laid out as a sharding says; None leaves it as it is.

    So does a sharding over an empty mesh, which the type of any array has.
    """
    if place is None or (isinstance(place, NamedSharding) and place.mesh.empty):
        return result
    if changes_type(result, place):
        return reshard(result, place)
    return placing.device_put(result, place)


def laid_out(function: Callable[..., Array], place: Any, *args: Any) -> Array:
    """`function(*args)`, with its result cut as `place`, an `out_sharding`, says.

    On an Explicit mesh the compiler decides about the cuts inside of the function.
    Raises TypeError for a device, and ValueError for mesh axes that no type shows.
    """
    cut = final_sharding(place, "out_sharding")
    if cut is None or not cut.mesh._any_axis_explicit:
        return placed(function(*args), place)
    leaves, tree = trees.tree_flatten(args)
    kinds = (*_traced_or_array, np.ndarray)
    given = {i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, kinds)}

    def inner(arrays: dict[int, Array]) -> Array:
        own = [arrays.get(i, leaf) for i, leaf in enumerate(leaves)]
        return function(*trees.tree_unflatten(tree, own))

    return auto_axes(inner, axes=cut.mesh.explicit_axes, out_sharding=place)(given)


# --------------------------------------------------------------------------
# Filled


def canonicalize_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of Python integers; one integer stands for one axis.

    Raises TypeError for traced, fractional and negative sizes.
    """
    if isinstance(shape, types.GeneratorType):
        raise TypeError("expected sequence object with len >= 0 or a single integer")
    is_sequence = isinstance(shape, (tuple, list)) or np.ndim(shape) > 0
    sizes = arguments.shape_tuple(shape if is_sequence else (shape,))
    if any(size < 0 for size in sizes):
        raise TypeError(f"shape must have every element be nonnegative, got {sizes}.")
    return sizes


def _filled_floats(name: str, shape, value, dtype, device, out_sharding) -> Array:
    """`_filled`, of the default float type unless `dtype` is given."""
    if isinstance(dtype, int) and isinstance(shape, int):
        raise TypeError(
            f"Cannot interpret '{dtype}' as a data type. The shape is one argument: "
            f"write jnp.{name}(({shape}, {dtype})) instead of "
            f"jnp.{name}({shape}, {dtype})."
        )
    dtype = float if dtype is None else dtype
    return _filled(name, shape, value, dtype, device, out_sharding)


def _filled(
    name: str, shape, value, dtype, device, out_sharding, like: Any = None
) -> Array:
    """`value` everywhere; shape and dtype are those of `like` if they are not given."""
    device, out_sharding = _places(name, device, out_sharding)
    if dtype is not None:
        dtype = element_types.check_and_canonicalize_user_dtype(dtype, name)
    if shape is not None or like is None:
        shape = canonicalize_shape(shape)
    if device is None and out_sharding is None and isinstance(like, ShapeDtypeStruct):
        device = like.sharding if shape in (None, like.shape) else None
    if out_sharding is not None and not changes_type(value, out_sharding):
        device, out_sharding = out_sharding, None
    if device is not None and isinstance(like, _traced_or_array) and not like.weak_type:
        like = like.aval  # which is on no device
    if np.ndim(value) != 0:
        if like is not None:
            shape = np.shape(like) if shape is None else shape
            dtype = element_types.result_type(like) if dtype is None else dtype
        value = asarray(value, dtype=dtype)
        result = broadcast_to(value, shape, out_sharding=out_sharding)
        if isinstance(result, Tracer) and isinstance(device, NamedSharding):
            final_sharding(device, name)  # raises for axes that no type shows
    elif like is None:
        result = lax.full(shape, value, dtype, sharding=out_sharding)
    else:
        result = lax.full_like(like, value, dtype, shape, sharding=out_sharding)
    if device is not None and not isinstance(result, Tracer) and result.weak_type:
        result = lax.convert_element_type(result, result.dtype)  # as JAX: not weak
    return placed(result, device)


def _places(name: str, device: Any, out_sharding: Any) -> tuple[Any, Any]:
    """Both, at most one not None; a sharding without devices is the `out_sharding`."""
    if device is not None and out_sharding is not None:
        raise ValueError(
            "Only one of `device` or `out_sharding` can be set. Got "
            f"device={device} and out_sharding={out_sharding}"
        )
    device = _as_sharding(device)
    if isinstance(device, NamedSharding) and not device._is_concrete:
        device, out_sharding = None, device
    final_sharding(out_sharding, name)  # raises for axes that no type shows
    return device, out_sharding


def zeros(
    shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of zeros, of the default float type unless `dtype` is given."""
    return _filled_floats("zeros", shape, 0, dtype, device, out_sharding)


def ones(
    shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of ones, of the default float type unless `dtype` is given."""
    return _filled_floats("ones", shape, 1, dtype, device, out_sharding)


def empty(
    shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of zeros, because XLA has no uninitialised arrays."""
    return _filled_floats("empty", shape, 0, dtype, device, out_sharding)


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array filled with `fill_value`, or with it broadcast to `shape`.

    Without `dtype`, the result has the dtype (and weak type) of `fill_value`.
    """
    promotion.check_arraylike("full", fill_value)
    wide = type(fill_value) is int and not -(2**31) <= fill_value < 2**31
    if dtype is not None and wide:
        # Such a number has no dtype of its own; JAX wraps it to the one asked for.
        dtype = element_types.check_and_canonicalize_user_dtype(dtype, "full")
        fill_value = np.asarray(fill_value).astype(dtype)[()]
    return _filled("full", shape, fill_value, dtype, device, out_sharding)


def _filled_like(name: str, a, value, dtype, shape, device, out_sharding) -> Array:
    if not (hasattr(a, "dtype") and hasattr(a, "shape")):
        promotion.check_arraylike(name, a)
        a = promotion.unwrap_jax_array(a)
    return _filled(name, shape, value, dtype, device, out_sharding, a)


def zeros_like(
    a: Any,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Zeros with the shape, dtype and weak type of `a`, unless given otherwise."""
    return _filled_like("zeros_like", a, 0, dtype, shape, device, out_sharding)


def ones_like(
    a: Any,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Ones with the shape, dtype and weak type of `a`, unless given otherwise."""
    return _filled_like("ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(
    prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None
) -> Array:
    """The same as `zeros_like`."""
    return _filled_like("empty_like", prototype, 0, dtype, shape, device, None)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """`fill_value` everywhere, with the shape and dtype of `a`."""
    promotion.check_arraylike("full_like", fill_value)
    return _filled_like("full_like", a, fill_value, dtype, shape, device, out_sharding)


# --------------------------------------------------------------------------
# Counted


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """start, start + step, ... up to but not including stop.

    With one argument, that is `stop`, and counting starts at zero. The arguments must
    be known while tracing, since they make the shape; ConcretizationTypeError if not.
    """
    device, out_sharding = _places("arange", device, out_sharding)
    if start is None:
        raise TypeError("jnp.arange needs a number as its first argument, not None.")
    if dtype is not None:
        dtype = element_types.check_and_canonicalize_user_dtype(dtype, "arange")
    promotion.check_arraylike_or_none("arange", start, stop, step)
    start = _static_number(start, "stop" if stop is None and step is None else "start")
    stop = _static_number(stop, "stop")
    step = _static_number(step, "step")
    given = [value for value in (start, stop, step) if value is not None]
    if any(np.iscomplexobj(value) for value in given):
        raise ValueError(
            "Passing complex start/stop/step to jnp.arange is no longer supported."
        )
    dtype = element_types.result_type(*given) if dtype is None else dtype
    result = _arange(start, stop, step, dtype, out_sharding)
    return result if device is None else array_transfers.device_put(result, device)


def _static_number(value: Any, name: str) -> Any:
    value = arguments.concrete_or_error(
        None, value, f"It arose in the jnp.arange argument '{name}'"
    )
    if value is not None and np.ndim(value) != 0:
        raise ValueError(f"jnp.arange: {name} must be a scalar, got {value}")
    return value


def _arange(start: Any, stop: Any, step: Any, dtype: Any, out_sharding: Any) -> Array:
    start, stop = (0, start) if stop is None else (start, stop)
    symbolic = any(map(is_symbolic, (start, stop, step)))
    if symbolic and step is None:
        step = 1
    size = (count_steps if symbolic else _steps)(start, stop, step)
    if step is None:
        count = lax.broadcasted_iota(dtype, (size,), 0, out_sharding=out_sharding)
        return count if start == 0 else lax.add(constant(start, dtype), count)
    # Multiples of the step rather than repeated additions, and not in 16 bits.
    working_dtype = dtype
    if dtypes.issubdtype(dtype, np.floating) and dtypes.finfo(dtype).bits < 32:
        working_dtype = np.dtype(np.float32)
    count = lax.broadcasted_iota(working_dtype, (size,), 0, out_sharding=out_sharding)
    multiples = lax.mul(constant(step, working_dtype), count)
    result = lax.add(constant(start, working_dtype), multiples)
    return lax.convert_element_type(result, dtype)


def _steps(start: Any, stop: Any, step: Any) -> int:
    try:
        steps = stop - start if step is None else (stop - start) / step
        return max(0, int(np.ceil(np.asarray(steps))))
    except (ArithmeticError, ValueError) as error:  # as JAX raises them
        told = f"jnp.arange has no size for {start=}, {stop=}, {step=}: give finite"
        raise type(error)(f"{told} numbers, and a step that is not 0.") from None


def constant(value: Any, dtype: Any) -> Any:
    """A number as a rank-0 NumPy array: a literal where it is traced.

    A symbolic size is computed.
    """
    if is_symbolic(value):
        return lax.convert_element_type(value.__jax_array__(), dtype)
    return np.asarray(value).astype(dtype)
