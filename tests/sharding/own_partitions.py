"""Functions that say themselves how they are cut: `custom_partitioning`."""

from __future__ import annotations

import functools
import gc
import importlib
import json
import pathlib
import re
import tempfile

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def decorator(lib):
    module = f"{lib.name}.experimental.custom_partitioning"
    return importlib.import_module(module).custom_partitioning


def shardings(lib, tree):
    return lib.mj.tree_util.tree_map(lambda x: x.sharding, tree)


def run(lib, function, *args):
    """The result, and the collectives of the compiled program."""
    found = lib.mj.jit(function)(*args)
    return found, str(lib.collectives(function, *args))


def transform(lib, seen=None):
    """A Fourier transform along the last axis, which no device shares."""

    def partition(mesh, ins, out):
        if seen is not None:
            seen.append(f"{ins[0].shape} {ins[0].sharding.spec} {out.sharding.spec}")
        spec = [*ins[0].sharding.spec, None, None][: len(ins[0].shape) - 1]
        sharding = lib.Named(mesh, lib.P(*spec, None))
        return mesh, lib.jnp.fft.fft, sharding, (sharding,)

    function = decorator(lib)(lambda x: lib.jnp.fft.fft(x))
    function.def_partition(
        partition, sharding_rule="... i -> ... i", need_replication_factors=("i",)
    )
    return lambda x: abs(function(x))


def product(lib):
    def partition(mesh, ins, out):
        rows, inner = ins[0].sharding.spec
        columns = ins[1].sharding.spec[1]

        def part(x, y):
            return lib.lax.psum(x @ y, inner) if inner else x @ y

        spec = functools.partial(lib.on, mesh=mesh)
        return (
            mesh,
            part,
            spec(rows, columns),
            (spec(rows, inner), spec(inner, columns)),
        )

    function = decorator(lib)(lambda x, y: x @ y)
    rule = {"sharding_rule": "i k, k j -> i j", "reduction_factors": ("k",)}
    function.def_partition(partition, **rule)
    return function


def with_static(lib, text="(a b) j -> (a b) j, j", **sizes):
    """A dict of two results, one of them summed over the rows; k is static."""

    def partition(k, mesh, ins, out):
        rows, columns = ins[0].sharding.spec

        def part(x):
            total = (x + k).sum(0)
            return {"a": x * k, "b": lib.lax.psum(total, rows) if rows else total}

        spec = functools.partial(lib.on, mesh=mesh)
        return (
            mesh,
            part,
            {"a": spec(rows, columns), "b": spec(columns)},
            shardings(lib, ins),
        )

    @functools.partial(decorator(lib), static_argnums=(1,))
    def function(x, k):
        return {"a": x * k, "b": (x + k).sum(0)}

    def rule(k, mesh, ins, outs):
        assert (k, len(ins), len(outs)) == (3, 1, 2)
        return text, {"a": 4, "b": 2}

    function.def_partition(partition, sharding_rule=rule)
    return function


def fewer(lib):
    devices = lib.mj.devices()[:2]
    return lib.Named(lib.mj.make_mesh((2,), ("z",), devices=devices), lib.P("z"))


def doubled(lib, rule, partition=None, **options):
    def same(mesh, ins, out):
        return mesh, lambda x: x * 2, out.sharding, shardings(lib, ins)

    function = decorator(lib)(lambda x: x * 2)
    function.def_partition(partition or same, sharding_rule=rule, **options)
    return run(lib, function, lib.put(lib.numbers(8, 8), "x", "y"))


for _spec in (("x",), ("x", "y"), (None, "y"), ()):

    @functools.partial(CASES.__setitem__, f"transform of {_spec}")
    def _(lib, spec=_spec):
        return run(lib, transform(lib), lib.put(lib.numbers(8, 8), *spec))

    @functools.partial(CASES.__setitem__, f"static of {_spec}")
    def _(lib, spec=_spec):
        function = with_static(lib)
        return run(lib, lambda x: function(x, 3), lib.put(lib.numbers(8, 8), *spec))


