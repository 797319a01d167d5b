"""The threads on which a software driver runs kernels have a core each."""

import os

import pytest

from tests.device.process import RUNTIMES, output_of

CORES = len(os.sched_getaffinity(0))

SCRIPT = """
    import os, torch
    torch.ones(1, device="webgpu").cpu()
    assert torch.webgpu.get_device_properties().name.startswith("llvmpipe")
    for thread in sorted(map(int, os.listdir("/proc/self/task"))):
        name = open(f"/proc/self/task/{thread}/comm").read().strip()
        print(name, *sorted(os.sched_getaffinity(thread)))
"""


def pinned(**environment: str) -> tuple[list[str], int]:
    """The cores of the threads that have one alone, and how many threads of the driver there are."""
    threads = [line.split() for line in output_of(SCRIPT, TORCH_WEBGPU_ADAPTER="llvmpipe", **environment)]
    named = sum(name.startswith("llvmpipe-") for name, *_ in threads)
    return sorted(cores[0] for _, *cores in threads if len(cores) == 1), named


@pytest.mark.skipif(CORES < 2, reason="there is but one core")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_core_each(runtime: str) -> None:
    cores, named = pinned(TORCH_WEBGPU_RUNTIME=runtime, LP_NUM_THREADS=str(CORES))
    assert named >= CORES
    assert sorted(set(cores)) == sorted(map(str, os.sched_getaffinity(0)))


@pytest.mark.skipif(CORES < 2, reason="there is but one core")
def test_left_alone() -> None:
    assert pinned(TORCH_WEBGPU_PIN="0", LP_NUM_THREADS=str(CORES))[0] == []
    assert pinned(LP_NUM_THREADS="0") == ([], 0)
    if CORES > 2:
        assert pinned(LP_NUM_THREADS="2")[0] == []
