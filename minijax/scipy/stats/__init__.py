"""Ten common distributions: densities, probabilities, and their inverses."""

from minijax.scipy.stats import bernoulli as bernoulli
from minijax.scipy.stats import beta as beta
from minijax.scipy.stats import expon as expon
from minijax.scipy.stats import gamma as gamma
from minijax.scipy.stats import laplace as laplace
from minijax.scipy.stats import logistic as logistic
from minijax.scipy.stats import norm as norm
from minijax.scipy.stats import poisson as poisson
from minijax.scipy.stats import t as t
from minijax.scipy.stats import uniform as uniform
