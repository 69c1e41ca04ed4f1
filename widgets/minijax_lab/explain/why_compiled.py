"""`see.why` of a jitted function: why its last program was compiled.

A function keeps a key for each of its programs, in the order in which they were made;
the last one is compared with the nearest of those before. Nothing listens to calls for
it. What `see.cache` has watched also knows the lines of the calls.
"""

from __future__ import annotations

from dataclasses import replace

from minijax.core.jit import JitFunction
from minijax_lab.explain.cache import (
    CacheRecording,
    CacheWatch,
    Change,
    in_a_sentence,
    in_words,
)
from minijax_lab.explain.recording import Sources, Span
from minijax_lab.explain.why import Moment, WhyRecording

RULE = (
    "A program serves calls of one kind: the same shapes, dtypes, weak types, trees, "
    "static arguments, places and settings."
)


def why_compiled(function: JitFunction) -> WhyRecording:
    """Why the last program that a function keeps was compiled.

    Raises LookupError for one that keeps no program.
    """
    watch = CacheWatch(function)
    keys = [watch.taken_apart(raw) for raw in watch.kept()]
    if not keys:
        raise LookupError(
            f"{watch.name} keeps no program: it was not called yet, or "
            "its cache was cleared."
        )
    watch.keys = dict(enumerate(keys[:-1]))
    number = watch.sources.add_function(function)
    span = None
    if number is not None:
        source = watch.sources.found[number]
        rows = list(enumerate(source.lines, source.first_line))
        # Behind the decorators.
        line, text = next((n, t) for n, t in rows if t.strip()[:1] != "@")
        start = len(text) - len(text.lstrip())
        span = Span(number, line, start, line, len(text))
    nearest, changes = watch.nearest(keys[-1])
    advice = watch.advice(keys[-1], nearest, changes)
    place = next((n for n, key in enumerate(keys) if key is nearest), 0)
    before = Moment("before", span, f"program {place + 1}: {in_words(keys[place])}")
    now = Moment("now", None, f"program {len(keys)}: {in_words(keys[-1])}")
    return story(watch.name, watch.sources, [before, now], changes, advice)


def why_call_compiled(record: CacheRecording) -> WhyRecording:
    """Why the last call that `see.cache` saw miss was compiled again.

    Raises LookupError where no call was.
    """
    missed = [call for call in record.calls if not call.hit]
    if not missed:
        raise LookupError(
            f"no call of {record.name} was compiled since it is watched: call it first."
        )
    last = next((call for call in reversed(missed) if not call.first), missed[-1])
    moments = []
    if last.nearest is not None:
        known = record.calls[last.nearest]
        told = record.programs[known.program - 1]
        moments.append(Moment("before", known.span, f"call {known.number:,}: {told}"))
    told = record.programs[last.program - 1]
    moments.append(Moment("now", last.span, f"call {last.number:,}: {told}"))
    sources = Sources()
    sources.found = record.sources
    return story(record.name, sources, moments, last.changes, last.advice)


def story(
    name: str,
    sources: Sources,
    moments: list[Moment],
    changes: list[Change],
    advice: str,
) -> WhyRecording:
    """The recording: what changed, where, and what to write."""
    told = "; ".join(map(in_a_sentence, changes))
    headline = f"why {name} was compiled again: {told}"
    if not told:
        headline = f"why {name} was compiled: it was the first call of its kind"
        moments = [replace(moments[0], label="now")]
    return WhyRecording(
        call=name,
        headline=headline,
        telling=len(moments) - 1,
        sources=sources.found,
        moments=moments,
        message=told or headline,
        rule=RULE,
        instead=advice,
        program=None,
        hidden=0,
    )
