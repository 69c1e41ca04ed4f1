"""Statements of random programs that carry programs: refs, custom rules, loops, ...

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
        decorate = ("FUN_custom = jax.custom_gradient(lambda *x: jax.vjp(FUN, *x))",)
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

    def make_cond(self, depth: int) -> None:
        """Two branches that are variants of one body."""
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, (out,) = self.body(parameters, depth, "float")
        names = ", ".join(v.name for v in operands)
        pred = self.operand(lambda v: v.kind == "b" and not v.shape)
        text = pred.name if pred is not None else f"{operands[0].name}.sum() > 0.2"
        other = self.choose(["FUN(*a) * 2", "jnp.ones_like(FUN(*a))", "-FUN(*a[::1])"])
        branches = self.choose([f"FUN, lambda *a: {other}", f"lambda *a: {other}, FUN"])
        self.add_nested(
            body, f"lax.cond({text}, {branches}, {names})", [(out.shape, "f")]
        )

    def make_switch(self, depth: int) -> None:
        operands = self.inexact_operands(2)
        parameters = self.parameters_like(operands)
        body, (out,) = self.body(parameters, depth, "float")
        names = ", ".join(v.name for v in operands)
        index = self.operand(lambda v: v.kind == "i" and not v.shape)
        text = "1" if index is None else index.name
        branches = "[FUN, lambda *a: jnp.zeros_like(FUN(*a)), lambda *a: FUN(*a) * 0.5]"
        self.add_nested(
            body, f"lax.switch({text}, {branches}, {names})", [(out.shape, "f")]
        )

    def make_scan(self, depth: int) -> None:
        (x,) = self.inexact_operands(1)
        rows = self.operand(lambda v: v.shape)
        parameters = self.parameters_like([x])
        if rows is not None:
            parameters.append(self.fresh(rows.shape[1:], rows.kind))
        body, (out,) = self.body(parameters, depth, "float")
        arguments = "c" if rows is None else "c, r"
        kept = carry_of("y", x.shape == out.shape)
        y = self.choose(["y", "None", "(y, r)", "c"])
        step = f"lambda c, r: (lambda y: ({kept}, {y}))(FUN({arguments}))"
        option = self.choose(["", "", ", reverse=True", ", unroll=2", ", unroll=True"])
        xs = "None, length=3" if rows is None else rows.name
        call = f"lax.scan({step}, {x.name}, {xs}{option})"
        shape = (3 if rows is None else rows.shape[0], *out.shape)
        if y == "y" and shape in ((3,), (2,), (2, 3), (3, 2)):
            self.add_nested(body, call, [(x.shape, "f"), (shape, "f")])
        else:
            self.add_nested(body, f"{call}[0]", [(x.shape, "f")])

    def make_fori_loop(self, depth: int) -> None:
        (x,) = self.inexact_operands(1)
        body, (out,) = self.body(self.parameters_like([x]), depth, "float")
        kept = carry_of("FUN(c)", x.shape == out.shape)
        option = self.choose(["", "", ", unroll=2"])
        text = f"lax.fori_loop(0, 3, lambda i, c: {kept}, {x.name}{option})"
        self.add_nested(body, text, [(x.shape, "f")])

    def make_while_loop(self, depth: int) -> None:
        (x,) = self.inexact_operands(1)
        body, (out,) = self.body(self.parameters_like([x]), depth, "float")
        bound = self.operand(lambda v: v.kind == "i" and not v.shape)
        text = "3" if bound is None else f"{bound.name} % 4"
        kept = carry_of("FUN(s[1])", x.shape == out.shape).replace("c.", "s[1].")
        call = f"lax.while_loop(lambda s: s[0] < {text}, lambda s: (s[0] + 1, {kept})"
        self.add_nested(body, f"{call}, (0, {x.name}))[1]", [(x.shape, "f")])

    def make_map(self, depth: int) -> None:
        rows = self.operand(lambda v: v.shape and v.kind == "f")
        if rows is None:
            return
        parameters = [self.fresh(rows.shape[1:], "f")]
        body, (out,) = self.body(parameters, depth, "float")
        option = self.choose(["", "", ", batch_size=2"])
        shape = (rows.shape[0], *out.shape)
        text = f"lax.map(FUN, {rows.name}{option})"
        if shape not in ((3,), (2,), (2, 3), (3, 2)):
            text, shape = f"{text}.sum(0)", out.shape
        self.add_nested(body, text, [(shape, "f")])


def carry_of(value: str, same_shape: bool) -> str:
    """`value` as the next carry `c`: of its shape and dtype, and tame."""
    if same_shape:
        return f"jnp.tanh({value}).astype(c.dtype)"
    return f"jnp.broadcast_to(jnp.tanh({value}.sum()), c.shape).astype(c.dtype)"
