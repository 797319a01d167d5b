"""``torch.webgpu.compile_shader``: kernels of one's own, written in WGSL, that take tensors and numbers."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torch_webgpu import _C, wgsl
from torch_webgpu.wgsl import Resource, Scalar, Struct, Token, Type

__all__ = ["ShaderKernel", "ShaderLibrary", "compile_shader"]

_SLOT_WORDS = 64  # of each uniform but the last
_MOST_WORDS = 256  # of all uniforms
_FORMATS = {"f32": "f", "i32": "i", "u32": "I", "f16": "e"}
_RANGES = {"i32": (-(2**31), 2**31), "u32": (0, 2**32)}
_PLACE = re.compile(r"(?:wgsl)?:(\d+):(\d+)")

Size = int | Sequence[int]


@functools.cache
def _limits() -> dict[str, int]:
    limits: Any = _C.device_properties()["limits"]
    return dict(limits)


class _Text:
    """The user's text with some spans replaced, and the way back from a place in it to the user's."""

    def __init__(self, source: str, edits: list[tuple[int, int, str]]) -> None:
        self.source = source
        self.edits = sorted(edits)
        parts, end = [], 0
        for begin, stop, replacement in self.edits:
            parts += [source[end:begin], replacement]
            end = stop
        self.text = "".join(parts) + source[end:]

    def original(self, offset: int) -> int:
        growth = 0
        for begin, end, replacement in self.edits:
            if offset < begin + growth:
                break
            if offset < begin + growth + len(replacement):
                return begin
            growth += len(replacement) - (end - begin)
        return offset - growth

    def error(self, message: str, name: str) -> Exception:
        """What the compiler said, with the place in the user's text where it names one."""
        _, _, said = message.partition("does not compile: ")
        place = _PLACE.search(said)
        if not place:
            return RuntimeError(f"compile_shader: {name} does not compile: {(said or message).strip()}")
        lines = self.text.split("\n")
        row = min(int(place[1]), len(lines)) - 1
        column = int(place[2]) - 1
        if said.startswith("Error while parsing WGSL"):  # Dawn counts bytes
            column = len(lines[row].encode()[:column].decode(errors="ignore"))
            reason = said[place.end() :].partition("\n")[0].removeprefix(" error:").strip()
        else:
            # wgpu-native names the place below what is wrong.
            reason = said[: place.start()].rpartition("error: ")[2].partition("\n")[0].strip()
        offset = self.original(sum(len(line) + 1 for line in lines[:row]) + column)
        row = self.source.count("\n", 0, offset)
        column = offset - (self.source.rfind("\n", 0, offset) + 1)
        line = self.source.split("\n")[row].rstrip("\r")
        text = f"{row + 1}:{column + 1}: {reason}\n  {line}\n  {' ' * column}^"
        return SyntaxError(f"compile_shader: {text}", ("<wgsl>", row + 1, column + 1, line))


def _triple(size: Size, what: str) -> tuple[int, int, int]:
    values = list(size) if isinstance(size, Sequence) else [size]
    if not 1 <= len(values) <= 3 or any(isinstance(value, bool) or not isinstance(value, int) for value in values):
        raise TypeError(f"{what} takes a whole number or up to three of them, not {size!r}")
    values += [1] * (3 - len(values))
    return values[0], values[1], values[2]


def _pack(buffer: bytearray, offset: int, kind: Type, value: Any, what: str) -> None:
    """Writes `value` as WGSL lays `kind` out."""
    if isinstance(kind, Scalar):
        _pack_number(buffer, offset, kind.name, value, what)
        return
    if isinstance(value, torch.Tensor | str | bytes) or not isinstance(value, Sequence | Mapping):
        raise TypeError(f"{what}: {kind.name} takes a sequence of values, not {type(value).__name__}")
    if isinstance(kind, Struct):
        names = [name for name, _, _ in kind.members]
        if isinstance(value, Mapping):
            if set(value) != set(names):
                raise ValueError(f"{what}: {kind.name} has the members {', '.join(names)}, not {', '.join(value)}")
            value = [value[name] for name in names]
        elif len(value) != len(names):
            raise ValueError(f"{what}: {kind.name} has {len(names)} members, but {len(value)} values were given")
        for (name, member, place), part in zip(kind.members, value, strict=True):
            _pack(buffer, offset + place, member, part, f"{what}.{name}")
        return
    if isinstance(value, Mapping) or len(value) != kind.count:
        raise ValueError(f"{what}: {kind.name} has {kind.count} elements, but {len(value)} values were given")
    for index, part in enumerate(value):
        _pack(buffer, offset + index * kind.stride, kind.element, part, f"{what}[{index}]")


