#include "runtime/messages.h"

#include <mutex>
#include <unordered_map>
#include <vector>

namespace torch_webgpu {
namespace {

struct Messages {
  std::mutex mutex;
  std::unordered_map<std::string, uint32_t> numbers;
  std::vector<const std::string*> texts;  // the map's keys
};
Messages& messages() {
  static auto* all = new Messages;
  return *all;
}

}  // namespace

uint32_t message_number(const std::string& text) {
  const std::lock_guard guard(messages().mutex);
  auto& [mutex, numbers, texts] = messages();
  const auto [found, added] = numbers.emplace(text, static_cast<uint32_t>(texts.size()));
  if (added) texts.push_back(&found->first);
  return found->second;
}

std::string message(uint32_t number) {
  const std::lock_guard guard(messages().mutex);
  const auto& texts = messages().texts;
  return number < texts.size() ? *texts[number] : "an assertion failed";
}

}  // namespace torch_webgpu
