"""The language: types, programs, primitives, tracers.

Reading order of the weekend core: this file, then `rules.py` (what a primitive's rules
look like), `primitives/elementwise.py` (the first sixty primitives, each in one block),
`interpreters/partial_eval.py` (how Python writes down its own computation),
`interpreters/ad.py` (derivatives), `interpreters/batching.py` (vmap),
`interpreters/mlir.py` (StableHLO), `interpreters/dispatch.py` (XLA runs it) and
`pjit.py` (jit: the cache around all of that).

The idea in four sentences. Every operation a user calls ends in `Primitive.bind`, and
`bind` hands the operation to the *current trace*. With no transformation active that is
`EvalTrace`, which compiles and runs it. Inside `jit`, `grad` or `vmap` it is another
`Trace`, which does something else with it: writes it down, differentiates it, gives it a
batch axis. The values that flow through the user's Python meanwhile are `Tracer`s, which
know their type (`aval`) and the trace they belong to.

In JAX: `jax/_src/core.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
import math
import operator
import threading
from typing import TYPE_CHECKING, Any
import weakref

import numpy as np

from minijax import dtypes, effects, errors, source_info
from minijax.backend import door
from minijax.config import State, install, override, state



def weakref_lru_cache(function: Callable, maxsize: int = 2048) -> Callable:
    """Cache a function by the identity of its first argument, held weakly.

    The other arguments are compared by value, and the flags that tracing depends on
    are part of the key. Programs made from one program are so made once, and live as
    long as it does.
    """
    return door.weakref_lru_cache(lambda: state.trace_key, function, maxsize)


# ----------------------------------------------------------------------------------
# Types
# ----------------------------------------------------------------------------------


class AbstractValue:
    """A type: what a tracer knows about the value it stands for.

    In JAX: `core.py`, `AbstractValue`.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        # For type checkers: shape, dtype and the like, which most kinds have.
        def __getattr__(self, name: str) -> Any: ...

    def str_short(self, short_dtypes: bool = False) -> str:
        return repr(self)

    def to_tangent_aval(self) -> AbstractValue:
        """The type of a tangent of a value of this type."""
        raise TypeError(f"values of type {self} have no tangents")

    def to_ct_aval(self) -> AbstractValue:
        """The type of a cotangent of a value of this type."""
        return self.to_tangent_aval()


def canonicalize_dim(size: Any) -> int:
    """One dimension's size as a Python int; TypeError unless it is a whole number."""
    try:
        return operator.index(size)
    except TypeError:
        pass
    if isinstance(size, Tracer):
        raise errors.with_facts(
            TypeError(
                "Shapes must be 1D sequences of concrete values of integer type, got a "
                f"dimension that is a {size._error_repr()}.{size.birth()}\n"
                "A shape must be known while the function is traced. If it is an "
                "argument of a jitted function, mark it with `static_argnums`; or take "
                "it from another array's shape."
            ),
            rule="shapes are known while tracing",
        )
    raise TypeError(
        f"Shapes must be 1D sequences of integer scalars, got a dimension {size!r} of "
        f"type {type(size).__name__}. Write a whole number, such as `x.shape[0]`."
    )


