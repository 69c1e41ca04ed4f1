"""The same numbers in another shape, order or dtype."""
