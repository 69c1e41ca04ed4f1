"""What the house attaches to its core, all on this page, in this order.

The core and the rooms declare places for parts that rooms above bring: hooks
(`core/events.py`), methods of their classes, extensions of types. Each place takes
one part, and a second one raises. Nothing else attaches anything, so that what runs
does not depend on which modules were imported, or when.
"""

from __future__ import annotations

import os

from minijax.core import dispatch
from minijax.core.avals import told_of_types
from minijax.core.language import type_extensions
from minijax.programs.compiling import LibraryCompilation
from minijax.programs.shard_map.varying import Varying
from minijax.programs.sharding.explicit_types import Cuts
from minijax.support.user_source import register_exclusion
from minijax.types_on_meshes import manual_axis_type_of, sharding_of

# Frames of this package are not the user's; the core leaves out its own folder only.
register_exclusion(os.path.dirname(__file__) + os.sep)

# What types say beyond shape and dtype.
type_extensions.extend([Cuts(), Varying()])
told_of_types.update(sharding=sharding_of, manual_axis_type=manual_axis_type_of)

# How programs are compiled, placed and launched.
dispatch.compile_by(LibraryCompilation())
