"""tiny: a toy JAX over NumPy, which the course builds, one piece a chapter.

It computes with NumPy and compiles nothing. It is here to be understood, not used.
"""
