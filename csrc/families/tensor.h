// Making tensors of the device.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "device/allocator.h"
#include "device/context.h"
#include "device/dtypes.h"
#include "shader/dtype.h"

namespace torch_webgpu {

// Uninitialised; empty strides mean contiguous, or `format`.
at::Tensor empty_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype,
                        std::optional<at::MemoryFormat> format = std::nullopt);

// The dtype that kernels of all families compute with, if it is one. What moves elements by their size needs none.
std::optional<DType> dtype_of(at::ScalarType type);
// The same, or one that pointwise kernels load, cast, compare and store.
std::optional<DType> stored_dtype(at::ScalarType type);

// No kernel of an op computes in a dtype. native() catches it and hands the call to the CPU.
struct NotComputed : c10::NotImplementedError {
  using c10::NotImplementedError::NotImplementedError;
};

// The same dtypes, or NotComputed.
DType kernel_dtype(at::ScalarType dtype, const char* op);
DType stored_dtype(at::ScalarType dtype, const char* op);

// The value as a number of the dtype: a negative one wraps around in uint8. The CPU's error where it does not fit.
at::Scalar fitted(at::ScalarType dtype, const at::Scalar& value);
inline void check_fits(at::ScalarType dtype, const at::Scalar& value) { (void)fitted(dtype, value); }

}  // namespace torch_webgpu