def canonicalize_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of Python ints.

    Raises TypeError when `shape` is no sequence of whole numbers, or when a dimension is
    a tracer: shapes must be known while tracing.
    """
    if type(shape) is tuple and all(type(size) is int for size in shape):
        return shape
    try:
        return tuple(canonicalize_dim(size) for size in shape)
    except TypeError:
        if not isinstance(shape, (tuple, list)) and np.ndim(shape) == 0:
            raise TypeError(
                "Shapes must be 1D sequences of integer scalars, got "
                f"{shape!r} of type {type(shape).__name__}. Write `({shape!r},)` for a "
                "vector."
            ) from None
        raise


_interned: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
_intern_lock = threading.Lock()


class ShapedArray(AbstractValue):
    """The type of an array: shape, dtype, and what else a program must agree on.

    Interned: two equal types are one object, so `is` compares them and their hash is
    their address. `weak_type` marks values that came from Python scalars and give way
    when dtypes are promoted. `sharding` is None when the array lives on no mesh; `vma`
    is the set of mesh axes over which it may vary inside `shard_map`.

    In JAX: `core.py`, `ShapedArray`.
    """

    __slots__ = (
        "shape",
        "dtype",
        "weak_type",
        "sharding",
        "vma",
        "memory_space",
        "ndim",
        "size",
        "_tangent",
        "__weakref__",
    )

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    sharding: Any
    vma: frozenset
    memory_space: Any
    ndim: int
    size: int

    def __new__(
        cls,
        shape: Sequence[int],
        dtype: Any,
        weak_type: bool = False,
        sharding: Any = None,
        vma: frozenset = frozenset(),
        memory_space: Any = None,
    ) -> ShapedArray:
        key = (shape, dtype, weak_type, sharding, vma, memory_space)
        try:
            aval = _interned.get(key)
        except TypeError:  # a list as the shape, say
            aval = None
        if aval is not None:
            return aval
        shape = canonicalize_shape(shape)
        if any(size < 0 for size in shape):
            raise ValueError(f"a shape cannot have negative sizes, got {shape}")
        if not isinstance(dtype, dtypes.ExtendedDType):
            dtype = np.dtype(dtype)
        key = (shape, dtype, bool(weak_type), sharding, vma, memory_space)
        with _intern_lock:
            aval = _interned.get(key)
            if aval is None:
                aval = object.__new__(cls)
                aval.shape, aval.dtype, aval.weak_type = key[:3]
                aval.sharding, aval.vma, aval.memory_space = key[3:]
                aval.ndim = len(shape)
                aval.size = math.prod(shape)
                aval._tangent = None
                _interned[key] = aval
        return aval

    def __reduce__(self):
        return (ShapedArray, self._fields())

    def _fields(self) -> tuple:
        return (
            self.shape,
            self.dtype,
            self.weak_type,
            self.sharding,
            self.vma,
            self.memory_space,
        )

    def update(self, **changes: Any) -> ShapedArray:
        """The same type with some fields changed: `aval.update(shape=(2, 3))`."""
        names = ("shape", "dtype", "weak_type", "sharding", "vma", "memory_space")
        fields = dict(zip(names, self._fields()))
        if "shape" in changes and len(changes["shape"]) != self.ndim:
            fields["sharding"] = None
        fields.update(changes)
        return ShapedArray(**fields)

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """Same shape; float0 for integers and booleans, which have no tangents."""
        if self._tangent is None:
            if dtypes.is_float0(self.dtype) or not dtypes.has_tangents(self.dtype):
                tangent = self.update(dtype=dtypes.float0, weak_type=False)
            else:
                tangent = self
            # A type that is its own tangent type is not stored: that would be a cycle.
            self._tangent = False if tangent is self else tangent
        return self._tangent or self

    def str_short(self, short_dtypes: bool = False) -> str:
        name = dtypes.short_dtype_name(self.dtype) if short_dtypes else self.dtype.name
        sizes = [str(size) for size in self.shape]
        if self.sharding is not None:
            sizes = [
                size if axes is None else f"{size}@{_axes_name(axes)}"
                for size, axes in zip(sizes, self.sharding.spec)
            ]
        varying = f"{{V:{','.join(map(str, sorted(self.vma)))}}}" if self.vma else ""
        return f"{name}[{','.join(sizes)}]{varying}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __str__(self) -> str:
        return ("~" if self.weak_type else "") + self.str_short()


def _axes_name(axes: Any) -> str:
    return f"({','.join(axes)})" if isinstance(axes, tuple) else str(axes)


class AbstractRef(AbstractValue):
    """The type of a mutable reference to an array of type `inner_aval`.

    In JAX: `state/types.py`, `AbstractRef`.
    """

    __slots__ = ("inner_aval", "memory_space", "__weakref__")
    _interned: weakref.WeakValueDictionary = weakref.WeakValueDictionary()

    inner_aval: ShapedArray
    memory_space: Any

    def __new__(cls, inner_aval: ShapedArray, memory_space: Any = None) -> AbstractRef:
        key = (inner_aval, memory_space)
        with _intern_lock:
            ref = cls._interned.get(key)
            if ref is None:
                ref = object.__new__(cls)
                ref.inner_aval, ref.memory_space = key
                cls._interned[key] = ref
        return ref

    def __reduce__(self):
        return (AbstractRef, (self.inner_aval, self.memory_space))

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    weak_type = property(lambda self: self.inner_aval.weak_type)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)
    sharding = property(lambda self: self.inner_aval.sharding)
    vma = property(lambda self: self.inner_aval.vma)

    def to_tangent_aval(self) -> AbstractRef:
        return AbstractRef(self.inner_aval.to_tangent_aval(), self.memory_space)

    def str_short(self, short_dtypes: bool = False) -> str:
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __repr__(self) -> str:
        return self.str_short()


class AbstractToken(AbstractValue):
    """The type of a token, which orders effects in compiled programs."""

    __slots__ = ()
    shape = ()
    dtype = np.dtype("bool")
    weak_type = False

    def str_short(self, short_dtypes: bool = False) -> str:
        return "Tok"

    def to_tangent_aval(self) -> AbstractToken:
        return self


abstract_token = AbstractToken()


# How a Python value gets its type: one entry per class of value that may meet a
# primitive. `array.py` adds Array, `control_flow` adds Ref.
aval_of_class: dict[type, Callable[[Any], AbstractValue]] = {}

_scalar_avals: dict[tuple[type, bool], ShapedArray] = {}


def _python_scalar_aval(value: Any) -> ShapedArray:
    kind = type(value)
    aval = _scalar_avals.get((kind, state.enable_x64))
    if aval is None:
        dtype = dtypes.canonicalize_dtype(dtypes.python_scalar_dtypes[kind])
        aval = ShapedArray((), dtype, weak_type=kind is not bool)
        _scalar_avals[kind, state.enable_x64] = aval
    if kind is int:
        _check_int_fits(value, aval.dtype)
    return aval


def _check_int_fits(value: int, dtype: np.dtype) -> None:
    bits = 8 * dtype.itemsize
    if not -(1 << (bits - 1)) <= value < (1 << (bits - 1)):
        raise OverflowError(
            f"Python int {value} is too large to convert to {dtype.name}. Write it as "
            "a float, or as an unsigned or 64-bit NumPy scalar (with "
            '`config.update("jax_enable_x64", True)`).'
        )


def _numpy_aval(value: np.ndarray | np.generic) -> ShapedArray:
    dtype = value.dtype
    if dtype.kind in "OSUMm":
        raise TypeError(
            f"Value {value!r} with dtype {dtype} is not a valid JAX array type. Only "
            "arrays of numeric types are supported."
        )
    if dtype != dtypes.float0:
        dtype = dtypes.canonicalize_dtype(dtype)
    return ShapedArray(value.shape, dtype)


for _kind in (bool, int, float, complex):
    aval_of_class[_kind] = _python_scalar_aval
aval_of_class[np.ndarray] = _numpy_aval


def get_aval(value: Any) -> AbstractValue:
    """The type of a value that may be an argument of a primitive.

    Raises TypeError, naming the value's class, when no primitive can take it.

    In JAX: `core.py`, `get_aval` (public as `jax.typeof`).
    """
    kind = type(value)
    if issubclass(kind, Tracer):
        return value.aval
    rule = aval_of_class.get(kind)
    if rule is not None:
        return rule(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return _numpy_aval(value)
    if hasattr(value, "__jax_array__"):
        return get_aval(value.__jax_array__())
    for base in kind.__mro__:
        if base in aval_of_class:
            return aval_of_class[base](value)
    raise TypeError(
        f"Argument '{value}' of type '{kind.__module__}.{kind.__qualname__}' is not a "
        "valid JAX type. Arguments are arrays, NumPy arrays and scalars, Python "
        "numbers, or containers of these registered as pytrees."
    )


typeof = get_aval


def valid_jaxtype(value: Any) -> bool:
    """Whether `value` may be an argument of a primitive."""
    try:
        get_aval(value)
    except (TypeError, OverflowError):
        return False
    return True


# ----------------------------------------------------------------------------------
# Programs
# ----------------------------------------------------------------------------------


class Var:
    """A variable of a jaxpr; it has a type and no name (the printer gives names)."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short(short_dtypes=True)}"


