"""flex_attention: eager's kernels of attention, with the functions that change and hide scores as WGSL.

What the kernels do not take, and gradients of tensors that score_mod captures, is lowered as the products and sums that
flex_attention is without a compiler.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import sympy
import torch
from torch._inductor import ir
from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.codegen.simd_kernel_features import SIMDKernelFeatures
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.kernel.flex.common import build_subgraph_buffer, create_placeholder, infer_dense_strides
from torch._inductor.lowering import empty_strided, lowerings, process_subgraph_nodes
from torch._inductor.virtualized import OpsValue, V
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._ordered_set import OrderedSet
from torch.utils._pytree import tree_map
from torch.utils._sympy.value_ranges import ValueRanges

from torch_webgpu import _C
from torch_webgpu.inductor import launch
from torch_webgpu.inductor.kernel import WebGPUKernel, param
from torch_webgpu.inductor.memory import Accessors
from torch_webgpu.inductor.origins import comment
from torch_webgpu.inductor.values import as_compute

log = logging.getLogger(__name__)
aten, prims = torch.ops.aten, torch.ops.prims
hops = torch.ops.higher_order

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
LARGEST_HEAD = 256
ENDLESS = 1 << 30  # the size of a block where no mask is given
INDICES = ("b", "h", "m", "n")
# What the kernels bind without a mask and captured tensors; the forward's largest scores and the gradient of its
# log-sum-exp are one more. A binding's number has four bits, of which one value says that there is none.
FORWARD_BINDINGS, BACKWARD_BINDINGS, MOST_BINDINGS = 5, 8, 15


class Unsupported(Exception):
    """The reason why a call is lowered as plain products and sums."""


class BlockMask(NamedTuple):
    """The names of what BlockMask.as_tuple() gives."""

    query_length: Any
    key_length: Any
    kv_num_blocks: Any
    kv_indices: Any
    full_kv_num_blocks: Any
    full_kv_indices: Any
    q_num_blocks: Any
    q_indices: Any
    full_q_num_blocks: Any
    full_q_indices: Any
    dq_write_order: Any
    dq_write_order_full: Any
    dq_kv_order: Any
    dq_kv_order_spt: Any
    query_block: Any
    key_block: Any
    function: Any

    @property
    def block_sizes(self) -> list[int]:
        return [V.graph.sizevars.guard_int(size) for size in (self.query_block, self.key_block)]

    @property
    def is_trivial(self) -> bool:
        """Whether it is what flex_attention makes where no mask is given: one block without an end."""
        return all(size >= ENDLESS for size in self.block_sizes)

    def of_queries(self) -> list[Any]:
        return self._lists("kv")

    def of_keys(self) -> list[Any]:
        return self._lists("q")

    def _lists(self, side: str) -> list[Any]:
        if self.is_trivial:
            return []
        partial = [getattr(self, f"{side}_num_blocks"), getattr(self, f"{side}_indices")]
        whole = [getattr(self, f"full_{side}_num_blocks"), getattr(self, f"full_{side}_indices")]
        return partial if whole[0] is None else partial + whole


class ScoreKernel(WebGPUKernel):
    """Functions of one score: subgraphs of the user's, printed into one text with bindings of their own."""

    def __init__(self, bounds: dict[str, ValueRanges[Any]]) -> None:
        super().__init__({"x": sympy.S.One, "r0_": sympy.S.One}, features=SIMDKernelFeatures([], sympy.S.One))
        self.bounds = bounds
        self.given: dict[str, Any] = {}
        self.functions: list[tuple[str, str]] = []

    def load(self, name: str, index: sympy.Expr) -> Any:
        return self.given[name] if name in self.given else super().load(name, index)

    def add(self, name: str, parameters: Sequence[str], compute: str, graph: ir.ComputedBuffer) -> None:
        """A function of the parameters, of which those that are no index are floats."""
        with self:
            self.given = {p: self._parameter(p) for p in parameters}
            data: Any = graph.data
            value = data.make_loader()(()) if isinstance(data, ir.InputBuffer) else data.inner_fn(())
            value = value.value if isinstance(value, OpsValue) else value
            body = IndentedBuffer()
            for part in (self.loads, self.compute):
                body.splice(part)
                part.clear()
            body.writeline(f"return {as_compute(value, compute)};")
            self.cse.invalidate(OrderedSet())
        types = ", ".join(f"{p}: {'i32' if p in INDICES else 'f32'}" for p in parameters)
        self.functions.append((f"fn {name}({types}) -> {compute}", body.getvalue()))

    def _parameter(self, name: str) -> Any:
        dtype = torch.int32 if name in INDICES else torch.float32
        return self.create_cse_var(name, self.bounds.get(name, ValueRanges.unknown()), dtype, ())

    def text(self, lists: int, packed: bool) -> str:
        """Lists of blocks are bound first, then what the functions load."""
        text = IndentedBuffer()
        first = 1 if packed else lists
        for slot in range(first):
            text.writeline(f"@group(0) @binding({slot}) var<storage, read> flex_list{slot}: array<u32>;")
        text.writelines([f"const LISTS = {lists}u;", "fn load_list(list: u32, i: u32) -> u32 {", "  switch list {"])
        for number in range(lists):
            text.writeline(f"    case {number}: {{ return flex_list{0 if packed else number}[i]; }}")
        text.writelines(["    default: { return 0u; }", "  }", "}"])
        tensors = self.tensors()
        for slot, (binding, _) in enumerate(tensors):
            text.splice(Accessors(binding, first + slot, f"i32({param(_C.flex_words + slot)})").text())
        for head, body in self.functions:
            text.writeline(head + " {")
            with text.indent():
                for i, (inner, outer) in enumerate(self.numbers()):
                    is_float = isinstance(outer, sympy.Symbol) and not outer.is_integer
                    word = param(_C.flex_words + len(tensors) + i)
                    text.writeline(f"let {inner} = bitcast<{'f32' if is_float else 'i32'}>({word});")
                text.splice(body)
            text.writeline("}")
        if all("flex_slope" not in head for head, _ in self.functions):
            text.writeline("fn flex_slope(x: f32, b: i32, h: i32, m: i32, n: i32, slope: f32) -> f32 { return slope; }")
        text.splice(self.library.text())
        return text.getvalue()


