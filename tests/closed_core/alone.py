"""Run with `python -I` where only the files of the core are: does all, prints JSON.

    python -I alone.py FOLDER

`FOLDER` holds a copy of `minijax/core/` named `copied_core`, and nothing else. What is
printed: each program's text and results, each wrong program's error, the lines that
were executed, and the modules that were loaded. No hook is attached.
"""

import json
import sys
import threading
import types


class Refuse:
    """Nothing but the core, jaxlib and what they need may be imported."""

    REFUSED = ("jax", "scipy", "matplotlib", "minijax_lab", "minijax_widgets")

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.REFUSED:
            raise ModuleNotFoundError(f"{name} is not to be had here", name=name)
        return None


def watch(folder, executed):
    """Collect the executed lines of files in `folder`, by file."""
    lines_of = {}

    def in_line(frame, event, argument):
        if event == "line":
            lines_of[frame.f_code.co_filename].add(frame.f_lineno)
        return in_line

    def in_call(frame, event, argument):
        name = frame.f_code.co_filename
        if not name.startswith(folder):
            return None
        lines_of.setdefault(name, set()).add(frame.f_lineno)
        return in_line

    threading.settrace(in_call)
    sys.settrace(in_call)
    executed.append(lines_of)


def namespace():
    """A namespace like `jax`, over the files of the core."""
    import copied_core.api as api
    import copied_core.arithmetic as arithmetic
    import copied_core.dot as dot
    import copied_core.jit as pjit
    import copied_core.operators as operators  # noqa: F401  installs them
    import copied_core.shaping as shaping
    import copied_core.sums as sums

    library = types.SimpleNamespace(lax=types.SimpleNamespace())
    for module in (arithmetic, shaping, sums, dot):
        for name, value in vars(module).items():
            if not name.startswith("_"):
                vars(library.lax).setdefault(name, value)
    for module in (api, pjit):
        for name, value in vars(module).items():
            if not name.startswith("_"):
                vars(library).setdefault(name, value)
    return library


def described(result):
    """A result's leaves: dtype, shape, weak type and numbers."""
    import numpy as np
    from copied_core.avals import get_aval
    from copied_core.trees import tree_leaves

    leaves = []
    for leaf in tree_leaves(result):
        aval = get_aval(leaf)
        value = np.asarray(leaf)
        leaves.append(
            [str(aval.dtype), list(value.shape), aval.weak_type, value.tolist()]
        )
    return leaves


def run(library, programs):
    from copied_core.check import check_jaxpr

    told = {}
    for name, make in programs.items():
        function, arguments = make(library)
        closed = library.make_jaxpr(function)(*arguments)
        check_jaxpr(closed.jaxpr)
        compiled = library.jit(function)
        results = described(compiled(*arguments))
        assert described(compiled(*arguments)) == results  # now from the cache
        told[name] = {
            "text": str(closed),
            "results": results,
            "eager": described(function(*arguments)),
        }
    return told


def run_wrong(library, programs):
    told = {}
    for name, attempt in programs.items():
        try:
            attempt(library)
        except Exception as error:
            told[name] = [type(error).__name__, str(error)]
        else:
            told[name] = ["nothing", ""]
    return told


def main(folder):
    sys.meta_path.insert(0, Refuse())
    sys.path.insert(0, folder)
    executed = []
    watch(folder, executed)
    import programs

    library = namespace()
    told = {
        "programs": run(library, programs.PROGRAMS),
        "wrong": run_wrong(library, programs.WRONG),
    }
    sys.settrace(None)
    threading.settrace(None)
    told["lines"] = {name: sorted(lines) for name, lines in executed[0].items()}
    ours = ("minijax", "copied_core")
    told["modules"] = sorted(m for m in sys.modules if m.split(".")[0] in ours)
    told["others"] = sorted(
        {m.split(".")[0] for m in sys.modules} - set(sys.stdlib_module_names)
    )
    from copied_core.events import hooks

    told["hooks"] = {name: hook.run is hook.default for name, hook in hooks.items()}
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
