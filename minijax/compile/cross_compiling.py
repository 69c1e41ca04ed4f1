"""Programs compiled for machines that need not be there: `compile(target="h100")`.

In JAX: `jax.experimental.topologies` and `jit(f, ...).lower(...).compile()` for it.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from minijax.backend import hlo_parts
from minijax.backend.build_settings import BuildSettings
from minijax.core import compiler, errors, lowering, source_info
from minijax.support.user_source import summarize

if TYPE_CHECKING:
    from minijax.backend.targets import Target

# Compiled as what will run: nothing is spared.
ONE_DEVICE = BuildSettings(fast_compile=False)

# What every compiler of XLA's knows itself. Other calls are of functions that a process
# registers, such as those of LAPACK on the CPU.
_PORTABLE_CALLS = ("annotate_device_placement", "Sharding", "SPMD", "__gpu$", "tpu_")


def find(name: Any) -> Target:
    """The target of a name.

    Raises TypeError for anything but a text, ValueError for an unknown name,
    ModuleNotFoundError if its compiler is not installed.
    """
    if not isinstance(name, str):
        raise errors.type_error(
            f"target is a text such as 'h100', got {name!r} ({type(name).__name__})."
        )
    from minijax.backend import targets

    return targets.find(name)


def compile_for(
    target: Target, lowered: lowering.Lowered, settings: BuildSettings = ONE_DEVICE
) -> compiler.Executable:
    """The executable of a program for a target, on as many devices as settings say.

    Raises NotImplementedError for a program that calls functions of this process,
    ValueError if the target has too few devices.
    """
    refuse_calls(target, lowered)
    with lowered.context:
        try:
            return target.compile(lowered.module, settings)
        except errors.JaxRuntimeError as error:
            raise _complaint_of_mosaic(error) or error from None


def _complaint_of_mosaic(error: Exception) -> Exception | None:
    """What Mosaic says of a kernel, with the user's line instead of all frames."""
    text = str(error)
    found = re.search(r"Mosaic failed to compile TPU kernel: (.*)", text)
    if found is None:
        return None
    operation = re.search(r'at location: loc\("([^"]+)"', text)
    what = f", of {operation[1]!r} at {_place(text)}" if operation else ""
    return errors.JaxRuntimeError(
        f"a kernel cannot be compiled for a TPU. Mosaic says{what}: {found[1]}. Write "
        "that line with other operations or shapes, or compute it outside."
    )


def ptx(
    target: Target, lowered: lowering.Lowered, settings: BuildSettings = ONE_DEVICE
) -> str:
    """The kernels of a GPU's program as NVIDIA's portable assembly."""
    from minijax.backend import dumps

    refuse_calls(target, lowered)
    # jaxlib 0.11 and later write no assembly without it.
    options = {**dict(settings.options), "xla_dump_emitter_re": ".*"}
    settings = dataclasses.replace(settings, options=options)
    with (
        lowered.context,
        dumps.compile_with_dump(target, lowered.module, settings) as dump,
    ):
        return "\n".join(dump.read(name) for name in dump.names(".ptx"))


def kernels(lowered: lowering.Lowered, dialect: str | None) -> str | None:
    """What `pallas_call` made of kernels: "mosaic" for a TPU, "triton" for a GPU.

    None if the program is for another platform, or another dialect is asked for.
    """
    if (lowered.platform, dialect) == ("tpu", "mosaic"):
        from minijax.backend.mosaic import kernels_in
    elif (lowered.platform, dialect) == ("cuda", "triton"):
        from minijax.backend.triton import kernels_in
    else:
        return None
    with lowered.context:
        return "\n".join(kernels_in(lowered.module))


def refuse_calls(target: Target, lowered: lowering.Lowered) -> None:
    """NotImplementedError for calls that only a running process can answer."""
    if target.runs:
        return
    if lowered.host_callbacks:
        function: Any = lowered.host_callbacks[0]
        place = summarize(getattr(function, "source", None))
        purpose = getattr(function, "purpose", "a callback")
        raise NotImplementedError(
            f"the program cannot be compiled for target={target.name!r}: {purpose} "
            f"calls Python, at {place}, and there is no process on that machine. Leave "
            "the call out of the program that you compile for it."
        )
    with lowered.context:
        for call in hlo_parts.custom_calls_in(lowered.module.operation):
            name, place = hlo_parts.target_of(call), _place(str(call.location))
            if not name.startswith(_PORTABLE_CALLS):
                raise NotImplementedError(
                    f"the program cannot be compiled for target={target.name!r}: it "
                    f"calls the foreign function {name!r}, at {place}, which is "
                    "registered in this process only. Compile it for the machine where "
                    "it runs."
                )


def _place(location: str) -> str:
    """The user's line in the text of a location."""
    for file, line in re.findall(r'"([^"]+)":(\d+)', location):
        if source_info.is_user_filename(file):
            return f"{file}:{line}"
    return "an unknown line"
