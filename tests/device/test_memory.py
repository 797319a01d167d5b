"""Device memory: what is counted, reused, given back, and refused."""

from __future__ import annotations

import gc
import itertools

import pytest
import torch

from tests.device.process import RUNTIMES, output_of

MiB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_left_over() -> None:
    """What the test before left is freed, here and on the device."""
    gc.collect()
    torch.webgpu.synchronize()
    torch.webgpu.empty_cache()
    torch.webgpu.reset_peak_memory_stats()


def megabytes(count: int) -> torch.Tensor:
    return torch.empty(count * MiB, dtype=torch.uint8, device="webgpu")


# Counting


def test_allocated_follows_the_tensors() -> None:
    before = torch.webgpu.memory_allocated()
    x = megabytes(4)
    assert torch.webgpu.memory_allocated() == before + 4 * MiB
    view = x[:10]
    y = megabytes(2)
    assert torch.webgpu.memory_allocated() == before + 6 * MiB
    del x
    assert torch.webgpu.memory_allocated() == before + 6 * MiB, "a view keeps the whole storage"
    del view
    assert torch.webgpu.memory_allocated() == before + 2 * MiB
    del y
    assert torch.webgpu.memory_allocated() == before


def test_small_tensors_cost_little() -> None:
    before = torch.webgpu.memory_allocated()
    kept = [torch.empty(1, device="webgpu") for _ in range(100)]
    assert 0 < torch.webgpu.memory_allocated() - before <= len(kept) * 256
    empty = torch.empty(0, device="webgpu")
    assert torch.webgpu.memory_allocated() - before <= len(kept) * 256
    assert empty.data_ptr() == 0


@pytest.mark.parametrize("size", [1, 255, 257, 1000, 4097, 100_000, 1_048_577, 5_000_001])
def test_rounding_wastes_at_most_a_quarter(size: int) -> None:
    before = torch.webgpu.memory_allocated()
    x = torch.empty(size, dtype=torch.uint8, device="webgpu")
    assert size <= torch.webgpu.memory_allocated() - before <= max(256, size * 1.25 + 64)
    assert x.untyped_storage().nbytes() == size, "the tensor does not see the rounding"


def test_addresses_are_distinct_and_alignment_is_kept() -> None:
    kept = [torch.empty(size, dtype=torch.uint8, device="webgpu") for size in (1, 300, 5000, MiB) for _ in range(20)]
    ranges = sorted((x.data_ptr(), x.data_ptr() + x.nbytes) for x in kept)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(ranges))
    assert all(x.data_ptr() % 64 == 0 for x in kept)
    assert kept[-1][10:].data_ptr() == kept[-1].data_ptr() + 10


def test_peaks() -> None:
    base = torch.webgpu.memory_allocated()
    x = megabytes(8)
    del x
    y = megabytes(2)
    assert torch.webgpu.max_memory_allocated() == base + 8 * MiB
    assert torch.webgpu.max_memory_reserved() >= base + 8 * MiB
    torch.webgpu.reset_peak_memory_stats()
    assert torch.webgpu.max_memory_allocated() == torch.webgpu.memory_allocated() == base + 2 * MiB
    assert torch.webgpu.max_memory_reserved() == torch.webgpu.memory_reserved()
    del y


def test_empty_cache_gives_back_what_no_tensor_uses() -> None:
    torch.webgpu.empty_cache()
    beside = torch.webgpu.memory_reserved() - torch.webgpu.memory_allocated()  # what shares a segment with tensors
    kept, dropped = megabytes(3), megabytes(20)
    kept.fill_(7)
    del dropped
    reserved = torch.webgpu.memory_reserved()
    torch.webgpu.empty_cache()
    assert torch.webgpu.memory_reserved() == reserved - 20 * MiB
    assert torch.webgpu.memory_reserved() - torch.webgpu.memory_allocated() == beside
    assert kept[::4097].cpu().eq(7).all()
    assert megabytes(1).fill_(3)[5].item() == 3


