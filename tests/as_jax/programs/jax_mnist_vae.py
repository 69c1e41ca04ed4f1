"""After JAX's `mnist_vae.py`: a variational autoencoder of stax, an epoch a scan."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jax.example_libraries import optimizers, stax

PIXELS, BATCH, EPOCHS = 196, 50, 3


def gaussian_kl(mu, sigmasq):
    """From a diagonal normal distribution to the standard one."""
    return -0.5 * jnp.sum(1.0 + jnp.log(sigmasq) - mu**2.0 - sigmasq)


def gaussian_sample(rng, mu, sigmasq):
    return mu + jnp.sqrt(sigmasq) * random.normal(rng, mu.shape)


def bernoulli_logpdf(logits, x):
    return -jnp.sum(jnp.logaddexp(0.0, jnp.where(x, -1.0, 1.0) * logits))


encoder_init, encode = stax.serial(
    stax.Dense(48), stax.Relu, stax.FanOut(2),
    stax.parallel(stax.Dense(6), stax.serial(stax.Dense(6), stax.Softplus)),
)  # fmt: skip
decoder_init, decode = stax.serial(stax.Dense(48), stax.Relu, stax.Dense(PIXELS))


def elbo(rng, params, images):
    enc_params, dec_params = params
    mu_z, sigmasq_z = encode(enc_params, images)
    logits_x = decode(dec_params, gaussian_sample(rng, mu_z, sigmasq_z))
    return bernoulli_logpdf(logits_x, images) - gaussian_kl(mu_z, sigmasq_z)


def image_sample(rng, params, count):
    code_rng, img_rng = random.split(rng)
    logits = decode(params[1], random.normal(code_rng, (count, 6)))
    return random.bernoulli(img_rng, jax.nn.sigmoid(logits))


patterns = np.random.RandomState(0).rand(10, PIXELS) > 0.6
labels = np.random.RandomState(1).randint(10, size=500)
train = (patterns[labels] ^ (np.random.RandomState(2).rand(500, PIXELS) < 0.05)) * 1.0
train = jnp.asarray(train, jnp.float32)

enc_rng, dec_rng = random.split(random.key(0))
_, enc_params = encoder_init(enc_rng, (BATCH, PIXELS))
_, dec_params = decoder_init(dec_rng, (BATCH, 6))
opt_init, opt_update, get_params = optimizers.momentum(0.005, mass=0.9)


def binarize_batch(rng, i):
    batch = lax.dynamic_slice_in_dim(train, i * BATCH, BATCH)
    return random.bernoulli(rng, 0.02 + 0.96 * batch)


@jax.jit
def run_epoch(rng, opt_state):
    def body(i, opt_state):
        elbo_rng, data_rng = random.split(random.fold_in(rng, i))
        batch = binarize_batch(data_rng, i)
        loss = lambda params: -elbo(elbo_rng, params, batch) / BATCH
        return opt_update(i, jax.grad(loss)(get_params(opt_state)), opt_state)

    return lax.fori_loop(0, len(train) // BATCH, body, opt_state)


@jax.jit
def evaluate(opt_state):
    params = get_params(opt_state)
    return elbo(random.key(3), params, train > 0.5) / len(train)


opt_state = opt_init((enc_params, dec_params))
for epoch in range(EPOCHS):
    opt_state = run_epoch(random.key(epoch + 1), opt_state)
    print(f"epoch {epoch} bound {evaluate(opt_state):.3f}")
made = image_sample(random.key(9), get_params(opt_state), 100)
print(f"share of bright pixels {made.mean():.2f} in the data {train.mean():.2f}")
