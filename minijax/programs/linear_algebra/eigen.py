"""Eigenvalues and singular values.

In JAX: `lax/linalg.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.backend import lapack
from minijax.core import arithmetic as elementwise
from minijax.core import shaping
from minijax.core.language import ShapedArray, min_dim
from minijax.core.rules import Shape
from minijax.primitives.elementwise import complex_numbers
from minijax.primitives.reduce.reductions import argmax
from minijax.primitives.shape import broadcasting
from minijax.primitives.shape.squeezing import expand_dims, index_of
from minijax.programs.linear_algebra.decompositions import (
    Native,
    call_native,
    decomposition,
    empty,
    info_of,
    letter,
    nan_where_failed,
    square,
    triangle,
)
from minijax.programs.linear_algebra.lu import solve
from minijax.programs.linear_algebra.matrices import (
    adjoint,
    complex_dtype,
    conjugate,
    diagonal,
    diagonal_matrix,
    eye,
    is_complex,
    matmul,
    pair,
    real_dtype,
    symmetrized,
    transposed,
)
from minijax.support.config import default_matmul_precision


class EigImplementation(enum.Enum):
    """Which library decomposes general matrices on a GPU."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """How symmetric matrices are decomposed."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """How singular values are computed."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def _inverse_gaps(w: Any, exponent: bool) -> Any:
    """F with 1 / (w_j - w_i) in row i and column j, zeros on the diagonal."""
    ones = eye(w.dtype, w.shape[-1])
    gaps = ones + w[..., None, :] - w[..., None]
    if exponent:
        return elementwise.integer_pow(gaps, -1) - ones
    return elementwise.div(np.array(1, w.dtype)[()], gaps) - ones


def _count(subset: Any, size: int) -> int:
    """How many values `subset_by_index` asks for: all unless it is given."""
    if subset is None:
        return size
    first, end = pair("subset_by_index is a pair (first, end)", subset)
    return index_of(end, "subset_by_index") - index_of(first, "subset_by_index")


def _all_of(subset: Any, size: int, what: str) -> None:
    if subset is not None and tuple(subset) != (0, size):
        raise NotImplementedError(
            f"subset_by_index is not supported on CPU and GPU: {what} gives all "
            "values; take a slice of the result."
        )


# ----------------------------------------------------------------------------------
# eigh
# ----------------------------------------------------------------------------------


def _eigh_shapes(shape: Shape, *, subset_by_index, **_) -> list[Shape]:
    count = _count(subset_by_index, square("eigh", shape)[0])
    return [(shape[0], count), (count,)]


def _eigh_options(platform: str) -> Callable[..., dict[str, Any]]:
    order = [None, EighImplementation.QR, EighImplementation.JACOBI]
    known = order[:2] if platform == "cpu" else order

    def options(aval, *, lower, subset_by_index, algorithm, **_) -> dict[str, Any]:
        _all_of(subset_by_index, aval.shape[-1], "eigh")
        if algorithm not in known:
            raise NotImplementedError(
                f"eigh: implementation={algorithm} is not supported on {platform}: "
                "leave it out."
            )
        if platform == "cpu":
            return {"mode": letter("V"), **triangle(lower)}
        return {"lower": lower, "algorithm": np.uint8(order.index(algorithm))}

    return options


eigh_p = decomposition(
    "eigh",
    _eigh_shapes,
    lambda dtype, **_: [dtype, real_dtype(dtype)],
    cpu=Native(("syevd", "heevd"), _eigh_options("cpu")),
    cuda=Native("cusolver_syevd_ffi", _eigh_options("cuda")),
)


@eigh_p.def_jvp_rule
def _eigh_jvp(primals, tangents, **params) -> tuple:
    """With B = Vᴴ dA V: dw = diag B, dV = V (F ∘ B), F_ij = 1 / (w_j - w_i).

    M. Giles, An extended collection of matrix derivative results (2008), section 3.1.
    """
    (a,), (da,) = primals, tangents
    subset = params["subset_by_index"]
    if subset is not None and tuple(subset) != (0, a.shape[-1]):
        raise NotImplementedError(
            "Derivatives not defined for partial eigen decomposition: slice a full one."
        )
    v, w = eigh_p.bind(symmetrized(a), **params)
    inverse_gaps = _inverse_gaps(w.astype(a.dtype), True)
    inner = matmul(matmul(adjoint(v), da), v)
    return [v, w], [matmul(v, inverse_gaps * inner), diagonal(inner.real)]


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Any, Any]:
    """(eigenvectors as columns, eigenvalues in ascending order).

    Args:
      x: symmetric or Hermitian matrices [..., n, n].
      lower: which triangle is read, without `symmetrize_input`.
      symmetrize_input: take half of x and its adjoint first.
      sort_eigenvalues: on a CPU and a GPU they always are.
      subset_by_index: the first and the end of the eigenvalues that are wanted; other
        than all, no platform here has it.
      implementation: on a GPU `QR` or `JACOBI`.
    """
    v, w = eigh_p.bind(
        symmetrized(x) if symmetrize_input else x,
        lower=lower,
        sort_eigenvalues=sort_eigenvalues,
        subset_by_index=subset_by_index,
        algorithm=implementation,
    )
    return v, w


