// The arguments of a function of tensors, and what of them a recording of it depends on.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "runtime/buffer_pool.h"

namespace torch_webgpu {

// A tensor or a whole number; neither is owned.
struct Argument {
  const at::Tensor* tensor = nullptr;
  int64_t number = 0;
};
using Arguments = c10::SmallVector<Argument, 16>;

// The properties of the arguments that a recording depends on: layouts, and which arguments share a buffer.
class Layout {
 public:
  // None where an argument is neither a plain tensor of the device nor a number.
  static std::optional<Layout> of(const Arguments& arguments);
  bool holds(const Arguments& arguments) const;
  bool has_host_numbers() const;            // tensors without dimensions on the host, whose values it includes
  void allow_any_value(uint32_t argument);  // of a number on the host

 private:
  struct Entry {
    enum Kind : uint8_t { number, host_number, any_host_number, tensor } kind;
    at::ScalarType dtype;
    uint32_t shares_with;       // the first argument with the same buffer
    uint64_t large_size_bytes;  // of a buffer that one binding cannot hold, otherwise 0
    int64_t value;              // of a number; of a tensor the storage offset
    c10::SmallVector<int64_t, 8> sizes_and_strides;
  };
  std::vector<Entry> entries_;
};

// A tensor of the device, as a recording can hold it.
bool is_plain(const at::Tensor& tensor);
// A number on the host, such as the seed that attention keeps for its backward: a recording is for its value.
bool is_host_number(const at::Tensor& tensor);
int64_t bits_of(const at::Tensor& number);
// Null for numbers, and for what has no memory on the device.
const Buffer* buffer_if_any(const at::Tensor* tensor);
uint64_t largest_binding();

}  // namespace torch_webgpu
