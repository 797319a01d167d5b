"""Which OpInfos run on the device: `python -m tests.ops.coverage --dtype float32`.

Each op is tried on all of its samples in a process of its own making, so that a crash or a hang is one line of the
table. native: all right, nothing on the CPU. fallback: right, with the named ops on the CPU. wrong, error, crash, slow.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import multiprocessing
import multiprocessing.connection
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("LP_NUM_THREADS", "0")

Answer = tuple[str, str]
Task = tuple[str, str, bool, int | None]  # the arguments of try_op


def try_op(name: str, dtype_name: str, backward: bool, samples: int | None) -> Answer:
    import torch

    from tests.ops import opinfo
    from tests.ops.native_ops import tolerance

    op, dtype = opinfo.opinfos()[name], getattr(torch, dtype_name)
    torch.webgpu.reset_cpu_fallbacks()
    tried = 0
    try:
        for call in itertools.islice(opinfo.samples_of(op, dtype), samples):
            tried += opinfo.check_forward(op, call, tolerance(name, dtype), native=False)
        if backward and op.supports_autograd and dtype.is_floating_point:
            for call in itertools.islice(opinfo.samples_of(op, dtype, grad=True), samples):
                opinfo.check_gradients(op, call, tolerance(name, dtype, "gradients"), native=False)
    except AssertionError as error:
        return "wrong", " ".join(str(error).split())
    except Exception as error:
        return "error", f"{type(error).__name__}: {' '.join(str(error).split())}"
    fallbacks = sorted(torch.webgpu.cpu_fallbacks())
    if fallbacks:
        return "fallback", " ".join(name.removeprefix("aten::") for name in fallbacks)
    return ("native", "") if tried else ("none", "no sample the device can hold")


def work(pipe: multiprocessing.connection.Connection, attempt: Callable[..., Answer]) -> None:
    import torch

    torch.set_num_threads(1)
    torch.webgpu.set_fallback_mode("quiet")
    while (task := pipe.recv()) is not None:
        pipe.send(attempt(*task))


class Worker:
    """A process that tries one op at a time, and is replaced when one kills it or takes too long."""

    def __init__(self, attempt: Callable[..., Answer]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, attempt), daemon=True)
        self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.deadline = 0.0

    def start(self, task: Task, limit: float) -> None:
        self.task, self.deadline = task, time.monotonic() + limit
        self.pipe.send(task)

    def answer(self) -> Answer | None:
        if self.pipe.poll():
            try:
                return self.pipe.recv()
            except EOFError:
                return "crash", f"exit code {self.process.exitcode}"
        if time.monotonic() > self.deadline:
            self.process.kill()
            return "slow", "took too long"
        return None

    def stop(self) -> None:
        if self.process.is_alive():
            self.pipe.send(None)
        self.process.join(5)


def run(
    names: list[str],
    dtype: str,
    backward: bool,
    jobs: int,
    limit: float,
    samples: int | None = None,
    attempt: Callable[..., Answer] = try_op,
    progress: bool = False,
) -> dict[str, Answer]:
    """Tries each op on its first `samples`, or on all."""
    answers: dict[str, Answer] = {}
    waiting = collections.deque(names)
    workers: list[Worker | None] = [None] * jobs
    while len(answers) < len(names):
        for slot, worker in enumerate(workers):
            if worker is None or worker.task is None:
                if waiting:
                    fresh = worker is None
                    workers[slot] = worker = worker or Worker(attempt)
                    worker.start((waiting.popleft(), dtype, backward, samples), limit + 30 * fresh)  # op_db too
                continue
            answer = worker.answer()
            if answer is not None:
                answers[worker.task[0]] = answer
                if progress:
                    print(worker.task[0], *answer, file=sys.stderr, flush=True)
                worker.task = None
                if answer[0] in ("crash", "slow"):
                    workers[slot] = None
        time.sleep(0.005)
    for worker in workers:
        if worker is not None:
            worker.stop()
    return answers


def names_of(dtype_name: str, pattern: str) -> list[str]:
    import torch

    from tests.ops.opinfo import opinfos

    dtype = getattr(torch, dtype_name)
    return [n for n, op in opinfos().items() if dtype in op.supported_dtypes("cpu") and re.search(pattern, n)]


def report(answers: dict[str, Answer], options: Any) -> None:
    for kind in ("native", "fallback", "wrong", "error", "crash", "slow", "none"):
        rows = [(name, detail) for name, (answered, detail) in answers.items() if answered == kind]
        for name, detail in rows if not options.summary else []:
            print(f"{kind:9} {name:45} {detail[: options.width]}")
    counts = collections.Counter(kind for kind, _ in answers.values())
    needed = collections.Counter(op for kind, ops in answers.values() if kind == "fallback" for op in ops.split())
    print(f"\n{len(answers)} OpInfos with {options.dtype}: {', '.join(f'{n} {k}' for k, n in counts.most_common())}")
    if needed:
        print("most wanted: " + ", ".join(f"{op} {count}" for op, count in needed.most_common(20)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only", default="", help="a pattern of OpInfo names")
    parser.add_argument("--backward", action="store_true", help="gradients too")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60, help="seconds per op")
    parser.add_argument("--width", type=int, default=160, help="of the details")
    parser.add_argument("--summary", action="store_true", help="the counts alone")
    options = parser.parse_args()
    names = names_of(options.dtype, options.only)
    report(run(names, options.dtype, options.backward, options.jobs, options.limit), options)


if __name__ == "__main__":
    main()
