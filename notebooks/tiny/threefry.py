"""tiny, a toy over NumPy. This piece: random bits from a key and a counter."""

import numpy as np

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(key, high, low):
    """Stirs the counters (high, low) with a key: 20 rounds on 32-bit words."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    a, b = high + key[0], low + key[1]
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            a = a + b
            b = (b << np.uint32(distance)) | (b >> np.uint32(32 - distance))
            b = a ^ b
        a = a + schedule[(group + 1) % 3]
        b = b + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return a, b


def make_key(seed):
    return np.array([0, seed], np.uint32)


def counters(count):
    return np.zeros(count, np.uint32), np.arange(count, dtype=np.uint32)


def split(key, count=2):
    return np.stack(threefry(key, *counters(count)), axis=-1)


def bits(key, count):
    a, b = threefry(key, *counters(count))
    return a ^ b


def uniform(key, count):
    """23 random bits become the digits of a float between 1 and 2; take 1 away."""
    digits = (bits(key, count) >> np.uint32(9)) | np.uint32(0x3F800000)
    return digits.view(np.float32) - np.float32(1)
