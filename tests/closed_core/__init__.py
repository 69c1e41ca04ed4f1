"""The closed core runs by itself: see `test_closed_core.py`."""
