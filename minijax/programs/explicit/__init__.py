"""Meshes with Explicit axes: the types of values say how they are cut over devices."""
