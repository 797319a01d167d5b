"""Every optimizer of PyTorch's own list, in every form and with each of its options, takes the CPU's steps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.optim import ASGD, LBFGS, Adafactor, Muon, SparseAdam
from torch.optim.optimizer import _default_to_fused_or_foreach
from torch.testing._internal.common_optimizers import optim_db
from torch.utils._foreach_utils import _get_foreach_kernels_supported_devices, _get_fused_kernels_supported_devices

from tests.support import DEVICE, assert_same, on_device, outcome

STEPS = 20
# PyTorch's own Python asks for numbers: a line search, the norms of a step, the averages' begin.
WAITS = {(LBFGS, "default"), (ASGD, "differentiable")}
WAITS |= {(make, form) for make in (Adafactor, ASGD) for form in ("default", "single")}


def forms() -> list[Any]:
    cases = []
    for info in optim_db:
        names = ["default"]  # the multi-tensor form where there is one
        names += ["single"] if "foreach" in info.supported_impls else []
        names += [name for name in ("fused", "differentiable") if name in info.supported_impls]
        names += ["capturable"] if info.has_capturable_arg else []
        for form in names:
            for number, given in enumerate(info.optim_inputs_func(device="cpu")):
                name = f"{info.optim_cls.__name__}-{form}-{number}"
                cases.append(pytest.param(info.optim_cls, form, given.kwargs, id=name))
    return cases


def options(form: str, device: str) -> dict[str, bool]:
    if form == "capturable":
        return {"capturable": device != "cpu"}  # the CPU, which refuses it, takes the same steps without
    return {"default": {}, "single": {"foreach": False}}.get(form, {form: True})


def values(seed: int, device: str, matrices: bool) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((4, 5), (6, 3)) if matrices else ((4, 5), (7,), (1,))
    return [torch.randn(shape, generator=generator).to(device) for shape in shapes]


def minimize(optimizer: torch.optim.Optimizer, weights: list[torch.Tensor], targets: list[torch.Tensor]) -> None:
    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        parts = [((w - t).square() * (1 + w.square())).sum() for w, t in zip(weights, targets, strict=True)]
        total = torch.stack(parts).sum()
        total.backward()
        return total

    for _ in range(2):
        optimizer.step(loss)


def train(make: Any, form: str, given: dict[str, Any], device: str) -> list[torch.Tensor]:
    matrices = make is Muon or make is SparseAdam
    leaves = [x.requires_grad_() for x in values(1000, device, matrices)]
    # A differentiable step changes its parameters in place, which leaves must not be.
    weights = [x.clone() for x in leaves] if form == "differentiable" else leaves
    numbers = {k: v.detach().to(device) if isinstance(v, torch.Tensor) else v for k, v in given.items()}
    optimizer = make(weights, **numbers, **options(form, device))
    if make is LBFGS:
        minimize(optimizer, weights, values(2000, device, matrices))
        return [x.detach() for x in weights]
    gradients: list[torch.Tensor] = []
    for step in range(STEPS):
        for weight, gradient in zip(weights, values(step, device, matrices), strict=True):
            weight.grad = gradient.to_sparse() if make is SparseAdam else gradient
        optimizer.step()
        if form == "differentiable" and step == 0:
            loss = torch.stack([x.square().sum() for x in weights]).sum()
            made, _ = outcome(torch.autograd.grad, loss, leaves, retain_graph=True)  # some steps PyTorch cannot go back
            gradients += made or ()
    return [*(x.detach() for x in weights), *gradients]


@pytest.mark.parametrize("make, form, given", forms())
def test_steps(make: Any, form: str, given: dict[str, Any]) -> None:
    expected = train(make, form, given, "cpu")
    waits = (make, form) in WAITS or make is SparseAdam or any(isinstance(x, torch.Tensor) for x in given.values())
    with on_device(waits=None if waits else 0) as results:
        results.append(train(make, form, given, DEVICE))
    assert_same(results[0], expected, rtol=1e-5, atol=1e-5)


def test_defaults_are_those_of_cuda() -> None:
    assert DEVICE in _get_foreach_kernels_supported_devices() and DEVICE in _get_fused_kernels_supported_devices()
    weight = torch.ones(3, device=DEVICE, requires_grad=True)
    _, foreach = _default_to_fused_or_foreach([weight], differentiable=False, use_fused=False)
    assert foreach
