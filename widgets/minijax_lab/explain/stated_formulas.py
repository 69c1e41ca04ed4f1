"""Derivatives as mathematics, for primitives whose rules are too long to be read off.

Each formula is of the card's example, in NumPy's and `lax`'s notation; `c` is a
constant of the example. A line that begins with a name defines it. Tests hold all of
them against the rules, and against jax's.
"""

from __future__ import annotations

# Forwards, then backwards for each argument; then the names that they use.
STATED: dict[str, list[str]] = {
    "bessel_i1e": [
        "d bessel_i1e(x) = dx * (bessel_i0e(x) - bessel_i1e(x) * (sign(x) + 1 / x))",
        "ct_x = ct * (bessel_i0e(x) - bessel_i1e(x) * (sign(x) + 1 / x))",
    ],
    # ---- shapes and indices
    "pad": [
        "d pad(x, (1, 2)) = pad(dx, (1, 2))",
        "ct_x = ct[1:4]",
    ],
    "split": [
        "d x[:, 0:1] = dx[:, 0:1]",
        "ct_x = pad(ct, ((0, 0), (0, 2)))",
    ],
    "stack": [
        "d stack((x, y)) = stack((dx, dy))",
        "ct_x = ct[0]",
        "ct_y = ct[1]",
    ],
    "unstack": [
        "d x[0] = dx[0]",
        "ct_x = stack((ct, zeros(3)))",
    ],
    "tile": [
        "d tile(x, (2,)) = tile(dx, (2,))",
        "ct_x = sum(reshape(ct, (2, 3)), axis=0)",
    ],
    "dynamic_slice": [
        "d dynamic_slice(x, (1,), (2,)) = dynamic_slice(dx, (1,), (2,))",
        "ct_x = dynamic_update_slice(zeros(3), ct, (1,))",
    ],
    "dynamic_update_slice": [
        "d dynamic_update_slice(x, y, (1,)) = dynamic_update_slice(dx, dy, (1,))",
        "ct_x = dynamic_update_slice(ct, zeros(1), (1,))",
        "ct_y = dynamic_slice(ct, (1,), (1,))",
    ],
    "gather": [
        "d x[i] = dx[i]",
        "ct_x = zeros(3).at[i].add(ct)",
        "i = array([2, 0])",
    ],
    "scatter": [
        "d x.at[1].set(9) = dx.at[1].set(0)",
        "ct_x = ct.at[1].set(0)",
    ],
    "scatter-add": [
        "d x.at[i].add(y) = dx.at[i].add(dy)",
        "ct_x = ct",
        "ct_y = ct[i]",
        "i = array([1, 1, 0])",
    ],
    "scatter-sub": [
        "d x.at[1].subtract(2) = dx",
        "ct_x = ct",
    ],
    "scatter-mul": [
        "d x.at[1].multiply(3) = dx.at[1].multiply(3)",
        "ct_x = ct.at[1].multiply(3)",
    ],
    "scatter-max": [
        "d x.at[1].max(0) = dx.at[1].multiply((1 + sign(x[1])) / 2)",
        "ct_x = ct.at[1].multiply((1 + sign(x[1])) / 2)",
    ],
    "scatter-min": [
        "d x.at[1].min(0) = dx.at[1].multiply((1 - sign(x[1])) / 2)",
        "ct_x = ct.at[1].multiply((1 - sign(x[1])) / 2)",
    ],
    # ---- reductions
    "approx_top_k": [
        "d approx_max_k(x, 2)[0] = dx[i]",
        "ct_x = zeros(3).at[i].add(ct)",
        "i = approx_max_k(x, 2)[1]",
    ],
    "top_k": [
        "d top_k(x, 2)[0] = dx[i]",
        "ct_x = zeros(3).at[i].add(ct)",
        "i = top_k(x, 2)[1]",
    ],
    "sort": [
        "d sort(x) = dx[i]",
        "ct_x = zeros(3).at[i].add(ct)",
        "i = argsort(x)",
    ],
    "cummax": [
        "d cummax(x) = dx[i]",
        "ct_x = zeros(3).at[i].add(ct)",
        "i = cummax(where(x == cummax(x), arange(3), 0))",
        "this is where no two entries are equal; equal ones share it",
    ],
    "cummin": [
        "d cummin(x) = dx[i]",
        "ct_x = zeros(3).at[i].add(ct)",
        "i = cummax(where(x == cummin(x), arange(3), 0))",
        "this is where no two entries are equal; equal ones share it",
    ],
    "cumprod": [
        "d cumprod(x) = cumprod(x) * cumsum(dx / x)",
        "ct_x = cumsum(ct * cumprod(x), reverse=True) / x",
        "this is where no entry is 0; the rule itself divides by nothing",
    ],
    "cumlogsumexp": [
        "d cumlogsumexp(x) = cumsum(exp(x) * dx) / cumsum(exp(x))",
        "ct_x = exp(x) * cumsum(ct / cumsum(exp(x)), reverse=True)",
    ],
    "reduce_prod": [
        "d prod(x) = prod(x) * sum(dx / x)",
        "ct_x = ct * prod(x) / x",
        "this is where no entry is 0; the rule itself divides by nothing",
    ],
    "reduce": [
        "d (1 - prod(1 - x)) = prod(1 - x) * sum(dx / (1 - x))",
        "ct_x = ct * prod(1 - x) / (1 - x)",
        "this is what the example's own operation, a + b - a * b, makes of all entries",
    ],
    "reduce_window": [
        "d (l + r - l * r) = dl * (1 - r) + (1 - l) * dr",
        "l, r = x[:-1], x[1:]",
        "dl, dr = dx[:-1], dx[1:]",
    ],
    "reduce_window_sum": [
        "d (x[:-1] + x[1:]) = dx[:-1] + dx[1:]",
        "ct_x = pad(ct, (0, 1)) + pad(ct, (1, 0))",
    ],
    "reduce_window_max": [
        "d maximum(x[:-1], x[1:]) = where(x[:-1] >= x[1:], dx[:-1], dx[1:])",
        "ct_x = pad(where(first, ct, 0), (0, 1)) + pad(where(first, 0, ct), (1, 0))",
        "first = x[:-1] >= x[1:]",
    ],
    "reduce_window_min": [
        "d minimum(x[:-1], x[1:]) = where(x[:-1] <= x[1:], dx[:-1], dx[1:])",
        "ct_x = pad(where(first, ct, 0), (0, 1)) + pad(where(first, 0, ct), (1, 0))",
        "first = x[:-1] <= x[1:]",
    ],
    "select_and_gather_add": [
        "d where(first, x[:-1], x[1:]) = where(first, dx[:-1], dx[1:])",
        "ct_x = pad(where(first, ct, 0), (0, 1)) + pad(where(first, 0, ct), (1, 0))",
        "first = c[:-1] >= c[1:]",
    ],
    "select_and_scatter_add": [
        "d (pad(x * first, (0, 1)) + pad(x * ~first, (1, 0)))"
        " = pad(dx * first, (0, 1)) + pad(dx * ~first, (1, 0))",
        "ct_x = where(first, ct[:-1], ct[1:])",
        "first = c[:-1] >= c[1:]",
    ],
    # ---- linear algebra
    "cholesky": [
        "d cholesky(x) = L @ (tril(M) - diag(diag(M)) / 2)",
        "ct_x = (Q + Q.T) / 2",
        "L = cholesky(x)",
        "M = inv(L) @ (dx + dx.T) / 2 @ inv(L).T",
        "N = L.T @ ct",
        "Q = inv(L).T @ (tril(N) - diag(diag(N)) / 2) @ inv(L)",
    ],
    "conv_general_dilated": [
        "d conv(x, y, (1,), 'SAME')"
        " = conv(dx, y, (1,), 'SAME') + conv(x, dy, (1,), 'SAME')",
        "ct_x = conv(ct, flip(y, 2), (1,), 'SAME')",
        "ct_y = conv(x, ct, (1,), 'SAME')",
    ],
    "custom_linear_solve": [
        "d solve(A, x) = solve(A, dx)",
        "ct_x = solve(A.T, ct)",
        "A = 2 * eye(3)",
    ],
    "eig": [
        "d eig(x)[0] = diag(inv(V) @ dx @ V)",
        "ct_x = real(inv(V).T @ diag(ct) @ V.T)",
        "V = eig(x)[1]",
    ],
    "eigh": [
        "d eigvalsh(x) = diag(V.T @ dx @ V)",
        "ct_x = V @ diag(ct) @ V.T",
        "V = eigh(x)[1]",
    ],
    "fft": [
        "d fft(complex(x, y)) = fft(complex(dx, dy))",
        "ct_x = real(fft(ct))",
        "ct_y = -imag(fft(ct))",
    ],
    "lu": [
        "d lu(x)[0] = L @ tril(M, -1) + triu(M) @ U",
        "ct_x = zeros((3, 3)).at[p].set(inv(L).T @ N @ inv(U).T)",
        "a, _, p = lu(x)",
        "L, U = tril(a, -1) + eye(3), triu(a)",
        "M = inv(L) @ dx[p] @ inv(U)",
        "N = tril(L.T @ tril(ct, -1), -1) + triu(triu(ct) @ U.T)",
    ],
    "qr": [
        "d qr(x)[1] = (M - tril(M, -1) + tril(M, -1).T) @ R",
        "ct_x = Q @ (N - tril(N, -1) + triu(N, 1).T) @ inv(R).T",
        "Q, R = qr(x)",
        "M = Q.T @ dx @ inv(R)",
        "N = ct @ R.T",
    ],
    "svd": [
        "d svd(x)[1] = diag(U.T @ dx @ V.T)",
        "ct_x = U @ diag(ct) @ V",
        "U, _, V = svd(x)",
    ],
    "triangular_solve": [
        "d solve(tril(x), y) = solve(L, dy - tril(dx) @ z)",
        "ct_x = -tril(w @ z.T)",
        "ct_y = w",
        "L = tril(x)",
        "z = solve(L, y)",
        "w = solve(L.T, ct)",
    ],
    "tridiagonal_solve": [
        "d solve(A, b) = solve(A, db - dA @ u)",
        "ct_x = pad(diag(N, -1), (1, 0))",
        "ct_y = diag(N)",
        "ct_z = pad(diag(N, 1), (0, 1))",
        "ct_b = solve(A.T, ct)",
        "A = diag(x[1:], -1) + diag(y) + diag(z[:-1], 1)",
        "dA = diag(dx[1:], -1) + diag(dy) + diag(dz[:-1], 1)",
        "u = solve(A, b)",
        "N = -solve(A.T, ct) @ u.T",
    ],
    "ragged_dot_general": [
        "d ragged_dot(x, y, c) = ragged_dot(dx, y, c) + ragged_dot(x, dy, c)",
        "ct_x = ragged_dot(ct, swapaxes(y, 1, 2), c)",
        "ct_y = stack((x[:1].T @ ct[:1], x[1:].T @ ct[1:]))",
        "c = array([1, 2])",
    ],
    # ---- programs inside
    "cond": [
        "d where(x[0] > 0, sin(x), cos(x)) = where(x[0] > 0, cos(x), -sin(x)) * dx",
        "ct_x = where(x[0] > 0, cos(x), -sin(x)) * ct",
        "forwards and backwards run the branch that was chosen, differentiated",
    ],
    "scan": [
        "d (M @ x) = M @ dx",
        "ct_x = M.T @ ct",
        "M = array([[0, 0, 0], [1, 0, 0], [0.5, 1, 0]])",
        "forwards one loop carries values and tangents; backwards another goes over "
        "the steps from the last to the first and carries cotangents",
    ],
    "while": [
        "d (x * 0.5 ** 3) = dx * 0.5 ** 3",
        "one loop carries values and tangents; there is no way back, since nothing "
        "says how many turns it takes",
    ],
    "custom_vjp_call": [
        "ct_x = 2 * x * ct",
        "this is what its own backward rule says; forwards it has none",
    ],
    "custom_vmap_call": [
        "d (x * 0.5) = dx * 0.5",
        "the program inside is differentiated; there is no way back",
    ],
}
REFS = [
    "d (2 * x + x) = 2 * dx + dx",
    "ct_x = 2 * ct + ct",
    "each ref has one of tangents beside it; on the way back one of cotangents",
]
STATED |= dict.fromkeys(("new_ref", "get", "swap", "addupdate", "freeze"), REFS)
