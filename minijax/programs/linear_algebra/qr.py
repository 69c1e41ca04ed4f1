"""QR, and the Householder reflections that it is made of.

`geqrf` leaves R above the diagonal, and below it the vectors v of the reflections
`1 - tau v vᴴ` whose product is Q; `householder_product` multiplies them out, `ormqr`
applies them.

In JAX: `lax/linalg.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.core.language import get_aval, min_dim
from minijax.core.lowering import tensor_type
from minijax.core.rules import Shape, complexes, floats, ints, zero_tangent_of
from minijax.primitives.families import lower_fun
from minijax.primitives.shape import broadcasting
from minijax.primitives.shape.joining import concatenate
from minijax.primitives.shape.padding import pad
from minijax.primitives.shape.squeezing import expand_dims
from minijax.programs.control_flow.fori_loops import fori_loop
from minijax.programs.linear_algebra.decompositions import INT32, Native, decomposition
from minijax.programs.linear_algebra.lu import lu, lu_solve
from minijax.programs.linear_algebra.matrices import (
    adjoint,
    conjugate,
    eye,
    matmul,
    tril,
    triu,
)
from minijax.programs.linear_algebra.triangular import triangular_solve

_INEXACT = floats | complexes

# ----------------------------------------------------------------------------------
# Reflections
# ----------------------------------------------------------------------------------

geqrf_p = decomposition(
    "geqrf",
    lambda shape: [shape, (min_dim(*shape),)],
    lambda dtype: [dtype, dtype],
    cpu=Native("geqrf", fails=False),
    cuda=Native("cusolver_geqrf_ffi", fails=False),
)

geqp3_p = decomposition(
    "geqp3",
    lambda shape, chosen, **_: [shape, chosen, (min_dim(*shape),)],
    lambda dtype, **_: [dtype, INT32, dtype],
    ranks=(2, 1),
    accepted=[_INEXACT, ints],
    cpu=Native("geqp3", fails=False, aliases=((0, 0), (1, 1))),
    cuda=Native(
        "cuhybrid_geqp3",
        lambda aval, use_magma: {"magma": "on" if use_magma else "off"},
        fails=False,
        aliases=((0, 0), (1, 1)),
    ),
)


def _product_shape(a: Shape, taus: Shape) -> Shape:
    if a[0] < a[1]:
        raise ValueError(
            "The first argument to householder_product must have at least as many rows "
            f"as columns, got shape {a}."
        )
    if taus[0] > a[1]:
        raise ValueError(
            "householder_product takes at most one factor for each column of its first "
            f"argument, got shapes {a} and {taus}."
        )
    return a


householder_product_p = decomposition(
    "householder_product",
    _product_shape,
    ranks=(2, 1),
    cpu=Native(("orgqr", "ungqr"), fails=False),
    cuda=Native("cusolver_orgqr_ffi", fails=False),
)


def _xla_call(target: str) -> Any:
    def lower(ctx, *operands) -> Any:
        types = [tensor_type(aval) for aval in ctx.avals_out]
        call = hlo_parts.custom_call(target, types, operands, "", api_version=1)
        return list(call.results)

    return lower


geqrf_p.def_lowering(_xla_call("Qr"))
householder_product_p.def_lowering(
    _xla_call("ProductOfElementaryHouseholderReflectors")
)


def _ormqr_shape(
    a: Shape, taus: Shape, c: Shape, *, left: bool, transpose: bool
) -> Shape:
    if c[0 if left else 1] != a[0]:
        kind = "rows" if left else "columns"
        raise ValueError(
            f"ormqr with left={left} expects c to have as many {kind} as the matrix of "
            f"reflections has rows, got shapes {a} and {c}."
        )
    if taus[0] > min_dim(*a):
        raise ValueError(f"ormqr got more factors than reflections: {taus} for {a}.")
    return c


def _own_params(aval: Any, **params: Any) -> dict[str, Any]:
    return params


ormqr_p = decomposition(
    "ormqr",
    _ormqr_shape,
    ranks=(2, 1, 2),
    cpu=Native(("ormqr", "unmqr"), _own_params, fails=False, aliases=((2, 0),)),
    cuda=Native("cusolver_ormqr_ffi", _own_params, fails=False, aliases=((2, 0),)),
)
for _primitive in (geqrf_p, geqp3_p, householder_product_p, ormqr_p):
    _primitive.without("jvp transpose", "JAX has none either: differentiate `qr`")


def _reflected(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    """The reflections one by one, where there is no native function."""
    *batch, rows, _ = a.shape
    count = taus.shape[-1]
    vectors = tril(a[..., :count], -1) + eye(a.dtype, rows, count)
    factors = conjugate(taus) if transpose else taus

    def reflect(i: Any, c: Any) -> Any:
        place = count - 1 - i if left != transpose else i
        v = expand_dims(vectors[..., place], (-1,))
        tau = expand_dims(factors[..., place], (-1, -2))
        if left:
            return c - tau * matmul(v, matmul(adjoint(v), c))
        return c - tau * matmul(matmul(c, v), adjoint(v))

    return fori_loop(0, count, reflect, c)


ormqr_p.def_lowering(lower_fun(_reflected))


def geqrf(a: Any) -> tuple[Any, Any]:
    """R, the reflections, and their factors [..., min(m, n)], for a [..., m, n]."""
    return tuple(geqrf_p.bind(a))  # type: ignore[return-value]


def householder_product(a: Any, taus: Any) -> Any:
    """Q [..., m, n] from the reflections in a [..., m, n] and their factors [..., k].

    Raises ValueError if m < n or k > n.
    """
    return householder_product_p.bind(a, taus)


def ormqr(
    a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False
) -> Any:
    """`Q c`, or `c Q` without `left`, or with Qᴴ, and Q is never written out.

    Args:
      a: the reflections [..., m, n], as `qr`'s mode "raw" gives them, transposed.
      taus: their factors [..., k].
      c: [..., m, p] with `left`, else [..., p, m].
    """
    return ormqr_p.bind(a, taus, c, left=left, transpose=transpose)


# ----------------------------------------------------------------------------------
# qr
# ----------------------------------------------------------------------------------


def _qr_shapes(shape: Shape, *, pivoting: bool, full_matrices: bool, **_) -> list:
    rows, columns = shape
    size = rows if full_matrices else min_dim(rows, columns)
    return [(rows, size), (size, columns), *([(columns,)] if pivoting else [])]


qr_p = decomposition(
    "qr",
    _qr_shapes,
    lambda dtype, pivoting, **_: [dtype, dtype, *([INT32] if pivoting else [])],
)


def _thin_tangent(q: Any, r: Any, dx: Any) -> tuple[Any, Any]:
    """The tangents of q [..., m, n] and r [..., n, n], m >= n.

    With W = Qᴴ dA R⁻¹ and its strict lower triangle l: Ω = l - lᴴ + i Im diag W,
    dQ = Q (Ω - W) + dA R⁻¹, dR = (W - Ω) R. J. Townsend, Differentiating the QR
    decomposition (2018).
    """
    outer = triangular_solve(r, dx)
    inner = adjoint(q) @ outer
    lower = tril(inner, -1)
    skew = lower - adjoint(lower)
    ones = expand_dims(eye(skew.dtype, r.shape[-1]), range(inner.ndim - 2))
    skew = skew + ones * (inner - inner.real.astype(inner.dtype))
    return q @ (skew - inner) + outer, (inner - skew) @ r


@qr_p.def_jvp_rule
def _qr_jvp(primals, tangents, *, pivoting, full_matrices, **params) -> tuple:
    (x,), (dx,) = primals, tangents
    out = qr_p.bind(x, pivoting=pivoting, full_matrices=full_matrices, **params)
    q, r, *chosen = out
    rows, columns = x.shape[-2:]
    if pivoting:  # the columns of x in their new order
        places = expand_dims(chosen[0], (-2,))
        x, dx = (_take_columns(y, places) for y in (x, dx))
    if rows < columns:
        dq, left = _thin_tangent(q, r[..., :rows], dx[..., :rows])
        right = adjoint(dq) @ x[..., rows:] + adjoint(q) @ dx[..., rows:]
        dr = concatenate((left, right), x.ndim - 1)
    else:
        dq, dr = _thin_tangent(q[..., :columns], r[..., :columns, :], dx)
        if full_matrices and rows > columns:
            dq = concatenate((dq, _tangent_of_rest(q, dq)), x.ndim - 1)
            zeros = (*x.shape[:-2], rows - columns, columns)
            dr = concatenate((dr, broadcasting.full(zeros, 0, x.dtype)), x.ndim - 2)
    return out, [dq, dr, *map(zero_tangent_of, chosen)]


def _take_columns(x: Any, places: Any) -> Any:
    """Columns of each matrix by its own places [..., 1, n]."""
    size = get_aval(x).shape[-1]
    one_hot = broadcasting.broadcasted_iota(
        np.int32, (*places.shape[:-2], size, size), places.ndim - 2
    )
    return matmul(x, (one_hot == places).astype(x.dtype))


def _tangent_of_rest(q: Any, dq: Any) -> Any:
    """The tangent of the columns that complete Q, in the gauge of the reflections.

    With Z = Q_p (Q_n - 1)⁻¹ of rows n and p of the first columns: dQ₂ = dQ Zᴴ -
    (Q₁ + Q₂ Z)(dQ_p - Z dQ_n)ᴴ. S. Roberts, L. Roberts, QR and LQ decomposition matrix
    backpropagation, arXiv:2409.13374.
    """
    columns = dq.shape[-1]
    first, rest = q[..., :columns], q[..., columns:]
    top, bottom = first[..., :columns, :], first[..., columns:, :]
    ones = expand_dims(eye(q.dtype, columns), range(q.ndim - 2))
    factors, _, permutation = lu(top - ones)
    z_adjoint = lu_solve(factors, permutation, adjoint(bottom), trans=2)
    z = adjoint(z_adjoint)
    moved = dq[..., columns:, :] - z @ dq[..., :columns, :]
    return dq @ z_adjoint - (first + rest @ z) @ adjoint(moved)


def _qr(a: Any, *, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> list:
    *batch, rows, columns = a.shape
    chosen: list[Any] = []
    start = broadcasting.full((*batch, columns), 0, np.int32)
    if 0 in (rows, columns):
        size = rows if full_matrices else 0
        q = eye(a.dtype, rows, size, batch)
        r = broadcasting.full((*batch, size, columns), 0, a.dtype)
        return [q, r, start] if pivoting else [q, r]
    if pivoting:
        r, places, taus = geqp3_p.bind(a, start, use_magma=use_magma)
        chosen = [places - np.int32(1)]  # LAPACK counts from one
    else:
        r, taus = geqrf(a)
    if rows < columns:
        q = householder_product(r[..., :rows], taus)
    elif full_matrices:
        beside = [(0, 0, 0)] * (a.ndim - 1) + [(0, rows - columns, 0)]
        q = householder_product(pad(r, np.array(0, r.dtype)[()], beside), taus)
    else:
        q, r = householder_product(r, taus), r[..., :columns, :]
    return [q, triu(r), *chosen]


qr_p.def_lowering(lower_fun(_qr))


def qr(
    x: Any,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple:
    """`x = Q R`, Q with orthonormal columns and R upper triangular.

    Args:
      x: [..., m, n].
      pivoting: exchange columns so that the diagonal of R falls; a third result holds
        their places [..., n].
      full_matrices: Q [..., m, m] and R [..., m, n]; else with min(m, n) for the inner
        size.
      use_magma: on a GPU, use MAGMA to pivot.
    """
    params = {"full_matrices": full_matrices, "use_magma": use_magma}
    return tuple(qr_p.bind(x, pivoting=pivoting, **params))
