#include "families/number.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <cstring>

#include "device/number.h"
#include "families/tensor.h"

namespace torch_webgpu {

Number number_of(const at::Scalar& value, at::ScalarType dtype) {
  check_fits(dtype, value);
  Number number;
  const auto put = [&](auto element) {
    std::memcpy(number.words, &element, sizeof(element));
    number.size_bytes = sizeof(element);
  };
  switch (dtype) {
    case at::kFloat: put(value.to<float>()); break;
    case at::kHalf: put(value.to<at::Half>()); break;
    case at::kBFloat16: put(value.to<at::BFloat16>()); break;
    case at::kLong: put(value.to<int64_t>()); break;
    case at::kInt: put(value.to<int32_t>()); break;
    case at::kShort: put(value.to<int16_t>()); break;
    case at::kChar: put(value.to<int8_t>()); break;
    case at::kByte: put(value.to<uint8_t>()); break;
    case at::kBool: put(value.to<bool>()); break;
    case at::kComplexFloat: put(value.to<c10::complex<float>>()); break;
    case at::kDouble: put(value.to<double>()); break;
    case at::kComplexDouble: put(value.to<c10::complex<double>>()); break;
    default: {
      const at::Tensor host = at::Tensor(at::detail::empty_cpu({}, dtype)).fill_(value);
      number.size_bytes = host.element_size();
      std::memcpy(number.words, host.const_data_ptr(), number.size_bytes);
    }
  }
  return number;
}

at::Scalar bits_of(const at::Scalar& value, at::ScalarType dtype) {
  const Number number = number_of(value, dtype);
  if (number.size_bytes < 8) return static_cast<int64_t>(number.words[0]);
  if (number.size_bytes == 8) {
    int64_t words = 0;
    std::memcpy(&words, number.words, sizeof(words));
    return words;
  }
  c10::complex<double> words;
  std::memcpy(&words, number.words, sizeof(words));
  return words;
}

std::optional<at::Scalar> known_number(const at::Tensor& tensor) {
  if (tensor.device().type() != kDeviceType || tensor.storage_offset() != 0 || tensor.is_neg() || tensor.is_conj())
    return std::nullopt;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.size(dim) != 1 && tensor.stride(dim) != 0) return std::nullopt;
  }
  const auto number = number_in(tensor.storage());
  if (!number || number->size_bytes != tensor.element_size()) return std::nullopt;
  const at::Tensor host = at::detail::empty_cpu({}, tensor.scalar_type());
  std::memcpy(host.mutable_data_ptr(), number->words, number->size_bytes);
  return host.item();
}

}  // namespace torch_webgpu
