"""tiny, a toy over NumPy. This piece: the tracers that got out, and who has them."""

import gc
import types
import weakref

from tiny.trace import trace


def holders(tracer):
    """What keeps a tracer alive, beside its own program."""
    program = tracer.program
    own = [program.inputs, program.outputs, *program.equations]
    own += [part for equation in program.equations for part in equation]
    found = gc.get_referrers(tracer)
    return [h for h in found if not any(h is o for o in own) and not is_frame(h)]


def is_frame(thing):
    return isinstance(thing, types.FrameType)


def told(holder, tracer):
    """A holder in words: under which key, attribute or index it has the tracer."""
    kind = type(holder).__name__
    if isinstance(holder, list):
        return f"item {[item is tracer for item in holder].index(True)} of a list"
    inside = holder if isinstance(holder, dict) else getattr(holder, "__dict__", {})
    keys = [key for key, value in inside.items() if value is tracer]
    if isinstance(holder, dict):
        return f"key {keys[0]!r} of a dict"
    return f"{kind}.{keys[0]}" if keys else f"a {kind}"


def leaks(function, *args):
    """A line for each tracer that outlives the trace of `function`."""
    program = trace(function, *args)
    made = [*program.inputs, *(r for e in program.equations for r in e.results)]
    born = [weakref.ref(tracer) for tracer in made]
    del program, made
    gc.collect()
    alive = [ref() for ref in born if ref() is not None]
    return [f"{t}: {told(h, t)}" for t in alive for h in holders(t) if h is not alive]
