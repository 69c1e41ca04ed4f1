"""The fuser of `tiny`: the same values by fewer kernels and fewer bytes."""

import numpy as np

from tiny.fuser import kernels_of, run, traffic
from tiny.operations import broadcast, sum, tanh
from tiny.trace import MEANING, evaluate, trace

X = np.linspace(0.5, 2.0, 600, dtype=np.float32).reshape(200, 3)


def same(program, *args):
    wanted = evaluate(program, MEANING, list(args))
    for found, right in zip(run(program, list(args)), wanted, strict=True):
        np.testing.assert_array_equal(found, right)


def test_a_chain_is_one_kernel_that_reads_and_writes_once():
    program = trace(lambda x: tanh(x * x + x) / (x * x + x), X)
    (kernel,) = kernels_of(program)
    assert traffic(program, kernel) == (X.nbytes, X.nbytes)
    same(program, X)


def test_a_sum_stands_between_two_kernels():
    program = trace(lambda x: tanh(x * x) + sum(tanh(x * x)), X)
    assert len(kernels_of(program)) == 3
    same(program, X)


def test_what_is_needed_later_is_written():
    program = trace(lambda x: (x * x, tanh(x * x)), X)
    written = [traffic(program, kernel)[1] for kernel in kernels_of(program)]
    assert np.sum(written) == 2 * X.nbytes
    same(program, X)


def test_a_row_is_shared_by_all_blocks():
    row = np.arange(3, dtype=np.float32)
    program = trace(lambda x, y: tanh(x * broadcast(y, (200, 3), (1,))) + x, X, row)
    same(program, X, row)
