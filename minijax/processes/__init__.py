"""Several processes as one machine: how they meet, watch each other, and compare."""