def _pack_number(buffer: bytearray, offset: int, name: str, value: Any, what: str) -> None:
    if isinstance(value, bool):
        raise TypeError(f"{what}: {name} takes a number, not a bool (write int(...))")
    if isinstance(value, torch.Tensor):
        raise TypeError(f"{what}: {name} takes a number, not a tensor (write x.item(), or declare a storage buffer)")
    if name in _RANGES:
        if not hasattr(value, "__index__"):
            raise TypeError(f"{what}: {name} takes a whole number, not {type(value).__name__}")
        value = value.__index__()
        low, high = _RANGES[name]
        if not low <= value < high:
            raise ValueError(f"{what}: {value} is out of range for {name}")
    else:
        if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
            raise TypeError(f"{what}: {name} takes a number, not {type(value).__name__}")
    try:
        struct.pack_into(f"<{_FORMATS[name]}", buffer, offset, value if name in _RANGES else float(value))
    except OverflowError:
        raise ValueError(f"{what}: {value} is out of range for {name}") from None


def _span_bytes(tensor: torch.Tensor) -> int:
    """From the tensor's first element to its last, as a binding covers it: in whole words."""
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return ((last + 1) * tensor.element_size() + 3) // 4 * 4


@dataclass(frozen=True)
class _Program:
    kernel: _C.Kernel
    group_size: tuple[int, int, int]


