"""A long run leaves the device's memory and the process's memory where they were.

TORCH_WEBGPU_SOAK=1 takes 2,000 steps of training instead of 240.
"""

import os

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
        return torch.webgpu.memory_allocated(), torch.webgpu.memory_reserved(), resident_mib()

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

    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(30, 5))
    optimizer = torch.optim.AdamW(model.to("webgpu").parameters())
    inputs, labels = torch.rand(16, 20, device="webgpu"), torch.arange(16, device="webgpu") % 5

    def training(count):
        for _ in range(count):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        assert loss.isfinite().item()
        optimizer.zero_grad()

    small_ops(20_000)
    allocations(20_000)
    training(20)
    start, start_reserved, resident = settle()
    steps = 500 if os.environ.get("TORCH_WEBGPU_SOAK") else 60
    for run, count in [(small_ops, 100_000)] * 3 + [(allocations, 10_000)] * 4 + [(training, steps)] * 4:
        run(count)
        allocated, reserved, now = settle()
        print(run.__name__, allocated - start, reserved - start_reserved, now - resident)
        resident = now
"""


SECONDS = 2400 if os.environ.get("TORCH_WEBGPU_SOAK") else 240


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_soak(runtime: str) -> None:
    growth: dict[str, list[float]] = {}
    for line in output_of(SOAK, seconds=SECONDS, TORCH_WEBGPU_RUNTIME=runtime):
        name, allocated, reserved, resident_mib = line.split()
        assert (allocated, reserved) == ("0", "0"), line
        growth.setdefault(name, []).append(float(resident_mib))
    # A leak shows in every round. The arenas of malloc and of Dawn grow in some: by 25, 10, 4, 2 and then 0.5 MiB
    # in the first rounds of 10,000 allocations. 64 bytes kept for each op would be 6 MiB in a round; of the allocations
    # 600 make a buffer of 75 kB on average, so that one in ten that is not given back would be 4.5 MiB.
    assert min(growth["small_ops"]) < 2, growth
    assert min(growth["allocations"]) < 3, growth
    # A tensor that stayed would show in the memory of the device, which is exact above.
    assert min(growth["training"]) < 1, growth
