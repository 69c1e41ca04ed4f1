"""Lets IPython show a jaxpr that a cell ends on as its view."""

from __future__ import annotations

import sys
from typing import Any

from minijax.core.language import ClosedJaxpr, Jaxpr
from minijax_widgets.jaxpr_view import jaxpr


def as_html(value: Any) -> str:
    """Returns the view of a jaxpr as HTML."""
    return jaxpr(value).to_html()


def register_formatters() -> None:
    """Registers `as_html` with a running IPython; does nothing elsewhere.

    The plain text stays JAX's, so a terminal and a test see what JAX prints.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    formatter = shell.display_formatter.formatters["text/html"]
    for kind in (ClosedJaxpr, Jaxpr):
        formatter.for_type(kind, as_html)
