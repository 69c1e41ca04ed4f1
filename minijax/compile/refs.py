"""Refs in jitted functions: what may be passed, and how a compiled program writes them.

A program with refs is discharged (`transforms/discharge.py`): the refs' contents are
arguments, their last contents results. `StatefulProgram` runs the pure program and puts
the new contents into the refs. Each ref's memory is donated, so that a write inside jit
happens in place.

In JAX: `interpreters/pxla.py`, `_discharge_refs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.compile import dispatch
from minijax.language.core import ClosedJaxpr
from minijax.primitives.refs.mutable_arrays import Ref
from minijax.support import errors
from minijax.transforms import discharge


class StatefulProgram:
    """A compiled program that takes and changes refs; called like `dispatch.Program`.

    Where a program takes a ref its buffer is the `Ref` itself.
    """

    def __init__(self, program: Any, num_outputs: int, own: Sequence[Ref]):
        self.program = program
        self.num_outputs = num_outputs
        self.own = list(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.program, name)

    def __call__(self, buffers: list[Any]) -> list[Any]:
        """Launch, and put the refs' new contents into them."""
        arguments = [*buffers, *self.own]
        refs = [x for x in arguments if type(x) is Ref]
        _check_distinct(refs)
        inputs = [x._array._buffer if type(x) is Ref else x for x in arguments]
        outputs = self.program(inputs)
        for ref, content in zip(refs, outputs[self.num_outputs :], strict=True):
            ref._array = content
        return outputs[: self.num_outputs]


def _check_distinct(refs: Sequence[Ref]) -> None:
    if len({id(ref) for ref in refs}) < len(refs):
        raise errors.value_error(
            "only one reference to a mutable array may be passed to a function, but "
            "one ref was given twice, or given and closed over: a write through one "
            "name would change the other."
        )


@dispatch.compiled.attach
def compiled(
    closed: ClosedJaxpr,
    name: str,
    donated: tuple[bool, ...] | None,
    keep_unused: bool,
    device: Any,
    committed: bool,
    options: tuple = (),
) -> Any:
    """The program of a jaxpr on a device, whether it has refs or not."""
    settings = (keep_unused, device, committed, options)
    if not discharge.has_refs(closed):
        return dispatch.compiled.default(closed, name, donated, *settings)
    pure, flags, own = discharge.pure_and_donated(closed, donated)
    program = dispatch.compiled.default(pure, name, flags, *settings)
    return StatefulProgram(program, len(closed.out_avals), own)
