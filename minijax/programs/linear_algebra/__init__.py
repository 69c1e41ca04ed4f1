"""Decompositions of matrices, solutions of linear equations, Fourier transforms."""
