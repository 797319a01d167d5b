"""What is judged. `python -m tools.gpu_judge.workloads NAME...` runs them and prints their launches as JSON."""

import json
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tools.gpu_judge.model import Launch, Work

Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Workload:
    make: Callable[[], Tensors]
    run: Callable[..., Any]
    work: Callable[[Launch], Work]
    share: float = 0.0  # of the card's limit, at least: what the test asks for


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, device="webgpu", dtype=dtype)


def slices_of(label: str, depth: int) -> tuple[float, ...]:
    """How often the loop over K of a tiled product runs."""
    found = re.search(r"slices of (\d+)", label)
    return (math.ceil(depth / int(found[1])),) if found else ()


def product(
    m: int, k: int, n: int, layout: str = "nn", dtype: torch.dtype = torch.float32, share: float = 0
) -> Workload:
    def make() -> Tensors:
        a = empty(m, k, dtype=dtype) if layout[0] == "n" else empty(k, m, dtype=dtype).t()
        b = empty(k, n, dtype=dtype) if layout[1] == "n" else empty(n, k, dtype=dtype).t()
        return a, b

    def work(launch: Launch) -> Work:
        if not launch.label.startswith("matmul"):  # joins parts
            return Work(0, 4 * m * n)
        return Work(m * n * k, dtype.itemsize * (m * k + k * n + m * n), slices_of(launch.label, k))

    return Workload(make, torch.matmul, work, share)


def rows(run: Callable[[torch.Tensor], Any], m: int, n: int, moved: float, share: float = 0) -> Workload:
    """Moves so many times the matrix's bytes."""
    return Workload(lambda: (empty(m, n),), run, lambda _: Work(0, 4 * m * n * moved), share)


HALF = torch.float16
TABLE: dict[str, Workload] = {
    **{f"matmul_{n}_{x}": product(n, n, n, x) for n in (512, 1024, 4096) for x in ("nn", "nt", "tn")},
    **{f"matmul_4096_{x}_f16": product(4096, 4096, 4096, x, HALF) for x in ("nn", "nt")},
    "matmul_64x4096x64": product(64, 4096, 64),
    **{f"linear_{m}_{x}": product(m, 4096, 4096, x) for m in (1, 4, 16) for x in ("nn", "nt")},
    **{f"linear_{m}_{x}_f16": product(m, 4096, 4096, x, HALF) for m in (1, 4, 16) for x in ("nn", "nt")},
    "sum_first": rows(lambda x: x.sum(0), 4096, 4096, 1),
    "sum_first_long": rows(lambda x: x.sum(0), 32768, 1024, 1),
    "sum_all": rows(lambda x: x.sum(), 4096, 4096, 1),
    "cumsum": rows(lambda x: x.cumsum(-1), 4096, 4096, 2),
    "transpose": rows(lambda x: x.t().contiguous(), 4096, 4096, 2),
    "add": rows(lambda x: x + 1, 4096, 4096, 2),
}


def texts_in(dump: str) -> list[tuple[str, str]]:
    """Labels and texts of the kernels in the order of their first use."""
    pieces = re.split(r"^// (.*)\n(?=@group\(0\)|enable |diagnostic)", dump, flags=re.MULTILINE)
    return list(zip(pieces[1::2], pieces[2::2], strict=True))


def record(names: list[str]) -> dict[str, list[dict[str, Any]]]:
    import torch_webgpu  # noqa: F401
    from torch_webgpu import _C

    dump = Path(os.environ["TORCH_WEBGPU_DUMP"])
    known: dict[str, list[str]] = {}
    recorded = {}
    for name in names:
        inputs = TABLE[name].make()
        before = dump.stat().st_size if dump.exists() else 0
        profile = _C.Profile()
        profile.start()
        TABLE[name].run(*inputs)
        profile.stop()
        new: dict[str, list[str]] = {}
        for label, text in texts_in(dump.read_text()[before:]) if dump.exists() else []:
            new.setdefault(label, []).append(text)
        known |= new
        recorded[name] = [
            {"label": row[0], "wgsl": text_of(row[0], known, profile.rows, i), "grid": row[2]}
            for i, row in enumerate(profile.rows)
        ]
    return recorded


def text_of(label: str, known: dict[str, list[str]], rows: list[Any], index: int) -> str:
    """Kernels that share a label were compiled in the order in which they were launched."""
    texts = known[label]
    same = [i for i, row in enumerate(rows) if row[0] == label]
    if len(texts) > 1 and len(texts) != len(same):
        raise RuntimeError(f"{len(texts)} kernels have the label {label}, and {len(same)} launches")
    return texts[same.index(index)] if len(texts) > 1 else texts[0]


if __name__ == "__main__":
    print(json.dumps(record(sys.argv[1:])))
    sys.stdout.flush()
    os._exit(0)
