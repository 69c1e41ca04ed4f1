"""Twenty wrong rules, to be found: `with sabotage(7):`.

Inside of the block one rule of minijax is wrong, and everything built on it is wrong
too. The views and `check_grads` show what no longer holds; chapter 12 is about finding
which rule it is. `sabotage(7).symptom` says what a user would notice, and
`sabotage(7).answer` gives the rule away.

A fault is part of every cache key, as a class given to `minijax.replace` is: a program
traced inside of the block is never used outside of it. The rule itself is swapped for
the whole process, so no other thread should use minijax meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.core import hlo, sums
from minijax.core.autodiff import apply_jvp
from minijax.core.language import ShapedArray, get_aval, primitive_named
from minijax.core.rules import Accumulator, Zero, is_linear, not_mapped
from minijax.core.signatures import CallSignature
from minijax.core.state import state
from minijax.programs import checkpointing
from minijax.support.settings import override


@dataclass(frozen=True)
class Fault:
    """One wrong rule: where it is, and what makes the right rule a wrong one.

    `wrong` takes the present value of `attribute` and returns what replaces it.
    """

    place: Callable[[], Any]
    attribute: str
    wrong: Callable[[Any], Any]
    symptom: str
    answer: str


class sabotage:
    """Context manager: one of minijax's rules is wrong inside of the block.

    Args:
      number: which fault, 1 to 20.

    Attributes:
      symptom: what a user of the faulty library would report.
      answer: which rule is wrong, and how.

    Raises ValueError for a number without a fault, and RuntimeError when another fault
    is at work already.
    """

    working: int | None = None

    def __init__(self, number: int) -> None:
        if number not in FAULTS:
            raise ValueError(
                f"sabotage takes the number of a fault, 1 to {len(FAULTS)}, and got "
                f"{number!r}."
            )
        self.number = number
        self.fault = FAULTS[number]
        self.symptom = self.fault.symptom
        self.answer = self.fault.answer

    @property
    def shown(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """A small function and its arguments, on which the fault shows."""
        from minijax_lab.sabotage_shown import shown

        return shown(self.number)

    def __enter__(self) -> sabotage:
        if sabotage.working is not None:
            raise RuntimeError(
                f"fault {sabotage.working} is at work already: one wrong rule at a "
                "time, or nobody finds it. Leave its `with` block first."
            )
        fault = self.fault
        self._owner = fault.place()
        # An attribute that only the class has is taken away again, not put back.
        self._own = fault.attribute in vars(self._owner)
        self._right = getattr(self._owner, fault.attribute)
        mark = (f"sabotage {self.number}", sabotage)
        self._key = override("replaced", (*state.replaced, mark))
        self._key.__enter__()
        sabotage.working = self.number
        setattr(self._owner, fault.attribute, fault.wrong(self._right))
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._own:
            setattr(self._owner, self.fault.attribute, self._right)
        else:
            delattr(self._owner, self.fault.attribute)
        sabotage.working = None
        self._key.__exit__(*exception)

    def __repr__(self) -> str:
        return f"sabotage({self.number}): {self.symptom}"


def _primitive(name: str) -> Callable[[], Any]:
    return lambda: primitive_named(name)


def _derivative(name: str, slope: Callable) -> Callable[[Any], Callable]:
    """Replaces the forward rule of a function of one argument by `slope(x, out)`."""

    def wrong(_: Any) -> Callable:
        def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
            (x,), (tangent,) = primals, tangents
            out = primitive_named(name).bind(x, **params)
            return out, lax.mul(tangent, slope(x, out, **params))

        return jvp

    return wrong


# ----------------------------------------------------------------------------------
# Derivatives
# ----------------------------------------------------------------------------------


def _overwriting(_: Any) -> Callable:
    def accum(self: Accumulator, cotangent: Any) -> None:
        if cotangent is not None and type(cotangent) is not Zero:
            self.value = cotangent

    return accum


def _without_minus(_: Any) -> Callable:
    def jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
        _, tangent = apply_jvp(primitive_named("add"), primals, tangents, {})
        return primitive_named("sub").bind(*primals), tangent

    return jvp


def _same_permutation(_: Any) -> Callable:
    return lambda ct, x, *, permutation: [lax.transpose(ct, permutation)]


def _whole_at_ties(_: Any) -> Callable:
    def jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
        total: Any = 0.0
        for mine, other, tangent in zip(primals, primals[::-1], tangents, strict=True):
            if type(tangent) is not Zero:
                total = total + jnp.where(lax.ge(mine, other), tangent, 0)
        return primitive_named("max").bind(*primals), total

    return jvp


def _mean_of_repeats(right: Callable) -> Callable:
    def transpose(ct: Any, x: Any, **params: Any) -> list:
        (total,) = right(ct, x, **params)
        if total is None or type(total) is Zero:
            return [total]
        repeats = get_aval(ct).size // max(1, get_aval(total).size)
        return [lax.div(total, jnp.full_like(total, max(1, repeats)))]

    return transpose


def _same_direction(right: Callable) -> Callable:
    def transpose(ct: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        return right(ct, x, axis=axis, reverse=not reverse)

    return transpose


def _both_cases(_: Any) -> Callable:
    def transpose(ct: Any, which: Any, *cases: Any) -> list:
        return [None, *(ct if is_linear(case) else None for case in cases)]

    return transpose


def _forwards(right: Callable) -> Callable:
    def transpose(cts: Any, *args: Any, reverse: bool, **params: Any) -> Any:
        return right(cts, *args, reverse=not reverse, **params)

    return transpose


def _rule_unread(_: Any) -> Callable:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    return call


def _keep_everything(right: Callable) -> Callable:
    def partial_eval(trace: Any, args: Any, params: dict) -> Any:
        everything = minijax.checkpoint_policies.everything_saveable
        return right(trace, args, {**params, "policy": everything})

    return partial_eval


# ----------------------------------------------------------------------------------
# Batching
# ----------------------------------------------------------------------------------


def _axes_not_moved(_: Any) -> Callable:
    def batch(axis_data: Any, args: Any, dims: Any, *, axes: Any, **params: Any) -> Any:
        (operand,) = args
        return primitive_named("reduce_sum").bind(operand, axes=axes, **params), 0

    return batch


def _always_first(right: Callable) -> Callable:
    def batch(axis_data: Any, args: Any, dims: Any, **params: Any) -> Any:
        out, _ = right(axis_data, args, dims, **params)
        return out, 0

    return batch


def _first_of(value: Any, dim: int | None) -> Any:
    return value if dim is not_mapped else lax.index_in_dim(value, 0, dim, False)


def _first_key(_: Any) -> Callable:
    def batch(axis_data: Any, args: Any, dims: Any, **params: Any) -> Any:
        key = _first_of(args[0], dims[0])
        return primitive_named("random_bits").bind(key, **params), not_mapped

    return batch


def _first_choice(right: Callable) -> Callable:
    def batch(axis_data: Any, args: Any, dims: Any, **params: Any) -> Any:
        index = _first_of(args[0], dims[0])
        return right(axis_data, (index, *args[1:]), (not_mapped, *dims[1:]), **params)

    return batch


# ----------------------------------------------------------------------------------
# Compiling
# ----------------------------------------------------------------------------------


def _log_of_sum(_: Any) -> dict:
    def lower(ctx: Any, x: Any, **params: Any) -> Any:
        one = ctx.broadcast_in_dim(
            ctx.constant(ctx.avals_in[0].dtype.type(1)),
            ShapedArray((), ctx.avals_in[0].dtype),
            ctx.avals_in[0].shape,
            (),
        )
        return hlo.stablehlo.log(hlo.stablehlo.add(x, one))

    return {None: lower}


def _from_zero(_: Any) -> dict:
    lower = sums._lowering("maximum", lambda dtype: np.zeros((), dtype))
    return {None: lower}


def _strong(right: Callable) -> Callable:
    def types_of(self: CallSignature, *args: Any) -> Any:
        avals = right(self, *args)
        return tuple(x.update(weak_type=False) if x.weak_type else x for x in avals)

    return types_of


FAULTS: dict[int, Fault] = {
    1: Fault(
        lambda: Accumulator,
        "accum",
        _overwriting,
        "The gradient of sin(x) * x lacks one of its two terms.",
        "Cotangents of a value that is used twice overwrite each other; they must add.",
    ),
    2: Fault(
        _primitive("sub"),
        "jvp",
        _without_minus,
        "Training on targets that depend on the weights moves away from them.",
        "The forward rule of sub adds the two tangents, so the second lacks its minus.",
    ),
    3: Fault(
        _primitive("transpose"),
        "transpose",
        _same_permutation,
        "Gradients through a transpose of three axes have the wrong shape; through "
        "two axes all is well.",
        "The transpose rule of transpose uses the permutation, not its inverse. With "
        "two axes the two are the same.",
    ),
    4: Fault(
        _primitive("sin"),
        "jvp",
        _derivative("sin", lambda x, out, **_: out),
        "The derivative of sin at 0 is 0.",
        "The forward rule of sin multiplies by sin x, not by cos x.",
    ),
    5: Fault(
        _primitive("tanh"),
        "jvp",
        _derivative("tanh", lambda x, out, **_: lax.sub(jnp.ones_like(out), out)),
        "A network with tanh learns, but worse than it should.",
        "The forward rule of tanh multiplies by 1 - y, not by 1 - y * y.",
    ),
    6: Fault(
        _primitive("max"),
        "jvp",
        _whole_at_ties,
        "Where two candidates are exactly equal, the gradient counts too much.",
        "At a tie the forward rule of max gives each side the whole tangent, not half.",
    ),
    7: Fault(
        _primitive("broadcast_in_dim"),
        "transpose",
        _mean_of_repeats,
        "Biases hardly learn: their gradient is too small by the size of the batch.",
        "The transpose of broadcast_in_dim takes the mean of the repeats, not the sum.",
    ),
    8: Fault(
        _primitive("cumsum"),
        "transpose",
        _same_direction,
        "The gradient of the last prefix sum gives weight to the last entry only.",
        "The transpose of cumsum sums in the same direction, not in the other one.",
    ),
    9: Fault(
        _primitive("select_n"),
        "transpose",
        _both_cases,
        "A function of two pieces has the slopes of both, everywhere.",
        "The transpose of select_n sends the cotangent to both cases.",
    ),
    10: Fault(
        _primitive("integer_pow"),
        "jvp",
        _derivative(
            "integer_pow", lambda x, out, *, y: lax.mul(out, jnp.full_like(out, y))
        ),
        "The derivative of x ** 3 grows as x ** 3.",
        "The forward rule of integer_pow leaves the exponent as it is.",
    ),
    11: Fault(
        _primitive("reduce_sum"),
        "batch",
        _axes_not_moved,
        "vmap of a sum fails, or sums over the examples.",
        "The batching rule of reduce_sum leaves the axes as they are for one example.",
    ),
    12: Fault(
        _primitive("dot_general"),
        "batch",
        _always_first,
        "vmap of W @ x fails, or mixes examples with features.",
        "The batching rule of dot_general says that the batch axis is always first.",
    ),
    13: Fault(
        _primitive("random_bits"),
        "batch",
        _first_key,
        "Under vmap every example drops the same units.",
        "The batching rule of random_bits draws with the first example's key for all.",
    ),
    14: Fault(
        _primitive("cond"),
        "batch",
        _first_choice,
        "Under vmap all examples take the same branch of a cond.",
        "The batching rule of cond asks the first example only.",
    ),
    15: Fault(
        _primitive("scan"),
        "transpose",
        _forwards,
        "The gradient of a recurrent network is right for one step and wrong for two.",
        "The transpose of scan runs in the same direction as the scan itself.",
    ),
    16: Fault(
        lambda: minijax.custom_jvp,
        "__call__",
        _rule_unread,
        "A rule given with defjvp has no effect.",
        "custom_jvp calls the function itself, so its own rule is never asked.",
    ),
    17: Fault(
        lambda: checkpointing.remat_p,  # registered when it is first used
        "partial_eval",
        _keep_everything,
        "checkpoint saves no memory, though every value is right.",
        "checkpoint keeps every intermediate value, whatever its policy says.",
    ),
    18: Fault(
        _primitive("log1p"),
        "lowerings",
        _log_of_sum,
        "log1p of 1e-10 is 0.",
        "log1p is lowered to log(1 + x), which rounds small x away.",
    ),
    19: Fault(
        lambda: CallSignature,
        "types_of",
        _strong,
        "jit of x * 2 gives float32 where x is a Python number and y is bfloat16.",
        "jit forgets that the type of a Python number is weak.",
    ),
    20: Fault(
        _primitive("reduce_max"),
        "lowerings",
        _from_zero,
        "The softmax of large negative numbers is NaN.",
        "reduce_max starts at 0, not at minus infinity.",
    ),
}
