// Making tensors of the device.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "device/allocator.h"
#include "device/context.h"
#include "shader/dtype.h"

namespace torch_webgpu {

// Uninitialised; empty strides mean contiguous, or `format`. Refuses dtypes that WebGPU cannot hold.
at::Tensor empty_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype,
                        std::optional<at::MemoryFormat> format = std::nullopt);

// The dtype for kernels, if there is one.
std::optional<DType> dtype_of(at::ScalarType type);
// The same, or an error that names the op.
DType kernel_dtype(at::ScalarType dtype, const char* op);

void check_storable(at::ScalarType dtype);

// The value as a number of the dtype: a negative one wraps around in uint8. The CPU's error where it does not fit.
at::Scalar fitted(at::ScalarType dtype, const at::Scalar& value);
inline void check_fits(at::ScalarType dtype, const at::Scalar& value) { (void)fitted(dtype, value); }

}  // namespace torch_webgpu
