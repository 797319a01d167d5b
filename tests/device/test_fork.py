"""Processes made by fork and by spawn. The driver's threads do not survive a fork, so the child is told so."""

from pathlib import Path

import pytest

from tests.device.process import RUNTIMES, output_of

# Runs `child()` in a forked process and prints its status; one that hangs is killed.
FORK = """
    import os, signal, sys, time, torch

    def in_child(child):
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            child()
            sys.stdout.flush()
            sys.exit(0)  # not _exit: the child's own shutdown is part of the test
        return os.waitpid(pid, 0)[1]
"""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_after_first_use_the_child_is_refused_and_the_parent_goes_on(runtime: str) -> None:
    script = (
        FORK
        + """
    x = torch.ones(4, device="webgpu")
    pending = x + 1  # recorded, not submitted

    def child():
        global x, pending
        assert torch.webgpu._is_in_bad_fork()
        assert not torch.webgpu.is_available() and torch.webgpu.device_count() == 0
        assert "'spawn'" in torch.webgpu.unavailable_reason()
        for use in (
            lambda: x + 1, lambda: x.cpu(), lambda: x.fill_(3), lambda: repr(x), lambda: torch.ones(3, device="webgpu"),
            lambda: torch.ones(3).to("webgpu"), lambda: torch.empty(0, device="webgpu"), lambda: torch.webgpu.init(),
            lambda: torch.Event(device="webgpu").record(), lambda: torch.webgpu.get_device_name(),
        ):
            try:
                use()
            except RuntimeError as error:
                assert "forked subprocess" in str(error) and "'spawn'" in str(error), error
            else:
                raise AssertionError("the device was used")
        torch.manual_seed(3)  # as every DataLoader worker does
        assert (torch.ones(3) + 1).tolist() == [2.0] * 3
        del x, pending  # frees the parent's tensors here

    print(in_child(child), (pending + x).tolist())
    """
    )
    assert output_of(script, TORCH_WEBGPU_RUNTIME=runtime) == ["0 [3.0, 3.0, 3.0, 3.0]"]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("before", ["pass", "torch.webgpu.is_available()"], ids=["imported", "looked for"])
def test_before_first_use_both_may_use_the_device(before: str, runtime: str) -> None:
    script = (
        FORK
        + f"""
    {before}

    def child():
        assert not torch.webgpu._is_in_bad_fork()
        print((torch.ones(2, device="webgpu") + 1).tolist())

    print(in_child(child))
    print((torch.ones(2, device="webgpu") + 2).tolist())
    """
    )
    assert output_of(script, TORCH_WEBGPU_RUNTIME=runtime) == ["[2.0, 2.0]", "0", "[3.0, 3.0]"]


def test_a_child_of_the_child_is_refused_too() -> None:
    script = (
        FORK
        + """
    x = torch.ones(2, device="webgpu")

    def grandchild():
        try:
            x + 1
        except RuntimeError as error:
            print("'spawn'" in str(error))

    print(in_child(lambda: print(in_child(grandchild))))
    """
    )
    assert output_of(script) == ["True", "0", "0"]


SPAWN = """
import torch
import torch.multiprocessing as multiprocessing


def double(value, results):
    results.put((torch.full((3,), value, device="webgpu") * 2).tolist())


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    mine = torch.ones(3, device="webgpu")
    results = context.Queue()
    child = context.Process(target=double, args=(4.0, results))
    child.start()
    print(results.get(timeout=40))
    child.join(timeout=20)
    print(child.exitcode, (mine + 1).tolist())
"""


def test_spawned_processes_use_the_device(tmp_path: Path) -> None:
    file = tmp_path / "spawning.py"  # a spawned process imports what it runs
    file.write_text(SPAWN)
    assert output_of(file) == ["[8.0, 8.0, 8.0]", "0 [2.0, 2.0, 2.0]"]


@pytest.mark.parametrize("pinned", [False, True])
def test_data_loader_workers_feed_a_process_that_used_the_device(pinned: bool) -> None:
    script = f"""
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    scale = torch.full((1,), 2.0, device="webgpu")
    data = TensorDataset(torch.arange(32.0), torch.arange(32))
    loader = DataLoader(data, batch_size=8, num_workers=2, timeout=30, pin_memory={pinned})
    seen = []
    for _ in range(2):  # two epochs: workers are forked again while work is pending
        for values, labels in loader:
            assert values.device.type == "cpu"
            seen.append((values.to("webgpu", non_blocking=True) * scale).cpu() / 2)
    assert torch.cat(seen).tolist() == list(range(32)) * 2
    print("done")
    """
    assert output_of(script) == ["done"]


def test_a_worker_that_uses_the_device_says_why_it_may_not() -> None:
    script = """
    import torch
    from torch.utils.data import DataLoader, Dataset
    class OnDevice(Dataset):
        def __len__(self): return 4
        def __getitem__(self, index): return torch.ones(2, device="webgpu") * index
    x = torch.ones(2, device="webgpu")
    try:
        next(iter(DataLoader(OnDevice(), num_workers=1, timeout=30)))
    except RuntimeError as error:
        print("'spawn'" in str(error))
    print((x + 1).tolist())
    """
    assert output_of(script) == ["True", "[2.0, 2.0]"]
