"""checkify: errors that depend on values, in programs that have no exceptions.

A compiled program cannot raise. `checkify(f)` turns `f` into a function that also
returns an `Error`: whether a check failed, which one, and the values that its message
shows. The checks are the user's own (`check(x > 0, "x is {x}", x=x)`), or added to
every operation that can go wrong: NaN, division by zero, an index out of bounds.

    err, y = jit(checkify(f, errors=float_checks))(x)
    err.throw()

It is an interpreter over jaxprs. `interpreter.py` walks the equations and carries an
`Error` along; a table says what is checked beside each primitive (`first_order.py`),
and how the error passes through primitives that carry programs (`programs.py`).
`error_values.py` has the `Error` and the exceptions that it can become.

In JAX: `jax/_src/checkify.py`, `jax.experimental.checkify`.
"""

from minijax.checkify import first_order as _first_order
from minijax.checkify import programs as _programs
from minijax.checkify.checking import check as check
from minijax.checkify.checking import check_error as check_error
from minijax.checkify.checking import check_p as check_p
from minijax.checkify.checking import debug_check as debug_check
from minijax.checkify.error_values import DivisionByZeroError as DivisionByZeroError
from minijax.checkify.error_values import Error as Error
from minijax.checkify.error_values import FailedCheckError as FailedCheckError
from minijax.checkify.error_values import JaxException as JaxException
from minijax.checkify.error_values import JaxRuntimeError as JaxRuntimeError
from minijax.checkify.error_values import NaNError as NaNError
from minijax.checkify.error_values import OOBError as OOBError
from minijax.checkify.error_values import all_checks as all_checks
from minijax.checkify.error_values import automatic_checks as automatic_checks
from minijax.checkify.error_values import div_checks as div_checks
from minijax.checkify.error_values import float_checks as float_checks
from minijax.checkify.error_values import index_checks as index_checks
from minijax.checkify.error_values import init_error as init_error
from minijax.checkify.error_values import nan_checks as nan_checks
from minijax.checkify.error_values import user_checks as user_checks
from minijax.checkify.interpreter import checkify as checkify
from minijax.checkify.interpreter import error_checks as error_checks
