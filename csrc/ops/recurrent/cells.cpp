// The cells of LSTM and GRU, whose matrix products were done before: one pointwise kernel per step and direction.
#include "ops/recurrent/cells.h"

#include <ATen/TensorOperators.h>
#include <ATen/TensorUtils.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>

#include "families/program.h"
#include "families/tensor.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Two = std::tuple<at::Tensor, at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Five = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// A task computes one unit, or four neighbours where they can be loaded at once.
struct Cell {
  Program single, quads;
};
#define SINGLE                                      \
  "alias V = T;\n"                                  \
  "fn sigmoids(v: V) -> V { return sigmoid(v); }\n" \
  "fn tanhs(v: V) -> V { return tanh(v); }\n"
#define QUADS                                                                                      \
  "alias V = vec4<T>;\n"                                                                           \
  "fn sigmoids(v: V) -> V { return V(sigmoid(v.x), sigmoid(v.y), sigmoid(v.z), sigmoid(v.w)); }\n" \
  "fn tanhs(v: V) -> V { return V(tanh(v.x), tanh(v.y), tanh(v.z), tanh(v.w)); }\n"
#define CELL(name, file, operands) \
  {make_program(name, file, operands("T:"), "units", SINGLE), make_program(name, file, operands("q:"), "units", QUADS)}

#define LSTM(K) \
  K "input " K "hidden " K "cell " K "input_bias " K "hidden_bias " K "next_hidden! " K "next_cell! " K "gates!"
#define LSTM_BACKWARD(K)                                                                                  \
  K "grad_hidden " K "grad_output " K "grad_cell " K "cell " K "next_cell " K "gates " K "grad_gates! " K \
    "grad_first_cell!"
#define GRU(K) K "input " K "hidden " K "state " K "input_bias " K "hidden_bias " K "next! " K "kept!"
#define GRU_BACKWARD(K) K "grad " K "grad_output " K "kept " K "grad_input! " K "grad_hidden! " K "grad_state!"

constexpr Cell kLstm = CELL("_thnn_fused_lstm_cell", "lstm_cell", LSTM);
constexpr Cell kLstmBackward = CELL("_thnn_fused_lstm_cell_backward", "lstm_cell_backward", LSTM_BACKWARD);
constexpr Cell kGru = CELL("_thnn_fused_gru_cell", "gru_cell", GRU);
constexpr Cell kGruBackward = CELL("_thnn_fused_gru_cell_backward", "gru_cell_backward", GRU_BACKWARD);

void run_cell(const Cell& cell, const at::Tensor& state, std::initializer_list<at::Tensor> operands) {
  const int64_t units = state.size(1);
  bool quads = units % 4 == 0;
  for (const at::Tensor& operand : operands) {
    if (!operand.defined()) continue;
    quads = quads && operand.scalar_type() == at::kFloat && operand.storage_offset() % 4 == 0;
  }
  const int64_t width = quads ? 4 : 1;
  run(quads ? cell.quads : cell.single, at::kFloat, {state.numel() / width, 32 * width}, operands, {units / width});
}

at::Tensor contiguous(const OptionalTensor& tensor) {
  return tensor && tensor->defined() ? tensor->contiguous() : at::Tensor();
}

at::Tensor empty(at::IntArrayRef sizes, const at::Tensor& like) { return empty_tensor(sizes, {}, like.scalar_type()); }

// Gates are [samples, `gates` * units], biases [gates * units], the state [samples, units].
void check_cell(const char* name, const at::Tensor& input, const at::Tensor& hidden, const at::Tensor& state,
                const at::Tensor& input_bias, const at::Tensor& hidden_bias, int64_t gates) {
  at::checkDim(name, at::TensorArg(input, "input_gates", 1), 2);
  at::checkSize(name, at::TensorArg(hidden, "hidden_gates", 2), input.sizes());
  at::checkSize(name, at::TensorArg(state, "prev_hidden", 3), {input.size(0), input.size(1) / gates});
  TORCH_CHECK(input_bias.defined() == hidden_bias.defined(), name, ": expected both biases or none");
  if (input_bias.defined()) {
    at::checkSize(name, at::TensorArg(input_bias, "input_bias", 4), {input.size(1)});
    at::checkSize(name, at::TensorArg(hidden_bias, "hidden_bias", 5), {input.size(1)});
  }
}

