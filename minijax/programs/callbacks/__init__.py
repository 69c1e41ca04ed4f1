"""Calling Python from a compiled program."""
