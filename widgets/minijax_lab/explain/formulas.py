"""Derivatives as mathematics: what a primitive's rules make, as formulas.

The jvp rule's program of `sin` becomes `d sin(x) = dx * cos(x)`, and what backward mode
makes of it `ct_x = ct * cos(x)`. The formulas are read off the rules' own equations; a
program with an operation that has no short sign gives none. Those of long rules are
stated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.compile.jit_api import make_jaxpr
from minijax.core.language import Jaxpr, JaxprEqn, Literal, Primitive, ShapedArray
from minijax.transforms.differentiation import jvp, vjp
from minijax_lab.explain.stated_formulas import STATED

LONGEST = 150
NAMES = ("x", "y", "z")
# What constants are called, by how many there are.
CONSTANTS = ("", "c", "ab")

OPERATORS: dict[str, ast.operator] = {
    "add": ast.Add(),
    "add_any": ast.Add(),
    "sub": ast.Sub(),
    "mul": ast.Mult(),
    "div": ast.Div(),
    "pow": ast.Pow(),
    "and": ast.BitAnd(),
    "or": ast.BitOr(),
    "xor": ast.BitXor(),
}
COMPARISONS: dict[str, ast.cmpop] = {
    "eq": ast.Eq(),
    "ne": ast.NotEq(),
    "lt": ast.Lt(),
    "le": ast.LtE(),
    "gt": ast.Gt(),
    "ge": ast.GtE(),
}
CALLED = ("jit", "closed_call", "custom_jvp_call", "core_call", "remat2")
SAME = ("copy", "pvary", "name", "device_put")
WHOLE = {"reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min"}
WHOLE |= {"reduce_prod": "prod"}


class NoFormula(Exception):
    """A program has an operation without a sign."""


def formulas_of(name: str, function: Callable[..., Any], args: tuple) -> list[str]:
    """The formulas of a primitive's example, read off its rules or stated.

    After those of the derivative come lines that define names which they use, and
    sentences that say where they hold.
    """
    found = STATED.get(name) or derivatives(function, args)
    # What gives back its operand is written by its name.
    return [re.sub(r"^d x =", f"d {name}(x) =", line) for line in found]


def derivatives(function: Callable[..., Any], args: tuple) -> list[str]:
    """The formulas of a function's derivative: forwards, then backwards by argument.

    `args` are arrays of floats. Nothing where a formula is not known, or is long.
    """
    names = NAMES[: len(args)]
    tangents = [f"d{name}" for name in names]
    found: list[str] = []

    def forward(*both: Any) -> Any:
        half = len(both) // 2
        return jvp(lambda *xs: function(*xs), both[:half], both[half:])

    def backward(ct: Any, *xs: Any) -> Any:
        return vjp(lambda *given: function(*given), *xs)[1](ct)

    try:
        outs = formulas(make_jaxpr(forward)(*args, *args), [*names, *tangents])
        if len(outs) == 2:
            found.append(f"d {atomic(outs[0])} = {ast.unparse(outs[1])}")
        out = function(*args)
        cts = formulas(make_jaxpr(backward)(out, *args), ["ct", *names])
        for name, ct in zip(names, cts, strict=True):
            found.append(f"ct_{name} = {ast.unparse(ct)}")
    except Exception:  # a rule that declines this example has no formula either
        return []
    return found if all(len(text) <= LONGEST for text in found) else []


def why_no_formula(
    primitive: Primitive, kind: str, has_jvp: bool, results: list[str]
) -> str:
    """Why a card has no formula, in a sentence, from the primitive's rules.

    `kind` is how it is differentiated, `results` are the types of its example's
    results, if it has one.
    """
    reasons = primitive.reasons
    if kind == "program":
        return "no formula: it is differentiated as the program inside of it is"
    if kind == "linear":
        return (
            "no formula: it is linear, so that its derivative is the same operation on "
            "the tangent, and backwards its transpose on the cotangent"
        )
    if "jvp" in reasons:
        return f"no formula: {reasons['jvp']}"
    if "always zero" in reasons.get("transpose", ""):
        whole = [one for one in results if not re.match(r"(f|bf|c)\d", one)]
        if whole:
            dtype = whole[0].partition("[")[0]
            return f"no formula: its results are {dtype}, and only floats have tangents"
        return "no formula: its derivative is zero wherever there is one"
    if not has_jvp:
        return "no formula: it has no rule for a derivative"
    why = reasons.get("transpose", "its rule computes it")
    return f"no short formula: {why}"


def atomic(node: ast.expr) -> str:
    """An expression as text, in parentheses unless it is one term."""
    text = ast.unparse(node)
    return (
        text if isinstance(node, (ast.Name, ast.Call, ast.Subscript)) else f"({text})"
    )


def formulas(closed: Any, names: list[str]) -> list[ast.expr]:
    """The results of a program as expressions of its inputs, which have names."""
    consts = CONSTANTS[len(closed.consts)]
    known = {var: ast.Name(name) for var, name in zip(closed.jaxpr.invars, names)}
    known.update(zip(closed.jaxpr.constvars, map(ast.Name, consts)))
    return results(closed.jaxpr, known)


def results(jaxpr: Jaxpr, known: dict[Any, Any]) -> list[ast.expr]:
    """The results of a program whose inputs are known expressions; what no result needs
    is not asked for."""
    made = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}

    def of(atom: Any) -> ast.expr:
        if isinstance(atom, Literal):
            return number(atom.val)
        if atom not in known:
            eqn = made[atom]
            operands = [of(operand) for operand in eqn.invars]
            if eqn.primitive.name in CALLED:
                inner = eqn.params.get("jaxpr") or eqn.params["call_jaxpr"]
                if getattr(inner, "consts", ()):
                    raise NoFormula("constants inside")
                inner = getattr(inner, "jaxpr", inner)
                within = results(inner, dict(zip(inner.invars, operands)))
                known.update(zip(eqn.outvars, within))
            else:
                known[atom] = written(eqn, operands, eqn.outvars.index(atom))
        return known[atom]

    return [of(var) for var in jaxpr.outvars]


def number(value: Any) -> ast.expr:
    """A number as an expression."""
    return ast.parse(f"{np.asarray(value).item():.7g}", mode="eval").body


def positive(node: ast.expr) -> ast.expr | None:
    """What a minus stands before; None without one."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return node.operand
    return None


