"""The errors that users meet. In JAX: `jax.errors`."""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.core.errors import (
    ConcretizationTypeError, JaxprTypeError, JaxRuntimeError, JAXTypeError,
    TracerArrayConversionError, TracerBoolConversionError, UnexpectedTracerError,
)
from minijax.support.special_errors import (
    InconclusiveDimensionOperation, JAXIndexError, KeyReuseError,
    NonConcreteBooleanIndexError, TracerIntegerConversionError,
)
