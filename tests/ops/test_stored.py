"""Dtypes that the device stores without computing with them: comparisons, signs, fallbacks, gradients through those."""

from collections.abc import Callable

import pytest
import torch

from tests.support import (
    COMPLEX,
    DEVICE,
    FLOAT8,
    STORED_ONLY,
    UNSIGNED,
    assert_same,
    assert_same_error,
    fallback_mode,
    falls_back,
    make,
    name_of,
    outcome,
    run_on_device,
    special_values,
    to_device,
)

Call = Callable[..., torch.Tensor]
COMPARISONS: tuple[Call, ...] = (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge)


def pairs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Every special value against every other, and ordinary ones."""
    special = special_values(dtype, denormals=not dtype.is_complex)
    count = special.numel()
    left = torch.cat([special.repeat_interleave(count), make((66,), dtype, 1)])
    right = torch.cat([special.repeat(count), make((66,), dtype, 1)[:33], make((33,), dtype, 3)])
    return left, right


@pytest.mark.parametrize("dtype", (torch.float64, *COMPLEX, *FLOAT8), ids=name_of)
def test_comparisons(dtype: torch.dtype) -> None:
    left, right = pairs(dtype)
    for function in COMPARISONS[: 6 if dtype == torch.float64 else 2]:
        actual = run_on_device(function, *to_device((left, right)))
        assert_same(actual, function(left, right), f"{function.__name__}")
        for number in (0, 1, -0.5, 2.5):
            assert_same(run_on_device(function, to_device(left), number), function(left, number), f"{number}")


@pytest.mark.parametrize("dtype", UNSIGNED, ids=name_of)
def test_comparisons_of_unsigned_integers(dtype: torch.dtype) -> None:
    """The CPU orders none of these; Python's integers do."""
    left, right = pairs(dtype)
    for function in COMPARISONS:
        compare = getattr(int, f"__{function.__name__}__")
        expected = torch.tensor([compare(a, b) for a, b in zip(left.tolist(), right.tolist(), strict=True)])
        assert_same(run_on_device(function, *to_device((left, right))), expected, function.__name__)
    assert_same(run_on_device(torch.eq, to_device(left), 7), left.eq(7), "a number")


def test_float64_against_other_dtypes() -> None:
    x = torch.cat([special_values(torch.float64), make((60,), torch.float64, 1)])
    for dtype in (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool):
        y = make((x.numel(),), dtype, 2)
        y[:3] = y[3:6]
        for function in COMPARISONS:
            assert_same(run_on_device(function, *to_device((x, y))), function(x, y), f"{dtype}")
            assert_same(run_on_device(function, *to_device((y, x))), function(y, x), f"{dtype}")
    whole, scalar = make((66,), torch.int64, 1), torch.tensor(2.5, dtype=torch.float64)
    for function in COMPARISONS:  # of int64 and a number of the host in float64
        assert_same(run_on_device(function, to_device(whole), scalar), function(whole, scalar))


def test_signs_and_tests_of_float64() -> None:
    x = torch.cat([special_values(torch.float64, denormals=True), make((60,), torch.float64, 1)])
    y = x.flip(0).contiguous()
    for name, call in {
        "neg": lambda x, y: -x,
        "abs": lambda x, y: x.abs(),
        "abs_": lambda x, y: x.clone().abs_(),
        "copysign": torch.copysign,
        "isnan": lambda x, y: x.isnan(),
        "isinf": lambda x, y: x.isinf(),
        "isfinite": lambda x, y: x.isfinite(),
        "isposinf": lambda x, y: torch.isposinf(x),
        "isneginf": lambda x, y: torch.isneginf(x),
        "signbit": lambda x, y: torch.signbit(x),
        "where": lambda x, y: torch.where(x > y, x, y),
        "where with a number": lambda x, y: torch.where(x > 0, x, -1e300),
        "where with float32": lambda x, y: torch.where(x > 0, x, y.float()),
        "negative view": lambda x, y: torch._neg_view(x).clone(),
    }.items():
        assert_same(run_on_device(call, *to_device((x, y))), call(x, y), name, exact=True)


