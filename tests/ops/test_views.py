"""Views share storage, cost no dispatch, and write through."""

from collections.abc import Callable, Sequence

import pytest
import torch

from tests.support import (
    COMPLEX,
    DEVICE,
    DTYPES,
    STORED,
    assert_same,
    assert_same_bits,
    make,
    name_of,
    on_device,
    run_on_device,
    to_device,
)

View = Callable[[torch.Tensor], torch.Tensor | Sequence[torch.Tensor]]

# Of a tensor of (4, 6, 8).
VIEWS: dict[str, View] = {
    "as_strided": lambda x: x.as_strided((3, 5), (2, 7), 11),
    "as_strided overlapping": lambda x: x.as_strided((3, 4), (8, 16), 1),
    "view": lambda x: x.view(8, 24),
    "view -1": lambda x: x.view(2, -1, 2),
    "reshape": lambda x: x.reshape(24, 8),
    "reshape of a slice": lambda x: x[:, :, ::2].reshape(24, 4),
    "view_as": lambda x: x.view_as(torch.empty(192)),
    "flatten": lambda x: x.flatten(1),
    "ravel": lambda x: x.ravel(),
    "unflatten": lambda x: x.unflatten(1, (2, 3)),
    "transpose": lambda x: x.transpose(0, 2),
    "swapaxes": lambda x: x.swapaxes(1, 2),
    "permute": lambda x: x.permute(2, 0, 1),
    "movedim": lambda x: x.movedim(0, 2),
    "T": lambda x: x[0].T,
    "mT": lambda x: x.mT,
    "t": lambda x: x[1].t(),
    "squeeze": lambda x: x[:, 2:3].squeeze(1),
    "squeeze all": lambda x: x[:1, 2:3].squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(2),
    "slice": lambda x: x[1:3, ::2, 3:],
    "ellipsis": lambda x: x[..., 3],
    "None": lambda x: x[:, None, 1],
    "select": lambda x: x.select(1, 3),
    "negative index": lambda x: x[-1, -2],
    "narrow": lambda x: x.narrow(2, 3, 4),
    "expand": lambda x: x[:, :, :1].expand(4, 6, 5),
    "expand_as": lambda x: x[0].expand_as(torch.empty(2, 6, 8)),
    "broadcast_to": lambda x: x[0, 0].broadcast_to((3, 8)),
    "unfold": lambda x: x.unfold(2, 3, 2),
    "diagonal": lambda x: x.diagonal(1, 1, 2),
    "split": lambda x: x.split(3, 2),
    "split sizes": lambda x: x.split([1, 2, 3], 1),
    "chunk": lambda x: x.chunk(3, 1),
    "tensor_split": lambda x: x.tensor_split((2, 5), 1),
    "hsplit": lambda x: x.hsplit(2),
    "unbind": lambda x: x.unbind(1),
    "detach": lambda x: x.detach(),
    "alias": lambda x: torch.ops.aten.alias(x),
    "view same dtype": lambda x: x.view(x.dtype),
    "empty slice": lambda x: x[2:2],
    "0-d": lambda x: x[1, 2, 3],
    "channels": lambda x: x.view(2, 2, 6, 8).permute(0, 3, 1, 2),
}


def first(result: torch.Tensor | Sequence[torch.Tensor]) -> torch.Tensor:
    return result if isinstance(result, torch.Tensor) else result[-1]


def overlaps(name: str) -> bool:
    """Whether one element of the base is several of the view, where an in-place op has no defined result."""
    places = first(VIEWS[name](torch.arange(192).view(4, 6, 8)))
    return places.unique().numel() < places.numel()


@pytest.mark.parametrize("name", VIEWS)
def test_view(name: str) -> None:
    for dtype in (torch.float32, torch.int64, torch.float16, torch.uint8, torch.complex128):
        base = make((4, 6, 8), dtype, 1)
        moved = to_device(base)
        expected = VIEWS[name](base)
        actual = run_on_device(VIEWS[name], moved, dispatches=False)
        assert_same(actual, expected, str(dtype), exact=True)
        expected, actual = first(expected), first(actual)
        assert actual.untyped_storage().data_ptr() == moved.untyped_storage().data_ptr()
        assert actual.storage_offset() == expected.storage_offset()
        assert actual._is_view() == expected._is_view()
        if not overlaps(name) and dtype in DTYPES:
            expected.add_(expected)
            run_on_device(actual.add_, actual)
            assert_same_bits(moved, base, f"{dtype} add_ through the view", nan_payload=False)
        expected.fill_(1)
        actual.fill_(1)
        assert_same_bits(moved, base, f"{dtype} fill_ through the view", nan_payload=False)
        base.zero_()
        moved.zero_()
        assert_same(actual, expected, f"{dtype} the view after writing to the base", exact=True)


@pytest.mark.parametrize("dtype", STORED, ids=name_of)
def test_view_as_every_dtype(dtype: torch.dtype) -> None:
    base = make((4, 16), torch.uint8)
    for other in STORED:
        x = base.view(dtype) if dtype != torch.bool else base.bitwise_and(1).view(dtype)
        expected = x.view(other)
        moved = to_device(x)
        actual = run_on_device(moved.view, other, dispatches=False)
        assert actual.untyped_storage().data_ptr() == moved.untyped_storage().data_ptr()
        assert (actual.shape, actual.stride(), actual.dtype) == (expected.shape, expected.stride(), other)
        assert_same_bits(actual.view(torch.uint8), expected.view(torch.uint8), str(other))


@pytest.mark.parametrize("dtype", COMPLEX, ids=name_of)
def test_complex_views(dtype: torch.dtype) -> None:
    z = make((5, 7), dtype)
    moved = to_device(z)
    with on_device(False):
        parts, real, imaginary = torch.view_as_real(moved), moved.real, moved.imag
        again = torch.view_as_complex(parts)
    assert_same(parts, torch.view_as_real(z), exact=True)
    assert_same(real, z.real, exact=True)
    assert_same(imaginary, z.imag, exact=True)
    assert_same(again, z, exact=True)
    assert_same_bits(moved.conj().cpu().resolve_conj(), z.conj().resolve_conj())
    assert_same_bits(moved.conj().resolve_conj().cpu(), z.conj().resolve_conj())
    real.fill_(2)
    imaginary.copy_(torch.ones(5, 7))
    assert moved.tolist() == [[2 + 1j] * 7] * 5


def test_writing_by_index() -> None:
    for dtype in DTYPES:
        base, values = make((6, 8), dtype, 1), make((8,), dtype, 0)
        moved, moved_values = to_device((base, values))
        for x, v in ((base, values), (moved, moved_values)):
            x[1:5:2] = v
            x[:, 3] = 1
            x[2, 5] = v[2]
            x[..., -1:] = 0
            x[0] = v
        assert_same_bits(moved, base, str(dtype))


def test_reshape_copies_only_where_the_cpu_does() -> None:
    x = to_device(make((4, 6), torch.float32))
    with on_device():
        copied = x.t().reshape(24)
    assert copied.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    assert_same(copied, make((4, 6), torch.float32).t().reshape(24), exact=True)


def test_a_view_outlives_its_base() -> None:
    view = torch.arange(10, device=DEVICE)[3:5]
    others = [torch.zeros(10, dtype=torch.int64, device=DEVICE) for _ in range(20)]
    assert view.tolist() == [3, 4]
    assert sum(x[0].item() for x in others) == 0
