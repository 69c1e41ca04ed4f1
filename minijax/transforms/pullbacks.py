"""What `vjp` returns: a function of cotangents that holds the residuals.

A `VJP` is a pytree whose leaves are the residuals, so that it passes through jit. It
may be called many times. `f_vjp.with_refs(...)` is the same function with refs for some
of the cotangents: they are added to the refs' contents, in place, for a training
step that sums the gradients of several batches.

    y, f_vjp = vjp(f, x, w)
    x_ct, _ = f_vjp.with_refs(GradValue(), w_grad)(y_ct)    # w_grad is a ref

In JAX: `jax/_src/api.py`, `VJP`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minijax.core import autodiff, errors
from minijax.core.api import Derivative
from minijax.core.language import get_aval, typecompat
from minijax.core.rules import Accumulator, NullAccumulator, instantiate
from minijax.core.trees import tree_flatten, tree_leaves, tree_unflatten
from minijax.primitives.refs.mutable_arrays import Ref, RefAccumulator
from minijax.support.tree_util import register_pytree_node
from minijax.values.ref_avals import AbstractRef


@dataclass(frozen=True)
class GradValue:
    """For `with_refs`: return this cotangent."""


@dataclass(frozen=True)
class DontWant:
    """For `with_refs`: do not compute this cotangent."""


@dataclass(frozen=True)
class GradRef:
    """A result of `with_refs`: the cotangent was added to the ref."""


@dataclass(frozen=True)
class DidntWant:
    """A result of `with_refs`: the cotangent was not wanted."""


@dataclass(frozen=True)
class NotNeeded:
    """In `VJP.args_res`: the backward pass does not need this argument."""


for _empty in (GradRef, DidntWant, NotNeeded):
    register_pytree_node(_empty, lambda _: ((), None), lambda *_, kind=_empty: kind())


@dataclass(frozen=True, eq=False)
class Backward:
    """A pullback without its residuals; compared by identity.

    `places` says of each residual whether it is an argument of the function, and its
    number among those or among the other residuals.
    """

    derivative: Derivative
    name: str
    places: Sequence[tuple[bool, int]]


class VJP:
    """The function from a cotangent of the value to cotangents of the arguments.

    `args_res` has the arguments that the backward pass needs as they are, in their
    places, and `NotNeeded()` in the others; `opaque_residuals` has what was computed.

    In JAX: `jax/_src/api.py`, `VJP`.
    """

    __slots__ = ("backward", "args_res", "opaque_residuals", "__weakref__")

    def __init__(self, backward: Backward, args_res: Any, opaque_residuals: Any):
        self.backward = backward
        self.args_res = args_res
        self.opaque_residuals = opaque_residuals

    @property
    def residuals(self) -> list[Any]:
        """The values that the backward pass takes, in its order."""
        args = tree_leaves(self.args_res, is_leaf=lambda x: isinstance(x, NotNeeded))
        kept = (self.opaque_residuals, args)
        return [kept[is_arg][number] for is_arg, number in self.backward.places]

    derivative = property(lambda self: self.backward.derivative)
    jaxpr = property(lambda self: self.derivative.jaxpr)
    in_tree = property(lambda self: self.derivative.in_tree)
    out_tree = property(lambda self: self.derivative.out_tree)

    def __call__(self, out_ct: Any, *extra: Any) -> Any:
        """A tuple of cotangents, one for each argument of `vjp`.

        Raises:
          TypeError: more than one argument is given.
          ValueError: the cotangent's tree, shapes or dtypes are not those of the value.
        """
        if extra:
            raise errors.type_error(
                "The function returned by `minijax.vjp` applied to "
                f"{self.backward.name} was called with {1 + len(extra)} arguments, "
                "but it takes one: the cotangent of the value. If the value is a "
                "tuple, pass a tuple, `f_vjp((a, b))`."
            )
        for aval in self.derivative.in_avals:
            if type(aval) is AbstractRef:
                raise _needs_ref(aval)
        _checked_cotangents(self.backward, out_ct)
        return self.derivative.pull(self.residuals, out_ct)

    def with_refs(self, *maybe_ct_refs: Any) -> Callable[[Any], Any]:
        """The same function, which adds the cotangents to refs.

        Args:
          maybe_ct_refs: for each argument of `vjp` a tree of its structure, whose
            leaves are refs, `GradValue()` or `DontWant()`.

        Returns:
          a function of a cotangent. Its result has `GradRef()` where the cotangent was
          added to a ref, and `DidntWant()` where it was not computed.

        Raises ValueError for another structure.
        """
        derivative = self.derivative
        targets, tree = tree_flatten(maybe_ct_refs)
        if tree != derivative.in_tree:
            raise errors.value_error(
                "with_refs takes one tree for each argument of the differentiated "
                f"function, {derivative.in_tree}, but got {tree}"
            )

        def pull(out_ct: Any) -> Any:
            pairs = zip(targets, derivative.in_avals)
            accumulators = [_accumulator(target, aval) for target, aval in pairs]
            autodiff.vjp(
                derivative.jaxpr,
                self.residuals,
                derivative.nonzeros,
                accumulators,
                _checked_cotangents(self.backward, out_ct),
            )
            results = [_result(accumulator) for accumulator in accumulators]
            return tree_unflatten(derivative.in_tree, results)

        return pull

    def __repr__(self) -> str:
        return f"VJP({self.backward.name}, {len(self.residuals)} residuals)"


register_pytree_node(
    VJP,
    lambda vjp: ((vjp.args_res, vjp.opaque_residuals), vjp.backward),
    lambda backward, children: VJP(backward, *children),
)


def pullback_of(
    derivative: Derivative,
    name: str,
    flat_primals: Sequence[Any],
    residuals: Sequence[Any],
) -> VJP:
    """A `VJP` that records which of its residuals are arguments of the function."""
    numbers = {id(primal): number for number, primal in enumerate(flat_primals)}
    opaque = [r for r in residuals if id(r) not in numbers]
    rest = iter(range(len(opaque)))
    places = [
        (True, numbers[id(r)]) if id(r) in numbers else (False, next(rest))
        for r in residuals
    ]
    used = {id(r) for r in residuals}
    leaves = [x if id(x) in used else NotNeeded() for x in flat_primals]
    # in tuples, since the classes of the arguments may refuse `NotNeeded`
    in_tree = derivative.in_tree
    args_res = list(in_tree.walk(lambda xs, _: tuple(xs), lambda leaf: leaf, leaves))
    return VJP(Backward(derivative, name, places), args_res, opaque)


def _accumulator(wish: Any, aval: Any) -> Accumulator:
    expected = aval.to_ct_aval()
    if isinstance(wish, DontWant):
        return NullAccumulator(expected)
    if isinstance(wish, GradValue) and type(aval) is not AbstractRef:
        return Accumulator(expected)
    if isinstance(wish, GradValue):
        raise _needs_ref(aval)
    if not isinstance(wish, Ref):
        raise errors.type_error(
            f"with_refs takes refs, GradValue() and DontWant(), but got {wish!r}"
        )
    content = get_aval(wish).inner_aval
    if (content.shape, content.dtype) != (expected.shape, expected.dtype):
        raise errors.value_error(
            f"with_refs got a ref of type {get_aval(wish).str_short()} for a cotangent "
            f"of type {expected.str_short()}"
        )
    return RefAccumulator(expected, wish)


def _needs_ref(aval: AbstractRef) -> Exception:
    return errors.value_error(
        "the gradient with respect to a ref must be accumulated into a ref: pass "
        f"one of type {aval.str_short()} to `f_vjp.with_refs`."
    )


def _result(accumulator: Accumulator) -> Any:
    if isinstance(accumulator, RefAccumulator):
        return GradRef()
    if isinstance(accumulator, NullAccumulator):
        return DidntWant()
    return instantiate(accumulator.freeze())


def lies_as(expected: Any, actual: Any) -> bool:
    """Whether a cotangent is cut as its type says, and an addend where that is one."""
    if not hasattr(expected, "cut"):
        return True
    return typecompat(expected, expected.update(sharding=getattr(actual, "cut", None)))


def _checked_cotangents(backward: Backward, out_ct: Any) -> list[Any]:
    """The leaves of a cotangent; ValueError unless it fits the value."""
    derivative = backward.derivative
    cotangents, tree = tree_flatten(out_ct)
    if tree != derivative.out_tree:
        raise errors.value_error(
            "unexpected tree structure. The argument to a VJP function returned by "
            "`minijax.vjp` must match the pytree structure of the differentiated "
            f"function {backward.name}: it returned {derivative.out_tree}, but the "
            f"argument is {tree}."
        )
    for ct, aval in zip(cotangents, derivative.out_avals):
        expected, actual = aval.to_ct_aval(), get_aval(ct)
        # An integer for an integer output counts as zero.
        kinds = [(one.shape, one.dtype) for one in (expected, aval)]
        if not lies_as(expected, actual) or (actual.shape, actual.dtype) not in kinds:
            raise errors.value_error(
                "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: "
                f"got {actual.str_short()}, but expected {expected.str_short()} "
                "because the corresponding output of the differentiated function had "
                f"JAX type {aval.str_short()}"
            )
    return cotangents
