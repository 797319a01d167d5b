"""What generated modules call."""

from __future__ import annotations

import functools
import os
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_webgpu import _C
from torch_webgpu.inductor.launch import chunks

# Whether a quad of a tensor's elements lies across two of its buffer's. Tensors seldom begin at such a place, so there
# is a text that takes all as even, in which a driver drops what serves the others.
EVEN = "fn is_uneven(e: u32) -> bool { return false; }"
UNEVEN = "fn is_uneven(e: u32) -> bool { return (e & 3u) != 0u; }"


def is_even(tensors: Sequence[torch.Tensor]) -> bool:
    return not any(tensor.storage_offset() & 3 for tensor in tensors)


class Kernel:
    """A compiled kernel. Called with known grids as the extension's own; `launch` works them out."""

    def __init__(self, compile_text: Callable[[str], Any]) -> None:
        self._compile = functools.cache(compile_text)
        self._compile(EVEN)
        self._finished = functools.cache(self._finish)

    def _finish(self, uneven: str) -> Any:
        """Waits for a kernel, and shows the text around the place of an error. When the first kernel of a module is
        waited for, all others are being compiled."""
        kernel = self._compile(uneven)
        try:
            kernel.finish()
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n\n{excerpt(kernel.wgsl, str(error))}") from None
        return kernel

    def __call__(self, tensors: Sequence[Any], words: Sequence[Any], grid: tuple[int, int, int], offsets: bool) -> None:
        kernel = self._finished(EVEN if is_even(tensors) else UNEVEN)
        try:
            kernel(tensors, words, grid, offsets)
        except (TypeError, ValueError):
            if not any(needs_conversion(x) for x in (*tensors, *words)):
                raise
            kernel([to_device(t) for t in tensors], [to_word(w) for w in words], grid, offsets)

    def launch(self, tensors: Sequence[Any], words: Sequence[Any], steps: tuple[int, int, int]) -> None:
        if steps[0] == 0:
            return
        chunk, groups = chunks(*steps)
        self(tensors, (*words, chunk), (groups, 1, 1), True)


def needs_conversion(value: Any) -> bool:
    return not isinstance(value, int) and not (isinstance(value, torch.Tensor) and value.device.type == "webgpu")


def to_device(tensor: torch.Tensor) -> torch.Tensor:
    """Numbers come as CPU tensors without dimensions; float64 ones compute as float32."""
    if tensor.device.type == "webgpu":
        return tensor
    return (tensor.float() if tensor.dtype is torch.float64 else tensor).to("webgpu")


def to_word(number: Any) -> int:
    if isinstance(number, float):
        return int.from_bytes(struct.pack("<f", number), "little")
    return int(number) & 0xFFFFFFFF


def kernel(
    label: str,
    text: str,
    files: Sequence[str],
    bindings: int,
    read_only: int,
    subgroups: bool,
    pages: Sequence[int] = (),
) -> Kernel:
    """A kernel that worker threads compile, beside the module's others. `pages` are the bindings of each tensor."""

    def compile_text(uneven: str) -> Any:
        wgsl = assemble(f"{text}\n{uneven}" if "is_uneven(" in text else text, files, subgroups)
        return _C.Kernel(label, wgsl, "main", bindings, read_only, wait=False, pages=pages)

    return Kernel(compile_text)


def assemble(text: str, files: Sequence[str], subgroups: bool) -> str:
    """A kernel's own text with eager's files of functions, as csrc/shader/source.cpp puts them together."""
    whole = "\n".join([text, *(_C.wgsl(file) for file in files)])
    # Subgroups stay together where they are used, but the analysis does not know that of the copied parameters.
    directive = "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n" if subgroups else ""
    return f"{directive}@group(1) @binding(0) var<uniform> given: array<vec4<u32>, 64>;\n{with_params(whole)}"