class ShaderKernel:
    """An entry point. Called with what it uses of the text's variables, in the order of their declarations."""

    def __init__(self, source: str, module: wgsl.Module, name: str) -> None:
        self.__name__ = name
        self._source = source
        self._function = module.functions[name]
        self._resources = module.resources
        self._arguments = module.used_by(name)
        self._storages = [argument for argument in self._arguments if argument.space == "storage"]
        self._uniforms = [argument for argument in self._arguments if argument.space == "uniform"]
        self._programs: dict[tuple[int, int, int] | None, _Program] = {}
        self._check_declarations()
        # The last one may be the largest.
        self._uniforms.sort(key=lambda argument: argument.type.size if argument.type else 0)
        given = [module.integer(part) for part in _split(self._function.attributes.get("workgroup_size", []))]
        sizes = [size for size in given if size is not None]
        whole = len(sizes) == len(given) and 1 <= len(sizes) <= 3
        self._text_size = _triple(sizes, name) if whole else None
        self._read_only = sum(1 << i for i, storage in enumerate(self._storages) if not storage.writes)
        self._program(None)  # the text's errors are raised here
        for uniform in self._uniforms:
            if uniform.type is None:
                raise ValueError(f"compile_shader: {name}: the type of the uniform {uniform.name} is not understood")

    def __repr__(self) -> str:
        arguments = ", ".join(f"{argument.name}: {argument.space}" for argument in self._arguments)
        return f"<webgpu kernel {self.__name__}({arguments})>"

    def _check_declarations(self) -> None:
        name = self.__name__
        for argument in self._arguments:
            if argument.space not in ("storage", "uniform"):
                raise ValueError(
                    f"compile_shader: {name} uses {argument.name}, which is neither var<storage> nor var<uniform>"
                )
        if not self._storages:
            raise ValueError(f"compile_shader: {name} uses no storage buffer, so it could not leave a result")
        most = _limits()["maxStorageBuffersPerShaderStage"]
        if len(self._storages) > most:
            raise ValueError(
                f"compile_shader: {name} uses {len(self._storages)} storage buffers, and the adapter binds {most}"
            )
        sizes = sorted(argument.type.size for argument in self._uniforms if argument.type)
        words = _SLOT_WORDS * (len(sizes) - 1) + (sizes[-1] + 3) // 4 if sizes else 0
        if words > _MOST_WORDS or any(size > 4 * _SLOT_WORDS for size in sizes[:-1]):
            raise ValueError(
                f"compile_shader: {name} uses {len(sizes)} uniforms of {sum(sizes)} bytes; four are possible, of which "
                f"one may exceed {4 * _SLOT_WORDS} bytes: write one struct instead"
            )

    def _program(self, group_size: tuple[int, int, int] | None) -> _Program:
        program = self._programs.get(group_size)
        if program is None:
            program = self._programs[group_size] = self._compile(group_size)
        return program

    def _compile(self, group_size: tuple[int, int, int] | None) -> _Program:
        name = self.__name__
        edits = []
        # Those of other entry points must not meet these, nor one another.
        others = [resource for resource in self._resources if resource not in self._arguments]
        for group, arguments in enumerate((self._storages, self._uniforms, others)):
            for binding, argument in enumerate(arguments):
                for attribute, number in (("group", group), ("binding", binding)):
                    edits.append(_replacement(argument.attributes.get(attribute, []), str(number)))
        if group_size:
            self._check_group_size(group_size)
            written = ", ".join(map(str, group_size))
            edits.append(_replacement(self._function.attributes.get("workgroup_size", []), written))
        text = _Text(self._source, [edit for edit in edits if edit])
        try:
            kernel = _C.Kernel(name, text.text, name, len(self._storages), self._read_only, len(self._uniforms))
        except RuntimeError as error:
            raise text.error(str(error), name) from None
        return _Program(kernel, group_size or self._text_size or (0, 0, 0))

    def _check_group_size(self, size: tuple[int, int, int]) -> None:
        limits = _limits()
        most = tuple(limits[f"maxComputeWorkgroupSize{axis}"] for axis in "XYZ")
        total = limits["maxComputeInvocationsPerWorkgroup"]
        fits = all(1 <= one <= high for one, high in zip(size, most, strict=True))
        if not fits or size[0] * size[1] * size[2] > total:
            raise ValueError(
                f"{self.__name__}(): the group_size {size} is not between 1 and {most} with at most {total} in all"
            )

    def __call__(self, *args: Any, threads: Size | None = None, group_size: Size | None = None) -> None:
        """Runs it in at least `threads` invocations: whole workgroups, so a kernel checks its bounds.

        `threads`: one to three numbers; by default one invocation per element of the first tensor.
        `group_size`: instead of the text's ``@workgroup_size``; a size that is new is compiled first.
        """
        name = self.__name__
        if len(args) != len(self._arguments):
            wanted = ", ".join(argument.name for argument in self._arguments)
            raise TypeError(f"{name}() takes {len(self._arguments)} arguments ({wanted}), but {len(args)} were given")
        given = dict(zip((argument.name for argument in self._arguments), args, strict=True))
        tensors = [self._tensor(argument, given[argument.name]) for argument in self._storages]
        words = self._words(given)
        if threads is None:
            counts = (next(value for value in args if isinstance(value, torch.Tensor)).numel(), 1, 1)
        else:
            counts = _triple(threads, f"{name}(): threads")
            if min(counts) < 0:
                raise ValueError(f"{name}(): threads may not be negative, as {threads!r} is")
        program = self._program(None if group_size is None else _triple(group_size, f"{name}(): group_size"))
        if not program.group_size[0]:
            raise ValueError(f"{name}(): its @workgroup_size is an expression, so group_size must be given")
        grid = [(count + size - 1) // size for count, size in zip(counts, program.group_size, strict=True)]
        most = _limits()["maxComputeWorkgroupsPerDimension"]
        if max(grid) > most:
            raise ValueError(
                f"{name}(): {counts} threads in workgroups of {program.group_size} are {max(grid)} workgroups along a "
                f"dimension, and the adapter runs {most}: take a larger group_size, or spread threads over dimensions"
            )
        if 0 in counts:
            return
        self._check_sizes(tensors)
        program.kernel(tensors, words, grid)
        written = [tensor for tensor, storage in zip(tensors, self._storages, strict=True) if storage.writes]
        torch.autograd.graph.increment_version([tensor for tensor in written if not tensor.is_inference()])

    def _tensor(self, argument: Resource, value: Any) -> torch.Tensor:
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{self.__name__}(): {argument.name} takes a tensor, not {type(value).__name__}")
        if value.device.type != "webgpu":
            raise ValueError(
                f"{self.__name__}(): {argument.name} takes a tensor on webgpu, but it is on {value.device}"
            )
        if value.layout != torch.strided:
            raise ValueError(f"{self.__name__}(): {argument.name} takes a strided tensor, not {value.layout}")
        return value

    def _check_sizes(self, tensors: list[torch.Tensor]) -> None:
        most = _limits()["maxStorageBufferBindingSize"]
        for argument, tensor in zip(self._storages, tensors, strict=True):
            size = _span_bytes(tensor)
            least = argument.type.size if argument.type else 4
            if size < least:
                raise ValueError(
                    f"{self.__name__}(): {argument.name} has {size} bytes, but its type in the text needs {least}"
                )
            if size > most:
                raise ValueError(
                    f"{self.__name__}(): {argument.name} spans {size} bytes, more than the adapter's "
                    f"maxStorageBufferBindingSize, {most}"
                )

    def _words(self, given: dict[str, Any]) -> tuple[int, ...]:
        if not self._uniforms:
            return ()
        sizes = [argument.type.size for argument in self._uniforms if argument.type]
        last = 4 * _SLOT_WORDS * (len(sizes) - 1)
        buffer = bytearray(last + (sizes[-1] + 3) // 4 * 4)
        for index, argument in enumerate(self._uniforms):
            if argument.type:
                what = f"{self.__name__}(): {argument.name}"
                _pack(buffer, 4 * _SLOT_WORDS * index, argument.type, given[argument.name], what)
        return struct.unpack(f"<{len(buffer) // 4}I", buffer)


def _split(tokens: list[Token]) -> list[list[Token]]:
    """The expressions between commas."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _replacement(tokens: list[Token], text: str) -> tuple[int, int, str] | None:
    return (tokens[0].begin, tokens[-1].end, text) if tokens else None


class ShaderLibrary:
    """The kernels of one text, as attributes."""

    def __init__(self, source: str) -> None:
        if not isinstance(source, str):
            raise TypeError(f"compile_shader() takes the text of a shader, not {type(source).__name__}")
        module = wgsl.parse(source)
        names = [name for name, function in module.functions.items() if function.is_entry_point]
        if not names:
            try:  # a text that is wrong may hide them
                _C.Kernel("shader", source, "main", 1, 0, 0)
            except RuntimeError as error:
                problem = _Text(source, []).error(str(error), "the text")
                if isinstance(problem, SyntaxError):
                    raise problem from None
            raise ValueError("compile_shader: the text declares no entry point, that is no `@compute ... fn`")
        self._kernels = {name: ShaderKernel(source, module, name) for name in names}
        # Plain attributes: torch.compile looks them up by itself, and leaves its graph only for a kernel's call.
        self.__dict__.update(self._kernels)

    def __getattr__(self, name: str) -> ShaderKernel:
        raise AttributeError(f"the shader has no kernel {name!r}, only {', '.join(self.__dict__.get('_kernels', ()))}")

    def __dir__(self) -> list[str]:
        return sorted(self._kernels)

    def __repr__(self) -> str:
        return f"<webgpu shader of {', '.join(self._kernels)}>"


def compile_shader(source: str) -> ShaderLibrary:
    """Compiles a text in WGSL. Every ``@compute`` function in it is a kernel that takes tensors and numbers::

        lib = torch.webgpu.compile_shader('''
            @group(0) @binding(0) var<storage, read> x: array<f32>;
            @group(0) @binding(1) var<storage, read_write> out: array<f32>;
            @group(0) @binding(2) var<uniform> alpha: f32;
            @compute @workgroup_size(64)
            fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
                if (id.x < arrayLength(&x)) { out[id.x] = alpha * x[id.x]; }
            }
        ''')
        lib.scale(x, out, 3.5)

    A kernel's arguments are the variables with @group and @binding that it uses, in the order of their declarations:
    a tensor for ``var<storage>``, a number (or a sequence of them for a vector, an array or a struct) for
    ``var<uniform>``. Numbers of groups and bindings are free. A tensor's memory is bound from its first element to its
    last, so strides are the kernel's concern. Gradients come with ``torch.autograd.Function`` or
    ``torch.library.custom_op``.

    Raises SyntaxError with the line and column in `source` where the driver's compiler refuses it.
    """
    return ShaderLibrary(source)