for _left, _right in ((("x", "y"), ("y",)), (("x",), ()), ((None, "y"), ("y", "x"))):

    @functools.partial(CASES.__setitem__, f"product of {_left} {_right}")
    def _(lib, left=_left, right=_right):
        x, y = (lib.put(lib.numbers(8, 8), *spec) for spec in (left, right))
        return run(lib, product(lib), x, y)


@case
def what_the_partition_sees(lib):
    seen = []
    for shape, spec in (((8, 8), ("x",)), ((8, 4, 8), ("x", "y")), ((8,), ("x",))):
        lib.mj.jit(transform(lib, seen)).lower(
            lib.put(lib.numbers(*shape), *spec)
        ).compile()
    return seen


@case
def the_rule_in_the_program(lib):
    text = (
        lib.mj.jit(product(lib))
        .lower(*(lib.put(lib.numbers(8, 8), "x"),) * 2)
        .as_text()
    )
    return re.findall(r"sdy.sharding_rule = (#[^}]*}[^}]*)", text)


@case
def eager_and_by_name(lib):
    function, x = with_static(lib), lib.numbers(8, 8)
    return function(x, 3), function(x, k=3), function(lib.put(x, "x"), 3)["a"]


@case
def on_an_explicit_mesh(lib):
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    return run(lib, transform(lib), lib.put(lib.numbers(8, 8), "x", mesh=mesh))


@case
def in_shard_map(lib):
    function = with_static(lib)
    inside = lib.mj.shard_map(
        lambda x: function(x, 3)["a"],
        mesh=lib.mesh,
        in_specs=lib.P("x"),
        out_specs=lib.P("x"),
    )
    return run(lib, inside, lib.put(lib.numbers(8, 8), "x"))


def partly_manual(lib, partition=None):
    """Shards of x by hand; XLA cuts each of them over the two devices of y."""

    def same(mesh, ins, out):
        return mesh, lambda x: x * 2, out.sharding, shardings(lib, ins)

    function = decorator(lib)(lambda x: x * 2)
    function.def_partition(partition or same, sharding_rule="i j -> i j")
    inside = lib.mj.shard_map(
        function,
        mesh=lib.mesh,
        in_specs=lib.P("x"),
        out_specs=lib.P("x"),
        axis_names={"x"},
    )
    return run(lib, inside, lib.put(lib.numbers(8, 8), "x", "y"))


@case
def in_a_partly_manual_shard_map(lib):
    return partly_manual(lib)


@case
def twice_in_a_loop(lib):
    function = transform(lib)

    def loop(x):
        return lib.lax.scan(lambda c, _: (function(c), None), x, None, length=2)[0]

    return run(lib, loop, lib.put(lib.numbers(8, 8), "x"))


@case
def a_small_constant(lib):
    row = lib.numbers(2, 4)

    def partition(mesh, ins, out):
        return mesh, lambda x: x * row, out.sharding, shardings(lib, ins)

    return doubled(lib, "i j -> i j", partition)


@case
def a_large_constant(lib):
    rows = lib.jnp.asarray(lib.numbers(64, 64))

    def partition(mesh, ins, out):
        return mesh, lambda x: x * rows[:2, :4], out.sharding, shardings(lib, ins)

    return doubled(lib, "i j -> i j", partition)


@case
def shardings_of_xla(lib):
    kinds = []

    def partition(mesh, ins, out):
        kinds.append(type(ins[0].sharding).__name__)
        return mesh, lambda x: x * 2, out.sharding, shardings(lib, ins)

    return doubled(lib, "i j -> i j", partition, decode_shardings=False), kinds


@case
def compiled_after_its_function_is_gone(lib):
    """And nothing is kept when the program is gone too."""
    x = lib.put(lib.numbers(8, 8), "x")
    lib.mj.clear_caches()
    lowered = lib.mj.jit(transform(lib)).lower(x)
    lib.mj.clear_caches()
    gc.collect()
    found = lowered.compile()(x)
    del lowered
    gc.collect()
    if lib.name == "minijax":
        from minijax.programs.sharding import own_partitions

        assert not own_partitions._rules
    return [found]


