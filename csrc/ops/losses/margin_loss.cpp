// multi_margin_loss and multilabel_margin_loss, and their backwards.
#include <ATen/core/Reduction.h>
#include <ATen/native/LossMulti.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include "families/indexed.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

#define LABEL "let label = resolve(load3(i3), x(0u), 1u); if (label == NONE) { return 0.0; }"
constexpr IndexedRow kMulti{"multi_margin_loss", LABEL "return multi_margin(i1, i2, label);", IndexedRow::checks, 3, 1,
                            "margin_loss"};
constexpr IndexedRow kMultiBackward{"multi_margin_loss_backward",
                                    LABEL "return multi_margin_gradient(i1, i2, label, d0);",
                                    IndexedRow::checks,
                                    3,
                                    1,
                                    "margin_loss"};
constexpr IndexedRow kMarks{
    "multilabel_margin_loss_forward", "return f32(is_among(i3, d0));", IndexedRow::checks, 3, 1, "margin_loss"};
constexpr IndexedRow kMultilabel{
    "multilabel_margin_loss_forward", "return multilabel_margin(i1, i2, i3);", IndexedRow::checks, 3, 1, "margin_loss"};
constexpr IndexedRow kMultilabelBackward{"multilabel_margin_loss_backward",
                                         "return multilabel_margin_gradient(i1, i2, i3, d0);",
                                         IndexedRow::checks,
                                         3,
                                         1,
                                         "margin_loss"};

void check_floating(const at::Tensor& self, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(self.scalar_type()), "\"", name, "\" not implemented for '",
                              toString(self.scalar_type()), "'");
}

// Losses of samples, as the caller wants them.
void finish(const at::Tensor& losses, int64_t reduction, bool each, at::Tensor& out) {
  if (each) {
    at::native::resize_output(out, losses.sizes());
    out.copy_(losses);
    return;
  }
  at::native::resize_output(out, {});
  out.copy_(reduction == at::Reduction::Mean ? at::mean(losses, {0}) : at::sum(losses, {0}));
}

// Gradients by score for one loss per sample, times the gradients of the losses.
at::Tensor& finish_backward(const at::Tensor& slopes, const at::Tensor& grad, int64_t reduction, const at::Tensor& self,
                            at::Tensor& grad_input) {
  const int64_t samples = slopes.size(0);
  const bool each = reduction == at::Reduction::None && grad.dim() > 0;
  at::Tensor result = at::mul(slopes, each ? grad.reshape({samples, 1}) : grad);
  if (reduction == at::Reduction::Mean) result = at::mul(result, 1.0 / static_cast<double>(samples));
  at::native::resize_output(grad_input, self.sizes());
  return grad_input.copy_(result.view(self.sizes()));
}

struct Multi {
  Multi(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p, const at::Scalar& margin,
        const OptionalTensor& given_weight)
      : power(p.toLong()), margin(margin.toDouble()) {
    TORCH_CHECK(power == 1 || power == 2, "only p == 1 and p == 2 supported");
    at::native::multi_margin_loss_shape_check(samples, classes, self.dim(), self, target, given_weight);
    TORCH_CHECK(target.scalar_type() == at::kLong, "expected scalar type Long but found ", target.scalar_type());
    check_floating(self, "multi_margin_loss_cpu_kernel");
    if (given_weight && given_weight->defined()) weight = given_weight->reshape({-1});
    scores = self.reshape({samples, classes});
    labels = target.reshape({samples});
  }

  at::Tensor run(const IndexedRow& row, bool by_class) const {
    const at::Tensor out =
        by_class ? empty_tensor({samples, classes}, {}, at::kFloat) : empty_tensor({samples}, {}, at::kFloat);
    Indexed launch(row, at::kFloat);
    launch.iterate(out.sizes());
    // The class is the innermost coordinate; operands that do not depend on it have stride 0.
    const auto strides = [&](int64_t by_sample) {
      return by_class ? c10::SmallVector<int64_t, 2>{by_sample, 0} : c10::SmallVector<int64_t, 2>{by_sample};
    };
    launch.operand(out, out.strides())
        .operand(scores, strides(scores.stride(0)))
        .operand(weight.defined() ? weight : scores, strides(0))
        .operand(labels, strides(labels.stride(0)))
        .extra(classes)
        .extra(scores.stride(1))
        .extra(weight.defined() ? weight.stride(0) : 0)
        .extra(0)
        .extra(power)
        .extra(weight.defined())
        .scalar(margin, at::kFloat)
        .run();
    return out;
  }

  int64_t samples = 0, classes = 0, power;
  double margin;
  at::Tensor scores, labels, weight;
};