class Functions(NamedTuple):
    """The subgraphs of a call, and the buffers of the graph that they read."""

    graphs: list[tuple[str, tuple[str, ...], str, ir.ComputedBuffer]]
    captured: list[str]


SCORE, MASK, SLOPE = ("score", *INDICES), INDICES, ("score", *INDICES, "slope")


def functions_of(
    device: torch.device, score: Any, score_buffers: Sequence[Any], mask: Any, mask_buffers: Sequence[Any], joint: Any
) -> Functions:
    wanted = [("flex_score", SCORE, "f32", score, score_buffers), ("flex_visible", MASK, "bool", mask, mask_buffers)]
    if joint is not None:
        joint.graph_module.graph.eliminate_dead_code()
        wanted.append(("flex_slope", SLOPE, "f32", joint, score_buffers))
    graphs, captured = [], OrderedSet[str]()
    for name, parameters, compute, subgraph, buffers in wanted:
        for buffer in buffers:
            if isinstance(buffer, ir.TensorBox):
                buffer.realize()
                buffer.freeze_layout()
        places = [create_placeholder(p, torch.int32 if p in INDICES else torch.float32, device) for p in parameters]
        built: Any = build_subgraph_buffer([*places, *buffers], subgraph)
        graph = built[0] if isinstance(built, (list, tuple)) else built
        names = [graph.data.get_name()] if isinstance(graph.data, ir.InputBuffer) else graph.data.get_read_names()
        captured |= OrderedSet(n for n in names if n not in parameters)
        graphs.append((name, parameters, compute, graph))
    return Functions(graphs, list(captured))


