"""The recording of machine code: what XLA wrote for each kernel.

On the CPU that is LLVM's intermediate language, before and after LLVM's optimisations;
for NVIDIA's GPUs PTX, their portable assembly. libtpu does not show its code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from minijax.backend import dumps
from minijax.compile import cross_compiling
from minijax_lab.explain.hlo_text import parse
from minijax_lab.explain.kernels import Kernel, kernels_of
from minijax_lab.explain.levels import (
    Levels,
    compiled_with_dump,
    levels_of,
    target_named,
)
from minijax_lab.explain.recording import Recording, count_in_words

MOST_LINES = 400


@dataclass
class KernelCode:
    """The code of a kernel. `left_out` lines at its end are not kept.

    `written` is what XLA gave to LLVM ("" where it is not known), `optimised` what came
    of it: LLVM's language on the CPU, PTX on a GPU.
    """

    kernel: str
    language: str
    written: str
    optimised: str
    left_out: int
    equations: list[int]


@dataclass(kw_only=True)
class MachineCodeRecording(Recording):
    """The code of a program's kernels. Its steps are the kernels that have some.

    `without` are the kernels without code of their own: calls of libraries, and those
    that run the code of an equal kernel.
    """

    kind = "machine_code"

    target: str
    platform: str
    codes: list[KernelCode]
    without: list[str]
    note: str = field(default_factory=str)


def record_machine_code(
    function: Any, args: tuple, kwargs: dict[str, Any], target: str | None = None
) -> MachineCodeRecording:
    """Records the code of a function's kernels for a target.

    Raises what `record_passes` raises.
    """
    return machine_code_of(levels_of(function, args, kwargs), target_named(target))


def machine_code_of(
    levels: Levels, machine: cross_compiling.Target
) -> MachineCodeRecording:
    """The recording of a program's levels."""
    lowered = levels.lower(machine.platform)
    with compiled_with_dump(levels, machine, lowered) as dump:
        module = parse(dump.executable.hlo_modules()[0].to_string())
        texts = of_gpu(dump) if machine.platform == "cuda" else of_cpu(dump)
    codes, without = [], []
    for kernel in kernels_of(module):
        name = module.instructions[kernel.instruction].name
        found = texts.get(symbol(name))
        if found is None:
            without.append(name)
        else:
            codes.append(code_of(name, kernel, machine.platform, *found))
    name = levels.jaxpr.name
    kernels = count_in_words(len(codes), "kernel")
    note = "" if machine.platform != "tpu" else "libtpu does not show its code"
    return MachineCodeRecording(
        call=levels.jaxpr.call,
        headline=f"machine code of {name} on {machine.name}: {kernels}",
        telling=max(
            range(len(codes)), key=lambda i: len(codes[i].equations), default=0
        ),
        sources=levels.jaxpr.sources,
        target=machine.name,
        platform=machine.platform,
        codes=codes,
        without=without,
        note=note,
    )


def code_of(
    name: str, kernel: Kernel, platform: str, written: str, optimised: str
) -> KernelCode:
    """The code of a kernel, cut at `MOST_LINES`."""
    texts = [written.split("\n"), optimised.split("\n")]
    return KernelCode(
        kernel=name,
        language="ptx" if platform == "cuda" else "llvm",
        written="\n".join(texts[0][:MOST_LINES]),
        optimised="\n".join(texts[1][:MOST_LINES]),
        left_out=max(0, *(len(text) - MOST_LINES for text in texts)),
        equations=kernel.equations,
    )


def symbol(name: str) -> str:
    """An instruction's name as a name in machine code: without dots and dashes."""
    return re.sub(r"\W", "_", name)


CPU_FILE = re.compile(r"\.([\w.\-]+?)_kernel_module\.ir-(no|with)-opt\.ll$")
MACHINE_PATH = re.compile(r"^(; ModuleID|source_filename).*\n", re.MULTILINE)


def of_cpu(dump: dumps.Dump) -> dict[str, tuple[str, str]]:
    """(LLVM's language as written, as optimised) of each kernel."""
    found: dict[str, list[str]] = {}
    for name in dump.names(".ll"):
        part = CPU_FILE.search(name)
        if part is None:
            continue
        # The module's name, `module_0001.jit_f`, stands before the kernel's.
        kernel = symbol(re.sub(r"^.*?jit_[\w\-]+\.", "", name[: part.end(1)]))
        text = MACHINE_PATH.sub("", dump.read(name)).strip("\n")
        found.setdefault(kernel, ["", ""])[part[2] == "with"] = text
    return {kernel: (texts[0], texts[1]) for kernel, texts in found.items()}


ENTRY = re.compile(r"^\.visible \.entry (\w+)\(", re.MULTILINE)


def of_gpu(dump: dumps.Dump) -> dict[str, tuple[str, str]]:
    """("", PTX) of each kernel."""
    found = {}
    for name in dump.names(".ptx"):
        text = dump.read(name)
        starts = [(match.start(), match[1]) for match in ENTRY.finditer(text)]
        ends = [start for start, _ in starts[1:]] + [len(text)]
        for (start, kernel), end in zip(starts, ends):
            found[kernel] = ("", text[start:end].strip("\n"))
    return found
