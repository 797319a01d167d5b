"""Tensors and modules that leave the process and come back, are copied, or change device."""

from __future__ import annotations

import copy
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.device.process import run
from tests.support import DTYPES, STORED_ONLY, assert_same_bits, fallback_mode, make, name_of

DEVICES = ("cpu", "webgpu")


def save_and_load(value: Any, **options: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


def tied() -> nn.Sequential:
    """The shape of a language model: the embedding's weight is the last layer's."""
    model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 7, bias=False))
    model[1].weight = model[0].weight
    return model


# Files


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("target", [None, *DEVICES])
@pytest.mark.parametrize("source", DEVICES)
def test_save_and_load(source: str, target: str | None, weights_only: bool) -> None:
    values = torch.arange(12.0).view(3, 4)
    loaded = save_and_load(values.to(source), map_location=target, weights_only=weights_only)
    assert loaded.device.type == (target or source)
    assert torch.equal(loaded.cpu(), values)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex64], ids=name_of)
def test_every_dtype_survives(dtype: torch.dtype) -> None:
    values = torch.arange(7).to(dtype)
    loaded = save_and_load(values.to("webgpu"))
    assert loaded.dtype == dtype
    assert loaded.is_webgpu
    assert torch.equal(loaded.cpu(), values)


@pytest.mark.parametrize(
    "location",
    [
        "webgpu:0",
        torch.device("webgpu"),
        torch.device("webgpu", 0),
        {"cpu": "webgpu:0"},
        lambda storage, _: storage.webgpu(),
    ],
    ids=["text", "device", "index", "dict", "function"],
)
def test_forms_of_map_location(location: Any) -> None:
    loaded = save_and_load(torch.arange(3), map_location=location)
    assert loaded.device == torch.device("webgpu", 0)
    assert loaded.tolist() == [0, 1, 2]