class DropVar(Var):
    """The place of an output that nobody reads; printed `_`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class Literal:
    """A scalar constant written into the program where it is used."""

    __slots__ = ("val", "aval")

    def __init__(self, val: Any, aval: AbstractValue):
        self.val = val
        self.aval = aval

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom = Var | Literal


class JaxprEqn:
    """One equation: `outvars = primitive[params] invars`.

    `source_info` holds the user's line and the name stack (`jvp`, `vmap`, scopes).
    """

    __slots__ = (
        "invars",
        "outvars",
        "primitive",
        "params",
        "effects",
        "source_info",
    )

    def __init__(
        self,
        invars: list[Atom],
        outvars: list[Var],
        primitive: Primitive,
        params: dict[str, Any],
        effects: frozenset,
        source_info: source_info.SourceInfo,
    ):
        self.invars = invars
        self.outvars = outvars
        self.primitive = primitive
        self.params = params
        self.effects = effects
        self.source_info = source_info

    def replace(self, **changes: Any) -> JaxprEqn:
        fields = {name: getattr(self, name) for name in JaxprEqn.__slots__}
        fields.update(changes)
        return JaxprEqn(**fields)

    def __repr__(self) -> str:
        return print_eqn(self)


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Primitive,
    params: dict[str, Any],
    effects: frozenset = frozenset(),
    source: source_info.SourceInfo | None = None,
) -> JaxprEqn:
    """An equation made by hand; its source is the caller's user line by default."""
    return JaxprEqn(
        list(invars),
        list(outvars),
        primitive,
        params,
        effects,
        source or source_info.current(),
    )


