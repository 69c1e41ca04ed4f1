"""Compiled programs kept on disk, for the next process.

In JAX: `jax/_src/compilation_cache.py`.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import platform
import time
import warnings
from collections.abc import Mapping
from typing import Any

from minijax.backend.compiler import (
    CompileSettings,
    Executable,
    compile_module,
    device_list_of,
    program_of,
)
from minijax.backend.door import jaxlib_version_text
from minijax.backend.hlo_parts import strip_locations


@dataclasses.dataclass(frozen=True)
class Policy:
    """Where programs are kept, and which.

    Attributes:
      directory: holds one file for each program.
      min_seconds: programs that compile faster are not kept.
      min_bytes: programs that are smaller are not kept.
      raise_errors: trouble with the disk raises RuntimeError; else it warns.
    """

    directory: str
    min_seconds: float = 0.0
    min_bytes: int = 0
    raise_errors: bool = False


def load_or_compile(
    module: Any, devices: Any, settings: CompileSettings | None, policy: Policy
) -> Executable:
    """As `compile_module`, for a program that may be on disk, and is kept there."""
    device_list = device_list_of(devices)
    settings = settings or CompileSettings()
    program = program_of(module)
    options, flags = settings.make_options(device_list)
    start = time.perf_counter()
    entry = DiskEntry(policy, cache_key(program, device_list, options, flags))
    stored = entry.read()
    if stored is not None:
        options.env_option_overrides = list(flags.items())
        client = device_list[0].client
        try:
            loaded = client.deserialize_executable(stored, device_list, options)
        except Exception as error:
            entry.complain(f"could not be loaded ({error})")
        else:
            return Executable(loaded, device_list, True, time.perf_counter() - start)
    executable = compile_module(program, device_list, settings)
    if executable.seconds >= policy.min_seconds:
        entry.write(executable.loaded)
    return executable


@functools.cache
def _cpu_features() -> str:
    """What the host's processor can do: programs use all of it."""
    wanted = ("model name", "flags", "Features", "CPU part")
    found = {platform.machine()}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() in wanted:
                    found.add(value.strip())
    except OSError:
        found.add(platform.processor())
    return "\n".join(sorted(found))


def cache_key(
    program: str | bytes, devices: Any, options: Any, flags: Mapping[str, Any]
) -> str:
    """A name for everything that the compiled program depends on.

    Source locations are left out: an edit that moves a function by a line finds the
    program again.
    """
    if isinstance(program, str):
        program = program.encode()
    parts = [
        strip_locations(program),
        jaxlib_version_text.encode(),
        options.SerializeAsString(),
        repr(sorted((name, repr(value)) for name, value in flags.items())).encode(),
        os.environ.get("XLA_FLAGS", "").encode(),
        devices[0].client.platform_version.encode(),
        repr([(d.platform, d.device_kind) for d in devices]).encode(),
        _cpu_features().encode(),
    ]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


_MAGIC = b"minijax executable 1\n"


class DiskEntry:
    """One compiled program in a directory that several processes may share.

    Trouble with the disk never stops a program: there is a warning, and it is compiled.
    A directory holds code that will be run, so it should be writable by its user only.
    """

    def __init__(self, policy: Policy, key: str) -> None:
        self.policy = policy
        self.directory = os.path.expanduser(policy.directory)
        self.path = os.path.join(self.directory, f"{key}.minijax")

    def complain(self, what: str, then: str = "The program is compiled again.") -> None:
        """Warns, or raises if the policy says so; the program is compiled instead."""
        message = f"The compilation cache's file {self.path} {what}. {then}"
        if self.policy.raise_errors:
            raise RuntimeError(message)
        warnings.warn(message, RuntimeWarning, stacklevel=3)

    def read(self) -> bytes | None:
        """The program's bytes; None if there is none or it is damaged."""
        try:
            with open(self.path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self.complain(f"could not be read ({error})")
            return None
        header = len(_MAGIC) + hashlib.sha256().digest_size
        payload = content[header:]
        expected = _MAGIC + hashlib.sha256(payload).digest()
        if content[:header] != expected:
            self.complain("is damaged")
            return None
        return payload

    def write(self, loaded: Any) -> None:
        """Keeps a program, all at once: a reader sees the whole file or none."""
        import tempfile  # here, since it brings half of the standard library along

        try:
            payload = loaded.serialize()
        except Exception as error:
            self.complain(f"could not be made ({error})")
            return
        if len(payload) < self.policy.min_bytes:
            return
        temporary = None
        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self.directory)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, self.path)
        except OSError as error:
            if temporary is not None and os.path.exists(temporary):
                os.unlink(temporary)
            self.complain(
                f"could not be written ({error})",
                "The program runs, and is compiled again next time.",
            )
