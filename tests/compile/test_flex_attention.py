"""flex_attention: the kernels of attention with functions of the user's, against products and sums on the CPU."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    flex_attention,
    noop_mask,
)

from tests.compile.support import compiled, count
from tests.support import DEVICE, FLOATS, assert_same, name_of, on_device

Function = Callable[..., Tensor]


class Mods(NamedTuple):
    score: Function | None = None
    mask: Function | None = None


def causal(b: Any, h: Any, m: Any, n: Any) -> Any:
    return m >= n


def sliding_window(b: Any, h: Any, m: Any, n: Any) -> Any:
    return (m >= n) & (m - n <= 40)


def alibi(device: str, heads: int) -> Mods:
    slopes = torch.exp2(-torch.arange(1.0, heads + 1)).to(device)
    return Mods(lambda score, b, h, m, n: score + slopes[h] * (n - m), causal)


def documents(device: str, heads: int) -> Mods:
    ids = torch.arange(512).div(37, rounding_mode="floor").to(device)
    return Mods(None, and_masks(lambda b, h, m, n: ids[m] == ids[n], causal))


def prefix(device: str, heads: int) -> Mods:
    lengths = torch.tensor([5, 60, 30], dtype=torch.int32).to(device)
    return Mods(None, lambda b, h, m, n: (n < lengths[b]) | (m >= n))


def bias(device: str, heads: int) -> Mods:
    table = torch.randn(heads, 512, generator=torch.Generator().manual_seed(1)).to(device)
    return Mods(lambda score, b, h, m, n: score + table[h, (m - n).abs()])


MODS: dict[str, Callable[[str, int], Mods]] = {
    "plain": lambda device, heads: Mods(),
    "causal": lambda device, heads: Mods(None, causal),
    "sliding window": lambda device, heads: Mods(None, sliding_window),
    "alibi": alibi,
    "soft cap": lambda device, heads: Mods(lambda s, b, h, m, n: 2 * torch.tanh(s / 2), causal),
    "documents": documents,
    "prefix": prefix,
    "bias": bias,
    "heads differ": lambda device, heads: Mods(
        lambda s, b, h, m, n: torch.where(h % 2 == 0, s, s * 0.5), lambda b, h, m, n: (m >= n) | (h == 1)
    ),
    "nothing seen by some": lambda device, heads: Mods(None, lambda b, h, m, n: (m > n) & (m % 3 != 1)),
}


class Problem(NamedTuple):
    batches: int = 2
    heads: int = 2
    key_heads: int = 2
    queries: int = 70
    keys: int = 70
    size: int = 16
    value_size: int = 16
    key_batches: int = 2


def inputs(problem: Problem, dtype: torch.dtype = torch.float32, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    p = problem
    shapes = (
        (p.batches, p.heads, p.queries, p.size),
        (p.key_batches, p.key_heads, p.keys, p.size),
        (p.key_batches, p.key_heads, p.keys, p.value_size),
    )
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def moved(tensors: list[Tensor]) -> list[Tensor]:
    return [t.detach().to(DEVICE).requires_grad_(t.requires_grad) for t in tensors]


def dense(
    q: Tensor, k: Tensor, v: Tensor, mods: Mods, visible: Tensor | None = None, scale: float | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The result, the log-sum-exp and the largest score, in float32, from the definition."""
    batches, heads, group = q.shape[0], q.shape[1], q.shape[1] // k.shape[1]
    q, k, v = q.float(), *(x.float().repeat_interleave(group, 1).expand(batches, -1, -1, -1) for x in (k, v))
    scores = q @ k.transpose(-2, -1) * (scale or 1 / math.sqrt(q.shape[-1]))
    sizes = (batches, heads, q.shape[2], k.shape[2])
    index = [torch.arange(s).view([-1 if i == d else 1 for i in range(4)]) for d, s in enumerate(sizes)]
    if mods.score is not None:
        scores = mods.score(scores, *index)
    seen = torch.ones(sizes, dtype=torch.bool) if mods.mask is None else mods.mask(*index).expand(sizes)
    seen = seen if visible is None else seen & visible
    scores = scores.masked_fill(~seen, -math.inf)
    log_sum = scores.logsumexp(-1)
    weights = torch.where(seen, torch.exp(scores - log_sum.unsqueeze(-1)), 0)
    return weights @ v, log_sum, scores.amax(-1)


