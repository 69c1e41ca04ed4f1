"""Calling native functions from a compiled program: `ffi_call`.

A handler in C++ is built against jaxlib's headers (`include_dir`), registered under a
name, and called by that name:

    library = ctypes.CDLL("./norms.so")
    register_ffi_target("rms_norm", pycapsule(library.RmsNorm), platform="cpu")

    def rms_norm(x, eps=1e-6):
        kind = ShapeDtypeStruct(x.shape, x.dtype)
        return ffi_call("rms_norm", kind, vmap_method="broadcast_all")(x, eps=eps)

The call becomes one operation, without Python in between:

    %r = stablehlo.custom_call @rms_norm(%x) {api_version = 4,
             backend_config = {eps = 1.0e-06 : f64}} : ... -> tensor<4x8xf32>

Keyword arguments are the attributes that the handler reads by name. What the handler
returns is taken as `result_shape_dtypes` says; it gets buffers of exactly these types
and should check them. A handler that reports an error makes the launch raise
JaxRuntimeError.

It has no derivative: wrap it in `custom_vjp` or `custom_jvp`. Under `vmap`,
`vmap_method` decides, as for `pure_callback`.

In JAX: `jax/_src/ffi.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.backend import foreign_targets, hlo_parts
from minijax.core import dtypes, errors, hlo, language, lowering
from minijax.core.effects import Effect, control_flow_allowed_effects, lowerable_effects
from minijax.primitives.families import refusal
from minijax.programs.callbacks import callback
from minijax.support.devices.layouts import Layout
from minijax.values.ref_avals import abstract_token

# A layout as `ffi_call` takes it: the axes from the slowest to the fastest.
FfiLayoutOptions = Sequence[int] | Layout | None


class FfiEffect(Effect):
    """A native function with side effects is called."""

    def __str__(self) -> str:
        return "FFI"


_effect = FfiEffect()
lowerable_effects.add_type(FfiEffect)
control_flow_allowed_effects.add_type(FfiEffect)


# ----------------------------------------------------------------------------------
# Attributes
# ----------------------------------------------------------------------------------


class HashableArray:
    """An array among the parameters of an equation: equal to one of equal elements."""

    def __init__(self, value: np.ndarray) -> None:
        self.val = value.copy()
        self.val.setflags(write=False)

    def __repr__(self) -> str:
        return f"HashableArray({self.val!r})"

    def __hash__(self) -> int:
        return hash((self.val.shape, self.val.dtype, self.val.tobytes()))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, HashableArray)
            and self.val.dtype == other.val.dtype
            and np.array_equal(self.val, other.val)
        )


@dataclass(frozen=True)
class FrozenDict:
    """A dict among the parameters of an equation."""

    items: tuple[tuple[str, Any], ...]

    def __repr__(self) -> str:
        return f"FrozenDict({dict(self.items)!r})"


def hashable(name: str, value: Any) -> tuple[str, Any]:
    """An attribute by its name, as a parameter of an equation.

    Raises:
      TypeError: for a value that cannot be compared, such as a list.
    """
    if isinstance(value, np.ndarray):
        return name, HashableArray(value)
    if isinstance(value, dict):
        return name, FrozenDict(hashable_items(value))
    try:
        hash(value)
    except TypeError as error:
        raise TypeError(
            f"Non-hashable keyword argument to ffi_call {name}: {value}. Attributes "
            "are numbers, strings, NumPy arrays, tuples and dicts of them."
        ) from error
    return name, value


def hashable_items(value: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Attributes by name, in the order of the names."""
    return tuple(hashable(name, value[name]) for name in sorted(value))


def attribute(name: str, value: Any) -> Any:
    """An attribute as the handler reads it: `int64_t`, `double`, `std::string_view`...

    Raises:
      TypeError: for a value of another kind.
    """
    ir = hlo.ir
    if isinstance(value, HashableArray):
        return hlo.dense(value.val)
    if isinstance(value, FrozenDict):
        return attribute(name, dict(value.items))
    if isinstance(value, dict):
        return ir.DictAttr.get({key: attribute(key, x) for key, x in value.items()})
    if isinstance(value, (tuple, list)):
        return ir.ArrayAttr.get([attribute(name, element) for element in value])
    if isinstance(value, (str, bytes)):
        return ir.StringAttr.get(value)
    if isinstance(value, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(value))
    if isinstance(value, int):
        return hlo_parts.int_attribute(value)
    if isinstance(value, float) and not isinstance(value, np.generic):
        return ir.FloatAttr.get(ir.F64Type.get(), value)
    if isinstance(value, np.dtype):
        return ir.TypeAttr.get(hlo.element_type(value))
    if isinstance(value, np.generic):
        if value.dtype.kind in "iu":
            return ir.IntegerAttr.get(hlo.element_type(value.dtype), int(value))
        if dtypes.issubdtype(value.dtype, np.floating):
            return ir.FloatAttr.get(hlo.element_type(value.dtype), float(value))
    raise TypeError(
        f"The attribute {name} is {value!r}, of {type(value)}. Attributes are "
        "numbers, strings, dtypes, NumPy arrays, tuples and dicts of them; pass arrays "
        "that are computed as arguments."
    )


