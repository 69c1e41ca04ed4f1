"""Meshes of devices, and how an array is cut over them."""
