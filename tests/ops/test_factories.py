"""Making tensors: dtype, strides and memory format as on the CPU; growing and replacing storage."""

from collections.abc import Callable

import pytest
import torch

from tests.support import (
    DEVICE,
    DTYPES,
    STORED,
    assert_same,
    assert_same_error,
    deterministic_algorithms,
    make,
    name_of,
    on_device,
    outcome,
    run_on_device,
    to_device,
)

Factory = Callable[..., torch.Tensor]

FILLED: dict[str, Factory] = {
    "zeros": lambda **k: torch.zeros(3, 5, **k),
    "ones": lambda **k: torch.ones(3, 5, **k),
    "full": lambda **k: torch.full((3, 5), 1, **k),
    "zeros 0-d": lambda **k: torch.zeros((), **k),
    "ones empty": lambda **k: torch.ones(0, 3, **k),
    "scalar_tensor": lambda **k: torch.scalar_tensor(1, **k),
    "tensor": lambda **k: torch.tensor([[1, 0], [0, 1]], **k),
}
LIKE: dict[str, Factory] = {
    "zeros_like": torch.zeros_like,
    "ones_like": torch.ones_like,
    "full_like": lambda x, **k: torch.full_like(x, 1, **k),
    "new_zeros": lambda x, **k: x.new_zeros((2, 3), **k),
    "new_ones": lambda x, **k: x.new_ones((2, 3), **k),
    "new_full": lambda x, **k: x.new_full((2, 3), 1, **k),
    "new_tensor": lambda x, **k: x.new_tensor([1, 0], **k),
}
MADE: dict[str, Factory] = {
    "empty": lambda **k: torch.empty(2, 3, 4, **k),
    "empty 0-d": lambda **k: torch.empty((), **k),
    "empty none": lambda **k: torch.empty(0, **k),
    "empty channels_last": lambda **k: torch.empty(2, 3, 4, 5, memory_format=torch.channels_last, **k),
    "empty channels_last_3d": lambda **k: torch.empty(2, 3, 4, 5, 6, memory_format=torch.channels_last_3d, **k),
    "empty_strided": lambda **k: torch.empty_strided((2, 3), (1, 4), **k),
    "empty_strided expanded": lambda **k: torch.empty_strided((2, 3), (0, 1), **k),
    "empty_permuted": lambda **k: torch.empty_permuted((2, 3, 4), (1, 2, 0), **k),
}


@pytest.mark.parametrize("dtype", STORED, ids=name_of)
def test_filled(dtype: torch.dtype) -> None:
    for name, factory in FILLED.items():
        # values of a list, and of a single number, are the host's
        dispatches = None if name in ("tensor", "scalar_tensor") else True
        actual = run_on_device(factory, dtype=dtype, device=DEVICE, dispatches=dispatches)
        assert_same(actual, factory(dtype=dtype), name, exact=True)


@pytest.mark.parametrize("dtype", STORED, ids=name_of)
def test_like(dtype: torch.dtype) -> None:
    for name, factory in LIKE.items():
        for x in (
            torch.zeros(3, 5),
            torch.zeros(5, 3).t(),
            torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),
        ):
            actual = run_on_device(factory, to_device(x), dtype=dtype, dispatches=None)
            assert_same(actual, factory(x, dtype=dtype), name, exact=True)


@pytest.mark.parametrize("name", MADE)
def test_empty(name: str) -> None:
    for dtype in STORED:
        actual, expected = MADE[name](dtype=dtype, device=DEVICE), MADE[name](dtype=dtype)
        for what in ("shape", "dtype", "layout"):
            assert getattr(actual, what) == getattr(expected, what), what
        assert actual.stride() == expected.stride()
        assert actual.untyped_storage().nbytes() == expected.untyped_storage().nbytes()
        assert actual.device == torch.device("webgpu", 0)


FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last)


@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
@pytest.mark.parametrize("dtype", (torch.float32, torch.int64, torch.float16, torch.uint8), ids=name_of)
def test_memory_format(dtype: torch.dtype, memory_format: torch.memory_format) -> None:
    base = make((2, 3, 4, 5), dtype)
    for source in (base, base.to(memory_format=torch.channels_last), base.permute(1, 0, 3, 2), base[:, :, ::2]):
        moved = to_device(source)
        for name, call in {
            "clone": lambda x: x.clone(memory_format=memory_format),
            "to": lambda x: x.to(torch.float32, memory_format=memory_format),
            "to copy": lambda x: x.to(x.dtype, copy=True, memory_format=memory_format),
            "contiguous": lambda x: x.contiguous(memory_format=memory_format),
            "zeros_like": lambda x: torch.zeros_like(x, memory_format=memory_format),
        }.items():
            expected, refused = outcome(call, source)
            actual, error = outcome(call, moved)
            assert_same_error(error, refused, name)
            if refused is None:
                assert_same(actual, expected, name, exact=True)
                assert (actual is moved) == (expected is source), name
        assert_same(
            torch.empty_like(moved, memory_format=memory_format).zero_(),
            torch.empty_like(source, memory_format=memory_format).zero_(),
            "empty_like",
        )
        kept = source.to(DEVICE, memory_format=memory_format)
        assert_same(kept, source.to("cpu", copy=True, memory_format=memory_format), "upload", exact=True)


