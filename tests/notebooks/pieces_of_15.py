"""Right and wrong answers to the pieces of chapter 15: modules and optimizers."""

from minijax_lab import tiny_pieces


def changed(name: str, *changes: tuple[str, str]) -> str:
    """The course's own text of a piece with some parts replaced."""
    text = str(tiny_pieces.course_source(name))
    for old, new in changes:
        assert old in text, (name, old)
        text = text.replace(old, new)
    return text


CHILD, PARAM = "modules.Scope.child", "modules.Scope.param"
CHAIN, ADAM = "optimizers.chain", "optimizers.scale_by_adam"
DECAY, APPLY = "optimizers.add_decayed_weights", "optimizers.apply_updates"

RIGHT = {
    CHILD: [
        """
def child(self, kind):
    self.children[kind] = self.children.get(kind, -1) + 1
    name = kind + "_" + str(self.children[kind])
    if name not in self.params and self.key is not None:
        self.params[name] = {}
    inner = self.params[name] if name in self.params else {}
    return Scope(params=inner, path=self.path + (name,), key=self.key)
""",
        """
def child(self, kind):
    name = f"{kind}_{self.children.setdefault(kind, 0)}"
    self.children[kind] += 1
    found = self.params.get(name)
    if found is None:
        found = {}
        if self.key is not None:
            self.params[name] = found
    return replace(
        self, params=found, path=(*self.path, name), children={}, made=0
    )
""",
    ],
    PARAM: [
        """
def param(self, name, make, shape):
    where = "/".join(self.path + (name,))
    if name in self.params:
        weight = self.params[name]
    elif self.key is None:
        raise KeyError(where)
    else:
        self.made = self.made + 1
        weight = make(key_for(self.key, self.path, self.made), shape)
        self.params[name] = weight
    if tuple(weight.shape) != tuple(shape):
        raise ValueError(where)
    return weight
""",
        """
def param(self, name, make, shape):
    try:
        weight = self.params[name]
    except KeyError:
        if self.key is None:
            raise KeyError("/".join([*self.path, name])) from None
        self.made += 1
        key = key_for(self.key, self.path, self.made)
        weight = self.params[name] = make(key, shape)
    if jnp.shape(weight) == shape:
        return weight
    raise ValueError(f"{name} has another shape")
""",
    ],
    CHAIN: [
        """
def chain(*transforms):
    def update(grads, states, params=None):
        states = list(states)
        for i, one in enumerate(transforms):
            grads, states[i] = one.update(grads, states[i], params)
        return grads, tuple(states)

    return Transform(lambda params: tuple(t.init(params) for t in transforms), update)
""",
        """
def chain(*transforms):
    if not transforms:
        return Transform(lambda params: (), lambda g, state, params=None: (g, ()))
    first, rest = transforms[0], chain(*transforms[1:])

    def update(grads, states, params=None):
        grads, mine = first.update(grads, states[0], params)
        grads, others = rest.update(grads, states[1:], params)
        return grads, (mine, *others)

    return Transform(lambda p: (first.init(p), *rest.init(p)), update)
""",
    ],
    ADAM: [
        """
def scale_by_adam(b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0):
    def init(params):
        zeros = tree.map(jnp.zeros_like, params)
        return AdamState(jnp.int32(0), zeros, zeros)

    def update(grads, state, params=None):
        count = state.count + 1
        mean = tree.map(lambda m, g: m + (1 - b1) * (g - m), state.mean, grads)
        square = tree.map(lambda s, g: s + (1 - b2) * (g * g - s), state.square, grads)

        def one(m, s):
            root = jnp.sqrt(s / (1 - b2**count) + eps_root)
            return m / (1 - b1**count) / (root + eps)

        return tree.map(one, mean, square), AdamState(count, mean, square)

    return Transform(init, update)
""",
        changed(ADAM, ("running(grads, state.mean, b1, 1)", """tree.map(
            lambda g, m: b1 * m + (1 - b1) * g, grads, state.mean
        )""")),
    ],
    DECAY: [
        """
def add_decayed_weights(rate, chosen=lambda path: True):
    def update(grads, state, params=None):
        def one(path, grad, weight):
            if not chosen("/".join([str(entry.key) for entry in path])):
                return grad
            return grad + rate * weight

        return tree_map_with_path(one, grads, params), state

    return Transform(lambda params: (), update)
""",
        changed(DECAY, ("grad + rate * weight if chosen(name) else grad",
                        "grad + (rate if chosen(name) else 0.0) * weight")),
    ],
    APPLY: [
        """
def apply_updates(params, updates):
    return tree.map(lambda p, u: jnp.asarray(p + u, p.dtype), params, updates)
""",
        """
def apply_updates(params, updates):
    leaves, structure = tree.flatten(params)
    pairs = zip(leaves, tree.leaves(updates), strict=True)
    return tree.unflatten(structure, [p + u.astype(p.dtype) for p, u in pairs])
""",
    ],
}  # fmt: skip

