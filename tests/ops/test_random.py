"""Random numbers: the same from a seed in every layout, moved on by what was used, and distributed as they say."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from tests.support import DEVICE, FLOATS, INTS, assert_same_error, name_of, outcome, run_on_device

COUNT = 60_000

Fill = Callable[[torch.Tensor], torch.Tensor]

FILLS: dict[str, Fill] = {
    "uniform": lambda x: x.uniform_(-3, 5),
    "normal": lambda x: x.normal_(2, 3),
    "log_normal": lambda x: x.log_normal_(0.5, 0.75),
    "exponential": lambda x: x.exponential_(0.5),
    "cauchy": lambda x: x.cauchy_(1, 2),
    "geometric": lambda x: x.geometric_(0.2),
    "bernoulli": lambda x: x.bernoulli_(0.3),
    "random": lambda x: x.random_(0, 100),
}


def draw(fill: Fill, *size: int, dtype: torch.dtype = torch.float32, seed: int = 7) -> torch.Tensor:
    torch.manual_seed(seed)
    return run_on_device(fill, torch.empty(size, dtype=dtype, device=DEVICE)).cpu()


# The generator


def test_philox_gives_the_published_words() -> None:
    generator = torch.Generator(device=DEVICE).manual_seed(0)
    words = torch.empty(1, dtype=torch.int64, device=DEVICE).random_(-(2**63), None, generator=generator)
    assert words.item() & (2**64 - 1) == 0xE169C58D6627E8D5  # Philox4x32-10 of counter 0 and key 0
    generator.manual_seed(2**64 - 1)
    words = torch.empty(2, dtype=torch.int64, device=DEVICE).random_(-(2**63), None, generator=generator)
    assert len(set(words.tolist())) == 2


def test_a_seed_gives_the_same_numbers_in_every_layout() -> None:
    layouts: dict[str, Callable[[], torch.Tensor]] = {
        "transposed": lambda: torch.empty(8, 6, device=DEVICE).t(),
        "offset": lambda: torch.empty(100, device=DEVICE)[3:51].view(6, 8),
        "sliced": lambda: torch.empty(12, 16, device=DEVICE)[::2, ::2],
        "channels last": lambda: torch.empty(1, 6, 2, 4, device=DEVICE).to(memory_format=torch.channels_last),
    }
    for name, fill in FILLS.items():
        expected = draw(fill, 6, 8)
        for layout, make in layouts.items():
            torch.manual_seed(7)
            actual = fill(make()).cpu().reshape(6, 8)
            assert torch.equal(actual, expected), f"{name} {layout}"
        assert not torch.equal(draw(fill, 6, 8, seed=8), expected), name


def test_calls_follow_each_other_without_overlap() -> None:
    torch.manual_seed(3)
    first, second = torch.rand(1000, device=DEVICE).cpu(), torch.rand(1000, device=DEVICE).cpu()
    assert not set(first.tolist()) & set(second.tolist()[:10])
    torch.manual_seed(3)
    assert torch.equal(torch.rand(2000, device=DEVICE).cpu(), torch.cat([first, second]))


def test_state() -> None:
    state = torch.webgpu.get_rng_state()
    first = torch.randn(9, device=DEVICE).cpu()
    torch.webgpu.set_rng_state(state)
    assert torch.equal(torch.randn(9, device=DEVICE).cpu(), first)
    torch.webgpu.set_rng_state(state)
    with torch.random.fork_rng(devices=[0], device_type=DEVICE):
        assert torch.equal(torch.randn(9, device=DEVICE).cpu(), first)
    assert torch.equal(torch.randn(9, device=DEVICE).cpu(), first)
    generator = torch.Generator(device=DEVICE).manual_seed(5)
    copy = torch.Generator(device=DEVICE)
    copy.set_state(generator.get_state())
    one, other = (torch.rand(9, device=DEVICE, generator=g).cpu() for g in (generator, copy))
    assert torch.equal(one, other)
    before = generator.get_state()
    torch.empty(0, device=DEVICE).uniform_(generator=generator)
    assert torch.equal(generator.get_state(), before)


# Distributions: the largest distance of the empirical distribution function, and chi-square over cells


def assert_follows(sample: torch.Tensor, distribution: Callable[[torch.Tensor], torch.Tensor], name: str) -> None:
    """Kolmogorov and Smirnov at a level of 10^-4, with a seed that passes."""
    values = sample.double().flatten().sort().values
    count = values.numel()
    expected = distribution(values)
    steps = torch.arange(count + 1, dtype=torch.float64) / count
    distance = max((expected - steps[:-1]).max().item(), (steps[1:] - expected).max().item())
    assert distance * math.sqrt(count) < 2.23, f"{name}: {distance}"


def assert_frequencies(observed: torch.Tensor, expected: torch.Tensor, name: str) -> None:
    """Chi-square, by Wilson and Hilferty's normal approximation at four deviations."""
    expected = expected.double() * observed.sum() / expected.sum()
    statistic = ((observed - expected) ** 2 / expected).sum().item()
    freedom = observed.numel() - 1
    z = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    assert z < 4, f"{name}: {statistic} for {freedom} degrees of freedom"


