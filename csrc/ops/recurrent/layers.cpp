#include "ops/recurrent/layers.h"

#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rnn_relu.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/threshold_backward.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "families/matmul.h"
#include "families/tensor.h"
#include "ops/native.h"
#include "ops/recurrent/cells.h"

namespace torch_webgpu {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr Epilogue kTanh{", tanh", "tanh(add(product, c))", true};
constexpr Epilogue kRelu{", relu", "max(add(product, c), zero)", true};

// WebGPU binds no buffer both for reading and for writing, so that successive states are in two buffers.
struct States {
  States(int64_t steps, at::IntArrayRef sizes, at::ScalarType dtype) {
    c10::SmallVector<int64_t, 3> all{(steps + 1) / 2};
    all.append(sizes.begin(), sizes.end());
    even = empty_tensor(all, {}, dtype);
    odd = empty_tensor(all, {}, dtype);
  }
  States(Tensor even, Tensor odd) : even(std::move(even)), odd(std::move(odd)) {}
  Tensor at(int64_t step) const { return (step % 2 ? odd : even).select(0, step / 2); }
  Tensor even, odd;
};

int64_t gates_of(RecurrentKind kind) { return kind == RecurrentKind::lstm ? 4 : kind == RecurrentKind::gru ? 3 : 1; }

const char* name_of(RecurrentKind kind) {
  constexpr const char* kNames[] = {"aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"};
  return kNames[static_cast<size_t>(kind)];
}

// The steps of a layer in one direction; `order(i)` is where the i-th step is in memory.
struct Steps {
  int64_t count;
  bool reverse;
  int64_t order(int64_t i) const { return reverse ? count - 1 - i : i; }
};

enum Input : size_t { kInput, kHidden, kCell, kInputWeight, kHiddenWeight, kInputBias, kHiddenBias, kInputs };

// What PyTorch makes of the layer, step by step, of ops that can be differentiated any number of times.
variable_list run_composite(RecurrentKind kind, bool reverse, const variable_list& in) {
  const bool biased = in[kInputBias].defined();
  std::vector<Tensor> params{in[kInputWeight], in[kHiddenWeight]};
  if (biased) params.insert(params.end(), {in[kInputBias], in[kHiddenBias]});
  const Tensor x = reverse ? in[kInput].flip(0) : in[kInput], hidden = in[kHidden].unsqueeze(0);
  const auto restored = [&](const Tensor& output) { return reverse ? output.flip(0) : output; };
  if (kind == RecurrentKind::lstm) {
    const Tensor states[] = {hidden, in[kCell].unsqueeze(0)};
    const auto [output, last, cell] = at::lstm(x, states, params, biased, 1, 0, true, false, false);
    return {restored(output), cell.squeeze(0)};
  }
  using Call = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, at::TensorList, bool, int64_t, double, bool,
                                              bool, bool);
  const Call call = kind == RecurrentKind::gru    ? static_cast<Call>(&at::gru)
                    : kind == RecurrentKind::tanh ? static_cast<Call>(&at::rnn_tanh)
                                                  : static_cast<Call>(&at::rnn_relu);
  return {restored(std::get<0>(call(x, hidden, params, biased, 1, 0, true, false, false)))};
}

