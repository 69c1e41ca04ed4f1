"""Products that add up: dot, convolution, ragged products."""