# ----------------------------------------------------------------------------------
# The primitive
# ----------------------------------------------------------------------------------

ffi_call_p = language.register(language.Primitive("ffi_call", multiple_results=True))
ffi_call_p.without("meaning", "it means what the native function does")


@ffi_call_p.def_effectful_abstract_eval
def _ffi_type(*avals, result_avals: Sequence[Any], has_side_effect: bool, **_) -> tuple:
    effects = frozenset({_effect}) if has_side_effect else language.no_effects
    return list(result_avals), effects


_no_derivative = refusal(
    "The FFI call to `{target_name}` cannot be differentiated: minijax cannot see "
    "what the native function computes. Wrap it in `custom_jvp` or `custom_vjp`, whose "
    "rule may be another FFI call."
)
ffi_call_p.def_jvp_rule(_no_derivative)
ffi_call_p.def_transpose(_no_derivative)


@ffi_call_p.def_batch
def _ffi_batch(axis_data, args, dims, **params) -> tuple:
    """Call once for each example, or once for all: `vmap_method` says which."""
    method = params["vmap_method"]

    def layouts(given: Sequence[tuple[int, ...]]) -> tuple:
        """The layout with a batch axis in front, the slowest axis, which comes last."""
        return tuple((*(axis + 1 for axis in layout), 0) for layout in given)

    def for_all(batched_args: Sequence[Any], **params) -> list[Any]:
        inputs = params["input_layouts"]
        every = layouts(inputs)
        if method == "legacy_vectorized":
            every = tuple(
                old if dim is None else new
                for old, new, dim in zip(inputs, every, dims)
            )
        params["input_layouts"] = every
        params["output_layouts"] = layouts(params["output_layouts"])
        result_avals = params.pop("result_avals")
        batched = (
            language.unmapped_aval(axis_data.size, 0, aval) for aval in result_avals
        )
        return ffi_call_p.bind(*batched_args, result_avals=tuple(batched), **params)

    return callback.batch_by_method(
        ffi_call_p, axis_data.size, args, dims, method, for_all, params
    )


@ffi_call_p.def_lowering
def _ffi_lowering(ctx, *operands, target_name: str, attributes, **params) -> list[Any]:
    if not foreign_targets.is_registered(target_name, ctx.platform):
        raise errors.value_error(
            f"ffi_call: no function is registered as {target_name!r} for the platform "
            f"{ctx.platform}. Register it before the program is compiled: "
            f"register_ffi_target({target_name!r}, pycapsule(library.function), "
            f"platform={ctx.platform!r})."
        )
    rule = ffi_lowering(
        target_name,
        operand_layouts=params["input_layouts"],
        result_layouts=params["output_layouts"],
        backend_config=params["legacy_backend_config"],
        api_version=params["custom_call_api_version"],
        has_side_effect=params["has_side_effect"],
        operand_output_aliases=dict(params["input_output_aliases"]),
    )
    return rule(ctx, *operands, **dict(attributes))


