"""`minijax.ad`: what `vjp(...)[1].with_refs` takes and gives back. In JAX: `jax.ad`."""

from minijax.transforms.pullbacks import DidntWant as DidntWant
from minijax.transforms.pullbacks import DontWant as DontWant
from minijax.transforms.pullbacks import GradRef as GradRef
from minijax.transforms.pullbacks import GradValue as GradValue
