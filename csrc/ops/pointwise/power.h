// Powers of floats that are cheaper and more exact by other means have formulas of their own.
#pragma once
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include "shader/pointwise.h"

namespace torch_webgpu {

struct Power {
  const PointwiseRow& row;
  at::Scalar exponent;  // s0, where the row uses it
};

Power power_of(at::ScalarType dtype, const at::Scalar& exponent);

}  // namespace torch_webgpu
