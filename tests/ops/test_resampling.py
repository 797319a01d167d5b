"""Interpolation of one to three dimensions, sampling by a grid, shuffles, and their gradients."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.ops.test_pooling import Function, compare
from tests.support import (
    FLOATS,
    assert_same,
    assert_same_error,
    deterministic_algorithms,
    make,
    name_of,
    outcome,
    run_on_device,
    to_device,
)

MODES = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
    "bicubic": (2,),
}
SHAPE = (2, 3, 4, 5, 7)
SIZES = ({"size": 11}, {"size": 3}, {"size": 7}, {"scale_factor": 2.0}, {"scale_factor": 1.7}, {"scale_factor": 0.6})
CASES = [(mode, dims) for mode, all_dims in MODES.items() for dims in all_dims]


def shape_of(dims: int) -> tuple[int, ...]:
    return (*SHAPE[:2], *SHAPE[-dims:])


def settings(mode: str) -> list[dict[str, Any]]:
    corners = ({},) if mode.startswith("nearest") else ({"align_corners": False}, {"align_corners": True})
    return [{"mode": mode, **size, **corner} for size, corner in itertools.product(SIZES, corners)]


def interpolate(kwargs: dict[str, Any]) -> Function:
    return lambda x: F.interpolate(x, **kwargs)


@pytest.mark.parametrize(("mode", "dims"), CASES)
def test_interpolate(mode: str, dims: int) -> None:
    for kwargs in settings(mode):
        compare(interpolate(kwargs), make(shape_of(dims), torch.float32, 1, (-4, 4)), str(kwargs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("mode", "dims"), CASES)
def test_halves_and_layouts(mode: str, dims: int) -> None:
    kwargs = {"mode": mode, "scale_factor": 1.7}
    for dtype in FLOATS[1:]:
        slack = 4e-3 if dtype == torch.float16 else 3e-2  # the CPU rounds between the axes
        x = make(shape_of(dims), dtype, 1, (-4, 4))
        compare(interpolate(kwargs), x, f"{mode} {name_of(dtype)}", rtol=slack, atol=slack)
    x = make((2, 3, *SHAPE[-dims:-1], 12), torch.float32, 2, (-4, 4))[..., 2:9]
    compare(interpolate(kwargs), x, f"{mode} offset", rtol=1e-5, atol=1e-5)
    if dims > 1:
        last = torch.channels_last if dims == 2 else torch.channels_last_3d
        x = make((2, 8, *SHAPE[-dims:]), torch.float32, 1, (-4, 4)).to(memory_format=last)
        compare(interpolate(kwargs), x, f"{mode} channels last", rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ("bilinear", "bicubic", "lanczos"))
def test_antialias(mode: str) -> None:
    for size in ((3, 5), (2, 20), (17, 4), (30, 30), (12, 16)):
        kwargs = {"mode": mode, "size": size, "antialias": True}
        for layout in (torch.contiguous_format, torch.channels_last):
            x = make((2, 3, 12, 16), torch.float32, 1, (-4, 4)).to(memory_format=layout)
            compare(interpolate(kwargs), x, f"{kwargs} {layout}", rtol=1e-4, atol=1e-5)


def test_rows_of_quads() -> None:
    """Dense rows of float32, where four outputs are made at a time."""
    for width, size in ((8, 16), (8, 17), (7, 28), (16, 16), (1, 4), (5, 64)):
        x = make((2, 3, 6, width), torch.float32, 1, (-4, 4))
        for corners in (False, True):
            kwargs = {"mode": "bilinear", "size": (9, size), "align_corners": corners}
            compare(interpolate(kwargs), x, str(kwargs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ("nearest-exact", "bilinear", "bicubic"))
def test_places_of_long_rows(mode: str) -> None:
    """Far from the beginning a place that is rounded once more than the CPU's shows."""
    for width, size in ((180, 270), (181, 270), (100, 333)):
        x = make((1, 1, 3, width), torch.float32, 1, (-100, 100))
        kwargs = {"mode": mode, "size": (4, size)}
        assert_same(
            run_on_device(interpolate(kwargs), to_device(x)), interpolate(kwargs)(x), str(kwargs), rtol=1e-5, atol=2e-4
        )


@pytest.mark.parametrize("mode", ("nearest", "nearest-exact", "bilinear", "bicubic"))
def test_bytes(mode: str) -> None:
    for channels, size in ((3, (12, 9)), (5, (3, 20)), (4, (40, 40))):
        for antialias in (False, True) if mode.startswith("bi") else (False,):
            kwargs = {"mode": mode, "size": size, **({"antialias": antialias} if mode.startswith("bi") else {})}
            compare(interpolate(kwargs), make((2, channels, 9, 13), torch.uint8), f"{kwargs} of {channels}")


