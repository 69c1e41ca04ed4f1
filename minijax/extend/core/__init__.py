"""Primitives, programs and traces, under JAX's names.

A primitive is made with `Primitive(name)`, told what it computes (`def_impl`) and what
types it gives (`def_abstract_eval`), and gets its other rules through the tables in
`minijax.interpreters.ad`, `batching` and `mlir`. A transformation of programs reads
`make_jaxpr(f)(*args).jaxpr.eqns` and binds `eqn.primitive` again.

In JAX: `jax.extend.core`.
"""

from minijax.check import check_jaxpr as check_jaxpr
from minijax.core import AbstractToken as AbstractToken
from minijax.core import ClosedJaxpr as ClosedJaxpr
from minijax.core import DebugInfo as DebugInfo
from minijax.core import DropVar as DropVar
from minijax.core import Jaxpr as Jaxpr
from minijax.core import JaxprEqn as JaxprEqn
from minijax.core import Literal as Literal
from minijax.core import Primitive as Primitive
from minijax.core import TraceTag as TraceTag
from minijax.core import Var as Var
from minijax.core import concrete_or_error as concrete_or_error
from minijax.core import jaxpr_as_fun as jaxpr_as_fun
from minijax.core import jaxprs_in_params as jaxprs_in_params
from minijax.core import mapped_aval as mapped_aval
from minijax.core import no_effects as no_effects
from minijax.core import set_current_trace as set_current_trace
from minijax.core import unmapped_aval as unmapped_aval
from minijax.core import valid_jaxtype as valid_jaxtype
from minijax.effects import Effect as Effect
from minijax.errors import InconclusiveDimensionOperation as _Inconclusive
from minijax.errors import JaxprTypeError as JaxprTypeError
from minijax.extend.core import primitives as primitives
from minijax.extend.core.programs import Effects as Effects
from minijax.extend.core.programs import array_types as array_types
from minijax.extend.core.programs import gensym as gensym
from minijax.extend.core.programs import new_jaxpr_eqn as new_jaxpr_eqn
from minijax.extend.core.programs import (
    primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype,
)
from minijax.extend.core.programs import safe_map as safe_map
from minijax.extend.core.programs import safe_zip as safe_zip
from minijax.extend.core.programs import subjaxprs as subjaxprs
from minijax.extend.core.traces import find_top_trace as find_top_trace
from minijax.extend.core.traces import get_opaque_trace_state as get_opaque_trace_state
from minijax.extend.core.traces import nonempty_axis_env as nonempty_axis_env_DO_NOT_USE
from minijax.extend.core.traces import take_current_trace as take_current_trace
from minijax.extend.core.traces import (
    unsafe_am_i_under_a_jit as unsafe_am_i_under_a_jit_DO_NOT_USE,
)
from minijax.extend.core.traces import (
    unsafe_am_i_under_a_vmap as unsafe_am_i_under_a_vmap_DO_NOT_USE,
)
from minijax.extend.core.traces import (
    unsafe_get_axis_names as unsafe_get_axis_names_DO_NOT_USE,
)

InconclusiveDimensionOperation = _Inconclusive
