"""The programs by which the learner's `tiny` is scored, chapter by chapter.

Each is written once, over a namespace of functions: `Tiny` gives the learner's own, and
`Real` gives those of a module that is JAX or has its names.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from minijax_lab.tiny_kernels import KERNELS

SMALL = np.array([0.5, 1.5, 2.0], np.float32)
OTHER = np.array([1.0, -0.5, 0.25], np.float32)
MATRIX = np.array([[0.1, 0.2, -0.3], [0.4, -0.5, 0.6]], np.float32)
WIDE = np.arange(12, dtype=np.float32).reshape(4, 3) / 10
BLOCK = np.arange(32, dtype=np.float32).reshape(8, 4) / 10
SQUARE = np.arange(16, dtype=np.float32).reshape(4, 4) / 10
BOX = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 10
NUMBER = np.float32(0.7)
DEFAULT = (SMALL,)


class Modules:
    """The modules of the `tiny` that is tried, as attributes."""

    def __getattr__(self, name: str) -> Any:
        return importlib.import_module(f"tiny.{name}")


tiny: Any = Modules()


class Tiny:
    """The functions of the learner's `tiny`, by the names that the programs use."""

    def __init__(self) -> None:
        for name in (
            "tree",
            "threefry",
            "trace",
            "operations",
            "tangents",
            "linearize",
            "transposes",
        ):
            self.__dict__.update(vars(importlib.import_module(f"tiny.{name}")))
        for name in (
            *("batching", "nesting", "loops", "loop_rules", "custom", "fuser"),
            *("export", "placed", "collectives", "kernels", "attention"),
            *("recurrence", "intervals"),
        ):
            self.__dict__.update(vars(importlib.import_module(f"tiny.{name}")))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no {name} in tiny")

    def gt(self, x: Any, y: Any) -> Any:
        return self.__dict__["bind"]("gt", x, y)

    def fused(self, function: Callable[..., Any], *args: Any) -> Any:
        """Returns what a function gives that runs kernel by kernel, in blocks of 2."""
        if any(isinstance(arg, self.__dict__["Tracer"]) for arg in args):
            return function(*args)  # kernels compute with numbers
        program = self.__dict__["trace"](function, *args)
        return importlib.import_module("tiny.fuser").run(program, list(args), rows=2)

    def pieces(self, x: Any, mesh: dict[str, int], *spec: Any) -> list[Any]:
        """Returns the pieces of an array, in the order of the devices."""
        return self.__dict__["cut"](x, mesh, spec)

    def by_devices(self, name: str, x: Any) -> Any:
        """Returns what a collective gives, with a row of `x` on each device."""
        if not isinstance(x, self.__dict__["Tracer"]):
            return np.stack(self.__dict__[name](list(x)))
        # Messages are arrays of numbers; a tracer gets what they come to.
        rows, width = x.shape
        if name == "all_gather":
            flat = self.__dict__["reshape"](x, rows * width)
            return self.__dict__["broadcast"](flat, (rows, rows * width), (1,))
        total = self.__dict__["sum"](x, 0)
        if name == "reduce_scatter":
            return self.__dict__["reshape"](total, rows, width // rows)
        return self.__dict__["broadcast"](total, x.shape, (1,))

    def product_by_pieces(self, x: Any, w: Any) -> Any:
        """Returns a product of matrices that eight devices compute."""
        mesh = {"x": 4, "y": 2}
        specs = [("x", "y"), ("y",)]
        dot = self.__dict__["dot"]
        if isinstance(x, self.__dict__["Tracer"]):
            return dot(x, w)  # pieces are put together in an array of numbers
        found = self.__dict__["spread"](dot, mesh, specs, (x, w), summed="y")
        shape = (x.shape[0], w.shape[1])
        return self.__dict__["put_together"](found, mesh, ("x",), shape)

    def softmax(self, x: Any, size: int) -> Any:
        """Returns a softmax whose first pass sees `size` numbers at a time."""
        if isinstance(x, self.__dict__["Tracer"]):
            e, call = self.__dict__["exp"](x), self.__dict__
            return e / call["broadcast"](call["sum"](e, 0), x.shape, ())
        return self.__dict__["softmax_by_parts"](x, size)

    def attention(self, q: Any, k: Any, v: Any, rows: int) -> Any:
        """Returns the attention of blocks of `rows` queries and keys."""
        call = self.__dict__
        if not isinstance(q, call["Tracer"]):
            return call["flash_attention"](q, k, v, rows)
        scores = call["dot"](q, call["transpose"](k, (1, 0)))
        e = call["exp"](scores * float(1 / np.sqrt(q.shape[1])))
        weights = call["broadcast"](call["sum"](e, 1), e.shape, (0,))
        return call["dot"](e / weights, v)

    def by_blocks(self, name: str, *arrays: Any) -> Any:
        """Returns what a kernel gives, run over its grid."""
        if any(isinstance(x, self.__dict__["Tracer"]) for x in arrays):
            return KERNELS[name].whole(self, *arrays)  # kernels write in arrays
        made, call = KERNELS[name], self.__dict__
        kernel = made.kernel(np, call["program_id"], call["when"])
        specs = [call["BlockSpec"](*spec) for spec in made.specs]
        run = call["pallas_call"](kernel, made.shape, made.grid, specs[:-1], specs[-1])
        return run(*arrays)

    def recur(self, a: Any, x: Any, reverse: bool = False) -> Any:
        """Returns y[t] = a[t] * y[t-1] + x[t] along the last axis."""
        return self.bind("recur", a, x, reverse=reverse)

    def kept(self, function: Callable[..., Any], *args: Any) -> Any:
        """Returns what comes back after the function was saved in a file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program"
            self.__dict__["save"](self.__dict__["exported"](function, *args), path)
            return self.__dict__["load"](path)


class Real:
    """The same names, by a module that is JAX, or one that has its names."""

    exp: Callable[[Any], Any]

    def __init__(self, jax: Any) -> None:
        numpy = importlib.import_module(f"{jax.__name__}.numpy")
        self.jax, lax = jax, importlib.import_module(f"{jax.__name__}.lax")
        for name in ("sin", "cos", "exp", "log", "tanh", "sqrt"):
            setattr(self, name, getattr(lax, name))
        self.sum, self.max, self.where = numpy.sum, numpy.max, numpy.where
        self.maximum, self.dot, self.gt = lax.max, numpy.dot, lax.gt
        self.reshape = lambda x, *shape: numpy.reshape(x, shape)
        self.transpose = numpy.transpose
        self.jvp, self.grad, self.vmap = jax.jvp, jax.grad, jax.vmap
        self.value_and_grad, self.remat = jax.value_and_grad, jax.checkpoint
        self.jacfwd, self.jacrev = jax.jacfwd, jax.jacrev
        self.cond, self.scan = lax.cond, lax.scan
        self.stop_gradient = lax.stop_gradient

    def hvp(self, function: Callable[..., Any], x: Any, v: Any) -> Any:
        """Returns the Hessian times a vector, forward over reverse."""
        return self.jax.jvp(self.jax.grad(function), (x,), (v,))[1]

    def custom_vjp(self, function: Any, forward: Any, back: Any) -> Any:
        """Returns the function with a way back of its own."""
        made = self.jax.custom_vjp(function)
        made.defvjp(forward, back)
        return made

    def fused(self, function: Callable[..., Any], *args: Any) -> Any:
        """Returns the function's results as a list: the same numbers, however run."""
        return self.jax.tree_util.tree_leaves(function(*args))

    def pieces(self, x: Any, mesh: dict[str, int], *spec: Any) -> list[Any]:
        """Returns the pieces of an array, in the order of the devices."""
        sharding = importlib.import_module(f"{self.jax.__name__}.sharding")
        devices = self.jax.make_mesh(tuple(mesh.values()), tuple(mesh))
        named = sharding.NamedSharding(devices, sharding.PartitionSpec(*spec))
        where = named.devices_indices_map(x.shape)
        return [x[where[device]] for device in devices.devices.flat]

    def by_devices(self, name: str, x: Any) -> Any:
        """Returns what a collective gives, with a row of `x` on each example."""
        lax = importlib.import_module(f"{self.jax.__name__}.lax")
        functions = {
            "all_reduce": lambda row: lax.psum(row, "i"),
            "reduce_scatter": lambda row: lax.psum_scatter(row, "i", tiled=True),
            "all_gather": lambda row: lax.all_gather(row, "i", tiled=True),
        }
        return self.jax.vmap(functions[name], axis_name="i")(x)

    def product_by_pieces(self, x: Any, w: Any) -> Any:
        """Returns the product of matrices."""
        return self.dot(x, w)

    def softmax(self, x: Any, size: int) -> Any:
        """Returns a softmax."""
        e = self.exp(x - self.max(x))
        return e / self.sum(e)

    def attention(self, q: Any, k: Any, v: Any, rows: int) -> Any:
        """Returns softmax(q k^T / sqrt(width)) v."""
        scores = self.dot(q, k.T) / np.float32(np.sqrt(q.shape[1]))
        e = self.exp(scores - self.max(scores, 1)[:, None])
        return self.dot(e / self.sum(e, 1)[:, None], v)

    def recur(self, a: Any, x: Any, reverse: bool = False) -> Any:
        """Returns y[t] = a[t] * y[t-1] + x[t] along the last axis, by a loop."""
        numpy = importlib.import_module(f"{self.jax.__name__}.numpy")

        def step(before: Any, now: Any) -> Any:
            y = now[0] * before + now[1]
            return y, y

        steps = numpy.moveaxis(a, -1, 0), numpy.moveaxis(x, -1, 0)
        start = numpy.zeros_like(x[..., 0])
        return numpy.moveaxis(self.scan(step, start, steps, reverse=reverse)[1], 0, -1)

    def by_blocks(self, name: str, *arrays: Any) -> Any:
        """Returns what a kernel gives, run over its grid."""
        pl = importlib.import_module(f"{self.jax.__name__}.experimental.pallas")
        numpy = importlib.import_module(f"{self.jax.__name__}.numpy")
        made = KERNELS[name]
        specs = [pl.BlockSpec(*spec) for spec in made.specs]
        call = pl.pallas_call(
            made.kernel(numpy, pl.program_id, pl.when),
            self.jax.ShapeDtypeStruct(made.shape, np.float32),
            grid=made.grid,
            in_specs=specs[:-1],
            out_specs=specs[-1],
            interpret=True,
        )
        return call(*arrays)

    def kept(self, function: Callable[..., Any], *args: Any) -> Any:
        """Returns the function as exported for arguments of these types."""
        export = importlib.import_module(f"{self.jax.__name__}.export")
        types = [self.jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args]
        return export.export(self.jax.jit(function))(*types).call

    def text(self, function: Callable[..., Any], *args: Any) -> str:
        """Returns what tracing writes."""
        return str(self.jax.make_jaxpr(function)(*args))


@dataclass(frozen=True)
class TinyProgram:
    """A line to show, the function of a namespace and arguments, and the arguments.

    `text` says whether what tracing writes is held to JAX's, letter for letter.
    """

    line: str
    function: Callable[..., Any]
    args: tuple[Any, ...] = DEFAULT
    text: bool = True


P = TinyProgram


def network(m: Any, params: Any, x: Any) -> Any:
    """Two layers, as in chapter 00."""
    hidden = m.tanh(m.dot(x, params["a"]) + params["b"])
    return m.sum(hidden * hidden)


def halves(m: Any, x: Any) -> Any:
    """A loop whose carry is multiplied by what comes from outside."""
    start = x * 0.5

    def step(carry: Any, row: Any) -> Any:
        carry = m.sin(carry) * x + row
        return carry, carry * row

    return m.scan(step, start, WIDE)


def softplus(m: Any) -> Any:
    """log(1 + exp(x)), with a derivative that does not overflow."""
    return m.custom_vjp(
        lambda x: m.log(1.0 + m.exp(x)),
        lambda x: (m.log(1.0 + m.exp(x)), x),
        lambda x, c: (c / (1.0 + m.exp(-x)),),
    )


def soft(m: Any) -> Any:
    """The softmax of a vector."""
    return lambda x: m.exp(x - m.max(x)) / m.sum(m.exp(x - m.max(x)))


def branch(m: Any, x: Any, y: Any) -> Any:
    """A branch that uses a tracer from outside."""
    return m.cond(m.gt(x, 0.5), lambda x: m.sin(x) * y, lambda x: x + 1.0, x)


TREE = {"a": WIDE.T[:, :2] + 0.5, "b": np.array([0.3, -0.2], np.float32)}

PROGRAMS: dict[str, list[TinyProgram]] = {
    "02": [
        P("x + x", lambda m, x: x + x),
        P("x * 2.0", lambda m, x: x * 2.0),
        P("x / 4.0", lambda m, x: x / 4.0),
        P("1.0 / x", lambda m, x: 1.0 / x),
        P("x * x + x", lambda m, x: x * x + x),
        P("(x + 1.0) * (x + 2.0)", lambda m, x: (x + 1.0) * (x + 2.0)),
        P("x * x * x", lambda m, x: x * x * x),
        P("x / (x + 1.0)", lambda m, x: x / (x + 1.0)),
        P("2.0 * x", lambda m, x: 2.0 * x),
        P("1.0 + x", lambda m, x: 1.0 + x),
        P("x - 1.0", lambda m, x: x - 1.0),
        P("1.0 - x", lambda m, x: 1.0 - x),
        P("-x", lambda m, x: -x),
        P("x ** 2", lambda m, x: x**2),
        P("x * row", lambda m, x: x * OTHER),
        P("two results", lambda m, x, y: (x * y, x - y), (SMALL, OTHER)),
    ],
    "04": [
        P("a dict in", lambda m, p: p["a"] * p["b"], ({"a": SMALL, "b": OTHER},)),
        P("a dict out", lambda m, x: {"b": x, "a": (x * x, None)}),
        P(
            "lists of tuples",
            lambda m, p: [(x * y, y) for x, y in p],
            ([(SMALL, OTHER)],),
        ),
    ],
    "06": [
        P(
            "jvp of sin(x) * x",
            lambda m, x, t: m.jvp(lambda x: m.sin(x) * x, (x,), (t,)),
        ),
        P(
            "jvp of exp(x) / x",
            lambda m, x, t: m.jvp(lambda x: m.exp(x) / x, (x,), (t,)),
        ),
        P("jvp of tanh", lambda m, x, t: m.jvp(m.tanh, (x,), (t,))),
        P("jvp of log", lambda m, x, t: m.jvp(m.log, (x,), (t,))),
        P("jvp of cos", lambda m, x, t: m.jvp(m.cos, (x,), (t,))),
        P("jvp of x ** 3", lambda m, x, t: m.jvp(lambda x: x**3, (x,), (t,))),
        P(
            "jvp of sum(x * x)",
            lambda m, x, t: m.jvp(lambda x: m.sum(x * x), (x,), (t,)),
        ),
        P(
            "jvp of a dot",
            lambda m, x, t: m.jvp(lambda x: m.dot(MATRIX, x), (x,), (t,)),
        ),
        P(
            "jvp at a tie of max",
            lambda m, x, t: m.jvp(lambda x: m.maximum(x, OTHER + 1.0), (x,), (t,)),
            text=False,
        ),
        P(
            "jvp of jvp",
            lambda m, x, t: m.jvp(lambda y: m.jvp(m.sin, (y,), (t,))[1], (x,), (t,)),
        ),
    ],
    "07": [
        P(
            "grad of sum(sin(x) * x)",
            lambda m, x: m.grad(lambda x: m.sum(m.sin(x) * x))(x),
            text=False,
        ),
        P("grad of x ** 3", lambda m, x: m.grad(lambda x: x**3)(x), (NUMBER,)),
        P("grad of sin", lambda m, x: m.grad(m.sin)(x), (NUMBER,)),
        P(
            "grad of tanh(x) * x",
            lambda m, x: m.grad(lambda x: m.tanh(x) * x)(x),
            (NUMBER,),
        ),
        P(
            "grad of x / (x + 1.0)",
            lambda m, x: m.grad(lambda x: x / (x + 1.0))(x),
            (NUMBER,),
        ),
        P(
            "grad of a log-softmax",
            lambda m, x: m.grad(lambda x: m.log(m.sum(m.exp(x - m.max(x)))) - x[1])(x),
            text=False,
        ),
        P(
            "grad of a network",
            lambda m, p, x: m.grad(lambda p: network(m, p, x))(p),
            (TREE, WIDE),
            text=False,
        ),
        P(
            "grad of a spread row",
            lambda m, x: m.grad(lambda x: m.sum(x * WIDE))(x),
            text=False,
        ),
        P(
            "grad of where",
            lambda m, x: m.grad(lambda x: m.sum(m.where(x > 1.0, x * x, -x)))(x),
            text=False,
        ),
    ],
    "08": [
        P("vmap of x * x", lambda m, x: m.vmap(lambda x: x * x)(x), (WIDE,)),
        P(
            "vmap of sum(x * 2.0)",
            lambda m, x: m.vmap(lambda x: m.sum(x * 2.0))(x),
            (WIDE,),
        ),
        P(
            "vmap of W @ x",
            lambda m, w, x: m.vmap(lambda w, x: m.dot(w, x), (None, 0))(w, x),
            (MATRIX, WIDE),
        ),
        P(
            "vmap of row + x",
            lambda m, x, y: m.vmap(lambda x, y: x + y, (None, 0))(x, y),
            (SMALL, WIDE),
            text=False,
        ),
        P(
            "vmap along axis 1",
            lambda m, x: m.vmap(m.sin, 1, 1)(x),
            (WIDE,),
            text=False,
        ),
        P(
            "vmap of vmap",
            lambda m, x, y: m.vmap(lambda a: m.vmap(lambda b: m.sum(a * b))(y))(x),
            (WIDE, WIDE + 1),
            text=False,
        ),
        P(
            "vmap of a softmax",
            lambda m, x: m.vmap(lambda x: m.exp(x - m.max(x)) / m.sum(m.exp(x)))(x),
            (WIDE,),
            text=False,
        ),
        P(
            "vmap of grad",
            lambda m, p, x: m.vmap(m.grad(lambda p, x: network(m, p, x)), (None, 0))(
                p, x
            ),
            (TREE, WIDE),
            text=False,
        ),
    ],
    "09": [
        P(
            "hvp",
            lambda m, x, v: m.hvp(lambda x: m.sum(m.sin(x) * x), x, v),
            text=False,
        ),
        P(
            "jacfwd",
            lambda m, x: m.jacfwd(lambda x: m.dot(MATRIX, m.sin(x)))(x),
            text=False,
        ),
        P(
            "jacrev",
            lambda m, x: m.jacrev(lambda x: m.dot(MATRIX, m.sin(x)))(x),
            text=False,
        ),
        P(
            "hessian",
            lambda m, x: m.jacfwd(m.grad(lambda x: m.sum(x * x * m.exp(x))))(x),
            text=False,
        ),
        P(
            "grad of grad",
            lambda m, x: m.grad(m.grad(lambda x: m.sin(x) * x))(x),
            (NUMBER,),
            text=False,
        ),
        P(
            "grad of vmap",
            lambda m, x: m.grad(lambda x: m.sum(m.vmap(lambda r: m.sin(r) * x)(WIDE)))(
                x
            ),
            text=False,
        ),
    ],
    "10": [
        P("cond", lambda m, x, y: branch(m, x, y), (NUMBER, 2.0), text=False),
        P(
            "grad of cond",
            lambda m, x, y: m.grad(lambda x, y: branch(m, x, y))(x, y),
            (NUMBER, NUMBER + 1),
            text=False,
        ),
        P(
            "vmap of cond",
            lambda m, x, y: m.vmap(lambda x, y: branch(m, x, y), (0, None))(x, y),
            (OTHER, NUMBER),
            text=False,
        ),
        P("scan", halves, text=False),
        P(
            "jvp of scan",
            lambda m, x, t: m.jvp(lambda x: halves(m, x), (x,), (t,)),
            text=False,
        ),
        P(
            "grad of scan",
            lambda m, x: m.grad(lambda x: m.sum(halves(m, x)[1]))(x),
            text=False,
        ),
        P(
            "vmap of scan",
            lambda m, x: m.vmap(lambda x: halves(m, x))(x),
            (WIDE,),
            text=False,
        ),
        P(
            "hvp of scan",
            lambda m, x, v: m.hvp(lambda x: m.sum(halves(m, x)[1]), x, v),
            text=False,
        ),
    ],
    "11": [
        P("custom_vjp", lambda m, x: softplus(m)(x), text=False),
        P(
            "grad of custom_vjp",
            lambda m, x: m.grad(lambda x: m.sum(softplus(m)(x * x)))(x),
            text=False,
        ),
        P(
            "vmap of grad of custom_vjp",
            lambda m, x: m.vmap(m.grad(lambda x: m.sum(softplus(m)(x))))(x),
            (WIDE,),
            text=False,
        ),
        P(
            "grad of vmap of custom_vjp",
            lambda m, x: m.grad(lambda x: m.sum(m.vmap(softplus(m))(x)))(x),
            (WIDE,),
            text=False,
        ),
        P(
            "grad of remat",
            lambda m, x: m.grad(m.remat(lambda x: m.sum(m.sin(x) * m.exp(x))))(x),
            text=False,
        ),
        P(
            "grad of remat in a scan",
            lambda m, x: m.grad(lambda x: m.sum(m.remat(lambda x: halves(m, x)[0])(x)))(
                x
            ),
            text=False,
        ),
        P(
            "vmap of grad of remat",
            lambda m, x: m.vmap(m.grad(m.remat(lambda x: m.sum(m.sin(x) * x))))(x),
            (WIDE,),
            text=False,
        ),
    ],
    "13": [
        P(
            "a fused chain",
            lambda m, x: m.fused(lambda x: m.tanh(m.sin(x) * 2.0 + x) * x, x),
            text=False,
        ),
        P("a fused softmax", lambda m, x: m.fused(soft(m), x), text=False),
        P(
            "two fused results",
            lambda m, x, w: m.fused(
                lambda x, w: (m.exp(w) * w, m.sum(m.exp(w)) + m.sin(x)), x, w
            ),
            (SMALL, WIDE),
            text=False,
        ),
        P(
            "a product between two fused parts",
            lambda m, x, w: m.fused(
                lambda x, w: m.tanh(m.dot(m.sin(w) * w, m.exp(x))) - 0.1, x, w
            ),
            (SMALL, WIDE),
            text=False,
        ),
    ],
    "14": [
        P("a saved softmax", lambda m, x: m.kept(soft(m), x)(x), text=False),
        P(
            "a saved layer",
            lambda m, x, w: m.kept(lambda x, w: m.tanh(m.dot(w, x) - 0.1) ** 2, x, w)(
                x, w
            ),
            (SMALL, WIDE),
            text=False,
        ),
        P(
            "a saved gradient",
            lambda m, x: m.kept(m.grad(lambda x: m.sum(m.sin(x) * x)), x)(x),
            text=False,
        ),
        P(
            "the gradient of what was saved",
            lambda m, x: m.grad(lambda x: m.sum(m.kept(soft(m), x)(x) * OTHER))(x),
            text=False,
        ),
    ],
    "16": [
        P(
            "rows over four devices, and their copies",
            lambda m, x: m.pieces(x, {"x": 4, "y": 2}, "x"),
            (WIDE,),
            text=False,
        ),
        P(
            "columns over the second axis",
            lambda m, x: m.pieces(x, {"x": 4, "y": 2}, None, "y"),
            (BLOCK,),
            text=False,
        ),
        P(
            "one dimension over both axes, either way round",
            lambda m, x: (
                m.pieces(x, {"x": 4, "y": 2}, ("x", "y")),
                m.pieces(x, {"x": 4, "y": 2}, ("y", "x")),
            ),
            (BLOCK,),
            text=False,
        ),
        P(
            "three dimensions on a mesh of three axes",
            lambda m, x: m.pieces(x, {"a": 2, "b": 2, "c": 2}, "b", None, ("c", "a")),
            (BOX,),
            text=False,
        ),
        P(
            "a product that eight devices compute",
            lambda m, x, w: m.product_by_pieces(x, w),
            (BLOCK, WIDE),
            text=False,
        ),
    ],
    "19": [
        P(
            "a softmax of three numbers, one by one",
            lambda m, x: m.softmax(x, 1),
            text=False,
        ),
        P(
            "a softmax of numbers that grow",
            lambda m, x: m.softmax(x, 2),
            (np.arange(6, dtype=np.float32),),
            text=False,
        ),
        *(
            P(
                f"attention in blocks of {rows}",
                lambda m, q, k, v, rows=rows: m.attention(q, k, v, rows),
                (BLOCK, BLOCK[::-1], BLOCK * BLOCK),
                text=False,
            )
            for rows in (1, 2, 4)
        ),
    ],
    "18": [
        P(
            line,
            lambda m, *args, name=name: m.by_blocks(name, *args),
            args,
            text=False,
        )
        for line, name, args in (
            ("blocks that change places", "doubled", (BLOCK,)),
            ("a softmax of each row", "softmax", (BLOCK,)),
            ("a grid of two axes", "numbered", (BLOCK,)),
            ("sums over an axis of the grid", "columns", (BLOCK,)),
            ("a product, block by block", "product", (BLOCK, WIDE)),
        )
    ],
    "17": [
        P(
            f"{name} around a ring of {rows.shape[0]}",
            lambda m, x, name=name: m.by_devices(name, x),
            (rows,),
            text=False,
        )
        for name, rows in (
            *(("all_reduce", WIDE), ("all_reduce", BLOCK), ("all_reduce", WIDE[:1])),
            *(("reduce_scatter", SQUARE), ("all_gather", WIDE)),
        )
    ],
    "21": [
        P(line, function, args, text=False)
        for line, function, args in (
            ("a recurrence", lambda m, a, x: m.recur(a, x), (OTHER, SMALL)),
            (
                "from the end, row by row",
                lambda m, a, x: m.recur(a, x, True),
                (WIDE, WIDE + 1),
            ),
            (
                "its change, both operands moving",
                lambda m, a, x: m.jvp(m.recur, (a, x), (x, a)),
                (OTHER, SMALL),
            ),
            (
                "its change if only the decay moves, from the end",
                lambda m, a, x: m.jvp(lambda a: m.recur(a, x, True), (a,), (x,)),
                (OTHER, SMALL),
            ),
            (
                "its gradients",
                lambda m, a, x: [
                    m.grad(lambda a: m.sum(m.sin(m.recur(a, x))))(a),
                    m.grad(lambda x: m.sum(m.sin(m.recur(a, x))))(x),
                ],
                (OTHER, SMALL),
            ),
            (
                "its gradient from the end",
                lambda m, a, x: m.grad(
                    lambda x: m.sum(m.sin(m.recur(a, m.sin(x), True)))
                )(x),
                (OTHER, SMALL),
            ),
            (
                "many of both, the second along its columns",
                lambda m, a, x: m.vmap(m.recur, (0, 1))(a, x),
                (WIDE, WIDE.T + 1),
            ),
            (
                "one decay for many",
                lambda m, a, x: m.vmap(m.recur, (None, 0))(a, x),
                (OTHER, WIDE),
            ),
            (
                "many decays for one",
                lambda m, a, x: m.vmap(m.recur, (1, None))(a, x),
                (WIDE.T, SMALL),
            ),
            (
                "gradients of many",
                lambda m, a, x: m.vmap(
                    m.grad(lambda x, a: m.sum(m.sin(m.recur(a, x)))), (0, None)
                )(x, a),
                (OTHER, WIDE),
            ),
        )
    ],
}
for name in ("06", "09", "10"):
    PROGRAMS[name] = [
        P(p.line, p.function, (SMALL, OTHER), p.text)
        if p.args is DEFAULT and p.function.__code__.co_argcount == 3
        else p
        for p in PROGRAMS[name]
    ]


# What JAX's text holds beyond tiny's: parameters of things that tiny does not have.
NOT_IN_TINY = (
    " out_sharding=None",
    " sharding=None",
    " preferred_element_type=float32",
)


def plain(text: str) -> str:
    """Returns a jaxpr's text on one line, without the parameters that tiny lacks."""
    line = " ".join(text.split()).replace("[ ", "[").replace(" ]", "]").replace(";", "")
    for words in NOT_IN_TINY:
        line = line.replace(words, "")
    return line.replace("np.int64(", "").replace("),)]", ",)]")
