"""A pickled primitive, read in another process."""

import pickle
import subprocess
import sys

import minijax.experimental.pallas  # noqa: F401
import minijax.extend.core.primitives  # noqa: F401
from minijax.core.language import all_primitives

# Primitives whose modules `import minijax` leaves for later.
LATE = ("remat2", "custom_vmap_call", "shard_map")

READ = """
import pickle, sys
import minijax
from minijax.core.language import all_primitives
late = []
for name, data in pickle.load(sys.stdin.buffer):
    late += [name] if name not in all_primitives else []
    assert pickle.loads(data) is all_primitives[name], name
print(*late)
"""


def test_a_pickle_loads_the_module_of_its_primitive():
    # These three first: reading another one may import the module of one of them.
    names = [*LATE, *(name for name in all_primitives if name not in LATE)]
    pickles = [(name, pickle.dumps(all_primitives[name])) for name in names]
    command = [sys.executable, "-c", READ]
    read = subprocess.run(command, input=pickle.dumps(pickles), capture_output=True)
    assert read.returncode == 0, read.stderr.decode()
    late = {*read.stdout.decode().split()}
    assert {*LATE} <= late
    assert all(pickle.loads(data) is all_primitives[n] for n, data in pickles)
