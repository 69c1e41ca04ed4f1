"""The public names of the language. In JAX: `jax.core`.

The language itself stands in `language/`; what makers of primitives need is in
`minijax.extend.core`, as in JAX.
"""

from minijax.language.concrete import (
    ensure_compile_time_eval as ensure_compile_time_eval,
)
from minijax.language.concrete import eval_context as eval_context
from minijax.language.core import AbstractValue as AbstractValue
from minijax.language.core import Atom as Atom
from minijax.language.core import ParamDict as ParamDict
from minijax.language.core import ShapedArray as ShapedArray
from minijax.language.core import Trace as Trace
from minijax.language.core import Tracer as Tracer
from minijax.language.core import Value as Value
from minijax.language.core import eval_jaxpr as eval_jaxpr
from minijax.language.jax_spellings import max_dim as max_dim
from minijax.language.jax_spellings import min_dim as min_dim
