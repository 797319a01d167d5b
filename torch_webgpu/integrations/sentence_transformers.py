"""Sentence Transformers: the device of a model that is given none."""

from __future__ import annotations

from types import ModuleType

from torch_webgpu import device


def adapt(module: ModuleType) -> None:
    original = module.get_device_name

    def get_device_name() -> str:
        found = original()
        return "webgpu" if found == "cpu" and device.is_available() else found

    module.get_device_name = get_device_name  # type: ignore[attr-defined]
