"""Ten common distributions: densities, probabilities, and their inverses."""

# isort: skip_file
# fmt: off
from minijax.scipy.stats import (
    bernoulli, beta, expon, gamma, laplace, logistic, norm, poisson, t, uniform,
)
