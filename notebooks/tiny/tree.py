"""tiny, a toy over NumPy. This piece: containers taken apart and built again."""


def dict_children(value):
    names = sorted(value)
    return [value[name] for name in names], names


REGISTRY = {
    list: (lambda x: (x, None), lambda _, children: list(children)),
    tuple: (lambda x: (x, None), lambda _, children: tuple(children)),
    dict: (dict_children, lambda names, children: dict(zip(names, children))),
    type(None): (lambda x: ([], None), lambda _, children: None),
}
LEAF = "*"


def register(kind, take_apart, build):
    """take_apart(x) gives (children, extra); build(extra, children) gives x back."""
    REGISTRY[kind] = take_apart, build


def flatten(value):
    """Returns the leaves, and the structure that is left without them."""
    if type(value) not in REGISTRY:
        return [value], LEAF
    children, extra = REGISTRY[type(value)][0](value)
    leaves, structures = [], []
    for child in children:
        found, structure = flatten(child)
        leaves += found
        structures.append(structure)
    return leaves, (type(value), extra, structures)


def unflatten(structure, leaves):
    """Puts leaves into a structure: the inverse of flatten."""
    return build(structure, iter(leaves))


def build(structure, leaves):
    if structure == LEAF:
        return next(leaves)
    kind, extra, structures = structure
    return REGISTRY[kind][1](extra, [build(part, leaves) for part in structures])


def paths(value, place=""):
    """Where each leaf lies, in the order of flatten."""
    if type(value) not in REGISTRY:
        return [place]
    children, extra = REGISTRY[type(value)][0](value)
    names = extra if isinstance(value, dict) else range(len(children))
    found = [paths(child, f"{place}[{n!r}]") for n, child in zip(names, children)]
    return [path for part in found for path in part]


def map_tree(function, first, *others):
    """The function of the leaves of one tree, or of several of one structure."""
    leaves, structure = flatten(first)
    columns = [leaves]
    for other in others:
        found, same = flatten(other)
        if same != structure:
            raise ValueError(f"the structures differ: {structure} and {same}")
        columns.append(found)
    return unflatten(structure, [function(*row) for row in zip(*columns)])