def minus(node: ast.expr) -> ast.expr:
    """The negative of an expression; that of 0 is 0."""
    if isinstance(node, ast.Constant) and not node.value:
        return node
    return positive(node) or ast.UnaryOp(ast.USub(), node)


def turned(node: ast.expr) -> ast.expr:
    """The transpose of a matrix; of a product, that of its factors in turn."""
    if isinstance(node, ast.Attribute) and node.attr == "T":
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return ast.BinOp(turned(node.right), ast.MatMult(), turned(node.left))
    return ast.Attribute(node, "T")


def part_of_complex(name: str, node: ast.expr) -> ast.expr:
    """The real or the imaginary part; of a derivative made of two parts, that part."""
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    if not any(one.startswith(("d", "ct")) for one in names):
        return called(name, node)
    if (whole := positive(node)) is not None:
        return minus(part_of_complex(name, whole))
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "complex":
        return node.args[name == "imag"]
    return called(name, node)


def called(name: str, *args: ast.expr, **given: Any) -> ast.expr:
    """The call of a function by its name."""
    keywords = [ast.keyword(key, ast.Constant(value)) for key, value in given.items()]
    return ast.Call(ast.Name(name), list(args), keywords)


def part_of(node: ast.expr, start: int, limit: int) -> ast.expr:
    """Entries of a vector."""
    return ast.Subscript(node, ast.Slice(ast.Constant(start), ast.Constant(limit)))


