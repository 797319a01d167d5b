"""Tensors on their way in and out: pinned host memory, DLPack, NumPy, deep copies, tracing, export, modes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset

from tests.support import DEVICE, assert_same, on_device


def test_pinned_memory() -> None:
    plain = torch.arange(6.0)
    pinned = plain.pin_memory()
    assert not plain.is_pinned()
    assert pinned.is_pinned()
    assert pinned[2:].is_pinned()
    assert numpy.from_dlpack(pinned).tolist() == plain.tolist(), "host memory like any other"
    assert pinned.pin_memory().data_ptr() == pinned.data_ptr()
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert torch.zeros(0, pin_memory=True).numel() == 0
    assert pinned.to(DEVICE, non_blocking=True).tolist() == plain.tolist()
    assert not torch.ones(2, device=DEVICE).is_pinned()
    back = torch.empty(6, pin_memory=True)
    back.copy_(pinned.to(DEVICE) + 1, non_blocking=True)
    torch.webgpu.synchronize()
    assert back.tolist() == (plain + 1).tolist()


def test_pinned_memory_may_be_reused_at_once() -> None:
    pinned = torch.ones(1 << 16).pin_memory()
    moved = pinned.to(DEVICE, non_blocking=True)
    pinned.zero_()
    assert moved.sum().item() == 1 << 16


@pytest.mark.parametrize("workers", [0, 1])
def test_data_loader_pins(workers: int) -> None:
    data = TensorDataset(torch.arange(12.0).view(6, 2), torch.arange(6))
    context = "spawn" if workers else None  # this process has opened the device
    loader = DataLoader(data, batch_size=4, pin_memory=True, num_workers=workers, multiprocessing_context=context)
    batches = list(loader)
    assert all(part.is_pinned() for batch in batches for part in batch)
    rows = torch.cat([batch[0].to(DEVICE, non_blocking=True) for batch in batches])
    assert rows.tolist() == data.tensors[0].tolist()


TO_THE_HOST: dict[str, Callable[[Tensor], Any]] = {
    "torch": lambda x: torch.from_dlpack(x, device="cpu"),
    "torch, copy": lambda x: torch.from_dlpack(x, device="cpu", copy=True),
    "numpy": lambda x: numpy.from_dlpack(x),
    "numpy, copy": lambda x: numpy.from_dlpack(x, copy=True),
    "numpy, device": lambda x: numpy.from_dlpack(x, device="cpu"),
    "capsule": lambda x: torch.from_dlpack(x.__dlpack__()),
    "capsule of the first protocol": lambda x: torch.from_dlpack(x.__dlpack__(stream=None)),
}


@pytest.mark.parametrize("way", TO_THE_HOST)
def test_dlpack_copies_to_the_host(way: str) -> None:
    """DLPack shares memory that its consumer can address, which WebGPU's is not: a copy leaves the device."""
    for source in (torch.arange(6.0).view(2, 3), torch.arange(6).view(2, 3).t()[1:], torch.tensor(2.5)):
        host = TO_THE_HOST[way](source.to(DEVICE))
        assert isinstance(host, numpy.ndarray) or host.device.type == "cpu"
        assert host.tolist() == source.tolist()


def test_dlpack_refuses_what_is_no_copy() -> None:
    tensor = torch.ones(2, device=DEVICE)
    for call in (
        lambda: tensor.__dlpack__(copy=False),
        lambda: tensor.__dlpack__(dl_device=tensor.__dlpack_device__()),
        lambda: numpy.from_dlpack(tensor, copy=False),
    ):
        with pytest.raises(BufferError, match="copy=None or copy=True"):
            call()
    with pytest.raises(ValueError, match="without copying"):
        torch.from_dlpack(tensor, device="cpu", copy=False)
    with pytest.raises(BufferError, match="require gradient"):
        numpy.from_dlpack(tensor.requires_grad_())


def test_dlpack_within_the_device_shares() -> None:
    tensor = torch.arange(6.0, device=DEVICE).view(2, 3).t()
    for shared in (
        torch.from_dlpack(tensor),
        torch.from_dlpack(tensor, device=DEVICE, copy=False),
        torch.from_dlpack(torch.utils.dlpack.to_dlpack(tensor)),
    ):
        assert shared.stride() == tensor.stride()
        shared.add_(1)
    assert tensor.tolist() == [[3.0, 6.0], [4.0, 7.0], [5.0, 8.0]]
    torch.from_dlpack(tensor, copy=True).zero_()
    assert tensor[0].tolist() == [3.0, 6.0]


