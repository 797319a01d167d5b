"""Matrix products and convolutions as templates: eager's kernels, whose elements Inductor's fused ops take and store.

What nothing can be fused into stays eager's op. Otherwise the fused ops are printed twice, for one element and for four
neighbours, and the launcher takes the form that fits the kernel it chooses.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch._inductor import ir
from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.codegen.simd_kernel_features import SIMDKernelFeatures
from torch._inductor.kernel.conv import conv_layout
from torch._inductor.kernel.mm_common import mm_args
from torch._inductor.lowering import fallback_handler, lowerings
from torch._inductor.select_algorithm import realize_inputs
from torch._inductor.utils import sympy_product
from torch._inductor.virtualized import V, ops
from torch.utils._ordered_set import OrderedSet
from torch.utils._sympy.value_ranges import ValueRanges

from torch_webgpu import _C
from torch_webgpu.inductor import autotune
from torch_webgpu.inductor.kernel import WebGPUKernel, param
from torch_webgpu.inductor.memory import Accessors
from torch_webgpu.inductor.pages import fit, fits
from torch_webgpu.inductor.prologues import CAST, Operand, before_cast, keeping_operands

aten = torch.ops.aten
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
Window = tuple[Any, ...]  # stride, padding, dilation, transposed, output_padding and groups, as the op takes them
VIEWS = (aten.view, aten._unsafe_view, aten.reshape, aten.permute, aten.transpose, aten.t, aten.expand, aten.unsqueeze,
         aten.squeeze)  # fmt: skip


class TemplateKernel(WebGPUKernel):
    """The fused ops behind a template, as a function of an element's index and value."""

    def __init__(
        self, template: ir.TemplateBuffer, kind: str, details: Sequence[Any], candidate: int | None,
        present: Sequence[bool], by_four: bool = False
    ) -> None:  # fmt: skip
        numel = sympy_product(template.get_size())
        super().__init__({"x": numel, "r0_": sympy.S.One}, features=SIMDKernelFeatures([], numel, sympy.S.One))
        self.template, self.kind, self.details, self.by_four = template, kind, details, by_four
        self.candidate, self.present = candidate, present
        self.prologue_fused_inputs: OrderedSet[str] = OrderedSet()
        self.elements, self.fours = "", ""
        self.all_files: tuple[str, ...] = ()

    def codegen_template_body(
        self, scheduling: Any, template_node: Any, epilogue_nodes: Sequence[Any], *unused: Any
    ) -> str:
        self.elements = self.printed(epilogue_nodes)
        self.all_files = self.library.files
        if V.graph.sizevars.statically_known_multiple_of(self.template.get_size()[-1], 4):
            twin = TemplateKernel(self.template, self.kind, self.details, self.candidate, self.present, by_four=True)
            text = twin.printed(epilogue_nodes)
            if twin.quad_tree is not None and twin.interface() == self.interface():
                self.fours = text
                self.all_files = tuple(dict.fromkeys((*self.all_files, *twin.library.files)))
        return f"{self.elements}\n// for four neighbours\n{self.fours}" if self.fours else self.elements

    def interface(self) -> Any:
        tensors = [(binding.name, outer, binding.is_written) for binding, outer in self.tensors()]
        return tensors, [inner for inner, _ in self.numbers()]

    def printed(self, epilogue_nodes: Sequence[Any]) -> str:
        name = self.template.get_name()
        with self:
            ranges = self.split_and_set_ranges([self.template.get_size(), []])
            place = self.template.get_layout().make_indexer()(ranges[0])
            if self.by_four:
                indices = {place: None}
                for node in epilogue_nodes:
                    index_vars = self.split_and_set_ranges(node.get_ranges())
                    indices |= dict.fromkeys(node._body.indexing_from_args(index_vars).values())
                self.finalize_indexing(list(indices))
            text = "product[j]" if self.quad_tree is not None else "product"
            value = self.create_cse_var(text, ValueRanges.unknown(), torch.float32, ())
            ops.store(name, place, value)  # dropped when all readers are fused
            for node in epilogue_nodes:
                node.codegen(self.split_and_set_ranges(node.get_ranges()))
        with V.set_kernel_handler(self):
            return self.function()

    def function(self) -> str:
        by_four = self.quad_tree is not None
        loop = self.element_loop(self.range_trees[0], "i32(index) / 4" if by_four else "i32(index)")
        tensors, numbers = self.tensors(), self.numbers()
        text = IndentedBuffer()
        slot, word = _C.epilogue_places[self.kind]
        for binding, _ in tensors:
            text.splice(Accessors(binding, slot, f"i32({param(word)})").text())
            slot, word = slot + binding.pages, word + 1
        kind, value = ("epilogue_four", "vec4<f32>") if by_four else ("epilogue", "f32")
        text.writeline(f"fn {kind}(index: u32, product: {value}) {{")
        with text.indent():
            for i, (inner, outer) in enumerate(numbers):
                is_float = isinstance(outer, sympy.Symbol) and not outer.is_integer
                text.writeline(f"let {inner} = bitcast<{'f32' if is_float else 'i32'}>({param(word + i)});")
            text.splice(loop)
        text.writeline("}")
        text.splice(self.library.text())
        return text.getvalue()

    def definition(self, label: str, text: str) -> str:
        texts = ", ".join(f"r'''{text}'''" for text in (self.elements, self.fours))
        pages = [binding.pages for binding, _ in self.tensors()]
        return f"webgpu_runtime.Epilogue({label!r}, {self.kind!r}, {texts}, {self.all_files!r}, {pages})"

    def call_kernel(self, name: str, node: Any = None, deallocate_ws: bool = True) -> None:
        wrapper = V.graph.wrapper_code
        references = iter([operand.codegen_reference() for operand in self.template.inputs])  # type: ignore[union-attr]
        operands = ", ".join(next(references) if there else "None" for there in self.present)
        numbers, bound = self.numbers(), self.tensors()
        for _, expression in numbers:
            wrapper.ensure_size_computed(expression)
        read_only = sum(1 << slot for slot, (binding, _) in enumerate(bound) if not binding.is_written)
        tensors = ", ".join(outer for _, outer in bound)
        words = "".join(f"{self.pexpr(V.graph.sizevars.simplify(e))}, " for _, e in numbers)
        details = "".join(f", {v if isinstance(v, str) else self.list_of(v)}" for v in self.details)
        arguments = [f"({tensors},)", f"({words})", f"({operands})", f"({read_only}, {self.candidate}{details})"]
        wrapper.generate_kernel_call(name, arguments, triton=False)

    def list_of(self, values: Sequence[Any]) -> str:
        return f"[{', '.join(self.pexpr(V.graph.sizevars.simplify(sympy.sympify(v))) for v in values)}]"


