"""Training on two processes: DDP, FSDP2 and DTensor give what one process gives; distributed checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as checkpoint
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from tests.distributed.pair import Pair

BATCH, LENGTH, VOCABULARY, STEPS = 4, 8, 16, 3


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 16)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True) for _ in range(2)
        )
        self.head = nn.Linear(16, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def transformer(device: str = "webgpu") -> Transformer:
    torch.manual_seed(0)
    return Transformer().to(device)


def batch(step: int) -> Tensor:
    generator = torch.Generator().manual_seed(step)
    return torch.randint(VOCABULARY, (2 * BATCH, LENGTH), generator=generator).to("webgpu")


def train(model: nn.Module, optimizer: torch.optim.Optimizer, share: Callable[[Tensor], Tensor]) -> None:
    for step in range(STEPS):
        tokens = share(batch(step))
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.roll(-1, 1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def sgd(model: nn.Module, foreach: bool | None = None) -> torch.optim.Optimizer:
    """Steps in proportion to gradients, so that a wrong factor is seen; Adam's would hide it."""
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=foreach)


def one_process() -> dict[str, Tensor]:
    """The weights that twice the batch gives without any group."""
    model = transformer()
    train(model, sgd(model), lambda tokens: tokens)
    return {name: value.detach().cpu() for name, value in model.state_dict().items()}


def check(state: dict[str, Tensor]) -> None:
    start = transformer("cpu").state_dict()
    moved = 0.0
    for name, value in one_process().items():
        actual = state[name].full_tensor() if isinstance(state[name], DTensor) else state[name]
        assert actual.device.type == "webgpu"
        torch.testing.assert_close(actual.cpu(), value, rtol=1e-5, atol=1e-5)
        moved = max(moved, (value - start[name]).abs().max().item())
    assert moved > 1e-2, "training moved the weights far beyond the tolerance"


def data_parallel(rank: int, options: dict[str, object]) -> None:
    if rank == 1:
        torch.manual_seed(5)  # DDP sends the first process's weights
    model = DistributedDataParallel(transformer() if rank == 0 else Transformer().to("webgpu"), **options)
    train(model, sgd(model), lambda tokens: tokens.chunk(2)[rank])
    check(model.module.state_dict())


@pytest.mark.parametrize(
    "options", [{}, {"static_graph": True, "bucket_cap_mb": 0.001}, {"gradient_as_bucket_view": True}], ids=str
)
def test_ddp_equals_one_process_with_twice_the_batch(pair: Pair, options: dict[str, object]) -> None:
    pair.run(data_parallel, options)


def accumulated(rank: int) -> None:
    model = DistributedDataParallel(nn.Linear(4, 1, bias=False).to("webgpu"))
    inputs = torch.ones(1, 4, device="webgpu") * (rank + 1)
    with model.no_sync():
        model(inputs).sum().backward()
    assert model.module.weight.grad.tolist() == [[rank + 1.0] * 4]
    model(inputs).sum().backward()
    assert model.module.weight.grad.tolist() == [[3.0] * 4]


def test_ddp_accumulates_without_sync(pair: Pair) -> None:
    pair.run(accumulated)


