"""Write expected.json: what the programs give with jax, and errors with minijax.

    python tests/closed_core/make.py

Texts and results are real JAX's; the texts of errors are those of minijax as a whole,
whose classes are held against JAX's here.
"""

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

EXPECTED = HERE / "expected.json"


def of_jax() -> dict:
    import jax
    import numpy as np

    from tests.closed_core.programs import PROGRAMS
    from tests.golden.normalise import plain_numpy_scalars

    told = {}
    for name, make in PROGRAMS.items():
        function, arguments = make(jax)
        with plain_numpy_scalars():
            text = str(jax.make_jaxpr(function)(*arguments))
        leaves = jax.tree_util.tree_leaves(jax.jit(function)(*arguments))
        results = [
            [str(x.dtype), list(x.shape), x.weak_type, np.asarray(x).tolist()]
            for x in leaves
        ]
        told[name] = {"text": text, "results": results}
    return told


def without_places(text: str) -> str:
    """A message without the folders and line numbers of files."""
    text = re.sub(r"\S*/(\w+\.py)", r"\1", text)
    return re.sub(r"(\.py):\d+(:\d+)?", r"\1", text)


def of_wrong(library) -> dict:
    """The class and the text, without places, of each wrong program's error."""
    from tests.closed_core.programs import WRONG

    told = {}
    for name, attempt in WRONG.items():
        try:
            attempt(library)
        except Exception as error:
            told[name] = [type(error).__name__, without_places(str(error))]
        else:
            told[name] = ["nothing", ""]
    return told


def main() -> None:
    import jax

    import minijax
    import minijax.lax

    wrong, theirs = of_wrong(minijax), of_wrong(jax)
    for name, (kind, _) in wrong.items():
        assert kind == theirs[name][0] != "nothing", (name, kind, theirs[name])
    told = {"jax": jax.__version__, "programs": of_jax(), "wrong": wrong}
    EXPECTED.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
