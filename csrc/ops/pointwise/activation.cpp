// The table of activations and their backwards.
#include <ATen/native/Activation.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/_prelu_kernel_native.h>
#include <ATen/ops/elu_backward_meta.h>
#include <ATen/ops/elu_meta.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu_backward_meta.h>
#include <ATen/ops/gelu_meta.h>
#include <ATen/ops/glu_meta.h>
#include <ATen/ops/hardshrink_backward_meta.h>
#include <ATen/ops/hardshrink_meta.h>
#include <ATen/ops/hardsigmoid_backward_meta.h>
#include <ATen/ops/hardsigmoid_meta.h>
#include <ATen/ops/hardswish_backward_native.h>
#include <ATen/ops/hardswish_native.h>
#include <ATen/ops/hardtanh_backward_native.h>
#include <ATen/ops/hardtanh_native.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward_meta.h>
#include <ATen/ops/leaky_relu_meta.h>
#include <ATen/ops/logit_backward_meta.h>
#include <ATen/ops/logit_native.h>
#include <ATen/ops/mish_backward_native.h>
#include <ATen/ops/mish_meta.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/relu_native.h>
#include <ATen/ops/sigmoid_backward_meta.h>
#include <ATen/ops/sigmoid_meta.h>
#include <ATen/ops/silu_backward_meta.h>
#include <ATen/ops/silu_meta.h>
#include <ATen/ops/softplus_backward_meta.h>
#include <ATen/ops/softplus_meta.h>
#include <ATen/ops/softshrink_backward_meta.h>
#include <ATen/ops/softshrink_meta.h>
#include <ATen/ops/tanh_backward_meta.h>
#include <ATen/ops/threshold_backward_meta.h>
#include <ATen/ops/threshold_meta.h>
#include <ATen/ops/where.h>

#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

constexpr PointwiseRow floats(const char* name, const char* formula) {
  return make_row(name, formula, kFloats, "activation");
}

constexpr PointwiseRow kGelu = floats("gelu", "gelu(a)");
constexpr PointwiseRow kGeluTanh = floats("gelu", "gelu_tanh(a)");
constexpr PointwiseRow kGeluBackward = floats("gelu_backward", "gelu_backward(a, b)");
constexpr PointwiseRow kGeluTanhBackward = floats("gelu_backward", "gelu_tanh_backward(a, b)");

const PointwiseRow& gelu(const at::Tensor&, c10::string_view approximate) {
  return at::native::get_gelutype_enum(approximate) == at::native::GeluType::Tanh ? kGeluTanh : kGelu;
}
const PointwiseRow& gelu_backward(const at::Tensor&, const at::Tensor&, c10::string_view approximate) {
  const bool tanh = at::native::get_gelutype_enum(approximate) == at::native::GeluType::Tanh;
  return tanh ? kGeluTanhBackward : kGeluBackward;
}

constexpr PointwiseRow kEluBackward = floats("elu_backward", "elu_backward(a, b, s0, s1, s2)");
constexpr PointwiseRow kEluBackwardOfResult = floats("elu_backward", "elu_backward_of_result(a, b, s0, s1, s2)");

const PointwiseRow& elu_backward(const at::Tensor&, const at::Scalar&, const at::Scalar&, const at::Scalar&,
                                 bool is_result, const at::Tensor&) {
  return is_result ? kEluBackwardOfResult : kEluBackward;
}

constexpr PointwiseRow kLogit = floats("logit", "logit(a)");
constexpr PointwiseRow kLogitWithin = floats("logit", "logit(min(max(a, s0), s1))");
constexpr PointwiseRow kLogitBackward = floats("logit_backward", "logit_backward(a, b)");
constexpr PointwiseRow kLogitBackwardWithin = floats("logit_backward", "logit_backward_within(a, b, s0, s1)");

// A negative eps stands for none.
void logit(at::TensorIteratorBase& iterator, const at::Scalar& eps) {
  const at::Scalar low(eps.toDouble()), high(1 - eps.toDouble());
  elementwise(iterator, eps.toDouble() < 0 ? kLogit : kLogitWithin, iterator.common_dtype(), {&low, &high});
}

struct LogitBackward {
  template <class Op>
  static void run(Op& op, const at::Tensor&, const at::Tensor&, std::optional<double> eps) {
    const at::Scalar low(eps.value_or(0)), high(1 - eps.value_or(0));
    const bool bounded = eps && *eps >= 0;
    elementwise(op, bounded ? kLogitBackwardWithin : kLogitBackward, op.common_dtype(), {&low, &high});
  }
};

