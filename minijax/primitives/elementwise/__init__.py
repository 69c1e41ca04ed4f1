"""One number in, one number out: arithmetic, comparison, special functions."""
