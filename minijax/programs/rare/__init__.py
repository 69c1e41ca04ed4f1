"""Programs that few users write: general windows and reductions, breakpoints."""
