"""The page of the flight recorder: the lines of the user's code, ranked by cost.

One file without a network: the drawing is HTML and SVG that Python wrote, and a short
script steps, zooms and copies. The same findings are plain text for a terminal.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from html import escape

from minijax_lab.explain.flight import Ear
from minijax_lab.explain.flight_advice import Adviser
from minijax_lab.explain.flight_facts import Fault, Site
from minijax_lab.explain.flight_programs import ProgramFacts
from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.user_source import Line, Source
from minijax_widgets.view import STATIC

STAGES = {
    "trace": "trace",
    "lower": "lower",
    "compile": "compile",
    "read from disk": "read from disk",
    "wait": "wait for the device",
}
MOST_SITES = 20
# Lines and lanes that are open: all lines with a fault, six in all at least.
MOST_OPEN = 6
# Marks of a lane: nearer ones are one.
BINS = 400
MIB = 1 << 20


@dataclass
class Report:
    """All that the page says, ready to be drawn or printed."""

    title: str
    command: str
    seconds: float
    sites: list[Site]
    faults: dict[tuple[str, int], list[Fault]]
    programs: list[ProgramFacts]
    sources: dict[str, Source]
    began: float
    error: str = ""
    before: dict[str, float] = field(default_factory=dict)

    @property
    def compiling(self) -> float:
        """Seconds of tracing, lowering and compiling."""
        stages = ("trace", "lower", "compile", "read from disk")
        return sum(site.seconds.get(s, 0.0) for site in self.sites for s in stages)

    @property
    def lost(self) -> float:
        """Seconds that the advice makes go."""
        return sum(f.seconds for faults in self.faults.values() for f in faults)

    @property
    def told(self) -> list[Fault]:
        """All faults, the dearest first."""
        found = [fault for faults in self.faults.values() for fault in faults]
        return sorted(found, key=lambda f: (-f.rank, -f.bytes))

    def lost_at(self, site: Site) -> float:
        """The avoidable seconds of one line."""
        return sum(f.seconds for f in self.faults.get((site.file, site.line), []))

    def code(self, site: Site) -> str:
        """The text of a line."""
        return self.sources[site.file].text(site.line)

    def place(self, file: str, line: int) -> str:
        """A line as it is named: its number, with the file where there are several."""
        several = len({site.file for site in self.sites}) > 1
        return f"{os.path.basename(file)}:{line}" if several else f"line {line}"

    def headline(self) -> str:
        """One sentence with numbers."""
        text = f"{self.title}: {seconds(self.seconds)}"
        if not self.sites:
            return f"{text}; nothing of JAX ran at a line of yours"
        text += f", {seconds(self.compiling)} of it tracing and compiling"
        told = self.told
        if not told:
            return f"{text}; no fault was found"
        if self.lost < 0.0005 and not any(fault.at_most for fault in told):
            return f"{text}; {count_in_words(len(told), 'fault')} found"
        unsure = max(told, key=lambda f: f.at_most)
        where = self.place(unsure.file, unsure.line)
        if self.lost < 0.0005:
            return f"{text}; up to {seconds(unsure.at_most)} avoidable at {where}"
        more = f"; up to {seconds(unsure.at_most)} more at {where}"
        text += f"; {seconds(self.lost)} avoidable"
        worst = max(self.sites, key=self.lost_at)
        if self.lost_at(worst):
            where = self.place(worst.file, worst.line)
            text += f", {seconds(self.lost_at(worst))} of it at {where}"
        return text + (more if unsure.at_most > self.lost / 10 else "")


def make_report(
    title: str,
    command: str,
    took: float,
    ears: list[Ear],
    programs: list[ProgramFacts],
    error: str = "",
) -> Report:
    """Ranks what was recorded: by avoidable seconds, then by seconds."""
    sites: list[Site] = []
    faults: dict[tuple[str, int], list[Fault]] = {}
    sources: dict[str, Source] = {}
    for ear in ears:
        adviser = Adviser(ear)
        found = adviser.faults()
        for facts in programs:
            if facts.made in ear.made.values() and facts.made is not None:
                sent = adviser.of_exchange(facts.made, facts, facts.calls)
                found += [sent] if sent is not None else []
        for fault in found:
            place = fault.file, fault.line
            faults.setdefault(place, []).append(fault)
            if place not in ear.sites:
                ear.sites[place] = Site(*place)
        sites += ear.sites.values()
        for site in ear.sites.values():
            sources[site.file] = adviser.source(site.file)
    began = ears[0].began if ears else 0.0
    report = Report(
        title, command, took, sites, faults, programs, sources, began, error
    )

    def cost(site: Site) -> tuple:
        told = faults.get((site.file, site.line), [])
        held = sum(fault.bytes for fault in told)
        rank = sum(fault.rank for fault in told)
        return -round(rank, 2), -bool(told), -total(site), -held

    sites.sort(key=cost)
    return report


def total(site: Site) -> float:
    """The seconds of a line."""
    return sum(site.seconds.get(stage, 0.0) for stage in STAGES)


def seconds(value: float) -> str:
    """Seconds as they are read: 3.1 s, 24 ms."""
    return f"{value:,.1f} s" if value >= 0.95 else f"{value * 1e3:,.0f} ms"


def bytes_told(value: int) -> str:
    """Bytes as they are read."""
    if value >= MIB:
        return f"{value / MIB:,.1f} MiB"
    return f"{value / 1024:,.1f} KiB" if value >= 1024 else f"{value:,} B"


def counts(site: Site) -> str:
    """How often a line was called, traced, lowered, compiled."""
    words = {"trace": "traced", "lower": "lowered", "compile": "compiled"}
    parts = [count_in_words(site.calls, "call")] if site.calls else []
    many = {words[s]: site.counts[s] for s in words if site.counts.get(s)}
    if len(set(many.values())) == 1 and len(many) == 3:
        parts.append(f"{many['compiled']:,} traced, lowered, compiled")
    else:
        parts += [f"{count:,} {word}" for word, count in many.items()]
    if site.counts.get("read from disk"):
        parts.append(f"{site.counts['read from disk']:,} read from disk")
    if site.waits:
        parts.append(count_in_words(sum(site.waits.values()), "wait"))
    names = [name for name in site.functions if name != "<lambda>"]
    if names and not site.calls:
        parts.append(", ".join(names[:3]) + (", ..." if len(names) > 3 else ""))
    return ", ".join(parts)


def costs(fault: Fault) -> str:
    """What the advice saves."""
    if fault.seconds >= 0.0005:
        return f"{seconds(fault.seconds)} avoidable"
    if fault.at_most:
        return f"up to {seconds(fault.at_most)} avoidable"
    return f"{bytes_told(fault.bytes)}" if fault.bytes else ""


# ---- text --------------------------------------------------------------------------


def text(report: Report, full: bool = False) -> str:
    """The report in a terminal: a line for each of the top findings."""
    rows = [report.headline()]
    told = report.told
    for fault in told if full else told[:8]:
        where = report.place(fault.file, fault.line)
        left = f"  {where:>9}  {costs(fault):>14}  "
        rows.append(f"{left}{fault.words}: {fault.write}")
        if full:
            rows += [f"{'':28}{line_told(line)}" for line in fault.lines]
    if len(told) > 8 and not full:
        rows.append(f"  ... {len(told) - 8} more stand in the page")
    return "\n".join(rows)


def line_told(line: Line) -> str:
    """A repaired line with its place."""
    where = f" ({line.where})" if line.where else ""
    return f"line {line.line}{where}: {line.new or '(leave this line out)'}"


# ---- the page ----------------------------------------------------------------------


def page(report: Report) -> str:
    """The whole page."""
    shown = report.sites[:MOST_SITES]
    scale = max([total(site) for site in shown] + [1e-9])
    parts = [
        f"<h1>{escape(report.headline())}</h1>",
        f'<p class="sub"><code>{escape(report.command)}</code> &middot; your code\'s '
        "lines only, ranked by avoidable seconds, then by seconds</p>",
    ]
    if report.error:
        parts.append(
            f'<p class="bad"><b>The script ended with an error:</b> '
            f"{escape(report.error)}</p>"
        )
    if report.before:
        gone = report.before.get("", 0.0)
        parts.append(
            f'<p class="sub">The page before this one told of {seconds(gone)} that '
            "could go; its bars are outlined.</p>"
        )
    parts += [CONTROLS, HEADS if shown else ""]
    drawn = [row(report, n, site, scale) for n, site in enumerate(shown)]
    faulty = [bool(report.faults.get((site.file, site.line))) for site in shown]
    opened = max([MOST_OPEN] + [n + 1 for n, bad in enumerate(faulty) if bad])
    parts.append('<div class="rows" role="list" aria-label="lines by cost">')
    parts.append(folded(drawn, opened, more_lines(shown[opened:], " without a fault")))
    parts.append("</div>")
    if rest := report.sites[MOST_SITES:]:
        parts.append(f'<p class="sub">... {more_lines(rest)}</p>')
    if shown:
        parts.append(timeline(report, shown))
    parts += [panels(facts) for facts in report.programs]
    parts.append(UNKNOWN)
    kept = {report.code(site): round(total(site), 4) for site in shown}
    kept[""] = round(report.lost, 4)
    data = json.dumps(kept).replace("<", "\\u003c")
    twin = escape(text(report, full=True))
    return PAGE % {
        "title": escape(report.title),
        "style": asset("record.css"),
        "body": "\n".join(parts),
        "twin": twin,
        "kept": data,
        "script": asset("record.js"),
    }


def folded(drawn: list[str], opened: int, summary: str) -> str:
    """The first ones, and the rest under a summary."""
    html = "".join(drawn[:opened])
    if rest := "".join(drawn[opened:]):
        html += f'<details class="rest"><summary>{summary}</summary>{rest}</details>'
    return html


def more_lines(sites: list[Site], kind: str = "") -> str:
    """How many lines are left, and their seconds."""
    spent = seconds(sum(total(site) for site in sites))
    return f"{count_in_words(len(sites), 'more line')}{kind}, {spent}"


def asset(name: str) -> str:
    """The page's style or script."""
    return (STATIC / name).read_text(encoding="utf-8")


