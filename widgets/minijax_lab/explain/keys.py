"""The recording behind `see.keys`: which random key came from which, and what used it.

The function is traced, and the equations on keys are followed: seeds, splits, folds,
indexing, and what consumes a key (bits, and the samplers that draw them). A key that is
consumed twice, or split and consumed, is a reuse: its numbers are not independent.
Both kinds of keys are followed, typed ones and raw pairs of 32-bit words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from minijax.compile.jit_api import make_jaxpr
from minijax.language.core import Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from minijax_lab.explain.recording import (
    Recording,
    Sources,
    Span,
    count_in_words,
    signature,
    span_text,
)
from minijax_lab.explain.trace import name_of

# Primitives that hand a key on without using it up.
MOVES = {
    "slice",
    "squeeze",
    "reshape",
    "broadcast_in_dim",
    "dynamic_slice",
    "gather",
    "transpose",
    "rev",
    "concatenate",
    "select_n",
    "copy",
    "copy_p",
    "convert_element_type",
    "device_put",
    "random_wrap",
    "random_unwrap",
    "unstack",
}
# Primitives that make a key of what is none.
MAKES = {"random_seed": "seed", "random_wrap": "raw key"}
SPLITS = {"random_split", "random_fold_in"}
USES = {"random_bits", "threefry2x32", "random_gamma"}
# Samplers by the name of the jitted function that a jaxpr shows.
SAMPLERS = (
    "uniform normal normal_real truncated_normal bernoulli randint gumbel exponential "
    "shuffle choice categorical laplace logistic cauchy permutation gamma beta poisson "
    "dirichlet rademacher maxwell ball orthogonal pareto t weibull_min triangular bits"
).split()


@dataclass
class Use:
    """Something that happened to a key."""

    kind: str  # "split", "fold", "draw"
    what: str  # "split", "fold_in", "normal"
    span: Span | None


@dataclass
class KeyNode:
    """A key: where it came from, and what was done with it."""

    id: int
    parent: int | None
    how: str  # "argument key", "seed", "split [0]", "fold_in 3"
    depth: int
    span: Span | None
    uses: list[Use] = field(default_factory=list)
    reused: bool = False


@dataclass(kw_only=True)
class KeysRecording(Recording):
    """The keys of a function in the order of the tree."""

    kind = "keys"

    keys: list[KeyNode]


def record_keys(
    function: Callable[..., Any], *args: Any, **kwargs: Any
) -> KeysRecording:
    """Records what becomes of the random keys in `function`.

    Raises TypeError if `function` cannot be called, and what tracing raises.
    """
    if not callable(function):
        raise TypeError(
            "see.keys takes a function and its arguments, such as "
            f"see.keys(f, random.key(0)), and got {type(function).__name__} first."
        )
    closed = make_jaxpr(function)(*args, **kwargs)
    follower = _Follower()
    names = closed.jaxpr.debug_info.arg_names
    for position, var in enumerate(closed.jaxpr.invars):
        if is_key(var) or may_be_raw(var):
            name = names[position] if position < len(names) else f"argument {position}"
            number = follower.new(None, f"argument {name}", None)
            follower.handles[var] = [Handle(number)]
    for var in closed.jaxpr.constvars:
        if is_key(var) or may_be_raw(var):
            number = follower.new(None, "closed over", None)
            follower.handles[var] = [Handle(number)]
    follower.follow(closed.jaxpr, "")
    return follower.recording(function, closed.jaxpr)


def is_key(var: Any) -> bool:
    """Whether a variable is surely a typed key."""
    return str(getattr(var.aval, "dtype", "")).startswith("key<")


def may_be_raw(var: Any) -> bool:
    """Whether a variable may be a key of the old kind: two 32-bit words."""
    shape = getattr(var.aval, "shape", ())
    return str(getattr(var.aval, "dtype", "")) == "uint32" and shape[-1:] == (2,)


@dataclass(frozen=True)
class Handle:
    """A value that is a key, or a batch of the keys that one split made."""

    node: int
    batch: bool = False  # many keys at once; indexing takes one of them out
    path: str = ""


class _Follower:
    """Walks the equations, with the keys that each variable may hold."""

    def __init__(self) -> None:
        self.nodes: list[KeyNode] = []
        self.handles: dict[Var, list[Handle]] = {}
        self.taken: dict[tuple[int, str], int] = {}
        self.making: dict[Jaxpr, bool] = {}
        self.sources = Sources()
        # Where the user called a sampler: its own program may be an older trace.
        self.site: Span | None = None

    def new(self, parent: int | None, how: str, span: Span | None) -> int:
        depth = 0 if parent is None else self.nodes[parent].depth + 1
        self.nodes.append(KeyNode(len(self.nodes), parent, how, depth, span))
        return len(self.nodes) - 1

    def use(self, node: int, kind: str, what: str, span: Span | None) -> None:
        self.nodes[node].uses.append(Use(kind, what, span))

    def follow(self, jaxpr: Jaxpr, sampler: str) -> None:
        """Goes through a program; `sampler` is the function that draws, if one does."""
        for eqn in jaxpr.eqns:
            self.equation(eqn, sampler)

    def makes_keys(self, jaxpr: Jaxpr) -> bool:
        """Whether a program, or one inside of it, makes a key of what is none."""
        made = self.making.get(jaxpr)
        if made is None:
            made = self.making[jaxpr] = any(
                eqn.primitive.name in MAKES
                or any(map(self.makes_keys, jaxprs_in_params(eqn.params)))
                for eqn in jaxpr.eqns
            )
        return made

    def held(self, atom: Any) -> list[Handle]:
        return [] if isinstance(atom, Literal) else self.handles.get(atom, [])

    def equation(self, eqn: JaxprEqn, sampler: str) -> None:
        name = eqn.primitive.name
        handles = self.handles
        # Most equations have nothing to do with keys, and must cost next to nothing.
        for atom in eqn.invars:
            if type(atom) is not Literal and atom in handles:
                break
        else:
            if name in MAKES:
                self.make(eqn, MAKES[name])
            elif eqn.params:
                inner = [p for p in jaxprs_in_params(eqn.params) if self.makes_keys(p)]
                if inner:
                    held = [self.held(atom) for atom in eqn.invars]
                    self.call(eqn, inner, held, sampler, self.span_of(eqn))
            return
        if name == "random_seed":
            self.make(eqn, MAKES[name])
            return
        span = self.span_of(eqn)
        held = [self.held(atom) for atom in eqn.invars]
        inner = list(jaxprs_in_params(eqn.params))
        if inner:
            self.call(eqn, inner, held, sampler, span)
        elif name in SPLITS:
            self.split(eqn, held[0], span)
        elif name in USES:
            for handle in {h for one in held for h in one}:
                self.use(self.node_of(handle), "draw", sampler or "bits", span)
        elif name in MOVES:
            self.move(eqn, [h for one in held for h in one], span)

    def make(self, eqn: JaxprEqn, how: str) -> None:
        """A key that came from no other key."""
        number = self.new(None, how, self.span_of(eqn))
        self.handles[eqn.outvars[0]] = [Handle(number)]

    def span_of(self, eqn: JaxprEqn) -> Span | None:
        if self.site is not None:
            return self.site
        return self.sources.of_operation(eqn.source_info)

    def call(
        self,
        eqn: JaxprEqn,
        inner: list[Jaxpr],
        held: list[list[Handle]],
        sampler: str,
        span: Span | None,
    ) -> None:
        """Goes into a called program with the keys that it is given."""
        name = str(eqn.params.get("name", "")).lstrip("_")
        before = self.site
        if not sampler and name in SAMPLERS:
            sampler = name.removesuffix("_real")
            self.site = span
        for program in inner:
            # A loop's or a branch's operands come last: match from the end.
            count = min(len(program.invars), len(eqn.invars))
            if count:
                for var, handles in zip(program.invars[-count:], held[-count:]):
                    if handles:
                        self.handles[var] = handles
            self.follow(program, sampler)
            for outvar, result in zip(eqn.outvars, program.outvars):
                handles = self.held(result)
                if handles:
                    self.handles[outvar] = handles
        self.site = before

    def split(self, eqn: JaxprEqn, held: list[Handle], span: Span | None) -> None:
        for handle in held[:1]:
            node = self.node_of(handle)
            if eqn.primitive.name == "random_fold_in":
                number = eqn.invars[1]
                told = f" {number.val}" if isinstance(number, Literal) else ""
                self.use(node, "fold", "fold_in", span)
                child = self.new(node, f"fold_in{told}", span)
                self.handles[eqn.outvars[0]] = [Handle(child)]
                continue
            self.use(node, "split", "split", span)
            batch = self.new(node, f"split {eqn.params['shape']}", span)
            self.handles[eqn.outvars[0]] = [Handle(batch, batch=True)]

    def move(self, eqn: JaxprEqn, held: list[Handle], span: Span | None) -> None:
        """A key goes on; indexing takes one key out of a batch."""
        out: list[Handle] = []
        for handle in held:
            path = handle.path
            if handle.batch and eqn.primitive.name == "slice":
                path = f"[{eqn.params['start_indices'][0]}]"
                handle = Handle(handle.node, True, path)
            elif handle.batch and eqn.primitive.name in ("dynamic_slice", "gather"):
                # Which key it is stands in a traced number. Two such keys are kept
                # apart: that they are the same would be a guess.
                handle = Handle(self.new(handle.node, "[...]", span))
            elif handle.batch and handle.path and eqn.primitive.name == "squeeze":
                handle = Handle(self.one_of(handle.node, handle.path, span))
            out.append(handle)
        for var in eqn.outvars:
            self.handles[var] = out

    def one_of(self, batch: int, path: str, span: Span | None) -> int:
        """The node of one key of a split: the same for the same index."""
        known = self.taken.get((batch, path))
        if known is None:
            known = self.taken[batch, path] = self.new(batch, path, span)
        return known

    def node_of(self, handle: Handle) -> int:
        """The node that a handle stands for; a slice of a batch is a key of its own."""
        if handle.batch and handle.path:
            return self.one_of(handle.node, handle.path, None)
        return handle.node

    # ---- the result ----------------------------------------------------------------

    def recording(self, function: Callable[..., Any], jaxpr: Jaxpr) -> KeysRecording:
        """The tree in its order, and the sentence about it."""
        raw = {h.node for v in jaxpr.invars if may_be_raw(v) for h in self.held(v)}
        # Two words that nothing used as a key were none.
        self.nodes = [n for n in self.nodes if n.uses or n.id not in raw]
        for node in self.nodes:
            draws = [use for use in node.uses if use.kind == "draw"]
            splits = [use for use in node.uses if use.kind == "split"]
            folds = [use for use in node.uses if use.kind == "fold"]
            node.reused = len(draws) + len(splits) > 1 or bool(draws and folds)
        keys = self.in_order()
        reused = [i for i, node in enumerate(keys) if node.reused]
        types = [v.aval.str_short(short_dtypes=True) for v in jaxpr.invars]
        call = f"{name_of(function)}({signature(types)})"
        drawn = sum(use.kind == "draw" for node in keys for use in node.uses)
        finding = f"{count_in_words(len(keys), 'key')}, {count_in_words(drawn, 'draw')}"
        if not keys:
            finding = "no random keys"
        elif not reused:
            finding += "; each key is used once"
        else:
            first = keys[reused[0]]
            uses = ", ".join(use.what for use in first.uses)
            finding += f"; {first.how} is used {times(len(first.uses))}: {uses}"
        used = [i for i, node in enumerate(keys) if node.uses]
        return KeysRecording(
            call=call,
            headline=f"keys of {call}: {finding}",
            telling=reused[0] if reused else (used[-1] if used else 0),
            sources=self.sources.found,
            keys=keys,
        )

    def in_order(self) -> list[KeyNode]:
        """Each key behind the one it came from, numbered anew."""
        below: dict[int | None, list[KeyNode]] = {}
        for node in self.nodes:
            below.setdefault(node.parent, []).append(node)
        ordered: list[KeyNode] = []

        def visit(node: KeyNode) -> None:
            ordered.append(node)
            for child in below.get(node.id, []):
                visit(child)

        for root in below.get(None, []):
            visit(root)
        numbers = {node.id: position for position, node in enumerate(ordered)}
        for node in ordered:
            node.parent = None if node.parent is None else numbers[node.parent]
        for node in ordered:
            node.id = numbers[node.id]
        return ordered


def times(number: int) -> str:
    """Returns for example "twice" or "3 times"."""
    return "twice" if number == 2 else f"{number} times"


def use_text(record: KeysRecording, use: Use) -> str:
    """Where a key was used, as the user wrote it."""
    return span_text(record.sources, use.span)
