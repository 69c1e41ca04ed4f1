"""What minijax is made of, for code that extends it: primitives, programs, rules.

In JAX: `jax.extend`. As there, nothing here is promised to stay as it is.
"""

from minijax.extend import backend as backend
from minijax.extend import core as core
from minijax.extend import ffi as ffi
from minijax.extend import linear_util as linear_util
from minijax.extend import lowering as lowering
from minijax.extend import mlir as mlir
from minijax.extend import random as random
from minijax.extend import source_info_util as source_info_util
