"""What is measured: each workload runs the same lines under jax and under minijax.

Run as a program, `python workloads.py LIBRARY`, it measures all workloads in this
process and prints one line of JSON: microseconds for each workload, the best of several
repeats. `compare.py` starts it for both libraries in turn.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time

start = time.perf_counter()


def load(library: str):
    """Import a library by name: (module, its numpy)."""
    if library == "jax":
        import jax
        import jax.numpy as jnp
    else:
        import minijax as jax
        import minijax.numpy as jnp
    return jax, jnp


def best(function, calls: int, repeats: int = 7) -> float:
    """Microseconds of one call: the best of several means over `calls` calls."""
    smallest = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        smallest = min(smallest, (time.perf_counter() - begin) / calls)
    return smallest * 1e6


OPERATIONS = 200


def chain(step):
    def repeated(x):
        for _ in range(OPERATIONS):
            x = step(x)
        return x

    return repeated


def transformer(jax, jnp, layers: int):
    """(loss, parameters, tokens) of a small transformer, as one writes it by hand."""
    width, heads, length = 16, 2, 6

    def normalise(x, scale):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-5) * scale

    def attend(x, p):
        q, k, v = (
            (x @ p[name]).reshape(length, heads, width // heads) for name in "qkv"
        )
        scores = jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(width / heads)
        mask = jnp.tril(jnp.ones((length, length), bool))
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
        return jnp.einsum("hqk,khd->qhd", weights, v).reshape(length, width) @ p["o"]

    def loss(params, tokens):
        x = params["embedding"][tokens]
        for p in params["layers"]:
            x = x + attend(normalise(x, p["scale1"]), p)
            hidden = jax.nn.gelu(normalise(x, p["scale2"]) @ p["up"])
            x = x + hidden @ p["down"]
        logits = x @ params["embedding"].T
        picked = jax.nn.log_softmax(logits)[jnp.arange(length - 1), tokens[1:]]
        return -picked.mean()

    square = jnp.eye(width)
    layer = {name: square for name in "qkvo"}
    layer |= {"scale1": jnp.ones(width), "scale2": jnp.ones(width)}
    layer |= {"up": jnp.ones((width, 32)) / 8, "down": jnp.ones((32, width)) / 8}
    params = {"embedding": jnp.ones((10, width)), "layers": [layer] * layers}
    return loss, params, jnp.arange(length)


def measure(jax, jnp) -> dict[str, float]:
    lax = jax.lax
    # minijax keeps compiled programs on the disk unless told not to; jax does not.
    jax.config.update("jax_enable_compilation_cache", False)
    x = jnp.ones((3,))
    times: dict[str, float] = {}

    def trace(fun, *args):
        # A fresh lambda each time, so that no cache of traces answers.
        return lambda: jax.make_jaxpr(lambda *xs: fun(*xs))(*args)

    inner = jax.jit(lambda x: lax.sin(x))
    inner(x)
    for name, step in (
        ("trace: operator x + x", lambda x: x + x),
        ("trace: operator x * 2.", lambda x: x * 2.0),
        ("trace: lax.sin", lambda x: lax.sin(x)),
        ("trace: nested jit, seen before", inner),
        ("trace: jnp.where", lambda x: jnp.where(x > 0, x, 0.0)),
    ):
        times[name] = best(trace(chain(step), x), 1) / OPERATIONS

    def mlp(params, x):
        for w, b in params:
            x = jnp.tanh(x @ w + b)
        return x.sum()

    params = [(jnp.ones((4, 4)) / 4, jnp.ones(4)) for _ in range(20)]
    batch = jnp.ones((2, 4))
    times["trace: grad of a 20-layer network"] = best(
        trace(jax.grad(mlp), params, batch), 1, 5
    )
    times["trace: vmap(grad) of a 20-layer network"] = best(
        trace(jax.vmap(jax.grad(mlp), in_axes=(None, 0)), params, batch), 1, 5
    )

    deep = [(jnp.ones((4, 4)) / 4, jnp.ones(4)) for _ in range(1000)]
    times["trace: grad of a 1,000-layer network"] = best(
        trace(jax.grad(mlp), deep, batch), 1, 2
    )
    loss, weights, tokens = transformer(jax, jnp, 6)
    times["trace: grad of a 6-layer transformer"] = best(
        trace(jax.grad(loss), weights, tokens), 1, 5
    )
    times["trace: vmap(grad) of a 6-layer transformer"] = best(
        trace(
            jax.vmap(jax.grad(loss), in_axes=(None, 0)),
            weights,
            jnp.stack([tokens] * 3),
        ),
        1,
        5,
    )

    def rnn(params, xs):
        inward, around = params

        def step(state, x):
            state = jnp.tanh(x @ inward + state @ around)
            return state, state.sum()

        return jax.lax.scan(step, jnp.ones(4), xs)[1].sum()

    recurrent = (jnp.ones((4, 4)) / 4, jnp.ones((4, 4)) / 8)
    sequence = jnp.ones((10_000, 4))
    times["trace: scan of 10,000 steps"] = best(trace(rnn, recurrent, sequence), 5)
    times["trace: grad of a scan of 10,000 steps"] = best(
        trace(jax.grad(rnn), recurrent, sequence), 5
    )

    def either(x):
        return lax.cond(x.sum() > 0, lambda x: jnp.sin(x) * x, lambda x: x - 1, x)

    def until(x):
        return lax.while_loop(lambda x: x.sum() < 10, lambda x: x * 2 + 1, x)

    times["trace: grad of a cond"] = best(
        trace(jax.grad(lambda x: either(x).sum()), x), 5
    )
    times["trace: while_loop"] = best(trace(until, x), 20)
    scanned = jax.jit(rnn)
    looped = lambda: jax.block_until_ready(scanned(recurrent, sequence))  # noqa: E731
    looped()
    times["scan of 10,000 steps, compiled"] = best(looped, 5)

    def lowering():
        return jax.jit(lambda p, x: jax.grad(mlp)(p, x)).lower(params, batch)

    times["trace + lower: that gradient"] = best(lowering, 1, 5)

    def first_call():
        jax.clear_caches()
        jax.block_until_ready(jax.jit(lambda p, x: jax.grad(mlp)(p, x))(params, batch))

    times["first call: that gradient, compiled"] = best(first_call, 1, 3)

    f = jax.jit(lambda x: x + 1)
    f(x)
    times["call: one argument"] = best(lambda: f(x), 2000)
    leaves = [jnp.ones(3) for _ in range(20)]
    g = jax.jit(lambda xs: [leaf + 1 for leaf in xs])
    g(leaves)
    times["call: twenty leaves"] = best(lambda: g(leaves), 500)

    times["eager: operator x + x"] = best(lambda: x + x, 1000)
    times["eager: operator x * 2."] = best(lambda: x * 2.0, 1000)
    times["eager: jnp.sum"] = best(lambda: jnp.sum(x), 500)
    times["eager: jnp.sin"] = best(lambda: jnp.sin(x), 500)
    times["eager: jnp.add"] = best(lambda: jnp.add(x, x), 500)
    times["eager: jnp.where"] = best(lambda: jnp.where(x > 0, x, 0.0), 500)
    eager_grad = jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))
    times["eager: grad of sum(sin(x) * x)"] = best(lambda: eager_grad(x), 20)

    @jax.jit
    def train(params, x):
        gradient = jax.grad(mlp)(params, x)
        return [
            (w - 0.1 * dw, b - 0.1 * db) for (w, b), (dw, db) in zip(params, gradient)
        ]

    wide = [(jnp.ones((128, 128)) / 128, jnp.ones(128)) for _ in range(4)]
    images = jnp.ones((64, 128))
    step = lambda: jax.block_until_ready(train(wide, images))  # noqa: E731
    step()
    times["training step, compiled"] = best(step, 50)
    # Large enough for XLA to share each matrix product among threads.
    wider = [(jnp.ones((512, 512)) / 512, jnp.ones(512)) for _ in range(4)]
    many = jnp.ones((256, 512))
    step = lambda: jax.block_until_ready(train(wider, many))  # noqa: E731
    step()
    times["training step, 512 wide"] = best(step, 20)
    return times


def disk_cache(library: str) -> float:
    """Microseconds of a first call whose program lies in the cache on disk."""
    jax, jnp = load(library)
    if library == "minijax":
        folder = os.environ["BENCHMARK_CACHE"]
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

    def mlp(params, x):
        for w, b in params:
            x = jnp.tanh(x @ w + b)
        return x.sum()

    params = [(jnp.ones((4, 4)) / 4, jnp.ones(4)) for _ in range(20)]
    batch = jnp.ones((2, 4))
    begin = time.perf_counter()
    jax.block_until_ready(jax.jit(jax.grad(mlp))(params, batch))
    return (time.perf_counter() - begin) * 1e6


if __name__ == "__main__":
    chosen = sys.argv[1]
    if len(sys.argv) > 2 and sys.argv[2] == "disk":
        os.environ.setdefault("BENCHMARK_CACHE", tempfile.gettempdir())
        print(json.dumps({"first call: from the disk cache": disk_cache(chosen)}))
    else:
        begin_import = time.perf_counter()
        modules = load(chosen)
        import_time = (time.perf_counter() - begin_import) * 1e6
        results = {"import": import_time, **measure(*modules)}
        print(json.dumps(results))
