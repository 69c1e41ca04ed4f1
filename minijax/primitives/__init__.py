"""Floor 3: first-order primitives, each with all its rules in one block."""
