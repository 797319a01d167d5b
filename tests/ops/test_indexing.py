"""Reading and writing by indices, masks and known places: every dtype, strided forms, and indices out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.support import (
    DEVICE,
    DTYPES,
    FLOATS,
    STORED,
    STORED_ONLY,
    assert_same,
    assert_same_storage,
    clone_layout,
    deterministic_algorithms,
    falls_back,
    make,
    name_of,
    on_device,
    outcome,
    run_on_device,
    to_device,
)

Call = Callable[..., Any]


def ints(*values: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


ROWS = ints(3, 0, 3, 1)
GRID = torch.tensor([[0, -1], [2, 1]])
MASK = torch.tensor([True, False, True, True, False])
ALONG = torch.tensor([[0, 4, 1, 2], [3, 0, 2, 1], [1, 1, 4, 0]])  # along dimension 0 of (5, 4)

READS: dict[str, Call] = {
    "index rows": lambda x: x[ROWS.to(x.device)],
    "index columns": lambda x: x[:, ROWS.to(x.device)],
    "index int32": lambda x: x[ROWS.int().to(x.device)],
    "index pairs": lambda x: x[GRID.to(x.device), ints(1, -2).to(x.device)],
    "index with none": lambda x: x[None, GRID.to(x.device), 1:3],
    "index mask": lambda x: x[MASK.to(x.device)],
    "index mask and list": lambda x: x[MASK.to(x.device), ints(0, 1, 3).to(x.device)],
    "index whole mask": lambda x: x[torch.ones(5, 4, dtype=torch.bool, device=x.device).tril()],
    "index host list": lambda x: x[[4, -5]],
    "index nothing": lambda x: x[torch.empty(0, dtype=torch.int64, device=x.device)],
    "index_select": lambda x: x.index_select(1, ROWS.to(x.device)),
    "index_select int32": lambda x: x.index_select(0, ROWS.int().to(x.device)),
    "gather": lambda x: x.gather(0, ALONG.to(x.device)),
    "take": lambda x: x.take(torch.tensor([[0, 19], [-1, 7]], device=x.device)),
    "masked_select": lambda x: x.masked_select(MASK.to(x.device)[:, None]),
    "nonzero": lambda x: x.nonzero(),
    "nonzero_static": lambda x: torch.nonzero_static(x, size=7, fill_value=-3),
    "cat": lambda x: torch.cat([x, x[:2], x.new_empty(0), x[4:]], 0),
    "cat 1": lambda x: torch.cat([x[:, :1], x, x[:, 2:]], 1),
    "cat many": lambda x: torch.cat([x[i % 5, : i % 4] for i in range(23)]),
    "stack": lambda x: torch.stack([x, x.flip(0), x], 1),
    "chunk": lambda x: torch.stack([part.contiguous() for part in x.chunk(2, 1)]),
    "flip": lambda x: x.flip(0),
    "flip both": lambda x: x.flip(0, 1),
    "roll": lambda x: x.roll((1, -3), (0, 1)),
    "roll flat": lambda x: x.roll(7),
    "rot90": lambda x: x.rot90(),
    "tril": lambda x: x.tril(-1),
    "triu": lambda x: x.expand(3, 5, 4).triu(1),
    "diag": lambda x: x[:4].diag().diag(1),
    "repeat": lambda x: x.repeat(2, 1, 2),
    "isin": lambda x: torch.isin(x.int() if x.dtype == torch.bool else x, x[1].int()),
}


# What waits, since the shape of its result depends on values.
WAITS = ("index mask", "index mask and list", "index whole mask", "masked_select", "nonzero", "index_put mask")


def waits_of(name: str) -> int | None:
    return None if name in WAITS else 0


def grid(dtype: torch.dtype, seed: int = 1) -> torch.Tensor:
    return make((5, 4), dtype, seed)


_INTS_OF_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
COMPUTE = ("nonzero", "nonzero_static", "isin")  # the rest moves bits


def moved_by(call: Call, x: torch.Tensor) -> torch.Tensor:
    """What the CPU gives, which moves some dtypes only as integers of their size."""
    try:
        return call(x)
    except NotImplementedError:
        return call(x.view(_INTS_OF_SIZE[x.element_size()])).view(x.dtype)


@pytest.mark.parametrize("dtype", STORED, ids=name_of)
def test_reads(dtype: torch.dtype) -> None:
    for name, call in READS.items():
        if dtype in STORED_ONLY and (name in COMPUTE or (name.startswith("tri") and dtype.itemsize < 8)):
            continue
        # one dtype of each size is enough for layouts: bits are moved
        for layout in ("contiguous", "strided")[: 2 if dtype in (torch.float32, torch.float16, torch.uint8) else 1]:
            x = grid(dtype) if layout == "contiguous" else make((9, 13), dtype, 1)[1:9:2, 2:13:2][:, :5].t()[:, :4]
            expected = moved_by(call, x)
            here = to_device(x)
            actual = run_on_device(call, here, dispatches=expected.numel() > 0 or None, waits=waits_of(name))
            assert_same(actual, expected, f"{name}, {layout}", exact=True)


def fresh(x: torch.Tensor, count: int, seed: int = 5) -> torch.Tensor:
    return make((count, 4), x.dtype, seed).to(x.device)


WRITES: dict[str, Call] = {
    "index_put": lambda x: x.index_put_((ints(3, 0, -1).to(x.device),), fresh(x, 3)),
    "index_put columns": lambda x: x.__setitem__((slice(1, 4), ints(2, 0).to(x.device)), fresh(x, 3)[:, :2]),
    "index_put mask": lambda x: x.__setitem__(MASK.to(x.device), fresh(x, 3)),
    "index_put deterministic": lambda x: deterministic(lambda: x.index_put_((ROWS.to(x.device),), fresh(x, 4))),
    "index_copy": lambda x: x.index_copy_(0, ints(4, 1).to(x.device), fresh(x, 2)),
    "index_copy deterministic": lambda x: deterministic(
        lambda: x.index_copy_(0, ints(4, 1, 4, 4, 1).to(x.device), fresh(x, 5))
    ),
    "index_copy columns deterministic": lambda x: deterministic(
        lambda: x.index_copy_(1, ints(3, 0, 3).to(x.device), fresh(x, 5)[:, :3])
    ),
    "index_fill": lambda x: x.index_fill_(1, ints(0, -2).to(x.device), 1),
    "index_fill tensor": lambda x: x.index_fill_(0, ints(2).to(x.device), fresh(x, 1)[0, 0]),
    "put": lambda x: x.put_(ints(0, -1, 7).to(x.device), fresh(x, 1)[0, :3]),
    "scatter": lambda x: x.scatter_(0, torch.tensor([[4, 0, 1, 2]], device=x.device), fresh(x, 2)),
    "scatter value": lambda x: x.scatter_(1, torch.tensor([[3], [0]], device=x.device), 1),
    "masked_scatter": lambda x: x.masked_scatter_(MASK.to(x.device)[:, None], fresh(x, 3)),
    "tril": lambda x: x.tril_(1),
}


def deterministic(call: Callable[[], Any]) -> Any:
    with deterministic_algorithms():
        return call()


@pytest.mark.parametrize("dtype", (*DTYPES, torch.float64, torch.complex64, torch.complex128), ids=name_of)
def test_writes(dtype: torch.dtype) -> None:
    """In place, into a part of a storage whose rest must stay as it is."""
    for name, call in WRITES.items():
        if dtype in STORED_ONLY and "deterministic" in name:
            continue  # sorts, and then takes the values by arithmetic that these have on the CPU
        base = make((7, 9), dtype, 3)
        for cut in (lambda b: b.view(-1)[1:21].view(5, 4), lambda b: b[1:6, 2:9:2]):
            expected, moved = cut(clone_layout(base)), cut(to_device(base))
            call(expected)
            with on_device(waits=waits_of(name)):
                call(moved)
            assert_same_storage(moved, expected, name)


@pytest.mark.parametrize("dtype", STORED_ONLY, ids=name_of)
def test_writes_of_numbers_and_elements(dtype: torch.dtype) -> None:
    """What needs no arithmetic of the CPU to compare with."""
    for name, call in {
        "item": lambda x: x.__setitem__((2, 3), 3),
        "row": lambda x: x.__setitem__(1, 1),
        "element": lambda x: x.__setitem__((0, 0), x[4, 2].clone()),
        "slice": lambda x: x.__setitem__(slice(1, 3), x[3:5].clone()),
    }.items():
        expected = grid(dtype)
        moved = to_device(expected)
        call(expected)
        run_on_device(call, moved, dispatches=None)
        assert_same(moved, expected, name, exact=True)
    x = grid(dtype)
    for name, call, wanted in (
        ("masked_fill", lambda x: x.masked_fill(MASK.to(x.device)[:, None], 2), MASK[:, None]),
        ("index_fill", lambda x: x.index_fill(0, ints(0, 2, 3).to(x.device), 2), MASK[:, None]),
        ("scatter", lambda x: x.scatter(0, ints(0, 0, 0, 0)[None].to(x.device), 2), torch.arange(5)[:, None] == 0),
    ):
        expected = torch.where(wanted, torch.full_like(x, 2), x)
        assert_same(run_on_device(call, to_device(x)), expected, name, exact=True)


REDUCES: dict[str, Call] = {
    "index_put": lambda x, y: x.index_put((ROWS.to(x.device),), y, accumulate=True),
    "index_put strided": lambda x, y: x.t().index_put((ROWS.to(x.device),), y[:, 0:1].expand(4, 5), accumulate=True),
    "put": lambda x, y: x.clone().put_(ints(0, 3, 0, -20).to(x.device), y[0], accumulate=True),
    "index_add": lambda x, y: x.index_add(0, ROWS.to(x.device), y),
    "index_add columns": lambda x, y: x.index_add(1, ints(2, 2).to(x.device), y[:2].t().repeat(2, 1)[:5]),
    "scatter_add": lambda x, y: x.scatter_add(0, ALONG.to(x.device), y),
    "scatter add": lambda x, y: x.scatter(0, ALONG.to(x.device), y, reduce="add"),
    "scatter multiply": lambda x, y: x.scatter(0, ALONG.to(x.device), y, reduce="multiply"),
    **{
        f"scatter_reduce {how} {keep}": lambda x, y, how=how, keep=keep: x.scatter_reduce(
            0, ALONG.to(x.device), y, how, include_self=keep
        )
        for how in ("sum", "prod", "amax", "amin")
        for keep in (True, False)
    },
    **{
        f"index_reduce {how}": lambda x, y, how=how: x.index_reduce(0, ROWS.to(x.device), y, how, include_self=False)
        for how in ("prod", "amax", "amin")
    },
}


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_reductions_into_places(dtype: torch.dtype) -> None:
    domain = (-3, 3)
    x, y = make((5, 4), dtype, 2, domain), make((4, 4), dtype, 3, domain)
    for name, call in REDUCES.items():
        try:
            expected = call(x, y)
        except (RuntimeError, NotImplementedError):
            continue  # not for this dtype
        actual = run_on_device(call, to_device(x), to_device(y))
        assert_same(actual, expected, name)


@pytest.mark.parametrize("dtype", (torch.float64, torch.complex64, torch.complex128), ids=name_of)
def test_reductions_into_places_by_the_cpu(dtype: torch.dtype) -> None:
    """Arithmetic that the device does not have is a counted fallback, whichever way it is reached."""
    x, y = make((5, 4), dtype, 2, (-3, 3)), make((4, 4), dtype, 3, (-3, 3))
    for name, call in REDUCES.items():
        expected, refused = outcome(call, x, y)
        if refused is not None:
            continue
        with falls_back():
            actual = call(to_device(x), to_device(y))
        assert_same(actual, expected, name)


def test_accumulating_is_deterministic() -> None:
    """Many values into few places: the sums are the CPU's, in the order of the indices, each time."""
    index, values = torch.randint(0, 37, (5000,)), torch.randn(5000, 3)
    expected = torch.zeros(37, 3).index_put((index,), values, accumulate=True)
    first = None
    for _ in range(2):
        zeros, places, moved = to_device((torch.zeros(37, 3), index, values))
        actual = run_on_device(zeros.index_put, (places,), moved, accumulate=True)
        assert_same(actual, expected, atol=1e-4, rtol=1e-5)
        assert first is None or torch.equal(first, actual.cpu())
        first = actual.cpu()


