"""Which OpInfos run on the device: all but those named here, each with its reason.

`python -m tests.ops.coverage` tries them all. What is not right yet is named below, and must fail.
"""

import re

import torch

from tests.ops.opinfo import opinfos

_COMPLEX = "complex numbers are stored, not computed with"
_DOUBLE = "float64 is stored, not computed with"
_FFT = "no Fourier transforms yet; their results are complex"
_SVD = "no singular value decomposition yet"
_EIGEN = "no eigenvalues yet; those of a general matrix are complex"
_LEAST = "no least squares yet"

# Right, but with part of the work on the CPU: a pattern of names and the reason. This list only shrinks.
FALLBACK = {
    r"fft\..*|stft|istft": _FFT,
    r"complex|polar": _COMPLEX,
    r"float_power|.*softmax.with_dtype|nn.functional.softmin.with_dtype": _DOUBLE,
    r"hash_tensor": "the result is a uint64, which is stored, not computed with",
    r"svd|svd_lowrank|pca_lowrank|norm.nuc|linalg.(svd|svdvals|cond|norm|matrix_norm|norm.subgradients_at_zero)": _SVD,
    r"pinverse|linalg.(pinv|pinv.singular|matrix_rank)": _SVD,
    r"linalg.(eig|eigh|eigvals|eigvalsh|matrix_rank.hermitian|pinv.hermitian)": _EIGEN,
    r"linalg.lstsq.*": _LEAST,
}
# Not for this device at all.
ABSENT = {
    r"chalf": "the result is complex32, whose copies have no test yet",
    r"sparse\..*|to_sparse|_sparse.*": "sparse tensors",
    r"jiterator_.*": "compiles CUDA C++",
}


