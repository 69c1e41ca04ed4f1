"""Symbolic shapes from text, and constraints on their variables.

    b, n = symbolic_shape("b, 4*n", constraints=["b >= 2"])

In JAX: `jax/_src/export/shape_poly.py`, `SymbolicScope` and `symbolic_shape`.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Sequence
from typing import Any

from minijax.core import trees
from minijax.core.avals import aval_of_description, get_aval
from minijax.values import symbolic_sizes
from minijax.values.ref_avals import ShapeDtypeStruct
from minijax.values.symbolic_sizes import Size, is_symbolic, terms_of


class SymbolicScope:
    """The variables of some symbolic shapes, and constraints on them.

    Args:
      constraints_str: texts such as "b >= 2", "b <= 4*n", "mod(b, 8) == 0".

    Variables of the same name are the same in one scope, and different in two.

    In JAX: `jax.export.SymbolicScope`.
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        if isinstance(constraints_str, str):
            raise ValueError(
                "The symbolic constraints should be a sequence of strings. Got "
                f"{constraints_str!r}"
            )
        self.texts: tuple[str, ...] = ()
        self.nonnegative: list[Any] = []  # expressions of at least 0
        self.ranges: dict[str, tuple[float, float]] = {}
        self.equalities: dict[Any, Size] = {}  # a monomial and what it is equal to
        self.checks: list[tuple[str, str, Size, Size]] = []
        for text in constraints_str:
            self._add(text)

    def _add(self, text: str) -> None:
        sign = next((s for s in ("==", ">=", "<=") if s in str(text)), None)
        if not isinstance(text, str) or sign is None:
            raise ValueError(
                "Constraint parsing error: must contain one of '==' or '>=' or '<=', "
                f"got {text!r}. Write 'b >= 3' for 'b > 2'."
            )
        sides = text.split(sign)
        if len(sides) != 2:
            raise ValueError(f"Constraint parsing error: {text!r} has two signs.")
        first, second = (_Reader(side, self).one() for side in sides)
        self.texts += (text,)
        self.checks.append((text, sign, first, second))
        if sign == "==":
            self._add_equality(text, first, second)
        else:
            low = first - second if sign == ">=" else second - first
            self._add_bound(low, text)

    def _add_bound(self, low: Size, text: str) -> None:
        if not is_symbolic(low):
            if low < 0:
                raise ValueError(f"the constraint {text!r} is never true.")
            return
        self.nonnegative.append(low)
        terms = dict(low.terms)
        constant = terms.pop((), 0)
        ((monomial, count), *others) = terms.items()
        is_variable = len(monomial) == 1 and monomial[0][1] == 1
        if not others and is_variable and isinstance(monomial[0][0], str):
            name = monomial[0][0]
            smallest, largest = self.ranges.get(name, (1, math.inf))
            if count > 0:
                smallest = max(smallest, -(constant // count))
            else:
                largest = min(largest, constant // -count)
            self.ranges[name] = smallest, largest

    def _add_equality(self, text: str, first: Size, second: Size) -> None:
        terms = terms_of(first)
        if len(terms) != 1 or () in terms or next(iter(terms.values())) != 1:
            raise ValueError(
                "Invalid equality constraint: the left-hand side must be a single "
                f"variable or term such as `b`, `b*n` or `mod(b, 2)`, in {text!r}."
            )
        (monomial,) = terms
        if is_symbolic(second) and any(
            symbolic_sizes._quotient(each, monomial) is not None
            for each in second.terms
        ):
            raise ValueError(f"Invalid equality constraint: {text!r} is circular.")
        self.equalities[monomial] = second

    def variable(self, name: str) -> Size:
        """The variable of a name."""
        return symbolic_sizes.variable(name, self)

    def failed_check(self, values: dict[str, int]) -> str | None:
        """The first constraint that values of the variables break, or None."""
        signs = {"==": operator.eq, ">=": operator.ge, "<=": operator.le}
        for text, sign, first, second in self.checks:
            sides = [first, second]
            names = symbolic_sizes.shape_variables([sides])
            if all(name in values for name in names):
                numbers = [symbolic_sizes.evaluate(side, values) for side in sides]
                if not signs[sign](*numbers):
                    return text
        return None

    def __repr__(self) -> str:
        if not self.texts:
            return "a scope without constraints"
        return f"a scope with the constraints {', '.join(self.texts)}"


# ----------------------------------------------------------------------------------
# Text
# ----------------------------------------------------------------------------------

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}
_FUNCTIONS = ("floordiv", "mod", "max", "min")


class _Reader:
    """Reads a symbolic shape. `like` are the sizes for `_` and `...`."""

    def __init__(self, text: str, scope: SymbolicScope, like: Any = None):
        self.text = text
        self.scope = scope
        self.like = like

    def error(self, why: str) -> ValueError:
        return ValueError(
            f"syntax error in symbolic shape '{self.text}': {why}. A shape is sizes "
            "separated by commas, made of names, whole numbers, + - * ^, and "
            f"{', '.join(_FUNCTIONS)}, as in 'b, 4*n, floordiv(n, 2)'."
        )

    def parse(self) -> ast.expr:
        try:
            return ast.parse(f"({self.text.replace('^', '**')}\n)", mode="eval").body
        except SyntaxError as error:
            raise self.error(error.msg) from None

    def one(self) -> Size:
        """The text as one size."""
        return self.size(self.parse())

    def shape(self) -> tuple[Size, ...]:
        """The text as a shape."""
        node = self.parse()
        nodes = node.elts if isinstance(node, ast.Tuple) else [node]
        sizes: list[Size] = []
        for position, each in enumerate(nodes):
            if isinstance(each, ast.Constant) and each.value is Ellipsis:
                if position != len(nodes) - 1:
                    raise self.error("'...' stands at the end")
                rest = self.known(None)[position:]
                if not all(isinstance(size, int) for size in rest):
                    raise self.error("'...' stands for sizes that `like` knows")
                sizes += rest
            elif isinstance(each, ast.Name) and each.id == "_":
                sizes.append(self.known(position))
            else:
                size = self.size(each)
                same = self.like[position] if self._has(position) else None
                if isinstance(size, int) and same is not None and same != size:
                    raise self.error(
                        f"different size {size} for known dimension {position}; "
                        f"like={tuple(self.like)}"
                    )
                sizes.append(size)
        return tuple(sizes)

    def _has(self, position: int) -> bool:
        return self.like is not None and position < len(self.like)

    def known(self, position: int | None) -> Any:
        """The size at a position of `like`, or all of them."""
        if self.like is None:
            raise self.error("'_' and '...' need the argument `like`")
        if position is None:
            return self.like
        if not self._has(position):
            raise self.error(
                f"'_' in dimension {position}, and like={tuple(self.like)} has none"
            )
        if self.like[position] is None:
            raise self.error(f"`like` does not know dimension {position}")
        return self.like[position]

    def size(self, node: ast.expr) -> Size:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            if node.id == "_":
                raise self.error("'_' is a dimension of its own")
            return self.scope.variable(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.size(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            first, second = self.size(node.left), self.size(node.right)
            if isinstance(node.op, ast.Pow) and not isinstance(second, int):
                raise self.error("a power is a whole number")
            return _BINARY[type(node.op)](first, second)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in _FUNCTIONS and len(node.args) == 2 and not node.keywords:
                first, second = map(self.size, node.args)
                return symbolic_sizes.operation(node.func.id, first, second)
        raise self.error(f"'{ast.unparse(node)}' is not a size")


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Size, ...]:
    """A shape whose sizes may be expressions in variables.

    Args:
      shape_spec: such as "b, 4*n"; `_` stands for the size that `like` has there, and
        `...` at the end for the rest of `like`. None is `like` itself.
      constraints: constraints on the variables, such as "b >= 2"; all are at least 1.
      scope: that of other shapes with the same variables; a new one if None.
      like: the known sizes.

    Raises ValueError for text that is not a shape, and for constraints and a scope.
    """
    shape_spec = "..." if shape_spec is None else shape_spec
    if not isinstance(shape_spec, str):
        raise ValueError(
            "polymorphic shape spec should be None or a string. Found "
            f"{shape_spec!r} of type {type(shape_spec).__name__}."
        )
    scope = _scope_of(scope, constraints)
    return _Reader(shape_spec, scope, like).shape()


def _scope_of(scope: SymbolicScope | None, constraints: Sequence[str]) -> SymbolicScope:
    """The scope given, or a new one with constraints; ValueError for both."""
    if scope is None:
        return SymbolicScope(constraints)
    if constraints:
        raise ValueError(
            "Cannot use both `scope` and `constraints`: give the constraints to the "
            "SymbolicScope."
        )
    return scope


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """The types of arguments, with symbolic shapes: a tree of `ShapeDtypeStruct`s.

    Args:
      args: the arguments, or descriptions of them.
      shapes_specs: a tree of shapes as for `symbolic_shape`, a prefix of `args`.
      constraints, scope: as for `symbolic_shape`.

    Raises ValueError for a shape that does not fit its argument.
    """
    scope = _scope_of(scope, constraints)
    leaves, tree = trees.tree_flatten(args)
    specs = _specs_for(shapes_specs, tree)
    paths = [path for path, _ in trees.tree_flatten_with_path(args)[0]]
    structs = []
    for leaf, spec, path in zip(leaves, specs, paths):
        aval = aval_of_description.get(type(leaf), get_aval)(leaf)
        try:
            shape = symbolic_shape(spec, scope=scope, like=aval.shape)
        except ValueError as error:
            error.add_note(f"This is the shape of args{trees.keystr(path)}.")
            raise
        structs.append(ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type))
    return trees.tree_unflatten(tree, structs)


def _specs_for(shapes_specs: Any, tree: Any) -> list[Any]:
    # None stands for a known shape, so it is not an empty tree here.
    if shapes_specs is None or isinstance(shapes_specs, str):
        return [shapes_specs] * tree.num_leaves
    return trees.broadcast_prefix_to_treedef(shapes_specs, tree)
