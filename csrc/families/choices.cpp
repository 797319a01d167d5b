#include "families/choices.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <sstream>

namespace torch_webgpu {
namespace {

constexpr int64_t kUnknown = -1;
constexpr uint64_t kQueued = uint64_t{1} << 62;

// What is known of a key. Entries are added and never removed, so a launch needs no lock.
struct Entry {
  std::atomic<uint64_t> key{0};
  std::atomic<int64_t> number{kUnknown};
  std::atomic<uint64_t> work{0};  // of all launches so far
};
std::array<Entry, 4096> entries;

// Null when there is no room: then the table's choice stands.
Entry* entry_of(uint64_t key) {
  constexpr size_t kLooks = 64;
  const uint64_t start = (key * 0x9E3779B97F4A7C15ull) >> 52;
  for (size_t look = 0; look < kLooks; ++look) {
    Entry& entry = entries[(start + look) % entries.size()];
    uint64_t found = entry.key.load(std::memory_order_acquire);
    if (found == 0 && entry.key.compare_exchange_strong(found, key, std::memory_order_acq_rel)) return &entry;
    if (found == key) return &entry;
  }
  return nullptr;
}

thread_local const Forced* forced = nullptr;

std::mutex mutex;  // guards the members of this group
std::deque<Contest> queue;
std::vector<Contest> seen;
void (*wake_tuner)() = nullptr;
std::atomic<uint64_t> work_of_a_contest{0};
std::atomic<int> watchers{0};
std::atomic<bool> started{false};

Contest with_key(Contest contest, uint64_t key) {
  contest.key = key;
  return contest;
}

void enqueue(Contest contest) {
  bool was_empty = false;
  {
    const std::lock_guard guard(mutex);
    was_empty = queue.empty();
    queue.push_back(std::move(contest));
  }
  if (was_empty) wake_tuner();
}

// Four launches at least: what is done once has no second time to gain.
bool add_work(Entry& entry, uint64_t work) {
  const uint64_t enough = work_of_a_contest.load(std::memory_order_relaxed);
  if (enough == 0) return false;
  const uint64_t before = entry.work.fetch_add(std::clamp<uint64_t>(work, 1, std::max<uint64_t>(enough / 4, 1)),
                                               std::memory_order_relaxed),
                 after = entry.work.load(std::memory_order_relaxed);
  if (before >= kQueued || after < enough) return false;
  return entry.work.exchange(kQueued, std::memory_order_relaxed) < kQueued;
}

// Numbers between -0.5 and 0.5 that differ from row to row, without the generator of the user's random numbers.
void fill(const at::Tensor& flat) {
  constexpr int64_t kPeriod = 4093;  // a prime
  const at::Tensor places = at::arange(flat.numel(), flat.options().dtype(at::kInt)).remainder(kPeriod);
  if (flat.is_floating_point()) {
    flat.copy_(places.to(at::kFloat).div(static_cast<double>(kPeriod)).sub(0.5));
  } else {
    flat.copy_(places.remainder(int64_t{7}));
  }
}

int64_t extent_of(const at::Tensor& tensor, int64_t offset) {
  if (tensor.numel() == 0) return offset;
  int64_t extent = offset + 1;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) extent += (tensor.size(dim) - 1) * tensor.stride(dim);
  return extent;
}

at::Tensor like(const at::Tensor& layout) {
  if (!layout.defined()) return {};
  const at::Tensor flat = at::empty({extent_of(layout, layout.storage_offset())}, layout.options().device(kDevice));
  fill(flat);
  return flat.as_strided(layout.sizes(), layout.strides(), layout.storage_offset());
}

}  // namespace

at::Tensor layout_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  constexpr int64_t kAlignment = 64;  // what a layout's choice may depend on
  const int64_t offset = tensor.storage_offset() % kAlignment;
  return at::empty({extent_of(tensor, offset)}, tensor.options().device(at::kMeta))
      .as_strided(tensor.sizes(), tensor.strides(), offset);
}

std::vector<at::Tensor> Contest::scratch() const {
  std::vector<at::Tensor> made;
  made.reserve(tensors.size());
  for (const at::Tensor& layout : tensors) made.push_back(like(layout));
  return made;
}

uint64_t Contest::size_bytes() const {
  uint64_t bytes = 0;
  for (const at::Tensor& layout : tensors) bytes += layout.defined() ? layout.storage().nbytes() : 0;
  return bytes;
}

std::string Contest::text() const {
  std::ostringstream text;
  text << family;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    text << " " << toString(tensor.scalar_type()) << tensor.sizes();
    if (!tensor.is_contiguous()) text << "@" << tensor.strides();
  }
  return text.str();
}

int64_t detail::choose(uint64_t key, int64_t first, int64_t work, c10::function_ref<Contest()> contest) {
  if (forced && forced->key == key) return forced->number;
  if (watchers.load(std::memory_order_relaxed) > 0) [[unlikely]] {
    Contest one = with_key(contest(), key);
    const std::lock_guard guard(mutex);
    if (std::none_of(seen.begin(), seen.end(), [&](const Contest& other) { return other.key == key; })) {
      seen.push_back(std::move(one));
    }
  }
  Entry* entry = entry_of(key);
  if (!entry) return first;
  const int64_t number = entry->number.load(std::memory_order_relaxed);
  if (number != kUnknown) return number;
  // Whoever asks for deterministic algorithms gets the same bits from a call and its repetition.
  if (add_work(*entry, static_cast<uint64_t>(work)) && !at::globalContext().deterministicAlgorithms()) {
    enqueue(with_key(contest(), key));
  }
  return first;
}

bool detail::is_preparing() { return forced && forced->only_prepares; }

void start_choices(uint64_t work, void (*wake)()) {
  wake_tuner = wake;
  work_of_a_contest = work;
  if (!started.exchange(true)) ++detail::users_of_choices;
}

void stop_choices() {
  work_of_a_contest = 0;
  const std::lock_guard guard(mutex);
  queue.clear();
}

void set_choice(uint64_t key, int64_t number) {
  if (Entry* entry = entry_of(key)) entry->number.store(number, std::memory_order_relaxed);
}

std::optional<Contest> next_contest() {
  const std::lock_guard guard(mutex);
  if (queue.empty()) return std::nullopt;
  Contest contest = std::move(queue.front());
  queue.pop_front();
  return contest;
}

Forced::Forced(uint64_t key, int64_t number, bool only_prepares)
    : key(key), number(number), only_prepares(only_prepares) {
  ++detail::users_of_choices;
  forced = this;
}
Forced::~Forced() {
  forced = nullptr;
  --detail::users_of_choices;
}

Contests::Contests() {
  take();
  ++watchers;
  ++detail::users_of_choices;
}
Contests::~Contests() {
  --detail::users_of_choices;
  --watchers;
}

std::vector<Contest> Contests::take() {
  const std::lock_guard guard(mutex);
  return std::exchange(seen, {});
}

}  // namespace torch_webgpu
