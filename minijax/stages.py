"""A jitted function step by step: traced, lowered, compiled. In JAX: `jax.stages`."""

from minijax.compile.stages import ArgInfo as ArgInfo
from minijax.compile.stages import Compiled as Compiled
from minijax.compile.stages import CompilerOptions as CompilerOptions
from minijax.compile.stages import Lowered as Lowered
from minijax.compile.stages import Traced as Traced
from minijax.compile.stages import Wrapped as Wrapped
