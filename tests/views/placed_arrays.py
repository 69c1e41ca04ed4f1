"""Prints, as JSON, what `see.placement` says of arrays on eight devices.

python tests/views/placed_arrays.py jax|minijax
"""

import importlib
import json
import sys

import numpy as np

import minijax_widgets as see
from minijax_lab.explain.recording import Recording


def main(name):
    library = importlib.import_module(name)
    library.config.update("jax_num_cpu_devices", 8)
    jnp = importlib.import_module(f"{name}.numpy")
    sharding = importlib.import_module(f"{name}.sharding")
    P, auto = sharding.PartitionSpec, sharding.AxisType.Auto
    make = library.make_mesh
    mesh = make((4, 2), ("x", "y"), axis_types=(auto,) * 2)
    cube = make((2, 2, 2), ("a", "b", "c"), axis_types=(auto,) * 3)
    row = make((8,), ("i",), axis_types=(auto,))

    def put(shape, mesh, *spec, dtype=np.float32):
        values = np.zeros(shape, dtype)
        return library.device_put(values, sharding.NamedSharding(mesh, P(*spec)))

    arrays = {
        "xy": put((8, 16), mesh, "x", "y"),
        "x": put((8, 16), mesh, "x"),
        "y second": put((8, 16), mesh, None, "y"),
        "both": put((16, 3), mesh, ("x", "y")),
        "turned": put((16, 3), mesh, ("y", "x")),
        "whole": put((8, 16), mesh),
        "scalar": put((), mesh),
        "line": put((24,), row, "i", dtype=np.int8),
        "rank 3": put((4, 8, 6), cube, "a", ("b", "c")),
        "rank 5": put((2, 4, 2, 3, 2), cube, "c", None, "a", None, "b"),
        "one": jnp.ones(3),
        "empty": put((0, 8), mesh, None, "y"),
    }
    found = {}
    for label, array in arrays.items():
        view = see.placement(array)
        record = view.recording
        devices = record.meshes[0].devices
        counted = dict.fromkeys(devices, 0)
        indices = {}
        for shard in array.addressable_shards:
            counted[shard.device.id] += shard.data.nbytes
            slices = zip(shard.index, array.shape, strict=True)
            indices[shard.device.id] = [part.indices(n)[:2] for part, n in slices]
        own = {
            devices[place]: [tuple(part) for part in piece.index]
            for piece in record.values[0].pieces
            for place in piece.devices
        }
        frame = view.frame()
        assert frame.panes[0].scene is not None
        found[label] = {
            "recorded": record.device_bytes(0),
            "counted": [counted[device] for device in devices],
            "indices": sorted(own.items()),
            "their_indices": sorted(indices.items()),
            "headline": record.headline,
            "text": view.text(),
            "keys": [(m.label, m.keys) for m in frame.panes[0].scene.marks if m.keys],
        }
    tree = {"w": arrays["x"], "b": put((16,), mesh, "y"), "n": np.ones(4, np.int8)}
    tree["n"] = np.ones(4, np.float32)
    view = see.placement(tree)
    assert view.to_html().count("<img")
    same = Recording.from_dict(json.loads(json.dumps(view.recording.to_dict())))
    try:
        see.placement({"a": 3.0})
        refused = ""
    except TypeError as error:
        refused = type(error).__name__
    page = {"arrays": found, "tree": view.text(), "refused": refused}
    page["same_after_saving"] = same == view.recording
    print(json.dumps(page))


main(sys.argv[1])
