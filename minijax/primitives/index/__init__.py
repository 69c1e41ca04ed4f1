"""Reading and writing at positions that are data: gather, scatter, dynamic slices."""
