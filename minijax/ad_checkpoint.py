"""What the backward pass keeps, and what it recomputes. In JAX: `jax.ad_checkpoint`.

Told in `programs/checkpointing.py`; the policies in `programs/saving_policies.py`.
"""

from minijax.programs.checkpointing import Offloadable as Offloadable
from minijax.programs.checkpointing import Recompute as Recompute
from minijax.programs.checkpointing import Saveable as Saveable
from minijax.programs.checkpointing import checkpoint as checkpoint
from minijax.programs.checkpointing import checkpoint_name as checkpoint_name
from minijax.programs.checkpointing import checkpoint_policies as checkpoint_policies
from minijax.programs.checkpointing import (
    print_saved_residuals as print_saved_residuals,
)
from minijax.programs.checkpointing import remat as remat
