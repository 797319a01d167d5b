// Tensors of one number that the host knows. PyTorch makes one of every Python number that is assigned to elements:
// its memory is written when something binds it, and an op that can take a number takes it from the host instead.
#pragma once
#include <c10/core/Storage.h>

#include <optional>

#include "runtime/buffer_pool.h"

namespace torch_webgpu {

struct Number {
  uint32_t words[4] = {};  // as they lie in memory
  uint32_t size_bytes = 0;
};

c10::DataPtr allocate_number(const Number& number);
// The number, while nothing else can have been written.
std::optional<Number> number_in(const c10::Storage& storage);
// Writes the number into its memory, for whoever is about to bind it.
void write_number(const Buffer& buffer);

}  // namespace torch_webgpu
