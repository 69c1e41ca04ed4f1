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

# isort: skip_file
# fmt: off
from minijax.experimental.checkify import first_order as _first_order
from minijax.experimental.checkify import checked_programs as _programs
from minijax.experimental.checkify.checking import (
    check, check_error, check_p, debug_check,
)
from minijax.experimental.checkify.error_values import (
    DivisionByZeroError, Error, ErrorCategory, FailedCheckError, JaxException,
    JaxRuntimeError, NaNError, OOBError, all_checks, automatic_checks, div_checks,
    float_checks, index_checks, init_error, nan_checks, user_checks,
)
from minijax.experimental.checkify.checking_interpreter import checkify, error_checks
