"""Rounds of a comparison, each in processes of its own, in changing order."""

import argparse
from collections.abc import Callable
from typing import Any


def measured_in_rounds(measure: Callable[[str], Any], text: str | None) -> list[dict]:
    """What `measure(library)` gives for both libraries, for each round.

    How many rounds there are is an option of the command line; `text` is its help.
    """
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = []
    for number in range(parser.parse_args().rounds):
        order = ["minijax", "jax"] if number % 2 else ["jax", "minijax"]
        rounds.append({library: measure(library) for library in order})
    return rounds
