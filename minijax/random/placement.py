"""Where the numbers that a sampler drew are to lie."""

from __future__ import annotations

from typing import Any

from minijax.compile import placing
from minijax.language.array import Array


def placed(name: str, drawn: Array, out_sharding: Any) -> Array:
    """Returns `drawn` laid out as asked; None leaves it where it is.

    The numbers do not depend on the layout: every one is computed from the key and its
    own position.
    """
    if out_sharding is None:
        return drawn
    return placing.device_put(drawn, out_sharding)
