"""`jax.lax.linalg`: decompositions of matrices, as LAPACK and cuSOLVER have them.

Each name is defined beside its primitive; this module only re-exports.

In JAX: `jax.lax.linalg`.
"""

# isort: skip_file
# fmt: off
from minijax.programs.linear_algebra.triangular import (
    cholesky, cholesky_p, cholesky_update, cholesky_update_p, symmetric_product,
    symmetric_product_p, triangular_solve, triangular_solve_p,
)
from minijax.programs.linear_algebra.eigen import (
    EigImplementation, EighImplementation, SvdAlgorithm, eig, eig_p, eigh, eigh_p, svd,
    svd_p,
)
from minijax.programs.linear_algebra.condensed import (
    hessenberg, hessenberg_p, schur, schur_p, tridiagonal, tridiagonal_p,
    tridiagonal_solve, tridiagonal_solve_p,
)
from minijax.programs.linear_algebra.polar import qdwh
from minijax.programs.linear_algebra.qr import (
    householder_product, householder_product_p, ormqr, ormqr_p, qr, qr_p,
)
from minijax.programs.linear_algebra.lu import (
    lu, lu_p, lu_pivots_to_permutation, lu_pivots_to_permutation_p,
)
# fmt: on