# ----------------------------------------------------------------------------------
# Lowering by hand, for primitives of one's own
# ----------------------------------------------------------------------------------


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[FfiLayoutOptions] | None = None,
    result_layouts: Sequence[FfiLayoutOptions] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A lowering rule that writes a call of a native function, as one operation.

    Args:
      call_target_name: the registered name.
      operand_layouts: for each operand its axes from the fastest to the slowest, as XLA
        counts them, or a `Layout`; None: row-major.
      result_layouts: the same for the results.
      backend_config: attributes that every call has; a string for `api_version` below
        4.
      skip_ffi_layout_processing: write no layouts.
      **lowering_args: `api_version`, `has_side_effect`, `operand_output_aliases`.

    Returns:
      A function of the rule's context, the operands, and attributes by name.
    """
    unknown = set(lowering_args) - _LOWERING_ARGS
    if unknown:
        raise TypeError(
            f"ffi_lowering: keyword arguments are {', '.join(sorted(_LOWERING_ARGS))}, "
            f"got {', '.join(sorted(unknown))}."
        )
    version = lowering_args.get("api_version", 4)
    typed = version >= 4
    if typed and isinstance(backend_config, str):
        raise errors.value_error(
            "When api_version > 4, backend_config must be a dictionary; a string goes "
            "with api_version below 4."
        )

    def lower(
        ctx: lowering.LoweringRuleContext, *operands: Any, **attributes: Any
    ) -> Any:
        if attributes and not typed:
            raise errors.value_error(
                "The use of ffi_call attributes requires a custom call API version of "
                f"at least 4; got api_version={version}."
            )
        config: Any = backend_config
        if typed:
            config = dict(backend_config or {})  # type: ignore[arg-type]
            for name, value in attributes.items():
                config[name] = attribute(*hashable(name, value))
        layouts: dict[str, Any] = {"operand_layouts": None, "result_layouts": None}
        if not skip_ffi_layout_processing:
            layouts["operand_layouts"] = lowered_layouts(ctx.avals_in, operand_layouts)
            layouts["result_layouts"] = lowered_layouts(ctx.avals_out, result_layouts)
        return hlo_parts.custom_call(
            call_target_name,
            [lowering.tensor_type(aval) for aval in ctx.avals_out],
            operands,
            config,
            lowering_args.get("has_side_effect", False),
            api_version=version,
            **layouts,
            aliases=lowering_args.get("operand_output_aliases") or {},
        )

    return lower


_LOWERING_ARGS = {"api_version", "has_side_effect", "operand_output_aliases"}


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[FfiLayoutOptions] | None = None,
    result_layouts: Sequence[FfiLayoutOptions] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., list[Any]]:
    """A lowering rule that calls a native function, for a primitive of one's own.

    Arguments as for `build_ffi_lowering_function`; this rule returns the results.
    """
    lower = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )

    def rule(
        ctx: lowering.LoweringRuleContext, *operands: Any, **attributes: Any
    ) -> list:
        return list(lower(ctx, *operands, **attributes).results)

    return rule


def lowered_layouts(
    avals: Sequence[Any], layouts: Sequence[FfiLayoutOptions] | None
) -> list[tuple[int, ...]]:
    """For each array its axes from the fastest to the slowest."""
    given = [None] * len(avals) if layouts is None else layouts
    return [
        fastest_first(aval, layout) for aval, layout in zip(avals, given, strict=True)
    ]


def fastest_first(aval: Any, layout: FfiLayoutOptions) -> tuple[int, ...]:
    """The axes of an array from the fastest to the slowest, as XLA counts them.

    A `Layout` counts the other way round; a sequence is taken as it is.
    """
    if layout is None:
        return tuple(reversed(range(_rank(aval))))
    if isinstance(layout, Layout):
        if layout.tiling:
            raise errors.value_error("The FFI does not support layouts with tiling.")
        return tuple(reversed(layout.major_to_minor))
    return tuple(layout)


def _rank(aval: Any) -> int:
    """The dimensions that a handler sees; a token has none."""
    return 0 if aval is abstract_token else len(language.physical_aval(aval).shape)


# ----------------------------------------------------------------------------------
# ffi_call
# ----------------------------------------------------------------------------------


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[FfiLayoutOptions] | None = None,
    output_layouts: FfiLayoutOptions | Sequence[FfiLayoutOptions] | None = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function that calls a native function by its registered name.

    Args:
      target_name: the name given to `register_ffi_target`.
      result_shape_dtypes: an object with `shape` and `dtype`, such as
        `ShapeDtypeStruct`, or a sequence of them: what the handler writes.
      has_side_effect: whether it must be called even if its results are unused.
      vmap_method: what happens under `vmap`, as for `pure_callback`; None:
        NotImplementedError then.
      input_layouts: for each argument its axes from the slowest to the fastest, or a
        `Layout`; None: row-major. XLA copies an argument that lies otherwise.
      output_layouts: the same for the results.
      input_output_aliases: {argument: result} for results that the handler writes over
        an argument.
      custom_call_api_version: 4 is the typed interface.
      legacy_backend_config: a string for interfaces before 4, in the place of
        attributes.

    Returns:
      A function of arrays; its keyword arguments are the attributes of the call. It
      returns an Array, or for a sequence of types a list or tuple of them.

    Raises:
      ValueError: for an unknown `vmap_method`; for layouts or aliases that do not fit;
        when it is differentiated; when no function of this name is registered.
      TypeError: for an attribute of a kind that handlers cannot read.
      JaxRuntimeError: when the handler reports an error.
    """
    callback.check_vmap_method(vmap_method)
    several = isinstance(result_shape_dtypes, Sequence)
    kinds = list(result_shape_dtypes) if several else [result_shape_dtypes]
    result_avals = tuple(_result_type(*item) for item in enumerate(kinds))
    if custom_call_api_version >= 4 and legacy_backend_config is not None:
        raise errors.value_error(
            "The use of the legacy_backend_config parameter requires "
            f"custom_call_api_version < 4; got {custom_call_api_version}."
        )
    of_results: Any = output_layouts if several else (output_layouts,)

    def call(*args: Any, **attributes: Any) -> Any:
        in_avals = [language.get_aval(arg) for arg in args]
        inputs = _layouts_of("input", in_avals, input_layouts)
        outputs = _layouts_of("output", result_avals, of_results)
        results = ffi_call_p.bind(
            *args,
            result_avals=result_avals,
            vmap_method=vmap_method,
            target_name=target_name,
            has_side_effect=has_side_effect,
            input_layouts=inputs,
            output_layouts=outputs,
            input_output_aliases=_aliases(
                input_output_aliases or {}, in_avals, result_avals, inputs, outputs
            ),
            custom_call_api_version=custom_call_api_version,
            legacy_backend_config=legacy_backend_config,
            attributes=hashable_items(attributes),
        )
        if not several:
            return results[0]
        return tuple(results) if isinstance(result_shape_dtypes, tuple) else results

    return call


