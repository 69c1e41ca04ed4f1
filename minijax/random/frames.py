"""`sampler`: makes a public function of a distribution's formula.

The formula is a function of a checked key, parameters, a shape and a dtype. `sampler`
compiles it under the name with an underscore. The public function checks the key, the
dtype and the shape, and calls it.

In JAX: `random/core.py`, where each sampler has its own copy.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.numpy.shapes.creation import laid_out
from minijax.random.arguments import (
    Shape,
    broadcast_shape,
    canonical_shape,
    check_safe_to_cast,
    float_dtype,
    shape_as_given,
)
from minijax.random.keys import check_key
from minijax.typing import ArrayLike, DTypeLike


def sampler(
    dtype_of: Callable[[str, DTypeLike | None], np.dtype] = float_dtype,
    *,
    shape_of: Callable[..., tuple[int, ...] | None] = broadcast_shape,
    check_casts: bool = True,
    compiled: bool = True,
    inline: bool = False,
    takes_sharding: bool = True,
) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Makes a sampler of a formula, `draw(key, *parameters, shape, dtype)`.

    The public function is called as `(key, *parameters, shape, dtype, *,
    out_sharding)`, the last if it `takes_sharding`. Without parameters, `shape` is ()
    by default, else None, of which `shape_of` makes what the parameters broadcast to
    (`shape_as_given` has the default () too). Only this decorator converts argument
    types: `draw` gets arrays, a tuple and a NumPy dtype. `dtype_of` checks the dtype
    and gives the default one; `check_casts` forbids parameters of wider dtypes. With
    `compiled=False`, `draw` is not jitted, since it calls a jitted function itself.
    """

    def decorate(draw: Callable[..., Array]) -> Callable[..., Array]:
        name = draw.__name__
        given = shape_of is shape_as_given
        signature = _public_signature(draw, given, takes_sharding)

        def sample(
            key: ArrayLike,
            shape: Shape = (),
            dtype: DTypeLike | None = None,
            *,
            out_sharding: Any = None,
        ) -> Array:
            key, _ = check_key(name, key)
            dtype = dtype_of(name, dtype)
            return laid_out(program, out_sharding, key, canonical_shape(shape), dtype)

        def sample_with_parameters(*args: Any, **keywords: Any) -> Array:
            try:
                bound = signature.bind(*args, **keywords)
            except TypeError as error:
                raise TypeError(f"{name}() {error}") from None
            bound.apply_defaults()
            settings = bound.arguments
            out_sharding = settings.pop("out_sharding", None)
            key, *values, shape, dtype = settings.values()
            key, _ = check_key(name, key)
            dtype = dtype_of(name, dtype)
            shape = shape_of(name, shape, *values)
            if check_casts:
                check_safe_to_cast(name, dtype, *values)
            return laid_out(program, out_sharding, key, *values, shape, dtype)

        settled = len(signature.parameters) - (3 if takes_sharding else 2)
        public: Any = sample if settled == 1 else sample_with_parameters
        functools.update_wrapper(public, draw)
        public.__signature__ = signature
        draw.__name__ = draw.__qualname__ = "_" + name
        program = draw
        if compiled:
            program = jit(draw, static_argnums=(settled, settled + 1), inline=inline)
        return public

    return decorate


def _public_signature(
    draw: Callable[..., Array], shape_as_given: bool, takes_sharding: bool
) -> inspect.Signature:
    """The signature of a sampler, from that of its arithmetic."""
    signature = inspect.signature(draw)
    *front, shape, dtype = signature.parameters.values()
    needs_shape = shape_as_given or not front[1:]
    shape_type, default = ("Shape", ()) if needs_shape else ("Shape | None", None)
    by_name = inspect.Parameter.KEYWORD_ONLY
    public = [each.replace(annotation="ArrayLike") for each in front]
    public += [
        shape.replace(annotation=shape_type, default=default),
        dtype.replace(annotation="DTypeLike | None", default=None),
    ]
    if takes_sharding:
        sharding = inspect.Parameter("out_sharding", by_name, default=None)
        public.append(sharding.replace(annotation="Any"))
    return signature.replace(parameters=public)