// Ops over tensors of one dtype that PyTorch leaves to each device.
template <class... Tensors>
at::TensorIterator iterate(const at::Tensor& output, const Tensors&... inputs) {
  at::TensorIteratorConfig config;
  config.add_owned_output(output);
  (config.add_owned_const_input(inputs), ...);
  return config.build();
}

constexpr PointwiseRow kLogSigmoid = floats("log_sigmoid_forward", "log_sigmoid(a)");
constexpr PointwiseRow kLogSigmoidBackward = floats("log_sigmoid_backward", "a * sigmoid(-b)");

std::tuple<at::Tensor&, at::Tensor&> log_sigmoid_forward_out(const at::Tensor& self, at::Tensor& output,
                                                             at::Tensor& buffer) {
  auto iterator = at::TensorIterator::unary_op(output, self);
  elementwise(iterator, kLogSigmoid, iterator.common_dtype());
  output = iterator.output();
  return std::forward_as_tuple(output, buffer);
}
std::tuple<at::Tensor, at::Tensor> log_sigmoid_forward(const at::Tensor& self) {
  at::Tensor output = at::empty_like(self, at::MemoryFormat::Contiguous), buffer = at::empty({0}, self.options());
  log_sigmoid_forward_out(self, output, buffer);
  return {output, buffer};
}
// The buffer saves the CPU an exponential; here computing it again is cheaper than reading it.
at::Tensor& log_sigmoid_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor&,
                                     at::Tensor& grad_input) {
  auto iterator = iterate(grad_input, grad, self);
  elementwise(iterator, kLogSigmoidBackward, iterator.common_dtype());
  return grad_input;
}
at::Tensor log_sigmoid_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& buffer) {
  at::Tensor grad_input = at::empty_like(grad);
  return log_sigmoid_backward_out(grad, self, buffer, grad_input);
}

constexpr PointwiseRow kPreluSelf = floats("_prelu_kernel_backward", "select(c * b, c, gt(a, 0.0))");
constexpr PointwiseRow kPreluWeight = floats("_prelu_kernel_backward", "select(a * c, 0.0, gt(a, 0.0))");

std::tuple<at::Tensor, at::Tensor> prelu_backward(const at::Tensor& grad, const at::Tensor& self,
                                                  const at::Tensor& weight) {
  at::Tensor grad_self = at::empty({0}, self.options()), grad_weight = at::empty({0}, weight.options());
  auto by_self = iterate(grad_self, self, weight, grad);
  elementwise(by_self, kPreluSelf, by_self.common_dtype());
  auto by_weight = iterate(grad_weight, self, weight, grad);
  elementwise(by_weight, kPreluWeight, by_weight.common_dtype());
  return {grad_self, grad_weight};
}

constexpr PointwiseRow kGluFirst = floats("glu_backward", "a * sigmoid(c)");
constexpr PointwiseRow kGluSecond = floats("glu_backward", "a * b * sigmoid(c) * (1.0 - sigmoid(c))");

at::Tensor& glu_backward_out(const at::Tensor& grad, const at::Tensor& self, int64_t dim, at::Tensor& grad_input) {
  TORCH_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim()), size = self.size(wrapped);
  TORCH_CHECK(size % 2 == 0, "Halving dimension must be even, but dimension ", wrapped, " is size ", size);
  at::native::resize_output(grad_input, self.sizes());
  const auto half = [&](const at::Tensor& whole, int64_t index) {
    return whole.narrow(wrapped, index * (size / 2), size / 2);
  };
  for (int64_t index = 0; index < 2; ++index) {
    auto iterator = iterate(half(grad_input, index), grad, half(self, 0), half(self, 1));
    elementwise(iterator, index == 0 ? kGluFirst : kGluSecond, iterator.common_dtype());
  }
  return grad_input;
}
at::Tensor glu_backward(const at::Tensor& grad, const at::Tensor& self, int64_t dim) {
  at::Tensor grad_input = at::empty({0}, self.options());
  return glu_backward_out(grad, self, dim, grad_input);
}

