"""Linear equations by iteration; there are no sparse arrays."""

from minijax.scipy.sparse import linalg as linalg