# Ops that take a dimension by parts.
MORE: dict[str, Call] = {
    "embedding": lambda d: torch.nn.functional.embedding(GRID.abs().to(d), make((5, 8), torch.float32, 1).to(d)),
    "one_hot": lambda d: torch.nn.functional.one_hot(GRID.abs().to(d), 4),
    "eye": lambda d: torch.eye(3, 5, device=d),
    "tril_indices": lambda d: torch.cat([torch.tril_indices(4, 6, k, device=d) for k in (-5, -2, 0, 3, 9)], 1),
    "triu_indices": lambda d: torch.cat([torch.triu_indices(6, 4, k, device=d) for k in (-7, -2, 0, 3, 5)], 1),
    "linspace": lambda d: torch.linspace(-2, 9, 12, device=d),
    "searchsorted": lambda d: torch.searchsorted(
        make((3, 9), torch.float32, 2).nan_to_num().sort().values.to(d),
        make((3, 5), torch.float32, 3).to(d),
        right=True,
    ),
    "bucketize": lambda d: torch.bucketize(make((4, 5), torch.int32, 1).to(d), ints(-5, 0, 3, 7).int().to(d)),
    "bucketize scalar": lambda d: torch.bucketize(3.5, torch.tensor([1.0, 3.5, 7.0], device=d), out_int32=True),
}


