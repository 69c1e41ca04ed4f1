"""Arrays and programs on several devices: placement, constraints, jit's shardings."""
