"""Optimizers as triples of functions: `init`, `update` and `get_params`.

`init(params)` makes a state, `update(i, grads, state)` the next one, and
`get_params(state)` takes the parameters out. A step size is a number or a function of
the step `i`.

In JAX: `example_libraries/optimizers.py`.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from minijax import numpy as jnp
from minijax import tree
from minijax.tree_util import register_pytree_node, tree_leaves

# The leaves of the state of each parameter; the tree of parameters; of each state.
OptimizerState = namedtuple(
    "OptimizerState", ["packed_state", "tree_def", "subtree_defs"]
)
register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda trees, leaves: OptimizerState(leaves[0], *trees),
)

Array = Any
Params = Any
State = Any
Updates = Any
Step = int
InitFn = Callable[[Params], OptimizerState]
UpdateFn = Callable[[Step, Updates, OptimizerState], OptimizerState]
ParamsFn = Callable[[OptimizerState], Params]
Schedule = Callable[[Step], float]


class Optimizer(NamedTuple):
    """What an optimizer consists of."""

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


def _packed(states: list, tree_def: Any) -> OptimizerState:
    pairs = [tree.flatten(state) for state in states]
    return OptimizerState(
        tuple(leaves for leaves, _ in pairs), tree_def, tuple(d for _, d in pairs)
    )


def _states(state: OptimizerState) -> list:
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [tree.unflatten(*pair) for pair in pairs]


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Makes an optimizer of one array, as a triple, an optimizer of trees of arrays."""

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(params: Params) -> OptimizerState:
            leaves, tree_def = tree.flatten(params)
            return _packed([init(leaf) for leaf in leaves], tree_def)

        def tree_update(i: Step, grads: Updates, state: OptimizerState) -> Any:
            leaves, tree_def = tree.flatten(grads)
            if tree_def != state.tree_def:
                raise TypeError(
                    "update takes a tree of gradients like that of the parameters, "
                    f"{state.tree_def}, got {tree_def}."
                )
            pairs = zip(leaves, _states(state), strict=True)
            new = _packed([update(i, g, old) for g, old in pairs], tree_def)
            if new.subtree_defs != state.subtree_defs:
                raise TypeError(
                    "the update of an optimizer must return what it is given, "
                    f"{state.subtree_defs}, but returned {new.subtree_defs}."
                )
            return new

        def tree_get_params(state: OptimizerState) -> Params:
            return tree.unflatten(state.tree_def, map(get_params, _states(state)))

        return Optimizer(tree_init, tree_update, tree_get_params)

    return tree_opt_maker


def _with_slots(count: int, update: Callable[..., tuple]) -> tuple:
    """An optimizer whose state is the parameter and `count` arrays of zeros beside."""

    def init(x: Any) -> tuple:
        return (x, *(jnp.zeros_like(x) for _ in range(count)))

    return init, update, lambda state: state[0]


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent."""
    step = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - step(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Gradient descent with a velocity, of which a part `mass` is kept."""
    step = make_schedule(step_size)

    def update(i: Step, g: Any, state: Any) -> tuple:
        x, velocity = state
        velocity = mass * velocity + g
        return x - step(i) * velocity, velocity

    return _with_slots(1, update)


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Nesterov's momentum."""
    step = make_schedule(step_size)

    def update(i: Step, g: Any, state: Any) -> tuple:
        x, velocity = state
        velocity = mass * velocity + g
        return x - step(i) * (mass * velocity + g), velocity

    return _with_slots(1, update)


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Adagrad: steps are divided by the root of the sum of squared gradients."""
    step = make_schedule(step_size)

    def update(i: Step, g: Any, state: Any) -> tuple:
        x, squares, m = state
        squares = squares + jnp.square(g)
        scale = jnp.where(squares > 0, 1.0 / jnp.sqrt(squares), 0.0)
        m = (1.0 - momentum) * (g * scale) + momentum * m
        return x - step(i) * m, squares, m

    return _with_slots(2, update)


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """RMSProp: steps are divided by the root of a running mean of squares."""
    step = make_schedule(step_size)

    def update(i: Step, g: Any, state: Any) -> tuple:
        x, squares = state
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        return x - step(i) * g / jnp.sqrt(squares + eps), squares

    return _with_slots(1, update)


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Any:
    """RMSProp with momentum."""
    step = make_schedule(step_size)

    def update(i: Step, g: Any, state: Any) -> tuple:
        x, squares, m = state
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        m = momentum * m + step(i) * g / jnp.sqrt(squares + eps)
        return x - m, squares, m

    return _with_slots(2, update)


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam (Kingma and Ba, 2015)."""
    step = make_schedule(step_size)

    def update(i: Step, g: Any, state: Any) -> tuple:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        mean = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        square = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - step(i) * mean / (jnp.sqrt(square) + eps), m, v

    return _with_slots(2, update)


