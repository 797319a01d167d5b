"""Special functions against the CPU: dense values, the edges, every dtype that the CPU takes."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from tests.support import DEVICE, FLOATS, INTS, assert_same, assert_same_error, name_of, outcome, run_on_device

Function = Callable[..., torch.Tensor]
special = torch.special

UNARY: dict[str, Function] = {
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "trigamma": lambda x: torch.polygamma(1, x),
    "polygamma_2": lambda x: torch.polygamma(2, x),
    "polygamma_3": lambda x: torch.polygamma(3, x),
    "i0": torch.i0,
    **{
        name: getattr(special, name)
        for name in [
            "erfcx",
            "ndtri",
            "log_ndtr",
            "entr",
            "i0e",
            "i1",
            "i1e",
            "modified_bessel_i0",
            "modified_bessel_i1",
            "modified_bessel_k0",
            "modified_bessel_k1",
            "scaled_modified_bessel_k0",
            "scaled_modified_bessel_k1",
            "bessel_j0",
            "bessel_j1",
            "bessel_y0",
            "bessel_y1",
            "spherical_bessel_j0",
            "airy_ai",
        ]
    },
}
POLYNOMIALS = {
    name: getattr(special, name)
    for name in [
        *(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"),
        "hermite_polynomial_h",
        "hermite_polynomial_he",
        "laguerre_polynomial_l",
        "legendre_polynomial_p",
    ]
}
EDGES = torch.tensor(
    [0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, math.inf, -math.inf, math.nan, 1e-30, -1e-30, 1e30, 1e-5, -1e-5, 5, 8, 100]
)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([torch.linspace(-9, 9, 2001), torch.linspace(0, 1, 501), torch.rand(200, generator=generator) * 200])
    for values in (torch.cat([x, EDGES]), torch.arange(-9, 10), torch.tensor([True, False]), torch.ones(2, 0)):
        expected, refused = outcome(UNARY[name], values)
        if refused is not None:
            assert_same_error(outcome(UNARY[name], values.to(DEVICE))[1], refused)
            continue
        actual = run_on_device(UNARY[name], values.to(DEVICE))
        # this one has no more digits on the CPU near 8
        assert_same(
            actual, expected, f"{values.dtype}", rtol=3e-6 if name == "modified_bessel_i1" else 1.3e-6, atol=1e-5
        )


@pytest.mark.parametrize("dtype", (*FLOATS, *INTS), ids=name_of)
def test_dtypes(dtype: torch.dtype) -> None:
    """One function of each file; the others differ in the formula alone."""
    x = torch.tensor([1, 2, 3, 7, 0, 5, 9]).to(dtype)
    n = torch.tensor([3, 0, 1, 9, 4, 2, 5]).to(dtype)
    calls: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
        "lgamma": (torch.lgamma, (x,)),
        "entr": (special.entr, (x,)),
        "i1": (special.i1, (x,)),
        "bessel_j0": (special.bessel_j0, (x,)),
        "legendre": (special.legendre_polynomial_p, (x, n)),
        "igamma": (torch.igamma, (x, n)),
        "xlog1py": (special.xlog1py, (x, n)),
    }
    for name, (call, args) in calls.items():
        expected, refused = outcome(call, *args)
        if refused is not None:
            continue  # the CPU's choice of dtypes; the device may have more
        assert_same(run_on_device(call, *(a.to(DEVICE) for a in args)), expected, name)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.cat([torch.rand(600, generator=generator) * 18 - 9, torch.rand(600, generator=generator) * 2 - 1])
    n = torch.cat([torch.rand(600, generator=generator) * 18 - 9, torch.randint(0, 9, (600,), generator=generator)])
    # Of NaN the CPU makes what its memory holds; next to the end of an interval an angle has few digits left.
    edges = EDGES[EDGES.isfinite() & ~EDGES.abs().isclose(torch.tensor(1e-5), rtol=1e-3, atol=0)]
    grid = torch.meshgrid(edges, torch.tensor([-1.0, 0, 1, 2, 3, 7, 8]), indexing="ij")
    x, n = torch.cat([x, grid[0].flatten()]), torch.cat([n, grid[1].flatten()])
    call = POLYNOMIALS[name]
    assert_same(run_on_device(call, x.to(DEVICE), n.to(DEVICE)), call(x, n), rtol=2e-6, atol=2e-5)
    assert_same(call(x.to(DEVICE), 3), call(x, 3), rtol=2e-6, atol=2e-5)
    assert_same(call(0.5, n.to(DEVICE)), call(0.5, n), rtol=2e-6, atol=2e-5)


def test_zeta() -> None:
    generator = torch.Generator().manual_seed(2)
    x = torch.cat([torch.rand(800, generator=generator) * 18 - 9, torch.randint(1, 10, (300,), generator=generator)])
    q = torch.cat([torch.rand(800, generator=generator) * 60, torch.rand(300, generator=generator) * 18 - 9])
    assert_same(run_on_device(special.zeta, x.to(DEVICE), q.to(DEVICE)), special.zeta(x, q), rtol=3e-6, atol=1e-5)


def test_far_below_zero() -> None:
    """Thousands of steps from zero, and at the numbers next to a pole."""
    generator = torch.Generator().manual_seed(4)
    q = torch.cat([torch.rand(500, generator=generator) * -2e4 - 9, torch.tensor([-13437.7, -9.0 - 2**-20, -1001.2])])
    for x in (2.0, 3.0, 4.0, 5.0):
        order = torch.full_like(q, x)
        assert_same(
            run_on_device(special.zeta, order.to(DEVICE), q.to(DEVICE)),
            special.zeta(order.double(), q.double()).float(),
            rtol=3e-6,
            atol=3e-5,
        )
    assert_same(torch.polygamma(4, q.to(DEVICE)), torch.polygamma(4, q.double()).float(), rtol=3e-6, atol=1e-3)


@pytest.mark.parametrize("call", [special.bessel_j0, special.bessel_j1, special.bessel_y0, special.bessel_y1])
def test_waves_far_out(call: Function) -> None:
    x = torch.logspace(2, 8, 500)
    assert_same(run_on_device(call, x.to(DEVICE)), call(x), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("call", [torch.igamma, torch.igammac], ids=["igamma", "igammac"])
def test_incomplete_gamma(call: Function) -> None:
    generator = torch.Generator().manual_seed(3)
    large = torch.rand(300, generator=generator) * 1e5
    near = large * (1 + 0.01 * torch.randn(300, generator=generator))
    edges = EDGES[EDGES.abs().nan_to_num(0) < 1e20]
    grid = torch.meshgrid(edges, edges, indexing="ij")
    a = torch.cat([torch.rand(2000, generator=generator) * 300, large, grid[0].flatten()])
    x = torch.cat([torch.rand(2000, generator=generator) * 300, near, grid[1].flatten()])
    assert_same(run_on_device(call, a.to(DEVICE), x.to(DEVICE)), call(a, x), rtol=2e-6, atol=1e-5)


def test_xlog1py() -> None:
    grid = torch.meshgrid(EDGES, EDGES, indexing="ij")
    x, y = grid[0].contiguous(), grid[1].contiguous()
    assert_same(run_on_device(special.xlog1py, x.to(DEVICE), y.to(DEVICE)), special.xlog1py(x, y))


def test_forms() -> None:
    x = torch.rand(6, 5).add(0.5)
    for call, inplace in ((torch.lgamma, torch.Tensor.lgamma_), (torch.i0, torch.Tensor.i0_)):
        expected = call(x.t())
        actual = x.to(DEVICE).t()
        assert_same(run_on_device(call, actual), expected)
        out = torch.empty(5, 6, device=DEVICE)
        assert call(actual, out=out) is out
        assert_same(out, expected, strides=False)
        assert_same(inplace(actual), expected)
    assert_same(torch.polygamma(2, x.to(DEVICE)), torch.polygamma(2, x), rtol=2e-6, atol=1e-5)
    with pytest.raises(RuntimeError, match="polygamma"):
        torch.polygamma(-1, x.to(DEVICE))


def test_gradients() -> None:
    for call in (torch.lgamma, torch.digamma, torch.i0, special.erfcx, special.entr):
        x = torch.linspace(0.1, 3, 40).requires_grad_()
        y = x.detach().to(DEVICE).requires_grad_()
        call(x).sum().backward()
        call(y).sum().backward()
        assert_same(y.grad, x.grad, rtol=3e-6, atol=1e-5)
