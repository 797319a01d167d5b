"""Times kernels against one another, on scratch tensors, and lets none win whose results are wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from torch_webgpu.tune.store import Choice, Store

_TIMINGS = 3
_TIMING_MS = 2.0  # at least: long enough for the clock
_MOST_LAUNCHES = 100  # in one timing

# How far a result may be from the reference's, as a part of its largest element: sums are taken in another order.
_TOLERANCE = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}

# How many kernels this process has timed.
COUNTS = {"timed": 0}


Tensors = Sequence[torch.Tensor | None]


class Kernel(Protocol):
    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...


class Contest(Protocol):
    """A launch and the kernels that compete for it; _C.Contest is one."""

    @property
    def family(self) -> str: ...
    @property
    def key(self) -> int: ...
    @property
    def kernels(self) -> Sequence[Kernel]: ...
    @property
    def reference(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def text(self) -> str: ...
    def scratch(self) -> Tensors: ...
    def run(self, number: int, tensors: Tensors) -> None: ...
    def prepare(self, number: int, tensors: Tensors) -> None: ...


class Stopped(Exception):
    """The process ends."""


def _event() -> torch.Event:
    event = torch.Event(device="webgpu", enable_timing=True)
    event.record()
    return event


def _wait(event: torch.Event) -> None:
    """Without the stream's lock, which a thread that waits for the device holds: the user's work goes on."""
    while not event.query():
        time.sleep(2e-4)


def _timed_ms(call: Callable[[], object], launches: int) -> float:
    """The launches follow others, so that none of them waits for the host."""
    for _ in range(launches):
        call()
    begin = _event()
    for _ in range(launches):
        call()
    end = _event()
    _wait(end)
    return begin.elapsed_time(end) / launches


def fastest_ms(call: Callable[[], object]) -> float:
    """Of one launch, by the device's clock: the best of some timings."""
    COUNTS["timed"] += 1
    _timed_ms(call, 1)  # a driver may compile now
    launches = min(max(round(_TIMING_MS / max(_timed_ms(call, 1), 1e-3)), 1), _MOST_LAUNCHES)
    return min(_timed_ms(call, launches) for _ in range(_TIMINGS))


def _results(contest: Contest, number: int, tensors: Tensors) -> list[torch.Tensor]:
    """Of one kernel: what it does not write is not a number."""
    outputs = [tensor for tensor in tensors[: contest.outputs] if tensor is not None]
    for output in outputs:
        output.fill_(torch.nan if output.is_floating_point() else -1)
    contest.run(number, tensors)
    return [output.clone() for output in outputs]


def _are_same(results: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> bool:
    same = []
    for result, wanted in zip(results, expected, strict=True):
        if result.is_floating_point():
            error = (result.float() - wanted.float()).abs().amax()
            same.append(error <= _TOLERANCE[result.dtype] * wanted.float().abs().amax())
        else:
            same.append((result == wanted).all())
    answer = torch.stack(same).all()
    _wait(_event())
    return bool(answer.item())


def hold(contest: Contest, store: Store, go_on: Callable[[], None] = lambda: None) -> Choice | None:
    """Times the kernels and remembers the fastest, unless none can be trusted. `go_on` raises Stopped to end it."""
    tensors = contest.scratch()
    contest.prepare(contest.reference, tensors)
    expected = _results(contest, contest.reference, tensors)
    _wait(_event())
    times: dict[str, float] = {}
    for kernel in contest.kernels:
        name = f"{contest.family}: {kernel.name}"
        if name in store.failed:
            continue
        go_on()
        with store.trying(name):
            try:
                contest.prepare(kernel.number, tensors)
                if _are_same(_results(contest, kernel.number, tensors), expected):
                    times[kernel.name] = fastest_ms(lambda number=kernel.number: contest.run(number, tensors))  # type: ignore[misc]
                else:
                    store.fail(name, f"its results differ from those of the reference, for {contest.text}")
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                store.fail(name, str(error))
                _event()  # raises if the device is lost: the others were not tried
    if not times:
        return None
    best = min(times, key=lambda name: times[name])
    choice = Choice(contest.text, next(k.number for k in contest.kernels if k.name == best), times)
    store.add(contest.key, choice)
    return choice
