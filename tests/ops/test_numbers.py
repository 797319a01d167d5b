"""Python numbers as arguments, on either side: they promote as on the CPU, and never become a tensor of float64."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.support import (
    DTYPES,
    assert_same,
    assert_same_error,
    falls_back,
    make,
    name_of,
    outcome,
    run_on_device,
    to_device,
)

FLOATS, BOOLS, INTS = torch.tensor([0.5, 1.5, 2.5]), torch.tensor([True, False, True]), torch.tensor([1, 2, 3])

# Of float32, bool and int64.
CALLS: dict[str, Callable[..., Any]] = {
    "float ** float32": lambda x, c, i: 2.5**x,
    "float ** int64": lambda x, c, i: 2.5**i,
    "int ** int64": lambda x, c, i: 2**i,
    "1 ** float32": lambda x, c, i: 1.0**x,
    "float / int64": lambda x, c, i: 2.5 / i,
    "float // float32": lambda x, c, i: 2.5 // x,
    "float % float32": lambda x, c, i: 2.5 % x,
    "float % int64": lambda x, c, i: 2.5 % i,
    "float - int64": lambda x, c, i: 2.5 - i,
    "xlogy": lambda x, c, i: (torch.xlogy(2.5, x), torch.xlogy(x, 2.5)),
    "xlog1py": lambda x, c, i: (torch.special.xlog1py(2.5, x), torch.special.xlog1py(x, 2.5)),
    "zeta": lambda x, c, i: (torch.special.zeta(2.5, x), torch.special.zeta(x + 1, 2.5)),
    "where": lambda x, c, i: (torch.where(c, 2.5, x), torch.where(c, i, 2.5), torch.where(c, 1.5, 2.5)),
    "fmod and remainder": lambda x, c, i: (torch.fmod(i, 2.5), torch.remainder(i, 2.5)),
    "copysign": lambda x, c, i: torch.copysign(x, -2.5),
    "clamp": lambda x, c, i: torch.clamp(i, 1.5, 2.5),
    "polynomial": lambda x, c, i: torch.special.chebyshev_polynomial_t(0.5, i),
    "comparison": lambda x, c, i: i == 2.5,
    "bucketize": lambda x, c, i: torch.bucketize(1.7, x),
    "searchsorted": lambda x, c, i: torch.searchsorted(x, 1.7),
    "isin": lambda x, c, i: (torch.isin(x, 2.5), torch.isin(2.5, x)),
    "bits": lambda x, c, i: (torch.bitwise_left_shift(1, i), torch.bitwise_and(3, i)),
    "quantile": lambda x, c, i: (torch.quantile(x, 0.3), torch.nanquantile(x, 0.3)),
    "norms": lambda x, c, i: (torch.norm(x, 2.5), torch.dist(x, x + 1, 2.5)),
    "std": lambda x, c, i: torch.std(x, correction=0.5),
    "fills": lambda x, c, i: (x.index_fill(0, i - 1, 2.5), x.scatter(0, i - 1, 2.5), x.masked_fill(c, 2.5)),
    "ranges": lambda x, c, i: (torch.linspace(0, 1.5, 4, device=x.device), torch.arange(0.5, 2, 0.5, device=x.device)),
    "windows": lambda x, c, i: (torch.kaiser_window(5, device=x.device), torch.hann_window(6, device=x.device)),
    "gradient": lambda x, c, i: torch.gradient(x, spacing=0.5)[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers(name: str) -> None:
    arguments = (FLOATS, BOOLS, INTS)
    assert_same(run_on_device(CALLS[name], *to_device(arguments)), CALLS[name](*arguments), name, strides=False)


def setting(x: torch.Tensor, place: Any, number: float) -> torch.Tensor:
    result = x.clone()
    result[place] = number
    return result


# Of a tensor, a mask, an index, and a number that its dtype may not hold.
EDGES: dict[str, Callable[..., Any]] = {
    "clamp max": lambda x, c, i, n: x.clamp(max=n),
    "clamp min": lambda x, c, i, n: x.clamp(min=n),
    "clamp": lambda x, c, i, n: x.clamp(-1, n),
    "clamp_min": lambda x, c, i, n: torch.clamp_min(x, n),
    "clamp_max_": lambda x, c, i, n: x.clone().clamp_max_(n),
    "add": lambda x, c, i, n: x + n,
    "mul": lambda x, c, i, n: x * n,
    "rsub": lambda x, c, i, n: n - x,
    "eq": lambda x, c, i, n: x == n,
    "lt": lambda x, c, i, n: x < n,
    "alpha": lambda x, c, i, n: torch.add(x, x, alpha=n),
    "addcmul": lambda x, c, i, n: torch.addcmul(x, x, x, value=n),
    "where": lambda x, c, i, n: (torch.where(c, x, n), torch.where(c, n, x)),
    "full": lambda x, c, i, n: (torch.full_like(x, n), x.new_full((3,), n)),
    "full of one": lambda x, c, i, n: (x.new_full((1,), n), x.new_full((), n)),
    "fill_": lambda x, c, i, n: x.clone().fill_(n),
    "set one": lambda x, c, i, n: setting(x, 0, n),
    "set some": lambda x, c, i, n: setting(x, slice(1, 5), n),
    "set by mask": lambda x, c, i, n: setting(x, c, n),
    "set by index": lambda x, c, i, n: setting(x, i, n),
    "masked_fill": lambda x, c, i, n: x.masked_fill(c, n),
    "index_fill": lambda x, c, i, n: x.index_fill(0, i, n),
    "index_add": lambda x, c, i, n: x.index_add(0, i, x[:3], alpha=n),
    "scatter": lambda x, c, i, n: x.scatter(0, i, n),
    "threshold": lambda x, c, i, n: (F.threshold(x, 0, n), F.threshold(x, n, 0)),
    "hardtanh": lambda x, c, i, n: F.hardtanh(x, -1, n),
    "hardshrink": lambda x, c, i, n: F.hardshrink(x, n),
    "leaky_relu": lambda x, c, i, n: F.leaky_relu(x, n),
    "elu": lambda x, c, i, n: F.elu(x, n),
    "pad": lambda x, c, i, n: F.pad(x, (1, 1), value=n),
    "pow": lambda x, c, i, n: x**n,
    "lerp": lambda x, c, i, n: torch.lerp(x, x, n),
    "addmm": lambda x, c, i, n: torch.addmm(x[:, None], x[:, None], x[:1, None], alpha=n),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("name", EDGES)
def test_numbers_beyond_the_dtype(name: str, dtype: torch.dtype) -> None:
    x = make((12,), dtype, 1, (1, 4))
    condition, index = torch.arange(12) % 3 == 0, torch.tensor([0, 4, 7])
    for number in (-1, 255, 300, 2**15, 2**31, 2**40, 1e9, -1e39, 1e300, torch.inf):
        expected, refused = outcome(EDGES[name], x, condition, index, number)
        moved = to_device((x, condition, index))
        if isinstance(refused, NotImplementedError):
            continue  # of this dtype whatever the number
        if refused is not None:
            assert_same_error(outcome(EDGES[name], *moved, number)[1], refused, f"{number}")
        elif (expected if isinstance(expected, torch.Tensor) else expected[0]).dtype == torch.float64:
            with falls_back():
                assert_same(EDGES[name](*moved, number), expected, f"{number}", strides=False)
        else:
            actual = run_on_device(EDGES[name], *moved, number)
            assert_same(actual, expected, f"{number}", strides=False)
