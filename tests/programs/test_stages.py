"""What the stages of a jitted function tell, and what a compiled one refuses."""

import importlib
import inspect
import re

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

LIBRARIES = (minijax, jax)


def stages_of(lib):
    def f(x, y, scale, *, shift):
        return {"out": x["a"] * scale + shift, "y": y}

    function = lib.jit(f, donate_argnums=1, static_argnames="scale")
    x = {"a": np.float32(1)}
    traced = function.trace(x, lib.numpy.ones(3), 2, shift=0.5)
    lowered = traced.lower()
    return traced, lowered, lowered.compile()


@pytest.mark.parametrize("stage", range(3))
def test_what_a_stage_tells(stage):
    def run(lib):
        told = stages_of(lib)[stage]
        infos = lib.tree.leaves(told.args_info)
        return (
            str(told.args_info),
            str(told.in_avals),
            [(info.shape, info.dtype, info.donated) for info in infos],
            told.donate_argnums,
            str(told.in_tree),
            str(told.out_tree),
            [(info.shape, info.dtype) for info in lib.tree.leaves(told.out_info)],
        )

    ours, theirs = (run(lib) for lib in LIBRARIES)
    assert ours == theirs


def test_types_of_the_result():
    ours, theirs = (str(stages_of(lib)[0].out_avals) for lib in LIBRARIES)
    assert ours == theirs


def test_a_compiled_function_is_not_transformed():
    compiled = minijax.jit(jnp.sin).lower(np.float32(1)).compile()
    x = np.ones(3, np.float32)
    for transformed in (
        lambda: minijax.vmap(compiled)(x),
        lambda: minijax.grad(compiled)(x[0]),
        lambda: minijax.jit(compiled)(x[0]),
    ):
        with pytest.raises(TypeError, match="Transform the jitted function"):
            transformed()


def test_a_batch_tracer_tells_its_batch():
    seen = []
    minijax.vmap(lambda x: seen.append(x.val))(jnp.arange(3.0))
    np.testing.assert_array_equal(seen[0], [0, 1, 2])


@pytest.mark.parametrize("look", [np.asarray, str, float, bool, lambda x: None])
def test_an_array_that_was_looked_at_is_given_away(look):
    """What was read of an array keeps no view of its memory."""
    given = {}
    for lib in LIBRARIES:
        x = lib.numpy.arange(1.0, 2.0)[0]
        look(x)
        lib.jit(lambda x: 2 * x, donate_argnums=0)(x)
        given[lib] = x.is_deleted()
    assert given[minijax] and given[jax]


def test_memory_that_somebody_sees_is_not_reused():
    x = jnp.arange(4)
    seen = np.asarray(x)
    minijax.jit(lambda x: 2 * x, donate_argnums=0)(x)
    np.testing.assert_array_equal(seen, [0, 1, 2, 3])


def test_shardings_and_formats():
    def run(lib):
        ones = lib.numpy.ones
        function = lib.jit(lambda p, x, unused: (p["w"] @ x, x), donate_argnums=1)
        compiled = function.lower({"w": ones((2, 3))}, ones((3, 4)), 1.0).compile()
        return [
            str(told)
            for told in (
                compiled.input_shardings,
                compiled.output_shardings,
                compiled.input_formats,
                compiled.output_formats,
            )
        ]

    ours, theirs = (run(lib) for lib in LIBRARIES)
    assert ours == theirs


def test_formats_with_tokens_refs_and_keys():
    def f(ref, key):
        minijax.debug.print("{}", ref[...], ordered=True)
        return ref[...], key

    arguments = minijax.new_ref(jnp.ones(3)), minijax.random.key(0)
    compiled = minijax.jit(f).lower(*arguments).compile()
    (of_ref, of_key), _ = compiled.input_formats
    assert of_ref.layout is None and of_ref.sharding == arguments[1].sharding
    split = minijax.jit(minijax.random.split).lower(arguments[1]).compile()
    assert split.output_formats.layout.major_to_minor == (0, 1)


def test_parameters_carry_the_arguments_paths():
    def parameters(lib):
        function = lib.jit(lambda p, x, *rest: p["w"][0] * x + rest[1])
        text = function.lower({"w": [1.0]}, 2.0, 3.0, 4.0).compile().as_text()
        entry = re.search(r"ENTRY.*?\((.*?)\) ->", text).group(1)
        metadata = re.findall(r'parameter\(\d\), metadata=\{op_name="(.*?)"', text)
        return entry, metadata

    assert parameters(minijax) == parameters(jax)


