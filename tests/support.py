"""What every test of ops shares: the same tensor on both devices, proof of where the work ran, and the comparison."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = "webgpu"
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
DTYPES = (*FLOATS, *INTS, torch.bool)
# What the device stores, moves, casts and compares, without other arithmetic.
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz)
COMPLEX = (torch.complex64, torch.complex128)
STORED_ONLY = (torch.float64, *UNSIGNED, *FLOAT8, *COMPLEX)
STORED = (*DTYPES, *STORED_ONLY)

# A storage of the CPU, by its address, and its copy on the device.
Moved = dict[int, torch.Tensor]


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# The same tensor on both devices


def _move(tensor: torch.Tensor, moved: Moved) -> torch.Tensor:
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in moved:
        whole = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),))
        moved[storage.data_ptr()] = whole.to(DEVICE)
    flat = moved[storage.data_ptr()] if storage.nbytes() else torch.empty(0, dtype=torch.uint8, device=DEVICE)
    result = torch.empty(0, dtype=tensor.dtype, device=DEVICE).set_(
        flat.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride()
    )
    return result.requires_grad_(tensor.requires_grad)


def to_device(values: Any, moved: Moved | None = None) -> Any:
    """A copy of a tensor, or of all tensors in a structure, with the same sizes, strides and storage offset.

    Tensors that share a storage share it on the device too; pass `moved` to go on sharing between calls.
    """
    storages: Moved = {} if moved is None else moved
    made: dict[int, torch.Tensor] = {}  # a tensor that is given twice stays one

    def move(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_cpu:
            return value
        if id(value) not in made:
            made[id(value)] = _move(value, storages)
        return made[id(value)]

    return tree_map(move, values)


def clone_layout(values: Any) -> Any:
    """The same for the CPU alone: what an in-place op may destroy."""
    copies: dict[int, torch.Tensor] = {}

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in copies:
            copies[storage.data_ptr()] = torch.empty(0, dtype=torch.uint8).set_(storage.clone())
        result = torch.empty(0, dtype=tensor.dtype).set_(
            copies[storage.data_ptr()].untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride()
        )
        return result.requires_grad_(tensor.requires_grad)

    return tree_map(lambda x: copy(x) if isinstance(x, torch.Tensor) else x, values)


def storage_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """All bytes of a tensor's storage on the CPU: what lies beside the tensor too."""
    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage, 0, (storage.nbytes(),)).cpu()


# Proof that the device did the work


@contextlib.contextmanager
def fallback_mode(mode: str) -> Iterator[None]:
    before = torch.webgpu.set_fallback_mode(mode)
    try:
        yield
    finally:
        torch.webgpu.set_fallback_mode(before)


@contextlib.contextmanager
def deterministic_algorithms() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def on_device(dispatches: bool | int | None = True, waits: int | None = 0) -> Iterator[list[Any]]:
    """The block must not run anything on the CPU, must dispatch, and must not wait for the device.

    `dispatches`: True at least once, False never, a number exactly so often, None as it likes. `waits`: how often the
    host reads back, None as it likes; an op waits only where the shape of its result, or a number for the host, depends
    on values. Results appended to the list it gives must be on the device; if all of them are empty, there is nothing
    to dispatch.
    """
    fallbacks = torch.webgpu.cpu_fallbacks()
    before = torch.webgpu.memory_stats()
    results: list[Any] = []
    yield results
    after = torch.webgpu.memory_stats()
    dispatched, waited = (after.get(key, 0) - before.get(key, 0) for key in ("dispatches", "readbacks"))
    assert torch.webgpu.cpu_fallbacks() == fallbacks, "ran on the CPU"
    tensors = [leaf for leaf in tree_leaves(results) if isinstance(leaf, torch.Tensor)]
    for tensor in tensors:
        assert tensor.device.type == DEVICE, f"the result is on {tensor.device}"
    assert waits is None or waited == waits, f"waited {waited} times for the device, not {waits}"
    if dispatches is True:
        assert dispatched > 0 or (tensors and all(tensor.numel() == 0 for tensor in tensors)), "nothing was dispatched"
    elif dispatches is not None:
        assert dispatched == dispatches, f"{dispatched} dispatches, not {int(dispatches)}"


@contextlib.contextmanager
def falls_back() -> Iterator[None]:
    """The block runs something on the CPU, and says so."""
    before = sum(torch.webgpu.cpu_fallbacks().values())
    with fallback_mode("quiet"):
        yield
    assert sum(torch.webgpu.cpu_fallbacks().values()) > before, "nothing ran on the CPU"


