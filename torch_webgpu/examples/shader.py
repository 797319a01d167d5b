"""Kernels of one's own: SwiGLU, that is silu(gate) * value, and its gradient in WGSL, as an operator of a model.

python -m torch_webgpu.examples.shader
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

SOURCE = """
// A kernel's arguments are the variables that it uses, in this order.
@group(0) @binding(0) var<storage, read> gate: array<f32>;
@group(0) @binding(1) var<storage, read> value: array<f32>;
@group(0) @binding(2) var<storage, read> grad: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<storage, read_write> grad_gate: array<f32>;
@group(0) @binding(5) var<storage, read_write> grad_value: array<f32>;

fn sigmoid(x: f32) -> f32 { return 1.0 / (1.0 + exp(-x)); }

@compute @workgroup_size(64)
fn swiglu(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= arrayLength(&out)) { return; }  // whole workgroups run
  out[i] = gate[i] * sigmoid(gate[i]) * value[i];
}

@compute @workgroup_size(64)
fn swiglu_backward(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= arrayLength(&grad)) { return; }
  let s = sigmoid(gate[i]);
  grad_gate[i] = grad[i] * value[i] * s * (1.0 + gate[i] * (1.0 - s));
  grad_value[i] = grad[i] * gate[i] * s;
}
"""

lib = torch.webgpu.compile_shader(SOURCE)  # type: ignore[attr-defined]


@torch.library.custom_op("examples::swiglu", mutates_args=(), device_types="webgpu")
def swiglu(gate: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(gate)
    lib.swiglu(gate, value, out)
    return out


@swiglu.register_fake
def _(gate: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(gate)


@torch.library.custom_op("examples::swiglu_backward", mutates_args=(), device_types="webgpu")
def swiglu_backward(gate: torch.Tensor, value: torch.Tensor, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    grad_gate, grad_value = torch.empty_like(gate), torch.empty_like(value)
    lib.swiglu_backward(gate, value, grad, grad_gate, grad_value)
    return grad_gate, grad_value


@swiglu_backward.register_fake
def _(gate: torch.Tensor, value: torch.Tensor, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(gate), torch.empty_like(value)


def keep(ctx: Any, inputs: tuple[torch.Tensor, torch.Tensor], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return swiglu_backward(*ctx.saved_tensors, grad.contiguous())


swiglu.register_autograd(backward, setup_context=keep)


class Gated(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate, self.value = nn.Linear(width, hidden), nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, value = self.gate(x), self.value(x)
        hidden = swiglu(gate, value) if x.device.type == "webgpu" else nn.functional.silu(gate) * value
        return self.down(hidden)


def losses(model: nn.Module, x: torch.Tensor, target: torch.Tensor, steps: int) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(256, 32)
    target = torch.sin(x)
    model = Gated(32, 64)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    on_cpu = losses(model, x, target, 20)
    model.load_state_dict(state)
    on_device = losses(model.to("webgpu"), x.to("webgpu"), target.to("webgpu"), 20)
    for step in range(0, 20, 4):
        print(f"step {step:2}: loss {on_device[step]:.6f} with the kernels, {on_cpu[step]:.6f} on the CPU")
    torch.testing.assert_close(on_device, on_cpu, rtol=1e-4, atol=0)
    print(f"kernels of the shader: {', '.join(dir(lib))}")


if __name__ == "__main__":
    main()