@pytest.mark.parametrize("target", [None, "webgpu", "cpu"])
@pytest.mark.parametrize("source", DEVICES)
def test_a_shape_beyond_the_file_is_refused(source: str, target: str | None) -> None:
    saved, tampered = io.BytesIO(), io.BytesIO()
    torch.save(torch.ones(4, device=source), saved)
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(tampered, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("data.pkl"):  # the last tuple (4,) becomes (10000,)
                head, _, tail = data.rpartition(b"K\x04\x85")
                data = head + b"M\x10\x27\x85" + tail
            new.writestr(name, data)
    tampered.seek(0)
    with pytest.raises(RuntimeError, match="not resizable"):
        torch.load(tampered, map_location=target, weights_only=True)


def test_a_location_that_is_not_there() -> None:
    with pytest.raises(RuntimeError, match="device_count"):
        save_and_load(torch.ones(2), map_location="webgpu:1")


def test_views_share_what_they_shared() -> None:
    base = torch.arange(12.0, device="webgpu").view(3, 4)
    whole, transposed, part = save_and_load([base, base.t(), base[1:, ::2]])
    whole.fill_(5)
    assert transposed.cpu().eq(5).all()
    assert part.tolist() == [[5.0, 5.0]] * 2
    assert part.stride() == base[1:, ::2].stride()


def test_files_on_disk_and_mapped(tmp_path: Path) -> None:
    values = torch.arange(1000.0)
    torch.save(values.to("webgpu"), tmp_path / "values.pt")
    for mmap in (False, True):
        loaded = torch.load(tmp_path / "values.pt", map_location="webgpu", mmap=mmap)
        assert loaded.is_webgpu
        assert torch.equal(loaded.cpu(), values)


def test_pickle() -> None:
    """In a process of its own: reading the memory of a device through a host pointer would end it."""
    script = """
    import pickle, torch
    x = torch.arange(12.0, device="webgpu").view(3, 4)[1:, ::2]
    y = pickle.loads(pickle.dumps(x))
    print(y.device, y.tolist(), y.stride() == x.stride())
    """
    done = run(script)
    assert (done.returncode, done.stdout) == (0, "webgpu:0 [[4.0, 6.0], [8.0, 10.0]] True\n"), done.stderr


def test_the_old_file_format() -> None:
    script = """
    import io, torch
    for source in ("cpu", "webgpu"):
        for target in ("cpu", "webgpu"):
            file = io.BytesIO()
            torch.save(torch.arange(5, device=source), file, _use_new_zipfile_serialization=False)
            file.seek(0)
            loaded = torch.load(file, map_location=target)
            print(loaded.device.type == target, loaded.tolist())
    """
    done = run(script)
    assert (done.returncode, done.stdout) == (0, "True [0, 1, 2, 3, 4]\n" * 4), done.stderr


def test_pickled_parameters_and_modules() -> None:
    script = """
    import pickle, torch
    model = pickle.loads(pickle.dumps(torch.nn.Linear(3, 2).to("webgpu")))
    print(model.weight.device, type(model.weight).__name__, model.weight.requires_grad)
    """
    done = run(script)
    assert (done.returncode, done.stdout) == (0, "webgpu:0 Parameter True\n"), done.stderr


def test_generators_are_pickled() -> None:
    generator = torch.Generator(device="webgpu").manual_seed(5)
    assert pickle.loads(pickle.dumps(generator)).initial_seed() == 5


# Copies


def test_deep_copy_of_tensors() -> None:
    x = torch.arange(12.0, device="webgpu").view(3, 4)
    twin, view = copy.deepcopy([x, x[1:, ::2]])
    assert twin.is_webgpu
    assert twin.data_ptr() != x.data_ptr()
    x.fill_(0)
    assert twin.tolist() == torch.arange(12.0).view(3, 4).tolist()
    twin.fill_(1)
    assert view.tolist() == [[1.0, 1.0]] * 2, "the copy of a view is a view of the copy"


def test_deep_copy_keeps_grad_and_requires_grad() -> None:
    x = torch.ones(3, device="webgpu", requires_grad=True)
    (x * 3).backward(torch.ones(3, device="webgpu"))
    twin = copy.deepcopy(x)
    assert twin.requires_grad
    assert twin.grad is not None
    assert twin.grad.tolist() == [3.0] * 3
    assert x.grad is not None
    assert twin.grad.data_ptr() != x.grad.data_ptr()


def test_deep_copy_of_a_module_with_tied_weights() -> None:
    model = tied().to("webgpu")
    twin = copy.deepcopy(model)
    assert twin[0].weight is twin[1].weight
    assert twin[0].weight.is_webgpu
    assert twin[0].weight.data_ptr() != model[0].weight.data_ptr()
    assert torch.equal(twin[0].weight.cpu(), model[0].weight.cpu())


# Modules


def test_moving_a_module_keeps_its_parameters() -> None:
    model = tied()
    values = model[0].weight.detach().clone()
    before = [id(parameter) for parameter in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in (lambda: model.to("webgpu"), model.cpu, model.webgpu):
        step()
        assert model[0].weight is model[1].weight
        assert [id(parameter) for parameter in model.parameters()] == before
    assert model[1].weight.is_webgpu
    assert isinstance(model[0].weight, nn.Parameter)
    held = optimizer.param_groups[0]["params"][0]
    assert held is model[0].weight
    held.grad = torch.ones(7, 4, device="webgpu")
    optimizer.step()
    torch.testing.assert_close(model[1].weight.detach().cpu(), values - 0.5)


def test_moving_a_module_takes_gradients_and_buffers_along() -> None:
    model = nn.BatchNorm1d(3)
    model(torch.arange(6.0).view(2, 3)).sum().backward()
    expected = model.bias.grad.clone()
    model.to("webgpu")
    assert model.running_mean.is_webgpu
    assert model.num_batches_tracked.is_webgpu
    assert model.num_batches_tracked.dtype == torch.int64
    assert model.bias.grad.is_webgpu
    assert torch.equal(model.bias.grad.cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=name_of)
def test_device_and_dtype_at_once(dtype: torch.dtype) -> None:
    model = tied()
    expected = model[0].weight.detach().to(dtype)
    model.register_buffer("steps", torch.tensor([3]))
    model.to("webgpu", dtype)
    assert model[0].weight is model[1].weight
    assert model[0].weight.dtype == dtype
    assert torch.equal(model[0].weight.detach().cpu(), expected)
    assert model.steps.dtype == torch.int64
    assert model.steps.is_webgpu


def test_a_module_of_doubles_moves_and_computes_on_the_cpu() -> None:
    model = nn.Linear(2, 2).double()
    x = torch.randn(3, 2, dtype=torch.float64)
    expected = model(x)
    model.to("webgpu")
    assert model.weight.is_webgpu
    assert model.weight.dtype == torch.float64
    with fallback_mode("quiet"):
        assert torch.equal(model(x.to("webgpu")).cpu(), expected)
    assert model.to(torch.float32).weight.dtype == torch.float32


@pytest.mark.parametrize("dtype", STORED_ONLY, ids=name_of)
def test_dtypes_without_arithmetic_are_saved_and_copied(dtype: torch.dtype) -> None:
    """But for pickle, which PyTorch lacks for most of these dtypes, on the CPU too."""
    x = make((5, 3), dtype, 1)
    moved = x.to("webgpu")
    for again in (save_and_load(moved), copy.deepcopy(moved)):
        assert again.is_webgpu
        assert_same_bits(again, x, nan_payload=False)
    assert_same_bits(save_and_load(moved, map_location="cpu"), x, nan_payload=False)
    assert_same_bits(save_and_load(x, map_location="webgpu"), x, nan_payload=False)
    assert_same_bits(save_and_load(moved[1:, 1]), x[1:, 1], nan_payload=False)


def test_from_meta_to_the_device() -> None:
    with torch.device("meta"):
        model = nn.Linear(3, 2)
    model.to_empty(device="webgpu")
    source = nn.Linear(3, 2)
    model.load_state_dict(source.state_dict())
    assert model.weight.is_webgpu
    assert torch.equal(model.weight.detach().cpu(), source.weight.detach())


@pytest.mark.parametrize("assign", [False, True])
def test_state_dict_round_trip(assign: bool) -> None:
    model = tied().to("webgpu")
    twin = tied().to("webgpu")
    state = save_and_load(model.state_dict())
    assert all(value.is_webgpu for value in state.values())
    assert state["0.weight"].data_ptr() == state["1.weight"].data_ptr()
    twin.load_state_dict(state, assign=assign)
    assert torch.equal(twin[1].weight.detach().cpu(), model[0].weight.detach().cpu())


def test_state_dict_between_devices() -> None:
    here, there = nn.Linear(3, 2), nn.Linear(3, 2).to("webgpu")
    there.load_state_dict(here.state_dict())
    assert there.weight.is_webgpu
    assert torch.equal(there.weight.detach().cpu(), here.weight.detach())
    with torch.no_grad():
        there.weight.fill_(4)
    here.load_state_dict(there.state_dict())
    assert here.weight.device.type == "cpu"
    assert here.weight.eq(4).all()


def test_optimizer_state_round_trip() -> None:
    """State made on the CPU follows its parameter to the device."""
    here = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(here.parameters(), lr=0.1, momentum=0.9)
    here(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    there = nn.Linear(3, 2).to("webgpu")
    other = torch.optim.SGD(there.parameters(), lr=0.1, momentum=0.9)
    other.load_state_dict(save_and_load(optimizer.state_dict(), map_location="webgpu"))
    buffer = other.state[there.weight]["momentum_buffer"]
    assert buffer.is_webgpu
    assert torch.equal(buffer.cpu(), optimizer.state[here.weight]["momentum_buffer"])