@case
def not_in_the_cache_on_disk(lib):
    """No other process would find the file; a program beside it has one."""
    x, function = lib.put(lib.numbers(8, 8), "x"), transform(lib)
    if lib.name == "jax":
        return [function(x)]
    with tempfile.TemporaryDirectory() as folder:
        flags = {
            "jax_compilation_cache_dir": folder,
            "jax_persistent_cache_min_compile_time_secs": 0,
            "jax_persistent_cache_min_entry_size_bytes": 0,
        }
        before = {name: getattr(lib.mj.config, name) for name in flags}
        for name, value in flags.items():
            lib.mj.config.update(name, value)
        found = lib.mj.jit(function)(x)
        none = [*pathlib.Path(folder).iterdir()]
        lib.mj.jit(lambda x: x * 2)(x)
        some = [*pathlib.Path(folder).iterdir()]
        for name, value in before.items():
            lib.mj.config.update(name, value)
    assert not none and some, none
    return [found]


@case
def example_of_the_chapter(lib):
    root = pathlib.Path(__file__).resolve().parents[2]
    chapter = json.loads((root / "notebooks" / "16_sharding.ipynb").read_text())
    texts = ["".join(cell["source"]) for cell in chapter["cells"]]
    (text,) = [text for text in texts if "custom_partitioning(" in text]
    names = {"lax": lib.mj.lax, "custom_partitioning": decorator(lib)}
    exec(re.search("```python\n(.*?)```", text, re.DOTALL)[1], names)
    x = lib.put(lib.numbers(8, 8), "x")
    assert lib.collectives(names["two_largest"], x)["all-gather"] == 1
    assert not any(lib.collectives(names["largest"], x).values())
    return run(lib, names["largest"], x)


@case
def grad(lib):
    function = product(lib)
    return lib.mj.grad(lambda x: function(x, x).sum())(lib.numbers(8, 8))


@case
def vmap(lib):
    return lib.mj.vmap(product(lib))(*(lib.numbers(2, 8, 8),) * 2)


@case
def traced_static(lib):
    return lib.mj.jit(with_static(lib))(lib.numbers(8, 8), 3)


@case
def no_rule(lib):
    return decorator(lib)(lambda x: x)(lib.numbers(8))


@case
def closes_over_an_array(lib):
    array = lib.jnp.ones(8)
    function = decorator(lib)(lambda x: x + array)
    function.def_partition(lambda *_: None, sharding_rule="i -> i")
    return function(lib.numbers(8))


for _name in ("infer_sharding_from_operands", "propagate_user_sharding"):

    @functools.partial(CASES.__setitem__, f"{_name} alone")
    def _(lib, name=_name):
        return doubled(lib, None, **{name: lambda *_: None})


BAD_PARTITIONS = {
    "of another shape": lambda lib, m, i, o: (
        m, lambda x: x.sum(0), o.sharding, shardings(lib, i)
    ),
    "with a spec": lambda lib, m, i, o: (m, lambda x: x, o.sharding, (lib.P("x"),)),
    "of too many dimensions": lambda lib, m, i, o: (
        m, lambda x: x, lib.on("x", None, None, mesh=m), shardings(lib, i)
    ),
    "of three": lambda lib, m, i, o: (m, lambda x: x, o.sharding),
    "that raises": lambda lib, m, i, o: 1 / 0,
}  # fmt: skip
for _name, _bad in BAD_PARTITIONS.items():

    @functools.partial(CASES.__setitem__, f"a partition {_name}")
    def _(lib, bad=_bad):
        return doubled(lib, "i j -> i j", functools.partial(bad, lib))


def printed(lib, x):
    lib.debug.print("a part")
    return x


