// Assertions about values on the device do not wait: the next readback raises the message.
#include "families/indexed.h"
#include "ops/native.h"
#include "runtime/messages.h"

namespace torch_webgpu {
namespace {

constexpr IndexedRow kAssert{"_assert_async", "if (!ne(load0(i0), zero)) { complain(x(0u)); }",
                             IndexedRow::acts | IndexedRow::checks, 1, 0};

void assert_nonzero(const at::Tensor& self, const std::string& message) {
  TORCH_CHECK(self.numel() > 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(self.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  Indexed(kAssert, self.scalar_type())
      .iterate(at::IntArrayRef())
      .operand(self, {})
      .extra(message_number(message))
      .run();
}

void assert_message(const at::Tensor& self, std::string_view message) {
  assert_nonzero(self, message.empty() ? "Assertion is failed" : std::string(message));
}

void assert_plain(const at::Tensor& self) {
  assert_nonzero(self, "Expected Tensor with single nonzero value, but got zero");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&assert_plain>(library, "_assert_async");
  native<&assert_message>(library, "_assert_async.msg");
}

}  // namespace
}  // namespace torch_webgpu
