"""Chapter 09: a solution of each exercise, and two answers that must fail."""

import minijax
import minijax.numpy as jnp
from minijax import grad, hessian, jvp, lax, vmap


def steps_from(m, x, count):
    """Newton's steps for Kepler's equation."""
    for _ in range(count):
        x = x - (x - 0.5 * jnp.sin(x) - m) / (1.0 - 0.5 * jnp.cos(x))
    return x


@minijax.custom_jvp
def orbit(m):
    """Solves by steps; its derivative comes from the equation."""
    return steps_from(m, m, 10)


@orbit.defjvp
def orbit_moves(values, tangents):
    """x - 0.5 sin(x) - m stays 0."""
    x = orbit(*values)
    return x, tangents[0] / (1.0 - 0.5 * jnp.cos(x))


def orbit_by_steps(m):
    """Wrong: the steps of the question."""
    return steps_from(m, m, 10)


def orbit_by_one_step(m):
    """Wrong: one step from a number that does not move is right once, not twice."""
    x = lax.stop_gradient(steps_from(m, m, 10))
    slope = lax.stop_gradient(1.0 - 0.5 * jnp.cos(x))
    return x - (x - 0.5 * jnp.sin(x) - m) / slope


def curvature(f, x, v, steps):
    """Products with the Hessian: forward mode over reverse mode."""

    def times(v):
        return jvp(grad(f), (x,), (v,))[1]

    for _ in range(steps):
        v = times(v)
        v = v / jnp.sqrt(v @ v)
    return v @ times(v)


def curvature_by_matrix(f, x, v, steps):
    """Wrong: the number is right, and the Hessian is built."""
    matrix = hessian(f)(x)
    for _ in range(steps):
        v = matrix @ v
        v = v / jnp.sqrt(v @ v)
    return v @ matrix @ v


def curvature_without_length(f, x, v, steps):
    """Wrong: never scaled to length 1."""
    for _ in range(steps):
        v = jvp(grad(f), (x,), (v,))[1]
    return v @ jvp(grad(f), (x,), (v,))[1]


def shrunk(gradient, most):
    """A gradient of at most this length; one of length 0 stays."""
    leaves = minijax.tree.leaves(gradient)
    length = jnp.sqrt(sum(jnp.sum(leaf * leaf) for leaf in leaves))
    factor = jnp.minimum(1.0, most / jnp.maximum(length, 1e-12))
    return minijax.tree.map(lambda leaf: leaf * factor, gradient)


def clipped(loss, w, xs, ys, most):
    """vmap over the gradient and the clipping of one example; then the mean."""
    each = vmap(lambda x, y: shrunk(grad(loss)(w, x, y), most))(xs, ys)
    return minijax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), each)


def clipped_mean(loss, w, xs, ys, most):
    """Wrong: clips the mean of the gradients."""
    total = grad(lambda w: jnp.mean(vmap(lambda x, y: loss(w, x, y))(xs, ys)))
    return shrunk(total(w), most)


def clipped_with_nan(loss, w, xs, ys, most):
    """Wrong: divides by the length even where it is zero."""

    def one(x, y):
        gradient = grad(loss)(w, x, y)
        leaves = minijax.tree.leaves(gradient)
        length = jnp.sqrt(sum(jnp.sum(leaf * leaf) for leaf in leaves))
        factor = jnp.minimum(length, most) / length
        return minijax.tree.map(lambda leaf: leaf * factor, gradient)

    each = vmap(one)(xs, ys)
    return minijax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), each)


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "09.1": (
        "jacfwd sends a vector for each entry of the argument, jacrev one for each "
        "entry of the result.",
        "c has two Jacobians: spread's argument has 3 entries; how many has the result "
        "of squeeze?",
        'the section "A Jacobian is a vmap" of this chapter.',
    ),
    "09.2": (
        "the steps should not be differentiated: give the function a rule.",
        "x - 0.5 sin(x) - m stays 0; what is its slope in x, and its change by m?",
        "`fast_root` in this chapter; its rule calls `fast_root` itself, so that it "
        "can be differentiated again.",
    ),
    "09.3": (
        "write times(v) first: the Hessian at x times v.",
        "v = times(v), then v / sqrt(v @ v), `steps` times; v @ times(v) at the end.",
        "`hessian_times` in this chapter.",
    ),
    "09.4": (
        "write it for one example: its gradient, its length, the factor.",
        "vmap that function over x and y, then take the mean of each leaf.",
        'the section "One product apart": which order gives a gradient for each '
        "example?",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "09.1": lambda: ([200, 100, 6],),
    "09.2": lambda: (orbit,),
    "09.3": lambda: (curvature,),
    "09.4": lambda: (clipped,),
}
WRONG = {
    "09.1": [lambda: ([200, 100, 300],), lambda: (200,)],
    "09.2": [lambda: (orbit_by_steps,), lambda: (orbit_by_one_step,)],
    "09.3": [lambda: (curvature_by_matrix,), lambda: (curvature_without_length,)],
    "09.4": [lambda: (clipped_mean,), lambda: (clipped_with_nan,)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "09.1": ["look again at c", "a list of 3 numbers"],
    "09.2": ["gradient keeps", "The second derivatives are wrong"],
    "09.3": ["an array of 144", "and steps=1: expected "],
    "09.4": ["With most=1.0 the numbers are wrong", "all gradients are zero"],
}
