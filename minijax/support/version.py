"""The version of minijax. `pyproject.toml` says the same; a test compares them."""

__version__ = "0.1.0"