CONTROLS = """<div class="bar" role="toolbar" aria-label="steps">
<button id="prev" aria-label="line before">&lsaquo;</button>
<button id="next" aria-label="next line">&rsaquo;</button>
<span id="at" aria-live="polite"></span> <button id="twin">text</button>
<button id="keys" aria-label="keys">?</button></div>
<p id="help" hidden>Up and Down: another line. Enter: its source. C: copy the repaired
lines. + and -, or the wheel with Ctrl, over the calls: zoom; drag: pan; 0:
all of it. T: this page as text. A tall mark made a program, a short one
found it. Red stands for avoidable time.</p>"""

# The names of the columns, with the bars' legend.
HEADS = """<div class="heads"><span>your line</span><span class="times">times</span>
<span class="legend"><b><i class="trace"></i>trace</b> <b><i class="lower"></i>lower</b>
<b><i class="compile"></i>compile</b> <b><i class="disk"></i>disk</b>
<b><i class="wait"></i>wait</b></span>
<span>why, and what to write</span></div>"""


def row(report: Report, number: int, site: Site, scale: float) -> str:
    """One line: the code, how often, a bar, why, and what to write."""
    faults = report.faults.get((site.file, site.line), [])
    whole = total(site)
    lost = min(report.lost_at(site), whole) if whole else report.lost_at(site)
    pieces = "".join(
        f'<i class="{name_of_class(stage)}" style="width:{share(spent, scale)}" '
        f'title="{STAGES[stage]}: {seconds(spent)}"></i>'
        for stage in STAGES
        if (spent := site.seconds.get(stage, 0.0)) > 0
    )
    before = report.before.get(report.code(site))
    outline = ""
    if before:
        wide = share(min(before, scale), scale)
        outline = f'<i class="before" style="width:{wide}"></i>'
    can = ""
    if lost >= 0.0005:
        can = (
            f'<span class="lost" style="width:{share(lost, scale)}"></span>'
            f"<small>{seconds(lost)} avoidable</small>"
        )
    elif unsure := sum(fault.at_most for fault in faults):
        # What the lines that this one calls have spent: their bars are at them.
        wide = share(min(unsure, scale), scale)
        can = (
            f'<span class="lost unsure" style="width:{wide}"></span>'
            f"<small>up to {seconds(unsure)} avoidable</small>"
        )
    told: list[Line] = []  # a line that two faults share is shown once
    why = "".join(reason(fault, told) for fault in faults)
    if not why:
        why = f'<div class="plain">{escape(needed(report, site))}</div>'
    many = count_of(site)
    state = " bad" if faults else ""
    return (
        f'<div class="row{state}" role="listitem" tabindex="0" data-n="{number}" '
        f'data-at="{escape(report.place(site.file, site.line))}">'
        f'<div class="code"><b>{escape(label(report, site))}</b>'
        f"<code>{escape(report.code(site))}</code>"
        f"<small>{escape(counts(site))}</small></div>"
        f'<div class="times">{many}</div>'
        f'<div class="cost"><div class="stack">{outline}{pieces}'
        f"<span>{seconds(whole) if whole else ''}</span></div>{can}</div>"
        f'<div class="why">{why}</div>{source_of(report, site, faults)}</div>'
    )


