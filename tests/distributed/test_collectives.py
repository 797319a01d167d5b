"""torch.distributed on webgpu tensors: each collective gives what gloo gives for the same CPU tensors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from tests.distributed.pair import Pair

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.uint8)


def numbers(rank: int, device: str, count: int = 6, dtype: torch.dtype = torch.float32) -> Tensor:
    return (torch.arange(count) + 10 * rank + 1).to(dtype).to(device)


def blank(device: str, count: int = 6) -> Tensor:
    return torch.full((count,), -1.0, device=device)


# Each case takes the rank and the device, and returns the tensors it ends with.


def all_reduce(rank: int, device: str) -> list[Tensor]:
    tensors = [numbers(rank, device, dtype=dtype) for dtype in DTYPES]
    for tensor in tensors:
        dist.all_reduce(tensor)
    return tensors


def all_reduce_operators(rank: int, device: str) -> list[Tensor]:
    tensors = [numbers(rank, device) for _ in range(3)]
    for tensor, op in zip(tensors, (dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.PRODUCT), strict=True):
        dist.all_reduce(tensor, op)
    return tensors


def all_reduce_view(rank: int, device: str) -> list[Tensor]:
    whole = numbers(rank, device, 12).view(3, 4)
    dist.all_reduce(whole[1])
    return [whole]


def all_reduce_strided(rank: int, device: str) -> list[Tensor]:
    whole = numbers(rank, device, 12).view(3, 4)
    part = whole.t()[1:3]
    if device == "cpu":  # gloo itself wants dense tensors
        dense = part.contiguous()
        dist.all_reduce(dense)
        part.copy_(dense)
    else:
        dist.all_reduce(part)
    return [whole]


def all_reduce_coalesced(rank: int, device: str) -> list[Tensor]:
    tensors = [numbers(rank, device, 4), numbers(rank, device, 3)]
    with dist.distributed_c10d._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    return tensors


def all_reduce_complex(rank: int, device: str) -> list[Tensor]:
    tensor = torch.complex(torch.arange(3.0), torch.arange(3.0) + rank).to(device)
    dist.all_reduce(tensor)
    return [tensor]


def broadcast(rank: int, device: str) -> list[Tensor]:
    tensors = [numbers(rank, device) for _ in range(3)]
    for source, tensor in enumerate(tensors[:2]):
        dist.broadcast(tensor, source)
    dist.distributed_c10d._get_default_group().broadcast(tensors[2], 1).wait()
    return tensors


def reduce(rank: int, device: str) -> list[Tensor]:
    tensor = numbers(rank, device)
    dist.reduce(tensor, 1)
    return [tensor] if rank == 1 else []


def all_gather(rank: int, device: str) -> list[Tensor]:
    outputs = [blank(device) for _ in range(2)]
    dist.all_gather(outputs, numbers(rank, device))
    return outputs


def all_gather_single(rank: int, device: str) -> list[Tensor]:
    first, second = blank(device, 12), blank(device, 12)
    dist.all_gather_single(first, numbers(rank, device))
    dist.distributed_c10d._get_default_group()._allgather_base(second, numbers(rank, device)).wait()
    return [first, second]


def all_gather_coalesced(rank: int, device: str) -> list[Tensor]:
    outputs = [blank(device, 4), blank(device, 6)]
    with dist.distributed_c10d._coalescing_manager():
        for output in outputs:
            dist.all_gather_single(output, numbers(rank, device, len(output) // 2))
    return outputs


def reduce_scatter(rank: int, device: str) -> list[Tensor]:
    output = blank(device)
    dist.reduce_scatter(output, [numbers(rank, device), numbers(rank, device) * 2])
    return [output]


def reduce_scatter_single(rank: int, device: str) -> list[Tensor]:
    output = blank(device, 3)
    dist.reduce_scatter_single(output, numbers(rank, device))
    return [output]


def reduce_scatter_coalesced(rank: int, device: str) -> list[Tensor]:
    outputs = [blank(device, 2), blank(device, 3)]
    with dist.distributed_c10d._coalescing_manager():
        for output in outputs:
            dist.reduce_scatter_single(output, numbers(rank, device, 2 * len(output)))
    return outputs


def all_to_all(rank: int, device: str) -> list[Tensor]:
    if device == "cpu":  # gloo has only the form of one tensor
        output = blank(device, 4)
        dist.all_to_all_single(output, numbers(rank, device, 4))
        return list(output.split(2))
    outputs = [blank(device, 2) for _ in range(2)]
    dist.all_to_all(outputs, list(numbers(rank, device, 4).split(2)))
    return outputs


def all_to_all_single(rank: int, device: str) -> list[Tensor]:
    even, uneven = blank(device, 4), blank(device, 2 + 2 * rank)
    dist.all_to_all_single(even, numbers(rank, device, 4))
    dist.all_to_all_single(uneven, numbers(rank, device, 3), [1 + rank, 1 + rank], [1, 2])
    return [even, uneven]


def gather(rank: int, device: str) -> list[Tensor]:
    outputs = [blank(device) for _ in range(2)] if rank == 0 else None
    dist.gather(numbers(rank, device), outputs, dst=0)
    return outputs or []


def scatter(rank: int, device: str) -> list[Tensor]:
    output = blank(device)
    dist.scatter(output, [numbers(7, device), numbers(8, device)] if rank == 1 else None, src=1)
    return [output]


def send_and_receive(rank: int, device: str) -> list[Tensor]:
    output = blank(device)
    if rank == 0:
        dist.send(numbers(rank, device), 1)
        dist.recv(output, 1)
    else:
        assert dist.recv(output) == 0  # from anyone
        dist.send(output * 2, 0)
    return [output]


def both_send_first(rank: int, device: str) -> list[Tensor]:
    """A send that waited for its receive would never end here."""
    output = blank(device, 1 << 20)
    message = numbers(rank, device, 1 << 20)
    operations = [dist.P2POp(dist.isend, message, 1 - rank), dist.P2POp(dist.irecv, output, 1 - rank)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return [output]


def functional(rank: int, device: str) -> list[Tensor]:
    """What DTensor and compiled graphs call."""
    from torch.distributed import _functional_collectives as functional

    group = dist.group.WORLD
    return [
        functional.all_reduce(numbers(rank, device), "sum", group) * 1,
        functional.all_gather_tensor(numbers(rank, device), 0, group) * 1,
        functional.reduce_scatter_tensor(numbers(rank, device), "sum", 0, group) * 1,
        functional.all_to_all_single(numbers(rank, device), [3, 3], [3, 3], group) * 1,
        functional.broadcast(numbers(rank, device), 1, group) * 1,
    ]


CASES = (
    all_reduce,
    all_reduce_operators,
    all_reduce_view,
    all_reduce_strided,
    all_reduce_coalesced,
    all_reduce_complex,
    broadcast,
    reduce,
    all_gather,
    all_gather_single,
    all_gather_coalesced,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_coalesced,
    all_to_all,
    all_to_all_single,
    gather,
    scatter,
    send_and_receive,
    both_send_first,
    functional,
)


def compare(rank: int, case: Callable[[int, str], list[Tensor]]) -> None:
    expected, actual = case(rank, "cpu"), case(rank, "webgpu")
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        assert one.device.type == "webgpu"
        assert other.device.type == "cpu"
        torch.testing.assert_close(one.cpu(), other, rtol=0, atol=0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_as_with_gloo(pair: Pair, case: Callable[[int, str], list[Tensor]]) -> None:
    pair.run(compare, case)


def asynchronous(rank: int) -> None:
    tensors = [numbers(rank, "webgpu") for _ in range(3)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    expected = (numbers(0, "cpu") + numbers(1, "cpu")).tolist()
    works[0].wait()
    assert tensors[0].tolist() == expected
    (result,) = works[1].get_future().wait()
    assert result.data_ptr() == tensors[1].data_ptr()
    assert tensors[1].tolist() == expected
    deadline = time.monotonic() + 30
    while not works[2].is_completed():
        assert time.monotonic() < deadline
    assert tensors[2].tolist() == expected
    works[0].wait()  # again: nothing is written twice
    tensors[0].zero_()
    works[0].get_future().wait()
    assert tensors[0].tolist() == [0.0] * 6


def test_asynchronous_work(pair: Pair) -> None:
    pair.run(asynchronous)


def averages(rank: int) -> None:
    tensor, whole, part = numbers(rank, "webgpu"), numbers(rank, "webgpu"), blank("webgpu", 3)
    dist.all_reduce(tensor, dist.ReduceOp.AVG)
    dist.reduce_scatter_single(part, whole, dist.ReduceOp.AVG)
    expected = (numbers(0, "cpu") + numbers(1, "cpu")) / 2
    assert tensor.tolist() == expected.tolist()
    assert part.tolist() == expected[3 * rank : 3 * rank + 3].tolist()


def test_average_which_gloo_lacks(pair: Pair) -> None:
    """FSDP2 divides gradients with it."""
    pair.run(averages)


def objects(rank: int) -> list[Any]:
    gathered: list[Any] = [None, None]
    dist.all_gather_object(gathered, {"rank": rank, "tensor": numbers(rank, "webgpu", 2)})
    assert all(each["tensor"].device.type == "webgpu" for each in gathered)
    sent = [["from", rank]]
    dist.broadcast_object_list(sent, src=1)
    received: list[Any] = [None]
    dist.scatter_object_list(received, [("a",), ("b",)] if rank == 0 else None, src=0)
    return [[each["rank"] for each in gathered], sent, received]


def test_objects(pair: Pair) -> None:
    assert pair.run(objects) == [[[0, 1], [["from", 1]], [("a",)]], [[0, 1], [["from", 1]], [("b",)]]]


def groups(rank: int) -> list[Any]:
    alone = [dist.new_group([each]) for each in range(2)]
    named = dist.new_group(backend="webgpu")
    both = dist.new_group(backend="cpu:gloo,webgpu:webgpu")
    results = []
    for group in (alone[rank], named, both):
        for device in ("cpu", "webgpu"):
            tensor = numbers(rank, device, 1)
            dist.all_reduce(tensor, group=group)
            results.append(tensor.item())
        dist.barrier(group)
        dist.destroy_process_group(group)
    dist.barrier()
    dist.barrier(device_ids=[0])
    return results


def test_groups_and_barriers(pair: Pair) -> None:
    assert pair.run(groups) == [[1, 1, 12, 12, 12, 12], [11, 11, 12, 12, 12, 12]]


def wait_for_lost_peer(rank: int) -> tuple[float, str]:
    start = time.monotonic()
    try:
        dist.all_reduce(numbers(rank, "webgpu"))
    except RuntimeError as error:
        return time.monotonic() - start, str(error)
    raise AssertionError("nothing was raised")


def test_lost_peer_raises() -> None:
    """One that ended, and one that does not answer within the timeout of the group."""
    pair = Pair(seconds=4)
    try:
        pair.run(numbers, "cpu", 1)
        pair.start(0, wait_for_lost_peer)
        seconds, message = pair.finish(0)
        assert 3 < seconds < 20
        assert "timed out" in message.lower(), message
    finally:
        pair.kill()
    pair = Pair(seconds=50)
    try:
        pair.run(numbers, "cpu", 1)
        pair.start(0, wait_for_lost_peer)
        pair.processes[1].kill()
        seconds, message = pair.finish(0)
        assert seconds < 20
        assert message
    finally:
        pair.kill()


def default_group_by_device_id(rank: int) -> None:
    dist.destroy_process_group()
    store = dist.HashStore()
    dist.init_process_group(device_id=torch.device("webgpu:0"), store=store, rank=0, world_size=1)
    assert dist.get_backend() == "webgpu"
    tensor = torch.ones(2, device="webgpu")
    dist.all_reduce(tensor)
    dist.barrier()
    assert tensor.tolist() == [1, 1]


def test_group_bound_to_a_device() -> None:
    pair = Pair()
    try:
        pair.run(default_group_by_device_id)
    finally:
        pair.kill()
