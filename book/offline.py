"""A Sphinx extension: what a page would fetch from the network is taken out of it.

The book is read from a folder, without a network. Jupyter Book always adds Thebe, which
runs cells on a distant machine; MathJax comes from this environment.
"""

from __future__ import annotations

import shutil
from importlib.metadata import files
from pathlib import Path
from typing import Any

FOLD = '<summary><span class="toctree-toggle"'
NAMED = '<summary aria-label="pages below this one"'
MATHJAX = "tex-svg.js"  # with its fonts inside, as pictures


def without_thebe(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Drops Thebe's scripts and styles from a page."""
    for kind in ("script_files", "css_files"):
        kept = [made for made in context.get(kind, ()) if not about_thebe(made)]
        context[kind] = kept
    if "body" in context:
        head, *rest = context["body"].split('<script type="text/x-thebe-config">')
        context["body"] = head + "".join(
            part.partition("</script>")[2] for part in rest
        )


def about_thebe(made: Any) -> bool:
    """Whether a script or style that Sphinx adds is Thebe's."""
    body = getattr(made, "attributes", {}).get("body") or ""
    return "thebe" in f"{getattr(made, 'filename', made)} {body}".lower()


def copy_mathjax(app: Any, error: Exception | None) -> None:
    """Puts MathJax beside the book's other scripts."""
    if error is not None:
        return
    for found in files("sphinx-mathjax-offline") or ():
        if found.name == MATHJAX:
            target = Path(app.outdir) / "_static" / MATHJAX
            shutil.copyfile(str(found.locate()), target)


def name_folds(app: Any, error: Exception | None) -> None:
    """Names the buttons of the sidebar that fold a list, for who cannot see them."""
    for page in Path(app.outdir).glob("**/*.html") if error is None else ():
        text = page.read_text(encoding="utf-8")
        named = text.replace(FOLD, FOLD.replace("<summary", NAMED))
        if named != text:
            page.write_text(named, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    # After the extensions that add what is dropped here.
    app.connect("html-page-context", without_thebe, priority=900)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", name_folds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
