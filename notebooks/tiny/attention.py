"""tiny, a toy over NumPy. This piece: attention that sees one block at a time."""

import numpy as np

from tiny.kernels import BlockSpec, pallas_call


def online_softmax(parts):
    """(largest, sum of exp(x - largest)) of numbers that come in parts."""
    top, weight = -np.inf, 0.0
    for part in parts:
        larger = max(top, part.max())
        weight = weight * np.exp(top - larger) + np.exp(part - larger).sum()
        top = larger
    return top, weight


def softmax_by_parts(x, size):
    """A softmax whose first pass never sees more than `size` numbers."""
    top, weight = online_softmax(x[at : at + size] for at in range(0, len(x), size))
    return np.exp(x - top) / weight


def flash_attention(q, k, v, rows):
    """softmax(q k^T / sqrt(width)) v, with blocks of `rows` queries and keys."""
    width = q.shape[1]

    def kernel(q_ref, k_ref, v_ref, o_ref):
        top = np.full((rows, 1), -np.inf, np.float32)
        weight = np.zeros((rows, 1), np.float32)
        total = np.zeros((rows, v.shape[1]), np.float32)
        for at in range(0, len(k), rows):
            scores = q_ref @ k_ref[at : at + rows].T / np.float32(np.sqrt(width))
            larger = np.maximum(top, scores.max(1, keepdims=True))
            shrink, e = np.exp(top - larger), np.exp(scores - larger)
            weight = weight * shrink + e.sum(1, keepdims=True)
            total = total * shrink + e @ v_ref[at : at + rows]
            top = larger
        o_ref[...] = total / weight

    block = BlockSpec((rows, width), lambda i: (i, 0))
    specs = [block, BlockSpec(k.shape, lambda i: (0, 0))]
    specs.append(BlockSpec(v.shape, lambda i: (0, 0)))
    out = BlockSpec((rows, v.shape[1]), lambda i: (i, 0))
    shape = (len(q), v.shape[1])
    return pallas_call(kernel, shape, (len(q) // rows,), specs, out)(q, k, v)
