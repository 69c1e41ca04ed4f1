"""minijax beside jax on this machine's GPU: large programs, and kernels by Triton.

    python benchmarks/gpu.py [--rounds 5]

Each round runs both libraries, one after the other, each in a process of its own. A
program's time is the best of several means over calls under way together, so it is the
GPU's and not the launch's. Printed are microseconds, what they mean in TFLOP/s or TB/s,
and the median of the rounds' ratios with their range. Needs jax and its CUDA plugin, at
jaxlib's version.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from rounds import measured_in_rounds

PROGRAMS = """
import functools, importlib, json, sys, time
import numpy as np

name = sys.argv[1]
lib, jnp, lax, pl, pltriton = (importlib.import_module(name + end) for end in
    ("", ".numpy", ".lax", ".experimental.pallas", ".experimental.pallas.triton"))
f32, bf16 = jnp.float32, jnp.bfloat16
rng = np.random.default_rng(0)

def numbers(*shape, dtype=f32, scale=1.0):
    return jnp.asarray(rng.standard_normal(shape, np.float32) * scale).astype(dtype)

def call(kernel, shape, dtype, **options):
    options["compiler_params"] = pltriton.CompilerParams(
        num_warps=options.pop("warps", 4), num_stages=options.pop("stages", 3))
    struct = lib.ShapeDtypeStruct(shape, dtype)
    return lib.jit(pl.pallas_call(kernel, out_shape=struct, **options))

# Each gives a function, its arguments, and the work of a call: operations on numbers
# ("flop") or bytes that must move ("byte").

def add():
    n = 1 << 28
    return lib.jit(lambda x, y: x + y), [numbers(n), numbers(n)], 12 * n, "byte"

def product(n=8192):
    x = numbers(n, n, dtype=bf16)
    return lib.jit(jnp.dot), [x, numbers(n, n, dtype=bf16)], 2 * n**3, "flop"

def network_step(width=8192, rows=4096, layers=4):
    def loss(weights, x):
        for w in weights:
            x = lib.nn.gelu(x @ w)
        return jnp.mean(x.astype(f32) ** 2)

    @functools.partial(lib.jit, donate_argnums=0)
    def step(weights, x):
        changes = lib.grad(loss)(weights, x)
        return [w - (0.1 * c).astype(bf16) for w, c in zip(weights, changes)], x

    scale = width ** -0.5
    weights = [numbers(width, width, dtype=bf16, scale=scale) for _ in range(layers)]
    work = 2 * rows * width**2 * (3 * layers - 1)
    return step, [weights, numbers(rows, width, dtype=bf16)], work, "flop"

def transformer_step(width=1024, heads=16, length=1024, batch=8, layers=8):
    def attention(x, w):
        q, k, v = jnp.moveaxis((x @ w).reshape(batch, length, 3, heads, -1), 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(f32) / 8
        later = jnp.tril(jnp.ones((length, length), bool))
        scores = lib.nn.softmax(jnp.where(later, scores, -1e9)).astype(bf16)
        return jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(batch, length, width)

    def normal(x):
        x = x.astype(f32)
        x = x - x.mean(-1, keepdims=True)
        return (x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)).astype(bf16)

    def block(x, w):
        x = x + attention(normal(x), w["qkv"]) @ w["out"]
        return x + lib.nn.gelu(normal(x) @ w["up"]) @ w["down"], None

    def loss(weights, x):
        x, _ = lax.scan(lib.checkpoint(block), x, weights)
        return jnp.mean(x.astype(f32) ** 2)

    @functools.partial(lib.jit, donate_argnums=0)
    def step(weights, x):
        changes = lib.grad(loss)(weights, x)
        move = lambda w, c: w - (0.01 * c).astype(bf16)
        return lib.tree.map(move, weights, changes), x

    shapes = dict(qkv=(width, 3 * width), out=(width, width),
                  up=(width, 4 * width), down=(4 * width, width))
    weights = {name: numbers(layers, *shape, dtype=bf16, scale=0.02)
               for name, shape in shapes.items()}
    tokens = batch * length
    work = 3 * layers * (2 * tokens * 12 * width**2 + 4 * tokens * length * width)
    return step, [weights, numbers(batch, length, width, dtype=bf16)], work, "flop"

def softmax_kernel(rows=16384, width=4096):
    def kernel(x_ref, o_ref):
        e = jnp.exp(x_ref[...] - jnp.max(x_ref[...]))
        o_ref[...] = e / jnp.sum(e)
    row = pl.BlockSpec((None, width), lambda i: (i, 0))
    f = call(kernel, (rows, width), f32, grid=(rows,), in_specs=[row], out_specs=row)
    return f, [numbers(rows, width)], 8 * rows * width, "byte"

def softmax_by_xla(rows=16384, width=4096):
    return lib.jit(lib.nn.softmax), [numbers(rows, width)], 8 * rows * width, "byte"