def label(report: Report, site: Site) -> str:
    """The number of a line, with its file where there are several."""
    return report.place(site.file, site.line).removeprefix("line ")


def count_of(site: Site) -> str:
    """How often: programs made, or waits."""
    made = max(site.counts.get("compile", 0), site.counts.get("lower", 0))
    made += site.counts.get("read from disk", 0)
    many = max(made, sum(site.waits.values()))
    return f"&times;&nbsp;{many:,}" if many else ""


def needed(report: Report, site: Site) -> str:
    """Of a line without a fault."""
    made = site.counts.get("compile", 0)
    for fault in report.told:
        if (site.file, site.line) in fault.ran:
            above = report.place(fault.file, fault.line)
            return f"ran outside of jit, called from {above}: mend it there"
    if made > 1:
        return f"{made:,} programs, each compiled once, as needed"
    if made:
        return "compiled once, as needed"
    return ""


def reason(fault: Fault, told: list[Line]) -> str:
    """Why, and the repaired lines that are not told yet."""
    lines = [line for line in fault.lines if line not in told]
    told += lines
    mends = "".join(
        f'<div class="mend"><b>{escape(mend_place(fault, line))}</b>'
        f"<code>{escape(line.new) or '(leave this line out)'}</code></div>"
        for line in lines
    )
    tell = costs(fault)
    tell = f" <small>{tell}</small>" if tell else ""
    copied = escape("\n".join(line.new for line in lines if line.new), quote=True)
    if copied:
        mends += f'<button class="copy" data-copy="{copied}">copy</button>'
    return (
        f'<div class="fault"><svg class="x" viewBox="0 0 10 10" aria-label="fault">'
        '<path d="M1 1L9 9M9 1L1 9"/></svg>'
        f"<span>{escape(fault.words)}{tell}</span>"
        f'<div class="write">{escape(fault.write)}</div>'
        f'<div class="mends">{mends}</div></div>'
    )


