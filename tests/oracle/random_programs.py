"""Random programs as data: small graphs of operations inside random transformations.

A `Scope` is a function body: parameters, statements, results. A statement is one line
of Python over variables, or a nested `Scope` under a transformation, which may close
over variables of the scopes around it. Rendered, a program is a script that runs alone.
"""

import dataclasses
import textwrap
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np

from tests.golden.normalise import normalise, plain_numpy_scalars
from tests.oracle.carriers import Carriers

Shape = tuple[int, ...]

# Few shapes, so that most operations of a run are already compiled.
SHAPES: tuple[Shape, ...] = ((), (3,), (2, 3), (3, 2), (2,))
FLOATS = ("float32", "float32", "float32", "bfloat16", "float16")


@dataclasses.dataclass(frozen=True)
class Variable:
    """A name with its shape and kind: 'f' inexact, 'i' integer, 'b' boolean."""

    name: str
    shape: Shape
    kind: str


@dataclasses.dataclass(frozen=True)
class Line:
    """One statement, `text`, that assigns `targets`."""

    text: str
    targets: tuple[Variable, ...]


@dataclasses.dataclass(frozen=True)
class Nested:
    """A function defined on the spot, then `text`, which uses it, assigning `targets`.

    `decorate` are lines that follow the definition.
    """

    name: str
    body: "Scope"
    decorate: tuple[str, ...]
    text: str
    targets: tuple[Variable, ...]


