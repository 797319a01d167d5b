"""Views, gathers, scatters, pads and masks."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.compile.support import check, compiled, with_once
from tests.support import FLOATS, assert_same, to_device


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float16, torch.uint8, torch.bool], ids=str)
def test_views(dtype: torch.dtype) -> None:
    x = torch.randint(0, 2, (9, 14)).to(dtype)
    check(lambda x: (x[1:, 3:] | x[1:, 3:] if dtype is torch.bool else x[1:, 3:] * 2, x.t().contiguous(),
                     x.flip(1), x.roll(3, 1), x[:, ::2].clone(), x.expand(2, 9, 14).clone()), x)  # fmt: skip


def test_gather_and_embedding() -> None:
    x, i = torch.randn(64, 12), torch.randint(-64, 64, (30,))
    check(
        lambda x, i: (x[i], x[:, i % 12], x.gather(0, (i % 64)[:, None].expand(-1, 12)), F.embedding(i % 64, x)), x, i
    )


def test_indices_out_of_range_stay_inside() -> None:
    """Inductor's device assertions have no place to go: reads and writes are clamped."""
    base = torch.zeros(32, device="webgpu")
    compiled(lambda x, i: x[8:16].index_put_((i,), torch.ones(2, device="webgpu")))(
        base, torch.tensor([7, 900]).to("webgpu")
    )
    assert base.cpu().nonzero().flatten().tolist() == [15]


@pytest.mark.parametrize("dtype", FLOATS[1:], ids=str)
def test_sums_of_halves_are_rounded_once(dtype: torch.dtype) -> None:
    """A sum that is rounded with each term stays where a term is less than half a step of its dtype."""
    x, i, ones = torch.zeros(4, 3), torch.zeros(5000, dtype=torch.int64), torch.ones(5000, 3)
    expected = x.index_put((i,), ones, accumulate=True).to(dtype)
    x, i, ones = to_device((x.to(dtype), i, ones.to(dtype)))
    for function in (
        lambda x, i, ones: x.index_put((i,), ones, accumulate=True),
        lambda x, i, ones: x.scatter_add(0, i[:, None].expand(-1, 3), ones),
    ):
        assert_same(compiled(function)(x, i, ones), expected)
    compiled(lambda x, i, ones: x.index_put_((i,), ones, accumulate=True))(x, i, ones)
    assert_same(x, expected)


@pytest.mark.once
def test_cat_and_pad() -> None:
    x, y = torch.randn(4, 12), torch.randn(4, 12)
    check(lambda x, y: (torch.cat([x, y]), torch.cat([x, y * 2], 1), F.pad(x, (1, 2)),
                        F.pad(x, (0, 0, 3, 1), value=2.0),
                        torch.stack([x, y], 1), F.pad(x, (-1, 3))), x, y)  # fmt: skip
    check(lambda x: F.pad(x[None, None], (2, 1, 1, 2), mode="reflect"), x)
    check(lambda x: F.pad(x, (1, 1, 1, 1)), torch.randn(1, 1))


@pytest.mark.once
def test_cat_of_small_dtypes() -> None:
    for dtype in (torch.uint8, torch.float16, torch.bool, torch.int64):
        x = torch.randint(0, 2, (3, 5)).to(dtype)
        check(lambda x: (torch.cat([x, x.flip(0)], 1), torch.cat([x[:, :3], x], 1)), x)


def test_cat_and_pad_are_part_of_what_reads_them() -> None:
    x, y = torch.randn(4, 12), torch.randn(4, 12)
    check(lambda x, y: torch.cat([x * 2, y + 1], 1).sin(), x, y, launches=1)
    check(lambda x, y: torch.cat([x * 2, y + 1], 1).sum(1), x, y, launches=1, rtol=1e-5, atol=1e-5)
    check(lambda x: F.pad(x * 2, (1, 2)).sin(), x, launches=1)
    check(lambda x: F.pad(x * 2, (1, 2)).amax(1), x, launches=1)


def test_cat_of_more_operands_than_bindings() -> None:
    tensors = [torch.randn(6) for _ in range(18)]
    check(
        lambda *xs: torch.stack([a * b - c for a, b, c in zip(xs[::3], xs[1::3], xs[2::3], strict=True)], 1), *tensors
    )


SCATTERED = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64)


@pytest.mark.parametrize("dtype", with_once(SCATTERED, torch.float16), ids=str)
def test_scatter_add(dtype: torch.dtype) -> None:
    x, i, s = torch.zeros(8, 3).to(dtype), torch.randint(0, 8, (20, 3)), torch.randint(0, 4, (20, 3)).to(dtype)
    check(lambda x, i, s: (x.scatter_add(0, i, s), x.index_put((i[:, 0],), s, accumulate=True)), x, i, s)


def test_scatter() -> None:
    x, i = torch.randn(8, 4), torch.randperm(8)[:5]
    check(
        lambda x, i: (x.index_fill(0, i, 2.0), x.scatter(0, i[:, None].expand(-1, 4), 1.0), x.index_copy(0, i, x[:5])),
        x,
        i,
    )


def test_triangles_and_ranges() -> None:
    check(lambda x: (x.tril(), x.triu(1), torch.arange(20, device=x.device) * 2**40, torch.eye(5, device=x.device)),
          torch.randn(8, 8))  # fmt: skip


def test_where_and_masks() -> None:
    check(
        lambda x: (torch.where(x > 0, x, -1.0), x.masked_fill(x > 1, 0.0), torch.where(x > 0, 1, 2)), torch.randn(7, 9)
    )


def test_transposed_operands() -> None:
    check(lambda x, y: x.t() + y, torch.randn(33, 40), torch.randn(40, 33))
    check(lambda x, y: (x.t() * y).sum(1), torch.randn(33, 40), torch.randn(40, 33), rtol=1e-5, atol=1e-5)


def test_result_is_clean_beside_a_view() -> None:
    base = torch.zeros(40, dtype=torch.uint8, device="webgpu")
    compiled(lambda x: x.add_(1))(base[5:18])
    assert base.cpu().tolist() == [0] * 5 + [1] * 13 + [0] * 22
    assert to_device(torch.ones(1)).is_contiguous()
