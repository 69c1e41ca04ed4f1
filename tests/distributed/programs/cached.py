"""A few programs over all processes, and how many of them came from the disk."""

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax.sharding import Mesh, NamedSharding, PartitionSpec
from minijax.support.event_watching import subscribe

minijax.distributed.initialize()
found = []


def note(name, data):
    if name == "compile":
        found.append(data["from_disk"])


mesh = Mesh(np.array(minijax.devices()), ("x",))
x = minijax.device_put(
    np.arange(16, dtype=np.float32), NamedSharding(mesh, PartitionSpec("x"))
)
total = 0.0
with subscribe(note):
    for power in range(8):
        total += float(minijax.jit(lambda x, k=power: jnp.sum(x**k))(x))
print("total", total, "of", len(found), "from disk", sum(found), flush=True)
