"""Element types. In JAX: `jax.dtypes`."""

from minijax.core.dtypes import TypePromotionError as TypePromotionError
from minijax.core.dtypes import bfloat16 as bfloat16
from minijax.core.dtypes import canonicalize_dtype as canonicalize_dtype
from minijax.core.dtypes import extended as extended
from minijax.core.dtypes import finfo as finfo
from minijax.core.dtypes import float0 as float0
from minijax.core.dtypes import iinfo as iinfo
from minijax.core.dtypes import issubdtype as issubdtype
from minijax.core.dtypes import scalar_type_of as scalar_type_of
from minijax.support.element_types import itemsize_bits as itemsize_bits
from minijax.support.element_types import prng_key as prng_key
from minijax.support.element_types import result_type as result_type
