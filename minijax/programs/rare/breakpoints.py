"""debug.breakpoint: stop a compiled program and look at its values.

When the function is traced, the frames of the user's Python are there, but the values
in them are tracers; when the program runs, the values are there, but the frames have
ended. So tracing copies the frames, and all tracers among their local
variables become arguments of a debug callback; the callback puts the values where the
tracers were and gives the copy to a debugger that reads commands.

In JAX: `jax/_src/debugger/core.py` and `cli_debugger.py`.
"""

from __future__ import annotations

import cmd
import inspect
import pprint
import sys
import threading
import traceback
from dataclasses import dataclass
from types import FrameType
from typing import Any

from minijax.core import source_info
from minijax.core.language import Tracer
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.primitives.shape.ordering import stop_gradient
from minijax.programs.callbacks.callback import pure_callback
from minijax.programs.callbacks.debug_callbacks import debug_callback

# ----------------------------------------------------------------------------------
# Pictures of frames
# ----------------------------------------------------------------------------------


@dataclass
class PicturedFrame:
    """A frame as it was: `lines` are the function's, `offset` the one that ran."""

    file_name: str
    line_number: int
    lines: list[str]
    offset: int | None
    variables: dict[str, Any]

    def tracers(self) -> list[tuple[str, int, Any]]:
        """(variable, position among its leaves, tracer) for each tracer."""
        return [
            (name, position, leaf)
            for name, value in self.variables.items()
            for position, leaf in enumerate(_leaves(value))
            if isinstance(leaf, Tracer)
        ]

    def filled(self, values: dict[tuple[str, int], Any]) -> PicturedFrame:
        """The frame with values in the places of its tracers."""
        variables = dict(self.variables)
        for name in {name for name, _ in values}:
            leaves, tree = tree_flatten(variables[name])
            given = [values.get((name, i), leaf) for i, leaf in enumerate(leaves)]
            variables[name] = tree_unflatten(tree, given)
        return PicturedFrame(
            self.file_name, self.line_number, self.lines, self.offset, variables
        )


def _leaves(value: Any) -> list[Any]:
    try:
        return tree_flatten(value)[0]
    except (TypeError, ValueError):
        return []  # a dict whose keys have no order, and other odd trees


def _picture(frame: FrameType) -> PicturedFrame:
    line_number = frame.f_lineno
    try:
        lines, start = inspect.getsourcelines(frame)
    except (OSError, TypeError):
        lines, start = [], 1
    lines = "".join(lines).split("\n") if lines else []
    place = line_number - max(start, 1)
    offset = place if place < len(lines) else None
    file_name = frame.f_code.co_filename
    return PicturedFrame(file_name, line_number, lines, offset, dict(frame.f_locals))


def _pictures(
    frame: FrameType | None, filter_frames: bool, limit: int | None
) -> list[PicturedFrame]:
    """The frames from the innermost outwards; the library's own only on request."""
    found: list[PicturedFrame] = []
    while frame is not None and (limit is None or len(found) < limit):
        if not filter_frames or source_info.is_user_filename(frame.f_code.co_filename):
            found.append(_picture(frame))
        frame = frame.f_back
    return found


# ----------------------------------------------------------------------------------
# The debugger
# ----------------------------------------------------------------------------------


