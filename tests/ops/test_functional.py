"""torch.func: transforms of functions run on the device and give the CPU's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.nn import functional as F

from tests.support import DEVICE, assert_same, on_device

CLOSE = {"rtol": 1e-3, "atol": 1e-4}

# Of an image of two channels and four by four.
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "conv2d": lambda x: F.conv2d(x[None], torch.ones(2, 2, 3, 3, device=x.device) * x.mean()),
    "matmul": lambda x: x[0] @ x[1].T,
    "softmax": lambda x: x.softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "index": lambda x: x[:, torch.tensor([0, 2], device=x.device)],
    "gather": lambda x: x.gather(0, torch.zeros(1, 4, 4, dtype=torch.int64, device=x.device)),
    "embedding": lambda x: F.embedding(torch.tensor([0, 1], device=x.device), x[0]),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "group_norm": lambda x: F.group_norm(x[None], 1),
    "batch_norm": lambda x: F.batch_norm(x[None], None, None, training=True),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(-1)[0],
    "topk": lambda x: x.topk(2)[0],
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "interpolate": lambda x: F.interpolate(x[None], scale_factor=2, mode="bilinear"),
    "cross_entropy": lambda x: F.cross_entropy(x[0], torch.zeros(4, dtype=torch.int64, device=x.device)),
    "solve": lambda x: torch.linalg.solve(x[0] + 4 * torch.eye(4, device=x.device), x[1]),
    "gelu": lambda x: F.gelu(x),
    "where": lambda x: torch.where(x > 0.5, x, x * x),
    "norm": lambda x: x.norm(),
    "pad": lambda x: F.pad(x, (1, 1)),
}


def images() -> Tensor:
    return torch.rand(3, 2, 4, 4, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms(name: str) -> None:
    function = FUNCTIONS[name]
    transforms: dict[str, Callable[[Tensor], Any]] = {
        "vmap": vmap(function),
        "gradient of each": vmap(grad(lambda x: function(x).square().sum())),
        "jacrev": lambda batch: jacrev(function)(batch[0]),
        "vjp": lambda batch: vjp(function, batch[0])[0],
        "jvp": lambda batch: jvp(function, (batch[0],), (batch[1],))[1],
    }
    for label, transform in transforms.items():
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # the CPU's fused form lacks some
            expected = transform(images())
        with on_device(waits=None) as results:
            results.append(transform(images().to(DEVICE)))
        assert_same(results[0], expected, f"{label} of {name}", strides=False, **CLOSE)


def test_a_model_as_a_function() -> None:
    """The gradient of each sample, the Jacobian both ways, the Hessian."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    inputs = torch.rand(5, 3)

    def run(device: str) -> list[Tensor]:
        model.to(device)
        x = inputs.to(device)
        parameters = {key: value.detach() for key, value in model.named_parameters()}

        def loss(given: dict[str, Tensor], sample: Tensor) -> Tensor:
            return functional_call(model, given, (sample,)).square().sum()

        each = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
        return [
            *each.values(),
            jacrev(model)(x[0]),
            jacfwd(model)(x[0]),
            hessian(lambda sample: model(sample).sum())(x[0]),
        ]

    expected = run("cpu")
    model.to(DEVICE)
    with on_device(waits=None) as results:
        results.append(run(DEVICE))
    assert_same(results[0], expected, strides=False, **CLOSE)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_numbers_under_vmap(randomness: str) -> None:
    drawn = vmap(lambda x: x + torch.rand(4, device=DEVICE), randomness=randomness)(torch.zeros(3, 1, device=DEVICE))
    assert torch.equal(drawn[0], drawn[1]) == (randomness == "same")
