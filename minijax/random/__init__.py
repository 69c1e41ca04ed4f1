"""Random numbers from explicit keys; equal to JAX's bit for bit.

key = random.key(0)
key, subkey = random.split(key)
x = random.normal(subkey, (3,))
"""

# isort: skip_file
# fmt: off
from minijax.random.combined import (
    double_sided_maxwell, lognormal, maxwell, rademacher, wald,
)
from minijax.random.counts import binomial, multinomial, poisson
from minijax.random.distributions import (
    cauchy, exponential, geometric, gumbel, laplace, logistic, pareto, rayleigh,
    triangular, weibull_min,
)
from minijax.random.gamma_family import (
    ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t,
)
from minijax.random.gamma_sampling import random_gamma_p
from minijax.random.keys import (
    PRNGKey, clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data,
)
from minijax.random.population import categorical, choice, permutation
from minijax.random.samplers import (
    bernoulli, bits, normal, randint, truncated_normal, uniform,
)
from minijax.support.late_names import late_names as _late_names

# Imported on first use: with them comes linear algebra.
__getattr__, __dir__, __all__ = _late_names(
    globals(), "", {".matrices": "multivariate_normal orthogonal"}
)
