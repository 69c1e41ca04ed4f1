"""`import jax` means minijax after `as_jax()`, in processes of their own."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "import minijax, sys\nminijax.as_jax()\n"


def run(program, *arguments, begin=BEGIN):
    command = [sys.executable, "-c", begin + textwrap.dedent(program), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def output(program):
    done = run(program)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


PIECES = {
    "values and classes": """
        import jax, jax.numpy as jnp
        from jax import lax, tree_util
        from jax.experimental import pallas as pl
        from jax.typing import ArrayLike
        assert jax.Array is minijax.Array and jnp.sin is minijax.numpy.sin
        assert lax.scan is minijax.lax.scan and pl.pallas_call
        assert isinstance(jnp.ones(3), jax.Array)
        assert jax.numpy is jnp and sys.modules["jax.numpy"] is jnp
        assert jax.config is minijax.config
    """,
    "interpreters": """
        assert minijax.interpreters.batching.defvectorized
        from jax.interpreters import ad, batching, mlir, partial_eval
        from jax.extend.core import Primitive, jaxpr_as_fun
        from jax.extend import linear_util as lu
        import jax.extend.core.primitives as p
        assert ad.Zero and mlir.register_lowering and p.sin_p.name == "sin"
    """,
    "the version is that of the names": """
        import jax
        assert jax.__version_info__ == (0, 10, 2) and jax.version.__version__
    """,
    "a star imports what loads on first use, too": """
        from jax import *
        from jax.numpy import *
        from jax.scipy import *
        assert nn.relu and jacfwd and median and linalg.inv and signal.convolve
        for module, late in {
            minijax: "image interpreters jacfwd nn pmap remat shard_map util",
            minijax.interpreters: "ad batching mlir partial_eval",
            minijax.lax: "FftType fft fft_p linalg",
            minijax.numpy: "fft isin linalg median polyfit unique",
            minijax.random: "multivariate_normal orthogonal",
            minijax.scipy: "fft linalg optimize signal sparse",
        }.items():
            assert {n for n in dir(module) if n[0] != "_"} >= set(module.__all__)
            exec(f"from {module.__name__} import *", found := {})
            assert {*late.split()} <= {*found}
        assert "assembly" not in vars(sys.modules["jax"])["__all__"]
    """,
    "a second call": """
        import jax; minijax.as_jax(); import jax as again; assert again is jax
    """,
    "listed names": """
        from jax._src import traceback_util
        import jax._src.util, jax._src.core, jax
        from jax._src.api_util import flatten_axes
        traceback_util.register_exclusion("/nowhere")
        assert jax._src.util.safe_map is minijax.util.safe_map
        assert jax._src.core.trace_state_clean()
        jax.make_jaxpr(lambda x: x * jax._src.core.trace_state_clean())(1)
        clean = []
        jax.jit(lambda x: clean.append(jax._src.core.trace_state_clean()) or x)(1.0)
        assert clean == [False]
    """,
    "star import": """
        from jax.numpy import *
        assert sin is minijax.numpy.sin and float(sum(arange(3))) == 3
    """,
    "hasattr and getattr": """
        import jax
        assert not hasattr(jax, "nothing") and getattr(jax, "nothing", 5) == 5
        try: import jax.nothing
        except ModuleNotFoundError as error: assert error.name == "jax.nothing"
    """,
    "minijax stays as it is": """
        import jax, minijax.numpy
        assert minijax.__version__ != jax.__version__
        assert minijax.numpy.__name__ == "minijax.numpy" and jax.numpy is not None
        assert not hasattr(minijax, "_src")
    """,
    "jaxlib does not find jax": """
        import jax, jax.numpy as jnp
        from jax.sharding import NamedSharding, PartitionSpec
        for name in ("named_sharding", "sharding_impls"):
            try: __import__("jax._src." + name)
            except ModuleNotFoundError: pass
            else: raise AssertionError(name)
        mesh = jax.make_mesh((1,), ("x",))
        there = NamedSharding(mesh, PartitionSpec("x"))
        x = jax.device_put(jnp.arange(4.0), there)
        assert jax.jit(lambda x: x + 1)(x).sharding.is_equivalent_to(there, 1)
    """,
    "rooms of minijax are no modules of jax": """
        import jax
        for room in ("support", "programs", "assembly"):
            assert not hasattr(jax, room) and room not in dir(jax)
    """,
}


@pytest.mark.parametrize("name", PIECES)
def test_pieces(name):
    output(PIECES[name])


MISSING = {
    "import jax.nump": "ModuleNotFoundError: .* no jax.nump. .*There is: .*numpy",
    "from jax import gradd": "ImportError: .* no jax.gradd. .*There is: .*grad",
    "from jax.util import x": "ImportError: .* no jax.util.x. .*safe_map, safe_zip",
    "import jax; jax.numpy.sine": "AttributeError: .* no jax.numpy.sine. .*sin",
    "from jax._src import sharding_impls": "ImportError: .* no jax._src.sharding_impls",
    "import jax._src.nothing": "ModuleNotFoundError: .* no jax._src.nothing",
}


@pytest.mark.parametrize("program", MISSING)
def test_a_missing_name_says_who_asks_and_what_there_is(program, tmp_path):
    library = tmp_path / "some_library"
    library.mkdir()
    (library / "__init__.py").write_text("\n\n" + program + "\n")
    done = run(f"sys.path.insert(0, {str(tmp_path)!r})\nimport some_library")
    last = done.stderr.strip().splitlines()[-1]
    assert re.search(MISSING[program], last), last
    assert f"some_library asks for it in {library / '__init__.py'}:3." in last


def test_refused_after_jax():
    pytest.importorskip("jax")
    done = run("", begin="import jax\n" + BEGIN)
    assert "RuntimeError: as_jax: jax itself has been imported already" in done.stderr


def test_the_command(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, beside, jax\n"
        "print(__name__, sys.argv[1:], jax.Array.__module__, beside.x)\n"
        "sys.exit(3)\n"
    )
    (tmp_path / "beside.py").write_text("x = 7\n")
    command = [sys.executable, "-m", "minijax.as_jax"]
    done = subprocess.run(
        [*command, script, "a", "-b"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("__main__ ['a', '-b'] minijax")
    assert done.stdout.endswith(" 7\n")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "usage" in done.stderr
    done = subprocess.run(
        [*command, "-m", "beside"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_function_is_not_shadowed_by_the_command():
    text = output("""
        before = minijax.as_jax
        try: import minijax.as_jax
        except ImportError as error: print(error)
        assert minijax.as_jax is before and callable(before)
    """)
    assert "minijax.as_jax is a function" in text


def test_replacing_the_compiler_is_refused():
    done = run("from jax._src import compiler\ncompiler.backend_compile = print")
    assert (
        "NotImplementedError: jax._src.compiler.backend_compile cannot be replaced"
        in (done.stderr)
    )


def test_classes_of_arrays_that_a_library_adds():
    """As TensorFlow Probability declares its class; another handler is refused."""
    program = """
        import jax, jax.numpy as jnp, numpy as np
        class Held:
            dtype, shape = np.dtype("float32"), (3,)
            def __array__(self, dtype=None):
                return np.arange(3, dtype=dtype or self.dtype)
        xla = jax.interpreters.xla
        xla.canonicalize_dtype_handlers[Held] = (
            xla.canonicalize_dtype_handlers[np.ndarray])
        jax.core.pytype_aval_mappings[Held] = jax.core.pytype_aval_mappings[np.ndarray]
        print(jax.jit(lambda a: a + 1)(Held()), jax.lax.neg(Held()))
        xla.canonicalize_dtype_handlers[Held] = print
    """
    done = run(program)
    assert done.stdout == "[1. 2. 3.] [-0. -1. -2.]\n"
    assert "NotImplementedError: " in done.stderr and "Held" in done.stderr
