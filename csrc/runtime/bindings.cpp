#include "runtime/bindings.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "runtime/kernel_cache.h"

namespace torch_webgpu {
namespace {

constexpr std::string_view kBinding = "@group(0) @binding(", kRead = ") var<storage, read> ",
                           kReadWrite = ") var<storage, read_write> ";

// Calls `found` with the index of each binding that is only read, and where its access is declared.
template <class Found>
void find_read_only(const std::string& wgsl, const Found& found) {
  for (size_t at = wgsl.find(kBinding); at != std::string::npos; at = wgsl.find(kBinding, at + 1)) {
    char* end = nullptr;
    const auto index = std::strtoul(wgsl.c_str() + at + kBinding.size(), &end, 10);
    const auto access = static_cast<size_t>(end - wgsl.c_str());
    if (index < kMaxBindings && wgsl.compare(access, kRead.size(), kRead) == 0) found(index, access);
  }
}

}  // namespace

uint32_t declared_read_only(const std::string& wgsl) {
  uint32_t bits = 0;
  find_read_only(wgsl, [&](unsigned long index, size_t) { bits |= 1u << index; });
  return bits;
}

void declare_all_written(std::string& wgsl) {
  std::vector<size_t> places;
  find_read_only(wgsl, [&](unsigned long, size_t access) { places.push_back(access); });
  for (size_t i = places.size(); i-- > 0;) wgsl.replace(places[i], kRead.size(), kReadWrite);
}

}  // namespace torch_webgpu
