"""platform_dependent: one function for each platform; the compiler chooses.

It is a `switch` on an index that lowering knows: `platform_index` becomes a constant,
and XLA drops the branches that are not taken.

In JAX: `lax/control_flow/conditionals.py`, `platform_dependent`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import errors
from minijax.core.language import Primitive, ShapedArray, register
from minijax.core.signatures import check_functions
from minijax.programs.control_flow.conditionals import switch_on
from minijax.values.concrete import is_concrete

platform_index_p = register(Primitive("platform_index"))
platform_index_p.def_abstract_eval(lambda *_, **__: ShapedArray((), np.int32))
platform_index_p.without("jvp transpose batch", "the index depends on nothing")


@platform_index_p.def_lowering
def _platform_index_lowering(ctx, *, platforms: tuple) -> Any:
    for index, names in enumerate(platforms):
        if names is None or ctx.platform in names:
            return ctx.constant(np.int32(index))
    raise NotImplementedError(
        f"platform_dependent has no branch for the platform {ctx.platform}, and no "
        f"default; it has {[name for names in platforms for name in names]}."
    )


def platform_dependent(
    *args: Any, default: Callable | None = None, **per_platform: Callable
) -> Any:
    """Calls the function given for the platform that the program is compiled for.

    Args:
      args: arrays or trees of arrays.
      default: the function for platforms that are not named.
      per_platform: functions of `args` by platform: `cpu=f, cuda=g, tpu=h`. All are
        traced; the one for the platform that the program is lowered for runs.

    Returns:
      what the function for the platform returns.

    Raises:
      TypeError: a branch is not a function.
      ValueError: a platform is called "gpu": name "cuda" or "rocm".
    """
    names: list[list[str] | None] = []
    branches: list[Callable] = []
    for name, branch in per_platform.items():
        check_functions("lax.platform_dependent", **{name: branch})
        if name == "gpu":
            raise errors.value_error(
                "Use 'cuda' or 'rocm' for lax.platform_dependent, not 'gpu'."
            )
        for own, known in zip(names, branches):
            if known == branch and own is not None:
                own.append(name)
                break
        else:
            names.append([name])
            branches.append(branch)
    if default is not None:
        check_functions("lax.platform_dependent", default=default)
        names.append(None)
        branches.append(default)
    platforms = tuple(None if own is None else tuple(own) for own in names)
    index = platform_index_p.bind(platforms=platforms)
    if is_concrete(index):
        return branches[int(index)](*args)
    return switch_on(index, branches, args, branches_platforms=platforms)