// A float64 cell is written as other ops, each of which steps aside for the CPU: the CPU has no kernel for a whole one.
constexpr DtypeSet kTaken = kComputed | set_of({at::kDouble});
bool is_composed(const at::Tensor& state) { return state.scalar_type() == at::kDouble; }

at::Tensor added(const at::Tensor& gates, const at::Tensor& bias) { return bias.defined() ? gates + bias : gates; }

Three compose_lstm(const at::Tensor& input, const at::Tensor& hidden, const at::Tensor& cell, const at::Tensor& first,
                   const at::Tensor& second) {
  const auto gates = (added(input, first) + added(hidden, second)).chunk(4, 1);
  const at::Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), candidate = gates[2].tanh(),
                   out = gates[3].sigmoid(), next_cell = forget * cell + in * candidate;
  return {out * next_cell.tanh(), next_cell, at::cat({in, forget, candidate, out}, 1)};
}

Two compose_lstm_backward(const at::Tensor& grad_hidden, const at::Tensor& grad_cell, const at::Tensor& cell,
                          const at::Tensor& next_cell, const at::Tensor& gates) {
  const auto parts = gates.chunk(4, 1);
  const at::Tensor &in = parts[0], &forget = parts[1], &candidate = parts[2], &out = parts[3];
  const at::Tensor bent = next_cell.tanh();
  at::Tensor grad = grad_cell.defined() ? grad_cell : at::zeros_like(cell), grad_out = at::zeros_like(cell);
  if (grad_hidden.defined()) {
    grad = grad + grad_hidden * out * (1 - bent * bent);
    grad_out = grad_hidden * bent * out * (1 - out);
  }
  return {at::cat({grad * candidate * in * (1 - in), grad * cell * forget * (1 - forget),
                   grad * in * (1 - candidate * candidate), grad_out},
                  1),
          grad * forget};
}

Two compose_gru(const at::Tensor& input, const at::Tensor& hidden, const at::Tensor& state, const at::Tensor& first,
                const at::Tensor& second) {
  const auto from_input = added(input, first).chunk(3, 1), from_state = added(hidden, second).chunk(3, 1);
  const at::Tensor reset = (from_input[0] + from_state[0]).sigmoid(),
                   update = (from_input[1] + from_state[1]).sigmoid(),
                   next = (from_input[2] + reset * from_state[2]).tanh();
  return {next + update * (state - next), at::cat({reset, update, next, state, from_state[2]}, 1)};
}

Three compose_gru_backward(const at::Tensor& grad, const at::Tensor& kept) {
  const auto parts = kept.chunk(5, 1);
  const at::Tensor &reset = parts[0], &update = parts[1], &next = parts[2], &state = parts[3], &from_state = parts[4];
  const at::Tensor grad_next = grad * (1 - update) * (1 - next * next),
                   grad_update = grad * (state - next) * update * (1 - update),
                   grad_reset = grad_next * from_state * reset * (1 - reset);
  return {at::cat({grad_reset, grad_update, grad_next}, 1), at::cat({grad_reset, grad_update, grad_next * reset}, 1),
          grad * update};
}

Three lstm(const at::Tensor& input, const at::Tensor& hidden, const at::Tensor& cell, const OptionalTensor& input_bias,
           const OptionalTensor& hidden_bias) {
  const at::Tensor first = contiguous(input_bias), second = contiguous(hidden_bias);
  check_cell("_thnn_fused_lstm_cell", input, hidden, cell, first, second, 4);
  if (is_composed(cell)) return compose_lstm(input, hidden, cell, first, second);
  at::Tensor gates = empty(input.sizes(), input), next_hidden = empty(cell.sizes(), cell),
             next_cell = empty(cell.sizes(), cell);
  lstm_cell(input.contiguous(), hidden.contiguous(), cell.contiguous(), first, second, next_hidden, next_cell, gates);
  return {next_hidden, next_cell, gates};
}