class FlexNode(ir.ExternKernelAlloc):
    """A call of the kernels. Its text is printed when the module is: buffers have their names then."""

    def __init__(
        self, method: str, functions: Functions, operands: dict[str, Any], lists: Sequence[Sequence[Any]], packed: Any,
        block_mask: BlockMask, arguments: dict[str, str], bounds: dict[str, ValueRanges[Any]]
    ) -> None:  # fmt: skip
        self.method, self.functions, self.arguments, self.bounds = method, functions, arguments, bounds
        self.blocks = block_mask.block_sizes
        self.operand_names, self.lengths = list(operands), [len(part) for part in lists]
        self.is_packed = packed is not None
        captured = [V.graph.get_buffer(name) for name in functions.captured]
        given = [x for x in operands.values() if x is not None]
        self.present = [x is not None for x in operands.values()]
        every = [*given, *(x for part in lists for x in part), *([packed] if self.is_packed else []), *captured]
        super().__init__(ir.MultiOutputLayout(device=given[0].get_device()), every)

    def codegen(self, wrapper: Any) -> None:
        self.codegen_comment(wrapper)
        kernel = ScoreKernel(self.bounds)
        with V.set_kernel_handler(kernel):
            for name, parameters, compute, graph in self.functions.graphs:
                kernel.add(name, parameters, compute, graph)
            count = self.lengths[0]
            text = kernel.text(count, self.is_packed)
        references = iter([x.codegen_reference() for x in self.inputs])  # type: ignore[union-attr]
        operands = [next(references) if there else "None" for there in self.present]
        lists = [f"[{', '.join(next(references) for _ in range(length))}]" for length in self.lengths]
        packed = next(references) if self.is_packed else "None"
        bound = kernel.tensors()
        bindings = (1 if self.is_packed else count) + len(bound)
        name = self._define(wrapper, text, kernel.library.files, bindings)
        words = "".join(f"{kernel.pexpr(V.graph.sizevars.simplify(e))}, " for _, e in kernel.numbers())
        blocks = f"({', '.join(lists)}, {packed}, ({self.blocks[0]}, {self.blocks[1]}))"
        captured = f"[{', '.join(outer for _, outer in bound)}]"
        arguments = {**dict(zip(self.operand_names, operands, strict=True)), **self.arguments,
                     "blocks": blocks, "captured": captured, "words": f"({words})"}  # fmt: skip
        listed = ", ".join(f"{key}={value}" for key, value in arguments.items())
        wrapper.writeline(f"{self.get_name()} = {name}.{self.method}({listed})")

    def _define(self, wrapper: Any, text: str, files: Sequence[str], bindings: int) -> str:
        definition = f"webgpu_runtime.FlexAttention('flex_attention', r'''\n{text}''', {files!r}, {bindings})"
        if definition not in wrapper.src_to_kernel:
            name = f"webgpu_flex_attention_{wrapper.next_kernel_suffix()}"
            wrapper.src_to_kernel[definition] = name
            wrapper.define_kernel(name, definition, comment(self, wrapper), gpu=False)
        return str(wrapper.src_to_kernel[definition])

    def get_free_symbol_uses(self, unbacked_only: bool = False) -> Any:
        symbols = super().get_free_symbol_uses(unbacked_only)
        for _, _, _, graph in self.functions.graphs:
            symbols |= graph.get_free_symbol_uses(unbacked_only)
        return symbols

    def result(self, index: int, dtype: torch.dtype, size: Sequence[Any], stride: Sequence[Any]) -> Any:
        device: Any = self.get_device()
        layout = ir.FixedLayout(device, dtype, list(size), [sympy.sympify(s) for s in stride])
        return ir.TensorBox.create(ir.MultiOutput(layout, self, [(tuple, index)]))


def printed(values: Sequence[Any]) -> str:
    wrapper: Any = WebGPUKernel.pexpr
    return f"[{', '.join(wrapper(V.graph.sizevars.simplify(sympy.sympify(v))) for v in values)}]"


def check(query: Any, key: Any, value: Any, block_mask: BlockMask) -> None:
    sizevars = V.graph.sizevars
    dtype = query.get_dtype()
    if dtype not in FLOATS or key.get_dtype() != dtype or value.get_dtype() != dtype:
        raise Unsupported(f"query, key and value are {dtype}, {key.get_dtype()} and {value.get_dtype()}")
    for x in (query, value):
        if sizevars.guard_int(x.get_size()[-1]) > LARGEST_HEAD:
            raise Unsupported(f"a head has more than {LARGEST_HEAD} elements")
    if not sizevars.evaluate_expr(sympy.Eq(query.get_size()[0], key.get_size()[0]) | sympy.Eq(key.get_size()[0], 1)):
        raise AssertionError("flex_attention: batches of query and key differ")
    if any(x.get_size()[i] == 0 for x in (query, key, value) for i in range(4)):
        raise Unsupported("a tensor is empty")