constexpr PointwiseRow kRelu = make_row("relu", "max(a, zero)");
struct Relu {
  static void check(const at::Tensor& self) {
    TORCH_CHECK(self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  }
  static at::Tensor functional(const at::Tensor& self) {
    check(self);
    return Unary<kRelu>::functional(self);
  }
  static at::Tensor& inplace(at::Tensor& self) {
    check(self);
    return Unary<kRelu>::inplace(self);
  }
  static at::Tensor& out(const at::Tensor& self, at::Tensor& out) {
    check(self);
    return Unary<kRelu>::out(self, out);
  }
};

#define ACTIVATION(name, formula) ROW(name, , out, formula, kFloats, "activation")
#define BACKWARD(name, formula) ROW(name, , grad_input, formula, kFloats, "activation")

// clang-format off
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  POINTWISE(  sigmoid, , out,                  "sigmoid(a)")
  register_forms<Relu>(library, "relu", "", "out");
  CHOICE(     gelu, , out,                     gelu)
  ACTIVATION( silu,                            "silu(a)")
  ACTIVATION( mish,                            "mish(a)")
  ACTIVATION( elu,                             "elu(a, s0, s1, s2)")
  ACTIVATION( softplus,                        "softplus(a, s0, s1)")
  ACTIVATION( hardsigmoid,                     "hardsigmoid(a)")
  ROW(        hardshrink, , out,               "select(a, 0.0, within(a, -s0, s0))", kFloats | PointwiseRow::narrow_scalars, "activation")
  ACTIVATION( softshrink,                      "softshrink(a, s0)")
  ACTIVATION( leaky_relu,                      "select(a * s0, a, a > 0.0)")
  ACTIVATION( glu,                             "a * sigmoid(b)")
  ROW(        threshold, , out,                "select(a, s1, le(a, s0))", kNoBool | PointwiseRow::narrow_scalars, nullptr)
  STUB(       hardswish_stub,                  "a * hardsigmoid(a)", kFloats, "activation")
  STUB(       prelu_stub,                      "select(b * a, a, a > 0.0)", kFloats, nullptr)

  BACKWARD(   sigmoid_backward,                "a * (1.0 - b) * b")
  BACKWARD(   tanh_backward,                   "a * (1.0 - b * b)")
  CHOICE(     gelu_backward, , grad_input,     gelu_backward)
  BACKWARD(   silu_backward,                   "silu_backward(a, b)")
  CHOICE(     elu_backward, , grad_input,      elu_backward)
  BACKWARD(   softplus_backward,               "softplus_backward(a, b, s0, s1)")
  BACKWARD(   hardsigmoid_backward,            "select(0.0, a / 6.0, gt(b, -3.0) && lt(b, 3.0))")
  BACKWARD(   hardshrink_backward,             "select(a, 0.0, within(b, -s0, s0))")
  BACKWARD(   softshrink_backward,             "select(a, 0.0, within(b, -s0, s0))")
  BACKWARD(   leaky_relu_backward,             "select(b * s0, b, a > 0.0)")
  ROW(        threshold_backward, , grad_input, "select(b, zero, le(a, s0))", kNoBool, nullptr)
  STUB(       hardswish_backward_stub,         "hardswish_backward(a, b)", kFloats, "activation")
  STUB(       hardtanh_backward_stub,          "select(a, 0.0, le(b, s0) || ge(b, s1))", kFloats, nullptr)
  STUB(       mish_backward_stub,              "mish_backward(a, b)", kFloats, "activation")
  {
    using Op = FormsOf<at::meta::structured_logit_backward, LogitBackward>;
    register_forms<Op>(library, "logit_backward", "", "grad_input");
  }
  at::native::logit_stub.set_privateuse1_dispatch_ptr(&logit);

  native<&at::native::hardswish>(library, "hardswish");
  native<&at::native::hardswish_>(library, "hardswish_");
  native<&at::native::hardswish_out>(library, "hardswish.out");
  native<&at::native::hardswish_backward>(library, "hardswish_backward");
  native<&at::native::hardtanh>(library, "hardtanh");
  native<&at::native::hardtanh_>(library, "hardtanh_");
  native<&at::native::hardtanh_out>(library, "hardtanh.out");
  native<&at::native::hardtanh_backward>(library, "hardtanh_backward");
  native<&at::native::hardtanh_backward_out>(library, "hardtanh_backward.grad_input");
  native<&at::native::mish_backward>(library, "mish_backward");
  native<&at::native::logit>(library, "logit");
  native<&at::native::logit_>(library, "logit_");
  native<&at::native::logit_out>(library, "logit.out");
  native<&at::native::_prelu_kernel>(library, "_prelu_kernel");
  native<&prelu_backward>(library, "_prelu_kernel_backward");
  native<&log_sigmoid_forward>(library, "log_sigmoid_forward");
  native<&log_sigmoid_forward_out>(library, "log_sigmoid_forward.output");
  native<&log_sigmoid_backward>(library, "log_sigmoid_backward");
  native<&log_sigmoid_backward_out>(library, "log_sigmoid_backward.grad_input");
  native<&glu_backward>(library, "glu_backward");
  native<&glu_backward_out>(library, "glu_backward.grad_input");
}
// clang-format on

}  // namespace
}  // namespace torch_webgpu
