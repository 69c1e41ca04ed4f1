"""Staging and partial evaluation, with JAX's tables.

In JAX: `jax.interpreters.partial_eval`.
"""

from minijax.core.partial_eval import *  # noqa: F403
from minijax.interpreters.partial_values import *  # noqa: F403
from minijax.interpreters.rule_tables import *  # noqa: F403
from minijax.transforms.splitting import partial_eval_jaxpr as partial_eval_jaxpr
