"""OpInfos that are not right when compiled, each with its reason. What is named here must fail."""

import re

import torch

# Every sample asks for a dtype or a layout that the device does not store.
NO_SAMPLE = re.compile(
    r"double|cdouble|chalf|float_power|to|.*softmax\.with_dtype|nn\.functional\.softmin\.with_dtype|to_sparse"
    r"|sparse\..*|jiterator_.*|hash_tensor"
)

_STATISTICS = "PyTorch's decomposition gives statistics in evaluation on every device but the CPU"

EXPECTED_FAILURES: dict[tuple[str, torch.dtype | None], str] = {
    ("native_batch_norm", None): _STATISTICS,
    ("_native_batch_norm_legit", None): _STATISTICS,
    ("tensor_split", None): "PyTorch wants the sections of every device's tensor on the CPU",
}
