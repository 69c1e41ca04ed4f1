"""The `minijax` command: open the course, refresh its notebooks, grade learners'.

`minijax lab` needs the extra `minijax[lab]`; everything here that Jupyter provides is
imported when it is used, so that `minijax --help` answers at once and anywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minijax.backend import disk_cache
from minijax.processes import launcher
from minijax.support.config import config

FIRST_CHAPTER = "00_start_here.ipynb"
# What a copy of the course leaves behind.
LEFT_OUT = shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__", "*.pyc")


class CommandError(Exception):
    """A sentence for the user; the command prints it and ends with status 2."""


def course_folder() -> Path:
    """Returns the folder of the course's notebooks: a checkout's, or the wheel's."""
    package = Path(__file__).resolve().parent
    for folder in (package.parents[1] / "notebooks", package / "notebooks"):
        if (folder / FIRST_CHAPTER).is_file():
            return folder
    raise CommandError(
        "the course's notebooks are not beside this minijax; install it from a wheel "
        "or run the command in a checkout that has a notebooks folder."
    )


def copy_course(target: Path) -> tuple[list[str], list[str]]:
    """Copies the course to `target`; returns the paths copied and those kept.

    A file that is already there is never overwritten: it may hold the learner's work.
    """
    source = course_folder()
    if target.resolve() == source.resolve():
        raise CommandError(
            f"the folder {target} is where the course itself lives; name another one, "
            "as in `minijax lab my`, so that learning does not change the course."
        )
    copied: list[str] = []
    kept: list[str] = []
    for folder, subfolders, names in os.walk(source):
        skipped = LEFT_OUT(folder, [*subfolders, *names])
        subfolders[:] = sorted(name for name in subfolders if name not in skipped)
        for name in sorted(names):
            if name in skipped:
                continue
            relative = (Path(folder) / name).relative_to(source)
            destination = target / relative
            if destination.exists():
                kept.append(relative.as_posix())
                continue
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(folder) / name, destination)
            copied.append(relative.as_posix())
    return copied, kept


def sign_notebooks(folder: Path, names: Sequence[str]) -> None:
    """Signs the named notebooks, so that JupyterLab shows their saved views live."""
    from nbformat import read
    from nbformat.sign import NotebookNotary

    notary = NotebookNotary()
    for name in names:
        if name.endswith(".ipynb"):
            notary.sign(read(folder / name, as_version=4))


def has_browser() -> bool:
    """Says whether this machine can show a page to the person who typed."""
    if sys.platform.startswith("linux"):
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def server_address(process: subprocess.Popen[bytes], seconds: float) -> str | None:
    """Waits for the server's own note of its address; None if it does not come."""
    from jupyter_server.serverapp import list_running_servers

    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        for server in list_running_servers():
            if server["pid"] == process.pid:
                page = f"lab/tree/{FIRST_CHAPTER}?token={server['token']}"
                return f"{server['url']}{page}"
        time.sleep(0.2)
    return None


