"""The visual language: colours by role, for static frames and pictures.

The player has the same colours as variables that follow the notebook's theme
(`widgets/src/player/style.ts`); a test holds the two lists together.
"""

from __future__ import annotations

# role: (ink, wash) on light, (ink, wash) on dark. Contrast of each ink is at least
# 4.6 : 1 on its base.
PALETTE = {
    "value": ("#246CCC", "#E1ECFB", "#80C0EF", "#12304A"),
    "constant": ("#5A6472", "#E9ECF0", "#A3ADBA", "#2A3038"),
    "residual": ("#A06109", "#FBEFD9", "#FDCF77", "#3B2E10"),
    "cotangent": ("#6D195F", "#F6E2F1", "#F44891", "#45152C"),
    "batch": ("#006446", "#DBF1E8", "#3FE0A6", "#0D3A2B"),
    "mesh": ("#4B11A9", "#EBE4FA", "#987CF2", "#292050"),
    # The second and the third axis of a mesh.
    "meshy": ("#00666E", "#D8F0F2", "#4FCFD8", "#0B3237"),
    "meshz": ("#5A6200", "#EFF2D0", "#C9D552", "#2D310F"),
    "miss": ("#8A2308", "#FAE4DD", "#EB8769", "#431F15"),
}
LIGHT = {"base": "#FFFFFF", "panel": "#F4F6F9", "text": "#1B2027", "line": "#7A8594"}
DARK = {"base": "#14171C", "panel": "#1D222A", "text": "#E6EAF0", "line": "#6B7685"}
CODE = "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"
TEXT = "system-ui,sans-serif"
