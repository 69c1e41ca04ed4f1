"""Names that JAX's modules have for libraries, beyond those that minijax has itself.

`MODULES` says of a module of JAX in which modules of minijax its names are looked for,
after `minijax.X` for `jax.X`. `NAMES` gives single names, as `module:name`. Each points
at the public thing; what has none stands in `stand_ins.py`.
"""

from __future__ import annotations

_HERE = "minijax.jax_names.stand_ins"

MODULES: dict[str, tuple[str, ...]] = {
    "jax": (),
    "jax.version": (),
    "jax.experimental.hijax": ("minijax.jax_names.hijax",),
    "jax.experimental.sparse": ("minijax.jax_names.sparse",),
    "jax.interpreters.xla": (),
    "jax.lib": (),
    "jax._src": (),
    "jax._src.ad_util": ("minijax.interpreters.ad",),
    "jax._src.checkify": ("minijax.experimental.checkify",),
    "jax._src.api": ("minijax",),
    "jax._src.api_util": ("minijax.api_util",),
    "jax._src.config": ("minijax",),
    "jax._src.core": ("minijax.core", "minijax.extend.core"),
    "jax._src.custom_derivatives": ("minijax.custom_derivatives",),
    "jax._src.dispatch": (),
    "jax._src.dtypes": ("minijax.dtypes",),
    "jax._src.flatten_util": ("minijax.flatten_util",),
    "jax._src.interpreters": (),
    "jax._src.interpreters.ad": ("minijax.interpreters.ad",),
    "jax._src.interpreters.batching": ("minijax.interpreters.batching",),
    "jax._src.interpreters.mlir": ("minijax.interpreters.mlir",),
    "jax._src.interpreters.partial_eval": ("minijax.interpreters.partial_eval",),
    "jax._src.lax": ("minijax.lax",),
    "jax._src.lax.lax": ("minijax.lax",),
    "jax._src.mesh": ("minijax.sharding",),
    "jax._src.nn": ("minijax.nn",),
    "jax._src.nn.initializers": ("minijax.nn.initializers",),
    "jax._src.numpy": ("minijax.numpy",),
    "jax._src.numpy.util": (),
    "jax._src.random": ("minijax.random",),
    "jax._src.scipy": ("minijax.scipy",),
    "jax._src.source_info_util": ("minijax.extend.source_info_util",),
    "jax._src.state": (),
    "jax._src.state.types": (),
    "jax._src.traceback_util": (),
    "jax._src.tree_util": ("minijax.tree_util",),
    "jax._src.typing": ("minijax.typing",),
    "jax._src.util": ("minijax.util",),
}

_VERSION = {
    "__version__": f"{_HERE}:JAX_VERSION",
    "__version_info__": f"{_HERE}:JAX_VERSION_INFO",
}
NAMES: dict[str, dict[str, str]] = {
    "jax": _VERSION,
    "jax.version": _VERSION,
    "jax.core": {"pytype_aval_mappings": "minijax.core.avals:aval_of_class"},
    "jax.interpreters.xla": {"canonicalize_dtype_handlers": f"{_HERE}:array_handlers"},
    "jax.lib": {"__version__": "jaxlib:__version__"},
    "jax.extend.core.primitives": {
        name: f"{_HERE}:{name}" for name in ("call_p", "closed_call_p")
    },
    "jax.scipy.stats": {"gaussian_kde": f"{_HERE}:gaussian_kde"},
    "jax._src": {"compiler": f"{_HERE}:compiler"},
    "jax._src.ad_util": {"stop_gradient_p": f"{_HERE}:stop_gradient_p"},
    "jax._src.core": {"trace_state_clean": f"{_HERE}:trace_state_clean"},
    "jax._src.dispatch": {"wait_for_tokens": "minijax:effects_barrier"},
    "jax._src.dtypes": {
        "DType": "numpy:dtype",
        "ExtendedDType": "minijax.support.element_types:ExtendedDType",
    },
    "jax._src.flatten_util": {"ravel_pytree": "minijax.flatten_util:ravel_pytree"},
    "jax._src.state.types": {"AbstractRef": "minijax.values.ref_avals:AbstractRef"},
    "jax._src.tree_util": {"_registry": f"{_HERE}:tree_registry"},
    "jax._src.traceback_util": {
        "register_exclusion": "minijax.support.user_source:register_exclusion",
        "api_boundary": f"{_HERE}:api_boundary",
        "include_frame": f"{_HERE}:include_frame",
    },
}
