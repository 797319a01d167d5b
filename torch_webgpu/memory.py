"""Reports of device memory in the forms of ``torch.cuda``."""

from __future__ import annotations

from typing import Any

from torch_webgpu import _C

_ROWS = (
    ("allocated", "allocated_bytes.all.current", "allocated_bytes.all.peak"),
    ("reserved", "reserved_bytes.all.current", "reserved_bytes.all.peak"),
)
_COUNTERS = (
    ("tensors' buffers", "allocation.all.current"),
    ("buffers created", "buffers_created"),
    ("retries after the pool was emptied", "num_alloc_retries"),
    ("out of memory", "num_ooms"),
)


def _size(count: int) -> str:
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


def summary(counters: dict[str, int], abbreviated: bool) -> str:
    lines = [f"{'webgpu:0':<36}{'now':>12}{'peak':>12}"]
    for name, now, peak in _ROWS:
        lines.append(f"{name:<36}{_size(counters.get(now, 0)):>12}{_size(counters.get(peak, 0)):>12}")
    if not abbreviated:
        lines += [f"{name:<36}{counters.get(key, 0):>12}" for name, key in _COUNTERS]
    return "\n".join(lines)


def snapshot(counters: dict[str, int]) -> list[dict[str, Any]]:
    """One segment for the whole pool: a buffer belongs to one tensor's storage, so there are no blocks to tell."""
    allocated, reserved = counters.get("allocated_bytes.all.current", 0), counters.get("reserved_bytes.all.current", 0)
    if not reserved:
        return []
    free = reserved - allocated
    blocks = [(allocated, "active_allocated"), (free, "inactive")]
    return [
        {
            "device": 0,
            "address": 0,
            "total_size": reserved,
            "allocated_size": allocated,
            "active_size": allocated,
            "requested_size": allocated,
            "stream": 0,
            "segment_type": "large",
            "blocks": [{"size": size, "state": state} for size, state in blocks if size],
        }
    ]


_fraction = 1.0


def set_fraction(fraction: float, total: int) -> None:
    global _fraction
    if not 0 <= fraction <= 1:
        raise ValueError(f"invalid fraction {fraction}: it must be between 0 and 1")
    _C.set_memory_limit(max(1, int(fraction * total)) if fraction < 1 else 0)  # 0 is no limit
    _fraction = fraction


def fraction() -> float:
    return _fraction
