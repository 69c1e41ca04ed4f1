"""Measuring where a program spends its time, and what holds memory: XLA's profiler.

A session records what the threads of this process and its devices do: each kernel of a
compiled program by name, and the blocks of Python that the user named. It writes files
for TensorBoard (`*.xplane.pb`) and Perfetto (`*.trace.json.gz`), or hands out events.

In JAX: `jax/_src/profiler.py`.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from jaxlib import _profile_data, _profiler  # type: ignore[attr-defined]

from minijax.core import runtime
from minijax.core.runtime import jaxlib_version_text

ProfileData: Any = _profile_data.ProfileData
ProfileEvent: Any = _profile_data.ProfileEvent
ProfilePlane: Any = _profile_data.ProfilePlane
ProfileOptions: Any = _profiler.ProfileOptions
# A block of Python with a name, on the time line: `with TraceAnnotation("load"):`.
TraceAnnotation: Any = _profiler.TraceMe


class StepTraceAnnotation(TraceAnnotation):
    """A step of a training loop: `with StepTraceAnnotation("train", step_num=3):`.

    Tools that read the profile sum up what happens in each step.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


@dataclass
class _Recording:
    """The one session that a process may have."""

    session: Any = None
    folder: str = ""
    for_perfetto: bool = False
    server: Any = None
    lock: Any = field(default_factory=threading.Lock)


_recording = _Recording()


def start_trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> None:
    """Begins to record; `stop_trace` ends it and writes the files.

    Args:
      log_dir: the folder for `plugins/profile/<time>/`, where TensorBoard looks.
      create_perfetto_link: refused: it would serve the file and open a site of the
        network; load the file of `create_perfetto_trace` there yourself.
      create_perfetto_trace: also write `perfetto_trace.json.gz`.
      profiler_options: a `ProfileOptions`.

    Raises:
      RuntimeError: when a recording runs already.
    """
    if create_perfetto_link:
        raise NotImplementedError(
            "create_perfetto_link is not supported: write create_perfetto_trace=True "
            "and open perfetto_trace.json.gz in Perfetto."
        )
    with _recording.lock:
        _recording.session = _session(profiler_options)
        _recording.folder = str(log_dir)
        _recording.for_perfetto = create_perfetto_trace


def _session(options: Any) -> Any:
    """A session of jaxlib, with the devices started and the versions noted.

    Raises RuntimeError when a recording runs already.
    """
    if _recording.session is not None:
        raise RuntimeError(
            "Profile has already been started. Only one profile may be run at a time: "
            "call stop_trace() first."
        )
    client = runtime.get_backend()
    _profiler.clear_metadata()
    _profiler.set_metadata("jaxlib_version", jaxlib_version_text)
    _profiler.set_metadata(f"{client.platform}_version", client.platform_version)
    return _profiler.ProfilerSession(options or ProfileOptions())


def stop_trace() -> None:
    """Ends the recording and writes its files.

    Raises:
      RuntimeError: when none runs.
      JaxRuntimeError: when the files cannot be written.
    """
    with _recording.lock:
        session = _recording.session
        if session is None:
            raise RuntimeError("No profile started: call start_trace(log_dir) first.")
        _recording.session = None
        try:
            session.stop_and_export(_recording.folder)
        except Exception as error:
            error.add_note(
                f"The profile could not be written to log_dir={_recording.folder!r}: "
                "name a folder that can be made and written."
            )
            raise
        runs = pathlib.Path(_recording.folder) / "plugins" / "profile"
        if _recording.for_perfetto:
            _write_for_perfetto(max(runs.iterdir(), key=os.path.getmtime))


def _write_for_perfetto(folder: pathlib.Path) -> None:
    """A copy of the time line without the part that Perfetto refuses."""
    (found,) = folder.glob("*.trace.json.gz")
    with gzip.open(found, "rt") as file:
        events = json.load(file)
    events.pop("metadata", None)
    with gzip.open(folder / "perfetto_trace.json.gz", "wt") as file:
        json.dump(events, file)


@contextlib.contextmanager
def trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> Iterator[None]:
    """`with trace("profile"):` records the block. Arguments as of `start_trace`."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def annotate_function(
    func: Callable, name: str | None = None, **decorator_kwargs: Any
) -> Callable:
    """Each call of the function is a named block of the time line.

    Args:
      func: any function.
      name: what stands in the time line; its own name by default.
      **decorator_kwargs: shown with each block.
    """
    shown = name or getattr(func, "__qualname__", None) or func.__name__

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def measure(work: Callable[[], Any]) -> Any:
    """What happens while `work()` runs, as events: planes, lines and events by name.

    Raises:
      RuntimeError: when a recording runs already.
    """
    with _recording.lock:
        session = _session(None)
        try:
            work()
        finally:
            data = session.stop()
    return ProfileData.from_serialized_xspace(data)


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Lets TensorBoard ask this process for a profile, at this port.

    Args:
      port: a free port of this machine.
      requires_backend: start the devices first.

    Returns:
      The server; it runs until `stop_server` or the end of the process.

    Raises:
      ValueError: when one runs already.
    """
    if requires_backend:
        runtime.get_backend()
    if _recording.server is not None:
        raise ValueError("Only one profiler server can be active at a time.")
    _recording.server = _profiler.start_server(port)
    return _recording.server


def stop_server() -> None:
    """Ends the server; ValueError when none runs."""
    if _recording.server is None:
        raise ValueError("No active profiler server.")
    _recording.server = None


def device_memory_profile(backend: str | None = None) -> bytes:
    """Which arrays and programs hold memory now, and the lines that made them.

    Args:
      backend: the name of a platform; the default one by default.

    Returns:
      A compressed protocol buffer that the tool `pprof` reads.
    """
    return gzip.compress(runtime.get_backend(backend).heap_profile())


def save_device_memory_profile(
    filename: os.PathLike | str, backend: str | None = None
) -> None:
    """Writes `device_memory_profile` to a file."""
    with open(filename, "wb") as file:
        file.write(device_memory_profile(backend))