def block_mask(mods: Mods, problem: Problem, device: str = DEVICE, block: Any = 32) -> BlockMask | None:
    if mods.mask is None:
        return None
    sizes = problem.batches, problem.heads, problem.queries, problem.keys
    return create_block_mask(mods.mask, *sizes, device=device, BLOCK_SIZE=block)


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 2e-5, "atol": 2e-5} if dtype is torch.float32 else {"rtol": 2e-2, "atol": 2e-2}


@pytest.mark.parametrize(
    ("name", "is_compiled"),
    [*((name, True) for name in MODS), ("plain", False), ("alibi", False), ("documents", False)],
)
def test_forward(name: str, is_compiled: bool) -> None:
    problem = Problem(batches=3, key_batches=3)
    tensors = inputs(problem)
    expected = dense(*tensors, MODS[name]("cpu", problem.heads))[0]
    mods = MODS[name](DEVICE, problem.heads)
    mask = block_mask(mods, problem)
    call = compiled(flex_attention) if is_compiled else flex_attention
    on = moved(tensors)
    call(*on, score_mod=mods.score, block_mask=mask)
    with on_device(dispatches=1 if is_compiled else True, waits=0 if is_compiled else None) as results:
        results.append(call(*on, score_mod=mods.score, block_mask=mask))
    assert_same(results[0], expected, **tolerance(torch.float32))


@pytest.mark.parametrize("name", MODS)
def test_gradients(name: str) -> None:
    """The forward is one kernel; gradients are two, and one that joins the lists of a block mask."""
    problem = Problem(batches=3, key_batches=3)
    tensors = [t.requires_grad_() for t in inputs(problem)]
    on = moved(tensors)
    out = dense(*tensors, MODS[name]("cpu", problem.heads))[0]
    slope = torch.randn(out.shape, generator=torch.Generator().manual_seed(5))
    out.backward(slope)
    mods = MODS[name](DEVICE, problem.heads)
    mask = block_mask(mods, problem)
    call = compiled(flex_attention)
    slope = slope.to(DEVICE)
    results: list[Tensor] = []

    def step() -> None:
        for t in on:
            t.grad = None
        results[:] = [call(*on, score_mod=mods.score, block_mask=mask)]
        results[0].backward(slope)

    step()
    step()
    with on_device(dispatches=3 if mask is None else 4) as shown:
        step()
        shown += [*results, *(t.grad for t in on)]
    assert_same(results[0], out.detach(), **tolerance(torch.float32))
    for one, other in zip(on, tensors, strict=True):
        assert_same(one.grad, other.grad, rtol=1e-4, atol=1e-4)


SHAPES = {
    "grouped heads": Problem(heads=6, key_heads=2),
    "one query, grouped": Problem(heads=8, key_heads=2, queries=1, keys=300),
    "one query": Problem(queries=1, keys=1200, batches=1, key_batches=1),
    "more keys": Problem(queries=40, keys=100),
    "one batch of keys": Problem(batches=3, key_batches=1),
    "heads of 256": Problem(size=256, value_size=256, batches=1, key_batches=1),
    "heads of odd sizes": Problem(size=18, value_size=7),
    "wide values": Problem(size=32, value_size=64),
    "one of each": Problem(1, 1, 1, 1, 1, 4, 4, 1),
}