def check_backend(kernel_options: dict[str, Any]) -> None:
    backend = kernel_options.get("BACKEND", "AUTO")
    if backend != "AUTO":
        raise NotImplementedError(f"flex_attention on webgpu: there is no BACKEND={backend!r}; leave it out")


def bounds_of(query: Any, key: Any) -> dict[str, ValueRanges[Any]]:
    """Of the indices, where they are known, so that loads need not clamp them."""
    batch, heads, queries, _ = query.get_size()
    sizes = dict(zip(INDICES, (batch, heads, queries, key.get_size()[2]), strict=True))
    return {p: ValueRanges(0, int(s) - 1 if isinstance(s, sympy.Integer) else 2**31 - 1) for p, s in sizes.items()}


def int32(lists: Sequence[Any]) -> list[Any]:
    """Lists of blocks as tensors whose rows lie side by side."""
    result = []
    for x in lists:
        if x.get_dtype() != torch.int32:
            x = lowerings[prims.convert_element_type](x, torch.int32)
        result.append(ir.ExternKernel.require_contiguous(ir.ExternKernel.realize_input(x)))
    return result


def pack(lists: Sequence[Sequence[Any]], own: int, functions: Functions) -> Any:
    """One tensor of all lists, where they are more than an adapter binds beside the rest."""
    limit = min(launch.most_bindings(), MOST_BINDINGS)
    count, captured = len(lists[0]), len(functions.captured)
    if own + count + captured <= limit:
        return None
    if own + (1 if count else 0) + captured > limit:
        raise Unsupported(f"{captured} captured tensors are more than the adapter binds")
    flat = [lowerings[aten.reshape](ir.TensorBox.create(x), [-1]) for part in lists for x in part]
    packed = lowerings[aten.cat](flat)
    packed.realize()
    return packed


def _forward(
    original: Callable[..., Any], query: Any, key: Any, value: Any, subgraph: Any, block_mask: Any, scale: Any,
    kernel_options: dict[str, Any], score_buffers: Sequence[Any], mask_buffers: Sequence[Any]
) -> Any:  # fmt: skip
    arguments = (query, key, value, subgraph, block_mask, scale, kernel_options, score_buffers, mask_buffers)
    if query.get_device().type != "webgpu":
        return original(*arguments)
    check_backend(kernel_options)
    mask = BlockMask(*block_mask)
    try:
        check(query, key, value, mask)
        functions = functions_of(query.get_device(), subgraph, score_buffers, mask.function, mask_buffers, None)
        wants_most = bool(kernel_options.get("OUTPUT_MAX"))
        lists = [int32(mask.of_queries()), []]
        packed = pack(lists, FORWARD_BINDINGS + wants_most, functions)
    except Unsupported as reason:
        log.info("flex_attention is not one kernel: %s", reason)
        return lower_dense(hops.flex_attention, arguments)
    query, key, value = (ir.ExternKernel.realize_input(x) for x in (query, key, value))
    sizes = [*query.get_size()[:3], value.get_size()[3]]
    strides = infer_dense_strides(sizes, query.get_stride())
    given = {"strides": printed(strides), "scale": repr(float(scale)), "with_most": str(wants_most)}
    operands = {"query": query, "key": key, "value": value}
    node = FlexNode("forward", functions, operands, lists, packed, mask, given, bounds_of(query, key))
    rows = ir.FlexibleLayout.contiguous_strides(sizes[:3])
    out = node.result(0, query.get_dtype(), sizes, strides)
    log_sum = node.result(1, torch.float32, sizes[:3], rows)
    if wants_most:
        return out, log_sum, node.result(2, torch.float32, sizes[:3], rows)
    return out, log_sum, empty_strided(sizes[:3], None, dtype=torch.float32, device=query.get_device())