def _result_type(position: int, kind: Any) -> Any:
    """The type of one result; that of a token if the caller declares a token."""
    if kind is abstract_token:
        return kind
    if not (hasattr(kind, "shape") and hasattr(kind, "dtype")):
        raise errors.value_error(
            "All elements of result_shape_dtypes must have 'shape' and 'dtype', as "
            f"ShapeDtypeStruct((3,), 'float32') has. Got {kind!r} at position "
            f"{position}."
        )
    return language.ShapedArray(kind.shape, np.dtype(kind.dtype))


def _layouts_of(
    which: str, avals: Sequence[Any], layouts: Sequence[FfiLayoutOptions] | None
) -> tuple[tuple[int, ...], ...]:
    """For each array its axes from the fastest to the slowest; ValueError if wrong."""
    if layouts is None:
        return tuple(fastest_first(aval, None) for aval in avals)
    if len(layouts) != len(avals):
        arrays = "input arguments" if which == "input" else "outputs"
        raise errors.value_error(
            f"The number of {arrays} ({len(avals)}) must equal the number of {which} "
            f"layouts ({len(layouts)})."
        )
    found = []
    for position, (aval, layout) in enumerate(zip(avals, layouts)):
        axes = layout if layout is None or isinstance(layout, Layout) else tuple(layout)
        rank = _rank(aval)
        if isinstance(axes, tuple):
            if sorted(axes) != list(range(rank)):
                raise errors.value_error(
                    f"{which}_layouts[{position}] is {axes}, and must name each of the "
                    f"{rank} axes of {aval.str_short()} once, the slowest first."
                )
            found.append(tuple(reversed(axes)))
        else:
            found.append(fastest_first(aval, axes))
    return tuple(found)


def _aliases(
    aliases: Mapping[int, int],
    in_avals: Sequence[Any],
    out_avals: Sequence[language.ShapedArray],
    in_layouts: Sequence[tuple[int, ...]],
    out_layouts: Sequence[tuple[int, ...]],
) -> tuple[tuple[int, int], ...]:
    """Pairs of an argument and the result written over it; ValueError if wrong."""
    found = []
    for source, target in sorted(aliases.items()):
        pair, given, made = aliased(source, target, in_avals, out_avals)
        if (given.shape, given.dtype) != (made.shape, made.dtype):
            raise errors.value_error(
                f"{pair} referring to an input with abstract value {given} and an "
                f"output with a different abstract value {made}."
            )
        if in_layouts[source] != out_layouts[target]:
            raise errors.value_error(
                f"{pair} referring to an input with layout {in_layouts[source]} and an "
                f"output with a different layout {out_layouts[target]}."
            )
        found.append((int(source), int(target)))
    return tuple(found)


def aliased(
    source: int, target: int, in_avals: Sequence[Any], out_avals: Sequence[Any]
) -> tuple[str, Any, Any]:
    """An entry of `input_output_aliases`: (its name in messages, both types).

    ValueError for an input or an output that is not there.
    """
    pair = f"input_output_aliases contains the mapping '{source}:{target}'"
    for what, index, avals in (
        ("input", source, in_avals),
        ("output", target, out_avals),
    ):
        if not 0 <= index < len(avals):
            raise errors.value_error(
                f"{pair} with {what} index {index} outside the range [0, {len(avals)})."
            )
    return pair, in_avals[source], out_avals[target]
