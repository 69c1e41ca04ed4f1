"""Elementwise functions: arithmetic, comparison, rounding, elementary functions."""