def normal_distribution(x: torch.Tensor) -> torch.Tensor:
    return torch.special.ndtr(x)


def test_continuous_distributions() -> None:
    distributions: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "uniform": lambda x: (x + 3) / 8,
        "normal": lambda x: normal_distribution((x - 2) / 3),
        "log_normal": lambda x: normal_distribution((x.log() - 0.5) / 0.75),
        "exponential": lambda x: 1 - torch.exp(-0.5 * x),
        "cauchy": lambda x: 0.5 + torch.atan((x - 1) / 2) / math.pi,
    }
    for name, distribution in distributions.items():
        sample = draw(FILLS[name], COUNT)
        assert_follows(sample, distribution, name)
        assert sample.isfinite().all(), name


def test_neighbours_are_independent() -> None:
    x = draw(lambda x: x.normal_(), COUNT).view(-1, 4).double()
    correlations = torch.corrcoef(x.t()) - torch.eye(4)
    assert correlations.abs().max() < 5 / math.sqrt(x.shape[0])
    assert (torch.corrcoef((x**2).t()) - torch.eye(4)).abs().max() < 5 / math.sqrt(x.shape[0])


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_uniform_stays_below_one(dtype: torch.dtype) -> None:
    sample = draw(lambda x: x.uniform_(), COUNT, dtype=dtype)
    assert sample.min() >= 0
    assert sample.max() < 1
    assert_frequencies((sample.double() * 16).long().bincount(minlength=16), torch.ones(16), str(dtype))
    assert draw(lambda x: x.uniform_(2, 2), 9, dtype=dtype).eq(2).all()


@pytest.mark.parametrize("dtype", (*FLOATS, *INTS), ids=name_of)
def test_discrete_distributions(dtype: torch.dtype) -> None:
    geometric = draw(FILLS["geometric"], COUNT, dtype=dtype).long()
    assert geometric.min() == 1
    counts = geometric.clamp(max=12).bincount(minlength=13)[1:]
    p = 0.2 * 0.8 ** torch.arange(12, dtype=torch.float64)
    p[11] = 0.8**11
    assert_frequencies(counts, p, "geometric")
    assert_frequencies(draw(FILLS["bernoulli"], COUNT, dtype=dtype).long().bincount(), torch.tensor([0.7, 0.3]), "p")
    small = draw(lambda x: x.random_(3, 13), COUNT, dtype=dtype).long()
    assert_frequencies((small - 3).bincount(minlength=10), torch.ones(10), "random")
    assert draw(lambda x: x.bernoulli_(0), 99, dtype=dtype).eq(0).all()
    assert draw(lambda x: x.bernoulli_(1), 99, dtype=dtype).eq(1).all()


def test_random_over_whole_ranges() -> None:
    for dtype in (*INTS, torch.bool):
        sample = draw(lambda x: x.random_(), COUNT, dtype=dtype)
        top = 1 if dtype == torch.bool else torch.iinfo(dtype).max
        cells = 2 if dtype == torch.bool else 16
        assert_frequencies(
            (sample.double() / (top + 1) * cells).long().bincount(minlength=cells), torch.ones(cells), ""
        )
    wide = draw(lambda x: x.random_(-(2**62), 2**62), COUNT, dtype=torch.int64)
    assert_frequencies((wide.double() / 2**59 + 8).long().clamp(0, 15).bincount(minlength=16), torch.ones(16), "wide")
    assert (wide & 0xFFFF).unique().numel() > 30_000


