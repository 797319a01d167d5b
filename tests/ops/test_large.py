"""Tensors that reach further than one storage binding may (128 MiB on many adapters)."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.nn import functional as F

from tests.support import DEVICE, assert_same, name_of, on_device, run_on_device, to_device

MIB = 2**20


@pytest.fixture(autouse=True)
def give_back() -> Iterator[None]:
    yield
    torch.webgpu.empty_cache()


def beyond_one_binding(dtype: torch.dtype) -> int:
    """Elements of a tensor a quarter larger than a binding, and with a tail."""
    limit = torch.webgpu.get_device_properties().limits["maxStorageBufferBindingSize"]
    assert limit <= 1024 * MIB, "the adapter binds more at once than this test may use"
    return (limit + limit // 4) // dtype.itemsize + 3


def pattern(count: int, dtype: torch.dtype) -> torch.Tensor:
    """Different everywhere, and from one word to the next."""
    return torch.arange(count, dtype=torch.int32).mul_(0x9E3779B1 - 2**32).bitwise_right_shift_(9).to(dtype)


DTYPES = (torch.float32, torch.uint8, torch.int64)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_round_trip_and_ops(dtype: torch.dtype) -> None:
    x = pattern(beyond_one_binding(dtype), dtype)
    moved = x.to(DEVICE)
    assert torch.equal(moved.cpu(), x)
    total = run_on_device(torch.add, moved, 1)
    x.add_(1)
    assert torch.equal(total.cpu(), x), "add"
    del total
    run_on_device(moved.add_, 1)
    assert torch.equal(moved.cpu(), x), "add_"
    less = run_on_device(torch.lt, moved, 100)
    assert torch.equal(less.cpu(), x < 100), "lt"


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_copies_within_one_tensor(dtype: torch.dtype) -> None:
    count = beyond_one_binding(dtype)
    x = pattern(count, dtype)
    moved = x.to(DEVICE)
    half = count // 2
    with on_device():
        moved[half : 2 * half].copy_(moved[:half])
        moved[:1000:2].copy_(moved[-1000::2])
        moved[-5:].fill_(7)
    x[half : 2 * half] = x[:half].clone()
    x[:1000:2] = x[-1000::2].clone()
    x[-5:] = 7
    assert torch.equal(moved.cpu(), x)


def test_broadcast_and_transposed() -> None:
    rows = beyond_one_binding(torch.float32) // 1024 + 1
    x = pattern(rows * 1024, torch.float32).view(rows, 1024)
    row = torch.arange(1024, dtype=torch.float32)
    moved = x.to(DEVICE)
    assert torch.equal(run_on_device(torch.add, moved, row.to(DEVICE)).cpu(), x + row)
    turned = run_on_device(moved.t().contiguous)
    assert torch.equal(turned.cpu(), x.t().contiguous())
    assert torch.equal(run_on_device(torch.add, moved.t(), turned).cpu(), x.t() * 2)


def test_a_cast_changes_the_size_of_what_is_bound() -> None:
    count = beyond_one_binding(torch.float32)
    x = pattern(count, torch.int32)
    moved = x.to(DEVICE)
    for dtype in (torch.int64, torch.int16, torch.bool):
        assert torch.equal(run_on_device(moved.to, dtype).cpu(), x.to(dtype)), dtype


def test_views_far_into_the_storage() -> None:
    count = beyond_one_binding(torch.uint8)
    x = pattern(count, torch.uint8)
    moved = x.to(DEVICE)
    for begin in (count - 1, count - 7, 128 * MIB - 1, 128 * MIB + 1):
        assert moved[begin : begin + 7].tolist() == x[begin : begin + 7].tolist()
        assert (moved[begin : begin + 7] + 1).tolist() == (x[begin : begin + 7] + 1).tolist()
    with on_device():
        edge = moved[128 * MIB - 3 : 128 * MIB + 3]
        edge.add_(1)
    x[128 * MIB - 3 : 128 * MIB + 3] += 1
    assert torch.equal(moved.cpu(), x)


# Every family at the adapter's limit and beyond it.


def exact(x: torch.Tensor) -> torch.Tensor:
    """Integers whose sums have no rounding."""
    return x.remainder(3)


FAMILIES: dict[str, tuple[torch.dtype, Callable[[torch.Tensor], torch.Tensor]]] = {
    "pointwise": (torch.float32, lambda x: torch.where(x > 100, x * 2, -x)),
    "sum": (torch.int32, lambda x: x.sum()),
    "sum over columns": (torch.float32, lambda x: exact(x)[: x.numel() // 1024 * 1024].view(-1, 1024).sum(0)),
    "amax": (torch.float32, lambda x: x.amax()),
    "argmax": (torch.float32, lambda x: x.argmax()),
    "any": (torch.uint8, lambda x: (x == 300).any()),
    "softmax": (torch.float32, lambda x: (x / 1e7)[: x.numel() // 512 * 512].view(-1, 512).softmax(1)),
    "cumsum": (torch.int32, lambda x: x.cumsum(0, dtype=torch.int32)),
    "sort": (torch.uint8, lambda x: x[: x.numel() // 8].sort().values),
    "topk": (torch.float32, lambda x: x.topk(3).values),
    "median": (torch.int32, lambda x: x.median()),
    "gather": (torch.float32, lambda x: x.index_select(0, torch.arange(x.numel() - 1, 0, -9973, device=x.device))),
    "index": (torch.float32, lambda x: x[torch.arange(0, x.numel(), 9973, device=x.device)]),
    "index_put": (torch.float32, lambda x: x.index_fill_(0, torch.tensor([0, x.numel() - 1], device=x.device), 7.0)),
    "scatter_add": (
        torch.int32,
        lambda x: x.scatter_add_(0, torch.tensor([x.numel() - 1], device=x.device), x[:1].clone()),
    ),
    "embedding": (
        torch.float32,
        lambda x: F.embedding(
            torch.tensor([0, x.numel() // 64 - 1], device=x.device), x[: x.numel() // 64 * 64].view(-1, 64)
        ),
    ),
    "nonzero": (torch.uint8, lambda x: (x[-(x.numel() // 8) :] == 77).nonzero()),
    "masked_select": (torch.float32, lambda x: x.masked_select(x > 8.3e6)),
    "cat": (torch.uint8, lambda x: torch.cat((x[:5], x))),
    "flip": (torch.int32, lambda x: x.flip(0)),
    "histc": (torch.float32, lambda x: x.histc(5, 0, 8.4e6)),
    "random": (torch.float32, lambda x: (x.uniform_() < 1).all()),
    "quantize": (torch.float32, lambda x: torch.quantize_per_tensor(x, 4e4, 0, torch.quint8).int_repr()),
    "matmul": (torch.float32, lambda x: exact(x)[: x.numel() // 2048 * 2048].view(-1, 2048) @ exact(x[:2048])),
}


@pytest.mark.parametrize("beyond", (False, True), ids=("at the limit", "beyond"))
@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str, beyond: bool) -> None:
    dtype, run = FAMILIES[family]
    count = beyond_one_binding(dtype)
    limit = torch.webgpu.get_device_properties().limits["maxStorageBufferBindingSize"]
    x = pattern(count if beyond else min(limit // dtype.itemsize, 100_000_000), dtype)
    torch.testing.assert_close(run(x.to(DEVICE)).cpu(), run(x), rtol=1e-5, atol=0)


# Sums, products and their gradients over a table larger than a binding: a vocabulary of 50257.

VOCABULARY, WIDTH = 50257, 768


def table() -> torch.Tensor:
    """Numbers with few bits, so that sums in any order are equal."""
    return pattern(VOCABULARY * WIDTH, torch.float32).remainder_(5).sub_(2).view(VOCABULARY, WIDTH)


def small(*shape: int) -> torch.Tensor:
    return torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(0)).float()


REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda x: x.sum(),
    "var": lambda x: x.var(),
    "argmax of the transposed": lambda x: x.t().argmax(),
    "softmax": lambda x: x.softmax(1)[::97],
    "softmax of columns": lambda x: x.softmax(0)[::97],
    "cumsum of columns": lambda x: x.cumsum(0)[::97],
    "sort of rows": lambda x: torch.cat(tuple(part[::97] for part in x.sort(dim=1, stable=True)), 1),
    "mean of rows": lambda x: x.mean(1),
    "mean of columns": lambda x: x.mean(0),
    "var of columns": lambda x: x.var(0),
    "argmin of columns": lambda x: x.add(torch.arange(VOCABULARY, 0, -1, device=x.device)[:, None]).argmin(0),
    "amax of all": lambda x: x.amax(),
    "norm": lambda x: x.norm(),
    "transposed": lambda x: x.t().sum(1),
    "cumsum of rows": lambda x: x.cumsum(1)[:, -1],
    "bfloat16": lambda x: x.repeat(2, 1).bfloat16().sum(0, dtype=torch.float32),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    x = table()
    expected = REDUCTIONS[name](x)
    assert_same(run_on_device(REDUCTIONS[name], x.to(DEVICE)), expected, rtol=1e-5, atol=1e-6)


def test_linear_and_its_gradients() -> None:
    x, weight, bias, g = small(3, WIDTH), table(), small(VOCABULARY), small(3, VOCABULARY)
    here = [x.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()]
    there = to_device(here)
    expected = F.linear(*here)
    actual = run_on_device(F.linear, *there)
    assert_same(actual, expected, exact=True)
    with on_device():
        found = torch.autograd.grad(actual, there, g.to(DEVICE))
    for one, other in zip(found, torch.autograd.grad(expected, here, g), strict=True):
        assert_same(one, other, exact=True)


def test_products_with_a_large_operand() -> None:
    weight, left, right = table(), small(2, VOCABULARY), small(WIDTH, 2)
    there = weight.to(DEVICE)
    halves = there.repeat(2, 1).bfloat16()
    for call in (
        lambda w, a, b: torch.addmm(a[:, :2] @ a[:, :2].t() @ a[:, :WIDTH], a, w, beta=2, alpha=-1),
        lambda w, a, b: w @ b,
        lambda w, a, b: (b.t() @ w.t()).t(),
        lambda w, a, b: torch.mv(w, b[:, 0]),
    ):
        assert_same(
            run_on_device(call, there, left.to(DEVICE), right.to(DEVICE)), call(weight, left, right), exact=True
        )
    product = run_on_device(torch.mm, left.repeat(1, 2).bfloat16().to(DEVICE), halves)
    wanted = (left @ weight * 2).bfloat16()
    torch.testing.assert_close(product.cpu(), wanted, rtol=1e-2, atol=1e-2)


def test_cross_entropy() -> None:
    """Scores of 700 words take 134 MiB."""
    scores = pattern(700 * VOCABULARY, torch.float32).remainder_(7).view(700, VOCABULARY)
    words = torch.arange(700) * 71
    moved = scores.to(DEVICE).requires_grad_()
    with on_device():
        loss = F.cross_entropy(moved, words.to(DEVICE))
        loss.backward()
    expected = F.cross_entropy(scores.requires_grad_(), words)
    expected.backward()
    assert_same(loss, expected, rtol=1e-5, atol=1e-5)
    for rows in (slice(0, 2), slice(349, 351), slice(698, 700)):
        assert_same(moved.grad[rows], scores.grad[rows], rtol=1e-4, atol=1e-8)


def test_gradient_of_an_embedding_and_a_fused_step() -> None:
    rows = torch.tensor([0, 25000, 43690, 43691, 50256, 25000])
    start = table()
    weight = start.to(DEVICE).requires_grad_()
    optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
    with on_device():
        F.embedding(rows.to(DEVICE), weight).square().sum().backward()
        optimizer.step()
    some = rows.unique()
    expected = start[some].requires_grad_()
    F.embedding(torch.searchsorted(some, rows), expected).square().sum().backward()
    assert_same(weight.grad[some.to(DEVICE)], expected.grad, exact=True)
    torch.optim.AdamW([expected], lr=0.1).step()
    assert_same(weight.detach()[some.to(DEVICE)], expected.detach(), rtol=1e-5, atol=1e-6)


def test_layer_norm() -> None:
    x, weight, bias = table(), small(WIDTH), small(WIDTH)
    moved = to_device([x, weight, bias])
    for tensor in moved:
        tensor.requires_grad_()
    with on_device():
        actual = F.layer_norm(moved[0], (WIDTH,), moved[1], moved[2])
        actual.backward(moved[0].detach())
    rows = torch.tensor([0, 1, 25152, 43689, 43691, VOCABULARY - 1])
    some = x[rows].requires_grad_()
    expected = F.layer_norm(some, (WIDTH,), weight, bias)
    expected.backward(some.detach())
    assert_same(actual.detach()[rows.to(DEVICE)], expected.detach(), rtol=1e-4, atol=1e-5)
    assert_same(moved[0].grad[rows.to(DEVICE)], some.grad, rtol=1e-4, atol=1e-4)
    assert_same(moved[2].grad, x.sum(0), rtol=1e-5, atol=1e-3)
