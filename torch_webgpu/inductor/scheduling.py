"""What Inductor may fuse for the device, and how a finished kernel enters the generated module."""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch._inductor import config
from torch._inductor.codegen.common import BackendFeature
from torch._inductor.codegen.simd import SIMDScheduling
from torch._inductor.utils import get_fused_kernel_name
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from torch_webgpu.inductor import launch
from torch_webgpu.inductor.kernel import WebGPUKernel
from torch_webgpu.inductor.origins import comment
from torch_webgpu.inductor.pages import pages_of


def hidden_bindings(node: Any) -> int:
    """What a template's kernel binds beside the buffers of the graph."""
    return getattr(node.get_template_node(), "hidden_bindings", 0) if node.is_template() else 0


class WebGPUScheduling(SIMDScheduling):
    kernel_type = WebGPUKernel

    @classmethod
    def get_backend_features(cls, device: torch.device) -> OrderedSet[BackendFeature]:
        """Scans and sorts of long rows are eager's kernels all the same (`lowerings.scan`)."""
        return OrderedSet([BackendFeature.INPLACE_BUFFERS, BackendFeature.SCAN, BackendFeature.SORT,
                           BackendFeature.TUPLE_REDUCTION])  # fmt: skip

    def can_fuse(self, node1: Any, node2: Any) -> bool:
        """Not more buffers than an adapter binds, nor two reductions over different rows."""
        if self._binds_too_many(node1, node2) and self._binds_too_many(node2, node1):
            return False
        if node1.is_reduction() and node2.is_reduction() and node1.group[1] != node2.group[1]:
            return False
        return super().can_fuse(node1, node2)

    def _binds_too_many(self, first: Any, second: Any) -> bool:
        """Counts right for nodes in the order in which they run; the other order counts what stays inside too. A buffer
        that is changed in place has several names."""
        scheduler: Any = self.scheduler
        of_first, of_second = first.read_writes, second.read_writes
        passed_on = {dep.name for dep in of_first.writes} & {dep.name for dep in of_second.reads}
        read = {dep.name for part in (of_first, of_second) for dep in part.reads} - passed_on
        fused = OrderedSet(node.get_name() for part in (first, second) for node in part.get_nodes())
        written = {
            dep.name
            for part in (of_first, of_second)
            for dep in part.writes
            if not scheduler.can_buffer_be_removed_through_fusion(dep.name, fused)
        }
        pages = {scheduler.mutation_real_name.get(name, name): pages_of(name) for name in read | written}
        most = launch.most_bindings() - hidden_bindings(first) - hidden_bindings(second)
        return sum(pages.values()) > most

    can_fuse_vertical = can_fuse
    can_fuse_horizontal = can_fuse

    @classmethod
    def select_tiling(cls, node_schedule: Any, numel: Any, reduction_numel: Any = sympy.S.One, *_: Any) -> Any:
        """Elements have one running number, from which an index takes its dimensions."""
        return cls.create_tiling([numel], [reduction_numel])

    @classmethod
    def get_tiling_and_scores(cls, node_schedule: Any, numel: Any, reduction_numel: Any = sympy.S.One, *_: Any) -> Any:
        return cls.create_tiling([numel], [reduction_numel]), None

    def define_kernel(self, src_code: str, node_schedule: Any, kernel: WebGPUKernel) -> str:
        wrapper = V.graph.wrapper_code
        key = kernel.definition("", src_code)
        if key in wrapper.src_to_kernel:
            return wrapper.src_to_kernel[key]
        label = get_fused_kernel_name(node_schedule, config.triton.descriptive_names)
        name = f"webgpu_{label}_{wrapper.next_kernel_suffix()}"
        wrapper.src_to_kernel[key] = name
        wrapper.define_kernel(name, kernel.definition(label, src_code), comment(node_schedule, wrapper), gpu=False)
        return name