@dataclass(frozen=True)
class DebugInfo:
    """Where a program came from: used in messages, never in cache keys.

    `traced_for` names the transformation ("jit"), `name` the function, `place` is
    "file:line", `arg_names` and `result_paths` have one entry per leaf.
    """

    traced_for: str
    name: str
    place: str = ""
    arg_names: tuple[str, ...] = ()
    result_paths: tuple[str, ...] = ()

    @property
    def func_src_info(self) -> str:
        return f"{self.name} at {self.place}" if self.place else self.name


no_debug_info = DebugInfo("unknown", "<unknown>")


class Jaxpr:
    """A program: `{ lambda constvars; invars. let eqns in outvars }`.

    Plain data. Every variable is bound once, before its use; `check.check_jaxpr` holds
    a program to that and to the type of every equation.
    """

    __slots__ = (
        "constvars",
        "invars",
        "outvars",
        "eqns",
        "effects",
        "debug_info",
        "__weakref__",
    )

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: frozenset = frozenset(),
        debug_info: DebugInfo = no_debug_info,
    ):
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.effects = frozenset(effects)
        self.debug_info = debug_info

    @property
    def in_avals(self) -> list[AbstractValue]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[AbstractValue]:
        return [v.aval for v in self.outvars]

    def replace(self, **changes: Any) -> Jaxpr:
        names = [name for name in Jaxpr.__slots__ if name != "__weakref__"]
        fields = {name: getattr(self, name) for name in names}
        fields.update(changes)
        return Jaxpr(**fields)

    def pretty_print(self, **options: Any) -> str:
        return print_jaxpr(self, **options)

    def __str__(self) -> str:
        return print_jaxpr(self)

    __repr__ = __str__


class ClosedJaxpr:
    """A jaxpr together with the values of its constvars.

    Compared and hashed by identity: caches of transformed programs rest on it.
    """

    __slots__ = ("jaxpr", "consts", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(
                f"consts has {len(consts)} values but the jaxpr has "
                f"{len(jaxpr.constvars)} constvars; give one value for each."
            )
        self.jaxpr = jaxpr
        self.consts = list(consts)

    literals = property(lambda self: self.consts)
    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)
    eqns = property(lambda self: self.jaxpr.eqns)
    effects = property(lambda self: self.jaxpr.effects)
    debug_info = property(lambda self: self.jaxpr.debug_info)

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Any = None) -> ClosedJaxpr:
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr,
            self.consts if consts is None else consts,
        )

    def pretty_print(self, **options: Any) -> str:
        return print_jaxpr(self.jaxpr, **options)

    def __str__(self) -> str:
        return print_jaxpr(self.jaxpr)

    __repr__ = __str__


def print_jaxpr(jaxpr: Jaxpr, **options: Any) -> str:
    """JAX's text of a program (pretty.py, on this floor, is imported when first used)."""
    from minijax import pretty

    return pretty.jaxpr_text(jaxpr, **options)


def print_eqn(eqn: JaxprEqn) -> str:
    """JAX's text of one equation."""
    from minijax import pretty

    return pretty.eqn_text(eqn)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The programs that an equation's parameters carry, in the order of the names."""
    for value in params.values():
        for item in value if type(value) is tuple else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, Jaxpr):
                yield item


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs carried by the equations of `jaxpr` (one level down)."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Run a program by binding its equations one after another in the current trace.

    This is the whole interpreter: under `EvalTrace` it computes, under any other trace
    it transforms. Each equation keeps the user's line it came from.

    In JAX: `core.py`, `eval_jaxpr`.
    """
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))
    outer = source_info.current_name_stack()
    for eqn in jaxpr.eqns:
        inputs = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
        inner = eqn.source_info.name_stack
        stack = outer + inner if inner.stack else outer
        with source_info.user_context(eqn.source_info, name_stack=stack):
            outputs = eqn.primitive.rebind(inputs, eqn.params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, outputs))
        else:
            env[eqn.outvars[0]] = outputs
    return [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A Python function of flat arguments that runs the program."""

    def run(*args: Any) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    return run


# ----------------------------------------------------------------------------------
# Primitives
# ----------------------------------------------------------------------------------


