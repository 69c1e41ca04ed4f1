"""The only room that imports jaxlib: devices, compiler, StableHLO."""