def mend_place(fault: Fault, line: Line) -> str:
    """Where a repaired line stands: its number, its file where it is another one."""
    file = "" if line.file == fault.file else f"{os.path.basename(line.file)}:"
    return f"{file}{line.line} {line.where}".strip()


def source_of(report: Report, site: Site, faults: list[Fault]) -> str:
    """The user's source around a line, old lines struck, new ones beside them."""
    source = report.sources[site.file]
    here = [mend for fault in faults for mend in fault.lines if mend.file == site.file]
    shown = {site.line} | {line.line for line in here}
    mended: dict[int, list[Line]] = {}
    for line in here:
        if line not in mended.setdefault(line.line, []):
            mended[line.line].append(line)
    near = {n for line in shown for n in range(line - 2, line + 3)}
    near = {n for n in near if 0 < n <= len(source.lines)}
    near |= {line for line in mended if line == len(source.lines) + 1}
    rows: list[str] = []
    last = 0
    for number in sorted(near):
        if last and number > last + 1:
            rows.append('<span class="gap">   ...</span>')
        last = number
        exists = number <= len(source.lines)
        indent = source.indent(number) if exists else ""
        lines = mended.get(number, [])
        for line in lines:
            if not line.old and line.new:
                where = indent
                if line.where == "after the loop":
                    # The indentation of the loop, not of what follows it.
                    where = loop_indent(source, site.line)
                rows.append(new_row(where + line.new))
        if not exists:
            continue
        struck = any(line.old for line in lines)
        mark = "x" if number == site.line and faults else " "
        look = "old" if struck else "here" if number == site.line else ""
        told = f"{mark}{number:4}  {source.lines[number - 1]}"
        rows.append(f'<span class="{look}">{escape(told)}</span>')
        rows += [new_row(indent + line.new) for line in lines if line.old and line.new]
    code = "".join(rows)  # each is a line of its own
    return (
        f'<details class="source"><summary>source</summary><pre>{code}</pre></details>'
    )


