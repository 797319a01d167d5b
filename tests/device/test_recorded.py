"""Functions whose calls are recorded once and replayed: the same results, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import DEVICE, on_device
from torch_webgpu import _C

ROOT = Path(__file__).parents[2]

Results = tuple[Any, ...]


def layers(arguments: list[Any]) -> Results:
    """Pointwise work, a product, random numbers, a view, an in-place write; results of every kind."""
    x, weight, count = arguments
    arguments.clear()
    hidden = torch.nn.functional.dropout(torch.mm(x, weight).relu(), 0.5)
    x.mul_(2)
    return hidden, hidden.t(), x, x[1:], None, count, torch.empty(0, 3, device=DEVICE)


def arguments_of(seed: int, rows: int = 6) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, 8, generator=generator).to(DEVICE), torch.randn(8, 5, generator=generator).to(DEVICE), 7]


def same(actual: Results, expected: Results) -> None:
    for one, other in zip(actual, expected, strict=True):
        if isinstance(other, torch.Tensor):
            assert (one.shape, one.stride(), one.dtype) == (other.shape, other.stride(), other.dtype)
            assert one.storage_offset() == other.storage_offset()
            assert torch.equal(one.cpu(), other.cpu())
        else:
            assert one == other


def test_replays_give_what_calls_give() -> None:
    function = _C.RecordedFunction(layers)
    for seed in range(4):
        torch.manual_seed(seed)
        given, direct = arguments_of(seed), arguments_of(seed)
        x = given[0]
        with on_device(dispatches=None):
            actual = function(given)
        torch.manual_seed(seed)
        same(actual, layers(direct))
        assert given == [], "the arguments are taken"
        assert actual[2] is x, "an argument that comes back is the same tensor"
        assert actual[0].untyped_storage().data_ptr() == actual[1].untyped_storage().data_ptr()
        assert actual[3].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert (function.recordings, function.replays, function.failures) == (1, 3, [])


def test_random_numbers_go_on_from_one_replay_to_the_next() -> None:
    function = _C.RecordedFunction(layers)
    torch.manual_seed(0)
    replayed = [function(arguments_of(1))[0].cpu() for _ in range(3)]
    torch.manual_seed(0)
    direct = [layers(arguments_of(1))[0].cpu() for _ in range(3)]
    for one, other in zip(replayed, direct, strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(replayed[0], replayed[1])


@pytest.mark.parametrize(
    "change",
    [
        lambda x, w, n: [x[:4], w, n],
        lambda x, w, n: [x.t().contiguous().t(), w, n],
        lambda x, w, n: [torch.cat([x[:1], x])[1:], w, n],
        lambda x, w, n: [x.half(), w.half(), n],
        lambda x, w, n: [x, w, n + 1],
    ],
    ids=["sizes", "strides", "offset", "dtype", "number"],
)
def test_another_layout_is_recorded_anew(change: Any) -> None:
    function = _C.RecordedFunction(layers)
    torch.manual_seed(0)
    function(arguments_of(0))
    for _ in range(2):
        torch.manual_seed(5)
        actual = function(change(*arguments_of(1)))
        torch.manual_seed(5)
        same(actual, layers(change(*arguments_of(1))))
    assert (function.recordings, function.replays) == (2, 1)


def test_arguments_that_share_memory_are_a_layout_of_their_own() -> None:
    def shift(arguments: list[Any]) -> Results:
        a, b = arguments
        arguments.clear()
        a.add_(1)
        return (a * b,)

    function = _C.RecordedFunction(shift)
    for _ in range(2):
        a, b = torch.ones(4, device=DEVICE), torch.ones(4, device=DEVICE)
        assert function([a, b])[0].tolist() == [2.0] * 4
        assert function([a, a])[0].tolist() == [9.0] * 4
    assert function.recordings == 2


def test_constants_stay() -> None:
    constant = torch.full((4,), 3.0, device=DEVICE)
    function = _C.RecordedFunction(lambda given: (given.pop() + constant,), [constant])
    for number in range(3):
        assert function([torch.full((4,), float(number), device=DEVICE)])[0].tolist() == [number + 3.0] * 4
    assert function.replays == 2


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (lambda x: x * x.sum().item(), "to the host"),
        (lambda x: x + torch.arange(4.0).to(DEVICE), "from the host"),
        (lambda x: x + STRANGER.to(DEVICE), "neither given nor made"),
    ],
    ids=["readback", "upload", "stranger"],
)
def test_what_cannot_be_replayed_runs_as_it_is(work: Any, reason: str) -> None:
    global STRANGER
    STRANGER = torch.ones(4, device=DEVICE)
    function = _C.RecordedFunction(lambda given: (work(given.pop()),))
    for number in range(3):
        x = torch.full((4,), float(number))
        assert torch.equal(function([x.to(DEVICE)])[0].cpu(), work(x.to(DEVICE)).cpu())
    assert function.recordings == 0
    assert len(function.failures) == 1
    assert reason in function.failures[0]


STRANGER = torch.empty(0)


def test_an_error_while_recording_leaves_no_trace() -> None:
    def fails(arguments: list[Any]) -> Results:
        raise KeyError("mine")

    function = _C.RecordedFunction(fails)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            function([torch.ones(2, device=DEVICE)])
    recorded = _C.RecordedFunction(lambda given: (given.pop() + 1,))
    recorded([torch.ones(2, device=DEVICE)])
    assert recorded.recordings == 1


def test_a_replay_allocates_and_frees() -> None:
    function = _C.RecordedFunction(lambda given: ((given.pop() + 1).exp().sum(),))
    x = torch.ones(1000, device=DEVICE)
    for _ in range(3):
        function([x])
    before = torch.webgpu.memory_stats()
    for _ in range(50):
        function([x])
    after = torch.webgpu.memory_stats()
    assert after["buffers_created"] == before["buffers_created"]
    assert after["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]


def test_a_number_on_the_host_may_come_and_go() -> None:
    """As the seed of attention does, on its way from the forward to the backward."""

    def scaled(arguments: list[Any]) -> Results:
        x, factor = arguments
        return x * factor.item(), factor, torch.tensor(7)

    function = _C.RecordedFunction(scaled)
    x = torch.ones(5, device=DEVICE)
    for value in (2.0, 2.0, 3.0, 2.0, 3.0):
        factor = torch.tensor(value)
        out, same_factor, seven = function([x, factor])
        assert out.tolist() == [value] * 5
        assert same_factor is factor
        assert seven.item() == 7
        seven.fill_(0)  # the caller's own
    assert (function.recordings, function.replays, function.failures) == (2, 3, [])
    for value in range(10):
        assert function([x, torch.tensor(float(value))])[0].tolist() == [value] * 5
    assert function.recordings <= 4, "a number that changes in each call is not recorded for ever"


def test_a_replay_costs_the_host_little() -> None:
    """CPU time of the thread, where the device does nothing; the bars of the benchmark are 1.5 and 12 microseconds."""
    script = (
        "from benchmarks import host; print(host.replayed(1, 3), host.replayed(101, 3), host.compiled_kernel(3).value)"
    )
    environment = {**os.environ, "TORCH_WEBGPU_RUNTIME": "dawn", "TORCH_WEBGPU_ADAPTER": "null"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    one, many, kernel = map(float, done.stdout.split())
    per_launch = (many - one) / 100
    assert per_launch < 3
    assert one - per_launch < 24
    assert kernel < 3


def test_independent_launches_run_side_by_side() -> None:
    def several(arguments: list[Any]) -> Results:
        x, y = arguments
        a, b = x + 1, torch.mm(x, y)
        c, d = a * b, torch.mm(y, b)
        return a + d, c, b.sum(0)

    function = _C.RecordedFunction(several)
    x, y = (torch.randn(8, 8, device=DEVICE) for _ in range(2))
    same(function([x, y]), several([x, y]))
    with on_device(dispatches=3):
        actual = function([x, y])
    same(actual, several([x, y]))
