"""What pallas_call is given, checked one argument after another."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from minijax.kernels.grid_mappings import GridMapping, is_misfit
from minijax.kernels.interpret_params import InterpretParams
from minijax.kernels.specs import CostEstimate, GridSpec
from minijax.kernels.tpu_params import CompilerParams
from minijax.kernels.triton_params import CompilerParams as TritonParams
from minijax.values.ref_avals import AbstractRef

# For each option of pallas_call: the classes that it may have beside None, and how to
# write one.
_OPTIONS: dict[str, tuple[tuple[type, ...], str]] = {
    "grid_spec": ((GridSpec,), "pl.GridSpec(grid=(4,), in_specs=..., out_specs=...)"),
    "interpret": ((bool, InterpretParams), "True, False or pltpu.InterpretParams()"),
    "input_output_aliases": ((Mapping,), "a dict {number of an input: of an output}"),
    "compiler_params": (
        (CompilerParams, TritonParams),
        "pltpu.CompilerParams(...) for a TPU or pltriton.CompilerParams(...) for a GPU",
    ),
    "cost_estimate": (
        (CostEstimate,),
        "pl.CostEstimate(flops=..., transcendentals=..., bytes_accessed=...)",
    ),
    "metadata": ((Mapping,), "a dict of strings"),
    "name": ((str,), "a string"),
}


def check_options(**options: Any) -> None:
    """TypeError, with what to write, for an option of another class."""
    for option, value in options.items():
        classes, right = _OPTIONS[option]
        if value is not None and not isinstance(value, classes):
            raise TypeError(f"{option} of pallas_call must be {right}, got {value!r}.")


def check_arrays(avals: Sequence[Any], paths: Sequence[str]) -> None:
    """TypeError for a ref where an array is expected."""
    for aval, path in zip(avals, paths, strict=True):
        if isinstance(aval, AbstractRef):
            raise TypeError(
                f"args{path} of the pallas_call is a ref, {aval}. Kernels take arrays: "
                "pass the content, `ref[...]`."
            )


def refs_of(what: str, mapping: GridMapping) -> str:
    """How a kernel is called, in words."""
    counts = (
        (mapping.num_index_operands, "of prefetched scalars"),
        (mapping.num_inputs, "of inputs"),
        (mapping.num_outputs, "of outputs"),
        (len(mapping.scratch_avals), "of scratch memory"),
    )
    words = [f"{count} {word}" for count, word in counts if count]
    total = sum(count for count, _ in counts)
    refs = "ref" if total == 1 else "refs"
    return f"{what} is called with {total} {refs}: {', '.join(words)}"


@contextlib.contextmanager
def explained(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Any, called: str
) -> Iterator[None]:
    """Context that adds `called` to a TypeError if the arguments do not fit."""
    try:
        yield
    except TypeError as error:
        if not is_misfit(function, args, kwargs):
            raise
        raise TypeError(f"{error}. {called}.") from None