def run_on_device(
    function: Callable[..., Any],
    *args: Any,
    dispatches: bool | int | None = True,
    waits: int | None = 0,
    **kwargs: Any,
) -> Any:
    with on_device(dispatches, waits) as results:
        results.append(function(*args, **kwargs))
    return results[0]


# Comparison

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def assert_same_bits(actual: torch.Tensor, expected: torch.Tensor, message: str = "", nan_payload: bool = True) -> None:
    """Every bit: the sign of zero, denormals and, with `nan_payload`, which NaN."""
    actual, expected = actual.detach().cpu(), expected.detach().cpu()
    assert actual.dtype == expected.dtype, f"{message}: {actual.dtype}, not {expected.dtype}"
    assert actual.shape == expected.shape, f"{message}: {tuple(actual.shape)}, not {tuple(expected.shape)}"
    if expected.is_complex():
        actual, expected = torch.view_as_real(actual), torch.view_as_real(expected)
    left, right = (x.contiguous().view(_BITS[x.element_size()]) for x in (actual, expected))
    wrong = left != right
    if expected.is_floating_point() and not nan_payload:
        wrong &= ~(actual.isnan() & expected.isnan())
    count = int(wrong.sum())
    places = wrong.nonzero()[:5].tolist()
    first = [f"{actual[tuple(i)].item()!r}, not {expected[tuple(i)].item()!r}" for i in places]
    assert count == 0, f"{message}: {count} of {wrong.numel()} elements differ: {'; '.join(first)}"


def assert_same_storage(actual: torch.Tensor, expected: torch.Tensor, message: str = "") -> None:
    """Two tensors of one layout, and what lies beside them: an op on one must leave its neighbours alone."""
    left, right = (storage_bytes(x).view(expected.dtype) for x in (actual, expected))
    assert_same_bits(left, right, message, nan_payload=False)


@functools.cache
def flushes_denormals() -> bool:
    """Whether the adapter's arithmetic takes denormal numbers for zero, as WGSL allows."""
    return (torch.tensor([2.0**-120], device=DEVICE) * 2.0**-10).item() == 0.0


