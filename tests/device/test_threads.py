"""The device from several threads: one ordered queue, answers of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch

from tests.device.process import output_of

COMPILE_MS = "TORCH_WEBGPU_TEST_COMPILE_MS"  # what each kernel takes longer to compile

SECONDS = 60  # far more than any of these takes: a thread that is not back by then is stuck


def run_all(*functions: Callable[[], None]) -> None:
    """Runs each in a thread of its own, all at once, and raises the first error."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(functions))

    def guarded(function: Callable[[], None]) -> None:
        try:
            start.wait(SECONDS)
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive(), "a thread is stuck"
    if errors:
        raise errors[0]


def chain_of(number: int, steps: int = 200) -> None:
    """A recurrence that shows it if an op of another thread came between, or a buffer was shared."""
    actual, expected = (torch.full((257,), float(number), device=device) for device in ("webgpu", "cpu"))
    for step in range(steps):
        actual, expected = actual * 0.5 + number, expected * 0.5 + number
        if step % 20 == 0:
            assert torch.equal(actual.cpu(), expected), (number, step)
    assert torch.equal(actual.cpu(), expected)


def test_results_are_each_threads_own() -> None:
    run_all(*(lambda number=number: chain_of(number) for number in range(8)))


def test_one_tensor_may_be_read_by_all() -> None:
    shared = torch.arange(5000, device="webgpu")
    expected = torch.arange(5000)

    def read(offset: int) -> None:
        for _ in range(50):
            assert torch.equal((shared + offset).cpu(), expected + offset)
            assert shared[offset].item() == offset

    run_all(*(lambda offset=offset: read(offset) for offset in range(6)))


def test_uploads_and_downloads_at_once() -> None:
    def round_trip(number: int) -> None:
        for size in (1, 3, 1000, 70_000, 300_001):
            values = torch.full((size,), number, dtype=torch.uint8)
            assert torch.equal(values.to("webgpu").cpu(), values)

    run_all(*(lambda number=number: round_trip(number) for number in range(6)))


def test_what_one_thread_made_another_continues() -> None:
    """The host's order is the device's: joining a thread is enough, no wait for the device is needed."""
    made: list[torch.Tensor] = []
    for _ in range(20):
        run_all(lambda: made.append(torch.full((100,), 3.0, device="webgpu") * 2))
        assert (made.pop() + 1).tolist() == [7.0] * 100


def test_backward_on_autograds_own_thread() -> None:
    names: set[str] = set()

    def gradient(number: int) -> None:
        x = torch.full((64,), float(number), device="webgpu", requires_grad=True)
        for _ in range(10):
            x.grad = None
            product = x * x
            product.register_hook(lambda _: names.add(str(threading.get_ident())))
            product.backward(torch.ones(64, device="webgpu"))
            assert x.grad is not None
            assert x.grad.tolist() == [2.0 * number] * 64

    run_all(*(lambda number=number: gradient(number) for number in range(4)))
    assert len(names) == 1
    assert str(threading.get_ident()) not in names


def test_allocating_and_trimming_at_once() -> None:
    def churn(number: int) -> None:
        for step in range(60):
            x = torch.full((1 << (number + step % 10),), float(number), device="webgpu")
            if step % 10 == number:
                torch.webgpu.empty_cache()
            if step % 7 == 0:
                assert x.cpu().eq(number).all()

    before = torch.webgpu.memory_allocated()
    run_all(*(lambda number=number: churn(number) for number in range(6)))
    assert torch.webgpu.memory_allocated() == before


def test_events_at_once() -> None:
    def record() -> None:
        x = torch.ones(100, device="webgpu")
        for _ in range(30):
            first, second = (torch.Event(device="webgpu", enable_timing=True) for _ in range(2))
            first.record()
            x = x + 1
            second.record()
            second.synchronize()
            assert second.query()
            assert first.elapsed_time(second) >= 0

    run_all(*([record] * 4))


@pytest.mark.parametrize("error", ["shape", "memory", "dtype"])
def test_a_thread_that_raises_holds_up_nobody(error: str) -> None:
    x = torch.ones(3, device="webgpu")
    wrong: dict[str, tuple[type[Exception], Callable[[], object]]] = {
        "shape": (RuntimeError, lambda: x + torch.ones(4, device="webgpu")),
        "memory": (torch.OutOfMemoryError, lambda: torch.empty(1 << 45, device="webgpu")),
        "dtype": (NotImplementedError, lambda: x & x),
    }
    kind, function = wrong[error]

    def fail() -> None:
        for _ in range(20):
            with pytest.raises(kind):
                function()

    run_all(fail, lambda: chain_of(2), fail, lambda: chain_of(5))
    assert (x + 1).tolist() == [2.0] * 3


def test_an_error_in_backward_reaches_the_caller() -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x + 1

        @staticmethod
        def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
            raise ValueError("on purpose")

    x = torch.ones(3, device="webgpu", requires_grad=True)
    with pytest.raises(ValueError, match="on purpose"):
        Fails.apply(x).backward(torch.ones(3, device="webgpu"))
    (x * 2).backward(torch.ones(3, device="webgpu"))
    assert x.grad is not None
    assert x.grad.tolist() == [2.0] * 3


def test_the_first_use_may_come_from_many_threads() -> None:
    script = """
    import threading, torch
    results = []
    threads = [threading.Thread(target=lambda n=n: results.append((torch.ones(2, device="webgpu") * n).tolist()))
               for n in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(sorted(results) == [[float(n)] * 2 for n in range(8)])
    """
    assert output_of(script) == ["True"]


def test_the_host_goes_on_while_kernels_are_compiled() -> None:
    script = """
    import time, torch
    x = torch.arange(1.0, 65.0).to("webgpu")
    begin = time.monotonic()
    y = (x.sin() * 2).exp()
    x.copy_(torch.zeros(64))
    z = y - x
    event = torch.Event(device="webgpu")
    event.record()
    print(time.monotonic() - begin < 0.7, event.query())
    print(torch.allclose(z.cpu(), (torch.arange(1.0, 65.0).sin() * 2).exp(), rtol=1e-5), x.sum().item() == 0)
    print(time.monotonic() - begin > 1.4, event.query())
    """
    assert output_of(script, **{COMPILE_MS: "1400"}) == ["True False", "True True", "True True"]


def test_threads_with_a_new_kernel_each_do_not_wait_for_one_another() -> None:
    """On Dawn's Null backend: llvmpipe compiles a kernel once more when it first runs, one after another."""
    script = """
    import threading, time, torch
    names = "sin cos tan exp log sqrt abs neg floor ceil".split()
    x = torch.ones(64).to("webgpu")
    threads = [threading.Thread(target=lambda op=getattr(torch, name): op(x).cpu()) for name in names]
    before, begin = torch.webgpu.memory_stats()["kernels_compiled"], time.monotonic()
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(torch.webgpu.memory_stats()["kernels_compiled"] - before, 0.8 <= time.monotonic() - begin < 2.4)
    """
    environment = {"TORCH_WEBGPU_RUNTIME": "dawn", "TORCH_WEBGPU_ADAPTER": "null", COMPILE_MS: "800"}
    assert output_of(script, **environment) == ["10 True"]  # one after another they take 8 seconds


def test_a_process_may_fork_and_end_while_kernels_are_compiled() -> None:
    script = """
    import os, sys, torch
    x = torch.ones(64).to("webgpu")
    for op in (torch.sin, torch.cos, torch.exp): op(x)
    child = os.fork()
    if child == 0: sys.exit(0)
    print(os.waitpid(child, 0)[1])
    """
    assert output_of(script, **{COMPILE_MS: "300"}) == ["0"]
