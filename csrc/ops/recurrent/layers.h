// Whole layers of LSTM, GRU and RNN: the inputs of all steps are multiplied at once, then a step is one or two
// launches.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace torch_webgpu {

enum class RecurrentKind : uint8_t { lstm, gru, tanh, relu };

struct RecurrentOptions {
  RecurrentKind kind;
  bool has_biases;
  int64_t layers;
  double dropout;  // between layers, where the module trains
  bool bidirectional, batch_first;
};

// As torch.lstm and its kin, of arguments that suit each other: the output, the last hidden states and, of an LSTM, the
// last cells. `states` are the first ones, and `params` the weights and biases of each layer and direction.
std::vector<at::Tensor> run_recurrent(const at::Tensor& input, at::TensorList states, at::TensorList params,
                                      const RecurrentOptions& options);

}  // namespace torch_webgpu
