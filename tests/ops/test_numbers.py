"""Python numbers as arguments, on either side: they promote as on the CPU, and never become a tensor of float64."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.support import assert_same, run_on_device, to_device

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