def test_bernoulli_of_probabilities() -> None:
    torch.manual_seed(1)
    p = torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0], device=DEVICE).expand(20_000, 5)
    for dtype in (torch.float32, torch.int64, torch.bool):
        rate = run_on_device(torch.empty(p.shape, dtype=dtype, device=DEVICE).bernoulli_, p).cpu().double().mean(0)
        assert (rate - p[0].cpu()).abs().max() < 0.015
        assert rate[0] == 0
        assert rate[4] == 1
    assert (run_on_device(torch.bernoulli, p).cpu().mean(0) - p[0].cpu()).abs().max() < 0.015


def test_normal_of_tensors() -> None:
    torch.manual_seed(2)
    mean, std = torch.tensor([1.0, -5.0], device=DEVICE).expand(COUNT, 2), torch.tensor([2.0, 0.5], device=DEVICE)
    for name, sample in {
        "both": run_on_device(torch.normal, mean, std.expand(COUNT, 2)),
        "std": run_on_device(torch.normal, 1.0, std.expand(COUNT, 2)),
        "mean": run_on_device(torch.normal, mean, 2.0),
    }.items():
        x = sample.cpu().double()
        expected = (torch.tensor([1.0, -5.0]) if name != "std" else 1.0), (std.cpu() if name != "mean" else 2.0)
        for column in (0, 1):
            center, width = (e[column].item() if isinstance(e, torch.Tensor) else e for e in expected)
            assert_follows((x[:, column] - center) / width, normal_distribution, name)


# Permutations and choices


