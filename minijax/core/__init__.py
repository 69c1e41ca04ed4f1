"""The core of minijax: this folder alone runs `jit(vmap(grad(f)))` on XLA.

It imports jaxlib, NumPy and ml_dtypes, and no other part of minijax, so a copy of the
folder runs anywhere. One page, `minijax/assembly.py`, attaches the rest of minijax to
it. Read the files in this order; the first ten are the weekend's reading.

 1. `avals`: the types of values.
 2. `language`: programs (variables, equations), primitives, traces and tracers.
 3. `rules`: the vocabulary of rules (zeros, accumulators, axes that are not mapped).
 4. `arithmetic`: `sin`, `mul` and the like: each one block with all of its rules.
 5. `partial_eval`: a Python function becomes a program.
 6. `autodiff`: forward mode, linearize, transpose.
 7. `batching`: one example becomes many.
 8. `lowering`: a program becomes StableHLO.
 9. `dispatch`: compiled programs and the arrays they run on.
10. `jit`: `jit`, its cache, and a call from end to end.

Then, as they are needed:

- more primitives: `shaping`, `sums`, `dot`, `operators` (Python's `x * y`);
- what users call: `api` (`grad`, `vmap`, `jvp`), `signatures` (arguments and messages);
- around programs: `pretty` (JAX's text), `check`, `array`;
- foundations: `state` (the settings of each thread), `events` (what the core reports,
  and its hooks), `effects`, `errors`, `source_info` (the user's lines), `dtypes`,
  `trees`;
- jaxlib: `runtime` (devices and versions), `hlo` (StableHLO), `compiler` (XLA).

The names below are the public ones of `jax.core`.
"""

from .language import AbstractValue as AbstractValue
from .language import Atom as Atom
from .language import ParamDict as ParamDict
from .language import ShapedArray as ShapedArray
from .language import Trace as Trace
from .language import Tracer as Tracer
from .language import Value as Value
from .language import ensure_compile_time_eval as ensure_compile_time_eval
from .language import eval_context as eval_context
from .language import eval_jaxpr as eval_jaxpr
from .language import max_dim as max_dim
from .language import min_dim as min_dim