def product_kernel(n=4096, side=128, depth=64):
    def kernel(x_ref, y_ref, o_ref):
        def body(k, total):
            place = pl.ds(k * depth, depth)
            x, y = x_ref[:, place], y_ref[place, :]
            return total + jnp.dot(x, y, preferred_element_type=f32)
        total = lax.fori_loop(0, n // depth, body, jnp.zeros((side, side), f32))
        o_ref[...] = total.astype(bf16)
    f = call(kernel, (n, n), bf16, grid=(n // side, n // side), warps=8,
             in_specs=[pl.BlockSpec((side, n), lambda i, j: (i, 0)),
                       pl.BlockSpec((n, side), lambda i, j: (0, j))],
             out_specs=pl.BlockSpec((side, side), lambda i, j: (i, j)))
    x = numbers(n, n, dtype=bf16)
    return f, [x, numbers(n, n, dtype=bf16)], 2 * n**3, "flop"

def product_by_xla():
    return product(4096)

def attention_kernel(heads=64, length=4096, rows=128, step=64):
    def kernel(q_ref, k_ref, v_ref, o_ref):
        q = q_ref[...]
        def body(j, carry):
            total, largest, weight = carry
            place = pl.ds(j * step, step)
            scores = jnp.dot(q, k_ref[place, :].T, preferred_element_type=f32) / 8
            larger = jnp.maximum(largest, jnp.max(scores, axis=1))
            shrink = jnp.exp(largest - larger)
            e = jnp.exp(scores - larger[:, None])
            new = jnp.dot(e.astype(bf16), v_ref[place, :], preferred_element_type=f32)
            weight = weight * shrink + jnp.sum(e, axis=1)
            return total * shrink[:, None] + new, larger, weight
        start = (jnp.zeros((rows, 64), f32), jnp.full((rows,), -np.inf, f32),
                 jnp.zeros((rows,), f32))
        total, _, weight = lax.fori_loop(0, length // step, body, start)
        o_ref[...] = (total / weight[:, None]).astype(bf16)
    query = pl.BlockSpec((None, rows, 64), lambda h, i: (h, i, 0))
    whole = pl.BlockSpec((None, length, 64), lambda h, i: (h, 0, 0))
    f = call(kernel, (heads, length, 64), bf16, grid=(heads, length // rows), warps=8,
             in_specs=[query, whole, whole], out_specs=query)
    arrays = [numbers(heads, length, 64, dtype=bf16) for _ in range(3)]
    return f, arrays, 4 * heads * length**2 * 64, "flop"

def attention_by_xla(heads=64, length=4096):
    def f(q, k, v):
        scores = jnp.einsum("hqd,hkd->hqk", q, k, preferred_element_type=f32) / 8
        return jnp.einsum("hqk,hkd->hqd", lib.nn.softmax(scores).astype(bf16), v)
    arrays = [numbers(heads, length, 64, dtype=bf16) for _ in range(3)]
    return lib.jit(f), arrays, 4 * heads * length**2 * 64, "flop"

def best(make):
    f, args, work, unit = make()
    steps = isinstance(args[0], (list, dict))  # a step gives its next arguments
    out = f(*args)
    lib.block_until_ready(out)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(10):
            out = f(*out) if steps else f(*args)
        lib.block_until_ready(out)
        times.append((time.perf_counter() - start) / 10)
    return min(times) * 1e6, work, unit

makers = [add, product, network_step, transformer_step, softmax_kernel, softmax_by_xla,
          product_kernel, product_by_xla, attention_kernel, attention_by_xla]
found = {}
for make in makers:
    try:
        found[make.__name__] = best(make)
    except Exception as error:
        print(make.__name__, type(error).__name__, str(error)[:300], file=sys.stderr)
print(json.dumps(found))
"""


def measured(library: str) -> dict[str, tuple[float, float, str]]:
    """By program: microseconds of a call, its work, and the unit of that."""
    command = [sys.executable, "-c", PROGRAMS, library]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Runs the rounds and prints a table."""
    rounds = measured_in_rounds(measured, __doc__)
    print("| program | minijax, us | jax, us | minijax reaches | ratio | rounds |")
    print("|---|---:|---:|---:|---:|---|")
    for name, (_, work, unit) in rounds[0]["minijax"].items():
        ours = statistics.median(both["minijax"][name][0] for both in rounds)
        rate = f"{work / ours / 1e6:,.2f} T{'B/s' if unit == 'byte' else 'FLOP/s'}"
        row = f"| {name.replace('_', ' ')} | {ours:,.0f} |"
        if name not in rounds[0]["jax"]:
            print(row, f"it has none | {rate} | | |")
            continue
        ratios = sorted(
            both["minijax"][name][0] / both["jax"][name][0] for both in rounds
        )
        theirs = statistics.median(both["jax"][name][0] for both in rounds)
        middle = statistics.median(ratios)
        span = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        print(row, f"{theirs:,.0f} | {rate} | {middle:.2f} | {span} |")


if __name__ == "__main__":
    main()
