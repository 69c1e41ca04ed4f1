"""JAX that compiles cheaply, for tests: as minijax does where they ask it to."""

import functools
import importlib.metadata
import os
import sys

# The variable that minijax reads when it compiles. JAX reads its own when it is
# imported: JAX_DISABLE_MOST_OPTIMIZATIONS.
FAST_COMPILE = "MINIJAX_TEST_FAST_COMPILE"


def compile_cheaply() -> None:
    """Turns XLA's fusion emitters off wherever JAX compiles without optimisations.

    minijax's fast mode does the same, which halves the time of a small program. JAX has
    no setting for it, and XLA_FLAGS would hold for the whole process and its children.
    """
    compiler = sys.modules.get("jax._src.compiler")
    if compiler is None or importlib.metadata.version("jaxlib") >= "0.11":
        return  # jaxlib 0.11 and later know no such flag
    import jax

    original = compiler.get_compile_options

    @functools.wraps(original)
    def get_compile_options(*args, **kwargs):
        options = original(*args, **kwargs)
        cheap = jax.config.read("jax_disable_most_optimizations")
        if cheap and os.environ.get(FAST_COMPILE) == "1":
            flag = ("xla_cpu_use_fusion_emitters", False)
            options.env_option_overrides = [*options.env_option_overrides, flag]
        return options

    compiler.get_compile_options = get_compile_options
