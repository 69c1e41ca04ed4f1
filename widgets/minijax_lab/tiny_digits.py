"""Trains the digits of chapter 00 on the learner's own `tiny`."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax_lab import digits
from minijax_lab.tiny_programs import Tiny


def first_params(tiny: Any, width: int = 32) -> list[dict[str, np.ndarray]]:
    """Returns two layers' weights, drawn by tiny's threefry."""
    params = []
    for seed, (rows, columns) in enumerate([(64, width), (width, 10)]):
        draw = tiny.uniform(tiny.make_key(seed), rows * columns) - np.float32(0.5)
        weights = draw.reshape(rows, columns) * np.float32(2 / np.sqrt(rows))
        params.append({"w": weights, "b": np.zeros(columns, np.float32)})
    return params


def scores(tiny: Any, params: Any, image: Any) -> Any:
    """The network of chapter 00, for one image."""
    hidden, output = params
    x = tiny.tanh(tiny.dot(image, hidden["w"]) + hidden["b"])
    return tiny.dot(x, output["w"]) + output["b"]


def loss(tiny: Any, params: Any, images: Any, hot: Any) -> Any:
    """The mean loss; `hot` has a one in the column of each label."""

    def of_one(params: Any, image: Any, hot: Any) -> Any:
        s = scores(tiny, params, image)
        return tiny.log(tiny.sum(tiny.exp(s - tiny.max(s)))) + tiny.max(s) - s @ hot

    each = tiny.vmap(of_one, (None, 0, 0))(params, images, hot)
    return tiny.sum(each) / float(len(images))


def train(steps: int = 200, rate: float = 1.0) -> tuple[Any, float]:
    """Returns trained parameters and the accuracy on held-out digits.

    The gradient is traced once; each step evaluates the program that this wrote.
    """
    tiny, data = Tiny(), digits.load()
    hot = np.eye(10, dtype=np.float32)[data.train_labels]
    params = first_params(tiny)
    gradient = tiny.trace(
        lambda params: tiny.grad(lambda p: loss(tiny, p, data.train_images, hot))(
            params
        ),
        params,
    )
    for _ in range(steps):
        down = gradient(params)
        params = tiny.map_tree(lambda p, g: p - np.float32(rate) * g, params, down)
    found = np.argmax(scores(tiny, params, data.test_images), axis=1)
    return params, float(np.mean(found == data.test_labels))
