"""Fake quantization and its gradients, observers, and a model that is trained with them."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.ao import quantization
from torch.nn import functional as F

from tests.support import DEVICE, assert_same, on_device, to_device


def values(*shape: int) -> torch.Tensor:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3)) * 2
    x.view(-1)[:4] = torch.tensor([100.0, -100.0, 0.25, -0.75])  # beyond the range, and halfway between two steps
    return x


SCALES, ZEROS = torch.tensor([0.1, 0.5, 0.02, 1.0, 0.25, 0.125]), torch.tensor([0, 3, -5, 10, 0, 1], dtype=torch.int32)

CALLS: dict[str, Callable[..., torch.Tensor]] = {
    "tensor": lambda x, s, z: torch.fake_quantize_per_tensor_affine(x, 0.5, 2, -128, 127),
    "tensor by tensors": lambda x, s, z: torch.fake_quantize_per_tensor_affine(x, s[1], z[1], 0, 255),
    "channel": lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, 1, -128, 127),
    "channel of floats": lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z.float(), 1, -128, 127),
    "other channel": lambda x, s, z: torch.fake_quantize_per_channel_affine(x.t(), s, z, 0, -16, 15),
}


@pytest.mark.parametrize("name", CALLS)
def test_forms(name: str) -> None:
    x = values(7, 6)
    results = []
    for device in ("cpu", DEVICE):
        leaf = x.clone().to(device).requires_grad_()
        # PyTorch asks whether all zero points are in the range.
        with contextlib.nullcontext() if device == "cpu" else on_device(waits=None):
            y = CALLS[name](leaf, SCALES.to(device), ZEROS.to(device))
            (y * 3).sum().backward()
        results.append((y, leaf.grad))
    assert_same(results[1], results[0], name, rtol=1e-6, atol=1e-6, strides=False)


@pytest.mark.parametrize("by_channel", [False, True])
def test_learned(by_channel: bool) -> None:
    results = []
    for device in ("cpu", DEVICE):
        x = values(7, 6).to(device).requires_grad_()
        count = 6 if by_channel else 1
        s, z = (v[:count].clone().to(device).float().requires_grad_() for v in (SCALES, ZEROS))
        with contextlib.nullcontext() if device == "cpu" else on_device(waits=None):
            if by_channel:
                y = torch._fake_quantize_learnable_per_channel_affine(x, s, z, 1, -20, 20, 0.5)
            else:
                y = torch._fake_quantize_learnable_per_tensor_affine(x, s, z, -20, 20, 0.5)
            (y * torch.arange(42.0).view(7, 6).to(device)).sum().backward()
        results.append((y, x.grad, s.grad, z.grad))
    assert_same(results[1], results[0], rtol=1e-5, atol=1e-4, strides=False)


OBSERVERS: dict[str, Any] = {
    "fake": quantization.default_fake_quant,
    "by channel": quantization.default_per_channel_weight_fake_quant,
    "fused": quantization.default_fused_act_fake_quant,
    "fused by channel": quantization.default_fused_per_channel_wt_fake_quant,
    "symmetric": quantization.default_weight_fake_quant,
    "fused symmetric": quantization.default_fused_wt_fake_quant,
}


@pytest.mark.parametrize("name", OBSERVERS)
def test_observers(name: str) -> None:
    here = OBSERVERS[name]()
    there = copy.deepcopy(here).to(DEVICE)
    waits = 0 if "fused" in name else None
    for step in range(4):
        x = torch.randn(6, 5, generator=torch.Generator().manual_seed(step)) * (step + 1)
        if step == 2:
            for module in (here, there):
                quantization.disable_observer(module)
        expected = here(x)
        with on_device(waits=waits) as results:
            results.append(there(to_device(x)))
        assert_same(results[0], expected, f"step {step}", rtol=1e-5, atol=1e-5)
    for module in (here, there):
        quantization.disable_fake_quant(module)
    x = torch.randn(6, 5)
    assert_same(there(to_device(x)), here(x))
    for key, value in here.state_dict().items():
        if value.numel():
            assert_same(there.state_dict()[key], value, key, rtol=1e-5, atol=1e-6)


def test_training_with_quantization() -> None:
    losses = []
    for device in ("cpu", DEVICE):
        torch.manual_seed(0)
        model = nn.Sequential(
            quantization.QuantStub(),
            nn.Conv2d(1, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(144, 3),
            quantization.DeQuantStub(),
        )
        model.train()
        model.qconfig = quantization.get_default_qat_qconfig("x86")
        quantization.fuse_modules_qat(model, [["1", "2", "3"]], inplace=True)
        quantization.prepare_qat(model, inplace=True)
        model.to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        torch.manual_seed(1)
        with contextlib.nullcontext() if device == "cpu" else on_device(waits=None):
            for _ in range(4):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(torch.rand(4, 1, 8, 8).to(device)), torch.tensor([0, 1, 2, 0]).to(device))
                loss.backward()
                optimizer.step()
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], abs=1e-3)
