"""`python -m minijax.as_jax script.py [args]`: a program that imports jax, on minijax.

`-m module [args]` runs a module. Inside of a program the function `minijax.as_jax()`
does the same; so that this file cannot stand in its place, it is not to be imported.
"""

import os
import runpy
import sys

from minijax.jax_names.aliases import as_jax


def main(arguments: list[str]) -> int:
    """Runs the program; returns the exit status of a wrong call."""
    as_module = arguments[:1] == ["-m"]
    program = arguments[as_module:]
    if not program:
        print("usage: python -m minijax.as_jax script.py [arguments]", file=sys.stderr)
        print("       python -m minijax.as_jax -m module [arguments]", file=sys.stderr)
        return 2
    as_jax()
    sys.argv[:] = program
    if as_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")
    return 0


if __name__ != "__main__":
    raise ImportError(
        "minijax.as_jax is a function: `import minijax`, then `minijax.as_jax()`. "
        "`python -m minijax.as_jax script.py` runs a program with it."
    )
sys.exit(main(sys.argv[1:]))
