"""`safe_open` and `load_file` with device="webgpu": safetensors has a closed list; what is read on the CPU is moved."""

from __future__ import annotations

from types import ModuleType, TracebackType
from typing import Any

import torch


class _Slice:
    def __init__(self, part: Any, device: torch.device) -> None:
        self._part, self._device = part, device

    def __getitem__(self, index: Any) -> torch.Tensor:
        return self._part[index].to(self._device)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


class _File:
    def __init__(self, file: Any, device: torch.device) -> None:
        self._file, self._device = file, device

    def get_tensor(self, name: str) -> torch.Tensor:
        return self._file.get_tensor(name).to(self._device)

    def get_tensors(self) -> dict[str, torch.Tensor]:
        return {name: tensor.to(self._device) for name, tensor in self._file.get_tensors().items()}

    def get_slice(self, name: str) -> _Slice:
        return _Slice(self._file.get_slice(name), self._device)

    def __enter__(self) -> _File:
        self._file.__enter__()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> Any:
        return self._file.__exit__(kind, error, trace)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def adapt(module: ModuleType) -> None:
    original = module.safe_open

    def safe_open(filename: Any, framework: str, device: Any = "cpu", **options: Any) -> Any:
        if isinstance(device, int) and not torch.cuda.is_available():
            device = torch.device(device)  # of the accelerator
        if not str(device).startswith("webgpu"):
            return original(filename, framework, device=device, **options)
        return _File(original(filename, framework, device="cpu", **options), torch.device(device))

    module.safe_open = safe_open  # type: ignore[attr-defined]
