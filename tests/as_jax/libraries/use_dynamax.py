"""dynamax: filter and smoother of a hidden Markov model and of a Kalman model."""

import jax
import jax.numpy as jnp
from dynamax.hidden_markov_model import hmm_filter, hmm_smoother

start, change = jnp.array([0.6, 0.4]), jnp.array([[0.9, 0.1], [0.2, 0.8]])
likelihoods = jnp.log(jax.random.uniform(jax.random.key(0), (10, 2)))
print(hmm_filter(start, change, likelihoods).marginal_loglik)
print(hmm_smoother(start, change, likelihoods).smoothed_probs)
