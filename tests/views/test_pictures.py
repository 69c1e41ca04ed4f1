"""Pictures of the gallery against the accepted ones: what stands where, and how."""

import warnings
from pathlib import Path

import pytest

pictures = pytest.importorskip(
    "pictures", reason="pictures are compared with pillow, which is not here"
)
NAMES = [pictures.name_of(*shot) for shot in pictures.SHOTS]
ONE, OTHER = "trace-error-1000-light", "trace-1000-light"


@pytest.fixture(scope="module")
def wanted(request):
    """The pictures that the tests of this run compare: in `make test` a part of all."""
    names = {ONE, OTHER}
    for item in request.session.items:
        function = getattr(item, "function", None)
        if function is test_as_accepted:
            names.add(item.callspec.params["name"])
        elif function is test_the_fonts_of_a_machine_do_not_count:
            names |= WITH_SIGNS
    return names


@pytest.fixture(scope="module")
def page(tmp_path_factory, wanted):
    path = tmp_path_factory.mktemp("pictures") / "page.html"
    path.write_text(pictures.page(wanted.__contains__), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shown(chromium_path):
    with pictures.chromium(chromium_path) as browser:
        yield browser


@pytest.fixture(scope="module")
def taken(shown, page, wanted):
    return pictures.take(shown, page, only=wanted.__contains__)


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


# Fonts that come with matplotlib, which the test environment has. One set has a tick, a
# circle and Hebrew letters, the other has none of them.
FONTS = {"DejaVu": "DejaVuSans*.ttf", "Computer Modern": "cm*10.ttf"}
FONTCONFIG = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}</dir><cachedir>{folder}/cache</cachedir></fontconfig>"""
# How wide a text is that has no font of the page.
WIDTH = """() => {const pen = document.createElement("canvas").getContext("2d");
pen.font = "20px sans-serif"; return pen.measureText("\\u25cb ten words").width}"""
# The pictures with signs, trees and foreign letters.
WITH_SIGNS = {
    "cache-1000-light",
    "card-small-1000-light",
    "jaxpr-hostile-names-400-light",
    "keys-well-used-400-light",
    "primitives-few-1000-light",
    "tree-hostile-names-400-light",
    "tree-two-1000-light",
}


def with_fonts(shown, chromium_path, page, folder, pattern):
    """Takes the pictures with signs where no other fonts are installed."""
    matplotlib = pytest.importorskip("matplotlib", reason="its fonts are not here")
    for font in (Path(matplotlib.get_data_path()) / "fonts" / "ttf").glob(pattern):
        (folder / font.name).write_bytes(font.read_bytes())
    file = folder / "fonts.conf"
    file.write_text(FONTCONFIG.format(folder=folder), encoding="utf-8")
    kind = shown.browser_type
    browser = pictures.launch(kind, chromium_path, FONTCONFIG_FILE=str(file))
    blank = browser.new_page()
    wide = blank.evaluate(WIDTH)
    blank.close()
    taken = pictures.take(browser, page, only=WITH_SIGNS.__contains__)
    browser.close()
    return wide, taken


@pytest.mark.turns(3)
def test_the_fonts_of_a_machine_do_not_count(shown, chromium_path, page, tmp_path):
    """What is not a letter is drawn, and the page brings the letters."""
    made = []
    for name, pattern in FONTS.items():
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        made.append(with_fonts(shown, chromium_path, page, folder, pattern))
    assert made[0][0] != made[1][0], "the browser has not seen other fonts"
    assert set(made[0][1]) == set(made[1][1]) == WITH_SIGNS
    exactly = pictures.Tolerance(box=0, squares=0.0, mean=0.0)
    apart = {
        name: pictures.differences(one, made[1][1][name], exactly)
        for name, one in made[0][1].items()
    }
    assert not any(apart.values()), apart


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
    one, other = taken[ONE], taken[OTHER]
    pictures.show_difference("one", one, other)
    sheet = pictures.Image.open(tmp_path / "pictures" / "one-difference.png")
    assert sheet.width == 3 * max(one.image.width, other.image.width) + 32
    assert (tmp_path / "pictures" / "one.png").exists()


def test_an_error_in_the_page_is_told(shown, page, tmp_path):
    """It would leave a view half drawn."""
    broken = tmp_path / "page.html"
    script = "<script>throw Error('half drawn')</script>"
    broken.write_text(page.read_text(encoding="utf-8") + script, encoding="utf-8")
    with pytest.raises(RuntimeError, match="half drawn"):
        pictures.take(shown, broken, only=lambda name: name == ONE)
