// Numbers of the host on their way into an op.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <optional>

#include "device/number.h"

namespace torch_webgpu {

// As it lies in the memory of a tensor of `dtype`; refuses what the dtype does not hold.
Number number_of(const at::Scalar& value, at::ScalarType dtype);

// The same bits, as the scalar of a kernel that moves elements of that size.
at::Scalar bits_of(const at::Scalar& value, at::ScalarType dtype);

// The one number that all elements of a tensor of the device show, where the host knows it. Never waits.
std::optional<at::Scalar> known_number(const at::Tensor& tensor);

}  // namespace torch_webgpu