def _matches(patterns: dict[str, str], name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


NATIVE = tuple(name for name in opinfos() if not _matches(FALLBACK | ABSENT, name))

WITH_THE_CPU = tuple(name for name in opinfos() if _matches(FALLBACK, name))

# What is native in the dtypes that are stored without being computed with: it moves elements, compares or casts them.
# Samples of index_put, put and scatter also add, which the CPU does: tests/ops/test_indexing.py has their other forms.
MOVERS = (
    *("__getitem__", "as_strided", "atleast_2d", "bfloat16", "block_diag", "bool", "broadcast_to", "cat", "chunk"),
    *("clone", "column_stack", "contiguous", "diag", "diag_embed", "diagonal", "diagonal_scatter", "dsplit", "eq"),
    *("expand", "eye", "fill", "flatten", "flip", "fliplr", "float", "full_like", "gather", "half", "index_copy"),
    *("index_fill", "index_select", "int", "isnan", "long", "masked_fill", "masked_scatter"),
    *("masked_select", "movedim", "narrow", "ne", "new_full", "new_zeros", "nn.functional.pad.constant", "nonzero"),
    *("ones_like", "permute", "ravel", "repeat", "reshape", "resolve_conj", "roll", "rot90"),
    *("select_scatter", "slice_scatter", "split", "squeeze", "stack", "t", "take", "tile", "tril", "triu"),
    *("unbind", "unfold", "unsqueeze", "view", "view_as", "vstack", "where", "zero_", "zeros_like"),
)
# And some that fall back, for a share of the families there are.
FALLING_BACK = (
    *("add", "addmm", "cumsum", "exp", "index_add", "logsumexp", "matmul", "mean", "mul", "prod", "scatter_add"),
    *("sigmoid", "sort", "sum", "var", "nn.functional.linear", "nn.functional.conv2d"),
    *("nn.functional.layer_norm", "softmax", "masked.sum", "linalg.solve", "lerp", "sub"),
)

# (op, check, dtype or None for all): reason
EXPECTED_FAILURES: dict[tuple[str, str, torch.dtype | None], str] = {
    ("view_as_complex", "samples", torch.float16): "every result is complex32, whose copies have no test yet",
    ("renorm", "gradients", None): "PyTorch's derivative computes in float64, which the CPU does",
    ("native_group_norm", "noncontiguous", None): "the CPU refuses a strided sample that the device takes",
    ("nonzero", "out", None): "the CPU lays a result that it resizes out by columns",
    ("__rsub__", "reference", torch.float32): "in some samples both devices return NotImplemented",
    ("narrow_copy", "out", None): "PyTorch has narrow_copy.out for the CPU alone",
    (
        "narrow_copy",
        "errors",
        None,
    ): "the CPU's own narrow_copy fails an internal check where all other devices say more",
}

# Where a result may be further from the CPU's than PyTorch's own tolerance for the dtype, with the reason.
# The CPU's remainder loops round alpha * b to float16 before the sum, its vectors do not.
ALPHA = {"rtol": 2**-9, "atol": 1e-5}
# Sums of hundreds of products of numbers up to 9, in another order; against float64 both sides are off by as much.
CONVOLUTION = {"rtol": 1e-5, "atol": 5e-4}
TOLERANCES: dict[tuple[str, torch.dtype | None], dict[str, float]] = {
    **{(f"nn.functional.conv{n}d", torch.float32): CONVOLUTION for n in (1, 2, 3)},
    **{(f"nn.functional.conv_transpose{n}d", torch.float32): CONVOLUTION for n in (1, 2, 3)},
    # The CPU's own rounding where a row has one element: its distance from the mean is 0 here.
    ("addbmm", torch.float32): {"rtol": 1.3e-6, "atol": 1e-4},  # sums of 25 products near 80, which cancel
    ("nn.functional.layer_norm", torch.float32): {"rtol": 1.3e-6, "atol": 5e-5},
    ("native_layer_norm", torch.float32): {"rtol": 1.3e-6, "atol": 5e-5},
    # Scores up to 100 before an exponential, and four products in a row behind each other.
    # Off by 1.5e-5 of 9 and 0.014 of 2,110 as seen.
    ("nn.functional.scaled_dot_product_attention", torch.float32): {"rtol": 1e-5, "atol": 2e-5},
    ("nn.functional.multi_head_attention_forward", torch.float32): {"rtol": 1e-4, "atol": 1e-4},
    # Elements up to 9.3e4, of which 0.074 is missing as seen: a few units in the last place.
    ("matrix_exp", torch.float32): {"rtol": 1e-5, "atol": 2e-3},
    ("add", torch.float16): ALPHA,
    ("sub", torch.float16): ALPHA,
}
# Logits are rounded to halves between its steps, of which it has more or fewer by device.
for _name in ("linear_cross_entropy", "linear_cross_entropy.chunked", "linear_cross_entropy.chunked_none"):
    TOLERANCES[f"nn.functional.{_name}", torch.float16] = {"rtol": 5e-3, "atol": 5e-3}
    TOLERANCES[f"nn.functional.{_name}", torch.bfloat16] = {"rtol": 5e-2, "atol": 5e-2}
# A gradient is a sum of products in an order that is free.
GRADIENT = {"rtol": 1e-5, "atol": 1e-5}
GRADIENT_TOLERANCES = {
    "nn.functional.ctc_loss": {"rtol": 1e-3, "atol": 2e-4},  # logarithms near 200 have digits of 1.5e-5, on the CPU too
    **{f"nn.functional.conv{n}d": {"rtol": 1e-4, "atol": 1e-3} for n in (1, 2, 3)},  # as CONVOLUTION, longer still
    **{f"nn.functional.conv_transpose{n}d": {"rtol": 1e-4, "atol": 1e-3} for n in (1, 2, 3)},
    # One element in a row: 0 here, and what the CPU rounds to, 4e-5 and 1.5e-4 as seen.
    "nn.functional.layer_norm": {"rtol": 1e-5, "atol": 5e-5},
    "native_layer_norm": {"rtol": 1e-5, "atol": 2e-4},
    # Off by 8.8e-5 of 52 and 0.022 of 32,500 as seen.
    "nn.functional.scaled_dot_product_attention": {"rtol": 1e-5, "atol": 5e-5},
    "matrix_exp": {"rtol": 1e-5, "atol": 5e-3},
    "grid_sampler_3d": {"rtol": 1e-4, "atol": 1e-4},  # sums over all places of a grid that fall on one element
    "cov": {"rtol": 1e-5, "atol": 1e-4},  # products of numbers near 10 that cancel to 0
    "pow": {"rtol": 1e-4, "atol": 1e-5},  # sums of powers up to 1e8 that cancel
    "triangular_solve": {"rtol": 1e-4, "atol": 1e-4},  # two solves and a product of what they give
    "linalg.householder_product": {"rtol": 1e-4, "atol": 1e-5},  # a chain of reflections
}
# The reference samples hold a million arguments in one: near poles and zeros, where the last place of an argument moves
# the result by as much.
REFERENCE_TOLERANCES = {
    # Near half-integers terms of up to 1544 cancel: 1.4e-4 apart as seen, the device four times as far from float64.
    **{f"polygamma.polygamma_n_{n}": {"rtol": 3e-6, "atol": 3e-4} for n in (1, 2, 3, 4)},
    "special.i1": {"rtol": 3e-6, "atol": 1e-5},
    "special.modified_bessel_i1": {"rtol": 3e-6, "atol": 1e-5},
    "special.shifted_chebyshev_polynomial_u": {"rtol": 5e-3, "atol": 5e-5},
    "special.shifted_chebyshev_polynomial_v": {"rtol": 5e-3, "atol": 5e-5},
}


def tolerance(name: str, dtype: torch.dtype, check: str = "samples") -> dict[str, float]:
    if check == "gradients":
        return GRADIENT_TOLERANCES.get(name, GRADIENT)
    if check == "reference" and name in REFERENCE_TOLERANCES:
        return REFERENCE_TOLERANCES[name]
    return TOLERANCES.get((name, dtype)) or TOLERANCES.get((name, None)) or {}
