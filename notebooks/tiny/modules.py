"""tiny, over minijax. This piece: modules with named weights, a Flax of 90 lines."""

import hashlib
from dataclasses import dataclass, field, replace

import minijax.numpy as jnp
from minijax import lax, nn, random


def key_for(key, path, number):
    """A key of its own for the weight `number` of the module at `path`, as in Flax."""
    parts = [*(name.encode() for name in path), bytes([number])]
    digest = hashlib.sha1(b"".join(parts)).digest()
    return random.fold_in(key, jnp.uint32(int.from_bytes(digest[:4], "big")))


@dataclass
class Scope:
    """The weights of one module, where it stands, and the key of `init`, or None."""

    params: dict
    path: tuple = ()
    key: object = None
    children: dict = field(default_factory=dict)
    made: int = 0

    def child(self, kind):
        """The scope of the next module of this kind inside: Dense_0, Dense_1, ..."""
        number = self.children.get(kind, 0)
        self.children[kind] = number + 1
        name = f"{kind}_{number}"
        if self.key is None:
            params = self.params.get(name, {})
        else:
            params = self.params.setdefault(name, {})
        return Scope(params, (*self.path, name), self.key)

    def param(self, name, make, shape):
        """The weight `name`: the one in params, or a new one of make(key, shape)."""
        where = "/".join((*self.path, name))
        if name not in self.params:
            if self.key is None:
                raise KeyError(f"there is no weight {where}")
            self.made += 1
            self.params[name] = make(key_for(self.key, self.path, self.made), shape)
        weight = self.params[name]
        if jnp.shape(weight) != shape:
            raise ValueError(f"{where} is of shape {jnp.shape(weight)}, not {shape}")
        return weight


RUNNING = []  # the scopes of the modules that are being called, the innermost last


class Module:
    """Fields say what kind of a module it is; the weights are elsewhere."""

    def __init_subclass__(cls):
        cls.__call__ = in_its_scope(cls.__call__)
        dataclass(cls)

    def __post_init__(self):
        kind = type(self).__name__
        self.scope = RUNNING[-1].child(kind) if RUNNING else None

    def param(self, name, make, shape):
        return self.scope.param(name, make, shape)

    def init(self, key, *args):
        """A dict of all weights, made while the module runs once on arguments."""
        params = {}
        run(self, Scope(params, key=key), args)
        return params

    def apply(self, params, *args):
        """What the module gives with these weights: a function of its arguments."""
        return run(self, Scope(params), args)


def run(module, scope, args):
    copy = replace(module)
    copy.scope = scope
    return copy(*args)


def in_its_scope(call):
    def wrapped(self, *args):
        if self.scope is None:
            raise ValueError("call init or apply, or make the module inside another")
        self.scope.children.clear()
        RUNNING.append(self.scope)
        try:
            return call(self, *args)
        finally:
            RUNNING.pop()

    return wrapped


class Dense(Module):
    """x @ kernel + bias, along the last axis."""

    features: int

    def __call__(self, x):
        kernel = self.param(
            "kernel", nn.initializers.lecun_normal(), (x.shape[-1], self.features)
        )
        bias = self.param("bias", nn.initializers.zeros, (self.features,))
        y = lax.dot_general(x, kernel, (((x.ndim - 1,), (0,)), ((), ())))
        return y + jnp.reshape(bias, (1,) * (y.ndim - 1) + (-1,))


class Embed(Module):
    """A row of numbers for each token."""

    tokens: int
    features: int

    def __call__(self, x):
        make = nn.initializers.variance_scaling(1.0, "fan_in", "normal", out_axis=0)
        table = self.param("embedding", make, (self.tokens, self.features))
        return jnp.take(table, x, axis=0)
