"""``torch.webgpu``: what ``torch.cuda`` is for CUDA, as far as WebGPU has it."""

from __future__ import annotations

import atexit
import importlib
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch

from torch_webgpu import _C, memory
from torch_webgpu.profile import profile
from torch_webgpu.shader import compile_shader
from torch_webgpu.streams import StreamContext, set_stream, stream

__all__ = [
    "DeviceProperties",
    "Event",
    "Stream",
    "StreamContext",
    "can_device_access_peer",
    "compile_shader",
    "cpu_fallbacks",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "profile",
    "reset_accumulated_memory_stats",
    "reset_cpu_fallbacks",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_fallback_mode",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
    "unavailable_reason",
]

DeviceLike = torch.device | str | int | None


@dataclass(frozen=True)
class DeviceProperties:
    """The adapter, the driver and the WebGPU runtime behind ``webgpu:0``."""

    name: str
    vendor: str
    architecture: str
    driver: str
    backend: str
    type: str
    runtime: str
    library: str
    subgroup_sizes: tuple[int, int]
    features: tuple[str, ...]
    limits: dict[str, int]


def _index(device: DeviceLike) -> int:
    """The ordinal a caller named; there is one device."""
    if device is None:
        return 0
    index = device if isinstance(device, int) else torch.device(device).index or 0
    if not isinstance(device, int) and torch.device(device).type != "webgpu":
        raise ValueError(f"expected a webgpu device, but got {device}")
    if index != 0:
        raise RuntimeError(f"webgpu: invalid device ordinal {index}: there is one device, webgpu:0")
    return index


# Availability


def is_available() -> bool:
    """Whether a WebGPU library and an adapter answer. Looks once; opens no device."""
    return _C.is_available()


def unavailable_reason() -> str:
    """What was tried and what to install, or an empty string when a device is available."""
    return _C.unavailable_reason()


def init() -> None:
    """Opens the device, which the first tensor would do otherwise."""
    _C.device_properties()


def is_initialized() -> bool:
    return _C.is_open()


@atexit.register
def _let_autograd_finish() -> None:
    """Autograd's thread lets go of a Python object just after backward() has returned; an interpreter that is already
    on its way out would abort there."""
    if _C.is_open():
        time.sleep(0.01)


def _is_in_bad_fork() -> bool:
    return _C.in_bad_fork()


def device_count() -> int:
    return int(is_available())


def current_device() -> int:
    return 0


def set_device(device: DeviceLike) -> None:
    _index(device)


class device:
    """Context manager that selects a device; there is one."""

    def __init__(self, device: DeviceLike) -> None:
        self.idx = _index(device)

    def __enter__(self) -> device:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


class device_of(device):
    """Context manager that selects the device of a tensor or storage; a CPU one changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.device.type == "webgpu" else None)


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    _index(device)
    _index(peer_device)
    return False


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    _index(device)
    properties: dict[str, Any] = dict(_C.device_properties())
    properties["features"] = tuple(properties["features"])
    return DeviceProperties(**properties)


def get_device_name(device: DeviceLike = None) -> str:
    return get_device_properties(device).name


def get_device_capability(device: DeviceLike = None) -> dict[str, Any]:
    """What the adapter can do: WebGPU has features and limits instead of CUDA's two numbers."""
    properties = get_device_properties(device)
    return {"features": properties.features, "limits": properties.limits, "subgroup_sizes": properties.subgroup_sizes}


def is_bf16_supported() -> bool:
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16]


# Streams and events


def synchronize(device: DeviceLike = None) -> None:
    """Waits until everything given to the device is done, and raises what went wrong there."""
    _index(device)
    _C.synchronize()


# Not subclasses: elapsed_time() and record_event() take exactly these. Both default to the accelerator, webgpu.
Stream = torch.Stream
Event = torch.Event


def current_stream(device: DeviceLike = None) -> torch.Stream:
    return torch.accelerator.current_stream(_index(device))


def default_stream(device: DeviceLike = None) -> torch.Stream:
    return current_stream(device)


# Memory


def memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """Bytes of memory, and counters of dispatches, submits, bind groups, kernels and buffers."""
    _index(device)
    return _C.counters()


def memory_allocated(device: DeviceLike = None) -> int:
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: DeviceLike = None) -> int:
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: DeviceLike = None) -> int:
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: DeviceLike = None) -> int:
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    _index(device)
    _C.reset_peak_memory_stats()


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    _index(device)
    _C.reset_accumulated_memory_stats()


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Free and total bytes: the host's, for an adapter that shares its memory. WebGPU tells no other."""
    _index(device)
    return _C.mem_get_info()


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """A table for people of what `memory_stats` counts."""
    return memory.summary(memory_stats(device), abbreviated)


def memory_snapshot(device: DeviceLike = None) -> list[dict[str, Any]]:
    return memory.snapshot(memory_stats(device))


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Tensors beyond this part of the memory that `mem_get_info` tells raise `torch.OutOfMemoryError`; 1 lifts it."""
    memory.set_fraction(fraction, mem_get_info(device)[1])


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    _index(device)
    return memory.fraction()


def ipc_collect() -> None:
    """Nothing: WebGPU shares no memory between processes."""


def empty_cache() -> None:
    """Gives buffers that no tensor uses back to the driver."""
    _C.empty_cache()


# Random numbers

_generators: tuple[torch.Generator, ...] = ()
_generators_lock = threading.Lock()


def _default_generator() -> torch.Generator:
    global _generators
    with _generators_lock:
        if not _generators:
            _generators = (_C.default_generator(),)
    return _generators[0]


def _get_generator(device: torch.device) -> torch.Generator:
    """Under the name by which AOTAutograd asks every device."""
    return _default_generator()


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return (_default_generator(),)
    if name == "amp":
        return importlib.import_module("torch_webgpu.amp")
    if name.endswith("Tensor"):
        types = importlib.import_module("torch_webgpu.typed").TYPES
        if name in types:
            return types[name]
    if name == "_initialized":  # torch.utils.checkpoint keeps the state of a device that is
        return is_initialized()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def manual_seed(seed: int) -> None:
    _default_generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    manual_seed(seed)


def seed() -> int:
    return _default_generator().seed()


def seed_all() -> None:
    seed()


def initial_seed() -> int:
    return _default_generator().initial_seed()


def get_rng_state(device: DeviceLike = None) -> torch.Tensor:
    _index(device)
    return _default_generator().get_state()


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = None) -> None:
    _index(device)
    _default_generator().set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state()]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


# Ops that ran on the CPU


def cpu_fallbacks() -> dict[str, int]:
    """How often each op without a kernel of its own ran on the CPU in this process."""
    return _C.fallback_counts()


def reset_cpu_fallbacks() -> None:
    _C.reset_fallback_counts()


def set_fallback_mode(mode: str) -> str:
    """``error`` forbids such ops, ``warn`` warns once per op, ``quiet`` only counts. Returns the mode before."""
    before = _C.fallback_mode()
    _C.set_fallback_mode(mode)
    return before
