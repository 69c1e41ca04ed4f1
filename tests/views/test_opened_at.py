"""`view.at(step)` opens each kind of view at the step that was asked for."""

import pytest

import gallery
from minijax_widgets.view import View


@pytest.mark.parametrize("name", gallery.STATES)
def test_a_view_opens_at_each_step(name: str) -> None:
    view = gallery.STATES[name]()
    assert isinstance(view, View)
    steps = view.frame().steps
    for step in sorted({1, (len(steps) + 1) // 2, len(steps)}) if steps else []:
        opened = view.at(step)
        frame = opened.frame()
        assert frame.telling == step - 1
        assert [one.label for one in frame.steps] == [one.label for one in steps]
        told = opened.text(full=True).splitlines()
        assert told[0] == view.text(full=True).splitlines()[0]
        if any(pane.scene for pane in frame.panes):
            assert opened.to_svg().startswith("<svg")
