"""Lightning's Trainer and Fabric: an accelerator of the name "webgpu", which "auto" and "gpu" take where there is no
other."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

from torch_webgpu import device


def _accelerator_class(base: Any) -> Any:
    class WebGPUAccelerator(base):
        def setup_device(self, chosen: torch.device) -> None:
            if chosen.type != "webgpu":
                raise ValueError(f"Device should be webgpu, got {chosen} instead.")

        def teardown(self) -> None:
            device.empty_cache()

        def get_device_stats(self, _: Any) -> dict[str, Any]:
            return dict(device.memory_stats())

        @staticmethod
        def parse_devices(devices: int | str | list[int]) -> list[int]:
            wanted = list(range(int(devices))) if isinstance(devices, (int, str)) else list(devices)
            if wanted not in ([0], [-1]) and devices not in (-1, "-1"):
                raise ValueError(f"devices={devices!r}: a process has one webgpu device")
            return [0]

        @staticmethod
        def get_parallel_devices(devices: Any) -> list[torch.device]:
            return [torch.device("webgpu", index) for index in WebGPUAccelerator.parse_devices(devices)]

        @staticmethod
        def auto_device_count() -> int:
            return 1

        @staticmethod
        def is_available() -> bool:
            return device.is_available()

        @staticmethod
        def name() -> str:
            return "webgpu"

    return WebGPUAccelerator


def adapt(module: ModuleType) -> None:
    """The module is the connector of pytorch_lightning, lightning.pytorch or one of their fabrics."""
    names = vars(module)
    registry = names.get("AcceleratorRegistry") or names["ACCELERATOR_REGISTRY"]
    connector: Any = names.get("_AcceleratorConnector") or names["_Connector"]
    accelerator = _accelerator_class(names["Accelerator"])
    registry.register("webgpu", accelerator, description="WebGPUAccelerator")

    choose_auto, choose_gpu = connector._choose_auto_accelerator, connector._choose_gpu_accelerator_backend
    choose_strategy, make_precision = connector._choose_strategy, connector._check_and_init_precision

    def on_webgpu(self: Any) -> bool:
        return self._accelerator_flag == "webgpu" or isinstance(self._accelerator_flag, accelerator)

    def auto() -> str:
        found = choose_auto()
        return "webgpu" if found == "cpu" and device.is_available() else found

    def gpu() -> str:
        try:
            return choose_gpu()
        except Exception:
            if device.is_available():
                return "webgpu"
            raise

    def strategy(self: Any) -> Any:
        if on_webgpu(self) and self._num_nodes_flag == 1:
            return names["SingleDeviceStrategy"](device=self._parallel_devices[0])
        return choose_strategy(self)

    def precision(self: Any) -> Any:
        made = make_precision(self)
        if on_webgpu(self) and type(made) is names["MixedPrecision"] and made.device == "cuda":
            return names["MixedPrecision"](made.precision, "webgpu")
        return made

    connector._choose_auto_accelerator = staticmethod(auto)
    connector._choose_gpu_accelerator_backend = staticmethod(gpu)
    connector._choose_strategy = strategy
    connector._check_and_init_precision = precision
