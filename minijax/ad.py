"""`minijax.ad`: what `vjp(...)[1].with_refs` takes and gives back. In JAX: `jax.ad`."""

from minijax.pullbacks import DidntWant as DidntWant
from minijax.pullbacks import DontWant as DontWant
from minijax.pullbacks import GradRef as GradRef
from minijax.pullbacks import GradValue as GradValue

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]
