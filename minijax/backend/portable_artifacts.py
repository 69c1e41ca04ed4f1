"""StableHLO as bytes that other versions can read, and shapes filled in later.

In JAX: `jax/_src/export/_export.py`, and jaxlib's `_jax.mlir`.
"""

from __future__ import annotations

from typing import Any

from minijax.backend import hlo_parts
from minijax.core import hlo
from minijax.core.runtime import _jax


def to_bytes(module: Any) -> bytes:
    """A module as StableHLO's portable artifact, in the version of this jaxlib."""
    return _jax.mlir.serialize_portable_artifact(
        # Not bytecode: what it says of the order of uses cannot always be read again.
        hlo.module_to_text(module, locations=True).encode(),
        hlo.stablehlo.get_current_version(),
        use_mixed_serialization=True,
    )


def from_bytes(program: bytes) -> Any:
    """The module of a portable artifact, in the current context.

    Raises ValueError for bytes that StableHLO does not read.
    """
    try:
        return hlo.stablehlo.deserialize_portable_artifact(
            hlo.ir.Context.current, program
        )
    except Exception as error:
        raise ValueError(
            f"the StableHLO program cannot be read by this jaxlib: {error}"
        ) from None


def refined(module: Any) -> bytes:
    """A module whose `main` has static shapes, with all other shapes made static.

    Its `shape_assertion` calls are evaluated: a false one raises ValueError with its
    message.
    """
    return _jax.mlir.refine_polymorphic_shapes(
        hlo.module_to_bytes(module),
        enable_shape_assertions=True,
        validate_static_shapes=True,
    )


def take_functions(source: Any, symbols: Any, destination: Any, prefix: str) -> Any:
    """Moves a module's functions into another one; returns what was its `main`.

    `symbols` is the destination's table. The functions get names that begin with
    `prefix`, and are private.
    """
    ir = hlo.ir
    functions = [op for op in source.body.operations if isinstance(op, hlo.func.FuncOp)]
    main = next(op for op in functions if op.name.value == "main")
    taken = {op.name.value for op in functions}
    taken |= {
        op.name.value
        for op in destination.body.operations
        if isinstance(op, hlo.func.FuncOp)
    }
    for op in functions:
        old = op.name.value
        wanted = prefix if op is main else f"{prefix}_{old}"
        new, number = wanted, 0
        while new in taken:
            new, number = f"{wanted}_{number}", number + 1
        taken.add(new)
        ir.SymbolTable.replace_all_symbol_uses(old, new, source.operation)
        ir.SymbolTable.set_symbol_name(op, new)
        ir.SymbolTable.set_visibility(op, "private")
    for op in functions:
        op.operation.detach_from_parent()
        destination.body.append(op)
        symbols.insert(op)
    return main


def custom_call_targets(module: Any) -> set[str]:
    """The names of the foreign functions that a module calls."""
    return set(map(hlo_parts.target_of, hlo_parts.custom_calls_in(module.operation)))
