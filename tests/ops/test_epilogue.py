"""Products whose elements a text from elsewhere stores: every kernel of the family, with operands of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.support import DEVICE, on_device
from torch_webgpu import _C

WORDS = _C.epilogue_places["matmul"][1]


def parameter(word: int) -> str:
    return f"params[{(WORDS + word) // 4}].{'xyzw'[(WORDS + word) % 4]}"


# out[index] = max(product + bias[index / inner % channels], 0). Parameters: offsets of bias and out, inner, channels.
HEAD = """
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<{element}>;
fn bias_of(index: u32) -> f32 {{ return bias[{offset} + index / {inner} % {channels}]; }}
"""
PARTS = {"offset": parameter(0), "inner": parameter(2), "channels": parameter(3)}
ELEMENTS = (
    HEAD.format(element="f32", **PARTS)
    + f"""
fn epilogue(index: u32, product: f32) {{ out[{parameter(1)} + index] = max(product + bias_of(index), 0.0); }}
"""
)
FOURS = (
    HEAD.format(element="vec4<f32>", **PARTS)
    + f"""
fn epilogue_four(index: u32, product: vec4<f32>) {{
  let b = vec4<f32>(bias_of(index), bias_of(index + 1u), bias_of(index + 2u), bias_of(index + 3u));
  out[({parameter(1)} + index) / 4u] = max(product + b, vec4<f32>());
}}
"""
)

# rows, depth, columns: tiles, lines of every height, vectors from both sides, depths and columns that are no quads
SHAPES = [
    (5, 7, 3),
    (96, 64, 128),
    (8, 256, 512),
    (16, 300, 256),
    (33, 130, 66),
    (1, 512, 256),
    (256, 512, 1),
    (4, 0, 8),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("fours", [False, True], ids=["elements", "fours"])
@pytest.mark.parametrize("batches", [None, 3])
def test_bias_and_relu(shape: tuple[int, int, int], fours: bool, batches: int | None) -> None:
    rows, depth, columns = shape
    generator = torch.Generator().manual_seed(rows * depth + columns)
    lead = () if batches is None else (batches,)
    a, b = torch.randn(*lead, rows, depth, generator=generator), torch.randn(*lead, depth, columns, generator=generator)
    bias = torch.randn(columns + 4, generator=generator)
    multiply = _C.Epilogue("linear_relu", ELEMENTS, FOURS if fours else "", [], [1, 1])
    out = torch.zeros(*lead, rows, columns, device=DEVICE)
    shifted = bias.to(DEVICE)[4:]
    with on_device():
        multiply.matmul(a.to(DEVICE), b.to(DEVICE), [shifted, out], 0b01, [1, columns])
    expected = (a @ b + bias[4:]).relu()
    torch.testing.assert_close(out.cpu(), expected, rtol=1e-5, atol=1e-4)


def test_operands_in_one_buffer_and_transposed() -> None:
    square = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    multiply = _C.Epilogue("linear_relu", ELEMENTS, FOURS, [], [1, 1])
    x, bias = square.to(DEVICE), torch.zeros(64, device=DEVICE)
    multiply.matmul(x, x.t(), [bias, x], 0b01, [1, 64])  # over its own operand
    torch.testing.assert_close(x.cpu(), (square @ square.t()).relu(), rtol=1e-5, atol=1e-4)


WINDOWS = [
    # images, channels in, out, size, kernel, stride, padding, dilation
    (2, 3, 8, (9, 11), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 8, 32, (16, 16), (3, 3), (1, 1), (1, 1), (1, 1)),  # lines in quads
    (1, 16, 24, (17, 15), (5, 3), (2, 2), (2, 1), (1, 1)),
    (2, 4, 16, (12, 12), (3, 3), (1, 1), (2, 2), (2, 2)),
    (3, 16, 12, (8, 8), (1, 1), (1, 1), (0, 0), (1, 1)),  # a product
    (2, 3, 5, (31,), (4,), (3,), (1,), (1,)),
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=["f32", "f16"])
def test_convolution(window: tuple[Any, ...], dtype: torch.dtype) -> None:
    images, channels, rows, size, kernel, stride, padding, dilation = window
    generator = torch.Generator().manual_seed(rows)
    x = torch.randn(images, channels, *size, generator=generator).to(dtype)
    weight = torch.randn(rows, channels, *kernel, generator=generator).to(dtype)
    bias = torch.randn(rows, generator=generator)
    convolve = (torch.nn.functional.conv2d, torch.nn.functional.conv1d)[len(size) == 1]
    expected = convolve(x.float(), weight.float(), bias, stride, padding, dilation).relu()
    out = torch.zeros(expected.shape, device=DEVICE)
    epilogue = _C.Epilogue("convolution_relu", ELEMENTS, FOURS, [], [1, 1])
    pixels = expected[0, 0].numel()
    shape = (list(expected.shape), stride, padding, dilation, [0, 1])
    arguments = (*shape, [bias.to(DEVICE), out], 0b01, [pixels, rows])
    with on_device():
        epilogue.convolution(x.to(DEVICE), weight.to(DEVICE), *arguments)
    torch.testing.assert_close(out.cpu(), expected, rtol=1e-5, atol=1e-4)


def test_bad_arguments() -> None:
    multiply = _C.Epilogue("linear_relu", ELEMENTS, FOURS, [], [1, 1])
    x, out = torch.ones(4, 4, device=DEVICE), torch.zeros(4, 4, device=DEVICE)
    with pytest.raises(ValueError, match=r"linear_relu.*cannot be multiplied"):
        multiply.matmul(x, torch.ones(5, 4, device=DEVICE), [out, out], 1, [4, 4])
    with pytest.raises(ValueError, match="takes floats"):
        multiply.matmul(x.int(), x.int(), [out, out], 1, [4, 4])
    with pytest.raises(ValueError, match=r"linear_relu.*on cpu"):
        multiply.matmul(x, x, [torch.ones(4), out], 1, [4, 4])