class Primitive:
    """An operation that every interpreter knows: its name and all its rules.

    The rules are attributes, set next to each other where the primitive is defined and
    read by the interpreters; None means "no rule". `reasons` says why a rule that one
    could expect is missing. `rules.py` describes each rule's arguments and has the
    constructors for families (unary, n-ary, reductions).

    In JAX: `core.py`, `Primitive`, and the registration tables of each interpreter.
    """

    def __init__(self, name: str, multiple_results: bool = False):
        self.name = name
        self.multiple_results = multiple_results
        self.meaning: Callable | None = None  # NumPy reference, held against XLA
        self.type_rule: Callable | None = None  # (*avals, **params) -> (out, effects)
        self.impl: Callable | None = None  # eager evaluation, if not by compiling
        self.jvp: Callable | None = None  # (primals, tangents, **params)
        self.jvp_terms: tuple | None = None  # one per argument: (t, *primals, **params)
        self.transpose: Callable | None = None  # (ct, *args, **params) -> cts
        self.batch: Callable | None = None  # (axis_data, args, dims, **params)
        self.lowerings: dict[str | None, Callable] = {}  # by platform; None: any
        self.linearize: Callable | None = None
        self.partial_eval: Callable | None = None
        self.dce: Callable | None = None
        self.staging: Callable | None = None
        self.typecheck: Callable | None = None
        self.discharge: Callable | None = None
        self.pretty: Callable | None = None
        self.bind_params: Callable | None = None
        self.cache_types = True  # the type depends on avals and params alone
        self.reasons: dict[str, str] = {}
        self.types: dict[Any, Any] = {}  # cache of type_rule
        self.executables: dict[Any, Any] = {}  # cache of eager programs

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self):
        return (primitive_named, (self.name,))

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive in the current trace."""
        return state.trace.process_primitive(self, args, params)

    def bind_with_trace(self, trace: Trace, args: Sequence[Any], params: dict) -> Any:
        """Apply the primitive in a given trace."""
        return trace.process_primitive(self, args, params)

    def rebind(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply the primitive again as an equation of a jaxpr has it."""
        if self.bind_params is not None:
            return self.bind_params(self, args, params)
        return state.trace.process_primitive(self, args, params)

    # JAX's names for the two definitions every user-made primitive starts with.

    def def_impl(self, impl: Callable) -> Callable:
        """Set how the primitive computes eagerly; without it, it is compiled."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Callable) -> Callable:
        """Set the type rule: types and parameters in, type (or list of types) out."""
        self.type_rule = lambda *avals, **params: (rule(*avals, **params), no_effects)
        return rule

    def def_effectful_abstract_eval(self, rule: Callable) -> Callable:
        """Set a type rule that returns (types, effects)."""
        self.type_rule = rule
        return rule

    # The rules of one block, in the order in which blocks write them.

    def def_jvp(self, *terms: Callable | None) -> None:
        """One term per argument: `(tangent, *primals, **params) -> tangent of output`.

        None where the output does not depend on the argument differentiably. The
        tangent of the output is the sum of the terms of nonzero tangents.
        """
        self.jvp_terms = terms

    def def_jvp_rule(self, rule: Callable) -> Callable:
        """The whole rule: `(primals, tangents, **params) -> (primals out, tangents)`.

        Tangents may be `Zero`; outputs may be too.
        """
        self.jvp = rule
        return rule

    def def_transpose(self, rule: Callable) -> Callable:
        """`(ct, *args, **params) -> [cotangent or None for each argument]`.

        Arguments in which the operation is linear come as accumulators (with `.aval`),
        the others as values. A rule that writes to the accumulators itself returns None.
        """
        self.transpose = rule
        return rule

    def def_batch(self, rule: Callable) -> Callable:
        """`(axis_data, args, dims, **params) -> (out, out_dim)`, lists if several."""
        self.batch = rule
        return rule

    def def_lowering(self, rule: Callable, platform: str | None = None) -> Callable:
        """`(ctx, *operands, **params) -> result or results`, as StableHLO values."""
        self.lowerings[platform] = rule
        return rule

    def without(self, rule: str, reason: str) -> None:
        """Declare that a rule does not exist for this primitive, and why."""
        self.reasons[rule] = reason

    def abstract_eval(self, *avals: AbstractValue, **params: Any) -> tuple:
        """(type or types of the output, effects), cached."""
        return type_of_application(self, avals, params)


no_effects: frozenset = effects.no_effects

# All primitives by name, for pickling and for the tests that walk them.
all_primitives: dict[str, Primitive] = {}


def primitive_named(name: str) -> Primitive:
    """The registered primitive of that name; KeyError when there is none."""
    return all_primitives[name]


def register(primitive: Primitive) -> Primitive:
    """Enter a primitive of minijax's own into `all_primitives`."""
    if primitive.name in all_primitives:
        raise ValueError(f"there is a primitive named {primitive.name!r} already")
    all_primitives[primitive.name] = primitive
    return primitive


_TYPE_CACHE_SIZE = 4096


