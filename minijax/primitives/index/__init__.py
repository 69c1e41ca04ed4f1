"""Reading and writing at computed positions: gather, scatter, dynamic slices."""
