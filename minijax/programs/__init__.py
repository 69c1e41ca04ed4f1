"""Primitives that carry a program: loops, branches, custom rules, callbacks."""
