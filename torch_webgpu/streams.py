"""Streams as ``torch.cuda`` names them. The device has one, so selecting a stream checks it and changes nothing."""

from __future__ import annotations

from types import TracebackType

import torch


def set_stream(stream: torch.Stream | None) -> None:
    if stream is None:
        return
    if stream.device.type != "webgpu":
        raise ValueError(f"expected a stream of webgpu, but got one of {stream.device}")
    torch.accelerator.set_stream(stream)


class StreamContext:
    """Context manager that selects a stream; None leaves the current one."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        set_stream(self.stream)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


def stream(stream: torch.Stream | None) -> StreamContext:
    return StreamContext(stream)
