"""What each primitive does, in a few words, for a reader who meets it first.

A phrase may name parameters of the equation in braces: `"sum over {axes}"`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PHRASES: dict[str, str] = {
    # one number in, one number out
    "abs": "absolute value",
    "acos": "angle whose cosine is the entry",
    "acosh": "inverse hyperbolic cosine",
    "asin": "angle whose sine is the entry",
    "asinh": "inverse hyperbolic sine",
    "atan": "angle whose tangent is the entry",
    "atanh": "inverse hyperbolic tangent",
    "cbrt": "cube root",
    "ceil": "next whole number upwards",
    "conj": "complex conjugate",
    "cos": "cosine of each entry",
    "cosh": "hyperbolic cosine",
    "digamma": "derivative of log gamma",
    "erf": "error function",
    "erf_inv": "inverse of the error function",
    "erfc": "one minus the error function",
    "exp": "e to each entry",
    "exp2": "2 to each entry",
    "expm1": "e to each entry, minus 1",
    "floor": "next whole number downwards",
    "imag": "imaginary part",
    "integer_pow": "each entry to the power {y}",
    "is_finite": "neither inf nor nan",
    "lgamma": "log of the gamma function",
    "log": "natural logarithm",
    "log1p": "logarithm of 1 + the entry",
    "logistic": "1 / (1 + e to the minus entry)",
    "neg": "minus each entry",
    "not": "each bit turned over",
    "population_count": "number of one bits",
    "real": "real part",
    "round": "nearest whole number",
    "rsqrt": "1 over the square root",
    "sign": "-1, 0 or 1",
    "sin": "sine of each entry",
    "sinh": "hyperbolic sine",
    "sqrt": "square root of each entry",
    "square": "each entry times itself",
    "stop_gradient": "the value, as a constant for derivatives",
    "tan": "tangent of each entry",
    "tanh": "hyperbolic tangent",
    # two numbers in, one number out
    "add": "sum, entry by entry",
    "add_any": "sum of two derivatives",
    "and": "both, bit by bit",
    "atan2": "angle of the point (second, first)",
    "complex": "complex number from two parts",
    "div": "quotient, entry by entry",
    "eq": "true where equal",
    "ge": "true where at least",
    "gt": "true where greater",
    "le": "true where at most",
    "lt": "true where smaller",
    "max": "the larger, entry by entry",
    "min": "the smaller, entry by entry",
    "mul": "product, entry by entry",
    "ne": "true where different",
    "nextafter": "next number towards the second",
    "or": "either, bit by bit",
    "pow": "first to the power second",
    "rem": "remainder, sign of first",
    "shift_left": "bits moved left",
    "shift_right_arithmetic": "bits moved right, sign kept",
    "shift_right_logical": "bits moved right, zeros in",
    "sub": "difference, entry by entry",
    "xor": "one but not both, bit by bit",
    # choosing
    "clamp": "held between a smallest and a largest value",
    "select_n": "chosen by the first",
    # shapes
    "broadcast_in_dim": "repeated to {shape}",
    "concatenate": "joined along axis {dimension}",
    "dim_as_value": "the size {dim}, as a number",
    "layout_constraint": "kept in memory as {layout}",
    "iota": "0, 1, 2, ... along axis {dimension}",
    "pad": "padded, or cut, at the edges",
    "reshape": "same entries, {new_sizes}",
    "rev": "reversed along {dimensions}",
    "split": "cut into pieces along axis {axis}",
    "squeeze": "{dimensions} of size 1 removed",
    "transpose": "axes reordered {permutation}",
    # parts of arrays
    "dynamic_slice": "a block, start given",
    "dynamic_update_slice": "a block replaced",
    "gather": "entries picked by indices",
    "scatter": "entries replaced at indices",
    "scatter_add": "added into entries at indices",
    "scatter-add": "added into entries at indices",
    "slice": "a block, cut out at fixed places",
    # many numbers to one
    "argmax": "place of the largest along {axes}",
    "argmin": "place of the smallest along {axes}",
    "cumlogsumexp": "running log of sums of exponentials",
    "cummax": "running largest along axis {axis}",
    "cummin": "running smallest along axis {axis}",
    "cumprod": "running product along axis {axis}",
    "cumsum": "running sum along axis {axis}",
    "reduce_and": "true if all along {axes} are",
    "reduce_max": "largest along {axes}",
    "reduce_min": "smallest along {axes}",
    "reduce_or": "true if one along {axes} is",
    "reduce_prod": "product along {axes}",
    "reduce_sum": "sum along {axes}",
    "sort": "sorted along axis {dimension}",
    "top_k": "the {k} largest, with their places",
    # products of arrays
    "conv_general_dilated": "convolution",
    "dot_general": "matrix product",
    # types
    "bitcast_convert_type": "same bits, read as {new_dtype}",
    "convert_element_type": "converted to {new_dtype}",
    "copy": "a copy",
    "copy_p": "a copy",
    "device_put": "put on a device or in a memory",
    "reduce_precision": "rounded as if there were fewer bits",
    # random numbers
    "random_bits": "random bits from a key",
    "random_gamma": "a gamma draw for each parameter",
    "random_fold_in": "a new key from a key and a number",
    "random_seed": "a key from a seed",
    "random_split": "new keys from a key",
    "random_unwrap": "the numbers inside a key",
    "random_wrap": "a key made of these numbers",
    "threefry2x32": "the threefry hash: random bits",
    # rarer functions of numbers
    "bessel_i0e": "Bessel function I0, scaled",
    "bessel_i1e": "Bessel function I1, scaled",
    "clz": "number of leading zero bits",
    "eq_to": "true where equal, nan included",
    "igamma": "lower incomplete gamma function",
    "igamma_grad_a": "its derivative in the first",
    "igammac": "upper incomplete gamma function",
    "le_to": "true where not above, nan last",
    "lt_to": "true where below, nan last",
    "mulhi": "upper half of the product",
    "polygamma": "a derivative of digamma",
    "random_gamma_grad": "derivative of a gamma sample",
    "regularized_incomplete_beta": "incomplete beta function",
    "zeta": "Hurwitz zeta function",
    # refs: arrays that change
    "addupdate": "adds to a ref",
    "empty_ref": "a new ref, not filled",
    "free_ref": "ends a ref",
    "freeze": "a ref's last content",
    "get": "what a ref holds",
    "new_ref": "a ref that holds the value",
    "swap": "writes a ref, gives the old",
    # windows, places, copies
    "broadcast_to": "repeated to a larger shape",
    "empty": "an array that is not filled",
    "empty2": "a number that is not set",
    "ragged_dot_general": "products of groups of rows",
    "reduce": "reduced by an own operation",
    "reduce_window": "windows reduced by an operation",
    "reduce_window_max": "largest in each window",
    "reduce_window_min": "smallest in each window",
    "reduce_window_sum": "sum of each window",
    "reduce_xor": "exclusive or over {axes}",
    "scatter-max": "larger one kept at indices",
    "scatter-min": "smaller one kept at indices",
    "scatter-mul": "entries multiplied at indices",
    "scatter-sub": "entries subtracted at indices",
    "select_and_gather_add": "one chosen in each window",
    "select_and_scatter_add": "added where a window chose",
    "stack": "arrays along a new axis",
    "tile": "copies side by side",
    "unstack": "slices along an axis",
    # random bits of other kinds
    "iota_2x32_shape": "counters as two halves",
    "random_clone": "a copy of a key",
    "rng_bit_generator": "random bits from XLA",
    "rng_uniform": "random numbers from XLA",
    # order and names
    "after_all": "waits for several tokens",
    "create_token": "a token: nothing before it",
    "dce_sink": "kept, though nobody reads it",
    "name": "the value, under a name",
    "optimization_barrier": "XLA moves nothing across",
    "platform_index": "which branch fits the platform",
    "stage": "the value, written down here",
    # calls into Python
    "check": "an error of the user's, if so",
    "debug_callback": "calls Python, no result",
    "debug_print": "prints when it runs",
    "io_callback": "calls Python, which may act",
    "pure_callback": "calls Python for a value",
    "ffi_call": "calls a native function",
    "call_exported": "calls a program that was exported",
    # across a named axis
    "all_to_all": "parts exchanged along {axis_name}",
    "reduce_scatter": "sum over {axis_name}, a part each",
    "all_gather": "the parts of all, over {axis_name}",
    "axis_index": "own place along {axis_name}",
    "pmax": "largest over {axes}",
    "pmin": "smallest over {axes}",
    "pbroadcast": "the part of index {source}, everywhere",
    "ppermute": "parts sent along {axis_name}",
    "psum": "sum over {axes}",
    "all_gather_invariant": "the parts of all, equal everywhere",
    "psum_invariant": "sum over {axes}, the same on all",
    "pvary": "marked as different along {axes}",
    # over a mesh of devices
    "shard_map": "runs a program on each device",
    "reshard": "cut over the mesh in another way",
    "sharding_constraint": "cut as the sharding says",
    # kernels
    "atomic_rmw": "updates a ref in one step",
    "dma_start": "starts a copy between memories",
    "dma_wait": "waits until a copy is done",
    "masked_load": "reads a ref where a mask is true",
    "masked_swap": "writes a ref where a mask is true",
    "multiple_of": "a number known as a multiple",
    "num_programs": "size of the grid along {axis}",
    "pallas_call": "runs a kernel over a grid",
    "program_id": "own place in the grid along {axis}",
    "reciprocal": "one over each entry",
    "run_scoped": "a program with memory of its own",
    # programs inside a program
    "closed_call": "runs a program",
    "cond": "one of several programs",
    "custom_lin": "a custom rule's linear part",
    "custom_linear_solve": "x for which A x = b",
    "custom_vmap_call": "call, own batching rule",
    "linear_call": "call, own transpose",
    "remat2": "runs again on the way back",
    "remat_opt": "a rule that may give way",
    "run_state": "runs a function on refs",
    "custom_jvp_call": "call, own derivative rule",
    "custom_vjp_call": "call, own backward rule",
    "jit": "calls {name}",
    "pjit": "calls {name}",
    "scan": "a loop over a leading axis",
    "while": "a loop until a condition fails",
}


class _Parameters(dict):
    """Parameters for a phrase; one that the equation lacks leaves `?`."""

    def __missing__(self, name: str) -> str:
        return "?"


def axes_in_words(value: Any) -> str:
    """Returns axes as words: `(0,)` as "axis 0", `(0, 1)` as "axes 0, 1"."""
    if not isinstance(value, tuple):
        return str(value)
    if len(value) == 1:
        return f"axis {value[0]}"
    return "axes " + ", ".join(str(axis) for axis in value) if value else "no axis"


def meaning(primitive: str, params: Mapping[str, Any]) -> str:
    """Returns what an equation of this primitive does, or "" if no words are known."""
    words = _Parameters(params)
    for name in ("axes", "dimensions"):
        if isinstance(params.get(name), tuple):
            words[name] = axes_in_words(params[name])
    return PHRASES.get(primitive, "").format_map(words)