def start_lab(folder: Path, port: int, browser: bool) -> int:
    """Runs JupyterLab on `folder` until it is stopped; returns its exit status."""
    command = [sys.executable, "-m", "jupyterlab", f"--notebook-dir={folder}"]
    command += [f"--port={port}", "--no-browser", "--log-level=WARN"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # Jupyter refuses root without it
    with tempfile.TemporaryDirectory() as configuration:
        process = subprocess.Popen(command, env=quiet_environment(configuration))
        return wait_for_lab(process, browser)


def quiet_environment(configuration: str) -> dict[str, str]:
    """Returns an environment in which JupyterLab asks no question about its news.

    It also saves the state of widgets with a notebook. Without it, a view with sliders
    would be gone, with an error in its place, when the notebook is opened again.
    """
    settings = Path(configuration) / "labconfig"
    settings.mkdir(parents=True)
    announcements = "@jupyterlab/apputils-extension:announcements"
    disabled = {"disabledExtensions": {announcements: True}}
    (settings / "page_config.json").write_text(json.dumps(disabled))
    widgets = {"@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True}}
    overrides = settings / "default_setting_overrides.json"
    overrides.write_text(json.dumps(widgets))
    known = os.environ.get("JUPYTER_CONFIG_PATH")
    paths = [configuration, known] if known else [configuration]
    return {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(paths)}


def wait_for_lab(process: subprocess.Popen[bytes], browser: bool) -> int:
    """Says where JupyterLab is, and waits until it ends; returns its exit status."""
    try:
        address = server_address(process, seconds=60)
        if address is not None:
            print(f"\nJupyterLab is running on chapter 00:\n\n    {address}\n")
            if browser and webbrowser.open(address):
                print("Your browser should show it now. Ctrl+C here ends it.")
            else:
                print("Open this address in a browser. Ctrl+C here ends it.")
            sys.stdout.flush()
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        return 0


def lab(arguments: argparse.Namespace) -> int:
    """`minijax lab [folder]`: a copy of the course, opened in JupyterLab."""
    try:
        import jupyterlab  # noqa: F401
        import nbformat  # noqa: F401
    except ImportError as error:
        raise CommandError(
            f"`minijax lab` needs {error.name}; install the course's extras with "
            "`pip install 'minijax[lab]'`."
        ) from None
    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    copied, kept = copy_course(folder)
    sign_notebooks(folder, copied)
    print(f"the course is in {folder}{os.sep}: {len(copied)} files copied", end="")
    print(f", {len(kept)} kept as you left them" if kept else "")
    if arguments.prepare:
        return 0
    browser = not arguments.no_browser and has_browser()
    return start_lab(folder, arguments.port, browser)


def cache(arguments: argparse.Namespace) -> int:
    """`minijax cache`: what the cache of compiled programs holds, or clear it."""
    directory = config.read("compilation_cache_dir")
    if not directory:
        print("no folder: the flag jax_compilation_cache_dir is None.")
        return 0
    folder = disk_cache.Folder(disk_cache.Policy(directory))
    kept: list[OSError] = []
    try:
        files = folder.files()
        if arguments.clear:
            kept = folder.clear()
    except FileNotFoundError:
        files = []
    except OSError as error:
        raise CommandError(f"the folder of programs cannot be read: {error}.") from None
    if kept:
        raise CommandError(f"{len(kept)} programs were not removed: {kept[0]}.")
    size = sum(size for _, size, _ in files)
    many = "1 program" if len(files) == 1 else f"{len(files):,} programs"
    done = " removed" if arguments.clear else ""
    print(f"{folder.path}: {many}, {size / 2**20:,.1f} MiB{done}")
    return 0


def launch(arguments: argparse.Namespace) -> int:
    """`minijax launch -n 4 script.py`: one script in several processes."""
    if arguments.processes < 1:
        raise CommandError(f"-n must be at least 1, and it is {arguments.processes}.")
    for name in ("timeout", "wait"):
        if getattr(arguments, name) <= 0:
            raise CommandError(f"--{name} must be more than 0.")
    if arguments.devices is not None and arguments.devices < 1:
        raise CommandError(f"--devices must be at least 1, not {arguments.devices}.")
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if arguments.module:
        script = ["-m", arguments.script]
    elif not Path(arguments.script).is_file():
        raise CommandError(f"there is no script {arguments.script}.")
    else:
        script = [arguments.script]
    return launcher.run(
        launcher.Launch(
            [sys.executable, *script, *words],
            arguments.processes,
            arguments.devices,
            arguments.timeout,
            arguments.wait,
        )
    )


def course_refresh(arguments: argparse.Namespace) -> int:
    """`minijax course refresh`: run notebooks again and show what changed."""
    if arguments.notebooks:
        paths = [Path(name) for name in arguments.notebooks]
    else:
        paths = sorted(course_folder().glob("[0-9]*.ipynb"))
    for path in paths:
        if not path.is_file():
            raise CommandError(f"there is no notebook {path}.")
    try:
        from minijax_lab.refresh import refresh
    except ImportError as error:
        raise CommandError(
            f"`minijax course refresh` needs {error.name}; install the course's extras "
            "with `pip install 'minijax[lab]'`."
        ) from None
    return refresh(paths, accept=arguments.accept)


def course_check(arguments: argparse.Namespace) -> int:
    """`minijax course check`: grade a folder of learners' notebooks."""
    folder = Path(arguments.folder)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise CommandError(
            f"{folder} {what}; name the folder with the learners' notebooks, one "
            "folder or one notebook for each learner."
        )
    for name, value in (
        ("--seconds", arguments.seconds),
        ("--cell-seconds", arguments.cell_seconds),
        ("--memory", arguments.memory),
        ("--jobs", arguments.jobs),
    ):
        if value <= 0:
            raise CommandError(f"{name} must be more than 0, and it is {value:g}.")
    try:
        import IPython  # noqa: F401
    except ImportError:
        raise CommandError(
            "`minijax course check` needs IPython; install the course's extras with "
            "`pip install 'minijax[lab]'`."
        ) from None
    from minijax_lab import bulk_check

    found = bulk_check.notebooks_in(folder)
    if not found:
        raise CommandError(f"there is no notebook (*.ipynb) in {folder}.")
    targets = [(arguments.csv, bulk_check.write_csv)]
    targets.append((arguments.json, bulk_check.write_json))
    for target, _ in targets:
        if target is not None and not Path(target).absolute().parent.is_dir():
            raise CommandError(f"the folder of {target} does not exist; make it first.")
    limits = bulk_check.Limits(
        arguments.seconds, arguments.cell_seconds, arguments.memory
    )
    reports = bulk_check.check_folder(folder, limits, arguments.jobs)
    for line in bulk_check.table(reports):
        print(line)
    if arguments.summary:
        for line in bulk_check.summary(reports):
            print(line)
    for target, write in targets:
        if target is not None:
            write(reports, Path(target))
            print(f"written: {target}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command."""
    parser = argparse.ArgumentParser(
        prog="minijax",
        description="minijax is JAX, small enough to read and built to be watched.",
        epilog="Start with `minijax lab`: it opens chapter 00 of the course.",
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(title="commands", metavar="")

    lab_parser = commands.add_parser(
        "lab",
        help="copy the course to a folder and open it in JupyterLab",
        description="Copies the course's notebooks to a folder (files already there "
        "are kept as they are) and opens chapter 00 in JupyterLab.",
    )
    add = lab_parser.add_argument
    add("folder", nargs="?", default="my", help="where the copy goes (default: my)")
    add("--port", type=int, default=8888, help="default: 8888")
    add("--no-browser", action="store_true", help="only print the address")
    add("--prepare", action="store_true", help="copy the course and stop there")
    lab_parser.set_defaults(run=lab)

    cache_parser = commands.add_parser(
        "cache",
        help="say what the cache of compiled programs holds, or clear it",
        description="Compiled programs are kept in a folder, so that the next process "
        "need not compile them. Prints the folder, the number of programs and their "
        "size.",
    )
    add = cache_parser.add_argument
    add("--clear", action="store_true", help="remove all programs")
    cache_parser.set_defaults(run=cache)

    add_launch_parser(commands)
    course = commands.add_parser(
        "course", help="tools for those who write the course, or teach it"
    )
    tools = course.add_subparsers(title="tools", metavar="", required=True)
    refresh_parser = tools.add_parser(
        "refresh",
        help="run notebooks again, in place, and print what changed",
        description="Runs notebooks from top to bottom, writes their outputs in "
        "place, and prints a difference for each output that changed. A change that "
        "neither the notebook nor minijax's code explains is refused.",
    )
    add = refresh_parser.add_argument
    add("notebooks", nargs="*", help="paths (default: the whole course)")
    add(
        "--accept",
        action="append",
        default=[],
        metavar="CELL",
        help="accept an unexplained change of this cell, as in 02:7 (repeatable)",
    )
    refresh_parser.set_defaults(run=course_refresh)
    add_check_parser(tools)
    return parser


def add_launch_parser(commands: Any) -> None:
    """Adds `minijax launch` to the commands."""
    launch_parser = commands.add_parser(
        "launch",
        help="run a script in several processes of this machine",
        description="Starts a script several times. In each process "
        "`minijax.distributed.initialize()`, called without arguments, makes it one of "
        "all; `devices()` are then those of all processes. Lines are printed with the "
        "process's number in front. When a process dies, the others say which, and "
        "end; Ctrl-C ends all.",
    )
    add = launch_parser.add_argument
    add("-n", "--processes", type=int, required=True, help="how many processes")
    add("--devices", type=int, help="CPU devices for each process (default: 1)")
    add(
        "--timeout",
        type=float,
        default=10.0,
        help="seconds of silence after which a process is gone (default: 10)",
    )
    add(
        "--wait",
        type=float,
        default=60.0,
        help="seconds that processes wait for each other, at the start and at each new "
        "program (default: 60)",
    )
    add("-m", "--module", action="store_true", help="the script is a module's name")
    add("script", help="the script")
    add("words", nargs=argparse.REMAINDER, help="the script's own arguments")
    launch_parser.set_defaults(run=launch)


def add_check_parser(tools: Any) -> None:
    """Adds `minijax course check` to the tools of `minijax course`."""
    check_parser = tools.add_parser(
        "check",
        help="grade a folder of learners' notebooks",
        description="Runs every notebook below a folder, each in a process of its own, "
        "and prints for each learner and exercise: passed, failed (with the reason), "
        "not tried, or not run. A learner is a folder in it, or a notebook that lies "
        "directly in it; where an exercise is checked several times, the best counts. "
        "A notebook that is broken, loops for ever or takes too much memory is named, "
        "and the others are still run. Copies are run, with what lies in the learner's "
        "folder; what was handed in stays as it is.",
        epilog="The notebooks are run, and so is whatever their authors wrote: they "
        "get limits, no network where the system allows that, and an almost empty "
        "environment, but they can read and write files as you can. Use a machine or "
        "an account where that does no harm. What a notebook says of its own answers "
        "does not count, and one that replaces a grader's functions is named; only a "
        "container helps against one that searches the memory of its process.",
    )
    add = check_parser.add_argument
    add("folder", help="the folder with the learners' notebooks")
    add("--csv", metavar="FILE", help="write the results there")
    add("--json", metavar="FILE", help="write the results and all errors there")
    add(
        "--summary",
        action="store_true",
        help="also print how many solved each exercise, the hardest one first",
    )
    add("--seconds", type=float, default=300, help="for a notebook (default: 300)")
    add("--cell-seconds", type=float, default=60, help="for a cell (default: 60)")
    add(
        "--memory",
        type=int,
        default=4096,
        help="mebibytes for a notebook (default: 4096)",
    )
    add("--jobs", type=int, default=1, help="notebooks at a time (default: 1)")
    check_parser.set_defaults(run=course_check)


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command on `words` (default: the process's own arguments)."""
    parser = make_parser()
    arguments = parser.parse_args(words)
    if arguments.version:
        from importlib.metadata import version

        print(f"minijax {version('minijax')}")
        return 0
    if not hasattr(arguments, "run"):
        parser.print_help()
        return 0
    try:
        return arguments.run(arguments)
    except CommandError as error:
        print(f"minijax: {error}", file=sys.stderr)
        return 2
