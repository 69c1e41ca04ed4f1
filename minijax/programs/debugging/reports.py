"""log_compiles and explain_cache_misses: what is compiled, and why a call missed.

Both listen to the events of the core while their flag is set, and write to the logger
`minijax`, whose warnings Python prints unless it is told otherwise. While no flag is
set there is no listener.

In JAX: the logging in `jax/_src/dispatch.py` and `interpreters/pxla.py`, and
`jax/_src/pjit.py`, `explain_tracing_cache_miss`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax.core import events, source_info
from minijax.core.signatures import Bound, fun_place
from minijax.core.state import state
from minijax.core.trees import keystr, tree_unflatten
from minijax.support import event_watching
from minijax.support.config import config
from minijax.support.settings import override
from minijax.support.tree_prefix import equality_errors_pytreedef

logger = logging.getLogger("minijax")


class _Running(threading.local):
    """The start times of the functions that are being traced in this thread."""

    def __init__(self) -> None:
        self.starts: dict[int, float] = {}


_running = _Running()

# ----------------------------------------------------------------------------------
# log_compiles
# ----------------------------------------------------------------------------------


def _log_compiles(name: str, data: dict[str, Any]) -> None:
    if not state.log_compiles:
        return
    if name == "trace.begin":
        _running.starts[id(data["trace"])] = time.perf_counter()
    elif name == "trace.end":
        start = _running.starts.pop(id(data["trace"]), None)
        info = data["debug_info"]
        if start is not None and info.traced_for in ("jit", "eager"):
            seconds = time.perf_counter() - start
            logger.warning(
                "Finished tracing %s for jit in %.9f sec", info.func_name, seconds
            )
    elif name == "lower":
        logger.warning(
            "Compiling jit(%s) with global shapes and types %s.",
            data["name"],
            data["in_avals"],
        )
        logger.warning(
            "Finished jaxpr to MLIR module conversion jit(%s) in %.9f sec",
            data["name"],
            data["seconds"],
        )
    elif name == "compile":
        what = "reading from disk" if data["from_disk"] else "XLA compilation"
        logger.warning(
            "Finished %s of jit(%s) in %.9f sec", what, data["name"], data["seconds"]
        )


# ----------------------------------------------------------------------------------
# explain_cache_misses
# ----------------------------------------------------------------------------------


def _explain_misses(name: str, data: dict[str, Any]) -> None:
    if name == "jit.miss" and state.explain_cache_misses:
        explanation = explain_miss(data["function"], data["key"], data["known"])
        logger.warning("%s", explanation)


def explain_miss(function: Any, key: tuple, known: Sequence[tuple]) -> str:
    """Why a call of a jitted function missed the cache.

    The call is compared with the nearest of them. `key` and `known` are those of the
    event `jit.miss`.
    """
    frame = source_info.user_frame_now()
    where = source_info.format_frame(frame) if frame else "an unknown place"
    name = function._signature.name
    place = fun_place(function._fun)
    defined = f" defined at {place}" if place else ""
    lines = [f"TRACING CACHE MISS at {where}:"]
    if not known:
        return "\n".join([*lines, "  never seen function:", f"    {name}{defined}"])
    nearest = min((_taken_apart(other) for other in known), key=_distance_to(key))
    lines.append(f"  for {name}{defined}")
    lines.append(
        "  all previously seen cache keys differ. For the closest previous key:"
    )
    differences = list(_differences(function, _taken_apart(key), nearest))
    lines += differences or ["  it was compiled for another device"]
    return "\n".join(lines)


def _taken_apart(key: tuple) -> tuple[Any, tuple, Any, tuple]:
    """(tree, types, settings, static values) of a key of any form."""
    if isinstance(key[0], tuple):  # with the device
        key = key[0]
    tree, avals, settings, *statics = key
    return tree, avals, settings, statics[0] if statics else ()


def _distance_to(key: tuple) -> Callable[[tuple], int]:
    tree, avals, settings, statics = _taken_apart(key)

    def distance(other: tuple) -> int:
        types = zip(avals, other[1])
        return (
            100 * (tree != other[0])
            + 10 * (statics != other[3])
            + (settings is not other[2])
            + sum(mine is not theirs for mine, theirs in types)
        )

    return distance


def _differences(function: Any, now: tuple, before: tuple) -> Iterator[str]:
    tree, avals, settings, statics = now
    if tree != before[0]:
        yield "  different input pytree:"
        for path, new, old, reason in equality_errors_pytreedef(tree, before[0]):
            change = f"now {new} and before {old}"
            yield f"  * at input path {keystr(path)}, {change}, so {reason}"
        return
    old_statics = {place: value for place, _, value in before[3]}
    for place, _, value in statics:
        if place not in old_statics or old_statics[place] != value:
            old = repr(old_statics.get(place, "nothing"))
            yield "  different value of static arguments:"
            yield f"  * at {_argument(function, place)}, now {value!r} and before {old}"
    if avals != before[1]:
        names = _leaf_names(function, tree, statics)
        yield "  different input types:"
        for name, new, old in zip(names, avals, before[1]):
            if new is not old:
                yield f"  * at {name}, now {_type(new)} and before {_type(old)}"
    if settings is not before[2]:
        changed = ", ".join(settings.differing(before[2]))
        yield "  different tracing context, e.g. due to config or context manager:"
        yield f"  * {changed}"


def _type(aval) -> str:
    text = aval.str_short(short_dtypes=True)
    return f"{text}{{weak_type=True}}" if getattr(aval, "weak_type", False) else text


def _argument(function: Any, place: int | str) -> str:
    return place if isinstance(place, str) else function._signature.argument_name(place)


def _leaf_names(function: Any, tree: Any, statics: tuple) -> tuple[str, ...]:
    leaves = [None] * tree.num_leaves
    positional = sum(isinstance(place, int) for place, _, _ in statics)
    dynamic, _ = tree_unflatten(tree, range(tree.num_leaves))
    bound = Bound(leaves, tree, statics, positional + len(dynamic))
    return function._signature.leaf_names(bound)


# ----------------------------------------------------------------------------------
# Listening while a flag is set
# ----------------------------------------------------------------------------------


class _Reporting:
    """The public form of a flag: a context manager that also listens to events."""

    def __init__(self, name: str, listener: events.Subscriber):
        self.name = self.__name__ = name
        self.listener = listener
        self.always = contextlib.ExitStack()
        config.on_update(name, self._update)
        if getattr(state, name):  # by an environment variable
            self._update(True)

    def _update(self, value: bool) -> None:
        """`config.update`: start or stop listening."""
        self.always.close()
        if value:
            self.always.enter_context(event_watching.subscribe(self.listener))

    @contextlib.contextmanager
    def __call__(self, new_val: bool = True) -> Iterator[None]:
        """Context manager: set the flag in this thread, and listen while it is set.

        Inside of `config.update(..., True)` one listener is enough.
        """
        listening = self.listener in events.subscribers
        subscribed = (
            event_watching.subscribe(self.listener)
            if new_val and not listening
            else contextlib.nullcontext()
        )
        with override(self.name, bool(new_val)), subscribed:
            yield

    def __repr__(self) -> str:
        return f"<flag {self.name} = {getattr(state, self.name)!r}>"


log_compiles = _Reporting("log_compiles", _log_compiles)
explain_cache_misses = _Reporting("explain_cache_misses", _explain_misses)
