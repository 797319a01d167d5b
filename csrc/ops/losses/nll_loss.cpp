// nll_loss of samples and of images, and their backwards.
#include <ATen/core/Reduction.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/nll_loss_backward_meta.h>
#include <ATen/ops/nll_loss_forward_meta.h>
#include <ATen/ops/sum.h>

#include <cmath>

#include "families/indexed.h"
#include "families/program.h"
#include "families/structured.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// Finds the class of a sample, or that the sample is ignored. Operands: 1 scores, 2 weights, 3 targets. x: classes, the
// scores' and the weights' strides by class, whether there are weights, the class to ignore (two words).
#define TARGET "let target_class = load3(i3); let ignored = all(target_class == vec2<u32>(x(4u), x(5u)));"
#define WEIGHT "select(1.0, load2(i2 + label * x(2u)), x(3u) != 0u)"
constexpr IndexedRow kLosses{"nll_loss_forward",
                             TARGET
                             "if (ignored) { return 0.0; }"
                             "let label = resolve(target_class, x(0u), 1u); if (label == NONE) { return 0.0; }"
                             "return neg(load1(i1 + label * x(1u))) * " WEIGHT ";",
                             IndexedRow::checks, 3};
// The losses, and behind them their weights.
constexpr IndexedRow kWeighted{"nll_loss_forward",
                               TARGET
                               "if (ignored) { store(i0, 0.0); store(i0 + x(6u), 0.0); return; }"
                               "let label = resolve(target_class, x(0u), 1u); if (label == NONE) { return; }"
                               "let weight = " WEIGHT
                               ";"
                               "store(i0, neg(load1(i1 + label * x(1u))) * weight); store(i0 + x(6u), weight);",
                               IndexedRow::acts | IndexedRow::checks, 3};
// Runs for every class d1 of a sample: only the target's class has a gradient. Operands: 1 the loss's gradient,
// 2 weights, 3 total weight, 4 targets.
constexpr IndexedRow kBackward{"nll_loss_backward",
                               "let target_class = load4(i4);"
                               "if (all(target_class == vec2<u32>(x(4u), x(5u)))) { return 0.0; }"
                               "let label = resolve(target_class, x(0u), 1u); if (label != d1) { return 0.0; }"
                               "let grad = neg(load1(i1)) * " WEIGHT
                               ";"
                               "return select(grad, grad / load3(i3), x(1u) != 0u);",
                               IndexedRow::checks, 4};

constexpr Program kFinish{make_program("nll_loss_forward", "nll_loss", "T:sums T:output! T:weight!", "is_mean")};

// Any of [classes], [samples, classes] and [samples, classes, ...], as [samples, classes, places].
struct Shape {
  explicit Shape(const at::Tensor& scores)
      : samples(scores.dim() < 2 ? 1 : scores.size(0)), classes(scores.size(scores.dim() < 2 ? 0 : 1)) {}

  at::Tensor of_scores(const at::Tensor& tensor) const { return tensor.reshape({samples, classes, places(tensor)}); }
  at::Tensor of_targets(const at::Tensor& tensor) const {
    return tensor.reshape({samples, samples == 0 ? 1 : tensor.numel() / samples});
  }
  int64_t places(const at::Tensor& scores) const {
    return samples == 0 || classes == 0 ? 1 : scores.numel() / (samples * classes);
  }
  int64_t samples, classes;
};

void check_dtypes(const char* name, const at::Tensor& scores, const at::Tensor& target) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(scores.scalar_type()), "\"", name, "\" not implemented for '",
                              toString(scores.scalar_type()), "'");
  TORCH_CHECK(target.scalar_type() == at::kLong || target.scalar_type() == at::kByte,
              "expected scalar type Long or Byte but found ", toString(target.scalar_type()));
}

// The words that rows have in common.
Indexed& describe(Indexed& launch, int64_t classes, int64_t by_class, const at::Tensor& weight, int64_t ignored) {
  return launch.extra(classes)
      .extra(by_class)
      .extra(weight.defined() && weight.dim() > 0 ? weight.stride(0) : 0)
      .extra(weight.defined())
      .extra(ignored)
      .extra(ignored >> 32);
}

void forward(const at::Tensor& given_scores, const at::Tensor& given_target, const at::Tensor& weight,
             int64_t reduction, int64_t ignored, const at::Tensor& output, const at::Tensor& total_weight) {
  check_dtypes("nll_loss_out_frame", given_scores, given_target);
  const Shape shape(given_scores);
  const at::Tensor scores = shape.of_scores(given_scores), target = shape.of_targets(given_target);
  const int64_t count = target.numel();
  const bool reduced = output.dim() == 0;
  if (!reduced) total_weight.zero_();
  if (count == 0) {
    if (!reduced) return;
    output.fill_(reduction == at::Reduction::Mean ? std::nan("") : 0.0);
    total_weight.zero_();
    return;
  }
  const at::Tensor losses = reduced ? empty_tensor({2, count}, {}, at::kFloat) : shape.of_targets(output);
  Indexed launch(reduced ? kWeighted : kLosses, at::kFloat);
  launch.iterate(target.sizes())
      .operand(losses, reduced ? at::IntArrayRef(dense_strides(target.sizes())) : losses.strides())
      .operand(scores, {scores.stride(0), scores.stride(2)})
      .operand(weight.defined() ? weight : scores, {0, 0})
      .operand(target, target.strides());
  describe(launch, shape.classes, scores.stride(1), weight, ignored).extra(count).run();
  if (!reduced) return;
  run(kFinish, at::kFloat, {1}, {at::sum(losses, {1}), output, total_weight}, {reduction == at::Reduction::Mean});
}

