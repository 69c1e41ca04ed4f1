"""Lowering: a jaxpr becomes a StableHLO module, equation by equation.

    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }

    func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.sine %arg0 : tensor<f32>
      return %0 : tensor<f32>
    }

`lower_to_module` makes the module and its function `main`; `lower_eqns` goes through
the equations. Each primitive's lowering rule gets a `LoweringRuleContext` and the
StableHLO values of its operands, and returns the values of its results. A program
inside a program (a nested `jit`) becomes a function of the module, made once and called
where it is used. Every operation carries the user's line as its location and the name
stack (`jit(f)/jvp/sin`) as its name, and every argument of `main` its path in the
user's call (`params['w']`), so that compiled instructions can be traced back.

In JAX: `interpreters/mlir.py`.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from . import dtypes, effects, events, hlo, language, source_info
from .events import Hook
from .language import ClosedJaxpr, Jaxpr, Literal, ShapedArray, get_aval, physical_aval
from .partial_eval import dce_closed_jaxpr, trace_to_jaxpr
from .rules import Shape

# Constants larger than this become arguments of the executable: the program stays
# small, and compiling does not fold or copy them.
MAX_EMBEDDED_BYTES = 1024


# How to make the StableHLO type for types other than those of arrays, such as tokens.
# In JAX: `interpreters/mlir.py`, `ir_type_handlers`.
type_makers: dict[
    type[language.AbstractValue], Callable[[language.AbstractValue], Any]
] = {}


def tensor_type(aval: language.AbstractValue) -> Any:
    """The StableHLO type of values of a type; a random key has the type of its bits."""
    if type(aval) in type_makers:
        return type_makers[type(aval)](aval)
    physical = physical_aval(aval)
    return hlo.tensor_type(physical.shape, physical.dtype)


class ModuleContext:
    """What the equations of one module share, such as its functions and its platform.

    The methods write and call functions. A program with ordered side
    effects takes tokens (values that stand for their order) before its arguments and
    returns them before its results. This class has no tokens; `signature.py` has a
    subclass that passes them along.

    In JAX: `interpreters/mlir.py`, `ModuleContext`.
    """

    def __init__(self, module: Any, platform: str):
        self.module = module
        self.platform = platform
        self.symbols = hlo.ir.SymbolTable(module.operation)
        # One function for each program and name, however often it is called. Keyed by
        # the program's id; the program is held so that the id is not reused.
        self.functions: dict[tuple, tuple[Any, ClosedJaxpr]] = {}
        self.host_callbacks: list[Callable] = []  # Python functions the program calls
        self.source: Any = None  # of the equation being lowered
        self.scope = ""  # the names of the equations whose rules are running

    def leading_types(self, closed: ClosedJaxpr) -> list[Any]:
        """The types of a function's extra leading arguments and results: tokens."""
        return []

    def write_body(
        self, closed: ClosedJaxpr, arguments: Sequence[Any], write: Callable
    ) -> list[Any]:
        """Write a function's equations, with `write(arguments)`; return its results."""
        return write(arguments)

    def call(self, function: Any, closed: ClosedJaxpr, operands: Sequence) -> list[Any]:
        """Call a function of the module."""
        name = hlo.ir.FlatSymbolRefAttr.get(function.name.value)
        call = hlo.func.CallOp(function.type.results, name, operands)
        return list(call.results)

    def annotate(self, main: Any, donated: Sequence[bool], jaxpr: Jaxpr) -> None:
        """Add attributes to the arguments and results of `main`, such as donation."""


@Hook
def new_module_context(module: Any, platform: str) -> ModuleContext:
    """The context for a new module. `signature.py` attaches one for side effects."""
    return ModuleContext(module, platform)


