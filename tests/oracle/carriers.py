"""Statements of random programs that carry programs: refs, checkpoint, custom rules.

A mixin of `random_programs.Builder`, which has the tools that it uses.
"""

from typing import Any

import hypothesis.strategies as st

POLICIES = """
    everything_saveable nothing_saveable dots_saveable dots_with_no_batch_dims_saveable
"""


class Carriers:
    """Makers of nested functions under checkpoint and custom rules, and of refs."""

    draw: Any
    choose: Any
    operand: Any
    inexact_operands: Any
    parameters_like: Any
    body: Any
    add: Any
    add_line: Any
    add_nested: Any
    counter: list[int]

    def make_checkpoint(self, depth: int) -> None:
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, (out,) = self.body(parameters, depth, "float")
        names = ", ".join(v.name for v in operands)
        policy = self.choose([None, None, *POLICIES.split()])
        option = "" if policy is None else f", policy=jax.checkpoint_policies.{policy}"
        option += self.choose(["", "", ", prevent_cse=False"])
        self.add_nested(
            body, f"jax.checkpoint(FUN{option})({names})", [(out.shape, "f")]
        )

    def make_grad_of_checkpoint(self, depth: int) -> None:
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, _ = self.body(parameters, depth, "scalar")
        names = ", ".join(v.name for v in operands)
        text = f"jax.grad(jax.checkpoint(FUN))({names})"
        self.add_nested(body, text, [(operands[0].shape, "f")])

    def make_custom_gradient(self, depth: int) -> None:
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, (out,) = self.body(parameters, 0, "float", closes=False)
        names = ", ".join(v.name for v in operands)
        decorate = (
            "FUN_custom = jax.custom_gradient(lambda *x: jax.vjp(FUN, *x))",
        )
        self.add_nested(body, f"FUN_custom({names})", [(out.shape, "f")], decorate)

    def make_custom_vmap(self, depth: int) -> None:
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, (out,) = self.body(parameters, 0, "float", closes=False)
        names = ", ".join(v.name for v in operands)
        decorate = (
            "FUN_custom = jax.custom_batching.custom_vmap(FUN)",
            "FUN_custom.def_vmap(lambda n, axes, *x: (jax.vmap("
            "FUN, [0 if a else None for a in axes])(*x), True))",
        )
        self.add_nested(body, f"FUN_custom({names})", [(out.shape, "f")], decorate)

    def make_linear_solve(self, depth: int) -> None:
        """Of a diagonal system, whose diagonal is another function of the operands."""
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, (out,) = self.body(parameters, 0, "float")
        names = ", ".join(v.name for v in operands)
        decorate = (
            f"FUN_out = FUN({names})",
            "FUN_scale = 2 + jnp.sin(FUN_out)",
        )
        solve = "lambda f, b: b / f(jnp.ones_like(b))"
        transposed = self.choose(["transpose_solve=SOLVE", "symmetric=True"])
        text = "lax.custom_linear_solve(lambda x: FUN_scale * x, FUN_out, SOLVE, "
        text += f"{transposed})"
        self.add_nested(
            body, text.replace("SOLVE", solve), [(out.shape, "f")], decorate
        )

    def make_ref(self, depth: int) -> None:
        """A ref that is made, written and read in a row."""
        (x,) = self.inexact_operands(1)
        self.counter[0] += 1
        ref = f"r{self.counter[0]}"
        self.add_line(f"{ref} = jax.new_ref({x.name})")
        for _ in range(self.draw(st.integers(1, 3))):
            value = self.operand(lambda v: v.kind == "f" and v.shape == x.shape)
            text = f"{value.name}.astype({ref}.dtype)"
            lines = [
                f"{ref}[...] = {ref}[...] * {text}",
                f"jax.ref.addupdate({ref}, ..., {text})",
            ]
            if x.shape:
                lines += [
                    f"{ref}[0] = {text}[1] * 2",
                    f"{ref}[1:] = {ref}[:-1] + {text}[1:]",
                    f"jax.ref.addupdate({ref}, 1, {text}[0])",
                    f"jax.ref.swap({ref}, np.array([1, 0]), {text}[:2])",
                ]
            index = self.operand(lambda v: v.kind == "i" and not v.shape)
            if x.shape and index is not None:
                lines.append(f"{ref}[{index.name} % 2] = {text}[0]")
            self.add_line(self.choose(lines))
        shape = x.shape
        reads = [(f"jax.freeze({ref})", shape), (f"{ref}[...]", shape)]
        if shape:
            reads.append((f"{ref}[0]", shape[1:]))
        self.add(*self.choose(reads), "f")
