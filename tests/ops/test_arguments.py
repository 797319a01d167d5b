"""Bad arguments raise what the CPU raises, in the CPU's words."""

from collections.abc import Callable

import pytest
import torch

from tests.support import DEVICE, assert_same_error, outcome

Call = Callable[[str], object]

CALLS: dict[str, Call] = {
    "shapes": lambda d: torch.ones(3, device=d) + torch.ones(4, device=d),
    "shapes of where": lambda d: torch.where(torch.ones(3, device=d) > 0, torch.ones(4, device=d), 1.0),
    "in-place shape": lambda d: torch.ones(3, device=d).add_(torch.ones(2, 3, device=d)),
    "bool subtract": lambda d: torch.ones(3, device=d, dtype=torch.bool) - torch.ones(3, device=d, dtype=torch.bool),
    "bool rsub": lambda d: 1 - torch.ones(3, device=d, dtype=torch.bool),
    "bool neg": lambda d: -torch.ones(3, device=d, dtype=torch.bool),
    "bool alpha": lambda d: torch.add(torch.ones(3, device=d), 1, alpha=True),
    "float alpha": lambda d: torch.add(torch.ones(3, device=d, dtype=torch.int32), 1, alpha=1.5),
    "in-place cast": lambda d: torch.ones(3, device=d, dtype=torch.int32).add_(1.5),
    "in-place div": lambda d: torch.ones(3, device=d, dtype=torch.int64).div_(2),
    "in-place exp": lambda d: torch.ones(3, device=d, dtype=torch.int64).exp_(),
    "in-place compare": lambda d: torch.ones(3, device=d, dtype=torch.bool).add_(torch.ones(3, device=d)),
    "out dtype": lambda d: torch.exp(torch.ones(3, device=d), out=torch.empty(3, device=d, dtype=torch.int32)),
    "where dtype": lambda d: torch.where(torch.ones(3, device=d), 1.0, 2.0),
    "where out": lambda d: torch.where(
        torch.ones(3, device=d) > 0,
        torch.ones(3, device=d),
        torch.ones(3, device=d),
        out=torch.empty(3, device=d, dtype=torch.int32),
    ),
    "clamp nothing": lambda d: torch.clamp(torch.ones(3, device=d)),
    "clamp shapes": lambda d: torch.clamp(torch.ones(3, device=d), torch.ones(4, device=d)),
    "fill vector": lambda d: torch.ones(3, device=d).fill_(torch.ones(3, device=d)),
    "fill overflow": lambda d: torch.ones(3, device=d, dtype=torch.uint8).fill_(300),
    "fill inf": lambda d: torch.ones(3, device=d, dtype=torch.int32).fill_(float("inf")),
    "copy shape": lambda d: torch.ones(3, device=d).copy_(torch.ones(4, device=d)),
    "copy host shape": lambda d: torch.ones(3, device=d).copy_(torch.ones(4)),
    "copy overlap": lambda d: torch.ones(1, device=d).expand(3).copy_(torch.ones(3, device=d)),
    "view": lambda d: torch.ones(3, 4, device=d).t().view(12),
    "view size": lambda d: torch.ones(3, 4, device=d).view(5, -1),
    "view dtype": lambda d: torch.ones(3, device=d, dtype=torch.int8).view(torch.int32),
    "expand": lambda d: torch.ones(3, device=d).expand(4),
    "as_strided": lambda d: torch.ones(3, device=d).as_strided((4,), (1,)),
    "as_strided negative": lambda d: torch.ones(3, device=d).as_strided((2,), (-1,)),
    "select": lambda d: torch.ones(3, device=d).select(0, 5),
    "index": lambda d: torch.ones(3, device=d)[7],
    "squeeze": lambda d: torch.ones(3, device=d).squeeze(4),
    "transpose": lambda d: torch.ones(3, device=d).transpose(0, 1),
    "permute": lambda d: torch.ones(3, 4, device=d).permute(0, 0),
    "unfold": lambda d: torch.ones(3, device=d).unfold(0, 5, 1),
    "narrow": lambda d: torch.ones(3, device=d).narrow(0, 2, 4),
    "split": lambda d: torch.ones(3, device=d).split([1, 1]),
    "item": lambda d: torch.ones(3, device=d).item(),
    "bool of many": lambda d: bool(torch.ones(3, device=d)),
    "int of empty": lambda d: int(torch.ones(0, device=d)),
    "arange step": lambda d: torch.arange(0, 5, 0, device=d),
    "arange sign": lambda d: torch.arange(0, 5, -1, device=d),
    "arange nan": lambda d: torch.arange(0, float("nan"), device=d),
    "negative size": lambda d: torch.empty(-1, device=d),
    "resize": lambda d: torch.empty(3, device=d).resize_(-1),
    "requires_grad": lambda d: torch.empty(3, device=d, dtype=torch.int32, requires_grad=True),
    "numpy of grad": lambda d: torch.ones(3, device=d, requires_grad=True).cpu().numpy(),
}


@pytest.mark.parametrize("name", CALLS)
def test_error(name: str) -> None:
    expected = outcome(CALLS[name], "cpu")[1]
    assert expected is not None, "the CPU does not mind"
    assert_same_error(outcome(CALLS[name], DEVICE)[1], expected)


def test_the_device_works_after_every_error() -> None:
    for call in CALLS.values():
        outcome(call, DEVICE)
    assert (torch.ones(3, device=DEVICE) + 1).tolist() == [2, 2, 2]


def test_numpy_needs_the_cpu() -> None:
    with pytest.raises(TypeError, match=r"can't convert webgpu:0 device type tensor to numpy"):
        torch.ones(3, device=DEVICE).numpy()
