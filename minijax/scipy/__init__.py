"""The part of SciPy's interface that minijax has."""

from minijax.scipy import special as special
from minijax.scipy import stats as stats
