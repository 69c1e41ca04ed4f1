"""The page "The life of jit(grad(f))(x)": today's source, and what a call prints."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import jaxlib
import numpy as np

from minijax import grad, jit, lax

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "book" / "life_of_a_call.py"
PAGE = SCRIPT.with_suffix(".md").read_text(encoding="utf-8")

spec = importlib.util.spec_from_file_location("life_of_a_call", SCRIPT)
life_of_a_call = importlib.util.module_from_spec(spec)
spec.loader.exec_module(life_of_a_call)
FUNCTIONS = life_of_a_call.FUNCTIONS


def comparable(text):
    """The page, with five decimals; without what another jaxlib may print otherwise."""
    if f"here it is {jaxlib.__version__}," not in PAGE:
        text = re.sub(r"```text\nmodule.*?```", "", text, flags=re.DOTALL)
        text = re.sub(r"here it is \S+,|operations of the compiled .*", "", text)
    return re.sub(r"(\d\.\d{5})\d+", r"\1", text)


def test_the_page_is_what_its_script_writes_today(tmp_path):
    made = tmp_path / "page.md"
    environment = dict(os.environ, PYTHONPATH=str(ROOT), JAX_PLATFORMS="cpu")
    command = [sys.executable, str(SCRIPT), str(made)]
    subprocess.run(command, check=True, env=environment)
    text = made.read_text(encoding="utf-8")
    assert comparable(PAGE) == comparable(text), "run python book/life_of_a_call.py"


def test_each_of_the_twelve_functions_is_shown_once_and_whole():
    assert len(FUNCTIONS) == 12
    places = []
    for name in FUNCTIONS:
        code = life_of_a_call.source(name)
        assert PAGE.count(code) == 1, name
        places.append(PAGE.index(code))
    assert places == sorted(places)
    assert PAGE.count("# minijax/core/") == 12


def test_the_functions_are_in_the_order_in_which_a_call_reaches_them():
    names = {function.__code__: name for name, function in FUNCTIONS.items()}
    reached = {}

    def watch(frame, event, argument):
        if event == "call" and frame.f_code in names:
            reached[names[frame.f_code]] = True

    def f(x):
        return lax.sin(x) * x

    function, before = jit(grad(f)), sys.getprofile()
    sys.setprofile(watch)
    try:
        function(np.float32(0.5))
    finally:
        sys.setprofile(before)
    assert list(reached) == list(FUNCTIONS)
