"""mode="max-autotune": the kernels that can compute a product or a convolution are timed, and the fastest is taken.

They are timed as eager's are, and their times are kept with those (torch_webgpu/tune/), under the code generator's key.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import logging
from collections.abc import Sequence
from typing import Any

import sympy
import torch
from torch._inductor import config
from torch._subclasses.fake_tensor import unset_fake_temporarily

from torch_webgpu import _C
from torch_webgpu.inductor.device_ops import cache_key
from torch_webgpu.tune.measure import Tensors, hold
from torch_webgpu.tune.store import Store

log = logging.getLogger(__name__)

# The launcher chooses.
DEFAULT = -1

# An epilogue that stores what the kernel computed.
_SLOT = _C.epilogue_places["matmul"][0]
_BINDING = f"@group(0) @binding({_C.epilogue_places['matmul'][0]}) var<storage, read_write> out: array<u32>;\n"
_ELEMENTS = f"{_BINDING}fn epilogue(index: u32, product: f32) {{ out[index] = bitcast<u32>(product); }}"
_FOURS = (
    f"{_BINDING}fn epilogue_four(index: u32, product: vec4<f32>) {{\n"
    "  for (var j = 0u; j < 4u; j++) { out[index + j] = bitcast<u32>(product[j]); }\n}"
)


@dataclasses.dataclass(frozen=True)
class Candidate:
    number: int
    name: str


@dataclasses.dataclass
class TemplateContest:
    """Of the kernels that can compute a product or a convolution of these operands; see Contest."""

    family: str
    text: str
    operands: Tensors
    details: Sequence[Any]
    sizes: Sequence[int]
    outputs = 1

    @property
    def key(self) -> int:
        return int.from_bytes(hashlib.sha256(self.text.encode()).digest()[:8])

    @functools.cached_property
    def kernels(self) -> Sequence[Candidate]:
        return [Candidate(*found) for found in getattr(_C, f"{self.family}_candidates")(*self.operands, *self.details)]

    @property
    def reference(self) -> int:
        return self.kernels[-1].number

    def scratch(self) -> Tensors:
        return [torch.empty(self.sizes, device="webgpu"), *self.operands]

    def run(self, number: int, tensors: Tensors) -> None:
        run(self.family, number, tensors[1:], self.details, tensors[0])

    def prepare(self, number: int, tensors: Tensors) -> None:
        self.run(number, tensors)
        _C.synchronize()


def is_wanted() -> bool:
    return bool(config.max_autotune or config.max_autotune_gemm)


def choose(kind: str, inputs: Sequence[Any], sizes: Sequence[Any], details: Sequence[Sequence[Any]] = ()) -> int:
    """The number of the fastest kernel for the inputs, of a result of these sizes."""
    if not is_wanted():
        return DEFAULT
    for x in inputs:
        x.freeze_layout()
    layouts = [(x.get_size(), x.get_stride()) for x in inputs]
    if any(not sympy.sympify(n).is_Integer for part in (*sizes, *layouts) for n in _flat(part)):
        log.info("%s is not timed: its sizes are not known", kind)
        return DEFAULT
    shapes = [(tuple(map(int, size)), tuple(map(int, stride))) for size, stride in layouts]
    shown = [[int(v) for v in part] for part in details]
    text = repr((kind, [str(x.get_dtype()) for x in inputs], shapes, shown, cache_key()))
    with unset_fake_temporarily():
        tensors = [_numbers(torch.empty_strided(*shape, dtype=x.get_dtype(), device="webgpu"))
                   for shape, x in zip(shapes, inputs, strict=True)]  # fmt: skip
        contest = TemplateContest(kind, text, tensors, shown, [int(n) for n in sizes])
        store = Store()
        choice = store.choices.get(contest.key)
        if choice is None:
            with store.lock():
                choice = hold(contest, store)
    if choice is None:
        return DEFAULT
    log.info("%s %s: %s of %s", kind, shapes, choice.number, choice.times_ms)
    return choice.number


def _numbers(tensor: torch.Tensor) -> torch.Tensor:
    """Its elements set to numbers that differ along every dimension, and that no generator has to give."""
    count = torch.arange(tensor.numel(), dtype=torch.int32, device="webgpu").remainder(251)
    return tensor.copy_((count.float() / 251 - 0.5 if tensor.is_floating_point() else count % 7).view(tensor.shape))


def _flat(part: Any) -> Sequence[Any]:
    return [n for numbers in part for n in numbers] if isinstance(part, tuple) else [part]


@functools.cache
def _epilogue() -> Any:
    return _C.Epilogue("autotune", _ELEMENTS, _FOURS, (), (1,))


def run(kind: str, candidate: int, tensors: Tensors, details: Sequence[Any], out: torch.Tensor | None) -> None:
    """One kernel's product or convolution."""
    getattr(_epilogue(), kind)(*tensors, *details, [out], 0, [], candidate)
