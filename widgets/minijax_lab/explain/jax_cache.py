"""`see.cache` for a function that JAX has jitted: why did it trace or compile again?

Nothing of JAX is imported: the function is recognised by its class, and the JAX that
made it is already loaded. JAX answers calls in C++, which reports nothing, so each
call goes through the watch, which takes the arguments apart as JAX's key does, and
learns from JAX's own monitoring events whether it traced or compiled.
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from typing import Any

from minijax_lab.explain.cache import CacheWatch, Key

# JAX's names for what a call spends its time on.
STAGES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
READ_FROM_DISK = "/jax/compilation_cache/cache_hits"


def is_jitted_by_jax(function: Any) -> bool:
    """Whether `jax.jit` made this object."""
    of_jaxlib = type(function).__module__.startswith("jaxlib")
    return of_jaxlib and hasattr(function, "_jit_info") and "jax" in sys.modules


@dataclass(frozen=True)
class Tree:
    """How the arguments are nested, with JAX's tree under the names that we use."""

    args: Any
    kwargs: Any

    def children(self) -> tuple[Any, Any]:
        return self.args, self.kwargs


@dataclass(eq=False)
class Settings:
    """JAX's settings at a call, as its key has them."""

    context: Any
    values: dict[str, Any]

    def differing(self, other: Settings) -> list[str]:
        """The names of the settings that differ."""
        names = [
            name.removeprefix("jax_")
            for name, value in self.values.items()
            if other.values.get(name) != value
        ]
        return names or ["a setting"]


