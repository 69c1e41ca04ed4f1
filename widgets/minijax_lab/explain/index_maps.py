"""Index maps of kernels as people write them: `(i, j) -> (i, 0)`."""

from __future__ import annotations

from collections.abc import Sequence

from minijax.core.language import Jaxpr, Literal

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "//", "rem": "%"}
LONGEST = 44


def index_map_text(
    jaxpr: Jaxpr, axes: Sequence[str], scalars: Sequence[str] = ()
) -> str:
    """What an index map gives, from its jaxpr; `...` where there is no short formula.

    `axes` are the names of the grid's axes, `scalars` those of prefetched scalars.
    """
    texts: dict = dict(zip(jaxpr.invars, [*axes, *scalars]))
    for eqn in jaxpr.eqns:
        inputs = [
            str(atom.val) if isinstance(atom, Literal) else texts.get(atom, "...")
            for atom in eqn.invars
        ]
        name = eqn.primitive.name
        if name in SIGNS and len(inputs) == 2:
            text = f"({inputs[0]} {SIGNS[name]} {inputs[1]})"
        elif name in ("convert_element_type", "copy") and inputs:
            text = inputs[0]
        elif name == "get" and inputs:
            text = f"{inputs[0]}[{', '.join(inputs[1:])}]"
        else:
            text = "..."
        for var in eqn.outvars:
            texts[var] = text
    results = []
    for atom in jaxpr.outvars:
        if isinstance(atom, Literal):
            results.append(str(atom.val))
            continue
        text = texts.get(atom, "...")
        bare = text.startswith("(") and text.count("(") == 1
        results.append(text[1:-1] if bare else text)
    told = f"({', '.join(axes)}) -> ({', '.join(results)})"
    return told if len(told) <= LONGEST else f"({', '.join(axes)}) -> ..."
