"""The public names of the language. In JAX: `jax.core`.

The language itself stands in `language/`; what makers of primitives need is in
`minijax.extend.core`, as in JAX.
"""

from minijax.core.language import AbstractValue as AbstractValue
from minijax.core.language import Atom as Atom
from minijax.core.language import ParamDict as ParamDict
from minijax.core.language import ShapedArray as ShapedArray
from minijax.core.language import Trace as Trace
from minijax.core.language import Tracer as Tracer
from minijax.core.language import Value as Value
from minijax.core.language import eval_jaxpr as eval_jaxpr
from minijax.values.concrete import (
    ensure_compile_time_eval as ensure_compile_time_eval,
)
from minijax.values.concrete import eval_context as eval_context
from minijax.values.jax_spellings import max_dim as max_dim
from minijax.values.jax_spellings import min_dim as min_dim
