"""Arrays that change: making, reading and writing refs."""