def test_a_donated_array_is_refused_without_a_line_in_the_log(capfd):
    donating = minijax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.ones(4)
    donating(x)
    for use in (donating, lambda x: x * 2.0, minijax.jit(lambda x: x * 2.0)):
        with pytest.raises(RuntimeError, match="has been deleted"):
            use(x)
    z = jnp.ones(4)
    z.delete()
    with pytest.raises(RuntimeError, match="has been deleted"):
        z * 2.0
    assert capfd.readouterr().err == ""
    y = jnp.ones(3)
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        minijax.jit(lambda y: y.sum(), donate_argnums=0)(y)
    assert y.committed == y.is_deleted()  # XLA did not take it: as it was


def test_dialects():
    def run(lib):
        x = lib.numpy.ones((2, 2))
        lowered = lib.jit(lambda x: {"y": lib.numpy.sin(x) @ x}).lower(x)
        hlo = lowered.as_text("hlo").replace("_lambda_", "_lambda")
        assert "metadata" in lowered.as_text("hlo", debug_info=True)
        assert "loc(" in lowered.as_text("stablehlo", debug_info=True)
        assert type(lowered.compiler_ir("hlo")).__name__ == "XlaComputation"
        assert str(lowered.compiler_ir("stablehlo")) == str(lowered.compiler_ir())
        for look in (lowered.as_text, lowered.compiler_ir):
            with pytest.raises(ValueError, match="unknown dialect"):
                look("mhlo")
        return hlo, lowered.cost_analysis(), lowered.as_text("stablehlo").count("sine")

    ours, theirs = (run(lib) for lib in LIBRARIES)
    assert ours == theirs


def test_a_device_to_compile_for():
    lowered = minijax.jit(jnp.sin).lower(np.float32(1))
    device = minijax.devices()[0]
    compiled = lowered.compile(device_assignment=(device,))
    assert compiled(np.float32(0)).devices() == {device}
    with pytest.raises(ValueError, match="tuple of the devices"):
        lowered.compile(device_assignment=())
    with pytest.raises(ValueError, match="not both"):
        lowered.compile(device_assignment=(device,), target="cpu")


def test_bad_calls_of_a_compiled_function():
    def run(lib):
        ones = lib.numpy.ones
        function = lib.jit(lambda x, y: x @ y["w"])
        compiled = function.lower(ones((2, 2)), {"w": ones((2, 3))}).compile()
        found = []
        for call in (
            lambda: compiled(),
            lambda: compiled(ones((2, 2)), ones((2, 3))),
            lambda: compiled(ones((2, 2)), {"v": ones((2, 3))}),
            lambda: compiled(ones((2, 2)), {"w": ones((3, 3))}),
            lambda: compiled(ones((2, 2)), {"w": ones((2, 3), np.int32)}),
            lambda: compiled(ones((2, 2)), y={"w": ones((2, 3))}),
            lambda: compiled(ones((2, 2)), {"w": "text"}),
        ):
            try:
                found.append(call())
            except Exception as error:
                found.append(type(error))
        return found

    ours, theirs = (run(lib) for lib in LIBRARIES)
    assert ours == theirs


def test_memory_that_no_result_can_take():
    for lib in LIBRARIES:
        function = lib.jit(lambda x: x.sum(), donate_argnums=0)
        x = lib.numpy.ones((2, 2))
        with pytest.warns(
            UserWarning, match="Some donated buffers were not usable: fl"
        ):
            function(x)
        assert not x.is_deleted()


def signatures(lib_class):
    return {
        name: list(inspect.signature(getattr(lib_class, name)).parameters)
        for name in dir(lib_class)
        if not name.startswith("_") and callable(getattr(lib_class, name))
    }


@pytest.mark.parametrize("name", ["Wrapped", "Traced", "Lowered", "Compiled"])
def test_methods_of_stages_are_those_of_jax(name):
    """Each public name of JAX's class, and its parameters in the same order."""
    ours = getattr(minijax.stages, name)
    theirs = getattr(jax.stages, name)
    public = {each for each in dir(theirs) if not each.startswith("_")}
    assert public - {"lojax"} <= set(dir(ours))
    found = signatures(ours)
    for method, parameters in signatures(theirs).items():
        kept = [each for each in parameters if not each.startswith("_")]
        assert found[method][: len(kept)] == kept


@pytest.mark.parametrize("name", ["stages", "export", "experimental.layout"])
def test_names_of_modules(name):
    ours, theirs = (
        importlib.import_module(f"{lib.__name__}.{name}") for lib in LIBRARIES
    )
    public = {each for each in dir(theirs) if not each.startswith("_")}
    modules = {each for each in public if inspect.ismodule(getattr(theirs, each))}
    assert public - modules <= set(dir(ours))


