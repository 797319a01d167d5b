"""mode="max-autotune": the kernels that can compute a product or a convolution are timed, and the fastest is taken.

The times are kept in Inductor's cache of autotuning, under the key of the code generator and the adapter.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch._inductor import config
from torch._inductor.codecache import PersistentCache
from torch._inductor.runtime.benchmarking import benchmarker
from torch._subclasses.fake_tensor import unset_fake_temporarily

from torch_webgpu import _C
from torch_webgpu.inductor.device_ops import cache_key

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

    def hash_key(self) -> str:
        return self.name


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
    key = repr((kind, [str(x.get_dtype()) for x in inputs], shapes, shown, cache_key()))
    with unset_fake_temporarily():
        tensors = [torch.empty_strided(*shape, dtype=x.get_dtype(), device="webgpu").fill_(1)
                   for shape, x in zip(shapes, inputs, strict=True)]  # fmt: skip
        candidates = [Candidate(*found) for found in getattr(_C, f"{kind}_candidates")(*tensors, *shown)]
        out = torch.empty([int(n) for n in sizes], device="webgpu")
        measure = functools.partial(_measure, kind, tensors, shown, out)
        times: Any = PersistentCache().lookup(candidates, f"webgpu_{kind}", key, measure)  # type: ignore[arg-type]
    best = min(candidates, key=lambda c: times[c])
    log.info("%s %s: %s of %s", kind, shapes, best.name, {c.name: t for c, t in times.items()})
    return best.number


def _flat(part: Any) -> Sequence[Any]:
    return [n for numbers in part for n in numbers] if isinstance(part, tuple) else [part]


@functools.cache
def _epilogue() -> Any:
    return _C.Epilogue("autotune", _ELEMENTS, _FOURS, (), (1,))


def run(kind: str, candidate: int, tensors: Sequence[Any], details: Sequence[Any], out: torch.Tensor) -> None:
    """One kernel's product or convolution."""
    getattr(_epilogue(), kind)(*tensors, *details, [out], 0, [], candidate)


def _measure(
    kind: str, tensors: Sequence[Any], details: Sequence[Any], out: torch.Tensor, candidates: Sequence[Candidate]
) -> dict[Candidate, float]:
    """A kernel that does not compile raises here: it is not passed over."""
    times = {}
    for candidate in candidates:
        call: Callable[[], None] = functools.partial(run, kind, candidate.number, tensors, details, out)
        times[candidate] = benchmarker.benchmark(call, (), {}, device="webgpu", warmup=2, rep=7)
        COUNTS["timed"] += 1
    return times


# How many kernels this process has timed.
COUNTS = {"timed": 0}