def template_of(kind: str, layout: Any, inputs: Sequence[Any], details: Sequence[Any] = ()) -> Any:
    candidate = autotune.choose(kind, inputs, layout.size, details)
    return make_template(kind, layout, inputs, details, candidate, (True, True))


def make_template(
    kind: str, layout: Any, inputs: Sequence[Any], details: Sequence[Any], candidate: int | None,
    present: Sequence[bool], written: Sequence[Any] = ()
) -> Any:  # fmt: skip
    """A template whose result lies dense. `details` are lists of numbers, or text of the module's; `present` says which
    operands of the kernel `inputs` are, some of which are `written` too."""
    dense = ir.FixedLayout(layout.device, layout.dtype, layout.size, ir.FlexibleLayout.contiguous_strides(layout.size))

    def make(node: ir.TemplateBuffer, hint_override: int | None = None) -> tuple[TemplateKernel, None]:
        return TemplateKernel(node, kind, details, candidate, present), None

    made = ir.TemplateBuffer(layout=dense, inputs=inputs, make_kernel_render=make, mutated_inputs=written or None)
    return ir.TensorBox.create(made)


def is_float(*operands: Any) -> bool:
    """Whether all are floats of the device, of one dtype."""
    dtype = operands[0].get_dtype()
    return dtype in FLOATS and all(x.get_dtype() == dtype and x.get_device().type == "webgpu" for x in operands)


