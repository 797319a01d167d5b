"""Which OpInfos are right when compiled: `python -m tests.compile.coverage --backward`.

Each op is compiled for its first samples and compared with the CPU, in a process of its own making. native: right.
fallback: right, with the named ops on the CPU. wrong, error, crash, slow.
"""

from __future__ import annotations

import argparse
import itertools
import os
import zlib
from typing import Any

os.environ.setdefault("LP_NUM_THREADS", "0")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

from tests.ops import coverage

# Decompositions sum in another order than eager's kernels, and not all by blocks.
SUMS = {"rtol": 2e-5, "atol": 3e-5}


def check(op: Any, call: Any, tolerance: dict[str, float], backward: bool) -> bool:
    """One sample compiled; False where the CPU has no result to compare with."""
    import torch

    from tests.ops import opinfo

    # A function of its own: Dynamo would find the one of the sample before, with its guards.
    torch._dynamo.reset()
    compiled = torch.compile(lambda *args, **kwargs: op.op(*args, **kwargs), backend="webgpu")
    with opinfo.quietly():
        expected, refused = opinfo.outcome(call.on, "cpu", op.op)
        if refused is not None or not opinfo.storable(expected):
            return False
        actual = call.on(opinfo.DEVICE, compiled)
    # PyTorch's own tolerances of halves are wider than that.
    dtypes = {x.dtype for x in opinfo.tensors((call.cpu, expected))}
    sums = SUMS if dtypes.isdisjoint(opinfo.HALVES) else {}
    opinfo.compare(op, call, actual, expected, opinfo.describe(call), {**sums, **tolerance}, strides=False)
    if backward:
        check_gradients(op, call, compiled)
    return True


def check_gradients(op: Any, call: Any, compiled: Any) -> None:
    import torch

    from tests.ops import opinfo
    from tests.ops.native_ops import tolerance

    class Compiled:
        """The op as it is on the CPU, and compiled on the device."""

        def __init__(self, function: Any) -> None:
            self.op, self.name = function, op.name

    with opinfo.quietly():
        cpu, refused = opinfo.outcome(opinfo.gradients, op, call, "cpu", None)
        if refused is not None:
            return
        expected, seeds = cpu
        actual = opinfo.gradients(Compiled(compiled), call, opinfo.DEVICE, seeds)[0]
    allowed = {**tolerance(op.name, torch.float32, "gradients")}
    allowed = {name: max(value, SUMS[name]) for name, value in allowed.items()}
    opinfo.compare(op, call, actual, expected, f"gradient {opinfo.describe(call)}", allowed, strides=False)


def try_op(name: str, dtype_name: str, backward: bool, samples: int | None) -> coverage.Answer:
    import torch

    from tests.ops import opinfo
    from tests.ops.native_ops import tolerance

    op, dtype = opinfo.opinfos()[name], getattr(torch, dtype_name)
    grad = backward and op.supports_autograd and dtype.is_floating_point
    torch.webgpu.reset_cpu_fallbacks()
    tried = 0
    try:
        for call in itertools.islice(opinfo.samples_of(op, dtype, grad=grad), samples):
            tried += check(op, call, tolerance(name, dtype), grad)
    except AssertionError as error:
        return "wrong", " ".join(str(error).split())
    except Exception as error:
        return "error", f"{type(error).__name__}: {' '.join(str(error).split())}"
    fallbacks = sorted(torch.webgpu.cpu_fallbacks())
    if fallbacks:
        return "fallback", " ".join(name.removeprefix("aten::") for name in fallbacks)
    return ("native", "") if tried else ("none", "no sample the device can hold")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only", default="", help="a pattern of OpInfo names")
    parser.add_argument("--backward", action="store_true", help="gradients too")
    parser.add_argument("--every", type=int, default=1, help="one of so many ops, chosen by name")
    parser.add_argument("--samples", type=int, default=2, help="of each op")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120, help="seconds per op")
    parser.add_argument("--width", type=int, default=160, help="of the details")
    parser.add_argument("--progress", action="store_true", help="a line per op while it goes")
    parser.add_argument("--summary", action="store_true", help="the counts alone")
    options = parser.parse_args()
    names = [n for n in coverage.names_of(options.dtype, options.only) if zlib.crc32(n.encode()) % options.every == 0]
    answers = coverage.run(
        names, options.dtype, options.backward, options.jobs, options.limit, options.samples, try_op, options.progress
    )
    coverage.report(answers, options)


if __name__ == "__main__":
    main()
