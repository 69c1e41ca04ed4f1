"""How the library compiles: refs, several devices, the cache on disk, side effects.

The core's `dispatch.Compilation` knows pure programs on one device. Here is its one
subclass, which `assembly.py` puts in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.backend.build_settings import BuildSettings
from minijax.compile import caching
from minijax.compile.refs import StatefulProgram
from minijax.core import compiler, dispatch, lowering
from minijax.core.dispatch import CompileRequest
from minijax.core.language import ClosedJaxpr
from minijax.programs.launching import CopyingProgram, LibraryProgram
from minijax.programs.sharding import partitioned, placement
from minijax.programs.sharding.placement import Placement
from minijax.support.settings import declare, override
from minijax.transforms import discharge

# The place for which a program is lowered now: rules that read it are in `debugging/`.
declare("lowered_for", None, traced=False)


class LibraryCompilation(dispatch.Compilation):
    """The steps from any jaxpr to a program, on one device or several."""

    def place(
        self, values: Sequence[Any], avals: Sequence[Any], device: Any = None
    ) -> tuple[Any, bool, list[Any]]:
        return placement.place(values, avals, device)

    def make(
        self,
        closed: ClosedJaxpr,
        request: CompileRequest,
        lowered: lowering.Lowered | None,
    ) -> Any:
        placed = partitioned.placed(closed, request)
        if placed != request:  # it may be there already
            program = self.compile(closed, placed, lowered)
            if placed.place is request.place or not placed.committed:
                return program
            if type(program) is LibraryProgram:
                return CopyingProgram.of(program)
            if type(getattr(program, "program", None)) is LibraryProgram:
                refs = program.own  # those that it closes over
                return StatefulProgram(CopyingProgram.of(program.program), closed, refs)
            return program
        program = super().make(closed, request, lowered)
        if not discharge.has_refs(closed):
            return program
        _, refs = discharge.pure_program(closed)
        return StatefulProgram(program, closed, refs)

    def lower(
        self, closed: ClosedJaxpr, request: CompileRequest, platform: str | None = None
    ) -> lowering.Lowered:
        if discharge.has_refs(closed):
            closed, donated, _ = discharge.pure_and_donated(closed, request.donated)
            request = request._replace(donated=donated)
        # The compiler chooses the cuts of what rules trace while they lower.
        with (
            override("mesh", None),
            override("abstract_mesh", None),
            override("lowered_for", request.place),
        ):
            return super().lower(closed, request, platform)

    def load(
        self, lowered: lowering.Lowered, request: CompileRequest
    ) -> compiler.Executable:
        if type(request.place) is Placement:
            return partitioned.load(lowered, request.place, request.options)
        settings = BuildSettings(options=dict(request.options))
        return caching.load_or_compile(lowered, [request.place], settings)

    def program(
        self,
        lowered: lowering.Lowered,
        executable: compiler.Executable,
        request: CompileRequest,
    ) -> LibraryProgram:
        if type(request.place) is Placement:
            return partitioned.PartitionedProgram(
                lowered, executable, request.place, request.committed
            )
        place, committed = request.place, request.committed
        return LibraryProgram(lowered, executable, place, committed)
