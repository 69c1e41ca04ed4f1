"""A program with its constants, checked."""

from minijax.core.check import check_jaxpr
from minijax.core.errors import JaxprTypeError
from minijax.core.language import ClosedJaxpr, get_aval, typecompat


def check_closed_jaxpr(closed: ClosedJaxpr) -> None:
    """`check_jaxpr`, and that the constants have the types of the constvars."""
    check_jaxpr(closed.jaxpr)
    for var, const in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        actual = get_aval(const)
        if not typecompat(var.aval, actual):
            raise JaxprTypeError(
                f"a constant of type {actual} is bound to a constvar of type {var.aval}"
            )
