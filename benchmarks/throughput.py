"""Times a workload on the device and on the CPU in turns, in one process, and checks that both say the same."""

from __future__ import annotations

import copy
import functools
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from benchmarks.row import Bar, Result, Row
from benchmarks.workloads import WORKLOADS, Inputs, Workload

ROUND_SECONDS = 0.02
MOST_CALLS = 500

# OpenMP's threads spin for some milliseconds after the CPU's work; meanwhile the driver would have one core less.
SETTLE_SECONDS = 0.01


def on(device: str, inputs: Inputs) -> Inputs:
    return tuple((copy.deepcopy(x) if isinstance(x, nn.Module) else x).to(device) for x in inputs)


def timed(call: Callable[[], Any], calls: int = 1) -> float:
    """Seconds of one call, each of which makes its own output."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def calls_per_round(call: Callable[[], Any]) -> int:
    once = min(timed(call) for _ in range(3))
    return min(MOST_CALLS, max(1, math.ceil(ROUND_SECONDS / once)))


def compare(workload: Workload, rounds: int) -> Result:
    torch.manual_seed(0)
    inputs = workload.inputs()
    on_cpu = functools.partial(workload.run, *inputs)
    there = on("webgpu", inputs)

    def on_device() -> torch.Tensor:
        made = workload.run(*there)
        torch.webgpu.synchronize()
        return made

    torch.webgpu.synchronize()
    torch.webgpu.reset_cpu_fallbacks()

    result = Result()
    result.first_call_ms = timed(on_device) * 1e3
    result.fallbacks = sorted(torch.webgpu.cpu_fallbacks())
    torch.testing.assert_close(on_device().cpu(), on_cpu(), rtol=1e-3, atol=1e-3)

    cpu_calls, device_calls = calls_per_round(on_cpu), calls_per_round(on_device)
    cpu, device = [], []
    for _ in range(rounds):
        cpu.append(timed(on_cpu, cpu_calls))
        time.sleep(SETTLE_SECONDS)
        device.append(timed(on_device, device_calls))
    result.cpu_ms, result.device_ms = statistics.median(cpu) * 1e3, statistics.median(device) * 1e3
    result.value = result.device_ms / result.cpu_ms
    return result


@torch.no_grad()
def measure(rounds: int, workload: Workload) -> Result:
    try:
        return compare(workload, rounds)
    except NotImplementedError as error:
        return Result(missing=str(error).partition("\n")[0].partition(". ")[0])  # the rest lists dispatch keys


ROWS = tuple(
    Row(
        workload.name,
        "throughput",
        "x CPU",
        None if workload.bar is None else Bar(workload.bar),
        functools.partial(measure, workload=workload),
        {"TORCH_WEBGPU_FALLBACK": "quiet"},
    )
    for workload in WORKLOADS
)
