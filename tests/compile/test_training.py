"""Models that are compiled and trained: results and gradients are the CPU's."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.compile.support import compiled, count, with_once
from tests.support import assert_same, to_device


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.join = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x).view(*x.shape[:2], 3, 4, 8).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.join(y.transpose(1, 2).flatten(2)) + x


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def _conv() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, bias=False),
        nn.GroupNorm(2, 8), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5),
    )  # fmt: skip


MODELS: dict[str, tuple[Any, torch.Size]] = {
    "mlp": (_mlp, torch.Size((16, 32))),
    "conv": (_conv, torch.Size((2, 3, 12, 12))),
    "attention": (lambda: nn.Sequential(Attention(), nn.LayerNorm(32), Attention()), torch.Size((2, 10, 32))),
    "transformer": (
        lambda: nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True), torch.Size((2, 8, 32))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", with_once(MODELS, "conv", "attention"))
def test_gradients(name: str) -> None:
    make, shape = MODELS[name]
    torch.manual_seed(1)
    model, x = make(), torch.randn(shape)
    moved = to_device_model(model)
    call = compiled(moved)
    x_device = x.to("webgpu").requires_grad_()
    x.requires_grad_()
    for _ in range(2):
        expected, actual = model(x), call(x_device)
        assert_same(actual, expected, rtol=1e-4, atol=1e-5)
        expected.square().mean().backward()
        actual.square().mean().backward()
    assert_same(x_device.grad, x.grad, rtol=1e-4, atol=1e-5)
    for (key, parameter), other in zip(model.named_parameters(), moved.parameters(), strict=True):
        assert_same(other.grad, parameter.grad, key, rtol=1e-3, atol=1e-5, strides=False)


def to_device_model(model: nn.Module) -> nn.Module:
    return copy.deepcopy(model).to("webgpu")


def test_embedding_gradient() -> None:
    table, index = torch.randn(20, 8), torch.randint(0, 20, (3, 7))
    moved = to_device(table)
    table.requires_grad_()
    moved.requires_grad_()
    F.embedding(index, table).square().sum().backward()
    compiled(lambda i, t: F.embedding(i, t).square().sum())(index.to("webgpu"), moved).backward()
    assert_same(moved.grad, table.grad, rtol=1e-5, atol=1e-5)


def test_dropout_mask_is_the_same_in_backward() -> None:
    call = compiled(lambda x: F.dropout(x, 0.5))
    x = torch.ones(1000, device="webgpu", requires_grad=True)
    first = call(x)
    first.sum().backward()
    assert torch.equal((first != 0).cpu(), (x.grad != 0).cpu())
    assert not torch.equal(first.cpu(), call(x).cpu())
    assert 0.4 < (first != 0).float().mean().item() < 0.6


def test_seed_decides() -> None:
    call = compiled(lambda x: (torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 3, 90)))
    x = torch.ones(5000, device="webgpu")
    torch.manual_seed(3)
    one = call(x)
    torch.manual_seed(3)
    for a, b in zip(one, call(x), strict=True):
        assert torch.equal(a.cpu(), b.cpu())
    uniform, normal, integers = (t.cpu() for t in one)
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.02
    assert abs(normal.mean()) < 0.06 and abs(normal.std() - 1) < 0.06
    assert integers.min() == 3 and integers.max() == 89


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW], ids=lambda o: o.__name__)
def test_optimizer_step(optimizer: Any) -> None:
    torch.manual_seed(0)
    model, x = _mlp(), torch.randn(8, 32)
    moved = to_device_model(model)
    steps = []
    model(x).square().mean().backward()
    for a, b in zip(moved.parameters(), model.parameters(), strict=True):
        a.grad = to_device(b.grad)
    for m in (model, moved):
        o = optimizer(m.parameters(), lr=0.01)
        steps.append(o.step if m is model else torch.compile(o.step, backend="webgpu"))
    for step in steps:
        step()
        step()
    for a, b in zip(moved.parameters(), model.parameters(), strict=True):
        assert_same(a, b, rtol=1e-4, atol=1e-5)


def test_no_launch_more_than_needed() -> None:
    """Two products; what stands between them is the first one's epilogue."""
    call = compiled(lambda x, a, b: F.gelu(x @ a).mul(2) @ b)
    args = to_device([torch.randn(16, 32), torch.randn(32, 32), torch.randn(32, 16)])
    call(*args)
    assert count(call, *args) == 2


def test_attention_with_dropout_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call has random numbers of its own, and its backward the same ones, whenever it runs."""
    from torch_webgpu.inductor import runtime

    made: list[Any] = []
    record = runtime._C.RecordedFunction

    def recording(*args: Any) -> Any:
        made.append(record(*args))
        return made[-1]

    monkeypatch.setattr(runtime._C, "RecordedFunction", recording)
    size = 32
    q, k = (torch.zeros(2, 3, size, size, device="webgpu", requires_grad=True) for _ in range(2))
    # The result is the matrix of probabilities, less those that were dropped; its sum over queries is the gradient.
    v = torch.eye(size).expand(2, 3, size, size).contiguous().to("webgpu").requires_grad_()

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.5) * 2

    call = compiled(attend)
    seen = []
    for _ in range(4):
        outs = [call(q, k, v) for _ in range(2)]
        for out in reversed(outs):
            v.grad = None
            out.sum().backward()
            assert_same(v.grad, (out.detach().sum(-2)[..., None] + 0 * v.detach()).cpu(), rtol=1e-4, atol=1e-5)
            seen.append(out.detach().cpu())
    assert all(not torch.equal(a, b) for i, a in enumerate(seen) for b in seen[:i])
    assert all(0.4 < (out != 0).float().mean() < 0.6 for out in seen)
    assert [(f.recordings, f.replays, f.failures) for f in made] == [(1, 7, [])] * 2
    torch.manual_seed(11)
    expected = attend(q, k, v)
    torch.manual_seed(11)
    assert_same(call(q, k, v).detach(), expected.detach().cpu(), rtol=1e-6, atol=1e-6)
