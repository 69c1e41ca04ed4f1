"""NumPyro: NUTS and stochastic variational inference of a regression."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

x = jnp.linspace(-1, 1, 20)
y = 2 * x + 0.5


def model():
    w = numpyro.sample("w", dist.Normal(0, 1))
    b = numpyro.sample("b", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(w * x + b, 0.3), obs=y)


mcmc = MCMC(NUTS(model), num_warmup=20, num_samples=20, progress_bar=False)
mcmc.run(jax.random.key(0))
print({k: v[-3:] for k, v in mcmc.get_samples().items()})
guide = AutoNormal(model)
svi = SVI(model, guide, numpyro.optim.Adam(0.05), Trace_ELBO())
losses = svi.run(jax.random.key(1), 30, progress_bar=False).losses
print(*(f"{loss:.4f}" for loss in losses[-3:]))
