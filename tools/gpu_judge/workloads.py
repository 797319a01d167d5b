"""What is judged. `python -m tools.gpu_judge.workloads NAME...` runs them and prints their launches as JSON."""

import json
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tools.gpu_judge.model import Launch, Work

Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Workload:
    make: Callable[[], Tensors]
    run: Callable[..., Any]
    whole: Work  # what all launches together have to do
    work: Callable[[list[Launch]], list[Work]]
    share: float = 0.0  # of the card's limit, at least: what the test asks for


HALF = torch.float16
CACHED = 4 << 20  # what one launch writes and the next one reads need not go through memory


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, device="webgpu", dtype=dtype)


def trips_of_product(launch: Launch, depth: int) -> tuple[float, ...]:
    """Of the loops over the inner side, where the kernel's label says how long their steps are."""
    if found := re.search(r"slices of (\d+)", launch.label):
        return (math.ceil(depth / int(found[1])),)
    if found := re.search(r"thin (\d+) (along|across)", launch.label):
        rows, walk = int(found[1]), found[2]
        unroll = (1 if rows > 4 else 2) if walk == "along" else (2 if rows == 1 else 1)
        teams = 16 if walk == "along" else 8 if rows > 4 else 4
        blocks, rest = divmod(depth // 4, teams * unroll)
        return (blocks, math.ceil(rest / teams))
    return (1, depth / 4 / launch.lanes) if "vector" in launch.label else ()


def product(
    m: int, k: int, n: int, layout: str = "nn", dtype: torch.dtype = torch.float32, share: float = 0
) -> Workload:
    def make() -> Tensors:
        a = empty(m, k, dtype=dtype) if layout[0] == "n" else empty(k, m, dtype=dtype).t()
        b = empty(k, n, dtype=dtype) if layout[1] == "n" else empty(n, k, dtype=dtype).t()
        return a, b

    whole = Work(m * n * k, dtype.itemsize * (m * k + k * n + m * n))

    def work(launches: list[Launch]) -> list[Work]:
        first = launches[0]
        parts = first.grid[2]
        if parts == 1:
            return [Work(whole.fma, whole.bytes, trips_of_product(first, k))]
        between = 4 * parts * m * n
        if between <= CACHED:
            between = 0
        trips = (parts // 16, math.ceil(parts % 16 / 4))  # 16 at a time, then 4
        join = Work(0, between + m * n * dtype.itemsize, trips)
        return [Work(whole.fma, dtype.itemsize * (m * k + k * n) + between, trips_of_product(first, k // parts)), join]

    return Workload(make, torch.matmul, whole, work, share)


def trips_of_fold(items: float) -> tuple[float, ...]:
    """Of the loops over a lane's items: tasks, blocks of 16 times eight items, the rest."""
    full = items // 8
    return (1, full / 16, items - 8 * full)


def sum_of(run: Callable[[torch.Tensor], Any], m: int, n: int, first: bool, share: float) -> Workload:
    """Over the first dimension by lines of lanes, over all by workgroups whose lanes join by halves."""
    whole = Work(0, 4 * m * n)

    def work(launches: list[Launch]) -> list[Work]:
        main = launches[0]
        splits = main.grid[1] if first else main.grid[0]
        items = m / splits / 4 if first else m * n / 4 / splits / main.lanes
        works = [Work(0, whole.bytes, trips_of_fold(items))]
        if len(launches) == 2:
            between = 4 * splits * (n if first else 1)
            items = splits / 4 if first else splits / 256
            works.append(Work(0, 0 if between <= CACHED else between, trips_of_fold(items)))
        return works

    return Workload(lambda: (empty(m, n),), run, whole, work, share)


def scan(run: Callable[[torch.Tensor], Any], m: int, n: int, share: float) -> Workload:
    """Of each row by a workgroup, or of one row by spans: their sums, the sums of those, and all."""
    whole = Work(0, 8 * m * n)

    def work(launches: list[Launch]) -> list[Work]:
        steps = n / 4 / (4 * launches[0].lanes)
        if len(launches) == 1:
            return [Work(0, whole.bytes, (1, steps))]
        spans = launches[0].grid[0]
        own = (1, steps / spans)
        return [Work(0, 4 * n, own), Work(0, 0, (1, spans / 4 / launches[1].lanes)), Work(0, whole.bytes, own)]

    return Workload(lambda: (empty(m, n),), run, whole, work, share)


def rows(
    run: Callable[[torch.Tensor], Any], m: int, n: int, moved: float, share: float = 0, trips: tuple[float, ...] = ()
) -> Workload:
    """Moves so many times the matrix's bytes."""
    whole = Work(0, 4 * m * n * moved, trips)
    return Workload(lambda: (empty(m, n),), run, whole, lambda launches: [whole] * len(launches), share)


@dataclass(frozen=True)
class Images:
    """A convolution over square images. `channels` are those that go in and come out."""

    images: int
    channels: tuple[int, int]
    size: int
    kernel: int = 3
    stride: int = 1
    dtype: torch.dtype = torch.float32
    last: bool = False  # channels_last

    @property
    def out(self) -> int:
        return -(-self.size // self.stride)

    @property
    def padding(self) -> int:
        return self.kernel // 2

    @property
    def fma(self) -> float:
        """Of the forward, and of each gradient."""
        return self.images * self.out**2 * math.prod(self.channels) * self.kernel**2

    @property
    def bytes(self) -> float:
        taken, given = self.channels
        pixels = self.images * (taken * self.size**2 + given * self.out**2)
        return self.dtype.itemsize * (pixels + taken * given * self.kernel**2)

    def tensors(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The images, the weight, and a gradient of the result."""
        taken, given = self.channels
        layout = torch.channels_last if self.last else torch.contiguous_format
        x, weight, grad = (
            torch.empty(size, device="webgpu", dtype=self.dtype, memory_format=layout)
            for size in (
                (self.images, taken, self.size, self.size),
                (given, taken, self.kernel, self.kernel),
                (self.images, given, self.out, self.out),
            )
        )
        return x, weight, grad


def convolution(images: Images, what: str = "forward", share: float = 0) -> Workload:
    """Or the gradient of its `input` or of its `weight`."""
    whole = Work(images.fma, images.bytes)
    depths = {
        "forward": images.channels[0] * images.kernel**2,
        "input": images.channels[1] * images.kernel**2 / images.stride**2,  # on average over the phases of the stride
        "weight": images.images * images.out**2,
    }

    def run(x: torch.Tensor, weight: torch.Tensor, grad: torch.Tensor) -> Any:
        window = [images.stride] * 2, [images.padding] * 2, [1, 1], False, [0, 0], 1
        if what == "forward":
            return torch.ops.aten.convolution(x, weight, None, *window)
        mask = [what == "input", what == "weight", False]
        return torch.ops.aten.convolution_backward(grad, x, weight, None, *window, mask)

    def work(launches: list[Launch]) -> list[Work]:
        works = []
        parts = 1
        for launch in launches:
            if found := re.search(r"slices of (\d+)", launch.label):
                parts = launch.grid[2] if what == "weight" else 1
                works.append(Work(whole.fma, whole.bytes, (math.ceil(depths[what] / parts / int(found[1])),)))
            elif "join" in launch.label:
                works.append(Work(0, 0, (parts // 16, math.ceil(parts % 16 / 4))))
            else:  # the weight in the order in which it is read
                works.append(Work(0, 0, (1,)))
        return works

    return Workload(images.tensors, run, whole, work, share)


def sort_of(n: int, share: float = 0) -> Workload:
    """Of a row of float32: each pass counts digits and moves elements and indices."""
    whole = Work(0, (4 + 4 + 8) * n)

    def work(launches: list[Launch]) -> list[Work]:
        works = []
        blocks = launches[0].grid[0]
        for i, launch in enumerate(launches):
            if "sort_count" in launch.label:
                works.append(Work(0, 4 * n, (1,)))
            elif "sort_offsets" in launch.label:
                works.append(Work(0, 0, (1, math.ceil(blocks / launch.lanes))))
            else:  # the first has no indices to read, the last writes those of 8 bytes
                moved = 12 if i == 2 else 20 if i == len(launches) - 1 else 16
                works.append(Work(0, moved * n, (1,)))
        return works

    return Workload(lambda: (empty(1, n),), lambda x: x.sort(), whole, work, share)


def topk_of(m: int, n: int, k: int, share: float) -> Workload:
    """Rounds that select, of which the first reads the rows, and a sort of what is left."""
    whole = Work(0, 4 * m * n)
    digits = 3  # that tell which numbers of a normal distribution belong

    def work(launches: list[Launch]) -> list[Work]:
        works = []
        for i, launch in enumerate(launches):
            bits = int(re.findall(r"variant (\d+)", launch.label)[0]) >> 8
            sorts = (1, bits, (bits + 1) / 2, math.ceil(k / launch.lanes))
            works.append(Work(0, 0 if i else whole.bytes, (1, digits, 0) if "select" in launch.label else sorts))
        return works

    return Workload(lambda: (empty(m, n),), lambda x: x.topk(k), whole, work, share)


def norm(call: Callable[..., torch.Tensor], m: int, n: int, share: float) -> Workload:
    """By teams, of which a lane has two quads: the loop that folds takes one of them, and that which writes both."""
    return rows(lambda x: call(x, (n,)), m, n, 2, share, (1, 1, 2))


def norm_backward(m: int, n: int, share: float) -> Workload:
    whole = Work(0, 3 * 4 * m * n, (1, 2, 2))
    return Workload(
        lambda: [empty(m, n), empty(m, n), empty(m, 1), empty(m, 1)],
        lambda grad, x, mean, scale: torch.ops.aten.native_layer_norm_backward(
            grad, x, [n], mean, scale, None, None, [True, False, False]
        ),
        whole,
        lambda launches: [whole] * len(launches),
        share,
    )


def transpose(dtype: torch.dtype, share: float) -> Workload:
    """Of elements smaller than a word."""
    whole = Work(0, 2 * dtype.itemsize * 4096 * 4096, (1,))
    return Workload(
        lambda: (empty(4096, 4096, dtype=dtype),),
        lambda x: x.t().contiguous(),
        whole,
        lambda launches: [whole] * len(launches),
        share,
    )


PARTS = 4  # of the keys of `attention_64_short`


def attention(
    head: int, dtype: torch.dtype = torch.float32, queries: int = 2048, *, causal: bool = True, share: float = 0
) -> Workload:
    """Of 8 heads; a causal one has half of the products."""
    seen = queries * (queries + 1) / 2 if causal else queries * queries
    whole = Work(8 * 2 * seen * head, 8 * 4 * queries * head * dtype.itemsize)
    return Workload(
        lambda: [empty(1, 8, queries, head, dtype=dtype) for _ in range(3)],
        lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal),
        whole,
        lambda launches: [
            Work(whole.fma, whole.bytes, trips_of_attention(launches[0], queries, head, causal)),
            *(Work(0, 0, (1, PARTS, PARTS)) for _ in launches[1:]),
        ],
        share,
    )


def attention_backward(
    head: int, dtype: torch.dtype = torch.float32, queries: int = 2048, share: float = 0
) -> Workload:
    """Of 8 causal heads: three products by queries, four by keys."""
    seen = 8 * queries * (queries + 1) / 2 * head
    size = 8 * queries * head * dtype.itemsize

    def work(launches: list[Launch]) -> list[Work]:
        return [
            Work(3 * seen, 6 * size, trips_of_attention(launches[0], queries, head, True)),
            Work(4 * seen, 6 * size, trips_of_attention(launches[1], queries, head, True)),
        ]

    def make() -> Tensors:
        q, k, v, grad = (empty(1, 8, queries, head, dtype=dtype).requires_grad_() for _ in range(4))
        return q, k, v, grad.detach(), torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grad: torch.Tensor, out: torch.Tensor) -> Any:
        return torch.autograd.grad(out, (q, k, v), grad)

    return Workload(make, run, Work(7 * seen, 12 * size), work, share)


def masked_attention(head: int, dtype: torch.dtype = torch.float32, dropout: float = 0) -> Workload:
    """Forward and backward with a mask: what else a kernel has to hold beside its sums."""
    whole = Work(7 * 8 * 1024 * 1024 * head)

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, grad: torch.Tensor) -> Any:
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        return torch.autograd.grad(out, (q, k, v), grad)

    def make() -> Tensors:
        q, k, v = (empty(1, 8, 1024, head, dtype=dtype).requires_grad_() for _ in range(3))
        return q, k, v, empty(1024, 1024, dtype=dtype), empty(1, 8, 1024, head, dtype=dtype)

    return Workload(make, run, whole, lambda launches: [whole] * len(launches))


def attention_decode(
    head: int, dtype: torch.dtype = HALF, keys: int = 4096, group: int = 1, share: float = 0
) -> Workload:
    """One query of 32 heads, of which `group` share keys and values."""
    kv_heads = 32 // group
    size = kv_heads * keys * head * dtype.itemsize

    def make() -> Tensors:
        k, v = (empty(1, kv_heads, keys, head, dtype=dtype) for _ in range(2))
        return empty(1, 32, 1, head, dtype=dtype), k, v

    def work(launches: list[Launch]) -> list[Work]:
        parts = launches[0].grid[0] // kv_heads
        slots = 256 // max(8, head // 4)
        between = 4 * 32 * parts * head
        join = Work(0, 0 if between <= CACHED else between, (1, parts / slots, math.ceil(parts / slots / 4)))
        return [Work(0, 2 * size, (1, group)), join]

    return Workload(
        make,
        lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        Work(0, 2 * size),
        work,
        share,
    )


def trips_of_attention(launch: Launch, queries: int, head: int, causal: bool) -> tuple[float, ...]:
    """Of the loops over tasks, tiles of 32 and, for each slice of a head and each product, the quads of the slice."""
    found = re.search(r"attention_(\w+)\(\w+\), (\d+) rows of up to \d+ staged", launch.label)
    if not found:
        return ()
    kind, rows = found[1], int(found[2])
    starts = range(0, queries, rows)
    parts = launch.grid[0] / (8 * len(starts))
    tiles = sum(math.ceil((start + rows) / 32) if causal else queries / 32 for start in starts) / len(starts) / parts
    packed = "vec2<u32>" in re.search(r"alias Word = .*", launch.wgsl)[0]  # type: ignore[index]
    step = 1 if head % 16 else 4 if packed else 2
    slices = [min(16, head / 4 - first) / step for first in range(0, math.ceil(head / 4), 16)]
    if kind == "forward":
        return (1, tiles, *slices)
    if kind == "backward_query":
        return (1, math.ceil(head / 32), tiles, *slices, *slices)
    return (1, 1, tiles, *slices, *slices)


def convolutions() -> dict[str, Workload]:
    """A name says the window, then what is computed, the layout and the dtype."""
    images = Images(8, (64, 64), 56)
    small, strided = Images(8, (128, 128), 28), Images(8, (64, 128), 56, stride=2)
    found = {
        "1x1": convolution(replace(images, kernel=1), share=0.9),
        "1x1_weight": convolution(replace(images, kernel=1), "weight", 0.65),
        "1x1_256": convolution(Images(8, (256, 256), 14, 1), share=0.7),
        "3x3": convolution(images, share=0.8),
        "3x3_128": convolution(small, share=0.8),
        "3x3_strided": convolution(strided, share=0.8),
        "3x3_first": convolution(Images(8, (3, 64), 112), share=0.8),
        "3x3_input": convolution(images, "input", 0.8),
        "3x3_strided_input": convolution(strided, "input", 0.75),
        "3x3_weight": convolution(images, "weight", 0.65),
        "3x3_128_weight": convolution(small, "weight", 0.65),
        "3x3_strided_weight": convolution(strided, "weight", 0.65),
    }
    for name, share in (("1x1", 0.65), ("3x3", 0.75), ("3x3_input", 0.75), ("3x3_weight", 0.65)):
        what = name.partition("_")[2] or "forward"
        own = replace(images, kernel=int(name[0]))
        found[f"{name}_last"] = convolution(replace(own, last=True), what, share)
        found[f"{name}_f16"] = convolution(replace(own, dtype=HALF), what, share)
        found[f"{name}_last_f16"] = convolution(replace(own, last=True, dtype=HALF), what, share)
    return {f"convolution_{name}": workload for name, workload in found.items()}


SHARES = {512: 0.7, 1024: 0.8, 4096: 0.88}
LAYOUTS = ("nn", "nt", "tn")
TABLE: dict[str, Workload] = {
    **{f"matmul_{n}_{x}": product(n, n, n, x, share=share) for n, share in SHARES.items() for x in LAYOUTS},
    **{f"matmul_{n}_{x}_f16": product(n, n, n, x, HALF, share) for n, share in SHARES.items() for x in LAYOUTS},
    **{f"matmul_1023_{x}": product(1023, 1023, 1023, x, share=0.7) for x in LAYOUTS},
    "matmul_64x4096x64": product(64, 4096, 64, share=0.6),
    **{f"linear_{m}_{x}": product(m, 4096, 4096, x, share=0.9) for m in (1, 4, 16) for x in ("nn", "nt")},
    **{f"linear_{m}_{x}_f16": product(m, 4096, 4096, x, HALF, 0.9) for m in (1, 4, 16) for x in ("nn", "nt")},
    **{f"attention_{head}": attention(head, share=0.75) for head in (64, 128)},
    **{f"attention_{head}_f16": attention(head, HALF, share=0.75) for head in (64, 128)},
    **{f"masked_attention_{head}": masked_attention(head) for head in (64, 128)},
    "masked_attention_128_dropout": masked_attention(128, dropout=0.1),
    "masked_attention_128_bf16": masked_attention(128, torch.bfloat16),
    "masked_attention_100": masked_attention(100),
    "attention_64_short": attention(64, queries=512, share=0.5),
    "attention_64_whole": attention(64, causal=False, share=0.75),
    **{f"attention_backward_{head}": attention_backward(head, share=0.75) for head in (64, 128)},
    **{f"attention_backward_{head}_f16": attention_backward(head, HALF, share=0.75) for head in (64, 128)},
    **{f"attention_decode_{head}_f16": attention_decode(head, share=0.9) for head in (64, 128)},
    **{f"attention_decode_{head}": attention_decode(head, torch.float32, share=0.9) for head in (64, 128)},
    "attention_decode_128_f16_grouped": attention_decode(128, group=8, keys=16384, share=0.7),
    **convolutions(),
    "sum_first": sum_of(lambda x: x.sum(0), 4096, 4096, True, 0.77),
    "sum_first_long": sum_of(lambda x: x.sum(0), 32768, 1024, True, 0.77),
    "sum_all": sum_of(lambda x: x.sum(), 4096, 4096, False, 0.77),
    "cumsum": scan(lambda x: x.cumsum(-1), 4096, 4096, 0.77),
    "cumsum_long": scan(lambda x: x.cumsum(-1), 1, 1 << 24, 0.62),
    "transpose": rows(lambda x: x.t().contiguous(), 4096, 4096, 2, 0.77, trips=(1,)),
    "transpose_f16": transpose(torch.float16, 0.77),
    "transpose_u8": transpose(torch.uint8, 0.7),
    # A lane of a team has two quads of its row, one of a workgroup four.
    **{f"sum_{n}": rows(lambda x: x.sum(-1), (1 << 24) // n, n, 1, 0.77, trips_of_fold(2)) for n in (64, 256)},
    "sum_4096": rows(lambda x: x.sum(-1), 4096, 4096, 1, 0.77, trips_of_fold(4)),
    **{f"softmax_{n}": rows(lambda x: x.softmax(-1), (1 << 24) // n, n, 2, 0.77, (1, 1, 1)) for n in (64, 256)},
    "softmax_4096": rows(lambda x: x.softmax(-1), 4096, 4096, 2, 0.77, (1, 8, 8)),
    "sort": sort_of(1 << 20),
    **{f"topk_{k}": topk_of(64, 1 << 17, k, share) for k, share in ((50, 0.5), (1024, 0.3))},
    **{f"layer_norm_{n}": norm(torch.nn.functional.layer_norm, (1 << 24) // n, n, 0.77) for n in (64, 256)},
    **{f"rms_norm_{n}": norm(torch.nn.functional.rms_norm, (1 << 24) // n, n, 0.77) for n in (64, 256)},
    **{f"layer_norm_backward_{n}": norm_backward((1 << 24) // n, n, 0.77) for n in (64, 256)},
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
