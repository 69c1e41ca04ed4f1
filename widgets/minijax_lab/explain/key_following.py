"""Follows random keys through a program, for `see.keys`: round by round, row by row.

Each primitive that moves keys does the same to the numbers that stand for them
(`key_values.py`). Loops are gone through round by round, branches one beside the other.
Where a key depends on a number that only the run knows, it is noted why.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import minijax.random
from minijax.compile.titles import title_of
from minijax.core.language import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    jaxprs_in_params,
)
from minijax_lab.explain.calls import inputs_in_words
from minijax_lab.explain.key_values import (
    CALLED,
    CALLS,
    CHOOSES,
    DRAWS,
    FOLDLIKE,
    LOOPS,
    MAKES,
    MOST_KEYS,
    MOST_NUMBERS,
    MOST_ROUNDS,
    MOVES,
    NO_SAMPLERS,
    KeyNode,
    Keys,
    KeysRecording,
    Known,
    Shared,
    Symbol,
    Use,
    Value,
    aligned,
    children_of,
    cloned_draws,
    consuming,
    count_of,
    drawn_for_one,
    grown,
    in_order,
    is_key,
    is_long,
    is_program,
    is_small_integer,
    known_integers,
    may_be_raw,
    numbers_in,
    raw,
    row_of,
    said_of_splits,
    same_keys,
    stack,
    tally,
    text_of,
    use_in_words,
    used_in_words,
)
from minijax_lab.explain.recording import (
    Sources,
    Span,
    count_in_words,
    signature,
    span_text,
)
from minijax_lab.explain.statements import targets_of

SAMPLERS_STAND_IN = os.path.dirname(minijax.random.__file__)


class Follower:
    """Walks the equations, with what is known about each value."""

    def __init__(self, shared: Shared, outside: dict[int, str]) -> None:
        self.shared = shared
        self.outside = outside
        self.nodes: list[KeyNode] = []
        # A key's number, by what it was made of: the same split of the same key is the
        # same key.
        self.numbers: dict[Any, int] = {}
        # What a key may be, where only the run knows which.
        self.choices: dict[int, frozenset[int]] = {}
        self.folded: dict[int, list[int]] = {}  # by unknown numbers, by parent
        self.raw_roots: set[int] = set()
        self.unsure: list[str] = []
        self.making: dict[Jaxpr, bool] = {}
        self.sources = Sources()
        self.fresh = itertools.count()
        self.conds: dict[int, int] = {}
        self.factor = 1  # how many examples of a `vmap` share what is followed
        self.rounds = 0  # how many loops run around
        self.guessed = False  # uses in a loop of unknown length count for two rounds
        self.left = MOST_ROUNDS  # rounds that may still be followed
        self.branch: list[list[int]] = []

    # ---- keys ------------------------------------------------------------------------

    def node(
        self,
        made_of: Any,
        parent: int | None,
        name: str,
        how: str,
        span: Span | None,
        rank: int = 0,
    ) -> int:
        """The number of the key that was made so; a new one if there is none yet."""
        known = self.numbers.get(made_of)
        if known is None:
            known = self.numbers[made_of] = len(self.nodes)
            self.nodes.append(KeyNode(known, parent, name, how, 0, span, rank=rank))
            return known
        node = self.nodes[known]
        again = f"{name}, by {how}"
        if how.partition(" ")[0] != node.how.partition(" ")[0]:
            node.again += [again] if again not in node.again else []
        return known

    def incoming(
        self, var: Var, name: str, how: str, made_of: Any = None
    ) -> Value | None:
        """An input of the whole program, or a constant."""
        aval = var.aval
        if is_key(aval) or may_be_raw(aval):
            words = 0 if is_key(aval) else 2
            shape = aval.shape[:-1] if words else aval.shape
            keys = self.batch(made_of or ("input", var), None, name, how, None, shape)
            if words:
                self.raw_roots.update(keys.ravel().tolist())
            return raw(keys, words)
        return self.symbol(("input", str(var), next(self.fresh)))

    def batch(
        self,
        made_of: Any,
        parent: int | None,
        name: Any,
        how: str,
        span: Span | None,
        shape: tuple[int, ...],
    ) -> np.ndarray:
        """The numbers of keys that were made together; too many count as one."""
        size = int(np.prod(shape, dtype=np.int64))
        if size > MOST_KEYS:
            base = name if isinstance(name, str) else name(())
            label = f"{base}[...]"
            number = self.node(made_of, parent, label, f"{how}, {size:,} keys", span)
            self.nodes[number].unsure = f"{base} is {size:,} keys, too many to follow"
            return np.full(shape, number)
        numbers = np.empty(shape, np.int64)
        for rank, index in enumerate(np.ndindex(*shape)):
            if isinstance(name, str):
                label = name + (f"[{', '.join(map(str, index))}]" if index else "")
            else:
                label = name(index)
            made = (made_of, index)
            numbers[index] = self.node(made, parent, label, how, span, rank)
        return numbers

    def one_of(self, ids: Iterable[int], made_of: Any, name: str, span: Any) -> int:
        """A key that is one of several; which one, only the run knows."""
        choices = frozenset(
            one for number in ids for one in self.choices.get(number, {number})
        )
        if len(choices) == 1:
            return next(iter(choices))
        parents = {self.nodes[one].parent for one in choices}
        parent = next(iter(parents)) if len(parents) == 1 else min(choices)
        key = ("one of", choices, made_of)
        number = self.node(key, parent, name, f"one of {len(choices)} keys", span)
        self.choices[number] = choices
        return number

    def use(
        self, ids: Any, kind: str, what: str, span: Span | None, eqn: Any = None
    ) -> None:
        """Notes a use of each of these keys; `eqn` is the one that draws from them."""
        shape = None if eqn is None else drawn_for_one(eqn, ids)
        found, counts = np.unique(np.asarray(ids), return_counts=True)
        for number, count in zip(found.tolist(), counts.tolist()):
            times = count * self.factor
            if self.nodes[number].unsure:  # many keys that count as one
                times = self.factor
            why = "example" if times > 1 else ""
            branch = [list(part) for part in self.branch]
            for known in self.nodes[number].uses:
                same = (known.kind, known.what, known.span, known.branch)
                if self.rounds and same == (kind, what, span, branch):
                    known.times += times
                    known.each = "round"
                    break
            else:
                use = Use(kind, what, span, times, why, branch, shape)
                self.nodes[number].uses.append(use)

    # ---- programs --------------------------------------------------------------------

    def makes_keys(self, jaxpr: Jaxpr) -> bool:
        """Whether a program, or one inside of it, makes a key of what is none."""
        made = self.making.get(jaxpr)
        if made is None:
            made = self.making[jaxpr] = any(
                is_key(var.aval) for var in jaxpr.constvars
            ) or any(
                eqn.primitive.name in MAKES
                or any(is_key(var.aval) for var in eqn.outvars)
                or any(map(self.makes_keys, jaxprs_in_params(eqn.params)))
                for eqn in jaxpr.eqns
            )
        return made

    def concerns(self, programs: Sequence[Jaxpr], values: Sequence[Any]) -> bool:
        """Whether programs have to do with keys."""
        if any(isinstance(value, Keys) for value in values):
            return True
        return any(self.makes_keys(program) for program in programs)

    def run(
        self, jaxpr: Jaxpr, consts: Sequence[Any], values: Sequence[Any]
    ) -> list[Value | None]:
        """Goes through a program; returns what is known of its results."""
        known: dict[Var, Value | None] = {}
        known.update(zip(jaxpr.constvars, consts))
        known.update(zip(jaxpr.invars, values))

        def read(atom: Any) -> Value | None:
            if isinstance(atom, Literal):
                array = np.asarray(atom.val)
                return Known(array) if array.dtype.kind in "iub" else None
            return known.get(atom)

        for eqn in jaxpr.eqns:
            inputs = [read(atom) for atom in eqn.invars]
            factor = self.factor
            self.factor *= self.shared.sizes.get(id(eqn), 1)
            outputs = self.equation(eqn, inputs)
            self.factor = factor
            for number, var in enumerate(eqn.outvars):
                value = outputs[number] if number < len(outputs) else None
                if value is None and is_key(var.aval):
                    value = self.lost(eqn, var)
                if value is not None:
                    known[var] = value
        return [read(atom) for atom in jaxpr.outvars]

    def equation(self, eqn: JaxprEqn, inputs: list[Any]) -> list[Value | None]:
        name = eqn.primitive.name
        held = [value for value in inputs if isinstance(value, Keys)]
        if name in CALLS or name in LOOPS:
            programs = list(jaxprs_in_params(eqn.params))
            if not self.concerns(programs, inputs):
                return self.numbers_of(eqn, inputs, programs)
            if name in LOOPS:
                return getattr(self, name)(eqn, inputs)
            return self.call(eqn, inputs, programs)
        if name == "random_seed":
            return [self.seed(eqn, inputs[0])]
        if name == "random_wrap":
            return [self.wrapped(eqn, inputs[0])]
        if not held:
            return self.integers(eqn, inputs)
        if name == "random_unwrap":
            return [raw(held[0].ids, eqn.outvars[0].aval.shape[-1])]
        if name == "random_clone":
            return [self.cloned(eqn, held[0])]
        if name == "random_split":
            return [self.split(eqn, held[0])]
        if name == "random_fold_in":
            return [self.fold(eqn, held[0], inputs[1])]
        if name in DRAWS:
            self.use(held[0].ids, "draw", "bits", self.span_of(eqn), eqn)
            return []
        if name in MOVES:
            return self.moved(eqn, inputs)
        if name in CHOOSES:
            return self.chosen(eqn, inputs)
        # A program that this view does not go into, or arithmetic on a key's words.
        for value in held:
            self.use(value.ids, "read", name, self.span_of(eqn))
        return []

    def span_of(self, eqn: JaxprEqn) -> Span | None:
        return self.sources.of_operation(eqn.source_info)

    def constants(self, closed: ClosedJaxpr) -> list[Value | None]:
        """What is known of the constants of an inner program."""
        return [
            self.constant(var, const)
            for var, const in zip(closed.jaxpr.constvars, closed.consts)
        ]

    def constants_of(self, eqn: JaxprEqn) -> list[Value | None]:
        """What is known of the constants of the program that an equation calls."""
        for value in eqn.params.values():
            if isinstance(value, ClosedJaxpr):
                return self.constants(value)
        return []

    def constant(self, var: Var, const: Any) -> Value | None:
        """A constant: keys have the same numbers wherever they are closed over."""
        if is_key(var.aval) or may_be_raw(var.aval):
            name = self.outside.get(id(const), "closed over")
            return self.incoming(var, name, "closed over", ("constant", id(const)))
        return known_integers(const)

    # ---- numbers ---------------------------------------------------------------------

    def integers(self, eqn: JaxprEqn, inputs: list[Any]) -> list[Value | None]:
        """Integers that are known give integers that are known."""
        for var in eqn.outvars:
            dtype = getattr(var.aval, "dtype", None)
            if getattr(dtype, "kind", "") not in "iub" or not dtype:
                return []
            if np.prod(var.aval.shape) > MOST_NUMBERS:
                return []
        if any(value is None for value in inputs) or not eqn.outvars:
            return []
        if all(isinstance(value, Known) for value in inputs):
            meaning = eqn.primitive.meaning
            if meaning is not None and not list(jaxprs_in_params(eqn.params)):
                try:
                    found = meaning(*(value.array for value in inputs), **eqn.params)
                except Exception:  # this meaning cannot do it; the run will
                    return []
                many = eqn.primitive.multiple_results
                parts = found if many else [found]
                return [Known(np.asarray(part)) for part in parts]
        if any(map(is_long, inputs)):
            return []
        texts = tuple(map(text_of, inputs))
        name = eqn.primitive.name
        if name in ("convert_element_type", "copy"):
            return [self.symbol(texts[0])]
        said = (name, str(sorted(eqn.params.items(), key=lambda item: item[0])), texts)
        return [self.symbol((said, number)) for number in range(len(eqn.outvars))]

    def symbol(self, text: Any) -> Symbol:
        return Symbol(text)

    def numbers_of(
        self, eqn: JaxprEqn, inputs: list[Any], programs: list[Jaxpr]
    ) -> list[Value | None]:
        """What is known of the results of a call that has nothing to do with keys."""
        short = eqn.primitive.name in CALLS and len(programs) == 1
        if not short or len(programs[0].invars) != len(inputs):
            return []
        if not any(is_small_integer(var.aval) for var in eqn.outvars):
            return []
        return self.run(programs[0], self.constants_of(eqn), inputs)

    # ---- where keys come from --------------------------------------------------------

    def seed(self, eqn: JaxprEqn, value: Any) -> Value:
        span = self.span_of(eqn)
        shape = eqn.outvars[0].aval.shape
        made: Any = ("seed", next(self.fresh))
        how = "seed"
        if isinstance(value, Known):
            made = ("seed", value.array.tobytes(), value.array.shape)
            how = f"seed {value.array}" if not shape else "seed"
        elif isinstance(value, Symbol):
            made = ("seed", value)
        return Keys(self.batch(made, None, self.naming(span), how, span, shape))

    def wrapped(self, eqn: JaxprEqn, value: Any) -> Value:
        if isinstance(value, Keys):
            return Keys(value.ids)
        span = self.span_of(eqn)
        shape = eqn.outvars[0].aval.shape
        made: Any = ("raw key", next(self.fresh))
        if isinstance(value, (Known, Symbol)):
            made = ("raw key", text_of(value))
        return Keys(self.batch(made, None, self.naming(span), "raw key", span, shape))

    def cloned(self, eqn: JaxprEqn, keys: Keys) -> Value:
        """`random.clone`: the same numbers once more, and so asked for."""
        span = self.span_of(eqn)
        ids = np.empty(keys.ids.shape, np.int64)
        for index in np.ndindex(*ids.shape):
            parent = int(keys.ids[index])
            made = ("clone", parent, next(self.fresh))
            ids[index] = self.node(made, parent, self.naming(span)(()), "clone", span)
        return Keys(ids)

    def lost(self, eqn: JaxprEqn, var: Var) -> Value:
        """A key of which is only known that it is one."""
        name = eqn.primitive.name
        span = self.span_of(eqn)
        made = ("lost", next(self.fresh))
        ids = self.batch(made, None, self.naming(span), f"from {name}", span, ())
        self.nodes[
            int(ids)
        ].unsure = f"which key comes out of {name} is not known before the run"
        return Keys(np.full(var.aval.shape, ids))

    def split(self, eqn: JaxprEqn, keys: Keys) -> Value:
        span = self.span_of(eqn)
        shape = tuple(eqn.params["shape"])
        self.use(keys.ids, "split", "split", span)
        naming = self.naming(span)
        many = keys.ids.size * int(np.prod(shape)) > MOST_KEYS
        out = np.empty((*keys.ids.shape, *shape), np.int64)
        kind = children_of(eqn)
        for index in np.ndindex(*keys.ids.shape):
            parent = int(keys.ids[index])
            if many:
                made: Any = ("split", parent, shape)
                part = (MOST_KEYS + 1,)
                ids = self.batch(made, parent, naming, "split", span, part)
                out[index] = ids.flat[0]
                continue
            for rank, place in enumerate(np.ndindex(*shape)):
                made = (kind or ("split", shape), parent, rank)
                name = naming(place)
                out[(*index, *place)] = self.node(
                    made, parent, name, "split", span, rank
                )
        return Keys(out)

    def fold(self, eqn: JaxprEqn, keys: Keys, number: Any) -> Value:
        span = self.span_of(eqn)
        self.use(keys.ids, "fold", "fold_in", span)
        naming = self.naming(span)
        # Either may have the axes of a `vmap` that the other lacks.
        shape = eqn.outvars[0].aval.shape
        parents = aligned(keys.ids, shape)
        ids = np.empty(shape, np.int64)
        known = isinstance(number, Known)
        kind = FOLDLIKE if children_of(eqn) == FOLDLIKE else "fold"
        for index in np.ndindex(*shape):
            parent = int(parents[index])
            made: Any = ("fold", parent, text_of(number), index)
            told = "fold_in"
            if isinstance(number, Known):
                here = int(aligned(number.array, shape)[index])
                made, told = (kind, parent, here % 2**32), f"fold_in {here}"
            elif number is None:
                made = ("fold", parent, next(self.fresh), index)
            ids[index] = self.node(made, parent, naming(()), told, span)
            if not known:
                self.folded.setdefault(parent, []).append(int(ids[index]))
        return Keys(ids)

    def naming(self, span: Span | None) -> Callable[[tuple[int, ...]], str]:
        """The name that the source gives to each of the keys made at a place."""
        text = span_text(self.sources.found, span)
        names = targets_of(self.sources.found, span)

        def name(index: tuple[int, ...]) -> str:
            place = f"[{', '.join(map(str, index))}]" if index else ""
            if names and isinstance(names, str):
                return names + place
            if names and len(index) == 1:
                star = next((i for i, n in enumerate(names) if n[:1] == "*"), None)
                if star is not None and index[0] >= star:
                    return f"{names[star][1:]}[{index[0] - star}]"
                if index[0] < len(names):
                    return names[index[0]]
            if place:
                return place
            return text if 0 < len(text) <= 24 else "key"

        return name

    # ---- keys on their way -----------------------------------------------------------

    def moved(self, eqn: JaxprEqn, inputs: list[Any]) -> list[Value | None]:
        """What an array operation does to keys, done to their numbers."""
        words = max(value.words for value in inputs if isinstance(value, Keys))
        arrays = [numbers_in(value) for value in inputs]
        meaning = eqn.primitive.meaning
        if meaning is None or any(array is None for array in arrays):
            found: Any = arrays if eqn.primitive.name in ("copy_p", "name") else None
        else:
            found = meaning(*arrays, **eqn.params)
            found = found if eqn.primitive.multiple_results else [found]
        if found is None:
            for value in inputs:
                if isinstance(value, Keys):
                    name = eqn.primitive.name
                    self.use(value.ids, "read", name, self.span_of(eqn))
            return []
        return [self.whole(np.asarray(array), words, eqn) for array in found]

    def whole(self, numbers: np.ndarray, words: int, eqn: JaxprEqn) -> Value | None:
        """Keys of these numbers; none where the words of raw keys were torn apart."""
        if not words:
            return Keys(numbers)
        if numbers.shape[-1:] == (words,):
            ids = numbers[..., :1] // words
            if np.array_equal(numbers, ids * words + np.arange(words)):
                return Keys(numbers, words)
        ids = np.unique(numbers // words)
        self.use(ids, "read", eqn.primitive.name, self.span_of(eqn))
        return None

    def chosen(self, eqn: JaxprEqn, inputs: list[Any]) -> list[Value | None]:
        """Keys chosen by an index or a condition, which the run alone may know."""
        known = [value for value in inputs if value is not None]
        if len(known) == len(inputs) and not any(
            isinstance(value, Symbol) for value in inputs
        ):
            return self.moved(eqn, inputs)
        held = [value for value in inputs if isinstance(value, Keys)]
        words = held[0].words
        shape = eqn.outvars[0].aval.shape
        shape = shape[:-1] if words else shape
        span = self.span_of(eqn)
        texts = tuple(
            text_of(v) if v is not None else ("?", next(self.fresh)) for v in inputs
        )
        name = span_text(self.sources.found, span)
        name = name if 0 < len(name) <= 24 else "[...]"
        ids = np.empty(shape, np.int64)
        choose = eqn.primitive.name == "select_n"
        for index in np.ndindex(*shape):
            options = [v.ids[index] for v in held] if choose else None
            if options is None:
                options = [one for value in held for one in value.ids.flat]
            # Different for different indices; the same index twice is the same key.
            ids[index] = self.one_of(map(int, options), (texts, index), name, span)
        return [raw(ids, words)]

    # ---- programs inside of programs -------------------------------------------------

    def call(
        self, eqn: JaxprEqn, inputs: list[Any], programs: list[Jaxpr]
    ) -> list[Value | None]:
        """Goes into a called program with what it is given."""
        sampler = self.sampler(eqn, programs)
        held = [value for value in inputs if isinstance(value, Keys)]
        if sampler and held:
            span = self.span_of(eqn)
            for value in held:
                self.use(value.ids, "draw", sampler, span, eqn)
            return []
        for program in programs:
            if len(program.invars) == len(inputs):
                return self.run(program, self.constants_of(eqn), inputs)
        for value in held:
            self.use(value.ids, "read", eqn.primitive.name, self.span_of(eqn))
        return []

    def sampler(self, eqn: JaxprEqn, programs: list[Jaxpr]) -> str:
        """The sampler of `random` that an equation calls, "" if it calls none."""
        name = str(eqn.params.get("name", "")).lstrip("_").removesuffix("_real")
        if eqn.primitive.name not in ("jit", "pjit") or name in NO_SAMPLERS:
            return ""
        place = programs[0].debug_info.place if programs[0].debug_info else ""
        if not place.startswith(SAMPLERS_STAND_IN):
            return ""
        # `random.permutation` calls `_shuffle`: what the user wrote tells more.
        written = CALLED.match(span_text(self.sources.found, self.span_of(eqn)))
        public = written.group(1) if written else ""
        return public if hasattr(minijax.random, public) else name

    def scan(self, eqn: JaxprEqn, inputs: list[Any]) -> list[Value | None]:
        params = eqn.params
        body, length = params["jaxpr"], params["length"]
        consts = inputs[: params["num_consts"]]
        start = params["num_consts"] + params["num_carry"]
        carry, rows = inputs[params["num_consts"] : start], inputs[start:]
        order = range(length - 1, -1, -1) if params["reverse"] else range(length)
        stacked: list[list[Any]] = []
        self.rounds += 1
        followed = 0
        before = tally(self.nodes)
        for number in itertools.islice(order, self.left):
            now = [row_of(value, number, length) for value in rows]
            results = self.run(
                body.jaxpr, self.constants(body), [*consts, *carry, *now]
            )
            carry, outputs = results[: len(carry)], results[len(carry) :]
            stacked.append(outputs)
            followed += 1
            self.left = max(self.left - 1, 1)  # one round is always followed
        self.rounds -= 1
        if followed < length:
            self.cut_short(eqn, followed, length, before)
            carry = [self.later(eqn, value, length) for value in carry]
            return [*carry, *([None] * (len(eqn.outvars) - len(carry)))]
        if params["reverse"]:
            stacked.reverse()
        return [*carry, *map(stack, zip(*stacked))]

    def cut_short(
        self, eqn: JaxprEqn, followed: int, length: int, before: dict
    ) -> None:
        """Counts the rounds that were not followed, and says that they were not."""
        for use, more in grown(self.nodes, before):
            if more % followed == 0:
                use.times += more // followed * (length - followed)
        span = self.span_of(eqn)
        line = f" at line {span.line}" if span else ""
        self.cannot_tell(
            f"{followed} of the {length:,} rounds of the loop{line} were followed"
        )

    def cannot_tell(self, why: str) -> None:
        if why not in self.unsure:
            self.unsure.append(why)

    def later(self, eqn: JaxprEqn, value: Any, rounds: int | None) -> Any:
        """What a loop carries when it ends, if not all its rounds were followed."""
        if not isinstance(value, Keys):
            return None
        span = self.span_of(eqn)
        when = f"after {rounds:,} rounds" if rounds else "after the loop"
        ids = np.empty(value.ids.shape, np.int64)
        for index in np.ndindex(*ids.shape):
            made = ("later", next(self.fresh))
            parent = int(value.ids[index])
            name = self.nodes[parent].name
            ids[index] = self.node(made, parent, name, when, span)
        return raw(ids, value.words)

    def while_(self, eqn: JaxprEqn, inputs: list[Any]) -> list[Value | None]:
        params = eqn.params
        test, body = params["cond_jaxpr"], params["body_jaxpr"]
        first = params["cond_nconsts"]
        second = first + params["body_nconsts"]
        tested, consts, carry = inputs[:first], inputs[first:second], inputs[second:]
        start = list(carry)
        self.rounds += 1
        followed = 0
        before = tally(self.nodes)
        while True:
            goes_on = self.run(test.jaxpr, self.constants(test), [*tested, *carry])[0]
            known = isinstance(goes_on, Known)
            ended = isinstance(goes_on, Known) and not goes_on.array
            if ended:
                break
            if followed >= (self.left if known else 2):
                break
            carry = self.run(body.jaxpr, self.constants(body), [*consts, *carry])
            followed += 1
            self.left = max(self.left - 1, 2)
        self.rounds -= 1
        if ended:
            return list(carry)
        self.guessed |= not known
        for use, _ in grown(self.nodes, before):
            use.each = "turn" if use.each == "round" else use.each
        span = self.span_of(eqn)
        line = f" at line {span.line}" if span else ""
        self.cannot_tell(f"how often the while loop{line} goes round is not known")
        return [
            now if same_keys(old, now) else self.later(eqn, now, None)
            for old, now in zip(start, carry)
        ]

    def cond(self, eqn: JaxprEqn, inputs: list[Any]) -> list[Value | None]:
        which, values = inputs[0], inputs[1:]
        branches = eqn.params["branches"]
        if isinstance(which, Known):
            number = int(np.clip(which.array, 0, len(branches) - 1))
            chosen = branches[number]
            return self.run(chosen.jaxpr, self.constants(chosen), values)
        results = []
        # The same in each round of a loop around.
        around = self.conds.setdefault(id(eqn), len(self.conds))
        for number, branch in enumerate(branches):
            self.branch.append([around, number])
            results.append(self.run(branch.jaxpr, self.constants(branch), values))
            self.branch.pop()
        merged: list[Value | None] = []
        for options in zip(*results):
            held = [value for value in options if isinstance(value, Keys)]
            if len(held) < len(options):
                same = all(option == options[0] for option in options if not held)
                plain = not held and not any(isinstance(o, Known) for o in options)
                merged.append(options[0] if plain and same else None)
                continue
            span = self.span_of(eqn)
            ids = np.empty(held[0].ids.shape, np.int64)
            for index in np.ndindex(*ids.shape):
                ones = [int(value.ids[index]) for value in held]
                ids[index] = self.one_of(ones, (around, index), "key", span)
            merged.append(raw(ids, held[0].words))
        return merged

    # ---- the result ------------------------------------------------------------------

    def recording(
        self, function: Callable[..., Any], jaxpr: Jaxpr, statics: list[str]
    ) -> KeysRecording:
        """The tree in its order, and the sentence about it."""
        # Two words that nothing used as a key were none.
        plain = {
            number
            for number in self.raw_roots
            if all(use.kind == "read" for use in self.nodes[number].uses)
        }
        self.judge()
        real = [n for n in self.nodes if n.id not in plain]
        made = [n for n in real if n.id not in self.choices]
        keys = in_order(real)
        reused = [i for i, node in enumerate(keys) if node.reused]
        unsure = [i for i, node in enumerate(keys) if node.unsure and node.uses]
        types = [v.aval.str_short(short_dtypes=True) for v in jaxpr.invars]
        inputs = inputs_in_words(jaxpr.debug_info.arg_names, types)
        call = f"{title_of(function)}({signature([*inputs, *statics])})"
        drawn = sum(
            count_of([use for use in node.uses if use.kind == "draw"]) for node in keys
        )
        finding = f"{count_in_words(len(made), 'key')}, {count_in_words(drawn, 'draw')}"
        for number in unsure:
            self.cannot_tell(keys[number].unsure)
        if not keys:
            finding = "no random keys"
        elif reused:
            first = keys[reused[0]]
            finding += f"; {first.name} is used {used_in_words(first.uses)}: "
            finding += ", ".join(map(use_in_words, consuming(first)))
            if self.guessed:
                finding += "; of a loop of unknown length two rounds are counted"
        elif self.unsure:
            finding += f"; cannot tell: {self.unsure[0]}"
        else:
            finding += "; each key is used once"
        finding += cloned_draws(keys)
        used = [i for i, node in enumerate(keys) if node.uses]
        return KeysRecording(
            call=call,
            headline=f"keys of {call}: {finding}",
            telling=(reused or unsure or used[-1:] or [0])[0],
            sources=self.sources.found,
            keys=keys,
            unsure=self.unsure,
        )

    def judge(self) -> None:
        """Decides of each key whether it is used more than once."""
        perhaps: dict[int, list[int]] = {}
        for number, choices in self.choices.items():
            if consuming(self.nodes[number]):
                for choice in choices:
                    perhaps.setdefault(choice, []).append(number)
        for node in self.nodes:
            uses = consuming(node)
            count = count_of(uses)
            folds = any(use.kind == "fold" for use in node.uses)
            draws = any(use.kind == "draw" for use in node.uses)
            if node.unsure:
                continue  # it stands for many
            node.reused = count > 1 or (draws and folds)
            reads = [use.what for use in node.uses if use.kind == "read"]
            others = perhaps.get(node.id, [])
            if count + len(others) > 1 and others and not node.reused:
                for other in others:
                    what = f"perhaps {self.nodes[other].name}"
                    node.uses.append(Use("perhaps", what, self.nodes[other].span))
                names = list(dict.fromkeys(self.nodes[o].name for o in others))
                which = " and ".join([node.name] if count else [])
                said = " and ".join([which, *names] if which else names)
                if len(names) == 1 and not count:
                    said = f"{names[0]} here and there"
                self.nodes[others[0]].unsure = f"{said} may be one key"
            elif reads and node.id not in self.raw_roots and count:
                node.unsure = f"{reads[0]} reads {node.name}, and is not followed"
            elif reads and node.id not in self.raw_roots and is_program(reads):
                node.unsure = f"{node.name} goes into {reads[0]}, which is not followed"
        for numbers in self.folded.values():
            used = [n for n in dict.fromkeys(numbers) if consuming(self.nodes[n])]
            parent = self.nodes[numbers[0]].parent
            others = [
                node.id
                for node in self.nodes
                if node.parent == parent
                and node.how.startswith(("fold_in", "split"))
                and consuming(node)
            ]
            if used and len(others) > 1:
                self.nodes[used[0]].unsure = (
                    f"the numbers folded into {self.nodes[parent or 0].name} are known "
                    "only when it runs, and may be equal"
                    + said_of_splits(self.nodes[n].how for n in others)
                )


# The method for `while` cannot have its name.
setattr(Follower, "while", Follower.while_)
