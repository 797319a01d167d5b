// The kernels of a step of LSTM and GRU: one launch each. Tensors are contiguous; undefined ones are left out.
#pragma once
#include <ATen/core/Tensor.h>

namespace torch_webgpu {

// [samples, 4 * units] of gates, [samples, units] of states. `gates` keeps what the backward needs.
void lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cell,
               const at::Tensor& input_bias, const at::Tensor& hidden_bias, const at::Tensor& next_hidden,
               const at::Tensor& next_cell, const at::Tensor& gates);
// The gradient of the next hidden state is the sum of `grad_hidden` and `grad_output`.
void lstm_cell_backward(const at::Tensor& grad_hidden, const at::Tensor& grad_output, const at::Tensor& grad_cell,
                        const at::Tensor& cell, const at::Tensor& next_cell, const at::Tensor& gates,
                        const at::Tensor& grad_gates, const at::Tensor& grad_first_cell);

// [samples, 3 * units] of gates; `kept`, [samples, 5 * units], keeps what the backward needs.
void gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& state,
              const at::Tensor& input_bias, const at::Tensor& hidden_bias, const at::Tensor& next,
              const at::Tensor& kept);
void gru_cell_backward(const at::Tensor& grad, const at::Tensor& grad_output, const at::Tensor& kept,
                       const at::Tensor& grad_input, const at::Tensor& grad_hidden, const at::Tensor& grad_state);

}  // namespace torch_webgpu
