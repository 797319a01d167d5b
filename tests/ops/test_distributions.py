"""Gamma, beta, Dirichlet, Poisson, binomial and von Mises samples: their moments and tails, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import distributions

from tests.support import DEVICE, FLOATS, assert_same, name_of, on_device, outcome, run_on_device, to_device

COUNT = 40_000


def check_moments(samples: torch.Tensor, mean: float, variance: float, kurtosis: float) -> None:
    """Within five standard errors of what the distribution says."""
    values = samples.cpu().double()
    assert abs(values.mean() - mean) < 5 * math.sqrt(variance / COUNT)
    assert abs(values.var() - variance) < 5 * variance * math.sqrt(max(kurtosis - 1, 0.01) / COUNT)


def full(value: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full((COUNT,), value, dtype=dtype, device=DEVICE)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.99, 1.0, 3.0, 100.0, 1e5])
def test_gamma(alpha: float) -> None:
    torch.manual_seed(1)
    samples = run_on_device(torch._standard_gamma, full(alpha), dispatches=1)
    check_moments(samples, alpha, alpha, 3 + 6 / alpha)
    assert (samples > 0).all()


@pytest.mark.parametrize("rate", [0.01, 1.0, 9.5, 10.5, 100.0, 1e4])
def test_poisson(rate: float) -> None:
    torch.manual_seed(2)
    samples = run_on_device(torch.poisson, full(rate), dispatches=1)
    check_moments(samples, rate, rate, 3 + 1 / rate)
    assert torch.equal(samples, samples.floor())
    if rate > 20:
        return
    expected = torch.exp(distributions.Poisson(rate).log_prob(torch.arange(60.0))) * COUNT
    counts = torch.bincount(samples.cpu().long(), minlength=60)
    assert ((counts - expected).abs() <= 5 * expected.sqrt() + 2).all()


@pytest.mark.parametrize(
    "count, p", [(1, 0.5), (10, 0.3), (10, 0.8), (100, 0.05), (100, 0.5), (1000, 0.97), (1e6, 0.2)]
)
def test_binomial(count: float, p: float) -> None:
    torch.manual_seed(3)
    samples = run_on_device(torch.binomial, full(count), full(p), dispatches=1)
    variance = count * p * (1 - p)
    check_moments(samples, count * p, variance, 3 + (1 - 6 * p * (1 - p)) / variance)
    assert samples.min() >= 0
    assert samples.max() <= count
    if count > 100:
        return
    places = torch.arange(count + 1)
    expected = torch.exp(distributions.Binomial(int(count), torch.tensor(p)).log_prob(places)) * COUNT
    counts = torch.bincount(samples.cpu().long(), minlength=int(count) + 1)
    assert ((counts - expected).abs() <= 5 * expected.sqrt() + 2).all()


def test_dirichlet() -> None:
    torch.manual_seed(4)
    alpha = torch.tensor([0.2, 1.0, 3.0], device=DEVICE)
    samples = run_on_device(torch._sample_dirichlet, alpha.expand(COUNT, 3))
    assert_same(samples.sum(-1), torch.ones(COUNT), rtol=1e-5, atol=1e-5)
    share = alpha.cpu() / alpha.cpu().sum()
    for place in range(3):
        mean = share[place].item()
        check_moments(samples[:, place], mean, mean * (1 - mean) / (alpha.sum().item() + 1), 10)


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_edges_and_dtypes(dtype: torch.dtype) -> None:
    rates = torch.tensor([0.0, 1e-30, 5.0, torch.nan], dtype=dtype, device=DEVICE)
    for samples in (torch.poisson(rates), torch._standard_gamma(rates)):
        assert samples.dtype == dtype
        assert samples.isnan().tolist() == [False, False, False, True]
        assert samples[:1].tolist() == [0.0]
    count = torch.tensor([0.0, 5.0, 5.0, 5.0], dtype=dtype, device=DEVICE)
    p = torch.tensor([0.5, 0.0, 1.0, torch.nan], dtype=dtype, device=DEVICE)
    assert torch.binomial(count, p)[:3].tolist() == [0.0, 0.0, 5.0]
    for call in (torch.poisson, torch._standard_gamma, lambda x: torch.binomial(x, x)):
        _, refused = outcome(call, torch.ones(3, dtype=torch.int64))
        assert type(outcome(call, torch.ones(3, dtype=torch.int64, device=DEVICE))[1]) is type(refused)


CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gamma": torch._standard_gamma,
    "poisson": torch.poisson,
    "binomial": lambda x: torch.binomial(x * 4, x / 8),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_seed_gives_the_same_numbers_in_every_layout(name: str) -> None:
    values = torch.arange(1.0, 8.0, 0.125, device=DEVICE).view(7, 8)
    results = []
    for given in (values, values.t().contiguous().t(), torch.stack([values, values], 2)[:, :, 1]):
        torch.manual_seed(5)
        results.append(CALLS[name](given).cpu())
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])
    torch.manual_seed(6)
    assert not torch.equal(CALLS[name](values).cpu(), results[0])


def test_gamma_gradient() -> None:
    alpha = torch.tensor([0.1, 0.5, 1.0, 2.5, 7.0, 9.0, 30.0, 300.0])[:, None].expand(8, 40)
    torch.manual_seed(7)
    samples = torch._standard_gamma(alpha)
    samples[:, :3] = alpha[:, :3] * torch.tensor([0.95, 1.0, 1.12])
    actual = run_on_device(torch._standard_gamma_grad, *to_device((alpha, samples)), dispatches=1)
    assert_same(actual, torch._standard_gamma_grad(alpha, samples), rtol=2e-4, atol=1e-5)


def test_dirichlet_gradient() -> None:
    torch.manual_seed(8)
    for alpha in (0.2, 1.0, 3.0, 8.0, 40.0, 1e4):
        for rest in (0.3, 2.0, 10.0, 100.0, 2e4):
            x = torch.cat([distributions.Beta(alpha, rest).sample((30,)), torch.tensor([alpha / (alpha + rest)])])
            x = x.clamp(1e-6, 1 - 1e-6)
            given = (x, torch.full_like(x, alpha), torch.full_like(x, alpha + rest))
            expected = torch._dirichlet_grad(*(value.double() for value in given)).float()
            actual = run_on_device(torch._dirichlet_grad, *to_device(given), dispatches=1)
            assert_same(actual, expected, f"{alpha} {rest}", rtol=2e-3, atol=1e-5)


def test_gradients_reach_the_parameters() -> None:
    """The mean of a sample moves as the distribution's mean does."""
    torch.manual_seed(9)
    a, b = (torch.tensor(value, device=DEVICE, requires_grad=True) for value in (2.0, 3.0))
    with on_device(waits=None):  # the classes check their arguments
        distributions.Beta(a, b).rsample((COUNT,)).mean().backward()
        distributions.Gamma(a, b).rsample((COUNT,)).mean().backward()
    assert a.grad is not None
    assert b.grad is not None
    assert abs(a.grad.item() - (3 / 25 + 1 / 3)) < 0.02
    assert abs(b.grad.item() - (-2 / 25 - 2 / 9)) < 0.02


def test_what_is_made_of_them() -> None:
    one, two = torch.tensor(1.0, device=DEVICE), torch.tensor(2.0, device=DEVICE)
    made = (
        distributions.StudentT(two),
        distributions.Chi2(two),
        distributions.FisherSnedecor(two, two),
        distributions.NegativeBinomial(two, one / 2),
        distributions.InverseGamma(two, one),
        distributions.Wishart(two, torch.eye(2, device=DEVICE)),
        distributions.LKJCholesky(3, one),
        distributions.Binomial(5, one / 2),
        distributions.Poisson(two),
        distributions.Kumaraswamy(one, two),
    )
    for distribution in made:
        with on_device(waits=None) as results:
            results.append(distribution.sample((20,)))
        assert results[0].isfinite().all(), distribution