def type_of_application(
    primitive: Primitive, avals: tuple[AbstractValue, ...], params: dict[str, Any]
) -> tuple[Any, frozenset]:
    """The cached answer of a primitive's type rule: (type or types, effects).

    Raises what the rule raises: TypeError or ValueError with the user's shapes in it.
    TypeError when a parameter cannot be hashed.
    """
    if not primitive.cache_types:
        return primitive.type_rule(*avals, **params)
    key = (avals, tuple(params.items())) if params else avals
    try:
        return primitive.types[key]
    except KeyError:
        pass
    except TypeError:
        for name, value in params.items():
            if not isinstance(value, Hashable):
                raise TypeError(
                    f"parameters of equations must be hashable, but parameter {name} "
                    f"of primitive {primitive} is {value!r}"
                ) from None
        raise
    if primitive.type_rule is None:
        raise NotImplementedError(
            f"Abstract evaluation for '{primitive}' not implemented: give it a type "
            "rule with `def_abstract_eval`."
        )
    if len(primitive.types) >= _TYPE_CACHE_SIZE:
        primitive.types.clear()
    answer = primitive.type_rule(*avals, **params)
    primitive.types[key] = answer
    return answer


# ----------------------------------------------------------------------------------
# Traces and tracers
# ----------------------------------------------------------------------------------


class Trace:
    """What the current transformation does with each primitive.

    There is one current trace, `state.trace`; an interpreter holds its parent and puts
    it back while it works. No stack, no levels.

    In JAX: `core.py`, `Trace`.
    """

    # A tracer that is used after its trace ended has leaked.
    alive = True

    def process_primitive(
        self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        raise TypeError(f"{type(self).__name__} cannot process primitives")

    def process_custom_jvp_call(
        self, primitive: Primitive, fun: Callable, jvp: Callable, args: Sequence[Any],
        **params: Any,
    ) -> list[Any]:
        raise TypeError(f"{type(self).__name__} cannot process custom_jvp calls")

    def process_custom_vjp_call(
        self, primitive: Primitive, fun: Callable, fwd: Callable, bwd: Callable,
        args: Sequence[Any], **params: Any,
    ) -> list[Any]:
        raise TypeError(f"{type(self).__name__} cannot process custom_vjp calls")

    def __repr__(self) -> str:
        return type(self).__name__


class EvalTrace(Trace):
    """No transformation: compute now, through XLA.

    In JAX: `core.py`, `EvalTrace`.
    """

    def process_primitive(
        self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        if primitive.impl is not None:
            for arg in args:
                if isinstance(arg, Tracer):
                    raise escaped_tracer_error(arg)
            return primitive.impl(*args, **params)
        return apply_eagerly[0](primitive, args, params)

    def process_custom_jvp_call(self, primitive, fun, jvp, args, **params):
        return fun(*args)

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, args, **params):
        return fun(*args)


# How EvalTrace computes a primitive: dispatch.apply_primitive, which stands on a higher
# floor and puts itself here when it is imported.
apply_eagerly: list[Callable] = []

eval_trace = EvalTrace()
State.trace = eval_trace  # the default of every thread


class set_current_trace:
    """Context manager: run the body with `trace` as the current trace."""

    __slots__ = ("trace", "previous")

    def __init__(self, trace: Trace):
        self.trace = trace

    def __enter__(self) -> Trace:
        self.previous = state.trace
        state.trace = self.trace
        return self.trace

    def __exit__(self, *exception: Any) -> None:
        state.trace = self.previous


def trace_state_clean() -> bool:
    """Whether no transformation is active in this thread."""
    return state.trace is eval_trace


class TraceTag:
    """Tells the tracers of one transformation from those of another."""

    __slots__ = ()


class Tracer:
    """Stands for a value that is not known yet, or that carries more than itself.

    It has a type, `aval`, and belongs to a trace. Operators and array methods are
    installed by `numpy/array_methods.py`; what needs the value itself, such as `if x:`,
    raises an error that says where the tracer was born and what to write instead.

    In JAX: `core.py`, `Tracer`.
    """

    __slots__ = ("_trace", "aval", "__weakref__")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    _trace: Trace
    aval: Any

    def __init__(self, trace: Trace, aval: AbstractValue):
        self._trace = trace
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    weak_type = property(lambda self: self.aval.weak_type)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    sharding = property(lambda self: self.aval.sharding)
    vma = property(lambda self: self.aval.vma)

    def full_lower(self) -> Any:
        """The simplest equivalent value, without this trace where it adds nothing."""
        return self

    def to_concrete_value(self) -> Any | None:
        """The concrete value when there is one (inside `jvp` or `vmap`, outside jit)."""
        return None

    def birth(self) -> str:
        """Where this tracer came from, as the second part of error messages."""
        return ""

    _origin_msg = birth

    def _short_repr(self) -> str:
        return f"{type(self).__name__}<{self.aval}>"

    def _error_repr(self) -> str:
        return f"traced array with shape {self.aval.str_short()}"

    def __repr__(self) -> str:
        return self._short_repr()

    # A program that is being written down has no values yet.

    def __bool__(self) -> bool:
        return bool(self._concrete(errors.TracerBoolConversionError))

    def __int__(self) -> int:
        return int(self._concrete_scalar("int", "astype(int)"))

    def __float__(self) -> float:
        return float(self._concrete_scalar("float", "astype(float)"))

    def __complex__(self) -> complex:
        return complex(self._concrete_scalar("complex", "astype(complex)"))

    def __index__(self) -> int:
        return operator.index(self._concrete(errors.TracerIntegerConversionError))

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return np.asarray(self._concrete(errors.TracerArrayConversionError))

    def tolist(self) -> Any:
        return self._concrete_scalar("tolist", "").tolist()

    def item(self, *args: int) -> Any:
        return self._concrete_scalar("item", "").item(*args)

    def _concrete(self, error: type[Exception]) -> Any:
        value = self.to_concrete_value()
        if value is None:
            raise error(self)
        return value

    def _concrete_scalar(self, function: str, instead: str) -> Any:
        value = self.to_concrete_value()
        if value is None:
            advice = f" Write `x.{instead}` to convert inside jit." if instead else ""
            raise errors.ConcretizationTypeError(
                self, f"The problem arose with the `{function}` function.{advice}"
            )
        return value

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: dict) -> Tracer:
        return self


