// Messages of the host by number, which is all that a kernel can report of one.
#pragma once
#include <cstdint>
#include <string>

namespace torch_webgpu {

// In place of a dimension: what a kernel reports is a message, not an index out of range.
constexpr uint32_t kReportsMessage = ~0u;

uint32_t message_number(const std::string& text);  // equal texts share a number
std::string message(uint32_t number);

}  // namespace torch_webgpu
