"""Random bits from keys: threefry, rbg."""
