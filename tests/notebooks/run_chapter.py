"""Runs a chapter as a kernel would, and writes down what it found as JSON.

    python tests/notebooks/run_chapter.py CHAPTER.ipynb FOUND.json

The chapter's folder comes first on the path of imports, with its own `tiny`.
"""

import json
import os
import sys
from pathlib import Path

from minijax_lab import grading, one_notebook


def main() -> None:
    notebook, found = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    os.chdir(notebook.parent)
    sys.path.insert(0, str(notebook.parent))
    shell = one_notebook.make_shell()
    errors = []
    for number, source in enumerate(one_notebook.code_cells(notebook)):
        error = one_notebook.run_cell(shell, source, 120)
        if error:
            errors.append(f"cell {number}: {error}")
    states = {one.name: [one.state, one.reason] for one in grading.outcomes}
    found.write_text(json.dumps({"errors": errors, "states": states}))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