// One layer in one direction: [steps, samples, features] to [steps, samples, units].
class Layer : public torch::autograd::Function<Layer> {
 public:
  static variable_list forward(AutogradContext* ctx, RecurrentKind kind, bool reverse, const Tensor& input,
                               const Tensor& hidden, const std::optional<Tensor>& cell, const Tensor& input_weight,
                               const Tensor& hidden_weight, const std::optional<Tensor>& input_bias,
                               const std::optional<Tensor>& hidden_bias) {
    const OpScope scope(name_of(kind));
    const int64_t count = input.size(0), samples = input.size(1), units = hidden.size(1), gates = gates_of(kind);
    const Steps steps{count, reverse};
    const at::ScalarType dtype = input.scalar_type();
    const Tensor x = input.reshape({count * samples, -1}), turned = hidden_weight.t();
    const Tensor first = input_bias ? input_bias->contiguous() : Tensor(),
                 second = hidden_bias ? hidden_bias->contiguous() : Tensor();
    const bool is_plain = gates == 1;
    Tensor products = is_plain && first.defined() ? at::addmm(at::add(first, second), x, input_weight.t())
                                                  : at::mm(x, input_weight.t());
    products = products.view({count, samples, gates * units});

    const int64_t kept_width = kind == RecurrentKind::gru ? 5 * units : gates * units;
    const Tensor kept = is_plain ? Tensor() : empty_tensor({count, samples, kept_width}, {}, dtype),
                 product = is_plain ? Tensor() : empty_tensor({samples, gates * units}, {}, dtype);
    const States hiddens(count, {samples, units}, dtype);
    const States cells = kind == RecurrentKind::lstm ? States(count, {samples, units}, dtype) : States({}, {});
    Tensor state = hidden.contiguous(), now = cell ? cell->contiguous() : Tensor();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = steps.order(i);
      const Tensor next = hiddens.at(i), from_input = products.select(0, at);
      if (is_plain) {
        const Epilogue& epilogue = kind == RecurrentKind::tanh ? kTanh : kRelu;
        matmul("rnn", next, state, turned, from_input, 1, 1, &epilogue);
      } else {
        matmul("rnn", product, state, turned);
        if (kind == RecurrentKind::lstm) {
          lstm_cell(from_input, product, now, first, second, next, cells.at(i), kept.select(0, at));
          now = cells.at(i);
        } else {
          gru_cell(from_input, product, state, first, second, next, kept.select(0, at));
        }
      }
      state = next;
    }
    const Tensor output = empty_tensor({count, samples, units}, {}, dtype);
    copy_interleaved(output, hiddens, steps);
    ctx->saved_data["kind"] = static_cast<int64_t>(kind);
    ctx->saved_data["reverse"] = reverse;
    ctx->save_for_backward({input, hidden, cell.value_or(Tensor()), input_weight, hidden_weight,
                            input_bias.value_or(Tensor()), hidden_bias.value_or(Tensor()), output, kept, cells.even,
                            cells.odd});
    if (kind == RecurrentKind::lstm) return {output, now.clone()};
    return {output};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto kind = static_cast<RecurrentKind>(ctx->saved_data["kind"].toInt());
    const bool reverse = ctx->saved_data["reverse"].toBool();
    const variable_list saved = ctx->get_saved_variables();
    const variable_list in(saved.begin(), saved.begin() + kInputs);
    const OpScope scope(name_of(kind));
    std::array<bool, kInputs> wanted{};
    size_t edge = 0;  // only tensors that were given have one
    for (size_t i = 0; i < kInputs; ++i) wanted[i] = in[i].defined() && ctx->needs_input_grad(edge++);
    const variable_list found = at::GradMode::is_enabled() ? differentiable_backward(kind, reverse, in, wanted, grads)
                                                           : fused_backward(kind, reverse, saved, wanted, grads);
    variable_list result(2);  // of the kind and the direction
    result.insert(result.end(), found.begin(), found.end());
    return result;
  }

 private:
  // Steps of even and of odd number, which lie at every second place.
  static void copy_interleaved(const Tensor& output, const States& states, const Steps& steps) {
    for (int64_t first = 0; first < std::min<int64_t>(2, steps.count); ++first) {
      const int64_t count = (steps.count - first + 1) / 2;
      const Tensor from = (first ? states.odd : states.even).narrow(0, 0, count);
      const int64_t stride = output.stride(0), begin = steps.order(first);
      if (!steps.reverse) {
        output.as_strided(from.sizes(), {2 * stride, output.stride(1), 1}, begin * stride).copy_(from);
      } else {
        // Backwards in memory, so the last of them comes first.
        output.as_strided(from.sizes(), {2 * stride, output.stride(1), 1}, (begin - 2 * (count - 1)) * stride)
            .copy_(from.flip(0));
      }
    }
  }

  static variable_list differentiable_backward(RecurrentKind kind, bool reverse, const variable_list& in,
                                               const std::array<bool, kInputs>& wanted, const variable_list& grads) {
    const variable_list out = run_composite(kind, reverse, in);
    variable_list results, seeds, inputs;
    for (size_t i = 0; i < out.size(); ++i) {
      if (!grads[i].defined()) continue;
      results.push_back(out[i]);
      seeds.push_back(grads[i]);
    }
    for (size_t i = 0; i < kInputs; ++i) {
      if (wanted[i]) inputs.push_back(in[i]);
    }
    const variable_list found = torch::autograd::grad(results, inputs, seeds, true, true, true);
    variable_list all(kInputs);
    for (size_t i = 0, next = 0; i < kInputs; ++i) {
      if (wanted[i]) all[i] = found[next++];
    }
    return all;
  }

  static variable_list fused_backward(RecurrentKind kind, bool reverse, const variable_list& saved,
                                      const std::array<bool, kInputs>& wanted, const variable_list& grads) {
    const Tensor &input = saved[kInput], &hidden = saved[kHidden], &weight = saved[kHiddenWeight],
                 &output = saved[kInputs], &kept = saved[kInputs + 1];
    const States cells(saved[kInputs + 2], saved[kInputs + 3]);
    const int64_t count = input.size(0), samples = input.size(1), units = hidden.size(1), gates = gates_of(kind);
    const Steps steps{count, reverse};
    const at::ScalarType dtype = input.scalar_type();
    const bool is_lstm = kind == RecurrentKind::lstm, is_gru = kind == RecurrentKind::gru;
    const Tensor grad_output = grads[0].defined() ? grads[0].contiguous() : Tensor();
    // Of the gates as the input and, where it differs, as the hidden state contributes to them.
    const Tensor by_input = empty_tensor({count, samples, gates * units}, {}, dtype),
                 by_hidden = is_gru ? empty_tensor({count, samples, gates * units}, {}, dtype) : by_input;
    Tensor grad, grad_cell = is_lstm && grads[1].defined() ? grads[1].contiguous() : Tensor();
    for (int64_t i = count; i-- > 0;) {
      const int64_t at = steps.order(i);
      const Tensor beside = grad_output.defined() ? grad_output.select(0, at) : Tensor();
      const Tensor step = by_hidden.select(0, at);
      const bool goes_on = i > 0 || wanted[kHidden];
      if (is_lstm) {
        const Tensor before = i ? cells.at(i - 1) : saved[kCell].contiguous(),
                     grad_before = empty_tensor({samples, units}, {}, dtype);
        lstm_cell_backward(grad, beside, grad_cell, before, cells.at(i), kept.select(0, at), step, grad_before);
        grad_cell = grad_before;
        if (goes_on) grad = at::mm(step, weight);
      } else if (is_gru) {
        const Tensor through = empty_tensor({samples, units}, {}, dtype);
        gru_cell_backward(grad, beside, kept.select(0, at), by_input.select(0, at), step, through);
        if (goes_on) grad = at::addmm(through, step, weight);
      } else {
        const Tensor whole = grad.defined() ? grad : beside, result = output.select(0, at);
        Tensor target = step;
        if (kind == RecurrentKind::tanh) {
          at::tanh_backward_out(target, whole, result);
        } else {
          at::threshold_backward_out(target, whole, result, 0);
        }
        if (!goes_on) break;
        // With what the output before adds, for the next round.
        const bool adds = grad_output.defined() && i > 0;
        grad = adds ? at::addmm(grad_output.select(0, steps.order(i - 1)), step, weight) : at::mm(step, weight);
      }
    }
    variable_list found(kInputs);
    const Tensor flat = by_input.view({count * samples, -1});
    if (wanted[kInput]) found[kInput] = at::mm(flat, saved[kInputWeight]).view(input.sizes());
    if (wanted[kHidden]) found[kHidden] = grad;
    if (wanted[kCell]) found[kCell] = grad_cell;
    if (wanted[kInputWeight]) found[kInputWeight] = at::mm(flat.t(), input.reshape({count * samples, -1}));
    if (wanted[kHiddenWeight]) found[kHiddenWeight] = grad_of_hidden_weight(by_hidden, hidden, output, steps);
    if (wanted[kInputBias]) found[kInputBias] = flat.sum(0);
    if (wanted[kHiddenBias]) {
      const bool same = !is_gru && found[kInputBias].defined();
      found[kHiddenBias] = same ? found[kInputBias].clone() : by_hidden.view({count * samples, -1}).sum(0);
    }
    return found;
  }

  // Each step's gates times the state before it: the first one, then the outputs.
  static Tensor grad_of_hidden_weight(const Tensor& gates, const Tensor& hidden, const Tensor& output,
                                      const Steps& steps) {
    const Tensor first = at::mm(gates.select(0, steps.order(0)).t(), hidden);
    const int64_t rest = steps.count - 1;
    if (rest == 0) return first;
    const auto flat = [&](const Tensor& tensor, int64_t begin) {
      return tensor.narrow(0, begin, rest).view({rest * tensor.size(1), -1});
    };
    return at::addmm(first, flat(gates, steps.reverse ? 0 : 1).t(), flat(output, steps.reverse ? 1 : 0));
  }
};

}  // namespace