@dataclass(slots=True)
class LoweringRuleContext:
    """What a lowering rule needs: types, constants, the module, and builders.

    `avals_in` and `avals_out` are the types of the equation's operands and results.
    `constants` has the StableHLO values of large constants, which are arguments of the
    function, by the `id` of the constant.

    In JAX: `interpreters/mlir.py`, `LoweringRuleContext`.
    """

    module_context: ModuleContext
    primitive: language.Primitive
    avals_in: Sequence[language.AbstractValue]
    avals_out: Sequence[language.AbstractValue]
    constants: dict[int, Any]

    @property
    def platform(self) -> str:
        return self.module_context.platform

    def operation(self, name: str) -> Callable:
        """A builder of StableHLO by name: `"sine"`, or of CHLO: `"chlo.erf"`."""
        dialect = hlo.stablehlo
        if name.startswith("chlo."):
            dialect, name = hlo.chlo, name[len("chlo.") :]
        return getattr(dialect, name)

    def result_type(self, index: int = 0) -> Any:
        """The StableHLO type of a result of the equation."""
        return tensor_type(self.avals_out[index])

    def broadcast(self, operands: Sequence[Any]) -> list[Any]:
        """The operands repeated to the shape of the (first) result.

        Scalars and dimensions of size 1 are repeated.
        """
        target = self.avals_out[0]
        return [
            self.broadcast_to(operand, aval, target.shape)
            for operand, aval in zip(operands, self.avals_in)
        ]

    def broadcast_to(
        self, operand: Any, aval: language.AbstractValue, shape: Shape
    ) -> Any:
        """One operand of type `aval` repeated to `shape`, for an elementwise rule."""
        assert isinstance(aval, ShapedArray)
        if aval.shape == shape:
            return operand
        kept = [
            axis
            for axis in range(aval.ndim)
            if aval.shape[axis] == shape[axis] or aval.shape[axis] == 1
        ]
        return self.broadcast_in_dim(operand, aval, shape, kept)

    def broadcast_in_dim(
        self, operand: Any, aval: ShapedArray, shape: Shape, dims: Sequence[int]
    ) -> Any:
        """`operand` with its axis `i` at position `dims[i]` of `shape`."""
        result = aval.update(shape=shape, sharding=None)
        trailing = range(len(shape), physical_aval(result).ndim)
        return hlo.stablehlo.broadcast_in_dim(
            tensor_type(result), operand, hlo.int_array([*dims, *trailing])
        )

    def constant(self, value: Any) -> Any:
        """A constant of the program."""
        return hlo.constant(np.asarray(value))

    def full_like(self, value: Any, aval: ShapedArray) -> Any:
        """An array of type `aval` with every entry `value`."""
        scalar = hlo.constant(np.asarray(value, aval.dtype))
        if not aval.shape:
            return scalar
        return self.broadcast_in_dim(
            scalar, ShapedArray((), aval.dtype), aval.shape, []
        )

    def lower_fun(self, fun: Callable, *operands: Any, **params: Any) -> list[Any]:
        """Lower a primitive that `fun` composes of others, by tracing `fun`.

        `fun(*arrays, **params)` returns one array or a list of arrays.
        """

        def flat(*args: Any) -> list[Any]:
            out = fun(*args, **params)
            return list(out) if isinstance(out, (list, tuple)) else [out]

        # Its operations get the user's line of the equation.
        source = self.module_context.source
        with source_info.user_context(source and source.traceback):
            jaxpr, consts = trace_to_jaxpr(flat, self.avals_in)
        return self.lower_jaxpr(ClosedJaxpr(jaxpr, consts), *operands)

    def lower_jaxpr(self, closed: ClosedJaxpr, *operands: Any) -> list[Any]:
        """Lower a program in place, among the operations of this one."""
        values = [constant_value(self.constants, const) for const in closed.consts]
        return lower_eqns(
            self.module_context, closed.jaxpr, values, operands, self.constants
        )

    def call(self, closed: ClosedJaxpr, name: str, *operands: Any) -> list[Any]:
        """Call a program as a function of the module, made when it is first called."""
        function = self.function(closed, name)
        passed = [self.constants[id(const)] for const in free_constants(closed)]
        return self.module_context.call(function, closed, [*passed, *operands])

    def function(self, closed: ClosedJaxpr, name: str) -> Any:
        """The module's function for a program; it takes large constants first."""
        key = (id(closed), name)
        functions = self.module_context.functions
        if key not in functions:
            consts = free_constants(closed)
            function = _write_function(self.module_context, name, closed, consts)
            functions[key] = (function, closed)
        return functions[key][0]

    def replace(self, **types: Any) -> LoweringRuleContext:
        """This context with other `avals_in` or `avals_out`, to call another rule."""
        return replace(self, **types)


# ----------------------------------------------------------------------------------
# Constants
# ----------------------------------------------------------------------------------


def is_free_constant(value: Any) -> bool:
    """Whether a constant is an argument of the executable, not a part of its code."""
    aval = getattr(value, "aval", None)
    if aval is not None and dtypes.is_extended(aval.dtype):
        return True
    return getattr(value, "nbytes", 0) > MAX_EMBEDDED_BYTES


