"""Every kernel of attention for GPUs, forced on this adapter; test_gpu_kernels runs this file as on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.support import on_device
from torch_webgpu import _C

Tensor = torch.Tensor

# How far a result may be from float64, beside its largest element.
ERROR = {torch.float32: 3e-6, torch.float16: 2e-3, torch.bfloat16: 1.2e-2}
NOTHING = float("-inf")


@pytest.fixture(autouse=True)
def automatic() -> Iterator[None]:
    yield
    _C.force_attention("")


@dataclass(frozen=True)
class Case:
    """A software adapter compiles such a kernel for seconds: each is here for one way to load, store or walk."""

    name: str
    kernel: str = "32 rows"
    heads: int = 2
    kv_heads: int = 2
    queries: int = 70
    keys: int = 70
    head: int = 8
    value: int = 8
    dtype: torch.dtype = torch.float32
    causal: bool = False
    mask: bool = False
    gradients: bool = True
    gap: int = 4  # elements between the rows in memory, which are NaN
    batch: int = 2

    def tensor(self, heads: int, rows: int, size: int) -> Tensor:
        """On the device, with NaN in the memory between the rows, which no result may depend on."""
        flat = torch.full((self.batch, rows, heads, size + self.gap), float("nan"), dtype=self.dtype)
        flat[..., :size] = torch.randn(self.batch, rows, heads, size)
        moved = flat.to("webgpu")[..., :size].transpose(1, 2)
        return moved.detach().requires_grad_(self.gradients)

    def inputs(self) -> list[Tensor]:
        torch.manual_seed(0)
        return [
            self.tensor(self.heads, self.queries, self.head),
            self.tensor(self.kv_heads, self.keys, self.head),
            self.tensor(self.kv_heads, self.keys, self.value),
        ]

    def bias(self) -> Tensor | None:
        if not self.mask:
            return None
        bias = torch.randn(self.heads, self.queries, self.keys).to(self.dtype)
        bias[0, 3 % self.queries] = NOTHING  # a query that sees nothing
        if not self.gradients and self.keys < 128:  # a log-sum-exp of such a row has no digits for the number of keys
            bias[1, 5 % self.queries] = torch.finfo(self.dtype).min
        bias[..., 7] = NOTHING
        return bias


CASES = [
    Case("causal", "64 rows", queries=100, keys=90, head=64, value=64, causal=True),
    Case("of halves", "64 rows", head=16, value=16, dtype=torch.float16, causal=True),
    Case("grouped, masked", heads=6, queries=37, keys=45, head=20, value=20, mask=True),
    Case("odd", queries=37, keys=45, head=7, value=5, gap=2, causal=True),
    Case("of bfloat16", head=12, value=8, dtype=torch.bfloat16, causal=True),
    Case("more keys than queries", "64 rows", queries=40, keys=131, causal=True),
    Case("a row of several heads", heads=6, queries=20, keys=33, causal=True),
]
FORWARD = [
    Case("large", head=132, value=68, gradients=False),
    Case("of halves in slices", "64 rows", head=80, value=48, dtype=torch.float16, gradients=False),
    Case("of bfloat16 without a rest", head=64, value=32, dtype=torch.bfloat16, causal=True, gradients=False),
    Case("odd halves", head=70, value=33, gap=1, dtype=torch.float16, gradients=False, queries=40),
]

# Some keys of one part, a part more, and more parts than a pass of the join takes.
DECODE = [
    Case("masked", "decode", heads=6, queries=1, keys=301, head=64, value=64, mask=True, gradients=False),
    Case("grouped", "decode", heads=6, queries=1, keys=1100, head=20, value=36, gradients=False),
    Case("three queries, causal", "decode", queries=3, keys=40, causal=True, gradients=False),
    Case("of halves", "decode", queries=1, keys=1000, head=128, value=96, dtype=torch.float16, gradients=False),
    Case("of bfloat16", "decode", queries=2, keys=2500, head=100, dtype=torch.bfloat16, gradients=False),
]


def attend(inputs: list[Tensor], mask: Tensor | None, weights: Tensor, **options: Any) -> list[Tensor]:
    out = F.scaled_dot_product_attention(*inputs, attn_mask=mask, **options)
    return [out, *(torch.autograd.grad(out, inputs, weights) if inputs[0].requires_grad else ())]


def labels_of(run: Any) -> list[str]:
    profile = _C.Profile()
    profile.start()
    run()
    profile.stop()
    return [row[0] for row in profile.rows]


def check(case: Case) -> list[str]:
    """Compares with float64 on the CPU; returns the kernels that ran."""
    _C.force_attention(case.kernel)
    inputs, mask = case.inputs(), case.bias()
    weights = torch.randn(case.batch, case.heads, case.queries, case.value).to(case.dtype)
    options = {"is_causal": case.causal, "enable_gqa": case.heads != case.kv_heads}
    exact = [x.detach().cpu().double().requires_grad_(case.gradients) for x in inputs]
    expected = attend(exact, None if mask is None else mask.double(), weights.double(), **options)
    there = (None if mask is None else mask.to("webgpu"), weights.to("webgpu"))
    results: list[Tensor] = []
    labels = labels_of(lambda: results.extend(attend(inputs, *there, **options)))
    with on_device():
        attend(inputs, *there, **options)
    for actual, wanted in zip(results, expected, strict=True):
        error = (actual.detach().cpu().double() - wanted).abs().max() / wanted.abs().max()
        assert error <= ERROR[case.dtype], (case.name, error)
    return labels


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_with_gradients(case: Case) -> None:
    labels = check(case)
    kinds = ("forward", "backward_query", "backward_key")
    assert len(labels) == len(kinds), labels
    for label, kind in zip(labels, kinds, strict=True):
        assert label.startswith(f"attention_{kind}(") and f", {case.kernel}" in label, labels


@pytest.mark.parametrize("case", FORWARD, ids=lambda case: case.name)
def test_forward(case: Case) -> None:
    labels = check(case)
    assert f", {case.kernel}" in labels[0], labels
    assert labels[1:] in ([], ["copy(f32) -> f16"]), labels  # without quads results are float32


@pytest.mark.parametrize("case", DECODE, ids=lambda case: case.name)
def test_decode(case: Case) -> None:
    labels = check(case)
    assert [label.split("(")[0] for label in labels] in (
        ["attention_forward"],
        ["attention_forward", "attention_combine"],
    ), labels
    assert ", decode" in labels[0], labels


@pytest.mark.parametrize("base", (CASES[2], DECODE[0]), ids=lambda case: case.kernel)
def test_rows_of_the_least_number(base: Case) -> None:
    """What a mask of finfo.min hides is hidden, unless that is the whole row: then all keys count alike."""
    check(replace(base, keys=100, gradients=False))


def test_parts_of_keys() -> None:
    labels = check(Case("parts", batch=1, heads=1, kv_heads=1, queries=40, keys=700, gradients=False))
    assert [label.split("(")[0] for label in labels] == ["attention_forward", "attention_combine"]


def test_log_sum() -> None:
    _C.force_attention("32 rows")
    q, k, v = (x.detach() for x in CASES[0].inputs())
    log_sum = torch.ops.aten._scaled_dot_product_fused_attention_overrideable(q, k, v)[1]
    expected = (q.cpu().double() @ k.cpu().double().mT / q.shape[-1] ** 0.5).logsumexp(-1)
    assert (log_sum.cpu().double() - expected).abs().max() < 1e-5


def test_no_such_kernel() -> None:
    with pytest.raises(ValueError, match="no kernel of attention named no such"):
        _C.force_attention("no such")


def test_what_gpus_choose() -> None:
    """Without a word, by shape: the largest blocks that occupy a large GPU; few rows by the kernel for decoding."""
    chosen = {}
    for heads, queries in ((2, 3), (2, 20), (2, 70), (96, 128)):
        q, k, v = (torch.zeros(1, heads, queries, 8, device="webgpu") for _ in range(3))
        label = labels_of(lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v))[0]
        chosen[heads, queries] = label.partition(", ")[2].partition(" of")[0]
    assert chosen == {(2, 3): "decode 8", (2, 20): "32 rows", (2, 70): "32 rows", (96, 128): "64 rows"}
