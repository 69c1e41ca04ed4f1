"""The handwritten digits of chapter 00: real images that come with scikit-learn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Digits(NamedTuple):
    """Images as rows of 64 numbers from 0 to 1, labels as numbers from 0 to 9."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load() -> Digits:
    """Returns scikit-learn's 1,797 digits, shuffled; a fifth (359) is held out."""
    from sklearn.datasets import load_digits

    from minijax import random

    digits = load_digits()
    order = np.asarray(random.permutation(random.key(0), len(digits.target)))
    images = (digits.data[order] / 16).astype(np.float32)
    labels = digits.target[order].astype(np.int32)
    fifth = len(labels) // 5
    return Digits(images[fifth:], labels[fifth:], images[:fifth], labels[:fifth])