@pytest.mark.parametrize("padding", ("zeros", "border", "reflection"))
@pytest.mark.parametrize("mode", ("bilinear", "nearest", "bicubic"))
def test_grid_sample(mode: str, padding: str) -> None:
    for dims in (2, 3) if mode != "bicubic" else (2,):
        shape, size = (2, 3, 4, 5, 6)[: dims + 2], (2, *(3, 5, 4)[:dims], dims)
        for corners, dtype in itertools.product((False, True), FLOATS):
            image, grid = make(shape, dtype, 1, (-4, 4)), make(size, dtype, 2, (-1.6, 1.6))
            message = f"{mode} {padding} {dims} {corners} {name_of(dtype)}"

            def sample(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
                return F.grid_sample(x, grid, mode, padding, corners)  # noqa: B023

            slack = {torch.float16: 1e-2, torch.bfloat16: 8e-2}.get(dtype, 2e-5)
            there = to_device((image, grid))
            if dtype == torch.float32:
                compare_both(sample, image, grid, message, slack)
            else:
                assert_same(run_on_device(sample, *there), sample(image, grid), message, rtol=slack, atol=slack)


def compare_both(function: Function, image: torch.Tensor, grid: torch.Tensor, message: str, slack: float) -> None:
    here = [x.clone().requires_grad_() for x in (image, grid)]
    there = [to_device(x).requires_grad_() for x in (image, grid)]
    expected, actual = function(*here), run_on_device(function, *there)
    assert_same(actual, expected, message, rtol=slack, atol=slack)
    weights = make(tuple(expected.shape), torch.float32, 3, (-1, 1))
    expected.backward(weights)
    run_on_device(actual.backward, to_device(weights))
    for one, other, what in zip(there, here, ("image", "grid"), strict=True):
        assert_same(one.grad, other.grad, f"{message}: gradient of the {what}", rtol=1e-4, atol=1e-4)


def test_grid_sample_layouts_and_masks() -> None:
    image = make((2, 3, 5, 6), torch.float32, 1, (-4, 4)).to(memory_format=torch.channels_last)
    grid = make((2, 2, 4, 3), torch.float32, 2, (-1.2, 1.2)).permute(0, 2, 3, 1)
    compare_both(lambda x, g: F.grid_sample(x, g, align_corners=False), image, grid, "strided", 2e-5)
    seed = torch.ones(2, 3, 4, 3)
    args = (seed, image, grid, 0, 0, False)
    for mask in ([True, True], [False, True]):
        expected = torch.ops.aten.grid_sampler_2d_backward(*args, mask)
        actual = run_on_device(torch.ops.aten.grid_sampler_2d_backward, *to_device(args), mask)
        if mask[0]:
            assert_same(actual[0], expected[0], "image", rtol=1e-5, atol=1e-5)
        assert_same(actual[1], expected[1], "grid", rtol=1e-4, atol=1e-4)
    theta = make((2, 2, 3), torch.float32, 3, (-1, 1))
    for corners in (False, True):
        compare(lambda x: F.affine_grid(x, [2, 3, 4, 5], corners), theta, "affine_grid", rtol=1e-5, atol=1e-5)  # noqa: B023


def test_only_the_gradient_of_the_image_is_not_deterministic() -> None:
    image, grid = (x.requires_grad_() for x in to_device((torch.ones(1, 2, 4, 4), torch.zeros(1, 3, 3, 2))))
    with deterministic_algorithms():
        for inputs in ((image, grid), (image.detach(), grid)):
            sampled = F.grid_sample(*inputs, align_corners=False)
            if inputs[0].requires_grad:
                with pytest.raises(RuntimeError, match="grid_sampler_2d_backward does not have a deterministic"):
                    sampled.sum().backward()
            else:
                sampled.sum().backward()
    assert grid.grad is not None
    assert image.grad is None


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.int64, torch.bool), ids=name_of)
def test_shuffles(dtype: torch.dtype) -> None:
    x = make((2, 8, 4, 6), dtype)
    for function in (
        lambda x: F.pixel_shuffle(x, 2),
        lambda x: F.pixel_unshuffle(x, 2),
        lambda x: F.channel_shuffle(x, 4),
        lambda x: torch.native_channel_shuffle(x, 2),
    ):
        assert_same(run_on_device(function, to_device(x)), function(x), "shuffle", exact=True)


@pytest.mark.parametrize(
    ("function", "shape", "dtype"),
    (
        (interpolate({"size": 0}), (2, 3, 4), torch.float32),
        (interpolate({"size": 4}), (2, 3, 4, 4), torch.int64),
        (interpolate({"size": 4}), (2, 3, 4), torch.int64),
        (interpolate({"size": 8, "mode": "linear"}), (2, 3, 4), torch.int64),
        (interpolate({"size": 8, "mode": "bicubic"}), (2, 3, 4, 4), torch.int32),
        (interpolate({"size": 8, "mode": "bilinear", "antialias": True}), (2, 3, 4, 4), torch.float16),
        (interpolate({"size": 8, "mode": "bilinear"}), (2, 0, 4, 4), torch.float32),
        (lambda x: F.grid_sample(x, x.new_zeros(1, 2, 2, 2), align_corners=False), (2, 3, 4, 4), torch.float32),
        (lambda x: F.grid_sample(x, x.new_zeros(2, 2, 2, 3), align_corners=False), (2, 3, 4, 4), torch.float32),
        (lambda x: F.grid_sample(x, x.new_zeros(2, 2, 2, 2), align_corners=False), (2, 3, 0, 4), torch.float32),
        (lambda x: F.grid_sample(x, x.new_zeros(2, 2, 2, 2), align_corners=False), (2, 3, 4, 4), torch.int64),
        (lambda x: F.grid_sample(x, x.new_zeros(2, 2, 2, 2).half(), align_corners=False), (2, 3, 4, 4), torch.float32),
    ),
)
def test_refused(function: Function, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.ones(shape).to(dtype)
    expected = outcome(function, x)[1]
    assert expected is not None
    assert_same_error(outcome(function, to_device(x))[1], expected, str(shape))
