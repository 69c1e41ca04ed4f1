"""Functions that reduce or run along axes: sums, moments, quantiles, counts."""