@pytest.mark.parametrize("count", [0, 1, 2, 5, 256, 257, 1000, 40_000])
def test_randperm_is_a_permutation(count: int) -> None:
    torch.manual_seed(4)
    order = run_on_device(torch.randperm, count, device=DEVICE)
    assert torch.equal(order.cpu().sort().values, torch.arange(count))
    if count >= 256:
        assert not torch.equal(torch.randperm(count, device=DEVICE).cpu(), order.cpu())
        places = (order.cpu() * 16 // count) * 16 + torch.arange(count) * 16 // count
        if count > 10_000:
            assert_frequencies(places.bincount(minlength=256), torch.ones(256), "places")


def test_randperm_reaches_all_orders() -> None:
    torch.manual_seed(6)
    seen = torch.zeros(24, dtype=torch.int64)
    for _ in range(600):
        a, b, c, _ = torch.randperm(4, device=DEVICE).tolist()
        seen[6 * a + 2 * (b - (b > a)) + (c - (c > a) - (c > b))] += 1
    assert_frequencies(seen, torch.ones(24), "orders")


def test_multinomial() -> None:
    torch.manual_seed(8)
    weights = torch.tensor([[1.0, 0.0, 3.0, 6.0], [5.0, 5.0, 0.0, 0.0]])
    for dtype in FLOATS:
        picks = run_on_device(torch.multinomial, weights.to(DEVICE, dtype), 20_000, True).cpu()
        for row, drawn in zip(weights, picks, strict=True):
            counts = drawn.bincount(minlength=4)
            assert counts[row == 0].eq(0).all()
            assert_frequencies(counts[row > 0], row[row > 0], "with replacement")
    one = run_on_device(torch.multinomial, weights.to(DEVICE).repeat(10_000, 1), 1).cpu().view(-1, 2)
    assert_frequencies(one[:, 0].bincount()[[0, 2, 3]], torch.tensor([1, 3, 6]), "one sample")


@pytest.mark.skipif(
    not torch._C._dispatch_has_kernel_for_dispatch_key("aten::topk.values", "PrivateUse1"), reason="needs topk"
)
def test_multinomial_without_replacement() -> None:
    torch.manual_seed(9)
    picks = run_on_device(torch.multinomial, torch.tensor([0.0, 1.0, 2.0, 4.0], device=DEVICE).repeat(2000, 1), 3).cpu()
    assert torch.equal(picks.sort().values, torch.tensor([1, 2, 3]).expand(2000, 3))
    assert_frequencies(picks[:, 0].bincount()[1:], torch.tensor([1, 2, 4]), "first")


# Noise on activations


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_dropout(dtype: torch.dtype) -> None:
    torch.manual_seed(10)
    x = torch.full((COUNT,), 3.0, dtype=dtype, device=DEVICE, requires_grad=True)
    y = run_on_device(torch.nn.functional.dropout, x, 0.25)
    kept = (y != 0).cpu()
    assert_frequencies(kept.long().bincount(), torch.tensor([0.25, 0.75]), "kept")
    assert torch.equal(y.detach().cpu()[kept], torch.full_like(y.detach().cpu()[kept], 4))
    (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
    assert torch.allclose(gradient.cpu().float(), kept / 0.75, rtol=1e-2)
    off = torch.ops.aten.native_dropout(x.detach(), 0.25, False)
    assert off[0].eq(3).all().item() and off[1].all().item()


def test_rrelu() -> None:
    torch.manual_seed(11)
    x = torch.tensor([-2.0, 3.0], device=DEVICE).repeat(COUNT // 2)
    noise = torch.empty_like(x)
    y = run_on_device(torch.ops.aten.rrelu_with_noise, x, noise, 0.1, 0.3, True).cpu()
    assert y[1::2].eq(3).all()
    assert noise.cpu()[1::2].eq(1).all()
    assert_follows(y[::2] / -2, lambda u: (u - 0.1) / 0.2, "slope")
    assert torch.allclose(torch.rrelu(x, 0.1, 0.3, False).cpu()[:2], torch.tensor([-0.4, 3.0]))


# Errors

WRONG: dict[str, Callable[[str], torch.Tensor]] = {
    "uniform": lambda d: torch.empty(3, device=d).uniform_(2, 1),
    "uniform dtype": lambda d: torch.empty(3, device=d, dtype=torch.int64).uniform_(),
    "normal": lambda d: torch.empty(3, device=d).normal_(0, -1),
    "normal dtype": lambda d: torch.empty(3, device=d, dtype=torch.int64).normal_(),
    "normal std": lambda d: torch.normal(torch.zeros(3, device=d), -torch.ones(3, device=d)),
    "log_normal": lambda d: torch.empty(3, device=d).log_normal_(0, -1),
    "log_normal dtype": lambda d: torch.empty(3, device=d, dtype=torch.int64).log_normal_(),
    "exponential": lambda d: torch.empty(3, device=d).exponential_(-1),
    "exponential dtype": lambda d: torch.empty(3, device=d, dtype=torch.int64).exponential_(),
    "geometric": lambda d: torch.empty(3, device=d).geometric_(1.5),
    "geometric dtype": lambda d: torch.empty(3, device=d, dtype=torch.bool).geometric_(0.5),
    "cauchy": lambda d: torch.empty(3, device=d).cauchy_(0, -1),
    "cauchy dtype": lambda d: torch.empty(3, device=d, dtype=torch.int64).cauchy_(),
    "bernoulli": lambda d: torch.empty(3, device=d).bernoulli_(2),
    "bernoulli dtype": lambda d: torch.bernoulli(torch.zeros(3, device=d, dtype=torch.int64)),
    "random": lambda d: torch.empty(3, device=d).random_(5, 5),
    "random range": lambda d: torch.empty(3, device=d, dtype=torch.int8).random_(0, 1000),
    "overlap": lambda d: torch.empty(1, device=d).expand(3).uniform_(),
    "randperm": lambda d: torch.randperm(-1, device=d),
    "randperm half": lambda d: torch.randperm(3000, dtype=torch.float16, device=d),
    "randperm byte": lambda d: torch.randperm(300, dtype=torch.uint8, device=d),
    "randperm bool": lambda d: torch.randperm(5, dtype=torch.bool, device=d),
    "multinomial negative": lambda d: torch.multinomial(torch.tensor([-1.0, 1], device=d), 2),
    "multinomial zero": lambda d: torch.multinomial(torch.tensor([0.0, 0], device=d), 1),
    "multinomial many": lambda d: torch.multinomial(torch.tensor([0.0, 1], device=d), 3),
    "multinomial inf": lambda d: torch.multinomial(torch.tensor([0.0, math.inf], device=d), 2, True),
    "multinomial none": lambda d: torch.multinomial(torch.tensor([0.0, 1], device=d), 0),
    "multinomial dims": lambda d: torch.multinomial(torch.ones(1, 1, 1, device=d), 1),
    "multinomial dtype": lambda d: torch.multinomial(torch.ones(2, device=d, dtype=torch.int64), 1),
}


def test_errors() -> None:
    for name, call in WRONG.items():
        expected = outcome(call, "cpu")[1]
        assert expected is not None, name
        # What only the device can see is raised by whoever reads the result.
        assert_same_error(outcome(lambda call=call: call(DEVICE).cpu())[1], expected, name)


def test_generators_of_another_device() -> None:
    with pytest.raises(RuntimeError, match="Expected a 'webgpu' device type for generator but found 'cpu'"):
        torch.rand(3, device=DEVICE, generator=torch.Generator())
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'webgpu'"):
        torch.rand(3, generator=torch.Generator(device=DEVICE))
