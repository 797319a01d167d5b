"""How many dispatches common work takes. A number here may fall; one that rises needs a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.dispatches import WORK
from tests.support import DEVICE, DTYPES, assert_same, name_of, on_device, outcome, run_on_device, to_device

COUNTS = {
    "add": 1,
    "x[i] = number": 1,
    "x[mask] = number": 1,
    "x[index] = number": 1,
    "x[a:b] = number": 1,
    "masked_fill": 2,
    "where": 1,
    "sum": 2,
    "softmax": 1,
    "layer_norm": 1,
    "linear": 1,
    "attention": 1,
    "cross_entropy": 4,
    "embedding": 1,
    "one_hot": 2,
    "cat of 8": 1,
    "cat of 64": 8,
    "stack of 64": 8,
    "sort of rows": 1,
    "topk of few rows": 1,
    "topk of a vocabulary": 3,
    "lstm of 16 steps": 40,
    "lstm of 16 steps, backward": 37,
    "multinomial": 4,
}


@pytest.mark.parametrize("name", WORK)
def test_count(name: str) -> None:
    work = WORK[name]()
    work()
    with on_device(dispatches=COUNTS[name]):
        work()


WAITS: dict[str, tuple[int, Callable[[torch.Tensor], Any]]] = {
    "bincount": (1, lambda x: x.bincount()),
    "histc": (1, lambda x: x.float().histc(5)),
    "histc between bounds": (0, lambda x: x.float().histc(5, 2, 9)),
    "histogram": (1, lambda x: x.float().histogram(5)[0]),
    "nonzero": (1, lambda x: x.nonzero()),
    "masked_select": (1, lambda x: x[x > 2]),
    "unique": (1, lambda x: x.unique()),
    "repeat_interleave": (1, lambda x: x.repeat_interleave(x)),
    "repeat_interleave of a known size": (0, lambda x: x.repeat_interleave(x, output_size=190)),
}


@pytest.mark.parametrize("name", WAITS)
def test_waits(name: str) -> None:
    """As often as the shape of a result, or a range, depends on values: once."""
    waits, run = WAITS[name]
    x = torch.arange(20)
    assert_same(run_on_device(run, x.to(DEVICE), waits=waits), run(x))


def test_wrong_repeats() -> None:
    for repeats, text in (((-1, 3), "repeats can not be negative"), ((1, 3), "allocated size does not match")):
        with pytest.raises(RuntimeError, match=text):
            torch.repeat_interleave(torch.tensor(repeats, device=DEVICE), output_size=2).cpu()


ASSIGNMENTS: dict[str, Any] = {
    "an index": 2,
    "indices": (1, -1),
    "a slice": slice(1, 4, 2),
    "everything": ...,
    "a mask": torch.tensor([True, False, True, True, False]),
    "a whole mask": torch.ones(5, 4, dtype=torch.bool).tril(),
    "a mask behind": (slice(None), torch.tensor([True, False, True, False])),
    "an index tensor": torch.tensor([3, 0, -1]),
    "two index tensors": (torch.tensor([[0, 1], [4, 2]]), torch.tensor([1, -2])),
}


@pytest.mark.parametrize("dtype", (*DTYPES, torch.complex64), ids=name_of)
@pytest.mark.parametrize("key", ASSIGNMENTS)
def test_assigned_numbers(key: str, dtype: torch.dtype) -> None:
    place = ASSIGNMENTS[key]
    for cut in (lambda x: x, lambda x: x.t().contiguous().t(), lambda x: x[:, :]):
        expected = torch.arange(20).view(5, 4).to(dtype)
        actual = cut(to_device(expected))
        expected = cut(expected)
        expected[place] = 1
        there = to_device(place)
        with on_device(dispatches=1) as results:
            actual[there] = 1
            results.append(actual)
        assert_same(actual, expected)


def test_what_a_mask_takes() -> None:
    """Values of the device, of other dtypes, of the tensor itself; masks that do not fit."""

    def assign(device: str, value: Callable[[torch.Tensor], Any], mask: torch.Tensor) -> torch.Tensor:
        x = torch.arange(12.0, device=device).view(3, 4)
        x[mask.to(device)] = value(x)
        return x

    mask = torch.arange(12).view(3, 4) % 3 == 0
    for value in (
        lambda x: x[2, 3],
        lambda x: torch.tensor(5, device=x.device),
        lambda x: torch.tensor([7.5], device=x.device),
    ):
        assert_same(run_on_device(assign, DEVICE, value, mask), assign("cpu", value, mask))
    for wrong in (torch.ones(4, 3, dtype=torch.bool), torch.ones(3, 4, dtype=torch.uint8)):
        expected = outcome(assign, "cpu", lambda _: 1.0, wrong)[1]
        actual = outcome(assign, DEVICE, lambda _: 1.0, wrong)[1]
        assert type(actual) is type(expected) and expected is not None


def test_numbers_of_the_host() -> None:
    """A number is written to memory when something binds it, and never too late."""
    for dtype in (*DTYPES, torch.complex64):
        number = torch.scalar_tensor(1, dtype=dtype, device=DEVICE)
        assert number.shape == () and number.dtype == dtype
        with on_device(dispatches=False):
            assert number.item() == 1
        assert_same(number.view(1), torch.ones(1, dtype=dtype))
        if dtype not in (torch.bool, torch.complex64):
            number.add_(number)
            assert number.item() == 2
            assert_same(number, torch.tensor(2, dtype=dtype))
    number = torch.scalar_tensor(2.5, device=DEVICE)
    wide = number.expand(3)
    number.fill_(4)
    assert wide.tolist() == [4, 4, 4]
    number = torch.scalar_tensor(2.5, device=DEVICE)
    number.resize_(2)[1] = 1
    assert number.tolist() == [2.5, 1]
    assert torch.scalar_tensor(-1.5, device=DEVICE).clone().item() == -1.5


def test_assertions_wait_for_nobody() -> None:
    for dtype in DTYPES:
        with on_device():
            torch._assert_async(torch.ones((), dtype=dtype, device=DEVICE), "never")
        torch.webgpu.synchronize()
    with on_device():
        torch._assert_async(torch.tensor([False]).to(DEVICE), "what went wrong")
    with pytest.raises(RuntimeError, match="what went wrong"):
        torch.webgpu.synchronize()
    torch.webgpu.synchronize()
    torch._assert_async(torch.zeros((), device=DEVICE))
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value, but got zero"):
        torch.ones(3, device=DEVICE).cpu()


@pytest.mark.parametrize("dtype", (torch.float32, torch.int64, torch.bfloat16, torch.uint8), ids=name_of)
def test_joined_parts(dtype: torch.dtype) -> None:
    """Along each dimension, of all sizes, whole tensors and parts of them; where words are shared too."""
    for dim in range(3):
        for count in (2, 9, 33):
            parts = [torch.arange(60).mul(i + 1).to(dtype).view(3, 5, 4) for i in range(count)]
            cuts = [part.narrow(dim, i % 2, 1 + i % (part.size(dim) - 1)) for i, part in enumerate(parts)]
            moved = to_device(cuts)
            assert_same(run_on_device(torch.cat, moved, dim), torch.cat(cuts, dim))
            assert_same(run_on_device(torch.stack, to_device(parts), dim), torch.stack(parts, dim))
            padded = torch.cat(cuts, dim).movedim(dim, 0).repeat_interleave(2, 0).movedim(0, dim)
            out, there = padded.narrow(dim, 0, padded.size(dim) // 2), to_device(padded)
            with on_device():
                torch.cat(moved, dim, out=there.narrow(dim, 0, padded.size(dim) // 2))
            torch.cat(cuts, dim, out=out)
            assert_same(there, padded)
    images = [torch.randn(2, 3 + i, 4, 4).to(memory_format=torch.channels_last).to(dtype) for i in range(3)]
    assert_same(run_on_device(torch.cat, to_device(images), 1), torch.cat(images, 1))


def test_a_step_of_training() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 10)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x, y = torch.randn(8, 16, device=DEVICE), torch.randint(10, (8,), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    step()
    with on_device(dispatches=True):  # and no waits
        step()