Three lstm_backward(const OptionalTensor& grad_hidden, const OptionalTensor& grad_cell, const at::Tensor& cell,
                    const at::Tensor& next_cell, const at::Tensor& gates, bool has_bias) {
  if (!(grad_hidden && grad_hidden->defined()) && !(grad_cell && grad_cell->defined())) return {};
  at::Tensor grad_gates, grad_first_cell, grad_bias;
  if (is_composed(cell)) {
    std::tie(grad_gates, grad_first_cell) =
        compose_lstm_backward(contiguous(grad_hidden), contiguous(grad_cell), cell, next_cell, gates);
  } else {
    grad_gates = empty(gates.sizes(), gates), grad_first_cell = empty(cell.sizes(), cell);
    lstm_cell_backward(contiguous(grad_hidden), {}, contiguous(grad_cell), cell.contiguous(), next_cell.contiguous(),
                       gates.contiguous(), grad_gates, grad_first_cell);
  }
  if (has_bias) grad_bias = at::sum(grad_gates, {0});
  return {grad_gates, grad_first_cell, grad_bias};
}

Two gru(const at::Tensor& input, const at::Tensor& hidden, const at::Tensor& state, const OptionalTensor& input_bias,
        const OptionalTensor& hidden_bias) {
  const at::Tensor first = contiguous(input_bias), second = contiguous(hidden_bias);
  check_cell("_thnn_fused_gru_cell", input, hidden, state, first, second, 3);
  if (is_composed(state)) return compose_gru(input, hidden, state, first, second);
  at::Tensor next = empty(state.sizes(), state), kept = empty({state.size(0), 5 * state.size(1)}, state);
  gru_cell(input.contiguous(), hidden.contiguous(), state.contiguous(), first, second, next, kept);
  return {next, kept};
}

Five gru_backward(const at::Tensor& grad, const at::Tensor& kept, bool has_bias) {
  const int64_t samples = grad.size(0), units = grad.size(1);
  at::Tensor grad_input, grad_hidden, grad_state, input_bias, hidden_bias;
  if (is_composed(grad)) {
    std::tie(grad_input, grad_hidden, grad_state) = compose_gru_backward(grad, kept);
  } else {
    grad_input = empty({samples, 3 * units}, kept), grad_hidden = empty({samples, 3 * units}, kept);
    grad_state = empty(grad.sizes(), grad);
    gru_cell_backward(grad.contiguous(), {}, kept.contiguous(), grad_input, grad_hidden, grad_state);
  }
  if (has_bias) {
    input_bias = at::sum(grad_input, {0});
    hidden_bias = at::sum(grad_hidden, {0});
  }
  return {grad_input, grad_hidden, grad_state, input_bias, hidden_bias};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&lstm, kTaken>(library, "_thnn_fused_lstm_cell");
  native<&lstm_backward, kTaken>(library, "_thnn_fused_lstm_cell_backward_impl");
  native<&gru, kTaken>(library, "_thnn_fused_gru_cell");
  native<&gru_backward, kTaken>(library, "_thnn_fused_gru_cell_backward");
}

}  // namespace

void lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cell,
               const at::Tensor& input_bias, const at::Tensor& hidden_bias, const at::Tensor& next_hidden,
               const at::Tensor& next_cell, const at::Tensor& gates) {
  run_cell(kLstm, cell, {input_gates, hidden_gates, cell, input_bias, hidden_bias, next_hidden, next_cell, gates});
}

void lstm_cell_backward(const at::Tensor& grad_hidden, const at::Tensor& grad_output, const at::Tensor& grad_cell,
                        const at::Tensor& cell, const at::Tensor& next_cell, const at::Tensor& gates,
                        const at::Tensor& grad_gates, const at::Tensor& grad_first_cell) {
  run_cell(kLstmBackward, cell,
           {grad_hidden, grad_output, grad_cell, cell, next_cell, gates, grad_gates, grad_first_cell});
}

void gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& state,
              const at::Tensor& input_bias, const at::Tensor& hidden_bias, const at::Tensor& next,
              const at::Tensor& kept) {
  run_cell(kGru, state, {input_gates, hidden_gates, state, input_bias, hidden_bias, next, kept});
}

void gru_cell_backward(const at::Tensor& grad, const at::Tensor& grad_output, const at::Tensor& kept,
                       const at::Tensor& grad_input, const at::Tensor& grad_hidden, const at::Tensor& grad_state) {
  run_cell(kGruBackward, grad_state, {grad, grad_output, kept, grad_input, grad_hidden, grad_state});
}

}  // namespace torch_webgpu
