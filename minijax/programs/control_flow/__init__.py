"""Primitives that carry a program: loops, branches, general reductions."""
