"""Compiled programs kept on disk, for the next process.

An entry is native code that this process will run. So the folder and each file in it
must belong to the user, and no other user may write there; otherwise the folder, or the
file, is not used. A file says for which program it was made. Whatever is wrong with the
folder or a file (damaged, foreign, full, read-only), there is one warning, and the
program is compiled.

In JAX: `jax/_src/compilation_cache.py`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import platform
import stat
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from minijax.backend import cuda, executables
from minijax.backend.build_settings import BuildSettings
from minijax.backend.hlo_parts import strip_locations
from minijax.core.compiler import Executable, compile_module, device_list_of, program_of
from minijax.core.runtime import jaxlib_version_text


class Policy(NamedTuple):
    """Where programs are kept, and which.

    Attributes:
      directory: holds one file for each program.
      min_seconds: programs that compile faster are not kept.
      min_bytes: programs that are smaller are not kept.
      max_bytes: when the folder holds more, the programs that were used longest ago
        are removed; -1: there is no bound.
      raise_errors: trouble with the disk raises RuntimeError; else it warns.
    """

    directory: str
    min_seconds: float = 0.0
    min_bytes: int = 0
    max_bytes: int = -1
    raise_errors: bool = False


@dataclasses.dataclass(eq=False)
class StoredExecutable(Executable):
    """A program that comes from a file.

    The lines of source in the file are those of an earlier run, so its text is made by
    compiling the program again: `again()`.
    """

    again: Callable[[], Executable]

    @functools.cached_property
    def compiled_now(self) -> Executable:
        """The program compiled in this process."""
        return self.again()

    def hlo_modules(self) -> list[Any]:
        return self.compiled_now.hlo_modules()


def load_or_compile(
    module: Any, devices: Any, settings: BuildSettings | None, policy: Policy
) -> Executable:
    """As `compile_module`, for a program that may be on disk, and is kept there."""
    device_list = device_list_of(devices)
    settings = settings or BuildSettings()
    program = program_of(module)
    folder = Folder(policy)
    if not folder.is_safe() or not cuda.reads_programs(device_list[0]):
        return compile_module(program, device_list, settings)
    options, flags = settings.make_options(device_list)
    entry = DiskEntry(folder, cache_key(program, device_list, options, flags))
    stored = entry.read()
    if stored is not None:
        try:
            found = executables.load(stored, device_list, settings)
        except Exception as error:
            entry.complain(f"could not be loaded ({error})")
        else:
            entry.note_use()
            again = functools.partial(compile_module, program, device_list, settings)
            return StoredExecutable(**vars(found), again=again)
    executable = compile_module(program, device_list, settings)
    if executable.seconds >= policy.min_seconds:
        entry.write(executable.loaded)
    return executable


@functools.cache
def cpu_features() -> str:
    """What the host's processor can do: programs use all of it.

    XLA also divides the work of a program among as many threads as the process may
    use, so their number belongs to it.
    """
    wanted = ("model name", "flags", "Features", "CPU part")
    found = {platform.machine(), f"{usable_cores()} cores"}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() in wanted:
                    found.add(value.strip())
    except OSError:
        found.add(platform.processor())
    return "\n".join(sorted(found))


def usable_cores() -> int:
    """How many processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cache_key(
    program: str | bytes, devices: Any, options: Any, flags: Mapping[str, Any]
) -> str:
    """A name for everything that the compiled program depends on.

    Source locations are left out: an edit that moves a function by a line finds the
    program again.
    """
    import hashlib

    if isinstance(program, str):
        program = program.encode()
    parts = [
        _MAGIC,
        strip_locations(program),
        jaxlib_version_text.encode(),
        options.SerializeAsString(),
        repr(sorted((name, repr(value)) for name, value in flags.items())).encode(),
        os.environ.get("XLA_FLAGS", "").encode(),
        os.environ.get("PJRT_NPROC", "").encode(),
        devices[0].client.platform_version.encode(),
        repr([(d.platform, d.device_kind) for d in devices]).encode(),
        cpu_features().encode(),
    ]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


# The first line of every file: the number changes with the layout of the file, and is a
# part of the key, so that files of another layout are not looked at.
_MAGIC = b"minijax executable 2\n"
_SUFFIX = ".minijax"
# A file that a process began to write and never finished is removed after an hour.
_UNFINISHED = ".unfinished"
_SECONDS_TO_FINISH = 3600.0
# A full folder is emptied down to this part of its bound, so that it is not emptied
# again for each program.
_KEEP_OF_FULL = 0.8
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

# The folders that were complained about: one warning each.
_complained: set[str] = set()
# The folders whose owner was checked, with the answer.
_checked: dict[str, bool] = {}
# How many bytes each folder held when it was last counted, and what came since.
_held: dict[str, int] = {}
_counting = threading.Lock()


def forget_folders() -> None:
    """Checks every folder again, and warns again: as in a new process."""
    for known in (_complained, _checked, _held):
        known.clear()