def as_flushed(actual: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Expected values, with zeros for denormal numbers of float32 where the adapter flushes them and gave zero."""
    if not flushes_denormals() or expected.dtype not in (torch.float32, torch.bfloat16):
        return expected
    flushed = (expected.abs() < 2.0**-126) & (actual.detach().cpu() == 0)
    return torch.where(flushed, expected * 0, expected)


def ulps(count: float, dtype: torch.dtype) -> float:
    """A relative tolerance of so many units in the last place."""
    return count * torch.finfo(dtype).eps


def assert_same(
    actual: Any,
    expected: Any,
    message: str = "",
    *,
    rtol: float | None = None,
    atol: float | None = None,
    exact: bool = False,
    strides: bool = True,
    arithmetic: bool = False,
) -> None:
    """The device's answer is the CPU's: dtype, shape, strides and values.

    Integers and bools are compared exactly, floats by PyTorch's own tolerances for the dtype (1.3e-6, 1e-3 and 1.6e-2
    relative, 1e-5 absolute) unless others are given; `exact` compares floats bit by bit, but for which NaN it is.
    Results of `arithmetic` may be zero for denormal numbers where the adapter flushes them; what is moved may not.
    """
    if not isinstance(expected, torch.Tensor):
        assert type(actual) is type(expected), f"{message}: {type(actual)}, not {type(expected)}"
        if isinstance(expected, (tuple, list)):
            assert len(actual) == len(expected), f"{message}: {len(actual)} results, not {len(expected)}"
            for index, (one, other) in enumerate(zip(actual, expected, strict=True)):
                where = f"{message} [{index}]"
                options = {"exact": exact, "strides": strides, "arithmetic": arithmetic}
                assert_same(one, other, where, rtol=rtol, atol=atol, **options)
        else:
            torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=True)
        return
    assert actual.device.type == DEVICE, f"{message}: the result is on {actual.device}"
    assert actual.dtype == expected.dtype, f"{message}: {actual.dtype}, not {expected.dtype}"
    assert actual.shape == expected.shape, f"{message}: {tuple(actual.shape)}, not {tuple(expected.shape)}"
    # Strides of an empty tensor lead nowhere, and decompositions of an op choose them freely.
    if strides and expected.layout == torch.strided and expected.numel() > 0:
        assert actual.stride() == expected.stride(), f"{message}: strides {actual.stride()}, not {expected.stride()}"
    if arithmetic:
        expected = as_flushed(actual, expected.detach())
    if exact or not (expected.is_floating_point() or expected.is_complex()):
        assert_same_bits(actual, expected, message, nan_payload=False)
        return
    torch.testing.assert_close(
        actual.detach().cpu(),
        expected.detach(),
        rtol=rtol,
        atol=atol,
        equal_nan=True,
        check_stride=False,
        msg=lambda text: f"{message}: {text}",
    )


def outcome(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Exception | None]:
    """The result, or the exception."""
    try:
        return function(*args, **kwargs), None
    except Exception as error:
        return None, error


def assert_same_error(actual: Exception | None, expected: Exception | None, message: str = "") -> None:
    """Both raised, the same type, with the same first line, or neither did."""
    assert type(actual) is type(expected), f"{message}: {actual!r}, but the CPU {expected!r}"
    if expected is not None:
        said, wanted = (str(error).partition("\n")[0].replace(f"{DEVICE}:0", "cpu") for error in (actual, expected))
        for own in ("_impl_cpu_", "_out_cpu_template"):  # some names of kernels say whose they are
            wanted = wanted.replace(own, "")
        assert said == wanted, f"{message}: {said!r}, but the CPU {wanted!r}"


# Values

Domain = tuple[float, float]

_SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, float("inf"), float("-inf"), float("nan"))
_SPECIAL_I64 = (2**32, -(2**32), 2**32 + 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 3 * 2**31, 2**31, -(2**31) - 1)


def special_values(dtype: torch.dtype, denormals: bool = False) -> torch.Tensor:
    """The values where kernels go wrong: ends of the range, NaN, infinities, both zeros, 64 bits."""
    if dtype == torch.bool:
        return torch.tensor([True, False])
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        extra = [info.max, info.min, info.tiny, -info.tiny, info.eps, 1 + info.eps]
        if denormals:
            extra += [info.smallest_normal / 2, -info.smallest_normal / 4, info.smallest_normal * info.eps]
        return torch.tensor([*_SPECIAL_FLOATS, *extra], dtype=dtype)
    if dtype.is_complex:
        part = special_values(dtype.to_real(), denormals)
        return torch.complex(part, part.flip(0))
    limits = torch.iinfo(dtype)
    values = [limits.max, limits.min, limits.max - 1, limits.min + 1, 0, 1, 2, 7]
    if limits.min < 0:
        values += [-1, -2, -7]
    if dtype == torch.int64:
        values += _SPECIAL_I64
    return torch.tensor(values, dtype=dtype)


def make(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0, domain: Domain | None = None) -> torch.Tensor:
    """Values of a dtype on the CPU, with all special ones among them as far as they fit and lie in the domain."""
    generator = torch.Generator().manual_seed(seed * 7919 + sum(shape) + len(shape))
    if dtype.is_complex:
        return torch.complex(make(shape, dtype.to_real(), seed, domain), make(shape, dtype.to_real(), seed + 1, domain))
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).to(dtype)
    if dtype.is_floating_point:
        low, high = domain or (-4.0, 4.0)
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        values = torch.rand(shape, generator=generator, dtype=wide).mul(high - low).add(low).to(dtype)
    else:
        limits = torch.iinfo(dtype)
        low, high = (max(domain[0], limits.min), min(domain[1], limits.max)) if domain else (limits.min, limits.max)
        if domain is None and seed % 2:  # half of the inputs small, so that equal pairs and exact products occur
            low, high = max(low, -9), min(high, 9)
        above = int(min(high, 2**63 - 2)) + 1
        values = torch.randint(int(low), above, shape, generator=generator, dtype=torch.int64).to(dtype)
    special = special_values(dtype)
    if domain is not None:
        special = special[(special.double() >= domain[0]) & (special.double() <= domain[1])]
    count = min(special.numel(), values.numel() // 2)
    if count:
        places = torch.randperm(values.numel(), generator=generator)[:count]
        order = torch.randperm(special.numel(), generator=generator)[:count]
        bits = _BITS[dtype.itemsize]  # indexing is not there for every dtype on the CPU
        values.view(-1).view(bits)[places] = special.view(bits)[order]
    return values
