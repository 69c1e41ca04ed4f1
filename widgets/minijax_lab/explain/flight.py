"""The flight recorder's hooks: what a program that uses JAX spends, by the user's line.

It listens to JAX's own monitoring events (tracing, lowering, compiling), puts a small
object in front of each function that the user's code jits, and notes where arrays are
copied to the host. Arguments are taken apart on misses only; a hit costs a count.

Neither JAX nor a hook of it is imported: `library` is the module, real JAX or minijax,
which have the same public names.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

from minijax.support import event_watching
from minijax_lab.explain.flight_constants import constants_of, named
from minijax_lab.explain.flight_facts import (
    COUNTING,
    NOTED,
    Constant,
    Key,
    Lines,
    Made,
    Miss,
    Pushed,
    Site,
)
from minijax_lab.explain.flight_keys import (
    as_given,
    explain,
    given_to_library,
    held_by,
    key_of,
    parameters_of,
    places,
    plain_key,
    signature_of,
)
from minijax_lab.explain.flight_patches import replaced
from minijax_lab.explain.user_source import Source

STAGES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
READ_FROM_DISK = "/jax/compilation_cache/cache_hits"
UNUSABLE = "Some donated buffers were not usable"
MOST_MISSES = 400
# Arguments are looked at on the first calls, then on each of so many; after `OFTEN` of
# them more rarely.
EACH, OFTEN, LATER = 16, 64, 256
# Constants of at least so many bytes are told.
LARGE = 1 << 18

# Names by which a file that computes with JAX knows it.
COMPUTING = {"jax", "jnp"}

clock = time.perf_counter

# The threads that trace, compile or fetch: what runs inside is a part of that.
BUSY: set[int] = set()


class Call(NamedTuple):
    """One call of a jitted function: which of its calls, the line, and the values."""

    number: int
    site: Site
    args: tuple
    kwargs: dict
    result: Any


class Jitted:
    """A function that the library jitted, with a recorder in front; else as it was."""

    def __init__(self, jitted: Any, ear: Ear, made: Made, options: dict) -> None:
        self.jitted = jitted
        self.ear = ear
        self.at = ear.at
        self.made = made
        self.options = options
        self.number = made.objects
        self.calls = 0
        self.counted = 0  # of them, those that `made` knows of
        self.next = 1  # the number of the call whose arguments are looked at
        self.results: list[weakref.ref] = []
        self.arrays: dict[str, weakref.ref] = {}  # of NumPy, by path
        self.signature = signature_of(jitted)
        functools.update_wrapper(self, jitted, updated=())
        del self.__wrapped__  # that of `jitted`, by `__getattr__`

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if BUSY and threading.get_ident() in BUSY:
            return self.jitted(*args, **kwargs)
        begin = clock()
        result = self.jitted(*args, **kwargs)
        # The device works by now: what follows costs a program that waits nothing.
        frame = sys._getframe(1)
        site = self.at.get(id(frame.f_code) + frame.f_lasti)
        if site is None:
            site = self.ear.site_at(frame)
            if site is None:
                return result
        site.called.append(begin)
        self.calls = number = self.calls + 1
        if number == self.next:
            self.look(Call(number, site, args, kwargs, result))
        return result

    def look(self, call: Call) -> None:
        """Looks at the arguments, on the first two calls and then now and then.

        Other threads may have called since this call.
        """
        number = call.number
        each = EACH if number < OFTEN else LATER
        self.next = 2 if number == 1 else number - number % each + each
        for each_site in list(self.at.values()):
            each_site.count()
        with COUNTING:
            self.made.calls += number - self.counted
            self.counted = number
        self.ear.look(self, call)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        # A jitted method: the object that it belongs to is its first argument.
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jitted, name)


class State(threading.local):
    """What goes on in one thread."""

    def __init__(self) -> None:
        self.events = 0
        self.depth = 0  # traces that go on
        self.stack: list[list[Any]] = []
        self.read = False
        self.miss: Miss | None = None

    def enter(self, traces: int) -> None:
        """A stage begins in this thread; `traces` is 1 for a trace, else 0."""
        self.depth += traces
        BUSY.add(threading.get_ident())

    def leave(self, traces: int) -> None:
        """A stage has ended in this thread."""
        self.depth -= traces
        if not self.depth and not self.stack:
            BUSY.discard(threading.get_ident())


def call_of(frame: FrameType | None) -> FrameType | None:
    """The call of a `Jitted` that a frame is a part of, if there is one."""
    while frame is not None and frame.f_code is not Jitted.__call__.__code__:
        frame = frame.f_back
    return frame


# One for all libraries: an array of minijax holds one of jaxlib.
STATE = State()


class Ear:
    """Listens to one library, between `start` and `stop`."""

    def __init__(self, library: Any, lines: Lines) -> None:
        self.library = library
        self.lines = lines
        self.on = False
        self.state = STATE
        self.sites: dict[tuple[str, int], Site] = {}
        self.made: dict[Any, Made] = {}
        # By the address of an instruction: a code object holds its instructions.
        self.at: dict[int, Site] = {}
        self.codes: list[Any] = []
        self.fronts: weakref.WeakSet[Jitted] = weakref.WeakSet()
        self.constants: dict[tuple[Any, str], Constant] = {}
        # Each constant with its name and readers, by its address and its jit's line.
        self.names: dict[tuple[int, Any], tuple] = {}
        self.sources: dict[str, Source] = {}
        self.pushed: dict[tuple[Site | int, str], tuple[Site, Pushed]] = {}
        self.donations: dict[tuple[str, int], list[str]] = {}
        # Operations that ran outside of jit, by the lines that led to them.
        self.loose: dict[tuple[tuple[str, int], ...], dict[str, Any]] = {}
        self.moves: dict[tuple[str, int], dict[str, Any]] = {}
        # By the address of an array that the host has read: a reference to it.
        self.host_has: dict[int, weakref.ref] = {}
        self.undo: list[Callable[[], Any]] = []
        self.began = clock()
        self.own = library.__name__ == "minijax"
        self.array: Any = ()  # the class of the device's arrays
        self.of_numpy = {getattr(sys.modules.get("numpy"), "ndarray", None)}

    # ---- starting and stopping -----------------------------------------------------

    def start(self) -> None:
        """Begins to listen; calls of what was jitted before are not counted."""
        monitoring = self.library.monitoring
        self.on = True
        self.hear(monitoring, "event_duration_secs", self.took, "event_duration")
        if self.own:
            self.hear_minijax()
        elif hasattr(monitoring, "register_scalar_listener"):
            self.hear(monitoring, "scalar", self.begins)
        self.hear(monitoring, "event", self.happened)
        self.replace(self.library, "jit", self.jit(self.library.jit))
        self.watch_copies()
        self.watch_warnings()

    def stop(self) -> None:
        """Stops listening, and gives all names back."""
        self.on = False
        self.at.clear()
        self.host_has.clear()
        self.names.clear()
        for front in self.fronts:
            front.made.calls += front.calls - front.counted
            front.counted = front.calls
        for site in self.sites.values():
            site.count()
            if site.waits:
                site.seconds["wait"] = site.waited
                site.counts["wait"] = sum(site.waits.values())
        for undo in reversed(self.undo):
            undo()
        self.undo.clear()

    def hear(self, monitoring: Any, kind: str, listener: Any, ends: str = "") -> None:
        """Registers a listener, which `stop` takes away where the library can."""
        getattr(monitoring, f"register_{kind}_listener")(listener)
        for name in (kind, ends):
            end = getattr(monitoring, f"unregister_{name}_listener", None)
            if end is not None:
                self.undo.append(functools.partial(end, listener))
                return

    def hear_minijax(self) -> None:
        """minijax tells of the end of a trace only to JAX's listeners: ask its core."""

        def listen(name: str, data: dict[str, Any]) -> None:
            if name == "trace.begin":
                self.state.enter(1)
            elif name == "trace.end":
                self.state.leave(1)

        subscribed = event_watching.subscribe(listen)
        subscribed.__enter__()
        self.undo.append(lambda: subscribed.__exit__(None, None, None))

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Replaces an attribute until `stop`; not one that cannot be set."""
        with contextlib.suppress(AttributeError, TypeError):
            self.undo.append(replaced(owner, name, value))

    # ---- jit -----------------------------------------------------------------------

    def jit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`jit` that hands out the same functions with a recorder in front."""
        plain = original(lambda: 0)
        while isinstance(plain, Jitted):  # another recording goes on
            plain = plain.jitted
        kinds = (type(plain), Jitted)

        @functools.wraps(original)
        def jit(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            frame = self.lines.frame(sys._getframe(1))
            if frame is None or not self.on:
                return made  # a library jitted it as it was imported
            place = (frame.f_code.co_filename, frame.f_lineno)
            if isinstance(made, kinds):
                return self.front(made, place, kwargs)

            def decorate(function: Callable[..., Any]) -> Any:
                # `@jit(static_argnames=...)`: options first, the function later.
                return self.front(made(function), place, kwargs)

            return decorate

        return jit

    def front(self, jitted: Any, place: tuple[str, int], options: dict) -> Jitted:
        """One jitted function with a recorder in front."""
        function = getattr(jitted, "__wrapped__", None)
        name = getattr(jitted, "__name__", "function")
        made = self.made.get(place)
        if made is None:
            made = self.made[place] = Made(place, name)
            code = getattr(function, "__code__", None)
            if code is not None:
                made.code_line, made.code_file = code.co_firstlineno, code.co_filename
                made.bound = hasattr(function, "__self__")
            made.donated = bool({"donate_argnums", "donate_argnames"} & set(options))
        made.objects += 1
        held = held_by(function)
        both = held.keys() & made.held.keys()
        made.varied |= {each for each in both if held[each] != made.held[each]}
        made.held = held
        front = Jitted(jitted, self, made, options)
        self.fronts.add(front)
        return front

    # ---- events --------------------------------------------------------------------

    def begins(self, event: str, _: Any = None, **__: Any) -> None:
        """A stage begins."""
        if event in STAGES:
            self.state.stack.append([event, 0.0])
            self.state.enter(STAGES[event] == "trace")

    def took(self, event: str, seconds: float, **facts: Any) -> None:
        """A stage has ended."""
        if event not in STAGES:
            return
        state, stage = self.state, STAGES[event]
        state.events += 1
        own = seconds
        if state.stack and state.stack[-1][0] == event:
            # What ran inside has told its own time: it is not counted twice.
            own -= state.stack.pop()[1]
            state.leave(stage == "trace")
            if state.stack:
                state.stack[-1][1] += seconds
        if stage == "compile" and state.read:
            stage, state.read = "read from disk", False
        name = str(facts.get("fun_name", "function"))
        name = name.removeprefix("jit(").removesuffix(")") if "jit(" in name else name
        call = None if state.depth else call_of(sys._getframe(1))
        users = self.lines.frame(call or sys._getframe(1))
        if users is None:
            return
        site = self.site(users)
        front: Jitted | None = None
        if call is not None:
            front = call.f_locals["self"]
        else:
            self.note_loose(users, name, own)
        site.spend(stage, max(0.0, own))
        site.functions[name] = site.functions.get(name, 0) + 1
        if state.depth:
            return  # a part of another program's trace
        miss = state.miss
        fresh = miss is None or stage in miss.seconds or stage == "trace"
        if fresh or miss is None or (front is None and miss.function != name):
            made: Made
            if front is not None and call is not None:
                made = front.made
                given = call.f_locals["args"], call.f_locals["kwargs"]
                key = key_of(self.library, front, *given)
                # A function of another library may raise anything.
                with contextlib.suppress(Exception):
                    outer = given_to_library(call, users)
                    if key is not None and outer:
                        as_given(self.library, key, front, call, outer)
                number = front.number, front.calls + 1
                front.next = front.calls + 1
            else:
                made, key, number = self.made_before(site, name)
            begun = clock() - seconds
            miss = Miss(made.place, name, number[0], key, number[1], begun, {})
            state.miss = miss
            site.missed += 1
            if len(made.misses) < MOST_MISSES:
                explain(miss, made.misses)
                made.misses.append(miss)
            made.site = made.site or site
            if len(site.misses) < MOST_MISSES:
                site.misses.append(miss)
        miss.seconds[stage] = miss.seconds.get(stage, 0.0) + max(0.0, own)
        if stage in ("compile", "read from disk"):
            state.miss = None
            if front is not None and front.made.executable is None:
                front.made.shapes = miss.key

    def note_loose(self, users: FrameType, name: str, spent: float) -> None:
        """Adds what an operation outside of jit took, at the lines that led to it."""
        if self.state.depth:
            return
        # The user's lines that led there. What a library that computes with JAX calls
        # back (Flax a module's method) is a part of the call of the library.
        path: list[tuple[str, int]] = []
        frame: FrameType | None = users
        while frame is not None:
            code = frame.f_code
            if self.lines.is_users(code.co_filename):
                path.append((code.co_filename, frame.f_lineno))
            elif self.lines.frame(frame) is None:
                break
            elif not COMPUTING.isdisjoint(frame.f_globals):
                path.clear()
            frame = frame.f_back
        told = self.loose.setdefault(
            tuple(reversed(path)), {"seconds": 0.0, "names": {}, "ran": set()}
        )
        told["ran"].add((users.f_code.co_filename, users.f_lineno))
        told["seconds"] += max(0.0, spent)
        told["names"][name] = told["names"].get(name, 0) + 1

    def happened(self, event: str, **_: Any) -> None:
        """JAX's cache on disk answered in the place of the compiler."""
        if event == READ_FROM_DISK:
            self.state.read = True

    def made_before(self, site: Site, name: str) -> tuple[Made, Key | None, tuple]:
        """A function that was jitted before, or by a library: its name is known.

        JAX's own frame has its arguments; where it has not, the reason stays unknown.
        """
        place = f"{site.file}:{site.line}:{name}"
        frame: FrameType | None = sys._getframe(2)
        key, number = None, 0
        while frame is not None:
            code = frame.f_code
            if code.co_name == "cache_miss" and "args" in code.co_varnames:
                local = frame.f_locals
                function = local.get("fun")
                info = local.get("jit_info")
                key = plain_key(self.library, function, info, local)
                if key is not None:
                    key.statics |= parameters_of(frame)
                inner = getattr(function, "__code__", None)
                if inner is not None and self.lines.is_users(inner.co_filename):
                    number = id(function)
                break
            frame = frame.f_back
        made = self.made.setdefault(place, Made(place, name))
        made.objects = max(1, made.objects)
        made.users = number != 0
        return made, key, (number, 0)

    # ---- what a call brings --------------------------------------------------------

    def look(self, front: Jitted, call: Call) -> None:
        """Looks at the arguments of one of many calls."""
        made, number, args = front.made, call.number, call.args
        last = made.misses[-1] if made.misses else None
        if last is not None and last.call == number and last.object == front.number:
            self.look_inside(front, last, call)
        util = self.library.tree_util
        for place, value in enumerate(args):
            # Trees are mostly arrays of the device's: only others are taken apart.
            if any(type(leaf) in self.of_numpy for leaf in util.tree_leaves(value)):
                self.look_at_pushed(front, call.site, place, value)
        if number == 1 and not made.donated:
            results = [x for x in util.tree_leaves(call.result) if hasattr(x, "nbytes")]
            with contextlib.suppress(TypeError):
                front.results = [weakref.ref(x) for x in results]
        elif number == 2 and front.results:
            before = {id(ref()) for ref in front.results} - {id(None)}
            front.results = []
            names = list(front.signature.parameters) if front.signature else []
            for place, value in enumerate(args):
                again = sum(
                    leaf.nbytes
                    for leaf in util.tree_leaves(value)
                    if id(leaf) in before and hasattr(leaf, "nbytes")
                )
                if again:
                    name = names[place] if place < len(names) else f"args[{place}]"
                    made.passed_on[name] = again

    def look_inside(self, front: Jitted, miss: Miss, call: Call) -> None:
        """The constants of a program that was made, and the compiled program."""
        made, site = front.made, call.site
        if made.executable is None:
            with contextlib.suppress(Exception):
                client = self.library.devices()[0].client
                made.executable = client.live_executables()[0]
        try:
            traced = front.jitted.trace(*call.args, **call.kwargs)
            found = list(constants_of(traced.jaxpr))
        except Exception:  # arguments that cannot be traced again
            return
        for value, equations in found:
            size = int(getattr(value, "nbytes", 0))
            if size < LARGE:
                continue
            _, name, places = self.named(value, equations, front)
            told = f"{value.dtype}{list(value.shape)}".replace(" ", "")
            known = self.constants.get((made.place, name or told))
            spent = sum(miss.seconds.values())
            if known is not None:
                known.programs += 1
                known.seconds += spent
                continue
            self.constants[made.place, name or told] = Constant(
                name, size, site.file, site.line, 1, made.place, spent, places, told
            )

    def named(self, value: Any, equations: list[Any], front: Jitted) -> tuple:
        """A constant with its name and its readers, searched once."""
        known = self.names.get((id(value), front.made.place))
        if known is None:
            near, frame = [], sys._getframe(1)
            while frame is not None:
                if self.lines.is_users(frame.f_code.co_filename):
                    near.append(frame.f_globals)
                frame = frame.f_back  # type: ignore[assignment]
            is_users = self.lines.is_users
            told = named(value, equations, front.jitted, is_users, near, self.source)
            known = self.names[id(value), front.made.place] = (value, *told)
        return known

    def source(self, file: str) -> Source:
        """A file of the user's."""
        if file not in self.sources:
            self.sources[file] = Source(file)
        return self.sources[file]

    def look_at_pushed(
        self, front: Jitted, site: Site, number: int, value: Any
    ) -> None:
        """The NumPy arrays among the arguments; the same one twice is a waste."""
        util = self.library.tree_util
        names = list(front.signature.parameters) if front.signature else []
        root = names[number] if number < len(names) else f"args[{number}]"
        for path, leaf in util.tree_flatten_with_path(value)[0]:
            if type(leaf) not in self.of_numpy or not leaf.ndim:
                continue
            name = root + util.keystr(path)
            known = self.pushed.get((id(site), name))
            if known is None:
                told = Pushed(name, leaf.nbytes, 1, False)
                self.pushed[id(site), name] = site, told
            else:
                told = known[1]
                told.calls += 1
                held = front.arrays.get(name)
                told.same |= held is not None and held() is leaf
            front.arrays[name] = weakref.ref(leaf)

    # ---- copies to the host --------------------------------------------------------

    def watch_copies(self) -> None:
        """Notes what waits for the device, or copies from it."""
        import numpy

        array = self.array = self.class_of_arrays()
        value = array.__dict__.get("_value")
        if isinstance(value, property) and value.fget is not None:
            getter = value.fget

            at, host_has, ref = self.at, self.host_has, weakref.ref
            frame_above, thread = sys._getframe, threading.get_ident

            def read(each: Any) -> Any:
                # What `wait` does, without its detours: each `float(loss)` comes here.
                # The line is found before the wait, while the device works.
                if BUSY and thread() in BUSY:
                    return getter(each)
                place, reference = id(each), ref(each)
                if host_has.get(place) is reference:
                    return getter(each)
                host_has[place] = reference
                try:
                    # Above an array's own `__float__`, which calls this.
                    frame = frame_above(2)
                    site = at.get(id(frame.f_code) + frame.f_lasti)
                except ValueError:  # no such frame
                    site = None
                if site is None:
                    site = self.site_at(frame_above(1))
                begin = clock()
                value = getter(each)
                if site is not None:
                    waits = site.waited_for
                    waits.append((begin, clock(), value.nbytes, "copy"))
                    if len(waits) >= NOTED:
                        site.count()
                return value

            self.replace(array, "_value", property(read))
        for name in ("item", "tolist", "block_until_ready"):
            method = getattr(array, name, None)
            if method is not None:
                self.replace(array, name, self.waiting(name, method))
        for name in ("asarray", "array"):
            plain = getattr(numpy, name)

            def convert(*args: Any, plain: Any = plain, name: str = name, **kw: Any):
                if args and isinstance(args[0], array):
                    return self.wait(f"np.{name}", args[0], plain, *args, **kw)
                return plain(*args, **kw)

            self.replace(numpy, name, functools.wraps(plain)(convert))
        for name in ("device_get", "block_until_ready"):
            plain = getattr(self.library, name, None)
            if plain is not None:
                self.replace(self.library, name, self.waiting(name, plain))
        put = getattr(self.library, "device_put", None)
        if put is not None:
            self.replace(self.library, "device_put", self.moving(put, array))

    def class_of_arrays(self) -> Any:
        """The class of arrays with values."""
        return type(self.library.numpy.zeros(()))

    def is_copied(self, array: Any) -> bool:
        """Whether a read copies an array: the first one does, its values are kept."""
        # While an array lives, all references to it are one object.
        place, reference = id(array), weakref.ref(array)
        if self.host_has.get(place) is reference:
            return False
        self.host_has[place] = reference
        return True

    def waiting(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method or function that waits for arrays."""

        def waits(value: Any, *args: Any, **kwargs: Any) -> Any:
            return self.wait(name, value, method, value, *args, **kwargs)

        waits.__name__, waits.__doc__ = name, method.__doc__
        return waits

    def wait(self, how: str, value: Any, work: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs what may wait for the device, and notes for how long, and where."""
        thread = threading.get_ident()
        if thread in BUSY or not self.on:
            return work(*args, **kwargs)
        frame = sys._getframe(1)
        if (
            how == "block_until_ready"
            and self.lines.frame(frame.f_back) is not frame.f_back
        ):
            how = ""  # a library's own wait
        site = self.site_at(frame)
        BUSY.add(thread)
        begin = clock()
        try:
            return work(*args, **kwargs)
        finally:
            BUSY.discard(thread)
            if site is not None:
                self.note_wait(site, how, value, begin, clock())

    def note_wait(
        self, site: Site, how: str, value: Any, begin: float, end: float
    ) -> None:
        """Notes what was waited for: of a tree, the device's arrays not read before."""
        size = 0
        if how not in ("", "block_until_ready"):
            leaves = self.library.tree_util.tree_leaves(value)
            arrays = [leaf for leaf in leaves if isinstance(leaf, self.array)]
            copied = [array for array in arrays if self.is_copied(array)]
            if not copied:
                return
            size = sum(array.nbytes for array in copied)
        site.waited_for.append((begin, end, size, how))
        if len(site.waited_for) >= NOTED:
            site.count()

    def site_at(self, frame: FrameType | None) -> Site | None:
        """The site of the user's frame that a frame lies in."""
        users = self.lines.frame(frame) if self.on else None
        if users is None:
            return None
        key = id(users.f_code) + users.f_lasti
        site = self.at.get(key)
        if site is None:
            # Finding a line's number is slow in long functions. The code is kept, so
            # that no other one gets its address.
            self.codes.append(users.f_code)
            site = self.at[key] = self.site(users)
        return site

    def moving(self, put: Callable[..., Any], array: Any) -> Callable[..., Any]:
        """`device_put`: an array that lies elsewhere is copied between devices."""

        @functools.wraps(put)
        def device_put(x: Any, device: Any = None, *args: Any, **kwargs: Any) -> Any:
            made = put(x, device, *args, **kwargs)
            if device is not None and isinstance(x, array) and not self.state.depth:
                with contextlib.suppress(Exception):
                    if x.devices() != made.devices():
                        self.moved(sys._getframe(1), x, made)
            return made

        return device_put

    def moved(self, frame: FrameType, value: Any, made: Any) -> None:
        """Notes one copy between devices."""
        users = self.lines.frame(frame)
        if users is None:
            return
        site = self.site(users)
        with COUNTING:
            site.noted += 1
            site.seen(clock())
        told = self.moves.setdefault(
            (site.file, site.line),
            {"count": 0, "bytes": 0, "from": places(value), "to": places(made)},
        )
        told["count"] += 1
        told["bytes"] += int(value.nbytes)

    # ---- warnings ------------------------------------------------------------------

    def watch_warnings(self) -> None:
        """Hears of donated buffers that were not usable, once for each program."""
        shown = warnings.showwarning
        folder = os.path.dirname(self.library.__file__) + os.sep
        seen: set[str] = set()

        def show(message: Any, category: Any, *rest: Any, **more: Any) -> None:
            text = str(message)
            if text.startswith(UNUSABLE) and str(rest[0]).startswith(folder):
                users = self.lines.frame(sys._getframe(1))
                if users is not None and self.on:
                    place = (users.f_code.co_filename, users.f_lineno)
                    self.donations.setdefault(place, []).append(text)
                if text in seen:
                    return  # as without the recorder: once
                seen.add(text)
            shown(message, category, *rest, **more)

        warnings.filterwarnings("always", message=UNUSABLE)
        added = warnings.filters[0]
        self.replace(warnings, "showwarning", show)

        def undo() -> None:
            if added in warnings.filters:
                warnings.filters.remove(added)  # type: ignore[attr-defined]

        self.undo.append(undo)

    # ---- sites ---------------------------------------------------------------------

    def site(self, users: FrameType) -> Site:
        """The site of a frame of the user's."""
        place = (users.f_code.co_filename, users.f_lineno)
        site = self.sites.get(place)
        if site is None:
            site = self.sites.setdefault(place, Site(*place))
        return site


@contextlib.contextmanager
def listening(
    ears: list[Ear], lines: Lines, now: tuple[str, ...] = ("jax",)
) -> Iterator[None]:
    """Listens to JAX and minijax, each from the moment at which the user imports it.

    `now` are those that are listened to at once, if they are loaded.
    """
    import builtins

    plain_import = builtins.__import__
    heard: set[str] = set()

    def listen(names: tuple[str, ...]) -> None:
        for name in names:
            library = sys.modules.get(name)
            if library is None or name in heard:
                continue
            if hasattr(library, "jit") and hasattr(library, "monitoring"):
                heard.add(name)
                ears.append(Ear(library, lines))
                ears[-1].start()

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        # After the outermost import, when the library is whole.
        module = plain_import(name, *args, **kwargs)
        if len(heard) < 2:
            frame = sys._getframe(1)
            if lines.frame(frame) is frame:
                asked = name.partition(".")[0] == "minijax"
                listen(("jax", "minijax") if asked else ("jax",))
        return module

    listen(now)
    give_back = replaced(builtins, "__import__", importing)
    try:
        yield
    finally:
        give_back()
        heard |= {"jax", "minijax"}  # it may still stand below another recording's
        for ear in ears:
            ear.stop()
