"""`fully_shard` without a mesh: processes that have not used the device are sharded on the CPU, as without it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from torch.distributed import distributed_c10d
from torch.distributed.device_mesh import init_device_mesh

from torch_webgpu import device


def adapt(module: ModuleType) -> None:
    of_accelerator = module._init_default_mesh

    def default_mesh(mesh_dim_names: tuple[str, ...] | None = None) -> Any:
        if device.is_initialized():
            return of_accelerator(mesh_dim_names)
        if not distributed_c10d.is_initialized():
            distributed_c10d.init_process_group()
        size = distributed_c10d._get_default_group().size()
        return init_device_mesh("cpu", mesh_shape=(size,), mesh_dim_names=mesh_dim_names)

    module._init_default_mesh = default_mesh  # type: ignore[attr-defined]
