"""Where operations were written, and the scopes around them.

In JAX: `jax.extend.source_info_util`.
"""

from minijax.core.source_info import NameStack as NameStack
from minijax.core.source_info import NameStackContext as NameStackContext
from minijax.core.source_info import SourceInfo as SourceInfo
from minijax.core.source_info import current as current
from minijax.core.source_info import current_name_stack as current_name_stack
from minijax.core.source_info import reset_name_stack as reset_name_stack
from minijax.core.source_info import transform_name_stack as transform_name_stack
from minijax.core.source_info import user_context as user_context
from minijax.support.user_source import extend_name_stack as extend_name_stack
from minijax.support.user_source import new_source_info as new_source_info
from minijax.support.user_source import register_exclusion as register_exclusion
from minijax.support.user_source import summarize as summarize


def set_name_stack(name_stack: NameStack) -> NameStackContext:
    """Context manager: the name stack inside is `name_stack`."""
    return NameStackContext(lambda stack: name_stack)


def new_name_stack(name: str = "") -> NameStack:
    """A name stack with one scope, or the empty one."""
    return NameStack().extend(name) if name else NameStack()