@pytest.mark.parametrize("dtype", COMPLEX, ids=name_of)
def test_complex_without_arithmetic(dtype: torch.dtype) -> None:
    z = make((66,), dtype, 1)
    for name, call in {
        "neg": lambda z: -z,
        "real": lambda z: z.real.clone(),
        "imag": lambda z: z.imag.clone(),
        "conj": lambda z: z.conj().resolve_conj(),
        "conj imag": lambda z: z.conj().imag.resolve_neg(),
        "isnan": lambda z: z.isnan(),
        "where": lambda z: torch.where(z.real > 0, z, z.flip(0)),
        "where with a number": lambda z: torch.where(z.real > 0, z, 1.5),
        "to real view": torch.view_as_real,
    }.items():
        actual = run_on_device(call, to_device(z), dispatches=None)
        assert_same(actual, call(z), name, exact=name != "neg")  # the CPU's vectors and single elements differ in -0


ARITHMETIC: dict[str, Call] = {
    "add": lambda x: x + x,
    "add a number": lambda x: x + 1.5,
    "add a number of the host": lambda x: x + torch.tensor(2.5, dtype=torch.float64),
    "mul float32": lambda x: x * torch.ones(6, device=x.device),
    "in place": lambda x: x.clone().mul_(3),
    "out": lambda x: torch.add(x, x, out=torch.empty_like(x)),
    "sum": lambda x: x.sum(),
    "mean of a dimension": lambda x: x.view(2, 3).mean(1),
    "matmul": lambda x: x.view(2, 3) @ x.view(3, 2),
    "exp": lambda x: x.exp(),
    "cumsum": lambda x: x.cumsum(0),
    "index_put accumulate": lambda x: x.clone().index_put_((torch.tensor([1, 1], device=x.device),), x[:2], True),
    "unfold backward": lambda x: torch.ops.aten.unfold_backward(x.view(2, 3), [6], 0, 3, 3),
    "col2im": lambda x: torch.nn.functional.fold(x[:4].view(1, 4, 1), (2, 2), (2, 2)),
    "foreach": lambda x: torch._foreach_add([x, x], 1)[1],
    "lerp": lambda x: torch.lerp(x, x.flip(0), 0.5),
}


@pytest.mark.parametrize("dtype", (torch.float64, *COMPLEX), ids=name_of)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_the_cpus(name: str, dtype: torch.dtype) -> None:
    x = make((6,), dtype, 1, (-3, 3))
    with falls_back():
        actual = ARITHMETIC[name](to_device(x))
    assert_same(actual, ARITHMETIC[name](x), name)


def test_arithmetic_that_becomes_float64() -> None:
    """No operand on the device is float64, and the result is."""
    x = make((6,), torch.int64, 1, (-9, 9))
    for name, call in {
        "a number of the host": lambda x: x * torch.tensor(2.5, dtype=torch.float64),
        "dtype of a sum": lambda x: x.float().sum(dtype=torch.float64),
        "dtype of a softmax": lambda x: x.float().softmax(0, dtype=torch.float64),
        "float_power": lambda x: x.float_power(2),
        "default": with_default_float64(lambda x: x / 3),
        "default, a function": with_default_float64(lambda x: x.sin()),
        "bincount": lambda x: torch.bincount(x.abs(), x),
    }.items():
        with falls_back():
            actual = call(to_device(x))
        expected = call(x)
        assert expected.dtype == torch.float64
        assert_same(actual, expected, name)


def with_default_float64(call: Call) -> Call:
    def wrapped(x: torch.Tensor) -> torch.Tensor:
        torch.set_default_dtype(torch.float64)
        try:
            return call(x)
        finally:
            torch.set_default_dtype(torch.float32)

    return wrapped


def test_a_fallback_is_warned_of_once_counted_and_can_be_forbidden() -> None:
    x = torch.ones(3, dtype=torch.float64, device=DEVICE)
    torch.webgpu.reset_cpu_fallbacks()
    with fallback_mode("warn"), pytest.warns(UserWarning, match=r"aten::add.Tensor.*no webgpu kernel for float64"):
        x + x
    with fallback_mode("quiet"):
        x + x
    assert torch.webgpu.cpu_fallbacks() == {"aten::add.Tensor": 2}
    with fallback_mode("error"), pytest.raises(NotImplementedError, match=r"aten::add.Tensor.*for float64"):
        x + x


