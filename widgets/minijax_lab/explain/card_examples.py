"""Examples for cards of primitives that carry a program, hold state or need a helper.

Each is a function and its arguments; the primitive is in the function's jaxpr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax, make_jaxpr, nn, random
from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core.language import all_primitives
from minijax.custom_derivatives import custom_vjp
from minijax.programs.callbacks.callback import pure_callback
from minijax.programs.checkpointing import checkpoint, checkpoint_name
from minijax.programs.custom.custom_vmap_rule import custom_vmap
from minijax.ref import addupdate, freeze, new_ref
from minijax.transforms.differentiation import jvp, vjp
from minijax_lab.explain.cards import A, B, I, X, Y

ZERO = np.float32(0)
LEAST, MOST = np.float32(-np.inf), np.float32(np.inf)


@custom_vjp
def doubled_gradient(x: Any) -> Any:
    return x * x


doubled_gradient.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))


@custom_vmap
def halved(x: Any) -> Any:
    return x * 0.5


@halved.def_vmap
def _halved_batch(axis_size: int, in_batched: Any, xs: Any) -> Any:
    return xs * 0.5, in_batched[0]


def through_a_ref(x: Any) -> Any:
    """Reads, writes, adds, and takes the value out."""
    ref = new_ref(x)
    ref[...] = ref[...] * 2.0
    addupdate(ref, ..., x)
    return freeze(ref)


def pooled(x: Any) -> Any:
    """The largest of each two neighbours."""
    return lax.reduce_window(x, LEAST, lax.max, (2,), (1,), "VALID")


def recurrence(x: Any) -> Any:
    """Each number, and half of what came before."""
    return lax.scan(lambda kept, a: (kept * 0.5 + a, kept), ZERO, x)[1]


def halved_thrice(x: Any) -> Any:
    """Half of a half of a half, counted."""

    def step(s: Any) -> Any:
        return s[0] + 1, s[1] * 0.5

    return lax.while_loop(lambda s: s[0] < 3, step, (0, x))[1]


def keys() -> Any:
    """A seed becomes a key, the key becomes two, and these become numbers."""
    made = random.fold_in(random.split(random.clone(random.key(0)))[0], 7)
    return random.key_data(random.wrap_key_data(random.key_data(made)))


def scattered(x, source):
    """Each entry of `source` is multiplied in where its window of `x` is largest."""
    return lax.select_and_scatter_p.bind(
        x,
        source,
        np.float32(1),
        select_jaxpr=make_jaxpr(lax.ge)(ZERO, ZERO).jaxpr,
        select_consts=(),
        scatter_jaxpr=make_jaxpr(lax.mul)(ZERO, ZERO).jaxpr,
        scatter_consts=(),
        window_dimensions=(2,),
        window_strides=(1,),
        padding=((0, 0),),
    )


_through_a_ref = (through_a_ref, (X,))
_keys = (keys, ())

EXAMPLES: dict[str, tuple[Callable[..., Any], tuple]] = {
    "add_any": (lambda x, y: all_primitives["add_any"].bind(x, y), (X, Y)),
    "addupdate": _through_a_ref,
    "composite": (lambda x: lax.composite(jnp.sinc, "my.sinc")(x), (X,)),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), (X,)),
    "custom_jvp_call": (nn.relu, (X,)),
    "custom_linear_solve": (
        lambda b: lax.custom_linear_solve(
            lambda x: 2.0 * x, b, lambda _, c: 0.5 * c, symmetric=True
        ),
        (X,),
    ),
    "custom_vjp_call": (doubled_gradient, (X,)),
    "custom_vmap_call": (halved, (X,)),
    "freeze": _through_a_ref,
    "get": _through_a_ref,
    "jit": (lambda x: jit(jnp.sin)(x), (X,)),
    "name": (lambda x: checkpoint_name(jnp.sin(x), "sine"), (X,)),
    "new_ref": _through_a_ref,
    "pure_callback": (
        lambda x: pure_callback(np.sin, x, x, vmap_method="expand_dims"),
        (X,),
    ),
    "random_clone": _keys,
    "random_fold_in": _keys,
    "random_seed": _keys,
    "random_split": _keys,
    "random_unwrap": _keys,
    "random_wrap": _keys,
    "reduce": (
        lambda x: lax.reduce(x, ZERO, lambda a, b: a + b - a * b, (0,)),
        (X,),
    ),
    "reduce_window": (
        lambda x: lax.reduce_window(
            x, ZERO, lambda a, b: a + b - a * b, (2,), (1,), "VALID"
        ),
        (X,),
    ),
    "reduce_window_max": (pooled, (X,)),
    "reduce_window_min": (
        lambda x: lax.reduce_window(x, MOST, lax.min, (2,), (1,), "VALID"),
        (X,),
    ),
    "reduce_xor": (lambda i: lax.reduce(i, np.int32(0), lax.bitwise_xor, (0,)), (I,)),
    "regularized_incomplete_beta": (
        lambda x: lax.betainc(X + 2, Y + 2, x),
        (X / 4 + 0.5,),
    ),
    "ragged_dot_general": (
        lambda x, y: lax.ragged_dot(x, y, np.array([1, 2], np.int32)),
        (B, np.stack([A.T[:2, :2], A.T[1:, :2]])),
    ),
    "random_gamma": (lambda x: random.gamma(random.key(0), x), (X + 2,)),
    "remat2": (checkpoint(jnp.sin), (X,)),
    "scaled_dot": (lambda x: lax.scaled_dot(x[None], x[:, None]), (X,)),
    "scan": (recurrence, (X,)),
    "scatter-sub": (lambda x: jnp.asarray(x).at[1].subtract(2.0), (X,)),
    "select_and_gather_add": (lambda x: jvp(pooled, (jnp.asarray(X),), (x,))[1], (Y,)),
    "select_and_scatter": (scattered, (X, X[:-1])),
    "select_and_scatter_add": (
        lambda ct: vjp(pooled, jnp.asarray(X))[1](ct)[0],
        (Y[:2],),
    ),
    "swap": _through_a_ref,
    "tile": (lambda x: lax.tile(x, (2,)), (X,)),
    "while": (halved_thrice, (X,)),
}