@language.weakref_lru_cache
def free_constants(closed: ClosedJaxpr) -> list[Any]:
    """The large constants of a program and of the programs in it, each once."""
    found: dict[int, Any] = {}
    for const in closed.consts:
        if is_free_constant(const):
            found[id(const)] = const
    for eqn in closed.jaxpr.eqns:
        for inner in language.programs_in_params(eqn.params):
            if isinstance(inner, ClosedJaxpr):
                found.update((id(const), const) for const in free_constants(inner))
    return list(found.values())


def constant_value(constants: dict[int, Any], const: Any) -> Any:
    """The StableHLO value of a constant: an argument, or written into the program."""
    value = constants.get(id(const))
    if value is not None:
        return value
    return written_constant(const, get_aval(const).dtype)


def written_constant(value: Any, dtype: Any) -> Any:
    """A constant of a dtype, written into the program; one of float0 holds bools."""
    if dtypes.is_float0(dtype):
        return hlo.constant(np.zeros(np.shape(value), bool))
    return hlo.constant(np.asarray(value, dtype))


# ----------------------------------------------------------------------------------
# Programs
# ----------------------------------------------------------------------------------


def lower_eqns(
    module_context: ModuleContext,
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    operands: Sequence[Any],
    constants: dict[int, Any],
) -> list[Any]:
    """Lower a program's equations at the current insertion point.

    `consts` and `operands` are StableHLO values; so are the results.
    """
    env: dict[language.Var, Any] = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, operands, strict=True))
    # A literal that is used several times becomes one constant.
    literals: dict[tuple, Any] = {}

    def read(atom: language.Atom) -> Any:
        if type(atom) is Literal:
            key = (type(atom.val), repr(atom.val), atom.aval)
            value = literals.get(key)
            if value is None:
                value = written_constant(atom.val, atom.aval.dtype)
                literals[key] = value
            return value
        return env[atom]

    outer_source, scope = module_context.source, module_context.scope
    extensions = [e for e in language.type_extensions.values() if e.lowers(jaxpr)]
    for eqn in jaxpr.eqns:
        rule = lowering_rule(eqn, module_context.platform)
        for extension in extensions:
            rule = functools.partial(extension.lower, rule)
        stack = str(eqn.source_info.name_stack)
        name = scope + (f"{stack}/" if stack else "") + eqn.primitive.name
        with hlo.location(eqn.source_info.traceback, name):
            ctx = LoweringRuleContext(
                module_context,
                eqn.primitive,
                [v.aval for v in eqn.invars],
                [v.aval for v in eqn.outvars],
                constants,
            )
            inputs = [read(v) for v in eqn.invars]
            module_context.source = eqn.source_info
            module_context.scope = name + "/"
            results = rule(ctx, *inputs, **eqn.params)
        if not isinstance(results, (list, tuple)):
            results = _results_of(results, len(eqn.outvars))
        if len(results) != len(eqn.outvars):
            raise ValueError(
                f"the lowering rule of {eqn.primitive} gave {len(results)} results "
                f"for {len(eqn.outvars)} outputs"
            )
        env.update(zip(eqn.outvars, results))
    module_context.source, module_context.scope = outer_source, scope
    return [read(v) for v in jaxpr.outvars]


def _results_of(value: Any, count: int) -> list[Any]:
    """The results of an operation whose builder may give a value or a list of them."""
    if count == 1 and isinstance(value, hlo.ir.Value):
        return [value]
    return list(getattr(value, "results", value))


def lowering_rule(eqn: language.JaxprEqn, platform: str) -> Callable:
    """The rule of an equation's primitive for a platform.

    NotImplementedError when there is none, with the line of the equation.
    """
    rules = eqn.primitive.lowerings
    rule = rules.get(platform) or rules.get(None)
    if rule is None:
        place = source_info.format_line(eqn.source_info)
        raise NotImplementedError(
            f"MLIR translation rule for primitive '{eqn.primitive}' not found for "
            f"platform {platform}: register one. It is used at {place}."
        )
    return rule


