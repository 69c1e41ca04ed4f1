"""No module changes another one, and rules of the core's primitives are the core's.

What a module imports, it calls and reads. Parts for rooms below go through `attach`,
`add_methods` and `enter` (`core/events.py`), each of which raises for a second part.
"""

import ast
import functools
import importlib
import importlib.util
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import minijax
from minijax.core.language import Primitive, all_primitives
from tests.house.test_house import PUBLIC_MODULES

pytestmark = pytest.mark.whole

ROOT = Path(minijax.__file__).parent.parent
HOUSES = {"minijax": ROOT, "minijax_widgets": ROOT / "widgets"}
RULES = ("type_rule", "impl", "jvp", "jvp_terms", "transpose", "batch", "linearize")
RULES += ("partial_eval", "dce", "staging", "pretty", "meaning", "lowerings")

# ----------------------------------------------------------------------------------
# Assignments to what other modules define
# ----------------------------------------------------------------------------------


def imported_names(tree: ast.AST, package: str) -> dict[str, tuple[str, str | None]]:
    """The names that a file imports from ours: (module, name there or None)."""
    found: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            module = importlib.util.resolve_name(module, package)
            if module.split(".")[0] in HOUSES:
                for alias in node.names:
                    found[alias.asname or alias.name] = (module, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                if first in HOUSES:
                    name = alias.name if alias.asname else first
                    found[alias.asname or first] = (name, None)
    return found


def value_of(node: ast.expr, names: dict) -> object:
    """What an expression of imported names stands for; None if that is not known."""
    if isinstance(node, ast.Attribute):
        base = value_of(node.value, names)
        return None if base is None else getattr(base, node.attr, None)
    if not isinstance(node, ast.Name) or node.id not in names:
        return None
    module, name = names[node.id]
    found = importlib.import_module(module)
    if name is not None and not hasattr(found, name):
        return importlib.import_module(f"{module}.{name}")
    return found if name is None else getattr(found, name)


def of_others(node: ast.expr, names: dict) -> bool:
    """Whether an expression is an object that another module defines.

    The slots of a thread's state are there to be written, thread by thread.
    """
    root = node
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if not isinstance(root, ast.Name) or root.id not in names:
        return False
    return not isinstance(value_of(node, names), threading.local)


def targets_of(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that a statement assigns to or deletes."""
    if isinstance(node, (ast.Assign, ast.Delete)):
        todo = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For)):
        todo = [node.target]
    elif isinstance(node, ast.With):
        todo = [item.optional_vars for item in node.items if item.optional_vars]
    else:
        return
    while todo:
        target = todo.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            todo += target.elts
        else:
            yield target


def other_names(tree: ast.AST, names: dict) -> dict:
    """`names`, and those that the file gives to the same objects.

    A primitive that the core declares and another of its files defines has its name in
    both (`add_any_p = rules.add_any_p`): its block is where it has its rules.
    """
    names = dict(names)
    for node in ast.walk(tree):
        given: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            given = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.For) and isinstance(node.iter, (ast.Tuple, ast.List)):
            given = [(node.target, item) for item in node.iter.elts]
        for target, value in given:
            if isinstance(target, ast.Name) and isinstance(value, ast.Name):
                if value.id in names:
                    names[target.id] = names[value.id]
            elif isinstance(target, ast.Name) and isinstance(value, ast.Attribute):
                found = value_of(value, names)
                module = getattr(value_of(value.value, names), "__name__", None)
                if isinstance(module, str) and module in sys.modules:
                    if found is not None and not isinstance(found, Primitive):
                        names[target.id] = (module, value.attr)
    return names


def patches(text: str, module: str, package: str) -> list[str]:
    """The statements of a file that change what other modules define."""
    tree = ast.parse(text)
    names = other_names(tree, imported_names(tree, package))
    found = []
    for node in ast.walk(tree):
        wrong = any(
            isinstance(target, (ast.Attribute, ast.Subscript))
            and of_others(target.value, names)
            for target in targets_of(node)
        )
        if isinstance(node, ast.Call):
            wrong = is_changing_call(node, names)
        if isinstance(node, ast.FunctionDef):
            calls = [d for d in node.decorator_list if isinstance(d, ast.Attribute)]
            wrong = any(sets_a_rule(call, names) for call in calls)
        if wrong:
            line = ast.unparse(node).splitlines()[0]
            found.append(f"{module}:{node.lineno}: {line}")
    return found


def is_changing_call(node: ast.Call, names: dict) -> bool:
    function = node.func
    if isinstance(function, ast.Name):
        if function.id in ("setattr", "delattr"):
            return of_others(node.args[0], names)
        # The globals of this very module; `vars(self)` is read.
        return False
    if not isinstance(function, ast.Attribute):
        return False
    if function.attr in ("__setattr__", "__delattr__") and node.args:
        return of_others(node.args[0], names)
    if function.attr in ("update", "setdefault", "__setitem__"):
        base = function.value
        is_dict = isinstance(base, ast.Attribute) and base.attr == "__dict__"
        if is_dict or isinstance(base, ast.Call):
            inner = base.value if is_dict else (base.args or [base])[0]
            called = "" if is_dict else ast.unparse(base.func)
            return (is_dict or called == "vars") and of_others(inner, names)
        return isinstance(value_of(base, names), dict) and of_others(base, names)
    return sets_a_rule(function, names)


def sets_a_rule(method: ast.Attribute, names: dict) -> bool:
    """Whether `p.def_batch` and the like is of a primitive that was imported."""
    if not method.attr.startswith("def_"):
        return False
    found = value_of(method.value, names)
    return isinstance(found, Primitive) and of_others(method.value, names)


@pytest.mark.parametrize("house", HOUSES)
def test_no_module_changes_another(house):
    found = []
    for path in sorted((HOUSES[house] / house).rglob("*.py")):
        module = ".".join(path.relative_to(HOUSES[house]).with_suffix("").parts)
        is_package = path.name == "__init__.py"
        package = module.removesuffix(".__init__") if is_package else ""
        package = package or module.rpartition(".")[0]
        found += patches(path.read_text(), module, package)
    assert found == []


@pytest.mark.parametrize(
    "patch",
    [
        "hlo.stablehlo = 1",
        "hlo.tensor_type, x = 1, 2",
        "avals.ShapedArray.ndim = 1",
        "sin_p.batch = None",
        "arithmetic.sin_p.batch = None",
        "p = sin_p\np.batch = None",
        "h = hlo\nh.stablehlo = 1",
        "h = arithmetic.hlo\nh.stablehlo = 1",
        "def f():\n    hlo.stablehlo = 1",
        "def f():\n    from minijax.core import sums\n    sums.zero = 1",
        "setattr(hlo, 'stablehlo', 1)",
        "for x in (hlo, avals):\n    setattr(x, 'stablehlo', 1)",
        "object.__setattr__(hlo, 'stablehlo', 1)",
        "vars(hlo).update(stablehlo=1)",
        "hlo.__dict__['stablehlo'] = 1",
        "hlo.__dict__.update(stablehlo=1)",
        "avals.aval_of_class[int] = None",
        "del avals.aval_of_class[int]",
        "avals.aval_of_class.update({})",
        "sin_p.lowerings[None] = None",
        "sin_p.def_lowering(None)",
        "@sin_p.def_batch\ndef rule(): pass",
        "with f() as hlo.stablehlo: pass",
        "hlo.FRAME_LIMIT += 1",
        "from minijax_widgets.view import views\nviews['cards'] = None",
    ],
)
def test_a_patch_is_found(patch):
    imports = "from minijax.core import arithmetic, avals, hlo\n"
    imports += "from minijax.core.arithmetic import sin_p\n"
    assert len(patches(imports + patch, "planted", "minijax")) == 1


def test_what_is_no_patch_is_not_found():
    text = "from minijax.core.state import state\nimport minijax\nx = {}\n"
    text += "x['a'] = minijax\nstate.trace = None\nself.a = 1\nminijax.config.update(1)"
    assert patches(text, "planted", "minijax") == []


# ----------------------------------------------------------------------------------
# Rules of the core's primitives
# ----------------------------------------------------------------------------------


def files_of(rule: object, seen: set[int]) -> Iterator[str]:
    """The files of a rule's code: through partials, wrappers and closures too."""
    if id(rule) in seen:
        return
    seen.add(id(rule))
    inner: list[object] = []
    if isinstance(rule, (tuple, list)):
        inner = list(rule)
    elif isinstance(rule, dict):
        inner = list(rule.values())
    elif isinstance(rule, functools.partial):
        inner = [rule.func, *rule.args, *rule.keywords.values()]
    elif isinstance(rule, types.MethodType):
        inner = [rule.__func__]
    elif isinstance(rule, types.FunctionType):
        yield rule.__code__.co_filename
        cells = rule.__closure__ or ()
        inner = [cell.cell_contents for cell in cells if cell != types.CellType()]
        inner += [rule.__defaults__, rule.__kwdefaults__]
    elif callable(rule) and not isinstance(rule, (type, Primitive)):
        file = getattr(sys.modules.get(type(rule).__module__), "__file__", None)
        yield file or ""
    inner.append(getattr(rule, "__wrapped__", None))
    for part in inner:
        yield from files_of(part, seen)


def from_outside(primitive: Primitive) -> list[str]:
    """The rules of a primitive whose code is in minijax, but not in its core."""
    house, core = str(ROOT / "minijax") + "/", str(ROOT / "minijax" / "core") + "/"
    return [
        f"{primitive}.{rule}"
        for rule in RULES
        if any(
            file.startswith(house) and not file.startswith(core)
            for file in files_of(getattr(primitive, rule), set())
        )
    ]


def primitives_of_the_core() -> list[Primitive]:
    for name in PUBLIC_MODULES:
        importlib.import_module(f"minijax.{name}" if name else "minijax")
    modules = [m for n, m in sys.modules.items() if n.startswith("minijax.core.")]
    found = {v for m in modules for v in vars(m).values() if isinstance(v, Primitive)}
    return sorted(found & {*all_primitives.values()}, key=str)


def test_rules_of_the_core_are_the_cores():
    primitives = primitives_of_the_core()
    assert len(primitives) >= 25
    assert [rule for p in primitives for rule in from_outside(p)] == []


def test_a_rule_from_outside_is_found(monkeypatch):
    from minijax.core.arithmetic import sin_p
    from minijax.primitives.elementwise.elementary import logistic_p, reciprocal

    assert from_outside(sin_p) == []
    assert from_outside(logistic_p) != []
    right = sin_p.batch

    @functools.wraps(right)
    def wrapped(*args):
        return reciprocal(*args)

    def over(function):
        return lambda *args: function(*args)

    planted = [reciprocal, functools.partial(right, reciprocal), over(reciprocal)]
    for rule in planted:
        monkeypatch.setattr(sin_p, "batch", rule)
        assert from_outside(sin_p) == ["sin.batch"]
    wrapped.__wrapped__ = reciprocal
    monkeypatch.setattr(sin_p, "batch", wrapped)
    assert from_outside(sin_p) == ["sin.batch"]
