"""StableHLO's reference interpreter, with which tests hold programs against XLA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.core import hlo
from minijax.support import element_types


def reference_eval(module: Any, args: Sequence[Any]) -> list[np.ndarray]:
    """Runs `main` in StableHLO's reference interpreter: slow, and independent of XLA.

    Args:
      module: an MLIR module whose `main` takes and returns tensors.
      args: NumPy arrays of exactly the dtypes that `main` wants.

    Returns:
      NumPy arrays, of the dtypes that `main` returns.
    """
    with hlo_parts.context():
        ir, stablehlo, func = hlo._mlir().ir, hlo._mlir().stablehlo, hlo._mlir().func
        copy = hlo_parts.parse(hlo.module_to_bytes(module))
        main = next(
            op for op in copy.body.operations if str(op.name).strip('"') == "main"
        )
        block = main.regions[0].blocks[0]
        terminator = list(block.operations)[-1]
        dtypes: list[np.dtype] = []
        values: list[Any] = []
        # The binding hands over float64 and integer tensors; other results are
        # converted inside the program, without loss.
        with ir.InsertionPoint(terminator):
            for value in list(terminator.operands):
                dtype = _dtype_of(value.type)
                dtypes.append(dtype)
                shape = tuple(value.type.shape)
                if dtype.kind == "c":
                    part = np.empty(0, dtype).real.dtype
                    real = hlo.tensor_type(shape, part)
                    pair = (
                        stablehlo.RealOp(value, results=[real]).result,
                        stablehlo.ImagOp(value, results=[real]).result,
                    )
                    values.extend(_widen(part_value) for part_value in pair)
                else:
                    values.append(_widen(value))
            func.ReturnOp(values)
        terminator.operation.erase()
        input_types = list(main.type.inputs)
        main.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(input_types, [value.type for value in values])
        )
        if "res_attrs" in main.attributes:
            del main.attributes["res_attrs"]
        results = iter(stablehlo.eval_module(copy, [_dense_whole(a) for a in args]))
        outputs = []
        for dtype in dtypes:
            array = np.array(next(results))
            if dtype.kind == "c":
                array = array + 1j * np.array(next(results))
            outputs.append(array.astype(dtype))
        return outputs


def _dense_whole(array: Any) -> Any:
    """As `dense`, but never shortened to one element."""
    array = np.asarray(array)
    flat = np.ascontiguousarray(array).reshape(-1)
    return hlo._mlir().ir.DenseElementsAttr.get(
        flat, type=hlo.element_type(array.dtype), shape=array.shape
    )


def _widen(value: Any) -> Any:
    """Converts a tensor to float64 or int64 or uint64, whichever holds its values."""
    dtype = _dtype_of(value.type)
    if dtype.kind == "b" or np.issubdtype(dtype, np.unsignedinteger):
        wide: np.dtype = np.dtype(np.uint64)
    elif np.issubdtype(dtype, np.signedinteger):
        wide = np.dtype(np.int64)
    elif "int" in dtype.name:
        wide = np.dtype(np.uint64 if dtype.name.startswith("u") else np.int64)
    else:
        wide = np.dtype(np.float64)
    if dtype == wide:
        return value
    return hlo._mlir().stablehlo.convert(
        hlo.tensor_type(tuple(value.type.shape), wide), value
    )


def supported_dtypes() -> tuple[np.dtype, ...]:
    """All dtypes that can be part of a compiled program."""
    every = element_types.promotable_dtypes
    return tuple(dtype for dtype in every if dtype.name not in ("int1", "uint1"))


def _dtype_of(tensor: Any) -> np.dtype:
    """The NumPy dtype of an MLIR tensor type."""
    element = tensor.element_type
    for dtype in supported_dtypes():
        if hlo.element_type(dtype) == element:
            return dtype
    raise TypeError(f"A tensor of element type {element} has no NumPy dtype.")
