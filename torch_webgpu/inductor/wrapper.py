"""The generated module: how it gets memory, launches kernels, and what it hands over."""

from __future__ import annotations

from typing import Any

from torch._inductor import config, ir
from torch._inductor.codegen.wrapper import PythonWrapperCodegen, SubgraphPythonWrapperCodegen
from torch._inductor.virtualized import V

from torch_webgpu.inductor.memory import begins_its_storage

# Ops whose kernels launch on the device and do nothing else.
OWN_NAMESPACES = ("aten::", "prims::", "inductor::")


# Without its types: a cached method has one that no method of a subclass has.
_Wrapper: Any = PythonWrapperCodegen


class _WebGPUCalls(_Wrapper):
    """What differs from the wrapper of other devices, for graphs and subgraphs."""

    def write_triton_header_once(self) -> None:
        pass

    def generate_and_run_autotune_block(self) -> None:
        pass

    def _generate_kernel_call_helper(self, kernel_name: str, call_args: Any, **kwargs: Any) -> None:
        if kwargs.get("triton", True):
            raise NotImplementedError(f"{kernel_name}: Triton kernels do not run on webgpu")
        self.writeline(self.wrap_kernel_call(kernel_name, call_args))

    def can_reuse(self, input_buffer: Any, output_buffer: Any = None) -> bool:
        """Kernels are printed for outputs that begin where their memory does."""
        begins = begins_its_storage(input_buffer.get_name())
        return begins and super().can_reuse(input_buffer, output_buffer)


_SubgraphWrapper: Any = SubgraphPythonWrapperCodegen


class WebGPUSubgraphWrapper(_WebGPUCalls, _SubgraphWrapper):
    pass


class WebGPUWrapper(_WebGPUCalls):
    @classmethod
    def create(
        cls, is_subgraph: bool, subgraph_name: Any, parent_wrapper: Any, partition_signatures: Any = None
    ) -> Any:
        if is_subgraph:
            return WebGPUSubgraphWrapper(subgraph_name, parent_wrapper, partition_signatures)
        return cls()

    def write_header(self) -> None:
        super().write_header()
        self.imports.writeline("from torch_webgpu.inductor import runtime as webgpu_runtime")

    def generate_end(self, result: Any) -> None:
        super().generate_end(result)
        # What mode="reduce-overhead" means by CUDA graphs.
        fixed = bool(config.triton.cudagraphs)
        result.writeline(f"call = webgpu_runtime.taped(call, tapeable={is_tapeable()}, fixed={fixed})")


def is_tapeable() -> bool:
    """Whether all that a call does is launches on the device: no CPU tensors, and no ops of other libraries."""
    graph = V.graph
    places: list[Any] = [*graph.graph_inputs.values(), *graph.buffers, *graph.constants.values()]
    for place in places:
        of_graph = isinstance(place, (ir.TensorBox, ir.Buffer))
        device = place.get_device() if of_graph else getattr(place, "device", None)
        if device is not None and device.type != "webgpu":
            return False
    names = [getattr(getattr(op, "op_overload", None), "_name", "aten::") for op in graph.operations]
    return all(str(name).startswith(OWN_NAMESPACES) for name in names)
