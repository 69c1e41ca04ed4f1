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


def test_the_peak_stays_where_it_is() -> None:
    view = gallery.STATES["memory, compiled"]()
    last = len(view.frame().steps)
    peaks = [
        [step.detail for step in each.frame().steps if "the peak" in step.detail]
        for each in (view, view.at(1), view.at(last))
    ]
    assert peaks[0] and peaks[1] == peaks[2] == peaks[0]
