r"""Exported functions as bytes: minijax's own format, with a version and a digest.

    bytes 0-15    b"minijax-export\r\n": tells the format, and a file damaged as text
    bytes 16-19   the version of the format, a little-endian number
    bytes 20-51   the SHA-256 digest of all that follows
    bytes 52-59   the length of the header, a little-endian number
    the header    JSON: name, trees, types, platforms, dimensions, lengths of programs
    the programs  StableHLO's portable artifacts, one after the other

It is not JAX's format, which is a table of flatbuffers; neither reads the other's. The
digest finds damage, not malice: run programs from people that you trust.

In JAX: `jax/_src/export/serialization.py`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.events import add_methods
from minijax.core.language import ShapedArray
from minijax.core.trees import PyTreeDef, default_registry, tree_structure
from minijax.exporting.exported import DisabledSafetyCheck, Exported
from minijax.primitives.random.random_bits import prngs
from minijax.support.element_types import PRNGKeyDType
from minijax.values.symbolic_scopes import SymbolicScope, symbolic_shape
from minijax.values.symbolic_sizes import is_symbolic, scope_of

MAGIC = b"minijax-export\r\n"
VERSION = 1
_START = struct.Struct("<16sI32sQ")


def serialize(exported: Exported, vjp_order: int = 0) -> bytearray:
    """The function as bytes, with `vjp_order` derivatives.

    Raises ValueError for a bad order, for trees with classes that were not registered,
    and for a derivative that is not there.
    """
    if not isinstance(vjp_order, int) or vjp_order < 0:
        raise ValueError(
            "vjp_order is how many derivatives to keep, a whole number from 0, got "
            f"{vjp_order!r}."
        )
    programs: list[bytes] = []
    header = _header(exported, vjp_order, programs)
    sizes = [size for aval in exported.in_avals for size in aval.shape]
    if any(map(is_symbolic, sizes)):
        header["constraints"] = list(scope_of(*sizes).texts)
    header["lengths"] = [len(program) for program in programs]
    text = json.dumps(header, separators=(",", ":")).encode()
    rest = struct.pack("<Q", len(text)) + text + b"".join(programs)
    digest = hashlib.sha256(rest).digest()
    return bytearray(MAGIC + struct.pack("<I", VERSION) + digest + rest)


# As a method: `exported.serialize()`.
add_methods(Exported, {"serialize": serialize})


def _header(exported: Exported, vjp_order: int, programs: list[bytes]) -> dict:
    modules = [exported.mlir_module_serialized, *exported._others]
    first = len(programs)
    programs += modules
    return {
        "fun_name": exported.fun_name,
        "in_tree": _tree_to_json(exported.in_tree),
        "in_avals": [_aval_to_json(aval) for aval in exported.in_avals],
        "out_tree": _tree_to_json(exported.out_tree),
        "out_avals": [_aval_to_json(aval) for aval in exported.out_avals],
        "platforms": list(exported.platforms),
        "disabled_checks": [str(check) for check in exported.disabled_safety_checks],
        "kept": list(exported.module_kept_var_idx),
        "nr_devices": exported.nr_devices,
        "calling_convention": exported.calling_convention_version,
        "programs": [first, len(modules)],
        "vjp": _header(exported.vjp(), vjp_order - 1, programs) if vjp_order else None,
    }


def deserialize(blob: bytes | bytearray) -> Exported:
    """The function of bytes that `Exported.serialize` made.

    Raises TypeError for anything but bytes, and ValueError for bytes that are damaged,
    cut off, of another format or of a version that this minijax does not know.
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise TypeError(
            "deserialize takes the bytes that Exported.serialize() returned, got a "
            f"{type(blob).__name__}."
        )
    data = bytes(blob)
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError(
            "these bytes are not an exported function of minijax: they do not begin "
            f"with {MAGIC!r} but with {data[:16]!r}. A file that JAX wrote is in "
            "another format: export the function with minijax."
        )
    if len(data) < _START.size:
        raise ValueError(f"the exported function is cut off after {len(data)} bytes.")
    _, version, digest, length = _START.unpack_from(data)
    if version != VERSION:
        raise ValueError(
            f"the exported function is in version {version} of the format, and this "
            f"minijax reads version {VERSION}. Export it again, or use the minijax "
            "that wrote it."
        )
    if hashlib.sha256(data[_START.size - 8 :]).digest() != digest:
        raise ValueError(
            "the exported function is damaged: its contents do not fit its digest. "
            "Copy the file again (in binary mode), or export the function again."
        )
    header = json.loads(data[_START.size : _START.size + length])
    programs, position = [], _START.size + length
    for size in header["lengths"]:
        programs.append(data[position : position + size])
        position += size
    scope = SymbolicScope(header.get("constraints", ()))
    return _from_header(header, programs, scope)


def _from_header(header: dict, programs: list[bytes], scope: SymbolicScope) -> Exported:
    def avals(name: str) -> tuple[ShapedArray, ...]:
        return tuple(_aval_from_json(entry, scope) for entry in header[name])

    first, count = header["programs"]
    vjp = header["vjp"] and _from_header(header["vjp"], programs, scope)
    return Exported(
        header["fun_name"],
        _tree_from_json(header["in_tree"]),
        avals("in_avals"),
        _tree_from_json(header["out_tree"]),
        avals("out_avals"),
        tuple(header["platforms"]),
        tuple(map(DisabledSafetyCheck, header["disabled_checks"])),
        programs[first],
        tuple(header["kept"]),
        calling_convention_version=header["calling_convention"],
        nr_devices=header.get("nr_devices", 1),
        _others=tuple(programs[first + 1 : first + count]),
        _get_vjp=None if vjp is None else lambda primal: vjp,
    )


