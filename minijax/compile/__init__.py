"""From program to machine: lowering, compiling, running, and jit's cache."""