def is_worth_a_template(node: torch.fx.Node) -> bool:
    if autotune.is_wanted():
        return True  # all products are timed
    for user in node.users:
        if getattr(user.target, "overloadpacket", None) in VIEWS:
            if is_worth_a_template(user):
                return True
        elif (
            torch.Tag.pointwise in getattr(user.target, "tags", ())
            or user.target is torch.ops.prims.convert_element_type.default
        ):
            return True
    return False


def _eager_convolution(x: Any, weight: Any, bias: Any, window: Window) -> Any:
    """The original adds the bias in a kernel behind the convolution, which rounds halves twice."""
    stride = conv_layout(x, weight, None, *window).stride
    order = ir.get_stride_order(V.graph.sizevars.guarding_hints_or_throw(stride))
    x, weight = (ir.ExternKernel.require_stride_order(t, order) for t in (x, weight))
    return fallback_handler(aten.convolution.default, add_to_fallback_set=False)(x, weight, bias, *window)


# The rows of a product, or its columns, up to which it loads the other operand without a copy in its own dtype.
MOST_ROWS = 64


def is_summed_in_parts(a: Any, b: Any) -> bool:
    """Eager cuts a long inner side of a small product into parts."""
    sizevars = V.graph.sizevars
    small = sizevars.statically_known_leq(a.get_size()[-2] * b.get_size()[-1], 1024)
    return small and not sizevars.statically_known_lt(a.get_size()[-1], 1 << 13)


