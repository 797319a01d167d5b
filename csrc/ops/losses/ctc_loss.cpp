// Connectionist temporal classification and its gradient: a workgroup walks through the time of a batch element.
#include <ATen/TensorUtils.h>
#include <ATen/ops/from_blob.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

#include "families/program.h"
#include "families/tensor.h"
#include "runtime/error.h"

namespace torch_webgpu {
namespace {

constexpr const char* kParams = "steps batch classes states blank zero_infinity";
constexpr Program kPaths =
    make_grouped(make_program("_ctc_loss", "ctc_paths", "T:scores u:target u:lengths T:paths! T:loss!", kParams));
constexpr Program kGradient =
    make_grouped(make_program("_ctc_loss_backward", "ctc_gradient",
                              "T:scores u:target u:lengths T:forward T:backward T:loss T:gradient T:result!", kParams));

// The arguments, checked as PyTorch's own kernels do, and as the programs want them.
struct Problem {
  Problem(const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
          at::IntArrayRef target_lengths, int64_t blank)
      : blank(blank) {
    const char* const name = "ctc_loss_allocate_outputs";
    const at::TensorArg scores_argument{log_probs, "log_probs", 1}, targets_argument{targets, "targets", 2};
    TORCH_CHECK(log_probs.numel() > 0, "log_probs tensor must not be empty");
    at::checkDim(name, scores_argument, 3);
    at::checkDimRange(name, targets_argument, 1, 3);
    TORCH_CHECK_NOT_IMPLEMENTED(log_probs.scalar_type() == at::kFloat, "\"ctc_loss_cpu\" not implemented for '",
                                toString(log_probs.scalar_type()), "'");
    TORCH_CHECK(targets.scalar_type() == at::kInt || targets.scalar_type() == at::kLong,
                "targets must be int32 or int64, not ", targets.scalar_type());
    steps = log_probs.size(0);
    batch = log_probs.size(1);
    classes = log_probs.size(2);
    TORCH_CHECK(0 <= blank && blank < classes, "blank must be in label range");
    TORCH_CHECK(static_cast<int64_t>(input_lengths.size()) == batch, "input_lengths must be of size batch_size");
    TORCH_CHECK(static_cast<int64_t>(target_lengths.size()) == batch, "target_lengths must be of size batch_size");

    std::vector<int32_t> table;
    const bool joined = targets.dim() == 1;
    int64_t labels = 0, most = 0;
    for (int64_t i = 0; i < batch; ++i) {
      check_length(name, "target_lengths", target_lengths[i], 0);
      check_length(name, "input_lengths", input_lengths[i], 0);
      TORCH_CHECK(input_lengths[i] <= steps, "Expected input_lengths to have value at most ", steps, ", but got value ",
                  input_lengths[i], " (while checking arguments for ", name, ")");
      const int64_t first = joined ? labels : i * targets.size(1);
      for (const int64_t value : {input_lengths[i], target_lengths[i], first}) {
        table.push_back(static_cast<int32_t>(value));
      }
      labels += target_lengths[i];
      most = std::max(most, target_lengths[i]);
    }
    at::checkSize(name, targets_argument, 0, joined ? labels : batch);
    TORCH_CHECK(joined || targets.size(1) >= most, "Expected tensor to have size at least ", most,
                " at dimension 1, but got size ", targets.dim() < 2 ? 0 : targets.size(1), " for ", targets_argument,
                " (while checking arguments for ", name, ")");
    states = 2 * most + 1;
    scores = log_probs.contiguous();
    target = targets.to(kDevice, at::kInt).contiguous();
    lengths = at::from_blob(table.data(), {batch, 3}, at::kInt).to(kDevice);
  }

  static void check_length(const char* name, const char* what, int64_t value, int64_t least) {
    TORCH_CHECK(value >= least, "Expected ", what, " to have value at least ", least, ", but got value ", value,
                " (while checking arguments for ", name, ")");
  }

  at::Tensor walk(const at::Tensor& loss, uint32_t variant) const {
    at::Tensor paths = empty_tensor({batch, steps, states}, {}, at::kFloat);
    run(kPaths, at::kFloat, {batch, steps * states}, {scores, target, lengths, paths, loss},
        {steps, batch, classes, states, blank, 0}, variant);
    return paths;
  }

  int64_t steps = 0, batch = 0, classes = 0, states = 0, blank;
  at::Tensor scores, target, lengths;
};

std::tuple<at::Tensor, at::Tensor> ctc_loss(const at::Tensor& log_probs, const at::Tensor& targets,
                                            at::IntArrayRef input_lengths, at::IntArrayRef target_lengths,
                                            int64_t blank, bool /*zero_infinity*/) {
  const OpScope scope("aten::_ctc_loss");
  const Problem problem(log_probs, targets, input_lengths, target_lengths, blank);
  const at::Tensor loss = empty_tensor({problem.batch}, {}, at::kFloat);
  const at::Tensor paths = problem.walk(loss, 0);
  return {loss, paths};
}

at::Tensor ctc_loss_backward(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                             at::IntArrayRef input_lengths, at::IntArrayRef target_lengths, const at::Tensor& loss,
                             const at::Tensor& forward, int64_t blank, bool zero_infinity) {
  const OpScope scope("aten::_ctc_loss_backward");
  const Problem problem(log_probs, targets, input_lengths, target_lengths, blank);
  const at::Tensor backward = problem.walk({}, 1);
  const at::Tensor result = empty_tensor(log_probs.sizes(), {}, at::kFloat);
  run(kGradient, at::kFloat, {problem.steps * problem.batch, problem.classes + problem.states * problem.states},
      {problem.scores, problem.target, problem.lengths, forward.contiguous(), backward, loss.contiguous(),
       grad.contiguous(), result},
      {problem.steps, problem.batch, problem.classes, problem.states, blank, zero_infinity});
  return result;
}

std::vector<int64_t> numbers_of(const at::Tensor& lengths, const char* name) {
  TORCH_CHECK(at::isIntegralType(lengths.scalar_type(), /*includeBool=*/false), name, " must be integral");
  const at::Tensor host = lengths.to(at::kCPU, at::kLong).contiguous();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

std::tuple<at::Tensor, at::Tensor> ctc_loss_of_tensors(const at::Tensor& log_probs, const at::Tensor& targets,
                                                       const at::Tensor& input_lengths,
                                                       const at::Tensor& target_lengths, int64_t blank,
                                                       bool zero_infinity) {
  return ctc_loss(log_probs, targets, numbers_of(input_lengths, "input_lengths"),
                  numbers_of(target_lengths, "target_lengths"), blank, zero_infinity);
}

at::Tensor ctc_loss_backward_of_tensors(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                                        const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                                        const at::Tensor& loss, const at::Tensor& forward, int64_t blank,
                                        bool zero_infinity) {
  return ctc_loss_backward(grad, log_probs, targets, numbers_of(input_lengths, "input_lengths"),
                           numbers_of(target_lengths, "target_lengths"), loss, forward, blank, zero_infinity);
}

// Targets and lengths may be on the host, as for cuDNN's kernel.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_ctc_loss", &ctc_loss);
  library.impl("_ctc_loss.Tensor", &ctc_loss_of_tensors);
  library.impl("_ctc_loss_backward", &ctc_loss_backward);
  library.impl("_ctc_loss_backward.Tensor", &ctc_loss_backward_of_tensors);
}

}  // namespace
}  // namespace torch_webgpu
