"""Element types. In JAX: `jax.dtypes`."""

from minijax.support.dtypes import TypePromotionError as TypePromotionError
from minijax.support.dtypes import bfloat16 as bfloat16
from minijax.support.dtypes import canonicalize_dtype as canonicalize_dtype
from minijax.support.dtypes import extended as extended
from minijax.support.dtypes import finfo as finfo
from minijax.support.dtypes import float0 as float0
from minijax.support.dtypes import iinfo as iinfo
from minijax.support.dtypes import issubdtype as issubdtype
from minijax.support.dtypes import scalar_type_of as scalar_type_of
from minijax.support.element_types import itemsize_bits as itemsize_bits
from minijax.support.element_types import prng_key as prng_key
from minijax.support.element_types import result_type as result_type