class Folder:
    """A folder of compiled programs that several processes may share."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.path = os.path.expanduser(policy.directory)

    def complain(
        self, what: str, then: str = "The program is compiled again.", path: str = ""
    ) -> None:
        """Warns once for the folder, or raises if the policy says so."""
        message = (
            f"The compilation cache {path or self.path} {what}. {then} "
            "(The flag jax_compilation_cache_dir names another folder, "
            "JAX_ENABLE_COMPILATION_CACHE=0 turns the cache off.)"
        )
        if self.policy.raise_errors:
            raise RuntimeError(message)
        if self.path not in _complained:
            _complained.add(self.path)
            warnings.warn(message, RuntimeWarning, stacklevel=4)

    def is_safe(self) -> bool:
        """Whether programs may be read from here; it is made if it is not there."""
        if self.path not in _checked or self.policy.raise_errors:
            _checked[self.path] = self._check()
        return _checked[self.path]

    def _check(self) -> bool:
        then = "Programs are not kept."
        if self.path.startswith("~"):
            self.complain("is in a home folder that is not known", then)
            return False
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            found = os.stat(self.path)
        except OSError as error:
            self.complain(f"could not be made ({error})", then)
            return False
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            self.complain(
                f"belongs to another user ({found.st_uid}), who could put any program "
                "there for this process to run",
                then,
            )
            return False
        if found.st_mode & _OTHERS_MAY_WRITE:
            self.complain(
                "may be written by other users, who could put any program there for "
                f"this process to run; `chmod go-w {self.path}` closes it",
                then,
            )
            return False
        return True

    def count(self, added: int) -> None:
        """Notes a file of so many bytes, and removes old files when it is too much."""
        if self.policy.max_bytes < 0:
            return
        with _counting:
            held = _held.get(self.path)
            if held is None:
                held = sum(size for _, size, _ in self.files())
            else:
                held += added
            if held > self.policy.max_bytes:
                held = self._remove_oldest()
            _held[self.path] = held

    def _remove_oldest(self) -> int:
        """Removes the files used longest ago; the bytes that are left."""
        files = sorted(self.files())
        left = sum(size for _, size, _ in files)
        limit = self.policy.max_bytes * _KEEP_OF_FULL
        for _, size, path in files:
            if left <= limit:
                break
            with contextlib.suppress(OSError):  # another process was quicker
                os.unlink(path)
            left -= size
        return left

    def clear(self) -> list[OSError]:
        """Removes every program; what stood in the way."""
        kept = []
        for _, _, path in self.files():
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass  # another process was quicker
            except OSError as error:
                kept.append(error)
        return kept

    def files(self) -> list[tuple[float, int, str]]:
        """Time of the last use, size and path of each program; may raise OSError."""
        found = []
        now = time.time()
        with os.scandir(self.path) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # removed since it was listed
                    about = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(about.st_mode):
                        continue
                    if entry.name.endswith(_SUFFIX):
                        found.append((about.st_mtime, about.st_size, entry.path))
                    elif entry.name.endswith(_UNFINISHED):
                        if now - about.st_mtime > _SECONDS_TO_FINISH:
                            os.unlink(entry.path)
        return found


class DiskEntry:
    """One compiled program in a folder."""

    def __init__(self, folder: Folder, key: str) -> None:
        self.folder = folder
        self.key = key
        self.path = os.path.join(folder.path, key + _SUFFIX)

    def complain(self, what: str, then: str = "The program is compiled again.") -> None:
        """Warns, or raises if the policy says so; the program is compiled instead."""
        self.folder.complain(what, then, f"file {self.path}")

    def read(self) -> bytes | None:
        """The program's bytes; None if there is none that can be trusted."""
        # A pipe is opened without waiting for a writer, to see that it is one.
        import hashlib

        flags = (
            os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
        try:
            descriptor = os.open(self.path, flags)
            try:
                wrong = self._wrong_with(os.fstat(descriptor))
                if wrong:
                    self.complain(wrong)
                    return None
                with open(descriptor, "rb", closefd=False) as file:
                    content = file.read()
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.complain(f"could not be read ({error})")
            return None
        header = len(_MAGIC) + hashlib.sha256().digest_size
        payload = content[header:]
        if content[:header] != self._header_of(payload):
            self.complain("is damaged, or was made for another program")
            return None
        return payload

    def _wrong_with(self, about: os.stat_result) -> str:
        """Why an open file is not to be trusted; empty if it may be."""
        if not stat.S_ISREG(about.st_mode):
            return "is not a regular file"
        if hasattr(os, "geteuid") and about.st_uid != os.geteuid():
            return f"belongs to another user ({about.st_uid})"
        if about.st_mode & _OTHERS_MAY_WRITE:
            return "may be written by other users"
        return ""

    def _header_of(self, payload: bytes) -> bytes:
        """The layout, and a digest of the program and what it was made for."""
        import hashlib

        return _MAGIC + hashlib.sha256(self.key.encode() + payload).digest()

    def note_use(self) -> None:
        """Marks the program as just used: it will be removed late."""
        with contextlib.suppress(OSError):  # it may be in a read-only folder
            os.utime(self.path)

    def write(self, loaded: Any) -> None:
        """Keeps a program, all at once: a reader sees the whole file or none."""
        import tempfile  # here, since it brings half of the standard library along

        try:
            payload = loaded.serialize()
        except Exception as error:
            self.complain(f"could not be made ({error})")
            return
        if len(payload) < self.folder.policy.min_bytes:
            return
        content = self._header_of(payload) + payload
        if 0 <= self.folder.policy.max_bytes < len(content):
            return
        temporary = None
        try:
            os.makedirs(self.folder.path, mode=0o700, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(_UNFINISHED, dir=self.folder.path)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, self.path)
            self.folder.count(len(content))
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            self.complain(
                f"could not be written ({error})",
                "The program runs, and is compiled again next time.",
            )
