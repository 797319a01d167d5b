"""Tensors print from a copy on the CPU: PyTorch's printer computes in float64, and waits for every number it shows."""

import functools

import torch


def install() -> None:
    original = torch._tensor_str._tensor_str

    @functools.wraps(original)
    def print_from_cpu(self: torch.Tensor, indent: int) -> str:
        return original(self.cpu() if self.device.type == "webgpu" else self, indent)

    torch._tensor_str._tensor_str = print_from_cpu
