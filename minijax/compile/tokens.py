"""Order among side effects: tokens inside one program, and from program to program.

XLA may reorder operations as long as every operand is computed before its use.
An operation with a side effect, such as a call to Python that prints, would so run at
any time. What keeps two of them in order is a *token*: a value without content that
the first returns and the second takes.

Inside a program. An effect whose type is in `effects.ordered_effects` has one token,
threaded through all equations that have the effect, in the order of the program. A
function of the module whose program has the effect takes the token as a leading
argument and returns it as a leading result:

    func @main(%t: !stablehlo.token, %x) -> (!stablehlo.token, ...)
      %t1    = custom_call @print(%t, %x)
      %t2    = call @inner(%t1, %x)          the inner program prints as well
      return %t2, ...

While a function is written, `EffectfulModuleContext.tokens` holds for each ordered
effect its last token. A lowering rule of an effectful primitive takes it from there and
puts the new one back; `LoweringRuleContext.call` does it for programs in programs. A
rule with a region of its own (the body of a loop, a branch) passes the tokens through
the region:

    kinds = tokens.ordered(jaxpr.effects)
    given = tokens.current(ctx.module_context, kinds)      operands, and their types
    with tokens.region(ctx.module_context, kinds, block.arguments) as arguments:
        ...                                  the equations of the body, on `arguments`
        return [*tokens.last(ctx.module_context), *results]
    results = tokens.update(ctx.module_context, kinds, operation.results)

Effects that are not ordered need no token: their operations are marked as having a
side effect, which keeps XLA from leaving them out or doing them twice, nothing more.

From program to program. Two programs are two launches, which may run at once. A program
with an ordered effect takes the token that the last one with that effect returned,
whatever their data; so the second waits for the first. These tokens belong to a thread,
and to it alone: there is no order between threads.

Waiting. The result of a print is not read, so nothing waits for it. Every launch of a
program with callbacks leaves a runtime token, on which `effects_barrier` waits, as the
interpreter does when it ends.

In JAX: `jax/_src/effects.py`; `interpreters/mlir.py`, `TokenSet`; `dispatch.py`,
`RuntimeTokenSet`; the design note "Sequencing side-effects in JAX".
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minijax.backend import buffer_copies, executables, several_devices
from minijax.core import errors, hlo, runtime
from minijax.core.avals import ShapedArray
from minijax.core.effects import Effect, ordered_effects
from minijax.support.devices.shardings import GSPMDSharding, HloSharding
from minijax.support.io_effects import shardable_ordered_effects
from minijax.support.special_errors import add_callback_cause

# ----------------------------------------------------------------------------------
# Inside a program
# ----------------------------------------------------------------------------------


def ordered(effects: Iterable[Effect]) -> list[Effect]:
    """Those of the effects that have a token, in one order for every program."""
    return sorted(ordered_effects.filter_in(effects), key=str) if effects else []


def check_devices(effects: Iterable[Effect], number: int) -> None:
    """ValueError for effects whose order is not kept on that many devices."""
    alone = [e for e in ordered(effects) if not shardable_ordered_effects.contains(e)]
    if alone and number > 1:
        raise ValueError(
            "The following ordered effects are not supported for more than 1 device: "
            f"{', '.join(map(str, alone))}. This program runs on {number}. Leave out "
            "ordered=True."
        )


def types(effects: Iterable[Effect]) -> list[Any]:
    """The StableHLO types of the tokens that a program with these effects takes."""
    return [hlo.ir.Type.parse("!stablehlo.token") for _ in ordered(effects)]


def current(module_context: Any, effects: Iterable[Effect]) -> list[Any]:
    """The last token of each ordered effect, in the function being written."""
    return [module_context.tokens[effect] for effect in ordered(effects)]


def update(
    module_context: Any, effects: Iterable[Effect], results: Sequence[Any]
) -> list[Any]:
    """Keep the leading results as the last tokens of the effects; return the others."""
    kinds = ordered(effects)
    module_context.tokens.update(zip(kinds, results))
    return list(results)[len(kinds) :]


@contextmanager
def region(
    module_context: Any, effects: Iterable[Effect], arguments: Sequence[Any]
) -> Iterator[list[Any]]:
    """Within it, the leading arguments of a block are the tokens.

    Gives the other arguments. Afterwards the tokens are again those from before.
    """
    kinds = ordered(effects)
    outer = module_context.tokens
    module_context.tokens = dict(zip(kinds, arguments))
    try:
        yield list(arguments)[len(kinds) :]
    finally:
        module_context.tokens = outer


def last(module_context: Any) -> list[Any]:
    """The first results of a block: the last token of each effect of the region."""
    return list(module_context.tokens.values())


# ----------------------------------------------------------------------------------
# From program to program
# ----------------------------------------------------------------------------------

# To a program a token is an array without elements.
_TOKEN = ShapedArray((0,), np.dtype(bool))


class RuntimeTokens(threading.local):
    """The tokens that the launches of one thread returned.

    `current` has the token that the last program with an effect returned; `launches`
    by device what the last launch can be waited for with: a device runs them in order.

    In JAX: `dispatch.py`, `RuntimeTokenSet`.
    """

    def __init__(self) -> None:
        self.current: dict[Effect, Any] = {}
        self.launches: dict[Any, Any] = {}

    def input(self, effect: Effect, sharding: Any) -> Any:
        """The token that the next program with the effect takes, on its devices."""
        token = self.current.get(effect)
        devices = sharding._internal_device_list
        if token is not None:
            if token._sharding._internal_device_list == devices:
                return token
            if len(token._sharding._internal_device_list) == len(devices):
                return buffer_copies.copy_to_sharding(token, sharding)
            self.wait_for(effect)
        parts = [np.zeros(0, bool)] * len(devices.addressable_device_list)
        return buffer_copies.put_shards(parts, _TOKEN, sharding, False)

    def wait_for(self, effect: Effect) -> None:
        """Wait for the programs with an effect: what happens next follows on them."""
        token = self.current.get(effect)
        if token is not None:
            try:
                token.block_until_ready()
            except errors.JaxRuntimeError as error:
                self.clear()
                add_callback_cause(error)
                raise

    def clear(self) -> None:
        """Forget everything, without waiting."""
        self.current.clear()
        self.launches.clear()

    def block_until_ready(self) -> None:
        """Wait for all launches of this thread; raise what the first failed one did."""
        waiting = [*self.current.values(), *self.launches.values()]
        self.clear()
        failure = None
        for token in waiting:
            try:
                token.block_until_ready()
            except errors.JaxRuntimeError as error:
                failure = failure or error
        if failure is not None:
            add_callback_cause(failure)
            raise failure


runtime_tokens = RuntimeTokens()


def effects_barrier() -> None:
    """Wait until all side effects that this thread has begun have happened.

    Raises:
      JaxRuntimeError: when a callback failed; its `__cause__` is what it raised.
    """
    runtime_tokens.block_until_ready()


@atexit.register
def _wait_at_exit() -> None:
    """A program that ends after its last print waits for the print."""
    runtime_tokens.block_until_ready()


def launcher(
    executable: Any,
    effects: Iterable[Effect],
    out_avals: Sequence[Any],
    shardings: list[Any],
    committed: bool,
) -> Callable[[list[Any]], list[Any]]:
    """The function that runs a program with effects: buffers in, buffers out.

    It gives and takes the tokens of ordered effects, and keeps what `effects_barrier`
    waits for.
    """
    kinds = ordered(effects)
    device = executable.devices[0]
    place: Any = runtime.single_device_sharding(device)
    if len(executable.devices) > 1:
        place = GSPMDSharding(executable.devices, HloSharding.replicate())
    avals = [*[_TOKEN] * len(kinds), *out_avals]
    run = executables.token_launcher(
        executable, avals, [*[place] * len(kinds), *shardings], committed
    )
    if several_devices.is_bounded(executable):
        run = several_devices.bounded(run)

    def launch(arguments: list[Any]) -> list[Any]:
        given = [runtime_tokens.input(effect, place) for effect in kinds]
        try:
            results, token = run([*given, *arguments])
        except errors.JaxRuntimeError as error:
            # A failed program returns failed tokens: the next one begins anew.
            runtime_tokens.clear()
            add_callback_cause(error)
            raise
        runtime_tokens.launches[device] = token
        runtime_tokens.current.update(zip(kinds, results))
        return results[len(kinds) :]

    return launch
