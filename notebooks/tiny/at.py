"""tiny, a toy over NumPy. This piece: updating an array without changing it."""

import numpy as np


class At:
    """An array that waits for an index: what `x.at` is."""

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index):
        return Place(self.array, index)


class Place:
    """A place in an array: what `x.at[index]` is. The array itself never changes."""

    def __init__(self, array, index):
        self.array = array
        self.index = index

    def set(self, values):
        """A copy of the array, with other values at the place."""
        copy = np.array(self.array)
        copy[self.index] = values
        return copy

    def add(self, values):
        """A copy with the values added; an index that comes twice counts twice."""
        copy = np.array(self.array)
        np.add.at(copy, self.index, values)
        return copy