class JaxCacheWatch(CacheWatch):
    """Takes the calls of a function that JAX jitted."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.jax = sys.modules["jax"]
        self.spent: dict[str, float] = {}
        self.read = False
        self.settings: list[Settings] = []
        self.made_before = 0

    def check(self, function: Any) -> None:
        """Was recognised before."""

    def start(self) -> None:
        """Begins to listen to JAX's own events."""
        if self.subscription is not None:
            return
        self.made_before = self.function._cache_size()
        weakly = weakref.ref(self)

        def took(event: str, seconds: float, **_: Any) -> None:
            watch = weakly()
            if watch is not None and event in STAGES:
                stage = STAGES[event]
                watch.spent[stage] = watch.spent.get(stage, 0.0) + seconds

        def happened(event: str, **_: Any) -> None:
            watch = weakly()
            if watch is not None and event == READ_FROM_DISK:
                watch.read = True

        monitoring = self.jax.monitoring
        monitoring.register_event_duration_secs_listener(took)
        monitoring.register_event_listener(happened)

        def end() -> None:
            monitoring.unregister_event_duration_listener(took)
            monitoring.unregister_event_listener(happened)

        self.subscription = weakref.finalize(self, end)

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Calls the function, and notes what JAX did to answer."""
        if self.subscription is None:
            return self.function(*args, **kwargs)
        key = self.key_of(args, kwargs)
        raw = self.raw_of(key)
        span = self.line_of_call()
        self.spent, self.read = {}, False
        # A call that raises was answered by no program, so it is not noted.
        result = self.function(*args, **kwargs)
        self.note(raw, key, span, args, kwargs)
        return result

    def note(self, raw: tuple, key: Key, span: Any, args: tuple, kwargs: dict) -> None:
        """A call that traced or compiled is a miss; any other a hit."""
        self.total += 1
        if "trace" not in self.spent and "compile" not in self.spent:
            self.hits += 1
            if self.identity(raw) not in self.keys:
                self.know(raw, key)
            self.note_hit(raw)
            return
        self.misses += 1
        self.raw_key, self.arguments = key, (args, kwargs)
        self.note_miss(raw, span)
        del self.arguments
        for stage, seconds in self.spent.items():
            self.spend("read from disk" if self.is_read(stage) else stage, seconds)
        if self.last_miss is not None and "compile" in self.spent:
            self.last_miss.from_disk = self.read

    def is_read(self, stage: str) -> bool:
        """Whether JAX's cache on disk answered in the place of the compiler."""
        return stage == "compile" and self.read

    # ---- keys ----------------------------------------------------------------------

    def key_of(self, args: tuple, kwargs: dict[str, Any]) -> Key:
        """The arguments as JAX's key has them, leaf by leaf."""
        info = self.function._jit_info
        numbers = {n % len(args) if n < 0 and args else n for n in info.static_argnums}
        names = set(info.static_argnames)
        parameters = list(info.fun_signature.parameters) if info.fun_signature else []
        statics: dict[str, Any] = {}
        dynamic: list[Any] = []
        roots: list[str] = []
        for place, value in enumerate(args):
            name = parameters[place] if place < len(parameters) else f"args[{place}]"
            if place in numbers or name in names:
                statics[name] = value
            else:
                dynamic.append(value)
                roots.append(name)
        statics |= {name: kwargs[name] for name in kwargs if name in names}
        named = {name: kwargs[name] for name in sorted(kwargs) if name not in names}
        util = self.jax.tree_util
        leaves, _ = util.tree_flatten_with_path((dynamic, named))
        found = [self.leaf(path, value, roots) for path, value in leaves]
        tree = Tree(util.tree_structure(tuple(dynamic)), util.tree_structure(named))
        places = tuple(where for _, _, where in found)
        key = Key(
            tuple(name for name, _, _ in found),
            tuple(aval for _, aval, _ in found),
            statics,
            self.settings_now(),
            tuple(place for place in dict.fromkeys(places) if place) or (),
            tree,
        )
        return key

    def leaf(self, path: tuple, value: Any, roots: list[str]) -> tuple[str, Any, str]:
        """Name, type and device of one array; "" for the device that JAX chooses."""
        util = self.jax.tree_util
        rest = util.keystr(path[2:])
        if path[0].idx == 0:
            name = roots[path[1].idx] + rest
        else:
            name = path[1].key + rest
        committed = getattr(value, "_committed", False)
        return name, self.jax.typeof(value), place_of(value) if committed else ""

    def settings_now(self) -> Settings:
        """The settings of JAX that a program depends on; one object while equal."""
        context = sys.modules["jax._src.config"].trace_context()
        for known in self.settings:
            if known.context == context:
                return known
        # A setting that holds in this thread only stands in the attribute.
        config = self.jax.config
        values = {name: getattr(config, name, None) for name in config.values}
        self.settings.append(Settings(context, values))
        return self.settings[-1]

    def raw_of(self, key: Key) -> tuple:
        """What makes two calls the same kind of call."""
        statics = tuple((name, short_key(value)) for name, value in key.statics.items())
        return key.tree, key.avals, id(key.settings), statics, key.names, key.place

    def identity(self, raw: tuple) -> Any:
        return raw

    def taken_apart(self, raw: tuple) -> Key:
        """The key of the call that is being noted, or one that is known."""
        known = self.keys.get(raw)
        return known if known is not None else self.raw_key

    def scalars_of_call(self, key: Key) -> dict[str, Any]:
        """The plain numbers among the arguments of the call."""
        args, kwargs = self.arguments
        found = {}
        leaves, _ = self.jax.tree_util.tree_flatten((args, kwargs))
        numbers = [leaf for leaf in leaves if isinstance(leaf, (int, float, complex))]
        weak = [n for n, aval in zip(key.names, key.avals) if aval.weak_type]
        if len(numbers) == len(weak):
            found = dict(zip(weak, numbers))
        return found

    def kept(self) -> list[Any]:
        return list(self.keys)


def place_of(array: Any) -> str:
    """Where a committed array lies: `cpu:0`, or a sharding."""
    devices = list(array.sharding.device_set)
    if len(devices) > 1:
        return str(array.sharding)
    return f"{devices[0].platform}:{devices[0].id}"


def short_key(value: Any) -> Any:
    """A static value with its type, since 1, 1.0 and True are equal in Python."""
    return type(value), value
