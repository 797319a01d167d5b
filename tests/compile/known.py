"""OpInfos that are not right when compiled, each with its reason. What is named here must fail."""

import re

import torch

# Every sample asks for a dtype or a layout that the device does not store.
NO_SAMPLE = re.compile(
    r"double|cdouble|chalf|float_power|to|.*softmax\.with_dtype|nn\.functional\.softmin\.with_dtype|to_sparse"
    r"|sparse\..*|jiterator_.*|hash_tensor"
)

_STATISTICS = "PyTorch's decomposition gives statistics in evaluation on every device but the CPU"
_WIDE = "PyTorch's decomposition keeps the statistics of halves in float32 on every device but the CPU"
_EMPTY_RANK = "for a matrix of nothing PyTorch copies into a tensor that it made, which AOTAutograd refuses"

EXPECTED_FAILURES: dict[tuple[str, torch.dtype | None], str] = {
    ("native_batch_norm", None): _STATISTICS,
    ("_native_batch_norm_legit", None): _STATISTICS,
    ("native_layer_norm", torch.float16): _WIDE,
    ("native_layer_norm", torch.bfloat16): _WIDE,
    ("_batch_norm_with_update", torch.float16): _WIDE,
    ("_batch_norm_with_update", torch.bfloat16): _WIDE,
    ("linalg.matrix_rank", None): _EMPTY_RANK,
    ("linalg.matrix_rank.hermitian", None): _EMPTY_RANK,
    ("tensor_split", None): "PyTorch wants the sections of every device's tensor on the CPU",
}
