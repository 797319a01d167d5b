"""python -m torch_webgpu.tune: times the kernels of common launches, or of given ones, and remembers the fastest.

A launch is a family and its sizes: products ROWSxDEPTHxCOLUMNS, of batches BATCHxROWSxDEPTHxCOLUMNS; rows of a norm
ROWSxLENGTH; softmax over the last of up to three sizes; attention BATCHxHEADSxQUERIESxKEYSxHEAD.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F

from torch_webgpu import _C
from torch_webgpu.tune.measure import hold
from torch_webgpu.tune.store import Choice, Store, folder

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

COMMON = {
    "matmul": [
        *("64x64x64", "128x128x128", "256x256x256", "512x512x512", "1024x1024x1024"),
        # A transformer's: one token, a few, and a prompt of 512, through the projections and the feed-forward.
        *(f"{rows}x{inner}" for rows in (1, 8, 512) for inner in ("768x768", "768x3072", "3072x768")),
    ],
    "norm": ["512x768", "512x1024", "4096x768", "1x4096", "8192x64"],
    "softmax": ["512x512", "12x512x512", "1x32000"],
    "attention": ["1x12x512x512x64", "1x12x1x512x64", "8x12x128x128x64"],
}


def _matmul(sizes: list[int], dtype: torch.dtype) -> Callable[[], None]:
    *batches, rows, depth, columns = sizes
    a, b = (torch.empty(*batches, *shape, dtype=dtype, device="webgpu") for shape in ((rows, depth), (depth, columns)))
    weight = torch.empty(*batches, columns, depth, dtype=dtype, device="webgpu")  # as nn.Linear has it

    def call() -> None:
        for factor in (b, weight.mT):
            a @ factor

    return call


def _norm(sizes: list[int], dtype: torch.dtype) -> Callable[[], None]:
    rows, length = sizes
    x = torch.ones(rows, length, dtype=dtype, device="webgpu", requires_grad=True)
    weight, bias = (torch.ones(length, dtype=dtype, device="webgpu", requires_grad=True) for _ in range(2))

    def call() -> None:
        for out in (F.layer_norm(x, [length], weight, bias), F.rms_norm(x, [length], weight)):
            out.backward(torch.ones_like(out))

    return call


def _softmax(sizes: list[int], dtype: torch.dtype) -> Callable[[], None]:
    x = torch.ones(sizes, dtype=dtype, device="webgpu", requires_grad=True)

    def call() -> None:
        for function in (torch.softmax, torch.log_softmax):
            out = function(x, -1)
            out.backward(torch.ones_like(out))

    return call


def _attention(sizes: list[int], dtype: torch.dtype) -> Callable[[], None]:
    batch, heads, queries, keys, head = sizes
    q, k, v = (torch.ones(batch, heads, n, head, dtype=dtype, device="webgpu", requires_grad=True)
               for n in (queries, keys, keys))  # fmt: skip

    def call() -> None:
        for causal in (False, True) if queries == keys else (False,):
            out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            out.backward(torch.ones_like(out))

    return call


# How to launch, and how many sizes that takes.
FAMILIES = {
    "matmul": (_matmul, (3, 4)),
    "norm": (_norm, (2,)),
    "softmax": (_softmax, (1, 2, 3)),
    "attention": (_attention, (5,)),
}


def contests(launch: str, dtype: torch.dtype) -> list[_C.Contest]:
    """Of the family and sizes "matmul 64x64x64": those with more than one kernel."""
    family, _, text = launch.partition(" ")
    sizes = [int(size) for size in text.split("x")]
    make, counts = FAMILIES[family]
    if len(sizes) not in counts:
        raise ValueError(f"{launch}: {family} takes {' or '.join(map(str, counts))} sizes")
    call = make(sizes, dtype)
    return [contest for contest in _C.contests_of(call) if len(contest.kernels) > 1]


def _all_contests(launches: list[str], dtypes: list[str]) -> Iterator[_C.Contest]:
    seen = set()
    for launch in launches:
        for dtype in dtypes:
            for contest in contests(launch, DTYPES[dtype]):
                if contest.key not in seen:
                    seen.add(contest.key)
                    yield contest


def _show(choice: Choice, *, is_new: bool) -> None:
    best = min(choice.times_ms.values())
    shown = [f"{name} {ms:.3f} ms" + (" *" if ms == best else "") for name, ms in choice.times_ms.items()]
    print(f"{choice.launch}{'' if is_new else ' (known)'}\n    " + "   ".join(shown), flush=True)


def _clear() -> None:
    count = 0
    for path in folder().glob("*.json"):
        path.unlink()
        count += 1
    print(f"removed {count} file(s) of {folder()}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_webgpu.tune", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("launches", nargs="*", metavar="FAMILY SIZES", help="for example: matmul 64x64x64 norm 512x768")
    parser.add_argument("--dtype", choices=DTYPES, action="append", help="float32 if none is given; may be repeated")
    parser.add_argument("--again", action="store_true", help="time what is known too")
    parser.add_argument("--clear", action="store_true", help="forget what was measured, on all adapters")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write all that is known of this adapter as JSON")
    options = parser.parse_args(arguments)
    if options.clear:
        _clear()
        return 0
    words = options.launches
    if len(words) % 2 or any(family not in FAMILIES for family in words[::2]):
        parser.error(f"launches are pairs of a family ({', '.join(FAMILIES)}) and sizes")
    launches = [f"{family} {sizes}" for family, sizes in zip(words[::2], words[1::2], strict=True)]
    if not launches and not options.report:
        launches = [f"{family} {sizes}" for family, some in COMMON.items() for sizes in some]

    store = Store()
    print(f"{_C.device_properties()['name']}: {store.path}")
    with store.lock() as is_mine:
        if not is_mine:
            print("another process tunes this adapter: try again when it is done", file=sys.stderr)
            return 1
        for contest in _all_contests(launches, options.dtype or ["float32"]):
            known = None if options.again else store.choices.get(contest.key)
            if choice := known or hold(contest, store):
                _show(choice, is_new=known is None)
    for kernel, reason in store.failed.items():
        print(f"never taken: {kernel}: {reason}")
    if options.report:
        options.report.write_text(json.dumps(store.contents(), indent=1), "utf-8")
        print(f"wrote {options.report}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
