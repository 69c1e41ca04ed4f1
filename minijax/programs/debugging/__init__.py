"""Finding what went wrong: leaks, NaNs, reused keys, breakpoints, reports."""