def test_empty_cache_with_work_under_way() -> None:
    """What is recorded still reads a buffer that is being given back."""
    for _ in range(5):
        x = torch.full((MiB,), 2.0, device="webgpu")
        y = x * 3
        del x
        torch.webgpu.empty_cache()
        assert y[:: MiB // 4].tolist() == [6.0] * 4


# What PyTorch's own interface says


def test_the_accelerators_figures_are_ours() -> None:
    x = megabytes(4)
    accelerator = torch.accelerator
    assert accelerator.memory_allocated() == torch.webgpu.memory_allocated() >= 4 * MiB
    assert accelerator.memory_reserved() == torch.webgpu.memory_reserved() >= 4 * MiB
    assert accelerator.max_memory_allocated() == torch.webgpu.max_memory_allocated()
    assert accelerator.max_memory_reserved() == torch.webgpu.max_memory_reserved()
    del x
    accelerator.reset_peak_memory_stats()
    assert accelerator.max_memory_allocated() == accelerator.memory_allocated()
    accelerator.empty_cache()
    assert accelerator.memory_reserved() == accelerator.memory_allocated()


def test_the_accelerators_statistics() -> None:
    torch.accelerator.reset_accumulated_memory_stats()
    x = megabytes(4)
    stats = torch.accelerator.memory_stats()
    assert stats["allocated_bytes.all.current"] == torch.webgpu.memory_allocated()
    assert stats["allocated_bytes.all.allocated"] == 4 * MiB
    assert stats["allocated_bytes.all.freed"] == 0
    assert stats["allocation.all.current"] >= 1
    assert stats["allocation.all.peak"] >= stats["allocation.all.current"]
    del x
    stats = torch.accelerator.memory_stats()
    assert stats["allocated_bytes.all.freed"] == 4 * MiB
    for key in ("active_bytes", "requested_bytes", "reserved_bytes"):
        assert f"{key}.all.current" in stats


def test_our_statistics_have_the_counters() -> None:
    stats = torch.webgpu.memory_stats()
    for key in (
        *("dispatches", "copies", "submits", "uploads", "readbacks", "buffers_created"),
        *(
            "bind_group_hits",
            "bind_group_misses",
            "kernels_compiled",
            "kernels_cached",
            "num_ooms",
            "num_alloc_retries",
        ),
        *(f"{kind}_bytes.all.{what}" for kind in ("allocated", "reserved") for what in ("current", "peak")),
    ):
        assert isinstance(stats[key], int), key
    x = torch.ones(10).to("webgpu")
    y = x + 1
    y.cpu()
    after = torch.webgpu.memory_stats()
    assert after["dispatches"] == stats["dispatches"] + 1
    assert after["uploads"] == stats["uploads"] + 1
    assert after["readbacks"] == stats["readbacks"] + 1
    assert after["submits"] > stats["submits"]


def test_memory_of_the_host() -> None:
    for free, total in (torch.webgpu.mem_get_info(), torch.accelerator.get_memory_info()):
        assert 0 < free <= total


def test_the_hosts_cache_can_be_emptied() -> None:
    """In a process of its own: without a host allocator PyTorch calls through a null pointer."""
    assert output_of("import torch; torch.accelerator.empty_host_cache(); print('done')") == ["done"]


def test_figures_before_first_use_open_nothing() -> None:
    script = """
    import torch
    assert torch.accelerator.memory_allocated() == torch.webgpu.memory_allocated() == 0
    assert torch.accelerator.memory_reserved() == torch.webgpu.max_memory_reserved() == 0
    torch.webgpu.empty_cache(); torch.accelerator.empty_cache()
    torch.webgpu.reset_peak_memory_stats(); torch.webgpu.memory_stats(); torch.webgpu.synchronize()
    print(torch.webgpu.is_initialized())
    """
    assert output_of(script) == ["False"]


# Reuse


def test_freed_memory_is_used_again() -> None:
    x = megabytes(8)
    address = x.data_ptr()
    created = torch.webgpu.memory_stats()["buffers_created"]
    for _ in range(10):
        del x
        x = megabytes(8)
        assert x.data_ptr() == address
    assert torch.webgpu.memory_stats()["buffers_created"] == created


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_steady_loop_makes_no_buffers_and_few_bind_groups(runtime: str) -> None:
    """A training step's mix: sizes differ, temporaries come and go, a value is read now and then."""
    script = """
    import torch
    weights = [torch.ones(size, device="webgpu") for size in (10, 1000, 1000, 40_000)]
    def step(number):
        for weight in weights:
            activation = (weight * 1.5 + 2).relu()
            weight.sub_(activation, alpha=1e-3)
        if number % 10 == 0:
            weights[0][0].item()
    for number in range(20): step(number)
    before = torch.webgpu.memory_stats()
    for number in range(200): step(number)
    after = torch.webgpu.memory_stats()
    change = {key: after[key] - before[key] for key in after}
    groups = change["bind_group_hits"] + change["bind_group_misses"]
    assert groups == change["dispatches"] == 200 * 4 * 4, change
    assert change["kernels_compiled"] == 0
    print(change["buffers_created"], change["bind_group_hits"] / groups)
    """
    created, hits = output_of(script, TORCH_WEBGPU_RUNTIME=runtime)[0].split()
    assert int(created) == 0
    assert float(hits) >= 0.95


# Too much


@pytest.mark.parametrize(
    "bytes_", [1 << 40, 1 << 50, 1 << 56, 1 << 60, (1 << 63) - 1], ids=lambda size: f"2^{size.bit_length() - 1}"
)
def test_an_impossible_size_names_the_limit(bytes_: int) -> None:
    script = f"""
    import torch
    x = torch.ones(3, device="webgpu")
    limit = torch.webgpu.get_device_properties().limits["maxBufferSize"]
    try:
        torch.empty({bytes_}, dtype=torch.uint8, device="webgpu")
    except torch.OutOfMemoryError as error:
        assert str(limit) in str(error) and str({bytes_}) in str(error), error
        print(torch.webgpu.memory_stats()["num_ooms"], (x + 1).tolist())
    """
    assert output_of(script) == ["1 [2.0, 2.0, 2.0]"]


def test_a_size_past_the_limit_leaves_the_device_usable() -> None:
    limit = torch.webgpu.get_device_properties().limits["maxBufferSize"]
    before = torch.webgpu.memory_stats()
    with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
        torch.empty(limit + 1, dtype=torch.uint8, device="webgpu")
    after = torch.webgpu.memory_stats()
    assert after["num_ooms"] == before["num_ooms"] + 1
    assert after["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]
    assert (torch.ones(3, device="webgpu") + 1).tolist() == [2.0] * 3


def test_a_size_no_host_has_is_refused_as_on_the_cpu() -> None:
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        torch.empty(1 << 62, device="webgpu")