def full_lower(value: Any) -> Any:
    """`value` without tracers that add nothing to it."""
    return value.full_lower() if isinstance(value, Tracer) else value


def is_concrete(value: Any) -> bool:
    """Whether the value is known now."""
    return to_concrete_value(value) is not None


def to_concrete_value(value: Any) -> Any | None:
    """The value itself, or None for a tracer that has none yet."""
    return value.to_concrete_value() if isinstance(value, Tracer) else value


def concrete_or_error(force: Callable | None, value: Any, context: str = "") -> Any:
    """`force(value)` (or `value`), or an error that says why it must be known now."""
    force = force or (lambda known: known)
    if not isinstance(value, Tracer):
        return force(value)
    concrete = value.to_concrete_value()
    if concrete is None:
        if force is bool:
            raise errors.TracerBoolConversionError(value)
        if force is operator.index:
            raise errors.TracerIntegerConversionError(value)
        raise errors.ConcretizationTypeError(value, context)
    return force(concrete)


def escaped_tracer_error(tracer: Tracer, detail: str = "") -> Exception:
    """The error for a tracer that is used after its transformation ended."""
    return errors.UnexpectedTracerError(
        "Encountered an unexpected tracer: a value of a function being transformed by "
        f"minijax was kept and used after the transformation had ended.\n"
        f"The tracer: {tracer._error_repr()}.{tracer.birth()}"
        f"{detail}\n"
        "A function that is transformed must hand out values only through its results: "
        "return the value instead of storing it in a global, an attribute or a list. "
        "`minijax.checking_leaks()` raises where it is stored."
    )


# ----------------------------------------------------------------------------------
# Named axes
# ----------------------------------------------------------------------------------


class AxisEnv:
    """The named axes in scope (from `vmap(axis_name=...)` and `shard_map`): sizes.

    In JAX: `core.py`, `AxisEnv`.
    """

    __slots__ = ("axis_sizes",)

    def __init__(self, axis_sizes: dict[Hashable, int]):
        self.axis_sizes = axis_sizes

    def axis_size(self, name: Hashable) -> int:
        if name not in self.axis_sizes:
            raise NameError(
                f"unbound axis name: {name}. The named axes in scope are "
                f"{list(self.axis_sizes) or 'none'}: give the axis its name with "
                f"`vmap(f, axis_name={name!r})` or use it inside `shard_map`."
            )
        return self.axis_sizes[name]

    def axis_exists(self, name: Hashable) -> bool:
        return name in self.axis_sizes

    def axis_names(self) -> list[Hashable]:
        return list(self.axis_sizes)

    # By value: it is a field of `state.trace_key`, since a size may be traced in.
    def __eq__(self, other: Any) -> bool:
        return isinstance(other, AxisEnv) and self.axis_sizes == other.axis_sizes

    def __hash__(self) -> int:
        return hash(frozenset(self.axis_sizes.items()))


install("axis_env", AxisEnv({}))


class extend_axis_env:
    """Context manager: bring named axes into scope."""

    __slots__ = ("change", "new")

    def __init__(self, axes: Sequence[tuple[Hashable, int]]):
        self.new = dict(axes)

    def __enter__(self) -> None:
        if self.new:
            sizes = {**state.axis_env.axis_sizes, **self.new}
            self.change = override("axis_env", AxisEnv(sizes))
            self.change.__enter__()

    def __exit__(self, *exception: Any) -> None:
        if self.new:
            self.change.__exit__(*exception)


