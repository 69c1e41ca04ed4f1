"""Random numbers from explicit keys; equal to JAX's bit for bit.

key = random.key(0)
key, subkey = random.split(key)
x = random.normal(subkey, (3,))
"""

from minijax.random.combined import double_sided_maxwell as double_sided_maxwell
from minijax.random.combined import lognormal as lognormal
from minijax.random.combined import maxwell as maxwell
from minijax.random.combined import rademacher as rademacher
from minijax.random.combined import wald as wald
from minijax.random.counts import binomial as binomial
from minijax.random.counts import multinomial as multinomial
from minijax.random.counts import poisson as poisson
from minijax.random.distributions import cauchy as cauchy
from minijax.random.distributions import exponential as exponential
from minijax.random.distributions import geometric as geometric
from minijax.random.distributions import gumbel as gumbel
from minijax.random.distributions import laplace as laplace
from minijax.random.distributions import logistic as logistic
from minijax.random.distributions import pareto as pareto
from minijax.random.distributions import rayleigh as rayleigh
from minijax.random.distributions import triangular as triangular
from minijax.random.distributions import weibull_min as weibull_min
from minijax.random.gamma_family import ball as ball
from minijax.random.gamma_family import beta as beta
from minijax.random.gamma_family import chisquare as chisquare
from minijax.random.gamma_family import dirichlet as dirichlet
from minijax.random.gamma_family import f as f
from minijax.random.gamma_family import gamma as gamma
from minijax.random.gamma_family import generalized_normal as generalized_normal
from minijax.random.gamma_family import loggamma as loggamma
from minijax.random.gamma_family import t as t
from minijax.random.gamma_sampling import random_gamma_p as random_gamma_p
from minijax.random.keys import PRNGKey as PRNGKey
from minijax.random.keys import clone as clone
from minijax.random.keys import fold_in as fold_in
from minijax.random.keys import key as key
from minijax.random.keys import key_data as key_data
from minijax.random.keys import key_dtype as key_dtype
from minijax.random.keys import key_impl as key_impl
from minijax.random.keys import split as split
from minijax.random.keys import wrap_key_data as wrap_key_data
from minijax.random.population import categorical as categorical
from minijax.random.population import choice as choice
from minijax.random.population import permutation as permutation
from minijax.random.samplers import bernoulli as bernoulli
from minijax.random.samplers import bits as bits
from minijax.random.samplers import normal as normal
from minijax.random.samplers import randint as randint
from minijax.random.samplers import truncated_normal as truncated_normal
from minijax.random.samplers import uniform as uniform