OF_HALVES = ("grouped heads", "heads of odd sizes")


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [(shape, dtype) for dtype in FLOATS for shape in (SHAPES if dtype is torch.float32 else OF_HALVES)],
    ids=lambda x: x if isinstance(x, str) else name_of(x),
)
def test_shapes_and_dtypes(shape: str, dtype: torch.dtype) -> None:
    problem = SHAPES[shape]
    tensors = [t.requires_grad_() for t in inputs(problem, dtype)]
    on = moved(tensors)

    def score(s: Any, b: Any, h: Any, m: Any, n: Any) -> Any:
        return s + 0.01 * (h + 1) * n

    mods = Mods(score, lambda b, h, m, n: m + 45 >= n)
    expected, log_sum, _ = dense(*tensors, mods)
    call = compiled(lambda q, k, v, mask: flex_attention(
        q, k, v, score_mod=score, block_mask=mask, enable_gqa=True, return_aux=AuxRequest(lse=True)))  # fmt: skip
    out, aux = call(*on, block_mask(mods, problem, block=(64, 48)))
    assert_same(out, expected.to(dtype).detach(), **tolerance(dtype))
    assert_same(aux.lse, log_sum.detach(), **tolerance(dtype))
    expected.square().sum().backward()
    out.float().square().sum().backward()
    close = {"rtol": 2e-4, "atol": 2e-4} if dtype is torch.float32 else {"rtol": 5e-2, "atol": 0.15}
    for one, other in zip(on, tensors, strict=True):
        assert_same(one.grad, other.grad, **close)


def test_log_sum_and_largest_score() -> None:
    """Both with a gradient through the log-sum-exp alone, and with -inf where nothing is seen."""
    problem = Problem()
    mods = MODS["nothing seen by some"]("cpu", 2)
    tensors = [t.requires_grad_() for t in inputs(problem)]
    on = moved(tensors)
    _, log_sum, most = dense(*tensors, mods)
    request = AuxRequest(lse=True, max_scores=True)
    call = compiled(lambda q, k, v, mask: flex_attention(q, k, v, block_mask=mask, return_aux=request)[1])
    aux = call(*on, block_mask(mods, problem))
    assert_same(aux.lse, log_sum.detach(), **tolerance(torch.float32))
    assert_same(aux.max_scores, most.detach(), **tolerance(torch.float32))
    for sums in (log_sum, aux.lse):
        torch.where(sums.isfinite(), sums, 0).sum().backward()
    for one, other in zip(on[:2], tensors[:2], strict=True):
        assert_same(one.grad, torch.nan_to_num(other.grad), rtol=1e-4, atol=1e-4)


def test_blocks_that_are_not_listed_are_not_read() -> None:
    """Keys and values there are NaN: a product with them would show."""
    problem = Problem(queries=128, keys=256)
    q, k, v = inputs(problem)
    counts = torch.tensor([1, 2, 0, 1], dtype=torch.int32).view(1, 1, 4)
    blocks = torch.zeros(1, 1, 4, 8, dtype=torch.int32)
    blocks[..., :2] = torch.tensor([[1, 0], [1, 4], [0, 0], [4, 0]])
    seen = torch.zeros(4, 8, dtype=torch.bool)
    for row, (n, places) in enumerate(zip(counts.flatten(), blocks.view(4, 8), strict=True)):
        seen[row, places[:n]] = True
    visible = seen.repeat_interleave(32, 0).repeat_interleave(32, 1)
    expected = dense(q, k, v, Mods(), visible)[0]
    for t in (k, v):
        t[..., ~seen.any(0).repeat_interleave(32), :] = math.nan
    call = compiled(flex_attention)
    for lists in ((counts, blocks), (torch.zeros_like(counts), blocks, counts, blocks)):
        mask = BlockMask.from_kv_blocks(
            *(x.to(DEVICE) for x in lists), BLOCK_SIZE=32, mask_mod=noop_mask, seq_lengths=(128, 256)
        )
        assert_same(call(*moved([q, k, v]), block_mask=mask), expected, **tolerance(torch.float32))


