"""Writes what Gloo's threads write together, and lines of its own between."""

import sys

END = " peer ranks. Expected number of connected peer ranks is : "
sys.stdout.write(
    f"[Gloo] Rank 0 is connected to 3{END}3\n"
    # Two threads: the last piece of the first comes after the second's.
    f"[Gloo] Rank 0 is connected to 3{END}[Gloo] Rank 0 is connected to 1{END}13\n"
    "\n"
    # And one that is cut by another.
    f"[Gloo] Rank [Gloo] Rank 00 is connected to 3{END}3\n"
    " is connected to 3 peer ranks. Expected number of connected peer ranks is : 1\n"
    # The last two pieces of two threads, in two lines.
    f"[Gloo] Rank 0 is connected to 3{END}[Gloo] Rank 0 is connected to 1{END}3\n"
    "between\n"
    "1\n"
    "3\n"
)
