"""Primitives, programs and traces, under JAX's names.

A primitive is made with `Primitive(name)`, told what it computes (`def_impl`) and what
types it gives (`def_abstract_eval`), and gets its other rules through the tables in
`minijax.core.autodiff`, `batching` and `mlir`. A transformation of programs reads
`make_jaxpr(f)(*args).jaxpr.eqns` and binds `eqn.primitive` again.

In JAX: `jax.extend.core`.
"""

# isort: skip_file
# fmt: off
from minijax.core.check import check_jaxpr
from minijax.core.language import (
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Primitive,
    TraceTag,
    Var,
    jaxprs_in_params,
    mapped_aval,
    no_effects,
    set_current_trace,
    unmapped_aval,
    valid_jaxtype,
)
from minijax.values.concrete import concrete_or_error
from minijax.values.inner_programs import jaxpr_as_fun
from minijax.values.ref_avals import AbstractToken
from minijax.core.effects import Effect
from minijax.core.errors import JaxprTypeError
from minijax.support.special_errors import (
    InconclusiveDimensionOperation as _Inconclusive,
)
from minijax.extend.core import primitives
from minijax.extend.core.programs import (
    Effects, array_types, gensym, new_jaxpr_eqn, primal_dtype_to_tangent_dtype,
    safe_map, safe_zip, subjaxprs,
)
from minijax.extend.core.traces import (
    find_top_trace, get_opaque_trace_state,
    nonempty_axis_env as nonempty_axis_env_DO_NOT_USE, take_current_trace,
    unsafe_am_i_under_a_jit as unsafe_am_i_under_a_jit_DO_NOT_USE,
    unsafe_am_i_under_a_vmap as unsafe_am_i_under_a_vmap_DO_NOT_USE,
    unsafe_get_axis_names as unsafe_get_axis_names_DO_NOT_USE,
)
# fmt: on

InconclusiveDimensionOperation = _Inconclusive
