"""The errors that users meet. In JAX: `jax.errors`."""

from minijax.support.errors import ConcretizationTypeError as ConcretizationTypeError
from minijax.support.errors import JaxprTypeError as JaxprTypeError
from minijax.support.errors import JaxRuntimeError as JaxRuntimeError
from minijax.support.errors import JAXTypeError as JAXTypeError
from minijax.support.errors import (
    TracerArrayConversionError as TracerArrayConversionError,
)
from minijax.support.errors import (
    TracerBoolConversionError as TracerBoolConversionError,
)
from minijax.support.errors import UnexpectedTracerError as UnexpectedTracerError
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
