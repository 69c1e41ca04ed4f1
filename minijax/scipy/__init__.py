"""The part of SciPy's interface that minijax has."""

from minijax.scipy import special as special
from minijax.scipy import stats as stats
from minijax.support.late_names import late_names as _late_names

# Imported on first use: few programs need them.
__getattr__, __dir__, __all__ = _late_names(
    globals(), "fft linalg optimize signal sparse", {}
)
