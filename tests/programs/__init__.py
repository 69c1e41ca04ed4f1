"""Primitives that carry a program, refs and custom rules, against JAX."""