def written(eqn: JaxprEqn, operands: list[ast.expr], place: int) -> ast.expr:
    """A result of an equation, by its place, as an expression of the operands'."""
    name, params = eqn.primitive.name, eqn.params
    avals = [operand.aval for operand in eqn.invars]
    out = eqn.outvars[0].aval
    if not all(type(aval) is ShapedArray for aval in (*avals, out)):
        raise NoFormula(name)  # a ref, whose value changes; a key
    if name == "neg":
        return minus(operands[0])
    if name in ("add", "add_any") and (less := positive(operands[1])) is not None:
        return ast.BinOp(operands[0], ast.Sub(), less)
    if name in OPERATORS:
        return ast.BinOp(operands[0], OPERATORS[name], operands[1])
    if name in COMPARISONS:
        return ast.Compare(operands[0], [COMPARISONS[name]], [operands[1]])
    if name in ("square", "integer_pow"):
        power = ast.Constant(params.get("y", 2))
        return ast.BinOp(operands[0], ast.Pow(), power)
    if name == "rsqrt":
        return ast.BinOp(ast.Constant(1), ast.Div(), called("sqrt", operands[0]))
    if name == "select_n" and len(operands) == 3:
        return called("where", operands[0], operands[2], operands[1])
    if name == "convert_element_type":
        if avals[0].dtype == out.dtype:
            return operands[0]
        return called(out.dtype.name, operands[0])
    spread = name in ("broadcast_in_dim", "reshape") and not avals[0].shape
    if name in SAME or spread:
        return operands[0]
    if name == "dot_general":
        return product(eqn, operands)
    if name == "transpose" and out.ndim == 2:
        return turned(operands[0])
    if name in ("real", "imag"):
        return part_of_complex(name, operands[0])
    if name == "reduce_precision":
        return called(name, operands[0], **params)
    if name == "round" and not params["rounding_method"]:
        return called(name, operands[0])
    if name in WHOLE and not out.shape:
        return called(WHOLE[name], operands[0])
    if name == "reduce_sum":
        return called("sum", operands[0], axis=params["axes"])
    if name == "reshape":
        return called("reshape", operands[0], shape=out.shape)
    if name == "broadcast_in_dim":
        trailing = range(out.ndim - avals[0].ndim, out.ndim)
        if params["broadcast_dimensions"] == tuple(trailing):
            return called("broadcast_to", operands[0], shape=out.shape)
    if name == "squeeze":
        return called("squeeze", operands[0], axis=params["dimensions"])
    if name == "concatenate" and out.ndim == 1:
        return called("concatenate", ast.Tuple(operands, ast.Load()))
    if name == "conj":
        return called(name, operands[0])
    if name == "pad" and out.ndim == 1:
        low, high, between = params["padding_config"][0]
        if ast.unparse(operands[1]) != "0" or between or min(low, high) < 0:
            raise NoFormula(name)
        sizes = ast.Tuple([ast.Constant(low), ast.Constant(high)])
        return called("pad", operands[0], sizes)
    if name == "slice" and out.ndim == 1 and not params["strides"]:
        start, limit = params["start_indices"][0], params["limit_indices"][0]
        return part_of(operands[0], start, limit)
    if name == "split" and out.ndim == 1:
        start = sum(params["sizes"][:place])
        return part_of(operands[0], start, start + params["sizes"][place])
    if name in ("cumsum", "cumprod", "cummax", "cummin") and out.ndim == 1:
        given = {"reverse": True} if params["reverse"] else {}
        return called(name, operands[0], **given)
    if name == "rev" and out.ndim == 1:
        return called("flip", operands[0])
    plain = all(value is None for value in params.values())
    same = all(aval.shape in ((), out.shape) for aval in avals)
    if not plain or not same or not operands:
        raise NoFormula(name)
    return called(name, *operands)


def product(eqn: JaxprEqn, operands: list[ast.expr]) -> ast.expr:
    """A product of two matrices or vectors."""
    contracting, batch = eqn.params["dimension_numbers"]
    sides = []
    for place, (node, operand) in enumerate(zip(operands, eqn.invars)):
        axes, rank = tuple(contracting[place]), operand.aval.ndim
        if any(batch) or len(axes) != 1 or rank > 2:
            raise NoFormula("dot_general")
        inner = rank - 1 if place == 0 else 0
        sides.append(node if axes[0] == inner else turned(node))
    return ast.BinOp(sides[0], ast.MatMult(), sides[1])
