"""The one stream, events that record, wait and time, and the device guard."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable

import pytest
import torch

from tests.device.process import RUNTIMES, output_of

MAKERS: dict[str, Callable[..., torch.Event]] = {
    "torch": lambda **options: torch.Event(device="webgpu", **options),
    "torch.webgpu": lambda **options: torch.webgpu.Event(**options),
}


@pytest.fixture(params=MAKERS.values(), ids=MAKERS.keys())
def make(request: pytest.FixtureRequest) -> Callable[..., torch.Event]:
    return request.param


def heavy(elements: int = 1 << 20, repeats: int = 20) -> torch.Tensor:
    """Some tens of milliseconds of work."""
    x = torch.ones(elements, device="webgpu")
    for _ in range(repeats):
        x = x * 1.0001
    return x


# Events


def test_an_event_completes_after_the_work_before_it(make: Callable[..., torch.Event]) -> None:
    event = make()
    assert event.query(), "nothing recorded, nothing to wait for"
    x = heavy()
    event.record()
    event.synchronize()
    assert event.query()
    assert event.device.type == "webgpu"
    assert x[0].item() > 1


def test_query_tells_before_and_after() -> None:
    """Work goes to a queue of the driver's: an event behind a lot of it is not complete at once."""
    torch.webgpu.synchronize()
    event = torch.Event(device="webgpu")
    x = heavy(1 << 22, 60)
    event.record()
    assert not event.query()
    limit = time.monotonic() + 60
    while not event.query():
        assert time.monotonic() < limit
        time.sleep(0.005)
    assert x[0].item() > 1


def test_elapsed_time_is_the_works(make: Callable[..., torch.Event]) -> None:
    """Between events around the work it passes at least half, and at most all, of the host's time."""
    heavy()
    torch.webgpu.synchronize()
    first, second = make(enable_timing=True), make(enable_timing=True)
    start = time.perf_counter()
    first.record()
    x = heavy(1 << 22, 20)
    second.record()
    second.synchronize()
    host_ms = (time.perf_counter() - start) * 1e3
    device_ms = first.elapsed_time(second)
    assert 0.5 * host_ms < device_ms <= host_ms + 1, "1 ms for the resolution of either clock"
    assert second.elapsed_time(first) == -device_ms
    assert x[0].item() > 1


def test_elapsed_time_grows_with_the_work() -> None:
    heavy()
    events = [torch.Event(device="webgpu", enable_timing=True) for _ in range(4)]
    events[0].record()
    for event, repeats in zip(events[1:], (4, 16, 64), strict=True):
        heavy(1 << 18, repeats)
        event.record()
    events[-1].synchronize()
    spans = [first.elapsed_time(second) for first, second in itertools.pairwise(events)]
    assert 0 < spans[0] < spans[1] < spans[2]
    assert events[0].elapsed_time(events[-1]) == pytest.approx(sum(spans), abs=1e-3)


def test_an_event_without_work_between() -> None:
    first, second = (torch.Event(device="webgpu", enable_timing=True) for _ in range(2))
    first.record()
    second.record()
    second.synchronize()
    assert 0 <= first.elapsed_time(second) < 1000


def test_elapsed_time_is_refused_without_timing(make: Callable[..., torch.Event]) -> None:
    timed, plain = make(enable_timing=True), make()
    timed.record()
    plain.record()
    torch.webgpu.synchronize()
    for first, second in ((timed, plain), (plain, timed), (plain, plain)):
        with pytest.raises(ValueError, match="enable_timing=True"):
            first.elapsed_time(second)


def test_elapsed_time_is_refused_unless_both_are_recorded() -> None:
    first, second = (torch.Event(device="webgpu", enable_timing=True) for _ in range(2))
    with pytest.raises(ValueError, match="must be recorded"):
        first.elapsed_time(second)
    first.record()
    with pytest.raises(ValueError, match="must be recorded"):
        first.elapsed_time(second)
    second.record()
    second.synchronize()
    assert first.elapsed_time(second) >= 0


def test_an_event_can_be_recorded_again() -> None:
    first, second = (torch.Event(device="webgpu", enable_timing=True) for _ in range(2))
    spans = []
    for repeats in (2, 40):
        first.record()
        heavy(1 << 18, repeats)
        second.record()
        second.synchronize()
        spans.append(first.elapsed_time(second))
    assert 0 < spans[0] < spans[1]


def test_many_events_in_a_row() -> None:
    """More than any query set holds: those that are gone give their place back."""
    x = torch.ones(10, device="webgpu")
    first = torch.Event(device="webgpu", enable_timing=True)
    first.record()
    for _ in range(3000):
        event = torch.Event(device="webgpu", enable_timing=True)
        event.record()
    x = x + 1
    event.synchronize()
    assert first.elapsed_time(event) > 0
    assert x.tolist() == [2.0] * 10


