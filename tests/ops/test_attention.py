"""scaled_dot_product_attention and the modules built on it, with their gradients, against the CPU."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.support import DEVICE, assert_same, assert_same_error, on_device, outcome, to_device, ulps

CLOSE = {"rtol": 1e-4, "atol": 2e-5}
NOTHING = float("-inf")


@dataclass(frozen=True)
class Case:
    """`layout` is the order of (batch, head, row, element) in memory."""

    name: str
    heads: int = 2
    kv_heads: int = 2
    queries: int = 21
    keys: int = 37
    head: int = 8
    value: int = 8
    batch: int = 2
    causal: bool = False
    scale: float | None = None
    layout: tuple[int, int, int, int] = (0, 1, 2, 3)

    def tensor(self, heads: int, rows: int, size: int) -> torch.Tensor:
        sizes = (self.batch, heads, rows, size)
        back = sorted(range(4), key=lambda dim: self.layout[dim])
        return torch.randn([sizes[dim] for dim in self.layout]).permute(back)

    def inputs(self) -> list[torch.Tensor]:
        torch.manual_seed(0)
        return [
            self.tensor(self.heads, self.queries, self.head),
            self.tensor(self.kv_heads, self.keys, self.head),
            self.tensor(self.kv_heads, self.keys, self.value),
        ]

    def options(self) -> dict[str, Any]:
        return {"is_causal": self.causal, "scale": self.scale, "enable_gqa": self.heads != self.kv_heads}


BY_HEADS = (0, 2, 1, 3)  # as a projection gives it
BOTH = [
    Case("plain"),
    Case("causal", causal=True, keys=21),
    Case("causal, more queries", causal=True, queries=45, keys=20),
    Case("causal, more keys", causal=True, queries=20, keys=70),
    Case("grouped", heads=6, causal=True),
    Case("one head of keys", heads=4, kv_heads=1),
    Case("from projections", layout=BY_HEADS, queries=37, value=12),
    Case("negative scale", scale=-0.3),
    Case("odd heads", head=7, value=5, causal=True),
    Case("transposed", layout=(0, 1, 3, 2)),
]
FORWARD = [
    Case("one query", queries=1),
    Case("one query, grouped", heads=9, kv_heads=3, queries=1),
    Case("one query, wide heads", heads=2, kv_heads=2, queries=1, head=100, value=12),
    Case("three queries, wide values, causal", batch=1, queries=3, keys=40, head=12, value=100, causal=True),
    Case("two queries over parts of keys", batch=1, heads=1, kv_heads=1, queries=2, keys=2100, head=20, value=20),
    Case("heads of 64", head=64, value=64, causal=True, keys=70),
    Case("large, odd heads", batch=1, heads=1, kv_heads=1, head=129, value=250),
]


def named(case: Case) -> str:
    return case.name


def attend(inputs: list[torch.Tensor], mask: torch.Tensor | None = None, **options: Any) -> list[torch.Tensor]:
    """The result, and gradients of whatever asks for one."""
    out = F.scaled_dot_product_attention(*inputs, attn_mask=mask, **options)
    leaves = [x for x in (*inputs, mask) if x is not None and x.requires_grad]
    weights = torch.linspace(-1, 1, out.numel()).view(out.shape).to(out)
    return [out, *(torch.autograd.grad(out, leaves, weights) if leaves else ())]


def compare(inputs: list[torch.Tensor], mask: torch.Tensor | None = None, **options: Any) -> None:
    expected = attend(inputs, mask, **options)
    with on_device() as results:
        results += attend(to_device(inputs), to_device(mask), **options)
    assert_same(results, expected, strides=False, **CLOSE)
    leaves = [x for x in (*inputs, mask) if x is not None and x.requires_grad]
    if inputs[0].dim() == 4 and all(x.numel() > 0 for x in inputs):
        # Strides are those that PyTorch's shape function of the fused op promises; the CPU has others.
        shaped = torch.ops.aten._scaled_dot_product_fused_attention_overrideable(
            *(x.detach().to("meta") for x in inputs)
        )
        assert results[0].stride() == shaped[0].stride()
        assert [x.stride() for x in results[1:]] == [torch.empty_like(x).stride() for x in leaves]


@pytest.mark.parametrize("case", BOTH, ids=named)
def test_with_gradients(case: Case) -> None:
    compare([x.requires_grad_() for x in case.inputs()], **case.options())


@pytest.mark.parametrize("case", FORWARD, ids=named)
def test_forward(case: Case) -> None:
    compare(case.inputs(), **case.options())


def masks() -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    bias = torch.randn(2, 2, 21, 37)
    bias[0, 0, 3] = NOTHING  # a query that sees nothing gives zeros
    bias[..., 5] = NOTHING
    allowed = torch.rand(2, 1, 21, 37) > 0.4
    allowed[1, 0, 7] = False
    return {
        "whole": bias,
        "of queries and keys": torch.randn(21, 37),
        "of keys": torch.randn(2, 1, 1, 37),
        "of queries": torch.randn(21, 1),
        "of heads": torch.randn(2, 1, 1),
        "expanded": torch.randn(37).expand(21, 37),
        "strided": torch.randn(2, 1, 37, 42)[..., ::2].transpose(2, 3),
        "bool": allowed,
        "bool of keys": torch.rand(2, 1, 1, 37) > 0.4,
    }


@pytest.mark.parametrize("name", masks())
def test_masks(name: str) -> None:
    mask = masks()[name]
    if mask.is_floating_point():
        mask.requires_grad_()
    compare([x.requires_grad_() for x in BOTH[0].inputs()], mask)


@pytest.mark.parametrize(
    ("dtype", "size", "gradients"),
    [(torch.float16, 8, True), (torch.bfloat16, 8, False), (torch.float16, 7, False)],
    ids=["float16", "bfloat16", "float16 of odd heads"],
)
def test_halves(dtype: torch.dtype, size: int, gradients: bool) -> None:
    """Sums are of float32: against those of the CPU in float32, rounded once."""
    inputs = [x.to(dtype).requires_grad_(gradients) for x in Case("", head=size, value=size).inputs()]
    mask = torch.randn(21, 37).to(dtype)
    expected = attend([x.detach().float().requires_grad_(gradients) for x in inputs], mask.float(), is_causal=True)
    with on_device() as results:
        results += attend(to_device(inputs), to_device(mask), is_causal=True)
    expected = [x.to(dtype) for x in expected]
    assert_same(results, expected, strides=False, rtol=ulps(8, dtype), atol=ulps(8, dtype))


def test_sizes_of_zero() -> None:
    for queries, keys in ((0, 5), (5, 0)):
        inputs = Case("", queries=queries, keys=keys).inputs()
        compare([x.requires_grad_() for x in inputs])


def test_fewer_and_more_dimensions() -> None:
    q, k, v = Case("").inputs()
    for index in ((0,), (0, 0)):
        compare([x[index].requires_grad_() for x in (q, k, v)], is_causal=True)
    compare([x.unsqueeze(1).requires_grad_() for x in (q, k, v)])


def test_dropout() -> None:
    """Of values that are the identity, the result is the probabilities that stay; gradients know the same ones."""
    torch.manual_seed(0)
    q, k, g = torch.randn(2, 2, 21, 8), torch.randn(2, 2, 32, 8), torch.randn(2, 2, 21, 32)
    v = torch.eye(32).expand(2, 2, 32, 32).contiguous()
    inputs = [x.requires_grad_() for x in to_device([q, k, v])]
    with on_device():
        torch.manual_seed(5)
        out = F.scaled_dot_product_attention(*inputs, dropout_p=0.3)
        gradients = torch.autograd.grad(out, inputs, to_device(g))
        torch.manual_seed(5)
        again = F.scaled_dot_product_attention(*inputs, dropout_p=0.3)
        other = F.scaled_dot_product_attention(*inputs, dropout_p=0.3)
    assert torch.equal(out.cpu(), again.cpu())
    assert not torch.equal(out.cpu(), other.cpu())
    stays = out.detach().cpu() != 0
    assert 0.67 < stays.float().mean() < 0.73
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    expected = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1) * stays / 0.7 @ v
    assert_same(out, expected, **CLOSE)
    assert_same(list(gradients), list(torch.autograd.grad(expected, (q, k, v), g)), strides=False, **CLOSE)


def test_long_rows_stay_out_of_memory() -> None:
    """Scores of 4096 queries and keys would take 64 MiB."""
    x = torch.randn(1, 1, 4096, 4).to(DEVICE)
    torch.webgpu.synchronize()
    before = torch.webgpu.max_memory_allocated()
    F.scaled_dot_product_attention(x, x, x, is_causal=True)
    torch.webgpu.synchronize()
    assert torch.webgpu.max_memory_allocated() - before < 8 << 20


def test_choice() -> None:
    x = to_device(torch.randn(1, 2, 9, 8))
    expected = F.scaled_dot_product_attention(x.cpu(), x.cpu(), x.cpu())
    assert torch._fused_sdp_choice(x, x, x) == SDPBackend.OVERRIDEABLE.value
    for backend in (SDPBackend.MATH, SDPBackend.OVERRIDEABLE, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend), on_device():
            actual = F.scaled_dot_product_attention(x, x, x)
        assert_same(actual, expected, **CLOSE)
    with sdpa_kernel(SDPBackend.OVERRIDEABLE), pytest.raises(RuntimeError, match="No viable backend"):
        F.scaled_dot_product_attention(x[0], x[0], x[0])


@pytest.mark.parametrize(
    "options",
    [{"dropout_p": 1.5}, {"attn_mask": torch.zeros(3, 9)}, {"attn_mask": torch.zeros(9, 9, dtype=torch.int64)}],
    ids=["dropout", "shape of the mask", "dtype of the mask"],
)
def test_errors(options: dict[str, Any]) -> None:
    x = torch.randn(1, 2, 9, 8)
    _, expected = outcome(F.scaled_dot_product_attention, x, x, x, **options)
    _, actual = outcome(F.scaled_dot_product_attention, *to_device([x, x, x]), **to_device(options))
    assert_same_error(actual, expected)


def compare_modules(module: nn.Module, *args: torch.Tensor, training: bool, **kwargs: Any) -> None:
    module.train(training)
    there = copy.deepcopy(module).to(DEVICE)
    unique = {id(x): x.requires_grad_(training) for x in args}
    moved = {key: to_device(x) for key, x in unique.items()}
    with torch.set_grad_enabled(training), on_device():
        expected = module(*args, **kwargs)
        actual = there(*(moved[id(x)] for x in args), **to_device(kwargs))
        if training:
            outs = [x[0] if isinstance(x, tuple) else x for x in (actual, expected)]
            leaves = [moved[id(args[0])], args[0]]
            gradients = [torch.autograd.grad(outs[i].square().sum(), leaves[i])[0] for i in (0, 1)]
    assert_same(actual, expected, strides=False, **CLOSE)
    if training:
        assert_same(*gradients, strides=False, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_multihead_attention(training: bool) -> None:
    torch.manual_seed(0)
    for batch_first, need_weights in ((True, False), (True, True), (False, False)):
        module = nn.MultiheadAttention(16, 2, batch_first=batch_first)
        x = torch.randn(3, 21, 16) if batch_first else torch.randn(21, 3, 16)
        compare_modules(module, x, x, x, training=training, need_weights=need_weights)
    padding = torch.zeros(3, 21, dtype=torch.bool)
    padding[1, 15:] = True
    hidden = torch.ones(21, 21, dtype=torch.bool).triu(1)
    for options in (
        {"key_padding_mask": padding},
        {"attn_mask": hidden},
        {"key_padding_mask": padding, "attn_mask": hidden},
    ):
        module, x = nn.MultiheadAttention(16, 2, batch_first=True), torch.randn(3, 21, 16)
        compare_modules(module, x, x, x, training=training, need_weights=False, **options)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("norm_first", [False, True], ids=["norm last", "norm first"])
def test_encoder_layer(training: bool, norm_first: bool) -> None:
    torch.manual_seed(0)
    for activation in ("relu", "gelu"):
        layer = nn.TransformerEncoderLayer(
            16, 2, 24, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
        )
        compare_modules(layer, torch.randn(3, 21, 16), training=training)


def test_padded_encoder() -> None:
    """In eval mode, where the CPU builds a nested tensor: what is not padding is the same."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 24, batch_first=True)
    encoder, x = nn.TransformerEncoder(layer, 1).eval(), torch.randn(2, 21, 16)
    padding = torch.zeros(2, 21, dtype=torch.bool)
    padding[1, 15:] = True
    with torch.no_grad(), on_device():
        expected = encoder(x, src_key_padding_mask=padding)
        actual = encoder.to(DEVICE)(to_device(x), src_key_padding_mask=to_device(padding))
    assert_same(actual[0], expected[0], **CLOSE)
    assert_same(actual[1, :15], expected[1, :15], **CLOSE)


@pytest.mark.skipif(os.environ.get("LP_NATIVE_VECTOR_WIDTH") == "128", reason="is the other adapter already")
def test_without_subgroups_of_eight() -> None:
    """The same tests of a few cases on an adapter whose lanes exchange through workgroup memory."""
    if torch.webgpu.get_device_properties().subgroup_sizes != (8, 8):
        pytest.skip("this adapter has no subgroups of eight: all tests ran so")
    picked = "(test_with_gradients and grouped) or (test_masks and whole) or (test_forward and parts)"
    result = subprocess.run(
        [sys.executable, "-m", "pytest", __file__, "-n", "0", "-v", "-k", picked],
        env={**os.environ, "LP_NATIVE_VECTOR_WIDTH": "128"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    assert "3 passed" in result.stdout, result.stdout
