"""Copies between host and device and on the device: any layout and dtype, overlap, and what lies beside the target."""

from collections.abc import Callable

import pytest
import torch

from tests.support import (
    DEVICE,
    DTYPES,
    FLOAT8,
    STORED,
    STORED_ONLY,
    assert_same,
    assert_same_bits,
    assert_same_error,
    clone_layout,
    make,
    name_of,
    on_device,
    outcome,
    run_on_device,
    special_values,
    storage_bytes,
    to_device,
)

# Two ways to cut the same shape, (4, 6), out of a storage of (9, 26).
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x.view(-1)[:24].view(4, 6),
    "offset 1": lambda x: x.view(-1)[1:25].view(4, 6),
    "offset 3": lambda x: x.view(-1)[3:27].view(4, 6),
    "transposed": lambda x: x.view(-1)[5:29].view(6, 4).t(),
    "sliced": lambda x: x[1:9:2, 3:15:2],
    "rows": lambda x: x[2:6, 1:7],
    "at the end": lambda x: x.view(-1)[-24:].view(4, 6),
}


def values(dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    return make((9, 26), dtype, seed)


@pytest.mark.once
def test_a_round_trip_keeps_every_bit() -> None:
    for dtype in STORED:
        x = special_values(dtype, denormals=True)
        assert_same_bits(x.to(DEVICE), x, str(dtype))
        assert_same_bits(run_on_device(torch.clone, x.to(DEVICE), dispatches=None), x, str(dtype))


@pytest.mark.parametrize("dtype", STORED, ids=name_of)
@pytest.mark.parametrize("target", LAYOUTS)
def test_layouts(target: str, dtype: torch.dtype) -> None:
    """Into every layout from every layout: from the host, on the device, to the host."""
    for source in (*LAYOUTS, "expanded", "0-d"):
        base = values(dtype, 1)
        if source == "expanded":
            origin = base[:1, 2:8].expand(4, 6)
        elif source == "0-d":
            origin = base[3, 4]
        else:
            origin = LAYOUTS[source](base)
        expected = LAYOUTS[target](values(dtype))
        from_host, from_device = to_device(expected), to_device(expected)
        to_host = clone_layout(expected)
        moved = to_device(origin)
        expected.copy_(origin)
        with on_device(None, waits=1):  # for what goes to the host
            from_host.copy_(origin)
            to_host.copy_(moved)
        run_on_device(from_device.copy_, moved)
        for how, result in (("from host", from_host), ("on device", from_device), ("to host", to_host)):
            assert_same_bits(storage_bytes(result), storage_bytes(expected), f"{source} -> {target} {how}")


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_dtype_change_in_every_direction(dtype: torch.dtype) -> None:
    for other in DTYPES:
        origin = LAYOUTS["sliced"](make((9, 26), dtype, 1, (-100, 100) if dtype.is_floating_point else None))
        for target in ("contiguous", "sliced", "offset 3"):
            expected = LAYOUTS[target](make((9, 26), other))
            from_host, from_device, to_host = to_device(expected), to_device(expected), clone_layout(expected)
            moved = to_device(origin)
            expected.copy_(origin)
            from_host.copy_(origin)
            to_host.copy_(moved)
            run_on_device(from_device.copy_, moved)
            for how, result in (("from host", from_host), ("on device", from_device), ("to host", to_host)):
                message = f"{dtype} -> {other} {target} {how}"
                assert_same_bits(storage_bytes(result).view(other), storage_bytes(expected).view(other), message, False)


@pytest.mark.parametrize("dtype", STORED, ids=name_of)
def test_tails(dtype: torch.dtype) -> None:
    """Targets that begin and end within a word."""
    for begin in range(5):
        for size in range(1, 10):
            base, origin = values(dtype).view(-1)[:16], values(dtype, 1).view(-1)[:size]
            from_host, on_dev = to_device(base), to_device(base)
            base[begin : begin + size] = origin
            from_host[begin : begin + size] = origin
            on_dev[begin : begin + size] = to_device(origin)
            assert_same_bits(storage_bytes(from_host), storage_bytes(base), f"host [{begin}:+{size}]")
            assert_same_bits(storage_bytes(on_dev), storage_bytes(base), f"device [{begin}:+{size}]")
            assert_same_bits(on_dev[begin : begin + size].cpu(), origin, f"read [{begin}:+{size}]")


@pytest.mark.parametrize("dtype", STORED, ids=name_of)
def test_small_shapes(dtype: torch.dtype) -> None:
    for shape in ((), (0,), (1,), (3, 0, 2), (1, 1, 1), (5,), (2, 3, 4, 5, 6)):
        count = torch.Size(shape).numel()
        x = values(dtype).repeat(4, 1).view(-1)[:count].view(shape)
        moved = x.to(DEVICE)
        assert_same(moved, x, str(shape), exact=True)
        assert_same(moved.clone(), x, str(shape), exact=True)


def test_non_blocking() -> None:
    x = make((1000,), torch.float32)
    moved = x.to(DEVICE, non_blocking=True)
    assert_same_bits(moved.to("cpu", non_blocking=True), x)
    target = torch.zeros(1000, device=DEVICE)
    target.copy_(x, non_blocking=True)
    x_before = x.clone()
    x.zero_()  # the upload has taken the values, whatever happens to the host's
    assert_same_bits(target, x_before)


def test_an_upload_comes_after_what_was_recorded_before() -> None:
    x = torch.ones(64, device=DEVICE)
    y = x + 1
    x.copy_(torch.full((64,), 5.0))
    assert (y.tolist(), x.tolist()) == ([2.0] * 64, [5.0] * 64)


OVERLAPS: dict[str, Callable[[torch.Tensor], object]] = {
    "shifted": lambda x: x[1:].copy_(x[:-1]),
    "shifted back": lambda x: x[:-1].copy_(x[1:]),
    "halves": lambda x: x[:20].copy_(x[20:]),
    "interleaved": lambda x: x[::2].copy_(x[1::2]),
    "interleaved, shifted": lambda x: x[2::2].copy_(x[1:-1:2]),
    "itself": lambda x: x.copy_(x),
    "same place": lambda x: x.copy_(x.view(-1)),
    "transposed": lambda x: x[:36].view(6, 6).copy_(x[:36].view(6, 6).t()),
    "expanded target": lambda x: x[:1].expand(4).copy_(x[4:8]),
    "expanded source": lambda x: x[4:8].copy_(x[:1].expand(4)),
    "expanded source inside": lambda x: x[:4].copy_(x[:1].expand(4)),
    "other dtype": lambda x: x[:10].view(torch.uint8)[:10].copy_(x[20:30]),
}


@pytest.mark.parametrize("dtype", (torch.float32, torch.int64, torch.uint8, torch.float16), ids=name_of)
@pytest.mark.parametrize("name", OVERLAPS)
def test_overlapping_storage(name: str, dtype: torch.dtype) -> None:
    x = torch.arange(40).to(dtype)
    moved = to_device(x)
    _, refused = outcome(OVERLAPS[name], x)
    assert_same_error(outcome(OVERLAPS[name], moved)[1], refused)
    if refused is None:
        assert_same_bits(moved, x)


def test_other_devices_go_through_the_host() -> None:
    x = torch.ones(3, device=DEVICE)
    assert x.to("meta").shape == (3,)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        torch.ones(3, device="meta").to(DEVICE)
    assert x.to(DEVICE) is x
    assert x.to("webgpu:0") is x


@pytest.mark.parametrize("dtype", STORED_ONLY, ids=name_of)
def test_dtypes_without_arithmetic_are_made_in_every_way(dtype: torch.dtype) -> None:
    for call in (
        lambda where: torch.ones(3, dtype=dtype).to(where),
        lambda where: torch.zeros(3, dtype=dtype, device=where),
        lambda where: torch.ones(3, dtype=dtype, device=where),
        lambda where: torch.full((3,), 2, dtype=dtype, device=where),
        lambda where: torch.tensor([1, 2], dtype=dtype, device=where),
        lambda where: torch.ones(3, device=where).to(dtype),
        lambda where: torch.ones(3, device=where).type(dtype),
        lambda where: torch.empty_strided((3,), (2,), dtype=dtype, device=where).fill_(1),
        lambda where: torch.ones(2, dtype=dtype, device=where).resize_(1),
    ):
        with on_device(None) as results:
            results.append(call(DEVICE))
        assert_same(results[0], call("cpu"), str(dtype), exact=True)


def test_python_lists_and_numbers_become_single() -> None:
    assert torch.tensor([1.0, 2.0], device=DEVICE).dtype == torch.float32
    assert torch.tensor([1, 2], device=DEVICE).tolist() == [1, 2]
    assert torch.tensor(2**40 + 1, device=DEVICE).item() == 2**40 + 1
    assert torch.as_tensor([True, False], device=DEVICE).tolist() == [True, False]


# Values for Python


@pytest.mark.parametrize("dtype", STORED, ids=name_of)
def test_item_and_tolist(dtype: torch.dtype) -> None:
    x = special_values(dtype)
    moved = x.to(DEVICE)
    assert repr(moved.tolist()) == repr(x.tolist())
    for index in range(x.numel()):
        assert repr(moved[index].item()) == repr(x[index].item())
    assert repr(moved[::3].tolist()) == repr(x[::3].tolist())
    if dtype not in (torch.bfloat16, *FLOAT8):  # which NumPy does not have
        assert repr(moved.cpu().numpy()) == repr(x.numpy())
    if dtype != torch.uint64:  # of which the CPU refuses what int64 does not hold
        assert [bool(value) for value in moved] == [bool(value) for value in x]


@pytest.mark.parametrize("dtype", STORED, ids=name_of)
def test_repr(dtype: torch.dtype) -> None:
    for x in (values(dtype)[0, :7], values(dtype)[0, 0], torch.zeros(0, dtype=dtype), values(dtype).expand(2, 9, 26)):
        text = repr(to_device(x))
        head, _, tail = text.rpartition(")")
        assert "device='webgpu:0'" in text
        assert (
            "".join((head + tail).replace("device='webgpu:0'", "").split())
            .rstrip(",")
            .startswith("".join(repr(x).rpartition(")")[0].split()).partition(",dtype")[0].partition(",size")[0])
        )
    assert "requires_grad=True" in repr(torch.ones(2, device=DEVICE, requires_grad=True))


def test_copies_on_write() -> None:
    """torch._lazy_clone shares memory until one side is written."""
    is_shared = torch._C._is_cow_tensor
    x = torch.arange(6.0, device=DEVICE)
    y, z = torch._lazy_clone(x), torch._lazy_clone(x)
    assert is_shared(x) and is_shared(y) and is_shared(z)
    with on_device():
        total = x + y
    assert is_shared(x) and is_shared(y), "reading copies nothing"
    assert total.tolist() == [0, 2, 4, 6, 8, 10]
    writes: dict[str, Callable[[torch.Tensor], object]] = {
        "add_": lambda t: t.add_(1),
        "copy_": lambda t: t.copy_(torch.ones(6)),
        "copy_ on the device": lambda t: t.copy_(torch.ones(6, device=DEVICE)),
        "zero_": lambda t: t.zero_(),
        "index_put_": lambda t: t.index_put_((torch.tensor([0], device=DEVICE),), torch.ones(1, device=DEVICE)),
        "setitem": lambda t: t.__setitem__(slice(0, 2), 7),
        "out": lambda t: torch.add(total, 1, out=t),
        "cat out": lambda t: torch.cat([total[:3], total[3:]], out=t),
        "resize_": lambda t: t.resize_(20).fill_(1),
        "uniform_": lambda t: t.uniform_(),
        "tril_": lambda t: t.view(2, 3).tril_(),
        "mm out": lambda t: torch.mm(total.view(2, 3), total.view(3, 2), out=t[:4].view(2, 2)),
        "foreach": lambda t: torch._foreach_add_([t], 1),
        "sort out": lambda t: torch.sort(total.flip(0), out=(t, torch.empty(6, dtype=torch.int64, device=DEVICE))),
    }
    for name, write in writes.items():
        clone, last = torch._lazy_clone(x), torch._lazy_clone(x)
        write(clone)
        assert not is_shared(clone), name
        assert x.tolist() == [0, 1, 2, 3, 4, 5], name
        assert last.tolist() == [0, 1, 2, 3, 4, 5], name
        if name not in ("uniform_",):
            wanted = torch.arange(6.0, device=DEVICE)
            write(wanted)
            assert clone.tolist() == wanted.tolist(), name
    x.add_(1)  # the last writer may keep the memory
    del y, z
    assert x.tolist() == [1, 2, 3, 4, 5, 6]


def test_equal_and_allclose() -> None:
    x = make((66,), torch.float32, 0, (-4, 4)).to(DEVICE)
    with on_device(waits=None):  # each answer is for the host
        assert torch.equal(x, x.clone())
        assert not torch.equal(x, x + 1)
        assert not torch.equal(x, x[:5])
        assert torch.allclose(x, x + 1e-9)
        assert not torch.allclose(x, x + 1)
    assert torch.equal(torch.tensor([], device=DEVICE), torch.tensor([], device=DEVICE))
    assert not torch.equal(torch.tensor([float("nan")], device=DEVICE), torch.tensor([float("nan")], device=DEVICE))
