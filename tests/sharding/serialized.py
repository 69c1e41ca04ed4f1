"""Compiled programs as bytes, and back in the same process: cases."""

from __future__ import annotations

import importlib

import numpy as np

CASES = {}


def _case(function):
    CASES[function.__name__] = function
    return function


def _again(lib, compiled, **where):
    """The program as bytes, and read again."""
    room = importlib.import_module(f"{lib.name}.experimental.serialize_executable")
    return room.deserialize_and_load(*room.serialize(compiled), **where)


def _on_mesh(lib, function, *args, **options):
    jitted = lib.mj.jit(function, **options)
    return _again(lib, jitted.lower(*args).compile())


def _on_one(lib, function, *args, device=0):
    compiled = lib.mj.jit(function).lower(*args).compile()
    where = lib.mj.devices()[device : device + 1]
    return _again(lib, compiled, execution_devices=where)


def _double(x):
    return x * 2


@_case
def cut(lib):
    x = lib.put(lib.numbers(8, 8), "x")
    return _on_mesh(lib, _double, x)(x)


@_case
def cut_from_numpy(lib):
    return _on_mesh(lib, _double, lib.put(lib.numbers(8, 8), "x"))(lib.numbers(8, 8))


@_case
def cut_otherwise(lib):
    loaded = _on_mesh(lib, _double, lib.put(lib.numbers(8, 8), "x"))
    return loaded(lib.put(lib.numbers(8, 8), "y"))


@_case
def trees(lib):
    args = lib.put(lib.numbers(8, 8), "x"), lib.put(lib.numbers(8, 8), None, "y")
    return _on_mesh(lib, lambda x, y: {"a": x @ y, "b": y.sum()}, *args)(*args)


@_case
def one_device(lib):
    return _on_one(lib, _double, lib.numbers(8, 8))(lib.numbers(8, 8))


@_case
def another_device(lib):
    x = lib.mj.device_put(lib.numbers(8, 8), lib.mj.devices()[3])
    return _on_one(lib, _double, x, device=3)(x)


@_case
def unused(lib):
    args = lib.numbers(8, 8), lib.numbers(3)
    return _on_one(lib, lambda x, y: x * 2, *args)(*args)


@_case
def other_shape(lib):
    return _on_one(lib, _double, lib.numbers(8, 8))(np.ones(3, np.float32))


@_case
def constant(lib):
    weights = lib.numbers(8)
    return _on_one(lib, lambda x: x * weights, lib.numbers(8, 8))(lib.numbers(8, 8))


@_case
def explicit(lib):
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    x = lib.put(lib.numbers(8, 8), "x", mesh=mesh)
    return _on_mesh(lib, lambda x: x.T, x)(x)


@_case
def donated(lib):
    x = lib.put(lib.numbers(8, 8), "x")
    out = _on_mesh(lib, _double, x, donate_argnums=0)(x)
    return out, x.is_deleted()


@_case
def keys(lib):
    key = lib.random.key(0)
    half = _on_one(lib, lambda key: lib.random.split(key)[0], key)(key)
    return lib.random.key_data(half)


@_case
def derivative(lib):
    x = lib.put(lib.numbers(8, 8), "x", "y")
    return _on_mesh(lib, lib.mj.grad(lambda x: (x**3).sum()), x)(x)


@_case
def input_shardings(lib):
    loaded = _on_mesh(lib, _double, lib.put(lib.numbers(8, 8), "x"))
    return str(loaded.input_shardings[0][0].spec)


@_case
def transformed(lib):
    loaded = _on_one(lib, _double, lib.numbers(8, 8))
    return lib.mj.jit(loaded)(lib.numbers(8, 8))