def new_row(code: str) -> str:
    """A line to write."""
    return f'<span class="new">{escape("+      " + code)}</span>'


def loop_indent(source: Source, line: int) -> str:
    """The indentation of the loop around a line."""
    statement = source.statement(line)
    loop = source.loop(statement) if statement is not None else None
    return source.indent(loop.lineno) if loop is not None else ""


def name_of_class(stage: str) -> str:
    return "disk" if stage == "read from disk" else stage


def share(value: float, scale: float) -> str:
    """A width: at most 70%, so that the number stands beside the bar."""
    return f"{max(0.15, 70 * value / scale):.2f}%"


# ---- calls over time ---------------------------------------------------------------


def timeline(report: Report, shown: list[Site]) -> str:
    """Every call over time: a lane for each line, one scale of time."""
    length = max(report.seconds, 1e-6)
    lanes = []
    for number, site in enumerate(shown):
        lanes.append(
            f'<div class="lane" data-n="{number}">'
            f"<b>{escape(label(report, site))}</b>{lane(report, site, length)}</div>"
        )
    step = 10 ** math.floor(math.log10(length / 4))
    marks = [f"{length * n / 5:.{0 if step >= 1 else 2}f} s" for n in range(6)]
    axis = "".join(f"<span>{mark}</span>" for mark in marks)
    return (
        '<section class="time"><h2>every call over time <small>tall: a program was '
        "made; short: it was found, or the device was waited for; + and - zoom, drag "
        f'pans, 0 shows all</small></h2><div id="lanes" tabindex="0" data-length='
        f'"{length:.6f}">{folded(lanes, MOST_OPEN, more_lines(shown[MOST_OPEN:]))}'
        f'<div class="axis">{axis}</div></div></section>'
    )


def lane(report: Report, site: Site, length: float) -> str:
    """One line's calls: what made a program, and what found it."""
    marks = []
    faults = report.faults.get((site.file, site.line), [])
    bad = any(fault.seconds for fault in faults)
    for miss in site.misses:
        start = (miss.begin - report.began) / length * 1000
        wide = max(0.6, sum(miss.seconds.values()) / length * 1000)
        look = "miss" if miss.cause not in ("first", "unknown") and bad else "made"
        why = miss.cause
        if miss.changes:
            kind, name, told = miss.changes[0]
            why = f"{name} {told}".strip()
        stages = ", ".join(f"{s} {seconds(t)}" for s, t in miss.seconds.items())
        tell = f"{miss.function}: {stages}; {why}"
        place = f'x="{start:.2f}" y="1" width="{wide:.2f}" height="14"'
        marks.append(
            f'<rect class="{look}" {place}><title>{escape(tell)}</title></rect>'
        )
    bins = sorted({int((t - report.began) / length * BINS) for t in site.times})
    path = "".join(f"M{(n + 0.5) * 1000 / BINS:.1f} 5v6" for n in bins)
    if path:
        marks.insert(0, f'<path class="hit" d="{path}"/>')
    return (
        '<svg viewBox="0 0 1000 16" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(marks)}</svg>"
    )


