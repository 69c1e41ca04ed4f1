"""Products of arrays: `dot`, `matmul`, `einsum`."""