def _backward(original: Callable[..., Any], *arguments: Any) -> Any:
    query, key, value = arguments[:3]
    log_sum_grad, subgraph, joint, block_mask, scale, _, score_buffers, mask_buffers = arguments[6:]
    if query.get_device().type != "webgpu":
        return original(*arguments)
    mask = BlockMask(*block_mask)
    try:
        check(query, key, value, mask)
        (results,) = (node.args[0] for node in joint.graph_module.graph.nodes if node.op == "output")
        if any(result is not None for result in results[len(SCORE) :]):
            raise Unsupported("score_mod captures tensors that need gradients")
        functions = functions_of(query.get_device(), subgraph, score_buffers, mask.function, mask_buffers, joint)
        lists = [int32(mask.of_queries()), int32(mask.of_keys())]
        packed = pack(lists, BACKWARD_BINDINGS + (log_sum_grad is not None), functions)
    except Unsupported as reason:
        log.info("the gradient of flex_attention is not of two kernels: %s", reason)
        return lower_dense(hops.flex_attention_backward, arguments)
    operands = dict(zip(("query", "key", "value", "out", "log_sum", "grad", "log_sum_grad"), arguments, strict=False))
    operands = {k: None if x is None else ir.ExternKernel.realize_input(x) for k, x in operands.items()}
    batch = query.get_size()[0]
    sizes = [[batch, *x.get_size()[1:]] for x in (query, key, value)]
    strides = [infer_dense_strides(s, x.get_stride()) for s, x in zip(sizes, list(operands.values())[:3], strict=True)]
    given = {"strides": f"[{', '.join(map(printed, strides))}]", "scale": repr(float(scale))}
    node = FlexNode("backward", functions, operands, lists, packed, mask, given, bounds_of(query, key))
    dtype = query.get_dtype()
    gradients = [node.result(i, dtype, *layout) for i, layout in enumerate(zip(sizes, strides, strict=True))]
    if not V.graph.sizevars.evaluate_expr(sympy.Eq(batch, key.get_size()[0])):
        gradients[1:] = [lowerings[aten.sum](x, axis=0, keepdims=True) for x in gradients[1:]]
    return (*gradients, tuple(None for _ in score_buffers))


def lower_dense(op: Any, arguments: tuple[Any, ...]) -> Any:
    """The op as PyTorch computes it without a compiler, traced and lowered into the graph."""
    dense = op.py_kernels[torch._C.DispatchKey.CompositeExplicitAutograd]
    node = V.graph.current_node
    is_backward = op is hops.flex_attention_backward
    captured: Any = node.args[-2]
    wanted: list[bool] = [False] * len(captured)
    if is_backward:
        (results,) = (n.args[0] for n in arguments[8].graph_module.graph.nodes if n.op == "output")
        wanted = [result is not None for result in results[len(SCORE) :]]

    def value_of(x: Any) -> Any:
        if not isinstance(x, torch.fx.Node):
            return x
        return getattr(x.graph.owning_module, str(x.target)) if x.op == "get_attr" else x.meta["val"]

    fakes = list(tree_map(value_of, tuple(node.args)))
    leaves: list[Any] = []  # the tensors and symbols, in order
    lowered: list[Any] = []

    def gather(fake: Any, given: Any) -> Any:
        if isinstance(fake, (list, tuple)):
            return [gather(f, g) for f, g in zip(fake, given, strict=True)]
        if isinstance(fake, (FakeTensor, torch.SymInt)):
            leaves.append(fake)
            lowered.append(given)
            return len(leaves) - 1, "leaf"
        return fake

    template = [gather(f, g) for f, g in zip(fakes, arguments, strict=True)]

    def call(*tensors: Any) -> Any:
        def put(x: Any) -> Any:
            if isinstance(x, tuple):
                return tensors[x[0]]
            return tuple(map(put, x)) if isinstance(x, list) else x

        given = [put(x) for x in template]
        given[-2] = tuple(
            x.detach().requires_grad_() if isinstance(x, torch.Tensor) and w else x
            for x, w in zip(given[-2], wanted, strict=True)
        )
        return dense(*given)

    with V.fake_mode, torch.no_grad():
        traced = make_fx(call, decomposition_table=select_decomp_table(), tracing_mode="real")(*leaves)
    for constant in traced.graph.nodes:
        if constant.op == "get_attr":
            name = V.graph.qualify_name(f"flex_{V.graph.current_node.name}_{constant.target}")
            setattr(V.graph.module, name, getattr(traced, constant.target))
            constant.target = name
    return process_subgraph_nodes(traced, lowered)


def register() -> None:
    for op, lowered in ((hops.flex_attention, _forward), (hops.flex_attention_backward, _backward)):
        original = lowerings[op]
        lowerings[op] = functools.wraps(original)(functools.partial(lowered, original))