# ----------------------------------------------------------------------------------
# eig
# ----------------------------------------------------------------------------------


def _sides(
    compute_left_eigenvectors: bool, compute_right_eigenvectors: bool, **_
) -> int:
    return compute_left_eigenvectors + compute_right_eigenvectors


eig_p = decomposition(
    "eig",
    lambda shape, **params: [square("eig", shape)[:1], *[shape] * _sides(**params)],
    lambda dtype, **params: [complex_dtype(dtype)] * (1 + _sides(**params)),
)


@eig_p.def_jvp_rule
def _eig_jvp(primals, tangents, *, enable_eigvec_derivs: bool, **params) -> tuple:
    """With P = V⁻¹ dA V: dw = diag P, and dV = V (F ∘ P) up to a factor."""
    (a,), (da,) = primals, tangents
    left, right = (params[f"compute_{s}_eigenvectors"] for s in ("left", "right"))
    if (left or right) and not enable_eigvec_derivs:
        raise NotImplementedError(
            "Derivatives of eigenvectors of general matrices hold only for distinct "
            "eigenvalues, and where one entry of each vector is the largest, which "
            "cannot be checked while tracing. If it is so, give "
            "`enable_eigvec_derivs=True` to `lax.linalg.eig`."
        )
    params["compute_right_eigenvectors"] = True
    w, *vectors = eig_p.bind(a, enable_eigvec_derivs=enable_eigvec_derivs, **params)
    v = vectors[-1]
    da = shaping.convert_element_type(da, v.dtype)
    if not (left or right):
        return [w], [(solve(v, da) * transposed(v)).sum(-1)]
    dw, dv = _vectors(w, v, da)
    out, tangents_out = [w], [dw]
    if left:
        out.append(vectors[0])
        tangents_out.append(_vectors(conjugate(w), vectors[0], adjoint(da))[1])
    return ([*out, *([v] if right else [])], [*tangents_out, *([dv] if right else [])])


def _vectors(w: Any, v: Any, da: Any) -> tuple[Any, Any]:
    """Tangents of eigenvalues and vectors, of norm 1 with a real largest entry."""
    inner = matmul(solve(v, da), v)
    free = matmul(v, _inverse_gaps(w, False) * inner)
    axis = v.ndim - 2
    largest = expand_dims(argmax(abs(v), axis, np.int32), (axis,))
    rows = broadcasting.broadcasted_iota(np.int32, v.shape, axis)
    mask = shaping.convert_element_type(rows == largest, v.dtype)
    norm = -(conjugate(v) * free).sum(-2).real
    turn = -(mask * free).sum(-2).imag / (mask * v).sum(-2).real
    factor = expand_dims(complex_numbers.complex(norm, turn), (axis,))
    return diagonal(inner), free + v * factor


def _eig_lowering(ctx, a, *, implementation, enable_eigvec_derivs, **params) -> list:
    aval, outs = ctx.avals_in[0], list(ctx.avals_out)
    on_cpu = ctx.platform == "cpu"
    if implementation not in (None, EigImplementation.LAPACK) and on_cpu:
        raise ValueError("Only the lapack implementation is supported on CPU.")
    if implementation is EigImplementation.CUSOLVER:
        raise NotImplementedError("eig never calls cuSOLVER: leave implementation out.")
    if empty([aval]):
        return [ctx.full_like(0, out) for out in outs]
    wanted = [params[f"compute_{s}_eigenvectors"] for s in ("left", "right")]
    options: dict[str, Any]
    if on_cpu:
        name = lapack.target("geev", aval.dtype)
        modes = [letter("V" if flag else "N") for flag in wanted]
        options = dict(zip(("compute_left", "compute_right"), modes))
    else:
        name = "cuhybrid_eig_" + ("comp" if is_complex(aval) else "real")
        magma = "on" if implementation is EigImplementation.MAGMA else "off"
        options = {"magma": magma, "left": wanted[0], "right": wanted[1]}
    values = ShapedArray(aval.shape[:-1], aval.dtype)
    vectors = ShapedArray(aval.shape, complex_dtype(aval.dtype))
    parts = 1 if is_complex(aval) else 2
    types = [*[values] * parts, vectors, vectors, info_of(ctx)]
    *w, left, right, info = call_native(ctx, name, [a], types, options)
    if parts == 2:
        w = [ctx.operation("complex")(*w)]
    kept = [x for x, flag in zip((left, right), wanted) if flag]
    return nan_where_failed(ctx, info, [*w, *kept], outs)