# XLA ends the process of jax.
FATAL_PARTITIONS = {
    "that prints": lambda lib, m, i, o: (
        m, functools.partial(printed, lib), o.sharding, shardings(lib, i)
    ),
    "that calls Python": lambda lib, m, i, o: (
        m, lambda x: lib.mj.pure_callback(abs, x, x), o.sharding, shardings(lib, i)
    ),
    "over fewer devices": lambda lib, m, i, o: (
        m, lambda x: x, fewer(lib), (fewer(lib),)
    ),
}  # fmt: skip
for _name, _bad in FATAL_PARTITIONS.items():

    @functools.partial(CASES.__setitem__, f"a partition {_name}")
    def _(lib, bad=_bad):
        if lib.name == "jax":
            raise lib.mj.errors.JaxRuntimeError("the process is over")
        return doubled(lib, "i j -> i j", functools.partial(bad, lib))


@case
def parts_of_a_part_by_the_whole_mesh(lib):
    """XLA cuts over the two devices of y there, and ends the process of jax."""
    if lib.name == "jax":
        raise lib.mj.errors.JaxRuntimeError("the process is over")
    spec = lib.on(None, "y")
    return partly_manual(lib, lambda m, *_: (m, lambda x: x * 2, spec, (spec,)))


RULES = [
    ("i j", {}),
    ("i j -> i j -> i", {}),
    ("i -> i", {}),
    ("i j, k -> i j", {}),
    ("(i k) j -> (i k) j", {}),
    ("(i k) j -> (i k) j", {"i": 2, "k": 4}),
    ("(i k) j -> (i k) j", {"i": 2, "k": 2}),
    ("(i (k)) j -> i j", {}),
    ("... -> ...", {}),
    ("i ... -> i ...", {}),
    ("...1 j -> ...1 j", {}),
    (". i -> . i", {}),
    ("i j -> j i", {}),
    ("1a j -> j j", {}),
    ("i j -> i j", {"i": 8}),
    ("i j -> i j", {"reduction_factors": ("q",)}),
    ("i j -> i j", {"reduction_factors": ["i"]}),
    ("i j -> i j", {"reduction_factors": ("i",), "permutation_factors": ("i",)}),
    ("i j -> i j", {"permutation_factors": ("j",)}),
    ("i j -> i j", {"need_replication_factors": ("i",)}),
    ("i j -> i", {}),
    ("i j -> i j, ", {}),
    (3, {}),
    ("(i) j -> i j", {}),
    ("i j) -> i j", {}),
    ("(i j -> i j", {}),
    ("i-j k -> i j", {}),
    ("", {}),
    ("_i j -> _i j", {}),
    ("i j -> i j", {"q": 1.5}),
    ("i j -> i j", {"foo_factors": ("i",)}),
    ("(i k) j -> i k", {"i": 2, "k": 4}),
    ("(i k) j -> k i", {"i": 2}),
    ("i i -> i i", {}),
    ("i (j k) -> i (j k)", {"j": 2, "k": 4}),
]
for _rule, _options in RULES:

    @functools.partial(CASES.__setitem__, f"rule {_rule!r} {_options}")
    def _(lib, rule=_rule, options=_options):
        return doubled(lib, rule, **options)

    if not isinstance(_rule, str):
        continue

    @functools.partial(CASES.__setitem__, f"a function with {_rule!r} {_options}")
    def _(lib, rule=_rule, options=_options):
        return doubled(lib, lambda *_: (rule, options))


for _found in (3, ("i j -> i j",), ("i j -> i j", {}, 3), (3, {})):

    @functools.partial(CASES.__setitem__, f"a function that gives {_found}")
    def _(lib, found=_found):
        return doubled(lib, lambda *_: found)


@case
def static_without_a_hash(lib):
    function = decorator(lib)(lambda x, k: x * k[0], static_argnums=(1,))
    function.def_partition(lambda *_: None, sharding_rule="i j -> i j")
    return lib.mj.jit(lambda x: function(x, [2]))(lib.numbers(8, 8))


@case
def options_of_a_function(lib):
    return doubled(lib, lambda *_: "i j -> i j", reduction_factors=("i",))
