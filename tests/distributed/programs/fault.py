"""A loop over all processes in which one does something wrong in the third step.

Arguments: what happens, and to which process. `initialize` gets its arguments from the
environment when a launcher started it, else from the last argument, as
"address,count,number".
"""

import os
import signal
import sys
import time

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax.sharding import Mesh, NamedSharding, PartitionSpec

what, victim = sys.argv[1], int(sys.argv[2])
print("pid", os.getpid(), flush=True)
if len(sys.argv) > 3:
    address, count, number = sys.argv[3].split(",")
    me = int(number)
    arguments = dict(
        coordinator_address=address,
        num_processes=int(count),
        process_id=me,
        initialization_timeout=3,
        heartbeat_timeout_seconds=3,
    )
else:
    me = int(os.environ["MINIJAX_PROCESS_ID"])
    arguments = {}
if what == "absent" and me == victim:
    time.sleep(60)
minijax.distributed.initialize(**arguments)

devices = np.array(minijax.devices())
mesh = Mesh(devices, ("x",))
size = 4 * devices.size


def total(x):
    return jnp.sum(x)


def put(length, mesh):
    return minijax.device_put(
        np.arange(float(length)), NamedSharding(mesh, PartitionSpec("x"))
    )


x = put(size, mesh)
step = minijax.jit(total)
for number in range(400):
    if number == 3:
        wrong = me == victim
        if what == "raise" and wrong:
            raise ValueError("a mistake in one process")
        if what == "kill" and wrong:
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "stop" and wrong:
            os.kill(os.getpid(), signal.SIGSTOP)
        if what == "kill launcher" and wrong:
            os.kill(os.getppid(), signal.SIGKILL)
        if what == "stop launcher" and wrong:
            os.kill(os.getppid(), signal.SIGSTOP)
        if what == "shape":
            place = NamedSharding(mesh, PartitionSpec("x"))
            own = np.zeros(size * (2 if wrong else 1), np.float32)
            x = minijax.make_array_from_process_local_data(place, own)
        if what == "program":
            step = minijax.jit(lambda x: jnp.sum(jnp.sin(x) if wrong else jnp.cos(x)))
        if what == "mesh":
            turned = devices[::-1] if wrong else devices
            x = put(2 * size, Mesh(turned, ("x",)))
        if what == "axes":
            names = ("y", "x") if wrong else ("x", "y")
            x = put(size, Mesh(devices.reshape(-1, 2), names))
        if what == "value":
            everywhere = NamedSharding(mesh, PartitionSpec())
            x = minijax.device_put(np.arange(3.0) + wrong, everywhere)
        if what == "leave" and wrong:
            break
    float(step(x))
    if what == "nothing" and number == 5:
        break
    time.sleep(0.05)
print("done", flush=True)
