"""The views of minijax: `import minijax_widgets as see`.

Each view is one function on the user's own function and arguments and returns one
object, which shows itself in a notebook and prints its text twin in a terminal.
Importing this package also makes a jaxpr that a notebook's cell ends on show itself.
"""

import os
from typing import Any

from minijax.support import user_source
from minijax_lab.explain.roofline import Machine
from minijax_widgets.buffers_view import BuffersView
from minijax_widgets.cache_view import CacheView, cache
from minijax_widgets.card_view import CardView, card, primitives
from minijax_widgets.collectives_view import CollectivesView, collectives
from minijax_widgets.difference_view import DifferenceView
from minijax_widgets.fusion_view import FusionView, fusion
from minijax_widgets.grad_view import GradView, grad
from minijax_widgets.jaxpr_view import JaxprView, jaxpr
from minijax_widgets.kernel_view import KernelView, kernel
from minijax_widgets.keys_view import KeysView, keys
from minijax_widgets.memory_view import MemoryView, memory
from minijax_widgets.notebook import register_formatters
from minijax_widgets.passes_view import PassesView, passes
from minijax_widgets.placement_view import PlacementView, placement
from minijax_widgets.scale_view import ScaleView, scale
from minijax_widgets.sketch_view import SketchView, compare, nested, tangent
from minijax_widgets.source_view import SourceView, source
from minijax_widgets.stages_difference_view import StagesDifferenceView
from minijax_widgets.stages_view import StagesView, stages
from minijax_widgets.trace_view import TraceView, trace
from minijax_widgets.tree_view import TreeView, tree
from minijax_widgets.view import View
from minijax_widgets.view import open_view as open
from minijax_widgets.vmap_view import VmapView, vmap
from minijax_widgets.why_view import WhyView, why

__all__ = [
    "BuffersView",
    "CacheView",
    "CardView",
    "CollectivesView",
    "DifferenceView",
    "FusionView",
    "GradView",
    "JaxprView",
    "KernelView",
    "KeysView",
    "Machine",
    "MemoryView",
    "PassesView",
    "PlacementView",
    "ScaleView",
    "SketchView",
    "SourceView",
    "StagesDifferenceView",
    "StagesView",
    "TraceView",
    "TreeView",
    "View",
    "VmapView",
    "WhyView",
    "cache",
    "card",
    "collectives",
    "compare",
    "fusion",
    "grad",
    "jaxpr",
    "kernel",
    "keys",
    "live",
    "memory",
    "nested",
    "open",
    "passes",
    "placement",
    "primitives",
    "recording",
    "scale",
    "source",
    "stages",
    "tangent",
    "trace",
    "tree",
    "vmap",
    "why",
]


def __getattr__(name: str) -> Any:
    # `see.live` needs anywidget; the views themselves do not.
    if name == "live":
        from minijax_widgets.widget import live

        return live
    # Nor does a view need the recorder, which is a program of its own.
    if name == "recording":
        from minijax_widgets.record import recording

        return recording
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# Frames of the views are not the user's code.
user_source.register_exclusion(os.path.dirname(__file__) + os.sep)
register_formatters()
