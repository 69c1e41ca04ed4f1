"""Transfer guards: forbid implicit copies between host and device.

    with minijax.transfer_guard("disallow"):
        f(np.ones(3))       # JaxRuntimeError: an implicit copy to the device
        device_put(x)       # explicit: allowed

jaxlib checks each copy against the levels of the thread, or of the process where the
thread has none. Here stand the flags that set the levels. On a CPU only copies to the
device are checked: reading an array there copies nothing.

In JAX: `jax/_src/config.py`, `transfer_guard`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from minijax.backend import guards
from minijax.core import dispatch
from minijax.support import config
from minijax.support.settings import override

_DIRECTIONS = ("host_to_device", "device_to_device", "device_to_host")
_LEVELS = (None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")


class GuardFlag(config.Flag):
    """The flag of one direction; `with flag("disallow"):` holds for this thread."""

    def __call__(self, new_val: Any = config._UNSET) -> Any:
        return self._during(super().__call__(new_val))

    @contextlib.contextmanager
    def _during(self, setting: override) -> Iterator[None]:
        direction = self.name.removeprefix("transfer_guard_")
        # Numbers that were copied before would be used without a copy.
        dispatch.forget_numbers()
        with guards.thread_level(direction, setting.value), setting:
            try:
                yield
            finally:
                dispatch.forget_numbers()


def _flag_of(direction: str) -> GuardFlag:
    flag = GuardFlag(
        f"transfer_guard_{direction}",
        None,
        lambda name, value: value,
        _LEVELS,
        f"Which copies {direction.replace('_', ' ')} are allowed: "
        f"{', '.join(map(repr, _LEVELS[1:]))}.",
    )
    config.add_flag(flag)

    def set_for_process(level: str | None) -> None:
        dispatch.forget_numbers()
        guards.set_process_level(direction, level)

    set_for_process(flag.default)
    config.config.on_update(flag.name, set_for_process)
    return flag


_flags = [_flag_of(direction) for direction in _DIRECTIONS]
transfer_guard_host_to_device, transfer_guard_device_to_device = _flags[:2]
transfer_guard_device_to_host = _flags[2]
_of_all = config.add_flag(
    config.Flag(
        "transfer_guard",
        None,
        lambda name, value: value,
        _LEVELS,
        "The level of all three directions.",
    )
)


def _set_all(level: str | None) -> None:
    for direction in _DIRECTIONS:
        config.config.update(f"transfer_guard_{direction}", level)


config.config.on_update("transfer_guard", _set_all)
if _of_all.default is not None:
    _set_all(_of_all.default)


@contextlib.contextmanager
def transfer_guard(new_val: str) -> Iterator[None]:
    """Context manager: which copies between host and device this thread may make.

    The levels: "allow", "log" (print implicit copies), "disallow" (refuse them),
    "log_explicit", "disallow_explicit" (those by `device_put` and `device_get` too).
    A refused copy raises JaxRuntimeError. ValueError for another level.
    """
    level = _of_all.checked(new_val)
    with contextlib.ExitStack() as stack:
        stack.enter_context(override("transfer_guard", level))
        for flag in _flags:
            stack.enter_context(flag(level))
        yield