std::vector<Tensor> run_recurrent(const Tensor& input, at::TensorList states, at::TensorList params,
                                  const RecurrentOptions& options) {
  const bool is_lstm = options.kind == RecurrentKind::lstm;
  const int64_t directions = options.bidirectional ? 2 : 1, each = options.has_biases ? 4 : 2;
  Tensor x = options.batch_first ? input.transpose(0, 1) : input;
  std::vector<Tensor> hiddens, cells;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t index = layer * directions + direction;
      const auto param = [&](int64_t i) -> std::optional<Tensor> {
        return i < each ? std::optional(params[index * each + i]) : std::nullopt;
      };
      const auto found = Layer::apply(options.kind, direction == 1, x, states[0].select(0, index),
                                      is_lstm ? std::optional(states[1].select(0, index)) : std::nullopt, *param(0),
                                      *param(1), param(2), param(3));
      outputs.push_back(found[0]);
      hiddens.push_back(found[0].select(0, direction ? 0 : found[0].size(0) - 1));
      if (is_lstm) cells.push_back(found[1]);
    }
    x = directions == 1 ? outputs[0] : at::cat(outputs, 2);
    if (options.dropout > 0 && layer + 1 < options.layers) x = at::dropout(x, options.dropout, true);
  }
  std::vector<Tensor> results{options.batch_first ? x.transpose(0, 1) : x, at::stack(hiddens)};
  if (is_lstm) results.push_back(at::stack(cells));
  return results;
}

}  // namespace torch_webgpu
