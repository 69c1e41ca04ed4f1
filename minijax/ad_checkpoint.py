"""What the backward pass keeps, and what it recomputes. In JAX: `jax.ad_checkpoint`.

Told in `programs/checkpointing.py`; the policies in `programs/saving_policies.py`.
"""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.programs.checkpointing import (
    Offloadable, Recompute, Saveable, checkpoint, checkpoint_name, checkpoint_policies,
    print_saved_residuals, remat,
)
