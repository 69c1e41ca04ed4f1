"""Element types. In JAX: `jax.dtypes`."""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.core.dtypes import (
    TypePromotionError, bfloat16, extended, finfo, float0, iinfo,
    issubdtype, scalar_type_of,
)
from minijax.support.element_types import (
    canonicalize_dtype, itemsize_bits, prng_key, result_type,
)
