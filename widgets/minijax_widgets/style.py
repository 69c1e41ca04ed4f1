"""The visual language: colours by role, and the style sheet of every view.

Each colour is written twice. Inline, in light colours, for an untrusted notebook, which
drops style sheets; and as variables, which follow the notebook's theme.
"""

from __future__ import annotations

# role: (ink, wash) on light, (ink, wash) on dark. Contrast of each ink is at least
# 4.6 : 1 on its base.
PALETTE = {
    "value": ("#246CCC", "#E1ECFB", "#80C0EF", "#12304A"),
    "constant": ("#5A6472", "#E9ECF0", "#A3ADBA", "#2A3038"),
    "result": ("#006446", "#DBF1E8", "#3FE0A6", "#0D3A2B"),
}
LIGHT = {"base": "#FFFFFF", "panel": "#F4F6F9", "text": "#1B2027", "line": "#7A8594"}
DARK = {"base": "#14171C", "panel": "#1D222A", "text": "#E6EAF0", "line": "#6B7685"}
CODE = "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"
TEXT = "system-ui,sans-serif"


def variables(dark: bool) -> str:
    """Returns the declarations of one theme's colours."""
    base = DARK if dark else LIGHT
    start = 2 if dark else 0
    declared = [f"--mj-{name}:{colour}" for name, colour in base.items()]
    for role, colours in PALETTE.items():
        declared.append(f"--mj-{role}:{colours[start]}")
        declared.append(f"--mj-{role}-wash:{colours[start + 1]}")
    return ";".join(declared)


SHEET = """
.minijax-view{%(light)s;container-type:inline-size}
body[data-jp-theme-light=false] .minijax-view,body.vscode-dark .minijax-view,
html[data-theme=dark] .minijax-view{%(dark)s}
@media (prefers-color-scheme:dark){
body:not([data-jp-theme-light]):not(.vscode-light) .minijax-view{%(dark)s}
html[data-theme=light] .minijax-view{%(light)s}}
.minijax-view .mj-box,.minijax-view .mj-box td,.minijax-view .mj-box th{
background:var(--mj-base)!important;color:var(--mj-text)!important}
.minijax-view .mj-box .mj-row{border-color:transparent!important}
.minijax-view .mj-box .mj-rail{color:var(--mj-constant)!important}
.minijax-view .mj-box .mj-v{color:var(--mj-value)!important}
.minijax-view .mj-box .mj-c{color:var(--mj-constant)!important}
.minijax-view .mj-box .mj-r{color:var(--mj-result)!important}
.minijax-view .mj-box tr.mj-on td{background:var(--mj-panel)!important}
.minijax-view .mj-box tr.mj-on td:first-child{
box-shadow:inset 3px 0 var(--mj-value)}
.minijax-view .mj-n{border-radius:3px;cursor:default}
.minijax-view .mj-box .mj-def{background:var(--mj-value-wash)!important;
color:var(--mj-text)!important;box-shadow:0 0 0 1px var(--mj-value)}
.minijax-view .mj-box .mj-use{background:var(--mj-value-wash)!important;
color:var(--mj-text)!important;text-decoration:underline 2px var(--mj-value)}
.minijax-view .mj-detail{border-color:var(--mj-line)!important;
background:var(--mj-panel)!important}
.minijax-view .mj-box:focus-visible{outline:2px solid var(--mj-value);
outline-offset:2px}
@container (max-width:560px){.minijax-view .mj-rail{display:none!important}
.minijax-view .mj-code{white-space:pre-wrap!important;
padding-left:4ch!important;text-indent:-3ch}}
"""


def style_sheet() -> str:
    """Returns the `<style>` element that stands in each view."""
    sheet = SHEET % {"light": variables(dark=False), "dark": variables(dark=True)}
    return f"<style>{sheet}</style>"
