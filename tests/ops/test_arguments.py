"""Bad arguments raise what the CPU raises, in the CPU's words."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from tests.support import DEVICE, assert_same, assert_same_error, fallback_mode, outcome, run_on_device

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
    "copy empty shape": lambda d: torch.ones(0, 5, device=d).copy_(torch.ones(0, 4, device=d)),
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
    "item of empty": lambda d: torch.ops.aten._local_scalar_dense(torch.ones(0, device=d)),
    "set_ with negative strides": lambda d: torch.empty(0, device=d).set_(
        torch.ones(9, device=d).untyped_storage(), 3, (2,), (-1,)
    ),
    "scan of a number": lambda d: torch.logcumsumexp(torch.tensor(1.0, device=d), 2),
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


SQUARE, VECTOR, IMAGE = torch.ones(4, 4), torch.ones(4), torch.ones(1, 4, 5, 5)
LABELS = torch.zeros(4, dtype=torch.int64)

# Of tensors of which all but the first stay on the host.
TWO_DEVICES: dict[str, tuple[Callable[..., object], tuple[torch.Tensor, ...]]] = {
    "add": (torch.add, (SQUARE, SQUARE)),
    "lt": (torch.lt, (SQUARE, VECTOR)),
    "where": (lambda x, y: torch.where(x > 0, x, y), (SQUARE, SQUARE)),
    "addcmul": (torch.addcmul, (SQUARE, SQUARE, SQUARE)),
    "lerp": (torch.lerp, (SQUARE, SQUARE, SQUARE)),
    "prelu": (F.prelu, (SQUARE, VECTOR)),
    "mse_loss": (F.mse_loss, (SQUARE, SQUARE)),
    "cross_entropy": (F.cross_entropy, (SQUARE, LABELS)),
    "binary_cross_entropy": (F.binary_cross_entropy, (SQUARE, SQUARE)),
    "cat": (lambda x, y: torch.cat([x, y]), (SQUARE, SQUARE)),
    "stack": (lambda x, y: torch.stack([x, y]), (SQUARE, SQUARE)),
    "mm": (torch.mm, (SQUARE, SQUARE)),
    "mv": (torch.mv, (SQUARE, VECTOR)),
    "dot": (torch.dot, (VECTOR, VECTOR)),
    "addmm": (torch.addmm, (SQUARE, SQUARE, SQUARE)),
    "bmm": (torch.bmm, (SQUARE[None], SQUARE[None])),
    "linear": (F.linear, (SQUARE, SQUARE, VECTOR)),
    "addr": (torch.addr, (SQUARE, VECTOR, VECTOR)),
    "conv2d": (F.conv2d, (IMAGE, torch.ones(2, 4, 3, 3))),
    "conv_transpose2d": (F.conv_transpose2d, (IMAGE, torch.ones(4, 2, 3, 3))),
    "layer_norm": (lambda x, w: F.layer_norm(x, (4,), w), (SQUARE, VECTOR)),
    "batch_norm": (F.batch_norm, (SQUARE, VECTOR, VECTOR)),
    "group_norm": (lambda x, w: F.group_norm(x, 2, w), (IMAGE, VECTOR)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w), (SQUARE, VECTOR)),
    "attention": (F.scaled_dot_product_attention, (IMAGE, IMAGE, IMAGE)),
    "embedding": (lambda w, i: F.embedding(i, w), (SQUARE, LABELS)),
    "embedding_bag": (lambda w, i: F.embedding_bag(i[None], w), (SQUARE, LABELS)),
    "gather": (lambda x, i: x.gather(0, i[None]), (SQUARE, LABELS)),
    "scatter": (lambda x, i, y: x.scatter(0, i[None], y), (SQUARE, LABELS, SQUARE)),
    "scatter_add": (lambda x, i, y: x.scatter_add(0, i[None], y), (SQUARE, LABELS, SQUARE)),
    "scatter_reduce": (lambda x, i, y: x.scatter_reduce(0, i[None], y, "amax"), (SQUARE, LABELS, SQUARE)),
    "index_select": (lambda x, i: x.index_select(0, i), (SQUARE, LABELS)),
    "index_add": (lambda x, i, y: x.index_add(0, i, y), (SQUARE, LABELS, SQUARE)),
    "index_copy": (lambda x, i, y: x.index_copy(0, i, y), (SQUARE, LABELS, SQUARE)),
    "index_fill": (lambda x, i: x.index_fill(0, i, 1), (SQUARE, LABELS)),
    "index_put": (lambda x, y: x.index_put((torch.zeros_like(x[0], dtype=torch.int64),), y), (SQUARE, SQUARE)),
    "take_along_dim": (lambda x, i: x.take_along_dim(i[None], 0), (SQUARE, LABELS)),
    "masked_fill": (lambda x, m: x.masked_fill(m > 0, 1), (SQUARE, SQUARE)),
    "masked_scatter": (lambda x, y: x.masked_scatter(x > 0, y), (SQUARE, SQUARE)),
    "isin": (torch.isin, (SQUARE, VECTOR)),
    "searchsorted": (torch.searchsorted, (VECTOR, VECTOR)),
    "bucketize": (lambda b, x: torch.bucketize(x, b), (VECTOR, VECTOR)),
    "bincount": (lambda i, w: torch.bincount(i, w), (LABELS, VECTOR)),
    "cdist": (torch.cdist, (SQUARE, SQUARE)),
    "cross": (torch.linalg.cross, (SQUARE[:, :3], SQUARE[:, :3])),
    "solve": (torch.linalg.solve, (torch.eye(4), SQUARE)),
    "solve_triangular": (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), (torch.eye(4), SQUARE)),
    "cholesky_solve": (torch.cholesky_solve, (SQUARE, torch.eye(4))),
    "grid_sample": (
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        (IMAGE, torch.zeros(1, 2, 2, 2)),
    ),
    "lstm_cell": (
        lambda x, h, w: torch.lstm_cell(x, (h, h), w, w),
        (VECTOR[None], VECTOR[None], torch.ones(16, 4)),
    ),
    "out": (lambda x, y: torch.mm(x, x, out=y), (SQUARE, SQUARE)),
    "complex": (torch.mul, (SQUARE.to(torch.complex64), SQUARE.to(torch.complex64))),
}
OWN_WORDS = ("mv", "linear", "attention", "index_copy", "take_along_dim", "bucketize", "cholesky_solve")
REFUSED = f"Expected all tensors to be on the same device, but found at least two devices, {DEVICE}:0 and cpu!"


@pytest.mark.parametrize("name", TWO_DEVICES)
def test_tensors_of_two_devices(name: str) -> None:
    call, (first, *others) = TWO_DEVICES[name]
    call(first, *others)
    with fallback_mode("quiet"), pytest.raises(RuntimeError) as refused:
        call(first.to(DEVICE), *others)
    said = str(refused.value).partition("\n")[0]
    if name in OWN_WORDS:  # PyTorch's own check comes first
        assert DEVICE in said and "cpu" in said, said
    else:
        assert said == REFUSED


# What a 0-d tensor of the host is a number for, as on CUDA.
NUMBERS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": torch.add,
    "rsub": lambda x, n: n - x,
    "lt": torch.lt,
    "maximum": torch.maximum,
    "pow": torch.pow,
    "atan2": torch.atan2,
    "where": lambda x, n: torch.where(x > 0, x, n),
    "lerp": lambda x, n: torch.lerp(x, x, n),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "index_put": lambda x, n: x.index_put((torch.zeros(1, dtype=torch.int64),), n),
    "fill_": lambda x, n: x.clone().fill_(n),
}
NO_NUMBERS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "isin": torch.isin,
    "gather": lambda x, n: x[0].gather(0, n.long() * 0),
    "scatter": lambda x, n: x[0].scatter(0, n.long() * 0, n),
    "index_select": lambda x, n: x.index_select(0, n.long() * 0),
    "addmm": lambda x, n: torch.addmm(n, x, x),
    "cat": lambda x, n: torch.stack([x[0, 0], n]),
    "embedding": lambda x, n: F.embedding(n.long() * 0, x),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_of_the_host(name: str) -> None:
    number = torch.tensor(2.0)
    assert_same(run_on_device(NUMBERS[name], SQUARE.to(DEVICE), number), NUMBERS[name](SQUARE, number))


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_a_tensor_of_the_host_that_is_no_number(name: str) -> None:
    number = torch.tensor(2.0)
    NO_NUMBERS[name](SQUARE, number)
    with pytest.raises(RuntimeError) as refused:
        NO_NUMBERS[name](SQUARE.to(DEVICE), number)
    assert str(refused.value).partition("\n")[0] == REFUSED


def test_indices_of_the_host() -> None:
    x, index = torch.arange(12.0).view(4, 3), torch.tensor([2, 0])
    moved = x.to(DEVICE)
    assert_same(moved[index], x[index])
    moved[index] = 5
    x[index] = 5
    assert_same(moved, x)


def test_a_storage_of_no_bytes_is_refused() -> None:
    for call in (
        lambda x: x + 1,
        lambda x: x.cpu(),
        lambda x: x[0].item(),
        lambda x: x.sum(),
        lambda x: x.fill_(1),
        lambda x: x.view(3, 1) @ x.view(1, 3),
        lambda x: x.softmax(0),
        lambda x: x.sort(),
        lambda x: x.cumsum(0),
        lambda x: x[torch.tensor([0, 2])],
        lambda x: x.copy_(torch.ones(3)),
        repr,
    ):
        x = torch.ones(3, device=DEVICE)
        x.untyped_storage().resize_(0)
        with pytest.raises(RuntimeError, match=r"was resized to 0 bytes|out of bounds for storage of size 0"):
            call(x)
    x.untyped_storage().resize_(12)
    x.fill_(2)
    assert x.tolist() == [2, 2, 2]


def test_the_device_works_after_every_error() -> None:
    for call in CALLS.values():
        outcome(call, DEVICE)
    assert (torch.ones(3, device=DEVICE) + 1).tolist() == [2, 2, 2]


def test_numpy_needs_the_cpu() -> None:
    with pytest.raises(TypeError, match=r"can't convert webgpu:0 device type tensor to numpy"):
        torch.ones(3, device=DEVICE).numpy()
