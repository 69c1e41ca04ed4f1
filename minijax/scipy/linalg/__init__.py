"""Decompositions, equations, functions and families of matrices, as SciPy has them.

SciPy's `overwrite_a`, `overwrite_b`, `check_finite`, `debug`, `turbo`, `lwork` and
`lapack_driver` are taken and change nothing, as in JAX: arrays are not written over,
and a compiled program does not look whether numbers are finite.

In JAX: `scipy/linalg.py`.
"""

# isort: skip_file
# fmt: off
from minijax.scipy.linalg.solving import (
    cho_factor, cho_solve, cholesky, det, eigh, hessenberg, inv, lu, lu_factor,
    lu_solve, qr, qr_multiply, schur, solve, solve_triangular, svd,
)
from minijax.scipy.linalg.functions import (
    expm, expm_frechet, funm, polar, rsf2csf, solve_sylvester, sqrtm,
)
from minijax.scipy.linalg.tridiagonal import eigh_tridiagonal
from minijax.scipy.linalg.families import (
    block_diag, circulant, companion, convolution_matrix, dft, fiedler,
    fiedler_companion, hadamard, hankel, helmert, hilbert, invhilbert, invpascal,
    leslie, pascal, toeplitz,
)
# fmt: on
