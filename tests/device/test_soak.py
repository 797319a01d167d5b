"""A long run leaves the device's memory and the process's memory where they were."""

import pytest

from tests.device.process import RUNTIMES, output_of

SOAK = """
    import gc, os, random, torch

    def resident_mib():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def settle():
        gc.collect()
        torch.webgpu.synchronize()
        torch.webgpu.empty_cache()
        return torch.webgpu.memory_allocated(), resident_mib()

    x, y = torch.ones(100, device="webgpu"), torch.ones(100, device="webgpu")
    draw = random.Random(0)

    def small_ops(count):
        z = x
        for number in range(count):
            z = z + y
            if number % 1000 == 0:
                z = z * 0
        return z[0].item()

    def allocations(count):
        kept = []
        for number in range(count):
            size = int(2 ** draw.uniform(0, 20))
            kept.append(torch.empty(size, dtype=torch.uint8, device="webgpu"))
            if number % 10 == 0:
                kept[-1].fill_(1)
            if len(kept) > 50:
                kept.pop(draw.randrange(len(kept)))
            if number % 2500 == 0:
                torch.webgpu.empty_cache()

    # As long as the rest: what grows once, such as the arenas of malloc and of the driver, has then grown.
    small_ops(20_000); allocations(2_000)
    before, resident_before = settle()
    small_ops(100_000)
    middle, resident_middle = settle()
    allocations(10_000)
    after, resident_after = settle()
    print(before, middle, after, torch.webgpu.memory_reserved())
    print(resident_middle - resident_before, resident_after - resident_middle)
"""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_soak(runtime: str) -> None:
    lines = output_of(SOAK, seconds=240, TORCH_WEBGPU_RUNTIME=runtime)
    before, middle, after, reserved = (int(number) for number in lines[0].split())
    assert before == middle == after == reserved
    ops, allocations = (float(number) for number in lines[1].split())
    # 64 bytes kept for each op would be 6.4 MB; one page for each allocation 40 MB.
    assert ops < 5, f"100,000 ops left {ops:.1f} MiB"
    assert allocations < 16, f"10,000 allocations left {allocations:.1f} MiB"