@dataclasses.dataclass(frozen=True)
class Scope:
    """The body of one function; `results` is the text of what it returns."""

    parameters: tuple[Variable, ...]
    statements: tuple["Line | Nested", ...]
    results: str

    def render(self, name: str) -> str:
        """This function as Python source."""
        head = ", ".join(variable.name for variable in self.parameters)
        lines = [f"def {name}({head}):"]
        for statement in self.statements:
            if isinstance(statement, Nested):
                lines.append(_indent(statement.body.render(statement.name)))
                lines += [f"    {line}" for line in statement.decorate]
            lines.append(f"    {statement.text}")
        lines.append(f"    return {self.results}")
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class RandomProgram:
    """A whole program: a function, the text of its arguments, how it is called."""

    scope: Scope
    arguments: tuple[str, ...]
    call: str
    enable_x64: bool = False

    @property
    def source(self) -> str:
        """Definitions: `program` and `arguments`, over `jax`, `jnp`, `lax` and `np`."""
        arguments = ", ".join(self.arguments)
        return "\n".join(
            [
                self.scope.render("program"),
                f"program = {self.call}",
                f"arguments = ({arguments},)",
            ]
        )

    @property
    def script(self) -> str:
        """The program as a script of its own."""
        return "\n".join(
            [
                "import ml_dtypes",
                "import numpy as np",
                "import jax  # or: import minijax as jax",
                f"jax.config.update('jax_enable_x64', {self.enable_x64})",
                "jnp, lax = jax.numpy, jax.lax",
                self.source,
                "print(jax.make_jaxpr(program)(*arguments))",
                "print(program(*arguments))",
            ]
        )

    def run(self, library: Any) -> Any:
        """What the program returns in `library`."""
        with library.enable_x64(self.enable_x64):
            function, arguments = self.load(library)
            return function(*arguments)

    def jaxpr_text(self, library: Any) -> str:
        """The program's jaxpr as `library` prints it, or the name of what it raises."""
        with library.enable_x64(self.enable_x64), plain_numpy_scalars():
            function, arguments = self.load(library)
            try:
                return normalise(str(library.make_jaxpr(function)(*arguments)))
            except Exception as error:
                return type(error).__name__

    def load(self, library: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The function and its arguments in `library`."""
        import ml_dtypes

        names = {
            "jax": library,
            "jnp": library.numpy,
            "lax": library.lax,
            "np": np,
            "ml_dtypes": ml_dtypes,
        }
        exec(compile(self.source, "<random program>", "exec"), names)
        return names["program"], names["arguments"]


def _indent(text: str) -> str:
    return textwrap.indent(text, "    ")


# Operations as templates: `{0}` is the first operand. Each is tame on all reals, so
# that no result is decided by rounding: no division by zero, no overflow.
UNARY = {
    "f": """
        jnp.sin({0}); jnp.cos({0}); jnp.tanh({0}); lax.logistic({0}); -{0}; +{0}
        jnp.exp(jnp.tanh({0})); jnp.log1p(abs({0})); abs({0}); jnp.square({0}) * 0.1
        jnp.sqrt({0} * {0} + 1); lax.erf({0}); jax.nn.relu({0}); jax.nn.silu({0})
        jax.nn.softplus({0}); {0} * 2; 2.0 - {0}; {0} + 1; 1 / (1.5 + jnp.sin({0}))
        jnp.tanh({0}) ** 2; jnp.tanh({0}) ** 3; lax.rsqrt(2 + jnp.cos({0}))
        jnp.clip({0}, -1.0, 1.0); {0}.astype('float32'); {0}.astype(jnp.bfloat16)
        jnp.where({0} > 0.25, {0}, 0.5); lax.stop_gradient({0}); jnp.float32(2) * {0}
        np.float32(0.5) + {0}; lax.expm1(lax.tanh({0})); jnp.arctan({0})
        jnp.nan_to_num({0}); lax.cbrt({0} * {0} + 1); jnp.ones_like({0}) * {0}
        lax.reduce_precision({0}, 8, 10); jnp.logaddexp({0}, 0.5); jax.nn.gelu({0})
        jax.nn.sigmoid({0}); jnp.maximum({0}, 0); jnp.minimum(0.75, {0}); jnp.sinc({0})
        jnp.asarray({0}); jnp.zeros_like({0}); lax.optimization_barrier({0})
    """,
    "i": """
        {0} + 1; {0} * 2; 3 - {0}; {0} // 3; {0} % 3; -{0}; abs({0}); {0} & 5; {0} | 2
        {0} ^ 1; {0} << 1; {0} >> 1; ~{0}; jnp.clip({0}, 0, 4); jnp.maximum({0}, 1)
        lax.population_count({0}); jnp.sign({0}); {0} % 4 - 2
    """,
    "b": "~{0}; jnp.logical_not({0}); {0} ^ True; jnp.asarray({0})",
}
TO_OTHER_KIND = {
    "f": """
        b:{0} > 0.3; b:jnp.isfinite({0}); b:{0} <= 0; i:jnp.round({0} * 3).astype('i4')
        b:jnp.isnan({0}); i:jnp.sign({0}).astype(int); b:{0}.astype(bool)
    """,
    "i": """
        f:{0}.astype('float32'); f:{0} / 3; f:{0} * 0.5; b:{0} > 1; f:jnp.sin({0})
        b:{0} == 2; f:jnp.exp(-abs({0})); i:{0}.astype('int8').astype('int32')
        f:jnp.float32({0}); f:{0} + 0.5; f:{0}.astype(jnp.float16)
    """,
    "b": "i:{0}.astype('int32'); f:{0} * 1.5; i:{0} + {0}; i:{0} + 1; f:{0} / 2",
}
BINARY = {
    "f": """
        {0} + {1}; {0} - {1}; {0} * {1}; {0} / (1.5 + jnp.sin({1})); jnp.hypot({0}, {1})
        jnp.maximum({0}, {1}); jnp.minimum({0}, {1}); jnp.arctan2({0}, 2 + jnp.cos({1}))
        jnp.where({0} > {1}, {0}, {1}); jnp.logaddexp({0}, {1}); jnp.tanh({0} * {1})
        jnp.power(1.5 + jnp.sin({0}), jnp.tanh({1})); jnp.add({0}, {1})
        jnp.where(jnp.less({0}, {1}), {1}, {0} * 2); jnp.multiply({0}, {1})
    """,
    "i": """
        {0} + {1}; {0} - {1}; {0} * {1}; {0} // (1 + abs({1})); {0} % (1 + abs({1}))
        {0} & {1}; {0} | {1}; {0} ^ {1}; jnp.maximum({0}, {1})
        jnp.where({0} < {1}, {0}, {1})
    """,
    "b": "{0} & {1}; {0} | {1}; {0} ^ {1}; jnp.logical_and({0}, {1}); {0} == {1}",
}
MIXED = {
    "fi": "{0} * {1}; {0} + {1}; jnp.where({1} > 1, {0}, {1}); {0} - {1}",
    "fb": "{0} * {1}; jnp.where({1}, {0}, -{0}); jnp.where({1}, {0}, 0); {0} + {1}",
    "ib": "{0} * {1}; jnp.where({1}, {0}, 7); {0} + {1}; jnp.where({1}, {0}, 0.5)",
}
# name: whether integers keep their kind ('same'), or become another
REDUCTIONS = {
    "f": "sum:f mean:f max:f min:f prod:f var:f any:b all:b argmax:i argmin:i std:f",
    "i": "sum:i max:i min:i mean:f any:b all:b argmax:i prod:i",
    "b": "any:b all:b sum:i mean:f",
}


TRANSFORMATIONS = """
    jit jit grad value_and_grad jvp vjp linearize vmap vmap custom_jvp custom_vjp
    jacobian checkpoint grad_of_checkpoint custom_gradient custom_vmap linear_solve
    ref ref cond switch scan scan fori_loop while_loop map
"""


def _split(text: str) -> list[str]:
    return [item.strip() for item in text.replace("\n", ";").split(";") if item.strip()]


class Builder(Carriers):
    """Draws the statements of one scope from hypothesis."""

    def __init__(self, draw: Callable[[Any], Any], counter: list[int]):
        self.draw = draw
        self.counter = counter
        self.statements: list[Line | Nested] = []
        self.own: list[Variable] = []
        self.outer: list[Variable] = []
        self.axis_names: tuple[str, ...] = ()

    def choose(self, items: Any) -> Any:
        return self.draw(st.sampled_from(list(items)))

    def fresh(self, shape: Shape, kind: str) -> Variable:
        self.counter[0] += 1
        return Variable(f"v{self.counter[0]}", shape, kind)

    def add(self, expression: str, shape: Shape, kind: str) -> None:
        target = self.fresh(shape, kind)
        self.statements.append(Line(f"{target.name} = {expression}", (target,)))
        self.own.append(target)

    def add_line(self, text: str) -> None:
        """Add a statement that assigns no variable."""
        self.statements.append(Line(text, ()))

    def operand(self, accept: Callable[[Variable], bool] = lambda v: True) -> Any:
        """A variable in reach that `accept` takes, the newest first; or None."""
        found = [v for v in [*self.outer, *self.own] if accept(v)]
        return self.choose(found[::-1]) if found else None

    def step(self, depth: int) -> None:
        """Add one statement."""
        makers = [
            self.unary,
            self.unary,
            self.binary,
            self.binary,
            self.mixed,
            self.cast,
            self.reduction,
            self.shaping,
            self.shaping,
            self.indexing,
            self.indexing,
            self.update,
            self.joining,
            self.contraction,
            self.ordering,
            self.sampling,
        ]
        if self.axis_names:
            makers += [self.collective] * 5
        if depth > 0:
            makers += [self.transformed] * 6
        maker = self.choose(makers)
        if maker == self.transformed:
            self.transformed(depth)
        else:
            maker()

    def unary(self) -> None:
        x = self.operand()
        self.add(self.choose(_split(UNARY[x.kind])).format(x.name), x.shape, x.kind)

    def binary(self) -> None:
        x = self.operand()
        y = self.operand(lambda v: v.kind == x.kind and _joint(v.shape, x.shape))
        text = self.choose(_split(BINARY[x.kind])).format(x.name, y.name)
        self.add(text, np.broadcast_shapes(x.shape, y.shape), x.kind)

    def mixed(self) -> None:
        x = self.operand(lambda v: v.kind in "fi")
        if x is None:
            return
        y = self.operand(
            lambda v: x.kind + v.kind in MIXED and _joint(v.shape, x.shape)
        )
        if y is None:
            return
        text = self.choose(_split(MIXED[x.kind + y.kind])).format(x.name, y.name)
        kind = "f" if "0.5" in text else x.kind
        self.add(text, np.broadcast_shapes(x.shape, y.shape), kind)

    def cast(self) -> None:
        x = self.operand()
        kind, _, text = self.choose(_split(TO_OTHER_KIND[x.kind])).partition(":")
        self.add(text.format(x.name), x.shape, kind)

    def reduction(self) -> None:
        x = self.operand()
        name, _, kind = self.choose(REDUCTIONS[x.kind].split()).partition(":")
        axes = [None, *range(-1, len(x.shape))] if x.shape else [None]
        axis = self.choose(axes)
        keep = self.choose([False, True])
        shape = list(x.shape)
        if axis is None:
            shape = [1] * len(shape) if keep else []
        else:
            shape[axis : axis + 1 or None] = [1] if keep else []
        if tuple(shape) not in SHAPES:
            keep, shape = False, [n for n in shape if n != 1]
        text = f"jnp.{name}({x.name}, axis={axis}, keepdims={keep})"
        self.add(text, tuple(shape), kind)

    def shaping(self) -> None:
        x = self.operand(lambda v: v.shape)
        if x is None:
            y = self.operand()
            self.add(f"jnp.broadcast_to({y.name}, (3,))", (3,), y.kind)
            return
        last = x.shape[-1]
        options = [
            (f"{x.name}.T", x.shape[::-1]),
            (f"jnp.flip({x.name}, axis=-1)", x.shape),
            (f"jnp.roll({x.name}, 1, axis=0)", x.shape),
            (f"{x.name}[..., None].reshape({x.shape})", x.shape),
            (f"jnp.expand_dims({x.name}, 0).squeeze(0)", x.shape),
            (f"lax.rev({x.name}, (0,))", x.shape),
        ]
        if len(x.shape) == 2:
            options += [
                (f"jnp.reshape({x.name}, (3, -1))", (3, 2)),
                (f"{x.name}.ravel()[:3]", (3,)),
                (f"jnp.swapaxes({x.name}, 0, 1)", x.shape[::-1]),
            ]
        else:
            options += [
                (f"jnp.broadcast_to({x.name}, {(5 - last, last)})", (5 - last, last)),
                (f"jnp.tile({x.name}, ({5 - last}, 1))", (5 - last, last)),
                (
                    f"lax.broadcast_in_dim({x.name}, {(last, 5 - last)}, (0,))",
                    (last, 5 - last),
                ),
                (f"jnp.pad({x.name}, (1, 0))[:{last}]", (last,)),
            ]
        self.add(*self.choose(options), x.kind)

    def indexing(self) -> None:
        x = self.operand(lambda v: v.shape)
        if x is None:
            return
        rest = x.shape[1:]
        options = [
            (f"{x.name}[0]", rest),
            (f"{x.name}[-1]", rest),
            (f"{x.name}[::-1]", x.shape),
            (f"{x.name}[np.array([1, 0])]", (2, *rest)),
            (f"{x.name}[jnp.array([1, 0, 1])]", (3, *rest)),
            (f"{x.name}[1:]", (x.shape[0] - 1, *rest)),
            (f"jnp.take({x.name}, np.array([0, 1]), axis=-1)", (*x.shape[:-1], 2)),
            (f"{x.name}[..., 1]", x.shape[:-1]),
            (f"lax.slice_in_dim({x.name}, 0, 2)", (2, *rest)),
        ]
        index = self.operand(lambda v: v.kind == "i" and len(v.shape) < 2)
        if index is not None:
            shape = (*index.shape, *rest)
            options += [
                (f"{x.name}[{index.name}]", shape),
                (f"{x.name}.at[{index.name}].get(mode='clip')", shape),
                (f"{x.name}[{index.name}, ...]", shape),
            ]
            if not index.shape:
                options.append(
                    (f"lax.dynamic_slice_in_dim({x.name}, {index.name}, 2)", (2, *rest))
                )
        options = [option for option in options if option[1] in SHAPES]
        if options:
            self.add(*self.choose(options), x.kind)

    def update(self) -> None:
        x = self.operand(lambda v: v.shape)
        if x is None:
            return
        value = self.operand(lambda v: v.kind == x.kind and v.shape == x.shape[1:])
        text = "True" if x.kind == "b" else "2"
        if value is not None and x.kind == "i":
            text = value.name
        if value is not None and x.kind == "f":
            text = f"{value.name}.astype({x.name}.dtype)"
        methods = ["set"] if x.kind == "b" else ["set", "add", "multiply", "max", "min"]
        places = ["0", "-1", "1:", "np.array([0, 1])", "::2", "jnp.array([1, 1])"]
        method, place = self.choose(methods), self.choose(places)
        if method == "set" and place == "jnp.array([1, 1])":
            place = "1"
        self.add(f"{x.name}.at[{place}].{method}({text})", x.shape, x.kind)

    def joining(self) -> None:
        x = self.operand()
        y = self.operand(lambda v: v.kind == x.kind and v.shape == x.shape)
        if not x.shape:
            options = [
                (f"jnp.stack([{x.name}, {y.name}])", (2,)),
                (f"jnp.array([{x.name}, {y.name}, 1])", (3,)),
            ]
        elif len(x.shape) == 1:
            options = [
                (f"jnp.stack([{x.name}, {y.name}])", (2, *x.shape)),
                (f"jnp.stack([{x.name}, {y.name}], axis=1)", (*x.shape, 2)),
                (f"jnp.concatenate([{x.name}, {y.name}])[:3]", (3,)),
            ]
        else:
            options = [
                (
                    f"jnp.concatenate([{x.name}, {y.name}], axis=1)[:, 1:3]",
                    (x.shape[0], 2),
                ),
            ]
        kind = x.kind if "1]" not in options[-1][0] or x.kind != "b" else "b"
        options = [option for option in options if option[1] in SHAPES]
        if options and not (x.kind == "b" and not x.shape):
            self.add(*self.choose(options), kind)

    def contraction(self) -> None:
        x = self.operand(lambda v: v.kind == "f" and v.shape)
        if x is None:
            return
        y = self.operand(
            lambda v: v.kind == "f" and v.shape and v.shape[0] == x.shape[-1]
        )
        if y is None:
            self.add(f"jnp.outer({x.name}, {x.name})[:2, :3]", (2, 3), "f")
            return
        shape = x.shape[:-1] + y.shape[1:]
        if shape in SHAPES:
            template = self.choose(
                ["{0} @ {1}", "jnp.dot({0}, {1})", "jnp.tensordot({0}, {1}, 1)"]
            )
            self.add(template.format(x.name, y.name), shape, "f")

    def ordering(self) -> None:
        x = self.operand(lambda v: v.shape and v.kind in "fi")
        if x is None:
            return
        options = [
            (f"jnp.cumsum({x.name}, axis=-1)", x.kind),
            (f"jnp.sort({x.name}, axis=0)", x.kind),
            (f"jnp.argsort({x.name}, axis=-1)", "i"),
            (f"lax.cumsum({x.name}, reverse=True)", x.kind),
            (f"lax.cummax({x.name})", x.kind),
            (f"lax.top_k({x.name}, {x.shape[-1]})[0]", x.kind),
        ]
        if x.kind == "f":
            options += [
                (f"jax.nn.softmax({x.name}, axis=-1)", "f"),
                (f"jax.nn.log_softmax({x.name}, axis=0)", "f"),
                (f"jnp.cumprod(jnp.tanh({x.name}), axis=0)", "f"),
            ]
        text, kind = self.choose(options)
        self.add(text, x.shape, kind)

    def sampling(self) -> None:
        seed = self.operand(lambda v: v.kind == "i" and not v.shape)
        key = f"jax.random.key({seed.name if seed is not None else 7})"
        shape = self.choose(SHAPES)
        options = [
            (f"jax.random.uniform({key}, {shape})", "f"),
            (f"jax.random.normal(jax.random.fold_in({key}, 3), {shape})", "f"),
            (f"jax.random.bernoulli({key}, 0.5, {shape})", "b"),
            (f"jax.random.randint({key}, {shape}, 0, 5)", "i"),
        ]
        text, kind = self.choose(options)
        self.add(text, shape, kind)

    def collective(self) -> None:
        axis = self.choose(self.axis_names)
        x = self.operand(lambda v: v.kind in "fi")
        options = [f"lax.axis_index('{axis}')"]
        if x is not None:
            options += [
                f"lax.psum({x.name}, '{axis}')",
                f"{x.name} - lax.pmean({x.name}, '{axis}')",
                f"{x.name} * lax.axis_index('{axis}')",
                f"lax.all_gather({x.name}, '{axis}').sum(0)",
            ]
        text = self.choose(options)
        if text.startswith("lax.axis_index"):
            self.add(text, (), "i")
        elif "pmean" in text:
            self.add(text, x.shape, "f")
        else:
            self.add(text, x.shape, x.kind)

    def transformed(self, depth: int) -> None:
        """A nested function under a transformation."""
        name = self.choose(TRANSFORMATIONS.split())
        getattr(self, f"make_{name}")(depth - 1)

    def body(
        self,
        parameters: list[Variable],
        depth: int,
        results: str,
        closes: bool = True,
        axis_name: str | None = None,
    ) -> tuple[Scope, list[Variable]]:
        """A nested scope over `parameters`, and the variables it returns.

        `results` says which: 'any' two of any kind, 'float' one inexact variable,
        'scalar' the sum of an inexact one.
        """
        inner = Builder(self.draw, self.counter)
        inner.own = list(parameters)
        if closes:
            inner.outer = [*self.outer, *self.own]
            inner.axis_names = self.axis_names
        if axis_name is not None:
            inner.axis_names = (*inner.axis_names, axis_name)
        for _ in range(self.draw(st.integers(1, 3))):
            inner.step(depth)
        made = inner.own[len(parameters) :] or inner.own
        if results == "any":
            returned = made[-2:]
            text = ", ".join(v.name for v in returned) + ","
        else:
            inexact = [v for v in inner.own if v.kind == "f"]
            returned = inexact[-1:]
            text = returned[0].name
            if results == "scalar":
                text = f"jnp.sum({text})"
        return Scope(tuple(parameters), tuple(inner.statements), text), returned

    def parameters_like(self, variables: list[Variable]) -> list[Variable]:
        return [self.fresh(v.shape, v.kind) for v in variables]

    def add_nested(
        self,
        body: Scope,
        text: str,
        results: list[tuple[Shape, str]],
        decorate: tuple[str, ...] = (),
        trailing_comma: bool = False,
    ) -> None:
        self.counter[0] += 1
        name = f"f{self.counter[0]}"
        targets = tuple(self.fresh(shape, kind) for shape, kind in results)
        left = ", ".join(target.name for target in targets)
        if trailing_comma:
            left += ","
        decorate = tuple(line.replace("FUN", name) for line in decorate)
        statement = f"{left} = {text.replace('FUN', name)}"
        self.statements.append(Nested(name, body, decorate, statement, targets))
        self.own += targets

    def inexact_operands(self, count: int) -> list[Variable]:
        """Up to `count` inexact variables, always one."""
        first = self.operand(lambda v: v.kind == "f")
        if first is None:
            self.add("jnp.float32(0.5)", (), "f")
            first = self.own[-1]
        chosen = [first]
        while len(chosen) < count and self.choose([True, False]):
            chosen.append(self.operand(lambda v: v.kind == "f"))
        return chosen

    def make_jit(self, depth: int) -> None:
        operands = [self.operand() for _ in range(self.draw(st.integers(1, 2)))]
        parameters = self.parameters_like(operands)
        body, returned = self.body(parameters, depth, "any")
        names = ", ".join(v.name for v in operands)
        option = self.choose(["", "", ", inline=True", ", keep_unused=True"])
        self.add_nested(
            body,
            f"jax.jit(FUN{option})({names})",
            [(v.shape, v.kind) for v in returned],
            trailing_comma=True,
        )

    def make_grad(self, depth: int) -> None:
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, _ = self.body(parameters, depth, "scalar")
        names = ", ".join(v.name for v in operands)
        argnums = len(operands) - 1
        shape = operands[argnums].shape
        self.add_nested(body, f"jax.grad(FUN, {argnums})({names})", [(shape, "f")])

    def make_value_and_grad(self, depth: int) -> None:
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, _ = self.body(parameters, depth, "scalar")
        names = ", ".join(v.name for v in operands)
        text = f"jax.value_and_grad(FUN)({names})"
        self.add_nested(body, text, [((), "f"), (operands[0].shape, "f")])

    def make_jvp(self, depth: int) -> None:
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, (out,) = self.body(parameters, depth, "float")
        primals = ", ".join(v.name for v in operands)
        tangents = ", ".join(f"{v.name} * 0.5" for v in operands)
        text = f"jax.jvp(FUN, ({primals},), ({tangents},))"
        self.add_nested(body, text, [(out.shape, "f"), (out.shape, "f")])

    def make_vjp(self, depth: int) -> None:
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, _ = self.body(parameters, depth, "float")
        names = ", ".join(v.name for v in operands)
        text = f"(lambda out, pull: pull(out))(*jax.vjp(FUN, {names}))"
        results = [(v.shape, "f") for v in operands]
        self.add_nested(body, text, results, trailing_comma=True)

    def make_linearize(self, depth: int) -> None:
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, (out,) = self.body(parameters, depth, "float")
        names = ", ".join(v.name for v in operands)
        tangents = ", ".join(f"{v.name} * 0.5" for v in operands)
        text = (
            f"(lambda out, lin: (out, lin({tangents})))(*jax.linearize(FUN, {names}))"
        )
        self.add_nested(body, text, [(out.shape, "f"), (out.shape, "f")])

    def make_vmap(self, depth: int) -> None:
        mapped = self.operand(lambda v: v.shape)
        if mapped is None:
            return self.make_jit(depth)
        axis = self.choose(range(len(mapped.shape)))
        operands, axes = [mapped], [axis]
        if self.choose([True, False]):
            other = self.operand()
            operands.append(other)
            same = other.shape and other.shape[0] == mapped.shape[axis]
            axes.append(0 if same and self.choose([True, False]) else None)
        parameters = [
            self.fresh(_without(v.shape, a), v.kind) for v, a in zip(operands, axes)
        ]
        self.counter[0] += 1
        axis_name = f"i{self.counter[0]}" if self.choose([True, False]) else None
        body, returned = self.body(parameters, depth, "any", axis_name=axis_name)
        size = mapped.shape[axis]
        shapes = [(size, *v.shape) for v in returned]
        if not all(shape in SHAPES for shape in shapes):
            return self.make_jit(depth)
        names = ", ".join(v.name for v in operands)
        named = "" if axis_name is None else f", axis_name='{axis_name}'"
        text = f"jax.vmap(FUN, in_axes={tuple(axes)}{named})({names})"
        results = [(shape, v.kind) for shape, v in zip(shapes, returned)]
        self.add_nested(body, text, results, trailing_comma=True)

    def make_custom_jvp(self, depth: int) -> None:
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, (out,) = self.body(parameters, 0, "float", closes=False)
        names = ", ".join(v.name for v in operands)
        decorate = (
            "FUN_custom = jax.custom_jvp(FUN)",
            "FUN_custom.defjvp(lambda p, t: jax.jvp(FUN, p, t))",
        )
        self.add_nested(body, f"FUN_custom({names})", [(out.shape, "f")], decorate)

    def make_custom_vjp(self, depth: int) -> None:
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, (out,) = self.body(parameters, 0, "float", closes=False)
        names = ", ".join(v.name for v in operands)
        decorate = (
            "FUN_custom = jax.custom_vjp(FUN)",
            "FUN_custom.defvjp(lambda *x: (FUN(*x), x),"
            " lambda x, ct: jax.vjp(FUN, *x)[1](ct))",
        )
        self.add_nested(body, f"FUN_custom({names})", [(out.shape, "f")], decorate)

    def make_jacobian(self, depth: int) -> None:
        operand = self.inexact_operands(1)[0]
        (parameter,) = self.parameters_like([operand])
        body, (out,) = self.body([parameter], depth, "float")
        shape = (*out.shape, *operand.shape)
        if shape not in SHAPES:
            return self.make_grad(depth)
        mode = self.choose(["jacfwd", "jacrev"])
        self.add_nested(body, f"jax.{mode}(FUN)({operand.name})", [(shape, "f")])


def _joint(first: Shape, second: Shape) -> bool:
    try:
        return np.broadcast_shapes(first, second) in SHAPES
    except ValueError:
        return False


def _without(shape: Shape, axis: int | None) -> Shape:
    return shape if axis is None else shape[:axis] + shape[axis + 1 :]


@st.composite
def random_programs(draw: Callable[[Any], Any]) -> RandomProgram:
    """A program of a few statements, with functions nested up to three deep."""
    builder = Builder(draw, [0])
    arguments = []
    call = draw(st.sampled_from(["program", "jax.jit(program)", "jax.jit(program)"]))
    enable_x64 = draw(st.sampled_from([False, False, False, True]))
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from("fffib"))
        shape = draw(st.sampled_from(SHAPES))
        variable = builder.fresh(shape, kind)
        builder.own.append(variable)
        arguments.append(_argument(draw, variable, call, enable_x64))
    parameters = tuple(builder.own)
    for _ in range(draw(st.integers(3, 8))):
        builder.step(draw(st.integers(0, 2)))
    results = builder.own[len(parameters) :] or builder.own
    text = ", ".join(v.name for v in results[-4:]) + ","
    scope = Scope(parameters, tuple(builder.statements), text)
    return RandomProgram(scope, tuple(arguments), call, enable_x64)


def _argument(
    draw: Callable[[Any], Any], variable: Variable, call: str, enable_x64: bool
) -> str:
    """The text of an argument: an array or a Python scalar; NumPy's only under jit."""
    shape, kind = variable.shape, variable.kind
    if not shape and draw(st.booleans()):
        return {"f": "0.7", "i": "2", "b": "True"}[kind]
    size = int(np.prod(shape))
    phase = draw(st.integers(0, 3))
    if kind == "b":
        dtype, values = "bool", [bool((k + phase) % 2) for k in range(size)]
    elif kind == "i":
        dtype, values = "np.int32", [(3 * k + phase) % 5 - 1 for k in range(size)]
    else:
        name = draw(st.sampled_from((*FLOATS, "float64") if enable_x64 else FLOATS))
        dtype = "ml_dtypes.bfloat16" if name == "bfloat16" else f"np.{name}"
        values = [((7 * k + 3 * phase) % 11) / 8 - 0.6 for k in range(size)]
    maker = "jnp.array"
    if call != "program":
        maker = draw(st.sampled_from(["np.array", "jnp.array"]))
    return f"{maker}({[round(v, 3) for v in values]}, {dtype}).reshape({shape})"
