"""What somebody who works on the CPU alone does, printed line by line: python cpu_user.py [used]

With "used", a tensor of the device exists first. tests/device/test_cpu_user.py compares the lines with and without the
device installed.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

STEPS: list[Callable[[], Any]] = []


def step(function: Callable[[], Any]) -> Callable[[], Any]:
    STEPS.append(function)
    return function


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.ReLU(), nn.Linear(8, 2))


def devices(values: Any) -> list[str]:
    return sorted({str(value.device) for value in values})


@step
def random_numbers() -> Any:
    torch.manual_seed(3)
    with torch.random.fork_rng():
        inside = torch.rand(2)
    return inside.tolist(), torch.rand(2).tolist()


@step
def defaults() -> Any:
    made = [torch.tensor([1.0]), torch.empty(1), torch.arange(2), torch.Generator(), torch.nn.Linear(1, 1).weight]
    return devices(made), str(torch.get_default_device()), torch.empty(1).is_pinned()


@step
def training() -> Any:
    net = model()
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(2):
        net(torch.ones(3, 4)).sum().backward()
        optimizer.step()
    return devices(net.parameters()), net[3].bias.tolist()


@step
def zero_grad() -> Any:
    net, results = model(), []
    for zeroed in (torch.optim.SGD(net.parameters()), torch.optim.Adam(net.parameters(), foreach=True), net):
        for to_none in (False, True):
            net(torch.ones(3, 4)).sum().backward()
            zeroed.zero_grad(set_to_none=to_none)
            results.append([parameter.grad is None or parameter.grad.tolist() for parameter in net.parameters()])
    return results


@step
def default_tensor_types() -> Any:
    torch.set_default_tensor_type(torch.DoubleTensor)
    made = torch.ones(1)
    torch.set_default_tensor_type("torch.FloatTensor")
    return made.type(), torch.ones(1).type()


@step
def dlpack() -> Any:
    x = torch.arange(3.0)
    torch.from_dlpack(x).add_(1)
    torch.from_dlpack(x, copy=True).add_(1)
    torch.from_dlpack(torch.utils.dlpack.to_dlpack(x)).add_(1)
    return x.tolist(), [int(number) for number in x.__dlpack_device__()]


@step
def autocast() -> Any:
    with torch.autocast("cpu"):
        return str(model()(torch.ones(3, 4)).dtype), torch.is_autocast_enabled("cpu")


@step
def grad_scaler() -> Any:
    return torch.amp.GradScaler("cpu").scale(torch.ones(1)).tolist(), torch.amp.GradScaler().is_enabled()


@step
def checkpointing() -> Any:
    from torch.utils.checkpoint import checkpoint

    results = []
    for reentrant in (False, True):
        net, x = model(), torch.ones(3, 4, requires_grad=True)
        checkpoint(net, x, use_reentrant=reentrant).sum().backward()
        results.append((x.grad.tolist(), torch.rand(1).item()))
    return results


@step
def loaders() -> Any:
    data = TensorDataset(torch.arange(6.0).view(3, 2))
    plain = [batch[0].tolist() for batch in DataLoader(data)]
    workers = [batch[0].tolist() for batch in DataLoader(data, num_workers=1)]
    pinned = [batch[0] for batch in DataLoader(data, pin_memory=True)]
    return plain, workers, [batch.tolist() for batch in pinned], devices(pinned)


@step
def data_parallel() -> Any:
    net = nn.DataParallel(model().eval())
    return devices(net.parameters()), net(torch.ones(3, 4)).tolist(), sorted(net.state_dict())


@step
def saving() -> Any:
    file = io.BytesIO()
    torch.save(model().state_dict(), file)
    file.seek(0)
    return devices(torch.load(file).values())


@step
def flex_attention() -> Any:
    from torch.nn.attention.flex_attention import create_block_mask, create_mask

    def causal(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return q >= k

    block = create_block_mask(causal, None, None, 128, 128)
    return str(block.kv_indices.device), str(create_mask(causal, 1, 1, 4, 4).device)


@step
def save_on_cpu() -> Any:
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        (x * x).sum().backward()
    return x.grad.tolist()


@step
def fake_tensors_and_export() -> Any:
    program = torch.export.export(model().eval(), (torch.ones(3, 4),))
    return program.module()(torch.ones(3, 4)).tolist()


@step
def tracing() -> Any:
    net = model().eval()
    return torch.jit.trace(net, torch.ones(3, 4))(torch.ones(3, 4)).tolist()


@step
def profiling() -> Any:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.ones(3).add(1)
    return any(event.key == "aten::add" for event in profile.key_averages())


@step
def errors() -> Any:
    said = []
    for device in ("cuda", "mps"):
        try:
            torch.ones(1).to(device)
        except (AssertionError, RuntimeError) as error:
            said.append(f"{type(error).__name__} {str(error).partition('.')[0][:60]}")
    return said


@step
def groups() -> Any:
    """Last: what a group of one process gives."""
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    x = torch.arange(4.0)
    dist.all_reduce(x)
    gathered: list[Any] = [None]
    dist.all_gather_object(gathered, {"a": 1})
    dist.barrier()
    parts = [torch.empty(4)]
    dist.all_gather(parts, x)
    dist.broadcast(x, 0)
    ddp = nn.parallel.DistributedDataParallel(model())
    ddp(torch.ones(3, 4)).sum().backward()
    second = dist.new_group([0])
    dist.all_reduce(x, group=second)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    return x.tolist(), gathered, parts[0].tolist(), devices(ddp.parameters()), dist.get_backend(), work.is_completed()


@step
def sharding() -> Any:
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (1,))
    whole = distribute_tensor(torch.arange(4.0), mesh, [Shard(0)]).full_tensor()
    results = [whole.tolist()]
    for arguments in ({"mesh": mesh}, {}):
        net = fully_shard(model().eval(), **arguments)
        net(torch.ones(3, 4)).sum().backward()
        results.append((devices(net.parameters()), net[3].bias.grad.full_tensor().tolist()))
    dist.barrier()
    return results


@step
def distributed_checkpoints() -> Any:
    import torch.distributed.checkpoint as checkpoint

    results = []
    with tempfile.TemporaryDirectory() as folder:
        for save in (checkpoint.save, lambda *a, **k: checkpoint.async_save(*a, **k).result()):
            with contextlib.redirect_stderr(io.StringIO()):
                save({"x": torch.arange(3.0)}, checkpoint_id=f"{folder}/{len(results)}")
            state = {"x": torch.zeros(3)}
            checkpoint.load(state, checkpoint_id=f"{folder}/{len(results)}")
            results.append(state["x"].tolist())
    return results


def main() -> None:
    torch.set_num_threads(1)
    if "used" in sys.argv:
        torch.ones(3, device="webgpu").add(1).sum().item()
    for each in STEPS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = each()
            except Exception as error:
                result = f"{type(error).__name__}: {error}".partition("\n")[0]
        print(f"{each.__name__}: {result}", flush=True)
    print(f"opened: {hasattr(torch, 'webgpu') and torch.webgpu.is_initialized()}\ndone")


if __name__ == "__main__":
    main()