def _write_function(
    module_context: ModuleContext,
    name: str,
    closed: ClosedJaxpr,
    consts: Sequence[Any],
    names: Sequence[str] | None = None,
) -> Any:
    """A function of the module: large constants, then arguments in, results out.

    `names` are the paths of the arguments, given for `main` only, which is public.
    """
    leading = module_context.leading_types(closed)
    of_consts = [tensor_type(get_aval(const)) for const in consts]
    types_in = [*leading, *of_consts, *map(tensor_type, closed.in_avals)]
    types_out = [*leading, *map(tensor_type, closed.out_avals)]
    function = hlo.func.FuncOp(
        sanitize_name(name),
        hlo.ir.FunctionType.get(types_in, types_out),
        visibility="private" if names is None else "public",
        ip=hlo.ir.InsertionPoint(module_context.module.body),
    )
    # The symbol table renames a second function of the same name.
    module_context.symbols.insert(function)
    unnamed = len(types_in) - len(names or ())
    block = function.add_entry_block(
        [hlo.ir.Location.unknown()] * unnamed
        + [hlo.ir.Location.name(n) for n in names or ()]
    )

    def write(arguments: Sequence[Any]) -> list[Any]:
        constants = {id(const): value for const, value in zip(consts, arguments)}
        values = [constant_value(constants, const) for const in closed.consts]
        operands = arguments[len(consts) :]
        return lower_eqns(module_context, closed.jaxpr, values, operands, constants)

    outer_scope = module_context.scope
    module_context.scope = ""
    with hlo.ir.InsertionPoint(block):
        arguments = list(block.arguments)
        hlo.func.ReturnOp(module_context.write_body(closed, arguments, write))
    module_context.scope = outer_scope
    return function


def sanitize_name(name: str) -> str:
    """A name that MLIR accepts for a function: `<lambda>` becomes `_lambda_`."""
    return "".join(c if c.isalnum() or c in "_.-" else "_" for c in name)


class Lowered(NamedTuple):
    """A lowered program: the module, its context, and how to call the executable.

    `constants` are the values of the first arguments of `main`; `kept` are the
    positions of the inputs that are its other arguments (unused ones are left out).
    """

    context: Any
    module: Any
    name: str
    platform: str
    constants: list[Any]
    kept: tuple[int, ...]
    in_avals: tuple[language.AbstractValue, ...]
    out_avals: tuple[language.AbstractValue, ...]
    donated: tuple[bool, ...]
    host_callbacks: list[Callable]
    source: Any  # a weak reference to the program
    effects: frozenset

    def text(self, locations: bool = False) -> str:
        with self.context:
            return hlo.module_to_text(self.module, locations=locations)


def lower_to_module(
    closed: ClosedJaxpr,
    name: str,
    platform: str,
    donated: Sequence[bool] | None = None,
    keep_unused: bool = False,
) -> Lowered:
    """Lower a whole program to a module whose `main` XLA compiles.

    `donated` says which inputs give their memory to the results: each is aliased with
    a result of the same shape and dtype if there is one.

    In JAX: `interpreters/mlir.py`, `lower_jaxpr_to_module`.
    """
    jaxpr = closed.jaxpr
    bad = effects.lowerable_effects.filter_not_in(jaxpr.effects)
    if bad:
        raise ValueError(f"Effects not supported in lowering: {bad}")
    flags = tuple(donated or (False,) * len(jaxpr.invars))
    pruned, used = closed, [True] * len(jaxpr.invars)
    if not keep_unused:  # drop unused inputs and dead equations
        pruned, used = dce_closed_jaxpr(closed, [True] * len(jaxpr.outvars))
    kept = tuple(index for index, flag in enumerate(used) if flag)
    names: list[str] = []
    info = jaxpr.debug_info
    if len(info.arg_names) == len(used) and info.result_paths:
        names = [info.arg_names[index] for index in kept]
    consts = free_constants(pruned)
    context = hlo.make_context()
    with context, hlo.ir.Location.unknown():
        module = hlo.ir.Module.create()
        module.operation.attributes["sym_name"] = hlo.string(
            sanitize_name(f"jit_{name}")
        )
        module_context = new_module_context.run(module, platform)
        main = _write_function(module_context, "main", pruned, consts, names)
        module_context.annotate(main, [flags[i] for i in kept], pruned.jaxpr)
    if events.subscribers:
        events.emit("lower.module", name=name, module=module)
    return Lowered(
        context,
        module,
        name,
        platform,
        consts,
        kept,
        tuple(closed.in_avals),
        tuple(closed.out_avals),
        flags,
        module_context.host_callbacks,
        weakref.ref(closed),
        closed.effects,
    )