@pytest.mark.parametrize("dtype", (*UNSIGNED, *FLOAT8), ids=name_of)
def test_what_the_cpu_lacks_is_refused_as_there(dtype: torch.dtype) -> None:
    x = make((6,), dtype, 1)
    for call in (lambda x: x + x, lambda x: x.sin() + x, lambda x: x.cumsum(0), lambda x: x * x, lambda x: x @ x):
        expected, refused = outcome(call, x)
        with fallback_mode("quiet"):
            actual, error = outcome(call, to_device(x))
        assert_same_error(error, refused)
        if refused is None:
            assert_same(actual, expected)


def test_gradients_through_float64() -> None:
    results = []
    for device in ("cpu", DEVICE):
        torch.manual_seed(0)
        x = torch.randn(3, 4, dtype=torch.float64).to(device).requires_grad_()
        y = torch.randn(4, 2).to(device).requires_grad_()
        with fallback_mode("quiet"):
            out = (x.tanh() @ y.double()).float().pow(2).sum()
            out.backward()
        results.append((out.detach(), x.grad, y.grad))
    for actual, expected in zip(*results[::-1], strict=True):
        assert_same(actual, expected)


def test_ops_that_need_float64_inside() -> None:
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    for name, call in {
        "renorm": lambda x: x.renorm(2, 0, 1.0).sum(),
        "pinv": lambda x: torch.linalg.pinv(x, rtol=1e-4).sum(),
        "float_power": lambda x: x.abs().float_power(1.5).sum(),
        "double": lambda x: (x.double() * 2).sum(),
    }.items():
        leaf, moved = x.clone().requires_grad_(), to_device(x).requires_grad_()
        expected = call(leaf)
        expected.backward()
        with fallback_mode("quiet"):
            actual = call(moved)
            actual.backward()
        assert_same(actual.detach(), expected.detach(), name)
        assert_same(moved.grad, leaf.grad, name, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", (torch.float64, torch.complex128), ids=name_of)
def test_random_numbers(dtype: torch.dtype) -> None:
    """Drawn as float32 and widened, by the device's generator."""
    torch.manual_seed(3)
    first = run_on_device(torch.randn, 2000, dtype=dtype, device=DEVICE)
    torch.manual_seed(3)
    assert torch.equal(first.cpu(), torch.randn(2000, dtype=dtype, device=DEVICE).cpu())
    assert first.dtype == dtype
    parts = torch.view_as_real(first.cpu()) if dtype.is_complex else first.cpu()
    assert abs(parts.mean()) < 0.1
    assert abs(parts.std() - (0.5**0.5 if dtype.is_complex else 1)) < 0.1


@pytest.mark.parametrize("dtype", UNSIGNED, ids=name_of)
def test_random_integers(dtype: torch.dtype) -> None:
    x = torch.empty(500, dtype=dtype, device=DEVICE).random_().tolist()
    limit = torch.iinfo(dtype).max
    assert max(x) > 0.9 * limit
    assert min(x) < 0.1 * limit
    y = torch.empty(500, dtype=dtype, device=DEVICE).random_(3, 9).tolist()
    assert set(y) == set(range(3, 9))


@pytest.mark.parametrize("dtype", STORED_ONLY, ids=name_of)
def test_factories(dtype: torch.dtype) -> None:
    for name, call in {
        "zeros": lambda d: torch.zeros(5, dtype=dtype, device=d),
        "ones": lambda d: torch.ones(2, 3, dtype=dtype, device=d),
        "full_like": lambda d: torch.full_like(torch.ones(3, dtype=dtype, device=d), 2),
        "eye": lambda d: torch.eye(3, 4, dtype=dtype, device=d),
        "arange": lambda d: torch.arange(1, 7, 2, dtype=dtype, device=d),
        "linspace": lambda d: torch.linspace(0, 1, 7, dtype=dtype, device=d),
        "logspace": lambda d: torch.logspace(0, 1, 7, dtype=dtype, device=d),
        "scalar_tensor": lambda d: torch.scalar_tensor(3, dtype=dtype, device=d),
        "new_tensor": lambda d: torch.ones(1, dtype=dtype, device=d).new_tensor([1, 2]),
        "tensor of a number": lambda d: torch.tensor(3, dtype=dtype, device=d),
    }.items():
        expected, refused = outcome(call, "cpu")
        if refused is None:
            assert_same(run_on_device(call, DEVICE, dispatches=None), expected, name, exact=True)
        elif name != "eye":  # which the device has for every dtype
            assert_same_error(outcome(call, DEVICE)[1], refused, name)
