"""A flight recorder for programs that use real JAX.

    python -m minijax_widgets.record train.py --steps 100

runs the script as `python train.py --steps 100` would, and writes one page that opens
without a network: for each function that the script jitted, its calls (which were
answered by a kept program, which were traced or compiled, and why), and the program of
its first call at every level, from the lines to the kernels.

JAX is not imported here. When the script imports it, `jax.jit` is replaced with one
that hands out the same functions with a recorder in front.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import functools
import os
import runpy
import sys
import time
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from minijax_lab.explain.jax_cache import JaxCacheWatch
from minijax_lab.explain.recording import count_in_words
from minijax_widgets.cache_view import CacheView
from minijax_widgets.fusion_view import fusion
from minijax_widgets.stages_view import stages
from minijax_widgets.view import PAGE, View, player

# Functions that have a part of their own in the page, those called most first.
MOST_FUNCTIONS = 40


class Recorded:
    """A function that JAX jitted, with a recorder in front; else as it was."""

    def __init__(self, jitted: Any) -> None:
        self.jitted = jitted
        self.watch = JaxCacheWatch(jitted)
        self.watch.start()
        self.first: tuple[tuple, dict[str, Any]] | None = None
        functools.update_wrapper(self, jitted, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        jax = sys.modules["jax"]
        leaves = jax.tree_util.tree_leaves((args, kwargs))
        tracer = sys.modules["jax._src.core"].Tracer
        if any(isinstance(leaf, tracer) for leaf in leaves):
            return self.jitted(*args, **kwargs)  # inside of another program
        if self.first is None:
            self.first = self.shapes(args, kwargs)
        return self.watch.call(args, kwargs)

    def shapes(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict]:
        """The arguments without their values, so that none is kept alive."""
        jax = sys.modules["jax"]

        def of(leaf: Any) -> Any:
            if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
                return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
            return leaf

        return jax.tree_util.tree_map(of, (args, kwargs))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        # A jitted method: the object that it belongs to is its first argument.
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jitted, name)


class Recorder:
    """All functions that a script jitted, in order."""

    def __init__(self) -> None:
        self.functions: list[Recorded] = []

    def jit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`jax.jit` that records what it makes, however it is called."""

        @functools.wraps(original)
        def jit(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            if hasattr(made, "_jit_info"):
                self.functions.append(Recorded(made))
                return self.functions[-1]

            def decorate(function: Callable[..., Any]) -> Any:
                # `@jax.jit(static_argnames=...)`: options first, the function later.
                self.functions.append(Recorded(made(function)))
                return self.functions[-1]

            return decorate

        return jit

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Replaces `jax.jit` from the moment at which the script imports JAX."""
        plain_import = builtins.__import__
        replaced: list[Any] = []

        def replace() -> None:
            jax: Any = sys.modules.get("jax")
            if jax is not None and hasattr(jax, "jit") and not replaced:
                replaced.append((jax, jax.jit))
                jax.jit = self.jit(jax.jit)

        def importing(name: str, *args: Any, **kwargs: Any) -> Any:
            # After the outermost import, when JAX is whole.
            module = plain_import(name, *args, **kwargs)
            if name.partition(".")[0] == "jax" and caller_is_outside():
                replace()
            return module

        if "jax" in sys.modules:
            replace()
        builtins.__import__ = importing
        try:
            yield
        finally:
            builtins.__import__ = plain_import
            for jax, original in replaced:
                jax.jit = original

    # ---- the page ------------------------------------------------------------------

    def page(self, title: str, error: str = "") -> str:
        """Returns the page: a summary, and the views of each function."""
        called = [f for f in self.functions if f.watch.total]
        called.sort(key=lambda f: -f.watch.misses)
        parts = [f"<h2>{escape(title)}</h2>", summary(called, len(self.functions))]
        if error:
            parts.append(
                f"<p><b>The script ended with an error:</b> {escape(error)}</p>"
            )
        made: list[str] = []
        for number, function in enumerate(called[:MOST_FUNCTIONS]):
            name = escape(getattr(function, "__name__", "function"))
            made.append(f'<h3 id="f{number}">{name}</h3>')
            made += [piece(view) for view in views_of(function)]
        # The player stands in the first view; the others wait for it.
        code = f'code="{player()[0]}"'
        whole = "\n".join(made)
        head, found, rest = whole.partition(code)
        parts.append(head + found + rest.replace(code, 'code=""'))
        if len(called) > MOST_FUNCTIONS:
            parts.append(f"<p>and {len(called) - MOST_FUNCTIONS:,} more functions</p>")
        style = (
            "<style>h2,h3,p,table{font-family:system-ui,sans-serif;color:#1B2027}"
            "td,th{padding:2px 12px 2px 0;text-align:left;font-size:14px}"
            "@media (prefers-color-scheme:dark){h2,h3,p,table,a{color:#E6EAF0}}</style>"
        )
        return PAGE.format(title=escape(title), body=style + "\n".join(parts))


def caller_is_outside() -> bool:
    """Whether the import that is running was written outside of JAX itself."""
    frame = sys._getframe(2)
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package not in ("jax", "jaxlib", "jax_plugins", "importlib")


def views_of(function: Recorded) -> Iterator[View | str]:
    """The views of one function: its calls, its levels, its kernels."""
    yield CacheView(watch=function.watch)
    if function.first is None:
        return
    args, kwargs = function.first
    for view in (stages, fusion):
        try:
            yield view(function.jitted, *args, **kwargs)
        except Exception as error:
            name = view.__name__
            told = " ".join(str(error).split())[:300]
            yield f"see.{name} does not show this function: {told}"


def piece(view: View | str) -> str:
    """A view as HTML, or a sentence in its place."""
    return f"<p>{escape(view)}</p>" if isinstance(view, str) else view.to_html()


def summary(called: list[Recorded], made: int) -> str:
    """A table of all functions: calls, misses, time spent on them."""
    if not called:
        told = count_in_words(made, "function")
        return f"<p>{told} jitted, and none was called.</p>"
    rows = ["<tr><th>function</th><th>calls</th><th>misses</th><th>avoidable</th>"]
    rows[0] += "<th>tracing, lowering, compiling</th></tr>"
    for number, function in enumerate(called):
        watch = function.watch
        name = escape(getattr(function, "__name__", "function"))
        link = f'<a href="#f{number}">{name}</a>' if number < MOST_FUNCTIONS else name
        avoidable = sum(call.avoidable for call in watch.calls)
        spent = sum(watch.seconds.values())
        rows.append(
            f"<tr><td>{link}</td><td>{watch.total:,}</td><td>{watch.misses:,}</td>"
            f"<td>{avoidable:,}</td><td>{spent * 1e3:,.0f} ms</td></tr>"
        )
    return f"<table>{''.join(rows)}</table>"


def run(script: str, arguments: list[str], output: Path) -> int:
    """Runs a script under the recorder and writes its page; returns its exit status."""
    recorder = Recorder()
    path = sys.path[0]
    before = sys.argv
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    status, error = 0, ""
    begin = time.perf_counter()
    try:
        with recorder.listening():
            runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except BaseException as raised:
        import traceback

        traceback.print_exc()
        status, error = 1, f"{type(raised).__name__}: {raised}"
    finally:
        sys.argv, sys.path[0] = before, path
    took = time.perf_counter() - begin
    name = os.path.basename(script)
    title = f"{name}: {count_in_words(len(recorder.functions), 'jitted function')}"
    output.write_text(recorder.page(f"{title}, {took:.1f} s", error), encoding="utf-8")
    print(f"recorded: {output}", file=sys.stderr)
    return status


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the script's exit status, or 2 for wrong arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m minijax_widgets.record",
        description="Runs a script that uses JAX and writes one page: why each jitted "
        "function was traced or compiled, and what it became.",
    )
    parser.add_argument(
        "-o", "--output", type=Path, help="the page (default: SCRIPT.record.html)"
    )
    parser.add_argument("script", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    options = parser.parse_args(arguments)
    script = Path(options.script)
    if not script.is_file():
        parser.error(f"there is no file {script}.")
    output = options.output or script.with_suffix(".record.html").name
    output = Path(output)
    if not output.absolute().parent.is_dir():
        parser.error(f"the folder of {output} does not exist; make it first.")
    return run(str(script), options.arguments, output)


if __name__ == "__main__":
    sys.exit(main())
