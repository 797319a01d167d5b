"""Sums over rows and columns, scans and transposes as GPUs get them. Run by test_gpu_kernels.py."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest
import torch

from tests.support import DEVICE, assert_same, on_device, to_device
from torch_webgpu import _C

Call = Callable[[torch.Tensor], torch.Tensor]
COLUMNS: dict[str, Call] = {
    "sum": lambda x: x.float().sum(0) if x.dtype == torch.float16 else x.sum(0),
    "sum of all": lambda x: x.float().sum(),
    "amax": lambda x: x.amax(0),
    "argmax": lambda x: x.argmax(0),
    "any": lambda x: (x > 2).any(0),
    "var": lambda x: x.float().var(0),
    "at an offset": lambda x: x[:, 1:].float().sum(0),
    "transposed": lambda x: x.t().float().sum(1),
}
SHAPES = [(15, 8), (16, 7), (17, 64), (100, 68), (513, 256), (4096, 36), (70, 12, 5), (64, 1000), (20_000, 12)]
LINES: dict[str, Call] = {
    "cumsum": lambda x: x.cumsum(-1),
    "cummax": lambda x: torch.cummax(x, -1).indices,
    "cummin": lambda x: torch.cummin(x, -1).values,
    "logcumsumexp": lambda x: x.float().logcumsumexp(-1),
    "cumprod": lambda x: (1 + x.float() / 1e6).cumprod(-1),
}
LENGTHS = [(300,), (5, 256), (3, 1000), (2, 1025), (1, 5000), (4, 4096), (1, 300_000), (2, 100_001), (1100, 260)]


def check(call: Call, x: torch.Tensor, message: str, tolerance: float = 1e-5) -> None:
    with on_device(None, waits=None):
        actual = call(to_device(x))
    assert_same(actual, call(x), message, rtol=tolerance, atol=tolerance * 10, strides=False)


def labels(call: Callable[[], object]) -> list[str]:
    profile = _C.Profile()
    profile.start()
    call()
    profile.stop()
    return [row[0] for row in profile.rows]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
@pytest.mark.parametrize("name", COLUMNS)
def test_columns(name: str, dtype: torch.dtype) -> None:
    for shape in SHAPES:
        x = (torch.randn(shape, generator=torch.Generator().manual_seed(0)).abs() * 9).to(dtype)
        if name == "transposed" and x.dim() > 2:
            continue
        check(COLUMNS[name], x, f"{name} {shape} {dtype}", 1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int64])
@pytest.mark.parametrize("name", LINES)
def test_scans(name: str, dtype: torch.dtype) -> None:
    for shape in LENGTHS:
        x = (torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 3).to(dtype)
        check(LINES[name], x, f"{name} {shape} {dtype}", 1e-3 if x.numel() > 100_000 else 1e-4)


ROWS: dict[str, Call] = {
    "sum": lambda x: x.float().sum(-1),
    "argmax": lambda x: x.argmax(-1),
    "var": lambda x: x.float().var(-1),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "softmax of a slice": lambda x: x[:, 1:].softmax(-1),
    "softmax_backward": lambda x: torch._softmax_backward_data(x, x.softmax(-1), -1, x.dtype),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", ROWS)
def test_short_rows(name: str, dtype: torch.dtype) -> None:
    """By teams of lanes, the last of which may have no row."""
    for rows, length in [(7, 16), (65, 30), (33, 64), (100, 100), (19, 256), (9, 257), (3, 1024), (5, 2050)]:
        x = torch.randn(rows, length, generator=torch.Generator().manual_seed(0)).to(dtype)
        check(ROWS[name], x, f"{name} {rows} {length} {dtype}", 1e-4 if dtype == torch.float32 else 2e-3)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.int64, torch.complex64, torch.float16, torch.bfloat16, torch.uint8, torch.bool]
)
def test_transposes(dtype: torch.dtype) -> None:
    for shape in [(16, 16), (33, 70), (100, 31), (256, 256), (1000, 17), (15, 40), (132, 68), (64, 1000)]:
        x = (torch.randn(shape, generator=torch.Generator().manual_seed(0)).abs() * 9).to(dtype)
        check(lambda y: y.t().contiguous(), x, f"{shape} {dtype}", 0)
        check(lambda y: y[3:, 2:].t().contiguous(), x, f"{shape} {dtype}", 0)
        check(lambda y: y[4:, 8:].t().contiguous(), x, f"{shape} {dtype}", 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.uint8])
def test_words_that_are_shared_with_what_is_not_written(dtype: torch.dtype) -> None:
    """Rows that end within a word, and go on with elements of another tensor."""
    x = torch.arange(70 * 64).remainder(251).view(70, 64).to(dtype)
    for columns in (17, 18, 19, 20, 66, 69):
        room = torch.full((64, 72), 7, dtype=dtype)
        on = to_device(room)
        room[:, :columns].copy_(x[:columns].t())
        with on_device(1):
            on[:, :columns].copy_(to_device(x)[:columns].t())
        assert_same(on, room, f"{columns}", exact=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int8])
def test_all_orders_of_dimensions(dtype: torch.dtype) -> None:
    x = torch.randn(6, 18, 24, 20).mul(9).to(dtype)
    room = torch.zeros(8, 20, 26, 22, dtype=dtype)
    for order in permutations(range(4)):
        check(lambda y, order=order: y.permute(order).contiguous(), x, str(order), 0)
        check(
            lambda y: y[1:7, 2:20, :24, 1:21].copy_(to_device(x) if y.is_webgpu else x).permute(3, 2, 1, 0), room, "", 0
        )


def test_which_kernels_they_are() -> None:
    x = torch.randn(300, 200, device=DEVICE)
    assert any("transpose" in label for label in labels(lambda: x.t().contiguous()))
    assert any("scan_group_quads" in label for label in labels(lambda: torch.randn(2, 1024, device=DEVICE).cumsum(-1)))
    for dtype in (torch.float16, torch.uint8):
        packed = x.to(dtype)
        assert any("transpose_packed" in label for label in labels(lambda packed=packed: packed.t().contiguous()))
    assert not any("transpose" in label for label in labels(lambda: x.t()[:8].contiguous()))
