"""The tests marked `once` where kernels are printed differently: on other adapters, as far as one machine has them."""

from __future__ import annotations

import pytest

from tests.rerun import rerun

FILES = ("columns", "indexing", "kept_rows", "optimizers", "pointwise", "reduce", "scans", "training")
ADAPTERS = {
    "workgroups of 64 without subgroups": {"TORCH_WEBGPU_TARGET": "gpu"},
    "subgroups of four": {"LP_NATIVE_VECTOR_WIDTH": "128"},
    "wgpu-native": {"TORCH_WEBGPU_RUNTIME": "wgpu"},
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_once(name: str) -> None:
    rerun("-m", "once", *(f"tests/compile/test_{file}.py" for file in FILES), least=15, **ADAPTERS[name])
