// The counted CPU fallback of sparse tensors.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_webgpu {

// PyTorch's own fallback, which run_on_cpu() takes, calls the kernel for dense tensors of the CPU.
void run_sparse_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace torch_webgpu