def sharded(rank: int, explicit_mesh: bool) -> None:
    mesh = init_device_mesh("webgpu", (2,)) if explicit_mesh else None
    model = transformer()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = sgd(model)
    weight = model.head.weight
    assert isinstance(weight, DTensor)
    assert weight.to_local().shape == (VOCABULARY // 2, 16)
    assert weight.device.type == "webgpu"
    train(model, optimizer, lambda tokens: tokens.chunk(2)[rank])
    check(model.state_dict())


@pytest.mark.parametrize("explicit_mesh", [False, True], ids=["default mesh", "a mesh"])
def test_fsdp2_equals_one_process_with_twice_the_batch(pair: Pair, explicit_mesh: bool) -> None:
    pair.run(sharded, explicit_mesh)


def tensor_parallel(rank: int) -> None:
    mesh = init_device_mesh("webgpu", (2,))
    model = transformer()
    for layer in model.layers:
        parallelize_module(layer, mesh, {"linear1": ColwiseParallel(), "linear2": RowwiseParallel()})
        assert layer.linear1.weight.to_local().shape == (16, 16)
        layer.activation_relu_or_gelu = 0  # its fused inference path does not know DTensor
    train(model, sgd(model, foreach=False), lambda tokens: tokens)  # only some weights are DTensors
    check(model.state_dict())


def test_tensor_parallel_equals_one_process(pair: Pair) -> None:
    pair.run(tensor_parallel)


def distributed_tensors(rank: int) -> None:
    mesh = init_device_mesh("webgpu", (2,))
    whole = torch.arange(24.0).view(4, 6)
    rows = distribute_tensor(whole.to("webgpu"), mesh, [Shard(0)])
    columns = rows.redistribute(mesh, [Shard(1)])
    assert rows.to_local().tolist() == whole.chunk(2)[rank].tolist()
    assert columns.to_local().tolist() == whole.chunk(2, 1)[rank].tolist()
    product = columns @ rows.redistribute(mesh, [Replicate()]).t().redistribute(mesh, [Shard(0)])
    torch.testing.assert_close(product.full_tensor().cpu(), whole @ whole.t())
    assert rows.sum().full_tensor().item() == whole.sum().item()


def test_dtensor(pair: Pair) -> None:
    pair.run(distributed_tensors)


def save_and_load(rank: int, folder: Path) -> None:
    def make() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = transformer()
        fully_shard(model)
        return model, torch.optim.AdamW(model.parameters(), lr=0.01)

    model, optimizer = make()
    train(model, optimizer, lambda tokens: tokens.chunk(2)[rank])
    weights, moments = get_state_dict(model, optimizer)
    checkpoint.save({"model": weights, "optimizer": moments}, checkpoint_id=folder)
    expected = {name: value.full_tensor().cpu() for name, value in model.state_dict().items()}

    resumed, its_optimizer = make()
    weights, moments = get_state_dict(resumed, its_optimizer)
    checkpoint.load({"model": weights, "optimizer": moments}, checkpoint_id=folder)
    set_state_dict(resumed, its_optimizer, model_state_dict=weights, optim_state_dict=moments)
    for name, value in resumed.state_dict().items():
        assert value.device.type == "webgpu"
        assert torch.equal(value.full_tensor().cpu(), expected[name]), name
    train(model, optimizer, lambda tokens: tokens.chunk(2)[rank])
    train(resumed, its_optimizer, lambda tokens: tokens.chunk(2)[rank])
    for one, other in zip(resumed.parameters(), model.parameters(), strict=True):
        assert torch.equal(one.to_local().cpu(), other.to_local().cpu()), "the optimizer's state came back"

    # Without shards, on the CPU: what was saved by two is read by one.
    plain = {"model": Transformer().state_dict()}
    checkpoint.load(plain, checkpoint_id=folder, no_dist=True)
    for name, value in plain["model"].items():
        assert torch.equal(value, expected[name]), name


def test_distributed_checkpoint(pair: Pair, tmp_path: Path) -> None:
    pair.run(save_and_load, tmp_path / "checkpoint")


def save_in_background(rank: int, folder: Path) -> None:
    state = {"weight": torch.arange(6.0, device="webgpu"), "step": 3}
    checkpoint.async_save(state, checkpoint_id=folder).result()
    again = {"weight": torch.zeros(6, device="webgpu"), "step": 0}
    checkpoint.load(again, checkpoint_id=folder)
    assert again["weight"].tolist() == state["weight"].tolist()
    assert again["step"] == 3


def test_distributed_checkpoint_in_background(pair: Pair, tmp_path: Path) -> None:
    pair.run(save_in_background, tmp_path / "checkpoint")


def test_data_parallel_runs_the_module_as_it_is_and_names_ddp() -> None:
    inputs = torch.ones(4, 2, device="webgpu")
    model = nn.Linear(2, 3).to("webgpu")
    with pytest.warns(UserWarning, match="DistributedDataParallel"):
        parallel = nn.DataParallel(model)
    assert torch.equal(parallel(inputs), model(inputs))
