"""What the house attaches to its core, on this page, in this order.

The core declares places for parts that rooms above bring: methods of its classes,
extensions of types, how programs are compiled. Each place takes one part, and a second
one raises, so what runs does not depend on which modules were imported, or when. Hooks
(`core/events.py`) are attached where their function stands; CONTRIBUTING has a table.
"""

from __future__ import annotations

import os

from minijax.backend import clients, cpu, cuda, sharding_methods
from minijax.compile import inlining, jit_tables, refs, signature, stages
from minijax.core import dispatch
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.events import add_methods, enter
from minijax.core.jit import JitFunction
from minijax.core.language import ClosedJaxpr, Jaxpr, Primitive, Tracer, type_extensions
from minijax.core.runtime import Clients, Sharding, SingleDeviceSharding
from minijax.core.source_info import NameStackContext
from minijax.core.state import TraceKey
from minijax.numpy import array_methods
from minijax.primitives.random import random_bits
from minijax.primitives.shape import dimension_values
from minijax.programs.compiling import LibraryCompilation
from minijax.programs.custom import calls_in_traces
from minijax.programs.debugging import leaks
from minijax.programs.shard_map.varying import Varying
from minijax.programs.sharding import ahead_of_time, array_copies, jit_shardings
from minijax.programs.sharding.explicit_types import Cuts
from minijax.programs.sharding.types_on_meshes import manual_axis_type_of, sharding_of
from minijax.support import config, traceback_filtering, user_source
from minijax.support.element_types import PRNGKeyDType
from minijax.transforms import batch_names
from minijax.values import (
    array_interchange,  # noqa: F401  enters methods of `Array`
    array_places,
    jax_spellings,
    print_options,
    tracer_interchange,
)

# These attach functions to the core's hooks and entries to its tables by themselves.
hooked = (
    *(ahead_of_time, array_copies, batch_names, cpu, cuda, dimension_values, inlining),
    *(jit_shardings, jit_tables, leaks, refs, signature, traceback_filtering),
)

# Frames of this package are not the user's; the core leaves out its own folder only.
user_source.register_exclusion(os.path.dirname(__file__) + os.sep)

# Methods that rooms write for classes of the core.
add_methods(Clients, clients.CLIENTS_METHODS)
add_methods(Sharding, sharding_methods.SHARDING_METHODS)
add_methods(SingleDeviceSharding, sharding_methods.SINGLE_DEVICE_METHODS)
add_methods(TraceKey, config.KEY_METHODS)
add_methods(NameStackContext, {"__call__": user_source.decorate})
add_methods(Primitive, jax_spellings.PRIMITIVE_METHODS)
for trace, methods in calls_in_traces.TRACE_METHODS.items():
    add_methods(trace, methods)
for program in (Jaxpr, ClosedJaxpr):
    add_methods(program, {"pretty_print": print_options.pretty_print})
add_methods(PRNGKeyDType, random_bits.DTYPE_METHODS)
add_methods(JitFunction, stages.JIT_METHODS)
add_methods(Array, array_places.ARRAY_METHODS)
add_methods(Tracer, tracer_interchange.TRACER_METHODS)
for arrays in (Array, Tracer):
    add_methods(arrays, array_methods.methods_of(arrays))

# What types say beyond shape and dtype.
enter(type_extensions, Cuts, Cuts())
enter(type_extensions, Varying, Varying())
add_methods(ShapedArray, {"sharding": property(sharding_of)})
for name in ("manual_axis_type", "mat"):
    add_methods(ShapedArray, {name: property(manual_axis_type_of)})

# How programs are compiled, placed and launched.
dispatch.compile_by(LibraryCompilation())
