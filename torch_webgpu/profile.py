"""``torch.webgpu.profile``: what each kernel cost the device, and the host."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from torch_webgpu import _C

__all__ = ["Dispatch", "KernelRow", "profile"]


@dataclass(frozen=True)
class Dispatch:
    """One launch of a kernel. Times are in microseconds since the first dispatch."""

    kernel: str
    op: str  # the ATen operation that ran it; empty where it is not known
    grid: tuple[int, int, int]  # workgroups
    bytes: int | None  # bound by the kernel, where the launch knows it
    thread: int
    host_begin_us: float
    host_us: float  # to record it
    device_begin_us: float | None
    device_us: float | None


@dataclass(frozen=True)
class KernelRow:
    """All launches of one kernel by one operation."""

    kernel: str
    op: str
    calls: int
    total_us: float  # on the device; on the host where the device does not tell
    share: float  # of the total of all kernels
    host_us: float
    bytes: int | None
    gb_per_s: float | None

    @property
    def mean_us(self) -> float:
        return self.total_us / self.calls


class profile:
    """Times every kernel between entering and leaving::

        with torch.webgpu.profile() as p:
            model(x)
        p.export_chrome_trace("trace.json")  # for chrome://tracing or ui.perfetto.dev

    Prints a table on leaving, unless `show` is false; `kernels` and `dispatches` have the numbers. The adapter's
    timestamps are read around each dispatch, which then is a pass of its own: the whole takes longer than without. An
    adapter without timestamps leaves the host's times, and the table says so. Copies are not kernels and not in it.
    """

    def __init__(self, *, show: bool = True) -> None:
        self.show = show
        self.dispatches: list[Dispatch] = []
        self.has_device_times = False
        self._profile: _C.Profile | None = None

    def __enter__(self) -> profile:
        running = _C.Profile()
        running.start()
        self._profile = running
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        running, self._profile = self._profile, None
        if running is None:
            return
        try:
            running.stop()  # waits, so it may raise an error of what ran
        finally:
            self.has_device_times = running.has_device_times
            self.dispatches = _dispatches(running.rows)
        if self.show and kind is None:
            print(self.table())

    @property
    def kernels(self) -> list[KernelRow]:
        """A row for each kernel and operation, the most expensive first."""
        groups: dict[tuple[str, str], list[Dispatch]] = defaultdict(list)
        for dispatch in self.dispatches:
            groups[dispatch.kernel, dispatch.op].append(dispatch)
        totals = {key: sum(self._time(one) for one in group) for key, group in groups.items()}
        whole = sum(totals.values()) or 1.0
        rows = []
        for (kernel, op), group in groups.items():
            total = totals[kernel, op]
            sizes = [one.bytes for one in group if one.bytes is not None]
            known = sum(sizes) if len(sizes) == len(group) else None
            rate = known / total * 1e-3 if known is not None and self.has_device_times and total > 0 else None
            host = sum(one.host_us for one in group)
            rows.append(KernelRow(kernel, op, len(group), total, total / whole, host, known, rate))
        return sorted(rows, key=lambda row: -row.total_us)

    def _time(self, dispatch: Dispatch) -> float:
        return (dispatch.device_us or 0.0) if self.has_device_times else dispatch.host_us

    def table(self, rows: int = 30) -> str:
        """The most expensive kernels as text."""
        kernels = self.kernels
        where = "device" if self.has_device_times else "host"
        header = ("kernel", "op", "calls", f"{where} us", "mean us", "share", "MB", "GB/s")
        body = [
            (
                row.kernel,
                row.op.removeprefix("aten::"),
                str(row.calls),
                f"{row.total_us:.1f}",
                f"{row.mean_us:.1f}",
                f"{100 * row.share:.1f}%",
                "" if row.bytes is None else f"{row.bytes / 1e6:.1f}",
                "" if row.gb_per_s is None else f"{row.gb_per_s:.1f}",
            )
            for row in kernels[:rows]
        ]
        lines = _aligned([header, *body])
        if len(kernels) > rows:
            lines.append(f"... and {len(kernels) - rows} more")
        total = sum(row.total_us for row in kernels)
        lines.append(f"{len(self.dispatches)} dispatches, {total / 1000:.3f} ms on the {where}")
        if self.dispatches and not self.has_device_times:
            lines.append("the adapter has no timestamps: these are the host's times to record each dispatch")
        return "\n".join(lines)

    def export_chrome_trace(self, path: str | Path) -> None:
        """Writes the dispatches as JSON for chrome://tracing or ui.perfetto.dev."""
        device, host = 1, 0
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": device, "args": {"name": "webgpu:0"}},
            {"ph": "M", "name": "process_name", "pid": host, "args": {"name": "host"}},
        ]
        threads: dict[int, int] = {}
        for number, one in enumerate(self.dispatches):
            thread = threads.setdefault(one.thread, len(threads))
            arguments: dict[str, Any] = {"op": one.op, "grid": list(one.grid)}
            if one.bytes is not None:
                arguments["bytes"] = one.bytes
            common = {"ph": "X", "name": one.kernel, "args": arguments}
            events.append(common | {"pid": host, "tid": thread, "ts": one.host_begin_us, "dur": one.host_us})
            if one.device_begin_us is None or one.device_us is None:
                continue
            events.append(common | {"pid": device, "tid": 0, "ts": one.device_begin_us, "dur": one.device_us})
            flow = {"name": "dispatch", "cat": "dispatch", "id": number}
            events.append(flow | {"ph": "s", "pid": host, "tid": thread, "ts": one.host_begin_us})
            events.append(flow | {"ph": "f", "bp": "e", "pid": device, "tid": 0, "ts": one.device_begin_us})
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))


def _dispatches(rows: Sequence[Any]) -> list[Dispatch]:
    start = min((row[5] for row in rows), default=0)
    return [
        Dispatch(
            kernel=kernel,
            op=op,
            grid=grid,
            bytes=size or None,
            thread=thread,
            host_begin_us=(host_begin - start) / 1000,
            host_us=host / 1000,
            device_begin_us=(device_begin - start) / 1000 if device >= 0 else None,
            device_us=device / 1000 if device >= 0 else None,
        )
        for kernel, op, grid, size, thread, host_begin, host, device_begin, device in rows
    ]


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Two columns of text to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
