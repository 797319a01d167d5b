"""A part of the suite on a second, independent driver: SwiftShader. It has subgroups of four lanes.

The whole op suite runs there by the command in CONTRIBUTING.md.
"""

from __future__ import annotations

import pytest

from tests.rerun import ROOT, rerun

ICD = ROOT / ".venv" / "swiftshader" / "vk_swiftshader_icd.json"
DRIVER = {"VK_DRIVER_FILES": str(ICD), "VK_ICD_FILENAMES": str(ICD), "TORCH_WEBGPU_ADAPTER": "SwiftShader"}

# Files of tests/ops, and which of their tests: kernels of each family, and what depends on the driver.
CHOSEN = {
    "attention": "test_masks and whole",
    "cast": "denormals",
    "convolution": "test_memory_formats",
    "distance": "cdist",
    "histogram": "test_histogram",
    "matmul": "test_halves or test_what_is_added or test_batches or test_many_batches",
    "norm_layers": "test_layer_norm_strides or test_far_from_zero or test_batch_norm",
    "promotion": "test_every_pair_of_dtypes and mul and float32",
    "reduce": "test_accuracy or test_norms or test_layouts",
    "resampling": "lanczos",
    "softmax": "test_special_values or test_rows_sum",
}

pytestmark = pytest.mark.skipif(not ICD.exists(), reason="tools/setup found no package with SwiftShader")


def test_each_op_once() -> None:
    rerun("-m", "once", "tests/ops", least=40, **DRIVER)


def test_chosen() -> None:
    files = [f"tests/ops/test_{name}.py" for name in CHOSEN]
    chosen = " or ".join(f"(test_{name} and ({tests}))" for name, tests in CHOSEN.items())
    rerun(*files, "-k", chosen, least=30, **DRIVER)


def test_models() -> None:
    rerun("tests/models/test_workloads.py", "-k", "test_training and adamw", least=6, **DRIVER)