class CommandLine(cmd.Cmd):
    """Reads commands and answers them: `help` lists them.

    In JAX: `debugger/cli_debugger.py`, `CliDebugger`.
    """

    prompt = "(jdb) "

    def __init__(
        self,
        frames: list[PicturedFrame],
        stdin: Any = None,
        stdout: Any = None,
        completekey: str = "tab",
    ):
        super().__init__(stdin=stdin, stdout=stdout, completekey=completekey)
        self.use_rawinput = stdin is None
        self.intro = "Entering jdb:"
        self.frames = frames
        self.index = 0

    def say(self, text: str) -> None:
        print(text, file=self.stdout)

    def show(self, expression: str, form: Any) -> None:
        """Evaluate an expression among the frame's variables and print it."""
        try:
            value = eval(expression, {}, dict(self.frames[self.index].variables))
            self.say(form(value))
        except Exception as error:
            self.say(f"*** {traceback.format_exception_only(error)[-1].strip()}")

    def show_place(self, around: int = 2) -> None:
        """Print the lines around the one that ran."""
        frame = self.frames[self.index]
        self.say(f"> {frame.file_name}({frame.line_number})")
        if frame.offset is None:
            return
        first = max(frame.offset - 1 - around, 0)
        for number in range(first, min(frame.offset + around + 1, len(frame.lines))):
            arrow = "->  " if number == frame.offset else "    "
            self.say(arrow + frame.lines[number])

    def default(self, line: str) -> None:
        """Anything that is not a command is an expression."""
        self.show(line, repr)

    def do_p(self, expression: str) -> None:
        """p expression: print its value."""
        self.show(expression, repr)

    def do_pp(self, expression: str) -> None:
        """pp expression: print its value, laid out over lines."""
        self.show(expression, pprint.pformat)

    def do_up(self, _: str) -> None:
        """u(p): to the frame that called this one."""
        if self.index == len(self.frames) - 1:
            self.say("At topmost frame.")
        else:
            self.index += 1
        self.show_place()

    def do_down(self, _: str) -> None:
        """d(own): to the frame that this one called."""
        if self.index == 0:
            self.say("At bottommost frame.")
        else:
            self.index -= 1
        self.show_place()

    def do_list(self, _: str) -> None:
        """l(ist): more lines around the one that ran."""
        self.show_place(around=5)

    def do_where(self, _: str) -> None:
        """w(here), bt: the frames, the innermost last."""
        self.say("Traceback:")
        for frame in reversed(self.frames):
            self.say(f'  File "{frame.file_name}", line {frame.line_number}')
            if frame.offset is None:
                self.say("    <no source>")
            else:
                self.say(f"    {frame.lines[frame.offset].strip()}")

    def do_continue(self, _: str) -> bool:
        """c(ont(inue)): let the program go on."""
        return True

    def do_quit(self, _: str) -> None:
        """q(uit), exit: end the program."""
        sys.exit(0)

    do_u = do_up
    do_d = do_down
    do_l = do_list
    do_w = do_bt = do_where
    do_c = do_cont = do_continue
    do_q = do_EOF = do_exit = do_quit

    def run(self) -> None:
        """Read commands until one lets the program go on."""
        while True:
            try:
                self.cmdloop()
                return
            except KeyboardInterrupt:
                self.say("--KeyboardInterrupt--")


# Programs may stop in several threads at once; people answer one.
_answering = threading.Lock()


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stop here each time the program runs, and read commands.

    Args:
      backend: "cli" or None: the debugger that reads commands from a terminal.
      filter_frames: leave the library's own frames out.
      num_frames: how many frames are kept, from the innermost; None: all.
      ordered: whether stops keep the program's order among ordered prints.
      token: in place of `ordered`, a tree of arrays that is returned unchanged; the
        program stops when they are computed and what is returned is used.
      **kwargs: `stdin` and `stdout`, files to read from and to write to.

    Raises:
      ValueError: for both `ordered` and `token`, or an unknown backend.
    """
    if token is not None and ordered:
        raise ValueError("`ordered` and `token` are mutually exclusive arguments.")
    if backend not in (None, "cli"):
        raise ValueError(f"breakpoint has the backend 'cli' only, got {backend!r}")
    frames = _pictures(sys._getframe(1), filter_frames, num_frames)
    places = [
        (number, name, position, tracer)
        for number, frame in enumerate(frames)
        for name, position, tracer in frame.tracers()
    ]

    def stop(*values: Any) -> None:
        filled = []
        for number, frame in enumerate(frames):
            own = {
                (name, position): value
                for (where, name, position, _), value in zip(places, values)
                if where == number
            }
            filled.append(frame.filled(own))
        with _answering:
            CommandLine(filled, **kwargs).run()

    tracers = [tracer for *_, tracer in places]
    if token is None:
        debug_callback(stop, *tracers, ordered=ordered)
        return None

    def stop_and_return(returned: Any, *values: Any) -> Any:
        stop(*values)
        return returned

    held, values = stop_gradient((token, tracers))
    return pure_callback(stop_and_return, held, held, *values)
