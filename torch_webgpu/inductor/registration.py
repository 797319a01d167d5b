"""Makes Inductor know the device. Each patch names what it replaces, and changes nothing for other devices."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import torch
from torch._inductor import choices, compile_fx, config, decomposition, ir, lowering, scheduler, utils
from torch._inductor.codegen.common import register_backend_for_device, register_device_op_overrides
from torch._inductor.runtime import benchmarking
from torch._inductor.utils import sympy_product
from torch._inductor.virtualized import V

from torch_webgpu import device
from torch_webgpu.inductor import attention, doubles, eager, flex, launch, lowerings, templates
from torch_webgpu.inductor.device_ops import CacheKey, WebGPUOps
from torch_webgpu.inductor.scheduling import WebGPUScheduling
from torch_webgpu.inductor.wrapper import WebGPUWrapper

aten = torch.ops.aten

# Ops that their decomposition would compute in float64.
UNDECOMPOSED = [
    overload
    for overload in (getattr(aten.logspace, name) for name in aten.logspace.overloads())
    if overload in decomposition.decompositions
]


def register() -> None:
    register_backend_for_device("webgpu", WebGPUScheduling, WebGPUWrapper, device_custom_pass=CacheKey())
    register_device_op_overrides("webgpu", WebGPUOps())
    templates.register()
    attention.register()
    flex.register()
    # Inductor asks this list whether a device has kernels, and whether numbers on the CPU may enter them.
    if "webgpu" not in utils.GPU_TYPES:
        utils.GPU_TYPES.append("webgpu")
    benchmarking.register_benchmarker("webgpu", benchmark, override=True)
    _patch(scheduler.Scheduler, "create_backend", _create_backend)
    _patch(lowering, "unsupported_input_tensor", _unsupported_input_tensor)
    _patch(compile_fx, "get_input_idxs_to_check", _get_input_idxs_to_check)
    _patch(compile_fx._InProcessFxCompile, "codegen_and_compile", _codegen_and_compile)
    _patch(compile_fx, "joint_graph_passes", doubles.joint_graph_passes)
    for overload in UNDECOMPOSED:
        decomposition.decompositions[overload] = _keep_on_webgpu(decomposition.decompositions[overload])
        lowering.make_fallback(overload, warn=False, override_decomp=True)
    decomposition.fast_random_decomps.cache_clear()
    _patch(lowering, "pointwise_cat", _pointwise_cat)
    _patch(ir.ConcatKernel, "create", _concat)
    _patch(lowering, "_make_reduction_inner", lowerings.make_reduction_inner)
    _patch(ir.StorageBox, "has_exceeded_max_reads", _has_exceeded_max_reads)
    _patch(ir.Scan, "create", lowerings.scan)
    _patch(ir.Scan, "num_splits", lowerings.scan_splits)
    _patch(ir.Sort, "create", lowerings.sort)
    _patch(lowering, "index_put_impl_", lowerings.index_put)
    _wrap("scatter_reduce_", lowerings.scatter_reduce)
    _wrap("logcumsumexp", lowerings.logcumsumexp)
    _patch(choices.InductorChoices, "reduction_split_factor", lowerings.parts_of_columns)


def _patch(owner: Any, name: str, replacement: Callable[..., Any]) -> None:
    """Replaces a function by one that gets the original as its first argument."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def patched(*args: Any, **kwargs: Any) -> Any:
        return replacement(original, *args, **kwargs)

    is_static = isinstance(vars(owner).get(name), staticmethod)
    setattr(owner, name, staticmethod(patched) if is_static else patched)


def _wrap(name: str, replacement: Callable[..., Any]) -> None:
    """The same for a lowering, which graphs and other lowerings call."""
    original = getattr(lowering, name)
    _patch(lowering, name, replacement)
    for op, function in lowering.lowerings.items():
        if function is original:
            lowering.lowerings[op] = getattr(lowering, name)


def _create_backend(original: Callable[..., Any], self: Any, place: torch.device) -> Any:
    """The original raises TritonMissing for every GPU that is not MPS."""
    if place.type != "webgpu":
        return original(self, place)
    V.graph.add_device_info(place)
    return WebGPUScheduling(self)


def _unsupported_input_tensor(original: Callable[..., bool], t: torch.Tensor, node: Any = None) -> bool:
    """What no kernel of ours can have as an operand runs as the eager op: decided before lowering, since what a code
    generator lacks is an error of compilation."""
    if t.device.type == "webgpu" and eager.refuses(t, getattr(node, "target", None)):
        return True
    return original(t, node)


def _get_input_idxs_to_check(original: Callable[..., Any], inputs: Any, static_input_idxs: Any) -> Any:
    """Inputs need no alignment beyond their elements': none of ours is to be copied for it."""
    others = [None if isinstance(x, torch.Tensor) and x.device.type == "webgpu" else x for x in inputs]
    return original(others, static_input_idxs)