def test_dlpack_brings_to_the_device() -> None:
    for array in (numpy.arange(6, dtype=numpy.float32), numpy.arange(6.0).reshape(2, 3).T, torch.arange(3)):
        for copy_of in (None, True):
            moved = torch.from_dlpack(array, device=DEVICE, copy=copy_of)
            assert moved.device.type == DEVICE
            assert moved.tolist() == array.tolist()


@pytest.mark.parametrize("make", [torch.asarray, torch.as_tensor, torch.tensor], ids=lambda make: make.__name__)
def test_from_numpy(make: Any) -> None:
    for array in (numpy.arange(6, dtype=numpy.float32).reshape(2, 3).T, numpy.array(3, dtype=numpy.int64)):
        with on_device(None):
            tensor = make(array, device=DEVICE)
        assert tensor.device.type == DEVICE
        assert tensor.tolist() == array.tolist()
    assert make([1.0, 2.0], device=DEVICE).tolist() == [1.0, 2.0]
    host = torch.ones(2)
    assert make(host, device=DEVICE).device.type == DEVICE
    for array in (numpy.ones(2), numpy.ones(2, numpy.complex128), numpy.ones(2, numpy.uint32), numpy.float64(2.5)):
        tensor = make(array, device=DEVICE)
        assert tensor.device.type == DEVICE
        assert tensor.dtype == make(array).dtype
        assert tensor.tolist() == array.tolist()
    assert make(numpy.ones(2), device=DEVICE, dtype=torch.float32).tolist() == [1.0, 1.0]


def test_to_numpy_says_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"Tensor\.cpu\(\)"):
        torch.ones(2, device=DEVICE).numpy()
    assert torch.ones(2, device=DEVICE).numpy(force=True).tolist() == [1.0, 1.0]


def test_deep_copies() -> None:
    leaf = torch.ones(2, 3, device=DEVICE, requires_grad=True)
    leaf.grad = torch.zeros_like(leaf)
    again = copy.deepcopy(leaf)
    assert again.requires_grad
    assert again.grad is not None
    assert again.data_ptr() != leaf.data_ptr()
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(leaf * 2)
    views = {"whole": leaf.detach(), "row": leaf.detach()[1]}
    copies = copy.deepcopy(views)
    copies["whole"].fill_(5)
    assert copies["row"].tolist() == [5.0] * 3, "views of one storage stay views of one storage"
    assert views["row"].tolist() == [1.0] * 3


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x).relu()
        if x.dim() == 3:
            x = x.mean(1)
        return self.second(x)


def net() -> tuple[Net, Tensor, Tensor]:
    torch.manual_seed(0)
    model, x = Net().eval(), torch.rand(3, 4)
    return copy.deepcopy(model).to(DEVICE), x.to(DEVICE), model(x)


@pytest.mark.parametrize("compiler", ["trace", "script"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_torch_script(compiler: str, tmp_path: Any) -> None:
    model, x, expected = net()
    compiled = torch.jit.trace(model, x) if compiler == "trace" else torch.jit.script(model)
    for _ in range(3):  # the third run is the optimised one
        with on_device() as results:
            results.append(compiled(x))
        assert_same(results[0], expected)
    compiled(x).sum().backward()
    assert model.first.weight.grad.device.type == DEVICE
    torch.jit.save(compiled, tmp_path / "net.pt")
    assert_same(torch.jit.load(tmp_path / "net.pt")(x), expected)
    torch.testing.assert_close(torch.jit.load(tmp_path / "net.pt", map_location="cpu")(x.cpu()), expected)


def test_export(tmp_path: Any) -> None:
    model, x, expected = net()
    program = torch.export.export(model, (x,))
    assert {str(value.device) for value in program.state_dict.values()} == {"webgpu:0"}
    assert_same(program.module()(x), expected)
    torch.export.save(program, tmp_path / "net.pt2")
    assert_same(torch.export.load(tmp_path / "net.pt2").module()(x), expected)


def test_dispatch_modes_see_each_operation() -> None:
    seen: list[str] = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    x = torch.ones(2, 2, device=DEVICE, requires_grad=True)
    with Log(), on_device():
        (x @ x).sum().backward()
    assert "aten.mm.default" in seen
    assert "aten.sum.default" in seen
    assert x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_fake_tensors_of_the_device() -> None:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode() as mode:
        x = torch.empty(2, 3, device=DEVICE)
        assert (x @ x.t()).device.type == DEVICE
    real = torch.ones(2, device=DEVICE)
    assert (mode.from_tensor(real) + mode.from_tensor(real)).device.type == DEVICE