for _platform in ("cpu", "cuda"):
    eig_p.def_lowering(_eig_lowering, _platform)


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list:
    """[w], and the left and right eigenvectors that are wanted, of [..., n, n].

    All are complex. Eigenvectors are columns of norm 1 whose largest entry is real;
    they have derivatives with `enable_eigvec_derivs`. NaN where LAPACK fails. On a GPU
    `implementation` chooses the library; `use_magma` is its older form.
    """
    if use_magma is not None:
        implementation = (
            EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
        )
    return eig_p.bind(
        x,
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=enable_eigvec_derivs,
        implementation=implementation,
    )


# ----------------------------------------------------------------------------------
# svd
# ----------------------------------------------------------------------------------


def _svd_shapes(
    shape: Shape, *, full_matrices, compute_uv, subset_by_index, **_
) -> list:
    rows, columns = shape
    most = min_dim(rows, columns)
    rank = min_dim(most, _count(subset_by_index, most))
    if full_matrices and tuple(subset_by_index or (0, most)) != (0, most):
        raise ValueError("full_matrices and subset_by_index cannot both be set")
    if not compute_uv:
        return [(rank,)]
    left, right = (rows, columns) if full_matrices else (rank, rank)
    return [(rank,), (rows, left), (right, columns)]


svd_p = decomposition(
    "svd",
    _svd_shapes,
    lambda dtype, compute_uv, **_: [real_dtype(dtype), *[dtype] * (2 * compute_uv)],
)


@svd_p.def_jvp_rule
def _svd_jvp(primals, tangents, *, full_matrices, compute_uv, **params) -> tuple:
    """With D = Uᴴ dA V: ds = Re diag D, and U, V turn by F_ij = 1 / (s_j² - s_i²).

    M. Giles, An extended collection of matrix derivative results (2008), section 3.2;
    the last terms are the parts outside of the spans of U and V.
    """
    (a,), (da,) = primals, tangents
    rows, columns = a.shape[-2:]
    with default_matmul_precision("float32"):
        s, u, vt = svd_p.bind(a, full_matrices=False, compute_uv=True, **params)
        if compute_uv and full_matrices and rows != columns:
            raise NotImplementedError(
                "Singular value decomposition JVP not implemented for full matrices: "
                "give full_matrices=False."
            )
        ut, v = adjoint(u), adjoint(vt)
        row = s[..., None, :]
        inner = ut @ da @ v
        ds = diagonal(inner.real)
        if not compute_uv:
            return [s], [ds]
        gaps = (row + transposed(row)) * (row - transposed(row))
        ones = expand_dims(eye(s.dtype, s.shape[-1]), range(gaps.ndim - 2))
        inverse_gaps = (1 / (gaps + ones) - ones).astype(a.dtype)
        wide = row.astype(a.dtype)
        right, left = wide * inner, transposed(wide) * inner
        zeros = (s == 0).astype(s.dtype)
        inverse = diagonal_matrix(1 / (s + zeros) - zeros).astype(a.dtype)
        phase = 0.5 * (inner - adjoint(inner)) * inverse
        du = u @ (inverse_gaps * (right + adjoint(right)) + phase)
        dv = v @ (inverse_gaps * (left + adjoint(left)))
        if rows > columns:
            moved = da @ v
            du = du + (moved - u @ (ut @ moved)) / wide
        if columns > rows:
            moved = adjoint(da) @ u
            dv = dv + (moved - v @ (vt @ moved)) / wide
        return [s, u, vt], [ds, du, adjoint(dv)]


_WITH_SIDES: dict[str, Any] = {"compute_uv": True, "subset_by_index": None}


def _svd_of_empty(a: Any, *, full_matrices: bool, compute_uv: bool) -> list:
    *batch, rows, columns = a.shape
    s = broadcasting.full((*batch, 0), 0, real_dtype(a.dtype))
    _, *sides = _svd_shapes((rows, columns), full_matrices=full_matrices, **_WITH_SIDES)
    return [s, *(eye(a.dtype, m, n, batch) for m, n in sides)][: 1 + 2 * compute_uv]


