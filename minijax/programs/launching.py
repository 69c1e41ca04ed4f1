"""How compiled programs are launched: side effects, memories, the flags of debugging.

`dispatch.Program` launches pure programs whose results stay in the device's memory.
Here is what the others need besides: tokens and callbacks (`compile/tokens.py`),
results in other memories (`compile/placing.py`), and the flags `no_execution`,
`debug_key_reuse`, `debug_nans`, `debug_infs`, `enable_checks` and
`captured_constants_warn_bytes`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from minijax.backend import several_devices
from minijax.backend.buffer_copies import copy_to_device
from minijax.compile import placing, tokens
from minijax.core import dispatch
from minijax.core.array import Array, wrap_as
from minijax.core.check import check_jaxpr
from minijax.core.language import ShapedArray
from minijax.core.state import state
from minijax.programs.debugging import finiteness, key_reuse
from minijax.support.user_source import user_stacklevel
from minijax.values.array_places import deleted_error


class LibraryProgram(dispatch.Program):
    """A compiled program, launched as its effects and the flags require."""

    def __init__(self, lowered: Any, executable: Any, device: Any, committed: bool):
        super().__init__(lowered, executable, device, committed)
        _warn_of_constants(lowered)
        closed = lowered.source()
        if state.enable_checks and closed is not None:
            check_jaxpr(closed.jaxpr)
        self.moves = any(map(placing.in_other_memory, self.out_avals))

    def launcher(
        self, out_avals: Sequence[Any], shardings: list[Any], committed: bool
    ) -> Callable[[list[Any]], list[Any]]:
        """The function that runs the executable: buffers in, buffers out.

        The flags `no_execution` and `debug_key_reuse` are part of the keys of all
        caches, so that programs made without them do not ask.
        """
        if state.no_execution:
            return _refusal(self.name)
        effects = self.lowered.effects
        bounded = several_devices.is_bounded(self.executable)
        for function in self.lowered.host_callbacks:
            function.on_several_devices = bounded  # type: ignore[attr-defined]
        if tokens.ordered(effects) or self.lowered.host_callbacks:
            launch = tokens.launcher(
                self.executable, effects, out_avals, shardings, committed
            )
        elif bounded:
            launch = several_devices.bounded_launcher(
                self.executable, out_avals, shardings, committed
            )
        else:
            launch = super().launcher(out_avals, shardings, committed)
        if state.debug_key_reuse:
            launch = key_reuse.checking(launch, self.lowered)
        return launch

    def __call__(self, buffers: list[Any]) -> list[Array]:
        if state.debug_nans or state.debug_infs:
            return finiteness.run_checked(self, buffers)
        try:
            arrays = self.run(buffers)
        except Exception as error:
            for buffer in buffers:
                if buffer.is_deleted():
                    kind = ShapedArray(buffer.aval.shape, buffer.aval.dtype)
                    raise deleted_error(wrap_as(buffer, kind)) from error
            if "donated in the same call" in str(error):
                error.add_note(
                    "One array was given for two arguments, and one of the two is "
                    "donated. Pass a copy for it: `minijax.numpy.array(x)`."
                )
            raise
        return placing.move_to_memories(arrays, self.device) if self.moves else arrays


class CopyingProgram(LibraryProgram):
    """A program on the one device that its shardings name: arguments go there."""

    @classmethod
    def of(cls, program: LibraryProgram) -> CopyingProgram:
        """The program for arguments that may lie on another device."""
        return cls(program.lowered, program.executable, program.device, True)

    def __call__(self, buffers: list[Any]) -> list[Array]:
        kept = range(len(buffers)) if self.kept is None else self.kept
        copied = {i: copy_to_device(buffers[i], self.device) for i in kept}
        return super().__call__([copied.get(i, b) for i, b in enumerate(buffers)])


def _refusal(name: str) -> Callable[[list[Any]], list[Any]]:
    def launch(arguments: list[Any]) -> list[Any]:
        raise RuntimeError(
            f"JAX tried to execute function jit({name}), but the no_execution config "
            "option is set. Trace and lower it only (`f.lower(x)`), or leave the "
            "`with no_execution(True):` block before calling it."
        )

    return launch


def _warn_of_constants(lowered: Any) -> None:
    """Warn when the arrays that a program closes over are very large."""
    limit = state.captured_constants_warn_bytes
    size = sum(const.nbytes for const in lowered.constants)
    if 0 <= limit < size:
        warnings.warn(
            f"jit({lowered.name}) closes over arrays of {size:,} bytes, which its "
            "compiled program keeps in memory. Pass them as arguments. The flag "
            "jax_captured_constants_warn_bytes is the number of bytes that are allowed "
            "without this warning; -1 turns it off.",
            stacklevel=user_stacklevel(),
        )
