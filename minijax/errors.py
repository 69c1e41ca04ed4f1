"""The errors that users meet. In JAX: `jax.errors`."""

from minijax.core.errors import ConcretizationTypeError as ConcretizationTypeError
from minijax.core.errors import JaxprTypeError as JaxprTypeError
from minijax.core.errors import JaxRuntimeError as JaxRuntimeError
from minijax.core.errors import JAXTypeError as JAXTypeError
from minijax.core.errors import TracerArrayConversionError as TracerArrayConversionError
from minijax.core.errors import TracerBoolConversionError as TracerBoolConversionError
from minijax.core.errors import UnexpectedTracerError as UnexpectedTracerError
from minijax.support.special_errors import (
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
)
from minijax.support.special_errors import JAXIndexError as JAXIndexError
from minijax.support.special_errors import KeyReuseError as KeyReuseError
from minijax.support.special_errors import (
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
)
from minijax.support.special_errors import (
    TracerIntegerConversionError as TracerIntegerConversionError,
)
