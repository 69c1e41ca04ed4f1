"""Reading and updating arrays by indices."""
