"""What is changed in a printed jaxpr before it is compared. The whole list:

1. NumPy scalars print as Python prints them: `1`, `0.5` and `True` and not
   `np.int64(1)`, `np.float32(0.5)` and `np.True_`. JAX leaves them in parameters by
   accident. They are printed so from the start (`plain_numpy_scalars`), since their
   length decides where lines break.
2. Callables in parameters lose what identifies them: `<function f at 0x7f..>`, bound
   methods, partials and objects with an address become `<callable>`.
3. Any other address, `0x` and hexadecimal digits, becomes `0x...`.
4. Tree structures, `PyTreeDef(...)`, become `PyTreeDef`.

Nothing else: not names, not order, not spacing.
"""

import contextlib
import re

import numpy as np

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


def plain_numpy_scalars() -> contextlib.AbstractContextManager:
    """Within it, the repr of a NumPy scalar is Python's: that of NumPy 1.25."""
    return np.printoptions(legacy="1.25")


def normalise(text: str) -> str:
    """`text` after the changes in the list above, without trailing blanks."""
    text = _replace_balanced(text, "<", ">", "<callable>", _is_callable_text)
    text = _replace_balanced(text, "PyTreeDef(", ")", "PyTreeDef", lambda body: True)
    text = _ADDRESS.sub("0x...", text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def _is_callable_text(body: str) -> bool:
    """Whether `<body>` is Python's repr of a function or of an object at an address."""
    return bool(re.search(r"\bat 0x[0-9a-fA-F]+$", body)) or body.startswith(
        ("function ", "bound method ", "built-in function ")
    )


def _replace_balanced(text, opening, closing, replacement, accept):
    """Replace each balanced `opening ... closing` whose body `accept` approves of."""
    pieces = []
    position = 0
    while (start := text.find(opening, position)) >= 0:
        end = _matching(text, start + len(opening), opening[-1], closing)
        if end is None or not accept(text[start + len(opening) : end]):
            pieces.append(text[position : start + len(opening)])
            position = start + len(opening)
            continue
        pieces.append(text[position:start] + replacement)
        position = end + len(closing)
    return "".join(pieces) + text[position:]


def _matching(text: str, start: int, opening: str, closing: str) -> int | None:
    """The index of the `closing` that ends the body starting at `start`, if any."""
    depth = 1
    for index in range(start, len(text)):
        # The arrow of a jaxpr's `->` closes nothing.
        if text[index] == closing and text[index - 1 : index + 1] != "->":
            depth -= 1
            if depth == 0:
                return index
        elif text[index] == opening:
            depth += 1
    return None
