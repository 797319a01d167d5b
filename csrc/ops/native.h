// Registers a kernel that steps aside, to the counted CPU fallback, for tensors of a dtype that no kernel computes in
// (complex numbers, quantized tensors, unsigned integers wider than a byte), and that refuses tensors of two devices.
#pragma once
#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/impl/boxing.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <string>

#include "device/allocator.h"
#include "device/context.h"
#include "device/fallback.h"
#include "families/tensor.h"
#include "runtime/error.h"

namespace torch_webgpu {
namespace detail {

template <class T>
bool is_computable(const T& argument) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    if (!argument.defined()) return true;
    // A number from the host arrives in any dtype; only its value counts.
    if (argument.device().type() != kDeviceType) return !argument.is_complex();
    return dtype_of(argument.scalar_type()).has_value();
  } else if constexpr (std::is_same_v<T, c10::Scalar>) {
    return !argument.isComplex();
  } else if constexpr (std::is_same_v<T, std::optional<at::Tensor>> || std::is_same_v<T, std::optional<c10::Scalar>>) {
    return !argument || is_computable(*argument);
  } else {
    return true;
  }
}

// Calls visit(tensor) for an argument that is a tensor, or each of those in it. Index tensors come as lists of optional
// tensors, and may be on the host: indexing moves them.
template <class T, class Visit>
void visit_tensors(const T& argument, const Visit& visit) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    if (argument.defined()) visit(argument);
  } else if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) {
    if (argument && argument->defined()) visit(*argument);
  } else if constexpr (std::is_same_v<T, at::TensorList> || std::is_same_v<T, at::ITensorListRef>) {
    for (const at::Tensor& tensor : argument) {
      if (tensor.defined()) visit(tensor);
    }
  }
}

template <auto Kernel, class Signature = decltype(Kernel)>
struct Guarded;

template <auto Kernel, class Result, class... Arguments>
struct Guarded<Kernel, Result (*)(Arguments...)> {
  static inline std::optional<c10::OperatorHandle> op;
  static inline const char* name = nullptr;

  static Result call(Arguments... arguments) {
    const OpScope scope(name);
    bool here = true;
    (visit_tensors(arguments, [&](const at::Tensor& tensor) { here &= tensor.device().type() == kDeviceType; }), ...);
    if (!here) [[unlikely]] {
      c10::SmallVector<const at::Tensor*, 8> tensors;
      (visit_tensors(arguments, [&](const at::Tensor& tensor) { tensors.push_back(&tensor); }), ...);
      check_same_device(tensors);
    }
    if ((is_computable(arguments) && ...)) [[likely]]
      return Kernel(std::forward<Arguments>(arguments)...);
    return c10::impl::BoxedKernelWrapper<Result(Arguments...)>::call(c10::BoxedKernel::makeFromFunction<&run_on_cpu>(),
                                                                     *op, c10::DispatchKeySet(),
                                                                     std::forward<Arguments>(arguments)...);
  }
};

}  // namespace detail

// `name` is an aten op, with its overload behind a dot. False when PyTorch has no such op.
template <auto Kernel>
bool native(torch::Library& library, const std::string& name) {
  const size_t dot = name.find('.');
  const auto op = c10::Dispatcher::singleton().findSchema(
      {"aten::" + name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)});
  if (!op) return false;
  TORCH_INTERNAL_ASSERT(!detail::Guarded<Kernel>::op,
                        "one kernel for two ops: ", name);  // it knows one to step aside for
  detail::Guarded<Kernel>::op = op;
  detail::Guarded<Kernel>::name = (new std::string("aten::" + name))->c_str();  // lives as long as the registration
  library.impl(name.c_str(), &detail::Guarded<Kernel>::call);
  return true;
}

}  // namespace torch_webgpu