def test_contiguous_makes_no_copy_of_what_is() -> None:
    x = torch.ones(3, 4, device=DEVICE)
    assert run_on_device(x.contiguous, dispatches=False) is x
    assert run_on_device(x.t().contiguous).is_contiguous()


def test_resize() -> None:
    for dtype in DTYPES:
        base = make((4, 6), dtype, 1)
        for shape in ((2, 3), (24,), (2, 12), (0,), ()):
            expected, actual = base.clone(), to_device(base)
            expected.resize_(shape)
            actual.resize_(shape)
            assert_same(actual, expected, str(shape), exact=True)
        expected, actual = base.clone(), to_device(base)
        storage = actual.untyped_storage()
        actual.resize_(5, 7)
        assert actual.shape == (5, 7)
        assert actual.untyped_storage().data_ptr() == storage.data_ptr()
        assert actual.untyped_storage().nbytes() == 35 * base.element_size()
        assert_same(actual.view(-1)[:24], base.view(-1), "what was there stays", exact=True)
        actual.resize_(3, 2, 2, 2, memory_format=torch.channels_last)
        assert actual.stride() == (8, 1, 4, 2)
    offset = torch.zeros(10, device=DEVICE)[4:].resize_(20)
    assert offset.untyped_storage().nbytes() == 24 * 4
    assert offset[:6].tolist() == [0] * 6


def test_storage_resize() -> None:
    x = torch.arange(10, device=DEVICE)
    x.untyped_storage().resize_(0)
    assert x.untyped_storage().nbytes() == 0
    x.untyped_storage().resize_(80)
    assert x.fill_(3).tolist() == [3] * 10
    x.untyped_storage().resize_(200)
    assert x.tolist() == [3] * 10


def test_set() -> None:
    source = torch.arange(12, device=DEVICE)
    x = torch.empty(0, dtype=torch.int64, device=DEVICE)
    assert x.set_(source.untyped_storage(), 2, (2, 3), (4, 1)).tolist() == [[2, 3, 4], [6, 7, 8]]
    x.fill_(-1)
    assert source.tolist() == [0, 1, -1, -1, -1, 5, -1, -1, -1, 9, 10, 11]
    assert x.set_(source[3:5]).tolist() == [-1, -1]
    assert x.set_(source.untyped_storage()).shape == (12,)
    assert x.set_().shape == (0,)
    with pytest.raises(RuntimeError):
        x.set_(torch.ones(3).untyped_storage())


def test_to_keeps_or_copies() -> None:
    x = torch.ones(3, device=DEVICE)
    assert x.to(torch.float32) is x
    assert x.to(DEVICE) is x
    assert x.to(torch.ones(1, device=DEVICE)) is x
    assert x.to(DEVICE, copy=True) is not x
    assert x.float() is x
    assert [y.dtype for y in (x.half(), x.bfloat16(), x.long(), x.int(), x.short(), x.char(), x.byte(), x.bool())] == [
        torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
    ]  # fmt: skip
    assert x.type(torch.int32).dtype == torch.int32
    assert x.cpu().device.type == "cpu"
    assert x.webgpu() is x
    assert torch.ones(3).webgpu().device == torch.device("webgpu:0")


@pytest.mark.parametrize("dtype", STORED, ids=name_of)
def test_new_memory_of_deterministic_algorithms(dtype: torch.dtype) -> None:
    """NaN or the largest integer, unless torch.utils.deterministic says otherwise."""
    with deterministic_algorithms():
        for name, make_new in MADE.items():
            assert_same(make_new(dtype=dtype, device=DEVICE), make_new(dtype=dtype), name, exact=True)
        x = make((6,), dtype)
        for size in ((2, 2), (3, 5)):
            assert_same(to_device(x).resize_(size), x.clone().resize_(size), f"resize_ {size}", exact=True)
        assert_same(torch.empty_like(to_device(x)), torch.empty_like(x), "empty_like", exact=True)
        filled, before = torch.utils.deterministic, torch.utils.deterministic.fill_uninitialized_memory
        filled.fill_uninitialized_memory = False
        try:
            with on_device(dispatches=False) as made:
                made.append(torch.empty(9, dtype=dtype, device=DEVICE))
        finally:
            filled.fill_uninitialized_memory = before