def _svd_lowering(
    ctx, a, *, full_matrices, compute_uv, subset_by_index, algorithm=None
) -> list:
    (aval,), outs = ctx.avals_in, list(ctx.avals_out)
    *batch, rows, columns = aval.shape
    rank = min_dim(rows, columns)
    _all_of(subset_by_index, rank, "svd")
    if 0 in (rows, columns):
        params = {"full_matrices": full_matrices, "compute_uv": compute_uv}
        return ctx.lower_fun(_svd_of_empty, a, **params)
    _, *sides = _svd_shapes((rows, columns), full_matrices=full_matrices, **_WITH_SIDES)
    of_sides = [ShapedArray((*batch, *side), aval.dtype) for side in sides]
    types = [aval, outs[0], *of_sides, info_of(ctx)]
    if ctx.platform == "cuda":
        results = _svd_on_gpu(ctx, a, types, full_matrices, compute_uv, algorithm)
    else:
        stems = {None: "gesdd", SvdAlgorithm.DEFAULT: "gesdd", SvdAlgorithm.QR: "gesvd"}
        stems[SvdAlgorithm.DIVIDE_AND_CONQUER] = "gesdd"
        if algorithm not in stems:
            raise NotImplementedError(
                "CPUs have no Jacobi and no Polar SVD; leave out `algorithm`."
            )
        mode = letter("N" if not compute_uv else "A" if full_matrices else "S")
        name = lapack.target(stems[algorithm], aval.dtype)
        results = call_native(ctx, name, [a], types, {"mode": mode}, [(0, 0)])
    _, *kept, info = results
    return nan_where_failed(ctx, info, kept[: len(outs)], outs)


for _platform in ("cpu", "cuda"):
    svd_p.def_lowering(_svd_lowering, _platform)


def _svd_on_gpu(ctx, a, types, full_matrices, compute_uv, algorithm) -> list:
    """cuSOLVER: Jacobi's rotations up to a size of 1024, else QR steps."""
    of_a, of_s, of_u, of_vt, of_info = types
    rows, columns = of_a.shape[-2:]
    options = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    small = rows <= 1024 and columns <= 1024
    if algorithm in (None, SvdAlgorithm.DEFAULT):
        algorithm = SvdAlgorithm.JACOBI if small else SvdAlgorithm.QR
    if algorithm is SvdAlgorithm.DIVIDE_AND_CONQUER:
        raise NotImplementedError("cuSOLVER has no divide-and-conquer SVD: use QR.")
    if algorithm is SvdAlgorithm.QR:
        # It takes tall matrices; a wide one is read by rows, as its transpose.
        wide = rows < columns
        options["transposed"] = wide
        made = [of_a, of_s, *((of_vt, of_u) if wide else (of_u, of_vt)), of_info]
        a, s, *sides, info = call_native(
            ctx, "cusolver_gesvd_ffi", [a], made, options, [(0, 0)], not wide
        )
        return [a, s, *(reversed(sides) if wide else sides), info]
    name = "cusolver_gesvdj_ffi"
    if algorithm is SvdAlgorithm.POLAR:
        name, thin = "cusolver_gesvdp_ffi", not full_matrices
    else:
        thin = not full_matrices and rows > 32 and columns > 32
    options["full_matrices"] = not thin
    # These give V, not its adjoint, and sometimes more columns than are wanted.
    rank = of_s.shape[-1]
    of_square = of_a.update(shape=(*of_a.shape[:-2], rows, rank if thin else rows))
    of_v = of_a.update(shape=(*of_a.shape[:-2], columns, rank if thin else columns))
    made = [of_a, of_s, of_square, of_v, of_info]
    a, s, u, v, info = call_native(ctx, name, [a], made, options, [(0, 0)])

    def trimmed(u: Any, v: Any) -> list:
        return [u[..., : of_u.shape[-1]], adjoint(v)[..., : of_vt.shape[-2], :]]

    inner = ctx.replace(avals_in=[of_square, of_v])
    return [a, s, *inner.lower_fun(trimmed, u, v), info]


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """(u, s, vᴴ) with `x = u diag(s) vᴴ` and s in descending order; or s alone.

    Args:
      x: [..., m, n].
      full_matrices: u [..., m, m] and vᴴ [..., n, n]; else with min(m, n) for the inner
        size.
      compute_uv: whether u and vᴴ are wanted.
      subset_by_index: the first and the end of the values that are wanted; other than
        all, no platform here has it.
      algorithm: on a CPU `QR` or `DIVIDE_AND_CONQUER`.
    """
    result = svd_p.bind(
        x,
        full_matrices=full_matrices,
        compute_uv=bool(compute_uv),
        subset_by_index=subset_by_index,
        algorithm=algorithm,
    )
    if not compute_uv:
        return result[0]
    s, u, vt = result
    return u, s, vt
