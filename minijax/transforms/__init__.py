"""From Python to programs, and from program to program: jvp, transpose, vmap, grad."""