@optimizer
def adamax(
    step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> Any:
    """Adam with the largest gradient in the place of the mean square."""
    step = make_schedule(step_size)

    def update(i: Step, g: Any, state: Any) -> tuple:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        scale = step(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        return x - scale * m / (u + eps), m, u

    return _with_slots(2, update)


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """SM3 (Anil and others, 2019): squares are kept by row and by column only."""
    step = make_schedule(step_size)

    def init(x: Any) -> tuple:
        flat = jnp.atleast_1d(x)
        sums = [jnp.zeros(size, dtype=flat.dtype) for size in flat.shape]
        return flat, jnp.zeros_like(flat), sums, x.shape

    def update(i: Step, g: Any, state: Any) -> tuple:
        x, m, sums, shape = state
        axes = range(x.ndim)
        over = [[other for other in axes if other != axis] for axis in axes]
        spread = [jnp.expand_dims(v, others) for v, others in zip(sums, over)]
        total = functools.reduce(jnp.minimum, spread) + jnp.square(g)
        scale = jnp.where(total > 0, 1.0 / jnp.sqrt(total), 0)
        m = (1.0 - momentum) * (g * scale) + momentum * m
        sums = [total.max(tuple(others)) for others in over]
        return x - step(i) * m, m, sums, shape

    return init, update, lambda state: state[0].reshape(state[3])


# ----------------------------------------------------------------------------------
# Step sizes
# ----------------------------------------------------------------------------------


def constant(step_size: Any) -> Schedule:
    """The same at every step."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Multiplied by `decay_rate` in every `decay_steps` steps."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """Divided by `1 + decay_rate * i / decay_steps`; `staircase`: in whole parts."""
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0
) -> Schedule:
    """From one step size to another in `decay_steps` steps."""

    def schedule(i: Step) -> Any:
        left = (1 - jnp.minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """`values[k]` behind k of the `boundaries`; ValueError for other lengths."""
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if values.ndim != 1 or boundaries.shape != (values.shape[0] - 1,):
        raise ValueError(
            "piecewise_constant takes one value more than boundaries, got shapes "
            f"{values.shape} and {boundaries.shape}."
        )
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: float | Schedule) -> Schedule:
    """A function of the step as it is, a number as `constant`; else TypeError."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) != 0:
        raise TypeError(
            "a step size is a number or a function of the step, got "
            f"{type(scalar_or_schedule).__name__}."
        )
    return constant(scalar_or_schedule)


# ----------------------------------------------------------------------------------
# Trees
# ----------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Any:
    """The root of the sum of the squares of all leaves."""
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """The tree, made as short as `max_norm` if it is longer."""
    norm = l2_norm(grad_tree)
    return tree.map(
        lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree
    )


class JoinPoint:
    """In an unpacked state: where the tree of parameters ends, and a state begins."""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Iterator[Any]:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A state as a tree like that of the parameters, of `JoinPoint`s, for storing."""
    return tree.unflatten(opt_state.tree_def, map(JoinPoint, _states(opt_state)))


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`."""
    points, tree_def = tree.flatten(marked_pytree)
    assert all(isinstance(point, JoinPoint) for point in points)
    return _packed([point.subtree for point in points], tree_def)
