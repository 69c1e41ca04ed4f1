"""`minijax.checkify` under the name that it has in JAX.

In JAX: `jax.experimental.checkify`.
"""

from minijax.checkify import DivisionByZeroError as DivisionByZeroError
from minijax.checkify import Error as Error
from minijax.checkify import FailedCheckError as FailedCheckError
from minijax.checkify import JaxRuntimeError as JaxRuntimeError
from minijax.checkify import NaNError as NaNError
from minijax.checkify import OOBError as OOBError
from minijax.checkify import all_checks as all_checks
from minijax.checkify import automatic_checks as automatic_checks
from minijax.checkify import check as check
from minijax.checkify import check_error as check_error
from minijax.checkify import checkify as checkify
from minijax.checkify import debug_check as debug_check
from minijax.checkify import div_checks as div_checks
from minijax.checkify import float_checks as float_checks
from minijax.checkify import index_checks as index_checks
from minijax.checkify import init_error as init_error
from minijax.checkify import nan_checks as nan_checks
from minijax.checkify import user_checks as user_checks
