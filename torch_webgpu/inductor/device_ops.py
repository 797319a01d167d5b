"""What Inductor asks of a device beside kernels: lines of the generated module, and a key for its cache."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch
from torch._inductor.codegen.common import DeviceOpOverrides
from torch._inductor.custom_graph_pass import CustomGraphModulePass

from torch_webgpu import _C


class WebGPUOps(DeviceOpOverrides):
    """Lines of the generated module that other devices need: there is one device, and one stream."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"def {name}(_):\n    return 0\n"

    def set_device(self, device_idx: int) -> str:
        return "pass"

    def synchronize(self) -> str:
        return "torch.webgpu.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return "torch._ops.contextlib.nullcontext()"


class CacheKey(CustomGraphModulePass):
    """Changes nothing. Its uuid enters the key of Inductor's cache of graphs, which knows neither this code generator
    nor the adapter: a kernel that was printed by other sources or for another adapter must not be served."""

    def __call__(self, gm: torch.fx.GraphModule) -> None:
        pass

    def uuid(self) -> str:
        return cache_key()


def cache_key() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    # The extension embeds wgsl/: its file's time and size change with them.
    extension = Path(_C.__file__ or "")
    if extension.exists():
        state = extension.stat()
        digest.update(f"{state.st_size} {state.st_mtime_ns}".encode())
    adapter = {key: value for key, value in _C.device_properties().items() if key != "library"}
    digest.update(json.dumps([adapter, _C.target()], sort_keys=True, default=str).encode())
    return digest.hexdigest()
