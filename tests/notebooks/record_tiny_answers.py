"""Writes what JAX answers to the programs by which `tiny` is scored.

Run: python tests/notebooks/record_tiny_answers.py
With --show it prints them instead.
"""

import json
import sys

import jax
import numpy as np

from minijax_lab.tiny_programs import PROGRAMS, Real, plain
from minijax_lab.tiny_score import ANSWERS


def answers():
    jax.config.update("jax_num_cpu_devices", 8)
    real = Real(jax)
    found = {}
    for chapter, programs in PROGRAMS.items():
        found[chapter] = {}
        for program in programs:

            def run(*args, function=program.function):
                return function(real, *args)

            values = jax.tree.leaves(jax.jit(run)(*program.args))
            answer = {"values": [rounded(value) for value in values]}
            if program.text:
                answer["text"] = plain(real.text(run, *program.args))
            found[chapter][program.line] = answer
    key = jax.random.key(7)
    found["bits"] = jax.random.bits(key, (4,)).tolist()
    found["split"] = jax.random.key_data(jax.random.split(key)).tolist()
    found["uniform"] = jax.random.uniform(key, (4,)).tolist()
    return found


def rounded(value):
    """Seven digits: more differ between machines."""
    return np.vectorize(lambda x: float(f"{x:.7g}"))(np.asarray(value, float)).tolist()


if __name__ == "__main__":
    text = json.dumps(answers(), separators=(",", ":")).replace('},"', '},\n"')
    if "--show" in sys.argv:
        print(text)
    else:
        ANSWERS.write_text(text + "\n")