def _product(original: Callable[..., Any], a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs or not is_float(a, b) or is_summed_in_parts(a, b):
        return original(a, b, *args, **kwargs)
    loaded = loaded_operands(a, b)
    is_worth = loaded is not None or is_worth_a_template(V.graph.current_node)
    if not is_worth or not fits_product(a, b, loaded):
        return original(a, b, *args, **kwargs)
    return product_template(a, b, loaded)


def fits_product(a: Any, b: Any, loaded: tuple[Operand, Operand] | None) -> bool:
    """Whether bindings hold the operands and the result: eager cuts larger products into parts."""
    operands = (a, b) if loaded is None else [operand.source for operand in loaded]
    return fit(*operands) and fits([*a.get_size()[:-1], b.get_size()[-1]], a.get_dtype())


def loaded_operands(a: Any, b: Any) -> tuple[Operand, Operand] | None:
    """The operands of the current product without their casts; None if there is none, or copies are cheaper: each tile
    of rows casts what it loads anew."""
    nodes, dims = V.graph.current_node.args[-2:], len(a.get_size())
    first, second = before_cast(nodes[0], dims - 1), before_cast(nodes[1], dims - 2)
    sizevars = V.graph.sizevars
    if second is not None and not sizevars.statically_known_leq(a.get_size()[-2], MOST_ROWS):
        second = None
    if first is not None and not sizevars.statically_known_leq(b.get_size()[-1], MOST_ROWS):
        first = None
    if first is None and second is None:
        return None
    return first or Operand(a), second or Operand(b)


def product_template(a: Any, b: Any, loaded: tuple[Operand, Operand] | None = None) -> Any:
    first, second = loaded or (Operand(a), Operand(b))
    _, _, _, layout, left, right = mm_args(first.source, second.source, out_dtype=a.get_dtype())
    result = template_of("matmul", layout, [left, right])
    for scale in (*first.scales, *second.scales):
        result = lowerings[aten.mul](result, scale)
    return result


def _added_product(original: Callable[..., Any], c: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """A product that is timed, that further ops take, or that loads a cast operand, has its sum behind it."""
    if args or kwargs or not is_float(a, b, c) or is_summed_in_parts(a, b):
        return original(c, a, b, *args, **kwargs)
    loaded = loaded_operands(a, b)
    is_worth = loaded is not None or is_worth_a_template(V.graph.current_node)
    if not is_worth or not fits_product(a, b, loaded):
        return original(c, a, b, *args, **kwargs)
    return lowerings[aten.add](product_template(a, b, loaded), c)


def _convolution(
    original: Callable[..., Any], x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int
) -> Any:  # fmt: skip
    if x.get_device().type != "webgpu":
        return original(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    axes = len(weight.get_size()) - 2
    if len(x.get_size()) < axes + 2:
        batch = lowerings[aten.unsqueeze](x, 0)
        given = (stride, padding, dilation, transposed, output_padding, groups)
        return lowerings[aten.squeeze](_convolution(original, batch, weight, bias, *given), 0)
    stride, padding, dilation, output_padding = (
        [*v] * axes if len(v) == 1 else [*v] for v in (stride, padding, dilation, output_padding)
    )
    window = (stride, padding, dilation, transposed, output_padding, groups)
    if not is_float(x, weight) or has_own_windows(weight, transposed, groups):
        return _eager_convolution(x, weight, bias, window)
    layout = conv_layout(x, weight, None, *window)
    loaded = loaded_weight(weight, layout, transposed, groups)
    source = loaded.source if loaded else weight
    is_worth = loaded is not None or is_worth_a_template(V.graph.current_node)
    if not is_worth or not fit(x, source) or not fits(layout.size, layout.dtype):
        return _eager_convolution(x, weight, bias, window)
    details = (layout.size, stride, padding, dilation, (int(transposed), groups))
    result = template_of("convolution", layout, [*realize_inputs(x, source)], details)
    for scale in loaded.scales if loaded else ():
        of_channels = lowerings[aten.view](scale, [scale.get_size()[1 if transposed else 0], *[1] * axes])
        result = lowerings[aten.mul](result, of_channels)
    if bias is None:
        return result
    return lowerings[aten.add](result, lowerings[aten.view](bias, [layout.size[1], *[1] * axes]))


def loaded_weight(weight: Any, layout: Any, transposed: bool, groups: int) -> Operand | None:
    """The weight of the current convolution without its cast, and with scales of channels alone. Windows of one element
    are products, whose tiles of pixels cast anew."""
    size = weight.get_size()
    summed = (0, *range(2, len(size))) if transposed else range(1, len(size))
    found = before_cast(V.graph.current_node.args[1], *summed)
    if found is None or (found.scales and transposed and groups > 1):
        return None
    sizevars = V.graph.sizevars
    is_product = all(sizevars.statically_known_equals(length, 1) for length in size[2:])
    pixels = sympy_product([layout.size[0], *layout.size[2:]])
    return None if is_product and not sizevars.statically_known_leq(pixels, MOST_ROWS) else found


def has_own_windows(weight: Any, transposed: bool, groups: int) -> bool:
    """Whether each channel has a window of its own: eager's kernels of these store what they compute."""
    channels = V.graph.sizevars.guard_int(weight.get_size()[0 if transposed else 1])
    return groups > 1 and channels == (groups if transposed else 1)


def register() -> None:
    """Wraps the lowerings of products and convolutions for tensors of the device."""
    for op, lowered in (
        (aten.mm.default, _product),
        (aten.bmm.default, _product),
        (aten.addmm.default, _added_product),
        (aten.convolution.default, _convolution),
        (CAST, keeping_operands),
        (aten.mul.Tensor, keeping_operands),
    ):
        original = lowerings[op]
        lowerings[op] = functools.wraps(original)(functools.partial(lowered, original))
