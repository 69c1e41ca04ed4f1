"""Which platforms' clients are made: those that are there, or that the user asked for.

`settings` is filled by `minijax.config` before the first client is made. The clients
themselves are kept in `core/runtime.py`, whose class `Clients` gets its methods `make`
and `__missing__` from here.

In JAX: `jax/_src/xla_bridge.py`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

from minijax.core import runtime
from minijax.core.runtime import Clients


@dataclasses.dataclass
class PlatformSettings:
    """What the clients are made from. Later changes have no effect on made clients.

    Attributes:
      platforms: names separated by commas, best first, as in `JAX_PLATFORMS`; None or
        "" tries all.
      platform_name: the platform that comes first whatever the order.
      num_cpu_devices: how many devices the CPU is divided into; None leaves it to
        `XLA_FLAGS=--xla_force_host_platform_device_count=N`.
      client_options: more keyword arguments for a platform's client, by platform; for
        several processes, the distributed client and this process's number.
    """

    platforms: str | None = None
    platform_name: str | None = None
    num_cpu_devices: int | None = None
    client_options: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)


settings = PlatformSettings()


def choose(**changes: Any) -> None:
    """Change fields of `settings`, for the clients that are not made yet."""
    for name, value in changes.items():
        setattr(settings, name, value)


def set_options(platform: str, **options: Any) -> None:
    """Add keyword arguments for the client of a platform; None takes one away."""
    known = settings.client_options.get(platform, {}) | options
    kept = {name: value for name, value in known.items() if value is not None}
    settings.client_options[platform] = kept


# How the client of a platform is made, the best platform last, and whether a platform
# is there at all: one that is not in the second table is.
factories: dict[str, Callable[[], Any]] = {}
is_there: dict[str, Callable[[], bool]] = {}


def register_factory(name: str, factory: Callable[[], Any], best: bool) -> None:
    """Make a platform known: the best one, or one below all others."""
    known = dict(factories)
    factories.clear()
    factories.update({**known, name: factory} if best else {name: factory, **known})


_aliases = {"gpu": ("cuda",)}
# Why a platform that is there has no client.
_errors: dict[str, str] = {}


def make(self: Clients) -> dict[str, Any]:
    """The clients of the platforms that the user named, or of all that are there.

    The best, or first named, comes first. Each that was named must start, and the CPU.
    """
    asked = settings.platforms
    names = [
        name for name in reversed(factories) if name not in is_there or is_there[name]()
    ]
    if asked:
        each = [name.strip() for name in asked.split(",")]
        names = [platform for name in each for platform in _aliases.get(name, (name,))]
    made: dict[str, Any] = {}
    for platform in names:
        try:
            if platform not in factories:
                raise RuntimeError(
                    f"Backend '{platform}' is not in the list of known backends: "
                    f"{list(factories)}."
                )
            made[platform] = factories[platform]()
        except Exception as error:
            if asked or platform == "cpu":
                raise RuntimeError(
                    f"Unable to initialize backend '{platform}': {error} (set "
                    "JAX_PLATFORMS='' to automatically choose an available backend)"
                ) from error
            _errors[platform] = str(error)
            print(
                f"minijax: the platform '{platform}' did not start, and is left out: "
                f"{error}",
                file=sys.stderr,
            )
    wanted = settings.platform_name
    if wanted:
        first = next((n for n in _aliases.get(wanted, (wanted,)) if n in made), None)
        if first is None:
            raise RuntimeError(
                f"Unknown backend: '{wanted}' requested by jax_platform_name. "
                f"Platforms present are: {','.join(made)}"
            )
        made = {first: made[first], **made}
    return made


def find(self: Clients, platform: str) -> Any:
    """The client of a platform that has no entry of its own, such as "gpu".

    Raises:
      RuntimeError: for a platform that is not known or did not start.
    """
    names = _aliases.get(platform, (platform,))
    for name in names:
        if name in self:
            return self[name]
    for name in names:
        if name in _errors:
            raise RuntimeError(
                f"Backend '{platform}' failed to initialize: {_errors[name]}. "
                f"Available backends are {[*self]}"
            )
    if platform in _aliases:
        raise RuntimeError(
            f"Unknown backend: '{platform}' requested, but no platforms that are "
            f"instances of {platform} are present. Platforms present are: "
            + ",".join(self)
        )
    raise RuntimeError(f"Unknown backend {platform}. Available backends are {[*self]}")


# `assembly.py` gives them to the class.
CLIENTS_METHODS = {"make": make, "__missing__": find}


def is_initialized() -> bool:
    """Whether the clients are made: from then on `clients.settings` change nothing."""
    return bool(runtime._clients)
