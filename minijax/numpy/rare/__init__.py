"""Functions of NumPy that few programs use: sets, polynomials, windows, series."""
