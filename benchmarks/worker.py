"""Measures one row in this process, whose environment the runner has set: python -m benchmarks.worker NAME ROUNDS."""

from __future__ import annotations

import dataclasses
import gc
import json
import sys

import torch

from benchmarks import compile_time, compiled, host, throughput
from benchmarks.row import Result

ROWS = (*host.ROWS, *throughput.ROWS, *compiled.ROWS, *compile_time.ROWS)


def main(name: str, rounds: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    gc.disable()
    try:
        result = row.measure(int(rounds))
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        result = Result(error=f"{type(error).__name__}: {' '.join(lines[:3])}")
    if torch.webgpu.is_initialized():
        properties = torch.webgpu.get_device_properties()
        result.adapter, result.runtime = properties.name, properties.runtime
    print(json.dumps(dataclasses.asdict(result)))


if __name__ == "__main__":
    main(*sys.argv[1:])
