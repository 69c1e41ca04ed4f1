"""Floor 4: one interpreter a file, readable in any order."""
