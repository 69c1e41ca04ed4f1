"""Programs whose text differs from JAX's on purpose or for now, each with its reason.

A program listed here that prints as JAX fails its test, so that the list stays true.
"""

DIFFERENCES: dict[str, str] = {}
