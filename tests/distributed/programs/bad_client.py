"""Process 0 sends nonsense to the launcher's port; then all meet."""

import os
import socket

import minijax

print("pid", os.getpid(), flush=True)
if os.environ["MINIJAX_PROCESS_ID"] == "0":
    host, _, port = os.environ["MINIJAX_COORDINATOR_ADDRESS"].partition(":")
    for data in (
        os.urandom(200) + b"\n",
        b"[" * 100_000 + b"\n",
        b'{"join": "a", "of": 2, "about": "somebody"}\n',
        b'{"join": 7, "of": 2, "about": "somebody"}\n',
        b'{"join": -1, "of": 2, "about": "somebody"}\n',
        b'{"join": [0], "of": 2, "about": "somebody"}\n',
        b'{"join"',
        b'{"relay": true}\nnonsense',
    ):
        with socket.create_connection((host, int(port)), 10) as client:
            client.sendall(data)
minijax.distributed.initialize()
print("all are here", flush=True)
