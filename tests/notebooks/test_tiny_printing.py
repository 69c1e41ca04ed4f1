"""Printing in `tiny`, and the CUDA handlers of chapter 20, which nvcc builds."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import jax
import numpy as np
import pytest

from minijax import ffi
from tiny.printing import run, say, threaded
from tiny.trace import trace

X = np.float32(3.0)
CUDA = Path(__file__).resolve().parents[2] / "notebooks" / "native" / "rms_norm.cu"


def chatty(x, say=say):
    y = x * 2.0
    say("y {}", y)
    say("x {}", x)
    say("sum {}", x + y)
    return y


def printed(capsys, program, args, choose):
    run(program, args, choose)
    return capsys.readouterr().out.splitlines()


def test_without_a_token_the_order_is_free(capsys):
    program = trace(chatty, X)
    last_first = printed(capsys, program, [X], max)
    assert last_first != printed(capsys, program, [X], min)
    assert sorted(last_first) == ["sum 9.0", "x 3.0", "y 6.0"]


@pytest.mark.parametrize("choose", [min, max], ids=["first", "last"])
def test_with_a_token_it_is_that_of_jax(capsys, choose):
    def in_jax(words, value):
        jax.debug.print(words, value, ordered=True)

    jax.jit(lambda x: chatty(x, in_jax))(X)
    jax.effects_barrier()
    wanted = capsys.readouterr().out.splitlines()
    assert printed(capsys, threaded(trace(chatty, X)), [X, ()], choose) == wanted


@pytest.mark.turns(3)
def test_the_cuda_handlers_build(tmp_path):
    """Compiled and linked, not run: that needs a GPU."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None or shutil.which("g++") is None:
        pytest.skip("needs nvcc and g++")
    built = tmp_path / "rms_norm.so"
    command = [nvcc, "-shared", "-Xcompiler", "-fPIC", "-std=c++17", "-w"]
    command += ["-I", ffi.include_dir(), str(CUDA), "-o", str(built)]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(built))
    assert ffi.pycapsule(library.RmsNorm) and ffi.pycapsule(library.RmsNormBack)