def test_layout_constraints():
    def run(lib):
        layout = importlib.import_module(f"{lib.__name__}.experimental.layout")
        keep = layout.with_layout_constraint
        columns = layout.Layout((1, 0))
        x = lib.numpy.arange(6.0).reshape(2, 3)
        function = lambda x: keep(lib.numpy.sin(x), columns) * 2  # noqa: E731
        refused = []
        for bad in (layout.Layout((0,)), 3, None):
            try:
                refused.append(keep(x, bad) is not None)
            except Exception as error:
                refused.append(type(error))
        return (
            str(lib.make_jaxpr(function)(x)),
            str(lib.make_jaxpr(lib.vmap(function))(x[None])),
            str(lib.make_jaxpr(lib.grad(lambda x: function(x).sum()))(x)),
            "LayoutConstraint" in lib.jit(function).lower(x).as_text(),
            refused,
            np.asarray(lib.jit(function)(x)).tolist(),
        )

    ours, theirs = (run(lib) for lib in LIBRARIES)
    assert ours == theirs


@pytest.mark.parametrize("name", ["stages", "export", "experimental.layout"])
def test_parameters_of_functions(name):
    ours, theirs = (
        importlib.import_module(f"{lib.__name__}.{name}") for lib in LIBRARIES
    )
    for each in dir(theirs):
        function = getattr(theirs, each)
        if each.startswith("_") or not inspect.isfunction(function):
            continue
        wanted = inspect.signature(function).parameters.values()
        found = inspect.signature(getattr(ours, each)).parameters.values()
        assert [(p.name, p.kind) for p in found] == [
            (p.name, p.kind) for p in wanted if not p.name.startswith("_")
        ]


# ---- ShapeDtypeStruct.like ----------------------------------------------------------

LIKE = {
    "array": lambda lib: lib.numpy.ones((2, 3)),
    "NumPy": lambda lib: np.ones(3, np.int8),
    "number": lambda lib: 2.0,
    "weak array": lambda lib: lib.numpy.asarray(2),
    "key": lambda lib: lib.random.key(0),
    "struct": lambda lib: lib.ShapeDtypeStruct((2,), "int8"),
    "weak struct": lambda lib: lib.ShapeDtypeStruct((), "float32", weak_type=True),
    "text": lambda lib: "text",
    "None": lambda lib: None,
    "ref": lambda lib: lib.new_ref(lib.numpy.ones(3)),
}


@pytest.mark.parametrize("name", LIKE)
def test_struct_like_a_value(name):
    def like(lib):
        try:
            return str(lib.ShapeDtypeStruct.like(LIKE[name](lib)))
        except Exception as error:
            return type(error).__name__

    assert like(minijax) == like(jax)


def test_struct_like_a_traced_value():
    found = []

    def note(lib):
        return lambda x: found.append(str(lib.ShapeDtypeStruct.like(x))) or x

    for lib in (minijax, jax):
        lib.jit(note(lib))(np.ones(3, np.float32))
    assert found[0] == found[1] == "ShapeDtypeStruct(shape=(3,), dtype=float32)"


def test_struct_like_a_committed_array():
    x = minijax.device_put(np.ones(3), minijax.devices()[0])
    struct = minijax.ShapeDtypeStruct.like(x)
    assert struct.sharding == x.sharding
    assert minijax.ShapeDtypeStruct.like(x + 1).sharding == x.sharding


def test_format_of_an_array_that_is_deleted():
    for lib in LIBRARIES:
        x = lib.numpy.ones(3) + 1
        assert x.format.layout.major_to_minor == (0,)
        x.delete()
        assert x.format.layout is None


def test_a_layout_of_an_argument():
    x = jnp.ones((8, 4))
    layouts = importlib.import_module("minijax.experimental.layout")
    for order in ((0, 1), (1, 0)):
        place = layouts.Format(layouts.Layout(order), x.sharding)
        struct = minijax.ShapeDtypeStruct((8, 4), np.float32, sharding=place)
        compiled = minijax.jit(jnp.sin).lower(struct).compile()
        (found,), _ = compiled.input_formats
        assert found.layout.major_to_minor == order


def test_a_compiled_gradient_names_the_users_lines():
    """XLA's tables of files and functions have no frame of the library."""

    def loss(w, x):
        return lib.numpy.tanh(x @ w).sum()

    names = {}
    for lib in LIBRARIES:
        lowered = lib.jit(lib.grad(loss)).lower(np.ones((3, 2)), np.ones((4, 3)))
        text = lowered.compile().as_text()
        tables = text[text.index("FileNames") : text.index("StackFrames")]
        names[lib] = set(re.findall('"(.*)"', tables))
        assert any(name.endswith(".loss") for name in names[lib])
    # JAX keeps a hundred frames, and minijax the ten innermost.
    assert names[minijax] <= names[jax]
