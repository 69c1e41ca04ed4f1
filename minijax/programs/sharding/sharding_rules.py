"""Shardy's rules for one operation: which dimensions are cut together.

    "i k, k j -> i j"      of a matrix product, with reduction_factors=("k",)

A letter or word is a factor. The dimensions of one factor, in several operands and
results, are cut alike. `(a b)` is a dimension made of two, and `...` stands for any
number of leading ones.

In JAX: `jax/_src/custom_partitioning_sharding_rule.py`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

from minijax.core import errors, hlo

_SPECIAL = "reduction_factors need_replication_factors permutation_factors".split()
_DOTS = "\N{HORIZONTAL ELLIPSIS}"
_WORD = r"[^\W\d_]\w*\b"
_ARRAY = re.compile(
    rf"\s*({_DOTS}\d*\s*)?(({_WORD}|\(\s*{_WORD}(\s+{_WORD})+\s*\))\s*)*"
)


class ShardingRule:
    """The rule that a text and its options say.

    Args:
      rule: the text, for each operand and result the factors of its dimensions.
      options: `reduction_factors`, the factors that are summed over: where they are
        cut, the results of the devices are added up; `need_replication_factors`, which
        must not be cut; `permutation_factors`, which need an exchange where they are
        cut; and the size of each factor that is found in brackets only.

    Raises ValueError for a text that is no rule, for factors that it does not have, for
    sizes that are missing or too many; TypeError for other types.
    """

    def __init__(self, rule: str, **options: Any) -> None:
        self.given = [repr(rule), *(f"{k}={v!r}" for k, v in options.items())]
        special = {k: f for k, f in options.items() if k in _SPECIAL}
        self.special: dict[str, tuple] = special
        self.sizes = {k: size for k, size in options.items() if k not in special}
        whole_numbers = all(isinstance(size, int) for size in self.sizes.values())
        if not isinstance(rule, str) or not whole_numbers:
            raise errors.type_error(
                f"A sharding rule is a str and sizes of factors are ints, got {rule!r} "
                f"and {options}. Write 'i j -> i j'."
            )
        sides = rule.replace("...", _DOTS).split("->")
        arrays = [array for side in sides for array in side.split(",")]
        if _DOTS in rule or len(sides) != 2 or not all(map(_ARRAY.fullmatch, arrays)):
            raise errors.value_error(
                f"{rule!r} is no sharding rule. It has `->` between operands and "
                "results, commas between arrays, and for each dimension a word that "
                "starts with a letter, or two or more in brackets. Dots, `...`, may "
                "come first in an array."
            )
        self.operands = sides[0].count(",") + 1
        self.arrays = [_dimensions(array) for array in arrays]
        whole = {name for names in self.arrays for name, *more in names if not more}
        parts = {f for names in self.arrays for name in names for f in name} - whole
        given = [factor for factors in special.values() for factor in factors]
        tuples = all(isinstance(factors, tuple) for factors in special.values())
        known = {*given} <= whole | parts and len({*given}) == len(given)
        if parts != {*self.sizes} or not tuples or not known:
            raise errors.value_error(
                f"The sharding rule {rule!r} got {options}. It takes the sizes of "
                f"{sorted(parts)}, the factors found in brackets only, and tuples "
                "of its factors, each factor once."
            )

    def __repr__(self) -> str:
        return f"ShardingRule({', '.join(self.given)})"

    def attribute(self, operands: Sequence[Any], results: Sequence[Any]) -> Any:
        """`#sdy.op_sharding_rule` for values of StableHLO types.

        Raises ValueError for another number of arrays or dimensions than the rule has,
        and for sizes that contradict each other.
        """
        kinds, sizes, ranks = [*operands, *results], dict[str, Any](), dict[str, int]()
        arrays = [list(names) for names in self.arrays]
        fits = [len(kinds), len(operands)] == [len(arrays), self.operands]
        for names, kind in zip(arrays, kinds):
            if names and names[0][0][0] == _DOTS:
                group = str(int(names[0][0][1:] or 0))
                rank = ranks.setdefault(group, len(kind.shape) - len(names) + 1)
                names[:1] = [(f"{_DOTS}{group} {at}",) for at in range(rank)]
            fits = fits and len(names) == len(kind.shape)
            for name, size in zip(names, kind.shape):
                for factor in name:
                    new = size if len(name) == 1 else self.sizes.get(factor, math.inf)
                    old = sizes.setdefault(factor, new)
                    sizes[factor] = min(old, new)
                    fits = fits and (factor[0] != _DOTS or old == new)
        for names, kind in zip(arrays, kinds):
            for name, size in zip(names, kind.shape):
                whole = math.prod(sizes[factor] for factor in name)
                fits = fits and (len(name) == 1 or whole == size)
        if not fits:
            raise errors.value_error(
                f"{self} does not fit the operation, whose operands and results are "
                f"{[*map(str, operands)]} and {[*map(str, results)]}."
            )
        places = {factor: place for place, factor in enumerate(sizes)}
        sdy = hlo.sdy
        mappings = [
            sdy.TensorMappingAttr.get([sdy.DimMappingAttr.get(i) for i in indices])
            for indices in [[[places[f] for f in n] for n in names] for names in arrays]
        ]
        special = {k: [places[f] for f in fs] for k, fs in self.special.items()}
        return sdy.OpShardingRuleAttr.get(
            factor_sizes=list(sizes.values()),
            operand_mappings=mappings[: self.operands],
            result_mappings=mappings[self.operands :],
            is_custom=True,
            **special,
        )


def mark_batch(call: Any, count: int) -> None:
    """Say that a call does the same for each part of a batch, its first `count` axes.

    Without this, XLA gathers a batch that is cut over devices.
    """
    numbers = itertools.count()

    def dimensions(kind: Any) -> str:
        return " ".join(["...", *(f"f{next(numbers)}" for _ in kind.shape[count:])])

    sides = [[x.type for x in values] for values in (call.operands, call.results)]
    rule = " -> ".join(", ".join(map(dimensions, kinds)) for kinds in sides)
    call.attributes["sdy.sharding_rule"] = ShardingRule(rule).attribute(*sides)
    named = {"num_batch_dims": hlo.string(str(count))}
    call.attributes["mhlo.frontend_attributes"] = hlo.ir.DictAttr.get(named)


def _dimensions(array: str) -> list[tuple[str, ...]]:
    """For each dimension its factors: ("i",), or ("a", "b") of `(a b)`."""
    found = re.findall(rf"{_DOTS}\d*|\([^)]*\)|\w+", array)
    return [tuple(name.strip("()").split()) for name in found]
