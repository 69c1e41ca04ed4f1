"""The recording behind `see.vmap` as plain data; `batching.py` makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from minijax_lab.explain.recording import Recording, Span, span_text


@dataclass
class Value:
    """An array of a program: its name, shape, and which of its axes are batch axes.

    `batch` is the axis of this vmap, None for a value that is the same for all
    examples. `inner` are axes of vmaps inside of the function. `followed` is False
    where an inserted equation mixed the batch axis with others.
    """

    name: str
    dtype: str
    shape: list[int]
    batch: int | None = None
    inner: list[int] = field(default_factory=list)
    kind: str = "value"  # "input", "constant", "literal"
    followed: bool = True

    @property
    def type(self) -> str:
        """The type, batch axes in braces: `f32[4,{16}]`."""
        sizes = [
            f"{{{size}}}"
            if axis == self.batch
            # The axis of a vmap inside of the function.
            else f"{{{size}}}'"
            if axis in self.inner
            else str(size)
            for axis, size in enumerate(self.shape)
        ]
        return f"{self.dtype}[{','.join(sizes)}]"


@dataclass
class BatchedEquation:
    """An equation of the batched program, and why it is there.

    `inserted` says that a rule wrote it beside the equation that does the work; `moves`
    that it moves the batch axis, from axis `before` to axis `after`.
    """

    id: int
    primitive: str
    operands: list[Value]
    results: list[Value]
    inserted: bool = False
    moves: bool = False
    before: int | None = None
    after: int | None = None
    why: str = ""

    @property
    def text(self) -> str:
        """The equation as `e:f32[{16},4] = transpose d`."""
        return equation_text(self.results, self.primitive, self.operands)


@dataclass
class Grid:
    """A `cond` that became a `select_n`: all branches run on all examples.

    `chosen` has the number of the branch that each example keeps, if values are known.
    """

    examples: int
    branches: list[str]
    chosen: list[int] | None = None


@dataclass
class Row:
    """An equation of one example, and the batched equations that it became.

    `kind` is "equation", or "results" for what brings a program's results to their
    axes. `parent` is the row whose program it belongs to, and `program` says which one:
    "each turn", "branch 0". `rule` is the name of the batching rule, with file and
    line.
    """

    id: int
    parent: int | None
    kind: str
    program: str
    primitive: str
    operands: list[Value]
    results: list[Value]
    batched: list[BatchedEquation]
    why: str
    rule: str = ""
    file: str = ""
    line: int = 0
    span: Span | None = None
    depth: int = 0
    grid: Grid | None = None
    note: str = ""

    @property
    def text(self) -> str:
        """The equation as `d:f32[4] = dot_general W x`."""
        if self.kind == "results":
            return "the results"
        return equation_text(self.results, self.primitive, self.operands)

    @property
    def moves(self) -> int:
        """How often the batch axis is moved for this row."""
        return sum(eqn.moves for eqn in self.batched)

    @property
    def inserted(self) -> list[BatchedEquation]:
        """The equations that were inserted."""
        return [eqn for eqn in self.batched if eqn.inserted]


@dataclass(kw_only=True)
class BatchRecording(Recording):
    """All that `see.vmap` draws. Its steps are the rows."""

    kind = "vmap"

    name: str
    size: int
    transformation: str  # "vmap(f, in_axes=(None, 0))"
    axis_name: str
    inputs: list[Value]
    batched_inputs: list[Value]
    results: list[Value]
    rows: list[Row]
    before: int  # equations of one example, with those of programs inside
    after: int  # equations of the batched program, likewise
    moves: int  # how often a rule moved the batch axis by a transpose
    inserted: int
    has_programs: bool
    # Facts that a jaxpr of JAX does not carry, a sentence each.
    lost: list[str] = field(default_factory=list)

    def source_text(self, row: Row) -> str:
        """The user's expression that an equation comes from."""
        return span_text(self.sources, row.span)


def equation_text(
    results: Sequence[Value], primitive: str, operands: Sequence[Value]
) -> str:
    """`d:f32[4] = dot_general W x`, long lists cut."""
    left = [value.name and f"{value.name}:{value.type}" for value in results]
    left = left if len(left) <= 3 else [*left[:2], "..."]
    right = [value.name for value in operands]
    right = right if len(right) <= 5 else [*right[:4], "..."]
    return f"{' '.join(left) or '_'} = {primitive} {' '.join(right)}".rstrip()
