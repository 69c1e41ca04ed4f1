"""The operators of arrays, for type checkers.

At run time files above `core/array.py` put them on `Array`, as functions that they
make from tables; a type checker sees this class as the base of `Array`.
"""

from __future__ import annotations

from typing import Any, cast


class Operators:
    """Attributes of every array beside the methods that `Array` defines."""

    def __getattr__(self, name: str) -> Any: ...

    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = cast(Any, None)
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = cast(Any, None)
    __mod__ = __pow__ = __matmul__ = __divmod__ = cast(Any, None)
    __rmod__ = __rpow__ = __rmatmul__ = __rdivmod__ = cast(Any, None)
    __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = cast(Any, None)
    __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = cast(Any, None)
    __neg__ = __pos__ = __abs__ = __invert__ = cast(Any, None)
    __lt__ = __le__ = __gt__ = __ge__ = cast(Any, None)
    __getitem__ = __iter__ = __reversed__ = cast(Any, None)
