"""A training step of two billion parameters, compiled for machines that nobody has.

    python book/scale.py

traces the step with shapes alone, compiles it for eight H100s and for slices of TPUs
under four layouts, and writes `book/scale/`: a recording for each machine, which
`see.open` opens. It needs the extras `minijax[h100]` and `minijax[tpu]`, some ten
minutes, and no device. The book's page is made of these files alone.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import lax
from minijax.backend import targets
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

HERE = Path(__file__).resolve().parent
SCALE = HERE / "scale"


@dataclasses.dataclass(frozen=True)
class Size:
    """A transformer and its batch: `batch` sequences of `tokens` tokens."""

    layers: int = 40
    width: int = 2048
    heads: int = 16
    words: int = 50304
    tokens: int = 1024
    batch: int = 64
    parts: int = 16  # into which the pipeline cuts the batch
    scanned: bool = True  # one program for all layers, or each written out

    def shapes(self) -> dict[str, Any]:
        """The shapes of all parameters; those of layers are stacked."""
        n, d, h = self.layers, self.width, self.heads
        return {
            "embed": (self.words, d),
            "layers": {
                "norm1": (n, d),
                "norm2": (n, d),
                "q": (n, d, h, d // h),
                "k": (n, d, h, d // h),
                "v": (n, d, h, d // h),
                "out": (n, h, d // h, d),
                "up": (n, d, 4 * d),
                "down": (n, 4 * d, d),
            },
        }

    @property
    def parameters(self) -> int:
        """How many parameters there are."""
        layers = self.shapes()["layers"].values()
        return self.words * self.width + sum(int(np.prod(shape)) for shape in layers)


# Along which axis of the mesh each dimension of a parameter is cut.
CUTS: dict[str, tuple] = {
    "embed": ("model", "data"),
    "norm1": ("stage",),
    "norm2": ("stage",),
    "q": ("stage", "data", "model"),
    "k": ("stage", "data", "model"),
    "v": ("stage", "data", "model"),
    "out": ("stage", "model", None, "data"),
    "up": ("stage", "data", "model"),
    "down": ("stage", "model", "data"),
}


@dataclasses.dataclass(frozen=True)
class Layout:
    """How the step is spread over a mesh: by its axes "data", "model" and "stage".

    `sharded` cuts the parameters along "data" too; each layer's are gathered for use.
    """

    mesh: Mesh
    sharded: bool = False

    def spec(self, name: str, gathered: bool = False) -> P:
        """How a parameter is cut; `gathered` as one layer computes with it."""
        cut = CUTS[name]
        if gathered and name != "embed":
            cut = cut[1:]
        there = set(self.mesh.axis_names)
        if gathered or not self.sharded:
            there.discard("data")
        return P(*(axis if axis in there else None for axis in cut))

    def batch_axes(self, *more: str) -> tuple[str, ...]:
        """The axes that the batch is cut along."""
        wanted = (*more, "data")
        return tuple(axis for axis in wanted if axis in self.mesh.axis_names)

    def cut(self, x: Any, spec: P) -> Any:
        """Says how a value is cut; inside a stage only its other axes are said."""
        return lax.with_sharding_constraint(x, NamedSharding(self.mesh, spec))

    def weight(self, weights: dict[str, Any], name: str, dtype: Any) -> Any:
        """A layer's weights as they are multiplied: rounded, then gathered."""
        rounded = weights[name].astype(dtype)
        if not self.sharded:
            return rounded
        return self.cut(rounded, self.spec(name, gathered=True))


def normalized(x: Any, gain: Any) -> Any:
    wide = x.astype(jnp.float32)
    scale = lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return (wide * scale * gain).astype(x.dtype)


def layer(layout: Layout, x: Any, weights: dict[str, Any]) -> Any:
    """Attention and an MLP of one layer; x is [batch, tokens, width]."""

    def weight(name: str) -> Any:
        return layout.weight(weights, name, x.dtype)

    h = normalized(x, weights["norm1"])
    q, k, v = (jnp.einsum("bsd,dhe->bshe", h, weight(name)) for name in "qkv")
    scores = jnp.einsum("bqhe,bkhe->bhqk", q, k).astype(jnp.float32)
    before = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    scores = jnp.where(before, scores / np.sqrt(q.shape[-1]).astype("f"), -1e30)
    shares = minijax.nn.softmax(scores, axis=-1).astype(x.dtype)
    mixed = jnp.einsum("bhqk,bkhe->bqhe", shares, v)
    x = x + jnp.einsum("bqhe,hed->bqd", mixed, weight("out"))
    h = normalized(x, weights["norm2"])
    return x + minijax.nn.gelu(h @ weight("up")) @ weight("down")


