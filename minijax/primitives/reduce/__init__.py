"""Many numbers into one, along axes: sums, cumulative sums, windows, sorting."""
