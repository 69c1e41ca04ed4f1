"""Pictures of the gallery against the accepted ones: what stands where, and how."""

import warnings

import pytest

pictures = pytest.importorskip(
    "pictures", reason="pictures are compared with pillow, which is not here"
)
NAMES = [pictures.name_of(*shot) for shot in pictures.SHOTS]
ONE = "trace-error-1000-light"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("pictures") / "page.html"
    path.write_text(pictures.page(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shown(chromium_path):
    with pictures.chromium(chromium_path) as browser:
        yield browser


@pytest.fixture(scope="module")
def taken(shown, page):
    return pictures.take(shown, page)


@pytest.fixture(scope="module")
def accepted():
    return pictures.references()


@pytest.fixture(scope="module")
def tolerance(shown, accepted):
    """Close in the Chromium that took the references, loose in another one."""
    here = shown.version.partition(".")[0]
    if here == accepted[1]:
        return pictures.CLOSE
    warnings.warn(
        f"pictures are of Chromium {accepted[1]} and this is {here}: compared loosely",
        stacklevel=2,
    )
    return pictures.LOOSE


def test_there_is_a_picture_of_each(accepted):
    files = {path.stem for path in pictures.PICTURES.glob("*.png")}
    assert set(accepted[0]) == files == set(NAMES)
    size = sum(path.stat().st_size for path in pictures.PICTURES.rglob("*.*"))
    assert size < 3_000_000


@pytest.mark.parametrize("name", NAMES)
def test_as_accepted(taken, accepted, tolerance, name):
    old, new = accepted[0][name], taken[name]
    found = pictures.differences(old, new, tolerance)
    if found:
        pictures.show_difference(name, old, new)
        told = "\n".join(found)
        folder = pictures.FAILED.relative_to(pictures.ROOT)
        pytest.fail(
            f"{name} is not as accepted:\n{told}\n"
            f"Look at {folder}/{name}.png and {name}-difference.png (old, new, where "
            "they differ). If it is meant: python widgets/gallery.py --accept",
            pytrace=False,
        )


# What a mistake in the style or the player would do: (style, what is said of it).
CHANGES = {
    "a pane is gone": (".mj-column + .mj-column{display:none}", "other parts"),
    "a line is gone": (".mj-detail{display:none}", "other parts"),
    "another ink": ("mark{color:#246CCC!important}", "became"),
    "not marked": ("mark{background:none!important}", "became"),
    "no step lit": (".mj-live tr.mj-on>td{box-shadow:none!important}", "became"),
    "moved": (".mj-panes{padding-left:14px}", "moved by"),
    "larger letters": (".mj-live .mj-code{font-size:15px!important}", "moved by"),
    "a shade over all": (".mj-panes{filter:brightness(.8)}", "of the image"),
    "text upside down": (".mj-strip{transform:rotate(180deg)}", ""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(shown, page, accepted, change):
    """Even loosely compared, a real change is a difference."""
    style, said = CHANGES[change]
    new = pictures.take(shown, page, style, lambda name: name == ONE)[ONE]
    found = pictures.differences(accepted[0][ONE], new, pictures.LOOSE)
    assert found and said in " ".join(found)


def test_small_movements_are_forgiven(taken):
    """Letters of another Chromium: edges in other greys, parts a pixel aside."""
    from PIL import ImageFilter

    old = taken[ONE]
    parts = [
        [name, [box[0] + 2, box[1], box[2] - 2, box[3] + 1], *rest]
        for name, box, *rest in old.parts
    ]
    blurred = old.image.filter(ImageFilter.GaussianBlur(0.7))
    new = pictures.Picture(parts, blurred)
    assert pictures.differences(old, new, pictures.LOOSE) == []
    assert pictures.differences(old, new, pictures.CLOSE) != []


def test_a_difference_is_shown(taken, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "FAILED", tmp_path / "pictures")
    one, other = taken[ONE], taken["trace-1000-light"]
    pictures.show_difference("one", one, other)
    sheet = pictures.Image.open(tmp_path / "pictures" / "one-difference.png")
    assert sheet.width == 3 * max(one.image.width, other.image.width) + 32
    assert (tmp_path / "pictures" / "one.png").exists()