# ----------------------------------------------------------------------------------
# Types
# ----------------------------------------------------------------------------------


def _aval_to_json(aval: Any) -> list[Any]:
    sizes = [size if isinstance(size, int) else str(size) for size in aval.shape]
    name = "float0" if dtypes.is_float0(aval.dtype) else aval.dtype.name
    return [sizes, name, aval.weak_type]


def _aval_from_json(entry: list[Any], scope: SymbolicScope) -> ShapedArray:
    sizes, name, weak = entry
    shape = [
        size if isinstance(size, int) else symbolic_shape(size, scope=scope)[0]
        for size in sizes
    ]
    return ShapedArray(tuple(shape), _dtype_named(name), weak)


def _dtype_named(name: str) -> Any:
    if name == "float0":
        return dtypes.float0
    for generator in prngs.values():
        if name == f"key<{generator.tag}>":
            return PRNGKeyDType(generator)
    return np.dtype(name)


# ----------------------------------------------------------------------------------
# Trees
# ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _NodeFormat:
    """How the nodes of a user's class are written: its name and its metadata."""

    nodetype: type
    name: str
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]


_formats_by_type: dict[type, _NodeFormat] = {}
_formats_by_name: dict[str, _NodeFormat] = {}


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> type:
    """Let nodes of a class be written in the trees of exported functions.

    Args:
      nodetype: the class, a registered pytree.
      serialized_name: what stands for it in files; the same where they are read.
      serialize_auxdata: the node's metadata as bytes.
      deserialize_auxdata: the metadata of these bytes.
      from_children: must be None: the class's own function for unflattening is used.

    Returns the class. Raises ValueError for a class or name that is registered already.
    """
    if from_children is not None:
        raise ValueError(
            "from_children is not needed: the function with which the class was "
            "registered as a pytree makes the node. Leave it out."
        )
    known = _formats_by_name.get(serialized_name)
    if known is not None:
        raise ValueError(
            f"the name {serialized_name!r} stands for {known.nodetype} already. Give "
            "each class a serialized_name of its own."
        )
    if nodetype in _formats_by_type:
        raise ValueError(
            f"{nodetype} is registered already, as {_formats_by_type[nodetype].name!r}."
        )
    made = _NodeFormat(
        nodetype, serialized_name, serialize_auxdata, deserialize_auxdata
    )
    _formats_by_type[nodetype] = _formats_by_name[serialized_name] = made
    return nodetype


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Let a class made by `namedtuple` be written in the trees of exported functions.

    Returns the class. Raises ValueError for another class, or one registered already.
    """
    if not (issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(
            "Use `register_pytree_node_serialization` for types other than "
            f"`collections.namedtuple`, such as {nodetype}."
        )
    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda metadata: b"",
        deserialize_auxdata=lambda data: None,
    )


_BUILT_IN: dict[str, Any] = {kind.__name__: kind for kind in (tuple, list, dict)}
_BUILT_IN["none"] = type(None)


def _tree_to_json(tree: PyTreeDef) -> Any:
    """`"*"` for a leaf; else the node's kind, its metadata and its children."""
    node = tree.node_data()
    if node is None:
        return "*"
    kind, metadata = node
    children = [_tree_to_json(child) for child in tree.children()]
    if kind is type(None):
        return ["none", None, []]
    if kind in (tuple, list):
        return [kind.__name__, None, children]
    if kind is dict:
        for key in metadata:
            if not isinstance(key, str):
                raise ValueError(
                    f"an exported function's dicts have strings as keys, got {key!r} "
                    f"of type {type(key).__name__}."
                )
        return ["dict", list(metadata), children]
    node_format = _formats_by_type.get(kind)
    if node_format is None:
        register = "register_pytree_node_serialization"
        if issubclass(kind, tuple):
            register = "register_namedtuple_serialization"
        raise ValueError(
            f"Cannot serialize a tree with nodes of {kind}. Say how, before exporting "
            f"and before reading: `export.{register}({kind.__name__}, "
            f"serialized_name=...)`."
        )
    data = node_format.to_bytes(metadata)
    if not isinstance(data, (bytes, bytearray)):
        raise ValueError(f"serialize_auxdata of {kind} must return bytes, got {data!r}")
    return ["class", [node_format.name, bytes(data).hex()], children]


def _tree_from_json(entry: Any) -> PyTreeDef:
    if entry == "*":
        return tree_structure(0)
    kind, metadata, entries = entry
    children = [_tree_from_json(child) for child in entries]
    if kind == "class":
        name, data = metadata
        node_format = _formats_by_name.get(name)
        if node_format is None:
            raise ValueError(
                f"the exported function has trees with nodes {name!r}, and no class "
                "is registered under this name here. Register it as where it was "
                f"exported, with serialized_name={name!r}."
            )
        node_type = node_format.nodetype
        metadata = node_format.from_bytes(bytes.fromhex(data))
    else:
        node_type = _BUILT_IN[kind]
    if kind == "none":
        return tree_structure(None)
    return tree_structure(0).from_node_data_and_children(
        default_registry, (node_type, metadata), children
    )