WRONG = {
    CHILD: [
        (changed(CHILD, ("number = self.children.get(kind, 0)",
                         "number = sum(self.children.values())"),
                 ("= number + 1", "= self.children.get(kind, 0) + 1")),
         "there is no weight Pair_0"),
        (changed(CHILD, ("(*self.path, name)", "(name,)")), "a path from the root"),
        (changed(CHILD, ("self.params.setdefault(name, {})", "{}")), "names of"),
        (changed(CHILD, ("if self.key is None", "if False")), "there was no key"),
    ],
    PARAM: [
        (changed(PARAM, ("if name not in self.params:", "if True:")), "weights that"),
        (changed(PARAM, ("self.made += 1", "pass")), "keys of weights"),
        (changed(PARAM, ("if jnp.shape(weight) != shape", "if False")), "missing"),
        (changed(PARAM, ("raise KeyError(f\"there is no weight {where}\")",
                         "return make(random.key(0), shape)")), "made up a weight"),
    ],
    CHAIN: [
        (changed(CHAIN, ("zip(transforms, states, strict=True)",
                         "reversed(list(zip(transforms, states)))")), "is 18"),
        (changed(CHAIN, ("grads, state = one", "_, state = one")), "is 18"),
        (changed(CHAIN, ("(grads, state, params)", "(grads, state)")), "a chain"),
        (changed(CHAIN, ("tuple(after)", "states")), "each gets its own state"),
    ],
    ADAM: [
        (changed(ADAM, ("corrected(mean, b1, count)", "mean")), "update 1"),
        (changed(ADAM, ("count = counted(state.count)", "count = state.count")),
         "update 1"),
        (changed(ADAM, ("jnp.sqrt(s + eps_root) + eps", "jnp.sqrt(s + eps)")),
         "update"),
        (changed(ADAM, ("AdamState(count, mean, square)\n\n",
                        "AdamState(count, state.mean, square)\n\n")), "update 2"),
    ],
    DECAY: [
        (changed(DECAY, ("if chosen(name) else grad", "if name else grad")),
         "expected the paths"),
        (changed(DECAY, ("grad + rate * weight", "rate * weight")), "grad + rate"),
        (changed(DECAY, ('"/".join(entry.key for entry in path)', "path[-1].key")),
         "expected the paths"),
        (changed(DECAY, ("grad + rate * weight", "grad - rate * weight")), "grad + ra"),
    ],
    APPLY: [
        (changed(APPLY, (".astype(p.dtype)", "")), "stays one"),
        (changed(APPLY, ("p + u", "p - u")), "weight + update"),
        (changed(APPLY, ("(p + u).astype(p.dtype)", "u")), "stays one"),
        ("def apply_updates(params, updates):\n    return params", "weight + update"),
    ],
}  # fmt: skip