def with_params(text: str) -> str:
    """Uniform words are read once, into variables: drivers of software adapters read a uniform in a loop each time.
    Not beside barriers, which must depend on uniforms alone: a variable never counts as one."""
    if "Barrier(" in text or "workgroupUniformLoad(" in text:
        return text.replace("params[", "given[") + "\nfn take_params() {}\n"
    count = max([0, *(int(place) for place in re.findall(r"\bparams\[(\d+)\]", text))]) + 1
    copies = "".join(f"  params[{i}] = given[{i}];\n" for i in range(count))
    return f"{text}\nvar<private> params: array<vec4<u32>, {count}>;\nfn take_params() {{\n{copies}}}\n"


def excerpt(wgsl: str, message: str) -> str:
    """The lines around those that a compiler's message names, or all of a short text."""
    lines = wgsl.split("\n")
    named = {int(line) for line in re.findall(r":(\d+):\d+", message) if 0 < int(line) <= len(lines)}
    shown = sorted({n for line in named for n in range(max(1, line - 4), min(len(lines), line + 4) + 1)})
    return "\n".join(f"{n:4}{'>' if n in named else ' '} {lines[n - 1]}" for n in shown or range(1, len(lines) + 1))


class Epilogue:
    """Fused ops that take the elements of a product, a convolution or attention of eager's."""

    def __init__(
        self, label: str, kind: str, elements: str, fours: str, files: Sequence[str], pages: Sequence[int]
    ) -> None:
        def compile_text(uneven: str) -> Any:
            one, four = (f"{text}\n{uneven}" if text else "" for text in (elements, fours))
            return getattr(_C.Epilogue(label, one, four, files, pages), kind)

        self._compile = functools.cache(compile_text)

    def __call__(
        self,
        tensors: Sequence[torch.Tensor],
        words: Sequence[Any],
        operands: tuple[torch.Tensor | None, ...],
        details: tuple[Any, ...],
    ) -> None:
        read_only, candidate, *window = details
        tensors = [to_device(tensor) for tensor in tensors]
        run = self._compile(EVEN if is_even(tensors) else UNEVEN)
        choice = () if candidate is None else (candidate,)
        run(*operands, *window, tensors, read_only, [to_word(word) for word in words], *choice)


class FlexAttention:
    """The kernels of attention with a text of functions."""

    def __init__(self, label: str, text: str, files: Sequence[str], bindings: int) -> None:
        text = f"{text}\n{UNEVEN}" if "is_uneven(" in text else text
        self._kernels = _C.FlexAttention(label, text, files, bindings)

    def forward(self, *, words: Sequence[Any], captured: Sequence[torch.Tensor], **given: Any) -> Any:
        numbers, tensors = [to_word(word) for word in words], [to_device(tensor) for tensor in captured]
        return self._kernels.forward(words=numbers, captured=tensors, **given)

    def backward(self, *, words: Sequence[Any], captured: Sequence[torch.Tensor], **given: Any) -> Any:
        numbers, tensors = [to_word(word) for word in words], [to_device(tensor) for tensor in captured]
        return self._kernels.backward(words=numbers, captured=tensors, **given)


def taped(call: Callable[[list[Any]], Any], tapeable: bool, fixed: bool = False) -> Callable[[list[Any]], Any]:
    """A module's function, replaced by one whose calls are recorded once per layout of the arguments and replayed. With
    `fixed`, the buffers of the first replay are kept for the others."""
    if not tapeable or os.environ.get("TORCH_WEBGPU_TAPE") == "0":
        return call
    recorded: Any = None

    def first_call(arguments: list[Any]) -> Any:
        # The graph's constants become names of the module after it was executed.
        nonlocal recorded
        if recorded is None:
            names = getattr(call, "__func__", call).__globals__
            constants = [x for x in names.values() if isinstance(x, torch.Tensor) and x.device.type == "webgpu"]
            recorded = _C.RecordedFunction(call, constants, fixed)
        return recorded(arguments)

    return first_call