def _keep_on_webgpu(decompose: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition that other devices have and ours has not."""

    @functools.wraps(decompose)
    def decide(*args: Any, **kwargs: Any) -> Any:
        if torch.device(kwargs.get("device") or "cpu").type == "webgpu":
            return NotImplemented
        return decompose(*args, **kwargs)

    return decide


def _has_webgpu(gm: torch.fx.GraphModule, inputs: Any) -> bool:
    if any(isinstance(x, torch.Tensor) and x.device.type == "webgpu" for x in inputs):
        return True
    values = (node.meta.get("val") for node in gm.graph.nodes)
    return any(isinstance(value, torch.Tensor) and value.device.type == "webgpu" for value in values)


def graph_options() -> dict[str, Any]:
    """Inductor's options for graphs of the device."""
    return {
        # Convolutions prefer the layout they are given; the heuristic behind this was measured on CUDA.
        "layout_optimization": False,
        # Strides that are rounded up would make contiguous intermediates strided.
        "comprehensive_padding": False,
        # Each input of a cat may read several buffers.
        "max_pointwise_cat_inputs": max(2, launch.most_bindings() // 3),
        # A tape plans its memory itself, after it has put launches side by side: what shares memory cannot be.
        "allow_buffer_reuse": False,
        # The parts of a graph that CUDA graphs would take each; a tape takes all of it.
        "graph_partition": False,
        # A lane walks a short row; an unrolled one would be a kernel for each step of a softmax.
        "unroll_reductions_threshold": 1,
        "triton.autotune_at_compile_time": False,
    }


def _codegen_and_compile(
    original: Callable[..., Any], self: Any, gm: Any, example_inputs: Any, *args: Any, **kwargs: Any
) -> Any:
    if not _has_webgpu(gm, example_inputs):
        return original(self, gm, example_inputs, *args, **kwargs)
    with config.patch(graph_options()):
        return eager.until_printable(lambda: original(self, gm, example_inputs, *args, **kwargs))


def _has_exceeded_max_reads(original: Callable[..., bool], self: Any) -> bool:
    """An expression that reads many buffers is stored before it grows beyond what an adapter binds: three of them may
    still meet in one op."""
    place = self.get_device()
    if place is not None and place.type == "webgpu" and isinstance(self.data, ir.Pointwise):
        return len(self.get_read_names()) > (launch.most_bindings() - 1) // 3 or original(self)
    return original(self)


def _pointwise_cat(original: Callable[..., Any], inputs: Any, dim: int = 0) -> Any:
    """One kernel that reads the sources of all inputs, where it can bind them; else each is written to its place."""
    sources = {name for x in inputs for name in x.get_read_names()}
    if inputs[0].get_device().type == "webgpu" and len(sources) >= launch.most_bindings():
        return ir.TensorBox(ir.ConcatKernel.create(inputs, dim))
    return original(inputs, dim)


# Results of so few elements are written by kernels of several inputs each, whose launches would take longer.
_SMALL_CAT = 1 << 16


def _concat(original: Callable[..., Any], inputs: Any, dim: int) -> Any:
    """Where each input would be a kernel of its own: neighbours together, as many as can be bound."""
    size = sum(sympy_product(x.get_size()) for x in inputs)
    if inputs[0].get_device().type != "webgpu" or not V.graph.sizevars.statically_known_leq(size, _SMALL_CAT):
        return original(inputs, dim)
    groups: list[list[Any]] = []
    names: set[str] = set()
    for x in inputs:
        fresh = names | set(x.get_read_names())
        if groups and _is_read(x) and _is_read(groups[-1][0]) and len(fresh) < launch.most_bindings():
            groups[-1].append(x)
            names = fresh
        else:
            groups.append([x])
            names = set(x.get_read_names())
    joined = [group[0] if len(group) == 1 else lowering.pointwise_cat(group, dim) for group in groups]
    return joined[0].data if len(joined) == 1 else original(joined, dim)


def _is_read(x: Any) -> bool:
    """Whether an input is made of what is there, and not by a kernel that can write it to its place."""
    while isinstance(x, (ir.TensorBox, ir.StorageBox, ir.BaseView)):
        x = x.data
    return isinstance(x, (ir.Pointwise, ir.InputBuffer))


def benchmark(self: Any, function: Callable[[], Any], *, warmup: int = 1, rep: int = 5, **_: Any) -> float:
    """Milliseconds of a call. Each is waited for: a queue that only grows would run out of memory."""
    times = []
    synchronize = device.synchronize
    for _i in range(min(max(warmup, 1), 3) + min(max(rep, 1), 10)):
        synchronize()
        start = time.perf_counter()
        function()
        synchronize()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)