class NamedAxisEffect(effects.Effect):
    """The program uses a named axis, which must be in scope where it runs."""

    __slots__ = ("name",)

    def __init__(self, name: Hashable):
        self.name = name

    def __repr__(self) -> str:
        return f"NamedAxis({self.name})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, NamedAxisEffect) and self.name == other.name

    def __hash__(self) -> int:
        return hash((NamedAxisEffect, self.name))


effects.lowerable_effects.add_type(NamedAxisEffect)
effects.control_flow_allowed_effects.add_type(NamedAxisEffect)
effects.custom_derivatives_allowed_effects.add_type(NamedAxisEffect)
effects.remat_allowed_effects.add_type(NamedAxisEffect)


def positional_effects(jaxpr: Jaxpr) -> frozenset:
    """The effects that an equation carrying `jaxpr` has, seen from outside."""
    return jaxpr.effects


# ----------------------------------------------------------------------------------
# Shapes and types without values
# ----------------------------------------------------------------------------------


class ShapeDtypeStruct:
    """Shape and dtype of an array that need not exist: `eval_shape`'s answer.

    Accepted wherever only types matter (`make_jaxpr`, `jit(f).lower`, `eval_shape`).

    In JAX: `jax.ShapeDtypeStruct`.
    """

    __slots__ = ("shape", "dtype", "sharding", "weak_type")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        self.shape = canonicalize_shape(shape)
        self.dtype = (
            dtype if isinstance(dtype, dtypes.ExtendedDType) else np.dtype(dtype)
        )
        self.sharding = sharding
        self.weak_type = weak_type

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    T = property(lambda self: self.update(shape=self.shape[::-1]))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The same struct with some of shape, dtype, sharding, weak_type changed."""
        fields = {name: getattr(self, name) for name in ShapeDtypeStruct.__slots__}
        fields.update(changes)
        return ShapeDtypeStruct(
            fields.pop("shape"), fields.pop("dtype"), **fields
        )

    def __repr__(self) -> str:
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        weak = ", weak_type=True" if self.weak_type else ""
        return (
            f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}"
            f"{sharding}{weak})"
        )

    def _key(self) -> tuple:
        return (self.shape, self.dtype, self.sharding, self.weak_type)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _struct_aval(struct: ShapeDtypeStruct) -> ShapedArray:
    dtype = struct.dtype
    if not isinstance(dtype, dtypes.ExtendedDType):
        dtype = dtypes.canonicalize_dtype(dtype)
    return ShapedArray(struct.shape, dtype, struct.weak_type)


def shaped_abstractify(value: Any) -> AbstractValue:
    """The type of a value, of a `ShapeDtypeStruct`, or of anything with shape, dtype."""
    if isinstance(value, ShapeDtypeStruct):
        return _struct_aval(value)
    if isinstance(value, AbstractValue):
        return value
    return get_aval(value)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one slice along `axis`, which must have `size` entries."""
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"axis {axis} of {aval.str_short()} is not of size {size}")
    shape = aval.shape[:axis] + aval.shape[axis + 1 :]
    return aval.update(shape=shape)


def unmapped_aval(size: int, axis: int | None, aval: AbstractValue) -> AbstractValue:
    """The type of `size` slices stacked along a new axis at position `axis`."""
    if axis is None:
        return aval
    if isinstance(aval, AbstractRef):
        return AbstractRef(unmapped_aval(size, axis, aval.inner_aval))
    shape = aval.shape[:axis] + (size,) + aval.shape[axis:]
    return aval.update(shape=shape)


def physical_aval(aval: AbstractValue) -> AbstractValue:
    """The type of the bits: `key<fry>[3]` is stored as `u32[3,2]`."""
    if isinstance(aval, ShapedArray) and isinstance(aval.dtype, dtypes.ExtendedDType):
        dtype = aval.dtype
        return ShapedArray((*aval.shape, *dtype.physical_shape), dtype.physical_dtype)
    return aval


def typecompat(expected: AbstractValue, actual: AbstractValue) -> bool:
    """Whether two types are the same up to weak types."""
    if isinstance(expected, ShapedArray) and isinstance(actual, ShapedArray):
        return expected.strip_weak_type() is actual.strip_weak_type()
    return expected is actual


def fresh_vars(avals: Sequence[AbstractValue]) -> list[Var]:
    """One new variable for each type."""
    return [Var(aval) for aval in avals]


def partition(flags: Sequence[bool], items: Sequence[Any]) -> tuple[list, list]:
    """(items whose flag is false, items whose flag is true)."""
    no, yes = [], []
    for flag, item in zip(flags, items, strict=True):
        (yes if flag else no).append(item)
    return no, yes


def merge(flags: Sequence[bool], no: Sequence[Any], yes: Sequence[Any]) -> list[Any]:
    """The inverse of `partition`."""
    falses, trues = iter(no), iter(yes)
    return [next(trues) if flag else next(falses) for flag in flags]


