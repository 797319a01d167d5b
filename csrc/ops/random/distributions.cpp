// Tensors filled from a distribution, with PyTorch's own checks of the arguments.
#include <ATen/native/DistributionTemplates.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <cmath>

#include "device/generator.h"
#include "families/indexed.h"
#include "ops/native.h"
#include "ops/random/random.h"
#include "runtime/messages.h"

namespace torch_webgpu {
namespace {

namespace templates = at::native::templates;

// clang-format off
constexpr PointwiseRow kUniform     = random_row("uniform", "random_uniform(block[lane], s0, s1)", "random", 1);
constexpr PointwiseRow kNormal      = random_row("normal", "mul_then_add(random_normal(block, lane), s1, s0)");
constexpr PointwiseRow kLogNormal   = random_row("log_normal", "random_exp(mul_then_add(random_normal(block, lane), s1, s0))");
constexpr PointwiseRow kExponential = random_row("exponential", "random_exponential(block[lane]) * s0");
constexpr PointwiseRow kGeometric   = random_row("geometric", "ceil(rounded(random_exponential(block[lane]) * s0))");
constexpr PointwiseRow kCauchy      = random_row("cauchy", "mul_then_add(random_cauchy(block[lane]), s1, s0)");
constexpr PointwiseRow kBernoulli   = random_row("bernoulli", "lt(random_unit(block[lane]), a)", "random", 1, PointwiseRow::returns_bool);
constexpr PointwiseRow kSmallInts   = random_row("random", "random_small(block[lane])", "random_int", 4);
constexpr PointwiseRow kLargeInts   = random_row("random", "random_large(block)", "random_int", 4, PointwiseRow::own_block);
// clang-format on
constexpr IndexedRow kDeviation{"normal", "if (!ge(load0(i0), zero)) { complain(x(0u)); }",
                                IndexedRow::acts | IndexedRow::checks | IndexedRow::merges, 1, 0};

void check_dtype(bool supported, const char* kernel, at::ScalarType dtype) {
  TORCH_CHECK_NOT_IMPLEMENTED(supported, "\"", kernel, "\" not implemented for '", toString(dtype), "'");
}

void draw_floats(const at::Tensor& out, const PointwiseRow& row, const OptionalGenerator& generator, double first,
                 double second) {
  const at::Scalar s0(first), s1(second);
  if (row.scalars == 1) return draw(out, row, at::kFloat, generator, {&s0});
  draw(out, row, at::kFloat, generator, {&s0, &s1});
}

// `count` integers from `first` on; 0 stands for 2^64.
void draw_ints(const at::Tensor& out, uint64_t count, int64_t first, const OptionalGenerator& generator) {
  const bool small = count != 0 && count <= uint64_t{1} << 24;
  const uint32_t words[] = {static_cast<uint32_t>(first), static_cast<uint32_t>(first >> 32),
                            static_cast<uint32_t>(count), static_cast<uint32_t>(count >> 32)};
  draw(out, small ? kSmallInts : kLargeInts, at::kLong, generator, {}, words);
}

// The kernels that PyTorch's templates call once the arguments are checked.
template <class>
struct UniformKernel {
  void operator()(at::TensorIteratorBase& iterator, double low, double high, const OptionalGenerator& generator) {
    const at::Tensor& out = iterator.tensor(0);
    const at::Scalar s0(low), s1(high);
    draw(out, kUniform, at::kFloat, generator, {&s0, &s1}, {unit_shift(out.scalar_type())});
  }
};

template <class>
struct NormalKernel {
  void operator()(const at::Tensor& self, double mean, double std, const OptionalGenerator& generator) {
    check_dtype(self.is_floating_point(), "normal_kernel_cpu", self.scalar_type());
    draw_floats(self, kNormal, generator, mean, std);
  }
};

template <class>
struct LogNormalKernel {
  void operator()(at::TensorIteratorBase& iterator, double mean, double std, const OptionalGenerator& generator) {
    check_dtype(at::isFloatingType(iterator.dtype()), "log_normal_cpu", iterator.dtype());
    draw_floats(iterator.tensor(0), kLogNormal, generator, mean, std);
  }
};

template <class>
struct ExponentialKernel {
  void operator()(at::TensorIteratorBase& iterator, double lambda, const OptionalGenerator& generator) {
    TORCH_CHECK(
        at::isFloatingType(iterator.dtype()),
        "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
        "specified ",
        iterator.dtype());
    draw_floats(iterator.tensor(0), kExponential, generator, 1 / lambda, 0);
  }
};

template <class>
struct GeometricKernel {
  void operator()(at::TensorIteratorBase& iterator, double p, const OptionalGenerator& generator) {
    check_dtype(iterator.dtype() != at::kBool, "geometric_cpu", iterator.dtype());
    draw_floats(iterator.tensor(0), kGeometric, generator, -1 / std::log1p(-p), 0);
  }
};

template <class>
struct CauchyKernel {
  void operator()(at::TensorIteratorBase& iterator, double median, double sigma, const OptionalGenerator& generator) {
    draw_floats(iterator.tensor(0), kCauchy, generator, median, sigma);
  }
};

template <class>
struct EventKernel {
  void operator()(const at::Tensor& self, double p, const OptionalGenerator& generator) {
    draw_events(self, p, generator);
  }
};

template <class>
struct ProbabilityKernel {
  void operator()(const at::Tensor& self, const at::Tensor& p, const OptionalGenerator& generator) {
    check_dtype(p.is_floating_point(), self.is_floating_point() ? "bernoulli_tensor_cpu_p_" : "bernoulli_tensor_cpu_p_",
                p.scalar_type());
    const at::Tensor on_device = p.device() == self.device() || p.dim() > 0 ? p : p.to(self.device(), at::kFloat);
    draw(self, kBernoulli, at::kFloat, generator, {}, {unit_shift(at::kFloat)}, on_device);
  }
};

// All values that the dtype holds, from zero on; floats as far as they hold every integer.
template <class>
struct RandomKernel {
  void operator()(at::TensorIteratorBase& iterator, const OptionalGenerator& generator) {
    uint64_t count = 0;
    switch (iterator.dtype()) {
      case at::kDouble: count = (uint64_t{1} << 53) + 1; break;
      case at::kFloat: count = (uint64_t{1} << 24) + 1; break;
      case at::kHalf: count = (uint64_t{1} << 11) + 1; break;
      case at::kBFloat16: count = (uint64_t{1} << 8) + 1; break;
      case at::kLong: count = uint64_t{1} << 63; break;
      case at::kInt: count = uint64_t{1} << 31; break;
      case at::kShort: count = uint64_t{1} << 15; break;
      case at::kChar: count = uint64_t{1} << 7; break;
      case at::kByte: count = uint64_t{1} << 8; break;
      case at::kUInt16: count = uint64_t{1} << 16; break;
      case at::kUInt32: count = uint64_t{1} << 32; break;
      case at::kUInt64: break;  // all of them
      case at::kBool: count = 2; break;
      default: check_dtype(false, "random_kernel_cpu", iterator.dtype());
    }
    draw_ints(iterator.tensor(0), count, 0, generator);
  }
};

template <class>
struct RandomRangeKernel {
  void operator()(at::TensorIteratorBase& iterator, uint64_t count, int64_t first, const OptionalGenerator& generator) {
    draw_ints(iterator.tensor(0), count, first, generator);
  }
  void operator()(at::TensorIteratorBase& iterator, const OptionalGenerator& generator) {
    draw_ints(iterator.tensor(0), 0, 0, generator);
  }
};

at::Tensor& uniform_(at::Tensor& self, double low, double high, OptionalGenerator generator) {
  return templates::uniform_impl_<UniformKernel, Generator>(self, low, high, std::move(generator));
}
at::Tensor& normal_(at::Tensor& self, double mean, double std, OptionalGenerator generator) {
  return templates::normal_impl_<NormalKernel, Generator>(self, mean, std, std::move(generator));
}
at::Tensor& log_normal_(at::Tensor& self, double mean, double std, OptionalGenerator generator) {
  return templates::log_normal_impl_<LogNormalKernel, Generator>(self, mean, std, std::move(generator));
}
at::Tensor& exponential_(at::Tensor& self, double lambda, OptionalGenerator generator) {
  return templates::exponential_impl_<ExponentialKernel, Generator>(self, lambda, std::move(generator));
}
at::Tensor& geometric_(at::Tensor& self, double p, OptionalGenerator generator) {
  return templates::geometric_impl_<GeometricKernel, Generator>(self, p, std::move(generator));
}
at::Tensor& cauchy_(at::Tensor& self, double median, double sigma, OptionalGenerator generator) {
  return templates::cauchy_impl_<CauchyKernel, Generator>(self, median, sigma, std::move(generator));
}
at::Tensor& bernoulli_(at::Tensor& self, double p, OptionalGenerator generator) {
  return templates::bernoulli_impl_<EventKernel, Generator>(self, p, std::move(generator));
}
at::Tensor& bernoulli_tensor_(at::Tensor& self, const at::Tensor& p, OptionalGenerator generator) {
  return templates::bernoulli_impl_<ProbabilityKernel, Generator>(self, p, std::move(generator));
}
at::Tensor& bernoulli_out(const at::Tensor& self, OptionalGenerator generator, at::Tensor& out) {
  return templates::bernoulli_out_impl<ProbabilityKernel, Generator>(out, self, std::move(generator));
}
at::Tensor& random_(at::Tensor& self, OptionalGenerator generator) {
  return templates::random_impl<RandomKernel, Generator>(self, std::move(generator));
}
at::Tensor& random_from_(at::Tensor& self, int64_t first, std::optional<int64_t> end, OptionalGenerator generator) {
  return templates::random_from_to_impl<RandomRangeKernel, Generator>(self, first, end, std::move(generator));
}
at::Tensor& random_to_(at::Tensor& self, int64_t end, OptionalGenerator generator) {
  return random_from_(self, 0, end, std::move(generator));
}

// normal of tensors. PyTorch's templates ask std.min(), which is two more outputs than this needs.
void check_std(const at::Tensor& std) {
  TORCH_CHECK(!std.is_complex(), "normal expects standard deviation to be non-complex");
  if (std.device().type() != kDeviceType || !std.is_floating_point()) {
    TORCH_CHECK(std.numel() == 0 || at::amin(std).item<double>() >= 0, "normal expects all elements of std >= 0.0");
    return;
  }
  Indexed(kDeviation, at::kFloat)
      .iterate(std.sizes())
      .operand(std, std.strides())
      .extra(message_number("normal expects all elements of std >= 0.0"))
      .run();
}

at::Tensor& normal_tensor_float_out(const at::Tensor& mean, double std, OptionalGenerator generator, at::Tensor& out) {
  TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  at::native::resize_output(out, at::infer_size(mean.sizes(), out.sizes()));
  return normal_(out, 0, std, std::move(generator)).add_(mean);
}
at::Tensor normal_tensor_float(const at::Tensor& mean, double std, OptionalGenerator generator) {
  at::Tensor out = at::empty_like(mean, at::MemoryFormat::Contiguous);
  return normal_tensor_float_out(mean, std, std::move(generator), out);
}
at::Tensor& normal_float_tensor_out(double mean, const at::Tensor& std, OptionalGenerator generator, at::Tensor& out) {
  check_std(std);
  at::native::resize_output(out, std.sizes());
  return normal_(out, 0, 1, std::move(generator)).mul_(std).add_(mean);
}
at::Tensor normal_float_tensor(double mean, const at::Tensor& std, OptionalGenerator generator) {
  at::Tensor out = at::empty_like(std, at::MemoryFormat::Contiguous);
  return normal_float_tensor_out(mean, std, std::move(generator), out);
}
at::Tensor& normal_tensors_out(const at::Tensor& mean, const at::Tensor& std, OptionalGenerator generator,
                               at::Tensor& out) {
  check_std(std);
  at::native::resize_output(out, at::infer_size(mean.sizes(), std.sizes()));
  return normal_(out, 0, 1, std::move(generator)).mul_(std).add_(mean);
}
at::Tensor normal_tensors(const at::Tensor& mean, const at::Tensor& std, OptionalGenerator generator) {
  at::Tensor out = at::empty({0}, mean.options());
  return normal_tensors_out(mean, std, std::move(generator), out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&uniform_, kAny>(library, "uniform_");
  native<&normal_, kAny>(library, "normal_");
  native<&log_normal_, kAny>(library, "log_normal_");
  native<&exponential_, kAny>(library, "exponential_");
  native<&geometric_, kAny>(library, "geometric_");
  native<&cauchy_, kAny>(library, "cauchy_");
  native<&bernoulli_, kAny>(library, "bernoulli_.float");
  native<&bernoulli_tensor_, kAny>(library, "bernoulli_.Tensor");
  native<&bernoulli_out, kAny>(library, "bernoulli.out");
  native<&random_, kAny>(library, "random_");
  native<&random_from_, kAny>(library, "random_.from");
  native<&random_to_, kAny>(library, "random_.to");
  native<&normal_tensor_float, kAny>(library, "normal.Tensor_float");
  native<&normal_tensor_float_out, kAny>(library, "normal.Tensor_float_out");
  native<&normal_float_tensor, kAny>(library, "normal.float_Tensor");
  native<&normal_float_tensor_out, kAny>(library, "normal.float_Tensor_out");
  native<&normal_tensors, kAny>(library, "normal.Tensor_Tensor");
  native<&normal_tensors_out, kAny>(library, "normal.Tensor_Tensor_out");
}

}  // namespace
}  // namespace torch_webgpu
