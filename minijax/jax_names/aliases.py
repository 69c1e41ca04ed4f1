"""`as_jax()`: in this process `import jax` gives minijax.

Each module of JAX becomes a module of its own here (`Alias`), with the names of
minijax's module beside it and those that `listed.py` adds. Modules of `jax._src` exist
as far as they are listed. jaxlib looks for two of them by itself and must not find
them: they are not listed, and a test holds it.
"""

from __future__ import annotations

import dis
import importlib
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence
from typing import Any

from minijax.jax_names.listed import MODULES, NAMES

# Rooms of minijax of which JAX has no module.
_INNER = (
    "as_jax assembly backend compile exporting jax_names kernels primitives processes"
    " programs support transforms values"
).split()
_INNER_NAMES = {f"minijax.{room}" for room in _INNER}
_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


def as_jax() -> None:
    """Make `import jax`, and its modules, mean minijax in this process.

    Call it before anything imports jax; a second call changes nothing. From a shell,
    `python -m minijax.as_jax script.py` does the same for one program. Modules are
    found under JAX's names with minijax's values in them; of `jax._src` there is what
    well-known libraries use, listed in `minijax/jax_names/listed.py`.

    Raises:
      RuntimeError: jax itself has been imported already.
    """
    loaded = sys.modules.get("jax")
    if isinstance(loaded, Alias) or any(isinstance(f, _Finder) for f in sys.meta_path):
        return
    if loaded is not None:
        raise RuntimeError(
            "as_jax: jax itself has been imported already, and functions imported "
            "from it would stay jax's. Call minijax.as_jax() before any import of "
            "jax, or start the program with `python -m minijax.as_jax script.py`."
        )
    sys.meta_path.insert(0, _Finder())


class Alias(types.ModuleType):
    """A module of JAX made of minijax's module beside it and of listed names."""

    def __getattr__(self, name: str) -> Any:
        try:
            value = _find(self.__name__, name)
        except LookupError:
            caller = sys._getframe(1)
            text = _missing(self.__name__, name, dir(self))
            if caller.f_code.co_code[caller.f_lasti] == _IMPORT_FROM:
                # Python would put a text of its own in the place of AttributeError's.
                raise ImportError(text, name=self.__name__) from None
            raise AttributeError(text, name=name, obj=self) from None
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *_listed(self.__name__)}
        for source in _sources(self.__name__):
            names.update(name for name in dir(source) if not name.startswith("_"))
        if self.__name__ == "jax":
            names.difference_update(_INNER)
            names.add("as_jax")
        return sorted(names)


class _Finder:
    """Finds `jax` and its modules, before Python looks into folders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != "jax":
            return None
        if not _exists(fullname):
            parent, _, name = fullname.rpartition(".")
            text = _missing(parent, name, dir(sys.modules[parent]))
            raise ModuleNotFoundError(text, name=fullname)
        loader: Any = self
        return importlib.machinery.ModuleSpec(fullname, loader, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Alias:
        return Alias(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Copy minijax's names, so that reading one costs what it does elsewhere."""
        for source in reversed(_sources(module.__name__)):
            for name, value in vars(source).items():
                if not name.startswith("_") and not isinstance(value, types.ModuleType):
                    module.__dict__[name] = value
            module.__doc__ = source.__doc__
            if hasattr(source, "__all__"):
                inner = _INNER if module.__name__ == "jax" else ()
                module.__dict__["__all__"] = sorted({*source.__all__}.difference(inner))
        # A listed name stands before one of minijax, and is found when it is used.
        for name in _listed(module.__name__):
            module.__dict__.pop(name, None)


def _minijax_name(fullname: str) -> str | None:
    """The module of minijax beside a module of JAX, if there is one."""
    if fullname.split(".")[1:2] and fullname.split(".")[1] in _INNER:
        return None
    name = "mini" + fullname
    try:
        return name if importlib.util.find_spec(name) else None
    except ModuleNotFoundError:
        return None


def _exists(fullname: str) -> bool:
    return fullname in MODULES or _minijax_name(fullname) is not None


def _listed(fullname: str) -> dict[str, str]:
    return NAMES.get(fullname, {})


def _sources(fullname: str) -> list[types.ModuleType]:
    """The modules of minijax in which a module of JAX looks for its names."""
    beside = _minijax_name(fullname)
    names = [*([beside] if beside else []), *MODULES.get(fullname, ())]
    return [importlib.import_module(name) for name in names]


def _find(module: str, name: str) -> Any:
    """The value of `module.name`; LookupError if there is none."""
    listed = _listed(module)
    if name in listed:
        place, _, attribute = listed[name].partition(":")
        found = importlib.import_module(place)
        return getattr(found, attribute) if attribute else found
    if name.startswith("__"):
        raise LookupError(name)
    inner = f"{module}.{name}"
    if _exists(inner):
        return importlib.import_module(inner)
    for source in _sources(module):
        value = getattr(source, name, None)
        if value is not None and getattr(value, "__name__", "") not in _INNER_NAMES:
            return value
        if value is None and name in vars(source):
            return None
    raise LookupError(name)


def _missing(module: str, name: str, there: list[str]) -> str:
    """The message for a missing name: who imported it, from which line, what exists."""
    import difflib

    frame: types.FrameType | None = sys._getframe(2)
    while frame and frame.f_globals.get("__name__", "").startswith(
        ("importlib", "minijax.jax_names")
    ):
        frame = frame.f_back
    asked = ""
    if frame:
        library = frame.f_globals.get("__name__", "?").partition(".")[0]
        who = "The program" if library == "__main__" else library
        asked = f" {who} asks for it in {frame.f_code.co_filename}:{frame.f_lineno}."
    public = [each for each in there if not each.startswith("_")]
    close = public if len(public) <= 12 else difflib.get_close_matches(name, public, 5)
    exists = f" There is: {', '.join(close)}." if close else ""
    return f"minijax, which stands for jax here, has no {module}.{name}.{asked}{exists}"
