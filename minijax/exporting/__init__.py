"""Export: a lowered program with its signature, to be kept and called elsewhere."""