def run_layers(layout: Layout, size: Size, x: Any, weights: dict[str, Any]) -> Any:
    """All layers; of each its input is kept, the rest is computed again."""
    axes = layout.batch_axes()
    staged = "stage" in layout.mesh.axis_names

    @minijax.checkpoint
    def one(x: Any, weights: dict[str, Any]) -> tuple[Any, None]:
        if axes and not staged:
            x = layout.cut(x, P(axes))
        return layer(layout, x, weights), None

    if size.scanned:
        return lax.scan(one, x, weights)[0]
    for number in range(size.layers):
        x, _ = one(x, minijax.tree.map(lambda w: w[number], weights))  # noqa: B023
    return x


def run_stages(layout: Layout, size: Size, x: Any, weights: dict[str, Any]) -> Any:
    """The layers in stages: the parts of the batch move through them one by one."""
    stages = layout.mesh.shape["stage"]
    parts = x.reshape(size.parts, -1, *x.shape[1:])
    if axes := layout.batch_axes():
        # Each part is cut; else a device would hold some of the parts.
        parts = layout.cut(parts, P(None, axes))

    def stage(weights: dict[str, Any], parts: Any) -> Any:
        first = lax.axis_index("stage") == 0
        to_next = [(n, n + 1) for n in range(stages - 1)]

        def turn(arrived: Any, number: Any) -> tuple[Any, Any]:
            given = parts[jnp.minimum(number, size.parts - 1)]
            made = run_layers(layout, size, jnp.where(first, given, arrived), weights)
            return lax.ppermute(made, "stage", to_next), made

        nothing = lax.pcast(jnp.zeros_like(parts[0]), "stage", to="varying")
        turns = jnp.arange(size.parts + stages - 1)
        return lax.scan(turn, nothing, turns)[1][stages - 1 :]

    made = minijax.shard_map(
        stage,
        mesh=layout.mesh,
        in_specs=(P("stage"), P()),
        out_specs=P("stage"),
        axis_names={"stage"},
    )(weights, parts)
    # What the last stage made; all devices then share the work of the loss.
    return made[-size.parts :].reshape(x.shape)


def loss_of(layout: Layout, size: Size, params: Any, tokens: Any) -> Any:
    """The mean surprise at the next token."""
    staged = "stage" in layout.mesh.axis_names
    embed = layout.weight(params, "embed", jnp.bfloat16)
    x = embed[tokens[:, :-1]]
    axes = layout.batch_axes()
    x = layout.cut(x, P(axes)) if axes else x
    run = run_stages if staged else run_layers
    x = run(layout, size, x, params["layers"])
    axes = layout.batch_axes("stage") if staged else axes
    x = layout.cut(x, P(axes)) if axes else x
    logits = (x @ embed.T).astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, tokens[:, 1:, None], -1)[..., 0]
    return jnp.mean(minijax.nn.logsumexp(logits, axis=-1) - chosen)


def training_step(layout: Layout, size: Size) -> Callable[..., Any]:
    """The jitted step: a gradient and Adam; it takes over its parameters' memory."""

    def step(params: Any, mean: Any, square: Any, tokens: Any) -> Any:
        loss, slopes = minijax.value_and_grad(
            lambda params: loss_of(layout, size, params, tokens)
        )(params)
        mean = minijax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slopes)
        square = minijax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, square, slopes)
        params = minijax.tree.map(
            lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, mean, square
        )
        return params, mean, square, loss

    cut = shardings(layout, size)
    return minijax.jit(
        step,
        donate_argnums=(0, 1, 2),
        out_shardings=(cut, cut, cut, NamedSharding(layout.mesh, P())),
    )


def shardings(layout: Layout, size: Size) -> dict[str, Any]:
    """The sharding of each parameter."""
    shapes = size.shapes()
    named = {name: NamedSharding(layout.mesh, layout.spec(name)) for name in CUTS}
    return {
        "embed": named["embed"],
        "layers": {name: named[name] for name in shapes["layers"]},
    }


def plan(layout: Layout, size: Size) -> tuple[Any, ...]:
    """The step and its arguments, as shapes: nothing is allocated."""

    def typed(shape: tuple[int, ...], sharding: Any) -> Any:
        return minijax.ShapeDtypeStruct(shape, np.float32, sharding=sharding)

    shapes, cut = size.shapes(), shardings(layout, size)
    params = {
        "embed": typed(shapes["embed"], cut["embed"]),
        "layers": {
            name: typed(shape, cut["layers"][name])
            for name, shape in shapes["layers"].items()
        },
    }
    axes = layout.batch_axes()
    tokens = minijax.ShapeDtypeStruct(
        (size.batch, size.tokens + 1),
        np.int32,
        sharding=NamedSharding(layout.mesh, P(axes or None)),
    )
    return training_step(layout, size), params, params, params, tokens


