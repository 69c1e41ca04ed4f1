"""JAX's registration tables: views that write a primitive's attributes.

In minijax the rules of a primitive are attributes of the `Primitive`, set where it is
defined. JAX keeps one table for each interpreter, and code that adds primitives from
outside writes into them:

    ad.primitive_jvps[p] = rule          (primals, tangents, **params) -> (out, tangent)
    ad.primitive_transposes[p] = rule    (ct, *args, **params) -> cotangents
    batching.primitive_batchers[p] = rule      (args, dims, **params) -> (out, out dim)
    mlir.register_lowering(p, rule, platform="cpu")

Both are the same thing here: assigning to a table sets the attribute, and looking up
gives the rule of any primitive, minijax's own included. The modules `ad`, `batching`,
`mlir` and `partial_eval` hand these names on, so that they stand where JAX has them.

In JAX: `interpreters/ad.py`, `batching.py`, `mlir.py`, `partial_eval.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

from minijax.core.events import enter
from minijax.core.language import Primitive, all_primitives
from minijax.extend.core import primitives  # noqa: F401  now all are in the table
from minijax.transforms.rematerialize import split_rules

__all__ = ["dce_rules", "partial_eval_jaxpr_custom_rules"]


class RuleTable(MutableMapping):
    """A mapping from primitives to one kind of rule, which are their attributes.

    `read(primitive)` gives the rule in the form that JAX's table has, or None;
    `write(primitive, rule)` sets it; None removes it. Iteration goes over minijax's own
    primitives that have such a rule.
    """

    def __init__(self, name: str, read: Callable, write: Callable):
        self.name = name
        self.read = read
        self.write = write

    def __getitem__(self, primitive: Primitive) -> Callable:
        rule = self.read(primitive)
        if rule is None:
            raise KeyError(primitive)
        return rule

    def __setitem__(self, primitive: Primitive, rule: Callable) -> None:
        if not isinstance(primitive, Primitive):
            raise TypeError(
                f"{self.name} holds rules of primitives, but its key is {primitive!r}"
            )
        self.write(primitive, rule)

    def __delitem__(self, primitive: Primitive) -> None:
        self[primitive]
        self.write(primitive, None)

    def __iter__(self) -> Iterator[Primitive]:
        return (p for p in all_primitives.values() if self.read(p) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<{self.name}: rules of {len(self)} primitives of minijax>"


def attribute_table(name: str, attribute: str) -> RuleTable:
    """A table of rules that are called here as in JAX."""
    return RuleTable(
        name,
        lambda primitive: getattr(primitive, attribute),
        lambda primitive, rule: setattr(primitive, attribute, rule),
    )


def _write_dce(primitive, rule: Callable | None) -> None:
    """JAX's rule: `(used outputs, eqn) -> (used inputs, smaller eqn or None)`."""
    if rule is None:
        primitive.dce = None
    else:
        primitive.dce = lambda used, eqn: rule(used, eqn)[1]


def _read_dce(primitive) -> Callable | None:
    rule = primitive.dce
    if rule is None:
        return None

    def dce(used, eqn) -> tuple:
        smaller = rule(used, eqn)
        kept = set() if smaller is None else {id(v) for v in smaller.invars}
        return [id(v) in kept for v in eqn.invars], smaller

    return dce


dce_rules = RuleTable("dce_rules", _read_dce, _write_dce)


def _write_split(primitive, rule: Callable | None) -> None:
    split_rules.pop(primitive, None)
    if rule is not None:
        enter(split_rules, primitive, rule)


partial_eval_jaxpr_custom_rules = RuleTable(
    "partial_eval_jaxpr_custom_rules", split_rules.get, _write_split
)
