"""What a view says of a program that JAX traced: facts that its jaxpr lacks."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from minijax_widgets.frame import Pane, Row

WIDTH = 100


def lost_rows(lost: Sequence[str]) -> list[str]:
    """Returns the sentences as rows of a text twin."""
    return [
        line
        for sentence in lost
        for line in wrap(
            sentence, WIDTH, initial_indent="  not carried: ", subsequent_indent="    "
        )
    ]


def lost_panes(lost: Sequence[str]) -> list[Pane]:
    """Returns a pane with the sentences; none where nothing is lost."""
    rows = [Row([str(number), said]) for number, said in enumerate(lost, 1)]
    title = "a jaxpr of JAX: what it does not carry"
    return [Pane(title, rows, kind="prose", wide=True)] if rows else []
