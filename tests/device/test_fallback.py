"""Ops without a kernel of ours run on the CPU: counted, visible, or refused. Never a view, never silently wrong.

The ops here are the ones that fall back by design: eigenvalues, Fourier transforms, complex numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import pytest
import torch

from tests.device.process import output_of
from tests.support import DEVICE, assert_same, fallback_mode, falls_back, on_device, to_device

EIGH = "aten::_linalg_eigh.eigenvalues"
FFT = "aten::_fft_r2c"

SYMMETRIC = torch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]])
COMPLEX = torch.tensor([1 + 2j, 3 - 1j, -2j, 4 + 0j])


@pytest.fixture
def quiet() -> Iterator[None]:
    torch.webgpu.reset_cpu_fallbacks()
    with fallback_mode("quiet"):
        yield
    torch.webgpu.reset_cpu_fallbacks()


# Counting


@pytest.mark.usefixtures("quiet")
def test_each_op_is_counted() -> None:
    x = SYMMETRIC.to("webgpu")
    assert torch.webgpu.cpu_fallbacks() == {}
    for _ in range(3):
        torch.linalg.eigh(x)
    torch.fft.fft(x[0])
    _ = x + 1
    assert torch.webgpu.cpu_fallbacks() == {EIGH: 3, FFT: 1}
    torch.webgpu.reset_cpu_fallbacks()
    assert torch.webgpu.cpu_fallbacks() == {}


@pytest.mark.usefixtures("quiet")
def test_the_counts_are_a_copy() -> None:
    torch.linalg.eigvalsh(SYMMETRIC.to("webgpu"))
    torch.webgpu.cpu_fallbacks().clear()
    assert torch.webgpu.cpu_fallbacks() == {EIGH: 1}


# Results


@pytest.mark.usefixtures("quiet")
def test_results_are_on_the_device_and_the_cpus() -> None:
    x = SYMMETRIC.to("webgpu")
    values, vectors = torch.linalg.eigh(x)
    assert values.is_webgpu
    assert vectors.is_webgpu
    torch.testing.assert_close((values.cpu(), vectors.cpu()), tuple(torch.linalg.eigh(SYMMETRIC)))
    torch.testing.assert_close((vectors * values @ vectors.t()).cpu(), SYMMETRIC)


@pytest.mark.usefixtures("quiet")
def test_a_number_as_the_first_tensor_does_not_move_the_result() -> None:
    """PyTorch gives results the device of the first tensor, which is on the CPU for the 2 of `2 - x`."""
    x = torch.arange(3.0, dtype=torch.float64, device="webgpu")
    for result in (2 - x, torch.tensor(2.0) - x, torch.stack([torch.atan2(torch.tensor(2.0), x)])):
        assert result.is_webgpu
    torch.testing.assert_close((2 - x).cpu(), 2 - x.cpu())


@pytest.mark.usefixtures("quiet")
def test_work_before_and_after_is_in_order() -> None:
    """The fallback reads what is still queued, and what follows reads what it wrote."""
    actual, expected = (torch.arange(64.0, device=device) for device in ("webgpu", "cpu"))
    for _ in range(5):
        actual, expected = (torch.fft.rfft(x * 0.5 + 1).real.repeat(2)[:64] - 1 for x in (actual, expected))
    torch.testing.assert_close(actual.cpu(), expected)


@pytest.mark.usefixtures("quiet")
def test_out_is_written_where_it_is() -> None:
    x = SYMMETRIC.to("webgpu")
    values, around = torch.empty(3, device="webgpu"), torch.full((3, 6), 9.0, device="webgpu")
    address = values.data_ptr()
    returned = torch.linalg.eigh(x, out=(values, around[:, ::2]))
    assert values.data_ptr() == returned[0].data_ptr() == address
    expected = torch.linalg.eigh(SYMMETRIC)
    torch.testing.assert_close(values.cpu(), expected[0])
    torch.testing.assert_close(around[:, ::2].cpu(), expected[1])
    assert around[:, 1::2].cpu().eq(9).all(), "what lies between is left alone"


@pytest.mark.usefixtures("quiet")
def test_out_is_resized() -> None:
    out = torch.empty(0, dtype=torch.complex64, device="webgpu")
    assert torch.fft.fft(SYMMETRIC.to("webgpu"), out=out) is out
    assert out.is_webgpu
    torch.testing.assert_close(out.cpu(), torch.fft.fft(SYMMETRIC))
    assert torch.webgpu.cpu_fallbacks() == {f"{FFT}.out": 1}


@pytest.mark.usefixtures("quiet")
def test_out_that_is_resized_has_the_cpus_strides() -> None:
    for rows in (2, 3, 5):  # columns one behind another, and with gaps between them
        a, b = torch.rand(rows, 3, generator=torch.Generator().manual_seed(rows)), torch.rand(rows, 4)
        expected = torch.linalg.lstsq(a, b).solution
        with falls_back():
            solution = torch.linalg.lstsq(a.to(DEVICE), b.to(DEVICE)).solution
        assert_same(solution, expected, rtol=1e-3, atol=1e-3)
        assert_same(solution.clone(), expected.clone(), rtol=1e-3, atol=1e-3)


@pytest.mark.usefixtures("quiet")
def test_in_place_writes_through_a_view() -> None:
    here = COMPLEX.clone()
    there = here.to("webgpu")
    address = there.data_ptr()
    for x in (here, there):
        view = x[::2]
        assert view.mul_(2j) is view
    assert there.data_ptr() == address
    assert torch.equal(there.cpu(), here)
    assert torch.webgpu.cpu_fallbacks() == {"aten::mul_.Tensor": 1}


@pytest.mark.usefixtures("quiet")
def test_lists_of_tensors() -> None:
    points = torch.tensor([[0.0, 1.0], [2.0, 0.5], [1.5, 1.5]])
    bins = [torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 1.0, 2.0])]
    actual = torch.histogramdd(points.to("webgpu"), to_device(bins))
    expected = torch.histogramdd(points, bins)
    assert actual.hist.is_webgpu
    assert torch.equal(actual.hist.cpu(), expected.hist)
    assert all(edges.is_webgpu for edges in actual.bin_edges)


@pytest.mark.usefixtures("quiet")
def test_any_layout_of_the_input() -> None:
    base = torch.arange(48.0).view(6, 8)
    for view in (base, base.t(), base[1:, ::3], base[0].expand(4, 8)):
        torch.testing.assert_close(torch.fft.rfft(to_device(view)).cpu(), torch.fft.rfft(view))
    assert torch.linalg.eigvalsh(torch.ones(0, 3, 3, device="webgpu")).shape == (0, 3)


@pytest.mark.usefixtures("quiet")
def test_gradients() -> None:
    here, there = (SYMMETRIC.clone().to(device).requires_grad_() for device in ("cpu", "webgpu"))
    for x in (here, there):
        (torch.linalg.eigvalsh(x) * torch.tensor([1.0, 2.0, 3.0], device=x.device)).sum().backward()
    assert there.grad is not None
    assert there.grad.is_webgpu
    torch.testing.assert_close(there.grad.cpu(), here.grad)


@pytest.mark.usefixtures("quiet")
def test_errors_are_the_cpus() -> None:
    with pytest.raises(RuntimeError, match="must be batches of square matrices"):
        torch.linalg.eigh(torch.ones(2, 3, device="webgpu"))
    assert (torch.ones(2, device="webgpu") + 1).tolist() == [2.0, 2.0]


# Complex numbers: ops with a kernel of ours step aside

COMPLEX_OPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "aten::add.Tensor": lambda z: z + z,
    "aten::mul.Tensor": lambda z: z * 2,
    "aten::exp": lambda z: z.exp(),
    "aten::abs": lambda z: z.abs(),
    "aten::sum.dim_IntList": lambda z: z.sum(),
    "aten::mm": lambda z: z.view(2, 2) @ z.view(2, 2),
    "aten::add.out": lambda z: torch.add(z, 1, out=torch.empty_like(z)),
}


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", COMPLEX_OPS)
def test_complex_numbers_step_aside_and_are_counted(name: str) -> None:
    actual = COMPLEX_OPS[name](COMPLEX.to("webgpu"))
    assert actual.is_webgpu
    assert torch.webgpu.cpu_fallbacks()[name] == 1
    torch.testing.assert_close(actual.cpu(), COMPLEX_OPS[name](COMPLEX))


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("number", [2j, torch.tensor(2j)], ids=["number", "0-d tensor"])
def test_a_complex_number_makes_a_real_tensor_step_aside(number: complex | torch.Tensor) -> None:
    x = torch.tensor([1.0, 2.0])
    assert torch.equal((x.to("webgpu") * number).cpu(), x * number)
    assert torch.webgpu.cpu_fallbacks() == {"aten::mul.Tensor": 1}


def test_complex_numbers_are_refused_when_fallbacks_are() -> None:
    with pytest.raises(NotImplementedError, match=r"'aten::add\.Tensor'"):
        _ = COMPLEX.to("webgpu") + 1


def test_conjugate_and_negative_views() -> None:
    """Flags on a tensor until something reads it. In a process of its own: to resolve one is to copy it,
    and a copy that resolves would recurse until the stack ends."""
    script = """
    import torch
    z = torch.tensor([1 + 2j, 3 - 1j])
    there = z.to("webgpu")
    for f in (
        lambda z: z.conj(),
        lambda z: z.conj().clone(),
        lambda z: z.conj().imag,
        lambda z: z.conj().resolve_conj() + 1,
        lambda z: torch.zeros_like(z).copy_(z.conj()),
        lambda z: torch._neg_view(z.real),
        lambda z: torch._neg_view(z.real) + 1,
    ):
        assert torch.equal(f(there).cpu(), f(z))
    """
    output_of(script, TORCH_WEBGPU_FALLBACK="quiet")


# Modes


def test_error_names_the_op_and_the_way_out() -> None:
    x = SYMMETRIC.to("webgpu")
    before = torch.webgpu.cpu_fallbacks()
    with pytest.raises(NotImplementedError) as caught:
        torch.linalg.eigh(x)
    assert f"'{EIGH}'" in str(caught.value)
    assert "TORCH_WEBGPU_FALLBACK=error" in str(caught.value)
    assert torch.webgpu.cpu_fallbacks() == before, "nothing ran"


def test_warn_warns_once_per_op() -> None:
    torch.webgpu.reset_cpu_fallbacks()
    x = SYMMETRIC.to("webgpu")
    with fallback_mode("warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            torch.linalg.eigh(x)
            torch.fft.fft(x)
    texts = [str(warning.message) for warning in caught]
    assert [sum(f"'{op}'" in text for text in texts) for op in (EIGH, FFT)] == [1, 1]
    assert len(texts) == 2
    assert all("cpu_fallbacks()" in text for text in texts)
    assert torch.webgpu.cpu_fallbacks() == {EIGH: 3, FFT: 3}


@pytest.mark.usefixtures("quiet")
def test_quiet_is_quiet() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.linalg.eigh(SYMMETRIC.to("webgpu"))
    assert torch.webgpu.cpu_fallbacks() == {EIGH: 1}


def test_the_mode_before_is_returned() -> None:
    assert torch.webgpu.set_fallback_mode("quiet") == "error"
    assert torch.webgpu.set_fallback_mode("warn") == "quiet"
    with pytest.raises(ValueError, match="error, warn or quiet, not 'loud'"):
        torch.webgpu.set_fallback_mode("loud")
    assert torch.webgpu.set_fallback_mode("error") == "warn", "a bad one changes nothing"


ENVIRONMENT = """
    import torch, warnings
    x = torch.eye(2).to("webgpu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            print(torch.linalg.eigvalsh(x).tolist())
        except (NotImplementedError, RuntimeError) as error:
            print(type(error).__name__, str(error).splitlines()[0])
    print(len(caught), sum(torch.webgpu.cpu_fallbacks().values()))
"""


@pytest.mark.parametrize(
    ("mode", "result", "counts"),
    [
        ("error", "NotImplementedError The operator", "0 0"),
        ("warn", "[1.0, 1.0]", "1 1"),
        ("quiet", "[1.0, 1.0]", "0 1"),
    ],
)
def test_the_mode_comes_from_the_environment(mode: str, result: str, counts: str) -> None:
    first, second = output_of(ENVIRONMENT, TORCH_WEBGPU_FALLBACK=mode)
    assert first.startswith(result)
    assert second == counts


@pytest.mark.parametrize("setup", ["import os; del os.environ['TORCH_WEBGPU_FALLBACK']", "import os"])
def test_without_the_variable_it_warns(setup: str) -> None:
    """Unset or empty, which is the same to whoever writes `TORCH_WEBGPU_FALLBACK= python ...`."""
    script = "\n".join([setup, *(line.removeprefix("    ") for line in ENVIRONMENT.splitlines())])
    assert output_of(script, TORCH_WEBGPU_FALLBACK="") == ["[1.0, 1.0]", "1 1"]


def test_a_bad_mode_in_the_environment_is_named() -> None:
    """Not while importing, which never fails, but at the first op that asks."""
    first, second = output_of(ENVIRONMENT, TORCH_WEBGPU_FALLBACK="loud")
    assert first == "RuntimeError TORCH_WEBGPU_FALLBACK is 'loud'; it may be error, warn or quiet"
    assert second == "0 0"


# Views

VIEWS: dict[str, Callable[[torch.Tensor], object]] = {
    "as_strided": lambda x: x.as_strided((2, 2), (1, 2), 1),
    "chunk": lambda x: x.chunk(2)[1],
    "detach": lambda x: x.detach(),
    "diagonal": lambda x: x.diagonal(),
    "expand": lambda x: x[:, :1].expand(4, 6),
    "flatten": lambda x: x.flatten(),
    "index of integers and slices": lambda x: x[1, ::2],
    "movedim": lambda x: x.movedim(0, 1),
    "narrow": lambda x: x.narrow(1, 2, 3),
    "permute": lambda x: x.permute(1, 0),
    "real": lambda x: torch.view_as_complex(x.view(4, 3, 2)).real,
    "select": lambda x: x.select(0, 2),
    "split": lambda x: x.split([1, 3])[1],
    "squeeze": lambda x: x.view(4, 1, 6).squeeze(1),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "t": lambda x: x.t(),
    "tensor_split": lambda x: x.tensor_split(3, 1)[0],
    "unbind": lambda x: x.unbind()[3],
    "unflatten": lambda x: x.unflatten(1, (2, 3)),
    "unfold": lambda x: x.unfold(1, 3, 2),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "view": lambda x: x.view(2, 12),
    "view of a dtype": lambda x: x.view(torch.int16),
    "view_as_complex": lambda x: torch.view_as_complex(x.view(4, 3, 2)),
    "view_as_real": lambda x: torch.view_as_real(torch.view_as_complex(x.view(4, 3, 2))),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_never_fall_back(name: str) -> None:
    """The fallback would give a copy: writes would be lost."""
    x = torch.arange(24.0).view(4, 6)
    there = x.to("webgpu")
    with on_device(dispatches=False) as results:
        view = VIEWS[name](there)
        results.append(view)
    expected = VIEWS[name](x)
    assert isinstance(view, torch.Tensor)
    assert isinstance(expected, torch.Tensor)
    assert view.untyped_storage().data_ptr() == there.untyped_storage().data_ptr()
    assert (view.shape, view.stride()) == (expected.shape, expected.stride())
    assert view.storage_offset() == expected.storage_offset()