# ---- programs ----------------------------------------------------------------------


def panels(facts: ProgramFacts) -> str:
    """A compiled program: kernels by bytes, memory by owner, collectives."""
    most = max((k.read + k.written for k in facts.kernels), default=1) or 1
    rows = []
    for kernel in facts.kernels:
        size = kernel.read + kernel.written
        line = f"line {kernel.line}: " if kernel.line else ""
        times = f" &times;{kernel.times}" if kernel.times > 1 else ""
        bars = (
            f'<i class="read" style="width:{60 * kernel.read / most:.1f}%"></i>'
            f'<i class="written" style="width:{60 * kernel.written / most:.1f}%"></i>'
        )
        rows.append(
            f'<div class="k"><span title="{escape(kernel.name)}">'
            f"{escape(line + kernel.name)}{times}</span>"
            f"<div>{bars}<small>{bytes_told(size)}</small></div></div>"
        )
    largest = max((size for _, size in facts.memory), default=1) or 1
    owners = [
        f'<div class="k"><span>{escape(owner)}</span><div><i class="read" '
        f'style="width:{60 * size / largest:.1f}%"></i>'
        f"<small>{bytes_told(size)}</small></div></div>"
        for owner, size in facts.memory[:MOST_OWNERS]
    ]
    told = f"{facts.name}, line {facts.line}"
    exchanged = ""
    if facts.exchanges:
        items = "".join(
            f"<li>{escape(e.name)}, {bytes_told(e.bytes)}"
            + (f", line {e.line}" if e.line else "")
            + ("" if e.asked else ": <b>nobody wrote it</b>, the shardings made it")
            + "</li>"
            for e in facts.exchanges[:10]
        )
        exchanged = f"<h3>collectives</h3><ul>{items}</ul>"
    return (
        f'<section class="program"><div><h2>{escape(told)}: kernels by bytes '
        f"<small>{bytes_told(facts.bytes)} a call; filled read, open written</small>"
        f"</h2>{''.join(rows)}{exchanged}</div>"
        f"<div><h2>memory by owner <small>{bytes_told(facts.peak)}, as the compiler "
        f"allocates</small></h2>{''.join(owners)}</div></section>"
    )


MOST_OWNERS = 8

UNKNOWN = """<details class="unknown"><summary>What this page cannot know</summary>
<ul>
<li>JAX reports no hit: calls are counted of what your code jitted while
it was recorded. What was jitted before, or by a library as it was imported, has its
misses here and no count.</li>
<li>Seconds of compiling are of this machine at this load; the counts are exact.</li>
<li>The avoidable time at a wait is at most the host's work between two waits. On a CPU
that shares its cores with the computation it may be nothing.</li>
<li>An operation that is fused or not is XLA's choice, and a compiled program does not
say why: see.fusion(f, x) compiles it once more without fusion and compares.</li>
<li>Copies that the runtime makes below Python (a sharding that a program changes on
entry) show in the collectives and the memory of the program only.</li>
<li>np.asarray that a file imported by its own name before the recording, and reading an
array through the buffer protocol, are not seen.</li></ul></details>"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%(title)s</title><style>%(style)s</style></head>
<body><main>%(body)s</main>
<pre id="plain" hidden>%(twin)s</pre>
<script type="application/json" id="record">%(kept)s</script>
<script>%(script)s</script></body></html>
"""