at::Tensor& multi_margin_out(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p,
                             const at::Scalar& margin, const OptionalTensor& weight, int64_t reduction,
                             at::Tensor& out) {
  const Multi loss(self, target, p, margin, weight);
  const bool each = reduction == at::Reduction::None && target.dim() > 0;
  finish(loss.run(kMulti, false), reduction, each, out);
  return out;
}
at::Tensor multi_margin(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p, const at::Scalar& margin,
                        const OptionalTensor& weight, int64_t reduction) {
  at::Tensor out = empty_tensor({0}, {}, self.scalar_type());
  return multi_margin_out(self, target, p, margin, weight, reduction, out);
}

at::Tensor& multi_margin_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                      const at::Scalar& p, const at::Scalar& margin, const OptionalTensor& weight,
                                      int64_t reduction, at::Tensor& grad_input) {
  const Multi loss(self, target, p, margin, weight);
  return finish_backward(loss.run(kMultiBackward, true), grad, reduction, self, grad_input);
}
at::Tensor multi_margin_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                 const at::Scalar& p, const at::Scalar& margin, const OptionalTensor& weight,
                                 int64_t reduction) {
  at::Tensor grad_input = empty_tensor({0}, {}, self.scalar_type());
  return multi_margin_backward_out(grad, self, target, p, margin, weight, reduction, grad_input);
}

struct Multilabel {
  Multilabel(const at::Tensor& self, const at::Tensor& target) {
    at::native::multilabel_margin_loss_shape_check(samples, classes, self.dim(), self, target);
    check_floating(self, "multilabel_margin_loss_forward_out_frame");
    scores = self.reshape({samples, classes});
    targets = target.reshape({samples, classes});
  }

  // `marks` are one for each class that is a target; while they are being made, any table will do.
  at::Tensor run(const IndexedRow& row, bool by_class, const at::Tensor& marks) const {
    const at::Tensor out =
        by_class ? empty_tensor({samples, classes}, {}, at::kFloat) : empty_tensor({samples}, {}, at::kFloat);
    Indexed launch(row, at::kFloat);
    launch.iterate(out.sizes()).operand(out, out.strides());
    for (const at::Tensor& operand : {scores, marks, targets}) {
      launch.operand(operand,
                     by_class ? at::IntArrayRef({operand.stride(0), 0}) : at::IntArrayRef({operand.stride(0)}));
    }
    launch.extra(classes).extra(scores.stride(1)).extra(marks.stride(1)).extra(targets.stride(1)).run();
    return out;
  }

  int64_t samples = 0, classes = 0;
  at::Tensor scores, targets;
};

std::tuple<at::Tensor&, at::Tensor&> multilabel_out(const at::Tensor& self, const at::Tensor& target, int64_t reduction,
                                                    at::Tensor& out, at::Tensor& is_target) {
  const Multilabel loss(self, target);
  at::native::resize_output(is_target, target.sizes());
  const at::Tensor marks = loss.run(kMarks, true, loss.scores);
  is_target.copy_(marks.view(target.sizes()));
  const bool each = reduction == at::Reduction::None && target.dim() > 1;
  finish(loss.run(kMultilabel, false, marks), reduction, each, out);
  return {out, is_target};
}
std::tuple<at::Tensor, at::Tensor> multilabel(const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  at::Tensor out = empty_tensor({0}, {}, self.scalar_type()), is_target = empty_tensor({0}, {}, self.scalar_type());
  multilabel_out(self, target, reduction, out, is_target);
  return {out, is_target};
}

at::Tensor& multilabel_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                    int64_t reduction, const at::Tensor& is_target, at::Tensor& grad_input) {
  const Multilabel loss(self, target);
  at::native::resize_output(grad_input, self.sizes());
  if (self.numel() == 0) return grad_input;
  const at::Tensor slopes = loss.run(kMultilabelBackward, true, is_target.reshape({loss.samples, loss.classes}));
  return finish_backward(slopes, grad, reduction, self, grad_input);
}
at::Tensor multilabel_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                               int64_t reduction, const at::Tensor& is_target) {
  at::Tensor grad_input = empty_tensor({0}, {}, self.scalar_type());
  return multilabel_backward_out(grad, self, target, reduction, is_target, grad_input);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&multi_margin>(library, "multi_margin_loss");
  native<&multi_margin_out>(library, "multi_margin_loss.out");
  native<&multi_margin_backward>(library, "multi_margin_loss_backward");
  native<&multi_margin_backward_out>(library, "multi_margin_loss_backward.grad_input");
  native<&multilabel>(library, "multilabel_margin_loss_forward");
  native<&multilabel_out>(library, "multilabel_margin_loss_forward.output");
  native<&multilabel_backward>(library, "multilabel_margin_loss_backward");
  native<&multilabel_backward_out>(library, "multilabel_margin_loss_backward.grad_input");
}

}  // namespace
}  // namespace torch_webgpu
