"""Rules of the house that a reader of one file would not notice being broken."""

import ast
import contextlib
import functools
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import minijax
from tests.house import compile_tests

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = sorted([*(ROOT / "minijax").rglob("*.py"), *(ROOT / "widgets").rglob("*.py")])
FLOORS_WITHOUT_EXPORTS = (
    *("backend", "support", "values", "primitives", "transforms", "compile"),
    *("processes", "programs", "kernels", "exporting"),
)
PUBLIC_MODULES = ("", "lax", "numpy", "nn", "random", "tree_util", "tree")


def committed_files() -> list[str]:
    answer = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True
    )
    if answer.returncode != 0:
        pytest.skip("this tree is not a git checkout")
    names = [name for name in answer.stdout.split("\0") if name]
    return [name for name in names if (ROOT / name).is_file()]


def text_of(name: str) -> str:
    try:
        return (ROOT / name).read_text()
    except UnicodeDecodeError:
        return ""


def test_no_paths_of_a_machine():
    pattern = re.compile(r"/(?:work|tmp|root|home)/[a-z]")
    found = [name for name in committed_files() if pattern.search(text_of(name))]
    assert found == []


def test_no_package_hosts():
    host = re.compile(r"(?:files\.pythonhosted|registry\.npmjs|pypi)\.(?:org|com)")
    found = [name for name in committed_files() if host.search(text_of(name))]
    assert [name for name in found if name != "tests/house/test_house.py"] == []


@functools.cache
def imported_roots(path: Path) -> set[str]:
    roots = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            roots.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            roots.add(node.module.split(".")[0])
        elif isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            if called.endswith(("import_module", "__import__")):
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    roots.add(first.value.split(".")[0])
    return roots


def test_nobody_imports_jax():
    assert [path for path in PRODUCT if "jax" in imported_roots(path)] == []


def test_only_the_backend_imports_jaxlib():
    users = {path for path in PRODUCT if "jaxlib" in imported_roots(path)}
    package = ROOT / "minijax"
    of_the_core = {package / "core" / f"{n}.py" for n in ("runtime", "hlo", "compiler")}
    assert users - of_the_core <= set((package / "backend").rglob("*.py"))


def test_nothing_is_left_for_later():
    """No stubs. (JAX's own NotImplementedError may be raised, if it says something.)"""
    later = re.compile(
        r"\b(?:TODO|FIXME|XXX)\b|raise NotImplementedError(?:\(\s*\))?\s*$",
        re.MULTILINE,
    )
    assert [path for path in PRODUCT if later.search(path.read_text())] == []


def test_inner_rooms_export_nothing():
    for room in FLOORS_WITHOUT_EXPORTS:
        path = ROOT / "minijax" / room / "__init__.py"
        if path.exists():
            body = ast.parse(path.read_text()).body
            assert len(body) <= 1, f"{path} must hold a docstring only"


def public_functions() -> list[tuple[str, object]]:
    import importlib

    found = []
    for name in PUBLIC_MODULES:
        full = f"minijax.{name}" if name else "minijax"
        try:
            module = importlib.import_module(full)
        except ModuleNotFoundError as error:
            if error.name and error.name.startswith("minijax"):
                continue
            raise
        for attribute in getattr(module, "__all__", dir(module)):
            value = getattr(module, attribute)
            if attribute.startswith("_") or not callable(value):
                continue
            if getattr(value, "__module__", "").startswith("minijax"):
                found.append((f"{full}.{attribute}", value))
    return found


def test_public_functions_are_documented():
    bare = [name for name, value in public_functions() if not inspect.getdoc(value)]
    assert bare == []


def test_no_module_hides_a_public_function():
    """`minijax/jit.py` would become `minijax.jit` as soon as someone imports it, unless
    it refuses to be imported."""
    hidden = []
    for full, _ in public_functions():
        package, name = full.rsplit(".", 1)
        folder = ROOT / package.replace(".", "/")
        if (folder / f"{name}.py").exists() or (folder / name).is_dir():
            with contextlib.suppress(ImportError):
                importlib.import_module(full)
                hidden.append(full)
    assert hidden == []


def test_importing_minijax_is_light():
    """No compiler dialect, plotting, SciPy or view comes with `import minijax`."""
    program = (
        "import sys, minijax;"
        "heavy = ('jaxlib.mlir.dialects', 'scipy', 'matplotlib', 'jax', 'IPython',"
        " 'minijax_lab.explain', 'minijax_widgets', 'minijax_lab');"
        "print([name for name in heavy if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() == "[]"


def test_version_as_numbers() -> None:
    assert minijax.__version_info__ == tuple(map(int, minijax.__version__.split(".")))


def test_test_modules_are_compiled_as_pytest_does_it(tmp_path):
    """`make test` compiles them once for all workers, by functions of pytest's own."""
    path = tmp_path / "test_one.py"
    path.write_text("def test_one():\n    assert 1 == 2\n")
    assert compile_tests.compile_module(path)
    assert not compile_tests.compile_module(path), "pytest does not find it"
    path.write_text("def test_one():\n    assert 1 == 3\n")
    assert compile_tests.compile_module(path), "what has changed is compiled again"
