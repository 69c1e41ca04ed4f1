"""`view.widget`: the player as an anywidget, and `see.live`, which records again.

Needs the extra `minijax[lab]`; nothing else of the views imports this module.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

try:
    import anywidget
    import ipywidgets
    import traitlets
except ImportError as error:  # pragma: no cover
    raise ImportError(
        f"widgets need {error.name}; install the course's extras with "
        "`pip install 'minijax[lab]'`. The view itself shows without them."
    ) from None

from minijax import tree_util
from minijax_widgets.frame import Frame
from minijax_widgets.view import View, no_search_for_cycles, script


def module() -> str:
    """Returns the player as the module that anywidget loads."""
    return (
        f"{script(timeline=True)}\nexport default {{ render: minijaxPlayer.render }};\n"
    )


class PlayerWidget(anywidget.AnyWidget):
    """A view's picture; `step` and `selection` may be linked to other widgets."""

    _esm = module()
    frame = traitlets.Unicode("").tag(sync=True)
    step = traitlets.Int(-1).tag(sync=True)
    selection = traitlets.Unicode("").tag(sync=True)

    @classmethod
    def of(cls, frame: Frame) -> PlayerWidget:
        """Returns the widget of a picture, at its telling step."""
        return cls(frame=frame.to_json(), step=frame.telling)


class Live(ipywidgets.VBox):
    """Controls above a picture. Where no kernel runs, the picture alone is shown.

    A saved notebook keeps the text twin and the view's HTML beside the widget, which is
    lost with its kernel.
    """

    def __init__(
        self, controls: dict[str, ipywidgets.ValueWidget], rest: list, view: View
    ) -> None:
        super().__init__([*controls.values(), *rest])
        self.controls = controls
        self.view = view

    def settings(self) -> str:
        """Returns what the controls say, as text."""
        values = (f"{name} = {c.value!r}" for name, c in self.controls.items())
        return ", ".join(values)

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(*args, **options)
        bundle["text/plain"] = f"live: {self.settings()}\n{self.view.text()}"
        note = f"{self.settings()}. In a notebook that runs, controls stand here."
        style = "font:13px/20px system-ui,sans-serif;opacity:0.75"
        bundle["text/html"] = (
            f'<div style="{style}">{escape(note)}</div>{self.view.to_html()}'
        )
        return bundle


def live(
    view: Callable[..., View], function: Callable[..., Any], *args: Any, **controls: Any
) -> Live:
    """`see.live`: a view that records again whenever a control is moved.

    `args` and `controls` are the arguments of `function`. Each one that is an
    ipywidgets control stands above the picture and gives its value. Arrays and trees of
    arrays among `args` stay arguments of what is recorded, where `see.grad` and
    `see.vmap` find them; others are passed as they are. Where a shape depends on a
    control, let `function` make the array. An error is shown in place of the picture,
    which comes back with the next good value. The step stays the same while the number
    of steps does; else the picture shows its most telling step.

        see.live(see.jaxpr, lambda n: jnp.zeros(n).sum(), n=IntSlider(3, 1, 8))
        see.live(see.grad, loss, weights, rounds=IntSlider(2, 1, 6))

    Raises TypeError without any control.
    """
    moved = {**dict(zip(names_of(function, len(args)), args)), **controls}
    widgets = {n: c for n, c in moved.items() if isinstance(c, ipywidgets.ValueWidget)}
    if not widgets:
        raise TypeError(
            "see.live got no control: pass at least one ipywidgets control, such as "
            "n=ipywidgets.IntSlider(3, 1, 8), as an argument of the function."
        )
    for name, control in widgets.items():
        if getattr(control, "description", None) == "":
            control.description = name

    def value(thing: Any) -> Any:
        return thing.value if isinstance(thing, ipywidgets.ValueWidget) else thing

    arrays = [n for n, arg in enumerate(args) if is_of_arrays(arg)]

    def recorded() -> View:
        given = [value(arg) for arg in args]
        named = {name: value(control) for name, control in controls.items()}
        # The controls are numbers of Python: the function is recorded as it runs with
        # them, so that they may decide shapes and branches.
        closed = _closed_over(function, given, named, arrays)
        return view(closed, *(given[n] for n in arrays))

    first = recorded()
    shown = first.frame()
    player = PlayerWidget.of(shown)
    complaint = ipywidgets.HTML()
    box = Live(widgets, [complaint, player], first)
    steps = len(shown.steps)

    def record_again(change: Any = None) -> None:
        nonlocal steps
        step = player.step
        try:
            # A search through all objects takes longer than the answer.
            with no_search_for_cycles():
                box.view = recorded()
                frame = box.view.frame()
                page = frame.to_json()
        except Exception as error:
            told = escape(f"{type(error).__name__}: {error}")
            look = "color:var(--jp-error-color1,#B3261E);white-space:pre-wrap"
            told += "\nThe picture shows the last good values."
            complaint.value = f'<pre style="{look}">{told}</pre>'
            return
        complaint.value = ""
        player.frame = page
        # In a program of another length the old step is another place.
        player.step = step if steps == len(frame.steps) else frame.telling
        steps = len(frame.steps)

    for control in widgets.values():
        control.observe(record_again, names="value")
    return box


def names_of(function: Callable[..., Any], count: int) -> list[str]:
    """The names of a function's first arguments, as far as it has them."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [each.name for each in parameters if each.kind in kinds]
    return [*names, *(f"argument {n}" for n in range(len(names), count))][:count]


def is_of_arrays(argument: Any) -> bool:
    """Whether an argument is an array, or a tree of arrays alone."""
    leaves = tree_util.tree_leaves(argument)
    return bool(leaves) and all(
        hasattr(leaf, "dtype") and not isinstance(leaf, np.generic) for leaf in leaves
    )


def _closed_over(
    function: Callable[..., Any], args: list, named: dict, arrays: list[int]
) -> Callable:
    """The function of the arrays among `args` that calls `function` with them and with
    what the controls say."""

    def call(*given: Any) -> Any:
        every = list(args)
        for place, array in zip(arrays, given, strict=True):
            every[place] = array
        return function(*every, **named)

    call.__name__ = getattr(function, "__name__", "function")
    call.__qualname__ = call.__name__
    call.stands_for = function  # type: ignore[attr-defined]
    if not inspect.isfunction(function):
        return call
    call.__doc__ = function.__doc__
    parameters = list(inspect.signature(function).parameters.values())
    if arrays and len(parameters) > max(arrays):
        kept = [parameters[place] for place in arrays]
        if all(each.kind is each.POSITIONAL_OR_KEYWORD for each in kept):
            kept = [each.replace(default=inspect.Parameter.empty) for each in kept]
            call.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
    return call
