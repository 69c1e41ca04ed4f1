"""`jax.experimental.sparse`, as far as a library can import what it never makes.

minijax has no sparse arrays. NumPyro imports `BCOO` for one distribution, a sparse
model of neighbours, which is refused here with a sentence when it is made.
"""

from __future__ import annotations

from typing import Any, NoReturn


class BCOO:
    """A sparse array; it is not to be made here: NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any):
        self.from_scipy_sparse()

    @classmethod
    def from_scipy_sparse(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Not here: NotImplementedError."""
        raise NotImplementedError(
            "minijax has no sparse arrays (jax.experimental.sparse): pass a dense one."
        )
