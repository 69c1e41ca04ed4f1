"""The version of minijax. `pyproject.toml` says the same; a test compares them."""

__version__ = "0.1.0"
__version_info__ = tuple(map(int, __version__.split(".")))