def test_more() -> None:
    for name, call in MORE.items():
        with on_device(dispatches=None):
            actual = call(DEVICE)
        assert_same(actual, call("cpu"), name)


def test_pads_keep_channels_last() -> None:
    for shape, last in (((2, 3, 4, 5), torch.channels_last), ((2, 3, 4, 5, 6), torch.channels_last_3d)):
        x = make(shape, torch.float32).contiguous(memory_format=last)
        for mode in ("reflect", "replicate", "constant"):
            for tensor in (x, x.contiguous(), x[0]):
                expected = torch.nn.functional.pad(tensor, (1, 2) * (len(shape) - 2), mode=mode)
                actual = run_on_device(torch.nn.functional.pad, to_device(tensor), (1, 2) * (len(shape) - 2), mode=mode)
                assert_same(actual, expected, f"{mode} {tuple(tensor.shape)} {tensor.stride()}", exact=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_padding(dtype: torch.dtype) -> None:
    x = make((2, 3, 4, 5, 6), dtype, 1, (-3, 3))
    for mode in ("reflect", "replicate", "constant", "circular"):
        for rank, padding in ((1, (2, 1)), (2, (3, 1, 0, 2)), (3, (1, 2, 3, 0, 2, 1)), (2, (-1, 2, 1, -2))):
            part = x[:, :, 0, 0] if rank == 1 else x[:, :, 0] if rank == 2 else x
            leaf, moved = part.clone().requires_grad_(), to_device(part.clone()).requires_grad_()
            expected = torch.nn.functional.pad(leaf, padding, mode)
            actual = run_on_device(torch.nn.functional.pad, moved, padding, mode)
            assert_same(actual, expected, f"{mode} {padding}", exact=True)
            expected.sum().backward()
            with on_device():
                actual.sum().backward()
            assert_same(moved.grad, leaf.grad, f"{mode} {padding} backward")


def test_gradients() -> None:
    """Through the ops whose backward is another of them."""
    calls: dict[str, Call] = {
        "index": lambda x: x[GRID.to(x.device), 1:3],
        "gather": lambda x: x.gather(0, ALONG.to(x.device)),
        "index_select": lambda x: x.index_select(0, ROWS.to(x.device)),
        "embedding": lambda x: torch.nn.functional.embedding(GRID.abs().to(x.device), x, padding_idx=1),
        "embedding by frequency": lambda x: torch.nn.functional.embedding(
            ROWS.to(x.device), x, scale_grad_by_freq=True
        ),
        "cat": lambda x: torch.cat([x, x[1:3] * 2]),
        "unfold": lambda x: x.unfold(0, 3, 1),
        "masked_select": lambda x: x.masked_select(MASK.to(x.device)[:, None]),
        "flip": lambda x: x.flip(1),
        "tril": lambda x: x.tril(),
    }
    for name, call in calls.items():
        leaf = torch.randn(5, 4, requires_grad=True)
        moved = to_device(leaf.detach()).requires_grad_()
        expected = call(leaf)
        weight = torch.randn_like(expected)
        expected.backward(weight)
        with on_device(waits=waits_of(name)):
            call(moved).backward(weight.to(DEVICE))
        assert_same(moved.grad, leaf.grad, name)


def test_embedding_bag() -> None:
    table, indices, offsets = torch.randn(7, 6), ints(1, 2, 6, 4, 4, 0, 3), ints(0, 3, 3, 5)
    for mode in ("sum", "mean", "max"):
        for padding in (None, 4):
            for weighted in (False, True) if mode == "sum" else (False,):
                results = []
                for device in ("cpu", DEVICE):
                    leaf = table.clone().to(device).requires_grad_()
                    weights = torch.linspace(1, 2, 7).to(device).requires_grad_() if weighted else None
                    out = torch.nn.functional.embedding_bag(
                        indices.to(device),
                        leaf,
                        offsets.to(device),
                        mode=mode,
                        padding_idx=padding,
                        per_sample_weights=weights,
                    )
                    out.sin().sum().backward() if device == "cpu" else out.backward(results[0][0].cos().to(device))
                    results.append([out.detach(), leaf.grad, *([weights.grad] if weighted else [])])
                for actual, expected in zip(results[1], results[0], strict=True):
                    assert_same(actual, expected, f"{mode} {padding} {weighted}")


# Each must report at the next wait, name itself, and leave memory and device as they were.
OUT_OF_RANGE: dict[str, Call] = {
    "index": lambda x, i: x[i],
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "take": lambda x, i: x.take(i * 100),
    "index_put_": lambda x, i: x.index_put_((i,), x[:2] * 0),
    "put_": lambda x, i: x.put_(i * 100, x[0, :2] * 1),
    "index_add": lambda x, i: x.index_add_(0, i, x[:2] * 1),
    "index_copy": lambda x, i: x.index_copy_(0, i, x[:2] * 1),
    "index_fill_": lambda x, i: x.index_fill_(0, i, 0),
    "scatter": lambda x, i: x.scatter_(0, i[:, None], 0.0),
    "index_put_ accumulate": lambda x, i: x.index_put_((i,), x[:2] * 0, accumulate=True),
}


def test_an_index_out_of_range() -> None:
    for name, call in OUT_OF_RANGE.items():
        base = torch.arange(40.0).view(10, 4)
        for bad in (5, -6, 1 << 32):
            moved = to_device(base)
            call(moved[2:7], ints(1, bad).to(DEVICE))
            with pytest.raises(
                IndexError, match=rf"^index -?\d+ is out of bounds for dimension 0 with size \d+\n.*{name.split()[0]}"
            ):
                torch.webgpu.synchronize() if bad == 5 else moved.sum().item()
            torch.webgpu.synchronize()
            rest = torch.cat([moved.cpu()[:2], moved.cpu()[7:]])
            assert torch.equal(rest, torch.cat([base[:2], base[7:]])), name
            assert (moved + 1).cpu().shape == base.shape


@pytest.mark.parametrize("shape", [(0,), (0, 3), (0, 0)])
def test_a_tensor_without_rows_has_no_index_in_range(shape: tuple[int, ...]) -> None:
    x, rows, index = torch.zeros(shape, device=DEVICE), torch.ones(2, *shape[1:], device=DEVICE), ints(0, 0).to(DEVICE)
    for call in (
        lambda: x.index_add_(0, index, rows),
        lambda: x.index_copy_(0, index, rows),
        lambda: x.index_reduce_(0, index, rows, "prod"),
    ):
        if rows.numel():
            with pytest.raises(IndexError, match="index out of range in self"):
                call()
        else:
            assert call().shape == shape


def test_a_table_larger_than_a_binding() -> None:
    limit = torch.webgpu.get_device_properties().limits["maxStorageBufferBindingSize"]
    if limit > 1 << 28:
        pytest.skip("the adapter binds more than is worth allocating here")
    rows = limit // 4 // 256 + 5000
    table = torch.empty(rows, 256, device=DEVICE)
    table[:] = torch.arange(rows, device=DEVICE)[:, None]
    index = ints(0, 1, rows // 2, rows - 1, rows - 2).to(DEVICE)
    picked = run_on_device(table.index_select, 0, index)
    assert torch.equal(picked[:, 7].cpu(), index.cpu().float())
    with on_device():
        table.index_add_(0, index, torch.ones_like(picked))
    assert torch.equal(table.index_select(0, index)[:, 255].cpu(), index.cpu().float() + 1)
