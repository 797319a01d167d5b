// Registers a kernel that steps aside, to the counted CPU fallback, for dtypes that it does not take: for most kernels
// all that families/tensor.h does not list as computed. It refuses tensors of two devices.
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
#include "device/storage.h"
#include "families/tensor.h"
#include "runtime/error.h"

namespace torch_webgpu {
namespace detail {

template <DtypeSet Taken, class T>
bool takes(const T& argument) {
  if constexpr (Taken == kAny) return true;
  if constexpr (std::is_same_v<T, at::Tensor>) {
    if (!argument.defined()) return true;
    // A number from the host arrives in any dtype; only its value counts.
    if (argument.device().type() != kDeviceType) return (Taken & kComplex) != 0 || !argument.is_complex();
    return contains(Taken, argument.scalar_type());
  } else if constexpr (std::is_same_v<T, c10::Scalar>) {
    return (Taken & kComplex) != 0 || !argument.isComplex();
  } else if constexpr (std::is_same_v<T, at::ScalarType>) {
    return contains(Taken, argument);
  } else if constexpr (std::is_same_v<T, std::optional<at::Tensor>> || std::is_same_v<T, std::optional<c10::Scalar>> ||
                       std::is_same_v<T, std::optional<at::ScalarType>>) {
    return !argument || takes<Taken>(*argument);
  } else if constexpr (std::is_same_v<T, at::TensorList> || std::is_same_v<T, at::ITensorListRef>) {
    for (const at::Tensor& tensor : argument) {
      if (!takes<Taken>(tensor)) return false;
    }
  }
  return true;
}

// A tensor that is written leaves what it shares by copy on write.
template <class Argument>
void own(const at::Tensor& argument) {
  if constexpr (std::is_same_v<Argument, at::Tensor&>) own_memory(argument);
}
template <class Argument, class T>
void own(const T&) {}

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

template <auto Kernel, DtypeSet Taken, class Signature = decltype(Kernel)>
struct Guarded;

template <auto Kernel, DtypeSet Taken, class Result, class... Arguments>
struct Guarded<Kernel, Taken, Result (*)(Arguments...)> {
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
    (own<Arguments>(arguments), ...);
    if ((takes<Taken>(arguments) && ...)) [[likely]] {
      try {
        return Kernel(arguments...);
      } catch (const NotComputed&) {  // NOLINT(bugprone-empty-catch): what follows is the answer
        // The dtype followed from more than the arguments: from a number of the host, or from the default dtype.
      }
    }
    return c10::impl::BoxedKernelWrapper<Result(Arguments...)>::call(c10::BoxedKernel::makeFromFunction<&run_on_cpu>(),
                                                                     *op, c10::DispatchKeySet(),
                                                                     std::forward<Arguments>(arguments)...);
  }
};

}  // namespace detail

// `name` is an aten op, with its overload behind a dot. False when PyTorch has no such op.
template <auto Kernel, DtypeSet Taken = kComputed>
bool native(torch::Library& library, const std::string& name) {
  const size_t dot = name.find('.');
  const auto op = c10::Dispatcher::singleton().findSchema(
      {"aten::" + name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)});
  if (!op) return false;
  using Entry = detail::Guarded<Kernel, Taken>;
  TORCH_INTERNAL_ASSERT(!Entry::op, "one kernel for two ops: ", name);  // it knows one to step aside for
  Entry::op = op;
  Entry::name = (new std::string("aten::" + name))->c_str();  // lives as long as the registration
  library.impl(name.c_str(), &Entry::call);
  return true;
}

// Registers `name.overload`, `name_.overload` and `name.out_overload`, as far as PyTorch has them.
template <class Op, DtypeSet Taken = kComputed>
void register_forms(torch::Library& library, const std::string& name, const std::string& overload,
                    const std::string& out_overload) {
  const std::string suffix = overload.empty() ? "" : "." + overload;
  native<&Op::functional, Taken>(library, name + suffix);
  native<&Op::inplace, Taken>(library, name + "_" + suffix);
  native<&Op::out, Taken>(library, name + "." + out_overload);
}

}  // namespace torch_webgpu
