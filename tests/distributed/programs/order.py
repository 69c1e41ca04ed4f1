"""Warm programs over all processes, launched in an order that something disturbs.

Arguments: what happens ("order", "threads", "asleep"), and to which process.
"""

import sys
import threading
import time

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax.sharding import Mesh, NamedSharding, PartitionSpec

what, victim = sys.argv[1], int(sys.argv[2])
print("pid", __import__("os").getpid(), flush=True)
minijax.distributed.initialize()
me = minijax.process_index()
devices = np.array(minijax.devices())
mesh = Mesh(devices, ("x",))
x = minijax.device_put(
    np.ones(devices.size, np.float32), NamedSharding(mesh, PartitionSpec("x"))
)


@minijax.jit
def double_sum(x):
    return jnp.sum(2 * x)


@minijax.jit
def triple_sum(x):
    return jnp.sum(3 * x)


# Both are compiled, and have run, before anything goes wrong.
count = devices.size
assert (float(double_sum(x)), float(triple_sum(x))) == (2 * count, 3 * count)

if what == "order":
    for _ in range(40):  # so often that they are no longer told one by one
        double_sum(x)
    order = [double_sum, triple_sum]
    for f in reversed(order) if me == victim else order:
        print(f.__name__, float(f(x)), flush=True)

if what == "asleep":
    if me == victim:
        time.sleep(60)
    print(float(double_sum(x)), flush=True)

if what == "threads":
    wrong = []

    def work(f, factor, seed):
        moments = np.random.RandomState(seed + me)
        for number in range(200):
            value = float(f(x * float(number)))
            if value != factor * number * count:
                wrong.append((f.__name__, number, value))
            if moments.rand() < 0.1:
                time.sleep(moments.rand() * 0.004)

    pair = [(double_sum, 2, 1), (triple_sum, 3, 7)]
    pair = pair[::-1] if me == victim else pair
    threads = [
        threading.Thread(target=work, args=each, name=each[0].__name__) for each in pair
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(wrong)} of 400 wrong {wrong[:3]}", flush=True)

if what == "unnamed":
    # The names say nothing of what a thread does.
    def one(f):
        for _ in range(5):
            f(x)

    threads = [
        threading.Thread(target=one, args=(f,), name=f"{me} {f.__name__}")
        for f in (double_sum, triple_sum)
    ]
    errors = []
    threading.excepthook = lambda found: errors.append(found.exc_value)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
