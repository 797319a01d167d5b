"""What an op costs the host: the Python call, the C++ call, a chain with its wait, and what a steady loop creates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch

import torch_webgpu
from benchmarks.row import Bar, Result, Row

ELEMENTS = 1000
ADDS = 500  # in one timing: long enough for the clock, short enough to be left alone once in a while
TIMINGS = 10  # in one round
CHAIN = 100


def operands() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(ELEMENTS, device="webgpu"), torch.ones(ELEMENTS, device="webgpu")


def best_add_us(rounds: int, clock: Callable[[], float]) -> float:
    """Microseconds of `a + b`, best of the rounds; the wait is not the host's work."""
    a, b = operands()
    best = math.inf
    for number in range(TIMINGS * rounds + 1):
        start = clock()
        for _ in range(ADDS):
            a + b
        spent = clock() - start
        torch.webgpu.synchronize()
        if number:  # the first one warms up
            best = min(best, spent)
    return best / ADDS * 1e6


def python_add(rounds: int) -> Result:
    return Result(best_add_us(rounds, time.perf_counter))


def python_add_cpu(rounds: int) -> Result:
    """Of this thread alone: the driver's threads share two cores with it."""
    return Result(best_add_us(rounds, time.thread_time))


def cpp_add(rounds: int) -> Result:
    return Result(min(torch_webgpu._C.time_add(ELEMENTS, 2000, True) for _ in range(rounds)))


def chain_with_wait(rounds: int) -> Result:
    a, b = operands()
    best = math.inf
    for number in range(TIMINGS * rounds + 3):
        start = time.perf_counter()
        x = a
        for _ in range(CHAIN):
            x = x + b
        torch.webgpu.synchronize()
        if number >= 3:  # three to warm up
            best = min(best, time.perf_counter() - start)
    return Result(best / CHAIN * 1e6)


def replayed(launches: int, rounds: int) -> float:
    """Microseconds of this thread for one replay of so many adds; the first call records."""

    def adds(arguments: list[torch.Tensor]) -> tuple[torch.Tensor]:
        a, b = arguments
        arguments.clear()
        for _ in range(launches):
            torch.add(a, b, out=a)
        return (a,)

    function = torch_webgpu._C.RecordedFunction(adds)
    a, b = operands()
    best = math.inf
    for number in range(TIMINGS * rounds + 1):
        start = time.thread_time()
        for _ in range(CHAIN):
            function([a, b])
        spent = time.thread_time() - start
        torch.webgpu.synchronize()
        if number:
            best = min(best, spent)
    assert not function.failures, function.failures
    return best / CHAIN * 1e6


def replayed_launch(rounds: int) -> Result:
    return Result((replayed(101, rounds) - replayed(1, rounds)) / 100)


def replayed_call(rounds: int) -> Result:
    """What a call costs beside its launches."""
    one = replayed(1, rounds)
    return Result(one - (replayed(101, rounds) - one) / 100)


def compiled_call(products: int, rounds: int) -> float:
    """Microseconds of this thread for one call of a compiled chain of products, with Dynamo's guards."""

    def chain_of(x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
        for weight in weights:
            x = torch.relu(x @ weight)
        return x

    torch._dynamo.reset()
    function = torch.compile(chain_of, backend="webgpu")
    x, *weights = (torch.randn(32, 32, device="webgpu") for _ in range(products + 1))
    best = math.inf
    with torch.no_grad():
        for number in range(TIMINGS * rounds + 3):
            start = time.thread_time()
            for _ in range(CHAIN):
                function(x, weights)
            spent = time.thread_time() - start
            torch.webgpu.synchronize()
            if number >= 3:  # compiled, recorded, and the tape's own kernels compiled
                best = min(best, spent)
    return best / CHAIN * 1e6


def compiled_kernel(rounds: int) -> Result:
    return Result((compiled_call(21, rounds) - compiled_call(1, rounds)) / 20)


def compiled_function(rounds: int) -> Result:
    return Result(compiled_call(1, rounds))


def steady_loop(rounds: int) -> dict[str, int]:
    """The counters' change over a training step's mix: several sizes, temporaries, a value read now and then."""
    weights = [torch.ones(size, device="webgpu") for size in (10, 1000, 1000, 40_000)]

    def steps(count: int) -> None:
        for number in range(count):
            for weight in weights:
                activation = (weight * 1.5 + 2).relu()
                weight.sub_(activation, alpha=1e-3)
            if number % 10 == 0:
                weights[0][0].item()

    steps(20)
    before = torch.webgpu.memory_stats()
    steps(20 * rounds)
    after = torch.webgpu.memory_stats()
    return {name: after[name] - before[name] for name in after}


def new_buffers(rounds: int) -> Result:
    return Result(steady_loop(rounds)["buffers_created"])


def bind_group_hits(rounds: int) -> Result:
    change = steady_loop(rounds)
    hits, misses = change["bind_group_hits"], change["bind_group_misses"]
    return Result(100 * hits / (hits + misses))


def _row(name: str, measure: Callable[[int], Result], bar: Bar, unit: str = "µs", **environment: str) -> Row:
    return Row(name, "host", unit, bar, measure, {"TORCH_WEBGPU_FALLBACK": "error", **environment})


def _rows_of(runtime: str) -> tuple[Row, ...]:
    here = {"TORCH_WEBGPU_RUNTIME": runtime}
    return (
        _row(f"a + b of 1k, thread CPU time, {runtime}", python_add_cpu, Bar(4.0), **here),
        _row(
            f"chain of {CHAIN} adds and a wait, per op, {runtime}", chain_with_wait, Bar(13), LP_NUM_THREADS="0", **here
        ),
        _row(f"steady loop, new buffers, {runtime}", new_buffers, Bar(0), "buffers", **here),
        _row(f"steady loop, bind group hits, {runtime}", bind_group_hits, Bar(95, at_least=True), "%", **here),
    )


_NULL = {"TORCH_WEBGPU_RUNTIME": "dawn", "TORCH_WEBGPU_ADAPTER": "null"}

ROWS = (
    _row("C++ add of 1k without GPU calls", cpp_add, Bar(1.0)),
    _row("a + b of 1k, dawn's Null backend", python_add, Bar(3.0), **_NULL),
    _row("replayed tape, per launch, dawn's Null backend", replayed_launch, Bar(1.0), **_NULL),
    _row("replayed tape, per call, dawn's Null backend", replayed_call, Bar(12.0), **_NULL),
    _row("compiled function, per kernel, dawn's Null backend", compiled_kernel, Bar(1.5), **_NULL),
    _row("compiled function of one kernel with its guards, dawn's Null backend", compiled_function, Bar(20), **_NULL),
    *_rows_of("dawn"),
    *_rows_of("wgpu"),
)
