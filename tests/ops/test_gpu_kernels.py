"""The kernels that a GPU would get, on this adapter: for workgroups of 64 and more, with memory of their own."""

from __future__ import annotations

import pytest

from tests.rerun import rerun

# A file of tests, and which of them reach kernels that depend on the kind of adapter.
CHOSEN = {
    "matmul": "test_layouts or (test_halves and bfloat16) or (test_integers and int8 and not uint8)",
    "norm_layers": "test_layer_norm or test_rms_norm or test_far_from_zero or test_batch_norm or test_group_norm",
    "softmax": "test_forward_and_backward or test_special_values or test_rows_sum",
    "reduce": "test_layouts or (test_dtypes and not int) or test_accuracy or test_first_index",
    # windows of single channels, and groups of so few channels that no tile is taken
    "convolution": "test_forward_and_gradients and (g3 or g6 or 2x3x9x7 or 2x5x6x7 or 2x4x9)",
    "sort": "test_rows_in_one_launch or test_rounds_of_topk",
    "attention": "test_masks or (test_halves and bfloat16) or test_dropout",
}


def run_as_gpu(file: str, *options: str, **variables: str) -> None:
    rerun(f"tests/ops/{file}", "-x", *options, TORCH_WEBGPU_TARGET="gpu", **variables)


@pytest.mark.parametrize("name", CHOSEN)
def test_kernels_for_gpus(name: str) -> None:
    run_as_gpu(f"test_{name}.py", "-k", CHOSEN[name])


@pytest.mark.parametrize("tests", ("test_tiles", "thin or batches or parts or choose", "what_is_added or epilogues"))
def test_every_kernel_of_products(tests: str) -> None:
    run_as_gpu("gpu_matmul.py", "-k", tests)


@pytest.mark.parametrize(
    "tests", ("slices or axis or axes or halves", "not slices and not axis and not axes and not halves")
)
def test_every_kernel_of_convolutions(tests: str) -> None:
    run_as_gpu("gpu_convolution.py", "-k", tests)


def test_rows_and_columns() -> None:
    run_as_gpu("gpu_rows.py")


@pytest.mark.parametrize("tests", ("topk", "not topk"))
def test_long_sorts(tests: str) -> None:
    run_as_gpu("gpu_sort.py", "-k", tests)


@pytest.mark.parametrize("tests", ("with_gradients or choose", "not with_gradients and not choose"))
def test_every_kernel_of_attention(tests: str) -> None:
    run_as_gpu("gpu_attention.py", "-k", tests)


def test_attention_with_default_limits() -> None:
    """Gradients with a mask have as many operands as WebGPU's default limits allow bindings."""
    run_as_gpu("test_attention.py", "-k", "test_masks and whole", TORCH_WEBGPU_LIMITS="default")