void backward(const at::Tensor& grad_output, const at::Tensor& given_scores, const at::Tensor& given_target,
              const at::Tensor& weight, int64_t reduction, int64_t ignored, const at::Tensor& total_weight,
              const at::Tensor& grad_input) {
  check_dtypes("nll_loss_backward_out_frame", given_scores, given_target);
  if (grad_input.numel() == 0) return;
  const Shape shape(given_scores);
  const at::Tensor target = shape.of_targets(given_target), out = grad_input.view({shape.samples, shape.classes, -1});
  const bool each = grad_output.dim() > 0 && reduction == at::Reduction::None;
  const at::Tensor grad = each ? shape.of_targets(grad_output) : grad_output;
  Indexed launch(kBackward, at::kFloat);
  launch.iterate(out.sizes())
      .operand(out, out.strides())
      .operand(grad, {each ? grad.stride(0) : 0, 0, each ? grad.stride(1) : 0})
      .operand(weight.defined() ? weight : grad, {0, 0, 0})
      .operand(total_weight, {0, 0, 0})
      .operand(target, {target.stride(0), 0, target.stride(1)});
  describe(launch, shape.classes, reduction == at::Reduction::Mean, weight, ignored).run();
}

at::OptionalTensorRef reference(const OptionalTensor& tensor) {
  return tensor && tensor->defined() ? at::OptionalTensorRef(*tensor) : at::OptionalTensorRef();
}
at::Tensor value_of(const OptionalTensor& tensor) { return tensor.value_or(at::Tensor()); }

struct Forward {
  using Op = Structured<at::meta::structured_nll_loss_forward, 2>;
  static void run(Op& op, const at::Tensor& self, const at::Tensor& target, const OptionalTensor& weight,
                  int64_t reduction, int64_t ignored) {
    op.meta(self, target, reference(weight), reduction, ignored);
    forward(self, target, value_of(weight), reduction, ignored, op.outputs[0], op.outputs[1]);
  }
};

struct Backward {
  using Op = Structured<at::meta::structured_nll_loss_backward>;
  static void run(Op& op, const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                  const OptionalTensor& weight, int64_t reduction, int64_t ignored, const at::Tensor& total_weight) {
    op.meta(grad, self, target, reference(weight), reduction, ignored, total_weight);
    backward(grad, self, target, value_of(weight), reduction, ignored, total_weight, op.outputs[0]);
  }
};

// Images have no structured op.
void check_images(const at::Tensor& self, const at::Tensor& target, const at::Tensor& weight) {
  TORCH_CHECK(target.dim() == 3,
              "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
  TORCH_CHECK(self.dim() == 4,
              "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
  TORCH_CHECK(!weight.defined() || weight.numel() == self.size(1),
              "weight tensor should be defined either for all or no classes");
  TORCH_CHECK(self.size(0) == target.size(0) && self.size(2) == target.size(1) && self.size(3) == target.size(2),
              "size mismatch (got input: ", self.sizes(), " , target: ", target.sizes());
}

std::tuple<at::Tensor&, at::Tensor&> images_out(const at::Tensor& self, const at::Tensor& target,
                                                const OptionalTensor& weight, int64_t reduction, int64_t ignored,
                                                at::Tensor& output, at::Tensor& total_weight) {
  check_images(self, target, value_of(weight));
  at::native::resize_output(output, reduction == at::Reduction::None ? target.sizes() : at::IntArrayRef());
  at::native::resize_output(total_weight, {});
  forward(self, target, value_of(weight), reduction, ignored, output, total_weight);
  return {output, total_weight};
}

std::tuple<at::Tensor, at::Tensor> images(const at::Tensor& self, const at::Tensor& target,
                                          const OptionalTensor& weight, int64_t reduction, int64_t ignored) {
  at::Tensor output = empty_tensor({0}, {}, self.scalar_type()),
             total_weight = empty_tensor({}, {}, self.scalar_type());
  images_out(self, target, weight, reduction, ignored, output, total_weight);
  return {output, total_weight};
}

at::Tensor& images_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                const OptionalTensor& weight, int64_t reduction, int64_t ignored,
                                const at::Tensor& total_weight, at::Tensor& grad_input) {
  check_images(self, target, value_of(weight));
  TORCH_CHECK(total_weight.numel() == 1,
              "expected total_weight to be a single element tensor, got: ", total_weight.sizes(), " (",
              total_weight.numel(), " elements)");
  at::native::resize_output(grad_input, self.sizes());
  const at::Tensor result =
      grad_input.is_contiguous() ? grad_input : empty_tensor(self.sizes(), {}, grad_input.scalar_type());
  backward(grad, self, target, value_of(weight), reduction, ignored, total_weight, result);
  if (!result.is_same(grad_input)) grad_input.copy_(result);
  return grad_input;
}

at::Tensor images_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                           const OptionalTensor& weight, int64_t reduction, int64_t ignored,
                           const at::Tensor& total_weight) {
  at::Tensor grad_input = empty_tensor(self.sizes(), {}, self.scalar_type());
  return images_backward_out(grad, self, target, weight, reduction, ignored, total_weight, grad_input);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&Forms<Forward>::functional>(library, "nll_loss_forward");
  native<&Forms<Forward>::out>(library, "nll_loss_forward.output");
  native<&Forms<Backward>::functional>(library, "nll_loss_backward");
  native<&Forms<Backward>::out>(library, "nll_loss_backward.grad_input");
  native<&images>(library, "nll_loss2d_forward");
  native<&images_out>(library, "nll_loss2d_forward.output");
  native<&images_backward>(library, "nll_loss2d_backward");
  native<&images_backward_out>(library, "nll_loss2d_backward.grad_input");
}

}  // namespace
}  // namespace torch_webgpu