def layouts(devices: Any, model: int, stages: int) -> dict[str, Layout]:
    """The four layouts on the same devices.

    `model` devices share each multiplication, `stages` are those of the pipeline; what
    is left over is the axis "data".
    """
    flat = np.array(devices)

    def mesh(name: str, along: int) -> Mesh:
        if along == flat.size:
            return Mesh(flat, (name,))
        return Mesh(flat.reshape(-1, along), ("data", name))

    whole = Mesh(flat, ("data",))
    return {
        "data": Layout(whole),
        "fully sharded": Layout(whole, sharded=True),
        "tensor": Layout(mesh("model", model), sharded=model < flat.size),
        "pipeline": Layout(mesh("stage", stages)),
    }


# The machines: target, sequences in a batch, model and stage axes, parts of a batch.
MACHINES = {
    "h100": ("h100:8", 64, 8, 8, 16),
    "tpu-16": ("tpu-v5e:4x4", 64, 16, 8, 16),
    "tpu-256": ("tpu-v5e:16x16", 256, 16, 8, 8),
}
DEPTHS = (5, 10, 20, 40)
WRITTEN_OUT = (5, 20, 40)


def record(name: str) -> see.ScaleView:
    """Compiles all layouts for a machine, or for "depth" one of them at many depths."""
    if name == "depth":
        return depths()
    target, batch, model, stages, parts = MACHINES[name]
    devices = targets.find(target).all_devices
    size = Size(batch=batch, parts=parts)
    found = layouts(devices, model, stages)
    plans = {title: plan(layout, size) for title, layout in found.items()}
    return see.scale(plans, target=target)


def depths() -> see.ScaleView:
    """The fully sharded step with more and more layers, scanned and written out."""
    layout = layouts(targets.find("h100:8").all_devices, 8, 8)["fully sharded"]
    plans = {}
    for scanned, numbers in ((True, DEPTHS), (False, WRITTEN_OUT)):
        for number in numbers:
            size = Size(layers=number, scanned=scanned)
            how = "one scan" if scanned else "written out"
            plans[f"{number} layers, {how}"] = plan(layout, size)
    # What is loaded and made once in a process is not counted to the first.
    see.scale(*plan(layout, Size(layers=2)), target="h100:8")
    return see.scale(plans, target="h100:8")


def path_of(name: str) -> Path:
    """The file of a recording."""
    return SCALE / f"{name}.json.gz"


PAGE = """\
---
html_theme.sidebar_secondary.remove: true
---

# Scale, on paper

What would a training step do on eight H100s, or on 256 chips of a TPU? The step below
is that of a transformer with {parameters:.2f} billion parameters: {layers} layers of
width {width}, a gradient and Adam in float32, products in bfloat16, each layer computed
again in the backward pass. It was compiled ahead of time, on a laptop, by the vendors'
own compilers, from shapes alone: no parameter was ever allocated.

- **data**: each device has all parameters, and a part of the batch;
- **fully sharded**: parameters are cut too, and gathered a layer at a time;
- **tensor**: each product is cut over devices; on 256 chips over 16, and fully sharded
  over the others;
- **pipeline**: each device has some of the layers, and parts of the batch pass through.

How to read the bars: *memory* and *sent* are the compiled program's, a device's share;
what is sent is what a ring needs. *Seconds* are modelled from a roofline and are the
least that is possible: products and other kernels by what bounds them, and the links,
which may be busy meanwhile. The line is the memory of a device. *Made in* was measured,
on the laptop. All of it is one call, on your own function:

```python
see.scale({{"data": (step, params, mean, square, tokens), ...}}, target="tpu-v5e:16x16")
```

"""

TITLES = {
    "h100": "Eight H100s",
    "tpu-16": "Sixteen chips of a TPU v5e",
    "tpu-256": "256 chips of a TPU v5e",
    "depth": "Deeper, and how long it takes to compile",
}
DEEPER = """\
One `scan` over the layers is one program however many there are: tracing, lowering and
compiling take as long for {most} layers as for {least}. Written out one after another
they take longer with each layer.

"""


def page(raw: Callable[[Any], str]) -> str:
    """The page, made of the recordings."""
    size = Size()
    parts = [
        PAGE.format(
            parameters=size.parameters / 1e9, layers=size.layers, width=size.width
        )
    ]
    for name, title in TITLES.items():
        parts.append(f"## {title}\n\n")
        if name == "depth":
            parts.append(DEEPER.format(most=DEPTHS[-1], least=DEPTHS[0]))
        parts.append(raw(see.open(path_of(name))) + "\n")
    parts.append(
        "Made by `python book/scale.py`. XLA for GPUs has taken `h100:1024` and libtpu "
        "`tpu-v5p:16x16x16`, 4,096 chips, in a quarter of a minute; a side of a slice "
        "of v5e has at most 16 chips. Another version of XLA gives other programs.\n"
    )
    return "".join(parts)


if __name__ == "__main__":
    SCALE.mkdir(exist_ok=True)
    for name in sys.argv[1:] or [*MACHINES, "depth"]:
        view = record(name)
        view.save(path_of(name))
        print(view.text(full=True), flush=True)
