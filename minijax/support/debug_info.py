"""What messages say about the function that a program was traced from.

In JAX: `core.py`, `DebugInfo`.
"""

from __future__ import annotations

from collections.abc import Callable

from minijax.support.thread_state import state


class DebugInfo:
    """Where a program came from: used in messages, never in cache keys.

    `traced_for` names the transformation ("jit"), `name` the function, `place` is
    "file:line", `arg_names` and `result_paths` have one entry per leaf. The names may
    be given as a function, `names_of`, that is called when a message needs them.
    """

    __slots__ = (
        "traced_for",
        "name",
        "place",
        "result_paths",
        "_arg_names",
        "_names_of",
    )

    def __init__(
        self,
        traced_for: str,
        name: str,
        place: str = "",
        arg_names: tuple[str, ...] = (),
        result_paths: tuple[str, ...] = (),
        names_of: Callable[[], tuple[str, ...]] | None = None,
    ):
        self.traced_for = traced_for
        self.name = name
        self.place = place
        self.result_paths = result_paths
        self._arg_names = arg_names
        self._names_of = names_of

    @property
    def arg_names(self) -> tuple[str, ...]:
        if self._names_of is not None:
            self._arg_names, self._names_of = self._names_of(), None
        return self._arg_names

    @property
    def func_name(self) -> str:
        return self.name

    @property
    def func_src_info(self) -> str:
        return f"{self.name} at {self.place}" if self.place else self.name

    def check_tracing_allowed(self) -> None:
        """RuntimeError while the flag jax_no_tracing is set."""
        if state.no_tracing:
            raise RuntimeError(
                f"re-tracing function {self.func_src_info} for `jit`, but 'no_tracing' "
                "is set: the function was not called before with arguments of these "
                "types. Call it once outside of `with no_tracing(True):`."
            )

    def with_result_paths(self, paths: tuple[str, ...]) -> DebugInfo:
        return DebugInfo(self.traced_for, self.name, self.place, self.arg_names, paths)


no_debug_info = DebugInfo("unknown", "<unknown>")
