"""Tensors of qint8 and quint8."""

from __future__ import annotations

import pytest
import torch

from tests.support import assert_same, assert_same_error, make, outcome, run_on_device, to_device

QTYPES = ((torch.qint8, 0.05, -3), (torch.quint8, 0.1, 120))


@pytest.mark.parametrize("dtype, scale, zero_point", QTYPES, ids=str)
def test_round_trip(dtype: torch.dtype, scale: float, zero_point: int) -> None:
    for tensor in (make((7, 9), torch.float32), make((9, 7), torch.float32).t(), make((2, 3, 4), torch.float32)[:, 1:],
                   torch.arange(-40, 41) * 0.5 * scale, torch.empty(0, 3), torch.tensor(1.0)):  # fmt: skip
        expected = torch.quantize_per_tensor(tensor, scale, zero_point, dtype)
        actual = run_on_device(torch.quantize_per_tensor, to_device(tensor), scale, zero_point, dtype)
        assert actual.is_quantized and actual.dtype == dtype and actual.device.type == "webgpu"
        assert (actual.q_scale(), actual.q_zero_point(), actual.qscheme()) == (
            scale,
            zero_point,
            torch.per_tensor_affine,
        )
        assert_same(run_on_device(actual.int_repr), expected.int_repr(), "int_repr")
        assert_same(run_on_device(actual.dequantize), expected.dequantize(), "dequantize", rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype, scale, zero_point", QTYPES, ids=str)
def test_moves(dtype: torch.dtype, scale: float, zero_point: int) -> None:
    here = torch.quantize_per_tensor(torch.randn(4, 6), scale, zero_point, dtype)
    there = here.to("webgpu")
    assert there.q_scale() == scale and there.q_zero_point() == zero_point
    assert torch.equal(there.cpu().int_repr(), here.int_repr())
    assert torch.equal(there.clone().int_repr().cpu(), here.int_repr())
    assert torch.equal(there[1:, ::2].int_repr().cpu(), here[1:, ::2].int_repr())
    assert torch.equal(there.view(-1).dequantize().cpu(), here.view(-1).dequantize())
    assert torch.equal(there.flip(0, 1).int_repr().cpu(), here.flip(0, 1).int_repr())
    assert "quantization_scheme" in repr(there)


def test_refusals() -> None:
    for args in ((torch.ones(2), 0.1, 300, torch.quint8), (torch.ones(2), 0.1, -1, torch.quint8)):
        refused = outcome(torch.quantize_per_tensor, *args)[1]
        assert_same_error(outcome(torch.quantize_per_tensor, *to_device(args))[1], refused)
    with pytest.raises(NotImplementedError, match="qint8 or quint8"):
        torch.quantize_per_tensor(torch.ones(2, device="webgpu"), 0.1, 0, torch.qint32)
