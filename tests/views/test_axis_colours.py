"""An axis of a mesh has one colour in all pictures and tables."""

import placed_subjects as placed
from minijax_widgets.placement_scene import ink_of


def test_what_goes_over_an_axis_has_its_colour():
    view = placed.view("scale")
    (plan,) = view.recording.plans
    assert list(plan.by_axes) == ["y"] and ink_of(plan.mesh, "y") == "meshy"
    scene = view.frame().panes[0].scene
    (bar,) = [mark for mark in scene.marks if mark.tell.startswith("over y: ")]
    assert bar.drawn[0].has["stroke"] == "meshy"


def test_a_collective_has_one_colour_in_picture_and_table():
    frame = placed.view("program").frame()
    pictures, table = frame.panes[:2]
    told = "all-reduce over y, 384 B from each device"
    drawn = [d for mark in pictures.scene.marks for d in mark.drawn if d.text == told]
    pieces = [p for row in table.rows for cell in row.cells for p in cell]
    (piece,) = [p for p in pieces if getattr(p, "text", p) == told]
    assert piece.role == drawn[0].has["fill"] == "meshy"