def test_gradient_of_a_captured_tensor() -> None:
    problem = Problem()
    tensors = [t.requires_grad_() for t in inputs(problem)]
    table = torch.randn(2, 512, requires_grad=True)
    on, moved_table = moved(tensors), table.detach().to(DEVICE).requires_grad_()

    def run(q: Any, k: Any, v: Any, table: Any, mask: Any) -> Any:
        return flex_attention(q, k, v, score_mod=lambda s, b, h, m, n: s + table[h, m - n + 100], block_mask=mask)

    mods = Mods(lambda s, b, h, m, n: s + table[h, m - n + 100], causal)
    expected = dense(*tensors, mods)[0]
    actual = compiled(run)(*on, moved_table, block_mask(mods, problem))
    assert_same(actual, expected.detach(), **tolerance(torch.float32))
    expected.square().sum().backward()
    actual.square().sum().backward()
    for one, other in zip([*on, moved_table], [*tensors, table], strict=True):
        assert_same(one.grad, other.grad, rtol=1e-4, atol=1e-4)


def test_more_captured_tensors_than_the_adapter_binds() -> None:
    problem = Problem()
    tables = [torch.randn(80, generator=torch.Generator().manual_seed(i)) for i in range(12)]

    def mods(tables: list[Tensor]) -> Mods:
        return Mods(lambda s, b, h, m, n: s + sum(t[n] for t in tables), causal)

    tensors = inputs(problem)
    on = mods(moved(tables))
    actual = compiled(flex_attention)(*moved(tensors), score_mod=on.score, block_mask=block_mask(on, problem))
    assert_same(actual, dense(*tensors, mods(tables))[0], **tolerance(torch.float32))


def test_lengths_change_without_another_compilation() -> None:
    call = compiled(lambda q, k, v, mask: flex_attention(q, k, v, block_mask=mask), dynamic=True)
    for length in (70, 96, 129):
        problem = Problem(queries=length, keys=length)
        tensors = inputs(problem)
        actual = call(*moved(tensors), block_mask(Mods(None, causal), problem))
        assert_same(actual, dense(*tensors, Mods(None, causal))[0], **tolerance(torch.float32))


def test_views_and_other_operations_around() -> None:
    """Heads as views of one projection, as models have them; what stands in front and behind is compiled too."""
    x = torch.randn(2, 70, 3 * 2 * 16)

    def run(x: Tensor) -> Tensor:
        q, k, v = x.mul(2).view(2, 70, 3, 2, 16).permute(2, 0, 3, 1, 4)
        return flex_attention(q, k, v, score_mod=lambda s, b, h, m, n: s - 0.1 * (m - n).abs()).transpose(1, 2) + 1

    q, k, v = (2 * x).view(2, 70, 3, 2, 16).permute(2, 0, 3, 1, 4)
    expected = dense(q, k, v, Mods(lambda s, b, h, m, n: s - 0.1 * (m - n).abs()))[0].transpose(1, 2) + 1
    call = compiled(run)
    assert_same(call(x.to(DEVICE)), expected, strides=False, **tolerance(torch.float32))
    assert count(call, x.to(DEVICE)) <= 3


@pytest.mark.parametrize("is_compiled", [True, False], ids=["compiled", "eager"])
def test_autocast(is_compiled: bool) -> None:
    tensors = inputs(Problem())
    call = compiled(flex_attention) if is_compiled else flex_attention
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        actual = call(*moved(tensors))
    assert_same(actual, dense(*tensors, Mods())[0].to(torch.bfloat16), **tolerance(torch.bfloat16))


def test_cpu_refuses_what_it_refused() -> None:
    tensors = [t.requires_grad_() for t in inputs(Problem())]
    with pytest.raises(NotImplementedError, match="backward on CPU"):
        flex_attention(*tensors)


def test_backends_of_other_devices() -> None:
    tensors = moved(inputs(Problem()))
    with pytest.raises(Exception, match="there is no BACKEND='FLASH'"):
        compiled(flex_attention)(*tensors, kernel_options={"BACKEND": "FLASH"})


def test_kernels_for_gpus() -> None:
    """Those that exchange through workgroup memory, whose barriers need control flow that is the same for all lanes."""
    chosen = "test_gradients and (alibi or heads) or test_shapes_and_dtypes and grouped and bfloat16"
    command = [sys.executable, "-m", "pytest", __file__, "-n", "0", "-v", "-x", "-k", chosen]
    environment = {**os.environ, "TORCH_WEBGPU_TARGET": "gpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "3 passed" in done.stdout
