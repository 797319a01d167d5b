"""A fused kernel: Inductor's loop bodies as WGSL.

A pointwise kernel takes elements, or quads of four neighbours where an operand walks memory one by one: quads are
loaded in front of a loop over their four elements, and stored behind it. A reduction runs such a loop over each row.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import sympy
import torch
from torch._inductor.codegen.common import DeferredLine, IndentedBuffer, PythonPrinter, TensorArg
from torch._inductor.codegen.simd import IterationRangesEntry
from torch._inductor.utils import sympy_subs
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet
from torch.utils._sympy.symbol import SymT, free_symbol_is_type

from torch_webgpu.inductor import launch
from torch_webgpu.inductor.eager import Unprintable, naming_ops, ops_of
from torch_webgpu.inductor.library import Library
from torch_webgpu.inductor.memory import QUAD_I64, Accessors, Binding, begins_its_storage, resolve
from torch_webgpu.inductor.overrides import WebGPUOverrides
from torch_webgpu.inductor.pages import page_bytes, pages_of
from torch_webgpu.inductor.printer import print_index
from torch_webgpu.inductor.sorts import Sorts
from torch_webgpu.inductor.types import COMPUTE, wgsl_type
from torch_webgpu.inductor.values import Value, as_compute

# Ops of one step after the other, each of which waits for the one before.
STEPS = ("erf", "erfc", "exp", "exp2", "expm1", "log", "log1p", "log2", "sigmoid", "sin", "cos", "tanh")


class WebGPUKernel(Sorts):
    overrides = WebGPUOverrides
    newvar_prefix = "let "
    suffix = ";"
    sexpr = staticmethod(print_index)
    kexpr = staticmethod(print_index)
    pexpr = PythonPrinter().doprint

    def __init__(self, tiling: dict[str, sympy.Expr], **kwargs: Any) -> None:
        super().__init__(tiling, **kwargs)
        self.library = Library()
        self.target = launch.target()
        self.bindings: dict[str, Binding] = {}
        self.serial = itertools.count()
        self.mask_depth = 0
        self.quad_tree: Any = None  # the tree whose elements are taken by four
        self.reads_masked_quads = False
        self.quad_tail = False  # whether the last quad may be cut short
        self.init_loops()
        self.quads: dict[str, tuple[str, int]] = {}  # what was loaded, and in which pass
        self.walk = 0  # the number of the current pass
        self.entries: dict[str, list[str]] = {"x": []}  # declarations of index variables, by tree
        self.outside: OrderedSet[Value] = OrderedSet()  # variables that outlive the loop of a reduction
        self.made: dict[str, Value] = {}  # all variables
        self.more_numbers: dict[str, sympy.Expr] = {}  # parameters that are none of the graph's
        self.init_reductions()
        self.init_sorts()

    # What Inductor asks

    def dtype_to_str(self, dtype: torch.dtype) -> str:
        return COMPUTE[dtype]

    @property
    def index_dtype(self) -> str:
        return "i32"

    def create_cse_var(self, *args: Any, **kwargs: Any) -> Value:
        value = Value(*args, **kwargs)
        self.made[value.name] = value
        if not self.inside_reduction:
            self.outside.add(value)
        return value

    @contextlib.contextmanager
    def set_current_node(self, node: Any) -> Iterator[Any]:
        with super().set_current_node(node) as current, naming_ops(node):
            yield current

    @contextlib.contextmanager
    def inside_mask(self) -> Iterator[None]:
        self.mask_depth += 1
        try:
            yield
        finally:
            self.mask_depth -= 1

    def device_assert_async(self, cond: Any, msg: str) -> None:
        pass

    def check_bounds(self, expr: sympy.Expr, size: sympy.Expr, lower: bool, upper: bool) -> None:
        pass  # indirect_indexing() clamps

    def codegen_iteration_ranges_entry(self, entry: IterationRangesEntry) -> None:
        line = f"let {entry.name} = {self.kexpr(self.rename_indexing(entry.expr))};"
        lines = self.entries.setdefault(entry.root.prefix, [])
        if line not in lines:
            lines.append(line)

    # How an index moves along the quads

    def finalize_indexing(self, indices: Any) -> None:
        """Decides, before the body is printed, whether elements are taken by four."""
        indices = [self.simplify_indexing(index) for index in indices]
        is_reduction = self.features.is_reduction()
        self._take_quads_of(self.range_trees[0])
        if is_reduction:
            self.decide_rows(indices)
        if is_reduction and not self.by_columns:
            self._take_quads_of(self.row)
        if self.in_step or self.has_sort or "run" not in map(self.classify, indices):
            self.quad_tree = None
        # Where a mask is off, nothing looks at what is read beside a tensor.
        self.reads_masked_quads = 0 < self.features.op_counts()["masked"] <= 3
        if is_reduction and not self.by_columns:
            self.decide_registers([self.classify(index) for index in indices])
        elif not is_reduction and self.quad_tree is not None and self.in_pairs():
            self.block = 2

    def _take_quads_of(self, tree: Any) -> None:
        self.quad_tree = tree
        self.quad_tail = not V.graph.sizevars.statically_known_multiple_of(tree.numel, 4)

    def in_pairs(self) -> bool:
        """Two quads at a time: a software adapter works on one while it waits for the steps of the other's formula."""
        return bool(launch.target()["software"]) and self.has_steps()

    def has_steps(self) -> bool:
        return any(map(self.features.contains_op, STEPS))

    def classify(self, index: sympy.Expr) -> str:
        """Along a quad an index is a run of four neighbours, a splat, or neither: element."""
        if free_symbol_is_type(index, SymT.TMP) or self.quad_tree is None:
            return "element"
        sizes = V.graph.sizevars
        moving = None
        for symbol in index.free_symbols:
            entry = self.range_tree_nodes.get(symbol)
            if entry is None or entry.root is not self.quad_tree:
                continue
            if entry.divisor == 1:
                whole = sizes.statically_known_equals(entry.length, self.quad_tree.numel)
                if not (whole or sizes.statically_known_multiple_of(entry.length, 4)):
                    return "element"
                moving = symbol
            elif self.quad_tail or not sizes.statically_known_multiple_of(entry.divisor, 4):
                return "element"
        if moving is None:
            return "splat"
        start = sympy.expand(sympy_subs(index, {moving: sympy.S.Zero}))
        if sympy.expand(index - start - moving) != 0:
            return "element"
        terms = start.args if isinstance(start, sympy.Add) else (start,)
        fours = all(sympy.Mod(term.as_coeff_Mul()[0], 4) == 0 or self._is_multiple(term) for term in terms)
        return "run" if fours else "element"

    def _is_multiple(self, term: sympy.Expr) -> bool:
        known = all(s not in self.range_tree_nodes for s in term.free_symbols)
        return known and V.graph.sizevars.statically_known_multiple_of(term, 4)

    # Memory

    def bind(self, name: str, index: sympy.Expr, write: bool) -> tuple[Binding, sympy.Expr]:
        dtype = V.graph.get_dtype(name)
        name, index = resolve(name, index)
        scheduler = V.graph.scheduler
        real = scheduler.mutation_real_name.get(name, name) if scheduler else name
        if not write:
            inner = self.args.input(name)
        elif real in self.args.input_buffers and real not in self.args.inplace_buffers:
            inner = self.args.input_buffers[real]
        else:
            inner = self.args.output(name)
        if inner not in self.bindings:
            self.bindings[inner] = Binding(inner, dtype, pages=pages_of(real))
        binding = self.bindings[inner]
        binding.begins_storage &= begins_its_storage(real)
        inplace = self.args.inplace_buffers.get(real)
        for other in getattr(inplace, "other_names", ()):
            binding.begins_storage &= begins_its_storage(other)
        return binding, index

    def load(self, name: str, index: sympy.Expr) -> Any:
        found = self.load_sorted(name, index)
        if found is not None:
            return found
        dtype = V.graph.get_dtype(name)
        compute = COMPUTE[dtype]
        self.library.use_type(compute)
        binding, index = self.bind(name, index, write=False)
        kind = self.classify(self.simplify_indexing(index))
        if self.mask_depth and not (kind == "run" and self.reads_masked_quads):
            kind = "element"
        index = self.prepare_indexing(index)
        text = self.index_to_str(index)
        value_dtype = torch.float32 if dtype.is_floating_point else dtype
        is_outside = self.inside_reduction and not self.mask_depth and self.is_outside_row(index)
        if self.quad_tree is not None and self.in_quads():
            if kind == "run":
                binding.load_quads = True
                if compute == "i64":
                    self.library.define("Quad_i64", QUAD_I64)
                four, load = self._quad_type(compute), f"load4_{binding.name}({text})"
                read = "vec2<u32>({0}.lo[j], {0}.hi[j])" if compute == "i64" else "{0}[j]"
                shared = self.shared_quad(index, load, four)
                text = read.format(shared) if shared else self._read_of_quad(load, four, read, is_outside)
                return self._loaded(text, value_dtype, is_outside)
            if kind == "splat" and (self.by_columns or not is_outside):
                binding.loads = True
                text = self._read_of_quad(f"load_{binding.name}({text})", wgsl_type(compute), "{0}", is_outside)
                return self._loaded(text, value_dtype, is_outside)
        binding.loads = True
        return self._loaded(f"load_{binding.name}({text})", value_dtype, is_outside)

    def _loaded(self, text: str, dtype: torch.dtype, is_outside: bool) -> Any:
        """A value of a row, or of an element."""
        value = self.cse.generate(self.before_row if is_outside else self.loads, text, dtype=dtype, shape=())
        if is_outside:
            self.outside.add(value)
        return value

    def in_quads(self) -> bool:
        """Whether what is printed now runs for each element of a quad."""
        return self.inside_reduction or self.by_columns or not self.features.is_reduction()

    def _quad_type(self, compute: str) -> str:
        return "Quad_i64" if compute == "i64" else f"vec4<{compute}>"

    def _read_of_quad(self, load: str, kind: str, read: str, is_outside: bool = False) -> str:
        """An element of what is loaded once for a quad. What an earlier pass loaded may still have a name."""
        name, walk = self.quads.get(load, ("", -1))
        if walk != self.walk and not self.cse.contains(read.format(name)):
            name = f"q{next(self.serial)}"
            if is_outside:
                self.front.writeline(f"let {name} = {load};")
            else:
                let = "let " if self.is_alone else ""
                name = self._of_block(name, kind)
                self.around.loads.writeline(f"{let}{name} = {load};")
            self.quads[load] = (name, self.walk)
        return read.format(name)

    @property
    def is_alone(self) -> bool:
        """Whether a quad, or an element, is not one of a block that is taken together."""
        return self.block == 1 or self.is_once_for_columns

    def _of_block(self, name: str, kind: str, buffer: str = "") -> str:
        """A variable of each of the quads that are taken together. What goes to a buffer may be dropped with it."""
        if self.is_alone:
            return name
        line = f"var {name}: array<{kind}, {self.block}>;"
        self.around.declared.writeline(DeferredLine(buffer, line) if buffer else line)
        return f"{name}[h]"

    def store(self, name: str, index: sympy.Expr, value: Any, mode: Any = None) -> None:
        self.keep_sorted(name, index, value)
        dtype = V.graph.get_dtype(name)
        self.library.use_type(COMPUTE[dtype])
        binding, index = self.bind(name, index, write=True)
        kind = "element" if self.mask_depth else self.classify(self.simplify_indexing(index))
        place = self.index_to_str(self.prepare_indexing(index))
        result = as_compute(value, COMPUTE[dtype])
        if mode == "atomic_add":
            binding.adds = True
        elif kind == "run" and self.in_quads() and (dtype.itemsize >= 4 or binding.begins_storage):
            return self._store_quad(name, binding, place, result)
        else:
            assert mode is None, mode
            binding.stores = True
        line = f"{'add' if mode else 'store'}_{binding.name}({place}, {result});"
        if conditions := self.store_conditions():
            line = f"if ({' && '.join(conditions)}) {{ {line} }}"
        buffer = self.compute if self.inside_reduction else self.stores
        buffer.writeline(DeferredLine(name, line))
        return None

    def store_conditions(self) -> list[str]:
        """What must be true where an element is stored: lanes may take what is behind the end of a row or column."""
        if self.by_columns:
            return self.conditions_of_columns()
        conditions = []
        if self.quad_tree is not None and self.quad_tail and self.in_quads():
            conditions.append(f"{self.quad_tree.name} < {self.index_to_str(self.quad_tree.numel)}")
        if (self.in_step or self.is_cut) and self.inside_reduction:
            conditions.append("inside")
        return conditions

    def _store_quad(self, name: str, binding: Binding, place: str, result: str) -> None:
        binding.store_quads = True
        compute = COMPUTE[binding.dtype]
        kind, declared = self._quad_type(compute), f"o{next(self.serial)}"
        quad = self._of_block(declared, kind, buffer=name)
        if compute == "i64":
            self.library.define("Quad_i64", QUAD_I64)
            whole = f"{declared}v"
            lines = [f"let {whole} = {result};", f"{quad}.lo[j] = {whole}.x;", f"{quad}.hi[j] = {whole}.y;"]
        else:
            lines = [f"{quad}[j] = {result};"]
        if self.is_alone:
            self.around.loads.writeline(DeferredLine(name, f"var {quad}: {kind};"))
        for line in lines:
            (self.compute if self.inside_reduction else self.stores).writeline(DeferredLine(name, line))
        left = f"{self.index_to_str(self.quad_tree.numel)} - {self.quad_tree.name}" if self.quad_tail else "4"
        self.around.stores.writeline(DeferredLine(name, f"store4_{binding.name}({place}, {quad}, {left});"))

    # The text

    def tensors(self) -> list[tuple[Binding, str]]:
        """The bindings and the graph's names of what is bound there."""
        arguments = [arg for arg in self.args.python_argdefs()[2] if isinstance(arg, TensorArg)]
        return [(self.bindings[arg.name], arg.buffer) for arg in arguments if arg.name in self.bindings]

    def numbers(self) -> list[tuple[str, sympy.Expr]]:
        return [*((inner, outer) for outer, inner in self.args.sizevars.items()), *self.more_numbers.items()]

    def codegen_body(self) -> None:
        if self.features.is_reduction():
            self.codegen_row()

    def codegen_kernel(self, name: str | None = None) -> str:
        plan = self.plan()
        main = IndentedBuffer()
        with main.indent():
            if self.features.is_reduction():
                self.codegen_body()
                self.print_rows(main, plan)
            else:
                self.print_elements(main, plan)
        tensors, numbers = self.tensors(), self.numbers()
        head = IndentedBuffer()
        slot = 0
        for i, (binding, _) in enumerate(tensors):
            head.splice(Accessors(binding, slot, f"i32({param(i)})").text())
            slot += binding.pages
        self.check_bindings(slot)
        setup = ["take_params();"]
        for i, (inner, outer) in enumerate(numbers):
            is_float = isinstance(outer, sympy.Symbol) and not outer.is_integer
            setup.append(f"let {inner} = bitcast<{'f32' if is_float else 'i32'}>({param(len(tensors) + i)});")
        if plan.is_dynamic:
            setup.append(f"let chunk = i32({param(len(tensors) + len(numbers))});")
        return "\n".join(
            [
                head.getvalue(),
                f"@compute @workgroup_size({plan.workgroup})",
                "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {",
                *(f"  {line}" for line in setup),
                main.getvalue().rstrip(),
                "}",
                self.library.text(),
            ]
        )

    def check_bindings(self, count: int) -> None:
        """A fused kernel never has too many; one op may have, where its tensors take several each."""
        if count > launch.most_bindings():
            ops = [op for node in self.features.scheduler_nodes() for op in ops_of(node)]
            most = launch.most_bindings()
            raise Unprintable(
                ops, f"its tensors take {count} bindings of {page_bytes()} bytes, and the adapter has {most}"
            )

    def plan(self) -> launch.Plan:
        if self.features.is_reduction():
            return self.plan_rows()
        plan = launch.Plan.elements(self.range_trees[0].numel, 4 if self.quad_tree is not None else 1)
        return dataclasses.replace(plan, unit=plan.unit * self.block)

    def print_elements(self, main: IndentedBuffer, plan: launch.Plan) -> None:
        tree = self.range_trees[0]
        if self.block == 1:
            loop = self.element_loop(tree, "step")
        else:
            is_whole = V.graph.sizevars.statically_known_multiple_of(plan.steps, plan.unit)
            loop = self.print_loop(self.take_loop(tree), f"step + h * {plan.workgroup}", "" if is_whole else "< end")
        steps = self.index_to_str(plan.steps)
        main.writeline(f"let begin = i32(group.x) * {plan.chunk_text};")
        main.writeline(f"let end = min(begin + {plan.chunk_text}, {steps});")
        main.writeline(f"for (var step = begin + i32(lane); step < end; step += {plan.unit}) {{")
        with main.indent():
            main.splice(loop)
        main.writeline("}")

    def definition(self, label: str, text: str) -> str:
        """What the generated module makes of the kernel's text."""
        tensors = self.tensors()
        read_only = sum(1 << slot for slot, (binding, _) in enumerate(tensors) if not binding.is_written)
        bound = f"{len(tensors)}, 0b{read_only:b}, {self.uses_subgroups}"
        pages = [binding.pages for binding, _ in tensors]
        if max(pages, default=1) > 1:
            bound += f", pages={pages}"
        return f"webgpu_runtime.kernel({label!r}, r'''\n{text}''', {self.library.files}, {bound})"

    def call_kernel(self, name: str, node: Any = None, deallocate_ws: bool = True) -> None:
        wrapper = V.graph.wrapper_code
        numbers, plan = self.numbers(), self.plan()
        for _, expression in numbers:
            wrapper.ensure_size_computed(expression)
        tensors = [outer for _, outer in self.tensors()]
        words = [self.pexpr(V.graph.sizevars.simplify(e)) for _, e in numbers]
        wrapper.generate_kernel_call(
            f"{name}.launch" if plan.is_dynamic else name,
            plan.call_arguments(f"({', '.join(tensors)},)", words, self.pexpr),
            triton=False,
        )


def param(word: int) -> str:
    return f"params[{word // 4}].{'xyzw'[word % 4]}"