def test_many_events_at_once() -> None:
    events = [torch.Event(device="webgpu", enable_timing=True) for _ in range(1500)]
    for event in events:
        event.record()
    torch.webgpu.synchronize()
    assert all(event.query() for event in events)
    assert events[0].elapsed_time(events[-1]) > 0


def test_events_may_go_before_they_complete() -> None:
    x = heavy()
    for timing in (False, True):
        event = torch.Event(device="webgpu", enable_timing=timing)
        event.record()
        del event
    gc.collect()
    torch.webgpu.synchronize()
    assert x[0].item() > 1


def test_an_event_of_the_stream_of_another_device_is_refused() -> None:
    with pytest.raises(RuntimeError, match="does not match"):
        torch.Event(device="webgpu").record(torch.Stream(device="cpu"))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_events_on_each_runtime(runtime: str) -> None:
    script = """
    import time, torch
    x = torch.ones(1 << 20, device="webgpu")
    first, second = (torch.Event(device="webgpu", enable_timing=True) for _ in range(2))
    x * 2; torch.webgpu.synchronize()
    start = time.perf_counter()
    first.record()
    for _ in range(20): x = x * 1.0001
    second.record(); second.synchronize()
    host_ms = (time.perf_counter() - start) * 1e3
    assert second.query() and 0.3 * host_ms < first.elapsed_time(second) <= host_ms + 1, host_ms
    """
    output_of(script, TORCH_WEBGPU_RUNTIME=runtime)


# Streams


def test_there_is_one_stream() -> None:
    stream = torch.webgpu.current_stream()
    assert isinstance(stream, torch.Stream)
    assert stream.device == torch.device("webgpu", 0)
    others = (
        torch.webgpu.Stream(),
        torch.Stream(device="webgpu"),
        torch.webgpu.default_stream(),
        torch.accelerator.current_stream(),
        torch.accelerator.current_stream("webgpu:0"),
    )
    assert all(other == stream for other in others)


def test_streams_wait_and_record() -> None:
    stream, other = torch.webgpu.Stream(), torch.Stream(device="webgpu")
    x = heavy()
    event = stream.record_event()
    other.wait_event(event)
    other.wait_stream(stream)
    event.wait(other)
    given = torch.webgpu.Event(enable_timing=True)
    assert stream.record_event(given) is given
    stream.synchronize()
    assert stream.query()
    assert event.query()
    assert given.query()
    with stream:
        y = x + 1
    torch.accelerator.set_stream(other)
    assert (y - x)[0].item() == 1


def test_a_busy_stream_says_so() -> None:
    stream = torch.webgpu.current_stream()
    stream.synchronize()
    assert stream.query()
    x = heavy(1 << 22, 60)
    assert not stream.query()
    torch.accelerator.synchronize()
    assert stream.query()
    assert x[0].item() > 1


def test_tensors_may_be_recorded_on_the_stream() -> None:
    """A library that moves data ahead does this; with one stream there is nothing to remember."""
    x = torch.ones(3, device="webgpu")
    x.record_stream(torch.webgpu.current_stream())
    assert (x + 1).tolist() == [2.0] * 3


# The guard


def test_the_current_device() -> None:
    assert torch.webgpu.current_device() == torch.accelerator.current_device_index() == 0
    torch.webgpu.set_device(0)
    torch.webgpu.set_device("webgpu")
    torch.accelerator.set_device_index(0)
    with torch.webgpu.device(0), torch.webgpu.device("webgpu:0"), torch.accelerator.device_index(0):
        assert torch.webgpu.current_device() == 0
        assert torch.ones(1, device="webgpu").get_device() == 0
    with torch.device("webgpu"):
        assert torch.ones(1).is_webgpu


@pytest.mark.parametrize(
    "use",
    [
        lambda: torch.webgpu.set_device(1),
        lambda: torch.webgpu.set_device("webgpu:1"),
        lambda: torch.webgpu.set_device(-1),
        lambda: torch.webgpu.device(1),
        lambda: torch.webgpu.synchronize(1),
        lambda: torch.webgpu.get_device_properties(1),
        lambda: torch.webgpu.memory_allocated("webgpu:1"),
        lambda: torch.accelerator.set_device_index(1),
        lambda: torch.accelerator.device_index(1).__enter__(),
        lambda: torch.ones(2, device="webgpu:1"),
        lambda: torch.empty(2, device="webgpu:1"),
        lambda: torch.empty_strided((2,), (1,), device="webgpu:1"),
        lambda: torch.ones(2).to("webgpu:1"),
        lambda: torch.ones(2).webgpu(1),
        lambda: torch.ones(2, device="webgpu").to("webgpu:1"),
        lambda: torch.nn.Linear(2, 2).to("webgpu:1"),
        lambda: torch.accelerator.synchronize(1),
    ],
)
def test_a_second_device_is_refused(use: Callable[[], object]) -> None:
    with pytest.raises(RuntimeError, match=r"invalid device ordinal -?1: there is one device, webgpu:0"):
        use()


def test_another_kind_of_device_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a webgpu device, but got cpu"):
        torch.webgpu.set_device("cpu")
