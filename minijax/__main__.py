"""Lets `python -m minijax` stand for the `minijax` command."""

import sys

from minijax_lab.command import main

if __name__ == "__main__":
    sys.exit(main())
